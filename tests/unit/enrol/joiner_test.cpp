// A joining machine and a server's Sessions, joined by a wire of the test's.
#include <endian.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <deque>
#include <set>

#include "enrol/joiner.hpp"
#include "noise/fakes.hpp"
#include "noise/sessions.hpp"
#include "wire/messages.h"

using namespace adit;
using namespace adit::enrol;
using namespace std::chrono_literals;
using noise::test::countingKey;
using noise::test::FakeClock;
using noise::test::MemoryStore;
using noise::test::SeededRandom;

namespace {

using Datagram = std::vector<std::uint8_t>;

const Endpoint kNas = *Endpoint::parse("192.0.2.2:1002");

/// The server's daemon and data plane, as far as an enrolment peer needs them.
class Server final : private noise::SessionActions {
 public:
  Server(const Clock& clock, crypto::RandomSource& random) : clock_(clock), random_(random) {
    restart();
  }

  /// A new daemon; what is on disk, the bound key, stays.
  void restart() {
    keys_.reset();
    noise::SessionActions& actions = *this;
    sessions_ = std::make_unique<noise::Sessions>(clock_, random_, timestamps_, actions);
    sessions_->setIdentity(identity);
    noise::PeerPolicy policy;
    policy.id = 1;
    policy.publicKey = enrolment.privateKey.publicKey();
    policy.presharedKey = enrolment.presharedKey;
    policy.pinned = suite;
    policy.extensions = false;
    REQUIRE(sessions_->setPeer(policy));
  }
  void usePins(crypto::Suite pinned) {
    suite = pinned;
    restart();
  }
  void underLoad() { backlog_ = 1000; }

  void receive(const Datagram& datagram) {
    if (datagram.front() != ADIT_MESSAGE_DATA) {
      sessions_->handshake(datagram, kNas, {}, backlog_);
      return;
    }
    if (!keys_) return;
    adit_message_data header;
    std::memcpy(&header, datagram.data(), sizeof header);
    if (le32toh(header.receiver_index) != keys_->localIndex) return;
    Datagram text(datagram.size() - ADIT_DATA_OVERHEAD);
    crypto::AeadJob job{datagram.data() + sizeof header, text.data(),
                        static_cast<std::uint32_t>(text.size()), le64toh(header.counter)};
    crypto::AeadWorker worker;
    worker.open(*crypto::makeAeadKey(keys_->suite, keys_->receive), std::span(&job, 1));
    REQUIRE(job.ok);
    REQUIRE(seen_.insert(job.counter).second);
    sessions_->keyConfirmed(1);
    answer(text);
  }

  const crypto::PrivateKey identity = countingKey(1);
  Secret<32> secret{std::array<std::uint8_t, 32>{9, 9, 9}};
  const EnrolmentKeys enrolment = enrolmentKeys(secret, identity.publicKey());
  crypto::Suite suite = crypto::Suite::ChaCha20Poly1305;
  std::optional<crypto::PublicKey> bound;
  std::deque<Datagram> out;
  unsigned requests = 0;
  bool silent = false;

 private:
  void answer(const Datagram& text) {
    const auto request = decodeRequest(text, identity, enrolment.privateKey.publicKey());
    REQUIRE(request);
    ++requests;
    if (!bound) bound = request->joining;
    if (silent) return;
    Answer reply;
    reply.verdict = *bound == request->joining ? Verdict::Accepted : Verdict::Taken;
    reply.addresses = {*InterfaceAddress::parse("10.77.3.2/24")};
    Message message = encodeAnswer(reply, request->keys, random_);
    message.resize((message.size() + 15) / 16 * 16);
    adit_message_data header{};
    header.header.type = ADIT_MESSAGE_DATA;
    header.header.suite = static_cast<std::uint8_t>(keys_->suite);
    header.receiver_index = htole32(keys_->remoteIndex);
    header.counter = htole64(counter_);
    Datagram datagram(ADIT_DATA_OVERHEAD + message.size());
    std::memcpy(datagram.data(), &header, sizeof header);
    crypto::AeadJob job{message.data(), datagram.data() + sizeof header,
                        static_cast<std::uint32_t>(message.size()), counter_++};
    crypto::AeadWorker worker;
    worker.seal(*crypto::makeAeadKey(keys_->suite, keys_->send), std::span(&job, 1));
    out.push_back(std::move(datagram));
  }

  Result<void> installKeys(noise::PeerId, const crypto::PublicKey&,
                           const noise::SessionKeys& keys) override {
    keys_.emplace(keys);
    counter_ = 0;
    seen_.clear();
    return {};
  }
  Result<void> sendInitiation(noise::PeerId, std::span<const std::uint8_t>) override { return {}; }
  void sendReply(std::span<const std::uint8_t> datagram, const Endpoint&,
                 const LocalAddress&) override {
    out.emplace_back(datagram.begin(), datagram.end());
  }
  void sendControl(noise::PeerId, std::span<const std::uint8_t>) override {}
  void dropStaged(noise::PeerId) override {}
  void dropKeys(noise::PeerId) override {}
  void peerTimestampAccepted(noise::PeerId, const noise::Tai64n&) override {}
  void suiteChosen(noise::PeerId, crypto::Suite) override {}
  void handshakeCompleted(noise::PeerId, noise::Role, crypto::Suite) override {}
  void handshakeGivenUp(noise::PeerId) override {}
  void initiationFailed(noise::PeerId, const Error&) override {}

  const Clock& clock_;
  crypto::RandomSource& random_;
  MemoryStore store_;
  noise::TimestampSource timestamps_{clock_, store_, std::nullopt};
  std::unique_ptr<noise::Sessions> sessions_;
  std::optional<noise::SessionKeys> keys_;
  std::uint64_t counter_ = 0;
  std::set<std::uint64_t> seen_;
  std::size_t backlog_ = 0;
};

struct Nas final : JoinActions {
  void send(std::span<const std::uint8_t> datagram) override {
    out.emplace_back(datagram.begin(), datagram.end());
  }
  Result<void> keepKey() override {
    if (diskFull) return fail("no space left");
    ++kept;
    return {};
  }
  std::deque<Datagram> out;
  unsigned kept = 0;
  bool diskFull = false;
};

/// Both ends and the wire between them; `lost` says which datagrams, counted from 0, do not arrive.
struct Wire {
  explicit Wire(std::uint8_t key = 60) : joining(countingKey(key)) {
    REQUIRE(crypto::initializeAead());
  }

  Token token() const {
    Token result;
    result.suite = server.suite;
    result.server = server.identity.publicKey();
    result.secret = server.secret;
    return result;
  }
  void begin() {
    joiner.emplace(token(), joining, clock, random, nas);
    REQUIRE(joiner->start());
  }
  /// Until nothing is under way.
  void settle() {
    while (!nas.out.empty() || !server.out.empty()) {
      if (!nas.out.empty()) {
        const Datagram datagram = nas.out.front();
        nas.out.pop_front();
        if (!lost(up++)) server.receive(datagram);
      }
      if (!server.out.empty()) {
        const Datagram datagram = server.out.front();
        server.out.pop_front();
        if (!lost(100 + down++)) REQUIRE(joiner->receive(datagram));
      }
    }
  }
  /// Runs until there is an answer or `limit` is over; the time that it took.
  std::chrono::nanoseconds run(std::chrono::nanoseconds limit = 60s) {
    const BootTime start = clock.now();
    settle();
    while (!joiner->answer() && clock.now() - start < limit) {
      clock.advance(std::max(joiner->nextDeadline() - clock.now(), std::chrono::nanoseconds(1)));
      REQUIRE(joiner->runTimers());
      settle();
    }
    return clock.now() - start;
  }

  FakeClock clock;
  SeededRandom random{1};
  Server server{clock, random};
  Nas nas;
  crypto::PrivateKey joining;
  std::optional<Joiner> joiner;
  std::function<bool(unsigned)> lost = [](unsigned) { return false; };
  unsigned up = 0;
  unsigned down = 0;
};

}  // namespace

TEST_CASE("joiner: one handshake, one request, one answer") {
  Wire wire;
  wire.begin();
  CHECK(wire.run() == 0s);
  REQUIRE(wire.joiner->answer());
  CHECK(wire.joiner->answer()->verdict == Verdict::Accepted);
  CHECK(wire.up == 2);
  CHECK(wire.nas.kept == 1);
  CHECK(*wire.server.bound == wire.joining.publicKey());
}

TEST_CASE("joiner: every suite that a server may pin") {
  for (const crypto::Suite suite : crypto::kSuites) {
    Wire wire;
    wire.server.usePins(suite);
    wire.begin();
    wire.run();
    CHECK(wire.joiner->answer());
  }
}

TEST_CASE("joiner: a server that pins another suite since is found") {
  for (const crypto::Suite before : crypto::kSuites) {
    for (const crypto::Suite since : crypto::kSuites) {
      Wire wire;
      Token token = wire.token();
      token.suite = before;
      wire.server.usePins(since);
      wire.joiner.emplace(token, wire.joining, wire.clock, wire.random, wire.nas);
      REQUIRE(wire.joiner->start());
      CHECK(wire.run() < 30s);
      CHECK(wire.joiner->answer());
    }
  }
}

TEST_CASE("joiner: any lost datagram is made up for") {
  for (unsigned first = 0; first < 3; ++first) {
    for (const unsigned side : {0U, 100U}) {
      for (unsigned many = 1; many < 6; ++many) {
        Wire wire;
        wire.lost = [=](unsigned number) {
          return number >= side + first && number < side + first + many;
        };
        wire.begin();
        INFO("from " << side + first << ", " << many);
        CHECK(wire.run() < 30s);
        CHECK(wire.joiner->answer());
      }
    }
  }
}

TEST_CASE("joiner: duplicates change nothing") {
  Wire wire;
  // The data plane takes the second copy of a data packet as a replay; here the handshake's count.
  wire.begin();
  wire.settle();
  REQUIRE(wire.joiner->answer());
  Wire twice;
  twice.begin();
  const Datagram initiation = twice.nas.out.front();
  twice.server.receive(initiation);
  twice.server.receive(initiation);
  twice.nas.out.clear();
  CHECK(twice.server.out.size() == 1);
  const Datagram response = twice.server.out.front();
  CHECK(*twice.joiner->receive(response));
  CHECK_FALSE(*twice.joiner->receive(response));
  twice.server.out.clear();
  twice.settle();
  CHECK(twice.joiner->answer());
}

TEST_CASE("joiner: a response that comes too late is ignored, and the next one taken") {
  Wire wire;
  wire.begin();
  wire.server.receive(wire.nas.out.front());
  wire.nas.out.clear();
  const Datagram late = wire.server.out.front();
  wire.server.out.clear();
  wire.clock.advance(1s);
  REQUIRE(wire.joiner->runTimers());
  CHECK_FALSE(*wire.joiner->receive(late));
  wire.settle();
  CHECK(wire.joiner->answer());
}

TEST_CASE("joiner: a server that restarts before its answer is asked in a new session") {
  Wire wire;
  wire.server.silent = true;
  wire.begin();
  wire.settle();
  CHECK(wire.server.requests == 1);
  CHECK_FALSE(wire.joiner->answer());
  wire.server.silent = false;
  wire.server.restart();
  CHECK(wire.run() <= 10s);
  REQUIRE(wire.joiner->answer());
  CHECK(wire.joiner->answer()->verdict == Verdict::Accepted);
  CHECK(wire.nas.kept >= 2);
}

TEST_CASE("joiner: another machine with the same token is told so; the first one may ask again") {
  Wire wire;
  wire.begin();
  wire.run();
  const crypto::PrivateKey first = wire.joining;
  wire.joining = countingKey(61);
  wire.clock.advance(1s);
  wire.begin();
  wire.run();
  CHECK(wire.joiner->answer()->verdict == Verdict::Taken);
  wire.joining = first;
  wire.clock.advance(1s);
  wire.begin();
  wire.run();
  CHECK(wire.joiner->answer()->verdict == Verdict::Accepted);
}

TEST_CASE("joiner: under load the server's cookie is used") {
  Wire wire;
  wire.server.underLoad();
  wire.begin();
  CHECK(wire.run() <= 2s);
  CHECK(wire.joiner->answer());
}

TEST_CASE("joiner: a dead server is called for ever, at intervals, and no key is kept") {
  Wire wire;
  wire.lost = [](unsigned) { return true; };
  wire.begin();
  wire.run(60s);
  CHECK_FALSE(wire.joiner->hasSession());
  CHECK(wire.nas.kept == 0);
  CHECK(wire.up > 10);
  CHECK(wire.up < 25);
}

TEST_CASE("joiner: nothing is asked before the key is kept") {
  Wire wire;
  wire.nas.diskFull = true;
  wire.begin();
  wire.server.receive(wire.nas.out.front());
  wire.nas.out.clear();
  CHECK_FALSE(wire.joiner->receive(wire.server.out.front()));
  CHECK(wire.nas.out.empty());
}

TEST_CASE("joiner: another token's keys lead nowhere") {
  Wire wire;
  Token token = wire.token();
  token.secret.bytes()[7] ^= 1;
  wire.joiner.emplace(token, wire.joining, wire.clock, wire.random, wire.nas);
  REQUIRE(wire.joiner->start());
  wire.run(20s);
  CHECK_FALSE(wire.joiner->hasSession());
  CHECK_FALSE(wire.server.bound);
}

TEST_CASE("joiner: forged and truncated datagrams do nothing") {
  Wire wire;
  wire.begin();
  wire.server.receive(wire.nas.out.front());
  wire.nas.out.clear();
  const Datagram response = wire.server.out.front();
  for (std::size_t length = 0; length < response.size(); ++length) {
    CHECK_FALSE(*wire.joiner->receive(std::span(response).first(length)));
  }
  for (std::size_t i = 0; i < response.size() - ADIT_MAC_LENGTH; ++i) {
    Datagram changed = response;
    changed[i] ^= 0x40;
    CHECK_FALSE(*wire.joiner->receive(changed));
  }
  CHECK(*wire.joiner->receive(response));
  wire.server.receive(wire.nas.out.front());
  wire.server.out.pop_front();
  const Datagram answer = wire.server.out.front();
  for (std::size_t length = 0; length < answer.size(); ++length) {
    CHECK_FALSE(*wire.joiner->receive(std::span(answer).first(length)));
  }
  for (std::size_t i = 0; i < answer.size(); ++i) {
    Datagram changed = answer;
    changed[i] ^= 1;
    CHECK_FALSE(*wire.joiner->receive(changed));
  }
  CHECK_FALSE(wire.joiner->answer());
  CHECK(*wire.joiner->receive(answer));
  CHECK(wire.joiner->answer());
}

TEST_CASE("joiner: a token whose server key is a low-order point is refused") {
  Wire wire;
  Token token = wire.token();
  for (const std::string_view point : noise::test::kLowOrderPoints) {
    token.server = noise::test::publicKeyFromHex(point);
    wire.joiner.emplace(token, wire.joining, wire.clock, wire.random, wire.nas);
    CHECK_FALSE(wire.joiner->start());
  }
}

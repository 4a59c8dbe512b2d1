// libFuzzer: whatever comes from the network or out of a tunnel may not crash, hang, or install a
// key that was not agreed on.
//
// Input: one byte of options, then the bytes of a datagram or control message. A datagram made of
// noise alone never passes mac1, so the options can put a right mac1 on it, and can lay the bytes
// over a genuine message (exclusive or) instead of taking them as they are.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "noise/cookie.hpp"
#include "noise/sessions.hpp"

namespace {

using namespace adit;
using namespace adit::noise;

enum Option : std::uint8_t {
  kControl = 1,
  kGenuineInitiation = 2,
  kGenuineResponse = 4,
  kFixMac1 = 8,
  kUnderLoad = 16,
};

constexpr PeerId kPeer = 1;

class FixedClock final : public Clock {
 public:
  [[nodiscard]] BootTime now() const override { return std::chrono::seconds(1000); }
  [[nodiscard]] std::chrono::nanoseconds realTime() const override {
    return std::chrono::seconds(1935360000);
  }
};

class CountingRandom final : public crypto::RandomSource {
 public:
  explicit CountingRandom(std::uint8_t first) : next_(first) {}
  void fill(std::span<std::uint8_t> out) override {
    std::ranges::generate(out, [this] { return next_++; });
  }

 private:
  std::uint8_t next_;
};

class NoStore final : public TimestampStore {
 public:
  Result<void> save(const Tai64n&) override { return {}; }
};

crypto::PrivateKey keyOf(std::uint8_t fill) {
  std::array<std::uint8_t, 32> bytes{};
  bytes.fill(fill);
  return crypto::PrivateKey(bytes);
}

class End final : public SessionActions {
 public:
  End(std::uint8_t ours, std::uint8_t theirs)
      : key(keyOf(ours)),
        random_(ours),
        timestamps_(clock_, store_, std::nullopt),
        sessions(clock_, random_, timestamps_, *this) {
    sessions.setIdentity(key);
    PeerPolicy policy;
    policy.id = kPeer;
    policy.publicKey = keyOf(theirs).publicKey();
    if (!sessions.setPeer(policy)) std::abort();
  }

  Result<void> installKeys(PeerId, const crypto::PublicKey&, const SessionKeys&) override {
    ++installs;
    return {};
  }
  Result<void> sendInitiation(PeerId, std::span<const std::uint8_t> datagram) override {
    initiation.assign(datagram.begin(), datagram.end());
    return {};
  }
  void sendReply(std::span<const std::uint8_t> datagram, const Endpoint&,
                 const LocalAddress&) override {
    reply.assign(datagram.begin(), datagram.end());
  }
  void sendControl(PeerId, std::span<const std::uint8_t>) override {}
  void dropStaged(PeerId) override {}
  void dropKeys(PeerId) override {}
  void peerTimestampAccepted(PeerId, const Tai64n&) override {}
  void suiteChosen(PeerId, crypto::Suite) override {}
  void handshakeCompleted(PeerId, Role, crypto::Suite) override {}
  void handshakeGivenUp(PeerId) override {}
  void initiationFailed(PeerId, const Error&) override {}

  const crypto::PrivateKey key;
  unsigned installs = 0;
  std::vector<std::uint8_t> initiation;
  std::vector<std::uint8_t> reply;

 private:
  FixedClock clock_;
  CountingRandom random_;
  NoStore store_;
  TimestampSource timestamps_;

 public:
  Sessions sessions;
};

/// `bytes` laid over `genuine`; what is longer is kept.
std::vector<std::uint8_t> overlay(std::vector<std::uint8_t> genuine,
                                  std::span<const std::uint8_t> bytes) {
  genuine.resize(std::max(genuine.size(), bytes.size()));
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    genuine[i] ^= bytes[i];
  }
  return genuine;
}

void deliver(End& to, std::span<const std::uint8_t> datagram, bool underLoad) {
  const Endpoint source{*IpAddress::parse("192.0.2.1"), 1001, 0};
  to.sessions.handshake(datagram, source, {}, underLoad ? 1000 : 0);
}

/// What the other end sends: the same at every run, since its randomness is.
struct Genuine {
  Genuine() {
    End us(1, 2);
    End them(2, 1);
    us.sessions.startHandshake(kPeer);
    deliver(them, us.initiation, false);
    response = them.reply;
    them.sessions.startHandshake(kPeer);
    initiation = them.initiation;
  }
  std::vector<std::uint8_t> initiation;
  std::vector<std::uint8_t> response;
};

/// Whether everything that the handshake authenticates is as it was made; the macs and the
/// sender's own index are not.
bool authentic(std::span<const std::uint8_t> datagram, std::span<const std::uint8_t> genuine) {
  if (datagram.size() != genuine.size()) return false;
  const bool initiation = genuine[0] == ADIT_MESSAGE_INITIATION;
  const std::size_t from = initiation ? 8 : 8 + 4;
  const std::size_t end = genuine.size() - sizeof(adit_message_macs);
  return std::ranges::equal(datagram.first(4), genuine.first(4)) &&
         std::ranges::equal(datagram.subspan(from, end - from), genuine.subspan(from, end - from));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Genuine genuine;
  if (size == 0) return 0;
  const std::uint8_t options = data[0];
  const std::span<const std::uint8_t> bytes(data + 1, size - 1);
  if ((options & kControl) != 0) {
    (void)decodeControl(bytes);
    return 0;
  }

  End us(1, 2);
  us.sessions.startHandshake(kPeer);
  std::vector<std::uint8_t> made;
  if ((options & kGenuineResponse) != 0) {
    made = genuine.response;
  } else if ((options & kGenuineInitiation) != 0) {
    made = genuine.initiation;
  }
  std::vector<std::uint8_t> datagram = overlay(made, bytes);
  if ((options & kFixMac1) != 0 && datagram.size() > sizeof(adit_message_macs)) {
    CookieMaker(us.key.publicKey(), {}).addMacs(datagram, {});
  }
  deliver(us, datagram, (options & kUnderLoad) != 0);
  if (us.installs != 0 && !authentic(datagram, made)) std::abort();
  us.sessions.runTimers();
  return 0;
}

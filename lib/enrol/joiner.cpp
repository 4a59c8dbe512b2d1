#include "enrol/joiner.hpp"

#include <endian.h>

#include <algorithm>
#include <cstring>

#include "noise/negotiation.hpp"
#include "wire/control.h"
#include "wire/messages.h"

namespace adit::enrol {
namespace {

constexpr std::size_t kHeaderLength = sizeof(adit_message_data);
static_assert(kHeaderLength + ADIT_TAG_LENGTH == ADIT_DATA_OVERHEAD);

template <typename T>
std::span<std::uint8_t> bytesOf(T& object) {
  return {reinterpret_cast<std::uint8_t*>(&object), sizeof object};
}

std::optional<noise::Remote> remoteOf(const Token& token, const EnrolmentKeys& keys) {
  const auto shared = crypto::x25519(keys.privateKey.secret(), token.server);
  if (!shared) return std::nullopt;
  return noise::Remote{token.server, *shared, keys.presharedKey};
}

}  // namespace

Joiner::Joiner(const Token& token, const crypto::PrivateKey& joining, const Clock& clock,
               crypto::RandomSource& random, JoinActions& actions)
    : clock_(clock),
      random_(random),
      actions_(actions),
      preferred_(token.suite),
      joining_(joining.publicKey()),
      identity_(enrolmentKeys(token.secret, token.server).privateKey),
      remote_(remoteOf(token, enrolmentKeys(token.secret, token.server))),
      keys_(joinKeys(joining, token.server, {identity_.publicKey, token.server, joining_})),
      checker_(identity_.publicKey, random, {}),
      cookies_(token.server, {}),
      timestamps_(clock, store_, std::nullopt) {}

Joiner::~Joiner() = default;

Result<void> Joiner::start() {
  if (!remote_ || !keys_) return fail("the token's server has a public key that nobody can have");
  return call();
}

Result<void> Joiner::runTimers() {
  if (clock_.now() < next_) return {};
  if (!session_) return call();
  if (requests_ < kRequests) return ask();
  session_.reset();
  callInterval_ = kFirstCall;
  calls_ = 0;
  return call();
}

/// Begins a handshake; a response to an earlier one does not count any more.
Result<void> Joiner::call() {
  const BootTime now = clock_.now();
  const auto timestamp = timestamps_.next();
  if (!timestamp) return tl::unexpected(timestamp.error());
  std::uint32_t index = 0;
  random_.fill(bytesOf(index));
  // The server may pin another suite than when it made the token.
  const crypto::Suite suite = noise::initiationSuite(noise::SuiteSet::all(), preferred_, calls_++);
  adit_message_initiation message;
  handshake_ =
      noise::createInitiation(identity_, *remote_, suite, index, *timestamp, random_, message);
  if (!handshake_) return fail("no handshake is possible with the token's server");
  cookies_.addMacs(bytesOf(message), now);
  next_ = now + callInterval_;
  callInterval_ = std::min(2 * callInterval_, kLongestCall);
  actions_.send(bytesOf(message));
  return {};
}

Result<void> Joiner::ask() {
  if (auto kept = actions_.keepKey(); !kept) return kept;
  Message text = encodeRequest(joining_, *keys_);
  text.resize((text.size() + ADIT_PADDING_MULTIPLE - 1) / ADIT_PADDING_MULTIPLE *
              ADIT_PADDING_MULTIPLE);
  adit_message_data header{};
  header.header.type = ADIT_MESSAGE_DATA;
  header.header.suite = static_cast<std::uint8_t>(session_->suite);
  header.receiver_index = htole32(session_->remoteIndex);
  header.counter = htole64(session_->counter);
  std::vector<std::uint8_t> datagram(ADIT_DATA_OVERHEAD + text.size());
  std::ranges::copy(bytesOf(header), datagram.begin());
  crypto::AeadJob job{text.data(), datagram.data() + kHeaderLength,
                      static_cast<std::uint32_t>(text.size()), session_->counter++};
  worker_.seal(*session_->send, std::span(&job, 1));
  ++requests_;
  next_ = clock_.now() + kAskAgain;
  actions_.send(datagram);
  return {};
}

Result<bool> Joiner::receive(std::span<const std::uint8_t> datagram) {
  adit_message_header header;
  if (datagram.size() < sizeof header) return false;
  std::memcpy(&header, datagram.data(), sizeof header);
  if (header.reserved[0] != 0 || header.reserved[1] != 0) return false;
  switch (header.type) {
    case ADIT_MESSAGE_RESPONSE:
      return receiveResponse(datagram);
    case ADIT_MESSAGE_COOKIE: {
      adit_message_cookie reply;
      if (datagram.size() != sizeof reply || !handshake_) return false;
      std::memcpy(&reply, datagram.data(), sizeof reply);
      // The next initiation, which follows by the timer, carries the cookie.
      return le32toh(reply.receiver_index) == handshake_->localIndex &&
             cookies_.consume(reply, clock_.now());
    }
    case ADIT_MESSAGE_DATA:
      return receiveData(datagram);
    default:
      return false;
  }
}

Result<bool> Joiner::receiveResponse(std::span<const std::uint8_t> datagram) {
  adit_message_response message;
  if (datagram.size() != sizeof message || !handshake_) return false;
  std::memcpy(&message, datagram.data(), sizeof message);
  if (message.header.suite != static_cast<std::uint8_t>(handshake_->suite) ||
      le32toh(message.receiver_index) != handshake_->localIndex) {
    return false;
  }
  // The sender's index is protected by mac1 alone.
  if (!checker_.mac1Valid(datagram)) return false;
  const auto keys = noise::consumeResponse(*handshake_, identity_, *remote_, message);
  if (!keys) return false;
  session_.emplace();
  session_->suite = handshake_->suite;
  session_->localIndex = handshake_->localIndex;
  session_->remoteIndex = le32toh(message.sender_index);
  session_->send = crypto::makeAeadKey(session_->suite, keys->send);
  session_->receive = crypto::makeAeadKey(session_->suite, keys->receive);
  handshake_.reset();
  requests_ = 0;
  return ask().map([] { return true; });
}

/// A second copy of an answer says the same as the first, so nothing guards against replays.
bool Joiner::receiveData(std::span<const std::uint8_t> datagram) {
  adit_message_data header;
  if (!session_ || datagram.size() < ADIT_DATA_OVERHEAD ||
      datagram.size() > ADIT_DATA_OVERHEAD + ADIT_CONTROL_MAX_LENGTH + ADIT_PADDING_MULTIPLE) {
    return false;
  }
  std::memcpy(&header, datagram.data(), sizeof header);
  if (header.header.suite != static_cast<std::uint8_t>(session_->suite) ||
      le32toh(header.receiver_index) != session_->localIndex) {
    return false;
  }
  std::vector<std::uint8_t> text(datagram.size() - kHeaderLength);
  crypto::AeadJob job{datagram.data() + kHeaderLength, text.data(),
                      static_cast<std::uint32_t>(datagram.size() - ADIT_DATA_OVERHEAD),
                      le64toh(header.counter)};
  worker_.open(*session_->receive, std::span(&job, 1));
  if (!job.ok) return false;
  const auto content = std::span<const std::uint8_t>(text).first(job.length);
  if (auto answer = decodeAnswer(content, *keys_)) answer_ = std::move(*answer);
  return true;
}

}  // namespace adit::enrol

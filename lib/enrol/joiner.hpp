// The joining side: handshake with the enrolment keys, one request, one answer.
//
// Pure: the clock, randomness, sending and keeping are injected. It needs no interface and no data
// plane, since the only packets of its session are control messages.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "crypto/aead.hpp"
#include "enrol/keys.hpp"
#include "enrol/messages.hpp"
#include "enrol/token.hpp"
#include "noise/cookie.hpp"
#include "noise/handshake.hpp"
#include "noise/timestamp.hpp"
#include "util/clock.hpp"

namespace adit::enrol {

class JoinActions {
 public:
  virtual ~JoinActions() = default;
  /// A datagram for the server.
  virtual void send(std::span<const std::uint8_t> datagram) = 0;
  /// From here on the server may know our key: whoever tries again must have it. Called before
  /// each request; a failure keeps the request back and ends the joining.
  virtual Result<void> keepKey() = 0;
};

class Joiner {
 public:
  /// Between two initiations: after the first one, twice as long each time, and at most.
  static constexpr std::chrono::nanoseconds kFirstCall = std::chrono::seconds(1);
  static constexpr std::chrono::nanoseconds kLongestCall = std::chrono::seconds(3);
  /// Between two requests in one session, and how many before a new one: the server may have
  /// restarted.
  static constexpr std::chrono::nanoseconds kAskAgain = std::chrono::seconds(1);
  static constexpr unsigned kRequests = 4;

  /// All references must outlive the object; crypto::initializeAead() must have been called.
  Joiner(const Token& token, const crypto::PrivateKey& joining, const Clock& clock,
         crypto::RandomSource& random, JoinActions& actions);
  ~Joiner();
  Joiner(const Joiner&) = delete;
  Joiner& operator=(const Joiner&) = delete;

  /// Sends the first initiation.
  Result<void> start();
  /// What came from the network. True when the server has sent it, by its keys.
  Result<bool> receive(std::span<const std::uint8_t> datagram);
  /// When runTimers() has something to do.
  [[nodiscard]] BootTime nextDeadline() const { return next_; }
  Result<void> runTimers();

  /// A session is up: the server is there and has the token's invitation.
  [[nodiscard]] bool hasSession() const { return session_.has_value(); }
  /// The last one; with Verdict::NotNow the joining goes on.
  [[nodiscard]] const std::optional<Answer>& answer() const { return answer_; }

 private:
  struct Session {
    crypto::Suite suite{};
    std::uint32_t localIndex = 0;
    std::uint32_t remoteIndex = 0;
    std::uint64_t counter = 0;
    std::unique_ptr<crypto::AeadKey> send;
    std::unique_ptr<crypto::AeadKey> receive;
  };
  /// A joining machine starts once, so a mark over restarts has no use.
  class NoStore final : public noise::TimestampStore {
    Result<void> save(const noise::Tai64n&) override { return {}; }
  };

  Result<void> call();
  Result<void> ask();
  Result<bool> receiveResponse(std::span<const std::uint8_t> datagram);
  bool receiveData(std::span<const std::uint8_t> datagram);

  const Clock& clock_;
  crypto::RandomSource& random_;
  JoinActions& actions_;
  const crypto::Suite preferred_;
  const crypto::PublicKey joining_;
  noise::Identity identity_;
  /// Nothing for a server's key with which no handshake is possible.
  std::optional<noise::Remote> remote_;
  std::optional<JoinKeys> keys_;
  noise::CookieChecker checker_;
  noise::CookieMaker cookies_;
  NoStore store_;
  noise::TimestampSource timestamps_;
  crypto::AeadWorker worker_;

  std::optional<noise::InitiatorHandshake> handshake_;
  std::optional<Session> session_;
  std::optional<Answer> answer_;
  std::chrono::nanoseconds callInterval_ = kFirstCall;
  /// Without an answer, since the last session.
  unsigned calls_ = 0;
  unsigned requests_ = 0;
  BootTime next_{};
};

}  // namespace adit::enrol

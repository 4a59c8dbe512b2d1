#include "cli/join_network.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <optional>
#include <vector>

#include "config/values.hpp"
#include "crypto/random.hpp"
#include "enrol/joiner.hpp"
#include "util/clock.hpp"
#include "util/unique_fd.hpp"

namespace adit::cli {
namespace {

using enrol::Verdict;
using namespace std::chrono_literals;

constexpr auto kProgress = 5s;
/// Longer than any message of an enrolment.
constexpr std::size_t kMaxDatagram = 2048;

/// One address of the server.
struct Candidate {
  Endpoint address;
  /// The endpoint of the token that it comes from.
  std::string text;
};

Result<std::vector<Endpoint>> lookUp(const config::EndpointName& name) {
  if (name.literal) return std::vector{Endpoint{*name.literal, name.port, 0}};
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  hints.ai_flags = AI_ADDRCONFIG;
  addrinfo* found = nullptr;
  const int code = ::getaddrinfo(name.host.c_str(), nullptr, &hints, &found);
  if (code != 0) return fail("{}: {}", name.host, ::gai_strerror(code));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, ::freeaddrinfo);
  std::vector<Endpoint> all;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    Endpoint endpoint = Endpoint::fromSockaddr(each->ai_addr);
    endpoint.port = name.port;
    all.push_back(endpoint);
  }
  return all;
}

Result<std::vector<Candidate>> candidatesOf(const enrol::Token& token) {
  std::vector<Candidate> all;
  std::string trouble = "the token names no server";
  for (const std::string& text : token.endpoints) {
    const auto name = config::parseEndpoint(text);
    const auto addresses =
        name ? lookUp(*name) : Result<std::vector<Endpoint>>(fail("{}", name.error().message));
    if (!addresses) {
      trouble = addresses.error().message;
      continue;
    }
    for (const Endpoint& address : *addresses) {
      all.push_back({address, name->toString()});
    }
  }
  if (all.empty()) return fail("the server cannot be found: {}", trouble);
  return all;
}

class Conversation final : private enrol::JoinActions {
 public:
  Conversation(std::vector<Candidate> candidates, JoinKeyFile& keyFile)
      : candidates_(std::move(candidates)), keyFile_(keyFile) {}

  Result<Joined> run(const enrol::Token& token, const JoinAttempt& attempt);

 private:
  void send(std::span<const std::uint8_t> datagram) override;
  Result<void> keepKey() override { return keyFile_.keep(); }

  /// The socket of a family, made when it is first needed; -1 where there is none.
  int socketOf(int family);
  void sendTo(const Candidate& candidate, std::span<const std::uint8_t> datagram);
  Result<void> receive(int socket, enrol::Joiner& joiner);
  Result<void> waitUntil(BootTime time, enrol::Joiner& joiner);
  [[nodiscard]] std::string places() const;
  [[nodiscard]] tl::unexpected<Error> gaveUp(const enrol::Joiner& joiner,
                                             std::chrono::seconds after) const;

  std::vector<Candidate> candidates_;
  JoinKeyFile& keyFile_;
  SystemClock clock_;
  crypto::SystemRandom random_;
  std::array<UniqueFd, 2> sockets_;
  /// Who has answered.
  std::optional<Candidate> server_;
  /// Why nothing could be sent, while that is so.
  std::string sendTrouble_;
};

int Conversation::socketOf(int family) {
  UniqueFd& socket = sockets_[family == AF_INET6 ? 1 : 0];
  if (!socket) {
    socket = UniqueFd(::socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const int only = 1;
    if (socket && family == AF_INET6) {
      ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof only);
    }
  }
  return socket.get();
}

void Conversation::sendTo(const Candidate& candidate, std::span<const std::uint8_t> datagram) {
  sockaddr_storage address{};
  const socklen_t length = candidate.address.toSockaddr(address);
  const int socket = socketOf(candidate.address.address.family());
  const bool sent =
      socket >= 0 && ::sendto(socket, datagram.data(), datagram.size(), 0,
                              reinterpret_cast<const sockaddr*>(&address), length) >= 0;
  if (sent) {
    sendTrouble_.clear();
  } else if (sendTrouble_.empty()) {
    sendTrouble_ = fmt::format("{}: {}", candidate.address.toString(), std::strerror(errno));
  }
}

void Conversation::send(std::span<const std::uint8_t> datagram) {
  if (server_) return sendTo(*server_, datagram);
  bool sent = false;
  for (const Candidate& candidate : candidates_) {
    sendTo(candidate, datagram);
    sent = sent || sendTrouble_.empty();
  }
  // A family that does not work here is no trouble where another one does.
  if (sent) sendTrouble_.clear();
}

Result<void> Conversation::receive(int socket, enrol::Joiner& joiner) {
  std::array<std::uint8_t, kMaxDatagram> buffer;  // NOLINT: filled by recvfrom(2)
  sockaddr_storage from{};
  socklen_t length = sizeof from;
  const ssize_t size = ::recvfrom(socket, buffer.data(), buffer.size(), 0,
                                  reinterpret_cast<sockaddr*>(&from), &length);
  if (size < 0) return {};
  const Endpoint source = Endpoint::fromSockaddr(reinterpret_cast<const sockaddr*>(&from));
  const auto found = std::ranges::find(candidates_, source, &Candidate::address);
  if (found == candidates_.end()) return {};
  // Before its keys have proven it, an answer changes nothing but who gets the next datagram.
  const auto before = server_;
  server_ = *found;
  const auto authentic = joiner.receive(std::span(buffer).first(static_cast<std::size_t>(size)));
  if (!authentic) return tl::unexpected(authentic.error());
  if (!*authentic) server_ = before;
  return {};
}

Result<void> Conversation::waitUntil(BootTime time, enrol::Joiner& joiner) {
  std::vector<pollfd> waiting;
  for (const UniqueFd& socket : sockets_) {
    if (socket) waiting.push_back({socket.get(), POLLIN, 0});
  }
  const auto wait = std::chrono::ceil<std::chrono::milliseconds>(time - clock_.now());
  const int timeout = static_cast<int>(std::max<std::int64_t>(wait.count(), 0));
  if (::poll(waiting.data(), waiting.size(), timeout) <= 0) return {};
  for (const pollfd& each : waiting) {
    if (each.revents == 0) continue;
    if (auto received = receive(each.fd, joiner); !received) return received;
  }
  return {};
}

std::string Conversation::places() const {
  std::vector<std::string> texts;
  for (const Candidate& candidate : candidates_) {
    texts.push_back(candidate.address.toString());
  }
  return fmt::format("{}", fmt::join(texts, " and "));
}

tl::unexpected<Error> Conversation::gaveUp(const enrol::Joiner& joiner,
                                           std::chrono::seconds after) const {
  if (joiner.answer()) {
    return fail(
        "the server cannot let this machine in at the moment (its log says why). Try again with "
        "the same command: the key of this try is kept in {}",
        keyFile_.path().string());
  }
  if (keyFile_.isKept()) {
    return fail(
        "the server at {} does not answer any more. Try again with the same command: the key of "
        "this try is kept in {}",
        places(), keyFile_.path().string());
  }
  if (!sendTrouble_.empty()) return fail("nothing can be sent to the server: {}", sendTrouble_);
  return fail(
      "no answer from {} in {} s, and nothing was written. On the server: is it up (`adit "
      "status`), is its UDP port open in the provider's firewall, is the invitation still open "
      "(`adit invite --list`)?",
      places(), after.count());
}

Result<Joined> Conversation::run(const enrol::Token& token, const JoinAttempt& attempt) {
  enrol::Joiner joiner(token, keyFile_.key(), clock_, random_, *this);
  const BootTime begin = clock_.now();
  const BootTime end = begin + attempt.patience;
  BootTime nextWord = begin + kProgress;
  attempt.progress(fmt::format("asking the server at {} …", places()));
  auto step = joiner.start();
  while (step) {
    if (joiner.answer() && joiner.answer()->verdict != Verdict::NotNow) {
      return Joined{*joiner.answer(), server_->text};
    }
    const BootTime now = clock_.now();
    if (now >= end) return gaveUp(joiner, attempt.patience);
    if (now >= nextWord) {
      attempt.progress(fmt::format(
          "{} after {} s …",
          joiner.hasSession() ? "the server is there; waiting for its word" : "no answer",
          std::chrono::duration_cast<std::chrono::seconds>(now - begin).count()));
      nextWord += kProgress;
    }
    step = waitUntil(std::min({joiner.nextDeadline(), nextWord, end}), joiner);
    if (step) step = joiner.runTimers();
  }
  return tl::unexpected(step.error());
}

}  // namespace

Result<Joined> askToJoin(const enrol::Token& token, JoinKeyFile& keyFile,
                         const JoinAttempt& attempt) {
  if (auto ready = crypto::initializeAead(); !ready) return tl::unexpected(ready.error());
  auto candidates = candidatesOf(token);
  if (!candidates) return tl::unexpected(candidates.error());
  return Conversation(std::move(*candidates), keyFile).run(token, attempt);
}

}  // namespace adit::cli

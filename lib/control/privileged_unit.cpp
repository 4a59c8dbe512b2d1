#include "control/privileged_unit.hpp"

#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <exception>
#include <optional>
#include <thread>

#include "control/paths.hpp"
#include "control/privileged_channel.hpp"
#include "control/privileged_confine.hpp"
#include "control/privileged_protocol.hpp"

namespace adit::control {
namespace {

using std::chrono::steady_clock;

constexpr auto kWorkerPatience = std::chrono::seconds(30);

Result<sockaddr_un> helperAddress(std::string_view interface) {
  const std::string path = helperSocket(interface);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return fail("{}: the path is longer than a socket's may be", path);
  }
  std::memcpy(address.sun_path, path.c_str(), path.size());
  return address;
}

uid_t userBehind(const UniqueFd& socket) {
  ucred peer{};
  socklen_t length = sizeof(peer);
  const bool known = ::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0;
  return known ? peer.uid : static_cast<uid_t>(-1);
}

/// What the worker needs beside the sockets.
struct Handover {
  DaemonSockets sockets;
  std::optional<std::uint16_t> listenPort;
};

/// One answer for each socket, the last with the rest.
Result<void> give(int channel, const Handover& handover) {
  const DaemonSockets& sockets = handover.sockets;
  Encoder rest;
  rest.value(sockets.metricsHosts == metrics::Hosts::Any);
  rest.value(sockets.metricsTrouble);
  rest.value(handover.listenPort.has_value());
  rest.value(handover.listenPort.value_or(0));
  const Bytes nothing(1);
  if (auto sent = sendAnswer(channel, nothing, sockets.control.get()); !sent) return sent;
  if (auto sent = sendAnswer(channel, nothing, sockets.wireguard.get()); !sent) return sent;
  return sendAnswer(channel, rest.take(), sockets.metrics.get());
}

Result<Handover> take(int channel) {
  Handover handover;
  DaemonSockets& sockets = handover.sockets;
  Bytes bytes;
  for (UniqueFd* socket : {&sockets.control, &sockets.wireguard, &sockets.metrics}) {
    auto answer = receiveAnswer(channel);
    if (!answer) return tl::unexpected(answer.error());
    *socket = std::move(answer->descriptor);
    bytes = std::move(answer->bytes);
  }
  Decoder rest(bytes);
  sockets.metricsHosts = rest.scalar<bool>() ? metrics::Hosts::Any : metrics::Hosts::Loopback;
  sockets.metricsTrouble = rest.text();
  const bool hasPort = rest.scalar<bool>();
  const auto port = rest.scalar<std::uint16_t>();
  if (hasPort) handover.listenPort = port;
  if (!rest.finished() || !sockets.control) return fail("the helper is of another version");
  return handover;
}

Result<UniqueFd> listenForWorker(std::string_view interface, const WorkerIdentity& identity) {
  const auto address = helperAddress(interface);
  if (!address) return tl::unexpected(address.error());
  // Whose lock on the interface this process holds alone.
  ::unlink(address->sun_path);
  UniqueFd listener(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const mode_t before = ::umask(0177);
  const int bound =
      ::bind(listener.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof(*address));
  const int code = errno;
  ::umask(before);
  if (bound != 0) return failErrno(code, "cannot make the socket {}", address->sun_path);
  if (::chown(address->sun_path, identity.uid, identity.gid) != 0 ||
      ::listen(listener.get(), 1) != 0) {
    return failErrno(errno, "{}", address->sun_path);
  }
  return listener;
}

/// Nothing when `ending`, a signalfd, has a signal.
Result<std::optional<UniqueFd>> awaitWorker(int listener, int ending, uid_t user) {
  const auto until = steady_clock::now() + kWorkerPatience;
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(until - steady_clock::now()).count();
    if (left <= 0) return fail("no worker asks for this helper: it belongs to adit@NAME");
    std::array waiting{pollfd{listener, POLLIN, 0}, pollfd{ending, POLLIN, 0}};
    if (::poll(waiting.data(), waiting.size(), static_cast<int>(left)) < 0 && errno != EINTR) {
      return failErrno(errno, "poll");
    }
    if ((waiting[1].revents & POLLIN) != 0) return std::nullopt;
    UniqueFd worker(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
    if (!worker) continue;
    if (userBehind(worker) == user) return worker;
    spdlog::warn("refused a connection to the helper's socket");
  }
}

/// Blocks the signals that would cut the clean-up short; a descriptor that says when one is there.
UniqueFd holdSignals() {
  sigset_t held;
  sigemptyset(&held);
  for (const int number : {SIGTERM, SIGINT, SIGHUP})
    sigaddset(&held, number);
  ::sigprocmask(SIG_BLOCK, &held, nullptr);
  return UniqueFd(::signalfd(-1, &held, SFD_CLOEXEC | SFD_NONBLOCK));
}

Result<void> help(const SeparationOptions& options, DaemonSockets sockets, int ending,
                  const std::function<void()>& listening) {
  const WorkerIdentity identity = workerIdentity();
  if (auto made = makeOwnDirectories(options.interface, identity.uid, identity.gid); !made) {
    return made;
  }
  forbidDumps();
  DirectPrivileged direct(options.interface, options.configFile, options.system);
  config::Outcome outcome = direct.loadConfig();
  auto listener = listenForWorker(options.interface, identity);
  if (!listener) return tl::unexpected(listener.error());
  listening();
  auto worker = awaitWorker(listener->get(), ending, identity.uid);
  listener->reset();
  std::error_code ignored;
  std::filesystem::remove(helperSocket(options.interface), ignored);
  if (!worker) return tl::unexpected(worker.error());
  if (!*worker) return {};
  const int channel = (*worker)->get();
  if (auto bounded = boundSending(channel); !bounded) return bounded;
  const auto port = outcome.config ? outcome.config->interface.listenPort : std::nullopt;
  // The helper keeps no copy: with the worker the sockets are to be gone.
  if (auto given = give(channel, Handover{std::move(sockets), port}); !given) return given;
  PrivilegedServer server(direct, std::move(outcome));
  return server.serve(channel);
}

Result<UniqueFd> connectToHelper(const std::string& interface) {
  const auto address = helperAddress(interface);
  if (!address) return tl::unexpected(address.error());
  UniqueFd channel(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (::connect(channel.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof(*address)) !=
      0) {
    return failErrno(errno,
                     "adit-helper@{0} does not listen (`journalctl -u adit-helper@{0}` says "
                     "why)",
                     interface);
  }
  if (userBehind(channel) != 0) return fail("{} is not root's", address->sun_path);
  return channel;
}

/// What PR_SET_PDEATHSIG is for a child.
void endWithHelper(int channel) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  // The thread must not take the signals that the worker's loop waits for.
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread([channel] {
    pollfd gone{channel, 0, 0};
    while (::poll(&gone, 1, -1) < 0 && errno == EINTR) {
    }
    spdlog::critical("the helper is gone");
    ::_exit(1);
  }).detach();
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace

int runHelper(const SeparationOptions& options, DaemonSockets sockets,
              const std::function<void()>& listening) {
  const UniqueFd ending = holdSignals();
  const auto helped = help(options, std::move(sockets), ending.get(), listening);
  if (!helped) spdlog::critical("{}", helped.error().message);
  if (options.cleanup) options.cleanup();
  return helped ? 0 : 1;
}

int runHelped(const std::string& interface, const std::function<void(const std::string&)>& failed,
              const std::function<int(Privileged&, DaemonSockets&)>& worker) {
  const auto refuse = [&](const Error& error) {
    failed(error.message);
    return 1;
  };
  if (auto rights = checkRights(); !rights) return refuse(rights.error());
  auto channel = connectToHelper(interface);
  if (!channel) return refuse(channel.error());
  auto handover = take(channel->get());
  if (!handover) return refuse(handover.error());
  auto ready = confineRights(workerCapabilities(handover->listenPort));
  if (ready) ready = enterOwnDirectories(interface);
  if (!ready) return refuse(ready.error());
  endWithHelper(channel->get());
  RemotePrivileged privileged(std::move(*channel));
  try {
    return worker(privileged, handover->sockets);
  } catch (const std::exception& error) {
    return refuse(Error{error.what(), 0});
  }
}

}  // namespace adit::control

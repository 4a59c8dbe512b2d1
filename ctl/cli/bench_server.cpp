#include "cli/bench_server.hpp"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <optional>

#include "bench/runner.hpp"
#include "cli/bench_peer.hpp"
#include "cli/output.hpp"
#include "control/control_client.hpp"
#include "control/paths.hpp"

namespace adit::cli {
namespace {

using bench::Child;
using bench::Interrupt;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// With --once: nobody has asked for so long after somebody did.
constexpr std::chrono::seconds kIdle{15};

struct ServerArguments {
  std::string name;
  std::string bind;
  std::string endpoint;
  std::uint16_t port = bench::kIperfPort;
  bool once = false;
};

struct Place {
  std::string address;
  /// "tunnel adit0"
  std::string what;
};

Result<control::DeviceView> deviceOf(const std::string& name) {
  std::string interface = name;
  if (name.empty()) {
    const auto running = control::runningInterfaces();
    if (!running) return tl::unexpected(running.error());
    if (running->empty()) return fail("no interface is up; start one with `adit up NAME`");
    if (running->size() > 1) {
      return fail("several interfaces are up, name one: {}", fmt::join(*running, ", "));
    }
    interface = running->front();
  } else {
    const auto named = control::resolveConfigName(name);
    if (!named) return tl::unexpected(named.error());
    interface = named->interface;
  }
  return control::ControlClient::connect(interface).and_then(
      [](control::ControlClient client) { return client.show(false); });
}

/// The address at which peers reach this machine outside the tunnel: that towards one of them.
Result<std::string> ownEndpoint(const control::DeviceSnapshot& device) {
  for (const control::PeerSnapshot& peer : device.peers) {
    if (!peer.endpoint) continue;
    const auto own = sourceTowards(peer.endpoint->address);
    if (own) return own->toString();
  }
  return fail(
      "no peer has an endpoint yet, so the address towards it is not known: name it with "
      "--endpoint ADDRESS");
}

Result<std::vector<Place>> placesOf(const ServerArguments& arguments) {
  std::vector<Place> places;
  std::optional<control::DeviceSnapshot> device;
  if (arguments.bind.empty() || arguments.endpoint == "auto") {
    const auto view = deviceOf(arguments.name);
    if (!view) {
      if (view.error().code != EACCES) return tl::unexpected(view.error());
      return fail(
          "without root the daemon may not be asked for its address: give this machine's "
          "address inside the tunnel with --bind, or run it with sudo");
    }
    device = view->device;
  }
  if (!arguments.bind.empty()) {
    places.push_back({arguments.bind, "--bind"});
  } else {
    for (const InterfaceAddress& own : device->addresses) {
      if (own.address.isLinkLocalV6()) continue;
      places.push_back({own.address.toString(), fmt::format("inside the tunnel {}", device->name)});
    }
    if (places.empty()) return fail("{} has no address", device->name);
  }
  if (arguments.endpoint.empty()) return places;
  const auto outside =
      arguments.endpoint == "auto" ? ownEndpoint(*device) : Result<std::string>(arguments.endpoint);
  if (!outside) return tl::unexpected(outside.error());
  places.push_back({*outside, "outside the tunnel"});
  return places;
}

/// iperf3 -s at one address, and what it says.
class Listener {
 public:
  Listener(Place place, Child child) : place_(std::move(place)), child_(std::move(child)) {}

  [[nodiscard]] const Child& child() const { return child_; }
  [[nodiscard]] const Place& place() const { return place_; }
  [[nodiscard]] const std::string& lastLine() const { return lastLine_; }
  /// Reads what there is; false at the end. Tells of each client.
  bool read() {
    std::array<char, 4096> block{};
    const ssize_t got = ::read(child_.descriptor(), block.data(), block.size());
    if (got <= 0) return got < 0 && errno == EINTR;
    rest_.append(block.data(), static_cast<std::size_t>(got));
    for (auto end = rest_.find('\n'); end != std::string::npos; end = rest_.find('\n')) {
      take(rest_.substr(0, end));
      rest_.erase(0, end + 1);
    }
    return true;
  }
  [[nodiscard]] bool listens() const { return listens_; }
  [[nodiscard]] unsigned served() const { return served_; }

 private:
  void take(const std::string& line) {
    constexpr std::string_view kAccepted = "Accepted connection from ";
    if (line.find("listening on") != std::string::npos) listens_ = true;
    if (line.starts_with(kAccepted)) {
      ++served_;
      const auto from = line.substr(kAccepted.size());
      remark(fmt::format("run {} at {}, for {}", served_, place_.address,
                         from.substr(0, from.find(','))));
    }
    // Its farewell follows what went wrong.
    const bool says =
        line.find_first_not_of("- ") != std::string::npos && line != "iperf3: exiting";
    if (says) lastLine_ = line;
  }

  Place place_;
  Child child_;
  std::string rest_;
  std::string lastLine_;
  bool listens_ = false;
  unsigned served_ = 0;
};

Result<Listener> listenAt(const Place& place, std::uint16_t port) {
  auto child = Child::start({.arguments = {bench::kIperf, "-s", "-p", std::to_string(port), "-B",
                                           place.address, "--forceflush"}},
                            Child::Output::Piped);
  if (!child) return tl::unexpected(child.error());
  return Listener(place, std::move(*child));
}

/// Waits for words of any of them. Their end is a failure, unless we were told to stop.
Result<bool> listen(std::vector<Listener>& listeners, const Interrupt& interrupt,
                    milliseconds patience) {
  std::vector<pollfd> sources{{interrupt.descriptor(), POLLIN, 0}};
  for (const Listener& listener : listeners) {
    sources.push_back({listener.child().descriptor(), POLLIN, 0});
  }
  ::poll(sources.data(), sources.size(), static_cast<int>(patience.count()));
  bool heard = false;
  for (std::size_t i = 0; i < listeners.size() && interrupt.signal() == 0; ++i) {
    if (sources[i + 1].revents == 0) continue;
    heard = true;
    if (!listeners[i].read()) {
      return fail("iperf3 at {} ended: {}", listeners[i].place().address, listeners[i].lastLine());
    }
  }
  return heard;
}

Result<void> waitUntilAllListen(std::vector<Listener>& listeners, const Interrupt& interrupt) {
  constexpr std::chrono::seconds kLimit{10};
  const auto limit = Clock::now() + kLimit;
  for (const Listener& listener : listeners) {
    while (!listener.listens() && interrupt.signal() == 0) {
      if (Clock::now() >= limit) return fail("iperf3 -s does not start to listen");
      const auto heard = listen(listeners, interrupt, milliseconds(200));
      if (!heard) return tl::unexpected(heard.error());
    }
  }
  return {};
}

void introduce(const std::vector<Listener>& listeners, const ServerArguments& arguments) {
  for (const Listener& listener : listeners) {
    remark(fmt::format("iperf3 listens on {} port {}, {}", listener.place().address, arguments.port,
                       listener.place().what));
  }
  if (!arguments.endpoint.empty()) {
    remark(
        "whoever reaches the address outside the tunnel can use it and fill this machine's line");
  }
  remark(fmt::format(
      "on the other machine: adit bench {}{}; Ctrl-C ends this", listeners.front().place().address,
      arguments.port == bench::kIperfPort ? "" : fmt::format(" --port {}", arguments.port)));
}

unsigned servedBy(const std::vector<Listener>& listeners) {
  unsigned all = 0;
  for (const Listener& listener : listeners) {
    all += listener.served();
  }
  return all;
}

int serve(const ServerArguments& arguments) {
  const auto places = placesOf(arguments);
  if (!places) return complain(places.error());
  const Interrupt interrupt;
  if (const auto version = bench::findIperf(interrupt); !version) return complain(version.error());
  std::vector<Listener> listeners;
  for (const Place& place : *places) {
    auto listener = listenAt(place, arguments.port);
    if (!listener) return complain(listener.error());
    listeners.push_back(std::move(*listener));
  }
  if (auto ready = waitUntilAllListen(listeners, interrupt); !ready) return complain(ready.error());
  if (interrupt.signal() == 0) introduce(listeners, arguments);
  auto idleSince = Clock::now();
  while (interrupt.signal() == 0) {
    const auto heard = listen(listeners, interrupt, milliseconds(1000));
    if (!heard) return complain(heard.error());
    if (*heard) idleSince = Clock::now();
    if (arguments.once && servedBy(listeners) > 0 && Clock::now() - idleSince >= kIdle) break;
  }
  remark(fmt::format("stopped after {} runs", servedBy(listeners)));
  return kSuccess;
}

}  // namespace

void addBenchServer(CLI::App* bench, Action& action) {
  const auto arguments = std::make_shared<ServerArguments>();
  CLI::App* sub = bench->add_subcommand(
      "server", "Serve the runs of `adit bench PEER`: iperf3 at the address inside the tunnel");
  sub->add_option("NAME", arguments->name, "an interface that is up; may be left out if it is one");
  sub->add_option("--bind", arguments->bind,
                  "this machine's address inside the tunnel; without it, what the daemon says");
  sub->add_option("--endpoint", arguments->endpoint,
                  "also at this address outside the tunnel, for the bare link; `auto` finds it");
  sub->add_option("--port", arguments->port, "of iperf3")
      ->check(CLI::Range(1, 65535))
      ->capture_default_str();
  sub->add_flag("--once", arguments->once, "end some seconds after the first benchmark");
  sub->footer("Until Ctrl-C.\nExample:\n  adit bench server --endpoint auto");
  sub->callback([&action, arguments] { action = [arguments] { return serve(*arguments); }; });
}

}  // namespace adit::cli

// A bad link: forwards UDP datagrams between clients and one target and, by chance from a seed,
// loses, repeats, delays past others, or corrupts them, and is as far away as asked. Ends on
// SIGTERM or SIGINT and then prints what it did as one line of JSON. On SIGUSR1 it answers for the
// clients from new source ports, as a NAT does that has forgotten its table.
#include <poll.h>
#include <sys/signalfd.h>
#include <csignal>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <span>
#include <vector>

#include "udp_socket.hpp"

namespace adit::peers {
namespace {

using Clock = std::chrono::steady_clock;
using Datagram = std::vector<std::uint8_t>;

constexpr std::size_t kMaxFlows = 64;
constexpr std::size_t kMaxHeld = 256;
constexpr std::size_t kMaxUnderWay = 65536;
constexpr std::size_t kBurst = 64;
constexpr std::chrono::milliseconds kLongestDelay{5};

/// Percentages, 0 to 100.
struct Options {
  std::string listen;
  std::string target;
  double loss = 0;
  double duplicate = 0;
  double reorder = 0;
  double corrupt = 0;
  std::uint64_t delay = 0;
  std::uint64_t seed = 1;
  std::string capture;
  std::size_t captureLimit = 0;
};

struct Counts {
  std::uint64_t received = 0;
  std::uint64_t sent = 0;
  std::uint64_t lost = 0;
  std::uint64_t duplicated = 0;
  std::uint64_t reordered = 0;
  std::uint64_t corrupted = 0;
  std::uint64_t sendFailed = 0;

  [[nodiscard]] nlohmann::json toJson() const {
    return {{"received", received},     {"sent", sent},           {"lost", lost},
            {"duplicated", duplicated}, {"reordered", reordered}, {"corrupted", corrupted},
            {"send_failed", sendFailed}};
  }
};

/// Writes the first datagrams to a file: two bytes of length, little-endian, then the bytes.
class Capture {
 public:
  Capture(const std::string& path, std::size_t limit) : left_(path.empty() ? 0 : limit) {
    if (left_ > 0) {
      file_.open(path, std::ios::binary | std::ios::trunc);
    }
  }
  void add(std::span<const std::uint8_t> datagram) {
    if (left_ == 0) {
      return;
    }
    --left_;
    file_.put(static_cast<char>(datagram.size() & 0xff));
    file_.put(static_cast<char>(datagram.size() >> 8));
    file_.write(reinterpret_cast<const char*>(datagram.data()),
                static_cast<std::streamsize>(datagram.size()));
    file_.flush();
  }

 private:
  std::size_t left_;
  std::ofstream file_;
};

/// One direction's misfortunes. The sink is called for every datagram that goes on.
class Misfortune {
 public:
  Misfortune(const Options& options, std::uint64_t stream)
      : options_(options), random_(options.seed * 2 + stream) {}

  template <typename Send>
  void pass(std::span<std::uint8_t> datagram, Send&& send) {
    ++counts_.received;
    if (happens(options_.loss)) {
      ++counts_.lost;
      return;
    }
    if (!datagram.empty() && happens(options_.corrupt)) {
      ++counts_.corrupted;
      datagram[random_() % datagram.size()] ^= static_cast<std::uint8_t>(1U << (random_() % 8));
    }
    if (held_.size() < kMaxHeld && happens(options_.reorder)) {
      ++counts_.reordered;
      held_.push_back({Datagram(datagram.begin(), datagram.end()), 1 + random_() % 8,
                       Clock::now() + kLongestDelay});
      return;
    }
    emit(datagram, send);
    overtake(send);
  }

  /// Sends what has waited long enough though nothing overtook it.
  template <typename Send>
  void release(Clock::time_point now, Send&& send) {
    while (!held_.empty() && held_.front().deadline <= now) {
      emit(held_.front().datagram, send);
      held_.pop_front();
    }
    while (!underWay_.empty() && underWay_.front().deadline <= now) {
      deliver(underWay_.front().datagram, send);
      underWay_.pop_front();
    }
  }

  [[nodiscard]] bool waiting() const { return !held_.empty() || !underWay_.empty(); }
  [[nodiscard]] const Counts& counts() const { return counts_; }

 private:
  struct Held {
    Datagram datagram;
    std::uint64_t toOvertake;
    Clock::time_point deadline;
  };

  bool happens(double percent) {
    return percent > 0 && std::uniform_real_distribution<>(0, 100)(random_) < percent;
  }

  template <typename Send>
  void emit(std::span<const std::uint8_t> datagram, Send&& send) {
    const int copies = happens(options_.duplicate) ? 2 : 1;
    counts_.duplicated += copies == 2 ? 1 : 0;
    for (int i = 0; i < copies; ++i) {
      if (options_.delay == 0) {
        deliver(datagram, send);
      } else if (underWay_.size() < kMaxUnderWay) {
        underWay_.push_back({Datagram(datagram.begin(), datagram.end()), 0,
                             Clock::now() + std::chrono::milliseconds(options_.delay)});
      } else {
        ++counts_.lost;
      }
    }
  }

  template <typename Send>
  void deliver(std::span<const std::uint8_t> datagram, Send&& send) {
    ++(send(datagram) ? counts_.sent : counts_.sendFailed);
  }

  template <typename Send>
  void overtake(Send&& send) {
    for (auto held = held_.begin(); held != held_.end();) {
      if (--held->toOvertake == 0) {
        emit(held->datagram, send);
        held = held_.erase(held);
      } else {
        ++held;
      }
    }
  }

  const Options& options_;
  std::mt19937_64 random_;
  std::deque<Held> held_;
  /// In the order of their arrival.
  std::deque<Held> underWay_;
  Counts counts_;
};

/// A client and the socket that speaks to the target for it.
struct Flow {
  SocketAddress client;
  UniqueFd upstream;
  Misfortune up;
  Misfortune down;
};

class Relay {
 public:
  explicit Relay(const Options& options)
      : options_(options),
        target_(parseSocketAddress(options.target)),
        listener_(boundUdpSocket(parseSocketAddress(options.listen))),
        capture_(options.capture, options.captureLimit),
        buffer_(65536) {
    sigset_t signals;
    sigemptyset(&signals);
    for (const int number : {SIGTERM, SIGINT, SIGUSR1}) {
      sigaddset(&signals, number);
    }
    sigprocmask(SIG_BLOCK, &signals, nullptr);
    signals_ = UniqueFd(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!signals_) {
      fail("signalfd");
    }
  }

  void run() {
    std::cout << "ready" << std::endl;
    while (step()) {
    }
    Counts up;
    Counts down;
    for (const auto& flow : flows_) {
      add(up, flow->up.counts());
      add(down, flow->down.counts());
    }
    const nlohmann::json result = {{"up", up.toJson()}, {"down", down.toJson()}};
    std::cout << result.dump() << std::endl;
  }

 private:
  static void add(Counts& to, const Counts& from) {
    to.received += from.received;
    to.sent += from.sent;
    to.lost += from.lost;
    to.duplicated += from.duplicated;
    to.reordered += from.reordered;
    to.corrupted += from.corrupted;
    to.sendFailed += from.sendFailed;
  }

  auto sendUp(Flow& flow) {
    return [&flow](std::span<const std::uint8_t> datagram) {
      return ::send(flow.upstream.get(), datagram.data(), datagram.size(), 0) >= 0;
    };
  }

  auto sendDown(Flow& flow) {
    return [this, &flow](std::span<const std::uint8_t> datagram) {
      return ::sendto(listener_.get(), datagram.data(), datagram.size(), 0, flow.client.get(),
                      flow.client.length) >= 0;
    };
  }

  /// Waits for one round of events; false when the end was asked for.
  bool step() {
    std::vector<pollfd> polled{{signals_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    bool waiting = false;
    for (const auto& flow : flows_) {
      polled.push_back({flow->upstream.get(), POLLIN, 0});
      waiting = waiting || flow->up.waiting() || flow->down.waiting();
    }
    if (::poll(polled.data(), polled.size(), waiting ? 1 : -1) < 0) {
      fail("poll");
    }
    if (polled[0].revents != 0 && !handleSignal()) {
      return false;
    }
    for (std::size_t i = 2; i < polled.size(); ++i) {
      if (polled[i].revents != 0) {
        receiveDown(*flows_[i - 2]);
      }
    }
    if (polled[1].revents != 0) {
      receiveUp();
    }
    const auto now = Clock::now();
    for (const auto& flow : flows_) {
      flow->up.release(now, sendUp(*flow));
      flow->down.release(now, sendDown(*flow));
    }
    return true;
  }

  bool handleSignal() {
    signalfd_siginfo info{};
    if (::read(signals_.get(), &info, sizeof(info)) != static_cast<ssize_t>(sizeof(info))) {
      return true;
    }
    if (info.ssi_signo != SIGUSR1) {
      return false;
    }
    for (const auto& flow : flows_) {
      flow->upstream = connectedUpstream();
    }
    return true;
  }

  UniqueFd connectedUpstream() {
    UniqueFd fd = udpSocket(target_.family());
    if (::connect(fd.get(), target_.get(), target_.length) != 0) {
      fail("connect");
    }
    return fd;
  }

  Flow* flowOf(const SocketAddress& client) {
    for (const auto& flow : flows_) {
      if (flow->client.sameAs(client)) {
        return flow.get();
      }
    }
    if (flows_.size() >= kMaxFlows) {
      return nullptr;
    }
    const std::uint64_t stream = flows_.size() * 2;
    flows_.push_back(
        std::make_unique<Flow>(Flow{client, connectedUpstream(), Misfortune(options_, stream),
                                    Misfortune(options_, stream + 1)}));
    return flows_.back().get();
  }

  void receiveUp() {
    for (std::size_t i = 0; i < kBurst; ++i) {
      SocketAddress client;
      client.length = sizeof(client.storage);
      const ssize_t size = ::recvfrom(listener_.get(), buffer_.data(), buffer_.size(), 0,
                                      client.get(), &client.length);
      if (size < 0) {
        return;
      }
      Flow* flow = flowOf(client);
      if (flow == nullptr) {
        continue;
      }
      const auto datagram = std::span(buffer_).first(static_cast<std::size_t>(size));
      capture_.add(datagram);
      flow->up.pass(datagram, sendUp(*flow));
    }
  }

  void receiveDown(Flow& flow) {
    for (std::size_t i = 0; i < kBurst; ++i) {
      const ssize_t size = ::recv(flow.upstream.get(), buffer_.data(), buffer_.size(), 0);
      if (size < 0) {
        return;
      }
      flow.down.pass(std::span(buffer_).first(static_cast<std::size_t>(size)), sendDown(flow));
    }
  }

  const Options& options_;
  SocketAddress target_;
  UniqueFd listener_;
  UniqueFd signals_;
  Capture capture_;
  std::vector<std::uint8_t> buffer_;
  std::vector<std::unique_ptr<Flow>> flows_;
};

}  // namespace
}  // namespace adit::peers

int main(int argc, char** argv) {
  adit::peers::Options options;
  CLI::App app("Relays UDP datagrams as a bad link would.");
  app.add_option("--listen", options.listen, "ADDRESS:PORT for the clients")->required();
  app.add_option("--target", options.target, "ADDRESS:PORT to forward to")->required();
  const auto percent = CLI::Range(0.0, 100.0);
  app.add_option("--loss", options.loss, "percent lost")->check(percent);
  app.add_option("--duplicate", options.duplicate, "percent sent twice")->check(percent);
  app.add_option("--reorder", options.reorder, "percent overtaken by others")->check(percent);
  app.add_option("--corrupt", options.corrupt, "percent with one flipped bit")->check(percent);
  app.add_option("--delay", options.delay, "milliseconds that each way takes");
  app.add_option("--seed", options.seed, "of the random choices");
  app.add_option("--capture", options.capture, "file for the first datagrams to the target");
  app.add_option("--capture-limit", options.captureLimit, "how many of them");
  CLI11_PARSE(app, argc, argv);
  try {
    adit::peers::Relay(options).run();
  } catch (const std::exception& error) {
    std::cerr << "udp_relay: " << error.what() << '\n';
    return 1;
  }
  return 0;
}

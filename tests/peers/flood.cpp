// A paced, bounded flood of unwanted datagrams to one UDP port: noise, cut and stretched messages,
// replays of a capture, well-formed initiations of strangers. Prints what was sent as JSON.
#include <sys/uio.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "initiation.hpp"
#include "udp_socket.hpp"
#include "wire/messages.h"

namespace adit::peers {
namespace {

using Datagram = std::vector<std::uint8_t>;
using Random = std::mt19937_64;

constexpr std::size_t kPoolSize = 512;
constexpr std::size_t kBatch = 32;
constexpr std::size_t kLongest = 1472;

struct Options {
  std::string target;
  std::vector<std::string> sources;
  std::vector<std::string> kinds;
  std::string publicKey;
  std::string capture;
  unsigned packetsPerSecond = 20000;
  double seconds = 5;
  std::uint64_t seed = 1;
};

Datagram noise(Random& random, std::size_t size) {
  Datagram datagram(size);
  std::ranges::generate(datagram, [&random] { return static_cast<std::uint8_t>(random()); });
  return datagram;
}

/// Random bytes of random length, none at all included.
std::vector<Datagram> garbage(Random& random) {
  std::vector<Datagram> pool;
  for (std::size_t i = 0; i < kPoolSize; ++i) {
    pool.push_back(noise(random, random() % (kLongest + 1)));
  }
  return pool;
}

/// Right first bytes, wrong length: every message type cut short, at every length, or too long.
std::vector<Datagram> truncated(Random& random) {
  constexpr std::array<std::size_t, 4> kLengths{sizeof(adit_message_initiation),
                                                sizeof(adit_message_response),
                                                sizeof(adit_message_cookie), ADIT_DATA_OVERHEAD};
  std::vector<Datagram> pool;
  for (std::size_t i = 0; i < kPoolSize; ++i) {
    const std::size_t type = 1 + i % 4;
    const std::size_t right = kLengths[type - 1];
    std::size_t size = 1 + random() % (right - 1);
    if (type != ADIT_MESSAGE_DATA && random() % 4 == 0) {
      size = right + 1 + random() % 64;
    }
    Datagram datagram = noise(random, size);
    const std::array<std::uint8_t, 4> header{static_cast<std::uint8_t>(type), 0, 0, 0};
    std::copy_n(header.begin(), std::min(header.size(), size), datagram.begin());
    pool.push_back(std::move(datagram));
  }
  return pool;
}

/// What udp_relay --capture wrote.
std::vector<Datagram> replayed(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<Datagram> pool;
  std::array<char, 2> length{};
  while (file.read(length.data(), 2)) {
    Datagram datagram(static_cast<std::uint8_t>(length[0]) |
                      static_cast<std::size_t>(static_cast<std::uint8_t>(length[1])) << 8);
    if (!file.read(reinterpret_cast<char*>(datagram.data()),
                   static_cast<std::streamsize>(datagram.size()))) {
      break;
    }
    pool.push_back(std::move(datagram));
  }
  if (pool.empty()) {
    throw std::runtime_error(path + " holds no datagram");
  }
  return pool;
}

std::vector<Datagram> initiations(const Options& options) {
  const auto key = crypto::PublicKey::fromBase64(options.publicKey);
  if (!key) {
    throw std::runtime_error("--public-key is not a key");
  }
  std::vector<Datagram> pool;
  for (std::uint32_t i = 0; i < kPoolSize; ++i) {
    pool.push_back(strangersInitiation(*key, i));
  }
  return pool;
}

std::vector<Datagram> poolOf(const std::string& kind, const Options& options, Random& random) {
  if (kind == "garbage") {
    return garbage(random);
  }
  if (kind == "truncated") {
    return truncated(random);
  }
  if (kind == "replayed") {
    return replayed(options.capture);
  }
  return initiations(options);
}

std::vector<UniqueFd> sockets(const Options& options, const SocketAddress& target) {
  std::vector<UniqueFd> result;
  for (const auto& source : options.sources) {
    const auto address = IpAddress::parse(source);
    if (!address) {
      throw std::runtime_error(source + " is not an address");
    }
    result.push_back(boundUdpSocket(socketAddress(*address, 0)));
  }
  if (result.empty()) {
    result.push_back(udpSocket(target.family()));
  }
  for (const auto& fd : result) {
    if (::connect(fd.get(), target.get(), target.length) != 0) {
      fail("connect");
    }
  }
  return result;
}

class Flood {
 public:
  explicit Flood(const Options& options)
      : options_(options),
        random_(options.seed),
        target_(parseSocketAddress(options.target)),
        sockets_(sockets(options, target_)) {
    for (const auto& kind : options.kinds) {
      pools_.emplace_back(kind, poolOf(kind, options, random_));
    }
  }

  nlohmann::json run() {
    std::cout << "ready" << std::endl;
    const auto total = static_cast<std::uint64_t>(options_.seconds * options_.packetsPerSecond);
    const std::chrono::nanoseconds period(1'000'000'000 / options_.packetsPerSecond);
    const auto start = std::chrono::steady_clock::now();
    for (std::uint64_t done = 0; done < total; done += kBatch) {
      std::this_thread::sleep_until(start + done * period);
      sendBatch(std::min<std::uint64_t>(kBatch, total - done));
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    return {{"sent", sent_}, {"failed", failed_}, {"seconds", took.count()}};
  }

 private:
  /// One kind from one socket, the next of each in turn.
  void sendBatch(std::size_t count) {
    auto& [kind, pool] = pools_[batches_ % pools_.size()];
    const UniqueFd& fd = sockets_[batches_ / pools_.size() % sockets_.size()];
    ++batches_;
    std::array<mmsghdr, kBatch> messages{};
    std::array<iovec, kBatch> parts{};
    for (std::size_t i = 0; i < count; ++i) {
      Datagram& datagram = pool[random_() % pool.size()];
      parts[i] = {datagram.data(), datagram.size()};
      messages[i].msg_hdr.msg_iov = &parts[i];
      messages[i].msg_hdr.msg_iovlen = 1;
    }
    const int done = ::sendmmsg(fd.get(), messages.data(), static_cast<unsigned>(count), 0);
    sent_[kind] += static_cast<std::uint64_t>(std::max(done, 0));
    failed_ += count - static_cast<std::size_t>(std::max(done, 0));
  }

  const Options& options_;
  Random random_;
  SocketAddress target_;
  std::vector<UniqueFd> sockets_;
  std::vector<std::pair<std::string, std::vector<Datagram>>> pools_;
  std::size_t batches_ = 0;
  std::map<std::string, std::uint64_t> sent_;
  std::uint64_t failed_ = 0;
};

}  // namespace
}  // namespace adit::peers

int main(int argc, char** argv) {
  adit::peers::Options options;
  CLI::App app("Sends unwanted datagrams to a tunnel's port, paced and bounded.");
  app.add_option("target", options.target, "ADDRESS:PORT")->required();
  app.add_option("--source", options.sources, "local addresses to send from, in turn");
  app.add_option("--kind", options.kinds, "garbage, truncated, replayed, initiation")
      ->required()
      ->check(CLI::IsMember({"garbage", "truncated", "replayed", "initiation"}));
  app.add_option("--public-key", options.publicKey, "the responder's, for initiation");
  app.add_option("--capture", options.capture, "file of udp_relay --capture, for replayed");
  app.add_option("--pps", options.packetsPerSecond, "datagrams per second")
      ->check(CLI::Range(1, 1000000));
  app.add_option("--seconds", options.seconds, "how long")->check(CLI::Range(0.01, 600.0));
  app.add_option("--seed", options.seed, "of the random choices");
  CLI11_PARSE(app, argc, argv);
  try {
    std::cout << adit::peers::Flood(options).run().dump() << '\n';
  } catch (const std::exception& error) {
    std::cerr << "flood: " << error.what() << '\n';
    return 1;
  }
  return 0;
}

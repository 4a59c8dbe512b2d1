// Round-trip times of small UDP datagrams: one end answers, the other asks one at a time and prints
// the distribution as JSON, in microseconds.
#include <poll.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <nlohmann/json.hpp>
#include <vector>

#include "udp_socket.hpp"

namespace adit::peers {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kSize = 64;
constexpr int kLostAfterMs = 1000;

[[noreturn]] void answer(const SocketAddress& address) {
  const UniqueFd fd = boundUdpSocket(address);
  std::cout << "ready" << std::endl;
  std::array<std::uint8_t, 2048> buffer{};
  while (true) {
    pollfd polled{fd.get(), POLLIN, 0};
    if (::poll(&polled, 1, -1) < 0) {
      fail("poll");
    }
    SocketAddress client;
    client.length = sizeof(client.storage);
    const ssize_t size =
        ::recvfrom(fd.get(), buffer.data(), buffer.size(), 0, client.get(), &client.length);
    if (size > 0) {
      ::sendto(fd.get(), buffer.data(), static_cast<std::size_t>(size), 0, client.get(),
               client.length);
    }
  }
}

/// Sends `number` and waits for it to come back; false when it does not.
bool roundTrip(int fd, std::uint64_t number) {
  std::array<std::uint8_t, kSize> out{};
  std::memcpy(out.data(), &number, sizeof(number));
  if (::send(fd, out.data(), out.size(), 0) < 0) {
    return false;
  }
  pollfd polled{fd, POLLIN, 0};
  while (::poll(&polled, 1, kLostAfterMs) > 0) {
    std::array<std::uint8_t, kSize> in{};
    std::uint64_t back = 0;
    if (::recv(fd, in.data(), in.size(), 0) != static_cast<ssize_t>(kSize)) {
      continue;
    }
    std::memcpy(&back, in.data(), sizeof(back));
    if (back == number) {
      return true;
    }
  }
  return false;
}

nlohmann::json ask(const SocketAddress& address, double seconds) {
  const UniqueFd fd = udpSocket(address.family());
  if (::connect(fd.get(), address.get(), address.length) != 0) {
    fail("connect");
  }
  std::vector<double> times;
  std::uint64_t lost = 0;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  for (std::uint64_t number = 0; Clock::now() < end; ++number) {
    const auto start = Clock::now();
    if (roundTrip(fd.get(), number)) {
      times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
    } else {
      ++lost;
    }
  }
  if (times.empty()) {
    throw std::runtime_error("no answer at all");
  }
  std::ranges::sort(times);
  const auto at = [&times](double part) {
    return times[static_cast<std::size_t>(part * static_cast<double>(times.size() - 1))];
  };
  return {{"count", times.size()}, {"lost", lost},    {"min", times.front()},
          {"median", at(0.5)},     {"p99", at(0.99)}, {"max", times.back()}};
}

}  // namespace
}  // namespace adit::peers

int main(int argc, char** argv) {
  std::string address;
  double seconds = 2;
  bool answering = false;
  CLI::App app("Measures round-trip times of 64-byte UDP datagrams, in microseconds.");
  app.add_option("address", address, "ADDRESS:PORT")->required();
  app.add_option("--seconds", seconds, "how long to ask")->check(CLI::Range(0.01, 600.0));
  app.add_flag("--answer", answering, "answer at ADDRESS:PORT instead, for ever");
  CLI11_PARSE(app, argc, argv);
  try {
    const auto parsed = adit::peers::parseSocketAddress(address);
    if (answering) {
      adit::peers::answer(parsed);
    }
    std::cout << adit::peers::ask(parsed, seconds).dump() << '\n';
  } catch (const std::exception& error) {
    std::cerr << "pingpong: " << error.what() << '\n';
    return 1;
  }
  return 0;
}

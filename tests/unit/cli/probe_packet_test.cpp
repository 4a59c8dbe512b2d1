#include "cli/probe_packet.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

using namespace adit;
using namespace adit::cli;
using nat::Protocol;

namespace {

struct Family {
  const char* client;
  const char* target;
  const char* other;
  std::size_t header;
};
constexpr Family kFamilies[] = {
    {"198.18.0.1", "203.0.113.9", "203.0.113.10", 20},
    {"2001:2::1", "2001:db8:9::9", "2001:db8:9::10", 40},
};

IpAddress address(const char* text) {
  return *IpAddress::parse(text);
}

/// What the other end sends: the same with both ends exchanged.
Bytes answerTo(const Family& family, Protocol protocol, std::uint8_t flags,
               const char* from = nullptr) {
  return Question(protocol, address(from != nullptr ? from : family.target), 443,
                  Endpoint{address(family.client), 40000, 0})
      .packet(flags, 7);
}

/// An ICMP error about `packet`.
Bytes errorAbout(const Family& family, const Bytes& packet, std::uint8_t code) {
  const bool v6 = family.header == 40;
  Bytes error = answerTo(family, Protocol::Udp, 0, family.other);
  error.resize(family.header);
  error[v6 ? 6 : 9] = v6 ? 58 : 1;
  error.insert(error.end(), {static_cast<std::uint8_t>(v6 ? 1 : 3), code, 0, 0, 0, 0, 0, 0});
  error.insert(error.end(), packet.begin(), packet.end());
  return error;
}

}  // namespace

TEST_CASE("answers to a probe are told apart") {
  for (const Family& family : kFamilies) {
    const bool v6 = family.header == 40;
    const Endpoint target{address(family.target), 443, 0};
    const Question tcp(Protocol::Tcp, address(family.client), 40000, target);
    const Question udp(Protocol::Udp, address(family.client), 40000, target);
    CHECK(tcp.echoOf(answerTo(family, Protocol::Tcp, kSyn | 0x10)) == Echo::Answered);
    CHECK(tcp.echoOf(answerTo(family, Protocol::Tcp, kReset)) == Echo::Refused);
    CHECK(udp.echoOf(answerTo(family, Protocol::Udp, 0)) == Echo::Answered);
    CHECK(udp.echoOf(answerTo(family, Protocol::Tcp, kSyn)) == Echo::Silent);
    CHECK(udp.echoOf(answerTo(family, Protocol::Udp, 0, family.other)) == Echo::Silent);
    CHECK(tcp.echoOf(tcp.packet(kSyn, 1)) == Echo::Silent);
    const std::uint8_t port = v6 ? 4 : 3;
    CHECK(udp.echoOf(errorAbout(family, udp.packet(0, 0), port)) == Echo::Refused);
    CHECK(tcp.echoOf(errorAbout(family, tcp.packet(kSyn, 0), 1)) == Echo::Unreachable);
  }
}

TEST_CASE("where packets go to and come from is seen at both ends, whoever sent them") {
  for (const Family& family : kFamilies) {
    const Endpoint target{address(family.target), 443, 0};
    const Endpoint neighbour{address(family.other), 443, 0};
    const Bytes there = Question(Protocol::Tcp, address(family.client), 1, target).packet(kSyn, 0);
    CHECK(goesTo(there, Protocol::Tcp, target));
    CHECK_FALSE(goesTo(there, Protocol::Udp, target));
    CHECK_FALSE(goesTo(there, Protocol::Tcp, neighbour));
    CHECK_FALSE(comesFrom(there, Protocol::Tcp, target));
    const Bytes back = answerTo(family, Protocol::Tcp, kSyn);
    CHECK(comesFrom(back, Protocol::Tcp, target));
    CHECK_FALSE(comesFrom(back, Protocol::Tcp, neighbour));
    CHECK(comesFrom(errorAbout(family, there, 1), Protocol::Tcp, target));
  }
}

TEST_CASE("packets that are cut short or none are nobody's") {
  for (const Family& family : kFamilies) {
    const Endpoint target{address(family.target), 443, 0};
    const Question tcp(Protocol::Tcp, address(family.client), 40000, target);
    const Bytes whole = answerTo(family, Protocol::Tcp, kSyn);
    const Bytes error = errorAbout(family, tcp.packet(kSyn, 0), 1);
    for (const Bytes& packet : {whole, error}) {
      for (std::size_t size = 0; size < packet.size(); ++size) {
        // A buffer of exactly that size, so that a sanitizer sees what is read beyond it.
        const Bytes part(packet.begin(), packet.begin() + static_cast<std::ptrdiff_t>(size));
        (void)tcp.echoOf(part);
        (void)comesFrom(part, Protocol::Tcp, target);
        CHECK((size >= family.header + 8 || !goesTo(part, Protocol::Tcp, target)));
      }
    }
  }
}

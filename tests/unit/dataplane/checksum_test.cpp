#include "dataplane/user/checksum.hpp"

#include <catch2/catch.hpp>
#include <random>

#include "dataplane/user/bytes.hpp"
#include "packets.hpp"

using namespace adit;
using namespace adit::dataplane::user;

TEST_CASE("a checksum equals the one of RFC 1071's text, at every length and offset") {
  std::mt19937 random(1);
  std::vector<std::uint8_t> bytes(2100);
  for (auto& byte : bytes)
    byte = static_cast<std::uint8_t>(random());
  for (std::size_t length = 0; length < 400; ++length) {
    for (const std::size_t offset : {0U, 1U, 3U, 63U}) {
      const auto part = std::span<const std::uint8_t>(bytes).subspan(offset, length);
      REQUIRE(be16toh(foldSum(sumBytes(part))) == test::naiveSum(part));
    }
  }
  for (const std::size_t length : {1368U, 1400U, 1479U, 2099U}) {
    const auto part = std::span<const std::uint8_t>(bytes).first(length);
    CHECK(be16toh(foldSum(sumBytes(part))) == test::naiveSum(part));
  }
}

TEST_CASE("carries are never lost, whatever is summed up") {
  const std::vector<std::uint8_t> ones(65535, 0xff);
  CHECK(foldSum(sumBytes(ones)) == be16toh(static_cast<std::uint16_t>(test::naiveSum(ones))));
  const std::vector<std::uint8_t> even(65534, 0xff);
  CHECK(foldSum(sumBytes(even, ~std::uint64_t{0})) == 0xffff);
  CHECK(foldSum(~std::uint64_t{0}) == 0xffff);
  CHECK(foldSum(0) == 0);
}

TEST_CASE("pieces of even length can be summed one after the other") {
  const test::Packet packet = test::makePacket({.payload = 333});
  const auto whole = std::span<const std::uint8_t>(packet);
  CHECK(foldSum(sumBytes(whole.subspan(40), sumBytes(whole.first(40)))) ==
        foldSum(sumBytes(whole)));
}

TEST_CASE("the pseudo-header of both IP versions completes a right checksum") {
  for (const bool v6 : {false, true}) {
    for (const bool tcp : {false, true}) {
      test::PacketSpec spec;
      spec.v6 = v6;
      spec.tcp = tcp;
      test::Packet packet = test::makePacket(spec);
      const auto transport = std::span<const std::uint8_t>(packet).subspan(spec.ipHeader());
      const auto pseudo = pseudoHeaderSum(packet.data(), tcp ? 6 : 17,
                                          static_cast<std::uint32_t>(transport.size()));
      CHECK(foldSum(sumBytes(transport, pseudo)) == 0xffff);
      packet.back() ^= 1;
      CHECK(foldSum(sumBytes(transport, pseudo)) != 0xffff);
    }
  }
}

TEST_CASE("an adjusted checksum equals a recomputed one") {
  std::mt19937 random(2);
  for (int i = 0; i < 2000; ++i) {
    test::Packet header(20);
    for (auto& byte : header)
      byte = static_cast<std::uint8_t>(random());
    header[0] = 0x45;
    writeIpv4Checksum(header.data(), 20);
    const auto before = load<std::uint16_t>(&header[0]);
    header[1] = static_cast<std::uint8_t>(random());
    adjustChecksum(&header[10], before, load<std::uint16_t>(&header[0]));
    REQUIRE(test::naiveSum(header) == 0xffff);
  }
}

#include "nat/foreign_address.hpp"

#include <catch2/catch.hpp>

#include "nat/addresses.hpp"

using namespace adit;
using namespace adit::nat;
using adit::test::ip;

namespace {

Mapping on(const char* address) {
  Mapping mapping;
  mapping.firstPort = 443;
  mapping.lastPort = 443;
  if (address != nullptr) mapping.listenAddress = ip(address);
  return mapping;
}

const HostAddresses kHost{
    .all = {ip("127.0.0.1"), ip("10.0.0.5"), ip("fe80::5"), ip("10.10.0.1")},
    .publicSide = {ip("10.0.0.5"), ip("fe80::5")},
};

}  // namespace

TEST_CASE("a mapping on an address of this host, or on all, is not foreign") {
  CHECK_FALSE(foreignAddress(on("10.0.0.5"), kHost));
  CHECK_FALSE(foreignAddress(on(nullptr), kHost));
}

TEST_CASE("behind a provider's translation the reason names the address that the host has") {
  CHECK(foreignAddress(on("203.0.113.9"), kHost) ==
        "203.0.113.9 is no address of this machine, which has 10.0.0.5: where the provider "
        "translates addresses, write Listen = tcp/443 without one");
  CHECK(foreignAddress(on("2001:db8::9"), kHost) ==
        "2001:db8::9 is no address of this machine: where the provider translates addresses, write "
        "Listen = tcp/443 without one");
}

// Generic netlink against the real kernel: ethtool's family has requests, dumps and events.
#include "netlink/genl.hpp"

#include <linux/ethtool_netlink.h>
#include <linux/genetlink.h>
#include <poll.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <set>

#include "netlink/route.hpp"
#include "netlink/test_namespace.hpp"

using namespace adit;
using namespace adit::netlink;

namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes copyOf(std::span<const std::uint8_t> bytes) {
  return {bytes.begin(), bytes.end()};
}

bool readable(int descriptor) {
  pollfd waiting{descriptor, POLLIN, 0};
  return ::poll(&waiting, 1, 0) == 1;
}

/// Switches a feature of a link: acknowledged, and told to the group "monitor".
GenlRequest setFeature(const std::string& link, bool on,
                       const std::string& feature = "tx-generic-segmentation") {
  GenlRequest request(ETHTOOL_MSG_FEATURES_SET);
  const auto header = request.beginNest(ETHTOOL_A_FEATURES_HEADER);
  request.putString(ETHTOOL_A_HEADER_DEV_NAME, link);
  request.endNest(header);
  const auto wanted = request.beginNest(ETHTOOL_A_FEATURES_WANTED);
  const auto bits = request.beginNest(ETHTOOL_A_BITSET_BITS);
  const auto bit = request.beginNest(ETHTOOL_A_BITSET_BITS_BIT);
  request.putString(ETHTOOL_A_BITSET_BIT_NAME, feature);
  if (on) request.put(ETHTOOL_A_BITSET_BIT_VALUE, {});
  request.endNest(bit);
  request.endNest(bits);
  request.endNest(wanted);
  return request;
}

GenlRequest getFeatures(const std::string& link) {
  GenlRequest request(ETHTOOL_MSG_FEATURES_GET);
  const auto header = request.beginNest(ETHTOOL_A_FEATURES_HEADER);
  if (!link.empty()) request.putString(ETHTOOL_A_HEADER_DEV_NAME, link);
  request.endNest(header);
  return request;
}

std::string linkOf(const Attributes& message) {
  const auto header = message.nest(ETHTOOL_A_FEATURES_HEADER);
  return header ? header->string(ETHTOOL_A_HEADER_DEV_NAME).value_or("") : "";
}

/// A namespace with dummy links "d0" and "d1"; skipped without the right to make one.
void inNamespace(const std::function<void()>& body) {
  if (!test::haveNamespaces()) return;
  const test::Namespace scratch;
  scratch.run([&] {
    auto routing = RouteSocket::open();
    REQUIRE_OK(routing);
    REQUIRE_OK((*routing)->createLink("d0", "veth"));
    body();
  });
}

std::unique_ptr<GenlSocket> openEthtool(int receiveBuffer = 1 << 20) {
  auto opened = GenlSocket::open(ETHTOOL_GENL_NAME, {.oldest = 1,
                                                     .newest = 1,
                                                     .groups = {ETHTOOL_MCGRP_MONITOR_NAME},
                                                     .receiveBuffer = receiveBuffer});
  REQUIRE_OK(opened);
  return std::move(*opened);
}

}  // namespace

TEST_CASE("a generic netlink request is laid out as the kernel wants it") {
  GenlRequest request(7);
  request.putU8(1, 0xab);
  const auto nest = request.beginNest(2);
  request.putU16(3, 0x1234);
  request.putString(4, "abc");
  request.endNest(nest);
  request.putU64(5, 1);
  CHECK(request.command() == 7);
  // clang-format off
  const Bytes attributes{
      5, 0, 1, 0, 0xab, 0, 0, 0,
      20, 0, 2, 0x80, 6, 0, 3, 0, 0x34, 0x12, 0, 0, 8, 0, 4, 0, 'a', 'b', 'c', 0,
      12, 0, 5, 0, 1, 0, 0, 0, 0, 0, 0, 0};
  Bytes whole{
      60, 0, 0, 0, 0x22, 0x11, 5, 0, 9, 0, 0, 0, 0, 0, 0, 0,
      7, 3, 0, 0};
  // clang-format on
  CHECK(copyOf(request.attributes()) == attributes);
  whole.insert(whole.end(), attributes.begin(), attributes.end());
  CHECK(copyOf(request.encode(0x1122, 3, NLM_F_ACK, 9)) == whole);
}

TEST_CASE("attributes of a wrong length, unknown and cut off ones give nothing") {
  // clang-format off
  alignas(4) const std::array<std::uint8_t, 40> bytes{
      6, 0, 1, 0, 1, 2, 0, 0,              // type 1: 2 bytes
      12, 0, 2, 0, 1, 0, 0, 0, 0, 0, 0, 0, // type 2: 8 bytes
      5, 0, 0xff, 0x3f, 9, 0, 0, 0,        // a type that nobody knows
      5, 0, 3, 0, 7, 0, 0, 0,              // type 3: 1 byte
      99, 0};                              // type 0, longer than what is left
  // clang-format on
  const std::span<const std::uint8_t> all(bytes);
  const Attributes attributes(all);
  CHECK(attributes.u16(1) == 0x0201);
  CHECK_FALSE(attributes.u8(1));
  CHECK_FALSE(attributes.u32(1));
  CHECK(attributes.u64(2) == 1);
  CHECK_FALSE(attributes.u32(2));
  CHECK(attributes.u8(3) == 7);
  CHECK_FALSE(attributes.has(0));
  CHECK_FALSE(attributes.has(4));
  const Attributes cut(all.first(7));
  CHECK(cut.u16(1) == 0x0201);
  const Attributes shorter(all.first(5));
  CHECK_FALSE(shorter.has(1));
  CHECK_FALSE(Attributes(std::span<const std::uint8_t>()).has(1));
}

TEST_CASE("a family is found with its version and groups, and an absent one is told") {
  const auto controller = findGenlFamily("nlctrl");
  REQUIRE_OK(controller);
  CHECK(controller->id == GENL_ID_CTRL);
  CHECK(controller->version == 2);
  CHECK(controller->groups.contains("notify"));
  const auto absent = findGenlFamily("adit-no-such");
  REQUIRE_FALSE(absent);
  CHECK(absent.error().code == ENOENT);
  CHECK_THAT(absent.error().message, Catch::Contains("adit-no-such"));
  const auto group = GenlSocket::open(
      "nlctrl", {.oldest = 0, .newest = 9, .groups = {"none"}, .receiveBuffer = 0});
  REQUIRE_FALSE(group);
  CHECK(group.error().code == ENOENT);
}

TEST_CASE("a family of another version is refused with both versions") {
  const auto old = GenlSocket::open(
      "nlctrl", {.oldest = 3, .newest = 4, .groups = {}, .receiveBuffer = 1 << 16});
  REQUIRE_FALSE(old);
  CHECK(old.error().code == EPROTONOSUPPORT);
  CHECK_THAT(old.error().message, Catch::Contains("version 2") && Catch::Contains("3 to 4"));
  CHECK_FALSE(GenlSocket::open("nlctrl",
                               {.oldest = 0, .newest = 1, .groups = {}, .receiveBuffer = 1 << 16}));
  const auto good = GenlSocket::open(
      "nlctrl", {.oldest = 0, .newest = 9, .groups = {}, .receiveBuffer = 1 << 16});
  REQUIRE_OK(good);
  CHECK((*good)->version() == 2);
}

TEST_CASE("queries hand over their answers, dumps all of them") {
  inNamespace([] {
    const auto ethtool = openEthtool();
    std::multiset<std::string> names;
    const auto collect = [&](std::uint8_t command, const Attributes& message) {
      CHECK(command == ETHTOOL_MSG_FEATURES_GET_REPLY);
      names.insert(linkOf(message));
    };
    const auto restart = [&] { names.clear(); };
    REQUIRE_OK(ethtool->query(GenlChannel::Query::One, getFeatures("d0"), restart, collect));
    CHECK(names == std::multiset<std::string>{"d0"});
    REQUIRE_OK(ethtool->query(GenlChannel::Query::Dump, getFeatures(""), restart, collect));
    CHECK(names.count("d0") == 1);
    CHECK(names.count("lo") == 1);
    CHECK(names.size() >= 3);
  });
}

TEST_CASE("an error carries the kernel's own words") {
  inNamespace([] {
    const auto ethtool = openEthtool();
    const auto absent = ethtool->change(setFeature("absent", true));
    REQUIRE_FALSE(absent);
    CHECK(absent.error().code == ENODEV);
    CHECK(absent.error().message == "no device matches name");
    const auto feature = ethtool->change(setFeature("d0", true, "no-such-feature"));
    REQUIRE_FALSE(feature);
    CHECK(feature.error().message == "bit name not found");
    REQUIRE_OK(ethtool->change(setFeature("d0", false)));
  });
}

TEST_CASE("events that come in the midst of a request are kept, and handed over in bounds") {
  inNamespace([] {
    const auto ethtool = openEthtool();
    CHECK_FALSE(readable(ethtool->eventDescriptor()));
    constexpr int kChanges = 6;
    for (int i = 0; i < kChanges; ++i) {
      REQUIRE_OK(ethtool->change(setFeature("d0", i % 2 != 0)));
    }
    CHECK(readable(ethtool->eventDescriptor()));
    int seen = 0;
    const auto event = [&](std::uint8_t command, const Attributes& message) {
      CHECK(command == ETHTOOL_MSG_FEATURES_NTF);
      CHECK(linkOf(message) == "d0");
      ++seen;
    };
    auto read = ethtool->readEvents(4, event);
    REQUIRE_OK(read);
    CHECK(read->handedOver == 4);
    CHECK_FALSE(read->lost);
    CHECK(readable(ethtool->eventDescriptor()));
    // The receiver may use the channel.
    read = ethtool->readEvents(64, [&](std::uint8_t command, const Attributes& message) {
      event(command, message);
      if (seen == 5) REQUIRE_OK(ethtool->change(setFeature("d0", false)));
    });
    REQUIRE_OK(read);
    CHECK(seen == kChanges + 1);
    CHECK_FALSE(readable(ethtool->eventDescriptor()));
    CHECK(ethtool->readEvents(64, event)->handedOver == 0);
  });
}

TEST_CASE("events that the kernel had to drop are told once, and the channel goes on") {
  inNamespace([] {
    const auto sender = openEthtool();
    const auto ethtool = openEthtool(1);
    for (int i = 0; i < 64; ++i) {
      REQUIRE_OK(sender->change(setFeature("d0", i % 2 != 0)));
      sender->readEvents(64, [](std::uint8_t, const Attributes&) {});
    }
    CHECK(readable(ethtool->eventDescriptor()));
    const auto ignore = [](std::uint8_t, const Attributes&) {};
    auto read = ethtool->readEvents(1000, ignore);
    REQUIRE_OK(read);
    CHECK(read->lost);
    CHECK(read->handedOver < 64);
    REQUIRE_OK(ethtool->change(setFeature("d0", true)));
    read = ethtool->readEvents(1000, ignore);
    REQUIRE_OK(read);
    CHECK_FALSE(read->lost);
  });
}

TEST_CASE("an acknowledgement that was lost is an error, not a wait without end") {
  inNamespace([] {
    const auto sender = openEthtool();
    const auto ethtool = openEthtool(1);
    for (int i = 0; i < 64; ++i) {
      REQUIRE_OK(sender->change(setFeature("d0", i % 2 != 0)));
      sender->readEvents(64, [](std::uint8_t, const Attributes&) {});
    }
    const auto lost = ethtool->change(setFeature("d0", false));
    REQUIRE_FALSE(lost);
    CHECK(lost.error().code == ENOBUFS);
    // It was read to the end meanwhile, so that the next answer gets through.
    CHECK(ethtool->change(setFeature("absent", true)).error().code == ENODEV);
    CHECK(readable(ethtool->eventDescriptor()));
    const auto read = ethtool->readEvents(1000, [](std::uint8_t, const Attributes&) {});
    REQUIRE_OK(read);
    CHECK(read->lost);
  });
}

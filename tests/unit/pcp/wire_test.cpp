// Messages made by hand from the figures of RFC 6887 and RFC 7753.
#include "pcp/wire.hpp"

#include <catch2/catch.hpp>

#include "fixture.hpp"

namespace adit::pcp {
namespace {

/// Figure 2 and figure 9: MAP of TCP port 80 of 10.10.0.2, suggested 203.0.113.9:8080, two hours.
Bytes mapRequest() {
  return {2, 1, 0, 0, 0, 0,  0x1c, 0x20,  // header
          0, 0, 0, 0, 0, 0,  0,    0,    0, 0,  0xff, 0xff, 10,  10, 0,   2,
          1, 2, 3, 4, 5, 6,  7,    8,    9, 10, 11,   12,  // nonce
          6, 0, 0, 0, 0, 80, 0x1f, 0x90,                   // protocol, ports
          0, 0, 0, 0, 0, 0,  0,    0,    0, 0,  0xff, 0xff, 203, 0,  113, 9};
}

Bytes with(Bytes message, const Bytes& more) {
  message.insert(message.end(), more.begin(), more.end());
  return message;
}

std::optional<ResultCode> refusalOf(const Bytes& message) {
  const ParsedRequest parsed = parseRequest(message);
  CHECK(parsed.request.has_value() != parsed.refusal.has_value());
  return parsed.refusal;
}

TEST_CASE("a MAP request is read and written as the RFC draws it") {
  const Bytes bytes = mapRequest();
  REQUIRE(bytes.size() == 60);
  const auto parsed = parseRequest(bytes);
  REQUIRE(parsed.request);
  CHECK(parsed.request->lifetime == 7200);
  CHECK(parsed.request->client == address("10.10.0.2"));
  const MapMessage& map = *parsed.request->map;
  CHECK(map.protocol == kTcp);
  CHECK(map.internalPort == 80);
  CHECK(map.externalPort == 8080);
  CHECK(map.externalAddress == address("203.0.113.9"));
  CHECK(map.nonce[0] == 1);
  CHECK(map.nonce[11] == 12);
  CHECK(build(*parsed.request) == bytes);
}

TEST_CASE("addresses are of the family that all 96 bits say") {
  auto field = addressField(address("192.0.2.1"));
  CHECK(addressFromField(field) == address("192.0.2.1"));
  field[3] = 1;
  CHECK(addressFromField(field).isV6());
  CHECK(addressFromField(addressField(address("2001:db8::1"))) == address("2001:db8::1"));
  CHECK(addressField(IpAddress::anyV6()) == std::array<std::uint8_t, 16>{});
  CHECK(addressFromField(addressField(IpAddress::anyV4())).isV4());
}

TEST_CASE("what cannot be answered is ignored") {
  CHECK_FALSE(parseRequest({}).refusal);
  const Bytes one{2};
  CHECK_FALSE(parseRequest(one).refusal);
  Bytes response = mapRequest();
  response[1] |= 0x80;
  const auto parsed = parseRequest(response);
  CHECK_FALSE(parsed.refusal);
  CHECK_FALSE(parsed.request);
}

TEST_CASE("the header is checked") {
  const Bytes good = mapRequest();
  SECTION("another version") {
    for (const std::uint8_t version : Bytes{1, 3, 255}) {
      Bytes bytes = good;
      bytes[0] = version;
      CHECK(refusalOf(bytes) == ResultCode::UnsupportedVersion);
      CHECK(refusalOf({version, 1}) == ResultCode::UnsupportedVersion);
    }
  }
  SECTION("every length that is too short, and those that are no multiple of four") {
    for (std::size_t length = 2; length < good.size(); ++length) {
      CAPTURE(length);
      const Bytes cut(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(length));
      CHECK(refusalOf(cut) == ResultCode::MalformedRequest);
    }
  }
  SECTION("too long") {
    // An optional option fills it to the last byte that may be there, and beyond.
    const auto filled = [&](std::size_t size) {
      Bytes bytes = with(good, {200, 0, 0, 0});
      const std::size_t length = size - bytes.size();
      bytes[62] = static_cast<std::uint8_t>(length >> 8U);
      bytes[63] = static_cast<std::uint8_t>(length);
      bytes.resize(size);
      return bytes;
    };
    CHECK_FALSE(refusalOf(filled(1100)));
    CHECK(refusalOf(filled(1104)) == ResultCode::MalformedRequest);
  }
  SECTION("opcodes") {
    for (const std::uint8_t opcode : Bytes{2, 3, 127}) {
      Bytes bytes = good;
      bytes[1] = opcode;
      CHECK(refusalOf(bytes) == ResultCode::UnsupportedOpcode);
    }
  }
}

TEST_CASE("an ANNOUNCE is the header alone") {
  Bytes bytes(24);
  bytes[0] = 2;
  const auto parsed = parseRequest(bytes);
  REQUIRE(parsed.request);
  CHECK(parsed.request->opcode == Opcode::Announce);
  CHECK_FALSE(parsed.request->map);
  CHECK(refusalOf(with(bytes, {1, 0, 0, 0})) == ResultCode::UnsupportedOption);
  CHECK_FALSE(refusalOf(with(bytes, {200, 0, 0, 0})));
}

TEST_CASE("a wildcard protocol has no port") {
  Bytes bytes = mapRequest();
  bytes[36] = 0;
  CHECK(refusalOf(bytes) == ResultCode::MalformedRequest);
}

TEST_CASE("options") {
  const Bytes good = mapRequest();
  const Bytes third{1, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 168, 50, 20};
  SECTION("THIRD_PARTY") {
    const auto parsed = parseRequest(with(good, third));
    REQUIRE(parsed.request);
    CHECK(parsed.request->map->thirdParty == address("192.168.50.20"));
    CHECK(build(*parsed.request) == with(good, third));
    CHECK(refusalOf(with(with(good, third), third)) == ResultCode::MalformedOption);
    Bytes self = third;
    self[16] = self[17] = 10;
    self[18] = 0;
    self[19] = 2;
    CHECK(refusalOf(with(good, self)) == ResultCode::MalformedRequest);
    CHECK(refusalOf(with(good, {1, 0, 0, 4, 1, 2, 3, 4})) == ResultCode::MalformedOption);
  }
  SECTION("PREFER_FAILURE") {
    const Bytes option{2, 0, 0, 0};
    CHECK(parseRequest(with(good, option)).request->map->preferFailure);
    CHECK(refusalOf(with(with(good, option), option)) == ResultCode::MalformedOption);
    CHECK(refusalOf(with(good, {2, 0, 0, 1, 0, 0, 0, 0})) == ResultCode::MalformedOption);
    // Nothing is preferred.
    Bytes anywhere = good;
    anywhere[42] = anywhere[43] = 0;
    std::fill(anywhere.begin() + 44, anywhere.end(), 0);
    CHECK(refusalOf(with(anywhere, option)) == ResultCode::MalformedOption);
  }
  SECTION("PORT_SET") {
    const Bytes option{130, 0, 0, 5, 0, 10, 0, 80, 1, 0, 0, 0};
    const auto parsed = parseRequest(with(good, option));
    REQUIRE(parsed.request);
    CHECK(parsed.request->map->portSet == PortSet{10, 80, true});
    CHECK(build(*parsed.request) == with(good, option));
    CHECK(refusalOf(with(with(good, option), option)) == ResultCode::MalformedOption);
    CHECK(refusalOf(with(with(good, option), {2, 0, 0, 0})) == ResultCode::MalformedOption);
    CHECK(refusalOf(with(good, {130, 0, 0, 5, 0, 0, 0, 80, 1, 0, 0, 0})) ==
          ResultCode::MalformedOption);
    CHECK(refusalOf(with(good, {130, 0, 0, 5, 0, 2, 0, 81, 1, 0, 0, 0})) ==
          ResultCode::MalformedOption);
    CHECK(refusalOf(with(good, {130, 0, 0, 4, 0, 2, 0, 80})) == ResultCode::MalformedOption);
  }
  SECTION("FILTER") {
    Bytes option{3, 0, 0, 20, 0, 120, 0,    0,    0,   0,  0,   0,
                 0, 0, 0, 0,  0, 0,   0xff, 0xff, 198, 51, 100, 0};
    const auto parsed = parseRequest(with(good, option));
    REQUIRE(parsed.request);
    REQUIRE(parsed.request->map->filters.size() == 1);
    CHECK(parsed.request->map->filters[0].network == network("198.51.100.0/24"));
    CHECK(build(*parsed.request) == with(good, option));
    option[5] = 95;
    CHECK(refusalOf(with(good, option)) == ResultCode::MalformedOption);
    option[5] = 129;
    CHECK(refusalOf(with(good, option)) == ResultCode::MalformedOption);
    option[5] = 0;
    CHECK_FALSE(parseRequest(with(good, option)).request->map->filters[0].network);
    Bytes many = good;
    for (std::size_t i = 0; i <= kMostFilters; ++i) {
      many = with(many, option);
    }
    CHECK(refusalOf(many) == ResultCode::ExcessiveRemotePeers);
  }
  SECTION("unknown ones: by the bit that says whether they must be understood") {
    CHECK(refusalOf(with(good, {60, 0, 0, 0})) == ResultCode::UnsupportedOption);
    CHECK(refusalOf(with(good, {127, 0, 0, 0})) == ResultCode::UnsupportedOption);
    CHECK(refusalOf(with(good, {0, 0, 0, 0})) == ResultCode::UnsupportedOption);
    CHECK_FALSE(refusalOf(with(good, {128, 0, 0, 3, 1, 2, 3, 0})));
    CHECK_FALSE(refusalOf(with(good, {255, 0, 0, 0})));
  }
  SECTION("lengths past the end") {
    CHECK(refusalOf(with(good, {200, 0, 0, 1})) == ResultCode::MalformedOption);
    CHECK(refusalOf(with(good, {200, 0, 0xff, 0xff})) == ResultCode::MalformedOption);
    CHECK(refusalOf(with(good, {1, 0, 0, 16, 0, 0, 0, 0})) == ResultCode::MalformedOption);
  }
}

TEST_CASE("an error is the request's own bytes with another header") {
  Bytes bytes = mapRequest();
  bytes.resize(61);
  const Bytes error = errorResponse(bytes, ResultCode::MalformedRequest, 1800, 77);
  REQUIRE(error.size() == 64);
  CHECK(error[0] == 2);
  CHECK(error[1] == 0x81);
  CHECK(error[2] == 0);
  CHECK(error[3] == 3);
  const Bytes numbers{0, 0, 0x07, 0x08, 0, 0, 0, 77};
  CHECK(std::equal(numbers.begin(), numbers.end(), error.begin() + 4));
  CHECK(std::all_of(error.begin() + 12, error.begin() + 24, [](auto b) { return b == 0; }));
  CHECK(std::equal(bytes.begin() + 24, bytes.begin() + 60, error.begin() + 24));
  CHECK(errorResponse(Bytes{9, 1}, ResultCode::UnsupportedVersion, 1, 1).size() == 24);
  CHECK(errorResponse(Bytes(5000, 2), ResultCode::MalformedRequest, 1, 1).size() == 1100);
}

TEST_CASE("the reason of a refusal reaches whoever can read it, and fits") {
  auto request = *parseRequest(mapRequest()).request;
  const Bytes plain = errorResponse(build(request), ResultCode::NotAuthorized, 1, 1, "because");
  CHECK(plain.size() == 60);
  request.map->extras = Extras{.masquerade = true, .hairpin = false, .rate = 5, .reason = ""};
  const auto response = parseResponse(
      errorResponse(build(request), ResultCode::NotAuthorized, 1, 1, "be\ncause\x1b[2J"));
  REQUIRE(response);
  CHECK(response->map->extras->reason == "be?cause?[2J");
  CHECK(response->map->extras->masquerade);
  CHECK(response->map->extras->rate == 5);
  // With as many filters as there may be, a reason would not fit.
  for (std::size_t i = 0; i < kMostFilters; ++i) {
    request.map->filters.push_back({network("198.51.100.0/24"), 0});
  }
  const Bytes large = build(request);
  CHECK(errorResponse(large, ResultCode::NotAuthorized, 1, 1, std::string(5000, 'x')).size() <=
        kMaximumMessage);
}

TEST_CASE("responses") {
  Response response{.opcode = Opcode::Map,
                    .result = ResultCode::Success,
                    .lifetime = 120,
                    .epoch = 9,
                    .map = ServerFixture::mapOf(80, 8080)};
  response.map->portSet = PortSet{4, 80, false};
  response.map->extras = Extras{};
  const Bytes bytes = build(response);
  CHECK(parseResponse(bytes) == response);
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    const auto cut = parseResponse(std::span(bytes).first(length));
    CHECK((!cut || length >= kHeaderSize));
    CHECK((!cut || !cut->map || length >= kHeaderSize + kMapSize));
  }
  Bytes request = bytes;
  request[1] = 1;
  CHECK_FALSE(parseResponse(request));
  Bytes old = bytes;
  old[0] = 1;
  CHECK_FALSE(parseResponse(old));
  old[3] = 1;
  CHECK(parseResponse(old)->result == ResultCode::UnsupportedVersion);
}

}  // namespace
}  // namespace adit::pcp

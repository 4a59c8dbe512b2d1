// Layouts of the Port Control Protocol (RFC 6887, with PORT_SET of RFC 7753). Pure.
//
// A message that is not understood is answered by its own bytes (errorResponse), so that nothing is
// built from it.
#pragma once

#include <netinet/in.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pcp/result_code.hpp"
#include "util/address.hpp"

namespace adit::pcp {

/// UDP ports (RFC 6887, section 19.1).
inline constexpr std::uint16_t kServerPort = 5351;
inline constexpr std::uint16_t kClientPort = 5350;

inline constexpr std::uint8_t kVersion = 2;
/// Bytes; every message is a multiple of four (section 7).
inline constexpr std::size_t kMaximumMessage = 1100;
inline constexpr std::size_t kHeaderSize = 24;
inline constexpr std::size_t kMapSize = 36;

inline constexpr std::uint8_t kTcp = IPPROTO_TCP;
inline constexpr std::uint8_t kUdp = IPPROTO_UDP;

enum class Opcode : std::uint8_t { Announce = 0, Map = 1, Peer = 2 };

/// Chosen by the client; whoever does not know it cannot change the mapping (section 11.1).
using Nonce = std::array<std::uint8_t, 12>;
using Bytes = std::vector<std::uint8_t>;

/// PORT_SET: that many ports, from the one of the MAP message on.
struct PortSet {
  std::uint16_t size = 0;
  std::uint16_t firstInternal = 0;
  /// The external port must be odd where the internal one is, and even where that is.
  bool parity = false;
  friend bool operator==(const PortSet&, const PortSet&) = default;
};

/// FILTER: remote hosts that are let in. Without a network it removes those given before.
struct Filter {
  std::optional<Prefix> network = {};
  /// 0 is every port.
  std::uint16_t port = 0;
  friend bool operator==(const Filter&, const Filter&) = default;
};

/// adit's own option, from the range for private use (docs/protocol.md): what a [Map] says beyond
/// PCP, and in an answer the reason of a refusal in words.
struct Extras {
  bool masquerade = false;
  bool hairpin = false;
  /// Bits per second; 0 is unlimited.
  std::uint64_t rate = 0;
  /// UTF-8 of whoever answers: not to be trusted.
  std::string reason = {};
  friend bool operator==(const Extras&, const Extras&) = default;
};

/// Bytes of a reason that are sent, and taken.
inline constexpr std::size_t kLongestReason = 240;
/// Filters of one mapping.
inline constexpr std::size_t kMostFilters = 32;

/// MAP with its options. In a request the external side is what is suggested, all zero for no wish;
/// in a response it is what was assigned.
struct MapMessage {
  Nonce nonce{};
  std::uint8_t protocol = 0;
  std::uint16_t internalPort = 0;
  std::uint16_t externalPort = 0;
  IpAddress externalAddress = {};
  std::optional<IpAddress> thirdParty = {};
  bool preferFailure = false;
  std::vector<Filter> filters = {};
  std::optional<PortSet> portSet = {};
  std::optional<Extras> extras = {};
  friend bool operator==(const MapMessage&, const MapMessage&) = default;
};

struct Request {
  Opcode opcode = Opcode::Announce;
  /// Seconds; 0 deletes.
  std::uint32_t lifetime = 0;
  /// As the client sees itself.
  IpAddress client = {};
  /// With Opcode::Map.
  std::optional<MapMessage> map = {};
  friend bool operator==(const Request&, const Request&) = default;
};

struct Response {
  std::uint8_t version = kVersion;
  Opcode opcode = Opcode::Announce;
  ResultCode result = ResultCode::Success;
  /// Seconds: of the mapping, or until an error may be gone.
  std::uint32_t lifetime = 0;
  /// Seconds since the server lost its mappings.
  std::uint32_t epoch = 0;
  /// With Opcode::Map where the message is long enough for it.
  std::optional<MapMessage> map = {};
  friend bool operator==(const Response&, const Response&) = default;
};

/// Neither of both: a message to be ignored (section 8.2: too short to be answered, or itself a
/// response).
struct ParsedRequest {
  std::optional<Request> request = {};
  std::optional<ResultCode> refusal = {};
};

/// Of a message whose version is not 0, which is NAT-PMP.
ParsedRequest parseRequest(std::span<const std::uint8_t> message);
/// Nothing for what no server of this version, nor one that knows another, would have sent.
std::optional<Response> parseResponse(std::span<const std::uint8_t> message);

Bytes build(const Request& request);
Bytes build(const Response& response);
/// The request's own bytes as an error (section 8.2). A `reason` is added where the request asked
/// for one by its Extras.
Bytes errorResponse(std::span<const std::uint8_t> request, ResultCode result,
                    std::uint32_t lifetime, std::uint32_t epoch, std::string_view reason = {});

/// 16 bytes of an address field; IPv4 as ::ffff:a.b.c.d.
std::array<std::uint8_t, 16> addressField(const IpAddress& address);
IpAddress addressFromField(std::span<const std::uint8_t, 16> field);

/// A text that is safe to print: at most kLongestReason bytes of ASCII without controls.
std::string printable(std::string_view text);

}  // namespace adit::pcp

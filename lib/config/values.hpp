// Strict parsers of single values. Each says what is wrong and at which byte of the value.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "config/model.hpp"
#include "util/address.hpp"

namespace adit::config {

/// `offset` counts bytes from the start of the value. The message never holds what could be a
/// piece of a key; see shown().
struct ValueError {
  std::size_t offset = 0;
  std::string message;
};

template <typename T>
using Value = tl::expected<T, ValueError>;

/// One element of a list and where it starts in the value.
struct Item {
  std::string_view text;
  std::size_t offset = 0;
};

enum class Separator : std::uint8_t {
  Comma,
  /// Blanks separate as well, as in wg-quick's Address and DNS.
  CommaOrBlank,
};

/// The elements of a list. An empty element, or a blank or `;` inside one, goes to `errors`.
std::vector<Item> splitList(std::string_view value, Separator separator,
                            std::vector<ValueError>& errors);

/// Decimal digits only, no sign, no leading zeros. `what` names the value in the message.
Value<std::uint64_t> parseNumber(std::string_view text, std::uint64_t minimum,
                                 std::uint64_t maximum, std::string_view what);
/// Decimal, or hexadecimal after 0x.
Value<std::uint32_t> parseNumber32(std::string_view text, std::string_view what);
/// on/off, yes/no, true/false.
Value<bool> parseSwitch(std::string_view text);
/// 1 to 65535.
Value<std::uint16_t> parsePort(std::string_view text);

struct PortRange {
  std::uint16_t first = 0;
  std::uint16_t last = 0;
  [[nodiscard]] unsigned size() const { return last - first + 1U; }
};
/// "127.0.0.1:9586", "[::1]:9586" or "unix:/PATH": nowhere that other machines reach.
Value<MetricsAddress> parseMetricsAddress(std::string_view text);

/// PORT or PORT-PORT.
Value<PortRange> parsePortRange(std::string_view text);

/// What PROTO/PORT[-PORT] or PORT[-PORT]/PROTO says.
struct ProtocolPorts {
  bool tcp = false;
  bool udp = false;
  PortRange ports;
};
Value<ProtocolPorts> parseProtocolPorts(std::string_view text);
/// "tcp", "udp" or "tcp+udp".
std::string_view protocolName(bool tcp, bool udp);

struct ListenText {
  std::optional<IpAddress> address;
  ProtocolPorts match;
};
/// [ADDRESS:]PROTO/PORT[-PORT].
Value<ListenText> parseListen(std::string_view text);

struct TargetText {
  /// A peer's name or an address without brackets.
  std::string host;
  std::optional<IpAddress> address;
  std::optional<PortRange> ports;
};
/// HOST[:PORT[-PORT]].
Value<TargetText> parseTarget(std::string_view text);

/// HOST:PORT, [IPv6]:PORT, [IPv6%ZONE]:PORT.
Value<EndpointName> parseEndpoint(std::string_view text);

Value<IpAddress> parseAddress(std::string_view text);
Value<InterfaceAddress> parseInterfaceAddress(std::string_view text);
/// `hadHostBits` tells that bits were masked.
Value<Prefix> parsePrefix(std::string_view text, bool* hadHostBits);

/// Whether `text` is a domain name (RFC 1123; underscores are allowed as in service names).
Value<std::string> parseDomainName(std::string_view text);
Value<std::string> parsePeerName(std::string_view text);
/// The kernel's rule for device names: 1 to 15 bytes without `/`, `:`, `%`, blanks, "." and "..".
Value<std::string> parseInterfaceName(std::string_view text);

/// Says what keeps `text` from being a key; nothing when it is one. For every kind of key.
std::optional<ValueError> checkKeyText(std::string_view text);

/// "2026-12-02T03:04:05Z", a UTC time of the years 1970 to 9999; seconds since the Unix epoch.
Value<std::chrono::seconds> parseUtcTime(std::string_view text);
std::string formatUtcTime(std::chrono::seconds time);

/// NUMBER and one of bit, kbit, mbit, gbit (powers of 1000); bits per second, at least 1.
Value<std::uint64_t> parseRate(std::string_view text);
std::string formatRate(std::uint64_t bitsPerSecond);
/// NUMBER and nothing, K, M or G (powers of 1024; "KiB" and "KB" mean the same); bytes.
Value<std::uint64_t> parseSize(std::string_view text);
/// "0-3,8,10-11" or "all".
std::optional<ValueError> checkCpuList(std::string_view text);

}  // namespace adit::config

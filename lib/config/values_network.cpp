// Values that name hosts: endpoints, listeners and targets of mappings.
#include <fmt/format.h>
#include <sys/un.h>

#include <algorithm>

#include "config/diagnostics.hpp"
#include "config/values.hpp"

namespace adit::config {
namespace {

constexpr auto kNone = std::string_view::npos;

template <typename... Args>
tl::unexpected<ValueError> wrong(std::size_t offset, fmt::format_string<Args...> format,
                                 Args&&... args) {
  return tl::unexpected(ValueError{offset, fmt::format(format, std::forward<Args>(args)...)});
}

std::optional<ValueError> findBlank(std::string_view text) {
  const std::size_t blank = text.find_first_of(" \t");
  if (blank == kNone) return std::nullopt;
  return ValueError{blank, "a blank inside the value; remove it"};
}

/// The parts of [INSIDE]REST, where `text` starts with a bracket.
struct Bracketed {
  std::string_view inside;
  std::string_view rest;
  std::size_t restOffset = 0;
};

Value<Bracketed> splitBrackets(std::string_view text) {
  const std::size_t close = text.find(']');
  if (close == kNone) return wrong(0, "the bracket [ is not closed by ]");
  return Bracketed{text.substr(1, close - 1), text.substr(close + 1), close + 1};
}

/// What a person probably meant by an IPv6 endpoint without brackets. It is a valid address as it
/// stands, so the hint is all that can be done.
std::string bracketHint(std::string_view text, std::string_view portWord) {
  const std::size_t colon = text.rfind(':');
  const auto front = IpAddress::parse(text.substr(0, colon));
  const auto port = parsePort(text.substr(colon + 1));
  if (front && port) {
    return fmt::format("[{}]:{}", front->toString(), *port);
  }
  const auto whole = IpAddress::parse(text);
  return fmt::format("[{}]{}", whole ? whole->toString() : std::string("ADDRESS"), portWord);
}

Value<std::uint16_t> parsePortAfter(std::string_view rest, std::size_t offset,
                                    std::string_view example) {
  if (rest.empty() || rest == ":") {
    return wrong(offset, "the port is missing; write {}:PORT", example);
  }
  if (rest.front() != ':') {
    return wrong(offset, "expected : and a port here; write {}:PORT", example);
  }
  const auto port = parsePort(rest.substr(1));
  if (!port) return wrong(offset + 1, "{}", port.error().message);
  return *port;
}

/// Whether datagrams can be sent there.
std::optional<ValueError> checkDestination(const IpAddress& address, std::size_t offset) {
  if (address.isUnspecified() || address.isMulticast()) {
    return ValueError{offset, fmt::format("{} is not the address of one host", address.toString())};
  }
  return std::nullopt;
}

bool isMappedV4(const IpAddress& address) {
  const auto bytes = address.bytes();
  return address.isV6() && bytes[10] == 0xff && bytes[11] == 0xff &&
         std::ranges::all_of(bytes.first(10), [](std::uint8_t byte) { return byte == 0; });
}

/// The name after %25, as URLs write the % of a zone (RFC 6874); empty for anything else. Digits
/// alone are the number of an interface.
std::string_view zoneOfUrl(std::string_view zone) {
  constexpr std::string_view kPercent = "25";
  const bool number = zone.find_first_not_of("0123456789") == kNone;
  return !number && zone.starts_with(kPercent) ? zone.substr(kPercent.size()) : std::string_view();
}

Value<std::string> parseZone(std::string_view zone, std::size_t offset) {
  const auto name = parseInterfaceName(zone);
  if (!name) {
    return wrong(offset, "the zone after % is not the name or number of an interface");
  }
  if (const auto meant = zoneOfUrl(zone); !meant.empty()) {
    return wrong(offset, "%25 stands for % in URLs alone; write %{}", meant);
  }
  const bool number = std::ranges::all_of(zone, [](char c) { return c >= '0' && c <= '9'; });
  if (number && !parseNumber(zone, 1, 0x7fffffff, "an interface number")) {
    return wrong(offset, "the zone after % is not an interface number");
  }
  return *name;
}

Value<EndpointName> parseBracketedEndpoint(std::string_view text) {
  const auto parts = splitBrackets(text);
  if (!parts) return tl::unexpected(parts.error());
  const std::size_t percent = parts->inside.find('%');
  const std::string_view host = parts->inside.substr(0, percent);
  const auto address = IpAddress::parse(host);
  if (!address || !address->isV6()) {
    return wrong(1, "{} is not an IPv6 address; brackets are for these alone", shown(host));
  }
  if (isMappedV4(*address)) {
    return wrong(1, "an IPv4 address inside an IPv6 one; write the IPv4 address without brackets");
  }
  EndpointName endpoint{std::string(host), 0, {}, *address};
  if (percent != kNone) {
    const auto zone = parseZone(parts->inside.substr(percent + 1), percent + 2);
    if (!zone) return tl::unexpected(zone.error());
    endpoint.zone = *zone;
  }
  if (address->isLinkLocalV6() && endpoint.zone.empty()) {
    return wrong(1, "a link-local address needs its interface; write [{}%INTERFACE]:PORT",
                 address->toString());
  }
  if (!address->isLinkLocalV6() && !endpoint.zone.empty()) {
    return wrong(percent + 1, "only link-local addresses (fe80::/10) have a zone; remove it");
  }
  if (const auto bad = checkDestination(*address, 1)) return tl::unexpected(*bad);
  const auto port =
      parsePortAfter(parts->rest, parts->restOffset, fmt::format("[{}]", address->toString()));
  if (!port) return tl::unexpected(port.error());
  endpoint.port = *port;
  return endpoint;
}

Value<EndpointName> parsePlainEndpoint(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::string_view host = text.substr(0, colon);
  if (host.empty()) return wrong(0, "the host is missing; write HOST:PORT");
  if (const auto percent = host.find('%'); percent != kNone) {
    return wrong(percent, "only IPv6 addresses have a zone; write [ADDRESS%ZONE]:PORT");
  }
  EndpointName endpoint{std::string(host), 0, {}, {}};
  if (const auto address = IpAddress::parse(host)) {
    if (const auto bad = checkDestination(*address, 0)) return tl::unexpected(*bad);
    endpoint.literal = *address;
  } else if (const auto name = parseDomainName(host); !name) {
    return tl::unexpected(name.error());
  }
  const auto port = parsePortAfter(text.substr(host.size()), host.size(), "HOST");
  if (!port) return tl::unexpected(port.error());
  endpoint.port = *port;
  return endpoint;
}

Value<ListenText> listenOn(std::string_view address, std::size_t offset, std::string_view match,
                           std::size_t matchOffset) {
  const auto parsed = parseAddress(address);
  if (!parsed) {
    return wrong(offset,
                 "{} is not a local address; write [ADDRESS:]PROTO/PORT, the target goes to "
                 "To",
                 shown(address));
  }
  const auto ports = parseProtocolPorts(match);
  if (!ports) return wrong(matchOffset + ports.error().offset, "{}", ports.error().message);
  ListenText result{*parsed, *ports};
  if (parsed->isUnspecified()) {
    result.address.reset();
  }
  return result;
}

Value<TargetText> targetAt(TargetText target, std::string_view rest, std::size_t offset) {
  if (rest.empty()) return target;
  if (rest.front() != ':') return wrong(offset, "expected : and a port here");
  const auto ports = parsePortRange(rest.substr(1));
  if (!ports) return wrong(offset + 1 + ports.error().offset, "{}", ports.error().message);
  target.ports = *ports;
  return target;
}

}  // namespace

Value<EndpointName> parseEndpoint(std::string_view text) {
  if (const auto blank = findBlank(text)) return tl::unexpected(*blank);
  if (const auto scheme = text.find("://"); scheme != kNone) {
    return wrong(0, "an endpoint has no scheme; write HOST:PORT without what ends in ://");
  }
  if (const auto comma = text.find(','); comma != kNone) {
    return wrong(comma, "a peer has one endpoint; a name may have several addresses");
  }
  if (const auto slash = text.find('/'); slash != kNone) {
    return wrong(slash, "a / does not belong into an endpoint; write HOST:PORT");
  }
  if (text.starts_with('[')) return parseBracketedEndpoint(text);
  if (std::ranges::count(text, ':') > 1) {
    return wrong(0, "an IPv6 address needs brackets here; write {}", bracketHint(text, ":PORT"));
  }
  return parsePlainEndpoint(text);
}

Value<ListenText> parseListen(std::string_view text) {
  if (const auto blank = findBlank(text)) return tl::unexpected(*blank);
  if (const auto comma = text.find(','); comma != kNone) {
    return wrong(comma, "a [Map] listens on one port or range; write another [Map] for the next");
  }
  if (const auto scheme = text.find("://"); scheme != kNone) {
    return wrong(scheme, "write PROTO/PORT, with one / and nothing else between");
  }
  if (text.starts_with('[')) {
    const auto parts = splitBrackets(text);
    if (!parts) return tl::unexpected(parts.error());
    if (!parts->rest.starts_with(':')) {
      return wrong(parts->restOffset, "expected : and PROTO/PORT here");
    }
    return listenOn(parts->inside, 1, parts->rest.substr(1), parts->restOffset + 1);
  }
  const std::size_t colon = text.rfind(':');
  if (colon == kNone) {
    const auto ports = parseProtocolPorts(text);
    if (!ports) return tl::unexpected(ports.error());
    return ListenText{{}, *ports};
  }
  if (text.find(':') != colon) {
    return wrong(0, "an IPv6 address needs brackets here; write [ADDRESS]:PROTO/PORT");
  }
  return listenOn(text.substr(0, colon), 0, text.substr(colon + 1), colon + 1);
}

Value<TargetText> parseTarget(std::string_view text) {
  if (const auto blank = findBlank(text)) return tl::unexpected(*blank);
  if (const auto slash = text.find('/'); slash != kNone) {
    return wrong(slash, "a / does not belong into a target; write PEER[:PORT] or ADDRESS[:PORT]");
  }
  if (text.starts_with('[')) {
    const auto parts = splitBrackets(text);
    if (!parts) return tl::unexpected(parts.error());
    const auto address = parseAddress(parts->inside);
    if (!address) return wrong(1 + address.error().offset, "{}", address.error().message);
    if (address->isV4()) return wrong(0, "brackets are for IPv6 addresses; remove them");
    if (const auto bad = checkDestination(*address, 1)) return tl::unexpected(*bad);
    return targetAt({address->toString(), *address, {}}, parts->rest, parts->restOffset);
  }
  if (std::ranges::count(text, ':') > 1) {
    return wrong(0, "an IPv6 address needs brackets here; write {}", bracketHint(text, ""));
  }
  const std::string_view host = text.substr(0, text.find(':'));
  if (host.empty()) return wrong(0, "the target is missing; write PEER[:PORT] or ADDRESS[:PORT]");
  if (const auto address = IpAddress::parse(host)) {
    if (const auto bad = checkDestination(*address, 0)) return tl::unexpected(*bad);
    return targetAt({address->toString(), *address, {}}, text.substr(host.size()), host.size());
  }
  const auto name = parsePeerName(host);
  if (!name) {
    return wrong(name.error().offset, "{} is neither a peer's name nor an address",
                 shown(host, "this"));
  }
  return targetAt({*name, {}, {}}, text.substr(host.size()), host.size());
}

Value<MetricsAddress> parseMetricsAddress(std::string_view text) {
  constexpr std::string_view kUnix = "unix:";
  constexpr std::string_view kForms = "write 127.0.0.1:PORT, [::1]:PORT, unix:/PATH or off";
  // What bind(2) takes, less the zero at the end.
  constexpr std::size_t kLongestPath = sizeof(sockaddr_un::sun_path) - 1;
  if (text.starts_with(kUnix)) {
    const std::string_view path = text.substr(kUnix.size());
    if (!path.starts_with('/')) {
      return wrong(kUnix.size(), "the path of the socket must begin with /; {}", kForms);
    }
    if (path.size() > kLongestPath) {
      return wrong(kUnix.size(), "the path of the socket is longer than {} bytes", kLongestPath);
    }
    return MetricsAddress{{}, std::string(path)};
  }
  const auto name = parseEndpoint(text);
  if (!name) return wrong(name.error().offset, "{}; {}", name.error().message, kForms);
  if (!name->literal || !name->literal->isLoopback()) {
    return wrong(0,
                 "{} is not a loopback address: metrics are not served to other machines (a web "
                 "server with TLS can pass them on); {}",
                 shown(name->host, "this"), kForms);
  }
  return MetricsAddress{Endpoint{*name->literal, name->port, 0}, ""};
}

}  // namespace adit::config

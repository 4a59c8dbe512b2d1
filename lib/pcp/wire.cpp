#include "pcp/wire.hpp"

#include <algorithm>
#include <cassert>

#include "pcp/bytes.hpp"

namespace adit::pcp {
namespace {

using Input = std::span<const std::uint8_t>;

/// Offsets of the common header (section 7.1 and 7.2).
constexpr std::size_t kOpcodeAt = 1;
constexpr std::size_t kResultAt = 3;
constexpr std::size_t kLifetimeAt = 4;
constexpr std::size_t kClientAt = 8;
constexpr std::size_t kEpochAt = 8;
constexpr std::uint8_t kResponseBit = 0x80;

/// Of the MAP message (section 11.1).
constexpr std::size_t kProtocolAt = 12;
constexpr std::size_t kInternalPortAt = 16;
constexpr std::size_t kExternalPortAt = 18;
constexpr std::size_t kExternalAddressAt = 20;

constexpr std::size_t kOptionHeader = 4;
/// From here on a server that does not know an option ignores it (section 7.3).
constexpr std::uint8_t kFirstOptional = 128;

enum class Option : std::uint8_t {
  ThirdParty = 1,
  PreferFailure = 2,
  Filter = 3,
  PortSet = 130,
  Extras = 224,
};

/// Lengths of the options' data.
constexpr std::size_t kAddressLength = 16;
constexpr std::size_t kFilterLength = 20;
constexpr std::size_t kPortSetLength = 5;
/// Without the reason.
constexpr std::size_t kExtrasLength = 12;

constexpr unsigned kV4InV6 = 96;
constexpr std::uint8_t kParityBit = 1;
constexpr std::uint8_t kMasqueradeBit = 1;
constexpr std::uint8_t kHairpinBit = 2;

std::size_t padded(std::size_t length) {
  return (length + 3) / 4 * 4;
}

std::optional<ResultCode> readFilter(Input data, MapMessage& map) {
  if (data.size() != kFilterLength) {
    return ResultCode::MalformedOption;
  }
  if (map.filters.size() == kMostFilters) {
    return ResultCode::ExcessiveRemotePeers;
  }
  Filter filter;
  const unsigned length = data[1];
  filter.port = read16(data, 2);
  if (length != 0) {
    const IpAddress address = addressFromField(data.subspan<4, 16>());
    const unsigned skipped = address.isV4() ? kV4InV6 : 0;
    if (length > 128 || length < skipped) {
      return ResultCode::MalformedOption;
    }
    filter.network = Prefix(address, length - skipped);
  }
  map.filters.push_back(filter);
  return std::nullopt;
}

std::optional<ResultCode> readPortSet(Input data, MapMessage& map) {
  if (data.size() != kPortSetLength || map.portSet) {
    return ResultCode::MalformedOption;
  }
  map.portSet = PortSet{.size = read16(data, 0),
                        .firstInternal = read16(data, 2),
                        .parity = (data[4] & kParityBit) != 0};
  return map.portSet->size == 0 ? std::optional(ResultCode::MalformedOption) : std::nullopt;
}

std::optional<ResultCode> readExtras(Input data, MapMessage& map) {
  if (data.size() < kExtrasLength || map.extras) {
    return ResultCode::MalformedOption;
  }
  Extras extras;
  extras.masquerade = (data[0] & kMasqueradeBit) != 0;
  extras.hairpin = (data[0] & kHairpinBit) != 0;
  extras.rate = read64(data, 4);
  for (const std::uint8_t byte : data.subspan(kExtrasLength)) {
    extras.reason.push_back(static_cast<char>(byte));
  }
  extras.reason = printable(extras.reason);
  map.extras = std::move(extras);
  return std::nullopt;
}

std::optional<ResultCode> readOption(std::uint8_t code, Input data, MapMessage& map) {
  switch (static_cast<Option>(code)) {
    case Option::ThirdParty:
      if (data.size() != kAddressLength || map.thirdParty) {
        return ResultCode::MalformedOption;
      }
      map.thirdParty = addressFromField(data.first<kAddressLength>());
      return std::nullopt;
    case Option::PreferFailure:
      if (!data.empty() || map.preferFailure) {
        return ResultCode::MalformedOption;
      }
      map.preferFailure = true;
      return std::nullopt;
    case Option::Filter:
      return readFilter(data, map);
    case Option::PortSet:
      return readPortSet(data, map);
    case Option::Extras:
      return readExtras(data, map);
  }
  return code < kFirstOptional ? std::optional(ResultCode::UnsupportedOption) : std::nullopt;
}

/// Calls `take` with code and data of each option; stops at its first complaint.
template <typename Take>
std::optional<ResultCode> eachOption(Input rest, Take take) {
  while (!rest.empty()) {
    if (rest.size() < kOptionHeader) {
      return ResultCode::MalformedOption;
    }
    const std::size_t length = read16(rest, 2);
    if (kOptionHeader + padded(length) > rest.size()) {
      return ResultCode::MalformedOption;
    }
    if (const auto complaint = take(rest[0], rest.subspan(kOptionHeader, length))) {
      return complaint;
    }
    rest = rest.subspan(kOptionHeader + padded(length));
  }
  return std::nullopt;
}

std::optional<ResultCode> readMap(Input body, MapMessage& map) {
  if (body.size() < kMapSize) {
    return ResultCode::MalformedRequest;
  }
  std::ranges::copy(body.first<12>(), map.nonce.begin());
  map.protocol = body[kProtocolAt];
  map.internalPort = read16(body, kInternalPortAt);
  map.externalPort = read16(body, kExternalPortAt);
  map.externalAddress = addressFromField(body.subspan<kExternalAddressAt, 16>());
  return eachOption(body.subspan(kMapSize),
                    [&](std::uint8_t code, Input data) { return readOption(code, data, map); });
}

/// Combinations that the RFCs rule out.
std::optional<ResultCode> contradiction(const Request& request) {
  const MapMessage& map = *request.map;
  if (map.protocol == 0 && map.internalPort != 0) {
    return ResultCode::MalformedRequest;
  }
  if (map.thirdParty && *map.thirdParty == request.client) {
    return ResultCode::MalformedRequest;
  }
  if (request.lifetime == 0) {
    return std::nullopt;
  }
  const bool anywhere = map.externalPort == 0 && map.externalAddress.isUnspecified();
  if (map.preferFailure && (anywhere || map.portSet)) {
    return ResultCode::MalformedOption;
  }
  if (map.portSet && map.portSet->firstInternal != map.internalPort) {
    return ResultCode::MalformedOption;
  }
  return std::nullopt;
}

ParsedRequest refused(ResultCode code) {
  return {std::nullopt, code};
}

/// Appends an option and returns where its data goes.
std::span<std::uint8_t> addOption(Bytes& out, Option option, std::size_t length) {
  const std::size_t at = out.size();
  out.resize(at + kOptionHeader + padded(length));
  out[at] = static_cast<std::uint8_t>(option);
  write16(out, at + 2, static_cast<std::uint16_t>(length));
  return std::span(out).subspan(at + kOptionHeader, length);
}

void putAddress(std::span<std::uint8_t> out, std::size_t at, const IpAddress& address) {
  std::ranges::copy(addressField(address), out.begin() + static_cast<std::ptrdiff_t>(at));
}

void addFilter(Bytes& out, const Filter& filter) {
  const auto data = addOption(out, Option::Filter, kFilterLength);
  write16(data, 2, filter.port);
  if (filter.network) {
    const bool v4 = filter.network->address().isV4();
    data[1] = static_cast<std::uint8_t>(filter.network->length() + (v4 ? kV4InV6 : 0));
    putAddress(data, 4, filter.network->address());
  }
}

void addExtras(Bytes& out, const Extras& extras) {
  const std::string reason = printable(extras.reason);
  const auto data = addOption(out, Option::Extras, kExtrasLength + reason.size());
  data[0] = static_cast<std::uint8_t>((extras.masquerade ? kMasqueradeBit : 0) |
                                      (extras.hairpin ? kHairpinBit : 0));
  write64(data, 4, extras.rate);
  std::ranges::copy(reason, data.begin() + kExtrasLength);
}

void addMap(Bytes& out, const MapMessage& map) {
  const std::size_t at = out.size();
  out.resize(at + kMapSize);
  const auto body = std::span(out).subspan(at);
  std::ranges::copy(map.nonce, body.begin());
  body[kProtocolAt] = map.protocol;
  write16(body, kInternalPortAt, map.internalPort);
  write16(body, kExternalPortAt, map.externalPort);
  putAddress(body, kExternalAddressAt, map.externalAddress);
  if (map.thirdParty) {
    putAddress(addOption(out, Option::ThirdParty, kAddressLength), 0, *map.thirdParty);
  }
  if (map.preferFailure) {
    addOption(out, Option::PreferFailure, 0);
  }
  for (const Filter& filter : map.filters) {
    addFilter(out, filter);
  }
  if (map.portSet) {
    const auto data = addOption(out, Option::PortSet, kPortSetLength);
    write16(data, 0, map.portSet->size);
    write16(data, 2, map.portSet->firstInternal);
    data[4] = map.portSet->parity ? kParityBit : 0;
  }
  if (map.extras) {
    addExtras(out, *map.extras);
  }
}

void putResponseHeader(std::span<std::uint8_t> out, std::uint8_t opcode, ResultCode result,
                       std::uint32_t lifetime, std::uint32_t epoch) {
  std::ranges::fill(out.first(kHeaderSize), 0);
  out[0] = kVersion;
  out[kOpcodeAt] = opcode | kResponseBit;
  out[kResultAt] = static_cast<std::uint8_t>(result);
  write32(out, kLifetimeAt, lifetime);
  write32(out, kEpochAt, epoch);
}

}  // namespace

std::array<std::uint8_t, 16> addressField(const IpAddress& address) {
  std::array<std::uint8_t, 16> field{};
  if (address.isV4()) {
    field[10] = field[11] = 0xff;
    std::ranges::copy(address.bytes(), field.begin() + 12);
  } else {
    std::ranges::copy(address.bytes(), field.begin());
  }
  return field;
}

IpAddress addressFromField(std::span<const std::uint8_t, 16> field) {
  const bool v4 =
      std::ranges::all_of(field.first<10>(), [](std::uint8_t byte) { return byte == 0; }) &&
      field[10] == 0xff && field[11] == 0xff;
  return v4 ? IpAddress::fromV4(field.subspan<12, 4>()) : IpAddress::fromV6(field);
}

std::string printable(std::string_view text) {
  std::string kept(text.substr(0, kLongestReason));
  std::ranges::replace_if(
      kept, [](char c) { return c < ' ' || c > '~'; }, '?');
  return kept;
}

ParsedRequest parseRequest(std::span<const std::uint8_t> message) {
  if (message.size() < 2 || (message[kOpcodeAt] & kResponseBit) != 0) {
    return {};
  }
  if (message[0] != kVersion) {
    return refused(ResultCode::UnsupportedVersion);
  }
  if (message.size() < kHeaderSize || message.size() > kMaximumMessage || message.size() % 4 != 0) {
    return refused(ResultCode::MalformedRequest);
  }
  Request request;
  request.opcode = static_cast<Opcode>(message[kOpcodeAt]);
  request.lifetime = read32(message, kLifetimeAt);
  request.client = addressFromField(message.subspan<kClientAt, 16>());
  const Input body = message.subspan(kHeaderSize);
  std::optional<ResultCode> complaint;
  if (request.opcode == Opcode::Map) {
    request.map.emplace();
    complaint = readMap(body, *request.map);
    complaint = complaint ? complaint : contradiction(request);
  } else if (request.opcode == Opcode::Announce) {
    // No option is made for it; those that may be ignored are.
    complaint = eachOption(body, [](std::uint8_t code, Input) {
      return code < kFirstOptional ? std::optional(ResultCode::UnsupportedOption) : std::nullopt;
    });
  } else {
    complaint = ResultCode::UnsupportedOpcode;
  }
  return complaint ? refused(*complaint) : ParsedRequest{std::move(request), std::nullopt};
}

std::optional<Response> parseResponse(std::span<const std::uint8_t> message) {
  if (message.size() < kHeaderSize || message.size() > kMaximumMessage || message.size() % 4 != 0 ||
      (message[kOpcodeAt] & kResponseBit) == 0) {
    return std::nullopt;
  }
  Response response;
  response.version = message[0];
  response.opcode = static_cast<Opcode>(message[kOpcodeAt] & ~kResponseBit);
  response.result = static_cast<ResultCode>(message[kResultAt]);
  response.lifetime = read32(message, kLifetimeAt);
  response.epoch = read32(message, kEpochAt);
  if (response.version != kVersion) {
    return response.result == ResultCode::UnsupportedVersion ? std::optional(response)
                                                             : std::nullopt;
  }
  const Input body = message.subspan(kHeaderSize);
  if (response.opcode == Opcode::Map && body.size() >= kMapSize) {
    MapMessage map;
    // An error carries what was asked for, which may be what the server did not understand.
    if (readMap(body, map) && response.result == ResultCode::Success) {
      return std::nullopt;
    }
    response.map = std::move(map);
  }
  return response;
}

Bytes build(const Request& request) {
  Bytes out(kHeaderSize);
  out[0] = kVersion;
  out[kOpcodeAt] = static_cast<std::uint8_t>(request.opcode);
  write32(out, kLifetimeAt, request.lifetime);
  putAddress(out, kClientAt, request.client);
  if (request.map) {
    addMap(out, *request.map);
  }
  return out;
}

Bytes build(const Response& response) {
  Bytes out(kHeaderSize);
  putResponseHeader(out, static_cast<std::uint8_t>(response.opcode), response.result,
                    response.lifetime, response.epoch);
  if (response.map) {
    addMap(out, *response.map);
  }
  return out;
}

Bytes errorResponse(std::span<const std::uint8_t> request, ResultCode result,
                    std::uint32_t lifetime, std::uint32_t epoch, std::string_view reason) {
  assert(request.size() > kOpcodeAt);
  const auto opcode = static_cast<std::uint8_t>(request[kOpcodeAt] & ~kResponseBit);
  Bytes out(request.begin(), request.begin() + static_cast<std::ptrdiff_t>(
                                                   std::min(request.size(), kMaximumMessage)));
  if (!reason.empty()) {
    // Where an Extras asks for it, and all before it was understood.
    const ParsedRequest parsed = parseRequest(request);
    if (parsed.request && parsed.request->map && parsed.request->map->extras) {
      MapMessage map = *parsed.request->map;
      map.extras->reason = reason;
      Bytes explained(kHeaderSize);
      addMap(explained, map);
      out = explained.size() <= kMaximumMessage ? std::move(explained) : std::move(out);
    }
  }
  out.resize(std::max(padded(out.size()), kHeaderSize));
  putResponseHeader(out, opcode, result, lifetime, epoch);
  return out;
}

}  // namespace adit::pcp

#include "pcp/nat_pmp.hpp"

#include <algorithm>

#include "pcp/bytes.hpp"

namespace adit::pcp {
namespace {

constexpr std::size_t kAddressRequest = 2;
constexpr std::size_t kMapRequest = 12;
constexpr std::size_t kErrorResponse = 8;
constexpr std::size_t kAddressResponse = 12;
constexpr std::size_t kMapResponse = 16;
constexpr std::uint8_t kResponseBit = 0x80;

Bytes header(std::size_t size, std::uint8_t opcode, NatPmpResult result, std::uint32_t epoch) {
  Bytes out(size);
  out[0] = kNatPmpVersion;
  out[1] = opcode | kResponseBit;
  write16(out, 2, static_cast<std::uint16_t>(result));
  write32(out, 4, epoch);
  return out;
}

}  // namespace

ParsedNatPmp parseNatPmp(std::span<const std::uint8_t> message) {
  if (message.size() < kAddressRequest || (message[1] & kResponseBit) != 0) {
    return {};
  }
  using Kind = NatPmpRequest::Kind;
  NatPmpRequest request;
  request.kind = static_cast<Kind>(message[1]);
  if (request.kind == Kind::ExternalAddress) {
    return {request, std::nullopt};
  }
  if (request.kind != Kind::MapUdp && request.kind != Kind::MapTcp) {
    return {std::nullopt, NatPmpResult::UnsupportedOpcode};
  }
  if (message.size() < kMapRequest) {
    return {};
  }
  request.internalPort = read16(message, 4);
  request.externalPort = read16(message, 6);
  request.lifetime = read32(message, 8);
  return {request, std::nullopt};
}

Bytes natPmpError(std::uint8_t opcode, NatPmpResult result, std::uint32_t epoch) {
  return header(kErrorResponse, opcode, result, epoch);
}

Bytes natPmpAddress(NatPmpResult result, std::uint32_t epoch, const IpAddress& external) {
  Bytes out = header(kAddressResponse, 0, result, epoch);
  if (external.isV4()) {
    std::ranges::copy(external.bytes(), out.begin() + kErrorResponse);
  }
  return out;
}

Bytes natPmpMapping(const NatPmpRequest& request, NatPmpResult result, std::uint32_t epoch,
                    std::uint16_t externalPort, std::uint32_t lifetime) {
  Bytes out = header(kMapResponse, static_cast<std::uint8_t>(request.kind), result, epoch);
  write16(out, 8, request.internalPort);
  write16(out, 10, externalPort);
  write32(out, 12, lifetime);
  return out;
}

}  // namespace adit::pcp

// Layouts of NAT-PMP (RFC 6886), PCP's predecessor: IPv4 only, on the same UDP port. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "pcp/result_code.hpp"
#include "pcp/wire.hpp"

namespace adit::pcp {

inline constexpr std::uint8_t kNatPmpVersion = 0;

struct NatPmpRequest {
  enum class Kind : std::uint8_t { ExternalAddress = 0, MapUdp = 1, MapTcp = 2 };
  Kind kind = Kind::ExternalAddress;
  /// Internal port 0 with lifetime 0 deletes all mappings of the protocol.
  std::uint16_t internalPort = 0;
  std::uint16_t externalPort = 0;
  std::uint32_t lifetime = 0;

  /// Of a mapping.
  [[nodiscard]] std::uint8_t protocol() const { return kind == Kind::MapUdp ? kUdp : kTcp; }
  friend bool operator==(const NatPmpRequest&, const NatPmpRequest&) = default;
};

/// Neither of both: a message to be ignored.
struct ParsedNatPmp {
  std::optional<NatPmpRequest> request = {};
  std::optional<NatPmpResult> refusal = {};
};

/// Of a message whose version is 0.
ParsedNatPmp parseNatPmp(std::span<const std::uint8_t> message);

/// `opcode` is the request's (section 3.5).
Bytes natPmpError(std::uint8_t opcode, NatPmpResult result, std::uint32_t epoch);
/// Also what a server announces when the address, or its state, has changed (section 3.2.1).
Bytes natPmpAddress(NatPmpResult result, std::uint32_t epoch, const IpAddress& external);
Bytes natPmpMapping(const NatPmpRequest& request, NatPmpResult result, std::uint32_t epoch,
                    std::uint16_t externalPort, std::uint32_t lifetime);

}  // namespace adit::pcp

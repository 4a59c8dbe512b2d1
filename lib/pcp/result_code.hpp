// Result codes of PCP and of NAT-PMP.
#pragma once

#include <cstdint>
#include <string_view>

namespace adit::pcp {

/// RFC 6887, section 7.4.
enum class ResultCode : std::uint8_t {
  Success = 0,
  UnsupportedVersion = 1,
  NotAuthorized = 2,
  MalformedRequest = 3,
  UnsupportedOpcode = 4,
  UnsupportedOption = 5,
  MalformedOption = 6,
  NetworkFailure = 7,
  NoResources = 8,
  UnsupportedProtocol = 9,
  UserExceededQuota = 10,
  CannotProvideExternal = 11,
  AddressMismatch = 12,
  ExcessiveRemotePeers = 13,
};

/// "NOT_AUTHORIZED"; "an unknown result" for a code that the RFC does not have.
std::string_view resultName(ResultCode code);
/// What it means to whoever asked for a port, and what helps.
std::string_view resultText(ResultCode code);
/// It may be gone soon; the others need somebody to change something (section 7.4).
bool isShortLived(ResultCode code);

/// RFC 6886, section 3.5.
enum class NatPmpResult : std::uint16_t {
  Success = 0,
  UnsupportedVersion = 1,
  NotAuthorized = 2,
  NetworkFailure = 3,
  OutOfResources = 4,
  UnsupportedOpcode = 5,
};
/// The nearest code of NAT-PMP.
NatPmpResult natPmpResult(ResultCode code);

}  // namespace adit::pcp

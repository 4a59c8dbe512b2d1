#include "pcp/result_code.hpp"

namespace adit::pcp {

std::string_view resultName(ResultCode code) {
  switch (code) {
    case ResultCode::Success:
      return "SUCCESS";
    case ResultCode::UnsupportedVersion:
      return "UNSUPP_VERSION";
    case ResultCode::NotAuthorized:
      return "NOT_AUTHORIZED";
    case ResultCode::MalformedRequest:
      return "MALFORMED_REQUEST";
    case ResultCode::UnsupportedOpcode:
      return "UNSUPP_OPCODE";
    case ResultCode::UnsupportedOption:
      return "UNSUPP_OPTION";
    case ResultCode::MalformedOption:
      return "MALFORMED_OPTION";
    case ResultCode::NetworkFailure:
      return "NETWORK_FAILURE";
    case ResultCode::NoResources:
      return "NO_RESOURCES";
    case ResultCode::UnsupportedProtocol:
      return "UNSUPP_PROTOCOL";
    case ResultCode::UserExceededQuota:
      return "USER_EX_QUOTA";
    case ResultCode::CannotProvideExternal:
      return "CANNOT_PROVIDE_EXTERNAL";
    case ResultCode::AddressMismatch:
      return "ADDRESS_MISMATCH";
    case ResultCode::ExcessiveRemotePeers:
      return "EXCESSIVE_REMOTE_PEERS";
  }
  return "an unknown result";
}

std::string_view resultText(ResultCode code) {
  switch (code) {
    case ResultCode::Success:
      return "granted";
    case ResultCode::UnsupportedVersion:
      return "the server speaks another version of PCP";
    case ResultCode::NotAuthorized:
      return "the server's AllowMaps for this peer do not hold it";
    case ResultCode::NetworkFailure:
      return "the server has no public address of this family";
    case ResultCode::NoResources:
      return "the server cannot make the mapping now";
    case ResultCode::UserExceededQuota:
      return "this peer has as many mappings as the server lets it have";
    case ResultCode::CannotProvideExternal:
      return "the port is taken on the server";
    case ResultCode::AddressMismatch:
      return "something between here and the server translates addresses";
    case ResultCode::UnsupportedOption:
      return "the server cannot do what this mapping needs";
    case ResultCode::ExcessiveRemotePeers:
      return "Allow names more networks than the server takes";
    default:
      return "the server did not understand the request";
  }
}

bool isShortLived(ResultCode code) {
  return code == ResultCode::NetworkFailure || code == ResultCode::NoResources ||
         code == ResultCode::UserExceededQuota || code == ResultCode::CannotProvideExternal;
}

NatPmpResult natPmpResult(ResultCode code) {
  switch (code) {
    case ResultCode::Success:
      return NatPmpResult::Success;
    case ResultCode::NetworkFailure:
      return NatPmpResult::NetworkFailure;
    case ResultCode::NoResources:
    case ResultCode::UserExceededQuota:
    case ResultCode::CannotProvideExternal:
      return NatPmpResult::OutOfResources;
    case ResultCode::UnsupportedVersion:
      return NatPmpResult::UnsupportedVersion;
    case ResultCode::UnsupportedOpcode:
      return NatPmpResult::UnsupportedOpcode;
    default:
      return NatPmpResult::NotAuthorized;
  }
}

}  // namespace adit::pcp

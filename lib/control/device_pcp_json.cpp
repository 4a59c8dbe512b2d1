#include "control/device_pcp_json.hpp"

#include <array>
#include <nlohmann/json.hpp>

#include "control/control_protocol_members.hpp"

namespace adit::control {
namespace {

using Json = nlohmann::ordered_json;
using Role = PortRequestSnapshot::Role;
using State = PortRequestSnapshot::State;

}  // namespace

std::string_view roleName(Role role) {
  switch (role) {
    case Role::Lease:
      return "lease";
    case Role::Refusal:
      return "refusal";
    case Role::Request:
      return "request";
  }
  return "unknown";
}

std::string_view stateName(State state) {
  switch (state) {
    case State::Asking:
      return "asking";
    case State::Granted:
      return "granted";
    case State::Refused:
      return "refused";
  }
  return "unknown";
}

Json requestsToJson(const std::vector<PortRequestSnapshot>& requests) {
  Json list = Json::array();
  for (const PortRequestSnapshot& request : requests) {
    Json json{{"role", roleName(request.role)}, {"state", stateName(request.state)}};
    if (!request.peer.empty()) json["peer"] = request.peer;
    json["protocol"] = request.protocol;
    json["listen"] = request.listen;
    json["target"] = request.target;
    if (!request.reason.empty()) json["reason"] = request.reason;
    json["lifetime"] = request.lifetime;
    list.push_back(std::move(json));
  }
  return list;
}

Result<PortRequestSnapshot> requestFromJson(const Json& json) {
  PortRequestSnapshot request;
  std::string role;
  std::string state;
  Members members(json, "request");
  members.read("role", role);
  members.read("state", state);
  members.read("peer", request.peer);
  members.read("protocol", request.protocol);
  members.read("listen", request.listen);
  members.read("target", request.target);
  members.read("reason", request.reason);
  members.read("lifetime", request.lifetime);
  for (const Role known : {Role::Lease, Role::Refusal, Role::Request}) {
    request.role = roleName(known) == role ? known : request.role;
  }
  for (const State known : {State::Asking, State::Granted, State::Refused}) {
    request.state = stateName(known) == state ? known : request.state;
  }
  return members.finish().map([&] { return request; });
}

}  // namespace adit::control

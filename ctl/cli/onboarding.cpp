#include "cli/onboarding.hpp"

#include <sys/stat.h>

#include <array>
#include <cerrno>

#include "config/schema.hpp"
#include "config/values.hpp"

namespace adit::cli {

Result<std::string> endpointWithPort(const std::string& text, std::uint16_t port) {
  if (const auto address = IpAddress::parse(text)) {
    return Endpoint{*address, port, 0}.toString();
  }
  const bool hasPort = text.starts_with('[') ? text.find("]:") != std::string::npos
                                             : text.find(':') != std::string::npos;
  const std::string whole = hasPort ? text : fmt::format("{}:{}", text, port);
  const auto endpoint = config::parseEndpoint(whole);
  if (!endpoint) return fail("{}: {}", text, endpoint.error().message);
  return endpoint->toString();
}

Result<void> makeConfigFolder(const std::filesystem::path& file) {
  constexpr mode_t kMode = 0700;
  const std::filesystem::path folder = file.parent_path();
  if (folder.empty() || ::mkdir(folder.c_str(), kMode) == 0 || errno == EEXIST) return {};
  return failErrno(errno, "{}", folder.string());
}

std::string durationText(std::chrono::seconds duration) {
  using namespace std::chrono_literals;
  struct Unit {
    std::chrono::seconds length;
    const char* name;
  };
  constexpr std::array kUnits{Unit{24h, "day"}, Unit{1h, "hour"}, Unit{1min, "minute"},
                              Unit{1s, "second"}};
  for (const Unit& unit : kUnits) {
    // A day is said in hours.
    const auto count = duration / unit.length;
    if (count >= (unit.length == 24h ? 2 : 1) || unit.length == 1s) {
      return fmt::format("{} {}{}", count, unit.name, count == 1 ? "" : "s");
    }
  }
  return {};
}

std::string grantsText(const std::vector<config::PortGrant>& grants, bool thirdParty) {
  config::PeerConfig peer;
  peer.allowMaps = grants;
  peer.allowThirdParty = thirdParty;
  const auto lines = config::findKey(config::Section::Peer, "AllowMaps")->format({.peer = &peer});
  return lines.empty() ? "none" : lines.front();
}

std::string grantsText(const std::vector<enrol::Grant>& grants, bool thirdParty) {
  using Protocol = config::PortGrant::Protocol;
  std::vector<config::PortGrant> same;
  for (const enrol::Grant& grant : grants) {
    const Protocol protocol = !grant.udp   ? Protocol::Tcp
                              : !grant.tcp ? Protocol::Udp
                                           : Protocol::Both;
    same.push_back({protocol, grant.first, grant.last});
  }
  return grantsText(same, thirdParty);
}

}  // namespace adit::cli

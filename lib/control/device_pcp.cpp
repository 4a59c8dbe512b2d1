// Ports that peers ask this host for, and ports that this host asks a server for.
#include <spdlog/spdlog.h>

#include <algorithm>

#include "control/device.hpp"
#include "control/device_peer.hpp"

namespace adit::control {
namespace {

/// An address that may be told to clients, by family.
void addExternal(std::vector<IpAddress>& external, const IpAddress& address) {
  if (!address.isLinkLocalV6() && !address.isLoopback() &&
      std::ranges::find(external, address.family(), &IpAddress::family) == external.end()) {
    external.push_back(address);
  }
}

}  // namespace

PortServerFacts Device::portServerFacts() const {
  const config::Config running = runningConfig();
  PortServerFacts facts;
  facts.peers = portPeers(running);
  facts.addresses = config_.interface.addresses;
  facts.ruleset = desiredNetwork(config_, facts_).ruleset;
  facts.ruleset.mappings = mappingsBySide(config_).translated;
  const std::string& named = config_.interface.publicInterface;
  const std::string& publicSide = named.empty() ? facts_.defaultInterface : named;
  if (!publicSide.empty()) {
    facts.ruleset.publicInterfaces = {publicSide};
    if (const auto link = parts_.routing.findLink(publicSide); link && *link) {
      for (const auto& own :
           parts_.routing.addresses((*link)->index).value_or(std::vector<InterfaceAddress>{})) {
        addExternal(facts.external, own.address);
      }
    }
  }
  for (const netlink::Link& link : parts_.routing.links().value_or(std::vector<netlink::Link>{})) {
    for (const auto& own :
         parts_.routing.addresses(link.index).value_or(std::vector<InterfaceAddress>{})) {
      facts.own.push_back(own.address);
    }
  }
  return facts;
}

void Device::updatePortServer() {
  if (!servesPorts(config_) || config_.interface.addresses.empty()) {
    // The peers that have leases hear it when they renew them.
    portServer_.reset();
    return;
  }
  if (!portServer_) {
    portServer_ = std::make_unique<PortServer>(
        PortServer::Parts{parts_.loop, parts_.clock, parts_.state, options_.name,
                          options_.portLimits},
        PortServer::Actions{[this] { return applyLeases(); },
                            [this] { return changing_ || !started_; }});
  }
  portServer_->update(portServerFacts());
}

std::vector<nat::Mapping> Device::leases() const {
  return portServer_ ? portServer_->mappings() : std::vector<nat::Mapping>{};
}

Result<void> Device::applyLeases() {
  DesiredNetwork wanted = desiredNetwork(config_, facts_, leases());
  const bool sameParameters = std::ranges::equal(wanted.sysctls, desired_.sysctls, {},
                                                 &nat::SysctlNeed::path, &nat::SysctlNeed::path);
  // Only what a mapping is: everything else is as it was.
  const auto change = wanted.ruleset.empty() ? parts_.firewall.remove(options_.name)
                                             : parts_.firewall.apply(wanted.ruleset);
  if (!change) {
    return tl::unexpected(change.error());
  }
  desired_ = std::move(wanted);
  if (!sameParameters) {
    // The first mapping of all, or of a family: the kernel has to forward now.
    const auto report = reconciler_.apply(desired_, facts_.interfaceIndex);
    if (!report) {
      return tl::unexpected(report.error());
    }
    logReport(*report);
  }
  return {};
}

void Device::askForPorts() {
  // With nothing left to ask for, there may be something to give back.
  if (!portClient_ && desired_.maps.declared.empty()) {
    return;
  }
  const std::vector<pcp::Path> paths = portPaths(runningConfig());
  if (!portClient_ && paths.empty()) {
    return;
  }
  if (!portClient_) {
    portClient_ = std::make_unique<PortClient>(PortClient::Parts{
        parts_.loop, parts_.clock, parts_.random, options_.name, options_.portTiming});
  }
  portClient_->update(wantedPorts(desired_.maps.declared, paths), paths, privateKey_);
}

void Device::withdrawPorts() {
  if (portClient_) {
    portClient_->withdraw();
    portClient_.reset();
  }
  if (portServer_) {
    portServer_->stop();
    portServer_.reset();
  }
}

std::string Device::portTrouble() const {
  if (portServer_ && !portServer_->trouble().empty()) {
    return portServer_->trouble();
  }
  const std::string trouble = portClient_ ? portClient_->trouble() : std::string();
  const bool heard = std::ranges::any_of(peers_, [this](const auto& entry) {
    return entry.second->configuredEndpoint && hasLiveSession(*entry.second);
  });
  if (trouble.empty() || !heard) {
    return {};
  }
  return trouble + "; the mappings of this file have to stand in the server's, too";
}

void Device::watchPorts() {
  const std::string trouble = portTrouble();
  if (trouble != portTroubleTold_ && !trouble.empty()) {
    spdlog::warn("{}: {}", options_.name, trouble);
  }
  portTroubleTold_ = trouble;
}

std::vector<PortRequestSnapshot> Device::portRequests() const {
  std::vector<PortRequestSnapshot> all;
  if (portServer_) {
    all = portServer_->snapshots();
  }
  if (portClient_) {
    std::ranges::copy(portClient_->snapshots(), std::back_inserter(all));
  }
  return all;
}

/// One family that has the port is enough: the other may have no public address.
void Device::describeRequest(const nat::Mapping& declared, MapSnapshot& map) const {
  using Kind = pcp::MappingState::Kind;
  const auto states = portClient_ ? portClient_->states() : std::vector<pcp::MappingState>{};
  const pcp::MappingState* best = nullptr;
  for (const pcp::MappingState& state : states) {
    const bool better = best == nullptr || state.kind == Kind::Granted;
    if (state.label == declared.label && better) {
      best = &state;
    }
  }
  if (best == nullptr || best->kind == Kind::Asking) {
    return;
  }
  map.active = best->kind == Kind::Granted;
  if (!map.active) {
    map.reason = "refused by the server: " + best->reason;
  } else {
    map.reason = fmt::format("the server leads {} here",
                             Endpoint{best->externalAddress, best->externalPort, 0}.toString());
    map.reason += best->reason.empty() ? "" : "; " + best->reason;
  }
}

}  // namespace adit::control

#include "nat/conntrack.hpp"

#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "nat/conntrack_entry.hpp"

namespace adit::nat {
namespace {

struct DestroyEntry {
  void operator()(nf_conntrack* entry) const { ::nfct_destroy(entry); }
};
using Entry = std::unique_ptr<nf_conntrack, DestroyEntry>;

bool contains(const std::vector<IpAddress>& addresses, const IpAddress& address) {
  return std::ranges::find(addresses, address) != addresses.end();
}

/// The mapping that a packet of this flow's opening direction would find.
const Mapping* mappingOf(const Flow& flow, const RulesetSpec& spec, const HostAddresses& host) {
  const Endpoint& destination = flow.originalDestination;
  for (const Mapping& mapping : spec.mappings) {
    if (mapping.protocol != flow.protocol || destination.port < mapping.firstPort ||
        destination.port > mapping.lastPort ||
        (mapping.listenAddress && *mapping.listenAddress != destination.address)) {
      continue;
    }
    const bool servesFamily =
        destination.address.isV6() ? mapping.targetV6.has_value() : mapping.targetV4.has_value();
    const bool allowed =
        mapping.allow.empty() || std::ranges::any_of(mapping.allow, [&](const Prefix& prefix) {
          return prefix.contains(flow.originalSource.address);
        });
    const bool ownAllowed = mapping.hairpin || !contains(host.all, flow.originalSource.address);
    return servesFamily && allowed && ownAllowed ? &mapping : nullptr;
  }
  return nullptr;
}

struct Tracked {
  Flow flow;
  Entry entry;
};

/// What the callback of a dump works with.
struct Search {
  const std::function<bool(const Flow&)>& wanted;
  std::vector<Tracked> found;
};

int collect(nf_conntrack_msg_type, nf_conntrack* entry, void* data) {
  auto& search = *static_cast<Search*>(data);
  const auto flow = flowOf(entry);
  if (flow && search.wanted(*flow)) {
    search.found.push_back({*flow, Entry(::nfct_clone(entry))});
  }
  return NFCT_CB_CONTINUE;
}

Result<std::vector<Tracked>> findFlows(const std::function<bool(const Flow&)>& wanted) {
  Search search{wanted, {}};
  if (const auto listed = listEntries(collect, &search); !listed) {
    return tl::unexpected(listed.error());
  }
  return std::move(search.found);
}

Result<std::size_t> deleteFlows(const std::vector<Tracked>& flows) {
  const ConntrackHandle writer(::nfct_open(CONNTRACK, 0));
  if (!writer) {
    return failErrno(errno, "open connection tracking");
  }
  std::size_t cut = 0;
  for (const Tracked& tracked : flows) {
    if (::nfct_query(writer.get(), NFCT_Q_DESTROY, tracked.entry.get()) == 0) {
      ++cut;
    } else if (errno != ENOENT) {
      return failErrno(errno, "delete a tracked connection");
    }
  }
  return cut;
}

bool cameIn(const Flow& flow, const AnswerPath& path) {
  const IpAddress& answering = flow.replySource.address;
  return flow.originalDestination.address == path.tunnel &&
         (answering == path.tunnel || answering == path.home);
}

}  // namespace

Result<HostAddresses> hostAddresses(std::string_view tunnelInterface) {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) {
    return failErrno(errno, "list the addresses of this host");
  }
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, ::freeifaddrs);
  HostAddresses host;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr ||
        (entry->ifa_addr->sa_family != AF_INET && entry->ifa_addr->sa_family != AF_INET6)) {
      continue;
    }
    const IpAddress address = Endpoint::fromSockaddr(entry->ifa_addr).address;
    host.all.push_back(address);
    if ((entry->ifa_flags & IFF_LOOPBACK) == 0 && tunnelInterface != entry->ifa_name) {
      host.publicSide.push_back(address);
    }
  }
  return host;
}

bool disagrees(const Flow& flow, const RulesetSpec& spec, const std::vector<TouchedPorts>& touched,
               const HostAddresses& host) {
  const Endpoint& destination = flow.originalDestination;
  const bool isTouched = std::ranges::any_of(touched, [&](const TouchedPorts& ports) {
    return ports.protocol == static_cast<std::uint8_t>(flow.protocol) &&
           destination.port >= ports.first && destination.port <= ports.last;
  });
  if (!isTouched || !contains(host.publicSide, destination.address) ||
      (flow.protocol == Protocol::Udp && destination.port == spec.ownPort)) {
    return false;
  }
  const Mapping* mapping = mappingOf(flow, spec, host);
  if (mapping == nullptr) {
    return flow.replySource != destination;
  }
  Endpoint target;
  target.address = destination.address.isV6() ? *mapping->targetV6 : *mapping->targetV4;
  target.port =
      static_cast<std::uint16_t>(mapping->targetPort + (destination.port - mapping->firstPort));
  const bool hidden = flow.replyDestination.address != flow.originalSource.address;
  // With hairpin a client of the tunnel's side is hidden whatever the mapping says.
  const bool sourceWrong =
      !mapping->hairpin && hidden != (mapping->source == SourceMode::Masquerade);
  return flow.replySource != target || sourceWrong;
}

Result<std::size_t> cutConnections(const RulesetSpec& spec,
                                   const std::vector<TouchedPorts>& touched,
                                   const HostAddresses& host) {
  if (touched.empty()) {
    return 0;
  }
  auto found = findFlows([&](const Flow& flow) { return disagrees(flow, spec, touched, host); });
  if (!found) {
    return tl::unexpected(found.error());
  }
  return deleteFlows(*found);
}

Result<std::size_t> cutTarget(const IpAddress& target, const TouchedPorts& ports) {
  auto found = findFlows([&](const Flow& flow) {
    const Endpoint& destination = flow.originalDestination;
    return static_cast<std::uint8_t>(flow.protocol) == ports.protocol &&
           destination.address == target && destination.port >= ports.first &&
           destination.port <= ports.last;
  });
  if (!found) {
    return tl::unexpected(found.error());
  }
  return deleteFlows(*found);
}

Result<std::size_t> cutAnswers(const std::vector<AnswerPath>& paths) {
  if (paths.empty()) {
    return 0;
  }
  const auto wentHome = [&](const Flow& flow) {
    return std::ranges::any_of(
        paths, [&](const AnswerPath& path) { return flow.originalSource.address == path.home; });
  };
  const auto toTunnel = [&](const Flow& flow) {
    return std::ranges::any_of(paths, [&](const AnswerPath& path) { return cameIn(flow, path); });
  };
  auto found = findFlows([&](const Flow& flow) {
    return flow.protocol == Protocol::Udp && (toTunnel(flow) || wentHome(flow));
  });
  if (!found) {
    return tl::unexpected(found.error());
  }
  // Client and port of the service, by which an answer belongs to a question.
  std::set<std::pair<std::string, std::uint16_t>> asked;
  for (const Tracked& tracked : *found) {
    if (toTunnel(tracked.flow)) {
      asked.emplace(tracked.flow.originalSource.toString(), tracked.flow.originalDestination.port);
    }
  }
  std::erase_if(*found, [&](const Tracked& tracked) {
    const Flow& flow = tracked.flow;
    return !toTunnel(flow) &&
           !asked.contains({flow.originalDestination.toString(), flow.originalSource.port});
  });
  return deleteFlows(*found);
}

}  // namespace adit::nat

#include "nat/foreign_address.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

namespace adit::nat {
namespace {

/// Those that a packet from elsewhere may be for.
std::vector<std::string> candidates(const HostAddresses& host, bool v6) {
  std::vector<std::string> texts;
  for (const IpAddress& address : host.publicSide) {
    if (address.isV6() == v6 && !address.isLinkLocalV6()) {
      texts.push_back(address.toString());
    }
  }
  return texts;
}

}  // namespace

std::optional<std::string> foreignAddress(const Mapping& mapping, const HostAddresses& host) {
  if (!mapping.listenAddress ||
      std::ranges::find(host.all, *mapping.listenAddress) != host.all.end()) {
    return std::nullopt;
  }
  const auto own = candidates(host, mapping.listenAddress->isV6());
  return fmt::format(
      "{} is no address of this machine{}: where the provider translates addresses, write Listen = "
      "{}/{} without one",
      mapping.listenAddress->toString(),
      own.empty() ? "" : fmt::format(", which has {}", fmt::join(own, ", ")),
      protocolName(mapping.protocol),
      mapping.firstPort == mapping.lastPort
          ? fmt::format("{}", mapping.firstPort)
          : fmt::format("{}-{}", mapping.firstPort, mapping.lastPort));
}

}  // namespace adit::nat

#include "pcp/lease.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace adit::pcp {
namespace {

bool overlap(const PortRange& a, const PortRange& b) {
  return a.protocol == b.protocol && a.first <= b.last && b.first <= a.last;
}

/// One mapping in two families.
bool complete(const Lease& a, const Lease& b) {
  return a.peer == b.peer && a.target.family() != b.target.family() &&
         a.firstExternal == b.firstExternal && a.firstInternal == b.firstInternal &&
         a.size == b.size;
}

}  // namespace

std::string PortRange::toString() const {
  const std::string_view name = protocol == kTcp ? "tcp" : "udp";
  return first == last ? fmt::format("{}/{}", name, first)
                       : fmt::format("{}/{}-{}", name, first, last);
}

Lease* LeaseTable::find(std::uint8_t protocol, const IpAddress& target, std::uint16_t port) {
  const auto found = std::ranges::find_if(
      leases_, [&](const Lease& lease) { return lease.holdsInternal(protocol, target, port); });
  return found == leases_.end() ? nullptr : &*found;
}

std::vector<Lease*> LeaseTable::within(std::uint8_t protocol, const IpAddress& target,
                                       std::uint16_t first, std::uint16_t size) {
  std::vector<Lease*> found;
  for (Lease& lease : leases_) {
    if (lease.protocol == protocol && lease.target == target &&
        lease.firstInternal < first + size && first < lease.firstInternal + lease.size) {
      found.push_back(&lease);
    }
  }
  return found;
}

std::size_t LeaseTable::countOf(std::string_view peer) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(leases_, [&](const Lease& lease) { return lease.peer == peer; }));
}

std::size_t LeaseTable::shiftedOf(std::string_view peer) const {
  std::size_t ports = 0;
  for (const Lease& lease : leases_) {
    ports += lease.peer == peer && lease.firstExternal != lease.firstInternal ? lease.size : 0;
  }
  return ports;
}

bool LeaseTable::isHeld(const Lease& wanted) const {
  return std::ranges::any_of(leases_, [&](const Lease& lease) {
    return overlap(lease.external(), wanted.external()) && !complete(lease, wanted);
  });
}

std::bitset<65536> LeaseTable::heldPorts(std::uint8_t protocol) const {
  std::bitset<65536> held;
  for (const Lease& lease : leases_) {
    for (unsigned port = lease.firstExternal;
         lease.protocol == protocol && port < lease.firstExternal + lease.size; ++port) {
      held.set(port);
    }
  }
  return held;
}

std::vector<Lease> LeaseTable::remove(const std::function<bool(const Lease&)>& gone) {
  std::vector<Lease> removed;
  std::ranges::copy_if(leases_, std::back_inserter(removed), gone);
  std::erase_if(leases_, gone);
  return removed;
}

std::optional<BootTime> LeaseTable::nextExpiry() const {
  const auto first = std::ranges::min_element(leases_, {}, &Lease::expires);
  return first == leases_.end() ? std::nullopt : std::optional(first->expires);
}

}  // namespace adit::pcp

#include "nat/mapping.hpp"

#include <algorithm>

namespace adit::nat {
namespace {

constexpr unsigned kLargestPort = 65535;

std::string placed(const Mapping& mapping, std::string_view message) {
  const std::string text = fmt::format("mapping {}: {}", mapping.listenText(), message);
  return mapping.location.empty() ? text : fmt::format("{}: {}", mapping.location, text);
}

std::optional<std::string> problemOf(const Mapping& mapping) {
  if (mapping.firstPort == 0 || mapping.targetPort == 0) {
    return "port 0 cannot be mapped; ports are 1 to 65535";
  }
  if (mapping.firstPort > mapping.lastPort) {
    return fmt::format("the range {}-{} is reversed; write the smaller port first",
                       mapping.firstPort, mapping.lastPort);
  }
  const unsigned lastTarget = mapping.targetPort + (mapping.lastPort - mapping.firstPort);
  if (lastTarget > kLargestPort) {
    return fmt::format("the target range {}-{} passes 65535", mapping.targetPort, lastTarget);
  }
  if (!mapping.targetV4 && !mapping.targetV6) {
    return "it has no target address";
  }
  if ((mapping.targetV4 && !mapping.targetV4->isV4()) ||
      (mapping.targetV6 && !mapping.targetV6->isV6())) {
    return "a target address is of the wrong family";
  }
  if (mapping.listenAddress &&
      !(mapping.listenAddress->isV4() ? mapping.targetV4 : mapping.targetV6)) {
    return fmt::format("it listens on {}, but has no target of that family",
                       mapping.listenAddress->toString());
  }
  return std::nullopt;
}

bool shareAddress(const Mapping& a, const Mapping& b) {
  return !a.listenAddress || !b.listenAddress || *a.listenAddress == *b.listenAddress;
}

bool overlap(const Mapping& a, const Mapping& b) {
  return a.protocol == b.protocol && a.firstPort <= b.lastPort && b.firstPort <= a.lastPort &&
         shareAddress(a, b);
}

/// Pairs that overlap. Sorted by protocol and first port, a mapping can only meet those that start
/// before it ends.
void findOverlaps(const std::vector<Mapping>& mappings, std::vector<Error>& errors) {
  std::vector<const Mapping*> sorted;
  for (const Mapping& mapping : mappings) {
    sorted.push_back(&mapping);
  }
  std::ranges::stable_sort(sorted, {}, [](const Mapping* mapping) {
    return std::pair(mapping->protocol, mapping->firstPort);
  });
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    for (std::size_t j = i + 1; j < sorted.size(); ++j) {
      const Mapping& first = *sorted[i];
      const Mapping& second = *sorted[j];
      if (second.protocol != first.protocol || second.firstPort > first.lastPort) {
        break;
      }
      if (overlap(first, second)) {
        errors.push_back(
            Error{placed(second, fmt::format("it overlaps {}{}{}", first.listenText(),
                                             first.location.empty() ? "" : " of ", first.location)),
                  0});
      }
    }
  }
}

}  // namespace

std::string_view protocolName(Protocol protocol) {
  return protocol == Protocol::Tcp ? "tcp" : "udp";
}

std::string Mapping::listenText() const {
  std::string text;
  if (listenAddress) {
    text = listenAddress->isV6() ? fmt::format("[{}]:", listenAddress->toString())
                                 : fmt::format("{}:", listenAddress->toString());
  }
  text += fmt::format("{}/{}", protocolName(protocol), firstPort);
  if (lastPort != firstPort) {
    text += fmt::format("-{}", lastPort);
  }
  return text;
}

std::vector<Error> validate(const RulesetSpec& spec) {
  std::vector<Error> errors;
  for (const Mapping& mapping : spec.mappings) {
    if (const auto problem = problemOf(mapping)) {
      errors.push_back(Error{placed(mapping, *problem), 0});
    } else if (mapping.protocol == Protocol::Udp && spec.ownPort != 0 &&
               mapping.firstPort == spec.ownPort && mapping.lastPort == spec.ownPort) {
      errors.push_back(
          Error{placed(mapping, "it is the tunnel's own port, which is never mapped"), 0});
    }
  }
  if (!spec.mappings.empty() && spec.publicInterfaces.empty()) {
    errors.push_back(Error{"mappings need a public interface: set Public = NAME", 0});
  }
  findOverlaps(spec.mappings, errors);
  return errors;
}

}  // namespace adit::nat

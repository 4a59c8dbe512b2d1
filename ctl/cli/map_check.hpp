// map check: what is in the way of mappings.
#pragma once

#include <string>
#include <vector>

#include "cli/machine.hpp"
#include "nat/obstacles.hpp"

namespace adit::cli {

struct MapCheckArguments {
  std::string name;
  std::string listen;
  bool fix = false;
  bool yes = false;
  bool json = false;
};

/// The first leg of a mapping's way that fails; `leg` is empty where none is known to: "rules",
/// "firewall", "tunnel", "server" (dropped on this machine), "probe", "service", "reply path",
/// "target" or "route".
struct MapLeg {
  std::string listen;
  std::string leg;
  std::string detail;
};

/// Lets packets of its own come in by the public NIC (see travel()), so it needs CAP_NET_ADMIN and
/// CAP_NET_RAW. `wanted` is the only mapping
/// to look at; empty for all.
std::vector<MapLeg> checkMaps(const Machine& machine, const std::string& wanted,
                              const std::vector<nat::Obstacle>& obstacles);

int mapCheck(const MapCheckArguments& arguments);

}  // namespace adit::cli

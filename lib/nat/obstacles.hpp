// What other programs' firewalls drop of that which mappings need.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "nat/mapping.hpp"
#include "util/result.hpp"

namespace adit::nat {

/// A chain of another table, as libnftables lists it.
struct ChainName {
  std::string family;
  std::string table;
  std::string chain;
};

/// Lists the rules of one chain; null where it is gone.
using ChainReader = std::function<nlohmann::json(const ChainName& chain)>;

/// A base chain of somebody else's that drops what mappings need.
struct Obstacle {
  /// "chain FORWARD of table ip filter drops packets to mapped ports"
  std::string what;
  /// Shell text that lets it through at the place that its owner (ufw, firewalld, Docker, iptables,
  /// nft) provides for that, and shell text that takes it back.
  std::string fix;
  std::string undo;
  /// For a person.
  [[nodiscard]] std::string toString() const;
};

/// The base chains of the forward hook that drop packets from the public side into the tunnel, or
/// their answers; those of the input hook that drop the tunnel's own datagrams, or packets out of
/// the tunnel to a port of this host that the other end maps. `chains` is a listing of all chains.
/// A rule whose match is not understood and that may accept the packet is given the benefit of the
/// doubt. Rules of the older xtables are not seen.
std::vector<Obstacle> findObstacles(const RulesetSpec& spec, const nlohmann::json& chains,
                                    const ChainReader& read);

/// Those of the network namespace of the calling thread.
Result<std::vector<Obstacle>> obstaclesNow(const RulesetSpec& spec);

/// The base chains of the input hook that drop datagrams to the tunnel's own port out of `nic`,
/// whether there are mappings or not: for a side that is called. Of the calling thread's namespace.
Result<std::vector<Obstacle>> portObstaclesNow(const RulesetSpec& spec, const std::string& nic);

}  // namespace adit::nat

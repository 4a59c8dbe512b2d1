// What other programs' firewalls drop of that which mappings need.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "nat/mapping.hpp"

namespace adit::nat {

/// A chain of another table, as libnftables lists it.
struct ChainName {
  std::string family;
  std::string table;
  std::string chain;
};

/// Lists the rules of one chain; null where it is gone.
using ChainReader = std::function<nlohmann::json(const ChainName& chain)>;

/// One warning for each base chain of the forward hook that drops packets from the public side into
/// the tunnel, or their answers: it names the chain, its table, and the command that lets them
/// through (of ufw, Docker, firewalld, iptables or nft, by the names of tables and chains).
/// `chains` is a listing of all chains. A rule whose match is not understood and that may accept
/// the packet is given the benefit of the doubt. Rules of the older xtables are not seen.
std::vector<std::string> findObstacles(const RulesetSpec& spec, const nlohmann::json& chains,
                                       const ChainReader& read);

}  // namespace adit::nat

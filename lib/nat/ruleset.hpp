// RulesetSpec → libnftables JSON (libnftables-json(5)).
//
// One table `inet adit_NAME` of fixed chains and rules, whose sets and maps hold the mappings: the
// cost of a packet does not grow with their number, and a changed mapping is a changed element.
// Written for nft 1.0.6 and later.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "nat/element.hpp"
#include "nat/mapping.hpp"

namespace adit::nat {

/// The chain that takes packets from the public side; its first rule with an input interface names
/// the public NICs.
inline constexpr std::string_view kIncomingChain = "translate_incoming";

/// The commands that make the table without its elements: sets, maps, chains and rules.
nlohmann::json staticCommands(const RulesetSpec& spec);

/// One transaction that replaces the table, or makes it where it is absent: `add table`, `delete
/// table`, and the whole definition with all elements.
nlohmann::json buildRuleset(const RulesetSpec& spec);

/// The flow table of a ruleset with `offload`, and the rule that fills it, to be added to the
/// installed table: as text of nft(8), for the JSON form of nft 1.0.6 has no flow table that
/// counts.
std::string offloadCommands(const RulesetSpec& spec);

/// Empties the installed flow table: every flow's next packet is judged by the rules again.
std::string offloadRenewal(const RulesetSpec& spec);

/// Commands that the kernel accepts in a dry run where it has such flow tables.
std::string flowTableProbe();

/// One transaction that changes nothing but elements.
nlohmann::json buildElementUpdate(std::string_view table, const ElementDiff& diff);

/// A transaction that the kernel accepts in a dry run where it can tell unbound sockets.
nlohmann::json buildSocketProbe();

/// One transaction that deletes the table, whether it is there or not.
nlohmann::json buildRemoval(std::string_view table);

/// What a table says about itself in its `state` set, so that a later run can tell whether it is
/// still what was built, whatever words this version of libnftables lists it with.
struct TableMark {
  /// Hash of staticCommands().
  std::string built;
  /// Hash of the listing, without elements and handles, right after it was installed.
  std::string listed;
  friend bool operator==(const TableMark&, const TableMark&) = default;
};
std::string hashOfStatic(const RulesetSpec& spec);
std::string hashOfListing(const nlohmann::json& listing);
/// The transaction that writes the mark, and the mark in a listing (empty where there is none).
nlohmann::json buildMark(std::string_view table, const TableMark& mark);
TableMark markOfListing(const nlohmann::json& listing);

}  // namespace adit::nat

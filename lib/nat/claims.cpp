#include "nat/claims.hpp"

#include <algorithm>

#include "nat/element.hpp"
#include "nat/nft.hpp"
#include "nat/ruleset.hpp"

namespace adit::nat {
namespace {

using nlohmann::json;

/// The names that a rule of the incoming chain compares the input interface with.
std::vector<std::string> inputInterfaces(const json& rule) {
  std::vector<std::string> names;
  for (const json& expression : rule.value("expr", json::array())) {
    const json match = expression.value("match", json::object());
    if (!match.contains("right") ||
        match.value("left", json()) != json{{"meta", {{"key", "iifname"}}}}) {
      continue;
    }
    const json& right = match["right"];
    for (const json& name : right.is_object() ? right.value("set", json::array()) : json{right}) {
      if (name.is_string()) {
        names.push_back(name.get<std::string>());
      }
    }
  }
  return names;
}

/// Of the first rule of that chain that translates: those after it are about the tunnel.
std::vector<std::string> publicInterfacesOf(const json& listing) {
  for (const json& object : listing.value("nftables", json::array())) {
    if (object.contains("rule") && object["rule"].value("chain", "") == kIncomingChain) {
      if (auto names = inputInterfaces(object["rule"]); !names.empty()) {
        return names;
      }
    }
  }
  return {};
}

bool overlap(const Mapping& mapping, const Claim& claim) {
  const bool family = claim.v6 ? mapping.targetV6.has_value() : mapping.targetV4.has_value();
  const bool address = !mapping.listenAddress ||
                       (claim.listenAddress ? *mapping.listenAddress == *claim.listenAddress
                                            : mapping.listenAddress->isV6() == claim.v6);
  return family && address && mapping.protocol == claim.protocol &&
         mapping.firstPort <= claim.lastPort && claim.firstPort <= mapping.lastPort;
}

bool sharePublicSide(const RulesetSpec& spec, const Claim& claim) {
  return spec.publicInterfaces.empty() || claim.publicInterfaces.empty() ||
         std::ranges::any_of(spec.publicInterfaces, [&](const std::string& name) {
           return std::ranges::find(claim.publicInterfaces, name) != claim.publicInterfaces.end();
         });
}

}  // namespace

std::vector<Claim> claimsOfListing(std::string_view tunnel, const json& listing) {
  const std::vector<std::string> publicInterfaces = publicInterfacesOf(listing);
  std::vector<Claim> claims;
  for (const auto& [id, element] : elementsOfListing(listing)) {
    const bool v6 = id.first == fmt::format("{}6", sets::kTarget);
    if ((!v6 && id.first != fmt::format("{}4", sets::kTarget)) ||
        (element.protocol != IPPROTO_TCP && element.protocol != IPPROTO_UDP)) {
      continue;
    }
    Claim claim{.tunnel = std::string(tunnel),
                .protocol = static_cast<Protocol>(element.protocol),
                .listenAddress = std::nullopt,
                .v6 = v6,
                .firstPort = element.firstPort,
                .lastPort = element.lastPort,
                .publicInterfaces = publicInterfaces};
    const json& address = element.key["concat"].back();
    if (address.is_string()) {
      if (const auto parsed = IpAddress::parse(address.get<std::string>())) {
        claim.listenAddress = *parsed;
      }
    }
    claims.push_back(std::move(claim));
  }
  return claims;
}

Result<std::vector<Claim>> claimsOfOthers(std::string_view interface) {
  auto nft = Nft::open();
  if (!nft) {
    return tl::unexpected(nft.error());
  }
  const auto tables = nft->tableNames("inet");
  if (!tables) {
    return tl::unexpected(tables.error());
  }
  std::vector<Claim> claims;
  for (const std::string& table : *tables) {
    if (!table.starts_with(kTablePrefix) || table.substr(kTablePrefix.size()) == interface) {
      continue;
    }
    const auto listing = nft->listTable(table);
    if (listing && *listing) {
      std::ranges::move(claimsOfListing(table.substr(kTablePrefix.size()), **listing),
                        std::back_inserter(claims));
    }
  }
  return claims;
}

std::vector<Error> claimConflicts(const RulesetSpec& spec, const std::vector<Claim>& claims) {
  std::vector<Error> errors;
  for (const Mapping& mapping : spec.mappings) {
    const auto holder = std::ranges::find_if(claims, [&](const Claim& claim) {
      return !mapping.overrideListener && overlap(mapping, claim) && sharePublicSide(spec, claim);
    });
    if (holder != claims.end()) {
      errors.push_back(Error{
          fmt::format("{}{}mapping {} would take the port away from the tunnel {}, which maps it "
                      "already; choose another port, or write Override = yes if that is meant",
                      mapping.location, mapping.location.empty() ? "" : ": ", mapping.listenText(),
                      holder->tunnel),
          0});
    }
  }
  return errors;
}

}  // namespace adit::nat

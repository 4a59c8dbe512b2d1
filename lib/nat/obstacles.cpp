#include "nat/obstacles.hpp"

#include <algorithm>
#include <optional>

namespace adit::nat {
namespace {

using nlohmann::json;

/// The packet that is asked about: TCP or UDP, translated by a mapping.
struct Probe {
  std::string input;
  std::string output;
  /// The answer of a connection that is established; else the first packet.
  bool reply = false;
};

enum class Truth : std::uint8_t { No, Yes, Unknown };
enum class Fate : std::uint8_t { Accepted, Dropped, Unknown, Undecided };

/// Deeper than any firewall nests its chains.
constexpr int kDeepest = 16;

Truth truth(bool value) {
  return value ? Truth::Yes : Truth::No;
}

Truth negated(Truth value) {
  return value == Truth::Unknown ? value : truth(value == Truth::No);
}

std::vector<json> valuesOf(const json& right) {
  if (right.is_array()) {
    return right.get<std::vector<json>>();
  }
  if (right.is_object() && right.contains("set") && right["set"].is_array()) {
    return right["set"].get<std::vector<json>>();
  }
  return {right};
}

/// A name of a rule may end in "*".
bool namesInterface(const json& wanted, const std::string& name) {
  if (!wanted.is_string()) {
    return false;
  }
  const auto& text = wanted.get_ref<const std::string&>();
  return text.ends_with('*') ? name.starts_with(text.substr(0, text.size() - 1)) : text == name;
}

/// Bits of enum nf_conntrack state and status, which nft prints by name or by number.
constexpr unsigned kEstablished = 2;
constexpr unsigned kNew = 8;
constexpr unsigned kTranslatedDestination = 32;

bool isBit(const json& value, std::string_view name, unsigned bit) {
  return value.is_number_unsigned() ? (value.get<unsigned>() & bit) != 0 : value == name;
}

bool isState(const json& value, const Probe& probe) {
  return probe.reply ? isBit(value, "established", kEstablished) : isBit(value, "new", kNew);
}

Truth evaluate(const json& match, const Probe& probe) {
  const json left = match.value("left", json::object());
  const std::vector<json> right = valuesOf(match.value("right", json()));
  const auto isAny = [&](const auto& holds) { return truth(std::ranges::any_of(right, holds)); };
  const auto isKey = [&](const char* kind, const char* key) {
    return left.is_object() && left.contains(kind) && left[kind].is_object() &&
           left[kind].value("key", "") == key;
  };
  Truth result = Truth::Unknown;
  if (isKey("meta", "iifname") || isKey("meta", "iif")) {
    result = isAny([&](const json& name) { return namesInterface(name, probe.input); });
  } else if (isKey("meta", "oifname") || isKey("meta", "oif")) {
    result = isAny([&](const json& name) { return namesInterface(name, probe.output); });
  } else if (isKey("ct", "state")) {
    result = isAny([&](const json& state) { return isState(state, probe); });
  } else if (isKey("ct", "status")) {
    result =
        isAny([](const json& status) { return isBit(status, "dnat", kTranslatedDestination); });
  }
  return match.value("op", "") == "!=" ? negated(result) : result;
}

/// Matches of iptables' own; nft does not show what they are about. conntrack stands for
/// "established", as nearly all rules have it.
Truth evaluateExtension(const json& extension, const Probe& probe) {
  const std::string name = extension.value("name", "");
  if (name == "comment") {
    return Truth::Yes;
  }
  return name == "conntrack" || name == "state" ? truth(probe.reply) : Truth::Unknown;
}

class Walk {
 public:
  Walk(Probe probe, const ChainReader& read) : probe_(std::move(probe)), read_(read) {}

  Fate through(const ChainName& chain, int depth = 0) {
    if (depth > kDeepest) {
      return Fate::Unknown;
    }
    const json listing = read_(chain);
    for (const json& object :
         listing.is_object() ? listing.value("nftables", json::array()) : json::array()) {
      if (!object.contains("rule")) {
        continue;
      }
      bool returned = false;
      const Fate fate = rule(object["rule"].value("expr", json::array()), chain, depth, returned);
      if (fate != Fate::Undecided || returned) {
        return fate;
      }
    }
    return Fate::Undecided;
  }

 private:
  Fate rule(const json& expressions, const ChainName& chain, int depth, bool& returned) {
    Truth matched = Truth::Yes;
    for (const json& expression : expressions) {
      if (!expression.is_object() || expression.empty()) {
        continue;
      }
      const std::string kind = expression.begin().key();
      const json& body = expression.begin().value();
      Truth part = Truth::Yes;
      if (kind == "match") {
        part = evaluate(body, probe_);
      } else if (kind == "xt" && body.is_object() && body.value("type", "") == "match") {
        part = evaluateExtension(body, probe_);
      } else if (kind == "accept" || kind == "drop" || kind == "reject" || kind == "return" ||
                 kind == "jump" || kind == "goto" || kind == "xt" || kind == "vmap") {
        return verdict(kind, body, matched, chain, depth, returned);
      } else if (kind != "counter" && kind != "log" && kind != "mangle") {
        part = Truth::Unknown;
      }
      if (part == Truth::No) {
        return Fate::Undecided;
      }
      matched = part == Truth::Unknown ? part : matched;
    }
    return Fate::Undecided;
  }

  /// What is dropped by a match that is not understood is not held against it.
  static Fate fate(bool accepts, Truth matched) {
    if (matched == Truth::Yes) {
      return accepts ? Fate::Accepted : Fate::Dropped;
    }
    return accepts ? Fate::Unknown : Fate::Undecided;
  }

  Fate verdict(const std::string& kind, const json& body, Truth matched, const ChainName& chain,
               int depth, bool& returned) {
    if (kind == "accept") {
      return fate(true, matched);
    }
    const std::string target = kind == "xt" && body.is_object() ? body.value("name", "") : "";
    if (kind == "drop" || kind == "reject" || target == "REJECT" || target == "DROP") {
      return fate(false, matched);
    }
    if (kind == "vmap") {
      return verdictOfState(body, matched, chain, depth, returned);
    }
    if (kind == "return") {
      returned = matched == Truth::Yes;
    } else if ((kind == "jump" || kind == "goto") && body.is_object()) {
      const Fate inner = through({chain.family, chain.table, body.value("target", "")}, depth + 1);
      returned = kind == "goto" && matched == Truth::Yes;
      return inner == Fate::Accepted || inner == Fate::Dropped
                 ? fate(inner == Fate::Accepted, matched)
                 : inner;
    }
    return Fate::Undecided;
  }

  /// `ct state vmap { established : accept, … }`, the usual first rule of an nftables.conf.
  Fate verdictOfState(const json& body, Truth matched, const ChainName& chain, int depth,
                      bool& returned) {
    if (!body.is_object() || body.value("key", json()) != json{{"ct", {{"key", "state"}}}}) {
      return Fate::Unknown;
    }
    for (const json& entry : valuesOf(body.value("data", json()))) {
      if (entry.is_array() && entry.size() == 2 && entry[1].is_object() && !entry[1].empty() &&
          isState(entry[0], probe_)) {
        return verdict(entry[1].begin().key(), entry[1].begin().value(), matched, chain, depth,
                       returned);
      }
    }
    return Fate::Undecided;
  }

  Probe probe_;
  const ChainReader& read_;
};

bool hasChain(const json& chains, const ChainName& base, std::string_view prefix) {
  return std::ranges::any_of(chains.value("nftables", json::array()), [&](const json& object) {
    return object.contains("chain") && object["chain"].value("family", "") == base.family &&
           object["chain"].value("table", "") == base.table &&
           object["chain"].value("name", "").starts_with(prefix);
  });
}

/// The place at which each tool wants such a rule.
std::string remedy(const ChainName& base, const json& chains, const std::string& nic,
                   const std::string& tunnel) {
  const bool iptables = base.chain == "FORWARD" && base.table == "filter" && base.family != "inet";
  if (iptables && hasChain(chains, base, "ufw-")) {
    return fmt::format("ufw route allow in on {} out on {}", nic, tunnel);
  }
  if (base.table == "firewalld") {
    return fmt::format(
        "firewall-cmd --permanent --zone=trusted --add-interface={1} && firewall-cmd --permanent "
        "--new-policy=adit && firewall-cmd --permanent --policy=adit --add-ingress-zone=$(firewall-"
        "cmd --get-zone-of-interface={0}) && firewall-cmd --permanent --policy=adit "
        "--add-egress-zone=trusted && firewall-cmd --permanent --policy=adit --set-target=ACCEPT "
        "&& "
        "firewall-cmd --reload",
        nic, tunnel);
  }
  if (iptables) {
    const char* program = base.family == "ip6" ? "ip6tables" : "iptables";
    const char* chain = hasChain(chains, base, "DOCKER-USER") ? "DOCKER-USER" : "FORWARD";
    return fmt::format(
        "{0} -I {1} -i {2} -o {3} -j ACCEPT && {0} -I {1} -i {3} -o {2} -m conntrack --ctstate "
        "RELATED,ESTABLISHED -j ACCEPT",
        program, chain, nic, tunnel);
  }
  return fmt::format(
      "nft insert rule {0} {1} {2} iifname {3} oifname {4} accept && nft insert rule {0} {1} {2} "
      "iifname {4} oifname {3} ct state established,related accept",
      base.family, base.table, base.chain, nic, tunnel);
}

bool serves(const RulesetSpec& spec, const std::string& family) {
  return std::ranges::any_of(spec.mappings, [&](const Mapping& mapping) {
    return family == "inet" || (family == "ip" && mapping.targetV4) ||
           (family == "ip6" && mapping.targetV6);
  });
}

}  // namespace

std::vector<std::string> findObstacles(const RulesetSpec& spec, const json& chains,
                                       const ChainReader& read) {
  std::vector<std::string> warnings;
  if (spec.publicInterfaces.empty()) {
    return warnings;
  }
  const std::string& nic = spec.publicInterfaces.front();
  for (const json& object : chains.value("nftables", json::array())) {
    if (!object.contains("chain") || object["chain"].value("hook", "") != "forward") {
      continue;
    }
    const json& base = object["chain"];
    const ChainName name{base.value("family", ""), base.value("table", ""), base.value("name", "")};
    if (name.table.starts_with(kTablePrefix) || !serves(spec, name.family)) {
      continue;
    }
    for (const bool reply : {false, true}) {
      const Probe probe{reply ? spec.interface : nic, reply ? nic : spec.interface, reply};
      const Fate fate = Walk(probe, read).through(name);
      if (fate == Fate::Dropped ||
          (fate == Fate::Undecided && base.value("policy", "accept") == "drop")) {
        warnings.push_back(
            fmt::format("chain {} of table {} {} drops {} mapped ports; to let them through: {}",
                        name.chain, name.family, name.table, reply ? "answers of" : "packets to",
                        remedy(name, chains, nic, spec.interface)));
        break;
      }
    }
  }
  return warnings;
}

}  // namespace adit::nat

#include "nat/obstacles.hpp"

#include <algorithm>
#include <optional>

#include "nat/nft.hpp"

namespace adit::nat {
namespace {

using nlohmann::json;

/// The packet that is asked about.
struct Probe {
  std::string input;
  /// Empty for a packet to this host itself.
  std::string output = {};
  /// The answer of a connection that is established; else the first packet.
  bool reply = false;
  /// Translated by a mapping.
  bool translated = false;
  /// Where they are known; a forwarded packet may be any.
  std::optional<Protocol> protocol = std::nullopt;
  std::uint16_t port = 0;
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

/// TCP and UDP by name or number.
bool namesProtocol(const json& value, Protocol protocol) {
  return value.is_number_unsigned() ? value.get<unsigned>() == static_cast<unsigned>(protocol)
                                    : value == protocolName(protocol);
}

bool namesPort(const json& value, std::uint16_t port) {
  if (value.is_object() && value.contains("range") && value["range"].is_array() &&
      value["range"].size() == 2 && value["range"][0].is_number_unsigned() &&
      value["range"][1].is_number_unsigned()) {
    return value["range"][0].get<unsigned>() <= port && port <= value["range"][1].get<unsigned>();
  }
  return value.is_number_unsigned() && value.get<unsigned>() == port;
}

/// `udp dport 68`, `tcp dport { 22, 80-90 }`, `ip protocol tcp`, `tcp flags syn`.
Truth evaluatePayload(const json& payload, const std::vector<json>& right, const Probe& probe) {
  const std::string header = payload.value("protocol", "");
  if (!probe.protocol) {
    return header == "icmp" || header == "icmpv6" ? Truth::No : Truth::Unknown;
  }
  const std::string field = payload.value("field", "");
  const bool transport = header == "tcp" || header == "udp" || header == "th";
  if (transport && header != "th" && header != protocolName(*probe.protocol)) {
    return Truth::No;
  }
  if (transport && field == "dport") {
    return truth(std::ranges::any_of(
        right, [&](const json& value) { return namesPort(value, probe.port); }));
  }
  if (field == "protocol" || field == "nexthdr") {
    return truth(std::ranges::any_of(
        right, [&](const json& value) { return namesProtocol(value, *probe.protocol); }));
  }
  return header == "icmp" || header == "icmpv6" ? Truth::No : Truth::Unknown;
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
    result = truth(probe.translated && isAny([](const json& status) {
                                         return isBit(status, "dnat", kTranslatedDestination);
                                       }) == Truth::Yes);
  } else if (isKey("meta", "l4proto") && probe.protocol) {
    result = isAny([&](const json& value) { return namesProtocol(value, *probe.protocol); });
  } else if (isKey("meta", "l4proto")) {
    // Mapped packets are TCP or UDP.
    const auto mappable = [](const json& value) {
      return namesProtocol(value, Protocol::Tcp) || namesProtocol(value, Protocol::Udp);
    };
    result = std::ranges::any_of(right, mappable) ? Truth::Unknown : Truth::No;
  } else if (left.is_object() && left.contains("payload") && left["payload"].is_object()) {
    // A header that the packet does not have matches no comparison, not even a negated one.
    result = evaluatePayload(left["payload"], right, probe);
    const std::string header = left["payload"].value("protocol", "");
    if (result == Truth::No && probe.protocol && (header == "tcp" || header == "udp") &&
        header != protocolName(*probe.protocol)) {
      return result;
    }
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
    // By a match that is not understood.
    bool mayHaveReturned = false;
    for (const json& object :
         listing.is_object() ? listing.value("nftables", json::array()) : json::array()) {
      if (!object.contains("rule")) {
        continue;
      }
      Truth returned = Truth::No;
      const Fate fate = rule(object["rule"].value("expr", json::array()), chain, depth, returned);
      if (fate != Fate::Undecided || returned == Truth::Yes) {
        return mayHaveReturned ? inDoubt(fate) : fate;
      }
      mayHaveReturned = mayHaveReturned || returned == Truth::Unknown;
    }
    return Fate::Undecided;
  }

 private:
  /// Of what follows a rule that may have ended the chain.
  static Fate inDoubt(Fate fate) {
    return fate == Fate::Accepted ? Fate::Unknown : fate == Fate::Dropped ? Fate::Undecided : fate;
  }

  Fate rule(const json& expressions, const ChainName& chain, int depth, Truth& returned) {
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
               int depth, Truth& returned) {
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
      returned = matched;
    } else if ((kind == "jump" || kind == "goto") && body.is_object()) {
      const Fate inner = through({chain.family, chain.table, body.value("target", "")}, depth + 1);
      returned = kind == "goto" ? matched : Truth::No;
      return inner == Fate::Accepted || inner == Fate::Dropped
                 ? fate(inner == Fate::Accepted, matched)
                 : inner;
    }
    return Fate::Undecided;
  }

  /// `ct state vmap { established : accept, … }`, the usual first rule of an nftables.conf.
  Fate verdictOfState(const json& body, Truth matched, const ChainName& chain, int depth,
                      Truth& returned) {
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

/// Whose table a base chain is in, by the names that each tool gives.
enum class Owner : std::uint8_t { Ufw, Firewalld, Docker, Iptables, Nftables };

Owner ownerOf(const ChainName& base, const json& chains) {
  if (base.table == "firewalld") {
    return Owner::Firewalld;
  }
  if (base.table != "filter" || base.family == "inet" ||
      (base.chain != "FORWARD" && base.chain != "INPUT")) {
    return Owner::Nftables;
  }
  if (hasChain(chains, base, "ufw-") || hasChain(chains, base, "ufw6-")) {
    return Owner::Ufw;
  }
  return base.chain == "FORWARD" && hasChain(chains, base, "DOCKER-USER") ? Owner::Docker
                                                                          : Owner::Iptables;
}

/// Shell text that does, and shell text that undoes.
struct Remedy {
  std::string fix;
  std::string undo;
};

std::string zoneOf(const std::string& nic) {
  return fmt::format(
      "$(firewall-cmd --get-zone-of-interface={0} 2>/dev/null || firewall-cmd --get-default-zone)",
      nic);
}

/// Rules of ours in a chain of nft, found again by their comment.
Remedy nftRemedy(const ChainName& base, const std::string& tunnel,
                 const std::vector<std::string>& rules) {
  const std::string chain = fmt::format("{} {} {}", base.family, base.table, base.chain);
  Remedy remedy;
  for (const std::string& rule : rules) {
    remedy.fix += fmt::format("{}nft insert rule {} {} comment '\"adit {}\"'",
                              remedy.fix.empty() ? "" : " && ", chain, rule, tunnel);
  }
  remedy.undo = fmt::format(
      "nft -a list chain {0} | sed -n 's/.*comment \"adit {1}\" # handle //p' | xargs -r -n1 nft "
      "delete rule {0} handle",
      chain, tunnel);
  return remedy;
}

Remedy iptablesRemedy(const ChainName& base, std::string_view chain,
                      const std::vector<std::string>& rules) {
  const std::string_view program = base.family == "ip6" ? "ip6tables" : "iptables";
  Remedy remedy;
  for (const std::string& rule : rules) {
    remedy.fix +=
        fmt::format("{}{} -I {} {}", remedy.fix.empty() ? "" : " && ", program, chain, rule);
    remedy.undo +=
        fmt::format("{}{} -D {} {}", remedy.undo.empty() ? "" : "; ", program, chain, rule);
  }
  return remedy;
}

/// For packets from the public NIC into the tunnel and back, at the place at which each tool wants
/// such a rule.
Remedy forwardRemedy(const ChainName& base, const json& chains, const std::string& nic,
                     const std::string& tunnel) {
  const Owner owner = ownerOf(base, chains);
  switch (owner) {
    case Owner::Ufw:
      return {fmt::format("ufw route allow in on {} out on {}", nic, tunnel),
              fmt::format("ufw route delete allow in on {} out on {}", nic, tunnel)};
    case Owner::Firewalld:
      return {
          fmt::format("firewall-cmd --permanent --zone=trusted --add-interface={1} && firewall-cmd "
                      "--permanent --new-policy={1} && firewall-cmd --permanent --policy={1} "
                      "--add-ingress-zone={0} && firewall-cmd --permanent --policy={1} "
                      "--add-egress-zone=trusted && firewall-cmd --permanent --policy={1} "
                      "--set-target=ACCEPT && firewall-cmd --reload",
                      zoneOf(nic), tunnel),
          fmt::format("firewall-cmd --permanent --delete-policy={0}; firewall-cmd --permanent "
                      "--zone=trusted --remove-interface={0}; firewall-cmd --reload",
                      tunnel)};
    case Owner::Docker:
    case Owner::Iptables:
      return iptablesRemedy(
          base, owner == Owner::Docker ? "DOCKER-USER" : "FORWARD",
          {fmt::format("-i {} -o {} -j ACCEPT", nic, tunnel),
           fmt::format("-i {} -o {} -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT", tunnel,
                       nic)});
    case Owner::Nftables:
      break;
  }
  return nftRemedy(
      base, tunnel,
      {fmt::format("iifname {} oifname {} accept", nic, tunnel),
       fmt::format("iifname {} oifname {} ct state established,related accept", tunnel, nic)});
}

/// For packets to a port of this host.
Remedy inputRemedy(const ChainName& base, const json& chains, const Probe& probe,
                   const std::string& tunnel) {
  const std::string& nic = probe.input;
  const std::string_view protocol = protocolName(*probe.protocol);
  switch (ownerOf(base, chains)) {
    case Owner::Ufw:
      return {fmt::format("ufw allow in on {} to any port {} proto {}", nic, probe.port, protocol),
              fmt::format("ufw delete allow in on {} to any port {} proto {}", nic, probe.port,
                          protocol)};
    case Owner::Firewalld:
      return {fmt::format("firewall-cmd --permanent --zone={0} --add-port={1}/{2} && firewall-cmd "
                          "--reload",
                          zoneOf(nic), probe.port, protocol),
              fmt::format("firewall-cmd --permanent --zone={0} --remove-port={1}/{2}; firewall-cmd "
                          "--reload",
                          zoneOf(nic), probe.port, protocol)};
    case Owner::Docker:
    case Owner::Iptables:
      return iptablesRemedy(
          base, "INPUT",
          {fmt::format("-i {} -p {} --dport {} -j ACCEPT", nic, protocol, probe.port)});
    case Owner::Nftables:
      break;
  }
  return nftRemedy(base, tunnel,
                   {fmt::format("iifname {} {} dport {} accept", nic, protocol, probe.port)});
}

bool serves(const RulesetSpec& spec, const std::string& family) {
  return std::ranges::any_of(spec.mappings, [&](const Mapping& mapping) {
    return family == "inet" || (family == "ip" && mapping.targetV4) ||
           (family == "ip6" && mapping.targetV6);
  });
}

/// What a chain does not let through, in words.
struct Question {
  Probe probe;
  std::string what;
};

std::vector<Question> forwardQuestions(const RulesetSpec& spec) {
  if (spec.mappings.empty()) {
    return {};
  }
  const std::string& nic = spec.publicInterfaces.front();
  return {{{.input = nic, .output = spec.interface, .reply = false, .translated = true},
           "packets to mapped ports"},
          {{.input = spec.interface, .output = nic, .reply = true, .translated = true},
           "answers of mapped ports"}};
}

Question portQuestion(const std::string& nic, std::uint16_t port) {
  return {{.input = nic, .protocol = Protocol::Udp, .port = port},
          fmt::format("the tunnel's own packets (udp/{})", port)};
}

/// The tunnel's own port where peers call; services of this host that the tunnel's other end maps.
std::vector<Question> inputQuestions(const RulesetSpec& spec) {
  std::vector<Question> questions;
  if (!spec.mappings.empty() && spec.ownPort != 0) {
    questions.push_back(portQuestion(spec.publicInterfaces.front(), spec.ownPort));
  }
  for (const Mapping& mapping : spec.exposure ? spec.exposure->declared : std::vector<Mapping>{}) {
    const bool own = std::ranges::any_of(spec.tunnelAddresses, [&](const IpAddress& address) {
      return address == mapping.targetV4 || address == mapping.targetV6;
    });
    if (own) {
      questions.push_back(
          {{.input = spec.interface, .protocol = mapping.protocol, .port = mapping.targetPort},
           fmt::format("packets out of the tunnel to {}/{}", protocolName(mapping.protocol),
                       mapping.targetPort)});
    }
  }
  return questions;
}

std::vector<Obstacle> askChains(const RulesetSpec& spec, const std::vector<Question>& forwarded,
                                const std::vector<Question>& delivered, const json& chains,
                                const ChainReader& read) {
  std::vector<Obstacle> obstacles;
  for (const json& object : chains.value("nftables", json::array())) {
    const std::string hook = object.contains("chain") ? object["chain"].value("hook", "") : "";
    if (hook != "forward" && hook != "input") {
      continue;
    }
    const json& base = object["chain"];
    const ChainName name{base.value("family", ""), base.value("table", ""), base.value("name", "")};
    const bool forward = hook == "forward";
    if (name.table.starts_with(kTablePrefix) || (forward && !serves(spec, name.family)) ||
        (name.family != "inet" && name.family != "ip" && name.family != "ip6")) {
      continue;
    }
    for (const Question& question : forward ? forwarded : delivered) {
      const Fate fate = Walk(question.probe, read).through(name);
      if (fate != Fate::Dropped &&
          (fate != Fate::Undecided || base.value("policy", "accept") != "drop")) {
        continue;
      }
      const Remedy remedy =
          forward ? forwardRemedy(name, chains, spec.publicInterfaces.front(), spec.interface)
                  : inputRemedy(name, chains, question.probe, spec.interface);
      obstacles.push_back({fmt::format("chain {} of table {} {} drops {}", name.chain, name.family,
                                       name.table, question.what),
                           remedy.fix, remedy.undo});
      if (forward) {
        break;
      }
    }
  }
  return obstacles;
}

using Finder = std::function<std::vector<Obstacle>(const json& chains, const ChainReader& read)>;

Result<std::vector<Obstacle>> findNow(const Finder& find) {
  auto nft = Nft::open();
  if (!nft) {
    return tl::unexpected(nft.error());
  }
  const auto chains = nft->listChains();
  if (!chains) {
    return tl::unexpected(chains.error());
  }
  return find(*chains, [&](const ChainName& name) {
    return nft->listChain(name.family, name.table, name.chain).value_or(json());
  });
}

}  // namespace

std::string Obstacle::toString() const {
  return fmt::format("{}; to let them through: {}", what, fix);
}

std::vector<Obstacle> findObstacles(const RulesetSpec& spec, const json& chains,
                                    const ChainReader& read) {
  if (!spec.mappings.empty() && spec.publicInterfaces.empty()) {
    return {};
  }
  return askChains(spec, forwardQuestions(spec), inputQuestions(spec), chains, read);
}

Result<std::vector<Obstacle>> obstaclesNow(const RulesetSpec& spec) {
  return findNow([&](const json& chains, const ChainReader& read) {
    return findObstacles(spec, chains, read);
  });
}

Result<std::vector<Obstacle>> portObstaclesNow(const RulesetSpec& spec, const std::string& nic) {
  return findNow([&](const json& chains, const ChainReader& read) {
    return askChains(spec, {}, {portQuestion(nic, spec.ownPort)}, chains, read);
  });
}

}  // namespace adit::nat

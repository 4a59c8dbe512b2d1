#include "nat/ruleset.hpp"

#include <sodium.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <iterator>
#include <map>
#include <span>
#include <utility>

#include "nat/expression.hpp"

namespace adit::nat {
namespace {

using namespace expression;

/// Priorities (nft(8), "Standard priority names"). Ours before Docker's and others' dstnat: a
/// mapping that may shadow a local listener has to see the packet first. What is for a local
/// socket comes after them: a port that Docker publishes has its proxy's socket too.
constexpr int kRaw = -300;
constexpr int kMangle = -150;
constexpr int kBeforeDestinationNat = -110;
constexpr int kAfterDestinationNat = -90;
constexpr int kFilter = 0;
constexpr int kSourceNat = 100;

constexpr std::string_view kTranslate = "translate";
/// No keyword of nft: some commands go to it as text.
constexpr std::string_view kOffload = "fast_path";
constexpr std::string_view kIntoFlowTable = "into_flow_table";

/// TCP and IP headers without options: what an MSS is below an MTU.
constexpr std::uint32_t kHeadersV4 = 40;
constexpr std::uint32_t kHeadersV6 = 60;

/// RFC 1918, RFC 6598, RFC 4193: addresses that the Internet does not route.
constexpr std::array kPrivate = {"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10",
                                 "fc00::/7"};

struct Family {
  std::string_view digit;
  std::string_view protocol;   // of a payload expression
  std::string_view transport;  // the field of its header that names the transport protocol
  std::string_view translate;  // of a dnat statement
  std::string_view addressType;
  std::string_view connectionDestination;
  bool v6;
};
constexpr std::array kFamilies = {
    Family{"4", "ip", "protocol", "ip", "ipv4_addr", "ip daddr", false},
    Family{"6", "ip6", "nexthdr", "ip6", "ipv6_addr", "ip6 daddr", true},
};

std::string named(std::string_view set, const Family& family) {
  return fmt::format("{}{}", set, family.digit);
}

json destination(const Family& family) {
  return payload(family.protocol, "daddr");
}

/// Of the header, not `meta l4proto`: in a key of intervals nft 1.0.6 makes of that one byte a
/// conversion of two, which newer kernels (6.12.117) refuse.
json transport(const Family& family) {
  return payload(family.protocol, family.transport);
}

/// dport . protocol . daddr, with `more` behind it. The port comes first: the kernel looks a field
/// of intervals up by all elements that the fields before it left, and few have the same port.
json packetKey(const Family& family, std::vector<json> more = {}) {
  std::vector<json> parts{payload("th", "dport"), transport(family), destination(family)};
  std::ranges::move(more, std::back_inserter(parts));
  return concat(std::move(parts));
}

/// The same as it was before our translation.
json originalKey(const Family& family) {
  return concat(
      {ctOriginal("proto-dst"), transport(family), ctOriginal(family.connectionDestination)});
}

json networkText(const Prefix& prefix) {
  return {{"prefix", {{"addr", prefix.address().toString()}, {"len", prefix.length()}}}};
}

/// Builds the commands of one table.
class Builder {
 public:
  explicit Builder(const RulesetSpec& spec)
      : spec_(spec),
        table_(spec.tableName()),
        limited_(std::ranges::any_of(
            spec.mappings, [](const Mapping& mapping) { return mapping.rate.has_value(); })) {}

  json build() {
    addSet(std::string(sets::kState), {"mark"}, false);
    if (!spec_.publicInterfaces.empty()) {
      addMappingSets();
      addTranslation();
      addHairpinForThisHost();
      addSourceTranslation();
      addForwarding();
    }
    addSegmentSize();
    if (!spec_.masked.empty()) {
      addMaskedTargets();
    }
    if (spec_.reply) {
      addReplyMarks(*spec_.reply);
    }
    if (spec_.answers) {
      addUdpAnswers(*spec_.answers);
    }
    if (spec_.exposure) {
      addExposure(*spec_.exposure);
    }
    if (spec_.guard) {
      addGuard(*spec_.guard);
    }
    return std::move(commands_);
  }

 private:
  void add(std::string_view kind, json object) {
    object["family"] = "inet";
    object["table"] = table_;
    commands_.push_back({{"add", {{kind, std::move(object)}}}});
  }

  void addSet(const std::string& name, const std::vector<std::string>& type, bool intervals,
              std::string_view mapTo = {}) {
    json object = {{"name", name}};
    object["type"] = type.size() == 1 ? json(type.front()) : json(type);
    if (intervals) {
      object["flags"] = {"interval"};
    }
    if (!mapTo.empty()) {
      object["map"] = mapTo;
    }
    add(mapTo.empty() ? "set" : "map", std::move(object));
  }

  void addChain(std::string_view name) { add("chain", {{"name", name}}); }

  void addBaseChain(std::string_view name, std::string_view type, std::string_view hook,
                    int priority) {
    add("chain",
        {{"name", name}, {"type", type}, {"hook", hook}, {"prio", priority}, {"policy", "accept"}});
  }

  void addRule(std::string_view chain, std::vector<json> expressions) {
    add("rule", {{"chain", chain}, {"expr", std::move(expressions)}});
  }

  [[nodiscard]] json fromPublic() const {
    std::vector<json> names(spec_.publicInterfaces.begin(), spec_.publicInterfaces.end());
    return equal(meta("iifname"), anyOf(std::move(names)));
  }
  [[nodiscard]] json fromTunnel() const { return equal(meta("iifname"), spec_.interface); }
  [[nodiscard]] json notFromTunnel() const { return differs(meta("iifname"), spec_.interface); }
  [[nodiscard]] json intoTunnel() const { return equal(meta("oifname"), spec_.interface); }

  void addMappingSets() {
    const std::string service = "inet_service";
    const std::string protocol = "inet_proto";
    for (const Family& family : kFamilies) {
      const std::string address(family.addressType);
      const std::vector<std::string> key = {service, protocol, address};
      addSet(named(sets::kTarget, family), key, true, address);
      addSet(named(sets::kPortAt, family), key, false, service);
      addSet(named(sets::kMasquerade, family), key, true);
      addSet(named(sets::kHairpin, family), key, true);
      addSet(named(sets::kRestricted, family), key, true);
      addSet(named(sets::kAllowed, family), {service, protocol, address, address}, true);
    }
    addSet(std::string(sets::kPort), {service, protocol}, false, service);
    if (limited_) {
      for (const Family& family : kFamilies) {
        const std::vector<std::string> key = {service, protocol, std::string(family.addressType)};
        addSet(named(sets::kRateIn, family), key, true, "limit");
        addSet(named(sets::kRateOut, family), key, true, "limit");
        if (spec_.offload) {
          addSet(named(sets::kPaced, family), key, true);
        }
      }
    }
  }

  /// The tunnel's own datagrams are never translated, whatever a catch-all mapping says.
  void leaveOwnPort(std::string_view chain) {
    if (spec_.ownPort != 0) {
      addRule(chain, {equal(payload("udp", "dport"), spec_.ownPort), verdict("return")});
    }
  }

  /// A connection to the tunnel's address means this host, not its public side.
  void leaveTunnelAddresses(std::string_view chain) {
    for (const Family& family : kFamilies) {
      std::vector<json> addresses;
      for (const IpAddress& address : spec_.tunnelAddresses) {
        if (address.isV6() == family.v6) {
          addresses.emplace_back(address.toString());
        }
      }
      if (!addresses.empty()) {
        addRule(chain,
                {equal(destination(family), anyOf(std::move(addresses))), verdict("return")});
      }
    }
  }

  void addTranslation() {
    addChain(kTranslate);
    for (const Family& family : kFamilies) {
      addRule(kTranslate, {equal(packetKey(family), setName(named(sets::kRestricted, family))),
                           differs(packetKey(family, {payload(family.protocol, "saddr")}),
                                   setName(named(sets::kAllowed, family))),
                           verdict("return")});
      addTranslationOf(family);
    }
    addBaseChain(kIncomingChain, "nat", "prerouting", kBeforeDestinationNat);
    leaveOwnPort(kIncomingChain);
    // Nobody outside has an address of a peer: services behind the tunnel may trust those. With the
    // default route in the tunnel everybody seems to live there.
    if (!spec_.guard) {
      addRule(kIncomingChain, {fromPublic(), equal(wayBack(), spec_.interface), verdict("drop")});
    }
    addRule(kIncomingChain, {fromPublic(), toThisHost(), jump("goto", kTranslate)});
    leaveTunnelAddresses(kIncomingChain);
    for (const Family& family : kFamilies) {
      addRule(kIncomingChain, {fromTunnel(), toThisHost(),
                               equal(packetKey(family), setName(named(sets::kHairpin, family))),
                               jump("goto", kTranslate)});
    }
  }

  /// A rule whose map has no such key does not match, and the next one is tried: first those that
  /// change the port, then the one that keeps it.
  void addTranslationOf(const Family& family) {
    const json address = mapLookup(packetKey(family), named(sets::kTarget, family));
    const json portAt = mapLookup(packetKey(family), named(sets::kPortAt, family));
    const json port =
        mapLookup(concat({payload("th", "dport"), meta("l4proto")}), std::string(sets::kPort));
    const auto translate = [&](json object) {
      object["family"] = family.translate;
      object["addr"] = address;
      return json{{"dnat", std::move(object)}};
    };
    addRule(kTranslate, {tcpOrUdp(), translate({{"port", portAt}})});
    addRule(kTranslate, {tcpOrUdp(), translate({{"port", port}})});
    addRule(kTranslate, {translate(json::object())});
  }

  /// The host itself, by its public address: its packets never pass prerouting.
  void addHairpinForThisHost() {
    constexpr std::string_view kChain = "translate_own";
    addBaseChain(kChain, "nat", "output", kBeforeDestinationNat);
    leaveOwnPort(kChain);
    addRule(kChain,
            {equal(payload("ip", "daddr"), {{"prefix", {{"addr", "127.0.0.0"}, {"len", 8}}}}),
             verdict("return")});
    addRule(kChain, {equal(payload("ip6", "daddr"), "::1"), verdict("return")});
    leaveTunnelAddresses(kChain);
    for (const Family& family : kFamilies) {
      addRule(kChain,
              {toThisHost(), equal(packetKey(family), setName(named(sets::kHairpin, family))),
               jump("goto", kTranslate)});
    }
  }

  void addSourceTranslation() {
    constexpr std::string_view kChain = "translate_source";
    addBaseChain(kChain, "nat", "postrouting", kSourceNat);
    for (const Family& family : kFamilies) {
      addRule(kChain, {intoTunnel(), tcpOrUdp(), connectionIs("dnat"),
                       equal(originalKey(family), setName(named(sets::kMasquerade, family))),
                       verdict("masquerade")});
    }
    // Out by the way it came in: the target would answer the client directly.
    addRule(kChain, {fromTunnel(), intoTunnel(), connectionIs("dnat"), verdict("masquerade")});
  }

  void addForwarding() {
    constexpr std::string_view kChain = "forward";
    addBaseChain(kChain, "filter", "forward", kFilter);
    if (limited_) {
      for (const Family& family : kFamilies) {
        limit(kChain, "original", named(sets::kRateIn, family), family);
        limit(kChain, "reply", named(sets::kRateOut, family), family);
      }
    }
    if (spec_.offload) {
      addOffload(kChain);
    }
    addRule(kChain,
            {match("in", ct("state"), json::array({"established", "related"})), verdict("accept")});
    addRule(kChain, {fromPublic(), intoTunnel(), connectionIs("dnat"), verdict("accept")});
    addRule(kChain, {fromTunnel(), intoTunnel(), connectionIs("dnat"), verdict("accept")});
    closeTheSideDoor(kChain);
  }

  /// Mappings turn forwarding on, and a neighbour of the public NIC could send packets for private
  /// addresses behind the tunnel here. No route of the Internet leads there.
  void closeTheSideDoor(std::string_view chain) {
    for (const Family& family : kFamilies) {
      std::vector<json> networks;
      for (const char* text : kPrivate) {
        if (const auto network = Prefix::parse(text); network->address().isV6() == family.v6) {
          networks.push_back(networkText(*network));
        }
      }
      const json inside = anyOf(std::move(networks));
      addRule(chain, {fromPublic(), intoTunnel(), match("in", ct("state"), "new"),
                      differs(payload(family.protocol, "saddr"), inside),
                      equal(destination(family), inside), verdict("drop")});
    }
  }

  /// What passes by the flow table never comes here again. The rule that puts it there follows with
  /// offloadCommands().
  void addOffload(std::string_view forward) {
    addChain(kIntoFlowTable);
    addChain(kOffload);
    if (limited_) {
      for (const Family& family : kFamilies) {
        addRule(kOffload,
                {tcpOrUdp(), equal(originalKey(family), setName(named(sets::kPaced, family))),
                 verdict("return")});
      }
    }
    addRule(kOffload, {jump("goto", kIntoFlowTable)});
    std::vector<json> names(spec_.publicInterfaces.begin(), spec_.publicInterfaces.end());
    const json established = match("in", ct("state"), "established");
    addRule(forward, {connectionIs("dnat"), established, fromPublic(), intoTunnel(), tcpOrUdp(),
                      jump("jump", kOffload)});
    addRule(forward,
            {connectionIs("dnat"), established, fromTunnel(),
             equal(meta("oifname"), anyOf(std::move(names))), tcpOrUdp(), jump("jump", kOffload)});
  }

  /// Before what is established is accepted: every packet counts.
  void limit(std::string_view chain, std::string_view direction, const std::string& rates,
             const Family& family) {
    addRule(chain, {connectionIs("dnat"), equal(ct("direction"), direction), tcpOrUdp(),
                    exceeds(originalKey(family), rates), verdict("drop")});
  }

  void addMaskedTargets() {
    constexpr std::string_view kChain = "mask_source";
    addBaseChain(kChain, "nat", "postrouting", kSourceNat);
    for (const Family& family : kFamilies) {
      addSet(named(sets::kMasked, family),
             {"inet_service", "inet_proto", std::string(family.addressType)}, true);
      addRule(kChain, {fromTunnel(), differs(meta("oifname"), spec_.interface), tcpOrUdp(),
                       equal(packetKey(family), setName(named(sets::kMasked, family))),
                       verdict("masquerade")});
    }
  }

  /// Both ways, from the routes of both directions (`rt mtu`); what comes out of the tunnel also
  /// by the tunnel's own MTU, since with policy routing the way back is not the one that the
  /// kernel looks up here. An MSS is only ever lowered.
  void addSegmentSize() {
    constexpr std::string_view kChain = "segment_size";
    const json size = {{"tcp option", {{"name", "maxseg"}, {"field", "size"}}}};
    const json isSyn = match("in", payload("tcp", "flags"), "syn");
    const json routeMtu = {{"rt", {{"key", "mtu"}}}};
    addBaseChain(kChain, "filter", "forward", kMangle);
    addRule(kChain, {intoTunnel(), isSyn, set(size, routeMtu)});
    addRule(kChain, {fromTunnel(), isSyn, set(size, routeMtu)});
    if (spec_.tunnelMtu > kHeadersV6) {
      addRule(kChain, {fromTunnel(), equal(meta("nfproto"), "ipv4"), isSyn,
                       set(size, spec_.tunnelMtu - kHeadersV4)});
      addRule(kChain, {fromTunnel(), equal(meta("nfproto"), "ipv6"), isSyn,
                       set(size, spec_.tunnelMtu - kHeadersV6)});
    }
  }

  /// Connections that came in by the tunnel are marked; their replies, from this host or from any
  /// network behind it, get the mark that the policy rule sends back into the tunnel. Every packet
  /// of the opening direction sets the mark, so that connections older than the table have it too.
  void addReplyMarks(const ReplyMarks& marks) {
    const auto isMarked = equal(masked(ct("mark"), marks.mask), marks.mark);
    const auto direction = [](std::string_view word) { return equal(ct("direction"), word); };
    const json restore = setMaskedMark(meta("mark"), marks.mark, marks.mask);
    constexpr std::string_view kIncoming = "reply_incoming";
    addBaseChain(kIncoming, "filter", "prerouting", kMangle);
    addRule(kIncoming, {fromTunnel(), direction("original"),
                        differs(masked(ct("mark"), marks.mask), marks.mark),
                        setMaskedMark(ct("mark"), marks.mark, marks.mask)});
    addRule(kIncoming, {notFromTunnel(), direction("reply"), isMarked, restore});
    constexpr std::string_view kOwn = "reply_own";
    addBaseChain(kOwn, "route", "output", kMangle);
    addRule(kOwn, {direction("reply"), isMarked, restore});
  }

  void addUdpAnswers(const UdpAnswers& answers) {
    constexpr std::string_view kChain = "answer_udp";
    for (const Family& family : kFamilies) {
      const std::string address(family.addressType);
      addSet(named(sets::kAnswer, family), {address}, false, address);
    }
    addBaseChain(kChain, "nat", "prerouting", kAfterDestinationNat);
    addRule(kChain, {notFromTunnel(), verdict("return")});
    addRule(kChain, {differs(meta("l4proto"), int{IPPROTO_UDP}), verdict("return")});
    for (const Family& family : kFamilies) {
      const json source = payload(family.protocol, "saddr");
      for (const Prefix& network : answers.tunnelNetworks) {
        if (network.address().isV6() == family.v6) {
          addRule(kChain, {equal(source, networkText(network)), verdict("return")});
        }
      }
      addRule(kChain,
              {equal(socketIsUnbound(), 1),
               {{"dnat",
                 {{"family", family.translate},
                  {"addr", mapLookup(destination(family), named(sets::kAnswer, family))}}}}});
    }
  }

  /// Packets of the opening direction are judged one by one, whatever their connection is: neither
  /// does a connection that was opened elsewhere let them in, nor one from before a change.
  void addExposure(const Exposure& exposure) {
    constexpr std::string_view kExposed = "exposed";
    for (const Family& family : kFamilies) {
      addSet(named(sets::kExposed, family),
             {"inet_service", "inet_proto", std::string(family.addressType)}, true);
    }
    addChain(kExposed);
    const json known = match("in", ct("state"), json::array({"established", "related"}));
    const json opening = equal(ct("direction"), "original");
    for (const Family& family : kFamilies) {
      for (const Prefix& network : exposure.tunnelNetworks) {
        if (network.address().isV6() == family.v6) {
          addRule(kExposed, {known, equal(ct("direction"), "reply"),
                             equal(ctOriginal(family.connectionDestination), networkText(network)),
                             verdict("accept")});
        }
      }
      addRule(kExposed, {opening, tcpOrUdp(),
                         equal(originalKey(family), setName(named(sets::kExposed, family))),
                         verdict("accept")});
    }
    // Errors about answers that went into the tunnel: a smaller path MTU above all.
    addRule(kExposed, {opening, match("in", ct("state"), "related"),
                       equal(meta("l4proto"), {{"set", {int{IPPROTO_ICMP}, int{IPPROTO_ICMPV6}}}}),
                       verdict("accept")});
    if (!spec_.publicInterfaces.empty()) {
      addRule(kExposed,
              {connectionIs("dnat"), equal(ct("direction"), "reply"), known, verdict("accept")});
      addRule(kExposed, {connectionIs("dnat"), intoTunnel(), verdict("accept")});
    }
    addRule(kExposed, {verdict("drop")});
    constexpr std::string_view kInput = "expose_input";
    addBaseChain(kInput, "filter", "input", kFilter);
    addRule(kInput, {fromTunnel(),
                     equal(payload("icmpv6", "type"),
                           {{"set", {"nd-neighbor-solicit", "nd-neighbor-advert"}}}),
                     verdict("accept")});
    addRule(kInput, {fromTunnel(), jump("goto", kExposed)});
    constexpr std::string_view kForward = "expose_forward";
    addBaseChain(kForward, "filter", "forward", kFilter);
    addRule(kForward, {fromTunnel(), jump("goto", kExposed)});
  }

  void addGuard(const DefaultRouteGuard& guard) {
    constexpr std::string_view kDrop = "guard_addresses";
    addBaseChain(kDrop, "filter", "prerouting", kRaw);
    for (const IpAddress& address : spec_.tunnelAddresses) {
      addRule(kDrop, {notFromTunnel(),
                      equal(payload(address.isV6() ? "ip6" : "ip", "daddr"), address.toString()),
                      differs({{"fib", {{"result", "type"}, {"flags", {"saddr"}}}}}, "local"),
                      verdict("drop")});
    }
    const json isUdp = equal(meta("l4proto"), int{IPPROTO_UDP});
    constexpr std::string_view kRestore = "guard_restore";
    addBaseChain(kRestore, "filter", "prerouting", kMangle);
    addRule(kRestore,
            {isUdp, equal(ct("mark"), guard.firewallMark), set(meta("mark"), guard.firewallMark)});
    constexpr std::string_view kSave = "guard_save";
    addBaseChain(kSave, "filter", "postrouting", kMangle);
    addRule(kSave,
            {isUdp, equal(meta("mark"), guard.firewallMark), set(ct("mark"), guard.firewallMark)});
  }

  const RulesetSpec& spec_;
  std::string table_;
  /// Any mapping has a rate. Without one, packets should not be asked about it.
  bool limited_;
  json commands_ = json::array();
};

json transaction(json commands) {
  return {{"nftables", std::move(commands)}};
}

json tableCommand(std::string_view verb, std::string_view table) {
  return {{verb, {{"table", {{"family", "inet"}, {"name", table}}}}}};
}

/// One for each limit that elements name. The bucket of a limit holds what the rate allows in a
/// second, and the burst: the largest packet that segmentation offload makes passes at any rate.
void appendLimits(json& commands, std::string_view verb, std::string_view table,
                  const Elements& elements) {
  constexpr std::uint32_t kBurst = 65536;
  std::map<std::string, std::uint64_t> limits;
  for (const auto& [id, element] : elements) {
    if ((id.first.starts_with(sets::kRateIn) || id.first.starts_with(sets::kRateOut)) &&
        element.value.is_string()) {
      limits.emplace(element.value.get<std::string>(), element.rate);
    }
  }
  for (const auto& [name, rate] : limits) {
    json limit = {{"family", "inet"}, {"table", table}, {"name", name}};
    if (verb == "add") {
      limit.update({{"rate", rate},
                    {"rate_unit", "bytes"},
                    {"per", "second"},
                    {"burst", kBurst},
                    {"burst_unit", "bytes"},
                    {"inv", true}});
    }
    commands.push_back({{verb, {{"limit", std::move(limit)}}}});
  }
}

/// One command for each set.
void appendElements(json& commands, std::string_view verb, std::string_view table,
                    const Elements& elements, bool keysOnly) {
  for (auto next = elements.begin(); next != elements.end();) {
    const std::string& set = next->first.first;
    json list = json::array();
    for (; next != elements.end() && next->first.first == set; ++next) {
      list.push_back(keysOnly ? next->second.key : next->second.toJson());
    }
    commands.push_back(
        {{verb,
          {{"element",
            {{"family", "inet"}, {"table", table}, {"name", set}, {"elem", std::move(list)}}}}}});
  }
}

/// Short enough that two fit into a comment; against accidents, not against forgery by root.
std::string hash(const std::string& text) {
  constexpr std::size_t kBytes = 16;
  std::array<std::uint8_t, kBytes> digest{};
  const auto bytes = std::as_bytes(std::span(text));
  crypto_generichash(digest.data(), digest.size(),
                     static_cast<const unsigned char*>(static_cast<const void*>(bytes.data())),
                     bytes.size(), nullptr, 0);
  std::string hex;
  for (const std::uint8_t byte : digest) {
    hex += fmt::format("{:02x}", byte);
  }
  return hex;
}

constexpr std::string_view kMarkFormat = "built {} listed {}";

}  // namespace

json staticCommands(const RulesetSpec& spec) {
  return Builder(spec).build();
}

json buildRuleset(const RulesetSpec& spec) {
  const std::string table = spec.tableName();
  json commands = {tableCommand("add", table), tableCommand("delete", table),
                   tableCommand("add", table)};
  for (json& command : staticCommands(spec)) {
    commands.push_back(std::move(command));
  }
  const Elements elements = elementsOf(spec);
  appendLimits(commands, "add", table, elements);
  appendElements(commands, "add", table, elements, false);
  return transaction(std::move(commands));
}

std::string offloadCommands(const RulesetSpec& spec) {
  std::string devices = fmt::format("\"{}\"", spec.interface);
  for (const std::string& name : spec.publicInterfaces) {
    devices += fmt::format(", \"{}\"", name);
  }
  return fmt::format(
      "add flowtable inet {0} fast {{ hook ingress priority filter; devices = {{ {1} }}; counter; "
      "}}\nadd rule inet {0} {2} flow add @fast\n",
      spec.tableName(), devices, kIntoFlowTable);
}

std::string offloadRenewal(const RulesetSpec& spec) {
  return fmt::format("flush chain inet {0} {1}\ndelete flowtable inet {0} fast\n{2}",
                     spec.tableName(), kIntoFlowTable, offloadCommands(spec));
}

std::string flowTableProbe() {
  RulesetSpec probe;
  probe.interface = "lo";
  return fmt::format("add table inet {0}\nadd chain inet {0} {1}\n{2}", probe.tableName(),
                     kIntoFlowTable, offloadCommands(probe));
}

json buildElementUpdate(std::string_view table, const ElementDiff& diff) {
  json commands = json::array();
  appendElements(commands, "delete", table, diff.removed, true);
  appendLimits(commands, "delete", table, diff.removed);
  appendLimits(commands, "add", table, diff.added);
  appendElements(commands, "add", table, diff.added, false);
  return transaction(std::move(commands));
}

json buildSocketProbe() {
  RulesetSpec spec;
  spec.interface = "probe";
  spec.answers = UdpAnswers{};
  return buildRuleset(spec);
}

json buildRemoval(std::string_view table) {
  return transaction({tableCommand("add", table), tableCommand("delete", table)});
}

std::string hashOfStatic(const RulesetSpec& spec) {
  return hash(staticCommands(spec).dump());
}

std::string hashOfListing(const json& listing) {
  json kept = json::array();
  for (json object : listing.value("nftables", json::array())) {
    // Limits come and go with elements.
    if (object.contains("metainfo") || object.contains("limit")) {
      continue;
    }
    for (auto& [kind, body] : object.items()) {
      if (body.is_object()) {
        body.erase("handle");
        body.erase("elem");
      }
    }
    kept.push_back(std::move(object));
  }
  return hash(kept.dump());
}

json buildMark(std::string_view table, const TableMark& mark) {
  const json set = {{"family", "inet"}, {"table", table}, {"name", sets::kState}};
  json element = set;
  element["elem"] = json::array(
      {{{"elem", {{"val", 1}, {"comment", fmt::format(kMarkFormat, mark.built, mark.listed)}}}}});
  return transaction(
      json::array({{{"flush", {{"set", set}}}}, {{"add", {{"element", std::move(element)}}}}}));
}

TableMark markOfListing(const json& listing) {
  for (const json& object : listing.value("nftables", json::array())) {
    if (!object.contains("set") || object["set"].value("name", "") != sets::kState ||
        !object["set"].contains("elem")) {
      continue;
    }
    for (const json& entry : object["set"]["elem"]) {
      if (!entry.is_object() || !entry.contains("elem") || !entry["elem"].is_object()) {
        continue;
      }
      const std::string comment = entry["elem"].value("comment", "");
      std::array<char, 65> built{};
      std::array<char, 65> listed{};
      if (std::sscanf(comment.c_str(), "built %64s listed %64s", built.data(), listed.data()) ==
          2) {
        return {built.data(), listed.data()};
      }
    }
  }
  return {};
}

}  // namespace adit::nat

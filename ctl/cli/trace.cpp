// trace: where a packet would go, hop by hop, from the rules, routes and sessions as they are.
#include <fmt/ranges.h>
#include <net/if.h>

#include <algorithm>
#include <array>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/machine.hpp"
#include "cli/output.hpp"
#include "control/control_client.hpp"
#include "nat/conntrack.hpp"
#include "nat/firewall.hpp"
#include "nat/obstacles.hpp"
#include "nat/prerequisites.hpp"
#include "netlink/route.hpp"

namespace adit::cli {
namespace {

using Json = nlohmann::ordered_json;

struct TraceArguments {
  std::string protocol;
  std::string destination;
  std::string word;
  std::string source;
  std::string interface;
  bool json = false;
};

struct Hop {
  std::string where;
  std::string what;
};

enum class Verdict : std::uint8_t { Delivered, Dropped };

struct Trace {
  std::vector<Hop> hops;
  Verdict verdict = Verdict::Dropped;
};

/// Follows one packet. Every step adds its hop, and says whether there is a next one.
class Tracer {
 public:
  Tracer(const Machine& machine, netlink::Routing& routing, nat::Protocol protocol,
         const Endpoint& destination, const IpAddress& source)
      : machine_(machine),
        spec_(machine.desired.ruleset),
        routing_(routing),
        protocol_(protocol),
        destination_(destination),
        source_(source) {}

  Trace run() {
    if (arrives()) follow();
    return std::move(trace_);
  }

 private:
  void hop(std::string where, std::string what) {
    trace_.hops.push_back({std::move(where), std::move(what)});
  }

  bool arrives() {
    const auto answer = routing_.lookupRoute(destination_.address, 0);
    if (!answer || !answer->local) {
      hop("routing", fmt::format("{} is no address of this machine; no mapping is about it",
                                 destination_.address.toString()));
      return false;
    }
    if (isTunnelAddress(destination_.address)) {
      hop(spec_.interface, "arrives by the tunnel, for this machine itself");
      listens();
      return false;
    }
    if (protocol_ == nat::Protocol::Udp && destination_.port == spec_.ownPort) {
      hop("tunnel", fmt::format("udp/{} is the tunnel's own port, never mapped", spec_.ownPort));
      trace_.verdict = Verdict::Delivered;
      return false;
    }
    const std::string nic =
        spec_.publicInterfaces.empty() ? "no public interface" : spec_.publicInterfaces.front();
    hop(nic, fmt::format("{}/{} from {} arrives", nat::protocolName(protocol_),
                         destination_.toString(), source_.toString()));
    return true;
  }

  [[nodiscard]] bool isTunnelAddress(const IpAddress& address) const {
    return std::ranges::find(spec_.tunnelAddresses, address) != spec_.tunnelAddresses.end();
  }

  [[nodiscard]] const nat::Mapping* mapping() const {
    for (const nat::Mapping& candidate : spec_.mappings) {
      const bool covers =
          candidate.protocol == protocol_ && candidate.firstPort <= destination_.port &&
          destination_.port <= candidate.lastPort &&
          (!candidate.listenAddress || *candidate.listenAddress == destination_.address);
      if (covers && (destination_.address.isV6() ? candidate.targetV6 : candidate.targetV4)) {
        return &candidate;
      }
    }
    return nullptr;
  }

  void follow() {
    const nat::Mapping* map = mapping();
    if (map == nullptr) {
      hop("mappings", "none is about this port and family");
      return listens();
    }
    const auto allows = [&](const Prefix& prefix) { return prefix.contains(source_); };
    if (!map->allow.empty() && std::ranges::none_of(map->allow, allows)) {
      hop("mapping " + map->listenText(),
          fmt::format("Allow does not name {}", source_.toString()));
      return listens();
    }
    translated(*map);
  }

  void translated(const nat::Mapping& map) {
    const auto state = std::ranges::find(machine_.view.device.maps, map.listenText(),
                                         &control::MapSnapshot::listen);
    if (state == machine_.view.device.maps.end() || !state->active) {
      return hop("mapping " + map.listenText(), state == machine_.view.device.maps.end()
                                                    ? "not loaded: `adit reload`"
                                                    : state->reason);
    }
    Endpoint target;
    target.address = destination_.address.isV6() ? *map.targetV6 : *map.targetV4;
    target.port = static_cast<std::uint16_t>(map.targetPort + (destination_.port - map.firstPort));
    hop("mapping " + map.listenText(),
        fmt::format("the destination becomes {} ({})", target.toString(), map.targetHost));
    routed(map, target);
  }

  void routed(const nat::Mapping& map, const Endpoint& target) {
    const auto answer = routing_.lookupRoute(target.address, 0);
    std::array<char, IF_NAMESIZE> name{};
    if (!answer || ::if_indextoname(answer->interface, name.data()) == nullptr) {
      return hop("routing", fmt::format("no route to {}", target.address.toString()));
    }
    if (spec_.interface != name.data()) {
      return hop("routing", fmt::format("{} is reached by {}, not by the tunnel {}",
                                        target.address.toString(), name.data(), spec_.interface));
    }
    hop("routing", fmt::format("by {}", spec_.interface));
    const auto obstacles = nat::obstaclesNow(spec_);
    if (obstacles && !obstacles->empty()) {
      return hop("other firewalls", obstacles->front().toString());
    }
    hop("other firewalls", obstacles ? "none is known to drop it" : obstacles.error().message);
    hop("source", map.source == nat::SourceMode::Masquerade
                      ? "becomes this machine's address in the tunnel"
                      : fmt::format("stays {}", source_.toString()));
    entersTunnel(target);
  }

  void entersTunnel(const Endpoint& target) {
    const control::PeerSnapshot* owner = nullptr;
    unsigned longest = 0;
    for (const control::PeerSnapshot& peer : machine_.view.device.peers) {
      for (const Prefix& prefix : peer.allowedIps) {
        if (prefix.contains(target.address) && (owner == nullptr || prefix.length() > longest)) {
          owner = &peer;
          longest = prefix.length();
        }
      }
    }
    if (owner == nullptr) {
      return hop(spec_.interface,
                 fmt::format("dropped: no peer's AllowedIPs hold {}", target.address.toString()));
    }
    const std::string peer = owner->name.empty() ? owner->publicKey.toBase64() : owner->name;
    if (!owner->suite) {
      return hop(spec_.interface, fmt::format("waits: there is no session with {}", peer));
    }
    hop(spec_.interface,
        fmt::format("encrypted for {}, to {}", peer,
                    owner->endpoint ? owner->endpoint->toString() : "an unknown address"));
    trace_.verdict = Verdict::Delivered;
  }

  /// The packet stays on this machine.
  void listens() {
    if (isTunnelAddress(destination_.address) && spec_.exposure && !isDeclared()) {
      return hop("Expose = maps", "dropped: no [Map] declares this port");
    }
    const auto listeners = nat::localListeners();
    if (!listeners) return hop("this machine", listeners.error().message);
    for (const nat::Listener& listener : *listeners) {
      const bool any =
          listener.address == IpAddress::anyV4() || listener.address == IpAddress::anyV6();
      if (listener.protocol == protocol_ && listener.port == destination_.port &&
          (any || listener.address == destination_.address)) {
        trace_.verdict = Verdict::Delivered;
        return hop("this machine", fmt::format("delivered to {}", listener.toString()));
      }
    }
    hop("this machine", "refused: nothing listens there");
  }

  [[nodiscard]] bool isDeclared() const {
    return std::ranges::any_of(spec_.exposure->declared, [&](const nat::Mapping& map) {
      const unsigned last = map.targetPort + (map.lastPort - map.firstPort);
      return map.protocol == protocol_ && map.targetPort <= destination_.port &&
             destination_.port <= last &&
             (map.targetV4 == destination_.address || map.targetV6 == destination_.address);
    });
  }

  const Machine& machine_;
  const nat::RulesetSpec& spec_;
  netlink::Routing& routing_;
  nat::Protocol protocol_;
  Endpoint destination_;
  IpAddress source_;
  Trace trace_;
};

/// The one that was named, or the only one that is up.
Result<std::string> chosenInterface(const std::string& named) {
  if (!named.empty()) return named;
  const auto running = control::runningInterfaces();
  if (!running) return tl::unexpected(running.error());
  if (running->empty()) return fail("no interface is up");
  if (running->size() > 1) {
    return fail("several interfaces are up ({}); name one with --interface",
                fmt::join(*running, ", "));
  }
  return running->front();
}

Result<Trace> traced(const TraceArguments& arguments) {
  if (arguments.protocol != "tcp" && arguments.protocol != "udp") {
    return fail("{}: the protocol is tcp or udp", arguments.protocol);
  }
  if (arguments.word != "from") return fail("expected `from` before the source's address");
  const auto destination = Endpoint::parse(arguments.destination);
  if (!destination) return tl::unexpected(destination.error());
  const auto source = IpAddress::parse(arguments.source);
  if (!source) return fail("{} is no address", arguments.source);
  if (source->isV6() != destination->address.isV6()) {
    return fail("{} and {} are of different families", arguments.destination, arguments.source);
  }
  const auto interface = chosenInterface(arguments.interface);
  if (!interface) return tl::unexpected(interface.error());
  const auto machine = machineOf(*interface);
  if (!machine) return tl::unexpected(machine.error());
  auto routing = netlink::RouteSocket::open();
  if (!routing) return tl::unexpected(routing.error());
  const nat::Protocol protocol =
      arguments.protocol == "tcp" ? nat::Protocol::Tcp : nat::Protocol::Udp;
  return Tracer(*machine, **routing, protocol, *destination, *source).run();
}

int trace(const TraceArguments& arguments) {
  const auto result = traced(arguments);
  if (!result) return complain(result.error());
  const bool delivered = result->verdict == Verdict::Delivered;
  if (arguments.json) {
    Json json{{"delivered", delivered}, {"hops", Json::array()}};
    for (const Hop& hop : result->hops) {
      json["hops"].push_back({{"where", hop.where}, {"what", hop.what}});
    }
    return print(json.dump(2) + '\n');
  }
  std::string text;
  for (std::size_t i = 0; i < result->hops.size(); ++i) {
    text += fmt::format("{}. {}: {}\n", i + 1, result->hops[i].where, result->hops[i].what);
  }
  return print(text);
}

}  // namespace

void addTraceCommand(CLI::App& app, Action& action) {
  const auto arguments = std::make_shared<TraceArguments>();
  CLI::App* sub =
      app.add_subcommand("trace", "Tell where a packet would go, hop by hop, without sending one");
  sub->add_option("PROTO", arguments->protocol, "tcp or udp")->required();
  sub->add_option("DESTINATION", arguments->destination, "ADDRESS:PORT, [IPv6]:PORT")->required();
  sub->add_option("from", arguments->word, "the word `from`")->required();
  sub->add_option("SOURCE", arguments->source, "the address that it comes from")->required();
  sub->add_option("--interface", arguments->interface, "where several are up");
  sub->add_flag("--json", arguments->json, "one JSON object: delivered, and the hops");
  sub->footer("Example:\n  adit trace tcp 203.0.113.9:443 from 198.51.100.7");
  sub->callback([&action, arguments] { action = [arguments] { return trace(*arguments); }; });
}

}  // namespace adit::cli

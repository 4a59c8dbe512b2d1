// The keys of [Map].
#include <fmt/format.h>

#include <array>

#include "config/key_helpers.hpp"
#include "config/mapping_text.hpp"
#include "config/schema.hpp"

namespace adit::config {
namespace {

MapConfig& mapOf(const EntryContext& c) {
  return c.map->map;
}

void parseMapListen(const EntryContext& c) {
  const auto listen = parseListen(c.value);
  if (!listen) {
    c.error(listen.error().offset, listen.error().message);
    return;
  }
  MapConfig& map = mapOf(c);
  const bool both = listen->match.tcp && listen->match.udp;
  map.protocol = both                ? MapConfig::Protocol::Both
                 : listen->match.tcp ? MapConfig::Protocol::Tcp
                                     : MapConfig::Protocol::Udp;
  map.listenAddress = listen->address;
  map.firstPort = listen->match.ports.first;
  map.lastPort = listen->match.ports.last;
  c.map->hasListen = true;
}
Lines formatListen(const SectionView& v) {
  return {listenText(*v.map)};
}

void parseMapTarget(const EntryContext& c) {
  const auto target = parseTarget(c.value);
  if (!target) {
    c.error(target.error().offset, target.error().message);
    return;
  }
  c.map->target = *target;
  c.map->targetLocation = c.location;
  mapOf(c).targetHost = target->host;
}
Lines formatTarget(const SectionView& v) {
  return {targetText(*v.map)};
}

constexpr auto kSources = std::to_array<Choice<Source>>(
    {{"preserve", Source::Preserve}, {"masquerade", Source::Masquerade}});

void parseSource(const EntryContext& c) {
  storeChoice(c, kSources, mapOf(c).source);
}
Lines formatSource(const SectionView& v) {
  return choiceLines(kSources, v.map->source);
}

void parseAllow(const EntryContext& c) {
  forEachItem(c, Separator::Comma, [&](const Item& item) {
    bool hadHostBits = false;
    const auto prefix = parsePrefix(item.text, &hadHostBits);
    if (!prefix) {
      c.error(item.offset + prefix.error().offset, prefix.error().message);
      return;
    }
    if (hadHostBits) {
      c.warning(item.offset, fmt::format("{} has bits set after its length; {} is meant",
                                         shown(item.text), prefix->toString()));
    }
    mapOf(c).allow.push_back(*prefix);
  });
}
Lines formatAllow(const SectionView& v) {
  return joined(v.map->allow);
}

void parseMapRate(const EntryContext& c) {
  c.store(parseRate(c.value), mapOf(c).rate);
}
Lines formatMapRate(const SectionView& v) {
  if (!v.map->rate) return {};
  return {formatRate(*v.map->rate)};
}

void parseHairpin(const EntryContext& c) {
  c.store(parseSwitch(c.value), mapOf(c).hairpin);
}
Lines formatHairpin(const SectionView& v) {
  return switchLines(v.map->hairpin, false);
}

void parseOverride(const EntryContext& c) {
  c.store(parseSwitch(c.value), mapOf(c).overrideListener);
}
Lines formatOverride(const SectionView& v) {
  if (!v.map->overrideListener) return {};
  return {"yes"};
}

constexpr auto kKeys = std::to_array<KeySpec>({
    {"Listen", Repeat::Once, Text::Strict, false, false, "[ADDRESS:]PROTO/PORT[-PORT]", "required",
     parseMapListen, formatListen},
    {"To", Repeat::Once, Text::Strict, false, false, "PEER[:PORT] | ADDRESS[:PORT]", "required",
     parseMapTarget, formatTarget},
    {"Source", Repeat::Once, Text::Strict, false, false, "preserve | masquerade", "preserve",
     parseSource, formatSource},
    {"Allow", Repeat::List, Text::Strict, false, false, "ADDRESS/LENGTH, …", "every client",
     parseAllow, formatAllow},
    {"Rate", Repeat::Once, Text::Strict, false, false, "NUMBER(kbit | mbit | gbit)", "unlimited",
     parseMapRate, formatMapRate},
    {"Hairpin", Repeat::Once, Text::Strict, false, false, "on | off", "off", parseHairpin,
     formatHairpin},
    {"Override", Repeat::Once, Text::Strict, false, false, "yes | no", "no", parseOverride,
     formatOverride},
});

}  // namespace

std::string listenText(const MapConfig& map) {
  std::string text;
  if (map.listenAddress) {
    const std::string address = map.listenAddress->toString();
    text = map.listenAddress->isV6() ? fmt::format("[{}]:", address) : address + ":";
  }
  const bool tcp = map.protocol != MapConfig::Protocol::Udp;
  const bool udp = map.protocol != MapConfig::Protocol::Tcp;
  text += fmt::format("{}/{}", protocolName(tcp, udp), map.firstPort);
  if (map.lastPort != map.firstPort) {
    text += fmt::format("-{}", map.lastPort);
  }
  return text;
}

std::string targetText(const MapConfig& map) {
  const bool v6 = map.targetHost.find(':') != std::string::npos;
  std::string text = v6 ? fmt::format("[{}]", map.targetHost) : map.targetHost;
  if (map.targetPort != map.firstPort) {
    text += fmt::format(":{}", map.targetPort);
  }
  return text;
}

std::span<const KeySpec> mapKeys() {
  return kKeys;
}

}  // namespace adit::config

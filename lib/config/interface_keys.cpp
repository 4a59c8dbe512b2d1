// The keys of [Interface].
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "config/key_helpers.hpp"
#include "config/schema.hpp"

namespace adit::config {
namespace {

/// Below this no IPv4 host works (RFC 791); the IPv6 minimum depends on the addresses in use.
constexpr std::uint64_t kSmallestMtu = 68;
/// The numbers of /etc/iproute2/rt_tables that mean the same on every system.
constexpr std::uint32_t kMainTable = 254;
constexpr std::uint32_t kDefaultTable = 253;

InterfaceConfig& interfaceOf(const EntryContext& c) {
  return c.draft.interface;
}

void parsePrivateKey(const EntryContext& c) {
  if (const auto bad = checkKeyText(c.value)) {
    c.error(bad->offset, bad->message);
    return;
  }
  auto key = crypto::PrivateKey::fromBase64(c.value);
  if (!key) {
    c.error(0, "the key is not valid");
  } else {
    interfaceOf(c).privateKey = std::move(*key);
  }
}

Lines formatPrivateKey(const SectionView& v) {
  const InterfaceConfig& i = *v.interface;
  const bool elsewhere = !i.privateKeyFile.empty() || !i.privateKeyCommand.empty();
  if (!i.privateKey || elsewhere) return {};
  return {i.privateKey->toBase64()};
}

void parseAddresses(const EntryContext& c) {
  forEachItem(c, Separator::CommaOrBlank, [&](const Item& item) {
    const auto address = parseInterfaceAddress(item.text);
    if (!address) {
      c.error(item.offset + address.error().offset, address.error().message);
      return;
    }
    const IpAddress& host = address->address;
    if (host.isUnspecified() || host.isMulticast()) {
      c.error(item.offset, fmt::format("{} cannot be an interface's address", host.toString()));
      return;
    }
    auto& all = interfaceOf(c).addresses;
    const auto same = std::ranges::find(all, host, &InterfaceAddress::address);
    if (same != all.end()) {
      const Location& first =
          c.draft.addressLocations[static_cast<std::size_t>(same - all.begin())];
      c.error(item.offset, fmt::format("{} stands already on {}; remove one", host.toString(),
                                       reference(first, c.location)));
      return;
    }
    const bool network = address->length + 1 < host.bits() && address->prefix().address() == host;
    if (network && host.isV4()) {
      c.warning(item.offset, fmt::format("{} is the network's own address; an interface needs one "
                                         "of a host",
                                         address->toString()));
    }
    all.push_back(*address);
    c.draft.addressLocations.push_back(c.at(item.offset));
  });
}

Lines formatAddresses(const SectionView& v) {
  return joined(v.interface->addresses);
}

void parseListenPort(const EntryContext& c) {
  const auto port = parseNumber(c.value, 0, 65535, "a port");
  if (!port) {
    c.error(port.error().offset, port.error().message);
  } else {
    interfaceOf(c).listenPort = static_cast<std::uint16_t>(*port);
  }
}

Lines formatListenPort(const SectionView& v) {
  if (!v.interface->listenPort) return {};
  return {std::to_string(*v.interface->listenPort)};
}

void parseMtu(const EntryContext& c) {
  if (equalIgnoringCase(c.value, "auto")) return;
  const auto mtu = parseNumber(c.value, kSmallestMtu, 65535, "an MTU");
  if (!mtu) {
    c.error(mtu.error().offset, mtu.error().message + ", or auto");
  } else {
    interfaceOf(c).mtu = static_cast<std::uint16_t>(*mtu);
  }
}

Lines formatMtu(const SectionView& v) {
  if (!v.interface->mtu) return {};
  return {std::to_string(*v.interface->mtu)};
}

void parseFirewallMark(const EntryContext& c) {
  const bool off = equalIgnoringCase(c.value, "off");
  const auto mark = off ? Value<std::uint32_t>(0U) : parseNumber32(c.value, "a firewall mark");
  if (!mark) {
    c.error(mark.error().offset, mark.error().message + ", or off");
  } else if (*mark != 0 || c.dialect == Dialect::WireGuard) {
    interfaceOf(c).firewallMark = *mark;
  }
}

Lines formatFirewallMark(const SectionView& v) {
  const auto& mark = v.interface->firewallMark;
  if (!mark) return {};
  return {*mark == 0 ? std::string("off") : fmt::format("{:#x}", *mark)};
}

void parseDns(const EntryContext& c) {
  forEachItem(c, Separator::CommaOrBlank, [&](const Item& item) {
    if (const auto address = IpAddress::parse(item.text)) {
      interfaceOf(c).dnsServers.push_back(*address);
      return;
    }
    const auto name = parseDomainName(item.text);
    if (name) {
      interfaceOf(c).dnsSearch.push_back(*name);
    } else {
      c.error(item.offset, fmt::format("{} is neither a name server's address nor a search domain",
                                       shown(item.text)));
    }
  });
}

Lines formatDns(const SectionView& v) {
  std::vector<std::string> all;
  for (const IpAddress& server : v.interface->dnsServers) {
    all.push_back(server.toString());
  }
  std::ranges::copy(v.interface->dnsSearch, std::back_inserter(all));
  return joinedText(all);
}

void parseTable(const EntryContext& c) {
  Table& table = interfaceOf(c).table;
  if (equalIgnoringCase(c.value, "auto")) {
    table = TableAuto{};
  } else if (equalIgnoringCase(c.value, "off")) {
    table = TableOff{};
  } else if (equalIgnoringCase(c.value, "reply")) {
    table = TableReply{};
  } else if (equalIgnoringCase(c.value, "main")) {
    table = kMainTable;
  } else if (equalIgnoringCase(c.value, "default")) {
    table = kDefaultTable;
  } else if (const auto number = parseNumber32(c.value, "a routing table");
             number && *number != 0) {
    table = *number;
  } else {
    c.error(0, fmt::format("{} is not a routing table; write auto, off, reply or a number of at "
                           "least 1",
                           shown(c.value)));
  }
}

Lines formatTable(const SectionView& v) {
  const Table& table = v.interface->table;
  if (std::holds_alternative<TableOff>(table)) return {"off"};
  if (std::holds_alternative<TableReply>(table)) return {"reply"};
  if (const auto* number = std::get_if<std::uint32_t>(&table)) return {std::to_string(*number)};
  return {};
}

template <std::vector<Hook> InterfaceConfig::*Member>
void parseHook(const EntryContext& c) {
  const auto quote = unbalancedQuote(c.value);
  if (quote) {
    c.warning(*quote, "this quote is not closed; the shell will refuse the hook");
  }
  (interfaceOf(c).*Member).push_back({std::string(c.value), c.location});
}

template <std::vector<Hook> InterfaceConfig::*Member>
Lines formatHook(const SectionView& v) {
  Lines lines;
  for (const Hook& hook : v.interface->*Member) {
    lines.push_back(hook.command);
  }
  return lines;
}

void parseSaveConfig(const EntryContext& c) {
  const auto save = parseSwitch(c.value);
  if (!save) {
    c.error(save.error().offset, save.error().message);
  } else if (*save) {
    c.error(0,
            "SaveConfig = true is not supported: rewriting the file on `down` loses edits made "
            "meanwhile, comments and host names; remove it, and use `adit save` when you want it");
  }
}

Lines formatNothing(const SectionView&) {
  return {};
}

constexpr auto kExpose =
    std::to_array<Choice<Expose>>({{"all", Expose::All}, {"maps", Expose::Maps}});
constexpr auto kBackends = std::to_array<Choice<Backend>>(
    {{"auto", Backend::Auto}, {"kernel", Backend::Kernel}, {"userspace", Backend::Userspace}});

void parseExpose(const EntryContext& c) {
  storeChoice(c, kExpose, interfaceOf(c).expose);
}
Lines formatExpose(const SectionView& v) {
  return choiceLines(kExpose, v.interface->expose);
}
void parseBackend(const EntryContext& c) {
  storeChoice(c, kBackends, interfaceOf(c).backend);
}
Lines formatBackend(const SectionView& v) {
  return choiceLines(kBackends, v.interface->backend);
}

void parseCipher(const EntryContext& c) {
  if (equalIgnoringCase(c.value, "auto")) return;
  const auto suite = crypto::suiteFromName(lowered(c.value));
  if (!suite) {
    c.error(0, fmt::format("{} is not a cipher; write auto, chacha20-poly1305, aes-256-gcm or "
                           "aes-128-gcm",
                           shown(c.value)));
  } else {
    interfaceOf(c).cipher = suite;
  }
}

Lines formatCipher(const SectionView& v) {
  if (!v.interface->cipher) return {};
  return {std::string(crypto::suiteName(*v.interface->cipher))};
}

void parseExtensions(const EntryContext& c) {
  c.store(parseSwitch(c.value), interfaceOf(c).extensions);
}
Lines formatExtensions(const SectionView& v) {
  return switchLines(v.interface->extensions, true);
}

void parsePublic(const EntryContext& c) {
  c.store(parseInterfaceName(c.value), interfaceOf(c).publicInterface);
}
Lines formatPublic(const SectionView& v) {
  return textLines(v.interface->publicInterface);
}

void parsePublicEndpoint(const EntryContext& c) {
  forEachItem(c, Separator::Comma, [&](const Item& item) {
    const auto endpoint = parseEndpoint(item.text);
    if (!endpoint) {
      c.error(item.offset + endpoint.error().offset, endpoint.error().message);
    } else if (!endpoint->zone.empty()) {
      c.error(item.offset, "a link-local address cannot be reached from outside");
    } else {
      interfaceOf(c).publicEndpoints.push_back(*endpoint);
    }
  });
}
Lines formatPublicEndpoint(const SectionView& v) {
  return joined(v.interface->publicEndpoints);
}

void parseBind(const EntryContext& c) {
  c.store(parseAddress(c.value), interfaceOf(c).bindAddress);
}
Lines formatBind(const SectionView& v) {
  if (!v.interface->bindAddress) return {};
  return {v.interface->bindAddress->toString()};
}

void parseMetrics(const EntryContext& c) {
  if (equalIgnoringCase(c.value, "off")) return;
  const auto address = parseMetricsAddress(c.value);
  if (!address) {
    c.error(address.error().offset, address.error().message);
  } else {
    interfaceOf(c).metrics = *address;
  }
}
Lines formatMetrics(const SectionView& v) {
  if (!v.interface->metrics) return {};
  return {v.interface->metrics->toString()};
}

void parsePrivateKeyFile(const EntryContext& c) {
  storePath(c, interfaceOf(c).privateKeyFile);
}
Lines formatPrivateKeyFile(const SectionView& v) {
  return textLines(v.interface->privateKeyFile);
}

void parsePrivateKeyCommand(const EntryContext& c) {
  interfaceOf(c).privateKeyCommand = c.value;
}
Lines formatPrivateKeyCommand(const SectionView& v) {
  return textLines(v.interface->privateKeyCommand);
}

constexpr auto kKeys = std::to_array<KeySpec>({
    {"PrivateKey", Repeat::Once, Text::Strict, true, true, "KEY", "required, in one of three ways",
     parsePrivateKey, formatPrivateKey},
    {"PrivateKeyFile", Repeat::Once, Text::Free, false, false, "PATH", "none", parsePrivateKeyFile,
     formatPrivateKeyFile},
    {"PrivateKeyCommand", Repeat::Once, Text::Free, false, true, "COMMAND", "none",
     parsePrivateKeyCommand, formatPrivateKeyCommand},
    {"Address", Repeat::List, Text::Strict, false, false, "ADDRESS/LENGTH, …", "none",
     parseAddresses, formatAddresses},
    {"ListenPort", Repeat::Once, Text::Strict, true, false, "PORT", "chosen by the system",
     parseListenPort, formatListenPort},
    {"MTU", Repeat::Once, Text::Strict, false, false, "auto | BYTES", "auto", parseMtu, formatMtu},
    {"FwMark", Repeat::Once, Text::Strict, true, false, "off | NUMBER | 0xNUMBER", "off",
     parseFirewallMark, formatFirewallMark},
    {"DNS", Repeat::List, Text::Strict, false, false, "ADDRESS | DOMAIN, …", "none", parseDns,
     formatDns},
    {"Table", Repeat::Once, Text::Strict, false, false, "auto | off | reply | NUMBER", "auto",
     parseTable, formatTable},
    {"Expose", Repeat::Once, Text::Strict, false, false, "all | maps", "all", parseExpose,
     formatExpose},
    {"Backend", Repeat::Once, Text::Strict, false, false, "auto | kernel | userspace", "auto",
     parseBackend, formatBackend},
    {"Cipher", Repeat::Once, Text::Strict, false, false,
     "auto | chacha20-poly1305 | aes-256-gcm | aes-128-gcm", "auto", parseCipher, formatCipher},
    {"Extensions", Repeat::Once, Text::Strict, false, false, "on | off", "on", parseExtensions,
     formatExtensions},
    {"Public", Repeat::Once, Text::Strict, false, false, "INTERFACE",
     "the interface of the default route", parsePublic, formatPublic},
    {"PublicEndpoint", Repeat::List, Text::Strict, false, false, "HOST:PORT | [IPv6]:PORT, …",
     "the public interface's addresses, with ListenPort", parsePublicEndpoint,
     formatPublicEndpoint},
    {"Bind", Repeat::Once, Text::Strict, false, false, "ADDRESS", "every address", parseBind,
     formatBind},
    {"Metrics", Repeat::Once, Text::Strict, false, false, "off | LOOPBACK:PORT | unix:PATH", "off",
     parseMetrics, formatMetrics},
    {"SaveConfig", Repeat::Once, Text::Strict, false, false, "false", "false", parseSaveConfig,
     formatNothing},
    {"PreUp", Repeat::EachLine, Text::Hook, false, false, "COMMAND", "none",
     parseHook<&InterfaceConfig::preUp>, formatHook<&InterfaceConfig::preUp>},
    {"PostUp", Repeat::EachLine, Text::Hook, false, false, "COMMAND", "none",
     parseHook<&InterfaceConfig::postUp>, formatHook<&InterfaceConfig::postUp>},
    {"PreDown", Repeat::EachLine, Text::Hook, false, false, "COMMAND", "none",
     parseHook<&InterfaceConfig::preDown>, formatHook<&InterfaceConfig::preDown>},
    {"PostDown", Repeat::EachLine, Text::Hook, false, false, "COMMAND", "none",
     parseHook<&InterfaceConfig::postDown>, formatHook<&InterfaceConfig::postDown>},
});

}  // namespace

std::span<const KeySpec> interfaceKeys() {
  return kKeys;
}

}  // namespace adit::config

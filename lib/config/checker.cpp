#include "config/checker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "config/schema.hpp"

namespace adit::config {
namespace {

constexpr unsigned kSmallestMtuV6 = 1280;

bool usesIpv6(const Draft& draft) {
  const auto isV6 = [](const auto& entry) { return entry.address.isV6(); };
  const auto routesV6 = [](const PeerDraft& peer) {
    return std::ranges::any_of(peer.peer.allowedIps,
                               [](const Prefix& prefix) { return prefix.address().isV6(); });
  };
  return std::ranges::any_of(draft.interface.addresses, isV6) ||
         std::ranges::any_of(draft.peers, routesV6);
}

/// `wg set` in a hook is wg-quick's documented way to keep the key out of the file.
bool hookSetsKey(const InterfaceConfig& interface) {
  const auto mentionsKey = [](const Hook& hook) {
    return hook.command.find("private-key") != std::string::npos;
  };
  return std::ranges::any_of(interface.preUp, mentionsKey) ||
         std::ranges::any_of(interface.postUp, mentionsKey);
}

void checkKeySource(const Draft& draft, Diagnostics& diagnostics) {
  const SectionKeys& keys = draft.interfaceKeys;
  std::vector<std::string_view> given;
  for (const std::string_view name : {"PrivateKey", "PrivateKeyFile", "PrivateKeyCommand"}) {
    if (keys.has(name)) given.push_back(name);
  }
  if (given.size() > 1) {
    const Location second = keys.of(given[1]);
    diagnostics.error(second, fmt::format("{} and {} ({}) exclude each other; keep one", given[1],
                                          given[0], reference(keys.of(given[0]), second)));
  } else if (given.empty() && !keys.damaged) {
    constexpr std::string_view kRemedy = "write PrivateKey, PrivateKeyFile or PrivateKeyCommand";
    if (hookSetsKey(draft.interface)) {
      diagnostics.warning(keys.header, fmt::format("[Interface] has no private key until a hook "
                                                   "sets it; better {}",
                                                   kRemedy));
    } else {
      diagnostics.error(keys.header, fmt::format("[Interface] has no private key; {}", kRemedy));
    }
  }
}

void checkNames(Draft& draft, Diagnostics& diagnostics) {
  std::map<std::string, Location> names;
  for (const PeerDraft& peer : draft.peers) {
    if (peer.peer.name.empty()) continue;
    const Location here = peer.keys.of("Name");
    const auto [first, fresh] = names.emplace(lowered(peer.peer.name), here);
    if (!fresh) {
      diagnostics.error(here, fmt::format("the peer on {} has this name already; names are unique "
                                          "whatever their case",
                                          reference(first->second, here)));
    }
  }
}

/// A private key is clamped when it is read, so the other one has to be as well.
bool isOwnPrivateKey(const InterfaceConfig& interface, const crypto::PublicKey& key) {
  return interface.privateKey && *interface.privateKey == crypto::PrivateKey(key.bytes);
}

void checkPublicKeys(Draft& draft, Diagnostics& diagnostics) {
  std::map<crypto::PublicKey, Location> seen;
  std::optional<crypto::PublicKey> own;
  if (draft.interface.privateKey) {
    own = draft.interface.privateKey->publicKey();
  }
  for (const PeerDraft& peer : draft.peers) {
    const Location here = peer.keys.of("PublicKey");
    if (!peer.hasPublicKey) {
      if (!peer.keys.has("PublicKey") && !peer.keys.damaged) {
        diagnostics.error(peer.keys.header, "[Peer] has no PublicKey; every peer needs its own");
      }
      continue;
    }
    const auto [first, fresh] = seen.emplace(peer.peer.publicKey, here);
    if (!fresh) {
      diagnostics.error(here, fmt::format("the peer of {} has the same PublicKey; merge the two or "
                                          "correct one key",
                                          reference(first->second, here)));
    }
    if (isOwnPrivateKey(draft.interface, peer.peer.publicKey)) {
      diagnostics.error(here,
                        "this is the interface's own private key, which no other machine may have; "
                        "write what `adit pubkey` prints on the peer");
    } else if (own == peer.peer.publicKey) {
      diagnostics.error(here, "this is the interface's own public key; write the one of the peer");
    }
  }
}

/// Exact duplicates only: a longer prefix of another peer wins by longest match.
void checkPrefixes(Draft& draft, Diagnostics& diagnostics) {
  struct Owner {
    std::size_t peer;
    Location location;
  };
  std::map<Prefix, Owner> owners;
  for (std::size_t i = 0; i < draft.peers.size(); ++i) {
    PeerDraft& peer = draft.peers[i];
    std::vector<Prefix> kept;
    for (std::size_t j = 0; j < peer.peer.allowedIps.size(); ++j) {
      const Prefix& prefix = peer.peer.allowedIps[j];
      const Location& here = peer.prefixLocations[j];
      const auto [owner, fresh] = owners.emplace(prefix, Owner{i, here});
      const std::string other = reference(owner->second.location, here);
      if (fresh) {
        kept.push_back(prefix);
      } else if (owner->second.peer == i) {
        diagnostics.warning(
            here, fmt::format("{} stands already on {}; remove one", prefix.toString(), other));
      } else {
        diagnostics.error(here, fmt::format("{} belongs to the peer of {} already; a prefix leads "
                                            "to one peer",
                                            prefix.toString(), other));
      }
    }
    peer.peer.allowedIps = std::move(kept);
  }
}

/// A peer's prefix of one address that is this machine's own is usually copied from its other end.
void checkOwnAddresses(const Draft& draft, Diagnostics& diagnostics) {
  for (const PeerDraft& peer : draft.peers) {
    for (std::size_t i = 0; i < peer.peer.allowedIps.size(); ++i) {
      const Prefix& prefix = peer.peer.allowedIps[i];
      const bool own =
          prefix.length() == prefix.address().bits() &&
          std::ranges::find(draft.interface.addresses, prefix.address(),
                            &InterfaceAddress::address) != draft.interface.addresses.end();
      if (own) {
        diagnostics.warning(peer.keys.of("AllowedIPs"),
                            fmt::format("{} is this interface's own address, not the peer's",
                                        prefix.address().toString()));
      }
    }
  }
}

void checkKeyFiles(const Draft& draft, Diagnostics& diagnostics) {
  for (const PeerDraft& peer : draft.peers) {
    if (peer.keys.has("PresharedKey") && peer.keys.has("PresharedKeyFile")) {
      const Location here = peer.keys.of("PresharedKeyFile");
      diagnostics.error(here, fmt::format("PresharedKeyFile and PresharedKey ({}) exclude each "
                                          "other; keep one",
                                          reference(peer.keys.of("PresharedKey"), here)));
    }
  }
}

/// A port that the system chooses is another one at every start.
void checkPort(const Draft& draft, Diagnostics& diagnostics) {
  if (draft.interface.listenPort.value_or(0) != 0 || draft.maps.empty()) return;
  const auto waiting = std::ranges::find_if_not(
      draft.peers, [](const PeerDraft& peer) { return peer.peer.endpoint.has_value(); });
  if (waiting == draft.peers.end()) return;
  const Location here = draft.interfaceKeys.header;
  diagnostics.warning(here,
                      fmt::format("without ListenPort the port is another one at every start, and "
                                  "the peer of {} cannot find it; write ListenPort = 51820",
                                  reference(waiting->keys.header, here)));
}

}  // namespace

bool holdEverything(const std::vector<Prefix>& prefixes, int family) {
  unsigned halves = 0;
  for (const Prefix& prefix : prefixes) {
    if (prefix.address().family() != family) continue;
    if (prefix.isDefault()) return true;
    if (prefix.length() == 1) {
      halves |= prefix.address().isUnspecified() ? 1U : 2U;
    }
  }
  return halves == 3U;
}

const PeerDraft* peerFor(const Draft& draft, const IpAddress& address) {
  const PeerDraft* best = nullptr;
  unsigned bestLength = 0;
  for (const PeerDraft& peer : draft.peers) {
    for (const Prefix& prefix : peer.peer.allowedIps) {
      if (prefix.contains(address) && (best == nullptr || prefix.length() > bestLength)) {
        best = &peer;
        bestLength = prefix.length();
      }
    }
  }
  return best;
}

void checkInterface(Draft& draft, Dialect dialect, Diagnostics& diagnostics) {
  const SectionKeys& keys = draft.interfaceKeys;
  if (dialect == Dialect::WireGuard) return;
  if (draft.hasInterface) {
    checkKeySource(draft, diagnostics);
  }
  if (draft.interface.mtu && *draft.interface.mtu < kSmallestMtuV6 && usesIpv6(draft)) {
    diagnostics.error(keys.of("MTU"), fmt::format("an MTU of {} is too small for IPv6, which is in "
                                                  "use here; it needs at least {}",
                                                  *draft.interface.mtu, kSmallestMtuV6));
  }
  const bool settings = !draft.tune.settings.empty();
  if (settings && !draft.tuneKeys.has("Profile")) {
    draft.tune.profile = TuneConfig::Profile::Explicit;
  }
}

void checkPeers(Draft& draft, Diagnostics& diagnostics) {
  checkNames(draft, diagnostics);
  checkPublicKeys(draft, diagnostics);
  checkPrefixes(draft, diagnostics);
  checkOwnAddresses(draft, diagnostics);
  checkKeyFiles(draft, diagnostics);
}

void check(Draft& draft, Dialect dialect, Diagnostics& diagnostics) {
  checkInterface(draft, dialect, diagnostics);
  checkPeers(draft, diagnostics);
  checkInvitations(draft, diagnostics);
  checkMaps(draft, diagnostics);
  checkReplyPath(draft, diagnostics);
  // Among errors these would only distract.
  if (dialect == Dialect::Adit && !diagnostics.hasErrors()) {
    checkPort(draft, diagnostics);
  }
}

Outcome finish(Draft& draft, Dialect dialect, Diagnostics& diagnostics) {
  check(draft, dialect, diagnostics);
  Outcome outcome;
  if (!diagnostics.hasErrors()) {
    Config& config = outcome.config.emplace();
    config.interface = std::move(draft.interface);
    config.tune = std::move(draft.tune);
    for (PeerDraft& peer : draft.peers) {
      config.peers.push_back(std::move(peer.peer));
    }
    for (InvitationDraft& invitation : draft.invitations) {
      config.invitations.push_back(std::move(invitation.invitation));
    }
    for (MapDraft& map : draft.maps) {
      config.maps.push_back(std::move(map.map));
    }
  }
  outcome.diagnostics = diagnostics.take();
  return outcome;
}

}  // namespace adit::config

#include "config/diff.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "config/mapping_text.hpp"
#include "config/schema.hpp"

namespace adit::config {
namespace {

using Kind = Change::Kind;

std::string peerSubject(const PeerConfig& peer) {
  return "peer " + (peer.name.empty() ? peer.publicKey.toBase64() : peer.name);
}

std::string mapSubject(const MapConfig& map) {
  return "map " + listenText(map);
}

/// The elements of a list value as the writer joins them.
std::vector<std::string> elementsOf(const std::vector<std::string>& lines) {
  std::vector<std::string> elements;
  for (const std::string& line : lines) {
    std::vector<ValueError> none;
    for (const Item& item : splitList(line, Separator::Comma, none)) {
      elements.emplace_back(item.text);
    }
  }
  return elements;
}

std::vector<std::string> without(const std::vector<std::string>& all,
                                 const std::vector<std::string>& known) {
  std::vector<std::string> rest;
  const std::set<std::string> sorted(known.begin(), known.end());
  std::ranges::copy_if(all, std::back_inserter(rest),
                       [&](const std::string& element) { return !sorted.contains(element); });
  return rest;
}

/// Where every prefix of a configuration leads.
using PrefixOwners = std::map<std::string, const PeerConfig*>;

PrefixOwners prefixOwners(const Config& config) {
  PrefixOwners owners;
  for (const PeerConfig& peer : config.peers) {
    for (const Prefix& prefix : peer.allowedIps) {
      owners.emplace(prefix.toString(), &peer);
    }
  }
  return owners;
}

class Comparison {
 public:
  Comparison(const Config& before, const Config& after)
      : before_(before), after_(after), ownersBefore_(prefixOwners(before)) {}

  Diff run() {
    compareKeys(Section::Interface, "interface", {.interface = &before_.interface},
                {.interface = &after_.interface});
    comparePeers();
    compareInvitations();
    compareMaps();
    compareKeys(Section::Tune, "tune", {.tune = &before_.tune}, {.tune = &after_.tune});
    return std::move(diff_);
  }

 private:
  void add(Kind kind, Section section, const std::string& subject, std::string_view key,
           std::string_view what) {
    const std::string text = key.empty() ? fmt::format("{}: {}", subject, what)
                                         : fmt::format("{}: {}: {}", subject, key, what);
    diff_.changes.push_back({kind, section, subject, std::string(key), text});
  }

  void comparePeers() {
    std::map<crypto::PublicKey, const PeerConfig*> old;
    for (const PeerConfig& peer : before_.peers) {
      old.emplace(peer.publicKey, &peer);
    }
    for (const PeerConfig& peer : after_.peers) {
      const auto found = old.find(peer.publicKey);
      if (found == old.end()) {
        add(Kind::Added, Section::Peer, peerSubject(peer), "", "added");
        reportTaken(peer,
                    elementsOf(findKey(Section::Peer, "AllowedIPs")->format({.peer = &peer})));
        continue;
      }
      compareKeys(Section::Peer, peerSubject(peer), {.peer = found->second}, {.peer = &peer});
      old.erase(found);
    }
    for (const PeerConfig& peer : before_.peers) {
      if (old.contains(peer.publicKey)) {
        add(Kind::Removed, Section::Peer, peerSubject(peer), "", "removed");
      }
    }
  }

  void compareInvitations() {
    std::map<crypto::PublicKey, const InvitationConfig*> old;
    for (const InvitationConfig& invitation : before_.invitations) {
      old.emplace(invitation.publicKey, &invitation);
    }
    for (const InvitationConfig& invitation : after_.invitations) {
      const std::string subject = "invitation " + invitation.name;
      const auto found = old.find(invitation.publicKey);
      if (found == old.end()) {
        add(Kind::Added, Section::Invitation, subject, "", "added");
        continue;
      }
      compareKeys(Section::Invitation, subject, {.invitation = found->second},
                  {.invitation = &invitation});
      old.erase(found);
    }
    for (const InvitationConfig& invitation : before_.invitations) {
      if (old.contains(invitation.publicKey)) {
        add(Kind::Removed, Section::Invitation, "invitation " + invitation.name, "", "removed");
      }
    }
  }

  void compareMaps() {
    std::map<std::string, const MapConfig*> old;
    for (const MapConfig& map : before_.maps) {
      old.emplace(listenText(map), &map);
    }
    for (const MapConfig& map : after_.maps) {
      const auto found = old.find(listenText(map));
      if (found == old.end()) {
        add(Kind::Added, Section::Map, mapSubject(map), "", "added, to " + targetText(map));
        continue;
      }
      compareKeys(Section::Map, mapSubject(map), {.map = found->second}, {.map = &map});
      compareTargets(*found->second, map);
      old.erase(found);
    }
    for (const MapConfig& map : before_.maps) {
      if (old.contains(listenText(map))) {
        add(Kind::Removed, Section::Map, mapSubject(map), "", "removed");
      }
    }
  }

  /// The same peer under another address is another target.
  void compareTargets(const MapConfig& before, const MapConfig& after) {
    if (before.targets == after.targets || targetText(before) != targetText(after)) return;
    const auto* spec = findKey(Section::Map, "To");
    std::vector<std::string> addresses;
    for (const IpAddress& address : after.targets) {
      addresses.push_back(address.toString());
    }
    add(Kind::Changed, Section::Map, mapSubject(after), spec->name,
        fmt::format("{} is now at {}", after.targetHost, fmt::join(addresses, ", ")));
  }

  void compareKeys(Section section, const std::string& subject, const SectionView& before,
                   const SectionView& after) {
    for (const KeySpec& spec : keysOf(section)) {
      if (spec.secret) continue;
      const std::vector<std::string> old = spec.format(before);
      const std::vector<std::string> fresh = spec.format(after);
      if (old == fresh) continue;
      if (spec.repeat == Repeat::Once) {
        compareValue(section, subject, spec, old, fresh);
      } else {
        compareList(section, subject, spec, old, fresh, after);
      }
    }
    compareSecrets(section, subject, before, after);
  }

  /// Secrets as such, wherever they stand: a key file of the same name may hold another key.
  void compareSecrets(Section section, const std::string& subject, const SectionView& before,
                      const SectionView& after) {
    if (section == Section::Interface) {
      const InterfaceConfig& old = *before.interface;
      const InterfaceConfig& fresh = *after.interface;
      compareSecret(section, subject, "PrivateKey", old.privateKey, fresh.privateKey);
      if (old.privateKeyCommand != fresh.privateKeyCommand) {
        add(Kind::Changed, section, subject, "PrivateKeyCommand", "changed");
      }
    } else if (section == Section::Peer) {
      compareSecret(section, subject, "PresharedKey", before.peer->presharedKey,
                    after.peer->presharedKey);
    }
  }

  /// In constant time, by the keys' own comparison.
  template <typename Key>
  void compareSecret(Section section, const std::string& subject, std::string_view name,
                     const std::optional<Key>& old, const std::optional<Key>& fresh) {
    if (old && fresh && *old == *fresh) return;
    if (!old && fresh) {
      add(Kind::Added, section, subject, name, "added");
    } else if (old && !fresh) {
      add(Kind::Removed, section, subject, name, "removed");
    } else if (old) {
      add(Kind::Changed, section, subject, name, "changed");
    }
  }

  void compareValue(Section section, const std::string& subject, const KeySpec& spec,
                    const std::vector<std::string>& old, const std::vector<std::string>& fresh) {
    const std::string_view from = old.empty() ? spec.fallback : std::string_view(old.front());
    const std::string_view to = fresh.empty() ? spec.fallback : std::string_view(fresh.front());
    // Written out or left out, it is the same.
    if (from == to) return;
    const Kind kind = old.empty() ? Kind::Added : fresh.empty() ? Kind::Removed : Kind::Changed;
    add(kind, section, subject, spec.name, fmt::format("{} -> {}", from, to));
  }

  void compareList(Section section, const std::string& subject, const KeySpec& spec,
                   const std::vector<std::string>& old, const std::vector<std::string>& fresh,
                   const SectionView& after) {
    if (spec.text == Text::Hook) {
      // A hook may hold anything, secrets too.
      add(Kind::Changed, section, subject, spec.name,
          fmt::format("{} -> {} commands", old.size(), fresh.size()));
      return;
    }
    const std::vector<std::string> was = elementsOf(old);
    const std::vector<std::string> is = elementsOf(fresh);
    const std::vector<std::string> added = without(is, was);
    const std::vector<std::string> removed = without(was, is);
    if (!added.empty()) {
      add(Kind::Added, section, subject, spec.name,
          fmt::format("added {}", fmt::join(added, ", ")));
      if (after.peer != nullptr) reportTaken(*after.peer, added);
    }
    if (!removed.empty()) {
      add(Kind::Removed, section, subject, spec.name,
          fmt::format("removed {}", fmt::join(removed, ", ")));
    }
  }

  /// Says which of `prefixes`, new to `peer`, another peer had.
  void reportTaken(const PeerConfig& peer, const std::vector<std::string>& prefixes) {
    for (const std::string& prefix : prefixes) {
      const auto owner = ownersBefore_.find(prefix);
      if (owner != ownersBefore_.end() && owner->second->publicKey != peer.publicKey) {
        add(Kind::Changed, Section::Peer, peerSubject(peer), "AllowedIPs",
            fmt::format("{} is taken from {}", prefix, peerSubject(*owner->second)));
      }
    }
  }

  const Config& before_;
  const Config& after_;
  PrefixOwners ownersBefore_;
  Diff diff_;
};

}  // namespace

std::vector<std::string> Diff::lines() const {
  std::vector<std::string> lines;
  lines.reserve(changes.size());
  for (const Change& change : changes) {
    lines.push_back(change.text);
  }
  return lines;
}

Diff diff(const Config& before, const Config& after) {
  return Comparison(before, after).run();
}

}  // namespace adit::config

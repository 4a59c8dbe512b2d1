#include "cli/invite_file.hpp"

#include <sodium.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "cli/init_network.hpp"
#include "config/diagnostics.hpp"
#include "config/key_helpers.hpp"
#include "config/parser.hpp"
#include "config/values.hpp"
#include "config/writer.hpp"
#include "control/device_enrol_file.hpp"
#include "enrol/keys.hpp"
#include "enrol/messages.hpp"
#include "util/file.hpp"

namespace adit::cli {
namespace {

namespace fs = std::filesystem;
using config::Config;
using config::InvitationConfig;
using config::PeerConfig;

constexpr mode_t kFileMode = 0600;
/// As many hosts of a network are looked at.
constexpr std::uint32_t kMostHosts = 65534;

bool isTaken(const Config& config, const IpAddress& address, unsigned networkLength) {
  const auto promised = [&](const InterfaceAddress& other) { return other.address == address; };
  // A peer that holds the whole network holds it for what nobody else has.
  const auto held = [&](const Prefix& prefix) {
    return prefix.length() > networkLength && prefix.contains(address);
  };
  return std::ranges::any_of(config.interface.addresses, promised) ||
         std::ranges::any_of(
             config.peers,
             [&](const PeerConfig& peer) { return std::ranges::any_of(peer.allowedIps, held); }) ||
         std::ranges::any_of(config.invitations, [&](const InvitationConfig& other) {
           return std::ranges::any_of(other.addresses, promised);
         });
}

std::optional<InterfaceAddress> freeAddress(const Config& config, const Prefix& network) {
  const unsigned hostBits = network.address().bits() - network.length();
  const std::uint32_t hosts = hostBits >= 16 ? kMostHosts : hostBits < 2 ? 0 : (1U << hostBits) - 2;
  for (std::uint32_t number = 1; number <= hosts; ++number) {
    const IpAddress address = hostOf(network, number);
    if (!isTaken(config, address, network.length())) {
      return InterfaceAddress{address, network.length()};
    }
  }
  return std::nullopt;
}

/// Whether the name is free; an invitation of that name that nobody can use any more is not in the
/// way.
Result<void> checkName(const Config& config, const std::string& name, std::chrono::seconds now) {
  if (const auto valid = config::parsePeerName(name); !valid) {
    return fail("{}: {}", name, valid.error().message);
  }
  const auto same = [&](const auto& other) { return config::equalIgnoringCase(other.name, name); };
  if (std::ranges::any_of(config.peers, same)) {
    return fail("there is a peer {} already; give the new one another name", name);
  }
  const auto invited = std::ranges::find_if(config.invitations, same);
  if (invited != config.invitations.end() && !invited->bound && invited->expires > now) {
    return fail(
        "{} is invited already, until {}; its token cannot be shown again: `adit invite --revoke "
        "{}` withdraws it",
        name, config::formatUtcTime(invited->expires), name);
  }
  return {};
}

Result<void> takeGrants(const std::string& maps, InvitationConfig& invitation) {
  std::vector<config::ValueError> errors;
  for (const config::Item& item : config::splitList(maps, config::Separator::Comma, errors)) {
    if (config::equalIgnoringCase(item.text, "third-party")) {
      invitation.allowThirdParty = true;
      continue;
    }
    const auto match = config::parseProtocolPorts(item.text);
    if (!match) return fail("--maps {}: {}", item.text, match.error().message);
    using Protocol = config::PortGrant::Protocol;
    invitation.allowMaps.push_back({match->tcp && match->udp ? Protocol::Both
                                    : match->tcp             ? Protocol::Tcp
                                                             : Protocol::Udp,
                                    match->ports.first, match->ports.last});
  }
  if (!errors.empty()) return fail("--maps {}: {}", maps, errors.front().message);
  if (invitation.allowMaps.size() > enrol::kMaxGrants) {
    return fail("--maps: at most {} entries; write more into the file once the peer has joined",
                enrol::kMaxGrants);
  }
  return {};
}

std::string fileText(const InvitationConfig& invitation) {
  return fmt::format(
      "# Written by `adit invite`. `adit join` on the other machine turns it into a peer; until\n"
      "# then `adit invite --revoke {}` withdraws it.\n{}",
      invitation.name,
      config::writeSection(config::Section::Invitation, {.invitation = &invitation}));
}

/// Whether anything but `invitation` stands in its file.
bool sharesFile(const Config& config, const InvitationConfig& invitation) {
  const auto inFile = [&](const auto& other) {
    return other.location.file && *other.location.file == *invitation.location.file;
  };
  return std::ranges::any_of(config.peers, inFile) || std::ranges::any_of(config.maps, inFile) ||
         std::ranges::count_if(config.invitations, inFile) > 1;
}

}  // namespace

Result<std::vector<InterfaceAddress>> freeAddresses(const Config& config) {
  std::vector<InterfaceAddress> found;
  for (const int family : {AF_INET, AF_INET6}) {
    for (const InterfaceAddress& own : config.interface.addresses) {
      const bool have = std::ranges::any_of(found, [&](const InterfaceAddress& address) {
        return address.address.family() == family;
      });
      if (own.address.family() != family || have) continue;
      if (const auto address = freeAddress(config, own.prefix())) found.push_back(*address);
    }
  }
  if (!found.empty()) return found;
  return fail(
      "no address is left for another machine: [Interface] needs an Address with room, as in "
      "10.77.0.1/24");
}

Result<Invitation> makeInvitation(const control::NamedConfig& named, const Config& config,
                                  const crypto::PublicKey& server, const InvitationWish& wish,
                                  std::chrono::seconds now, crypto::RandomSource& random) {
  if (auto free = checkName(config, wish.name, now); !free) return tl::unexpected(free.error());
  Invitation result;
  result.file = control::peerFile(named.file, wish.name);
  result.token.suite = config.interface.cipher.value_or(crypto::Suite::ChaCha20Poly1305);
  result.token.expires = now + wish.lifetime;
  result.token.server = server;
  result.token.name = wish.name;
  random.fill(result.token.secret.bytes());

  const enrol::EnrolmentKeys keys = enrol::enrolmentKeys(result.token.secret, server);
  const auto old = std::ranges::find_if(config.invitations, [&](const InvitationConfig& other) {
    return other.location.file && *other.location.file == result.file.string();
  });
  result.replaces = old != config.invitations.end() && !sharesFile(config, *old);

  result.config.name = wish.name;
  result.config.publicKey = keys.privateKey.publicKey();
  result.config.presharedKey = keys.presharedKey;
  result.config.expires = result.token.expires;
  const auto addresses = freeAddresses(config);
  if (!addresses) return tl::unexpected(addresses.error());
  result.config.addresses = *addresses;
  if (!wish.maps.empty()) {
    if (auto taken = takeGrants(wish.maps, result.config); !taken) {
      return tl::unexpected(taken.error());
    }
  }
  return result;
}

Result<void> writeInvitation(const control::NamedConfig& named, const Invitation& invitation) {
  std::error_code ignored;
  if (!invitation.replaces && fs::exists(invitation.file, ignored)) {
    return fail("{} exists already; move it away, or invite by another name",
                invitation.file.string());
  }
  std::string text = fileText(invitation.config);
  const config::Outcome outcome = config::loadWith(named.file, invitation.file, text);
  Result<void> written = outcome.ok()
                             ? replaceFile(invitation.file, text, kFileMode, Durability::PowerCut)
                             : fail("{}", outcome.diagnostics.front().toString());
  sodium_memzero(text.data(), text.size());
  return written;
}

Result<void> revokeInvitation(const control::NamedConfig& named, const Config& config,
                              const std::string& name) {
  const auto found = std::ranges::find_if(config.invitations, [&](const InvitationConfig& other) {
    return config::equalIgnoringCase(other.name, name);
  });
  if (found == config.invitations.end()) {
    return fail("there is no invitation of {}; `adit invite --list` shows all", name);
  }
  if (found->bound) return fail("{} has joined; it is a peer now", found->name);
  const fs::path file = *found->location.file;
  if (file.parent_path() != config::dropInFolder(named.file) || sharesFile(config, *found)) {
    return fail(
        "{}:{} does not stand alone in its file; remove the section by hand, and run "
        "`adit reload {}`",
        file.string(), found->location.line, named.interface);
  }
  if (::unlink(file.c_str()) != 0) return failErrno(errno, "{}", file.string());
  return {};
}

}  // namespace adit::cli

#include "control/device_enrol_file.hpp"

#include <fcntl.h>
#include <sodium.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <thread>

#include "config/file_io.hpp"
#include "config/lexer.hpp"
#include "config/parser.hpp"
#include "config/values.hpp"
#include "config/writer.hpp"
#include "util/file.hpp"

namespace adit::control {
namespace {

namespace fs = std::filesystem;
using config::InvitationConfig;
using enrol::Verdict;

constexpr mode_t kFolderMode = 0700;
constexpr mode_t kFileMode = 0600;

tl::unexpected<Error> firstError(const config::Outcome& outcome) {
  const auto bad = std::ranges::find(outcome.diagnostics, config::Severity::Error,
                                     &config::Diagnostic::severity);
  return fail("{}", bad->toString());
}

config::PeerConfig peerOf(const InvitationConfig& invitation, const crypto::PublicKey& joining,
                          crypto::RandomSource& random) {
  config::PeerConfig peer;
  peer.name = invitation.name;
  peer.publicKey = joining;
  random.fill(peer.presharedKey.emplace().bytes());
  for (const InterfaceAddress& address : invitation.addresses) {
    peer.allowedIps.emplace_back(address.address, address.address.bits());
  }
  peer.allowMaps = invitation.allowMaps;
  peer.allowThirdParty = invitation.allowThirdParty;
  return peer;
}

/// The file's text with the key in its [Invitation] and the new peer at its end.
std::string completed(std::string_view text, const InvitationConfig& invitation,
                      const config::PeerConfig& peer, std::chrono::seconds now) {
  std::size_t headerEnd = 0;
  for (unsigned line = 0; line < invitation.location.line && headerEnd < text.size(); ++line) {
    headerEnd = std::min(text.find('\n', headerEnd), text.size() - 1) + 1;
  }
  return fmt::format("{}Bound = {}\n{}{}\n# Joined at {}.\n{}", text.substr(0, headerEnd),
                     peer.publicKey.toBase64(), text.substr(headerEnd),
                     text.ends_with('\n') ? "" : "\n", config::formatUtcTime(now),
                     config::writeSection(config::Section::Peer, {.peer = &peer}));
}

/// What does not need the file to be written.
std::optional<Verdict> settled(const config::Config& config, const InvitationConfig& invitation,
                               const crypto::PublicKey& joining, std::chrono::seconds now) {
  if (invitation.bound && *invitation.bound != joining) return Verdict::Taken;
  const bool isPeer = std::ranges::find(config.peers, joining, &config::PeerConfig::publicKey) !=
                      config.peers.end();
  // Whose answer was lost has joined all the same.
  if (invitation.bound && isPeer) return Verdict::Accepted;
  if (now >= invitation.expires) return Verdict::Expired;
  return invitation.bound ? std::optional(Verdict::Withdrawn) : std::nullopt;
}

}  // namespace

fs::path peerFile(const fs::path& configFile, std::string_view peer) {
  return config::dropInFolder(configFile) / fmt::format("peer-{}.conf", peer);
}

Result<UniqueFd> lockPeerFiles(const fs::path& configFile) {
  constexpr auto kPatience = std::chrono::seconds(2);
  constexpr auto kInterval = std::chrono::milliseconds(20);
  const fs::path folder = config::dropInFolder(configFile);
  if (::mkdir(folder.c_str(), kFolderMode) != 0 && errno != EEXIST) {
    return failErrno(errno, "{}", folder.string());
  }
  UniqueFd lock(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!lock) return failErrno(errno, "{}", folder.string());
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (std::chrono::steady_clock::now() > until) {
      return fail("another program is changing {}; try again", folder.string());
    }
    std::this_thread::sleep_for(kInterval);
  }
  return lock;
}

Result<Verdict> completeInvitation(const fs::path& configFile, const JoiningKeys& keys,
                                   const Clock& clock, crypto::RandomSource& random) {
  const auto lock = lockPeerFiles(configFile);
  if (!lock) return tl::unexpected(lock.error());
  const config::Outcome outcome = config::load(configFile);
  if (!outcome.ok()) return firstError(outcome);
  const auto& invitations = outcome.config->invitations;
  const auto found = std::ranges::find(invitations, keys.enrolment, &InvitationConfig::publicKey);
  if (found == invitations.end()) return Verdict::Withdrawn;
  const auto now = std::chrono::floor<std::chrono::seconds>(clock.realTime());
  if (const auto verdict = settled(*outcome.config, *found, keys.joining, now)) return *verdict;

  const fs::path file = *found->location.file;
  if (file.parent_path() != config::dropInFolder(configFile)) {
    return fail("{}: an invitation outside of {} is not completed", file.string(),
                config::dropInFolder(configFile).string());
  }
  const auto before = config::readFile(file, config::kMaxFileSize, true);
  if (!before) return wrapError(before.error(), file.string());
  std::string text = completed(before->text(), *found, peerOf(*found, keys.joining, random), now);
  const config::Outcome after = config::loadWith(configFile, file, text);
  Result<void> written = after.ok() ? replaceFile(file, text, kFileMode, Durability::PowerCut)
                                    : Result<void>(firstError(after));
  sodium_memzero(text.data(), text.size());
  if (!written) return tl::unexpected(written.error());
  return Verdict::Accepted;
}

}  // namespace adit::control

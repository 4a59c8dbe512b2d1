// An invitation as `adit invite` makes it: its addresses, its keys, its file, its token.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "config/model.hpp"
#include "control/paths.hpp"
#include "crypto/random.hpp"
#include "enrol/token.hpp"
#include "util/result.hpp"

namespace adit::cli {

struct InvitationWish {
  std::string name;
  /// The value of AllowMaps; empty for none.
  std::string maps;
  std::chrono::seconds lifetime{};
};

struct Invitation {
  config::InvitationConfig config;
  /// Without endpoints.
  enrol::Token token;
  std::filesystem::path file;
  /// The file holds an invitation of that name that nobody can use any more, and nothing else.
  bool replaces = false;
};

/// An address of each family that `config` has, not promised to anybody.
Result<std::vector<InterfaceAddress>> freeAddresses(const config::Config& config);

/// Judged with the whole configuration `outcome`, but not written. `server` is the public key of
/// the interface. An invitation that has expired does not stand in the way of another of its name.
Result<Invitation> makeInvitation(const control::NamedConfig& named, const config::Config& config,
                                  const crypto::PublicKey& server, const InvitationWish& wish,
                                  std::chrono::seconds now, crypto::RandomSource& random);
/// Never over a file that holds anything else. Call it with control::lockPeerFiles() held since
/// `config` was loaded.
Result<void> writeInvitation(const control::NamedConfig& named, const Invitation& invitation);

/// Removes the open invitation of a peer, which must stand in a file of its own.
Result<void> revokeInvitation(const control::NamedConfig& named, const config::Config& config,
                              const std::string& name);

}  // namespace adit::cli

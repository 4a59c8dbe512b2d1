// The files of NAME.d that hold invitations and the peers that came of them: one file for each
// peer, written by `adit invite` and completed by the daemon when the peer joins.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "config/model.hpp"
#include "crypto/random.hpp"
#include "enrol/messages.hpp"
#include "util/clock.hpp"
#include "util/result.hpp"
#include "util/unique_fd.hpp"

namespace adit::control {

/// NAME.d/peer-PEER.conf beside `configFile`. `peer` has passed config::parsePeerName().
std::filesystem::path peerFile(const std::filesystem::path& configFile, std::string_view peer);

/// Keeps others from changing these files at the same time, while it lives. The folder is made
/// where it is missing (mode 0700). Waits for two seconds at most.
Result<UniqueFd> lockPeerFiles(const std::filesystem::path& configFile);

/// The two keys of one enrolment.
struct JoiningKeys {
  crypto::PublicKey enrolment;
  crypto::PublicKey joining;
};

/// See Privileged::completeInvitation(). What a person has added to the file stays in it. Fails
/// when the files cannot be read as they are, or the key is in use already.
Result<enrol::Verdict> completeInvitation(const std::filesystem::path& configFile,
                                          const JoiningKeys& keys, const Clock& clock,
                                          crypto::RandomSource& random);

}  // namespace adit::control

// What no single line shows: keys that are missing, and parts of a configuration that contradict
// each other.
#pragma once

#include "config/diagnostics.hpp"
#include "config/draft.hpp"

namespace adit::config {

/// Checks the whole and fills in what follows from other parts: target ports and addresses of
/// mappings, the tuning profile. Reports with the lines of both parts.
void check(Draft& draft, Dialect dialect, Diagnostics& diagnostics);

/// check(), and the configuration if nothing is wrong with it. Takes from `draft` and
/// `diagnostics`.
Outcome finish(Draft& draft, Dialect dialect, Diagnostics& diagnostics);

/// The parts, one kind of mistake each.
void checkInterface(Draft& draft, Dialect dialect, Diagnostics& diagnostics);
void checkPeers(Draft& draft, Diagnostics& diagnostics);
/// What the sections have in common with peers; after checkPeers().
void checkInvitations(Draft& draft, Diagnostics& diagnostics);
void checkMaps(Draft& draft, Diagnostics& diagnostics);
/// Whether the tunnel carries the real addresses of a mapping's clients; needs checkMaps().
void checkReplyPath(Draft& draft, Diagnostics& diagnostics);

/// Whether `prefixes` hold every address of the family, as one /0 or as two /1.
bool holdEverything(const std::vector<Prefix>& prefixes, int family);
/// The peer that packets for `address` go to by longest match, or null.
const PeerDraft* peerFor(const Draft& draft, const IpAddress& address);

}  // namespace adit::config

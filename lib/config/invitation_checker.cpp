// [Invitation]: what is missing, and what belongs to a peer already.
#include <fmt/format.h>

#include <algorithm>

#include "config/checker.hpp"
#include "config/schema.hpp"

namespace adit::config {
namespace {

void checkRequired(const InvitationDraft& draft, Diagnostics& diagnostics) {
  if (draft.keys.damaged) return;
  for (const KeySpec& spec : keysOf(Section::Invitation)) {
    if (spec.fallback == "required" && !draft.keys.has(spec.name)) {
      diagnostics.error(draft.keys.header,
                        fmt::format("[Invitation] has no {}; `adit invite` writes this section, so "
                                    "remove its file and invite again",
                                    spec.name));
    }
  }
}

/// Names and addresses are promised to who joins.
void checkAgainstPeer(const InvitationDraft& draft, const PeerDraft& peer,
                      Diagnostics& diagnostics) {
  const InvitationConfig& invitation = draft.invitation;
  const Location here = draft.keys.of("Name");
  if (!invitation.name.empty() && lowered(invitation.name) == lowered(peer.peer.name)) {
    diagnostics.error(here, fmt::format("the peer of {} has this name already",
                                        reference(peer.keys.of("Name"), here)));
  }
  for (const InterfaceAddress& address : invitation.addresses) {
    const Prefix single(address.address, address.address.bits());
    if (std::ranges::find(peer.peer.allowedIps, single) != peer.peer.allowedIps.end()) {
      const Location at = draft.keys.of("Address");
      diagnostics.error(
          at, fmt::format("{} belongs to the peer of {} already", address.address.toString(),
                          reference(peer.keys.of("AllowedIPs"), at)));
    }
  }
}

void checkAgainstOther(const InvitationDraft& draft, const InvitationDraft& other,
                       Diagnostics& diagnostics) {
  const Location here = draft.keys.of("Name");
  if (draft.invitation.publicKey == other.invitation.publicKey) {
    const Location at = draft.keys.of("PublicKey");
    diagnostics.error(at, fmt::format("the invitation on {} has the same PublicKey",
                                      reference(other.keys.of("PublicKey"), at)));
  }
  if (other.invitation.bound) return;
  if (lowered(draft.invitation.name) == lowered(other.invitation.name)) {
    diagnostics.error(here, fmt::format("the invitation on {} has this name already",
                                        reference(other.keys.of("Name"), here)));
  }
  for (const InterfaceAddress& address : draft.invitation.addresses) {
    if (std::ranges::find(other.invitation.addresses, address.address,
                          &InterfaceAddress::address) != other.invitation.addresses.end()) {
      const Location at = draft.keys.of("Address");
      diagnostics.error(
          at, fmt::format("{} is promised by the invitation on {} already",
                          address.address.toString(), reference(other.keys.of("Address"), at)));
    }
  }
}

}  // namespace

void checkInvitations(Draft& draft, Diagnostics& diagnostics) {
  for (std::size_t i = 0; i < draft.invitations.size(); ++i) {
    const InvitationDraft& invitation = draft.invitations[i];
    checkRequired(invitation, diagnostics);
    for (const PeerDraft& peer : draft.peers) {
      if (peer.hasPublicKey && peer.peer.publicKey == invitation.invitation.publicKey) {
        const Location here = invitation.keys.of("PublicKey");
        diagnostics.error(here, fmt::format("the peer of {} has the same PublicKey",
                                            reference(peer.keys.of("PublicKey"), here)));
      }
      // What has joined is a peer of this name and these addresses.
      if (!invitation.invitation.bound) checkAgainstPeer(invitation, peer, diagnostics);
    }
    for (std::size_t j = 0; j < i && !invitation.invitation.bound; ++j) {
      checkAgainstOther(invitation, draft.invitations[j], diagnostics);
    }
  }
}

}  // namespace adit::config

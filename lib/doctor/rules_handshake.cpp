// Sessions: why there is none, and what keeps one alive.
#include <fmt/format.h>

#include <algorithm>

#include "doctor/rules.hpp"

namespace adit::doctor {
namespace {

using std::chrono::seconds;

/// Initiations go out every 5 s; one may be lost.
constexpr seconds kSilence{5};
/// What NAT routers keep an idle UDP flow for is often less than a minute.
constexpr unsigned kUsualKeepalive = 25;

bool concerns(const HandshakeTrouble& trouble, const PeerFacts& peer) {
  return trouble.peer == peer.label;
}

std::string_view nameOfTrouble(const std::string& kind) {
  if (kind == "foreign-key") return "handshake-wrong-key";
  if (kind == "unknown-key") return "handshake-unknown-key";
  if (kind == "preshared-key") return "handshake-preshared-key";
  return "handshake-cipher";
}

std::string remedyOfTrouble(const std::string& kind, const std::string& tunnel) {
  if (kind == "foreign-key") {
    return fmt::format(
        "on the other side: PublicKey = (the output of `adit show {} public-key` here), then "
        "`adit reload`",
        tunnel);
  }
  if (kind == "unknown-key") {
    return fmt::format(
        "add a [Peer] with that PublicKey, then `adit reload {}`; or correct the other side's "
        "PrivateKey",
        tunnel);
  }
  if (kind == "preshared-key") {
    return fmt::format("the same PresharedKey on both sides, then `adit reload {}`", tunnel);
  }
  return fmt::format("Cipher = auto on both sides, then `adit reload {}`", tunnel);
}

std::string sentenceOfTrouble(const HandshakeTrouble& trouble, const std::string& tunnel) {
  if (trouble.kind == "foreign-key") {
    return fmt::format("{}: the other side has another public key for us than ours", tunnel);
  }
  if (trouble.kind == "unknown-key") {
    return fmt::format("{}: somebody calls with a public key that no [Peer] here has", tunnel);
  }
  if (trouble.kind == "preshared-key") {
    return fmt::format("{}: peer {} answers with other keys than ours: the preshared keys differ",
                       tunnel, trouble.peer);
  }
  return fmt::format("{}: peer {} asks for a cipher that our Cipher rules out", tunnel,
                     trouble.peer);
}

/// The reasons that the daemon has seen for itself.
void judgeTroubles(const TunnelFacts& tunnel, Findings& out) {
  for (const HandshakeTrouble& trouble : tunnel.troubles) {
    if (trouble.kind == "silence") continue;
    out.push_back({std::string(nameOfTrouble(trouble.kind)), Severity::Fault,
                   sentenceOfTrouble(trouble, tunnel.name), trouble.text,
                   remedyOfTrouble(trouble.kind, tunnel.name)});
  }
}

std::string silenceEvidence(const PeerFacts& peer) {
  std::string text =
      peer.unanswered ? fmt::format("no answer for {} s", peer.unanswered->count()) : "no answer";
  text += peer.lastHandshake ? fmt::format(", last handshake {} s ago", peer.lastHandshake->count())
                             : ", never a handshake";
  text += fmt::format(", {} bytes received in all", peer.received);
  return text;
}

/// Nobody answers, and something came back that says why.
bool judgePort(const TunnelFacts& tunnel, const PeerFacts& peer, Findings& out) {
  const std::string evidence = silenceEvidence(peer);
  switch (peer.port) {
    case PortAnswer::Refused:
      out.push_back({"handshake-port-closed", Severity::Fault,
                     fmt::format("{}: nothing listens at {} of peer {}", tunnel.name, peer.endpoint,
                                 peer.label),
                     evidence + "; ICMP port unreachable came back",
                     "on the peer: `adit up NAME`, and ListenPort there must be the port of "
                     "Endpoint here"});
      return true;
    case PortAnswer::Prohibited:
      out.push_back({"handshake-port-blocked", Severity::Fault,
                     fmt::format("{}: a firewall on the way to peer {} forbids UDP to {}",
                                 tunnel.name, peer.label, peer.endpoint),
                     evidence + "; ICMP prohibited came back",
                     fmt::format("on the peer's firewall: `nft add rule inet filter input udp "
                                 "dport {} accept`, or the provider's like",
                                 peer.endpoint.substr(peer.endpoint.rfind(':') + 1))});
      return true;
    case PortAnswer::Unreachable:
      out.push_back({"handshake-no-route", Severity::Fault,
                     fmt::format("{}: there is no way to {} of peer {}", tunnel.name, peer.endpoint,
                                 peer.label),
                     evidence + "; ICMP unreachable came back",
                     fmt::format("`ip route get {}`, and the machine itself must be up",
                                 peer.endpoint.substr(0, peer.endpoint.rfind(':')))});
      return true;
    case PortAnswer::NotTried:
    case PortAnswer::Silent:
      return false;
  }
  return false;
}

/// We have been called, and the address that called answers no more.
void judgeRebinding(const TunnelFacts& tunnel, const PeerFacts& peer, Findings& out) {
  out.push_back(
      {"nat-rebinding", Severity::Fault,
       fmt::format("{}: peer {} can no longer be reached at {}, where it was last heard: the NAT "
                   "before it has forgotten the flow",
                   tunnel.name, peer.label, peer.endpoint),
       silenceEvidence(peer) + (peer.roams ? "" : "; Roam = off keeps us from following it"),
       fmt::format("on the peer: PersistentKeepalive = {}, then `adit reload`{}", kUsualKeepalive,
                   peer.roams ? "" : "; here: Roam = on")});
}

void judgeSilence(const TunnelFacts& tunnel, const PeerFacts& peer, Findings& out) {
  if (judgePort(tunnel, peer, out)) return;
  const std::string port = peer.endpoint.substr(peer.endpoint.rfind(':') + 1);
  std::string evidence = silenceEvidence(peer);
  std::string sentence =
      fmt::format("{}: peer {} does not answer at {}", tunnel.name, peer.label, peer.endpoint);
  if (peer.hostAnswers == true) {
    evidence += "; the host itself answers pings";
    sentence += fmt::format(
        ", though its host is up: udp/{} is blocked on the way, or our key, or its, is another "
        "there",
        port);
  } else if (peer.hostAnswers == false) {
    evidence += "; the host does not answer pings either";
    sentence += ": its host is off or unreachable, or a firewall drops everything";
  } else {
    sentence +=
        fmt::format(": udp/{} is blocked on the way, or the keys are not each other's", port);
  }
  out.push_back({"handshake-silent", Severity::Fault, std::move(sentence), std::move(evidence),
                 peer.hostAnswers
                     ? "on the peer: `adit doctor` there tells a wrong key (it hears us) from a "
                       "blocked port (it hears nothing)"
                     : fmt::format("`adit doctor --probe {}` looks further; on the peer `adit "
                                   "doctor` tells a wrong key from a blocked port",
                                   tunnel.name)});
}

void judgePeer(const TunnelFacts& tunnel, const PeerFacts& peer, Findings& out) {
  if (peer.clockBehindBy) {
    out.push_back(
        {"handshake-clock-behind", Severity::Fault,
         fmt::format("{}: the clock of peer {} went back, so its handshakes look like "
                     "old ones and are refused",
                     tunnel.name, peer.label),
         fmt::format("{} handshakes with an older timestamp than before, the last one by {} s",
                     peer.clockBehind, peer.clockBehindBy->count()),
         "on the peer: `timedatectl set-ntp true` (or set the clock by hand); "
         "afterwards it calls again by itself"});
    return;
  }
  if (!peer.unresolved.empty() && peer.endpoint.empty()) {
    out.push_back({"endpoint-unresolved", Severity::Fault,
                   fmt::format("{}: the name of peer {}'s Endpoint does not resolve", tunnel.name,
                               peer.label),
                   peer.unresolved,
                   fmt::format("`getent ahosts {}`; correct Endpoint or the resolver",
                               peer.unresolved.substr(0, peer.unresolved.rfind(':')))});
    return;
  }
  const bool explained = std::ranges::any_of(tunnel.troubles, [&](const HandshakeTrouble& trouble) {
    return trouble.kind != "silence" && concerns(trouble, peer);
  });
  if (explained || peer.endpoint.empty() || !peer.unanswered || *peer.unanswered < kSilence) return;
  if (!peer.called && peer.lastHandshake) return judgeRebinding(tunnel, peer, out);
  judgeSilence(tunnel, peer, out);
}

}  // namespace

void judgeHandshakes(const TunnelFacts& tunnel, Findings& out) {
  judgeTroubles(tunnel, out);
  for (const PeerFacts& peer : tunnel.peers) {
    judgePeer(tunnel, peer, out);
  }
}

void judgeKeepalive(const TunnelFacts& tunnel, Findings& out) {
  for (const PeerFacts& peer : tunnel.peers) {
    if (peer.called && peer.behindNat && peer.keepalive == 0) {
      out.push_back(
          {"keepalive-missing", Severity::Fault,
           fmt::format("{}: this side is behind a NAT and has no PersistentKeepalive for peer {}, "
                       "which cannot reach us once the NAT forgets the flow",
                       tunnel.name, peer.label),
           fmt::format("a private address here, {} there, keepalive off", peer.endpoint),
           fmt::format("PersistentKeepalive = {} in its [Peer] here, then `adit reload {}`",
                       kUsualKeepalive, tunnel.name)});
    }
    if (!peer.called && peer.keepalive != 0) {
      out.push_back(
          {"keepalive-wrong-side", Severity::Fault,
           fmt::format("{}: PersistentKeepalive for peer {} is on the wrong side: only the side "
                       "that calls opens the NAT before it, and the peer calls us",
                       tunnel.name, peer.label),
           fmt::format("PersistentKeepalive = {} here, and no Endpoint", peer.keepalive),
           fmt::format("on the peer: PersistentKeepalive = {}; remove it here; `adit reload` both",
                       kUsualKeepalive)});
    }
  }
}

void judgeClock(const MachineFacts& machine, Findings& out) {
  if (!machine.clockBehind) return;
  out.push_back({"own-clock-behind", Severity::Fault,
                 "the clock of this machine is behind: peers refuse handshakes that are older "
                 "than those before",
                 fmt::format("{} s behind {}", machine.clockBehind->count(), machine.clockEvidence),
                 "`timedatectl set-ntp true`, or `date -s` by hand"});
}

}  // namespace adit::doctor

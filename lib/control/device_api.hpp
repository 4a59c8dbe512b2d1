// What the outside may see and change of a running device: the same for adit's control socket
// and for WireGuard's cross-platform socket.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/model.hpp"
#include "control/device_pcp_snapshot.hpp"
#include "crypto/key.hpp"
#include "crypto/suite.hpp"
#include "nat/usage.hpp"
#include "util/address.hpp"
#include "util/result.hpp"

namespace adit::control {

/// A peer as it is now.
struct PeerSnapshot {
  std::string name;
  crypto::PublicKey publicKey;
  crypto::PresharedKey presharedKey;
  /// Where datagrams go now (configured, resolved or learned).
  std::optional<Endpoint> endpoint;
  /// HOST:PORT of the configuration while it is unresolved, else empty.
  std::string unresolvedEndpoint;
  /// HOST:PORT of the file, or as it was set last; never a learned one. Empty for none.
  std::string configuredEndpoint;
  std::vector<Prefix> allowedIps;
  std::uint16_t persistentKeepalive = 0;
  /// Wall-clock time since the epoch of the last finished handshake; zero for never.
  std::chrono::nanoseconds lastHandshake{};
  std::uint64_t rxBytes = 0;
  std::uint64_t txBytes = 0;
  /// The suite of the current session.
  std::optional<crypto::Suite> suite;
  /// Initiations refused because their timestamp did not increase although all else was right.
  std::uint64_t clockBehind = 0;
  /// By how much its clock was behind at the last of them; nothing while it is well.
  std::optional<std::chrono::seconds> clockBehindBy = {};
  /// Handshakes that were finished since the daemon started.
  std::uint64_t handshakes = 0;
  /// How long our initiations have not been answered; nothing while they are, or while none is
  /// wanted.
  std::optional<std::chrono::seconds> unanswered = {};
  /// What the peer tells of its data plane, as DeviceSnapshot::suiteSpeeds; nothing from WireGuard.
  std::optional<std::array<std::uint32_t, ADIT_SUITE_COUNT>> suiteSpeeds = {};
  /// Name and count of everything that was dropped and counted; zero counts are left out.
  std::vector<std::pair<std::string, std::uint64_t>> drops;
};

/// Why handshakes fail, for programs; the person's words for it are among the warnings.
struct TroubleSnapshot {
  /// "foreign-key": meant for another public key than ours; "unknown-key": no [Peer] here has the
  /// caller's key; "preshared-key"; "cipher"; "silence".
  std::string kind;
  /// The label of the peer that it is about; empty for none.
  std::string peer;
  std::string text;
};

struct MapSnapshot {
  /// "tcp/18080", "udp/[2001:db8::1]:5000-5009"
  std::string listen;
  std::string target;
  std::string source;
  /// The mapping is in the kernel's ruleset now.
  bool active = false;
  /// Why it is not, or why it may not work all the same; else empty.
  std::string reason;
  /// The peer's name or the address that the file gives, and what it leads to: "10.10.0.2:80",
  /// "[fd10::2]:80".
  std::string to = {};
  std::vector<std::string> targets = {};
  /// What it has carried, where connection tracking tells.
  std::optional<nat::MapUsage> usage = {};
};

/// What the file or a later change says, as `adit save` needs it beside what runs.
struct ConfiguredState {
  std::optional<std::uint16_t> listenPort;
  /// 0 was set by hand and is none.
  std::optional<std::uint32_t> firewallMark;
  /// The files that the configuration came from, as they were then.
  std::vector<config::FileStamp> files;
};

/// The device as it is now, read from the data plane and the kernel, not from memory.
struct DeviceSnapshot {
  std::string name;
  std::optional<crypto::PrivateKey> privateKey;
  std::uint16_t listenPort = 0;
  std::uint32_t firewallMark = 0;
  std::vector<PeerSnapshot> peers;
  ConfiguredState configured;

  /// "kernel" or "userspace", and why this one was taken.
  std::string backend;
  std::string backendReason;
  std::uint32_t mtu = 0;
  std::vector<InterfaceAddress> addresses;
  std::vector<MapSnapshot> maps;
  /// Ports that peers have asked us for, and that we ask a server for (PCP).
  std::vector<PortRequestSnapshot> requests = {};
  /// What is degraded; each line names the thing and the remedy.
  std::vector<std::string> warnings;
  std::vector<TroubleSnapshot> troubles = {};
  /// By suite number, megabytes per second on one core.
  std::array<std::uint32_t, ADIT_SUITE_COUNT> suiteSpeeds{};
  std::vector<std::pair<std::string, std::uint64_t>> drops;
};

/// One peer of a DeviceChange: what is absent stays as it is.
struct PeerChange {
  crypto::PublicKey publicKey;
  bool remove = false;
  /// Do nothing where the peer does not exist.
  bool updateOnly = false;
  /// All zero removes it.
  std::optional<crypto::PresharedKey> presharedKey;
  std::optional<Endpoint> endpoint;
  std::optional<std::uint16_t> persistentKeepalive;
  bool replaceAllowedIps = false;
  std::vector<Prefix> addAllowedIps;
  std::vector<Prefix> removeAllowedIps;
};

/// The change of wg(8)'s `set`, `setconf`, `addconf` and `syncconf`, applied whole or not at all.
struct DeviceChange {
  /// All zero removes it.
  std::optional<Secret<32>> privateKey;
  std::optional<std::uint16_t> listenPort;
  std::optional<std::uint32_t> firewallMark;
  bool replacePeers = false;
  std::vector<PeerChange> peers;
};

class DeviceApi {
 public:
  virtual ~DeviceApi() = default;
  [[nodiscard]] virtual DeviceSnapshot snapshot() const = 0;
  /// On failure nothing has changed. The strings are remarks for the person, such as a prefix
  /// that was taken from another peer.
  virtual Result<std::vector<std::string>> apply(const DeviceChange& change) = 0;
  /// Reads the configuration file again and applies it without dropping sessions; the strings say
  /// what changed. On failure (a wrong file) nothing has changed.
  virtual Result<std::vector<std::string>> reload() = 0;
  /// The running state was written to the configuration's files, which are these now.
  virtual void saved(std::vector<config::FileStamp>) {}
  /// Undoes everything and ends the daemon once the answer is out.
  virtual Result<std::vector<std::string>> down() = 0;
};

}  // namespace adit::control

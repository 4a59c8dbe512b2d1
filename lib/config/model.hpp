// What a configuration file says, after it has been checked. Values only: no system state, no
// resolved names.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "config/metrics_address.hpp"
#include "crypto/hash.hpp"
#include "crypto/key.hpp"
#include "crypto/suite.hpp"
#include "util/address.hpp"

namespace adit::config {

/// Whose grammar a text is read by.
enum class Dialect : std::uint8_t {
  /// The whole grammar of docs/configuration.md.
  Adit,
  /// What wg(8) setconf, addconf and syncconf take: the tunnel's own keys, PrivateKey optional.
  WireGuard,
};

enum class Section : std::uint8_t { Interface, Peer, Invitation, Map, Tune };

/// Where something stands in a file. Lines and columns start at 1; columns count bytes. Line 0
/// stands for something that no file said.
struct Location {
  std::shared_ptr<const std::string> file;
  unsigned line = 0;
  unsigned column = 0;
};

/// HOST:PORT as written. `host` has no brackets and no zone.
struct EndpointName {
  std::string host;
  std::uint16_t port = 0;
  /// Interface name or number of a link-local IPv6 address, else empty.
  std::string zone;
  /// The address, when `host` is one and needs no resolver.
  std::optional<IpAddress> literal;
  /// "host:port", "[v6%zone]:port".
  [[nodiscard]] std::string toString() const;
  friend bool operator==(const EndpointName&, const EndpointName&) = default;
};

/// `Table`: auto and off as wg-quick's, `reply` as docs/architecture.md's, or a table number.
struct TableAuto {
  friend bool operator==(TableAuto, TableAuto) = default;
};
struct TableOff {
  friend bool operator==(TableOff, TableOff) = default;
};
struct TableReply {
  friend bool operator==(TableReply, TableReply) = default;
};
using Table = std::variant<TableAuto, TableOff, TableReply, std::uint32_t>;

enum class Expose : std::uint8_t { All, Maps };
enum class Backend : std::uint8_t { Auto, Kernel, Userspace };
enum class Source : std::uint8_t { Preserve, Masquerade };

/// One hook line: shell text, in file order.
struct Hook {
  std::string command;
  Location location;
};

struct InterfaceConfig {
  /// Set when the key stands in the file or was read from PrivateKeyFile.
  std::optional<crypto::PrivateKey> privateKey;
  std::string privateKeyFile;
  /// Shell text whose output is the key; run by the daemon, never by the parser.
  std::string privateKeyCommand;
  std::vector<InterfaceAddress> addresses;
  /// Nothing, or 0 as wg(8) has it, leaves the choice to the system.
  std::optional<std::uint16_t> listenPort;
  /// Nothing is `auto`.
  std::optional<std::uint16_t> mtu;
  /// Nothing is `off` (and wg-quick's automatic mark for default routes). 0 comes from
  /// Dialect::WireGuard alone and says that `FwMark = off` stood there, which addconf must apply.
  std::optional<std::uint32_t> firewallMark;
  std::vector<IpAddress> dnsServers;
  std::vector<std::string> dnsSearch;
  Table table = TableAuto{};
  std::vector<Hook> preUp, postUp, preDown, postDown;
  Expose expose = Expose::All;
  Backend backend = Backend::Auto;
  /// Nothing is `auto`.
  std::optional<crypto::Suite> cipher;
  /// `Extensions = off` sends no in-tunnel control message.
  bool extensions = true;
  /// The public NIC; empty is the one of the default route.
  std::string publicInterface;
  /// Where peers reach this server from outside; what tokens of `adit invite` say.
  std::vector<EndpointName> publicEndpoints;
  /// Address to bind the UDP socket to; nothing is all.
  std::optional<IpAddress> bindAddress;
  /// Where metrics are served; nothing is off.
  std::optional<MetricsAddress> metrics;
  Location location;
};

/// One entry of `AllowMaps`: ports that a peer may request for itself.
struct PortGrant {
  enum class Protocol : std::uint8_t { Tcp, Udp, Both } protocol = Protocol::Both;
  std::uint16_t first = 0;
  std::uint16_t last = 0;
  friend bool operator==(const PortGrant&, const PortGrant&) = default;
};

struct PeerConfig {
  std::string name;
  crypto::PublicKey publicKey;
  std::optional<crypto::PresharedKey> presharedKey;
  std::string presharedKeyFile;
  std::optional<EndpointName> endpoint;
  std::vector<Prefix> allowedIps;
  /// Seconds; 0 is off.
  std::uint16_t persistentKeepalive = 0;
  bool roam = true;
  std::vector<PortGrant> allowMaps;
  /// `AllowMaps` says third-party.
  bool allowThirdParty = false;
  Location location;
};

/// A peer to be: `adit invite` writes it, `adit join` completes it (docs/onboarding.md).
struct InvitationConfig {
  std::string name;
  /// Of the enrolment peer, which carries nothing but the enrolment.
  crypto::PublicKey publicKey;
  crypto::PresharedKey presharedKey;
  /// What the new peer's interface gets; as single addresses its AllowedIPs.
  std::vector<InterfaceAddress> addresses;
  std::vector<PortGrant> allowMaps;
  bool allowThirdParty = false;
  /// Since the Unix epoch.
  std::chrono::seconds expires{};
  /// The key that has joined; it is a peer's then.
  std::optional<crypto::PublicKey> bound;
  Location location;
};

struct MapConfig {
  enum class Protocol : std::uint8_t { Tcp, Udp, Both } protocol = Protocol::Tcp;
  /// Only this local address; nothing is every address of the public NIC.
  std::optional<IpAddress> listenAddress;
  std::uint16_t firstPort = 0;
  std::uint16_t lastPort = 0;
  /// A peer's name or an address, as written.
  std::string targetHost;
  /// `targetHost` when it is an address, else the target peer's (filled in by the checker: its
  /// first single-address allowed IP of each family).
  std::vector<IpAddress> targets;
  /// First port on the target; equal to firstPort where none was written.
  std::uint16_t targetPort = 0;
  Source source = Source::Preserve;
  std::vector<Prefix> allow;
  /// Bits per second; nothing is unlimited.
  std::optional<std::uint64_t> rate;
  bool hairpin = false;
  bool overrideListener = false;
  Location location;
};

/// Keys of [Tune] as written, checked for their grammar only; lib/tune computes from them.
struct TuneConfig {
  enum class Profile : std::uint8_t { Auto, Off, Explicit } profile = Profile::Off;
  struct Setting {
    std::string key;
    std::string value;
    Location location;
  };
  std::vector<Setting> settings;
  Location location;
};

struct Config {
  InterfaceConfig interface;
  std::vector<PeerConfig> peers;
  std::vector<InvitationConfig> invitations;
  std::vector<MapConfig> maps;
  TuneConfig tune;
};

enum class Severity : std::uint8_t { Error, Warning };

/// `FILE:LINE:COLUMN: what is wrong, what is right`; never holds key material.
struct Diagnostic {
  Severity severity = Severity::Error;
  Location location;
  std::string message;
  /// "FILE:LINE:COLUMN: ", or "FILE: "
  [[nodiscard]] std::string place() const;
  /// "FILE:LINE:COLUMN: error: message"
  [[nodiscard]] std::string toString() const;
};

/// What a file was when it was loaded, so that `adit save` can tell that somebody edited it since.
struct FileStamp {
  std::filesystem::path path;
  std::uint64_t size = 0;
  crypto::Hash hash{};
  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};

/// Every diagnostic of one run, in file order. `config` is there when none is an error.
struct Outcome {
  std::optional<Config> config;
  std::vector<Diagnostic> diagnostics;
  /// The files that load() read for it: the named one, then those of NAME.d.
  std::vector<FileStamp> files;
  [[nodiscard]] bool ok() const { return config.has_value(); }
};

}  // namespace adit::config

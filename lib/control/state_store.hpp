// What must outlive the daemon: our own timestamp mark, and of each peer the greatest timestamp,
// the suite and the last endpoint.
//
// Two folders: a durable one (/var/lib/adit/NAME), written rarely to spare flash, and a volatile
// one (/run/adit/NAME), written at every handshake, so that a daemon that was killed loses
// nothing. A learned endpoint is kept here and never in the configuration.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "crypto/key.hpp"
#include "crypto/suite.hpp"
#include "noise/timestamp.hpp"
#include "util/address.hpp"
#include "util/clock.hpp"
#include "util/file.hpp"
#include "util/result.hpp"

namespace adit::control {

struct StoredPeer {
  std::optional<noise::Tai64n> greatestTimestamp;
  std::optional<crypto::Suite> suite;
  std::optional<Endpoint> endpoint;
};

class StateStore final : public noise::TimestampStore {
 public:
  /// Both folders must exist. `clock` spaces the durable writes.
  StateStore(const Clock& clock, std::filesystem::path durable, std::filesystem::path runtime);

  /// Reads both folders; of two timestamps the greater counts. A file that cannot be read or is
  /// damaged is left out, with a warning that names it: a tunnel that does not come up after a
  /// power cut is worse than an old handshake that is answered once.
  std::vector<std::string> load();

  [[nodiscard]] const std::optional<noise::Tai64n>& mark() const { return mark_; }
  Result<void> save(const noise::Tai64n& mark) override;

  /// What is known of a peer; all empty for a new one.
  [[nodiscard]] StoredPeer peer(const crypto::PublicKey& key) const;
  /// Replaces it and writes the volatile file at once, the durable one at most every ten minutes.
  Result<void> setPeer(const crypto::PublicKey& key, const StoredPeer& peer);
  void removePeer(const crypto::PublicKey& key);
  /// Writes the durable file now: at the end, or after a change that must not be lost.
  Result<void> flush();

  /// The leases of the server of ports, as text: what was written last, the volatile file's before
  /// the durable one's. Empty where there is neither.
  struct LeasesText {
    std::string text;
    /// From the volatile file, so of this boot and up to date.
    bool current = false;
  };
  [[nodiscard]] LeasesText leases() const;
  Result<void> saveLeases(std::string_view text, Durability durability);

 private:
  using Peers = std::map<crypto::PublicKey, StoredPeer>;

  [[nodiscard]] std::string peersText() const;
  Result<void> loadMark(const std::filesystem::path& path);
  Result<void> loadPeers(const std::filesystem::path& path);

  const Clock& clock_;
  std::filesystem::path durable_;
  std::filesystem::path runtime_;
  std::optional<noise::Tai64n> mark_;
  Peers peers_;
  std::optional<BootTime> lastDurable_;
};

}  // namespace adit::control

// The one nftables table of an interface, kept equal to a RulesetSpec.
//
// `Firewall` is what the reconciler sees; `KernelFirewall` is nftables and conntrack.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "nat/mapping.hpp"
#include "nat/usage.hpp"
#include "util/result.hpp"

namespace adit::nat {

/// What apply() found and did.
struct FirewallChange {
  enum class Kind : std::uint8_t {
    None,       ///< the kernel had exactly this already
    Installed,  ///< there was no table
    Replaced,   ///< the rules differed: the whole table was replaced, in one transaction
    Updated,    ///< only elements (mappings) were added or removed
    Removed,    ///< nothing is wanted: the table was deleted
  } kind = Kind::None;
  std::size_t elementsAdded = 0;
  std::size_t elementsRemoved = 0;
  /// Connection tracking entries that disagreed with the new mappings and were deleted.
  std::size_t connectionsCut = 0;
  /// Not fatal: connection tracking could not be cleaned, the kernel lacks a feature, or another
  /// firewall drops what a mapping needs. What lasts is in every answer.
  std::vector<std::string> warnings;
};

class Firewall {
 public:
  virtual ~Firewall() = default;

  /// Makes the kernel's table equal to `spec`, from whatever is there; does nothing when it is
  /// equal. One transaction: on an error the old rules stay, and the message begins with the place
  /// of the mapping that is to blame. Connections that the new mappings
  /// decide otherwise are cut, so that the very next packet obeys; all others stay.
  virtual Result<FirewallChange> apply(const RulesetSpec& spec) = 0;

  /// Whether the kernel's table equals `spec`, without changing anything.
  virtual Result<bool> isApplied(const RulesetSpec& spec) = 0;

  /// Deletes the table of an interface and cuts the connections that it had mapped. Succeeds when
  /// there is none.
  virtual Result<FirewallChange> remove(std::string_view interface) = 0;

  /// What the mappings of the spec that was applied last have carried; nothing where it is not
  /// known.
  virtual Result<UsageByMapping> usage() { return UsageByMapping{}; }
};

/// What a kernel can do beyond the least that is needed (Linux 4.18).
struct KernelFeatures {
  /// nft_socket with `wildcard` (Linux 5.11).
  bool unboundSockets = true;
  /// Flow tables that count (Linux 5.7, nft_flow_offload).
  bool flowTables = true;
};

/// nftables by libnftables and connection tracking by libnetfilter_conntrack, in the network
/// namespace of the calling thread.
class KernelFirewall final : public Firewall {
 public:
  /// Nothing beyond `atMost` is used, whatever the kernel can do.
  static Result<std::unique_ptr<KernelFirewall>> open(const KernelFeatures& atMost = {});
  ~KernelFirewall() override;
  KernelFirewall(const KernelFirewall&) = delete;
  KernelFirewall& operator=(const KernelFirewall&) = delete;

  Result<FirewallChange> apply(const RulesetSpec& spec) override;
  Result<bool> isApplied(const RulesetSpec& spec) override;
  Result<FirewallChange> remove(std::string_view interface) override;
  Result<UsageByMapping> usage() override;

  /// Becomes readable when connections have ended; takeNotices() is to be called then. -1 where
  /// connection tracking gives no notices.
  [[nodiscard]] int descriptor() const;
  void takeNotices();

 private:
  class State;
  Result<FirewallChange> applyUsable(const RulesetSpec& spec);
  explicit KernelFirewall(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace adit::nat

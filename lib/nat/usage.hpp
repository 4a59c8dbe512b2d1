// What each mapping has carried, from the accounting of connection tracking: it also counts what a
// flow table carries past the rules. Connections that end are added up as they end.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "nat/mapping.hpp"
#include "util/result.hpp"

namespace adit::nat {

/// Since the daemon started, and of all that was open then. "In" is from clients to the target.
/// Bytes are those of IP packets.
struct MapUsage {
  std::uint64_t connections = 0;
  /// Of these, how many are open now.
  std::uint64_t open = 0;
  std::uint64_t packetsIn = 0;
  std::uint64_t bytesIn = 0;
  std::uint64_t packetsOut = 0;
  std::uint64_t bytesOut = 0;
  friend bool operator==(const MapUsage&, const MapUsage&) = default;
};
/// By Mapping::listenText().
using UsageByMapping = std::map<std::string, MapUsage>;

class UsageMeter {
 public:
  /// In the network namespace of the calling thread.
  static Result<std::unique_ptr<UsageMeter>> open();
  ~UsageMeter();
  UsageMeter(const UsageMeter&) = delete;
  UsageMeter& operator=(const UsageMeter&) = delete;

  /// Readable when connections have ended; collect() then takes them in.
  [[nodiscard]] int descriptor() const;
  /// Does not block. Where the kernel had to drop notices, those connections stay uncounted.
  void collect();

  /// The mappings to count from now on; those that stay keep what they have.
  void setMappings(const std::vector<Mapping>& mappings);

  /// Every mapping's, also when it is zero.
  Result<UsageByMapping> usage();

 private:
  class State;
  explicit UsageMeter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace adit::nat

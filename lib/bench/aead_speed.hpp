// What each cipher and each implementation of it does on one core of this machine.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "crypto/aead.hpp"

namespace adit::bench {

struct AeadOptions {
  /// Bytes of plaintext in a packet.
  std::uint32_t packet = 1420;
  /// Packets handed over at once.
  std::size_t batch = 45;
  /// For each suite, backend and direction.
  double seconds = 0.2;
};

/// Nanoseconds per packet, the median of many batches; `fastest` is what an idle machine does.
struct AeadCost {
  double median = 0;
  double fastest = 0;
};

struct AeadRow {
  crypto::Suite suite{};
  crypto::AeadBackend backend{};
  /// This is the one that adit uses for the suite here.
  bool chosen = false;
  AeadCost seal;
  AeadCost open;
};

/// 10^6 bytes of plaintext per second.
double megabytesPerSecond(const AeadOptions& options, const AeadCost& cost);

/// Every suite with every backend that this processor has. Requires initializeAead(). Throws where
/// a packet that was sealed does not open.
std::vector<AeadRow> measureAeads(const AeadOptions& options);

/// A table, one row a line.
std::string formatAeads(const AeadOptions& options, const std::vector<AeadRow>& rows);
/// packet_bytes, batch, results.
nlohmann::ordered_json aeadsToJson(const AeadOptions& options, const std::vector<AeadRow>& rows);

/// The slower of sealing and opening with the chosen backend, 10^6 bytes per second and core.
double chosenAeadSpeed(crypto::Suite suite, const AeadOptions& options = {});

}  // namespace adit::bench

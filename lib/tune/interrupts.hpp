// /proc/interrupts, and what the names in it say.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "util/result.hpp"

namespace adit::tune {

struct InterruptRow {
  unsigned number = 0;
  /// Controller, hardware number and trigger: "PCI-MSIX-0000:00:03.0 1-edge".
  std::string source;
  /// The handlers' names: "virtio2-input.0", or several separated by ", ".
  std::string action;
};

/// The rows with a number. Columns are counted by the names in the header, since CPUs that are
/// offline have none.
Result<std::vector<InterruptRow>> parseInterrupts(std::string_view text);

/// Whether `action` names `word` as a whole: eth1 is in "i40e-eth1-TxRx-0", not in "eth10-TxRx-0".
bool namesWhole(std::string_view action, std::string_view word);
/// Vectors that carry no packets: configuration, errors, mailboxes.
bool isControlVector(std::string_view action);
/// The queue whose packets the vector announces: 3 of "ice-eth2-TxRx-3", "mlx5_comp3@pci:...",
/// "virtio2-output.3", "eth0 (queue 3)".
std::optional<unsigned> queueOfVector(std::string_view action);

}  // namespace adit::tune

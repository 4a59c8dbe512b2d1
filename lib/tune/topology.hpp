// What the machine is made of: CPUs, memory nodes, and the queues and interrupts of a NIC.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tune/cpu_set.hpp"
#include "tune/machine.hpp"
#include "util/result.hpp"

namespace adit::tune {

/// An interrupt that announces packets of one queue, or of a pair of queues.
struct NicIrq {
  unsigned number = 0;
  /// "eth0-TxRx-3"
  std::string name;
  unsigned queue = 0;
};

struct Nic {
  std::string name;
  /// In numeric order; the N of queues/rx-N and tx-N.
  std::vector<unsigned> rxQueues;
  std::vector<unsigned> txQueues;
  /// By queue. Control vectors are not among them.
  std::vector<NicIrq> irqs;
  /// Where the interrupts were found: "sys/.../msi_irqs" or "proc/interrupts".
  std::string irqSource;
  /// The memory node that the NIC hangs on.
  std::optional<unsigned> node;
  /// Bits per second; nothing where the driver does not say.
  std::optional<std::uint64_t> speed;
  /// How many different queues the interrupts serve.
  [[nodiscard]] std::size_t irqQueues() const;
};

struct Topology {
  CpuSet online;
  /// Nodes with at least one CPU that is online.
  std::map<unsigned, CpuSet> nodes;
  /// Bytes; 0 where it is not known.
  std::uint64_t memory = 0;
  /// Of the kernel, such as {6, 1}.
  std::pair<unsigned, unsigned> kernel{};
  /// The CPUs that are near to `nic`, those that are online.
  [[nodiscard]] const CpuSet& near(const Nic& nic) const;
};

/// Fails where the kernel does not say which CPUs are online.
Result<Topology> readTopology(const Files& files);

/// ENODEV: there is no such interface. One without a device (veth, tun) has no interrupts.
Result<Nic> readNic(const Files& files, const std::string& name);

/// A running irqbalance(1), which moves interrupts at its own discretion.
struct Irqbalance {
  unsigned pid = 0;
  /// What its command line bans (`--banirq`), and thereby leaves alone.
  std::vector<unsigned> banned;
};
std::optional<Irqbalance> findIrqbalance(const Files& files);

}  // namespace adit::tune

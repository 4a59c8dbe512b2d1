// Machines for tests: files in memory that refuse and show values as the kernel does, filled in
// from a few lines that say what the machine has.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tune/cpu_set.hpp"
#include "tune/machine.hpp"
#include "tune/plan.hpp"
#include "tune/record.hpp"

namespace adit::tune::testing {

struct NicSpec {
  std::string name;
  /// "pci0000:00/0000:00:1f.6" below sys/devices; empty for an interface without a device.
  std::string pci;
  unsigned rxQueues = 1;
  unsigned txQueues = 1;
  /// -1 as the kernel shows it where there is none.
  int node = -1;
  int speed = -1;
  /// Number of a virtio device that sits in the PCI function.
  std::optional<unsigned> virtio = std::nullopt;
  /// Interrupts with their names, as in the last column of /proc/interrupts.
  std::vector<std::pair<unsigned, std::string>> irqs = {};
  /// Whether sysfs lists them.
  bool msi = true;
};

class RecordedMachine final : public Files, public NicControl {
 public:
  /// `possible` CPUs have places in masks; `online` is a list.
  RecordedMachine(unsigned possible, const std::string& online);

  void addNode(unsigned number, const std::string& cpus);
  void addNic(const NicSpec& spec);
  /// A row of /proc/interrupts that belongs to none of addNic().
  void addInterrupt(unsigned number, const std::string& source, const std::string& action);
  void set(const std::string& path, const std::string& content) { files_[path] = content + "\n"; }
  void remove(const std::string& path) { files_.erase(path); }
  void setOnline(const std::string& online);
  void setQueues(const std::string& nic, unsigned rx, unsigned tx);
  /// Writes below `prefix` fail with `code`.
  void refuse(const std::string& prefix, int code) { refused_[prefix] = code; }
  void allow(const std::string& prefix) { refused_.erase(prefix); }
  /// No interrupt can be moved to this CPU: its vectors are exhausted.
  void exhaust(unsigned cpu) { exhausted_.add(cpu); }

  [[nodiscard]] std::string text(const std::string& path) const;
  /// Everything that can be read, for comparing.
  [[nodiscard]] const std::map<std::string, std::string>& all() const { return files_; }
  /// Paths in the order of writing.
  std::vector<std::string> writes;
  std::map<std::string, Channels> channelsOf;
  /// What happens when a number of queues is changed.
  std::function<void(const std::string& nic, unsigned count)> onChannels;
  std::set<std::string> congestionControls{"reno", "cubic", "bbr"};

  /// Puts it below a folder of the real machine.
  void saveTo(const std::filesystem::path& folder) const;

  Machine machine() { return {*this, *this}; }
  /// A plan for `nic` and the tunnel adit0, where that exists.
  Plan plan(const std::string& nic, const Settings& settings = {}, const Record& record = {});

  [[nodiscard]] Result<std::string> read(const std::string& path) const override;
  Result<void> write(const std::string& path, const std::string& value) override;
  [[nodiscard]] std::vector<std::string> list(const std::string& path) const override;
  [[nodiscard]] std::string resolve(const std::string& path) const override;
  [[nodiscard]] std::optional<Channels> channels(const std::string& nic) const override;
  Result<void> setCombined(const std::string& nic, unsigned count) override;

 private:
  [[nodiscard]] std::string showMask(const CpuSet& cpus) const;
  Result<std::string> mask(const std::string& value) const;
  Result<std::string> affinity(const std::string& value) const;
  void writeInterrupts();

  struct Row {
    std::string source;
    std::string action;
  };
  unsigned possible_;
  CpuSet online_;
  std::map<std::string, std::string> files_;
  /// Symbolic links of folders.
  std::map<std::string, std::string> links_;
  std::map<unsigned, Row> rows_;
  std::map<std::string, int> refused_;
  CpuSet exhausted_;
};

/// The recorded machines of issue 6. Each has a tunnel adit0 as well.
RecordedMachine oneQueueVm();    // eth0: virtio2 with one pair of queues, 2 CPUs
RecordedMachine celeronNas();    // enp3s0: igb with two queues, 2 CPUs
RecordedMachine sixteenCores();  // eth0: i40e with eight queues, 16 CPUs, two other NICs
RecordedMachine twoNodes();      // ens1: mlx5 on node 1, 63 queues, 128 CPUs, interleaved nodes
RecordedMachine armBoard();      // end0: stmmac, 4 CPUs, one IRQ for each of rx and tx
RecordedMachine container();     // eth0: veth, /proc/sys read-only, net.core absent

/// The item of a path; nothing where the plan has none.
std::optional<Item> itemOf(const Plan& plan, const std::string& path);
/// Whether any remark holds `text`.
bool remarked(const Plan& plan, const std::string& text);

}  // namespace adit::tune::testing

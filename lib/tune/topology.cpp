#include "tune/topology.hpp"

#include <algorithm>
#include <cerrno>
#include <set>

#include "tune/interrupts.hpp"
#include "tune/text.hpp"

namespace adit::tune {
namespace {

std::optional<unsigned> numberAfter(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return std::nullopt;
  const auto number = parseUnsigned(name.substr(prefix.size()));
  return number && *number <= UINT32_MAX ? std::optional(static_cast<unsigned>(*number))
                                         : std::nullopt;
}

std::map<unsigned, CpuSet> readNodes(const Files& files, const CpuSet& online) {
  std::map<unsigned, CpuSet> nodes;
  for (const std::string& name : files.list("sys/devices/system/node")) {
    const auto number = numberAfter(name, "node");
    if (!number) continue;
    const auto text = files.read("sys/devices/system/node/" + name + "/cpulist");
    const auto cpus = text ? CpuSet::fromList(*text) : Result<CpuSet>();
    if (!cpus) continue;
    if (CpuSet here = *cpus & online; !here.empty()) nodes.emplace(*number, std::move(here));
  }
  return nodes;
}

std::uint64_t readMemory(const Files& files) {
  const auto text = files.read("proc/meminfo");
  if (!text) return 0;
  for (const std::string_view line : split(*text, '\n')) {
    const auto fields = words(line);
    if (fields.size() >= 2 && fields[0] == "MemTotal:") {
      return parseUnsigned(fields[1]).value_or(0) * 1024;
    }
  }
  return 0;
}

std::pair<unsigned, unsigned> readKernel(const Files& files) {
  const auto text = files.read("proc/sys/kernel/osrelease");
  if (!text) return {};
  const auto parts = split(trimmed(*text), '.');
  if (parts.size() < 2) return {};
  const std::size_t digits = parts[1].find_first_not_of("0123456789");
  return {static_cast<unsigned>(parseUnsigned(parts[0]).value_or(0)),
          static_cast<unsigned>(parseUnsigned(parts[1].substr(0, digits)).value_or(0))};
}

std::vector<unsigned> queuesOf(const Files& files, const std::string& nic,
                               std::string_view prefix) {
  std::vector<unsigned> queues;
  for (const std::string& name : files.list("sys/class/net/" + nic + "/queues")) {
    if (const auto number = numberAfter(name, prefix)) queues.push_back(*number);
  }
  std::ranges::sort(queues);
  return queues;
}

std::string parentOf(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash);
}
std::string lastOf(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

/// Finds the interrupts of one NIC.
class IrqFinder {
 public:
  IrqFinder(const Files& files, std::string nic) : files_(files), nic_(std::move(nic)) {
    device_ = files_.resolve("sys/class/net/" + nic_ + "/device");
    virtio_ = numberAfter(lastOf(device_), "virtio").has_value();
    if (const auto text = files_.read("proc/interrupts")) {
      if (auto rows = parseInterrupts(*text)) rows_ = std::move(*rows);
    }
    for (std::string& other : files_.list("sys/class/net")) {
      if (other.size() > nic_.size() && other.find(nic_) != std::string::npos) {
        longerNames_.push_back(std::move(other));
      }
    }
  }

  void find(Nic& nic) {
    if (device_.empty()) return;
    // The vectors of a virtio device hang on the PCI function that it sits in.
    const std::string pci = virtio_ ? parentOf(device_) : device_;
    std::vector<const InterruptRow*> mine = byMsi(pci + "/msi_irqs");
    nic.irqSource = pci + "/msi_irqs";
    if (mine.empty()) {
      nic.irqSource = "proc/interrupts";
      mine = byName(lastOf(pci));
    }
    if (mine.empty()) {
      nic.irqSource = pci + "/irq";
      mine = byLegacy(pci + "/irq");
    }
    nic.irqs = dataVectors(mine);
    if (nic.irqs.empty()) nic.irqSource.clear();
  }

 private:
  [[nodiscard]] const InterruptRow* row(unsigned number) const {
    const auto found = std::ranges::find(rows_, number, &InterruptRow::number);
    return found == rows_.end() ? nullptr : &*found;
  }

  [[nodiscard]] bool namesOurs(const std::string& action) const {
    const std::string name = virtio_ ? lastOf(device_) : nic_;
    if (!namesWhole(action, name)) return false;
    // lan-2's vector is not lan's.
    return std::ranges::none_of(
        longerNames_, [&](const std::string& other) { return namesWhole(action, other); });
  }

  [[nodiscard]] std::vector<const InterruptRow*> byMsi(const std::string& folder) const {
    std::vector<const InterruptRow*> found;
    for (const std::string& name : files_.list(folder)) {
      const auto number = parseUnsigned(name);
      const InterruptRow* known = number ? row(static_cast<unsigned>(*number)) : nullptr;
      // A vector that nobody has asked for has no row.
      if (known != nullptr && (!virtio_ || namesOurs(known->action))) found.push_back(known);
    }
    return found;
  }

  [[nodiscard]] std::vector<const InterruptRow*> byName(const std::string& pci) const {
    std::vector<const InterruptRow*> found;
    for (const InterruptRow& candidate : rows_) {
      const bool byAddress = pci.find(':') != std::string::npos &&
                             candidate.action.find("@pci:" + pci) != std::string::npos;
      if (byAddress || namesOurs(candidate.action)) found.push_back(&candidate);
    }
    return found;
  }

  [[nodiscard]] std::vector<const InterruptRow*> byLegacy(const std::string& file) const {
    const auto text = files_.read(file);
    const auto number = text ? parseUnsigned(trimmed(*text)) : std::nullopt;
    const InterruptRow* known =
        number && *number > 0 ? row(static_cast<unsigned>(*number)) : nullptr;
    // 255 stands in the PCI header of a function without a line, and may be somebody's MSI.
    const bool line = known != nullptr && known->source.find("MSI") == std::string::npos;
    return line ? std::vector{known} : std::vector<const InterruptRow*>{};
  }

  static std::vector<NicIrq> dataVectors(std::vector<const InterruptRow*> rows) {
    std::ranges::sort(rows, {}, [](const InterruptRow* row) { return row->number; });
    std::erase_if(rows, [](const InterruptRow* row) { return isControlVector(row->action); });
    // Where some vectors are named by queue, the others (igb's plain "eth0") are not for packets.
    const auto isNamed = [](const InterruptRow* row) {
      return queueOfVector(row->action).has_value();
    };
    const bool named = std::ranges::any_of(rows, isNamed);
    std::vector<NicIrq> irqs;
    for (const InterruptRow* row : rows) {
      const auto queue = queueOfVector(row->action);
      if (named && !queue) continue;
      irqs.push_back(
          {row->number, row->action, queue.value_or(static_cast<unsigned>(irqs.size()))});
    }
    std::ranges::stable_sort(irqs, {}, &NicIrq::queue);
    return irqs;
  }

  const Files& files_;
  std::string nic_;
  std::string device_;
  bool virtio_ = false;
  std::vector<InterruptRow> rows_;
  std::vector<std::string> longerNames_;
};

std::optional<unsigned> readNode(const Files& files, const std::string& nic) {
  const std::string device = files.resolve("sys/class/net/" + nic + "/device");
  if (device.empty()) return std::nullopt;
  // -1 where the firmware does not say; a virtio device has no file, its PCI parent has.
  for (const std::string& folder : {device, parentOf(device)}) {
    const auto text = files.read(folder + "/numa_node");
    const auto node = text ? parseUnsigned(trimmed(*text)) : std::nullopt;
    if (node) return static_cast<unsigned>(*node);
  }
  return std::nullopt;
}

std::optional<std::uint64_t> readSpeed(const Files& files, const std::string& nic) {
  // EINVAL while the link is down, -1 where the driver does not know.
  const auto text = files.read("sys/class/net/" + nic + "/speed");
  const auto megabits = text ? parseUnsigned(trimmed(*text)) : std::nullopt;
  constexpr std::uint64_t kMegabit = 1'000'000;
  return megabits && *megabits > 0 ? std::optional(*megabits * kMegabit) : std::nullopt;
}

/// "--banirq=37", "--banirq 37", "-i 37", "-i37".
std::vector<unsigned> bannedBy(std::string_view commandLine) {
  std::vector<unsigned> banned;
  const auto arguments = split(commandLine, '\0');
  const auto note = [&](std::string_view text) {
    if (const auto number = parseUnsigned(text)) banned.push_back(static_cast<unsigned>(*number));
  };
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    if ((argument == "--banirq" || argument == "-i") && i + 1 < arguments.size()) {
      note(arguments[++i]);
    } else if (argument.starts_with("--banirq=")) {
      note(argument.substr(std::string_view("--banirq=").size()));
    } else if (argument.starts_with("-i")) {
      note(argument.substr(2));
    }
  }
  return banned;
}

}  // namespace

std::size_t Nic::irqQueues() const {
  std::set<unsigned> queues;
  for (const NicIrq& irq : irqs) {
    queues.insert(irq.queue);
  }
  return queues.size();
}

const CpuSet& Topology::near(const Nic& nic) const {
  const auto found = nic.node ? nodes.find(*nic.node) : nodes.end();
  return found == nodes.end() ? online : found->second;
}

Result<Topology> readTopology(const Files& files) {
  const auto text = files.read("sys/devices/system/cpu/online");
  if (!text) return tl::unexpected(text.error());
  auto online = CpuSet::fromList(*text);
  if (!online) return wrapError(online.error(), "/sys/devices/system/cpu/online");
  if (online->empty()) return fail("/sys/devices/system/cpu/online names no CPU");
  Topology topology;
  topology.online = *std::move(online);
  topology.nodes = readNodes(files, topology.online);
  topology.memory = readMemory(files);
  topology.kernel = readKernel(files);
  return topology;
}

Result<Nic> readNic(const Files& files, const std::string& name) {
  if (files.resolve("sys/class/net/" + name).empty()) {
    return failErrno(ENODEV, "there is no interface {}", name);
  }
  Nic nic;
  nic.name = name;
  nic.rxQueues = queuesOf(files, name, "rx-");
  nic.txQueues = queuesOf(files, name, "tx-");
  nic.node = readNode(files, name);
  nic.speed = readSpeed(files, name);
  IrqFinder(files, name).find(nic);
  return nic;
}

std::optional<Irqbalance> findIrqbalance(const Files& files) {
  for (const std::string& name : files.list("proc")) {
    const auto pid = parseUnsigned(name);
    if (!pid) continue;
    const auto comm = files.read("proc/" + name + "/comm");
    if (!comm || trimmed(*comm) != "irqbalance") continue;
    const auto commandLine = files.read("proc/" + name + "/cmdline");
    return Irqbalance{static_cast<unsigned>(*pid),
                      commandLine ? bannedBy(*commandLine) : std::vector<unsigned>{}};
  }
  return std::nullopt;
}

}  // namespace adit::tune

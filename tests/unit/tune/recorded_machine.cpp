#include "recorded_machine.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cerrno>
#include <fstream>

#include "tune/permitted.hpp"
#include "tune/text.hpp"

namespace adit::tune::testing {
namespace {

tl::unexpected<Error> failed(int code, const std::string& path) {
  return failErrno(code, "/{}", path);
}

}  // namespace

RecordedMachine::RecordedMachine(unsigned possible, const std::string& online)
    : possible_(possible) {
  setOnline(online);
  set("proc/sys/kernel/osrelease", "6.1.0-18-amd64");
  set("proc/sys/kernel/random/boot_id", "0b6a7d1c-7a57-4f3c-8a0e-1f0b8f0f9a11");
  set("proc/meminfo", "MemTotal:       16384000 kB\nMemFree: 1 kB");
  set("proc/sys/net/core/rps_sock_flow_entries", "0");
  set("proc/sys/net/core/rmem_max", "212992");
  set("proc/sys/net/core/wmem_max", "212992");
  set("proc/sys/net/core/netdev_max_backlog", "1000");
  set("proc/sys/net/core/netdev_budget", "300");
  set("proc/sys/net/core/netdev_budget_usecs", "8000");
  set("proc/sys/net/core/default_qdisc", "fq_codel");
  set("proc/sys/net/ipv4/tcp_congestion_control", "cubic");
  set("proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456");
  set("proc/sys/net/ipv4/tcp_wmem", "4096\t16384\t4194304");
  set("proc/sys/net/netfilter/nf_conntrack_max", "65536");
  set("proc/net/softnet_stat", "00100000 00000000 00000003 00000000\n00100000 00000000 00000001");
}

void RecordedMachine::setOnline(const std::string& online) {
  online_ = CpuSet::fromList(online).value();
  set("sys/devices/system/cpu/online", online);
  writeInterrupts();
}

void RecordedMachine::addNode(unsigned number, const std::string& cpus) {
  set(fmt::format("sys/devices/system/node/node{}/cpulist", number), cpus);
}

void RecordedMachine::addInterrupt(unsigned number, const std::string& source,
                                   const std::string& action) {
  rows_[number] = {source, action};
  set(fmt::format("proc/irq/{}/smp_affinity_list", number), online_.toList());
  set(fmt::format("proc/irq/{}/effective_affinity_list", number),
      CpuSet{online_.members().front()}.toList());
  writeInterrupts();
}

void RecordedMachine::writeInterrupts() {
  std::string text = "         ";
  for (const unsigned cpu : online_.members()) {
    text += fmt::format("  CPU{:<6}", cpu);
  }
  for (const auto& [number, row] : rows_) {
    text += fmt::format("\n {:>3}:", number);
    for (std::size_t i = 0; i < online_.size(); ++i) {
      text += fmt::format(" {:>10}", i * 7);
    }
    text += fmt::format("  {}   {}", row.source, row.action);
  }
  set("proc/interrupts", text + "\n NMI:          0   Non-maskable interrupts\n ERR:          0");
}

void RecordedMachine::addNic(const NicSpec& spec) {
  const std::string nic = "sys/class/net/" + spec.name;
  set(nic + "/ifindex", "2");
  if (spec.speed >= 0) set(nic + "/speed", fmt::format("{}", spec.speed));
  setQueues(spec.name, spec.rxQueues, spec.txQueues);
  const std::string pci = "sys/devices/" + spec.pci;
  if (!spec.pci.empty()) {
    const std::string device = spec.virtio ? fmt::format("{}/virtio{}", pci, *spec.virtio) : pci;
    links_[nic + "/device"] = device;
    set(device + "/uevent", "DRIVER=x");
    set(pci + "/numa_node", fmt::format("{}", spec.node));
  }
  const std::string address = spec.pci.substr(spec.pci.rfind('/') + 1);
  for (const auto& [number, action] : spec.irqs) {
    const bool isPci = address.find(':') != std::string::npos;
    addInterrupt(number,
                 isPci ? fmt::format("PCI-MSIX-{}   {}-edge", address, number) : "GICv3  79 Level",
                 action);
    if (spec.msi) set(fmt::format("{}/msi_irqs/{}", pci, number), "msix");
  }
}

void RecordedMachine::setQueues(const std::string& nic, unsigned rx, unsigned tx) {
  const std::string folder = "sys/class/net/" + nic + "/queues/";
  const auto place = [&](const std::string& path, const std::string& value, bool wanted) {
    if (!wanted) {
      files_.erase(path);
    } else if (!files_.contains(path)) {
      set(path, value);
    }
  };
  constexpr unsigned kMost = 256;
  for (unsigned queue = 0; queue < kMost; ++queue) {
    place(fmt::format("{}rx-{}/rps_cpus", folder, queue), showMask({}), queue < rx);
    place(fmt::format("{}rx-{}/rps_flow_cnt", folder, queue), "0", queue < rx);
    place(fmt::format("{}tx-{}/xps_cpus", folder, queue), showMask({}), queue < tx);
  }
}

/// As the kernel's %*pb: the first group only has the digits that the number of CPUs needs.
std::string RecordedMachine::showMask(const CpuSet& cpus) const {
  const std::size_t groups = (possible_ + 31) / 32;
  const std::string text = cpus.toMask(groups).value();
  const unsigned left = possible_ - static_cast<unsigned>(groups - 1) * 32;
  return text.substr(8 - (left + 3) / 4);
}

/// bitmap_parse(): more groups than there are CPUs for, or a bit of none, is an error.
Result<std::string> RecordedMachine::mask(const std::string& value) const {
  const auto cpus = CpuSet::fromMask(value);
  if (!cpus) return failed(EINVAL, value);
  for (const std::string_view group : split(value, ',')) {
    if (group.size() > 8) return failed(EOVERFLOW, value);
  }
  const bool tooLong = maskGroups(value) > (possible_ + 31) / 32;
  const auto all = cpus->members();
  if (tooLong || (!all.empty() && all.back() >= possible_)) return failed(EOVERFLOW, value);
  return showMask(*cpus);
}

Result<std::string> RecordedMachine::affinity(const std::string& value) const {
  const auto cpus = CpuSet::fromList(value);
  if (!cpus || (*cpus & online_).empty()) return failed(EINVAL, value);
  if (cpus->isSubsetOf(exhausted_)) return failed(ENOSPC, value);
  return cpus->toList();
}

std::string RecordedMachine::text(const std::string& path) const {
  const auto found = files_.find(path);
  return found == files_.end() ? "(absent)" : std::string(trimmed(found->second));
}

Result<std::string> RecordedMachine::read(const std::string& path) const {
  const auto found = files_.find(resolve(path));
  if (found == files_.end()) return failed(ENOENT, path);
  return found->second;
}

Result<void> RecordedMachine::write(const std::string& path, const std::string& value) {
  if (!files_.contains(path)) return failed(ENOENT, path);
  for (const auto& [prefix, code] : refused_) {
    if (path.starts_with(prefix)) return failed(code, path);
  }
  Result<std::string> shown = value;
  if (path.ends_with("_cpus")) shown = mask(value);
  if (path.ends_with("smp_affinity_list")) shown = affinity(value);
  if (path.ends_with("tcp_congestion_control") && !congestionControls.contains(value)) {
    shown = failed(ENOENT, path);
  }
  if (!shown) return tl::unexpected(shown.error());
  writes.push_back(path);
  set(path, *shown);
  if (const std::string irq = irqOfPath(path); !irq.empty()) {
    set(fmt::format("proc/irq/{}/effective_affinity_list", irq),
        CpuSet{CpuSet::fromList(*shown)->members().front()}.toList());
  }
  return {};
}

std::vector<std::string> RecordedMachine::list(const std::string& path) const {
  const std::string folder = resolve(path) + "/";
  std::set<std::string> names;
  for (const auto& [name, content] : files_) {
    if (name.starts_with(folder)) {
      names.insert(name.substr(folder.size(), name.find('/', folder.size()) - folder.size()));
    }
  }
  // Folders are listed in no order, and 10 before 2.
  return {names.rbegin(), names.rend()};
}

std::string RecordedMachine::resolve(const std::string& path) const {
  std::string result = path;
  for (const auto& [link, target] : links_) {
    if (result == link || result.starts_with(link + "/")) {
      result = target + result.substr(link.size());
    }
  }
  const bool known = std::ranges::any_of(files_, [&](const auto& file) {
    return file.first == result || file.first.starts_with(result + "/");
  });
  return known ? result : std::string();
}

std::optional<Channels> RecordedMachine::channels(const std::string& nic) const {
  const auto found = channelsOf.find(nic);
  return found == channelsOf.end() ? std::nullopt : std::optional(found->second);
}

Result<void> RecordedMachine::setCombined(const std::string& nic, unsigned count) {
  if (const auto code = refused_.find("ethtool/" + nic); code != refused_.end()) {
    return failed(code->second, nic);
  }
  writes.push_back(channelsPath(nic));
  channelsOf.at(nic).combined = count;
  if (onChannels) onChannels(nic, count);
  return {};
}

void RecordedMachine::saveTo(const std::filesystem::path& folder) const {
  for (const auto& [name, content] : files_) {
    std::filesystem::create_directories((folder / name).parent_path());
    std::ofstream(folder / name) << content;
  }
  for (const auto& [link, target] : links_) {
    std::filesystem::create_directories((folder / link).parent_path());
    std::filesystem::create_symlink(
        (folder / target).lexically_relative((folder / link).parent_path()), folder / link);
  }
}

Plan RecordedMachine::plan(const std::string& nic, const Settings& settings, const Record& record) {
  Request request;
  request.nics = {nic};
  request.tunnels = {"adit0"};
  request.settings = settings;
  auto plan = makePlan(machine(), request, record);
  REQUIRE(plan);
  return *std::move(plan);
}

std::optional<Item> itemOf(const Plan& plan, const std::string& path) {
  const auto found = std::ranges::find(plan.items, path, &Item::path);
  return found == plan.items.end() ? std::nullopt : std::optional(*found);
}

bool remarked(const Plan& plan, const std::string& text) {
  return std::ranges::any_of(plan.remarks, [&](const std::string& remark) {
    return remark.find(text) != std::string::npos;
  });
}

}  // namespace adit::tune::testing

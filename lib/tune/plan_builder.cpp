#include "tune/plan_builder.hpp"

#include <algorithm>
#include <cerrno>

#include "tune/text.hpp"

namespace adit::tune {

std::optional<std::string> PlanBuilder::read(const std::string& path) {
  const auto text = machine_.files.read(path);
  if (text) return std::string(trimmed(*text));
  if (std::ranges::find(absent_, path) == absent_.end()) absent_.push_back(path);
  return std::nullopt;
}

bool PlanBuilder::isRecorded(const std::string& path) const {
  return record_.entries.contains(path);
}

std::string PlanBuilder::original(const std::string& path, const std::string& current) const {
  const auto entry = record_.entries.find(path);
  return entry == record_.entries.end() ? current : entry->second.old;
}

void PlanBuilder::add(const std::string& path, std::string wanted, std::string why,
                      std::vector<std::string> alternatives) {
  const auto form = formOf(path);
  auto current = form ? read(path) : std::nullopt;
  if (!current || sameValue(*form, wanted, original(path, *current))) return;
  // Another CPU that had to be taken before is as good now.
  if (const auto entry = record_.entries.find(path);
      entry != record_.entries.end() &&
      std::ranges::find(alternatives, entry->second.now) != alternatives.end() &&
      sameValue(*form, *current, entry->second.now)) {
    wanted = entry->second.now;
  }
  plan_.items.push_back({path, *form, *std::move(current), std::move(wanted), std::move(why),
                         std::move(alternatives)});
}

void PlanBuilder::addMask(const std::string& path, const CpuSet& cpus, const std::string& why) {
  const auto shown = read(path);
  if (!shown) return;
  if (auto mask = cpus.toMask(maskGroups(*shown))) {
    add(path, *std::move(mask), why);
  } else {
    remark(fmt::format("{}: {}", shownPath(path), mask.error().message));
  }
}

CpuSet PlanBuilder::given(const Setting<Cpus>& setting, std::string_view key) {
  if (setting.value.list == "all") return topology_.online;
  const auto cpus = CpuSet::fromList(setting.value.list);
  if (!cpus) {
    remark(fmt::format("{}: {}", key, cpus.error().message));
    return {};
  }
  if (const CpuSet missing = *cpus - topology_.online; !missing.empty()) {
    remark(fmt::format("{} names CPU {}, which is not online; it is left out (online: {})", key,
                       missing.toList(), topology_.online.toList()));
  }
  return *cpus & topology_.online;
}

void PlanBuilder::remark(std::string text) {
  if (std::ranges::find(plan_.remarks, text) == plan_.remarks.end()) {
    plan_.remarks.push_back(std::move(text));
  }
}

Plan PlanBuilder::finish() {
  if (!absent_.empty()) {
    std::string names;
    for (const std::string& path : absent_) {
      names += (names.empty() ? "" : ", ") + shownPath(path);
    }
    remark(
        fmt::format("this kernel, container or network namespace does not have {}; where it is "
                    "a container, run adit tune on the host",
                    names));
  }
  plan_.counters = drops_;
  return std::move(plan_);
}

Result<Plan> makePlan(const Machine& machine, const Request& request, const Record& record) {
  auto topology = readTopology(machine.files);
  if (!topology) return tl::unexpected(topology.error());
  PlanBuilder builder(machine, request, record, *std::move(topology));
  std::vector<Nic> nics;
  for (const std::string& name : request.nics) {
    auto nic = readNic(machine.files, name);
    if (!nic) return tl::unexpected(nic.error());
    nics.push_back(*std::move(nic));
  }
  for (const Nic& nic : nics) {
    builder.planChannels(nic);
    builder.planNic(nic);
  }
  std::vector<Nic> all = nics;
  for (const std::string& name : request.tunnels) {
    // A tunnel that is not up has no queues yet.
    if (auto tunnel = readNic(machine.files, name)) {
      builder.planTunnel(*tunnel);
      all.push_back(*std::move(tunnel));
    }
  }
  builder.planFlowTable(all);
  builder.planTcp(nics);
  builder.planQdisc();
  builder.planBacklog();
  builder.planConntrack();
  return builder.finish();
}

}  // namespace adit::tune

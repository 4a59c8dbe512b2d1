// A plan under construction. Internal to lib/tune.
#pragma once

#include <string>
#include <vector>

#include "tune/plan.hpp"
#include "tune/topology.hpp"

namespace adit::tune {

class PlanBuilder {
 public:
  PlanBuilder(const Machine& machine, const Request& request, const Record& record,
              Topology topology)
      : machine_(machine),
        request_(request),
        record_(record),
        topology_(std::move(topology)),
        drops_(readCounters(machine.files)) {}

  // plan_steering.cpp
  void planNic(const Nic& nic);
  void planTunnel(const Nic& tunnel);
  /// After the NICs, whose queues share it.
  void planFlowTable(const std::vector<Nic>& nics);
  /// Where a number of queues is changed, for the rest is planned anew then.
  void planChannels(const Nic& nic);

  // plan_system.cpp
  void planTcp(const std::vector<Nic>& nics);
  void planQdisc();
  void planBacklog();
  void planConntrack();

  Plan finish();

 private:
  // plan_builder.cpp
  /// Without its newline; nothing, and a remark in the end, where this machine has no such file.
  std::optional<std::string> read(const std::string& path);
  /// The value from before our first write.
  std::string original(const std::string& path, const std::string& current) const;
  [[nodiscard]] bool isRecorded(const std::string& path) const;
  /// Plans a value. Does nothing where it is the original one, which whoever applies the plan puts
  /// back.
  void add(const std::string& path, std::string wanted, std::string why,
           std::vector<std::string> alternatives = {});
  void addMask(const std::string& path, const CpuSet& cpus, const std::string& why);
  /// The CPUs that a key gives, those that are online; the others are remarked on.
  CpuSet given(const Setting<Cpus>& setting, std::string_view key);
  void remark(std::string text);

  // plan_steering.cpp
  [[nodiscard]] static bool concerns(const Setting<Cpus>& setting, const std::string& name);
  CpuSet planIrqs(const Nic& nic, const CpuSet& cpus);
  [[nodiscard]] bool irqsAreOurs(const Nic& nic);
  [[nodiscard]] CpuSet currentIrqCpus(const Nic& nic) const;
  void planRps(const Nic& nic, const CpuSet& cpus, const CpuSet& irqCpus);
  void planXps(const Nic& nic, const CpuSet& cpus);

  // plan_system.cpp
  [[nodiscard]] std::uint64_t wantedBuffer(const std::vector<Nic>& nics, std::string& why) const;
  void growTcpBuffer(const std::string& path, std::uint64_t bytes, const std::string& why);
  void grow(const std::string& path, std::uint64_t wanted, const std::string& why);
  /// Doubles the value once for each time that `drops` grew since the last application.
  void growByDrops(const std::string& path, std::uint64_t drops, std::uint64_t before,
                   const std::string& why);

  const Machine& machine_;
  const Request& request_;
  const Record& record_;
  Topology topology_;
  Counters drops_;
  Plan plan_;
  std::vector<std::string> absent_;
};

}  // namespace adit::tune

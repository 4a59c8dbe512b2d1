// Makes the machine equal to a DesiredNetwork, starting from what the kernel says and never from
// memory. Running it twice changes nothing the second time.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "control/desired.hpp"
#include "control/privileged.hpp"
#include "control/undo_record.hpp"
#include "nat/firewall.hpp"
#include "netlink/route.hpp"
#include "util/result.hpp"

namespace adit::control {

struct ReconcileReport {
  /// What was changed, for `adit reload` and the log.
  std::vector<std::string> changes;
  /// What could not be: the rest works all the same. Each names the thing and the remedy.
  std::vector<std::string> warnings;
};

class Reconciler {
 public:
  /// `saveUndo` is called whenever `undo` has changed, before the change it is about.
  Reconciler(netlink::Routing& routing, nat::Firewall& firewall, Privileged& privileged,
             UndoRecord& undo, std::function<void()> saveUndo);

  /// Reads what desiredNetwork() has to know. `endpoints` are where the peers are, for the path
  /// MTU; `mark` is that of the tunnel's datagrams.
  NetworkFacts gatherFacts(const config::Config& config, const std::string& interface,
                           const std::vector<Endpoint>& endpoints, std::uint16_t listenPort);

  /// Fails only when the link itself cannot be set up, or Expose = maps cannot be enforced;
  /// everything else degrades to a warning.
  Result<ReconcileReport> apply(const DesiredNetwork& desired, std::uint32_t interfaceIndex);

  /// Takes everything of ours away but the link: ruleset, rules, routes, kernel parameters. Goes
  /// on after failures and returns them.
  std::vector<std::string> remove(const std::string& interface);

 private:
  Result<void> applyLink(const DesiredNetwork& desired, std::uint32_t index);
  void applyAddresses(const DesiredNetwork& desired, std::uint32_t index);
  void applyRoutes(const DesiredNetwork& desired, std::uint32_t index);
  void applyRules(const DesiredNetwork& desired, std::vector<std::uint32_t> tables);
  void recordTable(const DesiredNetwork& desired);
  void applySysctls(const DesiredNetwork& desired);
  void applySysctl(const nat::SysctlNeed& need);
  Result<void> applyFirewall(const DesiredNetwork& desired);
  void applyRulesOfFamily(int family, const std::vector<netlink::Rule>& wanted,
                          const std::vector<std::uint32_t>& ownTables);
  void removeOwnRules(int family, const std::vector<std::uint32_t>& tables);
  std::vector<std::uint32_t> ownTables(std::uint32_t index);

  std::vector<IpAddress> homeAddresses(std::uint32_t tunnel);

  void changed(std::string what) { report_.changes.push_back(std::move(what)); }
  /// Notes a failure and says whether there was none.
  bool noted(const Result<void>& result);

  netlink::Routing& routing_;
  nat::Firewall& firewall_;
  Privileged& privileged_;
  UndoRecord& undo_;
  std::function<void()> saveUndo_;
  ReconcileReport report_;
};

}  // namespace adit::control

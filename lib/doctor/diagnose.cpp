#include "doctor/diagnose.hpp"

#include <algorithm>
#include <array>

#include "doctor/rules.hpp"

namespace adit::doctor {

std::string_view severityName(Severity severity) {
  switch (severity) {
    case Severity::Fault:
      return "fault";
    case Severity::Slow:
      return "slow";
    case Severity::Advice:
      return "advice";
  }
  return {};
}

void order(std::vector<Finding>& findings) {
  std::ranges::stable_sort(findings, {}, &Finding::severity);
}

bool isHealthy(const std::vector<Finding>& findings) {
  return std::ranges::all_of(
      findings, [](const Finding& finding) { return finding.severity == Severity::Advice; });
}

std::vector<Finding> diagnose(const Observation& seen) {
  std::vector<Finding> findings;
  judgeClock(seen.machine, findings);
  for (const TunnelFacts& tunnel : seen.tunnels) {
    judgeHandshakes(tunnel, findings);
    judgeKeepalive(tunnel, findings);
    judgePathMtu(tunnel, findings);
    judgePolicing(tunnel, findings);
  }
  judgeConntrack(seen.machine, findings);
  judgeModule(seen, findings);
  judgeCpus(seen, findings);
  judgeBacklog(seen.machine, findings);
  judgeIrqbalance(seen.machine, findings);
  for (const TunnelFacts& tunnel : seen.tunnels) {
    judgeCipher(tunnel, findings);
  }
  judgeTcp(seen, findings);
  for (const TunnelFacts& tunnel : seen.tunnels) {
    judgeFirewall(tunnel, findings);
    judgeMappings(tunnel, findings);
    judgeServices(tunnel, findings);
    passWarnings(tunnel, findings);
  }
  order(findings);
  return findings;
}

}  // namespace adit::doctor

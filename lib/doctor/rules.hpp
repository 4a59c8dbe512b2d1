// The rules, by subject. Internal to lib/doctor.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "doctor/finding.hpp"
#include "doctor/observation.hpp"

namespace adit::doctor {

using Findings = std::vector<Finding>;

// rules_handshake.cpp
void judgeHandshakes(const TunnelFacts& tunnel, Findings& out);
void judgeKeepalive(const TunnelFacts& tunnel, Findings& out);
void judgeClock(const MachineFacts& machine, Findings& out);

// rules_path.cpp
void judgePathMtu(const TunnelFacts& tunnel, Findings& out);
void judgePolicing(const TunnelFacts& tunnel, Findings& out);

// rules_cpu.cpp
void judgeCpus(const Observation& seen, Findings& out);
void judgeIrqbalance(const MachineFacts& machine, Findings& out);
void judgeBacklog(const MachineFacts& machine, Findings& out);
void judgeCipher(const TunnelFacts& tunnel, Findings& out);

// rules_tcp.cpp
void judgeTcp(const Observation& seen, Findings& out);

// rules_module.cpp
void judgeModule(const Observation& seen, Findings& out);

// rules_mappings.cpp
void judgeFirewall(const TunnelFacts& tunnel, Findings& out);
void judgeMappings(const TunnelFacts& tunnel, Findings& out);
void judgeServices(const TunnelFacts& tunnel, Findings& out);
void judgeConntrack(const MachineFacts& machine, Findings& out);
void passWarnings(const TunnelFacts& tunnel, Findings& out);

// figures.cpp: as a person reads them
std::string percentText(double share);
/// "12.5 Mbit/s"
std::string rateText(double bitsPerSecond);
/// "64 KiB"
std::string sizeText(double bytes);
/// "80 ms"
std::string delayText(std::chrono::microseconds delay);
/// Of a command line of adit: "500mbit", as a rate that it parses.
std::string rateArgument(double bitsPerSecond);

}  // namespace adit::doctor

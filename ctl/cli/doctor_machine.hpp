// What `adit doctor` sees of the machine.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "doctor/observation.hpp"
#include "tune/machine.hpp"

namespace adit::cli {

/// From /proc and /sys, or from what is recorded of them. `nic` may be empty for that of the
/// default route. Without the shares of CPU time, which need two looks.
doctor::MachineFacts observeMachine(const tune::Files& files, const std::string& nic);

/// Interrupts that adit has set, by `records` (lib/tune), and an irqbalance that has its own mind.
std::optional<doctor::Irqbalance> observeIrqbalance(
    const tune::Machine& machine, const std::vector<std::filesystem::path>& records);

/// adit.ko by the files of modprobe, DKMS and the firmware.
doctor::ModuleFacts observeModule(const tune::Files& files);

/// Whether any receive queue of the interface has RPS.
bool hasSteering(const tune::Files& files, const std::string& interface);

/// The clock is behind the time of one of these files.
void observeClock(const std::vector<std::filesystem::path>& files, doctor::MachineFacts& facts);

}  // namespace adit::cli

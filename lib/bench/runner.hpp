// Runs the steps of a plan one after the other.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "bench/iperf.hpp"
#include "bench/model.hpp"
#include "bench/process.hpp"

namespace adit::bench {

/// Where a layer's iperf3 server is, and from where it is asked.
struct Target {
  std::string address;
  std::uint16_t port = kIperfPort;
  /// Where the client runs; null: here.
  const Place* from = nullptr;
};

struct RunOptions {
  /// Of each step.
  unsigned seconds = 5;
  /// Of UDP, bits per second; 0 for as fast as the sender can.
  std::uint64_t udpRate = 0;
};

/// A layer without a target has the reason for it.
using Targets = std::map<Layer, Result<Target>>;
/// Called after each step.
using Progress = std::function<void(std::size_t number, std::size_t all, const StepResult&)>;

/// One result for each step, in their order. After an interrupt the others are "interrupted"; a
/// layer that nobody answers at is not tried again.
std::vector<StepResult> runSteps(const std::vector<Step>& steps, const Targets& targets,
                                 const RunOptions& options, const Interrupt& interrupt,
                                 const Progress& progress);

/// How busy all processors are together with what else this machine does, percent: what happens
/// while nothing is measured. Nothing where it is not known. Takes half a second.
std::optional<double> otherLoad(const Interrupt& interrupt);

/// The version of the iperf3 on PATH, or why it will not do.
Result<std::string> findIperf(const Interrupt& interrupt);

}  // namespace adit::bench

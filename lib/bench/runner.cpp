#include "bench/runner.hpp"

#include <poll.h>

#include <cerrno>

#include "bench/cpu.hpp"

namespace adit::bench {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

/// For connecting, for the results at the end, and for machines that stall.
constexpr seconds kGrace{15};
/// The server may still be ending the run before, or serve somebody else for a moment.
constexpr int kTries = 6;
constexpr milliseconds kRetryDelay{500};

/// False once interrupted.
bool pauseFor(milliseconds time, const Interrupt& interrupt) {
  pollfd source{interrupt.descriptor(), POLLIN, 0};
  ::poll(&source, 1, static_cast<int>(time.count()));
  return interrupt.signal() == 0;
}

IperfRun iperfRun(const Step& step, const Target& target, const RunOptions& options) {
  return {.address = target.address,
          .port = target.port,
          .transport = step.transport,
          .streams = step.streams,
          .direction = step.direction,
          .seconds = options.seconds,
          .udpRate = options.udpRate};
}

Result<Figures> runIperf(const IperfRun& run, const Target& target, const Interrupt& interrupt) {
  const auto ended = runToEnd({.arguments = iperfArguments(run), .place = target.from},
                              seconds(run.seconds) + kGrace, interrupt);
  if (!ended) return tl::unexpected(ended.error());
  if (ended->how == Ended::How::Interrupted) return fail("interrupted");
  if (ended->how == Ended::How::TooLate) {
    return fail("iperf3 did not end within {} s of its time", kGrace.count());
  }
  auto figures = parseIperfReport(ended->output, run);
  if (!figures && ended->output.empty()) return fail("iperf3: {}", lastWords(*ended));
  return figures;
}

/// A server that serves somebody, or is between two clients: it closes its socket for a moment,
/// with who waits in it. Layers may share it.
bool mayPass(const Error& reason, bool answeredBefore) {
  const bool closed = reason.message.find("refused") != std::string::npos ||
                      reason.message.find("reset by peer") != std::string::npos;
  return isBusy(reason) || (answeredBefore && isUnreachable(reason) && closed);
}

void measure(StepResult& result, const Target& target, bool answeredBefore,
             const RunOptions& options, const Interrupt& interrupt) {
  const IperfRun run = iperfRun(result.step, target, options);
  for (int tries = 0; tries < kTries; ++tries) {
    if (tries > 0 && !pauseFor(kRetryDelay, interrupt)) return;
    const CpuCounters before = readCpuCounters();
    const auto start = Clock::now();
    result.figures = runIperf(run, target, interrupt);
    result.cores = loadBetween(before, readCpuCounters(), Clock::now() - start);
    if (result.figures || !mayPass(result.figures.error(), answeredBefore)) return;
  }
}

std::string shown(const Target& target) {
  const bool v6 = target.address.find(':') != std::string::npos;
  return v6 ? fmt::format("[{}]:{}", target.address, target.port)
            : fmt::format("{}:{}", target.address, target.port);
}

}  // namespace

std::vector<StepResult> runSteps(const std::vector<Step>& steps, const Targets& targets,
                                 const RunOptions& options, const Interrupt& interrupt,
                                 const Progress& progress) {
  std::vector<StepResult> results;
  std::map<Layer, Error> givenUp;
  bool answered = false;
  for (const Step& step : steps) {
    StepResult result;
    result.step = step;
    const auto target = targets.find(step.layer);
    const auto hopeless = givenUp.find(step.layer);
    if (interrupt.signal() != 0) {
      result.figures = fail("interrupted");
    } else if (target == targets.end() || !target->second) {
      result.figures = target == targets.end() ? fail("there is no such layer here")
                                               : tl::unexpected(target->second.error());
    } else {
      result.target = shown(*target->second);
      if (hopeless != givenUp.end()) {
        result.figures = tl::unexpected(hopeless->second);
      } else {
        measure(result, *target->second, answered, options, interrupt);
      }
    }
    if (result.figures) answered = true;
    if (!result.figures && isUnreachable(result.figures.error())) {
      givenUp.emplace(step.layer, result.figures.error());
    }
    results.push_back(std::move(result));
    progress(results.size(), steps.size(), results.back());
  }
  return results;
}

std::optional<double> otherLoad(const Interrupt& interrupt) {
  constexpr milliseconds kWatched{500};
  const CpuCounters before = readCpuCounters();
  pauseFor(kWatched, interrupt);
  const auto cores = loadBetween(before, readCpuCounters(), kWatched);
  if (cores.empty()) return std::nullopt;
  double busy = 0;
  for (const CoreLoad& core : cores) {
    busy += core.busy();
  }
  return busy / static_cast<double>(cores.size());
}

Result<std::string> findIperf(const Interrupt& interrupt) {
  const auto ended = runToEnd({.arguments = {kIperf, "--version"}}, seconds(10), interrupt);
  if (!ended) {
    return ended.error().code == ENOENT ? fail("iperf3 is not installed: apt-get install iperf3")
                                        : tl::unexpected(ended.error());
  }
  return checkIperfVersion(ended->output);
}

}  // namespace adit::bench

// Processors' counters, programs that are run, and the steps of a benchmark with iperf3 replaced.
#include <signal.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "bench/cpu.hpp"
#include "bench/runner.hpp"
#include "iperf_reports.hpp"
#include "scratch.hpp"

namespace adit::bench {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr const char* kStat =
    "cpu  300 0 300 900 0 0 60 0 0 0\n"
    "cpu0 100 10 200 400 50 5 30 2 0 0\n"
    "cpu2 1 2 3 4\n"
    "cpuX 1 2 3 4 5 6 7 8\n"
    "intr 5 6\n";
constexpr const char* kSoftirqs =
    "                    CPU0       CPU2       CPU3\n"
    "          HI:          1          2          3\n"
    "      NET_RX:        500        700        900\n";

TEST_CASE("Counters of processors, by their numbers") {
  const CpuCounters counters = parseCpuCounters(kStat, kSoftirqs);
  REQUIRE(counters.size() == 2);
  CHECK(counters.at(0).user == 110);
  CHECK(counters.at(0).idle == 450);
  CHECK(counters.at(0).softirq == 30);
  CHECK(counters.at(0).received == 500);
  CHECK(counters.at(2).received == 700);
  CHECK(parseCpuCounters("", "").empty());
  CHECK(parseCpuCounters(kStat, "").at(0).received == 0);
}

TEST_CASE("Load is what happened in between") {
  CpuCounters before{{0, {.user = 100, .system = 100, .idle = 100, .softirq = 10}},
                     {1, {.idle = 5}},
                     {2, {.user = 7}}};
  CpuCounters after{{0,
                     {.user = 110,
                      .system = 130,
                      .idle = 110,
                      .irq = 5,
                      .softirq = 50,
                      .steal = 5,
                      .received = 400}},
                    {1, {.idle = 3}},
                    {3, {.user = 100}}};
  const auto loads = loadBetween(before, after, seconds(2));
  REQUIRE(loads.size() == 1);  // 1 did not count, 2 went, 3 came
  CHECK(loads[0].softirq == Approx(40));
  CHECK(loads[0].system == Approx(30));
  CHECK(loads[0].busy() == Approx(90));
  CHECK(loads[0].receivedPerSecond == Approx(200));
}

TEST_CASE("A program's output, status, and what is said of its failure") {
  const Interrupt interrupt;
  const auto ended =
      runToEnd({.arguments = {"sh", "-c", "cat; echo words >&2; exit 3"}, .input = "given"},
               seconds(20), interrupt);
  REQUIRE(ended);
  CHECK(ended->how == Ended::How::Itself);
  CHECK(ended->status == 3);
  CHECK(ended->output == "given");
  CHECK(lastWords(*ended) == "words");
  const auto absent = runToEnd({.arguments = {"adit-no-such-program"}}, seconds(20), interrupt);
  REQUIRE_FALSE(absent);
  CHECK(absent.error().code == ENOENT);
}

TEST_CASE("A program that takes too long is ended, with its children") {
  const Interrupt interrupt;
  const auto start = std::chrono::steady_clock::now();
  unsigned ticks = 0;
  const auto ended = runToEnd({.arguments = {"sh", "-c", "sleep 60 & echo $!; wait"}},
                              milliseconds(300), interrupt, milliseconds(50), [&] { ++ticks; });
  REQUIRE(ended);
  CHECK(ended->how == Ended::How::TooLate);
  CHECK(std::chrono::steady_clock::now() - start < seconds(20));
  CHECK(ticks > 1);
  const pid_t grandchild = std::stoi(ended->output);
  // Whoever adopts it may take a moment to reap it; its parent waited for the kill.
  const auto gone = [&] {
    std::ifstream stat("/proc/" + std::to_string(grandchild) + "/stat");
    std::string text((std::istreambuf_iterator<char>(stat)), {});
    return text.empty() || text.find(") Z ") != std::string::npos;
  };
  for (int i = 0; i < 200 && !gone(); ++i) {
    std::this_thread::sleep_for(milliseconds(10));
  }
  CHECK(gone());
}

TEST_CASE("An interrupt ends the program and is remembered") {
  const Interrupt interrupt;
  const auto ended = runToEnd({.arguments = {"sleep", "60"}}, seconds(60), interrupt,
                              milliseconds(20), [] { ::raise(SIGTERM); });
  REQUIRE(ended);
  CHECK(ended->how == Ended::How::Interrupted);
  CHECK(interrupt.signal() == SIGTERM);
}

/// A folder at the front of PATH with a program called iperf3.
class FakeIperf {
 public:
  explicit FakeIperf(const std::string& script)
      : folder_(testing::makeScratch("adit-bench-test")), path_(std::getenv("PATH")) {
    const auto program = folder_ / "iperf3";
    std::ofstream(program) << "#!/bin/sh\necho run >>" << (folder_ / "runs").string() << "\n"
                           << script;
    ::chmod(program.c_str(), 0755);
    ::setenv("PATH", (folder_.string() + ":" + path_).c_str(), 1);
  }
  ~FakeIperf() {
    ::setenv("PATH", path_.c_str(), 1);
    std::filesystem::remove_all(folder_);
  }
  FakeIperf(const FakeIperf&) = delete;
  FakeIperf& operator=(const FakeIperf&) = delete;
  [[nodiscard]] std::filesystem::path folder() const { return folder_; }
  [[nodiscard]] std::size_t runs() const {
    std::ifstream file(folder_ / "runs");
    return static_cast<std::size_t>(
        std::count(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>(), '\n'));
  }

 private:
  std::filesystem::path folder_;
  std::string path_;
};

std::string printing(const std::string& report) {
  return "cat <<'END'\n" + report + "\nEND\n";
}

std::vector<StepResult> runWith(const std::vector<Step>& steps, const Interrupt& interrupt) {
  const Targets targets{{Layer::Bare, Target{"192.0.2.1"}},
                        {Layer::Tunnel, Target{"fd10::2", 18080}},
                        {Layer::Mapped, fail("no mapped port is known")}};
  return runSteps(steps, targets, {.seconds = 1}, interrupt,
                  [](std::size_t, std::size_t, const StepResult&) {});
}

constexpr Step kBare{Layer::Bare, Transport::Tcp, 2, Direction::Send};
constexpr Step kTunnel{Layer::Tunnel, Transport::Tcp, 2, Direction::Send};
constexpr Step kMapped{Layer::Mapped, Transport::Tcp, 2, Direction::Send};

TEST_CASE("Steps: figures, cores, and a reason for a layer that is not there") {
  const FakeIperf iperf(printing(kTcpSend));
  const Interrupt interrupt;
  const auto results = runWith({kTunnel, kMapped}, interrupt);
  REQUIRE(results.size() == 2);
  CHECK(results[0].figures->mbps > 1000);
  CHECK(results[0].target == "[fd10::2]:18080");
  CHECK(results[1].figures.error().message == "no mapped port is known");
  CHECK(results[1].target.empty());
  CHECK(iperf.runs() == 1);
}

TEST_CASE("A layer where nobody answers is tried once, the others go on") {
  const FakeIperf iperf("case $* in *192.0.2.1*) " +
                        printing(R"({"end":{},"error":"unable to connect to server"})") + ";; *) " +
                        printing(kTcpSend) + ";; esac\n");
  const Interrupt interrupt;
  const auto results = runWith({kBare, kBare, kTunnel}, interrupt);
  CHECK(results[0].figures.error().message == "iperf3: unable to connect to server");
  CHECK(results[1].figures.error().message == results[0].figures.error().message);
  CHECK(results[2].figures);
  CHECK(iperf.runs() == 2);
}

TEST_CASE("A server that is between two runs refuses for a moment") {
  const auto flag = testing::makeScratch("adit-bench-flag");
  const FakeIperf iperf("case $* in *fd10::2*) if mkdir " + (flag / "once").string() +
                        " 2>/dev/null; then " +
                        printing(R"({"end":{},"error":"unable to connect: Connection refused"})") +
                        "exit; fi;; esac\n" + printing(kTcpSend));
  const Interrupt interrupt;
  CHECK(runWith({kBare, kTunnel}, interrupt)[1].figures);
  CHECK(iperf.runs() == 3);
  std::filesystem::remove_all(flag);
}

TEST_CASE("A busy server is asked again") {
  const auto flag = testing::makeScratch("adit-bench-flag");
  const FakeIperf iperf("if mkdir " + (flag / "once").string() + " 2>/dev/null; then " +
                        printing(R"({"end":{},"error":"the server is busy running a test"})") +
                        "exit; fi\n" + printing(kTcpSend));
  const Interrupt interrupt;
  CHECK(runWith({kTunnel}, interrupt)[0].figures);
  CHECK(iperf.runs() == 2);
  std::filesystem::remove_all(flag);
}

TEST_CASE("iperf3 that dies without a report leaves its last words as the reason") {
  const FakeIperf iperf("echo 'out of memory' >&2; exit 1\n");
  const Interrupt interrupt;
  CHECK(runWith({kTunnel}, interrupt)[0].figures.error().message == "iperf3: out of memory");
}

TEST_CASE("Interrupted: that step and the rest have no result, what was before keeps its own") {
  const FakeIperf iperf("case $* in *192.0.2.1*) " + printing(kTcpSend) +
                        "exit;; esac\nkill -INT $PPID; exec sleep 60\n");
  const Interrupt interrupt;
  const auto results = runWith({kBare, kTunnel, kBare}, interrupt);
  CHECK(results[0].figures);
  CHECK(results[1].figures.error().message == "interrupted");
  CHECK(results[2].figures.error().message == "interrupted");
  CHECK(iperf.runs() == 2);
}

TEST_CASE("iperf3 too old, or absent") {
  const Interrupt interrupt;
  {
    const FakeIperf iperf("echo 'iperf 3.7 (cJSON 1.5.2)'\n");
    CHECK(findIperf(interrupt).error().message.find("too old") != std::string::npos);
  }
  const FakeIperf iperf("");
  std::filesystem::remove(iperf.folder() / "iperf3");
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", iperf.folder().c_str(), 1);
  CHECK(findIperf(interrupt).error().message.find("not installed") != std::string::npos);
  ::setenv("PATH", path.c_str(), 1);
}

}  // namespace
}  // namespace adit::bench

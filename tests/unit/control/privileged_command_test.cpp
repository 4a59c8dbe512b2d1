#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <string_view>
#include <thread>

#include "control/privileged_command.hpp"
#include "privileged_fixture.hpp"
#include "util/unique_fd.hpp"

using namespace adit;
using namespace adit::control;
using namespace std::chrono_literals;

namespace {

Command sh(const std::string& text) {
  Command command;
  command.arguments = {"/bin/sh", "-c", text};
  command.environment = {"PATH=/usr/bin:/bin"};
  command.outputLimit = 4096;
  return command;
}

std::string outputOf(const Command& command) {
  const auto result = runCommand(command);
  REQUIRE(result);
  return {result->output.begin(), result->output.end()};
}

/// Whether process `pid` runs no more within `limit`; it may still wait to be reaped by init.
bool endsWithin(pid_t pid, std::chrono::seconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (std::chrono::steady_clock::now() < deadline) {
    std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
    std::string number, name, state = "gone";
    in >> number >> name >> state;
    if (state == "gone" || state == "Z" || state == "X") return true;
    std::this_thread::sleep_for(1ms);
  }
  return false;
}

}  // namespace

TEST_CASE("a command gets the environment it is given and no other", "[privileged]") {
  ::setenv("ADIT_TEST_LEAK", "1", 1);
  Command command = sh("env | sort | grep -v -e ^PWD -e ^OLDPWD -e ^SHLVL -e ^_=");
  command.environment.push_back("ADIT_INTERFACE=tun7");
  CHECK(outputOf(command) == "ADIT_INTERFACE=tun7\nPATH=/usr/bin:/bin\n");
}

TEST_CASE("a command inherits no descriptor but the three", "[privileged]") {
  // Without O_CLOEXEC on purpose: a library may have opened it so.
  const UniqueFd open(::open("/dev/zero", O_RDONLY));
  const int high = ::fcntl(open.get(), F_DUPFD, 50);
  CHECK(outputOf(sh("for d in /proc/$$/fd/*; do readlink $d; done | grep -c zero")) == "0\n");
  ::close(high);
}

TEST_CASE("a command's standard input is its input, or empty", "[privileged]") {
  Command command = sh("cat; echo end");
  CHECK(outputOf(command) == "end\n");
  command.input = "nameserver 192.0.2.1\n";
  CHECK(outputOf(command) == "nameserver 192.0.2.1\nend\n");
}

TEST_CASE("a command's status is the shell's", "[privileged]") {
  const auto exited = runCommand(sh("exit 3"));
  REQUIRE(exited);
  CHECK(exited->status == 3);
  CHECK_FALSE(exited->ok());
  CHECK(describeEnd(sh(""), *exited) == "exited with status 3");
  const auto killed = runCommand(sh("kill -9 $$"));
  REQUIRE(killed);
  CHECK(killed->status == 137);
  CHECK(describeEnd(sh(""), *killed) == "was killed by signal 9");
}

TEST_CASE("a command that cannot be started is an error with its name", "[privileged]") {
  Command command;
  command.arguments = {"/nonexistent/program"};
  const auto result = runCommand(command);
  REQUIRE_FALSE(result);
  CHECK(result.error().message == "/nonexistent/program: No such file or directory");
}

TEST_CASE("a command that hangs is killed with its children", "[privileged]") {
  ScratchDirectory scratch;
  Command command = sh("sleep 60 & echo $! > " + scratch.file("pid") + "; wait");
  command.timeout = 300ms;
  const auto start = std::chrono::steady_clock::now();
  const auto result = runCommand(command);
  REQUIRE(result);
  CHECK(std::chrono::steady_clock::now() - start < 10s);
  CHECK(result->timedOut);
  CHECK(describeEnd(command, *result) == "did not end within 0.3 s and was killed");
  CHECK(endsWithin(std::stoi(scratch.read("pid")), 5s));
}

TEST_CASE("a command may leave a daemon behind", "[privileged]") {
  ScratchDirectory scratch;
  const auto start = std::chrono::steady_clock::now();
  Command command = sh("sleep 60 & echo $!");
  const std::string pid = outputOf(command);
  CHECK(std::chrono::steady_clock::now() - start < 10s);
  CHECK(::kill(std::stoi(pid), SIGKILL) == 0);
}

TEST_CASE("a command that prints without end gets an error, and takes no memory", "[privileged]") {
  Command command = sh("yes");
  command.outputLimit = 100;
  const auto result = runCommand(command);
  REQUIRE(result);
  CHECK_FALSE(result->ok());
  CHECK_FALSE(result->timedOut);
  CHECK(result->output.size() <= 100);
}

TEST_CASE("a program is found in the search path", "[privileged]") {
  ScratchDirectory scratch;
  scratch.program("tool", "true");
  scratch.write("other/tool", "not executable");
  const std::string path = scratch.file("other") + ":" + scratch.file("bin") + ":/bin";
  CHECK(findProgram("tool", path) == scratch.file("bin") + "/tool");
  CHECK(findProgram("sh", path) == "/bin/sh");
  CHECK(findProgram("no-such-tool", path).empty());
  CHECK(findProgram("sh", "").empty());
}

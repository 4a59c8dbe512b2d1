#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>

#include "control/sysctl_file.hpp"
#include "privileged_fixture.hpp"

using namespace adit;
using namespace adit::control;

TEST_CASE("a sysctl is allowed by its last name, below net only", "[privileged]") {
  for (const char* path :
       {"net/ipv4/ip_forward", "net/ipv4/conf/eth0.5/rp_filter", "net/ipv6/conf/all/forwarding",
        "net/ipv4/conf/all/src_valid_mark", "net/ipv6/conf/tun7/disable_ipv6",
        "net/ipv4/tcp_congestion_control", "net/core/rmem_max", "net/core/netdev_budget",
        "net/netfilter/nf_conntrack_max", "net/core/rps_sock_flow_entries",
        "net/core/default_qdisc"}) {
    INFO(path);
    CHECK(checkSysctl(path));
  }
  const std::string noise(4096, 'a');
  for (const std::string& path : std::vector<std::string>{
           "", "net", "net/", "kernel/core_pattern", "/net/ipv4/ip_forward", "net/../vm/ip_forward",
           "net/ipv4/../../kernel/ip_forward", "net/./ip_forward", "net//ip_forward",
           "net/ipv4/ip_forward/", "net/ipv4/ip_forward/..", "net/core/bpf_jit_enable",
           "net/ipv4/tcp_fastopen_key", "net/netfilter/nf_conntrack_helper",
           std::string("net/ipv4/ip_forward\0/x", 22), "net/ipv4/conf/a b/rp_filter",
           "net/" + noise + "/ip_forward", "NET/ipv4/ip_forward", "net/ipv4/xtcp_mem"}) {
    INFO(path);
    CHECK_FALSE(checkSysctl(path));
    CHECK_FALSE(writeSysctlFile("/nonexistent", path, "1"));
  }
}

TEST_CASE("writing a sysctl returns the old value", "[privileged]") {
  ScratchDirectory scratch;
  scratch.write("net/ipv4/ip_forward", "0\n");
  scratch.write("net/ipv4/tcp_rmem", "4096\t131072\t6291456\n");
  CHECK(readSysctlFile(scratch.path(), "net/ipv4/ip_forward").value() == "0");
  CHECK(readSysctlFile(scratch.path(), "net/ipv4/nonsense").error().code == ENOENT);
  for (const char* path : {"", "/etc/passwd", "../../etc/passwd", "net/../x", "net/"}) {
    CHECK_THAT(readSysctlFile(scratch.path(), path).error().message,
               Catch::Contains("is not the path"));
  }
  CHECK(writeSysctlFile(scratch.path(), "net/ipv4/ip_forward", "1").value() == "0");
  CHECK(scratch.read("net/ipv4/ip_forward") == "1");
  CHECK(writeSysctlFile(scratch.path(), "net/ipv4/ip_forward", "1").value() == "1");
  CHECK(writeSysctlFile(scratch.path(), "net/ipv4/tcp_rmem", "4096 131072 8388608").value() ==
        "4096\t131072\t6291456");
  CHECK(scratch.read("net/ipv4/tcp_rmem") == "4096 131072 8388608");
}

TEST_CASE("a sysctl that has the value already is not written", "[privileged]") {
  ScratchDirectory scratch;
  scratch.write("net/ipv4/tcp_rmem", "1\t2\t3\n");
  CHECK(writeSysctlFile(scratch.path(), "net/ipv4/tcp_rmem", "1 2 3").value() == "1\t2\t3");
  CHECK(scratch.read("net/ipv4/tcp_rmem") == "1\t2\t3\n");
}

TEST_CASE("a sysctl's value is short printable text", "[privileged]") {
  ScratchDirectory scratch;
  scratch.write("net/ipv4/ip_forward", "0\n");
  for (const std::string& value : {std::string(), std::string("1\n"), std::string("1\0", 2),
                                   std::string("\xc3\xa4"), std::string(300, '1')}) {
    CHECK_FALSE(writeSysctlFile(scratch.path(), "net/ipv4/ip_forward", value));
  }
  CHECK(scratch.read("net/ipv4/ip_forward") == "0\n");
}

TEST_CASE("an absent sysctl is an error with its name", "[privileged]") {
  ScratchDirectory scratch;
  const auto written = writeSysctlFile(scratch.path(), "net/core/rmem_max", "1");
  REQUIRE_FALSE(written);
  CHECK(written.error().code == ENOENT);
  CHECK_THAT(written.error().message, Catch::Contains(scratch.file("net/core/rmem_max")));
}

TEST_CASE("a sysctl is never written through a symbolic link", "[privileged]") {
  ScratchDirectory scratch;
  scratch.write("target", "0\n");
  scratch.write("net/ipv4/x", "");
  std::filesystem::create_symlink(scratch.file("target"), scratch.file("net/ipv4/ip_forward"));
  CHECK_FALSE(writeSysctlFile(scratch.path(), "net/ipv4/ip_forward", "1"));
  CHECK(scratch.read("target") == "0\n");
}

TEST_CASE("a read-only sysctl names the command for the host", "[privileged][root]") {
  REQUIRE(::geteuid() == 0);
  ScratchDirectory scratch;
  scratch.write("net/ipv4/conf/eth0.5/rp_filter", "0\n");
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    // As in a container: /proc/sys is mounted read-only.
    const char* root = scratch.path().c_str();
    std::string message = "no mount";
    if (::unshare(CLONE_NEWNS) == 0 &&
        ::mount(nullptr, "/", nullptr, MS_PRIVATE | MS_REC, nullptr) == 0 &&
        ::mount(root, root, nullptr, MS_BIND, nullptr) == 0 &&
        ::mount(nullptr, root, nullptr, MS_BIND | MS_REMOUNT | MS_RDONLY, nullptr) == 0) {
      const auto written = writeSysctlFile(scratch.path(), "net/ipv4/conf/eth0.5/rp_filter", "2");
      message = written ? "written" : written.error().message;
    }
    const ssize_t sent = ::write(ends[1], message.data(), message.size());
    ::_exit(sent > 0 ? 0 : 1);
  }
  ::close(ends[1]);
  std::array<char, 1024> buffer{};
  const ssize_t length = ::read(ends[0], buffer.data(), buffer.size());
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  REQUIRE(length > 0);
  CHECK(std::string(buffer.data(), static_cast<std::size_t>(length)) ==
        scratch.file("net/ipv4/conf/eth0.5/rp_filter") +
            " cannot be written here; run on the host: sysctl -w "
            "net.ipv4.conf.eth0/5.rp_filter='2': Read-only file system");
}

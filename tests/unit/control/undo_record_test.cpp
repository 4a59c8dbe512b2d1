#include "control/undo_record.hpp"

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <fstream>

#include "fake_kernel.hpp"
#include "nat/prerequisites.hpp"
#include "privileged_fixture.hpp"

namespace adit::control {
namespace {

struct Fixture {
  ScratchDirectory scratch;
  std::string path = scratch.file("undo.json");

  UndoRecord load() const { return UndoRecord::load(path, "adit0").value(); }
  UndoRecord loadWith(const std::map<std::string, std::string>& sysctls) const {
    UndoRecord written;
    written.sysctls = sysctls;
    REQUIRE(written.save(path));
    return load();
  }
};

}  // namespace

TEST_CASE_METHOD(Fixture, "all that adit records is put back after a crash") {
  UndoRecord written;
  written.sysctls = {
      {"net/ipv4/conf/eth0/forwarding", "0"},    {"net/ipv4/conf/adit0/forwarding", "0"},
      {"net/ipv4/conf/adit0/rp_filter", "1"},    {"net/ipv4/conf/all/src_valid_mark", "0"},
      {"net/netfilter/nf_conntrack_acct", "0"},  {"net/ipv4/ip_forward", "0"},
      {"net/ipv6/conf/eth0.100/accept_ra", "1"}, {"net/ipv6/conf/all/forwarding", "0"}};
  written.table = 51821;
  written.dns = true;
  written.hooksRun = true;
  REQUIRE(written.save(path));
  const UndoRecord read = load();
  CHECK(read.sysctls == written.sysctls);
  CHECK(read.table == 51821);
  CHECK(read.dns);
  CHECK(read.hooksRun);
  CHECK(read.refused.empty());
}

// Everything that nat::neededSysctls() can ask for, whatever the mappings are.
TEST_CASE_METHOD(Fixture, "no parameter that a ruleset needs is refused") {
  nat::RulesetSpec spec;
  spec.interface = "adit0";
  spec.publicInterfaces = {"eth0", "wan"};
  nat::Mapping mapping;
  mapping.targetV4 = IpAddress::parse("10.0.0.2").value();
  mapping.targetV6 = IpAddress::parse("fd00::2").value();
  spec.mappings = {mapping};
  spec.reply = nat::ReplyMarks{};
  spec.guard = nat::DefaultRouteGuard{51820};
  spec.forwards = true;
  std::map<std::string, std::string> sysctls;
  for (const nat::SysctlNeed& need : nat::neededSysctls(spec, {"eth0", "wan", "adit0"})) {
    sysctls[need.path] = need.onlyWhen.empty() ? "0" : need.onlyWhen.front();
  }
  CHECK(sysctls.size() >= 9);
  CHECK(loadWith(sysctls).sysctls == sysctls);
}

TEST_CASE_METHOD(Fixture, "root writes nothing that adit cannot have changed") {
  const auto [parameter, value] = GENERATE(table<std::string, std::string>({
      {"net/ipv4/tcp_syncookies", "0"},
      {"net/ipv4/conf/eth0/rp_filter", "0"},
      {"net/ipv4/conf/all/rp_filter", "0"},
      {"net/ipv4/conf/all/forwarding", "0"},
      {"net/ipv4/conf/default/forwarding", "0"},
      {"net/ipv4/conf/adit0/forwarding", "1"},
      {"net/ipv4/conf/../forwarding", "0"},
      {"net/ipv4/conf/a/b/forwarding", "0"},
      {"net/ipv4/conf//forwarding", "0"},
      {"net/ipv4/conf/forwarding", "0"},
      {"net/ipv4/ip_forward", "1"},
      {"net/ipv4/ip_forward", ""},
      {"net/ipv6/conf/eth0/accept_ra", "2"},
      {"net/ipv6/conf/all/disable_ipv6", "0"},
      {"kernel/core_pattern", "|/tmp/x"},
      {"../../etc/passwd", "0"},
      {std::string(4000, 'x'), "0"},
  }));
  const UndoRecord read = loadWith({{parameter, value}, {"net/ipv4/conf/eth0/forwarding", "0"}});
  CAPTURE(parameter);
  CHECK(read.sysctls == std::map<std::string, std::string>{{"net/ipv4/conf/eth0/forwarding", "0"}});
  REQUIRE(read.refused.size() == 1);
  CHECK(read.refused.front().size() < 300);
}

TEST_CASE_METHOD(Fixture, "the kernel's tables are not ours, and a table is a number") {
  for (const std::uint32_t table : {253U, 254U, 255U}) {
    UndoRecord written;
    written.table = table;
    REQUIRE(written.save(path));
    CHECK(load().table == 0);
    CHECK(load().refused.size() == 1);
  }
  for (const char* table : {"-1", "4294967296", "1.5", "true", "\"5\""}) {
    scratch.write(
        "undo.json",
        fmt::format(R"({{"sysctls":{{}},"table":{},"dns":false,"hooks_run":false}})", table));
    CAPTURE(table);
    CHECK_FALSE(UndoRecord::load(path, "adit0"));
  }
}

TEST_CASE_METHOD(Fixture, "rules of another interface of adit stay") {
  FakeRouting routing;
  netlink::Route route;
  route.table = 51820;
  route.interface = 9;
  routing.routeList = {route};
  UndoRecord record;
  record.table = 51820;
  record.checkTable(routing, 7);
  CHECK(record.table == 0);
  CHECK(record.refused.size() == 1);

  routing.routeList.front().interface = 7;
  UndoRecord own;
  own.table = 51820;
  own.checkTable(routing, 7);
  CHECK(own.table == 51820);
  CHECK(own.refused.empty());
}

TEST_CASE_METHOD(Fixture, "what stands in the record's place is neither followed nor waited for") {
  CHECK(load().sysctls.empty());

  scratch.write("elsewhere", R"({"sysctls":{},"table":7,"dns":true,"hooks_run":true})");
  std::filesystem::create_symlink(scratch.file("elsewhere"), path);
  CHECK_FALSE(UndoRecord::load(path, "adit0"));
  std::filesystem::remove(path);

  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  CHECK_FALSE(UndoRecord::load(path, "adit0"));
  std::filesystem::remove(path);

  std::ofstream(path) << std::string((1 << 20) + 1, ' ');
  CHECK_FALSE(UndoRecord::load(path, "adit0"));
  scratch.write("undo.json", "{");
  CHECK_FALSE(UndoRecord::load(path, "adit0"));
}

}  // namespace adit::control

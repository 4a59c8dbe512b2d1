#include <catch2/catch.hpp>

#include "tune/cpu_set.hpp"
#include "tune/permitted.hpp"

using namespace adit;
using namespace adit::tune;

namespace {

CpuSet range(unsigned first, unsigned last) {
  CpuSet cpus;
  for (unsigned cpu = first; cpu <= last; ++cpu) {
    cpus.add(cpu);
  }
  return cpus;
}

}  // namespace

TEST_CASE("case 56: a mask has groups of eight digits, as many as the file shows") {
  CHECK(range(20, 35).toMask(2).value() == "0000000f,fff00000");
  CHECK(range(0, 0).toMask(maskGroups("1")).value() == "00000001");
  CHECK(range(0, 30).toMask(maskGroups("7fffffff")).value() == "7fffffff");
  CHECK(range(0, 31).toMask(maskGroups("ffffffff")).value() == "ffffffff");
  CHECK(range(0, 32).toMask(maskGroups("1,ffffffff")).value() == "00000001,ffffffff");
  CHECK(range(0, 63).toMask(2).value() == "ffffffff,ffffffff");
  CHECK(range(0, 64).toMask(3).value() == "00000001,ffffffff,ffffffff");
  CHECK(range(0, 95).toMask(3).value() == "ffffffff,ffffffff,ffffffff");
  CHECK(range(0, 127).toMask(4).value() == "ffffffff,ffffffff,ffffffff,ffffffff");
  CHECK(CpuSet{}.toMask(2).value() == "00000000,00000000");
  CHECK(CpuSet{5}.toMask(4).value() == "00000000,00000000,00000000,00000020");
  // More CPUs than the file has room for.
  CHECK_FALSE(range(0, 32).toMask(1));
}

TEST_CASE("case 57: masks are compared as numbers and CPUs are ordered as numbers") {
  CHECK(sameValue(Form::Mask, "00000000,00000003\n", "3"));
  CHECK(sameValue(Form::Mask, "f,ffffffff", "0000000f,ffffffff"));
  CHECK_FALSE(sameValue(Form::Mask, "1,00000000", "1"));
  CHECK_FALSE(sameValue(Form::Mask, "0000ffff,,,0", "ffff"));
  CHECK(sameValue(Form::List, "0,1,2,3", "0-3"));
  CHECK(CpuSet::fromMask("80000000,00000000").value() == CpuSet{63});
  CHECK(CpuSet::fromMask("1,00000000,00000000").value() == CpuSet{64});
  CHECK(CpuSet::fromMask("3").value() == CpuSet{0, 1});
  CHECK(CpuSet{10, 2, 1, 11, 0}.toList() == "0-2,10-11");
  CHECK(CpuSet::fromList("0-3,8,10-11\n").value() == CpuSet{0, 1, 2, 3, 8, 10, 11});
  CHECK(CpuSet::fromList("").value().empty());
  for (const char* wrong : {"4-N", "3-1", "0,,1", "x", "-1", "1-", "0-99999999", " 1 2"}) {
    INFO(wrong);
    const auto cpus = CpuSet::fromList(wrong);
    REQUIRE_FALSE(cpus);
    CHECK_THAT(cpus.error().message, Catch::Contains("\""));
  }
  for (const char* wrong : {"", "0x3", "0-1", "0000ffff,,,0", "123456789", "g"}) {
    INFO(wrong);
    CHECK_FALSE(CpuSet::fromMask(wrong));
  }
}

TEST_CASE("set operations on CPUs") {
  const CpuSet all = range(0, 7);
  CHECK((all & CpuSet{3, 9}) == CpuSet{3});
  CHECK((all - range(1, 7)) == CpuSet{0});
  CHECK((CpuSet{1} | CpuSet{70}) == CpuSet{1, 70});
  CHECK(CpuSet{2, 3}.isSubsetOf(all));
  CHECK_FALSE(CpuSet{2, 9}.isSubsetOf(all));
}

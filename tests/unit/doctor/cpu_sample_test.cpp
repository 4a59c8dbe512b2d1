// Recorded /proc/stat, read twice.
#include "doctor/cpu_sample.hpp"

#include <catch2/catch.hpp>

using namespace adit::doctor;

namespace {

constexpr const char* kBefore =
    "cpu  300 0 200 3000 10 0 100 0 0 0\n"
    "cpu0 100 0 100 1000 5 0 50 0 0 0\n"
    "cpu1 100 0 50 1000 5 0 25 0 0 0\n"
    "cpu10 100 0 50 1000 0 0 25 0 0 0\n"
    "intr 12345 0 0\nctxt 99\n";
constexpr const char* kAfter =
    "cpu  310 0 210 3090 10 0 190 0 0 0\n"
    "cpu0 105 0 105 1000 5 0 140 0 0 0\n"
    "cpu1 125 0 50 1075 5 0 25 0 0 0\n"
    "cpu10 100 0 50 1000 0 0 25 0 0 0\n"
    "intr 12346 0 0\n";

}  // namespace

TEST_CASE("cpu sample: the share of softirq by CPU") {
  const auto shares = sharesBetween(parseCpuReading(kBefore), parseCpuReading(kAfter));
  // cpu10's counters have not moved.
  REQUIRE(shares.size() == 2);
  CHECK(shares[0].cpu == 0);
  CHECK(shares[0].busy == Approx(1.0));
  CHECK(shares[0].softirq == Approx(0.9));
  CHECK(shares[1].cpu == 1);
  CHECK(shares[1].busy == Approx(0.25));
  CHECK(shares[1].softirq == Approx(0.0));
}

TEST_CASE("cpu sample: CPUs come and go, and lines may be anything") {
  auto before = parseCpuReading(kBefore);
  before.erase(1);
  CHECK(sharesBetween(before, parseCpuReading(kAfter)).size() == 1);
  CHECK(parseCpuReading("").empty());
  CHECK(parseCpuReading("cpu0 1 2\ncpuX 1 2 3 4 5 6 7\ncpu1 a b c d e f g\ncpu2").empty());
  // Old kernels have no steal time.
  CHECK(parseCpuReading("cpu3 1 2 3 4 5 6 7").at(3).total == 28);
  // Idle time that runs backwards is no negative share.
  const auto shares = sharesBetween(parseCpuReading("cpu0 0 0 0 100 0 0 0 0"),
                                    parseCpuReading("cpu0 50 0 0 98 0 0 0 0"));
  REQUIRE(shares.size() == 1);
  CHECK(shares[0].busy == Approx(1.0));
}

#include "control/state_store.hpp"

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <fstream>

#include "scratch.hpp"
#include "util/file.hpp"

namespace adit::control {
namespace {

using namespace std::chrono_literals;

class FakeClock final : public Clock {
 public:
  [[nodiscard]] BootTime now() const override { return time; }
  [[nodiscard]] std::chrono::nanoseconds realTime() const override { return time; }
  BootTime time{1s};
};

/// Two folders of their own, gone at the end.
struct Fixture {
  Fixture() {
    std::filesystem::create_directory(root / "durable");
    std::filesystem::create_directory(root / "runtime");
  }
  ~Fixture() { std::filesystem::remove_all(root); }

  [[nodiscard]] StateStore store() const { return {clock, root / "durable", root / "runtime"}; }

  std::filesystem::path root = testing::makeScratch("adit-state");
  FakeClock clock;
  crypto::PublicKey key{{1, 2, 3}};
};

constexpr noise::Tai64n kEarly{4611686020000000000, 16777216};
constexpr noise::Tai64n kLate{4611686020000000001, 0};

}  // namespace

TEST_CASE_METHOD(Fixture, "a new store is empty and warns of nothing") {
  StateStore fresh = store();
  CHECK(fresh.load().empty());
  CHECK_FALSE(fresh.mark());
  CHECK_FALSE(fresh.peer(key).greatestTimestamp);
}

TEST_CASE_METHOD(Fixture, "the own mark survives a restart") {
  StateStore first = store();
  REQUIRE(first.save(kLate));
  StateStore second = store();
  CHECK(second.load().empty());
  CHECK(second.mark() == kLate);
}

TEST_CASE_METHOD(Fixture, "what is known of a peer survives a killed daemon") {
  StateStore first = store();
  const StoredPeer peer{kEarly, crypto::Suite::Aes256Gcm,
                        Endpoint::parse("[2001:db8::1]:51820").value()};
  REQUIRE(first.setPeer(key, peer));
  StateStore second = store();
  CHECK(second.load().empty());
  CHECK(second.peer(key).greatestTimestamp == kEarly);
  CHECK(second.peer(key).suite == crypto::Suite::Aes256Gcm);
  CHECK(second.peer(key).endpoint == peer.endpoint);
}

TEST_CASE_METHOD(Fixture, "the durable file is written at most every ten minutes") {
  StateStore first = store();
  REQUIRE(first.setPeer(key, {kEarly, {}, {}}));
  clock.time += 9min;
  REQUIRE(first.setPeer(key, {kLate, {}, {}}));
  std::filesystem::remove(root / "runtime" / "peers.json");  // a reboot
  StateStore afterReboot = store();
  afterReboot.load();
  CHECK(afterReboot.peer(key).greatestTimestamp == kEarly);

  clock.time += 2min;
  REQUIRE(first.setPeer(key, {kLate, {}, {}}));
  std::filesystem::remove(root / "runtime" / "peers.json");
  StateStore later = store();
  later.load();
  CHECK(later.peer(key).greatestTimestamp == kLate);
}

TEST_CASE_METHOD(Fixture, "of two files the greater timestamp counts") {
  StateStore first = store();
  REQUIRE(first.setPeer(key, {kLate, {}, {}}));
  const std::string late = readFile(root / "durable" / "peers.json").value();
  clock.time += 1min;
  REQUIRE(first.setPeer(key, {kEarly, {}, {}}));
  REQUIRE(readFile(root / "durable" / "peers.json").value() == late);
  StateStore second = store();
  second.load();
  CHECK(second.peer(key).greatestTimestamp == kLate);
}

TEST_CASE_METHOD(Fixture, "damaged files are named and left out") {
  const auto text = GENERATE(as<std::string>{}, "", "{", "[]", "{\"x\":{}}", "12", "\xff\xfe",
                             R"({"AQIDAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=":7})");
  std::ofstream(root / "durable" / "peers.json") << text;
  std::ofstream(root / "durable" / "timestamp") << "soon";
  StateStore damaged = store();
  const auto warnings = damaged.load();
  REQUIRE(warnings.size() >= 1);
  CHECK_THAT(warnings[0], Catch::Contains("timestamp is damaged"));
  CHECK_FALSE(damaged.mark());
  CHECK(damaged.setPeer(key, {kEarly, {}, {}}));
}

TEST_CASE_METHOD(Fixture, "state files are for their owner only") {
  StateStore first = store();
  REQUIRE(first.save(kLate));
  struct stat status {};
  REQUIRE(::stat((root / "durable" / "timestamp").c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
}

}  // namespace adit::control

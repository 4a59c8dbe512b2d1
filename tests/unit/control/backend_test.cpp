// Which data plane is taken, and what happens to an interface that is there already.
#include "control/backend.hpp"

#include <catch2/catch.hpp>
#include <cerrno>

#include "dataplane/kernel_fake.hpp"
#include "fake_kernel.hpp"

using namespace adit;
using namespace adit::control;
using namespace std::chrono_literals;
using Catch::Contains;
using config::Backend;

namespace {

/// Does nothing but have a name.
class IdlePlane final : public dataplane::DataPlane {
 public:
  void destroyInterface() override {}
  [[nodiscard]] std::string_view name() const override { return "userspace"; }
  [[nodiscard]] std::array<std::uint32_t, ADIT_SUITE_COUNT> suiteSpeeds() const override {
    return {};
  }
  Result<void> configure(const dataplane::DeviceSettings&) override { return {}; }
  Result<void> setPeer(const dataplane::PeerSettings&) override { return {}; }
  Result<void> removePeer(noise::PeerId) override { return {}; }
  Result<void> setEndpoint(noise::PeerId, const Endpoint&,
                           const std::optional<LocalAddress>&) override {
    return {};
  }
  Result<void> installKeys(noise::PeerId, const crypto::PublicKey&,
                           const noise::SessionKeys&) override {
    return {};
  }
  Result<void> dropKeys(noise::PeerId) override { return {}; }
  void dropStaged(noise::PeerId) override {}
  void sendControl(noise::PeerId, std::span<const std::uint8_t>) override {}
  Result<void> sendHandshake(std::span<const std::uint8_t>, const Endpoint&,
                             const std::optional<LocalAddress>&) override {
    return {};
  }
  [[nodiscard]] std::vector<dataplane::PeerStats> peerStats() const override { return {}; }
  [[nodiscard]] dataplane::DeviceStats deviceStats() const override { return {}; }
  [[nodiscard]] int eventDescriptor() const override { return -1; }
  void dispatch(dataplane::EventSink&) override {}
};

class RefusingPrivileged final : public FakePrivileged {
 public:
  Error refusal{"modprobe says no", ENOENT};
  Result<void> loadModule() override { return tl::unexpected(refusal); }
};

struct Fixture {
  std::shared_ptr<test::FakeModule> module = std::make_shared<test::FakeModule>();
  test::FakeLinks links;
  RefusingPrivileged privileged;
  SystemClock clock;
  bool moduleThere = true;
  int channels = 0;
  int userPlanes = 0;
  std::optional<Error> userRefusal;
  BackendRequest request{.wanted = Backend::Auto, .name = "adit0", .mtu = 1420, .adopted = false};

  Fixture() {
    module->device = test::nest(ADIT_A_DEVICE, test::text(ADIT_A_DEVICE_MODULE, "0.1.0"));
  }

  Result<ChosenBackend> open() {
    return openBackend(request,
                       {.clock = clock,
                        .privileged = privileged,
                        .routing = links,
                        .openChannel = [this]() -> Result<std::unique_ptr<netlink::GenlChannel>> {
                          ++channels;
                          if (!moduleThere) return failErrno(ENOENT, "no family");
                          return std::make_unique<test::FakeChannel>(module);
                        },
                        .openUser = [this](const dataplane::user::UserOptions& options)
                            -> Result<std::unique_ptr<dataplane::DataPlane>> {
                          ++userPlanes;
                          CHECK(options.interface == "adit0");
                          CHECK(options.mtu == 1420);
                          if (userRefusal) return tl::unexpected(*userRefusal);
                          return std::make_unique<IdlePlane>();
                        },
                        .busyInterval = 0ms});
  }
  void leave(const std::string& kind, bool running = false) {
    netlink::Link link;
    link.index = 7;
    link.name = "adit0";
    link.kind = kind;
    link.running = running;
    links.list = {link};
  }
};

}  // namespace

TEST_CASE_METHOD(Fixture, "backend auto takes the kernel where adit.ko is, and says which") {
  const auto chosen = open();
  REQUIRE(chosen);
  CHECK(chosen->dataPlane->name() == "kernel");
  CHECK(chosen->reason == "adit.ko is loaded, version 0.1.0");
  CHECK(userPlanes == 0);
}

TEST_CASE_METHOD(Fixture, "backend auto falls back to user space, and says why") {
  moduleThere = false;
  const auto chosen = open();
  REQUIRE(chosen);
  CHECK(chosen->dataPlane->name() == "userspace");
  CHECK_THAT(chosen->reason, Contains("adit.ko is not installed for Linux "));
  moduleThere = true;
  links.createError = {"create interface adit0 of type adit: out of memory", ENOMEM};
  const auto broken = open();
  REQUIRE(broken);
  CHECK(broken->dataPlane->name() == "userspace");
  CHECK_THAT(broken->reason, Contains("out of memory"));
}

TEST_CASE_METHOD(Fixture, "backend auto without either says what both lack") {
  moduleThere = false;
  userRefusal = Error{"/dev/net/tun: there is no TUN device", ENOENT};
  const auto chosen = open();
  REQUIRE_FALSE(chosen);
  CHECK_THAT(chosen.error().message,
             Catch::StartsWith("/dev/net/tun: there is no TUN device (and no kernel data plane: "
                               "adit.ko is not installed for Linux "));
}

TEST_CASE_METHOD(Fixture, "backend userspace does not look at the module") {
  request.wanted = Backend::Userspace;
  const auto chosen = open();
  REQUIRE(chosen);
  CHECK(chosen->dataPlane->name() == "userspace");
  CHECK(chosen->reason == "Backend = userspace");
  CHECK(channels == 0);
}

TEST_CASE_METHOD(Fixture, "backend kernel without adit.ko is one line with the remedy") {
  request.wanted = Backend::Kernel;
  moduleThere = false;
  privileged.refusal = {"words", ENOEXEC};
  const auto chosen = open();
  REQUIRE_FALSE(chosen);
  CHECK_THAT(chosen.error().message,
             Catch::StartsWith("Backend = kernel: adit.ko was built for another kernel") &&
                 Contains("dkms autoinstall") && Contains("Backend = auto") && !Contains("\n"));
  CHECK(userPlanes == 0);
  moduleThere = true;
  const auto good = open();
  REQUIRE(good);
  CHECK(good->reason == "Backend = kernel, adit.ko 0.1.0");
}

TEST_CASE_METHOD(Fixture, "what a killed daemon left of the other data plane is replaced") {
  request.adopted = true;
  leave("tun");
  REQUIRE(open());
  REQUIRE(links.list.size() == 1);
  CHECK(links.list[0].kind == "adit");
  request.wanted = Backend::Userspace;
  REQUIRE(open());
  CHECK(links.list.empty());
  CHECK(userPlanes == 1);
}

TEST_CASE_METHOD(Fixture, "what a killed daemon left of the same data plane is taken over") {
  request.adopted = true;
  leave("adit");
  REQUIRE(open());
  CHECK(links.list[0].index == 7);
  leave("tun");
  request.wanted = Backend::Userspace;
  REQUIRE(open());
  CHECK(links.list[0].index == 7);
}

TEST_CASE_METHOD(Fixture, "an interface that somebody uses is not replaced") {
  request.adopted = true;
  leave("tun", true);
  const auto running = open();
  REQUIRE_FALSE(running);
  CHECK(running.error().code == EBUSY);
  CHECK(running.error().message == "interface adit0 is in use by another program");
  CHECK(links.list[0].kind == "tun");
  leave("adit");
  request.wanted = Backend::Userspace;
  module->device = test::nest(ADIT_A_DEVICE, test::u32(ADIT_A_DEVICE_CLAIMANT, 42));
  CHECK(open().error().code == EBUSY);
  CHECK(links.list[0].kind == "adit");
}

TEST_CASE_METHOD(Fixture, "a claim that outlives its daemon for a moment is waited for") {
  request.adopted = true;
  leave("adit");
  for (int i = 0; i < 10; ++i) {
    module->refusals[ADIT_CMD_SET_DEVICE].push_back({"claimed", EBUSY});
  }
  const auto chosen = open();
  REQUIRE(chosen);
  CHECK(chosen->dataPlane->name() == "kernel");
  for (int i = 0; i < 1000; ++i) {
    module->refusals[ADIT_CMD_SET_DEVICE].push_back({"claimed", EBUSY});
  }
  const auto claimed = open();
  REQUIRE_FALSE(claimed);
  CHECK_THAT(claimed.error().message, Contains("adit0") && Contains("in use"));
  // Not a case for the other data plane.
  CHECK(userPlanes == 0);
}

TEST_CASE_METHOD(Fixture, "a foreign interface of that name is an error that names it") {
  for (const auto wanted : {Backend::Auto, Backend::Kernel, Backend::Userspace}) {
    for (const bool adopted : {false, true}) {
      request.wanted = wanted;
      request.adopted = adopted;
      leave("veth");
      const auto chosen = open();
      REQUIRE_FALSE(chosen);
      CHECK(chosen.error().code == EEXIST);
      CHECK_THAT(chosen.error().message,
                 Contains("adit0") && Contains("veth") && Contains("ip link delete adit0"));
      CHECK(links.list.size() == 1);
    }
  }
  // A TUN device that no daemon of ours has left.
  request.wanted = Backend::Auto;
  request.adopted = false;
  leave("tun");
  CHECK(open().error().code == EEXIST);
  CHECK(links.list.size() == 1);
}

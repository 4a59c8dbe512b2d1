// Why adit.ko cannot be had, and what a person can do about it.
#include "control/kernel_module.hpp"

#include <catch2/catch.hpp>
#include <cerrno>
#include <filesystem>
#include <fstream>

#include "control/module_loader.hpp"
#include "dataplane/kernel/kernel.hpp"
#include "dataplane/kernel_fake.hpp"
#include "fake_kernel.hpp"
#include "privileged_fixture.hpp"

using namespace adit;
using namespace adit::control;
using Catch::Contains;

namespace {

class LoadingPrivileged final : public FakePrivileged {
 public:
  int loads = 0;
  std::optional<Error> refusal;
  Result<void> loadModule() override {
    ++loads;
    if (refusal) return tl::unexpected(*refusal);
    return {};
  }
};

struct Module {
  LoadingPrivileged privileged;
  /// The outcome of each attempt; 0 is success.
  std::deque<Error> attempts;

  tl::expected<std::unique_ptr<netlink::GenlChannel>, ModuleUnavailable> open() {
    return openKernelModule(
        [this]() -> Result<std::unique_ptr<netlink::GenlChannel>> {
          Error next;
          if (!attempts.empty()) {
            next = attempts.front();
            attempts.pop_front();
          }
          if (next.code != 0) return tl::unexpected(next);
          return std::make_unique<test::FakeChannel>(std::make_shared<test::FakeModule>());
        },
        privileged);
  }
};

}  // namespace

TEST_CASE("a module that is there is not loaded") {
  Module module;
  CHECK(module.open());
  CHECK(module.privileged.loads == 0);
}

TEST_CASE("a module that is not there is loaded once") {
  Module module;
  module.attempts = {{"none", ENOENT}};
  CHECK(module.open());
  CHECK(module.privileged.loads == 1);
  module.attempts = {{"none", ENOENT}, {"none", ENOENT}};
  const auto invisible = module.open();
  REQUIRE_FALSE(invisible);
  CHECK_THAT(invisible.error().reason, Contains("network namespace"));
  module.attempts = {{"none", ENOENT}};
  module.privileged.refusal = Error{"words", ENOEXEC};
  const auto refused = module.open();
  REQUIRE_FALSE(refused);
  CHECK_THAT(refused.error().reason, Contains("built for another kernel"));
}

TEST_CASE("a module of another version or without rights to use it is not loaded again") {
  Module module;
  module.attempts = {dataplane::kernel::versionMismatch(9)};
  const auto version = module.open();
  REQUIRE_FALSE(version);
  CHECK_THAT(version.error().reason, Contains("version 9") && Contains("too new"));
  CHECK_THAT(version.error().remedy, Contains("same release"));
  module.attempts = {{"no", EPERM}};
  const auto rights = module.open();
  REQUIRE_FALSE(rights);
  CHECK_THAT(rights.error().reason, Contains("CAP_NET_ADMIN"));
  module.attempts = {{"out of memory", ENOMEM}};
  CHECK(module.open().error().reason == "out of memory");
  CHECK(module.privileged.loads == 0);
}

TEST_CASE("each cause of a failed load has its own words and remedy") {
  const auto explained = [](int code) { return explainLoadFailure({"words", code}, "6.12.1"); };
  CHECK(explained(ENOENT).reason == "adit.ko is not installed for Linux 6.12.1");
  CHECK_THAT(explained(EKEYREJECTED).reason, Contains("Secure Boot"));
  CHECK_THAT(explained(EKEYREJECTED).remedy, Contains("mokutil"));
  CHECK_THAT(explained(EPERM).reason, Contains("lockdown"));
  CHECK_THAT(explained(EACCES).reason, Contains("CAP_SYS_MODULE"));
  CHECK_THAT(explained(EACCES).remedy, Contains("modprobe adit"));
  CHECK(explained(ENOEXEC).reason == "adit.ko was built for another kernel than Linux 6.12.1");
  CHECK(explained(0).reason == "words");
  std::set<std::string> reasons;
  for (const int code : {ENOENT, EKEYREJECTED, EPERM, EACCES, ENOEXEC, 0}) {
    CHECK_FALSE(explained(code).remedy.empty());
    reasons.insert(explained(code).reason);
  }
  CHECK(reasons.size() == 6);
}

TEST_CASE("what modprobe prints is told apart, of kmod and of busybox") {
  const auto code = [](std::string_view words) { return moduleErrorCode(words, true); };
  CHECK(code("modprobe: FATAL: Module adit not found in directory /lib/modules/6.12.1") == ENOENT);
  CHECK(code("modprobe: module adit not found in modules.dep") == ENOENT);
  CHECK(code("modprobe: can't change directory to '/lib/modules': No such file or directory") ==
        ENOENT);
  CHECK(code("modprobe: ERROR: could not insert 'adit': Key was rejected by service") ==
        EKEYREJECTED);
  CHECK(code("modprobe: ERROR: could not insert 'adit': Required key not available") ==
        EKEYREJECTED);
  CHECK(code("modprobe: ERROR: could not insert 'adit': Exec format error") == ENOEXEC);
  CHECK(code("modprobe: can't load module adit (extra/adit.ko): invalid module format") == ENOEXEC);
  CHECK(code("modprobe: ERROR: could not insert 'adit': Unknown symbol in module, or unknown "
             "parameter (see dmesg)") == ENOEXEC);
  CHECK(code("modprobe: ERROR: could not insert 'adit': Operation not permitted") == EPERM);
  CHECK(moduleErrorCode("modprobe: ERROR: could not insert 'adit': Operation not permitted",
                        false) == EACCES);
  CHECK(code("modprobe: ERROR: could not insert 'adit': Invalid argument") == 0);
  CHECK(code("") == 0);
}

TEST_CASE("what is in the way of adit.ko is known without rights") {
  namespace fs = std::filesystem;
  const ScratchDirectory scratch;
  const fs::path& root = scratch.path();
  const auto write = [&](const fs::path& path, const std::string& text) {
    fs::create_directories((root / path).parent_path());
    std::ofstream(root / path) << text;
  };
  const auto obstacle = [&] { return kernelModuleObstacle("6.1.0-9-test", root); };
  const fs::path modules = "lib/modules/6.1.0-9-test";

  REQUIRE(obstacle());
  CHECK(obstacle()->reason == "adit.ko is not installed for Linux 6.1.0-9-test");
  write(modules / "modules.dep", "kernel/net/other.ko: kernel/adit.ko\nupdates/radit.ko:\n");
  CHECK(obstacle());
  write(modules / "modules.dep", "kernel/net/other.ko:\nupdates/adit.ko.xz: kernel/gcm.ko\n");
  CHECK_FALSE(obstacle());
  write("proc/sys/kernel/modules_disabled", "1\n");
  REQUIRE(obstacle());
  CHECK_THAT(obstacle()->reason, Contains("takes no modules"));
  write("proc/sys/kernel/modules_disabled", "0\n");
  CHECK_FALSE(obstacle());
  // Loaded is loaded, from wherever.
  fs::remove_all(root / modules);
  fs::create_directories(root / "sys/module/adit");
  CHECK_FALSE(obstacle());
}

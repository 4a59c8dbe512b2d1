#include "control/backend.hpp"

#include <cerrno>
#include <chrono>
#include <thread>

#include "dataplane/user/user.hpp"

namespace adit::control {
namespace {

constexpr int kBusyAttempts = 60;
constexpr auto kBusyInterval = std::chrono::milliseconds(50);

}  // namespace

Result<ChosenBackend> openBackend(config::Backend wanted, const std::string& name,
                                  std::uint32_t mtu, const Clock& clock, Privileged& privileged) {
  if (wanted == config::Backend::Kernel) {
    return fail("Backend = kernel: this version of adit has no kernel module; use Backend = auto");
  }
  dataplane::user::UserOptions options;
  options.interface = name;
  options.mtu = mtu;
  options.clock = &clock;
  options.openTun = [&privileged] { return privileged.openTun(); };
  auto dataPlane = dataplane::user::createUserDataPlane(options);
  // The kernel takes a moment to let go of the device of a daemon that was killed, also after the
  // process has gone.
  for (int attempt = 0; attempt < kBusyAttempts && !dataPlane && dataPlane.error().code == EBUSY;
       ++attempt) {
    std::this_thread::sleep_for(kBusyInterval);
    dataPlane = dataplane::user::createUserDataPlane(options);
  }
  if (!dataPlane) {
    return tl::unexpected(dataPlane.error());
  }
  return ChosenBackend{std::move(*dataPlane), wanted == config::Backend::Userspace
                                                  ? "Backend = userspace"
                                                  : "this version of adit has no kernel module"};
}

}  // namespace adit::control

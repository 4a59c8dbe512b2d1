#include "control/backend.hpp"

#include "dataplane/user/user.hpp"

namespace adit::control {

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
  if (!dataPlane) {
    return tl::unexpected(dataPlane.error());
  }
  return ChosenBackend{std::move(*dataPlane), wanted == config::Backend::Userspace
                                                  ? "Backend = userspace"
                                                  : "this version of adit has no kernel module"};
}

}  // namespace adit::control

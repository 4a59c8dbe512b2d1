// Which data plane serves an interface, and why.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "config/model.hpp"
#include "control/privileged.hpp"
#include "dataplane/dataplane.hpp"
#include "dataplane/kernel/kernel.hpp"
#include "dataplane/user/user.hpp"
#include "netlink/route.hpp"
#include "util/clock.hpp"
#include "util/result.hpp"

namespace adit::control {

struct ChosenBackend {
  std::unique_ptr<dataplane::DataPlane> dataPlane;
  /// For a person: "adit.ko is not installed for Linux 6.12.1".
  std::string reason;
};

/// What the choice works with; all of it must outlive the data plane. Tests put other ways to open
/// a data plane here.
struct BackendParts {
  const Clock& clock;
  Privileged& privileged;
  netlink::Routing& routing;
  std::function<Result<std::unique_ptr<netlink::GenlChannel>>()> openChannel =
      dataplane::kernel::openChannel;
  std::function<Result<std::unique_ptr<dataplane::DataPlane>>(const dataplane::user::UserOptions&)>
      openUser = dataplane::user::createUserDataPlane;
  /// Between two looks at an interface that is in use; there are sixty.
  std::chrono::milliseconds busyInterval{50};
};

struct BackendRequest {
  config::Backend wanted = config::Backend::Auto;
  /// Of the interface.
  std::string name;
  /// Of an interface that is created.
  std::uint32_t mtu = 0;
  /// What is there under this name is ours, left by a daemon that was killed.
  bool adopted = false;
};

/// Creates the interface, or takes over the one that a killed daemon left; one of the other data
/// plane is replaced. An interface of this name that is not ours is an error that names it, as is
/// one that another program uses.
Result<ChosenBackend> openBackend(const BackendRequest& request, const BackendParts& parts);

}  // namespace adit::control

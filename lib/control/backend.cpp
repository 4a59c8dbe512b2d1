#include "control/backend.hpp"

#include <cerrno>
#include <thread>

#include "control/kernel_module.hpp"

namespace adit::control {
namespace {

constexpr int kBusyAttempts = 60;
constexpr std::string_view kTunKind = "tun";

using DataPlaneResult = Result<std::unique_ptr<dataplane::DataPlane>>;
using Channel = std::unique_ptr<netlink::GenlChannel>;

tl::unexpected<Error> foreign(const netlink::Link& link) {
  if (link.kind.empty()) {
    return tl::unexpected(Error{fmt::format("{0} is an interface of this machine, not a tunnel: "
                                            "choose another name for the file {0}.conf",
                                            link.name),
                                EEXIST});
  }
  return tl::unexpected(
      Error{fmt::format("there is an interface {} already, of type {}, that is not ours: remove it "
                        "(ip link delete {}) or choose another name",
                        link.name, link.kind, link.name),
            EEXIST});
}

class Choice {
 public:
  Choice(const BackendRequest& request, const BackendParts& parts)
      : request_(request), parts_(parts) {}

  Result<ChosenBackend> run() {
    if (request_.wanted == config::Backend::Userspace) {
      return userspace("Backend = userspace");
    }
    auto channel = openKernelModule(parts_.openChannel, parts_.privileged);
    if (!channel) {
      return without(channel.error());
    }
    if (auto cleared = clear(dataplane::kernel::kLinkKind); !cleared) {
      return tl::unexpected(cleared.error());
    }
    auto opened = kernel(std::move(*channel));
    // Another program's interface is in the way of either data plane.
    if (!opened && opened.error().code != EBUSY && opened.error().code != EEXIST) {
      return without({opened.error().message, "look into the kernel's log (dmesg)"});
    }
    return opened;
  }

 private:
  /// The kernel takes a moment to let go of what a daemon that was killed used, also after the
  /// process has gone.
  template <typename Attempt>
  auto whileBusy(Attempt attempt) {
    auto result = attempt();
    for (int i = 0; i < kBusyAttempts && !result && result.error().code == EBUSY; ++i) {
      std::this_thread::sleep_for(parts_.busyInterval);
      result = attempt();
    }
    return result;
  }

  Result<ChosenBackend> without(const ModuleUnavailable& why) {
    if (request_.wanted == config::Backend::Kernel) {
      return fail("Backend = kernel: {}: {}, or use Backend = auto", why.reason, why.remedy);
    }
    auto opened = userspace(why.reason);
    if (!opened) {
      return tl::unexpected(Error{
          fmt::format("{} (and no kernel data plane: {})", opened.error().message, why.reason),
          opened.error().code});
    }
    return opened;
  }

  Result<ChosenBackend> kernel(Channel first) {
    const dataplane::kernel::KernelOptions options{
        .interface = request_.name, .mtu = request_.mtu, .clock = &parts_.clock};
    auto dataPlane = whileBusy([&]() -> DataPlaneResult {
      Channel channel = std::move(first);
      if (!channel) {
        auto again = parts_.openChannel();
        if (!again) {
          return tl::unexpected(again.error());
        }
        channel = std::move(*again);
      }
      return dataplane::kernel::createKernelDataPlane(std::move(channel), parts_.routing, options);
    });
    if (!dataPlane) {
      return tl::unexpected(dataPlane.error());
    }
    const std::string_view version = (*dataPlane)->version();
    std::string reason = request_.wanted == config::Backend::Kernel ? "Backend = kernel, adit.ko"
                                                                    : "adit.ko is loaded, version";
    reason += fmt::format(" {}", version.empty() ? "unknown" : version);
    return ChosenBackend{std::move(*dataPlane), std::move(reason)};
  }

  Result<ChosenBackend> userspace(std::string reason) {
    if (auto cleared = clear(kTunKind); !cleared) {
      return tl::unexpected(cleared.error());
    }
    dataplane::user::UserOptions options;
    options.interface = request_.name;
    options.mtu = request_.mtu;
    options.clock = &parts_.clock;
    options.openTun = [&privileged = parts_.privileged] { return privileged.openTun(); };
    auto dataPlane = whileBusy([&] { return parts_.openUser(options); });
    if (!dataPlane) {
      return tl::unexpected(dataPlane.error());
    }
    return ChosenBackend{std::move(*dataPlane), std::move(reason)};
  }

  /// Removes what a killed daemon left of the other data plane; what has the kind `keep` is for
  /// the data plane to take over.
  Result<void> clear(std::string_view keep) {
    const auto link = parts_.routing.findLink(request_.name);
    if (!link) {
      return tl::unexpected(link.error());
    }
    if (!*link || (*link)->kind == keep) {
      return {};
    }
    const bool ours = (*link)->kind == kTunKind || (*link)->kind == dataplane::kernel::kLinkKind;
    if (!ours || !request_.adopted) {
      return foreign(**link);
    }
    if (auto free = whileBusy([&] { return checkUnused(); }); !free) {
      return free;
    }
    return parts_.routing.deleteLink((*link)->index);
  }

  /// EBUSY while somebody moves packets of the interface.
  Result<void> checkUnused() {
    const auto link = parts_.routing.findLink(request_.name);
    if (!link) {
      return tl::unexpected(link.error());
    }
    if (*link && isUsed(**link)) {
      return tl::unexpected(
          Error{fmt::format("interface {} is in use by another program", request_.name), EBUSY});
    }
    return {};
  }

  bool isUsed(const netlink::Link& link) {
    // A TUN device has a carrier only while a queue of it is open.
    if (link.kind == kTunKind) {
      return link.running;
    }
    const auto channel = parts_.openChannel();
    const auto claimed =
        channel ? dataplane::kernel::isClaimed(**channel, link.index) : Result<bool>(false);
    return claimed && *claimed;
  }

  const BackendRequest& request_;
  const BackendParts& parts_;
};

}  // namespace

Result<ChosenBackend> openBackend(const BackendRequest& request, const BackendParts& parts) {
  return Choice(request, parts).run();
}

}  // namespace adit::control

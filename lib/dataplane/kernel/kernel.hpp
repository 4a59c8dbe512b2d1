// The front door of the kernel data plane: an interface of kind "adit", moved by adit.ko and
// spoken to over generic netlink (kmod/uapi/adit.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "dataplane/dataplane.hpp"
#include "netlink/genl.hpp"
#include "netlink/route.hpp"

namespace adit::dataplane::kernel {

/// The family's versions that this side understands. The version rises when something changes its
/// meaning, and each side serves the version before its own, so that module and daemon can be
/// upgraded one after the other.
extern const std::uint32_t kOldestVersion;
extern const std::uint32_t kNewestVersion;
/// "adit": the name of the family and the kind of its links.
extern const std::string_view kLinkKind;

/// The module's family. ENOENT: adit.ko is not loaded, and does not load by itself.
/// EPROTONOSUPPORT: its version is not among those above.
Result<std::unique_ptr<netlink::GenlChannel>> openChannel();
/// Says that a version is too old or too new; EPROTONOSUPPORT.
Error versionMismatch(std::uint32_t version);

struct KernelOptions {
  /// Name of the interface, 1 to 15 bytes.
  std::string interface;
  /// Set on an interface that is created; one that is found keeps its own.
  std::uint32_t mtu = 1420;
  /// Must outlive the data plane. Null: the machine's.
  const Clock* clock = nullptr;
};

/// Creates the interface, or takes over the one that a former daemon left, with its peers and
/// their sessions. It outlives the data plane unless destroyInterface() is called. The link goes up
/// with the first configure(), since only then it has a port.
///
/// Errors: EBUSY while another daemon serves the interface; EEXIST for an interface of that name
/// and another kind. `routing` must outlive the data plane.
Result<std::unique_ptr<DataPlane>> createKernelDataPlane(
    std::unique_ptr<netlink::GenlChannel> channel, netlink::Routing& routing,
    const KernelOptions& options);

/// Whether a daemon serves the interface right now.
Result<bool> isClaimed(netlink::GenlChannel& channel, std::uint32_t interface);

}  // namespace adit::dataplane::kernel

// Getting at adit.ko, and saying why that does not work and what would help.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "control/privileged.hpp"
#include "netlink/genl.hpp"
#include "util/result.hpp"

namespace adit::control {

/// For a person: what is in the way, and what to do about it.
struct ModuleUnavailable {
  std::string reason;
  std::string remedy;
};

using OpenChannel = std::function<Result<std::unique_ptr<netlink::GenlChannel>>()>;

/// The module's family; where there is none, `privileged` is asked to load the module first.
tl::expected<std::unique_ptr<netlink::GenlChannel>, ModuleUnavailable> openKernelModule(
    const OpenChannel& open, Privileged& privileged);

/// What an error of Privileged::loadModule() means; `kernel` is the release of the running one.
ModuleUnavailable explainLoadFailure(const Error& error, const std::string& kernel);

/// Whether adit.ko could be had on this machine, found out without rights and without loading it:
/// nothing, or what is in the way for sure. `root` is where proc, sys and lib are.
std::optional<ModuleUnavailable> kernelModuleObstacle(const std::string& kernel,
                                                      const std::filesystem::path& root = "/");
/// The release of the running kernel.
std::string kernelRelease();

}  // namespace adit::control

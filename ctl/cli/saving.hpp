// What `adit save` writes: a file's configuration with the running state in it.
#pragma once

#include <string>
#include <vector>

#include "config/model.hpp"
#include "control/control_protocol.hpp"
#include "util/result.hpp"

namespace adit::cli {

/// `loaded` with what was changed since: private key, port, mark and peers of `running`, which must
/// have its keys. An endpoint is the configured one, never where a peer was seen. `remarks` gets
/// what stays out of the file although it may have changed.
Result<config::Config> withRunningState(const config::Config& loaded,
                                        const control::DeviceView& running,
                                        std::vector<std::string>& remarks);

}  // namespace adit::cli

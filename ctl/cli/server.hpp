// This machine as devices that join it see it.
#pragma once

#include <optional>
#include <string>

#include "config/model.hpp"
#include "control/control_protocol.hpp"
#include "control/paths.hpp"
#include "util/result.hpp"

namespace adit::cli {

struct Server {
  control::NamedConfig named;
  config::Config config;
  /// What the daemon says, where it is up and may be asked.
  std::optional<control::DeviceView> view;

  /// Of the interface, or of the only one where it is empty.
  static Result<Server> find(const std::string& interface);

  /// Of the running interface, else of the file.
  [[nodiscard]] Result<crypto::PublicKey> publicKey() const;
  /// `given`, a HOST or HOST:PORT; else PublicEndpoint of the file, or the public interface's own.
  [[nodiscard]] Result<config::EndpointName> endpoint(const std::string& given) const;
};

}  // namespace adit::cli

// The two ends of the privileged interface: a Privileged that asks the other process, and what
// answers it there.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <span>

#include "control/privileged.hpp"
#include "control/privileged_bytes.hpp"
#include "control/privileged_channel.hpp"
#include "control/privileged_codec.hpp"
#include "util/unique_fd.hpp"

namespace adit::control {

/// The worker's end. Any thread may call it; calls wait for one another.
class RemotePrivileged final : public Privileged {
 public:
  explicit RemotePrivileged(UniqueFd socket) : socket_(std::move(socket)) {}

  /// Fails as a configuration with one error when the other process is gone.
  config::Outcome loadConfig() override;
  Result<void> runHooks(HookKind kind) override;
  Result<std::string> writeSysctl(const std::string& path, const std::string& value) override;
  Result<void> writeTuned(const std::string& path, const std::string& value) override;
  Result<enrol::Verdict> completeInvitation(const crypto::PublicKey& enrolment,
                                            const crypto::PublicKey& joining) override;
  Result<void> setDns(const std::vector<IpAddress>& servers,
                      const std::vector<std::string>& search) override;
  Result<void> loadModule() override;
  Result<UniqueFd> openTun() override;

 private:
  /// The answer without its status byte, or the error that it is.
  Result<Answer> call(Encoder request);

  std::mutex mutex_;
  UniqueFd socket_;
};

/// The end that kept root. Whatever comes, it does what Privileged says or refuses, and says so in
/// the log.
class PrivilegedServer {
 public:
  /// `loaded`, when given, answers the first request for the configuration.
  PrivilegedServer(Privileged& privileged, std::optional<config::Outcome> loaded)
      : privileged_(privileged), loaded_(std::move(loaded)) {}

  /// Answers until the worker closes its end. An error means that it does not listen.
  Result<void> serve(int socket);
  Answer handle(std::span<const std::uint8_t> request);

 private:
  Answer loadConfig();
  Answer writeSysctl(Decoder& request);
  Answer writeTuned(Decoder& request);
  Answer completeInvitation(Decoder& request);
  Answer setDns(Decoder& request);
  Answer runHooks(Decoder& request);
  Answer openTun();

  Privileged& privileged_;
  std::optional<config::Outcome> loaded_;
};

}  // namespace adit::control

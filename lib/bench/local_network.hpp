// What `adit bench --local` measures: three machines on this one, and the tunnel between two of
// them, by the programs of this build.
//
//     client  eth0 198.51.100.10 ── 198.51.100.1 eth0  server  eth1 203.0.113.9
//                                              tcp/5201 → nas         │
//                                                     203.0.113.2 eth0  nas, iperf3
//
// Inside the tunnel the server is 10.10.0.1 and the nas 10.10.0.2. All three layers end at the same
// iperf3: from the server over the link, from the server through the tunnel, and from the client
// through the mapped port.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "bench/host.hpp"
#include "bench/runner.hpp"

namespace adit::bench {

struct LocalOptions {
  std::filesystem::path adit;
  std::filesystem::path daemon;
  /// Values of Backend and Cipher in the configuration.
  std::string backend = "auto";
  std::string cipher = "auto";
};

class LocalNetwork {
 public:
  /// Needs root, ip(8) and iperf3(1). Ends early when interrupted.
  static Result<LocalNetwork> make(const LocalOptions& options, const Interrupt& interrupt);

  [[nodiscard]] Targets targets() const;
  /// What `adit status --json` of the server says, as text.
  [[nodiscard]] Result<std::string> status(const Interrupt& interrupt) const;
  static constexpr const char* kInterface = "adit0";

 private:
  LocalNetwork(LocalOptions options, Host client, Host server, Host nas);
  Result<void> connect(const Interrupt& interrupt) const;
  Result<void> bringUp(const Interrupt& interrupt) const;
  Result<void> waitForHandshake(const Interrupt& interrupt) const;
  Result<void> serve(const Interrupt& interrupt);
  [[nodiscard]] Result<std::string> adit(const Host& host, std::vector<std::string> arguments,
                                         const Interrupt& interrupt) const;

  LocalOptions options_;
  Host client_;
  Host server_;
  Host nas_;
  std::optional<Child> iperf_;
};

}  // namespace adit::bench

// Ctrl-C and the like, as something that a wait can include.
#pragma once

#include <array>
#include <csignal>

#include "util/unique_fd.hpp"

namespace adit::bench {

/// While it lives, SIGINT, SIGTERM and SIGHUP do not end the program but are remembered. One at a
/// time.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  /// The first signal that came; 0 for none.
  [[nodiscard]] int signal() const;
  /// Readable once a signal came, and from then on.
  [[nodiscard]] int descriptor() const { return event_.get(); }

 private:
  static constexpr std::array kSignals{SIGINT, SIGTERM, SIGHUP};
  UniqueFd event_;
  std::array<struct sigaction, kSignals.size()> before_{};
};

}  // namespace adit::bench

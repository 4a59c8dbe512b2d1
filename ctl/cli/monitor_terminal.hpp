// A terminal that is drawn on: raw keys, the alternate screen, its size; as before when this goes.
#pragma once

#include <termios.h>

#include <chrono>
#include <string>
#include <vector>

#include "cli/monitor_text.hpp"
#include "util/result.hpp"
#include "util/unique_fd.hpp"

namespace adit::cli {

class Terminal {
 public:
  /// Standard input and output must be one. Signals that end a program are held back, and are
  /// events from now on.
  static Result<Terminal> open();
  ~Terminal();
  Terminal(Terminal&& other) noexcept;
  Terminal& operator=(Terminal&&) = delete;
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  enum class Event : std::uint8_t { Timeout, Resized, Quit };
  /// Until a key, a signal, or the time is over. `q`, Ctrl-C and a terminal that has gone are Quit.
  Event wait(std::chrono::milliseconds patience);
  /// As the terminal says; 80 x 24 where it does not.
  [[nodiscard]] MonitorSize size() const;
  /// False when the terminal has gone.
  bool draw(const std::vector<std::string>& lines);

 private:
  Terminal(UniqueFd signals, const termios& before)
      : signals_(std::move(signals)), before_(before) {}

  UniqueFd signals_;
  termios before_;
  bool ours_ = true;
};

}  // namespace adit::cli

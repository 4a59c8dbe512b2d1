#include "cli/monitor_terminal.hpp"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <string_view>
#include <utility>

namespace adit::cli {
namespace {

/// ECMA-48 and xterm: the alternate screen and the cursor.
constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l";
constexpr std::string_view kLeave = "\x1b[?25h\x1b[?1049l";
constexpr std::string_view kHome = "\x1b[H";
constexpr std::string_view kClearToEndOfLine = "\x1b[K";
constexpr std::string_view kClearBelow = "\x1b[J";
constexpr char kControlC = 3;

bool writeAll(std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(STDOUT_FILENO, text.data(), text.size());
    if (count < 0 && errno != EINTR) return false;
    text.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  }
  return true;
}

sigset_t signalsOfInterest() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH}) {
    sigaddset(&signals, number);
  }
  return signals;
}

}  // namespace

Result<Terminal> Terminal::open() {
  termios before{};
  if (::tcgetattr(STDIN_FILENO, &before) != 0) return failErrno(errno, "the terminal");
  const sigset_t signals = signalsOfInterest();
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);
  UniqueFd descriptor(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!descriptor) return failErrno(errno, "signalfd");
  termios raw = before;
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  raw.c_cc[VMIN] = 0;
  raw.c_cc[VTIME] = 0;
  if (::tcsetattr(STDIN_FILENO, TCSANOW, &raw) != 0) return failErrno(errno, "the terminal");
  Terminal terminal(std::move(descriptor), before);
  writeAll(kEnter);
  return terminal;
}

Terminal::Terminal(Terminal&& other) noexcept
    : signals_(std::move(other.signals_)),
      before_(other.before_),
      ours_(std::exchange(other.ours_, false)) {}

Terminal::~Terminal() {
  if (!ours_) return;
  writeAll(kLeave);
  ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  const sigset_t signals = signalsOfInterest();
  ::sigprocmask(SIG_UNBLOCK, &signals, nullptr);
}

Terminal::Event Terminal::wait(std::chrono::milliseconds patience) {
  std::array<pollfd, 2> ready{{{STDIN_FILENO, POLLIN, 0}, {signals_.get(), POLLIN, 0}}};
  if (::poll(ready.data(), ready.size(), static_cast<int>(patience.count())) <= 0) {
    return Event::Timeout;
  }
  if (ready[1].revents != 0) {
    signalfd_siginfo info{};
    if (::read(signals_.get(), &info, sizeof(info)) != static_cast<ssize_t>(sizeof(info))) {
      return Event::Timeout;
    }
    return info.ssi_signo == SIGWINCH ? Event::Resized : Event::Quit;
  }
  char key = 0;
  const ssize_t count = ::read(STDIN_FILENO, &key, 1);
  if (count <= 0) return Event::Quit;
  return key == 'q' || key == 'Q' || key == kControlC ? Event::Quit : Event::Resized;
}

MonitorSize Terminal::size() const {
  winsize window{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_col == 0 ||
      window.ws_row == 0) {
    return {};
  }
  return {window.ws_col, window.ws_row};
}

bool Terminal::draw(const std::vector<std::string>& lines) {
  // One write, so that nothing flickers: old text is overwritten and not cleared first.
  std::string frame(kHome);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    frame += lines[i];
    frame += kClearToEndOfLine;
    // The last line of a full screen must not scroll it.
    if (i + 1 < lines.size()) frame += '\n';
  }
  frame += kClearBelow;
  return writeAll(frame);
}

}  // namespace adit::cli

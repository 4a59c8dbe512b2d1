#include "start_report.hpp"

#include <spdlog/spdlog.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>

namespace adit::daemon {
namespace {

constexpr char kReady = '+';
constexpr char kFailed = '-';
/// Ends a message: the end of the pipe does not, since more than one process holds its writer.
constexpr char kEnd = '\0';

void printLines(const std::string& text) {
  fmt::print(stderr, "{}\n", text);
}

}  // namespace

void StartPipe::send(char verdict, const std::string& text) {
  const std::string message = verdict + text + kEnd;
  // The reader may have been interrupted; the daemon goes on without it.
  [[maybe_unused]] const ssize_t sent = ::write(writer_.get(), message.data(), message.size());
  writer_.reset();
}

void StartPipe::ready(const std::vector<std::string>& remarks) {
  std::string text;
  for (const std::string& remark : remarks) {
    text += (text.empty() ? "" : "\n") + remark;
  }
  send(kReady, text);
}

void StartPipe::failed(const std::string& message) {
  spdlog::error("did not start: {}", message);
  send(kFailed, message);
}

int awaitStart(const UniqueFd& reader, const std::string& name, const std::string& logFile) {
  std::string message;
  std::array<char, 4096> buffer;  // NOLINT: filled by read(2)
  while (!message.ends_with(kEnd)) {
    const ssize_t count = ::read(reader.get(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count <= 0) {
      break;
    }
    message.append(buffer.data(), static_cast<std::size_t>(count));
  }
  if (!message.ends_with(kEnd)) {
    printLines(fmt::format("aditd: {} did not start; see {}", name, logFile));
    return 1;
  }
  message.pop_back();
  if (message.size() > 1) {
    printLines(message.substr(1));
  }
  return message.front() == kReady ? 0 : 1;
}

void StartNotice::ready(const std::vector<std::string>&) {
  ::sd_notify(0, "READY=1");
}

void StartNotice::failed(const std::string& message) {
  ::sd_notify(0, "STATUS=failed to start");
  printLines(message);
}

}  // namespace adit::daemon

// What the tests of the privileged operations share.
#pragma once

#include <spdlog/spdlog.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "config/model.hpp"
#include "control/privileged_direct.hpp"
#include "scratch.hpp"

namespace adit::control {

/// An empty directory that other users may pass through.
class ScratchDirectory {
 public:
  ScratchDirectory() {
    path_ = testing::makeScratch("adit-privileged", "/tmp");
    std::filesystem::permissions(path_, std::filesystem::perms{0755});
  }
  ~ScratchDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] std::string file(const std::string& name) const { return path_ / name; }
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name) << text;
  }
  [[nodiscard]] std::string read(const std::string& name) const {
    std::ifstream in(path_ / name);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  /// An executable shell script `bin/NAME`.
  void program(const std::string& name, const std::string& body) const {
    write("bin/" + name, "#!/bin/sh\n" + body + "\n");
    std::filesystem::permissions(path_ / "bin" / name, std::filesystem::perms{0755});
  }

 private:
  std::filesystem::path path_;
};

/// Keeps what is refused on purpose out of the test's output.
class QuietLog {
 public:
  QuietLog() { spdlog::set_level(spdlog::level::off); }
  ~QuietLog() { spdlog::set_level(before_); }
  QuietLog(const QuietLog&) = delete;
  QuietLog& operator=(const QuietLog&) = delete;

 private:
  spdlog::level::level_enum before_ = spdlog::get_level();
};

inline config::Location at(unsigned line, unsigned column = 1) {
  static const auto kFile = std::make_shared<const std::string>("tun7.conf");
  return {kFile, line, column};
}

inline std::vector<config::Hook> hooks(unsigned line, const std::vector<std::string>& commands) {
  std::vector<config::Hook> result;
  for (const std::string& command : commands)
    result.push_back({command, at(line++)});
  return result;
}

/// A system whose configuration file is `config` and whose programs are those of `scratch`.
inline PrivilegedSystem systemWith(const ScratchDirectory& scratch, config::Config config) {
  PrivilegedSystem system;
  system.readConfig = [config = std::move(config)](const std::string&) {
    config::Outcome outcome;
    outcome.config = config;
    return outcome;
  };
  system.sysctlRoot = scratch.file("sys");
  system.tunDevice = scratch.file("tun");
  system.resolvconfOrder = scratch.file("interface-order");
  system.searchPath = scratch.file("bin") + ":/usr/bin:/bin";
  return system;
}

}  // namespace adit::control

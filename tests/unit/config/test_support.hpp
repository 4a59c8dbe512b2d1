// What the tests of lib/config share.
#pragma once

#include <catch2/catch.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "config/parser.hpp"

namespace adit::config::test {

/// Throw-away keys of these tests.
inline const std::string kPrivate = "eEzr4gBYamLpHa1xTdpr3iOduYyNjb/Rxb/4aq+AK0k=";
inline const std::string kOwnPublic = "3DQ7WUdS0tNpVBPpa4EcJnSJfrMUXM0egesOWtEj3Vk=";
inline const std::string kOtherPrivate = "8JZfdAXr+1AfqrWU10sgiG4SNMzM7PbHqjMwM9JdF1o=";
inline const std::string kPeerA = "uKFefA9QZPHpS3rJsOoUQW/bT84pFxZcctTid6s2nmE=";
inline const std::string kPeerB = "rjM41pJyZ0uVpsS0DhvsEY4vC3AcxBPAEeFHxbfmQng=";
inline const std::string kPeerC = "G6cgoy2RgU1SRt09jB1cMhZwRCa1JjDkE1qWtDjPMEs=";
inline const std::string kPreshared = "/k82rI7JrFZwRfaFuk6EI2V89xc2ZDM0zoc0oOFi7RQ=";

inline const std::string kInterface = "[Interface]\nPrivateKey = " + kPrivate + "\n";
inline const std::string kPeer = "[Peer]\nPublicKey = " + kPeerA + "\n";

inline std::string readWhole(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  REQUIRE(in.good());
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void writeWhole(const std::filesystem::path& path, std::string_view text) {
  std::ofstream(path, std::ios::binary) << text;
}

/// "LINE:COLUMN severity: message" of each.
inline std::vector<std::string> messages(const Outcome& outcome) {
  std::vector<std::string> result;
  for (const Diagnostic& diagnostic : outcome.diagnostics) {
    result.push_back(std::to_string(diagnostic.location.line) + ":" +
                     std::to_string(diagnostic.location.column) +
                     (diagnostic.severity == Severity::Error ? " error: " : " warning: ") +
                     diagnostic.message);
  }
  return result;
}

/// Said of what a text is about, not of a mistake in it; newcomer_test.cpp is about these.
inline bool isAdvice(const Diagnostic& diagnostic) {
  return diagnostic.message.starts_with("without ListenPort");
}

/// The configuration of a text that has neither errors nor warnings.
inline Config parseClean(std::string_view text) {
  Outcome outcome = parse(text, "test.conf");
  std::erase_if(outcome.diagnostics, isAdvice);
  CAPTURE(messages(outcome));
  REQUIRE(outcome.diagnostics.empty());
  REQUIRE(outcome.ok());
  return std::move(*outcome.config);
}

/// The only diagnostic of a text.
inline std::string onlyMessage(std::string_view text, Dialect dialect = Dialect::Adit) {
  const Outcome outcome = parse(text, "test.conf", dialect);
  CAPTURE(messages(outcome));
  REQUIRE(outcome.diagnostics.size() == 1);
  return messages(outcome).front();
}

/// A folder that goes with the object.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "adit-config-XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// Writes a file that only its owner can read.
  std::filesystem::path file(const std::string& name, std::string_view text) const {
    const std::filesystem::path path = path_ / name;
    std::filesystem::create_directories(path.parent_path());
    writeWhole(path, text);
    std::filesystem::permissions(
        path, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
    return path;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace adit::config::test

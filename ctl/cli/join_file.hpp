// What `adit join` writes: the key of a join under way, and the configuration that comes of it.
#pragma once

#include <filesystem>
#include <string>

#include "crypto/key.hpp"
#include "enrol/messages.hpp"
#include "enrol/token.hpp"
#include "util/result.hpp"

namespace adit::cli {

/// The private key of a join under way, NAME.join beside NAME.conf. The server may have bound the
/// invitation to it although its answer was lost, so whoever tries again must have it.
class JoinKeyFile {
 public:
  /// Finds the key of an earlier try with the same token, or makes one, which is not kept yet.
  static Result<JoinKeyFile> open(const std::filesystem::path& configFile,
                                  const enrol::Token& token);

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] const crypto::PrivateKey& key() const { return key_; }
  /// It is on stable storage, by this try or by an earlier one.
  [[nodiscard]] bool isKept() const { return kept_; }
  /// Brings it to stable storage.
  Result<void> keep();
  /// The join has ended, well or not.
  void remove();

 private:
  JoinKeyFile(std::filesystem::path path, std::string tokenMark, crypto::PrivateKey key, bool kept)
      : path_(std::move(path)), mark_(std::move(tokenMark)), key_(std::move(key)), kept_(kept) {}

  std::filesystem::path path_;
  /// Tells tokens apart and says nothing of them.
  std::string mark_;
  crypto::PrivateKey key_;
  bool kept_ = false;
};

struct Joined {
  enrol::Answer answer;
  /// HOST:PORT of the server.
  std::string endpoint;
};

/// Writes NAME.conf, which must not exist (EEXIST).
Result<void> writeJoinedConfig(const std::filesystem::path& file, const enrol::Token& token,
                               const crypto::PrivateKey& key, const Joined& joined);

}  // namespace adit::cli

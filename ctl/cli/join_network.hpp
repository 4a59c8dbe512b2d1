// The conversation of `adit join` with the server: UDP sockets round enrol::Joiner.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "cli/join_file.hpp"
#include "enrol/token.hpp"
#include "util/result.hpp"

namespace adit::cli {

struct JoinAttempt {
  /// How long to try in all.
  std::chrono::seconds patience;
  /// Told about once in five seconds what is being waited for.
  std::function<void(const std::string&)> progress;
};

/// Asks every address of the token's endpoints at once and goes on with the one that answers; the
/// answer may be a refusal. Keeps the key in `keyFile` before the server can learn it.
Result<Joined> askToJoin(const enrol::Token& token, JoinKeyFile& keyFile,
                         const JoinAttempt& attempt);

}  // namespace adit::cli

// Result<T>: the value, or an Error that a person can act on.
//
// The one error type of fallible paths. Exceptions are left for programming errors and start-up.
#pragma once

#include <fmt/format.h>

#include <cstring>
#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace adit {

/// Why something failed. `message` names the thing and, where there is one, the remedy; it never
/// holds key material. `code` is an errno value, or 0 when the failure is not the system's.
struct Error {
  std::string message;
  int code = 0;
};

template <typename T>
using Result = tl::expected<T, Error>;

/// An Error with a formatted message and no errno.
template <typename... Args>
[[nodiscard]] tl::unexpected<Error> fail(fmt::format_string<Args...> format, Args&&... args) {
  return tl::unexpected(Error{fmt::format(format, std::forward<Args>(args)...), 0});
}

/// An Error for a failed system call: the formatted message, then the text of `code`.
template <typename... Args>
[[nodiscard]] tl::unexpected<Error> failErrno(int code, fmt::format_string<Args...> format,
                                              Args&&... args) {
  return tl::unexpected(
      Error{fmt::format(format, std::forward<Args>(args)...) + ": " + std::strerror(code), code});
}

/// Passes an error on with words in front that say what was being done.
[[nodiscard]] inline tl::unexpected<Error> wrapError(const Error& error, std::string_view doing) {
  return tl::unexpected(Error{fmt::format("{}: {}", doing, error.message), error.code});
}

}  // namespace adit

// Finding the one to blame when a whole is refused without a reason.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>

namespace adit::nat {

/// The index of the entry that completes the smallest refused beginning of a list, by bisection:
/// `accepted(n)` tells whether the first n entries are accepted together. Nothing when the whole
/// list is accepted, or when not even the empty one is.
inline std::optional<std::size_t> firstRefused(std::size_t count,
                                               const std::function<bool(std::size_t)>& accepted) {
  if (count == 0 || !accepted(0) || accepted(count)) {
    return std::nullopt;
  }
  std::size_t good = 0;
  std::size_t bad = count;
  while (bad - good > 1) {
    const std::size_t middle = good + (bad - good) / 2;
    (accepted(middle) ? good : bad) = middle;
  }
  return good;
}

}  // namespace adit::nat

#include "config/diagnostics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <tuple>

namespace adit::config {
namespace {

constexpr std::size_t kLongestShown = 80;
/// The longest piece of a key that a message may repeat is one character less.
constexpr std::size_t kKeyPiece = 8;
constexpr std::size_t kLongestNumber = 10;
constexpr std::size_t kLongestWord = 24;
/// Bounds the cost of closest().
constexpr std::size_t kLongestName = 40;

bool isLower(char c) {
  return c >= 'a' && c <= 'z';
}
bool isDigit(char c) {
  return c >= '0' && c <= '9';
}
bool isBase64(char c) {
  return isLower(c) || isDigit(c) || (c >= 'A' && c <= 'Z') || c == '+' || c == '/' || c == '=';
}

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool isHarmlessRun(std::string_view run) {
  return run.size() < kKeyPiece ||
         (run.size() <= kLongestNumber && std::ranges::all_of(run, isDigit)) ||
         (run.size() <= kLongestWord && std::ranges::all_of(run, isLower));
}

std::string comparable(std::string_view name) {
  std::string result;
  for (const char c : name.substr(0, kLongestName)) {
    if (c != ' ' && c != '\t' && c != '-' && c != '_') {
      result += lower(c);
    }
  }
  return result;
}

/// Optimal string alignment: insertions, deletions, substitutions, swapped neighbours.
std::size_t editDistance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> beforeLast(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t differs = a[i - 1] == b[j - 1] ? 0 : 1;
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + differs});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], beforeLast[j - 2] + 1);
      }
    }
    beforeLast.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

}  // namespace

void Diagnostics::error(Location location, std::string message) {
  announce(location.file);
  diagnostics_.push_back({Severity::Error, std::move(location), std::move(message)});
}

void Diagnostics::warning(Location location, std::string message) {
  announce(location.file);
  diagnostics_.push_back({Severity::Warning, std::move(location), std::move(message)});
}

void Diagnostics::announce(const FileName& file) {
  if (file != nullptr && (files_.empty() || fileIndex(file) == files_.size())) {
    files_.push_back(file);
  }
}

bool Diagnostics::hasErrors() const {
  return std::ranges::any_of(diagnostics_, [](const Diagnostic& diagnostic) {
    return diagnostic.severity == Severity::Error;
  });
}

std::size_t Diagnostics::fileIndex(const FileName& file) const {
  // The newest file first: that is the one being parsed.
  for (std::size_t i = files_.size(); i > 0; --i) {
    if (files_[i - 1] == file) return i - 1;
  }
  return files_.size();
}

std::vector<Diagnostic> Diagnostics::take() {
  std::ranges::stable_sort(diagnostics_, {}, [this](const Diagnostic& diagnostic) {
    const Location& at = diagnostic.location;
    return std::tuple(fileIndex(at.file), at.line, at.column);
  });
  return std::exchange(diagnostics_, {});
}

std::string reference(const Location& there, const Location& here) {
  const bool sameFile = there.file == here.file || there.file == nullptr || here.file == nullptr ||
                        *there.file == *here.file;
  return sameFile ? fmt::format("line {}", there.line)
                  : fmt::format("{}:{}", *there.file, there.line);
}

bool isShowable(std::string_view text) {
  if (text.size() > kLongestShown) return false;
  std::size_t start = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && (text[i] < ' ' || text[i] > '~')) return false;
    if (i == text.size() || !isBase64(text[i])) {
      if (!isHarmlessRun(text.substr(start, i - start))) return false;
      start = i + 1;
    }
  }
  return true;
}

std::string shown(std::string_view text, std::string_view instead) {
  return isShowable(text) ? fmt::format("\"{}\"", text) : std::string(instead);
}

std::string_view closest(std::string_view name, const std::vector<std::string_view>& candidates) {
  const std::string wanted = comparable(name);
  std::string_view best;
  std::size_t bestDistance = std::max<std::size_t>(1, wanted.size() / 3) + 1;
  for (const std::string_view candidate : candidates) {
    const std::string other = comparable(candidate);
    const std::size_t distance = editDistance(wanted, other);
    // A candidate of which nothing is left is no suggestion.
    if (distance < bestDistance && distance < other.size()) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

bool equalIgnoringCase(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, {}, lower, lower);
}

std::string lowered(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), lower);
  return result;
}

}  // namespace adit::config

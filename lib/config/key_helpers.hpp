// What the handlers of keys share.
#pragma once

#include <fmt/format.h>

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/draft.hpp"
#include "config/values.hpp"

namespace adit::config {

using Lines = std::vector<std::string>;

/// Calls `handle` for each element of the value's list and reports what is none.
template <typename Handle>
void forEachItem(const EntryContext& c, Separator separator, Handle handle) {
  std::vector<ValueError> errors;
  for (const Item& item : splitList(c.value, separator, errors)) {
    handle(item);
  }
  for (ValueError& error : errors) {
    c.error(error.offset, std::move(error.message));
  }
}

/// One word of a fixed set.
template <typename T>
struct Choice {
  std::string_view name;
  T value;
};

template <typename T, std::size_t Size>
void storeChoice(const EntryContext& c, const std::array<Choice<T>, Size>& choices, T& target) {
  std::string names;
  for (const auto& choice : choices) {
    if (equalIgnoringCase(choice.name, c.value)) {
      target = choice.value;
      return;
    }
    names += names.empty() ? "" : " or ";
    names += choice.name;
  }
  c.error(0, fmt::format("{} is not known here; write {}", shown(c.value), names));
}

template <typename T, std::size_t Size>
Lines choiceNames(const std::array<Choice<T>, Size>& choices, T value) {
  for (const auto& choice : choices) {
    if (choice.value == value) return {std::string(choice.name)};
  }
  return {};
}

/// Nothing for the first choice, which is the default.
template <typename T, std::size_t Size>
Lines choiceLines(const std::array<Choice<T>, Size>& choices, T value) {
  if (value == choices.front().value) return {};
  return choiceNames(choices, value);
}

inline Lines switchLines(bool value, bool standard) {
  if (value == standard) return {};
  return {value ? "on" : "off"};
}

inline Lines textLines(const std::string& text) {
  if (text.empty()) return {};
  return {text};
}

/// One line of all elements, or none.
inline Lines joinedText(const std::vector<std::string>& elements) {
  if (elements.empty()) return {};
  return {fmt::format("{}", fmt::join(elements, ", "))};
}

template <typename T>
Lines joined(const std::vector<T>& elements) {
  std::vector<std::string> texts;
  texts.reserve(elements.size());
  for (const T& element : elements) {
    texts.push_back(element.toString());
  }
  return joinedText(texts);
}

/// Stores a public key; false where there is none.
bool storePublicKey(const EntryContext& c, crypto::PublicKey& target);

/// AllowMaps.
void storeGrants(const EntryContext& c, std::vector<PortGrant>& grants, bool& thirdParty);
Lines grantLines(const std::vector<PortGrant>& grants, bool thirdParty);

/// Stores the path of a key file; a key in its place is a slip worth naming.
void storePath(const EntryContext& c, std::string& target);

/// Where a quote of shell text opens and does not close.
std::optional<std::size_t> unbalancedQuote(std::string_view command);

}  // namespace adit::config

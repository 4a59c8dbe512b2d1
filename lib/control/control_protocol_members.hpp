// Reads the members of a JSON object with their types and ranges checked.
#pragma once

#include <concepts>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "util/result.hpp"

namespace adit::control {

/// Each call reads one member and leaves the target untouched when the member is absent or wrong.
/// The first thing that is wrong is kept and given by `finish`; values are never repeated, since
/// one may be a key.
class Members {
 public:
  using Json = nlohmann::ordered_json;

  /// `where` names the object in errors. `object` must outlive this.
  Members(const Json& object, std::string_view where) : object_(object), where_(where) {
    if (!object.is_object()) complain("expected an object");
  }

  void read(const char* name, bool& out) {
    const Json* value = find(name);
    if (value == nullptr) return;
    if (!value->is_boolean()) return wrong(name, "true or false");
    out = value->get<bool>();
  }

  void read(const char* name, std::string& out) {
    const Json* value = find(name);
    if (value == nullptr) return;
    if (!value->is_string()) return wrong(name, "a text");
    out = value->get_ref<const std::string&>();
  }

  template <std::unsigned_integral Number>
  requires(!std::same_as<Number, bool>) void read(const char* name, Number& out) {
    const Json* value = find(name);
    if (value == nullptr) return;
    if (!value->is_number_unsigned() ||
        value->get<std::uint64_t>() > std::numeric_limits<Number>::max()) {
      return wrong(name, "a whole number in its range");
    }
    out = value->get<Number>();
  }

  /// A text through `parse`, which gives a Result.
  template <typename Value, typename Parse>
  void parsed(const char* name, std::optional<Value>& out, Parse parse) {
    const Json* value = find(name);
    if (value == nullptr) return;
    if (!value->is_string()) return wrong(name, "a text");
    auto result = parse(value->template get_ref<const std::string&>());
    if (!result) return complain(fmt::format("\"{}\": {}", name, result.error().message));
    out = std::move(*result);
  }

  template <typename Number>
  void optional(const char* name, std::optional<Number>& out) {
    Number number{};
    if (find(name) == nullptr) return;
    read(name, number);
    out = number;
  }

  /// Calls `each` with every element of an array; it gives a Result<void>.
  template <typename Each>
  void elements(const char* name, Each each) {
    const Json* value = find(name);
    if (value == nullptr) return;
    if (!value->is_array()) return wrong(name, "a list");
    for (const Json& element : *value) {
      if (auto done = each(element); !done) {
        return complain(fmt::format("\"{}\": {}", name, done.error().message));
      }
    }
  }

  /// As `elements`, for an array of texts.
  template <typename Each>
  void texts(const char* name, Each each) {
    elements(name, [&](const Json& element) -> Result<void> {
      if (!element.is_string()) return fail("expected texts");
      return each(element.get_ref<const std::string&>());
    });
  }

  /// The member, for what has a shape of its own; marks it as known.
  const Json* find(const char* name) {
    known_.insert(name);
    if (!object_.is_object()) return nullptr;
    const auto found = object_.find(name);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }

  void require(const char* name) {
    if (find(name) == nullptr) complain(fmt::format("\"{}\" is missing", name));
  }

  /// Members that nothing has asked for are errors.
  void refuseUnknown() {
    if (!object_.is_object()) return;
    for (const auto& member : object_.items()) {
      if (!known_.contains(member.key())) {
        complain(fmt::format("\"{}\" is unknown", member.key()));
      }
    }
  }

  [[nodiscard]] Result<void> finish() const {
    if (error_) return tl::unexpected(*error_);
    return {};
  }

 private:
  void wrong(const char* name, std::string_view what) {
    complain(fmt::format("\"{}\": expected {}", name, what));
  }
  void complain(std::string_view what) {
    if (!error_) error_ = Error{fmt::format("{}: {}", where_, what), 0};
  }

  const Json& object_;
  std::string where_;
  std::set<std::string, std::less<>> known_;
  std::optional<Error> error_;
};

}  // namespace adit::control

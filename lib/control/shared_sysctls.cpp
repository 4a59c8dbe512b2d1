#include "control/shared_sysctls.hpp"

#include <fmt/format.h>
#include <net/if.h>

#include <filesystem>
#include <optional>
#include <system_error>

#include "control/paths.hpp"
#include "control/privileged_directories.hpp"
#include "control/undo_record.hpp"

namespace adit::control {
namespace {

namespace fs = std::filesystem;

fs::path inheritanceOf(std::string_view interface) {
  return volatileDirectory(interface) / "inherited.json";
}

/// Another tunnel that is up here. Of another network namespace the interface is not seen.
std::optional<std::string> heirOf(std::string_view interface) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(runtimeDirectory(), error)) {
    std::string name = entry.path().filename().string();
    if (name != interface && ::if_nametoindex(name.c_str()) != 0 &&
        fs::exists(volatileDirectory(name) / "undo.json", error)) {
      return name;
    }
  }
  return std::nullopt;
}

bool isAbout(std::string_view path, std::string_view interface) {
  return path.find(fmt::format("/{}/", interface)) != std::string_view::npos;
}

/// False where it could not be noted: then it has to be put back at once.
bool leaveTo(const std::string& heir, const SysctlValues& values) {
  auto inheritance = UndoRecord::load(inheritanceOf(heir), heir);
  if (!inheritance) {
    return false;
  }
  inheritance->sysctls.insert(values.begin(), values.end());
  return inheritance->save(inheritanceOf(heir)).has_value();
}

}  // namespace

SysctlValues withoutShared(std::string_view interface, SysctlValues undo) {
  const fs::path own = inheritanceOf(interface);
  if (const auto inherited = UndoRecord::load(own, interface)) {
    for (const auto& [path, value] : inherited->sysctls) {
      undo.insert_or_assign(path, value);
    }
  }
  SysctlValues shared;
  for (const auto& [path, value] : undo) {
    if (!isAbout(path, interface)) {
      shared.emplace(path, value);
    }
  }
  const auto heir = shared.empty() ? std::nullopt : heirOf(interface);
  if (heir && leaveTo(*heir, shared)) {
    std::erase_if(undo, [&](const auto& entry) { return shared.contains(entry.first); });
  }
  std::error_code ignored;
  fs::remove(own, ignored);
  return undo;
}

}  // namespace adit::control

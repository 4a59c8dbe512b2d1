#include "cli/interface_choice.hpp"

#include <fmt/ranges.h>

#include <filesystem>
#include <set>

#include "config/parser.hpp"
#include "control/control_client.hpp"
#include "control/paths.hpp"

namespace adit::cli {

Result<std::string> chosenInterface(const std::string& given) {
  if (!given.empty()) return given;
  std::set<std::string> names;
  if (const auto running = control::runningInterfaces()) {
    names.insert(running->begin(), running->end());
  }
  std::error_code ignored;
  for (const auto& entry :
       std::filesystem::directory_iterator(control::configDirectory(), ignored)) {
    const auto name = config::interfaceNameOf(entry.path());
    if (name && entry.path().extension() == ".conf") names.insert(*name);
  }
  if (names.empty()) {
    return fail("no interface has a file in {}; `adit init server` makes one",
                control::configDirectory().string());
  }
  // What `adit init` and `adit join` make.
  constexpr const char* kUsual = "adit0";
  if (names.contains(kUsual)) return kUsual;
  if (names.size() > 1) {
    return fail("there are several interfaces; name one with --interface: {}",
                fmt::join(names, ", "));
  }
  return *names.begin();
}

}  // namespace adit::cli

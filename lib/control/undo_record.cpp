#include "control/undo_record.hpp"

#include <cerrno>
#include <nlohmann/json.hpp>

#include "util/file.hpp"

namespace adit::control {

using nlohmann::json;

Result<UndoRecord> UndoRecord::load(const std::filesystem::path& path) {
  const auto text = readFile(path);
  if (!text) {
    if (text.error().code == ENOENT) {
      return UndoRecord{};
    }
    return tl::unexpected(text.error());
  }
  try {
    const json object = json::parse(*text);
    UndoRecord record;
    record.sysctls = object.at("sysctls").get<std::map<std::string, std::string>>();
    record.table = object.at("table").get<std::uint32_t>();
    record.dns = object.at("dns").get<bool>();
    record.hooksRun = object.at("hooks_run").get<bool>();
    return record;
  } catch (const json::exception&) {
    return fail("{} is damaged: kernel parameters may not be put back", path.string());
  }
}

Result<void> UndoRecord::save(const std::filesystem::path& path) const {
  const json object{{"sysctls", sysctls}, {"table", table}, {"dns", dns}, {"hooks_run", hooksRun}};
  return replaceFile(path, object.dump(1) + "\n", 0600, Durability::Process);
}

}  // namespace adit::control

#include "tune/record.hpp"

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "tune/permitted.hpp"
#include "tune/text.hpp"
#include "util/file.hpp"

namespace adit::tune {
namespace {

using nlohmann::json;

/// Thousands of queues stay far below it.
constexpr std::size_t kMaxFile = std::size_t{4} << 20;

std::string bootId(const Files& files) {
  const auto text = files.read("proc/sys/kernel/random/boot_id");
  return text ? std::string(trimmed(*text)) : std::string();
}

void readSoftnet(const Files& files, Counters& counters) {
  const auto text = files.read("proc/net/softnet_stat");
  if (!text) return;
  for (const std::string_view line : split(*text, '\n')) {
    const auto fields = words(line);
    if (fields.size() < 3) continue;
    counters.packets += parseHex(fields[0]).value_or(0);
    counters.backlogDrops += parseHex(fields[1]).value_or(0);
    counters.squeezes += parseHex(fields[2]).value_or(0);
  }
}

void readConntrack(const Files& files, Counters& counters) {
  const auto text = files.read("proc/net/stat/nf_conntrack");
  if (!text) return;
  const auto lines = split(*text, '\n');
  const auto names = words(lines.front());
  for (std::size_t line = 1; line < lines.size(); ++line) {
    const auto fields = words(lines[line]);
    for (std::size_t i = 0; i < std::min(names.size(), fields.size()); ++i) {
      if (names[i] != "drop" && names[i] != "early_drop") continue;
      counters.conntrackDrops += parseHex(fields[i]).value_or(0);
    }
  }
}

/// A value to go back to must be one that root may write.
bool isOurs(const std::string& path, const Record::Entry& entry) {
  const auto form = formOf(path);
  if (!form) return false;
  if (*form == Form::Channels) return parseUnsigned(entry.old) && parseUnsigned(entry.now);
  return checkWrite(path, entry.old).has_value() && checkWrite(path, entry.now).has_value();
}

}  // namespace

Counters readCounters(const Files& files) {
  Counters counters;
  readSoftnet(files, counters);
  readConntrack(files, counters);
  return counters;
}

Result<Record> Record::load(const std::filesystem::path& path, const Files& files) {
  Record record;
  record.boot = bootId(files);
  const auto text = readUntrustedFile(path, kMaxFile);
  if (!text) {
    if (text.error().code == ENOENT) return record;
    return tl::unexpected(text.error());
  }
  try {
    const json object = json::parse(*text);
    if (object.at("boot").get<std::string>() != record.boot) return record;
    for (const auto& [name, value] : object.at("entries").items()) {
      Entry entry{value.at("old").get<std::string>(), value.at("new").get<std::string>()};
      if (isOurs(name, entry)) record.entries.emplace(name, std::move(entry));
    }
    const json reset = object.value("reset", json::object());
    for (const auto& [name, value] : reset.items()) {
      const Entry entry{value.get<std::string>(), value.get<std::string>()};
      if (isOurs(name, entry)) record.reset.emplace(name, entry.old);
    }
    const json& counters = object.at("counters");
    record.counters.backlogDrops = counters.at("backlog_drops").get<std::uint64_t>();
    record.counters.squeezes = counters.at("squeezes").get<std::uint64_t>();
    record.counters.packets = counters.at("packets").get<std::uint64_t>();
    record.counters.conntrackDrops = counters.at("conntrack_drops").get<std::uint64_t>();
  } catch (const json::exception&) {
    return fail("{} is damaged: what was tuned may not be put back", path.string());
  }
  return record;
}

Result<void> Record::save(const std::filesystem::path& path) const {
  if (entries.empty()) {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
    return {};
  }
  json object{{"boot", boot},
              {"entries", json::object()},
              {"reset", reset},
              {"counters",
               {{"backlog_drops", counters.backlogDrops},
                {"squeezes", counters.squeezes},
                {"packets", counters.packets},
                {"conntrack_drops", counters.conntrackDrops}}}};
  for (const auto& [name, entry] : entries) {
    object["entries"][name] = {{"old", entry.old}, {"new", entry.now}};
  }
  std::error_code ignored;
  std::filesystem::create_directories(path.parent_path(), ignored);
  return replaceFile(path, object.dump(1) + "\n", 0600, Durability::Process);
}

}  // namespace adit::tune

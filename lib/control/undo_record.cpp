#include "control/undo_record.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <span>

#include "config/parser.hpp"
#include "util/file.hpp"

namespace adit::control {
namespace {

using nlohmann::json;

/// A host with thousands of interfaces, each with a parameter of its own, stays far below it.
constexpr std::size_t kMaxFile = std::size_t{1} << 20;

/// A parameter that nat::neededSysctls() asks for, and what it can have been before. An old value
/// is one that the first write replaced, so the one that is written is not among them.
struct Restorable {
  /// One `*` stands for a name of an interface.
  std::string_view pattern;
  std::array<std::string_view, 2> before;
};
constexpr std::array<Restorable, 7> kRestorable{{
    {"net/ipv4/conf/*/forwarding", {"0", "0"}},
    {"net/ipv4/conf/*/rp_filter", {"0", "1"}},
    {"net/ipv4/conf/all/src_valid_mark", {"0", "0"}},
    {"net/netfilter/nf_conntrack_acct", {"0", "0"}},
    {"net/ipv4/ip_forward", {"0", "0"}},
    {"net/ipv6/conf/*/accept_ra", {"1", "1"}},
    {"net/ipv6/conf/all/forwarding", {"0", "0"}},
}};

bool namesInterface(std::string_view text) {
  return text != "all" && text != "default" && config::checkInterfaceName(text).has_value();
}

bool matches(std::string_view pattern, std::string_view path) {
  const auto star = pattern.find('*');
  if (star == std::string_view::npos) {
    return path == pattern;
  }
  const std::string_view before = pattern.substr(0, star);
  const std::string_view after = pattern.substr(star + 1);
  return path.size() > before.size() + after.size() && path.starts_with(before) &&
         path.ends_with(after) &&
         namesInterface(path.substr(before.size(), path.size() - before.size() - after.size()));
}

/// Only the tunnel's own reverse path filter is ever changed.
bool isOthersFilter(std::string_view path, std::string_view interface) {
  return path.ends_with("/rp_filter") &&
         path != fmt::format("net/ipv4/conf/{}/rp_filter", interface);
}

bool mayRestore(std::string_view path, std::string_view value, std::string_view interface) {
  return !isOthersFilter(path, interface) &&
         std::ranges::any_of(kRestorable, [&](const Restorable& known) {
           return matches(known.pattern, path) &&
                  std::ranges::find(known.before, value) != known.before.end();
         });
}

/// The kernel's own: RT_TABLE_DEFAULT, RT_TABLE_MAIN, RT_TABLE_LOCAL.
bool isKernelTable(std::uint32_t table) {
  return table >= 253 && table <= 255;
}

/// For a message: a path of any length and any bytes may stand in the file.
std::string shownPath(std::string_view path) {
  constexpr std::size_t kMost = 100;
  const bool plain =
      path.size() <= kMost && std::ranges::all_of(path, [](char c) { return c > ' ' && c <= '~'; });
  return plain ? std::string(path) : std::string("an odd path");
}

}  // namespace

Result<UndoRecord> UndoRecord::load(const std::filesystem::path& path, std::string_view interface) {
  const auto text = readUntrustedFile(path, kMaxFile);
  if (!text) {
    if (text.error().code == ENOENT) {
      return UndoRecord{};
    }
    return tl::unexpected(text.error());
  }
  UndoRecord record;
  std::map<std::string, std::string> sysctls;
  try {
    const json object = json::parse(*text);
    sysctls = object.at("sysctls").get<std::map<std::string, std::string>>();
    const json& table = object.at("table");
    if (!table.is_number_unsigned() || table.get<std::uint64_t>() > UINT32_MAX) {
      return fail("{} is damaged: its table is none", path.string());
    }
    record.table = table.get<std::uint32_t>();
    record.dns = object.at("dns").get<bool>();
    record.hooksRun = object.at("hooks_run").get<bool>();
  } catch (const json::exception&) {
    return fail("{} is damaged: kernel parameters may not be put back", path.string());
  }
  for (auto& [parameter, value] : sysctls) {
    if (mayRestore(parameter, value, interface)) {
      record.sysctls.emplace(parameter, std::move(value));
    } else {
      record.refused.push_back(fmt::format("{}: adit never set {} from such a value; it stays",
                                           path.string(), shownPath(parameter)));
    }
  }
  if (isKernelTable(record.table)) {
    record.refused.push_back(
        fmt::format("{}: table {} is the kernel's; it stays", path.string(), record.table));
    record.table = 0;
  }
  return record;
}

void UndoRecord::checkTable(netlink::Routing& routing, std::uint32_t interfaceIndex) {
  if (table == 0) {
    return;
  }
  const auto routes = routing.routes({.table = table, .protocol = netlink::kRouteProtocol});
  const bool others = routes && std::ranges::any_of(*routes, [&](const netlink::Route& route) {
                        return route.interface != 0 && route.interface != interfaceIndex;
                      });
  if (others) {
    refused.push_back(
        fmt::format("table {} belongs to another interface of adit; its rules stay", table));
    table = 0;
  }
}

Result<void> UndoRecord::save(const std::filesystem::path& path) const {
  const json object{{"sysctls", sysctls}, {"table", table}, {"dns", dns}, {"hooks_run", hooksRun}};
  return replaceFile(path, object.dump(1) + "\n", 0600, Durability::Process);
}

}  // namespace adit::control

#include "tune/permitted.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "tune/cpu_set.hpp"
#include "tune/text.hpp"

namespace adit::tune {
namespace {

constexpr std::size_t kMaxPath = 256;
/// A mask of 8192 CPUs takes 2304 bytes.
constexpr std::size_t kMaxValue = 4096;

struct Known {
  std::string_view path;
  Form form;
};
constexpr std::array<Known, 11> kSysctls{{
    {"proc/sys/net/core/default_qdisc", Form::Words},
    {"proc/sys/net/core/netdev_budget", Form::Number},
    {"proc/sys/net/core/netdev_budget_usecs", Form::Number},
    {"proc/sys/net/core/netdev_max_backlog", Form::Number},
    {"proc/sys/net/core/rmem_max", Form::Number},
    {"proc/sys/net/core/rps_sock_flow_entries", Form::Number},
    {"proc/sys/net/core/wmem_max", Form::Number},
    {"proc/sys/net/ipv4/tcp_congestion_control", Form::Words},
    {"proc/sys/net/ipv4/tcp_rmem", Form::Words},
    {"proc/sys/net/ipv4/tcp_wmem", Form::Words},
    {"proc/sys/net/netfilter/nf_conntrack_max", Form::Number},
}};

/// The kernel's rule for names of devices.
bool isNicName(std::string_view name) {
  constexpr std::size_t kLongest = 15;
  return !name.empty() && name.size() <= kLongest && name != "." && name != ".." &&
         name.find_first_of("/: \t\n\r%") == std::string_view::npos &&
         std::ranges::all_of(name, [](char c) { return c > ' ' && c <= '~'; });
}

bool isNumbered(std::string_view name, std::string_view prefix) {
  const auto number =
      name.starts_with(prefix) ? parseUnsigned(name.substr(prefix.size())) : std::nullopt;
  return number && *number <= UINT32_MAX;
}

std::optional<Form> formOfQueue(const std::vector<std::string_view>& parts) {
  // sys/class/net/NIC/queues/rx-N/FILE
  if (parts.size() != 7 || parts[0] != "sys" || parts[1] != "class" || parts[2] != "net" ||
      !isNicName(parts[3]) || parts[4] != "queues") {
    return std::nullopt;
  }
  if (isNumbered(parts[5], "rx-") && parts[6] == "rps_cpus") return Form::Mask;
  if (isNumbered(parts[5], "rx-") && parts[6] == "rps_flow_cnt") return Form::Number;
  if (isNumbered(parts[5], "tx-") && parts[6] == "xps_cpus") return Form::Mask;
  return std::nullopt;
}

bool isPlainWords(std::string_view value) {
  return std::ranges::all_of(value, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == ' ' ||
           c == '\t';
  });
}

bool hasForm(Form form, std::string_view value) {
  switch (form) {
    case Form::Mask:
      return CpuSet::fromMask(value).has_value();
    case Form::List:
      return CpuSet::fromList(value).has_value();
    case Form::Number:
      return parseUnsigned(value).has_value();
    case Form::Words:
      return isPlainWords(value);
    case Form::Channels:
      break;
  }
  return false;
}

}  // namespace

Result<Form> formOf(std::string_view path) {
  if (path.size() <= kMaxPath) {
    const auto* known = std::ranges::find(kSysctls, path, &Known::path);
    if (known != kSysctls.end()) return known->form;
    if (!nicOfChannels(path).empty()) return Form::Channels;
    if (!irqOfPath(path).empty()) return Form::List;
    if (const auto form = formOfQueue(split(path, '/'))) return *form;
  }
  return fail("{} is none of the files that tuning writes",
              path.size() <= kMaxPath ? path : "a long path");
}

Result<void> checkWrite(std::string_view path, std::string_view value) {
  const auto form = formOf(path);
  if (!form) return tl::unexpected(form.error());
  if (value.empty() || value.size() > kMaxValue || !hasForm(*form, value)) {
    return fail("{}: not a value that tuning writes", shownPath(path));
  }
  return {};
}

bool sameValue(Form form, std::string_view left, std::string_view right) {
  left = trimmed(left);
  right = trimmed(right);
  if (form == Form::Mask || form == Form::List) {
    const auto read = form == Form::Mask ? CpuSet::fromMask : CpuSet::fromList;
    const auto a = read(left);
    const auto b = read(right);
    return a && b && *a == *b;
  }
  if (form == Form::Words) return words(left) == words(right);
  const auto a = parseUnsigned(left);
  return a && a == parseUnsigned(right);
}

std::string channelsPath(std::string_view nic) {
  return fmt::format("ethtool/{}/combined", nic);
}

std::string nicOfChannels(std::string_view path) {
  const auto parts = split(path, '/');
  const bool channels =
      parts.size() == 3 && parts[0] == "ethtool" && isNicName(parts[1]) && parts[2] == "combined";
  return channels ? std::string(parts[1]) : std::string();
}

std::string irqPath(unsigned irq) {
  return fmt::format("proc/irq/{}/smp_affinity_list", irq);
}

std::string irqOfPath(std::string_view path) {
  const auto parts = split(path, '/');
  const bool irq = parts.size() == 4 && parts[0] == "proc" && parts[1] == "irq" &&
                   isNumbered(parts[2], "") && parts[3] == "smp_affinity_list";
  return irq ? std::string(parts[2]) : std::string();
}

std::string shownPath(std::string_view path) {
  const std::string nic = nicOfChannels(path);
  return nic.empty() ? fmt::format("/{}", path) : fmt::format("{}: combined queues", nic);
}

}  // namespace adit::tune

#include "cli/doctor_machine.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <ctime>
#include <sstream>

#include "tune/apply.hpp"
#include "tune/permitted.hpp"
#include "tune/record.hpp"
#include "tune/topology.hpp"

namespace adit::cli {
namespace {

/// A file's time may be ahead by what a copy rounds.
constexpr std::chrono::seconds kClockSlack{60};

std::string firstLine(const tune::Files& files, const std::string& path) {
  const auto text = files.read(path);
  return text ? text->substr(0, text->find('\n')) : std::string();
}

std::optional<std::uint64_t> number(const std::string& text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end != text.data() ? std::optional(value) : std::nullopt;
}

/// The third of three numbers.
std::uint64_t maximumOf(const std::string& triple) {
  std::istringstream words(triple);
  std::uint64_t value = 0;
  words >> value >> value >> value;
  return words ? value : 0;
}

doctor::TcpSettings observeTcp(const tune::Files& files) {
  const std::string folder = "proc/sys/net/ipv4/";
  doctor::TcpSettings tcp;
  tcp.congestionControl = firstLine(files, folder + "tcp_congestion_control");
  std::istringstream names(firstLine(files, folder + "tcp_available_congestion_control"));
  for (std::string name; names >> name;) {
    tcp.available.push_back(name);
  }
  tcp.receiveMaximum = maximumOf(firstLine(files, folder + "tcp_rmem"));
  tcp.sendMaximum = maximumOf(firstLine(files, folder + "tcp_wmem"));
  return tcp;
}

std::optional<doctor::Conntrack> observeConntrack(const tune::Files& files, std::uint64_t drops) {
  const std::string folder = "proc/sys/net/netfilter/";
  const auto count = number(firstLine(files, folder + "nf_conntrack_count"));
  const auto maximum = number(firstLine(files, folder + "nf_conntrack_max"));
  if (!count || !maximum) return std::nullopt;
  return doctor::Conntrack{*count, *maximum, drops};
}

/// The path of adit.ko for the running kernel, relative to the root; empty for none.
std::string modulePath(const tune::Files& files, const std::string& folder) {
  for (const char* name : {"/modules.dep", "/modules.builtin"}) {
    const auto text = files.read(folder + name);
    std::istringstream lines(text.value_or(""));
    for (std::string line; std::getline(lines, line);) {
      const std::string path = line.substr(0, line.find(':'));
      if (std::filesystem::path(path).filename().string().starts_with("adit.ko")) {
        return folder + "/" + path;
      }
    }
  }
  return {};
}

/// What the file itself says; nothing of a compressed one.
void readModule(const tune::Files& files, const std::string& path, doctor::ModuleFacts& facts) {
  const auto content = path.ends_with(".ko") ? files.read(path) : Result<std::string>();
  if (!content || content->empty()) {
    facts.isSigned = true;
    return;
  }
  constexpr std::string_view kKey = "vermagic=";
  if (const auto start = content->find(kKey); start != std::string::npos) {
    facts.vermagic = std::string(content->c_str() + start + kKey.size());
  }
  facts.isSigned = content->ends_with("~Module signature appended~\n");
}

bool wantsSignatures(const tune::Files& files) {
  if (firstLine(files, "sys/module/module/parameters/sig_enforce") == "Y") return true;
  const std::string lockdown = firstLine(files, "sys/kernel/security/lockdown");
  if (lockdown.find("[integrity]") != std::string::npos ||
      lockdown.find("[confidentiality]") != std::string::npos) {
    return true;
  }
  const std::string variables = "sys/firmware/efi/efivars";
  for (const std::string& name : files.list(variables)) {
    if (!name.starts_with("SecureBoot-")) continue;
    // Four bytes of attributes stand before the value.
    const auto value = files.read(variables + "/" + name);
    return value && value->size() > 4 && (*value)[4] == 1;
  }
  return false;
}

}  // namespace

bool hasSteering(const tune::Files& files, const std::string& interface) {
  const std::string folder = "sys/class/net/" + interface + "/queues";
  return std::ranges::any_of(files.list(folder), [&](const std::string& queue) {
    const std::string mask = firstLine(files, folder + "/" + queue + "/rps_cpus");
    return mask.find_first_not_of("0,") != std::string::npos;
  });
}

doctor::ModuleFacts observeModule(const tune::Files& files) {
  doctor::ModuleFacts facts;
  facts.kernel = firstLine(files, "proc/sys/kernel/osrelease");
  facts.loaded = !files.list("sys/module/adit").empty();
  const std::string folder = "lib/modules/" + facts.kernel;
  const std::string path = modulePath(files, folder);
  facts.listed = !path.empty();
  if (facts.listed) readModule(files, path, facts);
  facts.signaturesWanted = wantsSignatures(files);
  facts.disabled = firstLine(files, "proc/sys/kernel/modules_disabled") == "1";
  facts.headers = !files.list(folder + "/build").empty();
  const auto sources = files.list("usr/src");
  facts.source = std::ranges::any_of(
                     sources, [](const std::string& name) { return name.starts_with("adit-"); }) ||
                 !files.list("var/lib/dkms/adit").empty();
  return facts;
}

std::optional<doctor::Irqbalance> observeIrqbalance(
    const tune::Machine& machine, const std::vector<std::filesystem::path>& records) {
  const auto running = tune::findIrqbalance(machine.files);
  if (!running) return std::nullopt;
  doctor::Irqbalance facts{running->pid, {}, {}};
  for (const std::filesystem::path& path : records) {
    const auto record = tune::Record::load(path, machine.files);
    if (!record) continue;
    for (const tune::Standing& file : tune::standing(machine, *record)) {
      const auto irq = number(tune::irqOfPath(file.path));
      if (!irq || std::ranges::find(running->banned, *irq) != running->banned.end()) continue;
      facts.unbanned.push_back(static_cast<unsigned>(*irq));
      if (!file.holds) facts.moved.push_back(tune::shownPath(file.path));
    }
  }
  return facts;
}

doctor::MachineFacts observeMachine(const tune::Files& files, const std::string& nic) {
  doctor::MachineFacts facts;
  facts.nic = nic.empty() ? tune::defaultNic(files) : nic;
  if (!facts.nic.empty()) {
    const auto behind = tune::nicsBehind(files, facts.nic);
    if (!behind.empty()) facts.nic = behind.front();
    if (const auto read = tune::readNic(files, facts.nic)) {
      facts.nicSpeed = read->speed;
      facts.nicQueues = static_cast<unsigned>(read->rxQueues.size());
    }
    facts.nicSteers = hasSteering(files, facts.nic);
  }
  const tune::Counters counters = tune::readCounters(files);
  facts.tcp = observeTcp(files);
  facts.conntrack = observeConntrack(files, counters.conntrackDrops);
  facts.module = observeModule(files);
  facts.softnet = {counters.packets, counters.backlogDrops, counters.squeezes};
  return facts;
}

void observeClock(const std::vector<std::filesystem::path>& files, doctor::MachineFacts& facts) {
  const std::time_t now = std::time(nullptr);
  for (const std::filesystem::path& file : files) {
    struct stat status {};
    if (::stat(file.c_str(), &status) != 0) continue;
    const std::chrono::seconds behind(status.st_mtime - now);
    if (behind > kClockSlack && behind > facts.clockBehind.value_or(std::chrono::seconds(0))) {
      facts.clockBehind = behind;
      facts.clockEvidence = fmt::format("the time of {}", file.string());
    }
  }
}

}  // namespace adit::cli

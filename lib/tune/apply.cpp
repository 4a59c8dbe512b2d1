#include "tune/apply.hpp"

#include <algorithm>
#include <cerrno>
#include <map>
#include <set>

#include "tune/cpu_set.hpp"
#include "tune/text.hpp"
#include "tune/topology.hpp"

namespace adit::tune {
namespace {

Result<std::string> readValue(const Machine& machine, const std::string& path) {
  if (const std::string nic = nicOfChannels(path); !nic.empty()) {
    const auto channels = machine.nics.channels(nic);
    if (!channels) return failErrno(ENODEV, "{}", shownPath(path));
    return fmt::format("{}", channels->combined);
  }
  return machine.files.read(path).map(
      [](const std::string& text) { return std::string(trimmed(text)); });
}

/// Empty for what is no interrupt, and for a kernel that does not say.
std::string effectiveOf(const Machine& machine, const std::string& path) {
  const std::string irq = irqOfPath(path);
  if (irq.empty()) return {};
  const auto text = machine.files.read(fmt::format("proc/irq/{}/effective_affinity_list", irq));
  return text ? std::string(trimmed(*text)) : std::string();
}

Result<void> writeValue(const Machine& machine, const std::string& path, const std::string& value) {
  if (const std::string nic = nicOfChannels(path); !nic.empty()) {
    return machine.nics.setCombined(nic, static_cast<unsigned>(parseUnsigned(value).value_or(0)));
  }
  return machine.files.write(path, value);
}

bool same(const Item& item, std::string_view left, std::string_view right) {
  return sameValue(item.form, left, right);
}

/// Values that the kernel calls malformed: only we can have made that mistake.
bool isOurMistake(const Item& item, int code) {
  // A driver's EINVAL says that it does not like the number of queues.
  return (code == EINVAL || code == EOVERFLOW || code == ERANGE) && item.form != Form::Channels;
}

ItemResult applyItem(const Machine& machine, const Item& item) {
  ItemResult result{
      .item = item, .outcome = Outcome::Already, .taken = {}, .reason = {}, .effective = {}};
  if (!item.changes()) return result;
  std::vector<std::string> values{item.wanted};
  values.insert(values.end(), item.alternatives.begin(), item.alternatives.end());
  for (const std::string& value : values) {
    const auto written = writeValue(machine, item.path, value);
    if (!written) {
      result.outcome =
          isOurMistake(item, written.error().code) ? Outcome::Failed : Outcome::Refused;
      result.reason = std::strerror(written.error().code);
      if (written.error().code == 0) result.reason = written.error().message;
      // No vector is left on that CPU; another one may have some.
      if (written.error().code == ENOSPC) continue;
      return result;
    }
    const auto shown = readValue(machine, item.path);
    result.outcome = shown && same(item, *shown, value) ? Outcome::Done : Outcome::Failed;
    result.taken = value == item.wanted ? std::string() : value;
    result.effective = effectiveOf(machine, item.path);
    result.reason = result.outcome == Outcome::Done
                        ? std::string()
                        : fmt::format("it reads {} after that", shown ? *shown : "nothing");
    return result;
  }
  return result;
}

/// One line for all refusals of a kind.
class Refusals {
 public:
  void note(const ItemResult& result) {
    if (result.outcome == Outcome::Failed) {
      failures_.push_back(fmt::format("{}: the kernel does not take \"{}\" ({}): please report it",
                                      shownPath(result.item.path), result.item.wanted,
                                      result.reason));
    } else if (result.outcome == Outcome::Refused) {
      const bool congestion = result.item.path.ends_with("/tcp_congestion_control");
      if (congestion && result.reason == std::strerror(ENOENT)) {
        failures_.push_back(fmt::format("this kernel has no TCP congestion control {}; it stays {}",
                                        result.item.wanted, result.item.current));
        return;
      }
      byReason_[{kindOf(result.item.path), result.reason}].push_back(&result);
    }
  }

  std::vector<std::string> lines() {
    std::vector<std::string> lines = std::move(failures_);
    for (const auto& [key, results] : byReason_) {
      lines.push_back(line(key.first, key.second, results));
    }
    return lines;
  }

 private:
  enum class Kind : std::uint8_t { Irq, Sysctl, Other };

  static Kind kindOf(const std::string& path) {
    if (!irqOfPath(path).empty()) return Kind::Irq;
    return path.starts_with("proc/sys/") ? Kind::Sysctl : Kind::Other;
  }

  static std::string line(Kind kind, const std::string& reason,
                          const std::vector<const ItemResult*>& results) {
    std::string names;
    for (const ItemResult* result : results) {
      const std::string& path = result->item.path;
      const std::string name = kind == Kind::Irq ? irqOfPath(path) : shownPath(path);
      names += (names.empty() ? "" : ", ") + name;
    }
    if (kind == Kind::Irq) {
      return fmt::format("interrupts that cannot be moved here ({}): {}", reason, names);
    }
    return fmt::format("not writable here ({}): {}{}", reason, names,
                       kind == Kind::Sysctl ? "; in a container, run adit tune on the host" : "");
  }

  std::vector<std::string> failures_;
  std::map<std::pair<Kind, std::string>, std::vector<const ItemResult*>> byReason_;
};

/// Whether an entry could be put back; a remark where it was left or could not be.
bool putBack(const Machine& machine, const std::string& path, const Record::Entry& entry,
             std::vector<std::string>& remarks) {
  const auto form = formOf(path);
  const auto shown = readValue(machine, path);
  // What has gone with its queue or its device needs nothing.
  if (!form || !shown) return true;
  if (sameValue(*form, *shown, entry.old)) return true;
  if (!sameValue(*form, *shown, entry.now)) {
    // One that came since moves interrupts, as it says it does.
    if (!irqOfPath(path).empty() && findIrqbalance(machine.files)) return true;
    remarks.push_back(fmt::format("{} was changed to \"{}\" by somebody else since; it stays",
                                  shownPath(path), *shown));
    return true;
  }
  if (const auto written = writeValue(machine, path, entry.old); !written) {
    remarks.push_back(fmt::format("{} could not be put back to \"{}\": {}", shownPath(path),
                                  entry.old, written.error().message));
    return false;
  }
  return true;
}

/// An interrupt that has gone, or that cannot be moved, stays as its driver has it.
void putBackReset(const Machine& machine, Record& record) {
  for (const auto& [path, old] : record.reset) {
    const auto form = formOf(path);
    const auto shown = readValue(machine, path);
    if (form && shown && !sameValue(*form, *shown, old)) (void)writeValue(machine, path, old);
  }
  record.reset.clear();
}

class Applier {
 public:
  Applier(const Machine& machine, const Request& request, Record& record,
          const std::function<Result<void>(const Record&)>& save, const Progress& progress)
      : machine_(machine), request_(request), record_(record), save_(save), progress_(progress) {}

  Result<ApplyReport> run() {
    auto plan = makePlan(machine_, request_, record_);
    if (!plan) return tl::unexpected(plan.error());
    const auto isChannelChange = [](const Item& item) {
      return item.form == Form::Channels && item.changes();
    };
    if (std::ranges::any_of(plan->items, isChannelChange)) {
      Plan first = *plan;
      std::erase_if(first.items, [&](const Item& item) { return !isChannelChange(item); });
      for (const Item& item : first.items) {
        rememberAffinities(nicOfChannels(item.path));
      }
      if (auto done = apply(first); !done) return tl::unexpected(done.error());
      // Queues and interrupts are others now. A driver that refused keeps what it has, and is asked
      // no second time.
      plan = makePlan(machine_, request_, record_);
      if (!plan) return tl::unexpected(plan.error());
      std::erase_if(plan->items, isChannelChange);
    }
    if (auto done = putBackForgotten(*plan); !done) return tl::unexpected(done.error());
    if (auto done = apply(*plan); !done) return tl::unexpected(done.error());
    report_.remarks = std::move(plan->remarks);
    Refusals refusals;
    for (const ItemResult& result : report_.results) {
      refusals.note(result);
    }
    for (std::string& line : refusals.lines()) {
      report_.warnings.push_back(std::move(line));
    }
    return std::move(report_);
  }

 private:
  void rememberAffinities(const std::string& nic) {
    const auto read = readNic(machine_.files, nic);
    if (!read) return;
    for (const NicIrq& irq : read->irqs) {
      const std::string path = irqPath(irq.number);
      const auto value = readValue(machine_, path);
      if (value) record_.reset.try_emplace(path, *value);
    }
  }

  /// What was applied before and is not asked for any more.
  Result<void> putBackForgotten(const Plan& plan) {
    std::set<std::string> wanted;
    for (const Item& item : plan.items) {
      wanted.insert(item.path);
    }
    bool changed = false;
    for (auto at = record_.entries.begin(); at != record_.entries.end();) {
      if (wanted.contains(at->first) ||
          !putBack(machine_, at->first, at->second, report_.warnings)) {
        ++at;
      } else {
        at = record_.entries.erase(at);
        changed = true;
      }
    }
    return changed ? save_(record_) : Result<void>{};
  }

  Result<void> apply(const Plan& plan) {
    const bool anything = std::ranges::any_of(plan.items, &Item::changes);
    if (anything) {
      // Before the first write, so that whoever comes after a kill knows all old values.
      for (const Item& item : plan.items) {
        const auto [entry, fresh] =
            record_.entries.try_emplace(item.path, Record::Entry{item.current, item.wanted});
        if (!fresh) entry->second.now = item.wanted;
      }
      record_.counters = plan.counters;
      if (auto saved = save_(record_); !saved) return saved;
    }
    bool refused = false;
    for (const Item& item : plan.items) {
      ItemResult result = applyItem(machine_, item);
      if (!result.taken.empty()) record_.entries[item.path].now = result.taken;
      const bool untouched = result.outcome == Outcome::Refused &&
                             sameValue(item.form, record_.entries[item.path].old, item.current);
      if (untouched) record_.entries.erase(item.path);
      refused = refused || untouched || !result.taken.empty();
      if (progress_) progress_(result);
      report_.results.push_back(std::move(result));
    }
    return refused ? save_(record_) : Result<void>{};
  }

  const Machine& machine_;
  const Request& request_;
  Record& record_;
  const std::function<Result<void>(const Record&)>& save_;
  const Progress& progress_;
  ApplyReport report_;
};

}  // namespace

bool ApplyReport::ok() const {
  return std::ranges::none_of(
      results, [](const ItemResult& result) { return result.outcome == Outcome::Failed; });
}

Result<ApplyReport> tuneMachine(const Machine& machine, const Request& request, Record& record,
                                const std::function<Result<void>(const Record&)>& save,
                                const Progress& progress) {
  return Applier(machine, request, record, save, progress).run();
}

std::vector<std::string> revert(const Machine& machine, Record& record) {
  std::vector<std::string> remarks;
  // A number of queues last: the queues that go with it are put back before.
  std::vector<std::string> paths;
  for (const auto& [path, entry] : record.entries) {
    paths.push_back(path);
  }
  std::ranges::stable_partition(
      paths, [](const std::string& path) { return nicOfChannels(path).empty(); });
  for (const std::string& path : paths) {
    if (putBack(machine, path, record.entries[path], remarks)) record.entries.erase(path);
  }
  if (std::ranges::none_of(record.entries,
                           [](const auto& entry) { return !nicOfChannels(entry.first).empty(); })) {
    putBackReset(machine, record);
  }
  return remarks;
}

std::vector<Standing> standing(const Machine& machine, const Record& record) {
  std::vector<Standing> all;
  for (const auto& [path, entry] : record.entries) {
    const auto form = formOf(path);
    const auto shown = readValue(machine, path);
    all.push_back({path, entry.old, entry.now, shown ? *shown : std::string(),
                   effectiveOf(machine, path),
                   form && shown && sameValue(*form, *shown, entry.now)});
  }
  return all;
}

}  // namespace adit::tune

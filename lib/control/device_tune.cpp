#include "control/device_tune.hpp"

#include <spdlog/spdlog.h>
#include <sys/epoll.h>

#include <algorithm>

#include "control/tune_request.hpp"
#include "tune/apply.hpp"

namespace adit::control {
namespace {

/// A driver that changes its queues reports each of them.
constexpr auto kSettle = std::chrono::milliseconds(100);

std::vector<std::string> revertRecord(const tune::Machine& machine, tune::Record& record,
                                      const std::filesystem::path& file) {
  std::vector<std::string> lines = tune::revert(machine, record);
  if (const auto saved = record.save(file); !saved) lines.push_back(saved.error().message);
  return lines;
}

void addChanges(const tune::ApplyReport& done, ReconcileReport& report) {
  constexpr std::size_t kListed = 4;
  std::vector<std::string> lines;
  for (const tune::ItemResult& result : done.results) {
    if (result.outcome != tune::Outcome::Done) continue;
    lines.push_back(fmt::format("tuned {}: {} to {}", tune::shownPath(result.item.path),
                                result.item.current,
                                result.taken.empty() ? result.item.wanted : result.taken));
  }
  if (lines.size() > kListed) {
    lines = {fmt::format("tuned {} files; `adit tune status` lists them", lines.size())};
  }
  report.changes.insert(report.changes.end(), lines.begin(), lines.end());
}

}  // namespace

DeviceTune::DeviceTune(Privileged& privileged, std::string interface, std::filesystem::path record)
    : interface_(std::move(interface)),
      file_(std::move(record)),
      files_(privileged),
      nics_(tune::kernelNicControl()) {
  if (auto loaded = tune::Record::load(file_, files_)) {
    record_ = *std::move(loaded);
  } else {
    damage_ = loaded.error().message;
  }
}

void DeviceTune::apply(const config::Config& config, ReconcileReport& report) {
  if (!damage_.empty()) report.warnings.push_back(damage_);
  if (wantsTuning(config.tune)) {
    tuneNow(config, report);
    return;
  }
  remarks_.clear();
  if (record_.entries.empty()) return;
  const auto lines = revertRecord({files_, *nics_}, record_, file_);
  report.changes.emplace_back("tuning taken back");
  report.warnings.insert(report.warnings.end(), lines.begin(), lines.end());
}

void DeviceTune::tuneNow(const config::Config& config, ReconcileReport& report) {
  const auto done =
      tune::tuneMachine({files_, *nics_}, tuneRequest(config, interface_, files_), record_,
                        [this](const tune::Record& now) { return now.save(file_); });
  if (!done) {
    report.warnings.push_back(fmt::format("tuning: {}", done.error().message));
    return;
  }
  addChanges(*done, report);
  for (const std::string& warning : done->warnings) {
    report.warnings.push_back(fmt::format("tuning: {}", warning));
  }
  for (const std::string& remark : done->remarks) {
    if (std::ranges::find(remarks_, remark) == remarks_.end()) {
      spdlog::info("{}: tuning: {}", interface_, remark);
    }
  }
  remarks_ = done->remarks;
}

void DeviceTune::watch(EventLoop& loop, const Clock& clock, std::function<void()> changed) {
  events_ = openHardwareEvents();
  if (!events_) return;
  settle_ = loop.timer(std::move(changed));
  eventSource_ = loop.watch(events_.get(), EPOLLIN, [this, &clock](std::uint32_t) {
    if (takeHardwareEvents(events_.get())) settle_.schedule(clock.now() + kSettle);
  });
}

std::vector<std::string> DeviceTune::revert() {
  settle_ = {};
  eventSource_ = {};
  if (record_.entries.empty()) return {};
  return revertRecord({files_, *nics_}, record_, file_);
}

std::vector<std::string> DeviceTune::cleanUp(const std::filesystem::path& file) {
  tune::RootedFiles files;
  const auto nics = tune::kernelNicControl();
  auto record = tune::Record::load(file, files);
  if (!record) return {record.error().message};
  if (record->entries.empty()) return {};
  return revertRecord({files, *nics}, *record, file);
}

}  // namespace adit::control

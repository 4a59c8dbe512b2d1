#include "control/privileged_tune.hpp"

#include <algorithm>

#include "control/device_tune.hpp"
#include "control/privileged_directories.hpp"
#include "control/tune_request.hpp"
#include "tune/permitted.hpp"
#include "tune/record.hpp"
#include "tune/topology.hpp"

namespace adit::control {
namespace {

/// The NIC of sys/class/net/NIC/...; empty for any other path.
std::string nicOfPath(const std::string& path) {
  constexpr std::string_view kFolder = "sys/class/net/";
  if (!path.starts_with(kFolder)) return {};
  return path.substr(kFolder.size(), path.find('/', kFolder.size()) - kFolder.size());
}

}  // namespace

TuneWriter::TuneWriter(std::string interface, const std::string& root)
    : interface_(std::move(interface)), files_(root) {
  const auto record = tune::Record::load(volatileDirectory(interface_) / kTuneRecord, files_);
  if (!record) return;
  for (const auto& [path, entry] : record->entries) {
    written_.insert(path);
  }
  for (const auto& [path, value] : record->reset) {
    written_.insert(path);
  }
}

bool TuneWriter::isAskedFor(const config::Config& config, const std::string& path) const {
  if (!wantsTuning(config.tune)) return false;
  const std::string irq = tune::irqOfPath(path);
  const std::string nic = nicOfPath(path);
  if (irq.empty() && nic.empty()) return true;
  const tune::Request request = tuneRequest(config, interface_, files_);
  if (!nic.empty()) {
    return nic == interface_ || std::ranges::find(request.nics, nic) != request.nics.end();
  }
  return std::ranges::any_of(request.nics, [&](const std::string& name) {
    const auto read = tune::readNic(files_, name);
    return read && std::ranges::any_of(read->irqs, [&](const tune::NicIrq& each) {
             return fmt::format("{}", each.number) == irq;
           });
  });
}

Result<void> TuneWriter::write(const config::Config* config, const std::string& path,
                               const std::string& value) {
  if (auto allowed = tune::checkWrite(path, value); !allowed) return allowed;
  if (!written_.contains(path)) {
    if (config == nullptr || !isAskedFor(*config, path)) {
      return fail("{} is not tuned by this configuration", tune::shownPath(path));
    }
    written_.insert(path);
  }
  return files_.write(path, value);
}

}  // namespace adit::control

// Tuning as a part of a device: applied while the interface is up, kept in place on events, taken
// back with it.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "config/model.hpp"
#include "control/event_loop.hpp"
#include "control/privileged.hpp"
#include "control/reconciler.hpp"
#include "tune/machine.hpp"
#include "tune/record.hpp"
#include "util/clock.hpp"
#include "util/unique_fd.hpp"

namespace adit::control {

/// The record's name in volatileDirectory().
inline constexpr std::string_view kTuneRecord = "tune.json";

class DeviceTune {
 public:
  /// The record of a daemon that was killed is taken over.
  DeviceTune(Privileged& privileged, std::string interface, std::filesystem::path record);

  /// Makes the machine what [Tune] says, from what it is now; takes back what [Tune] does not say
  /// any more. Adds to the report; nothing here fails the device.
  void apply(const config::Config& config, ReconcileReport& report);

  /// Calls `changed` after a CPU or a queue of a NIC came or went, once for a burst.
  void watch(EventLoop& loop, const Clock& clock, std::function<void()> changed);

  /// Puts the old values back; what was left or could not be, one line each.
  std::vector<std::string> revert();

  /// The same for an interface whose daemon was killed. Needs root.
  static std::vector<std::string> cleanUp(const std::filesystem::path& record);

 private:
  /// Reads the machine's files and has the privileged process write them.
  class WorkerFiles final : public tune::RootedFiles {
   public:
    explicit WorkerFiles(Privileged& privileged) : privileged_(privileged) {}
    Result<void> write(const std::string& path, const std::string& value) override {
      return privileged_.writeTuned(path, value);
    }

   private:
    Privileged& privileged_;
  };

  void tuneNow(const config::Config& config, ReconcileReport& report);

  std::string interface_;
  std::filesystem::path file_;
  WorkerFiles files_;
  std::unique_ptr<tune::NicControl> nics_;
  tune::Record record_;
  /// Why the record could not be read.
  std::string damage_;
  /// What has been said to the log.
  std::vector<std::string> remarks_;
  UniqueFd events_;
  EventSource eventSource_;
  EventSource settle_;
};

/// Kernel events (NETLINK_KOBJECT_UEVENT) that have come since: whether any is about a CPU or a
/// queue. Reads until there are none.
bool takeHardwareEvents(int socket);
/// A socket of the calling thread's network namespace that hears them; none where that is not
/// possible.
UniqueFd openHardwareEvents();

}  // namespace adit::control

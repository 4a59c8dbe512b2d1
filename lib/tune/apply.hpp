// Carries a plan out, and takes it back.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tune/plan.hpp"
#include "tune/record.hpp"

namespace adit::tune {

enum class Outcome : std::uint8_t {
  Done,     ///< written and read back
  Already,  ///< it was so
  Refused,  ///< the kernel or the container does not allow it; all else goes on
  Failed,   ///< the kernel calls the value malformed, or shows another one: a mistake of adit's
};

struct ItemResult {
  Item item;
  Outcome outcome = Outcome::Done;
  /// What holds now, where another value than the planned one had to be taken.
  std::string taken;
  /// Why not.
  std::string reason;
  /// Of an interrupt: the CPUs that it really goes to, read after the write. The kernel may move it
  /// only when it fires next.
  std::string effective;
};

struct ApplyReport {
  std::vector<ItemResult> results;
  /// One line for all that was refused for the same reason, and each failure.
  std::vector<std::string> warnings;
  /// The plan's.
  std::vector<std::string> remarks;
  [[nodiscard]] bool ok() const;
};

/// Called after each item, for whoever wants to show progress.
using Progress = std::function<void(const ItemResult&)>;

/// Plans and applies; what `record` has beyond the plan is put back. `save` is called before the
/// first write with the old values of all that may be written, and after the last.
Result<ApplyReport> tuneMachine(const Machine& machine, const Request& request, Record& record,
                                const std::function<Result<void>(const Record&)>& save,
                                const Progress& progress = {});

/// Puts back the values of `record` and empties it. What somebody else has changed since is left as
/// it is. Returns what was left or could not be put back, one line each.
std::vector<std::string> revert(const Machine& machine, Record& record);

/// One recorded file as it is now.
struct Standing {
  std::string path;
  std::string old;
  std::string written;
  /// Empty where the file has gone.
  std::string current;
  /// As in ItemResult.
  std::string effective;
  bool holds = false;
};
std::vector<Standing> standing(const Machine& machine, const Record& record);

}  // namespace adit::tune

// What is wrong, in a person's words.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace adit::doctor {

enum class Severity : std::uint8_t {
  /// Something does not work.
  Fault,
  /// It works, and slower than it could, by what was measured.
  Slow,
  /// Could become either; nothing that was seen says that it has.
  Advice,
};
/// "fault", "slow" or "advice".
std::string_view severityName(Severity severity);

struct Finding {
  /// Stable, for programs: "path-mtu-black-hole". docs/slow.md lists them.
  std::string id;
  Severity severity = Severity::Advice;
  /// One sentence without its full stop; it names the interface or the peer.
  std::string sentence;
  /// The figures that it rests on, and where they are from.
  std::string evidence;
  /// A command, or what to do where no command does it.
  std::string remedy;
  friend bool operator==(const Finding&, const Finding&) = default;
};

/// Faults come first, then what is slow; within that in the order of the layers, from the outer
/// path to the services.
void order(std::vector<Finding>& findings);

/// Whether there is nothing but advice.
bool isHealthy(const std::vector<Finding>& findings);

}  // namespace adit::doctor

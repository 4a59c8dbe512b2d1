// What tuning would write, and why: computed from the machine, nothing is written here.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tune/machine.hpp"
#include "tune/permitted.hpp"
#include "tune/record.hpp"
#include "util/result.hpp"

namespace adit::tune {

/// One key of [Tune]: computed, left alone, or as a person said.
template <typename T>
struct Setting {
  enum class Mode : std::uint8_t { Auto, Off, Given } mode = Mode::Auto;
  T value{};
  [[nodiscard]] bool isAuto() const { return mode == Mode::Auto; }
  [[nodiscard]] bool isOff() const { return mode == Mode::Off; }
  [[nodiscard]] bool isGiven() const { return mode == Mode::Given; }
};

struct Cpus {
  /// The only interface that it is about; empty for all.
  std::string interface;
  /// "0-3,8" or "all".
  std::string list;
};

/// The keys of [Tune] (docs/configuration.md).
struct Settings {
  Setting<Cpus> rps, xps, irq;
  /// Entries of the flow table.
  Setting<std::uint64_t> rfs;
  Setting<std::string> congestionControl;
  /// Bytes.
  Setting<std::uint64_t> buffers;
  Setting<std::string> qdisc;
  /// Entries.
  Setting<std::uint64_t> conntrack;
  /// Packets.
  Setting<std::uint64_t> backlog;
};

struct Request {
  /// The NICs that the tunnel's packets come in by.
  std::vector<std::string> nics;
  /// Interfaces of adit.
  std::vector<std::string> tunnels;
  Settings settings;
  /// Of the path to the peers, bits per second; else the NIC's speed is taken.
  std::optional<std::uint64_t> bandwidth;
  /// Round trip on that path.
  std::optional<std::chrono::microseconds> delay;
};

struct Item {
  /// As in permitted.hpp.
  std::string path;
  Form form = Form::Number;
  /// Without its newline.
  std::string current;
  std::string wanted;
  std::string why;
  /// Values to try where the kernel has no vector left for `wanted` (ENOSPC).
  std::vector<std::string> alternatives;
  [[nodiscard]] bool changes() const { return !sameValue(form, current, wanted); }
};

struct Plan {
  /// What has to hold, in the order in which it is written; also what holds already because
  /// `record` says that we wrote it.
  std::vector<Item> items;
  /// For the person: what was not planned and why, what to expect.
  std::vector<std::string> remarks;
  Counters counters;
};

/// `record` is what was applied before: values are compared with those from before that, so that
/// planning twice gives the same. Fails where the machine cannot be read at all, or a NIC is absent
/// (ENODEV).
Result<Plan> makePlan(const Machine& machine, const Request& request, const Record& record);

}  // namespace adit::tune

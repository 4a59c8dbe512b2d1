// The keys of [Tune]. Their grammar is checked here; lib/tune computes from them.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "config/key_helpers.hpp"
#include "config/schema.hpp"

namespace adit::config {
namespace {

using Profile = TuneConfig::Profile;

constexpr auto kProfiles = std::to_array<Choice<Profile>>(
    {{"off", Profile::Off}, {"auto", Profile::Auto}, {"explicit", Profile::Explicit}});

void parseProfile(const EntryContext& c) {
  storeChoice(c, kProfiles, c.draft.tune.profile);
}
Lines formatProfile(const SectionView& v) {
  const Profile implied = v.tune->settings.empty() ? Profile::Off : Profile::Explicit;
  if (v.tune->profile == implied) return {};
  return choiceNames(kProfiles, v.tune->profile);
}

bool isAutoOrOff(std::string_view value) {
  return equalIgnoringCase(value, "auto") || equalIgnoringCase(value, "off");
}

void keep(const EntryContext& c) {
  // Words are lower case, so that a change of case is no change of the setting.
  std::string value = isAutoOrOff(c.value) ? lowered(c.value) : std::string(c.value);
  c.draft.tune.settings.push_back({std::string(c.spec.name), std::move(value), c.location});
}

/// auto, off, or a CPU list, for one NIC where INTERFACE: stands before it.
void parseCpus(const EntryContext& c) {
  const std::size_t colon = c.value.find(':');
  const std::size_t start = colon == std::string_view::npos ? 0 : colon + 1;
  if (start > 0 && !parseInterfaceName(c.value.substr(0, colon))) {
    c.error(0, "what stands before the colon is not an interface name");
    return;
  }
  const std::string_view cpus = c.value.substr(start);
  const auto bad = isAutoOrOff(cpus) ? std::nullopt : checkCpuList(cpus);
  if (bad) {
    c.error(start + bad->offset, bad->message + "; auto and off are possible too");
    return;
  }
  keep(c);
}

void parseCount(const EntryContext& c) {
  const auto number = parseNumber(c.value, 1, 0x7fffffff, "a number of entries");
  if (!isAutoOrOff(c.value) && !number) {
    c.error(0, number.error().message + ", auto or off");
    return;
  }
  keep(c);
}

void parseBytes(const EntryContext& c) {
  const auto size = parseSize(c.value);
  if (!isAutoOrOff(c.value) && !size) {
    c.error(0, size.error().message + "; auto and off are possible too");
    return;
  }
  keep(c);
}

/// The name of a kernel algorithm (TCP_CA_NAME_MAX and IFNAMSIZ are 16, with the final zero).
void parseAlgorithm(const EntryContext& c) {
  constexpr std::size_t kLongestAlgorithm = 15;
  const bool good =
      c.value.size() <= kLongestAlgorithm && std::ranges::all_of(c.value, [](char x) {
        return (x >= 'a' && x <= 'z') || (x >= '0' && x <= '9') || x == '_' || x == '-';
      });
  if (!isAutoOrOff(c.value) && !good) {
    c.error(0, fmt::format("{} is not the name of a kernel algorithm; write auto, off or a name "
                           "in lower case",
                           shown(c.value)));
    return;
  }
  keep(c);
}

template <std::size_t Index>
Lines formatSetting(const SectionView& v);

constexpr auto kKeys = std::to_array<KeySpec>({
    {"Profile", Repeat::Once, Text::Strict, false, false, "auto | off | explicit",
     "explicit with other keys, else off", parseProfile, formatProfile},
    {"Rps", Repeat::Once, Text::Strict, false, false, "auto | off | [INTERFACE:]CPUS",
     "the profile's", parseCpus, formatSetting<1>},
    {"Rfs", Repeat::Once, Text::Strict, false, false, "auto | off | FLOWS", "the profile's",
     parseCount, formatSetting<2>},
    {"Xps", Repeat::Once, Text::Strict, false, false, "auto | off | [INTERFACE:]CPUS",
     "the profile's", parseCpus, formatSetting<3>},
    {"Irq", Repeat::Once, Text::Strict, false, false, "auto | off | [INTERFACE:]CPUS",
     "the profile's", parseCpus, formatSetting<4>},
    {"CongestionControl", Repeat::Once, Text::Strict, false, false, "auto | off | NAME",
     "the profile's", parseAlgorithm, formatSetting<5>},
    {"Buffers", Repeat::Once, Text::Strict, false, false, "auto | off | BYTES", "the profile's",
     parseBytes, formatSetting<6>},
    {"Qdisc", Repeat::Once, Text::Strict, false, false, "auto | off | NAME", "the profile's",
     parseAlgorithm, formatSetting<7>},
    {"Conntrack", Repeat::Once, Text::Strict, false, false, "auto | off | ENTRIES", "the profile's",
     parseCount, formatSetting<8>},
    {"Backlog", Repeat::Once, Text::Strict, false, false, "auto | off | PACKETS", "the profile's",
     parseCount, formatSetting<9>},
});

template <std::size_t Index>
Lines formatSetting(const SectionView& v) {
  Lines lines;
  for (const TuneConfig::Setting& setting : v.tune->settings) {
    if (setting.key == kKeys[Index].name) {
      lines.push_back(setting.value);
    }
  }
  return lines;
}

}  // namespace

std::span<const KeySpec> tuneKeys() {
  return kKeys;
}

}  // namespace adit::config

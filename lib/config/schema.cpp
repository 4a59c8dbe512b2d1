#include "config/schema.hpp"

#include <algorithm>
#include <array>

namespace adit::config {
namespace {

constexpr std::array kSections{Section::Interface, Section::Peer, Section::Invitation, Section::Map,
                               Section::Tune};

}  // namespace

std::span<const KeySpec> keysOf(Section section) {
  switch (section) {
    case Section::Interface:
      return interfaceKeys();
    case Section::Peer:
      return peerKeys();
    case Section::Invitation:
      return invitationKeys();
    case Section::Map:
      return mapKeys();
    case Section::Tune:
      return tuneKeys();
  }
  return {};
}

const KeySpec* findKey(Section section, std::string_view name) {
  const auto keys = keysOf(section);
  const auto found = std::ranges::find_if(
      keys, [&](const KeySpec& spec) { return equalIgnoringCase(spec.name, name); });
  return found == keys.end() ? nullptr : &*found;
}

const KeySpec* findKeyAnywhere(std::string_view name, Section* section) {
  for (const Section candidate : kSections) {
    if (const KeySpec* spec = findKey(candidate, name)) {
      *section = candidate;
      return spec;
    }
  }
  return nullptr;
}

std::vector<std::string_view> keyNames(Section section) {
  std::vector<std::string_view> names;
  for (const KeySpec& spec : keysOf(section)) {
    names.push_back(spec.name);
  }
  return names;
}

std::string_view sectionName(Section section) {
  switch (section) {
    case Section::Interface:
      return "Interface";
    case Section::Peer:
      return "Peer";
    case Section::Invitation:
      return "Invitation";
    case Section::Map:
      return "Map";
    case Section::Tune:
      return "Tune";
  }
  return {};
}

const Section* findSection(std::string_view name) {
  const auto* found = std::ranges::find_if(
      kSections, [&](Section section) { return equalIgnoringCase(sectionName(section), name); });
  return found == kSections.end() ? nullptr : found;
}

std::vector<std::string_view> sectionNames() {
  std::vector<std::string_view> names;
  for (const Section section : kSections) {
    names.push_back(sectionName(section));
  }
  return names;
}

Location SectionKeys::of(std::string_view name) const {
  for (const auto& [spec, location] : seen) {
    if (spec->name == name) return location;
  }
  return header;
}

bool SectionKeys::has(std::string_view name) const {
  return std::ranges::any_of(seen, [&](const auto& entry) { return entry.first->name == name; });
}

Location EntryContext::at(std::size_t offset) const {
  return {location.file, location.line, location.column + static_cast<unsigned>(offset)};
}

void EntryContext::error(std::size_t offset, std::string message) const {
  diagnostics.error(at(offset), std::move(message));
}

void EntryContext::warning(std::size_t offset, std::string message) const {
  diagnostics.warning(at(offset), std::move(message));
}

}  // namespace adit::config

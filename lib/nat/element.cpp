#include "nat/element.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <optional>

namespace adit::nat {
namespace {

using nlohmann::json;

/// NFTNL_UDATA_COMMENT_MAXLEN
constexpr std::size_t kLongestComment = 128;

/// Bytes per second: the kernel counts them times nanoseconds, in 64 bits.
constexpr std::uint64_t kHighestRate = 16'000'000'000;

json addressRange(const Prefix& prefix) {
  if (prefix.length() == prefix.address().bits()) {
    return prefix.address().toString();
  }
  return {{"prefix", {{"addr", prefix.address().toString()}, {"len", prefix.length()}}}};
}

json portRange(std::uint16_t first, std::uint16_t last) {
  if (first == last) {
    return first;
  }
  return {{"range", {first, last}}};
}

json concat(std::vector<json> parts) {
  return {{"concat", std::move(parts)}};
}

/// Collects the elements of one mapping in one family.
class MappingElements {
 public:
  MappingElements(const Mapping& mapping, bool v6, bool offload, Elements& out)
      : mapping_(mapping),
        v6_(v6),
        offload_(offload),
        target_(v6 ? mapping.targetV6 : mapping.targetV4),
        listen_(mapping.listenAddress
                    ? Prefix(*mapping.listenAddress, mapping.listenAddress->bits())
                    : anyAddress()),
        out_(out) {}

  void collect() {
    if (!target_ || (mapping_.listenAddress && mapping_.listenAddress->isV6() != v6_)) {
      return;
    }
    const std::string comment =
        commentText(mapping_.label.empty() ? mapping_.listenText() : mapping_.label);
    add(sets::kTarget, key({}), target_->toString(), comment);
    if (mapping_.source == SourceMode::Masquerade) {
      add(sets::kMasquerade, key({}));
    }
    if (mapping_.hairpin) {
      add(sets::kHairpin, key({}));
    }
    if (!mapping_.allow.empty()) {
      add(sets::kRestricted, key({}));
      collectAllowed();
    }
    if (mapping_.rate) {
      addRate(sets::kRateIn);
      addRate(sets::kRateOut);
      if (offload_) {
        add(sets::kPaced, key({}));
      }
    }
    if (mapping_.targetPort != mapping_.firstPort) {
      collectPorts();
    }
  }

 private:
  [[nodiscard]] Prefix anyAddress() const {
    return {v6_ ? IpAddress::anyV6() : IpAddress::anyV4(), 0};
  }

  [[nodiscard]] json key(std::vector<json> more) const {
    std::vector<json> parts{portRange(mapping_.firstPort, mapping_.lastPort),
                            static_cast<unsigned>(mapping_.protocol), addressRange(listen_)};
    std::ranges::move(more, std::back_inserter(parts));
    return concat(std::move(parts));
  }

  Element& add(std::string_view set, json key, json value = nullptr, std::string comment = {}) {
    return insert(std::string(set) + (v6_ ? "6" : "4"), std::move(key), std::move(value),
                  std::move(comment), mapping_.firstPort, mapping_.lastPort);
  }

  /// One limit serves both families. Its name has all that it depends on, so that another rate is
  /// another limit.
  void addRate(std::string_view set) {
    const std::uint64_t bytes = std::clamp<std::uint64_t>(*mapping_.rate / 8, 1, kHighestRate);
    std::string name = fmt::format("{}_{}_{}", set, mapping_.listenText(), bytes);
    std::ranges::replace_if(
        name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
    add(set, key({}), std::move(name)).rate = bytes;
  }

  Element& insert(std::string set, json key, json value, std::string comment, std::uint16_t first,
                  std::uint16_t last) {
    std::string id = canonicalText(key);
    Element element;
    element.key = std::move(key);
    element.value = std::move(value);
    element.comment = std::move(comment);
    element.protocol = static_cast<std::uint8_t>(mapping_.protocol);
    element.firstPort = first;
    element.lastPort = last;
    return out_.insert_or_assign({std::move(set), std::move(id)}, std::move(element)).first->second;
  }

  /// Prefixes that another one contains would be refused as overlapping.
  void collectAllowed() {
    for (std::size_t i = 0; i < mapping_.allow.size(); ++i) {
      const Prefix& prefix = mapping_.allow[i];
      const auto covers = [&](const Prefix& other) {
        return other.contains(prefix) && other != prefix;
      };
      if (prefix.address().isV6() == v6_ && std::ranges::none_of(mapping_.allow, covers)) {
        add(sets::kAllowed, key({addressRange(prefix)}));
      }
    }
  }

  /// One element for each port: `dnat to X:6000-6009` would be a pool, not a shift.
  void collectPorts() {
    for (unsigned offset = 0; mapping_.firstPort + offset <= mapping_.lastPort; ++offset) {
      const auto port = static_cast<std::uint16_t>(mapping_.firstPort + offset);
      const unsigned target = mapping_.targetPort + offset;
      const auto protocol = static_cast<unsigned>(mapping_.protocol);
      if (mapping_.listenAddress) {
        insert(std::string(sets::kPortAt) + (v6_ ? "6" : "4"),
               concat({port, protocol, mapping_.listenAddress->toString()}), target, {}, port,
               port);
      } else {
        insert(std::string(sets::kPort), concat({port, protocol}), target, {}, port, port);
      }
    }
  }

  const Mapping& mapping_;
  bool v6_;
  bool offload_;
  std::optional<IpAddress> target_;
  Prefix listen_;
  Elements& out_;
};

std::optional<unsigned> protocolNumber(std::string_view text) {
  if (text == "tcp") {
    return IPPROTO_TCP;
  }
  if (text == "udp") {
    return IPPROTO_UDP;
  }
  return std::nullopt;
}

std::string canonicalPrefix(const json& prefix) {
  if (!prefix.is_object() || !prefix.contains("addr") || !prefix["addr"].is_string() ||
      !prefix.contains("len") || !prefix["len"].is_number_unsigned()) {
    return "?" + prefix.dump();
  }
  const auto address = IpAddress::parse(prefix["addr"].get<std::string>());
  const auto length = prefix["len"].get<unsigned>();
  if (!address || length > address->bits()) {
    return "?" + prefix.dump();
  }
  const Prefix network(*address, length);
  std::array<std::uint8_t, 16> last{};
  std::ranges::copy(network.address().bytes(), last.begin());
  for (unsigned bit = length; bit < address->bits(); ++bit) {
    last[bit / 8] = static_cast<std::uint8_t>(last[bit / 8] | (0x80U >> (bit % 8)));
  }
  const auto highest =
      address->isV6() ? IpAddress::fromV6(last) : IpAddress::fromV4(std::span(last).first<4>());
  return fmt::format("{}~{}", network.address().toString(), highest.toString());
}

/// The port numbers that the first part of a key covers; zeros for another form.
std::pair<std::uint16_t, std::uint16_t> portsOf(const json& part) {
  if (part.is_number_unsigned() && part.get<unsigned>() <= 65535) {
    const auto port = part.get<std::uint16_t>();
    return {port, port};
  }
  if (part.is_object() && part.contains("range") && part["range"].is_array() &&
      part["range"].size() == 2 && part["range"][0].is_number_unsigned() &&
      part["range"][1].is_number_unsigned()) {
    return {part["range"][0].get<std::uint16_t>(), part["range"][1].get<std::uint16_t>()};
  }
  return {};
}

/// Protocol names become numbers, which need no /etc/protocols when they are sent back.
void numberProtocols(json& key) {
  if (!key.is_object() || !key.contains("concat")) {
    return;
  }
  for (json& part : key["concat"]) {
    if (part.is_string()) {
      if (const auto number = protocolNumber(part.get_ref<const std::string&>())) {
        part = *number;
      }
    }
  }
}

Element parseElement(const json& entry, bool isMap) {
  Element element;
  const bool pair = isMap && entry.is_array() && entry.size() == 2;
  json key = pair ? entry[0] : entry;
  element.value = pair ? entry[1] : json(nullptr);
  if (key.is_object() && key.contains("elem") && key["elem"].is_object()) {
    const json inner = key["elem"];
    element.comment = inner.value("comment", "");
    key = inner.contains("val") ? inner["val"] : json(nullptr);
  }
  numberProtocols(key);
  if (key.is_object() && key.contains("concat") && key["concat"].is_array() &&
      key["concat"].size() >= 2) {
    const json& parts = key["concat"];
    const json& protocol = parts[1];
    element.protocol = protocol.is_number_unsigned() ? protocol.get<std::uint8_t>() : 0;
    std::tie(element.firstPort, element.lastPort) = portsOf(parts[0]);
  }
  element.key = std::move(key);
  return element;
}

/// Bytes of the UTF-8 character at the front of a text (RFC 3629, section 4); 0 where there is
/// none.
std::size_t characterLength(std::string_view text) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = at(0);
  const std::size_t length = first < 0x80                    ? 1
                             : first >= 0xc2 && first < 0xe0 ? 2
                             : first >= 0xe0 && first < 0xf0 ? 3
                             : first >= 0xf0 && first < 0xf5 ? 4
                                                             : 0;
  if (length == 0 || text.size() < length) {
    return 0;
  }
  for (std::size_t i = 1; i < length; ++i) {
    if ((at(i) & 0xc0) != 0x80) {
      return 0;
    }
  }
  const bool overlong = (first == 0xe0 && at(1) < 0xa0) || (first == 0xf0 && at(1) < 0x90);
  const bool surrogate = first == 0xed && at(1) >= 0xa0;
  const bool tooLarge = first == 0xf4 && at(1) >= 0x90;
  return overlong || surrogate || tooLarge ? 0 : length;
}

/// Targets of several mappings may overlap; the elements of a set must not.
void collectTargets(std::string_view set, const std::vector<Mapping>& mappings, Elements& out) {
  using Ports = std::vector<std::pair<unsigned, unsigned>>;
  std::map<std::pair<IpAddress, Protocol>, Ports> targets;
  for (const Mapping& mapping : mappings) {
    for (const auto& target : {mapping.targetV4, mapping.targetV6}) {
      if (target) {
        targets[{*target, mapping.protocol}].emplace_back(
            mapping.targetPort, mapping.targetPort + (mapping.lastPort - mapping.firstPort));
      }
    }
  }
  for (auto& [target, ports] : targets) {
    std::ranges::sort(ports);
    for (std::size_t i = 0; i < ports.size();) {
      auto [first, last] = ports[i];
      for (++i; i < ports.size() && ports[i].first <= last + 1; ++i) {
        last = std::max(last, ports[i].second);
      }
      Element element;
      element.protocol = static_cast<std::uint8_t>(target.second);
      element.firstPort = static_cast<std::uint16_t>(first);
      element.lastPort = static_cast<std::uint16_t>(last);
      element.key =
          concat({portRange(static_cast<std::uint16_t>(first), static_cast<std::uint16_t>(last)),
                  static_cast<unsigned>(target.second), target.first.toString()});
      std::string id = canonicalText(element.key);
      out.insert_or_assign(
          {fmt::format("{}{}", set, target.first.isV6() ? "6" : "4"), std::move(id)},
          std::move(element));
    }
  }
}

void collectAnswers(const RulesetSpec& spec, Elements& out) {
  for (const IpAddress& home : spec.answers->homeAddresses) {
    for (const IpAddress& tunnel : spec.tunnelAddresses) {
      if (tunnel.isV6() == home.isV6()) {
        Element element;
        element.key = tunnel.toString();
        element.value = home.toString();
        std::string id = canonicalText(element.key);
        out.insert_or_assign({fmt::format("{}{}", sets::kAnswer, home.isV6() ? "6" : "4"), id},
                             std::move(element));
      }
    }
  }
}

bool same(const Element& a, const Element& b) {
  return canonicalText(a.value) == canonicalText(b.value) && a.comment == b.comment;
}

}  // namespace

json Element::toJson() const {
  json wrapped = key;
  if (!comment.empty()) {
    wrapped = {{"elem", {{"val", key}, {"comment", comment}}}};
  }
  return value.is_null() ? wrapped : json::array({wrapped, value});
}

std::string canonicalText(const json& value) {
  if (value.is_number_unsigned()) {
    return fmt::format("{0}~{0}", value.get<std::uint64_t>());
  }
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    if (const auto number = protocolNumber(text)) {
      return fmt::format("{0}~{0}", *number);
    }
    const auto address = IpAddress::parse(text);
    return fmt::format("{0}~{0}", address ? address->toString() : text);
  }
  if (!value.is_object()) {
    return "?" + value.dump();
  }
  if (value.contains("concat")) {
    std::string text;
    for (const json& part : value["concat"]) {
      text += canonicalText(part) + " . ";
    }
    return text;
  }
  if (value.contains("prefix")) {
    return canonicalPrefix(value["prefix"]);
  }
  if (value.contains("range") && value["range"].is_array() && value["range"].size() == 2) {
    const std::string low = canonicalText(value["range"][0]);
    const std::string high = canonicalText(value["range"][1]);
    return low.substr(0, low.find('~')) + "~" + high.substr(0, high.find('~'));
  }
  return "?" + value.dump();
}

std::string commentText(std::string_view label) {
  std::string text;
  while (!label.empty()) {
    const std::size_t length = characterLength(label);
    const std::string_view character = label.substr(0, std::max<std::size_t>(length, 1));
    label.remove_prefix(character.size());
    if (text.size() + character.size() > kLongestComment) {
      break;
    }
    const auto first = static_cast<unsigned char>(character.front());
    if (length == 0) {
      text += '?';
    } else if (first < 0x20 || first == 0x7f) {
      text += ' ';
    } else if (first == '"') {
      text += '\'';
    } else {
      text += character;
    }
  }
  return text;
}

Elements elementsOf(const RulesetSpec& spec) {
  static const std::vector<Mapping> kNone;
  Elements elements;
  // Without a public side there are no sets for them.
  for (const Mapping& mapping : spec.publicInterfaces.empty() ? kNone : spec.mappings) {
    MappingElements(mapping, false, spec.offload, elements).collect();
    MappingElements(mapping, true, spec.offload, elements).collect();
  }
  if (spec.exposure) {
    collectTargets(sets::kExposed, spec.exposure->declared, elements);
  }
  collectTargets(sets::kMasked, spec.masked, elements);
  if (spec.answers) {
    collectAnswers(spec, elements);
  }
  return elements;
}

Elements elementsOfListing(const json& listing) {
  Elements elements;
  for (const json& object : listing.value("nftables", json::array())) {
    const bool isMap = object.contains("map");
    if (!isMap && !object.contains("set")) {
      continue;
    }
    const json& set = object[isMap ? "map" : "set"];
    const std::string name = set.value("name", "");
    if (name == sets::kState || !set.contains("elem")) {
      continue;
    }
    for (const json& entry : set["elem"]) {
      Element element = parseElement(entry, isMap);
      std::string id = canonicalText(element.key);
      elements.insert_or_assign({name, std::move(id)}, std::move(element));
    }
  }
  return elements;
}

ElementDiff difference(const Elements& actual, const Elements& wanted) {
  ElementDiff diff;
  for (const auto& [id, element] : actual) {
    const auto match = wanted.find(id);
    if (match == wanted.end() || !same(element, match->second)) {
      diff.removed.emplace(id, element);
    }
  }
  for (const auto& [id, element] : wanted) {
    const auto match = actual.find(id);
    if (match == actual.end() || !same(element, match->second)) {
      diff.added.emplace(id, element);
    }
  }
  return diff;
}

}  // namespace adit::nat

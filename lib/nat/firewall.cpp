#include "nat/firewall.hpp"

#include <algorithm>
#include <optional>

#include "nat/blame.hpp"
#include "nat/conntrack.hpp"
#include "nat/nft.hpp"
#include "nat/ruleset.hpp"

namespace adit::nat {
namespace {

using nlohmann::json;

/// The kernel's table, as far as it matters for what to do about it.
struct ActualTable {
  bool present = false;
  /// Its rules are those of the spec, and as they were right after they were installed.
  bool rulesMatch = false;
  Elements elements;
};

Elements wantedElements(const RulesetSpec& spec) {
  return spec.publicInterfaces.empty() ? Elements{} : elementsOf(spec);
}

std::vector<TouchedPorts> touchedBy(const ElementDiff& diff) {
  std::vector<TouchedPorts> touched;
  for (const Elements* elements : {&diff.removed, &diff.added}) {
    for (const auto& [id, element] : *elements) {
      const TouchedPorts ports{element.protocol, element.firstPort, element.lastPort};
      if (std::ranges::none_of(touched, [&](const TouchedPorts& other) {
            return other.protocol == ports.protocol && other.first <= ports.first &&
                   other.last >= ports.last;
          })) {
        touched.push_back(ports);
      }
    }
  }
  return touched;
}

Error joined(const std::vector<Error>& errors) {
  Error all = errors.front();
  for (std::size_t i = 1; i < errors.size(); ++i) {
    all.message += "\n" + errors[i].message;
  }
  return all;
}

}  // namespace

class KernelFirewall::State {
 public:
  explicit State(Nft nft) : nft_(std::move(nft)) {}

  Result<ActualTable> read(const RulesetSpec& spec) {
    auto listing = nft_.listTable(spec.tableName());
    if (!listing) {
      return tl::unexpected(listing.error());
    }
    ActualTable actual;
    if (*listing) {
      actual.present = true;
      actual.rulesMatch =
          markOfListing(**listing) == TableMark{hashOfStatic(spec), hashOfListing(**listing)};
      actual.elements = elementsOfListing(**listing);
    }
    return actual;
  }

  /// A transaction is committed whole or not at all: when it is refused the old table stays.
  Result<void> install(const RulesetSpec& spec) {
    if (auto result = nft_.apply(buildRuleset(spec)); !result) {
      return tl::unexpected(blame(spec, result.error()));
    }
    const auto listing = nft_.listTable(spec.tableName());
    if (!listing) {
      return tl::unexpected(listing.error());
    }
    if (!*listing) {
      return fail("table {} was deleted by another program while it was being installed",
                  spec.tableName());
    }
    return nft_.apply(buildMark(spec.tableName(), {hashOfStatic(spec), hashOfListing(**listing)}));
  }

  Result<void> apply(const json& transaction) { return nft_.apply(transaction); }
  Result<std::optional<json>> list(std::string_view table) { return nft_.listTable(table); }

 private:
  /// nft does not say which element it refuses.
  Error blame(const RulesetSpec& spec, const Error& error) {
    RulesetSpec part = spec;
    const auto refused = firstRefused(spec.mappings.size(), [&](std::size_t count) {
      part.mappings.assign(spec.mappings.begin(),
                           spec.mappings.begin() + static_cast<std::ptrdiff_t>(count));
      return nft_.dryRun(buildRuleset(part)).has_value();
    });
    if (!refused) {
      return error;
    }
    const Mapping& culprit = spec.mappings[*refused];
    return Error{
        fmt::format("{}{}mapping {}: {}", culprit.location, culprit.location.empty() ? "" : ": ",
                    culprit.listenText(), error.message),
        error.code};
  }

  Nft nft_;
};

namespace {

void cut(const RulesetSpec& spec, const std::vector<TouchedPorts>& touched,
         FirewallChange& change) {
  if (touched.empty()) {
    return;
  }
  const auto host = hostAddresses(spec.interface);
  const auto count = host ? cutConnections(spec, touched, *host)
                          : Result<std::size_t>(tl::unexpected(host.error()));
  if (count) {
    change.connectionsCut = *count;
  } else {
    change.warnings.push_back(fmt::format(
        "{}; connections that are open now may keep their old way", count.error().message));
  }
}

}  // namespace

KernelFirewall::KernelFirewall(std::unique_ptr<State> state) : state_(std::move(state)) {}

KernelFirewall::~KernelFirewall() = default;

Result<std::unique_ptr<KernelFirewall>> KernelFirewall::open() {
  auto nft = Nft::open();
  if (!nft) {
    return tl::unexpected(nft.error());
  }
  return std::unique_ptr<KernelFirewall>(
      new KernelFirewall(std::make_unique<State>(std::move(*nft))));
}

Result<FirewallChange> KernelFirewall::apply(const RulesetSpec& spec) {
  if (spec.empty()) {
    return remove(spec.interface);
  }
  if (const auto errors = validate(spec); !errors.empty()) {
    return tl::unexpected(joined(errors));
  }
  const auto actual = state_->read(spec);
  if (!actual) {
    return tl::unexpected(actual.error());
  }
  const Elements wanted = wantedElements(spec);
  const ElementDiff diff = difference(actual->elements, wanted);
  FirewallChange change;
  if (actual->rulesMatch && diff.empty()) {
    return change;
  }
  change.elementsAdded = diff.added.size();
  change.elementsRemoved = diff.removed.size();
  if (actual->rulesMatch && state_->apply(buildElementUpdate(spec.tableName(), diff))) {
    change.kind = FirewallChange::Kind::Updated;
    cut(spec, touchedBy(diff), change);
    return change;
  }
  // Also when the update was refused: somebody may have flushed the table after it was read.
  if (auto result = state_->install(spec); !result) {
    return tl::unexpected(result.error());
  }
  change.kind = actual->present ? FirewallChange::Kind::Replaced : FirewallChange::Kind::Installed;
  // Other rules (another public NIC) may decide otherwise about any mapping.
  cut(spec, touchedBy({diff.removed, wanted}), change);
  return change;
}

Result<bool> KernelFirewall::isApplied(const RulesetSpec& spec) {
  const auto actual = state_->read(spec);
  if (!actual) {
    return tl::unexpected(actual.error());
  }
  if (spec.empty()) {
    return !actual->present;
  }
  return actual->rulesMatch && difference(actual->elements, wantedElements(spec)).empty();
}

Result<FirewallChange> KernelFirewall::remove(std::string_view interface) {
  RulesetSpec nothing;
  nothing.interface = interface;
  const auto listing = state_->list(nothing.tableName());
  if (!listing) {
    return tl::unexpected(listing.error());
  }
  FirewallChange change;
  if (!*listing) {
    return change;
  }
  const ElementDiff diff = difference(elementsOfListing(**listing), {});
  if (auto result = state_->apply(buildRemoval(nothing.tableName())); !result) {
    return tl::unexpected(result.error());
  }
  change.kind = FirewallChange::Kind::Removed;
  change.elementsRemoved = diff.removed.size();
  cut(nothing, touchedBy(diff), change);
  return change;
}

}  // namespace adit::nat

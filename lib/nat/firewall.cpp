#include "nat/firewall.hpp"

#include <net/if.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
#include <optional>

#include "nat/blame.hpp"
#include "nat/conntrack.hpp"
#include "nat/nft.hpp"
#include "nat/obstacles.hpp"
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

std::vector<TouchedPorts> touchedBy(const ElementDiff& diff) {
  std::vector<TouchedPorts> touched;
  for (const Elements* elements : {&diff.removed, &diff.added}) {
    for (const auto& [id, element] : *elements) {
      // Those of targets are not about ports of the public side.
      if (element.protocol == 0 || id.first.starts_with(sets::kMasked) ||
          id.first.starts_with(sets::kExposed)) {
        continue;
      }
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
  State(Nft nft, const KernelFeatures& atMost) : nft_(std::move(nft)), atMost_(atMost) {
    if (auto meter = UsageMeter::open()) {
      meter_ = std::move(*meter);
    }
  }

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
    // An interface may have vanished since; all works without a flow table, and the next run looks
    // again.
    if (spec.offload) {
      (void)nft_.apply(offloadCommands(spec));
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
  Result<void> renewOffload(const RulesetSpec& spec) { return nft_.apply(offloadRenewal(spec)); }
  std::vector<std::string> obstacles(const RulesetSpec& spec) {
    const bool asked = !spec.mappings.empty() || spec.exposure;
    const auto chains = asked ? nft_.listChains() : json::object();
    std::vector<std::string> texts;
    if (!chains) {
      return texts;
    }
    for (const Obstacle& obstacle : findObstacles(spec, *chains, [this](const ChainName& name) {
           return nft_.listChain(name.family, name.table, name.chain).value_or(json());
         })) {
      texts.push_back(obstacle.toString());
    }
    return texts;
  }

  /// The spec without what this kernel cannot do.
  RulesetSpec usable(RulesetSpec spec) {
    if (spec.answers && !knowsUnboundSockets()) {
      spec.answers.reset();
    }
    spec.offload = !spec.mappings.empty() && interfacesExist(spec) && knowsFlowTables();
    return spec;
  }

  UsageMeter* meter() { return meter_.get(); }

  Result<std::optional<json>> list(std::string_view table) { return nft_.listTable(table); }

 private:
  static bool interfacesExist(const RulesetSpec& spec) {
    return ::if_nametoindex(spec.interface.c_str()) != 0 &&
           std::ranges::all_of(spec.publicInterfaces, [](const std::string& name) {
             return ::if_nametoindex(name.c_str()) != 0;
           });
  }

  bool knowsFlowTables() {
    if (!flowTables_) {
      flowTables_ = atMost_.flowTables && nft_.dryRun(flowTableProbe()).has_value();
    }
    return *flowTables_;
  }

  bool knowsUnboundSockets() {
    if (!unboundSockets_) {
      const auto probed = nft_.dryRun(buildSocketProbe());
      if (!probed && probed.error().code == EPERM) {
        return true;
      }
      unboundSockets_ = atMost_.unboundSockets && probed.has_value();
    }
    return *unboundSockets_;
  }

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
  KernelFeatures atMost_;
  /// Once they are known.
  std::optional<bool> unboundSockets_;
  std::optional<bool> flowTables_;
  std::unique_ptr<UsageMeter> meter_;
};

namespace {

constexpr std::string_view kNoUnboundSockets =
    "this kernel cannot tell which UDP services are bound to no address (nft_socket, Linux 5.11): "
    "behind mappings with Source = preserve, bind them to the tunnel's address";

void note(const Result<std::size_t>& cut, FirewallChange& change) {
  if (cut) {
    change.connectionsCut += *cut;
  } else {
    change.warnings.push_back(fmt::format(
        "{}; connections that are open now may keep their old way", cut.error().message));
  }
}

bool isAnswer(const Elements::value_type& entry) {
  return entry.first.first.starts_with(sets::kAnswer);
}

void cutMasked(const ElementDiff& diff, FirewallChange& change) {
  for (const Elements* elements : {&diff.removed, &diff.added}) {
    for (const auto& [id, element] : *elements) {
      if (!id.first.starts_with(sets::kMasked) || !element.key.contains("concat")) {
        continue;
      }
      const json& parts = element.key["concat"];
      const auto target = parts.empty() || !parts.back().is_string()
                              ? tl::unexpected(Error{})
                              : IpAddress::parse(parts.back().get<std::string>());
      if (target) {
        note(cutTarget(*target, {element.protocol, element.firstPort, element.lastPort}), change);
      }
    }
  }
}

/// Datagrams of a flow that is tracked already would not be translated otherwise.
void cutAnswers(const ElementDiff& diff, FirewallChange& change) {
  std::vector<AnswerPath> paths;
  for (const Elements* elements : {&diff.removed, &diff.added}) {
    for (const auto& entry : *elements) {
      const Element& element = entry.second;
      if (!isAnswer(entry) || !element.key.is_string() || !element.value.is_string()) {
        continue;
      }
      const auto tunnel = IpAddress::parse(element.key.get<std::string>());
      const auto home = IpAddress::parse(element.value.get<std::string>());
      if (tunnel && home) {
        paths.push_back({*tunnel, *home});
      }
    }
  }
  note(cutAnswers(paths), change);
}

/// A mapping has got a rate, or lost it.
bool paces(const ElementDiff& diff) {
  return std::ranges::any_of(std::array{&diff.removed, &diff.added}, [](const Elements* elements) {
    return std::ranges::any_of(*elements, [](const Elements::value_type& entry) {
      return entry.first.first.starts_with(sets::kPaced);
    });
  });
}

void cut(const RulesetSpec& spec, const std::vector<TouchedPorts>& touched,
         FirewallChange& change) {
  if (touched.empty()) {
    return;
  }
  const auto host = hostAddresses(spec.interface);
  const auto count = host ? cutConnections(spec, touched, *host)
                          : Result<std::size_t>(tl::unexpected(host.error()));
  note(count, change);
}

}  // namespace

KernelFirewall::KernelFirewall(std::unique_ptr<State> state) : state_(std::move(state)) {}

KernelFirewall::~KernelFirewall() = default;

Result<std::unique_ptr<KernelFirewall>> KernelFirewall::open(const KernelFeatures& atMost) {
  auto nft = Nft::open();
  if (!nft) {
    return tl::unexpected(nft.error());
  }
  return std::unique_ptr<KernelFirewall>(
      new KernelFirewall(std::make_unique<State>(std::move(*nft), atMost)));
}

Result<FirewallChange> KernelFirewall::apply(const RulesetSpec& wanted) {
  if (wanted.empty()) {
    return remove(wanted.interface);
  }
  const RulesetSpec spec = state_->usable(wanted);
  auto change = applyUsable(spec);
  if (change) {
    if (state_->meter() != nullptr) {
      state_->meter()->setMappings(spec.mappings);
    }
    std::ranges::move(state_->obstacles(spec), std::back_inserter(change->warnings));
  }
  if (change && wanted.answers && !spec.answers) {
    change->warnings.emplace_back(kNoUnboundSockets);
  }
  return change;
}

Result<FirewallChange> KernelFirewall::applyUsable(const RulesetSpec& spec) {
  if (const auto errors = validate(spec); !errors.empty()) {
    return tl::unexpected(joined(errors));
  }
  const auto actual = state_->read(spec);
  if (!actual) {
    return tl::unexpected(actual.error());
  }
  const Elements wanted = elementsOf(spec);
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
    cutAnswers(diff, change);
    cutMasked(diff, change);
    if (spec.offload && (change.connectionsCut != 0 || paces(diff))) {
      // What passes by the flow table sees no rules, and the kernel looks only once a second for
      // flows whose connection has gone. All the others take the long way once, and are back.
      (void)state_->renewOffload(spec);
    }
    return change;
  }
  // Also when the update was refused: somebody may have flushed the table after it was read.
  if (auto result = state_->install(spec); !result) {
    return tl::unexpected(result.error());
  }
  change.kind = actual->present ? FirewallChange::Kind::Replaced : FirewallChange::Kind::Installed;
  // Other rules (another public NIC) may decide otherwise about any mapping.
  cut(spec, touchedBy({diff.removed, wanted}), change);
  cutAnswers(diff, change);
  cutMasked(diff, change);
  return change;
}

Result<bool> KernelFirewall::isApplied(const RulesetSpec& wanted) {
  const RulesetSpec spec = state_->usable(wanted);
  const auto actual = state_->read(spec);
  if (!actual) {
    return tl::unexpected(actual.error());
  }
  if (spec.empty()) {
    return !actual->present;
  }
  return actual->rulesMatch && difference(actual->elements, elementsOf(spec)).empty();
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

Result<UsageByMapping> KernelFirewall::usage() {
  return state_->meter() != nullptr ? state_->meter()->usage() : Firewall::usage();
}

int KernelFirewall::descriptor() const {
  return state_->meter() != nullptr ? state_->meter()->descriptor() : -1;
}

void KernelFirewall::takeNotices() {
  if (state_->meter() != nullptr) {
    state_->meter()->collect();
  }
}

}  // namespace adit::nat

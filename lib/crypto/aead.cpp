#include "crypto/aead.hpp"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "crypto/aead_backend.hpp"
#include "crypto/libraries.hpp"

namespace adit::crypto {
namespace {

constexpr const char* kBackendVariable = "ADIT_AEAD_BACKEND";

std::size_t indexOf(AeadBackend backend) {
  return static_cast<std::size_t>(backend);
}

std::optional<AeadBackend> backendFromName(std::string_view name) {
  for (const AeadBackend backend : kAeadBackends) {
    if (aeadBackendName(backend) == name) {
      return backend;
    }
  }
  return std::nullopt;
}

/// A library that passes the known-answer test of a suite, with its greatest speed so far.
struct Candidate {
  Suite suite;
  AeadChoice choice;
  AeadEngine* engine;
  std::unique_ptr<AeadKey> key;
};

std::vector<Candidate> candidatesOf(const AeadEngines& engines) {
  std::vector<Candidate> candidates;
  for (const Suite suite : kSuites) {
    for (const AeadBackend backend : kAeadBackends) {
      AeadEngine* const engine = engines.at(indexOf(backend)).get();
      auto key = makeSelfTestKey(suite, backend);
      if (engine != nullptr && key != nullptr && passesKnownAnswers(*engine, *key)) {
        candidates.push_back({suite, {backend, 0}, engine, std::move(key)});
      }
    }
  }
  return candidates;
}

/// In turns: what slows the machine down for a moment then slows one turn of each, and not the only
/// measurement of one. The greatest speed counts, since other work only ever takes some away.
void measure(std::vector<Candidate>& candidates) {
  constexpr int kTurns = 6;
  for (int turn = 0; turn < kTurns; ++turn) {
    for (Candidate& candidate : candidates) {
      std::uint32_t& speed = candidate.choice.megabytesPerSecond;
      speed = std::max(speed, measureAead(*candidate.engine, *candidate.key));
    }
    std::this_thread::yield();
  }
}

/// The fastest, or the preferred one if it is there.
std::optional<AeadChoice> chooseBackend(const std::vector<Candidate>& candidates, Suite suite,
                                        std::optional<AeadBackend> preferred) {
  std::optional<AeadChoice> best;
  for (const Candidate& candidate : candidates) {
    if (candidate.suite != suite) {
      continue;
    }
    if (candidate.choice.backend == preferred) {
      return candidate.choice;
    }
    if (!best || candidate.choice.megabytesPerSecond > best->megabytesPerSecond) {
      best = candidate.choice;
    }
  }
  return best;
}

/// Chosen on the first call, for the life of the process.
const Result<AeadTable>& chosenBackends() {
  static const Result<AeadTable> table = [] {
    const char* const preferred = std::getenv(kBackendVariable);
    return chooseAeadBackends(preferred == nullptr ? "" : preferred);
  }();
  return table;
}

}  // namespace

std::string_view aeadBackendName(AeadBackend backend) {
  constexpr std::array<std::string_view, kAeadBackends.size()> kNames{"ipsec-mb", "openssl",
                                                                      "sodium"};
  return kNames.at(indexOf(backend));
}

const AeadBackendOperations& aeadOperations(AeadBackend backend) {
  static constexpr std::array<const AeadBackendOperations*, kAeadBackends.size()> kOperations{
      &kIpsecMbOperations, &kOpenSslOperations, &kSodiumOperations};
  return *kOperations.at(indexOf(backend));
}

AeadEngines makeAeadEngines() {
  AeadEngines engines;
  for (const AeadBackend backend : kAeadBackends) {
    engines.at(indexOf(backend)) = aeadOperations(backend).makeEngine();
  }
  return engines;
}

Result<AeadTable> chooseAeadBackends(std::string_view preferredName) {
  const std::optional<AeadBackend> preferred = backendFromName(preferredName);
  if (!preferred && !preferredName.empty()) {
    return fail("{}={}: no such backend; use ipsec-mb, openssl or sodium", kBackendVariable,
                preferredName);
  }
  const AeadEngines engines = makeAeadEngines();
  std::vector<Candidate> candidates = candidatesOf(engines);
  measure(candidates);
  AeadTable table{};
  for (const Suite suite : kSuites) {
    const std::optional<AeadChoice> choice = chooseBackend(candidates, suite, preferred);
    if (!choice) {
      return fail("no library passes the known-answer test of {} on this machine",
                  suiteName(suite));
    }
    table.at(static_cast<std::size_t>(suite)) = *choice;
  }
  return table;
}

struct AeadWorker::State {
  AeadEngines engines = makeAeadEngines();

  AeadEngine& engineOf(const AeadKey& key) {
    AeadEngine* const engine = engines.at(indexOf(key.backend())).get();
    requireAead(engine != nullptr, "key of a backend that this thread could not start");
    return *engine;
  }
};

AeadWorker::AeadWorker() : state_(std::make_unique<State>()) {}

AeadWorker::~AeadWorker() = default;

void AeadWorker::seal(const AeadKey& key, std::span<AeadJob> jobs) {
  state_->engineOf(key).seal(key, jobs);
}

std::size_t AeadWorker::open(const AeadKey& key, std::span<AeadJob> jobs) {
  state_->engineOf(key).open(key, jobs);
  return static_cast<std::size_t>(
      std::count_if(jobs.begin(), jobs.end(), [](const AeadJob& job) { return job.ok; }));
}

Result<void> initializeAead() {
  const Result<AeadTable>& table = chosenBackends();
  if (!table) {
    return tl::unexpected(table.error());
  }
  return {};
}

const AeadTable& aeadChoices() {
  const Result<AeadTable>& table = chosenBackends();
  requireAead(table.has_value(), "aeadChoices() without a successful initializeAead()");
  return *table;
}

std::unique_ptr<AeadKey> makeAeadKey(Suite suite, const Secret<32>& key) {
  return makeAeadKey(suite, key, aeadChoices().at(static_cast<std::size_t>(suite)).backend);
}

std::unique_ptr<AeadKey> makeAeadKey(Suite suite, const Secret<32>& key, AeadBackend backend) {
  return aeadOperations(backend).makeKey(suite, key, NonceSalt{});
}

}  // namespace adit::crypto

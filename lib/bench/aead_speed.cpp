#include "bench/aead_speed.hpp"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "crypto/random.hpp"

namespace adit::bench {
namespace {

using Time = std::chrono::steady_clock;
using crypto::AeadJob;
using crypto::AeadKey;
using crypto::AeadWorker;

constexpr std::size_t kLeastSamples = 3;
constexpr std::size_t kCacheLine = 64;

template <typename Run>
AeadCost measure(const AeadOptions& options, Run run) {
  std::vector<double> samples;
  const auto end = Time::now() + std::chrono::duration<double>(options.seconds);
  while (samples.size() < kLeastSamples || Time::now() < end) {
    const auto start = Time::now();
    run();
    const std::chrono::duration<double, std::nano> elapsed = Time::now() - start;
    samples.push_back(elapsed.count() / static_cast<double>(options.batch));
  }
  std::sort(samples.begin(), samples.end());
  return {samples[samples.size() / 2], samples.front()};
}

AeadRow measureRow(const AeadOptions& options, AeadWorker& worker, const AeadKey& key) {
  const std::size_t stride =
      (options.packet + ADIT_TAG_LENGTH + kCacheLine - 1) / kCacheLine * kCacheLine;
  std::vector<std::uint8_t> plain(options.batch * stride);
  std::vector<std::uint8_t> sealed(options.batch * stride);
  crypto::SystemRandom().fill(plain);
  std::vector<AeadJob> sealing(options.batch);
  std::vector<AeadJob> opening(options.batch);
  for (std::size_t i = 0; i < options.batch; ++i) {
    sealing[i] = {&plain[i * stride], &sealed[i * stride], options.packet, i};
    opening[i] = {&sealed[i * stride], &plain[i * stride], options.packet, i};
  }
  AeadRow row;
  row.suite = key.suite();
  row.backend = key.backend();
  const auto& choice = crypto::aeadChoices().at(static_cast<std::size_t>(row.suite));
  row.chosen = choice.backend == row.backend;
  row.seal = measure(options, [&] { worker.seal(key, sealing); });
  row.open = measure(options, [&] {
    if (worker.open(key, opening) != opening.size()) {
      throw std::runtime_error("a packet did not open");
    }
  });
  return row;
}

Secret<32> randomSecret() {
  Secret<32> secret;
  crypto::SystemRandom().fill(secret.bytes());
  return secret;
}

}  // namespace

double megabytesPerSecond(const AeadOptions& options, const AeadCost& cost) {
  return options.packet / cost.median * 1e3;
}

std::vector<AeadRow> measureAeads(const AeadOptions& options) {
  AeadWorker worker;
  const Secret<32> secret = randomSecret();
  std::vector<AeadRow> rows;
  for (const crypto::Suite suite : crypto::kSuites) {
    for (const crypto::AeadBackend backend : crypto::kAeadBackends) {
      if (const auto key = makeAeadKey(suite, secret, backend); key != nullptr) {
        rows.push_back(measureRow(options, worker, *key));
      }
    }
  }
  return rows;
}

std::string formatAeads(const AeadOptions& options, const std::vector<AeadRow>& rows) {
  std::string text = fmt::format(
      "{}-byte packets in batches of {}, one core; medians (fastest)\n"
      "{:<18} {:<9}  {:<21}  {}\n",
      options.packet, options.batch, "suite", "backend", "seal ns      MB/s", "open ns      MB/s");
  for (const AeadRow& row : rows) {
    text += fmt::format("{:<18} {:<9}  {:5.0f} ({:5.0f}) {:6.0f}  {:5.0f} ({:5.0f}) {:6.0f}{}\n",
                        crypto::suiteName(row.suite), crypto::aeadBackendName(row.backend),
                        row.seal.median, row.seal.fastest, megabytesPerSecond(options, row.seal),
                        row.open.median, row.open.fastest, megabytesPerSecond(options, row.open),
                        row.chosen ? "  chosen" : "");
  }
  return text;
}

nlohmann::ordered_json aeadsToJson(const AeadOptions& options, const std::vector<AeadRow>& rows) {
  nlohmann::ordered_json json{{"packet_bytes", options.packet},
                              {"batch", options.batch},
                              {"results", nlohmann::ordered_json::array()}};
  for (const AeadRow& row : rows) {
    json["results"].push_back({{"suite", crypto::suiteName(row.suite)},
                               {"backend", crypto::aeadBackendName(row.backend)},
                               {"chosen", row.chosen},
                               {"seal_ns", row.seal.median},
                               {"seal_ns_fastest", row.seal.fastest},
                               {"seal_mb_per_s", megabytesPerSecond(options, row.seal)},
                               {"open_ns", row.open.median},
                               {"open_ns_fastest", row.open.fastest},
                               {"open_mb_per_s", megabytesPerSecond(options, row.open)}});
  }
  return json;
}

double chosenAeadSpeed(crypto::Suite suite, const AeadOptions& options) {
  AeadWorker worker;
  const auto key = crypto::makeAeadKey(suite, randomSecret());
  const AeadRow row = measureRow(options, worker, *key);
  return std::min(megabytesPerSecond(options, row.seal), megabytesPerSecond(options, row.open));
}

}  // namespace adit::bench

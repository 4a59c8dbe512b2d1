// bench-aead: what each AEAD implementation costs per packet on one core of this machine.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <vector>

#include "crypto/aead.hpp"
#include "crypto/random.hpp"

using namespace adit;
using namespace adit::crypto;

namespace {

using Time = std::chrono::steady_clock;

struct Options {
  std::uint32_t packet = 1420;
  std::size_t batch = 45;
  double seconds = 0.2;
  bool json = false;
};

/// Nanoseconds per packet, the median of many batches; `fastest` is what an idle machine does.
struct Cost {
  double median;
  double fastest;
};

struct Row {
  Suite suite;
  AeadBackend backend;
  bool chosen;
  Cost seal;
  Cost open;
};

template <typename Run>
Cost measure(const Options& options, Run run) {
  std::vector<double> samples;
  const auto end = Time::now() + std::chrono::duration<double>(options.seconds);
  while (samples.size() < 3 || Time::now() < end) {
    const auto start = Time::now();
    run();
    const std::chrono::duration<double, std::nano> elapsed = Time::now() - start;
    samples.push_back(elapsed.count() / static_cast<double>(options.batch));
  }
  std::sort(samples.begin(), samples.end());
  return {samples[samples.size() / 2], samples.front()};
}

Row measureRow(const Options& options, AeadWorker& worker, const AeadKey& key) {
  const std::size_t stride = (options.packet + ADIT_TAG_LENGTH + 63) / 64 * 64;
  std::vector<std::uint8_t> plain(options.batch * stride);
  std::vector<std::uint8_t> sealed(options.batch * stride);
  SystemRandom().fill(plain);
  std::vector<AeadJob> sealing(options.batch);
  std::vector<AeadJob> opening(options.batch);
  for (std::size_t i = 0; i < options.batch; ++i) {
    sealing[i] = {&plain[i * stride], &sealed[i * stride], options.packet, i};
    opening[i] = {&sealed[i * stride], &plain[i * stride], options.packet, i};
  }
  Row row{};
  row.suite = key.suite();
  row.backend = key.backend();
  row.chosen = aeadChoices().at(static_cast<std::size_t>(row.suite)).backend == row.backend;
  row.seal = measure(options, [&] { worker.seal(key, sealing); });
  row.open = measure(options, [&] {
    if (worker.open(key, opening) != opening.size()) {
      throw std::runtime_error("a packet did not open");
    }
  });
  return row;
}

std::vector<Row> measureAll(const Options& options) {
  AeadWorker worker;
  Secret<32> secret;
  SystemRandom().fill(secret.bytes());
  std::vector<Row> rows;
  for (const Suite suite : kSuites) {
    for (const AeadBackend backend : kAeadBackends) {
      if (const auto key = makeAeadKey(suite, secret, backend); key != nullptr) {
        rows.push_back(measureRow(options, worker, *key));
      }
    }
  }
  return rows;
}

/// 10^6 bytes of plaintext per second.
double megabytesPerSecond(const Options& options, const Cost& cost) {
  return options.packet / cost.median * 1e3;
}

void printTable(const Options& options, const std::vector<Row>& rows, double initialization) {
  std::printf("%u-byte packets in batches of %zu, one core; medians (fastest)\n", options.packet,
              options.batch);
  std::printf("%-18s %-9s  %-21s  %-21s\n", "suite", "backend", "seal ns      MB/s",
              "open ns      MB/s");
  for (const Row& row : rows) {
    std::printf("%-18s %-9s  %5.0f (%5.0f) %6.0f  %5.0f (%5.0f) %6.0f%s\n",
                std::string(suiteName(row.suite)).c_str(),
                std::string(aeadBackendName(row.backend)).c_str(), row.seal.median,
                row.seal.fastest, megabytesPerSecond(options, row.seal), row.open.median,
                row.open.fastest, megabytesPerSecond(options, row.open),
                row.chosen ? "  chosen" : "");
  }
  std::printf("tests and choice at start took %.1f ms\n", initialization * 1e3);
}

void printJson(const Options& options, const std::vector<Row>& rows, double initialization) {
  nlohmann::json list = nlohmann::json::array();
  for (const Row& row : rows) {
    list.push_back({{"suite", suiteName(row.suite)},
                    {"backend", aeadBackendName(row.backend)},
                    {"chosen", row.chosen},
                    {"seal_ns", row.seal.median},
                    {"seal_ns_fastest", row.seal.fastest},
                    {"seal_mb_per_s", megabytesPerSecond(options, row.seal)},
                    {"open_ns", row.open.median},
                    {"open_ns_fastest", row.open.fastest},
                    {"open_mb_per_s", megabytesPerSecond(options, row.open)}});
  }
  const nlohmann::json report{{"packet_bytes", options.packet},
                              {"batch", options.batch},
                              {"initialization_ms", initialization * 1e3},
                              {"results", list}};
  std::printf("%s\n", report.dump(2).c_str());
}

int run(const Options& options) {
  const auto start = Time::now();
  if (const Result<void> ready = initializeAead(); !ready) {
    std::fprintf(stderr, "bench-aead: %s\n", ready.error().message.c_str());
    return 1;
  }
  const double initialization = std::chrono::duration<double>(Time::now() - start).count();
  const std::vector<Row> rows = measureAll(options);
  (options.json ? printJson : printTable)(options, rows, initialization);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Cost of each transport cipher and implementation, per packet and one core.");
  app.add_option("--packet", options.packet, "Bytes of plaintext in a packet")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  app.add_option("--batch", options.batch, "Packets handed over at once")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--seconds", options.seconds, "Time for each cell of the table")
      ->check(CLI::Range(0.01, 60.0))
      ->capture_default_str();
  app.add_flag("--json", options.json, "Print one JSON object");
  CLI11_PARSE(app, argc, argv);
  try {
    return run(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench-aead: %s\n", error.what());
    return 1;
  }
}

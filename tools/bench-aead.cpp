// bench-aead: what each AEAD implementation costs per packet on one core of this machine.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "bench/aead_speed.hpp"

using namespace adit;

namespace {

using Time = std::chrono::steady_clock;

struct Options {
  bench::AeadOptions measuring;
  bool json = false;
};

int run(const Options& options) {
  const auto start = Time::now();
  if (const Result<void> ready = crypto::initializeAead(); !ready) {
    std::fprintf(stderr, "bench-aead: %s\n", ready.error().message.c_str());
    return 1;
  }
  const std::chrono::duration<double, std::milli> initialization = Time::now() - start;
  const auto rows = bench::measureAeads(options.measuring);
  if (options.json) {
    auto report = bench::aeadsToJson(options.measuring, rows);
    report["initialization_ms"] = initialization.count();
    std::printf("%s\n", report.dump(2).c_str());
  } else {
    std::printf("%stests and choice at start took %.1f ms\n",
                bench::formatAeads(options.measuring, rows).c_str(), initialization.count());
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Cost of each transport cipher and implementation, per packet and one core.");
  app.add_option("--packet", options.measuring.packet, "Bytes of plaintext in a packet")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  app.add_option("--batch", options.measuring.batch, "Packets handed over at once")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--seconds", options.measuring.seconds, "Time for each cell of the table")
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

// Runs a fuzz target without libFuzzer: every seed as it is, then a fixed number of mutations.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Input = std::vector<std::uint8_t>;

std::vector<Input> readSeeds(const std::filesystem::path& folder) {
  // Sorted by std::filesystem::path, so that a run can be repeated.
  std::vector<std::filesystem::path> paths;
  if (std::filesystem::is_directory(folder)) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      paths.push_back(entry.path());
    }
  }
  std::sort(paths.begin(), paths.end());
  std::vector<Input> seeds{Input{}};
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    seeds.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return seeds;
}

/// One to four small changes: flip, insert, remove, repeat, cut, join with another seed.
Input mutate(const std::vector<Input>& seeds, std::mt19937& random) {
  const auto below = [&](std::size_t limit) { return limit == 0 ? 0 : random() % limit; };
  Input input = seeds[below(seeds.size())];
  for (std::size_t changes = 1 + below(4); changes > 0; --changes) {
    const auto at = input.begin() + static_cast<std::ptrdiff_t>(below(input.size()));
    const auto byte = static_cast<std::uint8_t>(random());
    switch (below(6)) {
      case 0:
        if (!input.empty()) {
          *at ^= static_cast<std::uint8_t>(1U << below(8));
        }
        break;
      case 1:
        input.insert(at, byte);
        break;
      case 2:
        if (!input.empty()) {
          input.erase(at);
        }
        break;
      case 3:
        input.insert(input.end(), 1 + below(300), byte);
        break;
      case 4:
        input.resize(below(input.size() + 1));
        break;
      default: {
        const Input& other = seeds[below(seeds.size())];
        input.insert(input.end(), other.begin(), other.end());
        break;
      }
    }
  }
  return input;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s SEED-FOLDER MUTATIONS\n", argv[0]);
    return 2;
  }
  const std::vector<Input> seeds = readSeeds(argv[1]);
  for (const Input& seed : seeds) {
    LLVMFuzzerTestOneInput(seed.data(), seed.size());
  }
  std::mt19937 random(1);  // NOLINT: the same mutations at every run
  const long mutations = std::strtol(argv[2], nullptr, 10);
  for (long i = 0; i < mutations; ++i) {
    const Input input = mutate(seeds, random);
    LLVMFuzzerTestOneInput(input.data(), input.size());
  }
  std::printf("%zu seeds, %ld mutations\n", seeds.size(), mutations);
  return 0;
}

// adit_manual [--write] SOURCE: compares what manual pages and completions say with the programs'
// own tables, or brings them in line.
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <functional>
#include <stdexcept>

#include "blocks.hpp"
#include "cli/program.hpp"
#include "completions.hpp"
#include "config/schema.hpp"
#include "daemon/arguments.hpp"
#include "pages.hpp"
#include "util/file.hpp"

namespace {

using namespace adit;
namespace fs = std::filesystem;

struct Block {
  std::string file;
  std::string name;
  std::string content;
};

std::string contentOf(const fs::path& path) {
  auto content = readFile(path);
  if (!content) throw std::runtime_error(content.error().message);
  return std::move(*content);
}

std::vector<Block> blocksOf(const fs::path& source) {
  CLI::App program;
  cli::Action action;
  cli::buildCommandLine(program, action);
  CLI::App daemonProgram;
  daemon::Arguments arguments;
  daemon::describeArguments(daemonProgram, arguments);
  const auto commands = manual::commandsOf(program);
  std::vector<Block> blocks{
      {"docs/man/adit.8", "commands", manual::commandsSection(commands)},
      {"docs/man/aditd.8", "options",
       manual::optionsSection(manual::commandsOf(daemonProgram).front())},
      {"scripts/completion/adit.bash", "tables", manual::bashTables(commands)},
      {"scripts/completion/_adit", "tables", manual::zshTables(commands)},
      {"scripts/completion/adit.fish", "tables", manual::fishTables(commands)},
  };
  const std::string configuration = contentOf(source / "docs/configuration.md");
  for (const std::string_view section : config::sectionNames()) {
    blocks.push_back({"docs/man/adit.conf.5", fmt::format("keys of [{}]", section),
                      manual::keysSection(configuration, section)});
  }
  return blocks;
}

/// False for a file that says something else and was not written.
bool settle(const fs::path& source, const Block& block, bool write) {
  const fs::path path = source / block.file;
  const std::string before = contentOf(path);
  const std::string after = manual::withBlock(before, block.name, block.content);
  if (before == after) return true;
  if (!write) {
    fmt::print(stderr, "{}: \"{}\" is not what the programs say; run: adit_manual --write {}\n",
               block.file, block.name, source.string());
    return false;
  }
  constexpr mode_t kMode = 0644;
  const auto written = replaceFile(path, after, kMode, Durability::Process);
  if (!written) throw std::runtime_error(written.error().message);
  fmt::print("{}: {}\n", block.file, block.name);
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Compares manual pages and completions with the programs' own tables");
  std::string source;
  bool write = false;
  app.add_option("SOURCE", source, "the top folder of adit's source")->required();
  app.add_flag("--write", write, "bring them in line");
  CLI11_PARSE(app, argc, argv);
  try {
    bool agree = true;
    for (const Block& block : blocksOf(source)) {
      agree = settle(source, block, write) && agree;
    }
    return agree ? 0 : 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "adit_manual: {}\n", error.what());
    return 1;
  }
}

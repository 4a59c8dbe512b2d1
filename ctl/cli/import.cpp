// import: a wg-quick file becomes an interface of adit's.
#include <cerrno>
#include <memory>

#include "cli/commands.hpp"
#include "cli/onboarding.hpp"
#include "cli/output.hpp"
#include "config/diagnostics.hpp"
#include "config/file_io.hpp"
#include "config/lexer.hpp"
#include "config/parser.hpp"
#include "control/paths.hpp"
#include "util/file.hpp"

namespace adit::cli {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kFileMode = 0600;

struct ImportArguments {
  std::string file;
  std::string name;
};

/// What is imported, and what was changed on the way.
struct Imported {
  std::string text;
  std::vector<std::string> remarks;
};

/// The text as it is, but for `SaveConfig = true`: wg-quick would rewrite the file at every `down`,
/// adit never does.
Imported imported(std::string_view text) {
  Imported result;
  config::Diagnostics ignored;
  for (const config::Line& line :
       config::lex(text, std::make_shared<const std::string>(), ignored)) {
    const bool saves = line.kind == config::LineKind::Entry &&
                       config::equalIgnoringCase(line.name, "SaveConfig") &&
                       config::equalIgnoringCase(line.value, "true");
    if (saves) {
      result.text += "# adit import: ";
      result.remarks.push_back(fmt::format(
          "line {}, SaveConfig = true, is a comment now: adit never rewrites your file by itself; "
          "`adit save` writes what `adit set` has changed",
          line.number));
    }
    result.text += line.raw;
    result.text += '\n';
  }
  return result;
}

/// Key files are looked for beside the configuration, which has another folder now.
Result<void> checkPaths(const config::Config& config) {
  std::vector<std::string> paths{config.interface.privateKeyFile};
  for (const config::PeerConfig& peer : config.peers) {
    paths.push_back(peer.presharedKeyFile);
  }
  for (const std::string& path : paths) {
    if (!path.empty() && fs::path(path).is_relative()) {
      return fail(
          "{} is a key file beside the configuration; write its whole path and import again", path);
    }
  }
  return {};
}

/// The name of the interface: of --name, else of the file.
Result<control::NamedConfig> destinationOf(const ImportArguments& arguments) {
  std::string name = arguments.name;
  if (name.empty()) {
    const auto own = config::interfaceNameOf(arguments.file);
    if (!own) return fail("{}; name the interface with --name", own.error().message);
    name = *own;
  }
  if (const auto valid = config::checkInterfaceName(name); !valid) {
    return fail("--name {}: {}", name, valid.error().message);
  }
  return control::NamedConfig{name, control::configDirectory() / (name + ".conf")};
}

std::string whatNext(const ImportArguments& arguments, const control::NamedConfig& named,
                     std::size_t peers) {
  const std::string old = fs::path(arguments.file).stem().string();
  return fmt::format(
      "{0}: written ({1} peer{2}); {3} stays as it is\n"
      "To change over, in one line where the tunnel itself brings you here:\n"
      "  systemctl disable wg-quick@{4}; wg-quick down {4}; adit up {5}\n"
      "and for every boot:\n"
      "  systemctl enable adit@{5}\n",
      named.file.string(), peers, peers == 1 ? "" : "s", arguments.file, old, named.interface);
}

int importFile(const ImportArguments& arguments) {
  const auto named = destinationOf(arguments);
  if (!named) return complain(named.error());
  const auto file = config::readFile(arguments.file, config::kMaxFileSize, false);
  if (!file) return complain(wrapError(file.error(), arguments.file).value());
  const Imported content = imported(file->text());
  const config::Outcome outcome = config::parse(content.text, arguments.file);
  for (const config::Diagnostic& diagnostic : outcome.diagnostics) {
    fmt::print(stderr, "{}\n", diagnostic.toString());
  }
  if (!outcome.ok()) return complain("nothing was imported");
  if (const auto sound = checkPaths(*outcome.config); !sound) return complain(sound.error());
  if (const auto made = makeConfigFolder(named->file); !made) return complain(made.error());
  const auto created = createFile(named->file, content.text, kFileMode);
  if (!created && created.error().code == EEXIST) {
    return complain(
        fmt::format("{} is there already; choose another name with --name", named->file.string()));
  }
  if (!created) return complain(created.error());
  for (const std::string& text : content.remarks) {
    remark(text);
  }
  return print(whatNext(arguments, *named, outcome.config->peers.size()));
}

}  // namespace

void addImportCommand(CLI::App& app, Action& action) {
  const auto arguments = std::make_shared<ImportArguments>();
  CLI::App* sub = app.add_subcommand("import", "Make an interface of a wg-quick file");
  sub->add_option("FILE", arguments->file, "such as /etc/wireguard/wg0.conf; it stays as it is")
      ->required();
  sub->add_option("--name", arguments->name, "the interface; without it, the file's name");
  sub->footer(
      "The file is checked as by `adit check` and copied to /etc/adit/NAME.conf, comments "
      "included, "
      "which must not be there yet. Nothing is brought up or down; what to do next is printed.\n"
      "Example:\n"
      "  adit import /etc/wireguard/wg0.conf --name adit0");
  sub->callback([&action, arguments] { action = [arguments] { return importFile(*arguments); }; });
}

}  // namespace adit::cli

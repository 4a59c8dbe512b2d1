#include "cli/program.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "config/diagnostics.hpp"

namespace adit::cli {
namespace {

constexpr const char* kDescription =
    "adit: an encrypted tunnel from a NAS to a public server, and the server's ports through it.\n"
    "Without a command: `adit show`.";

constexpr const char* kFooter =
    "`adit COMMAND --help` tells more. Exit status: 0, or 1 for every failure.\n"
    "Files: /etc/adit/NAME.conf; /run/adit/NAME.sock, .pid, .log of what is up.\n"
    "Examples:\n"
    "  adit check /etc/adit/adit0.conf\n"
    "  adit up adit0\n"
    "  adit status adit0\n"
    "  adit down adit0";

int printVersion() {
  return print("adit " ADIT_VERSION "\n");
}

void addVersionCommand(CLI::App& app, Action& action) {
  app.add_subcommand("version", "Print the version")->callback([&action] {
    action = printVersion;
  });
  app.set_version_flag("-v,--version", "adit " ADIT_VERSION, "Print the version and exit");
}

const CLI::App* findCommand(const CLI::App& app, const std::string& name) {
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (sub->get_name() == name) return sub;
  }
  return nullptr;
}

int complainOfUnknown(const CLI::App& app, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(sub->get_name());
  }
  const std::vector<std::string_view> candidates(names.begin(), names.end());
  const std::string_view meant = config::closest(word, candidates);
  return complain(
      meant.empty()
          ? fmt::format("there is no command \"{}\"; `adit help` lists them", word)
          : fmt::format("there is no command \"{}\"; did you mean `adit {}`?", word, meant));
}

void addHelpCommand(CLI::App& app, Action& action) {
  const auto topic = std::make_shared<std::string>();
  CLI::App* sub = app.add_subcommand("help", "Print the help of a command");
  sub->add_option("COMMAND", *topic, "a command; without it, all commands are listed");
  sub->callback([&app, &action, topic] {
    action = [&app, topic]() -> int {
      if (topic->empty()) return print(app.help());
      const CLI::App* found = findCommand(app, *topic);
      return found != nullptr ? print(found->help("adit")) : complainOfUnknown(app, *topic);
    };
  });
}

void addCommands(CLI::App& app, Action& action) {
  addInitCommand(app, action);
  addInviteCommand(app, action);
  addJoinCommand(app, action);
  addLifecycleCommands(app, action);
  addStatusCommand(app, action);
  addMapCommands(app, action);
  addPeerCommands(app, action);
  addExportCommand(app, action);
  addImportCommand(app, action);
  addTraceCommand(app, action);
  addCheckCommands(app, action);
  addTuneCommands(app, action);
  addDoctorCommand(app, action);
  addMonitorCommand(app, action);
  addBenchCommands(app, action);
  addShowCommands(app, action);
  addSetCommands(app, action);
  addSaveCommand(app, action);
  addKeyCommands(app, action);
  addVersionCommand(app, action);
  addHelpCommand(app, action);
}

/// What the value of an option is called, the same for every command; completions know the words.
struct ValueName {
  std::string_view option;
  const char* value;
};
constexpr auto kValueNames = std::to_array<ValueName>({
    {"address", "ADDRESS"},
    {"allow", "NETWORK"},
    {"allowed-ips", "NETWORKS"},
    {"bandwidth", "RATE"},
    {"batch", "N"},
    {"bind", "ADDRESS"},
    {"compare", "FILE"},
    {"delay", "TIME"},
    {"endpoint", "HOST"},
    {"expires", "TIME"},
    {"html", "FILE"},
    {"interface", "NAME"},
    {"interval", "SECONDS"},
    {"key", "FILE"},
    {"layers", "LAYERS"},
    {"mapped", "TARGET"},
    {"maps", "PORTS"},
    {"name", "NAME"},
    {"nic", "NIC"},
    {"output", "FILE"},
    {"packet", "BYTES"},
    {"port", "PORT"},
    {"public", "NIC"},
    {"rate", "RATE"},
    {"revoke", "PEER"},
    {"root", "FOLDER"},
    {"seconds", "SECONDS"},
    {"source", "preserve|masquerade"},
    {"streams", "N"},
    {"timeout", "SECONDS"},
    {"udp-rate", "RATE"},
});

void nameValues(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_positional()) {
      option->type_name("");
      continue;
    }
    const auto* found = std::ranges::find_if(kValueNames, [&](const ValueName& name) {
      return option->check_lname(std::string(name.option));
    });
    if (found != kValueNames.end() && option->get_items_expected_max() > 0) {
      option->type_name(found->value);
    }
  }
  for (CLI::App* sub : app.get_subcommands([](CLI::App*) { return true; })) {
    nameValues(*sub);
  }
}

int explain(const CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
    // Help or the version was asked for; CLI11 prints the help of the command at hand.
    return app.exit(error) == 0 && std::fflush(stdout) == 0 ? kSuccess : kFailure;
  }
  complain(error.what());
  const auto chosen = app.get_subcommands();
  return complain(chosen.empty() ? "see `adit help`"
                                 : fmt::format("see `adit {} --help`", chosen.front()->get_name()));
}

}  // namespace

void buildCommandLine(CLI::App& app, Action& action) {
  app.name("adit");
  app.description(kDescription);
  app.require_subcommand(0, 1);
  app.get_formatter()->column_width(28);
  addCommands(app, action);
  // Now, so that no command inherits it.
  app.footer(kFooter);
  nameValues(app);
}

int run(int argc, const char* const* argv) {
  CLI::App app;
  Action action = showAll;
  buildCommandLine(app, action);
  // CLI11 would call it an unexpected argument.
  if (argc > 1 && argv[1][0] != '-' && findCommand(app, argv[1]) == nullptr) {
    return complainOfUnknown(app, argv[1]);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return explain(app, error);
  }
  return action();
}

}  // namespace adit::cli

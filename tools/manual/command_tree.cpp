#include "command_tree.hpp"

#include <algorithm>

namespace adit::manual {
namespace {

/// "auto|kernel" of "TEXT:{auto,kernel}", "SECONDS" of "SECONDS:INT in [1 - 3600]".
std::string valueName(const std::string& type) {
  const std::size_t open = type.find('{');
  const std::size_t colon = type.find(':');
  if (open == std::string::npos) return type.substr(0, colon);
  std::string choice = type.substr(open + 1, type.find('}') - open - 1);
  std::ranges::replace(choice, ',', '|');
  return choice;
}

OptionText optionOf(const CLI::Option& option) {
  OptionText text;
  for (const std::string& name : option.get_snames()) {
    text.names += "-" + name + ", ";
  }
  text.longName = option.get_lnames().front();
  text.names += "--" + text.longName;
  text.value = option.get_items_expected_max() > 0 ? valueName(option.get_type_name()) : "";
  text.description = option.get_description();
  return text;
}

void addCommand(const CLI::App& app, const std::string& path, std::vector<CommandText>& all) {
  const CLI::App* above = app.get_parent();
  CommandText command{path, app.get_description(), {}, {}, {}, {}};
  if (above == nullptr || above->get_footer() != app.get_footer())
    command.footer = app.get_footer();
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) {
      command.arguments.push_back({option->get_name(true), option->get_description(),
                                   option->get_required(), option->get_items_expected_max() > 1});
    } else if (option != app.get_help_ptr()) {
      command.options.push_back(optionOf(*option));
    }
  }
  const auto below = app.get_subcommands([](const CLI::App*) { return true; });
  for (const CLI::App* sub : below) {
    command.commands.push_back(sub->get_name());
  }
  all.push_back(std::move(command));
  for (const CLI::App* sub : below) {
    addCommand(*sub, path.empty() ? sub->get_name() : path + ' ' + sub->get_name(), all);
  }
}

}  // namespace

std::vector<CommandText> commandsOf(const CLI::App& program) {
  std::vector<CommandText> all;
  addCommand(program, "", all);
  return all;
}

}  // namespace adit::manual

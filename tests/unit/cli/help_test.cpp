// What the help of every command has.
#include <catch2/catch.hpp>

#include "cli/program.hpp"

using namespace adit;

namespace {

void checkHelp(const CLI::App& command) {
  const auto below = command.get_subcommands([](const CLI::App*) { return true; });
  for (const CLI::App* sub : below) {
    checkHelp(*sub);
  }
  INFO(command.get_name());
  CHECK_FALSE(command.get_description().empty());
  for (const CLI::Option* option : command.get_options()) {
    INFO(option->get_name(true, true));
    CHECK_FALSE(option->get_description().empty());
  }
  const bool plain = command.get_name() == "version" || command.get_name() == "help";
  CHECK((plain || !below.empty() || command.get_footer().find("Example") != std::string::npos));
}

}  // namespace

TEST_CASE("help: every command has a description and an example, every option a description") {
  CLI::App app;
  cli::Action action;
  cli::buildCommandLine(app, action);
  checkHelp(app);
}

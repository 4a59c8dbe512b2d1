// The command line of aditd.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace adit::daemon {

struct Arguments {
  std::string target;
  bool foreground = false;
  bool background = false;
  bool cleanup = false;
  bool helper = false;
  bool worker = false;
  std::string logLevel = "info";
};

/// `arguments` must outlive the parsing.
void describeArguments(CLI::App& app, Arguments& arguments);

}  // namespace adit::daemon

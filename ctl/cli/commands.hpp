// The commands of `adit`, by group. Each function adds its commands to the command line; the one
// that a person chose stores what to run.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

namespace adit::cli {

/// Runs the chosen command and gives the exit status.
using Action = std::function<int()>;

/// genkey, genpsk, pubkey
void addKeyCommands(CLI::App& app, Action& action);
/// show, showconf
void addShowCommands(CLI::App& app, Action& action);
/// set, setconf, addconf, syncconf
void addSetCommands(CLI::App& app, Action& action);
/// init server
void addInitCommand(CLI::App& app, Action& action);
/// invite
void addInviteCommand(CLI::App& app, Action& action);
/// join
void addJoinCommand(CLI::App& app, Action& action);
/// up, down, reload
void addLifecycleCommands(CLI::App& app, Action& action);
/// save
void addSaveCommand(CLI::App& app, Action& action);
/// map list, add, del and check
void addMapCommands(CLI::App& app, Action& action);
/// peer list, remove and rotate
void addPeerCommands(CLI::App& app, Action& action);
/// import
void addImportCommand(CLI::App& app, Action& action);
/// export
void addExportCommand(CLI::App& app, Action& action);
/// trace
void addTraceCommand(CLI::App& app, Action& action);
/// status
void addStatusCommand(CLI::App& app, Action& action);
/// tune plan, apply, revert, status
void addTuneCommands(CLI::App& app, Action& action);
/// bench, bench server, crypto and show
void addBenchCommands(CLI::App& app, Action& action);
/// doctor
void addDoctorCommand(CLI::App& app, Action& action);
/// monitor
void addMonitorCommand(CLI::App& app, Action& action);
/// check, strip
void addCheckCommands(CLI::App& app, Action& action);

/// `show` without arguments, which is what `adit` alone means.
int showAll();

}  // namespace adit::cli

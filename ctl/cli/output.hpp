// What the person sees: standard output, standard error, exit status.
#pragma once

#include <string_view>

#include "util/result.hpp"

namespace adit::cli {

/// As wg(8): a wrong command line is a failure like any other.
inline constexpr int kSuccess = 0;
inline constexpr int kFailure = 1;

/// Writes `text` to standard output, all of it, and gives the exit status: a full disk is a
/// failure, and a reader that went away is one without a message.
int print(std::string_view text);

/// "adit: MESSAGE" on standard error; gives kFailure.
int complain(std::string_view message);
int complain(const Error& error);

/// "adit: TEXT" on standard error, for what is no failure.
void remark(std::string_view text);

/// Asks on standard error, "QUESTION [y/N] "; only "y" or "yes" on a terminal is a yes.
bool confirmed(std::string_view question);

/// On standard error, when standard output is a file that others can read: keys are about to
/// follow.
void warnOfReadableOutput();

/// Colours are wanted: ADIT_COLOR_MODE or WG_COLOR_MODE is "always", or it is not "never" and
/// standard output is a terminal.
bool wantsColor();

/// Keys are to be printed as "(hidden)": unless ADIT_HIDE_KEYS or WG_HIDE_KEYS is "never".
bool hidesKeys();

}  // namespace adit::cli

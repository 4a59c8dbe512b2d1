// The only files that tuning ever writes, and with which values: the list that the process which
// kept root goes by.
#pragma once

#include <string>
#include <string_view>

#include "util/result.hpp"

namespace adit::tune {

/// How two values of a file are compared, and what a value looks like.
enum class Form { Mask, List, Number, Words, Channels };

/// `path` is relative to the root. The error says what is wrong with it.
Result<Form> formOf(std::string_view path);
/// formOf(), and `value` has that form; for a file (not Form::Channels).
Result<void> checkWrite(std::string_view path, std::string_view value);

/// Whether both texts say the same: 3 and 00000000,00000003, "4096\t87380" and "4096 87380".
bool sameValue(Form form, std::string_view left, std::string_view right);

/// "ethtool/eth0/combined": the pseudo file of a NIC's number of queues.
std::string channelsPath(std::string_view nic);
/// The NIC of such a path; empty for any other.
std::string nicOfChannels(std::string_view path);
/// "proc/irq/24/smp_affinity_list"
std::string irqPath(unsigned irq);
/// The interrupt of proc/irq/N/smp_affinity_list; empty text for any other path.
std::string irqOfPath(std::string_view path);

/// For a person: "/proc/irq/24/smp_affinity_list", "eth0: combined queues".
std::string shownPath(std::string_view path);

}  // namespace adit::tune

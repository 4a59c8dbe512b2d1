/* The headers of lib/wire, read by a C compiler as the kernel module reads them. */
#include "wire/control.h"
#include "wire/messages.h"
#include "wire/replay.h"
#include "wire/timing.h"

#include <stddef.h>

_Static_assert(sizeof(struct adit_message_initiation) == 148, "initiation");
_Static_assert(sizeof(struct adit_message_response) == 92, "response");
_Static_assert(sizeof(struct adit_message_cookie) == 64, "cookie");
_Static_assert(sizeof(struct adit_message_data) == 16, "data");
_Static_assert(offsetof(struct adit_message_data, counter) == 8, "data counter");
_Static_assert(sizeof(struct adit_control_suite) == 5, "control suite");
_Static_assert(ADIT_DATA_OVERHEAD == 32, "overhead");

bool adit_replay_accept_as_c(struct adit_replay *window, __u64 counter);
bool adit_replay_accept_as_c(struct adit_replay *window, __u64 counter)
{
	return adit_replay_accept(window, counter);
}

/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The in-tunnel control message: the plaintext of a data packet that is not an IP packet.
 *
 * The first byte is 0x0v with the version v (an IP packet starts with 4_ or 6_). Records follow,
 * each a type, a length in bytes, and a value; unknown types are skipped, and type 0 ends the
 * message, so that padding with zeros is harmless. See docs/protocol.md. Freestanding.
 */
#ifndef ADIT_WIRE_CONTROL_H
#define ADIT_WIRE_CONTROL_H

#include <linux/types.h>

#define ADIT_CONTROL_VERSION 1
/* No sender makes a longer one; a longer one may be dropped. */
#define ADIT_CONTROL_MAX_LENGTH 256

enum adit_control_type {
	ADIT_CONTROL_END = 0,
	/* One adit_control_suite for each suite that the sender allows. */
	ADIT_CONTROL_SUITES = 1,
	/* No value: the sender has no offer of the receiver and asks for one. */
	ADIT_CONTROL_WANTS_ANSWER = 2,
	/* Of an enrolment peer alone: the public key that joins, and a proof of its private half. */
	ADIT_CONTROL_JOIN = 3,
	/* The server's, sealed to that key. */
	ADIT_CONTROL_JOIN_ANSWER = 4,
};

struct adit_control_record {
	__u8 type;
	__u8 length;
} __attribute__((packed));

struct adit_control_suite {
	__u8 suite;
	__le32 megabytes_per_second; /* of the sender's data plane on one core */
} __attribute__((packed));

#endif

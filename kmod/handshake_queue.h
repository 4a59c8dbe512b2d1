/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the module does not understand and the daemon does: handshake datagrams, and in-tunnel
 * control messages. They wait in memory that is allocated once, since anybody can send the former.
 */
#ifndef _ADIT_HANDSHAKE_QUEUE_H
#define _ADIT_HANDSHAKE_QUEUE_H

#include <linux/rcupdate.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/workqueue.h>

#include "endpoint.h"
#include "uapi/adit.h"
#include "wire/control.h"
#include "wire/messages.h"

#define ADIT_HANDSHAKE_CAPACITY 1024
#define ADIT_CONTROL_CAPACITY 64
/* Padding comes on top of what the sender wrote. */
#define ADIT_CONTROL_LENGTH (ADIT_CONTROL_MAX_LENGTH + ADIT_PADDING_MULTIPLE)

struct adit_device;
struct adit_peer;

/* With which mac1 of incoming handshakes is checked. */
struct adit_mac1_key {
	u8 key[ADIT_KEY_LENGTH];
	struct rcu_head rcu;
};

struct adit_handshake_entry {
	u8 bytes[ADIT_UAPI_HANDSHAKE_MAX];
	u16 length;
	struct adit_endpoint source;
};

struct adit_control_entry {
	u64 peer_id;
	u16 length;
	u8 bytes[ADIT_CONTROL_LENGTH];
};

/* Rings; only the work takes out. */
struct adit_handshake_queue {
	spinlock_t lock; /* of both rings */
	struct adit_handshake_entry *handshakes;
	unsigned int first_handshake;
	unsigned int handshake_count;
	struct adit_control_entry *controls;
	unsigned int first_control;
	unsigned int control_count;
	struct delayed_work work;
};

int adit_handshake_queue_init(struct adit_handshake_queue *queue);
void adit_handshake_queue_free(struct adit_handshake_queue *queue);
/* May sleep. */
void adit_handshake_queue_stop(struct adit_handshake_queue *queue);

/* With bottom halves disabled. A datagram of type 1 to 3 and its exact length. */
void adit_handshake_receive(struct adit_device *adit, const u8 *datagram, unsigned int length,
			    const struct adit_endpoint *source);
/* With bottom halves disabled. The plaintext of an authenticated datagram. */
void adit_control_receive(struct adit_peer *peer, const u8 *text, unsigned int length);

#endif

/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the module tells by itself. All may sleep. Nothing depends on an event that gets lost.
 */
#ifndef _ADIT_EVENTS_H
#define _ADIT_EVENTS_H

#include "uapi/adit.h"

struct adit_control_entry;
struct adit_device;
struct adit_handshake_entry;
struct adit_peer;

void adit_event_need_handshake(struct adit_peer *peer, enum adit_handshake_reason reason);
void adit_event_key_confirmed(struct adit_peer *peer);
void adit_event_keys_expired(struct adit_peer *peer);
void adit_event_endpoint_moved(struct adit_peer *peer);
void adit_event_peer_added(struct adit_peer *peer);
void adit_event_peer_removed(struct adit_peer *peer);
/* -EAGAIN while the claimant's socket is full. `backlog`: how many more wait. */
int adit_event_handshake(struct adit_device *adit, const struct adit_handshake_entry *entry,
			 unsigned int backlog);
int adit_event_control(struct adit_device *adit, const struct adit_control_entry *entry);

#endif

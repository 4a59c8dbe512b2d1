/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * The generic netlink contract between adit.ko and its daemon.
 *
 * A link of rtnl kind "adit" (ip link add adit0 type adit) is a device of family "adit". Handshakes
 * are done in userspace; the module holds peers, session keys and allowed IPs, and moves packets.
 * It never sees a private key, and session keys only go in: no command and no event reads one back.
 *
 * Every command needs CAP_NET_ADMIN in the user namespace that owns the device's network
 * namespace. A command that changes something comes from the claimant, the one socket that has
 * claimed the device (ADIT_A_DEVICE_CLAIM); from another socket it gets EBUSY while there is a
 * claimant, and EPERM while there is none. The claim ends when the socket closes; peers, keys and
 * traffic stay.
 *
 * Refused input changes nothing and is answered with an extended-ack message that names the
 * attribute (6.1 loses it when a dump cannot start). Numbers are in host byte order, addresses in
 * network byte order.
 *
 * Versions. Attributes that a receiver does not know are ignored, arrays (drops, counters, speeds)
 * may be longer or shorter than a reader expects, and commands that the module does not know give
 * EOPNOTSUPP: so what is only added leaves ADIT_GENL_VERSION as it is. It rises by one when
 * something that exists changes its meaning or goes. A module serves daemons of its version and of
 * the one before, which is what the version field of a message's header tells; a daemon works with
 * modules of its version and of the next. Numbers of commands and attributes are never used again.
 */
#ifndef _UAPI_ADIT_H
#define _UAPI_ADIT_H

#include <linux/types.h>

#define ADIT_GENL_NAME "adit"
#define ADIT_GENL_VERSION 1
#define ADIT_GENL_GROUP_EVENTS "events"
#define ADIT_LINK_KIND "adit"

/* Binary attributes. */
#define ADIT_UAPI_KEY_LENGTH 32
/* An opaque value that a daemon keeps with a peer, for the daemon that comes after it. */
#define ADIT_UAPI_COOKIE_MAX 64
/* A handshake datagram is at most as long as an initiation, a control message as
 * ADIT_CONTROL_MAX_LENGTH of wire/control.h.
 */
#define ADIT_UAPI_HANDSHAKE_MAX 148
#define ADIT_UAPI_CONTROL_MAX 256

/**
 * enum adit_cmd - commands, and the events that the module sends by itself
 *
 * @ADIT_CMD_GET_DEVICE: request and dump. One device (by ADIT_A_IFINDEX or ADIT_A_IFNAME), or all
 *	of the socket's network namespace: ADIT_A_IFINDEX, ADIT_A_IFNAME, ADIT_A_DEVICE.
 * @ADIT_CMD_SET_DEVICE: changes what is present in ADIT_A_DEVICE. A port that is taken gives
 *	EADDRINUSE, and the old port stays.
 * @ADIT_CMD_GET_PEER: dump of a device's peers, or of the one that ADIT_A_PEER names by its id:
 *	each answer has ADIT_A_IFINDEX and ADIT_A_PEER. A peer whose allowed IPs do not fit into one
 *	message is continued in the next: same id, further ADIT_A_PEER_ALLOWED_IPS and nothing else.
 * @ADIT_CMD_SET_PEER: creates the peer, or changes what is present in ADIT_A_PEER. A present
 *	ADIT_A_PEER_ALLOWED_IPS replaces the list unless ADIT_PEER_F_APPEND_ALLOWED_IPS is set, so
 *	that a long list can be sent as several messages.
 * @ADIT_CMD_DEL_PEER: removes the peer, its keys and what is staged. Its id is not used again.
 * @ADIT_CMD_NEW_KEY: installs the keys of a finished handshake (ADIT_A_KEY). Only creates: EEXIST
 *	for a local index in use on the device, or for keys that one of the peer's last 16 sessions
 *	had; ENOENT for an unknown peer; EKEYREJECTED when the named public key is not the peer's.
 * @ADIT_CMD_DEL_KEYS: wipes all keys of the peer.
 * @ADIT_CMD_DROP_STAGED: forgets the packets that wait for a key: the handshake was given up.
 * @ADIT_CMD_SEND_HANDSHAKE: sends ADIT_A_PAYLOAD as a datagram from the device's socket to
 *	ADIT_A_ENDPOINT, from ADIT_A_LOCAL if present.
 * @ADIT_CMD_SEND_CONTROL: sends ADIT_A_PAYLOAD to the peer as an in-tunnel control message under
 *	its current key. ENOKEY without one.
 * @ADIT_CMD_EVENT_NEED_HANDSHAKE: to the claimant: ADIT_A_PEER with its id, and
 *	ADIT_A_HANDSHAKE_REASON. Repeated every 5 s while it holds, so that a lost event heals.
 * @ADIT_CMD_EVENT_KEY_CONFIRMED: to the claimant: the first packet under the peer's next key was
 *	authenticated.
 * @ADIT_CMD_EVENT_HANDSHAKE: to the claimant: a datagram of type 1 to 3, of exact length and (types
 *	1 and 2) with a right mac1: ADIT_A_PAYLOAD, ADIT_A_ENDPOINT, ADIT_A_LOCAL,
 *	ADIT_A_BACKLOG.
 * @ADIT_CMD_EVENT_CONTROL: to the claimant: an authenticated in-tunnel control message: peer id and
 *	ADIT_A_PAYLOAD.
 * @ADIT_CMD_EVENT_KEYS_EXPIRED: to the group and the claimant: no usable key of the peer is left;
 *	all have been wiped.
 * @ADIT_CMD_EVENT_ENDPOINT_MOVED: to the group and the claimant, at most once per second and peer:
 *	ADIT_A_PEER with id, endpoint and local address.
 * @ADIT_CMD_EVENT_PEER_ADDED: to the group: ADIT_A_PEER with id and public key.
 * @ADIT_CMD_EVENT_PEER_REMOVED: to the group: the same.
 */
enum adit_cmd {
	ADIT_CMD_UNSPEC,
	ADIT_CMD_GET_DEVICE,
	ADIT_CMD_SET_DEVICE,
	ADIT_CMD_GET_PEER,
	ADIT_CMD_SET_PEER,
	ADIT_CMD_DEL_PEER,
	ADIT_CMD_NEW_KEY,
	ADIT_CMD_DEL_KEYS,
	ADIT_CMD_DROP_STAGED,
	ADIT_CMD_SEND_HANDSHAKE,
	ADIT_CMD_SEND_CONTROL,
	ADIT_CMD_EVENT_NEED_HANDSHAKE,
	ADIT_CMD_EVENT_KEY_CONFIRMED,
	ADIT_CMD_EVENT_HANDSHAKE,
	ADIT_CMD_EVENT_CONTROL,
	ADIT_CMD_EVENT_KEYS_EXPIRED,
	ADIT_CMD_EVENT_ENDPOINT_MOVED,
	ADIT_CMD_EVENT_PEER_ADDED,
	ADIT_CMD_EVENT_PEER_REMOVED,

	__ADIT_CMD_MAX,
	ADIT_CMD_MAX = __ADIT_CMD_MAX - 1
};

/**
 * enum adit_attr - attributes of a message
 *
 * @ADIT_A_IFINDEX: u32. The device; or ADIT_A_IFNAME.
 * @ADIT_A_IFNAME: string.
 * @ADIT_A_DEVICE: nest of enum adit_device_attr.
 * @ADIT_A_PEER: nest of enum adit_peer_attr.
 * @ADIT_A_KEY: nest of enum adit_key_attr.
 * @ADIT_A_ENDPOINT: nest of enum adit_endpoint_attr: the remote end of a datagram.
 * @ADIT_A_LOCAL: nest of enum adit_endpoint_attr without port: the local end of a datagram.
 * @ADIT_A_PAYLOAD: binary.
 * @ADIT_A_HANDSHAKE_REASON: u8, enum adit_handshake_reason.
 * @ADIT_A_BACKLOG: u32. How many handshake datagrams wait behind this one.
 */
enum adit_attr {
	ADIT_A_UNSPEC,
	ADIT_A_IFINDEX,
	ADIT_A_IFNAME,
	ADIT_A_DEVICE,
	ADIT_A_PEER,
	ADIT_A_KEY,
	ADIT_A_ENDPOINT,
	ADIT_A_LOCAL,
	ADIT_A_PAYLOAD,
	ADIT_A_HANDSHAKE_REASON,
	ADIT_A_BACKLOG,
	ADIT_A_PAD,

	__ADIT_A_MAX,
	ADIT_A_MAX = __ADIT_A_MAX - 1
};

/**
 * enum adit_device_attr
 *
 * @ADIT_A_DEVICE_LISTEN_PORT: u16 in host byte order. 0 lets the kernel choose. Sockets are bound
 *	while the link is up.
 * @ADIT_A_DEVICE_FWMARK: u32. SO_MARK of every outer packet; 0 is none.
 * @ADIT_A_DEVICE_BIND_ADDRESS: binary, 4 or 16 bytes in network byte order: only this local address
 *	is listened on; of length 0: all, of both families.
 * @ADIT_A_DEVICE_MAC1_KEY: binary, 32 bytes: BLAKE2s("mac1----" || the device's public key), with
 *	which mac1 of incoming handshakes is checked; of length 0: forgotten. Without it none is
 *	passed on.
 * @ADIT_A_DEVICE_PUBLIC_KEY: binary, 32 bytes: for display and for the next daemon.
 * @ADIT_A_DEVICE_CLAIM: u8. 1 claims the device for this socket, 0 gives the claim back.
 * @ADIT_A_DEVICE_CLAIMANT: u32, read only: netlink port of the claimant; 0 for none.
 * @ADIT_A_DEVICE_MODULE: string, read only: version of the module.
 * @ADIT_A_DEVICE_SUITE_SPEEDS: binary, read only: u32 for each suite, in megabytes per second on one
 *	core, measured at load; 0 for a suite that this kernel does not have.
 * @ADIT_A_DEVICE_DROPS: binary, read only: u64 for each of enum adit_drop.
 * @ADIT_A_DEVICE_PEER_COUNT: u32, read only.
 * @ADIT_A_DEVICE_LAST_PEER_ID: u64, read only: greatest id that a peer has had; new ones are greater.
 * @ADIT_A_DEVICE_COUNTERS: binary, read only: u64 for each of enum adit_counter.
 */
enum adit_device_attr {
	ADIT_A_DEVICE_UNSPEC,
	ADIT_A_DEVICE_LISTEN_PORT,
	ADIT_A_DEVICE_FWMARK,
	ADIT_A_DEVICE_BIND_ADDRESS,
	ADIT_A_DEVICE_MAC1_KEY,
	ADIT_A_DEVICE_PUBLIC_KEY,
	ADIT_A_DEVICE_CLAIM,
	ADIT_A_DEVICE_CLAIMANT,
	ADIT_A_DEVICE_MODULE,
	ADIT_A_DEVICE_SUITE_SPEEDS,
	ADIT_A_DEVICE_DROPS,
	ADIT_A_DEVICE_PEER_COUNT,
	ADIT_A_DEVICE_LAST_PEER_ID,
	ADIT_A_DEVICE_COUNTERS,
	ADIT_A_DEVICE_PAD,

	__ADIT_A_DEVICE_MAX,
	ADIT_A_DEVICE_MAX = __ADIT_A_DEVICE_MAX - 1
};

/**
 * enum adit_peer_attr
 *
 * @ADIT_A_PEER_ID: u64. Chosen by the daemon, greater than every id that the device has seen; never
 *	used again.
 * @ADIT_A_PEER_PUBLIC_KEY: binary, 32 bytes. Needed to create, cannot change. EEXIST when another
 *	peer of the device has it.
 * @ADIT_A_PEER_FLAGS: u32, enum adit_peer_flag.
 * @ADIT_A_PEER_ENDPOINT: nest of enum adit_endpoint_attr.
 * @ADIT_A_PEER_LOCAL: nest of enum adit_endpoint_attr without port: the source of the next
 *	datagrams. Forgotten when a present ADIT_A_PEER_ENDPOINT comes without it.
 * @ADIT_A_PEER_PERSISTENT_KEEPALIVE: u16, seconds; 0 is off.
 * @ADIT_A_PEER_ALLOWED_IPS: nest of nests (type ignored) of enum adit_allowed_ip_attr. A prefix that
 *	another peer had moves to this one.
 * @ADIT_A_PEER_COOKIE: binary, up to ADIT_UAPI_COOKIE_MAX bytes: kept and handed back as it is.
 * @ADIT_A_PEER_RX_BYTES: u64, read only, as all that follow: outer payload, header and tag included.
 * @ADIT_A_PEER_TX_BYTES: u64.
 * @ADIT_A_PEER_RX_PACKETS: u64.
 * @ADIT_A_PEER_TX_PACKETS: u64.
 * @ADIT_A_PEER_LAST_RECEIVE: u64, nanoseconds of the boot-time clock at which an authenticated packet
 *	last arrived; 0 for never.
 * @ADIT_A_PEER_SUITE: u8, enum adit_suite of the current session; absent without one.
 * @ADIT_A_PEER_SESSION_START: u64, nanoseconds of the boot-time clock; absent without a session.
 * @ADIT_A_PEER_SESSION_INITIATOR: u8, 1 when the current session was ours to start.
 * @ADIT_A_PEER_DROPS: binary: u64 for each of enum adit_drop.
 * @ADIT_A_PEER_NEXT_SUITE: u8, enum adit_suite of the session in slot ADIT_KEY_SLOT_NEXT, which
 *	waits for the other side's first packet; absent without one.
 * @ADIT_A_PEER_NEXT_START: u64, nanoseconds of the boot-time clock at which that session was
 *	installed; absent without one.
 */
enum adit_peer_attr {
	ADIT_A_PEER_UNSPEC,
	ADIT_A_PEER_ID,
	ADIT_A_PEER_PUBLIC_KEY,
	ADIT_A_PEER_FLAGS,
	ADIT_A_PEER_ENDPOINT,
	ADIT_A_PEER_LOCAL,
	ADIT_A_PEER_PERSISTENT_KEEPALIVE,
	ADIT_A_PEER_ALLOWED_IPS,
	ADIT_A_PEER_COOKIE,
	ADIT_A_PEER_RX_BYTES,
	ADIT_A_PEER_TX_BYTES,
	ADIT_A_PEER_RX_PACKETS,
	ADIT_A_PEER_TX_PACKETS,
	ADIT_A_PEER_LAST_RECEIVE,
	ADIT_A_PEER_SUITE,
	ADIT_A_PEER_SESSION_START,
	ADIT_A_PEER_SESSION_INITIATOR,
	ADIT_A_PEER_DROPS,
	ADIT_A_PEER_PAD,
	ADIT_A_PEER_NEXT_SUITE,
	ADIT_A_PEER_NEXT_START,

	__ADIT_A_PEER_MAX,
	ADIT_A_PEER_MAX = __ADIT_A_PEER_MAX - 1
};

/**
 * enum adit_peer_flag
 *
 * @ADIT_PEER_F_NO_ROAM: keep the endpoint that was set, whatever authenticated packets say.
 * @ADIT_PEER_F_APPEND_ALLOWED_IPS: of a request: see ADIT_CMD_SET_PEER. Never reported.
 * @ADIT_PEER_F_UPDATE_ONLY: of a request: ENOENT instead of creating the peer. Never reported.
 */
enum adit_peer_flag {
	ADIT_PEER_F_NO_ROAM = 1U << 0,
	ADIT_PEER_F_APPEND_ALLOWED_IPS = 1U << 1,
	ADIT_PEER_F_UPDATE_ONLY = 1U << 2,
};

/**
 * enum adit_key_attr - all are needed; in ADIT_CMD_NEW_KEY only
 *
 * @ADIT_A_KEY_PEER_ID: u64.
 * @ADIT_A_KEY_PEER_PUBLIC_KEY: binary, 32 bytes: must be the peer's.
 * @ADIT_A_KEY_SLOT: u8, enum adit_key_slot.
 * @ADIT_A_KEY_SUITE: u8, enum adit_suite of wire/messages.h.
 * @ADIT_A_KEY_LOCAL_INDEX: u32: names the session in datagrams that arrive.
 * @ADIT_A_KEY_REMOTE_INDEX: u32: names it in datagrams that are sent.
 * @ADIT_A_KEY_SEND: binary, 32 bytes.
 * @ADIT_A_KEY_RECEIVE: binary, 32 bytes.
 * @ADIT_A_KEY_REKEY_AFTER: u64, nanoseconds of age after which the initiator wants a new key.
 * @ADIT_A_KEY_REJECT_AFTER: u64, nanoseconds of age after which nothing is sent or accepted.
 * @ADIT_A_KEY_REKEY_AFTER_MESSAGES: u64.
 * @ADIT_A_KEY_REJECT_AFTER_MESSAGES: u64.
 */
enum adit_key_attr {
	ADIT_A_KEY_UNSPEC,
	ADIT_A_KEY_PEER_ID,
	ADIT_A_KEY_PEER_PUBLIC_KEY,
	ADIT_A_KEY_SLOT,
	ADIT_A_KEY_SUITE,
	ADIT_A_KEY_LOCAL_INDEX,
	ADIT_A_KEY_REMOTE_INDEX,
	ADIT_A_KEY_SEND,
	ADIT_A_KEY_RECEIVE,
	ADIT_A_KEY_REKEY_AFTER,
	ADIT_A_KEY_REJECT_AFTER,
	ADIT_A_KEY_REKEY_AFTER_MESSAGES,
	ADIT_A_KEY_REJECT_AFTER_MESSAGES,
	ADIT_A_KEY_PAD,

	__ADIT_A_KEY_MAX,
	ADIT_A_KEY_MAX = __ADIT_A_KEY_MAX - 1
};

/**
 * enum adit_key_slot
 *
 * @ADIT_KEY_SLOT_CURRENT: of the initiator: what is staged is sent at once, or a keepalive.
 * @ADIT_KEY_SLOT_NEXT: of the responder: not sent under before a packet under it was authenticated.
 */
enum adit_key_slot {
	ADIT_KEY_SLOT_CURRENT,
	ADIT_KEY_SLOT_NEXT,
};

/**
 * enum adit_endpoint_attr
 *
 * @ADIT_A_ENDPOINT_ADDRESS: binary, 4 or 16 bytes in network byte order.
 * @ADIT_A_ENDPOINT_PORT: u16 in host byte order, not 0.
 * @ADIT_A_ENDPOINT_IFINDEX: u32: scope of a link-local address, or the interface of a local one.
 */
enum adit_endpoint_attr {
	ADIT_A_ENDPOINT_UNSPEC,
	ADIT_A_ENDPOINT_ADDRESS,
	ADIT_A_ENDPOINT_PORT,
	ADIT_A_ENDPOINT_IFINDEX,

	__ADIT_A_ENDPOINT_MAX,
	ADIT_A_ENDPOINT_MAX = __ADIT_A_ENDPOINT_MAX - 1
};

/**
 * enum adit_allowed_ip_attr
 *
 * @ADIT_A_ALLOWED_IP_ADDRESS: binary, 4 or 16 bytes in network byte order; host bits are ignored.
 * @ADIT_A_ALLOWED_IP_LENGTH: u8, bits of the prefix.
 */
enum adit_allowed_ip_attr {
	ADIT_A_ALLOWED_IP_UNSPEC,
	ADIT_A_ALLOWED_IP_ADDRESS,
	ADIT_A_ALLOWED_IP_LENGTH,

	__ADIT_A_ALLOWED_IP_MAX,
	ADIT_A_ALLOWED_IP_MAX = __ADIT_A_ALLOWED_IP_MAX - 1
};

/**
 * enum adit_handshake_reason - why a handshake is wanted
 *
 * @ADIT_HANDSHAKE_STAGED: packets wait and there is no usable key.
 * @ADIT_HANDSHAKE_KEY_AGING: age or message count asks for a new key.
 * @ADIT_HANDSHAKE_NO_REPLY: data was sent and nothing came back for 15 s.
 * @ADIT_HANDSHAKE_KEEPALIVE: a persistent keepalive is due and there is no usable key.
 */
enum adit_handshake_reason {
	ADIT_HANDSHAKE_STAGED,
	ADIT_HANDSHAKE_KEY_AGING,
	ADIT_HANDSHAKE_NO_REPLY,
	ADIT_HANDSHAKE_KEEPALIVE,
};

/**
 * enum adit_drop - why a datagram or a packet was not passed on
 *
 * A newer module may append; a reader takes those it knows.
 *
 * @ADIT_DROP_MALFORMED: outer: too short, unknown type or suite, wrong length.
 * @ADIT_DROP_UNKNOWN_INDEX: outer data: no session with this receiver index.
 * @ADIT_DROP_BAD_MAC: handshake: mac1 is wrong.
 * @ADIT_DROP_HANDSHAKE_QUEUE: handshake or control message: no claimant, or its queue was full.
 * @ADIT_DROP_AUTHENTICATION: outer data: tag is wrong.
 * @ADIT_DROP_REPLAY: outer data: counter seen before or too old.
 * @ADIT_DROP_KEY_EXPIRED: either way: the session's age or message limit was reached.
 * @ADIT_DROP_NOT_IP: decrypted, but neither IP nor a control message, or truncated.
 * @ADIT_DROP_SOURCE_NOT_ALLOWED: decrypted, but the inner source is not among the allowed IPs.
 * @ADIT_DROP_NO_PEER: to send: no peer has the inner destination among its allowed IPs.
 * @ADIT_DROP_NO_ENDPOINT: to send: the peer has no endpoint yet.
 * @ADIT_DROP_QUEUE_FULL: a staging queue or a queue between CPUs overflowed.
 * @ADIT_DROP_SEND_FAILED: to send: no route, no memory, or the packet is too large.
 * @ADIT_DROP_RECEIVE_FAILED: decrypted, but the stack refused the packet, or no memory.
 * @ADIT_DROP_CONGESTION: decrypted; congestion was signalled to a sender without ECN (RFC 6040).
 */
enum adit_drop {
	ADIT_DROP_MALFORMED,
	ADIT_DROP_UNKNOWN_INDEX,
	ADIT_DROP_BAD_MAC,
	ADIT_DROP_HANDSHAKE_QUEUE,
	ADIT_DROP_AUTHENTICATION,
	ADIT_DROP_REPLAY,
	ADIT_DROP_KEY_EXPIRED,
	ADIT_DROP_NOT_IP,
	ADIT_DROP_SOURCE_NOT_ALLOWED,
	ADIT_DROP_NO_PEER,
	ADIT_DROP_NO_ENDPOINT,
	ADIT_DROP_QUEUE_FULL,
	ADIT_DROP_SEND_FAILED,
	ADIT_DROP_RECEIVE_FAILED,
	ADIT_DROP_CONGESTION,

	__ADIT_DROP_COUNT
};

/**
 * enum adit_counter - how well the fast path is used; for tests and benchmarks
 *
 * @ADIT_COUNTER_TX_SUPER: outer super-packets sent.
 * @ADIT_COUNTER_TX_SEGMENTS: datagrams in them.
 * @ADIT_COUNTER_TX_SINGLE: datagrams sent alone.
 * @ADIT_COUNTER_RX_SUPER: outer super-packets received whole.
 * @ADIT_COUNTER_RX_SEGMENTS: datagrams in them.
 * @ADIT_COUNTER_RX_SINGLE: datagrams received alone.
 * @ADIT_COUNTER_RX_INNER_SUPER: inner super-packets handed to the stack.
 * @ADIT_COUNTER_PAGES_NEW: page runs allocated for outer datagrams.
 * @ADIT_COUNTER_PAGES_REUSED: page runs used again.
 * @ADIT_COUNTER_RX_HELPED: outer packets decrypted by another CPU than the one where they wait.
 */
enum adit_counter {
	ADIT_COUNTER_TX_SUPER,
	ADIT_COUNTER_TX_SEGMENTS,
	ADIT_COUNTER_TX_SINGLE,
	ADIT_COUNTER_RX_SUPER,
	ADIT_COUNTER_RX_SEGMENTS,
	ADIT_COUNTER_RX_SINGLE,
	ADIT_COUNTER_RX_INNER_SUPER,
	ADIT_COUNTER_PAGES_NEW,
	ADIT_COUNTER_PAGES_REUSED,
	ADIT_COUNTER_RX_HELPED,

	__ADIT_COUNTER_COUNT
};

#endif

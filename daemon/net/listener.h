/* SPDX-License-Identifier: Apache-2.0 */
/* The gossip port: accepts connections and finds out who is calling.
 *
 * A stranger has five seconds to say hello in one valid frame, handshake included. If there are
 * more than LISTENER_STRANGERS_MAX strangers, the oldest is closed, so that a flood cannot keep a
 * neighbour out. Callers from unexpected addresses have half of the places and a bounded rate; one
 * address has a quarter of that rate. A refused caller costs one connection and at most one line of
 * log. The number of lines is limited, too.
 *
 * Memory: a turn of the loop accepts 32 callers at most, and closed links are freed when the turn
 * ends. So callers have 96 links at most, of 19 KB each. The listener trims the heap one
 * second after every sixteenth caller has left (malloc_trim(3)).
 *
 * Fails: at the start, if the address cannot be bound; the error lists this machine's addresses.
 * Later failures of accept (no descriptors, no memory) are logged, and accepting is tried again.
 * Thread: the loop thread. */
#ifndef SGPD_LISTENER_H
#define SGPD_LISTENER_H

#include "link.h"

#include "sgp/sink.h"
#include "sgp/topology.h"

#define LISTENER_STRANGERS_MAX 64u    /* connections that have not said hello */
#define LISTENER_UNEXPECTED_MAX 32u   /* of these, from unexpected addresses; */
#define LISTENER_UNEXPECTED_RATE 100u /* so many of them a second */
#define LISTENER_ADDRESS_RATE 25u     /* of these, of one address */
#define LISTENER_ADDRESSES 4096u      /* addresses told apart at most, by a hash */
#define LISTENER_HELLO_NS (5 * SGP_SECOND)
#define LISTENER_BACKLOG 256
#define LISTENER_ACCEPTS_PER_TURN 32u /* of the loop; other callers wait in the kernel's queue */
#define LISTENER_RETRY_MS 1000u       /* until a caller without memory is tried again */
#define LISTENER_DEPARTURES 16u       /* callers that have left; the heap is trimmed after ... */
#define LISTENER_TRIM_MS 1000u
#define LISTENER_LINES_MAX 20u /* log lines about strangers in ... */
#define LISTENER_LINES_NS (10 * SGP_SECOND)

struct listener_events {
    void *context;
    /* A stranger said hello. Take the link over (its events, context and id), or close it. */
    void (*hello)(void *context, struct link *link, const struct sgp_message *hello);
    /* A stranger asks a question (SGP_INQUIRE). Answer and close the link. */
    void (*inquire)(void *context, struct link *link, const struct sgp_message *inquire);
    /* A stranger that cannot be dialled asks for a greeting (SGP_CALL). Take the link over, or
     * close it. */
    void (*call)(void *context, struct link *link, const struct sgp_message *call);
    /* A stranger asks for bulletins (SGP_PULL). Take the link over, or close it. NULL: the caller
     * is refused, since its first message is none that this node expects. */
    void (*pull)(void *context, struct link *link, const struct sgp_message *pull);
    /* Whether a ciphered caller's key is in no topology file. It may only join. NULL: every caller
     * has a key of the file. */
    bool (*guest)(void *context, const struct link *link);
    /* Whether a guest's key is of a node that the file does not name any more. It may also ask for
     * bulletins. NULL: no guest may. */
    bool (*former)(void *context, const struct link *link);
    /* A caller would join (SGP_JOIN). Take the link over, or close it. NULL: it is refused. */
    void (*join)(void *context, struct link *link, const struct sgp_message *join);
    /* Whether links are ciphered, and with which settings. NULL: links are plain. */
    enum sgp_tls (*tls)(void *context, struct sgp_cipher_settings *ret_settings);
    /* Whether a neighbour may call from this address. NULL: from every address. */
    bool (*expects)(void *context, const struct sockaddr *address);
    /* The pulse for a goodbye to a stranger. */
    void (*pulse)(void *context, struct sgp_pulse *ret_pulse);
};

struct listener {
    uv_tcp_t tcp;
    uv_timer_t timer;    /* of the oldest stranger */
    uv_timer_t retry;    /* runs while a caller waits for memory, or for the next turn */
    uv_timer_t trim;     /* of the heap, after many callers */
    uint32_t departures; /* of callers, since the last trim */
    uint32_t accepts;    /* since retry ran last */
    struct listener_events events;
    const struct sgp_sink *sink;
    struct link *strangers; /* oldest first */
    uint32_t stranger_count, unexpected_count;
    sgp_time rate_since;
    uint32_t rate_count;                 /* of unexpected callers, since then */
    uint8_t rate_of[LISTENER_ADDRESSES]; /* by address */
    uint64_t salt; /* of the hash: no caller can choose with whom it shares a counter */
    bool closing;
    sgp_time lines_since;
    uint32_t lines;
    uint64_t lines_dropped;
};

/* Bind exactly `address` (HOST:PORT) and listen. SGP_ADDRESS_NONE: no node can call. Returns 0, or
 * a negative code with *error filled: what could not be bound, and this machine's interfaces with
 * their addresses. */
int listener_open(struct listener *listener, uv_loop_t *loop, const char *address,
    const struct listener_events *events, const struct sgp_sink *sink, struct sgp_error *error);

/* Close the port and all strangers, once. The loop must run until the handles are closed. */
void listener_close(struct listener *listener);

/* Write one line to the log (`text`, no newline) about a refused caller, unless the limit is
 * reached. */
void listener_log(struct listener *listener, const struct link *link, const char *text);

/* Refuse a caller: a goodbye with the reason, and one line in the log (`text`, no newline). `told`
 * is what the caller's operator reads. It is from the caller's point of view and contains no name.
 * NULL: the words of the reason. */
void listener_refuse(struct listener *listener, struct link *link, enum sgp_reason reason,
    const char *text, const char *told);

#define LISTENER_REMEDY "both nodes need the same file"

#endif

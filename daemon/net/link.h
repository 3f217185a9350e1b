/* SPDX-License-Identifier: Apache-2.0 */
/* A connection: bytes in and bytes out, in frames. The link knows the form of the protocol and
 * nothing of rounds. Its owner decides who the peer is and what a message means.
 *
 * In:  one read takes many small frames. The owner names the memory of a larger payload when the
 * share is announced. The payload is read directly into that memory, and is summed and checked
 * while it is in the cache. libuv reads at most 32 times per readiness, so a window of 128 KiB
 * gives one peer 4 MiB of the loop's turn. That is a millisecond or two, and as long again while a
 * fold catches up. A window of 32 KiB costs a third more processor time for a share of 16 MiB.
 * Out: one write at a time; small messages do not wait for its end. Messages wait in a ring of
 * fixed size, whose overflow ends the connection. A payload is sent from the owner's memory, chunk
 * by chunk. Messages queued meanwhile are sent between chunks, except those from a second payload's
 * announcement on.
 *
 * Coded (sgp/codec.h): a payload is packed chunk by chunk as it is sent. The receiver reads it to
 * the end of the memory of its values, and decodes it forward from there. Sums and ciphers cover
 * the coded bytes.
 *
 * Ciphered (sgp/cipher.h): one layer below the frames. Received bytes are opened to where they
 * belong, in records of 16 KiB. A write is sealed when its turn comes. The cipher's authentication
 * tag replaces the checksum of chunks.
 *
 * Fails: a read or write error, an end of stream, bytes that violate the protocol or the cipher, a
 * peer that does not read. The link then closes itself and reports that once. Thread: the loop
 * thread. */
#ifndef SGPD_LINK_H
#define SGPD_LINK_H

#include "util/checksum.h"

#include "sgp/cipher.h"
#include "sgp/perform.h"
#include "sgp/wire.h"

#include <uv.h>

#define LINK_WINDOW_BYTES (128u * 1024u) /* of payload in one read */
#define LINK_INPUT_BYTES 8192u /* of frames in one read; a larger payload is read on its own */
#define LINK_SEALED_BYTES (256u * 1024u) /* of payload in one write of a ciphered link */
#define LINK_CODED_VALUES                                                                          \
    (126u * SGP_BLOCK_VALUES)   /* of a coded payload in one write: small, with its header */
#define LINK_SMALL_BYTES 65536u /* a write of at most so many bytes is tried at once */
#define LINK_QUEUE_BYTES 16384u /* of messages waiting to be written */
/* Rows and words leave so many bytes of that to the core. */
#define LINK_ROOM_LEAST (LINK_QUEUE_BYTES / 2)
#define LINK_HEARD_NS (100 * SGP_MILLISECOND)
#define LINK_KEEPALIVE_SECONDS 30u

struct link;
struct sgp_fleet_link; /* sgp/fleet.h */

/* Events for the owner. Each callback may close the link. */
struct link_events {
    /* The first byte has arrived and is not parsed yet. A listener may call link_cipher now. NULL:
     * not needed. */
    void (*first)(struct link *link, uint8_t byte);
    /* The handshake is complete and the peer's key is known. NULL: not needed. */
    void (*ciphered)(struct link *link);
    /* A message of valid form; borrowed. After a SHARE or ESTIMATE with payload, the owner must
     * have called link_receive or closed the link when this returns. */
    void (*message)(struct link *link, const struct sgp_message *message);
    /* The payload is complete: 0, SGP_E_CHECKSUM or SGP_E_NOT_FINITE. NULL: the owner never calls
     * link_receive. */
    void (*payload)(struct link *link, int code);
    /* Bytes of a payload have arrived; called at most every LINK_HEARD_NS. NULL: as for
     * `payload`. */
    void (*heard)(struct link *link);
    /* The link failed. It closes when this returns, unless the owner closes it with a goodbye. May
     * be called from within link_send and link_send_payload. `text` is one line for a person,
     * borrowed. */
    void (*failed)(struct link *link, int code, const char *text);
    /* All handles are closed. The owner must forget the link, which is freed right after. NULL: not
     * needed. */
    void (*freed)(struct link *link);
};

/* A greeting that the core has not received yet, because layouts.c compares models first. */
struct link_held {
    bool holds;
    struct sgp_message hello; /* without its names, which are borrowed */
    uint32_t low, end;        /* the first differing entry is in low .. end - 1 */
};

enum link_phase { LINK_HEADER = 1, LINK_BODY, LINK_PAYLOAD };

/* The part of a payload that no write has taken yet. */
struct link_cargo {
    const float *values;
    uint64_t first, count; /* of them: the index of the first among all parameters */
    struct sgp_codec codec;
    uint64_t bytes;  /* that these values take */
    uint64_t number; /* of the share; 0: the payload is an estimate's */
};

/* A payload announced while another was being sent. It waits for that, as do all messages queued
 * later. */
struct link_behind {
    bool waits;
    size_t queued; /* bytes of the queue before its announcement */
    struct link_cargo cargo;
};

struct link {
    /* Set by the owner. */
    const struct link_events *events;
    void *context;
    struct sgp_link id; /* connection 0 until the peer is known */
    struct link *next;  /* in a list of the owner's */
    bool foreseen;      /* of a stranger: its address is a neighbour's address */
    struct link *next_failed;
    struct link *next_unsent;
    bool gathers;                /* messages wait for link_flush, which resets this */
    double unit;                 /* the w of the sender's estimate in the payload announced last */
    int failure;                 /* code given to `failed` */
    uint64_t incarnation;        /* in the caller's hello; 0: it was dialled */
    bool calls;                  /* the peer dialled, and not this node */
    struct link_held held;       /* of a peer that called */
    bool takes_rows;             /* the peer, of the fleet */
    struct sgp_fleet_link *rows; /* the exchange of rows; NULL: none */
    uint64_t facts_sent;         /* the order of the word that was sent last; 0: none */
    uint64_t facts_agreed;       /* the agreement that was sent last; 0: none */

    /* For reading by the owner. */
    uint64_t bytes_sent;
    uint64_t bytes_received;
    sgp_time opened; /* uv_hrtime of link_start */
    char remote[64]; /* numeric address and port of the peer, after link_start */
    bool closing;
    uint64_t received; /* bytes of the incoming payload */
    float largest;     /* magnitude in the incoming payload so far, */
    double squares;    /* and the sum of its squares */

    /* Private from here on. */
    uv_tcp_t tcp;
    struct sgp_cipher *cipher; /* NULL: a plain link */
    bool known;                /* its handshake is complete */
    bool begun;                /* a byte has arrived */
    enum link_phase phase;
    bool greeted; /* a whole header has arrived: the peer speaks our protocol */
    size_t have;  /* bytes of the present header or body */
    uint8_t header_bytes[SGP_WIRE_HEADER_BYTES];
    uint8_t body[SGP_WIRE_BODY_MAX];
    struct sgp_wire_header header;
    struct sgp_wire_text text;

    float *into;                /* where the payload is stored; NULL: none is expected */
    struct sgp_fold_work *fold; /* of the payload; NULL: the payload is not folded */
    uint8_t *place;             /* of its coded bytes, at the end of the memory of its values */
    uint64_t expected;          /* bytes of the payload, */
    uint64_t count;             /* and its values, */
    enum sgp_coding coding;     /* in this form */
    struct sgp_decoding decoding;
    uint64_t checked;   /* number of decoded values that were checked */
    uint32_t chunk;     /* bytes left of the present chunk */
    XXH3_state_t *hash; /* of the present chunk */
    sgp_time heard;

    uint8_t queue[LINK_QUEUE_BYTES];
    size_t queue_head;
    size_t queue_bytes;
    size_t queue_flight; /* bytes of the queue in the present write */
    size_t flight;       /* bytes of the present write */
    bool writing;
    uv_write_t write;
    struct link_cargo cargo;
    uint8_t *coded;         /* chunk of a coded payload in the present write; NULL: none yet */
    uint64_t flight_number; /* of the share in the present write, if it has a chunk of one */
    struct link_behind behind;
    sgp_round next_round, then_round; /* the promises that were sent last */
    uint8_t chunk_header[SGP_WIRE_HEADER_BYTES];
};

/* A link without a connection. Connect or accept on &link->tcp, then call link_start. Returns NULL
 * if memory is out. */
struct link *link_create(uv_loop_t *loop, const struct link_events *events, void *context);

/* Cipher the link. When dialling, call this before link_start; else within `first`. Negative: close
 * the link. */
int link_cipher(struct link *link, const struct sgp_cipher_settings *settings);

/* The connection is established: begin to read. Returns 0 or a negative code; then close
 * the link. */
int link_start(struct link *link);

/* Send a message, or queue it behind a write. A message that the peer would refuse fails an
 * assertion. A BEAT that promises nothing new may be dropped while a second payload waits and half
 * of the ring is full. */
void link_send(struct link *link, const struct sgp_message *message);

/* The same for a SHARE or an ESTIMATE and the values of its payload. The values must not change
 * until the peer has acknowledged the payload or the link is closed. A peer that acknowledges a
 * payload before all of it was sent ends the link.
 *
 * One more payload may be sent before all of the first was sent. The codec packs the values as they
 * are sent, into as many bytes as the message says. */
void link_send_payload(struct link *link, const struct sgp_message *message, const float *payload,
    struct sgp_codec codec);

/* Write the gathered messages. */
void link_flush(struct link *link);

/* Where to store the payload announced last. */
void link_receive(struct link *link, float *into);

/* Fold the payload from now on, and by and by the part that has already arrived. `fold` is the
 * owner's, and used until the payload is complete or the link is closed. NULL: stop folding. */
void link_fold(struct link *link, struct sgp_fold_work *fold);

/* For link.c: so many bytes more of the payload are in their place (incoming_payload.c). Returns
 * LINK_MORE if others must follow. Else the code with which the payload is complete, or
 * SGP_E_PROTOCOL: it does not have the announced form. */
#define LINK_MORE 1
int link_look_at(struct link *link, size_t bytes);
/* For link.c: the connection is established. Record the remote address, and set the link's socket
 * options (tcp.c). */
void link_tune(struct link *link);

/* Say goodbye (or NULL) if no other data must precede it, and close. Only `freed` follows, and the
 * payloads' memory is not accessed any more. */
void link_close(struct link *link, const struct sgp_message *goodbye);

/* End the link for a reason of the owner's, which is reported as a failure. */
void link_end(struct link *link, int code, const char *text);

/* Bytes of messages that the ring can still take. */
size_t link_room(const struct link *link);

/* Whether the link is neither closing nor failed. */
bool link_stands(const struct link *link);

/* Round trip time as the kernel measures it, in ms; NaN if it does not know. */
double link_rtt_ms(const struct link *link);

#endif

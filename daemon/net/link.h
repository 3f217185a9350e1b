/* SPDX-License-Identifier: Apache-2.0 */
/* A connection: bytes in and bytes out, in frames. It knows the protocol's form and nothing of
 * rounds; who the peer is, and what a message means, is its owner's business.
 *
 * In:  one read takes many small frames. A larger payload goes straight into the memory that the
 *      owner names when the share is announced, and is summed and looked at while it is in the
 *      cache. libuv reads at most 32 times per readiness, so a window of 128 KiB gives one peer 4
 *      MiB of the loop's turn: a millisecond or two, and as long again while a fold catches up. A
 *      window of 32 KiB costs a third more processor time for a share of 16 MiB.
 * Out: one write at a time; what is small does not wait for its end. Messages wait in a ring of
 *      fixed size, whose overflow ends the connection. A payload goes from the owner's memory,
 *      chunk by chunk, with the messages of the meantime between, but for those from a second
 *      payload's announcement on.
 *
 * Coded (sgp/codec.h), a payload is packed chunk by chunk as it leaves. It is read to the end of
 * the memory of its values, and decoded forward from there. Sums and ciphers are of the bytes.
 *
 * Ciphered (sgp/cipher.h), one layer lies below the frames: bytes are opened to where they belong,
 * in records of 16 KiB, and a write is sealed when its turn comes. The cipher's sum replaces that
 * of chunks.
 *
 * Fails: a read or write error, an end of stream, bytes that are not the protocol's or the
 * cipher's, a peer that does not read. The link then closes itself and says so once. Thread: the
 * loop thread. */
#ifndef SGPD_LINK_H
#define SGPD_LINK_H

#include "util/checksum.h"

#include "sgp/cipher.h"
#include "sgp/perform.h"
#include "sgp/wire.h"

#include <uv.h>

#define LINK_WINDOW_BYTES (128u * 1024u) /* of payload in one read */
#define LINK_INPUT_BYTES 8192u /* of frames in one read; a larger payload is no part of it */
#define LINK_SEALED_BYTES (256u * 1024u) /* of payload in one write of a ciphered link */
#define LINK_CODED_VALUES                                                                          \
    (126u * SGP_BLOCK_VALUES)   /* in one write of a coded payload: with the header, a small one */
#define LINK_SMALL_BYTES 65536u /* a write of no more is tried at once */
#define LINK_QUEUE_BYTES 16384u /* of messages waiting to be written */
#define LINK_HEARD_NS (100 * SGP_MILLISECOND)
#define LINK_KEEPALIVE_SECONDS 30u

struct link;

/* What the owner is told. Any of them may close the link. */
struct link_events {
    /* The first byte came, and nothing is made of it yet: time for a listener's link_cipher. NULL: nobody asks. */
    void (*first)(struct link *link, uint8_t byte);
    /* The handshake is through and the peer's key is known. NULL: nobody asks. */
    void (*ciphered)(struct link *link);
    /* A message of valid form; borrowed. After a SHARE or ESTIMATE with payload the owner must have called
     * link_receive or closed the link when this returns. */
    void (*message)(struct link *link, const struct sgp_message *message);
    /* The payload is complete: 0, SGP_E_CHECKSUM or SGP_E_NOT_FINITE. NULL: no link_receive. */
    void (*payload)(struct link *link, int code);
    /* Bytes of a payload came; at most every LINK_HEARD_NS. NULL likewise. */
    void (*heard)(struct link *link);
    /* It failed, and closes when this returns, unless the owner does so with a goodbye. May come
     * from within link_send and link_send_payload. `text` is one line for a person, borrowed. */
    void (*failed)(struct link *link, int code, const char *text);
    /* No handle is left; the owner forgets the link, which is freed right after. NULL: nobody asks. */
    void (*freed)(struct link *link);
};

/* A greeting that the core does not have yet: layouts.c compares models first. */
struct link_held {
    bool holds;
    struct sgp_message hello; /* without its names, which are borrowed */
    uint32_t low, end;        /* the first entry that differs is one of low .. end - 1 */
};

enum link_phase { LINK_HEADER = 1, LINK_BODY, LINK_PAYLOAD };

/* What of a payload is not yet handed to a write. */
struct link_cargo {
    const float *values;
    uint64_t first, count; /* of them: the first is that one of all parameters */
    struct sgp_codec codec;
    uint64_t bytes;  /* that they take */
    uint64_t number; /* of the share; 0: it is an estimate's */
};

/* Announced while a payload was under way: it waits for that, as does all that is said later. */
struct link_behind {
    bool waits;
    size_t queued; /* bytes of the queue before its announcement */
    struct link_cargo cargo;
};

struct link {
    /* The owner's. */
    const struct link_events *events;
    void *context;
    struct sgp_link id; /* connection 0 until the peer is known */
    struct link *next;  /* in a list of the owner's */
    bool foreseen;      /* of a stranger: its address is a neighbour's */
    struct link *next_failed;
    struct link *next_unsent;
    bool gathers;          /* what is sent waits for link_flush, which resets it */
    double unit;           /* the w of the sender's estimate in the payload announced last */
    int failure;           /* code given to `failed` */
    uint64_t lineage;      /* in the caller's hello; 0: it was dialled */
    struct link_held held; /* of one that calls */

    /* For reading by the owner. */
    uint64_t bytes_sent;
    uint64_t bytes_received;
    sgp_time opened; /* uv_hrtime of link_start */
    char remote[64]; /* numeric address and port of the peer, after link_start */
    bool closing;
    uint64_t received; /* bytes of the payload that comes */
    float largest;     /* magnitude in the payload that comes, as far as it has come, */
    double squares;    /* and the sum of its squares */

    /* Private from here on. */
    uv_tcp_t tcp;
    struct sgp_cipher *cipher; /* NULL: plain */
    bool known;                /* its handshake is through */
    bool begun;                /* a byte came */
    enum link_phase phase;
    bool greeted; /* a whole header came: it is one of ours */
    size_t have;  /* bytes of the present header or body */
    uint8_t header_bytes[SGP_WIRE_HEADER_BYTES];
    uint8_t body[SGP_WIRE_BODY_MAX];
    struct sgp_wire_header header;
    struct sgp_wire_text text;

    float *into;                /* where the payload goes; NULL while none is expected */
    struct sgp_fold_work *fold; /* of it; NULL: it stays as it is */
    uint8_t *place;             /* of its bytes, at the end of the memory of its values */
    uint64_t expected;          /* bytes of the payload, */
    uint64_t count;             /* and its values, */
    enum sgp_coding coding;     /* in this form */
    struct sgp_decoding decoding;
    uint64_t checked;   /* of the decoded, looked at */
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
    uint8_t *coded; /* the chunk of a coded payload in the present write; NULL: none was sent */
    uint64_t flight_number; /* of the share in the present write, if it has a chunk of one */
    struct link_behind behind;
    sgp_round next_round, then_round; /* the promises that were said last */
    uint8_t chunk_header[SGP_WIRE_HEADER_BYTES];
};

/* A link without a connection. Connect or accept on &link->tcp, then link_start. NULL: no memory. */
struct link *link_create(uv_loop_t *loop, const struct link_events *events, void *context);

/* Cipher the line: dialling, before link_start; else within `first`. Negative: close the link. */
int link_cipher(struct link *link, const struct sgp_cipher_settings *settings);

/* The connection stands: begin to read. Returns 0 or a negative code; close the link then. */
int link_start(struct link *link);

/* Send a message, or queue it behind a write; what the peer would refuse asserts. A BEAT that
 * promises nothing new may be left out while a second payload waits and half of the ring is
 * full. */
void link_send(struct link *link, const struct sgp_message *message);

/* The same of a SHARE or an ESTIMATE and the values of its payload, which must not change until the peer has
 * acknowledged it or the link is closed; a peer that does so before all of it has left ends the link. One more may be sent
 * before all of it has. The codec packs them as they leave, into as many bytes as the message says. */
void link_send_payload(struct link *link, const struct sgp_message *message, const float *payload,
    struct sgp_codec codec);

/* Write what was gathered. */
void link_flush(struct link *link);

/* Where the payload announced last belongs. */
void link_receive(struct link *link, float *into);

/* From now on that is folded, and by and by what has come of it already. `fold` is the owner's, and used until the payload is
 * complete or the link is closed. NULL: from now on it is not. */
void link_fold(struct link *link, struct sgp_fold_work *fold);

/* For link.c: so many bytes more of the payload lie in their place (incoming.c). LINK_MORE: others are to come; else the code
 * with which it is complete, or SGP_E_PROTOCOL: it is not of the form that was announced. */
#define LINK_MORE 1
int link_look_at(struct link *link, size_t bytes);
/* For link.c: the connection stands; name the other end, and tell the kernel what the link wants (tcp.c). */
void link_tune(struct link *link);

/* Say goodbye (or NULL) if nothing stands before it, and close: only `freed` follows, and payloads'
 * memory is not touched any more. */
void link_close(struct link *link, const struct sgp_message *goodbye);

/* It is over for a reason of the owner's, which is told as a failure. */
void link_end(struct link *link, int code, const char *text);

/* Whether it neither closes nor has failed. */
bool link_stands(const struct link *link);

/* Round trip time as the kernel measures it, in ms; NaN if it does not know. */
double link_rtt_ms(const struct link *link);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to lib/fleet: the rows of a node, and its links. */
#ifndef SGP_FLEET_INSIDE_H
#define SGP_FLEET_INSIDE_H

#include "sgp/fleet.h"

/* link.c is below store.c, and that is below exchange.c. */

#define NO_ROW UINT32_MAX
#define SGP_FLEET_BITS 64u /* of a word of a link's bits */

/* A node, and the latest row of it. */
struct sgp_fleet_held {
    char name[SGP_NAME_BYTES];
    uint64_t digest;
    uint64_t version;       /* 0: no row has come, and what follows means nothing */
    uint64_t sequence;      /* counts the rows that have come to this node */
    uint32_t before, after; /* by sequence; NO_ROW: none */
    uint32_t source;        /* number of the link on which it came; 0: none */
    uint32_t interval_ms;
    sgp_time since; /* when it came */
    sgp_time age;   /* that it had then */
    bool stale;     /* as last told by sgp_fleet_changed */
    bool proved;    /* its signature was verified, or it is this node's own */
    /* In place, so that a row that comes allocates nothing. */
    char text[SGP_ROW_TEXT_BYTES], key[SGP_ROW_KEY_BYTES], signature[SGP_ROW_SIGNATURE_BYTES];
};

struct sgp_fleet {
    struct sgp_fleet_settings settings;
    char name[SGP_NAME_BYTES];
    struct sgp_fleet_held *rows;
    uint32_t *by_digest; /* all indices */
    uint32_t count;
    bool proves;   /* rows must be proved */
    uint32_t self; /* NO_ROW: this node has no row */
    uint32_t first, last;
    uint64_t sequence;
    uint64_t version; /* of the latest own row */
    uint64_t denied;  /* the greatest version of a row in this node's name that came from others */
    uint32_t scan;    /* of sgp_fleet_changed */
    struct sgp_fleet_counts counts;
    struct sgp_fleet_link *links;
    struct sgp_fleet_link *due; /* the link that offers next; NULL: the first one */
    uint32_t opened;            /* links so far */
};

struct sgp_fleet_link {
    struct sgp_fleet *fleet;
    struct sgp_fleet_link *next;
    uint32_t number;
    bool offers;       /* until all rows that have changed are offered */
    uint64_t told;     /* rows up to this sequence were offered */
    uint32_t cursor;   /* the row that had it then; NO_ROW: none */
    uint64_t *lacks;   /* a bit for each row: the peer has, or may have, a later version */
    uint64_t *wanted;  /* likewise: the peer wants it */
    uint32_t turn;     /* the row that is given next, if it is wanted */
    double allowance;  /* bytes that may be sent */
    sgp_time refilled; /* when that was computed */
    double patience;   /* rows that may come */
    sgp_time came;     /* when that was computed */
};

/* Set a bit of `lacks` or `wanted`. */
static inline void sgp_fleet_set(uint64_t *bits, uint32_t index)
{
    bits[index / SGP_FLEET_BITS] |= (uint64_t)1 << index % SGP_FLEET_BITS;
}

/* store.c: the index of a node, or NO_ROW. */
uint32_t sgp_fleet_find(const struct sgp_fleet *fleet, uint64_t digest);

/* link.c: indices have changed, so what a link knows of rows means nothing any more. */
void sgp_fleet_link_forget(struct sgp_fleet_link *link);

/* link.c: ask the peer for all rows that are not here. It may have offered them while this node did
 * not know their authors. */
void sgp_fleet_link_lack(struct sgp_fleet_link *link);

/* store.c: the parts of a row that is there, at this time. */
struct sgp_row sgp_fleet_row_of(const struct sgp_fleet_held *held, sgp_time now);

/* store.c: a row has come on the link of this number. Result as sgp_fleet_take. */
int sgp_fleet_judge(struct sgp_fleet *fleet, const struct sgp_row *row, uint32_t source,
    sgp_time now, uint64_t seconds);

#endif

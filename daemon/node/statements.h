/* SPDX-License-Identifier: Apache-2.0 */
/* Signed words on the end of the fleet: until when their author trains, or that training shall
 * stop; they are relayed as they are. Where the file says tls=require, a word that `stops` nodes
 * have signed is proven, and told to the core; a neighbour's mere word is not.
 *
 * Fails: a wrong signature ends its connection; a word by a key that our file does not give is
 * dropped. Thread: the loop thread. */
#ifndef SGPD_STATEMENTS_H
#define SGPD_STATEMENTS_H

#include "net/link.h"

#include "sgp/key.h"
#include "sgp/topology.h"

struct daemon;

struct statement {
    uint32_t kind; /* enum sgp_statement_kind */
    sgp_round round;
    char author[SGP_NAME_BYTES], key[SGP_PUBLIC_BYTES], signature[SGP_SIGNATURE_BYTES];
    char hash[SGP_KEY_BYTES]; /* of its key */
    uint32_t changes;         /* of its author's word */
};

/* Of each kind those that matter: as many as the file asks for, one an author. */
struct statements {
    struct statement held[SGP_STATEMENT_KINDS][SGP_STOPS_MAX];
    uint32_t count[SGP_STATEMENT_KINDS];
    sgp_round said[SGP_STATEMENT_KINDS]; /* by this node; 0: nothing */
    uint64_t digest;                     /* of the file for which all that was signed */
};

/* One came over a neighbour's link. */
void statements_take(struct daemon *daemon, struct link *link, const struct sgp_statement *came);
/* A neighbour says where it stands: if its end is nearer than ours, ours is signed and told. */
void statements_hear(struct daemon *daemon, const struct sgp_pulse *pulse);
/* A link is up: all that is held. */
void statements_tell(struct daemon *daemon, struct link *link);
/* This node asks the fleet to stop training at that round. */
void statements_ask_stop(struct daemon *daemon, sgp_round round);
/* Another file voids words of struck nodes or keys, or on another topology; ours is said anew. */
void statements_reloaded(struct daemon *daemon);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Signed statements about the end of the fleet: until when the author trains, or that training must
 * stop. They are relayed unchanged. If the file says tls=require, a statement that `stops` nodes
 * have signed is proved, and passed to the core. The unsigned statement of one neighbour is not.
 *
 * Fails: a statement with a key that this node's file does not give its author is dropped, and
 * its signature is not verified. Otherwise a wrong signature ends its connection. Thread: the loop
 * thread. */
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
    char hash[SGP_KEY_BYTES]; /* hash of the author's key */
    uint32_t changes;         /* changes of its author's statement */
};

/* For each kind, the statements that matter: as many as the file requires, one for each author. */
struct statements {
    struct statement held[SGP_STATEMENT_KINDS][SGP_STOPS_MAX];
    uint32_t count[SGP_STATEMENT_KINDS];
    sgp_round said[SGP_STATEMENT_KINDS]; /* the statement of this node; 0: none */
    uint64_t digest;                     /* digest of the file for which all this was signed */
};

/* A statement arrived on a neighbour's link. */
void statements_take(struct daemon *daemon, struct link *link, const struct sgp_statement *came);
/* A neighbour states its progress. If its end is nearer than this node's, this node's end is signed
 * and sent. */
void statements_hear(struct daemon *daemon, const struct sgp_pulse *pulse);
/* A link is up: send all statements to it. */
void statements_tell(struct daemon *daemon, struct link *link);
/* This node asks the fleet to stop training at that round. */
void statements_ask_stop(struct daemon *daemon, sgp_round round);
/* Another file voids statements of removed nodes or keys, or about another topology. This node's
 * statement is made again. */
void statements_reloaded(struct daemon *daemon);

#endif

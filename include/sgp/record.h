/* SPDX-License-Identifier: Apache-2.0 */
/* What of a node must survive its process, so that no weight is lost or made when it dies at any
 * moment: who it is, how much it has, what it accepted last from each source, and what it owes each
 * target. Parameters are no part of it: they are regained as an estimate (sgp/node.h).
 *
 * A performer that stores the record before it performs the effects of the step that changed it
 * (the driver's verb `commit`) may be killed anywhere: a share is on record at its target before the
 * acknowledgement leaves, and at its source before the share does.
 *
 * What is owed comes home at a restart if the target never saw it: to the bit if the snapshot was kept,
 * else by weight alone, at the node's own estimate.
 *
 * Thread: the node's. */
#ifndef SGP_RECORD_H
#define SGP_RECORD_H

#include "sgp/message.h"

struct sgp_node;

struct sgp_record_link { /* one directed edge, in or out */
    uint32_t peer;       /* node index in the topology */
    bool out;            /* this node is the source */
    uint64_t lineage;    /* of the peer; 0: never greeted */
    uint64_t number;     /* OUT: of the last share given; IN: of the last accepted, of `lineage` */
    uint64_t acknowledged;   /* OUT: of the last share that the peer says it accepted; or 0 */
    uint64_t former_lineage; /* IN: of the last other that brought weight; 0: none */
    uint64_t former_number;  /* IN: of the last accepted of that */
    bool owes;               /* OUT: the share of that number is not acknowledged */
    sgp_round owed_round;
    double owed_fraction; /* in [0, 1] */
    double owed_weight;   /* >= 0 */
    bool owed_kept;       /* snapshot slot `owed_slot` holds the content of that share; of a record
                             that a node is made from, only if its performer has put it there */
    uint32_t owed_slot;
    double owed_bequest;                 /* of the share: members that leave with it */
    enum sgp_compressor owed_compressor; /* of its payload */
    uint64_t owed_lineage; /* of the peer that was sent a bequest, if it has another now; or 0 */
};

/* What a node answers for though it did not do it itself: `source` gave share `number` to `target`. Nodes by
 * name: the topology may not know them any more. */
enum sgp_account_kind {
    SGP_ACCOUNT_ACCEPTED =
        1,            /* target, which has left, accepted nothing of source beyond this number */
    SGP_ACCOUNT_DEBT, /* source did not learn whether target has accepted it */
};

struct sgp_account {
    enum sgp_account_kind kind;
    char source[SGP_NAME_BYTES];
    char target[SGP_NAME_BYTES];
    uint64_t source_lineage, target_lineage; /* not 0 */
    uint64_t number;
    double weight; /* DEBT: of the share, which is this node's or the target's */
};
#define SGP_ACCOUNTS_MAX 512u /* of one node; who would leave it more takes another heir */

struct sgp_record {
    uint64_t lineage; /* of the node; not 0 */
    sgp_round round;  /* the round it is in */
    bool trained;     /* in that round already */
    bool gave;        /* in that round already */
    double weight;    /* w >= 0, with what is accepted and not yet absorbed; without what is owed */
    double surplus;   /* members that left their mass to it, and that it has not dissolved */
    sgp_round
        rounds; /* in which it trains, of a relay the end that it has heard of; 0: its end is open; SGP_ROUND_NONE: none, it has ended */
    sgp_round stop; /* where the fleet stops early, or SGP_ROUND_NONE */
    sgp_round
        mixes; /* the greatest last round of mixing that a neighbour named, or this node asked for; or 0 */
    double covered; /* of these, those whose mass has come; <= surplus */
    double
        unknown; /* by which the total may be off at most, since former records were outdated: the
                       sum of the members at each time */
    sgp_round turns; /* rounds that train before `round` */
    struct sgp_epoch
        epoch;    /* of exact cycles; `topology` is that of the node's file, 0: not known */
    bool leaving; /* it is about to leave for good */
    bool left;    /* and has handed everything over */
    uint32_t link_count;
    uint32_t link_capacity;
    struct sgp_record_link *links; /* caller's memory */
    uint32_t account_count;
    uint32_t account_capacity;
    struct sgp_account *accounts; /* caller's memory */
};

/* Fill *record, whose `links` and `link_capacity` (at least needs.links), `accounts` and
 * `account_capacity` (SGP_ACCOUNTS_MAX always suffice) are the caller's. */
SGP_API void sgp_node_record(const struct sgp_node *node, struct sgp_record *record);

/* Whether the latest step changed what sgp_node_record gives. */
SGP_API bool sgp_node_record_changed(const struct sgp_node *node);

/* Whether a record that comes from a file can be a node's among `node_count` nodes: every number in
 * range, no link named twice. What it says is taken back into a node only if so. */
SGP_API bool sgp_record_is_sound(const struct sgp_record *record, uint32_t node_count);

#endif

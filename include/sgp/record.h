/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a node that must survive its process, so that no weight is lost or made when it dies
 * at any moment: its identity, its weight, the last number that it accepted from each source, and
 * the shares that it owes. Parameters are not part of it: the next process gets them again as an
 * estimate (sgp/node.h).
 *
 * If a performer stores the record before it performs the effects of the step that changed it (the
 * driver's operation `commit`), it may be killed at any point. A share is on record at its target
 * before the acknowledgement leaves, and at its source before the share does.
 *
 * At a restart an owed share that the target never saw returns: to the bit if the snapshot was
 * kept, otherwise by weight alone, at the node's own estimate.
 *
 * Thread: the node's. */
#ifndef SGP_RECORD_H
#define SGP_RECORD_H

#include "sgp/message.h"

struct sgp_node;

struct sgp_record_link {  /* one directed edge, in or out */
    uint32_t peer;        /* node index in the topology */
    bool out;             /* this node is the source */
    uint64_t incarnation; /* of the peer; 0: it never greeted */
    /* OUT: of the last share given; IN: of the last share accepted from `incarnation` */
    uint64_t number;
    uint64_t acknowledged;       /* OUT: of the last share that the peer acknowledged, or 0 */
    uint64_t former_incarnation; /* IN: the last other incarnation that brought weight; 0: none */
    uint64_t former_number;      /* IN: the last number accepted from that incarnation */
    bool owes;                   /* OUT: the share of that number is not acknowledged */
    sgp_round owed_round;
    double owed_fraction; /* in [0, 1] */
    double owed_weight;   /* >= 0 */
    /* Snapshot slot `owed_slot` holds the content of that share. In a record from which a node is
     * made, this is so only if the node's performer has put it there. */
    bool owed_kept;
    uint32_t owed_slot;
    double owed_bequest;                 /* the members that leave with the share */
    enum sgp_compressor owed_compressor; /* of its payload */
    /* Of the heir when the bequest was sent, if it has another incarnation now; otherwise 0. */
    uint64_t owed_incarnation;
};

/* A fact for which a node answers on behalf of others: `source` gave share `number` to `target`.
 * Nodes are given by name, since the topology may not contain them any more. */
enum sgp_account_kind {
    /* Target, which has left, accepted no share of source beyond this number. */
    SGP_ACCOUNT_ACCEPTED = 1,
    SGP_ACCOUNT_DEBT, /* source did not learn whether target has accepted it */
};

struct sgp_account {
    enum sgp_account_kind kind;
    char source[SGP_NAME_BYTES];
    char target[SGP_NAME_BYTES];
    uint64_t source_incarnation, target_incarnation; /* not 0 */
    uint64_t number;
    double weight; /* DEBT: of the share, which belongs to this node or to the target */
};
#define SGP_ACCOUNTS_MAX 512u /* of one node; a leaver with more accounts takes another heir */

struct sgp_record {
    uint64_t incarnation; /* of the node; not 0 */
    sgp_round round;      /* the node's round */
    bool trained;         /* in that round already */
    bool gave;            /* in that round already */
    /* w >= 0, with accepted shares that are not absorbed yet, and without owed shares */
    double weight;
    double surplus; /* members whose mass it inherited and has not dissolved */
    /* The rounds in which it trains; of a relay the end that it has heard of. 0: its end is open;
     * SGP_ROUND_NONE: none, it has ended. */
    sgp_round rounds;
    sgp_round stop; /* the round at which the fleet stops early, or SGP_ROUND_NONE */
    /* The greatest last round of mixing that a neighbour named or this node asked for, or 0. */
    sgp_round mixes;
    double covered; /* of `surplus`, the members whose mass has come */
    /* By how much the total may be off at most because former records were outdated: the sum of the
     * members at each time. */
    double unknown;
    sgp_round turns; /* rounds that train before `round` */
    /* Of exact cycles. `start` is SGP_ROUND_NONE if the node used no epochs. `topology` is the
     * digest of the node's file, 0: not known. */
    struct sgp_epoch epoch;
    bool leaving; /* the node is leaving for good */
    bool left;    /* the node has handed everything over */
    uint32_t link_count;
    uint32_t link_capacity;
    struct sgp_record_link *links; /* caller's memory */
    uint32_t account_count;
    uint32_t account_capacity;
    struct sgp_account *accounts; /* caller's memory */
};

/* Fill *record. The caller owns `links` with `link_capacity` (at least needs.links), and `accounts`
 * with `account_capacity` (SGP_ACCOUNTS_MAX always suffice). */
void sgp_node_record(const struct sgp_node *node, struct sgp_record *record);

/* Whether the latest step changed the result of sgp_node_record. */
bool sgp_node_record_changed(const struct sgp_node *node);

/* Whether a record from a file can belong to a node among `node_count` nodes: every number is in
 * range, and no link is named twice. A node may take a record back only if it is sound. */
bool sgp_record_is_sound(const struct sgp_record *record, uint32_t node_count);

#endif

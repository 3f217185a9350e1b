/* What of a node must survive its process, so that no weight is lost or made when it dies at any
 * moment: who it is, how much it has, what it accepted last from each source, and what it owes each
 * target. Parameters are no part of it: they are regained as an estimate (sgp/node.h).
 *
 * A performer that stores the record before it performs the effects of the step that changed it
 * (the driver's verb `commit`) may be killed anywhere: a share is on record at its target before the
 * acknowledgement leaves, and at its source before the share does.
 *
 * A record of an earlier moment is taken for what it is: at the first greeting of each link the node
 * learns what has passed there since, and when all have greeted it corrects its weight by that.
 *
 * What is owed comes home at a restart if the target never saw it: to the bit if the snapshot was kept,
 * else by weight alone, at the node's own estimate.
 *
 * Thread: the node's. */
#ifndef SGP_RECORD_H
#define SGP_RECORD_H

#include "sgp/types.h"

struct sgp_node;

struct sgp_former {   /* what was accepted from a lineage of a source that gave way to another */
    uint64_t lineage; /* 0: there is none */
    uint64_t number;  /* > 0, but for none */
    double passed;
    bool uncounted;
};

struct sgp_record_link { /* one directed edge, in or out */
    uint32_t peer;       /* node index in the topology */
    bool out;            /* this node is the source */
    uint64_t lineage;    /* of the peer; 0: never greeted */
    uint64_t number;     /* OUT: of the last share given; IN: of the last accepted, of `lineage` */
    bool owes;           /* OUT: the share of that number is not acknowledged */
    sgp_round owed_round;
    double owed_fraction; /* in [0, 1] */
    double owed_weight;   /* >= 0 */
    bool owed_kept;       /* snapshot slot `owed_slot` holds the content of that share; of a record
                             that a node is made from, only if its performer has put it there */
    uint32_t owed_slot;
    double owed_bequest; /* of the share: members that leave with it */
    double passed;  /* weight of all shares up to `number` that the target has accepted, >= 0 */
    bool uncounted; /* a ledger of before did not count it: `passed` says nothing yet */
    struct sgp_former former; /* IN */
};

struct sgp_record {
    uint64_t lineage; /* of the node; not 0 */
    sgp_round round;  /* the round it is in */
    bool trained;     /* in that round already */
    bool gave;        /* in that round already */
    double weight;    /* w >= 0, with what is accepted and not yet absorbed; without what is owed */
    double surplus;   /* members that left their mass to it, and that it has not dissolved */
    double
        unsettled; /* weight that it has too much (below 0: too little) by what its neighbours have
                         seen, because the record that it was made from was outdated */
    bool leaving;  /* it is about to leave for good */
    bool left;     /* and has handed everything over */
    uint32_t link_count;
    uint32_t link_capacity;
    struct sgp_record_link *links; /* caller's memory */
};

/* Fill *record, whose `links` and `link_capacity` (at least needs.links) are the caller's. */
SGP_API void sgp_node_record(const struct sgp_node *node, struct sgp_record *record);

/* Whether the latest step changed what sgp_node_record gives. */
SGP_API bool sgp_node_record_changed(const struct sgp_node *node);

/* Whether the node knows what it accepted last from this peer under that lineage, its present one or the
 * one before; then the number is in *ret_number. */
SGP_API bool sgp_node_accepted(
    const struct sgp_node *node, uint32_t peer, uint64_t lineage, uint64_t *ret_number);

/* Whether a record that comes from a file can be a node's among `node_count` nodes: every number in
 * range, no link named twice. What it says is taken back into a node only if so. */
SGP_API bool sgp_record_is_sound(const struct sgp_record *record, uint32_t node_count);

#endif

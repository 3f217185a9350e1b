/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger: what the core says must survive (sgp/record.h), in one memory-mapped file of the
 * state directory. It survives the process being killed at any instruction, not a power cut.
 *
 *     header: magic, version, links of a slot, node name | slot 0 | slot 1
 *     slot:   XXH3-64 of what follows | sequence | bytes in use | weight that was minted |
 *             record | its links, each behind its peer's name | its accounts
 *
 * Record, links and accounts are the values of their forms (core/record.h). A commit fills the
 * older slot by plain stores and sets its checksum last, so one slot is always whole. A start goes
 * on with the file that is there, so that a full disk is no obstacle. It writes a new one only if
 * that is absent, damaged or too small. A damaged file stays damaged until the first commit, should
 * this start fail too.
 *
 * Fails: only at open. Thread: the loop thread. */
#ifndef SGPD_LEDGER_H
#define SGPD_LEDGER_H

#include "sgp/record.h"
#include "sgp/status.h"
#include "sgp/topology.h"

struct ledger {
    struct sgp_record record; /* scratch of commit; after open, what was found, if `found` */
    uint64_t sequence;        /* of the latest commit; 0: none yet */
    double minted;            /* weight made because an earlier ledger was lost; stored */
    bool found;               /* a sound ledger of this node was there */
    bool damaged;             /* there was one that cannot be used; `reason` says why */
    double orphaned; /* weight owed to nodes that the topology no longer names: taken back */
    struct sgp_error reason;
    const struct sgp_topology *topology; /* borrowed; of the node that commits */
    char *path;
    char name[SGP_NAME_BYTES]; /* of the node */
    unsigned char *map;
    size_t map_bytes, slot_bytes;
};

/* Read DIRECTORY/ledger of node `self`, if any, and have one for `link_capacity` links and those of it
 * that the topology names no more. Returns 0 also if it is absent or damaged; SGP_E_STATE if it is
 * another node's, or of another version; -errno, also if it cannot be read; -ENOMEM. On failure nothing is left open, and no
 * second file. */
int ledger_open(struct ledger *ledger, const char *directory, const struct sgp_topology *topology,
    uint32_t self, uint32_t link_capacity, struct sgp_error *error);

/* Have room for so many links. Returns 0; -errno or -ENOMEM, and all is as it was. */
int ledger_grow(struct ledger *ledger, uint32_t link_capacity, struct sgp_error *error);

/* Store what must survive of the node. */
void ledger_commit(struct ledger *ledger, const struct sgp_node *node);

void ledger_close(struct ledger *ledger);

#endif

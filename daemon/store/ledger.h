/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger: what must survive according to the core (sgp/record.h), in one memory-mapped file of
 * the state directory. It survives if the process is killed at any instruction. It does not survive
 * a power cut.
 *
 *     header: magic, version, links of a slot, node name | slot 0 | slot 1
 *     slot:   XXH3-64 of what follows | sequence | bytes in use | weight that was minted |
 *             record | its links, each behind its peer's name | its accounts
 *
 * Record, links and accounts are the values of their schemas (core/record.h). A commit fills the
 * older slot by plain stores and sets its checksum last, so one slot is always valid. A start
 * continues the existing file, so that a full disk does not prevent it. It writes a new file only
 * if the old one is absent, damaged or too small. If this start fails too, a damaged file stays
 * damaged until the first commit.
 *
 * Fails: only at open. Thread: the loop thread. */
#ifndef SGPD_LEDGER_H
#define SGPD_LEDGER_H

#include "sgp/record.h"
#include "sgp/status.h"
#include "sgp/topology.h"

struct ledger {
    struct sgp_record record; /* scratch of commit; after open, the old record if `found` */
    uint64_t sequence;        /* of the latest commit; 0: none yet */
    double minted;            /* weight created because an earlier ledger was lost; stored */
    bool found;               /* a valid ledger of this node existed */
    bool damaged;             /* a ledger existed but cannot be used; `reason` says why */
    double orphaned; /* weight owed to nodes that the topology no longer names; reclaimed */
    struct sgp_error reason;
    const struct sgp_topology *topology; /* borrowed; of the node that commits */
    char *path;
    char name[SGP_NAME_BYTES]; /* of the node */
    unsigned char *map;
    size_t map_bytes, slot_bytes;
    struct ledger_spans *spans; /* what a commit copies */
};

/* Read DIRECTORY/ledger of node `self`, if it exists. Provide a ledger for `link_capacity` links
 * and those links of the file that the topology no longer names. Returns 0 also if the file is
 * absent or damaged. Returns SGP_E_STATE if it is another node's, or of another version. Returns
 * -errno, also if it cannot be read; or -ENOMEM. On failure nothing is left open, and no second
 * file is left. */
int ledger_open(struct ledger *ledger, const char *directory, const struct sgp_topology *topology,
    uint32_t self, uint32_t link_capacity, struct sgp_error *error);

/* Make room for so many links. Returns 0. On -errno or -ENOMEM, nothing has changed. */
int ledger_grow(struct ledger *ledger, uint32_t link_capacity, struct sgp_error *error);

/* Store the part of the node that must survive. */
void ledger_commit(struct ledger *ledger, const struct sgp_node *node);

void ledger_close(struct ledger *ledger);

#endif

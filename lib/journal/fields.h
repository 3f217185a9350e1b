/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to lib/journal: the schemas of structures that only the journal stores. The schemas of a
 * record belong to the core.
 *
 * One schema serves both directions, so what is written is what is read. */
#ifndef SGP_JOURNAL_FIELDS_H
#define SGP_JOURNAL_FIELDS_H

#include "base/schema.h"
#include "core/record.h"

#include "sgp/journal.h"

#define SGP_JOURNAL_MARK_BYTES (sizeof(SGP_JOURNAL_MARK) - 1)
#define SGP_JOURNAL_HEADER_BYTES 12u

enum sgp_journal_record { SGP_JOURNAL_START = 1, SGP_JOURNAL_EVENT, SGP_JOURNAL_RELOAD };

/* struct sgp_node_config without topology, method and record; struct sgp_event without its message
 * and sketch; struct sgp_sketch; struct sgp_node_change without the topology. */
extern const struct sgp_schema sgp_journal_config, sgp_journal_event, sgp_journal_sketch,
    sgp_journal_change;

#endif

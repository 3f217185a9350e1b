/* SPDX-License-Identifier: Apache-2.0 */
/* Inside lib/journal: what is written of the structures that it alone writes (those of a record are the core's).
 *
 * One form a structure serves both directions, so what is written is what is read. */
#ifndef SGP_JOURNAL_FIELDS_H
#define SGP_JOURNAL_FIELDS_H

#include "base/form.h"
#include "core/record.h"

#include "sgp/journal.h"

#define SGP_JOURNAL_MARK_BYTES (sizeof(SGP_JOURNAL_MARK) - 1)
#define SGP_JOURNAL_HEADER_BYTES 12u

enum sgp_journal_record { SGP_JOURNAL_START = 1, SGP_JOURNAL_EVENT, SGP_JOURNAL_RELOAD };

/* struct sgp_node_config but for topology, method and record; struct sgp_event but for its message and
 * sketch; struct sgp_sketch; struct sgp_node_change but for the topology. */
extern const struct sgp_form sgp_journal_config, sgp_journal_event, sgp_journal_sketch,
    sgp_journal_change;

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Inside lib/journal: what is written of each structure, in order.
 *
 * One table a structure serves both directions, so what is written is what is read. */
#ifndef SGP_JOURNAL_FIELDS_H
#define SGP_JOURNAL_FIELDS_H

#include "sgp/journal.h"

#include <msgpack.h>

#define SGP_JOURNAL_MARK_BYTES (sizeof(SGP_JOURNAL_MARK) - 1)
#define SGP_JOURNAL_HEADER_BYTES 12u

enum sgp_journal_record { SGP_JOURNAL_START = 1, SGP_JOURNAL_EVENT, SGP_JOURNAL_RELOAD };

enum sgp_journal_kind {
    SGP_JOURNAL_U64 = 1,
    SGP_JOURNAL_U32,
    SGP_JOURNAL_I64,
    SGP_JOURNAL_INT, /* and enumerations */
    SGP_JOURNAL_BOOL,
    SGP_JOURNAL_REAL,
    SGP_JOURNAL_FLOAT,
    SGP_JOURNAL_NAME, /* char[SGP_NAME_BYTES] */
};

struct sgp_journal_field {
    enum sgp_journal_kind kind;
    size_t offset;
};

struct sgp_journal_table {
    const struct sgp_journal_field *fields;
    size_t count;
};

/* struct sgp_node_config but for topology, method and record; struct sgp_record but for its lists; the
 * elements of these; struct sgp_event but for its message and sketch; struct sgp_sketch; struct
 * sgp_node_change but for the topology. */
extern const struct sgp_journal_table sgp_journal_config, sgp_journal_record_fields,
    sgp_journal_record_link, sgp_journal_account, sgp_journal_event, sgp_journal_sketch,
    sgp_journal_change;

/* The next field of a structure as a msgpack value; a name is borrowed. */
msgpack_object sgp_journal_load(const struct sgp_journal_field *field, const void *structure);

/* Put a value into it; false if it is of another type or does not fit. */
bool sgp_journal_store(
    const struct sgp_journal_field *field, const msgpack_object *value, void *structure);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to lib/journal: reads records and their values from bytes that may be hostile. */
#ifndef SGP_JOURNAL_READ_H
#define SGP_JOURNAL_READ_H

#include "journal/fields.h"
#include "wire/pack.h"

#include "sgp/wire.h"

#define SGP_JOURNAL_VERSION_BYTES 128u

/* ---- records ---- */

struct sgp_journal_scan {
    const uint8_t *bytes;
    size_t count;
    size_t at;        /* start of the next record */
    const char *name; /* name of the file, for messages */
};

/* A sound record, whose body is complete. */
struct sgp_journal_found {
    size_t at;   /* position in the file, for messages */
    bool begins; /* it is the first record of a part */
    size_t
        /* where an incomplete record was found before this one, or at the end; SIZE_MAX: nowhere */
        cut_at;
    bool ended; /* there is no further record */
    const uint8_t *body;
    size_t bytes;
};

/* Find the next record. Returns 0. SGP_E_FILE: the record is damaged, and not only incomplete. */
int sgp_journal_next(
    struct sgp_journal_scan *scan, struct sgp_journal_found *ret_found, struct sgp_error *error);

/* ---- values ---- */

/* The initial state of a process, with its own memory. */
struct sgp_journal_process {
    char version[SGP_JOURNAL_VERSION_BYTES];
    struct sgp_journal_start start; /* refers to `version` and `config` */
    struct sgp_node_config config;  /* refers to `topology` and `record` */
    struct sgp_topology *topology;  /* the caller may take it over, and must then set it to NULL */
    struct sgp_record record;
};
void sgp_journal_process_finish(struct sgp_journal_process *process);

/* An event's message and sketch. */
struct sgp_journal_said {
    struct sgp_wire_text text;
    struct sgp_message message;
    struct sgp_sketch sketch;
};

/* The kind of record of a body; 0: no known kind. */
int sgp_journal_kind_of(struct sgp_unpacker *reader);

/* Read the rest of the body, to its end. Returns 0, -ENOMEM, or SGP_E_FILE with the fault in *why.
 * Checks the content of the file only, not whether a core accepts it. */
int sgp_journal_get_start(
    struct sgp_unpacker *reader, struct sgp_journal_process *ret_process, struct sgp_error *why);
int sgp_journal_get_event(struct sgp_unpacker *reader, struct sgp_journal_said *said,
    struct sgp_event *ret_event, struct sgp_error *why);
int sgp_journal_get_reload(struct sgp_unpacker *reader, sgp_time *ret_now,
    struct sgp_topology **ret_topology, struct sgp_node_change *ret_change, struct sgp_error *why);

#endif

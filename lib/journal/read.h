/* SPDX-License-Identifier: Apache-2.0 */
/* Inside lib/journal: records and what they hold, out of bytes that may be hostile. */
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
    size_t at;        /* where the next record begins */
    const char *name; /* of the file, for messages */
};

/* A sound record: its body is whole. */
struct sgp_journal_found {
    size_t at;   /* in the file; for messages */
    bool begins; /* the first record of a part */
    size_t
        cut_at; /* where a record was cut off before this one, or at the end; SIZE_MAX: nowhere */
    bool ended; /* there is none: this was the end */
    const uint8_t *body;
    size_t bytes;
};

/* The next record. Returns 0, or SGP_E_FILE at one that is damaged, but not by being cut off. */
int sgp_journal_next(
    struct sgp_journal_scan *scan, struct sgp_journal_found *ret_found, struct sgp_error *error);

/* ---- values ---- */

/* What a process began with, and its own memory for it. */
struct sgp_journal_process {
    char version[SGP_JOURNAL_VERSION_BYTES];
    struct sgp_journal_start start; /* of `version` and `config` */
    struct sgp_node_config config;  /* of `topology` and `record` */
    struct sgp_topology *topology;  /* may be taken away: set it to NULL then */
    struct sgp_record record;
};
void sgp_journal_process_finish(struct sgp_journal_process *process);

/* An event's message and sketch, beside it. */
struct sgp_journal_said {
    struct sgp_wire_text text;
    struct sgp_message message;
    struct sgp_sketch sketch;
};

/* What kind of record a body is of; 0: of none. */
int sgp_journal_kind_of(struct sgp_unpacker *reader);

/* The rest of the body, to its end. 0; or -ENOMEM; or SGP_E_FILE with what is wrong in *why. Only what is
 * in the file is looked at, not whether a core bears it. */
int sgp_journal_get_start(
    struct sgp_unpacker *reader, struct sgp_journal_process *ret_process, struct sgp_error *why);
int sgp_journal_get_event(struct sgp_unpacker *reader, struct sgp_journal_said *said,
    struct sgp_event *ret_event, struct sgp_error *why);
int sgp_journal_get_reload(struct sgp_unpacker *reader, sgp_time *ret_now,
    struct sgp_topology **ret_topology, struct sgp_node_change *ret_change, struct sgp_error *why);

#endif

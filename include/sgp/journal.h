/* SPDX-License-Identifier: Apache-2.0 */
/* The journal of a node: the whole input of its core, by which the same core does the same again.
 *
 *     journal = part ...      one for each process of the node, which appends it
 *     part    = "sgpd events 4\n" | record START | record EVENT or RELOAD ...
 *     record  = bytes of the body, its checksum, the checksum of these 8 bytes (uint32 each,
 *               little-endian) | body: msgpack values; a message is its frame of sgp/wire.h
 *
 * A core has no other input: no clock, no file, and random numbers from the seed in START. The
 * writer must put a record into the file before the step of that record. So the journal of a killed
 * process lacks at most the record under way. Model parameters are not part of it.
 *
 * Any thread; nothing here keeps state. */
#ifndef SGP_JOURNAL_H
#define SGP_JOURNAL_H

#include "sgp/node.h"
#include "sgp/sink.h"

#define SGP_JOURNAL_MARK "sgpd events 4\n" /* the number of the format */
#define SGP_JOURNAL_BODY_MAX (128u << 20)  /* bytes; a topology is the longest record */

/* Records to be written. Zero-initialise it; free(bytes) ends it. */
struct sgp_journal {
    uint8_t *bytes;
    size_t count;
    size_t capacity;
};

/* The initial state of a node's process. */
struct sgp_journal_start {
    const char *version; /* of the program: sgp_version() */
    int64_t date;        /* of the wall clock, nanoseconds since 1970 */
    sgp_time now;        /* the same moment in the events' time */
    const struct sgp_node_config *config;
};

/* Append a record. If that fails, the earlier records are unchanged. Returns 0; -ENOMEM; -EINVAL
 * for a message that has no frame. After a few records have been put and taken out (count = 0), an
 * event allocates nothing. */
int sgp_journal_put_start(struct sgp_journal *journal, const struct sgp_journal_start *start);
int sgp_journal_put_event(struct sgp_journal *journal, const struct sgp_event *event);
int sgp_journal_put_reload(
    struct sgp_journal *journal, sgp_time now, const struct sgp_node_change *change);

/* The first line of a part's trace: `t=NS node=NAME event=process version=.. date=.. ...`. */
void sgp_journal_head(char line[SGP_TEXT_BYTES], const struct sgp_journal_start *start);

/* Whether records may be appended to a file that begins with bytes[0..count), where count is the
 * whole file or at least strlen(SGP_JOURNAL_MARK). Returns 0, or SGP_E_FILE with a text that says
 * what the file is instead. `name` is the file's name in messages. */
int sgp_journal_check(
    const uint8_t *bytes, size_t count, const char *name, struct sgp_error *error);

/* Feed the journal bytes[0..count) to sgp_node_step. The sink gets the trace, as the node's own
 * driver printed it, as lines of level TRACE. It gets faults that do not end the replay as WARNING:
 * a record that is cut off, at the end or because the next process began, and a program of another
 * version than this one. Returns 0; SGP_E_FILE with the byte where the journal is damaged, has
 * another format, or contains an input that no performer may give; -ENOMEM. The bytes may be
 * hostile. */
int sgp_journal_replay(const uint8_t *bytes, size_t count, const char *name,
    const struct sgp_sink *sink, struct sgp_error *error);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The journal of a node: everything that its core was given, so that the same core does the same again.
 *
 *     journal = part ...      one for each process of the node, appended by it
 *     part    = "sgpd events 4\n" | record START | record EVENT or RELOAD ...
 *     record  = bytes of the body, its checksum, the checksum of these 8 bytes (uint32 each,
 *               little-endian) | body: msgpack values, a message among them as its frame of sgp/wire.h
 *
 * A core has no other input: no clock, no file, and chance by the seed in START. Whoever writes puts a record
 * into the file before the step that it speaks of, so of a process that was killed no more is missing than the
 * record under way. Model parameters are no part of it.
 *
 * Any thread; nothing here keeps state. */
#ifndef SGP_JOURNAL_H
#define SGP_JOURNAL_H

#include "sgp/node.h"
#include "sgp/sink.h"

#define SGP_JOURNAL_MARK "sgpd events 4\n" /* the number is that of the format */
#define SGP_JOURNAL_BODY_MAX (128u << 20)  /* bytes; a topology is the longest thing there is */

/* Records that are to be written. Zero-initialise it; free(bytes) ends it. */
struct sgp_journal {
    uint8_t *bytes;
    size_t count;
    size_t capacity;
};

/* What a process of a node begins with. */
struct sgp_journal_start {
    const char *version; /* of the program: sgp_version() */
    int64_t date;        /* of the wall clock, nanoseconds since 1970 */
    sgp_time now;        /* the same moment in the events' time */
    const struct sgp_node_config *config;
};

/* Append a record. What is there stays as it is if that fails. Returns 0; -ENOMEM; -EINVAL for a message
 * that has no frame. Once a few have been put and taken out (count = 0), an event allocates nothing. */
SGP_API int sgp_journal_put_start(
    struct sgp_journal *journal, const struct sgp_journal_start *start);
SGP_API int sgp_journal_put_event(struct sgp_journal *journal, const struct sgp_event *event);
SGP_API int sgp_journal_put_reload(
    struct sgp_journal *journal, sgp_time now, const struct sgp_node_change *change);

/* The line with which the trace of a part begins: `t=NS node=NAME event=process version=.. date=.. ...`. */
SGP_API void sgp_journal_head(char line[SGP_TEXT_BYTES], const struct sgp_journal_start *start);

/* Whether records may be appended to a file that begins with bytes[0..count), count being all of it or
 * at least strlen(SGP_JOURNAL_MARK): 0, or SGP_E_FILE with what it is in place of a journal of this format. `name`
 * stands for the file in messages. */
SGP_API int sgp_journal_check(
    const uint8_t *bytes, size_t count, const char *name, struct sgp_error *error);

/* Feed the journal bytes[0..count) to sgp_node_step. The sink gets the trace, as the node's own driver
 * told it, as lines of level TRACE; and as WARNING what does not end the replay: a record that is cut off, at the
 * end or because the next process began, and a program of another version than this one. Returns 0; SGP_E_FILE
 * with the byte where the journal is damaged, of another format, or says what no performer may say;
 * -ENOMEM. The bytes may be hostile. */
SGP_API int sgp_journal_replay(const uint8_t *bytes, size_t count, const char *name,
    const struct sgp_sink *sink, struct sgp_error *error);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Lines for people: the log, the last error, STATUS=. Thread: the loop thread. */
#ifndef SGPD_NOTES_H
#define SGPD_NOTES_H

#include "state.h"

/* Log a note of the core. */
void notes_note(struct daemon *daemon, const struct sgp_effect *effect);
void notes_status_line(struct daemon *daemon);
/* Report that training diverges, and that it has recovered, once each. */
void notes_divergence(struct daemon *daemon);
/* Log why this node ends a connection. */
void notes_hang_up(
    struct daemon *daemon, const struct sgp_link *link, int code, enum sgp_reason reason);
/* A caller was assigned to this edge: check whether there is another node of that name. */
void notes_namesake(struct daemon *daemon, struct edge *edge, const struct link *caller);
/* A connection of this edge is not ciphered, although that is offered. */
void notes_plain(struct daemon *daemon, struct edge *edge, const struct link *link);
/* Keep the text of the message with which a peer ends a connection, for the note that follows. */
void notes_farewell(struct daemon *daemon, const struct link *link, const char *text);
/* The peer's model differs, as the text says. It remains the reason of refusals until the link is
 * up. */
void notes_unlike(struct daemon *daemon, const struct link *link, const char *text);
/* A peer relays a statement whose author does not have this key in the file. `kind` is the name of
 * its kind, and `hash` is of the key. */
void notes_statement_refused(struct daemon *daemon, const struct link *link,
    const struct sgp_statement *statement, const char *kind, const char *hash);
/* The guard has clipped nearly all of the latest shares of this source. */
void notes_clipped(struct daemon *daemon, uint32_t peer);
/* One of several neighbours' models was adopted. It is a warning if another is far from it. */
void notes_compared(struct daemon *daemon, const struct sgp_adoption *adoption);
/* Report the number of suppressed lines about links, once some time has passed. */
void notes_lines_dropped(struct daemon *daemon);
/* A connection failed: fill edge->error. */
void notes_link_failed(
    struct daemon *daemon, const struct link *link, struct edge *edge, int code, const char *text);
/* An error for the user: a line of the log, and the last error. */
void notes_error(struct daemon *daemon, const char *format, ...) SGP_PRINTF(2, 3);
/* The last error is resolved if it begins with these words. */
void notes_mended(struct daemon *daemon, const char *beginning);

#endif

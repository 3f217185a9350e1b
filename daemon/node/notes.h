/* SPDX-License-Identifier: Apache-2.0 */
/* Lines for people: the log, the last error, STATUS=. Thread: the loop thread. */
#ifndef SGPD_NOTES_H
#define SGPD_NOTES_H

#include "state.h"

/* What the core notes. */
void notes_note(struct daemon *daemon, const struct sgp_effect *effect);
void notes_status_line(struct daemon *daemon);
/* Say that training diverges, and that it has come back, once each. */
void notes_divergence(struct daemon *daemon);
/* We end a connection: why. */
void notes_hang_up(
    struct daemon *daemon, const struct sgp_link *link, int code, enum sgp_reason reason);
/* A node called, and has been given to this edge: is there another of its name? */
void notes_namesake(struct daemon *daemon, struct edge *edge, const struct link *caller);
/* A connection of this edge is not ciphered, where that is offered. */
void notes_plain(struct daemon *daemon, struct edge *edge, const struct link *link);
/* What a peer says with the message that ends a connection, for the note that follows. */
void notes_farewell(struct daemon *daemon, const struct link *link, const char *text);
/* The peer's model is another: the text says how. It stays the reason of refusals until the link is up. */
void notes_unlike(struct daemon *daemon, const struct link *link, const char *text);
/* Tell what was left out about links, once that is some time ago. */
void notes_lines_dropped(struct daemon *daemon);
/* A connection failed; fills edge->error. */
void notes_link_failed(
    struct daemon *daemon, const struct link *link, struct edge *edge, int code, const char *text);
/* An error that people must know of: a line of the log, and the last error. */
void notes_error(struct daemon *daemon, const char *format, ...) SGP_PRINTF(2, 3);
/* What the last error is about goes well again: it begins with these words. */
void notes_mended(struct daemon *daemon, const char *beginning);

#endif

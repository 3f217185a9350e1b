/* How the node got where it is: a row at each evaluation, the latest kept in memory for onlookers, all
 * appended to STATE/history.csv. A value that is not known is an empty field.
 *
 * Fails: a file that cannot be opened, at the start; a full disk later is told once and training goes
 * on. Thread: the loop thread. */
#ifndef SGPD_HISTORY_H
#define SGPD_HISTORY_H

#include "view.h"

#include "sgp/sink.h"
#include "sgp/status.h"

#include <stdio.h>

struct history {
    struct view_history_row *rows; /* a ring of VIEW_HISTORY_MAX */
    uint32_t first;
    uint32_t count;
    FILE *file;
    const struct sgp_sink *sink;
    bool failed; /* told already */
};

/* Open or begin DIRECTORY/history.csv. Returns 0, or a negative code with *error filled. */
int history_open(struct history *history, const char *directory, const struct sgp_sink *sink,
    struct sgp_error *error);

/* Close; an all-zero struct is fine. */
void history_close(struct history *history);

void history_add(struct history *history, const struct view_history_row *row);

/* Row `index` (0 is the oldest kept, < count). */
const struct view_history_row *history_row(const struct history *history, uint32_t index);

#endif

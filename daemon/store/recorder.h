/* SPDX-License-Identifier: Apache-2.0 */
/* The event journal (sgp/journal.h) and the trace of this process, each appended to a file of its own if
 * the configuration names one.
 *
 * A record leaves with one write, before the step that it speaks of, and is not synced: a process that is killed
 * loses none but the one under way, a machine that loses power may lose seconds. What finds no room later is
 * told once, and that file is written no more; training goes on.
 *
 * Fails: at the start alone, with one line. Thread: the loop thread. */
#ifndef SGPD_RECORDER_H
#define SGPD_RECORDER_H

#include "setup/config.h"

#include "sgp/journal.h"

#include <sys/types.h>

struct recorder_file {
    const char *path; /* borrowed; NULL: none is wanted, or it is written no more */
    const char *key;  /* of the configuration, for messages */
    int descriptor;
    off_t end; /* of what is whole */
};

struct recorder {
    struct recorder_file journal_file, trace_file;
    struct sgp_journal journal;
    struct sgp_sink trace;      /* hand &trace to the driver */
    const struct sgp_sink *log; /* borrowed; gets the trace too, where it wants it */
};

/* Open the files that are wanted, and write how the node begins. On failure none is left open. */
int recorder_open(struct recorder *recorder, const struct config *config,
    const struct sgp_node_config *node, sgp_time now, const struct sgp_sink *log,
    struct sgp_error *error);
void recorder_event(struct recorder *recorder, const struct sgp_event *event);
void recorder_reload(struct recorder *recorder, sgp_time now, const struct sgp_node_change *change);
void recorder_close(struct recorder *recorder); /* one that is zero is fine */

#endif

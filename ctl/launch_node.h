/* SPDX-License-Identifier: Apache-2.0 */
/* Inside launch_run.c: the nodes of this machine, each with a daemon and a program, and what they
 * show together. */
#ifndef CTL_LAUNCH_NODE_H
#define CTL_LAUNCH_NODE_H

#include "launch.h"

/* ---- launch_node.c ---- */

/* What the nodes of a launch share. */
struct launch_shared {
    const struct launch_plan *plan;
    const struct launch_watch *watch; /* learns of each process that is started */
    struct launch_lines *lines;
    uv_loop_t *loop;
    void (*changed)(void *context); /* after a message of a daemon, and the end of an output */
    void (*unread)(void *context);  /* nobody reads what is printed */
    /* a daemon that has been told to end asks for so much time from now on */
    void (*extend)(void *context, uint64_t milliseconds);
    void *context;
};

struct launch_node {
    const struct launch_shared *shared;
    const char *name;
    uint32_t index;
    pid_t daemon, program; /* 0: not started, or ended */
    bool ready;            /* the daemon */
    bool started;          /* the program */
    bool failed;           /* program or daemon, and that has been told */
    bool told;             /* told to end, so its status has no meaning */
    bool stopped;          /* the daemon has been told to end */
    int status;            /* the program's, once it has ended */
    int words;             /* a socket */
    uv_poll_t listening;
    struct launch_stream output, error;
    unsigned streams; /* that are open */
    long long round;  /* -1: not known */
    double loss;      /* NaN: not known */
};

/* Node `index` of this machine; `shared` is borrowed. */
void launch_node_init(struct launch_node *node, const struct launch_shared *shared, uint32_t index);
/* Start its daemon, whose messages are read from then on. Returns 0, -errno or a code of libuv. */
int launch_node_start_daemon(struct launch_node *node);
/* Start its program, which finds in its environment where to attach. Likewise. */
int launch_node_start_program(struct launch_node *node);
/* The last error in its daemon's log, or else the last line, without its level. */
void launch_node_last_line(const struct launch_node *node, char text[SGP_TEXT_BYTES]);
/* Read no more messages; and after the loop has ended, close the socket. */
void launch_node_close(struct launch_node *node);
void launch_node_finish(struct launch_node *node);

/* ---- launch_progress.c ---- */

#define LAUNCH_PROGRESS_BYTES 256u

/* nodes[0..plan->nodes). The line of progress, `seconds` after the beginning. `starting`: not all
 * daemons are ready. */
void launch_progress_line(const struct launch_plan *plan, const struct launch_node *nodes,
    bool starting, double seconds, char text[LAUNCH_PROGRESS_BYTES]);
/* What a launcher is told about this host (launch_up.h). */
void launch_progress_report(
    const struct launch_plan *plan, const struct launch_node *nodes, int worst, bool over);
/* The result, for scripts; for a person, a line on standard error. */
void launch_progress_result(struct ctl *ctl, const struct launch_plan *plan,
    const struct launch_node *nodes, double seconds);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Inside `sgpctl launch`: a fleet on this machine, of one daemon and one program for each node.
 *
 * Each file calls only those below it:
 *
 *   launch.c        the command and its options
 *   launch_run.c    the loop: starts all, watches all, ends all
 *   launch_plan.c   topology, ports and configurations
 *   launch_lines.c  what the programs print, and the line of progress
 *   launch_guard.c  a process that cleans up when the launcher is gone
 *   launch_child.c  child processes and their groups
 *   launch_environment.c  what they find in their environment
 *   launch_place.c  directories, and where programs lie
 *
 * Thread: the only one. Everything that fails is told by ctl_fail, in one line. */
#ifndef CTL_LAUNCH_H
#define CTL_LAUNCH_H

#include "ctl.h"

#include "sgp/topology.h"

#include <limits.h>
#include <sys/types.h>
#include <uv.h>

#define LAUNCH_NODES_MAX 256u    /* of one machine */
#define LAUNCH_SETTINGS_MAX 128u /* --set */
#define LAUNCH_LINE_BYTES 65536u /* a longer line is printed in pieces */

/* ---- launch_place.c ---- */

/* Where a launch keeps its files. */
struct launch_place {
    char files[PATH_MAX];    /* topology, configurations, logs, state directories */
    char sockets[PATH_MAX];  /* the daemons' sockets; a short path, for a socket's has 107 bytes */
    char topology[PATH_MAX]; /* FILES/topology.dot */
    bool keeps;              /* `files` is the user's, and stays */
};

/* Make both directories, with mode 0700. `keep` is the user's directory, which may be there
 * already, or NULL for a temporary one. What was made before a failure is removed again. */
enum ctl_exit launch_place_make(struct ctl *ctl, const char *keep, struct launch_place *ret_place);
/* Remove what is not to be kept. Whether nothing is left. */
bool launch_place_remove(const struct launch_place *place);

/* The path of a program: `name` itself if it has a '/', else by PATH. */
bool launch_find(const char *name, char path[PATH_MAX]);
/* sgpd: beside sgpctl, in its build folder, in PATH, or in /usr/sbin. */
bool launch_find_sgpd(char path[PATH_MAX]);
/* The folder of package sgp in the source tree, if sgpctl runs from a build folder of it. */
bool launch_find_package(char path[PATH_MAX]);

/* ---- launch_environment.c ---- */

#define LAUNCH_VARIABLES_MAX 12u /* that a child has beside this process's */

/* This process's variables without those that are set anew. */
struct launch_environment {
    char *own[LAUNCH_VARIABLES_MAX]; /* owned */
    size_t count;
    char **all; /* owned; ends with NULL */
};

void launch_environment_set(
    struct launch_environment *environment, const char *name, const char *text);
void launch_environment_set_number(
    struct launch_environment *environment, const char *name, uint64_t number);
/* Fill in `all`, once the own ones are set. Whether there was memory. */
bool launch_environment_inherit(struct launch_environment *environment);
void launch_environment_free(struct launch_environment *environment);

/* ---- launch_child.c ---- */

struct launch_command {
    const char *path; /* absolute */
    char *const *arguments;
    char *const *environment;
    int output, error; /* descriptors that become 1 and 2; 0 is /dev/null */
};

/* Start a program as the leader of a process group. The kernel kills it when the launcher dies.
 * Its pid, or -errno. An `exec` that fails is told on its descriptor 2, with status 127 or 126. */
pid_t launch_start(const struct launch_command *command);

/* A child that has ended, without waiting; 0: none. Those of its group that are left are killed
 * first. Its exit status is as of a shell: 128 + N if signal N ended it. */
pid_t launch_reap(int *ret_status);

/* Send a signal to a group; nothing happens if it is gone. */
void launch_signal(pid_t leader, int number);

/* From now on processes whose parents have ended become children of this one. */
void launch_adopt(void);
/* Kill the children that are not among `known`: programs left them behind. How many there were. */
unsigned launch_kill_adopted(const pid_t *known, size_t count);

/* ---- launch_guard.c ---- */

/* A process of its own that outlives a launcher that is killed. It ends the groups that it
 * knows, and removes the place. So the place is removed there, and nowhere else. */
struct launch_guard {
    pid_t pid;
    int pipe; /* its end tells the guard that the launcher is gone */
};

/* Returns 0 or -errno. */
int launch_guard_start(const struct launch_place *place, struct launch_guard *ret_guard);
void launch_guard_add(const struct launch_guard *guard, pid_t leader);
void launch_guard_drop(const struct launch_guard *guard, pid_t leader);
/* Let it clean up, and wait for that. Whether nothing is left. */
bool launch_guard_end(struct launch_guard *guard);

/* ---- launch_lines.c ---- */

/* Standard output and error of this process, shared by all programs, and the line of progress. */
struct launch_lines {
    bool progress; /* standard error is a terminal */
    bool colour;
    bool shown;     /* the line of progress stands on the terminal */
    char text[512]; /* of the line; "": none */
};

/* One stream of one program. */
struct launch_stream {
    struct launch_lines *lines;
    uv_pipe_t pipe;
    FILE *to;
    char prefix[SGP_NAME_BYTES + 16]; /* "n2| ", perhaps in colour */
    char *text;                       /* LAUNCH_LINE_BYTES of a line that has not ended yet */
    size_t used;
    bool returned; /* the last byte was '\r': a '\n' behind it ends no further line */
    bool open;
    void (*ended)(void *context);
    void *context;
};

void launch_lines_init(const struct ctl *ctl, struct launch_lines *lines);
/* Take the line of progress off the terminal, so that something else can be printed. */
void launch_lines_clear(struct launch_lines *lines);
/* Print the line of progress anew. */
void launch_lines_show(struct launch_lines *lines, const char *text);

/* Read from a descriptor, which becomes the stream's, until its end; then `ended(context)`.
 * Whole lines go to `to`, with the prefix. A '\r' ends a line, too, as a progress bar's does.
 * Returns 0 or a code of libuv. */
int launch_stream_open(struct launch_stream *stream, struct launch_lines *lines, uv_loop_t *loop,
    int descriptor, const char *name, uint32_t index, FILE *to);
/* Print what is left, and stop reading. */
void launch_stream_close(struct launch_stream *stream);

/* ---- launch_plan.c ---- */

/* A key of the configuration, from the command line. */
struct launch_setting {
    char label[160]; /* as it was given, for messages: "--set train.patience=5" */
    char section[32], key[48];
    const char *value;
};

/* What is launched. */
struct launch_plan {
    uint32_t nodes;       /* 0: as the topology file says */
    const char *topology; /* a family or a file */
    const char *keep;     /* a directory, or NULL */
    bool keep_going;
    struct launch_setting settings[LAUNCH_SETTINGS_MAX];
    size_t setting_count;
    char **program; /* its words, ended by NULL */

    /* what preparing fills in */
    char program_path[PATH_MAX], sgpd[PATH_MAX];
    char package[PATH_MAX]; /* "" where it is installed */
    struct launch_place place;
    struct sgp_topology *graph;
    int ports[LAUNCH_NODES_MAX]; /* sockets that hold the nodes' ports */
};

/* Take a setting into the plan. Refuses what launch decides itself. */
enum ctl_exit launch_plan_set(struct ctl *ctl, struct launch_plan *plan, const char *label,
    const char *section, const char *key, const char *value);

/* Find programs and make the topology: everything that leaves no trace. */
enum ctl_exit launch_plan_prepare(struct ctl *ctl, struct launch_plan *plan);
/* Choose ports, write the files into plan->place, and have sgpd check them. */
enum ctl_exit launch_plan_write(struct ctl *ctl, struct launch_plan *plan);
void launch_plan_finish(struct launch_plan *plan);

/* FILES/NAME.conf and its like, SOCKETS/NAME.attach and its like; "" if it is too long. */
void launch_plan_path(
    const char *folder, const struct sgp_topology_node *node, const char *end, char path[PATH_MAX]);

/* ---- launch_run.c ---- */

/* Run the plan, whose files are written, to its end. Returns the worst exit status of the
 * programs. */
enum ctl_exit launch_run(
    struct ctl *ctl, const struct launch_plan *plan, const struct launch_guard *guard);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Inside `sgpctl launch`: a fleet on this machine, of one daemon and one program for each node.
 *
 * Each file calls only the files below it:
 *
 *   launch.c        the command and its options
 *   launch_run.c    the loop: starts, watches and ends all processes
 *   launch_plan.c   topology, ports and configurations
 *   launch_lines.c  the output of the programs, and the line of progress
 *   launch_guard.c  a process that cleans up when the launcher is gone
 *   launch_child.c  child processes and their groups
 *   launch_environment.c  the environment of the child processes
 *   launch_place.c  directories, and the paths of programs
 *
 * Thread: the only thread. Each failure is reported by ctl_fail, in one line. */
#ifndef CTL_LAUNCH_H
#define CTL_LAUNCH_H

#include "ctl.h"

#include "sgp/topology.h"

#include <limits.h>
#include <sys/types.h>
#include <uv.h>

#define LAUNCH_NODES_MAX 256u    /* on one machine */
#define LAUNCH_SETTINGS_MAX 128u /* --set */
#define LAUNCH_LINE_BYTES 65536u /* a longer line is printed in pieces */

/* ---- launch_place.c ---- */

/* The directories of a launch. */
struct launch_place {
    char files[PATH_MAX]; /* topology, configurations, logs, state directories */
    /* the daemons' sockets; a short path, because a socket's path has 107 bytes */
    char sockets[PATH_MAX];
    char topology[PATH_MAX]; /* FILES/topology.dot */
    bool keeps;              /* `files` is the user's, and is kept */
};

/* Make both directories, with mode 0700. `keep` is the user's directory, which may already exist,
 * or NULL for a temporary directory. After a failure, the new directories are removed again. */
enum ctl_exit launch_place_make(struct ctl *ctl, const char *keep, struct launch_place *ret_place);
/* Remove what must not be kept. Returns whether nothing is left. */
bool launch_place_remove(const struct launch_place *place);

/* The path of a program: `name` itself if it has a '/', else by PATH. */
bool launch_find(const char *name, char path[PATH_MAX]);
/* sgpd: beside sgpctl, in its build folder, in PATH, or in /usr/sbin. */
bool launch_find_sgpd(char path[PATH_MAX]);
/* The folder of package sgp in the source tree, if sgpctl runs from a build folder of it. */
bool launch_find_package(char path[PATH_MAX]);

/* ---- launch_environment.c ---- */

#define LAUNCH_VARIABLES_MAX 12u /* of a child, beside those of this process */

/* This process's variables without those that are set anew. */
struct launch_environment {
    char *own[LAUNCH_VARIABLES_MAX]; /* owned */
    size_t count;
    char **all; /* owned; ended by NULL */
};

void launch_environment_set(
    struct launch_environment *environment, const char *name, const char *text);
void launch_environment_set_number(
    struct launch_environment *environment, const char *name, uint64_t number);
/* Fill in `all`, after the own variables are set. Returns whether there was memory. */
bool launch_environment_inherit(struct launch_environment *environment);
void launch_environment_free(struct launch_environment *environment);

/* ---- launch_child.c ---- */

struct launch_command {
    const char *path; /* absolute */
    char *const *arguments;
    char *const *environment;
    int output, error; /* descriptors that become 1 and 2; 0 is /dev/null */
};

/* Start a program as the leader of a process group. The kernel kills the program if the launcher
 * dies. Returns its pid, or -errno. A failed `exec` is reported on its descriptor 2, with status
 * 127 or 126. */
pid_t launch_start(const struct launch_command *command);

/* A child that has ended, without waiting; 0: none. The remaining processes of its group are killed
 * first. Its exit status is as in a shell: 128 + N if signal N ended it. */
pid_t launch_reap(int *ret_status);

/* Send a signal to a group. If the group is gone, nothing happens. */
void launch_signal(pid_t leader, int number);

/* From now on processes whose parents have ended become children of this one. */
void launch_adopt(void);
/* Kill the children that are not among `known`, which programs left behind. Returns their
 * number. */
unsigned launch_kill_adopted(const pid_t *known, size_t count);

/* ---- launch_guard.c ---- */

/* A process of its own that outlives a killed launcher. It ends the groups that it knows, and
 * removes the directories. Only the guard removes them. */
struct launch_guard {
    pid_t pid;
    int pipe; /* end of file tells the guard that the launcher is gone */
};

/* Returns 0 or -errno. */
int launch_guard_start(const struct launch_place *place, struct launch_guard *ret_guard);
void launch_guard_add(const struct launch_guard *guard, pid_t leader);
void launch_guard_drop(const struct launch_guard *guard, pid_t leader);
/* Let the guard clean up, and wait for it. Returns whether nothing is left. */
bool launch_guard_end(struct launch_guard *guard);

/* ---- launch_lines.c ---- */

/* Standard output and error of this process, shared by all programs, and the line of progress. */
struct launch_lines {
    bool progress; /* standard error is a terminal */
    bool colour;
    bool shown;     /* the terminal shows the line of progress */
    char text[512]; /* of the line; "": none */
};

/* One stream of one program. */
struct launch_stream {
    struct launch_lines *lines;
    uv_pipe_t pipe;
    FILE *to;
    char prefix[SGP_NAME_BYTES + 16]; /* "n2| ", perhaps in colour */
    char *text;                       /* LAUNCH_LINE_BYTES for an unfinished line */
    size_t used;
    bool returned; /* the last byte was '\r': a '\n' after it ends no further line */
    bool open;
    void (*ended)(void *context);
    void *context;
};

void launch_lines_init(const struct ctl *ctl, struct launch_lines *lines);
/* Clear the line of progress from the terminal, so that another line can be printed. */
void launch_lines_clear(struct launch_lines *lines);
/* Print the line of progress anew. */
void launch_lines_show(struct launch_lines *lines, const char *text);

/* Read from a descriptor until its end; then call `ended(context)`. The stream takes over the
 * descriptor. Whole lines go to `to`, with the prefix. A '\r' ends a line, too, as in a progress
 * bar. Returns 0 or a code of libuv. */
int launch_stream_open(struct launch_stream *stream, struct launch_lines *lines, uv_loop_t *loop,
    int descriptor, const char *name, uint32_t index, FILE *to);
/* Print the remaining bytes, and stop reading. */
void launch_stream_close(struct launch_stream *stream);

/* ---- launch_plan.c ---- */

/* A key of the configuration, from the command line. */
struct launch_setting {
    char label[160]; /* as it was given, for messages: "--set train.patience=5" */
    char section[32], key[48];
    const char *value;
};

/* The launch as requested. */
struct launch_plan {
    uint32_t nodes;       /* 0: as in the topology file */
    const char *topology; /* a family or a file */
    const char *keep;     /* a directory, or NULL */
    bool keep_going;
    struct launch_setting settings[LAUNCH_SETTINGS_MAX];
    size_t setting_count;
    char **program; /* its words, ended by NULL */

    /* filled in by launch_plan_prepare */
    char program_path[PATH_MAX], sgpd[PATH_MAX];
    char package[PATH_MAX]; /* "" if sgpctl is installed */
    struct launch_place place;
    struct sgp_topology *graph;
    int ports[LAUNCH_NODES_MAX]; /* sockets that hold the nodes' ports */
};

/* Add a setting to the plan. Settings that launch decides itself are refused. */
enum ctl_exit launch_plan_set(struct ctl *ctl, struct launch_plan *plan, const char *label,
    const char *section, const char *key, const char *value);

/* Find programs and make the topology. This leaves nothing behind. */
enum ctl_exit launch_plan_prepare(struct ctl *ctl, struct launch_plan *plan);
/* Choose ports, write the files into plan->place, and check them with sgpd. */
enum ctl_exit launch_plan_write(struct ctl *ctl, struct launch_plan *plan);
void launch_plan_finish(struct launch_plan *plan);

/* FILES/NAME.conf and the like, SOCKETS/NAME.attach and the like; "" if the path is too long. */
void launch_plan_path(
    const char *folder, const struct sgp_topology_node *node, const char *end, char path[PATH_MAX]);

/* ---- launch_run.c ---- */

/* Run the plan to its end; its files are written. Returns the worst exit status of the programs. */
enum ctl_exit launch_run(
    struct ctl *ctl, const struct launch_plan *plan, const struct launch_guard *guard);

#endif

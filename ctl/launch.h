/* SPDX-License-Identifier: Apache-2.0 */
/* Inside `sgpctl launch` and `sgpctl up`: one daemon and one program for each node.
 *
 * `launch` runs the nodes of one machine. `up` starts a supervisor on each host, over ssh or srun.
 * A supervisor is a launch whose topology comes on standard input, with --json on standard output
 * (launch_up.h has the messages).
 *
 * Each file calls only the files below it:
 *
 *   launch_up.c     `sgpctl up`, of several hosts, and its options
 *   launch_hosts.c  the loop of `up`: a supervisor on each host
 *   launch_reach.c  the command line that starts a supervisor, and its pipes
 *   launch_list.c   the file of hosts
 *   launch_supervise.c  `sgpctl supervise`: the part of `up` on one host
 *   launch_plan_json.c  the plan of one host, as `up` writes and `supervise` reads it
 *   launch.c        `sgpctl launch`, on this machine
 *   launch_options.c  options that launch and up share
 *   launch_run.c    the loop of one machine: starts, watches and ends all processes
 *   launch_progress.c  what the nodes of one machine show together (launch_node.h)
 *   launch_node.c   the daemon and the program of one node (launch_node.h)
 *   launch_plan.c   topology, ports, keys and configurations
 *   launch_lines.c  the output of the programs, and the line of progress
 *   launch_orders.c  what a launcher writes to a supervisor: objects, orders, signs of life
 *   launch_watch.c  a process that cleans up when the launcher is gone
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
    int input;         /* a descriptor that becomes 0; 0: /dev/null */
    int output, error; /* descriptors that become 1 and 2 */
};

/* Start a program as the leader of a process group. The kernel kills the program if the launcher
 * dies. Returns its pid, or -errno. A failed `exec` is reported on its descriptor 2, with status
 * 127 or 126. */
pid_t launch_start(const struct launch_command *command);

/* A child that has ended, without waiting; 0: none. The remaining processes of its group are killed
 * first. Its exit status is as in a shell: 128 + N if signal N ended it. The signal is 0 if none
 * did. */
pid_t launch_reap(int *ret_status, int *ret_signal);

/* Send a signal to a group. If the group is gone, nothing happens. */
void launch_signal(pid_t leader, int number);

/* The children that a process has. */
struct launch_children {
    pid_t *list; /* owned */
    size_t count;
};

/* From now on processes whose parents have ended become children of this one. `own` are those that
 * it has before, some perhaps of a shell that became this process. Returns whether there was
 * memory. */
bool launch_adopt(struct launch_children *ret_own);
void launch_children_free(struct launch_children *children);
/* Kill the children that are neither `own` nor among known[0..count), which programs left
 * behind. */
void launch_kill_adopted(const struct launch_children *own, const pid_t *known, size_t count);

/* ---- launch_watch.c ---- */

/* A process of its own that outlives a killed launcher. It makes the directories, ends the groups
 * that it knows, and removes the directories. Nothing else makes or removes them. */
struct launch_watch {
    pid_t pid;
    int pipe; /* end of file tells the watch that the launcher is gone */
};

/* Start the watch, which makes the directories; see launch_place_make. A failure is reported. */
enum ctl_exit launch_watch_start(struct ctl *ctl, const char *keep, struct launch_place *ret_place,
    struct launch_watch *ret_watch);
void launch_watch_add(const struct launch_watch *watch, pid_t leader);
void launch_watch_drop(const struct launch_watch *watch, pid_t leader);
/* Let the watch clean up, and wait for it. Returns whether nothing is left. */
bool launch_watch_end(struct launch_watch *watch);

/* ---- launch_lines.c ---- */

/* Standard output and error of this process, shared by all programs, and the line of progress. */
struct launch_lines {
    bool progress; /* standard error is a terminal */
    bool colour;
    unsigned shown;  /* the lines of progress that the terminal shows */
    char text[4096]; /* of these lines, with '\n' between them; "": none */
};

/* One stream of one program. */
struct launch_stream {
    struct launch_lines *lines;
    uv_pipe_t pipe;
    FILE *to;
    const char *name; /* of the node */
    uint32_t index;
    /* Takes a line, instead of printing it with the node's name; or NULL. */
    void (*line)(struct launch_stream *stream, const char *text, size_t bytes);
    char *text; /* room for an unfinished line */
    size_t used;
    bool returned; /* the last byte was '\r': a '\n' after it ends no further line */
    bool open;
    void (*ended)(void *context);
    void (*unread)(void *context); /* nobody reads what is printed to `to`; or NULL */
    void *context;
};

void launch_lines_init(const struct ctl *ctl, struct launch_lines *lines);
/* Clear the line of progress from the terminal, so that another line can be printed. */
void launch_lines_clear(struct launch_lines *lines);
/* Print the lines of progress anew. */
void launch_lines_show(struct launch_lines *lines, const char *text);
/* Whether the terminal has room for so many lines of progress. */
bool launch_lines_fit(unsigned count);
/* Print a line with the name of node `index` in front. */
void launch_lines_print(struct launch_lines *lines, const char *name, uint32_t index, FILE *to,
    const char *text, size_t bytes);

/* Read from a descriptor until its end; then call `ended(context)`. `line`, `ended`, `unread` and
 * `context` are set before. The stream takes over the descriptor. Whole lines go to `to`, with the
 * prefix. A '\r' ends a line, too, as in a progress bar. Returns 0 or a code of libuv. */
int launch_stream_open(struct launch_stream *stream, struct launch_lines *lines, uv_loop_t *loop,
    int descriptor, const char *name, uint32_t index, FILE *to);
/* Print the remaining bytes, and stop reading. */
void launch_stream_close(struct launch_stream *stream);

/* ---- launch_orders.c ---- */

/* For how long a supervisor that hears nothing from its launcher keeps running. */
#define LAUNCH_SILENCE_S 60u
/* Between two signs of life of the launcher. */
#define LAUNCH_HEART_S 10u
/* What a launcher writes to its supervisor, one byte each. */
#define LAUNCH_ALIVE '\n'
#define LAUNCH_INTERRUPT 'i' /* as SIGINT */
#define LAUNCH_TERMINATE 't' /* as SIGTERM */
#define LAUNCH_END 'e'       /* a program or a host has failed, so end the programs */
#define LAUNCH_RELEASE 'q'   /* all programs of the fleet have ended, so stop the daemons */

/* From now on this process is killed LAUNCH_SILENCE_S after the launcher was last heard of. */
void launch_expect_launcher(void);

/* The orders of a launcher, as its supervisor reads them from standard input. */
struct launch_reader {
    uv_pipe_t pipe;
    char room[64];
    /* Takes what has arrived; count < 0: the launcher is gone. Set before, as `context` is. */
    void (*take)(void *context, const char *orders, ssize_t count);
    void *context;
};

/* Returns 0 or a code of libuv. The caller closes it in both cases. */
int launch_reader_open(struct launch_reader *reader, uv_loop_t *loop);
void launch_reader_close(struct launch_reader *reader);

/* The other end: what a launcher writes to one supervisor. */
struct launch_writer {
    uv_pipe_t pipe;
    bool open;
    uint32_t index; /* of the supervisor */
};

/* Take over the descriptor. `index` is below LAUNCH_NODES_MAX. Returns 0 or a code of libuv. */
int launch_writer_open(
    struct launch_writer *writer, uv_loop_t *loop, int descriptor, uint32_t index);
/* Write a line of JSON, or one byte. Nothing happens if it is closed. */
void launch_writer_object(struct launch_writer *writer, const json_t *object);
void launch_writer_byte(struct launch_writer *writer, char byte);
void launch_writer_close(struct launch_writer *writer);

/* Send signs of life to all supervisors that have been written to, until launch_signs_stop. */
void launch_signs_start(void);
void launch_signs_stop(void);

/* ---- launch_plan.c ---- */

/* A key of the configuration, from the command line. */
struct launch_setting {
    char label[160]; /* as it was given, for messages: "--set train.patience=5" */
    char section[32], key[48];
    const char *value;
};

/* The launch as requested. */
struct launch_plan {
    uint32_t nodes;           /* on this machine; 0: as in the topology file */
    const char *topology;     /* a family or a file */
    const char *hosts;        /* of `up`: the file that says how many nodes there are; or NULL */
    const char *const *names; /* of the nodes of a family; NULL: n0, n1, ... */
    const char *keep;         /* a directory, or NULL */
    bool keep_going;
    bool supervised; /* by a launcher that reads standard output and writes to standard input */
    bool keyed;      /* each node has a key of its own, in FILES/NAME.key */
    const char *directory;   /* of `up`: where the programs run on each host */
    const char *listen_host; /* "127.0.0.1", or another one; "[::]" is IPv4, too */
    struct launch_setting settings[LAUNCH_SETTINGS_MAX];
    size_t setting_count;
    char **program; /* its words, ended by NULL */

    /* filled in by launch_plan_graph and launch_plan_find */
    char program_path[PATH_MAX], sgpd[PATH_MAX];
    char package[PATH_MAX]; /* "" if sgpctl is installed */
    struct launch_place place;
    struct sgp_topology *graph;
    uint32_t fleet; /* nodes of all machines */
    uint32_t first; /* of the graph, that is of this machine */

    /* filled in by launch_plan_hold */
    int held[LAUNCH_NODES_MAX]; /* sockets that hold the ports of this machine's nodes */
    size_t held_count;
    unsigned ports[LAUNCH_NODES_MAX];
};

/* Add a setting to the plan. Settings that launch decides itself are refused. */
enum ctl_exit launch_plan_set(struct ctl *ctl, struct launch_plan *plan, const char *label,
    const char *section, const char *key, const char *value);

/* Make or read the topology. */
enum ctl_exit launch_plan_graph(struct ctl *ctl, struct launch_plan *plan);
/* Find the program and sgpd on this machine. */
enum ctl_exit launch_plan_find(struct ctl *ctl, struct launch_plan *plan);
/* Check that the paths in plan->place are short enough for sockets, and that a configuration can
 * hold them. */
enum ctl_exit launch_plan_fit(struct ctl *ctl, const struct launch_plan *plan);
/* Choose a free port for each node of this machine. */
enum ctl_exit launch_plan_hold(struct ctl *ctl, struct launch_plan *plan);
/* Write the files into plan->place, and check them with sgpd. All addresses are known. */
enum ctl_exit launch_plan_write(struct ctl *ctl, struct launch_plan *plan);
/* Node i of this machine. */
struct sgp_topology_node *launch_plan_node(const struct launch_plan *plan, uint32_t i);
void launch_plan_finish(struct launch_plan *plan);

/* FILES/NAME.conf and the like, SOCKETS/NAME.attach and the like; "" if the path is too long. */
void launch_plan_path(
    const char *folder, const struct sgp_topology_node *node, const char *end, char path[PATH_MAX]);

/* ---- launch_run.c ---- */

/* Make the directories and start their watch, hold the ports, and call `agree`, which fills in all
 * addresses. Then write the files and run the plan to its end. Returns the worst exit status of the
 * programs. */
enum ctl_exit launch_run(struct ctl *ctl, struct launch_plan *plan,
    enum ctl_exit (*agree)(struct ctl *ctl, struct launch_plan *plan));

/* ---- launch_options.c ---- */

/* Rows of options that are keys of the configurations, for a table with these indexes. */
#define LAUNCH_KEY_OPTIONS                                                                         \
    [ALGORITHM] = {"--algorithm", .value = "NAME",                                                 \
        .summary = "how nodes train together: [train] algorithm (sgp)"},                           \
    [SEED] = {"--seed", .value = "S", .summary = "of the fleet: [train] seed (1)"},                \
    [SET] = {"--set", .value = "SECTION.KEY=VALUE",                                                \
        .summary = "any key of sgpd.conf(5), for all daemons", .repeats = true}

/* Each --set of the command line. */
enum ctl_exit launch_take_settings(
    struct ctl *ctl, int argc, char **argv, struct launch_plan *plan);
/* An option that is a key of [train]. */
enum ctl_exit launch_take_key(
    struct ctl *ctl, const struct ctl_given *option, const char *key, struct launch_plan *plan);

#endif

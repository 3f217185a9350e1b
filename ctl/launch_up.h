/* SPDX-License-Identifier: Apache-2.0 */
/* Inside `sgpctl up`: hosts, and what a launcher and its supervisors say to each other.
 *
 * The launcher starts `sgpctl supervise` on each host and writes to its standard input:
 *
 *   1. the plan: a line of JSON: {"form", "directory", "topology" (DOT text), "first", "nodes",
 *      "listen", "keyed", "keep", "keep_going", "settings": [[label, section, key, value], ...],
 *      "program": [word, ...]}
 *   2. once all supervisors have answered, a line {"addresses": [...], "keys": [...]}: of all nodes
 *      of the fleet; "keys" is empty for plain links
 *   3. single bytes: LAUNCH_ALIVE and the others of launch.h
 *
 * The end of standard input tells that the launcher is gone. Before 2. empty lines are signs of
 * life.
 *
 * The supervisor prints what `launch --json` prints: lines of programs that begin with "NAME| ",
 * errors and a last object as JSON. Further objects are {"form", "version", "ports", "keys"}, the
 * answer to the plan, and {"running", "worst", "over", "rounds", "losses"} once a second and after
 * changes. "over": no program is running and all output is printed, so the daemons may be stopped.
 *
 * Each host makes the secret keys of its own nodes, and tells only their hashes. */
#ifndef CTL_LAUNCH_UP_H
#define CTL_LAUNCH_UP_H

#include "launch.h"

#define LAUNCH_FORM 1 /* of the messages */

/* ---- launch_list.c ---- */

/* A line of the file of hosts: [user@]host[:port] [name=NAME] [address=ADDRESS] [slots=N] */
struct launch_host {
    unsigned line;
    char user[SGP_NAME_BYTES];       /* "": the default of ssh */
    char host[SGP_ADDRESS_BYTES];    /* without brackets; of ssh or srun */
    unsigned port;                   /* of ssh; 0: the default of ssh */
    char name[SGP_NAME_BYTES];       /* of its node; "": n and the index */
    char address[SGP_ADDRESS_BYTES]; /* where other nodes reach it; IPv6 in brackets */
    uint32_t slots;                  /* its nodes */
    uint32_t first;                  /* index of its first node */
};

struct launch_list {
    const char *path;
    struct launch_host hosts[LAUNCH_NODES_MAX];
    size_t count;
    uint32_t nodes;                               /* of all hosts */
    char names[LAUNCH_NODES_MAX][SGP_NAME_BYTES]; /* of the nodes */
};

/* Read a file of hosts. Errors are "PATH:LINE: what is wrong". */
enum ctl_exit launch_list_read(struct ctl *ctl, const char *path, struct launch_list *list);

/* ---- launch_reach.c ---- */

/* How a host is reached. */
struct launch_reach {
    const char *ssh;    /* a command and its options, separated by blanks; NULL: ssh or srun */
    const char *sgpctl; /* on the hosts */
    bool slurm;         /* by srun, in the allocation of Slurm that this process is in */
};

/* A started command, and this process's ends of its pipes. */
struct launch_reached {
    pid_t pid;
    int input, output, error;
};

/* Find the command: ssh, srun or the user's. */
enum ctl_exit launch_reach_prepare(
    struct ctl *ctl, struct launch_reach *reach, const struct launch_list *list);
/* The word that names the command in messages. */
const char *launch_reach_name(const struct launch_reach *reach);
/* Start a supervisor on a host. Returns 0 or -errno. */
int launch_reach_start(const struct launch_reach *reach, const struct launch_host *host,
    struct launch_reached *ret_reached);

/* ---- launch_plan_json.c ---- */

/* The topology as DOT text, which the caller frees. NULL: no memory. */
char *launch_plan_dot(const struct launch_plan *plan);
/* The plan of one host, with that text. NULL: no memory. */
json_t *launch_plan_pack(
    const struct launch_plan *plan, const struct launch_host *host, const char *graph);
/* Read such a plan, and change to its directory. `plan` is all zero before, and borrows texts from
 * the object. The caller frees plan->program and calls launch_plan_finish, also after a failure. */
enum ctl_exit launch_plan_unpack(struct ctl *ctl, const json_t *object, struct launch_plan *plan);

/* ---- launch_hosts.c ---- */

/* Run the plan on all hosts, to its end. Returns the worst exit status of the programs. */
enum ctl_exit launch_hosts_run(struct ctl *ctl, struct launch_plan *plan,
    const struct launch_list *list, const struct launch_reach *reach);

#endif

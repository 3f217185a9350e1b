/* SPDX-License-Identifier: Apache-2.0 */
/* `sgpctl launch -n N -- PROGRAM`: a fleet on this machine, of N daemons and N programs; see
 * launch.h. */
#include "launch.h"

#include <string.h>

#define HOST "127.0.0.1" /* of every node: the fleet is on this machine */

enum { NODES, TOPOLOGY, ALGORITHM, SEED, SET, KEEP, KEEP_GOING, OPTION_COUNT };

static const struct ctl_option options[OPTION_COUNT + 1] = {
    [NODES] = {"--nodes", .value = "N", .summary = "how many nodes; -n N is short for it"},
    [TOPOLOGY] = {"--topology", .value = "FAMILY|FILE",
        .summary = "who gives to whom: a family of sgpctl topology generate, or a DOT file, which "
                   "says how many nodes there are (base)"},
    LAUNCH_KEY_OPTIONS,
    [KEEP] = {"--keep", .value = "DIRECTORY",
        .summary = "where the daemons' files are, and stay: models, checkpoints, logs; a later "
                   "launch with it goes on from there"},
    [KEEP_GOING] = {"--keep-going", .summary = "when a program fails, let the others train on"},
    {0},
};

/* -n is the name of a daemon in all other commands, and therefore it is already parsed. */
static enum ctl_exit take_nodes(
    struct ctl *ctl, const struct ctl_given *option, struct launch_plan *plan)
{
    struct ctl_given given = *option;
    uint64_t nodes = 0;
    if (ctl->socket)
        return ctl_usage(ctl, "-s names a daemon, and launch starts its own");
    if (ctl->name && given.given)
        return ctl_usage(ctl, "-n and --nodes are the same; give one of them");
    if (ctl->name)
        given = (struct ctl_given){.name = "-n", .given = true, .value = ctl->name};
    enum ctl_exit status = ctl_option_u64(ctl, &given, 1, LAUNCH_NODES_MAX, &nodes);
    plan->nodes = (uint32_t)nodes;
    return status;
}

static enum ctl_exit take_options(struct ctl *ctl, int argc, char **argv, struct launch_plan *plan)
{
    struct ctl_given given[OPTION_COUNT] = {0};
    enum ctl_exit status = launch_take_settings(ctl, argc, argv, plan);
    if (status == CTL_DONE)
        status = ctl_options_take(ctl, &argc, argv, given, OPTION_COUNT, 0, INT_MAX);
    if (status == CTL_DONE && argc == 0)
        status =
            ctl_usage(ctl, "a program is missing: sgpctl launch -n 4 -- PROGRAM [ARGUMENT ...]");
    if (status == CTL_DONE)
        status = take_nodes(ctl, &given[NODES], plan);
    if (status == CTL_DONE)
        status = launch_take_key(ctl, &given[ALGORITHM], "algorithm", plan);
    if (status == CTL_DONE)
        status = launch_take_key(ctl, &given[SEED], "seed", plan);
    argv[argc] = NULL; /* after the operands, which moved to the front */
    plan->program = argv;
    plan->topology = given[TOPOLOGY].given ? given[TOPOLOGY].value : "base";
    plan->keep = given[KEEP].value;
    plan->keep_going = given[KEEP_GOING].given;
    plan->listen_host = HOST;
    return status;
}

/* The ports are held now. */
static enum ctl_exit take_addresses(struct ctl *ctl, struct launch_plan *plan)
{
    (void)ctl;
    for (uint32_t i = 0; i < plan->nodes; i++) {
        struct sgp_topology_node *node = launch_plan_node(plan, i);
        (void)snprintf(node->address, sizeof node->address, HOST ":%u", plan->ports[i]);
    }
    return CTL_DONE;
}

static enum ctl_exit run(struct ctl *ctl, int argc, char **argv)
{
    static struct launch_plan plan;
    enum ctl_exit status = take_options(ctl, argc, argv, &plan);
    if (status == CTL_DONE)
        status = launch_plan_find(ctl, &plan);
    if (status == CTL_DONE)
        status = launch_plan_graph(ctl, &plan);
    if (status == CTL_DONE)
        status = launch_run(ctl, &plan, take_addresses);
    launch_plan_finish(&plan);
    return status;
}

const struct ctl_command ctl_launch_command = {.words = "launch",
    .operands = "-- PROGRAM [ARGUMENT ...]",
    .options = options,
    .summary = "train a program on several nodes of this machine",
    .help =
        "launch starts N daemons and N programs; each program attaches to a daemon of its own.\n"
        "Nothing has to be configured, and nothing is left behind:\n"
        "\n"
        "  sgpctl launch -n 4 -- python3 train.py --epochs 10\n"
        "\n"
        "launch prints what the programs print, line by line, with the node's name in front. On a\n"
        "terminal, a line below tells rounds and loss. If a program fails, launch ends all "
        "others.\n"
        "Ctrl-C ends all: the programs get SIGINT, and after 5 s, or at another Ctrl-C, SIGKILL.\n"
        "If launch itself is killed, daemons and programs end, too. If nobody reads its output "
        "any\n"
        "more, as after head -1, it ends the programs, and its status is 141.\n"
        "\n"
        "A program finds in its environment\n"
        "\n"
        "  SGP_SOCKET             where it attaches; sgp.attach() and sgp.join() look there\n"
        "  SGP_NODE, SGP_NODES    the node's name, as n2, and how many there are\n"
        "  RANK, WORLD_SIZE       the node's index from 0, and how many there are\n"
        "  LOCAL_RANK, LOCAL_WORLD_SIZE\n"
        "                         the same, of this machine\n"
        "  OMP_NUM_THREADS        processors by nodes, unless it is set already\n"
        "  PYTHONUNBUFFERED       1, unless it is set already\n"
        "\n"
        "Exit status: the greatest of the programs', as of a shell (128 + N: ended by signal N); "
        "of\n"
        "programs that launch has ended it does not count. 130 after Ctrl-C. If a daemon fails, "
        "1.\n"
        "With --keep that is also a model that was not saved. A daemon that writes a large one "
        "gets\n"
        "as much time as it asks for.\n"
        "With --json the last line is an object with the status of each program.\n"
        "\n"
        "The sockets lie in a directory below XDG_RUNTIME_DIR: sgpctl -s DIR/n0.control status\n"
        "asks a node. All other files lie below TMPDIR, or in the directory of --keep. At most\n"
        "256 nodes.\n",
    .run = run};

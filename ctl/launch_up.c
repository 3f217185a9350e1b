/* SPDX-License-Identifier: Apache-2.0 */
/* `sgpctl up FILE -- PROGRAM`: a fleet on several hosts, over ssh or srun; see launch_up.h. */
#include "launch_up.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum {
    TOPOLOGY,
    ALGORITHM,
    SEED,
    SET,
    KEEP,
    KEEP_GOING,
    DIRECTORY,
    PLAIN,
    SSH,
    SGPCTL,
    OPTION_COUNT
};

static const struct ctl_option options[OPTION_COUNT + 1] = {
    [TOPOLOGY] = {"--topology", .value = "FAMILY|FILE",
        .summary = "who gives to whom: a family of sgpctl topology generate, or a DOT file with as "
                   "many nodes as there are slots, in this order (base)"},
    LAUNCH_KEY_OPTIONS,
    [KEEP] = {"--keep", .value = "DIRECTORY",
        .summary = "where the daemons' files are on each host, and stay; a later run with it goes "
                   "on from there"},
    [KEEP_GOING] = {"--keep-going",
        .summary = "when a program or a host fails, let the others train on"},
    [DIRECTORY] = {"--directory", .value = "DIRECTORY",
        .summary = "where the programs run on each host (the current directory)"},
    [PLAIN] = {"--plain", .summary = "do not encrypt the links between nodes"},
    [SSH] = {"--ssh", .value = "COMMAND",
        .summary = "the command that reaches a host, with its options (ssh, or srun in a job of "
                   "Slurm)"},
    [SGPCTL] = {"--sgpctl", .value = "PATH", .summary = "the sgpctl of the hosts (sgpctl)"},
    {0},
};

static enum ctl_exit take_options(
    struct ctl *ctl, int argc, char **argv, struct launch_plan *plan, struct launch_reach *reach)
{
    struct ctl_given given[OPTION_COUNT] = {0};
    if (ctl->socket || ctl->name)
        return ctl_usage(ctl, "-n and -s name a daemon, and up starts its own");
    plan->keyed = true; /* a key, or that there is none, is no setting of the user */
    enum ctl_exit status = launch_take_settings(ctl, argc, argv, plan);
    if (status == CTL_DONE)
        status = ctl_options_take(ctl, &argc, argv, given, OPTION_COUNT, 0, INT_MAX);
    if (status == CTL_DONE && argc < 2)
        status = ctl_usage(ctl, "%s is missing: sgpctl up HOSTS.txt -- PROGRAM [ARGUMENT ...]",
            argc == 0 ? "the file of hosts" : "a program");
    if (status == CTL_DONE)
        status = launch_take_key(ctl, &given[ALGORITHM], "algorithm", plan);
    if (status == CTL_DONE)
        status = launch_take_key(ctl, &given[SEED], "seed", plan);
    if (status != CTL_DONE)
        return status;
    argv[argc] = NULL; /* after the operands, which moved to the front */
    plan->hosts = argv[0];
    plan->program = argv + 1;
    plan->topology = given[TOPOLOGY].given ? given[TOPOLOGY].value : "base";
    plan->keep = given[KEEP].value;
    plan->keep_going = given[KEEP_GOING].given;
    plan->keyed = !given[PLAIN].given;
    plan->directory = given[DIRECTORY].value;
    reach->ssh = given[SSH].value;
    reach->sgpctl = given[SGPCTL].given ? given[SGPCTL].value : "sgpctl";
    if (reach->ssh && reach->ssh[strspn(reach->ssh, " \t")] == '\0')
        return ctl_usage(ctl, "--ssh needs a command");
    return CTL_DONE;
}

/* The names of a topology file are those of its nodes. */
static enum ctl_exit check_names(
    struct ctl *ctl, const struct launch_plan *plan, const struct launch_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        for (uint32_t j = 0; j < list->hosts[i].slots && list->hosts[i].name[0] != '\0'; j++) {
            uint32_t index = list->hosts[i].first + j;
            if (strcmp(list->names[index], plan->graph->nodes[index].name) != 0)
                return ctl_fail(ctl, CTL_INVALID, "%s:%u: name=%s, but node %u of %s is %s",
                    list->path, list->hosts[i].line, list->hosts[i].name, index, plan->topology,
                    plan->graph->nodes[index].name);
        }
    return CTL_DONE;
}

static bool is_utf8(const char *text)
{
    json_t *string = json_string(text);
    json_decref(string);
    return string != NULL;
}

/* JSON, which carries them to the hosts, has no other bytes. */
static enum ctl_exit check_texts(struct ctl *ctl, const struct launch_plan *plan)
{
    for (char **word = plan->program; *word; word++)
        if (!is_utf8(*word))
            return ctl_usage(ctl, "a word of the program is not UTF-8");
    for (size_t i = 0; i < plan->setting_count; i++) {
        const struct launch_setting *setting = &plan->settings[i];
        if (!is_utf8(setting->section) || !is_utf8(setting->key) || !is_utf8(setting->value))
            return ctl_usage(ctl, "%s is not UTF-8", setting->label);
    }
    if (plan->keep && !is_utf8(plan->keep))
        return ctl_usage(ctl, "--keep %s is not UTF-8", plan->keep);
    if (!is_utf8(plan->directory))
        return ctl_usage(
            ctl, "directory %s is not UTF-8; --directory names another", plan->directory);
    return CTL_DONE;
}

static enum ctl_exit run(struct ctl *ctl, int argc, char **argv)
{
    static struct launch_plan plan;
    static struct launch_list list;
    static const char *names[LAUNCH_NODES_MAX];
    static char here[PATH_MAX];
    struct launch_reach reach = {0};
    enum ctl_exit status = take_options(ctl, argc, argv, &plan, &reach);
    if (status == CTL_DONE)
        status = launch_list_read(ctl, plan.hosts, &list);
    for (uint32_t i = 0; i < list.nodes; i++)
        names[i] = list.names[i];
    plan.nodes = list.nodes;
    plan.names = names;
    if (status == CTL_DONE && plan.directory == NULL && getcwd(here, sizeof here) == NULL)
        status = ctl_fail(ctl, CTL_FAILED, "the current directory: %s", strerror(errno));
    if (plan.directory == NULL)
        plan.directory = here;
    if (status == CTL_DONE)
        status = launch_plan_graph(ctl, &plan);
    if (status == CTL_DONE)
        status = check_names(ctl, &plan, &list);
    if (status == CTL_DONE)
        status = check_texts(ctl, &plan);
    if (status == CTL_DONE)
        status = launch_reach_prepare(ctl, &reach, &list);
    if (status == CTL_DONE)
        status = launch_hosts_run(ctl, &plan, &list, &reach);
    launch_plan_finish(&plan);
    return status;
}

const struct ctl_command ctl_up_command = {.words = "up",
    .operands = "FILE -- PROGRAM [ARGUMENT ...]",
    .options = options,
    .summary = "train a program on several hosts, over ssh or in a job of Slurm",
    .help =
        "up starts a daemon and the program for each slot of each host in FILE, as\n"
        "launch does on one machine. Nothing has to be configured, and nothing is left behind:\n"
        "\n"
        "  sgpctl up hosts.txt -- python3 train.py --epochs 10\n"
        "\n"
        "Each line of FILE is a host; # begins a comment:\n"
        "\n"
        "  [user@]host[:port] [name=NAME] [address=ADDRESS] [slots=N]\n"
        "\n"
        "  name     of its node (n and its number); NAME-0, NAME-1, ... with several slots\n"
        "  address  where the other nodes reach it (the host)\n"
        "  slots    how many nodes it runs (1)\n"
        "\n"
        "Hosts need sgpd, sgpctl and the program, and ssh must reach them without a password:\n"
        "up runs ssh with BatchMode=yes, which asks nothing. In a job of Slurm (SLURM_JOB_ID is\n"
        "set) srun takes the place of ssh, unless --ssh is given.\n"
        "\n"
        "The links between nodes are encrypted (tls=require). Each host makes the keys of its\n"
        "nodes for this run, and only their hashes travel. --plain turns that off.\n"
        "\n"
        "up prints what the programs print, with the node's name in front. On a terminal that has\n"
        "room, a table below tells host, round and loss of each node. If a program or a host\n"
        "fails, up ends all others. Ctrl-C ends all: the programs get SIGINT, and after 5 s, or\n"
        "at another Ctrl-C, SIGKILL. If up is killed, all ends within 20 s, or with --keep\n"
        "once the models are written; if a host is cut off, it ends its programs within 60 s.\n"
        "\n"
        "A program finds in its environment what launch tells it; LOCAL_RANK and\n"
        "LOCAL_WORLD_SIZE count the slots of its host.\n"
        "\n"
        "Exit status: as of launch. If a host cannot be reached or is lost, 1. With --json the\n"
        "last line is an object with the status of each program; null: the host was lost.\n",
    .run = run};

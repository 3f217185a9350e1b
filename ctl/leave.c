/* SPDX-License-Identifier: Apache-2.0 */
/* `sgpctl leave`: retire the node, and with --for-good propose the topology file without it. */
#include "membership.h"
#include "rollout.h"

#include <stdlib.h>
#include <string.h>

enum { TIMEOUT, FOR_GOOD, OUTPUT, FORCE, FAMILY, OPTIONS };

static const struct ctl_option options[] = {
    {"--timeout", .value = "S",
        .summary = "end the waiting with 5 after S seconds; the order stands"},
    {"--for-good", .summary = "also write the topology file without this node, to --output FILE"},
    {"--output", .value = "FILE", .summary = "of --for-good: where the file is written"},
    {"--force", .summary = "of --for-good: replace that file if it is there"},
    {"--family", .value = "FAMILY",
        .summary = "of --for-good: the edges of this family; by default those of the present "
                   "file's family"},
    {0}};

/* The name of the daemon's node. The caller frees it. */
static enum ctl_exit find_name(struct ctl *ctl, char **ret_name)
{
    const struct ctl_request request = {.method = "GET", .path = "/v1/status"};
    json_t *answer;
    enum ctl_exit status = ctl_ask_json(ctl, &request, &answer);
    if (status != CTL_DONE)
        return status;
    *ret_name = strdup(ctl_text_of(answer, "name", ""));
    json_decref(answer);
    return *ret_name != NULL ? CTL_DONE : ctl_fail(ctl, CTL_FAILED, "out of memory");
}

/* The file without the node is written before it leaves: later no daemon says which file it was. */
static enum ctl_exit propose(struct ctl *ctl, const struct ctl_given given[OPTIONS])
{
    const struct ctl_proposal_options where = {
        .output = given[OUTPUT].value, .force = given[FORCE].given};
    struct sgp_topology *topology = NULL;
    struct ctl_proposal proposal = {.text = NULL};
    char *path = NULL, *name = NULL;
    enum ctl_exit status = ctl_proposal_check(ctl, &where);
    if (status == CTL_DONE)
        status = find_name(ctl, &name);
    if (status == CTL_DONE)
        status = ctl_present_topology(ctl, NULL, &path, &topology);
    if (status == CTL_DONE) {
        const struct ctl_change change = {
            .topology = topology, .path = path, .family = given[FAMILY].value, .remove = name};
        status = ctl_propose(ctl, &change, &proposal);
    }
    if (status == CTL_DONE)
        status = ctl_proposal_write(ctl, &proposal, &where);
    if (status == CTL_DONE && !ctl->json)
        ctl_rollout_advise(ctl, where.output, true, NULL);
    free(proposal.text);
    sgp_topology_destroy(topology);
    free(path);
    free(name);
    return status;
}

/* If the time is up, only the waiting ends; the order remains in force. */
static enum ctl_exit leave(struct ctl *ctl, int argc, char **argv)
{
    struct ctl_given given[OPTIONS] = {0};
    struct ctl_request request = {.method = "POST", .path = "/v1/leave", .patient = true};
    enum ctl_exit status = ctl_options_take(ctl, &argc, argv, given, OPTIONS, 0, 0);
    if (status == CTL_DONE)
        status = ctl_option_real(ctl, &given[TIMEOUT], 0.001, 1e6, &request.seconds);
    if (status != CTL_DONE)
        return status;
    const bool more = given[OUTPUT].given || given[FORCE].given || given[FAMILY].given;
    if (given[FOR_GOOD].given != given[OUTPUT].given || (more && !given[FOR_GOOD].given))
        return ctl_usage(
            ctl, "--for-good goes with --output FILE, and --force and --family with it");
    if (given[FOR_GOOD].given && (status = propose(ctl, given)) != CTL_DONE)
        return status;
    return ctl_order(ctl, &request);
}

const struct ctl_command ctl_leave_command = {.words = "leave",
    .operands = "",
    .options = options,
    .summary = "retire the node: hand its mass to a neighbour, end the daemon for good",
    .help =
        "The node accumulates a member's weight (30 s at most), ends its round, gives all its\n"
        "mass to an out-neighbour that is up, and exits. Prints who has it (heir), how much it\n"
        "was (weight), and how much more was owed to absent nodes, with whom the heir settles\n"
        "it (owed). The model stays in the state directory; its ledger and checkpoints are\n"
        "renamed to *.left, so that a later start is that of a new member. Without a neighbour\n"
        "that is up it waits, as `status` says, and can be stopped. A node that is joining,\n"
        "finished or without out-neighbours refuses (1).\n"
        "\n"
        "With --for-good it proposes the topology file without this node, as `sgpctl admit` does\n"
        "for a new one. It refuses to leave if there is none. The file is written before the node\n"
        "leaves; distribute it then, and reload the other daemons. Where administrators sign the\n"
        "file, it says which `topology push` on a node that stays does both.\n"
        "For root and the daemon's own user.\n",
    .run = leave};

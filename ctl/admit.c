/* SPDX-License-Identifier: Apache-2.0 */
/* `sgpctl admit`: propose the topology file that admits a node that has joined by an invitation. */
#include "membership.h"
#include "rollout.h"

#include <stdlib.h>
#include <string.h>

enum { OUTPUT, FORCE, FAMILY, FILE_, KEY, ADDRESS, OPTIONS };

static const struct ctl_option options[] = {
    {"--output", .value = "FILE", .summary = "write the file there; by default to standard output"},
    {"--force", .summary = "replace that file if it is there"},
    {"--family", .value = "FAMILY",
        .summary = "the edges of this family, with its usual options; by default those of the "
                   "present file's family"},
    {"--file", .value = "FILE",
        .summary = "the present topology file; by default what the daemon uses"},
    {"--key", .value = "SHA256:...",
        .summary = "the node's key, as `sgpctl join` prints it; by default what the daemon knows "
                   "of the pending node"},
    {"--address", .value = "HOST:PORT", .summary = "the node's address; likewise"}, {0}};

/* What the daemon knows of the pending node. The caller releases *ret_list, from which the texts
 * are. */
static enum ctl_exit find_pending(struct ctl *ctl, struct ctl_change *change, json_t **ret_list)
{
    const struct ctl_request request = {.method = "GET", .path = "/v1/invitations"};
    enum ctl_exit status = ctl_ask_json(ctl, &request, ret_list);
    if (status != CTL_DONE)
        return status;
    const json_t *entry, *found = NULL;
    size_t index;
    json_array_foreach(json_object_get(*ret_list, "invitations"), index, entry)
    {
        if (strcmp(ctl_text_of(entry, "name", ""), change->add) == 0)
            found = entry;
    }
    if (found == NULL)
        return ctl_fail(ctl, CTL_FAILED,
            "the daemon has not invited %s, or has started again since, or its topology file names "
            "%s already; otherwise give --key and --address, which `sgpctl join` has printed",
            change->add, change->add);
    if (strcmp(ctl_text_of(found, "state", ""), "pending") != 0)
        return ctl_fail(ctl, CTL_FAILED, "%s was invited, and has not joined", change->add);
    change->key = change->key != NULL ? change->key : ctl_text_of(found, "key", "");
    change->address = change->address != NULL ? change->address : ctl_text_of(found, "address", "");
    return CTL_DONE;
}

static enum ctl_exit print(struct ctl *ctl, const struct ctl_change *change,
    const struct ctl_proposal *proposal, const char *output, bool asked)
{
    json_t *answer = json_pack("{s:s, s:s, s:I, s:I, s:o}", "name", change->add, "family",
        proposal->family, "nodes", (json_int_t)proposal->nodes, "version",
        (json_int_t)proposal->version, "file", ctl_json_text(output));
    if (ctl->json && asked)
        ctl_rollout_advise(ctl, output, false, answer);
    if (ctl->json)
        return ctl_print_json(answer);
    ctl_print_object(ctl, answer);
    json_decref(answer);
    return CTL_DONE;
}

/* `asked`: the present file is that of a daemon, which is asked how the new one is used. */
static enum ctl_exit propose(struct ctl *ctl, struct ctl_change *change,
    const struct ctl_proposal_options *where, bool asked)
{
    struct sgp_topology *topology = NULL;
    struct ctl_proposal proposal = {.text = NULL};
    char *name = NULL;
    enum ctl_exit status = ctl_present_topology(ctl, change->path, &name, &topology);
    change->topology = topology;
    change->path = name;
    if (status == CTL_DONE)
        status = ctl_propose(ctl, change, &proposal);
    if (status == CTL_DONE)
        status = ctl_proposal_write(ctl, &proposal, where);
    if (status == CTL_DONE && where->output != NULL)
        status = print(ctl, change, &proposal, where->output, asked);
    if (status == CTL_DONE && asked && !ctl->json)
        ctl_rollout_advise(ctl, where->output != NULL ? where->output : "FILE", false, NULL);
    free(proposal.text);
    sgp_topology_destroy(topology);
    free(name);
    return status;
}

static enum ctl_exit admit(struct ctl *ctl, int argc, char **argv)
{
    struct ctl_given given[OPTIONS] = {0};
    json_t *list = NULL;
    enum ctl_exit status = ctl_options_take(ctl, &argc, argv, given, OPTIONS, 1, 1);
    if (status != CTL_DONE)
        return status;
    if (!sgp_topology_name_is_good(argv[0]))
        return ctl_usage(ctl, "'%s' is no name of a node", argv[0]);
    if (ctl->json && !given[OUTPUT].given)
        return ctl_usage(ctl, "--json goes with --output: standard output gets the file");
    struct ctl_change change = {.add = argv[0],
        .family = given[FAMILY].value,
        .key = given[KEY].value,
        .address = given[ADDRESS].value};
    const struct ctl_proposal_options where = {
        .output = given[OUTPUT].value, .force = given[FORCE].given};
    status = ctl_proposal_check(ctl, &where);
    if (status == CTL_DONE && (change.key == NULL || change.address == NULL))
        status = find_pending(ctl, &change, &list);
    change.path = given[FILE_].value;
    if (status == CTL_DONE)
        status = propose(ctl, &change, &where, !given[FILE_].given);
    json_decref(list);
    return status;
}

const struct ctl_command ctl_admit_command = {.words = "admit",
    .operands = "NAME",
    .options = options,
    .summary = "propose the topology file that admits node NAME, which has joined",
    .help =
        "The new file has one node more and the edges of the present file's family. Addresses, "
        "keys,\n"
        "tls and stops of the other nodes stay, and version is one more. Nothing is admitted by\n"
        "this command: distribute the file, reload the daemons, and start the new node. Where\n"
        "administrators sign the file, it says which `topology push` does all of that but the\n"
        "start; with --json as the member `push`.\n"
        "With --file, --key and --address no daemon is needed.\n",
    .run = admit};

/* SPDX-License-Identifier: Apache-2.0 */
/* A file of the same family with one node more or less; see membership.h.
 *
 * The family is found by generating the file anew: with each family, and with the options that a
 * person may have chosen, until nodes and edges are the same. */
#include "membership.h"

#include "rollout.h"

#include "sgp/dot.h"
#include "sgp/generate.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COUNTS_MOST 16u /* of peers, hubs and the like, that are tried */

/* ---- is a generated file the same? ---- */

static bool same_edges(const struct sgp_phase *a, const struct sgp_phase *b)
{
    if (a->edge_count != b->edge_count)
        return false;
    for (uint32_t i = 0; i < a->edge_count; i++) {
        const struct sgp_edge *one = &a->out[i], *other = &b->out[i];
        if (one->source != other->source || one->target != other->target ||
            one->fraction != other->fraction || one->part != other->part ||
            one->part_count != other->part_count)
            return false;
    }
    return true;
}

static bool same_phase(const struct sgp_phase *a, const struct sgp_phase *b)
{
    return a->rounds == b->rounds && a->once == b->once && a->exchanges == b->exchanges &&
           a->outer == b->outer && a->backup == b->backup &&
           a->staleness.damping == b->staleness.damping &&
           a->staleness.compensation == b->staleness.compensation &&
           a->staleness.most == b->staleness.most && a->delay.token == b->delay.token &&
           a->delay.mean == b->delay.mean && a->delay.most == b->delay.most && same_edges(a, b);
}

static bool same_role(const struct sgp_topology_node *a, const struct sgp_topology_node *b)
{
    return a->relay == b->relay && a->starts == b->starts && a->owns == b->owns &&
           a->own_part == b->own_part && a->own_part_count == b->own_part_count &&
           a->colocated == b->colocated && (!a->colocated || a->trainer == b->trainer);
}

static bool same(const struct sgp_topology *a, const struct sgp_topology *b)
{
    bool same = a->node_count == b->node_count && a->phase_count == b->phase_count &&
                a->repeat == b->repeat && a->slices == b->slices;
    for (uint32_t i = 0; same && i < a->node_count; i++)
        same = same_role(&a->nodes[i], &b->nodes[i]);
    for (uint32_t p = 0; same && p < a->phase_count; p++)
        same = same_phase(&a->phases[p], &b->phases[p]);
    return same;
}

/* ---- the family ---- */

/* The options that a family is tried with: one number counts from 0, which is its default. What the
 * file says itself is taken from there. */
static bool set_options(const struct sgp_generate_family *family, const struct sgp_topology *file,
    uint32_t number, struct sgp_generate_options *options)
{
    const struct sgp_phase *phase = &file->phases[0];
    const unsigned counted = SGP_GENERATE_PEERS | SGP_GENERATE_DEGREE | SGP_GENERATE_GROUP |
                             SGP_GENERATE_HUBS | SGP_GENERATE_OWNER | SGP_GENERATE_PHASES;
    options->family = family->name;
    options->outer = file->phases[file->phase_count - 1].outer;
    if (family->options & SGP_GENERATE_OWNER) {
        options->backup = phase->backup;
        options->staleness = phase->staleness;
        options->members = file->owner != SGP_NODE_NONE && file->nodes[file->owner].colocated;
        options->owners = number;
    }
    if (family->options & SGP_GENERATE_TOKEN)
        options->delay = phase->delay;
    if (family->options & SGP_GENERATE_PEERS)
        options->peers = number;
    if (family->options & SGP_GENERATE_DEGREE)
        options->degree = number;
    if (family->options & SGP_GENERATE_PHASES)
        options->phases = number;
    if (family->options & SGP_GENERATE_GROUP)
        options->group = number + 2;
    if (family->options & SGP_GENERATE_HUBS) {
        options->hubs = number;
        options->relays = file->nodes[0].relay;
    }
    return number == 0 || (family->options & counted) != 0;
}

/* The number of nodes that a person writes in the file: co-located owners come after them. */
static uint32_t count_written(const struct sgp_topology *topology)
{
    uint32_t count = topology->node_count;
    while (count > 0 && topology->nodes[count - 1].colocated)
        count--;
    return count;
}

static bool is_of(const struct sgp_generate_options *options, const struct sgp_topology *file)
{
    struct sgp_topology *made = NULL;
    const bool is = sgp_generate(options, NULL, &made) == 0 && same(made, file);
    sgp_topology_destroy(made);
    return is;
}

/* The options that make this file; false: none of those that are tried. */
static bool find_family(const struct sgp_topology *file, struct sgp_generate_options *ret_options)
{
    for (uint32_t number = 0; number <= COUNTS_MOST; number++)
        for (const struct sgp_generate_family *family = sgp_generate_families; family->name;
             family++) {
            struct sgp_generate_options options = {.nodes = count_written(file)};
            if (!set_options(family, file, number, &options) || !is_of(&options, file))
                continue;
            *ret_options = options;
            return true;
        }
    return false;
}

static enum ctl_exit take_family(
    struct ctl *ctl, const struct ctl_change *change, struct sgp_generate_options *options)
{
    const struct sgp_generate_family *family = sgp_generate_families;
    if (change->family == NULL)
        return find_family(change->topology, options)
                   ? CTL_DONE
                   : ctl_fail(ctl, CTL_INVALID,
                         "%s: its edges are of no family with its usual options; choose one with "
                         "--family, or write the edges by hand",
                         change->path);
    while (family->name != NULL && strcmp(family->name, change->family) != 0)
        family++;
    if (family->name == NULL)
        return ctl_usage(ctl, "there is no family '%s'; sgpctl topology generate --help lists them",
            change->family);
    (void)set_options(family, change->topology, 0, options);
    return CTL_DONE;
}

/* ---- the new file ---- */

/* The names of all nodes of the new file. */
static const char **list_names(const struct ctl_change *change, uint32_t *ret_count)
{
    const uint32_t written = count_written(change->topology);
    const char **names = calloc(written + 1u, sizeof *names);
    uint32_t count = 0;
    for (uint32_t i = 0; names != NULL && i < written; i++)
        if (change->remove == NULL || strcmp(change->topology->nodes[i].name, change->remove) != 0)
            names[count++] = change->topology->nodes[i].name;
    if (names != NULL && change->add != NULL)
        names[count++] = change->add;
    *ret_count = count;
    return names;
}

/* Addresses and keys of nodes that stay are those of the present file. */
static void dress(const struct ctl_change *change, struct sgp_topology *made)
{
    const struct sgp_topology *file = change->topology;
    for (uint32_t i = 0; i < made->node_count; i++) {
        struct sgp_topology_node *node = &made->nodes[i];
        const int64_t at = sgp_topology_find(file, node->name);
        const bool joins =
            change->add != NULL &&
            strcmp(made->nodes[sgp_topology_machine(made, i)].name, change->add) == 0;
        if (at >= 0 && !joins) {
            memcpy(node->address, file->nodes[at].address, sizeof node->address);
            memcpy(node->keys, file->nodes[at].keys, sizeof node->keys);
        } else if (joins) {
            (void)snprintf(node->address, sizeof node->address, "%s", change->address);
            (void)snprintf(node->keys[0], sizeof node->keys[0], "%s", change->key);
        }
    }
    for (uint32_t p = 0; made->phase_count == file->phase_count && p < made->phase_count; p++)
        memcpy(made->phases[p].name, file->phases[p].name, sizeof made->phases[p].name);
    made->tls = file->tls;
    made->stops = file->stops;
    made->version = file->version + 1;
}

/* Write the file as text, and read that back. */
static enum ctl_exit put(struct ctl *ctl, const struct ctl_change *change,
    const struct sgp_topology *made, struct ctl_proposal *proposal)
{
    struct sgp_error error = {0};
    struct sgp_topology *back = NULL;
    char comment[SGP_TEXT_BYTES];
    FILE *file = open_memstream(&proposal->text, &proposal->bytes);
    (void)snprintf(comment, sizeof comment, "%s, %u nodes: %s %s", proposal->family,
        proposal->nodes, change->add != NULL ? change->add : change->remove,
        change->add != NULL ? "joins" : "leaves for good");
    int code = file != NULL ? sgp_dot_write(file, made, comment) : -ENOMEM;
    if (file != NULL && fclose(file) != 0)
        code = -ENOMEM;
    if (code == 0)
        code = sgp_dot_parse(proposal->text, proposal->bytes, "the proposed file", &error, &back);
    sgp_topology_destroy(back);
    if (code == 0)
        return CTL_DONE;
    free(proposal->text);
    proposal->text = NULL;
    return ctl_fail(
        ctl, CTL_INVALID, "%s", error.text[0] != '\0' ? error.text : sgp_strerror(code));
}

static enum ctl_exit check(struct ctl *ctl, const struct ctl_change *change)
{
    const struct sgp_topology *file = change->topology;
    const int64_t goes = change->remove != NULL ? sgp_topology_find(file, change->remove) : -1;
    if (change->add != NULL && sgp_topology_find(file, change->add) >= 0)
        return ctl_fail(ctl, CTL_FAILED, "%s is a node of %s already", change->add, change->path);
    if (change->remove != NULL && goes < 0)
        return ctl_fail(ctl, CTL_FAILED, "%s is no node of %s", change->remove, change->path);
    if (goes >= 0 && (file->nodes[goes].relay || file->nodes[goes].owns ||
                         sgp_topology_colocated_owner(file, (uint32_t)goes) != SGP_NODE_NONE))
        return ctl_fail(ctl, CTL_FAILED,
            "%s is a relay or an owner in %s, and another node must take its part; write the file "
            "by hand",
            change->remove, change->path);
    if (goes >= 0 && count_written(file) == 1)
        return ctl_fail(ctl, CTL_FAILED, "%s is the only node of %s", change->remove, change->path);
    return CTL_DONE;
}

enum ctl_exit ctl_propose(
    struct ctl *ctl, const struct ctl_change *change, struct ctl_proposal *ret_proposal)
{
    struct sgp_generate_options options = {.nodes = 0};
    struct ctl_proposal proposal = {.version = change->topology->version + 1};
    struct sgp_topology *made = NULL;
    struct sgp_error error = {0};
    enum ctl_exit status = check(ctl, change);
    if (status == CTL_DONE)
        status = take_family(ctl, change, &options);
    if (status != CTL_DONE)
        return status;
    const char **names = list_names(change, &options.nodes);
    options.names = names;
    proposal.family = options.family;
    proposal.nodes = options.nodes;
    if (names == NULL)
        return ctl_fail(ctl, CTL_FAILED, "out of memory");
    const int code = sgp_generate(&options, &error, &made);
    if (code < 0)
        status = ctl_fail(ctl, CTL_INVALID, "%s with %u nodes: %s; choose another with --family",
            options.family, options.nodes, error.text[0] != '\0' ? error.text : sgp_strerror(code));
    free(names);
    if (status == CTL_DONE) {
        dress(change, made);
        status = put(ctl, change, made, &proposal);
    }
    sgp_topology_destroy(made);
    if (status == CTL_DONE)
        *ret_proposal = proposal;
    return status;
}

/* ---- where it goes ---- */

static enum ctl_exit refuse_existing(struct ctl *ctl, const char *path)
{
    return ctl_fail(
        ctl, CTL_FAILED, "%s is there already; --force replaces it, another name keeps it", path);
}

enum ctl_exit ctl_proposal_check(struct ctl *ctl, const struct ctl_proposal_options *options)
{
    const bool taken =
        options->output != NULL && !options->force && access(options->output, F_OK) == 0;
    return taken ? refuse_existing(ctl, options->output) : CTL_DONE;
}

enum ctl_exit ctl_proposal_write(struct ctl *ctl, const struct ctl_proposal *proposal,
    const struct ctl_proposal_options *options)
{
    if (options->output == NULL) {
        (void)fwrite(proposal->text, 1, proposal->bytes, stdout);
        return CTL_DONE;
    }
    const int code =
        ctl_file_write(options->output, proposal->text, proposal->bytes, options->force);
    if (code == -EEXIST)
        return refuse_existing(ctl, options->output);
    return code < 0 ? ctl_fail(ctl, code == -EACCES ? CTL_NOT_PERMITTED : CTL_FAILED, "%s: %s",
                          options->output, sgp_strerror(code))
                    : CTL_DONE;
}

/* The path of the file of the daemon's configuration. */
static enum ctl_exit find_path(struct ctl *ctl, char **ret_path)
{
    const struct ctl_request request = {.method = "GET", .path = "/v1/status"};
    json_t *answer;
    enum ctl_exit status = ctl_ask_json(ctl, &request, &answer);
    if (status != CTL_DONE)
        return status;
    *ret_path = strdup(ctl_text_of(json_object_get(answer, "topology"), "file", ""));
    json_decref(answer);
    return *ret_path != NULL ? CTL_DONE : ctl_fail(ctl, CTL_FAILED, "out of memory");
}

/* The signed version that the daemon uses, which may be later than the file of its configuration.
 * CTL_FAILED, and nothing reported: it has no administrators. */
static enum ctl_exit read_active(
    struct ctl *ctl, char **ret_name, struct sgp_topology **ret_topology)
{
    json_t *rollout = NULL;
    struct sgp_document document = {.file = NULL};
    struct sgp_error error = {0};
    char name[64];
    if (ctl_rollout_ask(ctl, true, &rollout) != CTL_DONE)
        return CTL_FAILED;
    (void)snprintf(name, sizeof name, "version %" PRIu64, ctl_rollout_version(rollout, "active"));
    json_decref(rollout);
    enum ctl_exit status = ctl_rollout_document(ctl, "active", &document);
    if (status == CTL_DONE && (*ret_name = strdup(name)) == NULL)
        status = ctl_fail(ctl, CTL_INVALID, "out of memory");
    if (status == CTL_DONE &&
        sgp_dot_parse(document.file, document.manifest.file_bytes, name, &error, ret_topology) < 0)
        status = ctl_fail(ctl, CTL_INVALID, "%s", error.text);
    sgp_document_finish(&document);
    return status == CTL_FAILED ? CTL_INVALID : status;
}

enum ctl_exit ctl_present_topology(
    struct ctl *ctl, const char *path, char **ret_name, struct sgp_topology **ret_topology)
{
    enum ctl_exit status = path == NULL ? read_active(ctl, ret_name, ret_topology) : CTL_FAILED;
    if (status != CTL_FAILED)
        return status;
    status = CTL_DONE;
    if (path == NULL)
        status = find_path(ctl, ret_name);
    else if ((*ret_name = strdup(path)) == NULL)
        status = ctl_fail(ctl, CTL_FAILED, "out of memory");
    if (status != CTL_DONE)
        return status;
    return ctl_is_document(*ret_name) ? ctl_read_signed_topology(ctl, *ret_name, ret_topology)
                                      : ctl_read_topology(ctl, *ret_name, ret_topology);
}

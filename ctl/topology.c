/* SPDX-License-Identifier: Apache-2.0 */
/* A topology file: read, and printed as JSON or as a file. No daemon is needed. */
#include "topology.h"

#include "sgp/dot.h"

#include <inttypes.h>
#include <string.h>

enum ctl_exit ctl_read_topology(
    struct ctl *ctl, const char *path, struct sgp_topology **ret_topology)
{
    struct sgp_error error = {0};
    int code = strcmp(path, "-") == 0 ? sgp_dot_read(stdin, "-", &error, ret_topology)
                                      : sgp_dot_read_path(path, &error, ret_topology);
    if (code == 0)
        return CTL_DONE;
    return ctl_fail(
        ctl, CTL_INVALID, "%s", error.text[0] != '\0' ? error.text : sgp_strerror(code));
}

static json_t *edge_json(const struct sgp_topology *topology, const struct sgp_edge *edge)
{
    json_t *json = json_pack("{s:s, s:s, s:f}", "source", topology->nodes[edge->source].name,
        "target", topology->nodes[edge->target].name, "fraction", edge->fraction);
    if (edge->part_count > 0)
        (void)json_object_set_new(json, "slice",
            json_pack(
                "[I, I]", (json_int_t)edge->part, (json_int_t)(edge->part + edge->part_count - 1)));
    return json;
}

static json_t *keys_json(const struct sgp_topology *topology, uint32_t node)
{
    char text[SGP_KEYS_BYTES];
    sgp_topology_keys_text(topology, node, text);
    return topology->nodes[node].keys[0][0] != '\0' ? json_string(text) : json_null();
}

/* The parts that the node owns, if these are not all. */
static json_t *parts_json(const struct sgp_topology_node *node)
{
    if (node->own_part_count == 0)
        return json_null();
    return json_pack("[I, I]", (json_int_t)node->own_part,
        (json_int_t)(node->own_part + node->own_part_count - 1));
}

/* The node of the file with which this owner is colocated. */
static json_t *colocated_json(const struct sgp_topology *topology, uint32_t node)
{
    const struct sgp_topology_node *it = &topology->nodes[node];
    return it->colocated ? json_string(topology->nodes[it->trainer].name) : json_null();
}

/* The names are those of GET /v1/topology. */
json_t *ctl_topology_json(const struct sgp_topology *topology)
{
    char digest[17];
    (void)snprintf(digest, sizeof digest, "%016" PRIx64, topology->digest);
    json_t *nodes = json_array(), *phases = json_array();
    for (uint32_t i = 0; i < topology->node_count; i++)
        (void)json_array_append_new(nodes,
            json_pack("{s:s, s:s, s:o, s:b, s:b, s:o, s:o, s:f}", "name", topology->nodes[i].name,
                "address", topology->nodes[i].address, "key", keys_json(topology, i), "train",
                (int)!topology->nodes[i].relay, "owns", (int)topology->nodes[i].owns, "parts",
                parts_json(&topology->nodes[i]), "beside", colocated_json(topology, i), "starts",
                sgp_topology_starts(topology, i)));
    for (uint32_t p = 0; p < topology->phase_count; p++) {
        const struct sgp_phase *phase = &topology->phases[p];
        json_t *edges = json_array();
        for (uint32_t e = 0; e < phase->edge_count; e++)
            (void)json_array_append_new(edges, edge_json(topology, &phase->out[e]));
        (void)json_array_append_new(phases,
            json_pack("{s:s, s:I, s:b, s:b, s:b, s:I, s:s, s:f, s:I, s:s, s:b, s:I, s:I, s:o}",
                "name", phase->name, "rounds", (json_int_t)phase->rounds, "once", (int)phase->once,
                "train", (int)!phase->exchanges, "outer", (int)phase->outer, "backup",
                (json_int_t)phase->backup, "staleness", sgp_damping_name(phase->staleness.damping),
                "compensation", phase->staleness.compensation, "staleness_max",
                (json_int_t)phase->staleness.most, "token", sgp_token_name(phase->delay.token),
                "delay_mean", (int)phase->delay.mean, "delay_max",
                (json_int_t)(phase->delay.token ? sgp_topology_delay_most(topology) : 0),
                "edge_count", (json_int_t)phase->edge_count, "edges", edges));
    }
    return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:b, s:s, s:o, s:o}", "digest", digest,
        "version", (json_int_t)topology->version, "slices", (json_int_t)topology->slices, "repeat",
        (json_int_t)topology->repeat, "prelude_rounds", (json_int_t)topology->prelude_rounds,
        "rounds_per_cycle", (json_int_t)topology->rounds_per_cycle, "exact",
        (int)topology->cycle.exact, "tls", sgp_tls_name(topology->tls), "nodes", nodes, "phases",
        phases);
}

enum ctl_exit ctl_topology_print_file(
    struct ctl *ctl, const struct sgp_topology *topology, const char *comment)
{
    int code = sgp_dot_write(stdout, topology, comment);
    return code < 0 ? ctl_fail(ctl, CTL_FAILED, "standard output: %s", sgp_strerror(code))
                    : CTL_DONE;
}

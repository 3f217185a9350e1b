/* SPDX-License-Identifier: Apache-2.0 */
/* One digraph of a topology file as a phase: its options and its edges. */
#include "topology/build.h"
#include "topology/dot_reader.h"

#include <stdlib.h>
#include <string.h>

#define SGP_DOT_NAMES_LISTED 8u /* number of nodes listed in a message before "..." */

static int fail_unknown(struct sgp_dot_reader *r, uint32_t g, const char *phase, const char *name)
{
    char list[SGP_TEXT_BYTES / 2] = "";
    size_t length = 0;
    for (uint32_t i = 0; i < r->node_count && i < SGP_DOT_NAMES_LISTED && length < sizeof list; i++)
        length += (size_t)snprintf(
            list + length, sizeof list - length, "%s%.24s", i ? ", " : "", r->nodes[i].name);
    return sgp_dot_fail_at(r, sgp_dot_line_of(r, g, name), SGP_E_TOPOLOGY,
        "digraph %s: unknown node %.64s; nodes are those %s (%s%s)", phase, name,
        r->addressed ? "with an address" : "of the first digraph", list,
        r->node_count > SGP_DOT_NAMES_LISTED ? ", ..." : "");
}

static bool parse_number(const char *text, const char **ret_end, double *ret_number)
{
    if (!((*text >= '0' && *text <= '9') || *text == '.'))
        return false;
    char *end;
    *ret_number = strtod(text, &end);
    *ret_end = end;
    return end > text;
}

/* A decimal, optionally with an exponent, or A/B. */
static bool parse_fraction(const char *text, double *ret_fraction)
{
    double value, divisor;
    const char *end;
    /* strtod would also accept hexadecimal numbers and infinity */
    if (text[strspn(text, "0123456789.eE+-/")] != '\0')
        return false;
    if (!parse_number(text, &end, &value))
        return false;
    if (*end == '/') {
        if (!parse_number(end + 1, &end, &divisor) || !(divisor > 0))
            return false;
        value /= divisor;
    }
    *ret_fraction = value;
    return *end == '\0' && value > 0.0 && value <= 1.0;
}

static int read_edge(struct sgp_dot_reader *r, uint32_t g, const char *phase, Agedge_t *edge,
    struct sgp_edge *ret_edge)
{
    char *tail = agnameof(agtail(edge)), *head = agnameof(aghead(edge));
    Agnode_t *source = agnode(r->fleet, tail, 0), *target = agnode(r->fleet, head, 0);
    sgp_assert(source && target);
    const char *fraction = sgp_dot_attribute(r->graphs[g], AGEDGE, edge, "fraction");
    const char *parts = sgp_dot_attribute(r->graphs[g], AGEDGE, edge, "slice");
    *ret_edge = (struct sgp_edge){.source = sgp_dot_member(source),
        .target = sgp_dot_member(target),
        .fraction = SGP_FRACTION_DEFAULT};
    if (*fraction && !parse_fraction(fraction, &ret_edge->fraction))
        return sgp_dot_fail_at(r, sgp_scan_line(&r->text, g, tail, head, 1), SGP_E_TOPOLOGY,
            "digraph %s: edge %s -> %s: fraction \"%.40s\" is not one; "
            "write a number above 0 and at most 1, as 0.25 or \"2/3\"",
            phase, tail, head, fraction);
    if (*parts && !sgp_dot_parse_parts(parts, &ret_edge->part, &ret_edge->part_count))
        return sgp_dot_fail_at(r, sgp_scan_line(&r->text, g, tail, head, 1), SGP_E_TOPOLOGY,
            "digraph %s: edge %s -> %s: slice \"%.40s\" is no part; write one number from 0 on, or "
            "a range as \"0-3\"; at most %u parts",
            phase, tail, head, parts, SGP_SLICES_MAX);
    return 0;
}

static int read_edges(struct sgp_dot_reader *r, uint32_t g, const char *phase,
    struct sgp_edge *edges, uint32_t *ret_count)
{
    Agraph_t *graph = r->graphs[g];
    for (Agnode_t *n = agfstnode(graph); n; n = agnxtnode(graph, n))
        if (!agnode(r->fleet, agnameof(n), 0))
            return fail_unknown(r, g, phase, agnameof(n));
    uint32_t count = 0;
    for (Agnode_t *n = agfstnode(graph); n; n = agnxtnode(graph, n))
        for (Agedge_t *e = agfstout(graph, n); e; e = agnxtout(graph, e)) {
            int code = read_edge(r, g, phase, e, &edges[count]);
            if (code)
                return code;
            count++;
        }
    *ret_count = count;
    return 0;
}

/* A whole number. *ret_number is left as it is if the attribute is not given. */
static int read_whole(struct sgp_dot_reader *r, uint32_t g, const char *phase, const char *name,
    uint64_t least, uint64_t most, uint64_t *ret_number)
{
    const char *text = sgp_dot_attribute(r->graphs[g], AGRAPH, r->graphs[g], name);
    if (!*text)
        return 0;
    size_t length = strlen(text);
    unsigned long long number = strtoull(text, NULL, 10); /* too large a number is ULLONG_MAX */
    if (strspn(text, "0123456789") != length || number < least || number > most)
        return sgp_dot_fail_at(r, sgp_scan_line(&r->text, g, name, NULL, 1), SGP_E_TOPOLOGY,
            "digraph %s: %s=\"%.40s\" is not usable; write a whole number from %llu to %llu", phase,
            name, text, (unsigned long long)least, (unsigned long long)most);
    *ret_number = number;
    return 0;
}

/* A whole number, at least 1. `usual` if the attribute is not given. */
static int read_count(struct sgp_dot_reader *r, uint32_t g, const char *phase, const char *name,
    uint32_t most, uint32_t usual, uint32_t *ret_count)
{
    uint64_t count = usual;
    int code = read_whole(r, g, phase, name, 1, most, &count);
    *ret_count = (uint32_t)count;
    return code;
}

static int read_tls(struct sgp_dot_reader *r, uint32_t g, const char *phase, enum sgp_tls *ret_tls)
{
    const char *text = sgp_dot_attribute(r->graphs[g], AGRAPH, r->graphs[g], "tls");
    *ret_tls = SGP_TLS_UNSAID;
    for (enum sgp_tls tls = SGP_TLS_OFF; tls <= SGP_TLS_REQUIRE; tls++)
        if (strcmp(text, sgp_tls_name(tls)) == 0)
            *ret_tls = tls;
    if (!*text || *ret_tls != SGP_TLS_UNSAID)
        return 0;
    return sgp_dot_fail_at(r, sgp_scan_line(&r->text, g, "tls", NULL, 1), SGP_E_TOPOLOGY,
        "digraph %s: tls=\"%.40s\" is not usable; write tls=off, tls=offer or tls=require", phase,
        text);
}

static int read_staleness(
    struct sgp_dot_reader *r, uint32_t g, const char *phase, struct sgp_staleness *ret_staleness)
{
    Agraph_t *graph = r->graphs[g];
    const char *damping = sgp_dot_attribute(graph, AGRAPH, graph, "staleness"), *end = NULL;
    const char *compensation = sgp_dot_attribute(graph, AGRAPH, graph, "compensation");
    if (*damping && !sgp_damping_find(damping, &ret_staleness->damping))
        return sgp_dot_fail_at(r, sgp_scan_line(&r->text, g, "staleness", NULL, 1), SGP_E_TOPOLOGY,
            "digraph %s: staleness=\"%.40s\" is not to be had; write none, divide or compensate",
            phase, damping);
    bool usable = compensation[strspn(compensation, "0123456789.eE+-")] == '\0' &&
                  parse_number(compensation, &end, &ret_staleness->compensation) && !*end &&
                  ret_staleness->compensation > 0 &&
                  ret_staleness->compensation <= SGP_COMPENSATION_MAX;
    if (*compensation && !usable)
        return sgp_dot_fail_at(r, sgp_scan_line(&r->text, g, "compensation", NULL, 1),
            SGP_E_TOPOLOGY,
            "digraph %s: compensation=\"%.40s\" is not usable; write a number above 0, and at most "
            "1e9",
            phase, compensation);
    return read_count(r, g, phase, "staleness_max", SGP_NODES_MAX, 0, &ret_staleness->most);
}

static int read_delay(
    struct sgp_dot_reader *r, uint32_t g, const char *phase, struct sgp_delay *ret_delay)
{
    Agraph_t *graph = r->graphs[g];
    const char *token = sgp_dot_attribute(graph, AGRAPH, graph, "token");
    if (*token && !sgp_token_find(token, &ret_delay->token))
        return sgp_dot_fail_at(r, sgp_scan_line(&r->text, g, "token", NULL, 1), SGP_E_TOPOLOGY,
            "digraph %s: token=\"%.40s\" is not to be had; write none, dynamic or fixed", phase,
            token);
    int code =
        sgp_dot_read_truth(r, g, phase, AGRAPH, graph, "delay_mean", false, &ret_delay->mean);
    return code ? code : read_count(r, g, phase, "delay_max", SGP_DELAY_MAX, 0, &ret_delay->most);
}

static int read_options(struct sgp_dot_reader *r, uint32_t g, struct sgp_phase_options *options)
{
    Agraph_t *graph = r->graphs[g];
    const char *phase = options->name;
    bool trains = true;
    int code = read_count(r, g, phase, "rounds", SGP_PHASE_ROUNDS_MAX, 1, &options->rounds);
    if (code == 0)
        code = sgp_dot_read_truth(r, g, phase, AGRAPH, graph, "once", false, &options->once);
    if (code == 0)
        code = sgp_dot_read_truth(r, g, phase, AGRAPH, graph, "train", true, &trains);
    if (code == 0)
        code = sgp_dot_read_truth(r, g, phase, AGRAPH, graph, "outer", false, &options->outer);
    if (code == 0)
        code = read_count(r, g, phase, "slices", SGP_SLICES_MAX, 0, &options->slices);
    if (code == 0)
        code = read_count(r, g, phase, "repeat", SGP_REPEAT_MAX, 0, &options->repeat);
    if (code == 0)
        code = read_count(r, g, phase, "backup", SGP_NODES_MAX, 0, &options->backup);
    if (code == 0)
        code = read_tls(r, g, phase, &options->tls);
    if (code == 0)
        code = read_count(r, g, phase, "stops", SGP_STOPS_MAX, 0, &options->stops);
    if (code == 0)
        code = read_whole(r, g, phase, "version", 0, SGP_TOPOLOGY_VERSION_MAX, &options->version);
    if (code == 0)
        code = read_staleness(r, g, phase, &options->staleness);
    if (code == 0)
        code = read_delay(r, g, phase, &options->delay);
    options->exchanges = !trains;
    return code;
}

int sgp_dot_add_phase(struct sgp_dot_reader *r, uint32_t g, struct sgp_topology *topology)
{
    char phase[SGP_NAME_BYTES];
    struct sgp_phase_options options = {.name = phase};
    uint32_t count = 0;
    sgp_dot_phase_name(r, g, phase);
    if (!agisdirected(r->graphs[g]))
        return sgp_dot_fail_at(r, sgp_scan_line(&r->text, g, NULL, NULL, 1), SGP_E_TOPOLOGY,
            "graph %s is undirected; write digraph, and a -> b; b -> a for both directions", phase);
    int code = read_options(r, g, &options);
    if (code)
        return code;
    struct sgp_edge *edges = calloc((size_t)agnedges(r->graphs[g]) + 1, sizeof *edges);
    if (!edges)
        return sgp_dot_fail_memory(r);
    code = read_edges(r, g, phase, edges, &count);
    if (!code) {
        struct sgp_error reason = {0};
        struct sgp_edge where = {.source = SGP_NODE_NONE, .target = SGP_NODE_NONE};
        code = sgp_topology_add_where(topology, &options, edges, count, &reason, &where);
        const char *source = where.source != SGP_NODE_NONE ? r->nodes[where.source].name : NULL;
        const char *target = where.target != SGP_NODE_NONE ? r->nodes[where.target].name : NULL;
        /* of a repeated edge the second one must be removed */
        if (code)
            (void)sgp_dot_fail_at(r, sgp_scan_line(&r->text, g, source, target, 2), code,
                "digraph %s: %s", phase, reason.text);
    }
    free(edges);
    return code;
}

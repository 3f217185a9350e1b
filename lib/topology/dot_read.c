/* SPDX-License-Identifier: Apache-2.0 */
/* DOT to topology. libcgraph parses. This file decides what is a valid topology, and reports where
 * it is not.
 *
 * One thread at a time, because libcgraph's parser and its error function are global. Reads a whole
 * stream into memory first, at most SGP_DOT_BYTES_MAX. If a stream fails, the result is -errno with
 * its name. */
#include "sgp/dot.h"
#include "topology/build.h"
#include "topology/dot_attributes.h"
#include "topology/key.h"
#include "topology/scan.h"

#include <graphviz/cgraph.h>

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define SGP_DOT_NAMES_LISTED 8u /* number of nodes listed in a message before "..." */

struct reader {
    struct sgp_scan_text text;
    struct sgp_error *error;
    Agraph_t **graphs;
    uint32_t graph_count;
    Agraph_t *fleet; /* dictionary of libcgraph: name to struct member */
    struct sgp_topology_node *nodes;
    uint32_t node_count;
    bool addressed; /* only nodes with an address are members of the fleet */
};

struct member {
    Agrec_t record;
    uint32_t index;
};

/* The first complaint of libcgraph since the last parse began. */
static char complaint[SGP_TEXT_BYTES];

static int hear_complaint(char *text)
{
    size_t length = strlen(complaint);
    if (!strchr(complaint, '\n'))
        (void)snprintf(complaint + length, sizeof complaint - length, "%s", text);
    return 0;
}

static int fail_at(struct reader *r, uint32_t line, int code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static int fail_at(struct reader *r, uint32_t line, int code, const char *format, ...)
{
    char text[SGP_TEXT_BYTES];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return sgp_fail(r->error, code, "%s:%u: %s", r->text.name, line, text);
}

static int fail_memory(struct reader *r)
{
    return sgp_fail(r->error, -ENOMEM, "%s: no memory to read it", r->text.name);
}

/* Turns "Error: FILE: syntax error in line 3 near '}'" into "NAME:3: syntax error near '}';
 * ...". */
static int fail_syntax(struct reader *r)
{
    static const char marker[] = " in line ";
    char *in_line = strstr(complaint, marker);
    char *what = strstr(complaint, "syntax ");
    complaint[strcspn(complaint, "\n")] = '\0';
    if (!in_line || !what || what > in_line)
        return fail_at(r, 1, SGP_E_SYNTAX, "%s; see the examples in topologies/", complaint);
    char *rest = NULL;
    unsigned long line = strtoul(in_line + sizeof marker - 1, &rest, 10);
    *in_line = '\0';
    if (strncmp(rest, " of ", 4) == 0)
        return fail_at(r, (uint32_t)line, SGP_E_SYNTAX,
            "%s; put names and values that are not plain words in \"quotes\"", what);
    return fail_at(r, (uint32_t)line, SGP_E_SYNTAX,
        "%s%s; look here and just above for a missing brace, bracket, quote or semicolon", what,
        *rest ? rest : " at the end of the text");
}

/* Read every graph of the text, even after the first complaint. Otherwise the text that libcgraph
 * has buffered would begin the next file. */
static int read_graphs(struct reader *r)
{
    if (r->text.length == 0)
        return 0;
    FILE *stream = fmemopen((void *)(uintptr_t)r->text.text, r->text.length, "r");
    if (!stream)
        return fail_memory(r);
    complaint[0] = '\0';
    agusererrf before = agseterrf(hear_complaint);
    agerrlevel_t level = agseterr(AGWARN);
    static char file_name[] = "topology";
    agsetfile(file_name);
    int code = 0;
    for (Agraph_t *graph = agread(stream, NULL); graph; graph = agread(stream, NULL)) {
        Agraph_t **graphs = realloc(r->graphs, (r->graph_count + 1) * sizeof *graphs);
        if (graphs) {
            r->graphs = graphs;
            r->graphs[r->graph_count++] = graph;
        } else {
            agclose(graph);
            code = fail_memory(r);
        }
    }
    agseterr(level);
    agseterrf(before);
    (void)fclose(stream);
    return complaint[0] ? fail_syntax(r) : code;
}

static const char *attribute(Agraph_t *graph, int kind, void *object, const char *name)
{
    Agsym_t *symbol = agattr(graph, kind, (char *)(uintptr_t)name, NULL);
    return symbol ? agxget(object, symbol) : "";
}

/* A digraph without a name gets a name that begins with '%'. */
static void phase_name(const struct reader *r, uint32_t g, char name[SGP_NAME_BYTES])
{
    const char *given = agnameof(r->graphs[g]);
    if (given && *given && *given != '%')
        (void)snprintf(name, SGP_NAME_BYTES, "%s", given);
    else
        (void)snprintf(name, SGP_NAME_BYTES, "phase%u", g);
}

/* The line where a node first appears in a digraph. It is searched only for a message, because a
 * search reads the text up to there. */
static uint32_t line_of(const struct reader *r, uint32_t g, const char *name)
{
    return sgp_scan_line(&r->text, g, name, NULL, 1);
}

/* Reads true or false. `usual` if the attribute is not given. */
static int read_truth(struct reader *r, uint32_t g, const char *phase, int kind, void *object,
    const char *name, bool usual, bool *ret_truth)
{
    const char *text = attribute(r->graphs[g], kind, object, name);
    *ret_truth = *text ? strcmp(text, "true") == 0 : usual;
    if (!*text || *ret_truth || strcmp(text, "false") == 0)
        return 0;
    const char *what = kind == AGNODE ? "node" : "digraph";
    return fail_at(r, sgp_scan_line(&r->text, g, kind == AGNODE ? phase : name, NULL, 1),
        SGP_E_TOPOLOGY, "%s %s: %s=\"%.40s\" is neither true nor false; write %s=%s", what, phase,
        name, text, name, usual ? "false" : "true");
}

static int read_address(
    struct reader *r, uint32_t g, Agnode_t *node, struct sgp_topology_node *entry)
{
    const char *address = attribute(r->graphs[g], AGNODE, node, "address");
    char host[SGP_ADDRESS_BYTES];
    struct sgp_error reason = {0};
    uint16_t port;
    if (!*address || strcmp(address, SGP_ADDRESS_NONE) == 0) {
        (void)snprintf(entry->address, sizeof entry->address, "%s", address);
        return 0;
    }
    int code = sgp_address_split(address, &reason, host, &port);
    if (code)
        return fail_at(
            r, line_of(r, g, entry->name), code, "node %s: %s", entry->name, reason.text);
    int length = snprintf(
        entry->address, sizeof entry->address, strchr(host, ':') ? "[%s]:%u" : "%s:%u", host, port);
    if ((size_t)length >= sizeof entry->address)
        return fail_at(r, line_of(r, g, entry->name), SGP_E_TOPOLOGY,
            "node %s: its address is too long", entry->name);
    return 0;
}

static int read_keys(struct reader *r, uint32_t g, Agnode_t *node, struct sgp_topology_node *entry)
{
    const char *text = attribute(r->graphs[g], AGNODE, node, "key");
    struct sgp_error reason = {0};
    int code = *text ? sgp_keys_parse(text, &reason, entry->keys) : 0;
    return code ? fail_at(
                      r, line_of(r, g, entry->name), code, "node %s: %s", entry->name, reason.text)
                : 0;
}

/* `3` or `0-3`. */
static bool parse_parts(const char *text, uint16_t *ret_part, uint16_t *ret_count)
{
    char *end;
    if (!(*text >= '0' && *text <= '9'))
        return false;
    unsigned long first = strtoul(text, &end, 10), last = first;
    if (*end == '-' && end[1] >= '0' && end[1] <= '9')
        last = strtoul(end + 1, &end, 10);
    if (*end != '\0' || last < first || last >= SGP_SLICES_MAX)
        return false;
    *ret_part = (uint16_t)first;
    *ret_count = (uint16_t)(last - first + 1);
    return true;
}

/* What a digraph says about a node. */
static int read_member(
    struct reader *r, uint32_t g, Agnode_t *node, struct sgp_topology_node *entry)
{
    char *name = agnameof(node);
    bool trains = true;
    if (strlen(name) >= SGP_NAME_BYTES)
        return fail_at(r, line_of(r, g, name), SGP_E_TOPOLOGY,
            "node name \"%.20s...\" is too long; it may have %u bytes", name, SGP_NAME_BYTES - 1);
    *entry = (struct sgp_topology_node){.starts = SGP_STARTS_USUAL};
    (void)snprintf(entry->name, sizeof entry->name, "%s", name);
    int code = read_address(r, g, node, entry);
    if (code == 0)
        code = read_keys(r, g, node, entry);
    if (code == 0)
        code = read_truth(r, g, name, AGNODE, node, "train", true, &trains);
    if (code < 0)
        return code;
    entry->relay = !trains;
    const char *starts = attribute(r->graphs[g], AGNODE, node, "starts");
    bool empty = strcmp(starts, "0") == 0, whole = strcmp(starts, "1") == 0;
    if (*starts && !empty && !whole)
        return fail_at(r, line_of(r, g, name), SGP_E_TOPOLOGY,
            "node %s: starts=\"%.40s\" is no weight to start with; write starts=0 or starts=1",
            name, starts);
    const char *owns = attribute(r->graphs[g], AGNODE, node, "owns");
    entry->owns =
        strcmp(owns, "all") == 0 || parse_parts(owns, &entry->own_part, &entry->own_part_count);
    if (*owns && !entry->owns)
        return fail_at(r, line_of(r, g, name), SGP_E_TOPOLOGY,
            "node %s: owns=\"%.40s\" names no parts; write owns=all for the whole vector, a part "
            "as "
            "owns=0, or a range as owns=\"0-3\"; at most %u parts",
            name, owns, SGP_SLICES_MAX);
    entry->starts = empty ? SGP_STARTS_EMPTY : whole ? SGP_STARTS_WHOLE : SGP_STARTS_USUAL;
    return 0;
}

/* A later digraph may repeat what an earlier one said, or say nothing. */
static int compare_member(struct reader *r, uint32_t g, const struct sgp_topology_node *known,
    const struct sgp_topology_node *entry)
{
    if (strcmp(known->address, entry->address) != 0)
        return fail_at(r, line_of(r, g, entry->name), SGP_E_TOPOLOGY,
            "node %s has the address %s here and %s before; give it once", entry->name,
            entry->address, known->address);
    bool relays = entry->relay && !known->relay;
    bool keys = entry->keys[0][0] && memcmp(entry->keys, known->keys, sizeof entry->keys) != 0;
    bool starts = entry->starts != SGP_STARTS_USUAL && entry->starts != known->starts;
    bool owns = entry->owns && (!known->owns || entry->own_part != known->own_part ||
                                   entry->own_part_count != known->own_part_count);
    if (relays || starts || owns || keys)
        return fail_at(r, line_of(r, g, entry->name), SGP_E_TOPOLOGY,
            "node %s: %s is not what the digraph says in which the node comes first; say it there",
            entry->name,
            relays   ? "train=false"
            : starts ? "starts"
            : owns   ? "owns"
                     : "key");
    return 0;
}

static int add_member(struct reader *r, uint32_t g, Agnode_t *node)
{
    struct sgp_topology_node entry;
    int code = read_member(r, g, node, &entry);
    if (code < 0)
        return code;
    char *name = agnameof(node);
    Agnode_t *known = agnode(r->fleet, name, 0);
    if (known)
        return compare_member(r, g, &r->nodes[((struct member *)AGDATA(known))->index], &entry);
    if (r->node_count == SGP_NODES_MAX)
        return fail_at(r, line_of(r, g, name), SGP_E_LIMIT,
            "there are too many nodes; the limit is %u", SGP_NODES_MAX);
    static char record[] = "member";
    known = agnode(r->fleet, name, 1);
    struct member *member = agbindrec(known, record, sizeof *member, 1);
    member->index = r->node_count;
    r->nodes[r->node_count++] = entry;
    return 0;
}

/* Whether any node has an address, and an upper bound of the fleet's size. */
static uint64_t survey(struct reader *r)
{
    uint64_t most = 0;
    for (uint32_t g = 0; g < r->graph_count; g++) {
        most += (uint64_t)agnnodes(r->graphs[g]);
        Agsym_t *symbol = agattr(r->graphs[g], AGNODE, (char *)(uintptr_t) "address", NULL);
        for (Agnode_t *n = agfstnode(r->graphs[g]); symbol && n; n = agnxtnode(r->graphs[g], n))
            r->addressed |= *agxget(n, symbol) != '\0';
    }
    return most < SGP_NODES_MAX ? most : SGP_NODES_MAX;
}

/* Compare what the remaining digraphs say about members. Only the address may be left out. */
static int check_elsewhere(struct reader *r)
{
    for (uint32_t g = 0; g < r->graph_count; g++)
        for (Agnode_t *n = agfstnode(r->graphs[g]); n; n = agnxtnode(r->graphs[g], n)) {
            Agnode_t *known = agnode(r->fleet, agnameof(n), 0);
            struct sgp_topology_node entry = {0}, *first;
            int code = known ? read_member(r, g, n, &entry) : 0;
            if (!known || code < 0) {
                if (code < 0)
                    return code;
                continue;
            }
            first = &r->nodes[((struct member *)AGDATA(known))->index];
            if (!entry.address[0])
                memcpy(entry.address, first->address, sizeof entry.address);
            code = compare_member(r, g, first, &entry);
            if (code < 0)
                return code;
        }
    return 0;
}

static int collect_fleet(struct reader *r)
{
    static char name[] = "fleet";
    r->fleet = agopen(name, Agdirected, NULL);
    r->nodes = calloc((size_t)survey(r) + 1, sizeof *r->nodes);
    if (!r->fleet || !r->nodes)
        return fail_memory(r);
    uint32_t graphs = r->addressed ? r->graph_count : 1;
    for (uint32_t g = 0; g < graphs; g++)
        for (Agnode_t *n = agfstnode(r->graphs[g]); n; n = agnxtnode(r->graphs[g], n)) {
            const char *address = attribute(r->graphs[g], AGNODE, n, "address");
            if (r->addressed && !*address)
                continue;
            int code = add_member(r, g, n);
            if (code)
                return code;
        }
    return check_elsewhere(r);
}

static int fail_unknown(struct reader *r, uint32_t g, const char *phase, const char *name)
{
    char list[SGP_TEXT_BYTES / 2] = "";
    size_t length = 0;
    for (uint32_t i = 0; i < r->node_count && i < SGP_DOT_NAMES_LISTED && length < sizeof list; i++)
        length += (size_t)snprintf(
            list + length, sizeof list - length, "%s%.24s", i ? ", " : "", r->nodes[i].name);
    return fail_at(r, line_of(r, g, name), SGP_E_TOPOLOGY,
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

static int read_edge(
    struct reader *r, uint32_t g, const char *phase, Agedge_t *edge, struct sgp_edge *ret_edge)
{
    char *tail = agnameof(agtail(edge)), *head = agnameof(aghead(edge));
    Agnode_t *source = agnode(r->fleet, tail, 0), *target = agnode(r->fleet, head, 0);
    sgp_assert(source && target);
    const char *fraction = attribute(r->graphs[g], AGEDGE, edge, "fraction");
    const char *parts = attribute(r->graphs[g], AGEDGE, edge, "slice");
    *ret_edge = (struct sgp_edge){.source = ((struct member *)AGDATA(source))->index,
        .target = ((struct member *)AGDATA(target))->index,
        .fraction = SGP_FRACTION_DEFAULT};
    if (*fraction && !parse_fraction(fraction, &ret_edge->fraction))
        return fail_at(r, sgp_scan_line(&r->text, g, tail, head, 1), SGP_E_TOPOLOGY,
            "digraph %s: edge %s -> %s: fraction \"%.40s\" is not one; "
            "write a number above 0 and at most 1, as 0.25 or \"2/3\"",
            phase, tail, head, fraction);
    if (*parts && !parse_parts(parts, &ret_edge->part, &ret_edge->part_count))
        return fail_at(r, sgp_scan_line(&r->text, g, tail, head, 1), SGP_E_TOPOLOGY,
            "digraph %s: edge %s -> %s: slice \"%.40s\" is no part; write one number from 0 on, or "
            "a range as \"0-3\"; at most %u parts",
            phase, tail, head, parts, SGP_SLICES_MAX);
    return 0;
}

static int read_edges(
    struct reader *r, uint32_t g, const char *phase, struct sgp_edge *edges, uint32_t *ret_count)
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
static int read_whole(struct reader *r, uint32_t g, const char *phase, const char *name,
    uint64_t least, uint64_t most, uint64_t *ret_number)
{
    const char *text = attribute(r->graphs[g], AGRAPH, r->graphs[g], name);
    if (!*text)
        return 0;
    size_t length = strlen(text);
    unsigned long long number = strtoull(text, NULL, 10); /* too large a number is ULLONG_MAX */
    if (strspn(text, "0123456789") != length || number < least || number > most)
        return fail_at(r, sgp_scan_line(&r->text, g, name, NULL, 1), SGP_E_TOPOLOGY,
            "digraph %s: %s=\"%.40s\" is not usable; write a whole number from %llu to %llu", phase,
            name, text, (unsigned long long)least, (unsigned long long)most);
    *ret_number = number;
    return 0;
}

/* A whole number, at least 1. `usual` if the attribute is not given. */
static int read_count(struct reader *r, uint32_t g, const char *phase, const char *name,
    uint32_t most, uint32_t usual, uint32_t *ret_count)
{
    uint64_t count = usual;
    int code = read_whole(r, g, phase, name, 1, most, &count);
    *ret_count = (uint32_t)count;
    return code;
}

static int read_tls(struct reader *r, uint32_t g, const char *phase, enum sgp_tls *ret_tls)
{
    const char *text = attribute(r->graphs[g], AGRAPH, r->graphs[g], "tls");
    *ret_tls = SGP_TLS_UNSAID;
    for (enum sgp_tls tls = SGP_TLS_OFF; tls <= SGP_TLS_REQUIRE; tls++)
        if (strcmp(text, sgp_tls_name(tls)) == 0)
            *ret_tls = tls;
    if (!*text || *ret_tls != SGP_TLS_UNSAID)
        return 0;
    return fail_at(r, sgp_scan_line(&r->text, g, "tls", NULL, 1), SGP_E_TOPOLOGY,
        "digraph %s: tls=\"%.40s\" is not usable; write tls=off, tls=offer or tls=require", phase,
        text);
}

static int read_staleness(
    struct reader *r, uint32_t g, const char *phase, struct sgp_staleness *ret_staleness)
{
    Agraph_t *graph = r->graphs[g];
    const char *damping = attribute(graph, AGRAPH, graph, "staleness"), *end = NULL;
    const char *compensation = attribute(graph, AGRAPH, graph, "compensation");
    if (*damping && !sgp_damping_find(damping, &ret_staleness->damping))
        return fail_at(r, sgp_scan_line(&r->text, g, "staleness", NULL, 1), SGP_E_TOPOLOGY,
            "digraph %s: staleness=\"%.40s\" is not to be had; write none, divide or compensate",
            phase, damping);
    bool usable = compensation[strspn(compensation, "0123456789.eE+-")] == '\0' &&
                  parse_number(compensation, &end, &ret_staleness->compensation) && !*end &&
                  ret_staleness->compensation > 0 &&
                  ret_staleness->compensation <= SGP_COMPENSATION_MAX;
    if (*compensation && !usable)
        return fail_at(r, sgp_scan_line(&r->text, g, "compensation", NULL, 1), SGP_E_TOPOLOGY,
            "digraph %s: compensation=\"%.40s\" is not usable; write a number above 0, and at most "
            "1e9",
            phase, compensation);
    return read_count(r, g, phase, "staleness_max", SGP_NODES_MAX, 0, &ret_staleness->most);
}

static int read_delay(struct reader *r, uint32_t g, const char *phase, struct sgp_delay *ret_delay)
{
    Agraph_t *graph = r->graphs[g];
    const char *token = attribute(graph, AGRAPH, graph, "token");
    if (*token && !sgp_token_find(token, &ret_delay->token))
        return fail_at(r, sgp_scan_line(&r->text, g, "token", NULL, 1), SGP_E_TOPOLOGY,
            "digraph %s: token=\"%.40s\" is not to be had; write none, dynamic or fixed", phase,
            token);
    int code = read_truth(r, g, phase, AGRAPH, graph, "delay_mean", false, &ret_delay->mean);
    return code ? code : read_count(r, g, phase, "delay_max", SGP_DELAY_MAX, 0, &ret_delay->most);
}

static int read_options(struct reader *r, uint32_t g, struct sgp_phase_options *options)
{
    Agraph_t *graph = r->graphs[g];
    const char *phase = options->name;
    bool trains = true;
    int code = read_count(r, g, phase, "rounds", SGP_PHASE_ROUNDS_MAX, 1, &options->rounds);
    if (code == 0)
        code = read_truth(r, g, phase, AGRAPH, graph, "once", false, &options->once);
    if (code == 0)
        code = read_truth(r, g, phase, AGRAPH, graph, "train", true, &trains);
    if (code == 0)
        code = read_truth(r, g, phase, AGRAPH, graph, "outer", false, &options->outer);
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

static int add_phase(struct reader *r, uint32_t g, struct sgp_topology *topology)
{
    char phase[SGP_NAME_BYTES];
    struct sgp_phase_options options = {.name = phase};
    uint32_t count = 0;
    phase_name(r, g, phase);
    if (!agisdirected(r->graphs[g]))
        return fail_at(r, sgp_scan_line(&r->text, g, NULL, NULL, 1), SGP_E_TOPOLOGY,
            "graph %s is undirected; write digraph, and a -> b; b -> a for both directions", phase);
    int code = read_options(r, g, &options);
    if (code)
        return code;
    struct sgp_edge *edges = calloc((size_t)agnedges(r->graphs[g]) + 1, sizeof *edges);
    if (!edges)
        return fail_memory(r);
    code = read_edges(r, g, phase, edges, &count);
    if (!code) {
        struct sgp_error reason = {0};
        struct sgp_edge where = {.source = SGP_NODE_NONE, .target = SGP_NODE_NONE};
        code = sgp_topology_add_where(topology, &options, edges, count, &reason, &where);
        const char *source = where.source != SGP_NODE_NONE ? r->nodes[where.source].name : NULL;
        const char *target = where.target != SGP_NODE_NONE ? r->nodes[where.target].name : NULL;
        /* of a repeated edge the second one must be removed */
        if (code)
            (void)fail_at(r, sgp_scan_line(&r->text, g, source, target, 2), code, "digraph %s: %s",
                phase, reason.text);
    }
    free(edges);
    return code;
}

/* The fleet was refused because of this node: point at the first digraph that names it. */
static int fail_fleet(struct reader *r, int code, uint32_t node, const char *reason)
{
    uint32_t line = sgp_scan_line(&r->text, 0, NULL, NULL, 1);
    for (uint32_t g = 0; g < r->graph_count && node != SGP_NODE_NONE; g++)
        if (agnode(r->graphs[g], r->nodes[node].name, 0)) {
            line = sgp_scan_line(&r->text, g, r->nodes[node].name, NULL, 1);
            break;
        }
    return fail_at(r, line, code, "%s", reason);
}

/* Report a misspelt attribute first, because errors that follow from its absence do not help the
 * author. */
static int check_attributes(struct reader *r)
{
    for (uint32_t g = 0; g < r->graph_count; g++) {
        char phase[SGP_NAME_BYTES];
        struct sgp_dot_stray stray;
        phase_name(r, g, phase);
        if (sgp_dot_check_attributes(r->graphs[g], phase, &stray) < 0)
            return fail_at(r, sgp_scan_line(&r->text, g, stray.name, NULL, 1), SGP_E_TOPOLOGY, "%s",
                stray.text);
    }
    return 0;
}

static int build(struct reader *r, struct sgp_topology **ret_topology)
{
    if (r->graph_count == 0)
        return fail_at(r, 1, SGP_E_TOPOLOGY,
            "there is no digraph; write one for each phase, as digraph p { a -> b; b -> a; }");
    int code = check_attributes(r);
    if (!code)
        code = collect_fleet(r);
    if (code)
        return code;
    struct sgp_error reason = {0};
    struct sgp_topology *topology = NULL;
    uint32_t where = SGP_NODE_NONE;
    code = sgp_topology_create_where(r->nodes, r->node_count, &reason, &where, &topology);
    if (code)
        return fail_fleet(r, code, where, reason.text);
    for (uint32_t g = 0; g < r->graph_count && !code; g++)
        code = add_phase(r, g, topology);
    if (!code) {
        struct sgp_edge_place place;
        code = sgp_topology_seal_where(topology, &reason, &place);
        if (code && place.target != SGP_NODE_NONE)
            (void)fail_at(r,
                sgp_scan_line(&r->text, place.phase, r->nodes[place.source].name,
                    r->nodes[place.target].name, 1),
                code, "%s", reason.text);
        else if (code && place.source != SGP_NODE_NONE)
            (void)fail_fleet(r, code, place.source, reason.text);
        else if (code)
            (void)fail_at(
                r, sgp_scan_line(&r->text, place.phase, NULL, NULL, 1), code, "%s", reason.text);
    }
    if (code)
        sgp_topology_destroy(topology);
    else
        *ret_topology = topology;
    return code;
}

/* Some editors begin a text with a byte order mark, which libcgraph takes for a word. */
static void skip_mark(struct sgp_scan_text *text)
{
    static const char mark[3] = {'\xef', '\xbb', '\xbf'};
    if (text->length < sizeof mark || memcmp(text->text, mark, sizeof mark) != 0)
        return;
    text->text += sizeof mark;
    text->length -= sizeof mark;
}

int sgp_dot_parse(const char *text, size_t length, const char *name, struct sgp_error *error,
    struct sgp_topology **ret_topology)
{
    struct reader r = {.text = {.name = name, .text = text, .length = length}, .error = error};
    if (length > SGP_DOT_BYTES_MAX)
        return sgp_fail(error, SGP_E_LIMIT, "%s: the file is too long; the limit is %u bytes", name,
            SGP_DOT_BYTES_MAX);
    skip_mark(&r.text);
    int code = sgp_scan_measure(&r.text, error);
    if (!code)
        code = read_graphs(&r);
    if (!code)
        code = build(&r, ret_topology);
    for (uint32_t g = 0; g < r.graph_count; g++)
        agclose(r.graphs[g]);
    if (r.fleet)
        agclose(r.fleet);
    free(r.graphs);
    free(r.nodes);
    return code;
}

/* Read a whole stream. The caller frees *ret_text. */
static int read_text(
    FILE *file, const char *name, struct sgp_error *error, char **ret_text, size_t *ret_length)
{
    size_t length = 0, capacity = 1u << 16;
    char *text = NULL;
    int code = 0;
    do {
        capacity *= 2;
        char *grown = realloc(text, capacity);
        if (!grown) {
            code = sgp_fail(error, -ENOMEM, "%s: no memory to read it", name);
            break;
        }
        text = grown;
        errno = 0;
        length += fread(text + length, 1, capacity - length, file);
        if (ferror(file)) {
            code = errno ? -errno : -EIO;
            (void)sgp_fail(error, code, "%s: %s", name, sgp_strerror(code));
        }
    } while (!code && length == capacity && length <= SGP_DOT_BYTES_MAX);
    if (code) {
        free(text);
        return code;
    }
    *ret_text = text;
    *ret_length = length;
    return 0;
}

int sgp_dot_read(
    FILE *file, const char *name, struct sgp_error *error, struct sgp_topology **ret_topology)
{
    char *text;
    size_t length;
    int code = read_text(file, name, error, &text, &length);
    if (code)
        return code;
    code = sgp_dot_parse(text, length, name, error, ret_topology);
    free(text);
    return code;
}

int sgp_dot_read_path(const char *path, struct sgp_error *error, struct sgp_topology **ret_topology)
{
    FILE *file = fopen(path, "re");
    if (!file) {
        int code = -errno;
        return sgp_fail(error, code, "%s: %s", path, sgp_strerror(code));
    }
    int code = sgp_dot_read(file, path, error, ret_topology);
    (void)fclose(file);
    return code;
}

/* The file may have changed meanwhile. Then the line may be wrong, but never beyond the end of the
 * file. */
int sgp_dot_fail(const char *path, const struct sgp_topology *topology,
    const struct sgp_edge_place *place, const struct sgp_error *why, struct sgp_error *error)
{
    struct sgp_scan_text text = {.name = path};
    char *bytes = NULL;
    FILE *file = fopen(path, "re");
    bool read = file && read_text(file, path, NULL, &bytes, &text.length) == 0;
    text.text = bytes;
    if (read)
        skip_mark(&text);
    read = read && sgp_scan_measure(&text, NULL) == 0;
    if (file)
        (void)fclose(file);
    bool edge = place->source != SGP_NODE_NONE;
    if (read)
        (void)sgp_fail(error, why->code, "%s:%u: %s", path,
            sgp_scan_line(&text, place->phase, edge ? topology->nodes[place->source].name : NULL,
                edge ? topology->nodes[place->target].name : NULL, 1),
            why->text);
    else
        (void)sgp_fail(error, why->code, "%s: %s", path, why->text);
    free(bytes);
    return why->code;
}

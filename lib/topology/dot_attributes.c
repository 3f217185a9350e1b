/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes of topology files; see dot_attributes.h.
 *
 * The functions run on the reader's thread. libcgraph declares an attribute for all graphs, all
 * nodes or all edges of a digraph. So names are checked once for each kind, not once for each
 * object. */
#include "topology/dot_attributes.h"

#include "base/text.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define GRAPH (1u << AGRAPH)
#define NODE (1u << AGNODE)
#define EDGE (1u << AGEDGE)

static const struct {
    const char *name;
    unsigned kinds; /* the kinds that have the attribute */
} ours[] = {{"address", NODE}, {"key", NODE}, {"tls", GRAPH}, {"stops", GRAPH}, {"version", GRAPH},
    {"fraction", EDGE}, {"rounds", GRAPH}, {"once", GRAPH}, {"repeat", GRAPH},
    {"train", GRAPH | NODE}, {"outer", GRAPH}, {"slices", GRAPH}, {"slice", EDGE}, {"owns", NODE},
    {"backup", GRAPH}, {"staleness", GRAPH}, {"compensation", GRAPH}, {"staleness_max", GRAPH},
    {"token", GRAPH}, {"delay_mean", GRAPH}, {"delay_max", GRAPH}, {"starts", NODE}};

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* The attribute of this kind that a name was meant to be, or NULL. A quarter of the letters may be
 * wrong, as in `tsl` and `adres`. At that distance no attribute of Graphviz of the same kind is
 * near (test_dot.c has all of them). */
static const char *meant(const char *name, int kind)
{
    const char *nearest = NULL;
    unsigned best = SGP_WORD_BYTES;
    for (size_t i = 0; i < COUNT(ours); i++) {
        unsigned distance = sgp_text_distance(name, ours[i].name);
        bool near = distance <= ((unsigned)strlen(ours[i].name) + 1) / 4;
        if (near && distance < best && ours[i].kinds & (1u << kind)) {
            best = distance;
            nearest = ours[i].name;
        }
    }
    return nearest;
}

/* The kinds that have this attribute; 0: it is not an attribute of sgp. */
static unsigned kinds_of(const char *name)
{
    for (size_t i = 0; i < COUNT(ours); i++)
        if (strcmp(ours[i].name, name) == 0)
            return ours[i].kinds;
    return 0;
}

/* ---- who says it ---- */

static bool says(void *object, Agsym_t *symbol)
{
    return strcmp(agxget(object, symbol), symbol->defval) != 0;
}

/* The first object that sets the attribute itself. Otherwise it is set for all objects of the
 * kind. */
static void name_sayer(
    Agraph_t *graph, const char *phase, int kind, Agsym_t *symbol, char *text, size_t size)
{
    if (kind == AGRAPH)
        (void)snprintf(text, size, "digraph %s", phase);
    else
        (void)snprintf(text, size, kind == AGNODE ? "nodes" : "edges");
    for (Agnode_t *n = agfstnode(graph); n && kind != AGRAPH; n = agnxtnode(graph, n)) {
        if (kind == AGNODE && says(n, symbol)) {
            (void)snprintf(text, size, "node %.64s", agnameof(n));
            return;
        }
        for (Agedge_t *e = agfstout(graph, n); e && kind == AGEDGE; e = agnxtout(graph, e))
            if (says(e, symbol)) {
                (void)snprintf(
                    text, size, "edge %.64s -> %.64s", agnameof(agtail(e)), agnameof(aghead(e)));
                return;
            }
    }
}

/* ---- messages ---- */

static const char *article(unsigned kinds)
{
    return kinds == (GRAPH | NODE) ? "a digraph or a node"
           : kinds == GRAPH        ? "a digraph"
           : kinds == NODE         ? "a node"
                                   : "an edge";
}

static int check_name(
    Agraph_t *graph, const char *phase, int kind, Agsym_t *symbol, struct sgp_dot_stray *ret_stray)
{
    char sayer[2 * 64 + 16];
    const char *name = symbol->name;
    unsigned kinds = kinds_of(name);
    bool parallel = kind == AGEDGE && strcmp(name, "key") == 0; /* Graphviz uses it for edges */
    const char *near = kinds & (1u << kind) || parallel ? NULL : meant(name, kind);
    if (kinds & (1u << kind) || parallel || (!kinds && !near))
        return 0;
    ret_stray->name = name;
    name_sayer(graph, phase, kind, symbol, sayer, sizeof sayer);
    if (near)
        (void)snprintf(ret_stray->text, sizeof ret_stray->text,
            "%s: unknown attribute %.40s; did you mean %s?", sayer, name, near);
    else
        (void)snprintf(ret_stray->text, sizeof ret_stray->text, "%s: %s is said of %s, not of %s",
            sayer, name, article(kinds), article(1u << kind));
    return SGP_E_TOPOLOGY;
}

/* A subgraph is a part of a digraph, but attributes of sgp apply to the whole digraph. */
static int check_subgraphs(Agraph_t *graph, Agsym_t *symbol, struct sgp_dot_stray *ret_stray)
{
    for (Agraph_t *part = agfstsubg(graph); part; part = agnxtsubg(part)) {
        const char *name = agnameof(part);
        bool named = name && *name && *name != '%';
        const char *value = agxget(part, symbol);
        if (*value && strcmp(value, agxget(agroot(graph), symbol)) != 0) {
            ret_stray->name = symbol->name;
            (void)snprintf(ret_stray->text, sizeof ret_stray->text,
                "%s%.64s: %s is said of a digraph, not of a part of it; write it before the "
                "subgraph",
                named ? "subgraph " : "a subgraph", named ? name : "", symbol->name);
            return SGP_E_TOPOLOGY;
        }
        int code = check_subgraphs(part, symbol, ret_stray);
        if (code)
            return code;
    }
    return 0;
}

int sgp_dot_check_attributes(Agraph_t *graph, const char *phase, struct sgp_dot_stray *ret_stray)
{
    static const int kinds[] = {AGRAPH, AGNODE, AGEDGE};
    int code = 0;
    for (size_t k = 0; k < COUNT(kinds) && !code; k++)
        for (Agsym_t *symbol = agnxtattr(graph, kinds[k], NULL); symbol && !code;
             symbol = agnxtattr(graph, kinds[k], symbol)) {
            code = check_name(graph, phase, kinds[k], symbol, ret_stray);
            if (!code && kinds[k] == AGRAPH && kinds_of(symbol->name) & GRAPH)
                code = check_subgraphs(graph, symbol, ret_stray);
        }
    return code;
}

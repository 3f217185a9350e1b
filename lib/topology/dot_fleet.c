/* SPDX-License-Identifier: Apache-2.0 */
/* The nodes of a topology file: what each digraph says of each of them, which must agree. */
#include "topology/dot_reader.h"
#include "topology/key.h"

#include <stdlib.h>
#include <string.h>

struct member {
    Agrec_t record;
    uint32_t index;
};

uint32_t sgp_dot_member(Agnode_t *known)
{
    return ((struct member *)AGDATA(known))->index;
}

static int read_address(
    struct sgp_dot_reader *r, uint32_t g, Agnode_t *node, struct sgp_topology_node *entry)
{
    const char *address = sgp_dot_attribute(r->graphs[g], AGNODE, node, "address");
    char host[SGP_ADDRESS_BYTES];
    struct sgp_error reason = {0};
    uint16_t port;
    if (!*address || strcmp(address, SGP_ADDRESS_NONE) == 0) {
        (void)snprintf(entry->address, sizeof entry->address, "%s", address);
        return 0;
    }
    int code = sgp_address_split(address, &reason, host, &port);
    if (code)
        return sgp_dot_fail_at(
            r, sgp_dot_line_of(r, g, entry->name), code, "node %s: %s", entry->name, reason.text);
    int length = snprintf(
        entry->address, sizeof entry->address, strchr(host, ':') ? "[%s]:%u" : "%s:%u", host, port);
    if ((size_t)length >= sizeof entry->address)
        return sgp_dot_fail_at(r, sgp_dot_line_of(r, g, entry->name), SGP_E_TOPOLOGY,
            "node %s: its address is too long", entry->name);
    return 0;
}

static int read_keys(
    struct sgp_dot_reader *r, uint32_t g, Agnode_t *node, struct sgp_topology_node *entry)
{
    const char *text = sgp_dot_attribute(r->graphs[g], AGNODE, node, "key");
    struct sgp_error reason = {0};
    int code = *text ? sgp_keys_parse(text, &reason, entry->keys) : 0;
    return code ? sgp_dot_fail_at(r, sgp_dot_line_of(r, g, entry->name), code, "node %s: %s",
                      entry->name, reason.text)
                : 0;
}

/* What a digraph says about a node; `entry` has the usual values. */
static int read_member(
    struct sgp_dot_reader *r, uint32_t g, Agnode_t *node, struct sgp_topology_node *entry)
{
    char *name = agnameof(node);
    bool trains = true;
    if (strlen(name) >= SGP_NAME_BYTES)
        return sgp_dot_fail_at(r, sgp_dot_line_of(r, g, name), SGP_E_TOPOLOGY,
            "node name \"%.20s...\" is too long; it may have %u bytes", name, SGP_NAME_BYTES - 1);
    (void)snprintf(entry->name, sizeof entry->name, "%s", name);
    int code = read_address(r, g, node, entry);
    if (code == 0)
        code = read_keys(r, g, node, entry);
    if (code == 0)
        code = sgp_dot_read_truth(r, g, name, AGNODE, node, "train", true, &trains);
    if (code < 0)
        return code;
    entry->relay = !trains;
    const char *starts = sgp_dot_attribute(r->graphs[g], AGNODE, node, "starts");
    bool empty = strcmp(starts, "0") == 0, whole = strcmp(starts, "1") == 0;
    if (*starts && !empty && !whole)
        return sgp_dot_fail_at(r, sgp_dot_line_of(r, g, name), SGP_E_TOPOLOGY,
            "node %s: starts=\"%.40s\" is no weight to start with; write starts=0 or starts=1",
            name, starts);
    const char *owns = sgp_dot_attribute(r->graphs[g], AGNODE, node, "owns");
    entry->owns = strcmp(owns, "all") == 0 ||
                  sgp_dot_parse_parts(owns, &entry->own_part, &entry->own_part_count);
    if (*owns && !entry->owns)
        return sgp_dot_fail_at(r, sgp_dot_line_of(r, g, name), SGP_E_TOPOLOGY,
            "node %s: owns=\"%.40s\" names no parts; write owns=all for the whole vector, a part "
            "as "
            "owns=0, or a range as owns=\"0-3\"; at most %u parts",
            name, owns, SGP_SLICES_MAX);
    entry->starts = empty ? SGP_STARTS_EMPTY : whole ? SGP_STARTS_WHOLE : SGP_STARTS_USUAL;
    return 0;
}

/* A later digraph may repeat what an earlier one said, or say nothing. */
static int compare_member(struct sgp_dot_reader *r, uint32_t g,
    const struct sgp_topology_node *known, const struct sgp_topology_node *entry)
{
    if (strcmp(known->address, entry->address) != 0)
        return sgp_dot_fail_at(r, sgp_dot_line_of(r, g, entry->name), SGP_E_TOPOLOGY,
            "node %s has the address %s here and %s before; give it once", entry->name,
            entry->address, known->address);
    bool relays = entry->relay && !known->relay;
    bool keys = entry->keys[0][0] && memcmp(entry->keys, known->keys, sizeof entry->keys) != 0;
    bool starts = entry->starts != SGP_STARTS_USUAL && entry->starts != known->starts;
    bool owns = entry->owns && (!known->owns || entry->own_part != known->own_part ||
                                   entry->own_part_count != known->own_part_count);
    if (relays || starts || owns || keys)
        return sgp_dot_fail_at(r, sgp_dot_line_of(r, g, entry->name), SGP_E_TOPOLOGY,
            "node %s: %s is not what the digraph says in which the node comes first; say it there",
            entry->name,
            relays   ? "train=false"
            : starts ? "starts"
            : owns   ? "owns"
                     : "key");
    return 0;
}

static int add_member(struct sgp_dot_reader *r, uint32_t g, Agnode_t *node)
{
    struct sgp_topology_node entry = {.starts = SGP_STARTS_USUAL};
    int code = read_member(r, g, node, &entry);
    if (code < 0)
        return code;
    char *name = agnameof(node);
    Agnode_t *known = agnode(r->fleet, name, 0);
    if (known)
        return compare_member(r, g, &r->nodes[sgp_dot_member(known)], &entry);
    if (r->node_count == SGP_NODES_MAX)
        return sgp_dot_fail_at(r, sgp_dot_line_of(r, g, name), SGP_E_LIMIT,
            "there are too many nodes; the limit is %u", SGP_NODES_MAX);
    static char record[] = "member";
    known = agnode(r->fleet, name, 1);
    struct member *member = agbindrec(known, record, sizeof *member, 1);
    member->index = r->node_count;
    r->nodes[r->node_count++] = entry;
    return 0;
}

/* Whether any node has an address, and an upper bound of the fleet's size. */
static uint64_t survey(struct sgp_dot_reader *r)
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
static int check_elsewhere(struct sgp_dot_reader *r)
{
    for (uint32_t g = 0; g < r->graph_count; g++)
        for (Agnode_t *n = agfstnode(r->graphs[g]); n; n = agnxtnode(r->graphs[g], n)) {
            Agnode_t *known = agnode(r->fleet, agnameof(n), 0);
            struct sgp_topology_node entry = {.starts = SGP_STARTS_USUAL}, *first;
            int code = known ? read_member(r, g, n, &entry) : 0;
            if (!known || code < 0) {
                if (code < 0)
                    return code;
                continue;
            }
            first = &r->nodes[sgp_dot_member(known)];
            if (!entry.address[0])
                memcpy(entry.address, first->address, sizeof entry.address);
            code = compare_member(r, g, first, &entry);
            if (code < 0)
                return code;
        }
    return 0;
}

int sgp_dot_collect_fleet(struct sgp_dot_reader *r)
{
    static char name[] = "fleet";
    r->fleet = agopen(name, Agdirected, NULL);
    r->nodes = calloc((size_t)survey(r) + 1, sizeof *r->nodes);
    if (!r->fleet || !r->nodes)
        return sgp_dot_fail_memory(r);
    uint32_t graphs = r->addressed ? r->graph_count : 1;
    for (uint32_t g = 0; g < graphs; g++)
        for (Agnode_t *n = agfstnode(r->graphs[g]); n; n = agnxtnode(r->graphs[g], n)) {
            const char *address = sgp_dot_attribute(r->graphs[g], AGNODE, n, "address");
            if (r->addressed && !*address)
                continue;
            int code = add_member(r, g, n);
            if (code)
                return code;
        }
    return check_elsewhere(r);
}

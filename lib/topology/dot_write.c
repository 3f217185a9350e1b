/* SPDX-License-Identifier: Apache-2.0 */
/* Topology to DOT. This needs no libcgraph, because every name that a topology accepts is safe
 * within quotes. If the stream fails, the result at the end is -errno. */
#include "sgp/dot.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define SGP_DOT_DIVISOR_MAX 1000u /* fractions a/b with b up to this limit are written as such */

static void write_comment(FILE *file, const char *comment)
{
    while (comment && *comment) {
        int length = (int)strcspn(comment, "\n");
        (void)fprintf(file, length ? "// %.*s\n" : "//%.*s\n", length, comment);
        comment += length;
        comment += *comment == '\n';
    }
}

/* A name may be a word of DOT (node, edge, 4.2.1). Quotes are always safe, but plain names are
 * easier to read. */
static void write_name(FILE *file, const char *name)
{
    static const char *const reserved[] = {
        "node", "edge", "graph", "digraph", "subgraph", "strict"};
    bool plain = !(name[0] >= '0' && name[0] <= '9') && !strpbrk(name, "-.");
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
        plain = plain && strcasecmp(name, reserved[i]) != 0;
    (void)fprintf(file, plain ? "%s" : "\"%s\"", name);
}

/* The shortest text that reads back to the same bits: a/b if there is one, otherwise 17 digits. */
static void write_fraction(FILE *file, double fraction)
{
    (void)fputs("fraction=", file);
    if (fraction >= 1) {
        (void)fputc('1', file);
        return;
    }
    for (uint32_t divisor = 1; divisor <= SGP_DOT_DIVISOR_MAX; divisor++) {
        double dividend = (double)(uint32_t)(fraction * divisor + 0.5);
        if (dividend / divisor == fraction) {
            (void)fprintf(file, "\"%.0f/%u\"", dividend, divisor);
            return;
        }
    }
    (void)fprintf(file, "\"%.17g\"", fraction);
}

static void write_parts(FILE *file, const char *name, uint32_t part, uint32_t count)
{
    if (count == 1)
        (void)fprintf(file, "%s=%u", name, part);
    else
        (void)fprintf(file, "%s=\"%u-%u\"", name, part, part + count - 1u);
}

/* The file does not give the part of an owner's edges. */
static void write_attributes(
    FILE *file, const struct sgp_edge *edge, uint32_t outdegree, bool owned)
{
    bool parts = edge->part_count > 0 && !owned;
    bool fraction = edge->fraction != 1.0 / (1.0 + (double)outdegree);
    if (!parts && !fraction)
        return;
    (void)fputs(" [", file);
    if (parts)
        write_parts(file, "slice", edge->part, edge->part_count);
    if (parts && fraction)
        (void)fputs(", ", file);
    if (fraction)
        write_fraction(file, edge->fraction);
    (void)fputc(']', file);
}

/* An edge of the file between two owners that train stands for two edges, for updates and for
 * copies. Within each such owner there are two edges as well. */
static bool is_implied(const struct sgp_topology *topology, const struct sgp_edge *edge)
{
    uint32_t source = sgp_topology_machine(topology, edge->source);
    uint32_t target = sgp_topology_machine(topology, edge->target);
    bool twice = topology->nodes[edge->source].colocated &&
                 sgp_topology_colocated_owner(topology, edge->target) != SGP_NODE_NONE;
    return source == target || twice;
}

static void write_edges(
    FILE *file, const struct sgp_topology *topology, const struct sgp_phase *phase)
{
    for (uint32_t i = 0; i < topology->node_count; i++) {
        uint32_t count;
        const struct sgp_edge *out = sgp_phase_out(phase, i, &count);
        for (uint32_t e = 0; e < count; e++) {
            if (is_implied(topology, &out[e]))
                continue;
            uint32_t target = sgp_topology_machine(topology, out[e].target);
            (void)fputs("  ", file);
            write_name(file, topology->nodes[sgp_topology_machine(topology, i)].name);
            (void)fputs(" -> ", file);
            write_name(file, topology->nodes[target].name);
            write_attributes(file, &out[e], count, topology->owner != SGP_NODE_NONE);
            (void)fputs(";\n", file);
        }
    }
}

/* What a node owns, and its address, may belong to its co-located owner. */
static void write_node(FILE *file, const struct sgp_topology *topology, uint32_t index)
{
    const struct sgp_topology_node *node = &topology->nodes[index];
    uint32_t colocated = sgp_topology_colocated_owner(topology, index);
    const struct sgp_topology_node *owner =
        colocated != SGP_NODE_NONE ? &topology->nodes[colocated] : node;
    const char *mark = " [";
    (void)fputs("  ", file);
    write_name(file, node->name);
    if (owner->address[0]) {
        (void)fprintf(file, "%saddress=\"%s\"", mark, owner->address);
        mark = ", ";
    }
    if (node->keys[0][0]) {
        (void)fprintf(file, "%skey=\"%s%s%s\"", mark, node->keys[0], node->keys[1][0] ? " " : "",
            node->keys[1]);
        mark = ", ";
    }
    if (node->relay) {
        (void)fprintf(file, "%strain=false", mark);
        mark = ", ";
    }
    if (owner->owns) {
        (void)fputs(mark, file);
        if (owner->own_part_count > 0)
            write_parts(file, "owns", owner->own_part, owner->own_part_count);
        else
            (void)fputs("owns=all", file);
        mark = ", ";
    }
    if (node->starts != SGP_STARTS_USUAL) {
        (void)fprintf(file, "%sstarts=%d", mark, node->starts == SGP_STARTS_WHOLE);
        mark = ", ";
    }
    (void)fputs(*mark == ',' ? "];\n" : ";\n", file);
}

/* Writes as few digits as read back to the same bits. */
static void write_number(FILE *file, const char *name, double value)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%.15g", value);
    if (strtod(text, NULL) != value)
        (void)snprintf(text, sizeof text, "%.17g", value);
    (void)fprintf(file, "  %s=\"%s\";\n", name, text);
}

/* Writes only what differs from the defaults. */
static void write_options(
    FILE *file, const struct sgp_topology *topology, const struct sgp_phase *phase)
{
    bool parts = false;
    for (uint32_t e = 0; e < phase->edge_count; e++)
        parts = parts || phase->out[e].part_count > 0;
    if (parts)
        (void)fprintf(file, "  slices=%u;\n", topology->slices);
    if (phase == topology->phases && topology->tls > SGP_TLS_OFF)
        (void)fprintf(file, "  tls=%s;\n", sgp_tls_name(topology->tls));
    if (phase == topology->phases && topology->stops > 1)
        (void)fprintf(file, "  stops=%u;\n", topology->stops);
    if (phase == topology->phases && topology->version > 0)
        (void)fprintf(file, "  version=%" PRIu64 ";\n", topology->version);
    if (phase->rounds != 1)
        (void)fprintf(file, "  rounds=%u;\n", phase->rounds);
    if (phase->once)
        (void)fputs("  once=true;\n", file);
    if (phase->once && topology->repeat > 1)
        (void)fprintf(file, "  repeat=%u;\n", topology->repeat);
    if (phase->exchanges)
        (void)fputs("  train=false;\n", file);
    if (phase->backup > 0)
        (void)fprintf(file, "  backup=%u;\n", phase->backup);
    if (phase->staleness.damping != SGP_DAMPING_NONE)
        (void)fprintf(file, "  staleness=%s;\n", sgp_damping_name(phase->staleness.damping));
    if (phase->staleness.compensation > 0)
        write_number(file, "compensation", phase->staleness.compensation);
    if (phase->staleness.most > 0)
        (void)fprintf(file, "  staleness_max=%u;\n", phase->staleness.most);
    if (phase->delay.token != SGP_TOKEN_NONE)
        (void)fprintf(file, "  token=%s;\n", sgp_token_name(phase->delay.token));
    if (phase->delay.mean)
        (void)fputs("  delay_mean=true;\n", file);
    if (phase->delay.most > 0)
        (void)fprintf(file, "  delay_max=%u;\n", phase->delay.most);
    if (phase->outer)
        (void)fputs("  outer=true;\n", file);
}

int sgp_dot_write(FILE *file, const struct sgp_topology *topology, const char *comment)
{
    errno = 0;
    write_comment(file, comment);
    for (uint32_t p = 0; p < topology->phase_count; p++) {
        const struct sgp_phase *phase = &topology->phases[p];
        (void)fputs("digraph ", file);
        write_name(file, phase->name);
        (void)fputs(" {\n", file);
        write_options(file, topology, phase);
        for (uint32_t i = 0; p == 0 && i < topology->node_count; i++)
            if (!topology->nodes[i].colocated)
                write_node(file, topology, i);
        write_edges(file, topology, phase);
        (void)fputs("}\n", file);
    }
    if (!ferror(file))
        return 0;
    return errno ? -errno : -EIO;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* `sgpctl topology show`: a topology file for people, who gives how much to whom. */
#include "ctl.h"
#include "topology.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static void print_token(const struct sgp_topology *topology, const struct sgp_phase *phase)
{
    bool fixed = phase->delay.token == SGP_TOKEN_FIXED;
    (void)printf("  owning is a token, which begins at %s and goes to the next that is %s\n",
        topology->nodes[topology->owner].name, fixed ? "there" : "ready");
    (void)printf("  a node waits after %u update%s without the token",
        sgp_topology_delay_most(topology), sgp_topology_delay_most(topology) == 1 ? "" : "s");
    (void)puts(phase->delay.mean ? ", and adds their mean" : "");
}

static void print_owner(const struct sgp_topology_node *node)
{
    uint32_t last = node->own_part + node->own_part_count - 1u;
    if (!node->owns)
        return;
    if (node->own_part_count == 0)
        (void)printf("  %s owns the vector\n", node->name);
    else if (node->own_part_count == 1)
        (void)printf("  %s owns part %u\n", node->name, last);
    else
        (void)printf("  %s owns parts %u-%u\n", node->name, node->own_part, last);
}

static void print_owned(const struct sgp_topology *topology, const struct sgp_phase *phase)
{
    if (phase->delay.token != SGP_TOKEN_NONE) {
        print_token(topology, phase);
        return;
    }
    for (uint32_t i = 0; i < topology->node_count; i++)
        print_owner(&topology->nodes[i]);
    (void)puts("  the others push their updates, and take copies");
    if (phase->backup > 0)
        (void)printf("  a step waits for all but %u of %u workers\n", phase->backup,
            sgp_topology_trainers(topology));
    if (phase->staleness.damping == SGP_DAMPING_DIVIDE)
        (void)puts("  a late update is divided by its staleness");
    if (phase->staleness.damping == SGP_DAMPING_COMPENSATE)
        (void)printf("  a late update is compensated by %g\n", phase->staleness.compensation);
    if (phase->staleness.most > 0)
        (void)printf(
            "  no worker is more than %u updates ahead of the slowest\n", phase->staleness.most);
}

/* Print 1/3 instead of 0.333333 if the fraction is exactly that. */
static void print_fraction(double fraction)
{
    for (int denominator = 1; denominator <= 64; denominator++) {
        double numerator = nearbyint(fraction * denominator);
        if (numerator >= 1 && fabs(fraction * denominator - numerator) < 1e-12) {
            (void)printf(denominator == 1 ? "%.0f" : "%.0f/%d", numerator, denominator);
            return;
        }
    }
    (void)printf("%.6g", fraction);
}

static void print_parts(const struct sgp_edge *edge)
{
    uint32_t last = edge->part + edge->part_count - 1u;
    if (edge->part_count == 1)
        (void)printf(" of part %u", last);
    else
        (void)printf(" of parts %u-%u", edge->part, last);
}

static void print_node(
    const struct sgp_topology *topology, const struct sgp_phase *phase, uint32_t node, int width)
{
    uint32_t count;
    const struct sgp_edge *edges = sgp_phase_out(phase, node, &count);
    double keeps = 1;
    bool parts = false;
    (void)printf("  %-*s ->", width, topology->nodes[node].name);
    for (uint32_t e = 0; e < count; e++) {
        (void)printf("%s %s ", e > 0 ? "," : "", topology->nodes[edges[e].target].name);
        print_fraction(edges[e].fraction);
        if (edges[e].part_count > 0)
            print_parts(&edges[e]);
        keeps -= edges[e].fraction;
        parts = parts || edges[e].part_count > 0;
    }
    (void)fputs(count > 0 ? "" : " nobody", stdout);
    if (!parts) {
        (void)fputs(", keeps ", stdout);
        print_fraction(keeps < 1e-12 ? 0 : keeps);
    }
    (void)putchar('\n');
}

static void print_topology(const struct sgp_topology *topology)
{
    int width = 0;
    (void)printf("%u node%s, %u phase%s, %" PRId64 " round%s a cycle%s\n", topology->node_count,
        topology->node_count == 1 ? "" : "s", topology->phase_count,
        topology->phase_count == 1 ? "" : "s", topology->rounds_per_cycle,
        topology->rounds_per_cycle == 1 ? "" : "s",
        topology->cycle.exact ? ", which averages exactly" : "");
    if (topology->version > 0)
        (void)printf("version %" PRIu64 "\n", topology->version);
    if (topology->repeat > 1)
        (void)printf(
            "first %u passes of %" PRId64 " rounds\n", topology->repeat, topology->prelude.rounds);
    for (uint32_t i = 0; i < topology->node_count; i++) {
        const struct sgp_topology_node *node = &topology->nodes[i];
        if ((int)strlen(node->name) > width)
            width = (int)strlen(node->name);
        uint32_t owner = sgp_topology_colocated_owner(topology, i);
        if (owner != SGP_NODE_NONE)
            (void)printf("  %s trains, and owns as %s\n", node->name, topology->nodes[owner].name);
        else if (node->address[0] != '\0')
            (void)printf(
                sgp_topology_is_dialled(topology, i) ? "  %s at %s\n" : "  %s cannot be dialled\n",
                node->name, node->address);
        if (node->keys[0][0] != '\0') {
            char keys[SGP_KEYS_BYTES];
            sgp_topology_keys_text(topology, i, keys);
            (void)printf("  %s has the key %s\n", node->name, keys);
        }
        if (node->relay || node->starts != SGP_STARTS_USUAL)
            (void)printf("  %s %s, starts with weight %g\n", node->name,
                node->relay ? "is a relay" : "trains", sgp_topology_starts(topology, i));
    }
    if (topology->tls != SGP_TLS_OFF)
        (void)printf(
            "links are ciphered%s\n", topology->tls == SGP_TLS_OFFER ? " with peers that can" : "");
    if (topology->stops > 1)
        (void)printf("a word on the end counts when %u nodes have signed it\n", topology->stops);
    if (topology->slices > 1)
        (void)printf("the vector is cut into %u parts\n", topology->slices);
    for (uint32_t p = 0; p < topology->phase_count; p++) {
        const struct sgp_phase *phase = &topology->phases[p];
        (void)printf("phase %u '%s', %u round%s%s%s%s\n", p, phase->name, phase->rounds,
            phase->rounds == 1 ? "" : "s",
            phase->once
                ? topology->repeat > 1 ? ", in the first passes" : ", in the first pass only"
                : "",
            phase->exchanges ? ", without training" : "",
            phase->outer ? ", and an outer step at its end" : "");
        if (topology->owner != SGP_NODE_NONE)
            print_owned(topology, phase);
        for (uint32_t i = 0; i < topology->node_count && topology->owner == SGP_NODE_NONE; i++)
            print_node(topology, phase, i, width);
    }
}

static const struct ctl_option show_options[] = {
    {"--address", .value = "HOST:PORT+",
        .summary = "print the file itself, with node i at HOST:(PORT + i)"},
    {0},
};

static enum ctl_exit show(struct ctl *ctl, int argc, char **argv)
{
    struct ctl_given address = {0};
    struct sgp_topology *topology;
    struct sgp_error error = {0};
    enum ctl_exit status = ctl_options_take(ctl, &argc, argv, &address, 1, 1, 1);
    if (status == CTL_DONE)
        status = ctl_read_topology(ctl, argv[0], &topology);
    if (status != CTL_DONE)
        return status;
    if (address.given && sgp_topology_place(topology, address.value, &error) < 0)
        status = ctl_usage(ctl, "%s", error.text);
    else if (ctl->json)
        status = ctl_print_json(ctl_topology_json(topology));
    else if (address.given)
        status = ctl_topology_print_file(ctl, topology, NULL);
    else
        print_topology(topology);
    sgp_topology_destroy(topology);
    return status;
}

const struct ctl_command ctl_topology_show_command = {.words = "topology show",
    .operands = "FILE",
    .options = show_options,
    .summary = "print who gives how much to whom, phase by phase",
    .help = "FILE may be `-` for standard input. No daemon is needed.\n",
    .run = show};

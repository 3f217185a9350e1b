/* SPDX-License-Identifier: Apache-2.0 */
/* Publishing: the jobs that make a snapshot of what is given, and what they leave of x.
 *
 * If all of x is published, the vector itself becomes the snapshot (sgp/trainer.h). In an exact
 * cycle that is so only in its first round. Later the parts that are given are copied, and adjacent
 * parts that keep the same fraction are copied together.
 *
 * The rules: docs/rules/mass.md, docs/rules/cycle.md */
#include "core/core.h"

static enum sgp_publish purpose_of(const struct sgp_node *node)
{
    if (!node->role->gives_updates)
        return SGP_PUBLISH_SHARES;
    return node->giving.count > 0 ? SGP_PUBLISH_UPDATE : SGP_PUBLISH_NOTHING;
}

/* Emit a job that makes the snapshot of a range of x. The node keeps the fraction `keep`. If the
 * range has all values, x is `keep` times the snapshot. */
static void copy_out(struct sgp_node *node, uint32_t slot, double keep, struct sgp_slice slice)
{
    struct sgp_effect *effect = sgp_core_emit(node, SGP_EFFECT_PUBLISH);
    effect->publish.slot = slot;
    effect->publish.keep = keep;
    effect->publish.purpose = purpose_of(node);
    bool updates = node->role->gives_updates; /* the coding of an update is chosen afterwards */
    effect->publish.compressor = updates ? SGP_COMPRESSOR_NONE : node->giving.compressor;
    effect->publish.slice = slice;
    node->giving.jobs++;
    node->folding.changed = true;
    node->folding.snapshot = slice.count == node->config.parameters ? slot : SGP_SLOT_NONE;
    node->folding.keep = keep;
    node->folding.compressor = effect->publish.compressor;
}

/* Emit a job for each target. In its range of an update the snapshot becomes what the coding
 * represents. The rest is kept as the residual. A target that is passed over has no job, and its
 * residual stays. */
static void choose_ranges(struct sgp_node *node, uint32_t slot)
{
    bool chooses = node->role->gives_updates && node->config.compressor != SGP_COMPRESSOR_NONE;
    for (uint32_t i = 0; chooses && i < node->giving.count; i++) {
        const struct sgp_outgoing *outgoing = &node->layout.outgoing[i];
        if (outgoing->slice.count == 0)
            continue;
        struct sgp_effect *effect = sgp_core_emit(node, SGP_EFFECT_PUBLISH);
        effect->publish.slot = slot;
        effect->publish.purpose = SGP_PUBLISH_CHOSEN;
        effect->publish.compressor = outgoing->compressor;
        effect->publish.slice = outgoing->slice;
        node->giving.jobs++;
    }
}

/* The part that the node keeps is computed from the float32 fractions that the targets use. So the
 * numerators of a column add up as the weights do. */
void sgp_core_publish(struct sgp_node *node, double part, double fractions, uint32_t slot)
{
    double given = 0, keep = 1;
    for (uint32_t i = 0; i < node->giving.count; i++) {
        double fraction = part * node->layout.outgoing[i].fraction;
        given += fraction * node->mass.weight;
        keep -= (double)(float)fraction;
    }
    bool all = part * fractions >= 1 - 1e-12 || node->role->gives_updates;
    node->layout.snapshot_users[slot]++;
    node->giving.slot = slot;
    node->giving.jobs = 0;
    copy_out(node, slot, all ? 0 : keep, sgp_core_all(node));
    choose_ranges(node, slot);
    sgp_mass_post(node, SGP_MASS_GIVE, given);
    if (all) /* rounding must not leave a tiny weight without mass */
        sgp_mass_set(node, 0);
}

/* How much of each part the node keeps, computed from the float32 fractions that the targets
 * use. */
static void keep_of_parts(const struct sgp_node *node, double keeps[SGP_SLICES_MAX])
{
    uint32_t slices = node->config.topology->slices;
    double given[SGP_SLICES_MAX] = {0};
    for (uint32_t q = 0; q < slices; q++)
        keeps[q] = 1;
    for (uint32_t i = 0; i < node->giving.count; i++) {
        const struct sgp_edge *edge = node->layout.outgoing[i].edge;
        uint32_t end = edge->part_count > 0 ? edge->part + (uint32_t)edge->part_count : slices;
        for (uint32_t q = edge->part; q < end; q++) {
            given[q] += edge->fraction;
            keeps[q] -= (double)(float)edge->fraction;
        }
    }
    for (uint32_t q = 0; q < slices; q++)
        keeps[q] = given[q] >= 1 - SGP_FRACTION_SLACK ? 0 : keeps[q];
}

/* The end of the run of parts, from `first` on, of which the node keeps the same fraction. */
static uint32_t run_of_parts(const struct sgp_node *node, const double *keeps, uint32_t first)
{
    uint32_t end = first + 1;
    while (end < node->config.topology->slices && (float)keeps[end] == (float)keeps[first])
        end++;
    return end;
}

/* Publish the parts of which the node gives something. */
static void publish_given(struct sgp_node *node, uint32_t slot, const double *keeps)
{
    const struct sgp_topology *topology = node->config.topology;
    for (uint32_t q = 0, end; q < topology->slices; q = end) {
        end = run_of_parts(node, keeps, q);
        struct sgp_slice slice = sgp_topology_parts(topology, q, end - q, node->config.parameters);
        if (keeps[q] < 1 && slice.count > 0)
            copy_out(node, slot, keeps[q], slice);
    }
}

/* In the first round of an exact cycle x becomes the snapshot: the vector with which the node
 * entered. If the node keeps the same fraction of all parts, that is all. Otherwise each part that
 * it gives is scaled afterwards. If the shares are coded, the part is published once more instead,
 * because what the coding leaves out stays in x. */
static void publish_entry(struct sgp_node *node, uint32_t slot, const double *keeps)
{
    const struct sgp_topology *topology = node->config.topology;
    enum sgp_compressor compressor = node->giving.compressor;
    bool alike = true;
    for (uint32_t q = 1; q < topology->slices; q++)
        alike = alike && (float)keeps[q] == (float)keeps[0];
    node->giving.compressor = alike ? compressor : SGP_COMPRESSOR_NONE;
    copy_out(node, slot, alike ? keeps[0] : 1, sgp_core_all(node));
    node->giving.compressor = compressor;
    if (!alike && compressor != SGP_COMPRESSOR_NONE) {
        publish_given(node, slot, keeps);
        return;
    }
    for (uint32_t q = 0, end; !alike && q < topology->slices; q = end) {
        end = run_of_parts(node, keeps, q);
        struct sgp_slice slice = sgp_topology_parts(topology, q, end - q, node->config.parameters);
        if (keeps[q] >= 1 || slice.count == 0)
            continue;
        sgp_core_scale(node, (double)(float)keeps[q], slice);
    }
}

void sgp_core_publish_parts(struct sgp_node *node, uint32_t slot)
{
    const struct sgp_topology *topology = node->config.topology;
    bool opens = sgp_topology_opens(topology, node->round);
    double keeps[SGP_SLICES_MAX] = {0};
    keep_of_parts(node, keeps);
    node->giving.jobs = 0;
    if (opens)
        publish_entry(node, slot, keeps);
    else
        publish_given(node, slot, keeps);
    if (node->giving.jobs > 0) {
        node->layout.snapshot_users[slot]++;
        node->giving.slot = slot;
    }
    bool enters = opens && !sgp_core_is_relay(node);
    if (opens)
        sgp_core_enter_cycle(node, enters ? slot : SGP_SLOT_NONE);
}

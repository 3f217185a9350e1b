/* SPDX-License-Identifier: Apache-2.0 */
/* What a seed means: a fleet, faults, and how shares are coded; and one line that tells it. */
#include "draw.h"

#include "sgp/guard.h"
#include "sgp/quadratic.h"

#include <stdio.h>

#define STREAM_CAMPAIGN ((uint64_t)6 << 32)

/* ---- compression ---- */

/* Where messages are lost, a connection breaks every few seconds, and a share of it begins again. So all values
 * take a second at most, or no share of them would ever arrive. */
static void suit_bandwidth(struct campaign *campaign)
{
    struct sgp_sim_options *options = &campaign->options;
    if (options->bandwidth > 0 && options->loss > 0)
        options->bandwidth = fmax(options->bandwidth, 4.0 * (double)options->dimension);
}

static void code(struct campaign *campaign, const char *word, struct sgp_chooser *chooser)
{
    int code = sgp_chooser_parse(word, SGP_CHOOSER_WORDS, NULL, chooser);
    sgp_assert(code == 0);
    bool coded = campaign->options.chooser.compressor != SGP_COMPRESSOR_NONE ||
                 campaign->options.copies.compressor != SGP_COMPRESSOR_NONE;
    uint32_t parts = campaign->exact ? campaign->topology->slices : 1;
    bool wide = parts > 1 && parts <= CAMPAIGN_PARTS_MAX;
    campaign->options.dimension = !coded ? CAMPAIGN_DIMENSION
                                  : wide ? parts * SGP_PART_BLOCKED_LEAST + 100
                                         : CAMPAIGN_CODED;
    suit_bandwidth(campaign);
}

void campaign_code(struct campaign *campaign, const char *word)
{
    code(campaign, word, &campaign->options.chooser);
}

void campaign_code_copies(struct campaign *campaign, const char *word)
{
    code(campaign, word, &campaign->options.copies);
}

/* Of owners that wait for their workers every other one codes its copies. Drawn last, too. */
static void draw_copies(struct campaign *campaign)
{
    static const char *const words[] = {"fp16", "int8", "int4", "top:0.2"};
    bool waits = sgp_method_waits(campaign->options.method);
    bool owned = campaign->topology->owner != SGP_NODE_NONE && waits;
    if (owned && !sgp_topology_has_token(campaign->topology) && draw_chance(campaign, 0.5))
        campaign_code_copies(campaign, words[draw_below(campaign, 4)]);
}

/* In one fleet of four shares are coded, and in three of four of exact cycles. Drawn last, so that
 * all else stays as it was. */
static void draw_compression(struct campaign *campaign)
{
    if (!draw_chance(campaign, campaign->exact ? 0.75 : 0.25))
        return;
    enum sgp_compressor of_shares[SGP_COMPRESSOR_MOST];
    uint32_t count = 0;
    for (int c = SGP_COMPRESSOR_NONE + 1; c <= SGP_COMPRESSOR_MOST; c++)
        if (sgp_compressor_is_of_shares((enum sgp_compressor)c))
            of_shares[count++] = (enum sgp_compressor)c;
    campaign_code(campaign, sgp_compressor_word(of_shares[draw_below(campaign, count)]));
    if (draw_chance(campaign, 0.25) && campaign->options.dimension == CAMPAIGN_CODED)
        campaign->options.dimension = CAMPAIGN_BLOCKS;
}

/* ---- guards ---- */

static bool suits_guard(const struct sgp_topology *topology)
{
    for (uint32_t i = 0; i < topology->node_count; i++)
        if (sgp_topology_check_guard(topology, i, NULL) < 0)
            return false;
    return true;
}

static bool all_suit_guard(const struct campaign *campaign)
{
    return suits_guard(campaign->topology) && (!campaign->apart || suits_guard(campaign->other));
}

/* In one fleet of four whose files suit it, all nodes have a guard. Drawn last, too. */
static void draw_guard(struct campaign *campaign)
{
    double multiple = draw_spread(campaign, 0.5, 2);
    if (draw_chance(campaign, 0.25) && all_suit_guard(campaign))
        campaign->options.guard = multiple;
}

void campaign_lie(struct campaign *campaign)
{
    struct sgp_sim_options *options = &campaign->options;
    bool mixes = campaign->topology->owner == SGP_NODE_NONE && !campaign->exact;
    if (!mixes)
        return;
    campaign->liar =
        (struct sgp_sim_liar){.node = draw_below(campaign, campaign->topology->node_count),
            .lie = (enum sgp_sim_lie)(SGP_SIM_LIE_FLIP + draw_below(campaign, SGP_SIM_LIE_MOST))};
    options->liars = &campaign->liar;
    options->liar_count = 1;
    options->guard = all_suit_guard(campaign) ? 1 : 0;
}

/* ---- all of it ---- */

/* Quadratics with unlike minima, from unlike starts. */
static int make_trainer(void *context, uint32_t node, struct sgp_trainer **ret_trainer)
{
    const struct campaign *campaign = context;
    const uint64_t dimension = campaign->options.dimension;
    static float centre[CAMPAIGN_VALUES_MAX], start[CAMPAIGN_VALUES_MAX];
    for (uint32_t c = 0; c < dimension; c++) {
        centre[c] = (float)((node * 5 + c * 3) % 8) - 4;
        start[c] = (float)((node * 3 + c * 5) % 8) - 4;
    }
    return sgp_quadratic_create(dimension, centre, start, campaign->eta, ret_trainer);
}

int campaign_init(struct campaign *campaign, const struct sgp_method *method, uint32_t nodes,
    uint64_t seed, bool exact, struct sgp_error *error)
{
    *campaign = (struct campaign){.seed = seed, .whole = true, .exact = exact};
    sgp_random_init(&campaign->random, seed, STREAM_CAMPAIGN + method->number);
    sgp_sim_options_init(&campaign->options);
    campaign->options.method = method;
    campaign->options.context = campaign;
    campaign->options.trainer = make_trainer;
    int status = draw_fleet(campaign, nodes, error);
    if (status < 0)
        return status;
    status = draw_faults(campaign, nodes, error);
    draw_compression(campaign);
    draw_copies(campaign);
    draw_guard(campaign);
    return status;
}

void campaign_finish(struct campaign *campaign)
{
    sgp_topology_destroy(campaign->topology);
    sgp_topology_destroy(campaign->other);
}

void campaign_tell(const struct campaign *campaign, char *text, size_t bytes)
{
    const struct sgp_sim_options *o = &campaign->options;
    (void)snprintf(text, bytes,
        "%s, %lld rounds of %u x %.3g ms, latency %.3g ms, bandwidth %.3g B/s, loss %.2g, faults "
        "until %.3g s: "
        "%u stragglers, %u absences, %u crashes (%u with backups), %u clocks, %u cuts, %u clogs, "
        "%u swizzles, %u half-open, %u commands, patience %.3g s, guard %.3g, %u liars, shares of "
        "%llu values %s, copies %s%s%s%s",
        campaign->family, (long long)o->rounds, o->local_steps, (double)o->compute_ns * 1e-6,
        (double)o->latency_ns * 1e-6, o->bandwidth, o->loss, (double)campaign->window * 1e-9,
        o->straggler_count, o->absence_count, o->crash_count, campaign->restores, o->clock_count,
        o->cut_count, o->clog_count, o->swizzle_count, o->half_open_count, campaign->command_count,
        (double)o->patience_ns * 1e-9, o->guard, o->liar_count, (unsigned long long)o->dimension,
        o->chooser.compressor == SGP_COMPRESSOR_NONE ? "plain" : o->chooser.word,
        o->copies.compressor == SGP_COMPRESSOR_NONE ? "plain" : o->copies.word,
        campaign->apart ? ", in the end all but one with " : "",
        campaign->apart ? campaign->other_family : "",
        !campaign->whole      ? ", not whole in the end"
        : !campaign->recovers ? ", too short to recover"
                              : "");
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What campaigns draw (tests/campaign/draw.c): a fleet that can hold what the verdict asks of it. */
#include "../../campaign/campaign.h"

#include "sgp/analysis.h"

#include <criterion/criterion.h>
#include <assertions.h>

#define NODES 16u
#define SEEDS 200u

static void draw(struct campaign *campaign, const char *method, uint64_t seed)
{
    struct sgp_error error = {0};
    const struct sgp_method *row = sgp_method_find(method);
    cr_assert(
        zero(int, campaign_init(campaign, row, NODES, seed, false, &error)), "%s", error.text);
}

/* The least weight at which any node trains by this file: its guard. */
static double guard_of(const struct sgp_topology *topology)
{
    struct sgp_analysis analysis;
    cr_assert(zero(int, sgp_analyse(topology, &analysis)));
    return SGP_STARVING * analysis.weight_min / (1 + analysis.out_degree_max);
}

/* The second file is a random digraph, in which a node may train at far less weight than by the first. */
Test(campaign, a_rate_suits_the_least_weight_of_a_file_that_comes_by_a_reload)
{
    static struct campaign campaign;
    draw(&campaign, "osgp", 2239);
    cr_assert(campaign.apart);
    cr_expect(epsilon_eq(dbl, guard_of(campaign.topology), 0.25, 1e-12));
    cr_expect(epsilon_eq(dbl, guard_of(campaign.other), 0.0124104023, 1e-10));
    cr_expect(epsilon_eq(dbl, campaign.eta, 0.0124104023, 1e-10));
    campaign_finish(&campaign);
}

Test(campaign, no_rate_is_above_the_guard_of_any_file_by_which_a_fleet_gossips)
{
    static const char *const methods[] = {"sgp", "osgp", "agp", "dpsgd", "adpsgd"};
    static struct campaign campaign;
    uint32_t apart = 0;
    for (size_t m = 0; m < sizeof methods / sizeof *methods; m++)
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
            draw(&campaign, methods[m], seed);
            const struct sgp_topology *files[] = {
                campaign.topology, campaign.apart ? campaign.other : NULL};
            for (uint32_t i = 0; i < 2 && files[i]; i++)
                cr_expect(campaign.eta <= guard_of(files[i]) * (1 + 1e-9),
                    "%s, seed %llu, file %u: rate %.6g, guard %.6g", methods[m],
                    (unsigned long long)seed, i + 1, campaign.eta, guard_of(files[i]));
            apart += campaign.apart;
            campaign_finish(&campaign);
        }
    cr_expect(gt(u32, apart, 0));
}

/* An exact cycle cannot do without a node, so none goes for good. Parts are coded where they are
 * whole blocks, which 8 of them are. */
Test(campaign, exact_cycles_keep_all_nodes_and_are_coded_mostly)
{
    static struct campaign campaign;
    uint32_t parts = 0, vectors = 0, plain = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct sgp_error error = {0};
        cr_assert(
            zero(int, campaign_init(&campaign, sgp_method_find("sgp"), 8, seed, true, &error)),
            "seed %llu: %s", (unsigned long long)seed, error.text);
        const struct sgp_topology *topology = campaign.topology;
        const struct sgp_sim_options *options = &campaign.options;
        cr_assert(sgp_topology_has_exact(topology));
        cr_assert(campaign.whole && !campaign.apart);
        for (uint32_t i = 0; i < options->absence_count; i++)
            cr_assert(lt(i64, options->absences[i].to, SGP_TIME_NEVER));
        for (uint32_t i = 0; i < campaign.command_count; i++)
            cr_assert(ne(int, (int)campaign.commands[i].type, SGP_EVENT_LEAVE));
        bool coded = options->chooser.compressor != SGP_COMPRESSOR_NONE &&
                     sgp_topology_is_blocked(topology, options->dimension);
        parts += coded && topology->slices > 1;
        vectors += coded && topology->slices == 1;
        plain += options->chooser.compressor == SGP_COMPRESSOR_NONE;
        campaign_finish(&campaign);
    }
    cr_expect(parts > SEEDS / 4 && vectors > 0, "%u and %u", parts, vectors);
    cr_expect(plain > SEEDS / 8 && plain < SEEDS / 2, "%u", plain);
}

/* Otherwise a campaign of all methods says that no seed of the others holds. */
Test(campaign, exact_cycles_suit_sgp_alone)
{
    for (uint32_t m = 0; sgp_method_at(m) != NULL; m++) {
        const struct sgp_method *method = sgp_method_at(m);
        struct sgp_error error = {0};
        bool suits = campaign_suit_exact(method, &error) == 0;
        cr_expect(eq(int, suits, strcmp(method->name, "sgp") == 0), "%s", method->name);
        cr_expect(eq(int, suits, error.text[0] == '\0'), "%s: %s", method->name, error.text);
        static struct campaign campaign;
        bool drawn = campaign_init(&campaign, method, NODES, 1, true, &error) == 0;
        cr_expect(eq(int, drawn, suits), "%s", method->name);
        campaign_finish(&campaign);
    }
}

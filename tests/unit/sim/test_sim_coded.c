/* SPDX-License-Identifier: Apache-2.0 */
/* Gossip whose shares are coded: fewer bytes while nodes train, and then as near one another as plain gossip comes. */
#include "sim_wide.h"

static const struct sgp_edge irregular[] = {{0, 1, -1}, {0, 2, -1}, {0, 3, -1}, {1, 2, -1},
    {2, 3, -1}, {2, 4, -1}, {3, 4, -1}, {3, 5, -1}, {4, 5, -1}, {5, 0, -1}};

static struct fleet *fleet_by(uint32_t kind)
{
    if (kind == 0)
        return fleet_generate("one-peer-exponential", 8, 0);
    return kind == 1 ? fleet_of_edges(6, irregular, sizeof irregular / sizeof *irregular)
                     : fleet_generate("base", 7, 0);
}

static uint64_t run(uint32_t kind, enum sgp_compressor compressor)
{
    struct fleet *fleet = fleet_by(kind);
    uint32_t nodes = fleet->topology->node_count;
    fleet_widen(fleet, compressor);
    fleet->options.rounds = 40;
    fleet->options.final_cycles = kind == 1 ? 60 : 2;
    fleet->eta = 0.05;
    fleet_run(fleet);
    struct sgp_sim_summary summary = fleet_summary(fleet);
    cr_expect(eq(u32, summary.finished, nodes));
    cr_expect(epsilon_eq(dbl, summary.weight, nodes, 1e-12));
    cr_expect(lt(dbl, summary.disagreement, 1e-5), "%s: %g", sgp_compressor_word(compressor),
        summary.disagreement);
    fleet_destroy(fleet);
    return summary.bytes;
}

/* Each has fewer bits for a value than the one before, or as many. */
static const enum sgp_compressor shorter[] = {SGP_COMPRESSOR_FP16, SGP_COMPRESSOR_BF16,
    SGP_COMPRESSOR_INT8, SGP_COMPRESSOR_INT6, SGP_COMPRESSOR_INT4};

Test(coded, a_fleet_ends_agreed_in_its_final_cycles)
{
    for (uint32_t kind = 0; kind < 3; kind++) {
        uint64_t bytes[SGP_COMPRESSOR_MOST + 1] = {run(kind, SGP_COMPRESSOR_NONE)};
        for (int c = SGP_COMPRESSOR_FP16; c <= (int)SGP_COMPRESSOR_MOST; c++) {
            if (!sgp_compressor_is_of_shares((enum sgp_compressor)c))
                continue;
            bytes[c] = run(kind, (enum sgp_compressor)c);
            cr_expect(lt(u64, bytes[c], bytes[SGP_COMPRESSOR_NONE]), "%s",
                sgp_compressor_word((enum sgp_compressor)c));
        }
        for (size_t i = 1; i < sizeof shorter / sizeof *shorter; i++)
            cr_expect(le(u64, bytes[shorter[i]], bytes[shorter[i - 1]]), "%s",
                sgp_compressor_word(shorter[i]));
    }
}

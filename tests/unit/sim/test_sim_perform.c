/* SPDX-License-Identifier: Apache-2.0 */
/* How the simulator performs the jobs of a core: as the daemon does, by one performer (sgp/perform.h). A trainer
 * that is watched tells what is asked of it. */
#include "sim_fleet.h"

#include "sgp/kernels.h"
#include "sim/world.h"

/* ---- a trainer that is watched ---- */

#define VECTORS_MAX 16

static struct sgp_trainer_methods plain, watched;
static struct {
    uint32_t trained, stepped, elsewhere; /* calls of train; of one step each; go_to elsewhere */
    uint32_t moved;                       /* calls of go_to */
    const float *vectors[VECTORS_MAX];    /* that publish exchanged, each once */
    uint32_t vector_count;
    uint32_t absorbed, compared;
    double farthest; /* of what was compared */
} seen;

static int watch_train(struct sgp_trainer *trainer, double weight, uint32_t steps, double pace,
    struct sgp_training *ret_training)
{
    seen.trained++;
    seen.stepped += steps == 1;
    return plain.train(trainer, weight, steps, pace, ret_training);
}

static void watch_go_to(struct sgp_trainer *trainer, uint64_t steps)
{
    seen.moved++;
    seen.elsewhere += steps % 3 != 0;
    plain.go_to(trainer, steps);
}

static void watch_publish(struct sgp_trainer *trainer, float **snapshot, float keep)
{
    uint32_t i = 0;
    while (i < seen.vector_count && seen.vectors[i] != *snapshot)
        i++;
    if (i == seen.vector_count && i < VECTORS_MAX)
        seen.vectors[seen.vector_count++] = *snapshot;
    plain.publish(trainer, snapshot, keep);
}

static void watch_absorb(struct sgp_trainer *trainer, float **share, float fraction, uint64_t first,
    uint64_t count, struct sgp_comparison *comparison)
{
    plain.absorb(trainer, share, fraction, first, count, comparison);
    seen.absorbed++;
    if (comparison == NULL)
        return;
    seen.compared++;
    double distance = sgp_relative_difference(comparison->difference, comparison->norm);
    seen.farthest = distance > seen.farthest ? distance : seen.farthest;
}

static int watched_trainer(void *context, uint32_t node, struct sgp_trainer **ret_trainer)
{
    int status = fleet_trainer(context, node, ret_trainer);
    cr_assert(zero(int, status));
    plain = *(*ret_trainer)->methods;
    watched = plain;
    watched.train = watch_train;
    watched.go_to = watch_go_to;
    watched.publish = watch_publish;
    watched.absorb = watch_absorb;
    (*ret_trainer)->methods = &watched;
    return status;
}

/* Two nodes that average, beginning at 1 and 3, and that `method` says how. */
static struct fleet *pair_of(const char *method)
{
    struct fleet *fleet = fleet_generate("ring", 2, 0);
    fleet->options.method = sgp_method_find(method);
    fleet->options.trainer = watched_trainer;
    fleet->options.rounds = 4;
    fleet->options.final_cycles = 0;
    fleet->start[0][0] = 1;
    fleet->start[1][0] = 3;
    return fleet;
}

Test(sim_perform, the_steps_of_a_turn_are_taken_one_by_one_from_where_the_turn_begins)
{
    struct fleet *fleet = pair_of("sgp");
    fleet->options.local_steps = 3;
    fleet_run(fleet);
    cr_assert(eq(u32, seen.trained, 2 * 4 * 3));
    cr_assert(eq(u32, seen.stepped, seen.trained));
    cr_assert(eq(u32, seen.moved, 2 * 4)); /* once a turn, to a multiple of three steps */
    cr_assert(zero(u32, seen.elsewhere));
    fleet_destroy(fleet);
}

Test(sim_perform, a_snapshot_is_the_vector_itself)
{
    struct fleet *fleet = pair_of("sgp");
    fleet->options.rounds = 20;
    fleet_run(fleet);
    cr_assert(
        ge(u32, seen.vector_count, 6)); /* x and a scratch of each, and one of all, would be five */
    fleet_destroy(fleet);
}

/* What comes first is compared with 1, and is 3; or with 3, and is 1. What overlaps is not folded. */
Test(sim_perform, a_share_is_compared_with_what_the_node_published_itself)
{
    struct fleet *fleet = pair_of("osgp");
    fleet_run(fleet);
    cr_assert(ge(u32, seen.compared, 1));
    cr_assert(le(u32, seen.compared, seen.absorbed));
    cr_assert(epsilon_eq(dbl, seen.farthest, 2, 1e-6));
    fleet_destroy(fleet);
}

/* ---- how long its own estimate is ---- */

static const struct sgp_lengths *lengths_of(const struct fleet *fleet, uint32_t node)
{
    return &fleet->sim->hosts[node].performer.lengths;
}

/* So small are the values far along a ring of 512 nodes with one start that is not zero. */
Test(sim_perform, the_distance_of_shares_is_not_judged_where_their_squares_underflow)
{
    struct fleet *fleet = fleet_generate("ring", 8, 0);
    fleet->start[0][0] = 1e-20f;
    fleet->options.rounds = 20;
    fleet_run(fleet);
    cr_assert(eq(u32, fleet_summary(fleet).finished, 8));
    fleet_destroy(fleet);
}

Test(sim_perform, whoever_has_a_token_looks_at_it)
{
    struct fleet *fleet = fleet_create();
    struct sgp_generate_options options = {.family = "token", .nodes = 4};
    cr_assert(eq(int, sgp_generate(&options, &fleet->error, &fleet->topology), 0));
    fleet->options.method = sgp_method_find("cyclic");
    fleet->options.rounds = 8;
    for (uint32_t i = 0; i < 4; i++)
        fleet->start[i][0] = 5;
    fleet_run(fleet);
    cr_assert(epsilon_eq(dbl, lengths_of(fleet, 0)->own, 5, 1e-6)); /* with which it begins */
    fleet_destroy(fleet);
}

/* All have the estimate 5 throughout, at weights that go apart; the second look comes long after the last training. */
Test(sim_perform, an_estimate_is_looked_at_at_the_weight_that_it_has_then)
{
    const struct sgp_edge edges[] = {{0, 1, 0.5}, {0, 2, 0.4}, {1, 0, 0.3}, {2, 0, 0.5}};
    struct fleet *fleet = fleet_of_edges(3, edges, 4);
    fleet->options.rounds = 1;
    fleet->options.final_cycles = SGP_LOOK_ROUNDS + 3;
    for (uint32_t i = 0; i < 3; i++)
        fleet->start[i][0] = 5;
    fleet_run(fleet);
    cr_assert(eq(u32, fleet_summary(fleet).finished, 3));
    for (uint32_t i = 0; i < 3; i++)
        cr_assert(epsilon_eq(dbl, lengths_of(fleet, i)->own, 5, 1e-5), "node %u: %g", i,
            lengths_of(fleet, i)->own);
    fleet_destroy(fleet);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Owners that train, in the simulator: as if relays owned, within a machine at no cost and from it over one network card, and what
 * the death of a machine does. */
#include "sim_fleet.h"

#include "sgp/method.h"
#include "sgp/wire.h"

#define DIMENSION FLEET_DIMENSION_MAX

/* `owners` of so many that train; or if relays own, as many more. Those that train are the nodes from `first` on. */
static struct fleet *fleet_of(
    const char *method, uint32_t trainers, uint32_t owners, bool members, uint32_t *ret_first)
{
    struct sgp_generate_options options = {.family = "owner",
        .nodes = trainers + (members ? 0 : owners),
        .owners = owners,
        .members = members};
    *ret_first = members ? 0 : owners;
    return fleet_of_owners(method, &options, *ret_first);
}

/* All that train hold one model, each part of which is its owner's. */
static void expect_end(
    const struct fleet *fleet, uint32_t trainers, uint32_t owners, uint32_t first, float *ret_model)
{
    struct sgp_sim_summary summary = fleet_summary(fleet);
    cr_assert(eq(u32, summary.finished, trainers + owners));
    cr_assert(epsilon_eq(dbl, summary.weight, owners, 0));
    float other[DIMENSION];
    sgp_sim_estimate(fleet->sim, first, ret_model);
    for (uint32_t i = first + 1; i < first + trainers; i++) {
        sgp_sim_estimate(fleet->sim, i, other);
        cr_assert(zero(int, memcmp(ret_model, other, sizeof other)), "node %u", i);
    }
    for (uint32_t i = 0; i < fleet->topology->node_count; i++) {
        struct sgp_slice owned = sgp_topology_owned(fleet->topology, i, DIMENSION);
        const struct sgp_trainer *trainer = sgp_sim_trainer(fleet->sim, i);
        trainer->methods->estimate(trainer, 1, other);
        cr_assert(zero(int, memcmp(ret_model + owned.first, other + owned.first,
                                owned.count * sizeof *other)),
            "owner %u", i);
    }
}

Test(members, they_are_as_if_relays_owned)
{
    for (uint32_t trainers = 2; trainers <= 5; trainers++)
        for (uint32_t owners = 1; owners <= trainers && owners <= DIMENSION; owners++) {
            float model[2][DIMENSION];
            sgp_time time[2];
            for (uint32_t members = 0; members < 2; members++) {
                uint32_t first;
                struct fleet *fleet = fleet_of("backup", trainers, owners, members == 1, &first);
                fleet_run(fleet);
                expect_end(fleet, trainers, owners, first, model[members]);
                time[members] = fleet_summary(fleet).time;
                fleet_destroy(fleet);
            }
            for (uint32_t c = 0; c < DIMENSION; c++) /* updates come in another order */
                cr_assert(epsilon_eq(dbl, model[0][c], model[1][c], 1e-6));
            cr_assert(eq(i64, time[0], time[1]));
        }
}

/* ---- one network card ---- */

static sgp_time step, steps_unlike;

static void watch(void *context, uint32_t node, sgp_time now, const struct sgp_effect *note)
{
    static sgp_time last;
    (void)context;
    if (note->note.what != SGP_NOTE_ROUND || node != DIMENSION || note->round < 2)
        return;
    steps_unlike += last > 0 && now - last != step;
    last = now;
}

/* Each of four owns a quarter: updates to three others go out one after the other, and then three copies. */
Test(members, a_machine_sends_to_the_others_one_after_the_other_and_to_itself_in_no_time)
{
    uint32_t first;
    float model[DIMENSION];
    struct fleet *fleet = fleet_of("backup", DIMENSION, DIMENSION, true, &first);
    double bytes = SGP_SIM_MESSAGE_BYTES + sizeof(float) + SGP_WIRE_HEADER_BYTES;
    fleet->options.bandwidth = bytes * 1000; /* each takes 1 ms */
    fleet->options.note = watch;
    step = fleet->options.compute_ns + 2 * (3 * SGP_MILLISECOND + fleet->options.latency_ns);
    fleet_run(fleet);
    expect_end(fleet, DIMENSION, DIMENSION, first, model);
    cr_assert(zero(i64, steps_unlike));
    fleet_destroy(fleet);
}

/* ---- death ---- */

/* Machine 1 dies, its owner with it; then machine 0, twice; once it comes back without its state. */
static void kill_machines(const char *method, uint64_t seed)
{
    uint32_t first, owners = 2 + (uint32_t)(seed % 3), trainers = 5;
    struct fleet *fleet = fleet_of(method, trainers, owners, true, &first);
    struct sgp_sim_crash crashes[6];
    float model[DIMENSION];
    for (uint32_t i = 0; i < 6; i++) {
        static const sgp_time at[] = {300, 700, 1500}, lasts[] = {400, 350, 60};
        uint32_t machine = i < 2;
        crashes[i] = (struct sgp_sim_crash){.node = i % 2 == 0 ? machine : trainers + machine,
            .at = at[i / 2] * SGP_MILLISECOND + (sgp_time)(seed * 1237 % 120) * 100000,
            .forgets = i >= 4 && seed % 5 == 0};
        crashes[i].back = crashes[i].at + lasts[i / 2] * SGP_MILLISECOND;
    }
    fleet->options.crashes = crashes;
    fleet->options.crash_count = 6;
    fleet->options.rounds = 400;
    fleet->options.seed = seed;
    fleet->options.compute_jitter = 0.3;
    fleet->eta = 0.02;
    fleet_run(fleet);
    expect_end(fleet, trainers, owners, first, model);
    cr_assert(ge(u64, fleet_summary(fleet).adopted, 2), "seed %llu", (unsigned long long)seed);
    fleet_destroy(fleet);
}

Test(members, a_machine_that_dies_comes_back_with_the_newest_copy_of_what_it_owns)
{
    for (uint64_t seed = 1; seed <= fleet_many(40, 4); seed++) {
        kill_machines("backup", seed);
        kill_machines("downpour", seed);
    }
}

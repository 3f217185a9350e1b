/* SPDX-License-Identifier: Apache-2.0 */
/* Owners of parts in the simulator, which checks after every event each owner's steps, that every copy of a label of a part is
 * one, and how stale an update is: as one owner to the bit, by the same time, and what faults do. */
#include "sim_fleet.h"

#include "sgp/method.h"

#define DIMENSION FLEET_DIMENSION_MAX
#define STEP (12 * SGP_MILLISECOND) /* ten of computing, and one of latency each way */
#define OWNERS_MAX 4u

static struct fleet *fleet_with_owners(const char *method, uint32_t owners, uint32_t workers,
    uint32_t backup, struct sgp_staleness staleness)
{
    struct sgp_generate_options options = {.family = "owner",
        .nodes = owners + workers,
        .owners = owners,
        .backup = backup,
        .staleness = staleness};
    return fleet_of_owners(method, &options, owners);
}

/* Workers hold one model, each part of which is its owner's. */
static void expect_end(const struct fleet *fleet, uint32_t owners, uint32_t nodes)
{
    struct sgp_sim_summary summary = fleet_summary(fleet);
    cr_assert(eq(u32, summary.finished, nodes));
    cr_assert(epsilon_eq(dbl, summary.weight, owners, 0));
    float first[DIMENSION], other[DIMENSION];
    sgp_sim_estimate(fleet->sim, owners, first);
    for (uint32_t i = owners + 1; i < nodes; i++) {
        sgp_sim_estimate(fleet->sim, i, other);
        cr_assert(zero(int, memcmp(first, other, sizeof first)), "node %u", i);
    }
    for (uint32_t i = 0; i < owners; i++) {
        struct sgp_slice owned = sgp_topology_owned(fleet->topology, i, DIMENSION);
        const struct sgp_trainer *trainer = sgp_sim_trainer(fleet->sim, i);
        trainer->methods->estimate(trainer, 1, other);
        cr_assert(zero(int, memcmp(first + owned.first, other + owned.first,
                                owned.count * sizeof *first)),
            "owner %u", i);
    }
}

/* ---- as one owner ---- */

static void run_with(uint32_t owners, uint32_t workers, uint32_t backup, float *ret_estimate,
    sgp_time *ret_time, uint64_t *ret_shares)
{
    struct fleet *fleet =
        fleet_with_owners("backup", owners, workers, backup, (struct sgp_staleness){.most = 0});
    struct sgp_sim_straggler slow = {.node = owners + 1, .factor = 1000};
    fleet->options.stragglers = &slow;
    fleet->options.straggler_count = backup;
    fleet->options.rounds = backup > 0 ? 8 : 60;
    fleet_run(fleet);
    expect_end(fleet, owners, owners + workers);
    sgp_sim_estimate(fleet->sim, owners, ret_estimate);
    *ret_time = fleet_summary(fleet).time;
    *ret_shares = fleet_summary(fleet).shares;
    fleet_destroy(fleet);
}

Test(parts, several_owners_are_as_one_to_the_bit_and_to_the_microsecond)
{
    for (uint32_t backup = 0; backup < 2; backup++)
        for (uint32_t workers = 1 + 2 * backup; workers <= 5; workers++) {
            float alone[DIMENSION], together[DIMENSION];
            sgp_time time, time_together;
            uint64_t shares, shares_together;
            run_with(1, workers, backup, alone, &time, &shares);
            for (uint32_t owners = 2; owners <= OWNERS_MAX; owners++) {
                run_with(owners, workers, backup, together, &time_together, &shares_together);
                cr_assert(zero(int, memcmp(alone, together, sizeof alone)),
                    "%u owners, %u workers, backup %u", owners, workers, backup);
                cr_assert(eq(i64, time_together, time));
                cr_assert(eq(u64, shares_together, owners * shares));
            }
        }
}

static uint32_t longer; /* rounds that were not as long as a step */

static void watch_owners(void *context, uint32_t node, sgp_time now, const struct sgp_effect *note)
{
    static sgp_time last[OWNERS_MAX];
    (void)context;
    if (note->note.what != SGP_NOTE_ROUND || node >= OWNERS_MAX)
        return;
    longer += last[node] > 0 && note->round > 0 && now - last[node] != STEP;
    last[node] = now;
}

Test(parts, a_step_of_each_lasts_as_long_as_the_fourth_arrival)
{
    struct fleet *fleet =
        fleet_with_owners("backup", OWNERS_MAX, 5, 1, (struct sgp_staleness){.most = 0});
    struct sgp_sim_straggler slow = {.node = OWNERS_MAX + 2, .factor = 4};
    fleet->options.stragglers = &slow;
    fleet->options.straggler_count = 1;
    fleet->options.note = watch_owners;
    longer = 0;
    fleet_run(fleet);
    expect_end(fleet, OWNERS_MAX, OWNERS_MAX + 5);
    cr_assert(zero(u32, longer));
    fleet_destroy(fleet);
}

/* ---- at their own pace ---- */

Test(parts, staleness_is_by_owner)
{
    static const struct sgp_staleness said[] = {{.damping = SGP_DAMPING_NONE},
        {.damping = SGP_DAMPING_DIVIDE}, {.damping = SGP_DAMPING_COMPENSATE, .compensation = 2}};
    for (uint32_t i = 0; i < 3; i++)
        for (uint32_t owners = 2; owners <= OWNERS_MAX; owners++) {
            struct fleet *fleet = fleet_with_owners("downpour", owners, 5, 0, said[i]);
            struct sgp_sim_straggler slow = {.node = owners + 2, .factor = 3};
            fleet->options.stragglers = &slow;
            fleet->options.straggler_count = 1;
            fleet->options.compute_jitter = 0.3;
            fleet->options.local_steps = 1 + owners % 2;
            fleet->eta = 0.03;
            fleet_run(fleet);
            expect_end(fleet, owners, owners + 5);
            for (uint32_t k = 0; k < owners; k++) {
                struct sgp_node_status status;
                sgp_node_status(sgp_sim_node(fleet->sim, k), &status);
                cr_assert(eq(i64, status.round, 60 * 5), "each update is a step of each owner");
            }
            fleet_destroy(fleet);
        }
}

static uint32_t counted[OWNERS_MAX][FLEET_NODES_MAX], spread[OWNERS_MAX];
static uint32_t bounded_owners;

/* How many updates of each worker each owner has added, by what it tells. */
static void watch_added(void *context, uint32_t node, sgp_time now, const struct sgp_effect *note)
{
    (void)context;
    (void)now;
    if (note->note.what != SGP_NOTE_ADDED)
        return;
    uint32_t *of = counted[node], least = UINT32_MAX, most = 0;
    of[note->note.link.peer]++;
    for (uint32_t i = bounded_owners; i < bounded_owners + 4; i++) {
        least = of[i] < least ? of[i] : least;
        most = of[i] > most ? of[i] : most;
    }
    spread[node] = most - least > spread[node] ? most - least : spread[node];
}

/* Who has a copy that is as far ahead as may be makes one update more, and one of the slowest may be on its way elsewhere. */
static void expect_bound(uint32_t owners, uint32_t most, uint64_t seed)
{
    struct fleet *fleet =
        fleet_with_owners("downpour", owners, 4, 0, (struct sgp_staleness){.most = most});
    struct sgp_sim_straggler slow = {.node = owners + 1, .factor = 5};
    memset(counted, 0, sizeof counted);
    memset(spread, 0, sizeof spread);
    bounded_owners = owners;
    fleet->options.stragglers = &slow;
    fleet->options.straggler_count = 1;
    fleet->options.compute_jitter = 0.5;
    fleet->options.seed = seed;
    fleet->options.note = watch_added;
    fleet->eta = 0.02;
    fleet_run(fleet);
    expect_end(fleet, owners, owners + 4);
    for (uint32_t k = 0; k < owners; k++)
        cr_assert(most == 0 ? spread[k] > 20 : spread[k] <= most + 1 + (k > 0),
            "owner %u of %u: %u apart, bound %u", k, owners, spread[k], most);
    cr_assert(most == 0 || spread[0] == most + 1, "it is reached");
    fleet_destroy(fleet);
}

Test(parts, the_first_owner_keeps_the_bound_for_all)
{
    for (uint32_t owners = 1; owners <= OWNERS_MAX; owners++)
        for (uint32_t most = 0; most <= 4; most++)
            for (uint64_t seed = 1; seed <= fleet_many(8, 2); seed++)
                expect_bound(owners, most, seed);
}

/* ---- death ---- */

static void kill_some(const char *method, uint64_t seed)
{
    uint32_t owners = 2 + (uint32_t)(seed % 3);
    bool waits = sgp_method_waits(sgp_method_find(method));
    struct sgp_staleness staleness = {.damping = waits ? SGP_DAMPING_NONE : SGP_DAMPING_DIVIDE};
    struct fleet *fleet = fleet_with_owners(method, owners, 5, waits ? seed % 2 : 0, staleness);
    struct sgp_sim_straggler slow = {.node = owners + 3, .factor = 3};
    struct sgp_sim_crash crashes[] = {
        {.node = 0, .at = 300 * SGP_MILLISECOND, .back = 700 * SGP_MILLISECOND},
        {.node = owners + 1, .at = 500 * SGP_MILLISECOND, .back = 1100 * SGP_MILLISECOND},
        {.node = 1, .at = 650 * SGP_MILLISECOND, .back = 1250 * SGP_MILLISECOND},
        {.node = 0, .at = 1500 * SGP_MILLISECOND, .back = 1550 * SGP_MILLISECOND},
    };
    for (uint32_t i = 0; i < 4; i++)
        crashes[i].at += (sgp_time)(seed * 1237 % 120) * 100000;
    crashes[3].forgets = seed % 5 == 0;
    fleet->options.crashes = crashes;
    fleet->options.crash_count = 4;
    fleet->options.stragglers = &slow;
    fleet->options.straggler_count = 1;
    fleet->options.rounds = 400;
    fleet->options.seed = seed;
    fleet->eta = 0.02;
    fleet_run(fleet);
    expect_end(fleet, owners, owners + 5);
    cr_assert(ge(u64, fleet_summary(fleet).adopted, 2), "seed %llu", (unsigned long long)seed);
    fleet_destroy(fleet);
}

Test(parts, each_owner_that_is_killed_goes_on_from_the_newest_copy_of_its_part)
{
    for (uint64_t seed = 1; seed <= fleet_many(40, 4); seed++) {
        kill_some("backup", seed);
        kill_some("downpour", seed);
    }
}

/* A worker that was stopped asks for an end that the others have passed long ago. */
static void stop_in_the_past(const char *method, uint32_t owners, sgp_time late)
{
    struct fleet *fleet =
        fleet_with_owners(method, owners, 3, 0, (struct sgp_staleness){.most = 0});
    bool waits = sgp_method_waits(sgp_method_find(method));
    struct sgp_sim_absence away = {
        .node = owners + 1, .from = 300 * SGP_MILLISECOND, .to = 7 * SGP_SECOND};
    fleet->options.absences = &away;
    fleet->options.absence_count = 1;
    fleet->options.rounds = 2000;
    fleet->options.compute_jitter = 0.3;
    fleet_open(fleet);
    cr_assert(zero(int, sgp_sim_command(fleet->sim, 7 * SGP_SECOND + late * SGP_MILLISECOND,
                            away.node, SGP_EVENT_ENOUGH)));
    cr_assert(
        zero(int, sgp_sim_run(fleet->sim, SGP_TIME_NEVER, &fleet->error)), "%s", fleet->error.text);
    expect_end(fleet, owners, owners + 3);
    struct sgp_node_status status;
    sgp_node_status(sgp_sim_node(fleet->sim, 0), &status);
    cr_assert(lt(i64, status.round, waits ? 2000 : 6000), "it was early");
    fleet_destroy(fleet);
}

Test(parts, an_early_stop_that_lies_in_the_past_ends_on_one_model)
{
    for (uint32_t owners = 1; owners <= 3; owners++)
        for (sgp_time late = 0; late < (sgp_time)fleet_many(24, 6); late++) {
            stop_in_the_past("backup", owners, late);
            stop_in_the_past("downpour", owners, late);
        }
}

/* ---- another file ---- */

/* Of eight nodes two own halves, and four work. */
static struct sgp_topology *file_of(
    struct fleet *fleet, const uint32_t owners[2], const uint32_t workers[4])
{
    struct sgp_topology_node nodes[6] = {0};
    struct sgp_edge edges[16];
    struct sgp_topology *topology = NULL;
    uint32_t count = 0;
    for (uint32_t i = 0; i < 6; i++) {
        uint32_t node = i < 2 ? owners[i] : workers[i - 2];
        (void)snprintf(nodes[i].name, sizeof nodes[i].name, "n%u", node);
        nodes[i].relay = nodes[i].owns = i < 2;
        nodes[i].own_part = (uint16_t)i;
        nodes[i].own_part_count = i < 2;
    }
    for (uint32_t k = 0; k < 2; k++)
        for (uint32_t i = 2; i < 6; i++) {
            edges[count++] = (struct sgp_edge){k, i, .fraction = SGP_FRACTION_DEFAULT};
            edges[count++] = (struct sgp_edge){i, k, .fraction = SGP_FRACTION_DEFAULT};
        }
    struct sgp_phase_options options = {.name = "owners", .rounds = 1, .slices = 2};
    cr_assert(zero(int, sgp_topology_create(nodes, 6, &fleet->error, &topology)));
    cr_assert(zero(int, sgp_topology_add(topology, &options, edges, count, &fleet->error)));
    cr_assert(zero(int, sgp_topology_seal(topology, &fleet->error)), "%s", fleet->error.text);
    return topology;
}

enum change {
    AMID_TRAINING,
    AMID_THE_FIRST_STEP, /* which takes a minute: nobody has anything newer than the first values */
    AMID_RESTARTS,       /* of all workers: nobody has a copy of that half */
    AND_IT_TRAINS_AFTERWARDS, /* n1 comes back as a worker */
};

/* n1 dies; by another file n7 owns its half, and takes the newest copy, if there is any. A worker is struck, and another
 * comes. */
static void expect_another_owner(const char *method, uint64_t seed, enum change change)
{
    struct fleet *fleet = fleet_create();
    bool first_step = change == AMID_THE_FIRST_STEP, trains = change == AND_IT_TRAINS_AFTERWARDS;
    const uint32_t before[2] = {0, 1}, after[2] = {0, 7};
    const uint32_t first[4] = {2, 3, 4, 5}, then[4] = {2, 3, 4, trains ? 1 : 6};
    struct sgp_generate_options all = {.family = "owner", .nodes = 8, .owners = 2};
    cr_assert(zero(int, sgp_generate(&all, &fleet->error, &fleet->topology)));
    struct sgp_topology *files[2] = {file_of(fleet, before, first), file_of(fleet, after, then)};
    struct sgp_sim_reload reloads[14];
    uint32_t count = 0;
    sgp_time start = first_step ? 10 * SGP_SECOND : 600 * SGP_MILLISECOND;
    for (uint32_t i = 0; i < 6; i++)
        reloads[count++] = (struct sgp_sim_reload){i < 2 ? before[i] : first[i - 2], 0, files[0]};
    for (uint32_t i = 0; i < 6; i++) {
        sgp_time late = (sgp_time)((seed * 7 + i * 37) % 200) * SGP_MILLISECOND;
        reloads[count++] =
            (struct sgp_sim_reload){i < 2 ? after[i] : then[i - 2], start + late, files[1]};
    }
    sgp_time death = start - (sgp_time)(100 - seed % 13) * SGP_MILLISECOND;
    struct sgp_sim_absence gone[] = {
        {.node = 5, .from = start - 20 * SGP_MILLISECOND, .to = SGP_TIME_NEVER},
        {.node = trains ? 6 : 1, .from = trains ? 0 : death, .to = SGP_TIME_NEVER}};
    struct sgp_sim_crash crashes[3];
    for (uint32_t i = 0; i < 3; i++)
        crashes[i] = (struct sgp_sim_crash){
            .node = then[i], .at = death - 1, .back = start - 10 * SGP_MILLISECOND};
    if (trains)
        crashes[0] = (struct sgp_sim_crash){.node = 1, .at = death, .back = start + SGP_SECOND};
    fleet->options.absences = gone;
    fleet->options.absence_count = 2;
    fleet->options.crashes = crashes;
    fleet->options.crash_count = change == AMID_RESTARTS ? 3 : trains;
    fleet->options.reloads = reloads;
    fleet->options.reload_count = count;
    fleet->options.rounds = first_step ? 20 : 200;
    fleet->options.compute_ns = first_step ? 60 * SGP_SECOND : 10 * SGP_MILLISECOND;
    fleet->options.dimension = DIMENSION;
    fleet->options.bandwidth = 0;
    fleet->options.seed = seed;
    fleet->options.method = sgp_method_find(method);
    fleet->eta = 0.02;
    for (uint32_t i = 0; i < 8; i++)
        for (uint32_t c = 0; c < DIMENSION; c++)
            fleet->centre[i][c] = (float)((i + 2) * (c + 2) % 7) - 3;
    fleet_run(fleet);
    struct sgp_sim_summary summary = fleet_summary(fleet);
    cr_assert(eq(u32, summary.finished, 6), "seed %llu, %d", (unsigned long long)seed, (int)change);
    for (uint32_t k = 0; k < 2; k++) {
        struct sgp_node_status status;
        sgp_node_status(sgp_sim_node(fleet->sim, after[k]), &status);
        cr_assert(epsilon_eq(dbl, status.weight, 1, 0));
        cr_assert(zero(dbl, status.weight_estimate), "a part is no model");
    }
    if (change == AMID_TRAINING)
        cr_assert(ge(u64, summary.adopted, 1));
    fleet_destroy(fleet);
    sgp_topology_destroy(files[0]);
    sgp_topology_destroy(files[1]);
}

Test(parts, another_owner_by_reload_takes_the_newest_copy_of_its_part)
{
    for (uint64_t seed = 1; seed <= fleet_many(60, 6); seed++) {
        expect_another_owner("backup", seed, AMID_TRAINING);
        expect_another_owner("downpour", seed, AMID_TRAINING);
    }
}

Test(parts, another_owner_where_there_is_no_copy_begins_beyond_all_labels)
{
    for (uint64_t seed = 1; seed <= fleet_many(20, 4); seed++) {
        expect_another_owner("backup", seed, AMID_THE_FIRST_STEP);
        expect_another_owner("downpour", seed, AMID_THE_FIRST_STEP);
        expect_another_owner("backup", seed, AMID_RESTARTS);
        expect_another_owner("downpour", seed, AMID_RESTARTS);
    }
}

Test(parts, an_owner_that_comes_back_as_a_worker_has_no_weight)
{
    for (uint64_t seed = 1; seed <= fleet_many(20, 4); seed++) {
        expect_another_owner("backup", seed, AND_IT_TRAINS_AFTERWARDS);
        expect_another_owner("downpour", seed, AND_IT_TRAINS_AFTERWARDS);
    }
}

/* ---- what cannot be ---- */

Test(parts, an_owner_without_values_is_refused)
{
    struct fleet *fleet = fleet_with_owners("backup", 3, 2, 0, (struct sgp_staleness){.most = 0});
    fleet->options.dimension = 2;
    cr_assert(
        ne(int, sgp_sim_create(fleet->topology, &fleet->options, &fleet->error, &fleet->sim), 0));
    cr_assert(eq(str, fleet->error.text,
        "node n2 owns a part of 2 values in 3, which is empty; cut the vector into fewer"));
    fleet->sim = NULL;
    fleet_destroy(fleet);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* An owner at its own pace in the simulator, which checks after every event how stale an update is and what is made of
 * it: a slow reference of the whole run beside it, bounded staleness, and what faults do. */
#include "sim_fleet.h"

#include "sgp/method.h"

#define WORKERS 5u
#define DIMENSION FLEET_DIMENSION_MAX
#define LABELS_MAX 2048

/* What was told, and a run of the same in double precision. */
struct reference {
    struct sgp_staleness staleness;
    double models[LABELS_MAX][DIMENSION]; /* by label */
    sgp_round label;
    uint64_t pushes[WORKERS + 1];
    uint64_t oldest;   /* update that was added */
    uint64_t furthest; /* ahead of the slowest, with a new copy */
    double lost;       /* told by owners that came back */
};

struct run {
    struct fleet *fleet; /* first: the context of its options */
    struct reference reference;
};

/* A worker's step from the copy that it had, and what is made of it. */
static void add(struct run *run, uint32_t worker, sgp_round stale)
{
    struct reference *reference = &run->reference;
    const struct sgp_staleness *staleness = &reference->staleness;
    const struct fleet *fleet = run->fleet;
    cr_assert(reference->label + 1 < LABELS_MAX && stale <= reference->label);
    const double *now = reference->models[reference->label];
    const double *then = reference->models[reference->label - stale];
    double *next = reference->models[++reference->label];
    for (uint32_t c = 0; c < DIMENSION; c++) {
        double moved = then[c];
        for (uint32_t step = 0; step < fleet->options.local_steps; step++)
            moved -= fleet->eta * (moved - (double)fleet->centre[worker][c]);
        double update = moved - then[c];
        if (staleness->damping == SGP_DAMPING_COMPENSATE)
            update -= staleness->compensation * update * update * (now[c] - then[c]);
        next[c] =
            now[c] +
            update / (staleness->damping == SGP_DAMPING_DIVIDE && stale > 1 ? (double)stale : 1);
    }
}

static struct run *running; /* the one of this test */

static void watch(void *context, uint32_t node, sgp_time now, const struct sgp_effect *note)
{
    struct reference *reference = &running->reference;
    fleet_note(context, node, now, note);
    if (note->note.what == SGP_NOTE_ADOPTED && node == 0)
        reference->lost += note->note.amount;
    if (note->note.what == SGP_NOTE_ADDED) {
        uint64_t stale = (uint64_t)note->note.amount;
        reference->oldest = stale > reference->oldest ? stale : reference->oldest;
        reference->pushes[note->note.link.peer]++;
        if (running->fleet->options.crash_count == 0)
            add(running, note->note.link.peer, (sgp_round)stale);
    }
    if (note->note.what != SGP_NOTE_ROUND || node == 0)
        return;
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 1; i <= WORKERS; i++)
        least = reference->pushes[i] < least ? reference->pushes[i] : least;
    uint64_t ahead = reference->pushes[node] - least;
    struct sgp_node_status status;
    sgp_node_status(sgp_sim_node(running->fleet->sim, 0), &status);
    if (ahead > reference->furthest && status.round < status.last_round)
        reference->furthest = ahead;
}

static struct run *run_of(struct sgp_staleness staleness)
{
    struct run *run = running = calloc(1, sizeof *run);
    struct fleet *fleet = run->fleet = fleet_create();
    run->reference.staleness = staleness;
    struct sgp_generate_options options = {
        .family = "owner", .nodes = WORKERS + 1, .staleness = staleness};
    cr_assert(eq(int, sgp_generate(&options, &fleet->error, &fleet->topology), 0));
    fleet->options.method = sgp_method_find("downpour");
    fleet->options.dimension = DIMENSION;
    fleet->options.rounds = 60;
    fleet->options.bandwidth = 0;
    fleet->options.compute_jitter = 0.3;
    fleet->options.note = watch;
    fleet->eta = 0.05;
    for (uint32_t i = 0; i <= WORKERS; i++)
        for (uint32_t c = 0; c < DIMENSION; c++) {
            fleet->centre[i][c] = (float)((i + 1) * (c + 2) % 7) - 3;
            fleet->start[i][c] = (float)(i + c) - 2;
        }
    for (uint32_t c = 0; c < DIMENSION; c++)
        run->reference.models[0][c] = (double)fleet->start[0][c];
    return run;
}

static void end_of(struct run *run)
{
    fleet_destroy(run->fleet);
    free(run);
}

static void expect_end(const struct fleet *fleet)
{
    struct sgp_sim_summary summary = fleet_summary(fleet);
    cr_assert(eq(u32, summary.finished, WORKERS + 1));
    cr_assert(epsilon_eq(dbl, summary.weight, 1, 0));
    float first[DIMENSION], other[DIMENSION];
    sgp_sim_estimate(fleet->sim, 0, first);
    for (uint32_t i = 1; i <= WORKERS; i++) {
        sgp_sim_estimate(fleet->sim, i, other);
        cr_assert(zero(int, memcmp(first, other, sizeof first)), "node %u", i);
    }
}

/* ---- what is added ---- */

static void expect_reference(struct sgp_staleness staleness, uint32_t push, double factor)
{
    struct run *run = run_of(staleness);
    struct sgp_sim_straggler slow = {.node = 3, .factor = factor};
    run->fleet->options.stragglers = &slow;
    run->fleet->options.straggler_count = 1;
    run->fleet->options.local_steps = push;
    fleet_run(run->fleet);
    expect_end(run->fleet);
    const struct reference *reference = &run->reference;
    cr_assert(eq(i64, reference->label, 60 * WORKERS), "each update is a step");
    cr_assert(gt(u64, reference->oldest, WORKERS));
    float z[DIMENSION];
    sgp_sim_estimate(run->fleet->sim, 0, z);
    for (uint32_t c = 0; c < DIMENSION; c++)
        cr_assert(epsilon_eq(dbl, (double)z[c], reference->models[reference->label][c], 1e-4));
    end_of(run);
}

Test(stale, an_update_is_added_as_it_came)
{
    expect_reference((struct sgp_staleness){.most = 0}, 1, 4);
    expect_reference((struct sgp_staleness){.most = 0}, 5, 1.5);
}

Test(stale, a_stale_update_is_divided_by_its_staleness)
{
    expect_reference((struct sgp_staleness){.damping = SGP_DAMPING_DIVIDE}, 1, 4);
    expect_reference((struct sgp_staleness){.damping = SGP_DAMPING_DIVIDE, .most = 4}, 3, 2);
}

Test(stale, a_stale_update_is_compensated_for_the_updates_added_since)
{
    struct sgp_staleness staleness = {.damping = SGP_DAMPING_COMPENSATE, .compensation = 2};
    expect_reference(staleness, 1, 4);
    staleness.most = 2;
    expect_reference(staleness, 4, 3);
}

/* ---- who waits ---- */

/* Without a bound the slow one makes nobody wait; with one nobody is ever further ahead, and somebody is as far. */
Test(stale, nobody_is_further_ahead_than_the_bound)
{
    for (uint32_t most = 0; most <= 6; most++) {
        for (uint64_t seed = 1; seed <= fleet_many(20, 3); seed++) {
            struct run *run = run_of((struct sgp_staleness){.most = most});
            struct sgp_sim_straggler slow = {.node = 1 + seed % WORKERS, .factor = 6};
            run->fleet->options.stragglers = &slow;
            run->fleet->options.straggler_count = 1;
            run->fleet->options.compute_tail = 1.5;
            run->fleet->options.compute_tail_max = 50;
            run->fleet->options.seed = seed;
            fleet_run(run->fleet);
            expect_end(run->fleet);
            if (most > 0)
                cr_assert(eq(u64, run->reference.furthest, most), "seed %u", (unsigned)seed);
            else
                cr_assert(gt(u64, run->reference.furthest, 10), "seed %u", (unsigned)seed);
            end_of(run);
        }
    }
}

/* One of five dies for good: it is not waited for, once it is absent. */
Test(stale, a_dead_worker_holds_nobody_back)
{
    struct run *run = run_of((struct sgp_staleness){.most = 1});
    struct sgp_sim_absence gone = {.node = 2, .from = 300 * SGP_MILLISECOND, .to = SGP_TIME_NEVER};
    run->fleet->options.absences = &gone;
    run->fleet->options.absence_count = 1;
    fleet_run(run->fleet);
    cr_assert(eq(u32, fleet_summary(run->fleet).finished, WORKERS));
    cr_assert(eq(i64, run->reference.label, 60 * WORKERS));
    end_of(run);
}

/* ---- death ---- */

/* Owner and workers die in the midst of everything; the model still comes to the mean of all minima, as near as stale steps
 * do. What is told to be lost is what was added and is in no copy. */
Test(stale, an_owner_that_is_killed_goes_on_from_the_newest_copy)
{
    double lost = 0;
    for (uint64_t seed = 1; seed <= fleet_many(40, 4); seed++) {
        enum sgp_damping damping = (enum sgp_damping)(seed % 3);
        struct run *run = run_of((struct sgp_staleness){.damping = damping,
            .compensation = damping == SGP_DAMPING_COMPENSATE ? 1 : 0,
            .most = seed % 4});
        struct sgp_sim_crash crashes[] = {
            {.node = 0, .at = 300 * SGP_MILLISECOND, .back = 700 * SGP_MILLISECOND},
            {.node = 2, .at = 900 * SGP_MILLISECOND, .back = 1100 * SGP_MILLISECOND},
            {.node = 0, .at = 1200 * SGP_MILLISECOND, .back = 1250 * SGP_MILLISECOND},
        };
        for (uint32_t i = 0; i < 3; i++)
            crashes[i].at += (sgp_time)(seed * 1237 % 120) * 100000;
        crashes[2].forgets = seed % 5 == 0;
        run->fleet->options.crashes = crashes;
        run->fleet->options.crash_count = 3;
        run->fleet->options.rounds = 400;
        run->fleet->options.seed = seed;
        run->fleet->eta = 0.01;
        fleet_run(run->fleet);
        expect_end(run->fleet);
        cr_assert(eq(u64, fleet_summary(run->fleet).adopted, 2), "seed %u", (unsigned)seed);
        cr_assert(le(dbl, run->reference.lost, 2.0 * WORKERS), "seed %u", (unsigned)seed);
        lost += run->reference.lost;
        float z[DIMENSION];
        sgp_sim_estimate(run->fleet->sim, 1, z);
        for (uint32_t c = 0; c < DIMENSION; c++) {
            double goal = 0;
            for (uint32_t i = 1; i <= WORKERS; i++)
                goal += (double)run->fleet->centre[i][c] / WORKERS;
            cr_assert(epsilon_eq(dbl, (double)z[c], goal, 0.5), "seed %u", (unsigned)seed);
        }
        end_of(run);
    }
    cr_assert(gt(dbl, lost, 0), "some updates were in no copy");
}

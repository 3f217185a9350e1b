/* SPDX-License-Identifier: Apache-2.0 */
/* Owners in the simulator, which checks after every event who came in time, that these alone are added, and that it is
 * their mean: backup workers by exact numbers, and what faults do. */
#include "sim_fleet.h"

#include "sgp/method.h"

#define WORKERS 5u
#define STEP (12 * SGP_MILLISECOND) /* ten of computing, and one of latency each way */

static struct fleet *fleet_with_owner(uint32_t workers, uint32_t backup)
{
    struct fleet *fleet = fleet_create();
    struct sgp_generate_options options = {
        .family = "owner", .nodes = workers + 1, .backup = backup};
    cr_assert(eq(int, sgp_generate(&options, &fleet->error, &fleet->topology), 0));
    fleet->options.method = sgp_method_find("backup");
    fleet->options.dimension = FLEET_DIMENSION_MAX;
    fleet->options.rounds = 60;
    fleet->options.bandwidth = 0;
    fleet->eta = 0.1;
    for (uint32_t i = 0; i <= workers; i++)
        for (uint32_t c = 0; c < FLEET_DIMENSION_MAX; c++) {
            fleet->centre[i][c] = (float)((i + 1) * (c + 2) % 7) - 3;
            fleet->start[i][c] = (float)(i + c) - 2;
        }
    return fleet;
}

static void expect_end(const struct fleet *fleet, uint32_t nodes)
{
    struct sgp_sim_summary summary = fleet_summary(fleet);
    cr_assert(eq(u32, summary.finished, nodes));
    cr_assert(epsilon_eq(dbl, summary.weight, 1, 0));
    float first[FLEET_DIMENSION_MAX], other[FLEET_DIMENSION_MAX];
    sgp_sim_estimate(fleet->sim, 0, first);
    for (uint32_t i = 1; i < nodes; i++) {
        sgp_sim_estimate(fleet->sim, i, other);
        cr_assert(zero(int, memcmp(first, other, sizeof first)), "node %u", i);
    }
}

/* ---- what is not computed ---- */

static sgp_round rounds_of_the_slow_one;

static void count_rounds(
    void *context, uint32_t node, sgp_round round, double weight, const float *estimate)
{
    (void)context;
    (void)round;
    (void)weight;
    (void)estimate;
    rounds_of_the_slow_one += node == 3;
}

/* An owner's step is ten steps of a fast worker, 102 ms, in which a slow one takes not three of its own. It ends with the
 * one that is under way when it hears that it is too late: after three, at 120 ms, and not after ten, at 400. */
Test(owner, who_comes_too_late_ends_with_the_present_step)
{
    struct fleet *fleet = fleet_with_owner(WORKERS, 1);
    struct sgp_sim_straggler slow = {.node = 3, .factor = 4};
    fleet->options.stragglers = &slow;
    fleet->options.straggler_count = 1;
    fleet->options.local_steps = 10;
    fleet->options.left = count_rounds;
    rounds_of_the_slow_one = 0;
    fleet_run(fleet);
    expect_end(fleet, WORKERS + 1);
    cr_assert(ge(i64, rounds_of_the_slow_one, 40), "%d of 60", (int)rounds_of_the_slow_one);
    fleet_destroy(fleet);
}

/* ---- what is added ---- */

/* By steps from the owner's start at the mean of the workers' minima. */
static double pooled(const struct fleet *fleet, uint32_t c, uint32_t workers, sgp_round steps)
{
    double z = (double)fleet->start[0][c], centre = 0;
    for (uint32_t i = 1; i <= workers; i++)
        centre += (double)fleet->centre[i][c] / workers;
    for (sgp_round step = 0; step < steps; step++)
        z -= fleet->eta * (z - centre);
    return z;
}

Test(owner, without_backup_it_is_one_node_with_all_the_rows)
{
    for (uint32_t workers = 1; workers <= 8; workers++) {
        struct fleet *fleet = fleet_with_owner(workers, 0);
        fleet_run(fleet);
        expect_end(fleet, workers + 1);
        cr_assert(eq(u64, fleet_summary(fleet).shares, 60 * workers));
        float z[FLEET_DIMENSION_MAX];
        sgp_sim_estimate(fleet->sim, workers, z);
        for (uint32_t c = 0; c < FLEET_DIMENSION_MAX; c++)
            cr_assert(epsilon_eq(dbl, (double)z[c], pooled(fleet, c, workers, 60), 1e-5));
        fleet_destroy(fleet);
    }
}

/* Halves and quarters of small numbers are exact in float32: there is no rounding to hide behind. */
Test(owner, a_step_is_the_mean_over_those_that_arrived_to_the_bit)
{
    struct fleet *fleet = fleet_with_owner(WORKERS, 1);
    struct sgp_sim_straggler slow = {.node = 3, .factor = 1000};
    fleet->options.stragglers = &slow;
    fleet->options.straggler_count = 1;
    fleet->options.rounds = 8;
    fleet->eta = 0.5;
    fleet_run(fleet);
    float z[FLEET_DIMENSION_MAX];
    sgp_sim_estimate(fleet->sim, 0, z);
    for (uint32_t c = 0; c < FLEET_DIMENSION_MAX; c++) {
        double expected = (double)fleet->start[0][c], centre = 0;
        for (uint32_t i = 1; i <= WORKERS; i++)
            centre += i == slow.node ? 0 : (double)fleet->centre[i][c] / 4;
        for (uint32_t step = 0; step < 8; step++)
            expected -= 0.5 * (expected - centre);
        cr_assert(epsilon_eq(dbl, (double)z[c], expected, 1e-12));
    }
    fleet_destroy(fleet);
}

/* ---- who waits ---- */

struct watch {
    struct fleet *fleet;
    uint32_t slow; /* worker */
    sgp_time last[WORKERS + 1];
    uint32_t rounds[WORKERS + 1];
    uint32_t longer; /* rounds of others that were not as long as a step */
};

static void watch_note(void *context, uint32_t node, sgp_time now, const struct sgp_effect *note)
{
    struct watch *watch = ((struct fleet *)context)->options.sink->context;
    if (note->note.what != SGP_NOTE_ROUND)
        return;
    sgp_time span = now - watch->last[node];
    if (node != watch->slow && watch->rounds[node] > 0 && span != STEP)
        watch->longer++;
    watch->last[node] = now;
    watch->rounds[node]++;
}

static void no_line(void *context, enum sgp_level level, const char *text)
{
    (void)context;
    (void)level;
    (void)text;
}

/* Five workers, of which one is not to be waited for: every step lasts as long as the fourth arrival. */
static void expect_nobody_waits(const struct sgp_sim_straggler *slow,
    const struct sgp_sim_absence *absence, uint64_t late_expected)
{
    struct fleet *fleet = fleet_with_owner(WORKERS, 1);
    struct watch watch = {.fleet = fleet, .slow = slow ? slow->node : absence->node};
    struct sgp_sink sink = {.context = &watch, .line = no_line, .level = SGP_LEVEL_ERROR};
    fleet->options.sink = &sink;
    fleet->options.note = watch_note;
    fleet->options.rounds = 200;
    fleet->options.stragglers = slow;
    fleet->options.straggler_count = slow != NULL;
    fleet->options.absences = absence;
    fleet->options.absence_count = absence != NULL;
    fleet_run(fleet);
    expect_end(fleet, WORKERS + 1);
    cr_assert(zero(u32, watch.longer));
    cr_assert(eq(u32, watch.rounds[0], 200));
    uint64_t late = 0;
    for (uint32_t i = 0; i < sgp_node_link_count(sgp_sim_node(fleet->sim, 0)); i++) {
        struct sgp_peer_status peer;
        sgp_node_link_status(sgp_sim_node(fleet->sim, 0), i, &peer);
        late += peer.peer == watch.slow ? peer.shares_late : 0;
    }
    cr_assert(eq(u64, late, late_expected));
    fleet_destroy(fleet);
}

Test(owner, a_step_lasts_as_long_as_the_fourth_arrival_whatever_the_fifth_does)
{
    expect_nobody_waits(&(struct sgp_sim_straggler){.node = 3, .factor = 1.5}, NULL, 0);
    expect_nobody_waits(&(struct sgp_sim_straggler){.node = 3, .factor = 4}, NULL, 0);
    expect_nobody_waits(&(struct sgp_sim_straggler){.node = 3, .factor = 40}, NULL, 0);
    struct sgp_sim_absence stopped = {
        .node = 2, .from = 505 * SGP_MILLISECOND, .to = 1500 * SGP_MILLISECOND};
    expect_nobody_waits(NULL, &stopped,
        1); /* it is back amid a step; from then on it hears in time that it is late */
}

/* Pareto tails: the more backup workers, the less time takes a step (Chen et al. 2016, figure 4). */
Test(owner, backup_workers_cut_the_tail_off)
{
    double seconds[3];
    for (uint32_t backup = 0; backup < 3; backup++) {
        struct fleet *fleet = fleet_with_owner(8 + backup, backup);
        fleet->options.rounds = 300;
        fleet->options.compute_tail = 1.5;
        fleet->options.compute_tail_max = 100;
        fleet_run(fleet);
        seconds[backup] = (double)fleet_summary(fleet).time * 1e-9;
        fleet_destroy(fleet);
    }
    cr_assert(lt(dbl, seconds[1], 0.75 * seconds[0]), "%g and %g s", seconds[0], seconds[1]);
    cr_assert(lt(dbl, seconds[2], 0.9 * seconds[1]), "%g and %g s", seconds[1], seconds[2]);
}

/* ---- death ---- */

Test(owner, an_owner_that_is_killed_goes_on_from_the_newest_copy)
{
    for (uint64_t seed = 1; seed <= fleet_many(40, 4); seed++) {
        struct fleet *fleet = fleet_with_owner(WORKERS, seed % 3);
        struct sgp_sim_straggler slow = {.node = 4, .factor = 3};
        struct sgp_sim_crash crashes[] = {
            {.node = 0, .at = 300 * SGP_MILLISECOND, .back = 700 * SGP_MILLISECOND},
            {.node = 2, .at = 900 * SGP_MILLISECOND, .back = 1100 * SGP_MILLISECOND},
            {.node = 0, .at = 1200 * SGP_MILLISECOND, .back = 1250 * SGP_MILLISECOND},
        };
        for (uint32_t i = 0; i < 3; i++)
            crashes[i].at += (sgp_time)(seed * 1237 % 120) * 100000;
        crashes[2].forgets = seed % 5 == 0;
        fleet->options.crashes = crashes;
        fleet->options.crash_count = 3;
        fleet->options.stragglers = &slow;
        fleet->options.straggler_count = 1;
        fleet->options.rounds = 400;
        fleet->options.seed = seed;
        fleet->eta = 0.05;
        fleet_run(fleet);
        expect_end(fleet, WORKERS + 1);
        cr_assert(eq(u64, fleet_summary(fleet).adopted, 2), "seed %llu", (unsigned long long)seed);
        float z[FLEET_DIMENSION_MAX];
        sgp_sim_estimate(fleet->sim, 1, z);
        for (uint32_t c = 0; c < FLEET_DIMENSION_MAX; c++) {
            double goal = pooled(fleet, c, WORKERS, 1000);
            cr_assert(
                epsilon_eq(dbl, (double)z[c], goal, 1.5), "seed %llu", (unsigned long long)seed);
        }
        fleet_destroy(fleet);
    }
}

/* n0 dies for good; by another file n5 owns the vector, and takes the newest copy. */
static void expect_another_owner(const char *method, sgp_round steps)
{
    static const char *const names[] = {"n0", "n1", "n2", "n3", "n4", "n5"};
    struct sgp_topology *files[2];
    struct fleet *fleet = fleet_with_owner(WORKERS, 0);
    struct sgp_topology_node nodes[6] = {0};
    for (uint32_t i = 0; i < 6; i++)
        memcpy(nodes[i].name, names[i], 3);
    for (uint32_t f = 0; f < 2; f++) {
        struct sgp_topology_node some[5];
        struct sgp_edge edges[8];
        for (uint32_t i = 0; i < 5; i++)
            some[i] = nodes[i + f];
        uint32_t owner = f == 0 ? 0 : 4;
        some[owner].relay = some[owner].owns = true;
        for (uint32_t i = 0; i < 4; i++) {
            uint32_t worker = f == 0 ? i + 1 : i;
            edges[2 * i] = (struct sgp_edge){owner, worker, .fraction = SGP_FRACTION_DEFAULT};
            edges[2 * i + 1] = (struct sgp_edge){worker, owner, .fraction = SGP_FRACTION_DEFAULT};
        }
        cr_assert(zero(int, sgp_topology_create(some, 5, &fleet->error, &files[f])));
        cr_assert(zero(
            int, sgp_topology_add_phase(files[f], "owner", 1, false, edges, 8, &fleet->error)));
        cr_assert(zero(int, sgp_topology_seal(files[f], &fleet->error)), "%s", fleet->error.text);
    }
    struct sgp_sim_reload reloads[10];
    uint32_t count = 0;
    for (uint32_t i = 0; i < 5; i++)
        reloads[count++] = (struct sgp_sim_reload){i, 0, files[0]};
    for (uint32_t i = 1; i < 6; i++)
        reloads[count++] =
            (struct sgp_sim_reload){i, (600 + 37 * (sgp_time)i) * SGP_MILLISECOND, files[1]};
    struct sgp_sim_absence gone = {.node = 0, .from = 500 * SGP_MILLISECOND, .to = SGP_TIME_NEVER};
    fleet->options.absences = &gone;
    fleet->options.absence_count = 1;
    fleet->options.reloads = reloads;
    fleet->options.reload_count = count;
    fleet->options.rounds = 200;
    fleet->options.method = sgp_method_find(method);
    fleet_run(fleet);
    struct sgp_sim_summary summary = fleet_summary(fleet);
    cr_assert(eq(u32, summary.finished, 5));
    cr_assert(eq(u64, summary.adopted, 1));
    struct sgp_node_status status;
    sgp_node_status(sgp_sim_node(fleet->sim, 5), &status);
    cr_assert(eq(i64, status.round, steps));
    cr_assert(epsilon_eq(dbl, status.weight, 1, 0));
    fleet_destroy(fleet);
    sgp_topology_destroy(files[0]);
    sgp_topology_destroy(files[1]);
}

Test(owner, another_owner_by_reload_takes_the_newest_copy)
{
    expect_another_owner("backup", 200);
    expect_another_owner("downpour", 4 * 200); /* each update of four workers is a step */
}

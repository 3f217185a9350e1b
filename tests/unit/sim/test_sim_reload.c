/* SPDX-License-Identifier: Apache-2.0 */
/* Topology files that change while a fleet trains: the simulator's checkers count the mass after every
 * event, whatever the order in which nodes reload. */
#include "sim_fleet.h"

#include "sim/world.h"

#include <errno.h>

#define FILES 4
#define RELOADS_MAX 32
#define NODES 4u

static struct sgp_topology *generate(const char *family, uint32_t nodes)
{
    struct sgp_topology *topology;
    struct sgp_error error = {0};
    struct sgp_generate_options options = {.family = family, .nodes = nodes};
    cr_assert(zero(int, sgp_generate(&options, &error, &topology)), "%s", error.text);
    return topology;
}

struct script {
    struct sgp_topology *files[FILES];
    uint32_t nodes[FILES]; /* how many of the fleet's each names */
    struct sgp_sim_reload reloads[RELOADS_MAX];
    uint32_t count;
    sgp_time end;
};

/* One node after the other takes file `file` from time `from` on, in an order by lot; those that are in
 * no file before it start then. */
static void roll(struct script *script, uint32_t file, sgp_time from, struct sgp_random *random)
{
    uint32_t order[8];
    for (uint32_t i = 0; i < script->nodes[file]; i++)
        order[i] = i;
    sgp_random_shuffle(random, order, script->nodes[file]);
    for (uint32_t i = 0; i < script->nodes[file]; i++) {
        script->end = from + (sgp_time)i * 200 * SGP_MILLISECOND;
        script->reloads[script->count++] = (struct sgp_sim_reload){
            .node = order[i], .at = from == 0 ? 0 : script->end, .topology = script->files[file]};
    }
}

/* A ring of six, one-peer-exponential on six, the same on eight: each begun before the one before is
 * everywhere. Methods that want reverses have their own families. */
static struct fleet *rolling_fleet(const char *method, uint64_t seed, struct script *script)
{
    const struct sgp_method *preset = sgp_method_find(method);
    bool any = preset->wants == SGP_WANTS_ANY;
    *script = (struct script){.nodes = {6, 6, 8}};
    script->files[0] = generate(any ? "ring" : "bidirectional-ring", 6);
    script->files[1] = generate(any ? "one-peer-exponential" : "complete", 6);
    script->files[2] = generate(any ? "one-peer-exponential" : "bidirectional-ring", 8);
    struct sgp_random random;
    sgp_random_init(&random, seed, 99);
    for (uint32_t f = 0; f < 3; f++) {
        cr_assert(zero(int, sgp_method_suit(preset, script->files[f], NULL, NULL)));
        roll(script, f, f * 1300 * SGP_MILLISECOND, &random);
    }
    struct fleet *fleet = fleet_create();
    fleet->topology = script->files[2];
    fleet->eta = 0.05;
    for (uint32_t i = 0; i < 8; i++)
        fleet->centre[i][0] = (float)i;
    fleet->options.method = preset;
    fleet->options.overlap = 1;
    fleet->options.seed = seed;
    fleet->options.rounds = 3000; /* at about 5 ms: the last reload is long over */
    fleet->options.final_cycles = 30;
    fleet->options.compute_ns = 5 * SGP_MILLISECOND;
    fleet->options.compute_jitter = 0.5;
    fleet->options.loss = seed % 2 == 0 ? 0.005 : 0;
    fleet->options.through_wire = seed % 3 == 0;
    fleet->options.reloads = script->reloads;
    fleet->options.reload_count = script->count;
    return fleet;
}

static void finish(struct fleet *fleet, struct script *script)
{
    fleet_destroy(fleet); /* with the last file */
    for (uint32_t f = 0; f < 2; f++)
        sgp_topology_destroy(script->files[f]);
}

static void run_campaign(const char *method)
{
    for (uint64_t seed = 1; seed <= fleet_many(12, 2); seed++) {
        struct script script;
        struct fleet *fleet = rolling_fleet(method, seed, &script);
        fleet_open(fleet);
        int status = sgp_sim_run(fleet->sim, SGP_TIME_NEVER, &fleet->error);
        cr_assert(zero(int, status), "%s seed %llu: %s", method, (unsigned long long)seed,
            fleet->error.text);
        struct sgp_sim_summary summary = fleet_summary(fleet);
        cr_assert(eq(u32, summary.finished, 8));
        cr_assert(le(dbl, fabs(summary.weight - 8), 1e-9));
        cr_assert(ge(u64, summary.adopted, 2), "%s seed %llu: n6 and n7 take a model first", method,
            (unsigned long long)seed);
        cr_assert(lt(dbl, summary.disagreement, 0.1), "%s seed %llu: %g", method,
            (unsigned long long)seed, summary.disagreement);
        finish(fleet, &script);
    }
}

Test(sim_reload, sgp)
{
    run_campaign("sgp");
}

Test(sim_reload, osgp)
{
    run_campaign("osgp");
}

Test(sim_reload, agp)
{
    run_campaign("agp");
}

Test(sim_reload, dpsgd)
{
    run_campaign("dpsgd");
}

Test(sim_reload, adpsgd)
{
    run_campaign("adpsgd");
}

/* Without faults nobody may be left behind: no pause of more than two rounds. */
Test(sim_reload, nobody_pauses_or_jumps)
{
    struct script script;
    struct fleet *fleet = rolling_fleet("sgp", 1, &script);
    fleet_run(fleet);
    cr_assert(eq(u64, fleet_summary(fleet).jumps, 2)); /* the two that join */
    cr_assert(zero(u64, fleet_summary(fleet).absences));
    finish(fleet, &script);
}

/* Files change while processes are dead: a restart under another file settles what the ledger says. */
Test(sim_reload, restarts_under_another_file_keep_all_weight)
{
    for (uint64_t seed = 1; seed <= fleet_many(12, 2); seed++) {
        struct script script;
        struct fleet *fleet = rolling_fleet("sgp", seed, &script);
        struct sgp_sim_crash crashes[6];
        for (uint32_t i = 0; i < 6; i++) {
            sgp_time at = script.reloads[6 + i].at - 50 * SGP_MILLISECOND;
            crashes[i] = (struct sgp_sim_crash){.node = script.reloads[6 + i].node,
                .at = at,
                .back = at + (50 + 100 * (sgp_time)i) * SGP_MILLISECOND + 1};
        }
        fleet->options.crashes = crashes;
        fleet->options.crash_count = 6;
        fleet_open(fleet);
        int status = sgp_sim_run(fleet->sim, SGP_TIME_NEVER, &fleet->error);
        cr_assert(zero(int, status), "seed %llu: %s", (unsigned long long)seed, fleet->error.text);
        cr_assert(eq(u32, fleet_summary(fleet).finished, 8));
        cr_assert(le(dbl, fabs(fleet_summary(fleet).weight - 8), 1e-9));
        finish(fleet, &script);
    }
}

struct change {
    const char *method;
    struct sgp_generate_options former, next;
};

/* n0 dies after 0.9 s, and comes back with the file `next`, which it alone has. After 6 s it asks for
 * an early stop. */
static void stop_after_restart(struct fleet *fleet, struct sgp_topology *next)
{
    struct sgp_sim_reload reloads[NODES + 1] = {[NODES] = {0, SGP_SECOND, next}};
    const struct sgp_sim_crash crash = {
        .node = 0, .at = 900 * SGP_MILLISECOND, .back = 1100 * SGP_MILLISECOND};
    for (uint32_t i = 0; i < NODES; i++)
        reloads[i] = (struct sgp_sim_reload){i, 0, fleet->topology};
    fleet->options.reloads = reloads;
    fleet->options.reload_count = NODES + 1;
    fleet->options.crashes = &crash;
    fleet->options.crash_count = 1;
    fleet->options.rounds = 100000; /* no node comes there */
    fleet_open(fleet);
    cr_assert(zero(int, sgp_sim_command(fleet->sim, 6 * SGP_SECOND, 0, SGP_EVENT_ENOUGH)));
    int status = sgp_sim_run(fleet->sim, 60 * SGP_SECOND, &fleet->error);
    cr_assert(zero(int, status), "%s", fleet->error.text);
}

/* No file ever had exact cycles. So all nodes count the same rounds, and all stop. */
Test(sim_reload, a_node_with_the_former_file_hears_the_stop_of_one_that_came_back_with_another)
{
    static const struct change changes[] = {
        {"sgp", {.family = "ring"}, {.family = "complete"}},
        {"osgp", {.family = "ring"}, {.family = "complete"}},
        {"agp", {.family = "ring"}, {.family = "complete"}},
        {"dpsgd", {.family = "bidirectional-ring"}, {.family = "complete"}},
        {"adpsgd", {.family = "bidirectional-ring"}, {.family = "complete"}},
        {"backup", {.family = "owner"}, {.family = "owner", .backup = 1}},
        {"downpour", {.family = "owner"}, {.family = "owner", .staleness = {.most = 8}}},
        {"cyclic", {.family = "token"}, {.family = "token", .delay = {.most = 8}}},
    };
    for (uint32_t m = 0; m < sizeof changes / sizeof *changes; m++) {
        struct sgp_generate_options former = changes[m].former, next = changes[m].next;
        former.nodes = next.nodes = NODES;
        struct fleet *fleet = fleet_of_owners(changes[m].method, &former, 0);
        struct sgp_topology *other;
        cr_assert(zero(int, sgp_generate(&next, &fleet->error, &other)), "%s", fleet->error.text);
        cr_assert(zero(int, sgp_method_suit(fleet->options.method, fleet->topology, NULL, NULL)));
        cr_assert(zero(int, sgp_method_suit(fleet->options.method, other, NULL, NULL)));
        stop_after_restart(fleet, other);
        cr_expect(eq(u32, fleet_summary(fleet).finished, NODES), "%s", changes[m].method);
        fleet_destroy(fleet);
        sgp_topology_destroy(other);
    }
}

/* n0 has drained when its file changes; its next process reads that. n3 is not there yet when a file
 * comes for it that its first replaces. */
Test(sim_reload, a_process_begins_with_the_latest_file)
{
    struct fleet *fleet = fleet_generate("complete", 4, 0);
    struct sgp_topology *ring = generate("ring", 4);
    const struct sgp_sim_reload reloads[] = {{0, 0, fleet->topology}, {0, 2 * SGP_SECOND, ring},
        {3, 2 * SGP_SECOND, ring}, {3, SGP_SECOND, fleet->topology}};
    const struct sgp_sim_crash crashes[] = {
        {0, 3 * SGP_SECOND, 4 * SGP_SECOND, false}, {3, 3 * SGP_SECOND, 4 * SGP_SECOND, false}};
    fleet->options.start = 1;
    fleet->options.rounds = 1000;
    fleet->options.reloads = reloads;
    fleet->options.reload_count = 4;
    fleet->options.crashes = crashes;
    fleet->options.crash_count = 2;
    fleet_open(fleet);
    cr_assert(zero(int, sgp_sim_command(fleet->sim, SGP_SECOND, 0, SGP_EVENT_STOP)));
    cr_assert(
        zero(int, sgp_sim_run(fleet->sim, 5 * SGP_SECOND, &fleet->error)), "%s", fleet->error.text);
    cr_assert(eq(u64, fleet_summary(fleet).crashes, 2));
    cr_assert(eq(ptr, (void *)fleet->sim->hosts[0].file->topology, ring));
    cr_assert(eq(ptr, (void *)fleet->sim->hosts[3].file->topology, ring));
    fleet_destroy(fleet);
    sgp_topology_destroy(ring);
}

/* n0 is stopped while it has a ring, and all others get a star around it. n2 begins again without a
 * ledger, and n0 is its only neighbour. No process of n0 is there to answer that it does not know
 * n2. So n2 waits for it as long as for any dead one, looks for an estimate, and begins. */
Test(sim_reload, a_node_that_was_stopped_answers_no_greeting)
{
    struct fleet *fleet = fleet_generate("bidirectional-ring", NODES, 0);
    struct sgp_topology *star = generate("star", NODES);
    struct sgp_sim_reload reloads[2 * NODES - 1];
    const struct sgp_sim_crash crash = {2, 3 * SGP_SECOND, 4 * SGP_SECOND, true};
    for (uint32_t i = 0; i < NODES; i++)
        reloads[i] = (struct sgp_sim_reload){i, 0, fleet->topology};
    for (uint32_t i = 1; i < NODES; i++)
        reloads[NODES - 1 + i] = (struct sgp_sim_reload){i, 2 * SGP_SECOND, star};
    fleet->options.method = sgp_method_find("adpsgd");
    fleet->options.start = 1;
    fleet->options.rounds = 1000;
    fleet->options.reloads = reloads;
    fleet->options.reload_count = 2 * NODES - 1;
    fleet->options.crashes = &crash;
    fleet->options.crash_count = 1;
    fleet_open(fleet);
    cr_assert(zero(int, sgp_sim_command(fleet->sim, SGP_SECOND, 0, SGP_EVENT_STOP)));
    sgp_time begins = crash.back + SGP_SILENCE_MAX_NS + SGP_SEEK_NS;
    const struct {
        sgp_time until;
        enum sgp_node_state state;
    } steps[] = {{begins - 1, SGP_NODE_JOINING}, {begins + SGP_DIAL_MAX_NS, SGP_NODE_TRAINING},
        {SGP_TIME_NEVER, SGP_NODE_FINISHED}};
    for (uint32_t i = 0; i < 3; i++) {
        struct sgp_node_status status;
        cr_assert(zero(int, sgp_sim_run(fleet->sim, steps[i].until, &fleet->error)), "%s",
            fleet->error.text);
        sgp_node_status(sgp_sim_node(fleet->sim, 2), &status);
        cr_assert(eq(int, status.state, steps[i].state), "step %u", i);
    }
    cr_assert(eq(u32, fleet_summary(fleet).finished, NODES - 1));
    fleet_destroy(fleet);
    sgp_topology_destroy(star);
}

Test(sim_reload, equal_seeds_reload_alike)
{
    uint64_t digests[2];
    for (int i = 0; i < 2; i++) {
        struct script script;
        struct fleet *fleet = rolling_fleet("sgp", 4, &script);
        fleet_run(fleet);
        digests[i] = fleet_summary(fleet).digest;
        finish(fleet, &script);
    }
    cr_assert(eq(u64, digests[0], digests[1]));
}

Test(sim_reload, files_that_do_not_fit_are_refused)
{
    struct fleet *fleet = fleet_generate("ring", 4, 0);
    struct sgp_topology *larger = generate("ring", 5), *smaller = generate("ring", 3);
    struct sgp_sim_reload reload = {.node = 0, .at = 1, .topology = larger};
    fleet->options.reloads = &reload;
    fleet->options.reload_count = 1;
    struct sgp_error error = {0};
    cr_assert(
        eq(int, sgp_sim_create(fleet->topology, &fleet->options, &error, &fleet->sim), -EINVAL));
    cr_assert(eq(str, error.text, (char *)"n4 is not a node of the fleet"));
    reload = (struct sgp_sim_reload){.node = 3, .at = 1, .topology = smaller};
    error = (struct sgp_error){0};
    cr_assert(
        eq(int, sgp_sim_create(fleet->topology, &fleet->options, &error, &fleet->sim), -EINVAL));
    cr_assert(eq(str, error.text, (char *)"n3 is not in the file that it reloads"));
    sgp_topology_destroy(larger);
    sgp_topology_destroy(smaller);
    fleet->sim = NULL;
    fleet_destroy(fleet);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Each fault of the simulator by itself: that it does what it says, that what must survive it does, and
 * that it ends. */
#include "sim_fleet.h"

#include "sim/world.h"

#include <errno.h>

static struct fleet *eight(void)
{
    struct fleet *fleet = fleet_generate("one-peer-exponential", 8, 0);
    for (uint32_t i = 0; i < 8; i++)
        fleet->start[i][0] = (float)(i * i);
    fleet->options.rounds = 1500; /* at 11 ms: all faults below end before training does */
    fleet->options.final_cycles = 20;
    return fleet;
}

/* Nothing lost, everybody there, all of one mind: on what is true of every fault here. */
static struct sgp_sim_summary run_through(struct fleet *fleet)
{
    fleet_run(fleet);
    struct sgp_sim_summary summary = fleet_summary(fleet);
    cr_assert(eq(u32, summary.finished, fleet->topology->node_count));
    cr_assert(epsilon_eq(dbl, summary.weight, fleet->topology->node_count, 1e-11));
    cr_assert(eq(dbl, summary.weight_in_flight, 0));
    cr_assert(lt(dbl, summary.disagreement, 1e-3));
    return summary;
}

Test(faults, a_cut_of_one_direction_is_seen_by_those_who_hear_nothing)
{
    static const uint32_t one[] = {3};
    uint32_t absent[2];
    for (int run = 0; run < 2; run++) {
        struct sgp_sim_cut cut = {one, 1, SGP_SECOND, 9 * SGP_SECOND, SGP_SIM_OUTWARD};
        cut.way = run == 0 ? SGP_SIM_OUTWARD : SGP_SIM_INWARD;
        struct fleet *fleet = eight();
        fleet->options.cuts = &cut;
        fleet->options.cut_count = 1;
        absent[run] = (uint32_t)run_through(fleet).absences;
        fleet_destroy(fleet);
    }
    /* three targets and three sources of n3: those who are still heard find nobody absent, but a
       connection needs both directions, so in the end nobody has one */
    cr_assert(ge(u32, absent[0], 3));
    cr_assert(ge(u32, absent[1], 3));
}

Test(faults, a_clog_holds_one_link_and_keeps_the_order)
{
    struct sgp_sim_clog clog = {0, 1, SGP_SECOND, 2 * SGP_SECOND};
    struct fleet *fleet = fleet_generate("ring", 4, 0);
    fleet->options.rounds = 200; /* 2.2 s without it */
    fleet->options.clogs = &clog;
    fleet->options.clog_count = 1;
    fleet->start[0][0] = 1;
    fleet->options.final_cycles = 20;
    struct sgp_sim_summary summary = run_through(fleet);
    cr_assert(eq(u64, summary.absences, 0), "a second of silence is no absence");
    cr_assert(eq(u64, summary.connections, 4), "and breaks nothing");
    sgp_time longest = 0;
    for (uint32_t k = 1; k < fleet->row_count; k++)
        if (fleet->rows[k].time - fleet->rows[k - 1].time > longest)
            longest = fleet->rows[k].time - fleet->rows[k - 1].time;
    cr_assert(ge(i64, longest, SGP_SECOND - 20 * SGP_MILLISECOND), "all waited for it");
    fleet_destroy(fleet);
}

Test(faults, a_swizzle_is_drawn_from_the_seed)
{
    uint64_t digests[3];
    for (uint64_t run = 0; run < 3; run++) {
        struct sgp_sim_swizzle swizzle = {2, SGP_SECOND, 10 * SGP_SECOND};
        struct fleet *fleet = eight();
        fleet->options.seed = run == 2 ? 2 : 1;
        fleet->options.swizzles = &swizzle;
        fleet->options.swizzle_count = 1;
        struct sgp_sim_summary summary = run_through(fleet);
        cr_assert(ge(u64, summary.absences, 1));
        digests[run] = summary.digest;
        fleet_destroy(fleet);
    }
    cr_assert(eq(u64, digests[0], digests[1]));
    cr_assert(ne(u64, digests[0], digests[2]));
}

Test(faults, who_keeps_a_connection_that_is_lost_finds_out_by_silence_or_by_the_next)
{
    const struct sgp_sim_half_open half[] = {{1, 0, SGP_SECOND}, {2, 6, 2 * SGP_SECOND}};
    struct fleet *fleet = eight();
    fleet->options.half_opens = half;
    fleet->options.half_open_count = 2;
    struct sgp_sim_summary summary = run_through(fleet);
    cr_assert(eq(u64, summary.half_opened, 3)); /* 0 -> 1 at its target; 2 -> 6 and 6 -> 2 */
    cr_assert(ge(u64, summary.connections, 26));
    cr_assert(lt(i64, summary.time, 30 * SGP_SECOND));
    for (uint32_t i = 0; i < fleet->sim->connection_count; i++) {
        const struct sgp_sim_connection *connection = fleet->sim->connections[i];
        bool kept = connection && connection->references == 0;
        kept = kept && connection->ends[SGP_SIM_SOURCE] != SGP_SIM_END_OPEN &&
               connection->ends[SGP_SIM_TARGET] != SGP_SIM_END_OPEN;
        cr_assert(not(kept), "connection %u is kept for nobody", i);
    }
    fleet_destroy(fleet);
}

/* A message takes 0.6 s, so an answer comes more than a second after what it answers. */
Test(faults, a_fleet_at_rest_is_silent_however_long_a_message_takes)
{
    enum { NODES = 16 };
    struct fleet *fleet = fleet_generate("bidirectional-ring", NODES, 0);
    fleet->options.rounds = 200;
    fleet->options.latency_ns = 600 * SGP_MILLISECOND;
    fleet_open(fleet);
    for (uint32_t i = 0; i < NODES; i++) {
        sgp_time at = 5 * SGP_SECOND + i * SGP_MILLISECOND;
        cr_assert(zero(int, sgp_sim_command(fleet->sim, at, i, SGP_EVENT_PAUSE)));
        cr_assert(zero(int, sgp_sim_command(fleet->sim, 200 * SGP_SECOND, i, SGP_EVENT_RESUME)));
    }
    uint64_t messages[2];
    for (int i = 0; i < 2; i++) {
        cr_assert(zero(int, sgp_sim_run(fleet->sim, (20 + i * 170) * SGP_SECOND, &fleet->error)));
        messages[i] = fleet_summary(fleet).messages;
    }
    cr_assert(eq(u64, messages[1], messages[0]));
    cr_assert(
        zero(int, sgp_sim_run(fleet->sim, SGP_TIME_NEVER, &fleet->error)), "%s", fleet->error.text);
    cr_assert(eq(u32, fleet_summary(fleet).finished, NODES));
    fleet_destroy(fleet);
}

/* All nodes rest for long, n0 goes on first, and the others follow. Later n7 is paused until the others have finished. */
Test(faults, a_node_that_goes_on_after_a_long_rest_takes_no_living_neighbour_for_absent)
{
    enum { NODES = 8 };
    struct fleet *fleet = eight();
    fleet->options.rounds = 400;
    fleet_open(fleet);
    for (uint32_t i = 0; i < NODES; i++) {
        sgp_time resumed = (100 + 2 * i) * SGP_SECOND;
        cr_assert(zero(int, sgp_sim_command(fleet->sim, SGP_SECOND, i, SGP_EVENT_PAUSE)));
        cr_assert(zero(int, sgp_sim_command(fleet->sim, resumed, i, SGP_EVENT_RESUME)));
    }
    cr_assert(zero(int, sgp_sim_run(fleet->sim, 114 * SGP_SECOND + SGP_SECOND / 2, &fleet->error)));
    cr_assert(eq(u64, fleet_summary(fleet).absences, 0));
    cr_assert(zero(int, sgp_sim_command(fleet->sim, 115 * SGP_SECOND, 7, SGP_EVENT_PAUSE)));
    cr_assert(zero(int, sgp_sim_command(fleet->sim, 300 * SGP_SECOND, 7, SGP_EVENT_RESUME)));
    cr_assert(zero(int, sgp_sim_run(fleet->sim, 299 * SGP_SECOND, &fleet->error)));
    struct sgp_node_status status;
    sgp_node_status(sgp_sim_node(fleet->sim, 0), &status);
    cr_assert(eq(int, status.state, SGP_NODE_FINISHED));
    cr_assert(
        zero(int, sgp_sim_run(fleet->sim, SGP_TIME_NEVER, &fleet->error)), "%s", fleet->error.text);
    struct sgp_sim_summary summary = fleet_summary(fleet);
    cr_assert(eq(u32, summary.finished, NODES));
    cr_assert(eq(u64, summary.absences, 0));
    fleet_destroy(fleet);
}

/* n0 is paused while n1 ends its rounds, so no heartbeats are due. Then n0's machine loses its power and its state. */
Test(faults, who_comes_back_to_one_at_rest_gets_in_beside_its_former_connection)
{
    const struct sgp_sim_half_open half = {0, 1, 10 * SGP_SECOND};
    const struct sgp_sim_crash crash = {
        .node = 0, .at = 10 * SGP_SECOND + 1, .back = 11 * SGP_SECOND, .forgets = true};
    struct fleet *fleet = fleet_generate("ring", 2, 0);
    fleet->start[0][0] = 1;
    fleet->options.rounds = 200; /* 2.2 s */
    fleet->options.half_opens = &half;
    fleet->options.half_open_count = 1;
    fleet->options.crashes = &crash;
    fleet->options.crash_count = 1;
    fleet_open(fleet);
    cr_assert(zero(int, sgp_sim_command(fleet->sim, SGP_SECOND, 0, SGP_EVENT_PAUSE)));
    cr_assert(zero(int, sgp_sim_run(fleet->sim, 9 * SGP_SECOND, &fleet->error)));
    struct sgp_node_status status;
    sgp_node_status(sgp_sim_node(fleet->sim, 1), &status);
    cr_assert(eq(int, status.state, SGP_NODE_FINISHED));
    cr_assert(
        zero(int, sgp_sim_run(fleet->sim, SGP_TIME_NEVER, &fleet->error)), "%s", fleet->error.text);
    struct sgp_sim_summary summary = fleet_summary(fleet);
    cr_assert(eq(u64, summary.half_opened, 2));
    cr_assert(eq(u32, summary.finished, 2));
    cr_assert(lt(dbl, summary.disagreement, 1e-3));
    cr_assert(lt(i64, summary.time, 20 * SGP_SECOND));
    fleet_destroy(fleet);
}

/* Leaps add up; past the end of time a clock stands still and overflows nothing. */
Test(faults, a_clock_that_leaps_too_far_stays_at_the_end_of_time)
{
    struct sgp_sim_clock clocks[16];
    for (uint32_t i = 0; i < 16; i++)
        clocks[i] = (struct sgp_sim_clock){2, SGP_SECOND, SGP_SIM_TIME_MAX};
    struct fleet *fleet = eight();
    fleet->options.clocks = clocks;
    fleet->options.clock_count = 16;
    fleet_open(fleet);
    cr_assert(
        zero(int, sgp_sim_run(fleet->sim, 2 * SGP_SECOND, &fleet->error)), "%s", fleet->error.text);
    cr_assert(eq(i64, fleet->sim->hosts[2].clock, 2 * SGP_SIM_TIME_MAX));
    fleet_destroy(fleet);
}

Test(faults, a_clock_that_leaps_or_stands_still_costs_a_reconnect_at_most)
{
    const struct sgp_sim_clock clocks[] = {{1, SGP_SECOND, 3600 * SGP_SECOND},
        {4, 2 * SGP_SECOND, -5 * SGP_SECOND}, {4, 9 * SGP_SECOND, 40 * SGP_SECOND},
        {6, 3 * SGP_SECOND, -4 * SGP_SECOND}, {6, 4 * SGP_SECOND, -4 * SGP_SECOND}};
    struct fleet *fleet = eight();
    fleet->options.clocks = clocks;
    fleet->options.clock_count = 5;
    struct sgp_sim_summary summary = run_through(fleet);
    cr_assert(ge(u64, summary.absences, 1), "after an hour everybody seems to have been silent");
    cr_assert(lt(i64, summary.time, 60 * SGP_SECOND));
    fleet_destroy(fleet);
}

/* With shape 1.1 a job in a hundred takes over 65 times as long. */
Test(faults, a_heavy_tail_slows_rounds_and_its_cap_bounds_them)
{
    sgp_time time[2];
    for (int run = 0; run < 2; run++) {
        struct fleet *fleet = fleet_generate("complete", 8, 0);
        fleet->options.rounds = 200;
        fleet->options.compute_tail = 1.1;
        fleet->options.compute_tail_max = run == 0 ? 1 : 50;
        time[run] = run_through(fleet).time;
        fleet_destroy(fleet);
    }
    cr_assert(lt(i64, time[0], 4 * SGP_SECOND));
    cr_assert(gt(i64, time[1], 200 * 50 * SGP_MILLISECOND));
    cr_assert(lt(i64, time[1], 200 * 520 * SGP_MILLISECOND));
}

/* ---- checkpoints ---- */

/* A node that is told to stop writes one when all is settled: it goes on from there to the bit. */
Test(checkpoints, after_a_clean_end_nothing_was_forgotten)
{
    struct sgp_sim_crash crash = {.node = 3, .at = 5 * SGP_SECOND, .back = 6 * SGP_SECOND};
    struct fleet *fleet = eight();
    fleet->options.checkpoint_ns = 3600 * SGP_SECOND;
    fleet->options.crashes = &crash;
    fleet->options.crash_count = 1;
    fleet_open(fleet);
    cr_assert(eq(int, sgp_sim_command(fleet->sim, SGP_SECOND, 3, SGP_EVENT_STOP), 0));
    cr_assert(eq(int, sgp_sim_run(fleet->sim, 5 * SGP_SECOND - 1, &fleet->error), 0));
    uint64_t before =
        sgp_sim_trainer(fleet->sim, 3)->methods->digest(sgp_sim_trainer(fleet->sim, 3));
    cr_assert(eq(u32, fleet->notes[SGP_NOTE_DRAINED], 1));
    cr_assert(eq(int, sgp_sim_run(fleet->sim, 6 * SGP_SECOND, &fleet->error), 0));
    uint64_t after =
        sgp_sim_trainer(fleet->sim, 3)->methods->digest(sgp_sim_trainer(fleet->sim, 3));
    cr_assert(eq(u64, before, after));
    cr_assert(eq(u64, fleet_summary(fleet).exact, 1));
    cr_assert(eq(int, sgp_sim_run(fleet->sim, SGP_TIME_NEVER, &fleet->error), 0), "%s",
        fleet->error.text);
    struct sgp_sim_summary summary = fleet_summary(fleet);
    cr_assert(eq(u32, summary.finished, 8));
    cr_assert(epsilon_eq(dbl, summary.weight, 8, 1e-11));
    cr_assert(lt(dbl, summary.disagreement, 1e-3));
    fleet_destroy(fleet);
}

/* In the middle of training the record has moved on since: the checkpoint is an estimate, and one
 * whose record is lost as well begins with what its neighbours have. */
Test(checkpoints, a_superseded_one_is_a_guess)
{
    const struct sgp_sim_crash crashes[] = {
        {.node = 3, .at = 2 * SGP_SECOND + 5 * SGP_MILLISECOND, .back = 3 * SGP_SECOND},
        {.node = 5, .at = 4 * SGP_SECOND, .back = 5 * SGP_SECOND, .forgets = true}};
    struct fleet *fleet = eight();
    fleet->options.checkpoint_ns = SGP_SECOND;
    fleet->options.crashes = crashes;
    fleet->options.crash_count = 2;
    fleet_run(fleet);
    struct sgp_sim_summary summary = fleet_summary(fleet);
    cr_assert(eq(u32, summary.finished, 8));
    cr_assert(eq(u64, summary.crashes, 2));
    cr_assert(eq(u64, summary.exact, 0));
    cr_assert(eq(u64, summary.adopted, 2));
    fleet_destroy(fleet);
}

/* ---- what nobody can get out of ---- */

Test(stall, who_waits_for_whom_is_told_to_the_end)
{
    struct sgp_sim_absence never = {3, 0, SGP_TIME_NEVER};
    struct fleet *fleet = fleet_generate("ring", 4, 0);
    fleet->options.absences = &never;
    fleet->options.absence_count = 1;
    fleet_open(fleet);
    cr_assert(eq(int, sgp_sim_run(fleet->sim, SGP_TIME_NEVER, &fleet->error), SGP_E_STATE));
    cr_assert(strstr(fleet->error.text,
                  ": n0, joining in round 0, waits for hello of n3, gone in round 0") != NULL,
        "%s", fleet->error.text);
    fleet_destroy(fleet);
}

/* n1 missed the file that gives it n2 as a neighbour, so nobody will ever greet n2. The others end. */
Test(stall, a_node_that_no_neighbour_names_is_none)
{
    static const struct sgp_edge edges[] = {{0, 1, -1}, {1, 0, -1}, {1, 2, -1}, {2, 1, -1}};
    struct fleet *former = fleet_of_edges(2, edges, 2), *fleet = fleet_of_edges(3, edges, 4);
    const struct sgp_sim_reload reloads[] = {
        {0, 0, fleet->topology}, {1, 0, former->topology}, {2, 0, fleet->topology}};
    fleet->options.reloads = reloads;
    fleet->options.reload_count = 3;
    fleet->options.rounds = 10;
    fleet_open(fleet);
    int status = sgp_sim_run(fleet->sim, SGP_TIME_NEVER, &fleet->error);
    cr_assert(zero(int, status), "%s", fleet->error.text);
    for (uint32_t i = 0; i < 3; i++) {
        struct sgp_node_status node;
        sgp_node_status(sgp_sim_node(fleet->sim, i), &node);
        cr_assert(eq(int, node.state, i == 2 ? SGP_NODE_JOINING : SGP_NODE_FINISHED));
        cr_assert(eq(int, sgp_sim_is_cut_off(fleet->sim, i), i == 2));
    }
    fleet_destroy(fleet);
    fleet_destroy(former);
}

/* Nobody hears anybody: each of a ring waits for the next. Names as long as may be: three links of the
 * chain fit, and the name of the fourth. */
Test(stall, a_chain_of_long_names_is_told_as_far_as_it_fits)
{
    enum { NODES = 8 };
    struct sgp_topology_node nodes[NODES] = {0};
    struct sgp_edge edges[NODES];
    struct sgp_sim_cut cuts[NODES];
    uint32_t alone[NODES];
    char text[SGP_TEXT_BYTES];
    size_t used = 0;
    for (uint32_t i = 0; i < NODES; i++) {
        memset(nodes[i].name, 'a' + (int)i, SGP_NAME_BYTES - 1);
        edges[i] = (struct sgp_edge){.source = i, .target = (i + 1) % NODES, .fraction = -1};
        alone[i] = i;
        cuts[i] = (struct sgp_sim_cut){&alone[i], 1, 0, SGP_TIME_NEVER, SGP_SIM_BOTH_WAYS};
    }
    for (uint32_t i = 0; i < 3; i++)
        used += (size_t)snprintf(text + used, sizeof text - used,
            "%s, joining in round 0, waits for hello of ", nodes[i].name);
    (void)snprintf(text + used, sizeof text - used, "%s", nodes[3].name);
    struct fleet *fleet = fleet_create();
    cr_assert(zero(int, sgp_topology_create(nodes, NODES, NULL, &fleet->topology)));
    cr_assert(
        zero(int, sgp_topology_add_phase(fleet->topology, "p", 1, false, edges, NODES, NULL)));
    cr_assert(zero(int, sgp_topology_seal(fleet->topology, NULL)));
    fleet->options.cuts = cuts;
    fleet->options.cut_count = NODES;
    fleet_open(fleet);
    cr_assert(eq(int, sgp_sim_run(fleet->sim, SGP_TIME_NEVER, &fleet->error), SGP_E_STATE));
    const char *told = strstr(fleet->error.text, ": aaa");
    cr_assert(told != NULL, "%s", fleet->error.text);
    cr_assert(eq(str, (char *)(uintptr_t)told + 2, text));
    fleet_destroy(fleet);
}

Test(options, faults_out_of_range_are_refused_with_the_reason)
{
    const struct sgp_sim_clog clog = {1, 1, 0, 1};
    const struct sgp_sim_swizzle swizzle = {0, 1, SGP_TIME_NEVER};
    const struct sgp_sim_half_open half = {0, 9, 1};
    const struct sgp_sim_clock clock = {0, 1, 0};
    const char *const texts[] = {"a clog is between two nodes and must end after it begins",
        "a swizzle must end after it begins", "a half-open link is between two nodes",
        "a clock must leap or stand still for some time",
        "a tail has a shape above 0 and a greatest factor of at least 1",
        "an absence must end after it begins", "a cut must end after it begins",
        "a reload names no node or no time", "latency and compute time must be from 0 to 73 years"};
    const struct sgp_sim_absence absence = {0, 1, SGP_SIM_TIME_MAX + 1};
    const struct sgp_sim_cut cut = {NULL, 0, SGP_SIM_TIME_MAX + 1, SGP_TIME_NEVER, 0};
    for (int i = 0; i < 9; i++) {
        struct fleet *fleet = fleet_generate("ring", 3, 0);
        fleet->options.clogs = &clog;
        fleet->options.clog_count = i == 0;
        fleet->options.swizzles = &swizzle;
        fleet->options.swizzle_count = i == 1;
        fleet->options.half_opens = &half;
        fleet->options.half_open_count = i == 2;
        fleet->options.clocks = &clock;
        fleet->options.clock_count = i == 3;
        fleet->options.compute_tail = i == 4;
        fleet->options.absences = &absence;
        fleet->options.absence_count = i == 5;
        fleet->options.cuts = &cut;
        fleet->options.cut_count = i == 6;
        const struct sgp_sim_reload reload = {0, SGP_TIME_NEVER, fleet->topology};
        fleet->options.reloads = &reload;
        fleet->options.reload_count = i == 7;
        fleet->options.latency_ns = i == 8 ? SGP_SIM_TIME_MAX + 1 : 0;
        cr_assert(eq(int,
            sgp_sim_create(fleet->topology, &fleet->options, &fleet->error, &fleet->sim), -EINVAL));
        cr_assert(eq(str, fleet->error.text, (char *)(uintptr_t)texts[i]));
        fleet_destroy(fleet);
    }
}

/* ---- what comes too slowly, and who takes too long ---- */

#define PAYLOAD_DIMENSION 20000 /* 80 kB */

static int make_large(void *context, uint32_t node, struct sgp_trainer **ret_trainer)
{
    static const float zero[PAYLOAD_DIMENSION];
    (void)context;
    (void)node;
    return sgp_quadratic_create(PAYLOAD_DIMENSION, zero, zero, 0, ret_trainer);
}

/* Two nodes at so many bytes a second, for as long as it takes. */
static struct fleet *thin_pair(const char *family, double bandwidth)
{
    struct fleet *fleet = fleet_generate(family, 2, 0);
    fleet->options.dimension = PAYLOAD_DIMENSION;
    fleet->options.trainer = make_large;
    fleet->options.left = NULL;
    fleet->options.rounds = 4;
    fleet->options.bandwidth = bandwidth;
    fleet_run(fleet);
    cr_assert(epsilon_eq(dbl, fleet_summary(fleet).weight, 2, 1e-11));
    cr_assert(eq(u32, fleet_summary(fleet).finished, 2));
    return fleet;
}

Test(faults, a_payload_comes_over_a_thin_line_and_not_over_none)
{
    struct fleet *fleet = thin_pair("ring", 1.1 * SGP_PAYLOAD_LEAST); /* 71 s a share */
    cr_assert(eq(u32, fleet->notes[SGP_NOTE_TRICKLES], 0));
    cr_assert(eq(u32, fleet->notes[SGP_NOTE_DOWN], 0));
    fleet_destroy(fleet);
    fleet = thin_pair("ring", 0.9 * SGP_PAYLOAD_LEAST);
    cr_assert(gt(u32, fleet->notes[SGP_NOTE_TRICKLES], 0));
    fleet_destroy(fleet);
}

/* All shares of an exact cycle are waited for: if one began again after 30 s, the cycle would never end. */
Test(faults, an_exact_cycle_ends_over_a_line_that_is_too_thin)
{
    struct fleet *fleet = thin_pair("all-reduce-direct", 0.9 * SGP_PAYLOAD_LEAST);
    cr_assert(gt(u32, fleet->notes[SGP_NOTE_TRICKLES], 0));
    cr_assert(eq(u32, fleet->notes[SGP_NOTE_DOWN], 0));
    fleet_destroy(fleet);
}

/* A step of n0 takes 10 s in the place of 10 ms: a second of each is waited for. */
Test(faults, patience_ends_the_waiting_for_one_that_computes)
{
    static const struct sgp_sim_straggler straggler = {0, 1000};
    sgp_round rounds[2];
    for (int run = 0; run < 2; run++) {
        struct fleet *fleet = fleet_generate("ring", 4, 0);
        fleet->options.rounds = 100000;
        fleet->options.stragglers = &straggler;
        fleet->options.straggler_count = 1;
        fleet->options.patience_ns = run == 0 ? 0 : SGP_SECOND;
        fleet_open(fleet);
        int status = sgp_sim_run(fleet->sim, 60 * SGP_SECOND, &fleet->error);
        cr_assert(zero(int, status), "%s", fleet->error.text);
        struct sgp_node_status node;
        sgp_node_status(sgp_sim_node(fleet->sim, 2), &node);
        rounds[run] = node.round;
        cr_assert(epsilon_eq(dbl, fleet_summary(fleet).weight, 4, 1e-11));
        cr_assert(eq(int, fleet->notes[SGP_NOTE_OVERDUE] > 0, run > 0));
        fleet_destroy(fleet);
    }
    cr_assert(le(i64, rounds[0], 12));
    cr_assert(ge(i64, rounds[1], 2000), "half of what three make without it"); /* 11 ms a round */
}

/* n3 of four, which is cut off from `from` to 61 s; a step takes so long, and a message as long as another. */
static struct fleet *one_cut_off(sgp_time from, sgp_time step, sgp_time latency)
{
    static const uint32_t one[] = {3};
    static struct sgp_sim_cut cut;
    cut = (struct sgp_sim_cut){one, 1, from, 61 * SGP_SECOND, SGP_SIM_BOTH_WAYS};
    struct fleet *fleet = fleet_generate("one-peer-exponential", 4, 0);
    fleet->options.rounds = 100000;
    fleet->options.compute_ns = step;
    fleet->options.latency_ns = latency;
    fleet->options.cuts = &cut;
    fleet->options.cut_count = 1;
    return fleet;
}

static struct sgp_node_status status_at(struct fleet *fleet, sgp_time until, uint32_t node)
{
    cr_assert(zero(int, sgp_sim_run(fleet->sim, until, &fleet->error)), "%s", fleet->error.text);
    struct sgp_node_status status;
    sgp_node_status(sgp_sim_node(fleet->sim, node), &status);
    return status;
}

/* A round alone is a step, one with others a step and the time of the shares. One that came back ahead would wait. */
Test(faults, one_that_was_cut_off_comes_back_a_little_behind_the_others)
{
    static const sgp_time steps[] = {10 * SGP_MILLISECOND, 100 * SGP_MILLISECOND};
    for (int run = 0; run < 2; run++) {
        struct fleet *fleet = one_cut_off(11 * SGP_SECOND, steps[run], 10 * SGP_MILLISECOND);
        fleet_open(fleet);
        sgp_round before = status_at(fleet, 30 * SGP_SECOND, 3).round;
        sgp_round others_before = status_at(fleet, 30 * SGP_SECOND, 0).round;
        sgp_round alone = status_at(fleet, 60 * SGP_SECOND, 3).round - before;
        sgp_round others = status_at(fleet, 60 * SGP_SECOND, 0).round - others_before;
        cr_assert(lt(i64, alone, others));
        cr_assert(gt(dbl, (double)alone, 0.7 * (double)others), "it trains on");
        bool rests = false;
        for (sgp_time ms = 1; ms < 200; ms++)
            rests |= status_at(fleet, 60 * SGP_SECOND + ms * SGP_MILLISECOND, 3).waiting ==
                     SGP_WAITING_PACE;
        cr_assert(rests, "and says for what it waits");
        for (uint32_t i = 0; i < 4; i++)
            cr_assert(epsilon_eq(dbl, status_at(fleet, 70 * SGP_SECOND, i).weight, 1, 0.6),
                "nobody has gathered it");
        cr_assert(ge(u32, fleet->notes[SGP_NOTE_JUMP], 1));
        sgp_round apart =
            status_at(fleet, 70 * SGP_SECOND, 3).round - status_at(fleet, 70 * SGP_SECOND, 0).round;
        cr_assert(le(i64, llabs(apart), 1));
        fleet_destroy(fleet);
    }
}

/* The other node of a pair may come back as well as one of many, and a run that is over by then had half of the rows. */
Test(faults, the_survivor_of_a_pair_keeps_the_pace_that_both_had)
{
    static const uint32_t one[] = {1};
    static const struct sgp_sim_cut cut = {
        one, 1, 20 * SGP_SECOND, 61 * SGP_SECOND, SGP_SIM_BOTH_WAYS};
    struct fleet *fleet = fleet_generate("complete", 2, 0);
    fleet->options.rounds = 100000;
    fleet->options.compute_ns = SGP_MILLISECOND;
    fleet->options.latency_ns = 10 * SGP_MILLISECOND;
    fleet->options.cuts = &cut;
    fleet->options.cut_count = 1;
    fleet_open(fleet);
    sgp_round together = status_at(fleet, 20 * SGP_SECOND, 0).round;
    sgp_round before = status_at(fleet, 40 * SGP_SECOND, 0).round;
    sgp_round alone = status_at(fleet, 60 * SGP_SECOND, 0).round - before;
    cr_assert(le(i64, alone, together), "in as many seconds");
    cr_assert(ge(i64, alone, together / 2), "it trains on");
    sgp_round apart =
        status_at(fleet, 70 * SGP_SECOND, 0).round - status_at(fleet, 70 * SGP_SECOND, 1).round;
    cr_assert(le(i64, llabs(apart), 1), "the other takes its round");
    fleet_destroy(fleet);
}

/* It was started again 20 s into the run: how long that took says nothing of a round. */
Test(faults, the_pace_of_one_that_was_started_again_is_that_of_its_rounds)
{
    static const struct sgp_sim_crash crash = {
        .node = 3, .at = 20 * SGP_SECOND, .back = 21 * SGP_SECOND};
    struct fleet *fleet = one_cut_off(23 * SGP_SECOND, 100 * SGP_MILLISECOND, 10 * SGP_MILLISECOND);
    fleet->options.crashes = &crash;
    fleet->options.crash_count = 1;
    fleet_open(fleet);
    sgp_round before = status_at(fleet, 40 * SGP_SECOND, 3).round;
    sgp_round alone = status_at(fleet, 60 * SGP_SECOND, 3).round - before;
    cr_assert(gt(i64, alone, 140), "of at most 200");
    fleet_destroy(fleet);
}

/* What is ordered of one that rests is done at once. */
Test(faults, one_that_keeps_to_the_pace_alone_can_be_stopped_and_paused)
{
    struct fleet *fleet = one_cut_off(11 * SGP_SECOND, 100 * SGP_MILLISECOND, 90 * SGP_MILLISECOND);
    fleet_open(fleet);
    sgp_time now = 40 * SGP_SECOND;
    for (int i = 0; i < 100 && status_at(fleet, now, 3).waiting != SGP_WAITING_PACE; i++)
        now += 10 * SGP_MILLISECOND;
    cr_assert(eq(int, status_at(fleet, now, 3).waiting, SGP_WAITING_PACE));
    cr_assert(zero(int, sgp_sim_command(fleet->sim, now + 1, 3, SGP_EVENT_PAUSE)));
    cr_assert(eq(int, status_at(fleet, now + 2, 3).state, SGP_NODE_PAUSED));
    cr_assert(zero(int, sgp_sim_command(fleet->sim, now + 3, 3, SGP_EVENT_RESUME)));
    cr_assert(zero(int, sgp_sim_command(fleet->sim, now + 4, 3, SGP_EVENT_STOP)));
    cr_assert(eq(int, status_at(fleet, now + 5, 3).state, SGP_NODE_DRAINING));
    fleet_destroy(fleet);
}

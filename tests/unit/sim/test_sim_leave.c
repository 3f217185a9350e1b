/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that leave for good, in virtual time and among faults: their mass is somewhere at any moment,
 * and in the end the total weight is the number of those who stayed. */
#include "sim_fleet.h"

static double surplus_of(const struct fleet *fleet)
{
    double surplus = 0;
    for (uint32_t i = 0; i < fleet->topology->node_count; i++) {
        struct sgp_node_status status;
        sgp_node_status(sgp_sim_node(fleet->sim, i), &status);
        surplus += status.surplus;
    }
    return surplus;
}

static bool has_left(const struct fleet *fleet, uint32_t node)
{
    struct sgp_node_status status;
    sgp_node_status(sgp_sim_node(fleet->sim, node), &status);
    return status.left;
}

/* All agree on 3 before one leaves: scaling down leaves the estimate as it is. */
Test(leave, three_of_four_go_on_with_the_weight_of_three)
{
    const struct sgp_method *method;
    for (uint32_t m = 0; (method = sgp_method_at(m)) != NULL; m++) {
        struct fleet *fleet = fleet_generate("bidirectional-ring", 4, 0);
        fleet->options.method = method;
        fleet->options.rounds = 300;
        fleet->options.compute_jitter = 0.5;
        for (uint32_t i = 0; i < 4; i++)
            fleet->start[i][0] = 3;
        fleet_open(fleet);
        cr_assert(zero(int, sgp_sim_command(fleet->sim, SGP_SECOND, 2, SGP_EVENT_LEAVE)));
        cr_assert(zero(int, sgp_sim_run(fleet->sim, SGP_TIME_NEVER, &fleet->error)), "%s: %s",
            method->name, fleet->error.text);
        cr_assert(has_left(fleet, 2), "%s", method->name);
        cr_assert(eq(u32, fleet_summary(fleet).finished, 3), "%s", method->name);
        cr_assert(epsilon_eq(dbl, surplus_of(fleet), 0, 1e-12), "%s", method->name);
        cr_assert(epsilon_eq(dbl, fleet_summary(fleet).weight, 3, 1e-11), "%s", method->name);
        cr_assert(eq(u32, fleet->notes[SGP_NOTE_INHERITED], 1));
        cr_assert(lt(dbl, fleet_summary(fleet).disagreement, 1e-4), "of those who stayed");
        for (uint32_t i = 0; i < 4; i++) {
            float estimate = 3;
            if (i != 2)
                sgp_sim_estimate(fleet->sim, i, &estimate);
            cr_assert(epsilon_eq(dbl, (double)estimate, 3, 1e-4), "%s", method->name);
        }
        fleet_destroy(fleet);
    }
}

/* Each hands on what it had inherited itself. */
Test(leave, one_after_the_other_until_two_are_left)
{
    struct fleet *fleet = fleet_generate("complete", 6, 0);
    fleet->options.rounds = 400;
    fleet_open(fleet);
    for (uint32_t i = 0; i < 4; i++)
        cr_assert(zero(int,
            sgp_sim_command(fleet->sim, SGP_SECOND + i * SGP_SECOND / 10, i, SGP_EVENT_LEAVE)));
    cr_assert(
        zero(int, sgp_sim_run(fleet->sim, SGP_TIME_NEVER, &fleet->error)), "%s", fleet->error.text);
    for (uint32_t i = 0; i < 4; i++)
        cr_assert(has_left(fleet, i));
    cr_assert(epsilon_eq(dbl, surplus_of(fleet), 0, 1e-12));
    cr_assert(epsilon_eq(dbl, fleet_summary(fleet).weight, 2, 1e-11));
    fleet_destroy(fleet);
}

/* n3 is owed something when it goes for ever, and n2 wants to leave: it does, and its heir owes n3. */
Test(leave, a_dead_neighbour_does_not_hold_one_that_leaves)
{
    static const struct sgp_sim_absence gone = {3, SGP_SECOND, SGP_TIME_NEVER};
    const struct sgp_method *method;
    for (uint32_t m = 0; (method = sgp_method_at(m)) != NULL; m++) {
        struct fleet *fleet = fleet_generate("complete", 4, 0);
        fleet->options.method = method;
        fleet->options.rounds = 6000;
        fleet->options.start = 1;
        fleet->options.absences = &gone;
        fleet->options.absence_count = 1;
        fleet_open(fleet);
        cr_assert(zero(int, sgp_sim_command(fleet->sim, SGP_SECOND, 2, SGP_EVENT_LEAVE)));
        cr_assert(zero(int, sgp_sim_run(fleet->sim, 80 * SGP_SECOND, &fleet->error)), "%s: %s",
            method->name, fleet->error.text);
        cr_assert(has_left(fleet, 2), "%s", method->name);
        fleet_destroy(fleet);
    }
}

struct inheritance {
    sgp_time at; /* when an heir accepts a bequest for the first time; 0: not yet */
    uint32_t heir;
};

static struct inheritance inheritance;

static void look_at_heirs(void *context, uint32_t node, sgp_time now, const struct sgp_effect *note)
{
    fleet_note(context, node, now, note);
    if (note->note.what == SGP_NOTE_INHERITED && inheritance.at == 0)
        inheritance = (struct inheritance){.at = now, .heir = node};
}

/* A fleet of four that n2 is told to leave. The heir may crash. */
static struct fleet *open_leaving_fleet(
    const struct sgp_method *method, const struct sgp_sim_crash *crash)
{
    struct fleet *fleet = fleet_generate("complete", 4, 0);
    fleet->options.method = method;
    fleet->options.rounds = 300;
    fleet->options.latency_ns = 20 * SGP_MILLISECOND;
    fleet->options.note = look_at_heirs;
    fleet->options.crashes = crash;
    fleet->options.crash_count = crash != NULL ? 1 : 0;
    inheritance = (struct inheritance){.at = 0};
    fleet_open(fleet);
    cr_assert(zero(int, sgp_sim_command(fleet->sim, SGP_SECOND, 2, SGP_EVENT_LEAVE)));
    return fleet;
}

static void run_until(struct fleet *fleet, sgp_time until)
{
    cr_assert(zero(int, sgp_sim_run(fleet->sim, until, &fleet->error)), "%s: %s",
        fleet->options.method->name, fleet->error.text);
}

/* The same, run to its end. */
static struct fleet *leaving_fleet(
    const struct sgp_method *method, const struct sgp_sim_crash *crash)
{
    struct fleet *fleet = open_leaving_fleet(method, crash);
    run_until(fleet, SGP_TIME_NEVER);
    cr_assert(has_left(fleet, 2), "%s", method->name);
    return fleet;
}

/* The heir dies as soon as it has accepted the bequest. Its next process has the record of the
 * moment before, or none. The bequest returns, and an heir accepts it again. */
Test(leave, a_bequest_that_the_heir_has_forgotten_comes_home)
{
    const struct sgp_method *method;
    for (uint32_t m = 0; (method = sgp_method_at(m)) != NULL; m++)
        for (int forgets = 0; forgets < 2; forgets++) {
            struct fleet *fleet = leaving_fleet(method, NULL);
            sgp_time at = inheritance.at;
            struct sgp_sim_crash crash = {
                inheritance.heir, at + 1, at + SGP_SECOND, forgets > 0, forgets ? 0 : at - 1};
            fleet_destroy(fleet);
            cr_assert(gt(i64, at, 0), "%s", method->name);
            fleet = leaving_fleet(method, &crash);
            cr_assert(eq(u32, fleet->notes[SGP_NOTE_INHERITED], 2), "%s", method->name);
            cr_assert(eq(u64, fleet_summary(fleet).restored, 1 - forgets), "%s", method->name);
            if (!forgets)
                cr_assert(
                    epsilon_eq(dbl, fleet_summary(fleet).weight, 3, 1e-11), "%s", method->name);
            fleet_destroy(fleet);
        }
}

static double owed_to(const struct fleet *fleet, uint32_t source, uint32_t target)
{
    const struct sgp_node *node = sgp_sim_node(fleet->sim, source);
    uint64_t number;
    double owed;
    sgp_node_link_account(node, sgp_node_find_link(node, target, SGP_OUT), &number, &owed);
    return owed;
}

/* n2 has left, and answers for another second. Its heir dies, and is put back to a moment before the
 * bequest, at which it owed n2 a share. n2 accepted that share long ago, and says so in its greeting.
 * The share went back to the heir with the bequest, and is lost with the rest of it. */
Test(leave, a_leaver_that_is_still_there_says_what_its_heir_has_forgotten)
{
    const struct sgp_method *method = sgp_method_find("sgp");
    uint32_t owed = 0;
    struct fleet *fleet = leaving_fleet(method, NULL);
    struct inheritance known = inheritance;
    fleet_destroy(fleet);
    for (uint32_t i = 0; i < 8; i++) {
        struct sgp_sim_crash crash = {.node = known.heir,
            .at = known.at + 30 * SGP_MILLISECOND,
            .back = known.at + 60 * SGP_MILLISECOND,
            .saved = SGP_SECOND - i * 5 * SGP_MILLISECOND};
        fleet = open_leaving_fleet(method, &crash);
        run_until(fleet, crash.back);
        cr_assert(has_left(fleet, 2));
        cr_assert(eq(u64, fleet_summary(fleet).restored, 1));
        bool owes = owed_to(fleet, known.heir, 2) > 0;
        run_until(fleet, crash.back + SGP_SECOND / 2);
        cr_assert(zero(dbl, owed_to(fleet, known.heir, 2)), "n2 has greeted");
        run_until(fleet, SGP_TIME_NEVER);
        cr_assert(ge(u32, fleet->notes[SGP_NOTE_OUTDATED], 1));
        owed += owes;
        fleet_destroy(fleet);
    }
    cr_assert(gt(u32, owed, 0));
}

/* n0 and n2 are cut off from n1 and n3, so that n2 accepts two shares whose acknowledgements are lost.
 * n2 leaves to n0. The record of n0 is put back from before the bequest, and n2 begins again as a new
 * member. Now no node knows of the two shares, and both return. `away` is how long n0 is dead: n2
 * is still there then, or is not. */
static void check_that_both_return(sgp_time away)
{
    static const uint32_t island[] = {0, 2};
    static const struct sgp_sim_cut cut = {island, 2, SGP_SECOND, 100 * SGP_SECOND};
    struct sgp_sim_crash crashes[2];
    struct fleet *fleet = NULL;
    inheritance = (struct inheritance){.at = 0};
    for (uint32_t count = 0; count <= 2; count += 2) {
        fleet = fleet_generate("complete", 4, 0);
        fleet->options.rounds = 300000;
        fleet->options.latency_ns = 20 * SGP_MILLISECOND;
        fleet->options.note = look_at_heirs;
        fleet->options.cuts = &cut;
        fleet->options.cut_count = 1;
        fleet->options.crashes = crashes;
        fleet->options.crash_count = count;
        fleet_open(fleet);
        cr_assert(zero(int, sgp_sim_command(fleet->sim, SGP_SECOND, 2, SGP_EVENT_LEAVE)));
        run_until(fleet, count == 0 ? 10 * SGP_SECOND : 200 * SGP_SECOND);
        cr_assert(gt(i64, inheritance.at, 0));
        sgp_time at = inheritance.at, dies = at + 30 * SGP_MILLISECOND;
        crashes[0] = (struct sgp_sim_crash){inheritance.heir, dies, dies + away, false, at - 1};
        crashes[1] = (struct sgp_sim_crash){2, at + 4 * SGP_SECOND, at + 5 * SGP_SECOND, false, 0};
        if (count == 0)
            fleet_destroy(fleet);
    }
    cr_assert(eq(u64, fleet_summary(fleet).restored, 1));
    cr_assert(eq(u32, fleet->notes[SGP_NOTE_DISPUTED], 2));
    cr_assert(eq(u32, fleet->notes[SGP_NOTE_SETTLED], 2));
    fleet_destroy(fleet);
}

Test(leave, an_heir_that_was_put_back_knows_nothing_of_what_its_leaver_accepted)
{
    check_that_both_return(30 * SGP_MILLISECOND);
    check_that_both_return(2 * SGP_SECOND);
}

/* n0 and n2 are cut off from n1 and n3, as above, and the record of n0 is put back from before the
 * bequest. The cut ends after the process of n2 has. No process is there that would answer n1 and n3:
 * they owe their shares still. */
Test(leave, a_leaver_that_has_ended_answers_no_greeting)
{
    static const uint32_t island[] = {0, 2};
    static const struct sgp_sim_cut cut = {island, 2, SGP_SECOND, 12 * SGP_SECOND};
    struct sgp_sim_crash crash = {.node = 0};
    struct fleet *fleet = NULL;
    inheritance = (struct inheritance){.at = 0};
    for (uint32_t count = 0; count <= 1; count++) {
        fleet = fleet_generate("complete", 4, 0);
        fleet->options.rounds = 300000;
        fleet->options.start = 1;
        fleet->options.latency_ns = 20 * SGP_MILLISECOND;
        fleet->options.note = look_at_heirs;
        fleet->options.cuts = &cut;
        fleet->options.cut_count = 1;
        fleet->options.crashes = &crash;
        fleet->options.crash_count = count;
        fleet_open(fleet);
        cr_assert(zero(int, sgp_sim_command(fleet->sim, SGP_SECOND, 2, SGP_EVENT_LEAVE)));
        run_until(fleet, (count == 0 ? 10 : 60) * SGP_SECOND);
        cr_assert(gt(i64, inheritance.at, 0));
        cr_assert(has_left(fleet, 2));
        sgp_time at = inheritance.at;
        crash = (struct sgp_sim_crash){
            inheritance.heir, at + SGP_SECOND / 2, at + 3 * SGP_SECOND, false, at - 1};
        if (count == 0)
            fleet_destroy(fleet);
    }
    cr_assert(eq(u64, fleet_summary(fleet).restored, 1));
    cr_assert(gt(dbl, owed_to(fleet, 1, 2), 0));
    cr_assert(gt(dbl, owed_to(fleet, 3, 2), 0));
    fleet_destroy(fleet);
}

struct trouble {
    struct sgp_sim_absence absences[2];
    struct sgp_sim_crash crashes[3];
    struct sgp_sim_cut cut;
};

static sgp_time moment(struct sgp_random *random, sgp_time most)
{
    return 1 + (sgp_time)sgp_random_below(random, (uint64_t)most);
}

static void make_trouble(struct fleet *fleet, struct sgp_random *random, struct trouble *trouble)
{
    static const uint32_t island[] = {1, 4};
    uint32_t nodes = fleet->topology->node_count;
    for (int i = 0; i < 2; i++) {
        sgp_time from = moment(random, 8 * SGP_SECOND);
        trouble->absences[i] = (struct sgp_sim_absence){
            (uint32_t)sgp_random_below(random, nodes), from, from + moment(random, 8 * SGP_SECOND)};
    }
    for (int i = 0; i < 3; i++) {
        sgp_time at = moment(random, 12 * SGP_SECOND);
        trouble->crashes[i] =
            (struct sgp_sim_crash){.node = (uint32_t)sgp_random_below(random, nodes),
                .at = at,
                .back = at + moment(random, 4 * SGP_SECOND)};
    }
    sgp_time from = moment(random, 10 * SGP_SECOND);
    trouble->cut = (struct sgp_sim_cut){island, 2, from, from + 5 * SGP_SECOND};
    fleet->options.absences = trouble->absences;
    fleet->options.absence_count = 2;
    fleet->options.crashes = trouble->crashes;
    fleet->options.crash_count = 3;
    fleet->options.cuts = &trouble->cut;
    fleet->options.cut_count = 1;
}

static uint32_t campaign(const char *method, uint64_t seed)
{
    static const char *const families[] = {
        "bidirectional-ring", "one-peer-exponential", "complete", "random"};
    struct trouble trouble;
    struct sgp_random random;
    sgp_random_init(&random, seed, 9);
    struct fleet *fleet = fleet_generate(families[seed % 4], 7, 0);
    make_trouble(fleet, &random, &trouble);
    for (int i = 0; i < 7; i++)
        fleet->start[i][0] = (float)i;
    fleet->options.method = sgp_method_find(method);
    fleet->options.overlap = (uint32_t)(seed % 3);
    fleet->options.seed = seed;
    fleet->options.rounds = 600;
    fleet->options.final_cycles = 30;
    fleet->options.compute_ns = 50 * SGP_MILLISECOND;
    fleet->options.compute_jitter = 0.9;
    fleet->options.loss = (double)(seed % 3) * 0.01;
    fleet->options.through_wire = seed % 2 == 0;
    fleet_open(fleet);
    /* Only one: what a source that is cut off owes to one that leaves meanwhile is in doubt for good,
     * and if it wants to leave too, it waits. */
    sgp_time at = moment(&random, 14 * SGP_SECOND);
    uint32_t who = (uint32_t)sgp_random_below(&random, 7);
    cr_assert(zero(int, sgp_sim_command(fleet->sim, at, who, SGP_EVENT_LEAVE)));
    int status = sgp_sim_run(fleet->sim, SGP_TIME_NEVER, &fleet->error);
    cr_assert(zero(int, status), "%s, seed %d: %s", method, (int)seed, fleet->error.text);
    uint32_t left = 0;
    for (uint32_t i = 0; i < 7; i++)
        left += has_left(fleet, i);
    struct sgp_sim_summary summary = fleet_summary(fleet);
    cr_assert(eq(u32, summary.finished + left, 7), "%s, seed %d", method, (int)seed);
    cr_assert(epsilon_eq(dbl, summary.weight, 7 - left + surplus_of(fleet), 1e-11), "%s, seed %d",
        method, (int)seed);
    fleet_destroy(fleet);
    return left;
}

Test(leave, campaigns_of_leaves_among_faults_lose_nothing)
{
    uint32_t left = 0, orders = 0;
    for (uint32_t m = 0; sgp_method_at(m) != NULL; m++)
        for (uint64_t seed = 1; seed <= fleet_many(30, 3); seed++, orders++)
            left += campaign(sgp_method_at(m)->name, seed);
    cr_assert(ge(u32, left, orders * 2 / 3), "%u of %u orders were carried out", left, orders);
}

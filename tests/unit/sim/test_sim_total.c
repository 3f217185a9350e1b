/* SPDX-License-Identifier: Apache-2.0 */
/* A member that names another weight in its shares than it has: what becomes of the fleet's total, while it lies and afterwards. */
#include "core/core.h"
#include "sim/world.h"
#include "sim_fleet.h"

#define NODES 4

/* n3 multiplies what it names by `factor` while it lies. What its targets accept of that is more, or less, than it had. */
static struct {
    double factor;
    bool lies;
} liar;

static void send_lies(
    void *context, struct sgp_link link, const struct sgp_message *message, uint32_t snapshot)
{
    struct sgp_sim_host *host = context;
    struct sgp_sim *sim = host->sim;
    struct sgp_message copy = *message;
    struct sgp_sim_connection *connection = sgp_sim_connection_of(sim, link.connection);
    uint32_t source = connection->hosts[SGP_SIM_SOURCE];
    if (message->type == SGP_SHARE && source == NODES - 1 && liar.lies)
        copy.share.weight *= liar.factor;
    if (message->type == SGP_ACK && message->ack.reason == SGP_REASON_NONE) {
        const struct sgp_core_link *out =
            sgp_core_find(sim->hosts[source].node, connection->hosts[SGP_SIM_TARGET], SGP_OUT);
        sim->expected += connection->share.weight - out->owed[0].share.weight;
    }
    sgp_sim_ops.send(context, link, &copy, snapshot);
}

/* No line breaks here, so each share that is accepted is acknowledged on its connection. */
static struct fleet *fleet_with_a_liar(const char *family, const char *method, double factor)
{
    static struct sgp_driver_ops ops;
    struct fleet *fleet = fleet_generate(family, NODES, 0);
    fleet->options.rounds = 10000000;
    fleet->options.method = sgp_method_find(method);
    fleet_open(fleet);
    ops = sgp_sim_ops;
    ops.send = send_lies;
    liar.factor = factor;
    liar.lies = true;
    fleet->sim->lies = true;
    for (uint32_t i = 0; i < NODES; i++)
        fleet->sim->hosts[i].driver.ops = &ops;
    return fleet;
}

static double run_until(struct fleet *fleet, sgp_time until)
{
    cr_assert(zero(int, sgp_sim_run(fleet->sim, until, &fleet->error)), "%s", fleet->error.text);
    return fleet_summary(fleet).weight;
}

static void expect_healed(const char *family, const char *method)
{
    struct fleet *fleet = fleet_with_a_liar(family, method, 1.05);
    double most = 0;
    for (int second = 1; second <= 30; second++)
        most = fmax(most, run_until(fleet, second * SGP_SECOND));
    uint64_t refused = fleet_summary(fleet).shares_refused;
    liar.lies = false;
    double total = run_until(fleet, 60 * SGP_SECOND);
    struct sgp_node_status status[NODES];
    double unknown = 0;
    for (uint32_t i = 0; i < NODES; i++) {
        sgp_node_status(sgp_sim_node(fleet->sim, i), &status[i]);
        unknown += status[i].unknown;
    }
    cr_expect(le(dbl, total, NODES + SGP_WEIGHT_SLACK + 1e-3), "%s %s: %g, %g at most", family,
        method, total, most);
    cr_expect(ge(dbl, total, NODES - 0.5), "%s %s", family, method);
    cr_expect(eq(u64, refused, 0), "%s %s", family, method);
    cr_expect(gt(dbl, unknown, 0), "%s %s", family, method);
    cr_expect(gt(u32, fleet->notes[SGP_NOTE_EXCESS], 0));
    sgp_round before = status[0].round;
    (void)run_until(fleet, 61 * SGP_SECOND);
    sgp_node_status(sgp_sim_node(fleet->sim, 0), &status[0]);
    cr_expect(ge(i64, status[0].round, before + 40), "%s %s: they train on", family, method);
    fleet_destroy(fleet);
}

/* A sanitizer makes each fleet several times as slow: a submission runs one for each family and each method there. */
static bool is_brief(void)
{
    return getenv("SGP_FEW") != NULL && getenv("SGP_LONG") == NULL;
}

Test(total, weight_that_a_member_makes_is_taken_off)
{
    static const char *const families[] = {"one-peer-exponential", "ring", "complete"};
    static const char *const methods[] = {"sgp", "osgp", "agp"};
    for (size_t f = 0; f < sizeof families / sizeof *families; f++)
        for (size_t m = 0; m < sizeof methods / sizeof *methods; m++)
            if (m == f || !is_brief())
                expect_healed(families[f], methods[m]);
    expect_healed("complete", "adpsgd");
}

Test(total, weight_that_a_member_loses_is_made_good_where_averaging_stands_still)
{
    static const char *const families[] = {"one-peer-exponential", "ring", "complete"};
    for (size_t f = 0; f < (is_brief() ? 1 : sizeof families / sizeof *families); f++) {
        struct fleet *fleet = fleet_with_a_liar(families[f], "sgp", 0.9);
        double least = NODES;
        for (int second = 1; second <= 30; second++)
            least = fmin(least, run_until(fleet, second * SGP_SECOND));
        liar.lies = false;
        double total = run_until(fleet, 120 * SGP_SECOND);
        cr_expect(gt(dbl, total, NODES - 0.1), "%s: from %g", families[f], least);
        cr_expect(le(dbl, total, NODES + SGP_WEIGHT_SLACK), "%s: from %g", families[f], least);
        cr_expect(gt(u32, fleet->notes[SGP_NOTE_LACK], 0));
        fleet_destroy(fleet);
    }
}

/* A member lies until somebody finds out, and then no more. Later all pause, one after the other: what a node gives then waits
 * at others. Nothing is lost by that, so nothing is to be made. */
static void expect_kept_over_pauses(const char *family, uint32_t last)
{
    struct fleet *fleet = fleet_with_a_liar(family, "sgp", 0.9);
    sgp_time now = 0;
    while (fleet->notes[SGP_NOTE_LACK] == 0 && now < 60 * SGP_SECOND)
        (void)run_until(fleet, now += 100 * SGP_MILLISECOND);
    cr_assert(gt(u32, fleet->notes[SGP_NOTE_LACK], 0), "%s", family);
    liar.lies = false;
    double most = run_until(fleet, now += 5 * SGP_SECOND);
    for (uint32_t round = 0; round < 8; round++) {
        for (uint32_t i = 0; i < NODES; i++) {
            sgp_time at = now + (i == last ? 400 : i * 30 + 10) * SGP_MILLISECOND;
            (void)sgp_sim_command(fleet->sim, at, i, SGP_EVENT_PAUSE);
            (void)sgp_sim_command(fleet->sim, now + 700 * SGP_MILLISECOND, i, SGP_EVENT_RESUME);
        }
        most = fmax(most, run_until(fleet, now += 1 * SGP_SECOND));
    }
    cr_expect(le(dbl, most, NODES + 1e-3), "%s, the last is n%u: %g", family, last, most);
    fleet_destroy(fleet);
}

Test(total, a_pause_is_no_loss)
{
    static const char *const families[] = {"one-peer-exponential", "ring", "complete"};
    for (size_t f = 0; f < (is_brief() ? 1 : sizeof families / sizeof *families); f++)
        for (uint32_t last = 0; last < NODES - 1; last++)
            expect_kept_over_pauses(families[f], last);
}

/* n0 keeps the bidirectional ring for good; the others take the star around n0, and n2 does so first. Until they follow, n1 and n3
 * give to n2, which gathers, for n0 does not know it. In the end n0, n1 and n3 starve and hear of nobody else. Nothing is lost:
 * n2 has the rest. */
static void expect_unhealed(const char *method)
{
    struct fleet *fleet = fleet_generate("bidirectional-ring", NODES, 0);
    struct sgp_generate_options star = {.family = "star", .nodes = NODES};
    struct sgp_topology *other;
    cr_assert(zero(int, sgp_generate(&star, &fleet->error, &other)), "%s", fleet->error.text);
    static const sgp_time at[NODES] = {0, 20 * SGP_SECOND, 1 * SGP_SECOND, 20 * SGP_SECOND};
    struct sgp_sim_reload reloads[2 * NODES - 1];
    uint32_t count = 0;
    for (uint32_t i = 0; i < NODES; i++) {
        reloads[count++] = (struct sgp_sim_reload){.node = i, .topology = fleet->topology};
        if (i > 0)
            reloads[count++] = (struct sgp_sim_reload){.node = i, .at = at[i], .topology = other};
    }
    fleet->options.rounds = 10000000;
    fleet->options.method = sgp_method_find(method);
    fleet->options.reloads = reloads;
    fleet->options.reload_count = count;
    fleet_open(fleet);
    double total = run_until(fleet, 120 * SGP_SECOND), inside = 0;
    for (uint32_t i = 0; i < NODES; i++) {
        struct sgp_node_status status;
        sgp_node_status(sgp_sim_node(fleet->sim, i), &status);
        inside += i == 2 ? 0 : status.weight;
    }
    cr_expect(lt(dbl, inside, 0.9), "%s: else they do not starve: %g", method, inside);
    cr_expect(epsilon_eq(dbl, total, NODES, 1e-9), "%s", method);
    cr_expect(zero(u32, fleet->notes[SGP_NOTE_LACK]), "%s", method);
    fleet_destroy(fleet);
    sgp_topology_destroy(other);
}

Test(total, nodes_that_another_file_has_cut_off_make_no_weight)
{
    expect_unhealed("agp");
    expect_unhealed("sgp");
    expect_unhealed("osgp");
}

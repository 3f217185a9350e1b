/* SPDX-License-Identifier: Apache-2.0 */
/* Fleets of learners of which one node lies in its shares: how good the models of the honest nodes become,
 * with a guard and without. The rows are drawn. bench/liars.py makes the table of docs/METHODS.md on real ones. */
#include "sgp/generate.h"
#include "sgp/learner.h"
#include "sgp/random.h"
#include "sgp/sim.h"

#include "sim_fleet.h"

#define NODES 8u
#define FEATURES 16u
#define CLASSES 10u
#define ROWS 1600u
#define HELD 1000u
#define LIAR 1u
#define HONEST_LIE 0 /* of SGP_SIM_LIE_: nobody lies */

/* Rows around one random corner a class, which overlap. */
static struct sgp_dataset *draw_rows(uint64_t rows, uint64_t stream, bool sorted)
{
    struct sgp_random corners, random;
    float centres[CLASSES][FEATURES];
    float *features = calloc(rows * FEATURES, sizeof *features);
    uint32_t *labels = calloc(rows, sizeof *labels);
    struct sgp_dataset *dataset = NULL;
    sgp_random_init(&corners, 11, 0);
    sgp_random_init(&random, 11, stream);
    for (uint32_t c = 0; c < CLASSES; c++)
        for (uint32_t f = 0; f < FEATURES; f++)
            centres[c][f] = sgp_random_below(&corners, 2) == 0 ? -1 : 1;
    for (uint64_t r = 0; r < rows; r++) {
        labels[r] = (uint32_t)(sorted ? r * CLASSES / rows : sgp_random_below(&random, CLASSES));
        for (uint32_t f = 0; f < FEATURES; f++)
            features[r * FEATURES + f] =
                (float)(0.8 * sgp_random_normal(&random)) + centres[labels[r]][f];
    }
    cr_assert(zero(int,
        sgp_dataset_create_memory(features, labels, NULL, rows, FEATURES, CLASSES, 1, &dataset)));
    free(features);
    free(labels);
    return dataset;
}

struct school {
    struct sgp_dataset *shards[NODES], *held;
};

static struct school open_school(bool sorted)
{
    struct school school = {.held = draw_rows(HELD, 2, false)};
    struct sgp_dataset *all = draw_rows(ROWS, 1, sorted);
    uint32_t own[ROWS / NODES];
    for (uint32_t i = 0; i < NODES; i++) {
        for (uint32_t r = 0; r < ROWS / NODES; r++)
            own[r] = sorted ? i * (ROWS / NODES) + r : r * NODES + i;
        cr_assert(zero(int, sgp_dataset_subset(all, own, ROWS / NODES, &school.shards[i])));
    }
    sgp_dataset_destroy(all);
    return school;
}

static void close_school(struct school *school)
{
    for (uint32_t i = 0; i < NODES; i++)
        sgp_dataset_destroy(school->shards[i]);
    sgp_dataset_destroy(school->held);
}

static int make_learner(void *context, uint32_t node, struct sgp_trainer **ret_trainer)
{
    const struct school *school = context;
    struct sgp_learner *learner;
    struct sgp_learner_settings settings = {.optimizer = {.kind = SGP_OPTIMIZER_SGD},
        .schedule = {.kind = SGP_SCHEDULE_CONSTANT, .learning_rate = 0.3},
        .batch = 16,
        .threads = 1,
        .seed = 3,
        .node = node,
        .train = school->shards[node],
        .evaluation = school->held};
    int code = sgp_model_init(
        &settings.model, "dense 16 relu, dense 10", SGP_LOSS_CROSS_ENTROPY, FEATURES, NULL);
    if (code == 0)
        code = sgp_learner_create(&settings, NULL, &learner);
    if (code == 0)
        *ret_trainer = sgp_learner_trainer(learner);
    return code;
}

struct outcome {
    double accuracy; /* of the models of the honest nodes, on average */
    struct sgp_sim_summary summary;
};

static double accuracy_of(const struct sgp_sim *sim, uint32_t node)
{
    struct sgp_node_status status;
    struct sgp_evaluation evaluation;
    struct sgp_trainer *trainer = sgp_sim_trainer(sim, node);
    sgp_node_status(sgp_sim_node(sim, node), &status);
    int code = trainer->methods->evaluate(trainer, status.weight_estimate, &evaluation);
    return code == 0 ? evaluation.accuracy : 0; /* a model that is not finite knows nothing */
}

static struct outcome teach(struct school *school, int lie, double guard)
{
    struct sgp_generate_options generate = {.family = "one-peer-exponential", .nodes = NODES};
    const struct sgp_sim_liar liar = {.node = LIAR, .lie = (enum sgp_sim_lie)lie};
    struct outcome outcome = {0};
    struct sgp_topology *topology;
    struct sgp_sim_options options;
    struct sgp_error error = {0};
    struct sgp_sim *sim;
    cr_assert(zero(int, sgp_generate(&generate, NULL, &topology)));
    sgp_sim_options_init(&options);
    options.rounds = 240;
    options.dimension = (FEATURES + 1) * 16 + (16 + 1) * CLASSES;
    options.context = school;
    options.trainer = make_learner;
    options.guard = guard;
    options.liars = &liar;
    options.liar_count = lie != HONEST_LIE;
    cr_assert(zero(int, sgp_sim_create(topology, &options, &error, &sim)), "%s", error.text);
    cr_assert(zero(int, sgp_sim_run(sim, SGP_TIME_NEVER, &error)), "%s", error.text);
    sgp_sim_summary(sim, &outcome.summary);
    for (uint32_t i = 0; i < NODES; i++)
        outcome.accuracy += i != LIAR ? accuracy_of(sim, i) / (NODES - 1) : 0;
    sgp_sim_destroy(sim);
    sgp_topology_destroy(topology);
    cr_assert(lt(dbl, outcome.summary.mass_error, 1e-12 * NODES));
    return outcome;
}

static const char *const names[] = {"nobody lies", "flip", "scale",
    "noise", [SGP_SIM_LIE_ALIE] = "alie", [SGP_SIM_LIE_IPM] = "ipm", [SGP_SIM_LIE_DRIFT] = "drift",
    [SGP_SIM_LIE_DISSENSUS] = "dissensus"};
#define ALL_LIES ((int)SGP_SIM_LIE_MOST + 1)

static void teach_all(bool sorted, double ret_accuracies[2][ALL_LIES])
{
    struct school school = open_school(sorted);
    for (int guarded = 0; guarded < 2; guarded++)
        for (int lie = HONEST_LIE; lie < ALL_LIES; lie++) {
            if (names[lie] == NULL)
                continue;
            struct outcome outcome = teach(&school, lie, guarded);
            ret_accuracies[guarded][lie] = outcome.accuracy;
            (void)printf("# %s, %s, %s: %.3f; %llu of %llu shares clipped\n",
                sorted ? "sorted" : "even", guarded ? "guard 1" : "no guard", names[lie],
                outcome.accuracy, (unsigned long long)outcome.summary.shares_clipped,
                (unsigned long long)outcome.summary.shares_guarded);
        }
    close_school(&school);
}

Test(sim_guard, honest_nodes_with_even_rows_learn_beside_a_liar, .timeout = 120)
{
    double accuracy[2][ALL_LIES];
    teach_all(false, accuracy);
    cr_expect(gt(dbl, accuracy[1][0], accuracy[0][0] - 0.02));
    for (int lie = (int)SGP_SIM_LIE_FLIP; lie < ALL_LIES; lie++)
        if (names[lie] != NULL)
            cr_expect(gt(dbl, accuracy[1][lie], accuracy[0][0] - 0.03), "%s", names[lie]);
    cr_expect(lt(dbl, accuracy[0][SGP_SIM_LIE_FLIP], 0.5));
    cr_expect(lt(dbl, accuracy[0][SGP_SIM_LIE_SCALE], accuracy[0][0] - 0.03));
    cr_expect(lt(dbl, accuracy[0][SGP_SIM_LIE_NOISE], 0.8));
    cr_expect(lt(dbl, accuracy[0][SGP_SIM_LIE_DISSENSUS], accuracy[0][0] - 0.03));
}

/* All nodes have the model 3 long before n0 begins again, and its own parameters are then 100. So each question for an
 * estimate goes to honest nodes, or to the liar, which says -3. */
static struct sgp_sim_summary restart_beside(uint32_t liar, double guard, float *ret_estimate)
{
    struct fleet *fleet = fleet_generate("complete", 5, 0);
    struct sgp_sim_crash crash = {.node = 0, .at = SGP_SECOND, .back = 2 * SGP_SECOND};
    const struct sgp_sim_liar lies = {.node = liar, .lie = SGP_SIM_LIE_ESTIMATE};
    for (uint32_t i = 0; i < 5; i++) {
        fleet->start[i][0] = 3;
        fleet->idle[i] = true;
    }
    fleet->options.rounds = 10000;
    fleet->options.crashes = &crash;
    fleet->options.crash_count = 1;
    fleet->options.liars = &lies;
    fleet->options.liar_count = 1;
    fleet->options.guard = guard;
    fleet_open(fleet);
    cr_assert(zero(int, sgp_sim_run(fleet->sim, SGP_SECOND / 2, &fleet->error)));
    fleet->start[0][0] = 100;
    for (sgp_time now = SGP_SECOND; fleet_summary(fleet).adopted == 0; now += SGP_MILLISECOND)
        cr_assert(zero(int, sgp_sim_run(fleet->sim, now, &fleet->error)), "%s", fleet->error.text);
    sgp_sim_estimate(fleet->sim, 0, ret_estimate);
    struct sgp_sim_summary summary = fleet_summary(fleet);
    fleet_destroy(fleet);
    return summary;
}

Test(sim_guard, a_joiner_takes_no_estimate_of_a_liar)
{
    uint64_t misled = 0;
    for (uint32_t liar = 1; liar < 5; liar++) {
        float estimate;
        struct sgp_sim_summary summary = restart_beside(liar, 1, &estimate);
        cr_assert(eq(u64, summary.compared, 1));
        cr_assert(eq(u64, summary.misled, 0));
        cr_assert(lt(dbl, fabs((double)estimate - 3), 0.5), "%g", (double)estimate);
        misled += restart_beside(liar, 0, &estimate).misled;
    }
    cr_assert(
        gt(u64, misled, 0), "without a guard it asks one neighbour, and that may be the liar");
}

/* Eight nodes agree on 3, and n1 lies. Returns by how much the estimates of the others are off, at most. */
static double err_beside_a_weightless_liar(double guard)
{
    struct fleet *fleet = fleet_generate("one-peer-exponential", 8, 0);
    const struct sgp_sim_liar liar = {.node = 1, .lie = SGP_SIM_LIE_WEIGHTLESS};
    double error = 0;
    for (uint32_t i = 0; i < 8; i++) {
        fleet->start[i][0] = 3;
        fleet->idle[i] = true;
    }
    fleet->options.rounds = 100;
    fleet->options.final_cycles = 0;
    fleet->options.liars = &liar;
    fleet->options.liar_count = 1;
    fleet->options.guard = guard;
    fleet_run(fleet);
    for (uint32_t i = 0; i < 8; i++) {
        float estimate;
        sgp_sim_estimate(fleet->sim, i, &estimate);
        error = fmax(error, fabs((double)estimate - 3));
    }
    cr_assert(lt(dbl, fleet_summary(fleet).weight, 8 - 0.1), "the lie loses weight");
    fleet_destroy(fleet);
    return error;
}

Test(sim_guard, shares_without_weight_move_no_estimate)
{
    cr_assert(gt(dbl, err_beside_a_weightless_liar(0), 1));
    cr_assert(lt(dbl, err_beside_a_weightless_liar(1), 1e-4));
}

/* ---- mixing at the end ---- */

/* Of the seven honest nodes, relative to the mean of their models when the steps end. */
struct ending {
    double before; /* the distance of the furthest from that mean, when the steps end */
    double apart;  /* of the two that end furthest from each other */
    double moved;  /* of the mean, by the mixing */
    double cycles; /* of the mixing */
};

/* Quadratics with minima around 3 in each coordinate, `spread` of 3 away from it. */
static struct ending end_beside(int lie, double guard, double spread)
{
    struct fleet *fleet = fleet_generate("one-peer-exponential", NODES, 0);
    const struct sgp_sim_liar liar = {.node = LIAR, .lie = (enum sgp_sim_lie)lie};
    struct ending ending = {0};
    struct sgp_random random;
    struct sgp_node_status status;
    double mean[FLEET_DIMENSION_MAX] = {0}, now[FLEET_DIMENSION_MAX] = {0}, norm = 0, moved = 0;
    float last[NODES][FLEET_DIMENSION_MAX];
    sgp_random_init(&random, 5, 0);
    fleet->options.dimension = FLEET_DIMENSION_MAX;
    for (uint32_t i = 0; i < NODES; i++)
        for (uint32_t c = 0; c < FLEET_DIMENSION_MAX; c++) {
            fleet->start[i][c] = 3;
            fleet->centre[i][c] = (float)(3 + 3 * spread * sgp_random_normal(&random));
        }
    fleet->eta = 0.1;
    fleet->options.rounds = 120;
    fleet->options.guard = guard;
    fleet->options.liars = &liar;
    fleet->options.liar_count = lie != HONEST_LIE;
    fleet_run(fleet);
    for (uint32_t i = 0; i < NODES; i++) {
        sgp_sim_estimate(fleet->sim, i, last[i]);
        for (uint32_t c = 0; c < FLEET_DIMENSION_MAX && i != LIAR; c++) {
            mean[c] += (double)fleet->estimate[i][c] / (NODES - 1);
            now[c] += (double)last[i][c] / (NODES - 1);
        }
    }
    for (uint32_t c = 0; c < FLEET_DIMENSION_MAX; c++) {
        norm += mean[c] * mean[c];
        moved += (now[c] - mean[c]) * (now[c] - mean[c]);
    }
    for (uint32_t i = 0; i < NODES; i++)
        for (uint32_t j = 0; j < NODES; j++) {
            double before = 0, apart = 0;
            for (uint32_t c = 0; c < FLEET_DIMENSION_MAX; c++) {
                before += pow((double)fleet->estimate[i][c] - mean[c], 2);
                apart += pow((double)last[i][c] - (double)last[j][c], 2);
            }
            ending.before = i != LIAR ? fmax(ending.before, sqrt(before / norm)) : ending.before;
            ending.apart =
                i != LIAR && j != LIAR ? fmax(ending.apart, sqrt(apart / norm)) : ending.apart;
        }
    sgp_node_status(sgp_sim_node(fleet->sim, 0), &status);
    ending.cycles = (double)(status.round - fleet->options.rounds) / 3;
    ending.moved = sqrt(moved / norm);
    (void)printf(
        "# lie %d, guard %g, minima %g apart: models %.2g from their mean; after %.3g cycles %.2g "
        "apart, and the mean moved %.3g\n",
        lie, guard, spread, ending.before, ending.cycles, ending.apart, ending.moved);
    fleet_destroy(fleet);
    return ending;
}

Test(sim_guard, honest_nodes_end_with_one_model_beside_a_liar, .timeout = 120)
{
    for (double spread = 0.01; spread < 2; spread *= 10) {
        for (int lie = HONEST_LIE; lie < ALL_LIES; lie++) {
            if (names[lie] == NULL)
                continue;
            struct ending ending = end_beside(lie, 1, spread);
            cr_expect(lt(dbl, ending.apart, 2e-5), "%s", names[lie]);
            cr_expect(lt(dbl, ending.moved, (lie == HONEST_LIE ? 0.1 : 4) * ending.before));
            cr_expect(lt(dbl, ending.cycles, lie == HONEST_LIE ? 4 : 256));
        }
        cr_expect(gt(dbl, end_beside((int)SGP_SIM_LIE_FLIP, 0, spread).moved, 0.9));
    }
}

/* A cube of eight nodes. Those of the lower face have their minimum at 1, and those of the upper at 3. Each has two sources in
 * its own face, at distance 0, and one in the other. Without a guard all end at 2. */
static void end_of_two_faces(double guard, bool apart, double lower, double upper)
{
    struct sgp_edge edges[3 * NODES];
    for (uint32_t i = 0; i < NODES; i++)
        for (uint32_t axis = 0; axis < 3; axis++)
            edges[3 * i + axis] =
                (struct sgp_edge){.source = i, .target = i ^ 1u << axis, .fraction = -1};
    struct fleet *fleet = fleet_of_edges(NODES, edges, 3 * NODES);
    for (uint32_t i = 0; i < NODES; i++)
        fleet->centre[i][0] = i < NODES / 2 ? 1 : 3;
    fleet->eta = 0.25;
    fleet->options.rounds = 60;
    fleet->options.guard = guard;
    fleet_run(fleet);
    for (uint32_t i = 0; i < NODES; i++) {
        float model;
        sgp_sim_estimate(fleet->sim, i, &model);
        cr_expect(epsilon_eq(dbl, (double)model, i < NODES / 2 ? lower : upper, 1e-5));
        cr_expect(eq(int, sgp_node_disagreeing(sgp_sim_node(fleet->sim, i)) > 0, apart));
    }
    cr_expect(eq(int, fleet->notes[SGP_NOTE_DISAGREES] > 0, apart));
    fleet_destroy(fleet);
}

/* To a guard, a group that holds another model looks as liars do. The page says so, and each node says that it disagrees. */
Test(sim_guard, groups_that_each_hold_one_model_stay_apart_and_say_so)
{
    end_of_two_faces(0, false, 2, 2);
    end_of_two_faces(0.5, true, 1, 3);
    end_of_two_faces(1, true, 1, 3);
}

/* Sorted labels: honest estimates are far apart, and so a liar has more room. The page says so. */
Test(sim_guard, with_sorted_labels_a_guard_protects_less, .timeout = 120)
{
    double accuracy[2][ALL_LIES];
    teach_all(true, accuracy);
    cr_expect(gt(dbl, accuracy[1][0], accuracy[0][0] - 0.03));
    cr_expect(gt(dbl, accuracy[1][SGP_SIM_LIE_SCALE], accuracy[0][SGP_SIM_LIE_SCALE] + 0.1));
    cr_expect(gt(dbl, accuracy[1][SGP_SIM_LIE_FLIP], accuracy[0][SGP_SIM_LIE_FLIP] + 0.3));
    cr_expect(
        gt(dbl, accuracy[1][SGP_SIM_LIE_DISSENSUS], accuracy[0][SGP_SIM_LIE_DISSENSUS] + 0.4));
    cr_expect(lt(dbl, accuracy[1][SGP_SIM_LIE_FLIP], accuracy[0][0] - 0.1));
    cr_expect(lt(dbl, accuracy[1][SGP_SIM_LIE_DRIFT], accuracy[0][0] - 0.1));
}

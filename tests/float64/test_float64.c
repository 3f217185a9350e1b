/* SPDX-License-Identifier: Apache-2.0 */
/* Equalities of methods, to the rounding of float64: all-reduce, averaging every so many steps, outer steps and elastic
 * averaging, in a simulator whose vectors are float64 (float64.h), against a few loops each. What is trained is a
 * logistic regression, so no gradient is linear; each node has rows of its own. */
#include "sgp/generate.h"
#include "sgp/method.h"
#include "sgp/optimizer.h"
#include "sgp/outer.h"
#include "sgp/sim.h"
#include "train/vector_trainer.h"

#include <criterion/criterion.h>
#include <assertions.h>

#define NODES_MAX 17u
#define VALUES 6u
#define ROWS 7u /* of a node; a batch takes some of them, and the next one goes on behind it */
#define BATCH 3u

/* ---- the problem ---- */

static double feature(uint32_t node, uint64_t row, uint32_t c)
{
    return c == 0 ? 1 : sin((double)(1 + node * ROWS + row % ROWS) * (c + 0.5));
}

static double label(uint32_t node, uint64_t row)
{
    return cos((double)(2 + node) * (double)(1 + row % ROWS)) > 0 ? 1 : -1;
}

static double rate(uint64_t step)
{
    return 0.5 / (1 + (double)step / 50);
}

/* gradient += that of the loss of the batch of a step at z. */
static void add_gradient(double *gradient, const double *z, uint32_t node, uint64_t step)
{
    for (uint64_t row = step * BATCH; row < (step + 1) * BATCH; row++) {
        double margin = 0, y = label(node, row);
        for (uint32_t c = 0; c < VALUES; c++)
            margin += z[c] * feature(node, row, c);
        double slope = -y / (1 + exp(y * margin)) / BATCH;
        for (uint32_t c = 0; c < VALUES; c++)
            gradient[c] += slope * feature(node, row, c);
    }
}

/* ---- in loops ---- */

struct learner {
    double z[VALUES], u[VALUES];
};

/* A step with the mean gradient of some nodes; see sgp/optimizer.h. */
static void step_of(struct learner *learner, const struct sgp_optimizer_settings *rule,
    uint32_t first, uint32_t nodes, uint64_t step)
{
    double gradient[VALUES] = {0}, m = rule->momentum;
    for (uint32_t node = first; node < first + nodes; node++)
        add_gradient(gradient, learner->z, node, step);
    for (uint32_t c = 0; c < VALUES; c++) {
        double g = gradient[c] / nodes + rule->weight_decay * learner->z[c];
        double *u = &learner->u[c];
        *u = m * *u + g;
        learner->z[c] -= rate(step) * (rule->kind == SGP_OPTIMIZER_SGD           ? g
                                          : rule->kind == SGP_OPTIMIZER_NESTEROV ? g + m * *u
                                                                                 : *u);
    }
}

static void average(struct learner *learners, uint32_t nodes)
{
    for (uint32_t c = 0; c < VALUES; c++) {
        double sum = 0;
        for (uint32_t i = 0; i < nodes; i++)
            sum += learners[i].z[c];
        for (uint32_t i = 0; i < nodes; i++)
            learners[i].z[c] = sum / nodes;
    }
}

/* ---- by the simulator ---- */

static const struct sgp_optimizer_settings rules[] = {
    {.kind = SGP_OPTIMIZER_SGD, .momentum = 0, .weight_decay = 1e-3},
    {.kind = SGP_OPTIMIZER_MOMENTUM, .momentum = 0.9, .weight_decay = 1e-3},
    {.kind = SGP_OPTIMIZER_NESTEROV, .momentum = 0.9, .weight_decay = 1e-3}};
#define RULES (sizeof rules / sizeof *rules)

struct fleet {
    struct sgp_generate_options file;
    struct sgp_optimizer_settings rule;
    struct sgp_outer_settings outer;
    struct sgp_sim_options options;
    struct sgp_topology *topology;
    struct sgp_sim *sim;
};

struct trainer {
    struct sgp_vector_trainer vector; /* first */
    struct sgp_optimizer optimizer;
    uint32_t node;
    uint64_t steps;
};

static int train(struct sgp_trainer *base, double weight, uint32_t steps, double pace,
    struct sgp_training *ret_training)
{
    struct trainer *trainer = (struct trainer *)base;
    float *x = sgp_vector_trainer_x(&trainer->vector);
    for (uint32_t i = 0; i < steps; i++) {
        double z[VALUES], gradient[VALUES] = {0};
        for (uint32_t c = 0; c < VALUES; c++)
            z[c] = x[c] / weight;
        add_gradient(gradient, z, trainer->node, trainer->steps);
        sgp_optimizer_step(
            &trainer->optimizer, x, gradient, NULL, weight, pace * rate(trainer->steps++));
    }
    *ret_training = (struct sgp_training){.samples = (uint64_t)BATCH * steps};
    return 0;
}

static int evaluate(struct sgp_trainer *trainer, double weight, struct sgp_evaluation *ret)
{
    (void)trainer;
    (void)weight;
    *ret = (struct sgp_evaluation){.samples = 0};
    return 0;
}

static void destroy(struct sgp_trainer *base)
{
    struct trainer *trainer = (struct trainer *)base;
    sgp_optimizer_finish(&trainer->optimizer);
    sgp_vector_trainer_finish(&trainer->vector);
    free(trainer);
}

static const struct sgp_trainer_methods methods = {.train = train,
    .publish = sgp_vector_trainer_publish,
    .absorb = sgp_vector_trainer_absorb,
    .take = sgp_vector_trainer_take,
    .restore = sgp_vector_trainer_restore,
    .adopt = sgp_vector_trainer_adopt,
    .copy = sgp_vector_trainer_copy,
    .scale = sgp_vector_trainer_scale,
    .outer = sgp_vector_trainer_outer,
    .exchange = sgp_vector_trainer_exchange,
    .evaluate = evaluate,
    .estimate = sgp_vector_trainer_estimate,
    .sketch = sgp_vector_trainer_sketch,
    .digest = sgp_vector_trainer_digest,
    .state = sgp_vector_trainer_state,
    .resume = sgp_vector_trainer_resume,
    .go_to = sgp_vector_trainer_go_to,
    .destroy = destroy};

/* All begin with zeros. */
static int make_trainer(void *context, uint32_t node, struct sgp_trainer **ret_trainer)
{
    const struct fleet *fleet = context;
    struct trainer *trainer = calloc(1, sizeof *trainer);
    cr_assert(trainer != NULL);
    trainer->node = node;
    cr_assert(zero(int, sgp_vector_trainer_init(&trainer->vector, &methods, VALUES)));
    cr_assert(zero(int,
        sgp_optimizer_init(&trainer->optimizer, &fleet->rule, VALUES, &(struct sgp_tensors){0})));
    cr_assert(zero(int, sgp_vector_trainer_begin_outer(&trainer->vector, &fleet->outer)));
    *ret_trainer = &trainer->vector.trainer;
    return 0;
}

/* A fleet that takes so many rounds of training. */
static void open_fleet(struct fleet *fleet, struct sgp_generate_options file, sgp_round rounds)
{
    *fleet = (struct fleet){.file = file, .rule = rules[0]};
    sgp_sim_options_init(&fleet->options);
    fleet->options.dimension = VALUES;
    fleet->options.rounds = rounds;
    fleet->options.final_cycles = 1;
    fleet->options.context = fleet;
    fleet->options.trainer = make_trainer;
}

static void open_sim(struct fleet *fleet)
{
    struct sgp_error error = {0};
    cr_assert(zero(int, sgp_generate(&fleet->file, &error, &fleet->topology)), "%s", error.text);
    cr_assert(zero(int, sgp_sim_create(fleet->topology, &fleet->options, &error, &fleet->sim)),
        "%s", error.text);
}

static void run(struct fleet *fleet)
{
    struct sgp_error error = {0};
    open_sim(fleet);
    cr_assert(zero(int, sgp_sim_run(fleet->sim, SGP_TIME_NEVER, &error)), "%s, %u nodes: %s",
        fleet->file.family, fleet->file.nodes, error.text);
    cr_assert(sgp_sim_done(fleet->sim));
}

/* The greatest distance of any value of a node from what it should be. */
static double distance(const struct fleet *fleet, uint32_t node, const double *expected)
{
    double estimate[VALUES], most = 0;
    sgp_sim_estimate(fleet->sim, node, estimate);
    for (uint32_t c = 0; c < VALUES; c++)
        most = fmax(most, fabs(estimate[c] - expected[c]));
    return most;
}

static double distance_of_all(const struct fleet *fleet, const double *expected)
{
    double most = 0;
    for (uint32_t i = 0; i < fleet->topology->node_count; i++)
        most = fmax(most, distance(fleet, i, expected));
    return most;
}

static void close_fleet(struct fleet *fleet)
{
    sgp_sim_destroy(fleet->sim);
    sgp_topology_destroy(fleet->topology);
}

/* ---- what equals what ---- */

#define CLOSE 1e-13 /* values are a few units large; float32 would be off by 1e-7 */

static const char *const families[] = {"all-reduce-ring", "all-reduce-direct",
    "all-reduce-doubling", "all-reduce-halving", "all-reduce-blocks", "all-reduce-tree",
    "all-reduce-groups", "all-reduce-hubs"};
#define FAMILIES (sizeof families / sizeof *families)

static struct sgp_generate_options file_of(const char *family, uint32_t nodes)
{
    struct sgp_generate_options file = {.family = family, .nodes = nodes, .pieces = nodes % 3};
    file.group = strcmp(family, "all-reduce-groups") == 0 ? 3 : 0;
    file.hubs = strcmp(family, "all-reduce-hubs") == 0 ? 2 : 0;
    return file;
}

Test(float64, all_reduce_is_one_node_with_the_batches_of_all)
{
    static const uint32_t sizes[] = {2, 3, 4, 5, 6, 7, 8, NODES_MAX};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (size_t r = sizes[s] < NODES_MAX ? 0 : RULES - 1; r < RULES; r++) {
            struct learner pooled = {0};
            if (getenv("SGP_LONG") == NULL && sizes[s] < NODES_MAX && (s + r) % 2 != 0)
                continue; /* a submission runs every size and every rule, but half of their pairs */
            for (uint64_t step = 0; step < 200; step++)
                step_of(&pooled, &rules[r], 0, sizes[s], step);
            for (size_t f = 0; f < FAMILIES; f++) {
                struct fleet fleet;
                open_fleet(&fleet, file_of(families[f], sizes[s]), 200);
                fleet.rule = rules[r];
                run(&fleet);
                cr_assert(lt(dbl, distance_of_all(&fleet, pooled.z), CLOSE),
                    "%s, %u nodes, rule %zu", families[f], sizes[s], r);
                close_fleet(&fleet);
            }
        }
}

/* What the test above would miss if it could not fail. */
Test(float64, gossip_is_not)
{
    struct learner pooled = {0};
    struct fleet fleet;
    for (uint64_t step = 0; step < 200; step++)
        step_of(&pooled, &rules[1], 0, 4, step);
    open_fleet(
        &fleet, (struct sgp_generate_options){.family = "one-peer-exponential", .nodes = 4}, 200);
    fleet.rule = rules[1];
    run(&fleet);
    cr_assert(gt(dbl, distance_of_all(&fleet, pooled.z), 1e-4));
    close_fleet(&fleet);
}

/* Cong, Bhardwaj and Feng 2017, with velocities that stay where they are. Where a number of nodes is folded, weights differ
 * within a cycle, and are 1 when it trains. */
Test(float64, local_steps_before_a_cycle_are_k_step_averaging)
{
    static const struct sgp_generate_options files[] = {
        {.family = "all-reduce-doubling", .nodes = 5}, {.family = "all-reduce-halving", .nodes = 6},
        {.family = "all-reduce-blocks", .nodes = 7}, {.family = "all-reduce-ring", .nodes = 4},
        {.family = "all-reduce-tree", .nodes = 3}};
    for (size_t f = 0; f < sizeof files / sizeof *files; f++)
        for (size_t r = 0; r < RULES; r++) {
            struct learner all[NODES_MAX] = {0};
            for (uint64_t step = 0; step < 240; step++) {
                for (uint32_t i = 0; i < files[f].nodes; i++)
                    step_of(&all[i], &rules[r], i, 1, step);
                if (step % 8 == 7)
                    average(all, files[f].nodes);
            }
            struct fleet fleet;
            open_fleet(&fleet, files[f], 30);
            fleet.rule = rules[r];
            fleet.options.local_steps = 8;
            run(&fleet);
            cr_assert(lt(dbl, distance_of_all(&fleet, all[0].z), CLOSE), "%s, rule %zu",
                files[f].family, r);
            close_fleet(&fleet);
        }
}

/* The step that comes after each mean, see sgp/outer.h; b and v are the same on all nodes. */
static void outer_step(double *z, double *b, double *v, const struct sgp_outer_settings *outer)
{
    for (uint32_t c = 0; c < VALUES; c++) {
        double way = b[c] - z[c], beta = outer->momentum;
        v[c] = beta * v[c] + way;
        z[c] = b[c] - outer->learning_rate *
                          (outer->kind == SGP_OUTER_NESTEROV ? way + beta * v[c] : v[c]);
        b[c] = z[c];
    }
}

static struct sgp_generate_options outer_tree(void)
{
    return (struct sgp_generate_options){.family = "all-reduce-tree", .nodes = 5, .outer = true};
}

/* SlowMo (Wang et al. 2020), DiLoCo's Nesterov (Douillard et al. 2023), and one that changes nothing. */
Test(float64, outer_steps_follow_each_mean)
{
    static const struct sgp_outer_settings outers[] = {
        {SGP_OUTER_SLOWMO, 1, 0.5}, {SGP_OUTER_NESTEROV, 0.7, 0.6}, {SGP_OUTER_SLOWMO, 1, 0}};
    for (size_t o = 0; o < sizeof outers / sizeof *outers; o++) {
        struct learner all[5] = {0}, plain[5] = {0};
        double b[VALUES] = {0}, v[VALUES] = {0};
        for (uint64_t step = 0; step < 120; step++) {
            for (uint32_t i = 0; i < 5; i++) {
                step_of(&all[i], &rules[2], i, 1, step);
                step_of(&plain[i], &rules[2], i, 1, step);
            }
            if (step % 4 != 3)
                continue;
            average(all, 5);
            average(plain, 5);
            outer_step(all[0].z, b, v, &outers[o]);
            for (uint32_t i = 1; i < 5; i++)
                memcpy(all[i].z, all[0].z, sizeof all[0].z);
        }
        struct fleet fleet;
        open_fleet(&fleet, outer_tree(), 30);
        fleet.rule = rules[2];
        fleet.outer = outers[o];
        fleet.options.local_steps = 4;
        run(&fleet);
        cr_assert(lt(dbl, distance_of_all(&fleet, all[0].z), CLOSE), "outer step %zu", o);
        bool changes = distance_of_all(&fleet, plain[0].z) > CLOSE;
        cr_assert(eq(int, changes, o < 2), "with alpha 1 and beta 0 it is as if there was none");
        close_fleet(&fleet);
    }
}

/* What a node of NoLoCo keeps between outer steps: phi and delta of the paper. */
struct noloco {
    double slow[VALUES], momentum[VALUES];
};

/* NoLoCo's outer step (Kolehmainen et al. 2025, arXiv 2506.10911) over the pairs of a phase. With
 * means over the pair: delta = beta delta + alpha mean(z - phi) + alpha (mean(phi) - phi),
 * phi += delta, z = phi. A node without a partner is a group of one. The term of mean(phi) has the
 * rate alpha, as in the authors' program. */
static void noloco_step(struct learner *learners, struct noloco *states, uint32_t nodes,
    const struct sgp_phase *pairs, double alpha, double beta)
{
    double way[NODES_MAX][VALUES], slow[NODES_MAX][VALUES];
    for (uint32_t i = 0; i < nodes; i++)
        for (uint32_t c = 0; c < VALUES; c++) {
            slow[i][c] = states[i].slow[c];
            way[i][c] = learners[i].z[c] - slow[i][c];
        }
    for (uint32_t i = 0; i < nodes; i++) {
        uint32_t count, partner = i;
        const struct sgp_edge *out = sgp_phase_out(pairs, i, &count);
        if (count > 0)
            partner = out[0].target;
        for (uint32_t c = 0; c < VALUES; c++) {
            double mean_way = (way[i][c] + way[partner][c]) / 2;
            double mean_slow = (slow[i][c] + slow[partner][c]) / 2;
            double *delta = &states[i].momentum[c];
            *delta = beta * *delta + alpha * mean_way + alpha * (mean_slow - slow[i][c]);
            states[i].slow[c] += *delta;
            learners[i].z[c] = states[i].slow[c];
        }
    }
}

static double distance_from_noloco(struct fleet *fleet, uint32_t nodes, uint32_t local_steps)
{
    struct learner learners[NODES_MAX] = {0};
    struct noloco states[NODES_MAX] = {0};
    double most = 0;
    fleet->options.local_steps = local_steps;
    fleet->options.final_cycles = 0;
    run(fleet);
    for (sgp_round round = 0; round < fleet->options.rounds; round++) {
        for (uint32_t i = 0; i < nodes; i++)
            for (uint64_t step = 0; step < local_steps; step++)
                step_of(&learners[i], &fleet->rule, i, 1, (uint64_t)round * local_steps + step);
        noloco_step(learners, states, nodes, sgp_topology_phase(fleet->topology, round), 0.7, 0.5);
    }
    for (uint32_t i = 0; i < nodes; i++)
        most = fmax(most, distance(fleet, i, learners[i].z));
    close_fleet(fleet);
    return most;
}

/* NoLoCo is slowmo after each round of `pairs`: the exchange of halves makes z the sum of
 * mean(z - phi) and mean(phi). */
Test(float64, slowmo_on_random_pairs_is_noloco)
{
    static const uint32_t sizes[] = {2, 3, 4, 5, 8, 13, NODES_MAX};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (size_t r = 0; r < RULES; r++)
            for (uint64_t seed = 1; seed <= 3; seed++) {
                struct fleet fleet;
                struct sgp_generate_options file = {
                    .family = "pairs", .nodes = sizes[s], .seed = seed, .outer = true};
                open_fleet(&fleet, file, 40);
                fleet.rule = rules[r];
                fleet.outer = (struct sgp_outer_settings){SGP_OUTER_SLOWMO, 0.7, 0.5};
                double distance = distance_from_noloco(&fleet, sizes[s], 4);
                cr_assert(
                    lt(dbl, distance, CLOSE), "%u nodes, rule %zu: %g", sizes[s], r, distance);
            }
}

/* What the test above would miss if it could not fail: another kind of outer step, and one after
 * each cycle alone. */
Test(float64, nesterov_or_fewer_outer_steps_on_random_pairs_are_not_noloco)
{
    struct sgp_generate_options file = {.family = "pairs", .nodes = 8, .outer = true};
    struct fleet fleet;
    open_fleet(&fleet, file, 40);
    fleet.outer = (struct sgp_outer_settings){SGP_OUTER_NESTEROV, 0.7, 0.5};
    cr_assert(gt(dbl, distance_from_noloco(&fleet, 8, 4), 1e-3));
    file.family = "bipartite-exponential";
    open_fleet(&fleet, file, 40);
    fleet.outer = (struct sgp_outer_settings){SGP_OUTER_SLOWMO, 0.7, 0.5};
    cr_assert(gt(dbl, distance_from_noloco(&fleet, 8, 4), 1e-3));
}

/* All hear of an early stop, and take their last outer step after the same cycle: by the label, for some have done their steps
 * of it when others have not. */
Test(float64, an_early_stop_leaves_all_with_one_model)
{
    for (uint32_t at = 0; at < 20; at++) {
        struct fleet fleet;
        struct sgp_error error = {0};
        struct sgp_sim_summary summary;
        open_fleet(&fleet, outer_tree(), 1000);
        fleet.outer = (struct sgp_outer_settings){SGP_OUTER_NESTEROV, 0.7, 0.6};
        fleet.options.compute_jitter = 0.5;
        open_sim(&fleet);
        sgp_time time = SGP_SECOND + at * 7 * SGP_MILLISECOND;
        cr_assert(zero(int, sgp_sim_command(fleet.sim, time, at % 5, SGP_EVENT_ENOUGH)));
        cr_assert(zero(int, sgp_sim_run(fleet.sim, SGP_TIME_NEVER, &error)), "%s", error.text);
        sgp_sim_summary(fleet.sim, &summary);
        cr_assert(eq(u32, summary.finished, 5));
        cr_assert(lt(dbl, summary.disagreement, CLOSE), "%u: %g", at, summary.disagreement);
        close_fleet(&fleet);
    }
}

/* EASGD and EAMSGD (Zhang, Choromanska and LeCun 2015, equations 4 and 5; 13 and 14), where the elastic step is taken after
 * that of the gradient. The relay is the first node. */
Test(float64, a_star_with_a_relay_is_elastic_averaging)
{
    const double fraction = 0.15;
    for (size_t r = 0; r < RULES; r++) {
        struct learner x[6] = {0};
        double centre[VALUES] = {0};
        for (uint64_t step = 0; step < 300; step++) {
            double pull[VALUES] = {0};
            for (uint32_t i = 1; i < 6; i++) {
                step_of(&x[i], &rules[r], i, 1, step);
                for (uint32_t c = 0; c < VALUES; c++) {
                    double way = fraction * (x[i].z[c] - centre[c]);
                    x[i].z[c] -= way;
                    pull[c] += way;
                }
            }
            for (uint32_t c = 0; c < VALUES; c++)
                centre[c] += pull[c];
        }
        struct fleet fleet;
        open_fleet(&fleet,
            (struct sgp_generate_options){.family = "elastic", .nodes = 6, .fraction = fraction},
            300);
        fleet.rule = rules[r];
        fleet.options.final_cycles = 0;
        run(&fleet);
        cr_assert(lt(dbl, distance(&fleet, 0, centre), CLOSE), "the centre, rule %zu", r);
        for (uint32_t i = 1; i < 6; i++)
            cr_assert(lt(dbl, distance(&fleet, i, x[i].z), CLOSE), "node %u, rule %zu", i, r);
        close_fleet(&fleet);
    }
}

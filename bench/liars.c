/* SPDX-License-Identifier: Apache-2.0 */
/* Eight learners in the simulator of which one lies: `liars FOLDER SHARDS GUARD LIE SEED`.
 *
 * FOLDER has rows as Fashion-MNIST has them. SHARDS is iid, dirichlet:A or sorted. GUARD is 0 for none. LIE is the number of a
 * lie of sgp/sim.h, and 0 if nobody lies. The honest nodes have all rows, so that a node that lies takes none from them, and the
 * liar trains on those of n0. An MLP with 32 hidden values takes 240 steps of 16 rows, at rate 0.1, on the one-peer exponential
 * graph. Prints one JSON object: the accuracy of the honest nodes' models on the held-out rows, on the mean and the least. */
#include "sgp/generate.h"
#include "sgp/learner.h"
#include "sgp/sim.h"
#include "sgp/sites.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define NODES 8u
#define LIAR 1u
#define ROUNDS 240
#define BATCH 16u
#define RATE 0.1
#define LAYERS "dense 32 relu, dense 10"

struct school {
    struct sgp_dataset *train, *held, *rows[NODES];
    uint64_t seed;
    struct sgp_error *error; /* of a learner that cannot be made */
};

/* ---- rows ---- */

static int read_rows(
    const char *folder, const char *part, struct sgp_error *error, struct sgp_dataset **ret_dataset)
{
    char images[4096], labels[4096];
    (void)snprintf(images, sizeof images, "%s/%s-images-idx3-ubyte.gz", folder, part);
    (void)snprintf(labels, sizeof labels, "%s/%s-labels-idx1-ubyte.gz", folder, part);
    return sgp_dataset_read_idx(images, labels, NULL, 0, error, ret_dataset);
}

/* The rows of a site, which stay where they are. */
static int take_rows(const struct school *school, const uint32_t *owners, uint32_t site,
    struct sgp_dataset **ret_rows)
{
    const uint64_t all = school->train->rows;
    uint32_t *own = calloc(all, sizeof *own);
    uint64_t count = 0;
    for (uint64_t r = 0; own && r < all; r++)
        if (owners[r] == site)
            own[count++] = (uint32_t)r;
    int code = own ? sgp_dataset_subset(school->train, own, count, ret_rows) : -ENOMEM;
    free(own);
    return code;
}

static int divide(struct school *school, const char *shards, struct sgp_error *error)
{
    struct sgp_sites_plan plan = {.count = NODES - 1, .holdout = 0.5, .seed = school->seed};
    uint32_t *owners = calloc(school->train->rows, sizeof *owners);
    int code = owners ? sgp_sites_parse(shards, error, &plan) : -ENOMEM;
    if (code == 0)
        code = sgp_sites_owners(&plan, school->train->labels, school->train->rows,
            school->train->classes, error, owners);
    for (uint32_t i = 0; i < NODES && code == 0; i++)
        code = take_rows(school, owners, i == LIAR ? 0 : i - (i > LIAR), &school->rows[i]);
    free(owners);
    return code;
}

/* ---- training ---- */

static int make_learner(void *context, uint32_t node, struct sgp_trainer **ret_trainer)
{
    const struct school *school = context;
    struct sgp_learner *learner;
    struct sgp_learner_settings settings = {.optimizer = {.kind = SGP_OPTIMIZER_SGD},
        .schedule = {.kind = SGP_SCHEDULE_CONSTANT, .learning_rate = RATE},
        .batch = BATCH,
        .threads = 1,
        .seed = school->seed,
        .node = node,
        .train = school->rows[node],
        .evaluation = school->held};
    int code = sgp_model_init(
        &settings.model, LAYERS, SGP_LOSS_CROSS_ENTROPY, school->train->features, school->error);
    if (code == 0)
        code = sgp_learner_create(&settings, school->error, &learner);
    if (code == 0)
        *ret_trainer = sgp_learner_trainer(learner);
    return code;
}

static double accuracy_of(const struct sgp_sim *sim, uint32_t node)
{
    struct sgp_node_status status;
    struct sgp_evaluation evaluation;
    struct sgp_trainer *trainer = sgp_sim_trainer(sim, node);
    sgp_node_status(sgp_sim_node(sim, node), &status);
    int code = trainer->methods->evaluate(trainer, status.weight_estimate, &evaluation);
    return code == 0 ? evaluation.accuracy : 0; /* a model that is not finite knows nothing */
}

static void print(const struct sgp_sim *sim)
{
    struct sgp_sim_summary summary;
    double mean = 0, least = 1;
    sgp_sim_summary(sim, &summary);
    for (uint32_t i = 0; i < NODES; i++) {
        const double accuracy = i != LIAR ? accuracy_of(sim, i) : 1;
        mean += i != LIAR ? accuracy / (NODES - 1) : 0;
        least = fmin(least, accuracy);
    }
    (void)printf("{\"accuracy\": %.4f, \"least\": %.4f, \"guarded\": %llu, \"clipped\": %llu, "
                 "\"mass_error\": %.3g}\n",
        mean, least, (unsigned long long)summary.shares_guarded,
        (unsigned long long)summary.shares_clipped, summary.mass_error);
}

static int teach(struct school *school, double guard, int lie, struct sgp_error *error)
{
    const struct sgp_generate_options generate = {.family = "one-peer-exponential", .nodes = NODES};
    const struct sgp_sim_liar liar = {.node = LIAR, .lie = (enum sgp_sim_lie)lie};
    struct sgp_topology *topology = NULL;
    struct sgp_sim_options options;
    struct sgp_model model;
    struct sgp_sim *sim = NULL;
    sgp_sim_options_init(&options);
    options.seed = school->seed;
    options.rounds = ROUNDS;
    options.context = school;
    options.trainer = make_learner;
    options.guard = guard;
    options.liars = &liar;
    options.liar_count = lie != 0;
    int code =
        sgp_model_init(&model, LAYERS, SGP_LOSS_CROSS_ENTROPY, school->train->features, error);
    if (code == 0)
        code = sgp_generate(&generate, error, &topology);
    options.dimension = code == 0 ? model.parameters : 0;
    if (code == 0)
        code = sgp_sim_create(topology, &options, error, &sim);
    if (code == 0)
        code = sgp_sim_run(sim, SGP_TIME_NEVER, error);
    if (code == 0)
        print(sim);
    sgp_sim_destroy(sim);
    sgp_topology_destroy(topology);
    return code;
}

int main(int count, char **arguments)
{
    if (count != 6) {
        (void)fprintf(stderr, "Usage: %s FOLDER SHARDS GUARD LIE SEED\n", arguments[0]);
        return 2;
    }
    struct sgp_error error = {0};
    struct school school = {.seed = strtoull(arguments[5], NULL, 10), .error = &error};
    int code = read_rows(arguments[1], "train", &error, &school.train);
    if (code == 0)
        code = read_rows(arguments[1], "t10k", &error, &school.held);
    if (code == 0)
        code = divide(&school, arguments[2], &error);
    if (code == 0)
        code =
            teach(&school, strtod(arguments[3], NULL), (int)strtol(arguments[4], NULL, 10), &error);
    if (code < 0)
        (void)fprintf(stderr, "liars: %s\n", error.text[0] ? error.text : sgp_strerror(code));
    for (uint32_t i = 0; i < NODES; i++)
        sgp_dataset_destroy(school.rows[i]);
    sgp_dataset_destroy(school.held);
    sgp_dataset_destroy(school.train);
    return code < 0;
}

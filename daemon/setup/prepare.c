/* SPDX-License-Identifier: Apache-2.0 */
/* Builds what a node needs before it opens a socket; see prepare.h. Blocks on files. */
#include "prepare_inside.h"

#include "attach/shared.h"
#include "train/names.h"
#include "scaling.h"

#include "sgp/method.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static enum sgp_outer_kind outer_kind(const struct config *config)
{
    return (enum sgp_outer_kind)(config->outer - 1);
}

/* Only a node that no other node dials may listen nowhere. */
int prepare_listen(struct prepared *p, struct sgp_error *error)
{
    bool nowhere = strcmp(p->config->listen, SGP_ADDRESS_NONE) == 0;
    if (!nowhere || !sgp_topology_is_dialled(p->topology, p->self))
        return 0;
    return config_fail(p->config, CONFIG_ID_LISTEN, error, SGP_E_CONFIG,
        "%s gives this node the address %s, which others dial; listen there, or write address=none "
        "in it",
        prepared_file(p), p->topology->nodes[p->self].address);
}

/* Keys that the schedule does not use. */
static void warn_about_schedule(struct prepared *p)
{
    static const struct {
        enum config_id id;
        enum sgp_schedule_parameter parameter;
    } keys[] = {{CONFIG_ID_MILESTONES, SGP_SCHEDULE_MILESTONES},
        {CONFIG_ID_FACTOR, SGP_SCHEDULE_FACTOR}, {CONFIG_ID_GROWTHS, SGP_SCHEDULE_GROWTHS},
        {CONFIG_ID_FINAL_FRACTION, SGP_SCHEDULE_FINAL}, {CONFIG_ID_LOW_FRACTION, SGP_SCHEDULE_LOW},
        {CONFIG_ID_PERIOD_EPOCHS, SGP_SCHEDULE_PERIOD}};
    const struct config *config = p->config;
    char users[SGP_SCHEDULE_WORDS_BYTES];
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        sgp_schedule_users(keys[i].parameter, users);
        if (config->changed[keys[i].id] && !sgp_schedule_uses(config->schedule, keys[i].parameter))
            prepared_warn(p, "%s:%u: [optimizer] %s has no effect: it is for schedule = %s",
                config->file, config->lines[keys[i].id], config_keys[keys[i].id].key, users);
    }
}

/* Keys that have no effect. Defaults, and keys for another algorithm, are no reason to refuse. */
static int warn_about_idle_keys(struct prepared *p, struct sgp_error *error)
{
    const struct config *config = p->config;
    bool outer = outer_kind(config) != SGP_OUTER_NONE;
    unsigned uses = sgp_optimizer_uses(config->optimizer);
    unsigned loss_uses = sgp_loss_uses(config->loss);
    static const char of_fleet[] = "it is for scale = fleet";
    char none[64];
    (void)snprintf(none, sizeof none, "kind = %s has none", sgp_optimizer_name(config->optimizer));
    const struct {
        enum config_id id;
        bool used;
        const char *why;
    } keys[] = {
        {CONFIG_ID_OVERLAP, sgp_method_overlaps(p->method), "it is for algorithm osgp"},
        {CONFIG_ID_BACKUP_NEIGHBOURS, sgp_method_waits(p->method),
            "with this algorithm nobody is waited for"},
        {CONFIG_ID_LABEL_SMOOTHING, loss_uses & SGP_LOSS_USES_SMOOTHING,
            "it is for loss = cross-entropy"},
        {CONFIG_ID_HUBER_DELTA, loss_uses & SGP_LOSS_USES_DELTA, "it is for loss = huber"},
        {CONFIG_ID_CLASS_WEIGHTS, loss_uses & SGP_LOSS_USES_WEIGHTS,
            "it is for loss = cross-entropy and binary-cross-entropy"},
        {CONFIG_ID_MOMENTUM, uses & SGP_USES_MOMENTUM, none},
        {CONFIG_ID_BETA1, uses & SGP_USES_BETAS, none},
        {CONFIG_ID_BETA2, uses & SGP_USES_BETAS, none},
        {CONFIG_ID_ALPHA, uses & SGP_USES_ALPHA, none},
        {CONFIG_ID_EPSILON, uses & SGP_USES_EPSILON, none},
        {CONFIG_ID_TRUST, uses & SGP_USES_TRUST, none},
        {CONFIG_ID_NOISE, uses & SGP_USES_NOISE, none},
        {CONFIG_ID_OUTER, sgp_topology_outer(p->topology) != NULL,
            "no digraph of the topology says outer=true"},
        {CONFIG_ID_OUTER_LEARNING_RATE, outer, "[outer] kind = none"},
        {CONFIG_ID_OUTER_MOMENTUM, outer, "[outer] kind = none"},
        {CONFIG_ID_COMPRESSION, prepared_gives_updates(p) || p->topology->owner == SGP_NODE_NONE,
            "a token is plain, and the key of an owner's copies is copies"},
        {CONFIG_ID_COPIES,
            p->topology->owner != SGP_NODE_NONE && !sgp_topology_has_token(p->topology) &&
                sgp_method_waits(p->method),
            "it is for the copies of an owner that waits for its workers (algorithm = backup)"},
        {CONFIG_ID_HOLDOUT, !*config->test, "test names the rows to test on"},
        {CONFIG_ID_CATEGORIES, scaling_is_of_fleet(config), of_fleet},
        {CONFIG_ID_IGNORE, scaling_is_of_fleet(config), of_fleet},
    };
    (void)error; /* no step here can fail */
    warn_about_schedule(p);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (config->changed[keys[i].id] && !keys[i].used)
            prepared_warn(p, "%s:%u: [%s] %s has no effect: %s", config->file,
                config->lines[keys[i].id], config_keys[keys[i].id].section,
                config_keys[keys[i].id].key, keys[i].why);
    return 0;
}

/* An outer step's momentum multiplies what a coarse chooser has left out and delivers later. */
static int check_compression(struct prepared *p, struct sgp_error *error)
{
    const struct sgp_chooser *chooser = &p->config->compression;
    bool owned = p->topology->owner != SGP_NODE_NONE && !sgp_topology_has_token(p->topology);
    bool outer = outer_kind(p->config) != SGP_OUTER_NONE && p->config->outer_momentum > 0;
    if (sgp_chooser_is_of_updates(chooser) && !owned)
        return config_fail(p->config, CONFIG_ID_COMPRESSION, error, SGP_E_CONFIG,
            "%s is for files with owners, and %s has none whose workers give updates; take one "
            "of " SGP_COMPRESSOR_SHARE_WORDS,
            chooser->word, prepared_file(p));
    if (!sgp_chooser_is_of_copies(&p->config->copies))
        return config_fail(p->config, CONFIG_ID_COPIES, error, SGP_E_CONFIG,
            "%s is for updates: of a copy it leaves out too much; take one "
            "of " SGP_CHOOSER_COPY_WORDS,
            p->config->copies.word);
    if (sgp_chooser_is_coarse(chooser) && outer)
        return config_fail(p->config, CONFIG_ID_COMPRESSION, error, SGP_E_CONFIG,
            "%s does not go with the momentum of [outer], which makes the error that it brings "
            "later larger; take int4, or [outer] momentum = 0",
            chooser->word);
    return 0;
}

/* Length and pace of the training. */

/* Whether each update is a step of its own: an owner adds it on arrival, or a token does. */
static bool steps_alone(const struct prepared *p)
{
    return p->topology->owner != SGP_NODE_NONE &&
           (sgp_topology_has_token(p->topology) || !sgp_method_waits(p->method));
}

/* The noise of an average falls with its number of gradients: an owner averages those of all
 * workers but its backups. */
static double noise_fraction(const struct prepared *p)
{
    if (p->config->noise == CONFIG_NOISE_NODE || steps_alone(p))
        return 1;
    uint32_t backup = p->topology->owner != SGP_NODE_NONE ? p->topology->phases[0].backup : 0;
    return 1.0 / (sgp_topology_trainers(p->topology) - backup);
}

static void warn_about_noise(struct prepared *p)
{
    const struct config *config = p->config;
    const char *why = steps_alone(p)       ? "with this algorithm each update is a step of its own"
                      : config->batch == 1 ? "a batch of one row does not show its noise; give "
                                             "[train] batch 2 and more"
                                           : NULL;
    if (config->noise == CONFIG_NOISE_FLEET && why != NULL)
        prepared_warn(p, "%s:%u: [optimizer] noise has no effect: %s", config->file,
            config->lines[CONFIG_ID_NOISE], why);
}

/* If the batch grows beyond the rows of the node, the schedule loses its purpose. */
static void warn_about_batch(struct prepared *p)
{
    const struct config *config = p->config;
    const struct sgp_schedule *schedule = &p->settings.schedule;
    uint32_t most = sgp_schedule_batch(schedule, (uint32_t)config->batch, p->epochs);
    if (config->base_batch > 0 && steps_alone(p))
        prepared_warn(p,
            "%s:%u: [optimizer] base_batch: with algorithm %s each update is a step of its own, "
            "and "
            "the rate is scaled for the rows of all nodes; leave base_batch out",
            config->file, config->lines[CONFIG_ID_BASE_BATCH], p->method->name);
    if (most > config->batch && most > p->data.train->rows)
        prepared_warn(p,
            "%s:%u: [optimizer] schedule: the batch is to grow to %" PRIu32 " rows, and this node "
            "has %" PRIu64 "; give fewer growths, so that the rate falls at the other milestones",
            config->file, config->lines[CONFIG_ID_SCHEDULE], most, p->data.train->rows);
}

static int prepare_rounds(struct prepared *p, struct sgp_error *error)
{
    const struct config *config = p->config;
    if (prepare_is_relay(p)) /* a relay continues for as long as the others */
        return 0;
    struct sgp_schedule *schedule = &p->settings.schedule;
    uint64_t rows = p->data.train->rows;
    uint32_t batch = (uint32_t)config->batch;
    int code = config_schedule(config, rows, sgp_topology_trainers(p->topology), error, schedule);
    if (code < 0)
        return code;
    p->steps_per_epoch = sgp_schedule_find(schedule, rows, batch, 0).steps_per_epoch;
    uint64_t steps = sgp_schedule_steps(schedule, rows, batch, config->epochs);
    uint64_t rounds =
        config->rounds ? config->rounds : (steps + config->local_steps - 1) / config->local_steps;
    if (rounds > (uint64_t)SGP_ROUND_MAX)
        return config_fail(config, CONFIG_ID_EPOCHS, error, SGP_E_LIMIT,
            "%" PRIu64 " rounds are more than a round's number can hold; train for fewer", rounds);
    p->rounds = (sgp_round)rounds;
    p->epochs = schedule->epochs;
    warn_about_noise(p);
    warn_about_batch(p);
    return 0;
}

static int fail_learner(
    const struct prepared *p, int code, const struct sgp_error *why, struct sgp_error *error)
{
    return sgp_fail(
        error, code, "%s: %s", p->config->file, why->code ? why->text : sgp_strerror(code));
}

static enum sgp_precision precision_of(const struct config *config)
{
    return (enum sgp_precision)(config->precision - 1);
}

static int prepare_settings(struct prepared *p, struct sgp_error *error)
{
    const struct config *config = p->config;
    struct sgp_error why = {0};
    int code = sgp_precision_check(precision_of(config), &why);
    if (code < 0)
        return config_fail(config, CONFIG_ID_PRECISION, error, code, "%s", why.text);
    p->settings = (struct sgp_learner_settings){.model = p->model,
        .outer = {.kind = prepared_takes_outer_steps(p) ? outer_kind(config) : SGP_OUTER_NONE,
            .learning_rate = config->outer_learning_rate,
            .momentum = config->outer_momentum},
        .batch = (uint32_t)config->batch,
        .threads = (uint32_t)config->threads,
        .precision = precision_of(config),
        .seed = config->seed,
        .node = p->self,
        .train = p->data.train,
        .evaluation = p->data.test,
        .schedule = p->settings.schedule,
        .privacy = p->settings.privacy};
    config_rule(config, noise_fraction(p), &p->settings.optimizer);
    code = sgp_learner_check(&p->settings, &why, &p->workspace_bytes);
    if (code < 0)
        return fail_learner(p, code, &why, error);
    code = sgp_topology_check_owners(p->topology, p->parameters, &why);
    if (code < 0)
        return sgp_fail(error, code, "%s: %.430s", prepared_file(p), why.text);
    p->fingerprint = (struct sgp_fingerprint){.shape = sgp_model_shape_digest(&p->model),
        .loss = sgp_model_loss_digest(&p->model),
        .topology = p->topology->digest};
    if (prepare_is_relay(p)) /* a relay cannot say more */
        return 0;
    p->fingerprint.classes = sgp_dataset_classes_digest(p->data.train);
    p->fingerprint.scaling = sgp_dataset_scaling_digest(p->data.train);
    p->fingerprint.learning_rate = p->settings.schedule.learning_rate;
    p->fingerprint.batch = (uint32_t)config->batch;
    p->fingerprint.data = p->privacy.on ? 0 : p->data.digest; /* it is one of all rows */
    return 0;
}

/* The whole. */

int prepare(const struct config *config, const struct sgp_data_cache *cache,
    struct sgp_error *error, struct prepared *ret_prepared)
{
    static int (*const layered[])(struct prepared *, struct sgp_error *) = {prepare_topology,
        prepare_listen, warn_about_idle_keys, check_compression, prepare_data, prepare_columns,
        prepare_warn_of_columns, prepare_warn_of_targets, prepare_model, prepare_rounds,
        prepare_privacy, prepare_settings, prepare_warn_of_outer, prepare_best, NULL};
    static int (*const attached[])(struct prepared *, struct sgp_error *) = {prepare_topology,
        prepare_listen, warn_about_idle_keys, check_compression, prepare_best, prepare_attached,
        NULL};
    struct prepared p = {.config = config, .cache = cache};
    for (int (*const *stage)(struct prepared *, struct sgp_error *) =
             config->kind == CONFIG_ATTACHED ? attached : layered;
         *stage != NULL; stage++) {
        int code = (*stage)(&p, error);
        if (code < 0) {
            prepared_finish(&p);
            return code;
        }
    }
    if (!p.awaiting_model && p.ends == NULL && prepared_name_tensors(&p, error) < 0) {
        prepared_finish(&p);
        return -ENOMEM;
    }
    prepared_warn_of_compression(&p);
    prepared_sum_memory(&p);
    prepared_warn_of_memory(&p);
    p.cache = NULL;
    *ret_prepared = p;
    return 0;
}

/* A key for each process: nothing of it is stored, and no restart has it again. */
static int draw_key(uint8_t key[static SGP_NOISE_KEY_BYTES], struct sgp_error *error)
{
    if (getrandom(key, SGP_NOISE_KEY_BYTES, 0) != SGP_NOISE_KEY_BYTES)
        return sgp_fail(error, -EIO, "no random key for the noise of private steps");
    return 0;
}

int prepared_learn(struct prepared *p, struct sgp_error *error)
{
    struct sgp_error why = {0};
    const struct sgp_attached_settings attached = {.parameters = p->parameters,
        .values_from = p->layout ? shared_values_from(p->layout) : 0,
        .outer = p->settings.outer};
    int code = prepared_check_memory(p, error);
    if (code == 0 && p->privacy.on)
        code = draw_key(p->settings.privacy.key, error);
    if (code < 0)
        return code;
    code = p->layout ? sgp_attached_create(&attached, &why, &p->attached)
                     : sgp_learner_create(&p->settings, &why, &p->learner);
    if (code == -ENOMEM)
        return prepared_no_memory(p, error);
    if (code < 0)
        return fail_learner(p, code, &why, error);
    p->trainer = p->layout ? sgp_attached_trainer(p->attached) : sgp_learner_trainer(p->learner);
    p->trainer->tensors = p->tensors;
    return 0;
}

int prepare_place(const struct config *config, const struct signed_file_wish *wish,
    struct sgp_error *error, struct prepared *ret_prepared)
{
    struct prepared p = {.config = config, .wish = wish};
    int code = prepare_topology(&p, error);
    p.wish = NULL;
    if (code < 0) {
        prepared_finish(&p);
        return code;
    }
    *ret_prepared = p;
    return 0;
}

void prepared_swap_place(
    struct prepared *p, struct prepared *place, const struct sgp_node_needs *needs)
{
    struct sgp_topology *former = p->topology;
    struct sgp_rollout *rollout = p->rollout;
    p->topology = place->topology;
    p->rollout = place->rollout;
    place->rollout = rollout;
    memcpy(p->version, place->version, sizeof p->version);
    place->topology = former;
    struct sgp_key *key = p->key;
    p->key = place->key;
    place->key = key;
    p->self = place->self;
    p->analysis = place->analysis;
    p->weight_least = place->weight_least;
    p->weight_most = place->weight_most;
    p->needs = *needs;
    p->fingerprint.topology = p->topology->digest;
    p->warning_count = place->warning_count;
    memcpy(p->warnings, place->warnings, sizeof p->warnings);
    prepared_sum_memory(p);
}

void prepared_finish(struct prepared *p)
{
    if (p->trainer != NULL)
        p->trainer->methods->destroy(p->trainer);
    free(p->ends);
    sgp_model_file_destroy(p->layout);
    sgp_dataset_destroy(p->data.train);
    sgp_dataset_destroy(p->data.test);
    sgp_scaling_destroy(p->scaling);
    sgp_topology_destroy(p->topology);
    sgp_rollout_destroy(p->rollout);
    sgp_key_release(p->key);
    free(p->class_weights);
    free(p->scaling_text);
    free(p->columns_text);
    free(p->targets_text);
    sgp_names_free(p->class_names, p->class_count);
    sgp_names_free(p->told_classes, p->told_class_count);
    *p = (struct prepared){0};
}

void prepared_node_config(const struct prepared *p, struct sgp_node_config *ret_node_config)
{
    *ret_node_config = (struct sgp_node_config){.topology = p->topology,
        .self = p->self,
        .method = p->method,
        .overlap = (uint32_t)p->config->overlap,
        .step_by_rate = p->config->step_by_rate == CONFIG_YES,
        .backup_neighbours = (uint32_t)p->config->backup_neighbours,
        .patience = (sgp_time)p->config->patience * SGP_SECOND,
        .parameters = p->parameters,
        .fingerprint = p->fingerprint,
        .rounds = p->rounds,
        .open = p->open,
        .local_steps = (uint32_t)p->config->local_steps,
        .compressor = p->config->compression.compressor,
        .copies = p->config->copies.compressor,
        .candidates = p->config->guard > 0 ? SGP_CANDIDATES_MOST : 0,
        .final_cycles = (uint32_t)p->config->final_cycles,
        .start = p->config->start,
        .weight_least = p->weight_least,
        .weight_most = p->weight_most};
}

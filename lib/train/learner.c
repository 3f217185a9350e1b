/* SPDX-License-Identifier: Apache-2.0 */
/* Owns a model in training: x, local layers, optimiser, gradient, the batch in the network, and the
 * order of the rows. Thread: the trainer's. Nothing allocates after creation. */
#include "sgp/learner.h"

#include "clipped.h"
#include "local_part.h"
#include "network.h"
#include "sgp/buffer.h"
#include "sgp/random.h"
#include "sgp/update.h"
#include "target_scale.h"
#include "vector_trainer.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Rows that are evaluated or predicted together. They are enough to keep BLAS busy, unless the rows
 * are very wide. In that case fewer rows are used, so that evaluation takes no more memory than
 * training. */
#define BLOCK_ROWS 256u
#define BLOCK_FLOATS (1u << 22)

#define STREAM_CHANCE ((uint64_t)0x64726f70 << 32) /* for dropout; a node's index is added */

struct sgp_learner {
    struct sgp_vector_trainer vector; /* first */
    struct sgp_learner_settings settings;
    struct sgp_network network;
    struct sgp_optimizer optimizer;
    struct sgp_tensor_end ends[SGP_MODEL_TENSORS_MAX]; /* of the tensors of x */
    struct sgp_local_part local;
    struct sgp_clipped clipped; /* of private steps */
    float *gradient;
    float *deviation;       /* of the gradient; NULL: the rule does not need it */
    uint64_t steps;         /* taken since the start: the whole position in data and schedule */
    uint64_t ordered_epoch; /* the epoch of `order` */
    uint32_t *order;        /* the rows of that epoch; of a private step, those that it drew */
    uint32_t *block;        /* row numbers of an evaluation block */
    uint32_t *labels;       /* of a batch; NULL for regression */
    float *values;          /* of a batch; NULL for classes */
};

/* The learner's position in its data and its schedule. */
static struct sgp_schedule_place place_of(const struct sgp_learner *learner)
{
    const struct sgp_learner_settings *settings = &learner->settings;
    return sgp_schedule_find(
        &settings->schedule, settings->train->rows, settings->batch, learner->steps);
}

uint64_t sgp_learner_steps_per_epoch(const struct sgp_learner *learner)
{
    return learner->settings.train ? place_of(learner).steps_per_epoch : 0;
}

/* Put the rows in the order of an epoch. */
static void order_rows(struct sgp_learner *learner, uint64_t epoch)
{
    uint32_t rows = (uint32_t)learner->settings.train->rows;
    for (uint32_t i = 0; i < rows; i++)
        learner->order[i] = i;
    struct sgp_random random;
    uint64_t stream = ((uint64_t)learner->settings.node + 1) << 32 | (epoch & UINT32_MAX);
    sgp_random_init(&random, learner->settings.seed, stream);
    sgp_random_shuffle(&random, learner->order, rows);
    learner->ordered_epoch = epoch;
}

/* Collect rows into the network's memory, as sgp_dataset_gather does. */
static void gather_rows(struct sgp_learner *learner, const struct sgp_dataset *dataset,
    const uint32_t *indices, size_t rows, size_t following)
{
    const struct sgp_model *model = &learner->settings.model;
    float *features = learner->network.activations[0];
    sgp_dataset_gather(
        dataset, features, learner->labels, learner->values, indices, rows, following);
    if (sgp_model_vocabulary(model) == 0 || !dataset->bytes)
        return;
    for (size_t i = 0; i < rows * model->inputs; i++) /* back to whole numbers */
        features[i] = rintf(255.0f * features[i]);
}

/* --- training --- */

/* The dropped values of a step depend on its number and on the node. */
static uint64_t chance_of(const struct sgp_learner *learner)
{
    uint64_t node = sgp_random_at(learner->settings.seed, STREAM_CHANCE + learner->settings.node);
    return sgp_random_at(node, learner->steps);
}

/* The rows of one pass: order[first..first + count). */
struct span {
    uint64_t first;
    size_t count;
    size_t before; /* rows of the same step that earlier passes had */
    uint64_t rest; /* rows that follow in the epoch */
};

/* A gradient, or its deviation: of x and of the local layers. */
struct slope {
    float *shared, *local; /* local: NULL if no layer is */
};

static bool is_finite(const struct sgp_learner *learner, struct slope slope)
{
    const struct sgp_kernels *kernels = learner->vector.kernels;
    return isfinite(kernels->largest(slope.shared, learner->settings.model.parameters)) &&
           (slope.local == NULL || isfinite(kernels->largest(slope.local, learner->local.count)));
}

/* Compute the gradient of the mean loss over the rows, and add their losses to *loss. */
static int differentiate(struct sgp_learner *learner, double weight, struct span span,
    uint64_t chance, struct slope gradient, double *loss)
{
    const struct sgp_learner_settings *settings = &learner->settings;
    struct sgp_network *network = &learner->network;
    const float *x = sgp_vector_trainer_x(&learner->vector);
    gather_rows(learner, settings->train, learner->order + span.first, span.count, span.rest);
    sgp_network_forward_training(network, x, weight, span.before, span.count, chance);
    double sum = sgp_network_loss(network, learner->labels, learner->values, span.count).loss;
    if (!isfinite(sum))
        return SGP_E_DIVERGED;
    network->local_gradient = gradient.local;
    sgp_network_backward(network, gradient.shared, x, weight, span.count);
    if (!is_finite(learner, gradient))
        return SGP_E_DIVERGED;
    *loss += sum;
    return 0;
}

/* mean = a * mean + b * other, and other = the deviation of that mean: sgp/optimizer.h. */
static void combine(
    const struct sgp_kernels *kernels, float *mean, float *other, double a, double b, size_t count)
{
    /* with ga the mean before and gb the other: ga - gb = (mean - gb) / a */
    float factor = (float)(sqrt(a * b) / a);
    kernels->scale(mean, mean, (float)a, count);
    kernels->absorb(mean, other, (float)b, count);
    kernels->scale(other, other, -factor, count);
    kernels->absorb(other, mean, factor, count);
}

/* Compute the gradient of two halves, and its deviation: sgp/optimizer.h. There must be 2 rows or
 * more. */
static int differentiate_halves(struct sgp_learner *learner, double weight, struct span batch,
    struct slope mean, struct slope deviation, double *loss)
{
    struct span half = batch, other = batch;
    half.count = batch.count / 2;
    other.count = batch.count - half.count;
    half.rest += other.count;
    other.first += half.count;
    other.before = half.count;
    uint64_t chance = chance_of(learner);
    int status = differentiate(learner, weight, half, chance, mean, loss);
    if (status == 0)
        status = differentiate(learner, weight, other, sgp_random_at(chance, 1), deviation, loss);
    if (status < 0)
        return status;
    double a = (double)half.count / (double)batch.count, b = 1 - a;
    const struct sgp_kernels *kernels = learner->vector.kernels;
    combine(kernels, mean.shared, deviation.shared, a, b, learner->settings.model.parameters);
    if (mean.local != NULL)
        combine(kernels, mean.local, deviation.local, a, b, learner->local.count);
    return 0;
}

/* Take a step with the gradient at x / weight, and with its deviation if that is known. */
static void advance(struct sgp_learner *learner, double weight, double rate, bool deviates)
{
    float *x = sgp_vector_trainer_x(&learner->vector);
    const bool frozen = learner->settings.frozen;
    if (!frozen)
        sgp_optimizer_step(&learner->optimizer, x, learner->gradient,
            deviates ? learner->deviation : NULL, weight, rate);
    sgp_local_part_step(&learner->local, rate);
    if (rate > 0) /* a step at rate 0 changes nothing */
        sgp_network_settle(&learner->network, frozen ? NULL : x);
}

/* gradient[0..parameters) = the sum of the clipped gradients of the first `drawn` of these rows,
 * each times its share in the step. Their number is the capacity of a pass. Add the losses of all
 * to *loss. */
static void differentiate_clipped(struct sgp_learner *learner, double weight, const uint32_t *rows,
    uint32_t drawn, size_t before, float *gradient, double *loss)
{
    struct sgp_network *network = &learner->network;
    struct sgp_clipped *clipped = &learner->clipped;
    const float *x = sgp_vector_trainer_x(&learner->vector);
    const size_t count = clipped->capacity;
    gather_rows(learner, learner->settings.train, rows, count, 0);
    /* Dropped values depend on the place of a row in the pass, which one row more or less changes.
     * So they must be secret, or that row would change the gradients of others. */
    uint64_t chance = sgp_noise_bits(clipped->noise);
    sgp_network_forward_training(network, x, weight, before, count, chance);
    *loss += sgp_network_loss(network, learner->labels, learner->values, count).loss;
    sgp_clipped_measure(clipped, network, gradient, x, weight, drawn);
    sgp_network_weigh_rows(network, gradient, count, clipped->factors);
}

/* The gradient of a private step (Abadi et al. 2016, algorithm 1). Rows are drawn by lot, and their
 * gradients are clipped. Their sum, divided by the expected number of rows, gets noise. A step
 * without rows has the noise alone. Returns the mean loss of the rows that were computed. */
static double differentiate_privately(struct sgp_learner *learner, double weight)
{
    const struct sgp_kernels *kernels = learner->vector.kernels;
    struct sgp_clipped *clipped = &learner->clipped;
    const uint64_t parameters = learner->settings.model.parameters;
    const uint32_t rows = (uint32_t)learner->settings.train->rows;
    uint32_t drawn = sgp_clipped_draw(clipped, rows, learner->steps, learner->order), first = 0;
    double loss = 0;
    do {
        float *sum = first == 0 ? learner->gradient : clipped->part;
        uint32_t left = drawn - first;
        differentiate_clipped(learner, weight, learner->order + first, left, first, sum, &loss);
        if (first > 0)
            kernels->absorb(learner->gradient, sum, 1, parameters);
        first += clipped->capacity;
    } while (first < drawn);
    sgp_noise_add(clipped->noise, learner->gradient, clipped->deviation, parameters);
    return loss / first;
}

/* Take one private step. Whether it fails depends on x alone, which others know, and not on the
 * rows. The digest of the update is not told. */
static int step_privately(
    struct sgp_learner *learner, double weight, double pace, struct sgp_training *training)
{
    const struct sgp_learner_settings *settings = &learner->settings;
    const float *x = sgp_vector_trainer_x(&learner->vector);
    if (!isfinite(learner->vector.kernels->largest(x, settings->model.parameters)))
        return SGP_E_DIVERGED;
    double loss = differentiate_privately(learner, weight);
    training->learning_rate =
        pace * sgp_schedule_rate(&settings->schedule, place_of(learner).middle);
    advance(learner, weight, training->learning_rate, false);
    learner->steps++;
    training->samples += settings->batch;
    training->loss += loss * settings->batch;
    return 0;
}

/* Take one step. If the step fails, nothing changes. */
static int step(
    struct sgp_learner *learner, double weight, double pace, struct sgp_training *training)
{
    const struct sgp_learner_settings *settings = &learner->settings;
    const struct sgp_schedule_place place = place_of(learner);
    if (place.epoch != learner->ordered_epoch)
        order_rows(learner, place.epoch);
    struct span batch = {.first = place.step * place.batch};
    uint64_t left = settings->train->rows - batch.first;
    batch.count = left < place.batch ? left : place.batch;
    batch.rest = left - batch.count;

    const struct slope gradient = {learner->gradient, learner->local.gradient};
    const struct slope deviation = {learner->deviation, learner->local.deviation};
    bool deviates = batch.count > 1 && learner->deviation != NULL;
    double loss = 0;
    int status = deviates
                     ? differentiate_halves(learner, weight, batch, gradient, deviation, &loss)
                     : differentiate(learner, weight, batch, chance_of(learner), gradient, &loss);
    if (status < 0)
        return status;
    training->learning_rate = pace * sgp_schedule_rate(&settings->schedule, place.middle);
    advance(learner, weight, training->learning_rate, deviates);
    /* the gradient, because x and the optimiser's vectors follow from it */
    if (training->learning_rate > 0 && !settings->frozen)
        training->update = sgp_update_digest(
            learner->gradient, NULL, settings->model.parameters, training->update);
    learner->steps++;
    training->samples += batch.count;
    training->loss += loss;
    return 0;
}

static int learner_train(struct sgp_trainer *trainer, double weight, uint32_t steps, double pace,
    struct sgp_training *ret_training)
{
    struct sgp_learner *learner = (struct sgp_learner *)trainer;
    sgp_assert(weight > 0.0 && learner->settings.train);
    struct sgp_training training = {0};
    for (uint32_t i = 0; i < steps; i++) {
        int status = learner->clipped.noise ? step_privately(learner, weight, pace, &training)
                                            : step(learner, weight, pace, &training);
        if (status < 0)
            return status;
    }
    training.loss /= (double)training.samples;
    training.epoch = place_of(learner).done;
    *ret_training = training;
    return 0;
}

/* --- using the model --- */

/* Add the rows of a block to the measures, whose sums take finite numbers alone. Returns whether
 * the numbers are finite. */
static bool add_rows(
    struct sgp_learner *learner, const float *outputs, size_t rows, struct sgp_measures *measures)
{
    const struct sgp_model *model = &learner->settings.model;
    const struct sgp_target_scale *scales = model->loss_settings.target_scales;
    for (size_t i = 0; i < rows * model->outputs; i++) {
        const struct sgp_target_scale *scale = scales ? &scales[i % model->outputs] : NULL;
        if (!isfinite(scale ? sgp_target_scale_restore(scale, outputs[i]) : outputs[i]))
            return false;
    }
    sgp_loss_measure(
        measures, &model->loss_settings, outputs, learner->labels, learner->values, rows);
    return true;
}

/* `measures`: NULL, or those to which the rows are added. */
static int evaluate(struct sgp_learner *learner, double weight,
    struct sgp_evaluation *ret_evaluation, struct sgp_measures *measures)
{
    const struct sgp_dataset *dataset = learner->settings.evaluation;
    const atomic_bool *cut = learner->vector.trainer.cut;
    const float *x = sgp_vector_trainer_x(&learner->vector);
    uint64_t total = dataset ? dataset->rows : 0;
    struct sgp_loss_sum sum = {0};
    for (uint64_t first = 0; first < total; first += learner->network.rows_max) {
        if (cut && atomic_load(cut))
            return -ECANCELED;
        uint64_t left = total - first;
        size_t rows = left < learner->network.rows_max ? left : learner->network.rows_max;
        for (size_t i = 0; i < rows; i++)
            learner->block[i] = (uint32_t)(first + i);
        gather_rows(learner, dataset, learner->block, rows, 0);
        const float *outputs = sgp_network_forward(&learner->network, x, weight, rows);
        struct sgp_loss_sum part =
            sgp_network_loss(&learner->network, learner->labels, learner->values, rows);
        if (measures && !add_rows(learner, outputs, rows, measures))
            return SGP_E_DIVERGED;
        sum.loss += part.loss;
        sum.judged += part.judged;
        sum.correct += part.correct;
    }
    if (!isfinite(sum.loss))
        return SGP_E_DIVERGED;
    *ret_evaluation = (struct sgp_evaluation){.samples = total,
        .loss = total > 0 ? sum.loss / (double)total : NAN,
        .accuracy = sum.judged > 0 ? (double)sum.correct / (double)sum.judged : NAN};
    return 0;
}

static int learner_evaluate(
    struct sgp_trainer *trainer, double weight, struct sgp_evaluation *ret_evaluation)
{
    return evaluate((struct sgp_learner *)trainer, weight, ret_evaluation, NULL);
}

static int learner_measure(struct sgp_trainer *trainer, double weight,
    struct sgp_evaluation *ret_evaluation, struct sgp_measures *ret_measures)
{
    struct sgp_learner *learner = (struct sgp_learner *)trainer;
    const struct sgp_model *model = &learner->settings.model;
    const struct sgp_dataset *dataset = learner->settings.evaluation;
    struct sgp_measures measures;
    int code = sgp_measures_init(
        &measures, sgp_loss_measures(model->loss, dataset && dataset->classes > 0), model->outputs);
    if (code < 0)
        return code;
    code = evaluate(learner, weight, ret_evaluation, &measures);
    if (code == 0)
        *ret_measures = measures;
    else
        sgp_measures_finish(&measures);
    return code;
}

void sgp_learner_predict(struct sgp_learner *learner, double weight, const float *features,
    uint64_t rows, float *outputs)
{
    const struct sgp_model *model = &learner->settings.model;
    const float *x = sgp_vector_trainer_x(&learner->vector);
    while (rows > 0) {
        size_t block = rows < learner->network.rows_max ? rows : learner->network.rows_max;
        memcpy(learner->network.activations[0], features, block * model->inputs * sizeof *features);
        const float *result = sgp_network_forward(&learner->network, x, weight, block);
        sgp_loss_predict(
            model->loss, &model->loss_settings, outputs, result, block, model->outputs);
        features += block * model->inputs;
        outputs += block * model->outputs;
        rows -= block;
    }
}

static void learner_model(const struct sgp_trainer *trainer, double weight, float *values)
{
    struct sgp_learner *learner = (struct sgp_learner *)trainer;
    const struct sgp_model *model = &learner->settings.model;
    if (model->local_parameters == 0) {
        sgp_vector_trainer_estimate(trainer, weight, values);
        return;
    }
    sgp_model_join(model, sgp_vector_trainer_x(&learner->vector), learner->local.values, values);
    struct sgp_model_tensor tensors[SGP_MODEL_TENSORS_MAX];
    uint32_t count = sgp_model_tensors(model, tensors);
    for (uint32_t i = 0; i < count; values += tensors[i++].count)
        if (!tensors[i].local)
            learner->vector.kernels->estimate(values, values, weight, tensors[i].count);
}

void sgp_learner_exchange(struct sgp_learner *learner, float *values)
{
    sgp_model_exchange(&learner->settings.model, sgp_vector_trainer_x(&learner->vector),
        learner->local.values, values);
}

/* --- life --- */

struct sgp_trainer *sgp_learner_trainer(struct sgp_learner *learner)
{
    return &learner->vector.trainer;
}

void sgp_learner_destroy(struct sgp_learner *learner)
{
    if (!learner)
        return;
    sgp_vector_trainer_finish(&learner->vector);
    sgp_network_finish(&learner->network);
    sgp_optimizer_finish(&learner->optimizer);
    sgp_local_part_finish(&learner->local);
    sgp_clipped_finish(&learner->clipped);
    sgp_vector_destroy(learner->gradient);
    sgp_vector_destroy(learner->deviation);
    sgp_vector_destroy(learner->values);
    free(learner->order);
    free(learner->block);
    free(learner->labels);
    free(learner);
}

/* --- state across restarts --- */

static void learner_adopt(struct sgp_trainer *trainer, const float *values, double factor)
{
    static const struct sgp_trainer_state nothing;
    struct sgp_learner *learner = (struct sgp_learner *)trainer;
    sgp_vector_trainer_adopt(trainer, values, factor);
    sgp_optimizer_resume(&learner->optimizer, &nothing);
    sgp_local_part_forget(&learner->local);
}

static void learner_state(struct sgp_trainer *trainer, struct sgp_trainer_state *ret_state)
{
    const struct sgp_learner *learner = (struct sgp_learner *)trainer;
    sgp_vector_trainer_state(trainer, ret_state);
    sgp_optimizer_state(&learner->optimizer, ret_state);
    sgp_local_part_state(&learner->local, ret_state);
    sgp_state_add_counter(ret_state, SGP_STATE_STEPS, learner->steps);
}

static void learner_resume(struct sgp_trainer *trainer, const struct sgp_trainer_state *state)
{
    struct sgp_learner *learner = (struct sgp_learner *)trainer;
    sgp_vector_trainer_resume(trainer, state);
    sgp_optimizer_resume(&learner->optimizer, state);
    sgp_local_part_resume(&learner->local, state);
    learner->steps = sgp_state_counter(state, SGP_STATE_STEPS);
}

static void learner_go_to(struct sgp_trainer *trainer, uint64_t steps)
{
    ((struct sgp_learner *)trainer)->steps = steps;
}

static void learner_destroy(struct sgp_trainer *trainer)
{
    sgp_learner_destroy((struct sgp_learner *)trainer);
}

static const struct sgp_trainer_methods methods = {.train = learner_train,
    .publish = sgp_vector_trainer_publish,
    .absorb = sgp_vector_trainer_absorb,
    .take = sgp_vector_trainer_take,
    .restore = sgp_vector_trainer_restore,
    .adopt = learner_adopt,
    .copy = sgp_vector_trainer_copy,
    .scale = sgp_vector_trainer_scale,
    .outer = sgp_vector_trainer_outer,
    .exchange = sgp_vector_trainer_exchange,
    .evaluate = learner_evaluate,
    .measure = learner_measure,
    .estimate = sgp_vector_trainer_estimate,
    .model = learner_model,
    .sketch = sgp_vector_trainer_sketch,
    .digest = sgp_vector_trainer_digest,
    .state = learner_state,
    .resume = learner_resume,
    .go_to = learner_go_to,
    .destroy = learner_destroy};

/* Check that the rows have the targets of the loss: a class, or values. */
static int check_targets(enum sgp_loss loss, const struct sgp_dataset *dataset, const char *what,
    struct sgp_error *error)
{
    unsigned takes = sgp_loss_takes(loss);
    if (dataset->classes == 0 && !(takes & (SGP_LOSS_TAKES_NUMBERS | SGP_LOSS_TAKES_BITS)))
        return sgp_fail(error, SGP_E_DATA,
            "the %s data have no classes, which %s needs; use loss = mse or name the "
            "classes",
            what, sgp_loss_name(loss));
    if (dataset->classes > 0 && !(takes & SGP_LOSS_TAKES_CLASS))
        return sgp_fail(error, SGP_E_DATA,
            "the %s data have classes, and %s takes label columns of 0 and 1; use loss = "
            "cross-entropy, or columns of 0 and 1 without classes",
            what, sgp_loss_name(loss));
    for (uint64_t i = 0; takes & SGP_LOSS_TAKES_BITS && i < dataset->rows * dataset->targets; i++)
        if (dataset->values[i] != 0.0f && dataset->values[i] != 1.0f)
            return sgp_fail(error, SGP_E_DATA,
                "the %s data have the value %g in row %llu, and %s takes 0 and 1", what,
                (double)dataset->values[i], (unsigned long long)(i / dataset->targets + 1),
                sgp_loss_name(loss));
    return 0;
}

/* Check that a dataset has the model's inputs and targets. */
static int check_dataset(const struct sgp_model *model, const struct sgp_dataset *dataset,
    const char *what, struct sgp_error *error)
{
    if (dataset->rows == 0 || dataset->rows > SGP_ROWS_MAX || dataset->targets == 0)
        return sgp_fail(error, SGP_E_DATA,
            "the %s data have no rows with labels or values; name a label file or column", what);
    if (dataset->features != model->inputs)
        return sgp_fail(error, SGP_E_DATA,
            "the %s data have %u features, but the model takes %u; use the same columns and "
            "scaling everywhere",
            what, dataset->features, model->inputs);
    int status = check_targets(model->loss, dataset, what, error);
    if (status < 0)
        return status;
    sgp_assert(dataset->scaled_targets == (model->loss_settings.target_scales != NULL));
    uint32_t vocabulary = sgp_model_vocabulary(model);
    uint64_t row;
    float value;
    if (vocabulary > 0 && !sgp_dataset_is_whole(dataset, vocabulary, &row, &value))
        return sgp_fail(error, SGP_E_DATA,
            "row %llu of the %s data has the feature %g; an embedding of %u takes whole numbers "
            "from 0 to %u",
            (unsigned long long)row + 1, what, (double)value, vocabulary, vocabulary - 1);
    uint32_t wanted = dataset->classes > 0 ? dataset->classes : dataset->targets;
    if (wanted != model->outputs)
        return sgp_fail(error, SGP_E_DATA,
            "the %s data have %u %s, but the model ends in %u outputs; end the layers with "
            "'dense %u'",
            what, wanted, dataset->classes > 0 ? "classes" : "targets", model->outputs, wanted);
    return 0;
}

static int check_schedule(const struct sgp_learner_settings *settings, struct sgp_error *error)
{
    int status = sgp_schedule_check(&settings->schedule, error);
    if (status < 0)
        return status;
    uint32_t most = sgp_schedule_batch(&settings->schedule, settings->batch, SGP_EPOCHS_MAX);
    return most <= SGP_BATCH_MAX
               ? 0
               : sgp_fail(error, SGP_E_CONFIG,
                     "the batch of %u rows grows to %u, above %u; give fewer growths, or a larger "
                     "factor",
                     settings->batch, most, SGP_BATCH_MAX);
}

static bool is_private(const struct sgp_learner_settings *settings)
{
    return settings->train && settings->privacy.clip > 0;
}

/* Rows of a private pass; 0: steps are not private. */
static uint32_t rows_drawn(const struct sgp_learner_settings *settings)
{
    return is_private(settings) ? sgp_clipped_capacity(settings->batch, settings->train->rows) : 0;
}

/* What would let rows reach x otherwise than by clipped gradients. */
static int check_privacy(const struct sgp_learner_settings *settings, struct sgp_error *error)
{
    const uint32_t meets = sgp_network_meets(&settings->model);
    sgp_assert(settings->privacy.clip > 0 && settings->privacy.noise >= 0);
    if (meets > 0)
        return sgp_fail(error, SGP_E_CONFIG,
            "layer %u is norm batch, in which each row changes the gradients of all others, so "
            "private steps cannot clip it; use norm layer or norm group, or train without "
            "[privacy]",
            meets);
    if (settings->model.local_parameters > 0)
        return sgp_fail(error, SGP_E_CONFIG,
            "local layers are trained without noise, and the gradients of the others would tell "
            "of them; keep no layer local, or train without [privacy]");
    if (sgp_optimizer_needs_deviation(&settings->optimizer))
        return sgp_fail(error, SGP_E_CONFIG,
            "the noise of a fleet is measured without privacy; use [optimizer] noise = node");
    if (settings->precision != SGP_PRECISION_FLOAT32)
        return sgp_fail(error, SGP_E_CONFIG,
            "a product of bfloat16 is longer than its row was clipped to; use [train] precision = "
            "float32");
    if (sgp_schedule_batch(&settings->schedule, settings->batch, SGP_EPOCHS_MAX) > settings->batch)
        return sgp_fail(error, SGP_E_CONFIG,
            "a growing batch changes the chance of a row, which is counted once; use another "
            "[optimizer] schedule");
    return 0;
}

static int check_settings(const struct sgp_learner_settings *settings, struct sgp_error *error)
{
    if (settings->batch == 0 || settings->batch > SGP_BATCH_MAX)
        return sgp_fail(error, SGP_E_CONFIG, "a batch of %u rows; give 1 to %u", settings->batch,
            SGP_BATCH_MAX);
    if (settings->threads == 0 || settings->threads > SGP_THREADS_MAX)
        return sgp_fail(error, SGP_E_CONFIG, "%u threads for training; give 1 to %u",
            settings->threads, SGP_THREADS_MAX);
    int status = sgp_precision_check(settings->precision, error);
    if (status == 0)
        status = sgp_optimizer_check(&settings->optimizer, error);
    if (status == 0)
        status = sgp_outer_check(&settings->outer, error);
    if (status == 0 && settings->train)
        status = check_schedule(settings, error);
    if (status == 0 && settings->train)
        status = check_dataset(&settings->model, settings->train, "training", error);
    if (status == 0 && settings->evaluation)
        status = check_dataset(&settings->model, settings->evaluation, "evaluation", error);
    if (status == 0 && is_private(settings))
        status = check_privacy(settings, error);
    sgp_assert(settings->train || !settings->evaluation);
    if (status == 0 && settings->evaluation &&
        settings->evaluation->classes != settings->train->classes)
        status = sgp_fail(error, SGP_E_DATA,
            "the training data have %u classes and the evaluation data %u; give them the same",
            settings->train->classes, settings->evaluation->classes);
    return status;
}

/* Rows that pass through the network at one time, for training or evaluation. */
static uint32_t rows_at_once(const struct sgp_learner_settings *settings)
{
    uint64_t rows = settings->train ? settings->train->rows : 1;
    uint32_t most = settings->train
                        ? sgp_schedule_batch(&settings->schedule, settings->batch, SGP_EPOCHS_MAX)
                        : 1;
    uint32_t batch = most < rows ? most : (uint32_t)rows;
    batch = is_private(settings) ? rows_drawn(settings) : batch;
    uint32_t widest = settings->model.inputs;
    for (uint32_t l = 0; l < settings->model.layer_count; l++)
        if (settings->model.layers[l].outputs > widest)
            widest = settings->model.layers[l].outputs;
    uint32_t block = BLOCK_FLOATS / widest;
    block = block < BLOCK_ROWS ? block : BLOCK_ROWS;
    return batch > block ? batch : block;
}

static int fail_memory(int code, struct sgp_error *error)
{
    return sgp_fail(
        error, code, "the model and its batch do not fit in memory: %s", sgp_strerror(code));
}

int sgp_learner_check(
    const struct sgp_learner_settings *settings, struct sgp_error *error, uint64_t *ret_workspace)
{
    int status = check_settings(settings, error);
    if (status < 0)
        return status;
    const struct sgp_dataset *train = settings->train;
    uint32_t rows = rows_at_once(settings);
    uint64_t floats;
    status = sgp_network_floats(
        &settings->model, settings->precision, rows, rows_drawn(settings), &floats);
    if (status < 0)
        return fail_memory(status, error);
    *ret_workspace = floats * sizeof(float) + rows * sizeof(uint32_t);
    if (!train)
        return 0;
    uint64_t drawn = rows_drawn(settings); /* beside the order of the rows */
    uint64_t answers = (uint64_t)rows * (train->classes > 0 ? 1 : train->targets);
    *ret_workspace = (floats + answers) * sizeof(float) +
                     (train->rows + rows + drawn) * sizeof(uint32_t) +
                     drawn * (sizeof(double) + sizeof(float));
    return 0;
}

/* Allocate the memory of a checked learner. After a failure, the caller destroys what was
 * allocated. */
static int allocate(struct sgp_learner *learner)
{
    const struct sgp_learner_settings *settings = &learner->settings;
    uint32_t rows = rows_at_once(settings);
    int status = sgp_vector_trainer_init(&learner->vector, &methods, settings->model.parameters);
    if (status == 0)
        status = sgp_vector_create(settings->model.parameters, &learner->gradient);
    if (status == 0 && settings->train && sgp_optimizer_needs_deviation(&settings->optimizer))
        status = sgp_vector_create(settings->model.parameters, &learner->deviation);
    learner->vector.trainer.tensors = (struct sgp_tensors){
        .ends = learner->ends, .count = sgp_model_ends(&settings->model, false, learner->ends)};
    learner->vector.trainer.model_values = sgp_model_values(&settings->model);
    if (status == 0)
        status = sgp_local_part_init(
            &learner->local, &settings->model, &settings->optimizer, learner->deviation != NULL);
    if (status == 0)
        status = sgp_network_init(&learner->network, &settings->model, settings->precision, rows,
            rows_drawn(settings), settings->threads);
    learner->network.local = learner->local.values;
    learner->network.frozen = settings->frozen;
    if (status == 0)
        status = sgp_optimizer_init(&learner->optimizer, &settings->optimizer,
            settings->model.parameters, &learner->vector.trainer.tensors);
    if (status == 0 && settings->train && settings->train->classes == 0)
        status = sgp_vector_create((uint64_t)rows * settings->train->targets, &learner->values);
    if (status == 0)
        status = sgp_clipped_init(&learner->clipped, settings);
    if (status < 0)
        return status;
    if (!settings->train)
        return 0;
    uint64_t drawn = learner->clipped.capacity;
    learner->order = calloc(settings->train->rows + drawn, sizeof *learner->order);
    learner->block = calloc(rows, sizeof *learner->block);
    if (settings->train->classes > 0)
        learner->labels = calloc(rows, sizeof *learner->labels);
    bool missing = settings->train->classes > 0 && !learner->labels;
    return learner->order && learner->block && !missing ? 0 : -ENOMEM;
}

int sgp_learner_create(const struct sgp_learner_settings *settings, struct sgp_error *error,
    struct sgp_learner **ret_learner)
{
    uint64_t workspace;
    int status = sgp_learner_check(settings, error, &workspace);
    if (status == 0)
        status = sgp_network_load(&settings->model, settings->precision, error);
    if (status < 0)
        return status;
    struct sgp_learner *learner = calloc(1, sizeof *learner);
    if (!learner)
        return -ENOMEM;
    learner->settings = *settings;
    if (settings->train && learner->settings.batch > settings->train->rows)
        learner->settings.batch = (uint32_t)settings->train->rows;
    status = allocate(learner);
    if (status < 0) {
        sgp_learner_destroy(learner);
        return fail_memory(status, error);
    }
    sgp_blas_set_threads(settings->threads);
    sgp_model_initialise(
        &learner->settings.model, settings->seed, learner->vector.x, learner->local.values);
    status = sgp_vector_trainer_begin_outer(&learner->vector, &settings->outer);
    if (status < 0) {
        sgp_learner_destroy(learner);
        return fail_memory(status, error);
    }
    if (settings->train)
        order_rows(learner, 0);
    *ret_learner = learner;
    return 0;
}

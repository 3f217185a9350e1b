/* SPDX-License-Identifier: Apache-2.0 */
/* Normalisation: (a - mean) / sqrt(variance + epsilon) * scale + shift, then the activation. Mean
 * and variance are those of a group of channels over the lines of a slab. `norm batch` has one
 * slab, all pixels of all rows, and groups of one channel. `norm layer` and `norm group` have one
 * slab for each row. Everything else is the same.
 *
 * Running statistics (norm batch) are values of x. They are averaged with the fleet's as all
 * parameters are, so they remain z = x / w times w. A step moves z a part of the way to the batch's
 * statistic, as a gradient step with its own rate would: x += momentum * (statistic - z). As with
 * gradients there is no factor w, so that every node has equal weight in the mean of the fleet. If
 * w is below 2 * momentum, a full step would overshoot. So a step is at most half of the way. The
 * statistics of a step are those of the lines of all its passes together. */
#include "activation.h"
#include "layer.h"
#include "sgp/kernels.h"

#include <math.h>
#include <string.h>

#define RUN_LINES 256u /* lines summed in sequence, so that sums over many lines stay exact */

static int norm_read(struct sgp_words *words, struct sgp_layer *layer)
{
    const char *word = sgp_words_next(words);
    layer->batch = strcmp(word, "batch") == 0;
    layer->groups = strcmp(word, "layer") == 0;
    if (layer->batch || layer->groups == 1)
        return sgp_words_last_activation(words, layer);
    if (strcmp(word, "group") != 0)
        return sgp_fail(words->error, SGP_E_CONFIG,
            "layer %u normalises by '%s'; write norm batch, norm layer or norm group N",
            words->number, word);
    layer->groups = sgp_words_count(sgp_words_next(words), SGP_UNITS_MAX);
    if (layer->groups == 0)
        return sgp_fail(words->error, SGP_E_CONFIG,
            "layer %u has '%s' groups; give a number from 1 to %u", words->number, words->word,
            SGP_UNITS_MAX);
    return sgp_words_last_activation(words, layer);
}

static void norm_write(const struct sgp_layer *layer, struct sgp_text *text)
{
    if (layer->groups > 1)
        sgp_text_add(text, " group %u", layer->groups);
    else
        sgp_text_add(text, layer->batch ? " batch" : " layer");
    sgp_text_add_activation(text, layer->activation);
}

static int norm_suit(struct sgp_layer *layer, uint32_t number, struct sgp_error *error)
{
    if (!layer->batch && layer->input.channels % layer->groups != 0)
        return sgp_fail(error, SGP_E_CONFIG,
            "layer %u has %u groups for %u channels; give a number that divides them", number,
            layer->groups, layer->input.channels);
    layer->output = layer->input;
    return 0;
}

static uint32_t norm_tensors(const struct sgp_layer *layer,
    struct sgp_model_tensor ret_tensors[static SGP_LAYER_TENSORS_MAX])
{
    static const char *const names[] = {"weight", "bias", "running_mean", "running_var"};
    uint32_t count = layer->batch ? 4 : 2;
    for (uint32_t i = 0; i < count; i++)
        ret_tensors[i] = (struct sgp_model_tensor){.name = names[i],
            .dimensions = 1,
            .shape = {layer->input.channels},
            .statistic = i >= 2,
            .value = i % 3 == 0 ? 1 : 0};
    return count;
}

/* ---- slabs ---- */

struct slabs {
    size_t count, lines, columns; /* the number of slabs, and the lines and columns of each */
    size_t groups, group;         /* the groups of a slab, and the channels of each group */
};

static struct slabs slabs_of(const struct sgp_layer *layer, size_t rows)
{
    size_t pixels = (size_t)sgp_shape_pixels(layer->input), columns = layer->input.channels;
    if (layer->batch)
        return (struct slabs){1, rows * pixels, columns, columns, 1};
    return (struct slabs){rows, pixels, columns, layer->groups, columns / layer->groups};
}

/* For each slab, the means and inverse deviations of its groups. norm batch, with one slab, also
 * keeps lines for its statistics: of the step so far, and the new running statistics. */
enum { STEP_MEANS = 2, STEP_VARIANCES, NEW_MEANS, NEW_VARIANCES, KEPT_LINES };

static uint64_t norm_kept(const struct sgp_layer *layer, uint64_t rows)
{
    struct slabs slabs = slabs_of(layer, (size_t)rows);
    return layer->batch ? KEPT_LINES * slabs.columns : 2 * slabs.count * slabs.groups;
}

/* Lines of constants and of sums. */
#define SCRATCH_LINES 6u
static uint64_t norm_scratch(const struct sgp_layer *layer, uint64_t rows)
{
    (void)rows;
    return SCRATCH_LINES * (uint64_t)layer->input.channels;
}

static float *scratch_line(const struct sgp_pass *pass, size_t number)
{
    sgp_assert(number < SCRATCH_LINES);
    return pass->scratch + number * pass->layer->input.channels;
}

/* The kept values of a slab. */
static float *means_of(const struct sgp_pass *pass, const struct slabs *slabs, size_t slab)
{
    return pass->kept + 2 * slab * slabs->groups;
}

static float *inverses_of(const struct sgp_pass *pass, const struct slabs *slabs, size_t slab)
{
    return means_of(pass, slabs, slab) + slabs->groups;
}

static float *kept_line(const struct sgp_pass *pass, size_t number)
{
    return pass->kept + number * pass->layer->input.channels;
}

static bool norm_meets(const struct sgp_layer *layer)
{
    return layer->batch;
}

static void clear(float *line, size_t columns)
{
    memset(line, 0, columns * sizeof *line);
}

static void add(float *sums, const float *part, size_t columns)
{
    for (size_t c = 0; c < columns; c++)
        sums[c] += part[c];
}

/* The number of lines in a run that begins at `first`. */
static size_t run_after(const struct slabs *slabs, size_t first)
{
    return slabs->lines - first < RUN_LINES ? slabs->lines - first : RUN_LINES;
}

/* line[c] = the value of its group */
static void spread(float *line, const float *values, const struct slabs *slabs)
{
    for (size_t c = 0; c < slabs->columns; c++)
        line[c] = values[c / slabs->group];
}

/* values[g] = factor * sum of the columns of group g */
static void gather(float *values, const float *line, double factor, const struct slabs *slabs)
{
    for (size_t g = 0; g < slabs->groups; g++) {
        double sum = 0;
        for (size_t i = 0; i < slabs->group; i++)
            sum += (double)line[g * slabs->group + i];
        values[g] = (float)(factor * sum);
    }
}

/* ---- statistics ---- */

static void sum_values(float *sums, float *part, const float *values, const struct slabs *slabs)
{
    clear(sums, slabs->columns);
    for (size_t first = 0; first < slabs->lines; first += RUN_LINES) {
        sgp_kernels_best()->column_sums(
            part, values + first * slabs->columns, run_after(slabs, first), slabs->columns);
        add(sums, part, slabs->columns);
    }
}

static void sum_squares(
    float *sums, float *part, const float *values, const float *means, const struct slabs *slabs)
{
    clear(sums, slabs->columns);
    for (size_t first = 0; first < slabs->lines; first += RUN_LINES) {
        clear(part, slabs->columns);
        for (size_t l = run_after(slabs, first); l > 0; l--, values += slabs->columns)
            for (size_t c = 0; c < slabs->columns; c++)
                part[c] += (values[c] - means[c]) * (values[c] - means[c]);
        add(sums, part, slabs->columns);
    }
}

static float inverse_of(float variance)
{
    return 1.0f / sqrtf((variance > 0 ? variance : 0.0f) + SGP_NORM_EPSILON);
}

/* Compute means and inverse deviations of the groups of a slab. Leaves the means spread in line 0,
 * and the variances of norm batch in line 1. */
static void measure(const struct sgp_pass *pass, const struct slabs *slabs, size_t slab)
{
    const float *values = pass->input + slab * slabs->lines * slabs->columns;
    float *means = means_of(pass, slabs, slab), *inverses = inverses_of(pass, slabs, slab);
    float *spread_means = scratch_line(pass, 0), *variances = scratch_line(pass, 1);
    float *sums = scratch_line(pass, 2), *part = scratch_line(pass, 3);
    double each = 1.0 / ((double)slabs->lines * (double)slabs->group);
    sum_values(sums, part, values, slabs);
    gather(means, sums, each, slabs);
    spread(spread_means, means, slabs);
    sum_squares(sums, part, values, spread_means, slabs);
    gather(variances, sums, each, slabs);
    for (size_t g = 0; g < slabs->groups; g++)
        inverses[g] = isnan(variances[g]) ? NAN : inverse_of(variances[g]);
}

/* Whether the running statistics take the place of the batch's. They do not depend on the rows. */
static bool recalls(const struct sgp_pass *pass)
{
    return pass->layer->batch && (!pass->training || pass->frozen);
}

/* Take the running statistics. */
static void recall(const struct sgp_pass *pass, const struct slabs *slabs)
{
    const float *x = pass->x + pass->layer->biases + slabs->columns;
    float *means = means_of(pass, slabs, 0), *inverses = inverses_of(pass, slabs, 0);
    for (size_t c = 0; c < slabs->columns; c++) {
        means[c] = pass->scale * x[c];
        inverses[c] = inverse_of(pass->scale * x[slabs->columns + c]);
    }
    spread(scratch_line(pass, 0), means, slabs);
}

/* Add the lines of this pass to the mean and the variance of the step (Chan, Golub, LeVeque 1983).
 * Returns the number of lines so far. */
static size_t add_moments(const struct sgp_pass *pass, const struct slabs *slabs)
{
    const float *means = scratch_line(pass, 0), *variances = scratch_line(pass, 1);
    size_t before = pass->rows_before * sgp_shape_pixels(pass->layer->input);
    size_t lines = before + slabs->lines;
    float *all_means = kept_line(pass, STEP_MEANS);
    float *all_variances = kept_line(pass, STEP_VARIANCES);
    if (before == 0) {
        memcpy(all_means, means, slabs->columns * sizeof *all_means);
        memcpy(all_variances, variances, slabs->columns * sizeof *all_variances);
        return lines;
    }
    float a = (float)before / (float)lines, b = (float)slabs->lines / (float)lines;
    for (size_t c = 0; c < slabs->columns; c++) {
        float way = means[c] - all_means[c];
        all_means[c] += b * way;
        all_variances[c] = a * all_variances[c] + b * variances[c] + a * b * way * way;
    }
    return lines;
}

/* Compute the new running statistics. The variance is the unbiased variance, which a batch of one
 * line does not have. In that case the statistics do not change. */
static void ready_statistics(const struct sgp_pass *pass, const struct slabs *slabs)
{
    const float *x = pass->x + pass->layer->biases + slabs->columns;
    size_t columns = slabs->columns, lines = add_moments(pass, slabs);
    const float *means = kept_line(pass, STEP_MEANS);
    const float *variances = kept_line(pass, STEP_VARIANCES);
    float *new_means = kept_line(pass, NEW_MEANS), *new_variances = kept_line(pass, NEW_VARIANCES);
    float half = 0.5f / pass->scale;
    float momentum = (float)SGP_NORM_MOMENTUM < half ? (float)SGP_NORM_MOMENTUM : half;
    float unbiased = lines > 1 ? (float)lines / (float)(lines - 1) : 0.0f;
    momentum = lines > 1 ? momentum : 0.0f;
    for (size_t c = 0; c < columns; c++) {
        new_means[c] = x[c] + momentum * (means[c] - pass->scale * x[c]);
        new_variances[c] =
            x[columns + c] + momentum * (unbiased * variances[c] - pass->scale * x[columns + c]);
    }
}

static void norm_settle(const struct sgp_layer *layer, const float *kept, float *x)
{
    size_t columns = layer->input.channels;
    if (layer->batch)
        memcpy(x + layer->biases + columns, kept + NEW_MEANS * columns, 2 * columns * sizeof *x);
}

/* ---- passes ---- */

static void norm_forward(const struct sgp_pass *pass)
{
    const struct sgp_layer *layer = pass->layer;
    const float *scales = pass->x + layer->weights, *shifts = pass->x + layer->biases;
    struct slabs slabs = slabs_of(layer, pass->rows);
    const float *means = scratch_line(pass, 0), *values = pass->input;
    float *factors = scratch_line(pass, 4), *output = pass->output;
    for (size_t s = 0; s < slabs.count; s++) {
        if (recalls(pass))
            recall(pass, &slabs);
        else
            measure(pass, &slabs, s);
        if (layer->batch && !recalls(pass))
            ready_statistics(pass, &slabs);
        spread(factors, inverses_of(pass, &slabs, s), &slabs);
        for (size_t c = 0; c < slabs.columns; c++)
            factors[c] *= pass->scale * scales[c];
        for (size_t first = 0; first < slabs.lines; first += RUN_LINES) {
            size_t lines = run_after(&slabs, first);
            float *y = output;
            for (size_t l = 0; l < lines; l++, values += slabs.columns, output += slabs.columns)
                for (size_t c = 0; c < slabs.columns; c++)
                    output[c] = (values[c] - means[c]) * factors[c];
            sgp_activation_forward(layer->activation, y, shifts, pass->scale, lines, slabs.columns);
        }
    }
}

/* Propagate delta back through the activation. Sum delta in line 2, and delta times the normalised
 * value in line 3. */
static void sum_deltas(const struct sgp_pass *pass, const struct slabs *slabs, size_t slab,
    const float *means, const float *inverses)
{
    size_t columns = slabs->columns, at = slab * slabs->lines * columns;
    float *deltas = scratch_line(pass, 2), *products = scratch_line(pass, 3);
    float *part = scratch_line(pass, 4);
    clear(deltas, columns);
    clear(products, columns);
    for (size_t first = 0; first < slabs->lines; first += RUN_LINES) {
        size_t lines = run_after(slabs, first);
        sgp_activation_backward(
            pass->layer->activation, pass->delta + at, part, pass->output + at, lines, columns);
        add(deltas, part, columns);
        clear(part, columns);
        for (size_t l = 0; l < lines; l++, at += columns)
            for (size_t c = 0; c < columns; c++)
                part[c] += pass->delta[at + c] * (pass->input[at + c] - means[c]);
        add(products, part, columns);
    }
    for (size_t c = 0; c < columns; c++)
        products[c] *= inverses[c];
}

/* below = factor * delta - b - e * (value - mean), where b and e belong to the groups. They are how
 * the statistics depend on the rows. */
static void lead_back(const struct sgp_pass *pass, const struct slabs *slabs, size_t slab,
    const float *means, const float *inverses)
{
    size_t columns = slabs->columns, at = slab * slabs->lines * columns;
    const float *scales = pass->x + pass->layer->weights;
    float *b = scratch_line(pass, 2), *e = scratch_line(pass, 3), *factors = scratch_line(pass, 4);
    double each = recalls(pass) ? 0 : 1.0 / ((double)slabs->lines * (double)slabs->group);
    for (size_t c = 0; c < columns; c++) {
        factors[c] = pass->scale * scales[c];
        b[c] *= factors[c];
        e[c] *= factors[c];
    }
    gather(b, b, each, slabs);
    gather(e, e, each, slabs);
    for (size_t c = columns; c-- > 0;) { /* from the end, because b[c / group] comes before b[c] */
        b[c] = inverses[c] * b[c / slabs->group];
        e[c] = inverses[c] * inverses[c] * e[c / slabs->group];
        factors[c] *= inverses[c];
    }
    for (size_t l = 0; l < slabs->lines; l++, at += columns)
        for (size_t c = 0; c < columns; c++)
            pass->below[at + c] =
                factors[c] * pass->delta[at + c] - b[c] - e[c] * (pass->input[at + c] - means[c]);
}

/* The gradients of a row: of the shifts, then of the scales. */
static uint64_t norm_own(const struct sgp_layer *layer)
{
    return 2 * (uint64_t)layer->input.channels;
}

/* Take the sums of sum_deltas: the gradients that come from this slab. */
static void take_slab(const struct sgp_pass *pass, const struct slabs *slabs, size_t slab)
{
    const struct sgp_layer *layer = pass->layer;
    const float *shifts = scratch_line(pass, 2), *scales = scratch_line(pass, 3);
    const size_t columns = slabs->columns;
    if (pass->squares) {
        float *own = pass->own + slab * 2 * columns;
        pass->squares[slab] += sgp_kernels_best()->squares(shifts, columns);
        pass->squares[slab] += sgp_kernels_best()->squares(scales, columns);
        memcpy(own, shifts, columns * sizeof *own);
        memcpy(own + columns, scales, columns * sizeof *own);
    } else {
        add(pass->gradient + layer->biases, shifts, columns);
        add(pass->gradient + layer->weights, scales, columns);
    }
}

static void norm_backward(const struct sgp_pass *pass)
{
    const struct sgp_layer *layer = pass->layer;
    struct slabs slabs = slabs_of(layer, pass->rows);
    float *means = scratch_line(pass, 0), *inverses = scratch_line(pass, 1);
    if (!pass->squares)
        clear(pass->gradient + layer->weights, (layer->batch ? 4 : 2) * slabs.columns);
    for (size_t s = 0; s < slabs.count; s++) {
        spread(means, means_of(pass, &slabs, s), &slabs);
        spread(inverses, inverses_of(pass, &slabs, s), &slabs);
        sum_deltas(pass, &slabs, s, means, inverses);
        take_slab(pass, &slabs, s);
        if (pass->below)
            lead_back(pass, &slabs, s, means, inverses);
    }
}

static void norm_weigh(const struct sgp_pass *pass)
{
    const struct sgp_kernels *kernels = sgp_kernels_best();
    const size_t columns = pass->layer->input.channels;
    float *shifts = pass->gradient + pass->layer->biases;
    float *scales = pass->gradient + pass->layer->weights;
    const float *own = pass->own;
    clear(shifts, columns);
    clear(scales, columns);
    for (size_t r = 0; r < pass->rows; r++, own += 2 * columns) {
        kernels->absorb(shifts, own, pass->factors[r], columns);
        kernels->absorb(scales, own + columns, pass->factors[r], columns);
    }
}

const struct sgp_layer_methods sgp_layer_norm = {.word = "norm",
    .by_shape = true,
    .read = norm_read,
    .suit = norm_suit,
    .write = norm_write,
    .tensors = norm_tensors,
    .kept = norm_kept,
    .scratch = norm_scratch,
    .forward = norm_forward,
    .backward = norm_backward,
    .weigh = norm_weigh,
    .own = norm_own,
    .settle = norm_settle,
    .meets = norm_meets};

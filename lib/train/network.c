/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the memory of a batch during the forward and backward pass of a model. Thread: the
 * trainer's. */
#include "network.h"

#include "layer.h"
#include "order.h"
#include "sgp/buffer.h"
#include "sgp/random.h"

#include <string.h>

#define LINE (SGP_BUFFER_ALIGNMENT / sizeof(float))

/* ---- memory ---- */

/* Whole cache lines, so that every array begins on one. */
static uint64_t whole_lines(uint64_t floats)
{
    return (floats + LINE - 1) / LINE * LINE;
}

/* Floats for rows x columns. */
static uint64_t floats(uint32_t rows, uint32_t columns)
{
    return whole_lines((uint64_t)rows * columns);
}

static uint64_t kept_floats(const struct sgp_layer *layer, uint32_t rows)
{
    const struct sgp_layer_methods *methods = sgp_layer_methods(layer->kind);
    return methods->kept ? whole_lines(methods->kept(layer, rows)) : 0;
}

/* What a layer keeps of each row's own gradient. */
static uint64_t own_floats(const struct sgp_layer *layer, uint32_t rows)
{
    const struct sgp_layer_methods *methods = sgp_layer_methods(layer->kind);
    return methods->own ? whole_lines(methods->own(layer) * rows) : 0;
}

static uint64_t scratch_floats(const struct sgp_model *model, uint32_t rows)
{
    uint64_t most = 0;
    for (uint32_t l = 0; l < model->layer_count; l++) {
        const struct sgp_layer *layer = &model->layers[l];
        const struct sgp_layer_methods *methods = sgp_layer_methods(layer->kind);
        uint64_t own = methods->scratch ? whole_lines(methods->scratch(layer, rows)) : 0;
        most = own > most ? own : most;
    }
    return most;
}

static uint64_t widest_floats(const struct sgp_model *model, uint32_t rows_max)
{
    uint64_t widest = 0;
    for (uint32_t l = 0; l < model->layer_count; l++) {
        uint64_t outputs = floats(rows_max, model->layers[l].outputs);
        widest = outputs > widest ? outputs : widest;
    }
    return widest;
}

/* Memory for features as pixels. Features are in planes, which a dense layer can use directly. */
static uint64_t ordered_floats(const struct sgp_model *model, uint32_t rows_max)
{
    bool ordered = sgp_shape_is_ordered(model->input) && model->layers[0].kind != SGP_LAYER_DENSE;
    return ordered ? floats(rows_max, model->inputs) : 0;
}

/* The room that the products of all layers need. */
static struct sgp_product_room room_of(const struct sgp_model *model, uint32_t rows_max)
{
    struct sgp_product_room room = {0};
    for (uint32_t l = 0; l < model->layer_count; l++) {
        const struct sgp_layer *layer = &model->layers[l];
        const struct sgp_layer_methods *methods = sgp_layer_methods(layer->kind);
        struct sgp_blas_layer product;
        if (!methods->product)
            continue;
        (void)methods->product(layer, rows_max, true, &product);
        sgp_product_fit(
            &room, &(struct sgp_product_shape){
                       .rows = product.rows, .inputs = product.inputs, .outputs = product.outputs});
    }
    return room;
}

int sgp_network_floats(const struct sgp_model *model, enum sgp_precision precision,
    uint32_t rows_max, uint32_t rows_own, uint64_t *ret_floats)
{
    struct sgp_product_room room = room_of(model, rows_max);
    uint64_t total = floats(rows_max, model->inputs) + ordered_floats(model, rows_max) +
                     2 * widest_floats(model, rows_max) + scratch_floats(model, rows_max) +
                     sgp_product_floats(precision, &room);
    for (uint32_t l = 0; l < model->layer_count; l++)
        total += floats(rows_max, model->layers[l].outputs) +
                 kept_floats(&model->layers[l], rows_max) + own_floats(&model->layers[l], rows_own);
    if (rows_max == 0 || total > SGP_WORKSPACE_FLOATS_MAX)
        return SGP_E_LIMIT;
    *ret_floats = total;
    return 0;
}

/* The next floats of the memory; NULL for none. */
static float *take(float **next, uint64_t count)
{
    float *taken = *next;
    *next += count;
    return count > 0 ? taken : NULL;
}

static uint32_t lowest_of(const struct sgp_model *model)
{
    uint32_t l = 0;
    while (model->layers[l].end == model->layers[l].weights)
        l++;
    return l;
}

int sgp_network_load(
    const struct sgp_model *model, enum sgp_precision precision, struct sgp_error *error)
{
    struct sgp_blas_layer layers[SGP_LAYERS_MAX];
    if (precision == SGP_PRECISION_BF16 || sgp_model_products(model, 1, layers) == 0)
        return 0;
    return sgp_blas_load(error);
}

int sgp_network_init(struct sgp_network *network, const struct sgp_model *model,
    enum sgp_precision precision, uint32_t rows_max, uint32_t rows_own, uint32_t threads)
{
    *network = (struct sgp_network){0};
    uint64_t total;
    int status = sgp_network_floats(model, precision, rows_max, rows_own, &total);
    if (status == 0)
        status = sgp_vector_create(total, &network->memory);
    if (status < 0)
        return status;
    network->model = model;
    network->rows_max = rows_max;
    network->lowest = lowest_of(model);
    float *next = network->memory;
    network->activations[0] = take(&next, floats(rows_max, model->inputs));
    for (uint32_t l = 0; l < model->layer_count; l++)
        network->activations[l + 1] = take(&next, floats(rows_max, model->layers[l].outputs));
    network->delta[0] = take(&next, widest_floats(model, rows_max));
    network->delta[1] = take(&next, widest_floats(model, rows_max));
    for (uint32_t l = 0; l < model->layer_count; l++)
        network->kept[l] = take(&next, kept_floats(&model->layers[l], rows_max));
    for (uint32_t l = 0; l < model->layer_count; l++)
        network->own[l] = take(&next, own_floats(&model->layers[l], rows_own));
    network->ordered = take(&next, ordered_floats(model, rows_max));
    network->scratch = take(&next, scratch_floats(model, rows_max));
    struct sgp_product_room room = room_of(model, rows_max);
    sgp_assert(next + sgp_product_floats(precision, &room) == network->memory + total);
    status = sgp_product_init(&network->product, precision, threads, &room, next);
    if (status < 0)
        sgp_network_finish(network);
    return status;
}

void sgp_network_finish(struct sgp_network *network)
{
    sgp_product_finish(&network->product);
    sgp_vector_destroy(network->memory);
    *network = (struct sgp_network){0};
}

/* ---- passes ---- */

/* The input of layer l. */
static const float *entered(const struct sgp_network *network, uint32_t l)
{
    return l == 0 && network->ordered ? network->ordered : network->activations[l];
}

static struct sgp_pass pass_of(
    struct sgp_network *network, uint32_t l, const float *x, double weight, size_t rows)
{
    const struct sgp_layer *layer = &network->model->layers[l];
    return (struct sgp_pass){.layer = layer,
        .product = &network->product,
        .x = layer->local ? network->local : x,
        .scale = layer->local ? 1 : (float)(1.0 / weight),
        .rows = rows,
        .rows_before = network->before,
        .input = entered(network, l),
        .output = network->activations[l + 1],
        .around = layer->span > 0 ? entered(network, l - layer->span) : NULL,
        .kept = network->kept[l],
        .own = network->own[l],
        .scratch = network->scratch,
        .training = network->training,
        .frozen = network->frozen && !layer->local,
        .chance = sgp_random_at(network->chance, l)};
}

static const float *forward(struct sgp_network *network, const float *x, double weight, size_t rows)
{
    const struct sgp_model *model = network->model;
    sgp_assert(rows > 0 && rows <= network->rows_max && weight > 0.0);
    if (network->ordered)
        sgp_order_pixels(network->ordered, network->activations[0], model->input, rows);
    for (uint32_t l = 0; l < model->layer_count; l++) {
        struct sgp_pass pass = pass_of(network, l, x, weight, rows);
        sgp_layer_methods(model->layers[l].kind)->forward(&pass);
    }
    return network->activations[model->layer_count];
}

const float *sgp_network_forward(
    struct sgp_network *network, const float *x, double weight, size_t rows)
{
    network->training = false;
    return forward(network, x, weight, rows);
}

const float *sgp_network_forward_training(struct sgp_network *network, const float *x,
    double weight, size_t before, size_t rows, uint64_t chance)
{
    network->training = true;
    network->before = before;
    network->chance = chance;
    return forward(network, x, weight, rows);
}

struct sgp_loss_sum sgp_network_loss(
    struct sgp_network *network, const uint32_t *labels, const float *values, size_t rows)
{
    const struct sgp_model *model = network->model;
    return sgp_loss_batch(model->loss, &model->loss_settings, network->delta[0],
        network->activations[model->layer_count], labels, values, rows, model->outputs);
}

/* delta is the gradient with respect to the input of layer l, through layer l alone. Add the
 * gradients of the residual connections that begin here. */
static void add_arounds(const struct sgp_network *network, uint32_t l, float *delta, size_t rows)
{
    const struct sgp_model *model = network->model;
    for (uint32_t after = l + 1; after < model->layer_count; after++) {
        const struct sgp_layer *layer = &model->layers[after];
        if (layer->span == 0 || after - layer->span != l)
            continue;
        for (size_t i = 0; i < rows * layer->outputs; i++)
            delta[i] += network->kept[after][i];
    }
}

static void backward(struct sgp_network *network, float *gradient, const float *x, double weight,
    size_t rows, double *squares)
{
    const struct sgp_model *model = network->model;
    float *delta = network->delta[0];
    float *below = network->delta[1];
    for (uint32_t l = model->layer_count; l-- > network->lowest;) {
        struct sgp_pass pass = pass_of(network, l, x, weight, rows);
        pass.delta = delta;
        pass.below = l > network->lowest ? below : NULL;
        pass.gradient = pass.layer->local ? network->local_gradient : gradient;
        pass.squares = squares;
        sgp_layer_methods(model->layers[l].kind)->backward(&pass);
        if (pass.below)
            add_arounds(network, l, below, rows);
        float *swapped = delta;
        delta = below;
        below = swapped;
    }
}

void sgp_network_backward(
    struct sgp_network *network, float *gradient, const float *x, double weight, size_t rows)
{
    backward(network, gradient, x, weight, rows, NULL);
}

/* --- the gradients of single rows --- */

uint32_t sgp_network_meets(const struct sgp_model *model)
{
    for (uint32_t l = 0; l < model->layer_count; l++) {
        const struct sgp_layer *layer = &model->layers[l];
        const struct sgp_layer_methods *methods = sgp_layer_methods(layer->kind);
        if (methods->meets && methods->meets(layer))
            return l + 1;
    }
    return 0;
}

static void clear_row(float *values, size_t row, size_t width)
{
    if (values)
        memset(values + row * width, 0, width * sizeof *values);
}

/* A product of 0 and infinity is not a number, so a row that counts nothing becomes all zero. */
static void forget_row(struct sgp_network *network, size_t row)
{
    const struct sgp_model *model = network->model;
    clear_row(network->activations[0], row, model->inputs);
    clear_row(network->ordered, row, model->inputs);
    for (uint32_t l = 0; l < model->layer_count; l++) {
        const struct sgp_layer *layer = &model->layers[l];
        const struct sgp_layer_methods *methods = sgp_layer_methods(layer->kind);
        clear_row(network->activations[l + 1], row, layer->outputs);
        clear_row(network->own[l], row, methods->own ? methods->own(layer) : 0);
    }
}

/* The loss was the mean of the rows. Make the gradients those of each row's own loss. */
static void part_rows(struct sgp_network *network, size_t rows)
{
    for (size_t i = 0; i < rows * network->model->outputs; i++)
        network->delta[0][i] *= (float)rows;
}

void sgp_network_measure_rows(struct sgp_network *network, float *gradient, const float *x,
    double weight, size_t rows, double *squares)
{
    memset(squares, 0, rows * sizeof *squares);
    part_rows(network, rows);
    backward(network, gradient, x, weight, rows, squares);
}

void sgp_network_weigh_rows(
    struct sgp_network *network, float *gradient, size_t rows, const float *factors)
{
    const struct sgp_model *model = network->model;
    for (size_t r = 0; r < rows; r++)
        if (!(factors[r] > 0))
            forget_row(network, r);
    for (uint32_t l = network->lowest; l < model->layer_count; l++) {
        const struct sgp_layer_methods *methods = sgp_layer_methods(model->layers[l].kind);
        struct sgp_pass pass = pass_of(network, l, NULL, 1, rows);
        pass.gradient = pass.layer->local ? network->local_gradient : gradient;
        pass.factors = factors;
        if (methods->weigh)
            methods->weigh(&pass);
    }
}

void sgp_network_settle(struct sgp_network *network, float *x)
{
    for (uint32_t l = 0; l < network->model->layer_count; l++) {
        const struct sgp_layer *layer = &network->model->layers[l];
        const struct sgp_layer_methods *methods = sgp_layer_methods(layer->kind);
        if (methods->settle && (layer->local || x))
            methods->settle(layer, network->kept[l], layer->local ? network->local : x);
    }
}

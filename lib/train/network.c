/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the memory of a batch on its way through a model and back. Thread: the trainer's. */
#include "network.h"

#include "activation.h"
#include "sgp/buffer.h"
#include "sgp/kernels.h"

#define LINE (SGP_BUFFER_ALIGNMENT / sizeof(float))

/* Floats for rows x columns, in whole cache lines so that every array begins on one. */
static uint64_t floats(uint32_t rows, uint32_t columns)
{
    return ((uint64_t)rows * columns + LINE - 1) / LINE * LINE;
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

/* The products of a layer. */
static struct sgp_product_shape shape_of(const struct sgp_layer *layer, size_t rows)
{
    return (struct sgp_product_shape){
        .rows = rows, .inputs = layer->inputs, .outputs = layer->outputs};
}

static struct sgp_product_room room_of(const struct sgp_model *model, uint32_t rows_max)
{
    struct sgp_product_room room = {0};
    for (uint32_t l = 0; l < model->layer_count; l++) {
        struct sgp_product_shape shape = shape_of(&model->layers[l], rows_max);
        sgp_product_fit(&room, &shape);
    }
    return room;
}

int sgp_network_floats(const struct sgp_model *model, enum sgp_precision precision,
    uint32_t rows_max, uint64_t *ret_floats)
{
    struct sgp_product_room room = room_of(model, rows_max);
    uint64_t total = floats(rows_max, model->inputs) + 2 * widest_floats(model, rows_max);
    total += sgp_product_floats(precision, &room);
    for (uint32_t l = 0; l < model->layer_count; l++)
        total += floats(rows_max, model->layers[l].outputs);
    if (rows_max == 0 || total > SGP_WORKSPACE_FLOATS_MAX)
        return SGP_E_LIMIT;
    *ret_floats = total;
    return 0;
}

int sgp_network_init(struct sgp_network *network, const struct sgp_model *model,
    enum sgp_precision precision, uint32_t rows_max, uint32_t threads)
{
    *network = (struct sgp_network){0};
    uint64_t total;
    int status = sgp_network_floats(model, precision, rows_max, &total);
    if (status == 0)
        status = sgp_vector_create(total, &network->memory);
    if (status < 0)
        return status;
    network->model = model;
    network->rows_max = rows_max;
    network->activations[0] = network->memory;
    float *next = network->memory + floats(rows_max, model->inputs);
    for (uint32_t l = 0; l < model->layer_count; l++) {
        network->activations[l + 1] = next;
        next += floats(rows_max, model->layers[l].outputs);
    }
    network->delta[0] = next;
    network->delta[1] = next + widest_floats(model, rows_max);
    next = network->delta[1] + widest_floats(model, rows_max);
    struct sgp_product_room room = room_of(model, rows_max);
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

const float *sgp_network_forward(
    struct sgp_network *network, const float *x, double weight, size_t rows)
{
    sgp_assert(rows > 0 && rows <= network->rows_max && weight > 0.0);
    float scale = (float)(1.0 / weight);
    for (uint32_t l = 0; l < network->model->layer_count; l++) {
        const struct sgp_layer *layer = &network->model->layers[l];
        float *y = network->activations[l + 1];
        struct sgp_product_shape shape = shape_of(layer, rows);
        sgp_product_forward(
            &network->product, &shape, y, network->activations[l], x + layer->weights, scale);
        sgp_activation_forward(
            layer->activation, y, x + layer->biases, scale, rows, layer->outputs);
    }
    return network->activations[network->model->layer_count];
}

struct sgp_loss_sum sgp_network_loss(
    struct sgp_network *network, const uint32_t *labels, const float *values, size_t rows)
{
    const struct sgp_model *model = network->model;
    return sgp_loss_batch(model->loss, network->delta[0], network->activations[model->layer_count],
        labels, values, rows, model->outputs);
}

void sgp_network_backward(
    struct sgp_network *network, float *gradient, const float *x, double weight, size_t rows)
{
    float scale = (float)(1.0 / weight);
    float *delta = network->delta[0];
    float *below = network->delta[1];
    for (uint32_t l = network->model->layer_count; l-- > 0;) {
        const struct sgp_layer *layer = &network->model->layers[l];
        struct sgp_product_shape shape = shape_of(layer, rows);
        sgp_activation_backward(layer->activation, delta, gradient + layer->biases,
            network->activations[l + 1], rows, layer->outputs);
        sgp_product_gradient(
            &network->product, &shape, gradient + layer->weights, delta, network->activations[l]);
        if (l == 0)
            break;
        sgp_product_back(&network->product, &shape, below, delta, x + layer->weights, scale);
        float *swapped = delta;
        delta = below;
        below = swapped;
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Every kind of layer: its words, its shapes, and its passes against slow ones in float64. */
#include "layers.h"

/* ---- passes ---- */

struct trial {
    struct sgp_model model;
    struct sgp_network network;
    struct reference_net reference;
    double weight;
    size_t rows;
    float *features, *x, *gradient;
    double *z, *expected;
    uint32_t *labels;
};

/* Features and parameters by chance; those of an embedding are whole. */
static void fill(struct trial *t)
{
    struct sgp_random random;
    sgp_random_init(&random, 11, t->model.parameters);
    struct sgp_model_tensor tensors[SGP_MODEL_TENSORS_MAX];
    uint32_t count = sgp_model_tensors(&t->model, tensors),
             vocabulary = sgp_model_vocabulary(&t->model);
    for (uint32_t i = 0; i < count; i++)
        for (uint64_t j = tensors[i].first; j < tensors[i].first + tensors[i].count; j++) {
            double value = 0.4 * sgp_random_normal(&random);
            if (strcmp(tensors[i].name, "running_var") == 0)
                value = 0.5 + value * value;
            t->x[j] = (float)(value * t->weight);
            t->z[j] = (double)t->x[j] / t->weight;
        }
    for (size_t i = 0; i < t->rows * t->model.inputs; i++)
        t->features[i] = vocabulary > 0 ? (float)sgp_random_below(&random, vocabulary)
                                        : (float)sgp_random_normal(&random);
    for (size_t r = 0; r < t->rows; r++)
        t->labels[r] = (uint32_t)sgp_random_below(&random, t->model.outputs);
}

static void trial_init(
    struct trial *t, struct sgp_shape input, const char *layers, size_t rows, double weight)
{
    *t = (struct trial){
        .model = describe(layers, SGP_LOSS_CROSS_ENTROPY, input), .weight = weight, .rows = rows};
    cr_assert(eq(int,
        sgp_network_init(&t->network, &t->model, SGP_PRECISION_FLOAT32, (uint32_t)rows + 1,
            sgp_network_meets(&t->model) ? 0 : (uint32_t)rows, 1),
        0));
    t->features = calloc(rows * t->model.inputs, sizeof *t->features);
    t->x = calloc(t->model.parameters, sizeof *t->x);
    t->gradient = calloc(t->model.parameters, sizeof *t->gradient);
    t->z = calloc(t->model.parameters, sizeof *t->z);
    t->expected = calloc(t->model.parameters, sizeof *t->expected);
    t->labels = calloc(rows, sizeof *t->labels);
    fill(t);
    reference_net_init(&t->reference, &t->model, t->features, rows);
    memcpy(t->network.activations[0], t->features, rows * t->model.inputs * sizeof(float));
}

static void trial_finish(struct trial *t)
{
    sgp_network_finish(&t->network);
    reference_net_finish(&t->reference);
    free(t->features);
    free(t->x);
    free(t->gradient);
    free(t->z);
    free(t->expected);
    free(t->labels);
}

static void same_outputs(const struct trial *t, const float *outputs)
{
    for (size_t i = 0; i < t->rows * t->model.outputs; i++) {
        double expected = t->reference.values[t->model.layer_count][i];
        char text[SGP_MODEL_TEXT_BYTES];
        sgp_model_text(&t->model, text);
        cr_assert(
            epsilon_eq(dbl, (double)outputs[i], expected, 2e-5 * (1 + fabs(expected))), "%s", text);
    }
}

/* The parameters that are statistics. No gradient changes them. */
static void mark_statistics(const struct trial *t, bool *ret_statistics)
{
    struct sgp_model_tensor tensors[SGP_MODEL_TENSORS_MAX];
    uint32_t count = sgp_model_tensors(&t->model, tensors);
    for (uint32_t i = 0; i < count; i++)
        for (uint64_t j = 0; j < tensors[i].count; j++)
            ret_statistics[tensors[i].first + j] = tensors[i].statistic;
}

/* Outputs, loss and gradient at x / weight, in training and not. In the training of a frozen model
 * the outputs are those without training. */
static void compare_with_reference(
    struct sgp_shape input, const char *layers, size_t rows, double weight, bool frozen)
{
    struct trial t;
    trial_init(&t, input, layers, rows, weight);
    bool *statistics = calloc(t.model.parameters, sizeof *statistics);
    mark_statistics(&t, statistics);
    t.network.frozen = frozen;
    t.reference.training = false;
    reference_net_forward(&t.reference, t.z);
    same_outputs(&t, sgp_network_forward(&t.network, t.x, weight, rows));
    t.reference.training = !frozen;
    double loss = reference_net_loss(&t.reference, t.z, t.labels);
    same_outputs(&t, sgp_network_forward_training(&t.network, t.x, weight, 0, rows, 5));
    double got = sgp_network_loss(&t.network, t.labels, NULL, rows).loss / (double)rows;
    cr_assert(epsilon_eq(dbl, got, loss, 1e-5 * (1 + loss)));
    memset(t.gradient, 0xff,
        t.model.parameters * sizeof *t.gradient); /* NaN: every value is written */
    sgp_network_backward(&t.network, t.gradient, t.x, weight, rows);
    reference_net_gradient(&t.reference, t.z, t.expected, t.labels);
    double most = 0;
    for (uint64_t i = 0; i < t.model.parameters; i++) {
        t.expected[i] = statistics[i] ? 0 : t.expected[i];
        most = fabs(t.expected[i]) > most ? fabs(t.expected[i]) : most;
    }
    for (uint64_t i = 0; i < t.model.parameters; i++)
        cr_assert(epsilon_eq(dbl, (double)t.gradient[i], t.expected[i], 1e-5 * (most + 0.1)),
            "%s, parameter %lu: %g, not %g", layers, (unsigned long)i, (double)t.gradient[i],
            t.expected[i]);
    free(statistics);
    trial_finish(&t);
}

static void against_reference(
    struct sgp_shape input, const char *layers, size_t rows, double weight)
{
    compare_with_reference(input, layers, rows, weight, false);
}

/* slopes[r] = the gradient of row r alone, slowly. */
static void slopes_of_rows(const struct trial *t, double *slopes)
{
    for (size_t r = 0; r < t->rows; r++) {
        struct reference_net alone;
        reference_net_init(&alone, &t->model, t->features + r * t->model.inputs, 1);
        reference_net_gradient(&alone, t->z, slopes + r * t->model.parameters, t->labels + r);
        reference_net_finish(&alone);
    }
}

/* The length of the gradient of each row, and sums of them by factors of which one is 0. */
static void rows_against_reference(
    struct sgp_shape input, const char *layers, size_t rows, double weight)
{
    struct trial t;
    trial_init(&t, input, layers, rows, weight);
    const uint64_t count = t.model.parameters;
    double *slopes = calloc(rows * count, sizeof *slopes);
    double *squares = calloc(rows, sizeof *squares), most = 0;
    float *factors = calloc(rows, sizeof *factors);
    slopes_of_rows(&t, slopes);
    sgp_network_forward_training(&t.network, t.x, weight, 0, rows, 5);
    sgp_network_loss(&t.network, t.labels, NULL, rows);
    sgp_network_measure_rows(&t.network, t.gradient, t.x, weight, rows, squares);
    for (size_t r = 0; r < rows; r++) {
        double square = 0;
        factors[r] = (float)r / (float)rows;
        for (uint64_t i = 0; i < count; i++) {
            square += slopes[r * count + i] * slopes[r * count + i];
            t.expected[i] += (double)factors[r] * slopes[r * count + i];
        }
        cr_assert(
            epsilon_eq(dbl, squares[r], square, 1e-5 * (square + 0.1)), "%s, row %zu", layers, r);
    }
    memset(t.gradient, 0xff, count * sizeof *t.gradient); /* NaN: every value is written */
    sgp_network_weigh_rows(&t.network, t.gradient, rows, factors);
    for (uint64_t i = 0; i < count; i++)
        most = fmax(most, fabs(t.expected[i]));
    for (uint64_t i = 0; i < count; i++)
        cr_assert(epsilon_eq(dbl, (double)t.gradient[i], t.expected[i], 1e-5 * (most + 0.1)),
            "%s, parameter %lu", layers, (unsigned long)i);
    free(slopes);
    free(squares);
    free(factors);
    trial_finish(&t);
}

Test(layers, conv)
{
    against_reference((struct sgp_shape){1, 1, 1}, "conv 3 1x1 relu, dense 2", 4, 1);
    against_reference((struct sgp_shape){1, 6, 5}, "conv 3 3x3 relu, dense 3", 5, 1);
    against_reference(
        (struct sgp_shape){3, 6, 5}, "conv 4 3x3 tanh, conv 3 2x2 relu, dense 3", 3, 0.37);
    against_reference((struct sgp_shape){2, 5, 1},
        "conv 3 3x1 relu, conv 2 2x1 stride 2 valid sigmoid, dense 3", 4, 1.9);
    against_reference(
        (struct sgp_shape){2, 7, 6}, "conv 3 4x3 stride 2x3, conv 20 1x1 relu, dense 2", 3, 1);
    against_reference((struct sgp_shape){2, 8, 7},
        "conv 3 3x2 stride 3x2 valid, conv 2 1x1 stride 2, dense 2", 3, 0.6);
    against_reference((struct sgp_shape){4, 3, 3}, "conv 3 3x3 valid, dense 2", 6, 0.5);
    against_reference((struct sgp_shape){5, 1, 1}, "conv 3 1x1 relu, dense 2", 6, 0.5);
}

Test(layers, conv_in_many_blocks)
{
    against_reference(
        (struct sgp_shape){1, 32, 32}, "conv 1 9x9 relu, pool avg all, dense 2", 2, 1.3);
}

Test(layers, pool)
{
    against_reference((struct sgp_shape){1, 6, 4}, "conv 3 3x3, pool 2, dense 2", 4, 1);
    against_reference((struct sgp_shape){1, 7, 5}, "conv 3 3x3, pool 2, dense 2", 4, 1);
    against_reference((struct sgp_shape){2, 7, 5},
        "conv 3 3x3, pool 3 stride 2, pool avg 2 same, dense 2", 4, 0.7);
    against_reference((struct sgp_shape){2, 7, 5},
        "conv 3 3x3, pool 3x2 stride 2x1 same, pool avg all, dense 2", 4, 1);
    against_reference((struct sgp_shape){2, 7, 5},
        "conv 3 3x3, pool avg 3 stride 2 same, pool max all, dense 2", 4, 1);
    against_reference((struct sgp_shape){3, 4, 4}, "pool 2, conv 3 2x2, dense 2", 4, 1);
}

Test(layers, norm)
{
    against_reference((struct sgp_shape){5, 1, 1}, "dense 6, norm batch relu, dense 3", 7, 1);
    against_reference((struct sgp_shape){5, 1, 1}, "dense 6, norm layer tanh, dense 3", 7, 0.4);
    against_reference((struct sgp_shape){2, 5, 4}, "conv 4 3x3, norm batch relu, dense 3", 5, 1.7);
    against_reference(
        (struct sgp_shape){2, 5, 4}, "conv 4 3x3, norm layer relu, norm group 2, dense 3", 5, 0.5);
    against_reference(
        (struct sgp_shape){2, 5, 4}, "norm batch, conv 6 3x3, norm group 3 sigmoid, dense 3", 5, 1);
    against_reference(
        (struct sgp_shape){1, 20, 20}, "conv 2 3x3, norm batch, pool avg all, dense 2", 3, 1);
}

/* The statistics are then those of the fleet, which the tuned model uses, too. */
Test(layers, a_frozen_norm_normalises_by_its_running_statistics)
{
    static const struct sgp_shape flat = {4, 1, 1}, shaped = {2, 3, 2};
    static const double weights[] = {1, 2.5};
    for (size_t i = 0; i < 2; i++) {
        compare_with_reference(flat, "dense 5, norm batch tanh, dense 2", 6, weights[i], true);
        compare_with_reference(flat, "dense 5, norm batch, dense 2", 1, weights[i], true);
        compare_with_reference(shaped, "conv 3 1x1, norm batch relu, dense 2", 5, weights[i], true);
        compare_with_reference(shaped, "conv 4 1x1, norm group 2, dense 2", 5, weights[i], true);
    }
}

Test(layers, residual)
{
    against_reference(
        (struct sgp_shape){5, 1, 1}, "dense 6 tanh, dense 6, residual 1 relu, dense 3", 7, 1);
    against_reference((struct sgp_shape){3, 5, 4},
        "conv 3 3x3 relu, conv 3 3x3, residual 2 relu, dense 3", 4, 0.7);
    against_reference((struct sgp_shape){2, 5, 4},
        "conv 3 3x3, norm batch relu, conv 3 3x3, residual 2 tanh, conv 3 1x1, residual 4 sigmoid, "
        "residual 1, dense 3",
        4, 1.4);
}

Test(layers, embedding)
{
    against_reference((struct sgp_shape){6, 1, 1}, "embedding 5 x 4, dense 2", 4, 0.7);
    against_reference((struct sgp_shape){6, 1, 1},
        "embedding 5 x 4, conv 3 1x3 relu, pool avg all, dense 2", 4, 1);
    against_reference(
        (struct sgp_shape){1, 3, 4}, "embedding 5 x 3, conv 3 2x2 relu, pool 2, dense 2", 4, 1.5);
}

Test(layers, gradients_of_rows)
{
    rows_against_reference((struct sgp_shape){2, 4, 4}, "dense 6 tanh, dense 2", 4, 0.7);
    rows_against_reference(
        (struct sgp_shape){3, 6, 5}, "conv 4 3x3 tanh, conv 3 2x2 relu, dense 3", 3, 0.37);
    rows_against_reference((struct sgp_shape){2, 7, 5},
        "conv 3 3x3, pool 3 stride 2, pool avg 2 same, dense 2", 4, 0.7);
    rows_against_reference(
        (struct sgp_shape){2, 5, 4}, "conv 4 3x3, norm layer relu, norm group 2, dense 3", 5, 0.5);
    rows_against_reference((struct sgp_shape){3, 5, 4},
        "conv 3 3x3 relu, conv 3 3x3, residual 2 relu, dense 3", 4, 0.7);
    rows_against_reference((struct sgp_shape){6, 1, 1},
        "embedding 5 x 4, conv 3 1x3 relu, pool avg all, dense 2", 4, 1);
    /* a row has several blocks of pixels; its gradient is smaller than its delta, or larger */
    rows_against_reference(
        (struct sgp_shape){1, 32, 32}, "conv 1 9x9 relu, pool avg all, dense 2", 2, 1.3);
    rows_against_reference(
        (struct sgp_shape){64, 11, 11}, "conv 1 3x3 relu, pool avg all, dense 2", 2, 1.3);
}

#define NETWORKS 60

/* A text of layers by chance; many of them do not suit. */
static void draw(struct sgp_random *random, char text[512])
{
    static const char *const layers[] = {"conv 4 3x3", "conv 3 1x2 relu", "conv 3 2x1 stride 2",
        "conv 2 3x3 valid tanh", "conv 5 1x1", "pool 2", "pool avg 2 same", "pool 3 stride 2 same",
        "pool avg all", "norm batch", "norm batch relu", "norm layer", "norm group 2", "residual 1",
        "residual 2 relu", "residual 3", "embedding 4 x 3", "dense 6 tanh", "dense 5"};
    text[0] = '\0';
    for (uint64_t count = 1 + sgp_random_below(random, 6); count > 0; count--) {
        strcat(text, layers[sgp_random_below(random, sizeof layers / sizeof layers[0])]);
        strcat(text, ", ");
    }
    strcat(text, "dense 2");
}

Test(layers, networks_by_chance)
{
    static const struct sgp_shape shapes[] = {{1, 6, 5}, {2, 4, 4}, {6, 1, 1}, {1, 1, 7}};
    struct sgp_random random;
    sgp_random_init(&random, 4, 0);
    for (int found = 0; found < NETWORKS;) {
        char text[512];
        struct sgp_model model;
        draw(&random, text);
        struct sgp_shape shape = shapes[sgp_random_below(&random, 4)];
        if (sgp_model_init_shaped(&model, text, SGP_LOSS_CROSS_ENTROPY, shape, NULL) < 0 ||
            model.parameters > 300)
            continue;
        const double weight = 0.3 + sgp_random_double(&random);
        against_reference(shape, text, 4, weight);
        if (sgp_network_meets(&model) == 0)
            rows_against_reference(shape, text, 4, weight);
        found++;
    }
}

Test(layers, a_dense_layer_takes_rows_as_they_come)
{
    against_reference((struct sgp_shape){2, 4, 4}, "dense 6 tanh, dense 2", 4, 0.7);
    against_reference((struct sgp_shape){3, 2, 1}, "dense 6 relu, residual 1, dense 2", 4, 1);
    against_reference((struct sgp_shape){3, 2, 2}, "norm layer, dense 6 tanh, dense 2", 4, 1.2);
}

Test(layers, an_embedding_takes_the_nearest_vector)
{
    struct sgp_model model =
        describe("embedding 3 x 1, dense 1", SGP_LOSS_MSE, (struct sgp_shape){5, 1, 1});
    struct sgp_network network;
    cr_assert(eq(int, sgp_network_init(&network, &model, SGP_PRECISION_FLOAT32, 1, 0, 1), 0));
    const float features[5] = {-1e30f, 1, 2, 7e30f, NAN};
    memcpy(network.activations[0], features, sizeof features);
    float x[9] = {10, 20, 30};
    sgp_network_forward(&network, x, 2, 1);
    const float expected[5] = {5, 10, 15, 15, 5};
    for (int i = 0; i < 5; i++)
        cr_assert(eq(flt, network.activations[1][i], expected[i]));
    sgp_network_finish(&network);
}

Test(layers, a_pool_lets_no_value_that_is_no_number_go_by)
{
    struct sgp_model model = describe("pool 2, dense 1", SGP_LOSS_MSE, (struct sgp_shape){1, 4, 2});
    struct sgp_network network;
    cr_assert(eq(int, sgp_network_init(&network, &model, SGP_PRECISION_FLOAT32, 1, 0, 1), 0));
    const float features[8] = {1, 2, NAN, 3, NAN, 5, 6, 7};
    memcpy(network.activations[0], features, sizeof features);
    float x[3] = {0};
    sgp_network_forward(&network, x, 1, 1);
    cr_assert(isnan(network.activations[1][0]) && isnan(network.activations[1][1]));
    sgp_network_finish(&network);
}

Test(layers, the_first_of_equal_values_has_the_gradient)
{
    struct sgp_model model = describe("pool 2, dense 1", SGP_LOSS_MSE, (struct sgp_shape){1, 2, 4});
    float input[8] = {1, 1, 0, 5, 1, 1, 5, 5}, output[2], delta[2] = {3, 7}, below[8];
    struct sgp_pass pass = {.layer = &model.layers[0],
        .rows = 1,
        .input = input,
        .output = output,
        .delta = delta,
        .below = below};
    sgp_layer_pool.forward(&pass);
    sgp_layer_pool.backward(&pass);
    const float expected[8] = {3, 0, 0, 7, 0, 0, 0, 0};
    for (int i = 0; i < 8; i++)
        cr_assert(eq(flt, below[i], expected[i]));
}

/* ---- statistics ---- */

/* Pass the rows from `first` on through the network. */
static void pass_rows(struct trial *t, double weight, size_t first, size_t rows)
{
    memcpy(t->network.activations[0], t->features + first * t->model.inputs,
        rows * t->model.inputs * sizeof(float));
    sgp_network_forward_training(&t->network, t->x, weight, first, rows, 5);
}

/* z moves to the batch's by the momentum, or x by half of the way if w is small; the mean over
 * nodes of what is added is that of their statistics. The step has passes over `half` rows and over
 * the others. */
static void settles(double weight, double momentum, size_t half)
{
    struct trial t;
    trial_init(&t, (struct sgp_shape){2, 3, 2}, "conv 3 1x1, norm batch, dense 2", 5, weight);
    reference_net_forward(&t.reference, t.z);
    if (half > 0)
        pass_rows(&t, weight, 0, half);
    pass_rows(&t, weight, half, t.rows - half);
    const struct sgp_layer *norm = &t.model.layers[1];
    float *statistics = t.x + norm->biases + 3;
    float before[6], first = t.x[0];
    memcpy(before, statistics, sizeof before);
    memset(statistics, 0xff, sizeof before); /* whatever the optimiser made of them */
    sgp_network_settle(&t.network, t.x);
    cr_assert(eq(flt, t.x[0], first));
    for (uint32_t c = 0; c < 3; c++) {
        double mean, variance;
        reference_moments(norm, t.reference.values[1], 0, 5, c, c + 1, &mean, &variance);
        variance *= 30.0 / 29.0; /* unbiased */
        double z_mean = (double)before[c] / weight, z_variance = (double)before[3 + c] / weight;
        cr_assert(epsilon_eq(
            dbl, (double)statistics[c], (double)before[c] + momentum * (mean - z_mean), 1e-6));
        cr_assert(epsilon_eq(dbl, (double)statistics[3 + c],
            (double)before[3 + c] + momentum * (variance - z_variance), 1e-6));
    }
    trial_finish(&t);
}

Test(layers, running_statistics_follow_those_of_batches)
{
    settles(1, 0.1, 0);
    settles(2.5, 0.1, 1);
    settles(2.5, 0.1, 2);
    settles(0.08, 0.04, 0);
}

Test(layers, one_value_has_no_variance_to_follow)
{
    struct trial t;
    trial_init(&t, (struct sgp_shape){4, 1, 1}, "dense 3, norm batch, dense 2", 1, 1);
    sgp_network_forward_training(&t.network, t.x, 1, 0, 1, 0);
    float before[6];
    memcpy(before, t.x + t.model.layers[1].biases + 3, sizeof before);
    sgp_network_settle(&t.network, t.x);
    cr_assert(eq(int, memcmp(before, t.x + t.model.layers[1].biases + 3, sizeof before), 0));
    trial_finish(&t);
}

/* ---- dropout ---- */

#define DROPPED 100003

static void drop(double rate, bool training, uint64_t chance, float *output)
{
    static float ones[DROPPED];
    for (size_t i = 0; i < DROPPED; i++)
        ones[i] = 1;
    struct sgp_layer layer = {
        .kind = SGP_LAYER_DROPOUT, .rate = rate, .inputs = DROPPED, .outputs = DROPPED};
    static float below[DROPPED];
    struct sgp_pass pass = {.layer = &layer,
        .rows = 1,
        .input = ones,
        .output = output,
        .training = training,
        .chance = chance,
        .delta = ones,
        .below = below};
    sgp_layer_dropout.forward(&pass);
    sgp_layer_dropout.backward(&pass);
    cr_assert(eq(int, memcmp(below, output, sizeof below), 0), "the way back is the way there");
}

Test(layers, dropout)
{
    static float a[DROPPED], b[DROPPED];
    static const double rates[] = {0, 0.1, 0.5, 0.9};
    for (int i = 0; i < 4; i++) {
        double rate = rates[i];
        size_t zeros = 0;
        drop(rate, true, 7, a);
        for (size_t v = 0; v < DROPPED; v++) {
            zeros += a[v] == 0;
            cr_assert(a[v] == 0 || fabs((double)a[v] * (1 - rate) - 1) < 2e-4);
        }
        cr_assert(lt(dbl, fabs((double)zeros / DROPPED - rate),
            5 * sqrt(rate * (1 - rate) / DROPPED) + 1e-5));
    }
    drop(0.5, true, 7, a);
    drop(0.5, true, 7, b);
    cr_assert(eq(int, memcmp(a, b, sizeof a), 0));
    drop(0.5, true, 8, b);
    cr_assert(ne(int, memcmp(a, b, sizeof a), 0));
    drop(0.5, false, 7, a);
    for (size_t v = 0; v < DROPPED; v++)
        cr_assert(eq(flt, a[v], 1.0f));
}

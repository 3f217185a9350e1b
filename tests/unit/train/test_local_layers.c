/* SPDX-License-Identifier: Apache-2.0 */
/* Local layers: their names, where their parameters lie, and a learner that trains them beside x. */
#include "learner_rows.h"

#define LAYERS "dense 8, norm batch tanh, dense 4 tanh, dropout 0.1, dense 3"

static struct sgp_model model_of(const char *layers, const char *local)
{
    struct sgp_model model;
    struct sgp_error error = {0};
    cr_assert(zero(int, sgp_model_init(&model, layers, SGP_LOSS_CROSS_ENTROPY, FEATURES, NULL)));
    cr_assert(zero(int, sgp_model_set_local(&model, local, &error)), "%s", error.text);
    return model;
}

/* ---- names ---- */

Test(local_layers, names_choose_layers_with_parameters)
{
    static const struct {
        const char *layers, *names, *chosen;
        uint64_t count;
    } cases[] = {
        {LAYERS, "", "", 0},
        {LAYERS, " \t", "", 0},
        {LAYERS, "head", "layers.4", 15},
        {LAYERS, "norm", "layers.1", 32},
        {LAYERS, "norm,head", "layers.1, layers.4", 47},
        {LAYERS, " head , layers.0 ", "layers.0, layers.4", 71},
        {LAYERS, "layers.2, dense", "layers.0, layers.2, layers.4", 107},
        {"dense 3, dense 3, residual 1, dropout 0.5", "head", "layers.1", 12},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[SGP_MODEL_LOCAL_BYTES];
        struct sgp_model whole = model_of(cases[i].layers, "");
        struct sgp_model model = model_of(cases[i].layers, cases[i].names);
        sgp_model_local_text(&model, text);
        cr_assert(eq(str, text, (char *)cases[i].chosen));
        cr_assert(eq(u64, model.local_parameters, cases[i].count), "%s", cases[i].names);
        cr_assert(eq(u64, sgp_model_values(&model), whole.parameters));
        cr_assert_eq(sgp_model_shape_digest(&model) == sgp_model_shape_digest(&whole),
            cases[i].count == 0, "%s", cases[i].names);
        cr_assert(zero(int, sgp_model_set_local(&model, "", NULL)));
        cr_assert(eq(u64, sgp_model_shape_digest(&model), sgp_model_shape_digest(&whole)));
    }
}

Test(local_layers, wrong_names_have_one_line_each)
{
    static const struct {
        const char *names, *line;
    } cases[] = {
        {"hed", "'hed' names no layers; write head, a kind such as norm, or a layer such as "
                "layers.0, as a model file names it"},
        {"layers", "'layers' names no layers; write head, a kind such as norm, or a layer such as "
                   "layers.0, as a model file names it"},
        {"layers.01", "'layers.01' names no layers; write head, a kind such as norm, or a layer "
                      "such as layers.0, as a model file names it"},
        {"layers.-1", "'layers.-1' names no layers; write head, a kind such as norm, or a layer "
                      "such as layers.0, as a model file names it"},
        {"layers.5", "there is no layers.5; the model has layers.0 to layers.4"},
        {"conv", "no layer is conv; name a kind that [model] layers has, or head"},
        {"dropout", "dropout has no parameters, so there is nothing to keep local; name a layer "
                    "that learns"},
        {"layers.3", "layers.3 has no parameters, so there is nothing to keep local; name a layer "
                     "that learns"},
        {"head, head", "'head' names no layer that is not named before it; leave it out"},
        {"dense, head", "'head' names no layer that is not named before it; leave it out"},
        {"norm head", "'norm' goes on with 'head'; separate names by commas"},
        {"norm,,head", "a name is empty; write one name between two commas, as in 'norm, head'"},
        {"norm,", "a name is empty; write one name between two commas, as in 'norm, head'"},
        {"dense, norm", "all layers that learn are local, so the nodes would have nothing to "
                        "share; leave one out"},
    };
    struct sgp_model model = model_of(LAYERS, "norm");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sgp_error error = {0};
        cr_assert(eq(int, sgp_model_set_local(&model, cases[i].names, &error), SGP_E_CONFIG));
        cr_assert(eq(str, error.text, (char *)cases[i].line));
        cr_assert(
            eq(u64, model.local_parameters, 32), "%s: the model is unchanged", cases[i].names);
    }
}

/* ---- values ---- */

Test(local_layers, first_values_are_those_without_local_layers_and_join_in_the_order_of_a_file)
{
    struct sgp_model whole = model_of(LAYERS, ""), model = model_of(LAYERS, "norm, head");
    float all[200], x[200], local[200], values[200];
    sgp_model_initialise(&whole, 5, all, NULL);
    sgp_model_initialise(&model, 5, x, local);
    sgp_model_join(&model, x, local, values);
    cr_assert(zero(int, memcmp(values, all, whole.parameters * sizeof *all)));
    float zeros[200] = {0}, ones[200];
    for (int i = 0; i < 200; i++)
        ones[i] = 1;
    sgp_model_exchange(&model, zeros, ones, values);
    cr_assert(zero(int, memcmp(zeros, x, model.parameters * sizeof *x)));
    cr_assert(zero(int, memcmp(ones, local, model.local_parameters * sizeof *x)));
    uint64_t sum = 0;
    for (uint64_t i = 0; i < whole.parameters; i++)
        sum += values[i] > 0;
    cr_assert(eq(u64, sum, model.local_parameters));
}

/* ---- a learner ---- */

static struct sgp_learner_settings settings_with(
    enum sgp_optimizer_kind kind, const struct sgp_dataset *dataset, const char *local)
{
    struct sgp_learner_settings settings = settings_of_rule(kind, dataset);
    settings.model = model_of(LAYERS, local);
    settings.optimizer.clip_norm = 0; /* it goes by all gradients of x together */
    return settings;
}

/* The whole model, at weight 1. */
static void whole_of(const struct sgp_trainer *trainer, double weight, float ret_values[200])
{
    cr_assert(le(u64, trainer->model_values, 200));
    trainer->methods->model(trainer, weight, ret_values);
}

/* Where x is the estimate, it makes no difference to the bit in which vector a parameter lies. */
Test(local_layers, at_weight_one_every_rule_takes_the_same_steps)
{
    struct sgp_dataset *dataset = clusters(50, 1);
    for (int kind = SGP_OPTIMIZER_SGD; kind <= SGP_OPTIMIZER_MOST; kind++) {
        struct sgp_learner_settings settings =
            settings_with((enum sgp_optimizer_kind)kind, dataset, "");
        struct sgp_learner_settings split =
            settings_with((enum sgp_optimizer_kind)kind, dataset, "norm, head");
        settings.optimizer.noise_fraction = split.optimizer.noise_fraction = 1;
        struct sgp_trainer *first = create(&settings), *second = create(&split);
        float a[200], b[200];
        struct sgp_training one = train(first, 1, 20), two = train(second, 1, 20);
        whole_of(first, 1, a);
        whole_of(second, 1, b);
        cr_assert(eq(u64, first->model_values, second->model_values));
        cr_assert(eq(u64, second->parameters, first->parameters - 47));
        cr_assert(zero(int, memcmp(a, b, first->model_values * sizeof *a)), "%s",
            sgp_optimizer_name(settings.optimizer.kind));
        cr_assert(eq(dbl, one.loss, two.loss));
        first->methods->destroy(first);
        second->methods->destroy(second);
    }
    sgp_dataset_destroy(dataset);
}

/* The first step of Adam is nearly rate * sign(gradient) whatever the gradient, unless the noise of a
 * fleet is left out of its divisor. */
Test(local_layers, the_noise_of_a_fleet_is_left_out_of_no_divisor)
{
    struct sgp_dataset *dataset = clusters(50, 1);
    for (int fleet = 0; fleet < 2; fleet++) {
        struct sgp_learner_settings settings = settings_with(SGP_OPTIMIZER_ADAM, dataset, "head");
        settings.optimizer.noise_fraction = fleet ? 1.0 / 16 : 1;
        settings.optimizer.weight_decay = 0;
        struct sgp_trainer *trainer = create(&settings);
        struct sgp_trainer_state state;
        float before[200], most = 0;
        trainer->methods->state(trainer, &state);
        const uint64_t count = trainer->model_values - trainer->parameters;
        const float *local = sgp_state_vector(&state, SGP_STATE_LOCAL, count);
        memcpy(before, local, count * sizeof *before);
        const double rate = train(trainer, 1, 1).learning_rate;
        for (uint64_t i = 0; i < count; i++)
            most = fmaxf(most, fabsf(local[i] - before[i]));
        cr_assert(epsilon_eq(dbl, (double)most, rate, 1e-3 * rate), "%g of %g", (double)most, rate);
        trainer->methods->destroy(trainer);
    }
    sgp_dataset_destroy(dataset);
}

/* They are no mass: a weight, a share and another x do not reach them. */
Test(local_layers, what_moves_mass_does_not_reach_them)
{
    struct sgp_dataset *dataset = clusters(50, 1);
    struct sgp_learner_settings settings = settings_with(SGP_OPTIMIZER_SGD, dataset, "norm, head");
    struct sgp_trainer *trainer = create(&settings);
    struct sgp_trainer_state state;
    float before[200], after[200], *snapshot, other[200] = {0}, mine[47];
    train(trainer, 1, 5);
    whole_of(trainer, 1, before);
    trainer->methods->state(trainer, &state);
    memcpy(mine, sgp_state_vector(&state, SGP_STATE_LOCAL, 47), sizeof mine);
    cr_assert(zero(int, sgp_vector_create(trainer->parameters, &snapshot)));
    trainer->methods->publish(trainer, &snapshot, 0.5F);
    whole_of(trainer, 0.5, after);
    cr_assert(zero(int, memcmp(before, after, sizeof(float) * trainer->model_values)));
    trainer->methods->absorb(trainer, &snapshot, 0.5F, 0, trainer->parameters, NULL);
    whole_of(trainer, 1, after);
    cr_assert(zero(int, memcmp(before, after, sizeof(float) * trainer->model_values)));
    trainer->methods->adopt(trainer, other, 1);
    trainer->methods->state(trainer, &state);
    cr_assert(zero(int, memcmp(mine, sgp_state_vector(&state, SGP_STATE_LOCAL, 47), sizeof mine)));
    cr_assert_null(sgp_state_vector(&state, SGP_STATE_LOCAL, 46));
    sgp_vector_destroy(snapshot);
    trainer->methods->destroy(trainer);
    sgp_dataset_destroy(dataset);
}

/* A state without them, as of an estimate that was taken over, leaves them. */
Test(local_layers, a_state_without_them_leaves_them)
{
    struct sgp_dataset *dataset = clusters(50, 1);
    struct sgp_learner_settings settings = settings_with(SGP_OPTIMIZER_ADAM, dataset, "head");
    struct sgp_trainer *trainer = create(&settings);
    float before[200], after[200];
    train(trainer, 1, 5);
    whole_of(trainer, 1, before);
    struct sgp_trainer_state nothing = {0};
    trainer->methods->resume(trainer, &nothing);
    whole_of(trainer, 1, after);
    cr_assert(zero(int, memcmp(before, after, sizeof(float) * trainer->model_values)));
    trainer->methods->destroy(trainer);
    sgp_dataset_destroy(dataset);
}

Test(local_layers, steps_of_a_frozen_model_change_them_alone)
{
    struct sgp_dataset *dataset = clusters(50, 1);
    struct sgp_learner_settings settings = settings_with(SGP_OPTIMIZER_ADAM, dataset, "head");
    settings.frozen = true;
    struct sgp_trainer *trainer = create(&settings);
    uint64_t digest = trainer->methods->digest(trainer);
    struct sgp_training first = train(trainer, 1, 7); /* an epoch */
    train(trainer, 1, 196);
    struct sgp_training last = train(trainer, 1, 7);
    cr_assert(eq(u64, trainer->methods->digest(trainer), digest));
    cr_assert(zero(u64, last.update));
    cr_assert(lt(dbl, last.loss, 0.7 * first.loss));
    trainer->methods->destroy(trainer);
    sgp_dataset_destroy(dataset);
}

/* Of a batch of one row the statistics are the row itself, so the head would learn nothing. */
Test(local_layers, a_frozen_norm_batch_is_in_training_what_it_is_in_use)
{
    struct sgp_dataset *dataset = clusters(50, 1);
    struct sgp_learner_settings settings = settings_with(SGP_OPTIMIZER_SGD, dataset, "head");
    settings.frozen = true;
    settings.batch = 1;
    struct sgp_trainer *trainer = create(&settings);
    float before[200], after[200];
    whole_of(trainer, 1, before);
    struct sgp_training first = train(trainer, 1, 50), last;
    for (int epoch = 0; epoch < 20; epoch++)
        last = train(trainer, 1, 50);
    cr_assert(lt(dbl, last.loss, 0.7 * first.loss));
    whole_of(trainer, 1, after);
    uint64_t head = settings.model.parameters;
    cr_assert(zero(int, memcmp(before, after, head * sizeof *before)), "nor its statistics");
    cr_assert(memcmp(before + head, after + head, 15 * sizeof *before) != 0);
    trainer->methods->destroy(trainer);
    sgp_dataset_destroy(dataset);
}

/* The model of a file is used, and the present one is back afterwards. */
Test(local_layers, another_model_takes_their_place_for_a_while)
{
    struct sgp_dataset *dataset = clusters(50, 1);
    struct sgp_learner_settings settings = settings_with(SGP_OPTIMIZER_SGD, dataset, "norm, head");
    struct sgp_trainer *trainer = create(&settings);
    struct sgp_learner *learner = (struct sgp_learner *)trainer;
    float first[200], last[200], values[200], outputs[3], again[3];
    const float row[FEATURES] = {1, -1, 1, -1, 1, -1};
    whole_of(trainer, 1, first);
    sgp_learner_predict(learner, 1, row, 1, outputs);
    train(trainer, 1, 5);
    whole_of(trainer, 1, last);
    memcpy(values, first, sizeof values);
    sgp_learner_exchange(learner, values);
    sgp_learner_predict(learner, 1, row, 1, again);
    cr_assert(zero(int, memcmp(outputs, again, sizeof again)));
    sgp_learner_exchange(learner, values);
    whole_of(trainer, 1, values);
    cr_assert(zero(int, memcmp(values, last, sizeof(float) * trainer->model_values)));
    trainer->methods->destroy(trainer);
    sgp_dataset_destroy(dataset);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Optimisers against a plain float64 transcription of the formulas, with w != 1 and decay on z. */
#include "sgp/optimizer.h"
#include "sgp/random.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <float.h>
#include <math.h>
#include <string.h>

#define PARAMETERS 101
#define STEPS 200
#define CLOSE 1e-6 /* of two vectors: their distance by the length of one */

/* Two layers with their biases; so many that vectors of the processor do not fit them. */
static const struct sgp_tensor_end ends[] = {{60, true}, {71, false}, {98, true}, {101, false}};
static const struct sgp_tensors layers = {ends, 4};
static const struct sgp_tensors one_tensor = {0};

static const enum sgp_optimizer_kind kinds[] = {SGP_OPTIMIZER_SGD, SGP_OPTIMIZER_MOMENTUM,
    SGP_OPTIMIZER_NESTEROV, SGP_OPTIMIZER_ADAM, SGP_OPTIMIZER_ADAMW, SGP_OPTIMIZER_RMSPROP,
    SGP_OPTIMIZER_LARS, SGP_OPTIMIZER_LAMB};
#define KINDS (sizeof kinds / sizeof *kinds)
_Static_assert(KINDS == SGP_OPTIMIZER_MOST, "every optimiser is tested");

static struct sgp_optimizer_settings settings_of(enum sgp_optimizer_kind kind)
{
    return (struct sgp_optimizer_settings){.kind = kind,
        .momentum = 0.9,
        .weight_decay = 0.01,
        .beta1 = 0.9,
        .beta2 = 0.999,
        .alpha = 0.99,
        .epsilon = 1e-8,
        .trust = 1e-3,
        .noise_fraction = 1};
}

/* ---- families of optimisers ---- */

/* Linear in the gradient, so there is no noise to leave out. */
static bool is_linear(enum sgp_optimizer_kind kind)
{
    return kind == SGP_OPTIMIZER_SGD || kind == SGP_OPTIMIZER_MOMENTUM ||
           kind == SGP_OPTIMIZER_NESTEROV;
}

static bool is_adam(enum sgp_optimizer_kind kind)
{
    return kind == SGP_OPTIMIZER_ADAM || kind == SGP_OPTIMIZER_ADAMW || kind == SGP_OPTIMIZER_LAMB;
}

/* Divided by the root of a mean of squares, of which noise may be a part. */
static bool divides(enum sgp_optimizer_kind kind)
{
    return is_adam(kind) || kind == SGP_OPTIMIZER_RMSPROP;
}

/* ---- the reference ---- */

struct plain {
    struct sgp_optimizer_settings settings;
    struct sgp_tensors tensors;
    double x[PARAMETERS], a[PARAMETERS], b[PARAMETERS]; /* velocity; moments; mean square */
    double h[PARAMETERS];                               /* noise */
    int steps;
};

static double norm(const double *values, uint64_t first, uint64_t end)
{
    double sum = 0;
    for (uint64_t i = first; i < end; i++)
        sum += values[i] * values[i];
    return sqrt(sum);
}

/* Less a part of that of d, but at least the root of f times so much. */
static double norm_less(
    const double *values, const double *d, uint64_t first, uint64_t end, double part, double f)
{
    double whole = norm(values, first, end), less = norm(d, first, end);
    return sqrt(fmax(whole * whole - part * less * less, f * whole * whole));
}

static void plain_clip(const struct sgp_optimizer_settings *s, double *g, double *d)
{
    for (int i = 0; i < PARAMETERS && s->clip_value > 0; i++)
        g[i] = fmax(-s->clip_value, fmin(s->clip_value, g[i]));
    double length = norm_less(g, d, 0, PARAMETERS, 1 - s->noise_fraction, s->noise_fraction);
    for (int i = 0; i < PARAMETERS && s->clip_norm > 0 && length > s->clip_norm; i++) {
        g[i] *= s->clip_norm / length;
        d[i] *= s->clip_norm / length;
    }
}

/* What x goes along, before the rate, of one tensor. `sees`: the deviations d are known. */
static void plain_way(struct plain *p, const double *g, const double *d, const double *z,
    uint64_t first, uint64_t end, bool matrix, bool sees, double *way)
{
    const struct sgp_optimizer_settings *s = &p->settings;
    double f = s->noise_fraction, q[PARAMETERS] = {0}, kept = pow(s->beta1, p->steps);
    double spread = (1 - f) * (1 - s->beta1) * (1 + kept) / ((1 + s->beta1) * (1 - kept));
    bool decoupled = s->kind == SGP_OPTIMIZER_ADAMW || s->kind == SGP_OPTIMIZER_LAMB;
    bool spares = decoupled || s->kind == SGP_OPTIMIZER_LARS;
    double decay = spares && !matrix ? 0 : s->weight_decay;
    double z_norm = norm(z, first, end), local = s->trust;
    double g_norm = norm_less(g, d, first, end, 1 - f, f);
    if (matrix && z_norm > 0 && g_norm > 0)
        local *= z_norm / (g_norm + decay * z_norm);
    for (uint64_t i = first; i < end; i++) {
        double G = g[i] + (decoupled ? 0 : decay * z[i]), m = s->momentum;
        if (s->kind == SGP_OPTIMIZER_SGD) {
            way[i] = G;
        } else if (s->kind == SGP_OPTIMIZER_MOMENTUM || s->kind == SGP_OPTIMIZER_NESTEROV) {
            p->a[i] = m * p->a[i] + G;
            way[i] = s->kind == SGP_OPTIMIZER_MOMENTUM ? p->a[i] : G + m * p->a[i];
        } else if (s->kind == SGP_OPTIMIZER_LARS) {
            way[i] = p->a[i] = m * p->a[i] + local * G;
        } else if (s->kind == SGP_OPTIMIZER_RMSPROP) {
            p->a[i] = s->alpha * p->a[i] + (1 - s->alpha) * G * G;
            if (sees)
                p->h[i] = s->alpha * p->h[i] + (1 - s->alpha) * d[i] * d[i];
            way[i] = G / (sqrt(fmax(f * p->a[i], p->a[i] - (1 - f) * p->h[i])) + s->epsilon);
        } else if (is_adam(s->kind)) {
            p->a[i] = s->beta1 * p->a[i] + (1 - s->beta1) * G;
            p->b[i] = s->beta2 * p->b[i] + (1 - s->beta2) * G * G;
            if (sees)
                p->h[i] = s->beta2 * p->h[i] + (1 - s->beta2) * d[i] * d[i];
            double mean = p->a[i] / (1 - kept), full = 1 - pow(s->beta2, p->steps);
            double root = sqrt(fmax(f * p->b[i], p->b[i] - (1 - f) * p->h[i]) / full);
            q[i] = sqrt(spread * p->h[i] / full) / (root + s->epsilon);
            way[i] = mean / (root + s->epsilon) + (decoupled ? decay * z[i] : 0);
        } else {
            cr_fatal("%s has no formula here", sgp_optimizer_name(s->kind));
        }
    }
    double way_norm = norm_less(way, q, first, end, 1, f);
    for (uint64_t i = first; i < end && s->kind == SGP_OPTIMIZER_LAMB && matrix; i++)
        way[i] *= z_norm > 0 && way_norm > 0 ? z_norm / way_norm : 1;
}

static void plain_step(
    struct plain *p, const float *gradient, const float *deviation, double weight, double rate)
{
    static const struct sgp_tensor_end all = {PARAMETERS, true};
    const struct sgp_tensor_end *tensors = p->tensors.count > 0 ? p->tensors.ends : &all;
    uint32_t count = p->tensors.count > 0 ? p->tensors.count : 1;
    double g[PARAMETERS], d[PARAMETERS], z[PARAMETERS], way[PARAMETERS];
    bool leaves = sgp_optimizer_needs_deviation(&p->settings) && deviation != NULL;
    for (int i = 0; i < PARAMETERS; i++) {
        g[i] = (double)gradient[i];
        d[i] = leaves ? (double)deviation[i] : 0;
        z[i] = p->x[i] / weight;
    }
    plain_clip(&p->settings, g, d);
    p->steps++;
    for (uint32_t t = 0; t < count; t++)
        plain_way(p, g, d, z, t > 0 ? tensors[t - 1].end : 0, tensors[t].end,
            tensors[t].has_columns, leaves, way);
    for (int i = 0; i < PARAMETERS; i++)
        p->x[i] -= rate * way[i];
}

/* ---- steps ---- */

static double distance(const float *values, const double *expected)
{
    double apart = 0, length = 0;
    for (int i = 0; i < PARAMETERS; i++) {
        apart += ((double)values[i] - expected[i]) * ((double)values[i] - expected[i]);
        length += expected[i] * expected[i];
    }
    return length > 0 ? sqrt(apart / length) : sqrt(apart);
}

/* Gradients whose size changes from step to step, and from value to value. */
static void draw(struct sgp_random *random, int step, float *gradient)
{
    for (int i = 0; i < PARAMETERS; i++)
        gradient[i] = (float)(sgp_random_normal(random) * (1 + i % 7) * (1 + step % 11) / 20);
}

static double rate_of(enum sgp_optimizer_kind kind, int step)
{
    double rate = 1.0 / (10 + step % 50);
    return kind == SGP_OPTIMIZER_LARS ? 20 * rate : divides(kind) ? rate / 10 : rate;
}

struct run {
    struct sgp_optimizer optimizer;
    struct sgp_random random;
    struct plain plain;
    float x[PARAMETERS];
    int step;
};

static void begin(
    struct run *run, struct sgp_optimizer_settings settings, struct sgp_tensors tensors)
{
    memset(run, 0, sizeof *run);
    struct sgp_error error = {0};
    cr_assert(zero(int, sgp_optimizer_check(&settings, &error)), "%s", error.text);
    cr_assert(zero(int, sgp_optimizer_init(&run->optimizer, &settings, PARAMETERS, &tensors)));
    sgp_random_init(&run->random, 1, 0);
    run->plain.settings = settings;
    run->plain.tensors = tensors;
    for (int i = 0; i < PARAMETERS; i++)
        run->plain.x[i] = run->x[i] = (float)sgp_random_normal(&run->random);
}

static void go_on(struct run *run, int steps, double weight)
{
    enum sgp_optimizer_kind kind = run->optimizer.settings.kind;
    for (int end = run->step + steps; run->step < end; run->step++) {
        float gradient[PARAMETERS], deviation[PARAMETERS];
        draw(&run->random, run->step, gradient);
        draw(&run->random, run->step, deviation);
        for (int i = 0; i < PARAMETERS; i++)
            deviation[i] *= 0.8f; /* else little is left of |d|, and of its digits */
        float *seen = run->step % 10 == 9 ? NULL : deviation; /* as of a batch of one row */
        plain_step(&run->plain, gradient, seen, weight, rate_of(kind, run->step));
        sgp_optimizer_step(
            &run->optimizer, run->x, gradient, seen, weight, rate_of(kind, run->step));
        double apart = distance(run->x, run->plain.x);
        cr_assert(lt(dbl, apart, CLOSE), "%s, step %d", sgp_optimizer_name(kind), run->step);
    }
}

static void expect_state(const struct run *run)
{
    uint32_t count = sgp_optimizer_vectors(&run->optimizer.settings);
    bool rmsprop = run->optimizer.settings.kind == SGP_OPTIMIZER_RMSPROP;
    const double *expected[] = {run->plain.a, rmsprop ? run->plain.h : run->plain.b, run->plain.h};
    for (uint32_t i = 0; i < count; i++)
        cr_assert(lt(dbl, distance(run->optimizer.vectors[i], expected[i]), CLOSE), "%s, vector %u",
            sgp_optimizer_name(run->optimizer.settings.kind), i);
}

static void step_once(struct sgp_optimizer *optimizer, float *x, float gradient, double rate)
{
    float gradients[] = {gradient, gradient};
    sgp_optimizer_step(optimizer, x, gradients, NULL, 1, rate);
}

/* At weights on both sides of 1. Each value by itself, too. */
Test(optimizer, every_rule_follows_its_formula)
{
    const double weights[] = {1, 0.37, 2.5};
    for (size_t k = 0; k < KINDS; k++)
        for (size_t w = 0; w < sizeof weights / sizeof *weights; w++)
            for (int parts = 0; parts < 2; parts++) {
                struct run run;
                begin(&run, settings_of(kinds[k]), parts ? layers : one_tensor);
                go_on(&run, STEPS, weights[w]);
                expect_state(&run);
                for (int i = 0; i < PARAMETERS; i++)
                    cr_assert(epsilon_eq(dbl, (double)run.x[i], run.plain.x[i],
                                  4e-6 * (1 + fabs(run.plain.x[i]))),
                        "%s, value %d", sgp_optimizer_name(kinds[k]), i);
                sgp_optimizer_finish(&run.optimizer);
            }
}

/* Deviations so large that both bounds are reached. Step by step, before and after a restart. */
Test(optimizer, rules_leave_out_noise_by_their_formulas)
{
    const double fractions[] = {0.5, 1.0 / 8, 1.0 / 64};
    for (size_t k = 0; k < KINDS; k++)
        for (size_t f = 0; f < sizeof fractions / sizeof *fractions; f++) {
            struct run run, second;
            struct sgp_optimizer_settings settings = settings_of(kinds[k]);
            settings.noise_fraction = fractions[f];
            settings.clip_norm = f == 1 ? 1.5 : 0;
            begin(&run, settings, layers);
            go_on(&run, STEPS / 2, 0.7);
            second = run;
            cr_assert(
                zero(int, sgp_optimizer_init(&second.optimizer, &settings, PARAMETERS, &layers)));
            struct sgp_trainer_state state = {0};
            sgp_optimizer_state(&run.optimizer, &state);
            sgp_optimizer_resume(&second.optimizer, &state);
            go_on(&run, STEPS / 2, 0.7);
            go_on(&second, STEPS / 2, 0.7);
            expect_state(&run);
            cr_assert(zero(int, memcmp(run.x, second.x, sizeof run.x)), "%s",
                sgp_optimizer_name(kinds[k]));
            sgp_optimizer_finish(&run.optimizer);
            sgp_optimizer_finish(&second.optimizer);
        }
}

/* With a fraction of 1 a deviation changes no bit; with less it does, in the rules that are not linear. */
Test(optimizer, one_node_has_no_noise_to_leave_out)
{
    for (size_t k = 0; k < KINDS; k++)
        for (int part = 0; part < 2; part++) {
            struct run with, without;
            struct sgp_optimizer_settings settings = settings_of(kinds[k]);
            begin(&without, settings, layers);
            settings.noise_fraction = part ? 0.25 : 1;
            begin(&with, settings, layers);
            for (int step = 0; step < 20; step++) {
                float gradient[PARAMETERS], deviation[PARAMETERS];
                draw(&with.random, step, gradient);
                draw(&with.random, step, deviation);
                sgp_optimizer_step(&with.optimizer, with.x, gradient, deviation, 1, 0.01);
                sgp_optimizer_step(&without.optimizer, without.x, gradient, NULL, 1, 0.01);
            }
            bool differs = part && !is_linear(kinds[k]);
            cr_assert(differs == (memcmp(with.x, without.x, sizeof with.x) != 0), "%s, %d",
                sgp_optimizer_name(kinds[k]), part);
            sgp_optimizer_finish(&with.optimizer);
            sgp_optimizer_finish(&without.optimizer);
        }
}

/* What the rule is for. Gradients 0.3 + noise: on 8 nodes Adam divides as one process with the mean of all does. */
Test(optimizer, squares_of_nodes_are_those_of_their_mean)
{
    enum { NODES = 8 };
    struct sgp_optimizer_settings settings = settings_of(SGP_OPTIMIZER_ADAM);
    settings.weight_decay = 0;
    struct sgp_optimizer whole, plain, fleet;
    cr_assert(zero(int, sgp_optimizer_init(&whole, &settings, 1, &one_tensor)));
    cr_assert(zero(int, sgp_optimizer_init(&plain, &settings, 1, &one_tensor)));
    settings.noise_fraction = 1.0 / NODES;
    cr_assert(zero(int, sgp_optimizer_init(&fleet, &settings, 1, &one_tensor)));
    struct sgp_random random;
    sgp_random_init(&random, 1, 0);
    for (int step = 0; step < 20000; step++) {
        float x = 0, mean = 0, own = 0, deviation = 0;
        for (int node = 0; node < NODES; node++) {
            float a = 0.3f + (float)sgp_random_normal(&random);
            float b = 0.3f + (float)sgp_random_normal(&random);
            own = (a + b) / 2;
            deviation = (a - b) / 2;
            mean += own / NODES;
        }
        sgp_optimizer_step(&plain, &x, (float[]){own}, NULL, 1, 0);
        sgp_optimizer_step(&fleet, &x, &own, &deviation, 1, 0);
        sgp_optimizer_step(&whole, &x, &mean, NULL, 1, 0);
    }
    const double expected = 0.09 + 0.5 / NODES;
    cr_assert(epsilon_eq(dbl, (double)whole.vectors[1][0], expected, 0.01));
    double kept = (double)fleet.vectors[1][0] - 0.875 * (double)fleet.vectors[2][0];
    cr_assert(epsilon_eq(dbl, kept, expected, 0.05));
    cr_assert(epsilon_eq(dbl, (double)plain.vectors[1][0], 0.59, 0.05));
    sgp_optimizer_finish(&whole);
    sgp_optimizer_finish(&plain);
    sgp_optimizer_finish(&fleet);
}

/* A fleet that was one node begins anew: nothing is known of its noise. */
Test(optimizer, noise_is_kept_where_it_is_left_out)
{
    for (size_t k = 0; k < KINDS; k++) {
        struct sgp_optimizer_settings one = settings_of(kinds[k]), fleet = one;
        fleet.noise_fraction = 0.5;
        bool keeps = divides(kinds[k]);
        cr_assert(eq(u32, sgp_optimizer_vectors(&fleet), sgp_optimizer_vectors(&one) + keeps));
        struct run before, after;
        begin(&before, one, layers);
        begin(&after, fleet, layers);
        go_on(&before, 10, 1);
        struct sgp_trainer_state state = {0};
        sgp_optimizer_state(&before.optimizer, &state);
        sgp_optimizer_resume(&after.optimizer, &state);
        cr_assert(eq(u64, after.optimizer.steps, keeps ? 0 : before.optimizer.steps));
        sgp_optimizer_finish(&before.optimizer);
        sgp_optimizer_finish(&after.optimizer);
    }
}

Test(optimizer, gradients_are_clipped_before_the_rule)
{
    const double clips[][2] = {{1.5, 0}, {0, 0.3}, {1.5, 0.3}}; /* norm, value */
    for (size_t k = 0; k < KINDS; k++)
        for (size_t c = 0; c < sizeof clips / sizeof *clips; c++) {
            struct run run;
            struct sgp_optimizer_settings settings = settings_of(kinds[k]);
            settings.clip_norm = clips[c][0];
            settings.clip_value = clips[c][1];
            begin(&run, settings, layers);
            go_on(&run, STEPS, 0.8);
            expect_state(&run);
            sgp_optimizer_finish(&run.optimizer);
        }
}

Test(optimizer, a_gradient_within_its_bounds_is_left_alone)
{
    struct sgp_optimizer_settings settings = {
        .kind = SGP_OPTIMIZER_SGD, .clip_norm = 5, .clip_value = 4};
    struct sgp_optimizer optimizer;
    cr_assert(zero(int, sgp_optimizer_init(&optimizer, &settings, 2, &one_tensor)));
    float x[2] = {0}, gradient[2] = {3, -4};
    sgp_optimizer_step(&optimizer, x, gradient, NULL, 1, 1);
    cr_assert(eq(flt, x[0], -3));
    cr_assert(eq(flt, x[1], 4));
    float longer[2] = {6, -8}; /* 4 and -4 by value, 5 / sqrt(32) of that by norm */
    optimizer.settings.clip_norm = 4;
    sgp_optimizer_step(&optimizer, x, longer, NULL, 1, 1);
    cr_assert(epsilon_eq(flt, longer[0], 2 * sqrtf(2), 1e-6f));
    cr_assert(epsilon_eq(flt, longer[1], -2 * sqrtf(2), 1e-6f));
    sgp_optimizer_finish(&optimizer);
}

/* From what `state` gives, copied away; the two go on as one. */
Test(optimizer, a_rule_resumed_midway_goes_on_to_the_bit)
{
    for (size_t k = 0; k < KINDS; k++) {
        struct run first;
        begin(&first, settings_of(kinds[k]), layers);
        go_on(&first, 97, 0.7);
        struct run second = first; /* x, and the place in the gradients */
        cr_assert(zero(int,
            sgp_optimizer_init(&second.optimizer, &first.optimizer.settings, PARAMETERS, &layers)));
        struct sgp_trainer_state state = {0};
        sgp_optimizer_state(&first.optimizer, &state);
        cr_assert(eq(u32, state.vector_count, sgp_optimizer_vectors(&first.optimizer.settings)));
        sgp_optimizer_resume(&second.optimizer, &state);
        go_on(&first, STEPS - 97, 0.7);
        go_on(&second, STEPS - 97, 0.7);
        cr_assert(zero(int, memcmp(first.x, second.x, sizeof first.x)), "%s",
            sgp_optimizer_name(kinds[k]));
        sgp_optimizer_finish(&first.optimizer);
        sgp_optimizer_finish(&second.optimizer);
    }
}

/* The first step of Adam is the rate in size, whatever the gradient, only if it knows that it is the first. */
Test(optimizer, without_its_state_a_rule_begins_again)
{
    static const struct sgp_trainer_state nothing;
    struct sgp_optimizer_settings settings = settings_of(SGP_OPTIMIZER_ADAM);
    settings.weight_decay = 0;
    struct sgp_optimizer optimizer;
    cr_assert(zero(int, sgp_optimizer_init(&optimizer, &settings, 2, &one_tensor)));
    float x[2] = {0};
    for (int i = 0; i < 50; i++)
        step_once(&optimizer, x, i % 2 == 0 ? 3 : -1, 0.1);
    struct sgp_trainer_state other = {0};
    sgp_state_add_vector(&other, "first moment", x, 2);
    sgp_state_add_counter(&other, "optimizer steps", 5);
    for (int i = 0; i < 2; i++) { /* nothing, and a part of it */
        sgp_optimizer_resume(&optimizer, i == 0 ? &nothing : &other);
        cr_assert(eq(u64, optimizer.steps, 0));
        cr_assert(eq(flt, optimizer.vectors[0][1], 0));
        x[1] = 0;
        step_once(&optimizer, x, 1e-3f, 0.1);
        cr_assert(epsilon_eq(flt, x[1], -0.1f, 1e-5f));
    }
    sgp_optimizer_finish(&optimizer);
}

/* ---- layers ---- */

/* With one bias behind one weight, and rates that are whole. */
Test(optimizer, layers_of_zeros_and_biases_have_the_ratio_1)
{
    static const struct sgp_tensor_end pair[] = {{1, true}, {2, false}};
    static const struct sgp_tensors tensors = {pair, 2};
    struct sgp_optimizer_settings settings = settings_of(SGP_OPTIMIZER_LARS);
    struct sgp_optimizer optimizer;
    cr_assert(zero(int, sgp_optimizer_init(&optimizer, &settings, 2, &tensors)));
    float x[2] = {0, 5}; /* a tensor of zeros, and a bias that does not decay */
    step_once(&optimizer, x, 2, 1);
    cr_assert(epsilon_eq(flt, x[0], -2e-3f, 1e-9f));
    cr_assert(epsilon_eq(flt, x[1], 5 - 2e-3f, 1e-6f));
    sgp_optimizer_finish(&optimizer);

    settings.kind = SGP_OPTIMIZER_LAMB;
    cr_assert(zero(int, sgp_optimizer_init(&optimizer, &settings, 2, &tensors)));
    float y[2] = {0, 5};
    step_once(&optimizer, y, 2, 0.5);
    cr_assert(epsilon_eq(flt, y[0], -0.5f, 1e-6f));
    cr_assert(epsilon_eq(flt, y[1], 4.5f, 1e-6f));
    sgp_optimizer_finish(&optimizer);

    cr_assert(zero(int, sgp_optimizer_init(&optimizer, &settings, 2, &tensors)));
    float z[2] = {8, 5}; /* the step is the rate times the length of z */
    step_once(&optimizer, z, 2, 0.5);
    cr_assert(epsilon_eq(flt, z[0], 4, 1e-5f));
    cr_assert(epsilon_eq(flt, z[1], 4.5f, 1e-6f));
    sgp_optimizer_finish(&optimizer);
}

Test(optimizer, weight_decay_reaches_biases_or_spares_them)
{
    for (size_t k = 0; k < KINDS; k++) {
        struct sgp_optimizer_settings settings = settings_of(kinds[k]);
        settings.weight_decay = 0.5;
        struct sgp_optimizer optimizer;
        static const struct sgp_tensor_end pair[] = {{1, true}, {2, false}};
        cr_assert(zero(
            int, sgp_optimizer_init(&optimizer, &settings, 2, &(struct sgp_tensors){pair, 2})));
        float x[2] = {1, 1};
        step_once(&optimizer, x, 0, 0.1);
        bool spares = kinds[k] == SGP_OPTIMIZER_ADAMW || kinds[k] == SGP_OPTIMIZER_LARS ||
                      kinds[k] == SGP_OPTIMIZER_LAMB;
        const char *name = sgp_optimizer_name(kinds[k]);
        cr_assert(lt(flt, x[0], 1), "%s", name);
        cr_assert(spares == (x[1] == 1.0f) && x[1] <= 1.0f, "%s", name);
        sgp_optimizer_finish(&optimizer);
    }
}

/* Of zero gradients from the start nothing moves, nor becomes a NaN; of those that come later, for so long that
 * the moments vanish, nothing becomes a NaN either; and with rate 0 nothing moves. */
Test(optimizer, gradients_of_zero)
{
    for (size_t k = 0; k < KINDS; k++)
        for (int first = 0; first < 2; first++) {
            struct sgp_optimizer_settings settings = settings_of(kinds[k]);
            settings.weight_decay = 0;
            struct sgp_optimizer optimizer;
            cr_assert(zero(int, sgp_optimizer_init(&optimizer, &settings, 2, &one_tensor)));
            float x[2] = {1, -3e4f}, from[2];
            if (first)
                step_once(&optimizer, x, FLT_MIN, 0.01);
            memcpy(from, x, sizeof x);
            step_once(&optimizer, x, 1, 0);
            cr_assert(zero(int, memcmp(from, x, sizeof x)));
            if (first == 0)
                sgp_optimizer_resume(&optimizer, &(struct sgp_trainer_state){0});
            for (int i = 0; i < 2000; i++)
                step_once(&optimizer, x, 0, 1e-3);
            const char *name = sgp_optimizer_name(kinds[k]);
            cr_assert(
                isfinite(x[0]) && isfinite(x[1]), "%s: %g %g", name, (double)x[0], (double)x[1]);
            cr_assert(first || memcmp(from, x, sizeof x) == 0, "%s", name);
            sgp_optimizer_finish(&optimizer);
        }
}

/* Norms and factors that no float32 holds. */
Test(optimizer, vanishing_and_huge_gradients_leave_numbers)
{
    const float sizes[] = {FLT_TRUE_MIN, 1e-40f, 1e-30f, 1e15f};
    for (size_t k = 0; k < KINDS; k++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            struct sgp_optimizer_settings settings = settings_of(kinds[k]);
            settings.weight_decay = 0;
            settings.clip_norm = 1e10;
            struct sgp_optimizer optimizer;
            cr_assert(zero(int, sgp_optimizer_init(&optimizer, &settings, 2, &one_tensor)));
            float x[2] = {1e3f, 1e3f}, gradients[2] = {sizes[s], 0};
            sgp_optimizer_step(&optimizer, x, gradients, NULL, 1, 0.1);
            cr_assert(isfinite(x[0]) && isfinite(x[1]), "%s, %g: %g %g",
                sgp_optimizer_name(kinds[k]), (double)sizes[s], (double)x[0], (double)x[1]);
            sgp_optimizer_finish(&optimizer);
        }
}

/* ---- settings ---- */

Test(optimizer, sgd_needs_no_velocity)
{
    const struct sgp_optimizer_settings settings = {.kind = SGP_OPTIMIZER_SGD};
    struct sgp_optimizer optimizer;
    cr_assert(eq(int, sgp_optimizer_init(&optimizer, &settings, 3, &one_tensor), 0));
    cr_assert(eq(ptr, optimizer.vectors[0], NULL));
    sgp_optimizer_finish(&optimizer);
    cr_assert(eq(int, sgp_optimizer_init(&optimizer, &settings, 0, &one_tensor), SGP_E_LIMIT));
    cr_assert(
        eq(int, sgp_optimizer_init(&optimizer, &settings, SGP_PARAMETERS_MAX + 1, &one_tensor),
            SGP_E_LIMIT));
}

Test(optimizer, words_are_in_the_order_of_the_kinds)
{
    char words[128] = "";
    for (size_t k = 0; k < KINDS; k++) {
        cr_assert(eq(sz, (size_t)kinds[k], k + 1));
        strcat(words, k > 0 ? "|" : "");
        strcat(words, sgp_optimizer_name(kinds[k]));
    }
    cr_assert(eq(str, words, (char *)SGP_OPTIMIZER_WORDS));
}

static void refuse(struct sgp_optimizer_settings settings, const char *text)
{
    struct sgp_error error = {0};
    cr_assert(eq(int, sgp_optimizer_check(&settings, &error), SGP_E_CONFIG));
    cr_assert(eq(str, error.text, (char *)text));
}

Test(optimizer, refuses_settings_out_of_range)
{
    refuse((struct sgp_optimizer_settings){.kind = SGP_OPTIMIZER_NESTEROV, .momentum = 1},
        "a momentum of 1 is not at least 0 and below 1; 0.9 is usual");
    refuse(
        (struct sgp_optimizer_settings){.kind = SGP_OPTIMIZER_NESTEROV, .weight_decay = INFINITY},
        "a weight decay of inf is not finite and at least 0; 1e-4 is usual");
    refuse((struct sgp_optimizer_settings){.kind = SGP_OPTIMIZER_ADAM, .beta1 = -0.5},
        "a beta1 of -0.5 is not at least 0 and below 1; 0.9 is usual");
    refuse((struct sgp_optimizer_settings){.kind = SGP_OPTIMIZER_LAMB, .beta2 = 1},
        "a beta2 of 1 is not at least 0 and below 1; 0.999 is usual");
    refuse((struct sgp_optimizer_settings){.kind = SGP_OPTIMIZER_RMSPROP, .alpha = 1},
        "an alpha of 1 is not at least 0 and below 1; 0.99 is usual");
    refuse((struct sgp_optimizer_settings){.kind = SGP_OPTIMIZER_ADAMW, .epsilon = 0},
        "an epsilon of 0 is not from 1e-30 to 1; 1e-8 is usual");
    refuse((struct sgp_optimizer_settings){.kind = SGP_OPTIMIZER_LARS, .trust = 0},
        "a trust of 0 is not from 1e-09 to 1000; 1e-3 is usual");
    refuse((struct sgp_optimizer_settings){.kind = SGP_OPTIMIZER_LARS, .trust = 1},
        "a noise_fraction of 0 is not from 1e-06 to 1; 1 / nodes is usual");
    refuse((struct sgp_optimizer_settings){.kind = SGP_OPTIMIZER_SGD, .clip_norm = -1},
        "a clip_norm of -1 is not from 1e-30 to 1e+30; 0, none, is usual");
    refuse((struct sgp_optimizer_settings){.kind = SGP_OPTIMIZER_SGD, .clip_value = NAN},
        "a clip_value of nan is not from 1e-30 to 1e+30; 0, none, is usual");
    refuse((struct sgp_optimizer_settings){0}, "unknown optimizer kind 0");
    refuse((struct sgp_optimizer_settings){.kind = SGP_OPTIMIZER_MOST + 1},
        "unknown optimizer kind 9");
}

/* A rule does not look at settings that it has no use for. */
Test(optimizer, accepts_what_a_rule_does_not_use)
{
    for (size_t k = 0; k < 3; k++)
        cr_assert(zero(
            int, sgp_optimizer_check(&(struct sgp_optimizer_settings){.kind = kinds[k]}, NULL)));
    const struct sgp_optimizer_settings lars = {
        .kind = SGP_OPTIMIZER_LARS, .trust = 1, .noise_fraction = 1};
    cr_assert(zero(int, sgp_optimizer_check(&lars, NULL)));
    cr_assert(eq(u32, sgp_optimizer_uses(SGP_OPTIMIZER_LARS),
        SGP_USES_MOMENTUM | SGP_USES_TRUST | SGP_USES_NOISE));
}

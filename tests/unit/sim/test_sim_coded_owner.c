/* SPDX-License-Identifier: Apache-2.0 */
/* Coded updates in the simulator, which checks that nothing of an update is lost: owners and
 * workers against SGD with error feedback in a few loops (Karimireddy et al. 2019, Algorithm 2),
 * with choosers of their own. */
#include "block_plain.h"
#include "sim/world.h"

#include "sgp/generate.h"
#include "sgp/method.h"
#include "sgp/outer.h"
#include "sgp/quadratic.h"
#include "sgp/random.h"
#include "sgp/sim.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <errno.h>
#include <stdlib.h>

#define WORKERS_MAX 3u
#define VALUES 603u /* neither blocks nor parts are whole */
#define STEPS 200u
#define ETA 0.02f

static uint32_t owners, workers;
static float centres[WORKERS_MAX][VALUES], starts[VALUES];

static void make_numbers(void)
{
    for (uint32_t i = 0; i < WORKERS_MAX; i++)
        plain_fill(centres[i], VALUES, i + 1, 2);
    plain_fill(starts, VALUES, 9, 5);
}

/* ---- in loops ---- */

struct method {
    const char *word;
    enum { INTEGERS, CHANCE, SIGN, LARGEST, ADAPTIVE } kind;
    uint32_t bits;
    double part;
};

struct magnitude {
    float value;
    uint32_t place;
};

static int compare(const void *a, const void *b)
{
    const struct magnitude *one = a, *other = b;
    if (one->value != other->value)
        return one->value > other->value ? -1 : 1;
    return one->place < other->place ? -1 : 1;
}

/* The chosen values are as many as `taken` says, as signs and their mean magnitude. */
static void make_signs(float *s, const float *u, const bool *taken, uint32_t count)
{
    double lanes[8] = {0};
    uint32_t number = 0;
    for (uint32_t i = 0; i < count; i++)
        if (taken[i] && u[i] != 0) {
            lanes[i % 8] += fabs((double)u[i]);
            number++;
        }
    double sum = ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) +
                 ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
    float scale = number > 0 ? plain_up((float)(sum / number)) : 0;
    for (uint32_t i = 0; i < count; i++)
        s[i] = !taken[i] || u[i] == 0 ? 0 : u[i] < 0 ? -scale : scale;
}

static void take_largest(bool *taken, const float *u, uint32_t count, double part)
{
    struct magnitude order[SGP_BLOCK_VALUES];
    uint32_t number = (uint32_t)floor(part * count + 0.5);
    for (uint32_t i = 0; i < count; i++)
        order[i] = (struct magnitude){fabsf(u[i]), i};
    qsort(order, count, sizeof *order, compare);
    for (uint32_t i = 0; i < (number > 0 ? number : 1); i++)
        taken[order[i].place] = true;
}

static void choose(const struct method *method, float *s, const float *u, const float *d,
    uint32_t count, uint64_t key, uint64_t first)
{
    bool taken[SGP_BLOCK_VALUES] = {false};
    float most = 0;
    for (uint32_t i = 0; i < count; i++)
        most = fabsf(u[i]) > most ? fabsf(u[i]) : most;
    if (method->kind == LARGEST)
        take_largest(taken, u, count, method->part);
    for (uint32_t i = 0; i < count && method->kind == ADAPTIVE; i++)
        taken[i] = fabsf(u[i] + d[i]) >= most;
    if (method->kind == LARGEST || method->kind == ADAPTIVE) {
        make_signs(s, u, taken, count);
        return;
    }
    float scale = plain_scale(u, count, method->bits);
    float inverse = scale > 0 ? 1 / scale : 0;
    int levels = (1 << (method->bits - 1)) - 1;
    for (uint32_t i = 0; i < count; i++) {
        float level = fabsf(u[i]) * inverse;
        int k = plain_nearest(u[i] * inverse);
        if (method->kind == SIGN)
            k = u[i] < 0 ? -1 : 1;
        if (method->kind == CHANCE) {
            double chance = (double)(sgp_random_at(key, first + i) >> 40) / (1 << 24);
            k = (int)level + ((double)level - floor((double)level) > chance);
            k = fabsf(u[i]) == most ? levels : k;
            k = u[i] < 0 ? -k : k;
        }
        s[i] = (float)k * scale;
    }
}

/* All values are chosen; each of so many parts begins a block. */
static void choose_parts(const struct method *method, float *s, const float *u, const float *d,
    uint32_t parts, uint64_t key)
{
    for (uint32_t p = 0, first = 0; p < parts; p++) {
        uint32_t end = first + VALUES / parts + (p < VALUES % parts);
        for (uint32_t count; first < end; first += count) {
            count = end - first < SGP_BLOCK_VALUES ? end - first : SGP_BLOCK_VALUES;
            choose(method, s + first, u + first, d + first, count, key, first);
        }
    }
}

/* One step of an owner: the mean of what its workers give, who train from the copy `c`. */
static void step(const struct method *method, const float *c, float *z,
    float rests[WORKERS_MAX][VALUES], uint32_t local_steps, uint32_t parts, uint32_t round)
{
    static float s[WORKERS_MAX][VALUES];
    for (uint32_t w = 0; w < workers; w++) {
        float x[VALUES], u[VALUES], d[VALUES];
        uint64_t key = sgp_random_at(sgp_random_at(5, parts + w), round);
        memcpy(x, c, sizeof x);
        for (uint32_t i = 0; i < VALUES; i++) {
            for (uint32_t h = 0; h < local_steps; h++)
                x[i] -= ETA * (x[i] - centres[w][i]);
            d[i] = x[i] - c[i];
            u[i] = d[i] + rests[w][i];
        }
        choose_parts(method, s[w], u, d, parts, key);
        for (uint32_t i = 0; i < VALUES; i++)
            rests[w][i] = method->kind == CHANCE ? 0 : u[i] - s[w][i];
    }
    for (uint32_t w = 0; w < workers; w++)
        for (uint32_t i = 0; i < VALUES; i++)
            z[i] += (float)(1.0 / workers) * s[w][i];
}

/* The copy changes by what is chosen of z - c; without `copies` and in the end it is z. */
static void change(const struct method *copies, float *c, const float *z, uint32_t parts, bool last)
{
    float u[VALUES], q[VALUES];
    for (uint32_t i = 0; i < VALUES; i++)
        u[i] = z[i] - c[i];
    if (copies != NULL && !last)
        choose_parts(copies, q, u, u, parts, 0);
    for (uint32_t i = 0; i < VALUES; i++)
        c[i] = copies != NULL && !last ? c[i] + q[i] : z[i];
}

/* SlowMo of the owner: v = beta v + (b - z), z = b - alpha v. */
static struct sgp_outer_settings outer;

static void step_out(float *b, float *v, float *z)
{
    for (uint32_t i = 0; i < VALUES; i++) {
        double speed = outer.momentum * (double)v[i] + ((double)b[i] - (double)z[i]);
        b[i] = z[i] = (float)((double)b[i] - outer.learning_rate * speed);
        v[i] = (float)speed;
    }
}

static void train_with(const struct method *method, const struct method *copies,
    uint32_t local_steps, uint32_t parts, float *z)
{
    static float rests[WORKERS_MAX][VALUES], c[VALUES], b[VALUES], v[VALUES];
    memset(rests, 0, sizeof rests);
    memset(v, 0, sizeof v);
    memcpy(b, starts, sizeof starts);
    memcpy(z, starts, sizeof starts);
    memcpy(c, starts, sizeof starts);
    for (uint32_t round = 0; round < STEPS; round++) {
        step(method, c, z, rests, local_steps, parts, round);
        if (outer.kind != SGP_OUTER_NONE)
            step_out(b, v, z);
        change(copies, c, z, parts, round + 1 == STEPS);
    }
}

static void train(const struct method *method, uint32_t local_steps, uint32_t parts, float *z)
{
    train_with(method, NULL, local_steps, parts, z);
}

/* ---- in a fleet ---- */

static int make_trainer(void *context, uint32_t node, struct sgp_trainer **ret_trainer)
{
    (void)context;
    uint32_t worker = node < owners ? 0 : node - owners;
    int code = sgp_quadratic_create(
        VALUES, centres[worker], starts, node < owners ? 0 : (double)ETA, ret_trainer);
    return code == 0 && node < owners ? sgp_quadratic_begin_outer(*ret_trainer, &outer) : code;
}

struct coded {
    struct sgp_topology *topology;
    struct sgp_sim_options options;
    struct sgp_sim *sim;
};

static void begin_with(
    struct coded *coded, const char *word, uint32_t local_steps, uint32_t parts, uint32_t number)
{
    owners = parts;
    workers = number;
    struct sgp_error error = {0};
    struct sgp_generate_options family = {.family = "owner",
        .nodes = parts + workers,
        .owners = parts,
        .outer = outer.kind != SGP_OUTER_NONE};
    cr_assert(zero(int, sgp_generate(&family, &error, &coded->topology)), "%s", error.text);
    make_numbers();
    sgp_sim_options_init(&coded->options);
    coded->options.method = sgp_method_find("backup");
    coded->options.seed = 5;
    coded->options.dimension = VALUES;
    coded->options.rounds = STEPS;
    coded->options.local_steps = local_steps;
    coded->options.trainer = make_trainer;
    cr_assert(
        zero(int, sgp_chooser_parse(word, SGP_CHOOSER_WORDS, &error, &coded->options.chooser)));
}

static void begin(struct coded *coded, const char *word, uint32_t local_steps, uint32_t parts)
{
    begin_with(coded, word, local_steps, parts, WORKERS_MAX);
}

static struct sgp_sim_summary run(struct coded *coded)
{
    struct sgp_error error = {0};
    struct sgp_sim_summary summary;
    int code = sgp_sim_create(coded->topology, &coded->options, &error, &coded->sim);
    cr_assert(zero(int, code), "%s", error.text);
    cr_assert(zero(int, sgp_sim_run(coded->sim, SGP_TIME_NEVER, &error)), "%s", error.text);
    sgp_sim_summary(coded->sim, &summary);
    cr_assert(eq(u32, summary.finished, owners + workers));
    return summary;
}

static void finish(struct coded *coded)
{
    sgp_sim_destroy(coded->sim);
    sgp_topology_destroy(coded->topology);
}

/* All workers end with that. */
static void expect_model(const struct coded *coded, const float *z, const char *word)
{
    for (uint32_t w = 0; w < workers; w++) {
        float estimate[VALUES];
        sgp_sim_estimate(coded->sim, owners + w, estimate);
        for (uint32_t i = 0; i < VALUES; i++)
            cr_assert(
                epsilon_eq(dbl, (double)estimate[i], (double)z[i], 1e-6), "%s: z[%u]", word, i);
    }
}

static const struct method methods[] = {{"int8", INTEGERS, 8, 0}, {"int4", INTEGERS, 4, 0},
    {"int2", INTEGERS, 2, 0}, {"sign", SIGN, 1, 0}, {"qsgd:7", CHANCE, 4, 0},
    {"qsgd:127", CHANCE, 8, 0}, {"terngrad", CHANCE, 2, 0}, {"top:0.1", LARGEST, 1, 0.1},
    {"dgc:0.01", LARGEST, 1, 0.01}, {"adacomp", ADAPTIVE, 1, 0}};
#define METHODS (sizeof methods / sizeof *methods)

/* ---- as in loops ---- */

Test(coded_owner, an_owner_takes_steps_of_sgd_with_error_feedback)
{
    for (uint32_t m = 0; m < 2 * METHODS; m++) {
        const struct method *method = &methods[m / 2];
        struct coded coded = {0};
        float z[VALUES];
        begin(&coded, method->word, m % 2 ? 8 : 1, 1);
        (void)run(&coded);
        train(method, m % 2 ? 8 : 1, 1, z);
        expect_model(&coded, z, method->word);
        finish(&coded);
    }
}

Test(coded_owner, each_part_is_chosen_by_itself)
{
    for (uint32_t m = 0; m < METHODS; m++)
        for (uint32_t parts = 2; parts < 4; parts++) {
            struct coded coded = {0};
            float z[VALUES];
            begin(&coded, methods[m].word, 1, parts);
            (void)run(&coded);
            train(&methods[m], 1, parts, z);
            expect_model(&coded, z, methods[m].word);
            finish(&coded);
        }
}

/* Also what the owner hands out is coded, but for the first copy and the last. */
Test(coded_owner, copies_follow_the_owner_by_coded_changes)
{
    static const struct method copies[] = {
        {"int8", INTEGERS, 8, 0}, {"int4", INTEGERS, 4, 0}, {"top:0.1", LARGEST, 1, 0.1}};
    for (uint32_t m = 0; m < 3 * METHODS; m++) {
        const struct method *method = &methods[m / 3], *copy = &copies[m % 3];
        uint32_t parts = 1 + m % 2, steps = m % 5 == 0 ? 8 : 1;
        struct coded coded = {0};
        float z[VALUES];
        begin(&coded, method->word, steps, parts);
        cr_assert(zero(int,
            sgp_chooser_parse(copy->word, SGP_CHOOSER_COPY_WORDS, NULL, &coded.options.copies)));
        struct sgp_sim_summary summary = run(&coded);
        cr_assert(eq(u64, summary.changes, parts * (STEPS - 1)));
        train_with(method, copy, steps, parts, z);
        expect_model(&coded, z, method->word);
        finish(&coded);
    }
}

/* The owner's momentum acts on the mean of what its workers gave, and copies follow that. */
Test(coded_owner, an_owner_takes_outer_steps)
{
    static const struct method int4 = {"int4", INTEGERS, 4, 0};
    outer = (struct sgp_outer_settings){SGP_OUTER_SLOWMO, 0.7, 0.5};
    for (uint32_t m = 0; m < 4; m++) {
        struct coded coded = {0};
        float z[VALUES];
        begin(&coded, "int4", m / 2 ? 8 : 1, 1 + m % 2);
        cr_assert(zero(
            int, sgp_chooser_parse("int4", SGP_CHOOSER_COPY_WORDS, NULL, &coded.options.copies)));
        (void)run(&coded);
        train_with(&int4, &int4, m / 2 ? 8 : 1, 1 + m % 2, z);
        expect_model(&coded, z, "with an outer step");
        finish(&coded);
    }
}

/* Error feedback brings what was left out: with one value in a hundred a step, too, the model comes
 * near the minimum. */
Test(coded_owner, what_is_left_out_comes_later)
{
    for (uint32_t m = 0; m < METHODS; m++) {
        struct coded coded = {0};
        double before = 0, apart = 0;
        if (methods[m].kind == CHANCE) /* leaves nothing out on average */
            continue;
        begin(&coded, methods[m].word, 1, 1);
        coded.options.rounds = 5 * STEPS;
        (void)run(&coded);
        float estimate[VALUES];
        sgp_sim_estimate(coded.sim, 1, estimate);
        for (uint32_t i = 0; i < VALUES; i++) {
            double centre = 0;
            for (uint32_t w = 0; w < workers; w++)
                centre += (double)centres[w][i] / workers;
            before += pow((double)starts[i] - centre, 2);
            apart += pow((double)estimate[i] - centre, 2);
        }
        cr_assert(lt(dbl, apart, 0.1 * before), "%s", methods[m].word);
        finish(&coded);
    }
}

/* ---- bytes and faults ---- */

Test(coded_owner, updates_take_fewer_bytes_and_copies_do_not)
{
    uint64_t plain = 0;
    for (uint32_t m = 0; m < 3; m++) {
        static const char *const words[] = {"none", "int4", "sign"};
        struct coded coded = {0};
        begin(&coded, words[m], 1, 1);
        coded.options.bandwidth = 1e6;
        struct sgp_sim_summary summary = run(&coded);
        plain = m == 0 ? (uint64_t)summary.time : plain;
        if (m > 0)
            cr_assert(lt(u64, (uint64_t)summary.time, plain), "%s", words[m]);
        finish(&coded);
    }
}

/* The only worker pauses, writes down what it has left out, is killed and started again: nobody can
 * tell. */
Test(coded_owner, what_is_left_out_survives_a_checkpoint)
{
    static const char *const words[] = {"int4", "sign", "top:0.1"};
    for (uint32_t m = 0; m < 3; m++) {
        struct coded coded = {0};
        float z[VALUES];
        struct sgp_error error = {0};
        struct sgp_sim_summary summary;
        struct sgp_sim_crash crash = {
            .node = 1, .at = 900 * SGP_MILLISECOND, .back = 1500 * SGP_MILLISECOND};
        const struct method *method = methods;
        while (strcmp(method->word, words[m]) != 0)
            method++;
        begin_with(&coded, words[m], 1, 1, 1);
        coded.options.crashes = &crash;
        coded.options.crash_count = 1;
        coded.options.checkpoint_ns = 100 * SGP_MILLISECOND;
        cr_assert(zero(int, sgp_sim_create(coded.topology, &coded.options, &error, &coded.sim)));
        cr_assert(zero(int, sgp_sim_command(coded.sim, 600 * SGP_MILLISECOND, 1, SGP_EVENT_PAUSE)));
        cr_assert(zero(int, sgp_sim_run(coded.sim, SGP_TIME_NEVER, &error)), "%s", error.text);
        sgp_sim_summary(coded.sim, &summary);
        cr_assert(eq(u64, summary.crashes, 1));
        train(method, 1, 1, z);
        expect_model(&coded, z, words[m]);
        finish(&coded);
    }
}

Test(coded_owner, choosers_of_updates_are_for_files_with_owners)
{
    struct sgp_error error = {0};
    struct sgp_topology *topology;
    struct sgp_sim *sim;
    struct sgp_sim_options options;
    struct sgp_generate_options family = {.family = "one-peer-exponential", .nodes = 4};
    cr_assert(zero(int, sgp_generate(&family, &error, &topology)), "%s", error.text);
    sgp_sim_options_init(&options);
    options.trainer = make_trainer;
    cr_assert(zero(int, sgp_chooser_parse("top:0.1", SGP_CHOOSER_WORDS, &error, &options.chooser)));
    cr_assert(eq(int, sgp_sim_create(topology, &options, &error, &sim), -EINVAL));
    cr_assert(eq(str, error.text, "compression top:0.1 is for files with owners"));
    sgp_topology_destroy(topology);
}

/* ---- copies and faults ---- */

static void begin_copies(struct coded *coded, const char *word, uint32_t parts)
{
    begin(coded, "int8", 1, parts);
    cr_assert(zero(int, sgp_chooser_parse(word, SGP_CHOOSER_WORDS, NULL, &coded->options.copies)));
}

static void expect_one_model(const struct coded *coded)
{
    float first[VALUES], other[VALUES];
    for (uint32_t i = 0; i < workers + (owners == 1); i++) {
        uint32_t node = i < workers ? owners + i : 0;
        sgp_sim_estimate(coded->sim, node, i == 0 ? first : other);
        for (uint32_t c = 0; i > 0 && c < VALUES; c++)
            cr_assert(eq(flt, other[c], first[c]), "node %u: x[%u]", node, c);
    }
}

/* A worker asks for an early stop: the last copy is a coded one, and the owner ends with it, too. */
Test(coded_owner, after_an_early_stop_all_end_with_one_copy)
{
    static const char *const words[] = {"int4", "top:0.1"};
    for (uint32_t m = 0; m < 6; m++) {
        struct coded coded = {0};
        struct sgp_error error = {0};
        struct sgp_sim_summary summary;
        begin_copies(&coded, words[m % 2], 1 + m % 2);
        cr_assert(zero(int, sgp_sim_create(coded.topology, &coded.options, &error, &coded.sim)));
        sgp_time at = (500 + 37 * m) * SGP_MILLISECOND;
        cr_assert(zero(int, sgp_sim_command(coded.sim, at, owners + m % 3, SGP_EVENT_ENOUGH)));
        cr_assert(zero(int, sgp_sim_run(coded.sim, SGP_TIME_NEVER, &error)), "%s", error.text);
        sgp_sim_summary(coded.sim, &summary);
        cr_assert(eq(u32, summary.finished, owners + workers));
        cr_assert(lt(u64, summary.changes, (uint64_t)owners * (STEPS - 1)), "it was early");
        cr_assert(gt(u64, summary.changes, 0));
        expect_one_model(&coded);
        finish(&coded);
    }
}

/* A worker whose connection broke, or that was killed, has another copy: it gets the whole, and all end alike. So does everybody
 * once the owner was killed. */
Test(coded_owner, whoever_lacks_the_copy_before_gets_the_whole)
{
    for (uint32_t m = 0; m < 3; m++) {
        struct coded coded = {0};
        struct sgp_sim_crash crash = {
            .node = m == 0 ? 0 : 1 + m, .at = 700 * SGP_MILLISECOND, .back = 900 * SGP_MILLISECOND};
        begin_copies(&coded, m == 1 ? "top:0.1" : "int4", 1);
        coded.options.crashes = &crash;
        coded.options.crash_count = m < 2;
        coded.options.loss = m == 2 ? 0.02 : 0;
        coded.options.checkpoint_ns = 100 * SGP_MILLISECOND;
        struct sgp_sim_summary summary = run(&coded);
        cr_assert(m < 2 ? summary.crashes == 1 : summary.resets > 5);
        cr_assert(lt(u64, summary.changes, STEPS));
        expect_one_model(&coded);
        finish(&coded);
    }
}

/* ---- copies to others than the simulator's own ---- */

static uint32_t altered;

/* The last worker says that it decodes nothing but plain payloads. */
static void send_without_codings(
    void *context, struct sgp_link link, const struct sgp_message *message, uint32_t snapshot)
{
    struct sgp_sim_host *host = context;
    struct sgp_message copy = *message;
    bool last = host->index + 1 == host->sim->host_count;
    if (message->type == SGP_WELCOME && last)
        copy.welcome.codings = 0;
    if (message->type == SGP_ESTIMATE && copy.estimate.coding != SGP_CODING_NONE)
        altered += link.peer == workers;
    sgp_sim_ops.send(context, link, &copy, snapshot);
}

/* In every tenth change the owner names another copy than the one that it is a change of. */
static void send_stale(
    void *context, struct sgp_link link, const struct sgp_message *message, uint32_t snapshot)
{
    struct sgp_message copy = *message;
    bool change = message->type == SGP_ESTIMATE && message->estimate.coding != SGP_CODING_NONE;
    if (change && ++altered % 10 == 0)
        copy.estimate.since -= altered % 20 == 0 ? 1 : -1;
    sgp_sim_ops.send(context, link, &copy, snapshot);
}

static void run_altered(struct coded *coded,
    void (*send)(void *, struct sgp_link, const struct sgp_message *, uint32_t))
{
    static struct sgp_driver_ops ops;
    struct sgp_error error = {0};
    ops = sgp_sim_ops;
    ops.send = send;
    altered = 0;
    begin_copies(coded, "int4", 1);
    cr_assert(zero(int, sgp_sim_create(coded->topology, &coded->options, &error, &coded->sim)));
    for (uint32_t i = 0; i < coded->sim->host_count; i++)
        coded->sim->hosts[i].driver.ops = &ops;
    cr_assert(zero(int, sgp_sim_run(coded->sim, SGP_TIME_NEVER, &error)), "%s", error.text);
    struct sgp_sim_summary summary;
    sgp_sim_summary(coded->sim, &summary);
    cr_assert(eq(u32, summary.finished, owners + workers));
    expect_one_model(coded);
}

Test(coded_owner, a_worker_that_reads_no_blocks_gets_whole_copies)
{
    struct coded coded = {0};
    run_altered(&coded, send_without_codings);
    cr_assert(zero(u32, altered));
    struct sgp_sim_summary summary;
    sgp_sim_summary(coded.sim, &summary);
    cr_assert(eq(u64, summary.changes, STEPS - 1), "the others get changes");
    finish(&coded);
}

Test(coded_owner, a_change_of_another_copy_is_not_taken_and_the_whole_is_asked_for)
{
    struct coded coded = {0};
    run_altered(&coded, send_stale);
    cr_assert(gt(u32, altered, 300));
    finish(&coded);
}

/* Changes take fewer bytes, so on a thin line the fleet is done sooner. */
Test(coded_owner, copies_take_fewer_bytes)
{
    sgp_time plain = 0;
    for (uint32_t m = 0; m < 3; m++) {
        static const char *const words[] = {"none", "int4", "top:0.1"};
        struct coded coded = {0};
        begin_copies(&coded, words[m], 1);
        coded.options.bandwidth = 1e6;
        struct sgp_sim_summary summary = run(&coded);
        plain = m == 0 ? summary.time : plain;
        cr_assert(m == 0 || summary.time < plain, "%s", words[m]);
        finish(&coded);
    }
}

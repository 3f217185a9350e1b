/* SPDX-License-Identifier: Apache-2.0 */
/* The guard on received shares: its bound, the files that suit it, and what a performer makes of guarded
 * shares, against numbers of the reference implementation and against the rule written once more. */
#include "sgp/generate.h"
#include "sgp/guard.h"
#include "sgp/kernels.h"
#include "sgp/perform.h"
#include "sgp/quadratic.h"
#include "sgp/random.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the bound ---- */

static struct sgp_guard guard;

static void hear(uint32_t peer, const double *distances, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        sgp_guard_hear(&guard, peer, distances[i]);
}

Test(guard, a_bound_is_the_median_of_what_each_neighbour_said_last)
{
    sgp_guard_begin(&guard, 2);
    hear(4, (double[]){100, 100, 5, 1, 3, 2, 4}, 7); /* of which five count */
    hear(7, (double[]){7, 9}, 2);
    hear(1, (double[]){1}, 1);
    cr_assert(epsilon_eq(dbl, sgp_guard_bound(&guard), 2 * 3.0, 1e-12));
    hear(2, (double[]){4, 4, 4}, 3);
    cr_assert(epsilon_eq(dbl, sgp_guard_bound(&guard), 2 * 3.5, 1e-12));
    sgp_guard_begin(&guard, 1);
    cr_assert(zero(dbl, sgp_guard_bound(&guard)));
}

Test(guard, of_two_words_the_lesser_counts_and_of_one_none)
{
    sgp_guard_begin(&guard, 1);
    cr_assert(zero(dbl, sgp_guard_bound(&guard)));
    hear(4, (double[]){3}, 1);
    cr_assert(zero(dbl, sgp_guard_bound(&guard)));
    hear(5, (double[]){1e9}, 1);
    cr_assert(epsilon_eq(dbl, sgp_guard_bound(&guard), 3, 1e-12));
}

Test(guard, a_liar_of_three_does_not_set_the_bound)
{
    sgp_guard_begin(&guard, 1);
    hear(0, (double[]){1, 1}, 2);
    hear(1, (double[]){2, 2}, 2);
    hear(2, (double[]){INFINITY, NAN, 1e200}, 3);
    cr_assert(epsilon_eq(dbl, sgp_guard_bound(&guard), 2, 1e-12));
}

Test(guard, a_share_is_taken_as_far_as_the_bound)
{
    cr_assert(epsilon_eq(dbl, sgp_guard_part(2, 2), 1, 0));
    cr_assert(epsilon_eq(dbl, sgp_guard_part(2, 8), 0.25, 0));
    cr_assert(zero(dbl, sgp_guard_part(0, 1)));
    cr_assert(zero(dbl, sgp_guard_part(2, INFINITY)));
    cr_assert(zero(dbl, sgp_guard_part(2, NAN)));
    cr_assert(epsilon_eq(dbl, sgp_guard_part(0, 0), 1, 0));
}

/* ---- estimates ---- */

Test(guard, of_three_estimates_the_one_nearest_to_the_others_is_taken)
{
    double apart[3][3] = {{0, 9, 8}, {9, 0, 2}, {8, 2, 0}};
    cr_assert(eq(u32, sgp_guard_choose(3, apart, NULL), 2));
    cr_assert(eq(u32, sgp_guard_choose(3, apart, (double[]){0, 5, 5}), 2), "three judge alone");
    double infinite[3][3] = {
        {0, INFINITY, NAN}, {INFINITY, 0, 2}, {NAN, 2, 0}}; /* 1 and 2 lose against one another */
    cr_assert(ne(u32, sgp_guard_choose(3, infinite, NULL), 0));
}

Test(guard, of_two_estimates_the_own_model_judges)
{
    double apart[3][3] = {{0, 9, 0}, {9, 0, 0}};
    cr_assert(eq(u32, sgp_guard_choose(2, apart, (double[]){7, 4}), 1));
    cr_assert(eq(u32, sgp_guard_choose(2, apart, (double[]){INFINITY, 4}), 1));
    cr_assert(eq(u32, sgp_guard_choose(2, apart, NULL), 0));
    cr_assert(eq(u32, sgp_guard_choose(1, apart, (double[]){7}), 0));
}

/* ---- shares ---- */

Test(guard, a_source_beyond_the_room_is_judged_and_not_remembered)
{
    sgp_guard_begin(&guard, 1);
    for (uint32_t i = 0; i < SGP_GUARD_SOURCES_MOST + 5; i++)
        sgp_guard_hear(&guard, i, i < SGP_GUARD_SOURCES_MOST ? 1 : 1e9);
    cr_assert(eq(u32, guard.count, SGP_GUARD_SOURCES_MOST));
    cr_assert(epsilon_eq(dbl, sgp_guard_bound(&guard), 1, 1e-12));
}

/* ---- files ---- */

static int check_family(struct sgp_generate_options options, struct sgp_error *error)
{
    struct sgp_topology *topology;
    cr_assert(zero(int, sgp_generate(&options, NULL, &topology)));
    *error = (struct sgp_error){0};
    int code = sgp_topology_check_guard(topology, 1, error);
    sgp_topology_destroy(topology);
    return code;
}

Test(guard, a_file_gives_each_node_three_sources_and_mixes)
{
    struct sgp_error error;
    struct sgp_generate_options exponential = {.family = "one-peer-exponential", .nodes = 8};
    struct sgp_generate_options ring = {.family = "bidirectional-ring", .nodes = 8};
    struct sgp_generate_options owner = {.family = "owner", .nodes = 8};
    struct sgp_generate_options reduce = {.family = "all-reduce-ring", .nodes = 8};
    cr_assert(zero(int, check_family(exponential, &error)), "%s", error.text);
    cr_assert(eq(int, check_family(ring, &error), SGP_E_TOPOLOGY));
    cr_assert(eq(str, error.text,
        "a guard needs 3 to 1024 nodes that give to n1 in a cycle, so that one that lies is "
        "outvoted; the file has 2; add edges, or take guard = off"));
    cr_assert(eq(int, check_family(owner, &error), SGP_E_TOPOLOGY));
    cr_assert(eq(str, error.text,
        "a guard is for nodes that mix, and here the vector has an owner; take guard = off"));
    cr_assert(eq(int, check_family(reduce, &error), SGP_E_TOPOLOGY));
    cr_assert(eq(str, error.text,
        "a guard would end the exactness of a cycle with fraction 1 or parts; take guard = off, or "
        "a file without them"));
}

/* ---- what a performer makes of it ---- */

static struct sgp_performer performer;

static void begin(uint64_t values)
{
    struct sgp_node_needs needs = {.snapshots = 2, .receives = 2};
    float *zeros = calloc(values, sizeof *zeros);
    struct sgp_trainer *trainer;
    cr_assert(zero(int, sgp_quadratic_create(values, zeros, zeros, 0.5, &trainer)));
    free(zeros);
    performer = (struct sgp_performer){0};
    cr_assert(zero(int, sgp_performer_reserve(&performer, &needs, values, false)));
    cr_assert(zero(int, sgp_performer_guard(&performer, 1)));
    sgp_performer_begin(&performer, trainer);
}

static void finish(void)
{
    performer.trainer->methods->destroy(performer.trainer);
    sgp_performer_finish(&performer);
}

static void set_x(const float *x)
{
    performer.trainer->methods->resume(performer.trainer, &(struct sgp_trainer_state){.x = x});
}

/* The share `payload` times `fraction`, of that weight, to a node of weight `own`. Returns the job. */
static struct sgp_work absorb(
    uint32_t peer, const float *payload, double fraction, double weight, double own, float *ret_x)
{
    uint64_t values = performer.trainer->parameters;
    struct sgp_effect effect = {.type = SGP_EFFECT_ABSORB, .round = 3, .weight = own + weight};
    struct sgp_work work;
    struct sgp_event event;
    effect.absorb.peer = peer;
    effect.absorb.slot = 1;
    effect.absorb.round = 3;
    effect.absorb.fraction = fraction;
    effect.absorb.weight = weight;
    effect.absorb.slice = (struct sgp_slice){0, values};
    memcpy(sgp_perform_receive(&performer, 1), payload, values * sizeof *payload);
    sgp_perform_begin(&performer, &effect, &work);
    cr_assert(not(sgp_perform_run(&performer, &work)));
    cr_assert(sgp_perform_end(&performer, &work, &event));
    performer.trainer->methods->estimate(performer.trainer, 1, ret_x);
    return work;
}

/* Numbers of the reference (numpy): a node of four, nine rounds in each of which one source gives it a
 * share. Source 2 lies: it says the negative of the mean. */
static const struct {
    uint32_t source;
    double x[3], w;      /* before */
    double share[3], dw; /* whole */
    double bound, distance;
    double then[3], then_w;
} rounds[] = {
    {3, {0.0029296875, 0.448242188, -0.41015625}, 0.75, {-0.465820312, 0.3671875, 0.267578125},
        0.375, 1.25, 1.81299476, {-0.317783148, 0.771002842, -0.289353504}, 1.125},
    {2, {-0.158891574, 0.385501421, -0.144676752}, 0.5625, {0.527640835, -0.169600814, 0.242894668},
        0.5625, 1.5, 1.71412891, {0.282987661, 0.285243956, 0.0498025105}, 1.125},
    {1, {0.14149383, 0.142621978, 0.0249012552}, 0.5625,
        {-0.753615646, -0.0866621777, -0.528510497}, 0.5625, 1.5, 1.91477211,
        {-0.418225922, 0.105626637, -0.383730871}, 1.125},
    {3, {-0.313669442, 0.0792199778, -0.287798153}, 0.84375,
        {-0.148072251, 0.141304686, 0.0701692902}, 0.28125, 1.5, 0.73459065,
        {-0.461741692, 0.220524664, -0.217628863}, 1.125},
    {2, {-0.230870846, 0.110262332, -0.108814431}, 0.5625, {0.225446367, -0.0781972268, 0.0817806},
        0.5625, 1.5, 0.940827261, {-0.00542447947, 0.0320651053, -0.0270338314}, 1.125},
    {1, {-0.00271223974, 0.0160325527, -0.0135169157}, 0.5625,
        {-0.222734127, 0.0621646741, -0.0682636843}, 0.5625, 1.5, 0.411335721,
        {-0.225446367, 0.0781972268, -0.0817806}, 1.125},
    {3, {-0.169084775, 0.0586479201, -0.06133545}, 0.84375,
        {-0.0563615917, 0.0195493067, -0.02044515}, 0.28125, 1.5, 0,
        {-0.225446367, 0.0781972268, -0.0817806}, 1.125},
    {2, {-0.112723183, 0.0390986134, -0.0408903}, 0.5625,
        {0.0770353486, -0.0256021942, 0.0270161748}, 0.5625, 1.5, 0.376308922,
        {-0.0356878347, 0.0134964192, -0.0138741252}, 1.125},
    {1, {-0.0178439174, 0.00674820961, -0.00693706261}, 0.5625,
        {-0.0591914313, 0.0188539845, -0.0200791121}, 0.5625, 0.940827261, 0.0800766084,
        {-0.0770353486, 0.0256021942, -0.0270161748}, 1.125},
};

Test(guard, a_performer_takes_shares_as_the_reference_does)
{
    static const struct {
        uint32_t source;
        double distances[5];
    } before[] = {{1, {1.75, 2.0, 0.5, 0.75, 1.0}}, {2, {1.25, 1.5, 1.75, 2.0, 0.5}},
        {3, {0.75, 1.0, 1.25, 1.5, 1.75}}};
    begin(3);
    performer.guard->files = performer.files;
    for (uint32_t i = 0; i < 3; i++)
        for (uint32_t k = 0; k < 5; k++)
            sgp_guard_hear(performer.guard, before[i].source, before[i].distances[k]);
    for (uint32_t r = 0; r < sizeof rounds / sizeof *rounds; r++) {
        float x[3], payload[3], then[3];
        for (uint32_t c = 0; c < 3; c++) {
            x[c] = (float)rounds[r].x[c];
            payload[c] = (float)(rounds[r].share[c] / 0.5);
        }
        set_x(x);
        cr_assert(epsilon_eq(dbl, sgp_guard_bound(performer.guard), rounds[r].bound, 1e-6));
        struct sgp_work work =
            absorb(rounds[r].source, payload, 0.5, rounds[r].dw, rounds[r].w, then);
        double part = fmin(1, rounds[r].distance > 0 ? rounds[r].bound / rounds[r].distance : 1);
        cr_assert(epsilon_eq(dbl, work.admission.part, part, 1e-6));
        for (uint32_t c = 0; c < 3; c++)
            cr_assert(epsilon_eq(dbl, (double)then[c], rounds[r].then[c], 1e-6), "round %u", r);
    }
    finish();
}

/* ---- the rule written once more, slowly ---- */

#define VALUES 2500u /* of three runs of the kernels, of which the last is not whole */
#define SOURCES 5u

static int ascending(const void *a, const void *b)
{
    double first = *(const double *)a, second = *(const double *)b;
    return (first > second) - (first < second);
}

static double middle(double *values, size_t count)
{
    qsort(values, count, sizeof *values, ascending);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

static double slow_bound(double said[SOURCES][100], const uint32_t *counts)
{
    double words[SOURCES];
    size_t known = 0;
    for (uint32_t i = 0; i < SOURCES; i++) {
        double latest[5];
        uint32_t kept = counts[i] < 5 ? counts[i] : 5;
        memcpy(latest, said[i] + counts[i] - kept, kept * sizeof *latest);
        if (kept > 0)
            words[known++] = middle(latest, kept);
    }
    return known < 2 ? 0 : known == 2 ? fmin(words[0], words[1]) : middle(words, known);
}

Test(guard, a_performer_follows_a_slow_reference)
{
    static float x[VALUES], payload[VALUES], then[VALUES];
    static double said[SOURCES][100];
    uint32_t counts[SOURCES] = {0}, clipped = 0;
    struct sgp_random random;
    sgp_random_init(&random, 5, 0);
    begin(VALUES);
    for (uint32_t r = 0; r < 80; r++) {
        uint32_t source = (uint32_t)sgp_random_below(&random, SOURCES), peer;
        double own = 0.3 + sgp_random_double(&random), weight = 0.1 + sgp_random_double(&random);
        double far = source == 2 ? 20 : 1 + 0.1 * source, square = 0, part;
        for (uint32_t c = 0; c < VALUES; c++) {
            double z = sgp_random_normal(&random), v = z + far * 0.1 * sgp_random_normal(&random);
            x[c] = (float)(own * z);
            payload[c] = (float)(weight * v / 0.25);
            double apart = 0.25 * (double)payload[c] / weight - (double)x[c] / own;
            square += apart * apart;
        }
        double bound = slow_bound(said, counts), distance = sqrt(square);
        double expected_part = distance > bound ? bound / distance : 1;
        said[source][counts[source]++] = distance;
        set_x(x);
        struct sgp_work work = absorb(source, payload, 0.25, weight, own, then);
        cr_assert(sgp_perform_admission(&performer, &work, &peer, &part));
        cr_assert(eq(u32, peer, source));
        cr_assert(epsilon_eq(dbl, part, expected_part, 1e-6));
        clipped += part < 1;
        for (uint32_t c = 0; c < VALUES; c++) {
            double z = (double)x[c] / own, v = 0.25 * (double)payload[c] / weight;
            double expected = (double)x[c] + weight * (z + (v - z) * expected_part);
            cr_assert(epsilon_eq(dbl, (double)then[c], expected, 2e-6 * (1 + fabs(expected))));
        }
    }
    cr_assert(gt(u32, clipped, 20));
    cr_assert(lt(u32, clipped, 70));
    finish();
}

Test(guard, a_node_without_weight_takes_a_share_whole)
{
    float x[1] = {0}, payload[1] = {8};
    uint32_t peer;
    double part;
    begin(1);
    struct sgp_work work = absorb(1, payload, 0.25, 0.5, 0, x);
    cr_assert(not(sgp_perform_admission(&performer, &work, &peer, &part)));
    cr_assert(epsilon_eq(flt, x[0], 2, 0));
    finish();
}

/* A gossip share may have no weight: a member can send it, and no guard would see how far it moves x. */
Test(guard, a_share_without_weight_moves_no_estimate)
{
    static const float x[4] = {1, 2, 3, 4}, lie[4] = {-100, -100, -100, -100};
    float then[4];
    uint32_t peer;
    double part = 1;
    begin(4);
    set_x(x);
    struct sgp_work work = absorb(2, lie, 1, 0, 1, then);
    for (int i = 0; i < 4; i++)
        cr_expect(eq(flt, then[i], x[i]));
    cr_assert(sgp_perform_admission(&performer, &work, &peer, &part));
    cr_assert(zero(dbl, part));
    cr_assert(zero(u32, performer.guard->count)); /* it is no word of that neighbour */
    finish();
}

/* x is 3 at weight 1.5, and each share says 4 at weight 0.5. */
static double part_of_four(uint32_t peer)
{
    float x[1] = {3}, payload[1] = {8};
    uint32_t told;
    double part;
    set_x(x);
    struct sgp_work work = absorb(peer, payload, 0.25, 0.5, 1.5, x);
    cr_assert(sgp_perform_admission(&performer, &work, &told, &part));
    cr_assert(eq(u32, told, peer));
    cr_assert(epsilon_eq(flt, x[0], (float)(3 + 0.5 * (2 + part * 2)), 1e-6f));
    return part;
}

Test(guard, at_first_and_by_another_file_a_share_moves_nothing_until_two_were_heard)
{
    begin(1);
    for (uint32_t file = 0; file < 2; file++) {
        cr_assert(zero(dbl, part_of_four(1)));
        cr_assert(zero(dbl, part_of_four(1)));
        cr_assert(zero(dbl, part_of_four(2)));
        cr_assert(epsilon_eq(dbl, part_of_four(3), 1, 1e-6));
        sgp_performer_renumber(&performer);
    }
    float x[1], payload[1] = {8};
    uint32_t peer;
    double part;
    struct sgp_work work = absorb(1, payload, 0.25, 0.5, 1.5, x);
    sgp_performer_renumber(&performer); /* before the end of the job is known */
    cr_assert(not(sgp_perform_admission(&performer, &work, &peer, &part)));
    sgp_performer_begin(&performer, performer.trainer);
    cr_assert(zero(dbl, part_of_four(3)));
    finish();
}

/* ---- folded shares ---- */

/* The node publishes slot 0 in round 3 and keeps half. So x is half of the snapshot. */
static void publish(const float *snapshot, double weight)
{
    struct sgp_effect effect = {.type = SGP_EFFECT_PUBLISH, .round = 3, .weight = weight};
    struct sgp_work work;
    struct sgp_event event;
    set_x(snapshot);
    effect.publish.purpose = SGP_PUBLISH_SHARES;
    effect.publish.keep = 0.5;
    effect.publish.slice = (struct sgp_slice){0, performer.trainer->parameters};
    sgp_perform_begin(&performer, &effect, &work);
    cr_assert(not(sgp_perform_run(&performer, &work)));
    (void)sgp_perform_end(&performer, &work, &event);
}

static bool fold(sgp_round round, double fraction, double weight, enum sgp_compressor compressor)
{
    struct sgp_effect effect = {.type = SGP_EFFECT_FOLD, .round = round, .weight = 1};
    effect.fold.slot = 1;
    effect.fold.how = (struct sgp_fold){
        .keep = 0.5, .fraction = fraction, .weight = weight, .compressor = compressor};
    return sgp_perform_fold(&performer, &effect, 0, 4 * performer.trainer->parameters);
}

/* As `absorb` in round 3, of a node that published a weight of 2 * own. The share is folded while it
 * arrives. */
static struct sgp_work absorb_folded(
    uint32_t peer, const float *payload, double fraction, double weight, double own, float *ret_x)
{
    uint64_t values = performer.trainer->parameters;
    struct sgp_effect effect = {.type = SGP_EFFECT_ABSORB, .round = 3, .weight = own + weight};
    struct sgp_work work;
    struct sgp_event event;
    double squares;
    float *place = sgp_perform_receive(&performer, 1);
    cr_assert(fold(3, fraction, weight, SGP_COMPRESSOR_NONE));
    memcpy(place, payload, values * sizeof *payload);
    for (uint64_t at = 0, run = SGP_KERNELS_RUN; at < values; at += run) {
        run = values - at < run ? values - at : run;
        (void)sgp_fold_values(&performer.folding, &squares, place + at, at, run);
    }
    effect.absorb.peer = peer;
    effect.absorb.slot = 1;
    effect.absorb.round = 3;
    effect.absorb.folded = true;
    effect.absorb.fraction = fraction;
    effect.absorb.weight = weight;
    effect.absorb.slice = (struct sgp_slice){0, values};
    sgp_perform_begin(&performer, &effect, &work);
    cr_assert(work.folded);
    bool clips = sgp_perform_clips(&performer, &work);
    cr_assert(not(sgp_perform_run(&performer, &work)));
    cr_assert(eq(int, clips, work.admission.part < 1));
    cr_assert(sgp_perform_end(&performer, &work, &event));
    performer.trainer->methods->estimate(performer.trainer, 1, ret_x);
    return work;
}

/* Five sources give in turn, and source 2 is far away. The part is 0 at first, then 1, or between. */
Test(guard, a_folded_share_is_taken_as_an_absorbed_one)
{
    static float snapshot[VALUES], payload[VALUES], then[VALUES];
    static double said[SOURCES][100];
    uint32_t counts[SOURCES] = {0}, parts[3] = {0};
    struct sgp_random random;
    sgp_random_init(&random, 6, 0);
    begin(VALUES);
    for (uint32_t r = 0; r < 80; r++) {
        uint32_t source = (uint32_t)sgp_random_below(&random, SOURCES);
        double own = 0.3 + sgp_random_double(&random), weight = 0.1 + sgp_random_double(&random);
        double far = source == 2 ? 1e6 : 1 + 0.1 * source, square = 0;
        for (uint32_t c = 0; c < VALUES; c++) {
            double z = sgp_random_normal(&random), v = z + far * 0.1 * sgp_random_normal(&random);
            snapshot[c] = (float)(2 * own * z);
            payload[c] = (float)(weight * v / 0.25);
            double apart = 0.25 * (double)payload[c] / weight - 0.5 * (double)snapshot[c] / own;
            square += apart * apart;
        }
        double bound = slow_bound(said, counts), distance = sqrt(square), apart;
        double part = distance > bound ? bound / distance : 1;
        said[source][counts[source]++] = distance;
        publish(snapshot, 2 * own);
        struct sgp_work work = absorb_folded(source, payload, 0.25, weight, own, then);
        cr_assert(epsilon_eq(dbl, work.admission.part, part, 1e-6));
        cr_assert(sgp_perform_distance(&work, &apart));
        parts[part <= 0 ? 0 : part < 1 ? 1 : 2]++;
        for (uint32_t c = 0; c < VALUES; c++) {
            double x = 0.5 * (double)snapshot[c], z = x / own;
            double v = 0.25 * (double)payload[c] / weight;
            double expected = x + weight * (z + (v - z) * part);
            cr_assert(epsilon_eq(dbl, (double)then[c], expected, 3e-6 * (1 + fabs(expected))));
        }
    }
    cr_assert(gt(u32, parts[0], 0));
    cr_assert(gt(u32, parts[1], 20));
    cr_assert(gt(u32, parts[2], 20));
    sgp_performer_renumber(&performer); /* nobody was heard yet */
    publish(snapshot, 2);
    cr_assert(zero(dbl, absorb_folded(1, payload, 0.25, 0.5, 1, then).admission.part));
    finish();
}

/* A node with hardly any weight has no estimate, and takes a folded share whole. */
Test(guard, a_folded_share_of_a_node_without_weight_is_taken_whole)
{
    static const float snapshot[4] = {0}, payload[4] = {1, 2, 3, 4};
    float then[4];
    begin(4);
    publish(snapshot, 2e-39);
    struct sgp_work work = absorb_folded(2, payload, 0.5, 0.5, 1e-39, then);
    cr_assert(not(work.admission.judged));
    for (int i = 0; i < 4; i++)
        cr_expect(epsilon_eq(flt, then[i], 0.5F * payload[i], 1e-6F));
    finish();
}

/* Values that leave no finite sum leave x finite: only weight comes with them. */
Test(guard, of_a_folded_share_that_is_not_finite_only_the_weight_is_taken)
{
    static const float snapshot[4] = {1, 2, 3, 4};
    static const float payload[4] = {INFINITY, -INFINITY, NAN, 3e38F};
    float then[4];
    begin(4);
    publish(snapshot, 2);
    struct sgp_work work = absorb_folded(2, payload, 0.5, 0.5, 1, then);
    cr_assert(zero(dbl, work.admission.part));
    for (int i = 0; i < 4; i++)
        cr_expect(epsilon_eq(flt, then[i], 1.5F * 0.5F * snapshot[i], 1e-6F));
    finish();
}

Test(guard, a_share_is_folded_only_over_the_own_estimate_of_its_round)
{
    static const float snapshot[1] = {1};
    begin(1);
    cr_assert(not(fold(3, 0.25, 0.5, SGP_COMPRESSOR_NONE)));
    publish(snapshot, 1);
    cr_assert(fold(3, 0.25, 0.5, SGP_COMPRESSOR_NONE));
    cr_assert(not(fold(4, 0.25, 0.5, SGP_COMPRESSOR_NONE)));
    cr_assert(not(fold(3, 0.25, 0, SGP_COMPRESSOR_NONE))); /* a share without weight */
    cr_assert(not(fold(3, 0.25, 0.5, SGP_COMPRESSOR_INT8)));
    finish();
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The performer beside a quadratic: what a node looks at of itself, what it compares shares with, and when a share is folded
 * while it comes. */
#include "sgp/kernels.h"
#include "sgp/perform.h"
#include "sgp/quadratic.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <math.h>
#include <string.h>

#define VALUES 2500u /* of three runs, of which the last is not whole */

static struct sgp_performer performer;

/* Two snapshots and receive slots; x is 3 in all values at first. */
static void begin(void)
{
    static float centre[VALUES], start[VALUES];
    struct sgp_node_needs needs = {.snapshots = 2, .receives = 2};
    struct sgp_trainer *trainer;
    for (uint32_t i = 0; i < VALUES; i++)
        start[i] = 3;
    cr_assert(zero(int, sgp_quadratic_create(VALUES, centre, start, 0.5, &trainer)));
    performer = (struct sgp_performer){0};
    cr_assert(zero(int, sgp_performer_reserve(&performer, &needs, VALUES, false)));
    sgp_performer_begin(&performer, trainer);
}

static void finish(void)
{
    performer.trainer->methods->destroy(performer.trainer);
    sgp_performer_finish(&performer);
}

/* A job from begin to end. */
static struct sgp_work perform(struct sgp_effect effect, struct sgp_event *ret_event)
{
    struct sgp_work work;
    sgp_perform_begin(&performer, &effect, &work);
    while (sgp_perform_run(&performer, &work)) {
    }
    cr_assert(sgp_perform_end(&performer, &work, ret_event));
    return work;
}

static bool publish(enum sgp_publish purpose, sgp_round round, double weight, uint32_t slot)
{
    struct sgp_event event;
    struct sgp_effect effect = {.type = SGP_EFFECT_PUBLISH, .round = round, .weight = weight};
    effect.publish.slot = slot;
    effect.publish.keep = purpose == SGP_PUBLISH_SHARES ? 0.5 : 1;
    effect.publish.purpose = purpose;
    effect.publish.slice = (struct sgp_slice){0, VALUES};
    struct sgp_work work = perform(effect, &event);
    cr_assert(eq(int, event.type, SGP_EVENT_PUBLISHED));
    cr_assert(eq(u32, event.slot, slot));
    return work.looks;
}

static float x_at(uint64_t i)
{
    static float x[VALUES];
    performer.trainer->methods->estimate(performer.trainer, 1, x);
    return x[i];
}

static struct sgp_effect absorb_of(sgp_round round, bool folded)
{
    struct sgp_effect effect = {.type = SGP_EFFECT_ABSORB, .round = round, .weight = 1};
    effect.absorb.slot = 1;
    effect.absorb.round = round;
    effect.absorb.folded = folded;
    effect.absorb.fraction = 0.25;
    effect.absorb.weight = 0.5; /* of a node of weight 2 */
    effect.absorb.slice = (struct sgp_slice){0, VALUES};
    return effect;
}

/* A share of 8 throughout, which is 4 at its weight of 2. */
static float *receive(void)
{
    float *values = sgp_perform_receive(&performer, 1);
    for (uint32_t i = 0; i < VALUES; i++)
        values[i] = 8;
    return values;
}

static bool fold(uint32_t snapshot, uint64_t bytes)
{
    struct sgp_effect effect = {.type = SGP_EFFECT_FOLD, .round = 7, .weight = 1};
    effect.fold.slot = 1;
    effect.fold.how = (struct sgp_fold){snapshot, 0.5, 0.25, 0.5};
    return sgp_perform_fold(&performer, &effect, bytes, 4 * VALUES);
}

/* ---- of itself ---- */

Test(perform, only_what_is_published_whole_at_a_weight_is_looked_at, .init = begin, .fini = finish)
{
    cr_assert(not(publish(SGP_PUBLISH_SHARES, 0, 0, 0))); /* which counts for nothing */
    cr_assert(not(publish(SGP_PUBLISH_ESTIMATE, 0, 1, 0)));
    cr_assert(zero(dbl, performer.lengths.own));
    cr_assert(publish(SGP_PUBLISH_SHARES, 1, 1.5, 0));
    cr_assert(epsilon_eq(dbl, performer.lengths.own, 50, 1e-6)); /* 1.5 / 1.5, of 2500 values */
    for (uint32_t i = 1; i < SGP_LOOK_ROUNDS; i++)
        cr_assert(not(publish(SGP_PUBLISH_SHARES, 1 + i, 1, i % 2)));
    cr_assert(publish(SGP_PUBLISH_SHARES, 100, 1, 0));
    sgp_performer_begin(&performer, performer.trainer);
    cr_assert(zero(dbl, performer.lengths.own));
    cr_assert(publish(SGP_PUBLISH_SHARES, 101, 1, 0));
}

/* ---- of others ---- */

/* Theirs is 4, and ours is 3 / 1.5. */
Test(perform, a_share_is_compared_with_the_snapshot_of_its_round, .init = begin, .fini = finish)
{
    struct sgp_event event;
    double distance;
    (void)publish(SGP_PUBLISH_SHARES, 7, 1.5, 0);
    (void)receive();
    struct sgp_work work = perform(absorb_of(7, false), &event);
    cr_assert(eq(int, event.type, SGP_EVENT_ABSORBED));
    cr_assert(eq(u32, event.slot, 1));
    cr_assert(sgp_perform_distance(&work, &distance));
    cr_assert(epsilon_eq(dbl, distance, 1, 1e-6));
    cr_assert(epsilon_eq(flt, x_at(0), 0.5f * 3 + 0.25f * 8, 0));
}

Test(perform, without_such_a_snapshot_nothing_is_compared, .init = begin, .fini = finish)
{
    struct sgp_event event;
    double distance;
    (void)publish(SGP_PUBLISH_SHARES, 7, 1.5, 0);
    struct sgp_work another = perform(absorb_of(6, false), &event);
    cr_assert(not(sgp_perform_distance(&another, &distance)));
    (void)publish(SGP_PUBLISH_ESTIMATE, 7, 1, 0); /* over it */
    struct sgp_work gone = perform(absorb_of(7, false), &event);
    cr_assert(not(sgp_perform_distance(&gone, &distance)));
}

/* ---- folded ---- */

Test(perform, what_is_folded_by_pieces_is_what_absorbing_makes, .init = begin, .fini = finish)
{
    struct sgp_event event;
    double distance, squares = 0;
    (void)publish(SGP_PUBLISH_SHARES, 7, 1.5, 0);
    float *values = receive();
    cr_assert(fold(0, 4 * VALUES / 4 * 3));
    for (uint64_t at = 0, run = SGP_KERNELS_RUN; at < VALUES; at += run) {
        double part;
        run = VALUES - at < run ? VALUES - at : run;
        cr_assert(eq(flt, sgp_fold_values(&performer.folding, &part, values + at, at, run), 8));
        squares += part;
    }
    cr_assert(eq(dbl, squares, 64.0 * VALUES)); /* of what came */
    struct sgp_work work = perform(absorb_of(7, true), &event);
    cr_assert(work.folded);
    cr_assert(eq(int, event.type, SGP_EVENT_ABSORBED));
    cr_assert(sgp_perform_distance(&work, &distance));
    cr_assert(epsilon_eq(dbl, distance, 1, 1e-6));
    cr_assert(epsilon_eq(flt, x_at(VALUES - 1), 0.5f * 3 + 0.25f * 8, 0));
}

Test(perform, of_what_has_mostly_come_nothing_is_folded, .init = begin, .fini = finish)
{
    struct sgp_event event;
    (void)publish(SGP_PUBLISH_SHARES, 7, 1.5, 0);
    (void)receive();
    cr_assert(not(fold(SGP_SLOT_NONE, 0)));
    cr_assert(not(fold(0, 4 * VALUES / 4 * 3 + 4)));
    struct sgp_work work = perform(absorb_of(7, true), &event);
    cr_assert(not(work.folded));
    cr_assert(fold(0, 0));
    cr_assert(fold(SGP_SLOT_NONE, 0)); /* it was */
    (void)receive();                   /* another one */
    work = perform(absorb_of(7, true), &event);
    cr_assert(not(work.folded));
}

/* ---- training ---- */

Test(perform, steps_add_up, .init = begin, .fini = finish)
{
    struct sgp_event event;
    struct sgp_effect effect = {.type = SGP_EFFECT_TRAIN, .weight = 1};
    effect.train.steps = 3;
    effect.train.pace = 1;
    struct sgp_work work = perform(effect, &event);
    cr_assert(eq(int, event.type, SGP_EVENT_TRAINED));
    cr_assert(zero(int, event.code));
    cr_assert(eq(dbl, event.rate, 0.5));
    cr_assert(zero(u64, event.update)); /* of one row each */
    cr_assert(eq(u64, work.training.samples, 3));
    /* half of the squares of 3, 1.5 and 0.75, on the mean */
    cr_assert(epsilon_eq(dbl, work.training.loss, VALUES * (9 + 2.25 + 0.5625) / 6, 1e-9 * VALUES));
    cr_assert(epsilon_eq(flt, x_at(0), 0.375f, 0));
}

/* ---- coded shares ---- */

/* Values that no half is near. */
static float coded_value(uint64_t i)
{
    return 3 + (float)(i % 97) * 0x1.555556p-11F;
}

static void fill_coded(float *values, float (*value)(uint64_t))
{
    for (uint64_t i = 0; i < VALUES; i++)
        values[i] = value(i);
}

static void publish_coded(double keep)
{
    struct sgp_event event;
    struct sgp_effect effect = {.type = SGP_EFFECT_PUBLISH, .round = 4, .weight = 1};
    float x[VALUES];
    fill_coded(x, coded_value);
    performer.trainer->methods->adopt(performer.trainer, x, 1);
    effect.publish.slot = 0;
    effect.publish.keep = keep;
    effect.publish.purpose = SGP_PUBLISH_SHARES;
    effect.publish.compressor = SGP_COMPRESSOR_FP16;
    effect.publish.slice = (struct sgp_slice){0, VALUES};
    (void)perform(effect, &event);
}

/* The snapshot is as x was; of x the rest stays, and what returns is what was given. */
Test(perform, what_a_form_leaves_out_stays, .init = begin, .fini = finish)
{
    float x[VALUES], given[VALUES];
    publish_coded(0.75);
    fill_coded(x, coded_value);
    struct sgp_codec codec = sgp_perform_codec(&performer, SGP_COMPRESSOR_FP16);
    (void)sgp_codec_project(&codec, given, x, 0, VALUES);
    const float *snapshot = *sgp_pool_place(&performer.snapshots, 0);
    cr_assert(zero(int, memcmp(snapshot, x, sizeof x)));
    for (uint64_t i = 0; i < VALUES; i++)
        cr_assert(eq(flt, x_at(i), x[i] - 0.25F * given[i]), "%llu", (unsigned long long)i);
    struct sgp_event event;
    struct sgp_effect effect = {.type = SGP_EFFECT_RESTORE, .round = 4, .weight = 1};
    effect.restore.slot = 0;
    effect.restore.fraction = 0.25;
    effect.restore.compressor = SGP_COMPRESSOR_FP16;
    effect.restore.slice = (struct sgp_slice){0, VALUES};
    (void)perform(effect, &event);
    cr_assert(eq(int, event.type, SGP_EVENT_RESTORED));
    for (uint64_t i = 0; i < VALUES; i++)
        cr_assert(eq(flt, x_at(i), (x[i] - 0.25F * given[i]) + 0.25F * given[i]));
}

/* All is given: what is left is what the form leaves out, and not nothing. */
Test(perform, the_rest_stays_where_all_is_given, .init = begin, .fini = finish)
{
    float x[VALUES], given[VALUES];
    publish_coded(0);
    fill_coded(x, coded_value);
    struct sgp_codec codec = sgp_perform_codec(&performer, SGP_COMPRESSOR_FP16);
    (void)sgp_codec_project(&codec, given, x, 0, VALUES);
    bool any = false;
    for (uint64_t i = 0; i < VALUES; i++) {
        cr_assert(eq(flt, x_at(i), x[i] - given[i]));
        any = any || x[i] > given[i] || x[i] < given[i];
    }
    cr_assert(any);
}

Test(perform, a_share_is_folded_over_the_rest, .init = begin, .fini = finish)
{
    float known[VALUES], came[VALUES], folded[VALUES];
    publish_coded(0.5);
    performer.trainer->methods->estimate(performer.trainer, 1, known);
    for (uint64_t i = 0; i < VALUES; i++)
        folded[i] = came[i] = (float)(i % 89) - 40.3F;
    sgp_kernels_best()->absorb(known, came, 0.25F, VALUES);
    struct sgp_effect effect = {.type = SGP_EFFECT_FOLD, .round = 4, .weight = 1};
    effect.fold.slot = 1;
    effect.fold.how = (struct sgp_fold){.snapshot = 0,
        .keep = 0.5,
        .compressor = SGP_COMPRESSOR_FP16,
        .fraction = 0.25,
        .weight = 0.5};
    cr_assert(sgp_perform_fold(&performer, &effect, 0, 4 * VALUES));
    double squares, sum = 0;
    float largest = 0;
    for (uint64_t first = 0, run; first < VALUES; first += run) {
        run = VALUES - first < SGP_KERNELS_RUN ? VALUES - first : SGP_KERNELS_RUN;
        float most = sgp_fold_values(&performer.folding, &squares, folded + first, first, run);
        largest = most > largest ? most : largest;
        sum += squares;
    }
    cr_assert(zero(int, memcmp(folded, known, sizeof known)));
    cr_assert(eq(flt, largest, sgp_kernels_best()->measure(&squares, came, VALUES)));
    cr_assert(eq(dbl, sum, squares));
}

/* The payload bytes of a share of all values in slot 0. */
static uint64_t sent_bytes(enum sgp_compressor compressor)
{
    struct sgp_message message = {.type = SGP_SHARE};
    message.share.slice = (struct sgp_slice){0, VALUES};
    message.share.compressor = compressor;
    message.share.coding = sgp_coding_of(compressor);
    message.share.payload_bytes = sgp_coding_bytes_most(message.share.coding, VALUES);
    const float *values = sgp_perform_send(&performer, &message, 0);
    cr_assert(eq(ptr, (void *)(uintptr_t)values, *sgp_pool_place(&performer.snapshots, 0)));
    return message.share.payload_bytes;
}

/* Of 10 blocks each is dense: 9 of 256 values, and one of 196. A later process may find other values in the slot. */
Test(perform, a_share_says_the_bytes_that_packing_takes, .init = begin, .fini = finish)
{
    struct sgp_event event;
    struct sgp_effect effect = {.type = SGP_EFFECT_PUBLISH, .round = 4, .weight = 1};
    effect.publish.keep = 0.5;
    effect.publish.purpose = SGP_PUBLISH_SHARES;
    effect.publish.compressor = SGP_COMPRESSOR_INT8;
    effect.publish.slice = (struct sgp_slice){0, VALUES};
    (void)perform(effect, &event);
    const uint64_t int8 = 9 * (4 + 256) + 4 + 196;
    cr_assert(eq(u64, sent_bytes(SGP_COMPRESSOR_INT8), int8));
    cr_assert(eq(u64, performer.spared_bytes, 4 * VALUES - int8));
    cr_assert(epsilon_eq(dbl, performer.lost, 0, 1e-3));
    sgp_performer_begin(&performer, performer.trainer);
    memset(*sgp_pool_place(&performer.snapshots, 0), 0, VALUES * sizeof(float));
    cr_assert(eq(u64, sent_bytes(SGP_COMPRESSOR_INT8), 10 * 4));
    (void)publish(SGP_PUBLISH_SHARES, 5, 1, 0);
    cr_assert(eq(u64, sent_bytes(SGP_COMPRESSOR_BF16), 10 * 4 + 2 * VALUES));
    cr_assert(eq(u64, sent_bytes(SGP_COMPRESSOR_NONE), 4 * VALUES));
}

/* ---- coded updates ---- */

/* A worker with a copy that is 0, whose updates have a sign. */
static void begin_updates(const char *word)
{
    struct sgp_chooser chooser;
    struct sgp_node_needs needs = {.snapshots = 2, .receives = 2};
    struct sgp_trainer *trainer = performer.trainer;
    cr_assert(zero(int, sgp_chooser_parse(word, SGP_CHOOSER_WORDS, NULL, &chooser)));
    cr_assert(zero(int, sgp_performer_reserve(&performer, &needs, VALUES, true)));
    cr_assert(zero(int, sgp_performer_choose(&performer, &chooser, 1, VALUES)));
    memset(performer.copy, 0, VALUES * sizeof *performer.copy);
    sgp_performer_begin(&performer, trainer);
}

/* x becomes an update of this value, and that is given, of
 * these values chosen by the compressor. */
static const float *give_update(float value, enum sgp_compressor compressor, struct sgp_slice slice)
{
    static float x[VALUES];
    struct sgp_event event;
    struct sgp_effect effect = {.type = SGP_EFFECT_PUBLISH, .round = 4, .weight = 1};
    for (uint32_t i = 0; i < VALUES; i++)
        x[i] = i % 2 ? -value : 2 * value;
    performer.trainer->methods->adopt(performer.trainer, x, 1);
    effect.publish.purpose = SGP_PUBLISH_UPDATE;
    effect.publish.slice = (struct sgp_slice){0, VALUES};
    (void)perform(effect, &event);
    effect.publish.purpose = SGP_PUBLISH_CHOSEN;
    effect.publish.compressor = compressor;
    effect.publish.slice = slice;
    (void)perform(effect, &event);
    cr_assert(eq(int, event.type, SGP_EVENT_PUBLISHED));
    return *sgp_pool_place(&performer.snapshots, 0);
}

/* Updates of 2 and -1 have the sign of 1.5: 0.5 is left out of each. With that the next one is 2.5
 * and -0.5. */
Test(perform, what_an_update_leaves_out_goes_with_the_next, .init = begin, .fini = finish)
{
    const struct sgp_slice all = {0, VALUES};
    begin_updates("sign");
    const float *snapshot = give_update(1, SGP_COMPRESSOR_SIGN, all);
    cr_assert(eq(flt, snapshot[256], 1.5F));
    cr_assert(eq(flt, snapshot[257], -1.5F));
    cr_assert(eq(flt, performer.rest[256], 0.5F));
    cr_assert(eq(flt, performer.rest[257], 0.5F));
    cr_assert(eq(flt, x_at(0), 0), "x is the copy");
    cr_assert(epsilon_eq(dbl, performer.lost, sqrt(0.25 / 2.5), 1e-6));
    snapshot = give_update(1, SGP_COMPRESSOR_SIGN, all);
    cr_assert(eq(flt, snapshot[256], 1.5F));
    cr_assert(eq(flt, performer.rest[256], 1));
    cr_assert(eq(flt, performer.rest[257], 1));
    snapshot = give_update(1, SGP_COMPRESSOR_NONE, all);
    cr_assert(eq(flt, snapshot[256], 3));
    cr_assert(eq(flt, snapshot[257], 0));
    cr_assert(eq(flt, performer.rest[256], 0), "plain, all of it goes");
}

Test(perform, an_update_that_is_sent_again_has_the_same_bytes, .init = begin, .fini = finish)
{
    static const char *const words[] = {"int4", "sign", "qsgd:7", "top:0.1", "adacomp"};
    static uint8_t first[4 * VALUES], again[4 * VALUES];
    const struct sgp_slice part = {300, 1000};
    for (uint32_t i = 0; i < sizeof words / sizeof *words; i++) {
        begin_updates(words[i]);
        enum sgp_compressor compressor = performer.chooser.compressor;
        (void)give_update(0.3F, compressor, part);
        struct sgp_codec codec = sgp_perform_codec(&performer, compressor);
        uint64_t bytes = 0;
        for (uint32_t k = 0; k < 2; k++) {
            struct sgp_message message = {.type = SGP_SHARE,
                .share = {
                    .slice = part, .coding = sgp_coding_of(compressor), .compressor = compressor}};
            const float *values = sgp_perform_send(&performer, &message, 0);
            uint64_t packed =
                sgp_codec_pack(&codec, k ? again : first, values, part.first, part.count);
            cr_assert(eq(u64, message.share.payload_bytes, packed));
            cr_assert(k == 0 || packed == bytes);
            bytes = packed;
        }
        cr_assert(zero(int, memcmp(first, again, bytes)), "%s", words[i]);
        cr_assert(lt(u64, bytes, 4 * part.count / 5), "%s", words[i]);
        cr_assert(eq(flt, performer.rest[299], 0), "of what is not given nothing is left out");
        cr_assert(eq(flt, performer.rest[1300], 0));
    }
}

Test(perform, an_update_in_vain_leaves_the_rest, .init = begin, .fini = finish)
{
    struct sgp_event event;
    struct sgp_effect effect = {.type = SGP_EFFECT_PUBLISH, .round = 5, .weight = 1};
    begin_updates("sign");
    (void)give_update(1, SGP_COMPRESSOR_SIGN, (struct sgp_slice){0, VALUES});
    effect.publish.purpose = SGP_PUBLISH_NOTHING;
    effect.publish.slice = (struct sgp_slice){0, VALUES};
    (void)perform(effect, &event);
    cr_assert(eq(flt, performer.rest[0], 0.5F));
}

Test(perform, the_rest_is_that_of_an_earlier_process_or_nothing, .init = begin, .fini = finish)
{
    static float rest[VALUES];
    begin_updates("sign");
    (void)give_update(1, SGP_COMPRESSOR_SIGN, (struct sgp_slice){0, VALUES});
    memcpy(rest, performer.rest, sizeof rest);
    sgp_performer_begin(&performer, performer.trainer);
    cr_assert(eq(flt, performer.rest[0], 0));
    sgp_performer_resume(&performer, NULL);
    cr_assert(eq(flt, performer.rest[0], 0));
    sgp_performer_resume(&performer, rest);
    cr_assert(zero(int, memcmp(performer.rest, rest, sizeof rest)));
}

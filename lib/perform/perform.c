/* SPDX-License-Identifier: Apache-2.0 */
/* The performer: how jobs begin, run and end; see sgp/perform.h. */
#include "sgp/perform.h"

#include "absorb.h"

#include "sgp/copy.h"
#include "sgp/driver.h"
#include "sgp/kernels.h"
#include "sgp/random.h"
#include "sgp/update.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- memory ---- */

static int reserve_packed(struct sgp_performer *performer, uint32_t count)
{
    if (count <= performer->packed_count)
        return 0;
    uint64_t *packed = realloc(performer->packed, count * sizeof *packed);
    if (packed == NULL)
        return -ENOMEM;
    memset(packed + performer->packed_count, 0, (count - performer->packed_count) * sizeof *packed);
    performer->packed = packed;
    performer->packed_count = count;
    return 0;
}

int sgp_performer_reserve(struct sgp_performer *performer, const struct sgp_node_needs *needs,
    uint64_t parameters, bool copies)
{
    int code = sgp_pool_grow(&performer->snapshots, needs->snapshots, parameters);
    if (code == 0)
        code = sgp_pool_grow(&performer->receives, needs->receives, parameters);
    if (code == 0)
        code = reserve_packed(performer, needs->snapshots);
    if (code == 0 && copies && performer->copy == NULL)
        code = sgp_vector_create(parameters, &performer->copy);
    return code;
}

int sgp_performer_choose(struct sgp_performer *performer, const struct sgp_chooser *chooser,
    uint64_t seed, uint64_t parameters)
{
    performer->chooser = *chooser;
    performer->seed = seed;
    return performer->rest == NULL ? sgp_vector_create(parameters, &performer->rest) : 0;
}

void sgp_performer_choose_copies(struct sgp_performer *performer, const struct sgp_chooser *chooser)
{
    performer->copies = *chooser;
}

int sgp_performer_guard(struct sgp_performer *performer, double multiple)
{
    performer->guard = malloc(sizeof *performer->guard);
    if (performer->guard == NULL)
        return -ENOMEM;
    sgp_guard_begin(performer->guard, multiple);
    performer->guard->files = performer->files;
    return 0;
}

void sgp_performer_renumber(struct sgp_performer *performer)
{
    performer->files++;
}

void sgp_performer_finish(struct sgp_performer *performer)
{
    free(performer->guard);
    sgp_vector_destroy(performer->rest);
    sgp_vector_destroy(performer->copy);
    sgp_pool_finish(&performer->receives);
    sgp_pool_finish(&performer->snapshots);
    free(performer->packed);
    *performer = (struct sgp_performer){0};
}

void sgp_performer_begin(struct sgp_performer *performer, struct sgp_trainer *trainer)
{
    performer->trainer = trainer;
    performer->lengths = (struct sgp_lengths){0};
    sgp_performer_renumber(performer);
    performer->own_slot = performer->folded = SGP_SLOT_NONE;
    performer->own_round = SGP_ROUND_NONE;
    performer->published = 0;
    performer->lost = NAN;
    memset(performer->packed, 0, performer->packed_count * sizeof *performer->packed);
    if (performer->rest != NULL)
        memset(performer->rest, 0, trainer->parameters * sizeof *performer->rest);
}

void sgp_performer_resume(struct sgp_performer *performer, const float *rest)
{
    if (performer->rest != NULL && rest != NULL)
        memcpy(performer->rest, rest, performer->trainer->parameters * sizeof *rest);
}

/* ---- outgoing payloads ---- */

struct sgp_codec sgp_perform_codec(
    const struct sgp_performer *performer, enum sgp_compressor compressor)
{
    return (struct sgp_codec){.compressor = compressor, .tensors = performer->trainer->tensors};
}

/* A complete snapshot was measured when it was published. A part of a snapshot is measured here. So
 * is a snapshot of an earlier process. */
static uint64_t packed_bytes(const struct sgp_performer *performer, const struct sgp_cargo *cargo,
    const float *values, uint32_t slot)
{
    struct sgp_codec codec = sgp_perform_codec(performer, cargo->compressor);
    bool all = cargo->slice.count == performer->trainer->parameters;
    return all && performer->packed[slot] > 0
               ? performer->packed[slot]
               : sgp_codec_bytes(&codec, values, cargo->slice.first, cargo->slice.count);
}

const float *sgp_perform_send(
    struct sgp_performer *performer, struct sgp_message *message, uint32_t slot)
{
    struct sgp_cargo cargo = sgp_message_cargo(message);
    const float *values = *sgp_pool_place(&performer->snapshots, slot) + cargo.slice.first;
    if (cargo.coding == SGP_CODING_NONE)
        return values;
    uint64_t bytes = packed_bytes(performer, &cargo, values, slot);
    if (message->type == SGP_SHARE)
        message->share.payload_bytes = bytes;
    else
        message->estimate.payload_bytes = bytes;
    performer->spared_bytes += cargo.slice.count * sizeof *values - bytes;
    return values;
}

/* ---- incoming payloads ---- */

float *sgp_perform_receive(struct sgp_performer *performer, uint32_t slot)
{
    performer->folded = performer->folded == slot ? SGP_SLOT_NONE : performer->folded;
    return *sgp_pool_place(&performer->receives, slot);
}

/* ---- begin of a job ---- */

/* A complete snapshot, with its weight, is the reference against which neighbours are measured.
 * From time to time it is measured itself, which gives the bounds for other nodes' shares
 * (sgp/payload.h). */
static void begin_publish(
    struct sgp_performer *performer, const struct sgp_effect *effect, struct sgp_work *work)
{
    uint32_t slot = effect->publish.slot;
    work->place = sgp_pool_place(&performer->snapshots, slot);
    work->factor = effect->publish.keep;
    work->purpose = effect->publish.purpose;
    work->compressor = effect->publish.compressor;
    work->slice = effect->publish.slice;
    work->key = sgp_random_at(performer->seed, (uint64_t)effect->round);
    bool ours = work->purpose == SGP_PUBLISH_SHARES || work->purpose == SGP_PUBLISH_TOKEN;
    if (ours && work->slice.count == performer->trainer->parameters && work->weight > 0) {
        performer->own_slot = slot;
        performer->own_round = work->round;
        performer->own_weight = work->weight;
        work->looks = performer->published++ % SGP_LOOK_ROUNDS == 0;
    } else if (performer->own_slot == slot) {
        performer->own_slot = SGP_SLOT_NONE;
    }
}

static void begin_receive_token(
    struct sgp_performer *performer, const struct sgp_effect *effect, struct sgp_work *work)
{
    uint32_t snapshot = effect->receive_token.snapshot;
    work->place = sgp_pool_place(&performer->receives, effect->receive_token.slot);
    work->other = sgp_pool_place(&performer->snapshots, snapshot);
    work->factor = effect->receive_token.fraction;
    work->computes = effect->receive_token.computes;
    sgp_copy_collect(
        *work->other, *work->place, (float)work->factor, performer->trainer->parameters);
    if (performer->own_slot == snapshot)
        performer->own_slot = SGP_SLOT_NONE;
}

static void begin_compensate(
    struct sgp_performer *performer, const struct sgp_effect *effect, struct sgp_work *work)
{
    work->place = sgp_pool_place(&performer->receives, effect->compensate.slot);
    work->other = sgp_pool_place(&performer->snapshots, effect->compensate.snapshot);
    work->factor = effect->compensate.factor;
    work->slice = effect->compensate.slice;
}

/* For jobs that read one vector and change x by it. */
static void begin_with(struct sgp_work *work, const struct sgp_pool *pool, uint32_t slot,
    double factor, struct sgp_slice slice)
{
    work->place = sgp_pool_place(pool, slot);
    work->factor = factor;
    work->slice = slice;
}

static void begin_adopt(
    struct sgp_performer *performer, const struct sgp_effect *effect, struct sgp_work *work)
{
    struct sgp_adoption *adoption = &work->adoption;
    *adoption = (struct sgp_adoption){.count = effect->adopt.count,
        .files = performer->files,
        .weight = effect->adopt.weight,
        .trained = effect->adopt.trained};
    for (uint32_t i = 0; i < adoption->count; i++) {
        adoption->candidates[i] = effect->adopt.candidates[i];
        adoption->places[i] = sgp_pool_place(&performer->receives, adoption->candidates[i].slot);
    }
    work->slice = effect->adopt.slice;
}

static void begin_follow(
    struct sgp_performer *performer, const struct sgp_effect *effect, struct sgp_work *work)
{
    uint32_t slot = effect->follow.slot;
    work->slice = effect->follow.slice;
    work->place = slot != SGP_SLOT_NONE ? sgp_pool_place(&performer->receives, slot) : NULL;
    work->adds = effect->follow.adds;
}

void sgp_perform_begin(
    struct sgp_performer *performer, const struct sgp_effect *effect, struct sgp_work *ret_work)
{
    struct sgp_work *work = ret_work;
    memset(work, 0, offsetof(struct sgp_work, adoption)); /* the rest is of the type */
    work->type = effect->type;
    work->round = effect->round;
    work->weight = effect->weight;
    work->answer = sgp_effect_answer(effect, &work->slot);
    switch (effect->type) {
    case SGP_EFFECT_TRAIN:
        work->training = (struct sgp_training){0};
        work->loss = 0;
        work->round = effect->train.turn;
        work->steps = effect->train.steps;
        work->factor = effect->train.pace;
        break;
    case SGP_EFFECT_PUBLISH:
        begin_publish(performer, effect, work);
        break;
    case SGP_EFFECT_ABSORB:
        sgp_absorb_begin(performer, effect, work);
        break;
    case SGP_EFFECT_RECEIVE_TOKEN:
        begin_receive_token(performer, effect, work);
        break;
    case SGP_EFFECT_COMPENSATE:
        begin_compensate(performer, effect, work);
        break;
    case SGP_EFFECT_RESTORE:
        begin_with(work, &performer->snapshots, effect->restore.slot, effect->restore.fraction,
            effect->restore.slice);
        work->compressor = effect->restore.compressor;
        break;
    case SGP_EFFECT_ADOPT:
        begin_adopt(performer, effect, work);
        break;
    case SGP_EFFECT_FOLLOW:
        begin_follow(performer, effect, work);
        break;
    case SGP_EFFECT_SCALE:
        work->factor = effect->scale.factor;
        work->slice = effect->scale.slice;
        break;
    default:
        sgp_assert(effect->type == SGP_EFFECT_OUTER || effect->type == SGP_EFFECT_SKETCH);
    }
}

/* ---- running a job ---- */

/* Run one step after the other. A round of many steps may take minutes, and the model is consistent
 * after each step. Schedules are functions of the turn, so a node that has jumped continues where
 * the fleet is. */
static bool run_train(struct sgp_trainer *trainer, struct sgp_work *work)
{
    struct sgp_training *sum = &work->training, step;
    if (work->taken == 0)
        trainer->methods->go_to(trainer, (uint64_t)work->round * work->steps);
    work->code = trainer->methods->train(trainer, work->weight, 1, work->factor, &step);
    if (work->code < 0)
        return false;
    work->taken++;
    work->loss += step.loss * (double)step.samples;
    step.samples += sum->samples;
    step.update = sgp_update_chain(sum->update, step.update);
    step.loss = work->loss / (double)step.samples;
    *sum = step;
    return work->taken < work->steps;
}

/* x[first + i] += fraction * what a target decodes of values[i], for i < count. Records the bytes
 * and the error. */
static void add_decoded(const struct sgp_performer *performer, struct sgp_work *work,
    const float *values, float fraction)
{
    struct sgp_slice slice = work->slice;
    struct sgp_trainer *trainer = performer->trainer;
    struct sgp_codec codec = sgp_perform_codec(performer, work->compressor);
    uint64_t stride = sgp_kernels_stride(slice.count);
    float decoded[SGP_KERNELS_RUN];
    double difference = 0, norm = 0, part, whole;
    for (uint64_t at = 0, run; at < slice.count; at += run) {
        run = slice.count - at < SGP_KERNELS_RUN ? slice.count - at : SGP_KERNELS_RUN;
        work->packed += sgp_codec_project(&codec, decoded, values + at, slice.first + at, run);
        trainer->methods->restore(trainer, decoded, fraction, slice.first + at, run);
        if (at / SGP_KERNELS_RUN % stride != 0)
            continue;
        sgp_kernels_best()->distance(&part, &whole, decoded, 1, values + at, 1, run);
        difference += part;
        norm += whole;
    }
    work->lost = sgp_relative_difference(difference, norm);
}

/* The complete x becomes the snapshot. What the compressor leaves out stays in x. */
static void give(const struct sgp_performer *performer, struct sgp_work *work)
{
    struct sgp_trainer *trainer = performer->trainer;
    bool coded = work->compressor != SGP_COMPRESSOR_NONE;
    trainer->methods->publish(trainer, work->place, coded ? 1 : (float)work->factor);
    if (coded)
        add_decoded(performer, work, *work->place, -(float)(1 - work->factor));
}

/* The same for a range, which is copied. */
static void give_part(const struct sgp_performer *performer, struct sgp_work *work)
{
    struct sgp_trainer *trainer = performer->trainer;
    struct sgp_slice slice = work->slice;
    bool coded = work->compressor != SGP_COMPRESSOR_NONE;
    trainer->methods->copy(
        trainer, work->place, coded ? 1 : (float)work->factor, slice.first, slice.count);
    if (coded)
        add_decoded(performer, work, *work->place + slice.first, -(float)(1 - work->factor));
}

/* In a range of an update, the snapshot becomes what its target decodes. */
static void choose(const struct sgp_performer *performer, struct sgp_work *work)
{
    struct sgp_slice slice = work->slice;
    struct sgp_chooser chooser = performer->chooser;
    struct sgp_chosen chosen;
    sgp_assert(performer->rest != NULL);
    if (work->compressor == SGP_COMPRESSOR_NONE) /* the target decodes the same values */
        chooser = (struct sgp_chooser){0};
    sgp_choose(&chooser, &performer->trainer->tensors, work->key, *work->place + slice.first,
        performer->rest + slice.first, slice.first, slice.count, &chosen);
    if (work->compressor == SGP_COMPRESSOR_NONE)
        return;
    work->packed = chosen.bytes;
    work->lost = sgp_relative_difference(chosen.difference, chosen.norm);
}

/* The snapshot becomes the difference between x and the copy, as a target decodes it. The copy
 * changes by it. */
static void change(const struct sgp_performer *performer, struct sgp_work *work)
{
    struct sgp_slice slice = work->slice;
    float *values = *work->place + slice.first;
    struct sgp_chosen chosen;
    if (work->compressor == SGP_COMPRESSOR_NONE) {
        sgp_copy_take(performer->copy, performer->trainer, values, slice);
        return;
    }
    sgp_copy_lacks(performer->copy, performer->trainer, values, slice);
    sgp_choose(&performer->copies, &performer->trainer->tensors, work->key, values, NULL,
        slice.first, slice.count, &chosen);
    sgp_copy_add(performer->copy, values, slice);
    work->packed = chosen.bytes;
    work->lost = sgp_relative_difference(chosen.difference, chosen.norm);
}

/* x, or a range of it, becomes the snapshot. */
static void run_publish(const struct sgp_performer *performer, struct sgp_work *work)
{
    struct sgp_trainer *trainer = performer->trainer;
    uint64_t count = trainer->parameters;
    if (work->purpose == SGP_PUBLISH_COPY)
        memcpy(*work->place, performer->copy, count * sizeof **work->place);
    else if (work->purpose == SGP_PUBLISH_TOKEN)
        sgp_copy_give(performer->copy, trainer, work->place, (float)work->factor);
    else if (work->purpose == SGP_PUBLISH_UPDATE && work->factor > 0)
        sgp_copy_offer(performer->copy, trainer, *work->place);
    else if (work->purpose == SGP_PUBLISH_UPDATE || work->purpose == SGP_PUBLISH_NOTHING)
        sgp_copy_push(performer->copy, trainer, work->place);
    else if (work->purpose == SGP_PUBLISH_CHOSEN)
        choose(performer, work);
    else if (work->purpose == SGP_PUBLISH_CHANGE)
        change(performer, work);
    else if (work->slice.count == count)
        give(performer, work);
    else
        give_part(performer, work);
    if (!work->looks)
        return;
    work->measure.largest =
        sgp_kernels_best()->measure(&work->measure.squares, *work->place, count);
    work->measure.unit = work->weight;
}

/* ---- an estimate ---- */

static double distance_to(const struct sgp_adoption *adoption, uint32_t index, const float *values,
    double weight, struct sgp_slice slice, double *ret_norm)
{
    double difference;
    sgp_kernels_best()->distance(&difference, ret_norm, *adoption->places[index],
        (float)(1 / adoption->candidates[index].weight), values, (float)(1 / weight), slice.count);
    return difference;
}

/* Set the chosen index, and how far the other estimates are from that one. */
static void compare(struct sgp_adoption *adoption, struct sgp_trainer *trainer, double own_weight,
    struct sgp_slice slice)
{
    uint32_t count = adoption->count;
    double squares[SGP_CANDIDATES_MOST][SGP_CANDIDATES_MOST], norms[SGP_CANDIDATES_MOST], norm;
    double apart[SGP_CANDIDATES_MOST][SGP_CANDIDATES_MOST], own[SGP_CANDIDATES_MOST];
    struct sgp_trainer_state state;
    bool judges = adoption->trained && own_weight >= (double)FLT_MIN;
    trainer->methods->state(trainer, &state);
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t j = 0; j < count; j++) {
            squares[j][i] = distance_to(adoption, j, *adoption->places[i],
                adoption->candidates[i].weight, slice, &norms[i]);
            apart[j][i] = sqrt(squares[j][i]);
        }
        if (judges)
            own[i] =
                sqrt(distance_to(adoption, i, state.x + slice.first, own_weight, slice, &norm));
    }
    uint32_t chosen = adoption->chosen = sgp_guard_choose(count, apart, judges ? own : NULL);
    adoption->other = chosen == 0;
    for (uint32_t j = 0; j < count; j++)
        if (j != chosen && !(apart[j][chosen] <= apart[adoption->other][chosen]))
            adoption->other = j;
    adoption->apart = sgp_relative_difference(squares[adoption->other][chosen], norms[chosen]);
}

static void run_adopt(struct sgp_trainer *trainer, struct sgp_work *work)
{
    struct sgp_adoption *adoption = &work->adoption;
    if (adoption->count > 1)
        compare(adoption, trainer, work->weight, work->slice);
    sgp_copy_adopt(trainer, *adoption->places[adoption->chosen],
        adoption->weight / adoption->candidates[adoption->chosen].weight, work->slice);
}

/* ---- any job ---- */

bool sgp_perform_run(const struct sgp_performer *performer, struct sgp_work *work)
{
    struct sgp_trainer *trainer = performer->trainer;
    struct sgp_slice slice = work->slice;
    switch (work->type) {
    case SGP_EFFECT_TRAIN:
        return run_train(trainer, work);
    case SGP_EFFECT_PUBLISH:
        run_publish(performer, work);
        break;
    case SGP_EFFECT_ABSORB:
        sgp_absorb_run(performer, work);
        break;
    case SGP_EFFECT_COMPENSATE:
        sgp_copy_compensate(*work->place, trainer, *work->other, (float)work->factor, slice);
        break;
    case SGP_EFFECT_RECEIVE_TOKEN:
        sgp_copy_receive_token(performer->copy, trainer, work->place, *work->other,
            (float)work->factor, work->computes);
        break;
    case SGP_EFFECT_RESTORE:
        if (work->compressor != SGP_COMPRESSOR_NONE)
            add_decoded(performer, work, *work->place + slice.first, (float)work->factor);
        else
            trainer->methods->restore(
                trainer, *work->place + slice.first, (float)work->factor, slice.first, slice.count);
        break;
    case SGP_EFFECT_ADOPT:
        run_adopt(trainer, work);
        break;
    case SGP_EFFECT_FOLLOW:
        if (work->adds)
            sgp_copy_add(performer->copy, *work->place, slice);
        if (work->place == NULL || work->adds)
            sgp_copy_return(performer->copy, trainer, slice);
        else
            sgp_copy_follow(performer->copy, trainer, work->place, slice);
        break;
    case SGP_EFFECT_SCALE:
        trainer->methods->scale(trainer, work->factor, slice.first, slice.count);
        break;
    case SGP_EFFECT_OUTER:
        trainer->methods->outer(trainer, work->weight);
        break;
    default:
        trainer->methods->sketch(trainer, work->weight, &work->sketch);
    }
    return false;
}

/* ---- after a job ---- */

struct sgp_event sgp_perform_trained(int code, const struct sgp_training *training, uint32_t steps)
{
    bool single = training->samples > 0 && training->samples <= steps;
    bool told = code == 0 && training->learning_rate > 0 && training->learning_rate <= SGP_RATE_MAX;
    return (struct sgp_event){.type = SGP_EVENT_TRAINED,
        .code = code,
        .update = code == 0 && !single ? training->update : 0,
        .rate = told ? training->learning_rate : 0};
}

bool sgp_perform_end(
    struct sgp_performer *performer, const struct sgp_work *work, struct sgp_event *ret_event)
{
    if (work->looks)
        sgp_lengths_look(&performer->lengths, &work->measure);
    bool all = work->slice.count == performer->trainer->parameters;
    if (work->type == SGP_EFFECT_PUBLISH)
        performer->packed[work->slot] = all ? work->packed : 0;
    if (work->type == SGP_EFFECT_PUBLISH && work->packed > 0)
        performer->lost = work->lost;
    *ret_event = work->type == SGP_EFFECT_TRAIN
                     ? sgp_perform_trained(work->code, &work->training, work->steps)
                 : work->type == SGP_EFFECT_SKETCH
                     ? (struct sgp_event){.type = SGP_EVENT_SKETCHED, .sketch = &work->sketch}
                     : (struct sgp_event){.type = work->answer, .slot = work->slot};
    return work->answer != 0;
}

const struct sgp_adoption *sgp_perform_adoption(
    const struct sgp_performer *performer, const struct sgp_work *work)
{
    const struct sgp_adoption *adoption = &work->adoption;
    bool compared = work->type == SGP_EFFECT_ADOPT && adoption->count > 1;
    return compared && adoption->files == performer->files ? adoption : NULL;
}

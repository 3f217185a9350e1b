/* SPDX-License-Identifier: Apache-2.0 */
/* The performer: a core's jobs as work on vectors. The daemon and the simulator both call it, so
 * what the simulator proves of a job holds for the daemon.
 *
 * A job is an effect that an event answers, or an effect before such an effect (sgp/driver.h:
 * `work`). A job takes three steps: begin, when the core asks for it; run, in the order of the begins;
 * end, in the same order.
 *
 *     sgp_perform_begin(performer, effect, &work);         the loop thread
 *     while (sgp_perform_run(performer, &work)) {}         the compute thread
 *     if (sgp_perform_end(performer, &work, &event)) ...   the loop thread: post the event
 *
 * A performer owns the vectors that the core names by slots, snapshots and receive buffers; and the
 * copy of a worker, and what its updates have left out. Jobs exchange vectors where they would copy
 * them (sgp/buffer.h).
 *
 * Thread: the loop thread, but for sgp_perform_run: that is the compute thread's, or any one's
 * while it rests. It changes nothing but its work, the trainer and the vectors. */
#ifndef SGP_PERFORM_H
#define SGP_PERFORM_H

#include "sgp/buffer.h"
#include "sgp/choose.h"
#include "sgp/node.h"
#include "sgp/payload.h"
#include "sgp/trainer.h"

/* A payload that is changed in its place as it comes (struct sgp_fold), and measured on the way. */
struct sgp_fold_work {
    const float *source; /* the snapshot: as many values as the payload has */
    float keep, fraction;
    struct sgp_codec codec; /* by which the part 1 - keep of it was given, */
    float given;            /* rounded once */
    /* Of the distance between the payload's estimate and that of `source`: the runs that are compared
     * (sgp_kernels_stride); 0: none is. The scales are those of the kernels' `distance`. */
    uint64_t stride;
    float their_scale, own_scale;
    double difference, norm; /* of what was compared so far; zeros at first */
};

/* Change values[0..count), which are those from `first` on of the payload: a multiple of SGP_KERNELS_RUN, as `count` is but
 * at the end. Returns the largest magnitude of what came, and in *ret_squares the sum of its squares. */
SGP_API float sgp_fold_values(struct sgp_fold_work *folding, double *ret_squares, float *values,
    uint64_t first, uint64_t count);

/* One job. By value; its places are the performer's. */
struct sgp_work {
    enum sgp_effect_type type;
    enum sgp_event_type answer; /* 0: none */
    uint32_t slot;              /* that the answer names */
    enum sgp_publish purpose;   /* PUBLISH */
    sgp_round round; /* PUBLISH: of the snapshot; ABSORB: of the share; TRAIN: the turn */
    double weight;   /* w of x, when this was asked for; 0: x is no estimate */
    double factor;   /* what the effect calls keep, fraction, factor or pace */
    struct sgp_slice slice;
    enum sgp_compressor
        compressor; /* PUBLISH, RESTORE: what is given, or comes home, is what that makes of it */
    /* Where the vectors lie, to be looked at when the work runs: one before it may exchange them. */
    float **place; /* of the slot; NULL: it has none */
    float *
        *other; /* COMPENSATE, VISIT: of the snapshot; ABSORB: of that to compare with, or NULL */
    uint32_t steps, taken; /* TRAIN; the owner may lower `steps` to what was taken */
    bool computes;         /* VISIT */
    bool folded;           /* ABSORB: the place holds what x becomes */
    bool adds;             /* FOLLOW: the place holds a change of the copy */
    bool looks;            /* PUBLISH: the snapshot is measured */
    uint64_t key;          /* PUBLISH: of chance */
    uint64_t packed;       /* PUBLISH: bytes of what is given; 0: it is plain */
    double lost;           /* PUBLISH: of that, |s - project(s)| / |s|, over a sample */
    bool compares;         /* ABSORB: with `comparison` for what came of it */
    int code;              /* of TRAIN */
    union {                /* what came of it */
        struct {
            struct sgp_training
                training; /* of all steps; its loss is the mean over their samples */
            double loss;  /* their sum */
        };
        struct sgp_measure measure;
        struct sgp_comparison comparison;
        struct sgp_sketch sketch;
    };
};

struct sgp_performer {
    struct sgp_trainer *trainer;         /* borrowed */
    struct sgp_pool snapshots, receives; /* an index is a slot of the core */
    /* Per snapshot: the bytes of its coded payload of all values; 0: it has none, or it is not
     * known. */
    uint64_t *packed;
    uint32_t packed_count;
    double lost; /* of what was given coded last, as in struct sgp_work; NaN: nothing was */
    uint64_t spared_bytes; /* that coding kept off the line */
    /* Of a worker: the owners' parameters. Of an owner whose copies are coded: what its workers have.
     * Else NULL. */
    float *copy;
    /* Of a worker that gives coded updates; else NULL. What the updates so far have left out: it
     * goes with the next one. A trainer's state may hold it under this name. */
#define SGP_STATE_REST "rest"
    float *rest;
    struct sgp_chooser chooser; /* of updates, */
    uint64_t seed;              /* and of its chance */
    struct sgp_chooser copies;  /* of an owner's changes */
    struct sgp_lengths lengths; /* judges what comes (sgp_payload_judge) */
    /* The snapshot that is the node's own estimate: the one that was published last of all values for others. */
    uint32_t own_slot; /* SGP_SLOT_NONE: there is none */
    sgp_round own_round;
    double own_weight;
    uint64_t published;           /* of these, so many were made */
    struct sgp_fold_work folding; /* of the one share that is folded, */
    uint32_t folded;              /* and its slot; SGP_SLOT_NONE: none is */
};

/* Make vectors of `parameters` values for a core of these needs; those that are there stay. `copies`: and a copy. An
 * all-zero performer is one that has none. Returns 0, SGP_E_LIMIT or -ENOMEM. */
SGP_API int sgp_performer_reserve(struct sgp_performer *performer,
    const struct sgp_node_needs *needs, uint64_t parameters, bool copies);

/* A worker's updates are chosen so: make the vector of what is left out, all zero. Before
 * sgp_performer_begin. Returns 0 or -ENOMEM. */
SGP_API int sgp_performer_choose(struct sgp_performer *performer, const struct sgp_chooser *chooser,
    uint64_t seed, uint64_t parameters);

/* An owner's changes are chosen so. What they leave out needs no vector: it is x less the copy.
 * Before sgp_performer_begin. */
SGP_API void sgp_performer_choose_copies(
    struct sgp_performer *performer, const struct sgp_chooser *chooser);

/* Free the vectors. An all-zero performer is fine. */
SGP_API void sgp_performer_finish(struct sgp_performer *performer);

/* A process begins, whose parameters are the trainer's: what is known of lengths and snapshots is
 * forgotten, and nothing is left out yet. */
SGP_API void sgp_performer_begin(struct sgp_performer *performer, struct sgp_trainer *trainer);

/* An earlier process had left out `rest`, and nothing was given since. NULL: it had left out
 * nothing. A performer without a vector for it does nothing. */
SGP_API void sgp_performer_resume(struct sgp_performer *performer, const float *rest);

/* The codec of a compressor, for this performer's parameters. */
SGP_API struct sgp_codec sgp_perform_codec(
    const struct sgp_performer *performer, enum sgp_compressor compressor);

/* The effect SEND of a SHARE or an ESTIMATE with a payload: the values of that, which lie in the
 * slot. Says in the message how many bytes they take, which packing decides (sgp/codec.h). */
SGP_API const float *sgp_perform_send(
    struct sgp_performer *performer, struct sgp_message *message, uint32_t slot);

/* A payload comes into the slot: where it belongs. */
SGP_API float *sgp_perform_receive(struct sgp_performer *performer, uint32_t slot);

/* The effect FOLD, when so many `bytes` of a payload of `all` have come. Returns whether the payload is folded from now on,
 * by performer->folding; or, told that it is not to be any more, whether it was till now. If little is left to come, it is
 * let be, and absorbed as others are. */
SGP_API bool sgp_perform_fold(
    struct sgp_performer *performer, const struct sgp_effect *effect, uint64_t bytes, uint64_t all);

/* The effect is a job. Of VISIT the first half is done here: the token takes up what was told where that lies, for the
 * compute thread may be in the middle of a step, and has no business with either vector. */
SGP_API void sgp_perform_begin(
    struct sgp_performer *performer, const struct sgp_effect *effect, struct sgp_work *ret_work);

/* Do it. Returns true if it is a TRAIN that has steps left: x is in order after each. */
SGP_API bool sgp_perform_run(const struct sgp_performer *performer, struct sgp_work *work);

/* It has run. Returns whether it is to be answered, with *ret_event, which borrows of `work`. */
SGP_API bool sgp_perform_end(
    struct sgp_performer *performer, const struct sgp_work *work, struct sgp_event *ret_event);

/* How far the estimate of an ABSORB's share is from our own when we published in the same round, as
 * sgp_relative_difference has it. False: they were not compared. */
SGP_API bool sgp_perform_distance(const struct sgp_work *work, double *ret_distance);

/* The answer to training of so many steps. */
SGP_API struct sgp_event sgp_perform_trained(
    int code, const struct sgp_training *training, uint32_t steps);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The performer: a core's jobs as work on vectors. The daemon and the simulator both call it, so
 * the simulator checks the same jobs as the daemon runs.
 *
 * A job is an effect that an event answers, or an effect before such an effect (sgp/driver.h:
 * `work`). A job has three steps: begin, when the core asks for it; run, in the order of the
 * begins; end, in the same order.
 *
 *     sgp_perform_begin(performer, effect, &work);         the loop thread
 *     while (sgp_perform_run(performer, &work)) {}         the compute thread
 *     if (sgp_perform_end(performer, &work, &event)) ...   the loop thread: post the event
 *
 * A performer owns the vectors that the core names by slots (snapshots and receive buffers), the
 * copy of a worker, and the rest of its updates. Jobs swap vectors instead of copying them
 * (sgp/buffer.h).
 *
 * Thread: the loop thread, except for sgp_perform_run. That runs on the compute thread, or on any
 * thread while the compute thread is idle. It changes only its work, the trainer, the vectors and
 * the guard's distances. */
#ifndef SGP_PERFORM_H
#define SGP_PERFORM_H

#include "sgp/buffer.h"
#include "sgp/choose.h"
#include "sgp/guard.h"
#include "sgp/node.h"
#include "sgp/payload.h"
#include "sgp/trainer.h"

/* A payload that is changed in place while it arrives (struct sgp_fold), and measured on the
 * way. */
struct sgp_fold_work {
    const float *source; /* the snapshot, with as many values as the payload */
    float keep, fraction;
    struct sgp_codec codec; /* by which the fraction 1 - keep of it was given, */
    float given;            /* 1 - keep, rounded once */
    /* For the distance between the payload's estimate and that of `source`: the stride of the
     * compared runs (sgp_kernels_stride); 0: nothing is compared. The scales are those of the
     * kernels' `distance`. */
    uint64_t stride;
    float their_scale, own_scale;
    double difference, norm; /* of the values compared so far; zeros at first */
    bool guarded;            /* the difference of all values is measured, too: */
    double distance_squared;
};

/* Change values[0..count), which begin at value `first` of the payload. `first` is a multiple of
 * SGP_KERNELS_RUN, and so is `count` except at the end. Returns the largest magnitude of the
 * received values, and in *ret_squares the sum of their squares. */
float sgp_fold_values(struct sgp_fold_work *folding, double *ret_squares, float *values,
    uint64_t first, uint64_t count);

/* How far a share may count in x. The guard decides when the job runs. */
struct sgp_admission {
    bool judged;     /* in: the guard judges this share. Out: it did */
    uint32_t peer;   /* its source */
    uint64_t files;  /* the performer's count when the job was requested */
    double weight;   /* dw */
    float keep;      /* of a folded share: x is this times the vector to compare with */
    double distance; /* of a folded share: that from x, measured while the share arrived */
    double part;     /* out: the part of the way to what the share says, 0 to 1 */
};

/* The estimates of which one is adopted (sgp_guard_choose). */
struct sgp_adoption {
    uint32_t count;
    struct sgp_candidate candidates[SGP_CANDIDATES_MOST];
    float **places[SGP_CANDIDATES_MOST];
    uint64_t files;  /* the performer's count when the job was requested */
    double weight;   /* of x with that estimate */
    bool trained;    /* x is an earlier model */
    uint32_t chosen; /* out: the index of the adopted estimate, */
    uint32_t other;  /* of the estimate that is furthest from it, */
    double apart;    /* and their distance as sgp_relative_difference has it */
};

/* One job, by value. Its places belong to the performer. */
struct sgp_work {
    enum sgp_effect_type type;
    enum sgp_event_type answer; /* 0: none */
    uint32_t slot;              /* that the answer names */
    enum sgp_publish purpose;   /* PUBLISH */
    sgp_round round; /* PUBLISH: of the snapshot; ABSORB: of the share; TRAIN: the turn */
    double weight;   /* w of x when the job was requested; 0: x is no estimate */
    double factor;   /* the effect's keep, fraction, factor or pace */
    struct sgp_slice slice;
    enum sgp_compressor compressor; /* PUBLISH, RESTORE: of the given or returned values. */
    /* The places of the vectors, which are read when the work runs: an earlier job may swap
     * them. */
    float **place; /* of the slot; NULL: the job has none */
    /* COMPENSATE, RECEIVE_TOKEN: of the snapshot. ABSORB: of the vector to compare with, or
     * NULL. */
    float **other;
    uint32_t steps, taken; /* TRAIN; the job's owner may lower `steps` to the number taken */
    bool computes;         /* RECEIVE_TOKEN */
    bool folded;           /* ABSORB: the place holds x with all of the share */
    bool adds;             /* FOLLOW: the place holds a change of the copy */
    bool looks;            /* PUBLISH: the snapshot is measured */
    uint64_t key;          /* PUBLISH: of the random generator */
    uint64_t packed;       /* PUBLISH: bytes of the given values; 0: they are plain */
    double lost;           /* PUBLISH: |s - project(s)| / |s| of the given values, over a sample */
    bool compares;         /* ABSORB: the result is in `comparison` */
    int code;              /* of TRAIN */
    union { /* of the type of the job, most of it the result; the largest is the first */
        struct sgp_adoption adoption; /* ADOPT */
        struct {                      /* ABSORB */
            struct sgp_admission admission;
            struct sgp_comparison comparison;
        };
        struct { /* TRAIN */
            /* Of all steps; its loss is the mean over their samples. */
            struct sgp_training training;
            double loss; /* their sum */
        };
        struct sgp_measure measure; /* PUBLISH */
        struct sgp_sketch sketch;
    };
};

struct sgp_performer {
    struct sgp_trainer *trainer;         /* borrowed */
    struct sgp_pool snapshots, receives; /* an index is a slot of the core */
    /* For each snapshot the bytes of its coded payload of all values; 0: it has none, or the number
     * is not known. */
    uint64_t *packed;
    uint32_t packed_count;
    double lost; /* of the last coded values, as in struct sgp_work; NaN: nothing was coded */
    uint64_t spared_bytes; /* bytes that coding saved */
    /* Of a worker: the copy of the owners' parameters. Of an owner whose copies are coded: the copy
     * that its workers have. Else NULL. */
    float *copy;
    /* Of a worker that gives coded updates; else NULL. The values that its updates so far have left
     * out, which travel with the next one. A trainer's state may hold it under this name. */
#define SGP_STATE_REST "rest"
    float *rest;
    struct sgp_chooser chooser; /* of updates, */
    uint64_t seed;              /* of the chooser's random generator */
    struct sgp_chooser copies;  /* for an owner's changes */
    struct sgp_lengths lengths; /* for judging payloads (sgp_payload_judge) */
    struct sgp_guard *guard;    /* of received shares; NULL: every share is taken whole */
    uint64_t files;             /* the number of topology files so far, which number the peers */
    /* The snapshot that is the node's own estimate: the last snapshot that was published with all
     * values for others. */
    uint32_t own_slot; /* SGP_SLOT_NONE: there is none */
    sgp_round own_round;
    double own_weight;
    uint64_t published;           /* the number of such snapshots so far */
    struct sgp_fold_work folding; /* of the share that is folded; only one is at a time */
    uint32_t folded;              /* the slot of that share; SGP_SLOT_NONE: none is folded */
};

/* Make vectors of `parameters` values for a core of these needs; existing vectors stay. `copies`:
 * also make a copy. An all-zero performer has no vectors. Returns 0, SGP_E_LIMIT or -ENOMEM. */
int sgp_performer_reserve(struct sgp_performer *performer, const struct sgp_node_needs *needs,
    uint64_t parameters, bool copies);

/* Set the chooser of a worker's updates, and make the vector of the rest, all zero. Call it before
 * sgp_performer_begin. Returns 0 or -ENOMEM. */
int sgp_performer_choose(struct sgp_performer *performer, const struct sgp_chooser *chooser,
    uint64_t seed, uint64_t parameters);

/* Set the chooser of an owner's changes. Their rest needs no vector: it is x less the copy. Call it
 * before sgp_performer_begin. */
void sgp_performer_choose_copies(
    struct sgp_performer *performer, const struct sgp_chooser *chooser);

/* Judge received shares by a guard of this multiple (sgp/guard.h). Call it before
 * sgp_performer_begin. Returns 0 or -ENOMEM. */
int sgp_performer_guard(struct sgp_performer *performer, double multiple);

/* From the next job on, peers are numbered by another topology file: the guard begins anew. */
void sgp_performer_renumber(struct sgp_performer *performer);

/* Free the vectors. An all-zero performer is allowed. */
void sgp_performer_finish(struct sgp_performer *performer);

/* A process begins with the trainer's parameters: forget lengths, distances and snapshots, and
 * clear the rest. */
void sgp_performer_begin(struct sgp_performer *performer, struct sgp_trainer *trainer);

/* Set the rest that an earlier process had, if nothing was given since. NULL: it had none. A
 * performer without a vector for the rest does nothing. */
void sgp_performer_resume(struct sgp_performer *performer, const float *rest);

/* The codec of a compressor, for this performer's parameters. */
struct sgp_codec sgp_perform_codec(
    const struct sgp_performer *performer, enum sgp_compressor compressor);

/* The effect SEND of a SHARE or an ESTIMATE with a payload. Returns its values, which lie in the
 * slot, and sets the number of their bytes in the message, which packing decides (sgp/codec.h). */
const float *sgp_perform_send(
    struct sgp_performer *performer, struct sgp_message *message, uint32_t slot);

/* The place for a payload that arrives into the slot. */
float *sgp_perform_receive(struct sgp_performer *performer, uint32_t slot);

/* The effect FOLD, when `bytes` of a payload of `all` have arrived. Returns whether the payload is
 * folded from now on, by performer->folding. If the effect ends the fold, returns whether it was
 * folded until now. If little is left to arrive, the payload is not folded, and absorbed as others
 * are. With a guard, a payload is folded only if it is not coded, and only over the node's own
 * estimate of this round. */
bool sgp_perform_fold(
    struct sgp_performer *performer, const struct sgp_effect *effect, uint64_t bytes, uint64_t all);

/* Begin the job of an effect. The first half of RECEIVE_TOKEN is done here: the token takes up the
 * offered update in place. The compute thread may be within a step then, and uses neither
 * vector. */
void sgp_perform_begin(
    struct sgp_performer *performer, const struct sgp_effect *effect, struct sgp_work *ret_work);

/* Run the job. Returns true if it is a TRAIN that has steps left: x is consistent after each. */
bool sgp_perform_run(const struct sgp_performer *performer, struct sgp_work *work);

/* End the job, which has run. Returns whether the core needs an answer: *ret_event, which borrows
 * of `work`. */
bool sgp_perform_end(
    struct sgp_performer *performer, const struct sgp_work *work, struct sgp_event *ret_event);

/* The distance of an ABSORB's share from our own estimate when we published in the same round, as
 * sgp_relative_difference computes it. False: they were not compared. */
bool sgp_perform_distance(const struct sgp_work *work, double *ret_distance);

/* The part in which the guard took an ABSORB's share, and its source by the present file. False:
 * the share was not judged, or its source had a number of a former file. */
bool sgp_perform_admission(const struct sgp_performer *performer, const struct sgp_work *work,
    uint32_t *ret_peer, double *ret_part);

/* Whether a folded share would be clipped if its ABSORB ran now, which is one more pass over the
 * values. Call it between the job's begin and its run, while no other job of the performer is
 * pending: jobs change the bound. */
bool sgp_perform_clips(const struct sgp_performer *performer, const struct sgp_work *work);

/* Which of several estimates an ADOPT chose; part of `work`. NULL: there was one, or the peers have
 * numbers of a former file. */
const struct sgp_adoption *sgp_perform_adoption(
    const struct sgp_performer *performer, const struct sgp_work *work);

/* The event that answers a training of `steps` steps. */
struct sgp_event sgp_perform_trained(int code, const struct sgp_training *training, uint32_t steps);

#endif

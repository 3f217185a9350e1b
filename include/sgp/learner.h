/* SPDX-License-Identifier: Apache-2.0 */
/* The built-in trainer: a model, an optimiser, a schedule and the rows of this node.
 *
 * Every epoch visits each training row exactly once, in a permutation that is a pure function of
 * (seed, node, epoch). A step takes `batch` rows, or more where the schedule lets the batch grow, the last one of an epoch
 * what is left. An optimiser that leaves out noise is given the gradients of two halves of each batch. So an epoch
 * has ceil(rows / batch) steps, and each step's gradient is the mean over its own rows. All that a
 * later step depends on besides x, what the optimiser keeps and the outer step's vectors is the number of steps taken.
 * A step's learning rate is the schedule's in the middle of that step, so that a warm-up does not
 * waste its first step at zero.
 *
 * What dropout drops follows from seed, node and number of steps. Running statistics (norm batch) are
 * written to x after the optimiser's step, whatever that made of them; a step at rate 0 leaves them.
 * If the model begins with an embedding, features are whole numbers, and bytes are taken as they are.
 *
 * Loss is that of sgp/loss.h with its settings, without the weight decay. Accuracy is the fraction
 * of rows whose greatest output is the label's; under binary cross-entropy the fraction of all
 * values, of all rows and outputs, that are 1 where the model says more than 1/2, and 0 elsewhere.
 *
 * Thread: as every trainer, see sgp/trainer.h. Matrix products run in OpenBLAS, but for layers of few
 * outputs; its threads are the process's: two learners must not train at the same time. Nothing
 * allocates after create, but for oneDNN within the products of SGP_PRECISION_BF16. */
#ifndef SGP_LEARNER_H
#define SGP_LEARNER_H

#include "sgp/dataset.h"
#include "sgp/model.h"
#include "sgp/optimizer.h"
#include "sgp/outer.h"
#include "sgp/precision.h"
#include "sgp/schedule.h"
#include "sgp/trainer.h"

#define SGP_BATCH_MAX 65536u  /* rows of a step */
#define SGP_THREADS_MAX 1024u /* threads of OpenBLAS */

struct sgp_learner_settings {
    struct sgp_model model;
    struct sgp_optimizer_settings optimizer;
    struct sgp_outer_settings outer;
    struct sgp_schedule schedule;
    uint32_t batch;   /* at first: 1..SGP_BATCH_MAX; more than there are rows means all of them */
    uint32_t threads; /* 1..SGP_THREADS_MAX; sets OpenBLAS's for the whole process */
    enum sgp_precision precision; /* of the matrix products, in training and evaluation alike */
    uint64_t seed; /* of the fleet: equal on all nodes, so that all start from equal parameters */
    uint32_t node; /* this node's index: nodes visit their rows in unlike orders */
    /* With labels or values; borrowed, outlives the learner. NULL: a relay's, which takes no steps; then optimiser and
     * schedule do not matter. */
    const struct sgp_dataset *train;
    const struct sgp_dataset
        *evaluation; /* the same columns; borrowed; NULL: none, as without `train` */
};

struct sgp_learner;

/* Check the settings against each other and the data, and allocate nothing. *ret_workspace: the bytes that a
 * learner takes beside the vectors of the model, which are for as many rows as it takes at one time on their
 * way through the network, for training or evaluation, and the order of the training rows. Returns 0;
 * SGP_E_CONFIG, SGP_E_DATA or SGP_E_LIMIT with *error (may be NULL) filled. */
int sgp_learner_check(
    const struct sgp_learner_settings *settings, struct sgp_error *error, uint64_t *ret_workspace);

/* Check the settings, set all memory aside, and initialise x. Errors as sgp_learner_check, and -ENOMEM. */
int sgp_learner_create(const struct sgp_learner_settings *settings, struct sgp_error *error,
    struct sgp_learner **ret_learner);
void sgp_learner_destroy(struct sgp_learner *learner); /* NULL is fine */

/* The learner as a trainer: the same object, destroyed once, by either name. `train` gives
 * SGP_E_DIVERGED, and leaves x, optimiser and position as before the failing step, when the loss or
 * the gradient is not finite; `evaluate` gives it when the loss is not. Without evaluation rows,
 * `evaluate` gives 0 samples and NaN; accuracy is NaN for regression. */
struct sgp_trainer *sgp_learner_trainer(struct sgp_learner *learner);

/* ceil(rows / batch): the steps of the epoch that the learner is in. */
uint64_t sgp_learner_steps_per_epoch(const struct sgp_learner *learner);

/* outputs[rows x model.outputs] for features[rows x model.inputs], both row-major, at x / weight:
 * probabilities where the loss brings a softmax or sigmoid, else the outputs as they are. Reads x
 * only; the trainer's thread. */
void sgp_learner_predict(struct sgp_learner *learner, double weight, const float *features,
    uint64_t rows, float *outputs);

#endif

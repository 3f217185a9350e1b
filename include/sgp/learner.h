/* SPDX-License-Identifier: Apache-2.0 */
/* The built-in trainer: a model, an optimiser, a schedule and the rows of this node.
 *
 * An epoch takes each training row exactly once, in a permutation that is a pure function of (seed,
 * node, epoch). A step takes `batch` rows, or more if the schedule grows the batch. The last step
 * of an epoch takes the rest. So an epoch has ceil(rows / batch) steps, and each step's gradient is
 * the mean over its own rows. An optimiser that leaves out noise gets the gradients of the two
 * halves of each batch. Later steps depend on x, the optimiser's vectors, the outer step's vectors,
 * and the number of steps taken. Nothing else is state. The learning rate of a step is the
 * schedule's rate in the middle of that step. Otherwise a warm-up would waste its first step at
 * rate zero.
 *
 * The values that dropout drops depend on seed, node and number of steps. Running statistics (norm
 * batch) are written to x after the optimiser's step, and replace what the step made of them. A
 * step at rate 0 leaves them. If the model begins with an embedding, features are whole numbers,
 * and bytes are not scaled.
 *
 * Local layers (sgp_model_set_local) take their steps at weight 1, by an optimiser of their own: x,
 * what it publishes and what it receives never have their parameters. clip_norm then clips the
 * gradients of x and of the local layers each by itself. Adopting another x leaves them.
 *
 * Private steps (Abadi et al. 2016, algorithm 1) take each row with the probability batch / rows,
 * clip its gradient, add normal noise to the sum, and divide by `batch`. Momentum, clip_norm and
 * decay then work on the noisy gradient. Rows, noise and the values that dropout drops come from a
 * secret stream: no seed, no restart and no checkpoint repeats them. Steps of an epoch are counted
 * as if it took each row once. The loss of a step is that of the rows that passed through the
 * network, whether drawn or not. `train` then tells no digest of its steps, and fails only if x is
 * not finite. The caller counts what the steps cost (sgp/privacy.h).
 *
 * Loss is defined in sgp/loss.h, with its settings, without the weight decay. If values are scaled,
 * it is that of the scaled values; predictions and measures are in the units of the label columns.
 * Accuracy is the fraction of rows whose greatest output is the label's. Under binary
 * cross-entropy, accuracy counts the values of all rows and outputs. A value of 1 counts if the
 * model gives more than 1/2, a value of 0 otherwise.
 *
 * Thread: as every trainer, see sgp/trainer.h. Matrix products run in OpenBLAS, except for layers
 * of few outputs. OpenBLAS's threads belong to the process, so two learners must not train at the
 * same time. Nothing allocates after creation, except oneDNN in products of SGP_PRECISION_BF16. */
#ifndef SGP_LEARNER_H
#define SGP_LEARNER_H

#include "sgp/dataset.h"
#include "sgp/model.h"
#include "sgp/noise.h"
#include "sgp/optimizer.h"
#include "sgp/outer.h"
#include "sgp/precision.h"
#include "sgp/schedule.h"
#include "sgp/trainer.h"

#define SGP_BATCH_MAX 65536u  /* rows of a step */
#define SGP_THREADS_MAX 1024u /* threads of OpenBLAS */

/* How a row is kept from showing in x. */
struct sgp_learner_privacy {
    double clip;  /* greatest length of a row's gradient; 0: steps are not private */
    double noise; /* deviation of the noise of a step's sum, as a multiple of `clip`; >= 0 */
    uint8_t key[SGP_NOISE_KEY_BYTES]; /* secret, of the operating system, new for each learner */
};

struct sgp_learner_settings {
    struct sgp_model model;
    struct sgp_optimizer_settings optimizer;
    struct sgp_outer_settings outer;
    struct sgp_schedule schedule;
    /* at first: 1..SGP_BATCH_MAX; a batch above the number of rows takes all rows */
    uint32_t batch;
    uint32_t threads; /* 1..SGP_THREADS_MAX; sets the threads of OpenBLAS for the whole process */
    enum sgp_precision precision; /* of the matrix products, in training and in evaluation */
    bool frozen;                  /* steps change the local layers alone, and x never */
    /* Then the model has dense, dropout and residual layers alone, none of them local; the rule
     * leaves out no noise; the precision is float32; and the batch does not grow. */
    struct sgp_learner_privacy privacy;
    uint64_t seed; /* of the fleet: equal on all nodes, so that all start from equal parameters */
    uint32_t node; /* this node's index: each node takes its rows in another order */
    /* With labels or values; borrowed, outlives the learner. NULL for a relay, which takes no
     * steps. Then the optimiser and the schedule are ignored. The values are scaled if and only if
     * the settings of the model's loss have target_scales (asserted). */
    const struct sgp_dataset *train;
    /* the same columns; borrowed; NULL: none, as without `train` */
    const struct sgp_dataset *evaluation;
};

struct sgp_learner;

/* Check the settings against each other and the data, and allocate nothing. *ret_workspace is the
 * memory in bytes that a learner uses beside the vectors of the model. It holds the order of the
 * training rows, and the rows that pass through the network at one time. Returns 0; SGP_E_CONFIG,
 * SGP_E_DATA or SGP_E_LIMIT with *error (may be NULL) filled. */
int sgp_learner_check(
    const struct sgp_learner_settings *settings, struct sgp_error *error, uint64_t *ret_workspace);

/* Check the settings, allocate all memory, and initialise x. Errors as sgp_learner_check, and
 * -ENOMEM. */
int sgp_learner_create(const struct sgp_learner_settings *settings, struct sgp_error *error,
    struct sgp_learner **ret_learner);
void sgp_learner_destroy(struct sgp_learner *learner); /* NULL is fine */

/* The learner as a trainer. It is the same object, destroyed once, by either name. `train` returns
 * SGP_E_DIVERGED if the loss or the gradient is not finite. Then x, optimiser and position are as
 * before the failing step. `evaluate` returns SGP_E_DIVERGED if the loss is not finite. Without
 * evaluation rows, `evaluate` gives 0 samples and NaN. Accuracy is NaN for regression. */
struct sgp_trainer *sgp_learner_trainer(struct sgp_learner *learner);

/* ceil(rows / batch): the number of steps in the learner's current epoch. */
uint64_t sgp_learner_steps_per_epoch(const struct sgp_learner *learner);

/* outputs[rows x model.outputs] for features[rows x model.inputs], both row-major, at x / weight.
 * If the loss includes a softmax or sigmoid, the outputs are probabilities. Otherwise they are the
 * outputs of the last layer, in the units of the label columns. Reads x only; the trainer's
 * thread. */
void sgp_learner_predict(struct sgp_learner *learner, double weight, const float *features,
    uint64_t rows, float *outputs);

/* Exchange all parameters, x at weight 1 and the local ones, with the values of a model file
 * (sgp_model_values of them). A second call restores them. The trainer's thread. */
void sgp_learner_exchange(struct sgp_learner *learner, float *values);

#endif

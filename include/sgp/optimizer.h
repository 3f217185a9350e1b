/* SPDX-License-Identifier: Apache-2.0 */
/* Optimisers: what one gradient does to the biased numerator x (Assran et al. 2019, Algorithm 1).
 *
 * With z = x / w the estimate, g the gradient at z, m the momentum, G = g + weight_decay * z:
 *
 *   sgd                                      x -= rate * G
 *   momentum   u = m * u + G                 x -= rate * u
 *   nesterov   u = m * u + G                 x -= rate * (G + m * u)
 *   rmsprop    s = alpha * s + (1 - alpha) * G^2
 *                                            x -= rate * G / (sqrt(s) + epsilon)
 *   adam       p, s, r of G                  x -= rate * r
 *   adamw      p, s, r of g                  x -= rate * (r + weight_decay * z)
 *   lars       u = m * u + local * G         x -= rate * u
 *              with local = trust * |z| / (|g| + weight_decay * |z|)
 *   lamb       p, s, r of g                  x -= rate * |z| / |d| * d
 *              with d = r + weight_decay * z
 *
 * In step t of Adam and of rules derived from it, with squares and roots of each value:
 *
 *   p = beta1 * p + (1 - beta1) * g          s = beta2 * s + (1 - beta2) * g^2
 *   r = p / (1 - beta1^t) / (sqrt(s / (1 - beta2^t)) + epsilon)
 *
 * Noise of a fleet. The gradient of one batch is the gradient of all data plus noise of variance V.
 * The mean of n nodes' gradients has noise V / n. So s of a node is larger than the s of one
 * process that computes the batches of all nodes. Steps divided by its root are too short. With
 * noise_fraction f = 1 / n, the rest of V is left out of the divisor. Then n nodes that average
 * after each step take about the steps of that process at the same rate.
 *
 * V is estimated from the deviation D of the gradient, whose square has the expectation V. With the
 * mean of two halves, ga of a rows and gb of b rows, D = (ga - gb) sqrt(a b) / (a + b). McCandlish
 * et al. 2018, appendix A, measure the noise of a norm in this way. With h the mean of D^2, as s is
 * the mean of g^2:
 *
 *   h = beta2 * h + (1 - beta2) * D^2, in rmsprop with alpha
 *   s    is replaced by the larger of f * s and s - (1 - f) * h, where a root is taken
 *   |g|  of lars and of clip_norm: |g|^2 less (1 - f) |D|^2, at least f * |g|^2
 *   |d|  of lamb: its square less the noise of r, at least f times the original square. That
 *        noise is (1 - f) c times the sum of h / (1 - beta2^t) over the squares of the divisors
 *        of r, and c is the variance of p / (1 - beta1^t) in parts of V:
 *        (1 - beta1) (1 + beta1^t) / ((1 + beta1) (1 - beta1^t))
 *
 * A step without D leaves h unchanged. With f = 1 none of this is computed. The other rules are
 * linear in the gradient, and do not need it.
 *
 * Sources: rmsprop Tieleman, Hinton 2012; adam Kingma, Ba 2015; adamw Loshchilov, Hutter 2019; lars
 * You, Gitman, Ginsburg 2017; lamb You et al. 2020.
 *
 * The norms of lars and lamb are computed for each tensor. If one of the norms is 0, their ratio is
 * replaced by 1. So is the ratio of a tensor with one dimension (biases). In lars, local is then
 * `trust`. Weight decay spares such tensors in adamw, lars and lamb, and applies to all parameters
 * in the other rules.
 *
 * The gradient is clipped before the rule. First each value is clipped to clip_value in magnitude,
 * then all values together to a norm of clip_norm.
 *
 * The rate is applied to x directly, without a factor w. The state of a rule is local to the node
 * and never shared. A step is one fused pass over memory, or two where norms are needed. Every
 * instruction set gives the same bits.
 *
 * Thread: an optimizer belongs to the thread of its trainer. */
#ifndef SGP_OPTIMIZER_H
#define SGP_OPTIMIZER_H

#include "sgp/trainer.h"

/* The optimisers: the end of the constant's name, as in SGP_OPTIMIZER_SGD, and the word. */
#define SGP_OPTIMIZERS(X)                                                                          \
    X(SGD, sgd)                                                                                    \
    X(MOMENTUM, momentum)                                                                          \
    X(NESTEROV, nesterov)                                                                          \
    X(ADAM, adam)                                                                                  \
    X(ADAMW, adamw)                                                                                \
    X(RMSPROP, rmsprop)                                                                            \
    X(LARS, lars)                                                                                  \
    X(LAMB, lamb)

enum sgp_optimizer_kind { /* from 1 to SGP_OPTIMIZER_MOST */
    SGP_OPTIMIZER_NONE,
#define SGP_OPTIMIZER_KIND(constant, word) SGP_OPTIMIZER_##constant,
    SGP_OPTIMIZERS(SGP_OPTIMIZER_KIND)
#undef SGP_OPTIMIZER_KIND
        SGP_OPTIMIZER_END
};
#define SGP_OPTIMIZER_MOST (SGP_OPTIMIZER_END - 1)
#define SGP_OPTIMIZER_WORD(constant, word) "|" #word
#define SGP_OPTIMIZER_WORDS (&SGP_OPTIMIZERS(SGP_OPTIMIZER_WORD)[1]) /* "sgd|momentum|..." */
#define SGP_OPTIMIZER_VECTORS_MAX 3u /* most vectors that a rule keeps */

#define SGP_EPSILON_MIN 1e-30
#define SGP_TRUST_MIN 1e-9
#define SGP_TRUST_MAX 1e3
#define SGP_NOISE_MIN 1e-6 /* least noise_fraction: a million nodes */
#define SGP_CLIP_MIN 1e-30 /* a bound on the gradient is 0 for none, or from this */
#define SGP_CLIP_MAX 1e30  /* to that */

struct sgp_optimizer_settings {
    enum sgp_optimizer_kind kind;
    double momentum;            /* [0, 1) */
    double weight_decay;        /* finite, >= 0; acts on the estimate z */
    double beta1, beta2, alpha; /* [0, 1) */
    double epsilon;             /* SGP_EPSILON_MIN..1 */
    double trust;               /* SGP_TRUST_MIN..SGP_TRUST_MAX */
    double clip_norm, clip_value;
    /* SGP_NOISE_MIN..1: the part of V that the mean over nodes has. The value is 1 / n for n equal
     * nodes, and 1 for one node. */
    double noise_fraction;
};

/* The settings that only some rules use, as bits. A rule ignores all others. */
enum sgp_optimizer_use {
    SGP_USES_MOMENTUM = 1,
    SGP_USES_BETAS = 2,
    SGP_USES_ALPHA = 4,
    SGP_USES_EPSILON = 8,
    SGP_USES_TRUST = 16,
    SGP_USES_NOISE = 32 /* noise_fraction */
};

struct sgp_optimizer {
    struct sgp_optimizer_settings settings;
    struct sgp_tensors tensors; /* of the parameters */
    uint64_t parameters;
    uint64_t steps; /* steps taken, for rules that correct their bias by this count */
    /* the rule's vectors of `parameters` values each, owned */
    float *vectors[SGP_OPTIMIZER_VECTORS_MAX];
};

/* Whether the settings are in range: 0, or SGP_E_CONFIG with *error filled. */
int sgp_optimizer_check(const struct sgp_optimizer_settings *settings, struct sgp_error *error);

/* The word for a rule. */
const char *sgp_optimizer_name(enum sgp_optimizer_kind kind);

/* How many vectors, as long as x, a rule keeps from step to step. The settings must be checked. */
uint32_t sgp_optimizer_vectors(const struct sgp_optimizer_settings *settings);

/* The bits of enum sgp_optimizer_use. */
unsigned sgp_optimizer_uses(enum sgp_optimizer_kind kind);

/* Start with vectors of zeros. The settings must be checked. The tensors' ends are borrowed.
 * Returns 0, SGP_E_LIMIT (parameters not in 1..SGP_PARAMETERS_MAX) or -ENOMEM. On failure
 * *optimizer is all zero. */
int sgp_optimizer_init(struct sgp_optimizer *optimizer,
    const struct sgp_optimizer_settings *settings, uint64_t parameters,
    const struct sgp_tensors *tensors);
void sgp_optimizer_finish(struct sgp_optimizer *optimizer);

/* Whether a step uses the deviation of its gradient. This is so if the rule leaves out noise, and
 * noise_fraction is below 1. */
bool sgp_optimizer_needs_deviation(const struct sgp_optimizer_settings *settings);

/* Take one step with the gradient of the loss at x / weight (weight > 0), at a learning rate >= 0.
 * The gradient must be finite; it is clipped in place. `deviation` is D of the gradient, finite,
 * and clip_norm scales it with the gradient. NULL: D is not used, or not known, as for a batch of
 * one row. Without D, the noise of earlier steps is left out. */
void sgp_optimizer_step(struct sgp_optimizer *optimizer, float *x, float *gradient,
    float *deviation, double weight, double rate);

/* Add the rule's vectors and counter to *state, borrowed until the next step. */
void sgp_optimizer_state(const struct sgp_optimizer *optimizer, struct sgp_trainer_state *state);
/* Resume from the rule's part of *state, which is copied. If that part is incomplete, the rule
 * starts with zeros. */
void sgp_optimizer_resume(struct sgp_optimizer *optimizer, const struct sgp_trainer_state *state);

#endif

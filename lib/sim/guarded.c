/* SPDX-License-Identifier: Apache-2.0 */
/* The guard's rules (sgp/guard.h) once more, value by value in double precision, with distances of
 * their own. They check each guarded share, and count what the guard took from it. They also check
 * which of several estimates was adopted. */
#include "sim/world.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LATEST 5u
/* Distances are sums of float32. Below this part of the lengths of both estimates they are
 * rounding, and so is a bound that was made of them. */
#define ROUNDING 1e-5
#define PART_SLACK 1e-4 /* of a part of the way, for the same reason */
#define LONGEST 1e15    /* the square of a longer distance is no float32 */
#define LEAST 1e-18     /* the square of a lesser value is no normal number of float32 */

struct sgp_sim_word { /* what a source has said */
    uint32_t peer;    /* its number in the file */
    uint64_t said;
    double latest[LATEST];
};

int sgp_sim_create_words(struct sgp_sim_host *host)
{
    host->guarded.words = calloc(SGP_GUARD_SOURCES_MOST, sizeof *host->guarded.words);
    return host->guarded.words ? 0 : -ENOMEM;
}

void sgp_sim_free_words(struct sgp_sim_host *host)
{
    free(host->guarded.words);
}

static struct sgp_sim_word *word_of(struct sgp_sim_host *host, uint32_t peer)
{
    struct sgp_sim_guarded *guarded = &host->guarded;
    for (uint32_t i = 0; i < guarded->count; i++)
        if (guarded->words[i].peer == peer)
            return &guarded->words[i];
    sgp_assert(guarded->count < SGP_GUARD_SOURCES_MOST);
    guarded->words[guarded->count] = (struct sgp_sim_word){.peer = peer};
    return &guarded->words[guarded->count++];
}

static int ascending(const void *a, const void *b)
{
    double first, second;
    memcpy(&first, a, sizeof first);
    memcpy(&second, b, sizeof second);
    return (first > second) - (first < second);
}

static double median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, ascending);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

static double bound_of(const struct sgp_sim_host *host)
{
    const struct sgp_sim_guarded *guarded = &host->guarded;
    double medians[SGP_GUARD_SOURCES_MOST];
    for (uint32_t i = 0; i < guarded->count; i++) {
        double latest[LATEST];
        memcpy(latest, guarded->words[i].latest, sizeof latest);
        uint64_t said = guarded->words[i].said;
        medians[i] = median(latest, said < LATEST ? said : LATEST);
    }
    double c = host->sim->options.guard;
    if (guarded->count < 2)
        return 0;
    return guarded->count == 2 ? c * fmin(medians[0], medians[1])
                               : c * median(medians, guarded->count);
}

/* What a share says, compared with its target's estimate. */
struct saying {
    double weight, own; /* of the share, and of the target before it */
    double distance;
    double lengths; /* of both estimates, added */
};

static struct saying hear(
    const struct sgp_sim *sim, const struct sgp_work *work, const struct sgp_share *share)
{
    double difference = 0, ours = 0, theirs = 0;
    struct saying saying = {.weight = share->weight, .own = work->weight - share->weight};
    for (uint64_t i = 0; i < work->slice.count; i++) {
        double z = (double)sim->before[work->slice.first + i] / saying.own;
        double v = share->fraction * (double)sim->share[i] / share->weight;
        difference += (v - z) * (v - z);
        ours += z * z;
        theirs += v * v;
    }
    saying.distance = sqrt(difference);
    saying.lengths = sqrt(ours) + sqrt(theirs);
    return saying;
}

static void check_values(struct sgp_sim_host *host, const struct sgp_work *work,
    const struct saying *saying, double bound)
{
    struct sgp_sim *sim = host->sim;
    double part = saying->distance > bound ? bound / saying->distance : 1, finite = 0;
    double slack =
        saying->weight * (PART_SLACK * fmin(saying->distance, bound) + ROUNDING * saying->lengths +
                             LEAST * (double)work->slice.count);
    for (uint64_t i = 0; i < work->slice.count; i++) {
        uint64_t c = work->slice.first + i;
        double before = (double)sim->before[c], after = (double)sim->after[c];
        double z = before / saying->own, share = (double)sim->share[i];
        double whole = (double)(float)work->factor * share; /* as the count has it */
        double v = work->factor * share / saying->weight;
        double expected = before + saying->weight * (z + part * (v - z));
        finite += (after - after) + (whole - whole);
        sim->moved[c] += after - before - whole;
        if (fabs(after - expected) > slack + 4 * (double)FLT_EPSILON * (fabs(before) + fabs(after)))
            sgp_sim_fail(sim, SGP_E_STATE,
                "x[%llu] of %s becomes %.9g under its guard instead of %.9g", (unsigned long long)c,
                sgp_sim_name(sim, host->index), after, expected);
    }
    sim->overflown = isnan(finite);
}

bool sgp_sim_is_judged(const struct sgp_sim_host *host, const struct sgp_work *work)
{
    const struct sgp_admission *admission = &work->admission;
    bool has_own = work->weight - admission->weight >= (double)FLT_MIN;
    return host->sim->options.guard > 0 && (has_own || !(admission->weight > 0));
}

/* A share without weight says no estimate, and nothing of it is taken. */
static void check_refused(struct sgp_sim_host *host, const struct sgp_work *work)
{
    struct sgp_sim *sim = host->sim;
    host->trainer->methods->estimate(host->trainer, 1.0, sim->after);
    for (uint64_t i = 0; i < work->slice.count; i++) {
        uint64_t c = work->slice.first + i;
        sim->moved[c] -= (double)(float)work->factor * (double)sim->share[i];
        if (memcmp(&sim->before[c], &sim->after[c], sizeof sim->after[c]) != 0)
            sgp_sim_fail(sim, SGP_E_STATE,
                "x[%llu] of %s becomes %.9g by a share without weight, instead of %.9g",
                (unsigned long long)c, sgp_sim_name(sim, host->index), (double)sim->after[c],
                (double)sim->before[c]);
    }
    sim->summary.shares_guarded++;
    sim->summary.shares_clipped++;
}

void sgp_sim_check_guarded(
    struct sgp_sim_host *host, const struct sgp_work *work, const struct sgp_share *share)
{
    struct sgp_sim *sim = host->sim;
    if (sim->overflown)
        return;
    if (!(share->weight > 0)) {
        check_refused(host, work);
        return;
    }
    if (host->guarded.files != work->admission.files)
        host->guarded.count = 0;
    host->guarded.files = work->admission.files;
    host->trainer->methods->estimate(host->trainer, 1.0, sim->after);
    const struct saying saying = hear(sim, work, share);
    double bound = bound_of(host);
    check_values(host, work, &saying, bound);
    struct sgp_sim_word *word = word_of(host, work->admission.peer);
    word->latest[word->said++ % LATEST] = saying.distance;
    sim->summary.shares_guarded++;
    sim->summary.shares_clipped += saying.distance > bound;
}

/* ---- estimates ---- */

/* The distance between two models, which are values over a weight. Their lengths are added to
 * *lengths. */
static double between(const float *a, double a_weight, const float *b, double b_weight,
    uint64_t count, double *lengths)
{
    double difference = 0, first = 0, second = 0;
    for (uint64_t i = 0; i < count; i++) {
        double ours = (double)a[i] / a_weight, theirs = (double)b[i] / b_weight;
        difference += (ours - theirs) * (ours - theirs);
        first += ours * ours;
        second += theirs * theirs;
    }
    *lengths += sqrt(first) + sqrt(second);
    return sqrt(difference);
}

/* By how much estimate `index` is away from what judges it. */
static double away(
    const struct sgp_sim *sim, const struct sgp_adoption *adoption, uint32_t index, double *lengths)
{
    uint64_t count = sim->options.dimension;
    const float *values = *adoption->places[index];
    double weight = adoption->candidates[index].weight, sum = 0;
    if (adoption->count == 2)
        return adoption->trained && adoption->weight >= (double)FLT_MIN
                   ? between(values, weight, sim->before, adoption->weight, count, lengths)
                   : index;
    for (uint32_t i = 0; i < adoption->count; i++)
        sum += between(
            values, weight, *adoption->places[i], adoption->candidates[i].weight, count, lengths);
    return sum;
}

void sgp_sim_check_choice(struct sgp_sim_host *host, const struct sgp_adoption *adoption)
{
    struct sgp_sim *sim = host->sim;
    uint32_t chosen = adoption->chosen;
    bool numbered = adoption->files == host->performer.files;
    uint32_t source = host->file->hosts[adoption->candidates[chosen].peer];
    sim->summary.misled += numbered && sgp_sim_lies_of_estimate(sim, source);
    if (adoption->count < 2)
        return;
    sim->summary.compared++;
    double lengths = 0, taken = away(sim, adoption, chosen, &lengths);
    for (uint32_t i = 0; i < adoption->count && isfinite(lengths); i++) {
        double other = away(sim, adoption, i, &lengths);
        if (taken > other * (1 + PART_SLACK) + ROUNDING * lengths && lengths < LONGEST)
            sgp_sim_fail(sim, SGP_E_STATE, "%s adopts an estimate %.9g away, and another is %.9g",
                sgp_sim_name(sim, host->index), taken, other);
    }
}

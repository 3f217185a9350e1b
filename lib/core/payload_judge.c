/* SPDX-License-Identifier: Apache-2.0 */
/* Whether received values can belong to a model like this node's; see sgp/payload.h. Nothing is
 * coded or decoded here.
 *
 * The rule: docs/rules/mass.md */
#include "sgp/payload.h"

#include "sgp/status.h"

#include <math.h>

double sgp_payload_unit(double weight, double fraction, const struct sgp_topology *topology)
{
    if (weight <= 0)
        return sgp_topology_trainers(
            topology); /* a weightless share is measured by the number of nodes that train */
    return fraction > 0 ? weight / fraction : weight;
}

static double length_of(const struct sgp_measure *measure)
{
    return sqrt(measure->squares) / measure->unit;
}

void sgp_lengths_look(struct sgp_lengths *lengths, const struct sgp_measure *own)
{
    lengths->own_largest = (double)own->largest / own->unit;
    lengths->own = length_of(own);
}

static bool is_learnt(const struct sgp_lengths *lengths)
{
    return lengths->learnt >= SGP_LENGTHS_LEARNT;
}

static void learn(struct sgp_lengths *lengths, double length)
{
    double least = lengths->longest * SGP_LENGTH_FALLS, most = lengths->longest * SGP_LENGTH_GROWS;
    if (!is_learnt(lengths)) {
        lengths->learnt++;
        lengths->longest = fmax(lengths->longest, length);
    } else {
        lengths->longest = fmin(fmax(length, least), most);
    }
}

int sgp_payload_judge(
    struct sgp_lengths *lengths, const struct sgp_measure *came, uint64_t parameters)
{
    if (!isfinite(came->largest))
        return SGP_E_NOT_FINITE;
    if (came->largest <= 0) /* zeros tell nothing about lengths, and do no harm */
        return 0;
    double ones = sqrt(fmax((double)parameters, SGP_LENGTH_VALUES)), length = length_of(came);
    double usual = fmax(SGP_LENGTH_LEAST * ones, fmax(lengths->own, lengths->longest));
    if (!((double)came->largest / came->unit <= SGP_OUTSIZED * fmax(1, lengths->own_largest)))
        return SGP_E_OUTSIZED;
    if (is_learnt(lengths) && !(length <= SGP_LENGTH_MOST * usual))
        return SGP_E_OUTSIZED;
    learn(lengths, fmin(length, SGP_LENGTH_MOST * usual));
    return 0;
}

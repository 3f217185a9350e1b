/* SPDX-License-Identifier: Apache-2.0 */
/* The account of mass. It has four parts: what the node has, what it holds for later, what it gave
 * without an acknowledgement yet, and what is in doubt because the target is gone. No other file
 * writes it. Each posting moves weight between two accounts, or between an account and the outside.
 * `due` is the sum that all accounts must have. check.c computes the same sums again from the
 * shares themselves.
 *
 * The rule: docs/rules/mass.md */
#include "core/core.h"

#include <math.h>

/* ---- postings ---- */

static const struct {
    double here, held, owed, debt;
} postings[] = {
    [SGP_MASS_ACCEPT] = {.held = 1},
    [SGP_MASS_ABSORB] = {.held = -1, .here = 1},
    [SGP_MASS_GIVE] = {.here = -1, .owed = 1},
    [SGP_MASS_ACKNOWLEDGE] = {.owed = -1},
    [SGP_MASS_RETURN] = {.owed = -1, .here = 1},
    [SGP_MASS_DISPUTE] = {.owed = -1, .debt = 1},
    [SGP_MASS_PAY] = {.debt = -1},
    [SGP_MASS_RETURN_DEBT] = {.debt = -1, .here = 1},
    [SGP_MASS_TAKE_DEBT] = {.debt = 1},
    [SGP_MASS_OWE_STILL] = {.owed = 1},
    [SGP_MASS_DISSOLVE] = {.here = -1},
    [SGP_MASS_DROP] = {.held = -1},
    [SGP_MASS_VOID_OWED] = {.owed = -1},
    [SGP_MASS_VOID_DEBT] = {.debt = -1},
};

void sgp_mass_post(struct sgp_node *node, enum sgp_posting what, double weight)
{
    node->mass.weight += postings[what].here * weight;
    node->mass.held += postings[what].held * weight;
    node->mass.owed += postings[what].owed * weight;
    node->mass.debt += postings[what].debt * weight;
    node->mass.due +=
        (postings[what].here + postings[what].held + postings[what].owed + postings[what].debt) *
        weight;
}

void sgp_mass_set(struct sgp_node *node, double weight)
{
    node->mass.due += weight - node->mass.weight;
    node->mass.weight = weight;
}

/* ---- members ---- */

void sgp_mass_know_members(struct sgp_node *node, double members)
{
    node->mass.members_most = fmax(node->mass.members_most, members);
}

void sgp_mass_set_members(struct sgp_node *node, double surplus, double covered)
{
    node->mass.surplus = surplus;
    node->mass.covered = covered;
}

void sgp_mass_inherit(struct sgp_node *node, double members, double covered)
{
    double surplus = fmin(node->mass.surplus + members, (double)SGP_NODES_MAX - 1);
    sgp_mass_set_members(node, surplus, fmin(node->mass.covered + covered, surplus));
}

void sgp_mass_doubt(struct sgp_node *node, double more)
{
    node->mass.unknown = fmin(node->mass.unknown + more, (double)SGP_NODES_MAX);
}

/* ---- sums ---- */

double sgp_core_held(const struct sgp_node *node)
{
    double held = 0;
    for (uint32_t i = 0; i < node->layout.receive_count; i++)
        if (node->layout.receives[i].state == SGP_RECEIVE_HELD)
            held += node->layout.receives[i].share.weight;
    return held;
}

bool sgp_core_is_debt(const struct sgp_core_account *entry)
{
    return entry->stager == SGP_SLOT_NONE && entry->account.kind == SGP_ACCOUNT_DEBT;
}

double sgp_core_debts(const struct sgp_node *node)
{
    double sum = 0;
    for (uint32_t i = 0; node->accounts.debts > 0 && i < node->accounts.count; i++)
        if (sgp_core_is_debt(&node->accounts.entries[i]))
            sum += node->accounts.entries[i].account.weight;
    return sum;
}

double sgp_core_in_flight(const struct sgp_node *node)
{
    double in_flight = 0;
    SGP_EACH_OF (link, node, SGP_SET_OWING)
        if (link->owed[0].exists)
            in_flight += link->owed[0].share.weight;
    return in_flight + sgp_core_debts(node);
}

/* The most weight that one node can have: that of all members that its files have named, and a
 * slack. Honest faults add little. A restart without a ledger creates some, and other nodes may
 * know members that this one does not. */
double sgp_core_weight_most(const struct sgp_node *node)
{
    return node->mass.members_most + SGP_WEIGHT_SLACK;
}

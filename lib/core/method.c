/* SPDX-License-Identifier: Apache-2.0 */
/* The table of methods, what follows from a row, and which topology each method needs.
 *
 * The rule: docs/rules/outgoing.md */
#include "sgp/method.h"

#include <string.h>

#define KEEP_HALF 0.5

const struct sgp_method *sgp_method_at(uint32_t index)
{
    static const struct sgp_method methods[] = {
        {"sgp", 1, SGP_WHOM_OUT_NEIGHBOURS, SGP_WHEN_ALL_PROMISED, SGP_HOW_IN_ORDER_OF_SOURCE,
            .publishes_first = false, SGP_WANTS_ANY},
        {"osgp", 2, SGP_WHOM_OUT_NEIGHBOURS, SGP_WHEN_OVERDUE, SGP_HOW_AS_THEY_COME,
            .publishes_first = false, SGP_WANTS_ANY},
        {"agp", 3, SGP_WHOM_OUT_NEIGHBOURS, SGP_WHEN_NEVER, SGP_HOW_AS_THEY_COME,
            .publishes_first = false, SGP_WANTS_ANY},
        {"dpsgd", 4, SGP_WHOM_OUT_NEIGHBOURS, SGP_WHEN_ALL_PROMISED, SGP_HOW_IN_ORDER_OF_SOURCE,
            .publishes_first = true, SGP_WANTS_SYMMETRIC},
        {"adpsgd", 5, SGP_WHOM_ONE_BY_LOT, SGP_WHEN_NEVER, SGP_HOW_AS_THEY_COME,
            .publishes_first = false, SGP_WANTS_REVERSES},
        {"backup", 6, SGP_WHOM_OUT_NEIGHBOURS, SGP_WHEN_ALL_PROMISED, SGP_HOW_IN_ORDER_OF_SOURCE,
            .publishes_first = false, SGP_WANTS_OWNER},
        {"downpour", 7, SGP_WHOM_OUT_NEIGHBOURS, SGP_WHEN_NEVER, SGP_HOW_AS_THEY_COME,
            .publishes_first = false, SGP_WANTS_OWNER},
        {"cyclic", 8, SGP_WHOM_NEXT_READY, SGP_WHEN_NEVER, SGP_HOW_AS_THEY_COME,
            .publishes_first = false, SGP_WANTS_TOKEN},
    };
    return index < sizeof methods / sizeof methods[0] ? &methods[index] : NULL;
}

const struct sgp_method *sgp_method_find(const char *name)
{
    const struct sgp_method *method;
    for (uint32_t i = 0; (method = sgp_method_at(i)) != NULL; i++)
        if (strcmp(method->name, name) == 0)
            break;
    return method;
}

/* ---- properties ---- */

bool sgp_method_waits(const struct sgp_method *method)
{
    return method->when != SGP_WHEN_NEVER;
}

bool sgp_method_overlaps(const struct sgp_method *method)
{
    return method->when == SGP_WHEN_OVERDUE;
}

bool sgp_method_may_jump(const struct sgp_method *method)
{
    return sgp_method_waits(method);
}

bool sgp_method_may_scale_rate(const struct sgp_method *method)
{
    bool owned = method->wants == SGP_WANTS_OWNER || method->wants == SGP_WANTS_TOKEN;
    return !sgp_method_waits(method) && !owned;
}

bool sgp_method_has_own_buffers(const struct sgp_method *method)
{
    return method->when != SGP_WHEN_ALL_PROMISED;
}

bool sgp_method_chooses(const struct sgp_method *method)
{
    return method->whom == SGP_WHOM_ONE_BY_LOT;
}

double sgp_method_keep(const struct sgp_method *method)
{
    return sgp_method_chooses(method) ? KEEP_HALF : 1;
}

bool sgp_method_in_order(const struct sgp_method *method)
{
    return method->how == SGP_HOW_IN_ORDER_OF_SOURCE;
}

const char *sgp_method_lacks_best(const struct sgp_method *method)
{
    if (method->wants == SGP_WANTS_OWNER || method->wants == SGP_WANTS_TOKEN)
        return "a node owns the vector, and a best model is kept only where none does";
    if (!sgp_method_waits(method))
        return "each node keeps its own pace, so the models of all nodes are never those of one "
               "round";
    if (sgp_method_overlaps(method))
        return "shares come in later rounds, so a cycle without steps does not bring the models "
               "together";
    return NULL;
}

/* ---- requirements on the topology ---- */

/* An exact cycle has rounds of one kind: a step, then shares that are all awaited. */
static int suit_exact(const struct sgp_method *method, const struct sgp_topology *topology,
    struct sgp_error *error, struct sgp_edge_place *ret_culprit)
{
    uint32_t p = 0;
    bool suits = method->when == SGP_WHEN_ALL_PROMISED && !method->publishes_first &&
                 method->whom == SGP_WHOM_OUT_NEIGHBOURS;
    if (suits || !sgp_topology_has_exact(topology))
        return 0;
    while (topology->phases[p].edge_count == 0)
        p++;
    if (ret_culprit != NULL)
        *ret_culprit = (struct sgp_edge_place){
            p, topology->phases[p].out->source, topology->phases[p].out->target};
    return sgp_fail(error, SGP_E_TOPOLOGY,
        "digraph %s: with algorithm %s nobody could tell when a cycle that averages exactly is "
        "complete; choose sgp, or a file without fraction 1 and without parts",
        topology->phases[p].name, method->name);
}

static int suit_owner(const struct sgp_method *method, const struct sgp_topology *topology,
    struct sgp_error *error, struct sgp_edge_place *ret_culprit)
{
    bool owned = topology->owner != SGP_NODE_NONE, token = sgp_topology_has_token(topology);
    enum sgp_wants wanted = token ? SGP_WANTS_TOKEN : SGP_WANTS_OWNER;
    bool wants = method->wants == SGP_WANTS_OWNER || method->wants == SGP_WANTS_TOKEN;
    if (owned ? method->wants == wanted : !wants)
        return 0;
    if (ret_culprit != NULL)
        *ret_culprit = (struct sgp_edge_place){0, SGP_NODE_NONE, SGP_NODE_NONE};
    if (owned && token)
        return sgp_fail(error, SGP_E_TOPOLOGY,
            "digraph %s says token=%s, which algorithm %s has no use for; choose cyclic, or strike "
            "token",
            topology->phases[0].name, sgp_token_name(topology->phases[0].delay.token),
            method->name);
    if (method->wants == SGP_WANTS_TOKEN)
        return sgp_fail(error, SGP_E_TOPOLOGY,
            "algorithm %s wants a token that goes round; write token=dynamic, owns=all at the node "
            "that has it first, or choose sgp",
            method->name);
    return owned ? sgp_fail(error, SGP_E_TOPOLOGY,
                       "node %s owns %s, which algorithm %s has no use for; choose backup or "
                       "downpour, or strike owns",
                       topology->nodes[sgp_topology_machine(topology, topology->owner)].name,
                       topology->owners > 1 ? "a part" : "the vector", method->name)
                 : sgp_fail(error, SGP_E_TOPOLOGY,
                       "algorithm %s wants a node that owns the vector; write owns=all "
                       "at one, or choose sgp",
                       method->name);
}

/* Checks what the file says about how its owner takes updates. */
static int suit_updates(const struct sgp_method *method, const struct sgp_topology *topology,
    struct sgp_error *error, struct sgp_edge_place *ret_culprit)
{
    const struct sgp_phase *phase = &topology->phases[0];
    bool waits = sgp_method_waits(method);
    bool fits = waits ? !sgp_staleness_is_said(&phase->staleness) : phase->backup == 0;
    if (fits && (waits || !phase->outer))
        return 0;
    if (ret_culprit != NULL)
        *ret_culprit = (struct sgp_edge_place){0, SGP_NODE_NONE, SGP_NODE_NONE};
    if (fits)
        return sgp_fail(error, SGP_E_TOPOLOGY,
            "digraph %s says outer, but with algorithm %s each update is a step of its own; leave "
            "it out, or choose backup",
            phase->name, method->name);
    return sgp_fail(error, SGP_E_TOPOLOGY,
        waits ? "digraph %s speaks of staleness, but with algorithm %s no update that is added is "
                "stale; leave it out, or choose downpour"
              : "digraph %s says backup, but with algorithm %s no update is waited for; leave it "
                "out, or choose backup",
        phase->name, method->name);
}

int sgp_method_suit(const struct sgp_method *method, struct sgp_topology *topology,
    struct sgp_error *error, struct sgp_edge_place *ret_culprit)
{
    int code = suit_owner(method, topology, error, ret_culprit);
    if (code == 0)
        code = suit_exact(method, topology, error, ret_culprit);
    if (code != 0)
        return code;
    switch (method->wants) {
    case SGP_WANTS_ANY:
    case SGP_WANTS_TOKEN:
        return 0;
    case SGP_WANTS_OWNER:
        return suit_updates(method, topology, error, ret_culprit);
    case SGP_WANTS_SYMMETRIC:
        return sgp_topology_metropolis(topology, error, ret_culprit);
    case SGP_WANTS_REVERSES:
        return sgp_topology_reverses(topology, error, ret_culprit);
    }
    sgp_assert_failed("a method wants a known kind of topology", __FILE__, __LINE__);
}

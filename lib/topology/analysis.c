/* SPDX-License-Identifier: Apache-2.0 */
/* Analysis of a topology: structure, weights and the speed of agreement. Any thread; pure except
 * for working memory. Every question has a bounded cost. A question that costs more stays open,
 * with a warning. */
#include "sgp/analysis.h"
#include "sgp/random.h"
#include "topology/reach.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SGP_STARTS 3           /* number of seeded starts of the contraction */
#define SGP_CYCLES_SKIPPED 10  /* cycles before shrinkage is measured */
#define SGP_CYCLES_MEASURED 20 /* cycles 11 to 30 */
#define SGP_SHRINK_EXACT 1e-12 /* a cycle that shrinks by more leaves only rounding */
#define SGP_SHRINK_NONE 1e-9   /* a mean shrinkage that is closer to 1 counts as none */
#define SGP_PROBES 4           /* random vectors that represent all unit vectors */
#define SGP_EXACT_AT 1e-12
#define SGP_EXACT_FROM 1e-6
#define SGP_EXACT_ROUNDS_MORE 64
#define SGP_WEIGHT_LOW 0.25
#define SGP_ROW_SLACK 1e-9
#define SGP_NAMES_LISTED 8

static void warn(struct sgp_analysis *a, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void warn(struct sgp_analysis *a, const char *format, ...)
{
    sgp_assert(a->warning_count < SGP_ANALYSIS_WARNINGS_MAX);
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(a->warnings[a->warning_count++], SGP_TEXT_BYTES, format, arguments);
    va_end(arguments);
}

static bool row_sums_to_one(const struct sgp_phase *phase, uint32_t node)
{
    uint32_t count;
    const struct sgp_edge *in = sgp_phase_in(phase, node, &count);
    double sum = sgp_phase_keep(phase, node);
    for (uint32_t e = 0; e < count; e++)
        sum += in[e].fraction;
    return fabs(sum - 1.0) <= SGP_ROW_SLACK;
}

/* In and out lists are both ordered by the other end. The phase is symmetric if they are equal. */
static bool is_symmetric(const struct sgp_phase *phase)
{
    for (uint32_t e = 0; e < phase->edge_count; e++)
        if (phase->out[e].source != phase->in[e].target ||
            phase->out[e].target != phase->in[e].source ||
            phase->out[e].fraction != phase->in[e].fraction)
            return false;
    return true;
}

static void analyse_phases(const struct sgp_topology *topology, struct sgp_analysis *a)
{
    a->symmetric = a->doubly_stochastic = true;
    for (uint32_t p = 0; p < topology->phase_count; p++) {
        const struct sgp_phase *phase = &topology->phases[p];
        a->symmetric = a->symmetric && is_symmetric(phase);
        if (!phase->once)
            a->shares_per_cycle += (uint64_t)phase->edge_count * phase->rounds;
        for (uint32_t i = 0; i < topology->node_count; i++) {
            uint32_t out = phase->out_first[i + 1] - phase->out_first[i];
            uint32_t in = phase->in_first[i + 1] - phase->in_first[i];
            a->out_degree_max = out > a->out_degree_max ? out : a->out_degree_max;
            a->in_degree_max = in > a->in_degree_max ? in : a->in_degree_max;
            a->doubly_stochastic = a->doubly_stochastic && row_sums_to_one(phase, i);
        }
    }
}

/* The part of the vector that the edge carries. */
static double part_of_vector(const struct sgp_topology *topology, const struct sgp_edge *edge)
{
    return edge->part_count > 0 ? (double)edge->part_count / topology->slices : 1;
}

/* Traffic between machines. Traffic of a co-located owner counts for its machine. */
static int analyse_traffic(const struct sgp_topology *topology, struct sgp_analysis *a)
{
    double *sent = calloc(topology->node_count, sizeof *sent), sum = 0;
    uint32_t machines = 0;
    if (!sent)
        return -ENOMEM;
    for (uint32_t p = 0; p < topology->phase_count; p++) {
        const struct sgp_phase *phase = &topology->phases[p];
        for (uint32_t e = 0; !phase->once && e < phase->edge_count; e++) {
            uint32_t source = sgp_topology_machine(topology, phase->out[e].source);
            uint32_t target = sgp_topology_machine(topology, phase->out[e].target);
            sent[source] +=
                source == target ? 0 : phase->rounds * part_of_vector(topology, &phase->out[e]);
        }
    }
    for (uint32_t i = 0; i < topology->node_count; i++) {
        sum += sent[i];
        machines += !topology->nodes[i].colocated;
        a->vectors_sent_most = fmax(a->vectors_sent_most, sent[i]);
    }
    a->vectors_sent_mean = sum / machines;
    free(sent);
    return 0;
}

/* Lists the nodes whose flag is not `seen`, as in "n3, n7 and 5 more". */
static uint32_t list_unseen(
    const struct sgp_topology *topology, const bool *seen, char list[SGP_TEXT_BYTES])
{
    uint32_t count = 0;
    size_t length = 0;
    list[0] = '\0';
    for (uint32_t i = 0; i < topology->node_count; i++)
        if (!seen[i] && count++ < SGP_NAMES_LISTED && length < SGP_TEXT_BYTES)
            length += (size_t)snprintf(list + length, SGP_TEXT_BYTES - length, "%s%.32s",
                count > 1 ? ", " : "", topology->nodes[i].name);
    if (count > SGP_NAMES_LISTED && length < SGP_TEXT_BYTES)
        (void)snprintf(
            list + length, SGP_TEXT_BYTES - length, " and %u more", count - SGP_NAMES_LISTED);
    return count;
}

static int analyse_reach(const struct sgp_topology *topology, struct sgp_analysis *a)
{
    struct sgp_reach reach;
    int code = sgp_reach_init(&reach, topology);
    if (code)
        return code;
    a->strongly_connected = sgp_reach_window(&reach, reach.cycle_first, reach.cycle_count);
    a->diverges = !a->strongly_connected;
    a->window_rounds = SGP_ROUND_NONE;
    if (a->strongly_connected) {
        if (!sgp_reach_least_window(&reach, SGP_ANALYSIS_WORK_MAX, &a->window_rounds))
            warn(a, "the cycle is too long to find the least window in which it is connected");
    } else {
        char list[SGP_TEXT_BYTES];
        const char *root = topology->nodes[sgp_reach_core(&reach)].name;
        if (list_unseen(topology, reach.forward, list))
            warn(a, "cannot converge: %.380s cannot be reached from %s; add an edge towards them",
                list, root);
        if (list_unseen(topology, reach.backward, list))
            warn(a, "cannot converge: %s cannot be reached from %.380s; add an edge from them",
                root, list);
    }
    sgp_reach_finish(&reach);
    return 0;
}

/* Vectors that pass through the rounds: `columns` of masses, and the weights. */
struct flow {
    const struct sgp_topology *topology;
    uint32_t columns;
    double *mass; /* node_count x columns */
    double *mass_next;
    double *weight; /* node_count */
    double *weight_next;
    double total; /* sum of the weights */
};

static void flow_finish(struct flow *flow)
{
    free(flow->mass);
    free(flow->mass_next);
    free(flow->weight);
    free(flow->weight_next);
}

static int flow_init(struct flow *flow, const struct sgp_topology *topology, uint32_t columns)
{
    size_t n = topology->node_count;
    *flow = (struct flow){.topology = topology, .columns = columns};
    flow->mass = calloc(n * columns, sizeof(double));
    flow->mass_next = calloc(n * columns, sizeof(double));
    flow->weight = calloc(n, sizeof(double));
    flow->weight_next = calloc(n, sizeof(double));
    if (!flow->mass || !flow->mass_next || !flow->weight || !flow->weight_next) {
        flow_finish(flow);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < n; i++) {
        flow->weight[i] = sgp_topology_starts(topology, i);
        flow->total += flow->weight[i];
    }
    return 0;
}

static void flow_seed(struct flow *flow, uint64_t seed)
{
    struct sgp_random random;
    sgp_random_init(&random, seed, flow->topology->node_count);
    for (size_t i = 0; i < (size_t)flow->topology->node_count * flow->columns; i++)
        flow->mass[i] = flow->weight[i / flow->columns] * (2.0 * sgp_random_double(&random) - 1.0);
}

/* A relay that has received nothing has no estimate yet. */
static bool is_silent(const struct flow *flow, uint32_t node)
{
    return flow->topology->nodes[node].relay && flow->weight[node] <= 0;
}

static void swap(double **a, double **b)
{
    double *kept = *a;
    *a = *b;
    *b = kept;
}

static void flow_step(struct flow *flow, const struct sgp_phase *phase)
{
    uint32_t n = flow->topology->node_count;
    sgp_phase_mix(flow->mass_next, flow->mass, phase, n, flow->columns);
    sgp_phase_mix(flow->weight_next, flow->weight, phase, n, 1);
    swap(&flow->mass, &flow->mass_next);
    swap(&flow->weight, &flow->weight_next);
}

/* The disagreement of one column. Replace the column by its deviation from agreement: mass minus
 * its mean times the weights. The deviation follows the same rule. Scale it so that the largest
 * |x/w| is 1, and return the previous largest. */
static double flow_rescale(struct flow *flow, uint32_t column)
{
    uint32_t n = flow->topology->node_count, columns = flow->columns;
    double sum = 0.0, most = 0.0;
    for (uint32_t i = 0; i < n; i++)
        sum += flow->mass[(size_t)i * columns + column];
    for (uint32_t i = 0; i < n; i++) {
        double *x = &flow->mass[(size_t)i * columns + column];
        if (is_silent(flow, i))
            continue;
        *x -= sum / flow->total * flow->weight[i];
        double z = fabs(*x / flow->weight[i]);
        if (isnan(z)) /* a weight is 0 */
            return z;
        most = z > most ? z : most;
    }
    for (uint32_t i = 0; i < n && most > 0.0; i++)
        flow->mass[(size_t)i * columns + column] /= most;
    return most;
}

static uint64_t cycle_work(const struct sgp_topology *topology)
{
    uint64_t work = 0;
    for (uint32_t p = 0; p < topology->phase_count; p++)
        if (!topology->phases[p].once)
            work += ((uint64_t)topology->phases[p].edge_count + topology->node_count) *
                    topology->phases[p].rounds;
    return work;
}

/* Rescaling after each cycle keeps the deviation far above rounding, however fast it shrinks. */
static double contraction(struct flow *flow)
{
    double logarithms = 0.0;
    bool exact = false;
    for (uint32_t c = 0; c < flow->columns; c++)
        (void)flow_rescale(flow, c);
    for (int cycle = 1; cycle <= SGP_CYCLES_SKIPPED + SGP_CYCLES_MEASURED; cycle++) {
        for (uint32_t p = 0; p < flow->topology->phase_count; p++)
            for (uint32_t r = 0;
                 !flow->topology->phases[p].once && r < flow->topology->phases[p].rounds; r++)
                flow_step(flow, &flow->topology->phases[p]);
        for (uint32_t c = 0; c < flow->columns; c++) {
            double shrunk = flow_rescale(flow, c);
            if (!isfinite(shrunk))
                return (double)NAN;
            exact = exact || shrunk < SGP_SHRINK_EXACT;
            if (!exact && cycle > SGP_CYCLES_SKIPPED)
                logarithms += log(shrunk);
        }
        if (exact)
            return 0.0;
    }
    double mean = exp(logarithms / (SGP_CYCLES_MEASURED * flow->columns));
    return mean < 1.0 - SGP_SHRINK_NONE ? mean : (double)NAN;
}

/* Explain why a strongly connected cycle does not converge. */
static void warn_of_standstill(const struct flow *flow, struct sgp_analysis *a)
{
    a->diverges = true;
    for (uint32_t i = 0; i < flow->topology->node_count; i++)
        if (flow->weight[i] == 0.0) {
            warn(a,
                "cannot converge: %s gives away all of its mass before it receives any; "
                "let it keep a part, or give in fewer rounds",
                flow->topology->nodes[i].name);
            return;
        }
    warn(a, "cannot converge: the cycle moves values about without mixing them; "
            "let every node keep a part (fractions of a node that add up to less than 1)");
}

static int analyse_contraction(const struct sgp_topology *topology, struct sgp_analysis *a)
{
    a->contraction_per_cycle = (double)NAN;
    bool at_once = topology->node_count == 1 || topology->cycle.exact;
    if (at_once)
        a->contraction_per_cycle = 0.0;
    if (at_once || !a->strongly_connected)
        return 0;
    uint64_t cycles = SGP_CYCLES_SKIPPED + SGP_CYCLES_MEASURED;
    if (cycle_work(topology) > SGP_ANALYSIS_WORK_MAX / (cycles * (SGP_STARTS + 1))) {
        warn(a, "the cycle is too long to find how fast it converges");
        return 0;
    }
    struct flow flow;
    int code = flow_init(&flow, topology, SGP_STARTS);
    if (code)
        return code;
    flow_seed(&flow, 1);
    a->contraction_per_cycle = contraction(&flow);
    if (isnan(a->contraction_per_cycle))
        warn_of_standstill(&flow, a);
    flow_finish(&flow);
    return 0;
}

/* The largest |x_i/w_i - mean| over all columns. Infinite where a weight is 0. */
static double flow_error(const struct flow *flow, const double *means)
{
    double most = 0.0;
    for (uint32_t i = 0; i < flow->topology->node_count; i++)
        for (uint32_t c = 0; c < flow->columns && !is_silent(flow, i); c++) {
            double error =
                fabs(flow->mass[(size_t)i * flow->columns + c] / flow->weight[i] - means[c]);
            if (isnan(error))
                return (double)INFINITY;
            most = error > most ? error : most;
        }
    return most;
}

/* Step until the error falls from above EXACT_FROM to EXACT_AT in one round. */
static sgp_round find_exact_round(struct flow *flow, const double *means)
{
    const struct sgp_topology *topology = flow->topology;
    sgp_round more =
        topology->node_count < SGP_EXACT_ROUNDS_MORE ? topology->node_count : SGP_EXACT_ROUNDS_MORE;
    sgp_round limit = topology->prelude_rounds + 2 * topology->rounds_per_cycle + more;
    uint64_t work = 0;
    double before = flow_error(flow, means);
    if (before <= SGP_EXACT_AT)
        return 0;
    for (sgp_round round = 0; round < limit; round++) {
        const struct sgp_phase *phase = sgp_topology_phase(topology, round);
        work += ((uint64_t)phase->edge_count + topology->node_count) * (flow->columns + 1);
        if (work > SGP_ANALYSIS_WORK_MAX)
            break;
        flow_step(flow, phase);
        double now = flow_error(flow, means);
        if (before > SGP_EXACT_FROM && now <= SGP_EXACT_AT)
            return round + 1;
        if (now <= SGP_EXACT_FROM)
            break;
        before = now;
    }
    return SGP_ROUND_NONE;
}

static int analyse_exactness(const struct sgp_topology *topology, struct sgp_analysis *a)
{
    uint32_t n = topology->node_count;
    bool dense = n <= SGP_ANALYSIS_DENSE_NODES_MAX;
    const struct sgp_cycle *first =
        topology->prelude.rounds > 0 ? &topology->prelude : &topology->cycle;
    if (first->exact) { /* the cycle is proved exact */
        a->exact_average_rounds = first->rounds;
        return 0;
    }
    struct flow flow;
    int code = flow_init(&flow, topology, dense ? n : SGP_PROBES);
    if (code)
        return code;
    double means[SGP_ANALYSIS_DENSE_NODES_MAX] = {0};
    if (!dense)
        flow_seed(&flow, 2);
    for (uint32_t i = 0; i < n && dense; i++)
        flow.mass[(size_t)i * n + i] = flow.weight[i];
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t c = 0; c < flow.columns; c++)
            means[c] += flow.mass[(size_t)i * flow.columns + c] / flow.total;
    a->exact_average_rounds = find_exact_round(&flow, means);
    flow_finish(&flow);
    return 0;
}

static int analyse_weights(const struct sgp_topology *topology, struct sgp_analysis *a)
{
    uint32_t n = topology->node_count, lowest = 0;
    double *least = calloc(2 * (size_t)n, sizeof *least);
    int code = least ? sgp_topology_weight_range(topology, least, least + n) : -ENOMEM;
    a->weight_min = a->weight_max = 1.0;
    for (uint32_t i = 0; i < n && !code; i++) {
        if (least[i] < least[lowest])
            lowest = i;
        a->weight_max = least[n + i] > a->weight_max ? least[n + i] : a->weight_max;
    }
    if (!code)
        a->weight_min = least[lowest];
    if (a->weight_min < SGP_WEIGHT_LOW && !topology->nodes[lowest].relay)
        warn(a,
            "the weight of %s falls to %.3g, below %.2f, and its steps grow to the inverse of "
            "that; "
            "let it keep more or receive more",
            topology->nodes[lowest].name, a->weight_min, SGP_WEIGHT_LOW);
    free(least);
    return code;
}

/* A median is an honest node's while fewer than half of the sources lie. */
static int analyse_guard(const struct sgp_topology *topology, struct sgp_analysis *a)
{
    uint32_t *sources = calloc(topology->node_count, sizeof *sources), least = UINT32_MAX;
    int code = sources != NULL ? sgp_topology_count_sources(topology, sources) : -ENOMEM;
    for (uint32_t i = 0; i < topology->node_count && code == 0; i++)
        least = sources[i] < least ? sources[i] : least;
    bool mixes = topology->owner == SGP_NODE_NONE && !sgp_topology_has_exact(topology);
    a->guard_liars = code == 0 && mixes && least > 0 ? (least - 1) / 2 : 0;
    free(sources);
    return code;
}

static bool is_loopback(const char *address)
{
    return strncmp(address, "127.", 4) == 0 || strncmp(address, "localhost", 9) == 0 ||
           strncmp(address, "[::1]", 5) == 0;
}

/* A loopback address reaches no other machine. In a file of several machines it is a mistake. */
static void check_addresses(const struct sgp_topology *topology, struct sgp_analysis *a)
{
    const struct sgp_topology_node *loopback = NULL, *other = NULL;
    for (uint32_t i = topology->node_count; i-- > 0;) {
        const struct sgp_topology_node *node = &topology->nodes[i];
        if (is_loopback(node->address))
            loopback = node;
        else if (sgp_topology_is_dialled(topology, i))
            other = node;
    }
    if (loopback && other)
        warn(a,
            "node %s has the loopback address %.100s, which no other machine reaches, beside %s at "
            "%.100s; give it the address of its machine",
            loopback->name, loopback->address, other->name, other->address);
}

static void check_keys(const struct sgp_topology *topology, struct sgp_analysis *a)
{
    bool keys = false;
    for (uint32_t i = 0; i < topology->node_count && !keys; i++)
        keys = topology->nodes[i].keys[0][0] != '\0';
    if (keys && topology->tls == SGP_TLS_OFF)
        warn(a, "nodes have keys, and links are plain all the same (tls=off); write tls=require, "
                "or tls=offer while a fleet that trains goes over to ciphers");
}

/* After a step all nodes that take a copy hold the same model. */
static int analyse_copies(struct sgp_analysis *a)
{
    a->contraction_per_cycle = 0;
    a->exact_average_rounds = 1;
    a->weight_min = 0;
    a->weight_max = 1;
    return 0;
}

static int analyse_mixing(const struct sgp_topology *topology, struct sgp_analysis *a)
{
    int code = analyse_contraction(topology, a);
    if (!code)
        code = analyse_exactness(topology, a);
    return code ? code : analyse_weights(topology, a);
}

int sgp_analyse(const struct sgp_topology *topology, struct sgp_analysis *ret_analysis)
{
    sgp_assert(topology->phase_first);
    struct sgp_analysis a = {.nodes = topology->node_count,
        .phases = topology->phase_count,
        .rounds_per_cycle = topology->rounds_per_cycle,
        .turns_per_cycle = topology->cycle.turns,
        .slices = topology->slices,
        .relays = topology->node_count - sgp_topology_trainers(topology),
        .exact = topology->cycle.exact,
        .owner = topology->owner != SGP_NODE_NONE,
        .backup = topology->phases[0].backup};
    analyse_phases(topology, &a);
    int code = analyse_traffic(topology, &a);
    if (!code)
        code = analyse_reach(topology, &a);
    if (!code)
        code = a.owner ? analyse_copies(&a) : analyse_mixing(topology, &a);
    if (!code)
        code = analyse_guard(topology, &a);
    /* a round is one update, and the token moves at most once */
    if (sgp_topology_has_token(topology)) {
        a.shares_per_cycle = 1;
        a.vectors_sent_mean = 1.0 / topology->node_count;
        a.vectors_sent_most = 1;
    }
    if (code)
        return code;
    if (!a.owner && !a.doubly_stochastic && !a.exact)
        warn(&a,
            "not doubly stochastic: weights stray from 1 (%.3g to %.3g), which sgp corrects for; "
            "dpsgd gives edges without a fraction weights of its own, and refuses what is then "
            "still so",
            a.weight_min, a.weight_max);
    check_addresses(topology, &a);
    check_keys(topology, &a);
    *ret_analysis = a;
    return 0;
}

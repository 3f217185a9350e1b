/* SPDX-License-Identifier: Apache-2.0 */
/* Greeting: whether a peer is the node that it should be, and has the same training settings.
 *
 * The rule: docs/rules/greeting.md */
#include "core/core.h"

#include <string.h>

#define ENDS_FACTOR 64 /* greatest accepted ratio of a peer's number of rounds to this node's */
#define ENDS_FLOOR ((sgp_round)1024)

static bool ends_are_credible(const struct sgp_node *node, const struct sgp_pulse *pulse)
{
    bool judges = !node->fleet.endless && !sgp_core_is_relay(node);
    if (!judges)
        return true; /* without rounds of its own it cannot judge */
    sgp_round own = sgp_core_own_end(node) > ENDS_FLOOR ? sgp_core_own_end(node) : ENDS_FLOOR;
    return pulse->ends / ENDS_FACTOR <= own;
}

static bool pulse_is_sound(const struct sgp_pulse *pulse)
{
    return pulse->round >= 0 && pulse->round < SGP_ROUND_MAX && pulse->ends >= 0 &&
           pulse->round <= pulse->ends + SGP_MIXING_ROUNDS_MAX && pulse->stop >= SGP_ROUND_NONE &&
           pulse->next_round >= SGP_ROUND_NONE && pulse->next_round < SGP_ROUND_MAX &&
           pulse->then_round >= 0 && pulse->then_round < SGP_ROUND_MAX &&
           (pulse->then_round == 0 || pulse->then_round > pulse->next_round);
}

/* greatest jump of epoch numbers; more are not begun while a node is away */
#define EPOCHS_AT_ONCE ((uint64_t)1 << 20)

static bool epoch_is_sound(const struct sgp_node *node, const struct sgp_pulse *pulse)
{
    return pulse->epoch.start >= 0 && pulse->epoch.start <= pulse->ends + SGP_MIXING_ROUNDS_MAX &&
           pulse->epoch.number <= node->exact.heard.number + EPOCHS_AT_ONCE;
}

enum sgp_reason sgp_core_judge_pulse(const struct sgp_node *node, const struct sgp_pulse *pulse)
{
    if (!pulse_is_sound(pulse) || !epoch_is_sound(node, pulse))
        return SGP_REASON_RANGE;
    return ends_are_credible(node, pulse) ? SGP_REASON_NONE : SGP_REASON_ROUNDS;
}

static enum sgp_reason compare(
    const struct sgp_fingerprint *own, const struct sgp_fingerprint *other)
{
    if (own->shape != other->shape)
        return SGP_REASON_SHAPE;
    if (own->loss != other->loss)
        return SGP_REASON_LOSS;
    bool rows =
        /* a relay has no data, and knows no classes or scaling */
        own->batch > 0 && other->batch > 0;
    if (rows && own->classes != other->classes)
        return SGP_REASON_CLASSES;
    if (rows && own->scaling != other->scaling)
        return SGP_REASON_SCALING;
    if (own->method != other->method)
        return SGP_REASON_METHOD;
    if (own->run != 0 && other->run != 0 && own->run != other->run)
        return SGP_REASON_RUN;
    return SGP_REASON_NONE;
}

static bool differs_from(const struct sgp_node *node, const struct sgp_core_link *link)
{
    return link->greeting.steps || link->greeting.topology != node->config.fingerprint.topology;
}

/* Warn once when the topology files or the training steps begin to differ. */
static void note_mismatch(struct sgp_node *node, struct sgp_core_link *link)
{
    bool differs = differs_from(node, link);
    if (differs && !link->greeting.mismatch)
        (void)sgp_core_note_link(node, SGP_NOTE_MISMATCH, link);
    link->greeting.mismatch = differs;
}

void sgp_core_hear_topology(struct sgp_node *node, struct sgp_core_link *link, uint64_t digest)
{
    if (digest == 0) /* the pulse does not state it */
        return;
    link->greeting.topology = digest;
    note_mismatch(node, link);
}

void sgp_core_compare_topologies(struct sgp_node *node)
{
    SGP_EACH_LINK (link, node) {
        if (link->connection.state == SGP_LINK_UP)
            link->greeting.mismatch = differs_from(node, link);
    }
}

/* Warn of settings that may differ but should not. */
static void note_differences(
    struct sgp_node *node, struct sgp_core_link *link, const struct sgp_fingerprint *other)
{
    const struct sgp_fingerprint *own = &node->config.fingerprint;
    link->greeting.steps =
        own->batch > 0 && other->batch > 0 &&
        (own->batch != other->batch ||
            memcmp(&own->learning_rate, &other->learning_rate, sizeof(double)) != 0);
    link->greeting.topology = other->topology;
    note_mismatch(node, link);
    bool apart = own->data != 0 && other->data != 0 && own->data != other->data;
    if (apart && !link->greeting.other_data)
        (void)sgp_core_note_link(node, SGP_NOTE_OTHER_DATA, link);
    link->greeting.other_data = apart;
}

static void raise_end(struct sgp_node *node, sgp_round ends)
{
    if (ends > node->fleet.ends)
        node->fleet.ends = ends;
}

static void stop_early(struct sgp_node *node, sgp_round stop)
{
    if (stop == SGP_ROUND_NONE || (node->fleet.stop != SGP_ROUND_NONE && stop >= node->fleet.stop))
        return;
    node->fleet.stop = stop;
    node->unrecorded = true;
}

/* A round of a file with exact cycles is not the same as a round of another file. A neighbour that
 * uses no epochs states no file. */
static bool counts_rounds_otherwise(const struct sgp_node *node, const struct sgp_pulse *pulse)
{
    return pulse->epoch.topology == 0 ? sgp_core_compares_epochs(node)
                                      : pulse->epoch.topology != node->config.topology->digest;
}

/* Accept what a greeted neighbour says of the fleet. Before its greeting it may belong to another
 * fleet. */
void sgp_core_accept_end(struct sgp_node *node, struct sgp_core_link *link)
{
    const struct sgp_pulse *pulse = &link->pulse;
    sgp_core_hear_epoch(node, link);
    if (pulse->round > node->fleet.heard)
        node->fleet.heard = pulse->round;
    bool late = node->round > pulse->round + sgp_core_far_ahead(node);
    if (pulse->state == SGP_NODE_TRAINING || pulse->state == SGP_NODE_SETTLING || late)
        link->greeting.trained = true;
    if (counts_rounds_otherwise(node, pulse))
        return;
    /* A relay has no end of its own, and follows the others. */
    if (sgp_core_is_relay(node) || !sgp_core_proves(node))
        raise_end(node, pulse->ends);
    if (!sgp_core_proves(node))
        stop_early(node, pulse->stop);
}

void sgp_core_proven(struct sgp_node *node, const struct sgp_pulse *pulse)
{
    if (!sgp_core_proves(node))
        return;
    if (ends_are_credible(node, pulse))
        raise_end(node, pulse->ends);
    stop_early(node, pulse->stop);
    node->changed = true;
}

/* A node that has not begun a run joins the run of its neighbours. */
static void join_run(struct sgp_node *node, uint64_t run)
{
    if (node->config.fingerprint.run == 0)
        node->config.fingerprint.run = run;
}

static void greeted(
    struct sgp_node *node, struct sgp_core_link *link, const struct sgp_fingerprint *other)
{
    join_run(node, other->run);
    link->connection.state = SGP_LINK_UP;
    link->connection.since = node->now;
    link->connection.backoff = SGP_DIAL_MIN_NS;
    link->connection.last_error = 0;
    sgp_core_met(node, link);
    sgp_core_accept_end(node, link);
    struct sgp_noted *note = sgp_core_note(node, SGP_NOTE_UP, link->peer);
    note->link = (struct sgp_link){link->peer, link->direction, link->connection.id};
}

enum sgp_reason sgp_core_judge(
    const struct sgp_node *node, const struct sgp_pulse *pulse, const struct sgp_hello *hello)
{
    const char *name = node->config.topology->nodes[node->config.self].name;
    if (strcmp(hello->target, name) != 0)
        return SGP_REASON_UNKNOWN;
    enum sgp_reason reason = sgp_core_judge_pulse(node, pulse);
    if (reason == SGP_REASON_NONE)
        reason = compare(&node->config.fingerprint, &hello->fingerprint);
    bool differs = reason == SGP_REASON_NONE && hello->parameters != node->config.parameters;
    return differs ? SGP_REASON_SHAPE : reason;
}

/* A source that greets can be dialled, whatever its state was before. It is not dialled more often
 * than with the first back-off. */
static void dial_back(struct sgp_node *node, const struct sgp_core_link *from)
{
    struct sgp_core_link *link = sgp_core_find(node, from->peer, SGP_OUT);
    if (link == NULL || link->connection.redial == SGP_TIME_NEVER)
        return;
    sgp_time first = link->connection.since + SGP_DIAL_MIN_NS;
    sgp_time soon = first > node->now ? first : node->now;
    if (soon < link->connection.redial)
        link->connection.redial = soon;
    sgp_core_mark_dirty(node, link);
}

struct sgp_verdict sgp_core_hello(
    struct sgp_node *node, struct sgp_core_link *link, const struct sgp_hello *hello)
{
    const char *name = node->config.topology->nodes[node->config.self].name;
    if (strcmp(hello->target, name) != 0)
        return sgp_refuses(SGP_E_UNKNOWN_NODE, SGP_REASON_UNKNOWN);
    enum sgp_reason reason = compare(&node->config.fingerprint, &hello->fingerprint);
    if (reason != SGP_REASON_NONE)
        return sgp_refuses(SGP_E_MODEL, reason);
    note_differences(node, link, &hello->fingerprint);
    if (hello->parameters != node->config.parameters)
        return sgp_refuses(SGP_E_MODEL, SGP_REASON_SHAPE);
    bool another = link->memory.incarnation != 0 && link->memory.incarnation != hello->incarnation;
    sgp_core_know_source(node, link, hello);
    greeted(node, link, &hello->fingerprint);
    dial_back(node, link);
    if (another && node->exact.begun) /* its new process knows nothing of this cycle */
        sgp_core_raise_epoch(node);
    struct sgp_message *message = sgp_core_send(node, link, SGP_WELCOME);
    message->welcome = (struct sgp_welcome){
        .target = name,
        .incarnation = node->config.incarnation,
        .accepted = link->memory.accepted,
        .fingerprint = node->config.fingerprint,
        .codings = SGP_CODINGS,
        .rows = true,
    };
    return sgp_fine();
}

struct sgp_verdict sgp_core_welcome(
    struct sgp_node *node, struct sgp_core_link *link, const struct sgp_welcome *welcome)
{
    if (strcmp(welcome->target, node->config.topology->nodes[link->peer].name) != 0)
        return sgp_refuses(SGP_E_UNKNOWN_NODE, SGP_REASON_UNKNOWN);
    enum sgp_reason reason = compare(&node->config.fingerprint, &welcome->fingerprint);
    if (reason != SGP_REASON_NONE)
        return sgp_refuses(SGP_E_MODEL, reason);
    note_differences(node, link, &welcome->fingerprint);
    uint64_t owed_to =
        link->inquiry.disputed != 0 ? link->inquiry.disputed : link->memory.incarnation;
    bool forgot = owed_to != 0 && owed_to != welcome->incarnation;
    while (link->owed[0].exists && link->owed[0].is_void)
        sgp_core_forget_owed(node, link);
    if (!sgp_core_know_target(node, link, welcome->accepted))
        return sgp_refuses(SGP_E_PROTOCOL, SGP_REASON_RANGE);
    const struct sgp_owed *owed = &link->owed[0];
    if (!forgot)
        link->inquiry.disputed = 0;
    else if (owed->exists && owed->share.bequest > 0 && (owed->told || owed->lost))
        link->inquiry.disputed = owed_to;
    else if (owed->exists && sgp_core_is_weightless(&owed->share))
        sgp_core_take_back(node, link, SGP_REASON_FORGOT); /* no weight is in question */
    else
        (void)sgp_core_dispute(node, link);
    node->unrecorded = node->unrecorded || link->memory.incarnation != welcome->incarnation;
    link->memory.incarnation = welcome->incarnation;
    link->connection.codings = welcome->codings;
    greeted(node, link, &welcome->fingerprint);
    if (forgot && node->exact.begun)
        sgp_core_raise_epoch(node);
    if (link->inquiry.disputed == 0)
        sgp_core_settle(node, link, welcome->accepted, forgot);
    return sgp_fine();
}

/* Links: dialling, hearing, falling silent, saying where we stand.
 *
 * A link is one directed edge with at most one connection. What is heard on it is judged on it
 * alone: a peer that can reach us may still be out of our reach. */
#include "core/core.h"

#define INTERVALS_PER_WINDOW 32

struct sgp_core_link *sgp_core_find(
    struct sgp_node *node, uint32_t peer, enum sgp_direction direction)
{
    const uint32_t *peers = node->roster.peers;
    uint32_t low = direction == SGP_OUT ? 0 : node->out_count;
    uint32_t end = direction == SGP_OUT ? node->out_count : node->link_count;
    uint32_t high = end;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (peers[middle] < peer)
            low = middle + 1;
        else
            high = middle;
    }
    return low < end && peers[low] == peer ? &node->links[low] : NULL;
}

/* ---- liveness ---- */

static bool state_is_active(enum sgp_node_state state)
{
    return state == SGP_NODE_JOINING || state == SGP_NODE_TRAINING || state == SGP_NODE_SETTLING;
}

/* Whether one node beats to another. One that is paused or drains does to those who are active, so that
 * these see when its end of the connection is dead: nobody would dial it again, and neither it nor the
 * process after it would ever hear of them. */
static bool beats(enum sgp_node_state own, enum sgp_node_state other)
{
    bool lingers = own == SGP_NODE_PAUSED || own == SGP_NODE_DRAINING;
    return state_is_active(own) || (lingers && state_is_active(other));
}

/* How long a link between two that beat may say nothing. */
static sgp_time beat_pace(enum sgp_node_state own, enum sgp_node_state other)
{
    return state_is_active(own) && state_is_active(other) ? SGP_BEAT_NS : SGP_BEAT_IDLE_NS;
}

/* A peer that joins for the second time has restarted, and one that joins far behind is new to the file:
 * it catches up by itself, and the fleet does not stand still for it. */
bool sgp_core_rejoining(const struct sgp_core_link *link)
{
    return link->pulse.state == SGP_NODE_JOINING && link->trained;
}

bool sgp_core_peer_active(const struct sgp_core_link *link)
{
    return link->heard != SGP_TIME_NEVER && !link->absent && state_is_active(link->pulse.state) &&
           !sgp_core_rejoining(link);
}

sgp_time sgp_core_silence(const struct sgp_core_link *link)
{
    sgp_time longest = link->longest[0] > link->longest[1] ? link->longest[0] : link->longest[1];
    if (longest > SGP_SILENCE_MAX_NS / SGP_SILENCE_FACTOR)
        return SGP_SILENCE_MAX_NS;
    sgp_time bound = SGP_SILENCE_FACTOR * longest;
    return bound > SGP_SILENCE_MIN_NS ? bound : SGP_SILENCE_MIN_NS;
}

/* The peer's own pace: silences while it took part, not those of a pause or an absence, nor one that
 * would have been an absence had anybody looked: then it was this node that stood still. */
static void note_interval(struct sgp_core_link *link, sgp_time now)
{
    if (link->heard == SGP_TIME_NEVER || link->absent || !state_is_active(link->pulse.state))
        return;
    sgp_time interval = now - link->heard;
    if (interval >= sgp_core_silence(link))
        return;
    if (interval > link->longest[0])
        link->longest[0] = interval;
    if (++link->intervals == INTERVALS_PER_WINDOW) {
        link->longest[1] = link->longest[0];
        link->longest[0] = 0;
        link->intervals = 0;
    }
}

/* Have nothing to do with a peer: the peer counts as never heard, so nobody waits for it. */
void sgp_core_refuse(
    struct sgp_node *node, struct sgp_core_link *link, int code, enum sgp_reason reason)
{
    struct sgp_effect *note = sgp_core_note(node, SGP_NOTE_REFUSED, link->peer);
    note->link.direction = link->direction;
    note->reason = reason;
    link->heard = SGP_TIME_NEVER;
    link->backoff = SGP_DIAL_MAX_NS;
    sgp_core_hang_up(node, link, code, reason);
}

/* What a neighbour says of the whole fleet. One that has not greeted may be of another: its end is not
 * ours. */
void sgp_core_believe(struct sgp_node *node, struct sgp_core_link *link)
{
    const struct sgp_pulse *pulse = &link->pulse;
    if (pulse->round > node->heard)
        node->heard = pulse->round;
    bool late = node->round > pulse->round + sgp_core_far_ahead(node);
    if (pulse->state == SGP_NODE_TRAINING || pulse->state == SGP_NODE_SETTLING || late)
        link->trained = true;
    if (pulse->ends > node->ends)
        node->ends = pulse->ends;
    if (pulse->stop != SGP_ROUND_NONE &&
        (node->stop == SGP_ROUND_NONE || pulse->stop < node->stop)) {
        node->stop = pulse->stop;
        node->unrecorded = true;
    }
}

void sgp_core_hear(struct sgp_node *node, struct sgp_core_link *link, const struct sgp_pulse *pulse)
{
    enum sgp_reason reason = pulse != NULL ? sgp_core_judge_pulse(node, pulse) : SGP_REASON_NONE;
    if (reason == SGP_REASON_RANGE) {
        sgp_core_hang_up(node, link, SGP_E_PROTOCOL, reason);
        return;
    }
    if (reason != SGP_REASON_NONE) {
        sgp_core_refuse(node, link, SGP_E_MODEL, reason);
        return;
    }
    note_interval(link, node->now);
    link->heard = node->now;
    if (link->absent) {
        link->absent = false;
        (void)sgp_core_note(node, SGP_NOTE_BACK, link->peer);
    }
    if (pulse == NULL)
        return;
    sgp_core_pace_hear(node, link, pulse);
    sgp_core_round_hear(node, link, pulse);
    link->pulse = *pulse;
    if (link->state == SGP_LINK_UP)
        sgp_core_believe(node, link);
}

/* Whether a credit for promise `old` holds for promise `new`. A changed plan makes it void on both
 * sides, so that buffers go out in round order. Where a share may be left out plans change all the
 * time, and every link has a buffer of its own: there only the end of all promises makes it void. */
static bool credit_holds(const struct sgp_node *node, sgp_round old, sgp_round new)
{
    return new == old || (sgp_core_has_own_buffers(node) && new != SGP_ROUND_NONE);
}

/* Take the promise that the peer last stated; a void credit frees its buffer for whoever is first. */
void sgp_core_take_promise(struct sgp_node *node, struct sgp_core_link *link)
{
    if (link->direction != SGP_IN || link->filling)
        return;
    link->promise = link->pulse.next_round;
    if (link->slot == SGP_SLOT_NONE)
        return;
    if (credit_holds(node, node->receives[link->slot].share.round, link->promise))
        node->receives[link->slot].share.round = link->promise;
    else
        sgp_core_unreserve(node, link);
}

/* ---- saying ---- */

/* The next round in which we give on this link. A share that is owed and not sent comes first. One
 * who chooses may choose this neighbour in its very next turn. */
sgp_round sgp_core_promise(struct sgp_node *node, struct sgp_core_link *link)
{
    if (link->owed.exists && !link->owed.sent)
        return link->owed.share.round;
    if (sgp_core_is_heir(node, link))
        return node->leaving.round;
    if (!sgp_core_active(node))
        return SGP_ROUND_NONE;
    sgp_round from = node->round + (node->gave ? 1 : 0);
    if (sgp_core_chooses(node, from))
        return link->retired ? SGP_ROUND_NONE : from;
    bool still_next = link->plan_from != SGP_ROUND_NONE && from >= link->plan_from &&
                      (link->plan == SGP_ROUND_NONE || from <= link->plan);
    if (!still_next) {
        link->plan =
            sgp_topology_next_round(node->config.topology, node->config.self, link->peer, from);
        link->plan_from = from;
    }
    return link->plan < sgp_core_last(node) ? link->plan : SGP_ROUND_NONE;
}

struct sgp_message *sgp_core_send(
    struct sgp_node *node, struct sgp_core_link *link, enum sgp_message_type type)
{
    struct sgp_effect *effect = sgp_core_emit(node, SGP_EFFECT_SEND);
    effect->link = (struct sgp_link){link->peer, link->direction, link->connection};
    effect->message.type = type;
    effect->message.pulse = (struct sgp_pulse){
        .state = sgp_core_state(node),
        .computing = sgp_core_computes(node),
        .round = node->round,
        .next_round = SGP_ROUND_NONE,
        .ends = node->ends,
        .stop = node->stop,
    };
    if (type == SGP_BEAT) {
        link->ended_told = sgp_core_says_ended(node);
        effect->message.beat = (struct sgp_beat){.mixes = node->ending.mixes};
        if (link->ended_told)
            effect->message.beat = (struct sgp_beat){.mixes = node->ending.mixes,
                .ended = true,
                .empty = node->ending.empty,
                .sketch = node->ending.sketch};
    }
    if (link->direction == SGP_OUT) {
        sgp_round promise = sgp_core_promise(node, link);
        if (!credit_holds(node, link->announced, promise))
            link->credit = SGP_ROUND_NONE;
        link->announced = promise;
        effect->message.pulse.next_round = promise;
    }
    link->said = node->now;
    sgp_core_touch(node, link);
    return &effect->message;
}

/* Whether a changed promise must be stated at once. One that takes no part waits for nobody, and would
 * only be woken in each round of ours: it hears with the beats, and at once when it is back. */
static bool is_urgent(enum sgp_node_state own, enum sgp_node_state other)
{
    return state_is_active(other) || !state_is_active(own);
}

void sgp_core_announce(struct sgp_node *node)
{
    enum sgp_node_state own = sgp_core_state(node);
    for (uint32_t i = sgp_core_next(node, SGP_SET_TOUCHED, 0); i < node->link_count;
         i = sgp_core_next(node, SGP_SET_TOUCHED, i + 1)) {
        struct sgp_core_link *link = &node->links[i];
        if (link->state != SGP_LINK_UP)
            continue;
        bool due = beats(own, link->pulse.state) &&
                   node->now - link->said >= beat_pace(own, link->pulse.state);
        bool broken = link->direction == SGP_OUT && is_urgent(own, link->pulse.state) &&
                      sgp_core_promise(node, link) != link->announced;
        bool turned = sgp_core_says_ended(node) != link->ended_told;
        if (due || broken || turned || node->changed)
            (void)sgp_core_send(node, link, SGP_BEAT);
    }
    node->changed = false;
}

/* ---- connections ---- */

/* The connection is gone, whoever ended it: nothing half-done on it may survive. */
static void disconnect(struct sgp_node *node, struct sgp_core_link *link)
{
    sgp_core_touch(node, link);
    link->connection = 0;
    link->state = SGP_LINK_DOWN;
    link->since = node->now;
    link->credit = SGP_ROUND_NONE;
    if (link->owed.sent)
        link->owed.spent += node->now - link->owed.since;
    link->owed.sent = false;
    link->ended_told = false;
    link->declined = false;
    link->handed = 0;
    sgp_core_unstage(node, link);
    link->filling = false;
    sgp_core_unreserve(node, link);
    sgp_core_estimate_down(node, link);
    if (link->direction == SGP_IN)
        return;
    double spread = 0.5 + 0.5 * sgp_random_double(&node->random);
    link->redial = node->now + (sgp_time)((double)link->backoff * spread);
    link->backoff = 2 * link->backoff < SGP_DIAL_MAX_NS ? 2 * link->backoff : SGP_DIAL_MAX_NS;
}

void sgp_core_say_goodbye(
    struct sgp_node *node, const struct sgp_link *id, int code, enum sgp_reason reason)
{
    struct sgp_effect *effect = sgp_core_emit(node, SGP_EFFECT_HANG_UP);
    effect->link = *id;
    effect->code = code;
    effect->reason = reason;
    effect->message.type = SGP_GOODBYE;
    effect->message.pulse = (struct sgp_pulse){.state = sgp_core_state(node),
        .round = node->round,
        .next_round = SGP_ROUND_NONE,
        .ends = node->ends,
        .stop = node->stop};
    effect->message.goodbye =
        (struct sgp_goodbye){.reason = reason, .text = sgp_reason_text(reason)};
}

void sgp_core_hang_up(
    struct sgp_node *node, struct sgp_core_link *link, int code, enum sgp_reason reason)
{
    struct sgp_link id = {link->peer, link->direction, link->connection};
    sgp_core_say_goodbye(node, &id, code, reason);
    link->last_error = code;
    link->last_reason = reason;
    disconnect(node, link);
}

void sgp_core_up(struct sgp_node *node, const struct sgp_link *id)
{
    struct sgp_core_link *link = sgp_core_find(node, id->peer, id->direction);
    sgp_assert(link != NULL && id->connection != 0);
    sgp_core_touch(node, link);
    if (link->connection != 0 && link->direction == SGP_IN) { /* it has to say hello first */
        link->aside.caller = id->connection;
        return;
    }
    if (link->connection != 0)
        sgp_core_hang_up(node, link, SGP_E_REPLACED, SGP_REASON_REPLACED);
    link->connection = id->connection;
    link->state = SGP_LINK_CONNECTING;
    link->since = node->now;
    link->redial = SGP_TIME_NEVER;
    if (link->direction == SGP_IN)
        return;
    if (sgp_core_is_pledged(node, link)) {
        sgp_core_hang_up(node, link, SGP_E_CLOSED, SGP_REASON_LEAVING);
        return;
    }
    struct sgp_message *message = sgp_core_send(node, link, SGP_HELLO);
    message->hello = (struct sgp_hello){
        .source = node->config.topology->nodes[node->config.self].name,
        .target = node->config.topology->nodes[link->peer].name,
        .lineage = node->config.lineage,
        .parameters = node->config.parameters,
        .fingerprint = node->config.fingerprint,
        .target_lineage = link->lineage,
        .acknowledged = link->acknowledged,
    };
}

void sgp_core_down(struct sgp_node *node, struct sgp_core_link *link, int code)
{
    if (link->state == SGP_LINK_UP || link->last_error != code) {
        struct sgp_effect *note = sgp_core_note(node, SGP_NOTE_DOWN, link->peer);
        note->link.direction = link->direction;
        note->code = code;
    }
    link->last_error = code;
    disconnect(node, link);
}

void sgp_core_goodbye(
    struct sgp_node *node, struct sgp_core_link *link, const struct sgp_goodbye *goodbye)
{
    struct sgp_effect *note = sgp_core_note(node, SGP_NOTE_DOWN, link->peer);
    note->link.direction = link->direction;
    note->code = SGP_E_CLOSED;
    note->reason = goodbye->reason;
    enum sgp_reason reason = goodbye->reason;
    /* The peer would not have this share, and says so by ending the connection. */
    if (link->direction == SGP_OUT && link->owed.sent && reason == SGP_REASON_RANGE)
        sgp_core_take_back(node, link, reason);
    /* Of one that left for good: all that it accepted was acknowledged before, or when it greeted. */
    bool greeted_before = link->direction == SGP_OUT && link->state == SGP_LINK_UP;
    if (greeted_before && link->owed.exists && link->disputed == 0 && reason == SGP_REASON_LEFT)
        sgp_core_take_back(node, link, reason);
    if (reason == SGP_REASON_TOPOLOGY) /* it has ended this edge, or moved: nobody to wait for */
        link->heard = SGP_TIME_NEVER;
    bool passing =
        reason == SGP_REASON_ABSENT || reason == SGP_REASON_CHECKSUM || reason == SGP_REASON_CREDIT;
    if (!passing) /* dialling again at once would not change its mind */
        link->backoff = SGP_DIAL_MAX_NS;
    if (!passing && link->state == SGP_LINK_CONNECTING) /* a refusal is no sign of a neighbour */
        link->heard = SGP_TIME_NEVER;
    sgp_core_hang_up(node, link, SGP_E_CLOSED, SGP_REASON_LEAVING);
    link->last_reason = reason;
}

/* ---- time ---- */

/* A finished node goes on dialling: who comes back wants to hear of the end, and of the model. */
static bool wants_connection(const struct sgp_node *node, const struct sgp_core_link *link)
{
    bool wants = (!node->drained && !link->retired) || link->owed.exists;
    return wants && !sgp_core_is_pledged(node, link);
}

/* An edge that is gone from the file and over which nothing is left to settle. */
static bool is_over(const struct sgp_node *node, const struct sgp_core_link *link)
{
    return link->retired && link->direction == SGP_OUT && link->connection != 0 &&
           !link->owed.exists && !link->asks && node->handing.peer != link->peer;
}

static bool receives(const struct sgp_node *node, const struct sgp_core_link *link)
{
    bool estimate =
        link->direction == SGP_IN && node->seeking.filling && node->seeking.asked == link->peer;
    return link->filling || estimate;
}

/* When silence on this link becomes absence. Beats do not keep a payload alive that hardly comes: it
 * holds a buffer, and may hold the round. How long that may last does not depend on the peer's pace, for
 * on a thin link what was lost has to be sent again. */
static sgp_time absent_at(const struct sgp_node *node, const struct sgp_core_link *link)
{
    bool judged = link->heard != SGP_TIME_NEVER && !link->absent &&
                  beats(link->pulse.state, sgp_core_state(node)) && !node->drained;
    sgp_time at = judged ? link->heard + sgp_core_silence(link) : SGP_TIME_NEVER;
    if (receives(node, link) && !node->drained && sgp_core_payload_end(link) < at)
        at = sgp_core_payload_end(link);
    bool greeting = link->state == SGP_LINK_CONNECTING;
    return greeting && link->since + SGP_SILENCE_MIN_NS < at ? link->since + SGP_SILENCE_MIN_NS
                                                             : at;
}

static void fall_silent(struct sgp_node *node, struct sgp_core_link *link)
{
    bool known = link->heard != SGP_TIME_NEVER && !link->absent &&
                 node->now - link->heard >= sgp_core_silence(link);
    if (known) {
        link->absent = true;
        struct sgp_effect *note = sgp_core_note(node, SGP_NOTE_ABSENT, link->peer);
        note->link.direction = link->direction;
    } else if (receives(node, link) && sgp_core_payload_end(link) <= node->now) {
        sgp_core_payload_trickles(node, link);
    }
    if (link->connection != 0)
        sgp_core_hang_up(node, link, SGP_E_ABSENT, SGP_REASON_ABSENT);
}

void sgp_core_watch(struct sgp_node *node)
{
    for (uint32_t i = sgp_core_next(node, SGP_SET_ENDING, 0); i < node->link_count;
         i = sgp_core_next(node, SGP_SET_ENDING, i + 1)) {
        struct sgp_core_link *link = &node->links[i];
        if (absent_at(node, link) <= node->now)
            fall_silent(node, link);
        sgp_core_let_in(node, link);
        sgp_core_lose_patience(node, link);
        if (is_over(node, link)) {
            sgp_core_hang_up(node, link, SGP_E_CLOSED, SGP_REASON_TOPOLOGY);
            link->heard = SGP_TIME_NEVER;
        }
        if (link->redial <= node->now && wants_connection(node, link)) {
            struct sgp_effect *effect = sgp_core_emit(node, SGP_EFFECT_DIAL);
            effect->link = (struct sgp_link){.peer = link->peer, .direction = SGP_OUT};
            link->redial = SGP_TIME_NEVER;
        }
    }
}

sgp_time sgp_core_link_deadline(const struct sgp_node *node, const struct sgp_core_link *link)
{
    sgp_time least = absent_at(node, link), aside = sgp_core_aside_deadline(link);
    least = aside < least ? aside : least;
    sgp_time overdue = sgp_core_overdue_at(node, link), owed = sgp_core_acknowledged_by(link);
    least = overdue < least ? overdue : least;
    least = owed < least ? owed : least;
    if (link->redial < least && wants_connection(node, link))
        least = link->redial;
    enum sgp_node_state own = sgp_core_state(node);
    bool says = link->state == SGP_LINK_UP && beats(own, link->pulse.state);
    sgp_time due = says ? link->said + beat_pace(own, link->pulse.state) : SGP_TIME_NEVER;
    return due < least ? due : least;
}

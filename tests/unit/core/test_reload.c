/* SPDX-License-Identifier: Apache-2.0 */
/* Another topology in the middle of everything: one real core, its peers played by the test. Nodes are
 * called by letters, so that a letter means the same node under every file. */
#include "sgp/driver.h"
#include "sgp/node.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PARAMETERS 10
#define PAYLOAD (4u * PARAMETERS)
#define EFFECTS_MAX 512

/* "abc" are the nodes in this order, "ab ba" the edges: one phase a line of `phases`. */
static struct sgp_topology *topology_of(const char *nodes, const char *const *phases)
{
    struct sgp_topology_node names[8] = {0};
    uint32_t count = (uint32_t)strlen(nodes);
    for (uint32_t i = 0; i < count; i++)
        names[i].name[0] = nodes[i];
    struct sgp_topology *topology = NULL;
    cr_assert(zero(int, sgp_topology_create(names, count, NULL, &topology)));
    for (; *phases; phases++) {
        struct sgp_edge edges[32];
        uint32_t edge_count = 0;
        for (const char *c = *phases; *c; c += c[2] ? 3 : 2)
            edges[edge_count++] = (struct sgp_edge){(uint32_t)(strchr(nodes, c[0]) - nodes),
                (uint32_t)(strchr(nodes, c[1]) - nodes), SGP_FRACTION_DEFAULT, false};
        cr_assert(
            zero(int, sgp_topology_add_phase(topology, "p", 1, false, edges, edge_count, NULL)));
    }
    cr_assert(zero(int, sgp_topology_seal(topology, NULL)));
    return topology;
}

#define TOPOLOGY(nodes, ...) topology_of(nodes, (const char *const[]){__VA_ARGS__, NULL})

/* Node a under test. Connections are numbered 10 * letter + direction. */
struct desk {
    struct sgp_topology *topology;
    struct sgp_node *node;
    struct sgp_effects effects;
    struct sgp_effect items[EFFECTS_MAX];
    sgp_time now;
    uint64_t connection[128][3];
    uint64_t connections;
};

static uint32_t index_of(const struct desk *desk, char who)
{
    const char name[2] = {who, '\0'};
    return (uint32_t)sgp_topology_find(desk->topology, name);
}

static void post(struct desk *desk, struct sgp_event event)
{
    event.now = desk->now;
    sgp_node_step(desk->node, &event, &desk->effects);
}

static void tick(struct desk *desk)
{
    post(desk, (struct sgp_event){.type = SGP_EVENT_TICK});
}

static struct sgp_link link_of(const struct desk *desk, char who, enum sgp_direction direction)
{
    return (struct sgp_link){index_of(desk, who), direction, desk->connection[(int)who][direction]};
}

static struct sgp_node_config config_of(
    const struct sgp_topology *topology, const struct sgp_record *record)
{
    return (struct sgp_node_config){.topology = topology,
        .self = (uint32_t)sgp_topology_find(topology, "a"),
        .method = sgp_method_find("sgp"),
        .incarnation = 77,
        .seed = 1,
        .parameters = PARAMETERS,
        .fingerprint = {.shape = 1, .method = 1},
        .rounds = 100,
        .local_steps = 1,
        .final_cycles = 2,
        .start = SGP_START_ALL,
        .record = record};
}

static void open_desk(
    struct desk *desk, struct sgp_topology *topology, const struct sgp_record *record)
{
    *desk = (struct desk){.topology = topology, .now = SGP_SECOND, .effects.capacity = EFFECTS_MAX};
    desk->effects.items = desk->items;
    struct sgp_node_config config = config_of(topology, record);
    cr_assert(zero(int, sgp_node_create(&config, &desk->node)));
    post(desk, (struct sgp_event){.type = SGP_EVENT_START});
}

static void close_desk(struct desk *desk)
{
    sgp_node_destroy(desk->node);
    sgp_topology_destroy(desk->topology);
}

static struct sgp_pulse pulse_at(sgp_round round, sgp_round next)
{
    return (struct sgp_pulse){.state = SGP_NODE_TRAINING,
        .round = round,
        .next_round = next,
        .ends = 100,
        .stop = SGP_ROUND_NONE};
}

static void say(
    struct desk *desk, char who, enum sgp_direction direction, struct sgp_message message)
{
    post(desk,
        (struct sgp_event){
            .type = SGP_EVENT_MESSAGE, .link = link_of(desk, who, direction), .message = &message});
}

static void come_up(struct desk *desk, char who, enum sgp_direction direction)
{
    desk->connection[(int)who][direction] = ++desk->connections;
    post(desk, (struct sgp_event){.type = SGP_EVENT_UP, .link = link_of(desk, who, direction)});
}

static void greet_in(struct desk *desk, char who, sgp_round round, sgp_round next)
{
    const char name[2] = {who, '\0'};
    come_up(desk, who, SGP_IN);
    say(desk, who, SGP_IN,
        (struct sgp_message){.type = SGP_HELLO,
            .pulse = pulse_at(round, next),
            .hello = {.source = name,
                .target = "a",
                .incarnation = (uint64_t)who,
                .parameters = PARAMETERS,
                .fingerprint = {.shape = 1, .method = 1}}});
}

static void greet_out(struct desk *desk, char who, sgp_round round, uint64_t accepted)
{
    const char name[2] = {who, '\0'};
    come_up(desk, who, SGP_OUT);
    say(desk, who, SGP_OUT,
        (struct sgp_message){.type = SGP_WELCOME,
            .pulse = pulse_at(round, SGP_ROUND_NONE),
            .welcome = {.target = name,
                .incarnation = (uint64_t)who,
                .accepted = accepted,
                .fingerprint = {.shape = 1, .method = 1}}});
}

static void grant(struct desk *desk, char who, sgp_round round)
{
    say(desk, who, SGP_OUT,
        (struct sgp_message){.type = SGP_CREDIT,
            .pulse = pulse_at(round, SGP_ROUND_NONE),
            .credit = {.round = round}});
}

static void acknowledge(struct desk *desk, char who, uint64_t number)
{
    say(desk, who, SGP_OUT,
        (struct sgp_message){.type = SGP_ACK,
            .pulse = pulse_at(1, SGP_ROUND_NONE),
            .ack = {.number = number, .reason = SGP_REASON_NONE}});
}

/* The announcement of a share; its payload is complete when the test posts that. */
static void announce(
    struct desk *desk, char who, uint64_t number, sgp_round round, double weight, sgp_round next)
{
    say(desk, who, SGP_IN,
        (struct sgp_message){.type = SGP_SHARE,
            .pulse = pulse_at(round, next),
            .share = {.number = number,
                .round = round,
                .fraction = 0.5,
                .weight = weight,
                .slice = {0, PARAMETERS},
                .payload_bytes = PAYLOAD}});
}

static void complete(struct desk *desk, char who)
{
    post(desk, (struct sgp_event){.type = SGP_EVENT_PAYLOAD, .link = link_of(desk, who, SGP_IN)});
}

static uint32_t peer_of(const struct sgp_effect *effect)
{
    return effect->type == SGP_EFFECT_DIAL     ? effect->dial.peer
           : effect->type == SGP_EFFECT_ABSORB ? effect->absorb.peer
                                               : effect->hang_up.link.peer;
}

static const struct sgp_effect *find(const struct desk *desk, enum sgp_effect_type type, char who)
{
    for (uint32_t i = 0; i < desk->effects.count; i++)
        if (desk->items[i].type == type &&
            (who == 0 || peer_of(&desk->items[i]) == index_of(desk, who)))
            return &desk->items[i];
    return NULL;
}

static const struct sgp_effect *find_sent(
    const struct desk *desk, enum sgp_message_type type, char who)
{
    for (uint32_t i = 0; i < desk->effects.count; i++)
        if (desk->items[i].type == SGP_EFFECT_SEND && desk->items[i].send.message.type == type &&
            desk->items[i].send.link.peer == index_of(desk, who))
            return &desk->items[i];
    return NULL;
}

static struct sgp_node_status status_of(const struct desk *desk)
{
    struct sgp_node_status status;
    sgp_node_status(desk->node, &status);
    return status;
}

static bool find_link(const struct desk *desk, char who, enum sgp_direction direction,
    struct sgp_peer_status *ret_status)
{
    for (uint32_t i = 0; i < sgp_node_link_count(desk->node); i++) {
        sgp_node_link_status(desk->node, i, ret_status);
        if (ret_status->peer == index_of(desk, who) && ret_status->direction == direction)
            return true;
    }
    return false;
}

/* The effects of the reload itself; the tick that follows is the test's. */
static void reload_into(struct desk *desk, struct sgp_topology *topology, enum sgp_node_state state)
{
    struct sgp_node_status before = status_of(desk), after;
    struct sgp_node_needs had, needs, has;
    struct sgp_node_change change = {
        .topology = topology, .self = (uint32_t)sgp_topology_find(topology, "a")};
    struct sgp_reload *plan;
    sgp_node_counts(desk->node, &had);
    cr_assert(zero(int, sgp_reload_prepare(desk->node, &change, &needs, &plan)));
    sgp_node_reload(desk->node, desk->now, plan, &desk->effects);
    sgp_node_counts(desk->node, &has);
    cr_assert(ge(u32, needs.snapshots, had.snapshots));
    cr_assert(ge(u32, needs.receives, had.receives));
    cr_assert(eq(u32, has.snapshots, needs.snapshots));
    cr_assert(eq(u32, has.links, needs.links));
    sgp_node_status(desk->node, &after);
    cr_assert(eq(i64, after.round, before.round));
    cr_assert(eq(int, (int)after.state, (int)state));
    cr_assert(epsilon_eq(dbl, after.weight + after.weight_in_flight,
        before.weight + before.weight_in_flight, 1e-15));
    cr_assert(sgp_node_record_changed(desk->node));
    cr_assert(eq(i64, sgp_node_deadline(desk->node), desk->now)); /* asks for a tick at once */
}

static void reload(struct desk *desk, struct sgp_topology *topology)
{
    reload_into(desk, topology, status_of(desk).state);
}

static void finish_reload(struct desk *desk, struct sgp_topology *topology)
{
    sgp_topology_destroy(desk->topology);
    desk->topology = topology;
    tick(desk);
}

static void change_to(struct desk *desk, struct sgp_topology *topology)
{
    reload(desk, topology);
    finish_reload(desk, topology);
}

/* a, b and c give to each other; everybody has greeted and a trains round 0. */
static void open_triangle(struct desk *desk)
{
    open_desk(desk, TOPOLOGY("abc", "ab ac ba bc ca cb"), NULL);
    greet_in(desk, 'b', 0, 0);
    greet_in(desk, 'c', 0, 0);
    greet_out(desk, 'b', 0, 0);
    greet_out(desk, 'c', 0, 0);
    cr_assert(eq(int, (int)status_of(desk).state, SGP_NODE_TRAINING));
    cr_assert(eq(int, (int)status_of(desk).waiting, SGP_WAITING_JOB));
}

static void train(struct desk *desk)
{
    post(desk, (struct sgp_event){.type = SGP_EVENT_TRAINED});
}

static void publish(struct desk *desk)
{
    post(desk, (struct sgp_event){.type = SGP_EVENT_PUBLISHED, .slot = 0});
}

/* The rest of round 0 from any stage: what is still missing happens, and round 1 begins. `done` counts
 * the steps that have happened. */
static void play_round(struct desk *desk, int from, int to)
{
    for (int step = from; step < to; step++) {
        switch (step) {
        case 0:
            train(desk);
            break;
        case 1:
            grant(desk, 'b', 0);
            break;
        case 2:
            grant(desk, 'c', 0);
            break;
        case 3:
            publish(desk);
            break;
        case 4:
            announce(desk, 'b', 1, 0, 1.0 / 3, 1);
            break;
        case 5:
            complete(desk, 'b');
            break;
        case 6:
            acknowledge(desk, 'b', 1);
            break;
        case 7:
            announce(desk, 'c', 1, 0, 1.0 / 3, 1);
            break;
        case 8:
            complete(desk, 'c');
            break;
        default:
            acknowledge(desk, 'c', 1);
            break;
        }
    }
}

#define STEPS 10

Test(reload, a_round_goes_on_at_every_stage_under_other_indices)
{
    for (int stage = 0; stage <= STEPS; stage++) {
        struct desk desk;
        open_triangle(&desk);
        play_round(&desk, 0, stage);
        change_to(&desk, TOPOLOGY("cxab", "ab ac ba bc ca cb"));
        play_round(&desk, stage, STEPS);
        struct sgp_node_status status = status_of(&desk);
        cr_assert(eq(i64, status.round, 1), "stage %d: round %d", stage, (int)status.round);
        cr_assert(epsilon_eq(dbl, status.weight, 1, 1e-15));
        cr_assert(zero(dbl, status.weight_in_flight));
        struct sgp_peer_status link;
        cr_assert(find_link(&desk, 'b', SGP_IN, &link));
        cr_assert(eq(u64, link.shares_received, 1));
        cr_assert(eq(u64, link.last_number, 1));
        cr_assert(find_link(&desk, 'c', SGP_OUT, &link));
        cr_assert(eq(u64, link.shares_sent, 1));
        cr_assert(zero(dbl, link.weight_owed));
        cr_assert(eq(int, (int)link.state, SGP_LINK_UP)); /* no connection was lost */
        close_desk(&desk);
    }
}

Test(reload, an_edge_removed_at_any_stage_settles_what_is_owed_and_ends)
{
    for (int stage = 0; stage <= STEPS; stage++) {
        struct desk desk;
        open_triangle(&desk);
        play_round(&desk, 0, stage);
        change_to(&desk, TOPOLOGY("cba", "ab ba bc ca cb"));
        bool gave = stage >= 3;
        struct sgp_peer_status link;
        cr_assert(find_link(&desk, 'c', SGP_OUT, &link) && link.retired);
        bool owed = gave && stage < STEPS;
        cr_assert(eq(dbl, link.weight_owed, owed ? 1.0 / 3 : 0), "stage %d", stage);
        cr_assert(eq(int, (int)link.state, owed ? SGP_LINK_UP : SGP_LINK_DOWN));
        if (!owed) {
            cr_assert(find(&desk, SGP_EFFECT_HANG_UP, 'c') != NULL || stage == STEPS);
        } else {
            play_round(&desk, stage, STEPS);
            cr_assert(find(&desk, SGP_EFFECT_HANG_UP, 'c') != NULL, "stage %d", stage);
        }
        /* what c still gives is waited for and accepted, though it gets nothing any more */
        struct sgp_node_status status = status_of(&desk);
        if (gave) {
            cr_assert(epsilon_eq(dbl, status.weight, 1, 1e-15));
            cr_assert(zero(dbl, status.weight_in_flight));
        }
        desk.now += 10 * SGP_SECOND; /* nobody misses it */
        tick(&desk);
        cr_assert(find(&desk, SGP_EFFECT_DIAL, 'c') == NULL);
        close_desk(&desk);
    }
}

Test(reload, a_source_that_still_has_the_edge_is_understood)
{
    struct desk desk;
    open_triangle(&desk);
    play_round(&desk, 0, 4);
    change_to(&desk, TOPOLOGY("abc", "ab ac ba bc cb")); /* no edge from c any more */
    struct sgp_peer_status link;
    cr_assert(find_link(&desk, 'c', SGP_IN, &link) && link.retired);
    play_round(&desk, 4, 7);
    cr_assert(eq(i64, status_of(&desk).round, 0)); /* c has promised, and has not reloaded */
    cr_assert(eq(u32, status_of(&desk).waiting_peer, index_of(&desk, 'c')));
    play_round(&desk, 7, STEPS);
    cr_assert(eq(i64, status_of(&desk).round, 1));
    cr_assert(epsilon_eq(dbl, status_of(&desk).weight, 1, 1e-15));
    say(&desk, 'c', SGP_IN,
        (struct sgp_message){.type = SGP_GOODBYE,
            .pulse = pulse_at(1, SGP_ROUND_NONE),
            .goodbye = {.reason = SGP_REASON_TOPOLOGY, .text = ""}});
    cr_assert(find_link(&desk, 'c', SGP_IN, &link));
    cr_assert(eq(i64, link.last_heard, SGP_TIME_NEVER));
    desk.now += 10 * SGP_SECOND;
    tick(&desk);
    cr_assert(find_link(&desk, 'c', SGP_IN, &link) && !link.absent);
    close_desk(&desk);
}

Test(reload, an_edge_that_comes_back_goes_on_with_its_numbers)
{
    struct desk desk;
    open_triangle(&desk);
    play_round(&desk, 0, STEPS);
    change_to(&desk, TOPOLOGY("abc", "ab ba bc cb"));
    cr_assert(find(&desk, SGP_EFFECT_HANG_UP, 'c') != NULL);
    change_to(&desk, TOPOLOGY("bac", "ab ac ba bc ca cb"));
    cr_assert(find(&desk, SGP_EFFECT_DIAL, 'c') != NULL);
    struct sgp_peer_status link;
    cr_assert(find_link(&desk, 'c', SGP_OUT, &link));
    cr_assert(not(link.retired));
    cr_assert(eq(u64, link.last_number, 1));
    cr_assert(find_link(&desk, 'c', SGP_IN, &link));
    cr_assert(not(link.retired));
    cr_assert(eq(u64, link.last_number, 1));
    desk.now += 2 * SGP_BEAT_NS; /* on its old connection c has fallen silent */
    greet_in(&desk, 'c', 1, 1);
    cr_assert(find_sent(&desk, SGP_WELCOME, 'c') != NULL);
    cr_assert(eq(u64, find_sent(&desk, SGP_WELCOME, 'c')->send.message.welcome.accepted, 1));
    close_desk(&desk);
}

Test(reload, what_a_peer_that_is_gone_is_owed_comes_home)
{
    for (int stage = 0; stage <= STEPS; stage++) {
        struct desk desk;
        open_triangle(&desk);
        play_round(&desk, 0, stage);
        bool owed = stage >= 3 && stage < STEPS;
        struct sgp_topology *two = TOPOLOGY("ba", "ab ba");
        reload(&desk, two); /* the sum of weight and weight in flight is checked there */
        cr_assert(eq(dbl, status_of(&desk).weight_in_flight, stage >= 3 && stage < 7 ? 1.0 / 3 : 0),
            "stage %d", stage);
        bool restored = find(&desk, SGP_EFFECT_RESTORE, 0) != NULL;
        cr_assert(eq(int, restored, owed), "stage %d", stage);
        cr_assert(find(&desk, SGP_EFFECT_HANG_UP, 'c') != NULL); /* by its former index */
        finish_reload(&desk, two);
        cr_assert(eq(u32, sgp_node_link_count(desk.node), 2));
        if (restored) {
            uint32_t slot = 0;
            if (stage == 3)
                publish(&desk);
            post(&desk, (struct sgp_event){.type = SGP_EVENT_RESTORED, .slot = slot});
        }
        close_desk(&desk);
    }
}

Test(reload, what_a_peer_that_is_gone_gave_is_absorbed)
{
    struct desk desk;
    open_triangle(&desk);
    grant(&desk, 'b', 0);
    grant(&desk, 'c', 0);
    announce(&desk, 'c', 1, 0, 0.25, 1);
    complete(&desk, 'c'); /* held: a still trains */
    cr_assert(eq(dbl, status_of(&desk).weight, 1.25));
    cr_assert(eq(dbl, status_of(&desk).weight_estimate, 1));
    struct sgp_topology *two = TOPOLOGY("ba", "ab ba");
    reload(&desk, two);
    const struct sgp_effect *absorb = find(&desk, SGP_EFFECT_ABSORB, 0);
    cr_assert(absorb != NULL);
    uint32_t slot = absorb->absorb.slot;
    cr_assert(eq(dbl, status_of(&desk).weight_estimate, 1.25));
    finish_reload(&desk, two);
    post(&desk, (struct sgp_event){.type = SGP_EVENT_ABSORBED, .slot = slot});
    cr_assert(eq(dbl, status_of(&desk).weight, 1.25));
    close_desk(&desk);
}

/* Of its three connections one takes part, one has greeted, and one has not. */
Test(reload, no_connection_of_a_peer_that_is_gone_stands)
{
    struct desk desk;
    open_triangle(&desk);
    uint64_t connections[3] = {desk.connection['b'][SGP_IN]};
    greet_in(&desk, 'b', 0, 0);
    connections[1] = desk.connection['b'][SGP_IN];
    come_up(&desk, 'b', SGP_IN);
    connections[2] = desk.connection['b'][SGP_IN];
    struct sgp_topology *topology = TOPOLOGY("ac", "ac ca");
    reload(&desk, topology);
    for (int i = 0; i < 3; i++) {
        uint32_t ended = 0;
        for (uint32_t e = 0; e < desk.effects.count; e++)
            ended += desk.items[e].type == SGP_EFFECT_HANG_UP &&
                     desk.items[e].hang_up.link.connection == connections[i];
        cr_assert(eq(u32, ended, 1), "%d", i);
    }
    finish_reload(&desk, topology);
    close_desk(&desk);
}

Test(reload, a_new_peer_is_dialled_at_once_and_nobody_waits_for_it)
{
    struct desk desk;
    open_triangle(&desk);
    play_round(&desk, 0, 1);
    change_to(&desk, TOPOLOGY("adbc", "ab ac ad ba bc ca cb da"));
    cr_assert(find(&desk, SGP_EFFECT_DIAL, 'd') != NULL);
    play_round(&desk, 1, 3);
    const struct sgp_effect *job = find(&desk, SGP_EFFECT_PUBLISH, 0);
    cr_assert(job != NULL);
    cr_assert(epsilon_eq(dbl, job->publish.keep, 0.5, 1e-7)); /* 1/4 for b, for c; d's stays */
    close_desk(&desk);
}

/* A node without neighbours finishes without a sketch. With its first neighbour it must compare. */
Test(reload, a_lone_node_that_had_finished_settles_until_it_has_a_sketch)
{
    struct desk desk;
    open_desk(&desk, TOPOLOGY("a", ""), NULL);
    while (status_of(&desk).state != SGP_NODE_FINISHED) {
        cr_assert(lt(i64, status_of(&desk).round, 1000));
        if (find(&desk, SGP_EFFECT_TRAIN, 0) != NULL)
            train(&desk);
        else
            tick(&desk);
    }
    cr_assert(find(&desk, SGP_EFFECT_SKETCH, 0) == NULL);
    struct sgp_topology *two = TOPOLOGY("ab", "ab ba");
    reload_into(&desk, two, SGP_NODE_SETTLING);
    finish_reload(&desk, two);
    cr_assert(find(&desk, SGP_EFFECT_SKETCH, 0) != NULL);
    cr_assert(eq(int, (int)status_of(&desk).state, SGP_NODE_SETTLING));
    struct sgp_sketch sketch = {.values = {1}};
    post(&desk, (struct sgp_event){.type = SGP_EVENT_SKETCHED, .sketch = &sketch});
    cr_assert(eq(int, (int)status_of(&desk).state, SGP_NODE_FINISHED));
    close_desk(&desk);
}

Test(reload, changed_promises_are_announced_at_once)
{
    struct desk desk;
    open_triangle(&desk);
    change_to(&desk, TOPOLOGY("abc", "ab ba bc cb", "ac ca"));
    const struct sgp_effect *beat = find_sent(&desk, SGP_BEAT, 'c');
    cr_assert(beat != NULL);
    cr_assert(eq(i64, beat->send.message.pulse.next_round, 1));
    beat = find_sent(&desk, SGP_BEAT, 'b');
    cr_assert(beat != NULL);
    cr_assert(eq(i64, beat->send.message.pulse.next_round, 0));
    close_desk(&desk);
}

Test(reload, a_peer_with_another_address_is_dialled_there)
{
    struct desk desk;
    open_triangle(&desk);
    struct sgp_topology *moved = TOPOLOGY("abc", "ab ac ba bc ca cb");
    strcpy(moved->nodes[1].address, "10.0.0.2:7311");
    reload(&desk, moved);
    cr_assert(find(&desk, SGP_EFFECT_HANG_UP, 'b') != NULL);
    cr_assert(eq(int, (int)find(&desk, SGP_EFFECT_HANG_UP, 'b')->hang_up.link.direction, SGP_OUT));
    cr_assert(find(&desk, SGP_EFFECT_HANG_UP, 'c') == NULL);
    finish_reload(&desk, moved);
    cr_assert(find(&desk, SGP_EFFECT_DIAL, 'b') != NULL);
    cr_assert(find(&desk, SGP_EFFECT_DIAL, 'c') == NULL);
    close_desk(&desk);
}

Test(reload, another_nodes_file_is_refused_and_nothing_has_happened)
{
    struct desk desk;
    open_triangle(&desk);
    struct sgp_topology *other = TOPOLOGY("bcd", "bc cd db");
    struct sgp_node_needs needs;
    struct sgp_reload *plan = NULL;
    for (uint32_t self = 0; self <= 3; self++) {
        struct sgp_node_change change = {.topology = other, .self = self};
        cr_assert(eq(int, sgp_reload_prepare(desk.node, &change, &needs, &plan), -EINVAL));
    }
    struct sgp_node_change same = {.topology = desk.topology, .self = 0};
    cr_assert(zero(int, sgp_reload_prepare(desk.node, &same, &needs, &plan)));
    sgp_reload_cancel(plan);
    play_round(&desk, 0, STEPS);
    cr_assert(eq(i64, status_of(&desk).round, 1));
    sgp_topology_destroy(other);
    close_desk(&desk);
}

/* ---- the same by a restart ---- */

/* a died owing c share 5; now its file has no edge to c. */
static void restart_owing(struct desk *desk, struct sgp_record_link *link)
{
    *link = (struct sgp_record_link){.peer = 2,
        .out = true,
        .incarnation = 'c',
        .number = 5,
        .owes = true,
        .owed_round = 8,
        .owed_fraction = 0.5,
        .owed_weight = 0.25};
    struct sgp_record record = {.incarnation = 77,
        .round = 9,
        .weight = 0.75,
        .link_count = 1,
        .link_capacity = 1,
        .links = link};
    open_desk(desk, TOPOLOGY("abc", "ab ba bc cb"), &record);
}

Test(reload, a_restart_under_another_file_does_not_give_back_what_was_accepted)
{
    struct desk desk;
    struct sgp_record_link link;
    restart_owing(&desk, &link);
    cr_assert(eq(dbl, status_of(&desk).weight, 0.75));
    cr_assert(find(&desk, SGP_EFFECT_DIAL, 'c') != NULL);
    greet_out(&desk, 'c', 9, 5);
    cr_assert(eq(dbl, status_of(&desk).weight, 0.75));
    cr_assert(zero(dbl, status_of(&desk).weight_in_flight));
    cr_assert(find(&desk, SGP_EFFECT_HANG_UP, 'c') != NULL);
    close_desk(&desk);
}

Test(reload, a_restart_under_another_file_takes_back_once_what_was_not)
{
    struct desk desk;
    struct sgp_record_link link;
    restart_owing(&desk, &link);
    greet_out(&desk, 'c', 9, 4);
    cr_assert(eq(dbl, status_of(&desk).weight, 1));
    cr_assert(find(&desk, SGP_EFFECT_SCALE, 0) != NULL);
    struct sgp_record_link links[8];
    struct sgp_record record = {.link_capacity = 8, .links = links};
    sgp_node_record(desk.node, &record);
    cr_assert(eq(u32, record.link_count, 3)); /* with c: its number goes on if the edge returns */
    close_desk(&desk);
}

Test(reload, a_record_of_a_link_to_the_node_itself_is_refused)
{
    struct sgp_topology *topology = TOPOLOGY("abc", "ab ba bc cb");
    struct sgp_record_link link = {.peer = 0, .out = true};
    struct sgp_record record = {
        .incarnation = 77, .weight = 1, .link_count = 1, .link_capacity = 1, .links = &link};
    struct sgp_node_config config = config_of(topology, &record);
    struct sgp_node *node;
    cr_assert(eq(int, sgp_node_create(&config, &node), -EINVAL));
    sgp_topology_destroy(topology);
}

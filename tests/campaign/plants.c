/* SPDX-License-Identifier: Apache-2.0 */
/* Bugs put in on purpose: operations of our own in front of the simulator's, which do what a faulty node or
 * daemon would. The checkers must see each of them; the core knows nothing of this. What a hostile node
 * does must harm nobody, so there they must see nothing. */
#include "campaign.h"

#include "core/core.h"
#include "sim/world.h"

#include <string.h>

static const struct sgp_driver_ops *real; /* the simulator's */
static struct sgp_driver_ops ops;         /* those, with one of ours among them */
static uint32_t calls;                    /* of ours, since it was put in */

/* Now and then, as bugs do. */
static bool strikes(uint32_t pace)
{
    return ++calls % pace == 0;
}

/* ---- the bugs ---- */

static float *place_of(const struct sgp_sim_host *host, uint32_t slot)
{
    return *sgp_pool_place(&host->performer.receives, slot);
}

static void absorb_twice(void *context, const struct sgp_effect *effect)
{
    bool absorbs = effect->type == SGP_EFFECT_ABSORB;
    float *share = absorbs ? place_of(context, effect->absorb.slot) : NULL;
    for (uint64_t i = 0; absorbs && i < effect->absorb.slice.count && strikes(20); i++)
        share[i] *= 2;
    real->work(context, effect);
}

/* What was folded is kept although a part of it came damaged. */
static void keep_damaged(void *context, const struct sgp_effect *effect)
{
    if (effect->type == SGP_EFFECT_ABSORB && effect->absorb.folded && strikes(20))
        place_of(context, effect->absorb.slot)[effect->absorb.slice.count / 2] += 1;
    real->work(context, effect);
}

/* A share is folded over what x was before the snapshot was made. */
static void fold_over_another(void *context, const struct sgp_effect *effect)
{
    struct sgp_effect copy = *effect;
    if (effect->fold.how.snapshot != SGP_SLOT_NONE && strikes(20))
        copy.fold.how.keep = 1;
    real->fold(context, &copy);
}

static void acknowledge_early(void *context, struct sgp_link link, uint32_t slot)
{
    struct sgp_sim_host *host = context;
    real->receive(context, link, slot);
    const struct sgp_share *share = &host->receives[slot].share;
    if (share->number == 0 || !strikes(20))
        return;
    struct sgp_message message = {.type = SGP_ACK, .ack = {share->number, SGP_REASON_NONE}};
    message.pulse = (struct sgp_pulse){.state = SGP_NODE_TRAINING,
        .round = share->round,
        .next_round = SGP_ROUND_NONE,
        .stop = SGP_ROUND_NONE};
    real->send(context, link, &message, SGP_SLOT_NONE);
}

static void leak_credit(
    void *context, struct sgp_link link, const struct sgp_message *message, uint32_t snapshot)
{
    if (message->type != SGP_CREDIT || !strikes(20))
        real->send(context, link, message, snapshot);
}

/* A hostile node: it says of ordinary shares that they are bequests, so that others shall dissolve mass. */
static void lie(
    void *context, struct sgp_link link, const struct sgp_message *message, uint32_t snapshot)
{
    struct sgp_message copy = *message;
    const struct sgp_sim_host *host = context;
    if (message->type == SGP_SHARE && host->index == 0 && strikes(300))
        copy.share.bequest = 3;
    real->send(context, link, &copy, snapshot);
}

/* The record says nothing of what is owed: after a restart nobody takes it back. */
static void owe_nothing(void *context, const struct sgp_node *node)
{
    struct sgp_sim_host *host = context;
    real->commit(context, node);
    for (uint32_t i = 0; i < host->record.link_count; i++) {
        struct sgp_record_link *link = &host->record.links[i];
        link->owes = false;
        link->owed_round = 0;
        link->owed_fraction = link->owed_weight = 0;
    }
}

/* After a restart nothing is written down any more: the next one spends the same record again. */
static void commit_once(void *context, const struct sgp_node *node)
{
    const struct sgp_sim_host *host = context;
    if (host->life == 0)
        real->commit(context, node);
}

/* Whatever checkpoint there is passes for one of the last moment. */
static void call_it_exact(
    const struct sgp_past *past, uint64_t fresh, uint32_t slots, struct sgp_restart *ret_restart)
{
    sgp_restart(past, fresh, slots, ret_restart);
    if (past->record && past->point) {
        ret_restart->exact = true;
        ret_restart->seeks = false;
        ret_restart->scale = 1;
    }
}

/* ---- of owners ---- */

/* An owner adds an update, and once more what it is. */
static void add_twice(void *context, const struct sgp_effect *effect)
{
    struct sgp_sim_host *host = context;
    const struct sgp_slice *slice = &effect->absorb.slice;
    if (effect->type == SGP_EFFECT_ABSORB && sgp_sim_is_owner(host) && strikes(20))
        host->trainer->methods->restore(host->trainer, place_of(host, effect->absorb.slot),
            (float)effect->absorb.fraction, slice->first, slice->count);
    real->work(context, effect);
}

/* An update that came too late is added all the same. */
static void add_late(void *context, const struct sgp_effect *note)
{
    struct sgp_sim_host *host = context;
    struct sgp_slice owned = sgp_sim_owned(host);
    if (note->note.what == SGP_NOTE_LATE && strikes(20))
        host->trainer->methods->restore(
            host->trainer, place_of(host, note->note.slot), 0.25f, owned.first, owned.count);
    real->note(context, note);
}

/* A copy of an older label goes out as one of this. */
static void send_old(
    void *context, struct sgp_link link, const struct sgp_message *message, uint32_t snapshot)
{
    const struct sgp_sim_host *host = context;
    bool strike = message->type == SGP_ESTIMATE && sgp_sim_is_owner(host) && strikes(20);
    real->send(context, link, message, !strike ? snapshot : snapshot > 0 ? snapshot - 1 : 1);
}

/* The owner sends its change to a worker with an older copy, and names that copy. The worker always says that it holds a copy. */
static void send_stale(
    void *context, struct sgp_link link, const struct sgp_message *message, uint32_t snapshot)
{
    struct sgp_sim_host *host = context;
    struct sgp_message copy = *message;
    struct sgp_core_link *own = sgp_core_find(host->node, link.peer, link.direction);
    const struct sgp_handing *handing = &host->node->handing;
    if (message->type == SGP_ASK && message->ask.wants && message->ask.newer > 0) {
        own->work.held = own->work.copy;
        copy.ask.holds = true;
    }
    if (message->type == SGP_ESTIMATE && message->estimate.coding == SGP_CODING_NONE &&
        handing->change != SGP_SLOT_NONE && own->estimate.newer > 0) {
        copy.estimate = handing->changed;
        copy.estimate.since = own->estimate.newer - 1;
        snapshot = handing->change;
    }
    real->send(context, link, &copy, snapshot);
}

/* A stale update counts as if it were fresh. */
static void add_whole(void *context, const struct sgp_effect *effect)
{
    struct sgp_effect copy = *effect;
    if (effect->type == SGP_EFFECT_ABSORB && sgp_sim_is_owner(context) &&
        effect->absorb.fraction < 1 && strikes(20))
        copy.absorb.fraction = 1;
    real->work(context, &copy);
}

/* It is compensated from another copy than that of its worker. */
static void compensate_from_another(void *context, const struct sgp_effect *effect)
{
    struct sgp_effect copy = *effect;
    uint32_t snapshot = effect->compensate.snapshot;
    if (effect->type == SGP_EFFECT_COMPENSATE && strikes(20))
        copy.compensate.snapshot = snapshot > 0 ? snapshot - 1 : 1;
    real->work(context, &copy);
}

/* ---- of a token ---- */

/* The token takes up what is offered, and then again. */
static void receive_token_twice(void *context, const struct sgp_effect *effect)
{
    const struct sgp_sim_host *host = context;
    bool strike = effect->type == SGP_EFFECT_RECEIVE_TOKEN && effect->receive_token.fraction > 0 &&
                  strikes(20);
    float *offered = strike ? sgp_sim_snapshot(host, effect->receive_token.snapshot) : NULL;
    for (uint64_t c = 0; strike && c < host->sim->options.dimension; c++)
        offered[c] *= 2;
    real->work(context, effect);
}

/* An older token comes, as if it were this one. */
static void receive_token_by_old(void *context, const struct sgp_effect *effect)
{
    const struct sgp_sim_host *host = context;
    const float *copy = host->performer.copy;
    if (effect->type == SGP_EFFECT_RECEIVE_TOKEN && strikes(20))
        memcpy(place_of(host, effect->receive_token.slot), copy,
            host->sim->options.dimension * sizeof *copy);
    real->work(context, effect);
}

/* Whoever has handed it on has it still, by its record. */
static void commit_held(void *context, const struct sgp_node *node)
{
    struct sgp_sim_host *host = context;
    real->commit(context, node);
    for (uint32_t i = 0; i < host->record.link_count && host->mortal; i++) {
        const struct sgp_record_link *link = &host->record.links[i];
        if (link->out && link->number > 0 && !link->owes)
            host->record.weight = 1;
    }
}

/* ---- of coded shares ---- */

static const struct sgp_trainer_methods *trains; /* of the hosts' trainers, */
static struct sgp_trainer_methods drops;         /* and those with a bug */

/* The source keeps a part of x, and not x without what its targets decode. */
static void drop_rest(struct sgp_trainer *trainer, const float *decoded, float fraction,
    uint64_t first, uint64_t count)
{
    if (fraction < 0 && strikes(20))
        trains->scale(trainer, 1 + (double)fraction, first, count);
    else
        trains->restore(trainer, decoded, fraction, first, count);
}

/* ---- of guards ---- */

/* What the guard does not take of a vector is left out, and not put at the target's own estimate. */
static void scale_nothing(
    struct sgp_trainer *trainer, double factor, uint64_t first, uint64_t count)
{
    if (!(factor > 1) || !strikes(20))
        trains->scale(trainer, factor, first, count);
}

/* The bound of a share is made of the distances of its own source alone. */
static void believe_source(void *context, const struct sgp_effect *effect)
{
    const struct sgp_sim_host *host = context;
    struct sgp_guard *guard = host->performer.guard;
    uint32_t source = 0;
    bool absorbs = effect->type == SGP_EFFECT_ABSORB && guard != NULL;
    while (
        absorbs && source < guard->count && guard->neighbours[source].peer != effect->absorb.peer)
        source++;
    for (uint32_t i = 0; absorbs && source < guard->count && i < guard->count; i++) {
        struct sgp_guard_neighbour *neighbour = &guard->neighbours[i];
        uint32_t peer = neighbour->peer;
        *neighbour = guard->neighbours[source];
        neighbour->peer = peer;
    }
    real->work(context, effect);
}

/* A share without weight is added as without a guard. */
static void take_weightless(void *context, const struct sgp_effect *effect)
{
    struct sgp_sim_host *host = context;
    struct sgp_guard *guard = host->performer.guard;
    bool bypasses = effect->type == SGP_EFFECT_ABSORB && !(effect->absorb.weight > 0);
    host->performer.guard = bypasses ? NULL : guard;
    real->work(context, effect);
    host->performer.guard = guard;
}

/* By the record what is owed was given plain. */
static void forget_compressor(void *context, const struct sgp_node *node)
{
    struct sgp_sim_host *host = context;
    real->commit(context, node);
    for (uint32_t i = 0; i < host->record.link_count; i++)
        host->record.links[i].owed_compressor = SGP_COMPRESSOR_NONE;
}

/* A leaver gives all that it has coded, and owes it so. */
static void code_bequest(void *context, const struct sgp_effect *effect)
{
    struct sgp_effect copy = *effect;
    const struct sgp_sim_host *host = context;
    for (uint32_t i = 0; effect->type == SGP_EFFECT_PUBLISH && i < host->node->layout.out_count;
         i++) {
        struct sgp_share *share = &host->node->layout.links[i].owed[0].share;
        if (share->bequest <= 0 || host->node->layout.links[i].owed[0].slot != copy.publish.slot)
            continue;
        share->compressor = copy.publish.compressor = SGP_COMPRESSOR_INT8;
        share->coding = sgp_coding_of(share->compressor);
        share->payload_bytes = sgp_coding_bytes_most(share->coding, share->slice.count);
    }
    real->work(context, &copy);
}

/* ---- putting them in ---- */

static void put_ops(struct sgp_sim *sim)
{
    for (uint32_t i = 0; i < sim->host_count; i++)
        sim->hosts[i].driver.ops = &ops;
}

static void begin(struct sgp_sim *sim)
{
    real = sim->hosts[0].driver.ops;
    ops = *real;
    calls = 0;
}

#define PUT(name, op, bug)                                                                         \
    static void name(struct campaign_plant *plant, struct sgp_sim *sim)                            \
    {                                                                                              \
        (void)plant;                                                                               \
        begin(sim);                                                                                \
        ops.op = bug;                                                                              \
        put_ops(sim);                                                                              \
    }
PUT(put_absorb, work, absorb_twice)
PUT(put_damaged, work, keep_damaged)
PUT(put_another, fold, fold_over_another)
PUT(put_acknowledge, receive, acknowledge_early)
PUT(put_leak, send, leak_credit)
PUT(put_lie, send, lie)
PUT(put_owe, commit, owe_nothing)
PUT(put_commit, commit, commit_once)
PUT(put_add, work, add_twice)
PUT(put_late, note, add_late)
PUT(put_old, send, send_old)
PUT(put_stale, send, send_stale)
PUT(put_whole, work, add_whole)
PUT(put_another_copy, work, compensate_from_another)
PUT(put_receive_token, work, receive_token_twice)
PUT(put_old_token, work, receive_token_by_old)
PUT(put_held, commit, commit_held)
PUT(put_forgotten, commit, forget_compressor)
PUT(put_bequest, work, code_bequest)
PUT(put_own_word, work, believe_source)
PUT(put_bypass, work, take_weightless)

/* In the first process of each host. */
static void put_methods(struct sgp_sim *sim)
{
    calls = 0;
    for (uint32_t i = 0; i < sim->host_count; i++)
        sim->hosts[i].trainer->methods = &drops;
}

static void put_rest(struct campaign_plant *plant, struct sgp_sim *sim)
{
    (void)plant;
    trains = sim->hosts[0].trainer->methods;
    drops = *trains;
    drops.restore = drop_rest;
    put_methods(sim);
}

static void put_weightless(struct campaign_plant *plant, struct sgp_sim *sim)
{
    (void)plant;
    trains = sim->hosts[0].trainer->methods;
    drops = *trains;
    drops.scale = scale_nothing;
    put_methods(sim);
}

/* The configuration says that no weight is too small. */
static void put_unguarded(struct campaign_plant *plant, struct sgp_sim *sim)
{
    (void)plant;
    for (uint32_t i = 0; i < sim->host_count; i++) {
        sim->hosts[i].weight_least = 0; /* of those that begin again */
        sim->hosts[i].node->config.weight_least = 0;
    }
}

static void put_exact(struct campaign_plant *plant, struct sgp_sim *sim)
{
    (void)plant;
    sim->restart = call_it_exact;
}

struct campaign_plant campaign_plants[] = {
    {"absorbed-twice", "a share counts twice", put_absorb, false, NULL, 0, NULL, false},
    {"acknowledged-early", "a share is acknowledged when it is announced", put_acknowledge, false,
        NULL, 0, NULL, false},
    {"folded-damaged", "a fold is kept after a bad checksum", put_damaged, false, NULL, 0, NULL,
        false},
    {"folded-over-another", "a share is folded over another x", put_another, false, NULL, 0, NULL,
        false},
    {"credit-leaked", "a credit is granted and never told", put_leak, false, NULL, 0, NULL, false},
    {"not-returned", "what a killed node owed does not return", put_owe, false, NULL, 0, NULL,
        false},
    {"spent-twice", "a second restart begins from the record of the first", put_commit, false, NULL,
        0, NULL, false},
    {"exact-always", "a superseded checkpoint passes for an exact one", put_exact, false, NULL, 0,
        NULL, false},
    {"unguarded", "nothing keeps a weight from shrinking", put_unguarded, false, NULL, 0, NULL,
        false},
    {"bequest-lies", "a hostile node calls shares bequests", put_lie, true, NULL, 0, NULL, false},
    {"update-added-twice", "an owner adds an update twice", put_add, false, "backup", 0, NULL,
        false},
    {"late-added", "an owner adds an update that came late", put_late, false, "backup", 0, NULL,
        false},
    {"old-copy", "an older copy goes out under a newer label", put_old, false, "backup", 0, NULL,
        false},
    {"stale-added-twice", "an owner at its own pace adds an update twice", put_add, false,
        "downpour", 0, NULL, false},
    {"stale-old-copy", "and hands out an older copy under a newer label", put_old, false,
        "downpour", 0, NULL, false},
    {"stale-added-whole", "and adds a stale update undivided", put_whole, false, "downpour", 0,
        NULL, false},
    {"stale-from-another", "and compensates from another copy", put_another_copy, false, "downpour",
        0, NULL, false},
    {"token-added-twice", "a token takes an update up twice", put_receive_token, false, "cyclic", 0,
        NULL, false},
    {"token-old", "an older copy comes as the token", put_old_token, false, "cyclic", 0, NULL,
        false},
    {"token-kept", "whoever has handed it on has it still after a restart", put_held, false,
        "cyclic", 0, NULL, false},
    {"stale-since", "a change goes to a worker with an older copy", put_stale, false, "backup", 0,
        "int4", false},
    {"rest-dropped", "a source keeps nothing of what its targets do not decode", put_rest, false,
        NULL, SGP_COMPRESSOR_INT4, NULL, false},
    {"compressor-forgotten", "a coded share returns raw after a restart", put_forgotten, false,
        "dpsgd", SGP_COMPRESSOR_INT4, NULL, false},
    {"bequest-coded", "a leaver gives all that it has coded", put_bequest, false, NULL,
        SGP_COMPRESSOR_INT8, NULL, false},
    {.name = "clipped-weightless",
        .summary = "a guard leaves out what it does not take of a vector",
        .put = put_weightless,
        .lies = true},
    {.name = "clipped-by-own-word",
        .summary = "a guard's bound is made of the distances of the share's own source",
        .put = put_own_word,
        .lies = true},
    {.name = "weightless-taken",
        .summary = "a share without weight passes the guard",
        .put = put_bypass,
        .lies = true},
    {.name = NULL},
};

struct campaign_plant *campaign_plant_find(const char *name)
{
    for (struct campaign_plant *plant = campaign_plants; plant->name; plant++)
        if (strcmp(plant->name, name) == 0)
            return plant;
    return NULL;
}

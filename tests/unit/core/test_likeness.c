/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that train on the same rows, or at unlike learning rates: what shares tell of that, and when it is noted. */
#include "core_desk.h"

struct training {
    uint64_t update;
    double rate;
};

struct told {
    bool same[3]; /* by peer */
    double rate;  /* that is another; 0: none is */
};

/* What the notes of the latest step add. */
static void note_down(const struct desk *desk, struct told *told)
{
    for (uint32_t i = 0; i < desk->effects.count; i++) {
        const struct sgp_effect *effect = &desk->items[i];
        if (effect->type == SGP_EFFECT_NOTE && effect->note.what == SGP_NOTE_SAME_UPDATES)
            told->same[effect->note.link.peer] = true;
        if (effect->type == SGP_EFFECT_NOTE && effect->note.what == SGP_NOTE_OTHER_RATE)
            told->rate = effect->note.amount;
    }
}

static void be_given(
    struct desk *desk, uint32_t peer, sgp_round round, struct training training, struct told *told)
{
    struct sgp_message share = share_of((uint64_t)round + 1, round, round + 1);
    share.share.update = training.update;
    share.share.rate = training.rate;
    say(desk, peer, SGP_IN, share);
    deliver(desk, peer, 0);
    note_down(desk, told);
    const struct sgp_effect *absorb = find(desk, SGP_EFFECT_ABSORB);
    if (absorb != NULL)
        post(desk, (struct sgp_event){.type = SGP_EVENT_ABSORBED, .slot = absorb->absorb.slot});
}

/* The node trains and gives. */
static void train(struct desk *desk, uint32_t peers, sgp_round round, struct training own)
{
    for (uint32_t peer = 1; peer <= peers; peer++)
        grant(desk, peer, round);
    post(desk,
        (struct sgp_event){.type = SGP_EVENT_TRAINED, .update = own.update, .rate = own.rate});
    post_type(desk, SGP_EVENT_PUBLISHED);
    for (uint32_t peer = 1; peer <= peers; peer++) {
        const struct sgp_effect *sent = find_sent(desk, SGP_SHARE, peer);
        cr_assert_not_null(sent);
        cr_assert(eq(u64, sent->send.message.share.update, own.update));
    }
    for (uint32_t peer = 1; peer <= peers; peer++)
        acknowledge(desk, peer, (uint64_t)round + 1, SGP_REASON_NONE);
}

static struct told round_of_two(
    struct desk *desk, sgp_round round, struct training own, struct training theirs)
{
    struct told told = {.rate = 0};
    train(desk, 1, round, own);
    be_given(desk, 1, round, theirs, &told);
    cr_assert(eq(i64, status_of(desk).round, round + 1));
    return told;
}

static struct sgp_peer_status source(const struct desk *desk)
{
    struct sgp_peer_status status;
    sgp_node_link_status(desk->node, 1, &status);
    cr_assert(eq(int, status.direction, SGP_IN));
    return status;
}

Test(likeness, eight_equal_updates_in_a_row_are_told_once)
{
    struct desk desk;
    open_pair(&desk);
    for (sgp_round round = 0; round < 20; round++) {
        struct training step = {.update = 1000 + (uint64_t)round};
        struct told told = round_of_two(&desk, round, step, step);
        cr_assert(eq(int, told.same[1], round == SGP_LIKENESS_ROUNDS - 1), "round %d", (int)round);
        cr_assert(eq(int, source(&desk).same_updates, round >= SGP_LIKENESS_ROUNDS - 1));
    }
    struct training mine = {.update = 1}, its = {.update = 2};
    cr_assert(not(round_of_two(&desk, 20, mine, its).same[1]));
    (void)round_of_two(&desk, 21, mine, (struct training){.update = 3});
    cr_assert(not(source(&desk).same_updates), "it ends with the next that differs");
    close_desk(&desk);
}

Test(likeness, one_that_differs_begins_the_count_anew)
{
    struct desk desk;
    open_pair(&desk);
    for (sgp_round round = 0; round < 30; round++) {
        struct training own = {.update = 1000 + (uint64_t)round}, its = own;
        its.update += round % 8 == 7 ? 5000 : 0;
        cr_assert(not(round_of_two(&desk, round, own, its).same[1]));
    }
    close_desk(&desk);
}

/* Nothing changed, or it is not said: frozen parameters, a rate of 0. And an update that is always the
 * same one is no evidence of rows. */
Test(likeness, what_is_no_update_is_not_compared)
{
    static const uint64_t updates[] = {0, 77};
    for (size_t i = 0; i < sizeof updates / sizeof *updates; i++) {
        struct desk desk;
        open_pair(&desk);
        for (sgp_round round = 0; round < 20; round++) {
            struct training step = {.update = updates[i]};
            cr_assert(not(round_of_two(&desk, round, step, step).same[1]));
        }
        cr_assert(not(source(&desk).same_updates));
        close_desk(&desk);
    }
}

/* As an owner, or a relay, that does not train: whichever of the two is heard first. */
Test(likeness, sources_are_compared_with_one_another)
{
    struct desk desk;
    open_beside_two(&desk, 3);
    struct told told = {.rate = 0};
    for (sgp_round round = 0; round < 8; round++) {
        struct training step = {.update = 1000 + (uint64_t)round};
        train(&desk, 2, round, (struct training){.update = 0});
        be_given(&desk, round % 2 == 0 ? 1 : 2, round, step, &told);
        cr_assert(not(told.same[1] || told.same[2]));
        be_given(&desk, round % 2 == 0 ? 2 : 1, round, step, &told);
    }
    cr_assert(told.same[1] && told.same[2]);
    close_desk(&desk);
}

Test(likeness, a_learning_rate_that_differs_is_told_once)
{
    struct desk desk;
    open_pair(&desk);
    for (sgp_round round = 0; round < 20; round++) {
        struct training own = {.update = 1000 + (uint64_t)round, .rate = 0.1};
        struct training its = {.update = 2000 + (uint64_t)round, .rate = 0.4};
        struct told told = round_of_two(&desk, round, own, its);
        cr_assert(eq(dbl, told.rate, round == SGP_LIKENESS_ROUNDS - 1 ? 0.4 : 0.0));
        cr_assert(eq(int, source(&desk).mismatch, round >= SGP_LIKENESS_ROUNDS - 1));
        cr_assert(eq(dbl, source(&desk).learning_rate, 0.4));
    }
    (void)round_of_two(&desk, 20, (struct training){.update = 1, .rate = 0.4},
        (struct training){.update = 2, .rate = 0.4});
    cr_assert(not(source(&desk).mismatch));
    close_desk(&desk);
}

/* A schedule that counts steps, on two nodes some steps apart. */
Test(likeness, a_schedule_a_few_steps_apart_is_one_rate)
{
    struct desk desk;
    open_pair(&desk);
    for (sgp_round round = 0; round < 40; round++) {
        double ahead = 1.0 / (double)(round + 1),
               behind = 1.0 / (double)(round > 4 ? round - 3 : 1);
        struct training own = {.update = 1000 + (uint64_t)round, .rate = ahead};
        struct training its = {.update = 2000 + (uint64_t)round, .rate = behind};
        cr_assert(eq(dbl, round_of_two(&desk, round, own, its).rate, 0));
    }
    cr_assert(not(source(&desk).mismatch));
    close_desk(&desk);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The form of what a node gives, and of what it takes: which peers get coded shares, in which rounds, and what returns. */
#include "core_desk.h"

#define CODED sgp_coding_bytes_most(SGP_CODING_FP16, PARAMETERS)

/* n0 gives to n1 and n2, of which the second decodes these codings. */
static void open_coded(struct desk *desk, uint32_t codings, sgp_round rounds)
{
    struct sgp_topology *topology = beside_two(3);
    struct sgp_node_config config = config_of(topology);
    config.compressor = SGP_COMPRESSOR_FP16;
    config.rounds = rounds;
    open_desk(desk, topology, config);
    post_type(desk, SGP_EVENT_START);
    for (uint32_t i = 1; i < 3; i++) {
        desk->codings = i == 1 ? SGP_CODINGS : codings;
        greet_out(desk, i, pulse_at(0, SGP_ROUND_NONE), 80 + i, 0);
        const struct sgp_effect *welcome;
        greet_in(desk, i, pulse_at(0, 0), 80 + i);
        welcome = find_sent(desk, SGP_WELCOME, i);
        cr_assert_not_null(welcome);
        cr_assert(eq(u32, welcome->send.message.welcome.codings, SGP_CODINGS));
    }
    grant(desk, 1, 0);
    grant(desk, 2, 0);
}

/* The PUBLISH job of the round, in this form. */
static void publish_as(struct desk *desk, enum sgp_compressor compressor)
{
    post_type(desk, SGP_EVENT_TRAINED);
    const struct sgp_effect *publish = find(desk, SGP_EFFECT_PUBLISH);
    cr_assert_not_null(publish);
    cr_assert(eq(int, publish->publish.compressor, compressor));
    cr_assert(eq(dbl, publish->publish.keep, 0.5));
    post(desk, (struct sgp_event){.type = SGP_EVENT_PUBLISHED});
}

static void expect_share(struct desk *desk, uint32_t peer, enum sgp_coding coding)
{
    const struct sgp_effect *sent = find_sent(desk, SGP_SHARE, peer);
    cr_assert_not_null(sent);
    const struct sgp_share *share = &sent->send.message.share;
    cr_assert(eq(int, share->coding, coding));
    cr_assert(eq(u64, share->payload_bytes, sgp_coding_bytes_most(coding, PARAMETERS)));
    cr_assert(eq(dbl, share->weight, 0.25));
}

/* A journal may name any number. */
Test(coding, a_compressor_that_does_not_exist_is_refused)
{
    struct sgp_topology *topology = beside_two(3);
    for (int of_copies = 0; of_copies < 2; of_copies++) {
        struct sgp_node_config config = config_of(topology);
        struct sgp_node *node;
        *(of_copies ? &config.copies : &config.compressor) =
            (enum sgp_compressor)(SGP_COMPRESSOR_MOST + 1);
        cr_assert(eq(int, sgp_node_create(&config, &node), -EINVAL));
    }
    sgp_topology_destroy(topology);
}

Test(coding, shares_are_coded_if_all_targets_decode_them)
{
    for (int decodes = 0; decodes < 2; decodes++) {
        struct desk desk;
        enum sgp_coding coding = decodes ? SGP_CODING_FP16 : SGP_CODING_NONE;
        open_coded(&desk, decodes ? SGP_CODINGS : 0, 100);
        publish_as(&desk, decodes ? SGP_COMPRESSOR_FP16 : SGP_COMPRESSOR_NONE);
        expect_share(&desk, 1, coding);
        expect_share(&desk, 2, coding);
        close_desk(&desk);
    }
}

/* What returns is what was given; and so it is by the record of a later process. */
Test(coding, a_share_that_is_refused_comes_home_in_its_form)
{
    struct desk desk;
    struct sgp_record_link links[8];
    struct sgp_record record = {.links = links, .link_capacity = 8};
    struct sgp_account accounts[SGP_ACCOUNTS_MAX];
    record.accounts = accounts;
    record.account_capacity = SGP_ACCOUNTS_MAX;
    open_coded(&desk, SGP_CODINGS, 100);
    publish_as(&desk, SGP_COMPRESSOR_FP16);
    sgp_node_record(desk.node, &record);
    for (uint32_t i = 0; i < record.link_count; i++)
        cr_assert(eq(int, links[i].owed_compressor,
            links[i].out ? SGP_COMPRESSOR_FP16 : SGP_COMPRESSOR_NONE));
    cr_assert(sgp_record_is_sound(&record, 3));
    acknowledge(&desk, 1, 1, SGP_REASON_NOT_FINITE);
    const struct sgp_effect *home = find(&desk, SGP_EFFECT_RESTORE);
    cr_assert_not_null(home);
    cr_assert(eq(int, home->restore.compressor, SGP_COMPRESSOR_FP16));
    cr_assert(eq(dbl, home->restore.fraction, 0.25));
    cr_assert(eq(dbl, status_of(&desk).weight, 0.75));
    close_desk(&desk);
}

/* A target that begins anew with an earlier program had not accepted it: it is the source's again. */
Test(coding, a_share_that_its_target_does_not_decode_any_more_comes_home)
{
    struct desk desk;
    open_coded(&desk, SGP_CODINGS, 100);
    publish_as(&desk, SGP_COMPRESSOR_FP16);
    lose(&desk, 2, SGP_OUT);
    desk.codings = SGP_CODINGS;
    greet_out(&desk, 2, pulse_at(0, SGP_ROUND_NONE), 82, 0);
    cr_assert_null(find(&desk, SGP_EFFECT_RESTORE), "it is sent again");
    lose(&desk, 2, SGP_OUT);
    desk.codings = 0;
    greet_out(&desk, 2, pulse_at(0, SGP_ROUND_NONE), 82, 0);
    const struct sgp_effect *home = find(&desk, SGP_EFFECT_RESTORE);
    cr_assert_not_null(home);
    cr_assert(eq(int, home->restore.compressor, SGP_COMPRESSOR_FP16));
    close_desk(&desk);
}

static void hear(struct desk *desk, struct sgp_share share, bool taken)
{
    struct sgp_message message = share_of(1, 0, 1);
    share.number = 1;
    share.fraction = share.weight = 0.25;
    if (share.slice.count == 0)
        share.slice = (struct sgp_slice){0, PARAMETERS};
    message.share = share;
    say(desk, 1, SGP_IN, message);
    cr_assert(eq(int, find(desk, SGP_EFFECT_RECEIVE) != NULL, taken));
    cr_assert(eq(int, find(desk, SGP_EFFECT_HANG_UP) != NULL, !taken));
}

Test(coding, what_is_announced_has_the_bytes_of_its_form)
{
    const struct {
        struct sgp_share share;
        bool taken;
    } heard[] = {{{.payload_bytes = PAYLOAD}, true},
        {{.coding = SGP_CODING_FP16, .payload_bytes = PAYLOAD}, false},
        {{.coding = SGP_CODING_FP16, .payload_bytes = CODED}, true},
        {{.payload_bytes = CODED}, false},
        {{.coding = SGP_CODING_FP16, .payload_bytes = CODED - 4}, false},
        {{.coding = SGP_CODING_BLOCKS, .payload_bytes = 4}, true},
        {{.coding = SGP_CODING_BLOCKS, .payload_bytes = CODED}, true},
        {{.coding = SGP_CODING_BLOCKS, .payload_bytes = 0}, false},
        {{.coding = SGP_CODING_BLOCKS, .payload_bytes = CODED - 2}, false},
        {{.coding = SGP_CODING_BLOCKS, .payload_bytes = CODED + 4}, false},
        {{.coding = SGP_CODING_BLOCKS, .payload_bytes = PAYLOAD}, false},
        /* no shorter than plain: a payload must fit the memory of its values */
        {{.coding = SGP_CODING_BLOCKS, .payload_bytes = 8, .slice = {0, 1}}, false},
        {{.coding = SGP_CODING_BLOCKS, .payload_bytes = 4, .slice = {0, 1}}, false},
        {{.coding = SGP_CODING_BLOCKS, .payload_bytes = 12, .slice = {7, 3}}, false},
        {{.coding = SGP_CODING_BLOCKS, .payload_bytes = 12, .slice = {6, 4}}, true}};
    for (size_t i = 0; i < sizeof heard / sizeof heard[0]; i++) {
        struct desk desk;
        open_coded(&desk, SGP_CODINGS, 100);
        hear(&desk, heard[i].share, heard[i].taken);
        close_desk(&desk);
    }
}

/* One half of what n`peer` had in round 0, of which nothing is left to come. */
static void take_share(struct desk *desk, uint32_t peer)
{
    struct sgp_message message = share_of(1, 0, 1);
    message.pulse.ends = 1;
    say(desk, peer, SGP_IN, message);
    deliver(desk, peer, 0);
    const struct sgp_effect *absorb;
    while ((absorb = find(desk, SGP_EFFECT_ABSORB)) != NULL)
        post(desk, (struct sgp_event){.type = SGP_EVENT_ABSORBED, .slot = absorb->absorb.slot});
}

/* The only round that trains is coded, and mixing is not. */
Test(coding, settling_rounds_are_plain)
{
    struct desk desk;
    open_coded(&desk, SGP_CODINGS, 1);
    publish_as(&desk, SGP_COMPRESSOR_FP16);
    acknowledge(&desk, 1, 1, SGP_REASON_NONE);
    acknowledge(&desk, 2, 1, SGP_REASON_NONE);
    take_share(&desk, 1);
    take_share(&desk, 2);
    cr_assert(eq(i64, status_of(&desk).round, 1));
    cr_assert(eq(int, status_of(&desk).state, SGP_NODE_SETTLING));
    grant(&desk, 1, 1);
    cr_assert_null(find(&desk, SGP_EFFECT_PUBLISH));
    grant(&desk, 2, 1);
    const struct sgp_effect *publish = find(&desk, SGP_EFFECT_PUBLISH);
    cr_assert_not_null(publish);
    cr_assert(eq(int, publish->publish.compressor, SGP_COMPRESSOR_NONE));
    close_desk(&desk);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The account of mass: what each posting takes from where and adds to what, and that one that was left out, or made twice, is named by
 * the account that it spoils. */
#include "core/check.h"

#include "sgp/generate.h"
#include "core_desk.h"

struct balances {
    double weight, held, owed, debt, due;
};

static struct balances balances_of(const struct desk *desk)
{
    const struct sgp_node *node = desk->node;
    return (struct balances){
        node->mass.weight, node->mass.held, node->mass.owed, node->mass.debt, node->mass.due};
}

static void expect_change(
    const struct desk *desk, const struct balances *before, struct balances change)
{
    struct balances now = balances_of(desk);
    cr_assert(eq(dbl, now.weight, before->weight + change.weight));
    cr_assert(eq(dbl, now.held, before->held + change.held));
    cr_assert(eq(dbl, now.owed, before->owed + change.owed));
    cr_assert(eq(dbl, now.debt, before->debt + change.debt));
    cr_assert(eq(dbl, now.due, before->due + change.due));
}

static void expect_flaw(const struct desk *desk, const char *rule)
{
    const char *flaw = sgp_core_flaw(desk->node);
    cr_assert(flaw != NULL, "not seen: %s", rule);
    cr_assert(eq(str, (char *)flaw, (char *)rule));
}

static const char *const held = "what was posted as held is what the shares there weigh";
static const char *const owed = "what was posted as owed is what the shares of links weigh";
static const char *const debt = "what was posted as debt is what the debts in force weigh";
static const char *const sum =
    "weight, held, owed and debt come to what came from outside less what went there";

Test(mass, each_posting_takes_from_one_account_and_adds_to_another)
{
    static const struct {
        enum sgp_posting what;
        struct balances change;
    } cases[] = {
        {SGP_MASS_ACCEPT, {.held = 0.25, .due = 0.25}},
        {SGP_MASS_ABSORB, {.held = -0.25, .weight = 0.25}},
        {SGP_MASS_GIVE, {.weight = -0.25, .owed = 0.25}},
        {SGP_MASS_ACKNOWLEDGE, {.owed = -0.25, .due = -0.25}},
        {SGP_MASS_RETURN, {.owed = -0.25, .weight = 0.25}},
        {SGP_MASS_DISPUTE, {.owed = -0.25, .debt = 0.25}},
        {SGP_MASS_PAY, {.debt = -0.25, .due = -0.25}},
        {SGP_MASS_RETURN_DEBT, {.debt = -0.25, .weight = 0.25}},
        {SGP_MASS_TAKE_DEBT, {.debt = 0.25, .due = 0.25}},
        {SGP_MASS_OWE_STILL, {.owed = 0.25, .due = 0.25}},
        {SGP_MASS_DISSOLVE, {.weight = -0.25, .due = -0.25}},
        {SGP_MASS_DROP, {.held = -0.25, .due = -0.25}},
        {SGP_MASS_VOID_OWED, {.owed = -0.25, .due = -0.25}},
        {SGP_MASS_VOID_DEBT, {.debt = -0.25, .due = -0.25}},
    };
    struct desk desk;
    open_pair(&desk);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct balances before = balances_of(&desk);
        sgp_mass_post(desk.node, cases[i].what, 0.25);
        expect_change(&desk, &before, cases[i].change);
    }
    struct balances before = balances_of(&desk);
    sgp_mass_set(desk.node, before.weight + 2);
    expect_change(&desk, &before, (struct balances){.weight = 2, .due = 2});
    sgp_mass_set(desk.node, 0);
    expect_change(
        &desk, &before, (struct balances){.weight = -before.weight, .due = -before.weight});
    close_desk(&desk);
}

Test(mass, members_are_inherited_within_what_a_fleet_can_have)
{
    struct desk desk;
    open_pair(&desk);
    struct sgp_node *node = desk.node;
    sgp_mass_inherit(node, 2, 1.5);
    cr_assert(eq(dbl, node->mass.surplus, 2));
    cr_assert(eq(dbl, node->mass.covered, 1.5));
    sgp_mass_inherit(node, 0, 1); /* no more is covered than was inherited */
    cr_assert(eq(dbl, node->mass.surplus, 2));
    cr_assert(eq(dbl, node->mass.covered, 2));
    sgp_mass_inherit(node, SGP_NODES_MAX, 0);
    cr_assert(eq(dbl, node->mass.surplus, SGP_NODES_MAX - 1));
    sgp_mass_know_members(node, 1); /* fewer than before: those who left may not be dissolved yet */
    cr_assert(eq(dbl, node->mass.members_most, 2));
    sgp_mass_doubt(node, 3);
    sgp_mass_doubt(node, SGP_NODES_MAX);
    cr_assert(eq(dbl, node->mass.unknown, SGP_NODES_MAX));
    close_desk(&desk);
}

/* A share on its way in, and one on its way out, each step of which is a posting. */
Test(mass, a_share_goes_through_the_accounts)
{
    struct desk desk;
    open_pair(&desk);
    struct balances before = balances_of(&desk);
    give_first(&desk);
    expect_change(&desk, &before, (struct balances){.weight = -0.5, .owed = 0.5});
    say(&desk, 1, SGP_IN, share_of(1, 0, 1));
    deliver(&desk, 1, 0); /* the last that the round waits for: it is absorbed at once */
    expect_change(&desk, &before, (struct balances){.owed = 0.5, .due = 0.5});
    acknowledge(&desk, 1, 1, SGP_REASON_NONE);
    expect_change(&desk, &before, (struct balances){.weight = 0});
    close_desk(&desk);
}

/* As if the line with the posting were not there, or were there twice. */
Test(mass, a_posting_that_is_left_out_is_named)
{
    static const struct {
        enum sgp_posting what;
        const char *const *rule;
    } cases[] = {
        {SGP_MASS_ACCEPT, &held},
        {SGP_MASS_ABSORB, &held},
        {SGP_MASS_GIVE, &owed},
        {SGP_MASS_ACKNOWLEDGE, &owed},
        {SGP_MASS_RETURN, &owed},
        {SGP_MASS_DISPUTE, &owed},
        {SGP_MASS_PAY, &debt},
        {SGP_MASS_RETURN_DEBT, &debt},
        {SGP_MASS_TAKE_DEBT, &debt},
        {SGP_MASS_OWE_STILL, &owed},
        {SGP_MASS_DROP, &held},
        {SGP_MASS_VOID_OWED, &owed},
        {SGP_MASS_VOID_DEBT, &debt},
    };
    struct desk desk;
    open_pair(&desk);
    give_first(&desk);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sgp_mass_post(desk.node, cases[i].what, -0.25);
        expect_flaw(&desk, *cases[i].rule);
        sgp_mass_post(desk.node, cases[i].what, 0.5);
        expect_flaw(&desk, *cases[i].rule);
        sgp_mass_post(desk.node, cases[i].what, -0.25);
        cr_assert_null(sgp_core_flaw(desk.node));
    }
    desk.node->mass.due += 0.25; /* no posting does that */
    expect_flaw(&desk, sum);
    close_desk(&desk);
}

/* One of three between whom a token goes, which n0 has by its record and has told. n1 promises another one. */
static void open_holder(struct desk *desk)
{
    const struct sgp_generate_options options = {
        .family = "token", .nodes = 3, .delay = {.token = SGP_TOKEN_DYNAMIC}};
    struct sgp_topology *topology;
    cr_assert(zero(int, sgp_generate(&options, NULL, &topology)));
    struct sgp_record_link links[4] = {{.peer = 1, .out = true, .incarnation = 81},
        {.peer = 2, .out = true, .incarnation = 82}, {.peer = 1, .incarnation = 81},
        {.peer = 2, .incarnation = 82}};
    struct sgp_record record = {
        .incarnation = 77, .weight = 1, .links = links, .link_count = 4, .link_capacity = 4};
    struct sgp_node_config config = config_of(topology);
    config.method = sgp_method_find("cyclic");
    config.record = &record;
    open_desk(desk, topology, config);
    desk->peers.method = config.method->number;
    post_type(desk, SGP_EVENT_START);
    for (uint32_t i = 1; i < 3; i++) {
        greet_out(desk, i, pulse_at(1, SGP_ROUND_NONE), 80 + i, 0);
        greet_in(desk, i, pulse_at(1, SGP_ROUND_NONE), 80 + i);
    }
    cr_assert_not_null(find(desk, SGP_EFFECT_PUBLISH));
    post(desk, (struct sgp_event){.type = SGP_EVENT_PUBLISHED});
    cr_assert(desk->node->copy.exists);
    say_pulse(desk, 1, SGP_IN, pulse_at(2, 2));
    cr_assert(ne(u32, sgp_core_find(desk->node, 1, SGP_IN)->receiving.slot[0], SGP_SLOT_NONE));
}

/* n1's, with that label, of which so many values come. */
static void announce_token(struct desk *desk, sgp_round label, uint32_t values)
{
    struct sgp_message message = share_of(1, label, SGP_ROUND_NONE);
    message.share.fraction = message.share.weight = 1;
    message.share.slice.count = values;
    message.share.payload_bytes = 4 * values;
    say(desk, 1, SGP_IN, message);
}

/* The rest of its receive buffer would be what came there before. */
Test(mass, a_token_of_a_part_of_the_vector_is_none)
{
    struct desk desk;
    open_holder(&desk);
    announce_token(&desk, 2, 1);
    const struct sgp_effect *end = find(&desk, SGP_EFFECT_HANG_UP);
    cr_assert_not_null(end);
    cr_assert(eq(int, end->hang_up.message.goodbye.reason, SGP_REASON_RANGE));
    close_desk(&desk);
}

/* Of two tokens that meet one is lost, whichever it is. */
Test(mass, two_tokens_that_meet_weigh_one)
{
    for (sgp_round ahead = 0; ahead < 2; ahead++) {
        struct desk desk;
        open_holder(&desk);
        struct balances before = balances_of(&desk);
        announce_token(&desk, desk.node->copy.label + ahead, PARAMETERS);
        deliver(&desk, 1, 0);
        cr_assert_not_null(find_sent(&desk, SGP_ACK, 1));
        cr_assert(eq(int, find(&desk, SGP_EFFECT_RECEIVE_TOKEN) != NULL, ahead > 0));
        expect_change(&desk, &before, (struct balances){.weight = 0});
        close_desk(&desk);
    }
}

/* The pair, of which n0 owes a quarter by its record to somebody whom no file names any more. */
static void open_debtor(struct desk *desk, const struct sgp_role *role)
{
    struct sgp_account gone = {.kind = SGP_ACCOUNT_DEBT,
        .source = "n0",
        .target = "gone",
        .source_incarnation = 77,
        .target_incarnation = 99,
        .number = 1,
        .weight = 0.25};
    const struct sgp_record record = {.incarnation = 77,
        .weight = 0.75,
        .accounts = &gone,
        .account_count = 1,
        .account_capacity = 1};
    open_from(desk, &record);
    cr_assert(eq(dbl, desk->node->mass.debt, 0.25));
    desk->node->role = role;
    desk->node->effects = &desk->effects;
}

static void take_home(struct sgp_node *node)
{
    sgp_core_end_debt(node, 0, SGP_MASS_RETURN_DEBT);
}

static void reload(struct sgp_node *node)
{
    const uint32_t same[] = {0, 1};
    sgp_core_move_accounts(node, node->config.topology, same);
}

Test(mass, a_debt_is_paid_comes_home_or_is_void)
{
    const struct {
        void (*end)(struct sgp_node *);
        const struct sgp_role *role;
        struct balances change;
    } cases[] = {
        {take_home, &sgp_role_gossip, {.weight = 0.25, .debt = -0.25}},
        {take_home, &sgp_role_cycle, {.debt = -0.25, .due = -0.25}},
        {sgp_core_void_debts, &sgp_role_cycle, {.debt = -0.25, .due = -0.25}},
        {reload, &sgp_role_gossip, {.weight = 0.25, .debt = -0.25}},
        {reload, &sgp_role_cycle, {.debt = -0.25, .due = -0.25}},
        {reload, &sgp_role_token, {.debt = -0.25, .due = -0.25}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct desk desk;
        open_debtor(&desk, cases[i].role);
        struct balances before = balances_of(&desk);
        cases[i].end(desk.node);
        cr_assert(zero(u32, sgp_node_debt_count(desk.node)));
        expect_change(&desk, &before, cases[i].change);
        desk.node->role = &sgp_role_gossip; /* that of the round again */
        const char *flaw = sgp_core_flaw(desk.node);
        cr_assert(flaw == NULL, "case %zu: %s", i, flaw);
        close_desk(&desk);
    }
}

/* One that has given all takes a share home, so as to have an estimate; of any other all that is owed is void. */
Test(mass, a_renewal_voids_what_is_owed)
{
    for (int all = 0; all < 2; all++) {
        struct desk desk;
        open_pair(&desk);
        give_first(&desk);
        struct sgp_node *node = desk.node;
        struct sgp_owed *given = &sgp_core_find(node, 1, SGP_OUT)->owed[0];
        if (all) {
            sgp_mass_post(node, SGP_MASS_GIVE, 0.5);
            given->share.weight = 1;
        }
        node->exact.heard.number++;
        node->effects = &desk.effects;
        desk.effects.count = 0;
        sgp_core_renew(node);
        cr_assert(given->is_void && given->share.weight <= 0);
        cr_assert(eq(int, find(&desk, SGP_EFFECT_RESTORE) != NULL, all));
        cr_assert(zero(dbl, find_note(&desk, SGP_NOTE_RENEWED)->note.amount));
        struct balances none = {0};
        expect_change(&desk, &none, (struct balances){.weight = 1, .due = 1});
        cr_assert_null(sgp_core_flaw(node));
        close_desk(&desk);
    }
}

Test(mass, a_renewal_drops_what_is_held_of_a_former_epoch)
{
    struct desk desk;
    open_pair(&desk);
    say(&desk, 1, SGP_IN, share_of(1, 0, 1));
    deliver(&desk, 1, 0);
    post_type(&desk, SGP_EVENT_TRAINED); /* it waits for a credit */
    cr_assert(eq(dbl, desk.node->mass.held, 0.5));
    desk.node->exact.heard.number++;
    desk.node->effects = &desk.effects;
    desk.effects.count = 0;
    sgp_core_renew(desk.node);
    cr_assert(eq(dbl, find_note(&desk, SGP_NOTE_RENEWED)->note.amount, -0.5));
    struct balances none = {0};
    expect_change(&desk, &none, (struct balances){.weight = 1, .due = 1});
    cr_assert_null(sgp_core_flaw(desk.node));
    close_desk(&desk);
}

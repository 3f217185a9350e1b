/* SPDX-License-Identifier: Apache-2.0 */
/* Rollouts of one node, and of twelve with faults. */
#include "rollout_net.h"

#include <assertions.h>

#define FILE_A "digraph a { x -> y; y -> x }"
#define FILE_B "digraph b { x -> y; y -> x }"

static struct sgp_rollout *create(void)
{
    const struct sgp_rollout_settings settings = {
        .administrators = keys_administrators(), .verify = keys_verify};
    return sgp_rollout_create(&settings);
}

static int take_file(struct sgp_rollout *rollout, enum sgp_rollout_slot slot, uint64_t version,
    const char *predecessor, const char *file, const char *signers, struct sgp_error *error)
{
    char *text = keys_document(keys_manifest(version, predecessor, file), file, signers);
    const int code = sgp_rollout_take(rollout, slot, text, error);
    free(text);
    return code;
}

static int propose(struct sgp_rollout *rollout, uint64_t version, const char *file)
{
    return take_file(rollout, SGP_ROLLOUT_PROPOSED, version, "", file, "ab", NULL);
}

static struct sgp_rollout_view look(const struct sgp_rollout *rollout)
{
    struct sgp_rollout_view view;
    sgp_rollout_look(rollout, &view);
    return view;
}

static struct sgp_rollout_tally count(
    const struct sgp_rollout *rollout, const struct sgp_rollout_voter *voters, uint32_t voter_count)
{
    struct sgp_rollout_tally tally;
    sgp_rollout_count(rollout, voters, voter_count, &tally);
    return tally;
}

Test(rollout, a_version_is_active_when_all_of_its_nodes_have_accepted)
{
    struct sgp_rollout *rollout = create();
    const char *file = NULL;
    cr_assert(propose(rollout, 1, FILE_A) == 1);
    cr_assert(sgp_rollout_due(rollout, &file) == SGP_ROLLOUT_TRY && strcmp(file, FILE_A) == 0);
    sgp_rollout_vote(rollout, NULL);
    cr_assert(sgp_rollout_due(rollout, &file) == SGP_ROLLOUT_NOTHING);
    const uint64_t mark = look(rollout).mark;
    struct sgp_rollout_voter voters[] = {{"x", true, mark, SGP_VOTE_ACCEPTED},
        {"y", true, mark, SGP_VOTE_NONE}, {"z", false, 0, SGP_VOTE_NONE}};
    struct sgp_rollout_tally tally = count(rollout, voters, 3);
    cr_assert(not(tally.ready));
    cr_assert(tally.missing == 1 && strcmp(tally.waits_for, "y") == 0);
    voters[1].vote = SGP_VOTE_REFUSED;
    tally = count(rollout, voters, 3);
    cr_assert(not(tally.ready));
    cr_assert(tally.missing == 0 && tally.refused == 1);
    voters[1] = (struct sgp_rollout_voter){"y", true, mark + 1, SGP_VOTE_ACCEPTED};
    cr_assert(not(count(rollout, voters, 3).ready)); /* on another version */
    voters[1].mark = mark;
    cr_assert(count(rollout, voters, 3).ready); /* a node that the file strikes is not asked */
    sgp_rollout_activate(rollout, SGP_ROLLOUT_PROPOSED);
    cr_assert(look(rollout).active == 1 && look(rollout).proposed == 0);
    sgp_rollout_destroy(rollout);
}

/* Four nodes: two accept, and two are passed over, which is no majority. */
static bool is_ready_without_half(const char *signers)
{
    struct sgp_rollout *rollout = create();
    struct sgp_manifest manifest = keys_manifest(1, "", FILE_A);
    manifest.despite_count = 2;
    (void)snprintf(manifest.despite[0], SGP_NAME_BYTES, "z");
    (void)snprintf(manifest.despite[1], SGP_NAME_BYTES, "u");
    char *text = keys_document(manifest, FILE_A, signers);
    cr_assert(sgp_rollout_take(rollout, SGP_ROLLOUT_PROPOSED, text, NULL) == 1);
    sgp_rollout_vote(rollout, NULL);
    free(text);
    const uint64_t mark = look(rollout).mark;
    const struct sgp_rollout_voter voters[] = {{"x", true, mark, SGP_VOTE_ACCEPTED},
        {"y", true, mark, SGP_VOTE_ACCEPTED}, {"z", true, 0, SGP_VOTE_NONE},
        {"u", true, 0, SGP_VOTE_NONE}};
    const bool ready = count(rollout, voters, 4).ready;
    cr_assert(count(rollout, voters, 3).ready); /* two of three are a majority */
    sgp_rollout_destroy(rollout);
    return ready;
}

Test(rollout, nodes_are_passed_over_as_long_as_a_majority_accepts)
{
    cr_assert(not(is_ready_without_half("ab")));
}

Test(rollout, the_recovery_key_needs_no_majority)
{
    cr_assert(is_ready_without_half("r"));
}

/* Half of the fleet is lost after the administrators have pushed. */
Test(rollout, the_recovery_key_can_sign_what_is_proposed_already)
{
    struct sgp_rollout *rollout = create();
    const struct sgp_manifest manifest = keys_manifest(1, "", FILE_A);
    char *text = keys_document(manifest, FILE_A, "ab");
    char *more = keys_document(manifest, FILE_A, "abr");
    cr_assert(sgp_rollout_take(rollout, SGP_ROLLOUT_PROPOSED, text, NULL) == 1);
    sgp_rollout_vote(rollout, NULL);
    const struct sgp_rollout_voter voters[] = {
        {"x", true, look(rollout).mark, SGP_VOTE_ACCEPTED}, {"y", false, 0, SGP_VOTE_NONE}};
    cr_assert(not(count(rollout, voters, 2).ready));
    cr_assert(sgp_rollout_take(rollout, SGP_ROLLOUT_PROPOSED, more, NULL) == 1);
    cr_assert(look(rollout).vote == SGP_VOTE_ACCEPTED && look(rollout).mark == voters[0].mark);
    cr_assert(count(rollout, voters, 2).ready);
    cr_assert(sgp_rollout_take(rollout, SGP_ROLLOUT_PROPOSED, more, NULL) == 0);
    cr_assert(sgp_rollout_take(rollout, SGP_ROLLOUT_PROPOSED, text, NULL) == 0);
    cr_assert(count(rollout, voters, 2).ready);
    sgp_rollout_destroy(rollout);
    free(text);
    free(more);
}

Test(rollout, the_highest_version_wins)
{
    struct sgp_rollout *rollout = create();
    uint64_t stamp;
    cr_assert(propose(rollout, 2, FILE_A) == 1);
    cr_assert(propose(rollout, 1, FILE_B) == 0);
    cr_assert(propose(rollout, 2, FILE_A) == 0);
    cr_assert(look(rollout).proposed == 2);
    cr_assert(sgp_rollout_text(rollout, SGP_ROLLOUT_PROPOSED, &stamp) != NULL && stamp == 4);
    cr_assert(propose(rollout, 3, FILE_B) == 1);
    cr_assert(look(rollout).proposed == 3);
    sgp_rollout_destroy(rollout);
}

Test(rollout, two_files_of_one_version_are_refused_until_a_higher_one)
{
    struct sgp_rollout *first = create(), *second = create();
    const char *file;
    uint64_t stamp;
    cr_assert(propose(first, 1, FILE_A) == 1 && propose(first, 1, FILE_B) == 1);
    cr_assert(propose(second, 1, FILE_B) == 1);
    cr_assert(look(first).vote == SGP_VOTE_FORKED);
    cr_assert(strstr(look(first).why, "two files have version 1") != NULL);
    cr_assert(sgp_rollout_due(first, &file) == SGP_ROLLOUT_NOTHING);
    const struct sgp_rollout_voter voters[] = {{"x", true, look(first).mark, SGP_VOTE_ACCEPTED}};
    cr_assert(not(count(first, voters, 1).ready));
    const char *fork = sgp_rollout_text(first, SGP_ROLLOUT_PROPOSED, &stamp);
    cr_assert(stamp == 3);
    cr_assert(sgp_rollout_take(second, SGP_ROLLOUT_PROPOSED, fork, NULL) == 1);
    cr_assert(look(second).vote == SGP_VOTE_FORKED);
    cr_assert(strcmp(sgp_rollout_text(second, SGP_ROLLOUT_PROPOSED, &stamp), fork) == 0);
    cr_assert(propose(second, 1, FILE_A) == 0);
    cr_assert(propose(second, 2, FILE_A) == 1);
    cr_assert(look(second).vote == SGP_VOTE_NONE);
    sgp_rollout_destroy(first);
    sgp_rollout_destroy(second);
}

Test(rollout, a_fork_of_the_version_in_use_is_shown_and_the_version_stays)
{
    struct sgp_rollout *rollout = create();
    cr_assert(propose(rollout, 1, FILE_A) == 1);
    sgp_rollout_activate(rollout, SGP_ROLLOUT_PROPOSED);
    cr_assert(propose(rollout, 1, FILE_A) == 0);
    cr_assert(propose(rollout, 1, FILE_B) == 1);
    cr_assert(look(rollout).active == 1 && look(rollout).vote == SGP_VOTE_FORKED);
    cr_assert(strcmp(sgp_rollout_document(rollout, SGP_ROLLOUT_ACTIVE)->file, FILE_A) == 0);
    sgp_rollout_destroy(rollout);
}

Test(rollout, a_node_follows_what_its_neighbours_use)
{
    struct sgp_rollout *rollout = create();
    const char *file = NULL;
    cr_assert(take_file(rollout, SGP_ROLLOUT_ACTIVE, 5, "", FILE_B, "ab", NULL) == 1);
    cr_assert(take_file(rollout, SGP_ROLLOUT_ACTIVE, 4, "", FILE_A, "ab", NULL) == 0);
    cr_assert(sgp_rollout_due(rollout, &file) == SGP_ROLLOUT_FOLLOW && strcmp(file, FILE_B) == 0);
    sgp_rollout_activate(rollout, SGP_ROLLOUT_ACTIVE);
    cr_assert(look(rollout).active == 5);
    cr_assert(take_file(rollout, SGP_ROLLOUT_ACTIVE, 4, "", FILE_A, "ab", NULL) == 0);
    cr_assert(sgp_rollout_due(rollout, &file) == SGP_ROLLOUT_NOTHING);
    sgp_rollout_destroy(rollout);
}

Test(rollout, a_file_that_was_made_for_another_version_is_refused)
{
    struct sgp_rollout *rollout = create();
    const char *file;
    cr_assert(take_file(rollout, SGP_ROLLOUT_ACTIVE, 4, "", FILE_A, "ab", NULL) == 1);
    sgp_rollout_activate(rollout, SGP_ROLLOUT_ACTIVE);
    cr_assert(propose(rollout, 5, FILE_B) == 1);
    cr_assert(sgp_rollout_due(rollout, &file) == SGP_ROLLOUT_NOTHING);
    cr_assert(look(rollout).vote == SGP_VOTE_REFUSED);
    cr_assert(strcmp(look(rollout).why, "version 5 is not made for version 4, which is in use; "
                                        "sign it again with a higher version") == 0);
    sgp_rollout_destroy(rollout);
}

Test(rollout, what_was_not_signed_changes_nothing)
{
    static const char *const signers[] = {"", "a", "abx", "x"};
    for (size_t i = 0; i < sizeof signers / sizeof *signers; i++)
        for (uint32_t slot = 0; slot < SGP_ROLLOUT_SLOTS; slot++) {
            struct sgp_rollout *rollout = create();
            struct sgp_error error = {0};
            const char *file;
            cr_assert(take_file(rollout, (enum sgp_rollout_slot)slot, 1, "", FILE_A, signers[i],
                          &error) == SGP_E_DATA);
            cr_assert(error.text[0] != '\0' && strchr(error.text, '\n') == NULL);
            cr_assert(sgp_rollout_due(rollout, &file) == SGP_ROLLOUT_NOTHING);
            cr_assert(look(rollout).proposed == 0 && look(rollout).active == 0);
            sgp_rollout_destroy(rollout);
        }
}

Test(rollout, a_copy_has_the_documents_and_the_vote_and_leaves_the_original_alone)
{
    struct sgp_rollout *rollout = create();
    const char *file = NULL;
    uint64_t stamp;
    (void)propose(rollout, 1, FILE_A);
    sgp_rollout_vote(rollout, "no room");
    (void)take_file(rollout, SGP_ROLLOUT_ACTIVE, 2, "", FILE_B, "ab", NULL);
    struct sgp_rollout *copy = sgp_rollout_copy(rollout);
    cr_assert_not_null(copy);
    const struct sgp_rollout_view view = look(copy);
    cr_assert(view.proposed == 1 && view.mark == look(rollout).mark);
    cr_assert(view.vote == SGP_VOTE_REFUSED && strcmp(view.why, "no room") == 0);
    cr_assert(sgp_rollout_due(copy, &file) == SGP_ROLLOUT_FOLLOW && strcmp(file, FILE_B) == 0);
    sgp_rollout_activate(copy, SGP_ROLLOUT_ACTIVE);
    cr_assert(look(copy).active == 2 && look(rollout).active == 0);
    cr_assert_null(sgp_rollout_text(rollout, SGP_ROLLOUT_ACTIVE, &stamp));
    sgp_rollout_destroy(rollout);
    cr_assert(look(copy).active == 2);
    sgp_rollout_destroy(copy);
}

Test(rollout, what_was_saved_comes_back)
{
    struct sgp_rollout *rollout = create(), *again = create(), *other = create();
    struct sgp_error error = {0};
    cr_assert(take_file(rollout, SGP_ROLLOUT_ACTIVE, 4, "", FILE_A, "ab", NULL) == 1);
    sgp_rollout_activate(rollout, SGP_ROLLOUT_ACTIVE);
    cr_assert(propose(rollout, 6, FILE_B) == 1);
    char *saved = sgp_rollout_save(rollout);
    cr_assert(sgp_rollout_restore(again, saved, &error) == 0, "%s", error.text);
    char *twice = sgp_rollout_save(again);
    cr_assert(strcmp(saved, twice) == 0);
    cr_assert(look(again).active == 4 && look(again).proposed == 6);
    saved[strlen(saved) - 1] = '\0';
    cr_assert(sgp_rollout_restore(other, saved, &error) == SGP_E_DATA);
    free(saved);
    free(twice);
    sgp_rollout_destroy(rollout);
    sgp_rollout_destroy(again);
    sgp_rollout_destroy(other);
}

/* ---- twelve nodes with faults ---- */

static bool fail_seed(uint64_t seed, const char *what, uint32_t node)
{
    cr_assert(false, "seed %" PRIu64 ": node %u: %s", seed, node, what);
    return false;
}

/* Pushes, forks, deaths and cuts. */
static bool disturb(struct net *net, uint64_t seed)
{
    char file[2 * NET_NODES + 2];
    for (uint32_t step = 0; step < 1500; step++) {
        const uint32_t node = net_draw(net, NET_NODES);
        struct net_node *it = &net->nodes[node];
        if (!net_meet(net, 0.002))
            return fail_seed(seed, "two files of one version, or an earlier version", node);
        if (net_chance(net, 0.002)) {
            net->cut = !net->cut;
            for (uint32_t i = 0; i < NET_NODES; i++)
                net->nodes[i].side = net_chance(net, 0.5);
        }
        if (it->rollout == NULL && net_chance(net, 0.02))
            net_start(net, node);
        else if (it->rollout != NULL && net_chance(net, 0.001))
            net_stop(net, node);
        if (it->rollout == NULL || !net_chance(net, 0.008))
            continue;
        const uint64_t version = net_next_version(net, node);
        net_vary(net, net_file(it), file);
        net_push(net, node, file, version, net_chance(net, 0.5), "ab");
        const uint32_t other = net_draw(net, NET_NODES);
        if (net->nodes[other].rollout == NULL || !net_chance(net, 0.2))
            continue;
        net_vary(net, net_file(&net->nodes[other]), file);
        net_push(net, other, file, version, net_chance(net, 0.5), "bc");
        net->forks++;
    }
    return true;
}

/* All live, and all meet, until nothing changes. */
static bool settle(struct net *net, uint64_t seed)
{
    net->cut = false;
    for (uint32_t i = 0; i < NET_NODES; i++)
        if (net->nodes[i].rollout == NULL)
            net_start(net, i);
    for (uint32_t step = 0; step < 1500; step++)
        if (!net_meet(net, 0))
            return fail_seed(seed, "two files of one version, or an earlier version", 0);
    return true;
}

/* The first node of the highest version that the file of that version names. A struck node uses the
 * file that strikes it, and hears nothing more. */
static uint32_t foremost(const struct net *net)
{
    uint32_t best = NET_NODES;
    for (uint32_t i = 0; i < NET_NODES; i++)
        if (net_names(net_file(&net->nodes[i]), i) &&
            (best == NET_NODES || net->nodes[i].active > net->nodes[best].active))
            best = i;
    sgp_assert(best < NET_NODES);
    return best;
}

/* All nodes of the highest version have it, and know the same proposal. */
static bool agree(const struct net *net, uint64_t seed)
{
    const struct net_node *best = &net->nodes[foremost(net)];
    const struct sgp_rollout_view view = look(best->rollout);
    for (uint32_t i = 0; i < NET_NODES; i++) {
        if (!net_names(net_file(best), i))
            continue;
        const struct sgp_rollout_view own = look(net->nodes[i].rollout);
        if (own.active != view.active || own.proposed != view.proposed || own.mark != view.mark)
            return fail_seed(seed, "it does not know what the others know", i);
        if (view.proposed != 0 && own.vote == SGP_VOTE_NONE)
            return fail_seed(seed, "it has not voted", i);
    }
    return true;
}

/* A file for all, which nobody must refuse, becomes active wherever the former pushes have led. */
static bool mend(struct net *net, uint64_t seed)
{
    char file[NET_NODES + 1] = "";
    const uint32_t best = foremost(net);
    (void)snprintf(file, sizeof file, "%.*s", (int)strcspn(net_file(&net->nodes[best]), "!"),
        net_file(&net->nodes[best]));
    const uint64_t version = net_next_version(net, best);
    uint32_t pusher = 0;
    while (!net_names(file, pusher))
        pusher++;
    net_push(net, pusher, file, version, false, "ac");
    if (!settle(net, seed))
        return false;
    for (uint32_t i = 0; i < NET_NODES; i++)
        if (net_names(file, i) && net->nodes[i].active != version)
            return fail_seed(seed, "it does not use the last version", i);
    return true;
}

Test(rollout, in_every_seed_one_file_of_a_version_is_in_use_and_nobody_is_stuck, .timeout = 300)
{
    uint64_t activations = 0, forks = 0, deaths = 0;
    const bool few = getenv("SGP_FEW") != NULL;
    const uint64_t seeds = few ? 15 : getenv("SGP_LONG") != NULL ? 500 : 80;
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        struct net net;
        net_init(&net, seed);
        const bool good = disturb(&net, seed) && settle(&net, seed) && agree(&net, seed) &&
                          mend(&net, seed) && agree(&net, seed);
        activations += net.activations;
        forks += net.forks;
        deaths += net.deaths;
        net_finish(&net);
        if (!good)
            return;
    }
    /* the faults took place: of each there are some in a seed */
    cr_assert(activations > 2 * seeds && forks > seeds && deaths > 2 * seeds,
        "%" PRIu64 " %" PRIu64 " %" PRIu64, activations, forks, deaths);
}

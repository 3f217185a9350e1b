/* SPDX-License-Identifier: Apache-2.0 */
/* Which role a node has: by its topology file, its round within a prelude that averages exactly, and its weight where there
 * is a token. */
#include "core_desk.h"

#include "sgp/generate.h"

static struct sgp_node *node_of(struct sgp_generate_options options, const char *method,
    uint32_t self, struct sgp_topology **ret_topology)
{
    struct sgp_node *node;
    cr_assert(zero(int, sgp_generate(&options, NULL, ret_topology)));
    struct sgp_node_config config = config_of(*ret_topology);
    config.method = sgp_method_find(method);
    config.self = self;
    cr_assert(zero(int, sgp_method_suit(config.method, *ret_topology, NULL, NULL)));
    cr_assert(zero(int, sgp_node_create(&config, &node)));
    return node;
}

Test(role, follows_from_the_file_and_the_node)
{
    static const struct {
        struct sgp_generate_options options;
        const char *method, *roles[3]; /* of the first nodes */
    } cases[] = {
        {{.family = "ring", .nodes = 3}, "sgp", {"gossip", "gossip", "gossip"}},
        {{.family = "all-reduce-ring", .nodes = 3}, "sgp", {"cycle", "cycle", "cycle"}},
        {{.family = "owner", .nodes = 3}, "backup", {"owner", "worker", "worker"}},
        {{.family = "owner", .nodes = 3}, "downpour", {"owner", "worker", "worker"}},
        {{.family = "token", .nodes = 3}, "cyclic", {"token", "token", "token"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (uint32_t self = 0; self < 3; self++) {
            struct sgp_topology *topology;
            struct sgp_node *node = node_of(cases[i].options, cases[i].method, self, &topology);
            cr_assert(eq(str, (char *)node->role->name, (char *)cases[i].roles[self]), "%s",
                cases[i].options.family);
            sgp_node_destroy(node);
            sgp_topology_destroy(topology);
        }
}

Test(role, changes_with_the_round_behind_a_prelude)
{
    struct sgp_topology *topology;
    struct sgp_node *node = node_of(
        (struct sgp_generate_options){
            .family = "ring", .nodes = 3, .prelude = 1, .prelude_family = "all-reduce-ring"},
        "sgp", 0, &topology);
    sgp_round last = topology->prelude_rounds - 1;
    cr_assert(gt(i64, last, 0));
    cr_assert(node->role->collective);
    sgp_core_set_round(node, last);
    cr_assert(node->role->collective);
    sgp_core_set_round(node, last + 1);
    cr_assert(not(node->role->collective));
    cr_assert(sgp_core_role_at(node, last)->collective); /* looked at from elsewhere */
    sgp_node_destroy(node);
    sgp_topology_destroy(topology);
}

Test(role, whose_model_counts)
{
    static const struct {
        const char *family, *method;
        bool leads[2], follows[2]; /* of the first two nodes */
    } cases[] = {
        {"ring", "sgp", {false, false}, {false, false}},
        {"owner", "backup", {true, false}, {false, true}},
        {"token", "cyclic", {true, false}, {false, true}}, /* which the first node has */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (uint32_t self = 0; self < 2; self++) {
            struct sgp_topology *topology;
            struct sgp_node *node =
                node_of((struct sgp_generate_options){.family = cases[i].family, .nodes = 3},
                    cases[i].method, self, &topology);
            cr_assert(eq(int, sgp_core_leads(node), cases[i].leads[self]));
            cr_assert(eq(int, sgp_core_follows(node), cases[i].follows[self]));
            cr_assert(epsilon_eq(dbl, sgp_core_weight_of_estimate(node),
                cases[i].follows[self] ? 0 : 1, 0)); /* a follower has no copy yet */
            sgp_node_destroy(node);
            sgp_topology_destroy(topology);
        }
}

/* A share is held against the role of its own round, which may be another than that of the node. */
Test(role, says_what_a_share_may_be)
{
    struct sgp_topology *topology;
    struct sgp_node *node = node_of(
        (struct sgp_generate_options){.family = "owner", .nodes = 3}, "backup", 0, &topology);
    const struct sgp_core_link *in = sgp_core_find(node, 1, SGP_IN);
    struct sgp_share share = {.fraction = 1, .slice = {0, PARAMETERS}};
    cr_assert(node->role->fits(node, in, &share));
    share.weight = 0.5; /* no update has any */
    cr_assert(not(node->role->fits(node, in, &share)));
    sgp_node_destroy(node);
    sgp_topology_destroy(topology);

    node = node_of(
        (struct sgp_generate_options){.family = "token", .nodes = 3}, "cyclic", 1, &topology);
    in = sgp_core_find(node, 0, SGP_IN);
    share.weight = 1;
    cr_assert(node->role->fits(node, in, &share));
    share.slice.count = 1; /* a token is all of the vector */
    cr_assert(not(node->role->fits(node, in, &share)));
    sgp_node_destroy(node);
    sgp_topology_destroy(topology);
}

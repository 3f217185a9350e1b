/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that roll out signed topology files, in virtual time: two nodes at a time meet and exchange
 * documents and rows, as neighbours of sgpd do. Nodes die at any step, also between what they
 * decide and what they store, and the network is cut.
 *
 * A file is the names of its nodes, a letter each. After `!` it names nodes that cannot use it. */
#ifndef ROLLOUT_NET_H
#define ROLLOUT_NET_H

#include "rollout_keys.h"

#include "sgp/random.h"

#define NET_NODES 12u
#define NET_LEAST 7u /* nodes of a file */
#define NET_VERSIONS 256u

struct net_row { /* of a node, as another knows it */
    uint64_t count, mark;
    enum sgp_vote vote;
};

struct net_node {
    struct sgp_rollout *rollout; /* NULL: the node is down */
    char *disk;                  /* NULL: nothing is stored yet */
    struct net_row rows[NET_NODES];
    uint64_t told; /* rows so far */
    uint64_t active;
    bool side; /* of a cut */
};

struct net {
    struct sgp_random random;
    struct net_node nodes[NET_NODES];
    bool cut;
    char used[NET_VERSIONS][SGP_HASH_BYTES]; /* the identity of each version that was in use */
    uint64_t versions;                       /* the highest version that was signed */
    uint64_t activations, forks, deaths;
};

static const char net_all[] = "abcdefghijkl";

static inline bool net_chance(struct net *net, double chance)
{
    return sgp_random_double(&net->random) < chance;
}

static inline uint32_t net_draw(struct net *net, uint32_t count)
{
    return (uint32_t)sgp_random_below(&net->random, count);
}

static inline bool net_names(const char *file, uint32_t node)
{
    const char *end = strchr(file, '!');
    const char *found = strchr(file, net_all[node]);
    return found != NULL && (end == NULL || found < end);
}

static inline bool net_harms(const char *file, uint32_t node)
{
    const char *after = strchr(file, '!');
    return after != NULL && strchr(after, net_all[node]) != NULL;
}

/* The file that a node uses. */
static inline const char *net_file(const struct net_node *node)
{
    const struct sgp_document *document = sgp_rollout_document(node->rollout, SGP_ROLLOUT_ACTIVE);
    return document != NULL ? document->file : net_all;
}

static inline void net_start(struct net *net, uint32_t index)
{
    const struct sgp_rollout_settings settings = {
        .administrators = keys_administrators(), .verify = keys_verify};
    struct net_node *node = &net->nodes[index];
    struct sgp_rollout_view view;
    struct sgp_error error = {0};
    node->rollout = sgp_rollout_create(&settings);
    sgp_assert(node->rollout != NULL);
    if (node->disk != NULL)
        sgp_assert(sgp_rollout_restore(node->rollout, node->disk, &error) == 0);
    memset(node->rows, 0, sizeof node->rows);
    sgp_rollout_look(node->rollout, &view);
    sgp_assert(view.active == node->active); /* nothing that was in use is forgotten */
}

static inline void net_stop(struct net *net, uint32_t index)
{
    sgp_rollout_destroy(net->nodes[index].rollout);
    net->nodes[index].rollout = NULL;
    net->deaths++;
}

static inline void net_init(struct net *net, uint64_t seed)
{
    memset(net, 0, sizeof *net);
    sgp_random_init(&net->random, seed, 0);
    for (uint32_t i = 0; i < NET_NODES; i++)
        net_start(net, i);
}

static inline void net_finish(struct net *net)
{
    for (uint32_t i = 0; i < NET_NODES; i++) {
        sgp_rollout_destroy(net->nodes[i].rollout);
        free(net->nodes[i].disk);
    }
}

/* At most one file of each version is ever in use, and no node goes back. */
static inline bool net_note_active(struct net *net, uint32_t index)
{
    struct net_node *node = &net->nodes[index];
    const struct sgp_document *document = sgp_rollout_document(node->rollout, SGP_ROLLOUT_ACTIVE);
    const uint64_t version = document != NULL ? document->manifest.version : 0;
    if (version == node->active)
        return true;
    sgp_assert(version < NET_VERSIONS);
    char *used = net->used[version];
    if (used[0] == '\0') {
        memcpy(used, document->identity, SGP_HASH_BYTES);
        net->activations++;
    }
    const bool rises = version > node->active;
    node->active = version;
    return rises && strcmp(used, document->identity) == 0;
}

/* The votes that a node knows. */
static inline void net_count(
    struct net_node *node, uint32_t self, struct sgp_rollout_tally *ret_tally)
{
    char names[NET_NODES][2];
    struct sgp_rollout_voter voters[NET_NODES];
    struct sgp_rollout_view view;
    uint32_t count = 0;
    const struct sgp_document *proposed = sgp_rollout_document(node->rollout, SGP_ROLLOUT_PROPOSED);
    const char *file = net_file(node);
    sgp_rollout_look(node->rollout, &view);
    node->rows[self] = (struct net_row){.count = node->told, .mark = view.mark, .vote = view.vote};
    for (uint32_t i = 0; i < NET_NODES; i++) {
        names[i][0] = net_all[i];
        names[i][1] = '\0';
        if (!net_names(file, i))
            continue;
        voters[count++] = (struct sgp_rollout_voter){.name = names[i],
            .stays = proposed != NULL && net_names(proposed->file, i),
            .mark = node->rows[i].mark,
            .vote = node->rows[i].vote};
    }
    sgp_rollout_count(node->rollout, voters, count, ret_tally);
}

/* One decision of a node. False: there is none. */
static inline bool net_decide(struct net_node *node, uint32_t self)
{
    const char *file = NULL;
    struct sgp_rollout_tally tally;
    switch (sgp_rollout_due(node->rollout, &file)) {
    case SGP_ROLLOUT_FOLLOW:
        sgp_rollout_activate(node->rollout, SGP_ROLLOUT_ACTIVE);
        return true;
    case SGP_ROLLOUT_TRY:
        sgp_rollout_vote(node->rollout, net_harms(file, self)    ? "it does not suit"
                                        : !net_names(file, self) ? "it does not name this node"
                                                                 : NULL);
        return true;
    default:
        net_count(node, self, &tally);
        if (tally.ready)
            sgp_rollout_activate(node->rollout, SGP_ROLLOUT_PROPOSED);
        return tally.ready;
    }
}

/* Decide, store and show. A node may die before it stores, and before it shows. False: a rule is
 * broken. */
static inline bool net_work(struct net *net, uint32_t index, double death)
{
    struct net_node *node = &net->nodes[index];
    while (net_decide(node, index))
        ;
    if (net_chance(net, death)) {
        net_stop(net, index);
        return true;
    }
    free(node->disk);
    node->disk = sgp_rollout_save(node->rollout);
    sgp_assert(node->disk != NULL);
    const bool good = net_note_active(net, index);
    node->told++;
    if (net_chance(net, death))
        net_stop(net, index);
    return good;
}

/* What one node tells another: both documents, and the latest rows. */
static inline void net_tell(const struct net_node *from, struct net_node *to)
{
    for (uint32_t slot = 0; slot < SGP_ROLLOUT_SLOTS; slot++) {
        uint64_t stamp;
        struct sgp_error error = {0};
        const char *text = sgp_rollout_text(from->rollout, (enum sgp_rollout_slot)slot, &stamp);
        if (text != NULL)
            sgp_assert(
                sgp_rollout_take(to->rollout, (enum sgp_rollout_slot)slot, text, &error) >= 0);
    }
    for (uint32_t i = 0; i < NET_NODES; i++)
        if (from->rows[i].count > to->rows[i].count)
            to->rows[i] = from->rows[i];
}

static inline void net_own_row(struct net_node *node, uint32_t self)
{
    struct sgp_rollout_tally tally;
    net_count(node, self, &tally);
}

/* Two nodes meet, if the file of each names the other. */
static inline bool net_meet(struct net *net, double death)
{
    const uint32_t a = net_draw(net, NET_NODES), b = net_draw(net, NET_NODES);
    struct net_node *first = &net->nodes[a], *second = &net->nodes[b];
    if (a == b || first->rollout == NULL || second->rollout == NULL ||
        (net->cut && first->side != second->side) || !net_names(net_file(first), b) ||
        !net_names(net_file(second), a))
        return true;
    net_own_row(first, a);
    net_own_row(second, b);
    net_tell(first, second);
    net_tell(second, first);
    return net_work(net, a, death) && net_work(net, b, death);
}

/* An administrator at this node signs a file, and may pass over the nodes that are out of reach. */
static inline void net_push(struct net *net, uint32_t index, const char *file, uint64_t version,
    bool passes_over, const char *signers)
{
    struct net_node *node = &net->nodes[index];
    const struct sgp_document *active = sgp_rollout_document(node->rollout, SGP_ROLLOUT_ACTIVE);
    struct sgp_error error = {0};
    struct sgp_manifest manifest =
        keys_manifest(version, active != NULL ? active->identity : "", file);
    for (uint32_t i = 0; passes_over && i < NET_NODES; i++)
        if (net->nodes[i].rollout == NULL || (net->cut && net->nodes[i].side != node->side))
            (void)snprintf(
                manifest.despite[manifest.despite_count++], SGP_NAME_BYTES, "%c", net_all[i]);
    char *text = keys_document(manifest, file, signers);
    sgp_assert(sgp_rollout_take(node->rollout, SGP_ROLLOUT_PROPOSED, text, &error) >= 0);
    free(text);
}

/* The version that an administrator chooses there: above all that the node knows. */
static inline uint64_t net_next_version(struct net *net, uint32_t index)
{
    struct sgp_rollout_view view;
    sgp_rollout_look(net->nodes[index].rollout, &view);
    const uint64_t version = (view.active > view.proposed ? view.active : view.proposed) + 1;
    net->versions = version > net->versions ? version : net->versions;
    return version;
}

/* The nodes of a file, with one added or struck. */
static inline void net_vary(struct net *net, const char *file, char ret_file[2 * NET_NODES + 2])
{
    const uint32_t node = net_draw(net, NET_NODES), change = net_draw(net, 3);
    size_t used = 0;
    for (uint32_t i = 0; i < NET_NODES; i++)
        if ((net_names(file, i) && !(change == 0 && i == node && strcspn(file, "!") > NET_LEAST)) ||
            (change == 1 && i == node))
            ret_file[used++] = net_all[i];
    ret_file[used] = '\0';
    if (!net_chance(net, 0.15))
        return;
    ret_file[used++] = '!';
    ret_file[used++] = net_all[net_draw(net, NET_NODES)];
    ret_file[used] = '\0';
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Node authentication: the keys that a topology file names. Any thread; pure. */
#include "topology/key.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX "SHA256:"
#define HASH_LETTERS 43u /* 32 bytes in base64 without padding; the last letter represents 4 bits */

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* There is only one spelling of a hash, so keys are compared as texts. */
static bool key_is_good(const char *key, size_t length)
{
    size_t begin = sizeof PREFIX - 1;
    if (length != begin + HASH_LETTERS || strncmp(key, PREFIX, begin) != 0)
        return false;
    for (size_t i = begin; i < length; i++)
        if (!memchr(letters, key[i], sizeof letters - 1))
            return false;
    return (strchr(letters, key[length - 1]) - letters) % 4 == 0;
}

static int fail_key(const char *text, size_t length, struct sgp_error *error)
{
    return sgp_fail(error, SGP_E_TOPOLOGY,
        "key \"%.*s\" is none; a key is SHA256: and 43 letters of base64, as sgpctl key generate "
        "prints it",
        (int)(length < 80 ? length : 80), text);
}

int sgp_keys_parse(
    const char *text, struct sgp_error *error, char ret_keys[SGP_NODE_KEYS_MAX][SGP_KEY_BYTES])
{
    char keys[SGP_NODE_KEYS_MAX][SGP_KEY_BYTES] = {{0}};
    uint32_t count = 0;
    for (const char *at = text; *at != '\0' || count == 0; count++) {
        size_t length = strcspn(at, " ");
        if (!key_is_good(at, length))
            return fail_key(at, length, error);
        if (count == SGP_NODE_KEYS_MAX)
            return sgp_fail(error, SGP_E_TOPOLOGY,
                "there are more than %u keys; a node has one, or two while one is being replaced",
                SGP_NODE_KEYS_MAX);
        memcpy(keys[count], at, length);
        at += length;
        at += strspn(at, " ");
    }
    memcpy(ret_keys, keys, sizeof keys);
    return 0;
}

static const char *key_at(const struct sgp_topology_node *nodes, uint32_t place)
{
    return nodes[place / SGP_NODE_KEYS_MAX].keys[place % SGP_NODE_KEYS_MAX];
}

/* Of two equal keys the later node's is at fault. */
static int by_key(const void *a, const void *b, void *context)
{
    uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    int order = strcmp(key_at(context, i), key_at(context, j));
    return order != 0 ? order : i < j ? -1 : i > j;
}

int sgp_keys_order(struct sgp_topology *topology, struct sgp_error *error, uint32_t *where)
{
    struct sgp_topology_node *nodes = topology->nodes;
    for (uint32_t place = 0; place < topology->node_count * SGP_NODE_KEYS_MAX; place++) {
        const char *key = key_at(nodes, place);
        *where = place / SGP_NODE_KEYS_MAX;
        if (key[0] == '\0')
            continue;
        size_t length = strnlen(key, SGP_KEY_BYTES);
        if (!key_is_good(key, length))
            return fail_key(key, length, error);
        topology->by_key[topology->key_count++] = place;
    }
    qsort_r(topology->by_key, topology->key_count, sizeof *topology->by_key, by_key, nodes);
    for (uint32_t i = 1; i < topology->key_count; i++) {
        uint32_t before = topology->by_key[i - 1], place = topology->by_key[i];
        *where = place / SGP_NODE_KEYS_MAX;
        if (strcmp(key_at(nodes, before), key_at(nodes, place)) == 0)
            return sgp_fail(error, SGP_E_TOPOLOGY,
                "nodes %s and %s have the same key %s; every node needs one of its own",
                nodes[before / SGP_NODE_KEYS_MAX].name, nodes[*where].name, key_at(nodes, place));
    }
    return 0;
}

int sgp_keys_check(const struct sgp_topology *topology, struct sgp_error *error, uint32_t *where)
{
    for (uint32_t i = 0; i < topology->node_count && topology->tls != SGP_TLS_OFF; i++) {
        *where = i;
        if (topology->nodes[i].keys[0][0] == '\0')
            return sgp_fail(error, SGP_E_TOPOLOGY,
                "node %s has no key, and links are to be ciphered (tls=%s); sgpctl key generate %s "
                "makes one and prints it",
                topology->nodes[i].name, sgp_tls_name(topology->tls), topology->nodes[i].name);
    }
    *where = 0;
    uint32_t authors = 0; /* number of distinct keys; a node and its co-located owner share one */
    while (authors < topology->node_count && !topology->nodes[authors].colocated)
        authors++;
    if (topology->stops > 1 && topology->tls != SGP_TLS_REQUIRE)
        return sgp_fail(error, SGP_E_TOPOLOGY,
            "stops=%u needs words that are signed; write tls=require, or leave it out",
            topology->stops);
    if (topology->stops > authors)
        return sgp_fail(error, SGP_E_TOPOLOGY,
            "stops=%u of %u nodes can never have signed; take at most %u", topology->stops, authors,
            authors);
    return 0;
}

int64_t sgp_topology_find_key(const struct sgp_topology *topology, const char *key)
{
    uint32_t low = 0, high = topology->key_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = strcmp(key_at(topology->nodes, topology->by_key[middle]), key);
        if (order == 0)
            return topology->by_key[middle] / SGP_NODE_KEYS_MAX;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return -ENOENT;
}

bool sgp_topology_has_key(const struct sgp_topology *topology, uint32_t node, const char *key)
{
    return sgp_topology_find_key(topology, key) == (int64_t)sgp_topology_machine(topology, node);
}

void sgp_topology_keys_text(
    const struct sgp_topology *topology, uint32_t node, char text[SGP_KEYS_BYTES])
{
    const struct sgp_topology_node *it = &topology->nodes[node];
    const char *first = it->keys[0], *second = it->keys[1];
    (void)snprintf(
        text, SGP_KEYS_BYTES, "%s%s%s", first[0] ? first : "no key", second[0] ? " " : "", second);
}

const char *sgp_tls_name(enum sgp_tls tls)
{
    return tls == SGP_TLS_OFFER ? "offer" : tls == SGP_TLS_REQUIRE ? "require" : "off";
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of the topology file beside keys that peers show; see peer_keys.h. */
#include "peer_keys.h"

#include "net/listener.h"

#include <stdio.h>
#include <string.h>

const char *peer_keys_object(const struct prepared *prepared, const char *hash)
{
    static _Thread_local char text[SGP_TEXT_BYTES];
    if (sgp_topology_find_key(prepared->topology, hash) >= 0)
        return NULL;
    (void)snprintf(text, sizeof text,
        "its key is %s, which the topology file gives to nobody; ours is %s", hash,
        prepared->key != NULL ? sgp_key_hash(prepared->key) : "none");
    return text;
}

static const char *object_to_caller(void *context, const char *hash)
{
    return peer_keys_object(context, hash);
}

enum sgp_tls peer_keys_listening(
    struct prepared *prepared, struct sgp_cipher_settings *ret_settings)
{
    *ret_settings = (struct sgp_cipher_settings){
        .key = prepared->key, .objection = object_to_caller, .context = prepared};
    return prepared->topology->tls;
}

/* A dial may outlast a reload, so the check uses the node that was dialled. */
static const char *object_to_peer(void *context, const char *hash)
{
    static _Thread_local char text[SGP_TEXT_BYTES];
    const struct sgp_topology_node *node = context;
    for (uint32_t i = 0; i < SGP_NODE_KEYS_MAX; i++)
        if (strcmp(node->keys[i], hash) == 0)
            return NULL;
    (void)snprintf(text, sizeof text, "it has the key %s, and the topology file gives %s %s%s%s",
        hash, node->name, node->keys[0], node->keys[1][0] != '\0' ? " or " : "", node->keys[1]);
    return text;
}

enum sgp_tls peer_keys_dialling(
    const struct prepared *prepared, struct sgp_cipher_settings *ret_settings)
{
    *ret_settings = (struct sgp_cipher_settings){.key = prepared->key, .objection = object_to_peer};
    return prepared->topology->tls;
}

bool peer_keys_allow(const struct prepared *prepared, const struct link *link, uint32_t source,
    char text[SGP_TEXT_BYTES])
{
    const struct sgp_topology *topology = prepared->topology;
    const char *name = topology->nodes[source].name;
    char keys[SGP_KEYS_BYTES];
    if (link->cipher == NULL && topology->tls != SGP_TLS_REQUIRE)
        return true;
    if (link->cipher == NULL) { /* the connection began before a reload */
        (void)snprintf(
            text, SGP_TEXT_BYTES, "it speaks without TLS, which the topology file requires");
        return false;
    }
    if (sgp_topology_has_key(topology, source, sgp_cipher_peer(link->cipher)))
        return true;
    sgp_topology_keys_text(topology, source, keys);
    (void)snprintf(text, SGP_TEXT_BYTES,
        "it is called %s and has the key %s; the topology file gives %s %s", name,
        sgp_cipher_peer(link->cipher), name, keys);
    return false;
}

int64_t peer_keys_find(
    const struct prepared *prepared, const char *source, char text[SGP_TEXT_BYTES])
{
    const int64_t node = sgp_topology_find(prepared->topology, source);
    if (node < 0)
        (void)snprintf(text, SGP_TEXT_BYTES,
            "it is called %s, which is no node of the topology file; " LISTENER_REMEDY, source);
    return node;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Compares keys of the topology file with keys that peers show; see trust.h.
 *
 * Fails: a peer with another key is refused, with a line that names both keys. */
#include "trust.h"

#include "edges.h"
#include "formers.h"
#include "guests.h"
#include "net/listener.h"
#include "notes.h"
#include "setup/peer_keys.h"

#include <stdio.h>
#include <string.h>

/* ---- before the peer is identified ---- */

/* The listener lets a caller with an unknown key say one message: guests.h, formers.h. */
static const char *object_to_stranger(void *context, const char *hash)
{
    const struct daemon *daemon = context;
    return guests_are_awaited(daemon) || formers_have_key(daemon, hash)
               ? NULL
               : peer_keys_object(daemon->prepared, hash);
}

enum sgp_tls trust_listening(void *context, struct sgp_cipher_settings *ret_settings)
{
    struct daemon *daemon = context;
    const enum sgp_tls tls = peer_keys_listening(daemon->prepared, ret_settings);
    ret_settings->objection = object_to_stranger;
    ret_settings->context = daemon;
    return tls;
}

bool trust_expects(void *context, const struct sockaddr *address)
{
    const struct daemon *daemon = context;
    return callers_expect(&daemon->callers, address);
}

static bool was_ciphered(struct daemon *daemon, uint32_t peer)
{
    const struct edge *out = edges_find(daemon, peer, SGP_OUT);
    const struct edge *in = edges_find(daemon, peer, SGP_IN);
    return (out != NULL && out->ciphered) || (in != NULL && in->ciphered);
}

enum sgp_tls trust_dialling(void *context, uint32_t peer, struct sgp_cipher_settings *ret_settings)
{
    struct daemon *daemon = context;
    const enum sgp_tls tls = peer_keys_dialling(daemon->prepared, ret_settings);
    return tls == SGP_TLS_OFFER && was_ciphered(daemon, peer) ? SGP_TLS_REQUIRE : tls;
}

/* ---- a caller has said its name ---- */

bool trust_is(
    struct daemon *daemon, const struct link *link, uint32_t source, char text[SGP_TEXT_BYTES])
{
    const struct sgp_topology *topology = daemon->prepared->topology;
    const char *name = topology->nodes[source].name;
    if (link->cipher != NULL || topology->tls != SGP_TLS_OFFER || !was_ciphered(daemon, source))
        return peer_keys_allow(daemon->prepared, link, source, text);
    (void)snprintf(text, SGP_TEXT_BYTES,
        "it is called %s and speaks without TLS, and %s spoke with it before; that is believed "
        "only "
        "after a restart of this node",
        name, name);
    return false;
}

bool trust_answers(const struct daemon *daemon, const struct link *link)
{
    const struct sgp_topology *topology = daemon->prepared->topology;
    return link->cipher == NULL
               ? topology->tls != SGP_TLS_REQUIRE
               : sgp_topology_find_key(topology, sgp_cipher_peer(link->cipher)) >= 0;
}

void trust_note(struct daemon *daemon, const struct link *link)
{
    const struct sgp_topology *topology = daemon->prepared->topology;
    struct edge *edge = edges_find(daemon, link->id.peer, link->id.direction);
    edge->ciphered = edge->ciphered || link->cipher != NULL;
    if (topology->tls == SGP_TLS_OFFER && link->cipher == NULL)
        notes_plain(daemon, edge, link);
}

/* ---- another file ---- */

/* NULL: the link may stay. */
static const char *fault(
    const struct daemon *daemon, const struct link *link, char text[SGP_TEXT_BYTES])
{
    const struct sgp_topology *topology = daemon->prepared->topology;
    if (link->cipher == NULL)
        return topology->tls == SGP_TLS_REQUIRE ? "the topology file requires TLS now" : NULL;
    const char *theirs = sgp_cipher_peer(link->cipher), *ours = sgp_cipher_own(link->cipher);
    bool peer = sgp_topology_has_key(topology, link->id.peer, theirs);
    if (topology->tls == SGP_TLS_OFF ||
        (peer && sgp_topology_has_key(topology, daemon->prepared->self, ours)))
        return NULL;
    (void)snprintf(text, SGP_TEXT_BYTES, "the topology file does not name %s key %s any more",
        peer ? "our" : "its", peer ? ours : theirs);
    return text;
}

void trust_reloaded(struct daemon *daemon)
{
    char text[SGP_TEXT_BYTES];
    for (uint32_t i = 0; i < daemon->edge_count; i++)
        for (struct link *link = daemon->edges[i].links; link != NULL; link = link->next) {
            const char *why = link_stands(link) ? fault(daemon, link, text) : NULL;
            if (why != NULL)
                link_end(link, SGP_E_CLOSED, why);
        }
}

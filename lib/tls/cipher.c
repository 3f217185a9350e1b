/* SPDX-License-Identifier: Apache-2.0 */
/* TLS over memory; see sgp/cipher.h. Outgoing bytes are in two buffers: the owner sends one while
 * the other fills. */
#include "sgp/cipher.h"
#include "tls/identity.h"

#include <gnutls/gnutls.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HANDSHAKE_BYTES_MAX 4096u /* limit for an unauthenticated peer, which needs some 500 */
#define RECORD_BYTES 16384u
#define RECORD_MORE 64u /* header, type and tag, with a reserve */

struct pile {
    uint8_t *bytes;
    size_t count, capacity;
};

struct sgp_cipher {
    struct sgp_cipher_settings settings;
    gnutls_session_t session;
    const uint8_t *came; /* owned by the caller */
    size_t came_count;
    struct pile taken, waits;
    size_t shaken;   /* bytes of the peer's handshake so far */
    uint64_t sealed; /* bytes sealed with the present key */
    const char *objection;
    bool spoke; /* the peer's first byte has arrived */
    bool known;
    bool failed;
    char peer[SGP_KEY_BYTES];
};

/* ---- callbacks of GnuTLS ---- */

static ssize_t pull(gnutls_transport_ptr_t context, void *into, size_t capacity)
{
    struct sgp_cipher *cipher = context;
    size_t part = capacity < cipher->came_count ? capacity : cipher->came_count;
    if (part == 0) {
        gnutls_transport_set_errno(cipher->session, EAGAIN);
        return -1;
    }
    cipher->shaken += cipher->known ? 0 : part;
    if (cipher->shaken > HANDSHAKE_BYTES_MAX) { /* GnuTLS would accept a message of 16 MiB */
        cipher->objection = "its handshake is too long";
        gnutls_transport_set_errno(cipher->session, EMSGSIZE);
        return -1;
    }
    memcpy(into, cipher->came, part);
    cipher->came += part;
    cipher->came_count -= part;
    return (ssize_t)part;
}

static bool reserve(struct pile *pile, size_t more)
{
    if (more <= pile->capacity - pile->count)
        return true;
    size_t capacity = pile->count + more;
    uint8_t *bytes = realloc(pile->bytes, capacity);
    if (bytes == NULL)
        return false;
    pile->bytes = bytes;
    pile->capacity = capacity;
    return true;
}

static ssize_t push(gnutls_transport_ptr_t context, const giovec_t *parts, int count)
{
    struct sgp_cipher *cipher = context;
    size_t bytes = 0;
    for (int i = 0; i < count; i++)
        bytes += parts[i].iov_len;
    if (!reserve(&cipher->waits, bytes)) {
        gnutls_transport_set_errno(cipher->session, ENOMEM);
        return -1;
    }
    for (int i = 0; i < count; i++) {
        if (parts[i].iov_len > 0)
            memcpy(cipher->waits.bytes + cipher->waits.count, parts[i].iov_base, parts[i].iov_len);
        cipher->waits.count += parts[i].iov_len;
    }
    return (ssize_t)bytes;
}

/* The peer has shown its key, and proved its possession by a signature. */
static int judge(gnutls_session_t session)
{
    struct sgp_cipher *cipher = gnutls_session_get_ptr(session);
    unsigned count = 0;
    const gnutls_datum_t *shown = gnutls_certificate_get_peers(session, &count);
    if (shown == NULL || count != 1 ||
        gnutls_certificate_type_get2(session, GNUTLS_CTYPE_PEERS) != GNUTLS_CRT_RAWPK ||
        !sgp_key_hash_of(shown->data, shown->size, cipher->peer))
        return GNUTLS_E_CERTIFICATE_ERROR;
    cipher->objection = cipher->settings.objection(cipher->settings.context, cipher->peer);
    return cipher->objection == NULL ? 0 : GNUTLS_E_CERTIFICATE_ERROR;
}

/* ---- creation ---- */

static int set_up(struct sgp_cipher *cipher)
{
    const struct sgp_key *key = cipher->settings.key;
    gnutls_session_t session;
    unsigned end = cipher->settings.dials ? GNUTLS_CLIENT : GNUTLS_SERVER;
    if (gnutls_init(&session, end | GNUTLS_NONBLOCK | GNUTLS_ENABLE_RAWPK | GNUTLS_NO_TICKETS) < 0)
        return -ENOMEM;
    cipher->session = session;
    if (gnutls_priority_set(session, key->priorities) < 0 ||
        gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, key->credentials) < 0)
        return SGP_E_STATE;
    gnutls_session_set_ptr(session, cipher);
    gnutls_session_set_verify_function(session, judge);
    /* for later messages, too */
    gnutls_handshake_set_max_packet_length(session, HANDSHAKE_BYTES_MAX);
    gnutls_handshake_set_timeout(session, 0); /* the owner measures the time */
    if (!cipher->settings.dials)
        gnutls_certificate_server_set_request(session, GNUTLS_CERT_REQUIRE);
    gnutls_transport_set_ptr(session, cipher);
    gnutls_transport_set_pull_function(session, pull);
    gnutls_transport_set_vec_push_function(session, push);
    return 0;
}

int sgp_cipher_create(const struct sgp_cipher_settings *settings, struct sgp_cipher **ret_cipher)
{
    sgp_assert(settings->renew_bytes == 0 || settings->renew_bytes >= SGP_CIPHER_RENEW_LEAST);
    struct sgp_cipher *cipher = calloc(1, sizeof *cipher);
    if (cipher == NULL)
        return -ENOMEM;
    cipher->settings = *settings;
    if (settings->renew_bytes == 0)
        cipher->settings.renew_bytes = SGP_CIPHER_RENEW_BYTES;
    (void)sgp_key_hold(settings->key);
    int code = set_up(cipher);
    if (code < 0) {
        sgp_cipher_destroy(cipher);
        return code;
    }
    *ret_cipher = cipher;
    return 0;
}

void sgp_cipher_destroy(struct sgp_cipher *cipher)
{
    if (cipher == NULL)
        return;
    if (cipher->session != NULL)
        gnutls_deinit(cipher->session);
    sgp_key_release(cipher->settings.key);
    free(cipher->taken.bytes);
    free(cipher->waits.bytes);
    free(cipher);
}

const char *sgp_cipher_peer(const struct sgp_cipher *cipher)
{
    return cipher->peer;
}

const char *sgp_cipher_own(const struct sgp_cipher *cipher)
{
    return cipher->settings.key->hash;
}

const char *sgp_cipher_name(const struct sgp_cipher *cipher)
{
    return gnutls_cipher_get_name(gnutls_cipher_get(cipher->session));
}

int sgp_cipher_binding(struct sgp_cipher *cipher, uint8_t ret_binding[SGP_CIPHER_BINDING_BYTES])
{
    gnutls_datum_t binding = {NULL, 0};
    sgp_assert(cipher->known);
    int code = gnutls_session_channel_binding(cipher->session, GNUTLS_CB_TLS_EXPORTER, &binding);
    const bool whole = code >= 0 && binding.size == SGP_CIPHER_BINDING_BYTES;
    if (whole)
        memcpy(ret_binding, binding.data, SGP_CIPHER_BINDING_BYTES);
    gnutls_free(binding.data);
    return whole ? 0 : SGP_E_STATE;
}

/* ---- receiving ---- */

/* The first byte of a TLS record is its type (RFC 8446, section 5.1): 20 to 23. A handshake begins
 * with 22, or with 21, an alert. */
static bool is_record(uint8_t first)
{
    return first >= 20 && first <= 23;
}

void sgp_cipher_feed(struct sgp_cipher *cipher, const void *bytes, size_t count)
{
    sgp_assert(cipher->came_count == 0);
    if (!cipher->spoke && count > 0 && !is_record(*(const uint8_t *)bytes))
        cipher->objection =
            cipher->settings.plain != NULL
                ? cipher->settings.plain
                : "the peer answers without TLS, so its topology file says neither tls=offer nor "
                  "tls=require; both nodes need the same file";
    cipher->spoke = cipher->spoke || count > 0;
    cipher->came = bytes;
    cipher->came_count = count;
}

/* The alerts of a peer that rejects this node's key. */
static bool is_refusal(gnutls_alert_description_t alert)
{
    return alert == GNUTLS_A_BAD_CERTIFICATE || alert == GNUTLS_A_CERTIFICATE_UNKNOWN ||
           alert == GNUTLS_A_UNKNOWN_CA || alert == GNUTLS_A_ACCESS_DENIED;
}

/* A peer may send a number without a name. */
static const char *alert_name(gnutls_alert_description_t alert)
{
    const char *name = gnutls_alert_get_name(alert);
    return name != NULL ? name : "which is none that is known";
}

static int fail(struct sgp_cipher *cipher, int code, struct sgp_error *error)
{
    bool first = !cipher->failed;
    cipher->failed = true;
    cipher->came_count = 0;
    if (cipher->objection != NULL)
        (void)sgp_fail(error, SGP_E_PROTOCOL, "%s", cipher->objection);
    else if (code == GNUTLS_E_FATAL_ALERT_RECEIVED && is_refusal(gnutls_alert_get(cipher->session)))
        (void)sgp_fail(error, SGP_E_PROTOCOL,
            "the peer refused our key %s: give this node that key in the peer's topology file",
            cipher->settings.key->hash);
    else if (code == GNUTLS_E_FATAL_ALERT_RECEIVED)
        (void)sgp_fail(error, SGP_E_PROTOCOL, "TLS: the peer sent alert %d, %s",
            (int)gnutls_alert_get(cipher->session), alert_name(gnutls_alert_get(cipher->session)));
    else
        (void)sgp_fail(error, SGP_E_PROTOCOL, "TLS: %s", gnutls_strerror(code));
    if (first && code != GNUTLS_E_FATAL_ALERT_RECEIVED)
        (void)gnutls_alert_send_appropriate(cipher->session, code);
    return SGP_E_PROTOCOL;
}

/* Whether GnuTLS must be called again. It may ask for more bytes, for a message in several records,
 * although some of the received bytes are still unread. */
static bool goes_on(const struct sgp_cipher *cipher, ssize_t code, size_t before)
{
    return code == GNUTLS_E_INTERRUPTED ||
           (code == GNUTLS_E_AGAIN && cipher->came_count > 0 && cipher->came_count < before);
}

/* Whether GnuTLS has used all received bytes, and needs more. */
static bool waits_for_more(const struct sgp_cipher *cipher, ssize_t code)
{
    return code == GNUTLS_E_AGAIN && cipher->came_count == 0;
}

int sgp_cipher_shake(struct sgp_cipher *cipher, struct sgp_error *error)
{
    int code = GNUTLS_E_SESSION_EOF;
    size_t before;
    if (cipher->known)
        return 0;
    if (!cipher->failed)
        do {
            before = cipher->came_count;
            code = gnutls_handshake(cipher->session);
        } while (goes_on(cipher, code, before));
    if (waits_for_more(cipher, code))
        return -EAGAIN;
    if (code < 0)
        return fail(cipher, code, error);
    cipher->known = true;
    return 0;
}

ssize_t sgp_cipher_open(
    struct sgp_cipher *cipher, void *into, size_t capacity, struct sgp_error *error)
{
    ssize_t count = GNUTLS_E_SESSION_EOF;
    sgp_assert(cipher->known);
    size_t before;
    if (!cipher->failed)
        do {
            before = cipher->came_count;
            count = gnutls_record_recv(cipher->session, into, capacity);
        } while (goes_on(cipher, count, before));
    if (waits_for_more(cipher, count))
        return -EAGAIN;
    return count < 0 ? fail(cipher, (int)count, error) : count;
}

/* ---- sending ---- */

static int renew(struct sgp_cipher *cipher, size_t count)
{
    cipher->sealed += count;
    if (cipher->sealed < cipher->settings.renew_bytes)
        return 0;
    cipher->sealed = 0;
    return gnutls_session_key_update(cipher->session, 0);
}

int sgp_cipher_seal(struct sgp_cipher *cipher, const void *bytes, size_t count)
{
    sgp_assert(cipher->known);
    size_t records = count / RECORD_BYTES + 1;
    if (cipher->failed)
        return SGP_E_STATE;
    cipher->failed = !reserve(&cipher->waits, count + records * RECORD_MORE);
    if (cipher->failed)
        return -ENOMEM;
    ssize_t sealed = 0;
    for (size_t at = 0; at < count && sealed >= 0; at += (size_t)sealed)
        sealed = gnutls_record_send(cipher->session, (const uint8_t *)bytes + at, count - at);
    if (sealed >= 0)
        sealed = renew(cipher, count);
    cipher->failed = cipher->failed || sealed < 0;
    return sealed < 0 ? SGP_E_STATE : 0;
}

size_t sgp_cipher_take(struct sgp_cipher *cipher, const uint8_t **ret_bytes)
{
    struct pile taken = cipher->waits;
    cipher->waits = cipher->taken;
    cipher->waits.count = 0;
    cipher->taken = taken;
    *ret_bytes = taken.bytes;
    return taken.count;
}

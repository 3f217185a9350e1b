/* SPDX-License-Identifier: Apache-2.0 */
/* What a joiner says and hears; see join_line.h and docs/PROTOCOL.md, "Joining". */
#include "join_line.h"

#include "sgp/cipher.h"
#include "sgp/topology.h"
#include "sgp/wire.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

_Static_assert(SGP_CIPHER_BINDING_BYTES == SGP_BINDING_BYTES, "a binding");

#define SILENT_TIME (10 * SGP_SECOND) /* for an address, if there are others */

struct line {
    const struct sgp_invitation *invitation;
    struct sgp_error *error;
    struct sgp_cipher *cipher;
    int socket;
    sgp_time until;
    bool asked; /* SGP_JOIN may have reached the inviter */
    bool heard; /* a byte of the inviter's, within TLS */
    uint8_t came[16384];
    char text[SGP_TEXT_BYTES]; /* the objection */
};

static sgp_time now(void)
{
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (sgp_time)time.tv_sec * SGP_SECOND + time.tv_nsec;
}

static int fail(const struct line *line, int code, const char *why)
{
    return sgp_fail(line->error, code, "%s: %s", line->invitation->address, why);
}

/* ---- bytes ---- */

static int wait_until(int socket, short events, sgp_time until)
{
    struct pollfd poll_for = {.fd = socket, .events = events};
    int count;
    do {
        const sgp_time left = until - now();
        count = left > 0 ? poll(&poll_for, 1, (int)(left / SGP_MILLISECOND) + 1) : 0;
    } while (count < 0 && errno == EINTR);
    return count == 0 ? -ETIMEDOUT : count < 0 ? -errno : 0;
}

static const char *reason(int code)
{
    return code == -ETIMEDOUT ? "the inviter does not answer in time" : strerror(-code);
}

static int wait_for(const struct line *line, short events)
{
    const int code = wait_until(line->socket, events, line->until);
    return code < 0 ? fail(line, code, reason(code)) : 0;
}

static int connect_to(struct line *line, const struct addrinfo *address, sgp_time until)
{
    int failed = 0;
    socklen_t bytes = sizeof failed;
    line->socket = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (line->socket < 0)
        return -errno;
    if (connect(line->socket, address->ai_addr, address->ai_addrlen) == 0)
        return 0;
    int code = errno == EINPROGRESS ? wait_until(line->socket, POLLOUT, until) : -errno;
    if (code == 0 && getsockopt(line->socket, SOL_SOCKET, SO_ERROR, &failed, &bytes) == 0)
        code = -failed;
    return code;
}

/* Connect to the first address that answers. A silent one leaves time for those after it. */
static int connect_to_one(struct line *line, const struct addrinfo *found)
{
    int code = -EHOSTUNREACH, count = 0;
    for (const struct addrinfo *it = found; it != NULL; it = it->ai_next)
        count++;
    for (const struct addrinfo *it = found; it != NULL && code < 0; it = it->ai_next, count--) {
        const sgp_time time = now(), part = (line->until - time) / count;
        if (line->socket >= 0)
            (void)close(line->socket);
        code = connect_to(line, it, time + (count > 1 && part > SILENT_TIME ? SILENT_TIME : part));
    }
    return code;
}

static int open_socket(struct line *line)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    char host[SGP_ADDRESS_BYTES], port[8];
    uint16_t number;
    int code = sgp_address_split(line->invitation->address, line->error, host, &number);
    if (code < 0)
        return code;
    (void)snprintf(port, sizeof port, "%u", number);
    if ((code = getaddrinfo(host, port, &hints, &found)) != 0)
        return fail(line, -EHOSTUNREACH, gai_strerror(code));
    code = connect_to_one(line, found);
    freeaddrinfo(found);
    return code < 0 ? fail(line, code, reason(code)) : 0;
}

/* Send what waits in the cipher. */
static int flush(struct line *line)
{
    const uint8_t *bytes;
    size_t count = sgp_cipher_take(line->cipher, &bytes);
    while (count > 0) {
        const ssize_t sent = send(line->socket, bytes, count, MSG_NOSIGNAL);
        int code = sent >= 0 ? 0 : errno == EAGAIN ? wait_for(line, POLLOUT) : -errno;
        if (code < 0)
            return fail(line, code, strerror(-code));
        bytes += sent > 0 ? sent : 0;
        count -= sent > 0 ? (size_t)sent : 0;
    }
    return 0;
}

/* Feed the cipher with what comes next. */
static int feed(struct line *line)
{
    for (;;) {
        const ssize_t count = recv(line->socket, line->came, sizeof line->came, 0);
        if (count > 0) {
            sgp_cipher_feed(line->cipher, line->came, (size_t)count);
            return 0;
        }
        if (count == 0)
            return fail(line, SGP_E_PROTOCOL, "the inviter closed the connection");
        int code = errno == EAGAIN ? wait_for(line, POLLIN) : -errno;
        if (code < 0)
            return fail(line, code, strerror(-code));
    }
}

/* ---- TLS ---- */

static const char *object(void *context, const char *hash)
{
    struct line *line = context;
    if (strcmp(hash, line->invitation->key) == 0)
        return NULL;
    (void)snprintf(line->text, sizeof line->text,
        "it has the key %s, and the invitation says %s: another machine answers, or the inviter "
        "has a new key; ask for a new invitation",
        hash, line->invitation->key);
    return line->text;
}

static int shake(struct line *line, struct sgp_key *key)
{
    const struct sgp_cipher_settings settings = {.key = key,
        .dials = true,
        .objection = object,
        .context = line,
        .plain = "it answers without TLS: no daemon that gives invitations is there"};
    struct sgp_error why = {0};
    int code = sgp_cipher_create(&settings, &line->cipher);
    if (code < 0)
        return fail(line, code, sgp_strerror(code));
    while ((code = sgp_cipher_shake(line->cipher, &why)) == -EAGAIN) {
        if ((code = flush(line)) < 0 || (code = feed(line)) < 0)
            return code;
    }
    return code < 0 ? fail(line, code, why.text) : flush(line);
}

/* A listener refuses an unknown key after the dialler's handshake has ended, before any byte. */
static int fail_unheard(const struct line *line, const char *why)
{
    return line->heard
               ? fail(line, SGP_E_PROTOCOL, why)
               : fail(line, SGP_E_CLOSED,
                     "the inviter awaits no invitation: its daemon has started again since it gave "
                     "this one, a topology file has named its node, or it ended more than a day "
                     "ago; ask for a new one");
}

static int take(struct line *line, uint8_t *into, size_t count)
{
    struct sgp_error why = {0};
    for (size_t have = 0; have < count;) {
        const ssize_t part = sgp_cipher_open(line->cipher, into + have, count - have, &why);
        int code = part == -EAGAIN ? feed(line) : 0;
        if (code < 0)
            return code;
        if (part == 0 || (part < 0 && part != -EAGAIN))
            return fail_unheard(line, part == 0 ? "the inviter closed the connection" : why.text);
        line->heard |= part > 0;
        have += part > 0 ? (size_t)part : 0;
    }
    return 0;
}

/* ---- messages ---- */

static int say(struct line *line, const struct sgp_join *join)
{
    const struct sgp_message message = {.type = SGP_JOIN,
        .pulse = {.state = SGP_NODE_JOINING, .next_round = SGP_ROUND_NONE, .stop = SGP_ROUND_NONE},
        .join = *join};
    uint8_t frame[SGP_WIRE_FRAME_MAX];
    size_t bytes;
    int code = sgp_wire_encode(&message, frame, sizeof frame, &bytes);
    line->asked = true;
    if (code == 0)
        code = sgp_cipher_seal(line->cipher, frame, bytes);
    return code < 0 ? fail(line, code, sgp_strerror(code)) : flush(line);
}

static int hear(struct line *line, struct sgp_wire_text *text, struct sgp_joined *ret_joined)
{
    uint8_t bytes[SGP_WIRE_FRAME_MAX];
    struct sgp_wire_header header;
    struct sgp_message message;
    struct sgp_error why = {0};
    int code = take(line, bytes, SGP_WIRE_HEADER_BYTES);
    if (code < 0)
        return code;
    code = sgp_wire_header_decode(bytes, &header, &why);
    if (code == 0 && header.body_bytes > SGP_WIRE_BODY_MAX)
        code = sgp_fail(&why, SGP_E_PROTOCOL, "the inviter sent a message that is too long");
    if (code < 0)
        return fail(line, code, why.text);
    if ((code = take(line, bytes, header.body_bytes)) < 0)
        return code;
    code = sgp_wire_body_decode(&header, bytes, text, &message, &why);
    if (code < 0)
        return fail(line, code, why.text);
    if (message.type == SGP_GOODBYE)
        return fail(line, SGP_E_CLOSED, message.goodbye.text);
    if (message.type != SGP_JOINED)
        return fail(line, SGP_E_PROTOCOL, "the inviter sent a message that is out of turn");
    if (message.joined.verdict != SGP_JOIN_ACCEPTED)
        return fail(line, SGP_E_CLOSED,
            sgp_join_verdict_text((enum sgp_join_verdict)message.joined.verdict));
    *ret_joined = message.joined;
    return 0;
}

/* Ask until both texts are here. The pieces come in their order. */
static int receive(struct line *line, struct sgp_join *join, char **ret_texts, uint32_t *ret_split)
{
    struct sgp_wire_text text;
    struct sgp_joined joined = {.bytes = 1};
    char *texts = NULL;
    uint32_t have = 0, bytes = 0;
    while (have < joined.bytes) {
        join->first = have;
        int code = say(line, join);
        for (unsigned i = 0; i < SGP_JOINED_PIECES && code == 0 && have < joined.bytes; i++) {
            code = hear(line, &text, &joined);
            if (code == 0 && texts == NULL && (texts = malloc(joined.bytes + 1u)) == NULL)
                code = fail(line, -ENOMEM, "no memory for the topology file");
            bytes = bytes == 0 ? joined.bytes : bytes;
            const size_t piece = code == 0 ? strlen(joined.text) : 1;
            if (code == 0 && (joined.bytes != bytes || joined.first != have || piece == 0))
                code = fail(line, SGP_E_PROTOCOL, "the inviter sent a piece that is out of turn");
            if (code == 0)
                memcpy(texts + have, joined.text, piece);
            have += (uint32_t)piece;
        }
        if (code < 0) {
            free(texts);
            return code;
        }
    }
    texts[have] = '\0';
    *ret_texts = texts;
    *ret_split = joined.split;
    return 0;
}

static int ask(struct line *line, const char *address, struct sgp_key *key, char **ret_texts,
    uint32_t *ret_split)
{
    const struct sgp_invitation *invitation = line->invitation;
    struct sgp_join_claim claim = {.fleet = invitation->fleet,
        .name = invitation->name,
        .address = address,
        .key = sgp_key_hash(key)};
    char proof[SGP_PROOF_TEXT_BYTES];
    int code = open_socket(line);
    if (code == 0)
        code = shake(line, key);
    if (code < 0)
        return code;
    if (sgp_cipher_binding(line->cipher, claim.binding) < 0)
        return fail(line, SGP_E_STATE, "TLS gives no binding of the connection");
    sgp_join_claim_prove(&claim, invitation->secret);
    sgp_proof_write(claim.proof, proof);
    struct sgp_join join = {.fleet = claim.fleet,
        .name = claim.name,
        .address = address,
        .number = claim.number,
        .proof = proof};
    return receive(line, &join, ret_texts, ret_split);
}

int ctl_join_line(const struct sgp_invitation *invitation, const char *address, struct sgp_key *key,
    struct sgp_error *error, bool *ret_asked, char **ret_topology, char **ret_settings)
{
    struct line line = {.invitation = invitation,
        .error = error,
        .socket = -1,
        .until = now() + CTL_JOIN_SECONDS * SGP_SECOND};
    char *texts = NULL;
    uint32_t split = 0;
    int code = ask(&line, address, key, &texts, &split);
    *ret_asked = line.asked;
    sgp_cipher_destroy(line.cipher);
    if (line.socket >= 0)
        (void)close(line.socket);
    if (code < 0)
        return code;
    char *topology = strndup(texts, split), *settings = strdup(texts + split);
    free(texts);
    if (topology != NULL && settings != NULL && sgp_joined_unescape(topology) &&
        sgp_joined_unescape(settings)) {
        *ret_topology = topology;
        *ret_settings = settings;
        return 0;
    }
    free(topology);
    free(settings);
    return fail(&line, SGP_E_PROTOCOL, "the inviter sent texts that cannot be read");
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A link that is ciphered, both ends of it in one loop, and from where callers are expected. */
#include "net/callers.h"
#include "net/link.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <assertions.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- two links ---- */

#define PARAMETERS (3u << 19) /* 6 MiB: more than a socket takes, and many records */

static const struct sgp_codec plain = {.compressor = SGP_COMPRESSOR_NONE};

static float payload[PARAMETERS], came[PARAMETERS];
static struct sgp_key *key;
static struct link *caller, *listener;
static uint32_t known, payloads;
static enum sgp_message_type heard[2]; /* by the caller, by the listener: the last one */
static int failures[2], payload_code;
static char failure_text[SGP_TEXT_BYTES];
static const char *objects; /* the listener */

static const char *object(void *context, const char *hash)
{
    const bool *listens = context;
    const char *why = *listens ? objects : NULL;
    return strcmp(hash, sgp_key_hash(key)) == 0 ? why : "another key";
}

static const struct sgp_pulse pulse = {
    .state = SGP_NODE_TRAINING, .next_round = SGP_ROUND_NONE, .ends = 100, .stop = SGP_ROUND_NONE};

static void on_first(struct link *link, uint8_t byte)
{
    static bool listens = true;
    const struct sgp_cipher_settings settings = {.key = key,
        .objection = object,
        .context = &listens,
        .renew_bytes = SGP_CIPHER_RENEW_LEAST};
    if (link != listener)
        return;
    cr_assert(eq(u8, byte, SGP_CIPHER_HELLO));
    cr_assert(zero(int, link_cipher(link, &settings)));
}

static void on_ciphered(struct link *link)
{
    struct sgp_message message = {
        .type = SGP_BEAT, .pulse = pulse}; /* from within, as a dialler's owner says hello */
    known++;
    link_send(link, &message);
}

static void on_message(struct link *link, const struct sgp_message *message)
{
    heard[link == listener] = message->type;
    if (message->type == SGP_SHARE)
        link_receive(link, came);
}

static void on_payload(struct link *link, int code)
{
    struct sgp_message message = {
        .type = SGP_ACK, .pulse = pulse, .ack = {.number = 1, .reason = SGP_REASON_NONE}};
    payload_code = code;
    payloads++;
    link_send(link, &message);
}

static void on_failed(struct link *link, int code, const char *text)
{
    failures[link == listener] = code;
    (void)snprintf(failure_text, sizeof failure_text, "%s", text);
}

static void on_link(struct link *link)
{
    if (link == caller)
        caller = NULL;
    if (link == listener)
        listener = NULL;
}

static const struct link_events events = {.first = on_first,
    .ciphered = on_ciphered,
    .message = on_message,
    .payload = on_payload,
    .failed = on_failed,
    .freed = on_link};

static void connect_by(uv_loop_t *loop, const int ends[2])
{
    char path[64], hash[SGP_KEY_BYTES];
    (void)snprintf(path, sizeof path, "/tmp/sgp-ciphered-%d.key", (int)getpid());
    cr_assert(zero(int, sgp_key_generate(path, NULL, hash)));
    cr_assert(zero(int, sgp_key_read(path, NULL, &key)));
    cr_assert(zero(int, unlink(path)));
    cr_assert(zero(int, uv_loop_init(loop)));
    caller = link_create(loop, &events, NULL);
    listener = link_create(loop, &events, NULL);
    cr_assert(zero(int, uv_tcp_open(&caller->tcp, ends[0])));
    cr_assert(zero(int, uv_tcp_open(&listener->tcp, ends[1])));
    static bool listens = false;
    const struct sgp_cipher_settings settings = {.key = key,
        .dials = true,
        .objection = object,
        .context = &listens,
        .renew_bytes = SGP_CIPHER_RENEW_LEAST};
    cr_assert(zero(int, link_cipher(caller, &settings)));
    cr_assert(zero(int, link_start(listener)));
    cr_assert(zero(int, link_start(caller)));
}

static void connect_ends(uv_loop_t *loop)
{
    int ends[2];
    cr_assert(zero(int, socketpair(AF_UNIX, SOCK_STREAM, 0, ends)));
    connect_by(loop, ends);
}

static void leave(uv_loop_t *loop)
{
    if (caller != NULL)
        link_close(caller, NULL);
    if (listener != NULL)
        link_close(listener, NULL);
    (void)uv_run(loop, UV_RUN_DEFAULT);
    cr_assert(zero(ptr, caller));
    cr_assert(zero(ptr, listener));
    cr_assert(zero(int, uv_loop_close(loop)));
    sgp_key_release(key);
}

static struct sgp_message share_message(void)
{
    return (struct sgp_message){.type = SGP_SHARE,
        .pulse = pulse,
        .share = {.number = 1,
            .fraction = 0.5,
            .weight = 0.5,
            .slice = {.count = PARAMETERS},
            .payload_bytes = sizeof payload}};
}

static void wait_until_known(uv_loop_t *loop)
{
    while (heard[0] == 0 || heard[1] == 0)
        (void)uv_run(loop, UV_RUN_ONCE);
}

Test(ciphered, shares_and_messages_go_both_ways_and_a_goodbye_comes_last)
{
    uv_loop_t loop;
    connect_ends(&loop);
    wait_until_known(&loop);
    cr_assert(eq(u32, known, 2));
    for (uint32_t i = 0; i < PARAMETERS; i++)
        payload[i] = (float)i;
    const struct sgp_message share = share_message();
    struct link *sources[] = {caller, listener};
    for (int i = 0; i < 2; i++) {
        memset(came, 0, sizeof came);
        link_send_payload(sources[i], &share, payload, plain);
        while (payloads == (uint32_t)i || heard[i] != SGP_ACK)
            (void)uv_run(&loop, UV_RUN_ONCE);
        cr_assert(zero(int, payload_code));
        cr_assert(zero(int, memcmp(came, payload, sizeof came)));
    }
    cr_assert(ge(u64, caller->bytes_sent, sizeof payload));
    cr_assert(ge(u64, listener->bytes_received, sizeof payload));
    const struct sgp_message goodbye = {
        .type = SGP_GOODBYE, .pulse = pulse, .goodbye = {.reason = SGP_REASON_LEAVING, .text = ""}};
    link_close(listener, &goodbye);
    while (failures[0] == 0)
        (void)uv_run(&loop, UV_RUN_ONCE);
    cr_assert(eq(int, (int)heard[0], SGP_GOODBYE));
    cr_assert(eq(int, failures[0], SGP_E_CLOSED));
    leave(&loop);
}

/* What is opened lies where coded bytes belong, and is decoded from there. */
Test(ciphered, coded_shares_are_decoded)
{
    uv_loop_t loop;
    connect_ends(&loop);
    wait_until_known(&loop);
    for (uint32_t i = 0; i < PARAMETERS; i++)
        payload[i] = (float)(i % 2001);
    struct sgp_message share = share_message();
    share.share.coding = SGP_CODING_FP16;
    share.share.payload_bytes = sgp_coding_bytes_most(SGP_CODING_FP16, PARAMETERS);
    memset(came, 0, sizeof came);
    link_send_payload(
        caller, &share, payload, (struct sgp_codec){.compressor = SGP_COMPRESSOR_FP16});
    while (payloads == 0 || heard[0] != SGP_ACK)
        (void)uv_run(&loop, UV_RUN_ONCE);
    cr_assert(zero(int, payload_code));
    cr_assert(zero(int, memcmp(came, payload, sizeof came)), "numbers up to 2048 are halves");
    cr_assert(le(u64, caller->bytes_sent, sizeof payload * 6 / 10));
    leave(&loop);
}

Test(ciphered, a_caller_whom_the_listener_refuses_hears_why)
{
    uv_loop_t loop;
    objects = "it is nobody";
    connect_ends(&loop);
    while (failures[0] == 0 || failures[1] == 0)
        (void)uv_run(&loop, UV_RUN_ONCE);
    cr_assert(eq(u32, known, 1));
    cr_assert(zero(int, (int)heard[1])); /* nothing of the caller's was read */
    cr_assert(eq(int, failures[1], SGP_E_PROTOCOL));
    char text[SGP_TEXT_BYTES];
    (void)snprintf(text, sizeof text,
        "the peer refused our key %s: give this node that key in the peer's topology file",
        sgp_key_hash(key));
    cr_assert(eq(str, failure_text, text));
    leave(&loop);
}

/* ---- keys made new ---- */

#define RECORD_HEADER 5u
#define UPDATE_BYTES 22u /* a record of a key update: 4 + 1, its type, the tag */

struct wire { /* one way of the line, looked at record by record */
    int from, to;
    uint32_t updates;
    pthread_t thread;
};

static void *carry(void *context)
{
    static _Thread_local uint8_t bytes[1 << 20];
    struct wire *wire = context;
    uint8_t header[RECORD_HEADER];
    size_t have = 0, left = 0;
    ssize_t count;
    while ((count = read(wire->from, bytes, sizeof bytes)) > 0) {
        for (size_t at = 0, part; at < (size_t)count; at += part) {
            size_t more = left > 0 ? left : RECORD_HEADER - have;
            part = (size_t)count - at < more ? (size_t)count - at : more;
            if (left > 0) {
                left -= part;
                continue;
            }
            memcpy(header + have, bytes + at, part);
            have = (have + part) % RECORD_HEADER;
            left = have > 0 ? 0 : (size_t)(header[3] << 8 | header[4]);
            wire->updates += left == UPDATE_BYTES;
        }
        for (ssize_t at = 0, part = 0; at < count && part >= 0; at += part)
            part = send(wire->to, bytes + at, (size_t)(count - at), MSG_NOSIGNAL);
    }
    (void)shutdown(wire->to, SHUT_WR);
    return NULL;
}

/* The key is made new each GiB, the least that is allowed, which is 170 shares and two thirds: so it is in the middle of one.
 * Ten times take half a minute: SGP_LONG. */
Test(ciphered, keys_are_made_new_in_the_middle_of_shares)
{
    uint32_t updates = getenv("SGP_LONG") != NULL ? 10 : 0,
             shares = updates > 0 ? 172 * updates : 8;
    int near[2], far[2];
    uv_loop_t loop;
    cr_assert(zero(int, socketpair(AF_UNIX, SOCK_STREAM, 0, near)));
    cr_assert(zero(int, socketpair(AF_UNIX, SOCK_STREAM, 0, far)));
    struct wire wires[2] = {{near[1], far[1]}, {far[1], near[1]}};
    for (int i = 0; i < 2; i++)
        cr_assert(zero(int, pthread_create(&wires[i].thread, NULL, carry, &wires[i])));
    connect_by(&loop, (int[]){near[0], far[0]});
    wait_until_known(&loop);
    const struct sgp_message message = share_message();
    for (uint32_t number = 1; number <= shares; number++) {
        payload[number] = (float)number;
        memset(came, 0, sizeof came);
        heard[0] = 0;
        link_send_payload(caller, &message, payload, plain);
        while (heard[0] != SGP_ACK && failures[0] == 0 && failures[1] == 0)
            (void)uv_run(&loop, UV_RUN_ONCE);
        cr_assert(zero(int, failures[0]), "share %u: %s", number, failure_text);
        cr_assert(eq(u32, payloads, number));
        cr_assert(zero(int, payload_code));
        cr_assert(zero(int, memcmp(came, payload, sizeof came)), "share %u", number);
    }
    leave(&loop);
    for (int i = 0; i < 2; i++)
        cr_assert(zero(int, pthread_join(wires[i].thread, NULL)));
    cr_assert(eq(u32, wires[0].updates, updates));
    (void)(close(near[1]), close(far[1]));
}

/* ---- callers ---- */

static bool expects(const struct callers *callers, const char *text)
{
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
    if (uv_ip4_addr(text, 1, &in) == 0)
        return callers_expect(callers, (const struct sockaddr *)&in);
    cr_assert(zero(int, uv_ip6_addr(text, 1, &in6)));
    return callers_expect(callers, (const struct sockaddr *)&in6);
}

Test(ciphered, callers_are_expected_from_where_the_names_of_the_file_resolve)
{
    static struct sgp_topology_node nodes[] = {{"n0", "10.0.0.1:7311"}, {"n1", "10.0.0.2:7311"},
        {"n2", "[fd00::7]:7311"}, {"n3", "localhost:7311"}, {"n4", "no.such.host.invalid:1"}};
    const struct sgp_topology topology = {.node_count = 5, .nodes = nodes};
    struct callers callers;
    uv_loop_t loop;
    cr_assert(zero(int, uv_loop_init(&loop)));
    callers_open(&callers, &loop);
    cr_assert(not(expects(&callers, "10.0.0.2")));
    callers_resolve(&callers, &topology, 0);
    cr_assert(expects(&callers, "10.0.0.2")); /* an address waits for no name */
    callers_resolve(&callers, &topology, 0);  /* while the first is under way */
    while (!expects(&callers, "127.0.0.1") && !expects(&callers, "::1"))
        (void)uv_run(&loop, UV_RUN_ONCE);
    cr_assert(expects(&callers, "10.0.0.2"));
    cr_assert(expects(&callers, "::ffff:10.0.0.2"));
    cr_assert(expects(&callers, "fd00::7"));
    cr_assert(callers.failed); /* n4: what is known stays, by this file */
    callers_resolve(&callers, &topology, 0);
    cr_assert(expects(&callers, "127.0.0.1") || expects(&callers, "::1"));
    cr_assert(not(expects(&callers, "10.0.0.1"))); /* itself */
    cr_assert(not(expects(&callers, "10.0.0.3")));
    cr_assert(not(expects(&callers, "fd00::8")));
    const struct sgp_topology smaller = {.node_count = 2, .nodes = nodes};
    callers_resolve(&callers, &smaller, 0);
    while (callers.resolving) /* a name of the former file */
        (void)uv_run(&loop, UV_RUN_ONCE);
    cr_assert(expects(&callers, "10.0.0.2"));
    cr_assert(not(expects(&callers, "fd00::7")));
    callers_close(&callers);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    cr_assert(zero(int, uv_loop_close(&loop)));
    callers_finish(&callers);
}

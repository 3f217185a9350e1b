/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's links alone: shares in frames, read into their final place, summed, looked through for
 * what is not finite, and acknowledged; nothing is trained, published or absorbed. With BENCH_CIPHERED in the environment they
 * are ciphered; the handshake is not counted. */
#include "net/link.h"
#include "ring.h"

#include "sgp/buffer.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct exchange {
    const struct ring_node *node;
    uv_loop_t loop;
    struct link *out[RING_HOPS_MAX];
    struct link *in[RING_HOPS_MAX];
    float *memory; /* what is given, then what is taken, by hop */
    struct sgp_message share, ack;
    struct sgp_cipher_settings settings; /* key NULL: plain */
    uint32_t known;                      /* links that are ciphered */
    uint64_t round;
    uint64_t taken[RING_HOPS_MAX]; /* shares, since the start */
    uint64_t acknowledged[RING_HOPS_MAX];
    uint64_t number[RING_HOPS_MAX]; /* of the share that comes */
    struct stopwatch start, figures;
};

static void give(struct exchange *exchange)
{
    if (exchange->round == exchange->node->warmup)
        exchange->start = stopwatch_now();
    exchange->share.share.number = exchange->round + 1;
    exchange->share.share.round = (sgp_round)exchange->round;
    link_send_payload(exchange->out[exchange->round % exchange->node->hops], &exchange->share,
        exchange->memory, (struct sgp_codec){.compressor = SGP_COMPRESSOR_NONE});
}

/* A neighbour may be a round ahead, so what counts is how many of a hop are there. */
static void go_on(struct exchange *exchange)
{
    const struct ring_node *node = exchange->node;
    uint64_t rounds = node->warmup + node->rounds;
    uint64_t hop = exchange->round % node->hops;
    uint64_t wanted = exchange->round / node->hops + 1;
    if (exchange->round == rounds || exchange->taken[hop] < wanted ||
        exchange->acknowledged[hop] < wanted)
        return;
    exchange->round++;
    if (exchange->round < rounds) {
        give(exchange);
        return;
    }
    exchange->figures = stopwatch_since(exchange->start, node->rounds);
    uv_stop(&exchange->loop);
}

static uint32_t hop_of(struct link *const *links, const struct link *link)
{
    uint32_t hop = 0;
    while (links[hop] != link)
        hop++;
    return hop;
}

static void on_message(struct link *link, const struct sgp_message *message)
{
    struct exchange *exchange = link->context;
    if (message->type == SGP_SHARE) {
        uint64_t hop = hop_of(exchange->in, link);
        exchange->number[hop] = message->share.number;
        link_receive(link, exchange->memory + (1 + hop) * exchange->node->bytes / sizeof(float));
        return;
    }
    exchange->acknowledged[hop_of(exchange->out, link)]++;
    go_on(exchange);
}

static void on_payload(struct link *link, int code)
{
    struct exchange *exchange = link->context;
    if (code != 0)
        ring_fail("a share came damaged");
    exchange->ack.ack.number = exchange->number[hop_of(exchange->in, link)];
    link_send(link, &exchange->ack);
    exchange->taken[hop_of(exchange->in, link)]++;
    go_on(exchange);
}

static void on_heard(struct link *link)
{
    (void)link;
}

/* A neighbour that has all its rounds leaves, and may be ahead by as many rounds as there are hops. */
static void on_failed(struct link *link, int code, const char *text)
{
    const struct exchange *exchange = link->context;
    const struct ring_node *node = exchange->node;
    if (code == SGP_E_CLOSED && exchange->round + node->hops >= node->warmup + node->rounds)
        return;
    (void)fprintf(stderr, "transport: %s\n", text);
    exit(1);
}

static const char *object_to_nobody(void *context, const char *hash)
{
    (void)context;
    (void)hash;
    return NULL;
}

static void make_key(struct sgp_cipher_settings *settings)
{
    char path[] = "/tmp/sgp-bench-XXXXXX", hash[SGP_KEY_BYTES];
    int descriptor = mkstemp(path);
    if (descriptor < 0 || close(descriptor) < 0 || unlink(path) < 0 ||
        sgp_key_generate(path, NULL, hash) < 0 || sgp_key_read(path, NULL, &settings->key) < 0 ||
        unlink(path) < 0)
        ring_fail("key");
    settings->objection = object_to_nobody;
}

static void cipher(struct link *link, bool dials)
{
    struct exchange *exchange = link->context;
    struct sgp_cipher_settings settings = exchange->settings;
    settings.dials = dials;
    if (settings.key != NULL && link_cipher(link, &settings) < 0)
        ring_fail("cipher");
}

static void on_first(struct link *link, uint8_t byte)
{
    (void)byte;
    if (link->cipher == NULL)
        cipher(link, false);
}

static void on_ciphered(struct link *link)
{
    struct exchange *exchange = link->context;
    if (++exchange->known == 2 * exchange->node->hops)
        give(exchange);
}

static const struct link_events events = {.first = on_first,
    .ciphered = on_ciphered,
    .message = on_message,
    .payload = on_payload,
    .heard = on_heard,
    .failed = on_failed,
    .freed = on_heard};

static struct link *open_link(struct exchange *exchange, int descriptor, bool dials)
{
    struct link *link = link_create(&exchange->loop, &events, exchange);
    if (link == NULL || uv_tcp_open(&link->tcp, descriptor) < 0)
        ring_fail("link");
    if (dials)
        cipher(link, true);
    if (link_start(link) < 0)
        ring_fail("link");
    return link;
}

static struct stopwatch run(const struct ring_node *node)
{
    struct exchange exchange = {.node = node};
    uint64_t floats = node->bytes / sizeof(float) * (1 + node->hops);
    if (sgp_vector_create(floats, &exchange.memory) < 0)
        ring_fail("memory");
    ring_fill(exchange.memory, floats);
    struct sgp_pulse pulse = {.state = SGP_NODE_TRAINING,
        .next_round = SGP_ROUND_NONE,
        .ends = 1,
        .stop = SGP_ROUND_NONE};
    exchange.ack =
        (struct sgp_message){.type = SGP_ACK, .pulse = pulse, .ack = {.reason = SGP_REASON_NONE}};
    exchange.share = (struct sgp_message){.type = SGP_SHARE,
        .pulse = pulse,
        .share = {.fraction = 0.5,
            .weight = 0.5,
            .slice = {.count = node->bytes / sizeof(float)},
            .payload_bytes = node->bytes}};
    if (getenv("BENCH_CIPHERED") != NULL)
        make_key(&exchange.settings);
    if (uv_loop_init(&exchange.loop) < 0)
        ring_fail("loop");
    for (uint32_t h = 0; h < node->hops; h++) {
        exchange.out[h] = open_link(&exchange, node->out[h], true);
        exchange.in[h] = open_link(&exchange, node->in[h], false);
    }
    if (exchange.settings.key == NULL)
        give(&exchange);
    (void)uv_run(&exchange.loop, UV_RUN_DEFAULT);
    return exchange.figures;
}

int main(int count, char **arguments)
{
    return ring_main(count, arguments, run);
}

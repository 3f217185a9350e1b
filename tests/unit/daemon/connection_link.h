/* SPDX-License-Identifier: Apache-2.0 */
/* A link over a socket pair, whose other end is the test, and what the link tells of messages and payloads. */
#ifndef CONNECTION_LINK_H
#define CONNECTION_LINK_H

#include "net/listener.h"

#include "sgp/codec.h"
#include "sgp/kernels.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PARAMETERS (1u << 20) /* 4 MiB, in 4 chunks: more than a socket takes */

static __attribute__((unused)) float payload[PARAMETERS], came[PARAMETERS];
static __attribute__((
    unused)) enum sgp_message_type heard; /* the last message that the owner was told of, or 0 */
static __attribute__((unused)) uint64_t messages, payloads; /* since the link was made, and */
static __attribute__((unused)) uint64_t ended; /* with which of these it is closed; 0: it is not */
static __attribute__((unused)) int failure;
static __attribute__((unused)) char failure_text[128];

/* What x is folded from, and how; NULL: shares are not folded. */
static __attribute__((unused)) float source[PARAMETERS];
static __attribute__((unused)) struct sgp_fold_work *fold;
static __attribute__((unused)) bool late;        /* only when some of it has come */
static __attribute__((unused)) int payload_code; /* of the last payload */

static __attribute__((unused)) void on_message(struct link *link, const struct sgp_message *message)
{
    heard = message->type;
    if (message->type == SGP_SHARE)
        link_receive(link, came);
    if (message->type == SGP_SHARE && fold != NULL && !late)
        link_fold(link, fold);
    if (++messages == ended)
        link_close(link, NULL);
}

static __attribute__((unused)) void on_payload(struct link *link, int code)
{
    (void)link;
    payload_code = code;
    payloads++;
}

static __attribute__((unused)) void on_failed(struct link *link, int code, const char *text)
{
    (void)link;
    failure = code;
    (void)snprintf(failure_text, sizeof failure_text, "%s", text);
}

static __attribute__((unused)) const struct link_events events = {
    .message = on_message, .payload = on_payload, .failed = on_failed};

static __attribute__((unused)) const struct sgp_pulse pulse = {
    .state = SGP_NODE_TRAINING, .next_round = SGP_ROUND_NONE, .ends = 100, .stop = SGP_ROUND_NONE};

static __attribute__((unused)) struct sgp_message acknowledgement(enum sgp_reason reason)
{
    return (struct sgp_message){
        .type = SGP_ACK, .pulse = pulse, .ack = {.number = 1, .reason = reason}};
}

static __attribute__((unused)) void say(int peer, struct sgp_message message)
{
    uint8_t frame[SGP_WIRE_FRAME_MAX];
    size_t bytes;
    cr_assert(zero(int, sgp_wire_encode(&message, frame, sizeof frame, &bytes)));
    cr_assert(eq(sz, (size_t)write(peer, frame, bytes), bytes));
}

static __attribute__((unused)) struct link *linked(uv_loop_t *loop, int *ret_peer)
{
    int ends[2];
    heard = 0;
    failure = 0;
    messages = payloads = ended = 0;
    payload_code = 0;
    cr_assert(zero(int, uv_loop_init(loop)));
    cr_assert(zero(int, socketpair(AF_UNIX, SOCK_STREAM, 0, ends)));
    struct link *link = link_create(loop, &events, NULL);
    cr_assert(zero(int, uv_tcp_open(&link->tcp, ends[0])));
    cr_assert(zero(int, link_start(link)));
    *ret_peer = ends[1];
    return link;
}

static __attribute__((unused)) struct sgp_message share_of(uint32_t parameters)
{
    return (struct sgp_message){.type = SGP_SHARE,
        .pulse = pulse,
        .share = {.number = 1,
            .fraction = 0.5,
            .weight = 0.5,
            .slice = {.count = parameters},
            .payload_bytes = 4 * (uint64_t)parameters}};
}

static __attribute__((unused)) const struct sgp_codec plain = {.compressor = SGP_COMPRESSOR_NONE};
static __attribute__((unused)) const struct sgp_codec halves = {.compressor = SGP_COMPRESSOR_FP16};

/* `link` NULL: it has closed itself. */
static __attribute__((unused)) void close_all(uv_loop_t *loop, struct link *link, int peer)
{
    if (link != NULL)
        link_close(link, NULL);
    (void)uv_run(loop, UV_RUN_DEFAULT);
    cr_assert(zero(int, uv_loop_close(loop)));
    (void)close(peer);
}

#define SMALL 100u   /* parameters that fit into one read with all else */
#define LARGE 20000u /* and that do not */
#define HUGE 200000u /* and of which the same is no small part of a read */

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* A sample of each message, with fields at their limits, and what encodes, decodes and compares it. */
#ifndef WIRE_SAMPLES_H
#define WIRE_SAMPLES_H

#include "sgp/random.h"
#include "sgp/wire.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <float.h>
#include <math.h>
#include <string.h>

#define NAME_63 "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"

#define QUIET                                                                                      \
    {                                                                                              \
        .state = SGP_NODE_TRAINING, .round = 5, .next_round = 6, .ends = 10,                       \
        .stop = SGP_ROUND_NONE                                                                     \
    }
static __attribute__((unused)) const struct sgp_pulse quiet = QUIET;

/* Every field at its limit. */
static __attribute__((unused)) const struct sgp_pulse extreme = {.state = SGP_NODE_DRAINING,
    .computing = true,
    .round = SGP_ROUND_MAX,
    .next_round = SGP_ROUND_NONE,
    .ends = SGP_ROUND_MAX,
    .stop = SGP_ROUND_MAX,
    .epoch = {.number = UINT64_MAX, .start = SGP_ROUND_MAX, .topology = UINT64_MAX},
    .then_round = SGP_ROUND_MAX};

static __attribute__((unused)) const struct sgp_fingerprint print = {.shape = UINT64_MAX,
    .loss = 0,
    .classes = 1,
    .scaling = UINT64_C(1) << 63,
    .method = UINT32_MAX,
    .topology = 0x123456789abcdef0,
    .learning_rate = DBL_MAX,
    .batch = UINT32_MAX,
    .data = UINT64_MAX,
    .run = UINT64_MAX};

static __attribute__((unused)) char goodbye_longest[SGP_GOODBYE_BYTES];
static __attribute__((unused)) char piece_longest[SGP_BULLETIN_PIECE_MAX + 1];
static __attribute__((unused)) char row_longest[SGP_ROW_TEXT_BYTES];
static __attribute__((unused)) char address_longest[SGP_JOIN_ADDRESS_BYTES];
_Static_assert(SGP_JOINED_PIECE_MAX == SGP_BULLETIN_PIECE_MAX, "both have the longest piece");

enum { sample_count = 32 };

/* Samples 0 to 3: both greetings, at their largest and their smallest. */
static __attribute__((unused)) struct sgp_message sample_greeting(int which)
{
    switch (which) {
    case 0:
        return (struct sgp_message){.type = SGP_HELLO,
            .pulse = extreme,
            .hello = {.source = NAME_63,
                .target = "n",
                .incarnation = UINT64_MAX,
                .parameters = SGP_PARAMETERS_MAX,
                .fingerprint = print,
                .target_incarnation = UINT64_MAX,
                .acknowledged = UINT64_MAX - 1}};
    case 1:
        return (struct sgp_message){.type = SGP_HELLO,
            .pulse = quiet,
            .hello = {.source = "n\xc3\xa4 \xe2\x82\xac \xf0\x9f\x90\xa2",
                .target = NAME_63,
                .incarnation = 1,
                .parameters = 1}};
    case 2:
        return (struct sgp_message){.type = SGP_WELCOME,
            .pulse = extreme,
            .welcome = {.target = NAME_63,
                .incarnation = UINT64_MAX,
                .accepted = UINT64_MAX,
                .fingerprint = print}};
    default:
        return (struct sgp_message){
            .type = SGP_WELCOME, .pulse = quiet, .welcome = {.target = "n1", .incarnation = 1}};
    }
}

/* Samples 7 to 9, 14 and 20: those with values behind them. */
static __attribute__((unused)) struct sgp_message sample_payload(int which)
{
    switch (which) {
    case 7:
        return (struct sgp_message){.type = SGP_SHARE,
            .pulse = quiet,
            .share = {.number = UINT64_MAX,
                .round = SGP_ROUND_MAX,
                .fraction = 1,
                .weight = DBL_MAX,
                .slice = {.count = SGP_PARAMETERS_MAX},
                .payload_bytes = 4 * SGP_PARAMETERS_MAX}};
    case 8:
        return (struct sgp_message){.type = SGP_SHARE,
            .pulse = quiet,
            .share = {.number = 1, .slice = {.first = SGP_PARAMETERS_MAX - 7, .count = 7}}};
    case 9:
        return (struct sgp_message){.type = SGP_SHARE,
            .pulse = quiet,
            .share = {.number = 2,
                .round = 5,
                .fraction = 0x1p-1074,
                .weight = 1.0 / 3,
                .slice = {.first = 2, .count = 3},
                .payload_bytes = 12,
                .bequest = 1.5,
                .asks = true}};
    case 14:
        return (struct sgp_message){.type = SGP_ESTIMATE,
            .pulse = quiet,
            .estimate = {.round = SGP_ROUND_MAX,
                .weight = DBL_MIN,
                .payload_bytes = 4 * SGP_PARAMETERS_MAX,
                .former = true,
                .untrained = true}};
    default:
        return (struct sgp_message){.type = SGP_ESTIMATE,
            .pulse = quiet,
            .estimate = {.round = 7,
                .weight = 1,
                .payload_bytes = 16,
                .slice = {.first = SGP_PARAMETERS_MAX - 7, .count = 7},
                .coding = SGP_CODING_BLOCKS,
                .since = SGP_ROUND_MAX}};
    }
}

/* Samples 15 to 18: what one says that leaves, or calls. */
static __attribute__((unused)) struct sgp_message sample_of_leaving(int which)
{
    switch (which) {
    case 15:
        return (struct sgp_message){.type = SGP_BEQUEATH,
            .pulse = quiet,
            .bequeath = {.kind = SGP_BEQUEATH_DEBT,
                .source = NAME_63,
                .target = "n",
                .source_incarnation = 1,
                .target_incarnation = UINT64_MAX,
                .number = 7,
                .weight = 1.0 / 3}};
    case 16:
        return (struct sgp_message){.type = SGP_INQUIRE,
            .pulse = quiet,
            .inquire = {.source = NAME_63,
                .target = NAME_63,
                .source_incarnation = UINT64_MAX,
                .target_incarnation = 1,
                .number = UINT64_MAX}};
    case 17:
        return (struct sgp_message){.type = SGP_ANSWER,
            .pulse = quiet,
            .answer = {.known = true, .incarnation = UINT64_MAX, .number = 3}};
    default:
        return (struct sgp_message){
            .type = SGP_CALL, .pulse = quiet, .call = {.source = NAME_63, .target = "n"}};
    }
}

/* Samples 23 to 25: the longest message, a bulletin without a text, and a question for bulletins. */
static __attribute__((unused)) struct sgp_message sample_of_bulletins(int which)
{
    switch (which) {
    case 23:
        return (struct sgp_message){.type = SGP_BULLETIN,
            .pulse = extreme,
            .bulletin = {.kind = SGP_BULLETIN_KINDS,
                .author = NAME_63,
                .stamp = UINT64_MAX,
                .digest = UINT64_MAX,
                .bytes = SGP_BULLETIN_MAX,
                .first = SGP_BULLETIN_MAX - SGP_BULLETIN_PIECE_MAX,
                .text = piece_longest}};
    case 24:
        return (struct sgp_message){.type = SGP_BULLETIN,
            .pulse = quiet,
            .bulletin = {.kind = SGP_BULLETIN_VOTE, .author = "n", .text = ""}};
    default:
        return (struct sgp_message){.type = SGP_PULL,
            .pulse = extreme,
            .pull = {.source = NAME_63,
                .target = NAME_63,
                .heads = SGP_PULL_HEADS_MAX,
                .subject = UINT32_MAX,
                .wish = UINT64_MAX,
                .wish_ms = SGP_WISH_MS_MAX}};
    }
}

/* Samples 26 to 28: the rows of a fleet. */
static __attribute__((unused)) struct sgp_message sample_of_rows(int which)
{
    static const struct sgp_summary few = {.wants = true};
    static struct sgp_summary many = {.wants = true};
    struct sgp_message message = {
        .type = SGP_SUMMARY, .pulse = extreme, .summary = which == 26 ? &many : &few};
    for (uint32_t k = 0; k < SGP_SUMMARY_ENTRIES; k++)
        many.nodes[k] = many.versions[k] = UINT64_MAX - k;
    if (which == 27)
        message.pulse = quiet;
    if (which == 28)
        message = (struct sgp_message){.type = SGP_ROW,
            .pulse = extreme,
            .row = {.author = NAME_63,
                .version = UINT64_MAX,
                .text = row_longest,
                .key = "12345678901234567890123456789012345678901234",
                .signature = "1234567890123456789012345678901234567890123456789012345678901234"
                             "567890123456789012345678",
                .age_ms = SGP_ROW_AGE_MAX}};
    return message;
}

/* Samples 29 to 31: a machine joins. */
static __attribute__((unused)) struct sgp_message sample_of_joining(int which)
{
    if (which == 29)
        return (struct sgp_message){.type = SGP_JOIN,
            .pulse = extreme,
            .join = {.fleet = NAME_63,
                .name = NAME_63,
                .address = address_longest,
                .number = UINT64_MAX,
                .proof = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
                .first = SGP_JOINED_MAX}};
    if (which == 30)
        return (struct sgp_message){.type = SGP_JOINED,
            .pulse = extreme,
            .joined = {.verdict = SGP_JOIN_ACCEPTED,
                .bytes = SGP_JOINED_MAX,
                .split = SGP_JOINED_MAX,
                .first = SGP_JOINED_MAX - SGP_JOINED_PIECE_MAX,
                .text = piece_longest}};
    return (struct sgp_message){
        .type = SGP_JOINED, .pulse = quiet, .joined = {.verdict = SGP_JOIN_VERDICTS, .text = ""}};
}

/* A sample of every message; strings are static. */
static __attribute__((unused)) struct sgp_message sample(int which)
{
    memset(goodbye_longest, 'x', sizeof goodbye_longest - 1);
    memset(piece_longest, 'x', sizeof piece_longest - 1);
    memset(row_longest, 'x', sizeof row_longest - 1);
    memset(address_longest, 'x', sizeof address_longest - 1);
    if (which < 4)
        return sample_greeting(which);
    if ((which >= 7 && which <= 9) || which == 14 || which == 20)
        return sample_payload(which);
    if (which >= 15 && which <= 18)
        return sample_of_leaving(which);
    if (which >= 29)
        return sample_of_joining(which);
    if (which >= 26)
        return sample_of_rows(which);
    if (which >= 23)
        return sample_of_bulletins(which);
    switch (which) {
    case 4: {
        struct sgp_beat ended = {.mixes = SGP_ROUND_MAX, .ended = true, .empty = true};
        for (uint32_t k = 0; k < SGP_SKETCH_VALUES; k++)
            ended.sketch.values[k] = k % 2 == 0 ? -FLT_MAX : FLT_TRUE_MIN;
        return (struct sgp_message){.type = SGP_BEAT, .pulse = extreme, .beat = ended};
    }
    case 5:
        return (struct sgp_message){.type = SGP_BEAT, .pulse = {.state = SGP_NODE_JOINING}};
    case 6:
        return (struct sgp_message){
            .type = SGP_CREDIT, .pulse = quiet, .credit = {.round = SGP_ROUND_MAX}};
    case 10:
        return (struct sgp_message){.type = SGP_ACK,
            .pulse = quiet,
            .ack = {.number = UINT64_MAX, .reason = SGP_REASON_FORGOT - 1}};
    case 11:
        return (struct sgp_message){.type = SGP_GOODBYE,
            .pulse = quiet,
            .goodbye = {.reason = SGP_REASON_NONE, .text = ""}};
    case 13:
        return (struct sgp_message){.type = SGP_ASK,
            .pulse = quiet,
            .ask = {.wants = true, .newer = 25, .holds = true, .digest = UINT64_MAX}};
    case 21:
        return (struct sgp_message){.type = SGP_FACT,
            .pulse = extreme,
            .fact = {.kind = SGP_FACT_AGREED,
                .number = UINT64_MAX,
                .members = UINT64_MAX,
                .count = UINT32_MAX,
                .author = NAME_63,
                .text = goodbye_longest}};
    case 22:
        return (struct sgp_message){.type = SGP_LAYOUT,
            .pulse = quiet,
            .layout = {
                .index = SGP_LAYOUT_ENTRIES - 1, .before = UINT64_MAX, .text = goodbye_longest}};
    case 19:
        return (struct sgp_message){.type = SGP_STATEMENT,
            .pulse = quiet,
            .statement = {.kind = SGP_STATEMENT_STOP,
                .round = SGP_ROUND_MAX,
                .author = NAME_63,
                .key = NAME_63,
                .signature = goodbye_longest}};
    default:
        return (struct sgp_message){.type = SGP_GOODBYE,
            .pulse = quiet,
            .goodbye = {.reason = SGP_REASON_LEAVING, .text = goodbye_longest}};
    }
}

static __attribute__((unused)) size_t encode(
    const struct sgp_message *message, uint8_t frame[SGP_WIRE_FRAME_MAX])
{
    size_t bytes = 0;
    cr_assert(zero(int, sgp_wire_encode(message, frame, SGP_WIRE_FRAME_MAX, &bytes)));
    return bytes;
}

/* Header and body of a whole frame. */
static __attribute__((unused)) int decode(const uint8_t *frame, struct sgp_wire_text *text,
    struct sgp_message *ret_message, struct sgp_error *error)
{
    struct sgp_wire_header header;
    int code = sgp_wire_header_decode(frame, &header, error);
    if (code == 0 && header.type == SGP_WIRE_CHUNK)
        return SGP_E_FRAME;
    return code == 0 ? sgp_wire_body_decode(
                           &header, frame + SGP_WIRE_HEADER_BYTES, text, ret_message, error)
                     : code;
}

/* After a body was changed on purpose: its checksum and length made good again. */
static __attribute__((unused)) struct sgp_wire_header header_of(
    enum sgp_message_type type, const uint8_t *body, size_t count)
{
    return (struct sgp_wire_header){.version = SGP_WIRE_VERSION,
        .type = (uint16_t)type,
        .body_bytes = (uint32_t)count,
        .checksum = sgp_wire_checksum(body, count)};
}

static __attribute__((unused)) int decode_body(enum sgp_message_type type, const uint8_t *body,
    size_t count, struct sgp_message *ret_message, struct sgp_error *error)
{
    static struct sgp_wire_text text;
    struct sgp_wire_header header = header_of(type, body, count);
    return sgp_wire_body_decode(&header, body, &text, ret_message, error);
}

static __attribute__((unused)) void expect_equal(
    const struct sgp_message *a, const struct sgp_message *b)
{
    uint8_t x[SGP_WIRE_FRAME_MAX], y[SGP_WIRE_FRAME_MAX];
    size_t bytes = encode(a, x);
    cr_assert(eq(sz, bytes, encode(b, y)));
    cr_assert(zero(int, memcmp(x, y, bytes)));
}

static __attribute__((unused)) struct sgp_message coded_sample(
    enum sgp_coding coding, uint64_t payload_bytes)
{
    return (struct sgp_message){.type = SGP_SHARE,
        .pulse = quiet,
        .share = {.number = 1,
            .fraction = 0.5,
            .weight = 0.5,
            .slice = {.count = 10},
            .payload_bytes = payload_bytes,
            .coding = coding}};
}

#endif

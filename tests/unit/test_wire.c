/* SPDX-License-Identifier: Apache-2.0 */
/* The wire module: every message there and back, golden bytes, and nothing damaged let in. */
#include "sgp/random.h"
#include "sgp/wire.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <float.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED
#endif
#endif

#define NAME_63 "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"

#define QUIET                                                                                      \
    {                                                                                              \
        .state = SGP_NODE_TRAINING, .round = 5, .next_round = 6, .ends = 10,                       \
        .stop = SGP_ROUND_NONE                                                                     \
    }
static const struct sgp_pulse quiet = QUIET;

/* Every field at its limit. */
static const struct sgp_pulse extreme = {.state = SGP_NODE_DRAINING,
    .computing = true,
    .round = SGP_ROUND_MAX,
    .next_round = SGP_ROUND_NONE,
    .ends = SGP_ROUND_MAX,
    .stop = SGP_ROUND_MAX,
    .epoch = {.number = UINT64_MAX, .start = SGP_ROUND_MAX, .topology = UINT64_MAX},
    .then_round = SGP_ROUND_MAX};

static const struct sgp_fingerprint print = {.shape = UINT64_MAX,
    .loss = 0,
    .classes = 1,
    .scaling = UINT64_C(1) << 63,
    .method = UINT32_MAX,
    .topology = 0x123456789abcdef0,
    .learning_rate = DBL_MAX,
    .batch = UINT32_MAX,
    .data = UINT64_MAX,
    .run = UINT64_MAX};

static char goodbye_longest[SGP_GOODBYE_BYTES];
static char piece_longest[SGP_BULLETIN_PIECE_MAX + 1];

enum { sample_count = 26 };

/* Samples 0 to 3: both greetings, at their largest and their smallest. */
static struct sgp_message sample_greeting(int which)
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
static struct sgp_message sample_payload(int which)
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
                .payload_bytes = 4 * SGP_PARAMETERS_MAX}};
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
static struct sgp_message sample_of_leaving(int which)
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
static struct sgp_message sample_of_bulletins(int which)
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

/* A sample of every message; strings are static. */
static struct sgp_message sample(int which)
{
    memset(goodbye_longest, 'x', sizeof goodbye_longest - 1);
    memset(piece_longest, 'x', sizeof piece_longest - 1);
    if (which < 4)
        return sample_greeting(which);
    if ((which >= 7 && which <= 9) || which == 14 || which == 20)
        return sample_payload(which);
    if (which >= 15 && which <= 18)
        return sample_of_leaving(which);
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
        return (struct sgp_message){
            .type = SGP_ASK, .pulse = quiet, .ask = {.wants = true, .newer = 25, .holds = true}};
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

static size_t encode(const struct sgp_message *message, uint8_t frame[SGP_WIRE_FRAME_MAX])
{
    size_t bytes = 0;
    cr_assert(zero(int, sgp_wire_encode(message, frame, SGP_WIRE_FRAME_MAX, &bytes)));
    return bytes;
}

/* Header and body of a whole frame. */
static int decode(const uint8_t *frame, struct sgp_wire_text *text, struct sgp_message *ret_message,
    struct sgp_error *error)
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
static struct sgp_wire_header header_of(
    enum sgp_message_type type, const uint8_t *body, size_t count)
{
    return (struct sgp_wire_header){.version = SGP_WIRE_VERSION,
        .type = (uint16_t)type,
        .body_bytes = (uint32_t)count,
        .checksum = sgp_wire_checksum(body, count)};
}

static int decode_body(enum sgp_message_type type, const uint8_t *body, size_t count,
    struct sgp_message *ret_message, struct sgp_error *error)
{
    static struct sgp_wire_text text;
    struct sgp_wire_header header = header_of(type, body, count);
    return sgp_wire_body_decode(&header, body, &text, ret_message, error);
}

static void expect_equal(const struct sgp_message *a, const struct sgp_message *b)
{
    uint8_t x[SGP_WIRE_FRAME_MAX], y[SGP_WIRE_FRAME_MAX];
    size_t bytes = encode(a, x);
    cr_assert(eq(sz, bytes, encode(b, y)));
    cr_assert(zero(int, memcmp(x, y, bytes)));
}

Test(wire, every_message_comes_back_as_it_went)
{
    for (int i = 0; i < sample_count; i++) {
        uint8_t frame[SGP_WIRE_FRAME_MAX];
        struct sgp_message message = sample(i), back;
        struct sgp_wire_text text;
        struct sgp_error error = {0};
        encode(&message, frame);
        cr_assert(zero(int, decode(frame, &text, &back, &error)), "sample %d: %s", i, error.text);
        cr_assert(eq(int, (int)back.type, (int)message.type));
        expect_equal(&message, &back);
    }
}

/* expect_equal above compares bytes; here the values themselves, field by field. */
Test(wire, values_survive_exactly)
{
    uint8_t frame[SGP_WIRE_FRAME_MAX];
    struct sgp_message message = sample(9), back;
    struct sgp_wire_text text;
    encode(&message, frame);
    cr_assert(zero(int, decode(frame, &text, &back, NULL)));
    cr_assert(eq(int, (int)back.pulse.state, SGP_NODE_TRAINING));
    cr_assert(not(back.pulse.computing));
    cr_assert(eq(i64, back.pulse.round, 5));
    cr_assert(eq(i64, back.pulse.next_round, 6));
    cr_assert(eq(i64, back.pulse.ends, 10));
    cr_assert(eq(i64, back.pulse.stop, SGP_ROUND_NONE));
    cr_assert(eq(u64, back.share.number, 2));
    cr_assert(eq(i64, back.share.round, 5));
    cr_assert(eq(dbl, back.share.fraction, 0x1p-1074));
    cr_assert(eq(dbl, back.share.weight, 1.0 / 3));
    cr_assert(eq(u64, back.share.slice.first, 2));
    cr_assert(eq(u64, back.share.slice.count, 3));
    cr_assert(eq(u64, back.share.payload_bytes, 12));
    cr_assert(back.share.asks);
    cr_assert(eq(dbl, back.share.bequest, 1.5));

    message = sample(0);
    encode(&message, frame);
    cr_assert(zero(int, decode(frame, &text, &back, NULL)));
    cr_assert(eq(str, (char *)back.hello.source, NAME_63));
    cr_assert(eq(str, (char *)back.hello.target, "n"));
    cr_assert(eq(u64, back.hello.incarnation, UINT64_MAX));
    cr_assert(eq(u64, back.hello.parameters, SGP_PARAMETERS_MAX));
    cr_assert(eq(u64, back.hello.target_incarnation, UINT64_MAX));
    cr_assert(eq(u64, back.hello.acknowledged, UINT64_MAX - 1));
    cr_assert(eq(u64, back.hello.fingerprint.shape, UINT64_MAX));
    cr_assert(eq(u64, back.hello.fingerprint.scaling, UINT64_C(1) << 63));
    cr_assert(eq(dbl, back.hello.fingerprint.learning_rate, DBL_MAX));
    cr_assert(eq(u32, back.hello.fingerprint.batch, UINT32_MAX));
    cr_assert(eq(i64, back.pulse.next_round, SGP_ROUND_NONE));
    cr_assert(back.pulse.computing);

    message = sample(13);
    encode(&message, frame);
    cr_assert(zero(int, decode(frame, &text, &back, NULL)));
    cr_assert(back.ask.wants && back.ask.holds);
    message = sample(20);
    encode(&message, frame);
    cr_assert(zero(int, decode(frame, &text, &back, NULL)));
    cr_assert(eq(int, (int)back.estimate.coding, SGP_CODING_BLOCKS));
    cr_assert(eq(i64, back.estimate.since, SGP_ROUND_MAX));

    message = sample(12);
    encode(&message, frame);
    cr_assert(zero(int, decode(frame, &text, &back, NULL)));
    cr_assert(eq(str, (char *)back.goodbye.text, goodbye_longest));
    cr_assert(eq(int, (int)back.goodbye.reason, SGP_REASON_LEAVING));
}

/* Bytes of version 3, written down: a change of any of them is another version. They were made by a
 * script of another language, the checksums with xxhsum. */
#define GOLDEN_PRINT                                                                               \
    {                                                                                              \
        .shape = UINT64_C(1) << 40, .loss = 2, .classes = 3, .scaling = 4, .method = 1,            \
        .topology = 5, .learning_rate = 0.05, .batch = 32, .data = 6                               \
    }

static const struct {
    struct sgp_message message;
    const char *hex;
} golden[] = {
    {{.type = SGP_HELLO,
         .pulse = QUIET,
         .hello = {.source = "n0",
             .target = "n1",
             .incarnation = 77,
             .parameters = 535818,
             .fingerprint = GOLDEN_PRINT,
             .target_incarnation = 78,
             .acknowledged = 3}},
        "9d5347500300010031000000000000000000000000000000be901b5e3bc33bb7"
        "dc001602c205060ac0a26e30a26e314dce00082d0acf00000100000000000203"
        "040105cb3fa999999999999a2006004e03"},
    {{.type = SGP_WELCOME,
         .pulse = QUIET,
         .welcome =
             {.target = "n1", .incarnation = 78, .accepted = 4, .fingerprint = GOLDEN_PRINT}},
        "9d53475003000200270000000000000000000000000000000232ffb267474281"
        "dc001202c205060ac0a26e314e04cf00000100000000000203040105cb3fa999"
        "999999999a2006"},
    {{
         .type = SGP_BEAT,
         .pulse = QUIET,
     },
        "9d53475003000300070000000000000000000000000000003602a9218576e553"
        "9602c205060ac0"},
    {{.type = SGP_CREDIT, .pulse = QUIET, .credit = {.round = 6}},
        "9d5347500300040008000000000000000000000000000000440e37fb756a6c52"
        "9702c205060ac006"},
    {{.type = SGP_SHARE,
         .pulse = QUIET,
         .share = {.number = 3,
             .round = 5,
             .fraction = 0.5,
             .weight = 0.75,
             .slice = {.count = 535818},
             .payload_bytes = 2143272,
             .bequest = 2,
             .asks = true}},
        "9d5347500300050030000000000000000000000000000000340f59ea8ac444ac"
        "9f02c205060ac00305cb3fe0000000000000cb3fe800000000000000ce00082d"
        "0ace0020b428c3cb4000000000000000"},
    {{.type = SGP_ACK, .pulse = QUIET, .ack = {.number = 3, .reason = SGP_REASON_NOT_FINITE}},
        "9d53475003000600090000000000000000000000000000000a406f06f347f5dc"
        "9802c205060ac00302"},
    {{.type = SGP_GOODBYE,
         .pulse = QUIET,
         .goodbye = {.reason = SGP_REASON_LEAVING, .text = "stopping"}},
        "9d534750030007001100000000000000000000000000000085faf2f6a55414c9"
        "9802c205060ac00fa873746f7070696e67"},
    {{.type = SGP_ASK, .pulse = QUIET, .ask = {.wants = true}},
        "9d534750030008000800000000000000000000000000000049a2f7288aa7f0e9"
        "9702c205060ac0c3"},
    {{.type = SGP_ESTIMATE,
         .pulse = QUIET,
         .estimate = {.round = 5, .weight = 0.75, .payload_bytes = 2143272}},
        "9d53475003000900160000000000000000000000000000000bf7b0bc47e34298"
        "9902c205060ac005cb3fe8000000000000ce0020b428"},
    {{.type = SGP_ESTIMATE,
         .pulse = QUIET,
         .estimate =
             {.round = 5, .weight = 1, .payload_bytes = 20, .slice = {.first = 5, .count = 5}}},
        "9d5347500300090014000000000000000000000000000000bdd023ae56f243a0"
        "9b02c205060ac005cb3ff0000000000000140505"},
    {{.type = SGP_BEQUEATH,
         .pulse = QUIET,
         .bequeath = {.kind = SGP_BEQUEATH_DEBT,
             .source = "n0",
             .target = "n1",
             .source_incarnation = 77,
             .target_incarnation = 78,
             .number = 3,
             .weight = 0.75}},
        "9d53475003000a001a0000000000000000000000000000009b0fae7ac0b14135"
        "9d02c205060ac002a26e304da26e314e03cb3fe8000000000000"},
    {{.type = SGP_INQUIRE,
         .pulse = QUIET,
         .inquire = {.source = "n0",
             .target = "n1",
             .source_incarnation = 77,
             .target_incarnation = 78,
             .number = 3}},
        "9d53475003000b00100000000000000000000000000000001ec01c64b92fb2c8"
        "9b02c205060ac0a26e304da26e314e03"},
    {{.type = SGP_ANSWER,
         .pulse = QUIET,
         .answer = {.known = true, .incarnation = 78, .number = 4}},
        "9d53475003000c000a000000000000000000000000000000d3a610893401a6df"
        "9902c205060ac0c34e04"},
    {{.type = SGP_CALL, .pulse = QUIET, .call = {.source = "n0", .target = "n1"}},
        "9d53475003000d000d00000000000000000000000000000049c864e6684689bf"
        "9802c205060ac0a26e30a26e31"},
    {{.type = SGP_STATEMENT,
         .pulse = QUIET,
         .statement = {.kind = SGP_STATEMENT_STOP,
             .round = 7,
             .author = "n0",
             .key = "k",
             .signature = "s"}},
        "9d53475003000e0010000000000000000000000000000000ab862817f2910b79"
        "9b02c205060ac00207a26e30a16ba173"},
    {{.type = SGP_FACT,
         .pulse = QUIET,
         .fact = {.kind = SGP_FACT_TOLD,
             .number = 3,
             .members = 0x1234,
             .author = "n0",
             .text = "mean"}},
        "9d53475003000f0015000000000000000000000000000000824bcdb46868e8c5"
        "9c02c205060ac00103cd123400a26e30a46d65616e"},
    {{.type = SGP_LAYOUT, .pulse = QUIET, .layout = {.index = 2, .before = 0x1234, .text = "b"}},
        "9d534750030010000d0000000000000000000000000000001628d698f8815966"
        "9902c205060ac002cd1234a162"},
    {{.type = SGP_BULLETIN,
         .pulse = QUIET,
         .bulletin = {.kind = SGP_BULLETIN_FIGURES,
             .author = "n0",
             .stamp = 7,
             .digest = 0x1234,
             .bytes = 9,
             .first = 4,
             .text = "rows"}},
        "9d5347500300110016000000000000000000000000000000a9f466b94b15b3a2"
        "9d02c205060ac001a26e3007cd12340904a4726f7773"},
    {{.type = SGP_PULL, .pulse = QUIET, .pull = {.source = "n0", .target = "n1", .heads = 3}},
        "9d534750030012000e000000000000000000000000000000febb1c8455857109"
        "9902c205060ac0a26e30a26e3103"},
};

static void expect_bytes(const struct sgp_message *message, const char *hex)
{
    uint8_t frame[SGP_WIRE_FRAME_MAX];
    size_t bytes = encode(message, frame);
    char text[2 * SGP_WIRE_FRAME_MAX + 1];
    for (size_t i = 0; i < bytes; i++)
        (void)snprintf(text + 2 * i, 3, "%02x", frame[i]);
    cr_assert(eq(str, text, (char *)hex));
}

Test(wire, frames_are_as_written_down)
{
    for (size_t i = 0; i < sizeof golden / sizeof *golden; i++)
        expect_bytes(&golden[i].message, golden[i].hex);
}

Test(wire, a_chunk_header_is_as_written_down)
{
    uint8_t bytes[SGP_WIRE_HEADER_BYTES];
    struct sgp_wire_header header;
    sgp_wire_chunk_header(SGP_WIRE_CHUNK_MAX, 0x89abcdef, bytes);
    char text[2 * SGP_WIRE_HEADER_BYTES + 1];
    for (size_t i = 0; i < sizeof bytes; i++)
        (void)snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    cr_assert(eq(str, text, "9d5347500300ff0000000000000010000000000000000000efcdab8941019273"));
    cr_assert(zero(int, sgp_wire_header_decode(bytes, &header, NULL)));
    cr_assert(eq(u16, header.type, SGP_WIRE_CHUNK));
    cr_assert(eq(u32, header.payload_bytes, SGP_WIRE_CHUNK_MAX));
    cr_assert(eq(u32, header.checksum, 0x89abcdef));
    cr_assert(zero(u32, header.body_bytes));
}

Test(wire, an_odd_chunk_is_a_programmers_error, .signal = SIGABRT)
{
    uint8_t bytes[SGP_WIRE_HEADER_BYTES];
    sgp_wire_chunk_header(6, 0, bytes);
}

Test(wire, every_flipped_bit_of_a_frame_is_refused)
{
    for (int i = 0; i < sample_count; i++) {
        uint8_t frame[SGP_WIRE_FRAME_MAX];
        struct sgp_message message = sample(i), back;
        struct sgp_wire_text text;
        size_t bytes = encode(&message, frame);
        for (size_t bit = 0; bit < 8 * bytes; bit++) {
            frame[bit / 8] ^= (uint8_t)(1u << bit % 8);
            cr_assert(eq(int, decode(frame, &text, &back, NULL), SGP_E_FRAME), "bit %zu", bit);
            frame[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
    }
}

Test(wire, every_truncation_of_a_body_is_refused)
{
    for (int i = 0; i < sample_count; i++) {
        uint8_t frame[SGP_WIRE_FRAME_MAX];
        struct sgp_message message = sample(i), back = {.type = SGP_BEAT};
        size_t bytes = encode(&message, frame) - SGP_WIRE_HEADER_BYTES;
        for (size_t count = 0; count < bytes; count++) {
            /* On the heap, so that a sanitizer sees a read beyond the end. */
            uint8_t *body = malloc(count + 1);
            memcpy(body, frame + SGP_WIRE_HEADER_BYTES, count);
            struct sgp_error error = {0};
            cr_assert(eq(int, decode_body(message.type, body, count, &back, &error), SGP_E_FRAME));
            cr_assert(eq(int, (int)back.type, SGP_BEAT));
            cr_assert(ne(str, error.text, ""));
            free(body);
        }
    }
}

/* What a mutated body decodes to is a message that encodes, and that decodes to itself. */
Test(wire, mutated_bodies_are_refused_or_sound)
{
    struct sgp_random random;
    sgp_random_init(&random, 20, 0);
    uint32_t accepted = 0;
    for (int trial = 0; trial < 200000; trial++) {
        uint8_t frame[SGP_WIRE_FRAME_MAX], again[SGP_WIRE_FRAME_MAX];
        struct sgp_message message = sample(trial % sample_count), back, twice;
        size_t count = encode(&message, frame) - SGP_WIRE_HEADER_BYTES, bytes;
        uint8_t *body = frame + SGP_WIRE_HEADER_BYTES;
        for (uint64_t changes = 1 + sgp_random_below(&random, 4); changes > 0; changes--)
            body[sgp_random_below(&random, count)] = (uint8_t)sgp_random_next(&random);
        if (decode_body(message.type, body, count, &back, NULL) < 0)
            continue;
        accepted++;
        cr_assert(zero(int, sgp_wire_encode(&back, again, sizeof again, &bytes)));
        struct sgp_wire_text text;
        cr_assert(zero(int, decode(again, &text, &twice, NULL)));
        expect_equal(&back, &twice);
    }
    cr_assert(gt(u32, accepted, 1000));
}

static void expect_unencodable(struct sgp_message message)
{
    uint8_t frame[SGP_WIRE_FRAME_MAX];
    size_t bytes = 77;
    cr_assert(eq(int, sgp_wire_encode(&message, frame, sizeof frame, &bytes), -EINVAL));
    cr_assert(eq(sz, bytes, 77));
}

Test(wire, a_message_out_of_range_is_not_sent)
{
    struct sgp_message message;
#define WITH(which, assignment)                                                                    \
    message = sample(which);                                                                       \
    assignment;                                                                                    \
    expect_unencodable(message)
    WITH(4, message.type = 0);
    WITH(4, message.type = SGP_MESSAGE_TYPES + 1);
    WITH(4, message.pulse.state = 0);
    WITH(4, message.pulse.state = SGP_NODE_DRAINING + 1);
    WITH(4, message.pulse.round = SGP_ROUND_NONE);
    WITH(4, message.pulse.round = SGP_ROUND_MAX + 1);
    WITH(4, message.pulse.next_round = -2);
    WITH(4, message.pulse.ends = INT64_MIN);
    WITH(6, message.credit.round = SGP_ROUND_NONE);
    WITH(0, message.hello.source = "");
    WITH(0, message.hello.source = NAME_63 "n");
    WITH(0, message.hello.target = "a\nb");
    WITH(0, message.hello.incarnation = 0);
    WITH(0, message.hello.parameters = SGP_PARAMETERS_MAX + 1);
    WITH(0, message.hello.fingerprint.learning_rate = (double)NAN);
    WITH(9, message.share.number = 0);
    WITH(9, message.share.fraction = 1.0000000000000002);
    WITH(9, message.share.fraction = -0.5);
    WITH(9, message.share.weight = (double)NAN);
    WITH(9, message.share.weight = (double)INFINITY);
    WITH(9, message.share.weight = -1e-300);
    WITH(9, message.share.coding = (enum sgp_coding)99);
    WITH(9, message.share.payload_bytes = 11);
    WITH(9, message.share.payload_bytes = 0);
    WITH(8, message.share.weight = 0.5);
    WITH(8, message.share.slice.first++);
    WITH(8, message.share.payload_bytes = 28);
    WITH(20, message.estimate.slice.first++);
    WITH(20, message.estimate.slice.first = UINT64_MAX);
    WITH(20, message.estimate.slice.count = UINT64_MAX);
    WITH(20, message.estimate.slice.count = 4);
    WITH(20, message.estimate.payload_bytes = 27);
    WITH(20, message.estimate.payload_bytes = 24);
    WITH(20, message.estimate.coding = SGP_CODING_NONE);
    WITH(20, message.estimate.slice = (struct sgp_slice){0});
    WITH(20, message.estimate.since = -1);
    WITH(10, message.ack.number = 0);
    WITH(10, message.ack.reason = SGP_REASON_FORGOT);
    WITH(12, message.goodbye.reason = 0);
    WITH(12, message.goodbye.text = "\xff");
#undef WITH
}

/* A share's body with its weight replaced by other bits. The weight is the last double but one. */
static int with_weight(const uint8_t bits[8], struct sgp_error *error)
{
    uint8_t frame[SGP_WIRE_FRAME_MAX];
    struct sgp_message message = sample(9), back;
    size_t count = encode(&message, frame) - SGP_WIRE_HEADER_BYTES, at = 0;
    uint8_t *body = frame + SGP_WIRE_HEADER_BYTES;
    for (size_t i = 0; i + 9 < count; i++)
        if (body[i] == 0xcb)
            at = i + 1;
    memcpy(body + at, bits, 8);
    return decode_body(SGP_SHARE, body, count, &back, error);
}

Test(wire, weights_that_are_not_numbers_are_refused)
{
    static const uint8_t bad[][8] = {{0x7f, 0xf8}, {0x7f, 0xf0}, {0xff, 0xf0}, {0xbf, 0xf0},
        {0x7f, 0xf0, 0, 0, 0, 0, 0, 1}, {0x80, 0, 0, 0, 0, 0, 0, 1}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct sgp_error error = {0};
        cr_assert(eq(int, with_weight(bad[i], &error), SGP_E_FRAME));
        cr_assert(
            eq(str, error.text, "share frame: field 'weight' is of another type or out of range"));
    }
    cr_assert(zero(int, with_weight((const uint8_t[8]){0x3f, 0xf0}, NULL)));
}

/* What training came to; who does not tell it spends no bytes on it. */
Test(wire, a_share_tells_of_its_training)
{
    struct sgp_message message = sample(9), back;
    struct sgp_wire_text text;
    uint8_t plain[SGP_WIRE_FRAME_MAX], frame[SGP_WIRE_FRAME_MAX];
    size_t without = encode(&message, plain);
    message.share.update = UINT64_MAX;
    message.share.rate = 0.25;
    size_t with = encode(&message, frame);
    cr_assert(gt(sz, with, without + 17), "an integer of 64 bits, a float64");
    cr_assert(zero(int, decode(frame, &text, &back, NULL)));
    cr_assert(eq(u64, back.share.update, UINT64_MAX));
    cr_assert(eq(dbl, back.share.rate, 0.25));
    cr_assert(zero(int, decode(plain, &text, &back, NULL)));
    cr_assert(zero(u64, back.share.update));
    cr_assert(zero(dbl, back.share.rate));
}

Test(wire, a_fact_is_of_a_decision_and_a_layout_has_an_entry)
{
    struct sgp_message message = sample(21);
    message.fact.number = 0; /* there is no such decision */
    expect_unencodable(message);
    message.fact.number = 1;
    message.fact.text = "two\nlines";
    expect_unencodable(message);
    message = sample(22);
    message.layout.index = SGP_LAYOUT_ENTRIES; /* there is no such entry */
    expect_unencodable(message);
    message.layout.index = 0;
    message.layout.text = "";
    expect_unencodable(message);
}

Test(wire, a_piece_lies_within_its_bulletin)
{
    struct sgp_message message = sample(23), back;
    struct sgp_wire_text text;
    uint8_t frame[SGP_WIRE_FRAME_MAX];
    encode(&message, frame);
    cr_assert(zero(int, decode(frame, &text, &back, NULL)));
    cr_assert(eq(str, (char *)back.bulletin.author, NAME_63));
    cr_assert(eq(str, (char *)back.bulletin.text, piece_longest));
    cr_assert(eq(u32, back.bulletin.first, SGP_BULLETIN_MAX - SGP_BULLETIN_PIECE_MAX));
    message.bulletin.first++; /* its last byte is then beyond the text */
    expect_unencodable(message);
    message.bulletin.bytes++; /* no text is as long */
    expect_unencodable(message);
    message = sample(24);
    message.bulletin.text = "x"; /* of a text without bytes */
    expect_unencodable(message);
    message.bulletin.text = "";
    message.bulletin.kind = 0;
    expect_unencodable(message);
    message.bulletin.kind = SGP_BULLETIN_KINDS + 1;
    expect_unencodable(message);
    message = sample(25);
    message.pull.heads = SGP_PULL_HEADS_MAX + 1;
    expect_unencodable(message);
}

Test(wire, a_piece_beyond_its_bulletin_is_refused)
{
    /* kind 1 of "n": stamp 0, digest 0, 3 bytes, of them from `first` on "ab" */
#define PIECE(first)                                                                               \
    {                                                                                              \
        0x9d, 2, 0xc2, 5, 6, 10, 0xc0, 1, 0xa1, 'n', 0, 0, 3, first, 0xa2, 'a', 'b'                \
    }
    static const uint8_t within[] = PIECE(1), beyond[] = PIECE(2);
    struct sgp_message back;
    struct sgp_error error = {0};
    cr_assert(zero(int, decode_body(SGP_BULLETIN, within, sizeof within, &back, NULL)));
    cr_assert(
        eq(int, decode_body(SGP_BULLETIN, beyond, sizeof beyond, &back, &error), SGP_E_FRAME));
    cr_assert(eq(str, error.text, "bulletin frame: its piece ends beyond its text"));
}

/* A beat's body is small enough to write by hand. */
#define BEAT(...) decode_beat((const uint8_t[]){__VA_ARGS__}, sizeof((uint8_t[]){__VA_ARGS__}))
static char *decode_beat(const uint8_t *body, size_t count)
{
    static struct sgp_error error;
    struct sgp_message back;
    error = (struct sgp_error){0};
    int code = decode_body(SGP_BEAT, body, count, &back, &error);
    cr_assert(code == 0 || code == SGP_E_FRAME);
    return code == 0 ? "" : error.text;
}

Test(wire, a_body_has_exact_types)
{
    cr_assert(eq(str, BEAT(0x96, 2, 0xc2, 5, 6, 10, 0xc0), ""));
    /* Longer forms of the same integers and of the array are the same values. */
    cr_assert(eq(str, BEAT(0xdc, 0, 6, 0xcc, 2, 0xc3, 0xcd, 0, 5, 6, 10, 0xc0), ""));
#define REFUSED(field) "beat frame: field '" field "' is of another type or out of range"
#define CUT(field) "beat frame: field '" field "' is cut off or not a scalar"
#define NO_ARRAY "beat frame: the body is not an array of 6 to 64 fields"
    cr_assert(eq(str, BEAT(0x96, 0, 0xc2, 5, 6, 10, 0xc0), REFUSED("state")));
    cr_assert(eq(str, BEAT(0x96, 7, 0xc2, 5, 6, 10, 0xc0), REFUSED("state")));
    cr_assert(eq(str, BEAT(0x96, 2, 0, 5, 6, 10, 0xc0), REFUSED("computing")));
    cr_assert(eq(str, BEAT(0x96, 2, 0xc2, 0xc0, 6, 10, 0xc0), REFUSED("round")));
    cr_assert(eq(str, BEAT(0x96, 2, 0xc2, 0xa1, 'x', 6, 10, 0xc0), REFUSED("round")));
    cr_assert(
        eq(str, BEAT(0x96, 2, 0xc2, 0xcf, 0, 1, 0, 0, 0, 0, 0, 1, 6, 10, 0xc0), REFUSED("round")));
    cr_assert(eq(str, BEAT(0x96, 2, 0xc2, 5, 0xff, 10, 0xc0), CUT("next_round")));
    cr_assert(eq(str, BEAT(0x96, 2, 0xc2, 5, 0xd0, 6, 10, 0xc0), CUT("next_round")));
    cr_assert(eq(str, BEAT(0x96, 2, 0xc2, 5, 0x91, 6, 10, 0xc0), CUT("next_round")));
    cr_assert(eq(str, BEAT(0x96, 2, 0xc2, 5, 0xdd, 0x10, 0, 0, 0, 6), CUT("next_round")));
    cr_assert(eq(str, BEAT(0x96, 2, 0xc2, 5, 0x81, 6, 10, 0xc0), CUT("next_round")));
    cr_assert(eq(str, BEAT(0x96, 2, 0xc2, 5, 0xc1), CUT("next_round")));
    cr_assert(eq(str, BEAT(0x96, 2, 0xc2, 5, 0xd9, 200), CUT("next_round")));
    cr_assert(eq(str, BEAT(0x95, 2, 0xc2, 5, 6, 10), NO_ARRAY));
    cr_assert(eq(str, BEAT(0x86, 2, 0xc2, 5, 6, 10, 0xc0), NO_ARRAY));
    cr_assert(eq(str, BEAT(0xdd, 0x10, 0, 0, 0), NO_ARRAY));
    cr_assert(eq(str, BEAT(0xdc, 0xff, 0xff), NO_ARRAY));
}

Test(wire, extra_fields_are_skipped_and_trailing_bytes_are_not)
{
#define ZERO 0xcb, 0, 0, 0, 0, 0, 0, 0, 0
#define FOUR ZERO, ZERO, ZERO, ZERO
    cr_assert(eq(str,
        BEAT(0xdc, 0, 32, 2, 0xc2, 5, 6, 10, 0xc0, 0, 0xc2, 0xc2, FOUR, FOUR, FOUR, FOUR, 0, 0, 0,
            0, 7, 0xa1, 'x', 0xc3),
        ""));
    cr_assert(eq(str, BEAT(0x96, 2, 0xc2, 5, 6, 10, 0xc0, 0, 0),
        "beat frame: 2 bytes follow the last field"));
    cr_assert(eq(str,
        BEAT(0xdc, 0, 31, 2, 0xc2, 5, 6, 10, 0xc0, 0, 0xc2, 0xc2, FOUR, FOUR, FOUR, FOUR, 0, 0, 0,
            0, 7, 0x90),
        "beat frame: an extra field is cut off or not a scalar"));
}

/* Nothing but zeros may be missing, and no value that may not be 0. */
Test(wire, an_array_may_end_where_only_zeros_would_follow)
{
    uint8_t frame[SGP_WIRE_FRAME_MAX];
    struct sgp_message message = sample(9), back;
    size_t count = encode(&message, frame) - SGP_WIRE_HEADER_BYTES;
    uint8_t *body = frame + SGP_WIRE_HEADER_BYTES;
    cr_assert(eq(u8, body[0], 0x9f), "15 fields, and none of those behind");
    body[0] = 0x9e;
    cr_assert(zero(int, decode_body(SGP_SHARE, body, count - 9, &back, NULL)));
    cr_assert(back.share.asks);
    cr_assert(eq(dbl, back.share.bequest, 0));
    body[0] = 0x9d;
    cr_assert(zero(int, decode_body(SGP_SHARE, body, count - 10, &back, NULL)));
    cr_assert(not(back.share.asks));
    struct sgp_error error = {0};
    body[0] = 0x9c;
    cr_assert(eq(int, decode_body(SGP_SHARE, body, count - 11, &back, &error), SGP_E_FRAME));
    cr_assert(eq(str, error.text,
        "share frame: payload_bytes is not that of count values, or 0 for an empty share"));
    error = (struct sgp_error){0};
    body[0] = 0x96;
    cr_assert(eq(int, decode_body(SGP_SHARE, body, 7, &back, &error), SGP_E_FRAME));
    cr_assert(eq(str, error.text, "share frame: field 'number' is missing"));
    error = (struct sgp_error){0};
    cr_assert(eq(int,
        decode_body(SGP_GOODBYE, (const uint8_t *)"\x97\2\xc2\5\6\12\xc0\1", 8, &back, &error),
        SGP_E_FRAME));
    cr_assert(eq(str, error.text, "goodbye frame: field 'text' is missing"), "no text is none");
}

Test(wire, zeros_at_the_end_cost_no_bytes)
{
    uint8_t frame[SGP_WIRE_FRAME_MAX];
    struct sgp_message message = {.type = SGP_CREDIT, .pulse = quiet}, back;
    struct sgp_wire_text text;
    cr_assert(eq(sz, encode(&message, frame), SGP_WIRE_HEADER_BYTES + 7), "the pulse alone");
    cr_assert(zero(int, decode(frame, &text, &back, NULL)));
    cr_assert(zero(i64, back.credit.round));
    message.pulse.epoch.start = 1;
    cr_assert(eq(sz, encode(&message, frame), SGP_WIRE_HEADER_BYTES + 10), "what is amid is said");
    struct sgp_message silent = {.type = SGP_BEAT};
    silent.pulse.state = SGP_NODE_JOINING;
    cr_assert(eq(sz, encode(&silent, frame), SGP_WIRE_HEADER_BYTES + 7), "and the pulse always");
}

static bool name_travels(const char *name)
{
    struct sgp_message message = sample(1);
    message.hello.source = name;
    uint8_t frame[SGP_WIRE_FRAME_MAX];
    size_t bytes;
    return sgp_wire_encode(&message, frame, sizeof frame, &bytes) == 0;
}

Test(wire, names_are_printable_utf8)
{
    cr_assert(name_travels("rack 3/node-7"));
    cr_assert(name_travels("\xc2\xa0\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf"));
    static const char *const bad[] = {"a\tb", "\x7f", "\x1b[31m", "\x80", "\xc2", "\xc2\x80",
        "\xc2\x9f", "\xc0\xaf", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xe2\x82",
        "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "\xc3("};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        cr_assert(not(name_travels(bad[i])), "string %zu", i);
}

Test(wire, a_frame_that_does_not_fit_is_not_written)
{
    for (int i = 0; i < sample_count; i++) {
        struct sgp_message message = sample(i);
        uint8_t frame[SGP_WIRE_FRAME_MAX];
        size_t bytes = encode(&message, frame), unset = 77;
        for (size_t capacity = 0; capacity < bytes; capacity++)
            cr_assert(eq(int, sgp_wire_encode(&message, frame, capacity, &unset), -ENOBUFS));
        cr_assert(eq(sz, unset, 77));
        cr_assert(zero(int, sgp_wire_encode(&message, frame, bytes, &unset)));
    }
}

/* A header with one field replaced and its checksum made good again. */
static int altered(
    size_t at, uint32_t value, struct sgp_wire_header *ret_header, struct sgp_error *error)
{
    uint8_t bytes[SGP_WIRE_HEADER_BYTES];
    sgp_wire_chunk_header(8, 0, bytes);
    for (size_t i = 0; i < 4; i++)
        bytes[at + i] = (uint8_t)(value >> 8 * i);
    uint32_t sum = sgp_wire_checksum(bytes, 28);
    for (size_t i = 0; i < 4; i++)
        bytes[28 + i] = (uint8_t)(sum >> 8 * i);
    return sgp_wire_header_decode(bytes, ret_header, error);
}

Test(wire, another_version_is_named)
{
    struct sgp_wire_header header = {0};
    struct sgp_error error = {0};
    cr_assert(eq(int, altered(4, 0x00ff0007, &header, &error), SGP_E_VERSION));
    cr_assert(eq(u16, header.version, 7));
    cr_assert(
        eq(str, error.text, "the peer speaks protocol version 7; this program speaks version 3"));
}

Test(wire, limits_of_a_header_are_kept)
{
    struct sgp_wire_header header = {.version = 99};
    struct {
        size_t at;
        uint32_t value;
        char *text;
    } bad[] = {
        {4, 0x00130003, "frame type 19 is not known"},
        {4, 0x00000003, "frame type 0 is not known"},
        {8, 1, "a body of 1 bytes; a message has 1 to 1024, a chunk none"},
        {4, 0x00030003, "a body of 0 bytes; a message has 1 to 1024, a chunk none"},
        {12, 0,
            "a payload of 0 bytes; a chunk has 4 to 1048576 and a multiple of 4, a message none"},
        {12, 6,
            "a payload of 6 bytes; a chunk has 4 to 1048576 and a multiple of 4, a message none"},
        {12, 1048580,
            "a payload of 1048580 bytes; a chunk has 4 to 1048576 and a multiple of 4, a message "
            "none"},
        {16, 1, "reserved bytes of the header are not 0"},
        {20, 1u << 31, "reserved bytes of the header are not 0"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct sgp_error error = {0};
        cr_assert(eq(int, altered(bad[i].at, bad[i].value, &header, &error), SGP_E_FRAME));
        cr_assert(eq(str, error.text, bad[i].text));
    }
    cr_assert(eq(u16, header.version, 99));
    cr_assert(zero(int, altered(12, 1048576, &header, NULL)));
}

Test(wire, strangers_are_recognised_before_a_header_is_whole)
{
    struct {
        const char *bytes;
        size_t count;
        char *who;
    } strangers[] = {{"GET / HTTP/1.0\r\n\r\n", 18, "an HTTP client"},
        {"POST /x", 7, "an HTTP client"}, {"\x16\x03\x01\x02\x00\x01", 6, "a TLS client"},
        {"SSH-2.0-x", 9, "an SSH client"}, {"\x9dSGQ", 4, "a stranger"},
        {"\0\0\0\0", 4, "a stranger"}, {"G", 1, "a stranger"}};
    for (size_t i = 0; i < sizeof strangers / sizeof *strangers; i++) {
        struct sgp_error error = {0};
        char text[SGP_TEXT_BYTES];
        (void)snprintf(text, sizeof text,
            "%s is calling: its first bytes are not a frame of sgpd; this port is for peers only",
            strangers[i].who);
        cr_assert(eq(int,
            sgp_wire_start_check((const uint8_t *)strangers[i].bytes, strangers[i].count, &error),
            SGP_E_FRAME));
        cr_assert(eq(str, error.text, text));
    }
    for (size_t count = 0; count <= 5; count++)
        cr_assert(zero(int, sgp_wire_start_check((const uint8_t *)"\x9dSGP\x01", count, NULL)));
}

Test(wire, a_body_checksum_is_kept)
{
    const uint8_t body[] = {0x96, 2, 0xc2, 5, 6, 10, 0xc0};
    struct sgp_wire_header header = header_of(SGP_BEAT, body, sizeof body);
    struct sgp_wire_text text;
    struct sgp_message back;
    struct sgp_error error = {0};
    cr_assert(zero(int, sgp_wire_body_decode(&header, body, &text, &back, &error)));
    header.checksum ^= 1;
    cr_assert(eq(int, sgp_wire_body_decode(&header, body, &text, &back, &error), SGP_E_FRAME));
    cr_assert(eq(str, error.text, "beat frame: the body's checksum does not match"));
}

#ifndef SANITIZED /* the sanitizers have a malloc of their own */
static size_t allocations;
void *__libc_malloc(size_t size);

__attribute__((visibility("default"))) void *malloc(size_t size)
{
    allocations++;
    return __libc_malloc(size);
}

Test(wire, nothing_is_allocated)
{
    static uint8_t frame[SGP_WIRE_FRAME_MAX];
    static struct sgp_wire_text text;
    static struct sgp_message back;
    int code = 0;
    size_t before = allocations;
    for (int i = 0; i < sample_count; i++) {
        struct sgp_message message = sample(i);
        size_t bytes;
        code |= sgp_wire_encode(&message, frame, sizeof frame, &bytes);
        code |= decode(frame, &text, &back, NULL);
    }
    size_t after = allocations;
    cr_assert(zero(int, code));
    cr_assert(eq(sz, after, before));
    cr_assert(gt(sz, after, 0)); /* Criterion itself allocates: the count is live */
}
#endif

static struct sgp_message coded_sample(enum sgp_coding coding, uint64_t payload_bytes)
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

Test(wire, a_share_says_its_form_and_a_welcome_those_that_are_decoded)
{
    uint8_t frame[SGP_WIRE_FRAME_MAX];
    struct sgp_message message = coded_sample(SGP_CODING_FP16, 24), back;
    struct sgp_error error = {0};
    size_t count = encode(&message, frame) - SGP_WIRE_HEADER_BYTES;
    uint8_t *body = frame + SGP_WIRE_HEADER_BYTES;
    cr_assert(zero(int, decode_body(SGP_SHARE, body, count, &back, NULL)));
    cr_assert(eq(int, back.share.coding, SGP_CODING_FP16));
    cr_assert(eq(u8, body[count - 1], SGP_CODING_FP16));
    body[count - 1] = SGP_CODING_BLOCKS + 1;
    cr_assert(eq(int, decode_body(SGP_SHARE, body, count, &back, NULL), SGP_E_FRAME));
    body[count - 1] = SGP_CODING_NONE; /* by which it has too few bytes */
    cr_assert(eq(int, decode_body(SGP_SHARE, body, count, &back, &error), SGP_E_FRAME));
    message = sample(3);
    message.welcome.codings = SGP_CODINGS;
    count = encode(&message, frame) - SGP_WIRE_HEADER_BYTES;
    cr_assert(zero(int, decode_body(SGP_WELCOME, body, count, &back, NULL)));
    cr_assert(eq(u32, back.welcome.codings, SGP_CODINGS));
}

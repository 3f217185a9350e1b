/* SPDX-License-Identifier: Apache-2.0 */
/* Messages as frames: every message there and back, and the range of each field. */
#include "wire_samples.h"

#include <errno.h>
#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED
#endif
#endif

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
    cr_assert(eq(u64, back.ask.digest, UINT64_MAX));
    message = (struct sgp_message){
        .type = SGP_ESTIMATE, .pulse = message.pulse, .estimate = {.weight = 1, .same = true}};
    encode(&message, frame);
    cr_assert(zero(int, decode(frame, &text, &back, NULL)));
    cr_assert(back.estimate.same);
    cr_assert(zero(u64, sgp_message_cargo(&back).bytes));
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
    WITH(14, message.estimate.payload_bytes = 0);
    WITH(14, message.estimate.same = true);
    WITH(20, message.estimate.payload_bytes = 0; message.estimate.same = true);
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

Test(wire, a_piece_lies_within_the_texts_of_a_joiner)
{
    struct sgp_message message = sample(30);
    message.joined.first++; /* its last byte is then beyond the texts */
    expect_unencodable(message);
    message = sample(30);
    message.joined.bytes--;
    expect_unencodable(message);
    message = sample(31);
    message.joined.split = 1; /* of no bytes */
    expect_unencodable(message);
    message.joined.split = 0;
    message.joined.verdict = 0;
    expect_unencodable(message);
    message.joined.verdict = SGP_JOIN_VERDICTS + 1;
    expect_unencodable(message);
    message = sample(29);
    message.join.proof = "0123";
    expect_unencodable(message);
    message = sample(29);
    message.join.first = SGP_JOINED_MAX + 1;
    expect_unencodable(message);
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

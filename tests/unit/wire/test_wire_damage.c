/* SPDX-License-Identifier: Apache-2.0 */
/* Damaged, cut and forged frames, and headers of strangers: nothing of them is let in. */
#include "wire_samples.h"

#include <stdio.h>
#include <stdlib.h>

Test(wire_damage, every_flipped_bit_of_a_frame_is_refused)
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

Test(wire_damage, every_truncation_of_a_body_is_refused)
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
Test(wire_damage, mutated_bodies_are_refused_or_sound)
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

Test(wire_damage, a_body_has_exact_types)
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

Test(wire_damage, extra_fields_are_skipped_and_trailing_bytes_are_not)
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

Test(wire_damage, another_version_is_named)
{
    struct sgp_wire_header header = {0};
    struct sgp_error error = {0};
    cr_assert(eq(int, altered(4, 0x00ff0007, &header, &error), SGP_E_VERSION));
    cr_assert(eq(u16, header.version, 7));
    cr_assert(
        eq(str, error.text, "the peer speaks protocol version 7; this program speaks version 3"));
}

Test(wire_damage, limits_of_a_header_are_kept)
{
    struct sgp_wire_header header = {.version = 99};
    struct {
        size_t at;
        uint32_t value;
        char *text;
    } bad[] = {
        {4, 0x00170003, "frame type 23 is not known"},
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

Test(wire_damage, strangers_are_recognised_before_a_header_is_whole)
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
            sgp_wire_start_check(
                (const uint8_t *)strangers[i].bytes, strangers[i].count, true, &error),
            SGP_E_FRAME));
        cr_assert(eq(str, error.text, text));
    }
    for (size_t count = 0; count <= 5; count++)
        cr_assert(
            zero(int, sgp_wire_start_check((const uint8_t *)"\x9dSGP\x01", count, true, NULL)));
}

/* The side that dialled is called by nobody. */
Test(wire_damage, who_answers_with_garbage_does_not_call)
{
    static const uint8_t garbage[SGP_WIRE_HEADER_BYTES] = "SSH-2.0-x";
    struct sgp_wire_header header;
    struct sgp_error first = {0}, whole = {0};
    cr_assert(eq(int, sgp_wire_start_check(garbage, 4, false, &first), SGP_E_FRAME));
    cr_assert(eq(int, sgp_wire_header_decode(garbage, &header, &whole), SGP_E_FRAME));
    cr_assert(eq(str, first.text, "the peer sent bytes that are not a frame of sgpd"));
    cr_assert(eq(str, whole.text, first.text));
}

Test(wire_damage, a_body_checksum_is_kept)
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

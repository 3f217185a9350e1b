/* SPDX-License-Identifier: Apache-2.0 */
/* Values of msgpack: what this library reads or writes itself is what msgpack-c
 * reads or writes. */
#include "wire/pack.h"

#include "sgp/random.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <string.h>

#define LONGEST 9u /* bytes of a number: the first one and 8 more */

/* Whether a value may begin with this byte: no container, extension, float32 or unused byte. `wide`: a
 * negative integer and bytes as well. */
static bool may_begin(uint8_t lead, bool wide)
{
    static const uint8_t plain[] = {0xc0, 0xc2, 0xc3, 0xcb, 0xcc, 0xcd, 0xce, 0xcf, 0xd9, 0xda};
    static const uint8_t more[] = {0xc4, 0xc5, 0xc6, 0xd0, 0xd1, 0xd2, 0xd3};
    bool fixed = lead <= 0x7f || (lead >= 0xa0 && lead <= 0xbf);
    return fixed || memchr(plain, lead, sizeof plain) != NULL ||
           (wide && (lead >= 0xe0 || memchr(more, lead, sizeof more) != NULL));
}

static bool are_equal(const msgpack_object *a, const msgpack_object *b)
{
    if (a->type == MSGPACK_OBJECT_FLOAT64) /* a NaN equals itself here */
        return b->type == a->type && memcmp(&a->via.f64, &b->via.f64, sizeof a->via.f64) == 0;
    return msgpack_object_equal(*a, *b);
}

/* Returns whether the value is read. */
static bool compare(const uint8_t *bytes, size_t count, bool wide)
{
    struct sgp_unpacker unpacker = {.bytes = bytes, .count = count, .wide = wide};
    msgpack_zone zone = {0};
    msgpack_object ours, theirs;
    msgpack_unpack_return got = MSGPACK_UNPACK_PARSE_ERROR;
    size_t end = 0;
    if (may_begin(bytes[0], wide))
        got = msgpack_unpack((const char *)bytes, count, &end, &zone, &theirs);
    bool fits = got == MSGPACK_UNPACK_SUCCESS || got == MSGPACK_UNPACK_EXTRA_BYTES;
    cr_assert(eq(int, sgp_unpack(&unpacker, &ours), fits), "%#x, %zu bytes", bytes[0], count);
    if (!fits)
        return false;
    cr_assert(eq(sz, unpacker.at, end), "%#x, %zu bytes", bytes[0], count);
    cr_assert(are_equal(&ours, &theirs), "%#x, %zu bytes", bytes[0], count);
    return true;
}

Test(pack, values_are_read_as_msgpack_c_reads_them)
{
    struct sgp_random random;
    sgp_random_init(&random, 11, 0);
    uint32_t taken = 0;
    for (uint32_t round = 0; round < 200; round++)
        for (uint32_t lead = 0; lead < 256; lead++)
            for (uint32_t count = 1; count <= LONGEST; count++) {
                uint8_t bytes[LONGEST] = {(uint8_t)lead};
                for (uint32_t i = 1; i < count; i++)
                    bytes[i] = (uint8_t)sgp_random_below(&random, 256);
                taken += compare(bytes, count, round % 2 == 1);
            }
    cr_assert(gt(u32, taken, 100000));
}

/* ---- writing ---- */

/* As msgpack-c packs it; an int64_t or int of -1 is nil. */
static void pack_theirs(msgpack_packer *packer, enum sgp_schema_kind kind, const void *place)
{
    int64_t number;
    switch (kind) {
    case SGP_SCHEMA_U64:
        (void)msgpack_pack_uint64(packer, *(const uint64_t *)place);
        break;
    case SGP_SCHEMA_U32:
        (void)msgpack_pack_uint32(packer, *(const uint32_t *)place);
        break;
    case SGP_SCHEMA_BOOL:
        (void)(*(const bool *)place ? msgpack_pack_true(packer) : msgpack_pack_false(packer));
        break;
    case SGP_SCHEMA_REAL:
        (void)msgpack_pack_double(packer, *(const double *)place);
        break;
    case SGP_SCHEMA_FLOAT:
        (void)msgpack_pack_double(packer, (double)*(const float *)place);
        break;
    default:
        number = kind == SGP_SCHEMA_INT ? *(const int *)place : *(const int64_t *)place;
        (void)(number == -1 ? msgpack_pack_nil(packer) : msgpack_pack_int64(packer, number));
    }
}

static void compare_writing(enum sgp_schema_kind kind, const void *place)
{
    const struct sgp_schema_field field = {.name = "value", .kind = kind};
    uint8_t bytes[SGP_PACK_PLAIN_BYTES];
    msgpack_sbuffer ours, theirs;
    msgpack_packer packer;
    msgpack_sbuffer_init(&ours);
    msgpack_sbuffer_init(&theirs);
    msgpack_packer_init(&packer, &ours, msgpack_sbuffer_write);
    cr_assert(eq(int, sgp_pack(&packer, &field, place), 0));
    msgpack_packer_init(&packer, &theirs, msgpack_sbuffer_write);
    pack_theirs(&packer, kind, place);
    cr_assert(eq(sz, ours.size, theirs.size), "kind %d", (int)kind);
    cr_assert(memcmp(ours.data, theirs.data, ours.size) == 0, "kind %d", (int)kind);
    size_t count = sgp_pack_plain(&field, place, bytes);
    if (count > 0) {
        cr_assert(eq(sz, count, ours.size), "kind %d", (int)kind);
        cr_assert(memcmp(bytes, ours.data, count) == 0, "kind %d", (int)kind);
    }
    msgpack_sbuffer_destroy(&ours);
    msgpack_sbuffer_destroy(&theirs);
}

Test(pack, values_are_written_as_msgpack_c_writes_them)
{
    for (uint32_t bit = 0; bit < 64; bit++)
        for (int64_t step = -2; step <= 2; step++) {
            uint64_t value = ((uint64_t)1 << bit) + (uint64_t)step, negative = 0 - value;
            double real = (double)value * 0.3;
            float single = (float)-real;
            compare_writing(SGP_SCHEMA_U64, &value);
            compare_writing(SGP_SCHEMA_U32, &(uint32_t){(uint32_t)value});
            compare_writing(SGP_SCHEMA_I64, &value);
            compare_writing(SGP_SCHEMA_I64, &negative);
            compare_writing(SGP_SCHEMA_INT, &(int){(int)(uint32_t)value});
            compare_writing(SGP_SCHEMA_INT, &(int){(int)(uint32_t)negative});
            compare_writing(SGP_SCHEMA_BOOL, &(bool){step > 0});
            compare_writing(SGP_SCHEMA_REAL, &real);
            compare_writing(SGP_SCHEMA_FLOAT, &single);
        }
    compare_writing(SGP_SCHEMA_REAL, &(double){-0.0});
}

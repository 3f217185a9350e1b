/* SPDX-License-Identifier: Apache-2.0 */
/* Structures by their schemas: what comes back, what is refused, and that no field of a record or a message was forgotten. */
#include "base/schema.h"
#include "core/record.h"
#include "journal/fields.h"
#include "sgp/record.h"
#include "wire/fields.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <math.h>
#include <string.h>

struct part {
    int32_t code;
    bool sure;
};

enum colour { RED = 1, BLUE };

struct whole {
    uint64_t big;
    enum colour colour;
    sgp_round round;
    double real;
    float floats[3];
    char name[SGP_NAME_BYTES];
    struct part part;
};

static const struct sgp_schema_field part_fields[] = {
    SGP_FIELD(struct part, "code", code, SGP_SCHEMA_ANY),
    SGP_FIELD(struct part, "sure", sure, SGP_SCHEMA_ANY),
};
static const struct sgp_schema part_schema = SGP_SCHEMA(struct part, part_fields);

static const struct sgp_schema_field whole_fields[] = {
    SGP_FIELD(struct whole, "big", big, 1, UINT64_MAX),
    SGP_FIELD(struct whole, "colour", colour, RED, BLUE),
    SGP_FIELD(struct whole, "round", round, SGP_ROUND_NONE, 100),
    SGP_FIELD(struct whole, "real", real, 0, 2),
    SGP_FIELDS(struct whole, "floats", floats, SGP_SCHEMA_ANY),
    SGP_FIELD(struct whole, "name", name, SGP_SCHEMA_ANY),
    SGP_PART(struct whole, part, &part_schema),
};
static const struct sgp_schema whole_schema = SGP_SCHEMA(struct whole, whole_fields);

static const struct whole sample = {.big = UINT64_MAX,
    .colour = BLUE,
    .round = SGP_ROUND_NONE,
    .real = 0.1,
    .floats = {-3e38f, 0, 3e38f},
    .name = "n0",
    .part = {.code = -7, .sure = true}};

enum { WHOLE_BYTES = 8 + 4 + 8 + 8 + 3 * 4 + 64 + 4 + 1 };

Test(schema, bytes_come_back_as_the_same_values)
{
    uint8_t bytes[WHOLE_BYTES];
    struct whole back = {.big = 3};
    struct sgp_schema_spans spans;
    sgp_schema_find_spans(&whole_schema, &spans);
    cr_assert(eq(sz, sgp_schema_bytes(&whole_schema), WHOLE_BYTES));
    cr_assert(sgp_schema_put(&spans, &sample, bytes) == bytes + WHOLE_BYTES);
    cr_assert(sgp_schema_take(&whole_schema, bytes, &back) == bytes + WHOLE_BYTES);
    cr_assert(eq(u64, back.big, UINT64_MAX));
    cr_assert(eq(int, (int)back.colour, BLUE));
    cr_assert(eq(i64, back.round, -1));
    cr_assert(eq(dbl, back.real, 0.1));
    cr_assert(eq(flt, back.floats[0], -3e38f));
    cr_assert(eq(flt, back.floats[2], 3e38f));
    cr_assert(eq(str, back.name, (char *)"n0"));
    cr_assert(eq(int, back.part.code, -7));
    cr_assert(back.part.sure);
}

/* `big` and `colour` are neighbours; four bytes of padding follow. Then `round` to `name` lie side
 * by side, and the part's two values. */
Test(schema, values_side_by_side_are_one_stretch)
{
    struct sgp_schema_spans spans;
    sgp_schema_find_spans(&whole_schema, &spans);
    size_t total = 0;
    for (uint32_t i = 0; i < spans.count; i++)
        total += spans.at[i].bytes;
    cr_assert(eq(sz, total, WHOLE_BYTES));
    cr_assert(eq(u32, spans.at[0].offset, 0));
    cr_assert(eq(u32, spans.at[0].bytes, 12));
    cr_assert(eq(u32, spans.at[1].offset, offsetof(struct whole, round)));
    cr_assert(le(u32, spans.count, 3));
}

/* A copy with one thing wrong does not hold, nor do its bytes. */
static void expect_wrong(struct whole wrong, const char *what)
{
    uint8_t bytes[WHOLE_BYTES];
    struct whole back;
    struct sgp_schema_spans spans;
    cr_expect(not(sgp_schema_holds(&whole_schema, &wrong)), "%s", what);
    sgp_schema_find_spans(&whole_schema, &spans);
    (void)sgp_schema_put(&spans, &wrong, bytes);
    cr_expect(sgp_schema_take(&whole_schema, bytes, &back) == NULL, "%s", what);
}

Test(schema, a_value_out_of_its_range_is_refused)
{
    cr_assert(sgp_schema_holds(&whole_schema, &sample));
    struct whole wrong;
#define WITH(assignment)                                                                           \
    wrong = sample;                                                                                \
    assignment;                                                                                    \
    expect_wrong(wrong, #assignment)
    WITH(wrong.big = 0);
    WITH(wrong.colour = (enum colour)0);
    WITH(wrong.colour = (enum colour)(BLUE + 1));
    WITH(wrong.round = -2);
    WITH(wrong.round = 101);
    WITH(wrong.real = -0x1p-1074);
    WITH(wrong.real = 0x1.0000000000001p1);
    WITH(wrong.real = (double)NAN);
    WITH(wrong.floats[1] = INFINITY);
    WITH(wrong.floats[2] = NAN);
    WITH(memset(wrong.name, 'n', sizeof wrong.name));
    WITH(memset(&wrong.part.sure, 2, 1));
#undef WITH
}

/* ---- records and messages ---- */

struct cover {
    const uint8_t *structure;
    uint8_t seen[512];
};

static int cover(void *context, const struct sgp_schema_field *field, void *place)
{
    struct cover *all = context;
    struct sgp_schema_field one = *field;
    one.count = 1;
    const struct sgp_schema schema = {.fields = &one, .count = 1};
    memset(all->seen + ((const uint8_t *)place - all->structure), 1, sgp_schema_bytes(&schema));
    return 0;
}

/* Bytes at..at + bytes of a structure that no field of its schema has. */
static size_t uncovered(
    const struct sgp_schema *schema, const void *structure, size_t at, size_t bytes)
{
    struct cover all = {.structure = structure};
    size_t count = 0;
    cr_assert(le(u32, schema->bytes, sizeof all.seen));
    (void)sgp_schema_walk(schema, structure, cover, &all);
    for (size_t i = at; i < at + bytes; i++)
        count += all.seen[i] == 0;
    return count;
}

/* Who adds a field to these structures, and forgets its line, fails here: it would not survive the process. */
Test(schema, every_field_of_a_record_has_a_line)
{
    struct lists {
        uint32_t link_capacity, account_capacity;
        struct sgp_record_link *links;
        struct sgp_account *accounts;
    };
    const struct sgp_record record = {.incarnation = 1};
    const struct sgp_record_link link = {.peer = 1};
    const struct sgp_account account = {.kind = SGP_ACCOUNT_DEBT};
    enum { PADDING_RECORD = 12, PADDING_LINK = 17, PADDING_ACCOUNT = 4 };
    cr_expect(eq(sz, uncovered(&sgp_record_schema, &record, 0, sizeof record),
        sizeof(struct lists) + PADDING_RECORD));
    cr_expect(eq(sz, uncovered(&sgp_record_link_schema, &link, 0, sizeof link), PADDING_LINK));
    cr_expect(eq(sz, uncovered(&sgp_account_schema, &account, 0, sizeof account), PADDING_ACCOUNT));
}

/* And here it would be missing at a replay. */
Test(schema, every_field_of_what_a_core_is_told_has_a_line)
{
    static const struct sgp_node_config config = {.self = 1};
    static const struct sgp_event event = {.type = SGP_EVENT_START};
    static const struct sgp_node_change change = {.self = 1};
    enum { POINTER = sizeof(void *), PADDING_CONFIG = 23, PADDING_EVENT = 4, PADDING_CHANGE = 4 };
    cr_expect(eq(sz, uncovered(&sgp_journal_config, &config, 0, sizeof config),
                  3 * POINTER + PADDING_CONFIG),
        "but topology, method and record");
    cr_expect(
        eq(sz, uncovered(&sgp_journal_event, &event, 0, sizeof event), 2 * POINTER + PADDING_EVENT),
        "but message and sketch");
    cr_expect(
        eq(sz, uncovered(&sgp_journal_change, &change, 0, sizeof change), POINTER + PADDING_CHANGE),
        "but the topology");
}

/* And it would not be sent. */
Test(schema, every_field_of_a_message_has_a_line)
{
#define ROW(type, member, padding)                                                                 \
    {                                                                                              \
        type, sizeof((struct sgp_message *)0)->member, padding                                     \
    }
    static const struct {
        enum sgp_message_type type;
        size_t bytes, padding;
    } rows[] = {ROW(SGP_HELLO, hello, 8), ROW(SGP_WELCOME, welcome, 11), ROW(SGP_BEAT, beat, 6),
        ROW(SGP_CREDIT, credit, 0), ROW(SGP_SHARE, share, 11), ROW(SGP_ACK, ack, 4),
        ROW(SGP_GOODBYE, goodbye, 4), ROW(SGP_ASK, ask, 14), ROW(SGP_ESTIMATE, estimate, 9),
        ROW(SGP_BEQUEATH, bequeath, 4), ROW(SGP_INQUIRE, inquire, 0), ROW(SGP_ANSWER, answer, 7),
        ROW(SGP_CALL, call, 0), ROW(SGP_STATEMENT, statement, 4), ROW(SGP_FACT, fact, 8),
        ROW(SGP_LAYOUT, layout, 4), ROW(SGP_BULLETIN, bulletin, 4), ROW(SGP_PULL, pull, 4),
        ROW(SGP_ROW, row, 0), ROW(SGP_JOIN, join, 4), ROW(SGP_JOINED, joined, 0)};
    static const struct sgp_message message = {.type = SGP_HELLO};
    cr_assert(eq(sz, sizeof rows / sizeof *rows, SGP_MESSAGE_TYPES - 1));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct sgp_schema *schema = sgp_message_schema(rows[i].type);
        size_t pulse =
            uncovered(schema, &message, offsetof(struct sgp_message, pulse), sizeof message.pulse);
        size_t own =
            uncovered(schema, &message, offsetof(struct sgp_message, hello), rows[i].bytes);
        cr_expect(eq(sz, pulse, 3), "%s", sgp_message_type_name(rows[i].type));
        cr_expect(eq(sz, own, rows[i].padding), "%s", sgp_message_type_name(rows[i].type));
    }
}

/* A SUMMARY has a pointer to its fields. */
Test(schema, every_field_of_a_summary_has_a_line)
{
    static const struct sgp_summary summary = {.wants = true};
    const struct sgp_schema_field *field = &sgp_message_schema(SGP_SUMMARY)->fields[1];
    cr_assert(field->borrowed);
    cr_assert(eq(sz, field->offset, offsetof(struct sgp_message, summary)));
    cr_assert(eq(sz, uncovered(field->part, &summary, 0, sizeof summary), 7));
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The tables, and one field of a structure to a msgpack value and back. */
#include "journal/fields.h"

#include <string.h>

#define CONFIG(kind, member)                                                                       \
    {                                                                                              \
        SGP_JOURNAL_##kind, offsetof(struct sgp_node_config, member)                               \
    }
static const struct sgp_journal_field config_fields[] = {
    CONFIG(U32, self),
    CONFIG(U64, lineage),
    CONFIG(U64, seed),
    CONFIG(U64, parameters),
    CONFIG(U64, fingerprint.shape),
    CONFIG(U64, fingerprint.loss),
    CONFIG(U64, fingerprint.classes),
    CONFIG(U64, fingerprint.scaling),
    CONFIG(U32, fingerprint.method),
    CONFIG(U64, fingerprint.topology),
    CONFIG(REAL, fingerprint.learning_rate),
    CONFIG(U32, fingerprint.batch),
    CONFIG(U64, fingerprint.data),
    CONFIG(U64, fingerprint.run),
    CONFIG(I64, rounds),
    CONFIG(U32, local_steps),
    CONFIG(U32, overlap),
    CONFIG(U32, backup_neighbours),
    CONFIG(I64, patience),
    CONFIG(BOOL, step_by_rate),
    CONFIG(U32, final_cycles),
    CONFIG(U32, start),
    CONFIG(REAL, weight_least),
    CONFIG(REAL, weight_most),
    CONFIG(BOOL, seeks),
    CONFIG(BOOL, fresh),
    CONFIG(BOOL, open),
    CONFIG(BOOL, one_beginning),
};

#define RECORD(kind, member)                                                                       \
    {                                                                                              \
        SGP_JOURNAL_##kind, offsetof(struct sgp_record, member)                                    \
    }
static const struct sgp_journal_field record_fields[] = {
    RECORD(U64, lineage),
    RECORD(I64, round),
    RECORD(BOOL, trained),
    RECORD(BOOL, gave),
    RECORD(REAL, weight),
    RECORD(REAL, surplus),
    RECORD(I64, rounds),
    RECORD(I64, stop),
    RECORD(I64, mixes),
    RECORD(REAL, covered),
    RECORD(REAL, unknown),
    RECORD(I64, turns),
    RECORD(U64, epoch.number),
    RECORD(I64, epoch.start),
    RECORD(U64, epoch.topology),
    RECORD(BOOL, leaving),
    RECORD(BOOL, left),
    RECORD(U32, link_count),
    RECORD(U32, account_count),
};

#define LINK(kind, member)                                                                         \
    {                                                                                              \
        SGP_JOURNAL_##kind, offsetof(struct sgp_record_link, member)                               \
    }
static const struct sgp_journal_field link_fields[] = {
    LINK(U32, peer),
    LINK(BOOL, out),
    LINK(U64, lineage),
    LINK(U64, number),
    LINK(U64, acknowledged),
    LINK(U64, former_lineage),
    LINK(U64, former_number),
    LINK(BOOL, owes),
    LINK(I64, owed_round),
    LINK(REAL, owed_fraction),
    LINK(REAL, owed_weight),
    LINK(BOOL, owed_kept),
    LINK(U32, owed_slot),
    LINK(REAL, owed_bequest),
    LINK(U64, owed_lineage),
};

#define ACCOUNT(kind, member)                                                                      \
    {                                                                                              \
        SGP_JOURNAL_##kind, offsetof(struct sgp_account, member)                                   \
    }
static const struct sgp_journal_field account_fields[] = {
    ACCOUNT(INT, kind),
    ACCOUNT(NAME, source),
    ACCOUNT(NAME, target),
    ACCOUNT(U64, source_lineage),
    ACCOUNT(U64, target_lineage),
    ACCOUNT(U64, number),
    ACCOUNT(REAL, weight),
};

#define EVENT(kind, member)                                                                        \
    {                                                                                              \
        SGP_JOURNAL_##kind, offsetof(struct sgp_event, member)                                     \
    }
static const struct sgp_journal_field event_fields[] = {
    EVENT(INT, type),
    EVENT(I64, now),
    EVENT(U32, link.peer),
    EVENT(INT, link.direction),
    EVENT(U64, link.connection),
    EVENT(INT, code),
    EVENT(U32, slot),
    EVENT(U64, bytes),
    EVENT(U64, update),
    EVENT(REAL, rate),
};

#define VALUE(k)                                                                                   \
    {                                                                                              \
        SGP_JOURNAL_FLOAT, offsetof(struct sgp_sketch, values[k])                                  \
    }
static const struct sgp_journal_field sketch_fields[] = {
    VALUE(0),
    VALUE(1),
    VALUE(2),
    VALUE(3),
    VALUE(4),
    VALUE(5),
    VALUE(6),
    VALUE(7),
    VALUE(8),
    VALUE(9),
    VALUE(10),
    VALUE(11),
    VALUE(12),
    VALUE(13),
    VALUE(14),
    VALUE(15),
};
_Static_assert(sizeof sketch_fields / sizeof *sketch_fields == SGP_SKETCH_VALUES, "all of it");

#define CHANGE(kind, member)                                                                       \
    {                                                                                              \
        SGP_JOURNAL_##kind, offsetof(struct sgp_node_change, member)                               \
    }
static const struct sgp_journal_field change_fields[] = {
    CHANGE(U32, self),
    CHANGE(REAL, weight_least),
    CHANGE(REAL, weight_most),
};

#define TABLE(fields)                                                                              \
    {                                                                                              \
        fields, sizeof fields / sizeof *(fields)                                                   \
    }
const struct sgp_journal_table sgp_journal_config = TABLE(config_fields);
const struct sgp_journal_table sgp_journal_record_fields = TABLE(record_fields);
const struct sgp_journal_table sgp_journal_record_link = TABLE(link_fields);
const struct sgp_journal_table sgp_journal_account = TABLE(account_fields);
const struct sgp_journal_table sgp_journal_event = TABLE(event_fields);
const struct sgp_journal_table sgp_journal_sketch = TABLE(sketch_fields);
const struct sgp_journal_table sgp_journal_change = TABLE(change_fields);

static msgpack_object integer(int64_t value)
{
    if (value < 0)
        return (msgpack_object){.type = MSGPACK_OBJECT_NEGATIVE_INTEGER, .via.i64 = value};
    return (msgpack_object){.type = MSGPACK_OBJECT_POSITIVE_INTEGER, .via.u64 = (uint64_t)value};
}

msgpack_object sgp_journal_load(const struct sgp_journal_field *field, const void *structure)
{
    const void *place = (const char *)structure + field->offset;
    switch (field->kind) {
    case SGP_JOURNAL_U64:
        return (msgpack_object){
            .type = MSGPACK_OBJECT_POSITIVE_INTEGER, .via.u64 = *(const uint64_t *)place};
    case SGP_JOURNAL_U32:
        return integer(*(const uint32_t *)place);
    case SGP_JOURNAL_I64:
        return integer(*(const int64_t *)place);
    case SGP_JOURNAL_INT:
        return integer(*(const int *)place);
    case SGP_JOURNAL_BOOL:
        return (msgpack_object){
            .type = MSGPACK_OBJECT_BOOLEAN, .via.boolean = *(const bool *)place};
    case SGP_JOURNAL_REAL:
        return (msgpack_object){.type = MSGPACK_OBJECT_FLOAT64, .via.f64 = *(const double *)place};
    case SGP_JOURNAL_FLOAT:
        return (msgpack_object){
            .type = MSGPACK_OBJECT_FLOAT64, .via.f64 = (double)*(const float *)place};
    case SGP_JOURNAL_NAME:
        return (msgpack_object){.type = MSGPACK_OBJECT_STR,
            .via.str = {.ptr = place, .size = (uint32_t)strnlen(place, SGP_NAME_BYTES)}};
    }
    sgp_assert_failed("a field is of a known kind", __FILE__, __LINE__);
}

static bool store_name(const msgpack_object *value, char *name)
{
    if (value->type != MSGPACK_OBJECT_STR || value->via.str.size >= SGP_NAME_BYTES)
        return false;
    memset(name, 0, SGP_NAME_BYTES);
    if (value->via.str.size > 0) /* msgpack-c's empty string is at NULL */
        memcpy(name, value->via.str.ptr, value->via.str.size);
    return strlen(name) == value->via.str.size;
}

/* An integer of any sign between these. */
static bool lies(const msgpack_object *value, int64_t least, int64_t most)
{
    if (value->type == MSGPACK_OBJECT_NEGATIVE_INTEGER)
        return value->via.i64 >= least;
    return value->type == MSGPACK_OBJECT_POSITIVE_INTEGER && value->via.u64 <= (uint64_t)most;
}

bool sgp_journal_store(
    const struct sgp_journal_field *field, const msgpack_object *value, void *structure)
{
    void *place = (char *)structure + field->offset;
    bool fits = false;
    switch (field->kind) {
    case SGP_JOURNAL_U64:
        if ((fits = value->type == MSGPACK_OBJECT_POSITIVE_INTEGER))
            *(uint64_t *)place = value->via.u64;
        break;
    case SGP_JOURNAL_U32:
        if ((fits = lies(value, 0, UINT32_MAX)))
            *(uint32_t *)place = (uint32_t)value->via.u64;
        break;
    case SGP_JOURNAL_I64:
        if ((fits = lies(value, INT64_MIN, INT64_MAX)))
            *(int64_t *)place = value->via.i64;
        break;
    case SGP_JOURNAL_INT:
        if ((fits = lies(value, INT32_MIN, INT32_MAX)))
            *(int *)place = (int)value->via.i64;
        break;
    case SGP_JOURNAL_BOOL:
        if ((fits = value->type == MSGPACK_OBJECT_BOOLEAN))
            *(bool *)place = value->via.boolean;
        break;
    case SGP_JOURNAL_REAL:
        if ((fits = value->type == MSGPACK_OBJECT_FLOAT64))
            *(double *)place = value->via.f64;
        break;
    case SGP_JOURNAL_FLOAT:
        if ((fits = value->type == MSGPACK_OBJECT_FLOAT64))
            *(float *)place = (float)value->via.f64;
        break;
    case SGP_JOURNAL_NAME:
        fits = store_name(value, place);
        break;
    }
    return fits;
}

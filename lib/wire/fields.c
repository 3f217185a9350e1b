/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of every message: their order on the wire, their place in memory, their range. */
#include "wire/fields.h"

#include <math.h>
#include <string.h>

#define PLACE(member) .offset = offsetof(struct sgp_message, member)
#define U64(label, member, low, high)                                                              \
    {                                                                                              \
        .name = label, .kind = SGP_FIELD_U64, PLACE(member), .least = low, .most = high            \
    }
#define U32(label, member)                                                                         \
    {                                                                                              \
        .name = label, .kind = SGP_FIELD_U32, PLACE(member), .most = UINT32_MAX                    \
    }
#define ROUND(label, member, none)                                                                 \
    {                                                                                              \
        .name = label, .kind = SGP_FIELD_ROUND, PLACE(member), .least = none,                      \
        .most = SGP_ROUND_MAX                                                                      \
    }
#define BOOL(label, member)                                                                        \
    {                                                                                              \
        .name = label, .kind = SGP_FIELD_BOOL, PLACE(member)                                       \
    }
#define LATER_U64(label, member)                                                                   \
    {                                                                                              \
        .name = label, .kind = SGP_FIELD_U64, PLACE(member), .most = UINT64_MAX, .later = true     \
    }
#define LATER_BOOL(label, member)                                                                  \
    {                                                                                              \
        .name = label, .kind = SGP_FIELD_BOOL, PLACE(member), .later = true                        \
    }
#define LATER_REAL(label, member, high)                                                            \
    {                                                                                              \
        .name = label, .kind = SGP_FIELD_REAL, PLACE(member), .most = high, .later = true          \
    }
#define LATER_LABEL(label, member)                                                                 \
    {                                                                                              \
        .name = label, .kind = SGP_FIELD_ROUND, PLACE(member), .most = SGP_ROUND_MAX,              \
        .later = true                                                                              \
    }
#define LATER_FLOAT(label, member)                                                                 \
    {                                                                                              \
        .name = label, .kind = SGP_FIELD_FLOAT, PLACE(member), .later = true                       \
    }
#define REAL(label, member, high)                                                                  \
    {                                                                                              \
        .name = label, .kind = SGP_FIELD_REAL, PLACE(member), .most = high                         \
    }
#define STATE(label, member)                                                                       \
    {                                                                                              \
        .name = label, .kind = SGP_FIELD_STATE, PLACE(member), .least = SGP_NODE_JOINING,          \
        .most = SGP_NODE_DRAINING                                                                  \
    }
#define REASON(label, member)                                                                      \
    {                                                                                              \
        .name = label, .kind = SGP_FIELD_REASON, PLACE(member), .least = SGP_REASON_NONE,          \
        .most = SGP_REASON_FORGOT - 1                                                              \
    }
#define TEXT(label, member, place, low)                                                            \
    {                                                                                              \
        .name = label, .kind = SGP_FIELD_TEXT, PLACE(member),                                      \
        .text = offsetof(struct sgp_wire_text, place), .least = low,                               \
        .most = sizeof((struct sgp_wire_text *)0)->place - 1                                       \
    }
#define FINGERPRINT(member)                                                                        \
    U64("shape", member.shape, 0, UINT64_MAX), U64("loss", member.loss, 0, UINT64_MAX),            \
        U64("classes", member.classes, 0, UINT64_MAX),                                             \
        U64("scaling", member.scaling, 0, UINT64_MAX), U32("method", member.method),               \
        U64("topology", member.topology, 0, UINT64_MAX),                                           \
        REAL("learning_rate", member.learning_rate, 0), U32("batch", member.batch),                \
        LATER_U64("data", member.data)
#define RUN(member) LATER_U64("run", member.run)

/* Of the pulse, but behind everything else: those who know of no exact cycle say nothing of these. */
#define THEN LATER_LABEL("then_round", pulse.then_round)
#define EPOCH                                                                                      \
    LATER_U64("epoch", pulse.epoch.number), LATER_LABEL("epoch_start", pulse.epoch.start),         \
        LATER_U64("epoch_topology", pulse.epoch.topology)

static const struct sgp_field pulse_fields[] = {
    STATE("state", pulse.state),
    BOOL("computing", pulse.computing),
    ROUND("round", pulse.round, 0),
    ROUND("next_round", pulse.next_round, SGP_ROUND_MAY_BE_NONE),
    ROUND("ends", pulse.ends, 0),
    ROUND("stop", pulse.stop, SGP_ROUND_MAY_BE_NONE),
};

#define PRINT(member, ...) SGP_FIELD(struct sgp_fingerprint, #member, member, __VA_ARGS__)
static const struct sgp_form_field fingerprint_fields[] = {
    PRINT(shape, SGP_FORM_ANY),
    PRINT(loss, SGP_FORM_ANY),
    PRINT(classes, SGP_FORM_ANY),
    PRINT(scaling, SGP_FORM_ANY),
    PRINT(method, SGP_FORM_ANY),
    PRINT(topology, SGP_FORM_ANY),
    PRINT(learning_rate, 0, UINT64_MAX),
    PRINT(batch, SGP_FORM_ANY),
    PRINT(data, SGP_FORM_ANY),
    PRINT(run, SGP_FORM_ANY),
};
const struct sgp_form sgp_fingerprint_form = SGP_FORM(struct sgp_fingerprint, fingerprint_fields);

static const struct sgp_field hello_fields[] = {
    TEXT("source", hello.source, source, 1),
    TEXT("target", hello.target, target, 1),
    U64("lineage", hello.lineage, 1, UINT64_MAX),
    U64("parameters", hello.parameters, 1, SGP_PARAMETERS_MAX),
    FINGERPRINT(hello.fingerprint),
    LATER_U64("target_lineage", hello.target_lineage),
    LATER_U64("acknowledged", hello.acknowledged),
    EPOCH,
    LATER_BOOL("signs", hello.signs),
    RUN(hello.fingerprint),
    THEN,
};

static const struct sgp_field welcome_fields[] = {
    TEXT("target", welcome.target, target, 1),
    U64("lineage", welcome.lineage, 1, UINT64_MAX),
    U64("accepted", welcome.accepted, 0, UINT64_MAX),
    FINGERPRINT(welcome.fingerprint),
    EPOCH,
    LATER_BOOL("signs", welcome.signs),
    RUN(welcome.fingerprint),
};

#define SKETCH(k) LATER_FLOAT("sketch", beat.sketch.values[k])
static const struct sgp_field beat_fields[] = {
    LATER_LABEL("mixes", beat.mixes),
    LATER_BOOL("ended", beat.ended),
    LATER_BOOL("empty", beat.empty),
    SKETCH(0),
    SKETCH(1),
    SKETCH(2),
    SKETCH(3),
    SKETCH(4),
    SKETCH(5),
    SKETCH(6),
    SKETCH(7),
    SKETCH(8),
    SKETCH(9),
    SKETCH(10),
    SKETCH(11),
    SKETCH(12),
    SKETCH(13),
    SKETCH(14),
    SKETCH(15),
    EPOCH,
    THEN,
};
_Static_assert(sizeof beat_fields / sizeof *beat_fields == 3 + SGP_SKETCH_VALUES + 4, "all of it");

static const struct sgp_field credit_fields[] = {
    ROUND("round", credit.round, 0),
    EPOCH,
};

static const struct sgp_field share_fields[] = {
    U64("number", share.number, 1, UINT64_MAX),
    ROUND("round", share.round, 0),
    REAL("fraction", share.fraction, 1),
    REAL("weight", share.weight, 0),
    U64("first", share.slice.first, 0, SGP_PARAMETERS_MAX),
    U64("count", share.slice.count, 0, SGP_PARAMETERS_MAX),
    U64("payload_bytes", share.payload_bytes, 0, 4 * SGP_PARAMETERS_MAX),
    LATER_BOOL("asks", share.asks),
    LATER_REAL("bequest", share.bequest, SGP_NODES_MAX),
    EPOCH,
    THEN,
    LATER_U64("update", share.update),
    LATER_REAL("rate", share.rate, SGP_RATE_MAX),
    LATER_LABEL("heavy", share.heavy),
    LATER_LABEL("light", share.light),
};

static const struct sgp_field ack_fields[] = {
    U64("number", ack.number, 1, UINT64_MAX),
    REASON("reason", ack.reason),
    EPOCH,
};

static const struct sgp_field goodbye_fields[] = {
    REASON("reason", goodbye.reason),
    TEXT("text", goodbye.text, line, 0),
    EPOCH,
};

static const struct sgp_field ask_fields[] = {
    BOOL("wants", ask.wants),
    LATER_LABEL("newer", ask.newer),
    EPOCH,
};

static const struct sgp_field estimate_fields[] = {
    ROUND("round", estimate.round, 0),
    REAL("weight", estimate.weight, 0),
    U64("payload_bytes", estimate.payload_bytes, 4, 4 * SGP_PARAMETERS_MAX),
    EPOCH,
    LATER_U64("first", estimate.slice.first),
    LATER_U64("count", estimate.slice.count),
    THEN,
};

static const struct sgp_field bequeath_fields[] = {
    {
        .name = "kind",
        .kind = SGP_FIELD_U32,
        PLACE(bequeath.kind),
        .least = SGP_BEQUEATH_ACCEPTED,
        .most = SGP_BEQUEATH_UNKNOWN,
    },
    TEXT("source", bequeath.source, source, 1),
    U64("source_lineage", bequeath.source_lineage, 1, UINT64_MAX),
    TEXT("target", bequeath.target, target, 1),
    U64("target_lineage", bequeath.target_lineage, 1, UINT64_MAX),
    U64("number", bequeath.number, 0, UINT64_MAX),
    REAL("weight", bequeath.weight, 0),
    EPOCH,
    THEN,
};

static const struct sgp_field inquire_fields[] = {
    TEXT("source", inquire.source, source, 1),
    U64("source_lineage", inquire.source_lineage, 1, UINT64_MAX),
    TEXT("target", inquire.target, target, 1),
    U64("target_lineage", inquire.target_lineage, 1, UINT64_MAX),
    U64("number", inquire.number, 1, UINT64_MAX),
    EPOCH,
    THEN,
};

static const struct sgp_field answer_fields[] = {
    BOOL("known", answer.known),
    U64("lineage", answer.lineage, 0, UINT64_MAX),
    U64("number", answer.number, 0, UINT64_MAX),
    EPOCH,
    THEN,
};

static const struct sgp_field call_fields[] = {
    TEXT("source", call.source, source, 1),
    TEXT("target", call.target, target, 1),
    EPOCH,
    THEN,
};

static const struct sgp_field statement_fields[] = {
    {
        .name = "kind",
        .kind = SGP_FIELD_U32,
        PLACE(statement.kind),
        .least = SGP_STATEMENT_ENDS,
        .most = SGP_STATEMENT_KINDS,
    },
    ROUND("round", statement.round, 0),
    TEXT("author", statement.author, source, 1),
    TEXT("key", statement.key, target, 1),
    TEXT("signature", statement.signature, line, 1),
    EPOCH,
    THEN,
};

static const struct sgp_field fact_fields[] = {
    {
        .name = "kind",
        .kind = SGP_FIELD_U32,
        PLACE(fact.kind),
        .least = SGP_FACT_TOLD,
        .most = SGP_FACT_KINDS,
    },
    U64("number", fact.number, 1, UINT64_MAX),
    U64("members", fact.members, 0, UINT64_MAX),
    U32("count", fact.count),
    TEXT("author", fact.author, source, 1),
    TEXT("text", fact.text, line, 0),
    EPOCH,
    THEN,
};

static const struct sgp_field layout_fields[] = {
    {
        .name = "index",
        .kind = SGP_FIELD_U32,
        PLACE(layout.index),
        .most = SGP_LAYOUT_ENTRIES - 1,
    },
    U64("before", layout.before, 0, UINT64_MAX),
    TEXT("text", layout.text, line, 1),
    EPOCH,
    THEN,
};

#define LIST(fields) (*ret_count = sizeof fields / sizeof *(fields), (fields))

const struct sgp_field *sgp_fields_of_pulse(size_t *ret_count)
{
    return LIST(pulse_fields);
}

const struct sgp_field *sgp_fields_of(uint32_t type, size_t *ret_count)
{
    switch (type) {
    case SGP_HELLO:
        return LIST(hello_fields);
    case SGP_WELCOME:
        return LIST(welcome_fields);
    case SGP_BEAT:
        return LIST(beat_fields);
    case SGP_CREDIT:
        return LIST(credit_fields);
    case SGP_SHARE:
        return LIST(share_fields);
    case SGP_ACK:
        return LIST(ack_fields);
    case SGP_GOODBYE:
        return LIST(goodbye_fields);
    case SGP_ASK:
        return LIST(ask_fields);
    case SGP_ESTIMATE:
        return LIST(estimate_fields);
    case SGP_BEQUEATH:
        return LIST(bequeath_fields);
    case SGP_INQUIRE:
        return LIST(inquire_fields);
    case SGP_ANSWER:
        return LIST(answer_fields);
    case SGP_CALL:
        return LIST(call_fields);
    case SGP_STATEMENT:
        return LIST(statement_fields);
    case SGP_FACT:
        return LIST(fact_fields);
    case SGP_LAYOUT:
        return LIST(layout_fields);
    default:
        return NULL;
    }
}

static msgpack_object integer(uint64_t value)
{
    return (msgpack_object){.type = MSGPACK_OBJECT_POSITIVE_INTEGER, .via.u64 = value};
}

msgpack_object sgp_field_load(const struct sgp_field *field, const struct sgp_message *message)
{
    const void *place = (const char *)message + field->offset;
    switch (field->kind) {
    case SGP_FIELD_U64:
        return integer(*(const uint64_t *)place);
    case SGP_FIELD_U32:
        return integer(*(const uint32_t *)place);
    case SGP_FIELD_ROUND: {
        sgp_round round = *(const sgp_round *)place;
        /* Other negative rounds become huge, and are refused like any other above the limit. */
        return round == SGP_ROUND_NONE ? (msgpack_object){.type = MSGPACK_OBJECT_NIL}
                                       : integer((uint64_t)round);
    }
    case SGP_FIELD_BOOL:
        return (msgpack_object){
            .type = MSGPACK_OBJECT_BOOLEAN, .via.boolean = *(const bool *)place};
    case SGP_FIELD_REAL:
        return (msgpack_object){.type = MSGPACK_OBJECT_FLOAT64, .via.f64 = *(const double *)place};
    case SGP_FIELD_FLOAT:
        return (msgpack_object){
            .type = MSGPACK_OBJECT_FLOAT64, .via.f64 = (double)*(const float *)place};
    case SGP_FIELD_STATE:
        return integer(*(const enum sgp_node_state *)place);
    case SGP_FIELD_REASON:
        return integer(*(const enum sgp_reason *)place);
    case SGP_FIELD_TEXT: {
        const char *string = *(const char *const *)place;
        return (msgpack_object){.type = MSGPACK_OBJECT_STR,
            .via.str = {.ptr = string, .size = (uint32_t)strnlen(string, field->most + 1)}};
    }
    }
    sgp_assert_failed("a field is of a known kind", __FILE__, __LINE__);
}

/* The length of the UTF-8 sequence at s[0..count), or 0 if it is not the shortest form of a character,
 * or a control character (C0, DEL, C1). */
static size_t printable(const unsigned char *s, size_t count)
{
    if (s[0] < 0x80)
        return s[0] >= 0x20 && s[0] != 0x7f;
    size_t length = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    static const uint32_t least[] = {0, 0, 0xa0, 0x800, 0x10000};
    if (s[0] < 0xc2 || s[0] > 0xf4 || length > count)
        return 0;
    uint32_t character = s[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        character = character << 6 | (s[i] & 0x3fu);
    }
    bool surrogate = character >= 0xd800 && character < 0xe000;
    return character >= least[length] && character <= 0x10ffff && !surrogate ? length : 0;
}

static bool accepts_text(const struct sgp_field *field, const msgpack_object_str *string)
{
    if (string->size < field->least || string->size > field->most)
        return false;
    const unsigned char *bytes = (const unsigned char *)string->ptr;
    for (size_t at = 0, step; at < string->size; at += step)
        if ((step = printable(bytes + at, string->size - at)) == 0)
            return false;
    return true;
}

bool sgp_field_accepts(const struct sgp_field *field, const msgpack_object *value)
{
    switch (field->kind) {
    case SGP_FIELD_BOOL:
        return value->type == MSGPACK_OBJECT_BOOLEAN;
    case SGP_FIELD_REAL:
        return value->type == MSGPACK_OBJECT_FLOAT64 && isfinite(value->via.f64) &&
               value->via.f64 >= 0 && (field->most == 0 || value->via.f64 <= (double)field->most);
    case SGP_FIELD_FLOAT:
        return value->type == MSGPACK_OBJECT_FLOAT64 && isfinite((float)value->via.f64);
    case SGP_FIELD_TEXT:
        return value->type == MSGPACK_OBJECT_STR && accepts_text(field, &value->via.str);
    case SGP_FIELD_ROUND:
        if (value->type == MSGPACK_OBJECT_NIL)
            return field->least == SGP_ROUND_MAY_BE_NONE;
        return value->type == MSGPACK_OBJECT_POSITIVE_INTEGER && value->via.u64 <= field->most;
    default:
        return value->type == MSGPACK_OBJECT_POSITIVE_INTEGER && value->via.u64 >= field->least &&
               value->via.u64 <= field->most;
    }
}

void sgp_field_store(const struct sgp_field *field, const msgpack_object *value,
    struct sgp_wire_text *text, struct sgp_message *message)
{
    void *place = (char *)message + field->offset;
    switch (field->kind) {
    case SGP_FIELD_U64:
        *(uint64_t *)place = value->via.u64;
        break;
    case SGP_FIELD_U32:
        *(uint32_t *)place = (uint32_t)value->via.u64;
        break;
    case SGP_FIELD_ROUND:
        *(sgp_round *)place =
            value->type == MSGPACK_OBJECT_NIL ? SGP_ROUND_NONE : (sgp_round)value->via.u64;
        break;
    case SGP_FIELD_BOOL:
        *(bool *)place = value->via.boolean;
        break;
    case SGP_FIELD_REAL:
        *(double *)place = value->via.f64;
        break;
    case SGP_FIELD_FLOAT:
        *(float *)place = (float)value->via.f64;
        break;
    case SGP_FIELD_STATE:
        *(enum sgp_node_state *)place = (enum sgp_node_state)value->via.u64;
        break;
    case SGP_FIELD_REASON:
        *(enum sgp_reason *)place = (enum sgp_reason)value->via.u64;
        break;
    case SGP_FIELD_TEXT: {
        char *copy = (char *)text + field->text;
        if (value->via.str.size > 0) /* msgpack-c's empty string is at NULL */
            memcpy(copy, value->via.str.ptr, value->via.str.size);
        copy[value->via.str.size] = '\0';
        *(const char **)place = copy;
        break;
    }
    }
}

static const char *estimate_conflict(const struct sgp_estimate *estimate)
{
    const struct sgp_slice *slice = &estimate->slice;
    if (slice->first > SGP_PARAMETERS_MAX || slice->count > SGP_PARAMETERS_MAX - slice->first)
        return "its slice ends beyond the greatest number of parameters";
    if (slice->count > 0 && estimate->payload_bytes != 4 * slice->count)
        return "payload_bytes is not 4 * count";
    return NULL;
}

const char *sgp_fields_conflict(const struct sgp_message *message)
{
    if (message->type == SGP_ESTIMATE && message->estimate.payload_bytes % 4 != 0)
        return "payload_bytes is not a multiple of 4";
    if (message->type == SGP_ESTIMATE)
        return estimate_conflict(&message->estimate);
    if (message->type != SGP_SHARE)
        return NULL;
    const struct sgp_share *share = &message->share;
    if (share->slice.count > SGP_PARAMETERS_MAX - share->slice.first)
        return "its slice ends beyond the greatest number of parameters";
    if (share->payload_bytes != (share->fraction > 0 ? 4 * share->slice.count : 0))
        return "payload_bytes is not 4 * count, or 0 for an empty share";
    if (!(share->fraction > 0) && share->weight > 0)
        return "an empty share carries weight";
    return NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The schemas of all messages: docs/PROTOCOL.md as a table. */
#include "wire/fields.h"

#include <string.h>

#define ANY SGP_SCHEMA_ANY
#define NUMBER 1, UINT64_MAX
#define LABEL 0, SGP_ROUND_MAX
#define LABEL_OR_NONE SGP_ROUND_NONE, SGP_ROUND_MAX
#define NAME 1, SGP_NAME_BYTES - 1
#define LINE(least) least, SGP_GOODBYE_BYTES - 1
#define REASON SGP_REASON_NONE, SGP_REASON_FORGOT - 1
_Static_assert(
    SGP_FACT_BYTES == SGP_GOODBYE_BYTES && SGP_LAYOUT_BYTES == SGP_GOODBYE_BYTES, "a line");

/* ---- fields common to messages ---- */

#define PULSE(label, member, ...) SGP_FIELD(struct sgp_pulse, label, member, __VA_ARGS__)
static const struct sgp_schema_field pulse_fields[] = {
    PULSE("state", state, SGP_NODE_JOINING, SGP_NODE_DRAINING),
    PULSE("computing", computing, ANY),
    PULSE("round", round, LABEL),
    PULSE("next_round", next_round, LABEL_OR_NONE),
    PULSE("ends", ends, LABEL),
    PULSE("stop", stop, LABEL_OR_NONE),
};
static const struct sgp_schema pulse_schema = SGP_SCHEMA(struct sgp_pulse, pulse_fields);
_Static_assert(sizeof pulse_fields / sizeof *pulse_fields == SGP_PULSE_VALUES, "all of it");

/* These fields are last, because nodes without exact cycles omit them. */
static const struct sgp_schema_field cycle_fields[] = {
    PULSE("epoch", epoch.number, ANY),
    PULSE("epoch_start", epoch.start, LABEL),
    PULSE("epoch_topology", epoch.topology, ANY),
    PULSE("then_round", then_round, LABEL),
};
static const struct sgp_schema cycle_schema = SGP_SCHEMA(struct sgp_pulse, cycle_fields);

#define PRINT(member, ...) SGP_FIELD(struct sgp_fingerprint, #member, member, __VA_ARGS__)
static const struct sgp_schema_field fingerprint_fields[] = {
    PRINT(shape, ANY),
    PRINT(loss, ANY),
    PRINT(classes, ANY),
    PRINT(scaling, ANY),
    PRINT(method, ANY),
    PRINT(topology, ANY),
    PRINT(learning_rate, 0, UINT64_MAX),
    PRINT(batch, ANY),
    PRINT(data, ANY),
    PRINT(run, ANY),
};
const struct sgp_schema sgp_fingerprint_schema =
    SGP_SCHEMA(struct sgp_fingerprint, fingerprint_fields);

static const struct sgp_schema_field slice_fields[] = {
    SGP_FIELD(struct sgp_slice, "first", first, 0, SGP_PARAMETERS_MAX),
    SGP_FIELD(struct sgp_slice, "count", count, 0, SGP_PARAMETERS_MAX),
};
static const struct sgp_schema slice_schema = SGP_SCHEMA(struct sgp_slice, slice_fields);

/* ---- the messages ---- */

#define FIELD(label, member, ...) SGP_FIELD(struct sgp_message, label, member, __VA_ARGS__)
#define PART(member, schema) SGP_PART(struct sgp_message, member, schema)
#define BEGIN PART(pulse, &pulse_schema)
#define END PART(pulse, &cycle_schema)

static const struct sgp_schema_field hello_fields[] = {
    BEGIN,
    FIELD("source", hello.source, NAME),
    FIELD("target", hello.target, NAME),
    FIELD("incarnation", hello.incarnation, NUMBER),
    FIELD("parameters", hello.parameters, 1, SGP_PARAMETERS_MAX),
    PART(hello.fingerprint, &sgp_fingerprint_schema),
    FIELD("target_incarnation", hello.target_incarnation, ANY),
    FIELD("acknowledged", hello.acknowledged, ANY),
    END,
};

static const struct sgp_schema_field welcome_fields[] = {
    BEGIN,
    FIELD("target", welcome.target, NAME),
    FIELD("incarnation", welcome.incarnation, NUMBER),
    FIELD("accepted", welcome.accepted, ANY),
    PART(welcome.fingerprint, &sgp_fingerprint_schema),
    FIELD("codings", welcome.codings, ANY),
    END,
    FIELD("rows", welcome.rows, ANY),
};

static const struct sgp_schema_field beat_fields[] = {
    BEGIN,
    FIELD("mixes", beat.mixes, LABEL),
    FIELD("ended", beat.ended, ANY),
    FIELD("empty", beat.empty, ANY),
    SGP_FIELDS(struct sgp_message, "sketch", beat.sketch.values, ANY),
    END,
};

static const struct sgp_schema_field credit_fields[] = {
    BEGIN,
    FIELD("round", credit.round, LABEL),
    END,
};

static const struct sgp_schema_field share_fields[] = {
    BEGIN,
    FIELD("number", share.number, NUMBER),
    FIELD("round", share.round, LABEL),
    FIELD("fraction", share.fraction, 0, 1),
    FIELD("weight", share.weight, 0, UINT64_MAX),
    PART(share.slice, &slice_schema),
    FIELD("payload_bytes", share.payload_bytes, 0, sizeof(float) * SGP_PARAMETERS_MAX),
    FIELD("asks", share.asks, ANY),
    FIELD("bequest", share.bequest, 0, SGP_NODES_MAX),
    FIELD("update", share.update, ANY),
    FIELD("rate", share.rate, 0, SGP_RATE_MAX),
    FIELD("heavy", share.heavy, LABEL),
    FIELD("light", share.light, LABEL),
    FIELD("coding", share.coding, SGP_CODING_NONE, SGP_CODING_MOST),
    END,
};

static const struct sgp_schema_field ack_fields[] = {
    BEGIN,
    FIELD("number", ack.number, NUMBER),
    FIELD("reason", ack.reason, REASON),
    END,
};

static const struct sgp_schema_field goodbye_fields[] = {
    BEGIN,
    FIELD("reason", goodbye.reason, REASON),
    FIELD("text", goodbye.text, LINE(0)),
    END,
};

static const struct sgp_schema_field ask_fields[] = {
    BEGIN,
    FIELD("wants", ask.wants, ANY),
    FIELD("newer", ask.newer, LABEL),
    FIELD("holds", ask.holds, ANY),
    FIELD("digest", ask.digest, ANY),
    END,
};

static const struct sgp_schema_field estimate_fields[] = {
    BEGIN,
    FIELD("round", estimate.round, LABEL),
    FIELD("weight", estimate.weight, 0, UINT64_MAX),
    FIELD("payload_bytes", estimate.payload_bytes, 0, sizeof(float) * SGP_PARAMETERS_MAX),
    PART(estimate.slice, &slice_schema),
    FIELD("coding", estimate.coding, SGP_CODING_NONE, SGP_CODING_MOST),
    FIELD("since", estimate.since, LABEL),
    FIELD("same", estimate.same, ANY),
    FIELD("former", estimate.former, ANY),
    FIELD("untrained", estimate.untrained, ANY),
    END,
};

static const struct sgp_schema_field bequeath_fields[] = {
    BEGIN,
    FIELD("kind", bequeath.kind, SGP_BEQUEATH_ACCEPTED, SGP_BEQUEATH_UNKNOWN),
    FIELD("source", bequeath.source, NAME),
    FIELD("source_incarnation", bequeath.source_incarnation, NUMBER),
    FIELD("target", bequeath.target, NAME),
    FIELD("target_incarnation", bequeath.target_incarnation, NUMBER),
    FIELD("number", bequeath.number, ANY),
    FIELD("weight", bequeath.weight, 0, UINT64_MAX),
    END,
};

static const struct sgp_schema_field inquire_fields[] = {
    BEGIN,
    FIELD("source", inquire.source, NAME),
    FIELD("source_incarnation", inquire.source_incarnation, NUMBER),
    FIELD("target", inquire.target, NAME),
    FIELD("target_incarnation", inquire.target_incarnation, NUMBER),
    FIELD("number", inquire.number, NUMBER),
    END,
};

static const struct sgp_schema_field answer_fields[] = {
    BEGIN,
    FIELD("known", answer.known, ANY),
    FIELD("incarnation", answer.incarnation, ANY),
    FIELD("number", answer.number, ANY),
    END,
};

static const struct sgp_schema_field call_fields[] = {
    BEGIN,
    FIELD("source", call.source, NAME),
    FIELD("target", call.target, NAME),
    END,
};

static const struct sgp_schema_field statement_fields[] = {
    BEGIN,
    FIELD("kind", statement.kind, SGP_STATEMENT_ENDS, SGP_STATEMENT_KINDS),
    FIELD("round", statement.round, LABEL),
    FIELD("author", statement.author, NAME),
    FIELD("key", statement.key, NAME),
    FIELD("signature", statement.signature, LINE(1)),
    END,
};

static const struct sgp_schema_field fact_fields[] = {
    BEGIN,
    FIELD("kind", fact.kind, SGP_FACT_TOLD, SGP_FACT_KINDS),
    FIELD("number", fact.number, NUMBER),
    FIELD("members", fact.members, ANY),
    FIELD("count", fact.count, ANY),
    FIELD("author", fact.author, NAME),
    FIELD("text", fact.text, LINE(0)),
    END,
};

static const struct sgp_schema_field layout_fields[] = {
    BEGIN,
    FIELD("index", layout.index, 0, SGP_LAYOUT_ENTRIES - 1),
    FIELD("before", layout.before, ANY),
    FIELD("text", layout.text, LINE(1)),
    END,
};

static const struct sgp_schema_field bulletin_fields[] = {
    BEGIN,
    FIELD("kind", bulletin.kind, SGP_BULLETIN_FIGURES, SGP_BULLETIN_KINDS),
    FIELD("author", bulletin.author, NAME),
    FIELD("stamp", bulletin.stamp, ANY),
    FIELD("digest", bulletin.digest, ANY),
    FIELD("bytes", bulletin.bytes, 0, SGP_BULLETIN_MAX),
    FIELD("first", bulletin.first, 0, SGP_BULLETIN_MAX),
    FIELD("text", bulletin.text, 0, SGP_BULLETIN_PIECE_MAX),
    END,
};

static const struct sgp_schema_field pull_fields[] = {
    BEGIN,
    FIELD("source", pull.source, NAME),
    FIELD("target", pull.target, NAME),
    FIELD("heads", pull.heads, 0, SGP_PULL_HEADS_MAX),
    FIELD("subject", pull.subject, ANY),
    FIELD("wish", pull.wish, ANY),
    FIELD("wish_ms", pull.wish_ms, 0, SGP_WISH_MS_MAX),
    END,
};

static const struct sgp_schema_field versions_fields[] = {
    SGP_FIELD(struct sgp_summary, "wants", wants, ANY),
    SGP_FIELDS(struct sgp_summary, "nodes", nodes, ANY),
    SGP_FIELDS(struct sgp_summary, "versions", versions, ANY),
};
static const struct sgp_schema versions_schema = SGP_SCHEMA(struct sgp_summary, versions_fields);

static const struct sgp_schema_field summary_fields[] = {
    BEGIN,
    SGP_BORROWED_PART(struct sgp_message, summary, &versions_schema),
    END,
};

static const struct sgp_schema_field row_fields[] = {
    BEGIN,
    FIELD("author", row.author, NAME),
    FIELD("version", row.version, NUMBER),
    FIELD("text", row.text, 1, SGP_ROW_TEXT_BYTES - 1),
    FIELD("key", row.key, 0, SGP_ROW_KEY_BYTES - 1),
    FIELD("signature", row.signature, 0, SGP_ROW_SIGNATURE_BYTES - 1),
    FIELD("age_ms", row.age_ms, 0, SGP_ROW_AGE_MAX),
    END,
};

static const struct sgp_schema_field join_fields[] = {
    BEGIN,
    FIELD("fleet", join.fleet, NAME),
    FIELD("name", join.name, NAME),
    FIELD("address", join.address, 1, SGP_JOIN_ADDRESS_BYTES - 1),
    FIELD("number", join.number, ANY),
    FIELD("proof", join.proof, SGP_PROOF_TEXT_BYTES - 1, SGP_PROOF_TEXT_BYTES - 1),
    FIELD("first", join.first, 0, SGP_JOINED_MAX),
    END,
};

static const struct sgp_schema_field joined_fields[] = {
    BEGIN,
    FIELD("verdict", joined.verdict, SGP_JOIN_ACCEPTED, SGP_JOIN_VERDICTS),
    FIELD("bytes", joined.bytes, 0, SGP_JOINED_MAX),
    FIELD("split", joined.split, 0, SGP_JOINED_MAX),
    FIELD("first", joined.first, 0, SGP_JOINED_MAX),
    FIELD("text", joined.text, 0, SGP_JOINED_PIECE_MAX),
    END,
};

#define MESSAGE(fields) SGP_SCHEMA(struct sgp_message, fields)
static const struct sgp_schema schemas[] = {
    [SGP_HELLO] = MESSAGE(hello_fields),
    [SGP_WELCOME] = MESSAGE(welcome_fields),
    [SGP_BEAT] = MESSAGE(beat_fields),
    [SGP_CREDIT] = MESSAGE(credit_fields),
    [SGP_SHARE] = MESSAGE(share_fields),
    [SGP_ACK] = MESSAGE(ack_fields),
    [SGP_GOODBYE] = MESSAGE(goodbye_fields),
    [SGP_ASK] = MESSAGE(ask_fields),
    [SGP_ESTIMATE] = MESSAGE(estimate_fields),
    [SGP_BEQUEATH] = MESSAGE(bequeath_fields),
    [SGP_INQUIRE] = MESSAGE(inquire_fields),
    [SGP_ANSWER] = MESSAGE(answer_fields),
    [SGP_CALL] = MESSAGE(call_fields),
    [SGP_STATEMENT] = MESSAGE(statement_fields),
    [SGP_FACT] = MESSAGE(fact_fields),
    [SGP_LAYOUT] = MESSAGE(layout_fields),
    [SGP_BULLETIN] = MESSAGE(bulletin_fields),
    [SGP_PULL] = MESSAGE(pull_fields),
    [SGP_SUMMARY] = MESSAGE(summary_fields),
    [SGP_ROW] = MESSAGE(row_fields),
    [SGP_JOIN] = MESSAGE(join_fields),
    [SGP_JOINED] = MESSAGE(joined_fields),
};
_Static_assert(
    sizeof schemas / sizeof *schemas == SGP_MESSAGE_TYPES + 1, "every message has a schema");

const struct sgp_schema *sgp_message_schema(uint32_t type)
{
    return type <= SGP_MESSAGE_TYPES && schemas[type].count > 0 ? &schemas[type] : NULL;
}

/* ---- conflicts between fields ---- */

static const char *estimate_conflict(const struct sgp_estimate *estimate)
{
    const struct sgp_slice *slice = &estimate->slice;
    if (estimate->same != (estimate->payload_bytes == 0))
        return "payload_bytes is 0 if the receiver has the same values, and only then";
    if (estimate->same && (slice->count > 0 || estimate->coding != SGP_CODING_NONE))
        return "a part or a change, of values that the receiver has";
    if (estimate->payload_bytes % 4 != 0)
        return "payload_bytes is not a multiple of 4";
    if (slice->count > SGP_PARAMETERS_MAX - slice->first)
        return "its slice ends beyond the greatest number of parameters";
    if (slice->count > 0 &&
        !sgp_coding_may_have(estimate->coding, slice->count, estimate->payload_bytes))
        return "payload_bytes is not that of count values";
    if (estimate->coding != SGP_CODING_NONE && slice->count == 0)
        return "a change does not say of which values it is";
    return NULL;
}

static const char *share_conflict(const struct sgp_share *share)
{
    if (share->slice.count > SGP_PARAMETERS_MAX - share->slice.first)
        return "its slice ends beyond the greatest number of parameters";
    bool fits = share->fraction > 0
                    ? sgp_coding_may_have(share->coding, share->slice.count, share->payload_bytes)
                    : share->payload_bytes == 0;
    if (!fits)
        return "payload_bytes is not that of count values, or 0 for an empty share";
    if (!(share->fraction > 0) && share->weight > 0)
        return "an empty share carries weight";
    return NULL;
}

static const char *bulletin_conflict(const struct sgp_bulletin *bulletin)
{
    return bulletin->first + strlen(bulletin->text) > bulletin->bytes
               ? "its piece ends beyond its text"
               : NULL;
}

static const char *joined_conflict(const struct sgp_joined *joined)
{
    if (joined->split > joined->bytes)
        return "the topology file is longer than both texts";
    return joined->first + strlen(joined->text) > joined->bytes ? "its piece ends beyond the texts"
                                                                : NULL;
}

const char *sgp_message_conflict(const struct sgp_message *message)
{
    switch (message->type) {
    case SGP_SHARE:
        return share_conflict(&message->share);
    case SGP_ESTIMATE:
        return estimate_conflict(&message->estimate);
    case SGP_BULLETIN:
        return bulletin_conflict(&message->bulletin);
    case SGP_JOINED:
        return joined_conflict(&message->joined);
    default:
        return NULL;
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the values of a record. The length of every list is limited by the remaining bytes of the
 * file. */
#include "journal/read.h"

#include "sgp/dot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- values ---- */

static int get_field(void *context, const struct sgp_schema_field *field, void *place)
{
    struct sgp_unpacker *reader = context;
    msgpack_object value;
    return sgp_unpack(reader, &value) && sgp_unpack_store(reader, field, &value, place) ? 0 : -1;
}

static bool get(struct sgp_unpacker *reader, const struct sgp_schema *schema, void *structure)
{
    return sgp_schema_walk(schema, structure, get_field, reader) == 0;
}

static bool get_i64(struct sgp_unpacker *reader, int64_t *ret_number)
{
    static const struct sgp_schema_field field = {
        .kind = SGP_SCHEMA_I64, .least = INT64_MIN, .most = UINT64_MAX};
    return get_field(reader, &field, ret_number) == 0;
}

static bool get_u64(struct sgp_unpacker *reader, uint64_t *ret_number)
{
    static const struct sgp_schema_field field = {.kind = SGP_SCHEMA_U64, .most = UINT64_MAX};
    return get_field(reader, &field, ret_number) == 0;
}

static bool get_bool(struct sgp_unpacker *reader, bool *ret_bool)
{
    static const struct sgp_schema_field field = {.kind = SGP_SCHEMA_BOOL};
    return get_field(reader, &field, ret_bool) == 0;
}

static bool get_bytes(struct sgp_unpacker *reader, const uint8_t **ret_bytes, size_t *ret_count)
{
    msgpack_object value;
    if (!sgp_unpack(reader, &value) || value.type != MSGPACK_OBJECT_BIN)
        return false;
    *ret_bytes = (const uint8_t *)value.via.bin.ptr;
    *ret_count = value.via.bin.size;
    return true;
}

/* A text of at most this number of bytes, with its terminating zero. */
static bool get_text(struct sgp_unpacker *reader, char *text, size_t capacity)
{
    const uint8_t *bytes;
    size_t count;
    if (!get_bytes(reader, &bytes, &count) || count >= capacity)
        return false;
    if (count > 0)
        memcpy(text, bytes, count);
    text[count] = '\0';
    return strlen(text) == count;
}

static int wrong(struct sgp_error *why, const char *what)
{
    return sgp_fail(why, SGP_E_FILE, "%s is missing, of another type or out of range", what);
}

static int get_end(const struct sgp_unpacker *reader, struct sgp_error *why)
{
    if (reader->at == reader->count)
        return 0;
    return sgp_fail(why, SGP_E_FILE, "%zu bytes follow the last value of the record",
        reader->count - reader->at);
}

int sgp_journal_kind_of(struct sgp_unpacker *reader)
{
    int64_t kind;
    return get_i64(reader, &kind) && kind >= SGP_JOURNAL_START && kind <= SGP_JOURNAL_RELOAD
               ? (int)kind
               : 0;
}

/* ---- content of a record ---- */

static int get_topology(
    struct sgp_unpacker *reader, struct sgp_topology **ret_topology, struct sgp_error *why)
{
    uint64_t digest;
    const uint8_t *text;
    size_t bytes;
    if (!get_u64(reader, &digest) || !get_bytes(reader, &text, &bytes))
        return wrong(why, "the topology");
    int code = sgp_dot_parse((const char *)text, bytes, "its topology", why, ret_topology);
    if (code < 0)
        return code == -ENOMEM ? code : SGP_E_FILE;
    (*ret_topology)->digest = digest;
    return 0;
}

static int get_record(
    struct sgp_unpacker *reader, struct sgp_journal_process *process, struct sgp_error *why)
{
    struct sgp_record *record = &process->record;
    bool present;
    if (!get_bool(reader, &present) || (present && !get(reader, &sgp_record_schema, record)))
        return wrong(why, "the record of the former process");
    if (!present)
        return 0;
    size_t left = reader->count - reader->at; /* a field has at least one byte */
    if (record->link_count > left / sgp_record_link_schema.count ||
        record->account_count > left / sgp_account_schema.count)
        return wrong(why, "a list of the record of the former process");
    record->links = calloc(record->link_count + 1u, sizeof *record->links);
    record->accounts = calloc(record->account_count + 1u, sizeof *record->accounts);
    if (record->links == NULL || record->accounts == NULL)
        return -ENOMEM;
    record->link_capacity = record->link_count;
    record->account_capacity = record->account_count;
    bool whole = true;
    for (uint32_t i = 0; whole && i < record->link_count; i++)
        whole = get(reader, &sgp_record_link_schema, &record->links[i]);
    for (uint32_t i = 0; whole && i < record->account_count; i++)
        whole = get(reader, &sgp_account_schema, &record->accounts[i]);
    process->config.record = record;
    return whole ? 0 : wrong(why, "an entry of the record of the former process");
}

void sgp_journal_process_finish(struct sgp_journal_process *process)
{
    sgp_topology_destroy(process->topology);
    free(process->record.links);
    free(process->record.accounts);
    *process = (struct sgp_journal_process){.topology = NULL};
}

int sgp_journal_get_start(
    struct sgp_unpacker *reader, struct sgp_journal_process *ret_process, struct sgp_error *why)
{
    struct sgp_journal_process *process = ret_process;
    *process = (struct sgp_journal_process){.topology = NULL};
    process->start.version = process->version;
    process->start.config = &process->config;
    if (!get_text(reader, process->version, sizeof process->version) ||
        !get_i64(reader, &process->start.date) || !get_i64(reader, &process->start.now))
        return wrong(why, "the version or the date");
    int code = get_topology(reader, &process->topology, why);
    if (code < 0)
        return code;
    char method[SGP_NAME_BYTES];
    if (!get_text(reader, method, sizeof method) ||
        (process->config.method = sgp_method_find(method)) == NULL)
        return wrong(why, "the algorithm");
    if (!get(reader, &sgp_journal_config, &process->config))
        return wrong(why, "a value of the node's configuration");
    process->config.topology = process->topology;
    code = get_record(reader, process, why);
    return code < 0 ? code : get_end(reader, why);
}

static int get_message(struct sgp_unpacker *reader, struct sgp_journal_said *said, bool *ret_any,
    struct sgp_error *why)
{
    const uint8_t *frame;
    size_t bytes;
    struct sgp_wire_header header;
    if (!get_bytes(reader, &frame, &bytes))
        return wrong(why, "the message");
    *ret_any = bytes > 0;
    if (bytes == 0)
        return 0;
    if (bytes < SGP_WIRE_HEADER_BYTES || sgp_wire_header_decode(frame, &header, NULL) < 0 ||
        header.type == SGP_WIRE_CHUNK || header.body_bytes != bytes - SGP_WIRE_HEADER_BYTES)
        return wrong(why, "the header of the message");
    int code = sgp_wire_body_decode(
        &header, frame + SGP_WIRE_HEADER_BYTES, &said->text, &said->message, why);
    return code < 0 ? SGP_E_FILE : 0;
}

int sgp_journal_get_event(struct sgp_unpacker *reader, struct sgp_journal_said *said,
    struct sgp_event *ret_event, struct sgp_error *why)
{
    bool any = false;
    *ret_event = (struct sgp_event){.message = NULL};
    if (!get(reader, &sgp_journal_event, ret_event))
        return wrong(why, "a value of the event");
    int code = get_message(reader, said, &any, why);
    if (code < 0)
        return code;
    ret_event->message = any ? &said->message : NULL;
    if (ret_event->type == SGP_EVENT_SKETCHED) {
        if (!get(reader, &sgp_journal_sketch, &said->sketch))
            return wrong(why, "the sketch");
        ret_event->sketch = &said->sketch;
    }
    return get_end(reader, why);
}

int sgp_journal_get_reload(struct sgp_unpacker *reader, sgp_time *ret_now,
    struct sgp_topology **ret_topology, struct sgp_node_change *ret_change, struct sgp_error *why)
{
    *ret_topology = NULL;
    if (!get_i64(reader, ret_now))
        return wrong(why, "the time");
    int code = get_topology(reader, ret_topology, why);
    if (code < 0)
        return code;
    ret_change->topology = *ret_topology;
    if (!get(reader, &sgp_journal_change, ret_change))
        return wrong(why, "a value of the reload");
    return get_end(reader, why);
}

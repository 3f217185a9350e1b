/* SPDX-License-Identifier: Apache-2.0 */
/* Writes inputs of a core as records. */
#include "journal/fields.h"
#include "wire/pack.h"

#include "sgp/dot.h"
#include "sgp/wire.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- bytes ---- */

/* A record under construction: space for its header, then its body so far. */
struct writer {
    struct sgp_journal *journal;
    msgpack_packer packer;
    size_t begin; /* start of the record */
    int code;     /* code of the first failure */
};

static int append(void *context, const char *bytes, size_t count)
{
    struct writer *writer = context;
    struct sgp_journal *journal = writer->journal;
    if (writer->code == 0 && count > journal->capacity - journal->count) {
        size_t capacity = 2 * (journal->count + count);
        void *grown = realloc(journal->bytes, capacity);
        if (grown == NULL) {
            writer->code = -ENOMEM;
        } else {
            journal->bytes = grown;
            journal->capacity = capacity;
        }
    }
    if (writer->code < 0)
        return writer->code;
    memcpy(journal->bytes + journal->count, bytes, count);
    journal->count += count;
    return 0;
}

static void begin(
    struct writer *writer, struct sgp_journal *journal, enum sgp_journal_record record)
{
    static const char header[SGP_JOURNAL_HEADER_BYTES];
    *writer = (struct writer){.journal = journal, .begin = journal->count};
    msgpack_packer_init(&writer->packer, writer, append);
    if (record == SGP_JOURNAL_START)
        (void)append(writer, SGP_JOURNAL_MARK, SGP_JOURNAL_MARK_BYTES);
    (void)append(writer, header, sizeof header);
    (void)msgpack_pack_int(&writer->packer, (int)record);
}

static void put_u32(uint8_t *bytes, uint32_t value)
{
    for (size_t i = 0; i < 4; i++)
        bytes[i] = (uint8_t)(value >> (8 * i));
}

/* Fill in the header, or remove what was written. */
static int finish(struct writer *writer, enum sgp_journal_record record)
{
    struct sgp_journal *journal = writer->journal;
    size_t at = writer->begin + (record == SGP_JOURNAL_START ? SGP_JOURNAL_MARK_BYTES : 0);
    size_t bytes = writer->code == 0 ? journal->count - at - SGP_JOURNAL_HEADER_BYTES : 0;
    if (bytes > SGP_JOURNAL_BODY_MAX)
        writer->code = SGP_E_LIMIT;
    if (writer->code < 0) {
        journal->count = writer->begin;
        return writer->code;
    }
    uint8_t *header = journal->bytes + at;
    put_u32(header, (uint32_t)bytes);
    put_u32(header + 4, sgp_wire_checksum(header + SGP_JOURNAL_HEADER_BYTES, bytes));
    put_u32(header + 8, sgp_wire_checksum(header, 8));
    return 0;
}

static int put_field(void *context, const struct sgp_schema_field *field, void *place)
{
    struct writer *writer = context;
    (void)sgp_pack(&writer->packer, field, place);
    return 0;
}

static void put(struct writer *writer, const struct sgp_schema *schema, const void *structure)
{
    (void)sgp_schema_walk(schema, structure, put_field, writer);
}

static void put_bytes(struct writer *writer, const void *bytes, size_t count)
{
    (void)msgpack_pack_bin(&writer->packer, count);
    if (count > 0)
        (void)msgpack_pack_bin_body(&writer->packer, bytes, count);
}

/* ---- content of a record ---- */

/* The topology as DOT, readable for people. The digest is that of the file, even if a method chose
 * the fractions. */
static void put_topology(struct writer *writer, const struct sgp_topology *topology)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *stream = open_memstream(&text, &bytes);
    int code = stream != NULL ? sgp_dot_write(stream, topology, NULL) : -ENOMEM;
    if (stream != NULL && fclose(stream) != 0 && code == 0)
        code = -ENOMEM;
    if (code == 0) {
        (void)msgpack_pack_uint64(&writer->packer, topology->digest);
        put_bytes(writer, text, bytes);
    } else if (writer->code == 0) {
        writer->code = code;
    }
    free(text);
}

static void put_record(struct writer *writer, const struct sgp_record *record)
{
    (void)(record != NULL ? msgpack_pack_true(&writer->packer)
                          : msgpack_pack_false(&writer->packer));
    if (record == NULL)
        return;
    put(writer, &sgp_record_schema, record);
    for (uint32_t i = 0; i < record->link_count; i++)
        put(writer, &sgp_record_link_schema, &record->links[i]);
    for (uint32_t i = 0; i < record->account_count; i++)
        put(writer, &sgp_account_schema, &record->accounts[i]);
}

int sgp_journal_put_start(struct sgp_journal *journal, const struct sgp_journal_start *start)
{
    struct writer writer;
    begin(&writer, journal, SGP_JOURNAL_START);
    put_bytes(&writer, start->version, strlen(start->version));
    (void)msgpack_pack_int64(&writer.packer, start->date);
    (void)msgpack_pack_int64(&writer.packer, start->now);
    put_topology(&writer, start->config->topology);
    put_bytes(&writer, start->config->method->name, strlen(start->config->method->name));
    put(&writer, &sgp_journal_config, start->config);
    put_record(&writer, start->config->record);
    return finish(&writer, SGP_JOURNAL_START);
}

int sgp_journal_put_event(struct sgp_journal *journal, const struct sgp_event *event)
{
    struct writer writer;
    uint8_t frame[SGP_WIRE_FRAME_MAX];
    size_t bytes = 0;
    int code =
        event->message != NULL ? sgp_wire_encode(event->message, frame, sizeof frame, &bytes) : 0;
    if (code < 0)
        return code;
    begin(&writer, journal, SGP_JOURNAL_EVENT);
    put(&writer, &sgp_journal_event, event);
    put_bytes(&writer, frame, bytes);
    if (event->type == SGP_EVENT_SKETCHED)
        put(&writer, &sgp_journal_sketch, event->sketch);
    return finish(&writer, SGP_JOURNAL_EVENT);
}

int sgp_journal_put_reload(
    struct sgp_journal *journal, sgp_time now, const struct sgp_node_change *change)
{
    struct writer writer;
    begin(&writer, journal, SGP_JOURNAL_RELOAD);
    (void)msgpack_pack_int64(&writer.packer, now);
    put_topology(&writer, change->topology);
    put(&writer, &sgp_journal_change, change);
    return finish(&writer, SGP_JOURNAL_RELOAD);
}

/* ---- text for people ---- */

void sgp_journal_head(char line[SGP_TEXT_BYTES], const struct sgp_journal_start *start)
{
    const struct sgp_node_config *config = start->config;
    time_t second = (time_t)(start->date / SGP_SECOND);
    struct tm utc;
    char date[32] = "?";
    if (start->date >= 0 && gmtime_r(&second, &utc) != NULL)
        (void)strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &utc);
    (void)snprintf(line, SGP_TEXT_BYTES,
        "t=%" PRId64 " node=%s event=process version=%s date=%s algorithm=%s seed=%" PRIu64
        " incarnation=%016" PRIx64 " topology=%016" PRIx64 " nodes=%" PRIu32 " rounds=%" PRId64
        " restored=%d seeks=%d",
        start->now, config->topology->nodes[config->self].name, start->version, date,
        config->method->name, config->seed, config->incarnation, config->topology->digest,
        config->topology->node_count, config->rounds, config->record != NULL, config->seeks);
}

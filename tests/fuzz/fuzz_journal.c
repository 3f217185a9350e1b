/* SPDX-License-Identifier: Apache-2.0 */
/* Records of an event journal, their checksums and those of the messages in them made good, so that the
 * fuzzer reaches what they hold and the core behind it: an input is bodies, each after its length (two bytes,
 * little-endian). A body that is a START begins a part. Whatever they say, the replay ends, and says why if it does not like it. The same bytes, as
 * they are, are a journal too. */
#include "sgp/journal.h"

#include "sgp/wire.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void hear(void *context, enum sgp_level level, const char *text)
{
    (void)context;
    (void)level;
    sgp_assert(strlen(text) < SGP_TEXT_BYTES);
}

static void replay(const uint8_t *bytes, size_t count)
{
    static const struct sgp_sink sink = {.line = hear, .level = SGP_LEVEL_TRACE};
    struct sgp_error error = {0};
    int code = sgp_journal_replay(bytes, count, "fuzz", &sink, &error);
    sgp_assert(code == error.code && (code == 0 || strncmp(error.text, "fuzz: byte ", 11) == 0));
}

static void put_u32(uint8_t *bytes, uint32_t value)
{
    for (size_t i = 0; i < 4; i++)
        bytes[i] = (uint8_t)(value >> (8 * i));
}

/* The message's frame, up to the end of the record. */
static void mend_message(uint8_t *body, size_t bytes)
{
    static const uint8_t magic[] = {0x9d, 'S', 'G', 'P'};
    uint8_t *frame = memmem(body, bytes, magic, sizeof magic);
    size_t left = frame != NULL ? bytes - (size_t)(frame - body) : 0;
    if (left < SGP_WIRE_HEADER_BYTES)
        return;
    size_t message = left - SGP_WIRE_HEADER_BYTES;
    put_u32(frame + 8, (uint32_t)message);
    put_u32(frame + 24, sgp_wire_checksum(frame + SGP_WIRE_HEADER_BYTES, message));
    put_u32(frame + 28, sgp_wire_checksum(frame, 28));
}

/* Returns the bytes of the record; `place` has room for 26 more than the body. */
static size_t put_record(uint8_t *place, const uint8_t *body, size_t bytes)
{
    size_t mark = bytes > 0 && body[0] == 1 ? strlen(SGP_JOURNAL_MARK) : 0;
    uint8_t *header = place + mark;
    memcpy(place, SGP_JOURNAL_MARK, mark);
    memcpy(header + 12, body, bytes);
    if (mark == 0)
        mend_message(header + 12, bytes);
    put_u32(header, (uint32_t)bytes);
    put_u32(header + 4, sgp_wire_checksum(header + 12, bytes));
    put_u32(header + 8, sgp_wire_checksum(header, 8));
    return mark + 12 + bytes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *journal = malloc(14 * size + 32);
    size_t count = 0;
    sgp_assert(journal != NULL);
    replay(data, size);
    while (size > 2) {
        size_t bytes = (size_t)data[0] | (size_t)data[1] << 8;
        bytes = bytes < size - 2 ? bytes : size - 2;
        count += put_record(journal + count, data + 2, bytes);
        data += 2 + bytes;
        size -= 2 + bytes;
    }
    replay(journal, count);
    free(journal);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the begin and end of records, and whether they are complete. */
#include "journal/read.h"

#include <inttypes.h>
#include <string.h>

static uint32_t get_u32(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
           (uint32_t)bytes[3] << 24;
}

int sgp_journal_check(const uint8_t *bytes, size_t count, const char *name, struct sgp_error *error)
{
    const size_t number = SGP_JOURNAL_MARK_BYTES - 2; /* position of the format's number */
    if (count == 0 || (count >= SGP_JOURNAL_MARK_BYTES &&
                          memcmp(bytes, SGP_JOURNAL_MARK, SGP_JOURNAL_MARK_BYTES) == 0))
        return 0;
    if (count >= number && memcmp(bytes, SGP_JOURNAL_MARK, number) == 0)
        return sgp_fail(error, SGP_E_FILE,
            "%s: byte 0: an event journal of another format than this program's, which is "
            "\"%.*s\"; use "
            "the program that wrote it",
            name, (int)SGP_JOURNAL_MARK_BYTES - 1, SGP_JOURNAL_MARK);
    return sgp_fail(error, SGP_E_FILE, "%s: byte 0: not an event journal; one begins with \"%.*s\"",
        name, (int)SGP_JOURNAL_MARK_BYTES - 1, SGP_JOURNAL_MARK);
}

/* The fault of the record at `at`; NULL: none. *ret_end is its end, as far as that is known,
 * otherwise SIZE_MAX. */
static const char *fault_of(const struct sgp_journal_scan *scan, size_t at, size_t *ret_end)
{
    size_t left = scan->count - at;
    const uint8_t *header = scan->bytes + at;
    *ret_end = SIZE_MAX;
    if (left < SGP_JOURNAL_HEADER_BYTES)
        return "a record's header is cut off";
    if (sgp_wire_checksum(header, 8) != get_u32(header + 8))
        return "the checksum of a record's header does not match";
    uint32_t bytes = get_u32(header);
    if (bytes == 0 || bytes > SGP_JOURNAL_BODY_MAX)
        return "a record is empty, or longer than any can be";
    *ret_end = at + SGP_JOURNAL_HEADER_BYTES + bytes;
    if (bytes > left - SGP_JOURNAL_HEADER_BYTES)
        return "a record is cut off";
    if (sgp_wire_checksum(header + SGP_JOURNAL_HEADER_BYTES, bytes) != get_u32(header + 4))
        return "the checksum of a record does not match";
    return NULL;
}

/* Where the next part begins, or the end of the file. */
static size_t next_part(const struct sgp_journal_scan *scan, size_t from)
{
    const uint8_t *mark =
        memmem(scan->bytes + from, scan->count - from, SGP_JOURNAL_MARK, SGP_JOURNAL_MARK_BYTES);
    return mark != NULL ? (size_t)(mark - scan->bytes) : scan->count;
}

static bool is_zero(const uint8_t *bytes, size_t count)
{
    while (count > 0 && bytes[count - 1] == 0)
        count--;
    return count == 0;
}

/* Whether bytes[at..limit) is the begin of an incomplete record. Either it is shorter than it
 * announces, or its space was allocated but not written (after a loss of power). */
static bool is_cut(const struct sgp_journal_scan *scan, size_t at, size_t end, size_t limit)
{
    size_t bytes = limit - at;
    bool of_mark =
        bytes < SGP_JOURNAL_MARK_BYTES && memcmp(scan->bytes + at, SGP_JOURNAL_MARK, bytes) == 0;
    return bytes < SGP_JOURNAL_HEADER_BYTES || of_mark || is_zero(scan->bytes + at, bytes) ||
           (end != SIZE_MAX && end > limit);
}

static bool has_mark(const struct sgp_journal_scan *scan)
{
    return scan->count - scan->at >= SGP_JOURNAL_MARK_BYTES &&
           memcmp(scan->bytes + scan->at, SGP_JOURNAL_MARK, SGP_JOURNAL_MARK_BYTES) == 0;
}

int sgp_journal_next(
    struct sgp_journal_scan *scan, struct sgp_journal_found *ret_found, struct sgp_error *error)
{
    struct sgp_journal_found found = {.cut_at = SIZE_MAX};
    while (scan->at < scan->count) {
        found.begins = has_mark(scan);
        found.at = scan->at + (found.begins ? SGP_JOURNAL_MARK_BYTES : 0);
        size_t end;
        const char *fault = fault_of(scan, found.at, &end);
        if (fault == NULL) {
            found.body = scan->bytes + found.at + SGP_JOURNAL_HEADER_BYTES;
            found.bytes = end - found.at - SGP_JOURNAL_HEADER_BYTES;
            scan->at = end;
            *ret_found = found;
            return 0;
        }
        size_t limit = next_part(scan, found.at);
        if (!is_cut(scan, found.at, end, limit))
            return sgp_fail(error, SGP_E_FILE, "%s: byte %zu: %s; the journal is damaged there",
                scan->name, found.at, fault);
        found.cut_at = scan->at;
        scan->at = limit;
    }
    found.ended = true;
    *ret_found = found;
    return 0;
}

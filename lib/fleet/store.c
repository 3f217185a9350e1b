/* SPDX-License-Identifier: Apache-2.0 */
/* The rows that a node holds: which one counts, and how old it is; see sgp/fleet.h. */
#include "inside.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#define AHEAD_SECONDS_MAX 86400u /* by which clocks of two nodes may differ */
#define STALE_LEAST (10 * SGP_SECOND)
#define STALE_INTERVALS 3
#define NODES_A_SECOND 12u /* so rows take the same time of a node in any fleet */
#define SIGNED_BYTES (SGP_ROW_TEXT_BYTES + SGP_NAME_BYTES + 64u)

uint64_t sgp_fleet_name_digest(const char *name)
{
    const uint64_t digest = XXH3_64bits_withSeed(name, strlen(name), 0);
    return digest != 0 ? digest : 1;
}

uint32_t sgp_fleet_interval(uint32_t count)
{
    const uint32_t interval = (uint32_t)((uint64_t)count * 1000 / NODES_A_SECOND);
    return interval < SGP_FLEET_INTERVAL_LEAST ? SGP_FLEET_INTERVAL_LEAST
           : interval > SGP_FLEET_INTERVAL_MAX ? SGP_FLEET_INTERVAL_MAX
                                               : interval;
}

uint64_t sgp_fleet_bytes(uint32_t nodes, uint32_t links)
{
    const uint64_t rows = nodes < SGP_FLEET_ROWS_MAX ? nodes : SGP_FLEET_ROWS_MAX;
    const uint64_t bits = 2 * SGP_FLEET_ROWS_MAX / 8;
    return rows * (sizeof(struct sgp_fleet_held) + sizeof(uint32_t)) +
           links * (sizeof(struct sgp_fleet_link) + bits);
}

/* ---- nodes ---- */

struct sgp_fleet *sgp_fleet_create(const struct sgp_fleet_settings *settings)
{
    struct sgp_fleet *fleet = calloc(1, sizeof *fleet);
    if (fleet == NULL)
        return NULL;
    fleet->settings = *settings;
    (void)snprintf(fleet->name, sizeof fleet->name, "%s", settings->self);
    fleet->settings.self = fleet->name;
    fleet->version = (uint64_t)settings->incarnation << 32;
    fleet->self = fleet->first = fleet->last = NO_ROW;
    return fleet;
}

void sgp_fleet_destroy(struct sgp_fleet *fleet)
{
    if (fleet == NULL)
        return;
    while (fleet->links != NULL)
        sgp_fleet_close(fleet->links);
    free(fleet->rows);
    free(fleet->by_digest);
    free(fleet);
}

static int by_digest(const void *a, const void *b, void *context)
{
    const struct sgp_fleet_held *rows = context;
    const uint64_t x = rows[*(const uint32_t *)a].digest, y = rows[*(const uint32_t *)b].digest;
    return x < y ? -1 : x > y;
}

uint32_t sgp_fleet_find(const struct sgp_fleet *fleet, uint64_t digest)
{
    uint32_t low = 0;
    for (uint32_t high = fleet->count; low < high;) {
        const uint32_t middle = low + (high - low) / 2;
        if (fleet->rows[fleet->by_digest[middle]].digest < digest)
            low = middle + 1;
        else
            high = middle;
    }
    const uint32_t index = low < fleet->count ? fleet->by_digest[low] : NO_ROW;
    return index != NO_ROW && fleet->rows[index].digest == digest ? index : NO_ROW;
}

static uint32_t find_name(const struct sgp_fleet *fleet, const char *name)
{
    const uint32_t index = sgp_fleet_find(fleet, sgp_fleet_name_digest(name));
    return index != NO_ROW && strcmp(fleet->rows[index].name, name) == 0 ? index : NO_ROW;
}

/* ---- the order in which rows came ---- */

static void take_out(struct sgp_fleet *fleet, const struct sgp_fleet_held *held)
{
    if (held->before != NO_ROW)
        fleet->rows[held->before].after = held->after;
    else
        fleet->first = held->after;
    if (held->after != NO_ROW)
        fleet->rows[held->after].before = held->before;
    else
        fleet->last = held->before;
}

static void append(struct sgp_fleet *fleet, uint32_t index)
{
    struct sgp_fleet_held *held = &fleet->rows[index];
    held->sequence = ++fleet->sequence;
    held->before = fleet->last;
    held->after = NO_ROW;
    if (fleet->last != NO_ROW)
        fleet->rows[fleet->last].after = index;
    else
        fleet->first = index;
    fleet->last = index;
}

/* ---- rows ---- */

struct sgp_row sgp_fleet_row_of(const struct sgp_fleet_held *held, sgp_time now)
{
    const uint64_t age = (uint64_t)((held->age + (now - held->since)) / SGP_MILLISECOND);
    return (struct sgp_row){.author = held->name,
        .version = held->version,
        .text = held->text,
        .key = held->key,
        .signature = held->signature,
        .age_ms = age < SGP_ROW_AGE_MAX ? age : SGP_ROW_AGE_MAX};
}

/* The signed bytes of a row; docs/PROTOCOL.md. */
static size_t signed_bytes(
    const struct sgp_fleet *fleet, const struct sgp_row *row, char bytes[SIGNED_BYTES])
{
    const int count =
        snprintf(bytes, SIGNED_BYTES, "sgpd row\n%016" PRIx64 "\n%s\n%" PRIu64 "\n%s\n",
            fleet->settings.model, row->author, row->version, row->text);
    sgp_assert(count > 0 && (size_t)count < SIGNED_BYTES);
    return (size_t)count;
}

/* Looking up the key is cheap, so it comes first. */
static bool is_provable(const struct sgp_fleet *fleet, const struct sgp_row *row)
{
    const struct sgp_fleet_settings *settings = &fleet->settings;
    char bytes[SIGNED_BYTES];
    return row->key[0] != '\0' && settings->has_key(settings->context, row) &&
           settings->verify(settings->context, row, bytes, signed_bytes(fleet, row, bytes));
}

static void hold(struct sgp_fleet *fleet, uint32_t index, const struct sgp_row *row,
    uint32_t interval_ms, uint32_t source, sgp_time now)
{
    struct sgp_fleet_held *held = &fleet->rows[index];
    (void)snprintf(held->text, sizeof held->text, "%s", row->text);
    (void)snprintf(held->key, sizeof held->key, "%s", row->key);
    (void)snprintf(held->signature, sizeof held->signature, "%s", row->signature);
    if (held->version != 0)
        take_out(fleet, held);
    held->version = row->version;
    held->proved = fleet->proves;
    held->interval_ms = interval_ms;
    held->source = source;
    held->since = now;
    held->age = (sgp_time)row->age_ms * SGP_MILLISECOND;
    append(fleet, index);
}

int sgp_fleet_tell(struct sgp_fleet *fleet, const struct sgp_fleet_row *row, sgp_time now)
{
    char text[SGP_ROW_TEXT_BYTES], bytes[SIGNED_BYTES];
    char key[SGP_ROW_KEY_BYTES] = "", signature[SGP_ROW_SIGNATURE_BYTES] = "";
    if (fleet->self == NO_ROW)
        return 0;
    const uint64_t version = (fleet->denied > fleet->version ? fleet->denied : fleet->version) + 1;
    sgp_fleet_row_write(row, text);
    const struct sgp_row own = {.author = fleet->name,
        .version = version,
        .text = text,
        .key = key,
        .signature = signature};
    const size_t count = signed_bytes(fleet, &own, bytes);
    if (fleet->settings.sign != NULL &&
        !fleet->settings.sign(fleet->settings.context, bytes, count, key, signature))
        return -ENOMEM;
    hold(fleet, fleet->self, &own, row->interval_ms, 0, now);
    fleet->version = version;
    return 0;
}

bool sgp_fleet_must_tell(const struct sgp_fleet *fleet)
{
    return fleet->denied > fleet->version ||
           (fleet->self != NO_ROW && fleet->rows[fleet->self].version == 0);
}

/* A row whose version is greater than that of the row that is held. */
static int judge_later(struct sgp_fleet *fleet, uint32_t index, const struct sgp_row *row,
    uint32_t source, sgp_time now)
{
    struct sgp_fleet_row said;
    const int code = sgp_fleet_row_read(row->text, &said);
    if (code < 0) {
        fleet->counts.malformed++;
        return code == SGP_E_VERSION ? 0 : SGP_E_PROTOCOL;
    }
    if (fleet->proves && !is_provable(fleet, row)) {
        fleet->counts.forged++; /* by somebody, or the peer has another file */
        return 0;
    }
    if (index == fleet->self)
        fleet->denied = row->version;
    else
        hold(fleet, index, row, said.interval_ms, source, now);
    return 0;
}

int sgp_fleet_judge(struct sgp_fleet *fleet, const struct sgp_row *row, uint32_t source,
    sgp_time now, uint64_t seconds)
{
    const uint32_t index = find_name(fleet, row->author);
    if (index == NO_ROW) {
        fleet->counts.strangers++;
        return 0;
    }
    const uint64_t held = index == fleet->self ? fleet->version : fleet->rows[index].version;
    if (row->version <= held) {
        fleet->counts.earlier += row->version < held;
        return 0;
    }
    if (row->version >> 32 > seconds + AHEAD_SECONDS_MAX) {
        fleet->counts.ahead++;
        return 0;
    }
    return judge_later(fleet, index, row, source, now);
}

/* ---- other nodes ---- */

/* Whether a row counts with the present file, too. Other nodes refuse this node's own row if it was
 * published without a signature. */
static bool still_counts(const struct sgp_fleet *fleet, const struct sgp_fleet_held *held)
{
    const struct sgp_row row = sgp_fleet_row_of(held, held->since);
    if (!fleet->proves)
        return true;
    if (strcmp(held->name, fleet->name) == 0)
        return held->key[0] != '\0' || fleet->settings.sign == NULL;
    return held->proved && fleet->settings.has_key(fleet->settings.context, &row);
}

/* Move the rows of nodes that stay, in the order in which they came. */
static void move_rows(struct sgp_fleet *fleet, struct sgp_fleet_held *from, uint32_t first)
{
    for (uint32_t i = first; i != NO_ROW;) {
        struct sgp_fleet_held *old = &from[i];
        const uint32_t next = old->after, index = find_name(fleet, old->name);
        if (index != NO_ROW && still_counts(fleet, old)) {
            fleet->rows[index] = *old;
            append(fleet, index);
        }
        i = next;
    }
}

void sgp_fleet_prove(struct sgp_fleet *fleet, bool proves)
{
    fleet->proves = proves;
}

int sgp_fleet_use(struct sgp_fleet *fleet, const char *const *names, uint32_t count)
{
    const uint32_t most = fleet->settings.rows_max, first = fleet->first;
    count = count < most ? count : most;
    struct sgp_fleet_held *rows = calloc(count + 1u, sizeof *rows), *from = fleet->rows;
    uint32_t *order = calloc(count + 1u, sizeof *order);
    if (rows == NULL || order == NULL) {
        free(rows);
        free(order);
        return -ENOMEM;
    }
    fleet->self = fleet->first = fleet->last = NO_ROW;
    for (uint32_t i = 0; i < count; i++) {
        (void)snprintf(rows[i].name, sizeof rows[i].name, "%s", names[i]);
        rows[i].digest = sgp_fleet_name_digest(rows[i].name);
        order[i] = i;
        if (strcmp(rows[i].name, fleet->name) == 0)
            fleet->self = i;
    }
    qsort_r(order, count, sizeof *order, by_digest, rows);
    free(fleet->by_digest);
    fleet->rows = rows;
    fleet->by_digest = order;
    fleet->count = count;
    fleet->scan = 0;
    move_rows(fleet, from, first);
    free(from);
    for (struct sgp_fleet_link *link = fleet->links; link != NULL; link = link->next) {
        sgp_fleet_link_forget(link);
        sgp_fleet_link_lack(link);
    }
    return 0;
}

/* ---- looking ---- */

uint32_t sgp_fleet_count(const struct sgp_fleet *fleet)
{
    return fleet->count;
}

struct sgp_fleet_counts sgp_fleet_counts(const struct sgp_fleet *fleet)
{
    return fleet->counts;
}

struct sgp_fleet_view sgp_fleet_look(const struct sgp_fleet *fleet, uint32_t index, sgp_time now)
{
    sgp_assert(index < fleet->count);
    const struct sgp_fleet_held *held = &fleet->rows[index];
    struct sgp_fleet_view view = {.name = held->name, .stale = true};
    if (held->version == 0)
        return view;
    const sgp_time bound = STALE_INTERVALS * (sgp_time)held->interval_ms * SGP_MILLISECOND;
    view.text = held->text;
    view.age = held->age + (now - held->since);
    view.stale = view.age > (bound > STALE_LEAST ? bound : STALE_LEAST);
    return view;
}

bool sgp_fleet_changed(struct sgp_fleet *fleet, sgp_time now, uint32_t *ret_index, bool *ret_stale)
{
    for (; fleet->scan < fleet->count; fleet->scan++) {
        struct sgp_fleet_held *held = &fleet->rows[fleet->scan];
        const bool stale = sgp_fleet_look(fleet, fleet->scan, now).stale;
        if (held->version == 0 || stale == held->stale)
            continue;
        held->stale = stale;
        *ret_index = fleet->scan++;
        *ret_stale = stale;
        return true;
    }
    fleet->scan = 0;
    return false;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* `sgpctl compare ROWS.csv`: many sites on this machine, by several methods in turn; see
 * rehearsal.h. */
#include "rehearsal.h"

#include <math.h>
#include <string.h>

#define MEGA 1e6

static const char *measure_name(const struct ctl_rehearsal *rehearsal)
{
    return rehearsal->class_count > 0 ? "accuracy" : "squared_error";
}

/* ---- what is divided ---- */

static void find_sizes(const struct sgp_sites *sites, uint64_t *ret_least, uint64_t *ret_most)
{
    *ret_least = *ret_most = sites->rows[0]->rows;
    for (uint32_t i = 1; i < sites->count; i++) {
        const uint64_t rows = sites->rows[i]->rows;
        *ret_least = rows < *ret_least ? rows : *ret_least;
        *ret_most = rows > *ret_most ? rows : *ret_most;
    }
}

static const char *shards_of(const struct ctl_rehearsal *rehearsal)
{
    const struct ctl_given *shards = &rehearsal->given[COMPARE_SHARDS];
    return shards->given ? shards->value : "iid";
}

static json_t *sites_json(const struct ctl_rehearsal *rehearsal)
{
    const struct sgp_sites *sites = &rehearsal->sites;
    json_t *rows = json_array();
    for (uint32_t i = 0; i < sites->count; i++)
        (void)json_array_append_new(rows, json_integer((json_int_t)sites->rows[i]->rows));
    return rows;
}

static void print_head(const struct ctl_rehearsal *rehearsal)
{
    const struct sgp_sites *sites = &rehearsal->sites;
    uint64_t least, most;
    char lowest[32] = "";
    find_sizes(sites, &least, &most);
    if (least < most)
        (void)snprintf(lowest, sizeof lowest, "%llu to ", (unsigned long long)least);
    (void)printf("%s: %llu rows of %u features, %llu more held out; a model of %llu parameters\n"
                 "%u sites of %s%llu rows, by --shards %s --seed %llu\n\n",
        rehearsal->draft.rows.file, (unsigned long long)sites->all->rows, sites->all->features,
        (unsigned long long)sites->held->rows, (unsigned long long)rehearsal->model.parameters,
        sites->count, lowest, (unsigned long long)most, shards_of(rehearsal),
        (unsigned long long)rehearsal->plan.seed);
}

/* ---- the answer ---- */

static json_t *result_json(const struct ctl_rehearsal *rehearsal,
    const struct ctl_rehearsal_method *method, const struct ctl_rehearsal_result *result)
{
    const bool failed = result->failure.code < 0;
    return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:I, s:f, s:I, s:I, s:o}", "method",
        method->name, "topology",
        result->topology[0] != '\0' ? json_string(result->topology) : json_null(),
        measure_name(rehearsal), ctl_json_real(failed ? NAN : result->mean), "worst",
        ctl_json_real(failed ? NAN : result->worst), "best",
        ctl_json_real(failed ? NAN : result->best), "spread",
        ctl_json_real(failed ? NAN : fabs(result->best - result->worst)), "rounds",
        (json_int_t)result->rounds, "bytes_sent", result->bytes, "bytes_sent_most",
        (json_int_t)result->bytes_most, "vector_bytes", (json_int_t)result->vector_bytes, "failure",
        failed ? ctl_json_text(result->failure.text) : json_null());
}

/* A figure of the answer for a person: with so many decimals, or with four digits for -1. */
static json_t *cell(const json_t *json, const char *key, double unit, int decimals)
{
    char text[64] = "-";
    const json_t *value = json_object_get(json, key);
    const double number = json_number_value(value) / unit;
    if (json_is_number(value) && decimals >= 0)
        (void)snprintf(text, sizeof text, "%.*f", decimals, number);
    else if (json_is_number(value))
        (void)snprintf(text, sizeof text, "%.4g", number);
    return json_string(text);
}

static json_t *line_json(const json_t *json, const char *measure, bool classes)
{
    const json_t *topology = json_object_get(json, "topology");
    const int decimals = classes ? 4 : -1;
    return json_pack("{s:O, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s}", "method",
        json_object_get(json, "method"), measure, cell(json, measure, 1, decimals), "worst",
        cell(json, "worst", 1, decimals), "best", cell(json, "best", 1, decimals), "spread",
        cell(json, "spread", 1, decimals), "rounds", cell(json, "rounds", 1, 0), "MB_sent",
        cell(json, "bytes_sent", MEGA, -1), "MB_busiest", cell(json, "bytes_sent_most", MEGA, -1),
        "topology", json_is_string(topology) ? json_string_value(topology) : "-");
}

static void print_table(const struct ctl_rehearsal *rehearsal, const json_t *methods)
{
    const char *const measure = measure_name(rehearsal);
    const char *const keys[] = {"method", measure, "worst", "best", "spread", "rounds", "MB_sent",
        "MB_busiest", "topology"};
    json_t *table = json_array();
    size_t index;
    json_t *json;
    json_array_foreach(methods, index, json)
    {
        (void)json_array_append_new(table, line_json(json, measure, rehearsal->class_count > 0));
    }
    ctl_print_aligned(rehearsal->ctl, table, keys, sizeof keys / sizeof *keys);
    json_decref(table);
    json_array_foreach(methods, index, json)
    {
        const char *failure = json_string_value(json_object_get(json, "failure"));
        if (failure)
            (void)printf(
                "failed: %s: %s\n", json_string_value(json_object_get(json, "method")), failure);
    }
}

static enum ctl_exit answer(const struct ctl_rehearsal *rehearsal, json_t *methods, bool failed)
{
    const struct sgp_sites *sites = &rehearsal->sites;
    if (rehearsal->ctl->json) {
        (void)ctl_print_json(json_pack("{s:o, s:I, s:I, s:I, s:I, s:s, s:I, s:o, s:s, s:O}", "file",
            ctl_json_text(rehearsal->draft.rows.file), "rows", (json_int_t)sites->all->rows,
            "held_out_rows", (json_int_t)sites->held->rows, "features",
            (json_int_t)sites->all->features, "parameters", (json_int_t)rehearsal->model.parameters,
            "shards", shards_of(rehearsal), "seed", (json_int_t)rehearsal->plan.seed, "site_rows",
            sites_json(rehearsal), "measure", measure_name(rehearsal), "methods", methods));
    } else {
        print_head(rehearsal);
        print_table(rehearsal, methods);
    }
    return failed ? CTL_FAILED : CTL_DONE;
}

enum ctl_exit ctl_rehearse(struct ctl *ctl, const char *file, const struct ctl_given *given)
{
    static struct ctl_rehearsal rehearsal;
    const struct ctl_rehearsal_method *method;
    uint32_t chosen = 0;
    bool failed = false;
    rehearsal = (struct ctl_rehearsal){.ctl = ctl, .given = given};
    enum ctl_exit status = ctl_rehearsal_choose(ctl, given[COMPARE_METHODS].value, &chosen);
    if (status == CTL_DONE)
        status = ctl_rehearsal_prepare(&rehearsal, file);
    json_t *methods = json_array();
    for (uint32_t i = 0; status == CTL_DONE && (method = ctl_rehearsal_method_at(i)) != NULL; i++) {
        struct ctl_rehearsal_result result;
        if (!(chosen & 1u << i))
            continue;
        ctl_rehearsal_run(&rehearsal, method, &result);
        failed |= result.failure.code < 0;
        (void)json_array_append_new(methods, result_json(&rehearsal, method, &result));
    }
    if (status == CTL_DONE)
        status = answer(&rehearsal, methods, failed);
    json_decref(methods);
    ctl_rehearsal_finish(&rehearsal);
    return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept, as STATE/best.json and the files of models beside it; see kept_inside.h. */
#include "kept_inside.h"

#include "store/export.h"
#include "train/atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FORM 1

struct kept_saving { /* best.json, while a job writes it */
    struct job job;  /* first */
    struct kept *kept;
    uint64_t changes; /* that it has */
    char *text;
    char path[CONFIG_TEXT_BYTES];
    struct sgp_error error;
};

static void path_of_state(const struct kept *kept, char path[CONFIG_TEXT_BYTES])
{
    (void)snprintf(path, CONFIG_TEXT_BYTES, "%s/best.json", kept->daemon->config->state_directory);
}

void kept_path(const struct kept *kept, uint32_t model, char path[CONFIG_TEXT_BYTES])
{
    (void)snprintf(path, CONFIG_TEXT_BYTES, "%s/best.%" PRIu32 ".safetensors",
        kept->daemon->config->state_directory, model);
}

uint32_t kept_find(const struct kept *kept, sgp_round label)
{
    uint32_t model = 0;
    while (model < KEPT_MODELS &&
           (label == SGP_ROUND_NONE || kept->models[model] != label || model == kept->writing))
        model++;
    return model;
}

static bool counts(const struct kept *kept, sgp_round label)
{
    bool any = label == kept->rule.best.label;
    for (uint32_t i = 0; i < kept->rule.pending_count && !any; i++)
        any = kept->rule.pending[i].label == label;
    return any;
}

uint32_t kept_free(struct kept *kept)
{
    uint32_t unused = KEPT_MODELS;
    for (uint32_t i = 0; i < KEPT_MODELS; i++) {
        if (i == kept->writing)
            continue;
        if (!counts(kept, kept->models[i]))
            kept->models[i] = SGP_ROUND_NONE;
        if (kept->models[i] == SGP_ROUND_NONE && unused == KEPT_MODELS)
            unused = i;
    }
    return unused;
}

/* ---- writing ---- */

static json_t *render_score(const struct sgp_best_score *score)
{
    char sum[40];
    (void)snprintf(sum, sizeof sum, "%a", score->sum);
    return json_pack("{s:I, s:I, s:s}", "label", (json_int_t)score->label, "count",
        (json_int_t)score->count, "sum", sum);
}

static json_t *render(const struct kept *kept)
{
    const struct sgp_best *rule = &kept->rule;
    json_t *pending = json_array(), *models = json_array();
    for (uint32_t i = 0; i < rule->pending_count; i++)
        (void)json_array_append_new(pending, render_score(&rule->pending[i]));
    for (uint32_t i = 0; i < KEPT_MODELS; i++)
        (void)json_array_append_new(models,
            json_integer(i == kept->writing ? SGP_ROUND_NONE : (json_int_t)kept->models[i]));
    return json_pack("{s:i, s:I, s:I, s:s, s:o, s:I, s:I, s:o, s:s, s:I, s:b, s:o}", "sgp_best",
        FORM, "run", (json_int_t)rule->settings.run, "every", (json_int_t)rule->settings.every,
        "measure", sgp_best_measure_name(rule->settings.measure), "best", render_score(&rule->best),
        "last", (json_int_t)rule->last, "through", (json_int_t)rule->through, "pending", pending,
        "word", rule->word, "told", (json_int_t)rule->told, "settled", rule->settled, "models",
        models);
}

static void run_save(struct job *job)
{
    struct kept_saving *saving = (struct kept_saving *)job;
    struct sgp_atomic_file file;
    if (sgp_atomic_open(&file, saving->path, SGP_ATOMIC_PRIVATE, &saving->error) < 0)
        return;
    sgp_atomic_write(&file, saving->text, strlen(saving->text));
    sgp_atomic_write(&file, "\n", 1);
    (void)sgp_atomic_commit(&file, &saving->error);
}

/* A full disk is reported once. */
static void fail(struct kept *kept, const struct sgp_error *error)
{
    if (kept->unwritten == 0)
        notes_error(kept->daemon, "the best model is not written: %s", error->text);
    kept->unwritten = events_now();
}

static void done_save(struct job *job, bool cancelled)
{
    struct kept_saving *saving = (struct kept_saving *)job;
    struct kept *kept = saving->kept;
    struct daemon *daemon = kept->daemon;
    kept->saving = NULL;
    if (saving->error.code < 0) {
        fail(kept, &saving->error);
    } else if (!cancelled) {
        kept->written = saving->changes;
        kept->unwritten = 0;
        notes_mended(daemon, "the best model is not written");
    }
    free(saving->text);
    free(saving);
    daemon->saves--;
    kept_wake(kept);
    if (!cancelled)
        events_settle(daemon);
}

static struct kept_saving *begin_save(struct kept *kept)
{
    json_t *root = render(kept);
    struct kept_saving *saving = calloc(1, sizeof *saving);
    char *text = root != NULL ? json_dumps(root, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;
    json_decref(root);
    if (saving == NULL || text == NULL) {
        free(saving);
        free(text);
        return NULL;
    }
    *saving = (struct kept_saving){.job = {.run = run_save, .done = done_save, .reads = true},
        .kept = kept,
        .changes = kept->changes,
        .text = text};
    path_of_state(kept, saving->path);
    return saving;
}

static void save(struct kept *kept)
{
    struct daemon *daemon = kept->daemon;
    if (kept->saving != NULL || daemon->ending)
        return;
    kept->saving = begin_save(kept);
    if (kept->saving == NULL) {
        fail(kept, &(struct sgp_error){.text = "out of memory"});
        return;
    }
    daemon->saves++;
    worker_push(&daemon->worker, &kept->saving->job);
}

void kept_write(struct kept *kept)
{
    kept->changes++;
    if (kept->unwritten == 0)
        save(kept);
}

void kept_write_again(struct kept *kept)
{
    const bool due = kept->unwritten == 0 || events_now() - kept->unwritten >= KEPT_PACE_NS;
    if (kept->written < kept->changes && due)
        save(kept);
}

/* ---- reading ---- */

static int64_t integer_of(const json_t *object, const char *key, int64_t least, int64_t most)
{
    const json_t *value = json_object_get(object, key);
    const int64_t number = json_is_integer(value) ? (int64_t)json_integer_value(value) : least - 1;
    return number >= least && number <= most ? number : least - 1;
}

static bool take_score(const json_t *object, struct sgp_best_score *ret_score)
{
    const char *sum = json_string_value(json_object_get(object, "sum"));
    const int64_t label = integer_of(object, "label", SGP_ROUND_NONE, SGP_ROUND_MAX);
    const int64_t count = integer_of(object, "count", 0, (int64_t)SGP_BEST_COUNT_MAX);
    if (sum == NULL || label < SGP_ROUND_NONE || count < 0)
        return false;
    *ret_score =
        (struct sgp_best_score){.label = label, .count = (uint64_t)count, .sum = strtod(sum, NULL)};
    return true;
}

static bool take_pending(const json_t *list, struct sgp_best *rule)
{
    const size_t count = json_array_size(list);
    if (count > SGP_BEST_PENDING)
        return false;
    for (size_t i = 0; i < count; i++) {
        struct sgp_best_score score;
        if (!take_score(json_array_get(list, i), &score) ||
            (i > 0 && score.label <= rule->pending[i - 1].label))
            return false;
        rule->pending[rule->pending_count++] = score;
    }
    return true;
}

/* A file is there if it is of the label that is known. It may be of a later one, if the process
 * ended before that was written down. */
static void take_models(const json_t *list, struct kept *kept)
{
    for (uint32_t i = 0; i < KEPT_MODELS; i++) {
        char path[CONFIG_TEXT_BYTES];
        const json_t *label = json_array_get(list, i);
        kept_path(kept, i, path);
        if (json_is_integer(label) && json_integer_value(label) >= 0 &&
            export_round_of(path) == (sgp_round)json_integer_value(label))
            kept->models[i] = (sgp_round)json_integer_value(label);
    }
}

static bool take(const json_t *root, struct kept *kept)
{
    struct sgp_best rule = {.settings = kept->rule.settings, .heard_last = SGP_ROUND_NONE};
    const char *word = json_string_value(json_object_get(root, "word"));
    if (integer_of(root, "sgp_best", FORM, FORM) != FORM || word == NULL ||
        strlen(word) >= sizeof rule.word ||
        !take_score(json_object_get(root, "best"), &rule.best) ||
        !take_pending(json_object_get(root, "pending"), &rule))
        return false;
    rule.last = integer_of(root, "last", SGP_ROUND_NONE, SGP_ROUND_MAX);
    rule.through = integer_of(root, "through", SGP_ROUND_NONE, SGP_ROUND_MAX);
    const int64_t told = integer_of(root, "told", 0, rule.pending_count);
    const sgp_round latest =
        rule.pending_count > 0 ? rule.pending[rule.pending_count - 1].label : SGP_ROUND_NONE;
    if (rule.last < SGP_ROUND_NONE || told < 0 || rule.through < latest)
        return false;
    rule.told = (uint32_t)told;
    rule.settled = json_is_true(json_object_get(root, "settled"));
    (void)snprintf(rule.word, sizeof rule.word, "%s", word);
    kept->rule = rule;
    take_models(json_object_get(root, "models"), kept);
    return true;
}

/* Whether the file is of this run and measure. What is kept of another is worth nothing here. */
static bool is_ours(const json_t *root, const struct sgp_best_settings *settings)
{
    const char *measure = json_string_value(json_object_get(root, "measure"));
    return measure != NULL && strcmp(measure, sgp_best_measure_name(settings->measure)) == 0 &&
           integer_of(root, "run", 0, INT64_MAX) == (int64_t)settings->run;
}

void kept_read(struct kept *kept)
{
    char path[CONFIG_TEXT_BYTES];
    struct stat status;
    path_of_state(kept, path);
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    if (fd < 0 && errno == ENOENT)
        return;
    const bool plain = fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
    json_t *root = plain ? json_loadfd(fd, JSON_REJECT_DUPLICATES, NULL) : NULL;
    if (fd >= 0)
        (void)close(fd);
    if (root == NULL || (is_ours(root, &kept->rule.settings) && !take(root, kept)))
        sgp_log(&kept->daemon->log->sink, SGP_LEVEL_WARNING,
            "event=warning text=\"%s: not what a node has kept; the best model begins anew\"",
            path);
    json_decref(root);
}

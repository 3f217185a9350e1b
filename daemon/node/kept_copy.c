/* SPDX-License-Identifier: Apache-2.0 */
/* The copy of one node at all nodes; see kept_inside.h.
 *
 * The models of the nodes at a label are near each other, and differ in their last bits. So each
 * node offers its own as the result of a survey, and takes an offer of a greater stamp. A later
 * best label has a greater stamp, and of one label the first node of the file. After a member is
 * struck, two nodes may have one stamp, and then the greater digest counts. The text of an offer is
 *
 *     1 RUN LABEL COUNT SUM VALUES
 *
 * with the bits of each value as eight hexadecimal digits. Values of local layers are not in it:
 * beside the copy of another node, a node keeps its own local layers, of the same label if it has
 * them. */
#include "kept_inside.h"

#include "background_jobs.h"
#include "store/export.h"
#include "task.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD_BYTES 128u
#define DIGITS 8u /* of a value */

_Static_assert(DIGITS == PREPARED_COPY_DIGITS, "the memory is told before");
_Static_assert(KEPT_QUESTIONS + 3 == PREPARED_COPY_TEXTS,
    "those that arrive, that of a job, that of the survey, and the one before");

struct copying { /* of one job */
    struct sgp_best_score score;
    uint64_t stamp;
    uint64_t digest; /* of an offer that is taken */
    char *text;      /* the offer; owned */
    char path[CONFIG_TEXT_BYTES];
    char own[CONFIG_TEXT_BYTES]; /* to take one: the file of this node's own; "": there is none */
    struct export export;        /* to take one */
    struct sgp_error error;
};

static uint64_t stamp_of(sgp_round label, uint32_t node)
{
    return (uint64_t)label << 16 | (SGP_NODES_MAX - 1 - node);
}

static sgp_round label_of(uint64_t stamp)
{
    return (sgp_round)(stamp >> 16);
}

/* ---- the text ---- */

static size_t put_head(char text[HEAD_BYTES], uint64_t run, const struct sgp_best_score *score)
{
    return (size_t)snprintf(text, HEAD_BYTES, "1 %" PRIu64 " %" PRId64 " %" PRIu64 " %a ", run,
        score->label, score->count, score->sum);
}

/* Returns the end of the text. */
static char *put_values(char *text, const float *values, uint64_t count)
{
    static const char digits[] = "0123456789abcdef";
    for (uint64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        for (uint32_t d = 0; d < DIGITS; d++)
            *text++ = digits[bits >> (28 - 4 * d) & 15];
    }
    *text = '\0';
    return text;
}

static uint32_t digit_of(char letter)
{
    return letter <= '9' ? (uint32_t)(letter - '0') : (uint32_t)(letter - 'a') + 10;
}

/* A judged text. Returns the text behind the values. */
static const char *take_values(const char *text, float *values, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        uint32_t bits = 0;
        for (uint32_t d = 0; d < DIGITS; d++)
            bits = bits << 4 | digit_of(*text++);
        memcpy(&values[i], &bits, sizeof bits);
    }
    return text;
}

/* The values of shared layers, out of those of a model file. */
static void put_shared(char *text, const struct sgp_model *model, const float *values)
{
    struct sgp_model_tensor tensors[SGP_MODEL_TENSORS_MAX];
    const uint32_t count = sgp_model_tensors(model, tensors);
    for (uint32_t i = 0; i < count; values += tensors[i++].count)
        if (!tensors[i].local)
            text = put_values(text, values, tensors[i].count);
}

/* They replace those in the values of a model file. */
static void take_shared(const char *text, const struct sgp_model *model, float *values)
{
    struct sgp_model_tensor tensors[SGP_MODEL_TENSORS_MAX];
    const uint32_t count = sgp_model_tensors(model, tensors);
    for (uint32_t i = 0; i < count; values += tensors[i++].count)
        if (!tensors[i].local)
            text = take_values(text, values, tensors[i].count);
}

/* Whether a text is so many finite values. All bits of the exponent of a value that is not finite
 * are set: its first digit is 7 or f, its second f, and its third 8 or more. */
static bool are_values(const char *text, uint64_t count)
{
    if (strlen(text) != DIGITS * count || text[strspn(text, "0123456789abcdef")] != '\0')
        return false;
    for (uint64_t i = 0; i < count; i++, text += DIGITS)
        if ((text[0] == '7' || text[0] == 'f') && text[1] == 'f' && text[2] >= '8')
            return false;
    return true;
}

/* The head of a text, which must be what put_head makes of it. NULL: it is no offer. Else its
 * values. */
static const char *read_head(
    const struct kept *kept, const char *text, struct sgp_best_score *ret_score)
{
    unsigned long long run, count;
    long long label;
    double sum;
    char head[HEAD_BYTES];
    if (sscanf(text, "1 %llu %lld %llu %la ", &run, &label, &count, &sum) != 4)
        return NULL;
    *ret_score = (struct sgp_best_score){.label = label, .count = count, .sum = sum};
    const size_t bytes = put_head(head, run, ret_score);
    const bool same = bytes < sizeof head && strncmp(text, head, bytes) == 0;
    const bool sound = label >= 0 && label <= SGP_ROUND_MAX && count <= SGP_BEST_COUNT_MAX;
    return same && sound && run == kept->rule.settings.run ? text + bytes : NULL;
}

/* Whether a copy with this score is the best known one, or better. Once all nodes have agreed, only
 * the one with their score is: who offers a better one lies. */
static bool is_wanted(const struct kept *kept, const struct sgp_best_score *score)
{
    const struct sgp_best_score *best = &kept->rule.best;
    bool same = score->label == best->label;
    if (kept->rule.settled)
        return same && score->count == best->count && score->sum >= best->sum &&
               score->sum <= best->sum;
    return same || sgp_best_is_better(kept->rule.settings.measure, score, best);
}

/* An offer is taken after training. Another run, or a later form of the text, is left. */
int kept_judge(void *context, const struct sgp_bulletin *bulletin)
{
    const struct kept *kept = context;
    struct sgp_best_score score;
    const char *values = read_head(kept, bulletin->text, &score);
    if (values == NULL)
        return 0;
    if (score.label != label_of(bulletin->stamp) ||
        !are_values(values, kept->daemon->prepared->parameters))
        return SGP_E_PROTOCOL;
    return kept->has_finished && is_wanted(kept, &score);
}

/* ---- jobs ---- */

static void finish_job(struct kept *kept, struct task *task)
{
    struct copying *copying = task->argument;
    kept->copying = false;
    free(task->vector);
    free(copying->text);
    free(copying);
    task_give(task);
    kept_wake(kept);
}

static bool begin_job(struct kept *kept, struct copying *copying, void (*run)(struct job *),
    void (*done)(struct job *, bool))
{
    struct daemon *daemon = kept->daemon;
    float *vector = malloc(daemon->prepared->trainer->model_values * sizeof *vector);
    struct task *task =
        vector != NULL && copying->text != NULL ? task_take(daemon, run, done) : NULL;
    if (task == NULL) { /* tried again */
        free(vector);
        free(copying->text);
        free(copying);
        return false;
    }
    task->job.reads = true;
    task->round = copying->score.label;
    task->vector = vector;
    task->argument = copying;
    kept->copying = true;
    worker_push(&daemon->worker, &task->job);
    return true;
}

/* ---- the own copy ---- */

static void run_offer(struct job *job)
{
    struct task *task = (struct task *)job;
    struct copying *copying = task->argument;
    const uint64_t values = task->trainer->model_values;
    task->code = background_jobs_read(copying->path, task->vector, values, &copying->error);
    if (task->code == 0)
        put_shared(
            copying->text + strlen(copying->text), &task->daemon->prepared->model, task->vector);
}

static void done_offer(struct job *job, bool cancelled)
{
    struct task *task = (struct task *)job;
    struct kept *kept = task->daemon->kept;
    const struct copying *copying = task->argument;
    uint64_t stamp = 0;
    const char *present = cancelled ? NULL : sgp_survey_result(kept->survey, &stamp);
    if (!cancelled && task->code < 0) {
        const uint32_t model = kept_find(kept, task->round);
        notes_error(kept->daemon, "the best model: %s", copying->error.text);
        if (model < KEPT_MODELS) /* it cannot be read, so another node's is wanted */
            kept->models[model] = SGP_ROUND_NONE;
    } else if (!cancelled &&
               (present == NULL || stamp < copying->stamp ||
                   label_of(stamp) != kept->rule.best.label) &&
               sgp_survey_freeze(kept->survey, copying->stamp, copying->text) == 0) {
        kept->digest = sgp_survey_result_digest(kept->survey);
    }
    finish_job(kept, task);
}

static void offer(struct kept *kept, uint32_t model)
{
    const uint64_t parameters = kept->daemon->prepared->parameters;
    struct copying *copying = calloc(1, sizeof *copying);
    if (copying == NULL)
        return;
    copying->score = kept->rule.best;
    copying->stamp = stamp_of(copying->score.label, kept->daemon->prepared->self);
    copying->text = malloc(HEAD_BYTES + DIGITS * parameters + 1);
    if (copying->text != NULL)
        (void)put_head(copying->text, kept->rule.settings.run, &copying->score);
    kept_path(kept, model, copying->path);
    (void)begin_job(kept, copying, run_offer, done_offer);
}

/* ---- the copy of another node ---- */

/* The model whose local layers stay. */
static void find_own(struct task *task)
{
    const struct copying *copying = task->argument;
    const uint64_t values = task->trainer->model_values;
    struct sgp_error ignored = {0};
    if (copying->own[0] == '\0' ||
        background_jobs_read(copying->own, task->vector, values, &ignored) < 0)
        task->trainer->methods->model(task->trainer, 1, task->vector);
}

static void run_take(struct job *job)
{
    struct task *task = (struct task *)job;
    struct copying *copying = task->argument;
    const size_t bytes = strlen(copying->text);
    find_own(task);
    take_shared(copying->text + (bytes - DIGITS * task->trainer->parameters),
        &task->daemon->prepared->model, task->vector);
    const struct sgp_model_contents contents = export_contents(&copying->export, task->vector);
    task->code = sgp_safetensors_write(&contents, copying->path, &copying->error);
}

static void take(struct kept *kept, const struct copying *copying)
{
    const uint32_t former = kept_find(kept, copying->score.label);
    if (!is_wanted(kept, &copying->score)) {
        kept->writing = KEPT_MODELS; /* a decision has found another one meanwhile */
        return;
    }
    if (former < KEPT_MODELS)
        kept->models[former] = SGP_ROUND_NONE;
    kept->models[kept->writing] = copying->score.label;
    kept->writing = KEPT_MODELS;
    kept->rule.best = copying->score;
    kept->digest = copying->digest;
    kept->news = events_now();
    kept_write(kept);
    sgp_log(&kept->daemon->log->sink, SGP_LEVEL_INFO,
        "event=copied round=%" PRId64 " stamp=%" PRIu64, copying->score.label, copying->stamp);
}

static void done_take(struct job *job, bool cancelled)
{
    struct task *task = (struct task *)job;
    struct kept *kept = task->daemon->kept;
    const struct copying *copying = task->argument;
    if (!cancelled && task->code == 0) {
        kept->uncopied = 0;
        notes_mended(kept->daemon, "the best model is not copied");
        take(kept, copying);
    } else {
        kept->writing = KEPT_MODELS;
        if (!cancelled && kept->uncopied == 0)
            notes_error(kept->daemon, "the best model is not copied: %s", copying->error.text);
        kept->uncopied = events_now();
    }
    finish_job(kept, task);
}

static void begin_take(struct kept *kept, const char *text, uint64_t stamp)
{
    struct daemon *daemon = kept->daemon;
    const uint32_t model = kept->writing == KEPT_MODELS ? kept_free(kept) : KEPT_MODELS;
    struct copying *copying = model < KEPT_MODELS ? calloc(1, sizeof *copying) : NULL;
    struct view_model view;
    if (copying == NULL)
        return;
    (void)read_head(kept, text, &copying->score); /* judged before */
    copying->stamp = stamp;
    copying->digest = sgp_survey_result_digest(kept->survey);
    copying->text = strdup(text);
    prepared_view_model(daemon->prepared, &view);
    export_init(&copying->export, &view,
        &(struct export_moment){.node = daemon->config->name,
            .round = copying->score.label,
            .weight = 1,
            .training = {.loss = NAN},
            .test = {.loss = NAN}});
    kept_path(kept, model, copying->path);
    const uint32_t own = kept_find(kept, copying->score.label);
    if (own < KEPT_MODELS)
        kept_path(kept, own, copying->own);
    if (begin_job(kept, copying, run_take, done_take))
        kept->writing = model;
}

/* ---- questions ---- */

/* One neighbour at a time, ever more rarely while nothing comes. */
static void ask(struct kept *kept)
{
    struct daemon *daemon = kept->daemon;
    const struct sgp_topology *topology = daemon->prepared->topology;
    const sgp_time now = events_now();
    sgp_time pace = (now - kept->news) / 8;
    pace = pace < KEPT_PACE_NS ? KEPT_PACE_NS : pace;
    pace = pace > KEPT_PACE_MAX_NS ? KEPT_PACE_MAX_NS : pace;
    if (daemon->edge_count == 0 || daemon->stopping || now - kept->asked < pace)
        return;
    kept->asked = now;
    for (uint32_t i = 0; i < daemon->edge_count; i++) {
        const uint32_t peer = daemon->edges[kept->turn++ % daemon->edge_count].peer;
        if (!sgp_topology_is_dialled(topology, peer))
            continue;
        (void)pulls_ask(&daemon->pulls, SGP_SUBJECT_BEST, peer, &topology->nodes[peer],
            !sgp_topology_is_dialled(topology, daemon->prepared->self));
        return;
    }
}

void kept_copy(struct kept *kept)
{
    uint64_t stamp = 0;
    const char *text = kept->survey != NULL ? sgp_survey_result(kept->survey, &stamp) : NULL;
    if (kept->survey == NULL || kept->copying)
        return;
    const uint32_t model = kept_find(kept, kept->rule.best.label);
    const bool news = text != NULL && sgp_survey_result_digest(kept->survey) != kept->digest;
    const bool late = kept->uncopied != 0 && events_now() - kept->uncopied < KEPT_PACE_NS;
    struct sgp_best_score score;
    if (news && !late && read_head(kept, text, &score) != NULL && is_wanted(kept, &score))
        begin_take(kept, text, stamp);
    else if (model < KEPT_MODELS && (text == NULL || label_of(stamp) != kept->rule.best.label))
        offer(kept, model);
    ask(kept);
}

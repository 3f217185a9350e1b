/* SPDX-License-Identifier: Apache-2.0 */
/* Questions to neighbours about the file in use; see awaiting_rollout.h. The questions are those of
 * a running node (net/pulls.h), on a loop of their own. */
#include "awaiting_rollout.h"

#include "net/pulls.h"
#include "setup/peer_keys.h"
#include "setup/prepare.h"

#include <errno.h>
#include <inttypes.h>

struct awaiting_rollout {
    uv_loop_t loop;
    uv_timer_t patience;
    struct prepared place; /* of the file that is known so far */
    struct log *log;
    struct pulls pulls;
    struct sgp_survey *survey;
    uint32_t left; /* questions without an end */
    uint32_t answers;
    struct sgp_error why; /* the document that has just come is refused */
    bool closing;
};

static void end(struct awaiting_rollout *awaiting)
{
    if (awaiting->closing)
        return;
    awaiting->closing = true;
    pulls_close(&awaiting->pulls);
    uv_close((uv_handle_t *)&awaiting->patience, NULL);
}

static void on_patience(uv_timer_t *timer)
{
    end(timer->data);
}

/* ---- answers ---- */

static int judge(void *context, const struct sgp_bulletin *bulletin)
{
    struct awaiting_rollout *awaiting = context;
    struct sgp_error why = {0};
    const int code =
        sgp_rollout_take(awaiting->place.rollout, SGP_ROLLOUT_ACTIVE, bulletin->text, &why);
    if (code >= 0 || code == -ENOMEM)
        return 0;
    awaiting->why = why;
    return code;
}

static void on_changed(void *context, enum sgp_subject subject)
{
    (void)context;
    (void)subject;
}

static void on_ended(void *context, enum sgp_subject subject, uint32_t peer, const char *why)
{
    struct awaiting_rollout *awaiting = context;
    const char *name = awaiting->place.topology->nodes[peer].name;
    (void)subject;
    if (awaiting->why.code < 0)
        sgp_log(&awaiting->log->sink, SGP_LEVEL_WARNING,
            "event=rollout_refused peer=%s reason=\"%s\"", name, awaiting->why.text);
    else if (why != NULL)
        sgp_log(&awaiting->log->sink, SGP_LEVEL_INFO, "event=unanswered peer=%s reason=\"%s\"",
            name, why);
    awaiting->answers += why == NULL;
    awaiting->why = (struct sgp_error){0};
    if (--awaiting->left == 0)
        end(awaiting);
}

/* ---- questions ---- */

static enum sgp_tls tls_dialling(
    void *context, uint32_t peer, struct sgp_cipher_settings *ret_settings)
{
    const struct awaiting_rollout *awaiting = context;
    (void)peer;
    return peer_keys_dialling(&awaiting->place, ret_settings);
}

static bool is_neighbour(const struct sgp_topology *topology, uint32_t self, uint32_t node)
{
    for (uint32_t p = 0; p < topology->phase_count; p++) {
        const struct sgp_phase *phase = &topology->phases[p];
        for (uint32_t i = phase->out_first[self]; i < phase->out_first[self + 1]; i++)
            if (phase->out[i].target == node)
                return true;
        for (uint32_t i = phase->in_first[self]; i < phase->in_first[self + 1]; i++)
            if (phase->in[i].source == node)
                return true;
    }
    return false;
}

static void ask(struct awaiting_rollout *awaiting)
{
    const struct sgp_topology *topology = awaiting->place.topology;
    const uint32_t self = awaiting->place.self, count = topology->node_count;
    for (uint32_t i = 1; i < count && awaiting->left < AWAITING_ROLLOUT_ASKED; i++) {
        const uint32_t node = (self + i) % count;
        if (!sgp_topology_is_dialled(topology, node) || !is_neighbour(topology, self, node))
            continue;
        awaiting->left +=
            pulls_ask(&awaiting->pulls, SGP_SUBJECT_ACTIVE, node, &topology->nodes[node], false);
    }
}

static int open_all(struct awaiting_rollout *awaiting, struct sgp_error *error)
{
    const struct pulls_events events = {
        .context = awaiting, .tls = tls_dialling, .changed = on_changed, .ended = on_ended};
    const struct sgp_survey_judge judges = {
        .context = awaiting, .bytes_max = SGP_DOCUMENT_BYTES_MAX, .judge = judge};
    const char *name = awaiting->place.config->name;
    uint64_t stamp;
    awaiting->survey = sgp_survey_create(name, SGP_SUBJECT_ACTIVE);
    if (awaiting->survey == NULL || uv_loop_init(&awaiting->loop) < 0)
        return sgp_fail(error, -ENOMEM, "out of memory");
    const char *text = sgp_rollout_text(awaiting->place.rollout, SGP_ROLLOUT_ACTIVE, &stamp);
    (void)sgp_survey_freeze(awaiting->survey, stamp, text); /* else it is sent once more */
    sgp_survey_judge(awaiting->survey, &judges);
    pulls_open(&awaiting->pulls, &awaiting->loop, name, NULL, &events);
    pulls_use(&awaiting->pulls, awaiting->place.topology);
    awaiting->pulls.surveys[SGP_SUBJECT_ACTIVE] = awaiting->survey;
    (void)uv_timer_init(&awaiting->loop, &awaiting->patience);
    awaiting->patience.data = awaiting;
    (void)uv_timer_start(&awaiting->patience, on_patience, AWAITING_ROLLOUT_MS, 0);
    return 0;
}

/* ---- what was learned ---- */

/* Store a later version. 1: it does not name this node. */
static int learn(struct awaiting_rollout *awaiting, struct sgp_error *error)
{
    const struct config *config = awaiting->place.config;
    struct sgp_rollout *rollout = awaiting->place.rollout;
    const char *file;
    const bool later = sgp_rollout_due(rollout, &file) == SGP_ROLLOUT_FOLLOW;
    if (later)
        sgp_rollout_activate(rollout, SGP_ROLLOUT_ACTIVE);
    const struct sgp_document *active = sgp_rollout_document(rollout, SGP_ROLLOUT_ACTIVE);
    sgp_log(&awaiting->log->sink, SGP_LEVEL_INFO,
        "event=rollout_learned version=%" PRIu64 " later=%d answers=%" PRIu32,
        active->manifest.version, later, awaiting->answers);
    const int code = later ? signed_file_keep(config, rollout, error) : 0;
    return code < 0 ? code : signed_file_strikes(config, active->file);
}

static int ask_all(struct awaiting_rollout *awaiting, struct sgp_error *error)
{
    int code = open_all(awaiting, error);
    if (code == 0) {
        ask(awaiting);
        if (awaiting->left == 0)
            end(awaiting);
        (void)uv_run(&awaiting->loop, UV_RUN_DEFAULT);
        sgp_assert(uv_loop_close(&awaiting->loop) == 0);
        code = learn(awaiting, error);
    }
    sgp_survey_destroy(awaiting->survey);
    return code;
}

/* What this node has stored does not name it. */
static bool was_struck(const struct config *config)
{
    struct signed_file file;
    struct sgp_error ignored = {0};
    if (signed_file_read(config, NULL, &ignored, &file) < 0)
        return false;
    const bool struck =
        file.name[0] != '\0' &&
        signed_file_strikes(config, sgp_rollout_document(file.rollout, SGP_ROLLOUT_ACTIVE)->file);
    sgp_topology_destroy(file.topology);
    sgp_rollout_destroy(file.rollout);
    return struck;
}

int awaiting_rollout_ask(const struct config *config, struct log *log, struct sgp_error *error)
{
    struct awaiting_rollout awaiting = {.log = log};
    struct sgp_error ignored = {0};
    if (config->administrators[0] == '\0')
        return 0;
    if (prepare_place(config, NULL, &ignored, &awaiting.place) < 0)
        return was_struck(config);
    const int code = ask_all(&awaiting, error);
    prepared_finish(&awaiting.place);
    return code;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Questions and answers about bulletins; see bulletins.h. The scaling is a result, which is told to
 * every node of the present file, so its survey needs no file. */
#include "bulletins.h"

#include "documents.h"
#include "formers.h"
#include "kept.h"
#include "reports.h"
#include "setup/peer_keys.h"
#include "setup/scaling.h"
#include "trust.h"

#include <errno.h>

/* A node that a signed file has struck may ask for the file in use. */
static int64_t admits(void *context, uint32_t subject, const struct link *link, const char *source,
    char text[SGP_TEXT_BYTES])
{
    struct daemon *daemon = context;
    const int64_t node = peer_keys_find(daemon->prepared, source, text);
    const int64_t former =
        node < 0 && subject == SGP_SUBJECT_ACTIVE ? formers_find(daemon, link, source) : -1;
    if (former >= 0)
        return daemon->prepared->topology->node_count + former;
    return node >= 0 && trust_is(daemon, link, (uint32_t)node, text) ? node : -1;
}

static void wish(void *context, struct sgp_pull *pull)
{
    reports_wish(context, pull);
}

static void on_wished(void *context, uint32_t peer, const struct sgp_pull *pull)
{
    reports_wished(context, peer, pull);
}

static void on_ahead(void *context, enum sgp_subject subject, uint32_t peer)
{
    if (subject == SGP_SUBJECT_MEASURES)
        reports_ahead(context, peer);
}

static bool is_of_documents(enum sgp_subject subject)
{
    return subject == SGP_SUBJECT_ACTIVE || subject == SGP_SUBJECT_PROPOSED;
}

static bool asks(void *context, enum sgp_subject subject, uint32_t peer)
{
    return !is_of_documents(subject) || documents_may_ask(context, peer);
}

static void on_changed(void *context, enum sgp_subject subject)
{
    if (subject == SGP_SUBJECT_MEASURES)
        reports_changed(context);
    else if (subject == SGP_SUBJECT_BEST)
        kept_changed(context);
}

static void on_ended(void *context, enum sgp_subject subject, uint32_t peer, const char *why)
{
    if (is_of_documents(subject))
        documents_answered(context, peer, why);
    else
        reports_answered(context, peer, why);
}

/* The scaling on which the fleet has agreed, if one is used. 0, or negative with *error. */
static int open_scaling(struct daemon *daemon, struct sgp_error *error)
{
    if (!scaling_is_of_fleet(daemon->config))
        return 0;
    daemon->survey = sgp_survey_create(daemon->config->name, SGP_SUBJECT_SCALING);
    if (daemon->survey == NULL)
        return sgp_fail(error, -ENOMEM, "out of memory");
    const int code = scaling_restore(daemon->config, daemon->survey, error);
    return code < 0 ? code : 0;
}

int bulletins_open(struct daemon *daemon, struct sgp_error *error)
{
    const struct pulls_events events = {.context = daemon,
        .tls = trust_dialling,
        .admits = admits,
        .wish = wish,
        .wished = on_wished,
        .ahead = on_ahead,
        .asks = asks,
        .changed = on_changed,
        .ended = on_ended};
    pulls_open(&daemon->pulls, &daemon->loop, daemon->config->name, &daemon->listener, &events);
    pulls_use(&daemon->pulls, daemon->prepared->topology);
    int code = open_scaling(daemon, error);
    if (code == 0)
        code = reports_open(daemon, error);
    if (code == 0)
        code = kept_open(daemon, error);
    formers_open(daemon);
    if (code == 0 && documents_open(daemon) < 0)
        code = sgp_fail(error, -ENOMEM, "out of memory");
    for (uint32_t i = 0; i < SGP_ROLLOUT_SLOTS; i++) {
        const enum sgp_subject subject = documents_subject(i);
        daemon->pulls.surveys[subject] = documents_survey(daemon, i);
        daemon->pulls.questions_max[subject] = DOCUMENTS_QUESTIONS;
    }
    daemon->pulls.surveys[SGP_SUBJECT_SCALING] = daemon->survey;
    daemon->pulls.surveys[SGP_SUBJECT_MEASURES] = reports_survey(daemon);
    daemon->pulls.surveys[SGP_SUBJECT_BEST] = kept_survey(daemon);
    daemon->pulls.questions_max[SGP_SUBJECT_BEST] = KEPT_QUESTIONS;
    return code;
}

void bulletins_on_pull(void *context, struct link *link, const struct sgp_message *message)
{
    struct daemon *daemon = context;
    if (message->pull.subject == SGP_SUBJECT_SCALING && daemon->survey == NULL)
        listener_refuse(&daemon->listener, link, SGP_REASON_PROTOCOL,
            "it asks for the scaling of the fleet, which this node does not use; give all nodes "
            "the same [data] scale",
            "this node does not use a scaling of the fleet; give all nodes the same [data] scale");
    else
        pulls_answer(&daemon->pulls, link, message);
}

const char *bulletins_result(const struct daemon *daemon)
{
    uint64_t version;
    return daemon->survey != NULL ? sgp_survey_result(daemon->survey, &version) : NULL;
}

void bulletins_close(struct daemon *daemon)
{
    reports_close(daemon);
    kept_close(daemon);
    documents_close(daemon);
    pulls_close(&daemon->pulls);
}

void bulletins_finish(struct daemon *daemon)
{
    reports_finish(daemon);
    kept_finish(daemon);
    documents_finish(daemon);
    formers_finish(daemon);
    sgp_survey_destroy(daemon->survey);
    daemon->survey = NULL;
}

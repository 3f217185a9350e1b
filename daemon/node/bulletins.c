/* SPDX-License-Identifier: Apache-2.0 */
/* Answers about the scaling of the fleet; see bulletins.h. A result is told to every node of the
 * present file, so the survey itself needs no file. */
#include "bulletins.h"

#include "setup/keys.h"
#include "setup/scaling.h"
#include "trust.h"

#include <errno.h>

static int64_t admits(
    void *context, const struct link *link, const char *source, char text[SGP_TEXT_BYTES])
{
    struct daemon *daemon = context;
    const int64_t node = keys_find(daemon->prepared, source, text);
    return node >= 0 && trust_is(daemon, link, (uint32_t)node, text) ? node : -1;
}

static void on_refused(void *context, struct link *link, const char *text)
{
    struct daemon *daemon = context;
    listener_log(&daemon->listener, link, text);
}

int bulletins_open(struct daemon *daemon, struct sgp_error *error)
{
    const struct pulls_events events = {.context = daemon, .admits = admits, .refused = on_refused};
    if (!scaling_is_of_fleet(daemon->config))
        return 0;
    daemon->survey = sgp_survey_create(daemon->config->name, SGP_SUBJECT_SCALING);
    if (daemon->survey == NULL)
        return sgp_fail(error, -ENOMEM, "out of memory");
    const int code = scaling_restore(daemon->config, daemon->survey, error);
    if (code >= 0)
        pulls_open(&daemon->pulls, &daemon->loop, daemon->config->name, &events);
    else
        bulletins_finish(daemon);
    daemon->pulls.surveys[SGP_SUBJECT_SCALING] = daemon->survey;
    return code < 0 ? code : 0;
}

void bulletins_on_pull(void *context, struct link *link, const struct sgp_message *pull)
{
    struct daemon *daemon = context;
    if (daemon->survey != NULL)
        pulls_answer(&daemon->pulls, link, pull);
    else
        listener_refuse(&daemon->listener, link, SGP_REASON_PROTOCOL,
            "it asks for the scaling of the fleet, which this node does not use; give all nodes "
            "the "
            "same [data] scale",
            "this node does not use a scaling of the fleet; give all nodes the same [data] scale");
}

const char *bulletins_result(const struct daemon *daemon)
{
    uint64_t version;
    return daemon->survey != NULL ? sgp_survey_result(daemon->survey, &version) : NULL;
}

void bulletins_close(struct daemon *daemon)
{
    if (daemon->survey != NULL)
        pulls_close(&daemon->pulls);
}

void bulletins_finish(struct daemon *daemon)
{
    sgp_survey_destroy(daemon->survey);
    daemon->survey = NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What the members of a survey have told, and the scaling that follows from it; see
 * awaiting_scaling_inside.h. */
#include "awaiting_scaling_inside.h"

#include "setup/scaling.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void awaiting_scaling_list(
    const struct awaiting_scaling *awaiting, char *text, size_t bytes, bool all)
{
    const struct sgp_topology *topology = awaiting->place.topology;
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t i = 0, member = 0; i < topology->node_count && used < bytes; i++) {
        if (topology->nodes[i].relay || !sgp_survey_waits(awaiting->survey, member++))
            continue;
        if (!all && used > 0)
            return;
        used += (size_t)snprintf(
            text + used, bytes - used, "%s%s", used > 0 ? "," : "", topology->nodes[i].name);
    }
}

const char *awaiting_scaling_word(const struct awaiting_scaling *awaiting)
{
    const enum sgp_survey_stage stage = sgp_survey_stage(awaiting->survey);
    return stage == SGP_SURVEY_TELLING ? "report" : stage == SGP_SURVEY_VOTING ? "vote" : NULL;
}

static void tell_stage(struct awaiting_scaling *awaiting)
{
    const enum sgp_survey_stage stage = sgp_survey_stage(awaiting->survey);
    char names[SGP_TEXT_BYTES / 2], line[SGP_TEXT_BYTES];
    if (stage == awaiting->stage)
        return;
    awaiting->stage = stage;
    const char *word = awaiting_scaling_word(awaiting);
    if (word == NULL)
        return;
    awaiting_scaling_list(awaiting, names, sizeof names, true);
    sgp_log(&awaiting->wait.log->sink, SGP_LEVEL_INFO, "event=survey waits_for=\"%s\" nodes=\"%s\"",
        word, names);
    (void)snprintf(line, sizeof line, "agrees on a scaling; waits for %s of %s", word, names);
    notify_status(&awaiting->wait.notify, line);
}

/* Keep the result, and end. A result that cannot be kept ends the process. */
static void keep(struct awaiting_scaling *awaiting, bool adopted)
{
    struct sgp_error error = {0};
    uint64_t version;
    const char *text = sgp_survey_result(awaiting->survey, &version);
    const int code = scaling_keep(awaiting->wait.config, text, &error);
    if (code < 0)
        awaiting->why = error;
    else
        sgp_log(&awaiting->wait.log->sink, SGP_LEVEL_INFO,
            "event=scaling agreed=%s bytes=%zu version=%llu digest=%016llx",
            adopted ? "before" : "now", strlen(text), (unsigned long long)version,
            (unsigned long long)sgp_bulletin_digest(text, (uint32_t)strlen(text)));
    awaiting_end(&awaiting->wait, code);
}

/* Compute the scaling of a complete set, once. */
static void combine(struct awaiting_scaling *awaiting)
{
    const uint64_t set = sgp_survey_set(awaiting->survey);
    struct sgp_error error = {0};
    char *text = NULL;
    if (set == awaiting->combined)
        return;
    awaiting->combined = set;
    awaiting->why = error;
    int code = scaling_combine(awaiting->survey, awaiting->place.topology, &error, &text);
    if (code == 0)
        code = sgp_survey_freeze(awaiting->survey, awaiting->place.topology->version, text);
    free(text);
    if (code == 0) {
        keep(awaiting, false);
        return;
    }
    (void)sgp_fail(&error, code, "%s", sgp_strerror(code));
    awaiting->why = error;
    sgp_log(&awaiting->wait.log->sink, SGP_LEVEL_ERROR, "event=survey error=\"%s\"", error.text);
}

void awaiting_scaling_changed(struct awaiting_scaling *awaiting)
{
    if (awaiting->wait.ended)
        return;
    tell_stage(awaiting);
    if (awaiting->stage == SGP_SURVEY_FROZEN)
        keep(awaiting, true);
    else if (awaiting->stage == SGP_SURVEY_COMPLETE)
        combine(awaiting);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* See runs.h. Opening fails with one line. Later failures are logged, and the action is tried again
 * at the next start. */
#include "runs.h"

#include "notes.h"

#include <inttypes.h>

static struct sgp_run model_of(const struct prepared *prepared)
{
    const struct sgp_fingerprint *print = &prepared->fingerprint;
    return (struct sgp_run){.shape = print->shape,
        .loss = print->loss,
        .classes = print->classes,
        .scaling = print->scaling,
        .data = print->data};
}

#define OTHER_ROWS                                                                                 \
    "the rows are others than those of run %" PRIu64 ", whose model trains on; `sgpctl reset "     \
    "%s` begins a new run"

int runs_open(struct daemon *daemon, struct sgp_error *error)
{
    const char *directory = daemon->config->state_directory;
    const struct sgp_sink *sink = &daemon->log->sink;
    const struct sgp_run model = model_of(daemon->prepared);
    struct sgp_run_plan plan;
    char name[SGP_RUN_NAME_BYTES] = "";
    int code = sgp_run_plan(directory, &model, error, &plan);
    if (code == 0)
        code = sgp_run_follow(directory, &plan, error, name);
    if (code < 0)
        return code;
    daemon->run = plan.run;
    daemon->prepared->fingerprint.run = plan.run.number;
    if (name[0] != '\0')
        sgp_log(sink, SGP_LEVEL_WARNING,
            "event=run run=%" PRIu64 " former=%" PRIu64 " begins=%d reason=\"%s\" "
            "set_aside=\"%s/%s\"",
            plan.run.number, plan.former.number, plan.kind == SGP_RUN_NEW, plan.why, directory,
            name);
    if (plan.other_rows)
        sgp_log(sink, SGP_LEVEL_WARNING, "event=warning text=\"" OTHER_ROWS "\"", plan.run.number,
            daemon->config->name);
    return 0;
}

void runs_settle(struct daemon *daemon)
{
    struct sgp_run run = daemon->run;
    struct sgp_error error = {0};
    run.number = sgp_node_run(daemon->node);
    run.begun = run.begun || sgp_node_round(daemon->node) > 0;
    if (run.number == daemon->run.number && run.begun == daemon->run.begun)
        return;
    if (run.number != daemon->run.number)
        sgp_log(&daemon->log->sink, SGP_LEVEL_INFO, "event=run run=%" PRIu64, run.number);
    daemon->run = run;
    if (sgp_run_write(daemon->config->state_directory, &run, &error) < 0)
        notes_error(daemon, "%s", error.text);
}

int runs_end(struct daemon *daemon, struct sgp_error *error)
{
    char name[SGP_RUN_NAME_BYTES];
    int code = sgp_run_reset(daemon->config->state_directory, daemon->joins, error, name);
    if (code == 0)
        sgp_log(&daemon->log->sink, SGP_LEVEL_WARNING,
            "event=reset former=%" PRIu64 " set_aside=\"%s/%s\"", daemon->run.number,
            daemon->config->state_directory, name);
    return code;
}

bool runs_goes_on(const struct prepared *prepared)
{
    const struct sgp_run model = model_of(prepared);
    struct sgp_run_plan plan;
    struct sgp_error unused = {0}; /* runs_print tells it */
    return sgp_run_plan(prepared->config->state_directory, &model, &unused, &plan) == 0 &&
           plan.run.begun;
}

int runs_print(FILE *stream, const struct prepared *prepared, struct sgp_error *error)
{
    const char *directory = prepared->config->state_directory;
    const struct sgp_run model = model_of(prepared);
    struct sgp_run_plan plan;
    int code = prepared->awaiting_model ? 0 : sgp_run_plan(directory, &model, error, &plan);
    if (code < 0 || prepared->awaiting_model)
        return code;
    const uint64_t number = plan.run.number, former = plan.former.number;
    if (number == 0)
        (void)fprintf(stream, "run        the first one, or the one that the neighbours are in\n");
    else if (plan.kind == SGP_RUN_GOES_ON)
        (void)fprintf(stream, "run        %" PRIu64 ", %s\n", number,
            plan.run.begun ? "goes on" : "not begun");
    else
        (void)fprintf(stream,
            "run        %" PRIu64 ", %s: %s; the files of run %" PRIu64 " move to %s/run-%" PRIu64
            "%s\n",
            number, plan.kind == SGP_RUN_NEW ? "a new one" : "again", plan.why, former, directory,
            former, plan.former.begun ? "" : ".unbegun");
    if (plan.other_rows)
        (void)fprintf(stream, "warning: " OTHER_ROWS "\n", number, prepared->config->name);
    return 0;
}

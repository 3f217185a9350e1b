/* SPDX-License-Identifier: Apache-2.0 */
/* The survey of a scaling, on a loop of its own; see awaiting_scaling.h. Thread: the loop thread,
 * which is the only thread. */
#include "awaiting_scaling.h"

#include "awaiting_scaling_inside.h"
#include "setup/scaling.h"
#include "setup/signed_file.h"
#include "store/privacy_account.h"
#include "store/state_directory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- onlookers ---- */

static void view_status(void *context, struct view_status *ret_status)
{
    const struct awaiting_scaling *awaiting = context;
    awaiting_status(&awaiting->wait, ret_status);
    ret_status->waiting = awaiting_scaling_word(awaiting);
    ret_status->waiting_seconds = awaiting_seconds(&awaiting->wait);
    awaiting_scaling_list(awaiting, ret_status->waiting_for, sizeof ret_status->waiting_for, false);
    (void)snprintf(ret_status->last_error, sizeof ret_status->last_error, "%s", awaiting->why.text);
    if (awaiting->why.code != 0)
        ret_status->last_error_seconds = 0;
}

static const struct sgp_topology *view_topology(void *context)
{
    return ((const struct awaiting_scaling *)context)->place.topology;
}

static const char *obstacle(void *context)
{
    (void)context;
    return "the nodes have not agreed on a scaling yet; stop it";
}

static void hang_up(struct awaiting *wait)
{
    struct view_reload report;
    struct sgp_error error = {0};
    notify_reloading();
    if (awaiting_scaling_reload(wait, &report, &error) < 0)
        sgp_log(&wait->log->sink, SGP_LEVEL_ERROR, "event=reload error=\"%s\"", error.text);
    notify_ready();
}

static void close_all(struct awaiting *wait)
{
    awaiting_scaling_close((struct awaiting_scaling *)wait);
}

/* ---- the wait ---- */

static int open_all(struct awaiting_scaling *awaiting, struct sgp_error *error)
{
    const struct view_actions actions = {.context = awaiting,
        .no_model = "the nodes have not agreed on a scaling yet: there is no model",
        .status = view_status,
        .topology = view_topology,
        .stop = awaiting_stop,
        .leave_obstacle = obstacle,
        .token_obstacle = obstacle,
        .reload = awaiting_scaling_reload};
    int code = awaiting_open(&awaiting->wait, &actions, error);
    if (code < 0)
        return code;
    code = awaiting_scaling_open(awaiting, error);
    if (code == 0)
        return 0;
    control_close(awaiting->wait.control, NULL, NULL);
    (void)awaiting_run(&awaiting->wait);
    return code;
}

/* Everything before the loop: the survey with the figures of this node. 1: agreed before. */
static int begin(struct awaiting_scaling *awaiting, struct sgp_error *error)
{
    const struct sgp_survey_judge judge = {.judge = scaling_judge};
    awaiting->survey = sgp_survey_create(awaiting->wait.config->name, SGP_SUBJECT_SCALING);
    if (awaiting->survey == NULL)
        return sgp_fail(error, -ENOMEM, "out of memory");
    sgp_survey_judge(awaiting->survey, &judge);
    int code = scaling_restore(awaiting->wait.config, awaiting->survey, error);
    if (code != 0)
        return code;
    return awaiting_scaling_begin(awaiting, error);
}

static int run(struct awaiting_scaling *awaiting, struct sgp_error *error)
{
    int code = open_all(awaiting, error);
    if (code < 0)
        return code;
    awaiting_start(&awaiting->wait);
    awaiting_scaling_changed(awaiting);
    code = awaiting_run(&awaiting->wait);
    callers_finish(&awaiting->callers);
    return code < 0 ? sgp_fail(error, code, "%s", awaiting->why.text) : code;
}

/* A directory that cannot be written would be found after the wait, which may take long. One with
 * an account of private steps must be found before statistics of rows leave, and a later account
 * must know that they have left. A signed topology file is stored before it is used. */
static int open_state_directory(
    const struct awaiting_scaling *awaiting, int opened, struct sgp_error *error)
{
    const struct config *config = awaiting->wait.config;
    const int directory =
        opened >= 0 ? opened : state_directory_open(config->state_directory, error);
    int code =
        directory < 0 ? directory : privacy_account_check_absent(config->state_directory, error);
    if (code == 0)
        code = scaling_try_to_keep(config, error);
    if (code == 0)
        code = signed_file_keep(config, awaiting->place.rollout, error);
    if (code == 0 && awaiting->figures != NULL)
        code = privacy_account_note_told(config->state_directory, error);
    return code < 0 ? code : directory;
}

int awaiting_scaling_wait(const struct config *config, struct log *log, bool *ret_began,
    struct opened *ret_opened, struct sgp_error *error)
{
    struct awaiting_scaling awaiting = {.wait = {.config = config,
                                            .log = log,
                                            .prepared = &awaiting.place,
                                            .state = "awaiting_scaling",
                                            .close = close_all,
                                            .hang_up = hang_up}};
    *ret_began = false;
    int code = prepare_place(config, NULL, error, &awaiting.place);
    if (code < 0)
        return code;
    const int begun = begin(&awaiting, error);
    *ret_began = begun == 0;
    code = begun < 0 ? begun : 0;
    if (begun == 0)
        code = ret_opened->directory =
            open_state_directory(&awaiting, ret_opened->directory, error);
    if (begun == 0 && code >= 0) {
        code = run(&awaiting, error);
        ret_opened->socket = awaiting.wait.socket;
    }
    sgp_survey_destroy(awaiting.survey);
    prepared_finish(&awaiting.place);
    free(awaiting.figures);
    free(awaiting.peers);
    return code;
}

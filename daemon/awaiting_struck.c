/* SPDX-License-Identifier: Apache-2.0 */
/* The wait of a node that is struck; see awaiting_struck.h. */
#include "awaiting_struck.h"

#include "awaiting.h"

#include "sgp/method.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define AGAIN 2 /* the result of the wait */

struct awaiting_struck {
    struct awaiting wait;  /* first */
    struct prepared place; /* the file in use, without a place in it */
    char why[SGP_TEXT_BYTES];
};

static void view_status(void *context, struct view_status *ret_status)
{
    const struct awaiting_struck *awaiting = context;
    awaiting_status(&awaiting->wait, ret_status);
    (void)snprintf(ret_status->last_error, sizeof ret_status->last_error, "%s", awaiting->why);
    ret_status->last_error_seconds = awaiting_seconds(&awaiting->wait);
}

static const struct sgp_topology *view_topology(void *context)
{
    return ((const struct awaiting_struck *)context)->place.topology;
}

static const char *obstacle(void *context)
{
    (void)context;
    return "the topology file in use does not name it, and it is silent; stop it";
}

static int reload(void *context, struct view_reload *ret_reload, struct sgp_error *error)
{
    struct awaiting_struck *awaiting = context;
    struct prepared place;
    const int code = prepare_place(awaiting->wait.config, NULL, error, &place);
    if (code < 0)
        return code;
    *ret_reload = (struct view_reload){.digest = place.topology->digest,
        .nodes = place.topology->node_count,
        .phases = place.topology->phase_count,
        .tls = place.topology->tls};
    prepared_finish(&place);
    awaiting_end(&awaiting->wait, AGAIN);
    return 0;
}

static void hang_up(struct awaiting *wait)
{
    struct view_reload report;
    struct sgp_error error = {0};
    if (reload(wait, &report, &error) < 0)
        sgp_log(&wait->log->sink, SGP_LEVEL_ERROR, "event=reload error=\"%s\"", error.text);
}

static void close_nothing(struct awaiting *wait)
{
    (void)wait;
}

static int wait_for_orders(struct awaiting_struck *awaiting, struct sgp_error *error)
{
    const struct view_actions actions = {.context = awaiting,
        .no_model = "the topology file in use does not name this node: there is no model",
        .status = view_status,
        .topology = view_topology,
        .stop = awaiting_stop,
        .leave_obstacle = obstacle,
        .token_obstacle = obstacle,
        .reload = reload};
    const int code = awaiting_open(&awaiting->wait, &actions, error);
    if (code < 0)
        return code;
    sgp_log(
        &awaiting->wait.log->sink, SGP_LEVEL_WARNING, "event=struck text=\"%s\"", awaiting->why);
    awaiting_start(&awaiting->wait);
    notify_status(&awaiting->wait.notify, awaiting->why);
    return awaiting_run(&awaiting->wait) == AGAIN;
}

/* A node that could not store the version that strikes it has an earlier one. */
static void say_why(struct awaiting_struck *awaiting)
{
    const struct config *config = awaiting->wait.config;
    const struct prepared *place = &awaiting->place;
    if (sgp_topology_find(place->topology, config->name) < 0)
        (void)snprintf(awaiting->why, sizeof awaiting->why,
            "%s, the topology file in use, does not name %s; this node is silent until a later "
            "version names it: stop it, or give it that file and reload it",
            prepared_file(place), config->name);
    else
        (void)snprintf(awaiting->why, sizeof awaiting->why,
            "a later version than %s, which could not be stored, does not name %s; this node is "
            "silent: stop it, or make room in %s and reload it",
            prepared_file(place), config->name, config->state_directory);
}

int awaiting_struck_wait(const struct config *config, struct log *log, struct sgp_error *error)
{
    struct awaiting_struck awaiting = {.wait = {.config = config,
                                           .log = log,
                                           .prepared = &awaiting.place,
                                           .state = "struck",
                                           .close = close_nothing,
                                           .hang_up = hang_up},
        .place = {.config = config, .method = sgp_method_at((uint32_t)config->algorithm - 1)}};
    struct signed_file file;
    const int code = signed_file_read(config, NULL, error, &file);
    if (code < 0)
        return code;
    awaiting.place.topology = file.topology;
    awaiting.place.rollout = file.rollout;
    memcpy(awaiting.place.version, file.name, sizeof awaiting.place.version);
    say_why(&awaiting);
    const int result = wait_for_orders(&awaiting, error);
    prepared_finish(&awaiting.place);
    return result;
}

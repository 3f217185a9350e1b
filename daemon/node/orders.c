/* SPDX-License-Identifier: Apache-2.0 */
/* Orders; see orders.h. An order that is not possible now is refused with SGP_E_STATE. */
#include "orders.h"

#include "colocated_owner.h"
#include "events.h"
#include "performer.h"
#include "program.h"
#include "reload.h"
#include "survive.h"

#include <errno.h>
#include <inttypes.h>

void orders_tell_stopping(const struct daemon *daemon)
{
    if (!daemon->resets && !daemon->struck)
        notify_stopping();
}

void orders_stop(struct daemon *daemon)
{
    daemon->stopping = true;
    atomic_store(&daemon->hurry, true);
    orders_tell_stopping(daemon);
    performer_yield(daemon);
    events_post(daemon, (struct sgp_event){.type = SGP_EVENT_STOP});
}

void orders_answer_leaver(struct daemon *daemon, const struct sgp_node_status *status)
{
    view_left done = daemon->left;
    daemon->left = NULL;
    if (done == NULL)
        return;
    const char *heir =
        status->heir != SGP_SLOT_NONE ? daemon->prepared->topology->nodes[status->heir].name : "";
    done(daemon->left_argument, status->left ? 0 : -ECANCELED, status->left ? heir : NULL,
        status->weight_left, status->weight_owed);
}

static int order(struct daemon *daemon, enum sgp_event_type type)
{
    const struct sgp_node_status status = daemon_status(daemon);
    bool over = status.state == SGP_NODE_FINISHED || status.state == SGP_NODE_DRAINING;
    if (over || daemon->ending)
        return SGP_E_STATE;
    events_post(daemon, (struct sgp_event){.type = type});
    return 0;
}

/* A node that waits for its program is paused already, and continues when the program has
 * attached. */
static int pause_or_resume(struct daemon *daemon, enum sgp_event_type type)
{
    int code = daemon->programless ? 0 : order(daemon, type);
    if (code == 0)
        program_holds(daemon, type == SGP_EVENT_PAUSE);
    return code;
}

static int pause_node(void *context)
{
    performer_yield(context);
    return pause_or_resume(context, SGP_EVENT_PAUSE);
}

static int resume(void *context)
{
    return pause_or_resume(context, SGP_EVENT_RESUME);
}

static int reload(void *context, struct view_reload *ret_reload, struct sgp_error *error)
{
    return reload_topology(context, SIGNED_FILE_PATH, ret_reload, error);
}

static int checkpoint(void *context)
{
    const struct daemon *daemon = context;
    if (daemon->drained) /* the last checkpoint is being written */
        return SGP_E_STATE;
    return survive_checkpoint(context);
}

static int stop(void *context)
{
    struct daemon *daemon = context;
    if (daemon->stopping)
        return SGP_E_STATE;
    colocated_owner_stop(daemon);
    orders_stop(daemon);
    return 0;
}

void orders_reset(struct daemon *daemon, bool join)
{
    daemon->resets = true;
    daemon->joins = join;
    colocated_owner_stop(daemon);
    orders_stop(daemon);
}

static int reset_or_join(struct daemon *daemon, bool join)
{
    if (daemon->stopping || daemon->ending)
        return SGP_E_STATE;
    orders_reset(daemon, join);
    return 0;
}

static int reset(void *context)
{
    return reset_or_join(context, false);
}

static int join(void *context)
{
    return reset_or_join(context, true);
}

static const char *leave_obstacle(void *context)
{
    const struct daemon *daemon = context;
    return daemon->stopping ? "it is stopping" : sgp_node_leave_obstacle(daemon->node);
}

static int leave(void *context, view_left done, void *argument)
{
    struct daemon *daemon = context;
    if (daemon->ending || leave_obstacle(context) != NULL)
        return SGP_E_STATE;
    daemon->left = done;
    daemon->left_argument = argument;
    sgp_log(&daemon->log->sink, SGP_LEVEL_INFO, "event=leave");
    performer_yield(daemon);
    events_post(daemon, (struct sgp_event){.type = SGP_EVENT_LEAVE});
    return 0;
}

static const char *token_obstacle(void *context)
{
    const struct daemon *daemon = context;
    return daemon->stopping ? "it is stopping" : sgp_node_token_obstacle(daemon->node);
}

static int restore_token(void *context)
{
    struct daemon *daemon = context;
    if (daemon->ending || token_obstacle(context) != NULL)
        return SGP_E_STATE;
    sgp_log(&daemon->log->sink, SGP_LEVEL_WARNING, "event=token_restored round=%" PRId64,
        sgp_node_round(daemon->node));
    events_post(daemon, (struct sgp_event){.type = SGP_EVENT_TOKEN});
    return 0;
}

void orders_offer(struct view_actions *actions)
{
    actions->pause = pause_node;
    actions->resume = resume;
    actions->stop = stop;
    actions->reset = reset;
    actions->join = join;
    actions->checkpoint = checkpoint;
    actions->reload = reload;
    actions->leave_obstacle = leave_obstacle;
    actions->leave = leave;
    actions->token_obstacle = token_obstacle;
    actions->restore_token = restore_token;
}

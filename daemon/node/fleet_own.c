/* SPDX-License-Identifier: Apache-2.0 */
/* This node's own row of the fleet; see fleet_own.h. A row is published at each interval, and at
 * once if the state of the node or its file has changed. */
#include "fleet_own.h"

#include "documents.h"
#include "edges.h"
#include "events.h"
#include "fleet_rows.h"
#include "privacy.h"

#include "sgp/version.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define WAIT_MS (SGP_FLEET_TURN_MS + 35u) /* until a loop without other work takes a turn */
#define REST_MS 5000u   /* the least interval of a node at rest: its row says the same again */
#define LINES_A_TICK 4u /* of the journal; a cut of the network makes many nodes stale at once */

static double seconds_between(sgp_time from, sgp_time to)
{
    return (double)(to - from) / (double)SGP_SECOND;
}

/* A relay has no rows to train on. */
static bool withholds(const struct daemon *daemon)
{
    const struct prepared *prepared = daemon->prepared;
    return prepared->topology->nodes[prepared->self].relay || privacy_withholds(daemon);
}

static void copy_word(char to[SGP_NAME_BYTES], const char *word)
{
    (void)snprintf(to, SGP_NAME_BYTES, "%s", word);
}

static void say_progress(
    const struct daemon *daemon, const struct sgp_node_status *status, struct sgp_fleet_row *row)
{
    const struct figures *figures = &daemon->figures;
    const struct fleet_own *own = &daemon->fleet_own;
    const sgp_time now = events_now();
    const bool ended = status->state == SGP_NODE_FINISHED;
    const double since =
        own->told == SGP_TIME_NEVER ? (double)NAN : seconds_between(own->told, now);
    row->round = status->round;
    row->rounds = status->open ? SGP_ROUND_NONE : status->rounds;
    row->epoch = figures->training.epoch;
    row->loss = figures->training.loss;
    row->test_loss = figures->test.loss;
    row->test_accuracy = figures->test.accuracy;
    row->weight = status->weight;
    row->disagreement =
        figures_disagreement(figures, ended, ended ? edges_distance(daemon) : (double)NAN);
    row->rounds_per_second = since > 0 ? (double)(status->round - own->round) / since : (double)NAN;
    row->samples_per_second = status->state == SGP_NODE_TRAINING ? figures_rate(figures, now) : 0;
    privacy_tell(daemon, row);
    if (withholds(daemon))
        sgp_fleet_row_withhold(row);
}

static void say_rollout(const struct daemon *daemon, struct sgp_fleet_row *row)
{
    const struct sgp_rollout_view *shown = documents_shown(daemon);
    if (shown == NULL)
        return;
    row->rollout_active = shown->active;
    row->rollout_proposed = shown->proposed;
    row->rollout_mark = shown->mark;
    row->rollout_vote = shown->vote;
    (void)snprintf(row->rollout_why, sizeof row->rollout_why, "%.63s", shown->why);
}

static uint32_t interval_of(const struct daemon *daemon, const struct sgp_node_status *status)
{
    const bool rests = status->state == SGP_NODE_PAUSED || status->state == SGP_NODE_FINISHED;
    const uint32_t interval_ms = sgp_fleet_interval(sgp_fleet_count(daemon->fleet));
    return rests && interval_ms < REST_MS ? REST_MS : interval_ms;
}

static struct sgp_fleet_row say(const struct daemon *daemon, const struct sgp_node_status *status)
{
    const struct prepared *prepared = daemon->prepared;
    const struct sgp_topology *topology = prepared->topology;
    struct sgp_fleet_row row = {
        .interval_ms = interval_of(daemon, status),
        .uptime_seconds = seconds_between(daemon->started, events_now()),
        .waiting_seconds = (double)NAN,
        .topology_digest = topology->digest,
        .topology_version = topology->version,
    };
    copy_word(row.state, sgp_node_state_name(status->state));
    copy_word(row.version, sgp_version());
    if (prepared->attached == NULL) /* a program computes where the daemon does not know */
        copy_word(row.device, prepared->blas.kernels);
    if (status->waiting != SGP_WAITING_NOTHING) {
        copy_word(row.waiting, sgp_waiting_name(status->waiting));
        row.waiting_seconds = seconds_between(status->waiting_since, events_now());
    }
    if (status->waiting_peer != SGP_SLOT_NONE)
        copy_word(row.waiting_peer, topology->nodes[status->waiting_peer].name);
    say_progress(daemon, status, &row);
    say_rollout(daemon, &row);
    return row;
}

static bool is_due(const struct daemon *daemon, const struct sgp_node_status *status)
{
    const struct fleet_own *own = &daemon->fleet_own;
    return own->told == SGP_TIME_NEVER ||
           events_now() - own->told >= (sgp_time)interval_of(daemon, status) * SGP_MILLISECOND ||
           own->state != status->state || own->topology != daemon->prepared->topology->digest ||
           own->withheld != withholds(daemon) || own->rollout != documents_shows(daemon) ||
           sgp_fleet_must_tell(daemon->fleet);
}

static void publish(struct daemon *daemon)
{
    struct fleet_own *own = &daemon->fleet_own;
    const struct sgp_node_status status = daemon_status(daemon);
    if (!is_due(daemon, &status))
        return;
    const struct sgp_fleet_row row = say(daemon, &status);
    if (sgp_fleet_tell(daemon->fleet, &row, events_now()) < 0)
        return; /* without memory the next turn tries again */
    if (own->rollout != documents_shows(daemon) || own->state != status.state)
        sgp_fleet_hurry(daemon->fleet);
    own->told = events_now();
    own->state = status.state;
    own->topology = daemon->prepared->topology->digest;
    own->round = status.round;
    own->withheld = withholds(daemon);
    own->rollout = documents_shows(daemon);
}

void fleet_own_publish(struct daemon *daemon)
{
    publish(daemon);
    fleet_rows_send(daemon);
}

static void tell_change(const struct daemon *daemon, uint32_t index, bool stale)
{
    const struct sgp_fleet_view view = sgp_fleet_look(daemon->fleet, index, events_now());
    struct sgp_fleet_row row;
    if (sgp_fleet_row_read(view.text, &row) < 0)
        return;
    if (stale)
        sgp_log(&daemon->log->sink, view_has_ended(&row) ? SGP_LEVEL_INFO : SGP_LEVEL_WARNING,
            "event=unheard_of peer=%s state=%s round=%" PRId64
            " age=%.1f reason=\"no node has a fresh row of it\"",
            view.name, row.state, row.round, seconds_between(0, view.age));
    else
        sgp_log(&daemon->log->sink, SGP_LEVEL_INFO,
            "event=heard_of peer=%s state=%s round=%" PRId64, view.name, row.state, row.round);
}

/* The loop takes the turn before it waits again. */
static void on_timer(uv_timer_t *timer)
{
    (void)timer;
}

void fleet_own_turn(struct daemon *daemon)
{
    struct fleet_own *own = &daemon->fleet_own;
    const uint64_t now = uv_now(&daemon->loop);
    uint32_t index;
    bool stale;
    if (!own->publishes || now < own->next)
        return;
    own->next = now + SGP_FLEET_TURN_MS;
    (void)uv_timer_again(&own->timer);
    sgp_fleet_turn(daemon->fleet);
    fleet_own_publish(daemon);
    for (uint32_t lines = 0;
         lines < LINES_A_TICK && sgp_fleet_changed(daemon->fleet, events_now(), &index, &stale);
         lines++)
        tell_change(daemon, index, stale);
}

void fleet_own_open(struct daemon *daemon, bool publishes)
{
    struct fleet_own *own = &daemon->fleet_own;
    own->told = SGP_TIME_NEVER;
    own->publishes = publishes;
    own->next = 0;
    (void)uv_timer_init(&daemon->loop, &own->timer);
    if (publishes)
        (void)uv_timer_start(&own->timer, on_timer, 0, WAIT_MS);
}

void fleet_own_close(struct daemon *daemon)
{
    daemon->fleet_own.publishes = false;
    uv_close((uv_handle_t *)&daemon->fleet_own.timer, NULL);
}

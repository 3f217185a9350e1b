/* Lines for people: what the core notes, what links suffer, and whom the node waits for. One fact, one
 * line, `event=` first. Thread: the loop thread. */
#include "daemon.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *name_of(const struct daemon *daemon, uint32_t peer)
{
    return peer != SGP_SLOT_NONE ? daemon->prepared->topology->nodes[peer].name : "a former node";
}

static const char *direction_name(enum sgp_direction direction)
{
    return direction == SGP_IN ? "in" : "out";
}

void notes_error(struct daemon *daemon, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(daemon->last_error, sizeof daemon->last_error, format, arguments);
    va_end(arguments);
    sgp_log(&daemon->log->sink, SGP_LEVEL_ERROR, "event=error error=\"%s\"", daemon->last_error);
}

/* ---- links ---- */

void notes_hang_up(
    struct daemon *daemon, const struct sgp_link *link, int code, enum sgp_reason reason)
{
    bool ordinary = code == SGP_E_CLOSED || code == SGP_E_REPLACED || code == SGP_E_ABSENT;
    bool told = code == SGP_E_MODEL || code == SGP_E_UNKNOWN_NODE; /* by SGP_NOTE_REFUSED */
    struct edge *edge = edges_find(daemon, link->peer, link->direction);
    if (!ordinary)
        (void)snprintf(edge->error, sizeof edge->error, "%s", sgp_reason_text(reason));
    sgp_log(&daemon->log->sink, ordinary || told ? SGP_LEVEL_DEBUG : SGP_LEVEL_WARNING,
        "event=hang_up peer=%s direction=%s reason=\"%s\"", name_of(daemon, link->peer),
        direction_name(link->direction), sgp_reason_text(reason));
}

void notes_link_failed(
    struct daemon *daemon, const struct link *link, struct edge *edge, int code, const char *text)
{
    (void)snprintf(edge->error, sizeof edge->error, "%s", text);
    bool bad = code == SGP_E_FRAME || code == SGP_E_VERSION || code == SGP_E_PROTOCOL;
    sgp_log(&daemon->log->sink, bad ? SGP_LEVEL_WARNING : SGP_LEVEL_INFO,
        "event=link_failed peer=%s direction=%s remote=%s reason=\"%s\"",
        name_of(daemon, link->id.peer), direction_name(link->id.direction), link->remote, text);
}

/* ---- the core's notes ---- */

/* Whether a link went down because the peer will not have this node, which people must mend. */
static bool will_not_have_us(const struct sgp_effect *note)
{
    switch (note->reason) {
    case SGP_REASON_RANGE:
    case SGP_REASON_SHAPE:
    case SGP_REASON_LOSS:
    case SGP_REASON_CLASSES:
    case SGP_REASON_SCALING:
    case SGP_REASON_UNKNOWN:
    case SGP_REASON_VERSION:
    case SGP_REASON_PROTOCOL:
    case SGP_REASON_METHOD:
    case SGP_REASON_ROUNDS:
        return note->note == SGP_NOTE_DOWN;
    default:
        return false;
    }
}

static enum sgp_level level_of(const struct sgp_effect *note)
{
    if (will_not_have_us(note))
        return SGP_LEVEL_WARNING;
    switch (note->note) {
    case SGP_NOTE_ROUND:
        return SGP_LEVEL_DEBUG;
    case SGP_NOTE_DIVERGED:
        return SGP_LEVEL_ERROR;
    case SGP_NOTE_STATE:
    case SGP_NOTE_UP:
    case SGP_NOTE_DOWN:
    case SGP_NOTE_BACK:
    case SGP_NOTE_ADOPTED:
    case SGP_NOTE_DRAINED:
    case SGP_NOTE_INHERITED:
    case SGP_NOTE_DISSOLVED:
    case SGP_NOTE_CORRECTED:
        return SGP_LEVEL_INFO;
    default:
        return SGP_LEVEL_WARNING;
    }
}

static void log_about_peer(struct daemon *daemon, const struct sgp_effect *note)
{
    const char *why = "";
    if (note->reason != 0)
        why = sgp_reason_text(note->reason);
    else if (note->note == SGP_NOTE_MISMATCH)
        why = "its topology, learning rate or batch size differs";
    else if (note->code != 0)
        why = sgp_strerror(note->code);
    bool ended = note->note == SGP_NOTE_REFUSED || will_not_have_us(note);
    struct edge *edge =
        edges_find(daemon, note->link.peer, note->link.direction == SGP_IN ? SGP_IN : SGP_OUT);
    if ((ended || note->note == SGP_NOTE_MISMATCH) && edge != NULL)
        (void)snprintf(edge->error, sizeof edge->error, "%s", why);
    if (ended)
        (void)snprintf(daemon->last_error, sizeof daemon->last_error, "%s: %s",
            name_of(daemon, note->link.peer), why);
    sgp_log(&daemon->log->sink, level_of(note), "event=%s peer=%s direction=%s%s%s%s",
        sgp_note_name(note->note), name_of(daemon, note->link.peer),
        direction_name(note->link.direction), *why ? " reason=\"" : "", why, *why ? "\"" : "");
}

static void log_about_self(struct daemon *daemon, const struct sgp_effect *note)
{
    struct sgp_node_status status;
    sgp_node_status(daemon->node, &status);
    sgp_log(&daemon->log->sink, level_of(note),
        "event=%s state=%s round=%" PRId64 " weight=%.17g weight_in_flight=%.17g",
        sgp_note_name(note->note), sgp_node_state_name(status.state), note->round, note->weight,
        status.weight_in_flight);
}

/* Mass that changes hands, or is taken off, for good. */
static void log_bequest(struct daemon *daemon, const struct sgp_effect *note)
{
    struct sgp_node_status status;
    sgp_node_status(daemon->node, &status);
    bool inherited = note->note == SGP_NOTE_INHERITED;
    sgp_log(&daemon->log->sink, level_of(note),
        "event=%s%s%s round=%" PRId64 " amount=%.17g weight=%.17g surplus=%.17g",
        sgp_note_name(note->note), inherited ? " peer=" : "",
        inherited ? name_of(daemon, note->link.peer) : "", note->round, note->factor, status.weight,
        status.surplus);
}

/* The ledger is older than what a neighbour has seen. */
static void log_outdated(struct daemon *daemon, const struct sgp_effect *note)
{
    const char *name = name_of(daemon, note->link.peer);
    sgp_log(&daemon->log->sink, level_of(note),
        "event=outdated peer=%s direction=%s weight=%.17g text=\"this ledger is older than what %s "
        "has seen: so much weight has %s since; what that makes in all is corrected once every "
        "neighbour has greeted\"",
        name, direction_name(note->link.direction), fabs(note->factor), name,
        note->factor > 0 ? "left" : "come");
}

static void log_corrected(struct daemon *daemon, const struct sgp_effect *note)
{
    struct sgp_node_status status;
    sgp_node_status(daemon->node, &status);
    sgp_log(&daemon->log->sink, level_of(note),
        "event=corrected amount=%.17g weight=%.17g surplus=%.17g text=\"by what its neighbours "
        "have "
        "seen since its ledger was saved%s\"",
        note->factor, status.weight, status.surplus,
        note->factor < 0 ? "; it is dissolved as a surplus" : "");
}

/* The core has ended: what it leaves behind is written now, unless it was on its way out for good and
 * saved its model before it gave all away. */
static void on_drained(struct daemon *daemon, const struct sgp_effect *note)
{
    struct sgp_node_status status;
    sgp_node_status(daemon->node, &status);
    daemon->drained = true;
    (void)uv_timer_stop(&daemon->checkpoint_timer);
    if (status.left) {
        sgp_log(&daemon->log->sink, SGP_LEVEL_INFO, "event=left heir=%s weight=%.17g",
            status.heir != SGP_SLOT_NONE ? name_of(daemon, status.heir) : "-", status.weight_left);
        return;
    }
    if (daemon->changed && !status.leaving)
        chores_save(daemon, note->round, note->weight);
    (void)survive_checkpoint(daemon);
}

static void on_state(struct daemon *daemon, const struct sgp_effect *note)
{
    struct sgp_node_status status;
    sgp_node_status(daemon->node, &status);
    if (status.state == SGP_NODE_FINISHED) {
        chores_measure(daemon, note->round, note->weight);
        chores_save(daemon, note->round, note->weight);
    } else if (status.state == SGP_NODE_DRAINING && status.leaving && note->weight > 0 &&
               !status.seeks) {
        chores_save(daemon, note->round, note->weight);
    }
    notes_status_line(daemon);
}

void notes_note(struct daemon *daemon, const struct sgp_effect *note)
{
    bool about_peer = note->link.peer != daemon->prepared->self;
    daemon->weight = note->weight;
    if (note->note == SGP_NOTE_INHERITED || note->note == SGP_NOTE_DISSOLVED)
        log_bequest(daemon, note);
    else if (note->note == SGP_NOTE_OUTDATED)
        log_outdated(daemon, note);
    else if (note->note == SGP_NOTE_CORRECTED)
        log_corrected(daemon, note);
    else if (about_peer)
        log_about_peer(daemon, note);
    else
        log_about_self(daemon, note);
    if (note->note == SGP_NOTE_STATE) {
        on_state(daemon, note);
    } else if (note->note == SGP_NOTE_ROUND && daemon->measure_due) {
        daemon->measure_due = false;
        chores_measure(daemon, note->round, note->weight);
    } else if (note->note == SGP_NOTE_DIVERGED) {
        notes_error(daemon, "training: %s", sgp_strerror(note->code));
    } else if (note->note == SGP_NOTE_DRAINED) {
        on_drained(daemon, note);
    }
}

/* ---- STATUS=, and whom we wait for ---- */

/* The names of the sources that are not heard, with commas; those that do not fit are left out. */
static void name_unheard(const struct daemon *daemon, char text[SGP_TEXT_BYTES / 2])
{
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t i = daemon->out_count; i < daemon->edge_count; i++) {
        struct sgp_peer_status peer;
        sgp_node_link_status(daemon->node, i, &peer);
        const char *name = name_of(daemon, peer.peer);
        if (!inspect_unheard(&peer) || used + strlen(name) + 2 > SGP_TEXT_BYTES / 2)
            continue;
        used += (size_t)snprintf(
            text + used, SGP_TEXT_BYTES / 2 - used, "%s%s", used > 0 ? "," : "", name);
    }
}

/* A node that gives and hears nobody learns nothing from the rest any more: that is said, once. */
static int tell_deafness(struct daemon *daemon, char *text, size_t size)
{
    char names[SGP_TEXT_BYTES / 2];
    bool deaf = inspect_hears_nobody(daemon);
    name_unheard(daemon, names);
    if (deaf && !daemon->deaf_told)
        sgp_log(&daemon->log->sink, SGP_LEVEL_WARNING, "event=hears_nobody unheard=%s", names);
    else if (!deaf && daemon->deaf_told)
        sgp_log(&daemon->log->sink, SGP_LEVEL_INFO, "event=hears_again");
    daemon->deaf_told = deaf;
    return deaf ? snprintf(text, size, "; hears nobody (%.200s)", names) : 0;
}

void notes_status_line(struct daemon *daemon)
{
    struct sgp_node_status status;
    sgp_node_status(daemon->node, &status);
    char text[SGP_TEXT_BYTES];
    int used = snprintf(text, sizeof text, "%s, round %" PRId64 " of %" PRId64,
        status.leaving ? "leaving" : sgp_node_state_name(status.state), status.round,
        status.rounds);
    used += tell_deafness(daemon, text + used, sizeof text - (size_t)used);
    sgp_time waited = daemon_now() - status.waiting_since;
    bool waits = status.waiting_peer != SGP_SLOT_NONE && waited >= DAEMON_WAIT_NS;
    if (waits) {
        struct edge *edge = edges_find(daemon, status.waiting_peer, SGP_OUT);
        bool apart = edge != NULL && edge->links == NULL; /* else an old error explains nothing */
        const char *why = apart ? edge->error : "";
        (void)snprintf(text + used, sizeof text - (size_t)used, "; waits for %s (%s%s%.200s)",
            name_of(daemon, status.waiting_peer), sgp_waiting_name(status.waiting),
            *why ? ": " : "", why);
        if (daemon->wait_told != status.waiting_since)
            sgp_log(&daemon->log->sink, SGP_LEVEL_WARNING,
                "event=waiting peer=%s for=%s round=%" PRId64, name_of(daemon, status.waiting_peer),
                sgp_waiting_name(status.waiting), status.round);
        daemon->wait_told = status.waiting_since;
    }
    notify_status(&daemon->notify, text);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Lines for people, `event=` first: the core's notes, links, waiting. Thread: the loop thread. */
#include "notes.h"

#include "util/checksum.h"
#include "edges.h"
#include "events.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LINES_MAX 5u /* about one link, of one kind, in ... */
#define LINES_NS (10 * SGP_SECOND)
#define WAIT_NS (3 * SGP_SECOND) /* a longer wait is logged */

#define COPY_REMEDY                                                                                \
    "if a machine or a state directory was copied, give the copy a name of its own and an empty "  \
    "state directory"

static const char *name_of(const struct daemon *daemon, uint32_t peer)
{
    return peer != SGP_SLOT_NONE ? daemon->prepared->topology->nodes[peer].name : "a former node";
}

void notes_error(struct daemon *daemon, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(daemon->last_error, sizeof daemon->last_error, format, arguments);
    va_end(arguments);
    daemon->last_error_at = events_now();
    sgp_log(&daemon->log->sink, SGP_LEVEL_ERROR, "event=error error=\"%s\"", daemon->last_error);
}

void notes_mended(struct daemon *daemon, const char *beginning)
{
    if (strncmp(daemon->last_error, beginning, strlen(beginning)) == 0)
        daemon->last_error[0] = '\0';
}

/* ---- links ---- */

/* Whether a line is due, or else counted as a repetition. Its kind is a hash of `text`. */
static bool is_due(
    const struct daemon *daemon, struct edge *edge, enum sgp_level level, const char *text)
{
    struct link_lines *lines = &edge->lines;
    enum sgp_level told = daemon->log->sink.level;
    if (edge == &daemon->gone || level > told || told >= SGP_LEVEL_DEBUG)
        return true; /* of a former link, or untold, or all are wanted */
    if (events_now() - lines->since >= LINES_NS && lines->dropped == 0)
        *lines = (struct link_lines){.since = events_now()};
    uint8_t *count = &lines->counts[XXH3_64bits(text, strlen(text)) % LINK_LINES_KINDS];
    if (*count == LINES_MAX) {
        lines->dropped++;
        return false;
    }
    ++*count;
    return true;
}

void notes_lines_dropped(struct daemon *daemon)
{
    sgp_time now = events_now();
    for (uint32_t i = 0; i < daemon->edge_count; i++) {
        struct link_lines *lines = &daemon->edges[i].lines;
        if (lines->dropped == 0 || now - lines->since < LINES_NS)
            continue;
        sgp_log(&daemon->log->sink, SGP_LEVEL_WARNING,
            "event=link_lines peer=%s direction=%s dropped=%" PRIu64,
            name_of(daemon, daemon->edges[i].peer),
            view_direction(i < daemon->out_count ? SGP_OUT : SGP_IN), lines->dropped);
        *lines = (struct link_lines){.since = now};
    }
}

void notes_hang_up(
    struct daemon *daemon, const struct sgp_link *link, int code, enum sgp_reason reason)
{
    bool ordinary = code == SGP_E_CLOSED || code == SGP_E_REPLACED || code == SGP_E_ABSENT;
    /* reported by SGP_NOTE_REFUSED */
    bool told = code == SGP_E_MODEL || code == SGP_E_UNKNOWN_NODE;
    enum sgp_level level = ordinary || told ? SGP_LEVEL_DEBUG : SGP_LEVEL_WARNING;
    struct edge *edge = edges_find(daemon, link->peer, link->direction);
    const char *why = sgp_reason_text(reason);
    if (!ordinary)
        (void)snprintf(edge->error, sizeof edge->error, "%s", why);
    if (is_due(daemon, edge, level, why))
        sgp_log(&daemon->log->sink, level,
            "event=hang_up peer=%s direction=%s reason=\"%s\" remote=%s",
            name_of(daemon, link->peer), view_direction(link->direction), why,
            edges_link(daemon, link)->remote);
}

void notes_link_failed(
    struct daemon *daemon, const struct link *link, struct edge *edge, int code, const char *text)
{
    (void)snprintf(edge->error, sizeof edge->error, "%s", text);
    bool bad = code == SGP_E_FRAME || code == SGP_E_VERSION || code == SGP_E_PROTOCOL;
    enum sgp_level level = bad ? SGP_LEVEL_WARNING : SGP_LEVEL_INFO;
    if (is_due(daemon, edge, level, text))
        sgp_log(&daemon->log->sink, level,
            "event=link_failed peer=%s direction=%s remote=%s reason=\"%s\"",
            name_of(daemon, link->id.peer), view_direction(link->id.direction), link->remote, text);
}

/* A process that lost its memory has lost its connections, too. So two incarnations at one time are
 * two nodes. */
void notes_namesake(struct daemon *daemon, struct edge *edge, const struct link *caller)
{
    const struct link *other = edge->links;
    while (other != NULL && (!link_stands(other) || other->incarnation == caller->incarnation))
        other = other->next;
    if (other == NULL || !is_due(daemon, edge, SGP_LEVEL_WARNING, "namesake"))
        return;
    const char *name = name_of(daemon, edge->peer);
    sgp_log(&daemon->log->sink, SGP_LEVEL_WARNING,
        "event=namesake peer=%s direction=in remote=%s other=%s reason=\"two nodes call themselves "
        "%s; "
        "every node has a name of its own\"",
        name, caller->remote, other->remote, name);
}

void notes_clipped(struct daemon *daemon, uint32_t peer)
{
    const struct edge *edge = edges_find(daemon, peer, SGP_IN);
    sgp_log(&daemon->log->sink, SGP_LEVEL_WARNING,
        "event=clipped peer=%s direction=in clipped_share=%.2f shares=%" PRIu64
        " reason=\"the guard takes nearly none of its shares whole: it is broken, or lies, or its "
        "rows are unlike those of the other neighbours\"",
        name_of(daemon, peer), edge->clips.recent, edge->clips.judged);
}

/* The relative distance between two models from which on they are not of one training. The negative
 * of a model is 2 away from it. */
#define FAR_APART 0.5

void notes_compared(struct daemon *daemon, const struct sgp_adoption *adoption)
{
    const struct sgp_candidate *candidates = adoption->candidates;
    const char *chosen = name_of(daemon, candidates[adoption->chosen].peer);
    const char *other = name_of(daemon, candidates[adoption->other].peer);
    const char *judge = adoption->count > 2 ? "nearer to the third"
                        : adoption->trained ? "nearer to this node's checkpoint"
                                            : "the first, because nothing judges between two";
    if (adoption->apart < FAR_APART)
        sgp_log(&daemon->log->sink, SGP_LEVEL_INFO, "event=compared peer=%s models=%u apart=%.3g",
            chosen, adoption->count, adoption->apart);
    else
        sgp_log(&daemon->log->sink, SGP_LEVEL_WARNING,
            "event=compared peer=%s other=%s models=%u apart=%.3g reason=\"the models that these "
            "neighbours sent are far apart, and this node took that of %s: it is %s; %s may be "
            "broken, or lie\"",
            chosen, other, adoption->count, adoption->apart, chosen, judge,
            adoption->count > 2 || adoption->trained ? other : "one of them");
}

/* The line precedes the note of what the farewell ends. */
void notes_farewell(struct daemon *daemon, const struct link *link, const char *text)
{
    struct edge *edge = edges_find(daemon, link->id.peer, link->id.direction);
    if (edge == NULL)
        return;
    (void)snprintf(edge->farewell, sizeof edge->farewell, "%s", text);
    for (char *c = edge->farewell; *c != '\0'; c++)
        *c = *c == '"' ? '\'' : *c; /* the text will be in quotes */
}

void notes_unlike(struct daemon *daemon, const struct link *link, const char *text)
{
    struct edge *edge = edges_find(daemon, link->id.peer, link->id.direction);
    (void)snprintf(edge->unlike, sizeof edge->unlike, "%s", text);
    if (is_due(daemon, edge, SGP_LEVEL_WARNING, text))
        sgp_log(&daemon->log->sink, SGP_LEVEL_WARNING,
            "event=unlike peer=%s direction=%s reason=\"%s\"", name_of(daemon, link->id.peer),
            view_direction(link->id.direction), text);
}

void notes_statement_refused(struct daemon *daemon, const struct link *link,
    const struct sgp_statement *statement, const char *kind, const char *hash)
{
    struct edge *edge = edges_find(daemon, link->id.peer, link->id.direction);
    if (is_due(daemon, edge, SGP_LEVEL_WARNING, "statement"))
        sgp_log(&daemon->log->sink, SGP_LEVEL_WARNING,
            "event=statement_refused author=%s kind=%s round=%" PRId64
            " key=%s from=%s reason=\"the topology file does not give it this key\"",
            statement->author, kind, statement->round, hash, name_of(daemon, link->id.peer));
}

void notes_plain(struct daemon *daemon, struct edge *edge, const struct link *link)
{
    if (is_due(daemon, edge, SGP_LEVEL_WARNING, "plain"))
        sgp_log(&daemon->log->sink, SGP_LEVEL_WARNING,
            "event=plain peer=%s direction=%s remote=%s reason=\"TLS is offered, and the peer does "
            "not take it, or somebody between does not let it\"",
            name_of(daemon, link->id.peer), view_direction(link->id.direction), link->remote);
}

/* ---- the core's notes ---- */

#define IS_OF(set, value) (((set) >> (value)&1) != 0)
#define NOTE(name) (UINT64_C(1) << SGP_NOTE_##name)
#define REASON(name) (UINT64_C(1) << SGP_REASON_##name)

static const uint64_t debug_notes = NOTE(ROUND) | NOTE(LATE) | NOTE(ADDED) | NOTE(TOKEN_RECEIVED);
static const uint64_t info_notes = NOTE(STATE) | NOTE(UP) | NOTE(DOWN) | NOTE(BACK) |
                                   NOTE(ADOPTED) | NOTE(DRAINED) | NOTE(INHERITED) |
                                   NOTE(DISSOLVED) | NOTE(MIXES) | NOTE(DISPUTED) | NOTE(SETTLED) |
                                   NOTE(RENEWED);
/* Reasons for which a peer refuses this node until a person corrects something. */
static const uint64_t lasting_reasons = REASON(RANGE) | REASON(SHAPE) | REASON(LOSS) |
                                        REASON(CLASSES) | REASON(SCALING) | REASON(UNKNOWN) |
                                        REASON(VERSION) | REASON(PROTOCOL) | REASON(METHOD) |
                                        REASON(ROUNDS) | REASON(RUN) | REASON(REPLACED);

static bool will_not_have_us(const struct sgp_effect *effect)
{
    return effect->note.what == SGP_NOTE_DOWN && IS_OF(lasting_reasons, effect->note.reason);
}

/* A share returns because its target went on without it, for instance when it stopped. Nothing is
 * wrong. */
static bool returns_usually(const struct sgp_effect *effect)
{
    return effect->note.what == SGP_NOTE_REFUSED && effect->note.reason == SGP_REASON_CHANGED;
}

static enum sgp_level level_of(const struct sgp_effect *effect)
{
    if (effect->note.what == SGP_NOTE_DIVERGED)
        return SGP_LEVEL_ERROR;
    if (IS_OF(debug_notes, effect->note.what))
        return SGP_LEVEL_DEBUG;
    bool info = (IS_OF(info_notes, effect->note.what) && !will_not_have_us(effect)) ||
                returns_usually(effect);
    return info ? SGP_LEVEL_INFO : SGP_LEVEL_WARNING;
}

/* Reasons whose number says less than the peer's text. */
static bool is_told_better(enum sgp_reason reason)
{
    return reason == SGP_REASON_UNKNOWN || reason == SGP_REASON_PROTOCOL;
}

/* The reason, if the core gives one; else "". The effects of a name given twice are explained in
 * words that help. */
static const char *reason_of(const struct daemon *daemon, const struct edge *edge,
    const struct sgp_effect *effect, char text[SGP_TEXT_BYTES])
{
    bool down = effect->note.what == SGP_NOTE_DOWN;
    if (down && effect->note.reason == SGP_REASON_REPLACED) {
        (void)snprintf(text, SGP_TEXT_BYTES,
            "another daemon is called %s, and %s hears it; stop one of the two: " COPY_REMEDY,
            daemon->config->name, name_of(daemon, effect->note.link.peer));
        return text;
    }
    if (down && is_told_better(effect->note.reason) && edge != NULL && edge->farewell[0] != '\0')
        return edge->farewell;
    if (effect->note.reason == SGP_REASON_SHAPE && edge != NULL && edge->unlike[0] != '\0')
        return edge->unlike;
    if (effect->note.reason != 0)
        return sgp_reason_text(effect->note.reason);
    if (effect->note.what == SGP_NOTE_MISMATCH)
        return "its topology, learning rate or batch size differs";
    if (effect->note.what == SGP_NOTE_SAME_UPDATES)
        return "its latest 8 updates were another node's bit for bit: both train on the same rows; "
               "a program that draws its own rows seeds that by node.seed";
    if (effect->note.what == SGP_NOTE_OTHER_RATE) {
        (void)snprintf(text, SGP_TEXT_BYTES / 2, "its learning rate is %.4g, and ours is %.4g",
            effect->note.amount, daemon->figures.training.learning_rate);
        return text;
    }
    if (effect->note.what == SGP_NOTE_OTHER_DATA)
        return "both take a part of [data] train, and the files differ: where each node has a "
               "file of its own, set shards = none";
    if (effect->note.what == SGP_NOTE_TRICKLES)
        return effect->note.link.direction == SGP_IN
                   ? "its payload came too slowly; not waited for until one has come whole, "
                     "unless in an exact cycle"
                   : "it takes what it is given too slowly; not waited for until it has taken it, "
                     "unless in an exact cycle";
    if (effect->note.what == SGP_NOTE_OVERDUE)
        return "its round takes longer than [train] patience; not waited for until its next";
    return effect->note.code != 0 ? sgp_strerror(effect->note.code) : "";
}

/* The remote address of a link: that of the present connection, else the dialled address. */
static const char *remote_of(const struct daemon *daemon, const struct edge *edge)
{
    uint32_t index = (uint32_t)(edge - daemon->edges);
    if (edge->links != NULL)
        return edge->links->remote;
    return index < daemon->out_count ? daemon->prepared->topology->nodes[edge->peer].address : "-";
}

/* Store or clear the errors of a link. */
static void keep_error(
    struct daemon *daemon, struct edge *edge, const struct sgp_effect *effect, const char *why)
{
    if (effect->note.what == SGP_NOTE_UP) {
        char peer[SGP_NAME_BYTES + 2];
        (void)snprintf(peer, sizeof peer, "%s: ", name_of(daemon, effect->note.link.peer));
        notes_mended(daemon, peer);
        edge->unlike[0] = '\0';
    }
    if (effect->note.what == SGP_NOTE_UP && edge->error[0] != '\0') {
        memcpy(edge->previous, edge->error, sizeof edge->previous);
        edge->error[0] = '\0';
    }
    bool refused = effect->note.what == SGP_NOTE_REFUSED && !returns_usually(effect);
    if (refused || will_not_have_us(effect)) {
        (void)snprintf(edge->error, sizeof edge->error, "%s", why);
        (void)snprintf(daemon->last_error, sizeof daemon->last_error, "%s: %.440s",
            name_of(daemon, effect->note.link.peer), why);
        daemon->last_error_at = events_now();
    }
}

static void log_about_peer(struct daemon *daemon, const struct sgp_effect *effect)
{
    char text[SGP_TEXT_BYTES], kind[SGP_TEXT_BYTES];
    enum sgp_direction direction = effect->note.link.direction == SGP_IN ? SGP_IN : SGP_OUT;
    struct edge *edge = edges_find(daemon, effect->note.link.peer, direction);
    const char *why = reason_of(daemon, edge, effect, text);
    const char *name = sgp_note_name(effect->note.what);
    bool known = edge != NULL && edge != &daemon->gone;
    if (known)
        keep_error(daemon, edge, effect, why);
    (void)snprintf(kind, sizeof kind, "%s %.400s", name, why);
    if (known && !is_due(daemon, edge, level_of(effect), kind))
        return;
    sgp_log(&daemon->log->sink, level_of(effect), "event=%s peer=%s direction=%s%s%s%s%s%s", name,
        name_of(daemon, effect->note.link.peer), view_direction(direction),
        *why ? " reason=\"" : "", why, *why ? "\"" : "", known ? " remote=" : "",
        known ? remote_of(daemon, edge) : "");
}

/* Whether a waiting connection has the incarnation of the present connection: the same memory, in
 * two processes. */
static bool is_twin(struct daemon *daemon, const struct link *link)
{
    const struct edge *edge = edges_find(daemon, link->id.peer, link->id.direction);
    const struct link *other = edge->links;
    while (other != NULL && (other == link || !link_stands(other)))
        other = other->next;
    return other != NULL && other->incarnation == link->incarnation;
}

/* A stranger greets in a neighbour's name. The lines are limited like those of other strangers, and
 * are not errors of that link. */
static void log_turned_away(struct daemon *daemon, const struct sgp_effect *effect)
{
    char text[SGP_TEXT_BYTES];
    const struct link *link = edges_link(daemon, &effect->note.link);
    if (link == NULL)
        return;
    const char *name = name_of(daemon, effect->note.link.peer);
    if (effect->note.reason == SGP_REASON_REPLACED && is_twin(daemon, link))
        (void)snprintf(text, sizeof text,
            "it greets as %s, which is here and is heard: two daemons are called %s and have one "
            "memory; stop one of the two: " COPY_REMEDY,
            name, name);
    else
        (void)snprintf(text, sizeof text, "it greets as %s, which is here: %s", name,
            sgp_reason_text(effect->note.reason));
    listener_log(&daemon->listener, link, text);
}

static void log_about_self(struct daemon *daemon, const struct sgp_effect *effect)
{
    if (!sgp_sink_wants(&daemon->log->sink, level_of(effect))) /* as the note of each round */
        return;
    const struct sgp_node_status status = daemon_status(daemon);
    sgp_log(&daemon->log->sink, level_of(effect),
        "event=%s state=%s round=%" PRId64 " weight=%.17g weight_in_flight=%.17g",
        sgp_note_name(effect->note.what), sgp_node_state_name(status.state), effect->round,
        effect->weight > 0 ? effect->weight : status.weight, status.weight_in_flight);
}

/* Weight that changes owner, or is written off, for good. */
static void log_bequest(struct daemon *daemon, const struct sgp_effect *effect)
{
    const struct sgp_node_status status = daemon_status(daemon);
    bool inherited = effect->note.what == SGP_NOTE_INHERITED;
    sgp_log(&daemon->log->sink, level_of(effect),
        "event=%s%s%s round=%" PRId64 " amount=%.17g weight=%.17g surplus=%.17g",
        sgp_note_name(effect->note.what), inherited ? " peer=" : "",
        inherited ? name_of(daemon, effect->note.link.peer) : "", effect->round,
        effect->note.amount, status.weight, status.surplus);
}

/* How far neighbours are apart at the end, and what follows: averaging until that round, or nothing
 * more. */
static void log_agreement(struct daemon *daemon, const struct sgp_effect *effect)
{
    const char *name = sgp_note_name(effect->note.what);
    struct edge *edge = edges_find(daemon, effect->note.link.peer, effect->note.link.direction);
    if (edge != NULL && !is_due(daemon, edge, level_of(effect), name))
        return;
    sgp_log(&daemon->log->sink, level_of(effect), "event=%s peer=%s distance=%.6g until=%" PRId64,
        name, name_of(daemon, effect->note.link.peer), effect->note.amount, effect->note.until);
}

static void log_outdated(struct daemon *daemon, const struct sgp_effect *effect)
{
    const char *name = name_of(daemon, effect->note.link.peer);
    sgp_log(&daemon->log->sink, level_of(effect),
        "event=outdated peer=%s text=\"the ledger is older than what %s has seen: it was put back "
        "from a backup; numbers are taken from there, and the total weight may be off by %.6g at "
        "most\"",
        name, name, effect->note.amount);
}

/* In a fleet with a node that reports false values, each round may cause such a line. */
static void log_total(struct daemon *daemon, const struct sgp_effect *effect)
{
    const struct sgp_node_status status = daemon_status(daemon);
    bool off = effect->note.what == SGP_NOTE_EXCESS;
    sgp_log(&daemon->log->sink, effect->note.first ? SGP_LEVEL_WARNING : SGP_LEVEL_DEBUG,
        "event=%s round=%" PRId64 " amount=%.6g weight=%.6g weight_unknown=%.6g text=\"%s\"",
        sgp_note_name(effect->note.what), effect->round, effect->note.amount, status.weight,
        status.unknown,
        off ? "a member has named more weight than it has: this node scales its own down, and "
              "keeps its model"
            : "weight is lost, or a member has named less than it has: this node "
              "scales its own up, and keeps its model");
}

static void log_renewed(struct daemon *daemon, const struct sgp_effect *effect)
{
    sgp_log(&daemon->log->sink, level_of(effect),
        "event=renewed round=%" PRId64 " epoch=%" PRIu64 " until=%" PRId64, effect->round,
        daemon_status(daemon).epoch.number, effect->note.until);
}

/* Weight that was in doubt: its owner is now known. */
static void log_settled(struct daemon *daemon, const struct sgp_effect *effect)
{
    sgp_log(&daemon->log->sink, level_of(effect), "event=%s peer=%s weight=%.17g outcome=%s",
        sgp_note_name(effect->note.what), name_of(daemon, effect->note.link.peer),
        effect->note.amount, effect->note.reason == SGP_REASON_NONE ? "accepted" : "returned");
}

/* The node has left for good: which node has its weight. */
static void log_left(struct daemon *daemon)
{
    const struct sgp_node_status status = daemon_status(daemon);
    if (status.left)
        sgp_log(&daemon->log->sink, SGP_LEVEL_INFO, "event=left heir=%s weight=%.17g owed=%.17g",
            status.heir != SGP_SLOT_NONE ? name_of(daemon, status.heir) : "-", status.weight_left,
            status.weight_owed);
}

/* Updates: their staleness at an owner, or how many a token absorbs, or how many were lost. */
static void log_updates(struct daemon *daemon, const struct sgp_effect *effect)
{
    enum sgp_note what = effect->note.what;
    sgp_log(&daemon->log->sink, level_of(effect), "event=%s peer=%s round=%" PRId64 " %s=%.0f",
        sgp_note_name(effect->note.what), name_of(daemon, effect->note.link.peer), effect->round,
        what == SGP_NOTE_ADDED            ? "staleness"
        : what == SGP_NOTE_TOKEN_RECEIVED ? "updates"
                                          : "lost",
        effect->note.amount);
}

void notes_note(struct daemon *daemon, const struct sgp_effect *effect)
{
    bool about_peer = effect->note.link.peer != daemon->prepared->self;
    if (effect->note.what == SGP_NOTE_INHERITED || effect->note.what == SGP_NOTE_DISSOLVED)
        log_bequest(daemon, effect);
    else if (effect->note.what == SGP_NOTE_MIXES || effect->note.what == SGP_NOTE_DISAGREES)
        log_agreement(daemon, effect);
    else if (effect->note.what == SGP_NOTE_TURNED_AWAY)
        log_turned_away(daemon, effect);
    else if (effect->note.what == SGP_NOTE_OUTDATED)
        log_outdated(daemon, effect);
    else if (effect->note.what == SGP_NOTE_SETTLED)
        log_settled(daemon, effect);
    else if (effect->note.what == SGP_NOTE_RENEWED)
        log_renewed(daemon, effect);
    else if (effect->note.what == SGP_NOTE_EXCESS || effect->note.what == SGP_NOTE_LACK)
        log_total(daemon, effect);
    else if (effect->note.what == SGP_NOTE_ADDED || effect->note.what == SGP_NOTE_TOKEN_RECEIVED ||
             (effect->note.what == SGP_NOTE_ADOPTED && effect->note.amount > 0))
        log_updates(daemon, effect);
    else if (about_peer)
        log_about_peer(daemon, effect);
    else
        log_about_self(daemon, effect);
    if (effect->note.what == SGP_NOTE_DIVERGED)
        notes_error(daemon, "training: %s", sgp_strerror(effect->note.code));
    else if (effect->note.what == SGP_NOTE_DRAINED)
        log_left(daemon);
}

/* ---- STATUS=, and which neighbours are waited for ---- */

/* A node that sends, but receives from no neighbour, learns nothing from the others any more. This
 * is said once. */
static int tell_deafness(struct daemon *daemon, char *text, size_t size)
{
    char names[SGP_TEXT_BYTES / 2];
    bool deaf = edges_hear_nobody(daemon);
    (void)edges_name(daemon, edges_unheard, ",", names, sizeof names);
    if (deaf && !daemon->deaf_told)
        sgp_log(&daemon->log->sink, SGP_LEVEL_WARNING, "event=hears_nobody unheard=%s", names);
    else if (!deaf && daemon->deaf_told)
        sgp_log(&daemon->log->sink, SGP_LEVEL_INFO, "event=hears_again");
    daemon->deaf_told = deaf;
    return deaf ? snprintf(text, size, "; hears nobody (%.200s)", names) : 0;
}

/* With which neighbour a node that has ended disagrees: the one at the greatest distance. */
static int tell_disagreement(const struct daemon *daemon, char *text, size_t size)
{
    struct sgp_peer_status worst = {.distance = -1};
    for (uint32_t i = 0; i < daemon->edge_count; i++) {
        const struct sgp_peer_status peer = daemon_peer(daemon, i);
        if (peer.disagrees && peer.distance > worst.distance)
            worst = peer;
    }
    if (worst.distance < 0)
        return 0;
    return snprintf(
        text, size, "; disagrees with %s by %.3g", name_of(daemon, worst.peer), worst.distance);
}

void notes_divergence(struct daemon *daemon)
{
    const char *what = figures_diverging(&daemon->figures);
    if (what != NULL && !daemon->divergence_told)
        sgp_log(&daemon->log->sink, SGP_LEVEL_WARNING,
            "event=diverging what=%s loss=%.6g test_loss=%.6g", what, daemon->figures.training.loss,
            daemon->figures.test.loss);
    else if (what == NULL && daemon->divergence_told)
        sgp_log(&daemon->log->sink, SGP_LEVEL_INFO, "event=converges_again");
    daemon->divergence_told = what != NULL;
}

static bool is_slow(const struct daemon *daemon, uint32_t peer)
{
    bool slow = false;
    for (uint32_t i = 0; i < daemon->edge_count && !slow; i++) {
        const struct sgp_peer_status link = daemon_peer(daemon, i);
        slow = link.peer == peer && link.slow;
    }
    return slow;
}

void notes_status_line(struct daemon *daemon)
{
    notes_divergence(daemon);
    const struct sgp_node_status status = daemon_status(daemon);
    char text[SGP_TEXT_BYTES];
    int used = snprintf(text, sizeof text, "%s, round %" PRId64,
        status.leaving ? "leaving" : sgp_node_state_name(status.state), status.round);
    if (!status.open)
        used += snprintf(text + used, sizeof text - (size_t)used, " of %" PRId64, status.rounds);
    if (isfinite(daemon->figures.training.loss))
        used += snprintf(
            text + used, sizeof text - (size_t)used, ", loss %.4g", daemon->figures.training.loss);
    if (daemon->programless)
        used += snprintf(text + used, sizeof text - (size_t)used, ", no program is attached");
    used += tell_deafness(daemon, text + used, sizeof text - (size_t)used);
    used += tell_disagreement(daemon, text + used, sizeof text - (size_t)used);
    sgp_time waited = events_now() - status.waiting_since;
    bool waits = status.waiting_peer != SGP_SLOT_NONE && waited >= WAIT_NS;
    if (waits) {
        struct edge *edge = edges_find(daemon, status.waiting_peer, SGP_OUT);
        bool apart = edge != NULL && edge->links == NULL; /* else an old error explains nothing */
        const char *why = apart ? edge->error
                          : is_slow(daemon, status.waiting_peer)
                              ? "it computes for far longer than ever"
                              : "";
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

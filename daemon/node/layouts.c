/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the tensor that differs; see layouts.h and docs/rules/greeting.md. */
#include "layouts.h"

#include "edges.h"
#include "events.h"
#include "inquiry.h"
#include "notes.h"
#include "program.h"
#include "attach/shared.h"

#include <stdio.h>
#include <string.h>

static void say(struct daemon *daemon, struct link *link, uint32_t index)
{
    const struct sgp_model_file *layout = daemon->prepared->layout;
    char text[SGP_LAYOUT_BYTES];
    shared_entry(layout, index, text);
    struct sgp_message message = {.type = SGP_LAYOUT,
        .layout = {.index = index, .before = shared_before(layout, index), .text = text}};
    inquiry_pulse(daemon, &message.pulse);
    link_send(link, &message);
}

/* This entry is the first that differs. */
static void found(
    struct daemon *daemon, const struct link *link, const struct sgp_layout_entry *theirs)
{
    const char *peer = daemon->prepared->topology->nodes[link->id.peer].name;
    char here[SGP_LAYOUT_BYTES], text[SGP_TEXT_BYTES];
    shared_entry(daemon->prepared->layout, theirs->index, here);
    if (theirs->index == SGP_LAYOUT_ENTRIES - 1)
        (void)snprintf(text, sizeof text,
            "the frozen parameters are not those of %s: %s here and %s at %s; load the same ones "
            "on all "
            "nodes before attaching",
            peer, here, theirs->text, peer);
    else if (theirs->index == SGP_LAYOUT_ENTRIES - 2)
        (void)snprintf(text, sizeof text,
            "another model than %s trains: %s here and %s at %s; average the same buffers on all "
            "nodes",
            peer, here, theirs->text, peer);
    else
        (void)snprintf(text, sizeof text,
            "another model than %s trains: tensor %u is %s here and %s at %s; attach the same "
            "model on "
            "all nodes",
            peer, theirs->index, here, theirs->text, peer);
    notes_unlike(daemon, link, text);
    program_mismatch(daemon, text);
}

/* Pass the held HELLO to the core. Its names have not changed meanwhile. */
static void let_go(struct daemon *daemon, struct link *link)
{
    struct sgp_message hello = link->held.hello;
    hello.hello.source = daemon->prepared->topology->nodes[link->id.peer].name;
    hello.hello.target = daemon->config->name;
    link->held.holds = false;
    events_post(
        daemon, (struct sgp_event){.type = SGP_EVENT_MESSAGE, .link = link->id, .message = &hello});
}

/* Ask for the middle entry of those that may be the first to differ. */
static void ask(struct daemon *daemon, struct link *link)
{
    say(daemon, link, link->held.low + (link->held.end - link->held.low) / 2);
}

/* Whether this is the one connection of its edge, and the core has not accepted its greeting yet.
 * The core ends such a connection in time. */
static bool is_greeting(struct daemon *daemon, const struct link *link)
{
    const struct edge *edge = edges_find(daemon, link->id.peer, link->id.direction);
    return edges_present(edge) == link &&
           daemon_peer(daemon, (uint32_t)(edge - daemon->edges)).state == SGP_LINK_CONNECTING;
}

bool layouts_hold(struct daemon *daemon, struct link *link, const struct sgp_message *hello)
{
    const struct prepared *prepared = daemon->prepared;
    if (prepared->layout == NULL || hello->hello.fingerprint.shape == prepared->fingerprint.shape ||
        !is_greeting(daemon, link))
        return false;
    link->held =
        (struct link_held){.holds = true, .hello = *hello, .low = 0, .end = SGP_LAYOUT_ENTRIES};
    ask(daemon, link);
    return true;
}

static void narrow(struct daemon *daemon, struct link *link, const struct sgp_layout_entry *came)
{
    struct link_held *held = &link->held;
    char own[SGP_LAYOUT_BYTES];
    if (!held->holds || came->index != held->low + (held->end - held->low) / 2)
        return;
    shared_entry(daemon->prepared->layout, came->index, own);
    bool earlier = came->before != shared_before(daemon->prepared->layout, came->index);
    bool here = !earlier && strcmp(came->text, own) != 0;
    if (earlier)
        held->end = came->index;
    else
        held->low = came->index + 1;
    if (here)
        found(daemon, link, came);
    if (here || held->low >= held->end) /* or the answer contradicts every layout */
        let_go(daemon, link);
    else
        ask(daemon, link);
}

/* A target asks, and includes its own entry. */
static void answer(struct daemon *daemon, struct link *link, const struct sgp_layout_entry *came)
{
    char own[SGP_LAYOUT_BYTES];
    if (!is_greeting(daemon, link))
        return;
    say(daemon, link, came->index);
    shared_entry(daemon->prepared->layout, came->index, own);
    if (came->before == shared_before(daemon->prepared->layout, came->index) &&
        strcmp(came->text, own) != 0)
        found(daemon, link, came);
}

void layouts_take(struct daemon *daemon, struct link *link, const struct sgp_layout_entry *came)
{
    if (link->id.direction == SGP_IN)
        narrow(daemon, link, came);
    else
        answer(daemon, link, came);
}

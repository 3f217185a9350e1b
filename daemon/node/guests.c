/* SPDX-License-Identifier: Apache-2.0 */
/* Invitations that this node has given, and the connections of machines that use them; see
 * guests.h.
 *
 * Fails: a guest that breaks the protocol, is silent, or does not read costs its connection. */
#include "guests.h"

#include "net/listener.h"

#include "sgp/dot.h"
#include "sgp/invitation.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/random.h>

_Static_assert(VIEW_INVITATION_BYTES == SGP_INVITATION_TEXT_BYTES, "an invitation as text");

struct guest {
    LIST_ENTRY(guest) next;
    struct guests *guests;
    struct link *link;
    sgp_time heard;
    char *texts; /* the topology file and the settings, escaped */
    uint32_t bytes, split;
};

struct guests {
    struct daemon *daemon;
    struct sgp_invitations book;
    char *settings; /* of the configuration, as it was at the latest invitation; escaped */
    uv_timer_t timer;
    LIST_HEAD(, guest) list; /* the latest first */
    uint32_t count;
};

/* A guest learns nothing of the node's training. */
static const struct sgp_pulse pulse = {
    .state = SGP_NODE_JOINING, .next_round = SGP_ROUND_NONE, .stop = SGP_ROUND_NONE};

static sgp_time now(void)
{
    return (sgp_time)uv_hrtime();
}

bool guests_are_awaited(const struct daemon *daemon)
{
    return sgp_invitations_await(&daemon->guests->book, now());
}

bool guests_has(void *context, const struct link *link)
{
    const struct daemon *daemon = context;
    return link->cipher != NULL &&
           sgp_topology_find_key(daemon->prepared->topology, sgp_cipher_peer(link->cipher)) < 0;
}

/* ---- the texts ---- */

static char *topology_text(const struct sgp_topology *topology)
{
    char *text = NULL, *escaped = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);
    if (file == NULL)
        return NULL;
    const int code = sgp_dot_write(file, topology, NULL);
    if (fclose(file) == 0 && code == 0)
        escaped = sgp_joined_escape(text);
    free(text);
    return escaped;
}

static bool make_texts(struct guest *guest)
{
    const struct guests *guests = guest->guests;
    char *topology = topology_text(guests->daemon->prepared->topology);
    const size_t split = topology != NULL ? strlen(topology) : 0;
    const size_t bytes = split + strlen(guests->settings);
    if (topology != NULL && bytes <= SGP_JOINED_MAX)
        guest->texts = malloc(bytes + 1);
    if (guest->texts != NULL)
        (void)snprintf(guest->texts, bytes + 1, "%s%s", topology, guests->settings);
    guest->bytes = (uint32_t)bytes;
    guest->split = (uint32_t)split;
    free(topology);
    return guest->texts != NULL;
}

static void send_pieces(const struct guest *guest, uint32_t first)
{
    char text[SGP_JOINED_PIECE_MAX + 1];
    struct link *link = guest->link; /* a failure of the link forgets the guest */
    struct sgp_message message = {.type = SGP_JOINED,
        .pulse = pulse,
        .joined = {.verdict = SGP_JOIN_ACCEPTED,
            .bytes = guest->bytes,
            .split = guest->split,
            .text = text}};
    for (uint32_t i = 0; i < SGP_JOINED_PIECES && first < guest->bytes; i++) {
        message.joined.first = first;
        first += sgp_joined_piece(guest->texts, guest->bytes, first, text);
        link_send(link, &message);
        if (!link_stands(link))
            return;
    }
}

/* ---- accepted guests ---- */

static void forget(struct guest *guest)
{
    LIST_REMOVE(guest, next);
    if (--guest->guests->count == 0)
        (void)uv_timer_stop(&guest->guests->timer);
    free(guest->texts);
    free(guest);
}

static void end(struct guest *guest)
{
    struct link *link = guest->link;
    forget(guest);
    if (link_stands(link))
        link_close(link, NULL);
}

static void on_message(struct link *link, const struct sgp_message *message)
{
    struct guest *guest = link->context;
    if (message->type != SGP_JOIN) {
        end(guest);
        return;
    }
    guest->heard = now();
    send_pieces(guest, message->join.first);
}

static void on_failed(struct link *link, int code, const char *text)
{
    (void)code;
    (void)text; /* the joiner closes when it has all */
    forget(link->context);
}

static const struct link_events guest_events = {
    .message = on_message,
    .failed = on_failed,
};

static void on_timer(uv_timer_t *timer)
{
    struct guests *guests = timer->data;
    struct guest *guest = LIST_FIRST(&guests->list), *next;
    for (; guest != NULL; guest = next) {
        next = LIST_NEXT(guest, next);
        if (now() - guest->heard > GUESTS_SILENCE_NS)
            end(guest);
    }
}

static void make_room(struct guests *guests)
{
    struct guest *guest, *oldest = NULL;
    LIST_FOREACH (guest, &guests->list, next)
        oldest = guest;
    if (guests->count == GUESTS_MAX && oldest != NULL)
        end(oldest);
}

static void accept_guest(struct guests *guests, struct link *link, uint32_t first)
{
    struct guest *guest = calloc(1, sizeof *guest);
    if (guest != NULL)
        *guest = (struct guest){.guests = guests, .link = link, .heard = now()};
    if (guest == NULL || !make_texts(guest)) {
        free(guest);
        listener_refuse(&guests->daemon->listener, link, SGP_REASON_RANGE,
            "a machine joins, and there is no memory for the topology file, or it is too long",
            "the inviter cannot send its topology file; copy it by hand, and try again");
        return;
    }
    make_room(guests);
    LIST_INSERT_HEAD(&guests->list, guest, next);
    guests->count++;
    link->events = &guest_events;
    link->context = guest;
    (void)uv_timer_start(&guests->timer, on_timer, 1000, 1000);
    send_pieces(guest, first);
}

/* ---- the verdict ---- */

/* Whether a joiner may be dialled there, or says that it cannot be. */
static bool is_address(const char *address)
{
    char host[SGP_ADDRESS_BYTES];
    uint16_t port;
    return strcmp(address, SGP_ADDRESS_NONE) == 0 ||
           sgp_address_split(address, NULL, host, &port) >= 0;
}

static enum sgp_join_verdict judge(
    struct daemon *daemon, struct link *link, const struct sgp_join *join)
{
    struct sgp_join_claim claim = {.fleet = join->fleet,
        .name = join->name,
        .address = join->address,
        .key = sgp_cipher_peer(link->cipher),
        .number = join->number};
    struct sgp_invitations *book = &daemon->guests->book;
    const struct sgp_invitation_record *record = NULL;
    /* a text that is no proof is a wrong one, of zeros */
    if (!sgp_proof_read(join->proof, claim.proof))
        memset(claim.proof, 0, sizeof claim.proof);
    if (sgp_cipher_binding(link->cipher, claim.binding) < 0)
        claim.number = 0; /* nothing can be proved */
    const enum sgp_join_verdict verdict = sgp_invitations_judge(book, &claim, now(), &record);
    if (verdict == SGP_JOIN_ACCEPTED)
        sgp_log(&daemon->log->sink, SGP_LEVEL_INFO, "event=pending name=%s address=%s key=%s",
            record->name, record->address, record->key);
    return verdict;
}

void guests_on_join(void *context, struct link *link, const struct sgp_message *message)
{
    struct daemon *daemon = context;
    const struct sgp_join *join = &message->join;
    if (link->cipher == NULL) {
        listener_refuse(&daemon->listener, link, SGP_REASON_PROTOCOL,
            "a machine would join without TLS",
            "joining needs TLS: an invitation is for a fleet with tls=require or tls=offer");
        return;
    }
    if (!is_address(join->address)) {
        listener_refuse(&daemon->listener, link, SGP_REASON_RANGE,
            "a machine would join with an address that is none", NULL);
        return;
    }
    if (!sgp_topology_name_is_good(join->fleet) || !sgp_topology_name_is_good(join->name)) {
        listener_refuse(&daemon->listener, link, SGP_REASON_RANGE,
            "a machine would join with a name that is none", NULL);
        return;
    }
    const struct sgp_message answer = {.type = SGP_JOINED,
        .pulse = pulse,
        .joined = {.verdict = judge(daemon, link, join), .text = ""}};
    if (answer.joined.verdict == SGP_JOIN_ACCEPTED) {
        accept_guest(daemon->guests, link, join->first);
        return;
    }
    char text[SGP_TEXT_BYTES];
    (void)snprintf(text, sizeof text, "it would join as %s: %s", join->name,
        sgp_join_verdict_text(answer.joined.verdict));
    listener_log(&daemon->listener, link, text);
    link_close(link, &answer);
}

/* ---- orders of users ---- */

/* Read the settings anew, as the file says now. */
static int take_settings(struct guests *guests, struct sgp_error *error)
{
    char *text = NULL;
    int code = config_shared(guests->daemon->config->file, error, &text);
    char *escaped = code == 0 ? sgp_joined_escape(text) : NULL;
    free(text);
    if (code < 0)
        return code;
    if (escaped == NULL)
        return sgp_fail(error, -ENOMEM, "out of memory");
    free(guests->settings);
    guests->settings = escaped;
    return 0;
}

static int fill(const struct daemon *daemon, const struct view_invitation *wish,
    struct sgp_invitation *invitation, struct sgp_error *error)
{
    const struct sgp_topology *topology = daemon->prepared->topology;
    const char *own = topology->nodes[daemon->prepared->self].address;
    const char *address = wish->address[0] != '\0' ? wish->address : own;
    char host[SGP_ADDRESS_BYTES];
    uint16_t port;
    struct sgp_error why = {0};
    if (topology->tls == SGP_TLS_OFF || daemon->prepared->key == NULL)
        return sgp_fail(error, SGP_E_STATE,
            "joining needs keys, and the topology file says tls=off; give the nodes keys and write "
            "tls=require first");
    if (sgp_topology_find(topology, wish->name) >= 0)
        return sgp_fail(
            error, SGP_E_STATE, "%s is a node of the topology file already", wish->name);
    if (strcmp(address, SGP_ADDRESS_NONE) == 0 || address[0] == '\0')
        return sgp_fail(error, SGP_E_STATE,
            "this node cannot be dialled (address=none); let a node invite that can be");
    const size_t bytes = strlen(address) + 1;
    if (bytes > sizeof invitation->address || sgp_address_split(address, &why, host, &port) < 0)
        return sgp_fail(
            error, SGP_E_STATE, "%s", why.text[0] != '\0' ? why.text : "the address is too long");
    (void)snprintf(invitation->fleet, sizeof invitation->fleet, "%s", topology->phases[0].name);
    (void)snprintf(invitation->name, sizeof invitation->name, "%s", wish->name);
    memcpy(invitation->address, address, bytes);
    (void)snprintf(
        invitation->key, sizeof invitation->key, "%s", sgp_key_hash(daemon->prepared->key));
    if (getrandom(invitation->secret, SGP_SECRET_BYTES, 0) != (ssize_t)SGP_SECRET_BYTES)
        return sgp_fail(error, SGP_E_STATE, "the system has no random bytes now; try again");
    return 0;
}

static int invite(void *context, const struct view_invitation *wish,
    char ret_text[VIEW_INVITATION_BYTES], struct sgp_error *error)
{
    struct daemon *daemon = context;
    struct guests *guests = daemon->guests;
    struct sgp_invitation invitation = {.fleet = ""};
    const sgp_time lasts = (sgp_time)(wish->seconds * (double)SGP_SECOND);
    int code = fill(daemon, wish, &invitation, error);
    if (code == 0)
        code = take_settings(guests, error);
    if (code == 0)
        code = sgp_invitations_add(&guests->book, &invitation, now(), lasts, error);
    if (code == 0) {
        sgp_invitation_write(&invitation, ret_text);
        sgp_log(&daemon->log->sink, SGP_LEVEL_INFO, "event=invited name=%s seconds=%.0f",
            invitation.name, wish->seconds);
    }
    explicit_bzero(&invitation, sizeof invitation);
    return code;
}

static const char *state_of(const struct sgp_invitation_record *record)
{
    if (record->used)
        return "pending";
    return now() < record->until ? "open" : "expired";
}

static uint32_t invitations(void *context, struct view_invitation *ret_invitations, uint32_t most)
{
    const struct daemon *daemon = context;
    uint32_t count = 0;
    for (size_t i = 0; i < SGP_INVITATIONS_MAX && count < most; i++) {
        const struct sgp_invitation_record *record = &daemon->guests->book.records[i];
        if (!record->given)
            continue;
        struct view_invitation *view = &ret_invitations[count++];
        const sgp_time left = record->until - now();
        *view = (struct view_invitation){
            .state = state_of(record), .seconds = left > 0 ? (double)left / (double)SGP_SECOND : 0};
        (void)snprintf(view->name, sizeof view->name, "%s", record->name);
        (void)snprintf(view->key, sizeof view->key, "%s", record->key);
        (void)snprintf(view->address, sizeof view->address, "%s", record->address);
    }
    return count;
}

void guests_status(const struct daemon *daemon, struct view_status *status)
{
    status->joins_refused = daemon->guests->book.refused;
    for (size_t i = 0; i < SGP_INVITATIONS_MAX; i++) {
        const struct sgp_invitation_record *record = &daemon->guests->book.records[i];
        status->joins_pending += record->given && record->used;
    }
}

void guests_reloaded(struct daemon *daemon)
{
    const struct sgp_topology *topology = daemon->prepared->topology;
    for (uint32_t i = 0; i < topology->node_count; i++)
        sgp_invitations_forget(&daemon->guests->book, topology->nodes[i].name);
}

void guests_offer(struct view_actions *actions)
{
    actions->invite = invite;
    actions->invitations = invitations;
}

/* ---- the whole ---- */

int guests_open(struct daemon *daemon, struct sgp_error *error)
{
    struct guests *guests = calloc(1, sizeof *guests);
    if (guests == NULL)
        return sgp_fail(error, -ENOMEM, "no memory for invitations");
    guests->daemon = daemon;
    (void)uv_timer_init(&daemon->loop, &guests->timer);
    guests->timer.data = guests;
    daemon->guests = guests;
    return 0;
}

void guests_silence(struct daemon *daemon)
{
    struct guest *guest = LIST_FIRST(&daemon->guests->list), *next;
    for (; guest != NULL; guest = next) {
        next = LIST_NEXT(guest, next);
        end(guest);
    }
}

void guests_close(struct daemon *daemon)
{
    struct guests *guests = daemon->guests;
    guests_silence(daemon);
    uv_close((uv_handle_t *)&guests->timer, NULL);
}

void guests_finish(struct daemon *daemon)
{
    free(daemon->guests != NULL ? daemon->guests->settings : NULL);
    free(daemon->guests);
    daemon->guests = NULL;
}

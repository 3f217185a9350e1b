/* SPDX-License-Identifier: Apache-2.0 */
/* Strangers on the gossip port; see listener.h. */
#include "listener.h"

#include <malloc.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>

/* ---- one line a stranger, up to a limit ---- */

void listener_log(struct listener *listener, const struct link *link, const char *text)
{
    sgp_time now = (sgp_time)uv_hrtime();
    if (now - listener->lines_since >= LISTENER_LINES_NS) {
        if (listener->lines_dropped > 0)
            sgp_log(listener->sink, SGP_LEVEL_WARNING, "event=strangers lines_dropped=%llu",
                (unsigned long long)listener->lines_dropped);
        listener->lines_since = now;
        listener->lines = 0;
        listener->lines_dropped = 0;
    }
    if (listener->lines >= LISTENER_LINES_MAX) {
        listener->lines_dropped++;
        return;
    }
    listener->lines++;
    sgp_log(listener->sink, SGP_LEVEL_WARNING, "event=refused remote=%s reason=\"%s\"",
        link->remote, text);
}

/* By the present topology file. */
static enum sgp_tls tls_of(struct listener *listener, struct sgp_cipher_settings *ret_settings)
{
    *ret_settings = (struct sgp_cipher_settings){.dials = false};
    return listener->events.tls != NULL
               ? listener->events.tls(listener->events.context, ret_settings)
               : SGP_TLS_OFF;
}

static bool is_guest(const struct listener *listener, const struct link *link)
{
    return listener->events.guest != NULL && listener->events.guest(listener->events.context, link);
}

static bool is_former(const struct listener *listener, const struct link *link)
{
    return listener->events.former != NULL &&
           listener->events.former(listener->events.context, link);
}

/* Where TLS is required, a caller without TLS learns why it is refused, and nothing about this
 * node. So does a caller whose key is in no topology file. */
void listener_refuse(struct listener *listener, struct link *link, enum sgp_reason reason,
    const char *text, const char *told)
{
    listener_log(listener, link, text);
    struct sgp_message goodbye = {.type = SGP_GOODBYE,
        .pulse = {.state = SGP_NODE_JOINING, .next_round = SGP_ROUND_NONE, .stop = SGP_ROUND_NONE},
        .goodbye = {.reason = reason, .text = told != NULL ? told : sgp_reason_text(reason)}};
    struct sgp_cipher_settings settings;
    if (!is_guest(listener, link) &&
        (link->cipher != NULL || tls_of(listener, &settings) != SGP_TLS_REQUIRE))
        listener->events.pulse(listener->events.context, &goodbye.pulse);
    link_close(link, &goodbye);
}

/* ---- strangers ---- */

static void on_trim(uv_timer_t *timer)
{
    struct listener *listener = timer->data;
    listener->departures = 0;
    (void)malloc_trim(0);
}

/* A caller is no stranger any more, or is closed before it became one. What many callers took
 * together would stay in the heap: glibc returns by itself only what is free at the heap's end. */
static void count_departure(struct listener *listener)
{
    if (++listener->departures == LISTENER_DEPARTURES && !listener->closing)
        (void)uv_timer_start(&listener->trim, on_trim, LISTENER_TRIM_MS, 0);
}

static void arm(struct listener *listener);

static void forget(struct listener *listener, struct link *link)
{
    struct link **place = &listener->strangers;
    while (*place != NULL && *place != link)
        place = &(*place)->next;
    if (*place == NULL)
        return;
    *place = link->next;
    link->next = NULL;
    listener->stranger_count--;
    listener->unexpected_count -= !link->foreseen;
    count_departure(listener);
    arm(listener);
}

static void on_timeout(uv_timer_t *timer)
{
    struct listener *listener = timer->data;
    struct link *oldest = listener->strangers;
    if (oldest == NULL)
        return;
    if ((sgp_time)uv_hrtime() - oldest->opened < LISTENER_HELLO_NS) {
        arm(listener);
        return;
    }
    forget(listener, oldest);
    listener_refuse(listener, oldest, SGP_REASON_PROTOCOL, "it said no hello within 5 s", NULL);
}

static void arm(struct listener *listener)
{
    if (listener->strangers == NULL || listener->closing) {
        (void)uv_timer_stop(&listener->timer);
        return;
    }
    sgp_time left = listener->strangers->opened + LISTENER_HELLO_NS - (sgp_time)uv_hrtime();
    uint64_t milliseconds = left > 0 ? (uint64_t)(left / SGP_MILLISECOND) + 1 : 0;
    (void)uv_timer_start(&listener->timer, on_timeout, milliseconds, 0);
}

/* At this point it is open whether the link will be ciphered. */
static void on_first(struct link *link, uint8_t byte)
{
    struct listener *listener = link->context;
    struct sgp_cipher_settings settings;
    enum sgp_tls tls = tls_of(listener, &settings);
    int code = 0;
    if (tls != SGP_TLS_REQUIRE && byte != SGP_CIPHER_HELLO)
        return;
    if (byte != SGP_CIPHER_HELLO) {
        forget(listener, link);
        listener_refuse(listener, link, SGP_REASON_PROTOCOL,
            "it speaks without TLS, which the topology file requires",
            "the peer requires TLS (tls=require), and this node's topology file does not say "
            "so; " LISTENER_REMEDY);
    } else if (tls == SGP_TLS_OFF) {
        forget(listener, link);
        listener_refuse(listener, link, SGP_REASON_PROTOCOL,
            "a TLS client is calling, and by this node's topology file links are plain (tls=off); "
            "if it is a node, " LISTENER_REMEDY,
            NULL);
    } else if ((code = link_cipher(link, &settings)) < 0) {
        forget(listener, link);
        listener_log(listener, link, sgp_strerror(code));
        link_close(link, NULL);
    }
}

/* It was let in because a machine may join. */
static void refuse_guest(struct listener *listener, struct link *link)
{
    char text[SGP_TEXT_BYTES];
    (void)snprintf(text, sizeof text,
        "its key is %s, which the topology file gives to nobody; such a caller may only join",
        sgp_cipher_peer(link->cipher));
    listener_refuse(listener, link, SGP_REASON_PROTOCOL, text,
        "the listener's topology file gives this node's key to nobody; " LISTENER_REMEDY);
}

static void on_message(struct link *link, const struct sgp_message *message)
{
    struct listener *listener = link->context;
    forget(listener, link);
    if (message->type == SGP_JOIN && listener->events.join != NULL)
        listener->events.join(listener->events.context, link, message);
    else if (is_guest(listener, link) && !(message->type == SGP_PULL && is_former(listener, link)))
        refuse_guest(listener, link);
    else if (message->type == SGP_HELLO)
        listener->events.hello(listener->events.context, link, message);
    else if (message->type == SGP_INQUIRE)
        listener->events.inquire(listener->events.context, link, message);
    else if (message->type == SGP_CALL)
        listener->events.call(listener->events.context, link, message);
    else if (message->type == SGP_PULL && listener->events.pull != NULL)
        listener->events.pull(listener->events.context, link, message);
    else
        listener_refuse(
            listener, link, SGP_REASON_PROTOCOL, "its first message was no hello", NULL);
}

static void on_failed(struct link *link, int code, const char *text)
{
    struct listener *listener = link->context;
    forget(listener, link);
    if (code == SGP_E_VERSION)
        listener_refuse(listener, link, SGP_REASON_VERSION, text, NULL);
    else
        listener_log(listener, link, text);
}

/* A stranger leaves the list when its link is closed, so `freed` has nothing to do. */
static const struct link_events stranger_events = {
    .first = on_first,
    .message = on_message,
    .failed = on_failed,
};

/* ---- places ---- */

static bool find_remote(const struct link *link, struct sockaddr_storage *ret_address)
{
    int bytes = (int)sizeof *ret_address;
    return uv_tcp_getpeername(&link->tcp, (struct sockaddr *)ret_address, &bytes) == 0;
}

static bool is_expected(const struct listener *listener, const struct link *link)
{
    struct sockaddr_storage address;
    return listener->events.expects == NULL ||
           (find_remote(link, &address) && listener->events.expects(listener->events.context,
                                               (const struct sockaddr *)&address));
}

/* By its address; for IPv6, by the half that the caller cannot choose. */
static uint8_t *rate_of(struct listener *listener, const struct link *link)
{
    struct sockaddr_storage address = {.ss_family = AF_UNSPEC};
    (void)find_remote(link, &address);
    const struct in6_addr *six = &((const struct sockaddr_in6 *)&address)->sin6_addr;
    const void *bytes = &((const struct sockaddr_in *)&address)->sin_addr;
    size_t count = sizeof(struct in_addr);
    if (address.ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(six)) {
        bytes = &six->s6_addr[12];
    } else if (address.ss_family == AF_INET6) {
        bytes = six;
        count = sizeof *six / 2;
    }
    XXH64_hash_t hash = XXH3_64bits_withSeed(bytes, count, listener->salt);
    return &listener->rate_of[hash % LISTENER_ADDRESSES];
}

/* Whether one more unexpected caller exceeds the limit of this second. */
static bool is_flood(struct listener *listener, const struct link *link)
{
    sgp_time now = (sgp_time)uv_hrtime();
    if (now - listener->rate_since >= SGP_SECOND) {
        listener->rate_since = now;
        listener->rate_count = 0;
        memset(listener->rate_of, 0, sizeof listener->rate_of);
    }
    uint8_t *rate = rate_of(listener, link);
    if (*rate == LISTENER_ADDRESS_RATE)
        return true;
    ++*rate;
    return listener->rate_count++ >= LISTENER_UNEXPECTED_RATE;
}

/* Make room for one more: the oldest unexpected caller is closed, or, for an expected caller, the
 * oldest caller. */
static bool make_room(struct listener *listener, const struct link *link)
{
    bool full = listener->stranger_count == LISTENER_STRANGERS_MAX;
    if (!full && (link->foreseen || listener->unexpected_count < LISTENER_UNEXPECTED_MAX))
        return true;
    if (!link->foreseen && listener->unexpected_count == 0)
        return false;
    struct link *oldest = listener->strangers;
    while (listener->unexpected_count > 0 && oldest->foreseen)
        oldest = oldest->next;
    forget(listener, oldest);
    listener_refuse(
        listener, oldest, SGP_REASON_PROTOCOL, "too many callers without a hello", NULL);
    return true;
}

static void on_connection(uv_stream_t *server, int status);

/* libuv keeps the present caller, and accepts no other before uv_accept takes this one. */
static void on_retry(uv_timer_t *timer)
{
    struct listener *listener = timer->data;
    listener->accepts = 0;
    on_connection((uv_stream_t *)&listener->tcp, 0);
}

static void on_connection(uv_stream_t *server, int status)
{
    struct listener *listener = server->data;
    if (status < 0) {
        sgp_log(
            listener->sink, SGP_LEVEL_WARNING, "event=accept error=\"%s\"", uv_strerror(status));
        return;
    }
    /* A closed link keeps its memory until the turn ends. Without this bound, callers took
     * 45 MB. */
    if (listener->accepts == LISTENER_ACCEPTS_PER_TURN) {
        (void)uv_timer_start(&listener->retry, on_retry, 0, 0);
        return;
    }
    struct link *link = link_create(server->loop, &stranger_events, listener);
    if (link == NULL) {
        sgp_log(listener->sink, SGP_LEVEL_WARNING, "event=accept error=\"out of memory\"");
        (void)uv_timer_start(&listener->retry, on_retry, LISTENER_RETRY_MS, 0);
        return;
    }
    listener->accepts++;
    link->calls = true;
    if (uv_accept(server, (uv_stream_t *)&link->tcp) < 0 || link_start(link) < 0) {
        link_close(link, NULL);
        return;
    }
    link->foreseen = is_expected(listener, link);
    if (!link->foreseen && (is_flood(listener, link) || !make_room(listener, link))) {
        listener_log(listener, link, "too many callers from addresses that nobody expects");
        count_departure(listener);
        link_close(link, NULL);
        return;
    }
    if (link->foreseen)
        (void)make_room(listener, link);
    struct link **place = &listener->strangers;
    while (*place != NULL)
        place = &(*place)->next;
    *place = link;
    listener->stranger_count++;
    listener->unexpected_count += !link->foreseen;
    arm(listener);
}

/* ---- the port ---- */

/* "lo 127.0.0.1, eth0 10.0.0.2" */
static void list_interfaces(char *text, size_t capacity)
{
    uv_interface_address_t *addresses;
    int count;
    size_t used = 0;
    text[0] = '\0';
    if (uv_interface_addresses(&addresses, &count) < 0)
        return;
    for (int i = 0; i < count && used < capacity; i++) {
        char host[46] = "?";
        (void)uv_ip_name((const struct sockaddr *)&addresses[i].address, host, sizeof host);
        int more = snprintf(
            text + used, capacity - used, "%s%s %s", i > 0 ? ", " : "", addresses[i].name, host);
        used += more > 0 ? (size_t)more : 0;
    }
    uv_free_interface_addresses(addresses, count);
}

static int cannot_listen(const char *address, int code, struct sgp_error *error)
{
    char interfaces[SGP_TEXT_BYTES / 2];
    list_interfaces(interfaces, sizeof interfaces);
    return sgp_fail(error, code, "cannot listen on %s: %s; this machine has %s", address,
        uv_strerror(code), interfaces);
}

static int bind_and_listen(struct listener *listener, const char *address, struct sgp_error *error)
{
    char host[SGP_ADDRESS_BYTES];
    char port_text[8];
    uint16_t port;
    int code = sgp_address_split(address, error, host, &port);
    if (code < 0)
        return code;
    (void)snprintf(port_text, sizeof port_text, "%u", port);
    uv_getaddrinfo_t request;
    struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    code = uv_getaddrinfo(listener->tcp.loop, &request, NULL, host, port_text, &hints);
    if (code == 0) {
        code = uv_tcp_bind(&listener->tcp, request.addrinfo->ai_addr, 0);
        uv_freeaddrinfo(request.addrinfo);
    }
    if (code == 0)
        code = uv_listen((uv_stream_t *)&listener->tcp, LISTENER_BACKLOG, on_connection);
    return code < 0 ? cannot_listen(address, code, error) : 0;
}

int listener_open(struct listener *listener, uv_loop_t *loop, const char *address,
    const struct listener_events *events, const struct sgp_sink *sink, struct sgp_error *error)
{
    *listener = (struct listener){.events = *events, .sink = sink, .salt = uv_hrtime()};
    int code = uv_tcp_init(loop, &listener->tcp);
    if (code < 0)
        return sgp_fail(error, code, "cannot make a socket: %s", uv_strerror(code));
    (void)uv_timer_init(loop, &listener->timer);
    (void)uv_timer_init(loop, &listener->retry);
    (void)uv_timer_init(loop, &listener->trim);
    listener->tcp.data = listener;
    listener->timer.data = listener;
    listener->retry.data = listener;
    listener->trim.data = listener;
    if (strcmp(address, SGP_ADDRESS_NONE) != 0)
        code = bind_and_listen(listener, address, error);
    if (code < 0)
        listener_close(listener);
    return code;
}

void listener_close(struct listener *listener)
{
    if (listener->closing)
        return;
    listener->closing = true;
    while (listener->strangers != NULL) {
        struct link *link = listener->strangers;
        forget(listener, link);
        link_close(link, NULL);
    }
    uv_close((uv_handle_t *)&listener->timer, NULL);
    uv_close((uv_handle_t *)&listener->retry, NULL);
    uv_close((uv_handle_t *)&listener->trim, NULL);
    uv_close((uv_handle_t *)&listener->tcp, NULL);
}

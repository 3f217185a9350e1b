/* SPDX-License-Identifier: Apache-2.0 */
/* A command that serves over HTTP: its TCP socket, and the places of its clients. */
#include "ctl.h"

#include "sgp/topology.h"

#include <errno.h>
#include <netdb.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define ANY_PORT "127.0.0.1:0" /* a port that the kernel chooses */

static int listen_on(const struct addrinfo *found, int backlog)
{
    int on = 1;
    int descriptor = socket(found->ai_family, found->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (descriptor < 0)
        return -errno;
    (void)setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(descriptor, found->ai_addr, found->ai_addrlen) == 0 &&
        listen(descriptor, backlog) == 0)
        return descriptor;
    int code = -errno;
    (void)close(descriptor);
    return code;
}

static enum ctl_exit listen_at(
    struct ctl *ctl, const char *address, const char *host, uint16_t port, int *ret_listener)
{
    char port_text[8];
    (void)snprintf(port_text, sizeof port_text, "%u", port);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *found;
    int code = getaddrinfo(host, port_text, &hints, &found);
    if (code != 0)
        return ctl_fail(ctl, CTL_FAILED, "cannot listen on %s: %s", address, gai_strerror(code));
    code = listen_on(found, CTL_BACKLOG);
    freeaddrinfo(found);
    if (code < 0)
        return ctl_fail(ctl, CTL_FAILED, "cannot listen on %s: %s", address, sgp_strerror(code));
    *ret_listener = code;
    return CTL_DONE;
}

enum ctl_exit ctl_listen(struct ctl *ctl, const char *address, int *ret_listener)
{
    char host[SGP_ADDRESS_BYTES];
    uint16_t port;
    struct sgp_error error = {0};
    if (!address)
        return listen_at(ctl, ANY_PORT, "127.0.0.1", 0, ret_listener);
    size_t length = strlen(address);
    bool has_port = length > 0 && address[length - 1] != ']' && strchr(address, ':');
    if (!has_port || sgp_address_split(address, &error, host, &port) < 0)
        return ctl_usage(
            ctl, "--listen is HOST:PORT such as 127.0.0.1:9311 or [::]:9311, not '%s'", address);
    return listen_at(ctl, address, host, port, ret_listener);
}

/* ---- clients ---- */

double ctl_now(void)
{
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

void ctl_clients_init(struct ctl_clients *clients)
{
    for (size_t i = 0; i < CTL_CLIENTS_MAX; i++)
        clients->places[i].descriptor = -1;
}

struct ctl_client *ctl_clients_add(struct ctl_clients *clients, int descriptor)
{
    struct ctl_client *place = NULL;
    for (size_t i = 0; i < CTL_CLIENTS_MAX && !place; i++)
        if (clients->places[i].descriptor < 0)
            place = &clients->places[i];
    if (place)
        *place = (struct ctl_client){.descriptor = descriptor, .since = ctl_now()};
    return place;
}

void ctl_clients_remove(struct ctl_client *client)
{
    client->descriptor = -1;
}

void ctl_clients_sweep(struct ctl_clients *clients)
{
    double since = ctl_now() - CTL_CLIENT_SECONDS;
    for (size_t i = 0; i < CTL_CLIENTS_MAX; i++) {
        const struct ctl_client *client = &clients->places[i];
        if (client->descriptor >= 0 && !client->streaming && client->since < since)
            (void)shutdown(client->descriptor, SHUT_RDWR);
    }
}

void ctl_clients_limit_strangers(struct ctl_clients *clients, unsigned most)
{
    struct ctl_client *oldest = NULL;
    unsigned strangers = 0;
    for (size_t i = 0; i < CTL_CLIENTS_MAX; i++) {
        struct ctl_client *client = &clients->places[i];
        if (client->descriptor < 0 || client->known || client->leaving)
            continue;
        strangers++;
        if (!oldest || client->since < oldest->since)
            oldest = client;
    }
    if (strangers <= most)
        return;
    oldest->leaving = true;
    (void)shutdown(oldest->descriptor, SHUT_RDWR);
}

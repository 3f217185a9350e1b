/* SPDX-License-Identifier: Apache-2.0 */
/* The socket options and the kernel's figures of a link's connection; see link.h. */
#include "link.h"

#include <math.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

static void name_remote(struct link *link)
{
    struct sockaddr_storage address = {.ss_family = AF_UNSPEC};
    const struct sockaddr *remote = (const struct sockaddr *)&address;
    int bytes = (int)sizeof address;
    char host[46] = "?";
    unsigned port = 0;
    if (uv_tcp_getpeername(&link->tcp, (struct sockaddr *)&address, &bytes) == 0) {
        (void)uv_ip_name(remote, host, sizeof host);
        /* the port is at the same place for IPv6 */
        port = ntohs(((const struct sockaddr_in *)remote)->sin_port);
    }
    bool bracket = address.ss_family == AF_INET6;
    (void)snprintf(link->remote, sizeof link->remote, "%s%s%s:%u", bracket ? "[" : "", host,
        bracket ? "]" : "", port);
}

/* Whether both ends have one address: then bytes do not leave this machine. */
static bool is_within(const struct sockaddr *a, const struct sockaddr *b)
{
    char own[46], other[46];
    return uv_ip_name(a, own, sizeof own) == 0 && uv_ip_name(b, other, sizeof other) == 0 &&
           strcmp(own, other) == 0;
}

/* Within a machine no packet is lost, so pacing is of no use. Where bbr is the kernel's default, it
 * paces all the same, and takes half as long again. Every kernel has reno, and allows every process
 * to choose it. */
static void spare_pacing(const struct link *link)
{
    struct sockaddr_storage own, other;
    int own_bytes = sizeof own, other_bytes = sizeof other;
    uv_os_fd_t socket;
    if (uv_tcp_getsockname(&link->tcp, (struct sockaddr *)&own, &own_bytes) == 0 &&
        uv_tcp_getpeername(&link->tcp, (struct sockaddr *)&other, &other_bytes) == 0 &&
        is_within((struct sockaddr *)&own, (struct sockaddr *)&other) &&
        uv_fileno((const uv_handle_t *)&link->tcp, &socket) == 0)
        (void)setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
}

void link_tune(struct link *link)
{
    name_remote(link);
    spare_pacing(link);
    (void)uv_tcp_nodelay(&link->tcp, 1);
    (void)uv_tcp_keepalive(&link->tcp, 1, LINK_KEEPALIVE_SECONDS);
}

double link_rtt_ms(const struct link *link)
{
    uv_os_fd_t descriptor;
    struct tcp_info info;
    socklen_t bytes = sizeof info;
    if (link->closing || uv_fileno((const uv_handle_t *)&link->tcp, &descriptor) < 0 ||
        getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &bytes) < 0)
        return NAN;
    return info.tcpi_rtt / 1000.0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The process behind a control socket, as a descriptor that is readable once it has ended. */
#include "ctl.h"

#include <poll.h>
#include <stdio.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int ctl_process_open(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct ucred peer = {0};
    socklen_t bytes = sizeof peer;
    int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (descriptor < 0)
        return -1;
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    bool known = connect(descriptor, (const struct sockaddr *)&address, sizeof address) == 0 &&
                 getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 &&
                 peer.pid > 0; /* 0: it is outside this container */
    (void)close(descriptor);
    return known ? pidfd_open(peer.pid, 0) : -1;
}

bool ctl_process_lives(int process)
{
    struct pollfd ended = {.fd = process, .events = POLLIN};
    return process >= 0 && poll(&ended, 1, 0) == 0;
}

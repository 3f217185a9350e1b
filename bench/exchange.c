/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel's sockets allow: the bytes of a round in the pattern of a round, by plain calls and nothing
 * else. One thread reads and writes, whichever can go on, in pieces as large as the kernel takes: on a core
 * of its own that is faster than two threads that block. */
#include "ring.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

/* What a call did: bytes, or 0 if it would have had to wait. */
static uint64_t moved(ssize_t count)
{
    if (count == 0 || (count < 0 && errno != EAGAIN))
        ring_fail("socket");
    return count > 0 ? (uint64_t)count : 0;
}

static void exchange(int out, const char *give, int in, char *take, uint64_t bytes)
{
    for (uint64_t given = 0, taken = 0; given < bytes || taken < bytes;) {
        uint64_t before = given + taken;
        if (given < bytes)
            given += moved(send(out, give + given, bytes - given, MSG_DONTWAIT | MSG_NOSIGNAL));
        if (taken < bytes)
            taken += moved(recv(in, take + taken, bytes - taken, MSG_DONTWAIT));
        struct pollfd wanted[] = {{.fd = given < bytes ? out : -1, .events = POLLOUT},
            {.fd = taken < bytes ? in : -1, .events = POLLIN}};
        if (given + taken == before && poll(wanted, 2, -1) < 0)
            ring_fail("poll");
    }
}

static struct stopwatch run(const struct ring_node *node)
{
    size_t floats = node->bytes / sizeof(float) * (1 + node->hops);
    float *memory = malloc(floats * sizeof *memory);
    if (memory == NULL)
        ring_fail("memory");
    ring_fill(memory, floats);
    struct stopwatch start = {0};
    for (uint64_t round = 0; round < node->warmup + node->rounds; round++) {
        uint64_t hop = round % node->hops;
        char *into = (char *)memory + (1 + hop) * node->bytes;
        if (round == node->warmup)
            start = stopwatch_now();
        exchange(node->out[hop], (const char *)memory, node->in[hop], into, node->bytes);
    }
    return stopwatch_since(start, node->rounds);
}

int main(int count, char **arguments)
{
    return ring_main(count, arguments, run);
}

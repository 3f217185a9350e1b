/* SPDX-License-Identifier: Apache-2.0 */
/* Connected processes for the benchmarks of transport; see ring.h. Fails: says what, and ends. */
#include "ring.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define NODES_MAX (1u << RING_HOPS_MAX)
#define SECONDS_MAX 300u

struct hosts { /* prefixes of what belongs to each; NULL: all nodes are on loopback */
    const char *namespaces;
    const char *addresses;
};

void ring_fail(const char *what)
{
    perror(what);
    exit(1);
}

void ring_fill(float *memory, size_t floats)
{
    for (size_t i = 0; i < floats; i++)
        memory[i] = (float)(i % 1000) * 0.001f;
}

static void without_delay(int descriptor)
{
    int on = 1;
    if (descriptor < 0 || setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) < 0)
        ring_fail("socket");
}

/* A socket in the network of a host, whose namespaces are files `PREFIX0`, `PREFIX1`, ...; without a
 * prefix in this network. */
static int open_socket(const char *prefix, uint32_t host)
{
    char path[PATH_MAX];
    if (prefix != NULL) {
        (void)snprintf(path, sizeof path, "%s%u", prefix, host);
        int name = open(path, O_RDONLY | O_CLOEXEC);
        if (name < 0 || setns(name, CLONE_NEWNET) < 0)
            ring_fail(path);
        (void)close(name);
    }
    return socket(AF_INET, SOCK_STREAM, 0);
}

/* Listens on `PREFIX1`, `PREFIX2`, ..., or without a prefix on loopback. */
static int open_listener(const struct hosts *hosts, uint32_t host)
{
    char text[INET_ADDRSTRLEN] = "127.0.0.1";
    struct sockaddr_in address = {.sin_family = AF_INET};
    if (hosts->addresses != NULL)
        (void)snprintf(text, sizeof text, "%s%u", hosts->addresses, host + 1);
    int listener = open_socket(hosts->namespaces, host);
    if (inet_pton(AF_INET, text, &address.sin_addr) != 1 ||
        bind(listener, (struct sockaddr *)&address, sizeof address) < 0 || listen(listener, 1) < 0)
        ring_fail("listen");
    return listener;
}

/* One connection: *ret_source writes, *ret_target reads. */
static void connect_pair(
    const struct hosts *hosts, uint32_t source, int listener, int *ret_source, int *ret_target)
{
    struct sockaddr_in address;
    socklen_t bytes = sizeof address;
    *ret_source = open_socket(hosts->namespaces, source);
    if (getsockname(listener, (struct sockaddr *)&address, &bytes) < 0 ||
        connect(*ret_source, (struct sockaddr *)&address, bytes) < 0)
        ring_fail("connect");
    *ret_target = accept(listener, NULL, NULL);
    without_delay(*ret_source);
    without_delay(*ret_target);
}

static void connect_all(const struct hosts *hosts, struct ring_node *nodes, uint32_t count)
{
    for (uint32_t target = 0; target < count; target++) {
        int listener = open_listener(hosts, target);
        for (uint32_t h = 0; h < nodes[target].hops; h++) {
            uint32_t source = (target + count - (1u << h)) % count;
            connect_pair(hosts, source, listener, &nodes[source].out[h], &nodes[target].in[h]);
        }
        (void)close(listener);
    }
}

static void close_node(const struct ring_node *node)
{
    for (uint32_t h = 0; h < node->hops; h++) {
        (void)close(node->out[h]);
        (void)close(node->in[h]);
    }
}

/* Each node has one core, in turn, as figures.core_of gives them to the other contenders. */
static void bind_to_core(uint32_t self)
{
    cpu_set_t allowed, own;
    if (sched_getaffinity(0, sizeof allowed, &allowed) < 0)
        ring_fail("sched_getaffinity");
    int wanted = (int)self % CPU_COUNT(&allowed), core = 0;
    while (!CPU_ISSET((size_t)core, &allowed) || wanted-- > 0)
        core++;
    CPU_ZERO(&own);
    CPU_SET((size_t)core, &own);
    if (sched_setaffinity(0, sizeof own, &own) < 0)
        ring_fail("sched_setaffinity");
}

/* In the child: only its own sockets stay open, so that a death is seen by the others. */
static _Noreturn void be_node(
    const struct ring_node *nodes, uint32_t count, uint32_t self, ring_run run, int result)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    bind_to_core(self);
    (void)alarm(SECONDS_MAX);
    for (uint32_t i = 0; i < count; i++)
        if (i != self)
            close_node(&nodes[i]);
    struct stopwatch taken = run(&nodes[self]);
    _exit(write(result, &taken, sizeof taken) == sizeof taken ? 0 : 1);
}

static bool parse(int count, char **arguments, struct ring_node *ret_node, uint32_t *ret_nodes)
{
    unsigned long long values[4];
    if (count != 5 && count != 7)
        return false;
    for (int i = 0; i < 4; i++)
        values[i] = strtoull(arguments[i + 1], NULL, 10);
    if (values[0] < 2 || values[0] > NODES_MAX || values[1] == 0 || values[1] % 4 != 0 ||
        values[2] == 0)
        return false;
    *ret_nodes = (uint32_t)values[0];
    *ret_node = (struct ring_node){.bytes = values[1], .rounds = values[2], .warmup = values[3]};
    while (1u << ret_node->hops < *ret_nodes)
        ret_node->hops++;
    return true;
}

int ring_main(int count, char **arguments, ring_run run)
{
    static struct ring_node nodes[NODES_MAX];
    struct ring_node model;
    uint32_t node_count;
    int results[2];
    if (!parse(count, arguments, &model, &node_count)) {
        (void)fprintf(
            stderr, "Usage: %s NODES BYTES ROUNDS WARMUP [NAMESPACES ADDRESSES]\n", arguments[0]);
        return 2;
    }
    struct hosts hosts = {count == 7 ? arguments[5] : NULL, count == 7 ? arguments[6] : NULL};
    for (uint32_t i = 0; i < node_count; i++)
        nodes[i] = model;
    connect_all(&hosts, nodes, node_count);
    if (pipe(results) < 0)
        ring_fail("pipe");
    for (uint32_t i = 0; i < node_count; i++) {
        pid_t child = fork();
        if (child < 0)
            ring_fail("fork");
        if (child == 0)
            be_node(nodes, node_count, i, run, results[1]);
    }
    (void)close(results[1]);
    for (uint32_t i = 0; i < node_count; i++)
        close_node(&nodes[i]);
    struct stopwatch slowest = {0};
    for (uint32_t i = 0; i < node_count; i++) {
        struct stopwatch taken;
        if (read(results[0], &taken, sizeof taken) != sizeof taken) {
            (void)fprintf(stderr, "%s: a node failed\n", arguments[0]);
            return 1;
        }
        slowest.seconds = taken.seconds > slowest.seconds ? taken.seconds : slowest.seconds;
        slowest.cpu_seconds += taken.cpu_seconds / node_count;
    }
    while (wait(NULL) > 0) {
    }
    (void)printf(
        "{\"seconds\": %.9g, \"cpu_seconds\": %.9g}\n", slowest.seconds, slowest.cpu_seconds);
    return 0;
}

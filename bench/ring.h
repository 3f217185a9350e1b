/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that give along the one-peer exponential graph, connected by TCP over loopback, or from host to
 * host.
 *
 * ring_main reads `NODES BYTES ROUNDS WARMUP [NAMESPACES ADDRESSES]` from the command line, connects, forks the
 * nodes, has each of them run, and prints one JSON object: seconds of a round on the slowest node, and
 * processor seconds of a round on the average node. NAMESPACES and ADDRESSES are prefixes: /run/netns/h and
 * 10.77.0. put node 0 into the network namespace /run/netns/h0 at 10.77.0.1. In round k node i gives BYTES to node i + 2^(k mod hops), where hops is the
 * number of powers of two below NODES. */
#ifndef BENCH_RING_H
#define BENCH_RING_H

#include "stopwatch.h"

#include <stddef.h>

#define RING_HOPS_MAX 8u

struct ring_node {
    uint64_t bytes;
    uint64_t rounds; /* counted, after these: */
    uint64_t warmup;
    uint32_t hops;
    int out[RING_HOPS_MAX]; /* connected sockets by hop, without Nagle's delay */
    int in[RING_HOPS_MAX];
};

/* A node's share of the work, in a process of its own: all rounds, and what each counted one took. */
typedef struct stopwatch (*ring_run)(const struct ring_node *node);

int ring_main(int count, char **arguments, ring_run run);

/* Touch memory that is to be sent or received into. */
void ring_fill(float *memory, size_t floats);

/* End this process with a line on standard error. */
_Noreturn void ring_fail(const char *what);

#endif

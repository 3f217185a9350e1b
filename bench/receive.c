/* SPDX-License-Identifier: Apache-2.0 */
/* A payload that arrives, in one thread and at leisure: what is done with each window of it while it is in the cache.
 *
 *   receive alone|absorbed|folded MIB TIMES   read, sum up for the checksum and look for what is not finite;
 *                                             and then absorb the whole; or fold each window
 *
 * As daemon/net/link.c and the trainer do it, without their bookkeeping. What writes to the socket is not counted. */
#include "stopwatch.h"

#include "sgp/buffer.h"
#include "sgp/kernels.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <xxhash.h>

#define WINDOW_BYTES ((size_t)128 << 10) /* as daemon/net/link.c reads */
#define WINDOW_VALUES (WINDOW_BYTES / sizeof(float))
#define MEBIBYTE ((size_t)1 << 20)

struct bench {
    int ends[2];
    bool absorbs, folds;
    size_t values;
    float *x, *snapshot, *share;
    XXH3_state_t *hash;
    double seconds, difference, norm, squares;
    float largest;
};

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

/* A sample of the distance, a run in `stride`. */
static void compare(struct bench *bench, const float *own, const float *theirs, size_t values)
{
    uint64_t stride = sgp_kernels_stride(bench->values);
    for (size_t at = 0; at < values; at += SGP_KERNELS_RUN) {
        double difference, norm;
        if ((size_t)(theirs + at - bench->share) / SGP_KERNELS_RUN % stride != 0)
            continue;
        sgp_kernels_best()->distance(
            &difference, &norm, theirs + at, 1, own + at, 1, SGP_KERNELS_RUN);
        bench->difference += difference;
        bench->norm += norm;
    }
}

static void receive_window(struct bench *bench, size_t first)
{
    const struct sgp_kernels *kernels = sgp_kernels_best();
    float *values = bench->share + first;
    for (size_t have = 0; have < WINDOW_BYTES;) {
        ssize_t bytes = read(bench->ends[1], (uint8_t *)values + have, WINDOW_BYTES - have);
        if (bytes <= 0)
            fail("read");
        (void)XXH3_64bits_update(bench->hash, (uint8_t *)values + have, (size_t)bytes);
        have += (size_t)bytes;
    }
    float most;
    double squares;
    if (bench->folds) {
        compare(bench, bench->snapshot + first, values, WINDOW_VALUES);
        most = kernels->fold(&squares, values, bench->snapshot + first, 0.5f, 0.5f, WINDOW_VALUES);
    } else {
        most = kernels->measure(&squares, values, WINDOW_VALUES);
    }
    bench->squares += squares;
    bench->largest = most > bench->largest ? most : bench->largest;
}

/* A share whole; the clock runs while it is received. */
static void receive(struct bench *bench, const float *window)
{
    for (size_t first = 0; first < bench->values; first += WINDOW_VALUES) {
        if (write(bench->ends[0], window, WINDOW_BYTES) != (ssize_t)WINDOW_BYTES)
            fail("write");
        double begin = stopwatch_seconds();
        receive_window(bench, first);
        bench->seconds += stopwatch_seconds() - begin;
    }
    double begin = stopwatch_seconds();
    for (size_t first = 0; bench->absorbs && first < bench->values; first += SGP_KERNELS_RUN) {
        compare(bench, bench->x + first, bench->share + first, SGP_KERNELS_RUN);
        sgp_kernels_best()->absorb(bench->x + first, bench->share + first, 0.5f, SGP_KERNELS_RUN);
    }
    bench->seconds += stopwatch_seconds() - begin;
}

static void prepare(struct bench *bench, float **ret_window)
{
    int room = 4 * (int)WINDOW_BYTES;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, bench->ends) < 0 ||
        setsockopt(bench->ends[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof room) < 0)
        fail("socketpair");
    if (sgp_vector_create(bench->values, &bench->x) < 0 ||
        sgp_vector_create(bench->values, &bench->snapshot) < 0 ||
        sgp_vector_create(bench->values, &bench->share) < 0 ||
        sgp_vector_create(WINDOW_VALUES, ret_window) < 0 ||
        (bench->hash = XXH3_createState()) == NULL || XXH3_64bits_reset(bench->hash) != XXH_OK)
        fail("memory");
    for (size_t i = 0; i < bench->values; i++)
        bench->x[i] = bench->snapshot[i] = (float)(i % 1000) * 1e-3f;
    memcpy(*ret_window, bench->x, WINDOW_BYTES);
}

int main(int argc, char **argv)
{
    struct bench bench = {0};
    float *window;
    long mebibytes = argc == 4 ? strtol(argv[2], NULL, 10) : 0;
    long times = argc == 4 ? strtol(argv[3], NULL, 10) : 0;
    if (mebibytes < 1 || mebibytes > 4096 || times < 1) {
        (void)fputs("usage: receive alone|absorbed|folded MIB TIMES\n", stderr);
        return 2;
    }
    bench.values = (size_t)mebibytes * MEBIBYTE / sizeof(float);
    bench.absorbs = strcmp(argv[1], "absorbed") == 0;
    bench.folds = strcmp(argv[1], "folded") == 0;
    prepare(&bench, &window);
    receive(&bench, window); /* pages are there, and the kernel's */
    bench.seconds = 0;
    for (long i = 0; i < times; i++)
        receive(&bench, window);
    if (!isfinite(bench.largest))
        return 1;
    (void)printf(
        "{\"seconds\": %.6g, \"largest\": %.6g, \"squares\": %.6g, \"difference\": %.6g}\n",
        bench.seconds / (double)times, (double)bench.largest, bench.squares, bench.difference);
    sgp_vector_destroy(bench.x);
    sgp_vector_destroy(bench.snapshot);
    sgp_vector_destroy(bench.share);
    sgp_vector_destroy(window);
    (void)XXH3_freeState(bench.hash);
    return 0;
}

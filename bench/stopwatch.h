/* SPDX-License-Identifier: Apache-2.0 */
/* Elapsed time and the processor time of the whole process between two moments. Any thread. */
#ifndef BENCH_STOPWATCH_H
#define BENCH_STOPWATCH_H

#include <stdint.h>
#include <sys/resource.h>
#include <time.h>

struct stopwatch {
    double seconds;     /* on the monotonic clock */
    double cpu_seconds; /* user and system, all threads */
};

/* The monotonic clock alone: cheap, for what is short and often. */
static inline double stopwatch_seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* The moment of now. */
static inline struct stopwatch stopwatch_now(void)
{
    struct rusage used;
    (void)getrusage(RUSAGE_SELF, &used);
    return (struct stopwatch){
        .seconds = stopwatch_seconds(),
        .cpu_seconds = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                       (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-6,
    };
}

/* What went by since `start`, for each of `parts`. */
static inline struct stopwatch stopwatch_since(struct stopwatch start, uint64_t parts)
{
    struct stopwatch now = stopwatch_now();
    return (struct stopwatch){
        .seconds = (now.seconds - start.seconds) / (double)parts,
        .cpu_seconds = (now.cpu_seconds - start.cpu_seconds) / (double)parts,
    };
}

#endif

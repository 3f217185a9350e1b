/* SPDX-License-Identifier: Apache-2.0 */
/* sgpd with a stopwatch in the place of training: `sgpd_idle -c FILE ROUNDS WARMUP`.
 *
 * Everything else is the daemon: its links, its core, its ledger, its compute thread, publishing,
 * absorbing, measuring disagreement. After WARMUP rounds and ROUNDS more it prints one JSON object
 * of what a counted round took, and goes on until it is killed, so that its neighbours are not alone.
 * With BENCH_WITHOUT_ROWS in the environment it publishes and sends no rows of the fleet.
 * With BENCH_STEP_MS a step sleeps for so many milliseconds, which is no processor time.
 * Thread: the three functions of the trainer are the compute thread's. */
#include "daemon.h"
#include "stopwatch.h"
#include "store/state_directory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct counts {                       /* of the process, or between two moments of it */
    double bytes_read, bytes_written; /* through system calls, sockets above all */
    double publish_seconds, absorb_seconds;
    double bytes_copied; /* into snapshots */
    double folded;       /* shares, while they came */
};

static struct sgp_trainer_methods idle;
static const struct sgp_trainer_methods *real;
static uint64_t rounds, warmup, trained;
static struct timespec step; /* the time that a step sleeps */
static struct stopwatch start;
static struct counts now, then;

static void count_io(struct counts *counts)
{
    FILE *file = fopen("/proc/self/io", "re");
    if (file == NULL ||
        fscanf(file, "rchar: %lf wchar: %lf", &counts->bytes_read, &counts->bytes_written) != 2)
        abort();
    (void)fclose(file);
}

static double memory_peak(void)
{
    struct rusage used;
    (void)getrusage(RUSAGE_SELF, &used);
    return (double)used.ru_maxrss * 1024;
}

static void print(const struct sgp_trainer *trainer)
{
    struct stopwatch taken = stopwatch_since(start, rounds);
    double n = (double)rounds;
    count_io(&now);
    (void)printf(
        "{\"seconds\": %.9g, \"cpu_seconds\": %.9g, \"bytes_read\": %.9g, "
        "\"bytes_written\": %.9g, \"bytes_copied\": %.9g, \"publish_seconds\": %.9g, "
        "\"absorb_seconds\": %.9g, \"folded\": %.9g, \"memory_bytes\": %.9g, \"bytes\": %.9g}\n",
        taken.seconds, taken.cpu_seconds, (now.bytes_read - then.bytes_read) / n,
        (now.bytes_written - then.bytes_written) / n, (now.bytes_copied - then.bytes_copied) / n,
        (now.publish_seconds - then.publish_seconds) / n,
        (now.absorb_seconds - then.absorb_seconds) / n, (now.folded - then.folded) / n,
        memory_peak(), (double)trainer->parameters * sizeof(float));
    (void)fflush(stdout);
}

/* Called once a round: a step that takes no time, or the time of BENCH_STEP_MS, and changes nothing. */
static int idle_train(struct sgp_trainer *trainer, double weight, uint32_t steps, double pace,
    struct sgp_training *ret_training)
{
    (void)weight;
    (void)pace;
    if (trained == warmup) {
        count_io(&now);
        then = now;
        start = stopwatch_now();
    } else if (trained == warmup + rounds) {
        print(trainer);
    }
    trained++;
    if (step.tv_sec > 0 || step.tv_nsec > 0) /* to sleep for no time takes 50 us */
        (void)nanosleep(&step, NULL);
    *ret_training = (struct sgp_training){.samples = steps};
    return 0;
}

static void timed_publish(struct sgp_trainer *trainer, float **snapshot, float keep)
{
    const float *given = *snapshot;
    double begin = stopwatch_seconds();
    real->publish(trainer, snapshot, keep);
    now.publish_seconds += stopwatch_seconds() - begin;
    if (*snapshot == given) /* not exchanged */
        now.bytes_copied += (double)trainer->parameters * sizeof(float);
}

static void timed_absorb(struct sgp_trainer *trainer, float **share, float fraction, uint64_t first,
    uint64_t count, struct sgp_comparison *comparison)
{
    double begin = stopwatch_seconds();
    real->absorb(trainer, share, fraction, first, count, comparison);
    now.absorb_seconds += stopwatch_seconds() - begin;
}

static void counted_take(struct sgp_trainer *trainer, float **values)
{
    real->take(trainer, values);
    now.folded++;
}

static void read_step(void)
{
    const char *text = getenv("BENCH_STEP_MS");
    long milliseconds = text != NULL ? strtol(text, NULL, 10) : 0;
    step = (struct timespec){milliseconds / 1000, milliseconds % 1000 * 1000000};
}

static int run(const struct config *config)
{
    struct sgp_error error = {0};
    struct prepared prepared;
    struct log log;
    int code = prepare(config, NULL, &error, &prepared);
    if (code == 0 && ((code = prepared_learn(&prepared, &error)) < 0 ||
                         (code = state_directory_open(config->state_directory, &error)) < 0))
        prepared_finish(&prepared);
    if (code < 0) {
        (void)fprintf(stderr, "sgpd_idle: %s\n", error.text);
        return 1;
    }
    read_step();
    real = prepared.trainer->methods;
    idle = *real;
    idle.train = idle_train;
    idle.publish = timed_publish;
    idle.absorb = timed_absorb;
    idle.take = counted_take;
    prepared.trainer->methods = &idle;
    log_init(&log, config->log_level, config->name);
    const struct daemon_extras extras = {
        .socket = -1, .without_rows = getenv("BENCH_WITHOUT_ROWS") != NULL};
    int status = daemon_run(config, &prepared, &log, &extras);
    prepared_finish(&prepared);
    return status;
}

int main(int count, char **arguments)
{
    struct sgp_error error = {0};
    struct config config;
    if (count != 5 || strcmp(arguments[1], "-c") != 0) {
        (void)fprintf(stderr, "Usage: %s -c FILE ROUNDS WARMUP\n", arguments[0]);
        return 2;
    }
    rounds = strtoull(arguments[3], NULL, 10);
    warmup = strtoull(arguments[4], NULL, 10);
    if (rounds == 0 || config_load(arguments[2], &error, &config) < 0) {
        (void)fprintf(stderr, "sgpd_idle: %s\n", error.text);
        return 1;
    }
    int status = run(&config);
    config_finish(&config);
    return status;
}

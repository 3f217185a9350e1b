/* SPDX-License-Identifier: Apache-2.0 */
/* Shows status and peers repeatedly until interrupted. On a terminal, they are tables of 80
 * columns. */
#include "ctl.h"

#include <math.h>
#include <string.h>
#include <time.h>

#define COLUMNS 80u
#define NAME_COLUMNS 10u /* of a name in a table */

/* The few changing fields, for scripts. */
static const char *const figures[] = {"name", "state", "waiting", "round", "rounds", "epoch",
    "progress", "left_seconds", "loss", "test_loss", "test_accuracy", "weight", "weight_in_flight",
    "disagreement", "samples_per_second", "last_error"};

/* The progress at the first known sample, to estimate the remaining time. */
struct pace {
    bool began;
    double seconds; /* on the monotonic clock */
    double progress;
};

/* ---- progress ---- */

/* Progress from 0 to 1: of this node's epochs, or of the fleet's rounds if the end is given in
 * rounds. NaN: unknown. */
static double progress_of(const json_t *status)
{
    double epochs = ctl_real_of(status, "epochs");
    double part = epochs > 0 ? ctl_real_of(status, "epoch") / epochs
                             : ctl_real_of(status, "round") / ctl_real_of(status, "rounds");
    return strcmp(ctl_text_of(status, "state", "-"), "finished") == 0 || part > 1 ? 1 : part;
}

/* Seconds until training ends, at the pace since the first sample; NaN if unknown. A restarted
 * daemon does not know its progress before its first round. */
static double left(struct pace *pace, const json_t *status, double progress)
{
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    double now = (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
    if (!pace->began && !(ctl_real_of(status, "samples") > 0))
        return (double)NAN;
    if (!pace->began)
        *pace = (struct pace){.began = true, .seconds = now, .progress = progress};
    double gained = progress - pace->progress;
    return gained > 0 && progress < 1 ? (now - pace->seconds) * (1 - progress) / gained
                                      : (double)NAN;
}

/* ---- a terminal ---- */

/* The node as one row. */
static void print_node(const struct ctl *ctl, const json_t *status, double progress)
{
    bool classifies = json_is_number(json_object_get(status, "test_accuracy"));
    (void)printf("%-*s %-9s%9s%9s%10s%9s%10s%7s%6s\n", (int)NAME_COLUMNS, "node", "state", "round",
        "loss", classifies ? "test acc" : "test loss", "weight", "disagree", "rows/s", "done");
    ctl_print_text(ctl, json_object_get(status, "name"), NAME_COLUMNS);
    (void)printf(" %-9.9s", ctl_text_of(status, "state", "-"));
    ctl_print_number(ctl_real_of(status, "round"), 9, 3);
    ctl_print_number(ctl_real_of(status, "loss"), 9, 3);
    ctl_print_number(ctl_real_of(status, classifies ? "test_accuracy" : "test_loss"), 10, 4);
    ctl_print_number(ctl_real_of(status, "weight"), 9, 4);
    ctl_print_number(ctl_real_of(status, "disagreement"), 10, 2);
    ctl_print_number(round(ctl_real_of(status, "samples_per_second")), 7, 2);
    if (isnan(progress))
        (void)printf("%6s\n", "-");
    else
        (void)printf("%5.0f%%\n", floor(100 * progress));
}

static void print_line(const struct ctl *ctl, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void print_line(const struct ctl *ctl, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    json_t *text = json_vsprintf(format, arguments);
    va_end(arguments);
    ctl_print_text(ctl, text, COLUMNS);
    (void)putchar('\n');
    json_decref(text);
}

/* Further facts about the node, a line each. */
static void print_circumstances(const struct ctl *ctl, const json_t *status, double left)
{
    char up[CTL_CELL_BYTES], rest[CTL_CELL_BYTES];
    const json_t *waiting = json_object_get(status, "waiting");
    json_t *seconds = ctl_json_real(left);
    ctl_cell(ctl, "uptime_seconds", json_object_get(status, "uptime_seconds"), up);
    ctl_cell(ctl, "left_seconds", seconds, rest);
    json_decref(seconds);
    (void)printf(isnan(left) ? "up %s\n" : "up %s, about %s left\n", up, rest);
    if (json_is_string(json_object_get(waiting, "peer")))
        print_line(ctl, "waits for a %s of %s for %.0f s", ctl_text_of(waiting, "for", "-"),
            ctl_text_of(waiting, "peer", "-"), ctl_real_of(waiting, "seconds"));
    if (json_is_string(json_object_get(status, "last_error"))) {
        ctl_cell(ctl, "last_error_seconds", json_object_get(status, "last_error_seconds"), up);
        print_line(ctl, "error, %s ago: %s", up, ctl_text_of(status, "last_error", "-"));
    }
}

static void print_peers(const struct ctl *ctl, const json_t *peers)
{
    size_t index;
    json_t *peer;
    (void)printf("\n%-*s %-4s%-11s%-10s%9s%7s%10s%9s%8s\n", (int)NAME_COLUMNS, "peer", "way",
        "link", "state", "round", "lag", "heard s", "given", "got");
    json_array_foreach((json_t *)peers, index, peer)
    {
        ctl_print_text(ctl, json_object_get(peer, "name"), NAME_COLUMNS);
        (void)printf(" %-4.3s%-11.10s%-10.9s", ctl_text_of(peer, "direction", "-"),
            ctl_text_of(peer, "state", "-"), ctl_text_of(peer, "node_state", "-"));
        ctl_print_number(ctl_real_of(peer, "round"), 9, 3);
        ctl_print_number(ctl_real_of(peer, "lag_rounds"), 7, 1);
        ctl_print_number(ctl_real_of(peer, "last_heard_seconds"), 10, 3);
        ctl_print_number(ctl_real_of(peer, "shares_sent"), 9, 3);
        ctl_print_number(ctl_real_of(peer, "shares_received"), 8, 2);
        (void)putchar('\n');
    }
    json_array_foreach(
        (json_t *)peers, index, peer) if (json_is_string(json_object_get(peer, "last_error")))
        print_line(ctl, "%s (%s): %s", ctl_text_of(peer, "name", "-"),
            ctl_text_of(peer, "direction", "-"), ctl_text_of(peer, "last_error", "-"));
}

/* ---- not on a terminal ---- */

static void print_lines(
    const struct ctl *ctl, json_t *status, const json_t *peers, double progress, double left)
{
    json_t *few = json_object();
    (void)json_object_set_new(status, "progress", ctl_json_real(progress));
    (void)json_object_set_new(status, "left_seconds", ctl_json_real(left));
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        (void)json_object_set(few, figures[i], json_object_get(status, figures[i]));
    ctl_print_object(ctl, few);
    (void)putchar('\n');
    ctl_print_peers(ctl, peers, false);
    json_decref(few);
}

static enum ctl_exit show(struct ctl *ctl, struct pace *pace, bool first)
{
    const struct ctl_request ask_status = {.method = "GET", .path = "/v1/status"};
    const struct ctl_request ask_peers = {.method = "GET", .path = "/v1/peers"};
    json_t *status, *peers;
    enum ctl_exit code = ctl_ask_json(ctl, &ask_status, &status);
    if (code != CTL_DONE)
        return code;
    code = ctl_ask_json(ctl, &ask_peers, &peers);
    if (code != CTL_DONE) {
        json_decref(status);
        return code;
    }
    if (ctl->json)
        return ctl_print_json(json_pack("{s:o, s:o}", "status", status, "peers", peers));
    double progress = progress_of(status), rest = left(pace, status, progress);
    if (ctl->terminal) {
        /* cursor to the home position and clear: the same place, without flicker */
        (void)fputs("\x1b[H\x1b[J", stdout);
        print_node(ctl, status, progress);
        print_circumstances(ctl, status, rest);
        print_peers(ctl, peers);
    } else {
        if (!first)
            (void)putchar('\n');
        print_lines(ctl, status, peers, progress, rest);
    }
    json_decref(status);
    json_decref(peers);
    return CTL_DONE;
}

static const struct ctl_option watch_options[] = {
    {"--interval", .value = "S", .summary = "seconds between two looks, 0.1 to 3600 (1)"},
    {"--count", .value = "N",
        .summary = "look N times, then end; by default until interrupted or until the daemon ends"},
    {0}};

static enum ctl_exit watch(struct ctl *ctl, int argc, char **argv)
{
    struct ctl_given options[2] = {0};
    double interval = 1;
    uint64_t count = UINT64_MAX;
    struct pace pace = {0};
    enum ctl_exit status = ctl_options_take(ctl, &argc, argv, options, 2, 0, 0);
    if (status == CTL_DONE)
        status = ctl_option_real(ctl, &options[0], 0.1, 3600, &interval);
    if (status == CTL_DONE)
        status = ctl_option_u64(ctl, &options[1], 1, UINT64_MAX, &count);
    for (uint64_t i = 0; i < count && status == CTL_DONE; i++) {
        if (i > 0) {
            double whole = floor(interval);
            struct timespec pause = {
                .tv_sec = (time_t)whole, .tv_nsec = (long)((interval - whole) * 1e9)};
            (void)nanosleep(&pause, NULL);
        }
        status = show(ctl, &pace, i == 0);
        if (fflush(stdout) != 0) /* the reader of the pipe has ended */
            break;
    }
    return status;
}

const struct ctl_command ctl_watch_command = {.words = "watch",
    .operands = "",
    .options = watch_options,
    .summary = "show status and peers, redrawn every second",
    .help =
        "A terminal gets tables of 80 columns: how much is done, of its epochs or of the fleet's\n"
        "rounds, and how long the rest will take at the pace since the first look.\n"
        "With --json every look is one line.\n",
    .run = watch};

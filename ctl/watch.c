/* Shows status and peers again and again, until interrupted. */
#include "ctl.h"

#include <math.h>
#include <time.h>

/* The few figures that change. */
static const char *const figures[] = {"name", "state", "waiting", "round", "rounds", "epoch",
    "loss", "test_accuracy", "weight", "weight_in_flight", "disagreement", "samples_per_second",
    "last_error"};

static enum ctl_exit show(struct ctl *ctl, bool first)
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
    json_t *few = json_object();
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        (void)json_object_set(few, figures[i], json_object_get(status, figures[i]));
    /* Home and clear: the same place on the screen, without a flash. */
    if (ctl->terminal)
        (void)fputs("\x1b[H\x1b[J", stdout);
    else if (!first)
        (void)putchar('\n');
    ctl_print_object(ctl, few);
    (void)putchar('\n');
    ctl_print_peers(ctl, peers);
    json_decref(few);
    json_decref(status);
    json_decref(peers);
    return CTL_DONE;
}

static enum ctl_exit watch(struct ctl *ctl, int argc, char **argv)
{
    struct ctl_option options[] = {{.name = "--interval"}, {.name = "--count"}};
    double interval = 1;
    uint64_t count = UINT64_MAX;
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
        status = show(ctl, i == 0);
        if (fflush(stdout) != 0) /* whoever read it has gone */
            break;
    }
    return status;
}

const struct ctl_command ctl_watch_command = {.words = "watch",
    .synopsis = "[--interval S] [--count N]",
    .summary = "show status and peers, redrawn every second",
    .help =
        "--interval S  seconds between two looks, 0.1 to 3600; default 1\n"
        "--count N     look N times, then end; by default until interrupted or until the daemon\n"
        "              ends. With --json every look is one line.\n",
    .run = watch};

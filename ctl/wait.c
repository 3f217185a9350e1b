/* Waits until the daemon has come so far, by asking again and again. */
#include "ctl.h"

#include <math.h>
#include <string.h>
#include <time.h>

#define POLL_NS 200000000L
#define LAST_LOOK_SECONDS 1.0 /* for a daemon to answer in, however little time is left */

enum kind { READY = 1, ROUND, EPOCH, ACCURACY, FINISHED, DISAGREEMENT, PEERS };

/* What is waited for: a figure of status that must reach `bound`. */
static const struct what {
    const char *name;
    enum kind kind;
    const char *figure; /* of status, or NULL */
    double most;        /* of the bound */
} whats[] = {{"ready", READY, NULL, 0}, {"round", ROUND, "round", 0x1p48},
    {"epoch", EPOCH, "epoch", 1e15}, {"accuracy", ACCURACY, "test_accuracy", 1},
    {"finished", FINISHED, NULL, 0}, {"disagreement", DISAGREEMENT, "disagreement", 1e300},
    {"peers", PEERS, NULL, SGP_NODES_MAX}};

struct condition {
    const char *text;
    const struct what *what;
    double bound;
};

static enum ctl_exit parse(struct ctl *ctl, const char *text, struct condition *ret_condition)
{
    size_t length = strcspn(text, ":");
    for (size_t i = 0; i < sizeof whats / sizeof *whats; i++) {
        const struct what *what = &whats[i];
        if (strlen(what->name) != length || strncmp(what->name, text, length) != 0)
            continue;
        double bound = 0;
        bool bounded = what->kind != READY && what->kind != FINISHED;
        if (bounded ? text[length] != ':' || !ctl_text_real(text + length + 1, &bound) ||
                          bound < 0 || bound > what->most
                    : text[length] != '\0')
            break;
        *ret_condition = (struct condition){.text = text, .what = what, .bound = bound};
        return CTL_DONE;
    }
    return ctl_usage(ctl,
        "--for takes ready, round:N, epoch:N, accuracy:A (0 to 1), finished, disagreement:D or "
        "peers:N, not '%s'",
        text);
}

static enum ctl_exit ask(struct ctl *ctl, const char *path, double seconds, json_t **ret_json)
{
    const struct ctl_request request = {
        .method = "GET", .path = path, .seconds = fmax(seconds, LAST_LOOK_SECONDS), .quiet = true};
    return ctl_ask_json(ctl, &request, ret_json);
}

/* How many different neighbours are connected, in whatever direction. */
static size_t connected(const json_t *peers)
{
    json_t *names = json_object();
    size_t index;
    json_t *peer;
    json_array_foreach((json_t *)peers, index, peer)
    {
        const char *state = json_string_value(json_object_get(peer, "state"));
        const char *name = json_string_value(json_object_get(peer, "name"));
        if (name && state && strcmp(state, "up") == 0)
            (void)json_object_set_new(names, name, json_true());
    }
    size_t count = json_object_size(names);
    json_decref(names);
    return count;
}

static bool finished(const json_t *status)
{
    const char *state = json_string_value(json_object_get(status, "state"));
    return state && strcmp(state, "finished") == 0;
}

/* Whether the condition holds; `peers` is known for PEERS only. */
static bool holds(const struct condition *condition, const json_t *status, const json_t *peers)
{
    const struct what *what = condition->what;
    const json_t *value = what->figure ? json_object_get(status, what->figure) : NULL;
    double figure = json_is_number(value) ? json_number_value(value) : (double)NAN;
    switch (what->kind) {
    case READY:
        return true;
    case FINISHED:
        return finished(status);
    case PEERS:
        return (double)connected(peers) >= condition->bound;
    case DISAGREEMENT:
        return figure <= condition->bound;
    default:
        return figure >= condition->bound;
    }
}

/* Where the node stands, for the line that says why the waiting ended. */
static void describe(const json_t *status, char *text, size_t capacity)
{
    const json_t *waiting = json_object_get(status, "waiting");
    const char *state = json_string_value(json_object_get(status, "state"));
    const char *what = json_string_value(json_object_get(waiting, "for"));
    const char *peer = json_string_value(json_object_get(waiting, "peer"));
    int length = snprintf(text, capacity, "it is %s in round %lld", state ? state : "?",
        (long long)json_integer_value(json_object_get(status, "round")));
    if (what && peer && length > 0 && (size_t)length < capacity)
        (void)snprintf(
            text + length, capacity - (size_t)length, ", waiting for a %s of %s", what, peer);
}

static double now(void)
{
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* One look, with the waiting to end at `end`. *ret_over: nothing more will change; the status to end
 * with is returned. */
static enum ctl_exit look(struct ctl *ctl, const struct condition *condition, double end,
    bool *met_before, char *text, size_t capacity, bool *ret_over)
{
    json_t *status = NULL, *peers = NULL;
    *ret_over = true;
    enum ctl_exit code = ask(ctl, "/v1/status", end - now(), &status);
    if (code == CTL_DONE && condition->what->kind == PEERS)
        code = ask(ctl, "/v1/peers", end - now(), &peers);
    if (code == CTL_DONE) {
        *met_before = true;
        describe(status, text, capacity);
        bool met = holds(condition, status, peers);
        if (!met && finished(status) && condition->what->kind != PEERS)
            code = ctl_fail(ctl, CTL_FAILED, "%s was not reached: %s", condition->text, text);
        else
            *ret_over = met;
    } else if (code == CTL_NOT_RUNNING && *met_before) {
        (void)ctl_fail(ctl, code, "the daemon ended before %s; %s", condition->text, text);
    } else if (code == CTL_NOT_PERMITTED) {
        (void)ctl_fail(ctl, code, "not permitted to open the daemon's socket");
    } else {
        *ret_over = false; /* not there yet, or busy */
    }
    json_decref(status);
    json_decref(peers);
    return code;
}

static enum ctl_exit wait_for(struct ctl *ctl, const struct condition *condition, double timeout)
{
    char text[SGP_TEXT_BYTES / 2] = "no daemon answers there";
    bool met_before = false, over = false;
    /* Which daemon is meant must be clear at once; whether it answers need not be. */
    enum ctl_exit status = ctl_socket(ctl);
    if (status != CTL_DONE)
        return status;
    for (double end = now() + timeout;;) {
        status = look(ctl, condition, end, &met_before, text, sizeof text, &over);
        if (over)
            break;
        double left = end - now();
        if (left <= 0)
            return ctl_fail(ctl, CTL_TIMED_OUT, "%s was not reached within %g s: %s",
                condition->text, timeout, text);
        long pause = left < 1e-9 * POLL_NS ? (long)(left * 1e9) : POLL_NS;
        (void)nanosleep(&(struct timespec){.tv_nsec = pause}, NULL);
    }
    if (status == CTL_DONE && ctl->json)
        return ctl_print_json(json_pack("{s:s, s:b}", "condition", condition->text, "met", 1));
    return status;
}

static enum ctl_exit run(struct ctl *ctl, int argc, char **argv)
{
    struct ctl_option options[] = {{.name = "--for"}, {.name = "--timeout"}};
    double timeout = HUGE_VAL;
    struct condition condition = {0};
    enum ctl_exit status = ctl_options_take(ctl, &argc, argv, options, 2, 0, 0);
    if (status == CTL_DONE && !options[0].given)
        status = ctl_usage(ctl, "--for CONDITION is missing");
    if (status == CTL_DONE)
        status = ctl_option_real(ctl, &options[1], 0, 1e9, &timeout);
    if (status == CTL_DONE)
        status = parse(ctl, options[0].value, &condition);
    return status == CTL_DONE ? wait_for(ctl, &condition, timeout) : status;
}

const struct ctl_command ctl_wait_command = {.words = "wait",
    .synopsis = "--for CONDITION [--timeout S]",
    .summary = "wait until the daemon has come so far",
    .help = "CONDITION is one of\n"
            "  ready            the daemon answers\n"
            "  round:N epoch:N  it has got there\n"
            "  accuracy:A       its latest test accuracy is at least A, between 0 and 1\n"
            "  disagreement:D   it differs from the models it received by at most D\n"
            "  peers:N          N different neighbours are connected\n"
            "  finished         training and mixing are over\n"
            "\n"
            "A daemon that is not there yet is waited for if -n or -s names it. Without --timeout\n"
            "there is no limit. Ends with 5 when S seconds have passed, even if the daemon is\n"
            "silent (only the last look at it is given a second), with 1 when the node has\n"
            "finished without meeting the condition, with 3 when the daemon ends first.\n",
    .run = run};

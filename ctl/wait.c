/* SPDX-License-Identifier: Apache-2.0 */
/* Waits until the daemon has reached a state, by polling. */
#include "ctl.h"

#include <math.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define POLL_NS 200000000L
#define LOOKS_A_UNIT 10u      /* attempts without an answer before its unit is queried again */
#define TOLD_SECONDS 3.0      /* then print what the daemon waits for: most waits are shorter */
#define LAST_LOOK_SECONDS 1.0 /* for a daemon's last answer, however little time is left */

enum kind { READY = 1, ROUND, EPOCH, ACCURACY, FINISHED, DISAGREEMENT, PEERS };

/* The awaited condition: a field of status that must reach `bound`. */
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

/* The number of different connected neighbours, in either direction. */
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

/* Whether the condition holds. `peers` is set only for PEERS. */
static bool holds(const struct condition *condition, const json_t *status, const json_t *peers)
{
    const struct what *what = condition->what;
    const json_t *value = what->figure ? json_object_get(status, what->figure) : NULL;
    double figure = json_is_number(value) ? json_number_value(value) : (double)NAN;
    switch (what->kind) {
    case READY:
        return true;
    case FINISHED: /* with its model on the disk, as far as known yet */
        return finished(status) && !ctl_model_is_written_now(status);
    case PEERS:
        return (double)connected(peers) >= condition->bound;
    case DISAGREEMENT:
        return figure <= condition->bound;
    default:
        return figure >= condition->bound;
    }
}

static bool paused_by_divergence(const json_t *status)
{
    const char *state = json_string_value(json_object_get(status, "state"));
    const char *what = json_string_value(json_object_get(status, "diverging"));
    return state && what && strcmp(state, "paused") == 0 && strcmp(what, "not_finite") == 0;
}

/* The state of one wait. */
struct waiting {
    const struct condition *condition;
    double end;
    char name[SGP_NAME_BYTES];       /* of the node; "" if unknown */
    unsigned unanswered;             /* attempts */
    bool answered;                   /* ever */
    int process;                     /* of a daemon that has not begun to train, or -1 */
    char text[SGP_TEXT_BYTES / 2];   /* state of the node */
    char reason[SGP_TEXT_BYTES / 2]; /* the same without what changes at every attempt */
    char told[SGP_TEXT_BYTES / 2];   /* the reason printed on standard error */
};

static void describe(struct waiting *waiting, const json_t *status)
{
    const json_t *waits = json_object_get(status, "waiting");
    const char *state = json_string_value(json_object_get(status, "state"));
    const char *what = json_string_value(json_object_get(waits, "for"));
    const char *peer = json_string_value(json_object_get(waits, "peer"));
    double seconds = json_number_value(json_object_get(waits, "seconds"));
    char for_whom[SGP_TEXT_BYTES / 4] = "";
    if (what && peer)
        (void)snprintf(for_whom, sizeof for_whom, "%s of %s", what, peer);
    (void)snprintf(waiting->text, sizeof waiting->text, "%s in round %lld%s%s", state ? state : "?",
        (long long)json_integer_value(json_object_get(status, "round")),
        for_whom[0] ? ", waiting for a " : "", for_whom);
    bool long_ago = for_whom[0] && seconds >= TOLD_SECONDS;
    (void)snprintf(waiting->reason, sizeof waiting->reason, "it is %s%s%s", state ? state : "?",
        long_ago ? ", and waits for a " : "", long_ago ? for_whom : "");
}

/* Print what is waited for, once, and again if that changes. */
static void tell(struct waiting *waiting)
{
    if (strcmp(waiting->told, waiting->reason) == 0)
        return;
    (void)strcpy(waiting->told, waiting->reason);
    (void)fprintf(
        stderr, "sgpctl: waiting for %s: %s\n", waiting->condition->text, waiting->reason);
}

static double now(void)
{
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* A daemon that waits for a model or a scaling closes its socket, and opens it again to train. */
static void watch_process(struct ctl *ctl, struct waiting *waiting, const json_t *status)
{
    const char *state = json_string_value(json_object_get(status, "state"));
    const bool begins = state && strncmp(state, "awaiting_", strlen("awaiting_")) == 0;
    if (begins && waiting->process < 0)
        waiting->process = ctl_process_open(ctl->socket);
    if (begins || waiting->process < 0)
        return;
    (void)close(waiting->process);
    waiting->process = -1;
}

/* The daemon has answered: decide whether the wait is over. Neighbours may still connect when the
 * node itself is idle. */
static enum ctl_exit judge(struct ctl *ctl, struct waiting *waiting, const json_t *status,
    const json_t *peers, bool *ret_over)
{
    const struct condition *condition = waiting->condition;
    waiting->answered = true;
    waiting->unanswered = 0;
    describe(waiting, status);
    watch_process(ctl, waiting, status);
    bool met = holds(condition, status, peers);
    bool ends = condition->what->kind == FINISHED;
    bool hopeless = !met && !ends && condition->what->kind != PEERS;
    *ret_over = true;
    char failure[SGP_TEXT_BYTES] = "";
    if (met && ends)
        ctl_model_failure(status, failure);
    if (failure[0] != '\0')
        return ctl_fail(ctl, CTL_FAILED, "it has finished, and %s", failure);
    if (met && ends)
        ctl_privacy_failure(status, failure);
    if (failure[0] != '\0')
        return ctl_fail(ctl, CTL_DEGRADED, "it has finished, and %s", failure);
    if (hopeless && finished(status))
        return ctl_fail(
            ctl, CTL_FAILED, "%s was not reached: it is %s", condition->text, waiting->text);
    if (!met && condition->what->kind != PEERS && paused_by_divergence(status))
        return ctl_fail(ctl, CTL_FAILED,
            "%s was not reached: it is %s, since its training diverged; see sgpctl status --check",
            condition->text, waiting->text);
    *ret_over = met;
    return CTL_DONE;
}

/* No process is behind the socket, unless the daemon is about to train. Its unit is queried only
 * now and then, because that takes a process. */
static enum ctl_exit judge_absence(struct ctl *ctl, struct waiting *waiting, bool *ret_over)
{
    const char *condition = waiting->condition->text;
    char stands[SGP_TEXT_BYTES / 2];
    *ret_over = false;
    if (ctl_process_lives(waiting->process))
        return CTL_NOT_RUNNING;
    if (waiting->unanswered++ % LOOKS_A_UNIT != 0)
        return CTL_NOT_RUNNING;
    bool may_come = ctl_may_come(waiting->name, stands, sizeof stands);
    *ret_over = waiting->answered || !may_come;
    if (waiting->answered && !may_come)
        return ctl_fail(ctl, CTL_FAILED, "the daemon ended before %s: %s; it was %s", condition,
            stands, waiting->text);
    if (waiting->answered)
        return ctl_fail(ctl, CTL_NOT_RUNNING, "the daemon ended before %s; it was %s", condition,
            waiting->text);
    if (!may_come)
        return ctl_fail(ctl, CTL_FAILED, "%s was not reached: %s", condition, stands);
    (void)strcpy(waiting->reason, stands);
    return CTL_NOT_RUNNING;
}

/* One attempt. *ret_over: the state will not change any more, and the final status is returned. */
static enum ctl_exit look(struct ctl *ctl, struct waiting *waiting, bool *ret_over)
{
    json_t *status = NULL, *peers = NULL;
    *ret_over = false; /* not started yet, or busy */
    enum ctl_exit code = ask(ctl, "/v1/status", waiting->end - now(), &status);
    if (code == CTL_DONE && waiting->condition->what->kind == PEERS)
        code = ask(ctl, "/v1/peers", waiting->end - now(), &peers);
    if (code == CTL_DONE) {
        code = judge(ctl, waiting, status, peers, ret_over);
    } else if (code == CTL_NOT_RUNNING) {
        code = judge_absence(ctl, waiting, ret_over);
    } else if (code == CTL_NOT_PERMITTED) {
        *ret_over = true;
        (void)ctl_fail(ctl, code, "not permitted to open the daemon's socket");
    }
    json_decref(status);
    json_decref(peers);
    return code;
}

static enum ctl_exit wait_for(struct ctl *ctl, const struct condition *condition, double timeout)
{
    struct waiting waiting = {.condition = condition, .process = -1, .reason = "nobody answers"};
    bool over = false;
    /* The selected daemon must be clear at once. It need not answer yet. */
    enum ctl_exit status = ctl_socket(ctl);
    if (status != CTL_DONE)
        return status;
    ctl_socket_name(ctl, waiting.name);
    waiting.end = now() + timeout;
    while (true) {
        status = look(ctl, &waiting, &over);
        if (over)
            break;
        double left = waiting.end - now();
        if (left <= 0)
            return ctl_fail(ctl, CTL_TIMED_OUT, "%s was not reached within %g s: %s%s",
                condition->text, timeout, waiting.answered ? "it is " : "",
                waiting.answered ? waiting.text : waiting.reason);
        tell(&waiting);
        long pause = left < 1e-9 * POLL_NS ? (long)(left * 1e9) : POLL_NS;
        (void)nanosleep(&(struct timespec){.tv_nsec = pause}, NULL);
    }
    if (status == CTL_DONE && ctl->json)
        return ctl_print_json(json_pack("{s:s, s:b}", "condition", condition->text, "met", 1));
    return status;
}

static const struct ctl_option wait_options[] = {
    {"--for", .value = "CONDITION", .summary = "what is waited for: see above",
        .words = "ready finished round: epoch: accuracy: disagreement: peers:", .required = true},
    {"--timeout", .value = "S",
        .summary =
            "end with 5 when S seconds have passed, even if the daemon is silent: only the last "
            "look at it is given a second; by default there is no limit"},
    {0}};

static enum ctl_exit run(struct ctl *ctl, int argc, char **argv)
{
    struct ctl_given options[2] = {0};
    double timeout = HUGE_VAL;
    struct condition condition = {0};
    enum ctl_exit status = ctl_options_take(ctl, &argc, argv, options, 2, 0, 0);
    if (status == CTL_DONE)
        status = ctl_option_real(ctl, &options[1], 0, 1e9, &timeout);
    if (status == CTL_DONE)
        status = parse(ctl, options[0].value, &condition);
    return status == CTL_DONE ? wait_for(ctl, &condition, timeout) : status;
}

const struct ctl_command ctl_wait_command = {.words = "wait",
    .operands = "",
    .options = wait_options,
    .summary = "wait until the daemon has come so far",
    .help =
        "CONDITION is one of\n"
        "  ready            the daemon answers\n"
        "  round:N epoch:N  it has got there\n"
        "  accuracy:A       its latest test accuracy is at least A, between 0 and 1\n"
        "  disagreement:D   it differs from the models it received by at most D\n"
        "  peers:N          N different neighbours are connected\n"
        "  finished         training and mixing are over, and the model is written\n"
        "\n"
        "A daemon that is not there yet is waited for if -n or -s names it. What is waited for\n"
        "is said on standard error, once and when it changes. Ends with 3 when the daemon ends\n"
        "first, and with 1 for what cannot come: the node has finished without meeting the\n"
        "condition, or could not write its model, or has lost training, or its training\n"
        "diverged; its unit has failed; or no node of this name is here, neither\n"
        "/etc/sgpd/NAME.conf nor /run/sgpd/NAME. Ends with 7 when the node has finished, and\n"
        "left out steps because its epsilon was spent.\n",
    .run = run};

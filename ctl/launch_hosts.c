/* SPDX-License-Identifier: Apache-2.0 */
/* The loop of `sgpctl up`: a supervisor on each host, their messages and their end; see
 * launch_up.h. */
#include "launch_up.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A supervisor takes at most 17 s to end its programs and daemons, or reports that it is busy:
 * daemons that write large models get the time for it. */
#define GRACE_MS 25000u
#define SHOW_MS 500u
#define TABLE_ROWS 24u  /* of a greater fleet only the sum is shown */
#define TABLE_OTHERS 2u /* lines: above the rows and below them */
#define SAID_BYTES 256u

enum stage {
    GREETING, /* not all supervisors have answered */
    RUNNING,
    ENDING,   /* supervisors have been told to end */
    RELEASED, /* all programs have ended, and the daemons may */
};

struct hosts;

struct host {
    struct hosts *all;
    const struct launch_host *is;
    pid_t pid; /* of ssh; 0: ended */
    struct launch_writer input;
    bool started;
    bool greeted, over, told, complained; /* told: its status does not count */
    bool ran;                             /* its daemons have been started */
    bool summed;                          /* its last object has come */
    struct launch_stream output, error;
    unsigned streams;      /* that are open */
    char said[SAID_BYTES]; /* the last line on standard error that is not of a program */
    int status;
    json_t *statuses; /* of its programs; or NULL */
};

struct node {
    char address[SGP_ADDRESS_BYTES + 8];
    char key[SGP_KEY_BYTES];
    long long round; /* -1: not known */
    double loss;
};

struct hosts {
    struct ctl *ctl;
    const struct launch_plan *plan;
    const struct launch_list *list;
    const struct launch_reach *reach;
    struct launch_lines lines;
    uv_loop_t loop;
    uv_signal_t signals[4];
    uv_timer_t grace, show;
    enum stage stage;
    bool closed;
    int interrupted, worst;
    uint64_t began;
    struct host host[LAUNCH_NODES_MAX];
    struct node node[LAUNCH_NODES_MAX];
};

static void step(struct hosts *all);

#define tell(all, ...)                                                                             \
    (launch_lines_clear(&(all)->lines), (void)ctl_fail((all)->ctl, CTL_FAILED, __VA_ARGS__))

static void worsen(struct hosts *all, int status)
{
    if (status > all->worst)
        all->worst = status;
}

/* All have answered. */
static void say_addresses(struct hosts *all)
{
    json_t *addresses = json_array(), *keys = json_array();
    for (uint32_t i = 0; i < all->plan->fleet; i++) {
        (void)json_array_append_new(addresses, json_string(all->node[i].address));
        if (all->plan->keyed)
            (void)json_array_append_new(keys, json_string(all->node[i].key));
    }
    json_t *object = json_pack("{s:o, s:o}", "addresses", addresses, "keys", keys);
    for (size_t i = 0; i < all->list->count; i++)
        launch_writer_object(&all->host[i].input, object);
    json_decref(object);
}

/* ---- ending ---- */

static void end_host(struct host *host, char order)
{
    host->told = host->told || host->pid > 0;
    if (!host->greeted || host->all->stage == GREETING) {
        launch_writer_close(&host->input);
        launch_signal(host->greeted ? 0 : host->pid, SIGTERM); /* ssh may still be connecting */
    } else {
        launch_writer_byte(&host->input, order);
    }
}

static void on_grace(uv_timer_t *timer)
{
    struct hosts *all = timer->data;
    for (size_t i = 0; i < all->list->count; i++) {
        if (all->host[i].pid > 0)
            tell(all, "%s: %s does not end, so it is killed", all->host[i].is->host,
                launch_reach_name(all->reach));
        launch_signal(all->host[i].pid, SIGKILL);
        launch_stream_close(&all->host[i].output);
        launch_stream_close(&all->host[i].error);
    }
    step(all);
}

/* From now on: a reader of the output may have blocked the loop since its time was taken. */
static void wait_for_ends(struct hosts *all)
{
    uv_update_time(&all->loop);
    (void)uv_timer_start(&all->grace, on_grace, GRACE_MS, 0);
}

static void end_all(struct hosts *all, char order)
{
    if (all->stage == GREETING || all->stage == RUNNING) {
        for (size_t i = 0; i < all->list->count; i++)
            end_host(&all->host[i], order);
        all->stage = ENDING;
    } else if (all->interrupted != 0) { /* the user is impatient */
        for (size_t i = 0; i < all->list->count; i++)
            launch_writer_byte(&all->host[i].input, order);
    }
    wait_for_ends(all);
}

static void fail(struct host *host, int status)
{
    struct hosts *all = host->all;
    if (host->told)
        return;
    worsen(all, status);
    if (all->stage < ENDING && (!host->ran || !all->plan->keep_going)) {
        host->told = true;
        end_all(all, LAUNCH_END);
    }
}

static void interrupt(struct hosts *all, int number)
{
    all->interrupted = number;
    end_all(all, number == SIGINT ? LAUNCH_INTERRUPT : LAUNCH_TERMINATE);
    step(all);
}

static void on_signal(uv_signal_t *handle, int number)
{
    interrupt(handle->data, number);
}

/* ---- messages of supervisors ---- */

static void on_answer(struct host *host, const json_t *object)
{
    struct hosts *all = host->all;
    const json_t *ports = json_object_get(object, "ports"), *keys = json_object_get(object, "keys");
    for (uint32_t i = 0; i < host->is->slots; i++) {
        struct node *node = &all->node[host->is->first + i];
        const char *key = json_string_value(json_array_get(keys, i));
        (void)snprintf(node->address, sizeof node->address, "%s:%u", host->is->address,
            (unsigned)json_integer_value(json_array_get(ports, i)));
        (void)snprintf(node->key, sizeof node->key, "%s", key ? key : "");
    }
    host->greeted = true;
}

static void on_progress(struct host *host, const json_t *object)
{
    const json_t *rounds = json_object_get(object, "rounds");
    const json_t *losses = json_object_get(object, "losses");
    for (uint32_t i = 0; i < host->is->slots; i++) {
        struct node *node = &host->all->node[host->is->first + i];
        const json_t *round = json_array_get(rounds, i), *loss = json_array_get(losses, i);
        node->round = json_is_integer(round) ? json_integer_value(round) : node->round;
        node->loss = json_is_number(loss) ? json_number_value(loss) : node->loss;
    }
    host->ran = true;
    if (host->all->stage == RELEASED)
        wait_for_ends(host->all);
    host->over = host->over || json_is_true(json_object_get(object, "over"));
    int worst = (int)json_integer_value(json_object_get(object, "worst"));
    if (worst > 0)
        fail(host, worst);
}

static void on_error(struct host *host, const json_t *error)
{
    const char *text = ctl_text_of(error, "message", "an error without a text");
    if (host->told) /* the launcher ended it */
        return;
    host->complained = true;
    if (!host->ran)
        tell(host->all, "%s: %s", host->is->host, text);
    else
        tell(host->all, "%s", text);
    if (!host->ran)
        fail(host, (int)json_integer_value(json_object_get(error, "exit_status")));
}

static void on_object(struct host *host, const json_t *object)
{
    if (json_object_get(object, "ports"))
        on_answer(host, object);
    else if (json_object_get(object, "running"))
        on_progress(host, object);
    else if (json_object_get(object, "error"))
        on_error(host, json_object_get(object, "error"));
    else if (json_object_get(object, "statuses")) {
        host->statuses = json_incref(json_object_get(object, "statuses"));
        host->summed = true;
    }
}

/* Print a line "NAME| text" of a node of this host. Returns whether it is one. */
static bool print_line(struct launch_stream *stream, const char *text, size_t bytes)
{
    struct host *host = stream->context;
    const struct hosts *all = host->all;
    for (uint32_t i = host->is->first; i < host->is->first + host->is->slots; i++) {
        const char *name = all->plan->graph->nodes[i].name;
        size_t length = strlen(name);
        if (bytes < length + 2 || memcmp(text, name, length) != 0 ||
            memcmp(text + length, "| ", 2) != 0)
            continue;
        launch_lines_print(
            stream->lines, name, i, stream->to, text + length + 2, bytes - length - 2);
        return true;
    }
    return false;
}

static void on_output(struct launch_stream *stream, const char *text, size_t bytes)
{
    struct host *host = stream->context;
    json_t *object = bytes > 0 && text[0] == '{' ? json_loadb(text, bytes, 0, NULL) : NULL;
    if (object) {
        on_object(host, object);
        json_decref(object);
        step(host->all);
    } else if (!print_line(stream, text, bytes)) { /* what a shell prints at its start */
        launch_lines_print(stream->lines, host->is->host, host->is->first, stderr, text, bytes);
    }
}

static void on_unread(void *context)
{
    const struct host *host = context;
    if (host->all->interrupted == 0)
        interrupt(host->all, SIGPIPE);
}

static void on_complaint(struct launch_stream *stream, const char *text, size_t bytes)
{
    struct host *host = stream->context;
    if (bytes == 0 || print_line(stream, text, bytes))
        return;
    if (host->greeted && !host->told)
        launch_lines_print(stream->lines, host->is->host, host->is->first, stderr, text, bytes);
    (void)snprintf(host->said, sizeof host->said, "%.*s",
        (int)(bytes < SAID_BYTES ? bytes : SAID_BYTES - 1), text);
}

static void on_stream_ended(void *context)
{
    struct host *host = context;
    host->streams--;
    step(host->all);
}

/* ---- starting ---- */

static int open_stream(struct host *host, struct launch_stream *stream, int descriptor, FILE *to,
    void (*line)(struct launch_stream *, const char *, size_t))
{
    stream->line = line;
    stream->ended = on_stream_ended;
    stream->unread = on_unread;
    stream->context = host;
    int code = launch_stream_open(stream, &host->all->lines, &host->all->loop, descriptor,
        host->is->host, host->is->first, to);
    host->streams += stream->open;
    return code;
}

static int start(struct host *host)
{
    struct hosts *all = host->all;
    struct launch_reached reached;
    int code = launch_reach_start(all->reach, host->is, &reached);
    if (code < 0)
        return code;
    host->started = true;
    host->pid = reached.pid;
    code =
        launch_writer_open(&host->input, &all->loop, reached.input, (uint32_t)(host - all->host));
    if (code == 0)
        code = open_stream(host, &host->output, reached.output, stdout, on_output);
    if (code == 0)
        code = open_stream(host, &host->error, reached.error, stderr, on_complaint);
    return code;
}

static void start_all(struct hosts *all)
{
    char *graph = launch_plan_dot(all->plan);
    for (size_t i = 0; i < all->list->count && all->stage == GREETING; i++) {
        json_t *plan = graph ? launch_plan_pack(all->plan, all->host[i].is, graph) : NULL;
        int code = plan ? start(&all->host[i]) : -ENOMEM;
        if (code == 0)
            launch_writer_object(&all->host[i].input, plan);
        json_decref(plan);
        if (code == 0)
            continue;
        tell(all, "%s: %s cannot be started: %s", all->host[i].is->host,
            launch_reach_name(all->reach), sgp_strerror(code));
        fail(&all->host[i], CTL_FAILED);
    }
    free(graph);
}

/* ---- ends ---- */

static void on_ended(struct host *host, int status)
{
    host->pid = 0;
    host->status = status;
    host->over = true;
    launch_writer_close(&host->input);
}

/* The command has ended, and all that it printed is known. */
static void judge(struct host *host)
{
    struct hosts *all = host->all;
    if (!host->started || host->told || (host->summed && host->status == 0))
        return;
    if (!host->summed && !host->complained)
        tell(all, "%s:%u: %s: %s ended with status %d%s%s", all->list->path, host->is->line,
            host->is->host, launch_reach_name(all->reach), host->status,
            host->said[0] != '\0' ? ": " : "", host->said);
    fail(host, host->summed ? host->status : CTL_FAILED);
    host->told = true; /* it is judged once */
}

static void on_child(uv_signal_t *handle, int number)
{
    struct hosts *all = handle->data;
    int status, ended_by;
    pid_t pid;
    (void)number;
    while ((pid = launch_reap(&status, &ended_by)) > 0)
        for (size_t i = 0; i < all->list->count; i++)
            if (all->host[i].pid == pid)
                on_ended(&all->host[i], status);
    step(all);
}

static size_t count_of(const struct hosts *all, bool (*is)(const struct host *))
{
    size_t count = 0;
    for (size_t i = 0; i < all->list->count; i++)
        count += is(&all->host[i]);
    return count;
}

static bool has_greeted(const struct host *host)
{
    return host->greeted;
}

static bool has_run(const struct host *host)
{
    return host->ran;
}

static bool is_over(const struct host *host)
{
    return host->over || host->pid == 0;
}

static bool is_gone(const struct host *host)
{
    return host->pid == 0 && host->streams == 0;
}

static void close_all(struct hosts *all)
{
    all->closed = true;
    for (size_t i = 0; i < sizeof all->signals / sizeof *all->signals; i++)
        uv_close((uv_handle_t *)&all->signals[i], NULL);
    uv_close((uv_handle_t *)&all->grace, NULL);
    uv_close((uv_handle_t *)&all->show, NULL);
    launch_lines_clear(&all->lines);
    launch_lines_show(&all->lines, "");
}

static void step(struct hosts *all)
{
    size_t count = all->list->count;
    if (all->closed)
        return;
    for (size_t i = 0; i < count; i++)
        if (is_gone(&all->host[i]))
            judge(&all->host[i]);
    if (all->stage == GREETING && count_of(all, has_greeted) == count) {
        all->stage = RUNNING;
        say_addresses(all);
    }
    if ((all->stage == RUNNING || all->stage == ENDING) && count_of(all, is_over) == count) {
        all->stage = RELEASED;
        for (size_t i = 0; i < count; i++)
            launch_writer_byte(&all->host[i].input, LAUNCH_RELEASE);
        wait_for_ends(all);
    }
    if (count_of(all, is_gone) == count)
        close_all(all);
}

/* ---- the lines of progress ---- */

static void append(char *text, size_t capacity, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void append(char *text, size_t capacity, const char *format, ...)
{
    size_t used = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text + used, capacity - used, format, arguments);
    va_end(arguments);
}

static const char *state_of(const struct host *host)
{
    if (host->pid == 0)
        return "ended";
    if (!host->greeted)
        return "connecting";
    return host->over ? "done" : host->told ? "ending" : "running";
}

/* A row for each node. */
static void show_table(const struct hosts *all, char *text, size_t capacity)
{
    append(text, capacity, "%-12s %-20s %-10s %9s %9s\n", "node", "host", "state", "round", "loss");
    for (size_t i = 0; i < all->list->count; i++)
        for (uint32_t j = 0; j < all->host[i].is->slots; j++) {
            uint32_t index = all->host[i].is->first + j;
            const struct node *node = &all->node[index];
            append(text, capacity, "%-12.24s %-20.32s %-10s", all->plan->graph->nodes[index].name,
                all->host[i].is->host, state_of(&all->host[i]));
            append(text, capacity, node->round < 0 ? " %9s" : "%.0s %9lld", "-", node->round);
            append(
                text, capacity, isfinite(node->loss) ? "%.0s %9.4g\n" : " %9s\n", "-", node->loss);
        }
}

static void on_show(uv_timer_t *timer)
{
    struct hosts *all = timer->data;
    char text[sizeof all->lines.text] = "";
    if (all->plan->fleet <= TABLE_ROWS && launch_lines_fit(all->plan->fleet + TABLE_OTHERS))
        show_table(all, text, sizeof text);
    append(text, sizeof text, "%zu of %zu hosts running, %.0f s",
        all->list->count - count_of(all, is_over), all->list->count,
        (double)(uv_hrtime() - all->began) * 1e-9);
    launch_lines_show(&all->lines, text);
}

/* ---- the whole ---- */

static void init(struct hosts *all)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGCHLD};
    (void)uv_loop_init(&all->loop);
    (void)uv_timer_init(&all->loop, &all->grace);
    (void)uv_timer_init(&all->loop, &all->show);
    all->grace.data = all->show.data = all;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        (void)uv_signal_init(&all->loop, &all->signals[i]);
        all->signals[i].data = all;
        (void)uv_signal_start(
            &all->signals[i], numbers[i] == SIGCHLD ? on_child : on_signal, numbers[i]);
    }
    for (size_t i = 0; i < all->list->count; i++)
        all->host[i] = (struct host){.all = all, .is = &all->list->hosts[i]};
    for (uint32_t i = 0; i < all->plan->fleet; i++)
        all->node[i] = (struct node){.round = -1, .loss = NAN};
    launch_lines_init(all->ctl, &all->lines);
    if (all->lines.progress)
        (void)uv_timer_start(&all->show, on_show, 0, SHOW_MS);
    (void)signal(SIGPIPE, SIG_IGN); /* a command that has ended does not read */
    launch_signs_start();
}

static void summarise(const struct hosts *all)
{
    double seconds = (double)(uv_hrtime() - all->began) * 1e-9;
    json_t *statuses = json_object();
    if (!all->ctl->json) {
        (void)fprintf(stderr, "sgpctl: %u node%s on %zu host%s, %.1f s\n", all->plan->fleet,
            all->plan->fleet == 1 ? "" : "s", all->list->count, all->list->count == 1 ? "" : "s",
            seconds);
        json_decref(statuses);
        return;
    }
    for (uint32_t i = 0; i < all->plan->fleet; i++)
        (void)json_object_set_new(statuses, all->plan->graph->nodes[i].name, json_null());
    for (size_t i = 0; i < all->list->count; i++)
        (void)json_object_update(statuses, all->host[i].statuses);
    (void)ctl_print_json(
        json_pack("{s:I, s:I, s:f, s:o, s:o}", "nodes", (json_int_t)all->plan->fleet, "hosts",
            (json_int_t)all->list->count, "seconds", seconds, "statuses", statuses, "kept",
            all->plan->keep ? ctl_json_text(all->plan->keep) : json_null()));
}

enum ctl_exit launch_hosts_run(struct ctl *ctl, struct launch_plan *plan,
    const struct launch_list *list, const struct launch_reach *reach)
{
    static struct hosts all;
    all.ctl = ctl;
    all.plan = plan;
    all.list = list;
    all.reach = reach;
    all.began = uv_hrtime();
    init(&all);
    start_all(&all);
    step(&all);
    (void)uv_run(&all.loop, UV_RUN_DEFAULT);
    launch_signs_stop();
    if (all.interrupted != 0)
        worsen(&all, 128 + all.interrupted);
    else if (count_of(&all, has_run) > 0)
        summarise(&all);
    for (size_t i = 0; i < list->count; i++)
        json_decref(all.host[i].statuses);
    sgp_assert(uv_loop_close(&all.loop) == 0);
    return (enum ctl_exit)all.worst;
}

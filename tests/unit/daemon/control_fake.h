/* SPDX-License-Identifier: Apache-2.0 */
/* What the suites of the control server share: the server over a real Unix socket, in one thread, where a client
 * that does not block takes turns with the loop. The daemon behind it is a fake whose jobs end at the loop's next turn,
 * or when told. Plain functions, one fixture a test. */
#ifndef CONTROL_FAKE_H
#define CONTROL_FAKE_H

#include "control/http.h"

#include "sgp/model_file.h"
#include "sgp/report.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define INPUTS 3
#define OUTPUTS 2

struct fake_job {
    view_evaluated evaluated;
    view_reported reported;
    view_estimated estimated;
    view_predicted predicted;
    view_left left;
    const float *features;
    uint64_t rows;
    void *argument;
};

struct fixture;

struct fake {
    struct fixture *stop_closes; /* stop ends the daemon, and with it the server, at once */
    struct sgp_topology *topology;
    struct sgp_model model;
    struct fake_job jobs[16];
    unsigned job_count;
    bool unmeasured;      /* evaluations have no measures */
    bool hold;            /* jobs wait until this is cleared */
    int code;             /* of jobs, when they end */
    const char *error;    /* not NULL: evaluate and predict cannot begin, and say so */
    double fleet_seconds; /* that the latest evaluation of the fleet may take */
    int order_code;
    enum sgp_node_state state;
    unsigned orders;
    unsigned looks; /* at peers */
    uint64_t history_total;
    unsigned rows_looked_at;
};

struct fixture {
    uv_loop_t loop;
    uv_prepare_t jobs;
    struct fake fake;
    struct control *control;
    bool closed;
    char directory[64];
    char path[96];
};

/* The fake daemon. */

static void fake_status(void *context, struct view_status *status)
{
    struct fake *fake = context;
    *status = (struct view_status){.name = "n0",
        .algorithm = "sgp",
        .core = {.state = fake->state,
            .round = 17,
            .rounds = 100,
            .weight = 1,
            .weight_in_flight = 0.25,
            .waiting = SGP_WAITING_SHARE},
        .run = 3,
        .incarnation = UINT64_C(0xfedcba9876543210),
        .uptime_seconds = 12.5,
        .training = {.epoch = 1.25, .loss = 0.5, .learning_rate = 0.05},
        .test = {.loss = NAN, .accuracy = NAN},
        .epochs = 10,
        .samples = 4096,
        .samples_per_second = 1000,
        .diverging = "test_loss",
        .hears_nobody = true,
        .disagreement = 1e-3,
        .parameters = 8,
        .memory_bytes = 1024,
        .topology_file = "/etc/sgpd/fleet.dot",
        .waiting = "share",
        .waiting_for = "n1",
        .waiting_seconds = 2,
        .last_error = "caf\xe9"};
}

static uint32_t fake_peer_count(void *context)
{
    (void)context;
    return 2;
}

static void fake_peer(void *context, uint32_t index, struct view_peer *peer)
{
    ((struct fake *)context)->looks++;
    *peer = (struct view_peer){.name = "n1",
        .address = "127.0.0.1:7312",
        .core = {.direction = index == 0 ? SGP_OUT : SGP_IN,
            .state = index == 0 ? SGP_LINK_UP : SGP_LINK_CONNECTING,
            .peer_state = index == 0 ? SGP_NODE_TRAINING : 0,
            .round = index == 0 ? 16 : SGP_ROUND_NONE,
            .mismatch = true,
            .disagrees = true,
            .distance = 0.5,
            .distance_relative = 0.25,
            .slow = true,
            .silence_bound = 3 * SGP_SECOND,
            .shares_sent = 7},
        .lag_rounds = 1,
        .unheard = index == 1,
        .previous_error = "connection refused",
        .last_heard_seconds = index == 0 ? 0.5 : (double)NAN,
        .rtt_ms = index == 0 ? 2.0 : (double)NAN,
        .shares_outsized = 3};
}

static uint64_t fake_history_total(void *context)
{
    return ((struct fake *)context)->history_total;
}

static void fake_history(void *context, uint64_t number, struct view_history_row *row)
{
    struct fake *fake = context;
    fake->rows_looked_at++;
    *row = (struct view_history_row){.round = (sgp_round)number,
        .loss = 2.0 - (double)number,
        .test_loss = NAN,
        .compression_error = 0.0078125,
        .bytes_spared = 300,
        .best_value = NAN};
}

static const struct sgp_topology *fake_topology(void *context)
{
    return ((struct fake *)context)->topology;
}

static int fake_order(struct fake *fake, enum sgp_node_state state)
{
    if (fake->order_code < 0)
        return fake->order_code;
    fake->orders++;
    fake->state = state;
    return 0;
}

static int fake_pause(void *context)
{
    return fake_order(context, SGP_NODE_PAUSED);
}

static int fake_resume(void *context)
{
    return fake_order(context, SGP_NODE_TRAINING);
}

static void close_at_once(struct fixture *f);

static int fake_stop(void *context)
{
    struct fake *fake = context;
    if (fake->stop_closes)
        close_at_once(fake->stop_closes);
    return fake_order(context, SGP_NODE_DRAINING);
}

static int fake_reload(void *context, struct view_reload *ret_reload, struct sgp_error *error)
{
    struct fake *fake = context;
    if (fake->order_code < 0)
        return sgp_fail(error, fake->order_code, "/etc/sgpd/fleet.dot:3: syntax error");
    static const char warnings[1][SGP_TEXT_BYTES] = {"/etc/sgpd/fleet.dot: slow"};
    *ret_reload = (struct view_reload){.digest = 0xabc,
        .nodes = 8,
        .phases = 3,
        .nodes_added = 2,
        .edges_added = 5,
        .tls = SGP_TLS_OFF,
        .tls_before = SGP_TLS_REQUIRE,
        .warnings = warnings,
        .warning_count = 1};
    return 0;
}

static int add_job(struct fake *fake, struct fake_job job)
{
    fake->jobs[fake->job_count++] = job;
    return 0;
}

static int fake_evaluate(
    void *context, view_evaluated done, void *argument, struct sgp_error *error)
{
    if (((struct fake *)context)->error)
        return sgp_fail(error, SGP_E_STATE, "%s", ((struct fake *)context)->error);
    return add_job(context, (struct fake_job){.evaluated = done, .argument = argument});
}

/* What n0 has measured; n1 has no rows, n2 has not told, and n3 measures other things. */
static struct view_reports *fake_reports(void)
{
    struct view_reports *reports = calloc(1, sizeof *reports + 4 * sizeof *reports->reports);
    struct sgp_report report = {.run = 1, .label = 17, .state = SGP_REPORT_MEASURED};
    cr_assert(reports != NULL);
    reports->best = SGP_ROUND_NONE;
    for (; reports->count < 4; reports->count++)
        (void)snprintf(
            reports->reports[reports->count].name, SGP_NAME_BYTES, "n%u", reports->count);
    cr_assert(eq(int, sgp_measures_init(&report.measures, SGP_MEASURES_LOGITS, OUTPUTS), 0));
    sgp_measures_add_label(&report.measures, (float[OUTPUTS]){2, 1}, 0);
    sgp_measures_add_label(&report.measures, (float[OUTPUTS]){2, 1}, 1);
    cr_assert(eq(int, sgp_report_write(&report, &reports->reports[0].text), 0));
    sgp_measures_finish(&report.measures);
    report = (struct sgp_report){.run = 1, .label = 19, .state = SGP_REPORT_NO_ROWS};
    cr_assert(eq(int, sgp_report_write(&report, &reports->reports[1].text), 0));
    report.state = SGP_REPORT_MEASURED;
    cr_assert(eq(int, sgp_measures_init(&report.measures, SGP_MEASURES_SCORES, OUTPUTS), 0));
    sgp_measures_add_label(&report.measures, (float[OUTPUTS]){2, 1}, 0);
    cr_assert(eq(int, sgp_report_write(&report, &reports->reports[3].text), 0));
    sgp_measures_finish(&report.measures);
    return reports;
}

static int fake_evaluate_fleet(
    void *context, double seconds, view_reported done, void *argument, struct sgp_error *error)
{
    struct fake *fake = context;
    fake->fleet_seconds = seconds;
    if (fake->error)
        return sgp_fail(error, SGP_E_STATE, "%s", fake->error);
    return add_job(context, (struct fake_job){.reported = done, .argument = argument});
}

static int fake_report(void *context, struct view_reports **ret_reports, struct sgp_error *error)
{
    const struct fake *fake = context;
    if (fake->error)
        return sgp_fail(error, SGP_E_STATE, "%s", fake->error);
    *ret_reports = fake_reports();
    return 0;
}

static int fake_estimate(
    void *context, view_estimated done, void *argument, struct sgp_error *error)
{
    (void)error;
    return add_job(context, (struct fake_job){.estimated = done, .argument = argument});
}

static int fake_predict(void *context, const float *features, uint64_t rows, uint32_t columns,
    view_predicted done, void *argument, struct sgp_error *error)
{
    if (((struct fake *)context)->error)
        return sgp_fail(error, SGP_E_STATE, "%s", ((struct fake *)context)->error);
    cr_assert(eq(u32, columns, INPUTS));

    return add_job(
        context, (struct fake_job){
                     .predicted = done, .features = features, .rows = rows, .argument = argument});
}

static const char *fake_leave_obstacle(void *context)
{
    return ((struct fake *)context)->order_code < 0 ? "it is tired" : NULL;
}

static int fake_leave(void *context, view_left done, void *argument)
{
    return add_job(context, (struct fake_job){.left = done, .argument = argument});
}

/* Outputs: the sum of a row's features, and the first one. */
static void end_job(struct fake *fake, const struct fake_job *job)
{
    bool good = fake->code == 0;
    const struct sgp_error error = {.code = fake->code};
    if (job->left) {
        job->left(job->argument, fake->code, good ? "n1" : NULL, 1.25, 0.5);
    } else if (job->reported) {
        job->reported(job->argument, &error, good ? fake_reports() : NULL);
    } else if (job->evaluated) {
        const struct sgp_evaluation evaluation = {.samples = 10, .loss = 0.25, .accuracy = 0.75};
        struct sgp_measures measures;
        cr_assert(eq(int, sgp_measures_init(&measures, SGP_MEASURES_LOGITS, OUTPUTS), 0));
        sgp_measures_add_label(&measures, (float[OUTPUTS]){2, 1}, 0);
        sgp_measures_add_label(&measures, (float[OUTPUTS]){2, 1}, 1);
        job->evaluated(job->argument, &error, good ? &evaluation : NULL,
            good && !fake->unmeasured ? &measures : NULL, 17, false);
        sgp_measures_finish(&measures);
    } else if (job->estimated) {
        float *z = good ? malloc(fake->model.parameters * sizeof *z) : NULL;
        for (uint64_t i = 0; z && i < fake->model.parameters; i++)
            z[i] = (float)i / 4;
        job->estimated(job->argument, fake->code, z, fake->model.parameters, 17, 0.5);
    } else {
        float *outputs = malloc(job->rows * OUTPUTS * sizeof *outputs);
        for (uint64_t r = 0; r < job->rows; r++) {
            const float *row = job->features + r * INPUTS;
            outputs[r * OUTPUTS] = row[0] + row[1] + row[2];
            outputs[r * OUTPUTS + 1] = row[0];
        }
        job->predicted(job->argument, &error, good ? outputs : NULL, job->rows, OUTPUTS);
        free(outputs);
    }
}

static void on_turn(uv_prepare_t *handle)
{
    struct fake *fake = handle->data;
    if (fake->hold)
        return;
    unsigned count = fake->job_count;
    fake->job_count = 0;
    for (unsigned i = 0; i < count; i++)
        end_job(fake, &fake->jobs[i]);
}

/* The fixture. */

static const struct view_actions fake_actions = {.status = fake_status,
    .peer_count = fake_peer_count,
    .peer = fake_peer,
    .history_total = fake_history_total,
    .history = fake_history,
    .topology = fake_topology,
    .pause = fake_pause,
    .resume = fake_resume,
    .stop = fake_stop,
    .reload = fake_reload,
    .leave_obstacle = fake_leave_obstacle,
    .token_obstacle = fake_leave_obstacle,
    .restore_token = fake_pause,
    .leave = fake_leave,
    .evaluate = fake_evaluate,
    .evaluate_fleet = fake_evaluate_fleet,
    .report = fake_report,
    .estimate = fake_estimate,
    .predict = fake_predict};

static char *class_names[OUTPUTS] = {"sum", "first"};

static struct sgp_topology *make_topology(void)
{
    const struct sgp_topology_node nodes[] = {{"n0", "127.0.0.1:7311"}, {"n1", "127.0.0.1:7312"}};
    const struct sgp_edge edges[] = {{0, 1, 0.5}, {1, 0, 0.5}};
    struct sgp_topology *topology = NULL;
    struct sgp_error error = {0};
    cr_assert(eq(int, sgp_topology_create(nodes, 2, &error, &topology), 0));
    cr_assert(eq(int, sgp_topology_add_phase(topology, "a", 1, false, edges, 2, &error), 0));
    cr_assert(eq(int, sgp_topology_seal(topology, &error), 0));
    return topology;
}

static int open_control(struct fixture *f, struct sgp_error *error, struct control **ret_control)
{
    struct view_actions actions = fake_actions;
    actions.context = &f->fake;
    const struct view_model model = {.model = &f->fake.model,
        .class_names = class_names,
        .missing = SGP_MISSING_ERROR,
        .classifies = true};
    return control_open(&f->loop, f->path, &actions, &model, error, ret_control);
}

static struct fixture *start(void)
{
    struct fixture *f = calloc(1, sizeof *f);
    strcpy(f->directory, "/tmp/test_control.XXXXXX");
    cr_assert(mkdtemp(f->directory) != NULL);
    (void)snprintf(f->path, sizeof f->path, "%s/control.sock", f->directory);
    f->fake.state = SGP_NODE_TRAINING;
    f->fake.history_total = 3;
    f->fake.topology = make_topology();
    cr_assert(eq(
        int, sgp_model_init(&f->fake.model, "dense 2", SGP_LOSS_CROSS_ENTROPY, INPUTS, NULL), 0));
    cr_assert(eq(int, uv_loop_init(&f->loop), 0));
    cr_assert(eq(int, uv_prepare_init(&f->loop, &f->jobs), 0));
    f->jobs.data = &f->fake;
    cr_assert(eq(int, uv_prepare_start(&f->jobs, on_turn), 0));
    struct sgp_error error = {0};
    cr_assert(eq(int, open_control(f, &error, &f->control), 0), "%s", error.text);
    return f;
}

static void turn(struct fixture *f)
{
    (void)uv_run(&f->loop, UV_RUN_NOWAIT);
}

static void on_closed(void *argument)
{
    *(bool *)argument = true;
}

static void close_at_once(struct fixture *f)
{
    control_close(f->control, on_closed, &f->closed);
    f->control = NULL;
}

static void close_control(struct fixture *f)
{
    close_at_once(f);
    while (!f->closed)
        turn(f);
}

static void finish(struct fixture *f)
{
    if (f->control)
        close_control(f);
    uv_close((uv_handle_t *)&f->jobs, NULL);
    cr_assert(eq(int, uv_run(&f->loop, UV_RUN_DEFAULT), 0));
    cr_assert(eq(int, uv_loop_close(&f->loop), 0), "a handle was left");
    cr_assert(eq(int, access(f->path, F_OK), -1), "the socket file was left");
    sgp_topology_destroy(f->fake.topology);
    (void)rmdir(f->directory);
    free(f);
}

/* The client. */

static int dial_path(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, path);
    int descriptor = socket(AF_UNIX, SOCK_STREAM, 0);
    cr_assert(eq(int, connect(descriptor, (struct sockaddr *)&address, sizeof address), 0), "%s",
        strerror(errno));
    (void)fcntl(descriptor, F_SETFL, O_NONBLOCK);
    return descriptor;
}

static int dial(struct fixture *f)
{
    return dial_path(f->path);
}

static void send_all(struct fixture *f, int descriptor, const char *bytes, size_t count)
{
    while (count > 0) {
        ssize_t sent = send(descriptor, bytes, count, MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN)
            return; /* refused in the middle: the answer says why */
        if (sent > 0) {
            bytes += sent;
            count -= (size_t)sent;
        }
        turn(f);
    }
}

struct answer {
    int status;
    char *text; /* head and body, zero-terminated */
    char *body;
    size_t body_bytes;
};

/* Read to the end of the connection, and close. */
static struct answer receive(struct fixture *f, int descriptor)
{
    size_t used = 0, room = 1 << 16;
    char *text = malloc(room);
    for (;;) {
        if (room - used < 4096)
            text = realloc(text, room *= 2);
        ssize_t bytes = recv(descriptor, text + used, room - used - 1, 0);
        if (bytes == 0 || (bytes < 0 && errno != EAGAIN))
            break;
        used += bytes > 0 ? (size_t)bytes : 0;
        turn(f);
    }
    (void)close(descriptor);
    text[used] = '\0';
    struct answer answer = {.text = text};
    (void)sscanf(text, "HTTP/1.1 %d", &answer.status);
    char *body = strstr(text, "\r\n\r\n");
    answer.body = body ? body + 4 : text + used;
    answer.body_bytes = (size_t)(text + used - answer.body);
    return answer;
}

static struct answer ask_with(
    struct fixture *f, const char *method, const char *path, const char *body, size_t body_bytes)
{
    char head[256];
    int length = snprintf(head, sizeof head,
        "%s %s HTTP/1.1\r\nHost: n\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n", method,
        path, body_bytes);
    int descriptor = dial(f);
    send_all(f, descriptor, head, (size_t)length);
    send_all(f, descriptor, body, body_bytes);
    return receive(f, descriptor);
}

static struct answer ask(struct fixture *f, const char *method, const char *path, const char *body)
{
    return ask_with(f, method, path, body, strlen(body));
}

static json_t *parse_answer(struct answer answer, int status)
{
    cr_assert(eq(int, answer.status, status), "%s", answer.text);
    cr_assert(strstr(answer.text, "Content-Type: application/json\r\n") != NULL);
    json_error_t why;
    json_t *root = json_loads(answer.body, JSON_DECODE_ANY, &why);
    cr_assert(root != NULL, "%s in %s", why.text, answer.body);
    free(answer.text);
    return root;
}

static json_t *get(struct fixture *f, const char *path)
{
    return parse_answer(ask(f, "GET", path, ""), 200);
}

static void expect_error(struct answer answer, int status, const char *code, const char *message)
{
    json_t *root = parse_answer(answer, status);
    const json_t *error = json_object_get(root, "error");
    cr_assert(eq(int, (int)json_integer_value(json_object_get(error, "status")), status));
    cr_assert(eq(str, (char *)json_string_value(json_object_get(error, "code")), (char *)code));
    cr_assert(
        eq(str, (char *)json_string_value(json_object_get(error, "message")), (char *)message));
    json_decref(root);
}

static void expect_text(const json_t *object, const char *key, const char *value)
{
    const char *text = json_string_value(json_object_get(object, key));
    cr_assert(text != NULL, "%s", key);
    cr_assert(eq(str, (char *)text, (char *)value), "%s", key);
}

#endif

/* The control server over a real Unix socket, in one thread: a client that does not block takes turns
 * with the loop. The daemon behind it is a fake whose jobs end at the loop's next turn, or when told. */
#include "http.h"

#include "sgp/model_file.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
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
    bool hold; /* jobs wait until this is cleared */
    int code;  /* of jobs, when they end */
    int order_code;
    enum sgp_node_state state;
    unsigned orders;
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
        .state = fake->state,
        .incarnation = UINT64_C(0xfedcba9876543210),
        .uptime_seconds = 12.5,
        .round = 17,
        .rounds = 100,
        .epoch = 1.25,
        .epochs = 10,
        .samples = 4096,
        .samples_per_second = 1000,
        .loss = 0.5,
        .test_loss = NAN,
        .test_accuracy = NAN,
        .learning_rate = 0.05,
        .weight = 1,
        .weight_in_flight = 0.25,
        .hears_nobody = true,
        .disagreement = 1e-3,
        .parameters = 8,
        .memory_bytes = 1024,
        .topology_file = "/etc/sgpd/fleet.dot",
        .waiting = SGP_WAITING_SHARE,
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
    (void)context;
    *peer = (struct view_peer){.name = "n1",
        .address = "127.0.0.1:7312",
        .direction = index == 0 ? SGP_OUT : SGP_IN,
        .state = index == 0 ? SGP_LINK_UP : SGP_LINK_CONNECTING,
        .peer_state = index == 0 ? SGP_NODE_TRAINING : 0,
        .round = index == 0 ? 16 : SGP_ROUND_NONE,
        .lag_rounds = 1,
        .unheard = index == 1,
        .absent_after_seconds = 3,
        .last_heard_seconds = index == 0 ? 0.5 : (double)NAN,
        .rtt_ms = index == 0 ? 2.0 : (double)NAN,
        .shares_sent = 7};
}

static uint32_t fake_history_count(void *context)
{
    (void)context;
    return 3;
}

static void fake_history(void *context, uint32_t index, struct view_history_row *row)
{
    (void)context;
    *row = (struct view_history_row){.round = index, .loss = 2.0 - index, .test_loss = NAN};
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
    *ret_reload = (struct view_reload){
        .digest = 0xabc, .nodes = 8, .phases = 3, .nodes_added = 2, .edges_added = 5};
    return 0;
}

static int add_job(struct fake *fake, struct fake_job job)
{
    fake->jobs[fake->job_count++] = job;
    return 0;
}

static int fake_evaluate(void *context, view_evaluated done, void *argument)
{
    return add_job(context, (struct fake_job){.evaluated = done, .argument = argument});
}

static int fake_estimate(void *context, view_estimated done, void *argument)
{
    return add_job(context, (struct fake_job){.estimated = done, .argument = argument});
}

static int fake_predict(
    void *context, const float *features, uint64_t rows, view_predicted done, void *argument)
{
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
    if (job->left) {
        job->left(job->argument, fake->code, good ? "n1" : NULL, 1.25);
    } else if (job->evaluated) {
        const struct sgp_evaluation evaluation = {.samples = 10, .loss = 0.25, .accuracy = 0.75};
        job->evaluated(job->argument, fake->code, good ? &evaluation : NULL, 17);
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
        job->predicted(job->argument, fake->code, good ? outputs : NULL, job->rows, OUTPUTS);
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
    .history_count = fake_history_count,
    .history = fake_history,
    .topology = fake_topology,
    .pause = fake_pause,
    .resume = fake_resume,
    .stop = fake_stop,
    .reload = fake_reload,
    .leave_obstacle = fake_leave_obstacle,
    .leave = fake_leave,
    .evaluate = fake_evaluate,
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
    const struct control_model model = {.model = &f->fake.model,
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

static void expect_null(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    cr_assert(value != NULL && json_is_null(value), "%s", key);
}

static void expect_number(const json_t *object, const char *key, double value)
{
    const json_t *number = json_object_get(object, key);
    cr_assert(number != NULL && json_is_number(number), "%s", key);
    cr_assert(eq(dbl, json_number_value(number), value), "%s", key);
}

/* Reading. */

Test(control, status_has_every_field)
{
    static const char *const fields[] = {"schema", "version", "protocol", "name", "state",
        "incarnation", "uptime_seconds", "algorithm", "round", "epoch", "samples",
        "samples_per_second", "loss", "test_loss", "test_accuracy", "weight", "weight_in_flight",
        "disagreement", "weight_minted", "parameters", "memory_bytes", "topology", "last_error"};
    struct fixture *f = start();
    json_t *status = get(f, "/v1/status");
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        cr_assert(json_object_get(status, fields[i]) != NULL, "%s", fields[i]);
    expect_number(status, "schema", 1);
    expect_text(status, "name", "n0");
    expect_text(status, "state", "training");
    expect_text(status, "incarnation", "fedcba9876543210");
    expect_number(status, "round", 17);
    expect_number(status, "weight_in_flight", 0.25);
    expect_null(status, "test_loss");
    expect_text(status, "last_error", "caf?");
    cr_assert(eq(int, json_is_true(json_object_get(status, "hears_nobody")), 1));
    const json_t *unheard = json_object_get(status, "unheard");
    cr_assert(eq(sz, json_array_size(unheard), 1));
    char *name = (char *)json_string_value(json_array_get(unheard, 0));
    cr_assert(eq(str, name, "n1"));
    const json_t *topology = json_object_get(status, "topology");
    expect_text(topology, "file", "/etc/sgpd/fleet.dot");
    expect_number(topology, "nodes", 2);
    expect_number(topology, "phase", 0);
    expect_number(topology, "phases", 1);
    cr_assert(eq(sz, strlen(json_string_value(json_object_get(topology, "digest"))), 16));
    const json_t *waiting = json_object_get(status, "waiting");
    expect_text(waiting, "for", "share");
    expect_text(waiting, "peer", "n1");
    json_decref(status);
    finish(f);
}

Test(control, peers_have_every_field)
{
    static const char *const fields[] = {"name", "address", "direction", "state", "round",
        "lag_rounds", "last_heard_seconds", "rtt_ms", "shares_sent", "shares_received",
        "shares_returned", "bytes_sent", "bytes_received", "last_error"};
    struct fixture *f = start();
    json_t *peers = get(f, "/v1/peers");
    cr_assert(eq(sz, json_array_size(peers), 2));
    for (size_t p = 0; p < 2; p++)
        for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
            cr_assert(
                json_object_get(json_array_get(peers, p), fields[i]) != NULL, "%s", fields[i]);
    expect_text(json_array_get(peers, 0), "direction", "out");
    expect_text(json_array_get(peers, 0), "state", "up");
    expect_number(json_array_get(peers, 0), "lag_rounds", 1);
    expect_number(json_array_get(peers, 0), "absent_after_seconds", 3);
    expect_text(json_array_get(peers, 1), "direction", "in");
    expect_text(json_array_get(peers, 1), "state", "connecting");
    expect_null(json_array_get(peers, 1), "round");
    expect_null(json_array_get(peers, 1), "lag_rounds");
    json_decref(peers);
    finish(f);
}

Test(control, topology_and_history)
{
    struct fixture *f = start();
    json_t *topology = get(f, "/v1/topology");
    const json_t *phase = json_array_get(json_object_get(topology, "phases"), 0);
    const json_t *edge = json_array_get(json_object_get(phase, "edges"), 1);
    expect_text(edge, "source", "n1");
    expect_text(edge, "target", "n0");
    expect_number(edge, "fraction", 0.5);
    json_decref(topology);
    json_t *history = get(f, "/v1/history");
    cr_assert(eq(sz, json_array_size(history), 3));
    expect_number(json_array_get(history, 2), "round", 2);
    expect_number(json_array_get(history, 1), "loss", 1);
    expect_null(json_array_get(history, 1), "test_loss");
    json_decref(history);
    finish(f);
}

Test(control, metrics_are_prometheus_text)
{
    struct fixture *f = start();
    struct answer answer = ask(f, "GET", "/metrics", "");
    cr_assert(eq(int, answer.status, 200));
    cr_assert(strstr(answer.text, "Content-Type: text/plain; version=0.0.4") != NULL);
    cr_assert(strstr(answer.body, "# HELP sgpd_round Round the node is in.\n"
                                  "# TYPE sgpd_round gauge\nsgpd_round 17\n") != NULL);
    cr_assert(strstr(answer.body, "sgpd_state{state=\"training\"} 1\n") != NULL);
    cr_assert(strstr(answer.body, "sgpd_state{state=\"paused\"} 0\n") != NULL);
    cr_assert(strstr(answer.body,
                  "# TYPE sgpd_link_shares_sent_total counter\n"
                  "sgpd_link_shares_sent_total{peer=\"n1\",direction=\"out\"} 7\n"
                  "sgpd_link_shares_sent_total{peer=\"n1\",direction=\"in\"} 7\n") != NULL);
    cr_assert(strstr(answer.body, "sgpd_test_loss") == NULL, "what is unknown is left out");
    free(answer.text);
    finish(f);
}

/* Asking wrongly. */

Test(control, unknown_paths_and_methods)
{
    struct fixture *f = start();
    expect_error(ask(f, "GET", "/v1/secret", ""), 404, "not_found", "there is no GET /v1/secret");
    expect_error(ask(f, "DELETE", "/v1/status", ""), 405, "method_not_allowed",
        "DELETE is not for /v1/status");
    json_t *root = parse_answer(ask(f, "GET", "/", ""), 404);
    const json_t *paths = json_object_get(json_object_get(root, "error"), "paths");
    cr_assert(eq(sz, json_array_size(paths), endpoint_count));
    cr_assert(eq(str, (char *)json_string_value(json_array_get(paths, 0)), "GET /v1/status"));
    json_decref(root);
    finish(f);
}

Test(control, random_bytes_and_large_headers)
{
    struct fixture *f = start();
    int descriptor = dial(f);
    send_all(f, descriptor, "\x16\x03\x01\x02\r\n\r\n", 8);
    struct answer answer = receive(f, descriptor);
    cr_assert(answer.status == 0 || answer.status == 400, "%s", answer.text);
    free(answer.text);
    char *head = malloc(CONTROL_HEADER_BYTES_MAX + 200);
    size_t used = (size_t)sprintf(head, "GET /v1/status HTTP/1.1\r\nHost: n\r\nX: ");
    memset(head + used, 'x', CONTROL_HEADER_BYTES_MAX);
    descriptor = dial(f);
    send_all(f, descriptor, head, used + CONTROL_HEADER_BYTES_MAX);
    answer = receive(f, descriptor);
    cr_assert(eq(int, answer.status, 431), "%s", answer.text);
    free(answer.text);
    free(head);
    json_decref(get(f, "/v1/status"));
    finish(f);
}

Test(control, bodies_over_the_limit)
{
    struct fixture *f = start();
    expect_error(ask(f, "POST", "/v1/pause", "x"), 413, "too_large",
        "the body is larger than the 0 bytes that /v1/pause takes");
    cr_assert(eq(u32, f->fake.orders, 0));
    size_t bytes = CONTROL_BODY_BYTES_MAX + 1;
    char *body = calloc(1, bytes);
    memset(body, ' ', bytes);
    expect_error(ask_with(f, "POST", "/v1/predict", body, bytes), 413, "too_large",
        "the body is larger than the 4194304 bytes that /v1/predict takes");
    /* Without Content-Length it shows only on the way. */
    char head[128];
    int length = snprintf(head, sizeof head,
        "POST /v1/predict HTTP/1.1\r\nHost: n\r\nConnection: close\r\n"
        "Transfer-Encoding: chunked\r\n\r\n%zx\r\n",
        bytes);
    int descriptor = dial(f);
    send_all(f, descriptor, head, (size_t)length);
    send_all(f, descriptor, body, bytes);
    send_all(f, descriptor, "\r\n0\r\n\r\n", 7);
    expect_error(receive(f, descriptor), 413, "too_large", "the body is larger than 4194304 bytes");
    free(body);
    finish(f);
}

/* Orders and permissions. */

Test(control, orders)
{
    struct fixture *f = start();
    json_t *answer = parse_answer(ask(f, "POST", "/v1/pause", ""), 200);
    expect_text(answer, "state", "paused");
    json_decref(answer);
    answer = parse_answer(ask(f, "POST", "/v1/resume", ""), 200);
    expect_text(answer, "state", "training");
    json_decref(answer);
    answer = parse_answer(ask(f, "POST", "/v1/stop", ""), 200);
    expect_text(answer, "state", "draining");
    json_decref(answer);
    cr_assert(eq(u32, f->fake.orders, 3));
    f->fake.order_code = SGP_E_STATE;
    expect_error(ask(f, "POST", "/v1/pause", ""), 409, "conflict", "not possible in this state");
    finish(f);
}

Test(control, reload_says_what_has_changed_or_what_is_wrong_with_the_file)
{
    struct fixture *f = start();
    json_t *answer = parse_answer(ask(f, "POST", "/v1/reload", ""), 200);
    expect_text(answer, "digest", "0000000000000abc");
    cr_assert(eq(i64, json_integer_value(json_object_get(answer, "nodes_added")), 2));
    cr_assert(eq(i64, json_integer_value(json_object_get(answer, "edges_added")), 5));
    cr_assert(eq(sz, json_object_size(answer), 10));
    json_decref(answer);
    f->fake.order_code = SGP_E_TOPOLOGY;
    expect_error(ask(f, "POST", "/v1/reload", ""), 422, "invalid_file",
        "/etc/sgpd/fleet.dot:3: syntax error");
    f->fake.order_code = SGP_E_STATE;
    expect_error(ask(f, "POST", "/v1/reload", ""), 409, "conflict", "not possible in this state");
    finish(f);
}

Test(control, leaving_is_answered_when_the_node_has_left)
{
    struct fixture *f = start();
    json_t *answer = parse_answer(ask(f, "POST", "/v1/leave", ""), 200);
    expect_text(answer, "heir", "n1");
    expect_number(answer, "weight", 1.25);
    cr_assert(eq(int, json_is_true(json_object_get(answer, "left")), 1));
    json_decref(answer);
    f->fake.code = -ECANCELED;
    expect_error(ask(f, "POST", "/v1/leave", ""), 503, "busy", "the daemon is stopping");
    f->fake.order_code = SGP_E_STATE;
    expect_error(
        ask(f, "POST", "/v1/leave", ""), 409, "conflict", "the node cannot leave: it is tired");
    finish(f);
}

/* In a child process that is nobody: asks, and writes what it got to a pipe. */
static void ask_as_nobody(const char *path, const char *request, int output)
{
    char text[4096];
    if (setgroups(0, NULL) < 0 || setgid(65534) < 0 || setuid(65534) < 0)
        _exit(1);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, path);
    int descriptor = socket(AF_UNIX, SOCK_STREAM, 0);
    if (connect(descriptor, (struct sockaddr *)&address, sizeof address) < 0)
        _exit(2);
    (void)!write(descriptor, request, strlen(request));
    ssize_t bytes;
    while ((bytes = read(descriptor, text, sizeof text)) > 0)
        (void)!write(output, text, (size_t)bytes);
    _exit(0);
}

static struct answer ask_from_nobody(struct fixture *f, const char *request)
{
    int pair[2];
    cr_assert(eq(int, socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0));
    pid_t child = fork();
    if (child == 0)
        ask_as_nobody(f->path, request, pair[1]);
    (void)close(pair[1]);
    (void)fcntl(pair[0], F_SETFL, O_NONBLOCK);
    struct answer answer = receive(f, pair[0]);
    int status;
    cr_assert(eq(int, (int)waitpid(child, &status, 0), (int)child));
    cr_assert(eq(int, status, 0));
    return answer;
}

Test(control, only_root_and_the_owner_change)
{
    if (geteuid() != 0)
        cr_skip("another user can be played by root alone");
    struct fixture *f = start();
    struct stat status;
    cr_assert(eq(int, stat(f->path, &status), 0));
    cr_assert(eq(u32, status.st_mode & 07777, 0660));
    cr_assert(eq(int, chmod(f->directory, 0755), 0));
    cr_assert(eq(int, chmod(f->path, 0666), 0));
    json_decref(parse_answer(
        ask_from_nobody(f, "GET /v1/status HTTP/1.1\r\nHost: n\r\nConnection: close\r\n\r\n"),
        200));
    static const char *const changes[] = {"pause", "resume", "stop"};
    for (size_t i = 0; i < 3; i++) {
        char request[128];
        char message[128];
        (void)snprintf(request, sizeof request,
            "POST /v1/%s HTTP/1.1\r\nHost: n\r\nConnection: close\r\n\r\n", changes[i]);
        (void)snprintf(message, sizeof message,
            "only root and the user of the daemon may %s it; reading is for the whole group",
            changes[i]);
        expect_error(ask_from_nobody(f, request), 403, "not_permitted", message);
    }
    cr_assert(eq(u32, f->fake.orders, 0));
    finish(f);
}

/* Jobs. */

Test(control, evaluate)
{
    struct fixture *f = start();
    json_t *answer = parse_answer(ask(f, "POST", "/v1/evaluate", ""), 200);
    expect_number(answer, "round", 17);
    expect_number(answer, "samples", 10);
    expect_number(answer, "loss", 0.25);
    expect_number(answer, "accuracy", 0.75);
    json_decref(answer);
    f->fake.code = SGP_E_DIVERGED;
    expect_error(ask(f, "POST", "/v1/evaluate", ""), 500, "failed",
        "training diverged: the loss or the model is not finite");
    finish(f);
}

Test(control, model_is_a_safetensors_file)
{
    struct fixture *f = start();
    struct answer answer = ask(f, "GET", "/v1/model", "");
    cr_assert(eq(int, answer.status, 200), "%s", answer.text);
    struct sgp_model_file *file = NULL;
    struct sgp_error error = {0};
    cr_assert(
        eq(int, sgp_safetensors_decode(answer.body, answer.body_bytes, "body", &error, &file), 0),
        "%s", error.text);
    cr_assert(eq(u64, file->value_count, 8));
    for (uint64_t i = 0; i < 8; i++)
        cr_assert(eq(flt, file->values[i], (float)i / 4));
    cr_assert(eq(u32, file->tensor_count, 2));
    cr_assert(eq(str, file->tensors[0].name, "layers.0.weight"));
    cr_assert(eq(u64, file->tensors[0].shape[0], OUTPUTS));
    cr_assert(eq(u64, file->tensors[0].shape[1], INPUTS));
    cr_assert(eq(str, file->tensors[1].name, "layers.0.bias"));
    cr_assert(eq(str, (char *)sgp_model_file_tag(file, "node"), "n0"));
    cr_assert(eq(str, (char *)sgp_model_file_tag(file, "round"), "17"));
    cr_assert(eq(str, (char *)sgp_model_file_tag(file, "weight"), "0.5"));
    cr_assert(eq(str, (char *)sgp_model_file_tag(file, "layers"), "dense 2"));
    cr_assert(eq(str, (char *)sgp_model_file_tag(file, "classes"), "sum first"));
    sgp_model_file_destroy(file);
    free(answer.text);
    finish(f);
}

Test(control, predict_from_json_and_csv)
{
    struct fixture *f = start();
    static const char *const bodies[] = {"{\"rows\": [[1, 2, 3], [5, -1, -1.5]]}",
        "  [[1, 2, 3], [5, -1, -1.5]]", "a,b,c\n1,2,3\n5,-1,-1.5\n", "a,b,c\r\n1,2,3\r\n5,-1,-1.5"};
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        json_t *answer = parse_answer(ask(f, "POST", "/v1/predict", bodies[i]), 200);
        char *text = json_dumps(answer, JSON_COMPACT | JSON_SORT_KEYS);
        cr_assert(eq(str, text,
            "{\"labels\":[\"sum\",\"first\"],\"outputs\":[[6.0,1.0],[2.5,5.0]],\"rows\":2}"));
        free(text);
        json_decref(answer);
    }
    finish(f);
}

static void expect_bad_rows(struct fixture *f, const char *body, const char *message)
{
    expect_error(ask(f, "POST", "/v1/predict", body), 400, "bad_request", message);
}

Test(control, predict_refuses_bad_rows)
{
    struct fixture *f = start();
    expect_bad_rows(
        f, "", "the body is empty; send {\"rows\": [[...], ...]}, or CSV with a line of names");
    expect_bad_rows(f, "[]", "the body has no rows; send at least one");
    expect_bad_rows(
        f, "{\"row\": 1}", "the body has no array of rows; send {\"rows\": [[...], ...]}");
    expect_bad_rows(f, "[[1, 2]]", "row 1 has 2 features; the model takes arrays of 3 numbers");
    expect_bad_rows(f, "[[1, 2, 3], [1, \"x\", 3]]",
        "row 2, feature 2 is not a number that a float32 can hold");
    expect_bad_rows(
        f, "[[1e300, 2, 3]]", "row 1, feature 1 is not a number that a float32 can hold");
    expect_bad_rows(f, "a,b\n1,2\n",
        "the rows have 2 features and the model takes 3; send the feature columns alone");
    expect_bad_rows(f, "\x1f\x8b\x08", "the body is compressed; send it unpacked");
    json_t *answer = parse_answer(ask(f, "POST", "/v1/predict", "a,b,c\n1,2,x\n"), 400);
    const char *message =
        json_string_value(json_object_get(json_object_get(answer, "error"), "message"));
    cr_assert(eq(int, strncmp(message, "body:2: column 'c': ", 20), 0), "%s", message);
    json_decref(answer);
    char *rows = malloc((CONTROL_ROWS_MAX + 2) * 6 + 6);
    size_t used = (size_t)sprintf(rows, "a,b,c\n");
    for (unsigned i = 0; i <= CONTROL_ROWS_MAX; i++)
        used += (size_t)sprintf(rows + used, "1,2,3\n");
    expect_error(ask(f, "POST", "/v1/predict", rows), 413, "too_large",
        "16385 rows are more than 16384, or than 256 MiB of features; send fewer at a time");
    free(rows);
    finish(f);
}

static int begin(struct fixture *f, const char *method, const char *path)
{
    char head[256];
    int length = snprintf(
        head, sizeof head, "%s %s HTTP/1.1\r\nHost: n\r\nConnection: close\r\n\r\n", method, path);
    int descriptor = dial(f);
    send_all(f, descriptor, head, (size_t)length);
    return descriptor;
}

static void turn_until_jobs(struct fixture *f, unsigned count)
{
    while (f->fake.job_count < count)
        turn(f);
}

Test(control, too_many_jobs)
{
    struct fixture *f = start();
    f->fake.hold = true;
    int waiting[CONTROL_JOBS_MAX];
    for (unsigned i = 0; i < CONTROL_JOBS_MAX; i++) {
        waiting[i] = begin(f, "POST", "/v1/evaluate");
        turn_until_jobs(f, i + 1);
    }
    expect_error(ask(f, "POST", "/v1/evaluate", ""), 503, "busy", "too many jobs wait; try again");
    expect_error(
        ask(f, "POST", "/v1/predict", "[[1,2,3]]"), 503, "busy", "too many jobs wait; try again");
    json_decref(get(f, "/v1/status"));
    f->fake.hold = false;
    for (unsigned i = 0; i < CONTROL_JOBS_MAX; i++)
        json_decref(parse_answer(receive(f, waiting[i]), 200));
    finish(f);
}

Test(control, clients_that_leave_in_the_middle)
{
    struct fixture *f = start();
    f->fake.hold = true;
    (void)close(begin(f, "POST", "/v1/evaluate"));
    (void)close(begin(f, "GET", "/v1/model"));
    turn_until_jobs(f, 2);
    int descriptor = dial(f);
    send_all(
        f, descriptor, "POST /v1/predict HTTP/1.1\r\nHost: n\r\nContent-Length: 100\r\n\r\n[[", 62);
    (void)close(descriptor);
    json_decref(get(f, "/v1/status"));
    f->fake.hold = false;
    json_decref(parse_answer(ask(f, "POST", "/v1/evaluate", ""), 200));
    while (f->control->client_count > 0)
        turn(f);
    cr_assert(eq(u32, f->control->job_count, 0));
    finish(f);
}

Test(control, closing_answers_who_waits)
{
    struct fixture *f = start();
    f->fake.hold = true;
    int evaluate = begin(f, "POST", "/v1/evaluate");
    int model = begin(f, "GET", "/v1/model");
    turn_until_jobs(f, 2);
    int silent = dial(f);
    turn(f);
    close_control(f);
    expect_error(receive(f, evaluate), 503, "busy", "the daemon is stopping");
    expect_error(receive(f, model), 503, "busy", "the daemon is stopping");
    struct answer nothing = receive(f, silent);
    cr_assert(eq(sz, nothing.body_bytes, 0));
    free(nothing.text);
    /* The jobs end after the server is gone. */
    f->fake.hold = false;
    f->fake.code = -ECANCELED;
    turn(f);
    cr_assert(eq(u32, f->fake.job_count, 0));
    finish(f);
}

Test(control, an_order_may_close_the_server)
{
    struct fixture *f = start();
    f->fake.hold = true;
    int evaluate = begin(f, "POST", "/v1/evaluate");
    turn_until_jobs(f, 1);
    f->fake.stop_closes = f;
    json_t *answer = parse_answer(ask(f, "POST", "/v1/stop", ""), 200);
    expect_text(answer, "state", "draining");
    json_decref(answer);
    expect_error(receive(f, evaluate), 503, "busy", "the daemon is stopping");
    while (!f->closed)
        turn(f);
    f->fake.hold = false;
    turn(f);
    finish(f);
}

/* Crowds. */

Test(control, a_hundred_silent_clients)
{
    struct fixture *f = start();
    int silent[100];
    for (unsigned i = 0; i < 100; i++) {
        silent[i] = dial(f);
        if (i % 2)
            send_all(f, silent[i], "GET /v1/sta", 11);
        turn(f);
    }
    json_decref(get(f, "/v1/status"));
    cr_assert(eq(u32, f->control->client_count >= 100, 1));
    cr_assert(uv_is_active((uv_handle_t *)&f->control->timer));
    for (unsigned i = 0; i < 100; i++)
        (void)close(silent[i]);
    while (f->control->client_count > 0)
        turn(f);
    cr_assert(not(uv_is_active((uv_handle_t *)&f->control->timer)), "an idle server has no timer");
    finish(f);
}

/* Beyond the limit a newcomer is told so; once the silent have been silent long enough, one of them
 * makes room for it. */
Test(control, a_full_house)
{
    struct fixture *f = start();
    int silent[CONTROL_CONNECTIONS_MAX];
    for (unsigned i = 0; i < CONTROL_CONNECTIONS_MAX; i++) {
        silent[i] = dial(f);
        turn(f);
    }
    while (f->control->client_count < CONTROL_CONNECTIONS_MAX)
        turn(f);
    struct answer refused = ask(f, "GET", "/v1/status", "");
    cr_assert(eq(int, refused.status, 503), "%s", refused.text);
    cr_assert(strstr(refused.text, "\"message\":\"too many clients; try again\"") != NULL);
    free(refused.text);
    struct answer answer = ask(f, "GET", "/v1/status", "");
    while (answer.status == 503) {
        free(answer.text);
        answer = ask(f, "GET", "/v1/status", "");
    }
    cr_assert(eq(int, answer.status, 200));
    free(answer.text);
    cr_assert(le(u32, f->control->client_count, CONTROL_CONNECTIONS_MAX));
    for (unsigned i = 0; i < CONTROL_CONNECTIONS_MAX; i++)
        (void)close(silent[i]);
    finish(f);
}

/* The socket file. */

Test(control, a_live_socket_is_refused_and_a_stale_one_replaced)
{
    struct fixture *f = start();
    struct sgp_error error = {0};
    struct control *second = NULL;
    char message[256];
    cr_assert(eq(int, open_control(f, &error, &second), -EADDRINUSE));
    (void)snprintf(message, sizeof message,
        "%s: another daemon answers there; stop it, or give another [control] socket", f->path);
    cr_assert(eq(str, error.text, message));
    json_decref(get(f, "/v1/status"));
    close_control(f);

    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, f->path);
    int stale = socket(AF_UNIX, SOCK_STREAM, 0);
    cr_assert(eq(int, bind(stale, (struct sockaddr *)&address, sizeof address), 0));
    (void)close(stale);
    error = (struct sgp_error){0};
    f->closed = false;
    cr_assert(eq(int, open_control(f, &error, &f->control), 0), "%s", error.text);
    json_decref(get(f, "/v1/status"));
    finish(f);
}

static void expect_open_fails(struct fixture *f, const char *path, int code, const char *message)
{
    struct sgp_error error = {0};
    struct control *control = NULL;
    char expected[512];
    (void)snprintf(f->path, sizeof f->path, "%s", path);
    cr_assert(eq(int, open_control(f, &error, &control), code), "%s", error.text);
    (void)snprintf(expected, sizeof expected, "%s: %s", f->path, message);
    cr_assert(eq(str, error.text, expected));
}

Test(control, paths_that_cannot_be_bound)
{
    struct fixture *f = start();
    char good[sizeof f->path];
    strcpy(good, f->path);
    char path[96];
    (void)snprintf(path, sizeof path, "%s/none/control.sock", f->directory);
    expect_open_fails(f, path, -ENOENT,
        "cannot be bound: No such file or directory; create its directory (systemd does by "
        "RuntimeDirectory=)");
    (void)snprintf(path, sizeof path, "%s/file", f->directory);
    (void)close(open(path, O_CREAT | O_WRONLY, 0600));
    expect_open_fails(f, path, -EEXIST,
        "exists and is not a socket; remove it, or give another [control] socket");
    (void)unlink(path);
    strcpy(f->path, good);

    char longest[200];
    memset(longest, 'x', sizeof longest - 1);
    longest[0] = '/';
    longest[sizeof longest - 1] = '\0';
    struct sgp_error error = {0};
    struct control *control = NULL;
    const struct control_model model = {.model = &f->fake.model};
    cr_assert(eq(int, control_open(&f->loop, longest, &fake_actions, &model, &error, &control),
        -ENAMETOOLONG));
    cr_assert(
        strstr(error.text, "longer than the 107 bytes that a socket's path may have") != NULL);
    finish(f);
}

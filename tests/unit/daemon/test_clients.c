/* SPDX-License-Identifier: Apache-2.0 */
/* Clients of the control server that send rubbish, too much or nothing, leave early or come in crowds; and the socket
 * itself. */
#include "control_fake.h"

Test(clients, random_bytes_and_large_headers)
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

Test(clients, bodies_over_the_limit)
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

static struct answer ask_raw(struct fixture *f, const char *text)
{
    int descriptor = dial(f);
    send_all(f, descriptor, text, strlen(text));
    return receive(f, descriptor);
}

/* Two readers of such a head do not agree where its body ends; what one takes for a body, the other
 * takes for a request: nothing of it may be obeyed. */
Test(clients, heads_that_leave_the_length_of_the_body_open)
{
    struct fixture *f = start();
    static const char *const fields[] = {
        "Content-Length: 0\r\nContent-Length: 0\r\n",
        "Content-Length: 0\r\ncontent-length: 41\r\n",
        "Content-Length: 0, 0\r\n",
        "Content-Length: +0\r\n",
        "Content-Length: \r\n",
        "Content-Length : 0\r\n",
        "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: identity\r\ntransfer-encoding: Chunked\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: identity\r\n",
        "Transfer-Encoding: gzip\r\n",
        "Transfer-Encoding: \r\n",
        "Transfer-Encoding : chunked\r\n",
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        char text[512];
        (void)snprintf(text, sizeof text,
            "POST /v1/pause HTTP/1.1\r\nHost: n\r\n%s\r\n0\r\n\r\n"
            "POST /v1/stop HTTP/1.1\r\nHost: n\r\nConnection: close\r\n\r\n",
            fields[i]);
        struct answer answer = ask_raw(f, text);
        cr_expect(eq(int, answer.status, 400), "%s%s", fields[i], answer.text);
        cr_expect(zero(u32, f->fake.orders), "%s", fields[i]);
        f->fake.orders = 0;
        free(answer.text);
    }
    expect_error(ask_raw(f, "GET /v1/status HTTP/1.1\r\nHost: n\r\nContent-Length: 0\r\n"
                            "Content-Length: 0\r\n\r\n"),
        400, "bad_request",
        "the length of the body is not plain; give one Content-Length, or Transfer-Encoding: "
        "chunked, and not both");
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

/* Of the user of the daemon. */
#define JOBS_MAX (CONTROL_JOBS_MAX + CONTROL_JOBS_KEPT)

Test(clients, too_many_jobs)
{
    struct fixture *f = start();
    f->fake.hold = true;
    int waiting[JOBS_MAX];
    for (unsigned i = 0; i < JOBS_MAX; i++) {
        waiting[i] = begin(f, "POST", "/v1/evaluate");
        turn_until_jobs(f, i + 1);
    }
    expect_error(ask(f, "POST", "/v1/evaluate", ""), 503, "busy", "too many jobs wait; try again");
    expect_error(
        ask(f, "POST", "/v1/predict", "[[1,2,3]]"), 503, "busy", "too many jobs wait; try again");
    json_decref(get(f, "/v1/status"));
    f->fake.hold = false;
    for (unsigned i = 0; i < JOBS_MAX; i++)
        json_decref(parse_answer(receive(f, waiting[i]), 200));
    finish(f);
}

/* They wait for other nodes, and keep nobody from an evaluation of this one. */
Test(clients, evaluations_of_the_fleet_have_places_of_their_own)
{
    struct fixture *f = start();
    f->fake.hold = true;
    int waiting[CONTROL_WAITS_MAX + 1];
    for (unsigned i = 0; i < CONTROL_WAITS_MAX; i++) {
        waiting[i] = begin(f, "POST", "/v1/evaluate/fleet?seconds=300");
        turn_until_jobs(f, i + 1);
    }
    expect_error(
        ask(f, "POST", "/v1/evaluate/fleet", ""), 503, "busy", "too many jobs wait; try again");
    struct http_job *job;
    LIST_FOREACH (job, &f->control->jobs, next)
        job->uid = geteuid() + 1; /* of another user */
    waiting[CONTROL_WAITS_MAX] = begin(f, "POST", "/v1/evaluate/fleet");
    turn_until_jobs(f, CONTROL_WAITS_MAX + 1);
    int evaluating[JOBS_MAX];
    for (unsigned i = 0; i < JOBS_MAX; i++) {
        evaluating[i] = begin(f, "POST", "/v1/evaluate");
        turn_until_jobs(f, CONTROL_WAITS_MAX + 2 + i);
    }
    f->fake.hold = false;
    for (unsigned i = 0; i <= CONTROL_WAITS_MAX; i++)
        json_decref(parse_answer(receive(f, waiting[i]), 200));
    for (unsigned i = 0; i < JOBS_MAX; i++)
        json_decref(parse_answer(receive(f, evaluating[i]), 200));
    finish(f);
}

Test(clients, models_that_are_being_fetched_count)
{
    struct fixture *f = start();
    f->control->download_count = JOBS_MAX;
    expect_error(ask(f, "GET", "/v1/model", ""), 503, "busy", "too many jobs wait; try again");
    f->control->download_count = 0;
    for (int i = 0; i < 3; i++) {
        struct answer answer = ask(f, "GET", "/v1/model", "");
        cr_assert(eq(int, answer.status, 200));
        free(answer.text);
    }
    while (f->control->client_count > 0)
        turn(f);
    cr_assert(eq(u32, f->control->download_count, 0));
    finish(f);
}

Test(clients, clients_that_leave_in_the_middle)
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

Test(clients, closing_answers_who_waits)
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

Test(clients, an_order_may_close_the_server)
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

Test(clients, a_hundred_silent_clients)
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
    /* an idle server has no timer, once it has recovered from so many on a slow processor */
    while (uv_is_active((uv_handle_t *)&f->control->timer))
        turn(f);
    finish(f);
}

/* Whoever is silent makes room for a newcomer: the one first who was silent longest. */
Test(clients, a_full_house)
{
    struct fixture *f = start();
    int silent[CONTROL_CONNECTIONS_MAX];
    for (unsigned i = 0; i < CONTROL_CONNECTIONS_MAX; i++) {
        silent[i] = dial(f);
        turn(f);
    }
    while (f->control->client_count < CONTROL_CONNECTIONS_MAX)
        turn(f);
    json_decref(get(f, "/v1/status"));
    while (f->control->client_count >= CONTROL_CONNECTIONS_MAX)
        turn(f);
    char byte;
    cr_assert(eq(int, (int)recv(silent[0], &byte, 1, 0), 0), "the first has gone");
    for (unsigned i = 1; i < CONTROL_CONNECTIONS_MAX; i++)
        cr_assert(eq(int, (int)recv(silent[i], &byte, 1, 0), -1), "client %u has gone", i);
    for (unsigned i = 0; i < CONTROL_CONNECTIONS_MAX; i++)
        (void)close(silent[i]);
    finish(f);
}

/* When none is silent a newcomer is told so. Here all wait for an answer, which the server has no time to make. */
Test(clients, a_house_full_of_busy_clients)
{
    struct fixture *f = start();
    int busy[CONTROL_CONNECTIONS_MAX];
    f->control->offloads.allowance.balance = -INT64_C(1000000000000);
    for (unsigned i = 0; i < CONTROL_CONNECTIONS_MAX; i++)
        busy[i] = begin(f, "GET", "/v1/history");
    for (uint32_t waiting = 0; waiting < CONTROL_CONNECTIONS_MAX;) {
        turn(f);
        waiting = 0;
        const struct client *client;
        LIST_FOREACH (client, &f->control->clients, next)
            waiting += client->waiting;
    }
    expect_error(ask(f, "GET", "/v1/status", ""), 503, "busy", "too many clients; try again");
    f->control->offloads.allowance.balance = f->control->offloads.allowance.most;
    f->control->offloads.allowance.part = 1;
    for (unsigned i = 0; i < CONTROL_CONNECTIONS_MAX; i++)
        json_decref(parse_answer(receive(f, busy[i]), 200));
    finish(f);
}

/* Connections of another user, which say nothing; they are a child's, until the descriptor returned is closed. */
static int crowd_of_nobody(struct fixture *f, unsigned count, pid_t *ret_child)
{
    int pair[2];
    cr_assert(eq(int, socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0));
    cr_assert(eq(int, chmod(f->directory, 0755), 0));
    cr_assert(eq(int, chmod(f->path, 0666), 0));
    pid_t child = fork();
    if (child == 0) {
        char byte = 0;
        (void)close(pair[0]);
        if (setgroups(0, NULL) < 0 || setgid(65534) < 0 || setuid(65534) < 0)
            _exit(1);
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        strcpy(address.sun_path, f->path);
        for (unsigned i = 0; i < count; i++) {
            int descriptor = socket(AF_UNIX, SOCK_STREAM, 0);
            if (connect(descriptor, (struct sockaddr *)&address, sizeof address) < 0)
                _exit(2);
        }
        (void)!write(pair[1], &byte, 1);
        (void)!read(pair[1], &byte, 1);
        _exit(0);
    }
    (void)close(pair[1]);
    (void)fcntl(pair[0], F_SETFL, O_NONBLOCK);
    char byte;
    while (recv(pair[0], &byte, 1, 0) < 0)
        turn(f);
    *ret_child = child;
    return pair[0];
}

/* A user that opens many connections has its own places alone; root and the user of the daemon keep theirs. */
Test(clients, a_user_has_its_places_and_no_more)
{
    if (geteuid() != 0)
        cr_skip("another user can be played by root alone");
    struct fixture *f = start();
    pid_t child;
    int crowd = crowd_of_nobody(f, 340, &child);
    for (int i = 0; i < 20; i++) { /* not once in all that is there a 503 */
        json_decref(get(f, "/v1/status"));
        json_decref(parse_answer(ask(f, "POST", "/v1/pause", ""), 200));
    }
    while (f->control->client_count > CONTROL_USER_MAX)
        turn(f);
    uint32_t left = 0;
    const struct client *client;
    LIST_FOREACH (client, &f->control->clients, next)
        left += client->uid == 65534;
    cr_assert(eq(u32, left, CONTROL_USER_MAX));
    (void)close(crowd);
    int status;
    cr_assert(eq(int, (int)waitpid(child, &status, 0), (int)child));
    cr_assert(eq(int, status, 0));
    finish(f);
}

/* Without a head of a request for CONTROL_HEAD_SECONDS a client is let go, without a second request later. */
Test(clients, a_first_request_has_less_time_than_a_later_one)
{
    struct fixture *f = start();
    int silent = dial(f), waiting = dial(f);
    const char *request = "GET /v1/status HTTP/1.1\r\nHost: n\r\n\r\n";
    send_all(f, waiting, request, strlen(request));
    while (f->control->client_count < 2 ||
           !(LIST_FIRST(&f->control->clients)->spoke ||
               LIST_NEXT(LIST_FIRST(&f->control->clients), next)->spoke))
        turn(f);
    struct client *client;
    LIST_FOREACH (client, &f->control->clients, next)
        client->since -= 1000 * (CONTROL_HEAD_SECONDS + 1);
    while (f->control->client_count == 2)
        (void)uv_run(&f->loop, UV_RUN_ONCE);
    char byte;
    cr_assert(eq(int, (int)recv(silent, &byte, 1, 0), 0));
    client = LIST_FIRST(&f->control->clients);
    cr_assert(client->spoke);
    (void)close(silent);
    (void)close(waiting);
    finish(f);
}

/* The socket file. */

Test(clients, a_live_socket_is_refused_and_a_stale_one_replaced)
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

Test(clients, paths_that_cannot_be_bound)
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
    const struct view_model model = {.model = &f->fake.model};
    cr_assert(eq(int, control_open(&f->loop, longest, &fake_actions, &model, &error, &control),
        -ENAMETOOLONG));
    cr_assert(
        strstr(error.text, "longer than the 107 bytes that a socket's path may have") != NULL);
    finish(f);
}

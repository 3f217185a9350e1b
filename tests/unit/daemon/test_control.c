/* SPDX-License-Identifier: Apache-2.0 */
/* What the control server answers: every endpoint, every order, and who may give it. */
#include "control_fake.h"

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

Test(control, status_says_what_the_daemon_said)
{
    struct fixture *f = start();
    json_t *status = get(f, "/v1/status");
    expect_number(status, "schema", 1);
    expect_text(status, "name", "n0");
    expect_text(status, "state", "training");
    expect_text(status, "incarnation", "fedcba9876543210");
    cr_assert(eq(i64, json_integer_value(json_object_get(status, "run")), 3));
    expect_number(status, "round", 17);
    expect_number(status, "weight_in_flight", 0.25);
    expect_null(status, "test_loss");
    expect_text(status, "last_error", "caf?");
    expect_text(status, "diverging", "test_loss");
    cr_assert(eq(int, json_is_true(json_object_get(status, "hears_nobody")), 1));
    const json_t *unheard = json_object_get(status, "unheard");
    cr_assert(eq(sz, json_array_size(unheard), 1));
    char *name = (char *)json_string_value(json_array_get(unheard, 0));
    cr_assert(eq(str, name, "n1"));
    const json_t *differing = json_object_get(status, "mismatch");
    cr_assert(eq(sz, json_array_size(differing), 1)); /* of two links to one neighbour */
    cr_assert(
        eq(sz, json_array_size(json_object_get(status, "slow")), 1), "once, not for each link");
    name = (char *)json_string_value(json_array_get(json_object_get(status, "slow"), 0));
    cr_assert(eq(str, name, "n1"));
    cr_assert(eq(sz, json_array_size(json_object_get(status, "overdue")), 0));
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

Test(control, status_looks_at_each_link_once)
{
    struct fixture *f = start();
    json_t *status = get(f, "/v1/status");
    cr_assert(eq(u32, f->fake.looks, 2));
    const json_t *disagrees = json_object_get(status, "disagrees");
    cr_assert(eq(sz, json_array_size(disagrees), 1), "once, not for each link");
    expect_text(json_array_get(disagrees, 0), "peer", "n1");
    expect_number(json_array_get(disagrees, 0), "distance", 0.5);
    json_decref(status);
    finish(f);
}

Test(control, peers_say_what_the_daemon_said)
{
    struct fixture *f = start();
    json_t *peers = get(f, "/v1/peers");
    cr_assert(eq(sz, json_array_size(peers), 2));
    expect_text(json_array_get(peers, 0), "direction", "out");
    expect_text(json_array_get(peers, 0), "state", "up");
    expect_number(json_array_get(peers, 0), "lag_rounds", 1);
    expect_number(json_array_get(peers, 0), "shares_outsized", 3);
    expect_text(json_array_get(peers, 0), "previous_error", "connection refused");
    expect_null(json_array_get(peers, 0), "last_error");
    expect_number(json_array_get(peers, 0), "absent_after_seconds", 3);
    expect_text(json_array_get(peers, 1), "direction", "in");
    expect_text(json_array_get(peers, 1), "state", "connecting");
    expect_null(json_array_get(peers, 1), "round");
    expect_null(json_array_get(peers, 1), "lag_rounds");
    json_decref(peers);
    finish(f);
}

/* The manual from the section on the control socket on; zero-terminated. */
static const char *manual(void)
{
    static char text[1 << 20];
    FILE *file = fopen(SGP_SOURCE_ROOT "/docs/CONFIGURATION.md", "r");
    cr_assert_not_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    (void)fclose(file);
    const char *section = strstr(text, "# The control socket");
    cr_assert_not_null(section);
    return section;
}

/* What stands between backquotes in the first column of the table behind a line of the manual, a line each. */
static void documented(const char *behind, char names[4096])
{
    const char *line = strstr(manual(), behind);
    cr_assert_not_null(line, "%s", behind);
    line = strstr(line, "\n| field |");
    char *end = names;
    for (line = strchr(line + 1, '\n') + 1; line[0] == '|'; line = strchr(line, '\n') + 1) {
        const char *column = strchr(line + 1, '|');
        for (const char *from = strchr(line, '`'); from && from < column;) {
            const char *to = strchr(from + 1, '`');
            end += sprintf(end, "%.*s\n", (int)(to - from - 1), from + 1);
            from = strchr(to + 1, '`');
        }
    }
    *end = '\0';
}

/* Takes a name out of those; it must be among them. */
static void expect_documented(char *names, const char *key)
{
    size_t length = strlen(key);
    for (char *name = names; *name; name = strchr(name, '\n') + 1)
        if (strncmp(name, key, length) == 0 && name[length] == '\n') {
            (void)memmove(name, name + length + 1, strlen(name + length + 1) + 1);
            return;
        }
    cr_assert(false, "docs/CONFIGURATION.md does not name the field %s", key);
}

Test(control, the_manual_has_the_fields_and_no_others)
{
    char names[4096];
    documented("Of the node, `status` says:", names);
#define X(key, ...) expect_documented(names, #key);
    STATUS_FIELDS(X, X, X)
    NEIGHBOUR_FIELDS(X)
    cr_assert(eq(str, names, ""), "no fields of the status");
    documented("`peers` has an entry for each link", names);
    PEER_FIELDS(X, X, X)
    cr_assert(eq(str, names, ""), "no fields of a peer");
#undef X
}

/* Every key of an object within an answer stands in the manual. */
static void expect_members_documented(const char *section, json_t *object)
{
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        char quoted[64];
        (void)snprintf(quoted, sizeof quoted, "`%s`", key);
        cr_assert_not_null(strstr(section, quoted), "%s", quoted);
        expect_members_documented(section, value);
    }
}

Test(control, the_manual_has_what_is_within_a_field)
{
    const char *section = manual();
    struct fixture *f = start();
    json_t *status = get(f, "/v1/status");
    expect_members_documented(section, status);
    for (int waiting = SGP_WAITING_HELLO; waiting <= SGP_WAITING_HEIR; waiting++) {
        char quoted[64];
        (void)snprintf(quoted, sizeof quoted, "`%s`", sgp_waiting_name((enum sgp_waiting)waiting));
        cr_assert_not_null(strstr(section, quoted), "%s", quoted);
    }
    json_decref(status);
    finish(f);
}

/* The types of JSON that a kind of view.h may have: 'i' an integer, 'r' a real, 's' a string, 'b' a boolean,
 * 'a' an array, '0' null; "" any. */
static const char *types_of(const char *kind)
{
    static const char *const types[][2] = {{"count", "i"}, {"ordinal", "i0"}, {"round", "i0"},
        {"real", "r0"}, {"flag", "b"}, {"name", "s"}, {"text", "s0"}, {"identity", "s"},
        {"list", "a"}, {"json", ""}};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strcmp(types[i][0], kind) == 0)
            return types[i][1];
    cr_assert(false, "the kind %s is not known", kind);
    return NULL;
}

static void expect_type(const json_t *object, const char *key, const char *kind)
{
    static const char letters[] = {[JSON_OBJECT] = 'o',
        [JSON_ARRAY] = 'a',
        [JSON_STRING] = 's',
        [JSON_INTEGER] = 'i',
        [JSON_REAL] = 'r',
        [JSON_TRUE] = 'b',
        [JSON_FALSE] = 'b',
        [JSON_NULL] = '0'};
    const json_t *value = json_object_get(object, key);
    cr_assert_not_null(value, "%s", key);
    const char *types = types_of(kind);
    cr_assert(types[0] == '\0' || strchr(types, letters[json_typeof(value)]) != NULL, "%s", key);
}

Test(control, every_field_is_there_and_of_its_type)
{
    struct fixture *f = start();
    json_t *status = get(f, "/v1/status"), *peers = get(f, "/v1/peers");
    size_t count = 0;
#define X(key, kind, ...) expect_type(status, #key, #kind), count++;
    STATUS_FIELDS(X, X, X)
#undef X
#define X(key, ...) expect_type(status, #key, "list"), count++;
    NEIGHBOUR_FIELDS(X)
#undef X
    cr_assert(eq(sz, json_object_size(status), count), "two rows of one key");
    for (size_t i = 0; i < json_array_size(peers); i++) {
        const json_t *peer = json_array_get(peers, i);
        count = 0;
#define X(key, kind, ...) expect_type(peer, #key, #kind), count++;
        PEER_FIELDS(X, X, X)
#undef X
        cr_assert(eq(sz, json_object_size(peer), count), "two rows of one key");
    }
    json_decref(status);
    json_decref(peers);
    finish(f);
}

Test(control, topology_and_history)
{
    struct fixture *f = start();
    json_t *topology = get(f, "/v1/topology");
    expect_number(topology, "version", 0);
    const json_t *phase = json_array_get(json_object_get(topology, "phases"), 0);
    const json_t *edge = json_array_get(json_object_get(phase, "edges"), 1);
    expect_text(edge, "source", "n1");
    expect_text(edge, "target", "n0");
    expect_number(edge, "fraction", 0.5);
    json_decref(topology);
    json_t *history = get(f, "/v1/history");
    const json_t *rows = json_object_get(history, "rows");
    cr_assert(eq(sz, json_array_size(rows), 3));
    expect_number(json_array_get(rows, 2), "number", 2);
    expect_number(json_array_get(rows, 2), "round", 2);
    expect_number(json_array_get(rows, 1), "loss", 1);
    expect_null(json_array_get(rows, 1), "test_loss");
    expect_number(json_array_get(rows, 1), "compression_error", 0.0078125);
    expect_number(json_array_get(rows, 1), "bytes_spared", 300);
    json_decref(history);
    finish(f);
}

/* The rows of an answer: "total oldest every next: numbers", the numbers as first-last. */
static void expect_page(struct fixture *f, const char *query, const char *expected)
{
    char path[96], text[160];
    (void)snprintf(path, sizeof path, "/v1/history%s", query);
    json_t *page = get(f, path);
    const json_t *rows = json_object_get(page, "rows");
    size_t count = json_array_size(rows);
    const json_t *first = json_array_get(rows, 0), *last = json_array_get(rows, count - 1);
    (void)snprintf(text, sizeof text, "%lld %lld %lld %lld: %zu, %lld-%lld",
        json_integer_value(json_object_get(page, "total")),
        json_integer_value(json_object_get(page, "oldest")),
        json_integer_value(json_object_get(page, "every")),
        json_integer_value(json_object_get(page, "next")), count,
        json_integer_value(json_object_get(first, "number")),
        json_integer_value(json_object_get(last, "round")));
    cr_assert(eq(str, text, (char *)expected), "%s", query);
    json_decref(page);
}

Test(control, history_is_thinned_or_paged)
{
    struct fixture *f = start();
    f->fake.history_total = 5000;
    expect_page(f, "", "5000 904 32 5000: 129, 928-4999");
    expect_page(f, "?limit=10", "5000 904 512 5000: 9, 1024-4999");
    expect_page(f, "?since=0", "5000 904 1 1160: 256, 904-1159");
    expect_page(f, "?since=1160&limit=1024", "5000 904 1 2184: 1024, 1160-2183");
    expect_page(f, "?limit=2&since=4999", "5000 904 1 5000: 1, 4999-4999");
    expect_page(f, "?since=5000", "5000 904 1 5000: 0, 0-0");
    static const char *const bad[][2] = {
        {"?since=", "since= is not the number of a row; give 0, or `next` of an earlier answer"},
        {"?since=-1",
            "since=-1 is not the number of a row; give 0, or `next` of an earlier answer"},
        {"?since=1e3",
            "since=1e3 is not the number of a row; give 0, or `next` of an earlier answer"},
        {"?since=18446744073709551616", "since=18446744073709551616 is not the number of a row; "
                                        "give 0, or `next` of an earlier "
                                        "answer"},
        {"?limit=0", "limit=0 is not a number from 1 to 1024"},
        {"?limit=1025&since=1", "limit=1025 is not a number from 1 to 1024"},
        {"?from=3", "/v1/history has no argument 'from'; give since=NUMBER or limit=ROWS"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char path[96];
        (void)snprintf(path, sizeof path, "/v1/history%s", bad[i][0]);
        expect_error(ask(f, "GET", path, ""), 400, "bad_request", bad[i][1]);
    }
    finish(f);
}

/* What the loop thread has to do for an answer: values of JSON that it makes, and rows that it copies. */
static uv_thread_t loop_thread;
static unsigned made_by_loop;

static void *count_made(size_t bytes)
{
    uv_thread_t self = uv_thread_self();
    made_by_loop += (unsigned)uv_thread_equal(&self, &loop_thread);
    return malloc(bytes);
}

static void expect_little_work(
    struct fixture *f, const char *method, const char *path, const char *body, unsigned rows)
{
    made_by_loop = f->fake.rows_looked_at = 0;
    struct answer answer = ask(f, method, path, body);
    cr_assert(eq(int, answer.status, 200), "%s", answer.text);
    cr_expect(le(u32, made_by_loop, 10), "%s %s: values made by the loop thread", method, path);
    cr_expect(le(u32, f->fake.rows_looked_at, rows), "%s %s: rows copied", method, path);
    free(answer.text);
}

Test(control, the_loop_thread_renders_no_long_answer)
{
    struct fixture *f = start();
    loop_thread = uv_thread_self();
    json_set_alloc_funcs(count_made, free);
    f->fake.history_total = 1000000;
    expect_little_work(f, "GET", "/v1/history", "", 256);
    expect_little_work(f, "GET", "/v1/history?since=999000&limit=1024", "", 1024);
    expect_little_work(f, "GET", "/v1/peers", "", 0);
    expect_little_work(f, "GET", "/v1/topology", "", 0);
    char body[4096] = "[[1,2,3]";
    for (size_t used = strlen(body); used < sizeof body - 32; used = strlen(body))
        (void)strcpy(body + used, ",[1,2,3]");
    (void)strcat(body, "]");
    expect_little_work(f, "POST", "/v1/predict", body, 0);
    finish(f);
}

/* The server has spent all of its time: it neither accepts nor reads, and says so to the loop. */
Test(control, a_server_that_has_spent_its_time_rests)
{
    struct fixture *f = start();
    json_decref(get(f, "/v1/status"));
    while (f->control->client_count > 0)
        turn(f);
    f->control->allowance.balance = -INT64_C(1000000000);
    int descriptor = dial(f);
    send_all(f, descriptor, "GET /v1/status HTTP/1.1\r\nHost: n\r\nConnection: close\r\n\r\n", 56);
    for (int i = 0; i < 100; i++)
        turn(f);
    cr_assert(f->control->resting);
    cr_assert(not(uv_is_active((uv_handle_t *)&f->control->accepting)));
    cr_assert(eq(u32, f->control->client_count, 0));
    cr_assert(uv_is_active((uv_handle_t *)&f->control->timer));
    f->control->allowance.balance = f->control->allowance.most;
    f->control->pump(f->control);
    json_decref(parse_answer(receive(f, descriptor), 200));
    cr_assert(not(f->control->resting));
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
    cr_assert(strstr(answer.body, "sgpd_info{node=\"n0\",version=\"") != NULL);
    cr_assert(strstr(answer.body, "\",algorithm=\"sgp\"} 1\n") != NULL);
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
    cr_assert(eq(sz, json_array_size(paths), f->control->endpoint_count));
    cr_assert(eq(str, (char *)json_string_value(json_array_get(paths, 0)), "GET /v1/status"));
    json_decref(root);
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
    expect_text(answer, "tls", "off");
    expect_text(answer, "tls_before", "require");
    const json_t *warnings = json_object_get(answer, "warnings");
    cr_assert(eq(sz, json_array_size(warnings), 1));
    cr_assert(eq(
        str, (char *)json_string_value(json_array_get(warnings, 0)), "/etc/sgpd/fleet.dot: slow"));
    cr_assert(eq(sz, json_object_size(answer), 14));
    json_decref(answer);
    f->fake.order_code = SGP_E_TOPOLOGY;
    expect_error(ask(f, "POST", "/v1/reload", ""), 422, "invalid_file",
        "/etc/sgpd/fleet.dot:3: syntax error");
    f->fake.order_code = SGP_E_STATE;
    expect_error(
        ask(f, "POST", "/v1/reload", ""), 409, "conflict", "/etc/sgpd/fleet.dot:3: syntax error");
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
    const json_t *measures = json_object_get(answer, "measures");
    expect_number(measures, "rows", 2);
    expect_number(measures, "accuracy", 0.5);
    cr_assert(eq(sz, json_array_size(json_object_get(measures, "classes")), OUTPUTS));
    cr_assert(eq(sz, json_array_size(json_object_get(measures, "confusion")), OUTPUTS));
    json_decref(answer);
    f->fake.unmeasured = true;
    answer = parse_answer(ask(f, "POST", "/v1/evaluate", ""), 200);
    const bool absent = json_is_null(json_object_get(answer, "measures"));
    cr_assert(absent);
    json_decref(answer);
    f->fake.code = SGP_E_DIVERGED;
    expect_error(ask(f, "POST", "/v1/evaluate", ""), 500, "failed",
        "training diverged: the loss or the model is not finite");
    finish(f);
}

static void expect_fleet(json_t *answer)
{
    static const char *const states[] = {"measured", "no_rows", "silent", "unlike"};
    const json_t *nodes = json_object_get(answer, "nodes");
    const json_t *rounds = json_object_get(answer, "rounds");
    expect_number(answer, "members", 4);
    expect_number(answer, "told", 3);
    expect_number(answer, "rows", 2);
    cr_assert(eq(int, json_is_true(json_object_get(answer, "final")), 0));
    cr_assert(eq(int, (int)json_integer_value(json_array_get(rounds, 0)), 17));
    cr_assert(eq(int, (int)json_integer_value(json_array_get(rounds, 1)), 19));
    for (size_t i = 0; i < 4; i++)
        cr_assert(eq(str,
            (char *)(uintptr_t)json_string_value(
                json_object_get(json_array_get(nodes, i), "state")),
            (char *)(uintptr_t)states[i]));
    const json_t *measures = json_object_get(answer, "measures");
    expect_number(measures, "rows", 2);
    expect_number(measures, "accuracy", 0.5);
    json_decref(answer);
}

Test(control, evaluate_the_fleet)
{
    static const char *const wrong[] = {"seconds=0", "seconds=301", "seconds=", "seconds=1x",
        "seconds=-1", "minutes=1", "seconds=1&minutes=1"};
    struct fixture *f = start();
    expect_fleet(parse_answer(ask(f, "POST", "/v1/evaluate/fleet", ""), 200));
    cr_assert(eq(dbl, f->fake.fleet_seconds, VIEW_FLEET_SECONDS));
    expect_fleet(parse_answer(ask(f, "POST", "/v1/evaluate/fleet?seconds=300", ""), 200));
    cr_assert(eq(dbl, f->fake.fleet_seconds, 300));
    expect_fleet(parse_answer(ask(f, "GET", "/v1/report", ""), 200));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char path[64];
        (void)snprintf(path, sizeof path, "/v1/evaluate/fleet?%s", wrong[i]);
        expect_error(ask(f, "POST", path, ""), 400, "bad_request",
            "give seconds=S with S from 1 to 300, or nothing");
    }
    f->fake.error = "no node has told";
    expect_error(ask(f, "GET", "/v1/report", ""), 409, "conflict", "no node has told");
    expect_error(ask(f, "POST", "/v1/evaluate/fleet", ""), 409, "conflict", "no node has told");
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

/* A program's model says neither how many features it takes nor how many outputs it has. */
Test(control, predict_of_a_program)
{
    struct fixture *f = start();
    struct sgp_model unknown = {.parameters = f->fake.model.parameters};
    f->control->model = (struct view_model){.model = &unknown};
    static const char *const bodies[] = {"[[1, 2, 3], [5, -1, -1.5]]", "a,b,c\n1,2,3\n5,-1,-1.5\n"};
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        json_t *answer = parse_answer(ask(f, "POST", "/v1/predict", bodies[i]), 200);
        char *text = json_dumps(answer, JSON_COMPACT | JSON_SORT_KEYS);
        cr_assert(eq(str, text, "{\"labels\":null,\"outputs\":[[6.0,1.0],[2.5,5.0]],\"rows\":2}"));
        free(text);
        json_decref(answer);
    }
    expect_bad_rows(f, "[[]]", "row 1 has no features; send arrays of numbers");
    expect_bad_rows(f, "[7]", "row 1 has no features; send arrays of numbers");
    expect_bad_rows(
        f, "[[1, 2, 3], [1]]", "row 2 has 1 features; the model takes arrays of 3 numbers");
    f->fake.error = "program 'a' was attached without on_predict: it cannot";
    expect_error(ask(f, "POST", "/v1/predict", "[[1, 2, 3]]"), 409, "conflict", f->fake.error);
    expect_error(ask(f, "POST", "/v1/evaluate", ""), 409, "conflict", f->fake.error);
    finish(f);
}

/* The fake adds the features of a row up. */
Test(control, outputs_that_overflow_are_an_error)
{
    struct fixture *f = start();
    expect_bad_rows(f, "[[1, 2, 3], [3e38, 3e38, 3]]",
        "row 2: output 1 of the model is not a finite number; the features are too large, or the "
        "model has diverged");
    expect_bad_rows(f, "a,b,c\n-3e38,-3e38,1\n",
        "row 1: output 1 of the model is not a finite number; the features are too large, or the "
        "model has diverged");
    json_decref(parse_answer(ask(f, "POST", "/v1/predict", "[[3e38,1,1]]"), 200));
    finish(f);
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
    struct sgp_model wide = f->fake.model;
    wide.outputs = CONTROL_OUTPUTS_MAX / 8;
    f->control->model.model = &wide;
    rows[6 + 9 * 6] = '\0';
    expect_error(ask(f, "POST", "/v1/predict", rows), 413, "too_large",
        "9 rows of 131072 outputs are more than 1048576 in all; send fewer at a time");
    free(rows);
    f->control->model.model = &f->fake.model;
    f->control->model.columns = 1;
    expect_bad_rows(f, "a,b,c\n1,2,3\n",
        "body:1: other columns than the training data has, or in another order; send its line of "
        "names without the label");
    json_decref(parse_answer(ask(f, "POST", "/v1/predict", "[[1,2,3]]"), 200));
    finish(f);
}

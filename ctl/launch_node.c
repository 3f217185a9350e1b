/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon and the program of a node; see launch_node.h.
 *
 * A daemon sends sd_notify(3) messages to a socket of the launcher: that it is ready, and its
 * status line. */
#include "launch_node.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define WORD_BYTES 1024 /* of a daemon's message */
#define EXTEND "EXTEND_TIMEOUT_USEC="
/* A daemon that ends asks for more time at each quarter of it, as long as it is alive. */
#define WATCHDOG_US 20000000u

void launch_node_init(struct launch_node *node, const struct launch_shared *shared, uint32_t index)
{
    *node = (struct launch_node){.shared = shared,
        .name = launch_plan_node(shared->plan, index)->name,
        .index = index,
        .words = -1,
        .round = -1,
        .loss = NAN};
}

void launch_node_close(struct launch_node *node)
{
    if (node->listening.data)
        uv_close((uv_handle_t *)&node->listening, NULL);
}

void launch_node_finish(struct launch_node *node)
{
    if (node->words >= 0)
        (void)close(node->words);
}

/* ---- what the daemon says ---- */

static void on_words(uv_poll_t *poll, int status, int events)
{
    struct launch_node *node = poll->data;
    char text[WORD_BYTES];
    ssize_t count = recv(node->words, text, sizeof text - 1, MSG_DONTWAIT);
    (void)status;
    (void)events;
    if (count <= 0)
        return;
    text[count] = '\0';
    const char *round = strstr(text, ", round "), *loss = strstr(text, ", loss ");
    if (round)
        (void)sscanf(round, ", round %lld", &node->round);
    if (loss)
        (void)sscanf(loss, ", loss %lf", &node->loss);
    if (strstr(text, "READY=1"))
        node->ready = true;
    const char *more = strstr(text, EXTEND);
    if (more)
        node->shared->extend(
            node->shared->context, strtoull(more + sizeof EXTEND - 1, NULL, 10) / 1000);
    node->shared->changed(node->shared->context);
}

static int open_words(struct launch_node *node, char path[PATH_MAX])
{
    const struct launch_plan *plan = node->shared->plan;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    launch_plan_path(plan->place.sockets, launch_plan_node(plan, node->index), ".notify", path);
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%.107s", path);
    node->words = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (node->words < 0 || bind(node->words, (const struct sockaddr *)&address, sizeof address) < 0)
        return -errno;
    int code = uv_poll_init(node->shared->loop, &node->listening, node->words);
    if (code < 0)
        return code;
    node->listening.data = node;
    return uv_poll_start(&node->listening, UV_READABLE, on_words);
}

void launch_node_last_line(const struct launch_node *node, char text[SGP_TEXT_BYTES])
{
    const struct launch_plan *plan = node->shared->plan;
    char path[PATH_MAX], line[SGP_TEXT_BYTES];
    bool found = false;
    launch_plan_path(plan->place.files, launch_plan_node(plan, node->index), ".log", path);
    FILE *file = fopen(path, "re");
    (void)snprintf(text, SGP_TEXT_BYTES, "its log is empty");
    while (file && fgets(line, sizeof line, file))
        if (line[0] != '\n' && (!found || strstr(line, " event=error "))) {
            found = strstr(line, " event=error ") != NULL;
            (void)snprintf(text, SGP_TEXT_BYTES, "%.*s", (int)strcspn(line, "\n"),
                line[0] == '<' && line[1] != '\0' && line[2] == '>' ? line + 3 : line);
        }
    if (file)
        (void)fclose(file);
}

/* ---- starting ---- */

/* What a program is told: its node, and where to attach. */
static void describe(const struct launch_node *node, struct launch_environment *environment)
{
    const struct launch_plan *plan = node->shared->plan;
    const char *before = getenv("PYTHONPATH");
    uint32_t count = plan->nodes;
    char path[PATH_MAX], packages[2 * PATH_MAX];
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    launch_plan_path(plan->place.sockets, launch_plan_node(plan, node->index), ".attach", path);
    launch_environment_set(environment, "SGP_SOCKET", path);
    launch_environment_set(environment, "SGP_NODE", node->name);
    launch_environment_set_number(environment, "SGP_NODES", plan->fleet);
    launch_environment_set_number(environment, "RANK", plan->first + node->index);
    launch_environment_set_number(environment, "WORLD_SIZE", plan->fleet);
    launch_environment_set_number(environment, "LOCAL_RANK", node->index);
    launch_environment_set_number(environment, "LOCAL_WORLD_SIZE", count);
    /* else output arrives in blocks of some thousand lines */
    if (getenv("PYTHONUNBUFFERED") == NULL)
        launch_environment_set(environment, "PYTHONUNBUFFERED", "1");
    if (getenv("OMP_NUM_THREADS") == NULL) /* else every program takes all processors */
        launch_environment_set_number(environment, "OMP_NUM_THREADS",
            processors > (long)count ? (uint64_t)processors / count : 1);
    (void)snprintf(packages, sizeof packages, "%s%s%s", plan->package,
        before && before[0] ? ":" : "", before ? before : "");
    if (plan->package[0] != '\0')
        launch_environment_set(environment, "PYTHONPATH", packages);
}

int launch_node_start_daemon(struct launch_node *node)
{
    const struct launch_plan *plan = node->shared->plan;
    const struct sgp_topology_node *place = launch_plan_node(plan, node->index);
    struct launch_environment environment = {.count = 0};
    char name[] = "sgpd", option[] = "-c", file[PATH_MAX], log[PATH_MAX], words[PATH_MAX];
    char *const arguments[] = {name, option, file, NULL};
    launch_plan_path(plan->place.files, place, ".conf", file);
    launch_plan_path(plan->place.files, place, ".log", log);
    int code = open_words(node, words);
    int output = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    launch_environment_set(&environment, "NOTIFY_SOCKET", words);
    launch_environment_set_number(&environment, "WATCHDOG_USEC", WATCHDOG_US);
    (void)unsetenv("WATCHDOG_PID"); /* if this process is a service with a watchdog of its own */
    if (code == 0 && output < 0)
        code = -errno;
    if (code == 0 && !launch_environment_inherit(&environment))
        code = -ENOMEM;
    if (code == 0)
        code = launch_start(&(struct launch_command){.path = plan->sgpd,
            .arguments = arguments,
            .environment = environment.all,
            .output = output,
            .error = output});
    if (output >= 0)
        (void)close(output);
    launch_environment_free(&environment);
    if (code < 0)
        return code;
    node->daemon = code;
    launch_watch_add(node->shared->watch, node->daemon);
    return 0;
}

static void on_stream_ended(void *context)
{
    struct launch_node *node = context;
    node->streams--;
    node->shared->changed(node->shared->context);
}

static void on_unread(void *context)
{
    const struct launch_node *node = context;
    node->shared->unread(node->shared->context);
}

/* A pipe whose other end a stream reads. Returns the descriptor for writing, or a negative code. */
static int open_stream(struct launch_node *node, struct launch_stream *stream, FILE *to)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    stream->ended = on_stream_ended;
    stream->unread = on_unread;
    stream->context = node;
    int code = launch_stream_open(
        stream, node->shared->lines, node->shared->loop, ends[0], node->name, node->index, to);
    node->streams += stream->open;
    if (code < 0) {
        (void)close(ends[1]);
        return code;
    }
    return ends[1];
}

int launch_node_start_program(struct launch_node *node)
{
    struct launch_environment environment = {.count = 0};
    int output = open_stream(node, &node->output, stdout);
    int error = output < 0 ? output : open_stream(node, &node->error, stderr);
    int code = error < 0 ? error : 0;
    describe(node, &environment);
    if (code == 0 && !launch_environment_inherit(&environment))
        code = -ENOMEM;
    if (code == 0)
        code = launch_start(&(struct launch_command){.path = node->shared->plan->program_path,
            .arguments = node->shared->plan->program,
            .environment = environment.all,
            .output = output,
            .error = error});
    if (output >= 0)
        (void)close(output);
    if (error >= 0)
        (void)close(error);
    launch_environment_free(&environment);
    if (code < 0)
        return code;
    node->program = code;
    node->started = true;
    launch_watch_add(node->shared->watch, node->program);
    return 0;
}

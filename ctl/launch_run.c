/* SPDX-License-Identifier: Apache-2.0 */
/* The loop of a launch: starts daemons and programs, watches them, and ends them; see launch.h.
 *
 * The stages follow in the order of `enum stage`. After each event, step() checks whether the next
 * stage is due. Daemons send sd_notify(3) messages to a socket of the launcher: that they are
 * ready, and their status line. */
#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define GRACE_MS 5000u  /* after SIGINT or SIGTERM, until SIGKILL */
#define DRAIN_MS 2000u  /* for the last output of the programs */
#define SHOW_MS 500u    /* between two lines of progress */
#define WORD_BYTES 1024 /* of a daemon's message */

enum stage {
    STARTING, /* the daemons */
    RUNNING,  /* the programs */
    ENDING,   /* the programs have been told to end */
    DRAINING, /* all programs have ended; their last output is awaited */
    STOPPING, /* the daemons have been told to end */
    OVER,
};

struct launch;

struct node {
    struct launch *launch;
    const char *name;
    uint32_t index;
    pid_t daemon, program; /* 0: not started, or ended */
    bool ready;            /* the daemon */
    bool started, failed;  /* the program */
    bool told;             /* told to end, so its status has no meaning */
    int status;            /* the program's, once it has ended */
    int words;             /* a socket */
    uv_poll_t listening;
    struct launch_stream output, error;
    unsigned streams; /* that are open */
    long long round;  /* -1: not known */
    double loss;
};

struct launch {
    struct ctl *ctl;
    const struct launch_plan *plan;
    const struct launch_watch *watch;
    struct launch_lines lines;
    uv_loop_t loop;
    uv_signal_t signals[4];
    uv_timer_t grace, show;
    enum stage stage;
    struct node *nodes;
    uint32_t count;
    struct launch_reader orders; /* of a launcher, on standard input */
    bool drained;                /* DRAINING: no output is awaited any more */
    bool released;               /* the daemons may be stopped */
    int interrupted;             /* the number of a signal; 0: none */
    int worst;
    uint64_t began; /* uv_hrtime */
};

static void step(struct launch *launch);

/* ---- reporting ---- */

#define tell(launch, ...)                                                                          \
    (launch_lines_clear(&(launch)->lines), (void)ctl_fail((launch)->ctl, CTL_FAILED, __VA_ARGS__))

/* What a launcher is told about this host. */
static void report(const struct launch *launch)
{
    uint32_t running = 0;
    json_t *rounds = json_array(), *losses = json_array();
    for (uint32_t i = 0; i < launch->count; i++) {
        const struct node *node = &launch->nodes[i];
        running += node->program > 0;
        (void)json_array_append_new(
            rounds, node->round < 0 ? json_null() : json_integer(node->round));
        (void)json_array_append_new(losses, ctl_json_real(node->loss));
    }
    (void)ctl_print_json(json_pack("{s:i, s:i, s:b, s:o, s:o}", "running", (int)running, "worst",
        launch->worst, "over", launch->stage == DRAINING && launch->drained, "rounds", rounds,
        "losses", losses));
}

static void worsen(struct launch *launch, int status)
{
    if (status <= launch->worst)
        return;
    launch->worst = status;
    if (launch->plan->supervised)
        report(launch);
}

static void on_show(uv_timer_t *timer)
{
    struct launch *launch = timer->data;
    long long least = -1, most = -1;
    double losses = 0;
    uint32_t known = 0, running = 0;
    char text[256] = "", loss[32] = "";
    for (uint32_t i = 0; i < launch->count; i++) {
        const struct node *node = &launch->nodes[i];
        running += node->program > 0;
        if (node->round >= 0 && (least < 0 || node->round < least))
            least = node->round;
        if (node->round > most)
            most = node->round;
        if (isfinite(node->loss)) {
            losses += node->loss;
            known++;
        }
    }
    if (known > 0)
        (void)snprintf(loss, sizeof loss, ", loss %.4g", losses / known);
    double seconds = (double)(uv_hrtime() - launch->began) * 1e-9;
    if (launch->stage == STARTING)
        (void)snprintf(text, sizeof text, "starting %u daemons", launch->count);
    else if (least < 0)
        (void)snprintf(text, sizeof text, "%u programs, %.0f s", running, seconds);
    else if (least == most)
        (void)snprintf(
            text, sizeof text, "%u programs, round %lld%s, %.0f s", running, least, loss, seconds);
    else
        (void)snprintf(text, sizeof text, "%u programs, rounds %lld to %lld%s, %.0f s", running,
            least, most, loss, seconds);
    launch_lines_show(&launch->lines, launch->stage < STOPPING ? text : "");
    if (launch->plan->supervised)
        report(launch);
}

/* The last line of a daemon's log, without its level. */
static void last_line(const struct node *node, char text[SGP_TEXT_BYTES])
{
    char path[PATH_MAX], line[SGP_TEXT_BYTES];
    launch_plan_path(node->launch->plan->place.files,
        launch_plan_node(node->launch->plan, node->index), ".log", path);
    FILE *file = fopen(path, "re");
    (void)snprintf(text, SGP_TEXT_BYTES, "its log is empty");
    while (file && fgets(line, sizeof line, file))
        if (line[0] != '\n')
            (void)snprintf(text, SGP_TEXT_BYTES, "%.*s", (int)strcspn(line, "\n"),
                line[0] == '<' && line[1] != '\0' && line[2] == '>' ? line + 3 : line);
    if (file)
        (void)fclose(file);
}

/* ---- ending ---- */

static void signal_programs(struct launch *launch, int number)
{
    for (uint32_t i = 0; i < launch->count; i++) {
        struct node *node = &launch->nodes[i];
        node->told = node->told || node->program > 0;
        launch_signal(node->program, number);
    }
}

static void on_grace(uv_timer_t *timer)
{
    struct launch *launch = timer->data;
    if (launch->stage == ENDING)
        signal_programs(launch, SIGKILL);
    for (uint32_t i = 0; i < launch->count; i++) {
        struct node *node = &launch->nodes[i];
        if (launch->stage == STOPPING)
            launch_signal(node->daemon, SIGKILL);
        if (launch->stage == DRAINING) {
            launch_stream_close(&node->output);
            launch_stream_close(&node->error);
        }
    }
    step(launch);
}

static void wait_at_most(struct launch *launch, unsigned milliseconds)
{
    (void)uv_timer_start(&launch->grace, on_grace, milliseconds, 0);
}

/* Tell all programs to end. A node without a program yet is only stopped. */
static void end_programs(struct launch *launch, int number)
{
    if (launch->stage >= ENDING)
        return;
    launch->stage = ENDING;
    signal_programs(launch, number);
    wait_at_most(launch, GRACE_MS);
}

static void fail(struct launch *launch, struct node *node, int status)
{
    worsen(launch, status);
    if (!launch->plan->keep_going || launch->stage == STARTING) {
        end_programs(launch, SIGTERM);
        return;
    }
    /* Neighbours do not wait for a stopped node. Its program would wait for its daemon. */
    node->told = node->told || node->program > 0;
    launch_signal(node->program, SIGTERM);
    launch_signal(node->daemon, SIGTERM);
}

static void interrupt(struct launch *launch, int number)
{
    bool again = launch->interrupted != 0;
    launch->interrupted = number;
    if (again) { /* a second signal: the user is impatient */
        signal_programs(launch, SIGKILL);
        for (uint32_t i = 0; i < launch->count && launch->stage == STOPPING; i++)
            launch_signal(launch->nodes[i].daemon, SIGKILL);
    }
    end_programs(launch, number == SIGINT ? SIGINT : SIGTERM);
    step(launch);
}

static void on_signal(uv_signal_t *handle, int number)
{
    interrupt(handle->data, number);
}

/* ---- orders of a launcher ---- */

static void on_orders(void *context, const char *orders, ssize_t count)
{
    struct launch *launch = context;
    if (count < 0) { /* the launcher is gone */
        launch->released = true;
        interrupt(launch, SIGHUP);
        return;
    }
    for (ssize_t i = 0; i < count; i++) {
        if (orders[i] == LAUNCH_INTERRUPT || orders[i] == LAUNCH_TERMINATE)
            interrupt(launch, orders[i] == LAUNCH_INTERRUPT ? SIGINT : SIGTERM);
        if (orders[i] == LAUNCH_END)
            end_programs(launch, SIGTERM);
        launch->released |= orders[i] == LAUNCH_RELEASE;
    }
    step(launch);
}

/* ---- messages of daemons ---- */

static void on_words(uv_poll_t *poll, int status, int events)
{
    struct node *node = poll->data;
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
    step(node->launch);
}

static int open_words(struct node *node, char path[PATH_MAX])
{
    const struct launch_plan *plan = node->launch->plan;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    launch_plan_path(plan->place.sockets, launch_plan_node(plan, node->index), ".notify", path);
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%.107s", path);
    node->words = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (node->words < 0 || bind(node->words, (const struct sockaddr *)&address, sizeof address) < 0)
        return -errno;
    int code = uv_poll_init(&node->launch->loop, &node->listening, node->words);
    if (code < 0)
        return code;
    node->listening.data = node;
    return uv_poll_start(&node->listening, UV_READABLE, on_words);
}

/* ---- starting ---- */

/* What a program is told: its node, and where to attach. */
static void describe(const struct node *node, struct launch_environment *environment)
{
    const struct launch_plan *plan = node->launch->plan;
    const char *before = getenv("PYTHONPATH");
    uint32_t count = node->launch->count;
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

static int start_daemon(struct node *node)
{
    struct launch *launch = node->launch;
    const struct sgp_topology_node *place = launch_plan_node(launch->plan, node->index);
    struct launch_environment environment = {.count = 0};
    char name[] = "sgpd", option[] = "-c", file[PATH_MAX], log[PATH_MAX], words[PATH_MAX];
    char *const arguments[] = {name, option, file, NULL};
    launch_plan_path(launch->plan->place.files, place, ".conf", file);
    launch_plan_path(launch->plan->place.files, place, ".log", log);
    int code = open_words(node, words);
    int output = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    launch_environment_set(&environment, "NOTIFY_SOCKET", words);
    if (code == 0 && output < 0)
        code = -errno;
    if (code == 0 && !launch_environment_inherit(&environment))
        code = -ENOMEM;
    if (code == 0)
        code = launch_start(&(struct launch_command){.path = launch->plan->sgpd,
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
    launch_watch_add(launch->watch, node->daemon);
    return 0;
}

static void on_stream_ended(void *context)
{
    struct node *node = context;
    node->streams--;
    step(node->launch);
}

/* A pipe whose other end a stream reads. Returns the descriptor for writing, or a negative code. */
static int open_stream(struct node *node, struct launch_stream *stream, FILE *to)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    stream->ended = on_stream_ended;
    stream->context = node;
    int code = launch_stream_open(
        stream, &node->launch->lines, &node->launch->loop, ends[0], node->name, node->index, to);
    node->streams += stream->open;
    if (code < 0) {
        (void)close(ends[1]);
        return code;
    }
    return ends[1];
}

static int start_program(struct node *node)
{
    struct launch *launch = node->launch;
    struct launch_environment environment = {.count = 0};
    int output = open_stream(node, &node->output, stdout);
    int error = output < 0 ? output : open_stream(node, &node->error, stderr);
    int code = error < 0 ? error : 0;
    describe(node, &environment);
    if (code == 0 && !launch_environment_inherit(&environment))
        code = -ENOMEM;
    if (code == 0)
        code = launch_start(&(struct launch_command){.path = launch->plan->program_path,
            .arguments = launch->plan->program,
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
    launch_watch_add(launch->watch, node->program);
    return 0;
}

/* Start all daemons, or all programs. A failed start ends the launch. */
static void start_all(struct launch *launch, int (*start)(struct node *), const char *what)
{
    for (uint32_t i = 0; i < launch->count && launch->stage < ENDING; i++) {
        int code = start(&launch->nodes[i]);
        if (code == 0)
            continue;
        tell(launch, "%s: %s cannot be started: %s", launch->nodes[i].name, what,
            sgp_strerror(code));
        worsen(launch, CTL_FAILED);
        end_programs(launch, SIGTERM);
    }
}

/* ---- children that have ended ---- */

static void on_program_ended(struct node *node, int status)
{
    struct launch *launch = node->launch;
    node->program = 0;
    node->status = status;
    if (status == 0 || node->told)
        return;
    node->failed = true;
    if (status > 128)
        tell(launch, "%s: the program was ended by signal %d (%s)%s", node->name, status - 128,
            strsignal(status - 128), launch->plan->keep_going ? "" : "; so all are ended");
    else
        tell(launch, "%s: the program ended with status %d%s", node->name, status,
            launch->plan->keep_going ? "" : "; so all are ended");
    fail(launch, node, status);
}

static void on_daemon_ended(struct node *node, int status)
{
    struct launch *launch = node->launch;
    char text[SGP_TEXT_BYTES];
    node->daemon = 0;
    if (launch->stage >= DRAINING || node->failed)
        return;
    node->failed = true;
    last_line(node, text);
    tell(launch, "%s: sgpd ended with status %d: %s", node->name, status, text);
    fail(launch, node, CTL_FAILED);
}

static void on_child(uv_signal_t *handle, int number)
{
    struct launch *launch = handle->data;
    int status;
    pid_t pid;
    (void)number;
    while ((pid = launch_reap(&status)) > 0) {
        for (uint32_t i = 0; i < launch->count; i++) {
            struct node *node = &launch->nodes[i];
            if (pid != node->daemon && pid != node->program)
                continue;
            launch_watch_drop(launch->watch, pid);
            if (pid == node->program)
                on_program_ended(node, status);
            else
                on_daemon_ended(node, status);
        }
    }
    step(launch);
}

/* ---- stages ---- */

static uint32_t count_of(const struct launch *launch, bool (*is)(const struct node *))
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < launch->count; i++)
        count += is(&launch->nodes[i]);
    return count;
}

static bool is_ready(const struct node *node)
{
    return node->ready;
}

static bool has_program(const struct node *node)
{
    return node->program > 0;
}

static bool has_daemon(const struct node *node)
{
    return node->daemon > 0;
}

static bool prints(const struct node *node)
{
    return node->streams > 0;
}

/* Kill processes that programs have left behind, because they may hold a stream open. */
static void end_orphans(struct launch *launch)
{
    pid_t known[LAUNCH_NODES_MAX + 1];
    size_t count = 0;
    known[count++] = launch->watch->pid;
    for (uint32_t i = 0; i < launch->count; i++)
        if (launch->nodes[i].daemon > 0)
            known[count++] = launch->nodes[i].daemon;
    (void)launch_kill_adopted(known, count);
}

static void stop_daemons(struct launch *launch)
{
    launch->stage = STOPPING;
    launch_lines_clear(&launch->lines);
    launch_lines_show(&launch->lines, "");
    for (uint32_t i = 0; i < launch->count; i++)
        launch_signal(launch->nodes[i].daemon, SIGTERM);
    wait_at_most(launch, 2 * GRACE_MS);
}

/* Nodes of other hosts may still need the daemons. */
static void drain(struct launch *launch)
{
    bool drained = count_of(launch, prints) == 0;
    if (launch->plan->supervised && drained && !launch->drained) {
        launch->drained = true;
        report(launch);
    }
    if (drained && (launch->released || !launch->plan->supervised))
        stop_daemons(launch);
}

static void close_all(struct launch *launch)
{
    launch->stage = OVER;
    for (size_t i = 0; i < sizeof launch->signals / sizeof *launch->signals; i++)
        uv_close((uv_handle_t *)&launch->signals[i], NULL);
    uv_close((uv_handle_t *)&launch->grace, NULL);
    uv_close((uv_handle_t *)&launch->show, NULL);
    if (launch->plan->supervised)
        launch_reader_close(&launch->orders);
    for (uint32_t i = 0; i < launch->count; i++)
        if (launch->nodes[i].listening.data)
            uv_close((uv_handle_t *)&launch->nodes[i].listening, NULL);
}

static void step(struct launch *launch)
{
    if (launch->stage == STARTING && count_of(launch, is_ready) == launch->count) {
        launch->stage = RUNNING;
        start_all(launch, start_program, launch->plan->program[0]);
    }
    if ((launch->stage == RUNNING || launch->stage == ENDING) &&
        count_of(launch, has_program) == 0) {
        launch->stage = DRAINING;
        wait_at_most(launch, DRAIN_MS);
    }
    if (launch->stage ==
        DRAINING) { /* also after each of them has ended, because it may leave others */
        end_orphans(launch);
        drain(launch);
    }
    if (launch->stage == STOPPING && count_of(launch, has_daemon) == 0)
        close_all(launch);
}

/* ---- the complete launch ---- */

static void init(struct launch *launch)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGCHLD};
    (void)uv_loop_init(&launch->loop);
    (void)uv_timer_init(&launch->loop, &launch->grace);
    (void)uv_timer_init(&launch->loop, &launch->show);
    launch->grace.data = launch->show.data = launch;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        (void)uv_signal_init(&launch->loop, &launch->signals[i]);
        launch->signals[i].data = launch;
        (void)uv_signal_start(
            &launch->signals[i], numbers[i] == SIGCHLD ? on_child : on_signal, numbers[i]);
    }
    for (uint32_t i = 0; i < launch->count; i++)
        launch->nodes[i] = (struct node){.launch = launch,
            .name = launch_plan_node(launch->plan, i)->name,
            .index = i,
            .words = -1,
            .round = -1,
            .loss = NAN};
    launch_lines_init(launch->ctl, &launch->lines);
    if (launch->lines.progress || launch->plan->supervised)
        (void)uv_timer_start(&launch->show, on_show, 0, SHOW_MS);
    launch_adopt();
}

static void finish(struct launch *launch)
{
    for (uint32_t i = 0; i < launch->count; i++)
        if (launch->nodes[i].words >= 0)
            (void)close(launch->nodes[i].words);
    sgp_assert(uv_loop_close(&launch->loop) == 0);
    free(launch->nodes);
}

/* The result, for scripts; for a person, a line on standard error. */
static void summarise(const struct launch *launch)
{
    double seconds = (double)(uv_hrtime() - launch->began) * 1e-9;
    json_t *statuses = json_object();
    if (!launch->ctl->json) {
        (void)fprintf(stderr, "sgpctl: %u node%s, %.1f s%s%s\n", launch->count,
            launch->count == 1 ? "" : "s", seconds, launch->plan->place.keeps ? ", kept in " : "",
            launch->plan->place.keeps ? launch->plan->place.files : "");
        json_decref(statuses);
        return;
    }
    for (uint32_t i = 0; i < launch->count; i++)
        (void)json_object_set_new(statuses, launch->nodes[i].name,
            launch->nodes[i].started ? json_integer(launch->nodes[i].status) : json_null());
    (void)ctl_print_json(json_pack("{s:I, s:f, s:o, s:o}", "nodes", (json_int_t)launch->count,
        "seconds", seconds, "statuses", statuses, "kept",
        launch->plan->place.keeps ? ctl_json_text(launch->plan->place.files) : json_null()));
}

static enum ctl_exit run_loop(
    struct ctl *ctl, const struct launch_plan *plan, const struct launch_watch *watch)
{
    struct launch launch = {.ctl = ctl,
        .plan = plan,
        .watch = watch,
        .count = plan->nodes,
        .nodes = calloc(plan->nodes, sizeof *launch.nodes),
        .orders = {.take = on_orders, .context = &launch},
        .began = uv_hrtime()};
    if (launch.nodes == NULL)
        return ctl_fail(ctl, CTL_FAILED, "%s", sgp_strerror(-ENOMEM));
    init(&launch);
    int code = plan->supervised ? launch_reader_open(&launch.orders, &launch.loop) : 0;
    if (code < 0) {
        tell(&launch, "standard input: %s", sgp_strerror(code));
        worsen(&launch, CTL_FAILED);
        end_programs(&launch, SIGTERM);
    }
    start_all(&launch, start_daemon, "sgpd");
    step(&launch);
    (void)uv_run(&launch.loop, UV_RUN_DEFAULT);
    if (launch.interrupted != 0)
        worsen(&launch, 128 + launch.interrupted);
    if (launch.interrupted == 0 || plan->supervised)
        summarise(&launch);
    finish(&launch);
    return (enum ctl_exit)launch.worst; /* a program's status, as in a shell */
}

enum ctl_exit launch_run(struct ctl *ctl, struct launch_plan *plan,
    enum ctl_exit (*agree)(struct ctl *ctl, struct launch_plan *plan))
{
    struct launch_watch watch;
    enum ctl_exit status = launch_watch_start(ctl, plan->keep, &plan->place, &watch);
    if (status != CTL_DONE)
        return status;
    status = launch_plan_hold(ctl, plan);
    if (status == CTL_DONE)
        status = agree(ctl, plan);
    if (status == CTL_DONE)
        status = launch_plan_write(ctl, plan);
    if (status == CTL_DONE)
        status = run_loop(ctl, plan, &watch);
    if (!launch_watch_end(&watch)) {
        enum ctl_exit left = ctl_fail(
            ctl, CTL_FAILED, "%s and %s cannot be removed", plan->place.files, plan->place.sockets);
        status = status == CTL_DONE ? left : status;
    }
    return status;
}

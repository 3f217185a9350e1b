/* SPDX-License-Identifier: Apache-2.0 */
/* The loop of a launch: starts daemons and programs, watches them, and ends them; see launch.h.
 *
 * The stages follow in the order of `enum stage`. After each event, step() checks whether the next
 * stage is due. */
#include "launch_node.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define GRACE_MS 5000u /* after SIGINT or SIGTERM, until SIGKILL */
#define DRAIN_MS 2000u /* for the last output of the programs */
#define SHOW_MS 500u   /* between two lines of progress */

enum stage {
    STARTING, /* the daemons */
    RUNNING,  /* the programs */
    ENDING,   /* the programs have been told to end */
    DRAINING, /* all programs have ended; their last output is awaited */
    STOPPING, /* the daemons have been told to end */
    OVER,
};

struct launch {
    struct ctl *ctl;
    const struct launch_plan *plan;
    struct launch_lines lines;
    uv_loop_t loop;
    uv_signal_t signals[4];
    uv_timer_t grace, show;
    enum stage stage;
    struct launch_shared shared;
    struct launch_node *nodes;
    uint32_t count;
    struct launch_children before; /* of this process, before it started daemons and programs */
    struct launch_reader orders;   /* of a launcher, on standard input */
    bool drained;                  /* DRAINING: no output is awaited any more */
    bool released;                 /* the daemons may be stopped */
    int interrupted;               /* the number of a signal; 0: none */
    int worst;
    uint64_t began; /* uv_hrtime */
};

static void step(struct launch *launch);

/* ---- reporting ---- */

#define tell(launch, ...)                                                                          \
    (launch_lines_clear(&(launch)->lines), (void)ctl_fail((launch)->ctl, CTL_FAILED, __VA_ARGS__))

static double seconds_of(const struct launch *launch)
{
    return (double)(uv_hrtime() - launch->began) * 1e-9;
}

/* Tell the launcher. */
static void report(const struct launch *launch)
{
    launch_progress_report(
        launch->plan, launch->nodes, launch->worst, launch->stage == DRAINING && launch->drained);
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
    char text[LAUNCH_PROGRESS_BYTES];
    launch_progress_line(
        launch->plan, launch->nodes, launch->stage == STARTING, seconds_of(launch), text);
    launch_lines_show(&launch->lines, launch->stage < STOPPING ? text : "");
    if (launch->plan->supervised)
        report(launch);
}

/* ---- ending ---- */

static void signal_programs(struct launch *launch, int number)
{
    for (uint32_t i = 0; i < launch->count; i++) {
        struct launch_node *node = &launch->nodes[i];
        node->told = node->told || node->program > 0;
        launch_signal(node->program, number);
    }
}

/* Once: a daemon that is told again ends at once. */
static void stop_daemon(struct launch_node *node)
{
    if (!node->stopped)
        launch_signal(node->daemon, SIGTERM);
    node->stopped = true;
}

/* After its time, or for an impatient user. */
static void kill_daemon(struct launch *launch, struct launch_node *node)
{
    if (node->daemon > 0 && launch->plan->keep) {
        tell(launch, "%s: sgpd does not end, so it is killed", node->name);
        worsen(launch, CTL_FAILED);
    }
    node->failed = node->failed || node->daemon > 0;
    launch_signal(node->daemon, SIGKILL);
}

static void on_grace(uv_timer_t *timer)
{
    struct launch *launch = timer->data;
    const enum stage stage = launch->stage; /* the last stream that is closed ends DRAINING */
    if (stage == ENDING)
        signal_programs(launch, SIGKILL);
    for (uint32_t i = 0; i < launch->count; i++) {
        struct launch_node *node = &launch->nodes[i];
        if (stage == STOPPING)
            kill_daemon(launch, node);
        if (stage == DRAINING) {
            launch_stream_close(&node->output);
            launch_stream_close(&node->error);
        }
    }
    step(launch);
}

/* From now on: a reader of the output may have blocked the loop since its time was taken. */
static void wait_at_most(struct launch *launch, uint64_t milliseconds)
{
    uv_update_time(&launch->loop);
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

static void fail(struct launch *launch, struct launch_node *node, int status)
{
    worsen(launch, status);
    if (!launch->plan->keep_going || launch->stage == STARTING) {
        end_programs(launch, SIGTERM);
        return;
    }
    /* Neighbours do not wait for a stopped node. Its program would wait for its daemon. */
    node->told = node->told || node->program > 0;
    launch_signal(node->program, SIGTERM);
    stop_daemon(node);
}

static void interrupt(struct launch *launch, int number)
{
    bool again = launch->interrupted != 0;
    launch->interrupted = number;
    if (again) { /* a second signal: the user is impatient */
        signal_programs(launch, SIGKILL);
        for (uint32_t i = 0; i < launch->count && launch->stage == STOPPING; i++)
            kill_daemon(launch, &launch->nodes[i]);
    }
    end_programs(launch, number == SIGINT ? SIGINT : SIGTERM);
    step(launch);
}

static void on_signal(uv_signal_t *handle, int number)
{
    struct launch *launch = handle->data;
    if (launch->plan->supervised) { /* by somebody else than the launcher, who gives orders */
        tell(launch, "%s: the supervisor of its host got signal %d (%s), and ends its programs",
            launch->nodes[0].name, number, strsignal(number));
        worsen(launch, 128 + number);
    }
    interrupt(launch, number);
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

/* ---- starting ---- */

/* Start all daemons, or all programs. A failed start ends the launch. */
static void start_all(struct launch *launch, int (*start)(struct launch_node *), const char *what)
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

static void on_program_ended(
    struct launch *launch, struct launch_node *node, int status, int number)
{
    node->program = 0;
    node->status = status;
    if (status == 0 || node->told)
        return;
    node->failed = true;
    if (number != 0)
        tell(launch, "%s: the program was ended by signal %d (%s)%s", node->name, number,
            strsignal(number), launch->plan->keep_going ? "" : "; so all are ended");
    else
        tell(launch, "%s: the program ended with status %d%s", node->name, status,
            launch->plan->keep_going ? "" : "; so all are ended");
    fail(launch, node, status);
}

/* While programs run, they need it. Afterwards it may end, but not fail: hosts of a fleet still
 * need it, and --keep keeps its model. Files that are not kept are of no use to anybody. */
static void on_daemon_ended(struct launch *launch, struct launch_node *node, int status)
{
    char text[SGP_TEXT_BYTES];
    bool done = launch->stage >= DRAINING && status == 0;
    bool useless = launch->stage >= STOPPING && launch->plan->keep == NULL;
    node->daemon = 0;
    if (done || useless || node->failed)
        return;
    node->failed = true;
    launch_node_last_line(node, text);
    tell(launch, "%s: sgpd ended with status %d: %s", node->name, status, text);
    fail(launch, node, CTL_FAILED);
}

static void on_child(uv_signal_t *handle, int number)
{
    struct launch *launch = handle->data;
    int status, ended_by;
    pid_t pid;
    (void)number;
    while ((pid = launch_reap(&status, &ended_by)) > 0) {
        for (uint32_t i = 0; i < launch->count; i++) {
            struct launch_node *node = &launch->nodes[i];
            if (pid != node->daemon && pid != node->program)
                continue;
            launch_watch_drop(launch->shared.watch, pid);
            if (pid == node->program)
                on_program_ended(launch, node, status, ended_by);
            else
                on_daemon_ended(launch, node, status);
        }
    }
    step(launch);
}

/* ---- stages ---- */

static uint32_t count_of(const struct launch *launch, bool (*is)(const struct launch_node *))
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < launch->count; i++)
        count += is(&launch->nodes[i]);
    return count;
}

static bool is_ready(const struct launch_node *node)
{
    return node->ready;
}

static bool has_program(const struct launch_node *node)
{
    return node->program > 0;
}

static bool has_daemon(const struct launch_node *node)
{
    return node->daemon > 0;
}

static bool prints(const struct launch_node *node)
{
    return node->streams > 0;
}

/* Kill processes that programs have left behind, because they may hold a stream open. */
static void end_orphans(struct launch *launch)
{
    pid_t known[LAUNCH_NODES_MAX];
    size_t count = 0;
    for (uint32_t i = 0; i < launch->count; i++)
        if (launch->nodes[i].daemon > 0)
            known[count++] = launch->nodes[i].daemon;
    launch_kill_adopted(&launch->before, known, count);
}

static void stop_daemons(struct launch *launch)
{
    launch->stage = STOPPING;
    launch_lines_clear(&launch->lines);
    launch_lines_show(&launch->lines, "");
    for (uint32_t i = 0; i < launch->count; i++)
        stop_daemon(&launch->nodes[i]);
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
        launch_node_close(&launch->nodes[i]);
}

static void step(struct launch *launch)
{
    if (launch->stage == STARTING && count_of(launch, is_ready) == launch->count) {
        launch->stage = RUNNING;
        start_all(launch, launch_node_start_program, launch->plan->program[0]);
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

static void on_changed(void *context)
{
    step(context);
}

/* A program that writes on would be ended. A supervisor is told of it by its standard input. */
static void on_unread(void *context)
{
    struct launch *launch = context;
    if (launch->interrupted == 0 && !launch->plan->supervised)
        interrupt(launch, SIGPIPE);
}

/* Only for files that are kept: other daemons have nothing to write. */
static void on_extend(void *context, uint64_t milliseconds)
{
    struct launch *launch = context;
    if (launch->stage != STOPPING || launch->plan->keep == NULL ||
        uv_timer_get_due_in(&launch->grace) >= milliseconds)
        return;
    wait_at_most(launch, milliseconds);
    if (launch->plan->supervised)
        launch_expect_launcher(); /* which may be gone, and the daemons still write */
}

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
        launch_node_init(&launch->nodes[i], &launch->shared, i);
    launch_lines_init(launch->ctl, &launch->lines);
    if (launch->lines.progress || launch->plan->supervised)
        (void)uv_timer_start(&launch->show, on_show, 0, SHOW_MS);
    (void)signal(SIGPIPE, SIG_IGN); /* the daemons write their models without a reader, too */
}

static void finish(struct launch *launch)
{
    for (uint32_t i = 0; i < launch->count; i++)
        launch_node_finish(&launch->nodes[i]);
    sgp_assert(uv_loop_close(&launch->loop) == 0);
    free(launch->nodes);
    launch_children_free(&launch->before);
}

static enum ctl_exit run_loop(
    struct ctl *ctl, const struct launch_plan *plan, const struct launch_watch *watch)
{
    struct launch launch = {.ctl = ctl,
        .plan = plan,
        .count = plan->nodes,
        .nodes = calloc(plan->nodes, sizeof *launch.nodes),
        .orders = {.take = on_orders, .context = &launch},
        .shared = {.plan = plan,
            .watch = watch,
            .lines = &launch.lines,
            .loop = &launch.loop,
            .changed = on_changed,
            .unread = on_unread,
            .extend = on_extend,
            .context = &launch},
        .began = uv_hrtime()};
    if (!launch_adopt(&launch.before) || launch.nodes == NULL) {
        launch_children_free(&launch.before);
        free(launch.nodes);
        return ctl_fail(ctl, CTL_FAILED, "%s", sgp_strerror(-ENOMEM));
    }
    init(&launch);
    int code = plan->supervised ? launch_reader_open(&launch.orders, &launch.loop) : 0;
    if (code < 0) {
        tell(&launch, "standard input: %s", sgp_strerror(code));
        worsen(&launch, CTL_FAILED);
        end_programs(&launch, SIGTERM);
    }
    start_all(&launch, launch_node_start_daemon, "sgpd");
    step(&launch);
    (void)uv_run(&launch.loop, UV_RUN_DEFAULT);
    if (launch.interrupted != 0)
        worsen(&launch, 128 + launch.interrupted);
    if (launch.interrupted == 0 || plan->supervised)
        launch_progress_result(ctl, plan, launch.nodes, seconds_of(&launch));
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
    status = launch_plan_fit(ctl, plan);
    if (status == CTL_DONE)
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

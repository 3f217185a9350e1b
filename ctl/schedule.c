/* SPDX-License-Identifier: Apache-2.0 */
/* The schedule of a configuration, without a daemon: its points as a table, or as a picture.
 *
 * The picture is SVG written directly, as in `sgpctl compare`. It has a panel for the learning
 * rate. If the batch grows, it has a second panel for the batch. */
#include "ctl.h"

#include "../daemon/setup/config.h"

#include "sgp/topology.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define POINTS 21u /* of a table, at equal distances */
#define POINTS_MAX 10000u
#define FINE 400u       /* of a picture */
#define KNOTS_MAX 1000u /* epochs at which a schedule bends or jumps */
#define TICKS 6         /* approximate number of ticks on an axis */
#define WIDTH 440       /* of a panel, in pixels, and around it */
#define HEIGHT 200
#define LEFT 84
#define TOP 40
#define RIGHT 24
#define BELOW 52

struct point {
    double epoch, rate;
    uint32_t batch;
};

struct plan { /* a schedule, and its points in order */
    struct sgp_schedule schedule;
    uint32_t batch; /* initial batch */
    struct point *points;
    size_t count;
};

/* ---- the points ---- */

static void add(struct plan *plan, double epoch)
{
    plan->points[plan->count++] = (struct point){.epoch = epoch,
        .rate = sgp_schedule_rate(&plan->schedule, epoch),
        .batch = sgp_schedule_batch(&plan->schedule, plan->batch, epoch)};
}

/* Where the schedule bends or jumps before its end; KNOTS_MAX at most. */
static size_t find_knots(const struct sgp_schedule *schedule, double knots[KNOTS_MAX])
{
    size_t count = 0;
    double half = schedule->period_epochs / 2;
    if (schedule->warmup_epochs > 0)
        knots[count++] = schedule->warmup_epochs;
    if (sgp_schedule_uses(schedule->kind, SGP_SCHEDULE_MILESTONES))
        for (uint32_t i = 0; i < schedule->milestone_count; i++)
            knots[count++] = schedule->milestones[i];
    if (sgp_schedule_uses(schedule->kind, SGP_SCHEDULE_PERIOD)) {
        double turns = schedule->epochs / half;
        if (sgp_schedule_uses(schedule->kind, SGP_SCHEDULE_END)) /* once */
            turns = fmin(turns, 2);
        for (int i = 1; i <= turns && count < KNOTS_MAX; i++)
            knots[count++] = i * half;
    }
    return count;
}

static int in_order(const void *first, const void *second)
{
    double a = ((const struct point *)first)->epoch, b = ((const struct point *)second)->epoch;
    return (a > b) - (a < b);
}

/* `even` points at equal distances, and the knots. With `jumps` also the point before each knot. */
static bool find_points(struct plan *plan, size_t even, bool jumps)
{
    static double knots[KNOTS_MAX];
    const double end = plan->schedule.epochs;
    size_t count = find_knots(&plan->schedule, knots), kept = 1;
    plan->points = calloc(even + 2 * count, sizeof *plan->points);
    if (plan->points == NULL)
        return false;
    for (size_t i = 0; i < even; i++)
        add(plan, end * (double)i / (double)(even - 1));
    for (size_t i = 0; i < count; i++)
        if (knots[i] < end) {
            add(plan, knots[i]);
            if (jumps)
                add(plan, nextafter(knots[i], 0));
        }
    qsort(plan->points, plan->count, sizeof *plan->points, in_order);
    for (size_t i = 1; i < plan->count; i++)
        if (plan->points[i].epoch > plan->points[kept - 1].epoch)
            plan->points[kept++] = plan->points[i];
    plan->count = kept;
    return true;
}

/* ---- the table ---- */

/* A person sees six digits. */
static double shown(const struct ctl *ctl, double number)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%.6g", number);
    return ctl->json ? number : strtod(text, NULL);
}

static enum ctl_exit print_points(const struct ctl *ctl, const struct plan *plan)
{
    static const char *const keys[] = {"epoch", "rate", "batch"};
    json_t *rows = json_array();
    for (size_t i = 0; i < plan->count; i++) {
        const struct point *point = &plan->points[i];
        (void)json_array_append_new(
            rows, json_pack("{s:f, s:f, s:I}", keys[0], shown(ctl, point->epoch), keys[1],
                      shown(ctl, point->rate), keys[2], (json_int_t)point->batch));
    }
    if (ctl->json)
        return ctl_print_json(
            json_pack("{s:s, s:f, s:o}", "schedule", sgp_schedule_word(plan->schedule.kind),
                "epochs", plan->schedule.epochs, "points", rows));
    ctl_print_aligned(ctl, rows, keys, sizeof keys / sizeof *keys);
    json_decref(rows);
    return CTL_DONE;
}

/* ---- the picture ---- */

struct panel {
    const char *title, *unit;
    double top;  /* pixels */
    double most; /* of the values */
    double (*value)(const struct point *point);
    const char *colour;
};

static double rate_of(const struct point *point)
{
    return point->rate;
}

static double batch_of(const struct point *point)
{
    return point->batch;
}

/* The distance of ticks on an axis from 0 to `most`: 1, 2 or 5 times a power of 10. */
static double tick(double most)
{
    static const double factors[] = {1, 2, 5, 10};
    double least = most / TICKS, step = pow(10, floor(log10(least)));
    size_t i = 0;
    while (i < 3 && step * factors[i] < least * 0.999)
        i++;
    return step * factors[i];
}

static double across(const struct plan *plan, double epoch)
{
    return LEFT + epoch / plan->schedule.epochs * WIDTH;
}

static double down(const struct panel *panel, double value)
{
    return panel->top + HEIGHT * (1 - value / panel->most);
}

static void draw_axes(const struct plan *plan, const struct panel *panel)
{
    const double bottom = panel->top + HEIGHT, middle = panel->top + HEIGHT / 2.0;
    (void)printf("<rect x=\"%d\" y=\"%g\" width=\"%d\" height=\"%d\" class=\"frame\"/>\n", LEFT,
        panel->top, WIDTH, HEIGHT);
    double step = tick(plan->schedule.epochs);
    for (int i = 0; i * step <= plan->schedule.epochs * (1 + 1e-9); i++) {
        double x = across(plan, i * step);
        (void)printf("<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%g\" y2=\"%g\" class=\"grid\"/>"
                     "<text x=\"%.1f\" y=\"%g\" class=\"below\">%.10g</text>\n",
            x, x, panel->top, bottom, x, bottom + 16, i * step);
    }
    step = tick(panel->most);
    for (int i = 0; i * step <= panel->most * (1 + 1e-9); i++) {
        double y = down(panel, i * step);
        (void)printf("<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" class=\"grid\"/>"
                     "<text x=\"%d\" y=\"%.1f\" class=\"beside\">%.10g</text>\n",
            LEFT, LEFT + WIDTH, y, y, LEFT - 6, y + 4, i * step);
    }
    (void)printf(
        "<text x=\"%d\" y=\"%g\" class=\"below\">epoch</text>\n", LEFT + WIDTH / 2, bottom + 34);
    (void)printf("<text x=\"18\" y=\"%g\" class=\"below\" transform=\"rotate(-90 18 %g)\">%s</text>"
                 "\n",
        middle, middle, panel->title);
}

/* A line through the points, without those that lie on it. */
static void draw_line(const struct plan *plan, const struct panel *panel)
{
    double kept = -1;
    (void)printf("<polyline stroke=\"%s\" points=\"", panel->colour);
    for (size_t i = 0; i < plan->count; i++) {
        double y = panel->value(&plan->points[i]);
        bool ends = i == 0 || i + 1 == plan->count;
        if (!ends && y == kept && panel->value(&plan->points[i + 1]) == y)
            continue;
        (void)printf(
            "%s%.1f,%.1f", i > 0 ? " " : "", across(plan, plan->points[i].epoch), down(panel, y));
        kept = y;
    }
    (void)printf("\"/>\n");
}

static enum ctl_exit draw(const struct plan *plan)
{
    struct panel panels[] = {{.title = "learning rate", .value = rate_of, .colour = "#0072b2"},
        {.title = "rows in a step of a node", .value = batch_of, .colour = "#d55e00"}};
    size_t count = plan->points[plan->count - 1].batch > plan->batch ? 2 : 1;
    double height = TOP;
    for (size_t p = 0; p < count; p++) {
        panels[p].top = height;
        for (size_t i = 0; i < plan->count; i++)
            panels[p].most = fmax(panels[p].most, panels[p].value(&plan->points[i]));
        panels[p].most = panels[p].most > 0 ? panels[p].most * 1.05 : 1;
        height += HEIGHT + BELOW;
    }
    (void)printf("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%g\" "
                 "viewBox=\"0 0 %d %g\">\n"
                 "<style>text{font:11px sans-serif}.below{text-anchor:middle}"
                 ".beside{text-anchor:end}.frame{fill:none;stroke:#999}.grid{stroke:#e4e4e4}"
                 "polyline{fill:none;stroke-width:1.8}</style>\n"
                 "<rect width=\"%d\" height=\"%g\" fill=\"white\"/>\n"
                 "<text x=\"%d\" y=\"22\" style=\"font-size:13px\">schedule = %s</text>\n",
        LEFT + WIDTH + RIGHT, height, LEFT + WIDTH + RIGHT, height, LEFT + WIDTH + RIGHT, height,
        LEFT, sgp_schedule_word(plan->schedule.kind));
    for (size_t p = 0; p < count; p++) {
        draw_axes(plan, &panels[p]);
        draw_line(plan, &panels[p]);
    }
    (void)printf("</svg>\n");
    return CTL_DONE;
}

/* ---- the command ---- */

enum { SVG, POINTS_OPTION, ROWS, OPTIONS };

static enum ctl_exit invalid(struct ctl *ctl, const struct sgp_error *error, int code)
{
    return ctl_fail(
        ctl, CTL_INVALID, "%s", error->text[0] != '\0' ? error->text : sgp_strerror(code));
}

/* How many nodes train, if the learning rate depends on that. */
static enum ctl_exit count_trainers(
    struct ctl *ctl, const struct config *config, uint32_t *ret_trainers)
{
    struct sgp_topology *topology;
    if (config->base_batch == 0)
        return CTL_DONE;
    enum ctl_exit status = ctl_read_topology(ctl, config->topology, &topology);
    if (status == CTL_DONE) {
        *ret_trainers = sgp_topology_trainers(topology);
        sgp_topology_destroy(topology);
    }
    return status;
}

static enum ctl_exit make_plan(
    struct ctl *ctl, const struct config *config, uint64_t rows, struct plan *plan)
{
    struct sgp_error error = {0};
    uint32_t trainers = 0;
    if (config->kind == CONFIG_ATTACHED)
        return ctl_fail(ctl, CTL_INVALID,
            "%s: [model] kind = attached: the program sets the learning rate", config->file);
    if (config->rounds > 0 && rows == 0)
        return ctl_usage(ctl, "%s gives rounds; --rows says how many make an epoch", config->file);
    enum ctl_exit status = count_trainers(ctl, config, &trainers);
    if (status != CTL_DONE)
        return status;
    int code = config_schedule(config, rows, trainers, &error, &plan->schedule);
    plan->batch = (uint32_t)config->batch;
    return code < 0 ? invalid(ctl, &error, code) : CTL_DONE;
}

static enum ctl_exit show(struct ctl *ctl, int argc, char **argv)
{
    struct ctl_given given[OPTIONS] = {0};
    struct sgp_error error = {0};
    struct config config;
    struct plan plan = {0};
    uint64_t even = POINTS, rows = 0;
    enum ctl_exit status = ctl_options_take(ctl, &argc, argv, given, OPTIONS, 1, 1);
    if (status == CTL_DONE)
        status = ctl_option_u64(ctl, &given[POINTS_OPTION], 2, POINTS_MAX, &even);
    if (status == CTL_DONE)
        status = ctl_option_u64(ctl, &given[ROWS], 1, SGP_ROWS_MAX, &rows);
    if (status == CTL_DONE && given[SVG].given && ctl->json)
        status = ctl_usage(ctl, "--svg prints a picture, and --json none");
    if (status != CTL_DONE)
        return status;
    int code = config_load(argv[0], &error, &config);
    if (code < 0)
        return invalid(ctl, &error, code);
    status = make_plan(ctl, &config, rows, &plan);
    config_finish(&config);
    if (status == CTL_DONE &&
        !find_points(&plan, given[SVG].given ? FINE + 1 : even, given[SVG].given))
        status = ctl_fail(ctl, CTL_FAILED, "out of memory");
    if (status == CTL_DONE)
        status = given[SVG].given ? draw(&plan) : print_points(ctl, &plan);
    free(plan.points);
    return status;
}

static const struct ctl_option schedule_options[] = {
    [SVG] = {"--svg", .summary = "print a picture as SVG"},
    [POINTS_OPTION] = {"--points", .value = "N",
        .summary = "points evenly apart, 2 to 10000; by default 21"},
    [ROWS] = {"--rows", .value = "N",
        .summary = "rows that the node trains on; needed if the file gives rounds"},
    [OPTIONS] = {0}};

const struct ctl_command ctl_config_schedule_command = {.words = "config schedule",
    .operands = "FILE",
    .summary = "print the learning rate and the batch of a configuration by epoch",
    .help =
        "FILE is a configuration of sgpd. A line for each point: the epoch, the learning rate, "
        "and\n"
        "the rows in a step of the node. Milestones, the end of the warm-up, and the turns of a\n"
        "cycle are points, too. With base_batch the topology file is read for the number of\n"
        "nodes. A batch is printed as the schedule says, also where the node has fewer rows. No\n"
        "daemon is needed.\n"
        "\n"
        "  sgpctl config schedule /etc/sgpd/n0.conf\n"
        "  sgpctl config schedule --svg /etc/sgpd/n0.conf > schedule.svg\n",
    .options = schedule_options,
    .run = show};

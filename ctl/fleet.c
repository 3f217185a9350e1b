/* SPDX-License-Identifier: Apache-2.0 */
/* Shows what all nodes of the fleet say of themselves, as any of them has it. A line has 80
 * columns. */
#include "rollout.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NAME_COLUMNS 10u
#define AGE_COLUMNS 5
#define WAITS_COLUMNS 9u
#define LINE_COLUMNS 80

/* The columns for scripts. */
static const char *const columns[] = {"name", "state", "age", "stale", "round", "rounds", "epoch",
    "loss", "test_loss", "test_accuracy", "weight", "disagreement", "waits_for",
    "rounds_per_second", "samples_per_second", "uptime_seconds", "version", "device", "promised",
    "promised_epsilon", "promised_delta", "signed_version", "vote"};
#define COLUMN_COUNT (sizeof columns / sizeof *columns)

/* The same words as `--sort` and `--state` complete. */
static const char *const sort_keys[] = {
    "name", "state", "age", "round", "loss", "weight", "disagreement", NULL};
#define SORT_WORDS "name state age round loss weight disagreement"
static const char *const states[] = {
    "joining", "training", "settling", "finished", "paused", "draining", "unknown", NULL};
#define STATE_WORDS "joining training settling finished paused draining unknown"

static bool is_one_of(const char *const *words, const char *word)
{
    for (; *words != NULL; words++)
        if (strcmp(*words, word) == 0)
            return true;
    return false;
}

/* What was asked for. */
struct asked {
    const char *sort, *state; /* state: NULL: any */
    bool stale, reverse, watch;
    double interval;
    uint64_t count;
};

static bool is_stale(const json_t *node)
{
    return json_is_true(json_object_get(node, "stale"));
}

static const char *state_of(const json_t *node)
{
    return ctl_text_of(node, "state", "")[0] ? ctl_text_of(node, "state", "") : "unknown";
}

/* ---- order and choice ---- */

static int by_name(const json_t *a, const json_t *b)
{
    return strverscmp(ctl_text_of(a, "name", ""), ctl_text_of(b, "name", "")); /* n2 before n10 */
}

/* Ascending; what is not known comes last, and equal nodes are in the order of names. */
static int compare(const void *left, const void *right, void *context)
{
    const struct asked *asked = context;
    const json_t *a = *(json_t *const *)left, *b = *(json_t *const *)right;
    const double x = ctl_real_of(a, asked->sort), y = ctl_real_of(b, asked->sort);
    int order = 0;
    if (strcmp(asked->sort, "name") == 0)
        order = by_name(a, b);
    else if (strcmp(asked->sort, "state") == 0)
        order = strcmp(state_of(a), state_of(b));
    else if (isnan(x) != isnan(y))
        return isnan(x) ? 1 : -1;
    else
        order = x < y ? -1 : x > y;
    if (order != 0)
        return asked->reverse ? -order : order;
    return by_name(a, b);
}

static bool is_chosen(const struct asked *asked, const json_t *node)
{
    return (!asked->stale || is_stale(node)) &&
           (asked->state == NULL || strcmp(state_of(node), asked->state) == 0);
}

/* The chosen nodes in order, as a new array. */
static json_t *choose(const struct asked *asked, const json_t *nodes)
{
    const size_t most = json_array_size(nodes);
    json_t *chosen = json_array(), **list = calloc(most + 1, sizeof(json_t *)), *node;
    size_t index, count = 0;
    json_array_foreach((json_t *)nodes, index, node) if (list && is_chosen(asked, node))
        list[count++] = node;
    if (list)
        qsort_r(list, count, sizeof *list, compare, (void *)(uintptr_t)asked);
    for (size_t i = 0; i < count; i++)
        (void)json_array_append(chosen, list[i]);
    free(list);
    return chosen;
}

/* ---- signed topology files ---- */

/* The signed version that a node uses; 0: none, or it is not known. */
static uint64_t signed_version(const json_t *node)
{
    const double version = ctl_real_of(json_object_get(node, "rollout"), "active");
    return version > 0 ? (uint64_t)version : 0;
}

/* The latest version that a node of which a fresh row has come uses. */
static uint64_t latest_version(const json_t *nodes)
{
    uint64_t latest = 0;
    size_t index;
    json_t *node;
    json_array_foreach((json_t *)nodes, index, node) latest =
        !is_stale(node) && signed_version(node) > latest ? signed_version(node) : latest;
    return latest;
}

/* The rollout that is under way, as the daemon tells it; NULL: none is. The caller releases it. */
static json_t *rollout_under_way(struct ctl *ctl, const json_t *nodes)
{
    json_t *rollout = NULL, *node;
    size_t index;
    bool proposed = false;
    json_array_foreach((json_t *)nodes, index, node) proposed =
        proposed || json_is_integer(json_object_get(json_object_get(node, "rollout"), "proposed"));
    if (!proposed || ctl_rollout_ask(ctl, true, &rollout) != CTL_DONE)
        return NULL;
    if (ctl_rollout_version(rollout, "proposed") > 0) {
        (void)json_object_del(rollout, "nodes"); /* as those of the fleet */
        return rollout;
    }
    json_decref(rollout);
    return NULL;
}

/* "version 7 is proposed: 11 of 12 accept it, waits for n3". */
static void print_rollout(const struct ctl *ctl, const json_t *rollout, size_t nodes)
{
    const uint64_t version = ctl_rollout_version(rollout, "proposed");
    const double refused = ctl_real_of(rollout, "refused");
    char waits[CTL_CELL_BYTES], line[SGP_TEXT_BYTES];
    ctl_cell(ctl, "", json_object_get(rollout, "waits_for"), waits);
    if (json_is_true(json_object_get(rollout, "fork")))
        (void)snprintf(line, sizeof line,
            "two files have version %" PRIu64 ": neither is used; push one again", version);
    else
        (void)snprintf(line, sizeof line,
            "version %" PRIu64 " is proposed: %.0f of %zu accept it%s%s", version,
            ctl_real_of(rollout, "accepted"), nodes,
            strcmp(waits, "-") == 0 ? ""
            : refused > 0           ? ", refused: waits for "
                                    : ", waits for ",
            strcmp(waits, "-") == 0 ? "" : waits);
    (void)printf("%.*s\n", LINE_COLUMNS, line);
}

/* "version 7 is in use; another one at n3 (6), n5 (6)"; nothing if all use the same. */
static void print_others(const json_t *nodes)
{
    const uint64_t latest = latest_version(nodes);
    size_t index, others = 0;
    json_t *node;
    int used = 0;
    json_array_foreach((json_t *)nodes, index, node)
    {
        char text[SGP_NAME_BYTES + 32];
        if (signed_version(node) == 0 || signed_version(node) == latest)
            continue;
        if (others++ == 0)
            used = printf("version %" PRIu64 " is in use; another one at", latest);
        const int bytes = snprintf(text, sizeof text, "%s %.64s (%" PRIu64 ")",
            others > 1 ? "," : "", ctl_text_of(node, "name", "?"), signed_version(node));
        if (used + bytes > LINE_COLUMNS - 5)
            used = LINE_COLUMNS; /* no more of them */
        else
            used += printf("%s", text);
    }
    if (others > 0)
        (void)puts(used == LINE_COLUMNS ? ", ..." : "");
}

/* ---- a terminal ---- */

/* "12s", "3m", "5h", "2d", with "!" behind it if the row is stale. */
static void print_age(const json_t *node, int width)
{
    static const struct {
        double seconds;
        char unit;
    } units[] = {{86400, 'd'}, {3600, 'h'}, {60, 'm'}, {0, 's'}};
    const double age = ctl_real_of(node, "age");
    char text[32] = "-";
    size_t i = 0;
    while (units[i].seconds > 0 && age < 2 * units[i].seconds)
        i++;
    const double unit = units[i].seconds > 0 ? units[i].seconds : 1;
    if (!isnan(age))
        (void)snprintf(text, sizeof text, "%.0f%c%s", floor(age / unit), units[i].unit,
            is_stale(node) ? "!" : "");
    (void)printf("%*s", width, text);
}

static void print_node(const struct ctl *ctl, const json_t *node, bool classifies)
{
    const json_t *peer = json_object_get(json_object_get(node, "waiting"), "peer");
    ctl_print_text(ctl, json_object_get(node, "name"), NAME_COLUMNS);
    (void)printf(" %-9.9s", state_of(node));
    print_age(node, AGE_COLUMNS);
    ctl_print_number(ctl_real_of(node, "round"), 9, 3);
    ctl_print_number(ctl_real_of(node, "loss"), 9, 3);
    ctl_print_number(ctl_real_of(node, classifies ? "test_accuracy" : "test_loss"), 10, 4);
    ctl_print_number(ctl_real_of(node, "weight"), 8, 3);
    ctl_print_number(ctl_real_of(node, "disagreement"), 9, 2);
    if (json_is_string(peer)) {
        (void)putchar(' ');
        ctl_print_text(ctl, peer, WAITS_COLUMNS);
    }
    (void)putchar('\n');
}

/* "12 nodes: 10 training, 1 finished, 1 stale; rounds 80 to 95". All nodes, not only the chosen. */
static void print_sum(const json_t *nodes)
{
    size_t index, stale = 0;
    json_t *node;
    double least = (double)NAN, most = (double)NAN;
    const char *before = ":";
    json_array_foreach((json_t *)nodes, index, node)
    {
        stale += is_stale(node);
        least = is_stale(node) ? least : fmin(least, ctl_real_of(node, "round"));
        most = is_stale(node) ? most : fmax(most, ctl_real_of(node, "round"));
    }
    (void)printf("%zu nodes", json_array_size(nodes));
    for (const char *const *state = states; *state != NULL; state++) {
        size_t count = 0;
        json_array_foreach((json_t *)nodes, index, node) count +=
            !is_stale(node) && strcmp(state_of(node), *state) == 0;
        if (count > 0)
            (void)printf("%s %zu %s", before, count, *state);
        before = count > 0 ? "," : before;
    }
    if (stale > 0)
        (void)printf("%s %zu stale", before, stale);
    if (!isnan(least))
        (void)printf("; rounds %.0f to %.0f", least, most);
    (void)putchar('\n');
}

static void print_screen(
    const struct ctl *ctl, const json_t *nodes, const json_t *chosen, const json_t *rollout)
{
    size_t index;
    json_t *node;
    bool classifies = false;
    json_array_foreach((json_t *)nodes, index, node) classifies =
        classifies || json_is_number(json_object_get(node, "test_accuracy"));
    if (rollout != NULL)
        print_rollout(ctl, rollout, json_array_size(nodes));
    print_others(nodes);
    (void)printf("%-*s %-9s%*s%9s%9s%10s%8s%9s %s\n", (int)NAME_COLUMNS, "node", "state",
        AGE_COLUMNS, "age", "round", "loss", classifies ? "test acc" : "test loss", "weight",
        "disagree", "waits for");
    json_array_foreach((json_t *)chosen, index, node) print_node(ctl, node, classifies);
    print_sum(nodes);
}

/* ---- scripts ---- */

static void print_columns(const struct ctl *ctl, const json_t *chosen)
{
    json_t *rows = json_array(), *node;
    size_t index;
    json_array_foreach((json_t *)chosen, index, node)
    {
        json_t *row = json_copy(node), *waiting = json_object_get(node, "waiting");
        json_t *peer = json_object_get(waiting, "peer");
        (void)json_object_set_new(row, "waits_for", peer ? json_incref(peer) : json_null());
        const json_t *rollout = json_object_get(node, "rollout");
        (void)json_object_set(row, "signed_version", json_object_get(rollout, "active"));
        (void)json_object_set(row, "vote", json_object_get(rollout, "vote"));
        (void)json_array_append_new(rows, row);
    }
    ctl_print_table(ctl, rows, columns, COLUMN_COUNT);
    json_decref(rows);
}

static enum ctl_exit show(struct ctl *ctl, const struct asked *asked, bool first)
{
    const struct ctl_request request = {.method = "GET", .path = "/v1/fleet"};
    json_t *fleet;
    enum ctl_exit status = ctl_ask_json(ctl, &request, &fleet);
    if (status != CTL_DONE)
        return status;
    const json_t *nodes = json_object_get(fleet, "nodes");
    json_t *chosen = choose(asked, nodes), *rollout = rollout_under_way(ctl, nodes);
    if (ctl->json) {
        (void)json_object_set_new(fleet, "rollout", rollout != NULL ? rollout : json_null());
        (void)json_object_set_new(fleet, "nodes", chosen);
        return ctl_print_json(fleet);
    }
    if (asked->watch && ctl->terminal)
        (void)fputs("\x1b[H\x1b[J", stdout); /* the same place, without flicker */
    if (!ctl->terminal && !first)
        (void)putchar('\n');
    if (ctl->terminal)
        print_screen(ctl, nodes, chosen, rollout);
    else
        print_columns(ctl, chosen);
    json_decref(rollout);
    json_decref(chosen);
    json_decref(fleet);
    return CTL_DONE;
}

static const struct ctl_option fleet_options[] = {
    {"--sort", .value = "KEY",
        .summary = "order the nodes by name (by default), state, age, round, loss, weight or "
                   "disagreement; what is not known comes last",
        .words = SORT_WORDS},
    {"--reverse", .summary = "the greatest first"},
    {"--state", .value = "STATE", .summary = "only nodes in this state, or unknown",
        .words = STATE_WORDS},
    {"--stale", .summary = "only nodes of which no fresh row has come"},
    {"--watch", .summary = "look again and again, until interrupted"},
    {"--interval", .value = "S", .summary = "seconds between two looks, 0.1 to 3600 (1)"},
    {"--count", .value = "N", .summary = "with --watch: look N times, then end"}, {0}};
#define OPTION_COUNT (sizeof fleet_options / sizeof *fleet_options - 1)

static enum ctl_exit take(struct ctl *ctl, int *argc, char **argv, struct asked *asked)
{
    struct ctl_given options[OPTION_COUNT] = {0};
    enum ctl_exit status = ctl_options_take(ctl, argc, argv, options, OPTION_COUNT, 0, 0);
    if (status == CTL_DONE)
        status = ctl_option_real(ctl, &options[5], 0.1, 3600, &asked->interval);
    if (status == CTL_DONE)
        status = ctl_option_u64(ctl, &options[6], 1, UINT64_MAX, &asked->count);
    if (status != CTL_DONE)
        return status;
    asked->sort = options[0].given ? options[0].value : asked->sort;
    asked->state = options[2].given ? options[2].value : NULL;
    asked->reverse = options[1].given;
    asked->stale = options[3].given;
    asked->watch = options[4].given;
    if (!asked->watch && (options[5].given || options[6].given))
        return ctl_usage(ctl, "--interval and --count go with --watch");
    if (!is_one_of(sort_keys, asked->sort))
        return ctl_usage(ctl, "--sort takes one of %s, not '%s'", SORT_WORDS, asked->sort);
    if (asked->state && !is_one_of(states, asked->state))
        return ctl_usage(ctl, "--state takes one of %s, not '%s'", STATE_WORDS, asked->state);
    asked->count = asked->watch ? asked->count : 1;
    return CTL_DONE;
}

static enum ctl_exit run_fleet(struct ctl *ctl, int argc, char **argv)
{
    struct asked asked = {.sort = "name", .interval = 1, .count = UINT64_MAX};
    enum ctl_exit status = take(ctl, &argc, argv, &asked);
    for (uint64_t i = 0; status == CTL_DONE && i < asked.count; i++) {
        const double whole = floor(asked.interval);
        const struct timespec pause = {
            .tv_sec = (time_t)whole, .tv_nsec = (long)((asked.interval - whole) * 1e9)};
        if (i > 0)
            (void)nanosleep(&pause, NULL);
        status = show(ctl, &asked, i == 0);
        if (fflush(stdout) != 0) /* the reader of the pipe has ended */
            break;
    }
    return status;
}

const struct ctl_command ctl_fleet_command = {.words = "fleet",
    .operands = "",
    .options = fleet_options,
    .summary = "show all nodes of the fleet, as this node has heard of them",
    .help =
        "Every node tells the others about itself, so any node can show the whole fleet. The age "
        "is\n"
        "how long ago a node said what is shown. An age with ! is stale: no node has a fresh row, "
        "so\n"
        "the node may be down, or cut off from here. A node of which nothing has come is unknown.\n"
        "\n"
        "A terminal gets a table of 80 columns, and a script columns that are separated by tabs.\n"
        "With --json every look is one line: the answer of GET /v1/fleet with the chosen nodes.\n"
        "\n"
        "Where administrators sign the topology file, lines above the table say which version is\n"
        "proposed, how many nodes accept it and for which it waits, and which nodes use another\n"
        "version than the latest. For scripts they are the columns signed_version and vote, and\n"
        "with --json the member `rollout`, null if no version is proposed.\n",
    .run = run_fleet};

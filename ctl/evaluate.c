/* SPDX-License-Identifier: Apache-2.0 */
/* How good the model is: of one node now, of all nodes now, and of all nodes at the end. */
#include "measures.h"

/* The figures of all rows as lines; on a terminal those of each class follow as tables. */
static void print_measures(const struct ctl *ctl, json_t *answer)
{
    json_t *measures = json_incref(json_object_get(answer, "measures")), *value;
    const char *key;
    (void)json_object_del(answer, "measures");
    json_object_foreach(measures, key, value)
    {
        if (json_is_real(value))
            (void)json_object_set(answer, key, value);
    }
    ctl_print_object(ctl, answer);
    if (ctl->terminal)
        ctl_measures_print(measures, stdout);
    json_decref(measures);
}

/* The rounds of the models that were measured: one, or the first and the last. */
static json_t *rounds_json(const json_t *rounds)
{
    const json_int_t least = json_integer_value(json_array_get(rounds, 0));
    const json_int_t most = json_integer_value(json_array_get(rounds, 1));
    if (!json_is_array(rounds))
        return json_null();
    return least == most ? json_integer(least)
                         : json_sprintf("%lld to %lld", (long long)least, (long long)most);
}

static enum ctl_exit print_fleet(struct ctl *ctl, const struct ctl_request *request)
{
    static const char *const keys[] = {"name", "state", "round", "rows"};
    json_t *answer;
    const enum ctl_exit status = ctl_ask_json(ctl, request, &answer);
    if (status != CTL_DONE)
        return status;
    if (ctl->json)
        return ctl_print_json(answer);
    json_t *nodes = json_incref(json_object_get(answer, "nodes"));
    (void)json_object_del(answer, "nodes");
    (void)json_object_set_new(answer, "rounds", rounds_json(json_object_get(answer, "rounds")));
    ctl_print_aligned(ctl, nodes, keys, sizeof keys / sizeof *keys);
    (void)putchar('\n');
    print_measures(ctl, answer);
    json_decref(nodes);
    json_decref(answer);
    return CTL_DONE;
}

static enum ctl_exit evaluate_fleet(struct ctl *ctl, uint64_t seconds)
{
    char path[64];
    const struct ctl_request request = {.method = "POST", .path = path, .patient = true};
    (void)snprintf(
        path, sizeof path, "/v1/evaluate/fleet?seconds=%llu", (unsigned long long)seconds);
    return print_fleet(ctl, &request);
}

static enum ctl_exit evaluate_node(struct ctl *ctl)
{
    const struct ctl_request request = {.method = "POST", .path = "/v1/evaluate", .patient = true};
    json_t *answer;
    const enum ctl_exit status = ctl_ask_json(ctl, &request, &answer);
    if (status != CTL_DONE)
        return status;
    if (ctl->json)
        return ctl_print_json(answer);
    print_measures(ctl, answer);
    json_decref(answer);
    return CTL_DONE;
}

enum { FLEET, TIMEOUT, OPTIONS };
static const struct ctl_option evaluate_options[] = {
    [FLEET] = {"--fleet", .summary = "all nodes measure their models, and the counts are added up"},
    [TIMEOUT] = {"--timeout", .value = "S",
        .summary = "with --fleet: wait at most S seconds for all (10 by default, at most 300)"},
    {0}};

static enum ctl_exit evaluate(struct ctl *ctl, int argc, char **argv)
{
    struct ctl_given given[OPTIONS] = {0};
    uint64_t seconds = 10;
    enum ctl_exit status = ctl_options_take(ctl, &argc, argv, given, OPTIONS, 0, 0);
    if (status == CTL_DONE)
        status = ctl_option_u64(ctl, &given[TIMEOUT], 1, 300, &seconds);
    if (status == CTL_DONE && given[TIMEOUT].given && !given[FLEET].given)
        return ctl_usage(ctl, "--timeout is for --fleet");
    if (status != CTL_DONE)
        return status;
    return given[FLEET].given ? evaluate_fleet(ctl, seconds) : evaluate_node(ctl);
}

static enum ctl_exit report(struct ctl *ctl, int argc, char **argv)
{
    const struct ctl_request request = {.method = "GET", .path = "/v1/report", .patient = true};
    const enum ctl_exit status = ctl_options_take(ctl, &argc, argv, NULL, 0, 0, 0);
    return status == CTL_DONE ? print_fleet(ctl, &request) : status;
}

const struct ctl_command ctl_evaluate_command = {.words = "evaluate",
    .operands = "",
    .options = evaluate_options,
    .summary = "measure the model on the held-out rows now",
    .help =
        "Prints loss and accuracy, log loss, F1, AUC and calibration, or R2 and errors of "
        "numbers.\n"
        "A terminal also gets the figures of each class and the confusion matrix, and --json\n"
        "an object `measures`, for a model of at most 100 outputs.\n"
        "\n"
        "A program that has the model measures it between two of its steps, if it was attached "
        "with\n"
        "on_evaluate.\n"
        "\n"
        "After training with keep_best the best model is measured, which all nodes keep: `best`\n"
        "is true then, and `round` is that model's. Otherwise it is the present model.\n"
        "\n"
        "With --fleet every node that trains measures its own model on its own held-out rows, and\n"
        "tells the counts to all nodes. The answer adds them up, and names the nodes that have\n"
        "not told in time (silent). While the fleet trains, these are different models: `rounds`\n"
        "is the range of their rounds. No row leaves its machine.\n",
    .run = evaluate};

const struct ctl_command ctl_report_command = {.words = "report",
    .operands = "",
    .summary = "how good the final model is on the held-out rows of all nodes",
    .help =
        "When a node has finished, it measures the final model on its held-out rows, and tells "
        "the\n"
        "counts to all nodes. With keep_best that is the best model, and `best` is true. The\n"
        "answer adds the counts up. It names the nodes that have not told (silent), and is equal\n"
        "on all nodes once all have. It is kept in the state directory (report.json). The figures\n"
        "are those of `evaluate`. Before any node has finished the command ends with 1.\n",
    .run = report};

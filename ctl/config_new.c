/* SPDX-License-Identifier: Apache-2.0 */
/* sgpctl config new: writes the configuration of one node from its rows and the topology file; see
 * config_new.h. */
#include "config_new.h"
#include "line.h"

#include "sgp/best.h"
#include "sgp/method.h"
#include "sgp/model.h"

#include <string.h>

#define BEST_CYCLES 10u /* from one evaluation to the next; one of them takes no steps */
#define BEST_PATIENCE 10u

/* ---- the answer ---- */

static json_t *left_out_json(const struct ctl_rows *rows)
{
    json_t *names = json_array();
    for (uint32_t i = 0; i < rows->description->column_count; i++) {
        const struct sgp_column *column = &rows->description->columns[i];
        if (column != rows->label && !ctl_rows_uses(rows, column))
            (void)json_array_append_new(names, ctl_json_text(column->name));
    }
    return names;
}

static enum ctl_exit answer(const struct ctl_draft *draft)
{
    json_t *left_out = left_out_json(&draft->rows);
    if (draft->ctl->json)
        return ctl_print_json(json_pack("{s:o, s:o, s:b, s:o}", "file", ctl_json_text(draft->file),
            "scale", ctl_json_text(draft->scale), "scale_made", (int)draft->scale_made, "left_out",
            left_out));
    char cell[CTL_CELL_BYTES];
    ctl_cell(draft->ctl, "left_out", left_out, cell);
    (void)printf("%s: written; next: sgpd --check -c ", draft->file);
    ctl_put_word(draft->file, stdout);
    (void)putchar('\n');
    if (draft->scale_made)
        (void)printf("%s: computed from the rows of this node; copy it to all nodes before they "
                     "start\n",
            draft->scale);
    else if (ctl_draft_has_scale_file(draft))
        (void)printf("%s: used as it is\n", draft->scale);
    else if (ctl_draft_has_scale_of_fleet(draft))
        (void)printf("the nodes agree on the scaling when they start; no file has to be copied\n");
    if ((draft->scale_made || ctl_draft_has_scale_of_fleet(draft)) && json_array_size(left_out) > 0)
        (void)printf("left out of the features: %s; sgpctl data describe says why\n", cell);
    json_decref(left_out);
    return CTL_DONE;
}

/* --epochs, or as many as ctl_draft_epochs says. */
static enum ctl_exit take_epochs(struct ctl_draft *draft)
{
    const double kept = (double)draft->rows.description->rows * (1 - draft->holdout);
    draft->epochs = ctl_draft_epochs(draft, kept);
    return ctl_option_u64(draft->ctl, &draft->given[NEW_EPOCHS], 1, CTL_EPOCHS_MAX, &draft->epochs);
}

/* The number of features does not matter for the names of layers. Layers that take no single
 * feature are left to sgpd --check. */
static enum ctl_exit check_local(const struct ctl_draft *draft)
{
    const struct ctl_given *local = &draft->given[NEW_LOCAL];
    char layers[CTL_DRAFT_LAYERS_BYTES];
    struct sgp_error why = {0};
    struct sgp_model model;
    if (!local->given ||
        sgp_model_init(&model, ctl_draft_layers(draft, layers), SGP_LOSS_MSE, 1, &why) < 0 ||
        sgp_model_set_local(&model, local->value, &why) == 0)
        return CTL_DONE;
    return ctl_fail(draft->ctl, CTL_INVALID, "--local: %s", why.text);
}

/* What a daemon would refuse. */
static enum ctl_exit check_best(const struct ctl_draft *draft)
{
    const enum sgp_best_measure measure = sgp_best_measure_find(draft->keep_best);
    const enum sgp_measures_kind kind =
        ctl_rows_classify(&draft->rows) ? SGP_MEASURES_LOGITS : SGP_MEASURES_NUMBERS;
    const char *why = sgp_method_lacks_best(sgp_method_find(draft->algorithm));
    if (measure == 0)
        return ctl_usage(draft->ctl,
            "--keep-best is one of " SGP_BEST_MEASURE_WORDS ", and not '%s'", draft->keep_best);
    if (!sgp_best_suits(measure, kind))
        return ctl_fail(draft->ctl, CTL_INVALID,
            "--keep-best %s does not go with the label %.80s; choose %s", draft->keep_best,
            draft->rows.label->name, sgp_best_suiting(kind));
    if (why != NULL)
        return ctl_fail(draft->ctl, CTL_INVALID,
            "--keep-best: with algorithm %s %s; choose " SGP_METHODS_WITH_BEST, draft->algorithm,
            why);
    return CTL_DONE;
}

/* The best model instead of the last one. */
static enum ctl_exit take_best(struct ctl_draft *draft)
{
    struct ctl *ctl = draft->ctl;
    const struct ctl_given *given = draft->given;
    const uint64_t cycle = (uint64_t)draft->topology->rounds_per_cycle;
    if (!given[NEW_KEEP_BEST].given) {
        const bool none = !given[NEW_EVALUATE_EVERY].given && !given[NEW_BEST_PATIENCE].given;
        return none ? CTL_DONE
                    : ctl_usage(ctl, "--evaluate-every and --best-patience are for --keep-best");
    }
    draft->keep_best = given[NEW_KEEP_BEST].value;
    draft->evaluate_every = BEST_CYCLES * cycle;
    draft->best_patience = BEST_PATIENCE;
    enum ctl_exit status = check_best(draft);
    if (status == CTL_DONE)
        status = ctl_option_u64(
            ctl, &given[NEW_EVALUATE_EVERY], 2 * cycle, 1000000000000, &draft->evaluate_every);
    if (status == CTL_DONE)
        status = ctl_option_u64(ctl, &given[NEW_BEST_PATIENCE], 0, 1000000, &draft->best_patience);
    return status;
}

/* The configuration must hold what it is to say. */
static enum ctl_exit check_lines(const struct ctl_draft *draft)
{
    const struct ctl_given *given = draft->given;
    const struct {
        const char *option, *key, *value;
    } lines[] = {{"--topology", "file", draft->topology_path}, {"--scale", "scale", draft->scale},
        {"--listen", "listen", draft->listen},
        {"--state-directory", "state_directory", given[NEW_STATE].value},
        {"--socket", "socket", given[NEW_SOCKET].value}};
    enum ctl_exit status = CTL_DONE;
    for (size_t i = 0; i < sizeof lines / sizeof *lines && status == CTL_DONE; i++)
        if (lines[i].value != NULL)
            status = ctl_line_check(draft->ctl, lines[i].option, lines[i].key, lines[i].value);
    return status;
}

static enum ctl_exit config_new(struct ctl *ctl, int argc, char **argv)
{
    struct ctl_draft draft = {.ctl = ctl};
    enum ctl_exit status = ctl_options_take(ctl, &argc, argv, draft.given, NEW_COUNT, 1, 1);
    draft.file = argv[0];
    if (status == CTL_DONE)
        status = ctl_draft_take_numbers(&draft);
    if (status == CTL_DONE)
        status = ctl_draft_refuse_existing(&draft);
    if (status == CTL_DONE)
        status = ctl_draft_ask(&draft);
    if (status == CTL_DONE)
        status = take_epochs(&draft);
    if (status == CTL_DONE)
        status = check_local(&draft);
    if (status == CTL_DONE)
        status = take_best(&draft);
    if (status == CTL_DONE)
        status = ctl_draft_find_scale(&draft);
    if (status == CTL_DONE)
        status = check_lines(&draft);
    if (status == CTL_DONE) {
        ctl_draft_choose_rule(&draft, ctl_draft_scales_all(&draft));
        status = ctl_draft_write(&draft);
    }
    if (status == CTL_DONE)
        status = answer(&draft);
    ctl_rows_finish(&draft.rows);
    sgp_topology_destroy(draft.topology);
    return status;
}

static const struct ctl_option config_new_options[NEW_COUNT + 1] = {
    [NEW_DATA] = {"--data", .value = "FILE", .summary = "the CSV file with the rows of this node"},
    [NEW_LABEL] = {"--label", .value = "COLUMN", .summary = "the column to predict"},
    [NEW_CLASSES] = {"--classes", .value = "NAMES",
        .summary = "the classes of the label on all nodes, separated by blanks. Default: those of "
                   "the rows of this node"},
    [NEW_TOPOLOGY] = {"--topology", .value = "FILE", .summary = "the topology file"},
    [NEW_IGNORE] = {"--ignore", .value = "COLUMNS",
        .summary = "columns that are to be no features, separated by commas"},
    [NEW_SCALE] = {"--scale", .value = "FILE",
        .summary = "the scaling file, which is computed from the rows if it is not there; fleet: "
                   "no file, the nodes agree when they start; or none. Default: scale.json beside "
                   "the configuration"},
    [NEW_SHARDS] = {"--shards", .value = "HOW",
        .summary = "which rows of the file are this node's. Default: none, all of them",
        .words = "none round-robin contiguous sorted dirichlet:"},
    [NEW_HOLDOUT] = {"--holdout", .value = "PART",
        .summary = "the part of the rows that is kept for testing. Default: 0.2"},
    [NEW_LAYERS] = {"--layers", .value = "LAYERS",
        .summary = "the layers of the model. Default: dense 32 relu, and one dense unit for each "
                   "output"},
    [NEW_LOCAL] = {"--local", .value = "LAYERS",
        .summary = "layers that this node trains alone and never sends, such as head. Default: all "
                   "layers are shared"},
    [NEW_EPOCHS] = {"--epochs", .value = "COUNT",
        .summary = "passes over the rows. Default: 20, or as many as make 1000 steps"},
    [NEW_KEEP_BEST] = {"--keep-best", .value = "MEASURE",
        .summary = "keep the best model by this measure of the held-out rows of all nodes. "
                   "Default: the last model is kept",
        .words = "accuracy log_loss absolute_error squared_error"},
    [NEW_EVALUATE_EVERY] = {"--evaluate-every", .value = "ROUNDS",
        .summary = "with --keep-best: rounds from one evaluation to the next. Default: 10 cycles "
                   "of the topology file"},
    [NEW_BEST_PATIENCE] = {"--best-patience", .value = "COUNT",
        .summary = "with --keep-best: all nodes stop after so many evaluations without a better "
                   "model; 0: never. Default: 10"},
    [NEW_BATCH] = {"--batch", .value = "ROWS", .summary = "rows of a step. Default: 32"},
    [NEW_RATE] = {"--learning-rate", .value = "RATE",
        .summary = "step size. Default: 0.02 with momentum; 0.005 with Adam, which is taken if "
                   "columns or the label are not scaled"},
    [NEW_ALGORITHM] = {"--algorithm", .value = "NAME",
        .summary = "how nodes train together. Default: the first that the topology file takes",
        .words = SGP_METHOD_NAMES(" ")},
    [NEW_LISTEN] = {"--listen", .value = "ADDRESS",
        .summary = "HOST:PORT to listen on. Default: the address in the topology file"},
    [NEW_STATE] = {"--state-directory", .value = "DIRECTORY",
        .summary = "where the model and the history are written. Default: /var/lib/sgpd/NAME"},
    [NEW_SOCKET] = {"--socket", .value = "FILE",
        .summary = "the control socket. Default: /run/sgpd/NAME/control.sock"},
    [NEW_FORCE] = {"--force", .summary = "replace FILE if it is there"},
};

const struct ctl_command ctl_config_new_command = {.words = "config new",
    .operands = "FILE",
    .options = config_new_options,
    .summary = "write the configuration of a node from its rows and the topology file",
    .help =
        "Writes FILE with a comment above each key; the node is named by -n. If --data, --label,\n"
        "--topology or -n is missing and standard input is a terminal, the command asks for it.\n"
        "\n"
        "  sgpctl -n n0 config new /etc/sgpd/n0.conf --data /srv/sgpd/rows.csv \\\n"
        "    --label diagnosis --topology /etc/sgpd/fleet.dot\n"
        "\n"
        "The columns are described as by `sgpctl data describe`: columns of kind number and\n"
        "category become features. All nodes need the same scaling. With --scale fleet they agree\n"
        "on it when they start, and no file has to be copied. Otherwise the first node computes a\n"
        "scaling file; copy it beside the configuration of each other node before you run this\n"
        "command there. No file is overwritten without --force, and a scaling file never.\n",
    .run = config_new};

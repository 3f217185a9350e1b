/* SPDX-License-Identifier: Apache-2.0 */
/* sgpctl config new: writes the configuration of one node from its rows and the topology file.
 *
 * What the command line leaves out is asked for if standard input is a terminal. The text is read
 * by the reader of configurations before it appears under its name, and no file is overwritten
 * without --force. */
#include "rows.h"

#include "../daemon/setup/config.h"

#include "sgp/method.h"
#include "sgp/topology.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ANSWER_BYTES 4096u
#define EPOCHS 20u
#define BATCH 32u
#define HOLDOUT 0.2

enum {
    DATA,
    LABEL,
    TOPOLOGY,
    IGNORE,
    SCALE,
    SHARDS,
    HOLD_OUT,
    LAYERS,
    OPTION_EPOCHS,
    OPTION_BATCH,
    RATE,
    ALGORITHM,
    LISTEN,
    STATE,
    SOCKET,
    FORCE,
    COUNT
};

/* The configuration that is being made. */
struct draft {
    struct ctl *ctl;
    struct ctl_given given[COUNT];
    const char *file;
    struct ctl_rows rows;
    struct sgp_topology *topology;
    char topology_path[PATH_MAX], scale_path[PATH_MAX];
    const struct sgp_topology_node *node;
    const char *algorithm, *listen;
    uint64_t epochs, batch;
    double rate, holdout;
    bool scale_made;
};

/* ---- questions ---- */

/* Ask for an option that is not given. Without a terminal that is a wrong command line. */
static enum ctl_exit ask(struct draft *draft, struct ctl_given *option, const char *question)
{
    struct ctl *ctl = draft->ctl;
    if (option->given)
        return CTL_DONE;
    if (isatty(STDIN_FILENO) != 1)
        return ctl_usage(ctl, "%s is missing: %s", option->name, question);
    char *answer = malloc(ANSWER_BYTES); /* kept until the process ends */
    (void)fprintf(stderr, "%s: ", question);
    if (!answer || !fgets(answer, ANSWER_BYTES, stdin))
        return ctl_usage(ctl, "%s is missing: %s", option->name, question);
    answer[strcspn(answer, "\r\n")] = '\0';
    if (answer[0] == '\0')
        return ctl_usage(ctl, "%s is missing: %s", option->name, question);
    option->given = true;
    option->value = answer;
    return CTL_DONE;
}

/* ---- the rows ---- */

static enum ctl_exit ask_label(struct draft *draft)
{
    struct ctl_rows rows;
    char question[SGP_TEXT_BYTES / 2] = "the column to predict, one of";
    if (draft->given[LABEL].given)
        return CTL_DONE;
    enum ctl_exit status = ctl_rows_read(draft->ctl, draft->given[DATA].value, NULL, NULL, &rows);
    if (status != CTL_DONE)
        return status;
    for (uint32_t i = 0; i < rows.description->column_count; i++) {
        const size_t used = strlen(question);
        (void)snprintf(question + used, sizeof question - used, "%s %s", i > 0 ? "," : "",
            rows.description->columns[i].name);
    }
    ctl_rows_finish(&rows);
    return ask(draft, &draft->given[LABEL], question);
}

static enum ctl_exit read_rows(struct draft *draft)
{
    struct sgp_error why = {0};
    enum ctl_exit status =
        ask(draft, &draft->given[DATA], "the CSV file with the rows of this node");
    if (status == CTL_DONE)
        status = ask_label(draft);
    if (status == CTL_DONE)
        status = ctl_rows_read(draft->ctl, draft->given[DATA].value, draft->given[LABEL].value,
            draft->given[IGNORE].value, &draft->rows);
    if (status != CTL_DONE)
        return status;
    if (ctl_rows_refuse(&draft->rows, &why))
        return ctl_fail(draft->ctl, CTL_INVALID, "%s", why.text);
    return CTL_DONE;
}

/* The scaling file that --scale names, or scale.json beside the configuration. */
static enum ctl_exit find_scale(struct draft *draft)
{
    const struct ctl_given *option = &draft->given[SCALE];
    const char *slash = strrchr(draft->file, '/');
    char path[PATH_MAX], directory[PATH_MAX];
    int length = option->given ? snprintf(path, sizeof path, "%s", option->value)
                               : snprintf(path, sizeof path, "%.*sscale.json",
                                     slash ? (int)(slash + 1 - draft->file) : 0, draft->file);
    if (length < 0 || (size_t)length >= sizeof path)
        return ctl_usage(draft->ctl, "the path of the scaling file is too long");
    if (strcmp(path, "none") == 0) {
        (void)strcpy(draft->scale_path, path);
        return CTL_DONE;
    }
    /* The directory exists, the file may not. */
    slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    (void)snprintf(directory, sizeof directory, "%.*s", slash ? (int)(slash + 1 - path) : 1,
        slash ? path : ".");
    char *whole = realpath(directory, NULL);
    if (!whole)
        return ctl_fail(draft->ctl, CTL_FAILED, "%s: %s", directory, strerror(errno));
    length = snprintf(draft->scale_path, sizeof draft->scale_path, "%s/%s",
        strcmp(whole, "/") == 0 ? "" : whole, name);
    free(whole);
    if (length < 0 || (size_t)length >= sizeof draft->scale_path)
        return ctl_usage(draft->ctl, "the path of the scaling file is too long");
    return CTL_DONE;
}

/* Compute the scaling file of these rows, unless there is one. */
static enum ctl_exit make_scale(struct draft *draft)
{
    struct sgp_scaling *scaling = NULL;
    struct sgp_error error = {0};
    if (strcmp(draft->scale_path, "none") == 0 || access(draft->scale_path, F_OK) == 0)
        return CTL_DONE;
    char *left_out = ctl_rows_left_out(&draft->rows, true);
    int code = left_out ? sgp_scaling_compute(draft->rows.path, left_out, &error, &scaling)
                        : sgp_fail(&error, -ENOMEM, "out of memory");
    free(left_out);
    if (code == 0)
        code = sgp_scaling_write(scaling, draft->scale_path, &error);
    sgp_scaling_destroy(scaling);
    if (code < 0)
        return ctl_fail(draft->ctl, CTL_FAILED, "%s", error.text);
    draft->scale_made = true;
    return CTL_DONE;
}

/* ---- the place in the topology ---- */

/* The node that -n names, or that the answer names. */
static enum ctl_exit find_node(struct draft *draft)
{
    const struct sgp_topology *topology = draft->topology;
    char question[SGP_TEXT_BYTES / 2] = "the name of this node, one of";
    for (uint32_t i = 0; i < topology->node_count && !topology->nodes[i].beside; i++) {
        const size_t used = strlen(question);
        (void)snprintf(question + used, sizeof question - used, "%s %s", i > 0 ? "," : "",
            topology->nodes[i].name);
    }
    struct ctl_given name = {
        .name = "-n NAME", .given = draft->ctl->name != NULL, .value = draft->ctl->name};
    enum ctl_exit status = ask(draft, &name, question);
    if (status != CTL_DONE)
        return status;
    int64_t index = sgp_topology_find(topology, name.value);
    if (index < 0 || topology->nodes[index].beside)
        return ctl_fail(draft->ctl, CTL_INVALID, "%s: no node is called '%.80s'; give %s",
            draft->given[TOPOLOGY].value, name.value, question);
    draft->node = &topology->nodes[index];
    if (draft->node->relay)
        return ctl_fail(draft->ctl, CTL_INVALID,
            "%s: %s is a relay, which has no rows; sgpd.conf.example says what it needs",
            draft->given[TOPOLOGY].value, name.value);
    return CTL_DONE;
}

/* The method that --algorithm names, or the first that takes the topology. */
static enum ctl_exit find_algorithm(struct draft *draft)
{
    const struct ctl_given *option = &draft->given[ALGORITHM];
    const struct sgp_method *method;
    if (option->given && !sgp_method_find(option->value))
        return ctl_usage(draft->ctl, "--algorithm: there is no '%s'", option->value);
    draft->algorithm = option->given ? option->value : sgp_method_at(0)->name;
    for (uint32_t i = 0; !option->given && (method = sgp_method_at(i)) != NULL; i++) {
        struct sgp_error why = {0};
        if (sgp_method_suit(method, draft->topology, &why, NULL) == 0) {
            draft->algorithm = method->name;
            break;
        }
    }
    return CTL_DONE;
}

static enum ctl_exit read_topology(struct draft *draft)
{
    struct ctl_given *option = &draft->given[TOPOLOGY];
    enum ctl_exit status = ask(draft, option, "the topology file");
    if (status == CTL_DONE)
        status = ctl_read_topology(draft->ctl, option->value, &draft->topology);
    if (status == CTL_DONE && !realpath(option->value, draft->topology_path))
        status = ctl_fail(draft->ctl, CTL_INVALID, "%s: %s", option->value, strerror(errno));
    if (status == CTL_DONE)
        status = find_node(draft);
    if (status == CTL_DONE)
        status = find_algorithm(draft);
    if (status != CTL_DONE)
        return status;
    draft->listen = draft->given[LISTEN].given ? draft->given[LISTEN].value : draft->node->address;
    if (draft->listen[0] == '\0')
        return ctl_usage(draft->ctl, "--listen is missing: %s gives %s no address", option->value,
            draft->node->name);
    return CTL_DONE;
}

/* ---- the text ---- */

static void put_model(const struct draft *draft, FILE *file)
{
    const uint32_t outputs = ctl_rows_outputs(&draft->rows);
    const bool classes = sgp_column_is_classes(draft->rows.label);
    (void)fprintf(file,
        "\n[model]\n; the last layer has one unit for each %s; the same on every node\n",
        classes ? "class" : "number to predict");
    if (draft->given[LAYERS].given)
        (void)fprintf(file, "layers = %s\n", draft->given[LAYERS].value);
    else
        (void)fprintf(file, "layers = dense 32 relu, dense %u\n", outputs);
    if (!classes)
        (void)fprintf(file, "; what is made small: the mean square of the error\nloss = mse\n");
}

static void put_text(const struct draft *draft, FILE *file)
{
    const struct ctl_data_options data = {.scale = draft->scale_path,
        .shards = draft->given[SHARDS].given ? draft->given[SHARDS].value : "none",
        .holdout = draft->holdout};
    (void)fprintf(file,
        "; Configuration of the node %s of sgpd, written by `sgpctl config new`.\n"
        "; `sgpd --check -c FILE` says what would run; sgpd.conf(5) explains every key.\n\n"
        "[node]\n; its name in the topology file\nname = %s\n",
        draft->node->name, draft->node->name);
    if (draft->given[STATE].given)
        (void)fprintf(file, "; where the model and the history are written\nstate_directory = %s\n",
            draft->given[STATE].value);
    (void)fprintf(file,
        "\n[topology]\n; who gives to whom; the same file on every node\nfile = %s\n",
        draft->topology_path);
    (void)fprintf(file,
        "\n[train]\n; how nodes train together; the same on every node\nalgorithm = %s\n"
        "; passes over the rows of this node\nepochs = %llu\n; rows of a step\nbatch = %llu\n",
        draft->algorithm, (unsigned long long)draft->epochs, (unsigned long long)draft->batch);
    put_model(draft, file);
    (void)fputc('\n', file);
    ctl_rows_put_data(&draft->rows, &data, file);
    (void)fprintf(file,
        "\n[optimizer]\n; rule and size of a step\nkind = adam\nlearning_rate = %g\n", draft->rate);
    (void)fprintf(
        file, "\n[network]\n; where neighbours reach this node\nlisten = %s\n", draft->listen);
    if (draft->given[SOCKET].given)
        (void)fprintf(
            file, "\n[control]\n; the socket of sgpctl\nsocket = %s\n", draft->given[SOCKET].value);
}

/* ---- the file ---- */

/* Read the text as a daemon would, so that no value breaks out of its line. */
static enum ctl_exit check_text(const struct draft *draft, const char *text, size_t bytes)
{
    struct sgp_error error = {0};
    struct config config;
    int code = config_parse(draft->file, text, bytes, &error, &config);
    if (code < 0)
        return ctl_fail(draft->ctl, CTL_INVALID, "%s", error.text);
    config_finish(&config);
    return CTL_DONE;
}

/* Write the text under a name beside, then give it the file's name. */
static int write_file(const struct draft *draft, const char *text, size_t bytes)
{
    char part[PATH_MAX];
    if ((size_t)snprintf(part, sizeof part, "%s.part", draft->file) >= sizeof part)
        return -ENAMETOOLONG;
    FILE *file = fopen(part, "w");
    if (!file)
        return -errno;
    bool whole =
        fwrite(text, 1, bytes, file) == bytes && fflush(file) == 0 && fsync(fileno(file)) == 0;
    int code = whole ? 0 : -errno;
    (void)fclose(file);
    /* link(2) fails if the name is taken, also by a file that came meanwhile */
    if (code == 0 &&
        (draft->given[FORCE].given ? rename(part, draft->file) : link(part, draft->file)) != 0)
        code = -errno;
    (void)unlink(part);
    return code;
}

static enum ctl_exit refuse_existing(const struct draft *draft)
{
    if (draft->given[FORCE].given || access(draft->file, F_OK) != 0)
        return CTL_DONE;
    return ctl_fail(draft->ctl, CTL_FAILED,
        "%s is there already; --force replaces it, another name keeps it", draft->file);
}

static enum ctl_exit write_text(struct draft *draft)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);
    if (!file)
        return ctl_fail(draft->ctl, CTL_FAILED, "out of memory");
    put_text(draft, file);
    enum ctl_exit status =
        fclose(file) == 0 ? CTL_DONE : ctl_fail(draft->ctl, CTL_FAILED, "out of memory");
    if (status == CTL_DONE)
        status = check_text(draft, text, bytes);
    if (status == CTL_DONE)
        status = make_scale(draft);
    int code = status == CTL_DONE ? write_file(draft, text, bytes) : 0;
    free(text);
    if (code == -EEXIST)
        return refuse_existing(draft);
    if (code < 0)
        return ctl_fail(draft->ctl, CTL_FAILED, "%s: %s", draft->file, sgp_strerror(code));
    return status;
}

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

static enum ctl_exit answer(const struct draft *draft)
{
    json_t *left_out = left_out_json(&draft->rows);
    if (draft->ctl->json)
        return ctl_print_json(json_pack("{s:o, s:o, s:b, s:o}", "file", ctl_json_text(draft->file),
            "scale", ctl_json_text(draft->scale_path), "scale_made", (int)draft->scale_made,
            "left_out", left_out));
    char cell[CTL_CELL_BYTES];
    ctl_cell(draft->ctl, "left_out", left_out, cell);
    (void)printf("%s: written; next: sgpd --check -c ", draft->file);
    ctl_put_word(draft->file, stdout);
    (void)putchar('\n');
    if (draft->scale_made)
        (void)printf("%s: computed from the rows of this node; copy it to all nodes before they "
                     "start\n",
            draft->scale_path);
    else if (strcmp(draft->scale_path, "none") != 0)
        (void)printf("%s: used as it is\n", draft->scale_path);
    if (draft->scale_made && json_array_size(left_out) > 0)
        (void)printf("left out of the features: %s; sgpctl data describe says why\n", cell);
    json_decref(left_out);
    return CTL_DONE;
}

static enum ctl_exit take_numbers(struct draft *draft)
{
    struct ctl *ctl = draft->ctl;
    const struct ctl_given *given = draft->given;
    draft->epochs = EPOCHS;
    draft->batch = BATCH;
    draft->rate = 0.005;
    draft->holdout = HOLDOUT;
    enum ctl_exit status = ctl_option_u64(ctl, &given[OPTION_EPOCHS], 1, 1000000, &draft->epochs);
    if (status == CTL_DONE)
        status = ctl_option_u64(ctl, &given[OPTION_BATCH], 1, 1000000, &draft->batch);
    if (status == CTL_DONE)
        status = ctl_option_real(ctl, &given[RATE], 1e-12, 1e6, &draft->rate);
    if (status == CTL_DONE)
        status = ctl_option_real(ctl, &given[HOLD_OUT], 0, 0.9, &draft->holdout);
    return status;
}

static enum ctl_exit config_new(struct ctl *ctl, int argc, char **argv)
{
    struct draft draft = {.ctl = ctl};
    enum ctl_exit status = ctl_options_take(ctl, &argc, argv, draft.given, COUNT, 1, 1);
    draft.file = argv[0];
    if (status == CTL_DONE)
        status = take_numbers(&draft);
    if (status == CTL_DONE)
        status = refuse_existing(&draft);
    if (status == CTL_DONE)
        status = read_rows(&draft);
    if (status == CTL_DONE)
        status = read_topology(&draft);
    if (status == CTL_DONE)
        status = find_scale(&draft);
    if (status == CTL_DONE)
        status = write_text(&draft);
    if (status == CTL_DONE)
        status = answer(&draft);
    ctl_rows_finish(&draft.rows);
    sgp_topology_destroy(draft.topology);
    return status;
}

static const struct ctl_option config_new_options[COUNT + 1] = {
    [DATA] = {"--data", .value = "FILE", .summary = "the CSV file with the rows of this node"},
    [LABEL] = {"--label", .value = "COLUMN", .summary = "the column to predict"},
    [TOPOLOGY] = {"--topology", .value = "FILE", .summary = "the topology file"},
    [IGNORE] = {"--ignore", .value = "COLUMNS",
        .summary = "columns that are to be no features, separated by commas"},
    [SCALE] = {"--scale", .value = "FILE",
        .summary = "the scaling file, which is computed from the rows if it is not there; or "
                   "none. Default: scale.json beside the configuration"},
    [SHARDS] = {"--shards", .value = "HOW",
        .summary = "which rows of the file are this node's. Default: none, all of them",
        .words = "none round-robin contiguous sorted dirichlet:"},
    [HOLD_OUT] = {"--holdout", .value = "PART",
        .summary = "the part of the rows that is kept for testing. Default: 0.2"},
    [LAYERS] = {"--layers", .value = "LAYERS",
        .summary = "the layers of the model. Default: dense 32 relu, and one dense unit for each "
                   "output"},
    [OPTION_EPOCHS] = {"--epochs", .value = "COUNT",
        .summary = "passes over the rows. Default: 20"},
    [OPTION_BATCH] = {"--batch", .value = "ROWS", .summary = "rows of a step. Default: 32"},
    [RATE] = {"--learning-rate", .value = "RATE", .summary = "step size of Adam. Default: 0.005"},
    [ALGORITHM] = {"--algorithm", .value = "NAME",
        .summary = "how nodes train together. Default: the first that the topology file takes",
        .words = "sgp osgp agp dpsgd adpsgd backup downpour cyclic"},
    [LISTEN] = {"--listen", .value = "ADDRESS",
        .summary = "HOST:PORT to listen on. Default: the address in the topology file"},
    [STATE] = {"--state-directory", .value = "DIRECTORY",
        .summary = "where the model and the history are written. Default: /var/lib/sgpd/NAME"},
    [SOCKET] = {"--socket", .value = "FILE",
        .summary = "the control socket. Default: /run/sgpd/NAME/control.sock"},
    [FORCE] = {"--force", .summary = "replace FILE if it is there"},
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
        "category become features. All nodes need the same scaling file. The first node computes\n"
        "it; copy it beside the configuration of each other node before you run this command\n"
        "there. No file is overwritten without --force, and a scaling file never.\n",
    .run = config_new};

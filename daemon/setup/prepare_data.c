/* SPDX-License-Identifier: Apache-2.0 */
/* The rows that a node trains and tests on, their columns and targets, and how these are scaled;
 * see prepare.h. Blocks on files. */
#include "prepare_inside.h"
#include "scaling.h"
#include "train/names.h"
#include "train/target_scale.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

bool prepare_is_utf8(const char *text)
{
    json_t *string = json_string(text);
    json_decref(string);
    return string != NULL;
}

static int read_classes(struct prepared *p, struct sgp_error *error)
{
    const char *text = p->config->classes;
    struct sgp_error why = {0};
    if (!prepare_is_utf8(text)) /* the names go into the model's file, whose header is JSON */
        return config_fail(p->config, CONFIG_ID_CLASSES, error, SGP_E_CONFIG,
            "the names are not UTF-8; save this file and the data as UTF-8");
    int code = sgp_names_split(text, SGP_NAMES_CLASSES, &why, &p->class_names, &p->class_count);
    return code < 0 ? config_fail(p->config, CONFIG_ID_CLASSES, error, code, "%s", why.text) : 0;
}

static const char *given(const char *text)
{
    return *text ? text : NULL;
}

/* Whether the rows of this kind of file have the targets that the loss needs. */
static int check_targets(const struct prepared *p, struct sgp_error *error)
{
    const struct config *config = p->config;
    const char *loss = sgp_loss_name(config->loss);
    unsigned takes = sgp_loss_takes(config->loss);
    bool csv = *config->label != '\0';
    if (csv && p->class_count == 0 && takes == SGP_LOSS_TAKES_CLASS)
        return config_fail(config, CONFIG_ID_CLASSES, error, SGP_E_CONFIG,
            "missing; name the values of column %s in the order of the %" PRIu32
            " outputs, or use loss = mse for numbers",
            config->label, p->model.outputs);
    if (csv && p->class_count > 0 && !(takes & SGP_LOSS_TAKES_CLASS))
        return config_fail(config, CONFIG_ID_CLASSES, error, SGP_E_CONFIG,
            "loss = %s takes label columns of 0 and 1, one for each output; remove the line, or "
            "use loss = cross-entropy",
            loss);
    if (!csv && !(takes & SGP_LOSS_TAKES_CLASS))
        return config_fail(config, CONFIG_ID_LOSS, error, SGP_E_CONFIG,
            "%s takes label columns of 0 and 1, and IDX files hold classes; use cross-entropy, or "
            "CSV with label = COLUMN, COLUMN",
            loss);
    return 0;
}

/* Count the named classes; without names, there are as many as outputs. A node may have no row of
 * the last class. */
static int count_classes(struct prepared *p, struct sgp_error *error)
{
    const struct config *config = p->config;
    int code = read_classes(p, error);
    if (code < 0)
        return code;
    if (p->class_count > 0 && p->class_count != p->model.outputs)
        return config_fail(config, CONFIG_ID_LAYERS, error, SGP_E_CONFIG,
            "the last layer has %" PRIu32 " outputs, and [data] classes names %" PRIu32
            "; they must be equal",
            p->model.outputs, p->class_count);
    code = check_targets(p, error);
    if (code < 0)
        return code;
    if (*config->label == '\0' && p->class_count == 0)
        p->class_count = p->model.outputs;
    if (p->class_count == 1 && config->loss == SGP_LOSS_CROSS_ENTROPY)
        return config_fail(config, CONFIG_ID_LAYERS, error, SGP_E_CONFIG,
            "one output is one class, and there is nothing to learn; give the last layer one "
            "output "
            "per class");
    return 0;
}

/* Rows are divided among the nodes that train. */
uint32_t prepared_rank(const struct prepared *p)
{
    uint32_t rank = 0;
    for (uint32_t i = 0; i < p->self; i++)
        rank += !p->topology->nodes[i].relay;
    return rank;
}

static bool has_scale(const struct config *config)
{
    return strcmp(config->scale, "none") != 0;
}

/* A relay has no rows; every other node has some. */
static int check_rows(const struct prepared *p, struct sgp_error *error)
{
    const struct config *config = p->config;
    bool relay = prepare_is_relay(p);
    if (relay && *config->train)
        return config_fail(config, CONFIG_ID_TRAIN, error, SGP_E_CONFIG,
            "by %s this node is a relay (train=false) and has no data; remove the line",
            prepared_file(p));
    if (relay && config->inputs == 0 && sgp_shape_values(p->model.input) == 0 && !has_scale(config))
        return config_fail(config, CONFIG_ID_LAYERS, error, SGP_E_CONFIG,
            "a relay has no rows to count the inputs of the model; add a line `inputs = N`, the "
            "number of values in a row of the others");
    if (!relay && !*config->train)
        return sgp_fail(error, SGP_E_CONFIG,
            "%s: [data] train is missing; add a line `train = ...` to section [data]: rows to "
            "train "
            "on: IDX or CSV, plain or .gz",
            config->file);
    return 0;
}

/* A relay trains without a scaling, if it knows the number of inputs. */
static int do_without_scaling(struct prepared *p, struct sgp_error *error)
{
    const struct config *config = p->config;
    if (config->inputs == 0 && sgp_shape_values(p->model.input) == 0)
        return config_fail(config, CONFIG_ID_SCALE, error, -ENOENT,
            "%s does not exist, and a relay has no rows to count the inputs of the model; copy the "
            "file of the others, or add a line `inputs = N`",
            config->scale);
    if (sgp_loss_uses(config->loss) & SGP_LOSS_USES_SCALES)
        prepared_warn(p,
            "%s:%u: [data] scale: %s does not exist; this relay needs it only to predict in the "
            "units of the label",
            config->file, config->lines[CONFIG_ID_SCALE], config->scale);
    return 0;
}

/* A relay has no rows. A scaling tells it how many inputs the model has, and what outputs mean. */
static int prepare_scaling(struct prepared *p, struct sgp_error *error)
{
    const struct config *config = p->config;
    const bool fleet = scaling_is_of_fleet(config);
    struct sgp_error why = {0}, note = {0};
    if (!has_scale(config))
        return 0;
    int code = fleet ? scaling_check(config, p->topology, prepare_is_relay(p), error) : 0;
    if (code < 0)
        return code;
    code = scaling_read(
        config, prepare_is_relay(p), &why, &p->scaling_alone, &note, &p->scaling_text, &p->scaling);
    if (code == 0 && note.code != 0)
        prepared_warn(p, "%s: %s", config->train, note.text);
    if (code == 0 && p->scaling_text)
        code = scaling_classes(p->scaling_text, &why, &p->told_classes, &p->told_class_count);
    if (code == 0 && !fleet && !p->scaling)
        return do_without_scaling(p, error);
    return code < 0 ? prepare_fail_file(config, code, &why, error) : 0;
}

/* What too few rows of any node have to be told. */
static void warn_about_agreed(struct prepared *p, const struct sgp_csv_agreed *agreed)
{
    const char *train = p->config->train;
    if (agreed->strange > 0)
        prepared_warn(p,
            "%s: %" PRIu64 " values of columns of words are not in the scaling of the fleet, and "
            "count as missing; too few rows of any node have them (min_count)",
            train, agreed->strange);
    if (agreed->left_out > 0)
        prepared_warn(p,
            "%s: %" PRIu64 " rows are left out, the first in line %" PRIu64 ": their class is not "
            "in [data] classes, and no node had enough rows of it to tell (min_count) when the "
            "nodes agreed; name it in classes on every node, or remove the rows",
            train, agreed->left_out, agreed->left_out_line);
}

static bool is_large(const char *path)
{
    struct stat status;
    return *path && stat(path, &status) == 0 && S_ISREG(status.st_mode) &&
           (uint64_t)status.st_size >= SGP_DATA_CACHE_LEAST_BYTES;
}

bool prepare_wants_cache(const struct config *config)
{
    return *config->label && (is_large(config->train) || is_large(config->test));
}

int prepare_data(struct prepared *p, struct sgp_error *error)
{
    const struct config *config = p->config;
    struct sgp_error why = {0};
    /* The outputs must be known before the data; prepare_model determines the inputs. */
    int code = sgp_model_read(&p->model, config->layers, config->loss, &why);
    if (code < 0)
        return config_fail(config, CONFIG_ID_LAYERS, error, code, "%s", why.text);
    code = check_rows(p, error);
    if (code == 0)
        code = prepare_scaling(p, error);
    if (code < 0 || prepare_is_relay(p))
        return code;
    code = count_classes(p, error);
    if (code < 0)
        return code;
    struct sgp_csv_agreed agreed = {
        .classes = (const char *const *)p->told_classes, .class_count = p->told_class_count};
    const struct sgp_data_options options = {.train = config->train,
        .labels = given(config->labels),
        .test = given(config->test),
        .test_labels = given(config->test_labels),
        .label = given(config->label),
        .bits = sgp_loss_takes(config->loss) & SGP_LOSS_TAKES_BITS,
        .class_names = (const char *const *)p->class_names,
        .class_count = p->class_count,
        .scaling = p->scaling,
        .agreed = scaling_is_of_fleet(config) ? &agreed : NULL,
        .missing = config->missing,
        .shards = config->shards,
        .holdout = config->holdout,
        .node_index = prepared_rank(p),
        .node_count = sgp_topology_trainers(p->topology),
        .seed = config->seed,
        .cache = p->cache};
    code = sgp_data_load(&options, &why, &p->data);
    if (code == SGP_E_CONFIG)
        return config_fail(config, CONFIG_ID_TRAIN, error, code, "%s", why.text);
    if (code == 0)
        warn_about_agreed(p, &agreed);
    return code < 0 ? prepare_fail_file(config, code, &why, error) : 0;
}

#define COLUMNS_BYTES_MAX (1u << 20) /* of a file's header, which holds up to 4 MiB */

/* What the model's file says about the columns of CSV. If names cannot be represented in JSON, the
 * whole text is left out. */
int prepare_columns(struct prepared *p, struct sgp_error *error)
{
    struct sgp_error why = {0};
    struct sgp_scaling *plain = NULL;
    if (prepare_is_relay(p))
        return 0;
    int code = p->scaling ? 0 : sgp_dataset_columns(p->data.train, &why, &plain);
    const struct sgp_scaling *scaling = p->scaling ? p->scaling : plain;
    if (code == 0 && scaling)
        code = sgp_scaling_columns_text(scaling, "columns", &why, &p->columns_text);
    sgp_scaling_destroy(plain);
    if (p->columns_text && strlen(p->columns_text) > COLUMNS_BYTES_MAX) {
        free(p->columns_text);
        free(p->targets_text);
        p->columns_text = p->targets_text = NULL;
    }
    return code == -ENOMEM ? sgp_fail(error, code, "%s: out of memory", p->config->train) : 0;
}

#define REACH 1000         /* the most that columns may differ by, and be from 1 */
#define TARGETS_REACH 100  /* the same of numbers to predict: the first steps begin at 0 */
#define TARGETS_DIGITS 1e5 /* a mean of so many deviations leaves predictions two digits of them */

/* A label of another name may be the same column of another machine, or another column. */
static void warn_about_scale(struct prepared *p)
{
    uint32_t count;
    const struct sgp_target_scale *scales = sgp_scaling_targets(p->scaling, &count);
    const struct config *config = p->config;
    if (count == 1 && strcmp(scales->name, config->label) != 0)
        prepared_warn(p,
            "%s:%u: [data] label = %s is scaled by mean and deviation of %s; if that is another "
            "column, write a scaling file with --label %s, or let all nodes agree again",
            config->file, config->lines[CONFIG_ID_LABEL], config->label, scales->name,
            config->label);
    for (uint32_t i = 0; i < count; i++)
        if (fabs(scales[i].mean) > TARGETS_DIGITS * scales[i].deviation)
            prepared_warn(p,
                "%s:%u: [data] label: the mean of %s is %.12g and its deviation %.4g, too far "
                "apart "
                "for predictions of seven digits; subtract a constant from the column",
                config->file, config->lines[CONFIG_ID_LABEL], scales[i].name, scales[i].mean,
                scales[i].deviation);
}

/* Numbers to predict that are far from 0 and not scaled: many steps go by to reach them. */
int prepare_warn_of_targets(struct prepared *p, struct sgp_error *error)
{
    const struct sgp_dataset *train = p->data.train;
    const bool numbers = !prepare_is_relay(p) && train->classes == 0 && train->targets > 0;
    (void)error; /* no step here can fail */
    if (numbers && train->scaled_targets)
        warn_about_scale(p);
    if (!numbers || train->scaled_targets)
        return 0;
    const float most = sgp_dataset_targets_reach(train);
    if (most > TARGETS_REACH)
        prepared_warn(p,
            "%s:%u: [data] label: its numbers reach %.4g and are not scaled; training wants "
            "numbers near 1: write a scaling file with --label, see sgpd.conf(5)",
            p->config->file, p->config->lines[CONFIG_ID_LABEL], (double)most);
    return 0;
}

/* A step size that suits one column is too long or too short for another column that is much wider
 * or narrower. */
int prepare_warn_of_columns(struct prepared *p, struct sgp_error *error)
{
    struct sgp_reach reach;
    char narrowest[128] = "";
    if (prepare_is_relay(p) || sgp_model_vocabulary(&p->model) > 0)
        return 0;
    int code = sgp_dataset_reach(p->data.train, &reach);
    if (code < 0)
        return sgp_fail(error, code, "%s: out of memory", p->config->train);
    bool unlike = reach.most / REACH > reach.least;
    if (!reach.widest || (!unlike && reach.most <= REACH && reach.most * REACH >= 1))
        return 0;
    if (unlike)
        (void)snprintf(narrowest, sizeof narrowest, ", column '%.80s' %.4g", reach.narrowest,
            (double)reach.least);
    prepared_warn(p,
        "%s:%u: [data] train: no scale is given, and column '%.80s' reaches %.4g%s; training wants "
        "columns of like size and near 1: write a scaling file, see sgpd.conf(5)",
        p->config->file, p->config->lines[CONFIG_ID_TRAIN], reach.widest, (double)reach.most,
        narrowest);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Builds what a node needs before it opens a socket; see prepare.h. Blocks on files. */
#include "prepare.h"

#include "attach/shared.h"
#include "train/names.h"
#include "train/target_scale.h"
#include "scaling.h"
#include "util/view.h"

#include "sgp/method.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static enum sgp_outer_kind outer_kind(const struct config *config)
{
    return (enum sgp_outer_kind)(config->outer - 1);
}

/* Only a node that no other node dials may listen nowhere. */
int prepare_listen(struct prepared *p, struct sgp_error *error)
{
    bool nowhere = strcmp(p->config->listen, SGP_ADDRESS_NONE) == 0;
    if (!nowhere || !sgp_topology_is_dialled(p->topology, p->self))
        return 0;
    return config_fail(p->config, CONFIG_ID_LISTEN, error, SGP_E_CONFIG,
        "%s gives this node the address %s, which others dial; listen there, or write address=none "
        "in it",
        p->config->topology, p->topology->nodes[p->self].address);
}

/* Keys that the schedule does not use. */
static void warn_about_schedule(struct prepared *p)
{
    static const struct {
        enum config_id id;
        enum sgp_schedule_parameter parameter;
    } keys[] = {{CONFIG_ID_MILESTONES, SGP_SCHEDULE_MILESTONES},
        {CONFIG_ID_FACTOR, SGP_SCHEDULE_FACTOR}, {CONFIG_ID_GROWTHS, SGP_SCHEDULE_GROWTHS},
        {CONFIG_ID_FINAL_FRACTION, SGP_SCHEDULE_FINAL}, {CONFIG_ID_LOW_FRACTION, SGP_SCHEDULE_LOW},
        {CONFIG_ID_PERIOD_EPOCHS, SGP_SCHEDULE_PERIOD}};
    const struct config *config = p->config;
    char users[SGP_SCHEDULE_WORDS_BYTES];
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        sgp_schedule_users(keys[i].parameter, users);
        if (config->changed[keys[i].id] && !sgp_schedule_uses(config->schedule, keys[i].parameter))
            prepared_warn(p, "%s:%u: [optimizer] %s has no effect: it is for schedule = %s",
                config->file, config->lines[keys[i].id], config_keys[keys[i].id].key, users);
    }
}

/* Keys that have no effect. Defaults, and keys for another algorithm, are no reason to refuse. */
static int warn_about_idle_keys(struct prepared *p, struct sgp_error *error)
{
    const struct config *config = p->config;
    bool outer = outer_kind(config) != SGP_OUTER_NONE;
    unsigned uses = sgp_optimizer_uses(config->optimizer);
    unsigned loss_uses = sgp_loss_uses(config->loss);
    static const char of_fleet[] = "it is for scale = fleet";
    char none[64];
    (void)snprintf(none, sizeof none, "kind = %s has none", sgp_optimizer_name(config->optimizer));
    const struct {
        enum config_id id;
        bool used;
        const char *why;
    } keys[] = {
        {CONFIG_ID_OVERLAP, sgp_method_overlaps(p->method), "it is for algorithm osgp"},
        {CONFIG_ID_BACKUP_NEIGHBOURS, sgp_method_waits(p->method),
            "with this algorithm nobody is waited for"},
        {CONFIG_ID_LABEL_SMOOTHING, loss_uses & SGP_LOSS_USES_SMOOTHING,
            "it is for loss = cross-entropy"},
        {CONFIG_ID_HUBER_DELTA, loss_uses & SGP_LOSS_USES_DELTA, "it is for loss = huber"},
        {CONFIG_ID_CLASS_WEIGHTS, loss_uses & SGP_LOSS_USES_WEIGHTS,
            "it is for loss = cross-entropy and binary-cross-entropy"},
        {CONFIG_ID_MOMENTUM, uses & SGP_USES_MOMENTUM, none},
        {CONFIG_ID_BETA1, uses & SGP_USES_BETAS, none},
        {CONFIG_ID_BETA2, uses & SGP_USES_BETAS, none},
        {CONFIG_ID_ALPHA, uses & SGP_USES_ALPHA, none},
        {CONFIG_ID_EPSILON, uses & SGP_USES_EPSILON, none},
        {CONFIG_ID_TRUST, uses & SGP_USES_TRUST, none},
        {CONFIG_ID_NOISE, uses & SGP_USES_NOISE, none},
        {CONFIG_ID_OUTER, sgp_topology_outer(p->topology) != NULL,
            "no digraph of the topology says outer=true"},
        {CONFIG_ID_OUTER_LEARNING_RATE, outer, "[outer] kind = none"},
        {CONFIG_ID_OUTER_MOMENTUM, outer, "[outer] kind = none"},
        {CONFIG_ID_COMPRESSION, prepared_gives_updates(p) || p->topology->owner == SGP_NODE_NONE,
            "a token is plain, and the key of an owner's copies is copies"},
        {CONFIG_ID_COPIES,
            p->topology->owner != SGP_NODE_NONE && !sgp_topology_has_token(p->topology) &&
                sgp_method_waits(p->method),
            "it is for the copies of an owner that waits for its workers (algorithm = backup)"},
        {CONFIG_ID_HOLDOUT, !*config->test, "test names the rows to test on"},
        {CONFIG_ID_CATEGORIES, scaling_is_of_fleet(config), of_fleet},
        {CONFIG_ID_IGNORE, scaling_is_of_fleet(config), of_fleet},
    };
    (void)error; /* no step here can fail */
    warn_about_schedule(p);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (config->changed[keys[i].id] && !keys[i].used)
            prepared_warn(p, "%s:%u: [%s] %s has no effect: %s", config->file,
                config->lines[keys[i].id], config_keys[keys[i].id].section,
                config_keys[keys[i].id].key, keys[i].why);
    return 0;
}

/* An outer step's momentum multiplies what a coarse chooser has left out and delivers later. */
static int check_compression(struct prepared *p, struct sgp_error *error)
{
    const struct sgp_chooser *chooser = &p->config->compression;
    bool owned = p->topology->owner != SGP_NODE_NONE && !sgp_topology_has_token(p->topology);
    bool outer = outer_kind(p->config) != SGP_OUTER_NONE && p->config->outer_momentum > 0;
    if (sgp_chooser_is_of_updates(chooser) && !owned)
        return config_fail(p->config, CONFIG_ID_COMPRESSION, error, SGP_E_CONFIG,
            "%s is for files with owners, and %s has none whose workers give updates; take one "
            "of " SGP_COMPRESSOR_SHARE_WORDS,
            chooser->word, p->config->topology);
    if (!sgp_chooser_is_of_copies(&p->config->copies))
        return config_fail(p->config, CONFIG_ID_COPIES, error, SGP_E_CONFIG,
            "%s is for updates: of a copy it leaves out too much; take one "
            "of " SGP_CHOOSER_COPY_WORDS,
            p->config->copies.word);
    if (sgp_chooser_is_coarse(chooser) && outer)
        return config_fail(p->config, CONFIG_ID_COMPRESSION, error, SGP_E_CONFIG,
            "%s does not go with the momentum of [outer], which makes the error that it brings "
            "later larger; take int4, or [outer] momentum = 0",
            chooser->word);
    return 0;
}

/* Rows and model. */

static bool is_utf8(const char *text)
{
    json_t *string = json_string(text);
    json_decref(string);
    return string != NULL;
}

static int read_classes(struct prepared *p, struct sgp_error *error)
{
    const char *text = p->config->classes;
    struct sgp_error why = {0};
    if (!is_utf8(text)) /* the names go into the model's file, whose header is JSON */
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

static bool is_relay(const struct prepared *p)
{
    return p->topology->nodes[p->self].relay;
}

static bool has_scale(const struct config *config)
{
    return strcmp(config->scale, "none") != 0;
}

/* A relay has no rows; every other node has some. */
static int check_rows(const struct prepared *p, struct sgp_error *error)
{
    const struct config *config = p->config;
    bool relay = is_relay(p);
    if (relay && *config->train)
        return config_fail(config, CONFIG_ID_TRAIN, error, SGP_E_CONFIG,
            "by %s this node is a relay (train=false) and has no data; remove the line",
            config->topology);
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
    struct sgp_error why = {0};
    if (!has_scale(config))
        return 0;
    int code = fleet ? scaling_check(config, p->topology, is_relay(p), error) : 0;
    if (code < 0)
        return code;
    code =
        scaling_read(config, is_relay(p), &why, &p->scaling_alone, &p->scaling_text, &p->scaling);
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

static int prepare_data(struct prepared *p, struct sgp_error *error)
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
    if (code < 0 || is_relay(p))
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
        .seed = config->seed};
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
static int prepare_columns(struct prepared *p, struct sgp_error *error)
{
    struct sgp_error why = {0};
    struct sgp_scaling *plain = NULL;
    if (is_relay(p))
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
static int warn_about_targets(struct prepared *p, struct sgp_error *error)
{
    const struct sgp_dataset *train = p->data.train;
    const bool numbers = !is_relay(p) && train->classes == 0 && train->targets > 0;
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
static int warn_about_columns(struct prepared *p, struct sgp_error *error)
{
    struct sgp_reach reach;
    char narrowest[128] = "";
    if (is_relay(p) || sgp_model_vocabulary(&p->model) > 0)
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

static int check_goal(struct prepared *p, struct sgp_error *error)
{
    bool goal = !isnan(p->config->stop_at_accuracy);
    if (goal && !p->data.test)
        return config_fail(p->config, CONFIG_ID_STOP_AT_ACCURACY, error, SGP_E_CONFIG,
            "there is nothing to test on; give [data] test or holdout");
    if (goal && p->data.train->classes == 0 &&
        !(sgp_loss_takes(p->model.loss) & SGP_LOSS_TAKES_BITS))
        return config_fail(p->config, CONFIG_ID_STOP_AT_ACCURACY, error, SGP_E_CONFIG,
            "there is no accuracy without classes; remove it, or give [data] classes");
    if (!p->data.test)
        prepared_warn(p,
            "nothing to test on: test loss and accuracy will stay unknown; give [data] test or "
            "holdout");
    return 0;
}

/* By the classes of all nodes. A relay has no rows, but must have the loss of the others, so it
 * needs the names of the classes. */
static int balance_classes(struct prepared *p, struct sgp_error *why, uint32_t *ret_count)
{
    if (!scaling_is_of_fleet(p->config))
        return sgp_fail(why, SGP_E_CONFIG,
            "balanced needs the classes of all nodes; use [data] scale = fleet, or give a number "
            "for each class");
    if (is_relay(p) && p->class_count == 0)
        (void)sgp_names_split(
            p->config->classes, SGP_NAMES_CLASSES, why, &p->class_names, &p->class_count);
    if (p->class_count == 0 || p->class_names == NULL)
        return sgp_fail(why, SGP_E_CONFIG,
            "balanced needs the names of the classes; add them with [data] classes");
    *ret_count = p->scaling_text ? p->class_count : 0;
    return p->scaling_text ? scaling_balance(p->scaling_text, p->class_names, p->class_count, why,
                                 &p->class_weights)
                           : 0;
}

static int read_class_weights(struct prepared *p, struct sgp_error *why, uint32_t *ret_count)
{
    if (strcmp(p->config->class_weights, "balanced") == 0)
        return balance_classes(p, why, ret_count);
    return sgp_class_weights_parse(p->config->class_weights, why, &p->class_weights, ret_count);
}

/* How the numbers of the label columns are scaled. A relay has no rows that say whether they are:
 * it goes by the loss and by the number of outputs. NULL: they are not. */
static const struct sgp_target_scale *find_target_scales(
    const struct prepared *p, uint32_t *ret_count)
{
    const struct config *config = p->config;
    const struct sgp_target_scale *scales =
        p->scaling ? sgp_scaling_targets(p->scaling, ret_count) : NULL;
    const bool numbers = sgp_loss_uses(config->loss) & SGP_LOSS_USES_SCALES && !*config->classes;
    const bool scaled = is_relay(p) ? numbers : p->data.train->scaled_targets;
    if (scales && scaled && *ret_count == p->model.outputs) /* else prepare_model refuses them */
        return scales;
    *ret_count = 0;
    return NULL;
}

/* The settings of the model's loss. */
static int prepare_loss(struct prepared *p, struct sgp_error *error)
{
    const struct config *config = p->config;
    struct sgp_error why = {0};
    struct sgp_loss_settings settings = {
        .label_smoothing = config->label_smoothing, .huber_delta = config->huber_delta};
    int code = read_class_weights(p, &why, &settings.class_weight_count);
    settings.class_weights = p->class_weights;
    settings.target_scales = find_target_scales(p, &settings.target_scale_count);
    if (code == 0)
        code = sgp_model_set_loss(&p->model, &settings, &why);
    if (code < 0)
        return config_fail(config, CONFIG_ID_CLASS_WEIGHTS, error, code, "%s", why.text);
    if (settings.target_scales) /* for the model's file */
        p->targets_text =
            sgp_target_scales_text(settings.target_scales, settings.target_scale_count);
    return settings.target_scales && !p->targets_text
               ? sgp_fail(error, -ENOMEM, "%s: out of memory", config->file)
               : 0;
}

static int prepare_model(struct prepared *p, struct sgp_error *error)
{
    const struct config *config = p->config;
    struct sgp_error why = {0};
    struct sgp_shape input = p->model.input; /* a relay's layers may begin with an input shape */
    if (!is_relay(p))
        input = p->data.train->shape;
    else if (config->inputs > 0)
        input = (struct sgp_shape){(uint32_t)config->inputs, 1, 1};
    else if (p->scaling)
        input = (struct sgp_shape){sgp_scaling_features(p->scaling), 1, 1};
    int code = sgp_model_init_shaped(&p->model, config->layers, config->loss, input, &why);
    if (code < 0)
        return config_fail(config, CONFIG_ID_LAYERS, error, code, "%s", why.text);
    code = prepare_loss(p, error);
    if (code < 0)
        return code;
    p->parameters = p->model.parameters;
    if (is_relay(p))
        return 0;
    if (config->inputs > 0 && config->inputs != p->data.train->features)
        return config_fail(config, CONFIG_ID_INPUTS, error, SGP_E_CONFIG,
            "the rows of %s have %" PRIu32 " values; remove the line", config->train,
            p->data.train->features);
    uint32_t outputs = p->data.train->classes ? p->data.train->classes : p->data.train->targets;
    if (outputs == 0)
        return config_fail(config, CONFIG_ID_TRAIN, error, SGP_E_CONFIG,
            "%s has rows without labels; give labels = FILE (IDX) or label = COLUMN (CSV)",
            config->train);
    if (outputs != p->model.outputs)
        return config_fail(config, CONFIG_ID_LAYERS, error, SGP_E_CONFIG,
            "the last layer has %" PRIu32 " outputs, and the rows of %s need %" PRIu32
            "; make the last layer dense %" PRIu32,
            p->model.outputs, config->train, outputs, outputs);
    if (p->data.test && p->data.test->features != p->data.train->features)
        return config_fail(config, CONFIG_ID_TEST, error, SGP_E_DATA,
            "%s has rows of %" PRIu32 " features, and %s of %" PRIu32 "; use files of one kind",
            config->test, p->data.test->features, config->train, p->data.train->features);
    p->parameters = p->model.parameters;
    return check_goal(p, error);
}

/* Length and pace of the training. */

/* Whether each update is a step of its own: an owner adds it on arrival, or a token does. */
static bool steps_alone(const struct prepared *p)
{
    return p->topology->owner != SGP_NODE_NONE &&
           (sgp_topology_has_token(p->topology) || !sgp_method_waits(p->method));
}

/* The noise of an average falls with its number of gradients: an owner averages those of all
 * workers but its backups. */
static double noise_fraction(const struct prepared *p)
{
    if (p->config->noise == CONFIG_NOISE_NODE || steps_alone(p))
        return 1;
    uint32_t backup = p->topology->owner != SGP_NODE_NONE ? p->topology->phases[0].backup : 0;
    return 1.0 / (sgp_topology_trainers(p->topology) - backup);
}

static void warn_about_noise(struct prepared *p)
{
    const struct config *config = p->config;
    const char *why = steps_alone(p)       ? "with this algorithm each update is a step of its own"
                      : config->batch == 1 ? "a batch of one row does not show its noise; give "
                                             "[train] batch 2 and more"
                                           : NULL;
    if (config->noise == CONFIG_NOISE_FLEET && why != NULL)
        prepared_warn(p, "%s:%u: [optimizer] noise has no effect: %s", config->file,
            config->lines[CONFIG_ID_NOISE], why);
}

/* If the batch grows beyond the rows of the node, the schedule loses its purpose. */
static void warn_about_batch(struct prepared *p)
{
    const struct config *config = p->config;
    const struct sgp_schedule *schedule = &p->settings.schedule;
    uint32_t most = sgp_schedule_batch(schedule, (uint32_t)config->batch, p->epochs);
    if (config->base_batch > 0 && steps_alone(p))
        prepared_warn(p,
            "%s:%u: [optimizer] base_batch: with algorithm %s each update is a step of its own, "
            "and "
            "the rate is scaled for the rows of all nodes; leave base_batch out",
            config->file, config->lines[CONFIG_ID_BASE_BATCH], p->method->name);
    if (most > config->batch && most > p->data.train->rows)
        prepared_warn(p,
            "%s:%u: [optimizer] schedule: the batch is to grow to %" PRIu32 " rows, and this node "
            "has %" PRIu64 "; give fewer growths, so that the rate falls at the other milestones",
            config->file, config->lines[CONFIG_ID_SCHEDULE], most, p->data.train->rows);
}

static int prepare_rounds(struct prepared *p, struct sgp_error *error)
{
    const struct config *config = p->config;
    if (is_relay(p)) /* a relay continues for as long as the others */
        return 0;
    struct sgp_schedule *schedule = &p->settings.schedule;
    uint64_t rows = p->data.train->rows;
    uint32_t batch = (uint32_t)config->batch;
    int code = config_schedule(config, rows, sgp_topology_trainers(p->topology), error, schedule);
    if (code < 0)
        return code;
    p->steps_per_epoch = sgp_schedule_find(schedule, rows, batch, 0).steps_per_epoch;
    uint64_t steps = sgp_schedule_steps(schedule, rows, batch, config->epochs);
    uint64_t rounds =
        config->rounds ? config->rounds : (steps + config->local_steps - 1) / config->local_steps;
    if (rounds > (uint64_t)SGP_ROUND_MAX)
        return config_fail(config, CONFIG_ID_EPOCHS, error, SGP_E_LIMIT,
            "%" PRIu64 " rounds are more than a round's number can hold; train for fewer", rounds);
    p->rounds = (sgp_round)rounds;
    p->epochs = schedule->epochs;
    warn_about_noise(p);
    warn_about_batch(p);
    return 0;
}

static int fail_learner(
    const struct prepared *p, int code, const struct sgp_error *why, struct sgp_error *error)
{
    return sgp_fail(
        error, code, "%s: %s", p->config->file, why->code ? why->text : sgp_strerror(code));
}

static enum sgp_precision precision_of(const struct config *config)
{
    return (enum sgp_precision)(config->precision - 1);
}

static int prepare_settings(struct prepared *p, struct sgp_error *error)
{
    const struct config *config = p->config;
    struct sgp_error why = {0};
    int code = sgp_precision_check(precision_of(config), &why);
    if (code < 0)
        return config_fail(config, CONFIG_ID_PRECISION, error, code, "%s", why.text);
    p->settings = (struct sgp_learner_settings){.model = p->model,
        .optimizer = {.kind = config->optimizer,
            .momentum = config->momentum,
            .weight_decay = config->weight_decay,
            .beta1 = config->beta1,
            .beta2 = config->beta2,
            .alpha = config->alpha,
            .epsilon = config->epsilon,
            .trust = config->trust,
            .clip_norm = config->clip_norm,
            .clip_value = config->clip_value,
            .noise_fraction = noise_fraction(p)},
        .outer = {.kind = prepared_takes_outer_steps(p) ? outer_kind(config) : SGP_OUTER_NONE,
            .learning_rate = config->outer_learning_rate,
            .momentum = config->outer_momentum},
        .batch = (uint32_t)config->batch,
        .threads = (uint32_t)config->threads,
        .precision = precision_of(config),
        .seed = config->seed,
        .node = p->self,
        .train = p->data.train,
        .evaluation = p->data.test,
        .schedule = p->settings.schedule};
    code = sgp_learner_check(&p->settings, &why, &p->workspace_bytes);
    if (code < 0)
        return fail_learner(p, code, &why, error);
    code = sgp_topology_check_owners(p->topology, p->parameters, &why);
    if (code < 0)
        return sgp_fail(error, code, "%s: %.430s", config->topology, why.text);
    p->fingerprint = (struct sgp_fingerprint){.shape = sgp_model_shape_digest(&p->model),
        .loss = sgp_model_loss_digest(&p->model),
        .topology = p->topology->digest};
    if (is_relay(p)) /* a relay cannot say more */
        return 0;
    p->fingerprint.classes = sgp_dataset_classes_digest(p->data.train);
    p->fingerprint.scaling = sgp_dataset_scaling_digest(p->data.train);
    p->fingerprint.learning_rate = p->settings.schedule.learning_rate;
    p->fingerprint.batch = (uint32_t)config->batch;
    p->fingerprint.data = p->data.digest;
    return 0;
}

/* The whole. */

int prepare(const struct config *config, struct sgp_error *error, struct prepared *ret_prepared)
{
    static int (*const layered[])(struct prepared *, struct sgp_error *) = {prepare_topology,
        prepare_listen, warn_about_idle_keys, check_compression, prepare_data, prepare_columns,
        warn_about_columns, warn_about_targets, prepare_model, prepare_rounds, prepare_settings,
        prepare_best, NULL};
    static int (*const attached[])(struct prepared *, struct sgp_error *) = {prepare_topology,
        prepare_listen, warn_about_idle_keys, check_compression, prepare_best, prepare_attached,
        NULL};
    struct prepared p = {.config = config};
    for (int (*const *stage)(struct prepared *, struct sgp_error *) =
             config->kind == CONFIG_ATTACHED ? attached : layered;
         *stage != NULL; stage++) {
        int code = (*stage)(&p, error);
        if (code < 0) {
            prepared_finish(&p);
            return code;
        }
    }
    if (!p.awaiting_model && p.ends == NULL && prepared_name_tensors(&p, error) < 0) {
        prepared_finish(&p);
        return -ENOMEM;
    }
    prepared_warn_of_compression(&p);
    prepared_sum_memory(&p);
    prepared_warn_of_memory(&p);
    *ret_prepared = p;
    return 0;
}

int prepared_learn(struct prepared *p, struct sgp_error *error)
{
    struct sgp_error why = {0};
    const struct sgp_attached_settings attached = {.parameters = p->parameters,
        .values_from = p->layout ? shared_values_from(p->layout) : 0,
        .outer = p->settings.outer};
    int code = prepared_check_memory(p, error);
    if (code < 0)
        return code;
    code = p->layout ? sgp_attached_create(&attached, &why, &p->attached)
                     : sgp_learner_create(&p->settings, &why, &p->learner);
    if (code == -ENOMEM)
        return prepared_no_memory(p, error);
    if (code < 0)
        return fail_learner(p, code, &why, error);
    p->trainer = p->layout ? sgp_attached_trainer(p->attached) : sgp_learner_trainer(p->learner);
    p->trainer->tensors = p->tensors;
    return 0;
}

int prepare_place(
    const struct config *config, struct sgp_error *error, struct prepared *ret_prepared)
{
    struct prepared p = {.config = config};
    int code = prepare_topology(&p, error);
    if (code < 0) {
        prepared_finish(&p);
        return code;
    }
    *ret_prepared = p;
    return 0;
}

void prepared_swap_place(
    struct prepared *p, struct prepared *place, const struct sgp_node_needs *needs)
{
    struct sgp_topology *former = p->topology;
    p->topology = place->topology;
    place->topology = former;
    struct sgp_key *key = p->key;
    p->key = place->key;
    place->key = key;
    p->self = place->self;
    p->analysis = place->analysis;
    p->weight_least = place->weight_least;
    p->weight_most = place->weight_most;
    p->needs = *needs;
    p->fingerprint.topology = p->topology->digest;
    p->warning_count = place->warning_count;
    memcpy(p->warnings, place->warnings, sizeof p->warnings);
    prepared_sum_memory(p);
}

void prepared_finish(struct prepared *p)
{
    if (p->trainer != NULL)
        p->trainer->methods->destroy(p->trainer);
    free(p->ends);
    sgp_model_file_destroy(p->layout);
    sgp_dataset_destroy(p->data.train);
    sgp_dataset_destroy(p->data.test);
    sgp_scaling_destroy(p->scaling);
    sgp_topology_destroy(p->topology);
    sgp_key_release(p->key);
    free(p->class_weights);
    free(p->scaling_text);
    free(p->columns_text);
    free(p->targets_text);
    sgp_names_free(p->class_names, p->class_count);
    sgp_names_free(p->told_classes, p->told_class_count);
    *p = (struct prepared){0};
}

void prepared_node_config(const struct prepared *p, struct sgp_node_config *ret_node_config)
{
    *ret_node_config = (struct sgp_node_config){.topology = p->topology,
        .self = p->self,
        .method = p->method,
        .overlap = (uint32_t)p->config->overlap,
        .step_by_rate = p->config->step_by_rate == CONFIG_YES,
        .backup_neighbours = (uint32_t)p->config->backup_neighbours,
        .patience = (sgp_time)p->config->patience * SGP_SECOND,
        .parameters = p->parameters,
        .fingerprint = p->fingerprint,
        .rounds = p->rounds,
        .open = p->open,
        .local_steps = (uint32_t)p->config->local_steps,
        .compressor = p->config->compression.compressor,
        .copies = p->config->copies.compressor,
        .final_cycles = (uint32_t)p->config->final_cycles,
        .start = p->config->start,
        .weight_least = p->weight_least,
        .weight_most = p->weight_most};
}

/* Whether outputs are classes. A relay has no rows that show it, and a program has no loss. */
static bool classifies(const struct prepared *p)
{
    if (p->data.train)
        return p->data.train->classes > 0;
    return !p->layout && p->model.layer_count > 0 &&
           sgp_loss_takes(p->model.loss) == SGP_LOSS_TAKES_CLASS;
}

void prepared_view_model(const struct prepared *p, struct view_model *ret_model)
{
    *ret_model = (struct view_model){.model = &p->model,
        .layout = p->layout,
        .class_names = p->class_names,
        .scaling = p->scaling,
        .columns = *p->config->labels || !p->data.train || p->scaling
                       ? 0
                       : sgp_dataset_scaling_digest(p->data.train),
        .missing = p->config->missing,
        .classifies = classifies(p),
        .columns_text = p->columns_text,
        .targets_text = p->targets_text,
        .label = p->data.train && *p->config->label && is_utf8(p->config->label) ? p->config->label
                                                                                 : NULL,
        .fingerprint = &p->fingerprint};
}

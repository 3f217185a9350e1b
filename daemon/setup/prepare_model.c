/* SPDX-License-Identifier: Apache-2.0 */
/* The model that the rows and the configuration describe, the settings of its loss, and what the
 * control server must know of it; see prepare.h. */
#include "prepare_inside.h"
#include "scaling.h"
#include "train/names.h"
#include "train/target_scale.h"
#include "util/view.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

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
    if (prepare_is_relay(p) && p->class_count == 0)
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
    const bool scaled = prepare_is_relay(p) ? numbers : p->data.train->scaled_targets;
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

/* The layers that stay on this node. */
static int prepare_local(struct prepared *p, struct sgp_error *error)
{
    const struct config *config = p->config;
    struct sgp_error why = {0};
    int code = sgp_model_set_local(&p->model, config->local, &why);
    if (code < 0)
        return config_fail(config, CONFIG_ID_LOCAL, error, code, "%s", why.text);
    if (p->model.local_parameters > 0 && prepare_is_relay(p))
        prepared_warn(p,
            "%s:%u: [model] local: this node has no rows, so its local layers keep their first "
            "values; take the model of a node that trains",
            config->file, config->lines[CONFIG_ID_LOCAL]);
    return 0;
}

int prepare_model(struct prepared *p, struct sgp_error *error)
{
    const struct config *config = p->config;
    struct sgp_error why = {0};
    struct sgp_shape input = p->model.input; /* a relay's layers may begin with an input shape */
    if (!prepare_is_relay(p))
        input = p->data.train->shape;
    else if (config->inputs > 0)
        input = (struct sgp_shape){(uint32_t)config->inputs, 1, 1};
    else if (p->scaling)
        input = (struct sgp_shape){sgp_scaling_features(p->scaling), 1, 1};
    int code = sgp_model_init_shaped(&p->model, config->layers, config->loss, input, &why);
    if (code < 0)
        return config_fail(config, CONFIG_ID_LAYERS, error, code, "%s", why.text);
    code = prepare_local(p, error);
    if (code == 0)
        code = prepare_loss(p, error);
    if (code < 0)
        return code;
    p->parameters = p->model.parameters;
    if (prepare_is_relay(p))
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
        .label = p->data.train && *p->config->label && prepare_is_utf8(p->config->label)
                     ? p->config->label
                     : NULL,
        .fingerprint = &p->fingerprint};
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What a node needs if its model is a program's (sgp/attach.h). The layout takes the place of rows
 * and layers. The first program brings the layout, and the state directory keeps it. */
#include "prepare_inside.h"
#include "attach/shared.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void prepared_layout_path(const struct config *config, char path[CONFIG_TEXT_BYTES])
{
    (void)snprintf(path, CONFIG_TEXT_BYTES, "%s/layout", config->state_directory);
}

/* Keys that the program decides. */
static void warn_about_keys(struct prepared *p)
{
    static const enum config_id ids[] = {CONFIG_ID_EPOCHS, CONFIG_ID_BATCH, CONFIG_ID_THREADS,
        CONFIG_ID_PRECISION, CONFIG_ID_LAYERS, CONFIG_ID_INPUTS, CONFIG_ID_LOSS, CONFIG_ID_TRAIN,
        CONFIG_ID_LABELS, CONFIG_ID_TEST, CONFIG_ID_TEST_LABELS, CONFIG_ID_SHARDS,
        CONFIG_ID_HOLDOUT, CONFIG_ID_LABEL, CONFIG_ID_CLASSES, CONFIG_ID_SCALE, CONFIG_ID_MISSING,
        CONFIG_ID_OPTIMIZER, CONFIG_ID_LEARNING_RATE, CONFIG_ID_WEIGHT_DECAY, CONFIG_ID_CLIP_NORM,
        CONFIG_ID_CLIP_VALUE, CONFIG_ID_SCHEDULE, CONFIG_ID_WARMUP_EPOCHS, CONFIG_ID_BASE_BATCH};
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++)
        if (p->config->changed[ids[i]])
            prepared_warn(p,
                "%s:%u: [%s] %s has no effect: the program that attaches has model, rows and "
                "optimizer",
                p->config->file, p->config->lines[ids[i]], config_keys[ids[i]].section,
                config_keys[ids[i]].key);
}

/* A layout without initial parameters is of no use. The next program brings both. */
static bool has_parameters(const struct config *config)
{
    static const char *const names[] = {"checkpoint", "checkpoint.1"};
    for (size_t i = 0; i < 2; i++) {
        char path[CONFIG_TEXT_BYTES];
        (void)snprintf(path, sizeof path, "%s/%s", config->state_directory, names[i]);
        if (access(path, F_OK) == 0)
            return true;
    }
    return false;
}

int prepared_lay(struct prepared *p, struct sgp_model_file *layout, struct sgp_error *error)
{
    p->layout = layout;
    p->awaiting_model = false;
    p->parameters = layout->value_count;
    p->model = (struct sgp_model){.parameters = p->parameters};
    p->fingerprint =
        (struct sgp_fingerprint){.shape = shared_digest(layout), .topology = p->topology->digest};
    p->term_count = 0;
    prepared_sum_memory(p);
    return p->parameters <= SGP_PARAMETERS_MAX
               ? prepared_name_tensors(p, error)
               : sgp_fail(error, SGP_E_LIMIT, "the program's model has too many parameters");
}

void prepared_unlay(struct prepared *p)
{
    if (p->trainer != NULL)
        p->trainer->methods->destroy(p->trainer);
    sgp_model_file_destroy(p->layout);
    free(p->ends);
    p->ends = NULL;
    p->trainer = NULL;
    p->attached = NULL;
    p->layout = NULL;
    p->awaiting_model = true;
    p->begins = false;
    p->parameters = 0;
}

int prepare_attached(struct prepared *p, struct sgp_error *error)
{
    const struct config *config = p->config;
    if (p->topology->nodes[p->self].relay)
        return config_fail(config, CONFIG_ID_KIND, error, SGP_E_CONFIG,
            "by %s this node is a relay (train=false), to which no program attaches; a fleet of "
            "programs has no relays",
            prepared_file(p));
    if (sgp_topology_has_copy(p->topology, p->self))
        return config_fail(config, CONFIG_ID_KIND, error, SGP_E_CONFIG,
            "%s has an owner (owns=all), to which no program attaches; a fleet of programs has "
            "none",
            prepared_file(p));
    if (*config->local != '\0')
        return config_fail(config, CONFIG_ID_LOCAL, error, SGP_E_CONFIG,
            "the model is a program's, which names them itself: sgp.attach(..., local=[...]); "
            "remove it");
    warn_about_keys(p);
    p->rounds = (sgp_round)config->rounds;
    p->open = config->rounds == 0;
    p->settings.outer =
        (struct sgp_outer_settings){.kind = (enum sgp_outer_kind)(config->outer - 1),
            .learning_rate = config->outer_learning_rate,
            .momentum = config->outer_momentum};
    char path[CONFIG_TEXT_BYTES];
    prepared_layout_path(config, path);
    struct sgp_model_file *layout = NULL;
    p->awaiting_model = true;
    int code = has_parameters(config) ? shared_read_layout(path, error, &layout) : -ENOENT;
    if (code == -ENOENT) {
        if (error != NULL)
            *error = (struct sgp_error){0};
        return 0;
    }
    return code < 0 ? code : prepared_lay(p, layout, error);
}

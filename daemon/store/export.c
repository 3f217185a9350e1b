/* SPDX-License-Identifier: Apache-2.0 */
/* The tensors and tags of a model file; see export.h. */
#include "export.h"

#include "train/names.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void add_tensors(struct export *export, const struct sgp_model *model)
{
    struct sgp_model_tensor tensors[SGP_MODEL_TENSORS_MAX];
    uint32_t count = model->layer_count > 0 ? sgp_model_tensors(model, tensors) : 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct sgp_model_tensor *from = &tensors[i];
        struct sgp_file_tensor *tensor = &export->own[export->tensor_count++];
        *tensor = (struct sgp_file_tensor){.first = from->first, .count = from->count};
        memcpy(tensor->shape, from->shape, from->dimensions * sizeof *from->shape);
        (void)snprintf(
            tensor->name, sizeof tensor->name, "layers.%" PRIu32 ".%s", from->layer, from->name);
    }
}

static void add_tag(struct export *export, const char *key, const char *value)
{
    sgp_assert(export->tag_count < EXPORT_TAGS_MAX);
    export->tags[export->tag_count++] = (struct sgp_file_tag){key, value};
}

void export_init(struct export *export, const struct sgp_model *model,
    const struct sgp_model_file *layout, char *const *class_names, const char *node,
    sgp_round round, double weight)
{
    *export = (struct export){.tensors = layout ? layout->tensors : export->own,
        .tensor_count = layout ? layout->tensor_count : 0};
    add_tensors(export, model);
    (void)snprintf(export->node, sizeof export->node, "%s", node);
    (void)snprintf(export->round, sizeof export->round, "%" PRId64, round);
    (void)snprintf(export->weight, sizeof export->weight, "%.17g", weight);
    add_tag(export, "node", export->node);
    add_tag(export, "round", export->round);
    add_tag(export, "weight", export->weight);
    if (layout)
        return;
    sgp_model_text(model, export->layers);
    add_tag(export, "layers", export->layers);
    add_tag(export, "loss", sgp_loss_name(model->loss));
    if (class_names) {
        (void)sgp_names_join(class_names, model->outputs, export->classes, sizeof export->classes);
        add_tag(export, "classes", export->classes);
    }
}

struct sgp_model_contents export_contents(const struct export *export, const float *values)
{
    return (struct sgp_model_contents){.values = values,
        .tensors = export->tensors,
        .tensor_count = export->tensor_count,
        .tags = export->tags,
        .tag_count = export->tag_count};
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A model as a safetensors file: its tensors and tags, alike for GET /v1/model and for
 * model.safetensors in the state directory.
 *
 * Tensors are layers.N.NAME with the names and shapes of sgp_model_tensors, N from 0: those of a
 * torch.nn.Sequential of the same layers. Tags: node, round, weight (push-sum's, of the moment),
 * layers, loss, and classes if they have names. A program's model has the tensors that it brought,
 * and the first three tags.
 *
 * Any thread; the struct is plain memory, and borrows the layout alone. */
#ifndef SGPD_EXPORT_H
#define SGPD_EXPORT_H

#include "setup/config.h"

#include "sgp/model.h"
#include "sgp/model_file.h"

#define EXPORT_TAGS_MAX 6u

struct export
{
    const struct sgp_file_tensor *tensors; /* of a program's layout, borrowed; else the next */
    struct sgp_file_tensor own[SGP_MODEL_TENSORS_MAX];
    uint32_t tensor_count;
    struct sgp_file_tag tags[EXPORT_TAGS_MAX]; /* values point into the texts below */
    uint32_t tag_count;
    char node[SGP_NAME_BYTES];
    char round[24];
    char weight[32];
    char layers[SGP_MODEL_TEXT_BYTES];
    char classes[CONFIG_TEXT_BYTES]; /* as in the configuration, see train/names.h */
};

/* layout: of a program's model, else NULL. class_names: NULL, or model->outputs names. The struct must not be moved afterwards. */
void export_init(struct export *export, const struct sgp_model *model,
    const struct sgp_model_file *layout, char *const *class_names, const char *node,
    sgp_round round, double weight);

/* For sgp_safetensors_*: `values` (model->parameters), the table and the tags, all borrowed. */
struct sgp_model_contents export_contents(const struct export *export, const float *values);

#endif

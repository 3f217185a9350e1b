/* SPDX-License-Identifier: Apache-2.0 */
/* A model as a safetensors file: its tensors and tags. They are the same for GET /v1/model and for
 * model.safetensors in the state directory.
 *
 * Tensors are layers.N.NAME with the names and shapes of sgp_model_tensors, N from 0: those of a
 * torch.nn.Sequential of the same layers. docs/MODELS.md defines the tags: the origin of the model,
 * and all that is needed to use it elsewhere (sgp/predictor.h). A program's model has the tensors
 * that the program brought, and the tags of its origin.
 *
 * Any thread; the struct is plain memory, and borrows what view_model points to. */
#ifndef SGPD_EXPORT_H
#define SGPD_EXPORT_H

#include "setup/config.h"
#include "util/view.h"

#include "sgp/model.h"
#include "sgp/model_file.h"

#define EXPORT_TAGS_MAX 29u
#define EXPORT_NUMBER_BYTES 32u

struct export
{
    const struct sgp_file_tensor *tensors; /* of a program's layout, borrowed; else `tensors` */
    struct sgp_file_tensor own[SGP_MODEL_TENSORS_MAX];
    uint32_t tensor_count;
    struct sgp_file_tag tags[EXPORT_TAGS_MAX]; /* values point into the texts below */
    uint32_t tag_count;
    char node[SGP_NAME_BYTES];
    char numbers[EXPORT_TAGS_MAX][EXPORT_NUMBER_BYTES]; /* of tags that are numbers, in turn */
    uint32_t number_count;
    char created[32];
    char fingerprint[20];
    char layers[SGP_MODEL_TEXT_BYTES];
    char local[SGP_MODEL_LOCAL_BYTES];
    char classes[CONFIG_TEXT_BYTES]; /* as in the configuration, see train/names.h */
};

/* When and where the values were taken. */
struct export_moment {
    const char *node;
    sgp_round round;
    double weight;
    struct sgp_training training; /* the latest; loss NaN: none */
    struct sgp_evaluation test;   /* the latest; loss NaN: none */
    bool private_steps;           /* no figure of the node's rows goes into the file */
    const struct view_best *best; /* the model is this one, kept by all nodes; NULL: it is not */
};

/* The struct must not be moved afterwards. */
void export_init(
    struct export *export, const struct view_model *view, const struct export_moment *moment);

/* The round of a model that was written so, by the head of its file. SGP_ROUND_NONE: it is none, or
 * a link. Blocks on the disk. */
sgp_round export_round_of(const char *path);

/* For sgp_safetensors_*: `values` (sgp_model_values), the table and the tags, all borrowed. */
struct sgp_model_contents export_contents(const struct export *export, const float *values);

#endif

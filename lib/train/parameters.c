/* SPDX-License-Identifier: Apache-2.0 */
/* The parameters of a model: its tensors, in which of two vectors each lies, which layers are
 * local, and the first values. Any thread; no state. */
#include "parameters.h"

#include "layer.h"

#include "sgp/random.h"

#include <string.h>

/* separates these draws from other draws of a seed */
#define STREAM_PARAMETERS UINT64_C(0x6d6f64656c)

/* ---- tensors ---- */

/* The number of values of a tensor. If the tensor is too large, the result is above
 * SGP_PARAMETERS_MAX. */
static uint64_t count_values(const struct sgp_model_tensor *tensor)
{
    uint64_t count = 1;
    for (uint32_t i = 0; i < tensor->dimensions; i++)
        count = count > SGP_PARAMETERS_MAX ? count : count * tensor->shape[i];
    return count;
}

static uint32_t tensors_of(const struct sgp_layer *layer,
    struct sgp_model_tensor ret_tensors[static SGP_LAYER_TENSORS_MAX])
{
    const struct sgp_layer_methods *methods = sgp_layer_methods(layer->kind);
    uint32_t count = methods->tensors ? methods->tensors(layer, ret_tensors) : 0;
    uint64_t first = layer->weights;
    for (uint32_t i = 0; i < count; i++) {
        ret_tensors[i].local = layer->local;
        ret_tensors[i].first = first;
        ret_tensors[i].count = count_values(&ret_tensors[i]);
        first += ret_tensors[i].count;
    }
    return count;
}

int sgp_parameters_place(struct sgp_model *model, struct sgp_layer *layer, struct sgp_error *error)
{
    struct sgp_model_tensor tensors[SGP_LAYER_TENSORS_MAX];
    uint64_t *end = layer->local ? &model->local_parameters : &model->parameters;
    uint64_t sum = model->parameters + model->local_parameters;
    layer->weights = *end;
    uint32_t count = tensors_of(layer, tensors);
    for (uint32_t i = 0; i < count && sum <= SGP_PARAMETERS_MAX; i++)
        sum += tensors[i].count;
    if (sum > SGP_PARAMETERS_MAX)
        return sgp_fail(error, SGP_E_LIMIT,
            "the model has more than %llu parameters; use smaller layers",
            (unsigned long long)SGP_PARAMETERS_MAX);
    *end = sum - (layer->local ? model->parameters : model->local_parameters);
    layer->biases = count > 1 ? tensors[1].first : layer->weights;
    layer->end = *end;
    return 0;
}

uint32_t sgp_model_tensors(const struct sgp_model *model,
    struct sgp_model_tensor ret_tensors[static SGP_MODEL_TENSORS_MAX])
{
    uint32_t count = 0;
    for (uint32_t l = 0; l < model->layer_count; l++) {
        uint32_t of_layer = tensors_of(&model->layers[l], ret_tensors + count);
        for (uint32_t i = 0; i < of_layer; i++)
            ret_tensors[count++].layer = l;
    }
    return count;
}

uint32_t sgp_model_ends(const struct sgp_model *model, bool local,
    struct sgp_tensor_end ret_ends[static SGP_MODEL_TENSORS_MAX])
{
    struct sgp_model_tensor tensors[SGP_MODEL_TENSORS_MAX];
    uint32_t count = sgp_model_tensors(model, tensors), found = 0;
    for (uint32_t i = 0; i < count; i++)
        if (tensors[i].local == local)
            ret_ends[found++] = (struct sgp_tensor_end){
                tensors[i].first + tensors[i].count, tensors[i].dimensions > 1};
    return found;
}

/* ---- local layers ---- */

static bool has_parameters(const struct sgp_layer *layer)
{
    return layer->end > layer->weights;
}

/* The word behind "layers." as an index; SGP_LAYERS_MAX: it is none. */
static uint32_t index_of(const char *word)
{
    static const char prefix[] = "layers.";
    const size_t length = sizeof prefix - 1;
    if (strncmp(word, prefix, length) != 0)
        return SGP_LAYERS_MAX;
    if (strcmp(word + length, "0") == 0)
        return 0;
    uint32_t index = word[length] == '0' ? 0 : sgp_words_count(word + length, SGP_LAYERS_MAX - 1);
    return index > 0 ? index : SGP_LAYERS_MAX;
}

/* Check that a name is one of a layer, of a kind of layers, or `head`. */
static int check_name(const struct sgp_model *model, struct sgp_words *words)
{
    const char *word = words->word;
    if (*word == '\0')
        return sgp_fail(words->error, SGP_E_CONFIG,
            "a name is empty; write one name between two commas, as in 'norm, head'");
    if (*words->cursor != ',' && *words->cursor != '\0')
        return sgp_fail(words->error, SGP_E_CONFIG,
            "'%s' goes on with '%.16s'; separate names by commas", word, words->cursor);
    if (strcmp(word, "head") == 0 || sgp_layer_find(word) != 0)
        return 0;
    if (index_of(word) == SGP_LAYERS_MAX)
        return sgp_fail(words->error, SGP_E_CONFIG,
            "'%s' names no layers; write head, a kind such as norm, or a layer such as layers.0, "
            "as a model file names it",
            word);
    if (index_of(word) >= model->layer_count)
        return sgp_fail(words->error, SGP_E_CONFIG,
            "there is no %s; the model has layers.0 to layers.%u", word, model->layer_count - 1);
    return 0;
}

static bool is_named(const struct sgp_model *model, uint32_t l, const char *word)
{
    uint32_t head = model->layer_count - 1;
    while (!has_parameters(&model->layers[head]))
        head--;
    return strcmp(word, "head") == 0
               ? l == head
               : l == index_of(word) || model->layers[l].kind == sgp_layer_find(word);
}

/* Make the layers of a name local. A name that changes nothing is a mistake. */
static int choose(struct sgp_model *model, struct sgp_words *words)
{
    uint32_t found = 0, bare = 0, added = 0;
    int status = check_name(model, words);
    for (uint32_t l = 0; status == 0 && l < model->layer_count; l++) {
        struct sgp_layer *layer = &model->layers[l];
        if (!is_named(model, l, words->word))
            continue;
        found++;
        bare += !has_parameters(layer);
        added += has_parameters(layer) && !layer->local;
        layer->local = has_parameters(layer);
    }
    if (status < 0 || added > 0)
        return status;
    if (found == 0)
        return sgp_fail(words->error, SGP_E_CONFIG,
            "no layer is %s; name a kind that [model] layers has, or head", words->word);
    if (found == bare)
        return sgp_fail(words->error, SGP_E_CONFIG,
            "%s has no parameters, so there is nothing to keep local; name a layer that learns",
            words->word);
    return sgp_fail(words->error, SGP_E_CONFIG,
        "'%s' names no layer that is not named before it; leave it out", words->word);
}

/* Place the parameters of all layers anew; there were as many before. */
static void place_anew(struct sgp_model *model)
{
    model->parameters = model->local_parameters = 0;
    for (uint32_t l = 0; l < model->layer_count; l++)
        sgp_assert(sgp_parameters_place(model, &model->layers[l], NULL) == 0);
}

int sgp_model_set_local(struct sgp_model *model, const char *names, struct sgp_error *error)
{
    struct sgp_model chosen = *model;
    struct sgp_words words = {.cursor = names, .error = error};
    int status = 0;
    for (uint32_t l = 0; l < chosen.layer_count; l++)
        chosen.layers[l].local = false;
    if (names[strspn(names, " \t")] != '\0')
        for (;; words.cursor++) {
            (void)sgp_words_next(&words);
            status = choose(&chosen, &words);
            if (status < 0 || *words.cursor == '\0')
                break;
        }
    if (status < 0)
        return status;
    place_anew(&chosen);
    if (chosen.parameters == 0)
        return sgp_fail(error, SGP_E_CONFIG,
            "all layers that learn are local, so the nodes would have nothing to share; leave one "
            "out");
    *model = chosen;
    return 0;
}

void sgp_model_local_text(const struct sgp_model *model, char ret_text[SGP_MODEL_LOCAL_BYTES])
{
    struct sgp_text text = {.bytes = ret_text};
    _Static_assert(SGP_LAYERS_MAX * sizeof ", layers.63" < SGP_MODEL_LOCAL_BYTES, "all fit");
    _Static_assert(SGP_MODEL_LOCAL_BYTES < SGP_MODEL_TEXT_BYTES, "sgp_text_add checks for more");
    ret_text[0] = '\0';
    for (uint32_t l = 0; l < model->layer_count; l++)
        if (model->layers[l].local)
            sgp_text_add(&text, "%slayers.%u", text.length > 0 ? ", " : "", l);
}

/* ---- values ---- */

uint64_t sgp_model_values(const struct sgp_model *model)
{
    return model->parameters + model->local_parameters;
}

void sgp_model_join(
    const struct sgp_model *model, const float *x, const float *local, float *values)
{
    struct sgp_model_tensor tensors[SGP_MODEL_TENSORS_MAX];
    uint32_t count = sgp_model_tensors(model, tensors);
    for (uint32_t i = 0; i < count; values += tensors[i++].count)
        memcpy(values, (tensors[i].local ? local : x) + tensors[i].first,
            tensors[i].count * sizeof *values);
}

void sgp_model_exchange(const struct sgp_model *model, float *x, float *local, float *values)
{
    struct sgp_model_tensor tensors[SGP_MODEL_TENSORS_MAX];
    uint32_t count = sgp_model_tensors(model, tensors);
    for (uint32_t i = 0; i < count; i++) {
        float *own = (tensors[i].local ? local : x) + tensors[i].first;
        for (uint64_t j = 0; j < tensors[i].count; j++, values++) {
            const float value = own[j];
            own[j] = *values;
            *values = value;
        }
    }
}

void sgp_model_initialise(const struct sgp_model *model, uint64_t seed, float *x, float *local)
{
    struct sgp_model_tensor tensors[SGP_MODEL_TENSORS_MAX];
    uint32_t count = sgp_model_tensors(model, tensors);
    struct sgp_random random;
    sgp_random_init(&random, seed, STREAM_PARAMETERS);
    for (uint32_t i = 0; i < count; i++) {
        const struct sgp_model_tensor *tensor = &tensors[i];
        float *values = (tensor->local ? local : x) + tensor->first;
        for (uint64_t j = 0; j < tensor->count; j++)
            values[j] = tensor->deviation > 0
                            ? (float)(tensor->deviation * sgp_random_normal(&random))
                            : (float)tensor->value;
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Tunes the local layers of a finished model; see tune.h. Thread: the only one. */
#include "tune.h"

#include "store/export.h"

#include "sgp/model_file.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int check_config(const struct prepared *p, struct sgp_error *error)
{
    if (p->config->kind == CONFIG_ATTACHED)
        return config_fail(p->config, CONFIG_ID_KIND, error, SGP_E_CONFIG,
            "a program has the model, and tunes it itself");
    if (p->model.local_parameters == 0)
        return config_fail(p->config, CONFIG_ID_LOCAL, error, SGP_E_CONFIG,
            "no layer is local, so there is nothing to tune; name some, as in local = head");
    if (p->data.train == NULL)
        return config_fail(p->config, CONFIG_ID_TRAIN, error, SGP_E_CONFIG,
            "this node has no rows to tune the model on; give it some");
    return 0;
}

static const char *tag_of(const struct export *export, const char *key)
{
    const char *value = NULL;
    for (uint32_t i = 0; i < export->tag_count; i++)
        if (strcmp(export->tags[i].key, key) == 0)
            value = export->tags[i].value;
    return value;
}

/* Whether the file has the model of the configuration: which rows it takes, and what it says. Its
 * own choice of local layers does not matter. */
static int compare(const struct sgp_model_file *file, const struct export *own, const char *path,
    struct sgp_error *error)
{
    static const char *const keys[] = {
        "layers", "loss", "inputs", "columns", "missing", "label", "targets", "classes"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const char *theirs = sgp_model_file_tag(file, keys[i]), *ours = tag_of(own, keys[i]);
        if (theirs == ours || (theirs && ours && strcmp(theirs, ours) == 0))
            continue;
        return sgp_fail(error, SGP_E_FILE,
            "%s: its %s are not those of the configuration: %.120s in the file and %.120s here",
            path, keys[i], theirs ? theirs : "none", ours ? ours : "none");
    }
    return 0;
}

/* Put the model of the file into the learner. */
static int take_model(const struct prepared *p, const char *path, const struct export *own,
    struct sgp_error *error, sgp_round *ret_round)
{
    struct sgp_model_file *file = NULL;
    int code = sgp_safetensors_read(path, error, &file);
    if (code == 0)
        code = compare(file, own, path, error);
    if (code == 0 && file->value_count != sgp_model_values(&p->model))
        code = sgp_fail(error, SGP_E_FILE, "%s: its values do not fit its layers", path);
    if (code == 0) {
        const char *round = sgp_model_file_tag(file, "round");
        *ret_round = round != NULL ? (sgp_round)strtoll(round, NULL, 10) : 0;
        sgp_learner_exchange(p->learner, file->values);
    }
    sgp_model_file_destroy(file);
    return code;
}

static void tell(const char *when, const struct sgp_evaluation *test)
{
    (void)printf("%-8s", when);
    if (test->samples > 0)
        (void)printf("  test loss %.6g", test->loss);
    if (test->samples > 0 && !isnan(test->accuracy))
        (void)printf("  accuracy %.4f", test->accuracy);
    (void)printf("\n");
    (void)fflush(stdout);
}

/* What a run of this configuration would take in steps, an epoch at a time. */
static int train(const struct prepared *p, struct sgp_error *error, struct export_moment *moment)
{
    const uint64_t steps = (uint64_t)p->rounds * p->config->local_steps;
    int code = p->trainer->methods->evaluate(p->trainer, 1, &moment->test);
    if (code == 0)
        tell("before", &moment->test);
    for (uint64_t done = 0, count; done < steps && code == 0; done += count) {
        char when[32];
        count = sgp_learner_steps_per_epoch(p->learner);
        count = count < steps - done ? count : steps - done;
        code = p->trainer->methods->train(p->trainer, 1, (uint32_t)count, 1, &moment->training);
        if (code == 0)
            code = p->trainer->methods->evaluate(p->trainer, 1, &moment->test);
        (void)snprintf(when, sizeof when, "%.6g", moment->training.epoch);
        if (code == 0)
            tell(when, &moment->test);
    }
    return code < 0 ? sgp_fail(error, code,
                          "the model diverges: a loss is not a number; use a smaller [optimizer] "
                          "learning_rate")
                    : 0;
}

static int write_model(const struct prepared *p, const struct view_model *view,
    const struct export_moment *moment, const char *output, struct sgp_error *error)
{
    struct export *export = malloc(sizeof *export);
    float *values = malloc(sgp_model_values(&p->model) * sizeof *values);
    int code = export != NULL && values != NULL
                   ? 0
                   : sgp_fail(error, -ENOMEM, "%s: out of memory", output);
    if (code == 0) {
        p->trainer->methods->model(p->trainer, 1, values);
        export_init(export, view, moment);
        const struct sgp_model_contents contents = export_contents(export, values);
        code = sgp_safetensors_write(&contents, output, error);
    }
    free(values);
    free(export);
    return code;
}

int tune(struct prepared *p, const char *path, const char *output, struct sgp_error *error)
{
    struct export_moment moment = {
        .node = p->config->name, .weight = 1, .training = {.loss = NAN}, .test = {.loss = NAN}};
    struct view_model view = {.model = NULL};
    int code = check_config(p, error);
    if (code < 0)
        return code;
    struct export *own = malloc(sizeof *own);
    if (own == NULL)
        return sgp_fail(error, -ENOMEM, "%s: out of memory", path);
    p->settings.frozen = true;
    code = prepared_learn(p, error);
    if (code == 0) {
        prepared_view_model(p, &view);
        export_init(own, &view, &moment);
        code = take_model(p, path, own, error, &moment.round);
    }
    free(own);
    if (code == 0)
        code = train(p, error, &moment);
    if (code == 0)
        code = write_model(p, &view, &moment, output, error);
    return code;
}

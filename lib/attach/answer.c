/* SPDX-License-Identifier: Apache-2.0 */
/* Answers; see answer.h. Rows and outputs are mapped memory of the descriptors. */
#include "answer.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

uint32_t sgp_answers_flags(const struct sgp_answers *answers)
{
    return (answers->evaluate != NULL ? SGP_ATTACH_EVALUATES : 0) |
           (answers->predict != NULL ? SGP_ATTACH_PREDICTS : 0);
}

static int evaluate(
    const struct sgp_answers *answers, const float *z, struct sgp_attach_frame *answer)
{
    struct sgp_evaluation found = {.loss = (double)NAN, .accuracy = (double)NAN};
    if (answers->evaluate == NULL)
        return SGP_E_STATE;
    int status = answers->evaluate(answers->context, z, &found);
    answer->rows = found.samples;
    answer->test_loss = found.loss;
    answer->test_accuracy = found.accuracy;
    return status;
}

/* Create a file for outputs whose size cannot change. Returns a descriptor, or -errno. */
static int create_outputs(size_t bytes, void **ret_map)
{
    int descriptor = memfd_create("outputs", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (descriptor < 0)
        return -errno;
    if (ftruncate(descriptor, (off_t)bytes) == 0 &&
        fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        *ret_map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    else
        *ret_map = MAP_FAILED;
    if (*ret_map != MAP_FAILED)
        return descriptor;
    int status = -errno;
    (void)close(descriptor);
    return status;
}

static int predict(const struct sgp_answers *answers, const float *z,
    const struct sgp_attach_frame *question, int rows, struct sgp_attach_frame *answer,
    int *ret_outputs)
{
    const size_t bytes = question->rows * question->columns * sizeof(float);
    const size_t output_bytes = question->rows * answers->outputs * sizeof(float);
    struct stat file;
    if (answers->predict == NULL || rows < 0 || fstat(rows, &file) < 0 ||
        file.st_size != (off_t)bytes)
        return SGP_E_PROTOCOL;
    void *features = mmap(NULL, bytes, PROT_READ, MAP_SHARED, rows, 0), *outputs = NULL;
    if (features == MAP_FAILED)
        return -errno;
    int descriptor = create_outputs(output_bytes, &outputs);
    int status = descriptor < 0 ? descriptor
                                : answers->predict(answers->context, z, features, question->rows,
                                      question->columns, outputs);
    if (descriptor >= 0)
        (void)munmap(outputs, output_bytes);
    (void)munmap(features, bytes);
    if (status < 0 && descriptor >= 0)
        (void)close(descriptor);
    answer->rows = question->rows;
    answer->columns = answers->outputs;
    *ret_outputs = status < 0 ? -1 : descriptor;
    return status;
}

void sgp_answer(const struct sgp_answers *answers, const float *z,
    const struct sgp_attach_frame *question, int rows, struct sgp_attach_frame *ret_answer,
    int *ret_outputs)
{
    bool predicts = question->type == SGP_ATTACH_PREDICT;
    *ret_outputs = -1;
    *ret_answer = (struct sgp_attach_frame){
        .type = predicts ? SGP_ATTACH_PREDICTED : SGP_ATTACH_EVALUATED, .turn = question->turn};
    int status = predicts ? predict(answers, z, question, rows, ret_answer, ret_outputs)
                          : evaluate(answers, z, ret_answer);
    ret_answer->code = status < 0 ? status : 0;
    if (status < 0)
        (void)snprintf(ret_answer->text, sizeof ret_answer->text, "%s", sgp_strerror(status));
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a model of three parameters to standard output as safetensors: what GET /v1/model sends. */
#include "sgp/model_file.h"

#include <stdio.h>
#include <stdlib.h>

int main(void)
{
    const float values[] = {1.5f, -2.0f, 0.25f};
    const struct sgp_file_tensor tensors[] = {
        {.name = "layers.0.weight", .shape = {1, 2}, .first = 0, .count = 2},
        {.name = "layers.0.bias", .shape = {1}, .first = 2, .count = 1}};
    const struct sgp_model_contents contents = {
        .values = values, .tensors = tensors, .tensor_count = 2};
    void *bytes;
    size_t count;
    struct sgp_error error = {0};
    if (sgp_safetensors_encode(&contents, &error, &bytes, &count) < 0) {
        (void)fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    bool written = fwrite(bytes, 1, count, stdout) == count && fflush(stdout) == 0;
    free(bytes);
    return written ? 0 : 1;
}

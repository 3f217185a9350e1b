/* SPDX-License-Identifier: Apache-2.0 */
/* Writes NAME.npz and NAME.safetensors of known values, for test_model_files.py. */
#include <stdio.h>

#include "sgp/model_file.h"

int main(int argc, char **argv)
{
    static const float values[9] = {0, 0.25f, 0.5f, 0.75f, 1, 1.25f, 1.5f, 1.75f, 2};
    static const struct sgp_file_tensor tensors[2] = {
        {.name = "layers.0.weight", .shape = {2, 3}, .first = 0, .count = 6},
        {.name = "layers.0.bias", .shape = {3, 0}, .first = 6, .count = 3}};
    static const struct sgp_file_tag tag = {"round", "42"};
    const struct sgp_model_contents contents = {
        .values = values, .tensors = tensors, .tensor_count = 2, .tags = &tag, .tag_count = 1};
    struct sgp_error error = {.code = 0};
    char path[4096];
    if (argc != 2)
        return 2;
    snprintf(path, sizeof path, "%s.npz", argv[1]);
    int status = sgp_npz_write(&contents, path, &error);
    snprintf(path, sizeof path, "%s.safetensors", argv[1]);
    if (status == 0)
        status = sgp_safetensors_write(&contents, path, &error);
    if (status < 0)
        fprintf(stderr, "%s\n", error.text);
    return status < 0;
}

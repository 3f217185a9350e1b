/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the scaling of the statistics in files: combine_statistics NODE FILE [NODE FILE]... */
#include <stdio.h>
#include <stdlib.h>

#include "sgp/statistics.h"

static char *content_of(const char *path)
{
    FILE *file = fopen(path, "rb");
    char *text = calloc(1, SGP_STATISTICS_MAX + 1);
    sgp_assert(file != NULL && text != NULL);
    sgp_assert(fread(text, 1, SGP_STATISTICS_MAX, file) > 0);
    (void)fclose(file);
    return text;
}

int main(int argc, char **argv)
{
    enum { NODES_MAX = 64 };
    const char *texts[NODES_MAX], *names[NODES_MAX];
    struct sgp_error error = {0};
    struct sgp_scaling *scaling = NULL;
    char *text = NULL;
    uint32_t count = 0;
    for (int i = 1; i + 1 < argc && count < NODES_MAX; i += 2, count++) {
        names[count] = argv[i];
        texts[count] = content_of(argv[i + 1]);
    }
    const int code = sgp_statistics_combine(texts, names, count, &error, &scaling, &text);
    if (code == 0)
        (void)printf("%s\n", text);
    else
        (void)fprintf(stderr, "%s\n", error.text);
    sgp_scaling_destroy(scaling);
    free(text);
    for (uint32_t i = 0; i < count; i++)
        free((void *)(uintptr_t)texts[i]);
    return code < 0;
}

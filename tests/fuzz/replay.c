/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a fuzzer's function over every file of its corpus: what libFuzzer does first, without libFuzzer.
 * Any compiler builds it, so every run of the tests shows that no committed input breaks a reader. */
#include <dirent.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Larger files have no place in a corpus that is committed. */
enum { INPUT_BYTES_MAX = 1 << 20 };

static int replay(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        return -1;
    }
    uint8_t *data = malloc(INPUT_BYTES_MAX + 1);
    size_t size = data == NULL ? 0 : fread(data, 1, INPUT_BYTES_MAX + 1, file);
    (void)fclose(file);
    /* An exact copy, so that AddressSanitizer sees a read past the end. */
    uint8_t *exact = malloc(size == 0 ? 1 : size);
    if (data == NULL || exact == NULL || size > INPUT_BYTES_MAX) {
        (void)fprintf(stderr, "%s: larger than %d bytes\n", path, INPUT_BYTES_MAX);
        free(data);
        free(exact);
        return -1;
    }
    for (size_t i = 0; i < size; i++) {
        exact[i] = data[i];
    }
    free(data);
    (void)LLVMFuzzerTestOneInput(exact, size);
    free(exact);
    return 0;
}

int main(int argc, char **argv)
{
    DIR *corpus = argc == 2 ? opendir(argv[1]) : NULL;
    if (corpus == NULL) {
        (void)fprintf(stderr, "usage: %s CORPUS_DIRECTORY\n", argv[0]);
        return 2;
    }
    unsigned count = 0;
    for (struct dirent *entry; (entry = readdir(corpus)) != NULL;) {
        char path[PATH_MAX];
        (void)snprintf(path, sizeof path, "%s/%s", argv[1], entry->d_name);
        if (entry->d_name[0] != '.' && replay(path) != 0) {
            return 1;
        }
        count += entry->d_name[0] != '.';
    }
    (void)closedir(corpus);
    (void)printf("%u inputs\n", count);
    return count > 0 ? 0 : 1;
}

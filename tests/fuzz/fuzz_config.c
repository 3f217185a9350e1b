/* SPDX-License-Identifier: Apache-2.0 */
/* Any text as a configuration: refused with one line that names the file, or accepted with every
 * value in its range. */
#include "setup/config.h"

#include <math.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_ranges(const struct config *config)
{
    for (unsigned i = 0; i < CONFIG_KEY_COUNT; i++) {
        const struct config_key *key = &config_keys[i];
        const void *field = (const char *)config + key->offset;
        bool given = config->lines[i] != 0;
        if (key->type == CONFIG_COUNT && given && *(const uint64_t *)field != 0)
            sgp_assert(*(const uint64_t *)field >= (uint64_t)key->least &&
                       *(const uint64_t *)field <= (uint64_t)key->most);
        else if (key->type == CONFIG_REAL && !isnan(*(const double *)field))
            sgp_assert(*(const double *)field >= key->least && *(const double *)field <= key->most);
        else if (key->type == CONFIG_REAL_OR_WORD && *(const double *)field > 0)
            sgp_assert(*(const double *)field >= key->least && *(const double *)field <= key->most);
        else if (key->type == CONFIG_CHOICE)
            sgp_assert(*(const int *)field >= 1);
        else if (key->type <= CONFIG_ADDRESS)
            sgp_assert(strlen(*(char *const *)field) < CONFIG_TEXT_BYTES);
        sgp_assert(given || key->default_text);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sgp_error error = {0};
    struct config config;
    int code = config_parse("fuzz/n.conf", (const char *)data, size, &error, &config);
    if (code < 0) {
        sgp_assert(error.code == code && strncmp(error.text, "fuzz/n.conf:", 12) == 0);
        return 0;
    }
    check_ranges(&config);
    config_finish(&config);
    return 0;
}

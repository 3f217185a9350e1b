/* SPDX-License-Identifier: Apache-2.0 */
/* STATE/claim: written, read, replaced, and damaged in each byte. */
#include "store/claim_file.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char directory[] = "/tmp/sgp-claim-XXXXXX";
static char path[sizeof directory + sizeof "/" CLAIM_FILE];

static void make(void)
{
    cr_assert(mkdtemp(directory) != NULL);
    (void)snprintf(path, sizeof path, "%s/" CLAIM_FILE, directory);
}

static void clear(void)
{
    (void)unlink(path);
    (void)rmdir(directory);
}

static void put(const char *text)
{
    FILE *file = fopen(path, "w");
    cr_assert(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
}

Test(claim_file, is_read_back_and_replaced, .init = make, .fini = clear)
{
    struct sgp_claim claim = {3, 1e-5, 1.1, NAN, 1}, back;
    struct sgp_error error = {0};
    cr_assert(eq(int, claim_file_read(directory, &error, &back), 0), "there is none yet");
    for (int i = 0; i < 2; i++, claim.epsilon++) {
        cr_assert(eq(int, claim_file_write(directory, &claim, &error), 0), "%s", error.text);
        cr_assert(eq(int, claim_file_read(directory, &error, &back), 1), "%s", error.text);
        cr_assert(back.epsilon == claim.epsilon && back.delta == 1e-5 && back.noise == 1.1);
        cr_assert(isnan(back.chance) && back.clip == 1);
    }
}

Test(claim_file, a_damaged_one_is_an_error_with_a_remedy, .init = make, .fini = clear)
{
    static const char *const texts[] = {
        "", "\n", "epsilon=3 delta=1e-5", "epsilon=3\n", "epsilon=3 delta=1e-5 clip=x\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct sgp_claim claim;
        struct sgp_error error = {0};
        put(texts[i]);
        cr_expect(eq(int, claim_file_read(directory, &error, &claim), SGP_E_DATA));
        cr_expect(strstr(error.text, path) == error.text, "%s", error.text);
        cr_expect(strstr(error.text, "let the program claim again") != NULL, "%s", error.text);
    }
}

Test(claim_file, a_disk_that_fails_is_an_error, .init = make, .fini = clear)
{
    const struct sgp_claim claim = {3, 1e-5, NAN, NAN, NAN};
    struct sgp_error error = {0};
    cr_assert(lt(int, claim_file_write("/proc/none", &claim, &error), 0));
    cr_assert(strstr(error.text, "/proc/none/claim") == error.text, "%s", error.text);
}

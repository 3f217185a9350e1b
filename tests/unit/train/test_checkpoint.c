/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints: what comes back to the bit, and what is refused. */
#include "sgp/checkpoint.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char directory[] = "/tmp/sgpd-checkpoint-XXXXXX";
static char path[64], older[80];
static const float x[3] = {1.5F, -0.0F, 1e-40F}, velocity[3] = {4, 5, 6};

static void setup(void)
{
    cr_assert(mkdtemp(directory) != NULL);
    (void)snprintf(path, sizeof path, "%s/checkpoint", directory);
    (void)snprintf(older, sizeof older, "%s.1", path);
}

static void teardown(void)
{
    (void)unlink(path);
    (void)unlink(older);
    (void)rmdir(directory);
}

TestSuite(checkpoint, .init = setup, .fini = teardown);

static void write_round(sgp_round round, const float *momentum)
{
    struct sgp_error error = {0};
    struct sgp_checkpoint checkpoint = {.parameters = 3,
        .shape = 99,
        .point = {.incarnation = 7, .sequence = 1234, .round = round, .weight = 0.3},
        .state = {.x = x}};
    sgp_state_add_counter(&checkpoint.state, SGP_STATE_STEPS, 55);
    if (momentum)
        sgp_state_add_vector(&checkpoint.state, "velocity", momentum, 3);
    cr_assert(zero(int, sgp_checkpoint_write(path, &checkpoint, &error)), "%s", error.text);
}

static int read_back(const char *file, struct sgp_error *error, struct sgp_checkpoint *checkpoint)
{
    float *memory = NULL;
    int code = sgp_checkpoint_read(file, 3, 99, error, checkpoint, &memory);
    if (code == 0) {
        cr_assert(zero(int, memcmp(checkpoint->state.x, x, sizeof x)));
        const float *momentum = sgp_state_vector(&checkpoint->state, "velocity", 3);
        if (momentum)
            cr_assert(zero(int, memcmp(momentum, velocity, sizeof velocity)));
    }
    free(memory);
    return code;
}

Test(checkpoint, what_was_written_comes_back_to_the_bit)
{
    struct sgp_error error = {0};
    struct sgp_checkpoint back;
    write_round(8, velocity);
    cr_assert(zero(int, read_back(path, &error, &back)), "%s", error.text);
    cr_assert(eq(i64, back.point.round, 8));
    cr_assert(eq(u64, back.point.sequence, 1234));
    cr_assert(eq(u64, back.point.incarnation, 7));
    cr_assert(eq(dbl, back.point.weight, 0.3));
    cr_assert(eq(u64, sgp_state_counter(&back.state, SGP_STATE_STEPS), 55));
    cr_assert(eq(u32, back.state.vector_count, 1));
    write_round(9, NULL);
    cr_assert(zero(int, read_back(path, &error, &back)));
    cr_assert(zero(u32, back.state.vector_count));
}

Test(checkpoint, snapshots_and_named_state_come_back)
{
    struct sgp_error error = {0};
    const float snapshots[2][3] = {{7, 8, -0.0F}, {1e-45F, 9, 10}}, six[] = {1, 2, 3, 4, 5, 6};
    struct sgp_checkpoint back, checkpoint = {.parameters = 3,
                                    .shape = 99,
                                    .state = {.x = x},
                                    .point = {.kept_count = 2, .kept = {41, 0}},
                                    .kept = {snapshots[0], snapshots[1]}};
    sgp_state_add_vector(&checkpoint.state, "velocity", velocity, 3);
    sgp_state_add_vector(&checkpoint.state, "longer than x", six, 6);
    sgp_state_add_vector(&checkpoint.state, "exactly 23 bytes a name", snapshots[1], 3);
    sgp_state_add_counter(&checkpoint.state, "a", 1);
    sgp_state_add_counter(&checkpoint.state, "b", UINT64_MAX);
    cr_assert(zero(int, sgp_checkpoint_write(path, &checkpoint, &error)), "%s", error.text);
    float *memory;
    cr_assert(zero(int, sgp_checkpoint_read(path, 3, 99, &error, &back, &memory)));
    cr_assert(eq(u32, back.point.kept_count, 2));
    cr_assert(eq(i64, back.point.kept[0], 41));
    cr_assert(eq(i64, back.point.kept[1], 0));
    for (int i = 0; i < 2; i++)
        cr_assert(zero(int, memcmp(back.kept[i], snapshots[i], sizeof snapshots[i])));
    cr_assert(eq(u32, back.state.vector_count, 3));
    for (int i = 0; i < 3; i++) {
        const struct sgp_state_vector *to = &checkpoint.state.vectors[i];
        const float *values = sgp_state_vector(&back.state, to->name, to->count);
        cr_assert(
            values && memcmp(values, to->values, to->count * sizeof *values) == 0, "%s", to->name);
        cr_assert_null(sgp_state_vector(&back.state, to->name, to->count + 1));
    }
    cr_assert(eq(u64, sgp_state_counter(&back.state, "a"), 1));
    cr_assert(eq(u64, sgp_state_counter(&back.state, "b"), UINT64_MAX));
    cr_assert(zero(u64, sgp_state_counter(&back.state, "c")));
    cr_assert_null(sgp_state_vector(&back.state, "a", 3));
    free(memory);
}

static mode_t mode_of(const char *file)
{
    struct stat info;
    cr_assert(zero(int, stat(file, &info)));
    return info.st_mode & 07777;
}

/* Whatever the umask, and whatever a killed process left. */
Test(checkpoint, it_is_not_for_everybody)
{
    char half[80];
    (void)snprintf(half, sizeof half, "%s.new", path);
    (void)umask(0);
    FILE *file = fopen(half, "w");
    cr_assert(file != NULL && fclose(file) == 0);
    cr_assert(eq(u32, mode_of(half), 0666));
    write_round(8, velocity);
    cr_assert(eq(u32, mode_of(path), 0640), "%s has mode %o", path, mode_of(path));
    (void)umask(0077);
    write_round(9, velocity);
    cr_assert(eq(u32, mode_of(path), 0600));
    cr_assert(lt(int, access(half, F_OK), 0));
}

Test(checkpoint, the_one_before_is_kept)
{
    struct sgp_checkpoint back;
    write_round(8, velocity);
    write_round(9, velocity);
    write_round(10, velocity);
    cr_assert(zero(int, read_back(path, NULL, &back)));
    cr_assert(eq(i64, back.point.round, 10));
    cr_assert(zero(int, read_back(older, NULL, &back)));
    cr_assert(eq(i64, back.point.round, 9));
}

Test(checkpoint, every_flipped_byte_and_every_length_but_its_own_is_refused)
{
    struct sgp_checkpoint back;
    write_round(8, velocity);
    struct stat info;
    cr_assert(zero(int, stat(path, &info)));
    cr_assert(eq(int, (int)info.st_size, 128 + 2 * 32 + 24 + 8));
    FILE *file = fopen(path, "r+b");
    for (long at = 0; at < info.st_size; at++) {
        (void)fseek(file, at, SEEK_SET);
        int byte = fgetc(file);
        (void)fseek(file, at, SEEK_SET);
        (void)fputc(byte ^ 1, file);
        (void)fflush(file);
        struct sgp_error error = {0};
        cr_assert(eq(int, read_back(path, &error, &back), SGP_E_DATA), "byte %ld", at);
        cr_assert(strstr(error.text, "it is not used") != NULL);
        (void)fseek(file, at, SEEK_SET);
        (void)fputc(byte, file);
        (void)fflush(file);
    }
    cr_assert(zero(int, read_back(path, NULL, &back)));
    (void)fseek(file, 0, SEEK_END);
    (void)fputc(0, file);
    (void)fclose(file);
    cr_assert(eq(int, read_back(path, NULL, &back), SGP_E_DATA));
    for (off_t bytes = info.st_size - 1; bytes >= 0; bytes--) {
        cr_assert(zero(int, truncate(path, bytes)));
        cr_assert(eq(int, read_back(path, NULL, &back), SGP_E_DATA));
    }
}

Test(checkpoint, another_model_is_refused)
{
    struct sgp_checkpoint back;
    float *memory;
    struct sgp_error error = {0};
    write_round(8, velocity);
    cr_assert(eq(int, sgp_checkpoint_read(path, 3, 98, &error, &back, &memory), SGP_E_DATA));
    cr_assert(eq(int, sgp_checkpoint_read(path, 4, 99, &error, &back, &memory), SGP_E_DATA));
    cr_assert(strstr(error.text, "a checkpoint of another model") != NULL);
    cr_assert(eq(int, sgp_checkpoint_read(older, 3, 99, &error, &back, &memory), -ENOENT));
}

/* Version 2, which no release wrote, had a flag for a velocity in the place of a number of vectors. */
Test(checkpoint, another_format_is_told)
{
    struct sgp_checkpoint back;
    struct sgp_error error = {0};
    write_round(8, NULL);
    FILE *file = fopen(path, "r+b");
    (void)fseek(file, 8, SEEK_SET);
    (void)fputc(2, file);
    (void)fclose(file);
    cr_assert(eq(int, read_back(path, &error, &back), SGP_E_DATA));
    cr_assert(strstr(error.text, "a checkpoint of another format; it is not used") != NULL);
}

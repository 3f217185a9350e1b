/* SPDX-License-Identifier: Apache-2.0 */
/* Event files: known bytes, a disk that is full, names that are taken. */
#include "sgp/tensorboard.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_BYTES 4096

static char directory[] = "/tmp/sgpd-tensorboard-XXXXXX";
static char inside[64];
static struct sgp_tensorboard *file;

static void begin(void)
{
    struct sgp_error error = {0};
    cr_assert(zero(int, sgp_tensorboard_open(inside, 1.5, &error, &file)), "%s", error.text);
}

static void setup(void)
{
    cr_assert(mkdtemp(directory) != NULL);
    (void)snprintf(inside, sizeof inside, "%s/run", directory);
    begin();
}

static void teardown(void)
{
    (void)unlink(sgp_tensorboard_path(file));
    sgp_tensorboard_close(file);
    (void)rmdir(inside);
    cr_assert(zero(int, rmdir(directory)), "a file is left");
}

TestSuite(tensorboard, .init = setup, .fini = teardown);

static size_t read_file(uint8_t bytes[FILE_BYTES])
{
    FILE *stream = fopen(sgp_tensorboard_path(file), "rb");
    cr_assert(stream != NULL);
    size_t count = fread(bytes, 1, FILE_BYTES, stream);
    (void)fclose(stream);
    return count;
}

static int add(double value, struct sgp_error *error)
{
    const struct sgp_tensorboard_scalar scalars[] = {{"loss", value}, {"b", -2}};
    *error = (struct sgp_error){0};
    return sgp_tensorboard_add(file, 1.5, 300, scalars, 2, error);
}

/* Written by an implementation of the formats in Python (tests/system/event_files.py has the
 * checksums). */
static const char version[] =
    "1800000000000000a37f4b2209000000000000f83f1a0d627261696e2e4576656e743a322a28646c";
static const char scalars[] = "2500000000000000eabc36f309000000000000f83f10ac022a170a0b0a046c6f7373"
                              "150000003f0a080a016215000000c0a19d72be";
static const char zero_and_another[] =
    "2500000000000000eabc36f309000000000000f83f10ac022a170a0b0a046c6f737315"
    "000000000a080a016215000000c0ecdd2b8a";

static void expect_bytes(const uint8_t *bytes, size_t count, const char *wanted)
{
    cr_assert(eq(sz, 2 * count, strlen(wanted)));
    for (size_t i = 0; i < count; i++) {
        char pair[3];
        (void)snprintf(pair, sizeof pair, "%02x", bytes[i]);
        cr_assert(zero(int, memcmp(pair, wanted + 2 * i, 2)), "byte %zu is %s", i, pair);
    }
}

Test(tensorboard, known_bytes)
{
    uint8_t bytes[FILE_BYTES];
    struct sgp_error error;
    const size_t first = read_file(bytes);
    expect_bytes(bytes, first, version);
    cr_assert(zero(int, add(0.5, &error)));
    const size_t both = read_file(bytes);
    expect_bytes(bytes + first, both - first, scalars);
}

/* A reader that finds no number drops the figure. */
Test(tensorboard, a_number_that_is_0_is_written)
{
    uint8_t bytes[FILE_BYTES];
    struct sgp_error error;
    const size_t first = read_file(bytes);
    cr_assert(zero(int, add(0, &error)));
    const size_t both = read_file(bytes);
    expect_bytes(bytes + first, both - first, zero_and_another);
}

Test(tensorboard, no_scalars_are_no_record)
{
    uint8_t bytes[FILE_BYTES];
    struct sgp_error error = {0};
    const size_t before = read_file(bytes);
    cr_assert(zero(int, sgp_tensorboard_add(file, 1.5, 1, NULL, 0, &error)));
    cr_assert(eq(sz, read_file(bytes), before));
}

Test(tensorboard, only_the_owner_and_the_group_read_it)
{
    struct stat info;
    cr_assert(zero(int, stat(sgp_tensorboard_path(file), &info)));
    cr_assert(zero(int, info.st_mode & 07));
    cr_assert(zero(int, stat(inside, &info)));
    cr_assert(zero(int, info.st_mode & 07));
}

Test(tensorboard, two_files_of_one_second_have_two_names)
{
    struct sgp_error error = {0};
    struct sgp_tensorboard *second = NULL;
    cr_assert(zero(int, sgp_tensorboard_open(inside, 1.5, &error, &second)));
    cr_assert(ne(str, (char *)sgp_tensorboard_path(second), (char *)sgp_tensorboard_path(file)));
    (void)unlink(sgp_tensorboard_path(second));
    sgp_tensorboard_close(second);
}

static void limit(rlim_t bytes)
{
    (void)signal(SIGXFSZ, SIG_IGN);
    cr_assert(zero(int, setrlimit(RLIMIT_FSIZE, &(struct rlimit){bytes, RLIM_INFINITY})));
}

/* Whatever part of a record there was room for, the file is as if nothing had been added. */
Test(tensorboard, a_full_disk_leaves_whole_records)
{
    uint8_t before[FILE_BYTES], after[FILE_BYTES];
    struct sgp_error error;
    cr_assert(zero(int, add(1, &error)));
    const size_t whole = read_file(before);
    for (size_t room = 0; room < 40; room++) {
        limit(whole + room);
        cr_assert(eq(int, add(2, &error), -EFBIG));
        cr_assert(ne(ptr, strstr(error.text, "cannot be written: File too large"), NULL));
        cr_assert(eq(sz, read_file(after), whole));
        cr_assert(zero(int, memcmp(before, after, whole)));
    }
    limit(RLIM_INFINITY);
    cr_assert(zero(int, add(2, &error)));
    cr_assert(gt(sz, read_file(after), whole));
}

Test(tensorboard, a_directory_that_cannot_be_written_is_told)
{
    struct sgp_error error = {0};
    struct sgp_tensorboard *none = NULL;
    cr_assert(eq(int, sgp_tensorboard_open("/none/such", 1, &error, &none), -ENOENT));
    cr_assert(
        eq(str, error.text, "/none/such: no event file can be written: No such file or directory"));
    cr_assert(eq(int, sgp_tensorboard_open("/dev/null", 1, &error, &none), -ENOTDIR));
    cr_assert(eq(ptr, none, NULL));
}

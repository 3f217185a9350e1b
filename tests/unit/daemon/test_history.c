/* SPDX-License-Identifier: Apache-2.0 */
/* history.csv: its rows, its bound, and a disk that is full or a file that cannot be had. */
#include "store/history.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINE_BYTES 512
#define HEAD                                                                                       \
    "round,seconds,epoch,loss,test_loss,test_accuracy,disagreement,weight,bytes_sent,bytes_"       \
    "received,compression_error,bytes_spared,best_value\n"
#define EARLIER_HEAD                                                                               \
    "round,seconds,epoch,loss,test_loss,test_accuracy,disagreement,weight,bytes_sent,bytes_"       \
    "received\n"

static char directory[] = "/tmp/sgpd-history-XXXXXX";
static char path[64], second[80];
static struct history history;

static void begin(void)
{
    struct sgp_error error = {0};
    cr_assert(zero(int, history_open(&history, directory, &error)), "%s", error.text);
}

static void setup(void)
{
    cr_assert(mkdtemp(directory) != NULL);
    (void)snprintf(path, sizeof path, "%s/history.csv", directory);
    (void)snprintf(second, sizeof second, "%s.new", path);
    (void)umask(0);
    begin();
}

static void teardown(void)
{
    history_close(&history);
    (void)unlink(path);
    cr_assert(zero(int, rmdir(directory)), "a second file is left");
}

TestSuite(history, .init = setup, .fini = teardown);

/* Its code, and the line of the failure. */
static int add(sgp_round round, struct sgp_error *error)
{
    const struct view_history_row row = {
        .round = round, .loss = 0.25, .weight = 1, .compression_error = NAN, .best_value = NAN};
    *error = (struct sgp_error){0};
    return history_add(&history, &row, error);
}

static void must_add(sgp_round first, sgp_round end)
{
    struct sgp_error error;
    for (sgp_round round = first; round < end; round++)
        cr_assert(zero(int, add(round, &error)), "%s", error.text);
}

/* The rounds of the file's rows; its first line is the head, and every row is whole. */
static uint32_t read_rounds(long long rounds[], uint32_t most)
{
    char line[LINE_BYTES];
    uint32_t count = 0;
    FILE *file = fopen(path, "r");
    cr_assert(file != NULL && fgets(line, sizeof line, file) != NULL);
    cr_assert(eq(str, line, HEAD));
    while (fgets(line, sizeof line, file)) {
        long long round;
        int end = 0;
        cr_assert(lt(u32, count, most), "more than %u rows", most);
        cr_assert(sscanf(line, "%lld,0.000,0,0.25,0,0,0,1,0,0,,0,%n", &round, &end) == 1 && end > 0,
            "%s", line);
        cr_assert(eq(str, line + end, "\n"));
        rounds[count++] = round;
    }
    (void)fclose(file);
    return count;
}

static void expect_rounds(const long long *expected, uint32_t count)
{
    long long rounds[64];
    cr_assert(eq(u32, read_rounds(rounds, 64), count));
    for (uint32_t i = 0; i < count; i++)
        cr_assert(eq(llong, rounds[i], expected[i]), "row %u", i);
}

static void limit_files(rlim_t bytes)
{
    struct rlimit limit;
    (void)signal(SIGXFSZ, SIG_IGN);
    cr_assert(zero(int, getrlimit(RLIMIT_FSIZE, &limit)));
    limit.rlim_cur = bytes;
    cr_assert(zero(int, setrlimit(RLIMIT_FSIZE, &limit)));
}

static off_t size_of_file(void)
{
    struct stat info;
    cr_assert(zero(int, stat(path, &info)));
    return info.st_size;
}

static mode_t mode_of_file(void)
{
    struct stat info;
    cr_assert(zero(int, stat(path, &info)));
    return info.st_mode & 07777;
}

Test(history, a_process_adds_to_what_the_one_before_has_left)
{
    must_add(1, 3);
    history_close(&history);
    begin();
    must_add(3, 4);
    expect_rounds((const long long[]){1, 2, 3}, 3);
    cr_assert(eq(u32, history.count, 1));
    cr_assert(eq(i64, history_row(&history, 0)->round, 3));
}

Test(history, it_is_not_for_everybody)
{
    must_add(1, 2);
    cr_assert(eq(u32, mode_of_file(), 0640), "mode %o", mode_of_file());
    history.rows_most = 4;
    must_add(2, 10);
    cr_assert(eq(u32, mode_of_file(), 0640), "mode %o after it was thinned", mode_of_file());
}

Test(history, old_rows_are_thinned_and_the_first_and_the_last_are_kept)
{
    history.rows_most = 8;
    must_add(0, 8);
    expect_rounds((const long long[]){0, 1, 2, 3, 4, 5, 6, 7}, 8);
    must_add(8, 9);
    expect_rounds((const long long[]){0, 2, 4, 6, 7, 8}, 6);
    must_add(9, 12);
    expect_rounds((const long long[]){0, 4, 7, 9, 10, 11}, 6);
}

Test(history, it_never_has_more_rows_than_its_bound)
{
    long long rounds[16];
    history.rows_most = 16;
    for (sgp_round round = 0; round < 1000; round++) {
        must_add(round, round + 1);
        uint32_t count = read_rounds(rounds, 16);
        cr_assert(eq(llong, rounds[0], 0));
        cr_assert(eq(llong, rounds[count - 1], round));
        for (uint32_t i = 1; i < count; i++)
            cr_assert(lt(llong, rounds[i - 1], rounds[i]));
        if (round % 100 == 0) {
            history_close(&history);
            begin();
            history.rows_most = 16;
        }
    }
}

Test(history, one_that_is_too_long_already_is_thinned_by_the_next_row)
{
    must_add(0, 60);
    history.rows_most = 8;
    must_add(60, 61);
    long long rounds[8];
    uint32_t count = read_rounds(rounds, 8);
    cr_assert(eq(llong, rounds[0], 0));
    cr_assert(eq(llong, rounds[count - 1], 60));
}

Test(history, a_row_that_finds_no_room_is_told_once_and_leaves_the_next_whole)
{
    struct sgp_error error;
    must_add(1, 2);
    limit_files((rlim_t)size_of_file() + 10);
    cr_assert(lt(int, add(2, &error), 0));
    cr_assert(strstr(error.text, "/history.csv: cannot be written: File too large") != NULL, "%s",
        error.text);
    cr_assert(zero(int, add(3, &error)), "told already");
    limit_files(RLIM_INFINITY);
    must_add(4, 5);
    expect_rounds((const long long[]){1, 4}, 2);
    limit_files((rlim_t)size_of_file() + 10);
    cr_assert(lt(int, add(5, &error), 0), "told anew");
    cr_assert(eq(u32, history.count, 5), "all are in memory");
}

Test(history, one_that_finds_no_room_to_be_thinned_grows_no_further)
{
    struct sgp_error error;
    history.rows_most = 8;
    must_add(0, 8);
    off_t size = size_of_file();
    limit_files(100);
    cr_assert(lt(int, add(8, &error), 0));
    cr_assert(zero(int, add(9, &error)));
    cr_assert(eq(i64, size_of_file(), size));
    cr_assert(lt(int, access(second, F_OK), 0));
    limit_files(RLIM_INFINITY);
    must_add(10, 11);
    expect_rounds((const long long[]){0, 2, 4, 6, 7, 10}, 6);
}

Test(history, a_file_that_cannot_be_had_is_no_obstacle_and_is_tried_again)
{
    struct sgp_error error;
    history_close(&history);
    (void)unlink(path);
    cr_assert(zero(int, mkdir(path, 0700)));
    begin();
    cr_assert(lt(int, add(1, &error), 0));
    cr_assert(strstr(error.text, "/history.csv: cannot be written: Is a directory") != NULL, "%s",
        error.text);
    cr_assert(zero(int, add(2, &error)));
    cr_assert(zero(int, rmdir(path)));
    must_add(3, 4);
    expect_rounds((const long long[]){3}, 1);
}

Test(history, a_torn_last_line_spoils_no_row_behind_it)
{
    char line[LINE_BYTES];
    must_add(1, 2);
    history_close(&history);
    FILE *file = fopen(path, "a");
    cr_assert(file != NULL && fputs("2,0.0", file) >= 0 && fclose(file) == 0);
    begin();
    must_add(3, 4);
    file = fopen(path, "r");
    static const char *const expected[] = {
        HEAD, "1,0.000,0,0.25,0,0,0,1,0,0,,0,\n", "2,0.0\n", "3,0.000,0,0.25,0,0,0,1,0,0,,0,\n"};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        cr_assert(fgets(line, sizeof line, file) != NULL);
        cr_assert(eq(str, line, (char *)expected[i]));
    }
    (void)fclose(file);
}

static void write_file(const char *text)
{
    FILE *file = fopen(path, "w");
    cr_assert(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
}

static void expect_file(const char *expected)
{
    char text[4 * LINE_BYTES];
    FILE *file = fopen(path, "r");
    cr_assert(file != NULL);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    (void)fclose(file);
    cr_assert(eq(str, text, (char *)expected));
}

Test(history, a_row_has_what_compression_left_out_and_spared)
{
    struct sgp_error error;
    const struct view_history_row row = {.round = 1,
        .compression_error = 0.0078125,
        .bytes_spared = 300,
        .bytes_sent = 100,
        .best_value = 0.875};
    cr_assert(zero(int, history_add(&history, &row, &error)));
    expect_file(HEAD "1,0.000,0,0,0,0,0,0,100,0,0.0078125,300,0.875\n");
}

Test(history, a_file_of_an_earlier_version_gets_the_new_columns_without_values)
{
    write_file(EARLIER_HEAD "1,0.000,0,0.25,0,0,0,1,0,7\n2,0.000,0,0.25,0,0,0,1,0,8\n");
    must_add(3, 5);
    expect_file(HEAD "1,0.000,0,0.25,0,0,0,1,0,7,,,\n2,0.000,0,0.25,0,0,0,1,0,8,,,\n"
                     "3,0.000,0,0.25,0,0,0,1,0,0,,0,\n4,0.000,0,0.25,0,0,0,1,0,0,,0,\n");
    cr_assert(eq(u32, mode_of_file(), 0640), "mode %o after it was widened", mode_of_file());
}

Test(history, a_long_file_of_an_earlier_version_keeps_all_rows)
{
    char line[LINE_BYTES];
    FILE *file = fopen(path, "w");
    cr_assert(file != NULL && fputs(EARLIER_HEAD, file) >= 0);
    for (int round = 0; round < 1000; round++)
        (void)fprintf(file, "%d,0.000,0,0.25,0,0,0,1,0,0\n", round);
    cr_assert(zero(int, fclose(file)));
    must_add(1000, 1001);
    cr_assert(eq(u64, history.lines, 1002));
    file = fopen(path, "r");
    cr_assert(file != NULL && fgets(line, sizeof line, file) != NULL);
    cr_assert(eq(str, line, HEAD));
    for (int round = 0; round < 1000; round++) {
        char expected[LINE_BYTES];
        (void)snprintf(expected, sizeof expected, "%d,0.000,0,0.25,0,0,0,1,0,0,,,\n", round);
        cr_assert(fgets(line, sizeof line, file) != NULL);
        cr_assert(eq(str, line, expected));
    }
    (void)fclose(file);
}

Test(history, a_torn_line_of_an_earlier_version_spoils_no_row_behind_it)
{
    write_file(EARLIER_HEAD "1,0.000,0,0.25,0,0,0,1,0,0\n2,0.0");
    must_add(3, 4);
    expect_file(HEAD "1,0.000,0,0.25,0,0,0,1,0,0,,,\n2,0.0\n3,0.000,0,0.25,0,0,0,1,0,0,,0,\n");
}

Test(history, a_file_of_a_later_version_keeps_its_head)
{
    static const char later[] =
        "round,seconds,epoch,loss,test_loss,test_accuracy,disagreement,weight,"
        "bytes_sent,bytes_received,compression_error,bytes_spared,best_value,later\n";
    char expected[2 * LINE_BYTES];
    write_file(later);
    must_add(1, 2);
    (void)snprintf(expected, sizeof expected, "%s1,0.000,0,0.25,0,0,0,1,0,0,,0,\n", later);
    expect_file(expected);
}

Test(history, a_file_of_an_earlier_version_without_room_to_be_widened_stays_as_it_is)
{
    static const char earlier[] = EARLIER_HEAD "1,0.000,0,0.25,0,0,0,1,0,7\n";
    struct sgp_error error;
    write_file(earlier);
    limit_files(100);
    cr_assert(lt(int, add(2, &error), 0));
    expect_file(earlier);
    limit_files(RLIM_INFINITY);
    must_add(3, 4);
    expect_file(HEAD "1,0.000,0,0.25,0,0,0,1,0,7,,,\n3,0.000,0,0.25,0,0,0,1,0,0,,0,\n");
}

/* How many bytes the calling process has read, by /proc. */
static unsigned long long bytes_read(void)
{
    char line[128];
    unsigned long long bytes = 0;
    FILE *file = fopen("/proc/self/io", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL &&
           sscanf(line, "rchar: %llu", &bytes) != 1)
        ;
    if (file != NULL)
        (void)fclose(file);
    return bytes;
}

Test(history, a_file_that_is_too_long_is_read_from_its_end)
{
    long long rounds[8];
    FILE *file = fopen(path, "w");
    cr_assert(file != NULL);
    cr_assert(fseeko(file, (off_t)4 << 30, SEEK_SET) == 0); /* a hole */
    (void)fputs("0\n7,0.000,0,0.25,0,0,0,1,0,0,,0,\n8,0.000,0,0.25,0,0,0,1,0,0,,0,\n", file);
    cr_assert(fclose(file) == 0);
    unsigned long long before = bytes_read();
    must_add(9, 10);
    cr_assert(bytes_read() - before < (16u << 20), "%llu bytes read", bytes_read() - before);
    cr_assert(eq(u32, read_rounds(rounds, 8), 3));
    cr_assert(eq(llong, rounds[0], 7));
    cr_assert(eq(llong, rounds[2], 9));
    must_add(10, 11);
    cr_assert(eq(u32, read_rounds(rounds, 8), 4));
}

Test(history, a_long_file_without_lines_begins_anew)
{
    long long rounds[8];
    FILE *file = fopen(path, "w");
    cr_assert(file != NULL && fclose(file) == 0 && truncate(path, (off_t)4 << 30) == 0);
    must_add(0, 2);
    cr_assert(eq(u32, read_rounds(rounds, 8), 2));
}

Test(history, a_symbolic_link_is_not_followed)
{
    struct sgp_error error;
    char target[80];
    (void)snprintf(target, sizeof target, "%s-target", directory);
    cr_assert(zero(int, symlink(target, path)));
    cr_assert(eq(int, add(1, &error), -ELOOP));
    cr_assert(strstr(error.text, "symbolic link") != NULL, "%s", error.text);
    cr_assert(access(target, F_OK) < 0, "the target was made");
}

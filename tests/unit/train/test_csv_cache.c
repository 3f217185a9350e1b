/* SPDX-License-Identifier: Apache-2.0 */
/* Files of rows beside large CSV tables: the same bits with and without them, and never a wrong or
 * damaged one. */
#include "train/csv.h"
#include "train/csv_cache.h"
#include "train/rows_file.h"
#include "train/scaling.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <signal.h>

static struct sgp_error error;
static char directory[64], table[96], rows[96], lines[8192];

static void keep_line(void *context, enum sgp_level level, const char *text)
{
    (void)context;
    (void)level;
    const size_t used = strlen(lines);
    (void)snprintf(lines + used, sizeof lines - used, "%s\n", text);
}

static const struct sgp_sink sink = {.line = keep_line, .level = SGP_LEVEL_TRACE};
static const struct sgp_data_cache cache = {.directory = directory, .keep = true, .sink = &sink};

static void begin(void)
{
    (void)strcpy(directory, "/tmp/sgp-cache-XXXXXX");
    cr_assert(ne(ptr, mkdtemp(directory), NULL));
    (void)snprintf(table, sizeof table, "%s/table.csv", directory);
    (void)snprintf(rows, sizeof rows, "%s/train.rows", directory);
    lines[0] = '\0';
}

static void end(void)
{
    sgp_data_cache_clear(directory);
    (void)unlink(table);
    cr_assert(eq(int, rmdir(directory), 0), "nothing else is left behind");
}

TestSuite(csv_cache, .init = begin, .fini = end);

static void write_file(const char *path, const char *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    cr_assert(eq(sz, fwrite(bytes, 1, size, file), size));
    (void)fclose(file);
}

static size_t read_file(const char *path, char *bytes, size_t most)
{
    FILE *file = fopen(path, "rb");
    cr_assert(ne(ptr, file, NULL), "%s", path);
    const size_t size = fread(bytes, 1, most, file);
    (void)fclose(file);
    return size;
}

static void write_table(const char *text)
{
    write_file(table, text, strlen(text));
}

static struct sgp_dataset *read_by(
    const struct sgp_data_cache *by, const struct sgp_csv_options *options)
{
    struct sgp_dataset *dataset = NULL;
    error = (struct sgp_error){.code = 0};
    lines[0] = '\0';
    int status = sgp_csv_cache_read(by, "train", table, options, &error, &dataset);
    cr_assert(eq(int, status, 0), "%s", error.text);
    return dataset;
}

static void expect_same(const struct sgp_dataset *a, const struct sgp_dataset *b)
{
    cr_assert(eq(u64, a->rows, b->rows));
    cr_assert(eq(u32, a->features, b->features));
    cr_assert(eq(u32, a->classes, b->classes));
    cr_assert(eq(u32, a->targets, b->targets));
    cr_assert(eq(u64, a->classes_digest, b->classes_digest));
    cr_assert(eq(u64, a->scaling_digest, b->scaling_digest));
    cr_assert(eq(int, a->scaled_targets, b->scaled_targets));
    cr_assert(eq(u64, sgp_dataset_digest(a), sgp_dataset_digest(b)));
    cr_assert(eq(int, a->names != NULL, b->names != NULL));
    const char *left = a->names, *right = b->names;
    for (uint32_t i = 0; left && i < a->features; i++) {
        cr_assert(eq(str, (char *)(uintptr_t)left, (char *)(uintptr_t)right));
        left += strlen(left) + 1;
        right += strlen(right) + 1;
    }
}

static bool made(void)
{
    return strstr(lines, "seconds=") != NULL;
}

static void expect_anew(const char *why)
{
    char part[128];
    (void)snprintf(part, sizeof part, "made_anew=\"%s\"", why);
    cr_assert(ne(ptr, strstr(lines, part), NULL), "%s", lines);
    cr_assert(made(), "%s", lines);
}

/* The table is read without a cache, with a new one, and with an existing one. */
static void expect_three_times_the_same(const struct sgp_csv_options *options)
{
    struct sgp_dataset *plain = read_by(NULL, options);
    struct sgp_dataset *first = read_by(&cache, options);
    cr_assert(made(), "%s", lines);
    struct sgp_dataset *second = read_by(&cache, options);
    cr_assert(eq(str, lines, ""));
    expect_same(plain, first);
    expect_same(plain, second);
    cr_assert(eq(u64, sgp_dataset_mapped(plain), 0));
    cr_assert(gt(u64, sgp_dataset_mapped(second), plain->rows * plain->features * sizeof(float)));
    cr_assert(eq(u64, sgp_dataset_memory(second), plain->rows * plain->targets * sizeof(float)));
    sgp_dataset_destroy(plain);
    sgp_dataset_destroy(first);
    sgp_dataset_destroy(second);
}

static struct sgp_scaling *scaling_of(const char *json)
{
    struct sgp_scaling *scaling = NULL;
    cr_assert(eq(int, sgp_scaling_parse(json, strlen(json), "s.json", &error, &scaling), 0));
    return scaling;
}

static const char words[] =
    "\xef\xbb\xbfx,\"co\"\"lour\",y,z\r\n1.5,red,no,3\r\n\"-2e3\",\"bl, \"\"ack\","
    "yes,4\r\n\r\n0.1,?,\"no\",5\r\nNA,red,yes,-6.25\n";
static const char *const answers[] = {"no", "yes"};
static const char scale[] =
    "{\"sgp_scaling\": 2, \"columns\": [{\"name\": \"x\", \"mean\": 0.3, \"deviation\": 7},"
    "{\"name\": \"co\\\"lour\", \"values\": [\"bl, \\\"ack\", \"red\"]}],"
    "\"targets\": [{\"name\": \"z\", \"mean\": 1.5, \"deviation\": 3}]}";

Test(csv_cache, classes_categories_and_missing_values)
{
    struct sgp_scaling *scaling = scaling_of(scale);
    struct sgp_csv_options options = {.label = "y",
        .class_names = answers,
        .class_count = 2,
        .scaling = scaling,
        .missing = SGP_MISSING_MEAN};
    write_table(words);
    expect_three_times_the_same(&options);
    options.missing = SGP_MISSING_DROP;
    struct sgp_dataset *dropped = read_by(&cache, &options);
    expect_anew("the scaling or another key of [data] has changed");
    cr_assert(eq(u64, dropped->rows, 2));
    sgp_dataset_destroy(dropped);
    sgp_scaling_destroy(scaling);
}

Test(csv_cache, numbers_as_labels)
{
    struct sgp_scaling *scaling = scaling_of(scale);
    const struct sgp_csv_options scaled = {
        .label = "z", .scaling = scaling, .missing = SGP_MISSING_MEAN};
    const struct sgp_csv_options plain = {.label = "b, a", .missing = SGP_MISSING_ERROR};
    write_table(words);
    expect_three_times_the_same(&scaled);
    write_table("a,x,\"n\nm\",b\n1,2,3,4\n5,6,7,8.25\n");
    sgp_data_cache_clear(directory);
    expect_three_times_the_same(&plain);
    sgp_scaling_destroy(scaling);
}

/* Blocks, subsets and holdouts. */
Test(csv_cache, many_rows_and_parts_of_them)
{
    enum { ROWS = 10000 };
    char *text = malloc(ROWS * 32);
    size_t size = (size_t)sprintf(text, "a,y,b\n");
    for (unsigned i = 0; i < ROWS; i++)
        size += (size_t)sprintf(text + size, "%u.%u,%u,-%u\n", i % 97, i % 10, i % 3, i);
    write_file(table, text, size);
    free(text);
    static const char *const classes[] = {"0", "1", "2"};
    const struct sgp_csv_options options = {
        .label = "y", .class_names = classes, .class_count = 3, .missing = SGP_MISSING_ERROR};
    expect_three_times_the_same(&options);
    struct sgp_dataset *whole[2] = {read_by(NULL, &options), read_by(&cache, &options)};
    struct sgp_dataset *kept[2], *held[2], *part[2];
    const uint32_t picked[] = {5, 4, 8999, 0};
    struct sgp_reach reach[2];
    for (int i = 0; i < 2; i++) {
        cr_assert(eq(int, sgp_dataset_split(whole[i], 0.1, 3, 1, &kept[i], &held[i]), 0));
        sgp_dataset_destroy(whole[i]);
        cr_assert(eq(int, sgp_dataset_subset(kept[i], picked, 4, &part[i]), 0));
        cr_assert(eq(int, sgp_dataset_reach(kept[i], &reach[i]), 0));
    }
    expect_same(kept[0], kept[1]);
    expect_same(held[0], held[1]);
    expect_same(part[0], part[1]);
    cr_assert(eq(flt, reach[0].most, reach[1].most));
    float got[2][4];
    for (int i = 0; i < 2; i++)
        sgp_dataset_gather(part[i], got[i], NULL, NULL, picked + 3, 1, 0);
    cr_assert(eq(flt, got[0][0], got[1][0]));
    cr_assert(eq(flt, got[0][1], got[1][1]));
    cr_assert(eq(u64, sgp_dataset_memory(kept[1]), kept[1]->rows * 8));
    for (int i = 0; i < 2; i++) {
        sgp_dataset_destroy(kept[i]);
        sgp_dataset_destroy(held[i]);
        sgp_dataset_destroy(part[i]);
    }
}

static const char small[] = "a,y\n1,2\n3,4\n5,6\n";
static const struct sgp_csv_options numbers = {.label = "y", .missing = SGP_MISSING_ERROR};

/* Size and time are the same; the digest decides. */
Test(csv_cache, a_table_that_changed_is_read_again)
{
    struct stat status;
    write_table(small);
    sgp_dataset_destroy(read_by(&cache, &numbers));
    cr_assert(eq(int, stat(table, &status), 0));
    write_table("a,y\n1,2\n3,9\n5,6\n");
    const struct timespec times[] = {status.st_atim, status.st_mtim};
    cr_assert(eq(int, utimensat(AT_FDCWD, table, times, 0), 0));
    struct sgp_dataset *dataset = read_by(&cache, &numbers);
    expect_anew("the table has changed");
    cr_assert(eq(flt, dataset->values[1], 9));
    sgp_dataset_destroy(dataset);
    write_table("a,y\n1,2\n3,9\n5,6\n7,8\n");
    dataset = read_by(&cache, &numbers);
    expect_anew("the table has changed");
    cr_assert(eq(u64, dataset->rows, 4));
    sgp_dataset_destroy(dataset);
}

Test(csv_cache, each_key_that_changes_the_rows_makes_them_anew)
{
    static const char *const threes[] = {"2", "4", "6"}, *const others[] = {"6", "4", "2"};
    const struct sgp_csv_options variants[] = {numbers,
        {.label = "a", .missing = SGP_MISSING_ERROR}, {.label = "y", .missing = SGP_MISSING_DROP},
        {.label = "y", .class_names = threes, .class_count = 3, .missing = SGP_MISSING_DROP},
        {.label = "y", .class_names = others, .class_count = 3, .missing = SGP_MISSING_DROP}};
    struct sgp_scaling *scalings[] = {scaling_of("{\"sgp_scaling\": 1, \"columns\": [{\"name\": "
                                                 "\"a\", \"mean\": 1, \"deviation\": 2}]}"),
        scaling_of("{\"sgp_scaling\": 1, \"columns\": [{\"name\": \"a\", \"mean\": 1, "
                   "\"deviation\": 3}]}")};
    write_table(small);
    for (size_t i = 0; i < sizeof variants / sizeof variants[0] + 2; i++) {
        struct sgp_csv_options options = i < 5 ? variants[i] : numbers;
        if (i >= 5)
            options.scaling = scalings[i - 5];
        struct sgp_dataset *plain = read_by(NULL, &options), *cached = read_by(&cache, &options);
        if (i > 0)
            expect_anew("the scaling or another key of [data] has changed");
        expect_same(plain, cached);
        sgp_dataset_destroy(plain);
        sgp_dataset_destroy(cached);
        sgp_dataset_destroy(read_by(&cache, &options));
        cr_assert(eq(str, lines, ""));
    }
    sgp_scaling_destroy(scalings[0]);
    sgp_scaling_destroy(scalings[1]);
}

Test(csv_cache, what_the_reading_told_is_kept)
{
    static const char *const told[] = {"2"};
    static const char *const named[] = {"2"};
    write_table("a,y\n1,2\n3,4\n5,6\n");
    struct sgp_scaling *scaling = scaling_of(
        "{\"sgp_scaling\": 1, \"columns\": [{\"name\": \"a\", \"values\": [\"3\", \"9\"]}]}");
    for (int i = 0; i < 3; i++) {
        struct sgp_csv_agreed agreed = {.classes = told, .class_count = 1};
        const struct sgp_csv_options options = {.label = "y",
            .class_names = named,
            .class_count = 1,
            .scaling = scaling,
            .missing = SGP_MISSING_ERROR,
            .agreed = &agreed};
        sgp_dataset_destroy(read_by(i == 0 ? NULL : &cache, &options));
        cr_assert(eq(u64, agreed.left_out, 2));
        cr_assert(eq(u64, agreed.left_out_line, 3));
        cr_assert(eq(u64, agreed.strange, 1));
        cr_assert(eq(u32, agreed.class_count, 1));
    }
    sgp_scaling_destroy(scaling);
}

Test(csv_cache, damage_at_every_byte_is_found)
{
    char good[1024], bad[1024];
    write_table(small);
    struct sgp_dataset *plain = read_by(NULL, &numbers);
    sgp_dataset_destroy(read_by(&cache, &numbers));
    const size_t size = read_file(rows, good, sizeof good);
    cr_assert(eq(sz, size, 128 + 3 * 4 + 3 * 4 + 2));
    for (size_t at = 0; at < 2 * size; at++) {
        memcpy(bad, good, size);
        bad[at % size] ^= 1;
        write_file(rows, bad, at < size ? size : at - size); /* damaged, or cut short */
        struct sgp_dataset *dataset = read_by(&cache, &numbers);
        cr_assert(ne(ptr, strstr(lines, "made_anew="), NULL), "byte %zu: %s", at, lines);
        expect_same(plain, dataset);
        sgp_dataset_destroy(dataset);
        cr_assert(eq(sz, read_file(rows, bad, sizeof bad), size));
        cr_assert(eq(int, memcmp(good, bad, size), 0), "byte %zu", at);
    }
    sgp_dataset_destroy(plain);
}

/* The digests are right, and the numbers are not. */
Test(csv_cache, impossible_rows_are_found)
{
    char bytes[1024];
    struct sgp_rows_header header;
    write_table("a,y\n1,0\n");
    sgp_dataset_destroy(read_by(&cache, &numbers));
    const size_t size = read_file(rows, bytes, sizeof bytes);
    cr_assert(eq(ptr, (void *)(uintptr_t)sgp_rows_header_check(bytes, size, &header), NULL));
    cr_assert(eq(ptr, (void *)(uintptr_t)sgp_rows_body_check(bytes, &header), NULL));
    header.rows = UINT64_MAX / 4;
    memcpy(bytes, &header, sizeof header);
    cr_assert(eq(str, (char *)(uintptr_t)sgp_rows_header_check(bytes, size, &header),
        "its header is damaged"));
}

/* The file of rows is not what a user has to change, so the reader of the table reports the limit. */
Test(csv_cache, rows_fit_up_to_the_limits_of_a_dataset)
{
    struct sgp_rows_writer writer = {.header.rows = SGP_ROWS_MAX - 2};
    struct sgp_dataset block = {.rows = 2, .features = 1, .targets = 1};
    cr_assert(sgp_rows_fit(&writer, &block));
    block.rows = 3;
    cr_assert(not(sgp_rows_fit(&writer, &block)), "rows");
    writer.header.rows = 0;
    block.rows = SGP_DATA_BYTES_MAX / sizeof(float) / 4096;
    block.features = 4096;
    cr_assert(sgp_rows_fit(&writer, &block));
    block.rows++;
    cr_assert(not(sgp_rows_fit(&writer, &block)), "bytes of features");
    block.features = 1;
    block.targets = 4096;
    cr_assert(not(sgp_rows_fit(&writer, &block)), "bytes of targets");
}

Test(csv_cache, a_cut_of_power_leaves_the_former_file)
{
    char path[128], bytes[256];
    write_table(small);
    sgp_dataset_destroy(read_by(&cache, &numbers));
    (void)snprintf(path, sizeof path, "%s.new", rows);
    write_file(path, bytes, 100); /* of a write that did not end */
    sgp_dataset_destroy(read_by(&cache, &numbers));
    cr_assert(eq(str, lines, ""));
    cr_assert(eq(int, unlink(path), 0));
}

Test(csv_cache, a_wrong_table_is_refused_as_without_a_cache)
{
    struct sgp_error plain = {0}, cached = {0};
    struct sgp_dataset *dataset = NULL;
    static const char *const wrong[] = {"a,y\n1,2\n3,x\n", "a,y\n", "a,b\n1,2\n", "a,y\n1,2,3\n"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        write_table(wrong[i]);
        int status = sgp_csv_cache_read(NULL, "train", table, &numbers, &plain, &dataset);
        plain.code = cached.code = 0;
        cr_assert(eq(
            int, sgp_csv_cache_read(&cache, "train", table, &numbers, &cached, &dataset), status));
        cr_assert(eq(str, cached.text, plain.text));
        cr_assert(eq(int, access(rows, F_OK), -1), "nothing is kept of it");
    }
}

/* Also a full disk: the file cannot be written, and the rows are in memory. */
Test(csv_cache, without_room_the_rows_stay_in_memory)
{
    const struct rlimit none = {64, RLIM_INFINITY}; /* bytes of a file */
    (void)signal(SIGXFSZ, SIG_IGN);
    write_table(small);
    struct sgp_dataset *plain = read_by(NULL, &numbers);
    cr_assert(eq(int, setrlimit(RLIMIT_FSIZE, &none), 0));
    struct sgp_dataset *dataset = read_by(&cache, &numbers);
    cr_assert(ne(ptr, strstr(lines, "kept in memory instead"), NULL), "%s", lines);
    cr_assert(eq(u64, sgp_dataset_mapped(dataset), 0));
    expect_same(plain, dataset);
    cr_assert(eq(int, access(rows, F_OK), -1));
    sgp_dataset_destroy(plain);
    sgp_dataset_destroy(dataset);
}

Test(csv_cache, a_check_leaves_nothing_and_uses_what_is_there)
{
    struct sgp_data_cache nameless = cache;
    nameless.keep = false;
    write_table(small);
    struct sgp_dataset *plain = read_by(NULL, &numbers), *checked = read_by(&nameless, &numbers);
    cr_assert(eq(int, access(rows, F_OK), -1));
    cr_assert(gt(u64, sgp_dataset_mapped(checked), 0));
    expect_same(plain, checked);
    sgp_dataset_destroy(checked);
    sgp_dataset_destroy(read_by(&cache, &numbers));
    checked = read_by(&nameless, &numbers);
    cr_assert(eq(str, lines, ""));
    expect_same(plain, checked);
    sgp_dataset_destroy(checked);
    sgp_dataset_destroy(plain);
}

Test(csv_cache, small_tables_have_no_file)
{
    struct sgp_data_cache large = cache;
    large.least_bytes = strlen(small) + 1;
    write_table(small);
    sgp_dataset_destroy(read_by(&cache, &numbers));
    cr_assert(eq(int, access(rows, F_OK), 0));
    sgp_dataset_destroy(read_by(&large, &numbers));
    cr_assert(eq(int, access(rows, F_OK), -1), "a former one is removed");
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The IDX reader: what it reads, and one clear line for everything that is not IDX. */
#include "train/idx.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

/* 3 rows of 2 x 2 and their labels. */
static const unsigned char images[] = {0, 0, 8, 3, 0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 2, //
    0, 51, 102, 255, 1, 2, 3, 4, 5, 6, 7, 8};
static const unsigned char labels[] = {0, 0, 8, 1, 0, 0, 0, 3, 2, 0, 9};

static struct sgp_error error;

static int read_both(const void *rows, size_t rows_size, const void *label_bytes, size_t label_size,
    uint32_t classes, struct sgp_dataset **ret_dataset)
{
    FILE *file = fmemopen((void *)(uintptr_t)rows, rows_size, "rb");
    FILE *label_file =
        label_bytes ? fmemopen((void *)(uintptr_t)label_bytes, label_size, "rb") : NULL;
    error = (struct sgp_error){.code = 0};
    int status =
        sgp_idx_read(file, "images", label_file, "labels", NULL, classes, &error, ret_dataset);
    fclose(file);
    if (label_file)
        fclose(label_file);
    return status;
}

static void expect(const void *rows, size_t rows_size, const void *label_bytes, size_t label_size,
    uint32_t classes, int code, const char *text)
{
    struct sgp_dataset *dataset = NULL;
    int status = read_both(rows, rows_size, label_bytes, label_size, classes, &dataset);
    cr_assert(eq(int, status, code), "%s", error.text);
    cr_assert(eq(ptr, dataset, NULL));
    cr_assert(eq(str, error.text, (char *)(uintptr_t)text));
}

/* `images` with one byte replaced. */
static const unsigned char *with(size_t at, unsigned char value)
{
    static unsigned char copy[sizeof images];
    memcpy(copy, images, sizeof images);
    copy[at] = value;
    return copy;
}

static size_t compress_bytes(unsigned char *out, size_t out_size, const void *in, size_t in_size)
{
    z_stream stream = {.next_in = (unsigned char *)(uintptr_t)in, .avail_in = (unsigned)in_size};
    stream.next_out = out;
    stream.avail_out = (unsigned)out_size;
    cr_assert(eq(int, deflateInit2(&stream, 9, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK));
    cr_assert(eq(int, deflate(&stream, Z_FINISH), Z_STREAM_END));
    deflateEnd(&stream);
    return out_size - stream.avail_out;
}

static void check_small(const struct sgp_dataset *dataset)
{
    cr_assert(eq(u64, dataset->rows, 3));
    cr_assert(eq(u32, dataset->features, 4));
    cr_assert(eq(u32, dataset->classes, 10));
    cr_assert(eq(u32, dataset->targets, 1));
    float features[8];
    uint32_t got[2];
    const uint32_t indices[] = {2, 0};
    sgp_dataset_gather(dataset, features, got, NULL, indices, 2, 0);
    const float expected[8] = {5 / 255.0f, 6 / 255.0f, 7 / 255.0f, 8 / 255.0f, //
        0, 51 / 255.0f, 102 / 255.0f, 1};
    for (int i = 0; i < 8; i++)
        cr_assert(eq(flt, features[i], expected[i]));
    cr_assert(eq(u32, got[0], 9));
    cr_assert(eq(u32, got[1], 2));
}

Test(idx, reads_rows_and_labels)
{
    struct sgp_dataset *dataset = NULL;
    cr_assert(eq(int, read_both(images, sizeof images, labels, sizeof labels, 0, &dataset), 0));
    check_small(dataset);
    sgp_dataset_destroy(dataset);
}

Test(idx, reads_rows_without_labels)
{
    struct sgp_dataset *dataset = NULL;
    cr_assert(eq(int, read_both(images, sizeof images, NULL, 0, 0, &dataset), 0));
    cr_assert(eq(u32, dataset->targets, 0));
    cr_assert(eq(u32, dataset->classes, 0));
    sgp_dataset_destroy(dataset);
}

Test(idx, reads_gzip_even_in_two_members)
{
    unsigned char rows[256];
    unsigned char label_bytes[256];
    size_t size = compress_bytes(rows, sizeof rows, images, 9);
    size += compress_bytes(rows + size, sizeof rows - size, images + 9, sizeof images - 9);
    size_t label_size = compress_bytes(label_bytes, sizeof label_bytes, labels, sizeof labels);
    struct sgp_dataset *dataset = NULL;
    cr_assert(eq(int, read_both(rows, size, label_bytes, label_size, 10, &dataset), 0));
    check_small(dataset);
    sgp_dataset_destroy(dataset);
}

Test(idx, refuses_every_truncation)
{
    for (size_t size = 1; size < sizeof images; size++) {
        struct sgp_dataset *dataset = NULL;
        cr_assert(eq(int, read_both(images, size, labels, sizeof labels, 0, &dataset), SGP_E_DATA));
        cr_assert(ne(ptr, strstr(error.text, "images: byte"), NULL), "%s", error.text);
    }
    for (size_t size = 1; size < sizeof labels; size++) {
        struct sgp_dataset *dataset = NULL;
        cr_assert(eq(int, read_both(images, sizeof images, labels, size, 0, &dataset), SGP_E_DATA));
        cr_assert(ne(ptr, strstr(error.text, "labels: byte"), NULL), "%s", error.text);
    }
    expect(images, 6, labels, sizeof labels, 0, SGP_E_DATA,
        "images: byte 6: the file ends in the middle of the header; an IDX file begins with 0 0 8 "
        "D "
        "and D sizes of 4 bytes");
    expect(images, 25, labels, sizeof labels, 0, SGP_E_DATA,
        "images: byte 25: the file ends after 2 of 3 rows; 28 bytes would be right");
}

Test(idx, refuses_every_flipped_bit_of_the_header)
{
    for (size_t bit = 0; bit < 16 * 8; bit++) {
        struct sgp_dataset *dataset = NULL;
        const unsigned char *flipped =
            with(bit / 8, images[bit / 8] ^ (unsigned char)(1 << bit % 8));
        int status = read_both(flipped, sizeof images, labels, sizeof labels, 0, &dataset);
        cr_assert(lt(int, status, 0), "bit %zu", bit);
        cr_assert(eq(int, error.code, status));
        cr_assert(eq(ptr, dataset, NULL));
    }
}

Test(idx, says_what_is_wrong_with_a_header)
{
    const size_t n = sizeof images;
    const size_t m = sizeof labels;
    expect(with(0, 'a'), n, labels, m, 0, SGP_E_DATA,
        "images: byte 0: begins with 61 00, which is no IDX file; IDX begins with 00 00 (a CSV "
        "file "
        "needs label = COLUMN)");
    expect(with(2, 0x0d), n, labels, m, 0, SGP_E_DATA,
        "images: byte 2: elements of type 0x0d; only unsigned bytes (0x08) can be read");
    expect(with(3, 9), n, labels, m, 0, SGP_E_DATA,
        "images: byte 3: 9 dimensions; 1 to 8 would be right");
    expect(with(7, 0), n, labels, m, 0, SGP_E_DATA,
        "images: byte 4: dimension 0 has size 0; every size is at least 1");
    expect(with(8, 0xff), n, labels, m, 0, SGP_E_LIMIT,
        "images: byte 8: more than 4194304 numbers in a row; dimension 1 says 4278190082");
    expect(labels, m, labels, m, 0, SGP_E_DATA,
        "images: byte 3: 1 dimension; rows of numbers need 2 or more (is this the file of "
        "labels?)");
}

Test(idx, does_not_believe_the_header)
{
    /* 2^32 - 1 rows of 16 bytes are within the limits and must not be allocated. */
    const unsigned char huge[] = {0, 0, 8, 2, 255, 255, 255, 255, 0, 0, 0, 16, 1, 2, 3};
    expect(huge, sizeof huge, labels, sizeof labels, 0, SGP_E_DATA,
        "images: byte 15: the file ends after 0 of 4294967295 rows; 68719476732 bytes would be "
        "right");
    const unsigned char absurd[] = {0, 0, 8, 2, 255, 255, 255, 255, 0, 0, 0, 17, 1, 2, 3};
    expect(absurd, sizeof absurd, labels, sizeof labels, 0, SGP_E_LIMIT,
        "images: byte 4: 4294967295 rows of 17 bytes; at most 68719476736 bytes can be read");
}

Test(idx, refuses_what_follows_the_last_row)
{
    unsigned char longer[sizeof images + 1] = {0};
    memcpy(longer, images, sizeof images);
    expect(longer, sizeof longer, labels, sizeof labels, 0, SGP_E_DATA,
        "images: byte 28: more bytes after the last of 3 rows; the file should end here");
}

Test(idx, refuses_labels_that_do_not_fit)
{
    const unsigned char four[] = {0, 0, 8, 1, 0, 0, 0, 4, 0, 1, 2, 3};
    expect(images, sizeof images, four, sizeof four, 0, SGP_E_DATA,
        "labels: byte 4: 4 labels, but images has 3 rows; the two must be equal");
    expect(images, sizeof images, images, sizeof images, 0, SGP_E_DATA,
        "labels: byte 3: 3 dimensions; a file of labels has 1 (are the two files exchanged?)");
    expect(images, sizeof images, labels, sizeof labels, 9, SGP_E_DATA,
        "labels: byte 10: label 9 of row 2; with 9 classes it is at most 8");
}

Test(idx, refuses_damaged_gzip)
{
    unsigned char whole[256];
    size_t size = compress_bytes(whole, sizeof whole, images, sizeof images);
    for (size_t cut = 3; cut < size; cut++) {
        struct sgp_dataset *dataset = NULL;
        cr_assert(eq(int, read_both(whole, cut, labels, sizeof labels, 0, &dataset), SGP_E_DATA));
    }
    expect(whole, size - 1, labels, sizeof labels, 0, SGP_E_DATA,
        "images: byte 28 of its contents: the gzip data ends too early; copy the file again");
    whole[size - 6] ^= 1; /* the checksum */
    expect(whole, size, labels, sizeof labels, 0, SGP_E_DATA,
        "images: byte 28 of its contents: the gzip data is damaged (incorrect data check); copy "
        "the "
        "file again");
    whole[size - 6] ^= 1;
    whole[size] = 'x';
    expect(whole, size + 1, labels, sizeof labels, 0, SGP_E_DATA,
        "images: byte 28 of its contents: the gzip data ends too early; copy the file again");
}

Test(idx, says_which_file_is_missing)
{
    struct sgp_dataset *dataset = NULL;
    error = (struct sgp_error){.code = 0};
    int status = sgp_dataset_read_idx("/nowhere/images", NULL, NULL, 0, &error, &dataset);
    cr_assert(eq(int, status, -2));
    cr_assert(eq(str, error.text, "/nowhere/images: cannot be opened: No such file or directory"));
    error = (struct sgp_error){.code = 0};
    status = sgp_dataset_read_idx("/", NULL, NULL, 0, &error, &dataset);
    cr_assert(eq(int, status, -21));
    cr_assert(eq(str, error.text, "/: is a directory; name a file"));
}

#define FASHION "/usr/share/datasets/fashion-mnist/"

Test(idx, reads_fashion_mnist_where_it_is_installed)
{
    if (access(FASHION "train-images-idx3-ubyte.gz", R_OK) != 0)
        cr_skip_test("dataset-fashion-mnist is not installed");
    const struct sgp_data_options options = {.train = FASHION "train-images-idx3-ubyte.gz",
        .labels = FASHION "train-labels-idx1-ubyte.gz",
        .test = FASHION "t10k-images-idx3-ubyte.gz",
        .test_labels = FASHION "t10k-labels-idx1-ubyte.gz",
        .shards = {.kind = SGP_SHARD_SORTED},
        .node_index = 1,
        .node_count = 4};
    struct sgp_data data;
    error = (struct sgp_error){.code = 0};
    cr_assert(eq(int, sgp_data_load(&options, &error, &data), 0), "%s", error.text);
    struct sgp_dataset *train = data.train;
    struct sgp_dataset *test = data.test;
    cr_assert(eq(u64, train->rows, 15000));
    cr_assert(eq(u32, train->features, 784));
    cr_assert(eq(u32, train->classes, 10));
    cr_assert(eq(u64, test->rows, 10000));
    /* 6,000 rows a class: the second quarter of the sorted rows is half of 2, all of 3, half of 4. */
    uint32_t counts[10] = {0};
    for (uint64_t i = 0; i < train->rows; i++)
        counts[train->labels[i]]++;
    cr_assert(eq(u32, counts[2], 3000));
    cr_assert(eq(u32, counts[3], 6000));
    cr_assert(eq(u32, counts[4], 6000));
    sgp_dataset_destroy(train);
    sgp_dataset_destroy(test);
}

/* The shape of a row of so many dimensions, each but the first 2, and of a part of the rows. */
static struct sgp_shape shape_of(unsigned char dimensions)
{
    unsigned char bytes[4 + 4 * 5 + 16] = {0, 0, 8, dimensions};
    for (size_t d = 0; d < dimensions; d++)
        bytes[4 + 4 * d + 3] = d == 0 ? 1 : 2;
    struct sgp_dataset *dataset = NULL, *part = NULL;
    size_t values = (size_t)1 << (dimensions - 1);
    cr_assert(eq(int, read_both(bytes, 4 + 4u * dimensions + values, NULL, 0, 0, &dataset), 0),
        "%s", error.text);
    const uint32_t row = 0;
    cr_assert(eq(int, sgp_dataset_subset(dataset, &row, 1, &part), 0));
    struct sgp_shape shape = part->shape;
    cr_assert(sgp_shape_equal(shape, dataset->shape));
    sgp_dataset_destroy(dataset);
    sgp_dataset_destroy(part);
    return shape;
}

Test(idx, rows_of_two_and_three_dimensions_are_images)
{
    cr_assert(sgp_shape_equal(shape_of(2), (struct sgp_shape){2, 1, 1}));
    cr_assert(sgp_shape_equal(shape_of(3), (struct sgp_shape){1, 2, 2}));
    cr_assert(sgp_shape_equal(shape_of(4), (struct sgp_shape){2, 2, 2}));
    cr_assert(sgp_shape_equal(shape_of(5), (struct sgp_shape){16, 1, 1}));
}

Test(idx, test_images_have_the_shape_of_the_others)
{
    char train[] = "/tmp/sgpd-idx-XXXXXX", test[] = "/tmp/sgpd-idx-XXXXXX",
         label[] = "/tmp/sgpd-idx-XXXXXX";
    const struct {
        char *path;
        const unsigned char *bytes;
        size_t size;
    } files[] = {{train, images, sizeof images}, {test, images, sizeof images},
        {label, labels, sizeof labels}};
    for (int i = 0; i < 3; i++) {
        int fd = mkstemp(files[i].path);
        cr_assert(eq(long, write(fd, files[i].bytes, files[i].size), (long)files[i].size));
        if (i == 1) /* 1 x 4 in the place of 2 x 2 */
            cr_assert(eq(long, pwrite(fd, "\0\0\0\1\0\0\0\4", 8, 8), 8));
        close(fd);
    }
    const struct sgp_data_options options = {.train = train,
        .labels = label,
        .test = test,
        .test_labels = label,
        .class_count = 10,
        .node_count = 1};
    struct sgp_data data;
    error = (struct sgp_error){.code = 0};
    cr_assert(eq(int, sgp_data_load(&options, &error, &data), SGP_E_DATA));
    char expected[256];
    (void)snprintf(expected, sizeof expected,
        "%s: images of 1x1x4, and those of %s have 1x2x2; both must have the same shape", test,
        train);
    cr_assert(eq(str, error.text, expected));
    for (int i = 0; i < 3; i++)
        cr_assert(eq(int, unlink(files[i].path), 0));
}

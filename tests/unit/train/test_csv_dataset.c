/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of CSV: what the rows become, by their labels and by a scaling, and one clear line for each value
 * that is refused. */
#include "csv_rows.h"

struct blocks {
    uint32_t count;
    uint64_t lines[4];
    uint64_t full_at; /* refuse a block whose last row is of this line */
};

static int take_block(
    void *context, const struct sgp_dataset *block, uint64_t line, struct sgp_error *why)
{
    struct blocks *blocks = context;
    cr_assert(ge(u64, block->rows, 1));
    blocks->lines[blocks->count++] = line;
    return line == blocks->full_at ? sgp_csv_too_many("t.csv", line, why) : 0;
}

static int read_blocks(const char *text, struct blocks *blocks)
{
    const struct sgp_csv_options options = {.label = "y"};
    FILE *file = fmemopen((void *)(uintptr_t)text, strlen(text), "rb");
    error = (struct sgp_error){.code = 0};
    int status = sgp_csv_read_blocks(file, "t.csv", &options, 2, take_block, blocks, &error);
    fclose(file);
    return status;
}

Test(csv_dataset, a_block_comes_with_the_line_of_its_last_row)
{
    struct blocks blocks = {.count = 0};
    cr_assert(eq(int, read_blocks("a,y\n1,1\n\n2,2\n3,3\n\n\n", &blocks), 0), "%s", error.text);
    cr_assert(eq(u32, blocks.count, 2));
    cr_assert(eq(u64, blocks.lines[0], 4));
    cr_assert(eq(u64, blocks.lines[1], 5));
}

Test(csv_dataset, rows_beyond_the_limit_name_the_table_its_line_and_a_remedy)
{
    struct blocks blocks = {.full_at = 4};
    cr_assert(eq(int, read_blocks("a,y\n1,1\n\n2,2\n3,3\n", &blocks), SGP_E_LIMIT));
    cr_assert(eq(u32, blocks.count, 1));
    cr_assert(eq(str, error.text,
        "t.csv:4: more than 4294967295 rows or 68719476736 bytes of numbers; split the table, and "
        "give each node one part"));
}

Test(csv_dataset, rows_before_a_wrong_row_are_given_first)
{
    struct blocks blocks = {.count = 0};
    cr_assert(eq(int, read_blocks("a,y\n1,1\n2,2\n3,3\nx,4\n", &blocks), SGP_E_DATA));
    cr_assert(eq(u32, blocks.count, 2));
    cr_assert(eq(u64, blocks.lines[1], 4));
    cr_assert(eq(int, strncmp(error.text, "t.csv:5: column 'a': 'x' ", 25), 0), "%s", error.text);
    blocks = (struct blocks){.count = 0};
    cr_assert(eq(int, read_blocks("a,y\n1,1\n2\n", &blocks), SGP_E_DATA));
    cr_assert(eq(u32, blocks.count, 1), "a row that is too short");
    blocks = (struct blocks){.full_at = 2};
    cr_assert(eq(int, read_blocks("a,y\n1,1\nx,4\n", &blocks), SGP_E_LIMIT));
    cr_assert(eq(int, strncmp(error.text, "t.csv:2: more than ", 19), 0), "the first error counts");
}

Test(csv_dataset, reads_numbers_for_regression)
{
    struct sgp_dataset *dataset = expect_rows("a,y,b\n1,-2.5,3e2\n 4 ,+5,.5", &plain, 2, 2);
    cr_assert(eq(u32, dataset->classes, 0));
    cr_assert(eq(u32, dataset->targets, 1));
    expect_floats(dataset->floats, (float[]){1, 300, 4, 0.5f}, 4);
    expect_floats(dataset->values, (float[]){-2.5f, 5}, 2);
    sgp_dataset_destroy(dataset);
}

Test(csv_dataset, class_order_numbers_the_labels)
{
    struct sgp_dataset *dataset = expect_rows("y,a\nblue,1\nred,2\n\"green\",3\n", &classed, 3, 1);
    cr_assert(eq(u32, dataset->classes, 3));
    cr_assert(eq(u32, dataset->labels[0], 2));
    cr_assert(eq(u32, dataset->labels[1], 0));
    cr_assert(eq(u32, dataset->labels[2], 1));
    sgp_dataset_destroy(dataset);
}

Test(csv_dataset, classes_that_are_numbers_are_compared_as_numbers)
{
    static const char *const mixed[] = {"1", "0", "-2.50", "many"};
    struct sgp_csv_options options = {
        .label = "y", .class_names = mixed, .class_count = 4, .missing = SGP_MISSING_ERROR};
    struct sgp_dataset *dataset =
        expect_rows("y,a\n0.0,1\n1,2\n1.00,3\n -2.5,4\n1e0,5\nmany,6\n-0,7\n", &options, 7, 1);
    static const uint32_t labels[] = {1, 0, 0, 2, 0, 3, 1};
    for (size_t i = 0; i < 7; i++)
        cr_assert(eq(u32, dataset->labels[i], labels[i]), "row %zu", i);
    sgp_dataset_destroy(dataset);
    expect_error("a,y\n1,2\n", &options, SGP_E_DATA,
        "t.csv:2: column 'y': '2' is not among the classes; list every class in classes = ...");
    expect_error("a,y\n1,many \n", &options, SGP_E_DATA,
        "t.csv:2: column 'y': 'many ' is not among the classes; list every class in classes = ...");
    static const char *const twice[] = {"0", "1", "0.0"};
    options.class_names = twice;
    options.class_count = 3;
    expect_error("a,y\n1,1\n", &options, SGP_E_CONFIG,
        "classes: '0' and '0.0' are one number; name each class once");
}

Test(csv_dataset, says_which_value_is_wrong)
{
    expect_error("a,y\n1,2\nred,3\n", &plain, SGP_E_DATA,
        "t.csv:3: column 'a': 'red' is not a number; a column of words needs its values in a "
        "scaling "
        "file");
    expect_error("a,y\n1,two\n", &plain, SGP_E_DATA,
        "t.csv:2: column 'y': 'two' is not a number; labels that are words need classes = ...");
    expect_error("a,y\n1,pink\n", &classed, SGP_E_DATA,
        "t.csv:2: column 'y': 'pink' is not among the classes; list every class in classes = ...");
    expect_error("a,y\n1, red\n", &classed, SGP_E_DATA,
        "t.csv:2: column 'y': ' red' is not among the classes; list every class in classes = ...");
    static const char *const numbers[] = {
        "0x10", "inf", "1e400", "1e39", "1,5", "--1", "1 2", "1e"};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        char text[64];
        struct sgp_dataset *dataset = NULL;
        snprintf(text, sizeof text, "a,y\n\"%s\",1\n", numbers[i]);
        cr_assert(eq(int, read_text(text, &plain, &dataset), SGP_E_DATA), "%s", numbers[i]);
        cr_assert(ne(ptr, strstr(error.text, "is not a number"), NULL));
    }
    static const char *const twice[] = {"a", "b", "a"};
    const struct sgp_csv_options repeated = {
        .label = "y", .class_names = twice, .class_count = 3, .missing = SGP_MISSING_ERROR};
    expect_error(
        "a,y\n1,a\n", &repeated, SGP_E_CONFIG, "classes: 'a' is there twice; name each once");
}

Test(csv_dataset, several_label_columns_make_as_many_values)
{
    struct sgp_csv_options options = {
        .label = " y , \"z, \"\"w\"\"\",x x", .missing = SGP_MISSING_ERROR};
    struct sgp_dataset *numbers =
        expect_rows("x x,a,\"z, \"\"w\"\"\",y\n1,2,3,4\n5,6,7,8e-1\n", &options, 2, 1);
    cr_assert(eq(u32, numbers->targets, 3));
    cr_assert(eq(u32, numbers->classes, 0));
    expect_floats(numbers->floats, (float[]){2, 6}, 2);
    expect_floats(numbers->values, (float[]){4, 3, 1, 0.8f, 7, 5}, 6);
    options.label = "x x, y, \"z, \"\"w\"\"\"";
    struct sgp_dataset *other = expect_rows("x x,a,\"z, \"\"w\"\"\",y\n1,2,3,4\n", &options, 1, 1);
    cr_assert(ne(u64, sgp_dataset_classes_digest(numbers), sgp_dataset_classes_digest(other)));
    sgp_dataset_destroy(numbers);
    sgp_dataset_destroy(other);
}

Test(csv_dataset, label_columns_of_bits)
{
    struct sgp_csv_options options = {.label = "y, z", .bits = true, .missing = SGP_MISSING_ERROR};
    struct sgp_dataset *bits = expect_rows("a,y,z\n2,1,0\n6, 0.0,1e0\n", &options, 2, 1);
    expect_floats(bits->values, (float[]){1, 0, 0, 1}, 4);
    sgp_dataset_destroy(bits);
    expect_error("a,y,z\n2,1,0\n6,0,0.5\n", &options, SGP_E_DATA,
        "t.csv:3: column 'z': '0.5' is neither 0 nor 1; the loss takes label columns of 0 and 1");
    expect_error("a,y,z\n2,1,\n", &options, SGP_E_DATA,
        "t.csv:2: column 'z': '' is a missing label; give it, or set missing = drop");
    options.missing = SGP_MISSING_DROP;
    sgp_dataset_destroy(expect_rows("a,y,z\n2,1,\n3,0,1\n", &options, 1, 1));
}

Test(csv_dataset, label_columns_that_are_wrong)
{
    struct sgp_csv_options options = {.label = "y, y", .missing = SGP_MISSING_ERROR};
    expect_error(
        "a,y\n2,1\n", &options, SGP_E_CONFIG, "label: column 'y' is named twice; name it once");
    options.label = "y, w";
    expect_error("a,y\n2,1\n", &options, SGP_E_DATA,
        "t.csv:1: there is no column 'w'; the columns are a, y");
    options.label = " , ";
    expect_error("a,y\n2,1\n", &options, SGP_E_CONFIG, "label: it names no column");
    options.label = "\"y";
    expect_error("a,y\n2,1\n", &options, SGP_E_CONFIG,
        "label: the quote before 'y' is never closed; close it, and mind that a blank and # or ; "
        "begin a comment");
    options = classed;
    options.label = "y, a";
    expect_error("a,y\n2,red\n", &options, SGP_E_CONFIG,
        "label: 2 columns, and classes are the values of one; leave classes out, or put a name "
        "with a comma in it in \"quotes\"");
}

Test(csv_dataset, scaling_orders_scales_and_spreads)
{
    struct sgp_scaling *scaling = scaling_of(SCALING);
    cr_assert(eq(u32, sgp_scaling_features(scaling), 3));
    struct sgp_csv_options options = plain;
    options.scaling = scaling;
    struct sgp_dataset *one = expect_rows("a,ignored,c,y\n12,x,v,1\n4,y,u,2\n", &options, 2, 3);
    expect_floats(one->floats, (float[]){0, 1, 0.5f, 1, 0, -1.5f}, 6);
    struct sgp_dataset *two = expect_rows("y,c,a\n1,v,12\n", &options, 1, 3);
    expect_floats(two->floats, (float[]){0, 1, 0.5f}, 3);
    cr_assert(eq(u64, sgp_dataset_scaling_digest(one), sgp_dataset_scaling_digest(two)));
    expect_error("c,y\nu,1\n", &options, SGP_E_DATA,
        "t.csv:1: there is no column 'a', which the scaling file s.json names (c, a); the columns "
        "are "
        "c, y; write a scaling file of this table, or correct [data] scale");
    expect_error("a,c,y\n1,w,1\n", &options, SGP_E_DATA,
        "t.csv:2: column 'c': 'w' is not among the values of the scaling file; add it there on "
        "every "
        "node");
    options.label = "a";
    expect_error("a,c\n1,u\n", &options, SGP_E_DATA,
        "t.csv:1: column 'a' is the label and cannot be a feature; take it out of the scaling file "
        "s.json (sgpctl scaling --label a leaves it out)");
    sgp_dataset_destroy(one);
    sgp_dataset_destroy(two);
    sgp_scaling_destroy(scaling);
}

/* The first label of `text`, read with a scaling; *ret_digest tells how its rows are scaled. */
static float first_value(
    const char *json, const char *text, struct sgp_csv_options options, uint64_t *ret_digest)
{
    struct sgp_scaling *scaling = scaling_of(json);
    options.scaling = scaling;
    struct sgp_dataset *dataset = expect_rows(text, &options, 2, 1);
    const float value = dataset->values ? dataset->values[0] : (float)dataset->labels[0];
    *ret_digest = sgp_dataset_scaling_digest(dataset);
    sgp_dataset_destroy(dataset);
    sgp_scaling_destroy(scaling);
    return value;
}

Test(csv_dataset, label_columns_of_numbers_are_scaled)
{
    static const char *const digits[] = {"0", "1"};
    static const char scaled[] = TARGETS("2", TARGET("y", "152.25", "77"));
    static const char text[] = "a,y\n1,229.25\n2,75.25\n", bits[] = "a,y\n1,1\n2,0\n";
    struct sgp_csv_options options = plain;
    uint64_t digest, plain_digest, other;
    cr_assert(eq(flt, first_value(scaled, text, options, &digest), 1));
    /* Format 1 has its former meaning, also with targets that somebody computed. */
    cr_assert(eq(flt,
        first_value(TARGETS("1", TARGET("y", "152.25", "77")), text, options, &plain_digest),
        229.25f));
    cr_assert(ne(u64, digest, plain_digest), "two nodes must see that they scale differently");
    first_value(TARGETS("2", TARGET("y", "152.25", "78")), text, options, &other);
    cr_assert(ne(u64, digest, other));
    /* One label column may have another name. */
    cr_assert(
        eq(flt, first_value(TARGETS("2", TARGET("z", "152.25", "77")), text, options, &other), 1));
    cr_assert(eq(u64, digest, other));
    /* Classes, and columns of 0 and 1, are not scaled. */
    options.bits = true;
    cr_assert(eq(flt, first_value(scaled, bits, options, &other), 1));
    cr_assert(eq(u64, plain_digest, other));
    options = (struct sgp_csv_options){
        .label = "y", .class_names = digits, .class_count = 2, .missing = SGP_MISSING_ERROR};
    cr_assert(eq(flt, first_value(scaled, bits, options, &other), 1));
    cr_assert(eq(u64, plain_digest, other));
}

Test(csv_dataset, constant_and_distant_labels_are_scaled_exactly)
{
    uint64_t digest;
    cr_assert(eq(flt,
        first_value(TARGETS("2", TARGET("y", "1e9", "1")), "a,y\n1,1e9\n2,1e9\n", plain, &digest),
        0));
    /* 1e12 + 3 is no 32-bit number, and what is left of it when it is scaled is one. */
    cr_assert(eq(flt,
        first_value(TARGETS("2", TARGET("y", "1e12", "2")), "a,y\n1,1000000000003\n2,1e12\n", plain,
            &digest),
        1.5f));
}

Test(csv_dataset, several_label_columns_are_those_of_the_scaling)
{
    struct sgp_scaling *scaling =
        scaling_of(TARGETS("2", TARGET("y", "1", "2") "," TARGET("z", "-1", "4")));
    struct sgp_csv_options options = plain;
    options.scaling = scaling;
    options.label = "y, z";
    struct sgp_dataset *dataset = expect_rows("z,a,y\n3,0,3\n", &options, 1, 1);
    expect_floats(dataset->values, (float[]){1, 1}, 2);
    sgp_dataset_destroy(dataset);
    options.label = "z, y";
    expect_error("z,a,y\n3,0,3\n", &options, SGP_E_DATA,
        "t.csv:1: label = z, y, but the targets of the scaling file s.json are y, z; write a "
        "scaling file with this label (sgpctl scaling --label z, y)");
    options.label = "y";
    expect_error("z,a,y\n3,0,3\n", &options, SGP_E_DATA,
        "t.csv:1: label = y, but the targets of the scaling file s.json are y, z; write a scaling "
        "file with this label (sgpctl scaling --label y)");
    sgp_scaling_destroy(scaling);
}

Test(csv_dataset, a_label_that_is_too_large_once_scaled_is_refused)
{
    struct sgp_scaling *scaling = scaling_of(TARGETS("2", TARGET("y", "0", "1e-10")));
    struct sgp_csv_options options = plain;
    options.scaling = scaling;
    expect_error("a,y\n1,1e30\n", &options, SGP_E_DATA,
        "t.csv:2: column 'y': '1e30' is too large once scaled; look at the targets of the scaling "
        "file");
    sgp_scaling_destroy(scaling);
}

Test(csv_dataset, a_row_of_a_class_that_nobody_told_is_left_out)
{
    static const char *const names[] = {"0", "1"}, *const told[] = {"0", "1", "2", "many"};
    struct sgp_csv_agreed agreed = {.classes = told, .class_count = 4};
    struct sgp_csv_options options = {.label = "y",
        .class_names = names,
        .class_count = 2,
        .missing = SGP_MISSING_ERROR,
        .agreed = &agreed};
    struct sgp_dataset *dataset = expect_rows("a,y\n1,0\n2,7\n3,1.0\n4,few\n5,7\n", &options, 2, 1);
    cr_assert(eq(u64, agreed.left_out, 3));
    cr_assert(eq(u64, agreed.left_out_line, 3));
    expect_floats(dataset->floats, (float[]){1, 3}, 2);
    sgp_dataset_destroy(dataset);
    /* A class that some node has told needs an output. */
    expect_error("a,y\n1,0\n2,2.0\n", &options, SGP_E_DATA,
        "t.csv:3: column 'y': '2.0' is not among the classes; list every class in classes = ...");
    expect_error("a,y\n1,many\n", &options, SGP_E_DATA,
        "t.csv:2: column 'y': 'many' is not among the classes; list every class in classes = ...");
    agreed.class_count = 0;
    expect_error("a,y\n2,7\n", &options, SGP_E_DATA,
        "t.csv:2: column 'y': '7' is not among the classes; list every class in classes = ...");
}

Test(csv_dataset, other_columns_than_the_nodes_agreed_on)
{
    struct sgp_csv_agreed agreed = {.class_count = 0};
    struct sgp_scaling *scaling = scaling_of(SCALING);
    struct sgp_csv_options options = plain;
    options.scaling = scaling;
    options.agreed = &agreed;
    expect_error("c,y\nu,1\n", &options, SGP_E_DATA,
        "t.csv:1: there is no column 'a', on which the nodes have agreed (c, a); the columns are "
        "c, y; correct the table, or, to agree on other columns, stop all nodes, remove s.json on "
        "each, and start them");
    options.label = "a";
    expect_error("a,c\n1,u\n", &options, SGP_E_DATA,
        "t.csv:1: column 'a' is the label, and the nodes have agreed on it as a feature; correct "
        "[data] label, or, to agree on other columns, stop all nodes, remove s.json on each, and "
        "start them");
    sgp_scaling_destroy(scaling);
}

Test(csv_dataset, a_value_of_the_scaling_may_be_called_as_a_missing_one)
{
    struct sgp_scaling *scaling = scaling_of(
        "{\"sgp_scaling\": 1, \"columns\": [{\"name\": \"c\", \"values\": [\"?\", \"v\"]}]}");
    struct sgp_csv_options options = plain;
    options.scaling = scaling;
    struct sgp_dataset *dataset = expect_rows("c,y\n?,1\nv,2\n", &options, 2, 2);
    expect_floats(dataset->floats, (float[]){1, 0, 0, 1}, 4);
    expect_error("c,y\nNA,1\n", &options, SGP_E_DATA,
        "t.csv:2: column 'c': 'NA' is a missing value; give it, or set missing = drop or mean");
    sgp_dataset_destroy(dataset);
    sgp_scaling_destroy(scaling);
}

Test(csv_dataset, missing_values_are_refused_dropped_or_filled)
{
    const char *text = "a,c,y\n12,u,1\nNA,v,2\n4, ? ,3\n4,u,\n";
    struct sgp_scaling *scaling = scaling_of(SCALING);
    struct sgp_csv_options options = plain;
    options.scaling = scaling;
    expect_error(text, &options, SGP_E_DATA,
        "t.csv:3: column 'a': 'NA' is a missing value; give it, or set missing = drop or mean");
    options.missing = SGP_MISSING_DROP;
    struct sgp_dataset *dropped = expect_rows(text, &options, 1, 3);
    expect_floats(dropped->floats, (float[]){1, 0, 0.5f}, 3);
    sgp_dataset_destroy(dropped);
    expect_error("a,c,y\n,u,1\n", &options, SGP_E_DATA,
        "t.csv:3: no rows without missing values; at least one is needed");
    options.missing = SGP_MISSING_MEAN;
    expect_error(text, &options, SGP_E_DATA,
        "t.csv:5: column 'y': '' is a missing label; give it, or set missing = drop");
    struct sgp_dataset *filled = expect_rows("a,c,y\n12,u,1\nNA,v,2\n4, ? ,3\n", &options, 3, 3);
    expect_floats(filled->floats, (float[]){1, 0, 0.5f, 0, 1, 0, 0, 0, -1.5f}, 9);
    sgp_dataset_destroy(filled);
    options.scaling = NULL;
    expect_error(text, &options, SGP_E_CONFIG,
        "t.csv: missing = mean takes the means from a scaling file; set scale = FILE");
    sgp_scaling_destroy(scaling);
}

Test(csv_dataset, a_class_may_be_called_like_a_missing_value)
{
    static const char *const names[] = {"EU", "NA"};
    const struct sgp_csv_options options = {
        .label = "y", .class_names = names, .class_count = 2, .missing = SGP_MISSING_DROP};
    struct sgp_dataset *dataset = expect_rows("a,y\n1,NA\n2,EU\n3,?\n", &options, 2, 1);
    cr_assert(eq(u32, dataset->labels[0], 1));
    sgp_dataset_destroy(dataset);
}

Test(csv_dataset, digests_tell_what_parts_nodes)
{
    static const char *const other[] = {"green", "red", "blue"};
    struct sgp_csv_options reordered = classed;
    reordered.class_names = other;
    struct sgp_csv_options fewer = classed;
    fewer.class_count = 2;
    struct sgp_dataset *base = expect_rows("a,b,y\n1,2,red\n", &classed, 1, 2);
    struct sgp_dataset *same = expect_rows("a,b,y\n7,8,green\n1,1,red\n", &classed, 2, 2);
    struct sgp_dataset *order = expect_rows("a,b,y\n1,2,red\n", &reordered, 1, 2);
    struct sgp_dataset *count = expect_rows("a,b,y\n1,2,red\n", &fewer, 1, 2);
    struct sgp_dataset *columns = expect_rows("b,a,y\n1,2,red\n", &classed, 1, 2);
    cr_assert(eq(u64, sgp_dataset_classes_digest(base), sgp_dataset_classes_digest(same)));
    cr_assert(eq(u64, sgp_dataset_scaling_digest(base), sgp_dataset_scaling_digest(same)));
    cr_assert(ne(u64, sgp_dataset_classes_digest(base), sgp_dataset_classes_digest(order)));
    cr_assert(ne(u64, sgp_dataset_classes_digest(base), sgp_dataset_classes_digest(count)));
    cr_assert(ne(u64, sgp_dataset_scaling_digest(base), sgp_dataset_scaling_digest(columns)));
    sgp_dataset_destroy(base);
    sgp_dataset_destroy(same);
    sgp_dataset_destroy(order);
    sgp_dataset_destroy(count);
    sgp_dataset_destroy(columns);

    static const char *const texts[] = {SCALING,
        "{\"sgp_scaling\": 1, \"columns\": [{\"name\": \"c\", \"values\": [\"v\", \"u\"]},"
        "{\"name\": \"a\", \"mean\": 10, \"deviation\": 4}]}",
        "{\"sgp_scaling\": 1, \"columns\": [{\"name\": \"c\", \"values\": [\"u\", \"v\"]},"
        "{\"name\": \"a\", \"mean\": 10.000000000000002, \"deviation\": 4}]}",
        "{\"sgp_scaling\": 1, \"columns\": [{\"name\": \"a\", \"mean\": 10, \"deviation\": 4},"
        "{\"name\": \"c\", \"values\": [\"u\", \"v\"]}]}"};
    uint64_t digests[4];
    for (int i = 0; i < 4; i++) {
        struct sgp_scaling *scaling = scaling_of(texts[i]);
        digests[i] = sgp_scaling_digest(scaling);
        sgp_scaling_destroy(scaling);
        for (int j = 0; j < i; j++)
            cr_assert(ne(u64, digests[i], digests[j]));
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/* STATE/versions: which versions are kept, which are dropped, and files that are damaged. */
#include "store/versions.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char state[] = "/tmp/sgp-versions-XXXXXX";

static void path_of(const char *name, char path[256])
{
    (void)snprintf(path, 256, "%s/versions/%s", state, name);
}

static void make(void)
{
    cr_assert(mkdtemp(state) != NULL);
}

static void clear(void)
{
    char command[256];
    (void)snprintf(command, sizeof command, "rm -rf %s", state);
    cr_assert(eq(int, system(command), 0));
}

static void put(const char *name, const char *text, size_t bytes)
{
    char path[256];
    path_of("", path);
    (void)mkdir(path, 0750);
    path_of(name, path);
    FILE *file = fopen(path, "w");
    cr_assert(file != NULL && fwrite(text, 1, bytes, file) == bytes && fclose(file) == 0);
}

static void keep(uint64_t version, const char *document, uint64_t seconds)
{
    struct sgp_error error = {0};
    cr_assert(
        eq(int, versions_keep(state, version, document, seconds, &error), 0), "%s", error.text);
}

static void expect(uint64_t version, const char *document, uint64_t seconds)
{
    uint64_t found = 0;
    char *text = NULL;
    cr_assert(eq(int, versions_read(state, version, &found, &text), 0));
    cr_assert(eq(u64, found, seconds));
    cr_assert(eq(str, text, (char *)document));
    free(text);
}

static int read_code(uint64_t version)
{
    uint64_t seconds;
    char *text = NULL;
    const int code = versions_read(state, version, &seconds, &text);
    free(text);
    return code;
}

static uint32_t files(void)
{
    char path[256];
    uint32_t count = 0;
    path_of("", path);
    DIR *directory = opendir(path);
    cr_assert(directory != NULL);
    for (const struct dirent *entry; (entry = readdir(directory)) != NULL;)
        count += entry->d_name[0] != '.';
    (void)closedir(directory);
    return count;
}

Test(versions, the_latest_are_kept_and_listed_first, .init = make, .fini = clear)
{
    uint64_t list[VERSIONS_MAX];
    cr_assert(eq(u32, versions_list(state, list), 0));
    cr_assert(eq(int, read_code(1), -ENOENT));
    for (uint64_t version = 1; version <= VERSIONS_MAX + 8; version++) {
        char document[32];
        (void)snprintf(document, sizeof document, "document %u", (unsigned)version);
        keep(version, document, 1000 + version);
    }
    cr_assert(eq(u32, versions_list(state, list), VERSIONS_MAX));
    for (uint32_t i = 0; i < VERSIONS_MAX; i++)
        cr_assert(eq(u64, list[i], VERSIONS_MAX + 8 - i));
    cr_assert(eq(u32, files(), VERSIONS_MAX));
    cr_assert(eq(int, read_code(8), -ENOENT));
    expect(9, "document 9", 1009);
    expect(40, "document 40", 1040);
}

Test(versions, the_second_of_the_first_use_stays, .init = make, .fini = clear)
{
    keep(7, "one", 5);
    keep(7, "one", 6);
    expect(7, "one", 5);
    keep(7, "another", 8); /* two files of one version were in use */
    expect(7, "another", 8);
    keep(3, "earlier", 9);
    uint64_t list[VERSIONS_MAX];
    cr_assert(eq(u32, versions_list(state, list), 2));
    cr_assert(list[0] == 7 && list[1] == 3);
}

Test(versions, files_of_others_are_not_listed, .init = make, .fini = clear)
{
    static const char *const names[] = {
        "07", "0", "x", "5.new", "-1", "5 ", "18446744073709551616"};
    uint64_t list[VERSIONS_MAX];
    keep(5, "five", 1);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        put(names[i], "x", 1);
    cr_assert(eq(u32, versions_list(state, list), 1));
    cr_assert(eq(u64, list[0], 5));
}

Test(versions, a_damaged_file_is_no_version, .init = make, .fini = clear)
{
    static const char *const texts[] = {"", "\n", "sgpd-used-1 5", "sgpd-used-1 5\n",
        "sgpd-used-1 5\n\n", "sgpd-used-1 5\nhalf", "sgpd-used-1 5x\ndocument\n",
        "sgpd-used-1  5\ndocument\n", "sgpd-used-1 -5\ndocument\n", "sgpd-used-1 05\ndocument\n",
        "sgpd-used-2 5\ndocument\n", "sgpd-used-1 5 document\n", "sgpd-used-1 5\ntwo\nlines\n",
        "sgpd-used-1 99999999999999999999\ndocument\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        put("5", texts[i], strlen(texts[i]));
        cr_expect(eq(int, read_code(5), SGP_E_DATA), "%zu", i);
    }
    put("5", "sgpd-used-1 5\ndocu\0ent\n", 23);
    cr_expect(eq(int, read_code(5), SGP_E_DATA));
    keep(5, "document", 6); /* and is written anew */
    expect(5, "document", 6);
}

/* Nothing behind the bytes that were read is looked at. */
Test(versions, a_longest_document_is_read_and_a_file_without_an_end_is_not, .init = make,
    .fini = clear)
{
    static const char head[] = "sgpd-used-1 5\n";
    const size_t most = VERSIONS_BYTES_MAX, bytes = sizeof head - 1 + most + 1;
    char *text = malloc(bytes + 100);
    memset(text, 'x', bytes + 100);
    memcpy(text, head, sizeof head - 1);
    text[bytes - 1] = '\n';
    put("5", text, bytes);
    cr_assert(eq(int, read_code(5), 0));
    text[bytes - 1] = 'x';
    put("5", text, bytes + 100); /* more than is read */
    cr_assert(eq(int, read_code(5), SGP_E_DATA));
    free(text);
}

Test(versions, what_cannot_be_kept_is_an_error_that_names_the_file, .init = make, .fini = clear)
{
    struct sgp_error error = {0};
    char path[256];
    uint64_t list[VERSIONS_MAX];
    keep(4, "four", 1);
    path_of("5.new", path);
    cr_assert(eq(int, mkdir(path, 0750), 0)); /* in the place of the temporary file */
    cr_assert(eq(int, versions_keep(state, 5, "five", 2, &error), -EEXIST));
    cr_assert(strncmp(error.text, path, strlen(path)) == 0, "%s", error.text);
    cr_assert(eq(u32, versions_list(state, list), 1));
    expect(4, "four", 1);
}

Test(versions, the_beginning_is_read_without_the_rest, .init = make, .fini = clear)
{
    uint64_t seconds = 0;
    char text[8];
    keep(5, "a document", 6);
    cr_assert(eq(int, versions_read_beginning(state, 5, &seconds, text, sizeof text), 0));
    cr_assert(eq(str, text, "a docum"));
    cr_assert(eq(u64, seconds, 6));
    keep(7, "short", 8);
    cr_assert(eq(int, versions_read_beginning(state, 7, &seconds, text, sizeof text), 0));
    cr_assert(eq(str, text, "short"));
    put("5", "sgpd-used-1 x\na document\n", 25);
    cr_assert(eq(int, versions_read_beginning(state, 5, &seconds, text, sizeof text), SGP_E_DATA));
    cr_assert(eq(int, versions_read_beginning(state, 6, &seconds, text, sizeof text), -ENOENT));
}

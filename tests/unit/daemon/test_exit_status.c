/* SPDX-License-Identifier: Apache-2.0 */
/* The exit statuses of sgpd: the manual page and the unit say what the table says. */
#include "util/exit_status.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct row {
    int number;
    int restarts;
};

#define ROW(name, number, restarts, text) {number, restarts},
static const struct row rows[] = {EXIT_STATUS_TABLE(ROW)};
#define ROW_COUNT (sizeof rows / sizeof *rows)

static char *read_document(const char *name)
{
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/%s", SGP_SOURCE_ROOT, name);
    FILE *file = fopen(path, "r");
    cr_assert_not_null(file, "%s is missing", path);
    char *text = calloc(1, 1 << 20);
    cr_assert(gt(sz, fread(text, 1, (1 << 20) - 1, file), 0));
    (void)fclose(file);
    return text;
}

Test(exit_status, the_manual_page_lists_the_statuses_of_the_table_in_its_order)
{
    char *text = read_document("docs/man/sgpd.8"), expected[256] = "", listed[256] = "";
    char *section = strstr(text, "\n.SH EXIT STATUS\n");
    cr_assert_not_null(section);
    char *end = strstr(section + 1, "\n.SH ");
    cr_assert_not_null(end);
    *end = '\0';
    for (size_t i = 0; i < ROW_COUNT; i++)
        (void)snprintf(
            expected + strlen(expected), sizeof expected - strlen(expected), " %d", rows[i].number);
    for (const char *at = section; (at = strstr(at, "\n.TP\n.B ")) != NULL; at++)
        (void)snprintf(listed + strlen(listed), sizeof listed - strlen(listed), " %d",
            atoi(at + strlen("\n.TP\n.B ")));
    cr_assert(eq(str, listed, expected));
    free(text);
}

Test(exit_status, the_unit_does_not_start_a_process_again_that_must_not_be)
{
    char *text = read_document("systemd/sgpd@.service.in");
    char expected[256] = "\nRestartPreventExitStatus=";
    for (size_t i = 0; i < ROW_COUNT; i++)
        if (!rows[i].restarts)
            (void)snprintf(expected + strlen(expected), sizeof expected - strlen(expected), "%d ",
                rows[i].number);
    expected[strlen(expected) - 1] = '\n';
    cr_assert_not_null(strstr(text, expected), "the unit lacks%s", expected);
    free(text);
}

/* Rows in memory and in history.csv; see history.h. */
#include "history.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int history_open(struct history *history, const char *directory, const struct sgp_sink *sink,
    struct sgp_error *error)
{
    *history = (struct history){.sink = sink};
    char path[4096];
    if (snprintf(path, sizeof path, "%s/history.csv", directory) >= (int)sizeof path)
        return sgp_fail(error, -ENAMETOOLONG, "%s: the name is too long", directory);
    history->rows = calloc(VIEW_HISTORY_MAX, sizeof *history->rows);
    if (history->rows == NULL)
        return sgp_fail(error, -ENOMEM, "not enough memory for the history");
    history->file = fopen(path, "ae");
    if (history->file == NULL) {
        int code = -errno;
        history_close(history);
        return sgp_fail(error, code, "%s: cannot be written: %s", path, strerror(-code));
    }
    (void)fseek(history->file, 0, SEEK_END);
    if (ftell(history->file) == 0)
        (void)fprintf(history->file, "round,seconds,epoch,loss,test_loss,test_accuracy,"
                                     "disagreement,weight,bytes_sent,bytes_received\n");
    return 0;
}

void history_close(struct history *history)
{
    if (history->file != NULL)
        (void)fclose(history->file);
    free(history->rows);
    *history = (struct history){.file = NULL};
}

static void print_value(FILE *file, double value, int digits)
{
    if (isfinite(value))
        (void)fprintf(file, "%.*g,", digits, value);
    else
        (void)fputc(',', file);
}

static void write_row(struct history *history, const struct view_history_row *row)
{
    FILE *file = history->file;
    if (history->failed) /* a part of the last row may be there */
        (void)fputc('\n', file);
    (void)fprintf(file, "%" PRId64 ",%.3f,", row->round, row->seconds);
    print_value(file, row->epoch, 9);
    print_value(file, row->loss, 9);
    print_value(file, row->test_loss, 9);
    print_value(file, row->test_accuracy, 9);
    print_value(file, row->disagreement, 9);
    print_value(file, row->weight, 17);
    (void)fprintf(file, "%" PRIu64 ",%" PRIu64 "\n", row->bytes_sent, row->bytes_received);
    bool failed = fflush(file) != 0;
    if (failed && !history->failed)
        sgp_log(history->sink, SGP_LEVEL_WARNING, "event=history error=\"history.csv: %s\"",
            strerror(errno));
    history->failed = failed;
}

void history_add(struct history *history, const struct view_history_row *row)
{
    uint32_t place = (history->first + history->count) % VIEW_HISTORY_MAX;
    if (history->count == VIEW_HISTORY_MAX)
        history->first = (history->first + 1) % VIEW_HISTORY_MAX;
    else
        history->count++;
    history->rows[place] = *row;
    write_row(history, row);
}

const struct view_history_row *history_row(const struct history *history, uint32_t index)
{
    sgp_assert(index < history->count);
    return &history->rows[(history->first + index) % VIEW_HISTORY_MAX];
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Rows as scalars of TensorBoard; see scalars.h. */
#include "scalars.h"

#include "sgp/tensorboard.h"

#include <math.h>
#include <time.h>

#define SCALARS_MAX 16u /* columns of a row */

struct list {
    struct sgp_tensorboard_scalar items[SCALARS_MAX];
    size_t count;
};

static double now(void)
{
    struct timespec time;
    (void)clock_gettime(CLOCK_REALTIME, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

int scalars_open(struct scalars *scalars, const struct config *config, struct sgp_error *error)
{
    struct sgp_error cause = {0};
    *scalars = (struct scalars){0};
    if (config->tensorboard[0] == '\0')
        return 0;
    const int code = sgp_tensorboard_open(config->tensorboard, now(), &cause, &scalars->file);
    return code == 0 ? 0
                     : config_fail(config, CONFIG_ID_TENSORBOARD, error, code, "%s", cause.text);
}

static void add_real(struct list *list, const char *tag, double value)
{
    sgp_assert(list->count < SCALARS_MAX);
    if (isfinite(value))
        list->items[list->count++] = (struct sgp_tensorboard_scalar){tag, value};
}

#define add_exact add_real
#define add_seconds add_real
#define add_count(list, tag, value) add_real(list, tag, (double)(value))
#define add_round(list, tag, value) (void)0 /* it is the step */

int scalars_add(
    struct scalars *scalars, const struct view_history_row *row, struct sgp_error *error)
{
    struct list list = {.count = 0};
    if (!scalars->file)
        return 0;
#define ADD(member, kind) add_##kind(&list, #member, row->member);
    VIEW_HISTORY_COLUMNS(ADD)
#undef ADD
    struct sgp_error cause = {0};
    const int code =
        sgp_tensorboard_add(scalars->file, now(), row->round, list.items, list.count, &cause);
    const bool told = scalars->failed;
    scalars->failed = code < 0;
    if (code == 0 || told)
        return 0;
    *error = cause;
    return code;
}

void scalars_close(struct scalars *scalars)
{
    sgp_tensorboard_close(scalars->file);
    *scalars = (struct scalars){0};
}

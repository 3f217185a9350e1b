/* SPDX-License-Identifier: Apache-2.0 */
/* Which copies of the best model a node takes from its neighbours. */
#include "node/kept.h"
#include "node/kept_inside.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <inttypes.h>
#include <stdio.h>

#define BEST_LABEL 40

static struct prepared prepared = {.parameters = 2};
static struct daemon daemon_ = {.prepared = &prepared};
static struct kept kept = {.daemon = &daemon_,
    .has_finished = true,
    .rule = {.settings = {.measure = SGP_BEST_ACCURACY, .run = 7},
        .best = {.label = BEST_LABEL, .count = 1000, .sum = 800}}};

/* What the judge says of a copy with that score. */
static int judge(sgp_round label, uint64_t count, double sum)
{
    char text[128];
    (void)snprintf(
        text, sizeof text, "1 7 %" PRId64 " %" PRIu64 " %a 3f80000040000000", label, count, sum);
    struct sgp_bulletin bulletin = {.stamp = (uint64_t)label << 16, .text = text};
    return kept_judge(&kept, &bulletin);
}

Test(kept_copy, until_all_have_agreed_a_better_copy_is_taken)
{
    cr_assert(eq(int, judge(BEST_LABEL, 1000, 800), 1));
    cr_assert(eq(int, judge(BEST_LABEL + 1, 1000, 900), 1));
    cr_assert(eq(int, judge(BEST_LABEL + 1, 1000, 700), 0));
}

Test(kept_copy, once_all_have_agreed_only_the_copy_with_their_score_is_taken)
{
    kept.rule.settled = true;
    cr_assert(eq(int, judge(BEST_LABEL, 1000, 800), 1));
    cr_assert(eq(int, judge(BEST_LABEL + 1, 1000, 1000), 0), "nobody has measured it");
    cr_assert(eq(int, judge(BEST_LABEL, 1000, 900), 0), "of another sum");
    cr_assert(eq(int, judge(BEST_LABEL, 800, 800), 0), "of another count");
}

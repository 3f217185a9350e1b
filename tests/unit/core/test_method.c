/* SPDX-License-Identifier: Apache-2.0 */
/* The presets, and what follows from each. */
#include "sgp/method.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <string.h>

Test(method, the_table_is_found_by_index_and_by_name)
{
    static const char *const names[] = {
        "sgp", "osgp", "agp", "dpsgd", "adpsgd", "backup", "downpour", "cyclic"};
    for (uint32_t i = 0; i < 8; i++) {
        const struct sgp_method *method = sgp_method_at(i);
        cr_assert(method != NULL);
        cr_assert(eq(str, (char *)method->name, (char *)names[i]));
        cr_assert(eq(u32, method->number, i + 1), "it travels: it must never change");
        cr_assert(sgp_method_find(names[i]) == method);
    }
    cr_assert(eq(str, (char *)SGP_METHOD_NAMES(" "),
        (char *)"sgp osgp agp dpsgd adpsgd backup downpour cyclic"));
    cr_assert(sgp_method_at(8) == NULL);
    cr_assert(sgp_method_at(UINT32_MAX) == NULL);
    cr_assert(sgp_method_find("") == NULL);
    cr_assert(sgp_method_find("sg") == NULL);
    cr_assert(sgp_method_find("SGP") == NULL);
}

Test(method, a_best_model_is_kept_by_the_methods_that_messages_name)
{
    char names[64] = "";
    for (uint32_t i = 0; sgp_method_at(i) != NULL; i++) {
        if (sgp_method_lacks_best(sgp_method_at(i)) != NULL)
            continue;
        strcat(names, names[0] != '\0' ? " or " : "");
        strcat(names, sgp_method_at(i)->name);
    }
    cr_assert(eq(str, names, SGP_METHODS_WITH_BEST));
}

Test(method, nodes_wait_by_the_methods_that_messages_name)
{
    for (uint32_t i = 0; sgp_method_at(i) != NULL; i++) {
        const struct sgp_method *method = sgp_method_at(i);
        const char *found = strstr(" " SGP_METHODS_THAT_WAIT ",", method->name);
        const bool named =
            found != NULL && found[-1] == ' ' && strchr(" ,", found[strlen(method->name)]) != NULL;
        const bool owned = method->wants == SGP_WANTS_OWNER || method->wants == SGP_WANTS_TOKEN;
        cr_expect(named == (sgp_method_waits(method) && !owned), "%s", method->name);
    }
}

Test(method, what_follows_from_each)
{
    static const struct {
        const char *name;
        bool waits, overlaps, jumps, scales, buffers, chooses, in_order;
        double keep;
    } rows[] = {
        {"sgp", true, false, true, false, false, false, true, 1},
        {"osgp", true, true, true, false, true, false, false, 1},
        {"agp", false, false, false, true, true, false, false, 1},
        {"dpsgd", true, false, true, false, false, false, true, 1},
        {"adpsgd", false, false, false, true, true, true, false, 0.5},
        {"backup", true, false, true, false, false, false, true, 1},
        {"downpour", false, false, false, false, true, false, false, 1},
        {"cyclic", false, false, false, false, true, false, false, 1},
    };
    for (uint32_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct sgp_method *method = sgp_method_find(rows[i].name);
        cr_assert(method == sgp_method_at(i), "%s", rows[i].name);
        cr_expect(sgp_method_waits(method) == rows[i].waits, "%s", method->name);
        cr_expect(sgp_method_overlaps(method) == rows[i].overlaps, "%s", method->name);
        cr_expect(sgp_method_may_jump(method) == rows[i].jumps, "%s", method->name);
        cr_expect(sgp_method_may_scale_rate(method) == rows[i].scales, "%s", method->name);
        cr_expect(sgp_method_has_own_buffers(method) == rows[i].buffers, "%s", method->name);
        cr_expect(sgp_method_chooses(method) == rows[i].chooses, "%s", method->name);
        cr_expect(sgp_method_in_order(method) == rows[i].in_order, "%s", method->name);
        cr_expect(eq(dbl, sgp_method_keep(method), rows[i].keep), "%s", method->name);
    }
    cr_assert(sgp_method_at(sizeof rows / sizeof rows[0]) == NULL, "a row is missing here");
}

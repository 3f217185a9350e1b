/* SPDX-License-Identifier: Apache-2.0 */
/* Which payloads are nonsense, whatever their checksums say. */
#include "sgp/payload.h"

#include "sgp/status.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <math.h>

/* Of `count` equal values. */
static struct sgp_measure of(float value, uint64_t count, double unit)
{
    return (struct sgp_measure){fabsf(value), (double)value * (double)value * (double)count, unit};
}

Test(payload, values_beyond_all_proportion_to_ours_are_refused)
{
    static const struct {
        float largest;
        double unit, own;
        int code;
    } cases[] = {
        {0, 0.5, 0, 0},
        {0, NAN, 0, 0}, /* an empty share has no unit */
        {1, 1, 0, 0},
        {0x1p20F, 1, 0, 0}, /* before the first look, and below 1, ours counts for 1 */
        {0x1.000002p20F, 1, 0, SGP_E_OUTSIZED},
        {0x1.000002p20F, 1, 0.001, SGP_E_OUTSIZED},
        {0x1p19F, 0.5, 0, 0}, /* the estimate counts, not the mass */
        {0x1.000002p19F, 0.5, 1, SGP_E_OUTSIZED},
        {0x1p30F, 1, 0x1p10, 0},
        {0x1.000002p30F, 1, 0x1p10, SGP_E_OUTSIZED},
        {1, 0, 1, SGP_E_OUTSIZED}, /* parameters without weight are no model */
        {INFINITY, 1, 1, SGP_E_NOT_FINITE},
        {NAN, 1, 1, SGP_E_NOT_FINITE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sgp_lengths lengths = {.own_largest = cases[i].own, .own = cases[i].own};
        const struct sgp_measure came = of(cases[i].largest, 1, cases[i].unit);
        cr_assert(eq(int, sgp_payload_judge(&lengths, &came, 1), cases[i].code), "case %zu", i);
    }
}

/* 256 parameters. */
static int judge(struct sgp_lengths *lengths, float value)
{
    const struct sgp_measure came = of(value, 256, 1);
    return sgp_payload_judge(lengths, &came, 256);
}

static struct sgp_lengths learnt(float value)
{
    struct sgp_lengths lengths = {0};
    for (uint32_t i = 0; i < SGP_LENGTHS_LEARNT; i++)
        cr_assert(zero(int, judge(&lengths, value)));
    return lengths;
}

Test(payload, once_lengths_are_known_one_that_is_16_times_the_longest_is_refused)
{
    struct sgp_lengths lengths = learnt(2);
    cr_assert(eq(dbl, lengths.longest, 32));
    cr_assert(eq(int, judge(&lengths, 32.001F), SGP_E_OUTSIZED));
    cr_assert(eq(int, judge(&lengths, 1e6F), SGP_E_OUTSIZED));
    cr_assert(eq(dbl, lengths.longest, 32)); /* what is refused teaches nothing */
    cr_assert(zero(int, judge(&lengths, 32)));
    struct sgp_lengths part = learnt(2);
    const struct sgp_measure one = of(512, 1, 1); /* a part is held against the whole */
    cr_assert(zero(int, sgp_payload_judge(&part, &one, 256)));
    const struct sgp_measure more = of(600, 1, 1);
    cr_assert(eq(int, sgp_payload_judge(&part, &more, 256), SGP_E_OUTSIZED));
}

Test(payload, a_model_whose_values_are_1_is_in_proportion_whatever_came_before)
{
    struct sgp_lengths lengths = learnt(1e-20F);
    cr_assert(zero(int, judge(&lengths, 1)));
    cr_assert(eq(int, judge(&lengths, 1.001F), SGP_E_OUTSIZED));
}

/* A node of a model of 2 values trained alone to its minimum, 26 times as far from zero as the others. */
Test(payload, a_small_model_may_have_values_far_from_1)
{
    for (uint64_t count = 2; count <= 256; count *= 128) {
        struct sgp_lengths lengths = {0};
        const struct sgp_measure near = of(0.085F, count, 1), far = of(2.2F, count, 1),
                                 lie = of(12, count, 1);
        for (uint32_t i = 0; i < SGP_LENGTHS_LEARNT; i++)
            cr_assert(zero(int, sgp_payload_judge(&lengths, &near, count)));
        cr_assert(
            eq(int, sgp_payload_judge(&lengths, &far, count), count == 2 ? 0 : SGP_E_OUTSIZED));
        cr_assert(eq(int, sgp_payload_judge(&lengths, &lie, count), SGP_E_OUTSIZED));
    }
}

Test(payload, our_own_length_counts_at_once)
{
    struct sgp_lengths lengths = learnt(1);
    const struct sgp_measure own = of(10, 256, 0.5);
    sgp_lengths_look(&lengths, &own);
    cr_assert(eq(dbl, lengths.own, 320));
    cr_assert(zero(int, judge(&lengths, 320)));
    cr_assert(eq(int, judge(&lengths, 320.1F), SGP_E_OUTSIZED));
}

Test(payload, the_longest_of_late_doubles_in_32_and_halves_in_256)
{
    struct sgp_lengths lengths = learnt(1);
    for (int i = 0; i < 32; i++)
        cr_assert(zero(int, judge(&lengths, 15)));
    cr_assert(epsilon_eq(dbl, lengths.longest, 32, 1e-9));
    for (int i = 0; i < 256; i++)
        cr_assert(zero(int, judge(&lengths, 0.01F)));
    cr_assert(epsilon_eq(dbl, lengths.longest, 16, 1e-9));
}

Test(payload, a_model_that_grows_from_nothing_without_pause_is_never_refused)
{
    struct sgp_lengths lengths = {0};
    for (int round = 1; round < 100000; round++) /* a regression's, by steps of one size */
        cr_assert(zero(int, judge(&lengths, 10.0F * (float)round)), "round %d", round);
}

Test(payload, a_share_is_measured_at_the_weight_of_its_source)
{
    struct sgp_topology_node nodes[3] = {{.name = "a"}, {.name = "b"}, {.name = "c"}};
    struct sgp_topology *topology;
    cr_assert(zero(int, sgp_topology_create(nodes, 3, NULL, &topology)));
    cr_assert(eq(dbl, sgp_payload_unit(0.375, 0.25, topology), 1.5));
    cr_assert(eq(dbl, sgp_payload_unit(1.5, 0, topology), 1.5)); /* an estimate */
    cr_assert(eq(dbl, sgp_payload_unit(0, 0.25, topology), 3));  /* of an exact cycle */
    sgp_topology_destroy(topology);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What a liar says, in exact numbers, and what it knows for that. */
#include "sim/lies.h"

#include "assertions.h"

#include <math.h>

#define VALUES 2u

/* Three honest nodes gave (1, 0), (3, 0) and (2, 3) in round 4; node 3 has given nothing. A node has trained from (3, 4) to
 * (0, 0). In round 5 the second gives (6, 0). */
static struct sgp_sim_knowledge know(void)
{
    struct sgp_sim_knowledge knowledge;
    cr_assert(zero(int, sgp_sim_knowledge_init(&knowledge, 4, VALUES)));
    sgp_sim_know_model(&knowledge, 0, (float[]){0.5f, 0}, 0.5);
    sgp_sim_know_model(&knowledge, 1, (float[]){6, 0}, 2);
    sgp_sim_know_model(&knowledge, 2, (float[]){2, 3}, 1);
    cr_assert(sgp_sim_know_round(&knowledge, 4));
    sgp_sim_know_step(&knowledge, (float[]){3, 4}, (float[]){0, 0});
    sgp_sim_know_model(&knowledge, 1, (float[]){6, 0}, 1);
    cr_assert(sgp_sim_know_round(&knowledge, 5));
    return knowledge;
}

Test(sim_lies, a_liar_knows_the_models_that_were_given_and_where_they_go)
{
    struct sgp_sim_knowledge knowledge = know();
    cr_expect(epsilon_eq(dbl, knowledge.mean[0], 3, 1e-12));
    cr_expect(epsilon_eq(dbl, knowledge.mean[1], 1, 1e-12));
    cr_expect(epsilon_eq(dbl, knowledge.deviation[0], sqrt(14. / 3), 1e-12));
    cr_expect(epsilon_eq(dbl, knowledge.deviation[1], sqrt(2), 1e-12));
    cr_expect(epsilon_eq(dbl, knowledge.moved[0], 1, 1e-12));
    cr_expect(epsilon_eq(dbl, knowledge.moved[1], 0, 1e-12));
    cr_expect(epsilon_eq(dbl, knowledge.ascent[0], 0.6, 1e-12), "against the step, of length 1");
    cr_expect(epsilon_eq(dbl, knowledge.ascent[1], 0.8, 1e-12));
    cr_expect(epsilon_eq(dbl, sgp_sim_usual_distance(&knowledge, 0), (sqrt(10) + 5) / 2, 1e-12));
    sgp_sim_knowledge_finish(&knowledge);
}

Test(sim_lies, a_round_is_summed_up_once)
{
    struct sgp_sim_knowledge knowledge = know();
    sgp_sim_know_model(&knowledge, 0, (float[]){100, 100}, 1);
    cr_assert(sgp_sim_know_round(&knowledge, 5));
    cr_assert(sgp_sim_know_round(&knowledge, 3), "a late share");
    cr_expect(epsilon_eq(dbl, knowledge.mean[0], 3, 1e-12));
    cr_assert(sgp_sim_know_round(&knowledge, 6));
    cr_expect(epsilon_eq(dbl, knowledge.mean[0], 36, 1e-12));
    cr_expect(epsilon_eq(dbl, knowledge.moved[0], 33, 1e-12));
    cr_expect(
        epsilon_eq(dbl, knowledge.ascent[0], 0.6, 1e-12), "without steps the direction stays");
    sgp_sim_knowledge_finish(&knowledge);
}

Test(sim_lies, a_liar_that_has_heard_nothing_knows_nothing)
{
    struct sgp_sim_knowledge knowledge;
    cr_assert(zero(int, sgp_sim_knowledge_init(&knowledge, 4, VALUES)));
    cr_assert(not(sgp_sim_know_round(&knowledge, 1)));
    cr_assert(zero(dbl, sgp_sim_usual_distance(&knowledge, 0)));
    sgp_sim_knowledge_finish(&knowledge);
}

static void check(
    enum sgp_sim_lie lie, const struct sgp_sim_telling *telling, double first, double second)
{
    float values[VALUES] = {8, -2};
    sgp_sim_tell(lie, telling, values);
    cr_expect(epsilon_eq(flt, values[0], (float)first, 1e-5f), "lie %d says %g", (int)lie,
        (double)values[0]);
    if (telling->slice.count == 2)
        cr_expect(epsilon_eq(flt, values[1], (float)second, 1e-5f), "lie %d says %g", (int)lie,
            (double)values[1]);
}

/* The liar's values are 2 times its model, and its target is node 0, whose model is (1, 0). */
Test(sim_lies, each_lie_says_its_formula)
{
    struct sgp_sim_knowledge knowledge = know();
    struct sgp_sim_telling telling = {
        .knowledge = &knowledge, .target = 0, .reach = 10, .scale = 2, .slice = {0, VALUES}};
    check(SGP_SIM_LIE_FLIP, &telling, -8, 2);
    check(SGP_SIM_LIE_SCALE, &telling, 80, -20);
    check(SGP_SIM_LIE_ESTIMATE, &telling, 8, -2);
    check(SGP_SIM_LIE_WEIGHTLESS, &telling, 8, -2);
    check(SGP_SIM_LIE_ALIE, &telling, 2 * (3 - 1.5 * sqrt(14. / 3)), 2 * (1 - 1.5 * sqrt(2)));
    check(SGP_SIM_LIE_IPM, &telling, 2 * (3 - 10 * 1), 2 * 1);
    check(SGP_SIM_LIE_DRIFT, &telling, 2 * (1 + 9 * 0.6), 2 * (9 * 0.8));
    check(SGP_SIM_LIE_DISSENSUS, &telling, 2 * (1 + 10 * (1 - 3)), 2 * (10 * (0 - 1)));
    telling.slice = (struct sgp_slice){1, 1};
    check(SGP_SIM_LIE_DISSENSUS, &telling, 2 * (10 * (0 - 1)), 0);
    sgp_sim_knowledge_finish(&knowledge);
}

Test(sim_lies, noise_is_as_long_as_the_values)
{
    struct sgp_random random;
    sgp_random_init(&random, 1, 0);
    double squares = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        float values[VALUES] = {3, 4};
        const struct sgp_sim_telling telling = {
            .random = &random, .scale = 1, .slice = {0, VALUES}};
        sgp_sim_tell(SGP_SIM_LIE_NOISE, &telling, values);
        squares += (pow((double)values[0] - 3, 2) + pow((double)values[1] - 4, 2)) / 1000;
    }
    cr_assert(epsilon_eq(dbl, squares, 25, 2));
}

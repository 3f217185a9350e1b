/* SPDX-License-Identifier: Apache-2.0 */
/* From a configuration to a node ready to start: the figures, and every refusal word for word. Files
 * are written into a directory of the test's own. */
#include "prepare_place.h"

#include <errno.h>

TestSuite(prepare, .init = setup, .fini = teardown);

/* The learner and the number of rounds agree on every step: 20 rows, 2 epochs of 4 rows, then 12, then all 20. */
Test(prepare, a_batch_that_grows_has_fewer_rounds)
{
    struct sgp_error error = {0};
    struct config config;
    struct prepared p;
    struct sgp_training training;
    static const char rest[] = "[optimizer]\nschedule = growing-batch\nmilestones = 2 4\n"
                               "factor = 0.3333333333\n";
    const struct parts parts = {
        .train = "epochs = 5\nbatch = 4\nlocal_steps = 2\nstart = now", .rest = rest};
    cr_assert(eq(int, build(parts, &config, &p, &error), 0), "%s", error.text);
    cr_assert(eq(u64, p.data.train->rows, 20));
    cr_assert(eq(u64, p.steps_per_epoch, 5));
    cr_assert(eq(dbl, p.epochs, 5.0));
    cr_assert(eq(i64, p.rounds, 8), "ceil((2 * 5 + 2 * 2 + 1) / 2)");
    cr_assert(eq(int, prepared_learn(&p, &error), 0), "%s", error.text);
    cr_assert(eq(int, p.trainer->methods->train(p.trainer, 1, 15, 1, &training), 0));
    cr_assert(eq(dbl, training.epoch, 5.0));
    cr_assert(eq(u64, training.samples, 100));
    prepared_finish(&p);
    config_finish(&config);
    const struct parts rounds = {
        .train = "rounds = 7\nbatch = 4\nlocal_steps = 2\nstart = now", .rest = rest};
    cr_assert(eq(int, build(rounds, &config, &p, &error), 0), "%s", error.text);
    cr_assert(eq(dbl, p.epochs, 4.0), "14 steps");
    prepared_finish(&p);
    config_finish(&config);
}

/* Two nodes of 32 rows, where the rate is that of 16. */
Test(prepare, a_rate_is_scaled_to_the_batch_of_all)
{
    struct sgp_error error = {0};
    struct config config;
    struct prepared p;
    struct parts parts = {
        .rest = "[optimizer]\nlearning_rate = 0.1\nbase_batch = 16\nwarmup_epochs = 2\n"};
    cr_assert(eq(int, build(parts, &config, &p, &error), 0), "%s", error.text);
    const struct sgp_schedule *schedule = &p.settings.schedule;
    cr_assert(epsilon_eq(dbl, schedule->learning_rate, 0.4, 1e-15));
    cr_assert(epsilon_eq(dbl, sgp_schedule_rate(schedule, 0), 0.1, 1e-15), "that of base_batch");
    cr_assert(epsilon_eq(dbl, sgp_schedule_rate(schedule, 1), 0.25, 1e-15));
    cr_assert(epsilon_eq(dbl, sgp_schedule_rate(schedule, 2), 0.4, 1e-15));
    cr_assert(eq(dbl, p.fingerprint.learning_rate, schedule->learning_rate));
    prepared_finish(&p);
    config_finish(&config);
    parts.rest = "[optimizer]\nlearning_rate = 0.1\nbase_batch = 128\nwarmup_epochs = 2\n";
    cr_assert(eq(int, build(parts, &config, &p, &error), 0), "%s", error.text);
    cr_assert(epsilon_eq(dbl, p.settings.schedule.learning_rate, 0.05, 1e-15));
    cr_assert(eq(dbl, p.settings.schedule.warmup_fraction, 0.0), "it rises from 0");
    prepared_finish(&p);
    config_finish(&config);
    parts.rest = "[optimizer]\nlearning_rate = 1e6\nbase_batch = 1\n";
    expect_refusal(parts, SGP_E_CONFIG,
        "n.conf:18: [optimizer] base_batch: 2 nodes of 32 rows make the learning rate 6.4e+07; it "
        "is at most 1000000");
}

Test(prepare, a_schedule_that_lacks_a_key_is_refused)
{
    expect_refusal((struct parts){.rest = "[optimizer]\nschedule = cyclic\n"}, SGP_E_CONFIG,
        "n.conf:17: [optimizer] schedule: a cyclic schedule needs the length of its cycle; give "
        "period_epochs");
    expect_refusal((struct parts){.rest = "[optimizer]\nschedule = inverse-sqrt\n"}, SGP_E_CONFIG,
        "n.conf:17: [optimizer] schedule: an inverse-sqrt schedule falls from the end of its "
        "warm-up on; give warmup_epochs");
    expect_refusal(
        (struct parts){.rest = "[optimizer]\nschedule = growing-batch\nmilestones = 1.5\n"},
        SGP_E_CONFIG,
        "n.conf:17: [optimizer] schedule: milestone 1.5 is not a whole epoch; a batch grows "
        "between two epochs");
    expect_refusal((struct parts){.rest = "[optimizer]\nschedule = one-cycle\nperiod_epochs = 4\n"},
        SGP_E_CONFIG,
        "n.conf:17: [optimizer] schedule: a one-cycle schedule's period_epochs of 4 is above the 3 "
        "epochs of training");
}

Test(prepare, a_good_configuration)
{
    struct sgp_error error = {0};
    struct config config;
    struct prepared p;
    const struct parts parts = {.train = "epochs = 3\nbatch = 8\nlocal_steps = 2\nstart = now"};
    cr_assert(eq(int, build(parts, &config, &p, &error), 0), "%s", error.text);
    cr_assert(eq(u32, p.self, 1));
    /* 50 rows over 2 nodes, a fifth of 25 held out. */
    cr_assert(eq(u64, p.data.train->rows, 20));
    cr_assert(eq(u64, p.data.test->rows, 5));
    cr_assert(eq(u64, p.parameters, 2 * 4 + 4 + 4 * 2 + 2));
    cr_assert(eq(u64, p.steps_per_epoch, 3));
    cr_assert(eq(ptr, p.learner, NULL));
    cr_assert(eq(int, prepared_learn(&p, &error), 0), "%s", error.text);
    cr_assert(eq(u64, sgp_learner_steps_per_epoch(p.learner), 3));
    cr_assert(eq(i64, p.rounds, 5), "ceil(3 epochs * 3 steps / 2 steps a round)");
    cr_assert(eq(dbl, p.weight_least, 1.0));
    cr_assert(eq(u32, p.class_count, 2));
    cr_assert(eq(str, p.class_names[1], "odd"));
    cr_assert(eq(u64, p.fingerprint.topology, p.topology->digest));
    cr_assert(eq(u32, p.warning_count, 0), "%s", p.warnings[0]);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < p.term_count; i++)
        sum += p.terms[i].bytes;
    cr_assert(eq(u64, p.memory_bytes, sum));
    cr_assert(eq(u64, p.terms[0].bytes, p.parameters * 4));
    struct sgp_node_config node;
    prepared_node_config(&p, &node);
    cr_assert(eq(u32, node.self, 1));
    cr_assert(eq(i64, node.rounds, 5));
    cr_assert(eq(u32, node.start, 0));
    cr_assert(eq(u32, node.final_cycles, 2));
    prepared_finish(&p);
    config_finish(&config);
}

Test(prepare, rounds_in_place_of_epochs)
{
    struct sgp_error error = {0};
    struct config config;
    struct prepared p;
    cr_assert(
        eq(int, build((struct parts){.train = "rounds = 6\nbatch = 10"}, &config, &p, &error), 0),
        "%s", error.text);
    cr_assert(eq(i64, p.rounds, 6));
    cr_assert(eq(dbl, p.epochs, 3.0), "20 rows are two batches of ten");
    prepared_finish(&p);
    config_finish(&config);
}

Test(prepare, the_summary_names_what_runs)
{
    static const char *const parts[] = {"node       n1 (2 of 2), listens on 10.0.0.2:7311\n",
        "2 nodes, 1 phase, 1 round per cycle\n", "averages exactly in 1 rounds\n",
        "dense 4 relu, dense 2: 22 parameters\n",
        "data       25 of 50 rows (round-robin, part 2 of 2)\n",
        "           20 rows of 2 features to train on, 5 to test on\n",
        "3 rounds of 1 steps, 3 epochs of 1 steps\n", "  receive buffers ", "  sum "};
    struct sgp_error error = {0};
    struct config config;
    struct prepared p;
    cr_assert(eq(int, build((struct parts){0}, &config, &p, &error), 0), "%s", error.text);
    char *text = NULL;
    size_t bytes = 0;
    FILE *stream = open_memstream(&text, &bytes);
    prepared_print(stream, &p);
    (void)fclose(stream);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        cr_assert(strstr(text, parts[i]) != NULL, "%s lacks %s", text, parts[i]);
    free(text);
    prepared_finish(&p);
    config_finish(&config);
}

/* One share comes in every second phase. */
Test(prepare, a_guarded_node_has_a_buffer_for_each_estimate_that_it_compares)
{
    struct sgp_error error = {0};
    struct config config;
    struct prepared p;
    write_file("fleet.dot",
        "digraph a { n0 [address=\"10.0.0.1:7311\"]; n1 [address=\"10.0.0.2:7311\"];\n"
        "  n2 [address=\"10.0.0.3:7311\"]; n3 [address=\"10.0.0.4:7311\"]; n0 -> n1; }\n"
        "digraph b { n1 -> n0; } digraph c { n2 -> n1; } digraph d { n1 -> n2; }\n"
        "digraph e { n3 -> n1; } digraph f { n1 -> n3; }\n");
    for (uint32_t guard = 0; guard < 2; guard++) {
        struct parts parts = {.train = guard ? "epochs = 3\nguard = 1" : NULL};
        cr_assert(eq(int, build(parts, &config, &p, &error), 0), "%s", error.text);
        cr_expect(eq(u32, p.needs.receives, 2 + guard));
        prepared_finish(&p);
        config_finish(&config);
    }
}

/* A file of another's may have any bytes in a name, and a terminal obeys some of them. */
Test(prepare, the_summary_has_no_control_characters)
{
    struct sgp_error error = {0};
    struct config config;
    struct prepared p;
    cr_assert(eq(int, build((struct parts){0}, &config, &p, &error), 0), "%s", error.text);
    char name[] = "price\x1b[31m\n";
    const struct sgp_target_scale scale = {.name = name, .mean = 2, .deviation = 3};
    p.model.loss_settings.target_scales = &scale;
    p.model.loss_settings.target_scale_count = 1;
    prepared_warn(&p, "column %s", "a\rb");
    char *text = NULL;
    size_t bytes = 0;
    FILE *stream = open_memstream(&text, &bytes);
    prepared_print(stream, &p);
    (void)fclose(stream);
    cr_assert(strstr(text, "(price?[31m? - 2) / 3 is what the model learns\n") != NULL, "%s", text);
    cr_assert(strstr(text, "warning: column a?b\n") != NULL, "%s", text);
    free(text);
    p.model.loss_settings.target_scales = NULL;
    p.model.loss_settings.target_scale_count = 0;
    prepared_finish(&p);
    config_finish(&config);
}

/* bf16 runs on few processors: refused elsewhere, on its line. */
Test(prepare, bf16_is_told_or_refused)
{
    struct sgp_error error = {0}, why = {0};
    struct config config;
    struct prepared p;
    int code = build((struct parts){.train = "precision = bf16"}, &config, &p, &error);
    cr_assert(eq(int, code, sgp_precision_check(SGP_PRECISION_BF16, &why)));
    char message[2 * SGP_TEXT_BYTES], *text = NULL;
    (void)snprintf(message, sizeof message, "n.conf:6: [train] precision: %s", why.text);
    if (code < 0)
        cr_assert(strstr(error.text, message) != NULL, "%s, not %s", error.text, message);
    else
        prepared_finish(&p);
    config_finish(&config);
    cr_assert(eq(int, build((struct parts){0}, &config, &p, &error), 0));
    cr_assert(eq(int, (int)p.settings.precision, (int)SGP_PRECISION_FLOAT32));
    p.settings.precision = SGP_PRECISION_BF16;
    size_t bytes = 0;
    FILE *stream = open_memstream(&text, &bytes);
    prepared_print(stream, &p);
    (void)fclose(stream);
    cr_assert(
        strstr(text, "\nprecision  products of bf16 operands, float32 sums") != NULL, "%s", text);
    free(text);
    prepared_finish(&p);
    config_finish(&config);
}

Test(prepare, names_and_counts_that_the_topology_does_not_have)
{
    char message[256];
    (void)snprintf(message, sizeof message,
        "n.conf:2: [node] name: no node of %s/fleet.dot is called n7; its nodes are n0, n1",
        directory);
    expect_refusal((struct parts){.node = "name = n7"}, SGP_E_UNKNOWN_NODE, message);
    expect_refusal((struct parts){.train = "start = 3"}, SGP_E_CONFIG,
        "n.conf:6: [train] start: 3 nodes will never be there; the topology has 2");
}

Test(prepare, topologies_that_cannot_serve)
{
    write_file("fleet.dot", "digraph g { n0 -> n1 -> n0; }\n");
    expect_refusal((struct parts){0}, SGP_E_TOPOLOGY,
        "fleet.dot: no node has an address; write n1 [address=\"HOST:PORT\"] and so on for each");
    char path[128];
    (void)snprintf(path, sizeof path, "%s/fleet.dot", directory);
    (void)unlink(path);
    struct sgp_error error = {0};
    struct config config;
    struct prepared p;
    cr_assert(eq(int, build((struct parts){0}, &config, &p, &error), -ENOENT));
    cr_assert(eq(int, strncmp(error.text, path, strlen(path)), 0), "%s", error.text);
    config_finish(&config);
}

Test(prepare, an_unreachable_node_is_told_before_anything_starts)
{
    write_file("fleet.dot", "digraph g { n0 [address=\"10.0.0.1\"]; n1 [address=\"10.0.0.2\"];\n"
                            "  n2 [address=\"10.0.0.3\"]; n0 -> n1 -> n0; n0 -> n2; }\n");
    struct sgp_error error = {0};
    struct config config;
    struct prepared p;
    cr_assert(eq(int, build((struct parts){0}, &config, &p, &error), 0), "%s", error.text);
    cr_assert(not(eq(u32, p.warning_count, 0)));
    expect_warning(&p, "n2");
    prepared_finish(&p);
    config_finish(&config);
}

Test(prepare, addresses_that_nobody_reaches)
{
    struct sgp_error error = {0};
    struct config config;
    struct prepared p;
    const struct parts parts = {.network = "listen = 127.0.0.1:7000"};
    cr_assert(eq(int, build(parts, &config, &p, &error), 0), "%s", error.text);
    expect_warning(&p, "[network] listen = 127.0.0.1:7000 is a loopback address, but n0 is on "
                       "another host and cannot reach it");
    expect_warning(
        &p, "neighbours dial port 7311 by the topology, and this node listens on port 7000");
    prepared_finish(&p);
    config_finish(&config);
}

static uint32_t warnings_of(const char *train, const char *rest, const char *part)
{
    struct sgp_error error = {0};
    struct config config;
    struct prepared p;
    cr_assert(eq(int, build((struct parts){.train = train, .rest = rest}, &config, &p, &error), 0),
        "%s", error.text);
    uint32_t count = p.warning_count;
    if (part != NULL)
        expect_warning(&p, part);
    prepared_finish(&p);
    config_finish(&config);
    return count;
}

Test(prepare, every_word_of_algorithm_is_the_method_of_that_name)
{
    const struct sgp_method *method;
    for (uint32_t i = 0; (method = sgp_method_at(i)) != NULL; i++) {
        char train[64];
        struct config config;
        struct prepared p;
        struct sgp_error error = {0};
        (void)snprintf(train, sizeof train, "epochs = 3\nalgorithm = %s", method->name);
        write_file("fleet.dot", method->wants == SGP_WANTS_OWNER   ? owned
                                : method->wants == SGP_WANTS_TOKEN ? handed
                                                                   : ring);
        cr_assert(zero(int, build((struct parts){.train = train}, &config, &p, &error)), "%s",
            error.text);
        cr_assert(p.method == method, "%s is %s", method->name, p.method->name);
        prepared_finish(&p);
        config_finish(&config);
    }
}

/* Two nodes that average. The second half of a batch takes a gradient of its own. */
Test(prepare, noise_is_that_of_the_fleet)
{
    static const struct {
        const char *rest;
        double fraction;
        uint64_t vectors;
    } cases[] = {{"[optimizer]\nkind = adamw\n", 1, 0},
        {"[optimizer]\nkind = adamw\nnoise = node\n", 1, 0},
        {"[optimizer]\nkind = adamw\nnoise = fleet\n", 0.5, 1},
        {"[optimizer]\nkind = lars\nnoise = fleet\n", 0.5, 1},
        {"[optimizer]\nkind = nesterov\nnoise = fleet\n", 0.5, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct config config;
        struct prepared p;
        struct sgp_error error = {0};
        cr_assert(zero(int, build((struct parts){.rest = cases[i].rest}, &config, &p, &error)),
            "%s", error.text);
        uint64_t bytes = 0;
        for (uint32_t t = 0; t < p.term_count; t++)
            if (strcmp(p.terms[t].name, "deviation of the gradient") == 0)
                bytes = p.terms[t].bytes;
        cr_assert(eq(u64, bytes, cases[i].vectors * 4 * p.parameters), "%s", cases[i].rest);
        cr_assert(eq(dbl, p.settings.optimizer.noise_fraction, cases[i].fraction));
        prepared_finish(&p);
        config_finish(&config);
    }
}

Test(prepare, memory_and_settings_follow_the_rule)
{
    static const struct {
        const char *word;
        uint64_t vectors;
    } rules[] = {{"sgd", 0}, {"momentum", 1}, {"nesterov", 1}, {"adam", 2}, {"adamw", 2},
        {"rmsprop", 1}, {"lars", 1}, {"lamb", 2}};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        char rest[128];
        struct config config;
        struct prepared p;
        struct sgp_error error = {0};
        (void)snprintf(rest, sizeof rest,
            "[optimizer]\nkind = %s\ntrust = 0.5\nbeta2 = 0.98\nclip_norm = 3\n", rules[i].word);
        cr_assert(
            eq(int, build((struct parts){.rest = rest}, &config, &p, &error), 0), "%s", error.text);
        uint64_t bytes = UINT64_MAX;
        for (uint32_t t = 0; t < p.term_count; t++)
            if (strcmp(p.terms[t].name, "kept by the optimizer") == 0)
                bytes = p.terms[t].bytes;
        bytes = bytes == UINT64_MAX ? 0 : bytes; /* a sum has no terms of 0 */
        cr_assert(eq(u64, bytes, rules[i].vectors * 4 * p.parameters), "%s", rules[i].word);
        cr_assert(eq(dbl, p.settings.optimizer.trust, 0.5));
        cr_assert(eq(dbl, p.settings.optimizer.beta2, 0.98));
        cr_assert(eq(dbl, p.settings.optimizer.clip_norm, 3));
        cr_assert(eq(dbl, p.settings.optimizer.epsilon, 1e-8));
        prepared_finish(&p);
        config_finish(&config);
    }
}

/* Settings, and the part of a warning that says that one of them has no effect. */
static const struct {
    const char *train, *rest, *part; /* NULL: it has an effect, or is as by default */
} effects[] = {
    {"algorithm = sgp\noverlap = 3", "",
        "n.conf:7: [train] overlap has no effect: it is for algorithm osgp"},
    {"algorithm = osgp\noverlap = 3", "", NULL},
    {"overlap = 1", "", NULL},
    {"algorithm = agp\nbackup_neighbours = 1", "",
        "n.conf:7: [train] backup_neighbours has no effect: with this algorithm nobody is "
        "waited for"},
    {"algorithm = adpsgd\nbackup_neighbours = 1", "", "[train] backup_neighbours has no effect"},
    {"algorithm = dpsgd\nbackup_neighbours = 1", "", NULL},
    {"backup_neighbours = 0", "", NULL},
    {NULL, "[optimizer]\nkind = sgd\nmomentum = 0.5",
        "[optimizer] momentum has no effect: kind = sgd has none"},
    {NULL, "[optimizer]\nkind = momentum\nmomentum = 0.5", NULL},
    {NULL, "[optimizer]\nkind = sgd\nmomentum = 0.9", NULL},
    {NULL, "[optimizer]\nkind = adamw\nmomentum = 0.5",
        "n.conf:18: [optimizer] momentum has no effect: kind = adamw has none"},
    {NULL, "[optimizer]\nkind = adamw\nbeta1 = 0.8\nbeta2 = 0.9\nepsilon = 1e-6", NULL},
    {NULL, "[optimizer]\nbeta2 = 0.9", "[optimizer] beta2 has no effect: kind = nesterov has none"},
    {NULL, "[optimizer]\nkind = lamb\ntrust = 0.01",
        "[optimizer] trust has no effect: kind = lamb has none"},
    {NULL, "[optimizer]\nkind = lars\ntrust = 0.01\nmomentum = 0.5", NULL},
    {NULL, "[optimizer]\nkind = rmsprop\nalpha = 0.9\nepsilon = 1e-6", NULL},
    {NULL, "[optimizer]\nkind = adam\nalpha = 0.9",
        "[optimizer] alpha has no effect: kind = adam has none"},
    {NULL, "[optimizer]\nkind = lars\nepsilon = 1e-6",
        "[optimizer] epsilon has no effect: kind = lars has none"},
    {NULL, "[optimizer]\nkind = lamb\nnoise = fleet", NULL},
    {NULL, "[optimizer]\nnoise = fleet",
        "n.conf:17: [optimizer] noise has no effect: kind = nesterov has none"},
    {"batch = 1", "[optimizer]\nkind = adam\nnoise = fleet",
        "n.conf:18: [optimizer] noise has no effect: a batch of one row does not show its "
        "noise; give [train] batch 2 and more"},
    {NULL, "[optimizer]\nclip_norm = 1\nclip_value = 1", NULL},
    {NULL, "[optimizer]\nmilestones = 1 2",
        "n.conf:17: [optimizer] milestones has no effect: it is for schedule = step"},
    {NULL, "[optimizer]\nschedule = step\nmilestones = 1 2\nfactor = 0.5", NULL},
    {NULL, "[optimizer]\nfactor = 0.5",
        "[optimizer] factor has no effect: it is for schedule = step, growing-batch"},
    {NULL, "[optimizer]\nschedule = step\nmilestones = 1 2\ngrowths = 1",
        "[optimizer] growths has no effect: it is for schedule = growing-batch"},
    {NULL, "[optimizer]\nfinal_fraction = 0.5",
        "[optimizer] final_fraction has no effect: it is for schedule = linear, one-cycle"},
    {NULL, "[optimizer]\nlow_fraction = 0.5",
        "[optimizer] low_fraction has no effect: it is for schedule = cyclic, one-cycle"},
    {NULL, "[optimizer]\nperiod_epochs = 2",
        "[optimizer] period_epochs has no effect: it is for schedule = cyclic, one-cycle"},
    {NULL, "[optimizer]\nschedule = cyclic\nperiod_epochs = 2\nlow_fraction = 0.5", NULL},
    {"batch = 4", "[optimizer]\nschedule = growing-batch\nmilestones = 1\nfactor = 0.5", NULL},
    {NULL, "[optimizer]\nschedule = growing-batch\nmilestones = 1 2",
        "n.conf:17: [optimizer] schedule: the batch is to grow to 3200 rows, and this node has "
        "20; give fewer growths, so that the rate falls at the other milestones"},
};

Test(prepare, settings_without_effect)
{
    for (size_t i = 0; i < sizeof effects / sizeof effects[0]; i++)
        cr_assert(eq(u32, warnings_of(effects[i].train, effects[i].rest, effects[i].part),
                      effects[i].part != NULL),
            "case %zu", i);
}

/* ---- compression ---- */

static void expect_no_compression(const char *rest, const char *message)
{
    struct sgp_error error = {0};
    struct config config;
    struct prepared p;
    struct parts parts = {.rest = rest};
    if (message[0] == '@') /* of a file with an owner */
        parts.train = "epochs = 3\nalgorithm = backup";
    write_file("fleet.dot", message[0] == '@' ? owned : ring);
    cr_assert(eq(int, build(parts, &config, &p, &error), SGP_E_CONFIG), "%s", rest);
    cr_assert(strstr(error.text, message + (message[0] == '@')) != NULL, "%s", error.text);
    config_finish(&config);
}

Test(prepare, compression_that_does_not_suit)
{
    static const char *const words[] = {
        "int2", "sign", "qsgd:7", "terngrad", "top:0.03", "dgc:0.001", "adacomp"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        char rest[64], told[200];
        (void)snprintf(rest, sizeof rest, "[network]\ncompression = %s", words[i]);
        (void)snprintf(told, sizeof told,
            "[network] compression: %s is for files with owners, and ", words[i]);
        expect_no_compression(rest, told);
    }
    expect_no_compression("[network]\ncompression = sign\n[outer]\nkind = slowmo",
        "@[network] compression: sign does not go with the momentum of [outer]");
    expect_no_compression("[network]\ncompression = top:0.1\n[outer]\nkind = nesterov",
        "@[network] compression: top:0.1 does not go with the momentum of [outer]");
}

static bool has_term(const struct prepared *p, const char *name)
{
    for (uint32_t i = 0; i < p->term_count; i++)
        if (strcmp(p->terms[i].name, name) == 0)
            return p->terms[i].bytes == 4 * p->parameters;
    return false;
}

/* A worker keeps what its updates leave out: one vector. */
Test(prepare, coded_updates_take_a_vector)
{
    for (int coded = 0; coded < 2; coded++) {
        struct sgp_error error = {0};
        struct config config;
        struct prepared p;
        struct sgp_node_config node;
        const struct parts parts = {.train = "epochs = 3\nalgorithm = backup",
            .rest = coded ? "[network]\ncompression = top:0.1" : NULL};
        write_file("fleet.dot", owned);
        cr_assert(zero(int, build(parts, &config, &p, &error)), "%s", error.text);
        cr_assert(eq(int, has_term(&p, "left out of updates"), coded));
        cr_assert(eq(u32, p.warning_count, 0), "%s", p.warnings[0]);
        prepared_node_config(&p, &node);
        cr_assert(
            eq(int, (int)node.compressor, coded ? SGP_COMPRESSOR_SPARSE : SGP_COMPRESSOR_NONE));
        prepared_finish(&p);
        config_finish(&config);
    }
}

Test(prepare, a_relay_trains_without_the_file_of_its_scaling)
{
    struct parts parts = {.node = "name = n0",
        .train = "algorithm = backup",
        .model = "layers = dense 1\nloss = mse\ninputs = 3",
        .data = "scale = none-such.json",
        .network = "listen = 10.0.0.1:7311"};
    struct sgp_error error = {0};
    struct config config;
    struct prepared p;
    write_file("fleet.dot", owned);
    cr_assert(eq(int, build(parts, &config, &p, &error), 0), "%s", error.text);
    cr_assert(eq(u32, p.model.inputs, 3));
    cr_assert(eq(ptr, (void *)p.model.loss_settings.target_scales, NULL));
    expect_warning(&p, "n.conf:12: [data] scale: ");
    expect_warning(&p, "this relay needs it only to predict in the units of the label");
    prepared_finish(&p);
    config_finish(&config);
    char message[400];
    (void)snprintf(message, sizeof message,
        "n.conf:11: [data] scale: %s/none-such.json does not exist, and a relay has no rows to "
        "count the inputs of the model; copy the file of the others, or add a line `inputs = N`",
        directory);
    parts.model = "layers = dense 1\nloss = mse";
    expect_refusal(parts, -ENOENT, message);
}

Test(prepare, layers_that_cannot_be_read)
{
    struct sgp_error error = {0};
    struct config config;
    struct prepared p;
    int code = build((struct parts){.model = "layers = dense ten"}, &config, &p, &error);
    cr_assert(eq(int, code, SGP_E_CONFIG));
    cr_assert(strstr(error.text, "n.conf:8: [model] layers: ") != NULL, "%s", error.text);
    config_finish(&config);
}

Test(prepare, a_schedule_without_milestones)
{
    struct sgp_error error = {0};
    struct config config;
    struct prepared p;
    const struct parts parts = {.rest = "[optimizer]\nschedule = step\n"};
    cr_assert(eq(int, build(parts, &config, &p, &error), SGP_E_CONFIG));
    cr_assert(strstr(error.text,
                  "n.conf:17: [optimizer] schedule: a step schedule has 0 milestones; give 1 to 32 "
                  "epochs") != NULL,
        "%s", error.text);
    config_finish(&config);
}

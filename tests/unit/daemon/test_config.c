/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration: defaults, every kind of value, every refusal with its line, and the documents
 * that must name every key. */
#include "setup/config.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char least[] = "[node]\n"
                            "name = n0\n"
                            "[topology]\n"
                            "file = /etc/sgpd/fleet.dot\n"
                            "[model]\n"
                            "layers = dense 10\n"
                            "[data]\n"
                            "train = /data/rows.gz\n"
                            "[network]\n"
                            "listen = 0.0.0.0:7311\n";
#define LEAST_LINES 10

static int parse(const char *text, struct sgp_error *error, struct config *config)
{
    return config_parse("n.conf", text, strlen(text), error, config);
}

/* The least configuration, then `more` from line 11 on. */
static int parse_more(const char *more, struct sgp_error *error, struct config *config)
{
    char text[4096];
    (void)snprintf(text, sizeof text, "%s%s", least, more);
    return parse(text, error, config);
}

static void expect_refusal(const char *more, const char *message)
{
    struct sgp_error error = {0};
    struct config config;
    memset(&config, 0x5a, sizeof config);
    cr_assert(eq(int, parse_more(more, &error, &config), SGP_E_CONFIG));
    cr_assert(eq(str, error.text, (char *)message));
    cr_assert(eq(u8, *(unsigned char *)&config, 0x5a), "an output is untouched on failure");
}

Test(config, least_file_gets_every_default)
{
    struct sgp_error error = {0};
    struct config c;
    cr_assert(eq(int, parse(least, &error, &c), 0), "%s", error.text);
    cr_assert(eq(str, c.name, "n0"));
    cr_assert(eq(str, c.state_directory, "/var/lib/sgpd/n0"));
    cr_assert(eq(str, c.socket, "/run/sgpd/n0/control.sock"));
    cr_assert(eq(u32, c.start, SGP_START_ALL));
    cr_assert(eq(u64, c.epochs, 10));
    cr_assert(eq(u64, c.rounds, 0));
    cr_assert(eq(u64, c.batch, 32));
    cr_assert(eq(u64, c.local_steps, 1));
    cr_assert(eq(u64, c.final_cycles, 2));
    cr_assert(isnan(c.stop_at_accuracy));
    cr_assert(eq(int, (int)c.when_done, CONFIG_SERVE));
    cr_assert(eq(int, (int)c.loss, SGP_LOSS_CROSS_ENTROPY));
    cr_assert(eq(int, (int)c.shards.kind, SGP_SHARD_ROUND_ROBIN));
    cr_assert(eq(int, (int)c.missing, SGP_MISSING_ERROR));
    cr_assert(eq(int, (int)c.optimizer, SGP_OPTIMIZER_NESTEROV));
    cr_assert(eq(dbl, c.learning_rate, 0.05));
    cr_assert(eq(dbl, c.momentum, 0.9));
    cr_assert(eq(dbl, c.beta1, 0.9));
    cr_assert(eq(dbl, c.beta2, 0.999));
    cr_assert(eq(dbl, c.alpha, 0.99));
    cr_assert(eq(dbl, c.epsilon, 1e-8));
    cr_assert(eq(dbl, c.trust, 1e-3));
    cr_assert(eq(dbl, c.clip_norm, 0));
    cr_assert(eq(dbl, c.clip_value, 0));
    cr_assert(eq(int, (int)c.schedule, SGP_SCHEDULE_CONSTANT));
    cr_assert(eq(str, c.scale, "none"));
    cr_assert(eq(str, c.labels, ""));
    cr_assert(eq(int, (int)c.log_level, SGP_LEVEL_INFO));
    cr_assert(eq(str, c.events, ""));
    cr_assert(eq(str, c.trace, ""));
    cr_assert(eq(u32, c.lines[CONFIG_ID_NAME], 2));
    cr_assert(eq(u32, c.lines[CONFIG_ID_BATCH], 0));
    config_finish(&c);
}

Test(config, values_of_every_kind)
{
    struct sgp_error error = {0};
    struct config c;
    const char more[] = "[train]\n"
                        "rounds = 20k   ; a comment\n"
                        "batch = 1k # another\n"
                        "start = 3\n"
                        "stop_at_accuracy = 0.9\n"
                        "when_done = exit\n"
                        "[model]\n"
                        "loss = huber\n"
                        "huber_delta = 2.5\n"
                        "label_smoothing = 0.1\n"
                        "class_weights = 1, 2.5,\n"
                        "  3\n"
                        "[data]\n"
                        "shards = dirichlet:0.5\n"
                        "classes = a b\n"
                        "   c d   # the rest\n"
                        "   \"e f\"   ; and more\n"
                        "missing = mean\n"
                        "[optimizer]\n"
                        "kind = sgd\n"
                        "weight_decay = 1e-4\n"
                        "schedule = cosine\n"
                        "[control]\n"
                        "socket = /tmp/s\n"
                        "[log]\n"
                        "level = trace\n"
                        "events = /tmp/e\n"
                        "trace = /tmp/t\n";
    cr_assert(eq(int, parse_more(more, &error, &c), 0), "%s", error.text);
    cr_assert(eq(u64, c.rounds, 20000));
    cr_assert(eq(u64, c.epochs, 0), "rounds take the place of epochs");
    cr_assert(eq(u64, c.batch, 1000));
    cr_assert(eq(u32, c.start, 3));
    cr_assert(eq(dbl, c.stop_at_accuracy, 0.9));
    cr_assert(eq(int, (int)c.when_done, CONFIG_EXIT));
    cr_assert(eq(int, (int)c.loss, SGP_LOSS_HUBER));
    cr_assert(eq(dbl, c.huber_delta, 2.5));
    cr_assert(eq(dbl, c.label_smoothing, 0.1));
    cr_assert(eq(str, c.class_weights, "1, 2.5, 3"));
    cr_assert(eq(int, (int)c.shards.kind, SGP_SHARD_DIRICHLET));
    cr_assert(eq(dbl, c.shards.alpha, 0.5));
    cr_assert(eq(str, c.classes, "a b c d \"e f\""));
    cr_assert(eq(int, (int)c.missing, SGP_MISSING_MEAN));
    cr_assert(eq(int, (int)c.optimizer, SGP_OPTIMIZER_SGD));
    cr_assert(eq(dbl, c.weight_decay, 1e-4));
    cr_assert(eq(int, (int)c.schedule, SGP_SCHEDULE_COSINE));
    cr_assert(eq(str, c.socket, "/tmp/s"));
    cr_assert(eq(int, (int)c.log_level, SGP_LEVEL_TRACE));
    cr_assert(eq(str, c.trace, "/tmp/t"));
    cr_assert(eq(str, c.events, "/tmp/e"));
    config_finish(&c);
}

Test(config, every_rule_and_its_keys)
{
    static const char *const words[] = {
        "sgd", "momentum", "nesterov", "adam", "adamw", "rmsprop", "lars", "lamb"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        char more[256];
        struct sgp_error error = {0};
        struct config c;
        (void)snprintf(more, sizeof more,
            "[optimizer]\nkind = %s\nbeta1 = 0\nbeta2 = 0.95\nalpha = 0.5\nepsilon = 1e-6\n"
            "trust = 0.02\nclip_norm = 5\nclip_value = 1e30\n",
            words[i]);
        cr_assert(eq(int, parse_more(more, &error, &c), 0), "%s", error.text);
        cr_assert(eq(int, (int)c.optimizer, SGP_OPTIMIZER_SGD + (int)i));
        cr_assert(eq(dbl, c.beta1, 0));
        cr_assert(eq(dbl, c.beta2, 0.95));
        cr_assert(eq(dbl, c.alpha, 0.5));
        cr_assert(eq(dbl, c.epsilon, 1e-6));
        cr_assert(eq(dbl, c.trust, 0.02));
        cr_assert(eq(dbl, c.clip_norm, 5));
        cr_assert(eq(dbl, c.clip_value, 1e30));
        config_finish(&c);
    }
}

Test(config, keys_of_rules_out_of_range)
{
    expect_refusal("[optimizer]\nkind = adagrad\n",
        "n.conf:12: [optimizer] kind: \"adagrad\" does not exist; choose one of "
        "sgd|momentum|nesterov|adam|adamw|rmsprop|lars|lamb");
    static const struct {
        const char *key, *value, *range;
    } cases[] = {{"beta1", "1", "0 to 0.9999"}, {"beta2", "1", "0 to 0.999999"},
        {"alpha", "-0.1", "0 to 0.999999"}, {"epsilon", "0", "1e-30 to 1"},
        {"trust", "0", "1e-09 to 1000"}, {"clip_norm", "-1", "0 to 1e+30"},
        {"clip_value", "nan", "0 to 1e+30"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char more[96], message[200];
        (void)snprintf(more, sizeof more, "[optimizer]\n%s = %s\n", cases[i].key, cases[i].value);
        (void)snprintf(message, sizeof message,
            "n.conf:12: [optimizer] %s: \"%s\" is not a number from %s; write it like 0.05 or 5e-2",
            cases[i].key, cases[i].value, cases[i].range);
        expect_refusal(more, message);
    }
}

Test(config, start_now_and_carriage_returns)
{
    struct sgp_error error = {0};
    struct config c;
    cr_assert(eq(int, parse_more("[train]\r\nstart = now\r\n", &error, &c), 0), "%s", error.text);
    cr_assert(eq(u32, c.start, 0));
    config_finish(&c);
}

Test(config, relative_paths_are_taken_from_the_file)
{
    struct sgp_error error = {0};
    struct config c;
    const char text[] = "[node]\nname=a\n[topology]\nfile=f.dot\n[model]\nlayers=dense 2\n"
                        "[data]\ntrain=x.csv\nscale=none\n[network]\nlisten=[::1]:9\n";
    cr_assert(eq(int, config_parse("/etc/sgpd/a.conf", text, strlen(text), &error, &c), 0), "%s",
        error.text);
    cr_assert(eq(str, c.topology, "/etc/sgpd/f.dot"));
    cr_assert(eq(str, c.train, "/etc/sgpd/x.csv"));
    cr_assert(eq(str, c.scale, "none"));
    config_finish(&c);
}

Test(config, a_path_stands_without_quotes)
{
    expect_refusal("[data]\ntest = \"/srv/x.csv\"\n",
        "n.conf:12: [data] test: the path stands in quotes; write it without: /srv/x.csv");
    expect_refusal("[data]\ntest = 'with a blank.csv'\n",
        "n.conf:12: [data] test: the path stands in quotes; write it without: with a blank.csv");
    struct sgp_error error = {0};
    struct config c;
    cr_assert(eq(int, parse_more("[data]\ntest = /srv/a \"b\".csv\n", &error, &c), 0));
    cr_assert(eq(str, c.test, "/srv/a \"b\".csv"));
    config_finish(&c);
}

Test(config, a_later_fault_is_told_with_its_line)
{
    struct sgp_error error = {0};
    struct config c;
    cr_assert(eq(int, parse(least, &error, &c), 0));
    cr_assert(eq(
        int, config_fail(&c, CONFIG_ID_LAYERS, &error, SGP_E_DATA, "%d is wrong", 3), SGP_E_DATA));
    cr_assert(eq(str, error.text, "n.conf:6: [model] layers: 3 is wrong"));
    struct sgp_error unset = {0};
    (void)config_fail(&c, CONFIG_ID_BATCH, &unset, SGP_E_DATA, "too small");
    cr_assert(eq(str, unset.text, "n.conf: [train] batch: too small"));
    config_finish(&c);
}

Test(config, unknown_keys_and_sections)
{
    expect_refusal("[train]\nepohcs = 3\n",
        "n.conf:12: [train] epohcs: unknown key; did you mean [train] epochs?");
    expect_refusal("[model]\nepochs = 3\n",
        "n.conf:12: [model] epochs: unknown key; did you mean [train] epochs?");
    expect_refusal("[train]\nfrobnicate = 3\n",
        "n.conf:12: [train] frobnicate: unknown key; see sgpd.conf(5) for those that exist");
    expect_refusal(
        "[trian]\nepochs = 3\n", "n.conf:12: [trian]: unknown section; did you mean [train]?");
    expect_refusal("[weather]\nrain = 1\n",
        "n.conf:12: [weather]: unknown section; there are [node] [topology] [administrators] "
        "[train] [model] [data] [optimizer] [privacy] [outer] [network] [control] [log]");
    expect_refusal("[tls]\ncertificate = /x\n", "n.conf:12: [tls] certificate: there is no such "
                                                "section; write tls=offer into the topology file, "
                                                "and [node] key here");
}

Test(config, a_key_before_any_section)
{
    struct sgp_error error = {0};
    struct config c;
    cr_assert(eq(int, parse("colour = red\n", &error, &c), SGP_E_CONFIG));
    cr_assert(
        eq(str, error.text, "n.conf:1: colour: a key before the first section; begin with [node]"));
}

Test(config, repeated_and_conflicting_keys)
{
    expect_refusal("[node]\nname = n1\n",
        "n.conf:12: [node] name: given again; it stands in line 2 already, remove one");
    expect_refusal("[train]\nepochs = 3\nrounds = 9\n",
        "n.conf:13: [train] rounds: epochs is given as well, in line 12; keep one of the two");
    expect_refusal("[data]\ntest_labels = x\n",
        "n.conf:12: [data] test_labels: given without test; add a line `test = FILE`");
}

Test(config, bad_numbers)
{
    expect_refusal("[train]\nbatch = many\n",
        "n.conf:12: [train] batch: \"many\" is not a whole number from 1 to 65536; write digits, "
        "with k, M or G for thousands, millions or billions");
    static const char *const batches[] = {
        "", "0", "65537", "-1", "1.5", "1kk", "32 32", "99999999999999999999", "100G", "0x10", "k"};
    for (size_t i = 0; i < sizeof batches / sizeof batches[0]; i++) {
        char more[64];
        struct sgp_error error = {0};
        struct config c;
        (void)snprintf(more, sizeof more, "[train]\nbatch = %s\n", batches[i]);
        cr_assert(eq(int, parse_more(more, &error, &c), SGP_E_CONFIG), "%s", batches[i]);
    }
    expect_refusal("[optimizer]\nschedule = cosin\n",
        "n.conf:12: [optimizer] schedule: \"cosin\" does not exist; choose one of "
        "constant|step|cosine|inverse-sqrt|linear|cyclic|one-cycle|growing-batch");
    expect_refusal("[optimizer]\nlow_fraction = 1.5\n",
        "n.conf:12: [optimizer] low_fraction: \"1.5\" is not a number from 0 to 1; write it like "
        "0.05 or 5e-2");
    expect_refusal("[optimizer]\nfinal_fraction = -1\n",
        "n.conf:12: [optimizer] final_fraction: \"-1\" is not a number from 0 to 1; write it like "
        "0.05 or 5e-2");
    expect_refusal("[optimizer]\nperiod_epochs = 0\n",
        "n.conf:12: [optimizer] period_epochs: \"0\" is not a number from 1e-06 to 1e+06; write it "
        "like 0.05 or 5e-2");
    expect_refusal("[optimizer]\ngrowths = 33\n",
        "n.conf:12: [optimizer] growths: \"33\" is not a whole number from 1 to 32; write digits, "
        "with k, M or G for thousands, millions or billions");
    expect_refusal("[optimizer]\nbase_batch = 0\n",
        "n.conf:12: [optimizer] base_batch: \"0\" is not a whole number from 1 to 1000000000; "
        "write digits, with k, M or G for thousands, millions or billions");
    expect_refusal("[optimizer]\nlearning_rate = fast\n",
        "n.conf:12: [optimizer] learning_rate: \"fast\" is not a number from 1e-12 to 1e+06; write "
        "it like 0.05 or 5e-2");
    static const char *const rates[] = {"", "nan", "inf", "-1", "0x1p3", "1e", "0", "1e400"};
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        char more[64];
        struct sgp_error error = {0};
        struct config c;
        (void)snprintf(more, sizeof more, "[optimizer]\nlearning_rate = %s\n", rates[i]);
        cr_assert(eq(int, parse_more(more, &error, &c), SGP_E_CONFIG), "%s", rates[i]);
    }
}

Test(config, bad_words)
{
    expect_refusal("[train]\nalgorithm = allreduce\n",
        "n.conf:12: [train] algorithm: \"allreduce\" does not exist; choose one of "
        "sgp|osgp|agp|dpsgd|adpsgd|backup|downpour|cyclic");
    expect_refusal("[network]\ncompression = int7\n",
        "n.conf:12: [network] compression: \"int7\" does not exist; choose one of "
        "none|fp16|bf16|int8|int6|int4|int4:64|int2|sign|qsgd:S|terngrad|top:F|dgc:F|adacomp");
    expect_refusal("[network]\ncopies = int7\n",
        "n.conf:12: [network] copies: \"int7\" does not exist; choose one of "
        "none|fp16|bf16|int8|int6|int4|int4:64|top:F");
    expect_refusal("[network]\ncompression = qsgd:3\n",
        "n.conf:12: [network] compression: qsgd:S has S = 1, 7, 31 or 127 levels, those of 2, 4, 6 "
        "and 8 bits, not \"3\"");
    expect_refusal("[network]\ncompression = top:0\n",
        "n.conf:12: [network] compression: F of top:F and dgc:F is the part that travels, above 0 "
        "and at most 1 as in top:0.03, not \"0\"");
    expect_refusal("[train]\nwhen_done = leave\n",
        "n.conf:12: [train] when_done: \"leave\" does not exist; choose one of serve|exit");
    expect_refusal("[train]\nstart = later\n",
        "n.conf:12: [train] start: \"later\" is not a start; write all, now, or a number of nodes "
        "from 1 to 65536");
    expect_refusal("[train]\nguard = on\n",
        "n.conf:12: [train] guard: \"on\" is neither off nor a number from 0.1 to 10");
    expect_refusal("[train]\nguard = 0\n",
        "n.conf:12: [train] guard: \"0\" is neither off nor a number from 0.1 to 10");
}

Test(config, a_guard_is_off_or_a_number)
{
    static const struct {
        const char *text;
        double guard;
    } cases[] = {{"", 0}, {"[train]\nguard = off\n", 0}, {"[train]\nguard = 1\n", 1},
        {"[train]\nguard = 0.5\n", 0.5}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sgp_error error = {0};
        struct config c;
        cr_assert(zero(int, parse_more(cases[i].text, &error, &c)), "%s", error.text);
        cr_assert(epsilon_eq(dbl, c.guard, cases[i].guard, 0));
        cr_assert(eq(int, c.changed[CONFIG_ID_GUARD], cases[i].guard > 0));
        config_finish(&c);
    }
}

Test(config, shards_that_do_not_exist)
{
    struct sgp_error error = {0};
    struct config c;
    cr_assert(eq(int, parse_more("[data]\nshards = dirichlet:0\n", &error, &c), SGP_E_CONFIG));
    cr_assert(eq(int, strncmp(error.text, "n.conf:12: [data] shards: ", 26), 0), "%s", error.text);
}

Test(config, bad_names_and_addresses)
{
    struct sgp_error error = {0};
    struct config c;
    cr_assert(eq(int, parse("[node]\nname = a b\n", &error, &c), SGP_E_CONFIG));
    cr_assert(eq(str, error.text,
        "n.conf:2: [node] name: \"a b\" is not a name; use letters, digits and . _ -, at most 63 "
        "of "
        "them"));
    error = (struct sgp_error){0};
    cr_assert(eq(int, parse("[network]\nlisten = 10.0.0.1:0\n", &error, &c), SGP_E_CONFIG));
    cr_assert(eq(str, error.text,
        "n.conf:2: [network] listen: address \"10.0.0.1:0\" has a bad port; a port is a number "
        "from "
        "1 to 65535"));
}

Test(config, missing_keys)
{
    struct sgp_error error = {0};
    struct config c;
    cr_assert(eq(int, parse("", &error, &c), SGP_E_CONFIG));
    cr_assert(eq(str, error.text,
        "n.conf: [node] name is missing; add a line `name = ...` to section [node]: name of this "
        "node, as in the topology file"));
    error = (struct sgp_error){0};
    cr_assert(eq(int, parse("[node]\nname = a\n[topology]\nfile =\n", &error, &c), SGP_E_CONFIG));
    cr_assert(eq(int, strncmp(error.text, "n.conf: [topology] file is missing;", 35), 0), "%s",
        error.text);
}

Test(config, text_that_is_no_configuration)
{
    expect_refusal("[train]\nepochs 3\nfrobnicate = 1\n",
        "n.conf:12: not understood; a line is `[section]`, `key = value`, or a comment that begins "
        "with # or ;");
    expect_refusal("[train\n",
        "n.conf:11: not understood; a line is `[section]`, `key = value`, or a comment that begins "
        "with # or ;");
    expect_refusal("[train]\nepochs = 3\n  batch = 3\n",
        "n.conf:13: an indented line continues the value above, and [train] epochs has only one "
        "line; begin a key at the start of its line");
}

Test(config, hostile_bytes)
{
    struct sgp_error error = {0};
    struct config c;
    cr_assert(
        eq(int, config_parse("n.conf", "[node]\nna\0me = x\n", 17, &error, &c), SGP_E_CONFIG));
    cr_assert(eq(str, error.text, "n.conf:2: a zero byte; a configuration is plain text"));
    char line[600];
    memset(line, 'x', sizeof line);
    memcpy(line, "[node]\n", 7);
    error = (struct sgp_error){0};
    cr_assert(eq(int, config_parse("n.conf", line, sizeof line, &error, &c), SGP_E_CONFIG));
    cr_assert(eq(int, strncmp(error.text, "n.conf:2: the line is longer than ", 34), 0), "%s",
        error.text);
    error = (struct sgp_error){0};
    cr_assert(eq(int, parse("[no\033de]\nx = 1\n", &error, &c), SGP_E_CONFIG));
    cr_assert(eq(ptr, strchr(error.text, '\033'), NULL), "no control character reaches a terminal");
}

Test(config, a_list_that_never_ends)
{
    size_t lines = 200;
    char *text = malloc(sizeof least + 32 + lines * 120);
    size_t used = (size_t)sprintf(text, "%s[data]\nclasses = a\n", least);
    for (size_t i = 0; i < lines; i++)
        used += (size_t)sprintf(text + used, " %0100d\n", 7);
    struct sgp_error error = {0};
    struct config c;
    cr_assert(eq(int, config_parse("n.conf", text, used, &error, &c), SGP_E_CONFIG));
    cr_assert(eq(str, error.text,
        "n.conf:12: [data] classes: the value is longer than 8191 bytes; make it shorter"));
    free(text);
}

Test(config, files)
{
    struct sgp_error error = {0};
    struct config c;
    cr_assert(eq(int, config_load("/nonexistent/n.conf", &error, &c), -ENOENT));
    cr_assert(eq(str, error.text,
        "/nonexistent/n.conf: there is no such file; write one (sgpd.conf(5) tells how), or name "
        "another with -c"));
    error = (struct sgp_error){0};
    cr_assert(eq(int, config_load("/", &error, &c), -EIO), "%s", error.text);
    char path[] = "/tmp/test_config.XXXXXX";
    int descriptor = mkstemp(path);
    cr_assert(eq(int, ftruncate(descriptor, CONFIG_BYTES_MAX + 1), 0));
    error = (struct sgp_error){0};
    cr_assert(eq(int, config_load(path, &error, &c), SGP_E_CONFIG));
    cr_assert(ne(ptr, strstr(error.text, "larger than 262144 bytes"), NULL));
    cr_assert(eq(int, ftruncate(descriptor, 0), 0));
    cr_assert(eq(long, (long)write(descriptor, least, sizeof least - 1), (long)sizeof least - 1));
    error = (struct sgp_error){0};
    cr_assert(eq(int, config_load(path, &error, &c), 0), "%s", error.text);
    cr_assert(eq(str, c.name, "n0"));
    config_finish(&c);
    (void)close(descriptor);
    (void)unlink(path);
}

/* Documents. The example has its keys checked by being parsed. */

static char *read_document(const char *name)
{
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/%s", SGP_SOURCE_ROOT, name);
    FILE *file = fopen(path, "r");
    cr_assert(ne(ptr, file, NULL), "%s is missing", path);
    char *text = calloc(1, 1 << 20);
    size_t bytes = fread(text, 1, (1 << 20) - 1, file);
    cr_assert(gt(sz, bytes, 0));
    (void)fclose(file);
    return text;
}

/* The heading of a section, as in "\n## [train]\n". */
static const char *find_section(const char *text, const char *mark, const char *section)
{
    char heading[96];
    (void)snprintf(heading, sizeof heading, "\n%s[%s]\n", mark, section);
    return strstr(text, heading);
}

/* A key stands between `before` and `after`, and the last heading before it is its section's. */
static void expect_every_key(
    const char *name, const char *mark, const char *before, const char *after)
{
    char *text = read_document(name);
    for (unsigned i = 0; i < CONFIG_KEY_COUNT; i++) {
        const struct config_key *row = &config_keys[i];
        char key[96];
        (void)snprintf(key, sizeof key, "%s%s%s", before, row->key, after);
        const char *begin = find_section(text, mark, row->section);
        cr_assert(begin != NULL, "%s has no section [%s]", name, row->section);
        const char *found = strstr(begin, key);
        cr_assert(found != NULL, "%s does not explain [%s] %s", name, row->section, row->key);
        for (unsigned k = 0; k < CONFIG_KEY_COUNT; k++) {
            const char *next = find_section(begin + 1, mark, config_keys[k].section);
            cr_assert(next == NULL || next > found, "%s does not explain %s under [%s]", name,
                row->key, row->section);
        }
    }
    free(text);
}

static char *shared_of(const char *text)
{
    char path[] = "/tmp/sgpd-shared-XXXXXX", *shared = NULL;
    struct sgp_error error = {0};
    int file = mkstemp(path);
    cr_assert(eq(int, (int)write(file, text, strlen(text)), (int)strlen(text)));
    (void)close(file);
    cr_assert(zero(int, config_shared(path, &error, &shared)), "%s", error.text);
    (void)unlink(path);
    return shared;
}

/* Nothing that is of one machine leaves it: no name, path, address, thread or log. */
Test(config, a_joiner_gets_what_all_nodes_share)
{
    char *shared = shared_of("; ours\n[node]\nname = n0\nkey = /root/key\nstate_directory = /s\n"
                             "[topology]\nfile = /t\n[train]\nbatch = 10 ; rows\nthreads = 3\n"
                             "start = now\n[model]\nlayers = dense 4 relu,\n  dense 2\n"
                             "[data]\ntrain = /rows\nlabel = l\nscale = /scale.json\n"
                             "[network]\nlisten = 0.0.0.0:1\ncompression = fp16\n"
                             "[control]\nsocket = /c\n[log]\nevents = /e\nlevel = debug\n");
    cr_assert(eq(str, shared,
        (char *)"[train]\nbatch = 10\n[model]\nlayers = dense 4 relu,\n    dense 2\n"
                "[data]\nlabel = l\n; scale = /scale.json\n[network]\ncompression = fp16\n"));
    free(shared);
    shared = shared_of("[data]\nscale = fleet ; by all\n");
    cr_assert_not_null(strstr(shared, "\nscale = fleet"));
    cr_assert(zero(int, config_shared_check(shared, NULL)));
    free(shared);
    struct sgp_error error = {0};
    cr_assert(eq(int, config_shared("/nowhere/n.conf", &error, &shared), -EIO));
    cr_assert_not_null(strstr(error.text, "/nowhere/n.conf: cannot be read now"));
}

static int check_shared(const char *section, const char *key, const char *value)
{
    char text[512];
    struct sgp_error error = {0};
    (void)snprintf(text, sizeof text, "[%s]\n%s = %s\n", section, key, value);
    const int code = config_shared_check(text, &error);
    (void)snprintf(text, sizeof text, "[%s] %s is ", section, key);
    cr_assert(code == 0 || strstr(error.text, text) == error.text, "%s", error.text);
    return code;
}

/* A lying inviter: the keys of one machine are written here a second time, one by one. */
Test(config, a_joiner_takes_no_key_of_its_own_machine)
{
    static const char *const own[][2] = {{"node", "name"}, {"node", "state_directory"},
        {"node", "key"}, {"topology", "file"}, {"train", "start"}, {"train", "threads"},
        {"train", "checkpoint_seconds"}, {"train", "when_done"}, {"data", "train"},
        {"data", "labels"}, {"data", "test"}, {"data", "test_labels"}, {"network", "listen"},
        {"control", "socket"}, {"control", "attach"}, {"log", "level"}, {"log", "events"},
        {"log", "trace"}, {"log", "tensorboard"}};
    const size_t count = sizeof own / sizeof *own;
    size_t refused = 0;
    for (size_t i = 0; i < count; i++)
        cr_assert(eq(int, check_shared(own[i][0], own[i][1], "/x"), SGP_E_CONFIG));
    for (unsigned i = 0; i < CONFIG_KEY_COUNT; i++)
        refused += check_shared(config_keys[i].section, config_keys[i].key, "none") < 0;
    cr_assert(eq(sz, refused, count));
    for (unsigned i = 0; i < CONFIG_KEY_COUNT; i++) /* every path, but scale, is of one machine */
        cr_assert(config_keys[i].type != CONFIG_PATH || i == CONFIG_ID_SCALE ||
                  check_shared(config_keys[i].section, config_keys[i].key, "none") < 0);
}

Test(config, a_joiner_takes_no_path_and_no_part_of_a_line)
{
    static const char *const good[] = {"", "[data]\nscale = none\n",
        "[data]\nscale = fleet ; all\n", "[train]\nbatch = 10\n[data]\n; scale = /etc/x\n"};
    static const char *const hostile[] = {"[data]\nscale = /etc/x\n", "[data]\nscale = none /x\n",
        "[data]\nscale = fleet\n    /etc/x\n", "[data]\nscale =\n", "[train]\nbatch = 1",
        "listen = 0.0.0.0:1\n", "    more\n", "; c\n[train]\n", "\n[train]\n",
        "\xef\xbb\xbf[train]\nbatch = 1\n", "[train\nbatch = 1\n", "[]\nlisten = 1:1\n",
        "[train]\nbatch = 1\n[data]\ntrain = /etc/shadow\n", "[ log ]\nevents\n",
        "[log]\nevents: /x\n", "[log]\n  events = /x\n"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        cr_assert(zero(int, config_shared_check(good[i], NULL)), "%s", good[i]);
    for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++)
        cr_assert(eq(int, config_shared_check(hostile[i], NULL), SGP_E_CONFIG), "%s", hostile[i]);
}

Test(config, every_document_names_every_key)
{
    expect_every_key("docs/CONFIGURATION.md", "## ", "\n| `", "` |");
    expect_every_key("docs/man/sgpd.conf.5", ".SH ", "\n.BR ", " ");
}

/* Every line of the example becomes real when its "#" is taken away, and then it parses. */
Test(config, the_example_is_right)
{
    char *text = read_document("daemon/sgpd.conf.example");
    char *plain = calloc(1, strlen(text) + 1);
    size_t used = 0;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        bool key = line[0] == '#' && line[1] != ' ' && line[1] != '\0';
        if (strncmp(line, "#rounds", 7) != 0)
            used += (size_t)sprintf(plain + used, "%s\n", line + key);
    }
    struct sgp_error error = {0};
    struct config c;
    cr_assert(eq(int, parse(plain, &error, &c), 0), "%s", error.text);
    for (unsigned i = 0; i < CONFIG_KEY_COUNT; i++)
        if (i != CONFIG_ID_ROUNDS)
            cr_assert(ne(u32, c.lines[i], 0), "%s is not in the example", config_keys[i].key);
    config_finish(&c);
    free(plain);
    free(text);
}

Test(config, the_listing_has_every_key)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *stream = open_memstream(&text, &bytes);
    config_print_keys(stream);
    (void)fclose(stream);
    for (unsigned i = 0; i < CONFIG_KEY_COUNT; i++) {
        char line[96];
        (void)snprintf(line, sizeof line, "\n  %s = ", config_keys[i].key);
        cr_assert(ne(ptr, strstr(text, line), NULL), "%s", config_keys[i].key);
    }
    free(text);
}

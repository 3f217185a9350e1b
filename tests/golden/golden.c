/* SPDX-License-Identifier: Apache-2.0 */
/* Golden traces: one small fleet for each rule of a node's life, and what its drivers told of it.
 *
 *   golden FOLDER [--write]
 *
 * runs every story and compares its trace with FOLDER/NAME.trace, byte for byte; with --write it writes
 * the files instead. Speaks TAP. A line is the driver's own, with the time in seconds; beats, and
 * steps that did nothing else, are left out. */
#include "sgp/generate.h"
#include "sgp/method.h"
#include "sgp/quadratic.h"
#include "sgp/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRACE_BYTES 262144u
#define SECONDS(s) ((sgp_time)((s) * (double)SGP_SECOND))

struct story {
    const char *name;
    const char *rule; /* the first line of its file */
    const char *family;
    const char *method; /* NULL: sgp */
    uint32_t nodes;
    sgp_round rounds;
    uint32_t final_cycles;
    double bandwidth;
    double compute;     /* seconds of a step; 0: 10 ms */
    double from, to;    /* seconds: what is told */
    const char *teller; /* NULL: all nodes are told of */
    struct sgp_sim_absence absence;
    struct sgp_sim_crash crash;
    struct sgp_sim_half_open half_open;
    struct sgp_sim_straggler straggler;
    uint32_t owners;                /* of parts; 0: one of all */
    uint32_t backup;                /* workers, of an owner; */
    struct sgp_staleness staleness; /* of one at its own pace; */
    struct sgp_delay delay;         /* of a token */
    double pause, resume, stop;     /* of n1 */
};

static const struct story stories[] = {
    {.name = "accepting",
        .rule = "Accepting: a share is acknowledged when it is whole; the credit returns later.",
        .family = "ring",
        .nodes = 2,
        .rounds = 2,
        .to = 1},
    {.name = "broken-link",
        .rule = "A link that breaks: in the middle of a share n0 loses its end and dials again; n1 "
                "lets it in when nothing has come on the old connection for two beats, states what "
                "it accepted last, and the share is sent once more.",
        .family = "ring",
        .nodes = 2,
        .rounds = 3,
        .bandwidth = 320, /* a share takes a tenth of a second */
        .half_open = {.loser = 0, .keeper = 1, .at = SECONDS(1.27)},
        .from = 0.8,
        .to = 3.3},
    {.name = "restart-exact",
        .rule = "Ledger and checkpoint: n1 ends cleanly and is started again; both describe one "
                "moment, so it goes on from there and asks nobody.",
        .family = "ring",
        .nodes = 3,
        .rounds = 100,
        .compute = 2,
        .stop = 5,
        .crash = {.node = 1, .at = SECONDS(7), .back = SECONDS(7.2)},
        .teller = "n1",
        .from = 4,
        .to = 14},
    {.name = "restart-estimate",
        .rule =
            "Coming back: n1 is killed, takes its weight from its ledger and its parameters from "
            "a neighbour, and the round of the fleet.",
        .family = "ring",
        .nodes = 3,
        .rounds = 100,
        .crash = {.node = 1, .at = SECONDS(0.2), .back = SECONDS(0.4)},
        .teller = "n1",
        .from = 0.17,
        .to = 0.6},
    {.name = "forgotten",
        .rule =
            "Without its ledger n1 begins anew with weight 1 and another incarnation; what others "
            "owe to the former one returns.",
        .family = "ring",
        .nodes = 3,
        .rounds = 100,
        .crash = {.node = 1, .at = SECONDS(0.2), .back = SECONDS(0.4), .forgets = true},
        .from = 0.19,
        .to = 0.46},
    {.name = "starving",
        .rule = "Nobody starves: n2 is away, so n0 gives and hears nothing; it gives less, then "
                "nothing, and does not shrink any more.",
        .family = "ring",
        .nodes = 3,
        .rounds = 500,
        .absence = {.node = 2, .from = SECONDS(0.2), .to = SECONDS(6)},
        .teller = "n0",
        .from = 0.17,
        .to = 3.4},
    {.name = "absent",
        .rule = "Absent: n2 is stopped for 5 seconds; after 3 of silence nobody waits for it.",
        .family = "complete",
        .nodes = 3,
        .rounds = 300,
        .absence = {.node = 2, .from = SECONDS(0.2), .to = SECONDS(5.2)},
        .teller = "n0",
        .from = 0.19,
        .to = 3.3},
    {.name = "jump",
        .rule = "Jump: n2 comes back far behind the others and takes their round.",
        .family = "complete",
        .nodes = 3,
        .rounds = 300,
        .absence = {.node = 2, .from = SECONDS(0.2), .to = SECONDS(5.2)},
        .teller = "n2",
        .from = 4,
        .to = 5.3},
    {.name = "slow",
        .rule = "Slow: a step of n1 takes 5 seconds; it beats, so it is waited for.",
        .family = "ring",
        .nodes = 2,
        .rounds = 2,
        .straggler = {.node = 1, .factor = 500},
        .to = 12},
    {.name = "owner",
        .rule = "Owner: n0 closes a step with the first of two updates; that of n2, four times "
                "slower, comes late, and n2 goes on with the newest copy.",
        .family = "owner",
        .method = "backup",
        .nodes = 3,
        .rounds = 6,
        .backup = 1,
        .straggler = {.node = 2, .factor = 4},
        .to = 0.2},
    {.name = "parts",
        .rule = "Owners of parts: n0 and n1 own a half each; each closes a step with the first of "
                "two updates; n3, four times slower, asks both for their newest copies.",
        .family = "owner",
        .method = "backup",
        .nodes = 4,
        .rounds = 4,
        .owners = 2,
        .backup = 1,
        .straggler = {.node = 3, .factor = 4},
        .to = 0.2},
    {.name = "stale",
        .rule = "An owner at its own pace: n0 adds each update as it comes, from the copy that its "
                "worker had, and answers; n1 waits when it is two ahead of n2, four times slower.",
        .family = "owner",
        .method = "downpour",
        .nodes = 3,
        .rounds = 3,
        .staleness = {.damping = SGP_DAMPING_COMPENSATE, .compensation = 0.5, .most = 1},
        .straggler = {.node = 2, .factor = 4},
        .to = 0.2},
    {.name = "token",
        .rule =
            "A token: it goes to each node that has an update for it, and adds it; n2, four times "
            "slower, receives it less often. After the last step all have the copy of one label.",
        .family = "token",
        .method = "cyclic",
        .nodes = 3,
        .rounds = 3,
        .straggler = {.node = 2, .factor = 4},
        .to = 1},
    {.name = "cycle",
        .rule = "An exact cycle: who has half of the mean exchanges it for the other half; n1 is "
                "stopped amid it, and waited for however long.",
        .family = "all-reduce-doubling",
        .nodes = 4,
        .rounds = 4,
        .absence = {.node = 1, .from = SECONDS(0.0205), .to = SECONDS(0.5)},
        .from = 0.013,
        .to = 0.512},
    {.name = "passing",
        .rule =
            "At their own pace: n0 and n1 have done their steps, and go on giving while n2, four "
            "times slower, trains.",
        .family = "ring",
        .method = "agp",
        .nodes = 3,
        .rounds = 6,
        .final_cycles = 3,
        .straggler = {.node = 2, .factor = 4},
        .from = 0.05,
        .to = 0.15},
    {.name = "end",
        .rule = "The end: steps are done, everybody goes on mixing until models agree by the file, "
                "then all have finished on one round.",
        .family = "one-peer-exponential",
        .nodes = 4,
        .rounds = 3,
        .final_cycles = 3,
        .teller = "n1",
        .from = 0.03,
        .to = 1},
    {.name = "disagreement",
        .rule =
            "Agreement: after the final cycle the estimates differ, as sketches show, so everybody "
            "mixes on, twice as long each time.",
        .family = "ring",
        .nodes = 3,
        .rounds = 3,
        .final_cycles = 1,
        .teller = "n1",
        .from = 0.035,
        .to = 0.06},
    {.name = "pause",
        .rule = "Pause: n1 says so and nobody waits for it; resumed, it takes the round of the "
                "others.",
        .family = "ring",
        .nodes = 3,
        .rounds = 100,
        .pause = 0.2,
        .resume = 0.5,
        .teller = "n1",
        .from = 0.19,
        .to = 0.6},
};

/* ---- telling ---- */

struct telling {
    const struct story *story;
    size_t used;
    char text[TRACE_BYTES];
};

static void tell(struct telling *telling, const char *line, size_t length)
{
    if (telling->used + length + 1 >= sizeof telling->text)
        return; /* the comparison will see it */
    memcpy(telling->text + telling->used, line, length);
    telling->used += length;
    telling->text[telling->used++] = '\n';
}

/* Copy what was done without its beats; returns how many deeds are left. */
static uint32_t copy_deeds(const char *deeds, char *ret_text, size_t bytes)
{
    uint32_t count = 0;
    *ret_text = '\0';
    while (*deeds) {
        size_t length = strcspn(deeds, ",");
        if (strncmp(deeds, "send:beat:", 10) != 0) {
            size_t used = strlen(ret_text);
            (void)snprintf(ret_text + used, bytes - used, "%s%.*s",
                count++ ? "," : " do=", (int)length, deeds);
        }
        deeds += length + (deeds[length] == ',');
    }
    return count;
}

static void hear(void *context, enum sgp_level level, const char *text)
{
    struct telling *telling = context;
    const struct story *story = telling->story;
    const char *deeds = strstr(text, " do="), *rest = strchr(text, ' ');
    char line[2 * SGP_TEXT_BYTES], done[SGP_TEXT_BYTES];
    double now = (double)strtoll(text + 2, NULL, 10) / (double)SGP_SECOND;
    char node[SGP_NAME_BYTES + 8];
    (void)snprintf(node, sizeof node, " node=%s ", story->teller ? story->teller : "");
    if (level != SGP_LEVEL_TRACE || !deeds || now < story->from || now > story->to ||
        (story->teller && !strstr(text, node)) || copy_deeds(deeds + 4, done, sizeof done) == 0)
        return;
    int length = snprintf(line, sizeof line, "%10.6f%.*s%s", now, (int)(deeds - rest), rest, done);
    tell(telling, line, (size_t)length);
}

/* ---- running ---- */

static uint64_t dimension_of(const struct story *story)
{
    return story->owners > 0 ? story->owners : 1;
}

static int make_trainer(void *context, uint32_t node, struct sgp_trainer **ret_trainer)
{
    const struct story *story = context;
    const float centre[2] = {0}, start[2] = {(float)node, (float)node};
    return sgp_quadratic_create(dimension_of(story), centre, start, 0, ret_trainer);
}

static void draw_options(
    const struct story *story, const struct sgp_sink *sink, struct sgp_sim_options *options)
{
    sgp_sim_options_init(options);
    if (story->method != NULL)
        options->method = sgp_method_find(story->method);
    options->rounds = story->rounds;
    options->final_cycles = story->final_cycles;
    options->dimension = dimension_of(story);
    options->context = (void *)(uintptr_t)story; /* read only */
    options->bandwidth = story->bandwidth;
    if (story->compute > 0)
        options->compute_ns = SECONDS(story->compute);
    options->trainer = make_trainer;
    options->sink = sink;
    options->checkpoint_ns = story->stop > 0 ? 3600 * SGP_SECOND : 0;
    options->absences = &story->absence;
    options->absence_count = story->absence.to > 0;
    options->crashes = &story->crash;
    options->crash_count = story->crash.back > 0;
    options->half_opens = &story->half_open;
    options->half_open_count = story->half_open.at > 0;
    options->stragglers = &story->straggler;
    options->straggler_count = story->straggler.factor > 0;
}

static void run(const struct story *story, struct telling *telling)
{
    struct sgp_error error = {0};
    struct sgp_sink sink = {.line = hear, .context = telling, .level = SGP_LEVEL_TRACE};
    struct sgp_generate_options family = {.family = story->family,
        .nodes = story->nodes,
        .owners = story->owners,
        .backup = story->backup,
        .staleness = story->staleness,
        .delay = story->delay};
    struct sgp_topology *topology = NULL;
    struct sgp_sim_options options;
    struct sgp_sim *sim = NULL;
    char rule[SGP_TEXT_BYTES];
    telling->story = story;
    telling->used = 0;
    tell(telling, rule, (size_t)snprintf(rule, sizeof rule, "# %s", story->rule));
    draw_options(story, &sink, &options);
    int status = sgp_generate(&family, &error, &topology);
    if (status == 0)
        status = sgp_sim_create(topology, &options, &error, &sim);
    if (status == 0 && story->pause > 0)
        status = sgp_sim_command(sim, SECONDS(story->pause), 1, SGP_EVENT_PAUSE);
    if (status == 0 && story->resume > 0)
        status = sgp_sim_command(sim, SECONDS(story->resume), 1, SGP_EVENT_RESUME);
    if (status == 0 && story->stop > 0)
        status = sgp_sim_command(sim, SECONDS(story->stop), 1, SGP_EVENT_STOP);
    if (status == 0)
        status = sgp_sim_run(sim, SECONDS(story->to), &error);
    if (status < 0)
        tell(telling, error.text, strlen(error.text));
    sgp_sim_destroy(sim);
    sgp_topology_destroy(topology);
}

/* ---- comparing ---- */

static bool write_file(const char *path, const struct telling *telling)
{
    FILE *file = fopen(path, "w");
    bool good = file && fwrite(telling->text, 1, telling->used, file) == telling->used;
    return file && fclose(file) == 0 && good;
}

/* Whether the file says the same; tells the first line that differs. */
static bool compare_file(const char *path, const struct telling *telling)
{
    static char text[TRACE_BYTES];
    FILE *file = fopen(path, "r");
    size_t bytes = file ? fread(text, 1, sizeof text, file) : 0;
    if (file)
        (void)fclose(file);
    if (bytes == telling->used && memcmp(text, telling->text, bytes) == 0)
        return true;
    size_t line = 0, at = 0;
    for (; at < bytes && at < telling->used && text[at] == telling->text[at]; at++)
        if (text[at] == '\n')
            line = at + 1;
    (void)printf(
        "# %s says: %.*s\n", path, line < bytes ? (int)strcspn(text + line, "\n") : 0, text + line);
    (void)printf("# now it is: %.*s\n",
        line < telling->used ? (int)strcspn(telling->text + line, "\n") : 0, telling->text + line);
    return false;
}

int main(int argc, char **argv)
{
    static struct telling telling;
    bool writes = argc == 3 && strcmp(argv[2], "--write") == 0, good = true;
    if (argc < 2 || argc > 3 || (argc == 3 && !writes)) {
        (void)fprintf(stderr, "golden FOLDER [--write]\n");
        return EXIT_FAILURE;
    }
    size_t count = sizeof stories / sizeof *stories;
    for (size_t i = 0; i < count; i++) {
        char path[4096];
        (void)snprintf(path, sizeof path, "%s/%s.trace", argv[1], stories[i].name);
        memset(telling.text, 0, sizeof telling.text);
        run(&stories[i], &telling);
        bool same = writes ? write_file(path, &telling) : compare_file(path, &telling);
        (void)printf("%s - %s\n", same ? "ok" : "not ok", stories[i].name);
        good &= same;
    }
    (void)printf("1..%zu\n", count);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}

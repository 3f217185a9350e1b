/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of campaigns: many seeds, one seed with its story, or the planted bugs. Speaks TAP. */
#include "campaign.h"

#include "sgp/version.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PLANT_SEEDS 50u /* within which every bug must be caught */

struct request {
    const char *program;
    const struct sgp_method *method; /* NULL: all */
    struct campaign_plant *plant;
    bool plants, trace, single, codes, codes_copies, exact, lies;
    uint32_t nodes;
    struct sgp_chooser chooser, copies; /* if it codes */
    uint64_t first, seeds;
};

static const char help[] =
    "campaign [--algorithm NAME] [--nodes N] [--compression NAME] [--copies NAME] [--seeds K] "
    "[--first S]\n"
    "campaign --algorithm NAME [--nodes N] [--compression NAME] [--copies NAME] --seed S [--plant "
    "BUG] [--trace]\n"
    "campaign [--algorithm sgp] --exact ...\n"
    "campaign [--algorithm NAME] --liar ...\n"
    "campaign --plants [--nodes N] [--seeds K]\n"
    "\n"
    "Runs fleets in virtual time, each drawn from its seed with faults of every kind, and judges "
    "them.\n"
    "A failure ends with the command that shows it again.\n"
    "\n"
    "  --algorithm NAME  one method; all of them without it\n"
    "  --nodes N         of each fleet (16)\n"
    "  --compression NAME  of the shares of training rounds, as [network] compression (as drawn)\n"
    "  --exact           files of exact cycles (all-reduce-*), and methods that suit them\n"
    "  --liar            a node lies, and the others have a guard where files suit one\n"
    "  --seeds K         how many seeds (100), from --first (1) on\n"
    "  --seed S          this seed alone\n"
    "  --trace           what every step of every node did\n"
    "  --plant BUG       with this bug put in\n"
    "  --plants          every bug in turn: each must be caught within 50 seeds, and none in K "
    "(50) "
    "without a bug\n";

/* ---- one seed ---- */

static void print_line(void *context, enum sgp_level level, const char *text)
{
    (void)context;
    if (level == SGP_LEVEL_TRACE)
        (void)printf("# %s\n", text);
}

static int run_seed(const struct request *request, const struct sgp_method *method, uint64_t seed,
    struct sgp_error *error, struct sgp_sim_summary *ret_summary)
{
    static struct campaign campaign;
    static const struct sgp_sink sink = {.line = print_line, .level = SGP_LEVEL_TRACE};
    char text[SGP_TEXT_BYTES];
    int status = campaign_init(&campaign, method, request->nodes, seed, request->exact, error);
    campaign.plant = request->plant;
    if (request->codes)
        campaign_code(&campaign, request->chooser.word);
    else if (request->plant && request->plant->compressor != SGP_COMPRESSOR_NONE)
        campaign_code(&campaign, sgp_compressor_word(request->plant->compressor));
    if (request->codes_copies)
        campaign_code_copies(&campaign, request->copies.word);
    else if (request->plant && request->plant->copies)
        campaign_code_copies(&campaign, request->plant->copies);
    if (request->lies || (request->plant && request->plant->lies))
        campaign_lie(&campaign);
    campaign.options.sink = request->trace ? &sink : NULL;
    if (status == 0 && request->single) {
        campaign_tell(&campaign, text, sizeof text);
        (void)printf("# %s\n", text);
    }
    if (status == 0)
        status = campaign_run(&campaign, error, ret_summary);
    campaign_finish(&campaign);
    return status;
}

static void print_replay(
    const struct request *request, const struct sgp_method *method, uint64_t seed)
{
    (void)printf(
        "# again: %s --algorithm %s%s%s --nodes %u%s%s%s%s --seed %llu%s%s --trace # sgpd %s\n",
        request->program, method->name, request->exact ? " --exact" : "",
        request->lies ? " --liar" : "", request->nodes, request->codes ? " --compression " : "",
        request->chooser.word, request->codes_copies ? " --copies " : "", request->copies.word,
        (unsigned long long)seed, request->plant ? " --plant " : "",
        request->plant ? request->plant->name : "", sgp_version());
}

/* ---- many seeds ---- */

static bool run_seeds(const struct request *request, const struct sgp_method *method)
{
    struct sgp_sim_summary total = {0};
    uint64_t failed = 0;
    clock_t begin = clock();
    for (uint64_t i = 0; i < request->seeds; i++) {
        struct sgp_error error = {0};
        struct sgp_sim_summary summary = {0};
        if (run_seed(request, method, request->first + i, &error, &summary) < 0) {
            failed++;
            (void)printf("# seed %llu: %s\n", (unsigned long long)(request->first + i), error.text);
            print_replay(request, method, request->first + i);
        }
        total.events += summary.events;
        total.resets += summary.resets;
        total.half_opened += summary.half_opened;
        total.crashes += summary.crashes;
        total.exact += summary.exact;
        total.kept += summary.kept;
        total.restored += summary.restored;
        total.adopted += summary.adopted;
        total.absences += summary.absences;
        total.jumps += summary.jumps;
        total.shares_folded += summary.shares_folded;
        total.changes += summary.changes;
        total.shares_guarded += summary.shares_guarded;
        total.shares_clipped += summary.shares_clipped;
        if (summary.disagreement > total.disagreement)
            total.disagreement = summary.disagreement;
    }
    (void)printf("# %llu events, %llu resets, %llu half-open, %llu crashes (%llu exact, %llu "
                 "shares kept, %llu from backups, %llu adopted), %llu absences, %llu jumps, %llu "
                 "shares folded, %llu copies coded, %llu shares guarded (%llu clipped); %.1f s\n",
        (unsigned long long)total.events, (unsigned long long)total.resets,
        (unsigned long long)total.half_opened, (unsigned long long)total.crashes,
        (unsigned long long)total.exact, (unsigned long long)total.kept,
        (unsigned long long)total.restored, (unsigned long long)total.adopted,
        (unsigned long long)total.absences, (unsigned long long)total.jumps,
        (unsigned long long)total.shares_folded, (unsigned long long)total.changes,
        (unsigned long long)total.shares_guarded, (unsigned long long)total.shares_clipped,
        (double)(clock() - begin) / CLOCKS_PER_SEC);
    (void)printf("%s - %s, %u nodes: %llu of %llu seeds hold\n", failed ? "not ok" : "ok",
        method->name, request->nodes, (unsigned long long)(request->seeds - failed),
        (unsigned long long)request->seeds);
    return failed == 0;
}

static bool run_methods(const struct request *request)
{
    bool good = true;
    uint32_t count = 0;
    for (const struct sgp_method *method; (method = sgp_method_at(count)) != NULL; count++) {
        struct sgp_error error = {0};
        if (request->exact && campaign_suit_exact(method, &error) < 0)
            (void)printf("ok - %s # SKIP %s\n", method->name, error.text);
        else
            good &= run_seeds(request, method);
    }
    (void)printf("1..%u\n", count);
    return good;
}

/* ---- planted bugs ---- */

/* How many seeds are tried. A campaign without a bug goes through all of them. */
static uint64_t seeds_of(const struct request *request, const struct campaign_plant *plant)
{
    return plant != NULL && !plant->harmless ? PLANT_SEEDS : request->seeds;
}

/* Whether a campaign of these seeds fails; says at which one and why. */
static bool find_bug(struct request *request, struct campaign_plant *plant)
{
    const struct sgp_method *method =
        sgp_method_find(plant && plant->method ? plant->method : "sgp");
    request->plant = plant;
    for (uint64_t seed = 1; seed <= seeds_of(request, plant); seed++) {
        struct sgp_error error = {0};
        struct sgp_sim_summary summary;
        if (run_seed(request, method, seed, &error, &summary) == 0)
            continue;
        (void)printf("# seed %llu: %s\n", (unsigned long long)seed, error.text);
        print_replay(request, method, seed);
        return true;
    }
    return false;
}

static bool run_plants(struct request *request)
{
    uint32_t tests = 0;
    bool good = true;
    for (struct campaign_plant *plant = campaign_plants; plant->name; plant++, tests++) {
        bool right = find_bug(request, plant) != plant->harmless;
        (void)printf("%s - %s %s %llu seeds: %s\n", right ? "ok" : "not ok", plant->name,
            plant->harmless ? "harms nobody in" : "is caught within",
            (unsigned long long)seeds_of(request, plant), plant->summary);
        good &= right;
    }
    bool found = find_bug(request, NULL);
    (void)printf("%s - without a bug all %llu seeds hold\n", found ? "not ok" : "ok",
        (unsigned long long)seeds_of(request, NULL));
    (void)printf("1..%u\n", tests + 1);
    return good && !found;
}

/* ---- the command line ---- */

static int refuse(const char *what, const char *value)
{
    (void)fprintf(stderr, "campaign: %s '%s'\n\n%s", what, value, help);
    return EXIT_FAILURE;
}

static bool read_number(const char *text, uint64_t least, uint64_t greatest, uint64_t *ret_number)
{
    char *end;
    unsigned long long number = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0' || number < least || number > greatest)
        return false;
    *ret_number = number;
    return true;
}

/* One option with its value. */
static bool take(struct request *request, const char *name, const char *value)
{
    uint64_t nodes = request->nodes;
    if (strcmp(name, "--algorithm") == 0)
        return (request->method = sgp_method_find(value)) != NULL;
    if (strcmp(name, "--plant") == 0)
        return (request->plant = campaign_plant_find(value)) != NULL;
    if (strcmp(name, "--seeds") == 0)
        return read_number(value, 1, 1000000000, &request->seeds);
    if (strcmp(name, "--first") == 0)
        return read_number(value, 0, INT64_MAX, &request->first);
    if (strcmp(name, "--seed") == 0) {
        request->seeds = 1;
        request->single = true;
        return read_number(value, 0, INT64_MAX, &request->first);
    }
    if (strcmp(name, "--compression") == 0) {
        request->codes = true;
        return sgp_chooser_parse(value, SGP_CHOOSER_WORDS, NULL, &request->chooser) == 0;
    }
    if (strcmp(name, "--copies") == 0) {
        request->codes_copies = true;
        return sgp_chooser_parse(value, SGP_CHOOSER_COPY_WORDS, NULL, &request->copies) == 0 &&
               sgp_chooser_is_of_copies(&request->copies);
    }
    bool good = strcmp(name, "--nodes") == 0 && read_number(value, 2, CAMPAIGN_NODES_MAX, &nodes);
    request->nodes = (uint32_t)nodes;
    return good;
}

int main(int argc, char **argv)
{
    struct request request = {.program = argv[0], .nodes = 16, .first = 1};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0)
            return fputs(help, stdout) < 0;
        if (strcmp(argv[i], "--plants") == 0)
            request.plants = true;
        else if (strcmp(argv[i], "--exact") == 0)
            request.exact = true;
        else if (strcmp(argv[i], "--liar") == 0)
            request.lies = true;
        else if (strcmp(argv[i], "--trace") == 0)
            request.trace = true;
        else if (i + 1 == argc)
            return refuse("no such option, or no value for it:", argv[i]);
        else if (!take(&request, argv[i], argv[i + 1]))
            return refuse("not understood:", argv[i + 1]);
        else
            i++;
    }
    struct sgp_error error = {0};
    if (request.exact && request.plants)
        return refuse("not with --plants:", "--exact");
    if (request.exact && request.method && campaign_suit_exact(request.method, &error) < 0)
        return refuse("--exact does not suit --algorithm", request.method->name);
    if (request.seeds == 0)
        request.seeds = request.plants ? PLANT_SEEDS : 100;
    bool good;
    if (request.plants)
        good = run_plants(&request);
    else if (request.method) {
        good = run_seeds(&request, request.method);
        (void)printf("1..1\n");
    } else
        good = run_methods(&request);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}

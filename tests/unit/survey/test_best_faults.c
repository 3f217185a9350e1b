/* SPDX-License-Identifier: Apache-2.0 */
/* The best model under random faults. Rounds, kills, stopped machines and early stops are those of
 * real cores in the simulator. Words travel between running nodes as in daemon/node/facts.c, late
 * and in any order. A killed node keeps what best.json would hold, and nothing else; one of them not
 * even that. At the end all nodes must have stopped at one round and keep one label. */
#include "sim_fleet.h"

#include "sgp/best.h"
#include "sgp/random.h"

#define NODES_MAX 8u
#define EVERY 20
#define PATIENCE 4u
#define ROUNDS 2000
#define SLICE (20 * SGP_MILLISECOND)
#define SLICES_MAX 20000u
#define CALM_SLICES 200u /* from the end of training and faults to the last decision */

struct told {
    bool exists;
    char text[SGP_BEST_WORD_BYTES];
};

struct words { /* of one decision, by author */
    uint64_t number;
    uint32_t count;
    struct told told[NODES_MAX];
};

struct node {
    struct sgp_best best, kept; /* kept: as the file has it */
    struct words agreed, next;  /* of the latest decision that is agreed, and of the one after */
    bool asks, stops, finished, running;
    sgp_round stop_label; /* at which it was decided to stop; 0: it was not */
};

struct trial {
    struct fleet *fleet;
    struct node nodes[NODES_MAX];
    uint32_t count;
    uint64_t seed;
    struct sgp_random random;
    struct sgp_best_times times;
    bool local; /* a planted fault: each node decides by its own word */
    struct sgp_sim_crash crashes[3];
    struct sgp_sim_absence absences[2];
    sgp_time now;
    sgp_round peak; /* the label at which the models are the best */
};

static uint64_t draw(struct trial *trial, uint64_t below)
{
    return sgp_random_below(&trial->random, below);
}

/* ---- what a node does ---- */

static void save(struct node *node)
{
    node->kept = node->best;
    node->kept.over = false;
}

/* Better up to the peak, then worse; each node sees it with an error of its own. */
static struct sgp_best_score score_of(const struct trial *trial, uint32_t i, sgp_round label)
{
    const uint64_t noise = sgp_random_at(trial->seed, (uint64_t)label * NODES_MAX + i) % 40;
    const double far = fabs((double)(label - trial->peak));
    return (struct sgp_best_score){
        .label = label, .count = 1000, .sum = round(900 - fmin(far, 800) + (double)noise)};
}

static void measure(struct trial *trial, uint32_t i, sgp_round label)
{
    struct node *node = &trial->nodes[i];
    const struct sgp_best_score score = score_of(trial, i, label);
    if (!node->running || label <= node->best.through || label <= node->best.last ||
        label <= node->best.best.label)
        return;
    sgp_best_add(&node->best, &score);
    save(node);
}

static void on_left(
    void *context, uint32_t i, sgp_round round, double weight, const float *estimate)
{
    struct trial *trial = context;
    (void)weight;
    (void)estimate;
    if (sgp_best_is_label(&trial->times, round + 1))
        measure(trial, i, round + 1);
}

static int trainer(void *context, uint32_t i, struct sgp_trainer **ret_trainer)
{
    const struct trial *trial = context;
    return fleet_trainer(trial->fleet, i, ret_trainer);
}

/* ---- decisions, as in facts.c ---- */

static void decide(struct trial *trial, uint32_t i, const struct words *words)
{
    struct node *node = &trial->nodes[i];
    struct sgp_best_verdict verdict;
    const char *texts[NODES_MAX];
    for (uint32_t a = 0; a < trial->count; a++)
        texts[a] = words->told[a].text;
    if (trial->local)
        sgp_best_decide(&node->best, &texts[i], 1, 0, &verdict);
    else
        sgp_best_decide(&node->best, texts, trial->count, i, &verdict);
    save(node);
    if (verdict.stops && node->stop_label == 0)
        node->stop_label = node->best.last;
    node->stops = node->stops || verdict.stops;
    node->asks = false;
}

static void add(struct words *words, uint32_t author, const char *text)
{
    struct told *told = &words->told[author];
    if (told->exists)
        return;
    told->exists = true;
    (void)snprintf(told->text, sizeof told->text, "%s", text);
    words->count++;
}

static void freeze(struct trial *trial, uint32_t i, const struct words *words)
{
    struct node *node = &trial->nodes[i];
    const struct words agreed = *words;
    if (node->next.number <= agreed.number)
        node->next = (struct words){.number = agreed.number + 1};
    node->agreed = agreed;
    if (agreed.told[i].exists)
        decide(trial, i, &agreed);
    else if (node->asks) /* made without this node's word, which is for the next one */
        add(&node->next, i, node->best.word);
}

static void tell(struct trial *trial, uint32_t i)
{
    struct node *node = &trial->nodes[i];
    if (node->asks || !sgp_best_has_news(&node->best))
        return;
    sgp_best_say(&node->best);
    save(node);
    node->asks = true;
    if (node->next.number == 0)
        node->next.number = 1;
    if (trial->local) {
        add(&node->next, i, node->best.word);
        decide(trial, i, &node->next);
        node->next = (struct words){.number = node->next.number + 1};
        return;
    }
    add(&node->next, i, node->best.word);
    if (node->next.count == trial->count)
        freeze(trial, i, &node->next);
}

/* Node `i` hears all that node `j` has. */
static void hear(struct trial *trial, uint32_t i, uint32_t j)
{
    struct node *node = &trial->nodes[i];
    const struct node *other = &trial->nodes[j];
    if (other->agreed.number > node->agreed.number)
        freeze(trial, i, &other->agreed);
    if (other->next.number == node->next.number && other->next.number > 0) {
        for (uint32_t a = 0; a < trial->count; a++)
            if (other->next.told[a].exists)
                add(&node->next, a, other->next.told[a].text);
    } else if (other->next.number > node->next.number) {
        node->next = other->next;
    }
    if (node->next.number > 0 && node->next.count == trial->count)
        freeze(trial, i, &node->next);
}

/* ---- the life of the nodes ---- */

static bool is_stopped(const struct trial *trial, uint32_t i)
{
    for (size_t k = 0; k < sizeof trial->absences / sizeof *trial->absences; k++)
        if (trial->absences[k].node == i && trial->now >= trial->absences[k].from &&
            trial->now < trial->absences[k].to)
            return true;
    return false;
}

/* In every other trial the first node that is killed loses its disk. */
static bool loses_disk(const struct trial *trial, uint32_t i)
{
    return trial->seed % 2 == 1 && i == trial->seed % trial->count;
}

/* A process that begins again has the file alone. */
static void die(struct trial *trial, uint32_t i)
{
    struct node *node = &trial->nodes[i];
    const struct sgp_best_settings settings = node->best.settings;
    *node = (struct node){.best = node->kept, .kept = node->kept, .stop_label = node->stop_label};
    if (!loses_disk(trial, i))
        return;
    sgp_best_begin(&node->best, &settings);
    save(node);
}

static void live(struct trial *trial, uint32_t i)
{
    struct node *node = &trial->nodes[i];
    bool dead = false;
    for (size_t k = 0; k < sizeof trial->crashes / sizeof *trial->crashes; k++)
        dead = dead || (trial->crashes[k].node == i && trial->now >= trial->crashes[k].at &&
                           trial->now < trial->crashes[k].back);
    if (dead && node->running)
        die(trial, i);
    else if (!dead)
        node->running = true;
}

static void act(struct trial *trial, uint32_t i)
{
    struct node *node = &trial->nodes[i];
    struct sgp_node_status status;
    sgp_node_status(sgp_sim_node(trial->fleet->sim, i), &status);
    if (!node->running || is_stopped(trial, i))
        return;
    if (status.state == SGP_NODE_FINISHED && !node->finished) {
        node->finished = true;
        measure(trial, i, status.rounds);
    }
    if (node->finished)
        sgp_best_finish(&node->best);
    tell(trial, i);
    for (uint32_t j = 0; j < trial->count; j++)
        if (j != i && trial->nodes[j].running && !is_stopped(trial, j) && draw(trial, 3) == 0)
            hear(trial, i, j);
    if (node->stops && status.state == SGP_NODE_TRAINING) {
        node->stops = false;
        (void)sgp_sim_command(trial->fleet->sim, trial->now, i, SGP_EVENT_ENOUGH);
    }
}

/* All nodes have finished, and no fault is to come. */
static bool is_calm(const struct trial *trial)
{
    bool calm = sgp_sim_done(trial->fleet->sim);
    for (uint32_t i = 0; i < trial->count; i++)
        calm = calm && trial->nodes[i].running && trial->nodes[i].finished && !is_stopped(trial, i);
    for (size_t k = 0; k < sizeof trial->crashes / sizeof *trial->crashes; k++)
        calm = calm && trial->now > trial->crashes[k].back;
    return calm;
}

static void begin(struct trial *trial, uint64_t seed)
{
    static const char *const families[] = {"ring", "one-peer-exponential", "exponential"};
    sgp_random_init(&trial->random, seed, 77);
    trial->seed = seed;
    trial->count = 4 + (uint32_t)draw(trial, NODES_MAX - 3);
    trial->fleet = fleet_generate(families[draw(trial, 3)], trial->count, 0);
    struct sgp_sim_options *options = &trial->fleet->options;
    options->seed = seed;
    options->rounds = ROUNDS;
    options->final_cycles = 4;
    options->compute_ns = 4 * SGP_MILLISECOND;
    options->compute_jitter = 0.3;
    options->checkpoint_ns = 300 * SGP_MILLISECOND;
    options->left = on_left;
    options->row = NULL;
    options->note = NULL;
    for (size_t k = 0; k < 3; k++) {
        const sgp_time at = SGP_SECOND / 5 + (sgp_time)draw(trial, 4 * SGP_SECOND);
        trial->crashes[k] = (struct sgp_sim_crash){.node = (uint32_t)((seed + k) % trial->count),
            .at = at,
            .back = at + SGP_SECOND / 10 + (sgp_time)draw(trial, 5 * SGP_SECOND)};
    }
    for (size_t k = 0; k < 2; k++) {
        const sgp_time from = SGP_SECOND / 5 + (sgp_time)draw(trial, 4 * SGP_SECOND);
        trial->absences[k] =
            (struct sgp_sim_absence){.node = (uint32_t)((seed + 3 + k) % trial->count),
                .from = from,
                .to = from + SGP_SECOND / 10 + (sgp_time)draw(trial, 5 * SGP_SECOND)};
    }
    options->crashes = trial->crashes;
    options->crash_count = 1 + (uint32_t)draw(trial, 3);
    for (size_t k = options->crash_count; k < 3; k++)
        trial->crashes[k] = (struct sgp_sim_crash){.node = NODES_MAX};
    options->absences = trial->absences;
    options->absence_count = (uint32_t)draw(trial, 3);
    for (size_t k = options->absence_count; k < 2; k++)
        trial->absences[k] = (struct sgp_sim_absence){.node = NODES_MAX};
    trial->peak = EVERY * (5 + (sgp_round)draw(trial, 30));
    trial->times = (struct sgp_best_times){.first = trial->fleet->topology->prelude_rounds,
        .cycle = trial->fleet->topology->rounds_per_cycle,
        .every = EVERY};
    const struct sgp_best_settings settings = {.measure = SGP_BEST_ACCURACY,
        .run = 1,
        .every = sgp_best_period(&trial->times),
        .patience = PATIENCE};
    for (uint32_t i = 0; i < trial->count; i++) {
        sgp_best_begin(&trial->nodes[i].best, &settings);
        save(&trial->nodes[i]);
    }
}

struct outcome {
    bool done, one_round, one_best, early;
};

static struct outcome run(uint64_t seed, bool local)
{
    struct trial trial = {.local = local};
    struct outcome outcome = {.one_round = true, .one_best = true};
    uint32_t calm = 0;
    begin(&trial, seed);
    trial.fleet->options.context = &trial;
    trial.fleet->options.trainer = trainer;
    struct sgp_sim_options *options = &trial.fleet->options;
    cr_assert(
        eq(int,
            sgp_sim_create(trial.fleet->topology, options, &trial.fleet->error, &trial.fleet->sim),
            0),
        "%s", trial.fleet->error.text);
    for (uint32_t k = 0; k < SLICES_MAX && !outcome.done; k++) {
        trial.now += SLICE;
        for (uint32_t i = 0; i < trial.count; i++)
            live(&trial, i);
        cr_assert(zero(int, sgp_sim_run(trial.fleet->sim, trial.now, &trial.fleet->error)),
            "seed %lu: %s", (unsigned long)seed, trial.fleet->error.text);
        for (uint32_t i = 0; i < trial.count; i++)
            act(&trial, i);
        calm += is_calm(&trial);
        outcome.done = calm == CALM_SLICES;
    }
    struct sgp_node_status first, status;
    sgp_node_status(sgp_sim_node(trial.fleet->sim, 0), &first);
    for (uint32_t i = 0; i < trial.count; i++) {
        sgp_node_status(sgp_sim_node(trial.fleet->sim, i), &status);
        outcome.one_round = outcome.one_round && status.rounds == first.rounds;
        outcome.one_best = outcome.one_best &&
                           trial.nodes[i].best.best.label == trial.nodes[0].best.best.label &&
                           trial.nodes[i].best.best.label != SGP_ROUND_NONE;
    }
    outcome.early = first.rounds < ROUNDS;
    fleet_destroy(trial.fleet);
    return outcome;
}

Test(best_faults, all_nodes_stop_at_one_round_and_keep_one_label, .timeout = 600)
{
    const uint32_t seeds = fleet_most(2000, 1000, 30);
    uint32_t early = 0;
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        const struct outcome outcome = run(seed, false);
        cr_assert(outcome.done, "seed %lu is not done", (unsigned long)seed);
        cr_assert(outcome.one_round, "seed %lu stops at two rounds", (unsigned long)seed);
        cr_assert(outcome.one_best, "seed %lu keeps two labels", (unsigned long)seed);
        early += outcome.early;
    }
    cr_assert(gt(u32, early, seeds / 2), "%u of %u stop before the end", early, seeds);
}

/* The same with nodes that decide by their own rows: this test can tell. */
Test(best_faults, nodes_that_decide_alone_keep_several_labels, .timeout = 600)
{
    uint32_t apart = 0;
    for (uint64_t seed = 1; seed <= 10; seed++)
        apart += !run(seed, true).one_best;
    cr_assert(ge(u32, apart, 5), "%u of 10", apart);
}

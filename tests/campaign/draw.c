/* SPDX-License-Identifier: Apache-2.0 */
/* What a seed means: a topology that suits the method, a fleet, and faults of every kind, all of which
 * end while training goes on. */
#include "campaign.h"

#include "sgp/analysis.h"
#include "sgp/generate.h"
#include "sgp/quadratic.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define STREAM_CAMPAIGN ((uint64_t)6 << 32)
#define ETA 0.05
#define CONTRACTION 1e-4 /* of a healthy fleet's disagreement, by the final cycles */
#define MIXING_ROUNDS_MAX 4000.0

/* ---- chance ---- */

static bool chance(struct campaign *campaign, double probability)
{
    return sgp_random_double(&campaign->random) < probability;
}

static uint32_t below(struct campaign *campaign, uint32_t bound)
{
    return (uint32_t)sgp_random_below(&campaign->random, bound);
}

/* Between least and greatest, each order of magnitude as likely as the other. */
static double spread(struct campaign *campaign, double least, double greatest)
{
    return least * pow(greatest / least, sgp_random_double(&campaign->random));
}

static uint32_t any_node(struct campaign *campaign)
{
    return below(campaign, campaign->topology->node_count);
}

/* One that may be gone for good: owners stay, which come first, or last if they train. */
static uint32_t any_spare(struct campaign *campaign)
{
    const struct sgp_topology *topology = campaign->topology;
    uint32_t owners = topology->owners, first = topology->nodes[0].owns ? owners : 0;
    return first + below(campaign, topology->node_count - owners);
}

/* How many faults of a kind: none in every second campaign. */
static uint32_t count(struct campaign *campaign, uint32_t most)
{
    return chance(campaign, 0.5) ? 0 : 1 + below(campaign, most);
}

static sgp_time moment(struct campaign *campaign)
{
    return 1 + (sgp_time)(sgp_random_double(&campaign->random) * (double)(campaign->window - 2));
}

/* Mostly short, and over before the window closes. */
static void span(struct campaign *campaign, sgp_time *ret_from, sgp_time *ret_to)
{
    sgp_time from = moment(campaign);
    double part = sgp_random_double(&campaign->random);
    *ret_from = from;
    *ret_to = from + 1 + (sgp_time)(part * part * (double)(campaign->window - from));
}

/* ---- the fleet ---- */

static struct sgp_staleness draw_staleness(struct campaign *campaign)
{
    enum sgp_damping damping = (enum sgp_damping)below(campaign, SGP_DAMPING_COMPENSATE + 1);
    bool compensates = damping == SGP_DAMPING_COMPENSATE;
    return (struct sgp_staleness){.damping = damping,
        .compensation = compensates ? spread(campaign, 0.1, 3) : 0,
        .most = chance(campaign, 0.5) ? 0 : 1 + below(campaign, 8)};
}

static struct sgp_generate_options draw_owner(struct campaign *campaign, uint32_t nodes)
{
    struct sgp_generate_options options = {.family = "owner", .nodes = nodes};
    bool several = campaign->seed % 2 == 0 && nodes > 2;
    options.owners = several ? CAMPAIGN_DIMENSION : 1;
    options.members = campaign->seed % 4 >= 2;
    if (sgp_method_waits(campaign->options.method))
        options.backup = below(campaign, nodes < 5 ? nodes - options.owners : 4);
    else
        options.staleness = draw_staleness(campaign);
    return options;
}

static struct sgp_generate_options draw_token(struct campaign *campaign, uint32_t nodes)
{
    struct sgp_generate_options options = {.family = "token", .nodes = nodes};
    bool fixed = chance(campaign, 0.25);
    options.delay.token = fixed ? SGP_TOKEN_FIXED : SGP_TOKEN_DYNAMIC;
    if (!fixed) {
        options.delay.mean = chance(campaign, 0.3);
        options.delay.most = chance(campaign, 0.5) ? 0 : 1 + below(campaign, 12);
    }
    return options;
}

/* Families of gossip come first, and then those of exact cycles. */
static uint32_t count_gossip(void)
{
    uint32_t families = 0;
    while (!(sgp_generate_families[families].options & SGP_GENERATE_EXACT))
        families++;
    return families;
}

/* Some of their files are gossip for some numbers of nodes: nobody gives all of anything away. */
static struct sgp_generate_options draw_exact(struct campaign *campaign, uint32_t nodes)
{
    uint32_t first = count_gossip(), end = first;
    while (sgp_generate_families[end].options & SGP_GENERATE_EXACT)
        end++;
    const struct sgp_generate_family *family =
        &sgp_generate_families[first + below(campaign, end - first)];
    bool group = family->options & SGP_GENERATE_GROUP, hubs = family->options & SGP_GENERATE_HUBS;
    return (struct sgp_generate_options){.family = family->name,
        .nodes = nodes,
        .group = group ? 2 + below(campaign, nodes / 2) : 0,
        .hubs = hubs ? 1 + below(campaign, nodes < 3 ? nodes : 3) : 0,
        .pieces = chance(campaign, 0.5) ? 0 : 2};
}

static struct sgp_generate_options draw_gossip(struct campaign *campaign, uint32_t nodes)
{
    uint32_t families = count_gossip();
    const struct sgp_generate_family *family = &sgp_generate_families[below(campaign, families)];
    bool peers = family->options & SGP_GENERATE_PEERS;
    bool degree = family->options & SGP_GENERATE_DEGREE;
    return (struct sgp_generate_options){.family = family->name,
        .nodes = nodes,
        .peers = peers ? 1 + below(campaign, 3) : 0,
        .degree = degree ? 1 + below(campaign, nodes - 1 < 4 ? nodes - 1 : 4) : 0,
        .seed = family->options & SGP_GENERATE_SEED ? campaign->seed : 0};
}

static int draw_topology(struct campaign *campaign, uint32_t nodes, const char **ret_family,
    struct sgp_topology **ret_topology, struct sgp_error *error)
{
    const struct sgp_method *method = campaign->options.method;
    for (uint32_t attempt = 0; attempt < 64; attempt++) {
        struct sgp_generate_options options =
            campaign->exact                    ? draw_exact(campaign, nodes)
            : method->wants == SGP_WANTS_OWNER ? draw_owner(campaign, nodes)
            : method->wants == SGP_WANTS_TOKEN ? draw_token(campaign, nodes)
                                               : draw_gossip(campaign, nodes);
        struct sgp_topology *topology;
        if (sgp_generate(&options, NULL, &topology) < 0)
            continue;
        bool fits = !campaign->exact || sgp_topology_has_exact(topology);
        if (fits && sgp_method_suit(method, topology, NULL, NULL) == 0) {
            *ret_family = options.family;
            *ret_topology = topology;
            return 0;
        }
        sgp_topology_destroy(topology);
    }
    return sgp_fail(error, SGP_E_TOPOLOGY, "no family suits %s with %u nodes", method->name, nodes);
}

/* The greatest learning rate with which no node diverges on this file. */
static double eta_most(const struct campaign *campaign, const struct sgp_analysis *analysis)
{
    /* The step of a node is eta / w: one that trains at the least weight of its guard must not diverge. */
    double guard = SGP_STARVING * analysis->weight_min / (1 + analysis->out_degree_max);
    /* And stale updates add up: of N workers, each by as much, to a step N times as long. */
    bool adds_up = analysis->owner && !sgp_method_waits(campaign->options.method);
    return adds_up           ? ETA / campaign->topology->node_count
           : analysis->owner ? ETA
                             : fmin(ETA, guard);
}

/* What the topology asks of the fleet: a learning rate that suits its least weight, and as many final
 * cycles as a healthy fleet needs to forget what it disagreed on. */
static int suit_fleet(struct campaign *campaign, struct sgp_error *error)
{
    struct sgp_analysis analysis;
    int status = sgp_analyse(campaign->topology, &analysis);
    if (status < 0)
        return sgp_fail(error, status, "%s", sgp_strerror(status));
    campaign->eta_most = eta_most(campaign, &analysis);
    double contraction = analysis.contraction_per_cycle;
    double cycles = contraction > 0 ? ceil(log(CONTRACTION) / log(contraction)) : 0;
    double most = ceil(MIXING_ROUNDS_MAX / (double)analysis.rounds_per_cycle);
    if (!(cycles <= most))
        return sgp_fail(error, SGP_E_TOPOLOGY, "%s cannot agree", campaign->family);
    campaign->options.final_cycles = 4 + (uint32_t)cycles;
    campaign->mixing_rounds = campaign->options.final_cycles * (uint64_t)analysis.rounds_per_cycle;
    campaign->targets_most = analysis.out_degree_max;
    return 0;
}

/* How long a step takes, and until when there are faults. Two fleets in three train long enough after
 * the last of them to recover; the others come back to find that it is all over. */
static void draw_pace(struct campaign *campaign)
{
    struct sgp_sim_options *options = &campaign->options;
    double steps = (double)options->rounds * options->local_steps * (1 - options->compute_jitter);
    double step = spread(campaign, 0.005, 0.3) * (double)SGP_SECOND;
    double window = steps * step / 2;
    campaign->recovers = chance(campaign, 0.67);
    if (campaign->recovers) {
        window = spread(campaign, 1, 40) * (double)SGP_SECOND;
        step = (window + (double)CAMPAIGN_RECOVERY_NS) / steps;
    }
    options->compute_ns = 1 + (sgp_time)step;
    campaign->window = (sgp_time)window;
    campaign->longest =
        (sgp_time)(step * options->local_steps * 2 * fmax(1, options->compute_tail_max));
}

/* Until those who have finished have heard each other's last word: a node goes on comparing at each beat. */
static sgp_time linger(const struct sgp_sim_options *options, uint32_t nodes)
{
    double bytes = 4.0 * nodes * SGP_SIM_MESSAGE_BYTES;
    double transfer = options->bandwidth > 0 ? bytes / options->bandwidth * (double)SGP_SECOND : 0;
    return 3 * SGP_BEAT_IDLE_NS + 4 * options->latency_ns + (sgp_time)transfer;
}

static void draw_fleet(struct campaign *campaign)
{
    struct sgp_sim_options *options = &campaign->options;
    uint32_t nodes = campaign->topology->node_count;
    options->seed = campaign->seed;
    options->dimension = CAMPAIGN_DIMENSION;
    options->rounds = 60 + below(campaign, 100);
    options->local_steps = 1 + below(campaign, 3);
    options->overlap = below(campaign, 5);
    options->backup_neighbours = chance(campaign, 0.7) ? 0 : 1 + below(campaign, 2);
    options->start = chance(campaign, 0.8) ? SGP_START_ALL : 1 + below(campaign, nodes);
    options->compute_jitter =
        chance(campaign, 0.3) ? 0 : 0.9 * sgp_random_double(&campaign->random);
    options->latency_ns = (sgp_time)(spread(campaign, 1e-5, 0.1) * (double)SGP_SECOND);
    options->bandwidth = chance(campaign, 0.5) ? 0 : spread(campaign, 1e3, 1e8);
    options->linger_ns = linger(options, nodes);
    options->loss = chance(campaign, 0.5) ? 0 : spread(campaign, 1e-4, 0.05);
    options->through_wire = chance(campaign, 0.25);
    if (chance(campaign, 0.3)) {
        options->compute_tail = spread(campaign, 1.1, 4);
        options->compute_tail_max = 20;
    }
    campaign->eta = chance(campaign, 0.3) ? 0 : campaign->eta_most;
    draw_pace(campaign);
    double step = (double)options->compute_ns * options->local_steps;
    if (chance(campaign, 0.5))
        options->checkpoint_ns = (sgp_time)(spread(campaign, 0.5, 20) * step) + 1;
}

/* ---- faults of processes ---- */

static void draw_stragglers(struct campaign *campaign)
{
    uint32_t most = campaign->topology->node_count < 3 ? campaign->topology->node_count : 3;
    struct sgp_sim_options *options = &campaign->options;
    options->straggler_count = count(campaign, most);
    options->stragglers = campaign->stragglers;
    double worst = 1;
    for (uint32_t i = 0; i < options->straggler_count; i++) {
        double factor =
            spread(campaign, 1, 6); /* not faster, so that training outlasts the faults */
        campaign->stragglers[i] =
            (struct sgp_sim_straggler){.node = any_node(campaign), .factor = factor};
        worst = fmax(worst, factor);
    }
    campaign->longest = (sgp_time)((double)campaign->longest * worst);
}

static void draw_absences(struct campaign *campaign)
{
    struct sgp_sim_options *options = &campaign->options;
    options->absences = campaign->absences;
    options->absence_count = count(campaign, 4);
    for (uint32_t i = 0; i < options->absence_count; i++) {
        struct sgp_sim_absence *absence = &campaign->absences[i];
        absence->node = any_node(campaign);
        span(campaign, &absence->from, &absence->to);
    }
    if (!chance(campaign, 0.1) || campaign->exact)
        return;
    /* gone for good, but not before everybody can have begun */
    campaign->absences[options->absence_count++] =
        (struct sgp_sim_absence){.node = any_spare(campaign),
            .from = campaign->window + 10 * SGP_SECOND,
            .to = SGP_TIME_NEVER};
    campaign->whole = false;
}

static void draw_crashes(struct campaign *campaign)
{
    struct sgp_sim_options *options = &campaign->options;
    options->crashes = campaign->crashes;
    options->crash_count = count(campaign, 6);
    uint32_t victim = any_node(campaign); /* some die again and again */
    for (uint32_t i = 0; i < options->crash_count; i++) {
        struct sgp_sim_crash *crash = &campaign->crashes[i];
        crash->node = chance(campaign, 0.4) ? victim : any_node(campaign);
        crash->forgets = chance(campaign, 0.15);
        span(campaign, &crash->at, &crash->back);
    }
}

static void draw_clocks(struct campaign *campaign)
{
    struct sgp_sim_options *options = &campaign->options;
    options->clocks = campaign->clocks;
    options->clock_count = count(campaign, 3);
    for (uint32_t i = 0; i < options->clock_count; i++) {
        sgp_time from, to;
        span(campaign, &from, &to);
        bool leaps = chance(campaign, 0.5);
        sgp_time ahead = (sgp_time)(spread(campaign, 0.01, 5000) * (double)SGP_SECOND);
        campaign->clocks[i] = (struct sgp_sim_clock){
            .node = any_node(campaign), .at = from, .leap = leaps ? ahead : from - to};
    }
}

static void command(
    struct campaign *campaign, sgp_time time, uint32_t node, enum sgp_event_type type)
{
    campaign->commands[campaign->command_count++] =
        (struct campaign_command){.time = time, .node = node, .type = type};
}

/* Somebody goes for good, maybe before others have greeted it: who begins, or begins again, cannot wait
 * for everybody's hello. */
static void lose_one(struct campaign *campaign)
{
    campaign->whole = false;
    campaign->options.start = 1;
}

/* Pauses, a clean end from which one may be started again, and a goal that is reached early. */
static void draw_commands(struct campaign *campaign)
{
    struct sgp_sim_options *options = &campaign->options;
    uint32_t pauses = count(campaign, 3);
    for (uint32_t i = 0; i < pauses; i++) {
        uint32_t node = any_node(campaign);
        sgp_time from, to;
        span(campaign, &from, &to);
        command(campaign, from, node, SGP_EVENT_PAUSE);
        command(campaign, to, node, SGP_EVENT_RESUME);
    }
    if (chance(campaign, 0.1)) {
        command(campaign, moment(campaign), any_node(campaign), SGP_EVENT_ENOUGH);
        campaign->recovers = false; /* it may all be over while the faults go on */
    }
    if (!chance(campaign, 0.25))
        return;
    struct sgp_sim_crash *again = &campaign->crashes[options->crash_count];
    again->node = any_spare(campaign);
    sgp_time from, back = campaign->window;
    span(campaign, &from, &again->at);
    again->back = back > again->at ? back : again->at + 1;
    command(campaign, from, again->node, SGP_EVENT_STOP);
    if (chance(campaign, 0.7) || campaign->exact)
        options->crash_count++; /* its machine is started again */
    else
        lose_one(campaign);
}

/* ---- faults of the network ---- */

static void draw_cuts(struct campaign *campaign)
{
    struct sgp_sim_options *options = &campaign->options;
    options->cuts = campaign->cuts;
    options->cut_count = count(campaign, 3);
    for (uint32_t i = 0; i < options->cut_count; i++) {
        struct sgp_sim_cut *cut = &campaign->cuts[i];
        double part = sgp_random_double(&campaign->random);
        *cut = (struct sgp_sim_cut){.nodes = campaign->cut_nodes[i],
            .way = (enum sgp_sim_way)below(campaign, SGP_SIM_INWARD + 1)};
        for (uint32_t node = 0; node < campaign->topology->node_count; node++)
            if (chance(campaign, part))
                campaign->cut_nodes[i][cut->node_count++] = node;
        span(campaign, &cut->from, &cut->to);
    }
}

/* Two ends of an edge, in either order. */
static bool any_edge(struct campaign *campaign, uint32_t *ret_a, uint32_t *ret_b)
{
    const struct sgp_topology *topology = campaign->topology;
    const struct sgp_phase *phase = &topology->phases[below(campaign, topology->phase_count)];
    if (phase->edge_count == 0)
        return false;
    const struct sgp_edge *edge = &phase->out[below(campaign, phase->edge_count)];
    bool turned = chance(campaign, 0.5);
    *ret_a = turned ? edge->target : edge->source;
    *ret_b = turned ? edge->source : edge->target;
    return true;
}

static void draw_links(struct campaign *campaign)
{
    struct sgp_sim_options *options = &campaign->options;
    options->clogs = campaign->clogs;
    options->half_opens = campaign->half_opens;
    options->swizzles = campaign->swizzles;
    uint32_t clogs = count(campaign, 6), half_opens = count(campaign, 6);
    for (uint32_t i = 0; i < clogs; i++) {
        struct sgp_sim_clog *clog = &campaign->clogs[options->clog_count];
        if (any_edge(campaign, &clog->source, &clog->target))
            options->clog_count++;
        span(campaign, &clog->from, &clog->to);
    }
    for (uint32_t i = 0; i < half_opens; i++) {
        struct sgp_sim_half_open *half = &campaign->half_opens[options->half_open_count];
        if (any_edge(campaign, &half->loser, &half->keeper))
            options->half_open_count++;
        half->at = moment(campaign);
    }
    options->swizzle_count = count(campaign, 2);
    for (uint32_t i = 0; i < options->swizzle_count; i++) {
        campaign->swizzles[i].node = any_node(campaign);
        span(campaign, &campaign->swizzles[i].from, &campaign->swizzles[i].to);
    }
}

/* ---- membership ---- */

/* The machine of one that leaves may be started again, with its ledger put aside: a new member, while some
 * still owe the one before. */
static void draw_rejoin(struct campaign *campaign, uint32_t node)
{
    struct sgp_sim_options *options = &campaign->options;
    if (options->crash_count == CAMPAIGN_FAULTS_MAX || chance(campaign, 0.5))
        return;
    struct sgp_sim_crash *again = &campaign->crashes[options->crash_count++];
    again->node = node;
    span(campaign, &again->at, &again->back);
}

/* Some leave for good, in the middle of everything else that happens to them. */
static void draw_leaving(struct campaign *campaign)
{
    if (!chance(campaign, 0.2) || campaign->exact)
        return;
    uint32_t leavers = 1 + below(campaign, 2);
    for (uint32_t i = 0; i < leavers; i++) {
        uint32_t node = any_spare(campaign);
        command(campaign, moment(campaign), node, SGP_EVENT_LEAVE);
        /* without an heir, or with one that went before it answered, it waits until it is stopped */
        command(campaign, campaign->window + CAMPAIGN_RECOVERY_NS, node, SGP_EVENT_STOP);
        draw_rejoin(campaign, node);
    }
    lose_one(campaign);
}

/* One fleet in five does not wait for ever. */
static void draw_patience(struct campaign *campaign)
{
    if (chance(campaign, 0.2))
        campaign->options.patience_ns =
            (sgp_time)(spread(campaign, 0.1, 10) * (double)campaign->longest) + 1;
}

/* ---- backups ---- */

/* The records of some crashes are put back from backups. Drawn last, so that all else stays as it was. */
static void draw_backups(struct campaign *campaign)
{
    bool some = chance(campaign, 0.5);
    for (uint32_t i = 0; i < campaign->options.crash_count && some; i++) {
        struct sgp_sim_crash *crash = &campaign->crashes[i];
        double part = sgp_random_double(&campaign->random);
        if (!crash->forgets && chance(campaign, 0.6))
            crash->saved = (sgp_time)(part * (double)crash->at);
        campaign->restores += crash->saved > 0;
    }
}

/* ---- machines ---- */

/* Mostly what stands beside a node dies with it, and it with that. */
static void draw_machines(struct campaign *campaign)
{
    const struct sgp_topology *topology = campaign->topology;
    uint32_t crashes = campaign->options.crash_count;
    for (uint32_t i = 0; i < crashes; i++) {
        struct sgp_sim_crash crash = campaign->crashes[i];
        uint32_t owner = sgp_topology_colocated_owner(topology, crash.node);
        uint32_t other = topology->nodes[crash.node].colocated
                             ? sgp_topology_machine(topology, crash.node)
                             : owner;
        if (other == SGP_NODE_NONE || !chance(campaign, 0.8))
            continue;
        crash.node = other;
        campaign->restores += crash.saved > 0;
        campaign->crashes[campaign->options.crash_count++] = crash;
    }
}

/* ---- a token ---- */

static bool may_be_lost(const struct campaign *campaign)
{
    bool lost = !campaign->whole;
    for (uint32_t i = 0; i < campaign->options.crash_count; i++)
        lost = lost || campaign->crashes[i].forgets || campaign->crashes[i].saved > 0;
    return lost;
}

/* With whoever is gone, or with a ledger, the token may be: then it is made anew at one node after another, since some
 * may be gone, too. In one fleet in ten somebody does so amid everything, lost or not. */
static void draw_remaking(struct campaign *campaign)
{
    uint32_t nodes = campaign->topology->node_count;
    uint32_t first = any_node(campaign);
    if (chance(campaign, 0.1))
        command(campaign, moment(campaign), any_node(campaign), SGP_EVENT_TOKEN);
    for (uint32_t i = 0; i < 8 && may_be_lost(campaign); i++)
        command(campaign, campaign->window + (12 + 8 * (sgp_time)i) * SGP_SECOND,
            (first + i) % nodes, SGP_EVENT_TOKEN);
}

/* ---- what is kept ---- */

/* The target of one that dies has stood still, and itself it has been paused, since a while before: what it gave
 * last is not acknowledged, its checkpoint is of the moment of its record, and the snapshot comes back with it. */
static void draw_rest(struct campaign *campaign)
{
    struct sgp_sim_options *options = &campaign->options;
    bool room = options->absence_count < CAMPAIGN_FAULTS_MAX &&
                campaign->command_count + 2 <= 2 * CAMPAIGN_FAULTS_MAX;
    if (options->checkpoint_ns == 0 || options->crash_count == 0 || !room || chance(campaign, 0.4))
        return;
    const struct sgp_sim_crash *crash = &campaign->crashes[below(campaign, options->crash_count)];
    uint32_t edges;
    const struct sgp_edge *edge =
        sgp_phase_out(&campaign->topology->phases[0], crash->node, &edges);
    sgp_time pause = crash->at - 2 * options->checkpoint_ns;
    sgp_time still = pause - 2 * options->local_steps * options->compute_ns;
    if (edges == 0 || still < 1)
        return;
    edge += below(campaign, edges);
    campaign->absences[options->absence_count++] =
        (struct sgp_sim_absence){.node = edge->target, .from = still, .to = crash->back + 1};
    command(campaign, pause, crash->node, SGP_EVENT_PAUSE);
    command(campaign, crash->back + 1, crash->node, SGP_EVENT_RESUME);
}

/* ---- files ---- */

/* A reload makes no node a relay. Where it turns compensation on, the first updates have no base; the simulator's checks do not know
 * of that. */
static bool may_follow(const struct sgp_topology *former, const struct sgp_topology *next)
{
    bool may = former->digest != next->digest &&
               former->phases[0].staleness.damping == next->phases[0].staleness.damping;
    for (uint32_t i = 0; i < former->node_count; i++)
        may = may && former->nodes[i].relay == next->nodes[i].relay;
    return may;
}

/* Whether by that file each node has another neighbour than `odd`. A node without one that is started again greets nobody, and rightly
 * waits: its only neighbour has another file, without that edge. */
static bool may_do_without(const struct sgp_topology *topology, uint32_t odd)
{
    bool greets[CAMPAIGN_NODES_MAX + CAMPAIGN_DIMENSION] = {false}; /* co-located owners */
    for (uint32_t p = 0; p < topology->phase_count; p++)
        for (uint32_t i = 0; i < topology->node_count; i++) {
            uint32_t count;
            const struct sgp_edge *edges = sgp_phase_out(&topology->phases[p], i, &count);
            for (uint32_t e = 0; e < count && i != odd; e++)
                if (edges[e].target != odd)
                    greets[i] = greets[edges[e].target] = true;
        }
    bool all = true;
    for (uint32_t i = 0; i < topology->node_count; i++)
        all = all && (greets[i] || i == odd);
    return all;
}

/* The learning rate suits the least weight by the other file, too. */
static int suit_other(struct campaign *campaign, struct sgp_error *error)
{
    struct sgp_analysis analysis;
    int status = sgp_analyse(campaign->other, &analysis);
    if (status < 0)
        return sgp_fail(error, status, "%s", sgp_strerror(status));
    campaign->eta = fmin(campaign->eta, eta_most(campaign, &analysis));
    return 0;
}

/* In one fleet of three all nodes but one get another file, amid everything else: files differ at the end, and stay so. Drawn
 * last, so that all else stays as it was. */
static int draw_missed_reload(struct campaign *campaign, uint32_t nodes, struct sgp_error *error)
{
    struct sgp_sim_options *options = &campaign->options;
    if (!chance(campaign, 1 / 3.0) || campaign->exact)
        return 0;
    int status = draw_topology(campaign, nodes, &campaign->other_family, &campaign->other, error);
    if (status < 0 || !may_follow(campaign->topology, campaign->other))
        return status;
    campaign->odd = any_node(campaign);
    if (options->crash_count > 0 && !may_do_without(campaign->other, campaign->odd))
        return 0;
    options->reloads = campaign->reloads;
    for (uint32_t i = 0; i < campaign->topology->node_count; i++) {
        campaign->reloads[options->reload_count++] =
            (struct sgp_sim_reload){.node = i, .topology = campaign->topology};
        if (i != campaign->odd)
            campaign->reloads[options->reload_count++] = (struct sgp_sim_reload){
                .node = i, .at = moment(campaign), .topology = campaign->other};
    }
    options->start = 1; /* by other files some never greet */
    campaign->apart = true;
    return suit_other(campaign, error);
}

/* ---- compression ---- */

/* Where messages are lost, a connection breaks every few seconds, and a share of it begins again. So all values
 * take a second at most, or no share of them would ever arrive. */
static void suit_bandwidth(struct campaign *campaign)
{
    struct sgp_sim_options *options = &campaign->options;
    if (options->bandwidth > 0 && options->loss > 0)
        options->bandwidth = fmax(options->bandwidth, 4.0 * (double)options->dimension);
}

static void code(struct campaign *campaign, const char *word, struct sgp_chooser *chooser)
{
    int code = sgp_chooser_parse(word, SGP_CHOOSER_WORDS, NULL, chooser);
    sgp_assert(code == 0);
    bool coded = campaign->options.chooser.compressor != SGP_COMPRESSOR_NONE ||
                 campaign->options.copies.compressor != SGP_COMPRESSOR_NONE;
    uint32_t parts = campaign->exact ? campaign->topology->slices : 1;
    bool wide = parts > 1 && parts <= CAMPAIGN_PARTS_MAX;
    campaign->options.dimension = !coded ? CAMPAIGN_DIMENSION
                                  : wide ? parts * SGP_PART_BLOCKED_LEAST + 100
                                         : CAMPAIGN_CODED;
    suit_bandwidth(campaign);
}

void campaign_code(struct campaign *campaign, const char *word)
{
    code(campaign, word, &campaign->options.chooser);
}

void campaign_code_copies(struct campaign *campaign, const char *word)
{
    code(campaign, word, &campaign->options.copies);
}

/* Of owners that wait for their workers every other one codes its copies. Drawn last, too. */
static void draw_copies(struct campaign *campaign)
{
    static const char *const words[] = {"fp16", "int8", "int4", "top:0.2"};
    bool waits = sgp_method_waits(campaign->options.method);
    bool owned = campaign->topology->owner != SGP_NODE_NONE && waits;
    if (owned && !sgp_topology_has_token(campaign->topology) && chance(campaign, 0.5))
        campaign_code_copies(campaign, words[below(campaign, 4)]);
}

/* In one fleet of four shares are coded, and in three of four of exact cycles. Drawn last, so that
 * all else stays as it was. */
static void draw_compression(struct campaign *campaign)
{
    if (!chance(campaign, campaign->exact ? 0.75 : 0.25))
        return;
    enum sgp_compressor of_shares[SGP_COMPRESSOR_MOST];
    uint32_t count = 0;
    for (int c = SGP_COMPRESSOR_NONE + 1; c <= SGP_COMPRESSOR_MOST; c++)
        if (sgp_compressor_is_of_shares((enum sgp_compressor)c))
            of_shares[count++] = (enum sgp_compressor)c;
    campaign_code(campaign, sgp_compressor_word(of_shares[below(campaign, count)]));
    if (chance(campaign, 0.25) && campaign->options.dimension == CAMPAIGN_CODED)
        campaign->options.dimension = CAMPAIGN_BLOCKS;
}

/* ---- all of it ---- */

/* Quadratics with unlike minima, from unlike starts. */
static int make_trainer(void *context, uint32_t node, struct sgp_trainer **ret_trainer)
{
    const struct campaign *campaign = context;
    const uint64_t dimension = campaign->options.dimension;
    static float centre[CAMPAIGN_VALUES_MAX], start[CAMPAIGN_VALUES_MAX];
    for (uint32_t c = 0; c < dimension; c++) {
        centre[c] = (float)((node * 5 + c * 3) % 8) - 4;
        start[c] = (float)((node * 3 + c * 5) % 8) - 4;
    }
    return sgp_quadratic_create(dimension, centre, start, campaign->eta, ret_trainer);
}

int campaign_init(struct campaign *campaign, const struct sgp_method *method, uint32_t nodes,
    uint64_t seed, bool exact, struct sgp_error *error)
{
    *campaign = (struct campaign){.seed = seed, .whole = true, .exact = exact};
    sgp_random_init(&campaign->random, seed, STREAM_CAMPAIGN + method->number);
    sgp_sim_options_init(&campaign->options);
    campaign->options.method = method;
    campaign->options.context = campaign;
    campaign->options.trainer = make_trainer;
    int status = draw_topology(campaign, nodes, &campaign->family, &campaign->topology, error);
    if (status == 0)
        status = suit_fleet(campaign, error);
    if (status < 0)
        return status;
    draw_fleet(campaign);
    draw_stragglers(campaign);
    draw_absences(campaign);
    draw_crashes(campaign);
    draw_clocks(campaign);
    draw_commands(campaign);
    draw_cuts(campaign);
    draw_links(campaign);
    draw_leaving(campaign);
    draw_patience(campaign);
    draw_backups(campaign);
    draw_rest(campaign);
    draw_machines(campaign);
    if (campaign->options.method->wants == SGP_WANTS_TOKEN)
        draw_remaking(campaign);
    status = draw_missed_reload(campaign, nodes, error);
    draw_compression(campaign);
    draw_copies(campaign);
    return status;
}

void campaign_finish(struct campaign *campaign)
{
    sgp_topology_destroy(campaign->topology);
    sgp_topology_destroy(campaign->other);
}

void campaign_tell(const struct campaign *campaign, char *text, size_t bytes)
{
    const struct sgp_sim_options *o = &campaign->options;
    (void)snprintf(text, bytes,
        "%s, %lld rounds of %u x %.3g ms, latency %.3g ms, bandwidth %.3g B/s, loss %.2g, faults "
        "until %.3g s: "
        "%u stragglers, %u absences, %u crashes (%u with backups), %u clocks, %u cuts, %u clogs, "
        "%u swizzles, %u half-open, %u commands, patience %.3g s, shares of %llu values %s, copies "
        "%s%s%s%s",
        campaign->family, (long long)o->rounds, o->local_steps, (double)o->compute_ns * 1e-6,
        (double)o->latency_ns * 1e-6, o->bandwidth, o->loss, (double)campaign->window * 1e-9,
        o->straggler_count, o->absence_count, o->crash_count, campaign->restores, o->clock_count,
        o->cut_count, o->clog_count, o->swizzle_count, o->half_open_count, campaign->command_count,
        (double)o->patience_ns * 1e-9, (unsigned long long)o->dimension,
        o->chooser.compressor == SGP_COMPRESSOR_NONE ? "plain" : o->chooser.word,
        o->copies.compressor == SGP_COMPRESSOR_NONE ? "plain" : o->copies.word,
        campaign->apart ? ", in the end all but one with " : "",
        campaign->apart ? campaign->other_family : "",
        !campaign->whole      ? ", not whole in the end"
        : !campaign->recovers ? ", too short to recover"
                              : "");
}

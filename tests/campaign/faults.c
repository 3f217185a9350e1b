/* SPDX-License-Identifier: Apache-2.0 */
/* The faults of a campaign: of every kind, all of which end while training goes on. */
#include "draw.h"

/* ---- when, and to whom ---- */

static uint32_t any_node(struct campaign *campaign)
{
    return draw_below(campaign, campaign->topology->node_count);
}

/* One that may be gone for good: owners stay, which come first, or last if they train. */
static uint32_t any_spare(struct campaign *campaign)
{
    const struct sgp_topology *topology = campaign->topology;
    uint32_t owners = topology->owners, first = topology->nodes[0].owns ? owners : 0;
    return first + draw_below(campaign, topology->node_count - owners);
}

/* How many faults of a kind: none in every second campaign. */
static uint32_t count(struct campaign *campaign, uint32_t most)
{
    return draw_chance(campaign, 0.5) ? 0 : 1 + draw_below(campaign, most);
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
            draw_spread(campaign, 1, 6); /* not faster, so that training outlasts the faults */
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
    if (!draw_chance(campaign, 0.1) || campaign->exact)
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
        crash->node = draw_chance(campaign, 0.4) ? victim : any_node(campaign);
        crash->forgets = draw_chance(campaign, 0.15);
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
        bool leaps = draw_chance(campaign, 0.5);
        sgp_time ahead = (sgp_time)(draw_spread(campaign, 0.01, 5000) * (double)SGP_SECOND);
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
    if (draw_chance(campaign, 0.1)) {
        command(campaign, moment(campaign), any_node(campaign), SGP_EVENT_ENOUGH);
        campaign->recovers = false; /* it may all be over while the faults go on */
    }
    if (!draw_chance(campaign, 0.25))
        return;
    struct sgp_sim_crash *again = &campaign->crashes[options->crash_count];
    again->node = any_spare(campaign);
    sgp_time from, back = campaign->window;
    span(campaign, &from, &again->at);
    again->back = back > again->at ? back : again->at + 1;
    command(campaign, from, again->node, SGP_EVENT_STOP);
    if (draw_chance(campaign, 0.7) || campaign->exact)
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
            .way = (enum sgp_sim_way)draw_below(campaign, SGP_SIM_INWARD + 1)};
        for (uint32_t node = 0; node < campaign->topology->node_count; node++)
            if (draw_chance(campaign, part))
                campaign->cut_nodes[i][cut->node_count++] = node;
        span(campaign, &cut->from, &cut->to);
    }
}

/* Two ends of an edge, in either order. */
static bool any_edge(struct campaign *campaign, uint32_t *ret_a, uint32_t *ret_b)
{
    const struct sgp_topology *topology = campaign->topology;
    const struct sgp_phase *phase = &topology->phases[draw_below(campaign, topology->phase_count)];
    if (phase->edge_count == 0)
        return false;
    const struct sgp_edge *edge = &phase->out[draw_below(campaign, phase->edge_count)];
    bool turned = draw_chance(campaign, 0.5);
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
    if (options->crash_count == CAMPAIGN_FAULTS_MAX || draw_chance(campaign, 0.5))
        return;
    struct sgp_sim_crash *again = &campaign->crashes[options->crash_count++];
    again->node = node;
    span(campaign, &again->at, &again->back);
}

/* Some leave for good, in the middle of everything else that happens to them. */
static void draw_leaving(struct campaign *campaign)
{
    if (!draw_chance(campaign, 0.2) || campaign->exact)
        return;
    uint32_t leavers = 1 + draw_below(campaign, 2);
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
    if (draw_chance(campaign, 0.2))
        campaign->options.patience_ns =
            (sgp_time)(draw_spread(campaign, 0.1, 10) * (double)campaign->longest) + 1;
}

/* ---- backups ---- */

/* The records of some crashes are put back from backups. Drawn last, so that all else stays as it was. */
static void draw_backups(struct campaign *campaign)
{
    bool some = draw_chance(campaign, 0.5);
    for (uint32_t i = 0; i < campaign->options.crash_count && some; i++) {
        struct sgp_sim_crash *crash = &campaign->crashes[i];
        double part = sgp_random_double(&campaign->random);
        if (!crash->forgets && draw_chance(campaign, 0.6))
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
        if (other == SGP_NODE_NONE || !draw_chance(campaign, 0.8))
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

/* A node that is gone, or a lost ledger, may have had the token. Then an order makes it anew at one node after another,
 * since some of them may be gone, too. In one fleet of ten the order comes at any time, whether the token is lost or not. */
static void draw_remaking(struct campaign *campaign)
{
    uint32_t nodes = campaign->topology->node_count;
    uint32_t first = any_node(campaign);
    if (draw_chance(campaign, 0.1))
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
    if (options->checkpoint_ns == 0 || options->crash_count == 0 || !room ||
        draw_chance(campaign, 0.4))
        return;
    const struct sgp_sim_crash *crash =
        &campaign->crashes[draw_below(campaign, options->crash_count)];
    uint32_t edges;
    const struct sgp_edge *edge =
        sgp_phase_out(&campaign->topology->phases[0], crash->node, &edges);
    sgp_time pause = crash->at - 2 * options->checkpoint_ns;
    sgp_time still = pause - 2 * options->local_steps * options->compute_ns;
    if (edges == 0 || still < 1)
        return;
    edge += draw_below(campaign, edges);
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

/* Whether by that file each node has another neighbour than `odd`. A node without one waits after its restart and greets
 * nobody: its only neighbour has another file, without that edge. */
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
    campaign->eta = fmin(campaign->eta, draw_eta_most(campaign, &analysis));
    return 0;
}

/* In one fleet of three all nodes but one get another file, amid everything else: files differ at the end, and stay so. Drawn
 * last, so that all else stays as it was. */
static int draw_missed_reload(struct campaign *campaign, uint32_t nodes, struct sgp_error *error)
{
    struct sgp_sim_options *options = &campaign->options;
    if (!draw_chance(campaign, 1 / 3.0) || campaign->exact)
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

/* ---- all of them ---- */

int draw_faults(struct campaign *campaign, uint32_t nodes, struct sgp_error *error)
{
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
    return draw_missed_reload(campaign, nodes, error);
}

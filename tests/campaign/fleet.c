/* SPDX-License-Identifier: Apache-2.0 */
/* The fleet of a campaign: a topology that suits the method, and the options that suit the topology. */
#include "draw.h"

#include "sgp/generate.h"

#define ETA 0.05
#define CONTRACTION 1e-4 /* of a healthy fleet's disagreement, by the final cycles */
#define MIXING_ROUNDS_MAX 4000.0

static struct sgp_staleness draw_staleness(struct campaign *campaign)
{
    enum sgp_damping damping = (enum sgp_damping)draw_below(campaign, SGP_DAMPING_COMPENSATE + 1);
    bool compensates = damping == SGP_DAMPING_COMPENSATE;
    return (struct sgp_staleness){.damping = damping,
        .compensation = compensates ? draw_spread(campaign, 0.1, 3) : 0,
        .most = draw_chance(campaign, 0.5) ? 0 : 1 + draw_below(campaign, 8)};
}

static struct sgp_generate_options draw_owner(struct campaign *campaign, uint32_t nodes)
{
    struct sgp_generate_options options = {.family = "owner", .nodes = nodes};
    bool several = campaign->seed % 2 == 0 && nodes > 2;
    options.owners = several ? CAMPAIGN_DIMENSION : 1;
    options.members = campaign->seed % 4 >= 2;
    if (sgp_method_waits(campaign->options.method))
        options.backup = draw_below(campaign, nodes < 5 ? nodes - options.owners : 4);
    else
        options.staleness = draw_staleness(campaign);
    return options;
}

static struct sgp_generate_options draw_token(struct campaign *campaign, uint32_t nodes)
{
    struct sgp_generate_options options = {.family = "token", .nodes = nodes};
    bool fixed = draw_chance(campaign, 0.25);
    options.delay.token = fixed ? SGP_TOKEN_FIXED : SGP_TOKEN_DYNAMIC;
    if (!fixed) {
        options.delay.mean = draw_chance(campaign, 0.3);
        options.delay.most = draw_chance(campaign, 0.5) ? 0 : 1 + draw_below(campaign, 12);
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
        &sgp_generate_families[first + draw_below(campaign, end - first)];
    bool group = family->options & SGP_GENERATE_GROUP, hubs = family->options & SGP_GENERATE_HUBS;
    return (struct sgp_generate_options){.family = family->name,
        .nodes = nodes,
        .group = group ? 2 + draw_below(campaign, nodes / 2) : 0,
        .hubs = hubs ? 1 + draw_below(campaign, nodes < 3 ? nodes : 3) : 0,
        .pieces = draw_chance(campaign, 0.5) ? 0 : 2};
}

static struct sgp_generate_options draw_gossip(struct campaign *campaign, uint32_t nodes)
{
    uint32_t families = count_gossip();
    const struct sgp_generate_family *family =
        &sgp_generate_families[draw_below(campaign, families)];
    bool peers = family->options & SGP_GENERATE_PEERS;
    bool degree = family->options & SGP_GENERATE_DEGREE;
    return (struct sgp_generate_options){.family = family->name,
        .nodes = nodes,
        .peers = peers ? 1 + draw_below(campaign, 3) : 0,
        .degree = degree ? 1 + draw_below(campaign, nodes - 1 < 4 ? nodes - 1 : 4) : 0,
        .seed = family->options & SGP_GENERATE_SEED ? campaign->seed : 0};
}

int draw_topology(struct campaign *campaign, uint32_t nodes, const char **ret_family,
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

int campaign_suit_exact(const struct sgp_method *method, struct sgp_error *error)
{
    struct sgp_generate_options options = {.family = "all-reduce-ring", .nodes = 3};
    struct sgp_topology *topology;
    int status = sgp_generate(&options, error, &topology);
    if (status < 0)
        return status;
    status = sgp_method_suit(method, topology, error, NULL);
    sgp_topology_destroy(topology);
    return status;
}

double draw_eta_most(const struct campaign *campaign, const struct sgp_analysis *analysis)
{
    /* The step of a node is eta / w: a node that trains at its weight floor must not diverge. */
    double weight_floor = SGP_STARVING * analysis->weight_min / (1 + analysis->out_degree_max);
    /* And stale updates add up: of N workers, each by as much, to a step N times as long. */
    bool adds_up = analysis->owner && !sgp_method_waits(campaign->options.method);
    return adds_up           ? ETA / campaign->topology->node_count
           : analysis->owner ? ETA
                             : fmin(ETA, weight_floor);
}

/* What the topology asks of the fleet: a learning rate that suits its least weight, and as many final
 * cycles as a healthy fleet needs to forget what it disagreed on. */
static int suit_fleet(struct campaign *campaign, struct sgp_error *error)
{
    struct sgp_analysis analysis;
    int status = sgp_analyse(campaign->topology, &analysis);
    if (status < 0)
        return sgp_fail(error, status, "%s", sgp_strerror(status));
    campaign->eta_most = draw_eta_most(campaign, &analysis);
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
    double step = draw_spread(campaign, 0.005, 0.3) * (double)SGP_SECOND;
    double window = steps * step / 2;
    campaign->recovers = draw_chance(campaign, 0.67);
    if (campaign->recovers) {
        window = draw_spread(campaign, 1, 40) * (double)SGP_SECOND;
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

static void draw_options(struct campaign *campaign)
{
    struct sgp_sim_options *options = &campaign->options;
    uint32_t nodes = campaign->topology->node_count;
    options->seed = campaign->seed;
    options->dimension = CAMPAIGN_DIMENSION;
    options->rounds = 60 + draw_below(campaign, 100);
    options->local_steps = 1 + draw_below(campaign, 3);
    options->overlap = draw_below(campaign, 5);
    options->backup_neighbours = draw_chance(campaign, 0.7) ? 0 : 1 + draw_below(campaign, 2);
    options->start = draw_chance(campaign, 0.8) ? SGP_START_ALL : 1 + draw_below(campaign, nodes);
    options->compute_jitter =
        draw_chance(campaign, 0.3) ? 0 : 0.9 * sgp_random_double(&campaign->random);
    options->latency_ns = (sgp_time)(draw_spread(campaign, 1e-5, 0.1) * (double)SGP_SECOND);
    options->bandwidth = draw_chance(campaign, 0.5) ? 0 : draw_spread(campaign, 1e3, 1e8);
    options->linger_ns = linger(options, nodes);
    options->loss = draw_chance(campaign, 0.5) ? 0 : draw_spread(campaign, 1e-4, 0.05);
    options->through_wire = draw_chance(campaign, 0.25);
    if (draw_chance(campaign, 0.3)) {
        options->compute_tail = draw_spread(campaign, 1.1, 4);
        options->compute_tail_max = 20;
    }
    campaign->eta = draw_chance(campaign, 0.3) ? 0 : campaign->eta_most;
    draw_pace(campaign);
    double step = (double)options->compute_ns * options->local_steps;
    if (draw_chance(campaign, 0.5))
        options->checkpoint_ns = (sgp_time)(draw_spread(campaign, 0.5, 20) * step) + 1;
}

int draw_fleet(struct campaign *campaign, uint32_t nodes, struct sgp_error *error)
{
    int status = draw_topology(campaign, nodes, &campaign->family, &campaign->topology, error);
    if (status == 0)
        status = suit_fleet(campaign, error);
    if (status == 0)
        draw_options(campaign);
    return status;
}

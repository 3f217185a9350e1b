/* SPDX-License-Identifier: Apache-2.0 */
/* Ends of fleets in which one node has missed a reload: its file has other cycles than all the others' files, and stays so.
 * Every pair of families that a method takes is tried, with 16 nodes. */
#include "sim_fleet.h"

#include "core/core.h"

#define NODES 16u
#define FAMILIES_MAX 32u

/* Files for one method, one of each family that it takes. */
struct files {
    const struct sgp_method *method;
    uint32_t count;
    const char *family[FAMILIES_MAX];
    struct sgp_topology *topology[FAMILIES_MAX];
};

static void make_files(struct files *files, const char *method)
{
    *files = (struct files){.method = sgp_method_find(method)};
    for (const struct sgp_generate_family *f = sgp_generate_families; f->name != NULL; f++) {
        struct sgp_generate_options options = {.family = f->name,
            .nodes = NODES,
            .seed = f->options & SGP_GENERATE_SEED ? 3 : 0,
            .group = f->options & SGP_GENERATE_GROUP ? 4 : 0};
        struct sgp_topology *topology;
        cr_assert(zero(int, sgp_generate(&options, NULL, &topology)), "%s", f->name);
        if (sgp_method_suit(files->method, topology, NULL, NULL) < 0) {
            sgp_topology_destroy(topology);
            continue;
        }
        files->family[files->count] = f->name;
        files->topology[files->count++] = topology;
    }
}

static void destroy_files(struct files *files)
{
    for (uint32_t i = 0; i < files->count; i++)
        sgp_topology_destroy(files->topology[i]);
}

/* No node may become a relay, or cease to be one, by a reload. */
static bool keeps_relays(const struct sgp_topology *a, const struct sgp_topology *b)
{
    bool keeps = true;
    for (uint32_t i = 0; i < NODES; i++)
        keeps = keeps && a->nodes[i].relay == b->nodes[i].relay;
    return keeps;
}

struct missed {
    struct fleet *fleet;
    uint32_t odd;  /* it stays with the former file, */
    sgp_time late; /* until then; NEVER: for good */
    struct sgp_sim_reload reloads[2 * NODES + 1];
};

/* All begin with file `former` and get file `next` one after the other, the odd one late. */
static void open_missed(
    struct missed *missed, const struct files *files, uint32_t former, uint32_t next, sgp_time late)
{
    struct fleet *fleet = missed->fleet = fleet_create();
    uint32_t count = 0;
    missed->odd = (7 * former + 3 * next) % NODES;
    for (uint32_t i = 0; i < NODES; i++) {
        sgp_time at = 40 * SGP_MILLISECOND + ((i * 5) % NODES) * 3 * SGP_MILLISECOND;
        missed->reloads[count++] = (struct sgp_sim_reload){i, 0, files->topology[former]};
        at = i == missed->odd ? late : at;
        if (at != SGP_TIME_NEVER)
            missed->reloads[count++] = (struct sgp_sim_reload){i, at, files->topology[next]};
        fleet->centre[i][0] = (float)i - 8;
    }
    fleet->topology = files->topology[former];
    fleet->eta = 0.05;
    fleet->options.method = files->method;
    fleet->options.overlap = 1;
    fleet->options.rounds = 16;
    fleet->options.compute_ns = 10 * SGP_MILLISECOND;
    fleet->options.compute_jitter = 0.3;
    fleet->options.reloads = missed->reloads;
    fleet->options.reload_count = count;
    fleet_open(fleet);
}

static void close_missed(struct missed *missed)
{
    missed->fleet->topology = NULL; /* which is of the files */
    fleet_destroy(missed->fleet);
}

static void run_until(struct missed *missed, const struct files *files, uint32_t former,
    uint32_t next, sgp_time until)
{
    int status = sgp_sim_run(missed->fleet->sim, until, &missed->fleet->error);
    cr_assert(zero(int, status), "%s, n%u misses %s and stays with %s: %s", files->method->name,
        missed->odd, files->family[next], files->family[former], missed->fleet->error.text);
}

/* Neighbours that can reach each other hold one model, or say that they do not. (A file may leave the odd one, or all behind it,
 * without any neighbour.) */
static double distance_untold(const struct fleet *fleet)
{
    double most = 0;
    for (uint32_t i = 0; i < NODES; i++) {
        const struct sgp_node *node = sgp_sim_node(fleet->sim, i);
        for (uint32_t k = 0; k < sgp_node_link_count(node); k++) {
            struct sgp_peer_status peer;
            float own, other;
            sgp_node_link_status(node, k, &peer);
            const struct sgp_node *far = sgp_sim_node(fleet->sim, peer.peer);
            if (peer.state != SGP_LINK_UP || sgp_node_disagreeing(node) > 0 ||
                sgp_node_disagreeing(far) > 0)
                continue;
            sgp_sim_estimate(fleet->sim, i, &own);
            sgp_sim_estimate(fleet->sim, peer.peer, &other);
            most = fmax(most, fabs((double)own - (double)other));
        }
    }
    return most;
}

/* All have finished, owe nothing, have all weight, and agree. */
static void expect_end(
    const struct missed *missed, const struct files *files, uint32_t former, uint32_t next)
{
    struct sgp_sim_summary summary = fleet_summary(missed->fleet);
    double weight = 0, apart = distance_untold(missed->fleet);
    for (uint32_t i = 0; i < NODES; i++)
        weight += sgp_topology_starts(files->topology[former], i);
    cr_expect(eq(u32, summary.finished, NODES), "%s, n%u misses %s and stays with %s",
        files->method->name, missed->odd, files->family[next], files->family[former]);
    cr_expect(le(dbl, fabs(summary.weight - weight), 1e-9), "%s: %s, %s: %.17g",
        files->method->name, files->family[former], files->family[next], summary.weight);
    cr_expect(le(dbl, fabs(summary.weight_in_flight), 1e-12));
    cr_expect(le(dbl, apart, 1e-3), "%s: %s, %s: %g apart, and nobody says so", files->method->name,
        files->family[former], files->family[next], apart);
}

/* Where a file has exact cycles, nobody begins one while a neighbour has another file: the fleet stands, some say for whom, and
 * goes on with the late reload. */
static void run_exact(struct files *files, uint32_t former, uint32_t next)
{
    struct missed missed;
    open_missed(&missed, files, former, next, 40 * SGP_SECOND);
    run_until(&missed, files, former, next, 39 * SGP_SECOND);
    uint32_t named = 0;
    for (uint32_t i = 0; i < NODES; i++) {
        struct sgp_node_status status;
        sgp_node_status(sgp_sim_node(missed.fleet->sim, i), &status);
        named += status.waiting == SGP_WAITING_CYCLE;
    }
    cr_expect(not(sgp_sim_done(missed.fleet->sim)));
    cr_expect(gt(u32, named, 0), "%s, %s", files->family[former], files->family[next]);
    run_until(&missed, files, former, next, SGP_TIME_NEVER);
    expect_end(&missed, files, former, next);
    close_missed(&missed);
}

static void run_pair(struct files *files, uint32_t former, uint32_t next)
{
    struct missed missed;
    open_missed(&missed, files, former, next, SGP_TIME_NEVER);
    run_until(&missed, files, former, next, SGP_TIME_NEVER);
    expect_end(&missed, files, former, next);
    close_missed(&missed);
}

/* All pairs with SGP_LONG. A submission runs one of three pairs where the fleet ends, and one of six where it stands until the
 * late reload: fewer under a sanitizer, which makes each several times as slow. Each file is former and next in some of them. */
static void run_pairs(const char *method)
{
    struct files files;
    bool is_long = getenv("SGP_LONG") != NULL, is_few = getenv("SGP_FEW") != NULL;
    uint32_t every = is_few && !is_long ? 13 : is_few || !is_long ? 3 : 1;
    make_files(&files, method);
    cr_assert(gt(u32, files.count, 1));
    for (uint32_t pair = 0; pair < files.count * files.count; pair++) {
        uint32_t former = pair / files.count, next = pair % files.count, choice = former + 5 * next;
        const struct sgp_topology *a = files.topology[former], *b = files.topology[next];
        if (former == next || !keeps_relays(a, b) || choice % every != 0)
            continue;
        if (!sgp_topology_has_exact(a) && !sgp_topology_has_exact(b))
            run_pair(&files, former, next);
        else if (every == 1 || choice % (2 * every) == 0)
            run_exact(&files, former, next);
    }
    destroy_files(&files);
}

Test(sim_ends, sgp, .timeout = 600)
{
    run_pairs("sgp");
}

Test(sim_ends, osgp, .timeout = 600)
{
    run_pairs("osgp");
}

Test(sim_ends, agp, .timeout = 600)
{
    run_pairs("agp");
}

Test(sim_ends, dpsgd, .timeout = 600)
{
    run_pairs("dpsgd");
}

Test(sim_ends, adpsgd, .timeout = 600)
{
    run_pairs("adpsgd");
}

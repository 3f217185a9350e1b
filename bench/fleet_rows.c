/* SPDX-License-Identifier: Apache-2.0 */
/* How rows of a fleet spread (sgp/fleet.h), in virtual time: how long a change takes until all nodes
 * have it, and how many bytes the links carry. docs/FLEET.md has the table. Processor times do not
 * matter, so it may run on a busy machine.
 *
 *     fleet_rows NODES [AUTHORS]     one line of the table; only the first AUTHORS nodes publish
 */
#include "../tests/unit/fleet/fleet_net.h"

#include <inttypes.h>

#define SETTLES (4 * SGP_SECOND)
#define CHANGES 8u

/* The virtual seconds until all nodes know a new round of this author. */
static double spread(struct net *net, uint32_t author)
{
    const sgp_time began = net->now;
    net->rounds[author] += 1000;
    net_tell(net, author);
    while (!net_all_know(net, author, net->rounds[author]))
        net_step(net);
    return (double)(net->now - began) / (double)SGP_SECOND;
}

static uint64_t bytes_of(const struct net *net)
{
    uint64_t bytes = 0;
    for (uint32_t e = 0; e < net->end_count; e++)
        bytes += net->ends[e].bytes;
    return bytes;
}

/* The virtual seconds until all nodes know a row of each author. */
static double begin(struct net *net)
{
    uint32_t known = 0;
    while (known < net->authors) {
        net_step(net);
        while (known < net->authors && net_all_know(net, known, 0))
            known++;
    }
    return (double)net->now / (double)SGP_SECOND;
}

int main(int argc, char **argv)
{
    const uint32_t count = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 0;
    const uint32_t authors = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : count;
    if (count < 2 || count > 20000 || authors < 1 || authors > count) {
        (void)fputs("usage: fleet_rows NODES [AUTHORS]; 2 to 20000 nodes\n", stderr);
        return 2;
    }
    struct net net;
    uint32_t edge_count, *edges = net_exponential(count, &edge_count);
    net_init(&net, count, authors, edges, edge_count);
    free(edges);
    const double began = begin(&net);
    net_run(&net, SETTLES);
    for (uint32_t e = 0; e < net.end_count; e++)
        net.ends[e].bytes = net.ends[e].second_most = 0;
    net.rows_moved = net.rows_told = net.bursts = 0;
    const sgp_time from = net.now;
    double sum = 0, most = 0;
    uint64_t greatest = 0;
    for (uint32_t k = 0; k < CHANGES; k++) {
        const double seconds = spread(&net, (uint32_t)((uint64_t)k * authors / CHANGES));
        sum += seconds;
        most = fmax(most, seconds);
        net_run(&net, SGP_SECOND);
    }
    const sgp_time interval = (sgp_time)net_interval(&net) * SGP_MILLISECOND;
    if (authors == count && net.now - from < interval) /* every node has published */
        net_run(&net, interval - (net.now - from));
    for (uint32_t e = 0; e < net.end_count; e++)
        greatest = net.ends[e].second_most > greatest ? net.ends[e].second_most : greatest;
    const double seconds = (double)(net.now - from) / (double)SGP_SECOND;
    const double bytes = (double)bytes_of(&net) / net.end_count;
    (void)printf("{\"nodes\": %u, \"authors\": %u, \"links_a_node\": %.0f, \"interval_s\": %.1f, "
                 "\"first_s\": %.2f, \"change_s\": %.2f, \"change_most_s\": %.2f, "
                 "\"bytes_a_row_and_link\": %.0f, \"bytes_a_second_and_link\": %.0f, "
                 "\"greatest_second_bytes\": %" PRIu64 ", \"copies_a_row_and_node\": %.2f, "
                 "\"sends_a_second_and_node\": %.1f}\n",
        count, authors, (double)net.end_count / count, (double)interval / (double)SGP_SECOND, began,
        sum / CHANGES, most, bytes / (double)net.rows_told, bytes / seconds, greatest,
        (double)net.rows_moved / (double)net.rows_told / count,
        (double)net.bursts / seconds / count);
    net_finish(&net);
    return 0;
}

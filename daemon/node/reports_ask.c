/* SPDX-License-Identifier: Apache-2.0 */
/* Questions to neighbours for the reports that this node lacks; see reports_inside.h. */
#include "reports_inside.h"

/* Whether a report is missing that this node wants. */
static bool lacks(const struct reports *reports, const struct moment *moment)
{
    return !reports_all_answered(reports) ||
           (moment->finished && !reports_complete(reports, moment));
}

static bool is_dialled(const struct daemon *daemon)
{
    return sgp_topology_is_dialled(daemon->prepared->topology, daemon->prepared->self);
}

static void ask(struct reports *reports)
{
    struct daemon *daemon = reports->daemon;
    const struct sgp_topology *topology = daemon->prepared->topology;
    const sgp_time now = events_now();
    uint32_t asked = 0;
    reports->asked = now;
    for (uint32_t i = 0; i < daemon->edge_count && asked < REPORTS_ASKED; i++, reports->turn++) {
        const uint32_t peer = daemon->edges[reports->turn % daemon->edge_count].peer;
        if (peer >= reports->peer_count || now < reports->peers[peer].next ||
            !sgp_topology_is_dialled(topology, peer))
            continue;
        (void)pulls_ask(&daemon->pulls, SGP_SUBJECT_MEASURES, peer, &topology->nodes[peer],
            !is_dialled(daemon));
        asked++;
    }
}

bool reports_ask(struct reports *reports, const struct moment *moment)
{
    const sgp_time now = events_now();
    const bool missing = lacks(reports, moment), dialled = is_dialled(reports->daemon);
    const sgp_time least = missing ? REPORTS_PACE_NS : REPORTS_POLL_NS;
    const sgp_time most = dialled ? REPORTS_PACE_MAX_NS : REPORTS_POLL_NS;
    sgp_time pace = (now - reports->news) / 8;
    pace = pace < least ? least : pace;
    pace = pace > most ? most : pace;
    if (dialled && !missing && !moment->finished)
        return false;
    if (now - reports->asked >= pace && !reports->daemon->stopping)
        ask(reports);
    return missing;
}

void reports_answered(struct daemon *daemon, uint32_t peer, const char *why)
{
    struct reports *reports = daemon->reports;
    if (reports == NULL || peer >= reports->peer_count)
        return;
    struct report_peer *it = &reports->peers[peer];
    it->failures = why == NULL ? 0 : it->failures < 6 ? it->failures + 1 : 6;
    it->next = why == NULL ? 0 : events_now() + (SGP_SECOND << it->failures);
}

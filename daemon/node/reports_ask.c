/* SPDX-License-Identifier: Apache-2.0 */
/* Questions to neighbours for the reports that this node lacks; see reports_inside.h. */
#include "reports_inside.h"

/* Whether a report is missing that this node wants. */
static bool lacks(const struct reports *reports, const struct moment *moment)
{
    const struct choice wanted = {.stamp = reports->wanted};
    return (reports_live(reports) && !reports_all_chosen(reports, &wanted)) ||
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
    daemon->pulls.wanted = reports_live(reports) ? reports->wanted : 0;
    for (uint32_t i = 0; i < daemon->edge_count && asked < REPORTS_ASKED; i++, reports->turn++) {
        const uint32_t peer = daemon->edges[reports->turn % daemon->edge_count].peer;
        if (peer >= reports->peer_count || now < reports->peers[peer].next ||
            !sgp_topology_is_dialled(topology, peer))
            continue;
        pulls_ask(&daemon->pulls, SGP_SUBJECT_MEASURES, peer, &topology->nodes[peer],
            !is_dialled(daemon));
        asked++;
    }
}

bool reports_ask(struct reports *reports, const struct moment *moment)
{
    const sgp_time now = events_now();
    const bool missing = lacks(reports, moment);
    sgp_time pace = (now - reports->news) / 8;
    pace = pace < REPORTS_PACE_NS ? REPORTS_PACE_NS : pace;
    pace = pace > REPORTS_PACE_MAX_NS ? REPORTS_PACE_MAX_NS : pace;
    if (!is_dialled(reports->daemon) && (!missing || pace > REPORTS_POLL_NS))
        pace = REPORTS_POLL_NS;
    else if (!missing)
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

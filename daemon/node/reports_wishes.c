/* SPDX-License-Identifier: Apache-2.0 */
/* Wishes for reports of now; see reports_inside.h.
 *
 * A wish lasts as long as its client waits. It is passed on with the time that is left, so no wish
 * goes around without end. */
#include "reports_inside.h"

#include "sgp/random.h"

static bool is_live(const struct wish *wish)
{
    return events_now() < wish->until;
}

static bool is_of_one_asker(uint64_t one, uint64_t other)
{
    return (one ^ other) >> SGP_WISH_COUNT_BITS == 0;
}

/* The place of this asker's latest wish. If there is none, the place of another asker's, whose wish
 * has ended or was heard of first. */
static struct wish *place_of(struct reports *reports, uint64_t number)
{
    struct wish *place = NULL;
    sgp_time least = 0;
    for (uint32_t i = 0; i < SGP_REPORT_WISHES; i++) {
        struct wish *wish = &reports->wishes[i];
        const sgp_time heard = is_live(wish) ? wish->heard : -1;
        if (is_of_one_asker(wish->number, number))
            return wish;
        if (!is_of_one_asker(wish->number, reports->own_wish) && (place == NULL || heard < least)) {
            place = wish;
            least = heard;
        }
    }
    sgp_assert(place != NULL); /* at most one place is of this node's own wish */
    return place;
}

/* A node that was away may be back, so all are asked. */
static bool hear(struct reports *reports, uint64_t number, sgp_time until)
{
    struct wish *wish = place_of(reports, number);
    if (wish->number == number || (is_live(wish) && sgp_wish_follows(wish->number, number)))
        return false;
    *wish = (struct wish){.number = number, .heard = events_now(), .until = until};
    for (uint32_t i = 0; i < reports->peer_count; i++) {
        reports->peers[i].failures = 0;
        reports->peers[i].next = 0;
    }
    reports_stir(reports);
    return true;
}

void reports_draw(struct reports *reports)
{
    uint64_t number = pulls_stamp() ^ uv_hrtime() << 20; /* if there are no random numbers */
    (void)uv_random(NULL, NULL, &number, sizeof number, 0, NULL);
    reports->own_wish = number >> SGP_WISH_COUNT_BITS << SGP_WISH_COUNT_BITS;
}

uint64_t reports_wish_of_clients(struct reports *reports)
{
    const struct waiter *waiter;
    sgp_time until = 0;
    LIST_FOREACH (waiter, &reports->waiters, next)
        until = waiter->deadline > until ? waiter->deadline : until;
    (void)hear(reports, ++reports->own_wish, until);
    return reports->own_wish;
}

/* Somebody tells a later wish in the name of this node, so that others would not hear of its next
 * ones: the clients' wishes are made again under another number. */
static void wish_anew(struct reports *reports)
{
    struct waiter *waiter;
    reports_draw(reports);
    const uint64_t wish = LIST_EMPTY(&reports->waiters) ? 0 : reports_wish_of_clients(reports);
    LIST_FOREACH (waiter, &reports->waiters, next)
        waiter->wish = wish;
}

/* An honest neighbour asks no more often than every REPORTS_PACE_NS. */
void reports_hear_of_peer(struct reports *reports, uint32_t peer, const struct sgp_pull *pull)
{
    const sgp_time now = events_now();
    const sgp_time until = now + (sgp_time)pull->wish_ms * SGP_MILLISECOND;
    if (reports->closing || peer >= reports->peer_count || pull->wish_ms == 0 ||
        sgp_wish_follows(reports->own_wish, pull->wish) ||
        now - reports->peers[peer].wished < REPORTS_PACE_NS)
        return;
    if (sgp_wish_follows(pull->wish, reports->own_wish))
        wish_anew(reports);
    else if (!hear(reports, pull->wish, until))
        return;
    reports->peers[peer].wished = now;
}

bool reports_owe(const struct reports *reports)
{
    const uint32_t self = sgp_survey_self(reports->survey);
    for (uint32_t i = 0; i < SGP_REPORT_WISHES; i++) {
        const struct wish *wish = &reports->wishes[i];
        const struct choice choice = {.wish = wish->number};
        if (is_live(wish) && !reports_chosen(reports, self, &choice))
            return true;
    }
    return false;
}

bool reports_all_answered(const struct reports *reports)
{
    for (uint32_t i = 0; i < SGP_REPORT_WISHES; i++) {
        const struct choice choice = {.wish = reports->wishes[i].number};
        if (is_live(&reports->wishes[i]) && !reports_all_chosen(reports, &choice))
            return false;
    }
    return true;
}

void reports_name_wishes(const struct reports *reports, struct sgp_report *report)
{
    report->wish_count = 0;
    for (uint32_t i = 0; i < SGP_REPORT_WISHES; i++)
        if (is_live(&reports->wishes[i]))
            report->wishes[report->wish_count++] = reports->wishes[i].number;
}

/* Any of them: a fixed order could tell each neighbour the same one again and again. */
void reports_wish(struct daemon *daemon, struct sgp_pull *pull)
{
    struct reports *reports = daemon->reports;
    uint64_t live = 0;
    for (uint32_t i = 0; i < SGP_REPORT_WISHES; i++) {
        const struct wish *wish = &reports->wishes[i];
        const sgp_time left = wish->until - events_now();
        if (left < SGP_MILLISECOND || sgp_random_at(reports->own_wish, reports->drawn++) % ++live)
            continue;
        pull->wish = wish->number;
        pull->wish_ms = (uint32_t)(left / SGP_MILLISECOND);
    }
}

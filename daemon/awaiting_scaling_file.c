/* SPDX-License-Identifier: Apache-2.0 */
/* The topology file of a survey; see awaiting_scaling_inside.h. */
#include "awaiting_scaling_inside.h"

#include "node/changes.h"
#include "setup/members.h"
#include "setup/scaling.h"
#include "setup/signed_file.h"
#include "store/privacy_account.h"

#include <errno.h>
#include <stdlib.h>

/* The neighbours of this node, in either direction, in any round. */
static void find_neighbours(const struct prepared *place, struct survey_peer *peers)
{
    const struct sgp_topology *topology = place->topology;
    const uint32_t self = place->self;
    for (uint32_t p = 0; p < topology->phase_count; p++) {
        const struct sgp_phase *phase = &topology->phases[p];
        for (uint32_t i = phase->out_first[self]; i < phase->out_first[self + 1]; i++)
            peers[phase->out[i].target].asked = true;
        for (uint32_t i = phase->in_first[self]; i < phase->in_first[self + 1]; i++)
            peers[phase->in[i].source].asked = true;
    }
    for (uint32_t i = 0; i < topology->node_count; i++)
        peers[i].asked = peers[i].asked && sgp_topology_is_dialled(topology, i);
}

/* Whether the node can agree by this file; its rows are read when a file names it as a member. */
static int read_figures(
    struct awaiting_scaling *awaiting, const struct prepared *place, struct sgp_error *error)
{
    const struct config *config = awaiting->wait.config;
    const bool relay = place->topology->nodes[place->self].relay;
    struct sgp_error note = {0};
    int code = scaling_check(config, place->topology, relay, error);
    if (code < 0 || relay || awaiting->figures != NULL)
        return code;
    code = scaling_tell(config, &note, error, &awaiting->figures);
    if (code == 0 && note.code != 0)
        sgp_log(
            &awaiting->wait.log->sink, SGP_LEVEL_WARNING, "event=warning text=\"%s\"", note.text);
    return code;
}

/* Tell, unless that is done, or the file does not name this node as a member. */
static int tell_figures(struct awaiting_scaling *awaiting)
{
    const uint32_t member = sgp_survey_self(awaiting->survey);
    if (member == SGP_NODES_MAX || sgp_survey_figures(awaiting->survey, member) != NULL)
        return 0;
    return sgp_survey_tell(awaiting->survey, pulls_stamp(), awaiting->figures);
}

static int use_file(struct awaiting_scaling *awaiting, struct sgp_error *error)
{
    struct survey_peer *peers = calloc(awaiting->place.topology->node_count, sizeof *peers);
    int code = peers != NULL ? members_use(awaiting->survey, awaiting->place.topology) : -ENOMEM;
    if (code == 0)
        code = tell_figures(awaiting);
    if (code < 0) {
        free(peers);
        return sgp_fail(error, code, "out of memory");
    }
    find_neighbours(&awaiting->place, peers);
    free(awaiting->peers);
    awaiting->peers = peers;
    return 0;
}

int awaiting_scaling_begin(struct awaiting_scaling *awaiting, struct sgp_error *error)
{
    const int code = read_figures(awaiting, &awaiting->place, error);
    return code < 0 ? code : use_file(awaiting, error);
}

static void tell_reload(const struct awaiting_scaling *awaiting, const struct sgp_topology *former,
    struct view_reload *ret_reload)
{
    const struct prepared *place = &awaiting->place;
    const enum sgp_tls now = place->topology->tls;
    changes_tell(former, place->topology, &awaiting->wait.log->sink, ret_reload);
    ret_reload->tls = now;
    ret_reload->tls_before = former->tls > now ? former->tls : SGP_TLS_UNSAID;
    ret_reload->warnings = place->warnings;
    ret_reload->warning_count = place->warning_count;
}

/* The place is swapped first, because the survey keeps names of its file alone. */
int awaiting_scaling_reload(void *context, struct view_reload *ret_reload, struct sgp_error *error)
{
    struct awaiting_scaling *awaiting = context;
    struct prepared place;
    int code = prepare_place(awaiting->wait.config, NULL, error, &place);
    if (code < 0)
        return code;
    code = read_figures(awaiting, &place, error);
    if (code == 0 && awaiting->figures != NULL) /* a relay may have got rows */
        code = privacy_account_note_told(awaiting->wait.config->state_directory, error);
    if (code == 0)
        code = signed_file_keep(awaiting->wait.config, place.rollout, error);
    if (code < 0) {
        prepared_finish(&place);
        return code;
    }
    struct prepared former = awaiting->place;
    pulls_use(&awaiting->pulls, place.topology);
    awaiting->place = place;
    code = use_file(awaiting, error);
    if (code < 0) {
        pulls_use(&awaiting->pulls, former.topology);
        awaiting->place = former;
        prepared_finish(&place);
        return code;
    }
    callers_resolve(&awaiting->callers, awaiting->place.topology, awaiting->place.self);
    tell_reload(awaiting, former.topology, ret_reload);
    prepared_finish(&former);
    awaiting->stage = 0;
    awaiting_scaling_changed(awaiting);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What the nodes of a launch show together; see launch_node.h. Owns nothing. */
#include "launch_node.h"

#include <math.h>

void launch_progress_line(const struct launch_plan *plan, const struct launch_node *nodes,
    bool starting, double seconds, char text[LAUNCH_PROGRESS_BYTES])
{
    long long least = -1, most = -1;
    double losses = 0;
    uint32_t known = 0, running = 0;
    char loss[32] = "";
    for (uint32_t i = 0; i < plan->nodes; i++) {
        const struct launch_node *node = &nodes[i];
        running += node->program > 0;
        if (node->round >= 0 && (least < 0 || node->round < least))
            least = node->round;
        if (node->round > most)
            most = node->round;
        if (isfinite(node->loss)) {
            losses += node->loss;
            known++;
        }
    }
    if (known > 0)
        (void)snprintf(loss, sizeof loss, ", loss %.4g", losses / known);
    if (starting)
        (void)snprintf(text, LAUNCH_PROGRESS_BYTES, "starting %u daemons", plan->nodes);
    else if (least < 0)
        (void)snprintf(text, LAUNCH_PROGRESS_BYTES, "%u programs, %.0f s", running, seconds);
    else if (least == most)
        (void)snprintf(text, LAUNCH_PROGRESS_BYTES, "%u programs, round %lld%s, %.0f s", running,
            least, loss, seconds);
    else
        (void)snprintf(text, LAUNCH_PROGRESS_BYTES, "%u programs, rounds %lld to %lld%s, %.0f s",
            running, least, most, loss, seconds);
}

void launch_progress_report(
    const struct launch_plan *plan, const struct launch_node *nodes, int worst, bool over)
{
    uint32_t running = 0;
    json_t *rounds = json_array(), *losses = json_array();
    for (uint32_t i = 0; i < plan->nodes; i++) {
        const struct launch_node *node = &nodes[i];
        running += node->program > 0;
        (void)json_array_append_new(
            rounds, node->round < 0 ? json_null() : json_integer(node->round));
        (void)json_array_append_new(losses, ctl_json_real(node->loss));
    }
    (void)ctl_print_json(json_pack("{s:i, s:i, s:b, s:o, s:o}", "running", (int)running, "worst",
        worst, "over", over, "rounds", rounds, "losses", losses));
}

void launch_progress_result(struct ctl *ctl, const struct launch_plan *plan,
    const struct launch_node *nodes, double seconds)
{
    const struct launch_place *place = &plan->place;
    if (!ctl->json) {
        (void)fprintf(stderr, "sgpctl: %u node%s, %.1f s%s%s\n", plan->nodes,
            plan->nodes == 1 ? "" : "s", seconds, place->keeps ? ", kept in " : "",
            place->keeps ? place->files : "");
        return;
    }
    json_t *statuses = json_object();
    for (uint32_t i = 0; i < plan->nodes; i++)
        (void)json_object_set_new(statuses, nodes[i].name,
            nodes[i].started ? json_integer(nodes[i].status) : json_null());
    (void)ctl_print_json(json_pack("{s:I, s:f, s:o, s:o}", "nodes", (json_int_t)plan->nodes,
        "seconds", seconds, "statuses", statuses, "kept",
        place->keeps ? ctl_json_text(place->files) : json_null()));
}

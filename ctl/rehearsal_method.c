/* SPDX-License-Identifier: Apache-2.0 */
/* The methods of a rehearsal and their topologies; see rehearsal.h. All methods that gossip have
 * one topology, which is symmetric and averages exactly for any number of sites. */
#include "rehearsal.h"

#include <string.h>

#define DIRECT_MAX 8u /* nodes that average in 2 rounds; more take fewer messages */
#define LOCAL_STEPS 8u
#define LATE_MAX 8u /* updates that a site may be ahead of the slowest */
#define GOSSIP "base"
#define REDUCE "all-reduce-direct"
#define REDUCE_MANY "all-reduce-blocks"
#define OWNER "owner"

/* `sgpctl compare --help` says what each is. */
static const struct ctl_rehearsal_method methods[] = {
    {"pooled", NULL, NULL, 1, .pooled = true},
    {"alone", NULL, NULL, 1, .pooled = false},
    {"sgp", "sgp", GOSSIP, 1, .pooled = false},
    {"osgp", "osgp", GOSSIP, 1, .pooled = false},
    {"agp", "agp", GOSSIP, 1, .pooled = false},
    {"dpsgd", "dpsgd", GOSSIP, 1, .pooled = false},
    {"adpsgd", "adpsgd", GOSSIP, 1, .pooled = false},
    {"all-reduce", "sgp", REDUCE, 1, .pooled = false},
    {"local", "sgp", REDUCE, LOCAL_STEPS, .pooled = false},
    {"backup", "backup", OWNER, 1, .pooled = false},
    {"downpour", "downpour", OWNER, 1, .pooled = false},
};
#define METHOD_COUNT (sizeof methods / sizeof *methods)

const struct ctl_rehearsal_method *ctl_rehearsal_method_at(uint32_t index)
{
    return index < METHOD_COUNT ? &methods[index] : NULL;
}

static void list_methods(char *text, size_t bytes)
{
    size_t used = 0;
    for (size_t i = 0; i < METHOD_COUNT && used < bytes; i++)
        used +=
            (size_t)snprintf(text + used, bytes - used, "%s%s", i > 0 ? ", " : "", methods[i].name);
}

enum ctl_exit ctl_rehearsal_choose(struct ctl *ctl, const char *list, uint32_t *ret_chosen)
{
    uint32_t chosen = 0;
    if (!list) {
        *ret_chosen = (1u << METHOD_COUNT) - 1;
        return CTL_DONE;
    }
    for (const char *word = list;; word++) {
        const size_t length = strcspn(word, ",");
        size_t i = 0;
        while (i < METHOD_COUNT &&
               (strlen(methods[i].name) != length || strncmp(methods[i].name, word, length) != 0))
            i++;
        if (i == METHOD_COUNT) {
            char names[SGP_TEXT_BYTES / 2];
            list_methods(names, sizeof names);
            return ctl_usage(ctl, "--methods: there is no '%.*s'; name some of %s, with commas",
                (int)(length < 64 ? length : 64), word, names);
        }
        chosen |= 1u << i;
        word += length;
        if (*word == '\0')
            break;
    }
    *ret_chosen = chosen;
    return CTL_DONE;
}

int ctl_rehearsal_topology(const struct ctl_rehearsal_method *method, uint32_t sites,
    char words[CTL_REHEARSAL_TOPOLOGY_BYTES], struct sgp_error *error,
    struct sgp_topology **ret_topology)
{
    const bool owner = strcmp(method->family, OWNER) == 0;
    const bool many = strcmp(method->family, REDUCE) == 0 && sites > DIRECT_MAX;
    const struct sgp_method *algorithm = sgp_method_find(method->algorithm);
    const bool late = owner && !sgp_method_waits(algorithm);
    struct sgp_generate_options options = {
        .family = many ? REDUCE_MANY : method->family, .nodes = sites + owner};
    if (late)
        options.staleness = (struct sgp_staleness){.damping = SGP_DAMPING_DIVIDE, .most = LATE_MAX};
    (void)snprintf(words, CTL_REHEARSAL_TOPOLOGY_BYTES, "%s %u%s", options.family, options.nodes,
        late ? " --staleness divide --staleness-max 8" : "");
    struct sgp_topology *topology = NULL;
    int code = sgp_generate(&options, error, &topology);
    if (code == 0)
        code = sgp_method_suit(algorithm, topology, error, NULL);
    if (code == 0)
        *ret_topology = topology;
    else
        sgp_topology_destroy(topology);
    return code;
}

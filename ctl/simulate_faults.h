/* What can be made to go wrong in `sgpctl simulate`: stragglers, absences and cuts, each option as
 * often as wanted. */
#ifndef CTL_SIMULATE_FAULTS_H
#define CTL_SIMULATE_FAULTS_H

#include "ctl.h"
#include "sgp/sim.h"

#define CTL_FAULTS_MAX 256u /* of each kind on one line */

struct ctl_faults {
    struct sgp_sim_straggler stragglers[CTL_FAULTS_MAX];
    struct sgp_sim_absence absences[CTL_FAULTS_MAX];
    struct sgp_sim_cut cuts[CTL_FAULTS_MAX];
    uint32_t *cut_nodes[CTL_FAULTS_MAX]; /* owned */
    uint32_t straggler_count, absence_count, cut_count;
    const char *texts[3][CTL_FAULTS_MAX]; /* as they stand on the line */
    uint32_t text_counts[3];
};

/* Take --straggler, --absent and --cut out of argv[0..*argc). */
enum ctl_exit ctl_faults_take(struct ctl *ctl, int *argc, char **argv, struct ctl_faults *faults);

/* Understand them, with the names of a topology, and point the options at them. */
enum ctl_exit ctl_faults_read(struct ctl *ctl, const struct sgp_topology *topology,
    struct ctl_faults *faults, struct sgp_sim_options *options);

void ctl_faults_finish(struct ctl_faults *faults);

/* A time: a number with us, ms, s or min, or seconds without; at most CTL_TIME_MAX_S. */
#define CTL_TIME_MAX_S 1e9
bool ctl_text_time(const char *text, size_t length, sgp_time *ret_time);

#endif

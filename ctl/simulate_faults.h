/* SPDX-License-Identifier: Apache-2.0 */
/* The faults of `sgpctl simulate`. Each of these options may be given several times. */
#ifndef CTL_SIMULATE_FAULTS_H
#define CTL_SIMULATE_FAULTS_H

#include "ctl.h"
#include "sgp/sim.h"

#define CTL_FAULTS_MAX 256u /* of each kind on one line */

enum ctl_fault { /* in the order of their options, after all other options (ctl_simulate_table) */
    CTL_STRAGGLER,
    CTL_ABSENT,
    CTL_CUT,
    CTL_CLOG,
    CTL_SWIZZLE,
    CTL_HALF_OPEN,
    CTL_CRASH,
    CTL_CLOCK,
    CTL_LIAR,
    CTL_FAULT_KINDS
};

struct ctl_faults {
    struct sgp_sim_straggler stragglers[CTL_FAULTS_MAX];
    struct sgp_sim_absence absences[CTL_FAULTS_MAX];
    struct sgp_sim_cut cuts[CTL_FAULTS_MAX];
    struct sgp_sim_clog clogs[CTL_FAULTS_MAX];
    struct sgp_sim_swizzle swizzles[CTL_FAULTS_MAX];
    struct sgp_sim_half_open half_opens[CTL_FAULTS_MAX];
    struct sgp_sim_crash crashes[CTL_FAULTS_MAX];
    struct sgp_sim_clock clocks[CTL_FAULTS_MAX];
    struct sgp_sim_liar liars[CTL_FAULTS_MAX];
    uint32_t *cut_nodes[CTL_FAULTS_MAX];                /* owned */
    const char *texts[CTL_FAULT_KINDS][CTL_FAULTS_MAX]; /* as on the command line */
    uint32_t counts[CTL_FAULT_KINDS];
};

/* Take the faults out of argv[0..*argc). */
enum ctl_exit ctl_faults_take(struct ctl *ctl, int *argc, char **argv, struct ctl_faults *faults);

/* Parse the faults with the names of a topology, and let the options point to them. */
enum ctl_exit ctl_faults_read(struct ctl *ctl, const struct sgp_topology *topology,
    struct ctl_faults *faults, struct sgp_sim_options *options);

void ctl_faults_finish(struct ctl_faults *faults);

/* A time: a number with us, ms, s or min, or seconds without; at most CTL_TIME_MAX_S. */
#define CTL_TIME_MAX_S 1e9
bool ctl_text_time(const char *text, size_t length, sgp_time *ret_time);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of a simulation, from the command line: the table of its options, and the values of
 * all options but the faults. */
#ifndef CTL_SIMULATE_OPTIONS_H
#define CTL_SIMULATE_OPTIONS_H

#include "simulate_faults.h"
#include "sgp/outer.h"
#include "sgp/sim.h"

/* Their descriptions in --help, with the faults at the end. */
#define CTL_SIMULATE_OPTION_COUNT 24
extern const struct ctl_option ctl_simulate_table[CTL_SIMULATE_OPTION_COUNT + CTL_FAULT_KINDS + 1];

/* Take the options out of argv[0..*argc), so that one word is left. Read them into *options, which
 * holds the defaults, and into *learning_rate and *outer. *ret_trace, the file of --trace, points
 * into argv. If --trace is not given, *ret_trace is unchanged. */
enum ctl_exit ctl_simulate_options_take(struct ctl *ctl, int *argc, char **argv,
    struct sgp_sim_options *options, double *learning_rate, struct sgp_outer_settings *outer,
    const char **ret_trace);

#endif

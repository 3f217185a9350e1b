/* SPDX-License-Identifier: Apache-2.0 */
/* Campaigns: from a seed a fleet, a topology and a mix of every fault, then a verdict.
 *
 *   draw.c    what a seed means, by fleet.c and faults.c
 *   judge.c   the run, and what must hold whatever happened
 *   plants.c  bugs put in on purpose, between the driver and the simulator's operations
 *   main.c    the command line
 *
 * One thread. A draw depends on method, nodes, seed and `exact` alone. */
#ifndef CAMPAIGN_H
#define CAMPAIGN_H

#include "sgp/sim.h"

#define CAMPAIGN_FAULTS_MAX 8u /* of each kind */
#define CAMPAIGN_NODES_MAX 256u
#define CAMPAIGN_DIMENSION 2u
#define CAMPAIGN_CODED                                                                             \
    12u /* where shares are coded: fewer than 4 values take no fewer bytes, nor does such a part, */
#define CAMPAIGN_BLOCKS 257u  /* or these: a block, and one value more */
#define CAMPAIGN_PARTS_MAX 8u /* of an exact cycle that is coded, each of whole blocks */
#define CAMPAIGN_VALUES_MAX (CAMPAIGN_PARTS_MAX * SGP_PART_BLOCKED_LEAST + 100)

struct campaign_command {
    sgp_time time;
    uint32_t node;
    enum sgp_event_type type;
};

/* What a seed means. The options point into it. */
struct campaign {
    uint64_t seed;
    bool
        exact; /* the file has exact cycles, and all nodes stay: none of them can be done without */
    struct sgp_random random;
    struct sgp_topology *topology;
    const char *family;
    struct sgp_topology *other; /* the file that all nodes but `odd` have in the end; NULL: none */
    const char *other_family;
    uint32_t odd;
    struct sgp_sim_options options;
    double eta, eta_most;
    sgp_time window;  /* every fault begins and ends before */
    sgp_time longest; /* what a training job may take */
    uint64_t mixing_rounds;
    uint32_t targets_most; /* of a node in a round */
    struct sgp_sim_straggler stragglers[CAMPAIGN_FAULTS_MAX];
    struct sgp_sim_absence absences[CAMPAIGN_FAULTS_MAX];
    struct sgp_sim_cut cuts[CAMPAIGN_FAULTS_MAX];
    uint32_t cut_nodes[CAMPAIGN_FAULTS_MAX]
                      [CAMPAIGN_NODES_MAX + CAMPAIGN_DIMENSION]; /* co-located owners */
    struct sgp_sim_clog clogs[CAMPAIGN_FAULTS_MAX];
    struct sgp_sim_swizzle swizzles[CAMPAIGN_FAULTS_MAX];
    struct sgp_sim_half_open half_opens[CAMPAIGN_FAULTS_MAX];
    struct sgp_sim_crash crashes[2 * CAMPAIGN_FAULTS_MAX]; /* with the machine: two */
    struct sgp_sim_clock clocks[CAMPAIGN_FAULTS_MAX];
    struct sgp_sim_liar liar;
    struct sgp_sim_reload reloads[2 * (CAMPAIGN_NODES_MAX + CAMPAIGN_DIMENSION)];
    struct campaign_command commands[3 * CAMPAIGN_FAULTS_MAX];
    uint32_t command_count;
    uint32_t restores;            /* crashes after which an earlier record is put back */
    bool recovers;                /* trains for CAMPAIGN_RECOVERY_NS after the last fault */
    bool apart;                   /* files differ in the end */
    bool whole;                   /* nobody leaves for good, so that all must agree in the end */
    struct campaign_plant *plant; /* NULL: none */
    struct sgp_sim *sim;          /* while it runs */
    uint32_t misfiled; /* a node whose core overlooked a link; SGP_SLOT_NONE if none did */
};

/* Draw a campaign, of exact cycles or of files that suit the method; the caller finishes it.
 * Returns 0, or a negative code with the reason. */
int campaign_init(struct campaign *campaign, const struct sgp_method *method, uint32_t nodes,
    uint64_t seed, bool exact, struct sgp_error *error);
void campaign_finish(struct campaign *campaign);
/* Whether a method can run files of exact cycles: 0, or a negative code with the reason. */
int campaign_suit_exact(const struct sgp_method *method, struct sgp_error *error);
/* In place of what was drawn: one of SGP_CHOOSER_WORDS. */
void campaign_code(struct campaign *campaign, const char *word);
/* A node lies in all that it gives, and the others have a guard if the files suit one. Mixing by
 * owners, tokens and exact cycles stays as it was drawn. */
void campaign_lie(struct campaign *campaign);
/* The same of the copies of owners: one of SGP_CHOOSER_COPY_WORDS. */
void campaign_code_copies(struct campaign *campaign, const char *word);

/* What a fleet needs after the last fault to be whole again: the longest silence that is not yet absence,
 * the longest time between dials, and the time that a restarted node looks for an estimate. */
#define CAMPAIGN_RECOVERY_NS (SGP_SILENCE_MAX_NS + SGP_DIAL_MAX_NS + SGP_SEEK_NS)
/* How far apart the estimates of a whole fleet that had this time may be in the end. */
#define CAMPAIGN_DISAGREEMENT_MAX 0.05
/* And those of two neighbours that have finished, and do not say that they disagree; of long models SGP_AGREED of the length. */
#define CAMPAIGN_AGREED 1e-3f
/* How long a fleet may take once faults have ended, beyond the work that it has left. */
#define CAMPAIGN_GRACE_NS (120 * SGP_SECOND)

/* Run it and judge it. Returns 0 with what happened in *ret_summary, or a negative code with what did
 * not hold. */
int campaign_run(
    struct campaign *campaign, struct sgp_error *error, struct sgp_sim_summary *ret_summary);

/* One line on what was drawn. */
void campaign_tell(const struct campaign *campaign, char *text, size_t bytes);

/* ---- planted bugs ---- */

struct campaign_plant {
    const char *name;
    const char *summary;
    /* Put it into a simulation that has not begun. */
    void (*put)(struct campaign_plant *plant, struct sgp_sim *sim);
    bool harmless;                  /* the fleet must stand it */
    const char *method;             /* that shows it; NULL: sgp */
    enum sgp_compressor compressor; /* of its shares; NONE: as drawn */
    const char *copies;             /* by which owners code theirs; NULL: as drawn */
    bool lies;                      /* a node lies to nodes with a guard */
};
extern struct campaign_plant campaign_plants[];               /* the last one's name is NULL */
struct campaign_plant *campaign_plant_find(const char *name); /* or NULL */

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The life of the daemon: start, the loop, signals, the end. The running node is the layer below,
 * daemon/node. Each of its files calls only files below it:
 *
 *   orders.c           orders of clients and signals: pause, stop, leave, reload
 *   inspect.c          what the control socket shows (util/view.h)
 *   rollouts.c         votes on signed topology files, and their use
 *   reload.c           another topology file, without a pause
 *   calls.c            connections to nodes that cannot be dialled, which those nodes open
 *   bulletins.c        questions and answers about bulletins: reports, the scaling of the fleet
 *   performer.c        performs the core's effects, and posts their results back
 *   milestones.c       what follows from the core's notes: measure, save, checkpoint
 *   neighbours.c       strangers become neighbours; what happens on a connection becomes an event
 *   layouts.c          finds the tensor in which the models of two programs differ
 *   reports.c          what all nodes tell of their models; reports_inside.h lists its files
 *   program.c          a program that trains through this daemon; program_inside.h lists its files
 *   questions.c        what clients ask that program between two of its turns
 *   kept.c             the best model that the fleet keeps; kept_inside.h lists its files
 *   fleet_own.c        what this node says about itself to the whole fleet
 *   fleet_rows.c       what all nodes say: rows that are received, kept and relayed
 *   documents.c        signed topology files: stored, shown, exchanged with neighbours
 *   statements.c       signed statements on the end of the fleet: stored, relayed, proven
 *   facts.c            words of programs that decide together: relayed, complete
 *   fact_table.c       the stored words
 *   inquiry.c          questions about what a node that has left had accepted
 *   survive.c          the ledger and the checkpoints: of an earlier process, and of this one
 *   runs.c             the run in which the node takes part, and what of a former run is set aside
 *   background_jobs.c  jobs that the core does not know: evaluate, predict, save
 *   privacy.c          what private steps have cost, or a program claims; what must not leave
 *   colocated_owner.c  the owner colocated with a node that trains: a process of its own
 *   trust.c            which nodes the topology file admits, and how their links are ciphered
 *   formers.c          nodes that signed files have struck, which may ask for the file in use
 *   guests.c           machines that join by an invitation, and the invitations
 *   notes.c            lines for people: the log, STATUS=, which node is waited for
 *   events.c           the only entrance to the core
 *   edges.c            which connection belongs to which edge of the topology
 *   changes.c          the differences of two topology files, for people
 *   task.c             the fixed pool of jobs
 *   early_stop.c       signals before the loop listens to them
 *   state.h            struct daemon, which all of these files share
 *
 * No action of a peer ends the process. The process ends by an order to stop, by the end of
 * training with `when_done = exit`, and by failures before the loop begins. Thread: the loop
 * thread. */
#ifndef SGPD_DAEMON_H
#define SGPD_DAEMON_H

#include "node/colocated_owner.h"
#include "setup/config.h"
#include "attach/attach_socket.h"
#include "util/log.h"
#include "setup/prepare.h"

/* What a node may have beside its configuration. NULL: the node does not have it. */
struct daemon_extras {
    struct attachment *attachment;     /* the program that brought its model */
    struct colocated_owner *colocated; /* ends before the node does */
    int socket;        /* the control socket, from control_keep; negative: it is not open yet */
    bool without_rows; /* publish no rows of the fleet: what bench/rows.py compares with */
};

#define DAEMON_AGAIN (-1)  /* the node was reset: this program must restart */
#define DAEMON_STRUCK (-2) /* a signed topology file does not name the node any more */

/* Run a prepared node, whose state directory is open (store/state_directory.h). Returns the
 * process's exit status, DAEMON_AGAIN or DAEMON_STRUCK; failures are logged. */
int daemon_run(const struct config *config, struct prepared *prepared, struct log *log,
    const struct daemon_extras *extras);

#endif

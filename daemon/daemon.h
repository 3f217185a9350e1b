/* SPDX-License-Identifier: Apache-2.0 */
/* The life of the daemon: open, the loop, signals, the end. Below it stands the running node, daemon/node. Each of
 * its files has a header of its own and calls those below it alone:
 *
 *   orders.c      what onlookers and signals order: pause, stop, leave, reload
 *   performer.c   the core's effects carried out, and what comes of them posted back
 *   program.c     the program that trains through this daemon; program_inside.h lists its files
 *   reload.c      another topology file, without a pause
 *   beside.c      the owner beside a node that trains: a process of its own
 *   milestones.c  what follows from the core's notes: measure, save, checkpoint
 *   runs.c        the run that the node takes part in, and what of a former one is set aside
 *   survive.c     the ledger and the checkpoints: what an earlier process left, and what we leave
 *   background_jobs.c      jobs that the core knows nothing of: evaluate, predict, save
 *   calls.c       connections to nodes that cannot be dialled, made by these
 *   neighbours.c  strangers become neighbours; what happens on a connection becomes an event
 *   facts.c       words of programs that decide together: relayed, complete
 *   fact_table.c  the words that are kept
 *   statements.c  signed words on the end of the fleet: kept, relayed, proven
 *   inquiry.c     questions about what a node that is gone has accepted
 *   inspect.c     what the control socket shows (util/view.h)
 *   trust.c       whom the topology file lets in, and how its links are ciphered
 *   notes.c       lines for people: the log, STATUS=, whom we wait for
 *   events.c      the one way into the core
 *   edges.c       which connection belongs to which edge of the topology
 *   task.c        the fixed stock of jobs
 *   early_stop.c  signals before the loop listens to them
 *   state.h       struct daemon, which all of them share
 *
 * Nothing a peer does ends the process. What does: an order to stop, the end of training with
 * `when_done = exit`, and failures before the loop begins. Thread: the loop thread. */
#ifndef SGPD_DAEMON_H
#define SGPD_DAEMON_H

#include "node/beside.h"
#include "setup/config.h"
#include "attach/door.h"
#include "util/log.h"
#include "setup/prepare.h"

/* What a node may have beside its configuration; NULL: it has not. */
struct company {
    struct guest *guest;   /* the program that brought its model, which the node takes in */
    struct beside *beside; /* the owner beside it, which ends before the node does */
};

#define DAEMON_AGAIN (-1) /* the node was reset: this program is to start anew */

/* Run a prepared node. Returns the process's exit status, or DAEMON_AGAIN; failures are logged. */
int daemon_run(const struct config *config, struct prepared *prepared, struct log *log,
    const struct company *company);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of the whole fleet (sgp/fleet.h), which travel beside the heartbeats on the links of
 * neighbours. They are shown to users, and nothing is decided by them.
 *
 * Where the topology file says tls=require, a row counts only if its author has signed it.
 *
 * Fails: a row that no honest node relays ends the link. Without memory a link has no rows. Thread:
 * the loop thread. */
#ifndef SGPD_FLEET_ROWS_H
#define SGPD_FLEET_ROWS_H

#include "state.h"

/* 0 or -ENOMEM. */
int fleet_rows_open(struct daemon *daemon);
void fleet_rows_finish(struct daemon *daemon);

/* Fill in what users see of the fleet. */
void fleet_rows_offer(struct view_actions *actions);

/* Whether the rows of this node and of that node of the file promise different privacy. */
bool fleet_rows_unlike(const struct daemon *daemon, uint32_t peer);

/* A link is up. Rows are sent once its peer has said that it takes them, or has sent some. */
void fleet_rows_greet(struct daemon *daemon, struct link *link);
/* The link is freed. */
void fleet_rows_part(struct link *link);
/* A SUMMARY or a ROW has come. */
void fleet_rows_take(struct daemon *daemon, struct link *link, const struct sgp_message *message);
/* Another file may have other nodes. */
void fleet_rows_reloaded(struct daemon *daemon);

/* Send on every link what is due. */
void fleet_rows_send(struct daemon *daemon);

#endif

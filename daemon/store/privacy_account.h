/* SPDX-License-Identifier: Apache-2.0 */
/* What the private steps of a node have cost, in one memory-mapped file STATE/privacy. A step is
 * charged before it is taken, so the account is never below what has left the node.
 *
 *     header: magic, version, node name | slot 0 | slot 1
 *     slot:   XXH3-64 of what follows | sequence | boot of the machine | counted | set aside
 *
 * `counted` is exact. It survives if the process is killed at any instruction, as the ledger does
 * (ledger.h). `set aside` is ahead of it by a part of what is left, and is on the disk before any
 * of these steps is taken. It is in both slots then, so that a torn page does not lose it. After a
 * power cut, which the other boot shows, all that was set aside counts as spent. So it does if the
 * boot cannot be read, unless the end was clean. A clean end sets nothing aside. A reset of the
 * node leaves the file.
 *
 * Fails: at open, if the file is lost or damaged though the node has trained; then its operator
 * must state what was spent. Thread: the loop thread. */
#ifndef SGPD_PRIVACY_ACCOUNT_H
#define SGPD_PRIVACY_ACCOUNT_H

#include "sgp/privacy.h"
#include "sgp/types.h"

#define PRIVACY_ACCOUNT_FILE "privacy"
#define PRIVACY_TOLD_FILE "told"

struct privacy_sum {
    uint64_t steps;
    struct sgp_privacy_cost cost;
};

struct privacy_account {
    struct privacy_sum counted, aside;
    uint64_t sequence;
    char boot[40];      /* of the machine; "": unknown */
    bool failed;        /* the latest charge: the disk has not taken it */
    unsigned char *map; /* NULL: not open */
};

/* Open DIRECTORY/privacy of node `name`. The directory is locked by the caller. A directory in
 * which no node has trained gets a new file. Returns 0, or -errno. SGP_E_DATA: what was spent is
 * unknown, because the file is damaged, or absent though the node has trained. SGP_E_STATE: it is
 * another node's, or of another version. On failure *account is all zero. */
int privacy_account_open(struct privacy_account *account, const char *directory, const char *name,
    struct sgp_error *error);

/* Before this node does anything with its rows that is not counted. Returns 0, or SGP_E_STATE if
 * the directory has an account, sound or not: it would not know of that. */
int privacy_account_check_absent(const char *directory, struct sgp_error *error);

/* Before statistics of the rows of this node leave: remember for good that they were told, in the
 * empty file DIRECTORY/told. The directory is locked by the caller. Returns 0 or -errno. */
int privacy_account_note_told(const char *directory, struct sgp_error *error);

/* Charge for so many steps of this cost each, unless the sum would be above epsilon at delta.
 * Returns whether the steps may be taken. They may not either if they would have to be set aside on
 * the disk, and it fails: then `failed` is true, and a later call tries again. After false no step
 * is counted. Blocks on the disk now and then. */
bool privacy_account_charge(struct privacy_account *account, const struct sgp_privacy_cost *step,
    uint64_t steps, double epsilon, double delta);

void privacy_account_close(struct privacy_account *account); /* all zero is fine */

/* State what was spent: write a new file in the place of a lost or damaged file. Returns 0;
 * SGP_E_STATE if the file is there and sound, or another node's; or -errno. */
int privacy_account_state(const char *directory, const char *name, const struct privacy_sum *spent,
    struct sgp_error *error);

/* Read what was spent, and change nothing. Returns 0, also if there is no file yet: then *ret_spent
 * is 0. Errors as open. */
int privacy_account_read(const char *directory, const char *name, struct sgp_error *error,
    struct privacy_sum *ret_spent);

#endif

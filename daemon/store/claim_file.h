/* SPDX-License-Identifier: Apache-2.0 */
/* STATE/claim: what the program of this run claims of privacy, as the text of sgp/claim.h in one
 * line. It is a file of the run: a reset sets it aside.
 *
 * Blocks on the disk. Thread: any. */
#ifndef SGPD_CLAIM_FILE_H
#define SGPD_CLAIM_FILE_H

#include "sgp/claim.h"

#define CLAIM_FILE "claim"

/* Write the claim in the place of a former one. Returns 0, or -errno with *error. */
int claim_file_write(const char *directory, const struct sgp_claim *claim, struct sgp_error *error);

/* Read what was written. Returns 1; 0: there is no file; negative with *error: it is damaged, or
 * cannot be read. */
int claim_file_read(const char *directory, struct sgp_error *error, struct sgp_claim *ret_claim);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a fleet as they travel: what each node says about itself, relayed unchanged from link to
 * link, and the summaries by which two neighbours find out which rows the other lacks (anti-entropy
 * with versions: van Renesse, Dumitriu, Gough and Thomas, LADIS 2008).
 *
 * A summary that offers says: I have this version. A summary that wants says: I have this version,
 * send me yours. sgp/fleet.h says when each is sent, and what the text of a row is. */
#ifndef SGP_ROW_H
#define SGP_ROW_H

#include "sgp/types.h"

#define SGP_ROW_TEXT_BYTES 641u             /* the text, with its terminating zero */
#define SGP_ROW_KEY_BYTES 45u               /* a public key as text, with its terminating zero */
#define SGP_ROW_SIGNATURE_BYTES 89u         /* a signature as text, with its terminating zero */
#define SGP_ROW_AGE_MAX ((uint64_t)1 << 42) /* ms: 139 years, which fit sgp_time twice over */

struct sgp_row {
    const char *author; /* < SGP_NAME_BYTES */
    /* Of two rows of an author the one of the greater version counts. The high 32 bits are the
     * author's incarnation: the second in which its process began, by its own clock, or more. The
     * low 32 bits count its rows. */
    uint64_t version;
    const char *text;
    const char *key;       /* of the author; "": the row is not signed */
    const char *signature; /* likewise; docs/PROTOCOL.md has the signed text */
    /* The time for which the nodes on its way have held the row, in ms. Not signed. */
    uint64_t age_ms;
};

#define SGP_SUMMARY_ENTRIES 24u
struct sgp_summary {
    bool wants;
    /* The first entries are in use, up to the first 0: a digest of a node's name
     * (sgp_fleet_name_digest), and the version that the sender has; 0: none. */
    uint64_t nodes[SGP_SUMMARY_ENTRIES];
    uint64_t versions[SGP_SUMMARY_ENTRIES];
};

#endif

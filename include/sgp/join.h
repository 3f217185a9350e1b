/* SPDX-License-Identifier: Apache-2.0 */
/* The two messages by which a machine joins a fleet, and the verdict on an invitation.
 *
 * A joiner has no key in the topology file yet. Its ciphered connection carries SGP_JOIN and the
 * answers SGP_JOINED alone. docs/FLEET.md says how an invitation is used, sgp/invitation.h what is
 * proved. */
#ifndef SGP_JOIN_H
#define SGP_JOIN_H

#include "sgp/types.h"

enum sgp_join_verdict {
    SGP_JOIN_ACCEPTED = 1,
    /* No invitation has this number and secret: it was mistyped or replaced, or the inviter has
     * started again since. Nothing else is told to a caller without the secret. */
    SGP_JOIN_UNKNOWN,
    SGP_JOIN_USED,       /* another key has joined by it */
    SGP_JOIN_EXPIRED,    /* its time is over */
    SGP_JOIN_OTHER_NAME, /* it is for a node of another name */
    SGP_JOIN_VERDICTS = SGP_JOIN_OTHER_NAME,
};

#define SGP_PROOF_TEXT_BYTES 65u             /* 32 bytes in hexadecimal, with the zero */
#define SGP_JOINED_MAX (16u * 1024u * 1024u) /* bytes of the two texts */
#define SGP_JOINED_PIECE_MAX 700u            /* bytes of them in one message */
#define SGP_JOINED_PIECES 8u                 /* messages that answer one SGP_JOIN, at most */

/* "I was invited; send me the texts from this byte on." */
struct sgp_join {
    const char *fleet;   /* < SGP_NAME_BYTES; of the invitation, as the name and the number */
    const char *name;    /* < SGP_NAME_BYTES */
    const char *address; /* of the joiner, for the topology file; < SGP_JOIN_ADDRESS_BYTES */
    uint64_t number;     /* which invitation */
    const char *proof;   /* of its secret, on this connection; 64 hexadecimal digits */
    uint32_t first;      /* the first byte that is wanted, up to SGP_JOINED_MAX */
};
#define SGP_JOIN_ADDRESS_BYTES 256u /* with the zero: a string of a message has 255 bytes */

/* The verdict; of an accepted joiner also a piece of two texts, one behind the other: the topology
 * file, and the part of the inviter's configuration that all nodes share. Both are escaped
 * (sgp/invitation.h), and all numbers count escaped bytes. */
struct sgp_joined {
    uint32_t verdict; /* enum sgp_join_verdict */
    uint32_t bytes;   /* of both texts; 0 unless accepted */
    uint32_t split;   /* of them, the bytes of the topology file */
    uint32_t first;   /* place of the piece */
    const char *text; /* the piece; at most SGP_JOINED_PIECE_MAX bytes */
};

#endif

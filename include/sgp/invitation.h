/* SPDX-License-Identifier: Apache-2.0 */
/* Invitations: a text by which one machine may join a fleet, once and for a limited time.
 *
 * The text names the fleet, the joiner, the inviter's address, the hash of the inviter's key, and a
 * secret of 128 bits. The joiner proves the secret without telling it, as a client of SCRAM does
 * (RFC 5802, section 3), with the names of HMAC-SHA-256:
 *
 *     joiner's key = HMAC(secret, "sgpd joiner")      the inviter keeps SHA-256 of it alone
 *     claim        = fleet, name, address, hash of the joiner's TLS key, channel binding
 *     proof        = joiner's key XOR HMAC(SHA-256(joiner's key), claim)
 *
 * RFC 5802 adds a salt and iterations for passwords that people choose; the secret is random and
 * needs none. The binding is that of the TLS connection (tls-exporter, RFC 9266), so a proof is of
 * no use on another connection. What the book keeps is of no use to join.
 *
 * These functions touch no clock and draw no secret: both are passed in. Times are of one monotonic
 * clock, in ns. One thread at a time for a book. */
#ifndef SGP_INVITATION_H
#define SGP_INVITATION_H

#include "sgp/join.h"
#include "sgp/status.h"

#define SGP_SECRET_BYTES 16u
#define SGP_PROOF_BYTES 32u
#define SGP_BINDING_BYTES 32u                     /* of a TLS connection */
#define SGP_INVITATION_TEXT_BYTES 512u            /* with the zero */
#define SGP_INVITATIONS_MAX 64u                   /* in a book */
#define SGP_INVITATION_LASTS (86400 * SGP_SECOND) /* by default */
#define SGP_INVITATION_LASTS_MAX (7 * SGP_INVITATION_LASTS)
/* How long after its end an invitation is remembered, so that a late joiner is told why. */
#define SGP_INVITATION_KEPT (86400 * SGP_SECOND)

struct sgp_invitation {
    char fleet[SGP_NAME_BYTES];           /* the name of the first digraph of the topology file */
    char name[SGP_NAME_BYTES];            /* of the joiner */
    char address[SGP_JOIN_ADDRESS_BYTES]; /* of the inviter, HOST:PORT */
    char key[SGP_KEY_BYTES];              /* of the inviter: SHA256:... */
    uint8_t secret[SGP_SECRET_BYTES];
};

/* Write the text: "sgp1,FLEET,NAME,ADDRESS,KEY,SECRET". An invitation that sgp_invitation_read
 * would refuse is a programmer's error. */
void sgp_invitation_write(
    const struct sgp_invitation *invitation, char ret_text[SGP_INVITATION_TEXT_BYTES]);

/* Read a text, which may be hostile. Returns 0, or SGP_E_SYNTAX with what is wrong and what would
 * be right. The message never has the secret. */
int sgp_invitation_read(
    const char *text, struct sgp_error *error, struct sgp_invitation *ret_invitation);

/* What a joiner says on its connection. */
struct sgp_join_claim {
    const char *fleet, *name;
    const char *address; /* of the joiner */
    const char *key;     /* the hash of the key that it has in TLS */
    uint8_t binding[SGP_BINDING_BYTES];
    uint64_t number;
    uint8_t proof[SGP_PROOF_BYTES];
};

/* The joiner: fill in number and proof; the other fields are set. */
void sgp_join_claim_prove(struct sgp_join_claim *claim, const uint8_t secret[SGP_SECRET_BYTES]);

/* A proof as text and back: 64 lower-case hexadecimal digits. False: another text. */
void sgp_proof_write(const uint8_t proof[SGP_PROOF_BYTES], char ret_text[SGP_PROOF_TEXT_BYTES]);
bool sgp_proof_read(const char *text, uint8_t ret_proof[SGP_PROOF_BYTES]);

/* What the inviter keeps of an invitation. */
struct sgp_invitation_record {
    bool given; /* false: the place is free */
    bool used;
    char fleet[SGP_NAME_BYTES], name[SGP_NAME_BYTES];
    uint64_t number;                 /* a digest of `stored` */
    uint8_t stored[SGP_PROOF_BYTES]; /* SHA-256 of the joiner's key */
    sgp_time until;
    /* Of the joiner, once used. */
    char key[SGP_KEY_BYTES], address[SGP_JOIN_ADDRESS_BYTES];
};

/* The inviter's book. All zero: no invitation. */
struct sgp_invitations {
    struct sgp_invitation_record records[SGP_INVITATIONS_MAX];
    uint64_t refused; /* claims */
};

/* Enter an invitation that is good for `lasts` ns from now on. It replaces one for the same name,
 * which is unknown from then on. If the book is full, it takes the place of the invitation that
 * ended first, or else of the first that was used. Returns 0, or -EBUSY with *error filled: all are
 * open. */
int sgp_invitations_add(struct sgp_invitations *book, const struct sgp_invitation *invitation,
    sgp_time now, sgp_time lasts, struct sgp_error *error);

/* Judge a claim, which may be hostile; ACCEPTED marks the invitation as used by this key. The same
 * key may claim again until the invitation ends, since a connection may break; its address then
 * takes the place of the former. Any other verdict is counted. Without the secret the verdict is
 * always UNKNOWN. Costs four digests at most, whatever the claim. *ret_record (may be NULL) is the
 * record of an accepted claim. */
enum sgp_join_verdict sgp_invitations_judge(struct sgp_invitations *book,
    const struct sgp_join_claim *claim, sgp_time now,
    const struct sgp_invitation_record **ret_record);

/* Whether a joiner may come that is to be answered: an invitation is remembered. Forgets those that
 * ended more than SGP_INVITATION_KEPT ago and were not used. */
bool sgp_invitations_await(struct sgp_invitations *book, sgp_time now);

/* Forget each invitation to this name, whether it was used or not: a node has it now. */
void sgp_invitations_forget(struct sgp_invitations *book, const char *name);

/* The texts that a joiner receives (sgp/join.h) as strings of messages, and back: every byte but
 * printable ASCII, and "%", is %XX. The caller frees an escaped text; NULL: no memory. Unescaping
 * is in place, and false if the text, which may be hostile, is none; it is then unusable. */
char *sgp_joined_escape(const char *text);
bool sgp_joined_unescape(char *text);

/* The piece of escaped texts of so many bytes that begins at byte `first`, for one message. Nothing
 * else of the texts is read. Returns its length; 0: there is nothing from there on. */
uint32_t sgp_joined_piece(
    const char *texts, uint32_t bytes, uint32_t first, char ret_piece[SGP_JOINED_PIECE_MAX + 1]);

/* One line for the joiner's operator: what happened and what to do. Static storage. */
const char *sgp_join_verdict_text(enum sgp_join_verdict verdict);

#endif

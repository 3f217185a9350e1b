/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands on signed documents (sgp/rollout.h) share: reading them, their signatures, and
 * what a person is shown before a key signs (document.c). No daemon is needed. Whether signers are
 * administrators is not known here: the daemons judge that. */
#ifndef CTL_DOCUMENT_H
#define CTL_DOCUMENT_H

#include "topology.h"

#include "sgp/key.h"
#include "sgp/rollout.h"

/* A whole file, or standard input for `-`, with a zero behind it. The caller frees *ret_text. */
enum ctl_exit ctl_document_text(struct ctl *ctl, const char *path, char **ret_text);

/* Whether a text is a signed document rather than a topology file. */
bool ctl_is_document_text(const char *text);

/* The document in a text, which loses a line feed at its end; or in a file. A fork is refused. The
 * path is for messages. CTL_DONE: the caller calls sgp_document_finish. */
enum ctl_exit ctl_document_parse(
    struct ctl *ctl, const char *path, char *text, struct sgp_document *ret_document);
enum ctl_exit ctl_document_read(
    struct ctl *ctl, const char *path, struct sgp_document *ret_document);

/* A document without signatures of a topology file. `manifest` has its fleet, version and
 * predecessor. Each text of `despite` names nodes, separated by commas. It takes *text over. */
enum ctl_exit ctl_document_begin(struct ctl *ctl, const char *path, char **text,
    const struct sgp_manifest *manifest, const char *const *despite, size_t despite_count,
    struct sgp_document *ret_document);

/* The keys whose signatures hold, as a topology file writes keys. NULL: a signature is wrong, or
 * a signature is needed and missing, which was reported. The caller releases it. */
json_t *ctl_document_signers(
    struct ctl *ctl, const char *path, const struct sgp_document *document, bool unsigned_allowed);

/* What a document says, with the names that `topology verify` prints. Takes ownership of the
 * signers. */
json_t *ctl_document_json(const struct sgp_document *document, json_t *signers);

/* What is to be signed. */
struct ctl_document_view {
    const char *path; /* of the document or file, for messages */
    const struct sgp_document *document;
    const char *after_path;           /* where the predecessor is from; */
    const struct sgp_document *after; /* NULL: it is not known here */
};

/* Add to the object `json` the differences to the predecessor, as ctl_differences_json; nothing if
 * that is not known. */
enum ctl_exit ctl_document_compare(
    struct ctl *ctl, const struct ctl_document_view *view, json_t *json);

/* Refuse a document that is of another fleet than its predecessor, or is not made for it. */
enum ctl_exit ctl_document_follows(struct ctl *ctl, const struct ctl_document_view *view);

/* Show a person on standard error what is to be signed, with the differences to the predecessor;
 * with --json nothing is shown. On a terminal, unless `yes`, ask the question, which says what is
 * done next. A document with a wrong signature is refused. */
enum ctl_exit ctl_document_confirm(
    struct ctl *ctl, const struct ctl_document_view *view, bool yes, const char *question);

/* A secret key, which the caller releases; and sign with it. A key that has signed already changes
 * nothing. */
enum ctl_exit ctl_document_key(struct ctl *ctl, const char *key_path, struct sgp_key **ret_key);
enum ctl_exit ctl_document_sign(
    struct ctl *ctl, const char *path, const struct sgp_key *key, struct sgp_document *document);

#endif

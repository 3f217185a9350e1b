/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands on a fleet's signed topology files ask the daemon (rollout.c). */
#ifndef CTL_ROLLOUT_H
#define CTL_ROLLOUT_H

#include "document.h"

/* GET /v1/rollout. The caller releases *ret_rollout. `quiet`: a failure is only returned, as where
 * the daemon has no [administrators]. */
enum ctl_exit ctl_rollout_ask(struct ctl *ctl, bool quiet, json_t **ret_rollout);

/* GET /v1/rollout/log: {"versions": [...]}, the latest first. */
enum ctl_exit ctl_rollout_log(struct ctl *ctl, json_t **ret_log);

/* Whether a word names a version that the daemon has: a number, `active` or `proposed`. */
bool ctl_is_version(const char *word);

/* The text of its document, which the caller frees. */
enum ctl_exit ctl_rollout_text(struct ctl *ctl, const char *version, char **ret_text);
/* The document, which the caller finishes. */
enum ctl_exit ctl_rollout_document(
    struct ctl *ctl, const char *version, struct sgp_document *ret_document);

/* The version of a member of the answer of GET /v1/rollout, `active` or `proposed`; 0: none. Its
 * identity is "" then. */
uint64_t ctl_rollout_version(const json_t *rollout, const char *slot);
const char *ctl_rollout_identity(const json_t *rollout, const char *slot);

/* Tell a person on standard error the command that pushes a topology file: to the daemon that was
 * asked, or to that of a node that stays. Nothing if it has no [administrators]. With --json it
 * becomes the member `push` of `json`, which may be NULL. */
void ctl_rollout_advise(struct ctl *ctl, const char *path, bool elsewhere, json_t *json);

#endif

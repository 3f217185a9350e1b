/* SPDX-License-Identifier: Apache-2.0 */
/* The inviter's book, and the verdict on a claim; see sgp/invitation.h. */
#include "invite/secret.h"

#include "sgp/invitation.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static bool is_open(const struct sgp_invitation_record *record, sgp_time now)
{
    return record->given && !record->used && now < record->until;
}

/* The place for an invitation to this name; NULL: all are open. */
static struct sgp_invitation_record *find_place(
    struct sgp_invitations *book, const char *name, sgp_time now)
{
    struct sgp_invitation_record *unused = NULL, *used = NULL;
    for (size_t i = 0; i < SGP_INVITATIONS_MAX; i++) {
        struct sgp_invitation_record *record = &book->records[i];
        if (record->given && strcmp(record->name, name) == 0)
            return record;
        if (is_open(record, now))
            continue;
        struct sgp_invitation_record **best = record->used ? &used : &unused;
        if (*best == NULL || record->until < (*best)->until)
            *best = record;
    }
    return unused != NULL ? unused : used;
}

int sgp_invitations_add(struct sgp_invitations *book, const struct sgp_invitation *invitation,
    sgp_time now, sgp_time lasts, struct sgp_error *error)
{
    sgp_assert(lasts > 0 && lasts <= SGP_INVITATION_LASTS_MAX);
    struct sgp_invitation_record *place = find_place(book, invitation->name, now);
    if (place == NULL)
        return sgp_fail(error, -EBUSY,
            "%u invitations are open; wait until one is used or has ended", SGP_INVITATIONS_MAX);
    *place = (struct sgp_invitation_record){.given = true, .until = now + lasts};
    (void)snprintf(place->fleet, sizeof place->fleet, "%s", invitation->fleet);
    (void)snprintf(place->name, sizeof place->name, "%s", invitation->name);
    sgp_secret_store(invitation->secret, place->stored);
    place->number = sgp_secret_number(place->stored);
    return 0;
}

static struct sgp_invitation_record *find(struct sgp_invitations *book, uint64_t number)
{
    for (size_t i = 0; i < SGP_INVITATIONS_MAX; i++)
        if (book->records[i].given && book->records[i].number == number)
            return &book->records[i];
    return NULL;
}

/* The secret has been proved. */
static enum sgp_join_verdict judge(
    const struct sgp_invitation_record *record, const struct sgp_join_claim *claim, sgp_time now)
{
    if (strcmp(record->name, claim->name) != 0)
        return SGP_JOIN_OTHER_NAME;
    if (record->used && strcmp(record->key, claim->key) != 0)
        return SGP_JOIN_USED;
    return now < record->until ? SGP_JOIN_ACCEPTED : SGP_JOIN_EXPIRED;
}

enum sgp_join_verdict sgp_invitations_judge(struct sgp_invitations *book,
    const struct sgp_join_claim *claim, sgp_time now,
    const struct sgp_invitation_record **ret_record)
{
    struct sgp_invitation_record *record = find(book, claim->number);
    const bool known = record != NULL && strcmp(record->fleet, claim->fleet) == 0 &&
                       sgp_secret_is_proved(claim, record->stored);
    const enum sgp_join_verdict verdict = known ? judge(record, claim, now) : SGP_JOIN_UNKNOWN;
    if (verdict != SGP_JOIN_ACCEPTED) {
        book->refused++;
        return verdict;
    }
    record->used = true;
    (void)snprintf(record->key, sizeof record->key, "%s", claim->key);
    (void)snprintf(record->address, sizeof record->address, "%s", claim->address);
    if (ret_record != NULL)
        *ret_record = record;
    return verdict;
}

bool sgp_invitations_await(struct sgp_invitations *book, sgp_time now)
{
    bool awaits = false;
    for (size_t i = 0; i < SGP_INVITATIONS_MAX; i++) {
        struct sgp_invitation_record *record = &book->records[i];
        const bool past = record->given && now - record->until > SGP_INVITATION_KEPT;
        if (past && !record->used)
            *record = (struct sgp_invitation_record){.given = false};
        awaits |= record->given && !past;
    }
    return awaits;
}

void sgp_invitations_forget(struct sgp_invitations *book, const char *name)
{
    for (size_t i = 0; i < SGP_INVITATIONS_MAX; i++)
        if (strcmp(book->records[i].name, name) == 0)
            book->records[i] = (struct sgp_invitation_record){.given = false};
}

const char *sgp_join_verdict_text(enum sgp_join_verdict verdict)
{
    switch (verdict) {
    case SGP_JOIN_ACCEPTED:
        return "the invitation is accepted";
    case SGP_JOIN_UNKNOWN:
        return "the inviter does not know this invitation: it was replaced, a topology file has "
               "named its node, or the inviter has started again since; ask for a new one";
    case SGP_JOIN_USED:
        return "the invitation was used already, by another key; ask for a new one, and say so if "
               "you did not use it";
    case SGP_JOIN_EXPIRED:
        return "the invitation has expired; ask for a new one";
    case SGP_JOIN_OTHER_NAME:
        return "the invitation is for a node of another name; ask for one with this node's name";
    }
    return "the inviter gave an answer that this program does not know";
}

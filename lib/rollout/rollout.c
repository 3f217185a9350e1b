/* SPDX-License-Identifier: Apache-2.0 */
/* Which version of the topology file a node uses, and which it votes on; see sgp/rollout.h. */
#include "sgp/rollout.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FORM "sgpd-rollout-1"

struct held {
    char *text; /* of the document; NULL: there is none, and what follows means nothing */
    struct sgp_document document;
    bool recovered; /* the recovery key has signed */
};

struct sgp_rollout {
    struct sgp_rollout_settings settings;
    struct held active;
    struct held followed; /* a neighbour uses it, and this node must follow */
    struct held proposed;
    enum sgp_vote vote; /* on what is proposed, if that is no fork */
    char why[SGP_TEXT_BYTES];
};

struct sgp_rollout *sgp_rollout_create(const struct sgp_rollout_settings *settings)
{
    struct sgp_rollout *rollout = calloc(1, sizeof *rollout);
    if (rollout == NULL)
        return NULL;
    rollout->settings = *settings;
    rollout->vote = SGP_VOTE_NONE;
    return rollout;
}

static void drop(struct held *held)
{
    sgp_document_finish(&held->document);
    free(held->text);
    memset(held, 0, sizeof *held);
}

void sgp_rollout_destroy(struct sgp_rollout *rollout)
{
    if (rollout == NULL)
        return;
    drop(&rollout->active);
    drop(&rollout->followed);
    drop(&rollout->proposed);
    free(rollout);
}

static bool copy_held(const struct held *held, struct held *ret_held)
{
    struct sgp_error ignored = {0};
    if (held->text == NULL)
        return true;
    if (sgp_document_read(held->text, &ignored, &ret_held->document) < 0)
        return false;
    const size_t bytes = strlen(held->text) + 1;
    ret_held->text = malloc(bytes);
    ret_held->recovered = held->recovered;
    if (ret_held->text != NULL)
        memcpy(ret_held->text, held->text, bytes);
    return ret_held->text != NULL;
}

struct sgp_rollout *sgp_rollout_copy(const struct sgp_rollout *rollout)
{
    struct sgp_rollout *copy = sgp_rollout_create(&rollout->settings);
    if (copy == NULL)
        return NULL;
    copy->vote = rollout->vote;
    memcpy(copy->why, rollout->why, sizeof copy->why);
    if (copy_held(&rollout->active, &copy->active) &&
        copy_held(&rollout->followed, &copy->followed) &&
        copy_held(&rollout->proposed, &copy->proposed))
        return copy;
    sgp_rollout_destroy(copy);
    return NULL;
}

/* ---- what is held ---- */

static uint64_t version_of(const struct held *held)
{
    return held->text != NULL ? held->document.manifest.version : 0;
}

static const char *identity_of(const struct held *held)
{
    return held->text != NULL ? held->document.identity : "";
}

static bool forks(const struct held *held)
{
    return held->text != NULL && held->document.file == NULL;
}

/* Of two versions in use the higher one wins. Two files of one version are not in use together
 * unless many nodes were struck at once; then all nodes end with the same one. */
static bool wins(const struct held *held, const struct sgp_document *over)
{
    const uint64_t version = over->manifest.version;
    return version_of(held) != version ? version_of(held) > version
                                       : strcmp(identity_of(held), over->identity) >= 0;
}

static void move(struct held *to, struct held *from)
{
    drop(to);
    *to = *from;
    memset(from, 0, sizeof *from);
}

static void propose(struct sgp_rollout *rollout, struct held *held)
{
    move(&rollout->proposed, held);
    rollout->vote = SGP_VOTE_NONE;
    rollout->why[0] = '\0';
}

/* ---- documents that come ---- */

static int judge(const struct sgp_rollout *rollout, const struct sgp_manifest *manifest,
    struct sgp_error *error, bool *ret_recovered)
{
    return sgp_manifest_judge(manifest, &rollout->settings.administrators, rollout->settings.verify,
        error, ret_recovered);
}

/* Read and judge a document, and write it in the one way. */
static int read_held(const struct sgp_rollout *rollout, const char *text, struct sgp_error *error,
    struct held *ret_held)
{
    struct held held = {.text = NULL};
    bool ignored;
    int code = sgp_document_read(text, error, &held.document);
    if (code < 0)
        return code;
    code = judge(rollout, &held.document.manifest, error, &held.recovered);
    if (code == 0 && held.document.file == NULL)
        code = judge(rollout, &held.document.rival, error, &ignored);
    if (code == 0 && (held.text = sgp_document_write(&held.document)) == NULL)
        code = -ENOMEM;
    if (code < 0)
        drop(&held);
    else
        *ret_held = held;
    return code;
}

/* Two manifests of one version: what is proposed, or in use, and this one. */
static int fork_with(
    struct sgp_rollout *rollout, const struct held *known, const struct sgp_document *other)
{
    const bool first = strcmp(known->document.identity, other->identity) < 0;
    const struct sgp_document *less = first ? &known->document : other;
    struct held fork = {.document = {.manifest = less->manifest,
                            .rival = first ? other->manifest : known->document.manifest}};
    memcpy(fork.document.identity, less->identity, sizeof fork.document.identity);
    fork.text = sgp_document_write(&fork.document);
    if (fork.text == NULL)
        return -ENOMEM;
    propose(rollout, &fork);
    return 1;
}

/* Whether a document takes the place of what is proposed. A fork goes before each of its files, and
 * of two forks of one version the first in the order of their texts. So all nodes end with one. */
static bool replaces(const struct held *held, const struct held *top)
{
    if (version_of(held) != version_of(top))
        return version_of(held) > version_of(top);
    return forks(held) && (!forks(top) || strcmp(held->text, top->text) < 0);
}

/* What is proposed, or in use, with other signatures. The recovery key counts also if it has signed
 * after the others. The vote stays, because the file does. */
static int take_recovery(struct sgp_rollout *rollout, struct held *held)
{
    if (rollout->proposed.text == NULL || rollout->proposed.recovered || !held->recovered)
        return 0;
    move(&rollout->proposed, held);
    return 1;
}

/* A document that a neighbour proposes. `held` is taken over if the result is 1. */
static int take_proposed(struct sgp_rollout *rollout, struct held *held)
{
    const struct held *top = rollout->proposed.text != NULL ? &rollout->proposed : &rollout->active;
    if (replaces(held, top)) {
        propose(rollout, held);
        return 1;
    }
    if (version_of(held) < version_of(top) || forks(top) || forks(held))
        return 0;
    if (strcmp(identity_of(held), identity_of(top)) == 0)
        return take_recovery(rollout, held);
    return fork_with(rollout, top, &held->document);
}

/* A document that a neighbour uses. */
static int take_active(struct sgp_rollout *rollout, struct held *held)
{
    if (forks(held) || wins(&rollout->active, &held->document) ||
        (rollout->followed.text != NULL && wins(&rollout->followed, &held->document)))
        return 0;
    move(&rollout->followed, held);
    return 1;
}

int sgp_rollout_take(struct sgp_rollout *rollout, enum sgp_rollout_slot slot, const char *text,
    struct sgp_error *error)
{
    struct held held;
    int code = read_held(rollout, text, error, &held);
    if (code < 0)
        return code;
    code = slot == SGP_ROLLOUT_ACTIVE ? take_active(rollout, &held) : take_proposed(rollout, &held);
    drop(&held); /* empty if it was taken over */
    return code;
}

/* ---- votes ---- */

const char *sgp_vote_name(enum sgp_vote vote)
{
    static const char *const names[] = {[SGP_VOTE_NONE] = "none",
        [SGP_VOTE_ACCEPTED] = "accepted",
        [SGP_VOTE_REFUSED] = "refused",
        [SGP_VOTE_FORKED] = "forked"};
    return (size_t)vote < sizeof names / sizeof *names ? names[vote] : NULL;
}

/* Whether the proposed file was made for the file that this node uses. */
static bool follows_active(const struct sgp_rollout *rollout)
{
    return strcmp(rollout->proposed.document.manifest.predecessor, identity_of(&rollout->active)) ==
           0;
}

enum sgp_rollout_due sgp_rollout_due(const struct sgp_rollout *rollout, const char **ret_file)
{
    if (rollout->followed.text != NULL) {
        *ret_file = rollout->followed.document.file;
        return SGP_ROLLOUT_FOLLOW;
    }
    if (rollout->proposed.text == NULL || forks(&rollout->proposed) ||
        rollout->vote != SGP_VOTE_NONE || !follows_active(rollout))
        return SGP_ROLLOUT_NOTHING;
    *ret_file = rollout->proposed.document.file;
    return SGP_ROLLOUT_TRY;
}

void sgp_rollout_vote(struct sgp_rollout *rollout, const char *why)
{
    rollout->vote = why == NULL ? SGP_VOTE_ACCEPTED : SGP_VOTE_REFUSED;
    (void)snprintf(rollout->why, sizeof rollout->why, "%s", why != NULL ? why : "");
}

static uint64_t mark_of(const char *identity)
{
    char high[17];
    memcpy(high, identity, 16);
    high[16] = '\0';
    return strtoull(high, NULL, 16);
}

void sgp_rollout_look(const struct sgp_rollout *rollout, struct sgp_rollout_view *ret_view)
{
    const struct held *proposed = &rollout->proposed;
    struct sgp_rollout_view view = {.active = version_of(&rollout->active),
        .proposed = version_of(proposed),
        .mark = proposed->text != NULL ? mark_of(identity_of(proposed)) : 0,
        .vote = rollout->vote};
    memcpy(view.why, rollout->why, sizeof view.why);
    if (forks(proposed)) {
        char rival[SGP_HASH_BYTES];
        sgp_manifest_identify(&proposed->document.rival, rival);
        view.vote = SGP_VOTE_FORKED;
        (void)snprintf(view.why, sizeof view.why,
            "two files have version %" PRIu64 ", %.16s and %.16s; sign one with a higher version",
            view.proposed, identity_of(proposed), rival);
    } else if (proposed->text != NULL && !follows_active(rollout)) {
        view.vote = SGP_VOTE_REFUSED;
        (void)snprintf(view.why, sizeof view.why,
            "version %" PRIu64 " is not made for version %" PRIu64
            ", which is in use; sign it again with a higher version",
            view.proposed, view.active);
    }
    *ret_view = view;
}

void sgp_rollout_count(const struct sgp_rollout *rollout, const struct sgp_rollout_voter *voters,
    uint32_t count, struct sgp_rollout_tally *ret_tally)
{
    const struct held *proposed = &rollout->proposed;
    struct sgp_rollout_tally tally = {.accepted = 0};
    const bool counts = proposed->text != NULL && !forks(proposed) && follows_active(rollout);
    const uint64_t mark = counts ? mark_of(identity_of(proposed)) : 0;
    for (uint32_t i = 0; counts && i < count; i++) {
        const struct sgp_rollout_voter *voter = &voters[i];
        const enum sgp_vote vote = voter->mark == mark ? voter->vote : SGP_VOTE_NONE;
        const bool must =
            voter->stays && !sgp_manifest_passes_over(&proposed->document.manifest, voter->name);
        tally.accepted += vote == SGP_VOTE_ACCEPTED;
        if (!must || vote == SGP_VOTE_ACCEPTED)
            continue;
        tally.refused += vote != SGP_VOTE_NONE;
        tally.missing += vote == SGP_VOTE_NONE;
        if (tally.waits_for[0] == '\0')
            (void)snprintf(tally.waits_for, sizeof tally.waits_for, "%s", voter->name);
    }
    tally.ready = counts && tally.missing == 0 && tally.refused == 0 && tally.accepted > 0 &&
                  (proposed->recovered || 2 * (uint64_t)tally.accepted > count);
    *ret_tally = tally;
}

void sgp_rollout_activate(struct sgp_rollout *rollout, enum sgp_rollout_slot slot)
{
    struct held *from = slot == SGP_ROLLOUT_ACTIVE ? &rollout->followed : &rollout->proposed;
    sgp_assert(from->text != NULL && !forks(from));
    move(&rollout->active, from);
    if (rollout->followed.text != NULL && wins(&rollout->active, &rollout->followed.document))
        drop(&rollout->followed);
    if (version_of(&rollout->proposed) < version_of(&rollout->active) ||
        (version_of(&rollout->proposed) == version_of(&rollout->active) &&
            !forks(&rollout->proposed)))
        drop(&rollout->proposed);
    rollout->vote = SGP_VOTE_NONE; /* a vote holds for one predecessor */
    rollout->why[0] = '\0';
}

/* ---- for others, and for the next process ---- */

const char *sgp_rollout_text(
    const struct sgp_rollout *rollout, enum sgp_rollout_slot slot, uint64_t *ret_stamp)
{
    const struct held *held = slot == SGP_ROLLOUT_ACTIVE ? &rollout->active : &rollout->proposed;
    *ret_stamp = 2 * version_of(held) + forks(held);
    return held->text;
}

const struct sgp_document *sgp_rollout_document(
    const struct sgp_rollout *rollout, enum sgp_rollout_slot slot)
{
    const struct held *held = slot == SGP_ROLLOUT_ACTIVE ? &rollout->active : &rollout->proposed;
    return held->text != NULL && !forks(held) ? &held->document : NULL;
}

static const char *or_none(const char *text)
{
    return text != NULL ? text : "none";
}

char *sgp_rollout_save(const struct sgp_rollout *rollout)
{
    const char *active = or_none(rollout->active.text);
    const char *proposed = or_none(rollout->proposed.text);
    const size_t bytes = strlen(active) + strlen(proposed) + sizeof FORM "\n\n\n";
    char *text = malloc(bytes);
    if (text != NULL)
        (void)snprintf(text, bytes, FORM "\n%s\n%s\n", active, proposed);
    return text;
}

/* A document of an earlier process. */
static int restore(struct sgp_rollout *rollout, struct held *held, bool judged, char *line,
    struct sgp_error *error)
{
    struct sgp_error why = {0};
    bool ignored;
    if (strcmp(line, "none") == 0)
        return 0;
    int code = sgp_document_read(line, error, &held->document);
    if (code < 0)
        return code;
    code = judge(rollout, &held->document.manifest, &why, &held->recovered);
    if (code == 0 && held->document.file == NULL)
        code = judge(rollout, &held->document.rival, &why, &ignored);
    if (code == 0 || !judged) {
        held->text = sgp_document_write(&held->document);
        return held->text != NULL ? 0 : -ENOMEM;
    }
    drop(held);
    return 0;
}

int sgp_rollout_restore(struct sgp_rollout *rollout, const char *text, struct sgp_error *error)
{
    sgp_assert(rollout->active.text == NULL && rollout->proposed.text == NULL);
    const size_t bytes = strlen(text) + 1, form = strlen(FORM "\n");
    char *copy = malloc(bytes);
    if (copy == NULL)
        return -ENOMEM;
    memcpy(copy, text, bytes);
    char *first = copy + form;
    char *end = strncmp(copy, FORM "\n", form) == 0 ? strchr(first, '\n') : NULL;
    char *last = end != NULL ? strchr(end + 1, '\n') : NULL;
    int code;
    if (last == NULL || last[1] != '\0') {
        code = sgp_fail(error, SGP_E_DATA, "is not what sgpd has stored about its rollout");
    } else {
        *end = *last = '\0';
        code = restore(rollout, &rollout->active, false, first, error);
        if (code == 0 && forks(&rollout->active))
            code = sgp_fail(error, SGP_E_DATA, "says that a fork is in use");
        if (code == 0)
            code = restore(rollout, &rollout->proposed, true, end + 1, error);
    }
    free(copy);
    return code;
}

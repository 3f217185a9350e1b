/* SPDX-License-Identifier: Apache-2.0 */
/* `sgpctl topology push` and `topology rollback`: give a signed version to the daemon, which passes
 * it on, and wait until it is in use (topology_votes.h). The daemon judges the signatures. */
#include "rollout.h"
#include "topology_votes.h"

#include "sgp/dot.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE_SECONDS 60.0

struct push {
    const char *path; /* of the file, for messages */
    const char *key_paths[SGP_MANIFEST_SIGNERS_MAX];
    const char *despite[SGP_MANIFEST_DESPITE_MAX];
    size_t key_count, despite_count;
    double timeout;
    bool yes, waits;

    struct sgp_key *keys[SGP_MANIFEST_SIGNERS_MAX];
    struct sgp_document document;
    struct sgp_topology *topology; /* of the file that is pushed */
    uint64_t active;               /* the version that was in use before */
};

/* ---- options ---- */

enum { SIGN, DESPITE, TIMEOUT, NO_WAIT, YES, OPTIONS };

static const struct ctl_option options[] = {[SIGN] = {"--sign", .value = "KEY", .repeats = true,
                                                .summary = "sign with the secret key in this file"},
    [DESPITE] = {"--despite", .value = "NODE,...", .repeats = true,
        .summary = "nodes whose acceptance is not waited for"},
    [TIMEOUT] = {"--timeout", .value = "S",
        .summary = "end the waiting with 5 after S seconds (60); what was pushed stays proposed"},
    [NO_WAIT] = {"--no-wait", .summary = "end once the daemon has taken the document"},
    [YES] = {"--yes", .summary = "on a terminal, do not ask before"},
    [OPTIONS] = {0}};

static enum ctl_exit take_values(struct ctl *ctl, int argc, char **argv, const char *name,
    size_t most, const char **values, size_t *ret_count)
{
    int at = 0;
    const char *value;
    while ((value = ctl_option_next(argc, argv, name, &at)) != NULL) {
        if (*ret_count == most)
            return ctl_usage(ctl, "%s was given more than %zu times", name, most);
        values[(*ret_count)++] = value;
    }
    return CTL_DONE;
}

static enum ctl_exit take_options(struct ctl *ctl, int *argc, char **argv, struct push *push)
{
    struct ctl_given given[OPTIONS] = {0};
    enum ctl_exit status = take_values(ctl, *argc, argv, options[SIGN].name,
        SGP_MANIFEST_SIGNERS_MAX, push->key_paths, &push->key_count);
    if (status == CTL_DONE)
        status = take_values(ctl, *argc, argv, options[DESPITE].name, SGP_MANIFEST_DESPITE_MAX,
            push->despite, &push->despite_count);
    if (status == CTL_DONE)
        status = ctl_options_take(ctl, argc, argv, given, OPTIONS, 1, 1);
    push->timeout = PATIENCE_SECONDS;
    if (status == CTL_DONE)
        status = ctl_option_real(ctl, &given[TIMEOUT], 0, 1e9, &push->timeout);
    if (status == CTL_DONE && given[NO_WAIT].given && given[TIMEOUT].given)
        status = ctl_usage(ctl, "--no-wait does not wait, so --timeout has no use");
    push->waits = !given[NO_WAIT].given;
    push->yes = given[YES].given;
    for (size_t i = 0; i < push->key_count && status == CTL_DONE; i++)
        status = ctl_document_key(ctl, push->key_paths[i], &push->keys[i]);
    return status;
}

static void finish(struct push *push)
{
    for (size_t i = 0; i < push->key_count; i++)
        sgp_key_release(push->keys[i]);
    sgp_document_finish(&push->document);
    sgp_topology_destroy(push->topology);
}

/* ---- the document ---- */

static uint64_t latest_version(const json_t *rollout)
{
    const uint64_t active = ctl_rollout_version(rollout, "active");
    const uint64_t proposed = ctl_rollout_version(rollout, "proposed");
    return proposed > active ? proposed : active;
}

/* A new version of a topology file. It is above what is proposed, which it takes the place of: two
 * files of one version would be a fork. It takes *text over. */
static enum ctl_exit begin(struct ctl *ctl, struct push *push, const json_t *rollout, char **text)
{
    struct sgp_manifest manifest = {.version = latest_version(rollout) + 1};
    if (push->key_count == 0)
        return ctl_usage(ctl, "--sign KEY is missing: %s is not signed", push->path);
    (void)snprintf(manifest.fleet, sizeof manifest.fleet, "%s", ctl_text_of(rollout, "fleet", ""));
    (void)snprintf(manifest.predecessor, sizeof manifest.predecessor, "%s",
        ctl_rollout_identity(rollout, "active"));
    if (manifest.version > push->active + 1 && !ctl->json)
        (void)fprintf(stderr,
            "sgpctl: version %" PRIu64 " takes the place of version %" PRIu64
            ", which is proposed\n",
            manifest.version, manifest.version - 1);
    return ctl_document_begin(
        ctl, push->path, text, &manifest, push->despite, push->despite_count, &push->document);
}

/* A node that is not in the file does not use it, so it could not tell when the others do. */
static enum ctl_exit check_asked_node(struct ctl *ctl, const struct push *push)
{
    const struct ctl_request request = {.method = "GET", .path = "/v1/status"};
    json_t *answer = NULL;
    enum ctl_exit status = ctl_ask_json(ctl, &request, &answer);
    const char *name = ctl_text_of(answer, "name", "");
    if (status == CTL_DONE && sgp_topology_find(push->topology, name) < 0)
        status = ctl_fail(ctl, CTL_FAILED,
            "%s: it strikes %s, whose daemon was asked; push it on a node that stays", push->path,
            name);
    json_decref(answer);
    return status;
}

/* The document of a text; it takes *text over. */
static enum ctl_exit make(struct ctl *ctl, struct push *push, const json_t *rollout, char **text)
{
    struct sgp_error error = {0};
    push->active = ctl_rollout_version(rollout, "active");
    if (push->despite_count > 0 && ctl_is_document_text(*text))
        return ctl_usage(
            ctl, "--despite is for a topology file; %s is a signed document", push->path);
    enum ctl_exit status = ctl_is_document_text(*text)
                               ? ctl_document_parse(ctl, push->path, *text, &push->document)
                               : begin(ctl, push, rollout, text);
    if (status != CTL_DONE)
        return status;
    const struct sgp_document *document = &push->document;
    return sgp_dot_parse(document->file, document->manifest.file_bytes, push->path, &error,
               &push->topology) == 0
               ? check_asked_node(ctl, push)
               : ctl_fail(ctl, CTL_INVALID, "%s", error.text);
}

/* Show what is signed or pushed beside what is in use, and sign it. */
static enum ctl_exit sign(struct ctl *ctl, struct push *push, const json_t *rollout)
{
    struct sgp_document active = {.file = NULL};
    enum ctl_exit status = CTL_DONE;
    if (push->active > 0 && !ctl_is_in_use(&push->document, rollout))
        status = ctl_rollout_document(ctl, "active", &active);
    const struct ctl_document_view view = {.path = push->path,
        .document = &push->document,
        .after_path = "the version in use",
        .after = active.file != NULL ? &active : NULL};
    if (status == CTL_DONE)
        status = ctl_document_confirm(ctl, &view, push->yes, "Push this to the whole fleet?");
    for (size_t i = 0; i < push->key_count && status == CTL_DONE; i++)
        status = ctl_document_sign(ctl, push->path, push->keys[i], &push->document);
    sgp_document_finish(&active);
    return status;
}

/* Give it to the daemon. */
static enum ctl_exit post(struct ctl *ctl, const struct push *push, json_t **ret_answer)
{
    char *text = sgp_document_write(&push->document);
    if (text == NULL)
        return ctl_fail(ctl, CTL_FAILED, "%s", sgp_strerror(-ENOMEM));
    const struct ctl_request request = {.method = "POST",
        .path = "/v1/rollout",
        .body = text,
        .body_bytes = strlen(text),
        .content_type = "text/plain",
        .body_path = push->path};
    const enum ctl_exit status = ctl_ask_json(ctl, &request, ret_answer);
    free(text);
    return status;
}

/* ---- the result ---- */

/* Takes `behind` over; NULL: it is not known. */
static enum ctl_exit print(
    struct ctl *ctl, const struct push *push, const char *state, json_t *behind)
{
    json_t *json =
        json_pack("{s:I, s:s, s:s}", "version", (json_int_t)push->document.manifest.version,
            "identity", push->document.identity, "state", state);
    if (behind != NULL)
        (void)json_object_set_new(json, "behind", behind);
    if (ctl->json)
        return ctl_print_json(json);
    ctl_print_object(ctl, json);
    json_decref(json);
    return CTL_DONE;
}

static enum ctl_exit wait_for(struct ctl *ctl, const struct push *push)
{
    const struct ctl_votes votes = {
        .document = &push->document, .topology = push->topology, .active = push->active};
    json_t *rollout = NULL;
    enum ctl_exit status = ctl_votes_wait(ctl, &votes, push->timeout, &rollout);
    if (status == CTL_DONE)
        status = print(ctl, push, "active", ctl_votes_behind(&votes, rollout));
    json_decref(rollout);
    return status;
}

/* Push what is in *text, which is taken over. */
static enum ctl_exit push_text(struct ctl *ctl, struct push *push, char **text)
{
    json_t *rollout = NULL, *answer = NULL;
    enum ctl_exit status = ctl_rollout_ask(ctl, false, &rollout);
    if (status == CTL_DONE)
        status = make(ctl, push, rollout, text);
    if (status == CTL_DONE)
        status = sign(ctl, push, rollout);
    if (status == CTL_DONE)
        status = post(ctl, push, &answer);
    if (status == CTL_DONE)
        status = push->waits ? wait_for(ctl, push)
                             : print(ctl, push, ctl_text_of(answer, "state", "proposed"), NULL);
    json_decref(answer);
    json_decref(rollout);
    return status;
}

/* ---- the commands ---- */

static enum ctl_exit run_push(struct ctl *ctl, int argc, char **argv)
{
    struct push push = {.path = NULL};
    char *text = NULL;
    enum ctl_exit status = take_options(ctl, &argc, argv, &push);
    if (status == CTL_DONE) {
        push.path = argv[0];
        status = ctl_document_text(ctl, argv[0], &text);
    }
    if (status == CTL_DONE)
        status = push_text(ctl, &push, &text);
    free(text);
    finish(&push);
    return status;
}

static enum ctl_exit run_rollback(struct ctl *ctl, int argc, char **argv)
{
    struct push push = {.path = NULL};
    struct sgp_document old = {.file = NULL};
    char path[64];
    uint64_t version;
    enum ctl_exit status = take_options(ctl, &argc, argv, &push);
    if (status == CTL_DONE && !ctl_text_u64(argv[0], &version))
        status = ctl_usage(ctl, "'%s' is no version; sgpctl topology log shows them", argv[0]);
    if (status == CTL_DONE && push.key_count == 0)
        status = ctl_usage(ctl, "--sign KEY is missing: to go back is a new version");
    if (status == CTL_DONE)
        status = ctl_rollout_document(ctl, argv[0], &old);
    if (status == CTL_DONE) {
        (void)snprintf(path, sizeof path, "version %" PRIu64, version);
        push.path = path;
        status = push_text(ctl, &push, &old.file);
    }
    sgp_document_finish(&old);
    finish(&push);
    return status;
}

const struct ctl_command ctl_topology_push_command = {.words = "topology push",
    .operands = "FILE",
    .options = options,
    .summary = "give a signed topology file to the whole fleet, and wait until it is in use",
    .help =
        "FILE is a topology file, which becomes the next version of the fleet, after the one that\n"
        "the daemon uses; or a signed document, to which the signatures are added. `-` is "
        "standard\n"
        "input. --sign may be given several times, as often as administrators must sign. What is\n"
        "pushed, and what it changes, is shown on standard error first; on a terminal it asks.\n"
        "\n"
        "Any node will do: nodes pass the version on, try it as a reload does, and use it once "
        "all\n"
        "have accepted it. Votes are told on standard error. Ends with 1 if a node refuses, or if\n"
        "another file of the same version was pushed; with 5 if votes are missing when the time "
        "is\n"
        "over. Nodes that did not use it yet are `behind`; they follow by themselves.\n"
        "For root and the daemon's own user.\n",
    .run = run_push};

const struct ctl_command ctl_topology_rollback_command = {.words = "topology rollback",
    .operands = "VERSION",
    .options = options,
    .summary = "push a new version that has the file of an earlier one",
    .help =
        "VERSION is a number that `topology log` shows. No node goes back to an earlier version:\n"
        "its file gets the next number, is signed with --sign, and is pushed as by `topology "
        "push`.\n"
        "For root and the daemon's own user.\n",
    .run = run_rollback};

/* SPDX-License-Identifier: Apache-2.0 */
/* `sgpctl topology sign` and `topology verify`: the signed document of a topology file, without a
 * daemon. */
#include "document.h"

#include "differences.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- sign ---- */

enum { KEY, FLEET, NUMBER, AFTER, DESPITE, YES, OPTIONS };

/* The document of --after, whose own signatures must hold: what it names is signed again. */
static enum ctl_exit read_after(
    struct ctl *ctl, const struct ctl_given *after, struct sgp_document *ret_document)
{
    enum ctl_exit status = ctl_document_read(ctl, after->value, ret_document);
    if (status != CTL_DONE)
        return status;
    json_t *names = ctl_document_signers(ctl, after->value, ret_document, false);
    json_decref(names);
    if (names != NULL)
        return CTL_DONE;
    sgp_document_finish(ret_document);
    return CTL_INVALID;
}

/* The fleet, the version and the predecessor: those after another document, or the first ones. */
static enum ctl_exit name_version(struct ctl *ctl, const struct ctl_given *given,
    const struct sgp_document *after, struct sgp_manifest *manifest)
{
    manifest->version = 1;
    if (after != NULL && given[FLEET].given)
        return ctl_usage(ctl, "--fleet and --after both name the fleet; give one of them");
    if (after != NULL) {
        memcpy(manifest->fleet, after->manifest.fleet, sizeof manifest->fleet);
        memcpy(manifest->predecessor, after->identity, sizeof manifest->predecessor);
        manifest->version = after->manifest.version + 1;
    } else if (!given[FLEET].given) {
        return ctl_usage(ctl, "--fleet or --after is missing");
    } else if (!sgp_topology_name_is_good(given[FLEET].value)) {
        return ctl_usage(ctl,
            "'%s' is no name of a fleet; use letters, digits and . _ -, at most %u of them",
            given[FLEET].value, SGP_NAME_BYTES - 1);
    } else {
        (void)snprintf(manifest->fleet, sizeof manifest->fleet, "%s", given[FLEET].value);
    }
    return ctl_option_u64(
        ctl, &given[NUMBER], manifest->version, SGP_MANIFEST_VERSION_MAX, &manifest->version);
}

/* A new document without signatures. It takes the text over. */
static enum ctl_exit begin(struct ctl *ctl, const char *path, char **text,
    const struct ctl_given *given, const struct sgp_document *after,
    struct sgp_document *ret_document)
{
    struct sgp_manifest manifest = {.version = 0};
    const enum ctl_exit status = name_version(ctl, given, after, &manifest);
    return status == CTL_DONE ? ctl_document_begin(ctl, path, text, &manifest,
                                    &given[DESPITE].value, given[DESPITE].given, ret_document)
                              : status;
}

/* A document to which a signature is added. */
static enum ctl_exit resume(struct ctl *ctl, const char *path, char *text,
    const struct ctl_given *given, struct sgp_document *ret_document)
{
    static const size_t of_files[] = {FLEET, NUMBER, DESPITE};
    for (size_t i = 0; i < sizeof of_files / sizeof *of_files; i++)
        if (given[of_files[i]].given)
            return ctl_usage(ctl, "%s is for a topology file; %s is a signed document",
                given[of_files[i]].name, path);
    return ctl_document_parse(ctl, path, text, ret_document);
}

/* With --json also what the key has signed. */
static enum ctl_exit print_document(struct ctl *ctl, const struct ctl_document_view *view)
{
    char *text = sgp_document_write(view->document);
    if (text == NULL)
        return ctl_fail(ctl, CTL_FAILED, "%s", sgp_strerror(-ENOMEM));
    enum ctl_exit status = CTL_DONE;
    if (ctl->json) {
        json_t *json = ctl_document_json(
            view->document, ctl_document_signers(ctl, view->path, view->document, false));
        (void)json_object_set_new(json, "document", json_string(text));
        status = ctl_document_compare(ctl, view, json);
        if (status == CTL_DONE)
            status = ctl_print_json(json_incref(json));
        json_decref(json);
    } else {
        (void)printf("%s\n", text);
    }
    free(text);
    return status;
}

/* The document of FILE, as it is before it is signed, or signed again. */
static enum ctl_exit read_file(struct ctl *ctl, const char *path, const struct ctl_given *given,
    const struct sgp_document *after, struct sgp_document *ret_document)
{
    char *text = NULL;
    enum ctl_exit status = ctl_document_text(ctl, path, &text);
    if (status == CTL_DONE)
        status = ctl_is_document_text(text) ? resume(ctl, path, text, given, ret_document)
                                            : begin(ctl, path, &text, given, after, ret_document);
    free(text);
    return status;
}

static enum ctl_exit sign(struct ctl *ctl, int argc, char **argv)
{
    struct ctl_given given[OPTIONS] = {0};
    struct sgp_document document = {.file = NULL}, after = {.file = NULL};
    struct sgp_key *key = NULL;
    enum ctl_exit status = ctl_options_take(ctl, &argc, argv, given, OPTIONS, 1, 1);
    if (status == CTL_DONE && !given[KEY].given)
        status = ctl_usage(ctl, "--key KEY is missing");
    if (status == CTL_DONE && given[AFTER].given)
        status = read_after(ctl, &given[AFTER], &after);
    const struct ctl_document_view view = {.path = argv[0],
        .document = &document,
        .after_path = given[AFTER].value,
        .after = after.file != NULL ? &after : NULL};
    if (status == CTL_DONE)
        status = read_file(ctl, argv[0], given, view.after, &document);
    if (status == CTL_DONE)
        status = ctl_document_key(ctl, given[KEY].value, &key);
    if (status == CTL_DONE)
        status = ctl_document_confirm(ctl, &view, given[YES].given, "Sign this?");
    if (status == CTL_DONE)
        status = ctl_document_sign(ctl, argv[0], key, &document);
    if (status == CTL_DONE)
        status = print_document(ctl, &view);
    sgp_key_release(key);
    sgp_document_finish(&document);
    sgp_document_finish(&after);
    return status;
}

/* ---- verify ---- */

enum { FILE_ALONE, VERIFY_AFTER, VERIFY_OPTIONS };

static enum ctl_exit print_verified(
    struct ctl *ctl, const struct ctl_document_view *view, bool file_alone)
{
    json_t *names = ctl_document_signers(ctl, view->path, view->document, false);
    if (names == NULL)
        return CTL_INVALID;
    json_t *json = ctl_document_json(view->document, names), *whole = json_copy(json);
    enum ctl_exit status = ctl_document_follows(ctl, view);
    if (status == CTL_DONE)
        status = ctl_document_compare(ctl, view, whole);
    if (status == CTL_DONE && file_alone) {
        (void)fputs(view->document->file, stdout);
    } else if (status == CTL_DONE && ctl->json) {
        status = ctl_print_json(json_incref(whole));
    } else if (status == CTL_DONE) {
        ctl_print_object(ctl, json);
        ctl_differences_print(whole, stdout);
    }
    json_decref(whole);
    json_decref(json);
    return status;
}

static enum ctl_exit verify(struct ctl *ctl, int argc, char **argv)
{
    struct ctl_given given[VERIFY_OPTIONS] = {0};
    struct sgp_document document = {.file = NULL}, after = {.file = NULL};
    enum ctl_exit status = ctl_options_take(ctl, &argc, argv, given, VERIFY_OPTIONS, 1, 1);
    if (status == CTL_DONE && given[FILE_ALONE].given && ctl->json)
        status = ctl_usage(ctl, "--file prints the file itself, which is not JSON");
    if (status == CTL_DONE && given[VERIFY_AFTER].given)
        status = read_after(ctl, &given[VERIFY_AFTER], &after);
    if (status == CTL_DONE)
        status = ctl_document_read(ctl, argv[0], &document);
    const struct ctl_document_view view = {.path = argv[0],
        .document = &document,
        .after_path = given[VERIFY_AFTER].value,
        .after = after.file != NULL ? &after : NULL};
    if (status == CTL_DONE)
        status = print_verified(ctl, &view, given[FILE_ALONE].given);
    sgp_document_finish(&document);
    sgp_document_finish(&after);
    return status;
}

static const struct ctl_option sign_options[] = {
    {"--key", .value = "KEY", .summary = "sign with the secret key in this file"},
    {"--fleet", .value = "NAME", .summary = "of the fleet, for its first document"},
    {"--number", .value = "N",
        .summary = "the version; by default 1, or the next one after that of --after"},
    {"--after", .value = "DOCUMENT", .summary = "the document that the fleet uses now"},
    {"--despite", .value = "NODE,...", .summary = "nodes whose acceptance is not waited for"},
    {"--yes", .summary = "on a terminal, do not ask before the key signs"}, {0}};

const struct ctl_command ctl_topology_sign_command = {.words = "topology sign",
    .operands = "FILE",
    .summary = "sign a topology file, or add a signature to a signed document",
    .help =
        "Prints the signed document: one line with the file and the words of its manifest. FILE\n"
        "may be `-` for standard input. If FILE is a topology file, a document begins, with\n"
        "--fleet or --after. If it is a signed document, the signature is added, so\n"
        "administrators sign one after the other; a key that has signed already changes nothing.\n"
        "`sgpctl key generate` makes keys. No daemon is needed.\n"
        "\n"
        "What is signed is shown on standard error first, as `topology verify` says it; with\n"
        "--after also what changes: nodes that are added, struck, or have another address or key,\n"
        "and the lines that differ once both files are written in one way. On a terminal it asks.\n"
        "A document is refused (6) if a signature in it is wrong, or if it was not made for the\n"
        "document of --after. With --json all of this is in the answer.\n",
    .options = sign_options,
    .run = sign};

static const struct ctl_option verify_options[] = {
    {"--file", .summary = "print the topology file that was signed"},
    {"--after", .value = "DOCUMENT",
        .summary = "the document that the fleet uses now: say also what changes"},
    {0}};

const struct ctl_command ctl_topology_verify_command = {.words = "topology verify",
    .operands = "DOCUMENT",
    .summary = "verify all signatures of a signed document, and say what it says",
    .help =
        "DOCUMENT may be `-` for standard input. No daemon is needed.\n"
        "\n"
        "manifest              the hash by which the next document names this one\n"
        "predecessor           the manifest that was in use when this was signed; null: none\n"
        "file                  the SHA-256 of the topology file\n"
        "signers               the keys that have signed, as sgpctl key show prints them; whether\n"
        "                      they are administrators of the fleet is for the reader to judge\n"
        "\n"
        "Ends with 6 if a signature is missing or wrong, or if the file is not the one\n"
        "that was signed; with --after also if it was not made for that document.\n",
    .options = verify_options,
    .run = verify};

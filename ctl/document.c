/* SPDX-License-Identifier: Apache-2.0 */
/* Signed documents for commands; see document.h. */
#include "document.h"

#include "differences.h"

#include "sgp/dot.h"
#include "sgp/status.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DOCUMENT_BEGINS "sgpd-topology-1 "

_Static_assert(SGP_MANIFEST_KEY_BYTES == SGP_PUBLIC_BYTES, "a key as sgp/key.h writes it");
_Static_assert(SGP_MANIFEST_SIGNATURE_BYTES == SGP_SIGNATURE_BYTES, "a signature likewise");

/* ---- reading ---- */

enum ctl_exit ctl_document_text(struct ctl *ctl, const char *path, char **ret_text)
{
    const bool standard = strcmp(path, "-") == 0;
    FILE *file = standard ? stdin : fopen(path, "re");
    if (file == NULL)
        return ctl_fail(ctl, CTL_INVALID, "%s: %s", path, strerror(errno));
    char *text = malloc(SGP_DOCUMENT_BYTES_MAX + 1);
    const size_t bytes = text != NULL ? fread(text, 1, SGP_DOCUMENT_BYTES_MAX + 1, file) : 0;
    const bool failed = text == NULL || ferror(file) != 0;
    const int code = text == NULL ? ENOMEM : errno;
    if (!standard)
        (void)fclose(file);
    if (!failed && bytes <= SGP_DOCUMENT_BYTES_MAX && memchr(text, '\0', bytes) == NULL) {
        text[bytes] = '\0';
        *ret_text = text;
        return CTL_DONE;
    }
    free(text);
    return failed ? ctl_fail(ctl, CTL_INVALID, "%s: %s", path, strerror(code))
                  : ctl_fail(ctl, CTL_INVALID,
                        "%s: it is longer than %u bytes, or has a byte of value 0; give a topology "
                        "file or a signed document",
                        path, SGP_DOCUMENT_BYTES_MAX);
}

bool ctl_is_document_text(const char *text)
{
    return strncmp(text, DOCUMENT_BEGINS, strlen(DOCUMENT_BEGINS)) == 0;
}

bool ctl_is_document(const char *path)
{
    char begin[sizeof DOCUMENT_BEGINS] = "";
    FILE *file = strcmp(path, "-") != 0 ? fopen(path, "re") : NULL;
    if (file == NULL)
        return false;
    begin[fread(begin, 1, sizeof begin - 1, file)] = '\0';
    (void)fclose(file);
    return ctl_is_document_text(begin);
}

enum ctl_exit ctl_document_parse(
    struct ctl *ctl, const char *path, char *text, struct sgp_document *ret_document)
{
    struct sgp_error error = {0};
    const size_t bytes = strlen(text);
    if (bytes > 0 && text[bytes - 1] == '\n')
        text[bytes - 1] = '\0';
    const int code = sgp_document_read(text, &error, ret_document);
    if (code < 0)
        return ctl_fail(ctl, CTL_INVALID, "%s: %s", path,
            error.text[0] != '\0' ? error.text : sgp_strerror(code));
    if (ret_document->file != NULL)
        return CTL_DONE;
    return ctl_fail(ctl, CTL_INVALID,
        "%s: two files have version %" PRIu64 "; sign one with a higher version", path,
        ret_document->manifest.version);
}

enum ctl_exit ctl_document_read(
    struct ctl *ctl, const char *path, struct sgp_document *ret_document)
{
    char *text = NULL;
    enum ctl_exit status = ctl_document_text(ctl, path, &text);
    if (status == CTL_DONE) {
        sgp_assert(text != NULL);
        status = ctl_document_parse(ctl, path, text, ret_document);
    }
    free(text);
    return status;
}

enum ctl_exit ctl_read_signed_topology(
    struct ctl *ctl, const char *path, struct sgp_topology **ret_topology)
{
    struct sgp_document document = {.file = NULL};
    struct sgp_error error = {0};
    enum ctl_exit status = ctl_document_read(ctl, path, &document);
    if (status != CTL_DONE)
        return status;
    json_t *names = ctl_document_signers(ctl, path, &document, false);
    if (names == NULL)
        status = CTL_INVALID;
    else if (sgp_dot_parse(
                 document.file, document.manifest.file_bytes, path, &error, ret_topology) < 0)
        status = ctl_fail(ctl, CTL_INVALID, "%s", error.text);
    json_decref(names);
    sgp_document_finish(&document);
    return status;
}

/* ---- a new document ---- */

static enum ctl_exit name_despite(struct ctl *ctl, const struct sgp_topology *topology,
    const char *names, struct sgp_manifest *manifest)
{
    for (const char *at = names; at != NULL;) {
        char name[SGP_NAME_BYTES];
        const size_t bytes = strcspn(at, ",");
        (void)snprintf(name, sizeof name, "%.*s", (int)bytes, at);
        if (bytes >= sizeof name || sgp_topology_find(topology, name) < 0)
            return ctl_usage(
                ctl, "--despite names '%.*s', which is no node of the file", (int)bytes, at);
        if (sgp_manifest_passes_over(manifest, name))
            return ctl_usage(ctl, "--despite names '%s' twice", name);
        if (manifest->despite_count == SGP_MANIFEST_DESPITE_MAX)
            return ctl_usage(ctl, "--despite takes at most %u nodes; strike some from the file",
                SGP_MANIFEST_DESPITE_MAX);
        (void)snprintf(manifest->despite[manifest->despite_count++], SGP_NAME_BYTES, "%s", name);
        at = at[bytes] == ',' ? at + bytes + 1 : NULL;
    }
    return CTL_DONE;
}

enum ctl_exit ctl_document_begin(struct ctl *ctl, const char *path, char **text,
    const struct sgp_manifest *manifest, const char *const *despite, size_t despite_count,
    struct sgp_document *ret_document)
{
    struct sgp_document document = {.manifest = *manifest};
    struct sgp_topology *topology = NULL;
    struct sgp_error error = {0};
    int code = sgp_document_name_file(&document.manifest, *text, strlen(*text), &error);
    if (code == 0)
        code = sgp_dot_parse(*text, strlen(*text), path, &error, &topology);
    if (code < 0)
        return ctl_fail(ctl, CTL_INVALID, "%s%s%s", code == SGP_E_LIMIT ? path : "",
            code == SGP_E_LIMIT ? ": " : "",
            error.text[0] != '\0' ? error.text : sgp_strerror(code));
    enum ctl_exit status = CTL_DONE;
    for (size_t i = 0; i < despite_count && status == CTL_DONE; i++)
        status = name_despite(ctl, topology, despite[i], &document.manifest);
    sgp_topology_destroy(topology);
    if (status != CTL_DONE)
        return status;
    sgp_manifest_identify(&document.manifest, document.identity);
    document.file = *text;
    *text = NULL;
    *ret_document = document;
    return CTL_DONE;
}

/* ---- signatures ---- */

enum ctl_exit ctl_document_key(struct ctl *ctl, const char *key_path, struct sgp_key **ret_key)
{
    struct sgp_error error = {0};
    const int code = sgp_key_read(key_path, &error, ret_key);
    return code == 0 ? CTL_DONE
                     : ctl_fail(ctl,
                           code == SGP_E_FILE                  ? CTL_INVALID
                           : code == -EPERM || code == -EACCES ? CTL_NOT_PERMITTED
                                                               : CTL_FAILED,
                           "%s", error.text);
}

enum ctl_exit ctl_document_sign(
    struct ctl *ctl, const char *path, const struct sgp_key *key, struct sgp_document *document)
{
    char text[SGP_MANIFEST_BYTES];
    struct sgp_manifest_signature signature;
    const size_t bytes = sgp_manifest_signed(&document->manifest, text);
    int code = sgp_key_public(key, signature.key);
    if (code == 0)
        code = sgp_key_sign(key, text, bytes, signature.signature);
    if (code == 0)
        code = sgp_manifest_add(&document->manifest, &signature);
    return code == 0 ? CTL_DONE : ctl_fail(ctl, CTL_FAILED, "%s: %s", path, sgp_strerror(code));
}

json_t *ctl_document_signers(
    struct ctl *ctl, const char *path, const struct sgp_document *document, bool unsigned_allowed)
{
    const struct sgp_manifest *manifest = &document->manifest;
    char text[SGP_MANIFEST_BYTES], hash[SGP_KEY_BYTES];
    const size_t bytes = sgp_manifest_signed(manifest, text);
    if (manifest->signature_count == 0 && !unsigned_allowed) {
        (void)ctl_fail(
            ctl, CTL_INVALID, "%s: it has no signature; `sgpctl topology sign` adds one", path);
        return NULL;
    }
    json_t *names = json_array();
    for (uint32_t i = 0; i < manifest->signature_count; i++) {
        const struct sgp_manifest_signature *it = &manifest->signatures[i];
        if (!sgp_key_verify(it->key, it->signature, text, bytes, hash)) {
            json_decref(names);
            (void)ctl_fail(ctl, CTL_INVALID,
                "%s: the signature of the public key %s is wrong; somebody has changed the "
                "document, so take another copy",
                path, it->key);
            return NULL;
        }
        (void)json_array_append_new(names, json_string(hash));
    }
    return names;
}

/* ---- what a person is shown ---- */

static json_t *text_or_null(const char *text)
{
    return text[0] != '\0' ? json_string(text) : json_null();
}

json_t *ctl_document_json(const struct sgp_document *document, json_t *signers)
{
    const struct sgp_manifest *manifest = &document->manifest;
    json_t *despite = json_array();
    for (uint32_t i = 0; i < manifest->despite_count; i++)
        (void)json_array_append_new(despite, json_string(manifest->despite[i]));
    return json_pack("{s:s, s:I, s:s, s:o, s:s, s:I, s:o, s:o}", "fleet", manifest->fleet,
        "version", (json_int_t)manifest->version, "manifest", document->identity, "predecessor",
        text_or_null(manifest->predecessor), "file", manifest->file, "file_bytes",
        (json_int_t)manifest->file_bytes, "despite", despite, "signers", signers);
}

enum ctl_exit ctl_document_compare(
    struct ctl *ctl, const struct ctl_document_view *view, json_t *json)
{
    if (view->after == NULL)
        return CTL_DONE;
    json_t *found = NULL;
    const struct ctl_differences sides = {.before = view->after->file,
        .before_name = view->after_path,
        .after = view->document->file,
        .after_name = view->path};
    const enum ctl_exit status = ctl_differences_json(ctl, &sides, &found);
    (void)json_object_update(json, found);
    json_decref(found);
    return status;
}

enum ctl_exit ctl_document_follows(struct ctl *ctl, const struct ctl_document_view *view)
{
    if (view->after == NULL)
        return CTL_DONE;
    const struct sgp_manifest *mine = &view->document->manifest, *known = &view->after->manifest;
    if (strcmp(mine->fleet, known->fleet) != 0)
        return ctl_fail(ctl, CTL_INVALID, "%s: it is of the fleet %s, and %s is of %s", view->path,
            mine->fleet, view->after_path, known->fleet);
    if (strcmp(mine->predecessor, view->after->identity) == 0)
        return CTL_DONE;
    return ctl_fail(ctl, CTL_INVALID,
        "%s: it was made for the version %.16s, and %s is %.16s; sign the topology file anew, with "
        "--after",
        view->path, mine->predecessor[0] != '\0' ? mine->predecessor : "0 of the configuration",
        view->after_path, view->after->identity);
}

/* The lines of `topology verify`, and what has changed. */
static void show(const struct ctl *ctl, const json_t *json)
{
    static const char *const keys[] = {
        "fleet", "version", "manifest", "predecessor", "file", "despite", "signers"};
    char cell[CTL_CELL_BYTES];
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        ctl_cell(ctl, keys[i], json_object_get(json, keys[i]), cell);
        (void)fprintf(stderr, "%-12s %s\n", keys[i], cell);
    }
    ctl_differences_print(json, stderr);
}

static enum ctl_exit ask(struct ctl *ctl, const char *question)
{
    char answer[16] = "";
    if (isatty(STDIN_FILENO) != 1 || isatty(STDERR_FILENO) != 1)
        return CTL_DONE;
    (void)fprintf(stderr, "%s [y/N] ", question);
    if (fgets(answer, sizeof answer, stdin) != NULL && (answer[0] == 'y' || answer[0] == 'Y'))
        return CTL_DONE;
    return ctl_fail(ctl, CTL_FAILED, "nothing was changed");
}

enum ctl_exit ctl_document_confirm(
    struct ctl *ctl, const struct ctl_document_view *view, bool yes, const char *question)
{
    enum ctl_exit status = ctl_document_follows(ctl, view);
    if (status != CTL_DONE)
        return status;
    json_t *names = ctl_document_signers(ctl, view->path, view->document, true);
    if (names == NULL)
        return CTL_INVALID;
    json_t *json = ctl_document_json(view->document, names);
    if (!ctl->json) {
        status = ctl_document_compare(ctl, view, json);
        if (status == CTL_DONE)
            show(ctl, json);
    }
    json_decref(json);
    return status != CTL_DONE || yes || ctl->json ? status : ask(ctl, question);
}

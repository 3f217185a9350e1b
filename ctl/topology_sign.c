/* SPDX-License-Identifier: Apache-2.0 */
/* `sgpctl topology sign` and `topology verify`: the signed document of a topology file, without a
 * daemon. */
#include "topology.h"

#include "sgp/dot.h"
#include "sgp/key.h"
#include "sgp/rollout.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define DOCUMENT_BEGINS "sgpd-topology-1 "

_Static_assert(SGP_MANIFEST_KEY_BYTES == SGP_PUBLIC_BYTES, "a key as sgp/key.h writes it");
_Static_assert(SGP_MANIFEST_SIGNATURE_BYTES == SGP_SIGNATURE_BYTES, "a signature likewise");

/* A whole file, or standard input for `-`, with a zero behind it. The caller frees *ret_text. */
static enum ctl_exit read_text(struct ctl *ctl, const char *path, char **ret_text)
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

static bool is_document(const char *text)
{
    return strncmp(text, DOCUMENT_BEGINS, strlen(DOCUMENT_BEGINS)) == 0;
}

static enum ctl_exit parse_document(
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

static enum ctl_exit read_document(
    struct ctl *ctl, const char *path, struct sgp_document *ret_document)
{
    char *text = NULL;
    enum ctl_exit status = read_text(ctl, path, &text);
    if (status == CTL_DONE)
        status = parse_document(ctl, path, text, ret_document);
    free(text);
    return status;
}

/* ---- sign ---- */

enum { KEY, FLEET, NUMBER, AFTER, DESPITE, OPTIONS };

/* The fleet, the version and the predecessor: those after another document, or the first ones. */
static enum ctl_exit name_version(
    struct ctl *ctl, const struct ctl_given *given, struct sgp_manifest *manifest)
{
    struct sgp_document after;
    manifest->version = 1;
    if (given[AFTER].given) {
        const enum ctl_exit status = read_document(ctl, given[AFTER].value, &after);
        if (status != CTL_DONE)
            return status;
        memcpy(manifest->fleet, after.manifest.fleet, sizeof manifest->fleet);
        memcpy(manifest->predecessor, after.identity, sizeof manifest->predecessor);
        manifest->version = after.manifest.version + 1;
        sgp_document_finish(&after);
    } else if (!given[FLEET].given) {
        return ctl_usage(ctl, "--fleet or --after is missing");
    }
    if (given[AFTER].given && given[FLEET].given)
        return ctl_usage(ctl, "--fleet and --after both name the fleet; give one of them");
    if (given[FLEET].given && !sgp_topology_name_is_good(given[FLEET].value))
        return ctl_usage(ctl,
            "'%s' is no name of a fleet; use letters, digits and . _ -, at most %u of them",
            given[FLEET].value, SGP_NAME_BYTES - 1);
    if (given[FLEET].given)
        (void)snprintf(manifest->fleet, sizeof manifest->fleet, "%s", given[FLEET].value);
    return ctl_option_u64(
        ctl, &given[NUMBER], manifest->version, SGP_MANIFEST_VERSION_MAX, &manifest->version);
}

static enum ctl_exit name_despite(struct ctl *ctl, const struct sgp_topology *topology,
    const struct ctl_given *despite, struct sgp_manifest *manifest)
{
    for (const char *at = despite->value; at != NULL;) {
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

/* A new document without signatures. It takes the text over. */
static enum ctl_exit begin(struct ctl *ctl, const char *path, char **text,
    const struct ctl_given *given, struct sgp_document *ret_document)
{
    struct sgp_document document = {.file = NULL};
    struct sgp_topology *topology = NULL;
    struct sgp_error error = {0};
    enum ctl_exit status = name_version(ctl, given, &document.manifest);
    if (status != CTL_DONE)
        return status;
    int code = sgp_document_name_file(&document.manifest, *text, strlen(*text), &error);
    if (code == 0)
        code = sgp_dot_parse(*text, strlen(*text), path, &error, &topology);
    if (code < 0)
        return ctl_fail(ctl, CTL_INVALID, "%s%s%s", code == SGP_E_LIMIT ? path : "",
            code == SGP_E_LIMIT ? ": " : "",
            error.text[0] != '\0' ? error.text : sgp_strerror(code));
    status = name_despite(ctl, topology, &given[DESPITE], &document.manifest);
    sgp_topology_destroy(topology);
    if (status != CTL_DONE)
        return status;
    document.file = *text;
    *text = NULL;
    *ret_document = document;
    return CTL_DONE;
}

/* A document to which a signature is added. */
static enum ctl_exit resume(struct ctl *ctl, const char *path, char *text,
    const struct ctl_given *given, struct sgp_document *ret_document)
{
    for (size_t i = FLEET; i < OPTIONS; i++)
        if (given[i].given)
            return ctl_usage(
                ctl, "%s is for a topology file; %s is a signed document", given[i].name, path);
    return parse_document(ctl, path, text, ret_document);
}

static enum ctl_exit add_signature(
    struct ctl *ctl, const char *path, const char *key_path, struct sgp_manifest *manifest)
{
    char text[SGP_MANIFEST_BYTES];
    struct sgp_manifest_signature signature;
    struct sgp_error error = {0};
    struct sgp_key *key;
    int code = sgp_key_read(key_path, &error, &key);
    if (code < 0)
        return ctl_fail(ctl,
            code == SGP_E_FILE                  ? CTL_INVALID
            : code == -EPERM || code == -EACCES ? CTL_NOT_PERMITTED
                                                : CTL_FAILED,
            "%s", error.text);
    const size_t bytes = sgp_manifest_signed(manifest, text);
    code = sgp_key_public(key, signature.key);
    if (code == 0)
        code = sgp_key_sign(key, text, bytes, signature.signature);
    if (code == 0)
        code = sgp_manifest_add(manifest, &signature);
    sgp_key_release(key);
    return code == 0 ? CTL_DONE : ctl_fail(ctl, CTL_FAILED, "%s: %s", path, sgp_strerror(code));
}

static enum ctl_exit print_document(struct ctl *ctl, const struct sgp_document *document)
{
    char *text = sgp_document_write(document);
    if (text == NULL)
        return ctl_fail(ctl, CTL_FAILED, "%s", sgp_strerror(-ENOMEM));
    enum ctl_exit status = CTL_DONE;
    if (ctl->json)
        status = ctl_print_json(json_pack("{s:s, s:I, s:s}", "fleet", document->manifest.fleet,
            "version", (json_int_t)document->manifest.version, "document", text));
    else
        (void)printf("%s\n", text);
    free(text);
    return status;
}

static enum ctl_exit sign(struct ctl *ctl, int argc, char **argv)
{
    struct ctl_given given[OPTIONS] = {0};
    struct sgp_document document = {.file = NULL};
    char *text = NULL;
    enum ctl_exit status = ctl_options_take(ctl, &argc, argv, given, OPTIONS, 1, 1);
    if (status == CTL_DONE && !given[KEY].given)
        status = ctl_usage(ctl, "--key KEY is missing");
    if (status == CTL_DONE)
        status = read_text(ctl, argv[0], &text);
    if (status == CTL_DONE)
        status = is_document(text) ? resume(ctl, argv[0], text, given, &document)
                                   : begin(ctl, argv[0], &text, given, &document);
    if (status == CTL_DONE)
        status = add_signature(ctl, argv[0], given[KEY].value, &document.manifest);
    if (status == CTL_DONE)
        status = print_document(ctl, &document);
    sgp_document_finish(&document);
    free(text);
    return status;
}

/* ---- verify ---- */

enum { FILE_ALONE, VERIFY_OPTIONS };

/* The keys whose signatures hold, as the topology file writes keys. NULL: one does not hold, which
 * was reported. */
static json_t *signers(struct ctl *ctl, const char *path, const struct sgp_manifest *manifest)
{
    char text[SGP_MANIFEST_BYTES], hash[SGP_KEY_BYTES];
    const size_t bytes = sgp_manifest_signed(manifest, text);
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

/* What holds of a document that somebody has signed: its signers. NULL: it does not, which was
 * reported. */
static json_t *hold(struct ctl *ctl, const char *path, const struct sgp_document *document)
{
    if (document->manifest.signature_count > 0)
        return signers(ctl, path, &document->manifest);
    (void)ctl_fail(ctl, CTL_INVALID,
        "%s: nobody has signed it; `sgpctl topology sign` adds a signature", path);
    return NULL;
}

bool ctl_is_document(const char *path)
{
    char begin[sizeof DOCUMENT_BEGINS] = "";
    FILE *file = strcmp(path, "-") != 0 ? fopen(path, "re") : NULL;
    if (file == NULL)
        return false;
    begin[fread(begin, 1, sizeof begin - 1, file)] = '\0';
    (void)fclose(file);
    return is_document(begin);
}

enum ctl_exit ctl_read_signed_topology(
    struct ctl *ctl, const char *path, struct sgp_topology **ret_topology)
{
    struct sgp_document document = {.file = NULL};
    struct sgp_error error = {0};
    enum ctl_exit status = read_document(ctl, path, &document);
    if (status != CTL_DONE)
        return status;
    json_t *names = hold(ctl, path, &document);
    if (names == NULL)
        status = CTL_INVALID;
    else if (sgp_dot_parse(
                 document.file, document.manifest.file_bytes, path, &error, ret_topology) < 0)
        status = ctl_fail(ctl, CTL_INVALID, "%s", error.text);
    json_decref(names);
    sgp_document_finish(&document);
    return status;
}

static json_t *text_or_null(const char *text)
{
    return text[0] != '\0' ? json_string(text) : json_null();
}

static json_t *document_json(const struct sgp_document *document, json_t *names)
{
    const struct sgp_manifest *manifest = &document->manifest;
    json_t *despite = json_array();
    for (uint32_t i = 0; i < manifest->despite_count; i++)
        (void)json_array_append_new(despite, json_string(manifest->despite[i]));
    return json_pack("{s:s, s:I, s:s, s:o, s:s, s:I, s:o, s:o}", "fleet", manifest->fleet,
        "version", (json_int_t)manifest->version, "manifest", document->identity, "predecessor",
        text_or_null(manifest->predecessor), "file", manifest->file, "file_bytes",
        (json_int_t)manifest->file_bytes, "despite", despite, "signers", names);
}

static enum ctl_exit verify(struct ctl *ctl, int argc, char **argv)
{
    struct ctl_given given[VERIFY_OPTIONS] = {0};
    struct sgp_document document = {.file = NULL};
    enum ctl_exit status = ctl_options_take(ctl, &argc, argv, given, VERIFY_OPTIONS, 1, 1);
    if (status == CTL_DONE && given[FILE_ALONE].given && ctl->json)
        status = ctl_usage(ctl, "--file prints the file itself, which is not JSON");
    if (status == CTL_DONE)
        status = read_document(ctl, argv[0], &document);
    if (status != CTL_DONE)
        return status;
    json_t *names = hold(ctl, argv[0], &document);
    json_t *json = names != NULL ? document_json(&document, names) : NULL;
    if (json == NULL) {
        status = CTL_INVALID;
    } else if (given[FILE_ALONE].given) {
        (void)fputs(document.file, stdout);
    } else if (ctl->json) {
        status = ctl_print_json(json_incref(json));
    } else {
        ctl_print_object(ctl, json);
    }
    json_decref(json);
    sgp_document_finish(&document);
    return status;
}

static const struct ctl_option sign_options[] = {
    {"--key", .value = "KEY", .summary = "sign with the secret key in this file"},
    {"--fleet", .value = "NAME", .summary = "of the fleet, for its first document"},
    {"--number", .value = "N",
        .summary = "the version; by default 1, or the next one after that of --after"},
    {"--after", .value = "DOCUMENT", .summary = "the document that the fleet uses now"},
    {"--despite", .value = "NODE,...", .summary = "nodes whose acceptance is not waited for"}, {0}};

const struct ctl_command ctl_topology_sign_command = {.words = "topology sign",
    .operands = "FILE",
    .summary = "sign a topology file, or add a signature to a signed document",
    .help =
        "Prints the signed document: one line with the file and the words of its manifest. FILE\n"
        "may be `-` for standard input. If FILE is a topology file, a document begins, with\n"
        "--fleet or --after. If it is a signed document, the signature is added, so\n"
        "administrators sign one after the other; a key that has signed already changes nothing.\n"
        "`sgpctl key generate` makes keys. No daemon is needed.\n",
    .options = sign_options,
    .run = sign};

static const struct ctl_option verify_options[] = {
    {"--file", .summary = "print the topology file that was signed"}, {0}};

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
        "Ends with 6 if nobody has signed, if a signature is wrong, or if the file is not the one\n"
        "that was signed.\n",
    .options = verify_options,
    .run = verify};

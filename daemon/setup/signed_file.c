/* SPDX-License-Identifier: Apache-2.0 */
/* See signed_file.h. */
#include "signed_file.h"

#include "train/atomic_file.h"

#include "sgp/dot.h"
#include "sgp/key.h"
#include "sgp/status.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEPT_BYTES_MAX (3u * SGP_DOCUMENT_BYTES_MAX)
#define BLANKS " \t\n"

/* ---- who may sign ---- */

static int add_key(const struct config *config, const char *word, size_t bytes,
    struct sgp_error *error, struct sgp_administrators *administrators)
{
    char hash[SGP_KEY_BYTES];
    (void)snprintf(hash, sizeof hash, "%.*s", (int)bytes, word);
    if (bytes != SGP_KEY_BYTES - 1 || strncmp(hash, "SHA256:", 7) != 0)
        return config_fail(config, CONFIG_ID_ADMINISTRATORS, error, SGP_E_CONFIG,
            "\"%.*s\" is no key; write SHA256: and 43 characters, as sgpctl key show prints them",
            bytes < 80 ? (int)bytes : 80, word);
    if (administrators->count == SGP_MANIFEST_SIGNERS_MAX)
        return config_fail(config, CONFIG_ID_ADMINISTRATORS, error, SGP_E_CONFIG,
            "more than %u keys", SGP_MANIFEST_SIGNERS_MAX);
    for (uint32_t i = 0; i < administrators->count; i++)
        if (strcmp(administrators->keys[i], hash) == 0)
            return config_fail(config, CONFIG_ID_ADMINISTRATORS, error, SGP_E_CONFIG,
                "%s stands there twice", hash);
    memcpy(administrators->keys[administrators->count++], hash, sizeof hash);
    return 0;
}

static int read_keys(
    const struct config *config, struct sgp_error *error, struct sgp_administrators *administrators)
{
    const char *at = config->administrators + strspn(config->administrators, BLANKS);
    while (*at != '\0') {
        const size_t bytes = strcspn(at, BLANKS);
        const int code = add_key(config, at, bytes, error, administrators);
        if (code < 0)
            return code;
        at += bytes;
        at += strspn(at, BLANKS);
    }
    return 0;
}

static int read_administrators(const struct config *config, struct sgp_error *error,
    struct sgp_administrators *ret_administrators)
{
    struct sgp_administrators administrators = {.threshold = (uint32_t)config->threshold};
    const int code = read_keys(config, error, &administrators);
    if (code < 0)
        return code;
    if (!sgp_topology_name_is_good(config->fleet))
        return config_fail(config, CONFIG_ID_FLEET, error, SGP_E_CONFIG,
            "\"%.80s\" is no name of a fleet; use letters, digits and . _ -, at most %u of them",
            config->fleet, SGP_NAME_BYTES - 1);
    if (administrators.threshold > administrators.count)
        return config_fail(config, CONFIG_ID_THRESHOLD, error, SGP_E_CONFIG,
            "%" PRIu32 " must sign, and there are %" PRIu32 " keys; write at most %" PRIu32,
            administrators.threshold, administrators.count, administrators.count);
    const size_t bytes = strlen(config->recovery);
    if (bytes > 0 && (bytes != SGP_KEY_BYTES - 1 || strncmp(config->recovery, "SHA256:", 7) != 0))
        return config_fail(config, CONFIG_ID_RECOVERY, error, SGP_E_CONFIG,
            "\"%.80s\" is no key; write SHA256: and 43 characters, as sgpctl key show prints them",
            config->recovery);
    (void)snprintf(administrators.fleet, sizeof administrators.fleet, "%s", config->fleet);
    (void)snprintf(administrators.recovery, sizeof administrators.recovery, "%s", config->recovery);
    *ret_administrators = administrators;
    return 0;
}

/* ---- files ---- */

static void kept_path(const struct config *config, char path[CONFIG_TEXT_BYTES])
{
    (void)snprintf(path, CONFIG_TEXT_BYTES, "%s/rollout", config->state_directory);
}

/* A whole text. Returns 0; -errno, or SGP_E_LIMIT. The caller frees *ret_text. */
static int read_text(const char *path, size_t most, char **ret_text)
{
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return -errno;
    char *text = malloc(most + 2);
    errno = EIO;
    const size_t bytes = text != NULL ? fread(text, 1, most + 1, file) : 0;
    int code = text == NULL ? -ENOMEM : ferror(file) != 0 ? -errno : bytes > most ? SGP_E_LIMIT : 0;
    (void)fclose(file);
    if (code == 0 && memchr(text, '\0', bytes) != NULL)
        code = SGP_E_DATA;
    if (code < 0) {
        free(text);
        return code;
    }
    text[bytes] = '\0';
    *ret_text = text;
    return 0;
}

/* What this node has used before. */
static int restore_kept(
    const struct config *config, struct sgp_rollout *rollout, struct sgp_error *error)
{
    char path[CONFIG_TEXT_BYTES], *text = NULL;
    struct sgp_error why = {0};
    kept_path(config, path);
    int code = read_text(path, KEPT_BYTES_MAX, &text);
    if (code == -ENOENT || code == -ENOTDIR)
        return 0;
    if (code == 0)
        code = sgp_rollout_restore(rollout, text, &why);
    free(text);
    return code == 0
               ? 0
               : sgp_fail(error, code,
                     "%s: %s; if it is lost, remove it, and make sure that [topology] file is "
                     "the latest",
                     path, why.text[0] != '\0' ? why.text : sgp_strerror(code));
}

int signed_file_restore(
    const struct config *config, struct sgp_error *error, struct sgp_rollout **ret_rollout)
{
    struct sgp_rollout_settings settings = {.verify = sgp_key_verify};
    static const enum config_id section[] = {
        CONFIG_ID_FLEET, CONFIG_ID_ADMINISTRATORS, CONFIG_ID_THRESHOLD, CONFIG_ID_RECOVERY};
    bool named = false; /* also by a line without a value, as when all keys are commented out */
    for (size_t i = 0; i < sizeof section / sizeof *section; i++)
        named = named || config->lines[section[i]] != 0;
    *ret_rollout = NULL;
    if (config->administrators[0] == '\0' && named)
        return config_fail(config, CONFIG_ID_ADMINISTRATORS, error, SGP_E_CONFIG,
            "there are none, so nobody could sign; name them, or remove the section");
    if (config->administrators[0] == '\0')
        return 0;
    int code = read_administrators(config, error, &settings.administrators);
    if (code < 0)
        return code;
    struct sgp_rollout *rollout = sgp_rollout_create(&settings);
    code = rollout != NULL ? restore_kept(config, rollout, error)
                           : sgp_fail(error, -ENOMEM, "%s: out of memory", config->topology);
    if (code < 0)
        sgp_rollout_destroy(rollout);
    else
        *ret_rollout = rollout;
    return code;
}

int signed_file_keep(
    const struct config *config, const struct sgp_rollout *rollout, struct sgp_error *error)
{
    char path[CONFIG_TEXT_BYTES];
    struct sgp_atomic_file file;
    if (rollout == NULL)
        return 0;
    kept_path(config, path);
    char *text = sgp_rollout_save(rollout);
    if (text == NULL)
        return sgp_fail(error, -ENOMEM, "%s: out of memory", path);
    int code = sgp_atomic_open(&file, path, SGP_ATOMIC_PRIVATE, error);
    if (code == 0) {
        sgp_atomic_write(&file, text, strlen(text));
        code = sgp_atomic_commit(&file, error);
    }
    free(text);
    return code;
}

/* ---- the document in [topology] file ---- */

enum age { EARLIER = 1, SAME, LATER };

/* How old the document is beside what this node uses; negative: it is refused. */
static int judge_age(const struct config *config, const struct sgp_rollout *rollout,
    const struct sgp_document *document, bool starts, struct sgp_error *error)
{
    const struct sgp_document *active = sgp_rollout_document(rollout, SGP_ROLLOUT_ACTIVE);
    const uint64_t version = document->manifest.version;
    if (active == NULL || version > active->manifest.version)
        return LATER;
    if (strcmp(active->identity, document->identity) == 0)
        return SAME;
    if (starts && version < active->manifest.version)
        return EARLIER;
    return sgp_fail(error, SGP_E_STATE,
        version == active->manifest.version
            ? "%s: it is another file of version %" PRIu64
              ", and this node has used version %" PRIu64 "; sign one with a higher version"
            : "%s: it is version %" PRIu64 ", and this node has used version %" PRIu64
              "; copy the latest, or sign this file with a higher version",
        config->topology, version, active->manifest.version);
}

/* Go on with the document of this text, if it is later. Its signatures are judged in any case. Its
 * age, or negative. */
static int take(const struct config *config, struct sgp_rollout *rollout, const char *text,
    bool starts, struct sgp_error *error)
{
    struct sgp_error why = {0};
    struct sgp_document document = {.file = NULL};
    int code = sgp_document_read(text, &why, &document);
    if (code == SGP_E_DATA)
        return sgp_fail(error, code, "%s: it is not signed, and [administrators] are given: %s",
            config->topology, why.text);
    if (code == 0 && document.file == NULL)
        code = sgp_fail(&why, SGP_E_DATA, "two files have version %" PRIu64 "; sign a higher one",
            document.manifest.version);
    int age = code == 0 ? judge_age(config, rollout, &document, starts, error) : code;
    sgp_document_finish(&document);
    code = age < 0 ? age : sgp_rollout_take(rollout, SGP_ROLLOUT_ACTIVE, text, &why);
    if (code < 0)
        return sgp_fail(error, code, "%s: %s", config->topology,
            why.text[0] != '\0' ? why.text : sgp_strerror(code));
    if (age == LATER)
        sgp_rollout_activate(rollout, SGP_ROLLOUT_ACTIVE);
    if (strcmp(sgp_rollout_document(rollout, SGP_ROLLOUT_ACTIVE)->identity, document.identity) != 0)
        age = EARLIER; /* than what a neighbour uses, which is followed instead */
    return age;
}

static int take_path(
    const struct config *config, struct sgp_rollout *rollout, bool starts, struct sgp_error *error)
{
    char *text = NULL;
    int code = read_text(config->topology, SGP_DOCUMENT_BYTES_MAX, &text);
    if (code < 0)
        return sgp_fail(error, code, "%s: %s", config->topology, sgp_strerror(code));
    sgp_assert(text != NULL);
    const size_t bytes = strlen(text);
    if (bytes > 0 && text[bytes - 1] == '\n')
        text[bytes - 1] = '\0';
    code = take(config, rollout, text, starts, error);
    free(text);
    return code;
}

/* ---- the file that is used ---- */

/* The rollout as it is once the wish is fulfilled. 0: [topology] file is used; 1: another document;
 * or negative. */
static int change(const struct config *config, const struct signed_file_wish *wish,
    struct sgp_error *error, struct sgp_rollout **ret_rollout)
{
    const bool path = wish == NULL || wish->from == SIGNED_FILE_PATH;
    struct sgp_rollout *rollout = NULL;
    int code = 0;
    if (wish == NULL)
        code = signed_file_restore(config, error, &rollout);
    else if (wish->present != NULL && (rollout = sgp_rollout_copy(wish->present)) == NULL)
        code = sgp_fail(error, -ENOMEM, "%s: out of memory", config->topology);
    if (code == 0 && rollout != NULL && path)
        code = take_path(config, rollout, wish == NULL, error);
    else if (code == 0 && rollout != NULL)
        sgp_rollout_activate(rollout,
            wish->from == SIGNED_FILE_NEIGHBOUR ? SGP_ROLLOUT_ACTIVE : SGP_ROLLOUT_PROPOSED);
    if (code < 0) {
        sgp_rollout_destroy(rollout);
        return code;
    }
    *ret_rollout = rollout;
    return !path || code == EARLIER;
}

int signed_file_read(const struct config *config, const struct signed_file_wish *wish,
    struct sgp_error *error, struct signed_file *ret_file)
{
    struct signed_file file = {.topology = NULL};
    const int elsewhere = change(config, wish, error, &file.rollout);
    int code = elsewhere < 0 ? elsewhere : 0;
    if (code < 0)
        return code;
    if (file.rollout == NULL) {
        code = sgp_dot_read_path(config->topology, error, &file.topology);
    } else {
        const struct sgp_document *used = sgp_rollout_document(file.rollout, SGP_ROLLOUT_ACTIVE);
        if (elsewhere)
            (void)snprintf(file.name, sizeof file.name, "version %" PRIu64 " of %s",
                used->manifest.version, used->manifest.fleet);
        code = sgp_dot_parse(used->file, used->manifest.file_bytes,
            file.name[0] != '\0' ? file.name : config->topology, error, &file.topology);
    }
    if (code < 0)
        sgp_rollout_destroy(file.rollout);
    else
        *ret_file = file;
    return code;
}

bool signed_file_strikes(const struct config *config, const char *file)
{
    struct sgp_topology *topology = NULL;
    struct sgp_error ignored = {0};
    const bool strikes = sgp_dot_parse(file, strlen(file), "file", &ignored, &topology) == 0 &&
                         sgp_topology_find(topology, config->name) < 0;
    sgp_topology_destroy(topology);
    return strikes;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The rollout as the daemon shows it; see rollout.h. */
#include "rollout.h"

#include <stdlib.h>
#include <string.h>

enum ctl_exit ctl_rollout_ask(struct ctl *ctl, bool quiet, json_t **ret_rollout)
{
    const struct ctl_request request = {.method = "GET", .path = "/v1/rollout", .quiet = quiet};
    return ctl_ask_json(ctl, &request, ret_rollout);
}

enum ctl_exit ctl_rollout_log(struct ctl *ctl, json_t **ret_log)
{
    const struct ctl_request request = {.method = "GET", .path = "/v1/rollout/log"};
    return ctl_ask_json(ctl, &request, ret_log);
}

bool ctl_is_version(const char *word)
{
    uint64_t number;
    return strcmp(word, "active") == 0 || strcmp(word, "proposed") == 0 ||
           ctl_text_u64(word, &number);
}

enum ctl_exit ctl_rollout_text(struct ctl *ctl, const char *version, char **ret_text)
{
    char path[80];
    struct ctl_reply reply = {0};
    const struct ctl_request request = {.method = "GET", .path = path};
    (void)snprintf(path, sizeof path, "/v1/rollout/document?version=%.32s", version);
    const enum ctl_exit status = ctl_ask(ctl, &request, &reply);
    if (status != CTL_DONE)
        return status;
    *ret_text = reply.text != NULL ? reply.text : strdup("");
    return *ret_text != NULL ? CTL_DONE : ctl_fail(ctl, CTL_FAILED, "out of memory");
}

enum ctl_exit ctl_rollout_document(
    struct ctl *ctl, const char *version, struct sgp_document *ret_document)
{
    char name[64], *text = NULL;
    (void)snprintf(name, sizeof name, "version %.32s of the daemon", version);
    enum ctl_exit status = ctl_rollout_text(ctl, version, &text);
    if (status == CTL_DONE)
        status = ctl_document_parse(ctl, name, text, ret_document);
    free(text);
    return status;
}

uint64_t ctl_rollout_version(const json_t *rollout, const char *slot)
{
    const json_t *version = json_object_get(json_object_get(rollout, slot), "version");
    return json_integer_value(version) > 0 ? (uint64_t)json_integer_value(version) : 0;
}

const char *ctl_rollout_identity(const json_t *rollout, const char *slot)
{
    return ctl_text_of(json_object_get(rollout, slot), "identity", "");
}

/* The command; NULL: no memory. The caller frees it. */
static char *push_command(const struct ctl *ctl, const char *path, bool elsewhere)
{
    char name[SGP_NAME_BYTES], *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);
    if (file == NULL)
        return NULL;
    ctl_socket_name(ctl, name);
    (void)fputs("sgpctl ", file);
    if (!elsewhere) {
        (void)fputs(name[0] != '\0' ? "-n " : "-s ", file);
        ctl_put_word(name[0] != '\0' ? name : ctl->socket, file);
        (void)fputc(' ', file);
    }
    (void)fputs("topology push ", file);
    ctl_put_word(path, file);
    (void)fputs(" --sign KEY", file);
    return fclose(file) == 0 ? text : NULL;
}

void ctl_rollout_advise(struct ctl *ctl, const char *path, bool elsewhere, json_t *json)
{
    json_t *rollout = NULL;
    if (ctl_rollout_ask(ctl, true, &rollout) != CTL_DONE)
        return;
    json_decref(rollout);
    char *text = push_command(ctl, path, elsewhere);
    if (text != NULL && ctl->json)
        (void)json_object_set_new(json, "push", ctl_json_text(text));
    else if (text != NULL)
        (void)fprintf(stderr, "sgpctl: to give it to the whole fleet%s: %s\n",
            elsewhere ? ", on a node that stays" : "", text);
    free(text);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Names and keys of struck nodes; see formers.h. */
#include "formers.h"

#include "store/versions.h"

#include "sgp/dot.h"
#include "sgp/rollout.h"

#include <stdlib.h>
#include <string.h>

struct former {
    char name[SGP_NAME_BYTES];
    char keys[SGP_NODE_KEYS_MAX][SGP_KEY_BYTES];
};

struct formers {
    uint32_t count;
    struct former list[FORMERS_MAX]; /* struck latest first */
};

static bool has_key(const struct former *former, const char *hash)
{
    for (uint32_t i = 0; i < SGP_NODE_KEYS_MAX; i++)
        if (former->keys[i][0] != '\0' && strcmp(former->keys[i], hash) == 0)
            return true;
    return false;
}

static bool is_listed(const struct formers *formers, const char *name)
{
    for (uint32_t i = 0; i < formers->count; i++)
        if (strcmp(formers->list[i].name, name) == 0)
            return true;
    return false;
}

/* Those of a file that the present one does not name; at the end of the list, or at its front. */
static void add(struct formers *formers, const struct sgp_topology *file,
    const struct sgp_topology *present, bool front)
{
    for (uint32_t i = 0; i < file->node_count; i++) {
        const struct sgp_topology_node *node = &file->nodes[i];
        if (sgp_topology_find(present, node->name) >= 0 || is_listed(formers, node->name) ||
            (!front && formers->count == FORMERS_MAX))
            continue;
        struct former *it = &formers->list[formers->count];
        if (front) {
            const uint32_t kept = formers->count < FORMERS_MAX ? formers->count : FORMERS_MAX - 1;
            memmove(&formers->list[1], &formers->list[0], kept * sizeof *formers->list);
            formers->count = kept;
            it = &formers->list[0];
        }
        memcpy(it->name, node->name, sizeof it->name);
        memcpy(it->keys, node->keys, sizeof it->keys);
        formers->count++;
    }
}

void formers_reloaded(struct daemon *daemon, const struct sgp_topology *former)
{
    struct formers *formers = daemon->formers;
    const struct sgp_topology *present = daemon->prepared->topology;
    uint32_t kept = 0;
    if (formers == NULL)
        return;
    for (uint32_t i = 0; i < formers->count; i++) /* named again */
        if (sgp_topology_find(present, formers->list[i].name) < 0)
            formers->list[kept++] = formers->list[i];
    formers->count = kept;
    add(formers, former, present, true);
}

/* The nodes of a document. Returns its bytes. */
static size_t add_version(const struct daemon *daemon, uint64_t version)
{
    struct sgp_document document = {.file = NULL};
    struct sgp_topology *topology = NULL;
    struct sgp_error ignored = {0};
    uint64_t seconds;
    char *text = NULL;
    size_t bytes = 0;
    if (versions_read(daemon->config->state_directory, version, &seconds, &text) == 0 &&
        sgp_document_read(text, &ignored, &document) == 0 && document.file != NULL &&
        sgp_dot_parse(
            document.file, document.manifest.file_bytes, "version", &ignored, &topology) == 0) {
        bytes = document.manifest.file_bytes;
        add(daemon->formers, topology, daemon->prepared->topology, false);
    }
    sgp_topology_destroy(topology);
    sgp_document_finish(&document);
    free(text);
    return bytes;
}

void formers_open(struct daemon *daemon)
{
    uint64_t versions[VERSIONS_MAX];
    size_t bytes = 0;
    if (daemon->prepared->rollout == NULL)
        return;
    daemon->formers = calloc(1, sizeof *daemon->formers);
    if (daemon->formers == NULL)
        return;
    const uint32_t count = versions_list(daemon->config->state_directory, versions);
    for (uint32_t i = 0; i < count && bytes < FORMERS_BYTES; i++)
        bytes += add_version(daemon, versions[i]);
}

void formers_finish(struct daemon *daemon)
{
    free(daemon->formers);
    daemon->formers = NULL;
}

bool formers_have_key(const struct daemon *daemon, const char *hash)
{
    const struct formers *formers = daemon->formers;
    for (uint32_t i = 0; formers != NULL && i < formers->count; i++)
        if (has_key(&formers->list[i], hash))
            return true;
    return false;
}

bool formers_have(void *context, const struct link *link)
{
    return link->cipher != NULL && formers_have_key(context, sgp_cipher_peer(link->cipher));
}

int64_t formers_find(const struct daemon *daemon, const struct link *link, const char *source)
{
    const struct formers *formers = daemon->formers;
    const bool plain = link->cipher == NULL;
    if (formers == NULL || (plain && daemon->prepared->topology->tls == SGP_TLS_REQUIRE))
        return -1;
    for (uint32_t i = 0; i < formers->count; i++)
        if (strcmp(formers->list[i].name, source) == 0 &&
            (plain || has_key(&formers->list[i], sgp_cipher_peer(link->cipher))))
            return i;
    return -1;
}

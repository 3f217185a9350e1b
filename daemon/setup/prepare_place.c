/* SPDX-License-Identifier: Apache-2.0 */
/* The first part of `prepare`: the topology, and the node's place and key in it; see prepare.h. */
#include "prepare_inside.h"

#include "sgp/dot.h"
#include "sgp/method.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *prepared_file(const struct prepared *p)
{
    return p->version[0] != '\0' ? p->version : p->config->topology;
}

static int fail_unknown_name(const struct prepared *p, struct sgp_error *error)
{
    char names[300];
    size_t used = 0;
    for (uint32_t i = 0; i < p->topology->node_count && !p->topology->nodes[i].colocated; i++) {
        bool fits = used + 2 * SGP_NAME_BYTES < sizeof names;
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "",
            fits ? p->topology->nodes[i].name : "...");
        if (!fits)
            break;
    }
    return config_fail(p->config, CONFIG_ID_NAME, error, SGP_E_UNKNOWN_NODE,
        "no node of %s is called %s; its nodes are %s", prepared_file(p), p->config->name, names);
}

static bool is_loopback(const char *address)
{
    char host[SGP_ADDRESS_BYTES];
    uint16_t port;
    return sgp_address_split(address, NULL, host, &port) == 0 &&
           (strncmp(host, "127.", 4) == 0 || strcmp(host, "::1") == 0 ||
               strcmp(host, "localhost") == 0);
}

/* Addresses that may be right, but mostly are not. */
static void warn_about_addresses(struct prepared *p)
{
    const struct sgp_topology_node *nodes = p->topology->nodes;
    const char *own = nodes[p->self].address;
    const char *elsewhere = NULL;
    if (strcmp(own, SGP_ADDRESS_NONE) == 0) /* no node dials it, or only the colocated owner */
        return;
    for (uint32_t i = 0; i < p->topology->node_count && !elsewhere; i++)
        if (i != p->self && sgp_topology_is_dialled(p->topology, i) &&
            !is_loopback(nodes[i].address))
            elsewhere = nodes[i].name;
    if (elsewhere && is_loopback(p->config->listen))
        prepared_warn(p,
            "[network] listen = %s is a loopback address, but %s is on another host and cannot "
            "reach it; listen on 0.0.0.0 or on the address of an interface",
            p->config->listen, elsewhere);
    if (elsewhere && is_loopback(own))
        prepared_warn(p,
            "the topology gives this node the loopback address %s, but %s is on another host and "
            "cannot reach it; give the address of an interface",
            own, elsewhere);
    char host[SGP_ADDRESS_BYTES];
    uint16_t own_port = 0;
    uint16_t port = 0;
    if (sgp_topology_is_dialled(p->topology, p->self) &&
        strcmp(p->config->listen, SGP_ADDRESS_NONE) != 0 &&
        sgp_address_split(own, NULL, host, &own_port) == 0 &&
        sgp_address_split(p->config->listen, NULL, host, &port) == 0 && port != own_port)
        prepared_warn(p,
            "neighbours dial port %u by the topology, and this node listens on port %u",
            (unsigned)own_port, (unsigned)port);
}

int prepare_fail_file(
    const struct config *config, int code, const struct sgp_error *why, struct sgp_error *error)
{
    const struct {
        const char *path;
        enum config_id id;
    } files[] = {{config->topology, CONFIG_ID_TOPOLOGY}, {config->train, CONFIG_ID_TRAIN},
        {config->labels, CONFIG_ID_LABELS}, {config->test, CONFIG_ID_TEST},
        {config->test_labels, CONFIG_ID_TEST_LABELS}, {config->scale, CONFIG_ID_SCALE}};
    bool path_is_wrong = code == -ENOENT || code == -ENOTDIR || code == -EISDIR || code == -EACCES;
    for (size_t i = 0; i < sizeof files / sizeof files[0] && path_is_wrong; i++) {
        size_t length = files[i].path ? strlen(files[i].path) : 0;
        if (length > 0 && strncmp(why->text, files[i].path, length) == 0 &&
            why->text[length] == ':')
            return sgp_fail(error, code, "%s; correct its path in %s:%u", why->text, config->file,
                config->lines[files[i].id]);
    }
    return sgp_fail(error, code, "%s", why->text);
}

/* Whether the file assigns this node's key to it. */
static bool is_own_key(const struct prepared *p)
{
    return p->key != NULL && sgp_topology_has_key(p->topology, p->self, sgp_key_hash(p->key));
}

/* Where the secret key is: as configured. Else as a unit has handed it over
 * (LoadCredential=key:...). Else where `sgpctl key generate` puts it, if ciphers are wanted and the
 * file exists. Else "". */
static const char *key_path(const struct prepared *p, char usual[PATH_MAX])
{
    const char *handed = getenv("CREDENTIALS_DIRECTORY");
    if (p->config->key[0] != '\0' || p->topology->tls == SGP_TLS_OFF)
        return p->config->key;
    (void)snprintf(usual, PATH_MAX, "%s/key", handed != NULL ? handed : "");
    if (handed != NULL && access(usual, F_OK) == 0)
        return usual;
    (void)snprintf(usual, PATH_MAX, "/etc/sgpd/%s.key",
        p->topology->nodes[sgp_topology_machine(p->topology, p->self)].name);
    return access(usual, F_OK) == 0 ? usual : "";
}

/* The least and the greatest weight of this node according to the file. */
static int prepare_weights(struct prepared *p)
{
    uint32_t nodes = p->topology->node_count;
    double *least = malloc(2 * (size_t)nodes * sizeof *least);
    if (least == NULL)
        return -ENOMEM;
    double *most = least + nodes;
    int code = sgp_topology_weight_range(p->topology, least, most);
    if (code == 0) {
        p->weight_least = least[p->self];
        p->weight_most = most[p->self];
    }
    free(least);
    return code;
}

/* Read the secret key, and check that other nodes will know this node by it. */
static int prepare_key(struct prepared *p, struct sgp_error *error)
{
    const struct config *config = p->config;
    struct sgp_error why = {0};
    char keys[SGP_KEYS_BYTES], usual[PATH_MAX];
    const char *path = key_path(p, usual);
    bool ciphers = p->topology->tls != SGP_TLS_OFF;
    if (path[0] != '\0' && sgp_key_read(path, &why, &p->key) < 0)
        return config_fail(config, CONFIG_ID_KEY, error, why.code, "%s", why.text);
    if (!ciphers || is_own_key(p))
        return 0;
    if (p->key == NULL)
        return config_fail(config, CONFIG_ID_KEY, error, SGP_E_CONFIG,
            "%s says tls=%s, and this node has no secret key; sgpctl key generate %s makes "
            "/etc/sgpd/%s.key, or name another file",
            prepared_file(p), sgp_tls_name(p->topology->tls), config->name, config->name);
    sgp_topology_keys_text(p->topology, p->self, keys);
    return config_fail(config, CONFIG_ID_KEY, error, SGP_E_CONFIG,
        "%s is the key %s, and by %s node %s has %s; correct the topology file, or give the other "
        "key",
        path, sgp_key_hash(p->key), prepared_file(p), config->name, keys);
}

static int check_guard(const struct prepared *p, struct sgp_error *error)
{
    struct sgp_error why = {0};
    if (!(p->config->guard > 0) || sgp_topology_check_guard(p->topology, p->self, &why) == 0)
        return 0;
    return config_fail(
        p->config, CONFIG_ID_GUARD, error, why.code, "%s: %s", prepared_file(p), why.text);
}

int prepare_topology(struct prepared *p, struct sgp_error *error)
{
    const struct config *config = p->config;
    struct sgp_error why = {0};
    struct signed_file file;
    int code = signed_file_read(config, p->wish, &why, &file);
    if (code < 0)
        return prepare_fail_file(config, code, &why, error);
    p->topology = file.topology;
    p->rollout = file.rollout;
    memcpy(p->version, file.name, sizeof p->version);
    if ((p->wish == NULL || p->wish->from == SIGNED_FILE_PATH) && p->version[0] != '\0')
        prepared_warn(p, "%s has an earlier version; this node uses %s, which it has stored",
            config->topology, p->version);
    p->method = sgp_method_at((uint32_t)config->algorithm - 1);
    sgp_assert(p->method);
    struct sgp_edge_place culprit;
    if (sgp_method_suit(p->method, p->topology, &why, &culprit) < 0)
        return sgp_dot_fail(prepared_file(p), p->topology, &culprit, &why, error);
    if (config->step_by_rate == CONFIG_YES && !sgp_method_may_scale_rate(p->method))
        return config_fail(config, CONFIG_ID_STEP_BY_RATE, error, SGP_E_CONFIG,
            "with algorithm %s all nodes make rounds at one rate; it is for agp and adpsgd",
            p->method->name);
    const struct sgp_topology *topology = p->topology;
    int64_t self = sgp_topology_find(topology, config->name);
    if (self < 0)
        return fail_unknown_name(p, error);
    p->self = (uint32_t)self;
    if (topology->nodes[self].colocated && !config->colocated)
        return config_fail(config, CONFIG_ID_NAME, error, SGP_E_CONFIG,
            "%s is what node %s of %s owns, and runs with that; name = %s", config->name,
            topology->nodes[topology->nodes[self].trainer].name, prepared_file(p),
            topology->nodes[topology->nodes[self].trainer].name);
    if (topology->node_count > 1 && !topology->nodes[self].address[0])
        return sgp_fail(error, SGP_E_TOPOLOGY,
            "%s: no node has an address; write %s [address=\"HOST:PORT\"] and so on for each",
            prepared_file(p), config->name);
    if ((code = prepare_key(p, error)) < 0 || (code = check_guard(p, error)) < 0)
        return code;
    const struct sgp_phase *outer = sgp_topology_outer(topology);
    if (outer && prepared_takes_outer_steps(p) &&
        (enum sgp_outer_kind)(config->outer - 1) == SGP_OUTER_NONE)
        return config_fail(config, CONFIG_ID_OUTER, error, SGP_E_CONFIG,
            "digraph %s of %s says outer=true, and this node takes no outer step; set [outer] kind "
            "to slowmo or nesterov, on every node",
            outer->name, prepared_file(p));
    if (config->start != SGP_START_ALL && config->start > topology->node_count)
        return config_fail(config, CONFIG_ID_START, error, SGP_E_CONFIG,
            "%" PRIu32 " nodes will never be there; the topology has %" PRIu32, config->start,
            topology->node_count);
    code = sgp_analyse(topology, &p->analysis);
    if (code < 0)
        return sgp_fail(error, code, "%s: %s", prepared_file(p), sgp_strerror(code));
    for (uint32_t i = 0; i < p->analysis.warning_count; i++)
        prepared_warn(p, "%s: %s", prepared_file(p), p->analysis.warnings[i]);
    if (topology->node_count > 1)
        warn_about_addresses(p);
    code = prepare_weights(p);
    if (code == 0)
        code = sgp_node_needs(topology, p->self, p->method, &p->needs);
    if (config->guard > 0 && p->needs.receives < SGP_CANDIDATES_MOST)
        p->needs.receives = SGP_CANDIDATES_MOST; /* for the estimates that it compares */
    return code < 0 ? sgp_fail(error, code, "%s: %s", prepared_file(p), sgp_strerror(code)) : 0;
}

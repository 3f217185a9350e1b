/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of nodes, without a daemon: make a key, and print its name in the topology file. */
#include "ctl.h"

#include "sgp/key.h"
#include "sgp/topology.h"

#include <errno.h>
#include <string.h>

#define PATH_BYTES 4096u

/* The node and its key file. */
static enum ctl_exit take_operands(
    struct ctl *ctl, int argc, char **argv, const char **ret_name, char path[PATH_BYTES])
{
    struct ctl_given file = {0};
    enum ctl_exit status = ctl_options_take(ctl, &argc, argv, &file, 1, 1, 1);
    if (status != CTL_DONE)
        return status;
    if (!sgp_topology_name_is_good(argv[0]))
        return ctl_usage(ctl, "'%s' is no name of a node; --file names another file", argv[0]);
    *ret_name = argv[0];
    if (file.given)
        (void)snprintf(path, PATH_BYTES, "%s", file.value);
    else
        (void)snprintf(path, PATH_BYTES, "/etc/sgpd/%s.key", argv[0]);
    return CTL_DONE;
}

static enum ctl_exit print(struct ctl *ctl, const char *name, const char *path, const char *hash)
{
    if (ctl->json)
        return ctl_print_json(
            json_pack("{s:s, s:o, s:s}", "name", name, "file", ctl_json_text(path), "key", hash));
    (void)printf("%s [key=\"%s\"];\n", name, hash);
    return CTL_DONE;
}

static enum ctl_exit fail(struct ctl *ctl, int code, const struct sgp_error *error)
{
    bool denied = code == -EPERM || code == -EACCES;
    return ctl_fail(ctl,
        code == SGP_E_FILE ? CTL_INVALID
        : denied           ? CTL_NOT_PERMITTED
                           : CTL_FAILED,
        "%s", error->text);
}

static enum ctl_exit generate(struct ctl *ctl, int argc, char **argv)
{
    const char *name = NULL;
    char path[PATH_BYTES], hash[SGP_KEY_BYTES];
    struct sgp_error error = {0};
    enum ctl_exit status = take_operands(ctl, argc, argv, &name, path);
    if (status != CTL_DONE)
        return status;
    int code = sgp_key_generate(path, &error, hash);
    return code < 0 ? fail(ctl, code, &error) : print(ctl, name, path, hash);
}

static enum ctl_exit show(struct ctl *ctl, int argc, char **argv)
{
    const char *name = NULL;
    char path[PATH_BYTES];
    struct sgp_error error = {0};
    struct sgp_key *key;
    enum ctl_exit status = take_operands(ctl, argc, argv, &name, path);
    if (status != CTL_DONE)
        return status;
    int code = sgp_key_read(path, &error, &key);
    if (code < 0)
        return fail(ctl, code, &error);
    status = print(ctl, name, path, sgp_key_hash(key));
    sgp_key_release(key);
    return status;
}

static const struct ctl_option file_option[] = {
    {"--file", .value = "FILE", .summary = "the key's file; by default /etc/sgpd/NAME.key"}, {0}};

const struct ctl_command ctl_key_generate_command = {.words = "key generate",
    .operands = "NAME",
    .summary = "make a secret key for node NAME, and print its line for the topology file",
    .help =
        "The file must not be there yet; its mode will be\n"
        "0600. What is printed is no secret: it belongs into the topology file, on every node. No\n"
        "daemon is needed.\n",
    .options = file_option,
    .run = generate};

const struct ctl_command ctl_key_show_command = {.words = "key show",
    .operands = "NAME",
    .summary = "print the line of node NAME's key for the topology file",
    .help = "The secret key is read, and nothing else has to be known. A\n"
            "file that others may read is refused (4). No daemon is needed.\n",
    .options = file_option,
    .run = show};

/* SPDX-License-Identifier: Apache-2.0 */
/* `sgpctl join`: make this machine a pending node of the inviter's fleet: key, topology file and
 * configuration. What this run has made is removed if it fails; but not the key once the inviter
 * was asked, since the invitation may then be used by that key alone. */
#include "ctl.h"
#include "join_line.h"
#include "line.h"
#include "new_file.h"

#include "../daemon/setup/config.h"

#include "sgp/dot.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ADDRESS, LISTEN, TRAIN, OUTPUT, TOPOLOGY, KEY, FORCE, OPTIONS };

static const struct ctl_option options[] = {
    {"--address", .value = "HOST:PORT", .required = true,
        .summary = "where the other nodes reach this one; none if they cannot dial it"},
    {"--listen", .value = "HOST:PORT",
        .summary = "where its daemon listens; by default that address"},
    {"--train", .value = "FILE", .summary = "its rows; else fill in [data] train before the start"},
    {"--output", .value = "FILE",
        .summary = "the configuration to write; by default /etc/sgpd/NAME.conf"},
    {"--topology", .value = "FILE",
        .summary = "the topology file to write; by default fleet.dot beside the configuration"},
    {"--key", .value = "FILE",
        .summary = "the secret key; made if it is not there; by default NAME.key beside the "
                   "configuration"},
    {"--force", .summary = "replace configuration and topology file if they are there"}, {0}};

struct joining {
    struct ctl *ctl;
    const struct ctl_given *given;
    struct sgp_invitation invitation;
    const char *address, *listen;
    char conf[PATH_MAX], topology[PATH_MAX], key[PATH_MAX], train[PATH_MAX];
    struct sgp_key *secret;
    bool key_made, asked; /* the inviter */
};

/* ---- arguments ---- */

/* "-": the first line of standard input. */
static enum ctl_exit take_invitation(struct joining *joining, const char *argument)
{
    struct sgp_error error = {0};
    char line[SGP_INVITATION_TEXT_BYTES + 2] = "";
    if (strcmp(argument, "-") == 0) {
        if (fgets(line, sizeof line, stdin) == NULL)
            return ctl_fail(joining->ctl, CTL_INVALID, "standard input has no invitation");
        line[strcspn(line, "\r\n")] = '\0';
        argument = line;
    }
    const int code = sgp_invitation_read(argument, &error, &joining->invitation);
    explicit_bzero(line, sizeof line);
    return code < 0 ? ctl_fail(joining->ctl, CTL_INVALID, "%s", error.text) : CTL_DONE;
}

/* A path as given, or NAME beside the configuration; absolute. */
static bool set_path(
    const struct joining *joining, size_t option, const char *usual, char path[PATH_MAX])
{
    const struct ctl_given *given = &joining->given[option];
    const char *slash = strrchr(joining->conf, '/');
    char directory[PATH_MAX] = "";
    int length;
    if (given->given && given->value[0] != '/' && getcwd(directory, sizeof directory) == NULL)
        return false;
    if (given->given && given->value[0] == '/')
        length = snprintf(path, PATH_MAX, "%s", given->value);
    else if (given->given)
        length = snprintf(path, PATH_MAX, "%s/%s", directory, given->value);
    else
        length = snprintf(path, PATH_MAX, "%.*s/%s",
            (int)(slash != NULL ? slash - joining->conf : 0), joining->conf, usual);
    return length > 0 && length < PATH_MAX;
}

static enum ctl_exit take_paths(struct joining *joining)
{
    char usual[SGP_NAME_BYTES + 16];
    (void)snprintf(joining->conf, sizeof joining->conf, "/etc/sgpd/");
    (void)snprintf(usual, sizeof usual, "%s.conf", joining->invitation.name);
    char conf[PATH_MAX];
    bool good = set_path(joining, OUTPUT, usual, conf);
    memcpy(joining->conf, conf, sizeof conf);
    good = good && set_path(joining, TOPOLOGY, "fleet.dot", joining->topology);
    (void)snprintf(usual, sizeof usual, "%s.key", joining->invitation.name);
    good = good && set_path(joining, KEY, usual, joining->key) &&
           (!joining->given[TRAIN].given || set_path(joining, TRAIN, "", joining->train));
    return good ? CTL_DONE : ctl_usage(joining->ctl, "a path is too long");
}

static enum ctl_exit take_addresses(struct joining *joining)
{
    struct sgp_error error = {0};
    char host[SGP_ADDRESS_BYTES];
    uint16_t port;
    joining->address = joining->given[ADDRESS].value;
    joining->listen =
        joining->given[LISTEN].given ? joining->given[LISTEN].value : joining->address;
    const char *const texts[] = {joining->address, joining->listen};
    for (size_t i = 0; i < 2; i++)
        if (strcmp(texts[i], SGP_ADDRESS_NONE) != 0 &&
            sgp_address_split(texts[i], &error, host, &port) < 0)
            return ctl_usage(joining->ctl, "%s", error.text);
    return strlen(joining->address) < SGP_JOIN_ADDRESS_BYTES
               ? CTL_DONE
               : ctl_usage(joining->ctl, "--address is too long");
}

/* A directory in which files are made. */
static enum ctl_exit check_directory(const struct joining *joining, const char *path)
{
    char directory[PATH_MAX];
    (void)snprintf(directory, sizeof directory, "%s", path);
    directory[strrchr(directory, '/') - directory + 1] = '\0';
    return access(directory, W_OK | X_OK) == 0
               ? CTL_DONE
               : ctl_fail(joining->ctl, errno == EACCES ? CTL_NOT_PERMITTED : CTL_FAILED,
                     "%s: no file can be made there: %s; nothing was changed", directory,
                     strerror(errno));
}

static enum ctl_exit refuse_existing(const struct joining *joining, const char *path)
{
    return ctl_fail(joining->ctl, CTL_FAILED,
        "%s is there already, and nothing was changed; --force replaces it, another name keeps it",
        path);
}

/* The configuration must hold what it is to say. */
static enum ctl_exit check_lines(const struct joining *joining)
{
    const struct {
        size_t option;
        const char *key, *value;
    } lines[] = {{KEY, "key", joining->key}, {TOPOLOGY, "file", joining->topology},
        {LISTEN, "listen", joining->listen}, {TRAIN, "train", joining->train}};
    enum ctl_exit status = CTL_DONE;
    for (size_t i = 0; i < sizeof lines / sizeof *lines && status == CTL_DONE; i++)
        if (lines[i].value[0] != '\0')
            status = ctl_line_check(
                joining->ctl, options[lines[i].option].name, lines[i].key, lines[i].value);
    return status;
}

/* What can be known before the invitation is used. */
static enum ctl_exit check_paths(const struct joining *joining)
{
    const char *conf = joining->conf, *topology = joining->topology, *key = joining->key;
    if (strcmp(conf, topology) == 0 || strcmp(conf, key) == 0 || strcmp(topology, key) == 0)
        return ctl_usage(joining->ctl,
            "configuration, topology file and key are three files; give each a name of its own");
    struct stat what;
    for (size_t i = 0; i < 2; i++)
        if (stat(i == 0 ? conf : topology, &what) == 0 && !S_ISREG(what.st_mode))
            return ctl_fail(joining->ctl, CTL_FAILED,
                "%s is there, and is no file; give another name", i == 0 ? conf : topology);
    if (!joining->given[FORCE].given && access(conf, F_OK) == 0)
        return refuse_existing(joining, conf);
    enum ctl_exit status = check_lines(joining);
    if (status == CTL_DONE)
        status = check_directory(joining, conf);
    return status == CTL_DONE ? check_directory(joining, topology) : status;
}

/* ---- the key ---- */

static enum ctl_exit take_key(struct joining *joining)
{
    struct sgp_error error = {0};
    char hash[SGP_KEY_BYTES];
    joining->key_made = access(joining->key, F_OK) != 0;
    int code = joining->key_made ? sgp_key_generate(joining->key, &error, hash) : 0;
    joining->key_made = joining->key_made && code == 0;
    if (code == 0)
        code = sgp_key_read(joining->key, &error, &joining->secret);
    return code < 0 ? ctl_fail(joining->ctl,
                          code == -EPERM || code == -EACCES ? CTL_NOT_PERMITTED : CTL_FAILED, "%s",
                          error.text)
                    : CTL_DONE;
}

/* ---- the files ---- */

struct file {
    const char *path, *text;
    size_t bytes;
    char part[PATH_MAX]; /* its temporary name */
    bool made;           /* by this run: no file was there */
};

static void put_configuration(const struct joining *joining, const char *settings, FILE *file)
{
    char usual[SGP_NAME_BYTES + 32];
    (void)snprintf(usual, sizeof usual, "/etc/sgpd/%s.key", joining->invitation.name);
    (void)fprintf(file,
        "; A node of fleet %s, written by sgpctl join. Below [network] are the settings\n"
        "; that all nodes share, as the inviter has them.\n"
        "[node]\nname = %s\n",
        joining->invitation.fleet, joining->invitation.name);
    if (strcmp(usual, joining->key) != 0)
        (void)fprintf(file, "key = %s\n", joining->key);
    (void)fprintf(file, "[topology]\nfile = %s\n[network]\nlisten = %s\n%s", joining->topology,
        joining->listen, settings);
    if (joining->train[0] != '\0')
        (void)fprintf(file, "[data]\ntrain = %s\n", joining->train);
    else
        (void)fputs("; Name this node's rows:\n; [data]\n; train = FILE\n", file);
}

/* The configuration as text, which a daemon would read. The inviter may lie: of what is for this
 * machine to set, its settings must have nothing. */
static enum ctl_exit make_configuration(
    const struct joining *joining, const char *settings, char **ret_text, size_t *ret_bytes)
{
    struct sgp_error error = {0};
    struct config config;
    int code = config_shared_check(settings, &error);
    FILE *file = code == 0 ? open_memstream(ret_text, ret_bytes) : NULL;
    if (code == 0 && file == NULL)
        code = sgp_fail(&error, -ENOMEM, "out of memory");
    if (file != NULL)
        put_configuration(joining, settings, file);
    if (file != NULL)
        code = fclose(file) == 0
                   ? config_parse(joining->conf, *ret_text, *ret_bytes, &error, &config)
                   : sgp_fail(&error, -ENOMEM, "out of memory");
    if (code < 0)
        return ctl_fail(joining->ctl, CTL_INVALID, "the inviter's settings cannot be used here: %s",
            error.text);
    config_finish(&config);
    return CTL_DONE;
}

/* Whether a file has exactly this text. */
static bool holds(const char *path, const char *text)
{
    FILE *file = fopen(path, "re");
    bool same = file != NULL;
    int letter = 0;
    for (; same && (letter = fgetc(file)) != EOF; text++)
        same = *text != '\0' && letter == (unsigned char)*text;
    if (file != NULL)
        (void)fclose(file);
    return same && *text == '\0';
}

static enum ctl_exit fail_file(const struct joining *joining, const char *path, int code)
{
    if (code == -EEXIST)
        return refuse_existing(joining, path);
    return ctl_fail(joining->ctl, code == -EACCES ? CTL_NOT_PERMITTED : CTL_FAILED, "%s: %s", path,
        sgp_strerror(code));
}

/* Write all files, then give each its name; so nothing is replaced if one cannot be written. */
static enum ctl_exit write_all(const struct joining *joining, struct file *files, size_t count)
{
    const bool force = joining->given[FORCE].given;
    size_t written = 0, placed = 0;
    int code = 0;
    for (; written < count && code == 0; written += code == 0)
        code = ctl_file_prepare(files[written].path, files[written].text, files[written].bytes,
            force, files[written].part);
    const char *failed = code < 0 ? files[written].path : NULL;
    for (; placed < count && code == 0; placed += code == 0) {
        files[placed].made = access(files[placed].path, F_OK) != 0;
        code = ctl_file_place(files[placed].part, files[placed].path, force);
        failed = files[placed].path;
    }
    if (code == 0)
        return CTL_DONE;
    for (size_t i = 0; i < written; i++)
        if (i >= placed)
            (void)unlink(files[i].part);
        else if (files[i].made)
            (void)unlink(files[i].path);
    return fail_file(joining, failed, code);
}

static enum ctl_exit write_files(
    struct joining *joining, const char *topology, const char *settings)
{
    struct sgp_error error = {0};
    struct sgp_topology *read = NULL;
    char *conf = NULL;
    size_t bytes = 0;
    if (sgp_dot_parse(topology, strlen(topology), "the inviter's topology file", &error, &read) < 0)
        return ctl_fail(joining->ctl, CTL_INVALID, "%s", error.text);
    sgp_topology_destroy(read);
    enum ctl_exit status = make_configuration(joining, settings, &conf, &bytes);
    struct file files[] = {{.path = joining->conf, .text = conf, .bytes = bytes},
        {.path = joining->topology, .text = topology, .bytes = strlen(topology)}};
    if (status == CTL_DONE)
        status = write_all(joining, files, holds(joining->topology, topology) ? 1 : 2);
    free(conf);
    return status;
}

/* ---- the whole ---- */

static enum ctl_exit ask(struct joining *joining)
{
    struct sgp_error error = {0};
    char *topology = NULL, *settings = NULL;
    const int code = ctl_join_line(&joining->invitation, joining->address, joining->secret, &error,
        &joining->asked, &topology, &settings);
    if (code < 0)
        return ctl_fail(
            joining->ctl, code == -ETIMEDOUT ? CTL_TIMED_OUT : CTL_FAILED, "%s", error.text);
    enum ctl_exit status = write_files(joining, topology, settings);
    free(topology);
    free(settings);
    return status;
}

static enum ctl_exit print(const struct joining *joining)
{
    const char *name = joining->invitation.name, *hash = sgp_key_hash(joining->secret);
    if (joining->ctl->json)
        return ctl_print_json(json_pack("{s:s, s:s, s:s, s:s, s:s, s:o, s:o, s:o}", "name", name,
            "state", "pending", "fleet", joining->invitation.fleet, "address", joining->address,
            "key", hash, "key_file", ctl_json_text(joining->key), "configuration",
            ctl_json_text(joining->conf), "topology", ctl_json_text(joining->topology)));
    (void)printf("%s is pending: %s, %s\n"
                 "the key is in %s, the configuration in %s, the topology file in %s\n",
        name, joining->address, hash, joining->key, joining->conf, joining->topology);
    return CTL_DONE;
}

static enum ctl_exit join(struct ctl *ctl, int argc, char **argv)
{
    struct ctl_given given[OPTIONS] = {0};
    struct joining joining = {.ctl = ctl, .given = given};
    enum ctl_exit status = ctl_options_take(ctl, &argc, argv, given, OPTIONS, 1, 1);
    if (status == CTL_DONE)
        status = take_addresses(&joining);
    if (status == CTL_DONE)
        status = take_invitation(&joining, argv[0]);
    if (status == CTL_DONE)
        status = take_paths(&joining);
    if (status == CTL_DONE)
        status = check_paths(&joining);
    if (status == CTL_DONE)
        status = take_key(&joining);
    if (status == CTL_DONE)
        status = ask(&joining);
    if (status == CTL_DONE)
        status = print(&joining);
    else if (joining.asked)
        (void)fprintf(stderr, "the key stays in %s; join again with it\n", joining.key);
    else if (joining.key_made)
        (void)unlink(joining.key);
    sgp_key_release(joining.secret);
    explicit_bzero(&joining.invitation, sizeof joining.invitation);
    return status;
}

const struct ctl_command ctl_join_command = {.words = "join",
    .operands = "INVITATION",
    .options = options,
    .summary = "join a fleet by an invitation: make the key, receive topology and settings",
    .help =
        "The invitation is the line of `sgpctl invite`; - reads it from standard input, where no\n"
        "other user sees it. The key is made unless its file is there. The inviter sends its\n"
        "topology file, and the settings that all nodes share; the configuration is read as a\n"
        "daemon would before it is written. The node is then pending: start its daemon when the\n"
        "topology file that `sgpctl admit` proposes has taken the place of the one written here.\n"
        "If it fails, neither of these files is left, and with --force those that were there "
        "stay.\n"
        "Once the inviter was asked, the key stays, and a second line says where: the invitation\n"
        "may be used by this key alone, so join again with it. No daemon is needed here.\n",
    .run = join};

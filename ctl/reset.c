/* SPDX-License-Identifier: Apache-2.0 */
/* `sgpctl reset`: the node's next start trains from round 0, and its former training is set aside.
 * A running daemon is asked to do that. Else the files are moved here, under the lock that a daemon
 * would hold. */
#include "ctl.h"

#include "../daemon/setup/config.h"

#include "sgp/run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define PATH_BYTES 4096u

enum { YES, JOIN, STATE, OPTIONS };

static const struct ctl_option options[] = {{"--yes", .summary = "do not ask before"},
    {"--join", .summary = "the next run is the one that the neighbours are in: where `peers` "
                          "says that a node takes part in another run"},
    {"--state", .value = "DIRECTORY",
        .summary = "state directory of a node that does not run; by default the one that "
                   "/etc/sgpd/NAME.conf names, else /var/lib/sgpd/NAME"},
    {0}};

/* The state directory in the configuration of a node. If the node has no configuration here, the
 * default. */
static enum ctl_exit find_state_directory(struct ctl *ctl, const char *name, char path[PATH_BYTES])
{
    struct sgp_error error = {0};
    struct config config;
    char file[PATH_BYTES];
    (void)snprintf(file, sizeof file, "/etc/sgpd/%s.conf", name);
    int code = config_load(file, &error, &config);
    if (code == -ENOENT) {
        (void)snprintf(path, PATH_BYTES, "/var/lib/sgpd/%s", name);
        return CTL_DONE;
    }
    if (code == SGP_E_CONFIG)
        return ctl_fail(
            ctl, CTL_INVALID, "%s; or name the state directory with --state", error.text);
    if (code < 0)
        return ctl_fail(ctl, code == -EACCES ? CTL_NOT_PERMITTED : CTL_FAILED,
            "%s: cannot be read: %s; name the state directory with --state", file,
            sgp_strerror(code));
    (void)snprintf(path, PATH_BYTES, "%s", config.state_directory);
    config_finish(&config);
    return CTL_DONE;
}

static enum ctl_exit ask_before(struct ctl *ctl, const char *what)
{
    char answer[16] = "";
    if (!isatty(STDIN_FILENO) || !ctl->terminal)
        return ctl_usage(ctl, "reset ends the run of %s; say --yes to do that", what);
    (void)printf("End the run of %s, set its files aside, and begin a new one? [y/N] ", what);
    (void)fflush(stdout);
    if (fgets(answer, sizeof answer, stdin) != NULL && (answer[0] == 'y' || answer[0] == 'Y'))
        return CTL_DONE;
    return ctl_fail(ctl, CTL_FAILED, "nothing was changed");
}

static enum ctl_exit reset_files(struct ctl *ctl, const char *directory, bool join)
{
    struct sgp_error error = {0};
    char name[SGP_RUN_NAME_BYTES];
    int lock = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (lock < 0)
        return ctl_fail(ctl, errno == EACCES ? CTL_NOT_PERMITTED : CTL_FAILED,
            "%s: cannot be opened: %s; --state names the node's state directory", directory,
            strerror(errno));
    int code = 0;
    if (flock(lock, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
        code = sgp_fail(&error, -EBUSY,
            "%s: a daemon uses it, and does not answer at the socket that was asked; name its "
            "socket with -s, or stop it",
            directory);
    if (code == 0)
        code = sgp_run_reset(directory, join, &error, name);
    (void)close(lock);
    if (code < 0)
        return ctl_fail(ctl, code == -EACCES || code == -EPERM ? CTL_NOT_PERMITTED : CTL_FAILED,
            "%s", error.text);
    json_t *answer = json_pack("{s:o, s:o}", "state_directory", ctl_json_text(directory),
        "set_aside", ctl_json_text(name));
    if (ctl->json)
        return ctl_print_json(answer);
    ctl_print_object(ctl, answer);
    json_decref(answer);
    return CTL_DONE;
}

/* 0: a daemon answers. CTL_NOT_RUNNING: no daemon answers, and that was not reported yet. */
static enum ctl_exit find_daemon(struct ctl *ctl)
{
    const struct ctl_request request = {.method = "GET", .path = "/v1/status", .quiet = true};
    struct ctl_reply reply = {0};
    if (ctl->socket == NULL && ctl->name == NULL)
        return CTL_NOT_RUNNING;
    enum ctl_exit status = ctl_ask(ctl, &request, &reply);
    free(reply.text);
    return status;
}

static enum ctl_exit order_reset(struct ctl *ctl, bool join)
{
    const struct ctl_request request = {
        .method = "POST", .path = join ? "/v1/reset/join" : "/v1/reset"};
    json_t *answer;
    enum ctl_exit status = ctl_ask_json(ctl, &request, &answer);
    if (status != CTL_DONE)
        return status;
    if (ctl->json)
        return ctl_print_json(answer);
    ctl_print_object(ctl, answer);
    json_decref(answer);
    return CTL_DONE;
}

static enum ctl_exit reset(struct ctl *ctl, int argc, char **argv)
{
    struct ctl_given given[OPTIONS] = {0};
    char found[PATH_BYTES];
    enum ctl_exit status = ctl_options_take(ctl, &argc, argv, given, OPTIONS, 0, 1);
    if (status != CTL_DONE)
        return status;
    if (argc > 0 && (ctl->name != NULL || ctl->socket != NULL))
        return ctl_usage(ctl, "'%s' and -n or -s both name a daemon; give one of them", argv[0]);
    const char *name = argc > 0 ? argv[0] : ctl->name;
    ctl->name = name; /* until a socket is found */
    const char *directory = given[STATE].given ? given[STATE].value : NULL;
    if (name == NULL && ctl->socket == NULL && directory == NULL)
        return ctl_usage(ctl, "name the node: sgpctl reset NAME");
    const char *what = name != NULL ? name : ctl->socket != NULL ? ctl->socket : directory;
    if (!given[YES].given && (status = ask_before(ctl, what)) != CTL_DONE)
        return status;
    status = find_daemon(ctl);
    if (status == CTL_DONE)
        return order_reset(ctl, given[JOIN].given);
    if (status != CTL_NOT_RUNNING || (directory == NULL && name == NULL))
        return ctl_fail(ctl, status,
            "%s: no daemon answers that could be reset; name the node, or its "
            "state directory with --state",
            what);
    if (directory == NULL) {
        status = find_state_directory(ctl, name, found);
        if (status != CTL_DONE)
            return status;
        directory = found;
    }
    return reset_files(ctl, directory, given[JOIN].given);
}

const struct ctl_command ctl_reset_command = {.words = "reset",
    .operands = "[NAME]",
    .options = options,
    .summary = "end the node's run: set its files aside, and begin the next one at round 0",
    .help =
        "Ledger, checkpoints, history and model of the run move to run-NUMBER in the state\n"
        "directory, and nothing is overwritten. A daemon that runs ends in order, and starts\n"
        "anew; the order is given, not awaited. Without a daemon the files are moved at once.\n"
        "Reset every node: a node in a new run exchanges nothing with one in the former run, and\n"
        "both say so in `peers`. Without a terminal it wants --yes.\n"
        "For root and the daemon's own user.\n",
    .run = reset};

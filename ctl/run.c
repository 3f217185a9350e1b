/* SPDX-License-Identifier: Apache-2.0 */
/* `sgpctl run -- PROGRAM` becomes that program, which finds the daemon's socket in its
 * environment. */
#include "ctl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NOT_FOUND 127 /* as in a shell */
#define NOT_RUN 126

/* The socket at which programs attach to the daemon. */
static enum ctl_exit find_socket(struct ctl *ctl)
{
    const struct ctl_request request = {.method = "GET", .path = "/v1/status"};
    json_t *status;
    enum ctl_exit code = ctl_ask_json(ctl, &request, &status);
    if (code != CTL_DONE)
        return code;
    const json_t *program = json_object_get(status, "program");
    const char *socket = json_string_value(json_object_get(program, "socket"));
    if (socket == NULL)
        code = ctl_fail(ctl, CTL_FAILED,
            "this node trains its own layers, and no program attaches to it; set [model] kind = "
            "attached");
    else if (setenv("SGP_SOCKET", socket, 1) < 0)
        code = ctl_fail(ctl, CTL_FAILED, "out of memory");
    json_decref(status);
    return code;
}

static enum ctl_exit run(struct ctl *ctl, int argc, char **argv)
{
    if (argc > 0 && strcmp(argv[0], "--") == 0) {
        argc--;
        argv++;
    }
    if (argc == 0)
        return ctl_usage(ctl, "a program is missing: sgpctl run -- PROGRAM [ARGUMENT ...]");
    enum ctl_exit status = find_socket(ctl);
    if (status != CTL_DONE)
        return status;
    (void)execvp(argv[0], argv);
    /* a shell's status, not ours */
    status = (enum ctl_exit)(errno == ENOENT ? NOT_FOUND : NOT_RUN);
    return ctl_fail(ctl, status, "%s: cannot be run: %s", argv[0], sgp_strerror(-errno));
}

const struct ctl_command ctl_run_command = {.words = "run",
    .operands = "-- PROGRAM [ARGUMENT ...]",
    .summary = "run a program that trains through the daemon",
    .help = "The program finds the socket to attach to in SGP_SOCKET, where package sgp and libsgp "
            "look. It\n"
            "takes the place of sgpctl: signals reach it, and its exit status is its own. 127: "
            "there is no\n"
            "such program; 126: it cannot be run. The daemon needs [model] kind = attached.\n"
            "\n"
            "  sgpctl -n n0 run -- python3 train.py --epochs 10\n",
    .run = run};

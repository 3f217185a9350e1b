/* SPDX-License-Identifier: Apache-2.0 */
/* Orders to the daemon: pause, resume, stop, checkpoint, reload, restore; leave is in leave.c. */
#include "ctl.h"

enum ctl_exit ctl_order(struct ctl *ctl, const struct ctl_request *request)
{
    json_t *answer;
    enum ctl_exit status = ctl_ask_json(ctl, request, &answer);
    if (status != CTL_DONE)
        return status;
    if (ctl->json)
        return ctl_print_json(answer);
    json_t *warnings = json_incref(json_object_get(answer, "warnings")), *warning;
    size_t index;
    (void)json_object_del(answer, "warnings");
    ctl_print_object(ctl, answer);
    json_array_foreach(warnings, index, warning)(void)
        printf("warning: %s\n", json_string_value(warning));
    json_decref(warnings);
    json_decref(answer);
    return CTL_DONE;
}

/* An order that takes no arguments. */
static enum ctl_exit post(struct ctl *ctl, int argc, char **argv, const char *path, bool patient)
{
    const struct ctl_request request = {.method = "POST", .path = path, .patient = patient};
    enum ctl_exit status = ctl_options_take(ctl, &argc, argv, NULL, 0, 0, 0);
    return status == CTL_DONE ? ctl_order(ctl, &request) : status;
}

static enum ctl_exit pause_daemon(struct ctl *ctl, int argc, char **argv)
{
    return post(ctl, argc, argv, "/v1/pause", false);
}

static enum ctl_exit resume(struct ctl *ctl, int argc, char **argv)
{
    return post(ctl, argc, argv, "/v1/resume", false);
}

static enum ctl_exit stop(struct ctl *ctl, int argc, char **argv)
{
    return post(ctl, argc, argv, "/v1/stop", false);
}

static enum ctl_exit checkpoint(struct ctl *ctl, int argc, char **argv)
{
    return post(ctl, argc, argv, "/v1/checkpoint", false);
}

static enum ctl_exit reload(struct ctl *ctl, int argc, char **argv)
{
    return post(ctl, argc, argv, "/v1/reload", true);
}

static enum ctl_exit restore(struct ctl *ctl, int argc, char **argv)
{
    return post(ctl, argc, argv, "/v1/restore", false);
}

const struct ctl_command ctl_pause_command = {.words = "pause",
    .operands = "",
    .summary = "stop training after this round; neighbours go on without the node",
    .help = "For root and the daemon's own user.\n",
    .run = pause_daemon};

const struct ctl_command ctl_resume_command = {.words = "resume",
    .operands = "",
    .summary = "go on training after pause",
    .help = "For root and the daemon's own user.\n",
    .run = resume};

const struct ctl_command ctl_stop_command = {.words = "stop",
    .operands = "",
    .summary = "end the daemon: settle with the neighbours, write the model, exit",
    .help = "The order is given, not awaited. For root and the daemon's own user.\n",
    .run = stop};

const struct ctl_command ctl_checkpoint_command = {.words = "checkpoint",
    .operands = "",
    .summary = "write a checkpoint to the state directory",
    .help = "The order is given, not awaited. For root and the daemon's own user.\n",
    .run = checkpoint};

const struct ctl_command ctl_reload_command = {.words = "reload",
    .operands = "",
    .summary = "read the topology file again and go on with it, without a pause",
    .help =
        "All or nothing: a file that is not valid is refused with its fault (exit status 6), and "
        "the\n"
        "former one is kept. Prints what has changed. One node after the other, in any order; the\n"
        "configuration file is not read again. For root and the daemon's own user.\n",
    .run = reload};

const struct ctl_command ctl_token_restore_command = {.words = "token restore",
    .operands = "",
    .summary = "make a token anew that was lost for good, at this node (algorithm = cyclic)",
    .help =
        "For a node that had the token and will not come back with its ledger. The token begins\n"
        "again at this node, with its parameters, under a higher epoch (sgp_epoch of `status`).\n"
        "Should the former one turn up, it is none any more, and what was added to it alone is\n"
        "lost. Take the node whose copy is the newest (label of copy in `status`). A node that\n"
        "has the token refuses (1). For root and the daemon's own user.\n",
    .run = restore};

/* SPDX-License-Identifier: Apache-2.0 */
/* Orders to the daemon: pause, resume, stop, leave, checkpoint, reload, restore. */
#include "ctl.h"

/* Give an order and print the daemon's answer. */
static enum ctl_exit order(struct ctl *ctl, const struct ctl_request *request)
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
    return status == CTL_DONE ? order(ctl, &request) : status;
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

static const struct ctl_option leave_options[] = {
    {"--timeout", .value = "S",
        .summary = "end the waiting with 5 after S seconds; the order stands"},
    {0}};

/* If the time is up, only the waiting ends; the order remains in force. */
static enum ctl_exit leave(struct ctl *ctl, int argc, char **argv)
{
    struct ctl_given timeout = {0};
    struct ctl_request request = {.method = "POST", .path = "/v1/leave", .patient = true};
    enum ctl_exit status = ctl_options_take(ctl, &argc, argv, &timeout, 1, 0, 0);
    if (status == CTL_DONE)
        status = ctl_option_real(ctl, &timeout, 0.001, 1e6, &request.seconds);
    return status == CTL_DONE ? order(ctl, &request) : status;
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

const struct ctl_command ctl_leave_command = {.words = "leave",
    .operands = "",
    .options = leave_options,
    .summary = "retire the node: hand its mass to a neighbour, end the daemon for good",
    .help =
        "The node accumulates a member's weight (30 s at most), ends its round, gives all its\n"
        "mass to an out-neighbour that is up, and exits. Prints who has it (heir), how much it\n"
        "was (weight), and how much more was owed to absent nodes, with whom the heir settles\n"
        "it (owed). The model stays in the state directory; its ledger and checkpoints are\n"
        "renamed to *.left, so that a later start is that of a new member. Without a neighbour\n"
        "that is up it waits, as `status` says, and can be stopped. A node that is joining,\n"
        "finished or without out-neighbours refuses (1).\n"
        "For root and the daemon's own user.\n",
    .run = leave};

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

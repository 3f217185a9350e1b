/* SPDX-License-Identifier: Apache-2.0 */
/* `sgpctl invite`: an invitation of the daemon to another machine, or the list of those given. */
#include "ctl.h"

#include "sgp/invitation.h"
#include "sgp/topology.h"

#include <string.h>

enum { FOR, ADDRESS, OPTIONS };

static const struct ctl_option options[] = {
    {"--for", .value = "S", .summary = "seconds for which it is good: 0.001 to 604800 (86400)"},
    {"--address", .value = "HOST:PORT",
        .summary = "where the joiner reaches this daemon; by default its address in the topology "
                   "file"},
    {0}};

static enum ctl_exit list(struct ctl *ctl)
{
    static const char *const columns[] = {"name", "state", "seconds", "address", "key"};
    const struct ctl_request request = {.method = "GET", .path = "/v1/invitations"};
    json_t *answer;
    enum ctl_exit status = ctl_ask_json(ctl, &request, &answer);
    if (status != CTL_DONE)
        return status;
    if (ctl->json)
        return ctl_print_json(answer);
    ctl_print_table(
        ctl, json_object_get(answer, "invitations"), columns, sizeof columns / sizeof *columns);
    json_decref(answer);
    return CTL_DONE;
}

static enum ctl_exit give(struct ctl *ctl, const char *name, double seconds, const char *address)
{
    char path[SGP_NAME_BYTES + SGP_ADDRESS_BYTES + 100u];
    const struct ctl_request request = {.method = "POST", .path = path};
    json_t *answer;
    /* no letter of a name or an address needs an escape but the percent sign of a zone */
    (void)snprintf(path, sizeof path, "/v1/invite?name=%s&seconds=%.3f%s%s", name, seconds,
        address != NULL ? "&address=" : "", address != NULL ? address : "");
    enum ctl_exit status = ctl_ask_json(ctl, &request, &answer);
    if (status != CTL_DONE)
        return status;
    if (ctl->json)
        return ctl_print_json(answer);
    (void)printf("%s\n", ctl_text_of(answer, "invitation", ""));
    json_decref(answer);
    return CTL_DONE;
}

static enum ctl_exit invite(struct ctl *ctl, int argc, char **argv)
{
    struct ctl_given given[OPTIONS] = {0};
    struct sgp_error error = {0};
    char host[SGP_ADDRESS_BYTES];
    uint16_t port;
    double seconds = 86400;
    enum ctl_exit status = ctl_options_take(ctl, &argc, argv, given, OPTIONS, 0, 1);
    if (status == CTL_DONE)
        status = ctl_option_real(ctl, &given[FOR], 0.001, 604800, &seconds);
    if (status != CTL_DONE)
        return status;
    if (argc == 0)
        return given[FOR].given || given[ADDRESS].given
                   ? ctl_usage(ctl, "name the node that is invited: sgpctl invite NAME")
                   : list(ctl);
    if (!sgp_topology_name_is_good(argv[0]))
        return ctl_usage(ctl, "'%s' is no name of a node", argv[0]);
    if (given[ADDRESS].given &&
        (strchr(given[ADDRESS].value, '%') != NULL ||
            sgp_address_split(given[ADDRESS].value, &error, host, &port) < 0))
        return ctl_usage(ctl, "--address: %s",
            error.text[0] != '\0' ? error.text : "a zone means nothing on another machine");
    if (given[ADDRESS].given && strlen(given[ADDRESS].value) >= SGP_JOIN_ADDRESS_BYTES)
        return ctl_usage(ctl, "--address is longer than %u bytes", SGP_JOIN_ADDRESS_BYTES - 1);
    return give(ctl, argv[0], seconds, given[ADDRESS].value);
}

const struct ctl_command ctl_invite_command = {.words = "invite",
    .operands = "[NAME]",
    .options = options,
    .summary = "invite a machine to join the fleet as node NAME, or list the invitations",
    .help =
        "Prints the invitation, one line for `sgpctl join` on the other machine. It holds a\n"
        "secret: send it by a way that only the joiner reads. It is good once, and until its time\n"
        "is over by this machine's clock. Another one for NAME replaces it, and a restart of the\n"
        "daemon forgets it. The topology file must say tls=require or tls=offer.\n"
        "\n"
        "Without NAME it lists: open; pending (NAME has joined, and `sgpctl admit` proposes the\n"
        "file that admits it); expired. A node that is in the topology file is not listed.\n"
        "To invite is for root and the daemon's own user.\n",
    .run = invite};

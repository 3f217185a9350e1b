/* SPDX-License-Identifier: Apache-2.0 */
/* Topology, ports and configurations of a launch; see launch.h. */
#include "launch.h"
#include "line.h"

#include "sgp/dot.h"
#include "sgp/generate.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define OWN_KEYS 8u /* of a configuration, which launch itself writes; the last is of keyed nodes */
#define KEYS_MAX (OWN_KEYS + LAUNCH_SETTINGS_MAX)
#define SOCKET_PATH_MAX 107u   /* bytes, unix(7) */
#define LONGEST_END ".control" /* of a node's sockets */

extern char **environ;

/* ---- settings ---- */

static const char *const own_keys[OWN_KEYS] = {"node.name", "node.state_directory", "topology.file",
    "model.kind", "network.listen", "control.socket", "control.attach", "node.key"};

enum ctl_exit launch_plan_set(struct ctl *ctl, struct launch_plan *plan, const char *label,
    const char *section, const char *key, const char *value)
{
    struct launch_setting setting = {.value = value};
    char name[sizeof setting.section + sizeof setting.key + 1];
    (void)snprintf(setting.label, sizeof setting.label, "%s", label);
    int bytes = snprintf(name, sizeof name, "%s.%s", section, key);
    if (bytes >= (int)sizeof name || strpbrk(value, "\n\r") != NULL)
        return ctl_usage(ctl, "%s: no key and value of one line", setting.label);
    for (size_t i = 0; i < OWN_KEYS - !plan->keyed; i++)
        if (strcmp(own_keys[i], name) == 0)
            return ctl_usage(
                ctl, "%s: %s decides %s itself", setting.label, ctl->command->words, name);
    (void)snprintf(setting.section, sizeof setting.section, "%s", section);
    (void)snprintf(setting.key, sizeof setting.key, "%s", key);
    for (size_t i = 0; i < plan->setting_count; i++)
        if (strcmp(plan->settings[i].section, setting.section) == 0 &&
            strcmp(plan->settings[i].key, setting.key) == 0)
            return ctl_usage(ctl, "%s: %s says %s, too; give one of them", setting.label,
                plan->settings[i].label, name);
    if (plan->setting_count == LAUNCH_SETTINGS_MAX)
        return ctl_usage(ctl, "more than %u settings", LAUNCH_SETTINGS_MAX);
    plan->settings[plan->setting_count++] = setting;
    return CTL_DONE;
}

/* ---- the topology ---- */

static bool is_family(const char *name)
{
    const struct sgp_generate_family *family = sgp_generate_families;
    while (family->name && strcmp(family->name, name) != 0)
        family++;
    return family->name != NULL;
}

static enum ctl_exit generate(struct ctl *ctl, struct launch_plan *plan)
{
    struct sgp_error error = {0};
    if (plan->nodes == 0)
        return ctl_usage(ctl, "-n N is missing, the number of nodes");
    int code = sgp_generate(
        &(struct sgp_generate_options){
            .family = plan->topology, .nodes = plan->nodes, .names = plan->names},
        &error, &plan->graph);
    return code < 0 ? ctl_usage(ctl, "--topology %s: %s", plan->topology,
                          error.text[0] != '\0' ? error.text : sgp_strerror(code))
                    : CTL_DONE;
}

static enum ctl_exit read_file(struct ctl *ctl, struct launch_plan *plan)
{
    if (access(plan->topology, F_OK) < 0)
        return ctl_usage(ctl,
            "--topology is a family of sgpctl topology generate, or a DOT file; '%s' is neither",
            plan->topology);
    enum ctl_exit status = ctl_read_topology(ctl, plan->topology, &plan->graph);
    if (status != CTL_DONE)
        return status;
    /* a colocated owner comes after all others, and is not a daemon of its own */
    uint32_t count = 0;
    while (count < plan->graph->node_count && !plan->graph->nodes[count].colocated)
        count++;
    if (plan->hosts && plan->nodes != count)
        return ctl_fail(ctl, CTL_INVALID, "%s has %u nodes, and %s has %u", plan->hosts,
            plan->nodes, plan->topology, count);
    if (plan->nodes > 0 && plan->nodes != count)
        return ctl_usage(
            ctl, "-n is %u, and %s has %u nodes; leave out -n", plan->nodes, plan->topology, count);
    plan->nodes = count;
    for (uint32_t i = 0; i < plan->nodes; i++)
        if (plan->graph->nodes[i].name[0] == '.' || strchr(plan->graph->nodes[i].name, '/'))
            return ctl_fail(ctl, CTL_INVALID, "%s: a node cannot be called '%s'", plan->topology,
                plan->graph->nodes[i].name);
    if (plan->nodes > LAUNCH_NODES_MAX)
        return ctl_usage(ctl, "%s has %u nodes; one machine runs at most %u", plan->topology,
            plan->nodes, LAUNCH_NODES_MAX);
    return CTL_DONE;
}

/* Whether a node's state directory, which has its name, would be another file of node `other`. */
static bool takes_file(const char *name, const char *other)
{
    static const char *const ends[] = {".conf", ".key", ".log", ".dot"};
    size_t length = strlen(other);
    bool takes = false;
    for (size_t i = 0; i < sizeof ends / sizeof *ends && !takes; i++)
        takes = strncmp(name, other, length) == 0 && strcmp(name + length, ends[i]) == 0;
    return takes;
}

static enum ctl_exit check_files(struct ctl *ctl, const struct launch_plan *plan)
{
    const char *file = is_family(plan->topology) ? plan->hosts : plan->topology;
    for (uint32_t i = 0; i < plan->nodes; i++) {
        const char *name = plan->graph->nodes[i].name;
        if (strcmp(name, "topology.dot") == 0)
            return ctl_fail(ctl, CTL_INVALID, "%s: a node cannot be called '%s'", file, name);
        for (uint32_t j = 0; j < plan->nodes; j++)
            if (takes_file(name, plan->graph->nodes[j].name))
                return ctl_fail(ctl, CTL_INVALID,
                    "%s: node '%s' would have a file of node '%s'; rename one of them", file, name,
                    plan->graph->nodes[j].name);
    }
    return CTL_DONE;
}

enum ctl_exit launch_plan_graph(struct ctl *ctl, struct launch_plan *plan)
{
    enum ctl_exit status = is_family(plan->topology) ? generate(ctl, plan) : read_file(ctl, plan);
    plan->fleet = plan->nodes;
    return status == CTL_DONE ? check_files(ctl, plan) : status;
}

enum ctl_exit launch_plan_find(struct ctl *ctl, struct launch_plan *plan)
{
    if (!launch_find(plan->program[0], plan->program_path))
        return ctl_usage(ctl, "there is no program '%s'", plan->program[0]);
    if (!launch_find_sgpd(plan->sgpd))
        return ctl_fail(ctl, CTL_FAILED,
            "sgpd is neither beside sgpctl nor in PATH; install package sgpd, or build it");
    if (!launch_find_package(plan->package))
        plan->package[0] = '\0';
    return CTL_DONE;
}

struct sgp_topology_node *launch_plan_node(const struct launch_plan *plan, uint32_t i)
{
    return &plan->graph->nodes[plan->first + i];
}

/* ---- ports ---- */

/* Hold a free port for a node. The socket is bound and does not listen. So the kernel does not
 * assign the port to a process that asks for any port. The daemon sets SO_REUSEADDR as well, and
 * therefore can listen there. */
static int hold_port(const char *host, unsigned *ret_port)
{
    struct sockaddr_storage address = {.ss_family = AF_INET};
    struct sockaddr_in *four = (struct sockaddr_in *)&address;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)&address;
    socklen_t bytes = sizeof *four;
    int yes = 1, no = 0;
    if (inet_pton(AF_INET, host, &four->sin_addr) != 1) { /* "[v6]" */
        char inner[SGP_ADDRESS_BYTES];
        (void)snprintf(inner, sizeof inner, "%.*s", (int)strcspn(host + 1, "]"), host + 1);
        address = (struct sockaddr_storage){.ss_family = AF_INET6};
        bytes = sizeof *six;
        (void)inet_pton(AF_INET6, inner, &six->sin6_addr);
    }
    int descriptor = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (descriptor < 0)
        return -errno;
    if (address.ss_family == AF_INET6) /* of "[::]" the port is held for IPv4, too */
        (void)setsockopt(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
    if (setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) < 0 ||
        bind(descriptor, (const struct sockaddr *)&address, bytes) < 0 ||
        getsockname(descriptor, (struct sockaddr *)&address, &bytes) < 0) {
        int code = errno;
        (void)close(descriptor);
        return -code;
    }
    *ret_port = ntohs(address.ss_family == AF_INET ? four->sin_port : six->sin6_port);
    return descriptor;
}

enum ctl_exit launch_plan_hold(struct ctl *ctl, struct launch_plan *plan)
{
    for (uint32_t i = 0; i < plan->nodes; i++) {
        int held = hold_port(plan->listen_host, &plan->ports[i]);
        if (held < 0)
            return ctl_fail(ctl, CTL_FAILED, "no port is free on %s: %s", plan->listen_host,
                sgp_strerror(held));
        plan->held[plan->held_count++] = held;
    }
    return CTL_DONE;
}

/* ---- files ---- */

void launch_plan_path(
    const char *folder, const struct sgp_topology_node *node, const char *end, char path[PATH_MAX])
{
    if (snprintf(path, PATH_MAX, "%s/%s%s", folder, node->name, end) >= PATH_MAX)
        path[0] = '\0';
}

/* Whether the configuration of a node can hold its paths. */
static enum ctl_exit fit_lines(
    struct ctl *ctl, const struct launch_plan *plan, const struct sgp_topology_node *node)
{
    const char *option = plan->place.keeps ? "--keep" : "TMPDIR";
    const struct {
        const char *option, *key, *folder, *end;
    } lines[] = {{"XDG_RUNTIME_DIR or TMPDIR", "socket", plan->place.sockets, LONGEST_END},
        {option, "state_directory", plan->place.files, ""},
        {option, "key", plan->place.files, ".key"}};
    enum ctl_exit status = ctl_line_check(ctl, option, "file", plan->place.topology);
    for (size_t i = 0; i < sizeof lines / sizeof *lines && status == CTL_DONE; i++) {
        char path[PATH_MAX];
        launch_plan_path(lines[i].folder, node, lines[i].end, path);
        status = ctl_line_check(ctl, lines[i].option, lines[i].key, path);
    }
    return status;
}

enum ctl_exit launch_plan_fit(struct ctl *ctl, const struct launch_plan *plan)
{
    char path[PATH_MAX];
    for (uint32_t i = 0; i < plan->nodes; i++) {
        launch_plan_path(plan->place.sockets, launch_plan_node(plan, i), LONGEST_END, path);
        if (path[0] == '\0' || strlen(path) > SOCKET_PATH_MAX)
            return ctl_fail(ctl, CTL_FAILED,
                "%s/%s%s: the path of a socket has at most %u bytes; set a shorter XDG_RUNTIME_DIR "
                "or TMPDIR, or name the node shorter",
                plan->place.sockets, launch_plan_node(plan, i)->name, LONGEST_END, SOCKET_PATH_MAX);
        enum ctl_exit status = fit_lines(ctl, plan, launch_plan_node(plan, i));
        if (status != CTL_DONE)
            return status;
    }
    return CTL_DONE;
}

/* A key of a configuration, and the number of its line in the file. */
struct line {
    const char *section, *key, *value;
    unsigned number;
};

/* Write each section once, with all of its keys. */
static int write_lines(const char *path, struct line *lines, size_t count)
{
    FILE *file = fopen(path, "we");
    unsigned number = 0;
    if (file == NULL)
        return -errno;
    for (size_t i = 0; i < count; i++) {
        if (lines[i].number > 0) /* of a section that is already written */
            continue;
        (void)fprintf(file, "[%s]\n", lines[i].section);
        number++;
        for (size_t j = i; j < count; j++)
            if (strcmp(lines[j].section, lines[i].section) == 0) {
                (void)fprintf(file, "%s = %s\n", lines[j].key, lines[j].value);
                lines[j].number = ++number;
            }
    }
    bool bad = ferror(file) != 0;
    return fclose(file) != 0 || bad ? -EIO : 0;
}

/* The configuration of a node. numbers[i] is the line of plan->settings[i]. */
static int write_configuration(
    const struct launch_plan *plan, uint32_t index, unsigned numbers[LAUNCH_SETTINGS_MAX])
{
    const struct sgp_topology_node *node = launch_plan_node(plan, index);
    char path[PATH_MAX], state[PATH_MAX], control[PATH_MAX], attach[PATH_MAX], key[PATH_MAX];
    char listen[SGP_ADDRESS_BYTES];
    size_t own = OWN_KEYS - !plan->keyed;
    launch_plan_path(plan->place.files, node, ".conf", path);
    launch_plan_path(plan->place.files, node, "", state);
    launch_plan_path(plan->place.sockets, node, ".control", control);
    launch_plan_path(plan->place.sockets, node, ".attach", attach);
    launch_plan_path(plan->place.files, node, ".key", key);
    (void)snprintf(listen, sizeof listen, "%s:%u", plan->listen_host, plan->ports[index]);
    struct line lines[KEYS_MAX] = {{"node", "name", node->name, 0},
        {"node", "state_directory", state, 0}, {"topology", "file", plan->place.topology, 0},
        {"model", "kind", "attached", 0}, {"network", "listen", listen, 0},
        {"control", "socket", control, 0}, {"control", "attach", attach, 0},
        {"node", "key", key, 0}};
    for (size_t i = 0; i < plan->setting_count; i++)
        lines[own + i] = (struct line){.section = plan->settings[i].section,
            .key = plan->settings[i].key,
            .value = plan->settings[i].value};
    int code = write_lines(path, lines, own + plan->setting_count);
    for (size_t i = 0; i < plan->setting_count; i++)
        numbers[i] = lines[own + i].number;
    return code;
}

static int write_topology(const struct launch_plan *plan)
{
    char path[PATH_MAX]; /* renamed when whole: hosts may share the directory of --keep */
    launch_plan_path(plan->place.files, launch_plan_node(plan, 0), ".dot", path);
    FILE *file = fopen(path, "we");
    if (file == NULL)
        return -errno;
    int code = sgp_dot_write(file, plan->graph, NULL);
    if (fclose(file) != 0 && code == 0)
        code = -errno;
    return code == 0 && rename(path, plan->place.topology) < 0 ? -errno : code;
}

/* ---- the check ---- */

/* The first line of `sgpd --check` about a configuration. Returns its exit status, or -errno. */
static int run_check(const struct launch_plan *plan, char *file, char *text, size_t capacity)
{
    char program[] = "sgpd", check[] = "--check", option[] = "-c";
    char *const arguments[] = {program, check, option, file, NULL};
    int ends[2], status = 0;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    pid_t pid = launch_start(&(struct launch_command){.path = plan->sgpd,
        .arguments = arguments,
        .environment = environ,
        .output = ends[1],
        .error = ends[1]});
    (void)close(ends[1]);
    size_t used = 0;
    ssize_t count = pid > 0 ? 1 : 0;
    char rest[512]; /* read, so that the daemon can write it */
    while (count > 0) {
        bool room = used + 1 < capacity;
        count = room ? read(ends[0], text + used, capacity - 1 - used)
                     : read(ends[0], rest, sizeof rest);
        used += room && count > 0 ? (size_t)count : 0;
    }
    (void)close(ends[0]);
    text[used] = '\0';
    text[strcspn(text, "\n")] = '\0';
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return pid < 0 ? (int)pid : WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* "FILE:LINE: text": the text, and the number of the line; "FILE: text": the text. */
static const char *behind_place(const char *text, const char *file, unsigned *ret_number)
{
    size_t length = strlen(file);
    int behind = 0;
    if (strncmp(text, file, length) != 0)
        return text;
    if (sscanf(text + length, ":%u: %n", ret_number, &behind) == 1 && behind > 0)
        return text + length + behind;
    return strncmp(text + length, ": ", 2) == 0 ? text + length + 2 : text;
}

/* Name the option that wrote the line, instead of a file that the user has not written. */
static enum ctl_exit tell_refusal(struct ctl *ctl, const struct launch_plan *plan, const char *said,
    const char *file, const unsigned *numbers)
{
    const char *message = strncmp(said, "sgpd: ", 6) == 0 ? said + 6 : said;
    unsigned number = 0, ignored = 0;
    const char *text = behind_place(message, plan->place.topology, &ignored);
    if (text != message)
        return ctl_usage(ctl, "--topology %s: %s", plan->topology, text);
    text = behind_place(message, file, &number);
    for (size_t i = 0; i < plan->setting_count && number > 0; i++)
        if (numbers[i] == number)
            return ctl_usage(ctl, "%s: %s", plan->settings[i].label, text);
    return ctl_fail(ctl, CTL_USAGE, "sgpd refuses this: %s", text);
}

static enum ctl_exit check(struct ctl *ctl, const struct launch_plan *plan, const unsigned *numbers)
{
    char file[PATH_MAX], said[SGP_TEXT_BYTES];
    launch_plan_path(plan->place.files, launch_plan_node(plan, 0), ".conf", file);
    int status = run_check(plan, file, said, sizeof said);
    if (status < 0)
        return ctl_fail(ctl, CTL_FAILED, "%s: %s", plan->sgpd, sgp_strerror(status));
    return status == 0 ? CTL_DONE : tell_refusal(ctl, plan, said, file, numbers);
}

enum ctl_exit launch_plan_write(struct ctl *ctl, struct launch_plan *plan)
{
    unsigned numbers[LAUNCH_SETTINGS_MAX] = {0};
    int code = write_topology(plan);
    for (uint32_t i = 0; i < plan->nodes && code == 0; i++)
        code = write_configuration(plan, i, numbers);
    if (code < 0)
        return ctl_fail(ctl, CTL_FAILED, "%s: %s", plan->place.files, sgp_strerror(code));
    return check(ctl, plan, numbers);
}

void launch_plan_finish(struct launch_plan *plan)
{
    while (plan->held_count > 0)
        (void)close(plan->held[--plan->held_count]);
    sgp_topology_destroy(plan->graph);
    plan->graph = NULL;
}

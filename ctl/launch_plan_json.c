/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of one host as JSON, which `up` writes and `supervise` reads; see launch_up.h. */
#include "launch_up.h"

#include "sgp/dot.h"
#include "sgp/version.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- writing ---- */

static json_t *settings_of(const struct launch_plan *plan)
{
    json_t *all = json_array();
    for (size_t i = 0; i < plan->setting_count; i++) {
        const struct launch_setting *setting = &plan->settings[i];
        (void)json_array_append_new(all, json_pack("[o, s, s, s]", ctl_json_text(setting->label),
                                             setting->section, setting->key, setting->value));
    }
    return all;
}

static json_t *program_of(const struct launch_plan *plan)
{
    json_t *words = json_array();
    for (char **word = plan->program; *word; word++)
        (void)json_array_append_new(words, json_string(*word));
    return words;
}

char *launch_plan_dot(const struct launch_plan *plan)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);
    int code = file ? sgp_dot_write(file, plan->graph, NULL) : -ENOMEM;
    if (file && fclose(file) != 0)
        code = -ENOMEM;
    if (code == 0)
        return text;
    free(text);
    return NULL;
}

/* Nodes listen on all addresses, because the address that others use may be a router's. */
static const char *listen_host(const struct launch_host *host)
{
    if (strncmp(host->address, "127.", 4) == 0 || strcmp(host->address, "[::1]") == 0)
        return host->address;
    return "[::]"; /* of IPv4, too */
}

json_t *launch_plan_pack(
    const struct launch_plan *plan, const struct launch_host *host, const char *graph)
{
    json_t *object =
        json_pack("{s:i, s:s, s:s, s:i, s:i, s:s, s:b, s:b, s:o, s:o}", "form", LAUNCH_FORM,
            "directory", plan->directory, "topology", graph, "first", (int)host->first, "nodes",
            (int)host->slots, "listen", listen_host(host), "keyed", (int)plan->keyed, "keep_going",
            (int)plan->keep_going, "settings", settings_of(plan), "program", program_of(plan));
    if (object && plan->keep)
        (void)json_object_set_new(object, "keep", json_string(plan->keep));
    return object;
}

/* ---- reading ---- */

static enum ctl_exit take_graph(struct ctl *ctl, const char *text, struct launch_plan *plan)
{
    struct sgp_error error = {0};
    int code = sgp_dot_parse(text, strlen(text), "topology", &error, &plan->graph);
    if (code < 0)
        return ctl_fail(
            ctl, CTL_INVALID, "%s", error.text[0] != '\0' ? error.text : sgp_strerror(code));
    while (plan->fleet < plan->graph->node_count && !plan->graph->nodes[plan->fleet].colocated)
        plan->fleet++;
    return CTL_DONE;
}

static enum ctl_exit take_settings(
    struct ctl *ctl, const json_t *settings, struct launch_plan *plan)
{
    enum ctl_exit status = CTL_DONE;
    for (size_t i = 0; i < json_array_size(settings) && status == CTL_DONE; i++) {
        const char *label, *section, *key, *value;
        if (json_unpack(
                json_array_get(settings, i), "[s, s, s, s!]", &label, &section, &key, &value) < 0)
            return ctl_fail(ctl, CTL_INVALID, "a setting of the plan has not four texts");
        status = launch_plan_set(ctl, plan, label, section, key, value);
    }
    return status;
}

static enum ctl_exit take_program(struct ctl *ctl, const json_t *words, struct launch_plan *plan)
{
    size_t count = json_array_size(words);
    plan->program = calloc(count + 1, sizeof *plan->program);
    if (plan->program == NULL || count == 0)
        return ctl_fail(ctl, CTL_INVALID, "the plan has no program");
    for (size_t i = 0; i < count; i++) {
        const char *word = json_string_value(json_array_get(words, i));
        if (word == NULL)
            return ctl_fail(ctl, CTL_INVALID, "a word of the program is no text");
        plan->program[i] = (char *)(uintptr_t)word;
    }
    return CTL_DONE;
}

/* "[::]" is all addresses of IPv6 and IPv4. */
static const char *usable_host(const char *wanted)
{
    int descriptor = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool lacks = descriptor < 0 && errno == EAFNOSUPPORT; /* a kernel without IPv6 */
    if (descriptor >= 0)
        (void)close(descriptor);
    return lacks && strcmp(wanted, "[::]") == 0 ? "0.0.0.0" : wanted;
}

enum ctl_exit launch_plan_unpack(struct ctl *ctl, const json_t *object, struct launch_plan *plan)
{
    int form = 0, first = 0, nodes = 0, keyed = 0, keep_going = 0;
    const char *directory = NULL, *graph = NULL, *keep = NULL;
    json_t *settings = NULL, *program = NULL;
    json_error_t error;
    if (json_unpack_ex((json_t *)(uintptr_t)object, &error, 0, "{s:i}", "form", &form) < 0 ||
        form != LAUNCH_FORM)
        return ctl_fail(ctl, CTL_INVALID,
            "sgpctl %s is here, and understands plans of form %d alone, not %d; install one "
            "version",
            sgp_version(), LAUNCH_FORM, form);
    if (json_unpack_ex((json_t *)(uintptr_t)object, &error, 0,
            "{s:s, s:s, s:i, s:i, s:s, s:b, s?s, s:b, s:o, s:o}", "directory", &directory,
            "topology", &graph, "first", &first, "nodes", &nodes, "listen", &plan->listen_host,
            "keyed", &keyed, "keep", &keep, "keep_going", &keep_going, "settings", &settings,
            "program", &program) < 0)
        return ctl_fail(ctl, CTL_INVALID, "the plan of sgpctl up: %s", error.text);
    plan->listen_host = usable_host(plan->listen_host);
    plan->supervised = true;
    plan->keyed = keyed;
    plan->keep = keep;
    plan->keep_going = keep_going;
    plan->topology = "FILE";
    enum ctl_exit status = take_graph(ctl, graph, plan);
    if (status == CTL_DONE && (first < 0 || nodes < 1 || nodes > (int)LAUNCH_NODES_MAX ||
                                  (uint32_t)first + (uint32_t)nodes > plan->fleet))
        status = ctl_fail(ctl, CTL_INVALID, "the plan has nodes that its topology lacks");
    plan->first = (uint32_t)first;
    plan->nodes = (uint32_t)nodes;
    if (status == CTL_DONE && chdir(directory) < 0)
        status = ctl_fail(ctl, CTL_FAILED, "%s: %s; sgpctl up --directory names another", directory,
            strerror(errno));
    if (status == CTL_DONE)
        status = take_settings(ctl, settings, plan);
    return status == CTL_DONE ? take_program(ctl, program, plan) : status;
}

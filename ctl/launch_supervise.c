/* SPDX-License-Identifier: Apache-2.0 */
/* `sgpctl supervise`: the nodes of one host, for `sgpctl up` on another; see launch_up.h. */
#include "launch_up.h"

#include "sgp/key.h"
#include "sgp/version.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static json_t *held; /* the plan; its texts are borrowed until the end of the process */

/* The next object on standard input. The stream is not buffered, because what comes after it are
 * single bytes for the loop. */
static enum ctl_exit read_object(struct ctl *ctl, json_t **ret_object)
{
    char *line = NULL;
    size_t capacity = 0;
    ssize_t length;
    json_error_t error;
    while ((length = getline(&line, &capacity, stdin)) == 1) /* a sign of life */
        (void)alarm(LAUNCH_SILENCE_S);
    (void)alarm(LAUNCH_SILENCE_S);
    *ret_object = length > 0 ? json_loadb(line, (size_t)length, 0, &error) : NULL;
    free(line);
    if (length <= 0)
        return ctl_fail(
            ctl, CTL_FAILED, "standard input ended before the plan; sgpctl up writes it");
    return *ret_object ? CTL_DONE
                       : ctl_fail(ctl, CTL_INVALID, "standard input is no plan of sgpctl up: %s",
                             error.text);
}

/* ---- ports, keys and addresses ---- */

/* Make new keys for this host's nodes. Those of an earlier run, in a kept directory, go. */
static enum ctl_exit make_keys(struct ctl *ctl, const struct launch_plan *plan, json_t *hashes)
{
    for (uint32_t i = 0; i < plan->nodes && plan->keyed; i++) {
        char path[PATH_MAX], hash[SGP_KEY_BYTES];
        struct sgp_error error = {0};
        launch_plan_path(plan->place.files, launch_plan_node(plan, i), ".key", path);
        if (unlink(path) < 0 && errno != ENOENT)
            return ctl_fail(ctl, CTL_FAILED, "%s: %s", path, strerror(errno));
        if (sgp_key_generate(path, &error, hash) < 0)
            return ctl_fail(ctl, CTL_FAILED, "%s", error.text);
        (void)json_array_append_new(hashes, json_string(hash));
    }
    return CTL_DONE;
}

static enum ctl_exit answer(struct ctl *ctl, const struct launch_plan *plan)
{
    json_t *ports = json_array(), *hashes = json_array();
    for (uint32_t i = 0; i < plan->nodes; i++)
        (void)json_array_append_new(ports, json_integer(plan->ports[i]));
    enum ctl_exit status = make_keys(ctl, plan, hashes);
    json_t *object = json_pack("{s:i, s:s, s:o, s:o}", "form", LAUNCH_FORM, "version",
        sgp_version(), "ports", ports, "keys", hashes);
    if (status == CTL_DONE)
        return ctl_print_json(object);
    json_decref(object);
    return status;
}

/* Fill in addresses and keys of the fleet. */
static enum ctl_exit agree(struct ctl *ctl, struct launch_plan *plan)
{
    json_t *object = NULL;
    enum ctl_exit status = answer(ctl, plan);
    if (status == CTL_DONE)
        status = read_object(ctl, &object);
    const json_t *addresses = json_object_get(object, "addresses");
    const json_t *keys = json_object_get(object, "keys");
    for (uint32_t i = 0; i < plan->fleet && status == CTL_DONE; i++) {
        struct sgp_topology_node *node = &plan->graph->nodes[i];
        const char *address = json_string_value(json_array_get(addresses, i));
        const char *key = plan->keyed ? json_string_value(json_array_get(keys, i)) : "";
        if (address == NULL || key == NULL || strlen(address) >= sizeof node->address ||
            strlen(key) >= sizeof node->keys[0])
            status = ctl_fail(ctl, CTL_INVALID, "%s has no address, or no key", node->name);
        else {
            (void)snprintf(node->address, sizeof node->address, "%s", address);
            (void)snprintf(node->keys[0], sizeof node->keys[0], "%s", key);
            node->keys[1][0] = '\0';
        }
    }
    plan->graph->tls = plan->keyed ? SGP_TLS_REQUIRE : SGP_TLS_OFF;
    json_decref(object);
    return status;
}

static enum ctl_exit run(struct ctl *ctl, int argc, char **argv)
{
    static struct launch_plan plan;
    enum ctl_exit status = ctl_options_take(ctl, &argc, argv, NULL, 0, 0, 0);
    if (status != CTL_DONE)
        return status;
    ctl->json = true;               /* the launcher reads it */
    ctl->command = &ctl_up_command; /* whose options the messages are about */
    (void)setvbuf(stdin, NULL, _IONBF, 0);
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    (void)signal(SIGPIPE, SIG_IGN); /* without a launcher, what ends is told to nobody */
    launch_expect_launcher();
    status = read_object(ctl, &held);
    if (status == CTL_DONE)
        status = launch_plan_unpack(ctl, held, &plan);
    if (status == CTL_DONE)
        status = launch_plan_find(ctl, &plan);
    if (status == CTL_DONE)
        status = launch_run(ctl, &plan, agree);
    launch_plan_finish(&plan);
    free(plan.program);
    json_decref(held);
    return status;
}

const struct ctl_command ctl_supervise_command = {.words = "supervise",
    .operands = "",
    .summary = "run the nodes of this host for sgpctl up, which starts it",
    .help = "A person does not call it: sgpctl up starts it on each host, over ssh or srun, and\n"
            "writes the plan to its standard input. When standard input ends, or when nothing has\n"
            "come on it for 60 s, supervise ends its daemons and programs and removes its files.\n",
    .run = run};

/* SPDX-License-Identifier: Apache-2.0 */
/* What `sgpctl config new` asks for, and what it reads with the answers; see config_new.h. */
#include "config_new.h"

#include "sgp/method.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Ask for an option that is not given. Without a terminal that is a wrong command line. */
static enum ctl_exit ask(struct ctl_draft *draft, struct ctl_given *option, const char *question)
{
    if (option->given)
        return CTL_DONE;
    if (isatty(STDIN_FILENO) != 1)
        return ctl_usage(draft->ctl, "%s is missing: %s", option->name, question);
    sgp_assert(draft->answer_count < CTL_DRAFT_ANSWERS);
    char *answer = draft->answers[draft->answer_count++];
    (void)fprintf(stderr, "%s: ", question);
    if (!fgets(answer, CTL_DRAFT_ANSWER_BYTES, stdin))
        answer[0] = '\0';
    answer[strcspn(answer, "\r\n")] = '\0';
    if (answer[0] == '\0')
        return ctl_usage(draft->ctl, "%s is missing: %s", option->name, question);
    option->given = true;
    option->value = answer;
    return CTL_DONE;
}

/* ---- the rows ---- */

static enum ctl_exit ask_label(struct ctl_draft *draft)
{
    struct ctl_rows rows;
    char question[SGP_TEXT_BYTES / 2] = "the column to predict, one of";
    if (draft->given[NEW_LABEL].given)
        return CTL_DONE;
    enum ctl_exit status =
        ctl_rows_read(draft->ctl, draft->given[NEW_DATA].value, NULL, NULL, &rows);
    if (status != CTL_DONE)
        return status;
    for (uint32_t i = 0; i < rows.description->column_count; i++) {
        const size_t used = strlen(question);
        (void)snprintf(question + used, sizeof question - used, "%s %s", i > 0 ? "," : "",
            rows.description->columns[i].name);
    }
    ctl_rows_finish(&rows);
    return ask(draft, &draft->given[NEW_LABEL], question);
}

enum ctl_exit ctl_draft_read_rows(struct ctl_draft *draft)
{
    struct sgp_error why = {0};
    enum ctl_exit status =
        ask(draft, &draft->given[NEW_DATA], "the CSV file with the rows of this node");
    if (status == CTL_DONE)
        status = ask_label(draft);
    if (status == CTL_DONE)
        status = ctl_rows_read(draft->ctl, draft->given[NEW_DATA].value,
            draft->given[NEW_LABEL].value, draft->given[NEW_IGNORE].value, &draft->rows);
    if (status != CTL_DONE)
        return status;
    const struct ctl_given *scale = &draft->given[NEW_SCALE], *classes = &draft->given[NEW_CLASSES];
    draft->rows.common = scale->given && strcmp(scale->value, CTL_SCALE_FLEET) == 0;
    if (classes->given && ctl_rows_name_classes(&draft->rows, classes->value, &why) < 0)
        return ctl_fail(draft->ctl, CTL_INVALID, "%s", why.text);
    if (ctl_rows_refuse(&draft->rows, &why))
        return ctl_fail(draft->ctl, CTL_INVALID, "%s", why.text);
    return CTL_DONE;
}

/* ---- the place in the topology ---- */

/* The node that -n names, or that the answer names. */
static enum ctl_exit find_node(struct ctl_draft *draft)
{
    const struct sgp_topology *topology = draft->topology;
    char question[SGP_TEXT_BYTES / 2] = "the name of this node, one of";
    for (uint32_t i = 0; i < topology->node_count && !topology->nodes[i].colocated; i++) {
        const size_t used = strlen(question);
        (void)snprintf(question + used, sizeof question - used, "%s %s", i > 0 ? "," : "",
            topology->nodes[i].name);
    }
    struct ctl_given name = {
        .name = "-n NAME", .given = draft->ctl->name != NULL, .value = draft->ctl->name};
    enum ctl_exit status = ask(draft, &name, question);
    if (status != CTL_DONE)
        return status;
    int64_t index = sgp_topology_find(topology, name.value);
    if (index < 0 || topology->nodes[index].colocated)
        return ctl_fail(draft->ctl, CTL_INVALID, "%s: no node is called '%.80s'; give %s",
            draft->given[NEW_TOPOLOGY].value, name.value, question);
    draft->node = &topology->nodes[index];
    if (draft->node->relay)
        return ctl_fail(draft->ctl, CTL_INVALID,
            "%s: %s is a relay, which has no rows; sgpd.conf.example says what it needs",
            draft->given[NEW_TOPOLOGY].value, name.value);
    return CTL_DONE;
}

/* The method that --algorithm names, or the first that takes the topology. */
static enum ctl_exit find_algorithm(struct ctl_draft *draft)
{
    const struct ctl_given *option = &draft->given[NEW_ALGORITHM];
    const struct sgp_method *method;
    if (option->given && !sgp_method_find(option->value))
        return ctl_usage(draft->ctl, "--algorithm: there is no '%s'", option->value);
    draft->algorithm = option->given ? option->value : sgp_method_at(0)->name;
    for (uint32_t i = 0; !option->given && (method = sgp_method_at(i)) != NULL; i++) {
        struct sgp_error why = {0};
        if (sgp_method_suit(method, draft->topology, &why, NULL) == 0) {
            draft->algorithm = method->name;
            break;
        }
    }
    return CTL_DONE;
}

static enum ctl_exit read_topology(struct ctl_draft *draft)
{
    struct ctl_given *option = &draft->given[NEW_TOPOLOGY];
    enum ctl_exit status = ask(draft, option, "the topology file");
    if (status == CTL_DONE)
        status = ctl_read_topology(draft->ctl, option->value, &draft->topology);
    if (status == CTL_DONE && !realpath(option->value, draft->topology_path))
        status = ctl_fail(draft->ctl, CTL_INVALID, "%s: %s", option->value, strerror(errno));
    if (status == CTL_DONE)
        status = find_node(draft);
    if (status == CTL_DONE)
        status = find_algorithm(draft);
    if (status != CTL_DONE)
        return status;
    draft->listen =
        draft->given[NEW_LISTEN].given ? draft->given[NEW_LISTEN].value : draft->node->address;
    if (draft->listen[0] == '\0')
        return ctl_usage(draft->ctl, "--listen is missing: %s gives %s no address", option->value,
            draft->node->name);
    return CTL_DONE;
}

enum ctl_exit ctl_draft_ask(struct ctl_draft *draft)
{
    enum ctl_exit status = ctl_draft_read_rows(draft);
    return status == CTL_DONE ? read_topology(draft) : status;
}

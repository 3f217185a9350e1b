/* SPDX-License-Identifier: Apache-2.0 */
/* `sgpctl topology diff`: what differs between two versions of a fleet's topology file. */
#include "differences.h"
#include "rollout.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define WORD_BYTES 32u

/* One of the two. */
struct side {
    const char *word; /* a version, or the path of a file */
    char name[SGP_TEXT_BYTES];
    char *text; /* of the topology file */
};

/* A version of the daemon; a signed document, whose signatures must hold; or a topology file. */
static enum ctl_exit read_side(struct ctl *ctl, struct side *side)
{
    struct sgp_document document = {.file = NULL};
    const bool version = ctl_is_version(side->word);
    enum ctl_exit status = version ? ctl_rollout_document(ctl, side->word, &document)
                                   : ctl_document_text(ctl, side->word, &side->text);
    if (status != CTL_DONE)
        return status;
    (void)snprintf(side->name, sizeof side->name, "%s%s", version ? "version " : "", side->word);
    if (!version && !ctl_is_document_text(side->text))
        return CTL_DONE;
    if (!version)
        status = ctl_document_parse(ctl, side->word, side->text, &document);
    free(side->text);
    side->text = NULL;
    if (status != CTL_DONE)
        return status;
    json_t *names = ctl_document_signers(ctl, side->name, &document, false);
    if (names != NULL) {
        side->text = document.file;
        document.file = NULL;
    }
    (void)snprintf(side->name, sizeof side->name, "%.200s, version %" PRIu64, side->word,
        document.manifest.version);
    if (version)
        (void)snprintf(
            side->name, sizeof side->name, "version %" PRIu64, document.manifest.version);
    sgp_document_finish(&document);
    json_decref(names);
    return names != NULL ? CTL_DONE : CTL_INVALID;
}

/* What is in use and what is proposed; or the two latest versions. */
static enum ctl_exit choose(struct ctl *ctl, char words[2][WORD_BYTES])
{
    json_t *rollout = NULL, *log = NULL;
    enum ctl_exit status = ctl_rollout_ask(ctl, false, &rollout);
    if (status != CTL_DONE)
        return status;
    const bool proposed = json_is_object(json_object_get(rollout, "proposed")) &&
                          ctl_rollout_version(rollout, "active") > 0;
    json_decref(rollout);
    (void)strcpy(words[0], "active");
    (void)strcpy(words[1], "proposed");
    if (proposed)
        return CTL_DONE;
    status = ctl_rollout_log(ctl, &log);
    if (status != CTL_DONE)
        return status;
    const json_t *versions = json_object_get(log, "versions");
    if (json_array_size(versions) < 2)
        status = ctl_fail(ctl, CTL_FAILED,
            "no version is proposed, and this node has not used two of them; give a file to "
            "compare with");
    for (size_t i = 0; i < 2 && status == CTL_DONE; i++)
        (void)snprintf(words[1 - i], WORD_BYTES, "%" JSON_INTEGER_FORMAT,
            json_integer_value(json_object_get(json_array_get(versions, i), "version")));
    json_decref(log);
    return status;
}

static enum ctl_exit print(struct ctl *ctl, const struct side sides[2])
{
    json_t *json = NULL;
    const struct ctl_differences differences = {.before = sides[0].text,
        .before_name = sides[0].name,
        .after = sides[1].text,
        .after_name = sides[1].name};
    const enum ctl_exit status = ctl_differences_json(ctl, &differences, &json);
    if (status != CTL_DONE)
        return status;
    (void)json_object_set_new(json, "from", ctl_json_text(sides[0].name));
    (void)json_object_set_new(json, "to", ctl_json_text(sides[1].name));
    if (ctl->json)
        return ctl_print_json(json);
    ctl_differences_print(json, stdout);
    json_decref(json);
    return CTL_DONE;
}

static enum ctl_exit diff(struct ctl *ctl, int argc, char **argv)
{
    char words[2][WORD_BYTES];
    enum ctl_exit status = ctl_options_take(ctl, &argc, argv, NULL, 0, 0, 2);
    if (status == CTL_DONE && argc == 0)
        status = choose(ctl, words);
    if (status != CTL_DONE)
        return status;
    struct side sides[2] = {{.word = argc == 0   ? words[0]
                                     : argc == 1 ? "active"
                                                 : argv[0]},
        {.word = argc == 0 ? words[1] : argv[argc - 1]}};
    status = read_side(ctl, &sides[0]);
    if (status == CTL_DONE)
        status = read_side(ctl, &sides[1]);
    if (status == CTL_DONE)
        status = print(ctl, sides);
    free(sides[0].text);
    free(sides[1].text);
    return status;
}

const struct ctl_command ctl_topology_diff_command = {.words = "topology diff",
    .operands = "[A [B]]",
    .summary = "show what differs between two versions of the topology file",
    .help =
        "A and B are numbers of versions, `active`, `proposed`, or files: signed documents or\n"
        "topology files. With A alone, `active` is compared with it. Without both, `active` with\n"
        "`proposed`; or, if none is proposed, the two latest versions that the node has used. A\n"
        "file whose name is a number is ./NUMBER. Versions need the daemon, files do not.\n"
        "\n"
        "Both files are written in one way first, so comments and layout do not count. Prints the\n"
        "nodes that are added, struck, or have another address, key or role, and the lines that\n"
        "differ, as diff -u does.\n",
    .run = diff};

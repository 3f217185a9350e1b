/* SPDX-License-Identifier: Apache-2.0 */
/* The files that `sgpctl config new` writes; see config_new.h. The text is read by the reader of
 * configurations before it appears under its name, and no file is overwritten without --force. */
#include "config_new.h"

#include "../daemon/setup/config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the scaling file ---- */

bool ctl_draft_has_scale_file(const struct ctl_draft *draft)
{
    return strcmp(draft->scale, "none") != 0 && !ctl_draft_has_scale_of_fleet(draft);
}

bool ctl_draft_has_scale_of_fleet(const struct ctl_draft *draft)
{
    return strcmp(draft->scale, CTL_SCALE_FLEET) == 0;
}

/* A daemon refuses the same topology; see scaling_check in daemon/setup/scaling.c. */
static enum ctl_exit check_fleet(const struct ctl_draft *draft)
{
    struct sgp_error why = {0};
    for (uint32_t i = 0; i < draft->topology->node_count; i++)
        if (draft->topology->nodes[i].colocated)
            return ctl_fail(draft->ctl, CTL_INVALID,
                "--scale fleet does not go with %s, an owner co-located with another node of %s; "
                "give a "
                "scaling file",
                draft->topology->nodes[i].name, draft->given[NEW_TOPOLOGY].value);
    if (ctl_rows_refuse_fleet(&draft->rows, &why))
        return ctl_fail(draft->ctl, CTL_INVALID, "%s", why.text);
    return CTL_DONE;
}

enum ctl_exit ctl_draft_find_scale(struct ctl_draft *draft)
{
    const struct ctl_given *option = &draft->given[NEW_SCALE];
    const char *slash = strrchr(draft->file, '/');
    char path[PATH_MAX], directory[PATH_MAX];
    int length = option->given ? snprintf(path, sizeof path, "%s", option->value)
                               : snprintf(path, sizeof path, "%.*sscale.json",
                                     slash ? (int)(slash + 1 - draft->file) : 0, draft->file);
    if (length < 0 || (size_t)length >= sizeof path)
        return ctl_usage(draft->ctl, "the path of the scaling file is too long");
    if (strcmp(path, "none") == 0 || strcmp(path, CTL_SCALE_FLEET) == 0) {
        (void)strcpy(draft->scale, path);
        return ctl_draft_has_scale_of_fleet(draft) ? check_fleet(draft) : CTL_DONE;
    }
    /* The directory exists, the file may not. */
    slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    (void)snprintf(directory, sizeof directory, "%.*s", slash ? (int)(slash + 1 - path) : 1,
        slash ? path : ".");
    char *whole = realpath(directory, NULL);
    if (!whole)
        return ctl_fail(draft->ctl, CTL_FAILED, "%s: %s", directory, strerror(errno));
    length = snprintf(
        draft->scale, sizeof draft->scale, "%s/%s", strcmp(whole, "/") == 0 ? "" : whole, name);
    free(whole);
    if (length < 0 || (size_t)length >= sizeof draft->scale)
        return ctl_usage(draft->ctl, "the path of the scaling file is too long");
    return CTL_DONE;
}

/* A scaling file that is there belongs to another label if its target has another name. */
static enum ctl_exit check_kept(const struct ctl_draft *draft)
{
    struct sgp_scaling *scaling = NULL;
    struct sgp_error ignored = {0}; /* the daemon reports the file */
    enum ctl_exit status = CTL_DONE;
    uint32_t count = 0;
    if (ctl_rows_classify(&draft->rows) || sgp_scaling_read(draft->scale, &ignored, &scaling) < 0)
        return CTL_DONE;
    const struct sgp_target_scale *targets = sgp_scaling_targets(scaling, &count);
    if (count == 1 && strcmp(targets->name, draft->rows.label->name) != 0)
        status = ctl_fail(draft->ctl, CTL_INVALID,
            "%s scales the label %.80s, and --label is %.80s; name another scaling file with "
            "--scale",
            draft->scale, targets->name, draft->rows.label->name);
    sgp_scaling_destroy(scaling);
    return status;
}

/* Compute the scaling file of these rows, unless there is one. A label of numbers is scaled. */
static enum ctl_exit make_scale(struct ctl_draft *draft)
{
    struct sgp_scaling *scaling = NULL;
    struct sgp_error error = {0};
    if (!ctl_draft_has_scale_file(draft))
        return CTL_DONE;
    if (access(draft->scale, F_OK) == 0)
        return check_kept(draft);
    const bool classes = ctl_rows_classify(&draft->rows);
    char *label = classes ? NULL : ctl_rows_label(&draft->rows);
    char *left_out = ctl_rows_left_out(&draft->rows, classes);
    int code = left_out && (classes || label)
                   ? sgp_scaling_compute(draft->rows.path, label, left_out, &error, &scaling)
                   : sgp_fail(&error, -ENOMEM, "out of memory");
    free(label);
    free(left_out);
    if (code == 0)
        code = sgp_scaling_write(scaling, draft->scale, &error);
    sgp_scaling_destroy(scaling);
    if (code < 0)
        return ctl_fail(draft->ctl, CTL_FAILED, "%s", error.text);
    draft->scale_made = true;
    return CTL_DONE;
}

/* A scaling file that is there may be of a format that scales no label. */
bool ctl_draft_scales_all(const struct ctl_draft *draft)
{
    struct sgp_scaling *scaling = NULL;
    struct sgp_error ignored = {0}; /* the daemon reports the file */
    uint32_t targets = 0;
    if (strcmp(draft->scale, "none") == 0)
        return false;
    if (ctl_draft_has_scale_of_fleet(draft) || ctl_rows_classify(&draft->rows) ||
        access(draft->scale, F_OK) != 0)
        return true;
    if (sgp_scaling_read(draft->scale, &ignored, &scaling) == 0)
        (void)sgp_scaling_targets(scaling, &targets);
    sgp_scaling_destroy(scaling);
    return targets > 0;
}

/* ---- the configuration ---- */

/* Read the text as a daemon would, so that no value breaks out of its line. */
static enum ctl_exit check_text(const struct ctl_draft *draft, const char *text, size_t bytes)
{
    struct sgp_error error = {0};
    struct config config;
    int code = config_parse(draft->file, text, bytes, &error, &config);
    if (code < 0)
        return ctl_fail(draft->ctl, CTL_INVALID, "%s", error.text);
    config_finish(&config);
    return CTL_DONE;
}

static enum ctl_exit fail_existing(const struct ctl_draft *draft)
{
    return ctl_fail(draft->ctl, CTL_FAILED,
        "%s is there already; --force replaces it, another name keeps it", draft->file);
}

enum ctl_exit ctl_draft_refuse_existing(const struct ctl_draft *draft)
{
    const bool taken = !draft->given[NEW_FORCE].given && access(draft->file, F_OK) == 0;
    return taken ? fail_existing(draft) : CTL_DONE;
}

enum ctl_exit ctl_draft_write(struct ctl_draft *draft)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);
    if (!file)
        return ctl_fail(draft->ctl, CTL_FAILED, "out of memory");
    ctl_draft_put(draft, file);
    enum ctl_exit status =
        fclose(file) == 0 ? CTL_DONE : ctl_fail(draft->ctl, CTL_FAILED, "out of memory");
    if (status == CTL_DONE)
        status = check_text(draft, text, bytes);
    if (status == CTL_DONE)
        status = make_scale(draft);
    int code = status == CTL_DONE
                   ? ctl_file_write(draft->file, text, bytes, draft->given[NEW_FORCE].given)
                   : 0;
    free(text);
    if (code == -EEXIST)
        return fail_existing(draft);
    if (code < 0)
        return ctl_fail(draft->ctl, CTL_FAILED, "%s: %s", draft->file, sgp_strerror(code));
    return status;
}

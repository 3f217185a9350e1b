/* SPDX-License-Identifier: Apache-2.0 */
/* The model of a running daemon as a file.
 *
 * An exported file appears completely or not at all. It is received into a file beside its final
 * path, and renamed. */
#include "ctl.h"

#include "sgp/model_file.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

/* Receive the daemon's safetensors bytes into a new file. */
static enum ctl_exit receive(struct ctl *ctl, const char *path)
{
    FILE *file = fopen(path, "wb");
    if (!file)
        return ctl_fail(ctl, CTL_FAILED, "%s: %s", path, strerror(errno));
    const struct ctl_request request = {
        .method = "GET", .path = "/v1/model", .into = file, .into_path = path, .patient = true};
    struct ctl_reply reply;
    enum ctl_exit status = ctl_ask(ctl, &request, &reply);
    bool whole = fflush(file) == 0 && fsync(fileno(file)) == 0;
    int error = errno;
    (void)fclose(file);
    if (status == CTL_DONE && !whole)
        return ctl_fail(ctl, CTL_FAILED, "%s: %s", path, strerror(error));
    return status;
}

/* Convert the received file into the requested file. */
static int finish(
    const char *part, const char *path, const struct sgp_model_file *model, struct sgp_error *error)
{
    if (ctl_ends_in(path, ".safetensors"))
        return rename(part, path) == 0 ? 0 : -errno;
    const struct sgp_model_contents contents = {
        .values = model->values, .tensors = model->tensors, .tensor_count = model->tensor_count};
    return sgp_npz_write(&contents, path, error);
}

static enum ctl_exit export_model(struct ctl *ctl, int argc, char **argv)
{
    char part[PATH_MAX];
    struct sgp_error error = {0};
    struct sgp_model_file *model = NULL;
    enum ctl_exit status = ctl_options_take(ctl, &argc, argv, NULL, 0, 1, 1);
    if (status != CTL_DONE)
        return status;
    const char *path = argv[0];
    if (!ctl_ends_in(path, ".safetensors") && !ctl_ends_in(path, ".npz"))
        return ctl_usage(ctl, "'%s' ends neither in .safetensors nor in .npz", path);
    if ((size_t)snprintf(part, sizeof part, "%s.part", path) >= sizeof part)
        return ctl_usage(ctl, "the file's name is too long");
    status = receive(ctl, part);
    if (status == CTL_DONE) {
        int code = sgp_safetensors_read(part, &error, &model);
        if (code == 0)
            code = finish(part, path, model, &error);
        if (code < 0)
            status = ctl_fail(ctl, CTL_FAILED, "%s: %s", path,
                error.text[0] != '\0' ? error.text : sgp_strerror(code));
    }
    (void)unlink(part); /* does not exist any more if it was renamed */
    if (status == CTL_DONE && ctl->json)
        status =
            ctl_print_json(json_pack("{s:o, s:I, s:I}", "file", ctl_json_text(path), "parameters",
                (json_int_t)model->value_count, "tensors", (json_int_t)model->tensor_count));
    else if (status == CTL_DONE)
        (void)printf("%s: %llu parameters in %u tensors\n", path,
            (unsigned long long)model->value_count, model->tensor_count);
    sgp_model_file_destroy(model);
    return status;
}

const struct ctl_command ctl_export_command = {.words = "export",
    .operands = "FILE",
    .summary = "write the model as it is now to FILE: .safetensors or .npz",
    .help =
        "The model is the estimate x / w of this node between two rounds. FILE appears whole or\n"
        "not at all; its digest is checked first.\n",
    .run = export_model};

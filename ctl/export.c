/* SPDX-License-Identifier: Apache-2.0 */
/* A model as a file of another kind: that of a running daemon, or that of a model file.
 *
 * An exported file appears completely or not at all. What a daemon sends is received into a file
 * beside the final path, and renamed if it is of the right kind. */
#include "ctl.h"
#include "new_file.h"

#include "sgp/model_file.h"
#include "sgp/onnx.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* In the order of the words of --format. */
enum format { SAFETENSORS, NPZ, ONNX, FORMATS };

/* One export. */
struct job {
    enum format format;
    const char *path;             /* of the new file */
    const char *source;           /* the model file that was given, or NULL */
    char part[PATH_MAX];          /* what the daemon sent */
    bool received;                /* `part` may be there */
    struct sgp_model_file *model; /* NULL for ONNX: the predictor owns it */
    struct sgp_predictor *predictor;
    uint64_t parameters;
    uint32_t tensors;
};

/* ---- reading ---- */

/* Receive the daemon's safetensors bytes into a new file. */
static enum ctl_exit receive(struct ctl *ctl, struct job *job)
{
    const char *path = job->path;
    const int descriptor = ctl_file_open(path, true, job->part);
    job->received = descriptor >= 0;
    FILE *file = job->received ? fdopen(descriptor, "wb") : NULL;
    if (!file) {
        const int code = job->received ? errno : -descriptor;
        if (job->received)
            (void)close(descriptor);
        return ctl_fail(ctl, CTL_FAILED, "%s: %s", path, strerror(code));
    }
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

/* A graph is made of what a predictor has understood. */
static int read_model(struct job *job, struct sgp_error *error)
{
    struct sgp_model_file *model = NULL;
    int code = sgp_safetensors_read(job->source ? job->source : job->part, error, &model);
    if (code < 0)
        return code;
    job->parameters = model->value_count;
    job->tensors = model->tensor_count;
    if (job->format == ONNX)
        return sgp_predictor_create(
            model, job->source ? job->source : job->path, error, &job->predictor);
    job->model = model;
    return 0;
}

/* ---- writing ---- */

static int write_npz(const struct job *job, struct sgp_error *error)
{
    const struct sgp_model_contents contents = {.values = job->model->values,
        .tensors = job->model->tensors,
        .tensor_count = job->model->tensor_count};
    return sgp_npz_write(&contents, job->path, error);
}

static int write_model(struct job *job, struct sgp_error *error)
{
    switch (job->format) {
    case NPZ:
        return write_npz(job, error);
    case ONNX:
        return sgp_onnx_write(job->predictor, job->path, error);
    default:
        return rename(job->part, job->path) == 0 ? 0 : -errno;
    }
}

/* ---- the command ---- */

/* The format by the end of the file's name; FORMATS if it is none. */
static size_t format_of(const char *path)
{
    static const char *const ends[FORMATS] = {".safetensors", ".npz", ".onnx"};
    size_t format = 0;
    while (format < FORMATS && !ctl_ends_in(path, ends[format]))
        format++;
    return format;
}

enum { FORMAT, MODEL, OPTIONS };

static enum ctl_exit understand(
    struct ctl *ctl, const struct ctl_given *given, const char *path, struct job *job)
{
    size_t format = format_of(path);
    enum ctl_exit status = ctl_option_word(ctl, &given[FORMAT], &format);
    if (status != CTL_DONE)
        return status;
    *job = (struct job){.format = (enum format)format, .path = path, .source = given[MODEL].value};
    if (job->format == FORMATS)
        return ctl_usage(ctl, "'%s' ends in none of .safetensors, .npz and .onnx", path);
    if (job->source && (ctl->name || ctl->socket))
        return ctl_usage(ctl, "--model asks no daemon; leave it out, or -n and -s");
    if (job->source && job->format == SAFETENSORS)
        return ctl_usage(
            ctl, "'%s' would be a copy of the model file; name an .npz or .onnx", path);
    return CTL_DONE;
}

/* Print a failure whose text may lack the name of the file. */
static enum ctl_exit fail(struct ctl *ctl, const struct job *job, enum ctl_exit status, int code,
    const struct sgp_error *error)
{
    const char *text = error->text[0] != '\0' ? error->text : sgp_strerror(code);
    const size_t length = strlen(job->path);
    const bool named = strncmp(text, job->path, length) == 0 && text[length] == ':';
    if (job->source || named)
        return ctl_fail(ctl, status, "%s", text);
    return ctl_fail(ctl, status, "%s: %s", job->path, text);
}

static enum ctl_exit convert(struct ctl *ctl, struct job *job)
{
    struct sgp_error error = {0};
    int code = read_model(job, &error);
    if (code < 0)
        return fail(ctl, job, job->source ? CTL_INVALID : CTL_FAILED, code, &error);
    code = write_model(job, &error);
    return code < 0 ? fail(ctl, job, CTL_FAILED, code, &error) : CTL_DONE;
}

static enum ctl_exit export_model(struct ctl *ctl, int argc, char **argv)
{
    struct ctl_given given[OPTIONS] = {0};
    struct job job;
    enum ctl_exit status = ctl_options_take(ctl, &argc, argv, given, OPTIONS, 1, 1);
    if (status == CTL_DONE)
        status = understand(ctl, given, argv[0], &job);
    if (status != CTL_DONE)
        return status;
    if (!job.source)
        status = receive(ctl, &job);
    if (status == CTL_DONE)
        status = convert(ctl, &job);
    if (job.received)
        (void)unlink(job.part); /* does not exist any more if it was renamed */
    if (status == CTL_DONE && ctl->json)
        status = ctl_print_json(json_pack("{s:o, s:I, s:I}", "file", ctl_json_text(job.path),
            "parameters", (json_int_t)job.parameters, "tensors", (json_int_t)job.tensors));
    else if (status == CTL_DONE)
        (void)printf("%s: %llu parameters in %u tensors\n", job.path,
            (unsigned long long)job.parameters, job.tensors);
    sgp_predictor_destroy(job.predictor);
    sgp_model_file_destroy(job.model);
    return status;
}

static const struct ctl_option export_options[] = {
    [FORMAT] = {"--format", .value = "FORMAT", .words = "safetensors npz onnx",
        .summary = "the kind of FILE, whatever its name: safetensors, npz or onnx"},
    [MODEL] = {"--model", .value = "FILE",
        .summary = "a model.safetensors in the place of a daemon, which is not needed then"},
    [OPTIONS] = {0}};

const struct ctl_command ctl_export_command = {.words = "export",
    .operands = "FILE",
    .options = export_options,
    .summary = "write the model as it is now to FILE: .safetensors, .npz or .onnx",
    .help =
        "The model is the estimate x / w of this node between two rounds. FILE appears whole or\n"
        "not at all; its digest is checked first.\n"
        "\n"
        "An .npz has the tensors alone, for numpy. An .onnx is a graph that takes the rows of a\n"
        "table as they are: the numbers as float64 and the words as strings. It scales them, and\n"
        "answers with the class and the probabilities, or the values of the label columns, as\n"
        "predict --model does. Its metadata are the tags of the model file; see docs/MODELS.md.\n"
        "The model of a program has no .onnx, since only the program knows its layers.\n",
    .run = export_model};

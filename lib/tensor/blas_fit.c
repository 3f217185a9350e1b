/* SPDX-License-Identifier: Apache-2.0 */
/* The choice of kernels: they are tried in separate processes, remembered, and used at the next
 * start; see sgp/blas.h. */
#include "blas.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

#define CHOICE "OPENBLAS_CORETYPE" /* variable of OpenBLAS */
#define TRIAL "SGP_BLAS_TRIAL"     /* the layers, for a process that tries kernels */
#define INSTEAD "SGP_BLAS_INSTEAD" /* the kernels that OpenBLAS had chosen before sgp did */
#define SELF "/proc/self/exe"
#define TRIAL_MS 60000 /* timeout after which the process counts as hung */
#define LAYERS_TEXT_BYTES (SGP_BLAS_LAYERS_MAX * 32u)
#define GAIN 1.05 /* a smaller gain does not justify another start */

/* ---- the process that tries kernels ---- */

static uint32_t parse_layers(const char *text, struct sgp_blas_layer layers[SGP_BLAS_LAYERS_MAX])
{
    uint32_t count = 0;
    int used;
    struct sgp_blas_layer *layer = layers;
    for (; count < SGP_BLAS_LAYERS_MAX &&
           sscanf(text, "%u:%u:%u,%n", &layer->rows, &layer->inputs, &layer->outputs, &used) == 3;
         text += used, layer++)
        count++;
    return count;
}

/* Prints one line: the rate, or the fault. */
void sgp_blas_begin(void)
{
    const char *text = getenv(TRIAL);
    if (text == NULL)
        return;
    struct sgp_blas_layer layers[SGP_BLAS_LAYERS_MAX];
    struct sgp_error error = {0};
    uint32_t count = parse_layers(text, layers);
    if (sgp_blas_verify(layers, count, &error) < 0) {
        (void)printf("wrong %s\n", error.text);
    } else {
        char kernels[SGP_BLAS_NAME_BYTES];
        sgp_blas_kernels(kernels);
        (void)printf("right %s %.17g\n", kernels, sgp_blas_rate(layers, count));
    }
    (void)fflush(stdout);
    _exit(0);
}

/* ---- the trials ---- */

struct trial {
    double rate; /* 0: excluded, */
    bool absent; /* because no kernels have that name, or they do not suit this processor */
    char why[SGP_TEXT_BYTES];
};

/* `environ` without the variables of this file, plus these, each NULL or "NAME=value". The caller
 * frees the array. */
static char **environment_with(char *first, char *second)
{
    static const char *const ours[] = {CHOICE "=", TRIAL "=", INSTEAD "="};
    size_t count = 0, kept = 0;
    while (environ[count] != NULL)
        count++;
    char **all = calloc(count + 3, sizeof *all);
    for (size_t i = 0; all != NULL && i < count; i++) {
        bool own = false;
        for (size_t j = 0; j < sizeof ours / sizeof *ours; j++)
            own = own || strncmp(environ[i], ours[j], strlen(ours[j])) == 0;
        if (!own)
            all[kept++] = environ[i];
    }
    if (all == NULL)
        return NULL;
    if (first != NULL)
        all[kept++] = first;
    if (second != NULL)
        all[kept++] = second;
    return all;
}

/* Read what the process prints, until it ends or its time is over. */
static void listen_to(int descriptor, char *line, size_t size)
{
    size_t used = 0;
    struct pollfd wait = {.fd = descriptor, .events = POLLIN};
    while (used + 1 < size) {
        int ready = poll(&wait, 1, TRIAL_MS);
        ssize_t count = ready > 0 ? read(descriptor, line + used, size - 1 - used) : ready;
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            break;
        used += (size_t)count;
    }
    line[used] = '\0';
}

static int start_trial(const char *kernels, const char *layers, int output, pid_t *ret_process)
{
    char choice[64], trial[LAYERS_TEXT_BYTES + 32];
    char *arguments[] = {(char[]){"sgp-blas-trial"}, NULL};
    (void)snprintf(choice, sizeof choice, CHOICE "=%s", kernels);
    (void)snprintf(trial, sizeof trial, TRIAL "=%s", layers);
    char **environment = environment_with(choice, trial);
    posix_spawn_file_actions_t actions;
    if (environment == NULL || posix_spawn_file_actions_init(&actions) != 0) {
        free(environment);
        return -ENOMEM;
    }
    (void)posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    (void)posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    (void)posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    int code = posix_spawn(ret_process, SELF, &actions, NULL, arguments, environment);
    (void)posix_spawn_file_actions_destroy(&actions);
    free(environment);
    return -code;
}

/* Four results exclude the kernels: a crash, silence, other kernels than those requested, or a
 * wrong product. */
static void judge(const char *kernels, const char *line, int status, struct trial *ret_trial)
{
    char found[SGP_BLAS_NAME_BYTES];
    struct trial *trial = ret_trial;
    if (WIFSIGNALED(status))
        (void)snprintf(trial->why, sizeof trial->why, "ended by signal %d", WTERMSIG(status));
    else if (strncmp(line, "wrong ", 6) == 0)
        (void)snprintf(
            trial->why, sizeof trial->why, "%.*s", (int)strcspn(line + 6, "\n"), line + 6);
    else if (sscanf(line, "right %31s %lf", found, &trial->rate) != 2)
        (void)snprintf(
            trial->why, sizeof trial->why, "no answer, exit status %d", WEXITSTATUS(status));
    else if (strcasecmp(found, kernels) != 0) {
        trial->rate = 0;
        trial->absent = true;
        (void)snprintf(trial->why, sizeof trial->why, "OpenBLAS has none of that name here");
    }
}

static void try_kernels(const char *kernels, const char *layers, struct trial *ret_trial)
{
    *ret_trial = (struct trial){.rate = 0};
    int ends[2];
    pid_t process;
    char line[SGP_TEXT_BYTES + 16];
    if (pipe2(ends, O_CLOEXEC) < 0) {
        (void)snprintf(ret_trial->why, sizeof ret_trial->why, "%s", strerror(errno));
        return;
    }
    int code = start_trial(kernels, layers, ends[1], &process), status = 0;
    (void)close(ends[1]);
    if (code == 0) {
        listen_to(ends[0], line, sizeof line);
        if (strchr(line, '\n') == NULL)
            (void)kill(process, SIGKILL); /* the process hangs, or has ended anyway */
        while (waitpid(process, &status, 0) < 0 && errno == EINTR)
            continue;
        judge(kernels, line, status, ret_trial);
    } else {
        (void)snprintf(ret_trial->why, sizeof ret_trial->why, "%s", strerror(-code));
    }
    (void)close(ends[0]);
}

static void print_layers(const struct sgp_blas_wish *wish, char text[LAYERS_TEXT_BYTES])
{
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < wish->count && i < SGP_BLAS_LAYERS_MAX; i++)
        used += (size_t)snprintf(text + used, LAYERS_TEXT_BYTES - used, "%u:%u:%u,",
            wish->layers[i].rows, wish->layers[i].inputs, wish->layers[i].outputs);
}

static void tell(const struct sgp_blas_wish *wish, const char *kernels, const struct trial *trial)
{
    if (trial->rate > 0)
        sgp_log(wish->sink, SGP_LEVEL_DEBUG, "event=blas kernels=%s gflops=%.3g", kernels,
            trial->rate * 1e-9);
    else
        sgp_log(wish->sink, trial->absent ? SGP_LEVEL_DEBUG : SGP_LEVEL_WARNING,
            "event=blas kernels=%s excluded=\"%s\"", kernels, trial->why);
}

/* Choose the fastest of the candidates and of the kernels in use; "" if these are the fastest. */
static void choose(
    const struct sgp_blas_wish *wish, const char *present, char ret_name[SGP_BLAS_NAME_BYTES])
{
    char layers[LAYERS_TEXT_BYTES];
    struct trial trial;
    print_layers(wish, layers);
    try_kernels(present, layers, &trial);
    double most = trial.rate * GAIN;
    ret_name[0] = '\0';
    for (const char *const *name = sgp_blas_candidates(); *name != NULL; name++) {
        try_kernels(*name, layers, &trial);
        tell(wish, *name, &trial);
        if (trial.rate <= most)
            continue;
        most = trial.rate;
        (void)snprintf(ret_name, SGP_BLAS_NAME_BYTES, "%s", *name);
    }
}

/* ---- the saved choice ---- */

static bool place_of(const struct sgp_blas_wish *wish, const char *end, char path[SGP_TEXT_BYTES])
{
    return wish->directory != NULL && (size_t)snprintf(path, SGP_TEXT_BYTES, "%s/blas%s",
                                          wish->directory, end) < SGP_TEXT_BYTES;
}

/* The file has two lines: the conditions of the choice, and the choice. */
static bool recall(
    const struct sgp_blas_wish *wish, const char *key, char ret_name[SGP_BLAS_NAME_BYTES])
{
    char path[SGP_TEXT_BYTES], line[2 * SGP_TEXT_BYTES] = "";
    int descriptor =
        place_of(wish, "", path) ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW) : -1;
    FILE *file = descriptor >= 0 ? fdopen(descriptor, "r") : NULL;
    if (file == NULL) {
        if (descriptor >= 0)
            (void)close(descriptor);
        return false;
    }
    bool same = fgets(line, sizeof line, file) != NULL;
    line[strcspn(line, "\n")] = '\0';
    same = same && strcmp(line, key) == 0 && fscanf(file, "%31[A-Za-z0-9_]", ret_name) == 1;
    (void)fclose(file);
    return same;
}

/* If the choice cannot be saved, the next start tries again. */
static void remember(const struct sgp_blas_wish *wish, const char *key, const char *name)
{
    char path[SGP_TEXT_BYTES], fresh[SGP_TEXT_BYTES];
    if (!place_of(wish, "", path) || !place_of(wish, ".new", fresh))
        return;
    (void)unlink(fresh); /* left by a process that was killed */
    int descriptor = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
    FILE *file = descriptor >= 0 ? fdopen(descriptor, "w") : NULL;
    if (file == NULL)
        return;
    bool whole = fprintf(file, "%s\n%s\n", key, name) > 0;
    if (fclose(file) == 0 && whole)
        (void)rename(fresh, path);
    else
        (void)unlink(fresh);
}

/* ---- the whole choice ---- */

/* Start by its path, which names the process, or by SELF if that is gone. Returns only on
 * failure. */
static void start_with(const struct sgp_blas_wish *wish, char *first, char *second)
{
    char path[4096];
    ssize_t bytes = readlink(SELF, path, sizeof path - 1);
    if (wish->hand_over != NULL)
        wish->hand_over(wish->context, true);
    char **environment = environment_with(first, second);
    if (environment != NULL && bytes > 0) {
        path[bytes] = '\0';
        (void)execve(path, wish->arguments, environment);
    }
    if (environment != NULL)
        (void)execve(SELF, wish->arguments, environment);
    free(environment);
    if (wish->hand_over != NULL)
        wish->hand_over(wish->context, false);
}

static void start_again(const struct sgp_blas_wish *wish, const char *name, const char *instead)
{
    char choice[64], before[64];
    (void)snprintf(choice, sizeof choice, CHOICE "=%s", name);
    (void)snprintf(before, sizeof before, INSTEAD "=%s", instead);
    start_with(wish, choice, before);
}

/* The choice is wrong for these layers, because it was made for others. Forget it. */
static void forget(const struct sgp_blas_wish *wish)
{
    char path[SGP_TEXT_BYTES];
    if (place_of(wish, "", path) && unlink(path) == 0)
        start_with(wish, NULL, NULL);
}

/* If the kernels do not suit and no user chose them, try others. Returns whether any were tried. */
static bool improve(const struct sgp_blas_wish *wish, const struct sgp_blas *blas)
{
    char key[SGP_TEXT_BYTES], name[SGP_BLAS_NAME_BYTES];
    sgp_blas_key(key);
    bool known = recall(wish, key, name);
    if (!known && wish->layers == NULL)
        return false;
    if (!known) {
        choose(wish, blas->kernels, name);
        remember(wish, key, name[0] != '\0' ? name : blas->kernels);
    }
    if (name[0] != '\0' && strcasecmp(name, blas->kernels) != 0)
        start_again(wish, name, blas->kernels);
    return true;
}

int sgp_blas_fit(
    const struct sgp_blas_wish *wish, struct sgp_error *error, struct sgp_blas *ret_blas)
{
    const char *instead = getenv(INSTEAD);
    struct sgp_blas blas = {.by_user = instead == NULL && getenv(CHOICE) != NULL};
    sgp_blas_begin();
    sgp_blas_kernels(blas.kernels);
    blas.fit = sgp_blas_suit(blas.kernels);
    if (instead != NULL)
        (void)snprintf(blas.instead, sizeof blas.instead, "%s", instead);
    else if (!blas.fit && !blas.by_user)
        blas.tried = improve(wish, &blas);
    struct sgp_error why = {0};
    int code = wish->layers != NULL ? sgp_blas_verify(wish->layers, wish->count, &why) : 0;
    if (code == SGP_E_STATE && instead != NULL)
        forget(wish);
    if (code == SGP_E_STATE)
        return sgp_fail(error, code,
            "OpenBLAS's kernels %s are wrong on this processor: %s; set " CHOICE
            " to others (Haswell, say)",
            blas.kernels, why.text);
    *ret_blas = blas;
    return 0;
}

void sgp_blas_text(const struct sgp_blas *blas, char ret_text[SGP_BLAS_TEXT_BYTES])
{
    if (blas->instead[0] != '\0')
        (void)snprintf(ret_text, SGP_BLAS_TEXT_BYTES,
            "%s (chosen: OpenBLAS took this processor for %s)", blas->kernels, blas->instead);
    else
        (void)snprintf(ret_text, SGP_BLAS_TEXT_BYTES, "%s%s", blas->kernels,
            blas->by_user ? " (by " CHOICE ")"
            : blas->tried ? " (others are no better here)"
                          : "");
}

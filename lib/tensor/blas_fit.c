/* SPDX-License-Identifier: Apache-2.0 */
/* The choice of kernels: they are tried in separate processes, remembered, and loaded; see
 * sgp/blas.h. */
#include "blas.h"
#include "openblas.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHOICE "OPENBLAS_CORETYPE" /* variables of OpenBLAS, which it reads when it is loaded */
#define THREADS "OPENBLAS_NUM_THREADS"
#define TRIAL_MS 60000 /* timeout after which the process counts as hung */
#define GAIN 1.05      /* a smaller gain does not justify a choice against OpenBLAS's own */

/* ---- loading ---- */

/* A user's value of the variable stays; NULL sets none. */
static bool set(const char *variable, const char *value)
{
    return value != NULL && getenv(variable) == NULL && setenv(variable, value, 1) == 0;
}

/* Load OpenBLAS with these kernels (NULL: its own choice) and so many threads (0: its own choice).
 * The variables do not stay: a later start of the program would take them for a user's. */
static int load_with(const char *kernels, uint32_t threads, struct sgp_error *error)
{
    char number[16];
    (void)snprintf(number, sizeof number, "%u", threads);
    const bool chosen = set(CHOICE, kernels), counted = set(THREADS, threads > 0 ? number : NULL);
    const int code = sgp_blas_load(error);
    if (chosen)
        (void)unsetenv(CHOICE);
    if (counted)
        (void)unsetenv(THREADS);
    return code;
}

/* ---- the process that tries kernels ---- */

struct trial {
    char kernels[SGP_BLAS_NAME_BYTES]; /* in use; "": the process has not answered */
    char build[SGP_TEXT_BYTES];        /* of the library */
    double rate;                       /* 0: excluded, or there was nothing to multiply, */
    bool absent; /* because no kernels have that name, or they do not suit this processor */
    char why[SGP_TEXT_BYTES];
};

_Static_assert(sizeof(struct trial) <= 4096, "a pipe takes the answer at once");

static void answer(const char *kernels, const struct sgp_blas_wish *wish, struct trial *ret_trial)
{
    struct sgp_error error = {0};
    int code = load_with(kernels, 1, &error);
    if (code == 0) {
        (void)snprintf(ret_trial->kernels, SGP_BLAS_NAME_BYTES, "%s", sgp_openblas_kernels());
        (void)snprintf(ret_trial->build, SGP_TEXT_BYTES, "%s", sgp_openblas_build());
    }
    if (code == 0 && wish != NULL)
        code = sgp_blas_verify(wish->layers, wish->count, &error);
    if (code == 0 && wish != NULL)
        ret_trial->rate = sgp_blas_rate(wish->layers, wish->count);
    else if (code < 0)
        (void)snprintf(
            ret_trial->why, SGP_TEXT_BYTES, "%s", code == -ENOMEM ? "out of memory" : error.text);
}

/* Only the answer leaves the process. It must not keep the descriptors of its parent: a lock would
 * outlive that. */
static _Noreturn void try_and_end(int output, const char *kernels, const struct sgp_blas_wish *wish)
{
    struct trial trial = {.rate = 0};
    (void)signal(SIGTERM, SIG_DFL);
    (void)signal(SIGINT, SIG_DFL);
    const int nowhere = open("/dev/null", O_RDWR);
    (void)dup2(nowhere, STDIN_FILENO);
    (void)dup2(nowhere, STDERR_FILENO);
    (void)dup2(output, STDOUT_FILENO);
    (void)close_range(STDERR_FILENO + 1, ~0u, 0);
    answer(kernels, wish, &trial);
    _exit(write(STDOUT_FILENO, &trial, sizeof trial) != sizeof trial);
}

/* ---- trials ---- */

/* Whether the process has answered. A process that hangs does not. */
static bool listen_to(int descriptor, struct trial *ret_trial)
{
    struct pollfd wait = {.fd = descriptor, .events = POLLIN};
    int ready;
    do
        ready = poll(&wait, 1, TRIAL_MS);
    while (ready < 0 && errno == EINTR);
    return ready > 0 && read(descriptor, ret_trial, sizeof *ret_trial) == sizeof *ret_trial;
}

/* Three more results exclude the kernels: a crash, silence, and other kernels than those
 * requested. */
static void judge(const char *kernels, bool answered, int status, struct trial *trial)
{
    if (!answered) {
        *trial = (struct trial){.rate = 0};
        if (WIFSIGNALED(status))
            (void)snprintf(trial->why, sizeof trial->why, "ended by signal %d", WTERMSIG(status));
        else
            (void)snprintf(
                trial->why, sizeof trial->why, "no answer, exit status %d", WEXITSTATUS(status));
    } else if (kernels != NULL && trial->why[0] == '\0' &&
               strcasecmp(trial->kernels, kernels) != 0) {
        trial->rate = 0;
        trial->absent = true;
        (void)snprintf(trial->why, sizeof trial->why, "OpenBLAS has none of that name here");
    }
}

static void fail_trial(struct trial *ret_trial, int number)
{
    *ret_trial = (struct trial){.rate = 0};
    (void)snprintf(ret_trial->why, sizeof ret_trial->why, "%s", strerror(number));
}

/* Try these kernels, or those that OpenBLAS chooses (NULL), on the layers of the wish; with no wish
 * nothing is multiplied. */
static void try_kernels(
    const char *kernels, const struct sgp_blas_wish *wish, struct trial *ret_trial)
{
    int ends[2], status = 0;
    if (pipe2(ends, O_CLOEXEC) < 0) {
        fail_trial(ret_trial, errno);
        return;
    }
    const pid_t process = fork();
    if (process == 0)
        try_and_end(ends[1], kernels, wish);
    const int number = errno;
    (void)close(ends[1]);
    if (process > 0) {
        const bool answered = listen_to(ends[0], ret_trial);
        if (!answered)
            (void)kill(process, SIGKILL); /* it hangs, or has ended anyway */
        while (waitpid(process, &status, 0) < 0 && errno == EINTR)
            continue;
        judge(kernels, answered, status, ret_trial);
    } else {
        fail_trial(ret_trial, number);
    }
    (void)close(ends[0]);
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

/* Choose the fastest of the candidates and of the kernels that OpenBLAS chooses. */
static void choose(
    const struct sgp_blas_wish *wish, const char *own, char ret_name[SGP_BLAS_NAME_BYTES])
{
    struct trial trial;
    try_kernels(own, wish, &trial);
    double most = trial.rate * GAIN;
    (void)snprintf(ret_name, SGP_BLAS_NAME_BYTES, "%s", own);
    for (const char *const *name = sgp_blas_candidates(); *name != NULL; name++) {
        try_kernels(*name, wish, &trial);
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

/* The saved choice, if it is right for these layers too, or else the best of the trials, which is
 * saved. */
static void find_better(
    const struct sgp_blas_wish *wish, const struct trial *own, char ret_name[SGP_BLAS_NAME_BYTES])
{
    char key[SGP_TEXT_BYTES];
    struct trial trial;
    sgp_blas_key(own->build, key);
    if (recall(wish, key, ret_name)) {
        try_kernels(ret_name, wish, &trial);
        if (trial.rate > 0)
            return;
    }
    choose(wish, own->kernels, ret_name);
    remember(wish, key, ret_name);
}

/* Load the kernels that fit, if no user chose others. Nobody knows what OpenBLAS chooses here until
 * it has been loaded, so a process of its own asks first. */
static int load_fitting(
    const struct sgp_blas_wish *wish, struct sgp_blas *blas, struct sgp_error *error)
{
    struct trial own;
    char name[SGP_BLAS_NAME_BYTES] = "";
    try_kernels(NULL, NULL, &own);
    if (own.kernels[0] != '\0' && !sgp_blas_suit(own.kernels))
        find_better(wish, &own, name);
    if (name[0] != '\0' && strcasecmp(name, own.kernels) != 0)
        (void)snprintf(blas->instead, sizeof blas->instead, "%s", own.kernels);
    blas->tried = name[0] != '\0' && blas->instead[0] == '\0';
    return load_with(blas->instead[0] != '\0' ? name : NULL, wish->threads, error);
}

int sgp_blas_fit(
    const struct sgp_blas_wish *wish, struct sgp_error *error, struct sgp_blas *ret_blas)
{
    struct sgp_blas blas = {.by_user = getenv(CHOICE) != NULL};
    struct sgp_error why = {0};
    *ret_blas = blas;
    if (wish->count == 0)
        return 0;
    int code = blas.by_user || sgp_openblas_is_loaded() ? load_with(NULL, wish->threads, error)
                                                        : load_fitting(wish, &blas, error);
    if (code < 0)
        return code;
    (void)snprintf(blas.kernels, sizeof blas.kernels, "%s", sgp_openblas_kernels());
    code = sgp_blas_verify(wish->layers, wish->count, &why);
    if (code == SGP_E_STATE)
        return sgp_fail(error, code,
            "OpenBLAS's kernels %s are wrong on this processor: %s; set " CHOICE
            " to others (Haswell, say)",
            blas.kernels, why.text);
    *ret_blas = blas;
    return code;
}

void sgp_blas_text(const struct sgp_blas *blas, char ret_text[SGP_BLAS_TEXT_BYTES])
{
    if (blas->kernels[0] == '\0')
        (void)snprintf(ret_text, SGP_BLAS_TEXT_BYTES, "unused");
    else if (blas->instead[0] != '\0')
        (void)snprintf(ret_text, SGP_BLAS_TEXT_BYTES,
            "%s (chosen: OpenBLAS took this processor for %s)", blas->kernels, blas->instead);
    else
        (void)snprintf(ret_text, SGP_BLAS_TEXT_BYTES, "%s%s", blas->kernels,
            blas->by_user ? " (by " CHOICE ")"
            : blas->tried ? " (others are no better here)"
                          : "");
}

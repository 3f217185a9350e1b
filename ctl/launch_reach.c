/* SPDX-License-Identifier: Apache-2.0 */
/* Starts a supervisor on a host, by ssh or srun; see launch_up.h. */
#include "launch_up.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WORDS_MAX 64u

extern char **environ;

/* The words of a command line. */
struct words {
    char *list[WORDS_MAX + 1];
    size_t count;
    char *text; /* owned: the user's command, cut into words */
    char destination[SGP_NAME_BYTES + SGP_ADDRESS_BYTES], port[8], node[SGP_ADDRESS_BYTES + 16];
    char *remote; /* owned */
};

static void add(struct words *words, const char *word)
{
    if (words->count < WORDS_MAX)
        words->list[words->count++] = (char *)(uintptr_t)word;
    words->list[words->count] = NULL;
}

/* A remote shell splits the command, so the path of sgpctl is quoted. */
static char *remote_command(const char *sgpctl)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);
    if (file == NULL)
        return NULL;
    ctl_put_word(sgpctl, file);
    (void)fputs(" supervise --json", file);
    return fclose(file) == 0 ? text : NULL;
}

/* BatchMode: ssh asks nothing and fails instead. It also fails within a minute of a lost link. */
static int ssh_words(
    const struct launch_reach *reach, const struct launch_host *host, struct words *words)
{
    static const char *const usual[] = {"-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=30",
        "-o", "ServerAliveInterval=15", "-o", "ServerAliveCountMax=4"};
    char *rest = NULL;
    words->text = strdup(reach->ssh ? reach->ssh : "ssh");
    words->remote = remote_command(reach->sgpctl);
    if (words->text == NULL || words->remote == NULL)
        return -ENOMEM;
    for (char *word = strtok_r(words->text, " \t", &rest); word;
         word = strtok_r(NULL, " \t", &rest))
        add(words, word);
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        add(words, usual[i]);
    (void)snprintf(words->port, sizeof words->port, "%u", host->port);
    if (host->port > 0)
        add(words, "-p");
    if (host->port > 0)
        add(words, words->port);
    (void)snprintf(words->destination, sizeof words->destination, "%s%s%s", host->user,
        host->user[0] != '\0' ? "@" : "", host->host);
    add(words, words->destination);
    add(words, words->remote);
    return words->count < WORDS_MAX ? 0 : -E2BIG;
}

/* Whole lines come at once. With --unbuffered, srun would give the supervisor a terminal, on which
 * it writes in colours. */
static int srun_words(
    const struct launch_reach *reach, const struct launch_host *host, struct words *words)
{
    (void)snprintf(words->node, sizeof words->node, "--nodelist=%s", host->host);
    const char *const all[] = {"srun", "--nodes=1", "--ntasks=1", words->node, "--overlap",
        "--quiet", reach->sgpctl, "supervise", "--json"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        add(words, all[i]);
    return 0;
}

const char *launch_reach_name(const struct launch_reach *reach)
{
    return reach->slurm ? "srun" : reach->ssh ? reach->ssh : "ssh";
}

enum ctl_exit launch_reach_prepare(
    struct ctl *ctl, struct launch_reach *reach, const struct launch_list *list)
{
    char path[PATH_MAX], name[PATH_MAX];
    reach->slurm = reach->ssh == NULL && getenv("SLURM_JOB_ID") != NULL;
    for (size_t i = 0; reach->slurm && i < list->count; i++)
        if (list->hosts[i].user[0] != '\0' || list->hosts[i].port > 0)
            return ctl_fail(ctl, CTL_INVALID,
                "%s:%u: srun takes no user and no port; --ssh ssh reaches the host otherwise",
                list->path, list->hosts[i].line);
    const char *command = launch_reach_name(reach) + strspn(launch_reach_name(reach), " \t");
    (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(command, " \t"), command);
    return launch_find(name, path) ? CTL_DONE
                                   : ctl_usage(ctl, "there is no program '%s'%s", name,
                                         reach->ssh || reach->slurm
                                             ? ""
                                             : "; install package openssh-client, or give --ssh");
}

static int open_pipes(int ends[3][2])
{
    for (size_t i = 0; i < 3; i++)
        if (pipe2(ends[i], O_CLOEXEC) < 0) {
            int code = errno;
            while (i-- > 0) {
                (void)close(ends[i][0]);
                (void)close(ends[i][1]);
            }
            return -code;
        }
    return 0;
}

static int start(struct words *words, struct launch_reached *ret_reached)
{
    char path[PATH_MAX];
    int ends[3][2];
    if (!launch_find(words->list[0], path))
        return -ENOENT;
    int code = open_pipes(ends);
    if (code < 0)
        return code;
    pid_t pid = launch_start(&(struct launch_command){.path = path,
        .arguments = words->list,
        .environment = environ,
        .input = ends[0][0],
        .output = ends[1][1],
        .error = ends[2][1]});
    (void)close(ends[0][0]);
    (void)close(ends[1][1]);
    (void)close(ends[2][1]);
    *ret_reached = (struct launch_reached){
        .pid = pid, .input = ends[0][1], .output = ends[1][0], .error = ends[2][0]};
    if (pid > 0)
        return 0;
    (void)close(ends[0][1]);
    (void)close(ends[1][0]);
    (void)close(ends[2][0]);
    return (int)pid;
}

int launch_reach_start(const struct launch_reach *reach, const struct launch_host *host,
    struct launch_reached *ret_reached)
{
    struct words words = {.count = 0};
    int code = reach->slurm ? srun_words(reach, host, &words) : ssh_words(reach, host, &words);
    if (code == 0)
        code = start(&words, ret_reached);
    free(words.text);
    free(words.remote);
    return code;
}

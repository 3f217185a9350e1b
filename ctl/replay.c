/* SPDX-License-Identifier: Apache-2.0 */
/* `sgpctl replay` feeds the event journal of a daemon to its core once more, without the daemon. */
#include "ctl.h"

#include "sgp/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static void print_line(void *context, enum sgp_level level, const char *text)
{
    (void)context;
    if (level == SGP_LEVEL_TRACE)
        (void)puts(text);
    else
        (void)fprintf(stderr, "sgpctl: %s\n", text);
}

/* The whole file at this moment; a daemon may continue to write to it. Returns 0 or -errno. */
static int map(const char *path, const uint8_t **ret_bytes, size_t *ret_count)
{
    struct stat info = {0};
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int code = descriptor < 0 || fstat(descriptor, &info) < 0 ? -errno : 0;
    if (code == 0 && !S_ISREG(info.st_mode))
        code = S_ISDIR(info.st_mode) ? -EISDIR : -EINVAL;
    *ret_bytes = NULL;
    *ret_count = code == 0 ? (size_t)info.st_size : 0;
    if (*ret_count > 0) {
        void *place = mmap(NULL, *ret_count, PROT_READ, MAP_PRIVATE, descriptor, 0);
        code = place == MAP_FAILED ? -errno : 0;
        *ret_bytes = place;
    }
    if (descriptor >= 0)
        (void)close(descriptor);
    return code;
}

static enum ctl_exit replay(struct ctl *ctl, int argc, char **argv)
{
    static const struct sgp_sink sink = {.line = print_line, .level = SGP_LEVEL_TRACE};
    struct sgp_error error = {0};
    const uint8_t *bytes;
    size_t count;
    enum ctl_exit status = ctl_options_take(ctl, &argc, argv, NULL, 0, 1, 1);
    if (status != CTL_DONE)
        return status;
    int code = map(argv[0], &bytes, &count);
    if (code < 0)
        return ctl_fail(ctl, CTL_FAILED, "%s: cannot be read: %s; name the file of [log] events",
            argv[0], sgp_strerror(code));
    code = sgp_journal_replay(bytes, count, argv[0], &sink, &error);
    if (count > 0)
        (void)munmap((void *)(uintptr_t)bytes, count);
    if (code == 0)
        return CTL_DONE;
    (void)fflush(stdout);
    return ctl_fail(ctl, code == SGP_E_FILE ? CTL_INVALID : CTL_FAILED, "%s", error.text);
}

const struct ctl_command ctl_replay_command = {.words = "replay",
    .operands = "FILE",
    .summary = "what a daemon did, step by step, from the event journal that it wrote",
    .help =
        "FILE is what [log] events of sgpd.conf(5) names; no daemon is needed, and one that still\n"
        "writes to it is not disturbed. The daemon's core is given every event once more and does\n"
        "the same again. Prints a line a step: when, state, round, weight, what happened and what "
        "was\n"
        "to be done; and a line when the node waits for something else. It is what [log] trace "
        "writes\n"
        "meanwhile, to the byte. A record that is cut off, as a killed process leaves it, is told "
        "and\n"
        "left out. A program of another version is told too: its steps may have been others. Ends\n"
        "with 6 for a file that is damaged or of another format.\n",
    .run = replay};

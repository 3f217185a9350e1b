/* SPDX-License-Identifier: Apache-2.0 */
/* What a service manager sees of the daemon: lines on standard error, and words on NOTIFY_SOCKET. */
#include "util/log.h"
#include "util/notify.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* Lines. */

static void read_line(int descriptor, char line[1024])
{
    ssize_t bytes = read(descriptor, line, 1023);
    line[bytes > 0 ? bytes : 0] = '\0';
}

Test(service, lines_for_systemd_have_a_priority)
{
    int ends[2];
    char line[1024];
    struct log log;
    cr_assert(eq(int, pipe(ends), 0));
    log_init_to(&log, SGP_LEVEL_TRACE, "n0", ends[1], LOG_PRIORITY);
    static const struct {
        enum sgp_level level;
        const char *line;
    } cases[] = {{SGP_LEVEL_ERROR, "<3>node=n0 event=x k=1\n"},
        {SGP_LEVEL_WARNING, "<4>node=n0 event=x k=1\n"},
        {SGP_LEVEL_INFO, "<6>node=n0 event=x k=1\n"}, {SGP_LEVEL_DEBUG, "<7>node=n0 event=x k=1\n"},
        {SGP_LEVEL_TRACE, "<7>node=n0 event=x k=1\n"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sgp_log(&log.sink, cases[i].level, "event=x k=%d", 1);
        read_line(ends[0], line);
        cr_assert(eq(str, line, (char *)cases[i].line));
    }
}

#define HEAD "PRIORITY=6\nSYSLOG_IDENTIFIER=sgpd\nMESSAGE="

Test(service, the_journal_gets_fields)
{
    int ends[2];
    char line[1024];
    struct log log;
    cr_assert(eq(int, socketpair(AF_UNIX, SOCK_DGRAM, 0, ends), 0));
    log_init_to(&log, SGP_LEVEL_INFO, "n0", ends[1], LOG_JOURNAL);
    static const struct {
        const char *said;
        const char *fields;
    } cases[] = {{"event=waiting peer=n1 for=share round=17",
                     "SGP_EVENT=waiting\nSGP_ROUND=17\nSGP_PEER=n1\n"},
        {"event=end status=0", "SGP_EVENT=end\n"}, {"no event at all", ""}, {"", ""},
        {"event=refused reason=\"x\" peer=n1 round=2 y=\"\"", "SGP_EVENT=refused\n"},
        {"error=\"event=x peer=y\"", ""}, {"a=b=c  event=x rounds=7", "SGP_EVENT=x\n"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char expected[1024];
        (void)snprintf(expected, sizeof expected, HEAD "node=n0 %s\nSGP_NODE=n0\n%s", cases[i].said,
            cases[i].fields);
        sgp_log(&log.sink, SGP_LEVEL_INFO, "%s", cases[i].said);
        read_line(ends[0], line);
        cr_assert(eq(str, line, expected));
    }
    log_init_to(&log, SGP_LEVEL_INFO, "", ends[1], LOG_JOURNAL);
    sgp_log(&log.sink, SGP_LEVEL_INFO, "event=x text=%s", "a\nPRIORITY=0");
    read_line(ends[0], line);
    cr_assert(
        eq(str, line, HEAD "event=x text=a?PRIORITY=0\nSGP_EVENT=x\n"), "no field of a stranger's");
}

Test(service, the_longest_line_fits_a_datagram)
{
    int ends[2];
    char text[2 * SGP_TEXT_BYTES], line[4 * SGP_TEXT_BYTES], node[SGP_NAME_BYTES];
    struct log log;
    cr_assert(eq(int, socketpair(AF_UNIX, SOCK_DGRAM, 0, ends), 0));
    memset(node, 'n', sizeof node - 1);
    node[sizeof node - 1] = '\0';
    log_init_to(&log, SGP_LEVEL_INFO, node, ends[1], LOG_JOURNAL);
    int used = snprintf(text, sizeof text, "event=%0127d round=%0127d peer=%0127d ", 0, 0, 0);
    memset(text + used, 'x', sizeof text - (size_t)used - 1);
    text[sizeof text - 1] = '\0';
    sgp_log(&log.sink, SGP_LEVEL_INFO, "%s", text);
    ssize_t bytes = read(ends[0], line, sizeof line);
    cr_assert(gt(int, (int)bytes, SGP_TEXT_BYTES));
    cr_assert(eq(chr, line[bytes - 1], '\n'));
    line[bytes - 1] = '\0';
    cr_assert_not_null(strstr(line, "x\nSGP_NODE=n"));
    cr_assert(eq(int, (int)strlen(strstr(line, "SGP_PEER=")), 9 + 127));
}

Test(service, a_journal_that_has_fallen_behind_stops_nothing)
{
    int ends[2];
    char line[1024], lost[128];
    struct log log;
    int came = 0;
    cr_assert(eq(int, socketpair(AF_UNIX, SOCK_DGRAM, 0, ends), 0));
    log_init_to(&log, SGP_LEVEL_INFO, "n0", ends[1], LOG_JOURNAL);
    for (int i = 0; i < 10000; i++)
        sgp_log(&log.sink, SGP_LEVEL_INFO, "event=flood number=%d", i);
    cr_assert(eq(int, fcntl(ends[0], F_SETFL, O_NONBLOCK), 0));
    while (read(ends[0], line, sizeof line) > 0)
        came++;
    cr_assert(came > 0 && came < 10000);
    sgp_log(&log.sink, SGP_LEVEL_INFO, "event=x");
    (void)snprintf(lost, sizeof lost,
        "PRIORITY=4\nSYSLOG_IDENTIFIER=sgpd\nMESSAGE=node=n0 event=lost lines=%d\nSGP_NODE=n0\n"
        "SGP_EVENT=lost\n",
        10000 - came);
    read_line(ends[0], line);
    cr_assert(eq(str, line, lost));
}

Test(service, other_lines_have_time_and_level)
{
    int ends[2];
    char line[1024];
    struct log log;
    cr_assert(eq(int, pipe(ends), 0));
    log_init_to(&log, SGP_LEVEL_INFO, "", ends[1], LOG_PLAIN);
    sgp_log(&log.sink, SGP_LEVEL_DEBUG, "event=unwanted");
    sgp_log(&log.sink, SGP_LEVEL_WARNING, "event=x text=\"%s\"", "a\nb");
    read_line(ends[0], line);
    int year, month, day, hour, minute, second, millisecond, used = 0;
    cr_assert(eq(int,
        sscanf(line, "%4d-%2d-%2dT%2d:%2d:%2d.%3dZ %n", &year, &month, &day, &hour, &minute,
            &second, &millisecond, &used),
        7));
    cr_assert(eq(str, line + used, "warning event=x text=\"a?b\"\n"), "one line, whatever comes");
}

Test(service, a_reader_that_is_gone_stops_nothing)
{
    int ends[2];
    struct log log;
    cr_assert(eq(int, pipe(ends), 0));
    log_init_to(&log, SGP_LEVEL_INFO, "n0", ends[1], LOG_PRIORITY);
    for (int i = 0; i < 10000; i++)
        sgp_log(&log.sink, SGP_LEVEL_INFO, "event=flood number=%d", i);
    FILE *reader = fdopen(ends[0], "r");
    char line[1024];
    int came = 0;
    cr_assert(eq(int, fcntl(ends[0], F_SETFL, O_NONBLOCK), 0));
    for (int number; fgets(line, sizeof line, reader); came++) {
        cr_assert(eq(int, sscanf(line, "<6>node=n0 event=flood number=%d\n", &number), 1));
        cr_assert(eq(int, number, came), "what comes is in order and without a gap");
    }
    cr_assert(came > 0 && came < 10000);
    clearerr(reader);
    sgp_log(&log.sink, SGP_LEVEL_INFO, "event=x");
    char lost[64];
    (void)snprintf(lost, sizeof lost, "<4>node=n0 event=lost lines=%d\n", 10000 - came);
    cr_assert_not_null(fgets(line, sizeof line, reader));
    cr_assert(eq(str, line, lost));
    cr_assert_not_null(fgets(line, sizeof line, reader));
    cr_assert(eq(str, line, "<6>node=n0 event=x\n"));
    (void)fclose(reader);
}

/* Words to the service manager. */

static int manager(char path[64])
{
    strcpy(path, "/tmp/test_service.XXXXXX");
    cr_assert(mkdtemp(path) != NULL);
    strcat(path, "/s");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, path);
    int descriptor = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    cr_assert(eq(int, bind(descriptor, (struct sockaddr *)&address, sizeof address), 0));
    cr_assert(eq(int, setenv("NOTIFY_SOCKET", path, 1), 0));
    return descriptor;
}

static void dismiss(int descriptor, char path[64])
{
    (void)close(descriptor);
    (void)unlink(path);
    *strrchr(path, '/') = '\0';
    (void)rmdir(path);
}

static void expect_word(int descriptor, const char *word)
{
    char line[1024];
    read_line(descriptor, line);
    cr_assert(eq(str, line, (char *)word));
}

Test(service, the_manager_hears_each_word_once)
{
    char path[64];
    int descriptor = manager(path);
    struct notify notify = {0};
    notify_ready();
    expect_word(descriptor, "READY=1");
    notify_status(&notify, "training round 1");
    expect_word(descriptor, "STATUS=training round 1");
    notify_status(&notify, "training round 1");
    expect_word(descriptor, "");
    notify_status(&notify, "training round 2");
    expect_word(descriptor, "STATUS=training round 2");
    notify_extend(5 * SGP_SECOND);
    expect_word(descriptor, "EXTEND_TIMEOUT_USEC=5000000");
    notify_stopping();
    expect_word(descriptor, "STOPPING=1");
    dismiss(descriptor, path);
}

Test(service, a_hanging_compute_thread_is_not_alive)
{
    char path[64];
    int descriptor = manager(path);
    struct notify notify = {0};
    cr_assert(not(notify_watchdog(&notify, false, 0)));
    expect_word(descriptor, "");
    cr_assert(notify_watchdog(&notify, false, 1));
    expect_word(descriptor, "WATCHDOG=1");
    cr_assert(not(notify_watchdog(&notify, false, 1)));
    expect_word(descriptor, "");
    cr_assert(notify_watchdog(&notify, true, 1));
    expect_word(descriptor, "WATCHDOG=1");
    dismiss(descriptor, path);
}

Test(service, the_watchdog_interval_is_a_quarter_of_what_is_asked)
{
    (void)unsetenv("WATCHDOG_USEC");
    cr_assert(eq(i64, notify_watchdog_interval(), 0));
    (void)setenv("WATCHDOG_USEC", "60000000", 1);
    (void)unsetenv("WATCHDOG_PID");
    cr_assert(eq(i64, notify_watchdog_interval(), 15 * SGP_SECOND));
}

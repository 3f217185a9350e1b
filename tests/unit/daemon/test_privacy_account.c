/* SPDX-License-Identifier: Apache-2.0 */
/* The account of private steps on the disk: never less than what was taken, whatever ends the process. */
#include "store/privacy_account.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define DELTA 1e-5

static bool disk_fails;
static unsigned directories_flushed;

/* In the place of the C library's. */
int msync(void *address, size_t length, int flags)
{
    if (!disk_fails)
        return (int)syscall(SYS_msync, address, length, flags);
    errno = EIO;
    return -1;
}

int fsync(int fd)
{
    struct stat info;
    directories_flushed += fstat(fd, &info) == 0 && S_ISDIR(info.st_mode);
    return (int)syscall(SYS_fsync, fd);
}

static char directory[] = "/tmp/sgp-privacy-XXXXXX";
static struct sgp_privacy_cost step;

static void begin(void)
{
    cr_assert(ne(ptr, mkdtemp(directory), NULL));
    sgp_privacy_step(0.05, 2, &step);
}

static void remove_file(const char *name)
{
    char path[256];
    (void)snprintf(path, sizeof path, "%s/%s", directory, name);
    (void)unlink(path);
}

static void end(void)
{
    remove_file("privacy");
    remove_file("privacy.new");
    remove_file("ledger");
    remove_file("scale.json");
    (void)rmdir(directory);
}

TestSuite(privacy_account, .init = begin, .fini = end, .timeout = 600);

static struct privacy_account open_account(void)
{
    struct privacy_account account;
    struct sgp_error error = {0};
    cr_assert(
        eq(int, privacy_account_open(&account, directory, "n0", &error), 0), "%s", error.text);
    return account;
}

static void write_over(const char *name, long place, const void *bytes, size_t count)
{
    char path[256];
    (void)snprintf(path, sizeof path, "%s/%s", directory, name);
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    cr_assert(fd >= 0 && pwrite(fd, bytes, count, place) == (ssize_t)count);
    (void)close(fd);
}

static void expect_refusal(const char *word)
{
    struct privacy_account account;
    struct privacy_sum spent;
    struct sgp_error error = {0};
    cr_assert(eq(int, privacy_account_open(&account, directory, "n0", &error), SGP_E_DATA));
    cr_assert(strstr(error.text, word) != NULL && strstr(error.text, "--privacy-spent") != NULL,
        "%s", error.text);
    cr_assert(eq(ptr, account.map, NULL));
    cr_assert(eq(int, privacy_account_read(directory, "n0", &error, &spent), SGP_E_DATA));
}

Test(privacy_account, steps_are_counted_across_processes)
{
    struct privacy_account account = open_account();
    cr_assert(eq(u64, account.counted.steps, 0));
    for (int i = 0; i < 100; i++)
        cr_assert(privacy_account_charge(&account, &step, 3, 50, DELTA));
    privacy_account_close(&account);
    account = open_account();
    cr_assert(eq(u64, account.counted.steps, 300));
    struct sgp_privacy_cost expected = {0};
    sgp_privacy_add(&expected, &step, 300);
    cr_assert(epsilon_eq(dbl, sgp_privacy_epsilon(&account.counted.cost, DELTA),
        sgp_privacy_epsilon(&expected, DELTA), 1e-12));
    privacy_account_close(&account);
    privacy_account_close(&account); /* of an account that is closed: nothing */
}

Test(privacy_account, no_step_is_taken_beyond_epsilon)
{
    struct privacy_account account = open_account();
    struct sgp_privacy_cost nothing = {0};
    uint64_t most = sgp_privacy_steps_left(&nothing, &step, 1, DELTA), taken = 0;
    while (privacy_account_charge(&account, &step, 1, 1, DELTA))
        taken++;
    cr_assert(eq(u64, taken, most));
    cr_assert(not(privacy_account_charge(&account, &step, 1, 1, DELTA)));
    cr_assert(eq(u64, account.counted.steps, most));
    cr_assert(privacy_account_charge(&account, &step, 1, 2, DELTA), "a larger epsilon allows more");
    privacy_account_close(&account);
}

/* The child says each step before it could tell anyone of it. */
static void take_steps(int pipe)
{
    struct privacy_account account = open_account();
    for (;;) {
        (void)privacy_account_charge(&account, &step, 1, 1e9, DELTA);
        if (write(pipe, "s", 1) != 1)
            _exit(1);
    }
}

Test(privacy_account, kills_refund_nothing)
{
    uint64_t told = 0;
    unsigned seed = 1;
    for (int kill_number = 0; kill_number < 500; kill_number++) {
        int ends[2];
        char bytes[4096];
        cr_assert(eq(int, pipe(ends), 0));
        pid_t child = fork();
        if (child == 0) {
            (void)close(ends[0]);
            take_steps(ends[1]);
        }
        (void)close(ends[1]);
        uint64_t least = (uint64_t)rand_r(&seed) % 200;
        ssize_t count;
        uint64_t heard = 0;
        while (
            heard <= least && (count = read(ends[0], bytes,
                                   least + 1 - heard < sizeof bytes ? least + 1 - heard : 1)) > 0)
            heard += (uint64_t)count;
        (void)kill(child, SIGKILL);
        while ((count = read(ends[0], bytes, sizeof bytes)) > 0)
            heard += (uint64_t)count;
        (void)close(ends[0]);
        cr_assert(eq(int, waitpid(child, NULL, 0), child));
        told += heard;
        struct privacy_account account = open_account();
        cr_assert(ge(u64, account.counted.steps, told), "after kill %d", kill_number);
        cr_assert(le(u64, account.counted.steps, told + (uint64_t)kill_number + 1),
            "one step a kill, at most, was charged and not told");
        privacy_account_close(&account);
    }
}

/* Another boot of the machine than that of the file: pages that were not written may be lost. */
Test(privacy_account, after_a_power_cut_what_was_set_aside_is_spent)
{
    struct privacy_account account = open_account();
    for (int i = 0; i < 10; i++)
        cr_assert(privacy_account_charge(&account, &step, 1, 8, DELTA));
    struct privacy_sum aside = account.aside;
    cr_assert(gt(u64, aside.steps, 10));
    memset(account.boot, 'x', 8);
    cr_assert(
        privacy_account_charge(&account, &step, 1, 8, DELTA)); /* the process ends without close */
    account = open_account();
    cr_assert(ge(u64, account.counted.steps, aside.steps));
    cr_assert(ge(dbl, sgp_privacy_epsilon(&account.counted.cost, DELTA),
        sgp_privacy_epsilon(&aside.cost, DELTA)));
    privacy_account_close(&account);
}

Test(privacy_account, a_lost_or_damaged_file_needs_a_statement)
{
    struct sgp_error error = {0};
    struct privacy_sum spent = {.steps = 77}, read = {0};
    sgp_privacy_add(&spent.cost, &step, 77);
    write_over("ledger", 0, "x", 1);
    expect_refusal("does not exist");
    cr_assert(eq(int, privacy_account_state(directory, "n0", &spent, &error), 0), "%s", error.text);
    struct privacy_account account = open_account();
    cr_assert(eq(u64, account.counted.steps, 77));
    privacy_account_close(&account);
    cr_assert(eq(int, privacy_account_read(directory, "n0", &error, &read), 0));
    cr_assert(eq(u64, read.steps, 77));
    cr_assert(eq(int, privacy_account_state(directory, "n0", &spent, &error), SGP_E_STATE),
        "a sound file is kept");
    char path[256];
    (void)snprintf(path, sizeof path, "%s/privacy", directory);
    struct stat info;
    cr_assert(eq(int, stat(path, &info), 0));
    for (long place = 200; place < (long)info.st_size; place += 40)
        write_over("privacy", place, "\377", 1);
    expect_refusal("damaged");
    cr_assert(eq(int, truncate(path, 100), 0));
    expect_refusal("damaged");
    cr_assert(eq(int, truncate(path, 0), 0));
    expect_refusal("not an account");
    cr_assert(eq(int, privacy_account_state(directory, "n0", &spent, &error), 0));
    struct privacy_account other;
    error = (struct sgp_error){0};
    cr_assert(eq(int, privacy_account_open(&other, directory, "n1", &error), SGP_E_STATE));
    cr_assert(strstr(error.text, "account of node n0") != NULL, "%s", error.text);
    cr_assert(eq(int, privacy_account_state(directory, "n1", &spent, &error), SGP_E_STATE));
}

/* A power cut can tear the page, so that the slot that was being written is lost. */
Test(privacy_account, after_a_torn_page_what_was_set_aside_is_spent)
{
    struct privacy_account account = open_account();
    memset(account.boot, 'x', 8);
    cr_assert(privacy_account_charge(&account, &step, 1, 8, DELTA));
    const uint64_t aside = account.aside.steps;
    cr_assert(gt(u64, aside, 1));
    const size_t slot = 2 * sizeof(uint64_t) + sizeof account.boot + 2 * sizeof account.counted;
    char path[256];
    (void)snprintf(path, sizeof path, "%s/privacy", directory);
    struct stat info;
    cr_assert(eq(int, stat(path, &info), 0));
    const size_t first = (size_t)info.st_size - 2 * slot;
    write_over("privacy", (long)(first + account.sequence % 2 * slot), "\377\377\377", 3);
    account = open_account();
    cr_assert(ge(u64, account.counted.steps, aside));
    privacy_account_close(&account);
}

Test(privacy_account, no_step_is_taken_that_the_disk_does_not_hold)
{
    struct privacy_account account = open_account();
    disk_fails = true;
    cr_assert(not(privacy_account_charge(&account, &step, 1, 8, DELTA)));
    cr_assert(eq(u64, account.counted.steps, 0));
    cr_assert(eq(u64, account.aside.steps, 0), "the next charge goes to the disk, too");
    disk_fails = false;
    cr_assert(privacy_account_charge(&account, &step, 1, 8, DELTA));
    cr_assert(eq(u64, account.counted.steps, 1));
    privacy_account_close(&account);
}

Test(privacy_account, the_name_of_a_new_file_is_on_the_disk)
{
    struct privacy_account account = open_account();
    cr_assert(eq(u32, directories_flushed, 1));
    privacy_account_close(&account);
}

/* A node that told statistics of its rows has its scaling file, and perhaps nothing else. */
Test(privacy_account, statistics_told_need_a_statement)
{
    write_over("scale.json", 0, "{}", 2);
    expect_refusal("does not exist");
}

/* A node that left has renamed what it would continue from. */
Test(privacy_account, what_a_node_that_left_has_needs_a_statement)
{
    static const char *const names[] = {
        "ledger.left", "checkpoint.left", "checkpoint.1.left", "best.json"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        write_over(names[i], 0, "x", 1);
        expect_refusal("does not exist");
        remove_file(names[i]);
    }
}

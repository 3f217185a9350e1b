/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger's file: what comes back, and what damage does. */
#include "store/ledger.h"

#include "sgp/generate.h"
#include "sgp/node.h"
#include "sgp/random.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

static struct sgp_topology *topology;
static struct sgp_node *node;
static char directory[] = "/tmp/sgpd-ledger-XXXXXX";
static char path[64];
static char second[80]; /* the file that would take its place */

static void setup(void)
{
    struct sgp_error error = {0};
    struct sgp_generate_options options = {.family = "complete", .nodes = 3};
    cr_assert(zero(int, sgp_generate(&options, &error, &topology)));
    struct sgp_node_config config = {.topology = topology,
        .method = sgp_method_find("sgp"),
        .incarnation = 7,
        .parameters = 4,
        .rounds = 100,
        .local_steps = 1,
        .start = SGP_START_ALL};
    cr_assert(zero(int, sgp_node_create(&config, &node)));
    cr_assert(mkdtemp(directory) != NULL);
    (void)snprintf(path, sizeof path, "%s/ledger", directory);
    (void)snprintf(second, sizeof second, "%s.new", path);
}

static void teardown(void)
{
    sgp_node_destroy(node);
    sgp_topology_destroy(topology);
    (void)unlink(path);
    (void)rmdir(directory);
}

TestSuite(ledger, .init = setup, .fini = teardown);

static struct ledger opened(void)
{
    struct ledger ledger;
    struct sgp_error error = {0};
    cr_assert(zero(int, ledger_open(&ledger, directory, topology, 0, 4, &error)), "%s", error.text);
    return ledger;
}

/* Two commits, then the process is gone: nothing is closed or written back. */
static uint64_t commit_and_vanish(void)
{
    struct ledger ledger = opened();
    cr_assert(not(ledger.found));
    cr_assert(not(ledger.damaged));
    ledger_commit(&ledger, node);
    ledger.minted = 1;
    ledger_commit(&ledger, node);
    free(ledger.record.links);
    return ledger.sequence;
}

static void spoil(long at, size_t bytes)
{
    FILE *file = fopen(path, "r+b");
    cr_assert(file != NULL);
    cr_assert(zero(int, fseek(file, at, SEEK_SET)));
    for (size_t i = 0; i < bytes; i++)
        (void)fputc(0x5a, file);
    (void)fclose(file);
}

static size_t size_of_file(void)
{
    struct stat info;
    cr_assert(zero(int, stat(path, &info)));
    return (size_t)info.st_size;
}

Test(ledger, a_committed_record_is_found)
{
    cr_assert(eq(u64, commit_and_vanish(), 2));
    for (int i = 0; i < 3; i++) { /* opening changes nothing */
        struct ledger ledger = opened();
        cr_assert(ledger.found);
        cr_assert(eq(u64, ledger.sequence, 2));
        cr_assert(eq(u64, ledger.record.incarnation, 7));
        cr_assert(eq(dbl, ledger.record.weight, 1));
        cr_assert(eq(dbl, ledger.minted, 1));
        cr_assert(eq(u32, ledger.record.link_count, 4));
        cr_assert(ledger.record.links[0].out);
        cr_assert(eq(u32, ledger.record.links[0].peer, 1));
        ledger_close(&ledger);
    }
}

Test(ledger, a_ledger_that_was_opened_and_never_written_is_not_damaged)
{
    struct ledger ledger = opened();
    ledger_close(&ledger);
    ledger = opened();
    cr_assert(not(ledger.found));
    cr_assert(not(ledger.damaged));
    cr_assert(eq(u64, ledger.sequence, 0));
    ledger_close(&ledger);
}

Test(ledger, a_damaged_ledger_stays_damaged_until_the_first_commit)
{
    (void)commit_and_vanish();
    spoil(0, size_of_file());
    for (int i = 0; i < 2; i++) { /* the first start fails after opening it */
        struct ledger ledger = opened();
        cr_assert(ledger.damaged);
        cr_assert(not(ledger.found));
        if (i == 1)
            ledger_commit(&ledger, node);
        ledger_close(&ledger);
    }
    struct ledger ledger = opened();
    cr_assert(ledger.found);
    cr_assert(not(ledger.damaged));
    ledger_close(&ledger);
}

Test(ledger, it_grows_with_what_is_in_it)
{
    struct ledger ledger = opened();
    struct sgp_error error = {0};
    ledger_commit(&ledger, node);
    ledger_commit(&ledger, node);
    size_t size = size_of_file();
    cr_assert(zero(int, ledger_grow(&ledger, 4, &error)));
    cr_assert(eq(sz, size_of_file(), size));
    cr_assert(zero(int, ledger_grow(&ledger, 9, &error)), "%s", error.text);
    cr_assert(gt(sz, size_of_file(), size));
    cr_assert(eq(u32, ledger.record.link_capacity, 9));
    struct ledger other = opened(); /* as one that is started after a crash would */
    cr_assert(other.found);
    cr_assert(eq(u64, other.sequence, 2));
    cr_assert(eq(u32, other.record.link_count, 4));
    ledger_close(&other);
    ledger_commit(&ledger, node);
    cr_assert(eq(u64, ledger.sequence, 3));
    ledger_close(&ledger);
}

Test(ledger, a_ledger_that_cannot_grow_stays_as_it_was)
{
    struct ledger ledger = opened();
    struct sgp_error error = {0};
    ledger_commit(&ledger, node);
    cr_assert(zero(int, mkdir(second, 0700)));
    cr_assert(lt(int, ledger_grow(&ledger, 9, &error), 0));
    cr_assert(strstr(error.text, "cannot be written") != NULL);
    cr_assert(eq(u32, ledger.record.link_capacity, 4));
    ledger_commit(&ledger, node);
    cr_assert(zero(int, rmdir(second)));
    ledger_close(&ledger);
    ledger = opened();
    cr_assert(ledger.found);
    cr_assert(eq(u64, ledger.sequence, 2));
    ledger_close(&ledger);
}

/* As on a full disk: no file can be made or grow. */
static void end_of_space(rlim_t bytes)
{
    struct rlimit limit;
    cr_assert(zero(int, getrlimit(RLIMIT_FSIZE, &limit)));
    limit.rlim_cur = bytes;
    cr_assert(zero(int, setrlimit(RLIMIT_FSIZE, &limit)));
    (void)signal(SIGXFSZ, SIG_IGN);
}

Test(ledger, a_sound_one_goes_on_where_no_second_file_can_be_made)
{
    (void)commit_and_vanish();
    cr_assert(zero(int, mkdir(second, 0700)));
    for (uint64_t sequence = 3; sequence < 6; sequence++) {
        struct ledger ledger = opened();
        cr_assert(ledger.found);
        ledger_commit(&ledger, node);
        cr_assert(eq(u64, ledger.sequence, sequence));
        cr_assert(eq(dbl, ledger.minted, 1));
        ledger_close(&ledger);
    }
    cr_assert(zero(int, rmdir(second)));
}

/* Links that the topology does not name any more need room beside those that it names. */
Test(ledger, a_ledger_without_room_for_the_present_links_is_written_anew)
{
    (void)commit_and_vanish();
    size_t size = size_of_file();
    struct ledger ledger;
    struct sgp_error error = {0};
    cr_assert(zero(int, ledger_open(&ledger, directory, topology, 0, 5, &error)));
    cr_assert(ledger.found);
    cr_assert(gt(sz, size_of_file(), size));
    cr_assert(eq(u64, ledger.sequence, 2));
    ledger_close(&ledger);
}

/* A store to a page that the disk has no room for would end the process. */
Test(ledger, a_ledger_file_with_holes_is_filled_before_it_is_used)
{
    struct ledger ledger;
    struct sgp_error error = {0};
    char head[80];
    struct stat info;
    cr_assert(zero(int, ledger_open(&ledger, directory, topology, 0, 4000, &error)));
    ledger_close(&ledger);
    size_t size = size_of_file();
    FILE *file = fopen(path, "r+b");
    cr_assert(eq(sz, fread(head, 1, sizeof head, file), sizeof head));
    cr_assert(zero(int, truncate(path, 0)));
    cr_assert(zero(int, truncate(path, (off_t)size)));
    rewind(file);
    cr_assert(eq(sz, fwrite(head, 1, sizeof head, file), sizeof head));
    (void)fclose(file);
    cr_assert(zero(int, stat(path, &info)));
    cr_assert(lt(sz, (size_t)info.st_blocks * 512, size), "no holes here");
    cr_assert(zero(int, ledger_open(&ledger, directory, topology, 0, 4000, &error)));
    cr_assert(zero(int, stat(path, &info)));
    cr_assert(ge(sz, (size_t)info.st_blocks * 512, size));
    ledger_close(&ledger);
}

Test(ledger, a_full_disk_is_told_and_leaves_no_second_file)
{
    (void)commit_and_vanish();
    struct ledger ledger = opened();
    struct sgp_error error = {0};
    end_of_space(64);
    cr_assert(lt(int, ledger_grow(&ledger, 9, &error), 0));
    cr_assert(eq(str, strrchr(error.text, ':'), ": File too large"), "%s", error.text);
    cr_assert(lt(int, access(second, F_OK), 0), "%s is left", second);
    ledger_close(&ledger);
    (void)unlink(path);
    error = (struct sgp_error){0};
    cr_assert(lt(int, ledger_open(&ledger, directory, topology, 0, 4, &error), 0));
    cr_assert(strstr(error.text, "/ledger: its ") != NULL, "%s", error.text);
    cr_assert(lt(int, access(second, F_OK), 0), "%s is left", second);
}

Test(ledger, what_a_killed_process_left_beside_it_is_no_obstacle)
{
    (void)commit_and_vanish();
    FILE *file = fopen(second, "w");
    (void)fputs("half a ledger", file);
    (void)fclose(file);
    cr_assert(zero(int, chmod(second, 0444)));
    struct ledger ledger = opened();
    struct sgp_error error = {0};
    cr_assert(zero(int, ledger_grow(&ledger, 9, &error)), "%s", error.text);
    cr_assert(lt(int, access(second, F_OK), 0), "%s is left", second);
    ledger_close(&ledger);
}

/* An heir's and a leaver's: what they owe to the count, and that one is on its way out. */
Test(ledger, a_surplus_and_a_bequest_survive)
{
    struct sgp_record_link links[4] = {{.peer = 1,
        .out = true,
        .number = 3,
        .owes = true,
        .owed_round = 5,
        .owed_fraction = 1,
        .owed_weight = 1.5,
        .owed_bequest = 2.25,
        .owed_incarnation = 33}};
    struct sgp_account accounts[2] = {{.kind = SGP_ACCOUNT_ACCEPTED,
                                          .source = "n2",
                                          .target = "gone",
                                          .source_incarnation = 22,
                                          .target_incarnation = 99,
                                          .number = 8},
        {.kind = SGP_ACCOUNT_DEBT,
            .source = "gone",
            .target = "n1",
            .source_incarnation = 99,
            .target_incarnation = 11,
            .number = 4,
            .weight = 0.25}};
    const struct sgp_record record = {.incarnation = 7,
        .weight = 0.5,
        .surplus = 1.25,
        .covered = 0.75,
        .account_count = 2,
        .account_capacity = 2,
        .accounts = accounts,
        .leaving = true,
        .link_count = 1,
        .link_capacity = 4,
        .links = links};
    sgp_node_destroy(node);
    struct sgp_node_config config = {.topology = topology,
        .method = sgp_method_find("sgp"),
        .incarnation = 7,
        .parameters = 4,
        .rounds = 100,
        .local_steps = 1,
        .record = &record};
    cr_assert(zero(int, sgp_node_create(&config, &node)));
    (void)commit_and_vanish();
    struct ledger ledger = opened();
    cr_assert(ledger.found);
    cr_assert(eq(dbl, ledger.record.surplus, 1.25));
    cr_assert(eq(dbl, ledger.record.covered, 0.75));
    cr_assert(eq(u32, ledger.record.account_count, 2));
    cr_assert(eq(str, ledger.record.accounts[0].target, (char *)"gone"));
    cr_assert(eq(u64, ledger.record.accounts[0].number, 8));
    cr_assert(eq(u64, ledger.record.accounts[1].target_incarnation, 11));
    cr_assert(eq(dbl, ledger.record.accounts[1].weight, 0.25));
    cr_assert(ledger.record.leaving);
    cr_assert(not(ledger.record.left));
    cr_assert(eq(dbl, ledger.record.links[0].owed_bequest, 2.25));
    cr_assert(eq(u64, ledger.record.links[0].owed_incarnation, 33));
    ledger_close(&ledger);
}

/* To begin anew would make weight that the fleet has already. */
Test(ledger, one_of_another_version_is_refused_and_left_alone)
{
    struct ledger ledger = opened();
    struct sgp_error error = {0};
    ledger_commit(&ledger, node);
    ledger_close(&ledger);
    uint32_t another = 4;
    FILE *file = fopen(path, "r+b");
    cr_assert_not_null(file);
    cr_assert(zero(int, fseek(file, 8, SEEK_SET)));
    cr_assert(eq(sz, fwrite(&another, sizeof another, 1, file), 1));
    cr_assert(zero(int, fclose(file)));
    struct stat before, after;
    cr_assert(zero(int, stat(path, &before)));
    cr_assert(eq(int, ledger_open(&ledger, directory, topology, 0, 4, &error), SGP_E_STATE));
    cr_assert_not_null(
        strstr(error.text, "another sgpd wrote it (ledger version 4; this one reads 5)"));
    cr_assert(zero(int, stat(path, &after)));
    cr_assert(eq(long, (long)before.st_ino, (long)after.st_ino));
    cr_assert(eq(long, (long)before.st_size, (long)after.st_size));
    cr_assert(eq(int, access(second, F_OK), -1));
}

/* Values of all kinds, under a checksum that is right: a record comes back that can be a node's, or none. */
Test(ledger, one_with_other_values_is_sound_or_damaged)
{
    enum { HEADER = 80, SEQUENCE_AT = 8, BYTES_AT = 16, BODY_AT = 32, TRIALS = 400 };
    (void)commit_and_vanish();
    size_t size = size_of_file(), found = 0;
    uint8_t *bytes = malloc(size);
    FILE *file = fopen(path, "rbe");
    cr_assert(eq(sz, fread(bytes, 1, size, file), size));
    (void)fclose(file);
    uint8_t *slot = bytes + HEADER; /* of the later commit */
    uint64_t used;
    memcpy(&used, slot + BYTES_AT, sizeof used);
    struct sgp_random random;
    sgp_random_init(&random, 6, 0);
    for (int trial = 0; trial < TRIALS; trial++) {
        size_t at = BODY_AT + sgp_random_below(&random, used);
        uint8_t former = slot[at];
        slot[at] = (uint8_t)sgp_random_next(&random);
        uint64_t sum = XXH3_64bits(slot + SEQUENCE_AT, BODY_AT - SEQUENCE_AT + used);
        memcpy(slot, &sum, sizeof sum);
        file = fopen(path, "wbe");
        cr_assert(eq(sz, fwrite(bytes, 1, size, file), size));
        (void)fclose(file);
        struct ledger ledger = opened();
        cr_assert(ledger.found != ledger.damaged, "byte %zu", at);
        bool sound = !ledger.found || sgp_record_is_sound(&ledger.record, 3);
        cr_assert(sound, "byte %zu", at);
        found += ledger.found;
        ledger_close(&ledger);
        slot[at] = former;
    }
    cr_assert(gt(sz, found, TRIALS / 20));
    cr_assert(lt(sz, found, TRIALS));
    free(bytes);
}

Test(ledger, a_torn_slot_leaves_the_one_before)
{
    (void)commit_and_vanish();
    spoil(80 + 20, 8); /* sequence 2 lies in slot 0, behind a header of 80 bytes */
    struct ledger ledger = opened();
    cr_assert(ledger.found);
    cr_assert(eq(u64, ledger.sequence, 1));
    cr_assert(eq(dbl, ledger.minted, 0));
    ledger_close(&ledger);
}

Test(ledger, with_both_slots_torn_it_is_damaged_and_says_so)
{
    (void)commit_and_vanish();
    spoil(80, size_of_file() - 80);
    struct ledger ledger = opened();
    cr_assert(ledger.damaged);
    cr_assert(not(ledger.found));
    cr_assert(zero(u64, ledger.sequence));
    cr_assert(strstr(ledger.reason.text, "damaged") != NULL);
    ledger_close(&ledger);
    ledger = opened(); /* and a new one stands in its place */
    cr_assert(not(ledger.found));
    ledger_close(&ledger);
}

Test(ledger, every_truncation_is_damage)
{
    (void)commit_and_vanish();
    size_t size = size_of_file();
    for (size_t bytes = 1; bytes < size; bytes += 997) {
        (void)unlink(path);
        (void)commit_and_vanish();
        cr_assert(zero(int, truncate(path, (off_t)(size - bytes))));
        struct ledger ledger = opened();
        cr_assert(ledger.damaged);
        ledger_close(&ledger);
    }
}

Test(ledger, an_empty_one_is_damage)
{
    (void)commit_and_vanish();
    cr_assert(zero(int, truncate(path, 0)));
    struct ledger ledger = opened();
    cr_assert(ledger.damaged);
    cr_assert(strstr(ledger.reason.text, "cut off") != NULL);
    ledger_close(&ledger);
}

/* Its weight may be there yet: it is for people to decide that it is lost. */
Test(ledger, one_that_cannot_be_read_is_not_replaced)
{
    struct ledger ledger;
    struct sgp_error error = {0};
    cr_assert(zero(int, mkdir(path, 0700)));
    cr_assert(lt(int, ledger_open(&ledger, directory, topology, 0, 4, &error), 0));
    cr_assert(
        strstr(error.text, "/ledger: cannot be read: Is a directory") != NULL, "%s", error.text);
    cr_assert(zero(int, rmdir(path)));
}

/* Written whole, with its checksum; nothing of what it says is believed then. */
Test(ledger, a_ledger_with_impossible_values_is_damaged_and_none_of_them_is_kept)
{
    const double values[] = {NAN, INFINITY, -1, SGP_NODES_MAX + 1.0};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        struct ledger ledger = opened();
        ledger.minted = values[i];
        ledger_commit(&ledger, node);
        ledger_close(&ledger);
        ledger = opened();
        cr_assert(ledger.damaged);
        cr_assert(not(ledger.found));
        cr_assert(zero(u64, ledger.sequence));
        cr_assert(eq(dbl, ledger.minted, 0));
        cr_assert(eq(dbl, ledger.orphaned, 0));
        cr_assert(strstr(ledger.reason.text, "out of range") != NULL);
        ledger_close(&ledger);
        (void)unlink(path);
    }
}

Test(ledger, another_nodes_is_refused)
{
    (void)commit_and_vanish();
    struct ledger ledger;
    struct sgp_error error = {0};
    cr_assert(eq(int, ledger_open(&ledger, directory, topology, 1, 4, &error), SGP_E_STATE));
    cr_assert(strstr(error.text, "it is the ledger of node n0, and this is n1") != NULL);
}

Test(ledger, a_directory_that_cannot_be_written_is_told)
{
    struct ledger ledger;
    struct sgp_error error = {0};
    cr_assert(eq(int, ledger_open(&ledger, "/nowhere", topology, 0, 4, &error), -ENOENT));
    cr_assert(strstr(error.text, "/nowhere/ledger.new: cannot be written") != NULL);
}

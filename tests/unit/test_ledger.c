/* The ledger's file: what comes back, and what damage does. */
#include "ledger.h"

#include "sgp/generate.h"
#include "sgp/node.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

static struct sgp_topology *topology;
static struct sgp_node *node;
static char directory[] = "/tmp/sgpd-ledger-XXXXXX";
static char path[64];

static void setup(void)
{
    struct sgp_error error = {0};
    struct sgp_generate_options options = {.family = "complete", .nodes = 3};
    cr_assert(zero(int, sgp_generate(&options, &error, &topology)));
    struct sgp_node_config config = {.topology = topology,
        .method = sgp_method_find("sgp"),
        .lineage = 7,
        .parameters = 4,
        .rounds = 100,
        .local_steps = 1,
        .start = SGP_START_ALL};
    cr_assert(zero(int, sgp_node_create(&config, &node)));
    cr_assert(mkdtemp(directory) != NULL);
    (void)snprintf(path, sizeof path, "%s/ledger", directory);
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

Test(ledger, what_was_committed_is_found)
{
    cr_assert(eq(u64, commit_and_vanish(), 2));
    for (int i = 0; i < 3; i++) { /* opening changes nothing */
        struct ledger ledger = opened();
        cr_assert(ledger.found);
        cr_assert(eq(u64, ledger.sequence, 2));
        cr_assert(eq(u64, ledger.record.lineage, 7));
        cr_assert(eq(dbl, ledger.record.weight, 1));
        cr_assert(eq(dbl, ledger.minted, 1));
        cr_assert(eq(u32, ledger.record.link_count, 4));
        cr_assert(ledger.record.links[0].out);
        cr_assert(eq(u32, ledger.record.links[0].peer, 1));
        ledger_close(&ledger);
    }
}

Test(ledger, one_that_was_opened_and_never_written_is_no_loss)
{
    struct ledger ledger = opened();
    ledger_close(&ledger);
    ledger = opened();
    cr_assert(not(ledger.found));
    cr_assert(not(ledger.damaged));
    cr_assert(eq(u64, ledger.sequence, 0));
    ledger_close(&ledger);
}

Test(ledger, one_that_was_damaged_stays_so_until_the_first_commit)
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

Test(ledger, what_cannot_grow_stays_as_it_was)
{
    struct ledger ledger = opened();
    struct sgp_error error = {0};
    ledger_commit(&ledger, node);
    char blocked[80];
    (void)snprintf(blocked, sizeof blocked, "%s.new", path);
    cr_assert(zero(int, mkdir(blocked, 0700)));
    cr_assert(lt(int, ledger_grow(&ledger, 9, &error), 0));
    cr_assert(strstr(error.text, "cannot be written") != NULL);
    cr_assert(eq(u32, ledger.record.link_capacity, 4));
    ledger_commit(&ledger, node);
    cr_assert(zero(int, rmdir(blocked)));
    ledger_close(&ledger);
    ledger = opened();
    cr_assert(ledger.found);
    cr_assert(eq(u64, ledger.sequence, 2));
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
        .owed_bequest = 2.25}};
    const struct sgp_record record = {.lineage = 7,
        .weight = 0.5,
        .surplus = 1.25,
        .leaving = true,
        .link_count = 1,
        .link_capacity = 4,
        .links = links};
    sgp_node_destroy(node);
    struct sgp_node_config config = {.topology = topology,
        .method = sgp_method_find("sgp"),
        .lineage = 7,
        .parameters = 4,
        .rounds = 100,
        .local_steps = 1,
        .record = &record};
    cr_assert(zero(int, sgp_node_create(&config, &node)));
    (void)commit_and_vanish();
    struct ledger ledger = opened();
    cr_assert(ledger.found);
    cr_assert(eq(dbl, ledger.record.surplus, 1.25));
    cr_assert(ledger.record.leaving);
    cr_assert(not(ledger.record.left));
    cr_assert(eq(dbl, ledger.record.links[0].owed_bequest, 2.25));
    ledger_close(&ledger);
}

/* What both ends of a link know, and what this node has too much. */
Test(ledger, what_has_passed_and_former_lineages_survive)
{
    struct sgp_record_link links[4] = {
        {.peer = 1, .out = true, .lineage = 5, .number = 3, .passed = 1.0 / 3},
        {.peer = 2,
            .lineage = 6,
            .number = 4,
            .uncounted = true,
            .former = {.lineage = 8, .number = 9, .passed = 2.5, .uncounted = true}}};
    const struct sgp_record record = {.lineage = 7,
        .weight = 0.5,
        .unsettled = -0.125,
        .link_count = 2,
        .link_capacity = 4,
        .links = links};
    sgp_node_destroy(node);
    struct sgp_node_config config = {.topology = topology,
        .method = sgp_method_find("sgp"),
        .lineage = 7,
        .parameters = 4,
        .rounds = 100,
        .local_steps = 1,
        .record = &record};
    cr_assert(zero(int, sgp_node_create(&config, &node)));
    (void)commit_and_vanish();
    struct ledger ledger = opened();
    cr_assert(ledger.found);
    cr_assert(eq(dbl, ledger.record.unsettled, -0.125));
    const struct sgp_record_link *out = &ledger.record.links[0], *in = &ledger.record.links[3];
    cr_assert(eq(dbl, out->passed, 1.0 / 3));
    cr_assert(not(out->uncounted));
    cr_assert(in->uncounted);
    cr_assert(eq(u64, in->former.lineage, 8));
    cr_assert(eq(u64, in->former.number, 9));
    cr_assert(eq(dbl, in->former.passed, 2.5));
    cr_assert(in->former.uncounted);
    ledger_close(&ledger);
}

/* A ledger of version 2, with its slots and links as they were then. */
struct old_link {
    char name[SGP_NAME_BYTES];
    uint64_t lineage, number;
    int64_t owed_round;
    double owed_fraction, owed_weight, owed_bequest;
    uint32_t out, owes;
};
struct old_file {
    char magic[8];
    uint32_t version, link_capacity;
    char name[SGP_NAME_BYTES];
    struct {
        uint64_t checksum, sequence, lineage;
        int64_t round;
        double weight, surplus, minted;
        uint32_t trained, gave, leaving, left, link_count, reserved;
        struct old_link links[2];
    } slots[2];
};

Test(ledger, one_of_version_2_is_read_and_has_not_counted)
{
    struct old_file old = {.magic = {'S', 'G', 'P', 'L', 'E', 'D', 'G', 'R'},
        .version = 2,
        .link_capacity = 2,
        .name = "n0"};
    old.slots[1].sequence = 5;
    old.slots[1].lineage = 7;
    old.slots[1].round = 12;
    old.slots[1].weight = 0.75;
    old.slots[1].minted = 1;
    old.slots[1].link_count = 2;
    old.slots[1].links[0] = (struct old_link){.name = "n1",
        .lineage = 5,
        .number = 3,
        .owed_round = 11,
        .owed_fraction = 0.5,
        .owed_weight = 0.25,
        .out = 1,
        .owes = 1};
    old.slots[1].links[1] = (struct old_link){.name = "n2", .lineage = 6, .number = 4};
    old.slots[1].checksum = XXH3_64bits(&old.slots[1].sequence, sizeof old.slots[1] - 8);
    FILE *file = fopen(path, "wb");
    cr_assert(file != NULL && fwrite(&old, sizeof old, 1, file) == 1 && fclose(file) == 0);
    for (int i = 0; i < 2; i++) { /* the second time it is of the present version */
        struct ledger ledger = opened();
        cr_assert(ledger.found, "%s", ledger.reason.text);
        cr_assert(eq(u64, ledger.sequence, 5));
        cr_assert(eq(i64, ledger.record.round, 12));
        cr_assert(eq(dbl, ledger.record.weight, 0.75));
        cr_assert(eq(dbl, ledger.record.unsettled, 0));
        cr_assert(eq(dbl, ledger.minted, 1));
        cr_assert(eq(u32, ledger.record.link_count, 2));
        const struct sgp_record_link *links = ledger.record.links;
        cr_assert(links[0].out && links[0].owes && links[0].peer == 1 && links[0].uncounted);
        cr_assert(eq(dbl, links[0].owed_weight, 0.25));
        cr_assert(eq(dbl, links[0].passed, 0));
        cr_assert(links[1].out == false && links[1].peer == 2 && links[1].uncounted);
        cr_assert(eq(u64, links[1].number, 4));
        cr_assert(zero(u64, links[1].former.lineage));
        ledger_close(&ledger);
    }
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
    for (size_t bytes = 1; bytes < size; bytes += 7) {
        (void)unlink(path);
        (void)commit_and_vanish();
        cr_assert(zero(int, truncate(path, (off_t)(size - bytes))));
        struct ledger ledger = opened();
        cr_assert(ledger.damaged);
        ledger_close(&ledger);
    }
}

/* Written whole, with its checksum; nothing of what it says is believed then. */
Test(ledger, one_whose_values_cannot_be_is_damaged_and_none_of_them_is_kept)
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

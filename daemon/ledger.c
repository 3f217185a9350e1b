/* The mapped file behind the ledger; see ledger.h. */
#include "ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xxhash.h>

#define VERSION 3u
#define VERSION_FIRST 2u               /* that can be read */
#define LINKS_MAX (2u * SGP_NODES_MAX) /* a file that claims more is damaged */
#define PATH_BYTES 4096u

static const char magic[8] = {'S', 'G', 'P', 'L', 'E', 'D', 'G', 'R'};

struct file_header {
    char magic[8];
    uint32_t version;
    uint32_t link_capacity; /* of each slot */
    char name[SGP_NAME_BYTES];
};

struct file_link {
    char name[SGP_NAME_BYTES]; /* of the peer; an index would not survive a new topology */
    uint64_t lineage, number;
    int64_t owed_round;
    double owed_fraction, owed_weight, owed_bequest;
    uint32_t out, owes;
    /* from version 3 on */
    double passed, former_passed;
    uint64_t former_lineage, former_number;
    uint32_t uncounted, former_uncounted;
};

struct file_slot {
    uint64_t checksum; /* XXH3-64 of the rest, up to the last entry in use */
    uint64_t sequence; /* 1, 2, ...; 0: never written */
    uint64_t lineage;
    int64_t round;
    double weight, surplus, minted;
    uint32_t trained, gave, leaving, left;
    uint32_t link_count, reserved;
    double unsettled; /* from version 3 on */
    struct file_link links[];
};

/* A version begins as the one before it: so much of a slot, and of a link, is of it. */
struct extent {
    size_t slot, link;
};
static const struct extent extents[] = {
    {offsetof(struct file_slot, unsettled), offsetof(struct file_link, passed)},
    {sizeof(struct file_slot), sizeof(struct file_link)},
};

static size_t slot_size(uint32_t version, uint32_t links)
{
    const struct extent *extent = &extents[version - VERSION_FIRST];
    return extent->slot + links * extent->link;
}

static uint64_t checksum(uint32_t version, const struct file_slot *slot)
{
    return XXH3_64bits(
        &slot->sequence, slot_size(version, slot->link_count) - sizeof slot->checksum);
}

/* ---- reading what an earlier process left ---- */

static const struct file_slot *slot_in(const unsigned char *bytes, size_t i)
{
    const struct file_header *header = (const void *)bytes;
    return (const void *)(bytes + sizeof *header +
                          i * slot_size(header->version, header->link_capacity));
}

/* The whole slot of the greatest sequence, or NULL. */
static const struct file_slot *latest(const unsigned char *bytes)
{
    const struct file_header *header = (const void *)bytes;
    const struct file_slot *best = NULL;
    for (size_t i = 0; i < 2; i++) {
        const struct file_slot *slot = slot_in(bytes, i);
        bool whole = slot->sequence > 0 && slot->link_count <= header->link_capacity &&
                     slot->trained <= 1 && slot->gave <= 1 && slot->leaving <= 1 &&
                     slot->left <= 1 && slot->checksum == checksum(header->version, slot);
        if (whole && (best == NULL || slot->sequence > best->sequence))
            best = slot;
    }
    return best;
}

/* Whether no commit was ever begun: the process ended before that, and owes nothing. */
static bool is_blank(const unsigned char *bytes)
{
    bool blank = true;
    for (size_t i = 0; i < 2; i++) {
        const struct file_slot *slot = slot_in(bytes, i);
        blank = blank && slot->checksum == 0 && slot->sequence == 0;
    }
    return blank;
}

static bool reserve(struct sgp_record *record, uint32_t links)
{
    if (links <= record->link_capacity)
        return true;
    void *memory = realloc(record->links, links * sizeof *record->links);
    if (memory == NULL)
        return false;
    record->links = memory;
    record->link_capacity = links;
    return true;
}

/* Link i of a slot; nothing where its version has no field. */
static struct file_link link_in(uint32_t version, const struct file_slot *slot, uint32_t i)
{
    const struct extent *extent = &extents[version - VERSION_FIRST];
    struct file_link link = {.uncounted = version < 3};
    memcpy(&link, (const char *)slot + extent->slot + i * extent->link, extent->link);
    return link;
}

static struct sgp_record_link decode_link(const struct file_link *from, uint32_t peer)
{
    return (struct sgp_record_link){.peer = peer,
        .out = from->out == 1,
        .lineage = from->lineage,
        .number = from->number,
        .owes = from->owes == 1,
        .owed_round = from->owed_round,
        .owed_fraction = from->owed_fraction,
        .owed_weight = from->owed_weight,
        .owed_bequest = from->owed_bequest,
        .passed = from->passed,
        .uncounted = from->uncounted == 1 && from->number > 0,
        .former = {from->former_lineage, from->former_number, from->former_passed,
            from->former_uncounted == 1}};
}

/* Names to indices. What is owed to a node that is gone from the topology cannot be settled. */
static void decode(struct ledger *ledger, uint32_t version, const struct file_slot *slot)
{
    struct sgp_record *record = &ledger->record;
    record->lineage = slot->lineage;
    record->round = slot->round;
    record->trained = slot->trained;
    record->gave = slot->gave;
    record->weight = slot->weight;
    record->surplus = slot->surplus;
    record->leaving = slot->leaving;
    record->left = slot->left;
    record->unsettled = version < 3 ? 0 : slot->unsettled;
    record->link_count = 0;
    for (uint32_t i = 0; i < slot->link_count; i++) {
        struct file_link from = link_in(version, slot, i);
        bool named = memchr(from.name, '\0', sizeof from.name) != NULL;
        int64_t peer = named ? sgp_topology_find(ledger->topology, from.name) : -1;
        if (peer < 0)
            ledger->orphaned += from.owes ? from.owed_weight : 0;
        else
            record->links[record->link_count++] = decode_link(&from, (uint32_t)peer);
    }
    record->weight += ledger->orphaned;
    ledger->sequence = slot->sequence;
    ledger->minted = slot->minted;
}

static void spoil(struct ledger *ledger, const char *path, const char *what)
{
    ledger->damaged = true;
    ledger->sequence = 0;
    ledger->minted = 0;
    ledger->orphaned = 0;
    (void)sgp_fail(&ledger->reason, SGP_E_DATA, "%s: %s", path, what);
}

static int use(struct ledger *ledger, const char *path, const unsigned char *bytes, size_t size,
    const char *name, struct sgp_error *error)
{
    const struct file_header *header = (const void *)bytes;
    bool sound = size >= sizeof *header && memcmp(header->magic, magic, sizeof magic) == 0 &&
                 header->version >= VERSION_FIRST && header->version <= VERSION &&
                 header->link_capacity <= LINKS_MAX &&
                 size == sizeof *header + 2 * slot_size(header->version, header->link_capacity) &&
                 memchr(header->name, '\0', sizeof header->name) != NULL;
    if (!sound) {
        spoil(ledger, path, "not a ledger of this version, or cut off");
        return 0;
    }
    if (strcmp(header->name, name) != 0)
        return sgp_fail(error, SGP_E_STATE,
            "%s: it is the ledger of node %s, and this is %s; give each node a state_directory of "
            "its own",
            path, header->name, name);
    if (is_blank(bytes))
        return 0;
    const struct file_slot *slot = latest(bytes);
    if (slot == NULL) {
        spoil(ledger, path, "damaged (no part of it has a matching checksum)");
        return 0;
    }
    /* Edges that the topology has no more stay links: what is owed over them is settled. */
    if (!reserve(&ledger->record, ledger->record.link_capacity + slot->link_count))
        return sgp_fail(error, -ENOMEM, "%s: out of memory", path);
    decode(ledger, header->version, slot);
    ledger->found = sgp_record_is_sound(&ledger->record, ledger->topology->node_count) &&
                    ledger->minted >= 0 && ledger->minted <= SGP_NODES_MAX;
    if (!ledger->found)
        spoil(ledger, path, "a value of it is out of range");
    return 0;
}

static int read_file(
    struct ledger *ledger, const char *path, const char *name, struct sgp_error *error)
{
    FILE *file = fopen(path, "rbe");
    if (file == NULL && errno == ENOENT)
        return 0;
    if (file == NULL)
        return sgp_fail(error, -errno, "%s: cannot be read: %s", path, strerror(errno));
    size_t most = sizeof(struct file_header) + 2 * slot_size(VERSION, LINKS_MAX) + 1;
    long end = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    size_t size = end > 0 && (size_t)end < most ? (size_t)end : 0;
    unsigned char *bytes = malloc(size + 1);
    rewind(file);
    bool whole = bytes != NULL && fread(bytes, 1, size, file) == size;
    (void)fclose(file);
    int code = bytes == NULL ? -ENOMEM : 0;
    if (bytes != NULL)
        code = use(ledger, path, bytes, whole ? size : 0, name, error);
    free(bytes);
    return code;
}

/* ---- the file of today ---- */

static struct file_slot *slot_at(const struct ledger *ledger, uint64_t sequence)
{
    return (void *)(ledger->map + sizeof(struct file_header) + sequence % 2 * ledger->slot_bytes);
}

static void encode_link(
    const struct ledger *ledger, const struct sgp_record_link *from, struct file_link *to)
{
    memcpy(to->name, ledger->topology->nodes[from->peer].name, sizeof to->name);
    to->lineage = from->lineage;
    to->number = from->number;
    to->owed_round = from->owed_round;
    to->owed_fraction = from->owed_fraction;
    to->owed_weight = from->owed_weight;
    to->owed_bequest = from->owed_bequest;
    to->out = from->out;
    to->owes = from->owes;
    to->passed = from->passed;
    to->uncounted = from->uncounted;
    to->former_lineage = from->former.lineage;
    to->former_number = from->former.number;
    to->former_passed = from->former.passed;
    to->former_uncounted = from->former.uncounted;
}

static void write_slot(struct ledger *ledger, uint64_t sequence)
{
    const struct sgp_record *record = &ledger->record;
    struct file_slot *slot = slot_at(ledger, sequence);
    slot->checksum = 0;
    atomic_signal_fence(
        memory_order_seq_cst); /* the kernel keeps stores in the order of the program */
    slot->sequence = sequence;
    slot->lineage = record->lineage;
    slot->round = record->round;
    slot->weight = record->weight;
    slot->surplus = record->surplus;
    slot->minted = ledger->minted;
    slot->trained = record->trained;
    slot->gave = record->gave;
    slot->leaving = record->leaving;
    slot->left = record->left;
    slot->unsettled = record->unsettled;
    slot->link_count = record->link_count;
    for (uint32_t i = 0; i < record->link_count; i++)
        encode_link(ledger, &record->links[i], &slot->links[i]);
    uint64_t sum = checksum(VERSION, slot);
    atomic_signal_fence(memory_order_seq_cst);
    slot->checksum = sum;
    atomic_signal_fence(memory_order_seq_cst);
    ledger->sequence = sequence;
}

static int map(struct ledger *ledger, int fd)
{
    if (ftruncate(fd, (off_t)ledger->map_bytes) < 0)
        return -errno;
    int code = -posix_fallocate(fd, 0, (off_t)ledger->map_bytes); /* a full disk must say so now */
    if (code < 0)
        return code;
    void *memory = mmap(NULL, ledger->map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED)
        return -errno;
    ledger->map = memory;
    return 0;
}

/* A new file under a temporary name, with what was found in the old one, then in its place. */
static int replace(struct ledger *ledger, struct sgp_error *error)
{
    const char *path = ledger->path;
    char temporary[PATH_BYTES + 8];
    (void)snprintf(temporary, sizeof temporary, "%s.new", path);
    int fd = open(temporary, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0640);
    if (fd < 0)
        return sgp_fail(error, -errno, "%s: cannot be written: %s", temporary, strerror(errno));
    ledger->slot_bytes = slot_size(VERSION, ledger->record.link_capacity);
    ledger->map_bytes = sizeof(struct file_header) + 2 * ledger->slot_bytes;
    int code = map(ledger, fd);
    if (code == 0) {
        struct file_header header = {
            .version = VERSION, .link_capacity = ledger->record.link_capacity};
        memcpy(header.magic, magic, sizeof magic);
        memcpy(header.name, ledger->name, sizeof header.name);
        memcpy(ledger->map, &header, sizeof header);
        if (ledger->sequence > 0)
            write_slot(ledger, ledger->sequence);
        else if (ledger->damaged) /* without a checksum: a start that fails hides nothing */
            slot_at(ledger, 0)->sequence = 1;
        code = fsync(fd) < 0 || rename(temporary, path) < 0 ? -errno : 0;
    }
    (void)close(fd);
    if (code < 0)
        return sgp_fail(error, code, "%s: cannot be written: %s", temporary, sgp_strerror(code));
    return 0;
}

int ledger_open(struct ledger *ledger, const char *directory, const struct sgp_topology *topology,
    uint32_t self, uint32_t link_capacity, struct sgp_error *error)
{
    const char *name = topology->nodes[self].name;
    size_t path_bytes = strlen(directory) + sizeof "/ledger";
    *ledger = (struct ledger){.topology = topology};
    if (path_bytes > PATH_BYTES)
        return sgp_fail(error, -ENAMETOOLONG, "%s: the path is too long", directory);
    (void)snprintf(ledger->name, sizeof ledger->name, "%s", name);
    ledger->path = malloc(path_bytes);
    ledger->record.link_capacity = link_capacity;
    ledger->record.links = calloc(link_capacity + 1u, sizeof *ledger->record.links);
    int code = 0;
    if (ledger->path == NULL || ledger->record.links == NULL) {
        code = sgp_fail(error, -ENOMEM, "%s/ledger: out of memory", directory);
    } else {
        (void)snprintf(ledger->path, path_bytes, "%s/ledger", directory);
        code = read_file(ledger, ledger->path, name, error);
    }
    if (code == 0)
        code = replace(ledger, error);
    if (code < 0)
        ledger_close(ledger);
    return code;
}

int ledger_grow(struct ledger *ledger, uint32_t link_capacity, struct sgp_error *error)
{
    struct ledger former = *ledger;
    if (link_capacity <= former.record.link_capacity)
        return 0;
    if (!reserve(&ledger->record, link_capacity))
        return sgp_fail(error, -ENOMEM, "%s: out of memory", ledger->path);
    ledger->map = NULL;
    int code = replace(ledger, error);
    unsigned char *unused = code == 0 ? former.map : ledger->map;
    size_t unused_bytes = code == 0 ? former.map_bytes : ledger->map_bytes;
    if (unused != NULL)
        (void)munmap(unused, unused_bytes);
    if (code < 0) { /* the larger array may stay */
        ledger->record.link_capacity = former.record.link_capacity;
        ledger->map = former.map;
        ledger->map_bytes = former.map_bytes;
        ledger->slot_bytes = former.slot_bytes;
    }
    return code;
}

void ledger_commit(struct ledger *ledger, const struct sgp_node *node)
{
    sgp_node_record(node, &ledger->record);
    write_slot(ledger, ledger->sequence + 1);
}

void ledger_close(struct ledger *ledger)
{
    if (ledger->map != NULL)
        (void)munmap(ledger->map, ledger->map_bytes);
    free(ledger->record.links);
    free(ledger->path);
    ledger->map = NULL;
    ledger->record.links = NULL;
    ledger->path = NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The mapped file behind the ledger; see ledger.h. */
#include "ledger.h"

#include "base/schema.h"
#include "core/record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#define VERSION 5u
#define LINKS_MAX (2u * SGP_NODES_MAX) /* a file that claims more is damaged */
#define PATH_BYTES 4096u

static const char magic[8] = {'S', 'G', 'P', 'L', 'E', 'D', 'G', 'R'};

struct file_header {
    char magic[8];
    uint32_t version;
    uint32_t link_capacity; /* of each slot */
    char name[SGP_NAME_BYTES];
};

struct file_slot {
    uint64_t checksum; /* XXH3-64 of the rest, up to the last byte in use */
    uint64_t sequence; /* 1, 2, ...; 0: never written */
    uint64_t bytes;    /* in use, of the body */
    double minted;
    uint8_t body[]; /* the record; its links, each behind its peer's name; its accounts */
};

struct ledger_spans {
    struct sgp_schema_spans record, link, account;
};

static struct ledger_spans *find_spans(void)
{
    struct ledger_spans *spans = malloc(sizeof *spans);
    if (spans == NULL)
        return NULL;
    sgp_schema_find_spans(&sgp_record_schema, &spans->record);
    sgp_schema_find_spans(&sgp_record_link_schema, &spans->link);
    sgp_schema_find_spans(&sgp_account_schema, &spans->account);
    return spans;
}

static size_t body_bytes(uint32_t links, uint32_t accounts)
{
    return sgp_schema_bytes(&sgp_record_schema) +
           links * (SGP_NAME_BYTES + sgp_schema_bytes(&sgp_record_link_schema)) +
           accounts * sgp_schema_bytes(&sgp_account_schema);
}

static size_t slot_size(uint32_t links)
{
    size_t bytes = sizeof(struct file_slot) + body_bytes(links, SGP_ACCOUNTS_MAX);
    return bytes + -bytes % _Alignof(struct file_slot);
}

static uint64_t checksum(const struct file_slot *slot)
{
    size_t head = offsetof(struct file_slot, body) - offsetof(struct file_slot, sequence);
    return XXH3_64bits(&slot->sequence, head + slot->bytes);
}

/* ---- reading what an earlier process left ---- */

static const struct file_slot *slot_in(const struct file_header *header, size_t i)
{
    size_t bytes = slot_size(header->link_capacity);
    return (const void *)((uintptr_t)header + sizeof *header + i * bytes);
}

/* The valid slot with the greatest sequence, or NULL. */
static const struct file_slot *latest(const struct file_header *header)
{
    const struct file_slot *best = NULL;
    for (size_t i = 0; i < 2; i++) {
        const struct file_slot *slot = slot_in(header, i);
        bool whole = slot->sequence > 0 &&
                     slot->bytes <= body_bytes(header->link_capacity, SGP_ACCOUNTS_MAX) &&
                     slot->checksum == checksum(slot);
        if (whole && (best == NULL || slot->sequence > best->sequence))
            best = slot;
    }
    return best;
}

/* Whether no commit was ever begun. Then the process ended before its first commit, and owes
 * nothing. */
static bool is_blank(const struct file_header *header)
{
    bool blank = true;
    for (size_t i = 0; i < 2; i++) {
        const struct file_slot *slot = slot_in(header, i);
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

/* Translate names to present indices. Weight owed to a node that no longer exists is orphaned.
 * NULL: a value is out of range. */
static const uint8_t *decode_links(struct ledger *ledger, const uint8_t *at, uint32_t count)
{
    struct sgp_record *record = &ledger->record;
    record->link_count = 0;
    for (uint32_t i = 0; at != NULL && i < count; i++) {
        struct sgp_record_link *link = &record->links[record->link_count];
        bool named = memchr(at, '\0', SGP_NAME_BYTES) != NULL;
        int64_t peer = named ? sgp_topology_find(ledger->topology, (const char *)at) : -1;
        at = sgp_schema_take(&sgp_record_link_schema, at + SGP_NAME_BYTES, link);
        if (at != NULL && peer < 0)
            ledger->orphaned += link->owes ? link->owed_weight : 0;
        if (at == NULL || peer < 0)
            continue;
        link->peer = (uint32_t)peer;
        link->owed_kept = false; /* the snapshot belonged to the former process */
        record->link_count++;
    }
    return at;
}

/* Weight that other nodes left to this node. A debt to a node that the topology does not name
 * cannot be settled either. */
static const uint8_t *decode_accounts(struct ledger *ledger, const uint8_t *at, uint32_t count)
{
    struct sgp_record *record = &ledger->record;
    record->account_count = 0;
    for (uint32_t i = 0; at != NULL && i < count; i++) {
        struct sgp_account *account = &record->accounts[record->account_count];
        at = sgp_schema_take(&sgp_account_schema, at, account);
        bool struck = at != NULL && account->kind == SGP_ACCOUNT_DEBT &&
                      sgp_topology_find(ledger->topology, account->target) < 0;
        ledger->orphaned += struck ? account->weight : 0;
        record->account_count += at != NULL && !struck;
    }
    return at;
}

/* Returns 0, -ENOMEM, or SGP_E_DATA: a value is out of range. */
static int decode(struct ledger *ledger, const struct file_slot *slot)
{
    struct sgp_record *record = &ledger->record;
    if (slot->bytes < body_bytes(0, 0))
        return SGP_E_DATA;
    const uint8_t *at = sgp_schema_take(&sgp_record_schema, slot->body, record);
    uint32_t links = record->link_count, accounts = record->account_count;
    if (at == NULL || links > LINKS_MAX || slot->bytes != body_bytes(links, accounts))
        return SGP_E_DATA;
    if (!reserve(record, links))
        return -ENOMEM;
    at = decode_links(ledger, at, links);
    if (at != NULL)
        at = decode_accounts(ledger, at, accounts);
    record->weight += ledger->orphaned;
    ledger->sequence = slot->sequence;
    ledger->minted = slot->minted;
    bool sound = at != NULL && sgp_record_is_sound(record, ledger->topology->node_count) &&
                 ledger->minted >= 0 && ledger->minted <= SGP_NODES_MAX;
    return sound ? 0 : SGP_E_DATA;
}

static void spoil(struct ledger *ledger, const char *path, const char *what)
{
    ledger->damaged = true;
    ledger->sequence = 0;
    ledger->minted = 0;
    ledger->orphaned = 0;
    (void)sgp_fail(&ledger->reason, SGP_E_DATA, "%s: %s", path, what);
}

/* Leaves ret_capacity unchanged unless the file can be continued as it is. */
static int use(struct ledger *ledger, const char *path, const unsigned char *bytes, size_t size,
    struct sgp_error *error, uint32_t *ret_capacity)
{
    const struct file_header *header = (const void *)bytes;
    bool ours = size >= sizeof *header && memcmp(header->magic, magic, sizeof magic) == 0;
    /* valid for its own version, so it must not be replaced */
    if (ours && header->version != VERSION)
        return sgp_fail(error, SGP_E_STATE,
            "%s: another sgpd wrote it (ledger version %u; this one reads %u); start that one "
            "again, or retire the node with it (sgpctl leave) and start this one as a new member",
            path, header->version, VERSION);
    bool sound = ours && header->link_capacity <= LINKS_MAX &&
                 size == sizeof *header + 2 * slot_size(header->link_capacity) &&
                 memchr(header->name, '\0', sizeof header->name) != NULL;
    if (!sound) {
        spoil(ledger, path, "not a ledger of this version, or cut off");
        return 0;
    }
    if (strcmp(header->name, ledger->name) != 0)
        return sgp_fail(error, SGP_E_STATE,
            "%s: it is the ledger of node %s, and this is %s; give each node a state_directory of "
            "its own",
            path, header->name, ledger->name);
    if (is_blank(header)) {
        *ret_capacity = header->link_capacity;
        return 0;
    }
    const struct file_slot *slot = latest(header);
    if (slot == NULL) {
        spoil(ledger, path, "damaged (no part of it has a matching checksum)");
        return 0;
    }
    int code = decode(ledger, slot);
    if (code == -ENOMEM)
        return sgp_fail(error, code, "%s: out of memory", path);
    ledger->found = code == 0;
    if (ledger->found)
        *ret_capacity = header->link_capacity;
    else
        spoil(ledger, path, "a value of it is out of range");
    return 0;
}

/* The size of a file that can be read, or -errno. */
static off_t size_of(int fd)
{
    struct stat info;
    if (fd < 0 || fstat(fd, &info) < 0)
        return -errno;
    if (!S_ISREG(info.st_mode))
        return S_ISDIR(info.st_mode) ? -EISDIR : -EINVAL;
    return info.st_size;
}

/* An existing file that cannot be read may be valid, so it must not be replaced. */
static int read_file(struct ledger *ledger, struct sgp_error *error, uint32_t *ret_capacity)
{
    const char *path = ledger->path;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    if (fd < 0 && errno == ENOENT)
        return 0;
    off_t size = size_of(fd);
    bool fits = size <= (off_t)(sizeof(struct file_header) + 2 * slot_size(LINKS_MAX));
    unsigned char *bytes = NULL;
    ssize_t count = 0;
    int code = size < 0 ? (int)size : 0;
    if (code == 0 && fits && (bytes = malloc((size_t)size + 1)) == NULL)
        code = -ENOMEM;
    if (bytes != NULL && (count = pread(fd, bytes, (size_t)size, 0)) < 0)
        code = -errno;
    if (fd >= 0)
        (void)close(fd);
    if (code == 0)
        code = use(ledger, path, bytes, (size_t)count, error, ret_capacity);
    else
        (void)sgp_fail(error, code, "%s: cannot be read: %s", path, sgp_strerror(code));
    free(bytes);
    return code;
}

/* ---- the present file ---- */

static struct file_slot *slot_at(const struct ledger *ledger, uint64_t sequence)
{
    return (void *)(ledger->map + sizeof(struct file_header) + sequence % 2 * ledger->slot_bytes);
}

/* Returns how many bytes were written. */
static uint64_t encode(const struct ledger *ledger, uint8_t *body)
{
    const struct sgp_record *record = &ledger->record;
    uint8_t *at = sgp_schema_put(&ledger->spans->record, record, body);
    for (uint32_t i = 0; i < record->link_count; i++) {
        memcpy(at, ledger->topology->nodes[record->links[i].peer].name, SGP_NAME_BYTES);
        at = sgp_schema_put(&ledger->spans->link, &record->links[i], at + SGP_NAME_BYTES);
    }
    for (uint32_t i = 0; i < record->account_count; i++)
        at = sgp_schema_put(&ledger->spans->account, &record->accounts[i], at);
    return (uint64_t)(at - body);
}

static void write_slot(struct ledger *ledger, uint64_t sequence)
{
    struct file_slot *slot = slot_at(ledger, sequence);
    slot->checksum = 0;
    atomic_signal_fence(memory_order_seq_cst); /* the kernel sees stores in the program's order */
    slot->sequence = sequence;
    slot->minted = ledger->minted;
    slot->bytes = encode(ledger, slot->body);
    uint64_t sum = checksum(slot);
    atomic_signal_fence(memory_order_seq_cst);
    slot->checksum = sum;
    atomic_signal_fence(memory_order_seq_cst);
    ledger->sequence = sequence;
}

/* Store to the file from now on. A page for which the disk had no room would end the process later,
 * so room is allocated first. */
static int map(struct ledger *ledger, int fd, uint32_t capacity)
{
    ledger->slot_bytes = slot_size(capacity);
    ledger->map_bytes = sizeof(struct file_header) + 2 * ledger->slot_bytes;
    if (ftruncate(fd, (off_t)ledger->map_bytes) < 0)
        return -errno;
    int code = -posix_fallocate(fd, 0, (off_t)ledger->map_bytes);
    if (code < 0)
        return code;
    void *memory = mmap(NULL, ledger->map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED)
        return -errno;
    ledger->map = memory;
    return 0;
}

static void begin(struct ledger *ledger, uint32_t capacity)
{
    struct file_header header = {.version = VERSION, .link_capacity = capacity};
    sgp_assert(ledger->map != NULL);
    memcpy(header.magic, magic, sizeof magic);
    memcpy(header.name, ledger->name, sizeof header.name);
    memcpy(ledger->map, &header, sizeof header);
    if (ledger->sequence > 0)
        write_slot(ledger, ledger->sequence);
    else if (ledger->damaged) /* no checksum: a failed start must not hide the damage */
        slot_at(ledger, 0)->sequence = 1;
}

/* Write a new file under a temporary name, with the contents of the old one. Then rename it to the
 * ledger's name. */
static int replace(struct ledger *ledger, uint32_t capacity, struct sgp_error *error)
{
    const char *path = ledger->path;
    char temporary[PATH_BYTES + 8];
    (void)snprintf(temporary, sizeof temporary, "%s.new", path);
    (void)unlink(temporary); /* left by a process that was killed */
    int fd = open(temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
    if (fd < 0)
        return sgp_fail(error, -errno, "%s: cannot be written: %s", temporary, strerror(errno));
    int code = map(ledger, fd, capacity);
    if (code == 0) {
        begin(ledger, capacity);
        code = fsync(fd) < 0 || rename(temporary, path) < 0 ? -errno : 0;
    }
    (void)close(fd);
    if (code == 0)
        return 0;
    (void)unlink(temporary);
    return sgp_fail(error, code, "%s: its %zu bytes cannot be written: %s", path, ledger->map_bytes,
        sgp_strerror(code));
}

/* Continue the file that was read, if possible. This takes no space of a disk that may be full. */
static bool go_on(struct ledger *ledger, uint32_t capacity)
{
    int fd = reserve(&ledger->record, capacity)
                 ? open(ledger->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW)
                 : -1;
    if (fd < 0)
        return false;
    int code = map(ledger, fd, capacity);
    (void)close(fd);
    return code == 0;
}

/* Links in the file that are no longer edges of the topology, and over which weight is still to be
 * settled. */
static uint32_t count_retired(const struct ledger *ledger, uint32_t self)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < ledger->record.link_count; i++) {
        const struct sgp_record_link *link = &ledger->record.links[i];
        uint32_t source = link->out ? self : link->peer, target = link->out ? link->peer : self;
        count += sgp_topology_next_round(ledger->topology, source, target, 0) == SGP_ROUND_NONE;
    }
    return count;
}

/* Use the file of an earlier process if it has enough room, else make a new file. */
static int make(struct ledger *ledger, uint32_t self, uint32_t link_capacity, uint32_t capacity,
    struct sgp_error *error)
{
    uint32_t needed = link_capacity + (ledger->found ? count_retired(ledger, self) : 0);
    if (capacity >= needed && go_on(ledger, capacity))
        return 0;
    if (!reserve(&ledger->record, needed))
        return sgp_fail(error, -ENOMEM, "%s: out of memory", ledger->path);
    return replace(ledger, ledger->record.link_capacity, error);
}

int ledger_open(struct ledger *ledger, const char *directory, const struct sgp_topology *topology,
    uint32_t self, uint32_t link_capacity, struct sgp_error *error)
{
    size_t path_bytes = strlen(directory) + sizeof "/ledger";
    *ledger = (struct ledger){.topology = topology};
    if (path_bytes > PATH_BYTES)
        return sgp_fail(error, -ENAMETOOLONG, "%s: the path is too long", directory);
    (void)snprintf(ledger->name, sizeof ledger->name, "%s", topology->nodes[self].name);
    ledger->path = malloc(path_bytes);
    ledger->record.link_capacity = link_capacity;
    ledger->record.links = calloc(link_capacity + 1u, sizeof *ledger->record.links);
    uint32_t capacity = 0; /* of the existing file, if it can be continued */
    ledger->record.account_capacity = SGP_ACCOUNTS_MAX;
    ledger->record.accounts = calloc(SGP_ACCOUNTS_MAX, sizeof *ledger->record.accounts);
    int code = 0;
    ledger->spans = find_spans();
    if (ledger->path == NULL || ledger->record.links == NULL || ledger->record.accounts == NULL ||
        ledger->spans == NULL) {
        code = sgp_fail(error, -ENOMEM, "%s/ledger: out of memory", directory);
    } else {
        (void)snprintf(ledger->path, path_bytes, "%s/ledger", directory);
        code = read_file(ledger, error, &capacity);
    }
    if (code == 0)
        code = make(ledger, self, link_capacity, capacity, error);
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
    int code = replace(ledger, link_capacity, error);
    unsigned char *unused = code == 0 ? former.map : ledger->map;
    size_t unused_bytes = code == 0 ? former.map_bytes : ledger->map_bytes;
    if (unused != NULL)
        (void)munmap(unused, unused_bytes);
    if (code < 0) { /* the larger array may be kept */
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
    free(ledger->record.accounts);
    free(ledger->path);
    free(ledger->spans);
    ledger->map = NULL;
    ledger->record.links = NULL;
    ledger->record.accounts = NULL;
    ledger->path = NULL;
    ledger->spans = NULL;
}

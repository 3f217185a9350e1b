/* SPDX-License-Identifier: Apache-2.0 */
/* The mapped file of what private steps have cost; see privacy_account.h. */
#include "privacy_account.h"

#include "train/atomic_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#define VERSION 1u
#define PATH_BYTES 4096u
#define BOOT_BYTES sizeof((struct privacy_account *)0)->boot
#define PARTS 64u /* 1 / PARTS of the steps that are left is set aside at a time */

static const char magic[8] = {'S', 'G', 'P', 'P', 'R', 'I', 'V', 'A'};

struct privacy_header {
    char magic[8];
    uint32_t version, orders;
    char name[SGP_NAME_BYTES];
};

struct privacy_slot {
    uint64_t checksum;     /* XXH3-64 of the rest */
    uint64_t sequence;     /* 1, 2, ...; 0: never written */
    char boot[BOOT_BYTES]; /* of the machine, when the slot was written */
    struct privacy_sum counted, aside;
};

struct privacy_file {
    struct privacy_header header;
    struct privacy_slot slots[2];
};

static uint64_t checksum(const struct privacy_slot *slot)
{
    const size_t head = offsetof(struct privacy_slot, sequence);
    return XXH3_64bits((const char *)slot + head, sizeof *slot - head);
}

/* The kernel's number of this boot; "": it cannot be read, and equals no other. */
static void find_boot(char boot[static BOOT_BYTES])
{
    memset(boot, 0, BOOT_BYTES);
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (file != NULL && fgets(boot, BOOT_BYTES, file) == NULL)
        boot[0] = '\0';
    if (file != NULL)
        (void)fclose(file);
}

/* ---- reading ---- */

/* The slot to continue from, or NULL. */
static const struct privacy_slot *latest(const struct privacy_file *file)
{
    const struct privacy_slot *best = NULL;
    for (size_t i = 0; i < 2; i++) {
        const struct privacy_slot *slot = &file->slots[i];
        bool whole = slot->sequence > 0 && slot->checksum == checksum(slot);
        if (whole && (best == NULL || slot->sequence > best->sequence))
            best = slot;
    }
    return best;
}

static void raise_sum(struct privacy_sum *sum, const struct privacy_sum *other)
{
    sum->steps = sum->steps > other->steps ? sum->steps : other->steps;
    sgp_privacy_raise(&sum->cost, &other->cost);
}

#define STATE_IT "state what was spent with sgpd --privacy-spent STEPS"

static int use(const struct privacy_file *file, const char *path, const char *name,
    struct sgp_error *error, struct privacy_slot *ret_slot)
{
    const struct privacy_header *header = &file->header;
    char boot[BOOT_BYTES];
    if (memcmp(header->magic, magic, sizeof magic) != 0)
        return sgp_fail(error, SGP_E_DATA,
            "%s: not an account of privacy, so what was spent is unknown; " STATE_IT, path);
    if (header->version != VERSION || header->orders != SGP_PRIVACY_ORDERS)
        return sgp_fail(error, SGP_E_STATE,
            "%s: another sgpd wrote it (version %u; this one reads %u); start that one again", path,
            header->version, VERSION);
    if (strncmp(header->name, name, sizeof header->name) != 0)
        return sgp_fail(error, SGP_E_STATE,
            "%s: it is the account of node %.*s, and this is %s; give each node a state_directory "
            "of its own",
            path, (int)sizeof header->name, header->name, name);
    const struct privacy_slot *slot = latest(file);
    if (slot == NULL)
        return sgp_fail(error, SGP_E_DATA,
            "%s: damaged (no part of it has a matching checksum), so what was spent is "
            "unknown; " STATE_IT,
            path);
    *ret_slot = *slot;
    find_boot(boot);
    if (boot[0] == '\0' || strncmp(boot, slot->boot, sizeof boot) != 0)
        raise_sum(&ret_slot->counted, &slot->aside);
    return 0;
}

/* 0, -ENOENT without an error, SGP_E_DATA, SGP_E_STATE or -errno. */
static int read_slot(
    const char *path, const char *name, struct sgp_error *error, struct privacy_slot *ret_slot)
{
    struct privacy_file file = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 && errno == ENOENT)
        return -ENOENT;
    ssize_t count = fd >= 0 ? pread(fd, &file, sizeof file, 0) : -1;
    int code = count < 0 ? -errno : 0;
    if (fd >= 0)
        (void)close(fd);
    if (code < 0)
        return sgp_fail(error, code, "%s: cannot be read: %s", path, sgp_strerror(code));
    if (count != sizeof file) /* cut off: no slot fits */
        memset(file.slots, 0, sizeof file.slots);
    return use(&file, path, name, error, ret_slot);
}

/* Whether an earlier run has left anything: perhaps steps that nobody counted, or statistics that
 * were told for a common scaling. */
static bool has_trained(const char *directory)
{
    static const char *const names[] = {"ledger", "checkpoint", "checkpoint.1", "model.safetensors",
        "history.csv", "scale.json", "best.json", "ledger.left", "checkpoint.left",
        "checkpoint.1.left", PRIVACY_TOLD_FILE};
    DIR *stream = opendir(directory);
    bool found = stream == NULL && errno != ENOENT; /* then nobody knows */
    struct dirent *entry;
    while (stream != NULL && (entry = readdir(stream)) != NULL) {
        found = found || strncmp(entry->d_name, "run-", 4) == 0;
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            found = found || strcmp(entry->d_name, names[i]) == 0;
    }
    if (stream != NULL)
        (void)closedir(stream);
    return found;
}

static int fail_lost(const char *path, struct sgp_error *error)
{
    return sgp_fail(error, SGP_E_DATA,
        "%s does not exist, and the node has trained, so what was spent is unknown; " STATE_IT,
        path);
}

static void path_of(const char *directory, char path[static PATH_BYTES])
{
    (void)snprintf(path, PATH_BYTES, "%s/" PRIVACY_ACCOUNT_FILE, directory);
}

int privacy_account_check_absent(const char *directory, struct sgp_error *error)
{
    char path[PATH_BYTES];
    path_of(directory, path);
    return access(path, F_OK) < 0 && errno == ENOENT
               ? 0
               : sgp_fail(error, SGP_E_STATE,
                     "%s: this node has counted private steps, and without [privacy] its next "
                     "ones tell rows; move the file away first",
                     path);
}

/* ---- writing ---- */

int privacy_account_note_told(const char *directory, struct sgp_error *error)
{
    char path[PATH_BYTES];
    struct sgp_atomic_file file;
    (void)snprintf(path, PATH_BYTES, "%s/" PRIVACY_TOLD_FILE, directory);
    if (access(path, F_OK) == 0)
        return 0;
    const int code = sgp_atomic_open(&file, path, SGP_ATOMIC_PRIVATE, error);
    return code < 0 ? code : sgp_atomic_commit(&file, error);
}

/* One slot is always whole: the older one is filled, and its checksum is set last. */
static void write_slot(struct privacy_account *account)
{
    struct privacy_file *file = (void *)account->map;
    struct privacy_slot *slot = &file->slots[++account->sequence % 2];
    slot->checksum = 0;
    atomic_signal_fence(memory_order_seq_cst); /* the kernel sees stores in the program's order */
    slot->sequence = account->sequence;
    memcpy(slot->boot, account->boot, sizeof slot->boot);
    slot->counted = account->counted;
    slot->aside = account->aside;
    uint64_t sum = checksum(slot);
    atomic_signal_fence(memory_order_seq_cst);
    slot->checksum = sum;
    atomic_signal_fence(memory_order_seq_cst);
}

static bool flush(const struct privacy_account *account)
{
    return msync(account->map, sizeof(struct privacy_file), MS_SYNC) == 0;
}

/* After a rename. Some file systems cannot do that, and need no such call: EINVAL. */
static bool flush_directory(const char *directory)
{
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool flushed = fd >= 0 && (fsync(fd) == 0 || errno == EINVAL);
    int code = errno;
    if (fd >= 0)
        (void)close(fd);
    errno = code;
    return flushed;
}

/* Write a whole file under a temporary name, then rename it. */
static int write_file(const char *directory, const char *name, const struct privacy_sum *spent,
    struct sgp_error *error)
{
    struct privacy_file file = {.header = {.version = VERSION, .orders = SGP_PRIVACY_ORDERS}};
    char path[PATH_BYTES], temporary[PATH_BYTES + 8];
    path_of(directory, path);
    memcpy(file.header.magic, magic, sizeof magic);
    (void)snprintf(file.header.name, sizeof file.header.name, "%s", name);
    struct privacy_account account = {
        .counted = *spent, .aside = *spent, .map = (unsigned char *)&file};
    find_boot(account.boot);
    write_slot(&account);
    (void)snprintf(temporary, sizeof temporary, "%s.new", path);
    int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0640);
    bool written = fd >= 0 && write(fd, &file, sizeof file) == sizeof file && fsync(fd) == 0 &&
                   rename(temporary, path) == 0 && flush_directory(directory);
    int code = written ? 0 : errno != 0 ? -errno : -EIO;
    if (fd >= 0)
        (void)close(fd);
    return written ? 0
                   : sgp_fail(error, code, "%s: cannot be written: %s", path, sgp_strerror(code));
}

static int map(struct privacy_account *account, const char *path, struct sgp_error *error)
{
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    void *memory =
        fd < 0 ? MAP_FAILED
               : mmap(NULL, sizeof(struct privacy_file), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    int code = memory == MAP_FAILED ? -errno : 0;
    if (fd >= 0)
        (void)close(fd);
    if (code < 0)
        return sgp_fail(error, code, "%s: cannot be mapped: %s", path, sgp_strerror(code));
    account->map = memory;
    return 0;
}

int privacy_account_open(struct privacy_account *account, const char *directory, const char *name,
    struct sgp_error *error)
{
    static const struct privacy_sum nothing;
    struct privacy_slot slot = {0};
    char path[PATH_BYTES];
    path_of(directory, path);
    *account = (struct privacy_account){0};
    int code = read_slot(path, name, error, &slot);
    if (code == -ENOENT)
        code = has_trained(directory) ? fail_lost(path, error)
                                      : write_file(directory, name, &nothing, error);
    if (code == 0)
        code = map(account, path, error);
    if (code < 0)
        return code;
    account->sequence = slot.sequence > 0 ? slot.sequence : 1;
    account->counted = account->aside = slot.counted;
    find_boot(account->boot);
    write_slot(account);
    (void)flush(account); /* the first step is above what is set aside, and so needs another */
    return 0;
}

bool privacy_account_charge(struct privacy_account *account, const struct sgp_privacy_cost *step,
    uint64_t steps, double epsilon, double delta)
{
    const struct privacy_sum counted = account->counted, aside = account->aside;
    struct privacy_sum sum = counted;
    sum.steps += steps;
    sgp_privacy_add(&sum.cost, step, steps);
    account->failed = false;
    if (!(sgp_privacy_epsilon(&sum.cost, delta) <= epsilon))
        return false;
    const bool ahead = sum.steps > aside.steps;
    account->counted = sum;
    if (ahead) {
        uint64_t left = sgp_privacy_steps_left(&sum.cost, step, epsilon, delta);
        account->aside = sum;
        account->aside.steps += left / PARTS;
        sgp_privacy_add(&account->aside.cost, step, left / PARTS);
    }
    raise_sum(&account->aside, &account->counted); /* other steps may cost more each */
    write_slot(account);
    if (!ahead)
        return true;
    write_slot(account); /* the other slot: a torn page may spoil one of them */
    account->failed = !flush(account);
    if (account->failed) {
        account->counted = counted;
        account->aside = aside;
    }
    return !account->failed;
}

void privacy_account_close(struct privacy_account *account)
{
    if (account->map == NULL)
        return;
    account->aside = account->counted;
    write_slot(account);
    (void)flush(account); /* else what was set aside counts as spent after a power cut */
    (void)munmap(account->map, sizeof(struct privacy_file));
    *account = (struct privacy_account){0};
}

int privacy_account_state(const char *directory, const char *name, const struct privacy_sum *spent,
    struct sgp_error *error)
{
    struct privacy_slot slot;
    struct sgp_error why = {0};
    char path[PATH_BYTES];
    path_of(directory, path);
    int code = read_slot(path, name, &why, &slot);
    if (code == 0)
        return sgp_fail(error, SGP_E_STATE,
            "%s: the account is there: %llu steps; nothing is to be stated", path,
            (unsigned long long)slot.counted.steps);
    if (code != -ENOENT && code != SGP_E_DATA)
        return sgp_fail(error, code, "%s", why.text);
    return write_file(directory, name, spent, error);
}

int privacy_account_read(
    const char *directory, const char *name, struct sgp_error *error, struct privacy_sum *ret_spent)
{
    struct privacy_slot slot = {0};
    char path[PATH_BYTES];
    path_of(directory, path);
    int code = read_slot(path, name, error, &slot);
    if (code == -ENOENT)
        code = has_trained(directory) ? fail_lost(path, error) : 0;
    if (code == 0)
        *ret_spent = slot.counted;
    return code;
}

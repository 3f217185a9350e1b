/* SPDX-License-Identifier: Apache-2.0 */
/* Keys in files and in memory; see sgp/key.h. Blocks on files. */
#include "tls/identity.h"

#include <gnutls/crypto.h>
#include <nettle/eddsa.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE_BYTES 4096u
#define FILE_BYTES_MAX (PAGE_BYTES - 1) /* limit for a key file; a key has 119 bytes */
#define SUITES                                                                                     \
    "NONE:+VERS-TLS1.3:+AEAD:+AES-128-GCM:+CHACHA20-POLY1305:+SIGN-EDDSA-ED25519:+GROUP-X25519:"   \
    "+CTYPE-CLI-RAWPK:+CTYPE-SRV-RAWPK"

/* ---- a page for secrets ---- */

static uint8_t *take_page(void)
{
    void *page = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return NULL;
    (void)mlock(page, PAGE_BYTES); /* where that is permitted */
    (void)madvise(page, PAGE_BYTES, MADV_DONTDUMP);
    return page;
}

static void give_page(uint8_t *page)
{
    if (page == NULL)
        return;
    explicit_bzero(page, PAGE_BYTES);
    (void)munmap(page, PAGE_BYTES);
}

/* ---- hashes ---- */

bool sgp_key_hash_of(const void *info, size_t bytes, char ret_hash[SGP_KEY_BYTES])
{
    uint8_t hash[32];
    gnutls_datum_t text, data = {hash, sizeof hash};
    if (gnutls_hash_fast(GNUTLS_DIG_SHA256, info, bytes, hash) < 0 ||
        gnutls_base64_encode2(&data, &text) < 0)
        return false;
    size_t letters = strcspn((const char *)text.data, "=");
    (void)snprintf(ret_hash, SGP_KEY_BYTES, "SHA256:%.*s", (int)letters, text.data);
    gnutls_free(text.data);
    return true;
}

const char *sgp_key_hash(const struct sgp_key *key)
{
    return key->hash;
}

/* ---- signatures ---- */

static int write_base64(const uint8_t *bytes, unsigned count, char *text, size_t capacity)
{
    gnutls_datum_t in = {(uint8_t *)(uintptr_t)bytes, count}, out;
    if (gnutls_base64_encode2(&in, &out) < 0)
        return -ENOMEM;
    (void)snprintf(text, capacity, "%.*s", (int)out.size, out.data);
    gnutls_free(out.data);
    return 0;
}

/* Accepts exactly `count` bytes. */
static bool read_base64(const char *text, uint8_t *bytes, unsigned count)
{
    gnutls_datum_t in = {(uint8_t *)(uintptr_t)text, (unsigned)strlen(text)}, out;
    if (gnutls_base64_decode2(&in, &out) < 0)
        return false;
    bool fits = out.size == count;
    if (fits)
        memcpy(bytes, out.data, count);
    gnutls_free(out.data);
    return fits;
}

int sgp_key_public(const struct sgp_key *key, char ret_public[SGP_PUBLIC_BYTES])
{
    return write_base64(key->point, sizeof key->point, ret_public, SGP_PUBLIC_BYTES);
}

int sgp_key_sign(const struct sgp_key *key, const void *bytes, size_t count,
    char ret_signature[SGP_SIGNATURE_BYTES])
{
    uint8_t signature[ED25519_SIGNATURE_SIZE];
    ed25519_sha512_sign(key->point, key->page, count, bytes, signature);
    return write_base64(signature, sizeof signature, ret_signature, SGP_SIGNATURE_BYTES);
}

/* The SubjectPublicKeyInfo of a public key. 0 or below; the caller frees *ret_info. */
static int describe(const uint8_t *point, gnutls_pubkey_t public_key, gnutls_datum_t *ret_info)
{
    gnutls_datum_t data = {(uint8_t *)(uintptr_t)point, ED25519_KEY_SIZE};
    int code = gnutls_pubkey_import_ecc_raw(public_key, GNUTLS_ECC_CURVE_ED25519, &data, NULL);
    return code < 0 ? code : gnutls_pubkey_export2(public_key, GNUTLS_X509_FMT_DER, ret_info);
}

static bool hash_of_point(const uint8_t *point, char ret_hash[SGP_KEY_BYTES])
{
    gnutls_pubkey_t described;
    gnutls_datum_t info = {NULL, 0};
    if (gnutls_pubkey_init(&described) < 0)
        return false;
    bool known =
        describe(point, described, &info) >= 0 && sgp_key_hash_of(info.data, info.size, ret_hash);
    gnutls_free(info.data);
    gnutls_pubkey_deinit(described);
    return known;
}

bool sgp_key_hash_public(const char *public_key, char ret_hash[SGP_KEY_BYTES])
{
    uint8_t point[ED25519_KEY_SIZE];
    return read_base64(public_key, point, sizeof point) && hash_of_point(point, ret_hash);
}

bool sgp_key_verify(const char *public_key, const char *signature, const void *bytes, size_t count,
    char ret_hash[SGP_KEY_BYTES])
{
    uint8_t point[ED25519_KEY_SIZE], signed_with[ED25519_SIGNATURE_SIZE];
    return read_base64(public_key, point, sizeof point) &&
           read_base64(signature, signed_with, sizeof signed_with) &&
           ed25519_sha512_verify(point, count, bytes, signed_with) == 1 &&
           hash_of_point(point, ret_hash);
}

/* ---- for GnuTLS: a key that signs and is not exposed ---- */

static int sign(gnutls_privkey_t private_key, gnutls_sign_algorithm_t algorithm, void *context,
    unsigned flags, const gnutls_datum_t *data, gnutls_datum_t *signature)
{
    const struct sgp_key *key = context;
    (void)private_key;
    (void)flags;
    if (algorithm != GNUTLS_SIGN_EDDSA_ED25519)
        return GNUTLS_E_UNSUPPORTED_SIGNATURE_ALGORITHM;
    signature->data = gnutls_malloc(ED25519_SIGNATURE_SIZE);
    if (signature->data == NULL)
        return GNUTLS_E_MEMORY_ERROR;
    signature->size = ED25519_SIGNATURE_SIZE;
    ed25519_sha512_sign(key->point, key->page, data->size, data->data, signature->data);
    return 0;
}

static int tell(gnutls_privkey_t private_key, unsigned flags, void *context)
{
    (void)private_key;
    (void)context;
    if (flags & GNUTLS_PRIVKEY_INFO_PK_ALGO)
        return GNUTLS_PK_EDDSA_ED25519;
    if (flags & GNUTLS_PRIVKEY_INFO_PK_ALGO_BITS)
        return 256;
    if (flags & GNUTLS_PRIVKEY_INFO_HAVE_SIGN_ALGO)
        return GNUTLS_FLAGS_TO_SIGN_ALGO(flags) == GNUTLS_SIGN_EDDSA_ED25519;
    return -1;
}

/* The public half: its hash, and the credentials of all sessions. */
static int make_credentials(struct sgp_key *key)
{
    gnutls_datum_t info = {NULL, 0};
    gnutls_pubkey_t public_key = NULL;
    gnutls_privkey_t private_key = NULL;
    gnutls_pcert_st *shown = calloc(1, sizeof *shown);
    int code = shown == NULL ? GNUTLS_E_MEMORY_ERROR : gnutls_pubkey_init(&public_key);
    if (code >= 0)
        code = describe(key->point, public_key, &info);
    if (code >= 0 && !sgp_key_hash_of(info.data, info.size, key->hash))
        code = GNUTLS_E_MEMORY_ERROR;
    if (code >= 0)
        code = gnutls_privkey_init(&private_key);
    if (code >= 0)
        code = gnutls_privkey_import_ext4(private_key, key, sign, NULL, NULL, NULL, tell, 0);
    if (code >= 0)
        code = gnutls_certificate_allocate_credentials(&key->credentials);
    if (code >= 0 && (code = gnutls_pcert_import_rawpk(shown, public_key, 0)) >= 0) {
        public_key = NULL; /* `shown` owns it now */
        code = gnutls_certificate_set_key(key->credentials, NULL, 0, shown, 1, private_key);
        if (code >= 0)
            private_key = NULL; /* the credentials own it now */
        else
            gnutls_pcert_deinit(shown);
    }
    if (code >= 0)
        code = gnutls_priority_init(&key->priorities, SUITES, NULL);
    gnutls_free(info.data);
    free(shown);
    if (public_key != NULL)
        gnutls_pubkey_deinit(public_key);
    if (private_key != NULL)
        gnutls_privkey_deinit(private_key);
    return code < 0 ? -ENOMEM : 0;
}

struct sgp_key *sgp_key_hold(struct sgp_key *key)
{
    if (key != NULL)
        key->holders++;
    return key;
}

void sgp_key_release(struct sgp_key *key)
{
    if (key == NULL || --key->holders > 0)
        return;
    if (key->credentials != NULL)
        gnutls_certificate_free_credentials(key->credentials);
    if (key->priorities != NULL)
        gnutls_priority_deinit(key->priorities);
    give_page(key->page);
    free(key);
}

/* ---- files ---- */

/* Whether only its owner can read the file. systemd grants the unit's user access to a credential
 * by an access control list, which shows as a permission of the group. */
static bool is_private(const char *path, const struct stat *facts)
{
    const char *credentials = getenv("CREDENTIALS_DIRECTORY");
    size_t length = credentials != NULL ? strlen(credentials) : 0;
    bool given = length > 0 && strncmp(path, credentials, length) == 0 && path[length] == '/';
    bool owned = facts->st_uid == geteuid() || facts->st_uid == 0;
    return owned && (facts->st_mode & (given ? S_IRWXO : S_IRWXO | S_IRWXG)) == 0;
}

/* Read a whole file into a page, and append a zero. */
static int read_file(const char *path, struct sgp_error *error, uint8_t *page)
{
    struct stat facts = {0};
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int code = descriptor < 0 || fstat(descriptor, &facts) < 0 ? -errno : 0;
    if (code < 0)
        (void)sgp_fail(
            error, code, "%s: %s; sgpctl key generate makes a key", path, strerror(-code));
    else if (!S_ISREG(facts.st_mode))
        code = sgp_fail(error, SGP_E_FILE, "%s: is no file; name the file of the key", path);
    else if (!is_private(path, &facts))
        code = sgp_fail(error, -EPERM,
            "%s: others may read or change it (mode %04o, owner %u); it must be this user's or "
            "root's, and chmod "
            "600 it",
            path, facts.st_mode & 07777u, (unsigned)facts.st_uid);
    else if (read(descriptor, page, FILE_BYTES_MAX) < 0)
        code = sgp_fail(error, -errno, "%s: %s", path, strerror(errno));
    if (descriptor >= 0)
        (void)close(descriptor);
    return code;
}

/* Extract the secret from the text, in place, and erase the text. */
static int take_secret(struct sgp_key *key)
{
    gnutls_x509_privkey_t parsed;
    uint8_t *page = key->page;
    sgp_assert(page != NULL); /* gcc with sanitizers considers NULL where key->page is read again */
    gnutls_datum_t text = {page, (unsigned)strlen((char *)page)};
    gnutls_datum_t point = {NULL, 0}, unused = {NULL, 0}, secret = {NULL, 0};
    gnutls_ecc_curve_t curve = GNUTLS_ECC_CURVE_INVALID;
    if (gnutls_x509_privkey_init(&parsed) < 0)
        return -ENOMEM;
    int code = gnutls_x509_privkey_import_pkcs8(
        parsed, &text, GNUTLS_X509_FMT_PEM, NULL, GNUTLS_PKCS_PLAIN);
    if (code >= 0)
        code = gnutls_x509_privkey_export_ecc_raw(parsed, &curve, &point, &unused, &secret);
    explicit_bzero(page, PAGE_BYTES);
    bool good = code >= 0 && curve == GNUTLS_ECC_CURVE_ED25519 && point.size == ED25519_KEY_SIZE &&
                secret.size == ED25519_KEY_SIZE;
    if (good) { /* the public half is computed from the secret, whatever the file says */
        memcpy(page, secret.data, ED25519_KEY_SIZE);
        ed25519_sha512_public_key(key->point, page);
    }
    if (secret.data != NULL)
        explicit_bzero(secret.data, secret.size);
    gnutls_free(secret.data);
    gnutls_free(unused.data);
    gnutls_free(point.data);
    gnutls_x509_privkey_deinit(parsed);
    return good ? 0 : SGP_E_FILE;
}

int sgp_key_read(const char *path, struct sgp_error *error, struct sgp_key **ret_key)
{
    struct sgp_key *key = calloc(1, sizeof *key);
    if (key == NULL || (key->page = take_page()) == NULL) {
        free(key);
        return sgp_fail(error, -ENOMEM, "%s: no memory to read it", path);
    }
    key->holders = 1;
    int code = read_file(path, error, key->page);
    if (code == 0 && (code = take_secret(key)) < 0)
        (void)sgp_fail(error, code, "%s: %s", path,
            code == SGP_E_FILE ? "is no Ed25519 key in PKCS#8 without a password; sgpctl key "
                                 "generate makes one"
                               : "no memory to read it");
    if (code == 0 && (code = make_credentials(key)) < 0)
        (void)sgp_fail(error, code, "%s: %s", path, sgp_strerror(code));
    if (code < 0) {
        sgp_key_release(key);
        return code;
    }
    *ret_key = key;
    return 0;
}

static int write_file(const char *path, const gnutls_datum_t *text, struct sgp_error *error)
{
    int descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (descriptor < 0 && errno == EEXIST)
        return sgp_fail(error, -EEXIST,
            "%s: is there already; a new key for a node goes to another file first (--file)", path);
    if (descriptor < 0)
        return sgp_fail(error, -errno, "%s: %s; make the directory, or give another file", path,
            strerror(errno));
    errno = EIO;
    bool written = fchmod(descriptor, 0600) == 0 &&
                   write(descriptor, text->data, text->size) == (ssize_t)text->size &&
                   fsync(descriptor) == 0;
    int code = written ? 0 : sgp_fail(error, -errno, "%s: %s", path, strerror(errno));
    (void)close(descriptor);
    if (!written)
        (void)unlink(path);
    return code;
}

int sgp_key_generate(const char *path, struct sgp_error *error, char ret_hash[SGP_KEY_BYTES])
{
    gnutls_x509_privkey_t made;
    gnutls_datum_t text = {NULL, 0};
    struct sgp_key *key;
    if (gnutls_x509_privkey_init(&made) < 0)
        return sgp_fail(error, -ENOMEM, "%s: no memory for a key", path);
    int code = gnutls_x509_privkey_generate(made, GNUTLS_PK_EDDSA_ED25519, 0, 0);
    if (code >= 0)
        code = gnutls_x509_privkey_export2_pkcs8(
            made, GNUTLS_X509_FMT_PEM, NULL, GNUTLS_PKCS_PLAIN, &text);
    gnutls_x509_privkey_deinit(made);
    if (code < 0)
        return sgp_fail(
            error, SGP_E_FILE, "%s: no key can be made: %s", path, gnutls_strerror(code));
    code = write_file(path, &text, error);
    explicit_bzero(text.data, text.size);
    gnutls_free(text.data);
    if (code == 0 && (code = sgp_key_read(path, error, &key)) == 0) {
        memcpy(ret_hash, key->hash, sizeof key->hash);
        sgp_key_release(key);
    }
    return code;
}

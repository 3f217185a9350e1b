/* SPDX-License-Identifier: Apache-2.0 */
/* Keys in files: made, read, and refused. */
#include "sgp/key.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <dlfcn.h>
#include <errno.h>
#include <gnutls/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char directory[] = "/tmp/sgp-key-XXXXXX", path[64];

static void enter(void)
{
    cr_assert(not(zero(ptr, mkdtemp(directory))));
    (void)snprintf(path, sizeof path, "%s/n0.key", directory);
}

static void leave(void)
{
    (void)unlink(path);
    (void)rmdir(directory);
}

TestSuite(key, .init = enter, .fini = leave);

static bool no_memory;

/* The linker takes this function instead of the one of GnuTLS, which it calls. */
int gnutls_x509_privkey_init(gnutls_x509_privkey_t *key)
{
    int (*init)(gnutls_x509_privkey_t *);
    void *symbol = dlsym(RTLD_NEXT, __func__);
    memcpy(&init, &symbol, sizeof init);
    return no_memory ? GNUTLS_E_MEMORY_ERROR : init(key);
}

static void write_text(const char *text, mode_t mode)
{
    FILE *file = fopen(path, "w");
    (void)fputs(text, file);
    (void)fclose(file);
    cr_assert(zero(int, chmod(path, mode)));
}

static void refused(int code, const char *why)
{
    struct sgp_error error = {0};
    struct sgp_key *key = NULL;
    char text[SGP_TEXT_BYTES];
    (void)snprintf(text, sizeof text, "%s: %s", path, why);
    cr_assert(eq(int, sgp_key_read(path, &error, &key), code));
    cr_assert(eq(str, error.text, text));
    cr_assert(zero(ptr, key));
}

/* The key of RFC 8410, section 10.3; its hash as OpenSSL computes it. */
static const char rfc[] = "-----BEGIN PRIVATE KEY-----\n"
                          "MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n"
                          "-----END PRIVATE KEY-----\n";

Test(key, a_known_key_has_a_known_hash)
{
    struct sgp_error error = {0};
    struct sgp_key *key = NULL;
    write_text(rfc, 0600);
    cr_assert(zero(int, sgp_key_read(path, &error, &key)), "%s", error.text);
    cr_assert(
        eq(str, (char *)sgp_key_hash(key), "SHA256:oekVYFTgT6yJmunydRMs3Ael28TqLCrTof/G4NJTaB8"));
    cr_assert(sgp_key_hold(key) == key);
    sgp_key_release(key);
    cr_assert(
        eq(str, (char *)sgp_key_hash(key), "SHA256:oekVYFTgT6yJmunydRMs3Ael28TqLCrTof/G4NJTaB8"));
    sgp_key_release(key);
}

/* By OpenSSL: Ed25519 signs in one way only. */
#define ABC_SIGNED                                                                                 \
    "bLnHNkpM+FQOuFzu+VQVfFjJ6zcqlGBz+eKvN7jfce5Iy+rImDej8xio6WIG9ieI9Men4bJqR26iRcp6AUo+Aw=="
#define RFC_PUBLIC "Gb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE="

Test(key, what_it_signs_is_verified_and_nothing_else)
{
    struct sgp_key *key = NULL;
    char public_key[SGP_PUBLIC_BYTES], signature[SGP_SIGNATURE_BYTES], hash[SGP_KEY_BYTES];
    write_text(rfc, 0600);
    cr_assert(zero(int, sgp_key_read(path, NULL, &key)));
    cr_assert(zero(int, sgp_key_public(key, public_key)));
    cr_assert(zero(int, sgp_key_sign(key, "abc", 3, signature)));
    cr_assert(eq(str, public_key, RFC_PUBLIC));
    cr_assert(eq(str, signature, ABC_SIGNED));
    cr_assert(sgp_key_verify(public_key, signature, "abc", 3, hash));
    cr_assert(eq(str, hash, (char *)sgp_key_hash(key)));
    cr_assert(sgp_key_hash_public(public_key, hash));
    cr_assert(eq(str, hash, (char *)sgp_key_hash(key)));
    cr_assert(not(sgp_key_hash_public("", hash)));
    cr_assert(not(sgp_key_hash_public(signature, hash)));
    cr_assert(not(sgp_key_verify(public_key, signature, "abd", 3, hash)));
    cr_assert(not(sgp_key_verify(public_key, signature, "ab", 2, hash)));
    cr_assert(not(sgp_key_verify("", "", "abc", 3, hash)));
    cr_assert(not(sgp_key_verify(public_key, "YWJj", "abc", 3, hash)));
    cr_assert(not(sgp_key_verify(signature, signature, "abc", 3, hash)));
    cr_assert(not(sgp_key_verify("!", "*", "abc", 3, hash)));
    signature[5] = signature[5] == 'A' ? 'B' : 'A';
    cr_assert(not(sgp_key_verify(public_key, signature, "abc", 3, hash)));
    sgp_key_release(key);
}

Test(key, one_that_is_made_is_its_owners_alone_and_reads_back)
{
    struct sgp_error error = {0};
    struct sgp_key *key = NULL;
    struct stat facts;
    char hash[SGP_KEY_BYTES], other[SGP_KEY_BYTES];
    (void)umask(0);
    cr_assert(zero(int, sgp_key_generate(path, &error, hash)), "%s", error.text);
    cr_assert(zero(int, stat(path, &facts)));
    cr_assert(eq(u32, facts.st_mode & 07777, 0600));
    cr_assert(zero(int, sgp_key_read(path, &error, &key)));
    cr_assert(eq(str, (char *)sgp_key_hash(key), hash));
    sgp_key_release(key);
    cr_assert(eq(int, sgp_key_generate(path, &error, other), -EEXIST)); /* and it is kept */
    cr_assert(zero(int, sgp_key_read(path, NULL, &key)));
    cr_assert(eq(str, (char *)sgp_key_hash(key), hash));
    sgp_key_release(key);
    cr_assert(zero(int, unlink(path)));
    cr_assert(zero(int, sgp_key_generate(path, NULL, other)));
    cr_assert(ne(str, hash, other));
}

Test(key, one_that_others_may_read_is_refused)
{
    char why[200];
    static const mode_t modes[] = {0604, 0640, 0602, 0601, 0660};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        write_text(rfc, modes[i]);
        (void)snprintf(why, sizeof why,
            "others may read or change it (mode %04o, owner %u); it must be this user's or root's, "
            "and chmod 600 it",
            modes[i], (unsigned)geteuid());
        refused(-EPERM, why);
    }
    write_text(rfc, 0400);
    struct sgp_key *key;
    cr_assert(zero(int, sgp_key_read(path, NULL, &key)));
    sgp_key_release(key);
}

Test(key, a_credential_of_systemd_may_show_a_right_of_its_group)
{
    struct sgp_key *key;
    write_text(rfc, 0440);
    cr_assert(zero(int, setenv("CREDENTIALS_DIRECTORY", directory, 1)));
    cr_assert(zero(int, sgp_key_read(path, NULL, &key)));
    sgp_key_release(key);
    cr_assert(zero(int, chmod(path, 0444)));
    cr_assert(eq(int, sgp_key_read(path, NULL, &key), -EPERM));
}

Test(key, what_is_no_key_is_refused)
{
    static const char is_none[] =
        "is no Ed25519 key in PKCS#8 without a password; sgpctl key generate makes one";
    refused(-ENOENT, "No such file or directory; sgpctl key generate makes a key");
    write_text("", 0600);
    refused(SGP_E_FILE, is_none);
    write_text("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", 0600);
    refused(SGP_E_FILE, is_none);
    /* X25519, which agrees and does not sign. */
    write_text("-----BEGIN PRIVATE KEY-----\n"
               "MC4CAQAwBQYDK2VuBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n"
               "-----END PRIVATE KEY-----\n",
        0600);
    refused(SGP_E_FILE, is_none);
    char large[6000];
    memset(large, 'A', sizeof large - 1);
    large[sizeof large - 1] = '\0';
    write_text(large, 0600);
    refused(SGP_E_FILE, is_none);
    cr_assert(zero(int, unlink(path)));
    cr_assert(zero(int, mkdir(path, 0700)));
    refused(SGP_E_FILE, "is no file; name the file of the key");
    cr_assert(zero(int, rmdir(path)));
}

/* The daemon looks only at the error. */
Test(key, without_memory_the_error_is_filled_too)
{
    write_text(rfc, 0600);
    no_memory = true;
    refused(-ENOMEM, "no memory to read it");
}

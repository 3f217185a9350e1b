/* SPDX-License-Identifier: Apache-2.0 */
/* A ciphered connection over memory: both ends here, and whatever may stand between them. */
#include "sgp/cipher.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct sgp_key *keys[3];

static void make_keys(void)
{
    for (int i = 0; i < 3; i++) {
        char path[64], hash[SGP_KEY_BYTES];
        struct sgp_error error = {0};
        (void)snprintf(path, sizeof path, "/tmp/sgp-cipher-%d-%d.key", (int)getpid(), i);
        cr_assert(zero(int, sgp_key_generate(path, &error, hash)), "%s", error.text);
        cr_assert(zero(int, sgp_key_read(path, &error, &keys[i])), "%s", error.text);
        cr_assert(zero(int, unlink(path)));
    }
}

static void wipe_keys(void)
{
    for (int i = 0; i < 3; i++)
        sgp_key_release(keys[i]);
}

TestSuite(cipher, .init = make_keys, .fini = wipe_keys);

/* ---- two ends ---- */

struct end {
    struct sgp_cipher *cipher;
    const struct sgp_key *expects;
    int code; /* of the handshake */
    struct sgp_error error;
    char objection[200];
    uint32_t asked;
};

static const char *object(void *context, const char *hash)
{
    struct end *end = context;
    end->asked++;
    if (strcmp(hash, sgp_key_hash(end->expects)) == 0)
        return NULL;
    (void)snprintf(end->objection, sizeof end->objection, "it has the key %s and not %s", hash,
        sgp_key_hash(end->expects));
    return end->objection;
}

static void open_end(
    struct end *end, bool dials, struct sgp_key *own, const struct sgp_key *expects)
{
    *end = (struct end){.expects = expects, .code = -EAGAIN};
    const struct sgp_cipher_settings settings = {.key = own,
        .dials = dials,
        .objection = object,
        .context = end,
        .renew_bytes = SGP_CIPHER_RENEW_LEAST};
    cr_assert(zero(int, sgp_cipher_create(&settings, &end->cipher)));
}

/* What waits at one end goes to the other, which goes on with its handshake: so many bytes. */
static size_t carry(struct end *from, struct end *to)
{
    const uint8_t *bytes;
    size_t count = sgp_cipher_take(from->cipher, &bytes);
    if (count > 0)
        sgp_cipher_feed(to->cipher, bytes, count);
    if (to->code == -EAGAIN)
        to->code = sgp_cipher_shake(to->cipher, &to->error);
    return count;
}

static void shake(struct end *caller, struct end *listener)
{
    caller->code = sgp_cipher_shake(caller->cipher, &caller->error);
    cr_assert(eq(int, caller->code, -EAGAIN));
    for (int i = 0; i < 4; i++) {
        size_t answer = (carry(caller, listener), carry(listener, caller));
        cr_assert(answer <= 1024); /* not one that pays to be sent to somebody else */
    }
}

static void close_ends(struct end *a, struct end *b)
{
    sgp_cipher_destroy(a->cipher);
    sgp_cipher_destroy(b->cipher);
}

static struct end caller, listener;

static void meet(void)
{
    open_end(&caller, true, keys[0], keys[1]);
    open_end(&listener, false, keys[1], keys[0]);
    shake(&caller, &listener);
    cr_assert(zero(int, caller.code), "%s", caller.error.text);
    cr_assert(zero(int, listener.code), "%s", listener.error.text);
}

static ssize_t open_some(struct end *end, void *into, size_t capacity)
{
    return sgp_cipher_open(end->cipher, into, capacity, &end->error);
}

Test(cipher, two_that_know_each_other_speak)
{
    char text[16] = "";
    meet();
    cr_assert(eq(str, (char *)sgp_cipher_peer(caller.cipher), (char *)sgp_key_hash(keys[1])));
    cr_assert(eq(str, (char *)sgp_cipher_peer(listener.cipher), (char *)sgp_key_hash(keys[0])));
    cr_assert(eq(str, (char *)sgp_cipher_name(caller.cipher), "AES-128-GCM"));
    cr_assert(eq(int, (int)open_some(&listener, text, sizeof text), -EAGAIN));
    cr_assert(zero(int, sgp_cipher_seal(caller.cipher, "hello", 5)));
    (void)carry(&caller, &listener);
    cr_assert(eq(int, (int)open_some(&listener, text, 2), 2)); /* a record may be read in pieces */
    cr_assert(eq(int, (int)open_some(&listener, text + 2, sizeof text - 2), 3));
    cr_assert(eq(str, text, "hello"));
    cr_assert(eq(int, (int)open_some(&listener, text, sizeof text), -EAGAIN));
    cr_assert(zero(int, sgp_cipher_seal(listener.cipher, "you", 4)));
    (void)carry(&listener, &caller);
    cr_assert(eq(int, (int)open_some(&caller, text, sizeof text), 4));
    cr_assert(eq(str, text, "you"));
    close_ends(&caller, &listener);
}

/* RFC 9266: equal at both ends, and of this connection alone, although the keys are the same. */
Test(cipher, each_connection_has_a_binding_of_its_own)
{
    uint8_t bindings[2][2][SGP_CIPHER_BINDING_BYTES];
    for (int i = 0; i < 2; i++) {
        meet();
        cr_assert(zero(int, sgp_cipher_binding(caller.cipher, bindings[i][0])));
        cr_assert(zero(int, sgp_cipher_binding(listener.cipher, bindings[i][1])));
        cr_assert(zero(int, memcmp(bindings[i][0], bindings[i][1], sizeof bindings[i][0])));
        close_ends(&caller, &listener);
    }
    cr_assert(ne(int, memcmp(bindings[0][0], bindings[1][0], sizeof bindings[0][0]), 0));
}

Test(cipher, bytes_may_come_one_at_a_time)
{
    static char sent[40000], came[40000];
    size_t have = 0;
    const uint8_t *bytes;
    meet();
    for (size_t i = 0; i < sizeof sent; i++)
        sent[i] = (char)(i * 7);
    cr_assert(zero(int, sgp_cipher_seal(caller.cipher, sent, sizeof sent)));
    size_t count = sgp_cipher_take(caller.cipher, &bytes);
    cr_assert(count > sizeof sent && count < sizeof sent + 200);
    for (size_t i = 0; i < count; i++) {
        sgp_cipher_feed(listener.cipher, bytes + i, 1);
        ssize_t part;
        while ((part = open_some(&listener, came + have, sizeof came - have + 1)) > 0)
            have += (size_t)part;
        cr_assert(eq(int, (int)part, -EAGAIN));
    }
    cr_assert(eq(sz, have, sizeof sent));
    cr_assert(zero(int, memcmp(sent, came, sizeof sent)));
    close_ends(&caller, &listener);
}

Test(cipher, nothing_of_ours_is_on_the_line)
{
    static const char secret[] = "digraph SGP n0 n1 weight";
    const uint8_t *bytes;
    meet();
    cr_assert(zero(int, sgp_cipher_seal(caller.cipher, secret, sizeof secret)));
    size_t count = sgp_cipher_take(caller.cipher, &bytes);
    cr_assert(not(zero(sz, count)));
    for (size_t i = 0; i + 4 <= count; i++)
        for (size_t j = 0; j + 4 < sizeof secret; j++)
            cr_assert(memcmp(bytes + i, secret + j, 4) != 0);
    close_ends(&caller, &listener);
}

/* ---- who is not let in ---- */

Test(cipher, a_listener_of_another_key_is_not_believed)
{
    char text[SGP_TEXT_BYTES];
    open_end(&caller, true, keys[0], keys[1]);
    open_end(&listener, false, keys[2], keys[0]);
    shake(&caller, &listener);
    cr_assert(eq(int, caller.code, SGP_E_PROTOCOL));
    (void)snprintf(text, sizeof text, "it has the key %s and not %s", sgp_key_hash(keys[2]),
        sgp_key_hash(keys[1]));
    cr_assert(eq(str, caller.error.text, text));
    cr_assert(eq(int, listener.code, SGP_E_PROTOCOL));
    (void)snprintf(text, sizeof text,
        "the peer refused our key %s: give this node that key in the peer's topology file",
        sgp_key_hash(keys[2]));
    cr_assert(eq(str, listener.error.text, text));
    close_ends(&caller, &listener);
}

Test(cipher, a_caller_of_another_key_is_refused_and_hears_of_it)
{
    char text[SGP_TEXT_BYTES], came[8];
    open_end(&caller, true, keys[2], keys[1]);
    open_end(&listener, false, keys[1], keys[0]);
    shake(&caller, &listener);
    cr_assert(zero(int, caller.code)); /* it has not been judged yet when it is through */
    cr_assert(eq(int, listener.code, SGP_E_PROTOCOL));
    cr_assert(eq(u32, listener.asked, 1));
    (void)snprintf(text, sizeof text, "it has the key %s and not %s", sgp_key_hash(keys[2]),
        sgp_key_hash(keys[0]));
    cr_assert(eq(str, listener.error.text, text));
    cr_assert(eq(int, (int)open_some(&caller, came, sizeof came), SGP_E_PROTOCOL));
    (void)snprintf(text, sizeof text,
        "the peer refused our key %s: give this node that key in the peer's topology file",
        sgp_key_hash(keys[2]));
    cr_assert(eq(str, caller.error.text, text));
    cr_assert(
        eq(int, (int)open_some(&caller, came, sizeof came), SGP_E_PROTOCOL)); /* over is over */
    cr_assert(eq(int, sgp_cipher_seal(caller.cipher, "x", 1), SGP_E_STATE));
    close_ends(&caller, &listener);
}

Test(cipher, whoever_shows_another_ones_key_must_prove_it)
{
    /* Shows keys[0] and signs with keys[2]: the secret is the page's. */
    struct liar {
        uint32_t holders;
        uint8_t *page;
    } *liar = (struct liar *)keys[0];
    const struct liar *other = (const struct liar *)keys[2];
    memcpy(liar->page, other->page, 32);
    open_end(&caller, true, keys[0], keys[1]);
    open_end(&listener, false, keys[1], keys[0]);
    shake(&caller, &listener);
    cr_assert(zero(u32, listener.asked));
    cr_assert(eq(int, listener.code, SGP_E_PROTOCOL));
    cr_assert(eq(str, listener.error.text, "TLS: Public key signature verification has failed."));
    close_ends(&caller, &listener);
}

/* ---- what may stand between ---- */

/* The version in a record's header means nothing in TLS 1.3, nor does a change_cipher_spec of older ones; and GnuTLS
 * decides by the keys it has, not by the type in the header, what is encrypted. */
static bool means_nothing(const uint8_t *flight, size_t byte)
{
    size_t record = 0, end = 0;
    for (; end <= byte; record = end <= byte ? end : record)
        end = record + 5 + ((size_t)flight[record + 3] << 8 | flight[record + 4]);
    return flight[record] == 0x14 || byte < record + 3;
}

/* The whole handshake, with the flight `which` (0: the caller's first, 1: the answer, 2: the caller's second) cut to
 * `cut` bytes or with bit `flip` turned; whether both ends came through. */
static bool turned; /* and the bit meant something */
static bool disturbed(int which, size_t cut, int64_t flip)
{
    struct end *from = &caller, *to = &listener;
    turned = false;
    open_end(&caller, true, keys[0], keys[1]);
    open_end(&listener, false, keys[1], keys[0]);
    caller.code = sgp_cipher_shake(caller.cipher, &caller.error);
    for (int flight = 0; flight < 5; flight++) {
        static uint8_t copy[4096];
        const uint8_t *bytes;
        size_t count = sgp_cipher_take(from->cipher, &bytes);
        cr_assert(count <= sizeof copy);
        if (count > 0)
            memcpy(copy, bytes, count);
        if (flight == which && cut < count)
            count = cut;
        turned = turned || (flight == which && flip >= 0 && !means_nothing(copy, (size_t)flip / 8));
        if (flight == which && flip >= 0 && (size_t)flip / 8 < count)
            copy[flip / 8] ^= (uint8_t)(1 << flip % 8);
        if (count > 0)
            sgp_cipher_feed(to->cipher, copy, count);
        if (to->code == -EAGAIN)
            to->code = sgp_cipher_shake(to->cipher, &to->error);
        else if (to->code == 0 && count > 0) {
            char came[8];
            ssize_t got = open_some(to, came, sizeof came);
            to->code = got == -EAGAIN ? 0 : (int)got;
        }
        struct end *swap = from;
        from = to;
        to = swap;
    }
    bool through = caller.code == 0 && listener.code == 0;
    close_ends(&caller, &listener);
    return through;
}

#define WHOLE SIZE_MAX

Test(cipher, a_handshake_that_is_cut_never_ends_well)
{
    cr_assert(disturbed(-1, WHOLE, -1));
    static const size_t bytes[] = {193, 449, 237};
    for (int flight = 0; flight < 3; flight++)
        for (size_t cut = 0; cut + 1 < bytes[flight]; cut += 3)
            cr_assert(not(disturbed(flight, cut, -1)), "flight %d cut to %zu", flight, cut);
}

Test(cipher, a_handshake_in_which_a_bit_is_turned_never_ends_well)
{
    static const int bytes[] = {193, 449, 237};
    for (int flight = 0; flight < 3; flight++)
        for (int64_t bit = 0; bit < 8 * bytes[flight]; bit += 11) {
            bool through = disturbed(flight, WHOLE, bit);
            cr_assert(not(through && turned), "flight %d bit %lld", flight, (long long)bit);
        }
}

Test(cipher, records_that_are_cut_turned_left_out_repeated_or_swapped_end_it)
{
    enum { CUT, TURNED, LEFT_OUT, REPEATED, SWAPPED, KINDS };
    for (int kind = 0; kind < KINDS; kind++) {
        uint8_t records[2][64], line[200];
        size_t counts[2], count = 0;
        char came[64];
        meet();
        for (int i = 0; i < 2; i++) {
            const uint8_t *bytes;
            cr_assert(zero(int, sgp_cipher_seal(caller.cipher, i == 0 ? "first" : "other", 5)));
            counts[i] = sgp_cipher_take(caller.cipher, &bytes);
            memcpy(records[i], bytes, counts[i]);
        }
        const int order[KINDS][3] = {{0, 1, -1}, {0, 1, -1}, {1, -1, -1}, {0, 0, -1}, {1, 0, -1}};
        for (int i = 0; order[kind][i] >= 0; i++) {
            size_t part = counts[order[kind][i]] - (kind == CUT && i == 0 ? 4 : 0);
            memcpy(line + count, records[order[kind][i]], part);
            count += part;
        }
        if (kind == TURNED)
            line[9] ^= 1;
        sgp_cipher_feed(listener.cipher, line, count);
        ssize_t got = open_some(&listener, came, sizeof came);
        if (kind == REPEATED) {
            cr_assert(eq(int, (int)got, 5));
            got = open_some(&listener, came, sizeof came);
        }
        cr_assert(eq(int, (int)got, SGP_E_PROTOCOL), "kind %d", kind);
        cr_assert(eq(str, listener.error.text, "TLS: Decryption has failed."));
        close_ends(&caller, &listener);
    }
}

Test(cipher, a_recorded_connection_opens_nothing)
{
    static uint8_t recorded[3][4096];
    size_t counts[3];
    const uint8_t *bytes;
    char came[64];
    open_end(&caller, true, keys[0], keys[1]);
    open_end(&listener, false, keys[1], keys[0]);
    caller.code = sgp_cipher_shake(caller.cipher, &caller.error);
    for (int i = 0; i < 2; i++) {
        counts[i] = sgp_cipher_take(caller.cipher, &bytes);
        memcpy(recorded[i], bytes, counts[i]);
        sgp_cipher_feed(listener.cipher, bytes, counts[i]);
        listener.code = sgp_cipher_shake(listener.cipher, &listener.error);
        (void)carry(&listener, &caller);
    }
    cr_assert(zero(int, caller.code + listener.code));
    cr_assert(zero(int, sgp_cipher_seal(caller.cipher, "mass", 4)));
    counts[2] = sgp_cipher_take(caller.cipher, &bytes);
    memcpy(recorded[2], bytes, counts[2]);
    close_ends(&caller, &listener);

    open_end(&listener, false, keys[1], keys[0]);
    for (int i = 0; i < 3; i++) {
        sgp_cipher_feed(listener.cipher, recorded[i], counts[i]);
        int code = sgp_cipher_shake(listener.cipher, &listener.error);
        cr_assert(eq(int, code, i == 0 ? -EAGAIN : SGP_E_PROTOCOL));
    }
    cr_assert(zero(u32, listener.asked)); /* it came to no key */
    (void)came;
    sgp_cipher_destroy(listener.cipher);
}

Test(cipher, bytes_that_are_no_tls_end_it)
{
    static const char *const noise[] = {"\x16GET / HTTP/1.1\r\n\r\n", "\x16\x9dSGP\2\0\1\0",
        "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"};
    for (size_t i = 0; i < sizeof noise / sizeof *noise; i++) {
        open_end(&listener, false, keys[1], keys[0]);
        static uint8_t line[4096];
        memset(line, 0, sizeof line);
        memcpy(line, noise[i], 8);
        sgp_cipher_feed(listener.cipher, line, sizeof line);
        int code = sgp_cipher_shake(listener.cipher, &listener.error);
        cr_assert(eq(int, code, SGP_E_PROTOCOL), "noise %zu", i);
        cr_assert(not(zero(int, listener.error.code)));
        sgp_cipher_destroy(listener.cipher);
    }
}

/* All of its records come at once. */
Test(cipher, a_message_in_many_records_is_one)
{
    uint8_t line[1024];
    const uint8_t *hello;
    size_t count = 0;
    open_end(&caller, true, keys[0], keys[1]);
    open_end(&listener, false, keys[1], keys[0]);
    caller.code = sgp_cipher_shake(caller.cipher, &caller.error);
    size_t bytes = sgp_cipher_take(caller.cipher, &hello);
    for (size_t at = 5; at < bytes; at += 20) {
        size_t part = bytes - at < 20 ? bytes - at : 20;
        const uint8_t header[5] = {0x16, 3, 1, 0, (uint8_t)part};
        memcpy(line + count, header, 5);
        memcpy(line + count + 5, hello + at, part);
        count += 5 + part;
    }
    sgp_cipher_feed(listener.cipher, line, count);
    listener.code = sgp_cipher_shake(listener.cipher, &listener.error);
    cr_assert(eq(int, listener.code, -EAGAIN), "%s", listener.error.text);
    for (int i = 0; i < 2; i++)
        (void)(carry(&listener, &caller), carry(&caller, &listener));
    cr_assert(zero(int, caller.code + listener.code));
    close_ends(&caller, &listener);
}

Test(cipher, a_hello_without_end_ends_it)
{
    static uint8_t line[16384 + 5] = {0x16, 3, 1, 0x40, 0, 1, 0xff, 0xff, 0xff};
    open_end(&listener, false, keys[1], keys[0]);
    sgp_cipher_feed(listener.cipher, line, 4000);
    cr_assert(eq(int, sgp_cipher_shake(listener.cipher, &listener.error), -EAGAIN));
    sgp_cipher_feed(listener.cipher, line + 4000, sizeof line - 4000);
    cr_assert(eq(int, sgp_cipher_shake(listener.cipher, &listener.error), SGP_E_PROTOCOL));
    cr_assert(eq(str, listener.error.text, "its handshake is too long"));
    sgp_cipher_destroy(listener.cipher);
}

/* ---- for long ---- */

/* A GiB is the least, so this takes two seconds: SGP_LONG. */
Test(cipher, a_key_is_made_new_on_the_way)
{
    static uint8_t sent[131072], came[131072];
    const char *is_long = getenv("SGP_LONG");
    uint64_t most = is_long != NULL ? 2 * SGP_CIPHER_RENEW_LEAST + sizeof sent : 8 * sizeof sent;
    size_t plain = 0;
    uint32_t updates = 0;
    meet();
    for (uint64_t at = 0; at < most; at += sizeof sent) {
        const uint8_t *bytes;
        size_t have = 0;
        memset(sent, (int)(at >> 17), sizeof sent);
        cr_assert(zero(int, sgp_cipher_seal(caller.cipher, sent, sizeof sent)));
        size_t count = sgp_cipher_take(caller.cipher, &bytes);
        plain = plain == 0 ? count : plain;
        updates += count > plain; /* a record more */
        sgp_cipher_feed(listener.cipher, bytes, count);
        ssize_t part;
        while ((part = open_some(&listener, came + have, sizeof came - have + 1)) > 0)
            have += (size_t)part;
        cr_assert(eq(int, (int)part, -EAGAIN), "%s", listener.error.text);
        cr_assert(eq(sz, have, sizeof sent));
        cr_assert(zero(int, memcmp(sent, came, sizeof sent)));
    }
    cr_assert(eq(u32, updates, is_long != NULL ? 2 : 0));
    close_ends(&caller, &listener);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The cipher alone: what a node gives in a round is enciphered, and as much deciphered, by records of 16 KiB with AES-128-GCM
 * of GnuTLS, from memory to memory by way of a window that stays in the cache; nothing is sent. */
#include "ring.h"

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <stdlib.h>
#include <string.h>

#define RECORD_BYTES 16384u
#define HEADER_BYTES 5u
#define TAG_BYTES 16u
#define WINDOW_RECORDS 8u
#define SEALED_BYTES (RECORD_BYTES + TAG_BYTES)

struct machine {
    gnutls_aead_cipher_hd_t cipher;
    uint64_t number; /* of the next record: its nonce */
    uint8_t window[WINDOW_RECORDS][SEALED_BYTES];
};

static void nonce(uint64_t number, uint8_t ret_nonce[12])
{
    memset(ret_nonce, 0, 12);
    memcpy(ret_nonce + 4, &number, sizeof number);
}

static void seal_record(
    struct machine *machine, const uint8_t *from, size_t bytes, uint64_t number, uint8_t *into)
{
    static const uint8_t header[HEADER_BYTES] = {0x17, 3, 3, 0x40, 0x11};
    uint8_t once[12];
    size_t sealed = SEALED_BYTES;
    nonce(number, once);
    if (gnutls_aead_cipher_encrypt(machine->cipher, once, sizeof once, header, sizeof header,
            TAG_BYTES, from, bytes, into, &sealed) < 0)
        ring_fail("seal");
}

static void open_record(
    struct machine *machine, const uint8_t *from, size_t bytes, uint64_t number, uint8_t *into)
{
    static const uint8_t header[HEADER_BYTES] = {0x17, 3, 3, 0x40, 0x11};
    uint8_t once[12];
    size_t opened = bytes;
    nonce(number, once);
    if (gnutls_aead_cipher_decrypt(machine->cipher, once, sizeof once, header, sizeof header,
            TAG_BYTES, from, bytes + TAG_BYTES, into, &opened) < 0)
        ring_fail("open");
}

/* A window after the other. */
static void round_of(struct machine *machine, const uint8_t *given, uint8_t *taken, uint64_t bytes)
{
    for (uint64_t at = 0; at < bytes;) {
        uint64_t begin = at, number = machine->number;
        for (uint32_t i = 0; i < WINDOW_RECORDS && at < bytes; i++) {
            size_t part = bytes - at < RECORD_BYTES ? (size_t)(bytes - at) : RECORD_BYTES;
            seal_record(machine, given + at, part, machine->number++, machine->window[i]);
            at += part;
        }
        for (uint32_t i = 0; begin < at; i++) {
            size_t part = at - begin < RECORD_BYTES ? (size_t)(at - begin) : RECORD_BYTES;
            open_record(machine, machine->window[i], part, number++, taken + begin);
            begin += part;
        }
    }
}

static struct stopwatch run(const struct ring_node *node)
{
    static struct machine machine;
    uint8_t secret[16] = {1, 2, 3};
    const gnutls_datum_t key = {secret, sizeof secret};
    float *given = malloc(node->bytes), *taken = malloc(node->bytes);
    if (given == NULL || taken == NULL ||
        gnutls_aead_cipher_init(&machine.cipher, GNUTLS_CIPHER_AES_128_GCM, &key) < 0)
        ring_fail("cipher");
    ring_fill(given, node->bytes / sizeof *given);
    ring_fill(taken, node->bytes / sizeof *taken);
    struct stopwatch start = stopwatch_now();
    for (uint64_t round = 0; round < node->warmup + node->rounds; round++) {
        if (round == node->warmup)
            start = stopwatch_now();
        round_of(&machine, (const uint8_t *)given, (uint8_t *)taken, node->bytes);
    }
    return stopwatch_since(start, node->rounds);
}

int main(int count, char **arguments)
{
    return ring_main(count, arguments, run);
}

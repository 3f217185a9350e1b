/* SPDX-License-Identifier: Apache-2.0 */
/* What is read of a peer before it is known: by who listens and by who dials, in pieces of any size. The first byte of the input says
 * which end it is, and how large the pieces are. */
#include "sgp/cipher.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ANSWER_BYTES_MAX 1024u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct sgp_key *key;

/* One for all inputs. */
static void make_key(void)
{
    char path[] = "/tmp/sgp-fuzz-XXXXXX", hash[SGP_KEY_BYTES];
    struct sgp_error error = {0};
    int descriptor = mkstemp(path);
    sgp_assert(descriptor >= 0 && close(descriptor) == 0 && unlink(path) == 0);
    int code = sgp_key_generate(path, &error, hash);
    sgp_assert(code == 0);
    code = sgp_key_read(path, &error, &key);
    sgp_assert(code == 0);
    (void)unlink(path);
}

static const char *object(void *context, const char *hash)
{
    (void)context;
    (void)hash;
    return "nobody is known";
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sgp_cipher *cipher;
    struct sgp_error error = {0};
    const uint8_t *answer;
    size_t answered = 0;
    if (key == NULL)
        make_key();
    if (size == 0)
        return 0;
    const struct sgp_cipher_settings settings = {
        .key = key, .dials = data[0] & 1, .objection = object};
    size_t piece = 1 + 8u * (data[0] >> 1);
    if (sgp_cipher_create(&settings, &cipher) < 0)
        return 0;
    int code = sgp_cipher_shake(cipher, &error);
    sgp_assert(code == -EAGAIN);
    for (size_t at = 1; at < size && code == -EAGAIN; at += piece) {
        sgp_cipher_feed(cipher, data + at, size - at < piece ? size - at : piece);
        code = sgp_cipher_shake(cipher, &error);
        answered += sgp_cipher_take(cipher, &answer);
    }
    sgp_assert(code == -EAGAIN || (code == SGP_E_PROTOCOL && error.text[0] != '\0'));
    sgp_assert(answered <= ANSWER_BYTES_MAX);
    code = sgp_cipher_shake(cipher, NULL); /* once it is over it stays so */
    sgp_assert(code == -EAGAIN || code == SGP_E_PROTOCOL);
    sgp_cipher_destroy(cipher);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to lib/tls: a key in the form of GnuTLS. */
#ifndef SGP_TLS_IDENTITY_H
#define SGP_TLS_IDENTITY_H

#include "sgp/key.h"

#include <gnutls/abstract.h>

struct sgp_key {
    uint32_t holders;
    uint8_t *page; /* a mapped page with only the secret */
    uint8_t point[32];
    char hash[SGP_KEY_BYTES];
    gnutls_certificate_credentials_t credentials;
    gnutls_priority_t priorities;
};

/* The text of a SubjectPublicKeyInfo's hash. False: it cannot be made. */
bool sgp_key_hash_of(const void *info, size_t bytes, char ret_hash[SGP_KEY_BYTES]);

#endif

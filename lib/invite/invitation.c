/* SPDX-License-Identifier: Apache-2.0 */
/* The text of an invitation, and the proof of its secret; see sgp/invitation.h. */
#include "invite/secret.h"

#include "sgp/invitation.h"
#include "sgp/topology.h"

#include <stdio.h>
#include <string.h>

#define MARK "sgp1"
#define FIELDS 6u

/* ---- hexadecimal ---- */

static void write_hex(const uint8_t *bytes, size_t count, char *text)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < count; i++) {
        text[2 * i] = digits[bytes[i] >> 4];
        text[2 * i + 1] = digits[bytes[i] & 15];
    }
    text[2 * count] = '\0';
}

static int digit_of(char letter)
{
    if (letter >= '0' && letter <= '9')
        return letter - '0';
    return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

static bool read_hex(const char *text, size_t length, uint8_t *bytes, size_t count)
{
    if (length != 2 * count)
        return false;
    for (size_t i = 0; i < count; i++) {
        int high = digit_of(text[2 * i]), low = digit_of(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        bytes[i] = (uint8_t)(16 * high + low);
    }
    return true;
}

void sgp_proof_write(const uint8_t proof[SGP_PROOF_BYTES], char ret_text[SGP_PROOF_TEXT_BYTES])
{
    write_hex(proof, SGP_PROOF_BYTES, ret_text);
}

bool sgp_proof_read(const char *text, uint8_t ret_proof[SGP_PROOF_BYTES])
{
    return read_hex(text, strnlen(text, SGP_PROOF_TEXT_BYTES), ret_proof, SGP_PROOF_BYTES);
}

/* ---- the text ---- */

static bool key_is_good(const char *key)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const size_t mark = strlen("SHA256:");
    return strlen(key) == SGP_KEY_BYTES - 1 && strncmp(key, "SHA256:", mark) == 0 &&
           strspn(key + mark, letters) == SGP_KEY_BYTES - 1 - mark;
}

static int check(const struct sgp_invitation *invitation, struct sgp_error *error)
{
    char host[SGP_ADDRESS_BYTES];
    uint16_t port;
    struct sgp_error why = {0};
    if (!sgp_topology_name_is_good(invitation->fleet))
        return sgp_fail(error, SGP_E_SYNTAX, "the invitation names no fleet; paste all of it");
    if (!sgp_topology_name_is_good(invitation->name))
        return sgp_fail(error, SGP_E_SYNTAX, "the invitation names no node; paste all of it");
    if (sgp_address_split(invitation->address, &why, host, &port) < 0)
        return sgp_fail(error, SGP_E_SYNTAX, "the invitation: %s", why.text);
    if (!key_is_good(invitation->key))
        return sgp_fail(error, SGP_E_SYNTAX,
            "the key in the invitation is no SHA256: and 43 letters of base64; paste all of it");
    return 0;
}

void sgp_invitation_write(
    const struct sgp_invitation *invitation, char ret_text[SGP_INVITATION_TEXT_BYTES])
{
    char secret[2 * SGP_SECRET_BYTES + 1];
    sgp_assert(check(invitation, NULL) == 0);
    write_hex(invitation->secret, SGP_SECRET_BYTES, secret);
    int length = snprintf(ret_text, SGP_INVITATION_TEXT_BYTES, MARK ",%s,%s,%s,%s,%s",
        invitation->fleet, invitation->name, invitation->address, invitation->key, secret);
    sgp_assert(length > 0 && (size_t)length < SGP_INVITATION_TEXT_BYTES);
    explicit_bzero(secret, sizeof secret);
}

/* Copy a field, which ends at a comma or at the end of the text. */
static bool take(const char *field, size_t length, char *into, size_t capacity)
{
    if (length >= capacity)
        return false;
    memcpy(into, field, length);
    into[length] = '\0';
    return true;
}

int sgp_invitation_read(
    const char *text, struct sgp_error *error, struct sgp_invitation *ret_invitation)
{
    struct sgp_invitation read = {.fleet = ""};
    const char *fields[FIELDS] = {text};
    size_t lengths[FIELDS] = {strcspn(text, ",")}, count = 1;
    for (const char *at = text + lengths[0]; *at == ',' && count < FIELDS; count++) {
        fields[count] = at + 1;
        lengths[count] = strcspn(at + 1, ",");
        at += 1 + lengths[count];
        if (count == FIELDS - 1 && *at == ',')
            count = FIELDS;
    }
    if (count != FIELDS || lengths[0] != strlen(MARK) || strncmp(text, MARK, strlen(MARK)) != 0)
        return sgp_fail(error, SGP_E_SYNTAX,
            "this is no invitation; sgpctl invite prints one: " MARK ",FLEET,NAME,ADDRESS,KEY,"
            "SECRET");
    if (!take(fields[1], lengths[1], read.fleet, sizeof read.fleet) ||
        !take(fields[2], lengths[2], read.name, sizeof read.name) ||
        !take(fields[3], lengths[3], read.address, sizeof read.address) ||
        !take(fields[4], lengths[4], read.key, sizeof read.key))
        return sgp_fail(error, SGP_E_SYNTAX,
            "a part of the invitation is too long; paste it as sgpctl invite printed it");
    int code = check(&read, error);
    if (code < 0)
        return code;
    if (!read_hex(fields[5], lengths[5], read.secret, SGP_SECRET_BYTES))
        return sgp_fail(error, SGP_E_SYNTAX,
            "the secret at the end of the invitation has other than 32 hexadecimal digits; paste "
            "all of it");
    *ret_invitation = read;
    return 0;
}

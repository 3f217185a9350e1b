/* SPDX-License-Identifier: Apache-2.0 */
/* Invitations: their text, the proof of their secret, and the verdicts, on a clock of the test's. */
#include "sgp/invitation.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define KEY_A "SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
#define KEY_B "SHA256:BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB+"
#define SECRET "000102030405060708090a0b0c0d0e0f"
#define TEXT "sgp1,pair,carol,192.0.2.10:7311," KEY_A "," SECRET
#define HOUR (3600 * SGP_SECOND)

static struct sgp_invitation invitation_of(const char *name, uint8_t first)
{
    struct sgp_invitation invitation = {
        .fleet = "pair", .address = "192.0.2.10:7311", .key = KEY_A};
    (void)snprintf(invitation.name, sizeof invitation.name, "%s", name);
    for (uint8_t i = 0; i < SGP_SECRET_BYTES; i++)
        invitation.secret[i] = (uint8_t)(first + i);
    return invitation;
}

static struct sgp_join_claim claim_of(const struct sgp_invitation *invitation, const char *key)
{
    struct sgp_join_claim claim = {.fleet = invitation->fleet,
        .name = invitation->name,
        .address = "192.0.2.12:7311",
        .key = key};
    memset(claim.binding, 7, sizeof claim.binding);
    sgp_join_claim_prove(&claim, invitation->secret);
    return claim;
}

static void add(struct sgp_invitations *book, const struct sgp_invitation *invitation, sgp_time now)
{
    cr_assert(zero(int, sgp_invitations_add(book, invitation, now, 24 * HOUR, NULL)));
}

#define JUDGED(book, claim, now, expected)                                                         \
    cr_assert(eq(int, (int)sgp_invitations_judge(book, claim, now, NULL), (int)(expected)))

/* ---- the text ---- */

Test(invitation, a_text_is_read_as_it_was_written)
{
    struct sgp_invitation invitation = invitation_of("carol", 0), back;
    char text[SGP_INVITATION_TEXT_BYTES];
    sgp_invitation_write(&invitation, text);
    cr_assert(eq(str, text, (char *)TEXT));
    cr_assert(zero(int, sgp_invitation_read(text, NULL, &back)));
    cr_assert(zero(int, memcmp(&back, &invitation, sizeof back)));
}

Test(invitation, the_longest_text_fits)
{
    struct sgp_invitation invitation = invitation_of("n", 0), back;
    char text[SGP_INVITATION_TEXT_BYTES];
    memset(invitation.fleet, 'f', sizeof invitation.fleet - 1);
    memset(invitation.name, 'n', sizeof invitation.name - 1);
    memset(invitation.address, 'a', sizeof invitation.address - 1);
    memcpy(invitation.address + sizeof invitation.address - 7, ":65535", 6);
    sgp_invitation_write(&invitation, text);
    cr_assert(zero(int, sgp_invitation_read(text, NULL, &back)));
    cr_assert(eq(str, back.address, invitation.address));
}

/* Each message names the part, and no message has the secret. */
Test(invitation, other_texts_are_refused)
{
    static const char *const texts[][2] = {
        {"", "this is no invitation"},
        {"sgp1", "this is no invitation"},
        {"sgp2,pair,carol,192.0.2.10:7311," KEY_A "," SECRET, "this is no invitation"},
        {"sgp1,pair,carol,192.0.2.10:7311," KEY_A, "this is no invitation"},
        {TEXT ",more", "this is no invitation"},
        {TEXT ",", "this is no invitation"},
        {"sgp1,,carol,192.0.2.10:7311," KEY_A "," SECRET, "names no fleet"},
        {"sgp1,pair,ca rol,192.0.2.10:7311," KEY_A "," SECRET, "names no node"},
        {"sgp1,pair,carol,192.0.2:7311," KEY_A "," SECRET, "is no IPv4 address"},
        {"sgp1,pair,carol,192.0.2.10:7311,SHA256:short," SECRET, "the key in the invitation"},
        {"sgp1,pair,carol,192.0.2.10:7311,MD5____"
         "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA," SECRET,
            "the key in the invitation"},
        {"sgp1,pair,carol,192.0.2.10:7311," KEY_A ",000102030405060708090a0b0c0d0e0",
            "the secret at the end"},
        {TEXT "0", "the secret at the end"},
        {"sgp1,pair,carol,192.0.2.10:7311," KEY_A ",00010203040506070809xx0b0c0d0e0f",
            "the secret at the end"},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct sgp_error error = {0};
        struct sgp_invitation back;
        cr_assert(eq(int, sgp_invitation_read(texts[i][0], &error, &back), SGP_E_SYNTAX));
        cr_assert_not_null(strstr(error.text, texts[i][1]), "%s: %s", texts[i][0], error.text);
        cr_assert_null(strstr(error.text, "0001020304"), "%s", error.text);
    }
}

Test(invitation, a_proof_is_read_as_it_was_written)
{
    uint8_t proof[SGP_PROOF_BYTES], back[SGP_PROOF_BYTES];
    char text[SGP_PROOF_TEXT_BYTES];
    for (uint8_t i = 0; i < SGP_PROOF_BYTES; i++)
        proof[i] = (uint8_t)(251 * i);
    sgp_proof_write(proof, text);
    cr_assert(sgp_proof_read(text, back));
    cr_assert(zero(int, memcmp(proof, back, sizeof back)));
    text[63] = 'F';
    cr_assert_not(sgp_proof_read(text, back), "capitals");
    text[63] = '\0';
    cr_assert_not(sgp_proof_read(text, back), "63 digits");
}

/* ---- the proof ---- */

/* The numbers are of Python's hmac and hashlib, by the formula of the header. */
Test(invitation, a_proof_is_the_documented_one)
{
    struct sgp_invitation invitation = invitation_of("carol", 0);
    struct sgp_join_claim claim = claim_of(&invitation, KEY_A);
    char text[SGP_PROOF_TEXT_BYTES];
    sgp_proof_write(claim.proof, text);
    cr_assert(eq(u64, claim.number, UINT64_C(0xd59df7ca2d2975ca)));
    cr_assert(
        eq(str, text, (char *)"be26c07344ebcd1ba6188daa77c1bd640687afab93605dab737c73d6ba580f51"));
}

/* Of what it keeps, nothing is the secret or the joiner's key: a claim from it fails. */
Test(invitation, the_book_has_no_secret)
{
    struct sgp_invitations book = {.refused = 0};
    struct sgp_invitation invitation = invitation_of("carol", 0);
    add(&book, &invitation, 0);
    const uint8_t *bytes = (const uint8_t *)&book;
    for (size_t i = 0; i + SGP_SECRET_BYTES <= sizeof book; i++)
        cr_assert(ne(int, memcmp(bytes + i, invitation.secret, SGP_SECRET_BYTES), 0));
    struct sgp_join_claim claim = claim_of(&invitation, KEY_A), forged = claim;
    sgp_join_claim_prove(&forged, book.records[0].stored);
    forged.number = claim.number;
    JUDGED(&book, &forged, 1, SGP_JOIN_UNKNOWN);
}

/* Whatever is changed in a claim, its proof fails: each field, each bit of number, binding, proof. */
Test(invitation, a_proof_is_of_one_claim_alone)
{
    struct sgp_invitations book = {.refused = 0};
    struct sgp_invitation invitation = invitation_of("carol", 0);
    add(&book, &invitation, 0);
    const struct sgp_join_claim claim = claim_of(&invitation, KEY_A);
    uint64_t tried = 0;
    for (size_t bit = 0; bit < 8 * SGP_PROOF_BYTES; bit++) {
        struct sgp_join_claim changed = claim;
        changed.proof[bit / 8] ^= (uint8_t)(1u << bit % 8);
        JUDGED(&book, &changed, 1, SGP_JOIN_UNKNOWN);
        changed = claim;
        changed.binding[bit / 8] ^= (uint8_t)(1u << bit % 8);
        JUDGED(&book, &changed, 1, SGP_JOIN_UNKNOWN);
        tried += 2;
    }
    for (unsigned bit = 0; bit < 64; bit++, tried++) {
        struct sgp_join_claim changed = claim;
        changed.number ^= UINT64_C(1) << bit;
        JUDGED(&book, &changed, 1, SGP_JOIN_UNKNOWN);
    }
    struct sgp_join_claim others[] = {claim, claim, claim, claim};
    others[0].fleet = "pairs";
    others[1].name = "carole";
    others[2].address = "192.0.2.13:7311";
    others[3].key = KEY_B;
    for (size_t i = 0; i < 4; i++, tried++)
        JUDGED(&book, &others[i], 1, SGP_JOIN_UNKNOWN);
    cr_assert(eq(u64, book.refused, tried));
    cr_assert_not(book.records[0].used);
    JUDGED(&book, &claim, 1, SGP_JOIN_ACCEPTED);
    cr_assert(eq(u64, book.refused, tried));
}

/* ---- the verdict ---- */

Test(invitation, it_is_good_once)
{
    struct sgp_invitations book = {.refused = 0};
    const struct sgp_invitation_record *record = NULL;
    struct sgp_invitation invitation = invitation_of("carol", 0);
    add(&book, &invitation, 0);
    struct sgp_join_claim first = claim_of(&invitation, KEY_A),
                          second = claim_of(&invitation, KEY_B);
    cr_assert(eq(int, (int)sgp_invitations_judge(&book, &first, 1, &record), SGP_JOIN_ACCEPTED));
    cr_assert(eq(str, (char *)(uintptr_t)record->key, (char *)KEY_A));
    cr_assert(eq(str, (char *)(uintptr_t)record->address, (char *)"192.0.2.12:7311"));
    JUDGED(&book, &second, 2, SGP_JOIN_USED);
    cr_assert(eq(str, (char *)(uintptr_t)record->key, (char *)KEY_A), "the first stays");
    JUDGED(&book, &first, 3, SGP_JOIN_ACCEPTED); /* after a broken connection */
    cr_assert(eq(u64, book.refused, 1));
}

Test(invitation, it_ends_to_the_nanosecond)
{
    struct sgp_invitations book = {.refused = 0};
    struct sgp_invitation invitation = invitation_of("carol", 0);
    add(&book, &invitation, 5);
    struct sgp_join_claim claim = claim_of(&invitation, KEY_A);
    JUDGED(&book, &claim, 24 * HOUR + 5, SGP_JOIN_EXPIRED);
    JUDGED(&book, &claim, 24 * HOUR + 4, SGP_JOIN_ACCEPTED);
    JUDGED(&book, &claim, 24 * HOUR + 5, SGP_JOIN_EXPIRED); /* also for the key that used it */
}

Test(invitation, it_is_for_one_name)
{
    struct sgp_invitations book = {.refused = 0};
    struct sgp_invitation invitation = invitation_of("carol", 0), other = invitation_of("dave", 0);
    add(&book, &invitation, 0);
    struct sgp_join_claim claim = claim_of(&other, KEY_A); /* the secret of carol's */
    JUDGED(&book, &claim, 1, SGP_JOIN_OTHER_NAME);
    JUDGED(&book, &claim, 25 * HOUR, SGP_JOIN_OTHER_NAME);
    claim = claim_of(&invitation, KEY_A);
    JUDGED(&book, &claim, 1, SGP_JOIN_ACCEPTED);
}

Test(invitation, a_new_one_replaces_the_former_of_its_name)
{
    struct sgp_invitations book = {.refused = 0};
    struct sgp_invitation former = invitation_of("carol", 0), latter = invitation_of("carol", 1);
    add(&book, &former, 0);
    add(&book, &latter, 1);
    struct sgp_join_claim claim = claim_of(&former, KEY_A);
    JUDGED(&book, &claim, 2, SGP_JOIN_UNKNOWN);
    claim = claim_of(&latter, KEY_A);
    JUDGED(&book, &claim, 2, SGP_JOIN_ACCEPTED);
}

static struct sgp_invitation numbered(unsigned i)
{
    char name[16];
    (void)snprintf(name, sizeof name, "n%u", i);
    return invitation_of(name, (uint8_t)i);
}

Test(invitation, a_full_book_forgets_what_ended_then_what_was_used_and_nothing_open)
{
    struct sgp_invitations book = {.refused = 0};
    for (unsigned i = 0; i < SGP_INVITATIONS_MAX; i++) {
        struct sgp_invitation invitation = numbered(i);
        add(&book, &invitation, i);
    }
    struct sgp_invitation more = numbered(100), used = numbered(7);
    struct sgp_error error = {0};
    cr_assert(eq(int, sgp_invitations_add(&book, &more, 100, HOUR, &error), -EBUSY));
    cr_assert_not_null(strstr(error.text, "64 invitations are open"));
    struct sgp_join_claim claim = claim_of(&used, KEY_A);
    JUDGED(&book, &claim, 100, SGP_JOIN_ACCEPTED);
    add(&book, &more, 101); /* takes the place of the used one */
    JUDGED(&book, &claim, 102, SGP_JOIN_UNKNOWN);
    struct sgp_invitation last = numbered(101), first = numbered(0);
    add(&book, &last, 24 * HOUR); /* the first has just ended */
    claim = claim_of(&first, KEY_A);
    JUDGED(&book, &claim, 24 * HOUR, SGP_JOIN_UNKNOWN);
    claim = claim_of(&last, KEY_A);
    JUDGED(&book, &claim, 24 * HOUR, SGP_JOIN_ACCEPTED);
}

Test(invitation, it_is_awaited_until_a_day_after_its_end)
{
    struct sgp_invitations book = {.refused = 0};
    struct sgp_invitation invitation = invitation_of("carol", 0);
    cr_assert_not(sgp_invitations_await(&book, 0));
    add(&book, &invitation, 0);
    struct sgp_join_claim claim = claim_of(&invitation, KEY_A);
    cr_assert(sgp_invitations_await(&book, 0));
    cr_assert(sgp_invitations_await(&book, 48 * HOUR));
    JUDGED(&book, &claim, 48 * HOUR, SGP_JOIN_EXPIRED);
    cr_assert_not(sgp_invitations_await(&book, 48 * HOUR + 1));
    JUDGED(&book, &claim, 48 * HOUR + 1, SGP_JOIN_UNKNOWN);
    cr_assert_not(book.records[0].given, "it is forgotten");
}

/* A pending joiner is not forgotten: an operator may admit it late. */
Test(invitation, a_used_one_stays_and_is_not_awaited)
{
    struct sgp_invitations book = {.refused = 0};
    struct sgp_invitation invitation = invitation_of("carol", 0);
    add(&book, &invitation, 0);
    struct sgp_join_claim claim = claim_of(&invitation, KEY_A);
    JUDGED(&book, &claim, 1, SGP_JOIN_ACCEPTED);
    cr_assert_not(sgp_invitations_await(&book, 48 * HOUR + 1));
    cr_assert(book.records[0].used);
}

/* A node that a file names, and a later file strikes, does not come back by the old invitation. */
Test(invitation, one_is_forgotten_by_its_name_alone)
{
    struct sgp_invitations book = {.refused = 0};
    struct sgp_invitation used = invitation_of("carol", 0), open = invitation_of("dave", 1),
                          other = invitation_of("caro", 2);
    add(&book, &used, 0);
    add(&book, &open, 0);
    add(&book, &other, 0);
    struct sgp_join_claim claim = claim_of(&used, KEY_A), late = claim_of(&open, KEY_B),
                          stays = claim_of(&other, KEY_B);
    JUDGED(&book, &claim, 1, SGP_JOIN_ACCEPTED);
    sgp_invitations_forget(&book, "carol");
    sgp_invitations_forget(&book, "dave");
    sgp_invitations_forget(&book, "erin");
    JUDGED(&book, &claim, 2, SGP_JOIN_UNKNOWN);
    JUDGED(&book, &late, 2, SGP_JOIN_UNKNOWN);
    JUDGED(&book, &stays, 2, SGP_JOIN_ACCEPTED);
    for (size_t i = 0; i < SGP_INVITATIONS_MAX; i++)
        cr_assert(eq(int, book.records[i].given, strcmp(book.records[i].name, "caro") == 0));
}

/* ---- the texts that a joiner receives ---- */

Test(invitation, texts_of_lines_are_escaped_and_back)
{
    char every[256] = "", *escaped;
    for (int i = 1; i < 256; i++)
        every[i - 1] = (char)i;
    escaped = sgp_joined_escape(every);
    cr_assert_not_null(escaped);
    for (const char *at = escaped; *at != '\0'; at++)
        cr_assert_not(iscntrl((unsigned char)*at));
    cr_assert(eq(sz, strlen(escaped), 94 + 3 * 161));
    cr_assert(sgp_joined_unescape(escaped));
    cr_assert(eq(str, escaped, every));
    free(escaped);
    escaped = sgp_joined_escape("a\n50%");
    cr_assert(eq(str, escaped, (char *)"a%0A50%25"));
    free(escaped);
    static const char *const hostile[] = {"%", "%4", "%zz", "%0a", "%00", "a%4"};
    for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++) {
        char text[8];
        (void)snprintf(text, sizeof text, "%s", hostile[i]);
        cr_assert_not(sgp_joined_unescape(text), "%s", hostile[i]);
    }
}

/* ---- pieces ---- */

#define ROOM 65536u /* whole pages */

/* Bytes behind which reading ends the process. */
static char *bytes_before_a_wall(uint32_t bytes)
{
    char *room = mmap(NULL, 2 * ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert(ne(ptr, room, MAP_FAILED));
    cr_assert(zero(int, mprotect(room + ROOM, ROOM, PROT_NONE)));
    for (uint32_t i = 0; i < ROOM; i++)
        room[i] = (char)('a' + i % 26);
    return room + ROOM - bytes;
}

/* Else each of the many pieces would cost as much as all of them, and a guest may ask often. */
Test(invitation, a_piece_costs_itself_alone)
{
    char piece[SGP_JOINED_PIECE_MAX + 1];
    const char *texts = bytes_before_a_wall(SGP_JOINED_PIECE_MAX);
    cr_assert(eq(u32, sgp_joined_piece(texts, SGP_JOINED_MAX, 0, piece), SGP_JOINED_PIECE_MAX));
    cr_assert(eq(sz, strlen(piece), SGP_JOINED_PIECE_MAX));
    cr_assert(zero(int, memcmp(piece, texts, SGP_JOINED_PIECE_MAX)));
}

Test(invitation, pieces_are_the_texts)
{
    enum { BYTES = 2 * SGP_JOINED_PIECE_MAX + 1 };
    const char *texts = bytes_before_a_wall(BYTES);
    char piece[SGP_JOINED_PIECE_MAX + 1], whole[BYTES + 1] = "";
    uint32_t have = 0, count;
    while ((count = sgp_joined_piece(texts, BYTES, have, piece)) > 0) {
        memcpy(whole + have, piece, count + 1);
        have += count;
    }
    cr_assert(eq(u32, have, BYTES));
    cr_assert(zero(int, memcmp(whole, texts, BYTES)));
    cr_assert(zero(u32, sgp_joined_piece(texts, BYTES, SGP_JOINED_MAX, piece)));
    cr_assert(eq(str, piece, (char *)""));
}

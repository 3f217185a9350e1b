/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of frames as they are written down: what two versions agree on. */
#include "wire_samples.h"

#include <signal.h>
#include <stdio.h>

/* Bytes of version 3, written down: a change of any of them is another version. They were made by a
 * script of another language, the checksums with xxhsum. */
#define GOLDEN_PRINT                                                                               \
    {                                                                                              \
        .shape = UINT64_C(1) << 40, .loss = 2, .classes = 3, .scaling = 4, .method = 1,            \
        .topology = 5, .learning_rate = 0.05, .batch = 32, .data = 6                               \
    }

static const struct sgp_summary summary = {
    .wants = true, .nodes = {0x1234, 0x5678}, .versions = {7, UINT64_C(1) << 32}};
static const struct {
    struct sgp_message message;
    const char *hex;
} golden[] = {
    {{.type = SGP_HELLO,
         .pulse = QUIET,
         .hello = {.source = "n0",
             .target = "n1",
             .incarnation = 77,
             .parameters = 535818,
             .fingerprint = GOLDEN_PRINT,
             .target_incarnation = 78,
             .acknowledged = 3}},
        "9d5347500300010031000000000000000000000000000000be901b5e3bc33bb7"
        "dc001602c205060ac0a26e30a26e314dce00082d0acf00000100000000000203"
        "040105cb3fa999999999999a2006004e03"},
    {{.type = SGP_WELCOME,
         .pulse = QUIET,
         .welcome =
             {.target = "n1", .incarnation = 78, .accepted = 4, .fingerprint = GOLDEN_PRINT}},
        "9d53475003000200270000000000000000000000000000000232ffb267474281"
        "dc001202c205060ac0a26e314e04cf00000100000000000203040105cb3fa999"
        "999999999a2006"},
    {{
         .type = SGP_BEAT,
         .pulse = QUIET,
     },
        "9d53475003000300070000000000000000000000000000003602a9218576e553"
        "9602c205060ac0"},
    {{.type = SGP_CREDIT, .pulse = QUIET, .credit = {.round = 6}},
        "9d5347500300040008000000000000000000000000000000440e37fb756a6c52"
        "9702c205060ac006"},
    {{.type = SGP_SHARE,
         .pulse = QUIET,
         .share = {.number = 3,
             .round = 5,
             .fraction = 0.5,
             .weight = 0.75,
             .slice = {.count = 535818},
             .payload_bytes = 2143272,
             .bequest = 2,
             .asks = true}},
        "9d5347500300050030000000000000000000000000000000340f59ea8ac444ac"
        "9f02c205060ac00305cb3fe0000000000000cb3fe800000000000000ce00082d"
        "0ace0020b428c3cb4000000000000000"},
    {{.type = SGP_ACK, .pulse = QUIET, .ack = {.number = 3, .reason = SGP_REASON_NOT_FINITE}},
        "9d53475003000600090000000000000000000000000000000a406f06f347f5dc"
        "9802c205060ac00302"},
    {{.type = SGP_GOODBYE,
         .pulse = QUIET,
         .goodbye = {.reason = SGP_REASON_LEAVING, .text = "stopping"}},
        "9d534750030007001100000000000000000000000000000085faf2f6a55414c9"
        "9802c205060ac00fa873746f7070696e67"},
    {{.type = SGP_ASK, .pulse = QUIET, .ask = {.wants = true}},
        "9d534750030008000800000000000000000000000000000049a2f7288aa7f0e9"
        "9702c205060ac0c3"},
    {{.type = SGP_ASK, .pulse = QUIET, .ask = {.wants = true, .digest = 0x1234}},
        "9d534750030008000d000000000000000000000000000000ce1653248440a4af"
        "9a02c205060ac0c300c2cd1234"},
    {{.type = SGP_ESTIMATE,
         .pulse = QUIET,
         .estimate = {.round = 5, .weight = 0.75, .payload_bytes = 2143272}},
        "9d53475003000900160000000000000000000000000000000bf7b0bc47e34298"
        "9902c205060ac005cb3fe8000000000000ce0020b428"},
    {{.type = SGP_ESTIMATE,
         .pulse = QUIET,
         .estimate =
             {.round = 5, .weight = 1, .payload_bytes = 20, .slice = {.first = 5, .count = 5}}},
        "9d5347500300090014000000000000000000000000000000bdd023ae56f243a0"
        "9b02c205060ac005cb3ff0000000000000140505"},
    {{.type = SGP_ESTIMATE,
         .pulse = QUIET,
         .estimate = {.round = 5, .weight = 1, .payload_bytes = 20, .former = true}},
        "9d534750030009001800000000000000000000000000000057423e66df5c5939"
        "9f02c205060ac005cb3ff00000000000001400000000c2c3"},
    {{.type = SGP_ESTIMATE,
         .pulse = QUIET,
         .estimate = {.round = 5, .weight = 1, .payload_bytes = 20, .untrained = true}},
        "9d534750030009001b000000000000000000000000000000ec1f010b6313cfcc"
        "dc001002c205060ac005cb3ff00000000000001400000000c2c2c3"},
    {{.type = SGP_ESTIMATE, .pulse = QUIET, .estimate = {.weight = 1, .same = true}},
        "9d5347500300090017000000000000000000000000000000b81a80280b001898"
        "9e02c205060ac000cb3ff00000000000000000000000c3"},
    {{.type = SGP_BEQUEATH,
         .pulse = QUIET,
         .bequeath = {.kind = SGP_BEQUEATH_DEBT,
             .source = "n0",
             .target = "n1",
             .source_incarnation = 77,
             .target_incarnation = 78,
             .number = 3,
             .weight = 0.75}},
        "9d53475003000a001a0000000000000000000000000000009b0fae7ac0b14135"
        "9d02c205060ac002a26e304da26e314e03cb3fe8000000000000"},
    {{.type = SGP_INQUIRE,
         .pulse = QUIET,
         .inquire = {.source = "n0",
             .target = "n1",
             .source_incarnation = 77,
             .target_incarnation = 78,
             .number = 3}},
        "9d53475003000b00100000000000000000000000000000001ec01c64b92fb2c8"
        "9b02c205060ac0a26e304da26e314e03"},
    {{.type = SGP_ANSWER,
         .pulse = QUIET,
         .answer = {.known = true, .incarnation = 78, .number = 4}},
        "9d53475003000c000a000000000000000000000000000000d3a610893401a6df"
        "9902c205060ac0c34e04"},
    {{.type = SGP_CALL, .pulse = QUIET, .call = {.source = "n0", .target = "n1"}},
        "9d53475003000d000d00000000000000000000000000000049c864e6684689bf"
        "9802c205060ac0a26e30a26e31"},
    {{.type = SGP_STATEMENT,
         .pulse = QUIET,
         .statement = {.kind = SGP_STATEMENT_STOP,
             .round = 7,
             .author = "n0",
             .key = "k",
             .signature = "s"}},
        "9d53475003000e0010000000000000000000000000000000ab862817f2910b79"
        "9b02c205060ac00207a26e30a16ba173"},
    {{.type = SGP_FACT,
         .pulse = QUIET,
         .fact = {.kind = SGP_FACT_TOLD,
             .number = 3,
             .members = 0x1234,
             .author = "n0",
             .text = "mean"}},
        "9d53475003000f0015000000000000000000000000000000824bcdb46868e8c5"
        "9c02c205060ac00103cd123400a26e30a46d65616e"},
    {{.type = SGP_LAYOUT, .pulse = QUIET, .layout = {.index = 2, .before = 0x1234, .text = "b"}},
        "9d534750030010000d0000000000000000000000000000001628d698f8815966"
        "9902c205060ac002cd1234a162"},
    {{.type = SGP_BULLETIN,
         .pulse = QUIET,
         .bulletin = {.kind = SGP_BULLETIN_FIGURES,
             .author = "n0",
             .stamp = 7,
             .digest = 0x1234,
             .bytes = 9,
             .first = 4,
             .text = "rows"}},
        "9d5347500300110016000000000000000000000000000000a9f466b94b15b3a2"
        "9d02c205060ac001a26e3007cd12340904a4726f7773"},
    {{.type = SGP_PULL, .pulse = QUIET, .pull = {.source = "n0", .target = "n1", .heads = 3}},
        "9d534750030012000e000000000000000000000000000000febb1c8455857109"
        "9902c205060ac0a26e30a26e3103"},
    {{.type = SGP_WELCOME,
         .pulse = QUIET,
         .welcome = {.target = "n1",
             .incarnation = 78,
             .accepted = 4,
             .fingerprint = GOLDEN_PRINT,
             .codings = 6,
             .rows = true}},
        "9d534750030002002e000000000000000000000000000000e02a4533ae9fd2cc"
        "dc001902c205060ac0a26e314e04cf00000100000000000203040105cb3fa999"
        "999999999a2006000600000000c3"},
    {{.type = SGP_SUMMARY, .pulse = QUIET, .summary = &summary},
        "9d53475003001300300000000000000000000000000000003bb314a0ccd4bd40"
        "dc002102c205060ac0c3cd1234cd567800000000000000000000000000000000"
        "00000000000007cf0000000100000000"},
    {{.type = SGP_ROW,
         .pulse = QUIET,
         .row = {.author = "n0",
             .version = (UINT64_C(1) << 32) + 1,
             .text = "1 1000 training",
             .key = "key",
             .signature = "sig",
             .age_ms = 2500}},
        "9d534750030014002e0000000000000000000000000000003e00115714dd058e"
        "9c02c205060ac0a26e30cf0000000100000001af31203130303020747261696e"
        "696e67a36b6579a3736967cd09c4"},
    {{.type = SGP_JOIN,
         .pulse = QUIET,
         .join = {.fleet = "pair",
             .name = "carol",
             .address = "h:1",
             .number = 0x1234,
             .proof = "be26c07344ebcd1ba6188daa77c1bd640687afab93605dab737c73d6ba580f51",
             .first = 700}},
        "9d534750030015005e000000000000000000000000000000e82c2dd10c347b70"
        "9c02c205060ac0a470616972a56361726f6ca3683a31cd1234d9406265323663"
        "3037333434656263643162613631383864616137376331626436343036383761"
        "666162393336303564616237333763373364366261353830663531cd02bc"},
    {{.type = SGP_JOINED,
         .pulse = QUIET,
         .joined =
             {.verdict = SGP_JOIN_ACCEPTED, .bytes = 9, .split = 5, .first = 4, .text = "a%0A"}},
        "9d53475003001600100000000000000000000000000000002a0d6aeab7fcd712"
        "9b02c205060ac001090504a461253041"},
};

static void expect_bytes(const struct sgp_message *message, const char *hex)
{
    uint8_t frame[SGP_WIRE_FRAME_MAX];
    size_t bytes = encode(message, frame);
    char text[2 * SGP_WIRE_FRAME_MAX + 1];
    for (size_t i = 0; i < bytes; i++)
        (void)snprintf(text + 2 * i, 3, "%02x", frame[i]);
    cr_assert(eq(str, text, (char *)hex));
}

Test(wire_golden, frames_are_as_written_down)
{
    for (size_t i = 0; i < sizeof golden / sizeof *golden; i++)
        expect_bytes(&golden[i].message, golden[i].hex);
}

Test(wire_golden, a_chunk_header_is_as_written_down)
{
    uint8_t bytes[SGP_WIRE_HEADER_BYTES];
    struct sgp_wire_header header;
    sgp_wire_chunk_header(SGP_WIRE_CHUNK_MAX, 0x89abcdef, bytes);
    char text[2 * SGP_WIRE_HEADER_BYTES + 1];
    for (size_t i = 0; i < sizeof bytes; i++)
        (void)snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    cr_assert(eq(str, text, "9d5347500300ff0000000000000010000000000000000000efcdab8941019273"));
    cr_assert(zero(int, sgp_wire_header_decode(bytes, &header, NULL)));
    cr_assert(eq(u16, header.type, SGP_WIRE_CHUNK));
    cr_assert(eq(u32, header.payload_bytes, SGP_WIRE_CHUNK_MAX));
    cr_assert(eq(u32, header.checksum, 0x89abcdef));
    cr_assert(zero(u32, header.body_bytes));
}

Test(wire_golden, an_odd_chunk_is_a_programmers_error, .signal = SIGABRT)
{
    uint8_t bytes[SGP_WIRE_HEADER_BYTES];
    sgp_wire_chunk_header(6, 0, bytes);
}

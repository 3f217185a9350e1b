/* SPDX-License-Identifier: Apache-2.0 */
/* Connections as the daemon has them: what a link makes of a peer that answers too early, and what the
 * gossip port does while there is no memory. The peer is the other end of a socket. */
#include "connection_link.h"

#include <arpa/inet.h>
#include <errno.h>
#include <math.h>

/* ---- memory, of which a link needs some ---- */

/* ---- a link ---- */

static void send_share_of(struct link *link, uint64_t number, uint32_t parameters)
{
    struct sgp_message share = share_of(parameters);
    share.share.number = number;
    link_send_payload(link, &share, payload, plain);
}

static void send_share(struct link *link, uint32_t parameters)
{
    send_share_of(link, 1, parameters);
}

static void send_estimate(struct link *link, uint32_t parameters)
{
    const struct sgp_message estimate = {.type = SGP_ESTIMATE,
        .pulse = pulse,
        .estimate = {.weight = 1, .payload_bytes = 4 * (uint64_t)parameters}};
    link_send_payload(link, &estimate, payload, plain);
}

static void run_until_told(uv_loop_t *loop)
{
    while (heard == 0 && failure == 0)
        (void)uv_run(loop, UV_RUN_ONCE);
}

/* Whether chunks still wait, or the last one is under way. */
Test(connection, one_that_answers_before_the_payload_is_sent_is_ended)
{
    const struct sgp_message answers[] = {acknowledgement(SGP_REASON_NONE),
        acknowledgement(SGP_REASON_NOT_FINITE),
        {.type = SGP_ASK, .pulse = pulse, .ask = {.wants = false}}};
    for (size_t i = 0; i < 6; i++) {
        uv_loop_t loop;
        int peer;
        struct link *link = linked(&loop, &peer);
        (answers[i % 3].type == SGP_ASK ? send_estimate : send_share)(
            link, i < 3 ? PARAMETERS : SGP_WIRE_CHUNK_MAX / 4);
        cr_assert(eq(int, link->cargo.bytes > 0, i < 3));
        say(peer, answers[i % 3]);
        run_until_told(&loop);
        cr_assert(eq(int, failure, SGP_E_PROTOCOL));
        cr_assert(eq(str, failure_text, "the peer acknowledged a payload before it was sent"));
        cr_assert(eq(int, heard, 0), "its owner must not let go of the payload");
        close_all(&loop, NULL, peer);
    }
}

Test(connection, what_is_no_answer_may_come_in_the_middle)
{
    const struct sgp_message others[] = {{.type = SGP_BEAT, .pulse = pulse},
        {.type = SGP_CREDIT, .pulse = pulse, .credit = {.round = 1}},
        {.type = SGP_ASK, .pulse = pulse, .ask = {.wants = true}},
        {.type = SGP_ASK, .pulse = pulse, .ask = {.wants = false}}}; /* of no estimate, by now */
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        uv_loop_t loop;
        int peer;
        struct link *link = linked(&loop, &peer);
        send_share(link, PARAMETERS);
        say(peer, others[i]);
        run_until_told(&loop);
        cr_assert(eq(int, heard, others[i].type));
        close_all(&loop, link, peer);
    }
}

/* The answer is there before the loop has looked at the end of its own write. */
Test(connection, one_that_has_got_all_may_answer_at_once)
{
    static uint8_t got[4 * PARAMETERS];
    const uint32_t parameters[] = {16, PARAMETERS};
    for (size_t i = 0; i < 2; i++) {
        uv_loop_t loop;
        int peer;
        struct link *link = linked(&loop, &peer);
        send_share(link, parameters[i]);
        uint64_t chunks =
            (4 * (uint64_t)parameters[i] + SGP_WIRE_CHUNK_MAX - 1) / SGP_WIRE_CHUNK_MAX;
        size_t left =
            link->queue_bytes + 4 * (uint64_t)parameters[i] + chunks * SGP_WIRE_HEADER_BYTES;
        while (left > 0) {
            ssize_t count = recv(peer, got, left < sizeof got ? left : sizeof got, MSG_DONTWAIT);
            cr_assert(count > 0 || errno == EAGAIN);
            left -= count > 0 ? (size_t)count : 0;
            if (count < 0)
                (void)uv_run(&loop, UV_RUN_ONCE);
        }
        say(peer, acknowledgement(SGP_REASON_NONE));
        run_until_told(&loop);
        cr_assert(eq(int, heard, SGP_ACK), "%s", failure_text);
        close_all(&loop, link, peer);
    }
}

/* ---- within a machine ---- */

/* The congestion control of a connection from one address of this machine to another, once a link has taken it over. */
static void control_between(const char *from, const char *to, char ret_name[16])
{
    struct sockaddr_in own = {.sin_family = AF_INET}, other = {.sin_family = AF_INET};
    socklen_t bytes = sizeof other, length = 16;
    uv_loop_t loop;
    int listener = socket(AF_INET, SOCK_STREAM, 0), caller = socket(AF_INET, SOCK_STREAM, 0);
    cr_assert(zero(int, inet_pton(AF_INET, from, &own.sin_addr) - 1));
    cr_assert(zero(int, inet_pton(AF_INET, to, &other.sin_addr) - 1));
    cr_assert(zero(int, bind(listener, (struct sockaddr *)&other, sizeof other)));
    cr_assert(zero(int, listen(listener, 1)));
    cr_assert(zero(int, getsockname(listener, (struct sockaddr *)&other, &bytes)));
    cr_assert(zero(int, bind(caller, (struct sockaddr *)&own, sizeof own)));
    cr_assert(zero(int, connect(caller, (struct sockaddr *)&other, sizeof other)));
    cr_assert(zero(int, uv_loop_init(&loop)));
    struct link *link = link_create(&loop, &events, NULL);
    cr_assert(zero(int, uv_tcp_open(&link->tcp, caller)));
    cr_assert(zero(int, link_start(link)));
    cr_assert(zero(int, getsockopt(caller, IPPROTO_TCP, TCP_CONGESTION, ret_name, &length)));
    close_all(&loop, link, listener);
}

Test(connection, nothing_is_paced_within_a_machine)
{
    char usual[16] = "", name[16] = ""; /* qemu answers with four letters and no zero */
    socklen_t length = sizeof usual;
    int any = socket(AF_INET, SOCK_STREAM, 0);
    cr_assert(zero(int, getsockopt(any, IPPROTO_TCP, TCP_CONGESTION, usual, &length)));
    (void)close(any);
    control_between("127.0.0.1", "127.0.0.1", name);
    cr_assert(eq(str, (char *)name, (char *)"reno"));
    control_between("127.0.0.2", "127.0.0.1", name);
    cr_assert(eq(str, (char *)name, (char *)usual), "as the kernel has it between machines");
}

/* ---- a second payload ---- */

#define FRAMES_MAX 1000u

/* What has come to the peer: by frame its type, and of a share its number. */
static struct {
    uint32_t type;
    uint64_t number;
} frames[FRAMES_MAX];

/* Read until a frame has come to which `number` belongs and all of its payload; returns how many frames came. */
static uint32_t read_frames(uv_loop_t *loop, int peer, uint64_t number, uint64_t payload_bytes)
{
    static uint8_t bytes[12 * PARAMETERS];
    size_t have = 0;
    for (;;) {
        uint32_t count = 0;
        uint64_t left = payload_bytes;
        bool whole = false;
        struct sgp_error error;
        for (size_t at = 0; at + SGP_WIRE_HEADER_BYTES <= have; count++) {
            struct sgp_wire_header header;
            struct sgp_wire_text text;
            struct sgp_message message = {0};
            cr_assert(zero(int, sgp_wire_header_decode(bytes + at, &header, &error)));
            size_t body = at + SGP_WIRE_HEADER_BYTES;
            if (body + header.body_bytes + header.payload_bytes > have)
                break;
            if (header.type != SGP_WIRE_CHUNK)
                cr_assert(zero(
                    int, sgp_wire_body_decode(&header, bytes + body, &text, &message, &error)));
            cr_assert(lt(u32, count, FRAMES_MAX));
            frames[count].type = header.type;
            frames[count].number = header.type == SGP_SHARE ? message.share.number : 0;
            left -= whole ? header.payload_bytes : 0;
            whole = whole || frames[count].number == number;
            at = body + header.body_bytes + header.payload_bytes;
        }
        if (whole && left == 0)
            return count;
        (void)uv_run(loop, UV_RUN_NOWAIT);
        ssize_t more = recv(peer, bytes + have, sizeof bytes - have, MSG_DONTWAIT);
        have += more > 0 ? (size_t)more : 0;
    }
}

static uint32_t place_of_share(uint64_t number)
{
    uint32_t at = 0;
    while (frames[at].type != SGP_SHARE || frames[at].number != number)
        at++;
    return at;
}

/* And what is said after it stays behind its announcement, also where it has no payload; what was said before it does not
 * wait. */
Test(connection, a_second_payload_follows_the_first)
{
    const struct sgp_message beat = {.type = SGP_BEAT, .pulse = pulse},
                             credit = {.type = SGP_CREDIT, .pulse = pulse, .credit = {.round = 1}};
    struct sgp_message empty = share_of(PARAMETERS);
    empty.share.number = 2;
    empty.share.fraction = empty.share.weight = 0;
    empty.share.payload_bytes = 0;
    for (uint32_t full = 0; full < 2; full++) {
        uv_loop_t loop;
        int peer;
        struct link *link = linked(&loop, &peer);
        send_share(link, PARAMETERS);
        link_send(link, &credit);
        if (full)
            send_share_of(link, 2, PARAMETERS);
        else
            link_send(link, &empty);
        link_send(link, &beat);
        uint32_t count = read_frames(&loop, peer, 2, full ? 4 * (uint64_t)PARAMETERS : 0);
        uint32_t second = place_of_share(2);
        cr_assert(eq(u32, frames[0].type, SGP_SHARE));
        cr_assert(eq(u32, frames[2].type, SGP_CREDIT), "behind the first chunk");
        cr_assert(eq(u32, second, 6), "behind the credit and four chunks");
        cr_assert(eq(u32, frames[7].type, SGP_BEAT));
        cr_assert(eq(u32, count, full ? 12 : 8));
        cr_assert(zero(int, failure));
        close_all(&loop, link, peer);
    }
}

Test(connection, the_first_may_be_answered_while_the_second_waits_but_not_the_second)
{
    for (uint64_t answered = 1; answered <= 2; answered++) {
        uv_loop_t loop;
        int peer;
        struct link *link = linked(&loop, &peer);
        send_share(link, SGP_WIRE_CHUNK_MAX / 4);
        send_share_of(link, 2, PARAMETERS);
        (void)read_frames(&loop, peer, 1, SGP_WIRE_CHUNK_MAX);
        struct sgp_message ack = acknowledgement(SGP_REASON_NONE);
        ack.ack.number = answered;
        say(peer, ack);
        run_until_told(&loop);
        cr_assert(eq(int, heard, answered == 1 ? SGP_ACK : 0), "%s", failure_text);
        cr_assert(eq(int, failure, answered == 1 ? 0 : SGP_E_PROTOCOL));
        close_all(&loop, failure == 0 ? link : NULL, peer);
    }
}

/* Nor may the first, for as long as the kernel has not got all of it, though another was announced since. */
Test(connection, a_share_in_the_present_write_cannot_be_answered)
{
    for (uint32_t second = 0; second < 2; second++) {
        uv_loop_t loop;
        int peer;
        struct link *link = linked(&loop, &peer);
        send_share(link, SGP_WIRE_CHUNK_MAX / 4); /* one write, of which the kernel takes a part */
        if (second > 0)
            send_share_of(link, 2, PARAMETERS);
        cr_assert(gt(sz, uv_stream_get_write_queue_size((const uv_stream_t *)&link->tcp), 0));
        struct sgp_message ack = acknowledgement(SGP_REASON_NONE);
        ack.ack.number = 1;
        say(peer, ack);
        run_until_told(&loop);
        cr_assert(eq(int, failure, SGP_E_PROTOCOL), "with %u behind it", second);
        close_all(&loop, NULL, peer);
    }
}

/* Of a large payload the second waits for long. A beat says what those before it said. */
Test(connection, beats_behind_a_second_payload_do_not_fill_the_ring)
{
    const struct sgp_message beat = {.type = SGP_BEAT, .pulse = pulse};
    uv_loop_t loop;
    int peer;
    struct link *link = linked(&loop, &peer);
    send_share(link, PARAMETERS);
    send_share_of(link, 2, PARAMETERS);
    for (uint32_t i = 0; i < LINK_QUEUE_BYTES; i++)
        link_send(link, &beat);
    cr_assert(zero(int, failure), "%s", failure_text);
    size_t bytes = link->queue_bytes;
    cr_assert(le(sz, bytes, LINK_QUEUE_BYTES / 2 + 100));
    struct sgp_message other = beat; /* but one that promises something else */
    for (sgp_round round = 0; round < 4; round++) {
        other.pulse.next_round = beat.pulse.next_round + 1 + round % 2;
        link_send(link, &other);
        cr_assert(gt(sz, link->queue_bytes, bytes));
        bytes = link->queue_bytes;
    }
    close_all(&loop, link, peer);
}

/* ---- coded payloads ---- */

static size_t readable(int peer)
{
    static uint8_t got[4 * LARGE];
    ssize_t count = recv(peer, got, sizeof got, MSG_DONTWAIT | MSG_PEEK);
    return count > 0 ? (size_t)count : 0;
}

/* Nothing of them is written before, and all of them then: no call back is needed. */
Test(connection, what_is_gathered_leaves_in_one_write)
{
    uv_loop_t loop;
    int peer;
    struct link *link = linked(&loop, &peer);
    const struct sgp_message ack = acknowledgement(SGP_REASON_NONE);
    link->gathers = true;
    link_send(link, &ack);
    send_share(link, SMALL);
    link_send(link, &ack);
    cr_assert(eq(sz, readable(peer), 0));
    size_t waits = link->queue_bytes;
    link_flush(link);
    cr_assert(eq(sz, readable(peer), waits + SGP_WIRE_HEADER_BYTES + 4 * SMALL));
    cr_assert(eq(u64, link->bytes_sent, readable(peer)));
    cr_assert(not(link->gathers));
    close_all(&loop, link, peer);
}

/* A node says why it hangs up in the same moment in which it acknowledges. */
Test(connection, what_is_gathered_leaves_before_the_goodbye)
{
    const struct sgp_message ack = acknowledgement(SGP_REASON_NONE),
                             goodbye = {.type = SGP_GOODBYE,
                                 .pulse = pulse,
                                 .goodbye = {.reason = SGP_REASON_CREDIT, .text = "credit"}};
    uv_loop_t loop;
    int peer;
    struct link *link = linked(&loop, &peer);
    link->gathers = true;
    link_send(link, &ack);
    size_t waits = link->queue_bytes;
    link_close(link, &goodbye);
    cr_assert(gt(sz, readable(peer), waits));
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    cr_assert(zero(int, uv_loop_close(&loop)));
    (void)close(peer);
}

/* A full ring is emptied, where the socket takes it, before it is said that the peer does not read. */
Test(connection, more_than_the_ring_holds_is_no_failure)
{
    uv_loop_t loop;
    int peer;
    struct link *link = linked(&loop, &peer);
    const struct sgp_message ack = acknowledgement(SGP_REASON_NONE);
    link->gathers = true;
    for (uint32_t sent = 0; sent < 2 * LINK_QUEUE_BYTES; sent += 32)
        link_send(link, &ack);
    cr_assert(zero(int, failure));
    close_all(&loop, link, peer);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Connections as the daemon has them: what a link makes of a peer that answers too early, and what the
 * gossip port does while there is no memory. The peer is the other end of a socket. */
#include "net/listener.h"

#include "sgp/codec.h"
#include "sgp/kernels.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- memory, of which a link needs some ---- */

static bool no_memory;
static uint32_t links, links_most, links_made; /* that have memory, the most of them, and all */

XXH3_state_t *XXH3_createState(void)
{
    XXH3_state_t *(*create)(void);
    void *symbol = dlsym(RTLD_NEXT, "XXH3_createState");
    memcpy(&create, &symbol, sizeof create);
    XXH3_state_t *state = no_memory ? NULL : create();
    links += state != NULL;
    links_made += state != NULL;
    links_most = links > links_most ? links : links_most;
    return state;
}

XXH_errorcode XXH3_freeState(XXH3_state_t *state)
{
    XXH_errorcode (*give)(XXH3_state_t *);
    void *symbol = dlsym(RTLD_NEXT, "XXH3_freeState");
    memcpy(&give, &symbol, sizeof give);
    links -= state != NULL;
    return give(state);
}

/* ---- a link ---- */

#define PARAMETERS (1u << 20) /* 4 MiB, in 4 chunks: more than a socket takes */

static float payload[PARAMETERS], came[PARAMETERS];
static enum sgp_message_type heard; /* the last message that the owner was told of, or 0 */
static uint64_t messages, payloads; /* since the link was made, and */
static uint64_t ended;              /* with which of these it is closed; 0: it is not */
static int failure;
static char failure_text[128];

/* What x is folded from, and how; NULL: shares are not folded. */
static float source[PARAMETERS];
static struct sgp_fold_work *fold;
static bool late;        /* only when some of it has come */
static int payload_code; /* of the last payload */

static void on_message(struct link *link, const struct sgp_message *message)
{
    heard = message->type;
    if (message->type == SGP_SHARE)
        link_receive(link, came);
    if (message->type == SGP_SHARE && fold != NULL && !late)
        link_fold(link, fold);
    if (++messages == ended)
        link_close(link, NULL);
}

static void on_payload(struct link *link, int code)
{
    (void)link;
    payload_code = code;
    payloads++;
}

static void on_failed(struct link *link, int code, const char *text)
{
    (void)link;
    failure = code;
    (void)snprintf(failure_text, sizeof failure_text, "%s", text);
}

static const struct link_events events = {
    .message = on_message, .payload = on_payload, .failed = on_failed};

static const struct sgp_pulse pulse = {
    .state = SGP_NODE_TRAINING, .next_round = SGP_ROUND_NONE, .ends = 100, .stop = SGP_ROUND_NONE};

static struct sgp_message acknowledgement(enum sgp_reason reason)
{
    return (struct sgp_message){
        .type = SGP_ACK, .pulse = pulse, .ack = {.number = 1, .reason = reason}};
}

static void say(int peer, struct sgp_message message)
{
    uint8_t frame[SGP_WIRE_FRAME_MAX];
    size_t bytes;
    cr_assert(zero(int, sgp_wire_encode(&message, frame, sizeof frame, &bytes)));
    cr_assert(eq(sz, (size_t)write(peer, frame, bytes), bytes));
}

static struct link *linked(uv_loop_t *loop, int *ret_peer)
{
    int ends[2];
    heard = 0;
    failure = 0;
    messages = payloads = ended = 0;
    payload_code = 0;
    cr_assert(zero(int, uv_loop_init(loop)));
    cr_assert(zero(int, socketpair(AF_UNIX, SOCK_STREAM, 0, ends)));
    struct link *link = link_create(loop, &events, NULL);
    cr_assert(zero(int, uv_tcp_open(&link->tcp, ends[0])));
    cr_assert(zero(int, link_start(link)));
    *ret_peer = ends[1];
    return link;
}

static struct sgp_message share_of(uint32_t parameters)
{
    return (struct sgp_message){.type = SGP_SHARE,
        .pulse = pulse,
        .share = {.number = 1,
            .fraction = 0.5,
            .weight = 0.5,
            .slice = {.count = parameters},
            .payload_bytes = 4 * (uint64_t)parameters}};
}

static const struct sgp_codec plain = {.compressor = SGP_COMPRESSOR_NONE};
static const struct sgp_codec halves = {.compressor = SGP_COMPRESSOR_FP16};

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

/* `link` NULL: it has closed itself. */
static void close_all(uv_loop_t *loop, struct link *link, int peer)
{
    if (link != NULL)
        link_close(link, NULL);
    (void)uv_run(loop, UV_RUN_DEFAULT);
    cr_assert(zero(int, uv_loop_close(loop)));
    (void)close(peer);
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
    char usual[16], name[16];
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

/* ---- many frames, few calls of the kernel ---- */

#define SMALL 100u   /* parameters that fit into one read with all else */
#define LARGE 20000u /* and that do not */
#define HUGE 200000u /* and of which the same is no small part of a read */

/* A credit, a share and an acknowledgement, one after the other, as they go over the wire. */
static size_t put_frames(uint8_t *bytes, size_t size, uint32_t parameters)
{
    const struct sgp_message all[] = {{.type = SGP_CREDIT, .pulse = pulse, .credit = {.round = 1}},
        share_of(parameters), acknowledgement(SGP_REASON_NONE)};
    size_t count = 0, more;
    for (size_t i = 0; i < 3; i++) {
        cr_assert(zero(int, sgp_wire_encode(&all[i], bytes + count, size - count, &more)));
        count += more;
        if (all[i].type != SGP_SHARE)
            continue;
        uint32_t sum = (uint32_t)XXH3_64bits(payload, 4 * parameters);
        sgp_wire_chunk_header(4 * parameters, sum, bytes + count);
        memcpy(bytes + count + SGP_WIRE_HEADER_BYTES, payload, 4 * parameters);
        count += SGP_WIRE_HEADER_BYTES + 4 * parameters;
    }
    return count;
}

/* Wherever the kernel cuts them: each piece is read before the next one is written. */
Test(connection, frames_are_the_same_however_they_are_cut)
{
    static uint8_t bytes[4 * LARGE + 4096];
    const uint32_t parameters[] = {SMALL, LARGE};
    for (uint32_t i = 0; i < PARAMETERS; i++)
        payload[i] = (float)i;
    for (size_t i = 0; i < 2; i++) {
        size_t count = put_frames(bytes, sizeof bytes, parameters[i]);
        for (size_t piece = i == 0 ? 1 : 97; piece <= 2 * count; piece += 1 + piece / 3) {
            uv_loop_t loop;
            int peer;
            struct link *link = linked(&loop, &peer);
            memset(came, 0, sizeof came);
            for (size_t begin = 0; begin < count; begin += piece) {
                size_t part = count - begin < piece ? count - begin : piece;
                cr_assert(eq(sz, (size_t)write(peer, bytes + begin, part), part));
                while (link->bytes_received < begin + part)
                    (void)uv_run(&loop, UV_RUN_ONCE);
            }
            cr_assert(eq(u64, messages, 3));
            cr_assert(eq(u64, payloads, 1));
            cr_assert(eq(int, heard, SGP_ACK));
            cr_assert(zero(int, memcmp(came, payload, 4 * parameters[i])));
            close_all(&loop, link, peer);
        }
    }
}

static void write_all(
    uv_loop_t *loop, struct link *link, int peer, const uint8_t *bytes, size_t count, size_t piece)
{
    uint64_t had = link->bytes_received;
    for (size_t begin = 0; begin < count && failure == 0; begin += piece) {
        size_t part = count - begin < piece ? count - begin : piece;
        cr_assert(eq(sz, (size_t)write(peer, bytes + begin, part), part));
        while (link->bytes_received < had + begin + part && !link->closing && payload_code == 0)
            (void)uv_run(loop, UV_RUN_ONCE);
    }
}

static struct sgp_fold_work fold_of(void)
{
    return (struct sgp_fold_work){.source = source,
        .keep = 0.3f,
        .fraction = 0.7f,
        .stride = 1,
        .their_scale = 0.5f,
        .own_scale = 2};
}

/* The sum is what absorbing would have made of it, and the distance what absorbing would have measured. */
Test(connection, folding_is_the_same_however_it_is_cut)
{
    static uint8_t bytes[4 * LARGE + 4096];
    static float sum[LARGE];
    const struct sgp_kernels *kernels = sgp_kernels_reference();
    for (uint32_t i = 0; i < LARGE; i++) {
        payload[i] = sinf((float)i);
        source[i] = cosf((float)i);
        sum[i] = payload[i];
    }
    double difference, norm;
    kernels->distance(&difference, &norm, payload, 0.5f, source, 2, LARGE);
    double squares;
    (void)kernels->fold(&squares, sum, source, 0.3f, 0.7f, LARGE);
    size_t count = put_frames(bytes, sizeof bytes, LARGE);
    for (size_t piece = 333; piece <= 2 * count; piece += 1 + piece / 2) {
        uv_loop_t loop;
        int peer;
        struct link *link = linked(&loop, &peer);
        struct sgp_fold_work how = fold_of();
        fold = &how;
        late = piece % 2 == 0 && piece < count / 4;
        size_t before = late ? (count / 3 / piece) * piece : 0;
        write_all(&loop, link, peer, bytes, before, piece);
        if (late)
            link_fold(link, fold);
        write_all(&loop, link, peer, bytes + before, count - before, piece);
        late = false;
        cr_assert(eq(u64, payloads, 1));
        cr_assert(zero(int, payload_code));
        cr_assert(zero(int, memcmp(came, sum, sizeof sum)));
        cr_assert(eq(dbl, how.difference, difference));
        cr_assert(eq(dbl, how.norm, norm));
        fold = NULL;
        close_all(&loop, link, peer);
    }
}

/* Three quarters have come before: each piece that comes takes some of these along, never much, and nothing is left for the end. Or
 * it is given up on the way, and what is behind is let be. */
Test(connection, a_fold_that_begins_late_catches_up)
{
    static uint8_t bytes[4 * HUGE + 4096];
    static float sum[HUGE];
    const size_t piece = 20000, run = SGP_KERNELS_RUN;
    for (uint32_t i = 0; i < HUGE; i++) {
        sum[i] = payload[i] = sinf((float)i);
        source[i] = cosf((float)i);
    }
    double squares;
    (void)sgp_kernels_reference()->fold(&squares, sum, source, 0.3f, 0.7f, HUGE);
    size_t count = put_frames(bytes, sizeof bytes, HUGE), before = count / 4 * 3 / piece * piece;
    for (int gives_up = 0; gives_up < 2; gives_up++) {
        uv_loop_t loop;
        int peer;
        struct link *link = linked(&loop, &peer);
        struct sgp_fold_work how = fold_of();
        fold = &how;
        late = true;
        write_all(&loop, link, peer, bytes, before, piece);
        cr_assert(eq(u64, link->checked, link->received / 4));
        link_fold(link, &how);
        cr_assert(zero(u64, link->checked));
        for (size_t at = before; at + 2 * piece < count; at += piece) {
            uint64_t checked = link->checked;
            write_all(&loop, link, peer, bytes + at, piece, piece);
            cr_assert(le(u64, link->checked, checked + 5 * piece / 4 + run), "not all at once");
            if (gives_up && at > before + 3 * piece) {
                cr_assert(gt(u64, checked, 0));
                link_fold(link, NULL);
                cr_assert(eq(u64, link->checked, link->received / 4));
                break;
            }
            before = at + piece;
        }
        if (!gives_up)
            cr_assert(lt(u64, link->received / 4 - link->checked, 2 * run), "nothing is behind");
        size_t rest = (size_t)link->bytes_received;
        write_all(&loop, link, peer, bytes + rest, count - rest, piece);
        cr_assert(eq(u64, payloads, 1));
        cr_assert(zero(int, payload_code));
        if (!gives_up)
            cr_assert(zero(int, memcmp(came, sum, sizeof sum)));
        late = false;
        fold = NULL;
        close_all(&loop, link, peer);
        before = count / 4 * 3 / piece * piece;
    }
}

/* In whichever part of it: the code says so, what it was to be added to is as it was, and what follows goes on. */
Test(connection, damage_is_found_wherever_it_is_also_in_what_is_folded)
{
    static uint8_t bytes[4 * LARGE + 4096];
    static float before[LARGE];
    memcpy(before, source, sizeof before);
    uint8_t frame[SGP_WIRE_FRAME_MAX]; /* of what stands behind the payload */
    size_t behind, count = put_frames(bytes, sizeof bytes, LARGE);
    const struct sgp_message ack = acknowledgement(SGP_REASON_NONE);
    cr_assert(zero(int, sgp_wire_encode(&ack, frame, sizeof frame, &behind)));
    for (size_t window = 0; window < 4 * LARGE; window += 4096) {
        for (int folds = 0; folds < 2; folds++) {
            uv_loop_t loop;
            int peer;
            struct link *link = linked(&loop, &peer);
            struct sgp_fold_work how = fold_of();
            fold = folds ? &how : NULL;
            size_t at = count - behind - 4 * LARGE + window;
            bytes[at] ^= 0x10;
            write_all(&loop, link, peer, bytes, count, 4096);
            bytes[at] ^= 0x10;
            cr_assert(eq(int, payload_code, SGP_E_CHECKSUM), "%zu", window);
            cr_assert(zero(int, memcmp(source, before, sizeof before)));
            fold = NULL;
            payload_code = 0;
            close_all(&loop, link, peer);
        }
    }
}

/* ---- coded payloads ---- */

static struct sgp_message coded_share_of(uint32_t parameters)
{
    struct sgp_message message = share_of(parameters);
    message.share.coding = SGP_CODING_FP16;
    message.share.payload_bytes = sgp_coding_bytes_most(SGP_CODING_FP16, parameters);
    return message;
}

/* The announcement, and the payload in chunks of so many blocks. */
static size_t put_coded(uint8_t *bytes, size_t size, uint32_t parameters, uint32_t blocks)
{
    const struct sgp_message message = coded_share_of(parameters);
    size_t count;
    cr_assert(zero(int, sgp_wire_encode(&message, bytes, size, &count)));
    for (uint32_t first = 0, values; first < parameters; first += values) {
        values = parameters - first < 256 * blocks ? parameters - first : 256 * blocks;
        uint32_t chunk = (uint32_t)sgp_coding_bytes_most(SGP_CODING_FP16, values);
        uint8_t *place = bytes + count + SGP_WIRE_HEADER_BYTES;
        (void)sgp_codec_pack(&halves, place, payload + first, first, values);
        sgp_wire_chunk_header(chunk, (uint32_t)XXH3_64bits(place, chunk), bytes + count);
        count += SGP_WIRE_HEADER_BYTES + chunk;
    }
    return count;
}

static void fill_payload(uint32_t parameters)
{
    for (uint32_t i = 0; i < parameters; i++)
        payload[i] = sinf((float)i) * (i % 5 == 0 ? 1e4F : 1);
}

/* Also where the last block has one value, whose bytes lie where that before it ends. */
Test(connection, coded_payloads_are_the_same_however_they_are_cut)
{
    static uint8_t bytes[4 * LARGE + 4096];
    static float decoded[LARGE], folded[LARGE];
    const uint32_t parameters[] = {4, 255, 256, 257, 511, 513, 1000, LARGE - 1, LARGE};
    fill_payload(LARGE);
    for (uint32_t i = 0; i < LARGE; i++)
        source[i] = cosf((float)i);
    for (size_t i = 0; i < sizeof parameters / sizeof *parameters; i++) {
        uint32_t many = parameters[i];
        size_t count = put_coded(bytes, sizeof bytes, many, i % 2 == 0 ? 1 : 7);
        (void)sgp_codec_project(&halves, decoded, payload, 0, many);
        double squares;
        float largest = sgp_kernels_reference()->measure(&squares, decoded, many);
        memcpy(folded, decoded, sizeof decoded);
        (void)sgp_kernels_reference()->fold(&squares, folded, source, 0.3f, 0.7f, many);
        for (size_t piece = many > 1000 ? 97 : 1; piece <= 2 * count; piece += 1 + piece / 2) {
            uv_loop_t loop;
            int peer;
            struct link *link = linked(&loop, &peer);
            struct sgp_fold_work how = fold_of();
            fold = piece % 3 == 0 ? &how : NULL;
            const float *meant = fold != NULL ? folded : decoded;
            memset(came, 0xff, sizeof *came * (many + 1));
            write_all(&loop, link, peer, bytes, count, piece);
            while (payloads == 0 && failure == 0)
                (void)uv_run(&loop, UV_RUN_ONCE);
            cr_assert(zero(int, failure), "%s", failure_text);
            cr_assert(zero(int, memcmp(came, meant, many * sizeof *came)), "%u", many);
            cr_assert(isnan(came[many]), "no more is written");
            cr_assert(eq(flt, link->largest, largest));
            cr_assert(epsilon_eq(dbl, link->squares, squares, 1e-6 * squares));
            fold = NULL;
            close_all(&loop, link, peer);
        }
    }
}

/* What the peer reads, after the announcement. */
static void read_coded(uv_loop_t *loop, int peer, uint8_t *packed, uint64_t payload_bytes)
{
    static uint8_t bytes[4 * PARAMETERS];
    size_t have = 0, at = 0;
    for (uint64_t got = 0; got < payload_bytes;) {
        (void)uv_run(loop, UV_RUN_NOWAIT);
        ssize_t more = recv(peer, bytes + have, sizeof bytes - have, MSG_DONTWAIT);
        have += more > 0 ? (size_t)more : 0;
        struct sgp_wire_header header;
        struct sgp_error error;
        while (have - at >= SGP_WIRE_HEADER_BYTES) {
            cr_assert(zero(int, sgp_wire_header_decode(bytes + at, &header, &error)));
            size_t whole = SGP_WIRE_HEADER_BYTES + header.body_bytes + header.payload_bytes;
            if (have - at < whole)
                break;
            const uint8_t *chunk = bytes + at + SGP_WIRE_HEADER_BYTES + header.body_bytes;
            memcpy(packed + got, chunk, header.payload_bytes);
            got += header.payload_bytes;
            at += whole;
        }
    }
}

Test(connection, a_coded_payload_is_packed_as_it_leaves)
{
    static uint8_t packed[5 * LARGE], known[4 * LARGE];
    const uint32_t parameters[] = {4, 1001, LARGE};
    fill_payload(LARGE);
    for (size_t i = 0; i < sizeof parameters / sizeof *parameters; i++) {
        uv_loop_t loop;
        int peer;
        struct link *link = linked(&loop, &peer);
        struct sgp_message message = coded_share_of(parameters[i]);
        for (uint64_t number = 1; number <= 2; number++) { /* the second follows the first */
            message.share.number = number;
            link_send_payload(link, &message, payload, halves);
        }
        (void)sgp_codec_pack(&halves, known, payload, 0, parameters[i]);
        read_coded(&loop, peer, packed, 2 * message.share.payload_bytes);
        size_t size = (size_t)message.share.payload_bytes;
        cr_assert(zero(int, memcmp(packed, known, size)));
        cr_assert(zero(int, memcmp(packed + size, known, size)));
        close_all(&loop, link, peer);
    }
}

/* Damage is the line's fault, and told as such; what was so packed is the peer's. */
Test(connection, a_payload_of_another_form_ends_it)
{
    static uint8_t bytes[4 * LARGE + 4096];
    fill_payload(1000);
    for (int packed_so = 0; packed_so < 2; packed_so++) {
        uv_loop_t loop;
        int peer;
        struct link *link = linked(&loop, &peer);
        size_t count = put_coded(bytes, sizeof bytes, 1000, 4), chunk = 4 * 516 - 48;
        uint8_t *place = bytes + count - chunk;
        place[516] = 17; /* the second block's kind */
        if (packed_so)
            sgp_wire_chunk_header((uint32_t)chunk, (uint32_t)XXH3_64bits(place, chunk),
                place - SGP_WIRE_HEADER_BYTES);
        cr_assert(eq(sz, (size_t)write(peer, bytes, count), count)); /* the link may be freed */
        while (payloads == 0 && failure == 0)
            (void)uv_run(&loop, UV_RUN_ONCE);
        cr_assert(eq(int, failure, packed_so ? SGP_E_PROTOCOL : 0));
        cr_assert(eq(int, payload_code, packed_so ? 0 : SGP_E_CHECKSUM));
        close_all(&loop, packed_so ? NULL : link, peer);
    }
}

Test(connection, what_was_read_with_the_message_that_ends_it_is_dropped)
{
    static uint8_t bytes[8192];
    size_t count = put_frames(bytes, sizeof bytes, SMALL);
    uv_loop_t loop;
    int peer;
    (void)linked(&loop, &peer);
    ended = 1;
    cr_assert(eq(sz, (size_t)write(peer, bytes, count), count));
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    cr_assert(eq(u64, messages, 1));
    cr_assert(zero(int, uv_loop_close(&loop)));
    (void)close(peer);
}

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

/* ---- the port ---- */

static int greeted;

static void on_hello(void *context, struct link *link, const struct sgp_message *hello)
{
    (void)context;
    (void)hello;
    greeted++;
    link_close(link, NULL);
}

/* A port that nobody listens on. */
static struct sockaddr_in free_address(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof address;
    int holder = socket(AF_INET, SOCK_STREAM, 0);
    cr_assert(zero(int, bind(holder, (struct sockaddr *)&address, bytes)));
    cr_assert(zero(int, getsockname(holder, (struct sockaddr *)&address, &bytes)));
    (void)close(holder);
    return address;
}

static void no_pulse(void *context, struct sgp_pulse *ret_pulse)
{
    (void)context;
    *ret_pulse = pulse;
}

/* A listener on a port of its own; its address. */
static struct sockaddr_in listening(
    uv_loop_t *loop, struct listener *listener, const struct listener_events *owner)
{
    const struct sockaddr_in address = free_address();
    struct sgp_error error = {0};
    char text[32];
    (void)snprintf(text, sizeof text, "127.0.0.1:%u", ntohs(address.sin_port));
    cr_assert(zero(int, uv_loop_init(loop)));
    cr_assert(
        zero(int, listener_open(listener, loop, text, owner, NULL, &error)), "%s", error.text);
    return address;
}

static int call(const struct sockaddr_in *address)
{
    int caller = socket(AF_INET, SOCK_STREAM, 0);
    cr_assert(zero(int, connect(caller, (const struct sockaddr *)address, sizeof *address)));
    return caller;
}

Test(connection, who_calls_while_there_is_no_memory_is_served_later_and_so_are_others)
{
    const struct listener_events owner = {.hello = on_hello};
    const struct sgp_message hello = {.type = SGP_HELLO,
        .pulse = pulse,
        .hello = {.source = "n1", .target = "n0", .incarnation = 1, .parameters = 4}};
    uv_loop_t loop;
    struct listener listener;
    const struct sockaddr_in address = listening(&loop, &listener, &owner);
    no_memory = true;
    int callers[2];
    for (int i = 0; i < 2; i++) {
        callers[i] = call(&address);
        say(callers[i], hello);
    }
    while (!uv_is_active((uv_handle_t *)&listener.retry))
        (void)uv_run(&loop, UV_RUN_ONCE);
    cr_assert(eq(int, greeted, 0));
    no_memory = false;
    while (greeted < 2)
        (void)uv_run(&loop, UV_RUN_ONCE);
    listener_close(&listener);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    cr_assert(zero(int, uv_loop_close(&loop)));
    for (int i = 0; i < 2; i++)
        (void)close(callers[i]);
}

/* ---- a caller whose first message is PULL ---- */

static uint32_t asked_heads; /* of the last PULL that the port passed on */

static void on_pull(void *context, struct link *link, const struct sgp_message *pull)
{
    (void)context;
    asked_heads = pull->pull.heads;
    link_close(link, NULL);
}

/* What the port answers to a PULL with 5 heads: the reason of its goodbye; 0: none. */
static enum sgp_reason answer_to_pull(const struct listener_events *owner)
{
    const struct sgp_message pull = {
        .type = SGP_PULL, .pulse = pulse, .pull = {.source = "n1", .target = "n0", .heads = 5}};
    uv_loop_t loop;
    struct listener listener;
    const struct sockaddr_in address = listening(&loop, &listener, owner);
    int caller = call(&address);
    say(caller, pull);
    links_made = 0;
    while (links_made == 0 || links > 0)
        (void)uv_run(&loop, UV_RUN_ONCE);
    listener_close(&listener);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    cr_assert(zero(int, uv_loop_close(&loop)));
    uint8_t frame[SGP_WIRE_FRAME_MAX];
    ssize_t bytes = read(caller, frame, sizeof frame);
    (void)close(caller);
    if (bytes <= 0)
        return 0;
    struct sgp_wire_header header;
    struct sgp_wire_text text;
    struct sgp_message answer;
    cr_assert(zero(int, sgp_wire_header_decode(frame, &header, NULL)));
    cr_assert(zero(
        int, sgp_wire_body_decode(&header, frame + SGP_WIRE_HEADER_BYTES, &text, &answer, NULL)));
    cr_assert(eq(int, (int)answer.type, SGP_GOODBYE));
    return answer.goodbye.reason;
}

Test(connection, a_caller_that_asks_for_bulletins_is_served_or_refused)
{
    const struct listener_events serves = {.pull = on_pull, .pulse = no_pulse},
                                 serves_not = {.pulse = no_pulse};
    cr_assert(eq(int, (int)answer_to_pull(&serves), 0));
    cr_assert(eq(u32, asked_heads, 5));
    asked_heads = 0;
    cr_assert(eq(int, (int)answer_to_pull(&serves_not), SGP_REASON_PROTOCOL));
    cr_assert(zero(u32, asked_heads));
}

/* A closed link keeps its memory until the end of the loop's turn. Each of these callers takes the place of an older one once
 * all places are taken. */
Test(connection, the_callers_of_one_turn_take_bounded_memory)
{
    enum { CALLERS = 120 }; /* fewer than any kernel's queue */
    const struct listener_events owner = {.pulse = no_pulse};
    uv_loop_t loop;
    struct listener listener;
    const struct sockaddr_in address = listening(&loop, &listener, &owner);
    int callers[CALLERS];
    for (int i = 0; i < CALLERS; i++)
        callers[i] = call(&address);
    links = links_most = links_made = 0;
    while (links_made < CALLERS || links > LISTENER_STRANGERS_MAX)
        (void)uv_run(&loop, UV_RUN_ONCE);
    cr_assert(eq(u32, links_most, LISTENER_STRANGERS_MAX + LISTENER_ACCEPTS_PER_TURN));
    listener_close(&listener);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    cr_assert(zero(u32, links));
    cr_assert(zero(int, uv_loop_close(&loop)));
    for (int i = 0; i < CALLERS; i++)
        (void)close(callers[i]);
}

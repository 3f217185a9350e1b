/* SPDX-License-Identifier: Apache-2.0 */
/* The port: callers without memory for them, callers that ask for bulletins, and many callers at once. */
#include "connection_link.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <malloc.h>

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

static uint32_t trims, links_at_trim; /* of the heap, and the links that have memory then */

int malloc_trim(size_t pad)
{
    (void)pad;
    trims++;
    links_at_trim = links;
    return 0;
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

Test(listener, who_calls_while_there_is_no_memory_is_served_later_and_so_are_others)
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

Test(listener, a_caller_that_asks_for_bulletins_is_served_or_refused)
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
 * all places are taken. The heap is trimmed once the links of those are freed. */
Test(listener, the_callers_of_one_turn_take_bounded_memory)
{
    enum { CALLERS = 120 }; /* fewer than any kernel's queue */
    const struct listener_events owner = {.pulse = no_pulse};
    uv_loop_t loop;
    struct listener listener;
    const struct sockaddr_in address = listening(&loop, &listener, &owner);
    int callers[CALLERS];
    for (int i = 0; i < CALLERS; i++)
        callers[i] = call(&address);
    links = links_most = links_made = trims = 0;
    while (links_made < CALLERS || links > LISTENER_STRANGERS_MAX)
        (void)uv_run(&loop, UV_RUN_ONCE);
    /* libuv 1.50 takes one caller in a turn, and libuv 1.44 as many as there are */
    cr_assert(gt(u32, links_most, LISTENER_STRANGERS_MAX));
    cr_assert(le(u32, links_most, LISTENER_STRANGERS_MAX + LISTENER_ACCEPTS_PER_TURN));
    while (trims == 0)
        (void)uv_run(&loop, UV_RUN_ONCE);
    cr_assert(eq(u32, links_at_trim, LISTENER_STRANGERS_MAX));
    listener_close(&listener);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    cr_assert(zero(u32, links));
    cr_assert(zero(int, uv_loop_close(&loop)));
    for (int i = 0; i < CALLERS; i++)
        (void)close(callers[i]);
}

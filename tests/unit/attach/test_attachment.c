/* SPDX-License-Identifier: Apache-2.0 */
/* What a program in C tells its daemon of a turn, against a daemon of a few frames. */
#include "sgp/attach.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define TURNS 3u

static struct desk { /* of the daemon */
    int listener;
    struct sgp_attach_frame done[TURNS];
    char claims[4][100]; /* texts that came */
    uint32_t claim_count;
} desk;

static void receive(int program, struct sgp_attach_frame *ret_frame)
{
    int descriptor;
    cr_assert(eq(int, sgp_attach_receive(program, ret_frame, &descriptor), 0));
    if (descriptor >= 0)
        (void)close(descriptor);
}

static void answer(int program, struct sgp_attach_frame frame)
{
    cr_assert(eq(int, sgp_attach_send(program, &frame, -1), 0));
}

/* The turn is handed back, after any claims. An answer to nothing comes before each answer. */
static void receive_done(struct desk *d, int program, struct sgp_attach_frame *ret_frame)
{
    for (receive(program, ret_frame); ret_frame->type == SGP_ATTACH_PRIVACY;
         receive(program, ret_frame)) {
        struct sgp_attach_frame taken = {.type = SGP_ATTACH_CLAIMED, .turn = 77},
                                refused = {.type = SGP_ATTACH_CLAIMED,
                                    .turn = ret_frame->turn,
                                    .code = SGP_E_CONFIG,
                                    .text = "neither may fall"};
        answer(program, taken);
        taken.turn = ret_frame->turn;
        answer(program, strncmp(ret_frame->text, "epsilon=1 ", 10) == 0 ? refused : taken);
        (void)snprintf(d->claims[d->claim_count++], sizeof d->claims[0], "%.99s", ret_frame->text);
    }
}

static void *serve(void *context)
{
    struct desk *d = context;
    int program = accept(d->listener, NULL, NULL);
    cr_assert(ge(int, program, 0));
    struct sgp_attach_frame hello;
    receive(program, &hello);
    answer(program, (struct sgp_attach_frame){.type = SGP_ATTACH_WELCOME, .size = 1, .text = "n0"});
    for (uint32_t i = 0; i < TURNS; i++) {
        answer(program, (struct sgp_attach_frame){.type = SGP_ATTACH_TURN,
                            .turn = i + 1,
                            .round = (int64_t)i,
                            .rounds = TURNS,
                            .weight = 1});
        receive_done(d, program, &d->done[i]);
    }
    answer(program, (struct sgp_attach_frame){.type = SGP_ATTACH_STOP});
    receive_done(d, program, &hello); /* DETACH */
    (void)close(program);
    return NULL;
}

static void open_desk(char path[static SGP_ATTACH_PATH_BYTES])
{
    char folder[] = "/tmp/sgp-attachment-XXXXXX";
    cr_assert_not_null(mkdtemp(folder));
    snprintf(path, SGP_ATTACH_PATH_BYTES, "%s/attach.sock", folder);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, path, strlen(path) + 1);
    desk.listener = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    cr_assert(eq(int, bind(desk.listener, (struct sockaddr *)&address, sizeof address), 0));
    cr_assert(eq(int, listen(desk.listener, 1), 0));
}

static void close_desk(const char *path)
{
    (void)close(desk.listener);
    (void)unlink(path);
    char folder[SGP_ATTACH_PATH_BYTES];
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
    (void)rmdir(folder);
}

static struct sgp_attachment *begin(char path[static SGP_ATTACH_PATH_BYTES], pthread_t *ret_daemon)
{
    open_desk(path);
    cr_assert(eq(int, pthread_create(ret_daemon, NULL, serve, &desk), 0));
    const struct sgp_file_tensor tensor = {.name = "weight", .shape = {4}, .first = 0, .count = 4};
    const struct sgp_attach_options options = {.node = path,
        .tensors = &tensor,
        .tensor_count = 1,
        .values_from = 4,
        .rounds = -1,
        .timeout_ms = 10000};
    const float initial[4] = {0};
    struct sgp_error error = {0};
    struct sgp_attachment *attachment;
    cr_assert(eq(int, sgp_attach(&options, initial, &error, &attachment), 0), "%s", error.text);
    return attachment;
}

Test(attachment, a_step_says_whether_gradients_overflowed_and_what_the_tensors_hold)
{
    static const struct sgp_step steps[TURNS] = {{.rows = 1},
        {.rows = 2, .loss = NAN, .overflowed = true},
        {.rows = 3, .assigned = true, .overflowed = true}};
    static const uint32_t flags[TURNS] = {
        0, SGP_ATTACH_OVERFLOWED, SGP_ATTACH_ASSIGNED | SGP_ATTACH_OVERFLOWED};
    char path[SGP_ATTACH_PATH_BYTES];
    pthread_t daemon;
    struct sgp_error error = {0};
    struct sgp_attachment *attachment = begin(path, &daemon);
    struct sgp_mixed mixed = {0};
    for (uint32_t i = 0; i < TURNS; i++)
        cr_assert(eq(int, sgp_attachment_mix(attachment, &steps[i], &error, &mixed), 0));
    cr_assert(mixed.stop);
    sgp_attachment_detach(attachment);
    pthread_join(daemon, NULL);
    close_desk(path);
    for (uint32_t i = 0; i < TURNS; i++) {
        cr_assert(eq(u32, desk.done[i].type, SGP_ATTACH_DONE));
        cr_assert(eq(u64, desk.done[i].rows, steps[i].rows));
        cr_assert(eq(u32, desk.done[i].flags, flags[i]));
    }
}

Test(attachment, a_claim_is_answered_in_a_turn_and_after_the_end)
{
    const struct sgp_claim good = {3, 1e-5, 1.1, NAN, 1}, low = {1, 1e-5, NAN, NAN, NAN},
                           wrong = {3, 1, NAN, NAN, NAN};
    char path[SGP_ATTACH_PATH_BYTES];
    pthread_t daemon;
    struct sgp_error error = {0};
    struct sgp_attachment *attachment = begin(path, &daemon);
    struct sgp_mixed mixed = {0};
    cr_assert(eq(int, sgp_attachment_claim(attachment, &good, &error), 0), "%s", error.text);
    cr_assert(eq(int, sgp_attachment_claim(attachment, &low, &error), SGP_E_CONFIG));
    cr_assert(strstr(error.text, "neither may fall") != NULL, "%s", error.text);
    cr_assert(eq(int, sgp_attachment_claim(attachment, &wrong, &error), SGP_E_DATA));
    for (uint32_t i = 0; i < TURNS; i++)
        cr_assert(eq(
            int, sgp_attachment_mix(attachment, &(struct sgp_step){.rows = 1}, &error, &mixed), 0));
    cr_assert(mixed.stop);
    cr_assert(eq(int, sgp_attachment_claim(attachment, &good, &error), 0), "%s", error.text);
    sgp_attachment_detach(attachment);
    pthread_join(daemon, NULL);
    close_desk(path);
    cr_assert(eq(u32, desk.claim_count, 3), "what is out of range is not sent");
    cr_assert(eq(str, desk.claims[0], "epsilon=3 delta=1e-05 noise=1.1 clip=1"));
    cr_assert(eq(str, desk.claims[1], "epsilon=1 delta=1e-05"));
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A lying node: `sgpd` linked once more, with three of its calls led here (ld, --wrap). It trains, receives and answers as
 * another does, and its weights and rounds are right. LIE in the environment names a lie of lib/sim/lies.c, and the values of each
 * share that leaves the node are that lie. The liar knows what a real one does: the shares that it received, and its own model and
 * steps. Thread: the loop thread and the compute thread, under a mutex. */
#include "net/link.h"
#include "sim/lies.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NODES_MAX 64u
#define SELF                                                                                       \
    (NODES_MAX -                                                                                   \
        1)         /* the liar's own model, which takes the place of a target's that is not known */
#define BUFFERS 4u /* for each target; a link sends two payloads at a time at most */
#define UNGUARDED_REACH 2 /* as in the simulator */

static const char *const names[] = {[SGP_SIM_LIE_FLIP] = "flip",
    [SGP_SIM_LIE_SCALE] = "scale",
    [SGP_SIM_LIE_NOISE] = "noise",
    [SGP_SIM_LIE_ALIE] = "alie",
    [SGP_SIM_LIE_IPM] = "ipm",
    [SGP_SIM_LIE_DRIFT] = "drift",
    [SGP_SIM_LIE_DISSENSUS] = "dissensus"};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct sgp_sim_knowledge knowledge; /* node_count 0 until the first job */
static struct sgp_random draw;
static enum sgp_sim_lie lie;
static double multiple = UNGUARDED_REACH; /* of the guard, which all nodes have in common */
static float *before, *after;             /* of a step */
static float *told[NODES_MAX][BUFFERS];
static uint32_t told_next[NODES_MAX];

static float *make_vector(void)
{
    float *vector = calloc(knowledge.dimension, sizeof *vector);
    if (vector == NULL)
        abort();
    return vector;
}

static void begin(const struct sgp_performer *performer)
{
    const char *name = getenv("LIE");
    for (int i = 0; i < (int)(sizeof names / sizeof *names); i++)
        if (name != NULL && names[i] != NULL && strcmp(names[i], name) == 0)
            lie = (enum sgp_sim_lie)i;
    if (lie == 0 ||
        sgp_sim_knowledge_init(&knowledge, NODES_MAX, performer->trainer->parameters) < 0) {
        (void)fprintf(stderr, "lying_node: LIE must name a lie of lib/sim/lies.c\n");
        abort();
    }
    sgp_random_init(&draw, 1, 0);
    if (performer->guard != NULL)
        multiple = performer->guard->multiple;
    before = make_vector();
    after = make_vector();
}

/* ---- what it knows ---- */

bool __real_sgp_perform_run(const struct sgp_performer *performer, struct sgp_work *work);
bool __wrap_sgp_perform_run(const struct sgp_performer *performer, struct sgp_work *work);
bool __wrap_sgp_perform_run(const struct sgp_performer *performer, struct sgp_work *work)
{
    struct sgp_trainer *trainer = performer->trainer;
    const bool trains = work->type == SGP_EFFECT_TRAIN;
    const bool is_whole = work->slice.count == trainer->parameters;
    (void)pthread_mutex_lock(&mutex);
    if (knowledge.node_count == 0)
        begin(performer);
    if (work->type == SGP_EFFECT_ABSORB && is_whole && work->admission.weight > 0)
        sgp_sim_know_model(
            &knowledge, work->admission.peer, *work->place, work->admission.weight / work->factor);
    (void)pthread_mutex_unlock(&mutex);
    if (trains)
        trainer->methods->estimate(trainer, 1, before);
    bool goes_on = __real_sgp_perform_run(performer, work);
    if (trains)
        trainer->methods->estimate(trainer, 1, after);
    (void)pthread_mutex_lock(&mutex);
    if (trains)
        sgp_sim_know_step(&knowledge, before, after);
    if (work->type == SGP_EFFECT_PUBLISH && work->purpose == SGP_PUBLISH_SHARES && is_whole &&
        work->weight > 0)
        sgp_sim_know_model(&knowledge, SELF, *work->place, work->weight);
    (void)pthread_mutex_unlock(&mutex);
    return goes_on;
}

/* A folded share is not what its source said any more. */
bool __wrap_sgp_perform_fold(
    struct sgp_performer *performer, const struct sgp_effect *effect, uint64_t bytes, uint64_t all);
bool __wrap_sgp_perform_fold(
    struct sgp_performer *performer, const struct sgp_effect *effect, uint64_t bytes, uint64_t all)
{
    (void)performer;
    (void)effect;
    (void)bytes;
    (void)all;
    return false;
}

/* ---- what it says ---- */

/* The lie in the place of this share, for this target. It stays until the link has sent it. */
static const float *tell(const struct sgp_share *share, uint32_t peer, const float *values)
{
    struct sgp_sim_telling telling = {.knowledge = &knowledge,
        .random = &draw,
        .target = knowledge.known[peer] ? peer : SELF,
        .scale = share->weight / share->fraction,
        .slice = share->slice};
    if (sgp_sim_needs_knowledge(lie) && !sgp_sim_know_round(&knowledge, share->round))
        return values;
    telling.reach = multiple * sgp_sim_usual_distance(&knowledge, telling.target);
    float **buffer = &told[peer][told_next[peer]++ % BUFFERS];
    if (*buffer == NULL)
        *buffer = make_vector();
    memcpy(*buffer, values, share->slice.count * sizeof **buffer);
    sgp_sim_tell(lie, &telling, *buffer);
    return *buffer;
}

void __real_link_send_payload(struct link *link, const struct sgp_message *message,
    const float *payload, struct sgp_codec codec);
void __wrap_link_send_payload(struct link *link, const struct sgp_message *message,
    const float *payload, struct sgp_codec codec);
void __wrap_link_send_payload(struct link *link, const struct sgp_message *message,
    const float *payload, struct sgp_codec codec)
{
    (void)pthread_mutex_lock(&mutex);
    const bool lies = message->type == SGP_SHARE && message->share.weight > 0 &&
                      message->share.fraction > 0 && link->id.peer < SELF &&
                      knowledge.node_count > 0;
    const float *said = lies ? tell(&message->share, link->id.peer, payload) : payload;
    (void)pthread_mutex_unlock(&mutex);
    __real_link_send_payload(link, message, said, codec);
}

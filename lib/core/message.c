/* SPDX-License-Identifier: Apache-2.0 */
/* Messages and payloads: this file passes each to the file that handles it, and acts on the
 * verdict. */
#include "core/core.h"

static void carry_out(struct sgp_node *node, struct sgp_core_link *link, struct sgp_verdict verdict)
{
    if (verdict.refuses)
        sgp_core_refuse(node, link, verdict.code, verdict.reason);
    else if (verdict.code != 0)
        sgp_core_hang_up(node, link, verdict.code, verdict.reason);
}

/* Which end of a link may send which message. Other types precede a link's connection, or do not
 * concern the core. */
enum speaker { NOBODY, SOURCE, TARGET, BOTH };
static const enum speaker speakers[SGP_MESSAGE_TYPES + 1] = {
    [SGP_HELLO] = SOURCE,
    [SGP_WELCOME] = TARGET,
    [SGP_BEAT] = BOTH,
    [SGP_CREDIT] = TARGET,
    [SGP_SHARE] = SOURCE,
    [SGP_ACK] = TARGET,
    [SGP_GOODBYE] = BOTH,
    [SGP_ASK] = TARGET,
    [SGP_ESTIMATE] = SOURCE,
    [SGP_BEQUEATH] = SOURCE,
    [SGP_ANSWER] = TARGET,
};

/* Whether such a message may arrive on this link in its present state. */
static bool is_in_order(const struct sgp_core_link *link, enum sgp_message_type type)
{
    enum speaker peer = link->direction == SGP_IN ? SOURCE : TARGET;
    bool greeting = type == SGP_HELLO || type == SGP_WELCOME;
    bool up = link->connection.state == SGP_LINK_UP;
    return (speakers[type] == BOTH || speakers[type] == peer) &&
           (type == SGP_GOODBYE || greeting != up);
}

static struct sgp_verdict take(
    struct sgp_node *node, struct sgp_core_link *link, const struct sgp_message *message)
{
    switch (message->type) {
    case SGP_HELLO:
        return sgp_core_hello(node, link, &message->hello);
    case SGP_WELCOME:
        return sgp_core_welcome(node, link, &message->welcome);
    case SGP_BEAT:
        return sgp_core_beat(node, link, &message->beat);
    case SGP_CREDIT:
        sgp_core_credit(node, link, &message->credit);
        break;
    case SGP_SHARE:
        return sgp_core_share(node, link, &message->share);
    case SGP_ACK:
        return sgp_core_ack(node, link, &message->ack);
    case SGP_GOODBYE:
        sgp_core_goodbye(node, link, &message->goodbye);
        break;
    case SGP_ASK:
        sgp_core_ask(node, link, &message->ask);
        break;
    case SGP_ESTIMATE:
        return sgp_core_estimate(node, link, &message->estimate);
    case SGP_BEQUEATH:
        return sgp_core_stage(node, link, &message->bequeath);
    case SGP_ANSWER:
        return sgp_core_staged(node, link, &message->answer);
    default: /* no other type is in order */
        break;
    }
    return sgp_fine();
}

void sgp_core_message(
    struct sgp_node *node, struct sgp_core_link *link, const struct sgp_message *message)
{
    struct sgp_verdict verdict = is_in_order(link, message->type)
                                     ? sgp_core_hear(node, link, &message->pulse)
                                     : sgp_hangs_up(SGP_E_PROTOCOL, SGP_REASON_PROTOCOL);
    if (verdict.code == 0 &&
        /* a share keeps the old promise until the whole share is there */
        message->type != SGP_SHARE)
        sgp_core_take_promise(node, link);
    if (verdict.code == 0)
        verdict = take(node, link, message);
    carry_out(node, link, verdict);
}

void sgp_core_came(struct sgp_node *node, struct sgp_core_link *link, int code)
{
    bool estimate = link->question.filling;
    carry_out(node, link,
        estimate ? sgp_core_estimate_payload(node, link, code)
                 : sgp_core_payload(node, link, code));
}

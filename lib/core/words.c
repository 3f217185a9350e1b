/* SPDX-License-Identifier: Apache-2.0 */
/* Words for the core's enumerations. */
#include "core/core.h"

#define WORD(words, value)                                                                         \
    ((size_t)(value) < sizeof words / sizeof((words)[0]) && (words)[value] != NULL                 \
            ? (words)[value]                                                                       \
            : "?")

const char *sgp_node_state_name(enum sgp_node_state state)
{
    static const char *const words[] = {
        [SGP_NODE_JOINING] = "joining",
        [SGP_NODE_TRAINING] = "training",
        [SGP_NODE_SETTLING] = "settling",
        [SGP_NODE_FINISHED] = "finished",
        [SGP_NODE_PAUSED] = "paused",
        [SGP_NODE_DRAINING] = "draining",
    };
    return WORD(words, state);
}

const char *sgp_message_type_name(enum sgp_message_type type)
{
#define MESSAGE_WORD(name, number, word) [SGP_##name] = (word),
    static const char *const words[] = {SGP_MESSAGE_TABLE(MESSAGE_WORD)};
    return WORD(words, type);
}

const char *sgp_reason_text(enum sgp_reason reason)
{
    static const char *const words[] = {
        [SGP_REASON_NONE] = "accepted",
        [SGP_REASON_NOT_FINITE] = "the share holds a NaN or an infinity",
        [SGP_REASON_RANGE] = "a weight, fraction, round or slice is out of range",
        [SGP_REASON_SHAPE] =
            "the models have other layers ([model] layers and local must be the same)",
        [SGP_REASON_LOSS] = "the models have another loss ([model] loss must be the same)",
        [SGP_REASON_CLASSES] =
            "the classes or their order differ ([data] classes must be the same)",
        [SGP_REASON_SCALING] = "the scaling differs ([data] scale must name the same file)",
        [SGP_REASON_UNKNOWN] = "the node is not in the topology file, or its address is another's",
        [SGP_REASON_VERSION] = "another protocol version",
        [SGP_REASON_CREDIT] = "a share without a credit, or a credit taken back",
        [SGP_REASON_CHECKSUM] = "the checksum of a share does not match",
        [SGP_REASON_PROTOCOL] = "a message that cannot come now",
        [SGP_REASON_ABSENT] = "silent for longer than its own pace explains",
        [SGP_REASON_REPLACED] = "another connection of the same node stands",
        [SGP_REASON_LEAVING] = "the node stops",
        [SGP_REASON_METHOD] =
            "the algorithms differ ([train] algorithm must be the same on every node)",
        [SGP_REASON_TOPOLOGY] = "the topology file has changed",
        [SGP_REASON_OUTSIZED] = "a value of the share is out of all proportion to the target's",
        [SGP_REASON_CHANGED] = "what the share was being added to has changed",
        [SGP_REASON_LEFT] = "the node has left for good",
        [SGP_REASON_ROUNDS] = "the rounds of training differ 64 times and more ([train] epochs or "
                              "rounds, or the rows of a node, are mistaken)",
        [SGP_REASON_RUN] = "the node takes part in another run (`sgpctl reset` began a new one on "
                           "one of the two; run it on the other one, too)",
        [SGP_REASON_FORGOT] = "one end restarted and has no trace of it",
    };
    return WORD(words, reason);
}

const char *sgp_note_name(enum sgp_note note)
{
    static const char *const words[] = {
        [SGP_NOTE_STATE] = "state",
        [SGP_NOTE_ROUND] = "round",
        [SGP_NOTE_JUMP] = "jump",
        [SGP_NOTE_UP] = "up",
        [SGP_NOTE_DOWN] = "down",
        [SGP_NOTE_ABSENT] = "absent",
        [SGP_NOTE_BACK] = "back",
        [SGP_NOTE_RETURNED] = "share_returned",
        [SGP_NOTE_REFUSED] = "refused",
        [SGP_NOTE_MISMATCH] = "mismatch",
        [SGP_NOTE_STARVING] = "starving",
        [SGP_NOTE_DIVERGED] = "diverged",
        [SGP_NOTE_ADOPTED] = "adopted",
        [SGP_NOTE_DRAINED] = "drained",
        [SGP_NOTE_INHERITED] = "inherited",
        [SGP_NOTE_MIXES] = "mixes_on",
        [SGP_NOTE_DISAGREES] = "disagrees",
        [SGP_NOTE_DISSOLVED] = "dissolved",
        [SGP_NOTE_OTHER_DATA] = "other_data",
        [SGP_NOTE_TURNED_AWAY] = "turned_away",
        [SGP_NOTE_TRICKLES] = "trickles",
        [SGP_NOTE_OVERDUE] = "overdue",
        [SGP_NOTE_DISPUTED] = "disputed",
        [SGP_NOTE_OUTDATED] = "outdated",
        [SGP_NOTE_SETTLED] = "settled",
        [SGP_NOTE_RENEWED] = "renewed",
        [SGP_NOTE_LATE] = "late",
        [SGP_NOTE_ADDED] = "added",
        [SGP_NOTE_ENOUGH] = "enough",
        [SGP_NOTE_TOKEN_RECEIVED] = "token_received",
        [SGP_NOTE_SAME_UPDATES] = "same_updates",
        [SGP_NOTE_OTHER_RATE] = "other_rate",
        [SGP_NOTE_EXCESS] = "excess",
        [SGP_NOTE_LACK] = "lack",
    };
    return WORD(words, note);
}

const char *sgp_waiting_name(enum sgp_waiting waiting)
{
    static const char *const words[] = {
        [SGP_WAITING_NOTHING] = "nothing",
        [SGP_WAITING_HELLO] = "hello",
        [SGP_WAITING_CREDIT] = "credit",
        [SGP_WAITING_SHARE] = "share",
        [SGP_WAITING_ACK] = "acknowledgement",
        [SGP_WAITING_JOB] = "compute",
        [SGP_WAITING_ESTIMATE] = "estimate",
        [SGP_WAITING_HEIR] = "heir",
        [SGP_WAITING_END] = "end",
        [SGP_WAITING_MASS] = "mass",
        [SGP_WAITING_BEGINNING] = "beginning",
        [SGP_WAITING_PACE] = "pace",
        [SGP_WAITING_CYCLE] = "cycle",
    };
    return WORD(words, waiting);
}

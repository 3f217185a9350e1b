/* SPDX-License-Identifier: Apache-2.0 */
/* A program trains through the daemon of its machine. This header has the frames of the protocol,
 * and the program's side of it.
 *
 * The parameters lie in shared memory. The program owns them while it has a turn: it takes a step
 * of any kind, then says that it is done. Between turns the daemon owns them. The daemon adds what
 * changed to its x, and exchanges if a round is due. It then writes the new estimate z = x / w
 * there for the next turn (Assran et al. 2019, algorithm 1).
 *
 * The memory is a memfd of the program, sealed against every change of its size. Its content is a
 * safetensors file: the header, then z as float32. A tensor at or behind `values_from` holds
 * values, not updates, such as a batch norm's averages. What the program writes there replaces the
 * value. It counts w times, whatever mass other nodes contributed. All other tensors hold updates:
 * the difference counts once.
 *
 * Each frame is one datagram of a Unix socket of type SOCK_SEQPACKET. docs/ATTACH-PROTOCOL.md has
 * the tables.
 *
 * Thread: one thread at a time uses an attachment. Errors are negative codes of sgp/status.h, with
 * one line of text. */
#ifndef SGP_ATTACH_H
#define SGP_ATTACH_H

#include "sgp/claim.h"
#include "sgp/model_file.h"
#include "sgp/trainer.h"
#include "sgp/types.h"

#define SGP_ATTACH_MAGIC 0x41504753u /* "SGPA" */
#define SGP_ATTACH_VERSION 1u
#define SGP_ATTACH_TEXT_BYTES 376u

enum sgp_attach_type { /* of a frame; > from the program, < from the daemon */
    /* > with the memory's descriptor: parameters, rounds; text: the program's name */
    SGP_ATTACH_HELLO = 1,
    /* < node, index, size, round, rounds, local_steps, seed; text: the node's name */
    SGP_ATTACH_WELCOME,
    /* < code; text: one line. The connection ends. REFUSED also comes in place of a turn, if a
     * neighbour trains another model. */
    SGP_ATTACH_REFUSED,
    /* < turn, round, rounds, weight, index, size, code, flags. The memory is now the program's. */
    SGP_ATTACH_TURN,
    /* > turn, rows, loss, learning_rate, epoch, flags. The memory is now the daemon's. */
    SGP_ATTACH_DONE,
    SGP_ATTACH_STOP,   /* < no further turn comes: training is over */
    SGP_ATTACH_FINISH, /* > own steps are done; the daemon answers when the fleet has finished */
    /* < round, distance, flags. The memory holds the fleet's model. With DISAGREES, text: the names
     * of the neighbours. */
    SGP_ATTACH_FINISHED,
    /* > test_loss, test_accuracy, epoch (NaN: not known); text: other figures, or "" */
    SGP_ATTACH_REPORT,
    SGP_ATTACH_ENOUGH, /* > the fleet is to stop training; text: the reason */
    SGP_ATTACH_DETACH, /* > the program leaves; the node pauses */
    /* < turn: of the question. The program measures the estimate in the memory. */
    SGP_ATTACH_EVALUATE,
    /* > turn, rows, test_loss, test_accuracy; or code, and text: the reason */
    SGP_ATTACH_EVALUATED,
    /* < turn, rows, columns, with a descriptor of the features. The program applies the estimate to
     * them. */
    SGP_ATTACH_PREDICT,
    /* > turn, rows, columns, with a descriptor of the outputs; or code, text */
    SGP_ATTACH_PREDICTED,
    /* > text: the program's word in the next joint decision; code -ETIMEDOUT: the program no longer
     * waits */
    SGP_ATTACH_TELL,
    /* < size: the number of words in all; text: lines of a name and its word. Otherwise code, and
     * text: the reason, or for -EAGAIN the nodes whose words are missing. */
    SGP_ATTACH_TOLD,
    /* > the program saves its own state of this round, so the daemon is to write a checkpoint */
    SGP_ATTACH_KEEP,
    SGP_ATTACH_AWAITS,  /* > asks which nodes this node waits for */
    SGP_ATTACH_AWAITED, /* < text: names of nodes, each with a reason; "": none */
    /* > in place of HELLO: asks which node this is. Also possible while another program is
     * attached. */
    SGP_ATTACH_IDENTIFY,
    /* < index, size, rounds, local_steps, seed, flags (OVER); text: the node's name. The connection
     * ends. */
    SGP_ATTACH_IDENTITY,
    /* > turn: 1, 2, ... of claims, or 0: the program does not wait for the answer; text: its claim
     * of privacy (sgp/claim.h) */
    SGP_ATTACH_PRIVACY,
    /* < turn: of the claim; code: 0, the claim holds from now on; or negative, and text: the
     * reason */
    SGP_ATTACH_CLAIMED,
};

enum sgp_attach_flag {
    SGP_ATTACH_RESUMED = 1,   /* WELCOME: the node resumes, so its z replaces the program's */
    SGP_ATTACH_EXCHANGED = 2, /* TURN: a round was exchanged since the previous turn */
    /* TURN: z was adopted from another node, or resumed. The program should reset its momentum. */
    SGP_ATTACH_JUMPED = 4,
    /* TURN, STOP: the previous turn was undone, so its step does not count */
    SGP_ATTACH_SKIPPED = 8,
    SGP_ATTACH_ASSIGNED = 16, /* DONE: all tensors hold values in this turn */
    /* FINISHED: a neighbour ended with another model, or is not known to have ended with this
     * model */
    SGP_ATTACH_DISAGREES = 32,
    SGP_ATTACH_EVALUATES = 64, /* HELLO: the program answers EVALUATE */
    SGP_ATTACH_PREDICTS = 128, /* HELLO: the program answers PREDICT */
    /* HELLO: a new run is to begin, unless the present run has completed no round yet */
    SGP_ATTACH_FRESH = 512,
    SGP_ATTACH_OVER = 1024, /* WELCOME: the node has finished its run, so no turn will come */
    /* TURN: the updates of the neighbours named in text equal another node's updates bit for bit;
     * said once */
    SGP_ATTACH_SAME_UPDATES = 256,
    /* DONE: gradients overflowed, so a gradient scaler omitted a step of this turn */
    SGP_ATTACH_OVERFLOWED = 2048,
    /* TELL: the word is for the first decision of the fleet, and for no later one */
    SGP_ATTACH_FIRST = 4096,
    /* DONE, with ASSIGNED: all programs assign values of one earlier round, and name one round
     * beyond those of all nodes, in which these begin again with weight 1 */
    SGP_ATTACH_RENEWS = 8192,
};

/* Little-endian, without gaps. Fields that a type does not name are zero. */
struct sgp_attach_frame {
    uint32_t magic;
    uint16_t version;
    uint16_t type;
    uint32_t flags;
    int32_t code;        /* 0, or a code of sgp/status.h */
    uint64_t turn;       /* 1, 2, ... within a connection; questions have a count of their own */
    int64_t round;       /* the node's */
    int64_t rounds;      /* rounds in which this node trains; -1: open, FINISH ends them */
    uint64_t parameters; /* d */
    uint64_t rows;       /* of the step, or of the question */
    double loss;         /* mean over these rows; NaN: not known, as in the next two */
    double epoch;
    double learning_rate;
    double weight;        /* w, PushSum's */
    uint32_t index;       /* of the node among those of the topology that train */
    uint32_t size;        /* nodes of the topology that train: all but the relays */
    uint32_t local_steps; /* turns between two exchanges */
    /* float32 values of a row; the rows follow one another in the file that is passed */
    uint32_t columns;
    uint64_t seed; /* the fleet's, equal on all nodes */
    double test_loss;
    double test_accuracy; /* in [0, 1] */
    /* z - z'| of the furthest neighbour, relative to the longer of the two; NaN: none is known */
    double distance;
    char text[SGP_ATTACH_TEXT_BYTES]; /* UTF-8, ends with a zero */
};

#define SGP_ATTACH_PATH_BYTES 108u /* of a Unix socket's path, with its terminating zero */

/* The path of the daemon's socket, by `node` of sgp_attach_options. Returns 0, -ENAMETOOLONG, or
 * SGP_E_STATE if nothing names the node. Any thread may call this and the next two functions. */
SGP_API int sgp_attach_path(const char *node, char path[SGP_ATTACH_PATH_BYTES]);

/* Send one frame, with a descriptor unless that is -1. The function sets the frame's magic and
 * version. Returns 0, -EAGAIN (the socket is non-blocking and full), -EINTR, SGP_E_CLOSED (the
 * other side closed the connection) or -errno. */
SGP_API int sgp_attach_send(int socket, struct sgp_attach_frame *frame, int descriptor);

/* Receive one frame. The caller closes *ret_descriptor, which is -1 if none came. Returns as
 * sgp_attach_send, and SGP_E_PROTOCOL (the frame has another version, or its text has no end). */
SGP_API int sgp_attach_receive(int socket, struct sgp_attach_frame *ret_frame, int *ret_descriptor);

/* ---- the program's side ---- */

struct sgp_attachment;

/* The program's answers to a user's question to the daemon (sgpctl evaluate, sgpctl predict). The
 * thread that waits for the next turn calls them, from within sgp_attach, sgp_attachment_mix or
 * sgp_attachment_finish. `z` is the estimate, and is valid until the call returns. A negative code
 * tells the user that the question failed. Training continues. */
struct sgp_answers {
    /* Measure z on the held-out rows. In *ret_evaluation, NaN or 0 samples mean: not known. NULL:
     * the program does not answer. */
    int (*evaluate)(void *context, const float *z, struct sgp_evaluation *ret_evaluation);
    /* outputs[rows x outputs] of features[rows x columns]. The features come from the user
     * unchecked. NULL: the program does not answer. */
    int (*predict)(void *context, const float *z, const float *features, uint64_t rows,
        uint32_t columns, float *outputs);
    uint32_t outputs; /* of a row, at least 1 */
    void *context;    /* passed to each call */
};

struct sgp_attach_options {
    const char *node; /* "n0" for /run/sgpd/n0/attach.sock, or a path with '/'; NULL: $SGP_SOCKET */
    const char *program; /* for the daemon's journal; NULL: none */
    /* the tensors tile the values: each begins where the previous tensor ends */
    const struct sgp_file_tensor *tensors;
    uint32_t tensor_count; /* 1 to SGP_FILE_TENSORS_MAX */
    /* first parameter that is a value; the number of parameters: none is */
    uint64_t values_from;
    int64_t rounds;             /* rounds of training; -1: as the daemon is configured, or open */
    int timeout_ms;             /* for a daemon to appear and to answer; -1: no limit */
    struct sgp_answers answers; /* all zero: none */
};

struct sgp_attach_welcome {
    char node[SGP_NAME_BYTES];
    uint32_t index, size, local_steps;
    uint64_t seed;
    sgp_round round;
    int64_t rounds;
    bool resumed;
};

struct sgp_step { /* the result of the program's turn */
    uint64_t rows;
    double loss, epoch, learning_rate; /* NaN: not known */
    bool assigned;                     /* all tensors hold values */
    /* Gradients overflowed, so a gradient scaler omitted a step of this turn. The turn counts as
     * any other, and the parameters may be unchanged. The daemon counts such turns for its status
     * (program.overflows). */
    bool overflowed;
};

struct sgp_mixed { /* the result of mixing */
    sgp_round round;
    double weight;
    bool exchanged, jumped, skipped;
    /* said once: neighbours train on the same rows as this node, or as each other */
    bool same_updates;
    bool stop; /* no further turn comes: training is over, and z is the estimate */
};

struct sgp_finished {
    sgp_round round;
    /* a neighbour ended with another model, or is not known to have ended with this model */
    bool disagrees;
    double distance;
};

/* Connect, hand over the memory, and wait for the first turn. `initial` holds the parameters as
 * float32, the tensors in their order. Training begins with `initial`, unless the node resumes or
 * another node sets the first model. In these cases z is the model of that node. Returns:
 *
 *   0
 *   -ENOENT or -ECONNREFUSED (no daemon), -EBUSY (another program is attached)
 *   SGP_E_STATE, SGP_E_CONFIG (another model: the line names the first tensor that differs)
 *   SGP_E_MODEL (a neighbour trains another model; the line also names the tensor)
 *   -EAGAIN (the daemon restarts: attach again), -ETIMEDOUT, -EINTR (a signal), -ENOMEM */
SGP_API int sgp_attach(const struct sgp_attach_options *options, const float *initial,
    struct sgp_error *error, struct sgp_attachment **ret_attachment);

/* The identity of this node. Index and size are those of the latest turn, because a reload may
 * change them. */
SGP_API void sgp_attachment_welcome(
    const struct sgp_attachment *attachment, struct sgp_attach_welcome *ret_welcome);

/* The shared parameters, valid as long as the attachment. The program may write them only while it
 * has a turn. */
SGP_API float *sgp_attachment_values(struct sgp_attachment *attachment);

/* The step has been taken: fold it into x, exchange if a round is due, and wait for the next turn.
 * Returns:
 *
 *   0
 *   SGP_E_DIVERGED: a value is not finite. Nothing was folded, and the node pauses. The line
 *                   names the tensor. The next call waits until the node is resumed.
 *   SGP_E_CLOSED: the daemon closed the connection
 *   -EINTR: a signal. A call with step = NULL continues the wait. */
SGP_API int sgp_attachment_mix(struct sgp_attachment *attachment, const struct sgp_step *step,
    struct sgp_error *error, struct sgp_mixed *ret_mixed);

/* Report figures for status and history; NaN if not known. Returns 0 or SGP_E_CLOSED. */
SGP_API int sgp_attachment_report(struct sgp_attachment *attachment, double test_loss,
    double test_accuracy, double epoch, struct sgp_error *error);

/* Claim privacy for the rows of this node, by a method of the program's own. It is shown as a
 * claim. From the answer on, no loss, accuracy or number of rows that the program tells leaves the
 * machine. Call it before the first step, and while the program has a turn. The claim is kept with
 * the run. In a later claim neither epsilon nor delta may be smaller. Returns:
 *
 *   0
 *   SGP_E_DATA: a number is out of range
 *   SGP_E_CONFIG: a number fell, or the configuration of the node lets measures leave it
 *   SGP_E_STATE: the program has no turn
 *   -errno: the claim cannot be kept on the disk
 *   SGP_E_CLOSED
 *   -EINTR: a signal. The claim may be in force; call again. */
SGP_API int sgp_attachment_claim(
    struct sgp_attachment *attachment, const struct sgp_claim *claim, struct sgp_error *error);

/* Ask the fleet to stop training. Returns 0 or SGP_E_CLOSED. */
SGP_API int sgp_attachment_enough(
    struct sgp_attachment *attachment, const char *why, struct sgp_error *error);

/* The program's own steps are done: wait until the fleet has finished. Then the memory holds the
 * fleet's model. Returns 0, SGP_E_CLOSED, or -EINTR (call again). */
SGP_API int sgp_attachment_finish(
    struct sgp_attachment *attachment, struct sgp_error *error, struct sgp_finished *ret_finished);

/* Detach. The node pauses, unless it has finished. Frees the attachment and its memory; NULL is
 * fine. */
SGP_API void sgp_attachment_detach(struct sgp_attachment *attachment);

#endif

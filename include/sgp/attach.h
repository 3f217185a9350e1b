/* SPDX-License-Identifier: Apache-2.0 */
/* A program trains through the daemon of its machine: what the two say to each other, and the program's side.
 *
 * The parameters lie in memory that both see. The program owns them while it has a turn: it takes a step of any kind,
 * and says that it is done. The daemon owns them in between: it adds what changed to its x, exchanges where a round is
 * due, and writes the new estimate z = x / w (Assran et al. 2019, algorithm 1) there for the next turn.
 *
 * The memory is a memfd of the program, sealed against every change of its size, and is a safetensors file: header, then
 * z as float32. A tensor at or behind `values_from` holds values, not updates: what the program writes there is what
 * it means (a batch norm's averages), and counts w times, whoever else gave mass. All others hold updates: the
 * difference counts once.
 *
 * Frames go through a Unix socket of type SOCK_SEQPACKET, one to a datagram. docs/ATTACH.md has the tables.
 *
 * Thread: one attachment is one thread's at a time. Errors: negative codes of sgp/status.h with one line. */
#ifndef SGP_ATTACH_H
#define SGP_ATTACH_H

#include "sgp/model_file.h"
#include "sgp/trainer.h"
#include "sgp/types.h"

#define SGP_ATTACH_MAGIC 0x41504753u /* "SGPA" */
#define SGP_ATTACH_VERSION 1u
#define SGP_ATTACH_TEXT_BYTES 376u

enum sgp_attach_type { /* of a frame; > from the program, < from the daemon */
    SGP_ATTACH_HELLO =
        1, /* > with the memory's descriptor: parameters, rounds; text: what the program is called */
    SGP_ATTACH_WELCOME, /* < node, index, size, round, rounds, local_steps, seed, text: the node's name */
    SGP_ATTACH_REFUSED, /* < code; text: one line. The connection ends. In the place of a turn, too: a neighbour trains another model */
    SGP_ATTACH_TURN, /* < turn, round, rounds, weight, index, size, code, flags: the memory is the program's */
    SGP_ATTACH_DONE, /* > turn, rows, loss, learning_rate, epoch, flags: the memory is the daemon's */
    SGP_ATTACH_STOP,   /* < no further turn comes: training is over */
    SGP_ATTACH_FINISH, /* > own steps are done; the daemon answers when the fleet has finished */
    SGP_ATTACH_FINISHED, /* < round, distance, flags: the memory holds the fleet's model; with DISAGREES, text: the names */
    SGP_ATTACH_REPORT, /* > test_loss, test_accuracy, epoch (NaN: not known); text: other figures, or "" */
    SGP_ATTACH_ENOUGH,    /* > the fleet shall stop training; text: why */
    SGP_ATTACH_DETACH,    /* > the program leaves; the node pauses */
    SGP_ATTACH_EVALUATE,  /* < turn: of the question; measure the estimate that the memory holds */
    SGP_ATTACH_EVALUATED, /* > turn, rows, test_loss, test_accuracy; or code, and text: why not */
    SGP_ATTACH_PREDICT, /* < turn, rows, columns, with a descriptor of the features: apply it to them */
    SGP_ATTACH_PREDICTED, /* > turn, rows, columns, with a descriptor of the outputs; or code, text */
    SGP_ATTACH_TELL, /* > text: the program's word in the next decision of all; code -ETIMEDOUT: it waits no longer */
    SGP_ATTACH_TOLD, /* < size, text: lines of a name and its word, of so many in all; or code, and text: why not, or for -EAGAIN
                        whose words are missing */
    SGP_ATTACH_KEEP, /* > the program keeps its own state of this round: the daemon is to write a checkpoint */
    SGP_ATTACH_AWAITS,  /* > for whom does the node wait? */
    SGP_ATTACH_AWAITED, /* < text: names of nodes, each with a reason; "": for nobody */
    SGP_ATTACH_IDENTIFY, /* > in the place of HELLO: which node is this? Also while another program is attached */
    SGP_ATTACH_IDENTITY, /* < index, size, rounds, local_steps, seed, flags (OVER), text: the node's name. The connection ends */
};

enum sgp_attach_flag {
    SGP_ATTACH_RESUMED = 1,   /* WELCOME: the node has a past; its z replaces the program's */
    SGP_ATTACH_EXCHANGED = 2, /* TURN: since the turn before, a round was exchanged */
    SGP_ATTACH_JUMPED =
        4, /* TURN: z is another's, or of another time; momentum is best forgotten */
    SGP_ATTACH_SKIPPED =
        8, /* TURN, STOP: the turn before was taken back; its step does not count */
    SGP_ATTACH_ASSIGNED = 16, /* DONE: all tensors hold values in this turn */
    SGP_ATTACH_DISAGREES =
        32, /* FINISHED: a neighbour has ended with another model, or is not known to have ended with this one */
    SGP_ATTACH_EVALUATES = 64, /* HELLO: it answers EVALUATE */
    SGP_ATTACH_PREDICTS = 128, /* HELLO: it answers PREDICT */
    SGP_ATTACH_FRESH =
        512, /* HELLO: another run is to begin, unless the present one has completed no round yet */
    SGP_ATTACH_OVER = 1024, /* WELCOME: the node has finished its run, and no turn will come */
    SGP_ATTACH_SAME_UPDATES =
        256, /* TURN: the updates of neighbours, which the text names, are another node's bit for bit; said once */
    SGP_ATTACH_OVERFLOWED =
        2048, /* DONE: gradients overflowed, so a gradient scaler left a step of this turn out */
};

/* Little-endian, without gaps. What a type does not name is zero. */
struct sgp_attach_frame {
    uint32_t magic;
    uint16_t version;
    uint16_t type;
    uint32_t flags;
    int32_t code;        /* 0, or a code of sgp/status.h */
    uint64_t turn;       /* 1, 2, ... within a connection; questions are counted for themselves */
    int64_t round;       /* the node's */
    int64_t rounds;      /* rounds in which this node trains; -1: open, FINISH ends them */
    uint64_t parameters; /* d */
    uint64_t rows;       /* of the step, or of the question */
    double loss;         /* mean over these rows; NaN: not known, like the next */
    double epoch;
    double learning_rate;
    double weight;        /* w, PushSum's */
    uint32_t index;       /* of the node among those of the topology that train */
    uint32_t size;        /* nodes of the topology that train: all but the relays */
    uint32_t local_steps; /* turns between two exchanges */
    uint32_t columns; /* float32 values of a row, which follow one another in the file that comes */
    uint64_t seed;    /* the fleet's, equal on all nodes */
    double test_loss;
    double test_accuracy; /* in [0, 1] */
    double
        distance; /* |z - z'| of the neighbour furthest away, relative to the longer; NaN: none is known */
    char text[SGP_ATTACH_TEXT_BYTES]; /* UTF-8, ends with a zero */
};

#define SGP_ATTACH_PATH_BYTES 108u /* of a Unix socket's path, with its terminating zero */

/* Where daemon and program meet, by `node` of sgp_attach_options. Returns 0, -ENAMETOOLONG, or SGP_E_STATE when
 * nothing names it. Any thread, as the next two. */
SGP_API int sgp_attach_path(const char *node, char path[SGP_ATTACH_PATH_BYTES]);

/* Send one frame, whose magic and version are set here, with a descriptor unless that is -1. Returns 0, -EAGAIN (the
 * socket does not block, and is full), -EINTR, SGP_E_CLOSED (the other side is gone) or -errno. */
SGP_API int sgp_attach_send(int socket, struct sgp_attach_frame *frame, int descriptor);

/* Receive one. *ret_descriptor, the caller's to close, is -1 if none came. Returns as sgp_attach_send, and SGP_E_PROTOCOL
 * (no frame of this version, or a text without end). */
SGP_API int sgp_attach_receive(int socket, struct sgp_attach_frame *ret_frame, int *ret_descriptor);

/* ---- the program's side ---- */

struct sgp_attachment;

/* What the program says when an onlooker asks the daemon (sgpctl evaluate, sgpctl predict). Called between two turns by
 * the thread that waits for the next, from within sgp_attach, sgp_attachment_mix or sgp_attachment_finish. `z` is the
 * estimate, to be read until the call returns. A negative code tells whoever asked that it failed; training goes on. */
struct sgp_answers {
    /* Measure z on the held-out rows; NaN in *ret_evaluation: not known, samples 0 likewise. NULL: it does not. */
    int (*evaluate)(void *context, const float *z, struct sgp_evaluation *ret_evaluation);
    /* outputs[rows x outputs] of features[rows x columns], which are whatever was asked. NULL: it does not. */
    int (*predict)(void *context, const float *z, const float *features, uint64_t rows,
        uint32_t columns, float *outputs);
    uint32_t outputs; /* of a row, at least 1 */
    void *context;    /* handed back */
};

struct sgp_attach_options {
    const char *node; /* "n0" for /run/sgpd/n0/attach.sock, or a path with '/'; NULL: $SGP_SOCKET */
    const char *program; /* for the daemon's journal; NULL: none */
    const struct sgp_file_tensor
        *tensors;               /* they tile the values: each begins where the one before ends */
    uint32_t tensor_count;      /* 1 to SGP_FILE_TENSORS_MAX */
    uint64_t values_from;       /* first parameter that is a value, or all of them: none is */
    int64_t rounds;             /* rounds of training; -1: as the daemon is configured, or open */
    int timeout_ms;             /* for a daemon to be there and to answer; -1: for ever */
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

struct sgp_step { /* what a turn came to */
    uint64_t rows;
    double loss, epoch, learning_rate; /* NaN: not known */
    bool assigned;                     /* all tensors hold values */
};

struct sgp_mixed { /* what came of it */
    sgp_round round;
    double weight;
    bool exchanged, jumped, skipped;
    bool
        same_updates; /* said once: neighbours train on the same rows as this node, or as one another */
    bool stop;        /* no further turn: training is over, and z is the estimate */
};

struct sgp_finished {
    sgp_round round;
    bool
        disagrees; /* a neighbour has ended with another model, or is not known to have ended with this one */
    double distance;
};

/* Connect, hand the memory over, and wait for the first turn. `initial` (parameters float32, the tensors in their order)
 * is what training begins with, unless the node resumes or another node begins; then z is what it has.
 * Returns 0; -ENOENT or -ECONNREFUSED (no daemon), -EBUSY (another program), SGP_E_STATE, SGP_E_CONFIG (another model:
 * the line names the first tensor that differs), SGP_E_MODEL (a neighbour trains another model, likewise), -EAGAIN (the daemon
 * starts anew: attach again), -ETIMEDOUT, -EINTR (a signal), -ENOMEM. */
SGP_API int sgp_attach(const struct sgp_attach_options *options, const float *initial,
    struct sgp_error *error, struct sgp_attachment **ret_attachment);

/* Who this node is: index and size as of the latest turn, for a reload may change them. */
SGP_API void sgp_attachment_welcome(
    const struct sgp_attachment *attachment, struct sgp_attach_welcome *ret_welcome);

/* The shared parameters, as long as the attachment; to be written while the program has a turn. */
SGP_API float *sgp_attachment_values(struct sgp_attachment *attachment);

/* The step has been taken: fold it, exchange if a round is due, and wait for the next turn. Returns 0; SGP_E_DIVERGED
 * (a value is not finite: nothing was taken, the node pauses; the line names the tensor; the next call waits for it to
 * be resumed); SGP_E_CLOSED (the daemon is gone); -EINTR (a signal: call again with step = NULL to go on waiting). */
SGP_API int sgp_attachment_mix(struct sgp_attachment *attachment, const struct sgp_step *step,
    struct sgp_error *error, struct sgp_mixed *ret_mixed);

/* Figures for status and history; NaN where not known. Returns 0 or SGP_E_CLOSED. */
SGP_API int sgp_attachment_report(struct sgp_attachment *attachment, double test_loss,
    double test_accuracy, double epoch, struct sgp_error *error);

/* The fleet shall stop training. Returns 0 or SGP_E_CLOSED. */
SGP_API int sgp_attachment_enough(
    struct sgp_attachment *attachment, const char *why, struct sgp_error *error);

/* Own steps are done: wait until the fleet has finished; then the memory holds its model. Returns 0, SGP_E_CLOSED,
 * -EINTR (call again). */
SGP_API int sgp_attachment_finish(
    struct sgp_attachment *attachment, struct sgp_error *error, struct sgp_finished *ret_finished);

/* Leave: the node pauses, unless it has finished. Frees the attachment and its memory; NULL is fine. */
SGP_API void sgp_attachment_detach(struct sgp_attachment *attachment);

#endif

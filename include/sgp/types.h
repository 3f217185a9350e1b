/* SPDX-License-Identifier: Apache-2.0 */
/* Scalars with a unit or an identity, and the limits that all other code enforces.
 *
 * A typedef here always means "a number that must not be mixed up with another": a time is not a
 * round, though both are 64-bit integers. Structures are never typedef'd. */
#ifndef SGP_TYPES_H
#define SGP_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Before a function that libsgp exports, which is a promise to programs of others. Other functions
 * of these headers are for this tree: they may change with any version. */
#define SGP_API __attribute__((visibility("default")))
#define SGP_PRINTF(text, first) __attribute__((format(printf, text, first)))

/* Nanoseconds on a monotonic clock of the caller's choosing (the daemon's uv_hrtime, the
 * simulator's virtual clock). Library code never reads a clock; the time always arrives as an
 * argument. */
typedef int64_t sgp_time;
#define SGP_TIME_NEVER INT64_MAX
#define SGP_MICROSECOND ((sgp_time)1000)
#define SGP_MILLISECOND ((sgp_time)1000000)
#define SGP_SECOND ((sgp_time)1000000000)

/* A round's label: 0, 1, 2, ... It is a label, not a count: a node that was away may jump ahead. */
typedef int64_t sgp_round;
#define SGP_ROUND_NONE ((sgp_round)-1)
#define SGP_ROUND_MAX ((sgp_round)1 << 48)

/* A contiguous piece of the parameter vector. */
struct sgp_slice {
    uint64_t first;
    uint64_t count;
};

/* Recovery point: the state that a checkpoint describes. sgp/checkpoint.h stores it, and
 * sgp/restart.h makes and judges it. */
#define SGP_KEPT_MAX 4u /* snapshots in a checkpoint */
struct sgp_recovery_point {
    uint64_t incarnation; /* of the node */
    /* Of the record, counted from 1; 0: the parameters are a guess, and belong to no record. */
    uint64_t sequence;
    sgp_round round;
    double weight; /* w of its x, finite, >= 0; with 0 there is no estimate */
    uint32_t kept_count;
    /* The rounds in which the shares were given whose content is kept. */
    sgp_round kept[SGP_KEPT_MAX];
};

/* Limits. Code that reads or allocates such a thing refuses to exceed its limit, and names it. */
#define SGP_NODES_MAX 65536u   /* nodes in a topology */
#define SGP_PHASES_MAX 4096u   /* digraphs in a topology file */
#define SGP_EDGES_MAX 4194304u /* edges in a topology file, all phases together */
#define SGP_NAME_BYTES 64u     /* a node's or phase's name, with its terminating zero */
#define SGP_KEY_BYTES 51u      /* SHA256:BASE64 of a public key, with its terminating zero */
#define SGP_ADDRESS_BYTES 280u /* HOST:PORT, with its terminating zero */
#define SGP_PARAMETERS_MAX ((uint64_t)1 << 33) /* float32 values in a model */
#define SGP_TEXT_BYTES 512u /* one line for a person, with its terminating zero */
#define SGP_PORT_DEFAULT 7311

#endif

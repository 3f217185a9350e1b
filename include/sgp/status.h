/* SPDX-License-Identifier: Apache-2.0 */
/* Errors: one space of codes, one line of text.
 *
 * Functions return 0 or a negative code: -errno (libuv uses the same numbers), or one of our own
 * codes from -1000 down. A programmer's error fails in sgp_assert, which is always on. An error in
 * a person's input (configuration, topology, data) also fills a struct sgp_error with one line:
 * where, what is wrong, and what would be right. */
#ifndef SGP_STATUS_H
#define SGP_STATUS_H

#include "sgp/types.h"

/* One table: name, number, text. Numbers never change once released. */
#define SGP_STATUS_TABLE(X)                                                                        \
    X(SYNTAX, -1000, "the text cannot be parsed")                                                  \
    X(TOPOLOGY, -1001, "the topology is not valid")                                                \
    X(CONFIG, -1002, "the configuration is not valid")                                             \
    X(DATA, -1003, "the data is not valid")                                                        \
    X(LIMIT, -1004, "a limit is exceeded")                                                         \
    X(FRAME, -1005, "the bytes are not a frame of this protocol")                                  \
    X(VERSION, -1006, "the peer speaks another protocol version")                                  \
    X(CHECKSUM, -1007, "the checksum does not match")                                              \
    X(NOT_FINITE, -1008, "a value is not finite")                                                  \
    X(CREDIT, -1009, "a share came without a credit")                                              \
    X(MODEL, -1010, "the peer trains another model")                                               \
    X(UNKNOWN_NODE, -1011, "the node is not in the topology")                                      \
    X(PROTOCOL, -1012, "the peer broke the protocol")                                              \
    X(ABSENT, -1013, "the peer has been silent for longer than its own pace explains")             \
    X(REPLACED, -1014, "a newer connection of the same peer took over")                            \
    X(STATE, -1015, "not possible in this state")                                                  \
    X(FILE, -1016, "the file is damaged or of another kind")                                       \
    X(DIVERGED, -1017, "training diverged: the loss or the model is not finite")                   \
    X(CLOSED, -1018, "the connection was closed")                                                  \
    X(OUTSIZED, -1019, "a value is out of all proportion to ours")

enum {
#define X(name, number, text) SGP_E_##name = number,
    SGP_STATUS_TABLE(X)
#undef X
};

/* One line for people about a failure. Zero-initialise it; the caller owns it. */
struct sgp_error {
    int code;                  /* 0 while nothing failed */
    char text[SGP_TEXT_BYTES]; /* "FILE:LINE: what is wrong; what would be right", no newline */
};

/* The text of a code: ours, or strerror's for -errno. Never NULL; static storage. Any thread. */
SGP_API const char *sgp_strerror(int code);

/* Fill *error (which may be NULL) with code and text, cut at SGP_TEXT_BYTES. Control characters
 * become '?', so that hostile input cannot forge log lines. The first error stays: a second call on
 * a filled error changes nothing. Returns code, which must be negative, so that a caller can write
 * `return sgp_fail(error, SGP_E_DATA, ...)`. */
SGP_API int sgp_fail(struct sgp_error *error, int code, const char *format, ...) SGP_PRINTF(3, 4);

/* Print file:line and the expression on standard error and abort. Always on. */
SGP_API _Noreturn void sgp_assert_failed(const char *expression, const char *file, int line);
#define sgp_assert(expression)                                                                     \
    ((expression) ? (void)0 : sgp_assert_failed(#expression, __FILE__, __LINE__))

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The exit statuses of sgpd. `sgpd --help` is made of this table.
 * tests/unit/daemon/test_exit_status.c compares sgpd(8) and the unit with it. */
#ifndef SGPD_EXIT_STATUS_H
#define SGPD_EXIT_STATUS_H

/* X(NAME, number, restarts, text): restarts is 0 if the unit must not start the process again. */
#define EXIT_STATUS_TABLE(X)                                                                       \
    X(DONE, 0, 1, "done")                                                                          \
    X(FAILED, 1, 1, "failed; another start may succeed")                                           \
    X(USAGE, 2, 1, "wrong usage")                                                                  \
    X(INVALID, 6, 1, "with --check: configuration, topology or data are not valid")                \
    X(OUTDATED, 7, 0, "done, but with keep_best other nodes may keep a better model")              \
    X(CONFIG, 78, 0, "the configuration is not valid")

#define EXIT_STATUS_ENTRY(name, number, restarts, text) EXIT_STATUS_##name = (number),
enum exit_status { EXIT_STATUS_TABLE(EXIT_STATUS_ENTRY) };

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* An allowance of processor time. Work for clients may take a fixed part of one processor, so that
 * training keeps the rest however many requests arrive.
 *
 * Time that passes is earned, up to a bound. Work is charged after it was done, so the balance may
 * be negative. Then the next piece waits until the balance is zero again.
 *
 * Times are in nanoseconds of the monotonic clock. Never fails, allocates nothing. Thread: its
 * owner's. */
#ifndef SGPD_ALLOWANCE_H
#define SGPD_ALLOWANCE_H

#include <stdint.h>

struct allowance {
    uint32_t part;   /* 1 / part of the time that passes is earned; >= 1 */
    int64_t most;    /* greatest balance: what may be spent at once after a rest */
    int64_t balance; /* at `since` */
    uint64_t since;
};

/* Begin with a full balance. */
void allowance_init(struct allowance *allowance, uint64_t now, uint32_t part, uint64_t most);

/* Charge work that was done until now. */
void allowance_charge(struct allowance *allowance, uint64_t now, uint64_t spent);

/* How long the next piece of work has to wait; 0: it may begin. */
uint64_t allowance_wait(struct allowance *allowance, uint64_t now);

/* Processor time of the calling thread, for the time to be charged. */
uint64_t allowance_spent_by_thread(void);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Processor time earned and spent; see allowance.h. */
#include "allowance.h"

#include "sgp/status.h"

#include <time.h>

void allowance_init(struct allowance *allowance, uint64_t now, uint32_t part, uint64_t most)
{
    sgp_assert(part >= 1);
    *allowance = (struct allowance){
        .part = part, .most = (int64_t)most, .balance = (int64_t)most, .since = now};
}

static void earn(struct allowance *allowance, uint64_t now)
{
    if (now <= allowance->since)
        return;
    uint64_t earned = (now - allowance->since) / allowance->part;
    allowance->since += earned * allowance->part; /* the remainder is earned next time */
    uint64_t room = (uint64_t)(allowance->most - allowance->balance);
    allowance->balance = earned < room ? allowance->balance + (int64_t)earned : allowance->most;
}

void allowance_charge(struct allowance *allowance, uint64_t now, uint64_t spent)
{
    earn(allowance, now);
    allowance->balance -= (int64_t)spent;
}

uint64_t allowance_wait(struct allowance *allowance, uint64_t now)
{
    earn(allowance, now);
    return allowance->balance < 0 ? (uint64_t)-allowance->balance * allowance->part : 0;
}

uint64_t allowance_spent_by_thread(void)
{
    struct timespec spent = {0};
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
    return (uint64_t)spent.tv_sec * 1000000000u + (uint64_t)spent.tv_nsec;
}

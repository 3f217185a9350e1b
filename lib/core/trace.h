/* One line of text a step: the same in tests, simulator and daemon. */
#ifndef SGP_CORE_TRACE_H
#define SGP_CORE_TRACE_H

#include "sgp/driver.h"

#define SGP_TRACE_BYTES SGP_TEXT_BYTES

/* `t=NS node=NAME round=K w=W event=.. peer=.. do=..,..`, cut at `bytes`. */
void sgp_trace_line(
    char *line, size_t bytes, const struct sgp_driver *driver, const struct sgp_event *event);

#endif

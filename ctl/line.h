/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a line of a configuration can hold a value (line.c). The reader of configurations cuts
 * comments, which begin with a blank before # or ;, and refuses long lines. */
#ifndef CTL_LINE_H
#define CTL_LINE_H

#include "ctl.h"

/* Whether the line `key = value` is read back with this value. */
bool ctl_line_holds(const char *key, const char *value);

/* CTL_DONE, or CTL_USAGE: reported in one line that names the option. */
enum ctl_exit ctl_line_check(
    struct ctl *ctl, const char *option, const char *key, const char *value);

#endif

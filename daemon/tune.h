/* SPDX-License-Identifier: Apache-2.0 */
/* `sgpd --tune`: a finished model, whose local layers this node trains alone on its own rows. No
 * other node takes part, and nothing is sent. */
#ifndef SGPD_TUNE_H
#define SGPD_TUNE_H

#include "setup/prepare.h"

/* Read the model file `path`, and train the local layers of the prepared node for the epochs or
 * rounds of its configuration. All other layers stay as they are in the file. Then write the result
 * to `output`. Prints a line for each epoch to standard output. Blocks. Returns 0; SGP_E_CONFIG or
 * SGP_E_FILE with *error filled, if the configuration has no local layers or rows, or describes
 * another model than the file; SGP_E_DIVERGED, -ENOMEM, -errno. */
int tune(struct prepared *prepared, const char *path, const char *output, struct sgp_error *error);

#endif

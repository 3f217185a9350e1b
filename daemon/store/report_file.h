/* SPDX-License-Identifier: Apache-2.0 */
/* STATE/report.json: what the nodes have told of the final model.
 *
 *     {"sgp_reports": 1, "nodes": [{"name": "n0", "stamp": 1, "report": "1 7 400 ..."}]}
 *
 * Blocks on files. Thread: any. */
#ifndef SGPD_REPORT_FILE_H
#define SGPD_REPORT_FILE_H

#include "util/view.h"

#define REPORT_FILE "report.json" /* in the state directory */

/* Write the reports that have a text. Returns 0, or negative with *error. */
int report_file_write(
    const char *path, const struct view_reports *reports, struct sgp_error *error);

/* Read what was written, which the caller frees. The texts are as they were found. Returns 1; 0:
 * there is no file; negative with *error: it is damaged, or cannot be read. */
int report_file_read(const char *path, struct sgp_error *error, struct view_reports **ret_reports);

#endif

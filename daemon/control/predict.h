/* SPDX-License-Identifier: Apache-2.0 */
/* POST /v1/predict. Thread: the loop thread. */
#ifndef SGPD_PREDICT_H
#define SGPD_PREDICT_H

#include "http.h"

/* For the table of endpoints: answers, or begins a job. */
void predict_serve(struct request *request);

#endif

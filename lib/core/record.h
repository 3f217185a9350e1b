/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the library and sgpd: what a record is made of (sgp/record.h), for all that store it. A field of it that has no
 * line in these tables does not survive. */
#ifndef SGP_CORE_RECORD_H
#define SGP_CORE_RECORD_H

#include "base/form.h"

/* struct sgp_record but for its lists, with how long they are; an entry of its links; one of its accounts. */
extern const struct sgp_form sgp_record_form, sgp_record_link_form, sgp_account_form;

#endif

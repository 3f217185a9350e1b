/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to the library and sgpd: the form of a record (sgp/record.h), for all code that stores
 * it. A field without a line in these tables does not survive. */
#ifndef SGP_CORE_RECORD_H
#define SGP_CORE_RECORD_H

#include "base/form.h"

/* The form of struct sgp_record with the length of its lists, but not their entries; of an entry of
 * its links; of an entry of its accounts. */
extern const struct sgp_form sgp_record_form, sgp_record_link_form, sgp_account_form;

#endif

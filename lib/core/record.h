/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to the library and sgpd: the schema of a record (sgp/record.h), for all code that stores
 * it. A field without a line in these tables does not survive. */
#ifndef SGP_CORE_RECORD_H
#define SGP_CORE_RECORD_H

#include "base/schema.h"

/* The schema of struct sgp_record with the length of its lists, but not their entries; of an entry
 * of its links; of an entry of its accounts. */
extern const struct sgp_schema sgp_record_schema, sgp_record_link_schema, sgp_account_schema;

#endif

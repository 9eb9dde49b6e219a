// Groups of texts: anchor, positive, negative.
#ifndef TR_DATA_ENCODER_GROUPS_H
#define TR_DATA_ENCODER_GROUPS_H

#include "data/sources/joined.h"

#include <tranche/data.h>

#include <jansson.h>

// What a record calls text k of its group.
const char *tr__group_field(const tr_data_options *options, int64_t k);

// How many texts the groups of the training files have, by the first record: 3 where it
// has a negative, too, 2 where it has an anchor and its positive, else fewer. TR_DATA.
tr_status tr__group_survey(const tr_data_options *options, int64_t *texts,
                           tr_error *err);

#endif

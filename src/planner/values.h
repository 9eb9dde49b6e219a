// The values of each setting that the planner tries: one function for each dimension.
#ifndef TR_PLANNER_VALUES_H
#define TR_PLANNER_VALUES_H

#include "planner/settings.h"

#define TR_VALUES_OF(name)                                                             \
    size_t tr__values_##name(const tr_planner_request *request, const tr_point *point, \
                             int64_t *values);
TR_DIMENSION_LIST(TR_VALUES_OF)
#undef TR_VALUES_OF

#endif

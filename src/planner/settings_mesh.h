// The rows of planner/settings.h that make the mesh: its tensor and its pipeline axis,
// and what goes with stages. Data ranks are what is left of all ranks.
#ifndef TR_PLANNER_SETTINGS_MESH_H
#define TR_PLANNER_SETTINGS_MESH_H

#include "planner/settings.h"

int64_t tr__get_tensor_ranks(const tr_point *point);
void tr__set_tensor_ranks(tr_point *point, int64_t value);
void tr__say_tensor_ranks(const tr_point *point, char *dst, size_t size);
int64_t tr__get_pipeline_stages(const tr_point *point);
void tr__set_pipeline_stages(tr_point *point, int64_t value);
void tr__say_pipeline_stages(const tr_point *point, char *dst, size_t size);
int64_t tr__get_pipeline_order(const tr_point *point);
void tr__set_pipeline_order(tr_point *point, int64_t value);
void tr__say_pipeline_order(const tr_point *point, char *dst, size_t size);
int64_t tr__get_virtual_stages(const tr_point *point);
void tr__set_virtual_stages(tr_point *point, int64_t value);
void tr__say_virtual_stages(const tr_point *point, char *dst, size_t size);

#endif

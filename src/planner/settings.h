// What a plan is asked for, a row for each setting: the key of a run file, the field of
// the request, the values that the planner tries, what is printed of it, and who
// decides it where the user does not.
#ifndef TR_PLANNER_SETTINGS_H
#define TR_PLANNER_SETTINGS_H

#include "plan/flow/plan.h"

#include <tranche/extend/planner.h>

// A point: the request as it has been set so far, and into how many slices the model's
// vocabulary is cut.
typedef struct tr_point {
    tr_plan_request plan;
    int64_t slices;
} tr_point;

// What the values of a setting are.
typedef enum tr_setting_kind {
    TR_COUNT,
    TR_PLACE, // a tr_space: "none", "cpu", "nvme" in a run file
    TR_YES,
    TR_CLASSES,   // bits of tr_recompute_class
    TR_ORDER,     // a tr_pipeline_order: "1f1b"
    TR_ALGORITHM, // a tr_exchange_algorithm: "ring"
    TR_ATTENTION  // where attention is taken from: "cudnn-9.19"
} tr_setting_kind;

// The settings that the planner never chooses follow its dimensions.
typedef enum tr_plan_setting_name {
    TR_SETTING_TRAIN_BATCH_SIZE = TR_DIMENSIONS,
    TR_SETTING_ACCUMULATION_STEPS,
    TR_SETTING_OVERLAP,
    TR_SETTING_NODE_RANKS,
    TR_SETTING_HIERARCHICAL,
    TR_SETTING_EXCHANGE_ALGORITHM,
    TR_SETTING_REPRODUCIBLE,
    TR_SETTING_ATTENTION,
    TR_SETTING_THREADS,
    TR_SETTING_MEASURE,
    TR_SETTING_F32_LOGITS,
    TR_SETTING_LOGITS_MIB,
    TR_SETTING_PARTS_ON_DEVICE,
    TR_PLAN_SETTINGS
} tr_plan_setting_name;

enum { TR_VALUES_MAX = 512, TR_OLD_KEYS_MAX = 2 };

// Fields left out are zero and mean "no such rule".
typedef struct tr_plan_setting {
    const char *key; // of a run file
    tr_setting_kind kind;
    const char *name;     // in plans as JSON, and in checkpoints
    const char *old_name; // in checkpoints of earlier versions; NULL: the same
    int64_t (*get)(const tr_point *point);
    void (*set)(tr_point *point, int64_t value);
    // "wave 4"; the plainest value may say nothing. dst: [size], empty
    void (*say)(const tr_point *point, char *dst, size_t size);
    // Of a dimension: values worth trying where the dimensions before it have theirs;
    // at most TR_VALUES_MAX, the first the plainest. Returns how many.
    size_t (*values)(const tr_planner_request *request, const tr_point *point,
                     int64_t *values);
    bool in_class;     // what moves and what lives always depends on it
    bool of_batch;     // one of T = m g W, which are read together
    bool of_mesh;      // so are those of the mesh; chosen only where that is asked for
    bool agreed;       // the same on all ranks
    bool fixed;        // stays what it is while a run is at work
    bool changes_bits; // of a reproducible run, too: chosen only where it is asked for
    const char *old_keys[TR_OLD_KEYS_MAX]; // switches that mean "cpu"
    const char *also_said_by;              // another key that may say it
    const char *decided; // the origin of a value that the plan itself decides
} tr_plan_setting;

extern const tr_plan_setting tr__plan_settings[TR_PLAN_SETTINGS];

// The values of a dimension: those to try where it is free, else the one it has.
size_t tr__dimension_values(const tr_planner_request *request, tr_dimension_name d,
                            const tr_point *point, int64_t *values);
// The request's point, and one by its values of the dimensions.
tr_point tr__planner_start(const tr_planner_request *request);
tr_point tr__point_of(const tr_planner_request *request, const int64_t *value);
void tr__point_values(const tr_point *point, int64_t *value);
// "norm+activation", with '+' for `between`; "" for none. dst: [size]
void tr__classes_say(uint32_t classes, const char *between, char *dst, size_t size);
// The space that a run file calls "none", "cpu" or "nvme".
int64_t tr__place_of(const char *name);
// A value as a run file has it: "4", "cpu". dst: [size]
void tr__plan_setting_show(const tr_plan_setting *setting, int64_t value, char *dst,
                           size_t size);
// What of it is of the dimensions in `which`: "micro batch 4 x 16, wave 1". dst: [size]
void tr__point_say(const tr_point *point, unsigned which, char *dst, size_t size);

#endif

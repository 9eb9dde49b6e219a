// The table of what a plan is asked for. A new setting is a row here; one that the
// planner may choose also has a name in <tranche/planner.h> and its values in values.c.
#include "planner/settings.h"

#include "backend/backend.h"
#include "base/checked.h"
#include "plan/flow/algorithm.h"
#include "plan/print/print.h"
#include "plan/schedules/schedule.h"
#include "planner/settings_mesh.h"
#include "planner/values.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void tr__classes_say(uint32_t classes, const char *between, char *dst, size_t size) {
    size_t used = 0;
    dst[0] = '\0';
    for (uint32_t bit = 1; bit & TR_RECOMPUTE_ALL && used < size; bit <<= 1) {
        if (classes & bit) {
            used +=
                (size_t)snprintf(dst + used, size - used, "%s%s", used ? between : "",
                                 tr_recompute_name((tr_recompute_class)bit));
        }
    }
}

const char *tr_dimension_word(tr_dimension_name dimension) {
    return tr__plan_settings[dimension].name;
}

// ---- the batch

static int64_t get_train_batch_size(const tr_point *p) {
    return p->plan.train_batch_size;
}

static void set_train_batch_size(tr_point *p, int64_t value) {
    p->plan.train_batch_size = value;
}

static int64_t get_accumulation_steps(const tr_point *p) {
    return p->plan.accumulation_steps;
}

static void set_accumulation_steps(tr_point *p, int64_t value) {
    p->plan.accumulation_steps = value;
}

static int64_t get_micro_batch(const tr_point *p) {
    return p->plan.micro_batch;
}

static void set_micro_batch(tr_point *p, int64_t value) {
    p->plan.micro_batch = value;
    p->plan.accumulation_steps =
        tr__ceil_div(p->plan.train_batch_size, value * tr__data_ranks(&p->plan));
}

static void say_micro_batch(const tr_point *p, char *dst, size_t size) {
    snprintf(dst, size, "micro-batch %" PRId64 " x %" PRId64, p->plan.micro_batch,
             p->plan.accumulation_steps);
}

// ---- ranks

static int64_t get_stage(const tr_point *p) {
    return p->plan.stage;
}

static void set_stage(tr_point *p, int64_t value) {
    p->plan.stage = (int)value;
}

static void say_stage(const tr_point *p, char *dst, size_t size) {
    if (tr__data_ranks(&p->plan) > 1) {
        snprintf(dst, size, "stage %d", p->plan.stage);
    }
}

static int64_t get_overlap(const tr_point *p) {
    return !p->plan.no_overlap;
}

static void set_overlap(tr_point *p, int64_t value) {
    p->plan.no_overlap = !value;
}

static int64_t get_node_ranks(const tr_point *p) {
    return p->plan.node_ranks;
}

static void set_node_ranks(tr_point *p, int64_t value) {
    p->plan.node_ranks = value;
}

static int64_t get_hierarchical(const tr_point *p) {
    return p->plan.hierarchical;
}

static void set_hierarchical(tr_point *p, int64_t value) {
    p->plan.hierarchical = value != 0;
}

static int64_t get_exchange_algorithm(const tr_point *p) {
    return p->plan.algorithm;
}

static void set_exchange_algorithm(tr_point *p, int64_t value) {
    p->plan.algorithm = (tr_exchange_algorithm)value;
}

// ---- placement

static void say_placement(const char *what, tr_space placement, char *dst,
                          size_t size) {
    if (placement != TR_SPACE_DEVICE) {
        snprintf(dst, size, "%s on %s%s", what,
                 placement == TR_SPACE_HOST ? "the " : "", tr_space_name(placement));
    }
}

static int64_t get_optimizer_placement(const tr_point *p) {
    return p->plan.optimizer_placement;
}

static void set_optimizer_placement(tr_point *p, int64_t value) {
    p->plan.optimizer_placement = (tr_space)value;
}

static void say_optimizer_placement(const tr_point *p, char *dst, size_t size) {
    say_placement("optimizer", p->plan.optimizer_placement, dst, size);
}

static int64_t get_grad_placement(const tr_point *p) {
    return p->plan.grad_placement == TR_SPACE_NVME;
}

static void set_grad_placement(tr_point *p, int64_t value) {
    p->plan.grad_placement = value ? TR_SPACE_NVME : TR_SPACE_DEVICE;
}

static void say_grad_placement(const tr_point *p, char *dst, size_t size) {
    if (p->plan.grad_placement == TR_SPACE_NVME) {
        snprintf(dst, size, "gradients on nvme");
    }
}

static int64_t get_param_placement(const tr_point *p) {
    return p->plan.param_placement;
}

static void set_param_placement(tr_point *p, int64_t value) {
    p->plan.param_placement = (tr_space)value;
}

static void say_param_placement(const tr_point *p, char *dst, size_t size) {
    say_placement("parameters", p->plan.param_placement, dst, size);
}

static int64_t get_vocabulary_slices(const tr_point *p) {
    return p->slices;
}

static void set_vocabulary_slices(tr_point *p, int64_t value) {
    p->slices = value;
}

static void say_vocabulary_slices(const tr_point *p, char *dst, size_t size) {
    if (p->slices > 1) {
        snprintf(dst, size, "vocabulary in %" PRId64 " slices", p->slices);
    }
}

// ---- wave and recomputation

static int64_t get_passes(const tr_point *p) {
    return p->plan.passes > 1 ? 2 : 1;
}

static void set_passes(tr_point *p, int64_t value) {
    p->plan.passes = (int)value;
}

static void say_passes(const tr_point *p, char *dst, size_t size) {
    if (get_passes(p) > 1) {
        snprintf(dst, size, "two passes");
    }
}

static int64_t get_wave(const tr_point *p) {
    return p->plan.wave;
}

static void set_wave(tr_point *p, int64_t value) {
    p->plan.wave = value;
}

static void say_wave(const tr_point *p, char *dst, size_t size) {
    snprintf(dst, size, "wave %" PRId64, p->plan.wave);
}

static int64_t get_alternating(const tr_point *p) {
    return p->plan.alternating > 0 ? p->plan.alternating : TR_ALTERNATING_MOST;
}

static void set_alternating(tr_point *p, int64_t value) {
    p->plan.alternating = (int)value;
}

static void say_alternating(const tr_point *p, char *dst, size_t size) {
    if (get_alternating(p) < TR_ALTERNATING_MOST) {
        snprintf(dst, size, "%" PRId64 " alternating", get_alternating(p));
    }
}

static int64_t get_recomputed_ops(const tr_point *p) {
    return p->plan.recomputed_ops ? p->plan.recomputed_ops : TR_RECOMPUTE_DEFAULT;
}

static void set_recomputed_ops(tr_point *p, int64_t value) {
    p->plan.recomputed_ops = (uint32_t)value;
}

static void say_recomputed_ops(const tr_point *p, char *dst, size_t size) {
    tr__classes_say((uint32_t)get_recomputed_ops(p), "+", dst, size);
    size_t used = strlen(dst);
    snprintf(dst + used, size - used, "%srecomputed", used ? " " : "no tensor ");
}

static int64_t get_boundary_placement(const tr_point *p) {
    return p->plan.boundary_placement == TR_SPACE_HOST;
}

static void set_boundary_placement(tr_point *p, int64_t value) {
    p->plan.boundary_placement = value ? TR_SPACE_HOST : TR_SPACE_DEVICE;
}

static void say_boundary_placement(const tr_point *p, char *dst, size_t size) {
    if (get_boundary_placement(p) && p->plan.recomputed_units != 0) {
        snprintf(dst, size, "their inputs on the host");
    }
}

static int64_t get_saved_placement(const tr_point *p) {
    return p->plan.saved_placement == TR_SPACE_HOST;
}

static void set_saved_placement(tr_point *p, int64_t value) {
    p->plan.saved_placement = value ? TR_SPACE_HOST : TR_SPACE_DEVICE;
}

static void say_saved_placement(const tr_point *p, char *dst, size_t size) {
    if (get_saved_placement(p)) {
        snprintf(dst, size, "saved activations on the host");
    }
}

static int64_t get_recomputed_units(const tr_point *p) {
    return p->plan.recomputed_units;
}

static void set_recomputed_units(tr_point *p, int64_t value) {
    p->plan.recomputed_units = value;
}

static void say_recomputed_units(const tr_point *p, char *dst, size_t size) {
    char words[64];
    tr__plan_recomputed_say(p->plan.recomputed_units, p->plan.model->unit_count, words,
                            sizeof words);
    snprintf(dst, size, "%s recomputed", words);
}

// ---- how it computes

static int64_t get_threads(const tr_point *p) {
    return p->plan.threads;
}

static void set_threads(tr_point *p, int64_t value) {
    p->plan.threads = (int)value;
}

static int64_t get_reproducible(const tr_point *p) {
    return p->plan.reproducible;
}

static void set_reproducible(tr_point *p, int64_t value) {
    p->plan.reproducible = value != 0;
}

static int64_t get_attention(const tr_point *p) {
    return p->plan.attention;
}

static void set_attention(tr_point *p, int64_t value) {
    p->plan.attention = (int)value;
}

static int64_t get_measure(const tr_point *p) {
    return p->plan.measure != TR_MEASURE_NEVER;
}

static void set_measure(tr_point *p, int64_t value) {
    p->plan.measure = value ? TR_MEASURE_ALWAYS : TR_MEASURE_NEVER;
}

static int64_t get_f32_logits(const tr_point *p) {
    return p->plan.f32_logits;
}

static void set_f32_logits(tr_point *p, int64_t value) {
    p->plan.f32_logits = value != 0;
}

static int64_t get_logits_mib(const tr_point *p) {
    return p->plan.logits_mib;
}

static void set_logits_mib(tr_point *p, int64_t value) {
    p->plan.logits_mib = value;
}

static int64_t get_parts_on_device(const tr_point *p) {
    return p->plan.parts_on_device;
}

static void set_parts_on_device(tr_point *p, int64_t value) {
    p->plan.parts_on_device = value != 0;
}

// ---- the table

#define ZERO       "zero_optimization."
#define CHECKPOINT "activation_checkpointing."
#define CUT        .of_batch = true, .agreed = true
// Field of the request, what is said of it; and of a dimension the planner's values.
#define FIELD(id)     .name = #id, .get = get_##id, .set = set_##id
#define DIMENSION(id) FIELD(id), .say = say_##id, .values = tr__values_##id
#define MESH(id)                                                                       \
    .name = #id, .get = tr__get_##id, .set = tr__set_##id, .say = tr__say_##id,        \
    .values = tr__values_##id, .of_mesh = true, .in_class = true, .agreed = true,      \
    .fixed = true

const tr_plan_setting tr__plan_settings[TR_PLAN_SETTINGS] = {
    [TR_DIMENSION_tensor_ranks] = {"tensor_parallel.size", TR_COUNT,
                                   MESH(tensor_ranks)},
    [TR_DIMENSION_pipeline_stages] = {"pipeline.stages", TR_COUNT,
                                      MESH(pipeline_stages)},
    [TR_DIMENSION_pipeline_order] = {"pipeline.schedule", TR_ORDER,
                                     MESH(pipeline_order)},
    [TR_DIMENSION_virtual_stages] = {"pipeline.virtual_stages", TR_COUNT,
                                     MESH(virtual_stages)},
    [TR_DIMENSION_micro_batch] = {"train_micro_batch_size_per_gpu", TR_COUNT,
                                  DIMENSION(micro_batch), CUT, .fixed = true,
                                  .changes_bits = true},
    [TR_DIMENSION_stage] = {ZERO "stage", TR_COUNT, DIMENSION(stage), .in_class = true,
                            .agreed = true, .fixed = true},
    [TR_DIMENSION_optimizer_placement] = {ZERO "offload_optimizer.device", TR_PLACE,
                                          DIMENSION(optimizer_placement),
                                          .old_name = "optimizer_home",
                                          .in_class = true, .fixed = true,
                                          .old_keys = {ZERO "cpu_offload"}},
    [TR_DIMENSION_grad_placement] = {"memory.nvme.gradients", TR_YES,
                                     DIMENSION(grad_placement), .old_name = "grad_home",
                                     .in_class = true, .fixed = true},
    [TR_DIMENSION_param_placement] =
        {ZERO "offload_param.device", TR_PLACE, DIMENSION(param_placement),
         .old_name = "param_home", .in_class = true, .fixed = true,
         .old_keys = {ZERO "cpu_offload_params", ZERO "cpu_offload_param"}},
    [TR_DIMENSION_vocabulary_slices] = {"execution.vocabulary_slices", TR_COUNT,
                                        DIMENSION(vocabulary_slices), .in_class = true,
                                        .fixed = true, .changes_bits = true},
    [TR_DIMENSION_passes] = {"contrastive.passes", TR_COUNT, DIMENSION(passes),
                             .in_class = true, .agreed = true, .fixed = true},
    [TR_DIMENSION_wave] = {"execution.wave", TR_COUNT, DIMENSION(wave), .agreed = true,
                           .decided = "chosen by the plan"},
    [TR_DIMENSION_alternating] = {"execution.alternating", TR_COUNT,
                                  DIMENSION(alternating), .agreed = true},
    [TR_DIMENSION_recomputed_ops] = {"execution.recompute", TR_CLASSES,
                                     DIMENSION(recomputed_ops)},
    [TR_DIMENSION_boundary_placement] = {CHECKPOINT "cpu_checkpointing", TR_YES,
                                         DIMENSION(boundary_placement),
                                         .old_name = "boundary_home"},
    [TR_DIMENSION_saved_placement] = {CHECKPOINT "cpu_saved", TR_YES,
                                      DIMENSION(saved_placement)},
    [TR_DIMENSION_recomputed_units] = {CHECKPOINT "number_checkpoints", TR_COUNT,
                                       DIMENSION(recomputed_units),
                                       .also_said_by = "execution.recompute"},
    [TR_SETTING_TRAIN_BATCH_SIZE] = {"train_batch_size", TR_COUNT,
                                     FIELD(train_batch_size), CUT},
    [TR_SETTING_ACCUMULATION_STEPS] = {"gradient_accumulation_steps", TR_COUNT,
                                       FIELD(accumulation_steps), CUT},
    [TR_SETTING_OVERLAP] = {ZERO "overlap_comm", TR_YES, FIELD(overlap)},
    [TR_SETTING_NODE_RANKS] = {"execution.ranks_per_node", TR_COUNT, FIELD(node_ranks),
                               .agreed = true},
    [TR_SETTING_HIERARCHICAL] = {"execution.hierarchical", TR_YES, FIELD(hierarchical),
                                 .agreed = true},
    [TR_SETTING_EXCHANGE_ALGORITHM] = {"execution.exchange_algorithm", TR_ALGORITHM,
                                       FIELD(exchange_algorithm), .agreed = true},
    [TR_SETTING_REPRODUCIBLE] = {"execution.reproducible", TR_YES, FIELD(reproducible)},
    [TR_SETTING_ATTENTION] = {"execution.attention", TR_ATTENTION, FIELD(attention),
                              .agreed = true},
    [TR_SETTING_THREADS] = {"execution.threads", TR_COUNT, FIELD(threads),
                            .decided = "the size of the work, and the cores"},
    [TR_SETTING_MEASURE] = {"noise_scale.measure", TR_YES, FIELD(measure),
                            .decided = "whether it costs a hundredth of the time or "
                                       "less"},
    [TR_SETTING_F32_LOGITS] = {"execution.f32_logits", TR_YES, FIELD(f32_logits),
                               .agreed = true},
    [TR_SETTING_LOGITS_MIB] = {"execution.logits_mib", TR_COUNT, FIELD(logits_mib),
                               .agreed = true},
    [TR_SETTING_PARTS_ON_DEVICE] = {"execution.parts_on_device", TR_YES,
                                    FIELD(parts_on_device), .agreed = true},
};

static const char *const place_names[TR_SPACES] = {"none", "cpu", "nvme"};

int64_t tr__place_of(const char *name) {
    int64_t space = TR_SPACE_NVME;
    while (space > TR_SPACE_DEVICE && strcmp(name, place_names[space]) != 0) {
        space--;
    }
    return space;
}

void tr__plan_setting_show(const tr_plan_setting *setting, int64_t value, char *dst,
                           size_t size) {
    if (setting->kind == TR_PLACE) {
        snprintf(dst, size, "%s", place_names[value]);
    } else if (setting->kind == TR_CLASSES) {
        tr__classes_say((uint32_t)value, "+", dst, size);
        if (dst[0] == '\0') {
            snprintf(dst, size, "none");
        }
    } else if (setting->kind == TR_ORDER) {
        snprintf(dst, size, "%s", tr__pipeline_names[value]);
    } else if (setting->kind == TR_ALGORITHM) {
        snprintf(dst, size, "%s", tr__algorithm_name((tr_exchange_algorithm)value));
    } else if (setting->kind == TR_ATTENTION) {
        snprintf(dst, size, "%s", tr__attention_name((int)value));
    } else if (setting->kind == TR_YES) {
        snprintf(dst, size, "%s", value ? "true" : "false");
    } else {
        snprintf(dst, size, "%" PRId64, value);
    }
}

// ---- points

size_t tr__dimension_values(const tr_planner_request *request, tr_dimension_name d,
                            const tr_point *point, int64_t *values) {
    if (request->free >> d & 1) {
        return tr__plan_settings[d].values(request, point, values);
    }
    values[0] = tr__plan_settings[d].get(point);
    return 1;
}

tr_point tr__planner_start(const tr_planner_request *request) {
    return (tr_point){request->plan, request->vocabulary_slices};
}

tr_point tr__point_of(const tr_planner_request *request, const int64_t *value) {
    tr_point point = tr__planner_start(request);
    for (int d = 0; d < TR_DIMENSIONS; d++) {
        tr__plan_settings[d].set(&point, value[d]);
    }
    return point;
}

void tr__point_values(const tr_point *point, int64_t *value) {
    for (int d = 0; d < TR_DIMENSIONS; d++) {
        value[d] = tr__plan_settings[d].get(point);
    }
}

void tr__point_say(const tr_point *point, unsigned which, char *dst, size_t size) {
    size_t used = 0;
    dst[0] = '\0';
    for (int d = 0; d < TR_DIMENSIONS && used < size; d++) {
        char words[96] = "";
        if (which >> d & 1) {
            tr__plan_settings[d].say(point, words, sizeof words);
        }
        if (words[0]) {
            used += (size_t)snprintf(dst + used, size - used, "%s%s", used ? ", " : "",
                                     words);
        }
    }
}

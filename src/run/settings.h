// A run's numbers, resolved: what the engine works with.
#ifndef TR_RUN_SETTINGS_H
#define TR_RUN_SETTINGS_H

#include "ops/optimizers/optimizer.h"
#include "run/batches.h"
#include "run/guard_rules.h"
#include "run/loss_scale_rules.h"
#include "run/monitors.h"
#include "run/patterns.h"
#include "run/scaling.h"
#include "run/schedule.h"

#include <tranche/extend/plan.h>

#include <stdint.h>

// Parameters whose names match one of the patterns; the first group that matches
// counts.
typedef struct tr_param_group {
    tr_patterns match;
    tr_hyper hyper; // `lr`: the group's own rate, that the schedule starts from
    tr_hyper apart; // of its parameters that are apart (tr_optimizer.apart)
} tr_param_group;

// How ranks exchange what is on devices beside the host (execution.exchange).
typedef enum tr_exchange_way {
    TR_WAY_OPEN, // as the run finds best
    TR_WAY_HOST, // by way of the host's memory
    TR_WAY_PEERS // the devices by themselves
} tr_exchange_way;

typedef struct tr_settings {
    int64_t steps;  // optimizer steps in all; where the batch follows the noise scale
                    // for some epochs, at most
    int64_t epochs; // > 0: the run ends with them, whatever the steps
    uint64_t seed;
    tr_plan_fp8 fp8;
    tr_loss_scale_rules scale; // of the loss
    double clip;               // largest gradient norm; 0: no clipping
    const tr_optimizer *optimizer;
    bool exclude_1d; // LAMB, LARS: tensors of one dimension keep their group's rate
    bool decay_1d;   // and have weight decay; where a group says which, in any case
    tr_param_group *groups;     // [group_count], the last one matches everything
    tr_apart_rule *apart_rules; // [group_count - 1]: their use_muon
    size_t group_count;
    tr_patterns freeze; // parameters that are not trained
    tr_schedule schedule;
    tr_scaling scaling;
    tr_batches batches;
    double noise_keep; // what the steps before weigh in the noise scale
    tr_guard_rules guard;
    int64_t max_skipped; // updates skipped in a row that end the run; 0: none do
    int64_t evaluate_every, evaluate_samples; // 0: at the end only, all
    int64_t checkpoint_every;                 // 0: not by steps
    double checkpoint_minutes;                // 0: not by time
    bool checkpoint_best;                     // keep that of the lowest validation loss
    int keep;                                 // 0: all
    tr_exchange_way exchange;
    tr_dtype checkpoint_dtype; // of weights in checkpoints: TR_F32 or TR_BF16
    int64_t shard_bytes;       // of them in one file, at most; 0: one file
    bool dry;                  // nothing is ever saved: a check
    char *out;                 // folder
    char *nvme_path;           // folder, NULL: none
    char *resume;              // "auto", "never", a folder
    bool resume_deepspeed;     // which DeepSpeed saved
    char *trace;               // file, NULL: none
    int64_t trace_step;        // of this process's, from 1; 0: any
    bool plan_only;            // no weights and no data are needed
    bool choose_device;        // a GPU, where the device is left open
    bool computes_here;        // a device that is named must be there
    tr_monitor_place csv_monitor, tensorboard;
    double log_seconds;
    int64_t log_steps; // > 0: a progress line every so many steps instead
} tr_settings;

#endif

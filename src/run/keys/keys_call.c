// What only the caller of a run says: no run file has these keys.
#include "run/keys/keys.h"

static const tr_key keys[] = {
    {.path = "resume",
     .types = TR_KEY_TEXT,
     .status = TR_KEY_OF_CALL,
     .fallback = "\"auto\"",
     .doc = "\"auto\": from the newest checkpoint in the out folder, if there is one; "
            "\"never\"; or a folder: a checkpoint, an out folder, whose latest "
            "checkpoint is meant, or one that DeepSpeed saved"},
    {.path = "base",
     .types = TR_KEY_TEXT,
     .status = TR_KEY_OF_CALL,
     .doc = "of a model that is a folder with an adapter: where its base is, in place "
            "of where the adapter says"},
    {.path = "ranks",
     .types = TR_KEY_INT,
     .status = TR_KEY_OF_CALL,
     .min = 1,
     .max = TR_KEY_COUNT_MAX,
     .doc = "to plan for; left out: those there are"},
    {.path = "plan_only",
     SETTING(plan_only),
     .types = TR_KEY_BOOL,
     .status = TR_KEY_OF_CALL,
     .fallback = "false",
     .doc = "no weights and no data are needed: the data may be missing"},
    {.path = "data_only",
     .types = TR_KEY_BOOL,
     .status = TR_KEY_OF_CALL,
     .fallback = "false",
     .doc =
         "only model and data are resolved, for those who read samples: no batch, no "
         "optimizer, no plan"},
    {.path = "choose_device",
     SETTING(choose_device),
     .types = TR_KEY_BOOL,
     .status = TR_KEY_OF_CALL,
     .fallback = "false",
     .doc = "where \"device\" is open, the first GPU that can train the run computes; "
            "false: the CPU"},
    {.path = "computes_here",
     SETTING(computes_here),
     .types = TR_KEY_BOOL,
     .status = TR_KEY_OF_CALL,
     .fallback = "false",
     .doc = "the run is going to compute on this machine: a \"device\" that is named "
            "must be there"},
    {.path = "trace",
     .types = TR_KEY_TEXT,
     .status = TR_KEY_OF_CALL,
     .doc = "file for the timeline of a step, which ui.perfetto.dev shows"},
    {.path = "trace_step",
     SETTING(trace_step),
     .types = TR_KEY_INT,
     .status = TR_KEY_OF_CALL,
     .min = 1,
     .max = TR_KEY_STEPS_MAX,
     .doc = "which step of this process is traced, from 1; left out: the second, or "
            "the only one"},
};

const tr_key_table tr__keys_call = {.keys = keys, .count = sizeof keys / sizeof *keys};

// The places of a unit's program, as faults name them.
#include "plan/proof/check.h"

const char *tr__check_place_name(tr_place place) {
    static const char *const names[TR_PLACE_COUNT] = {
        [TR_PLACE_NONE] = "nowhere",
        [TR_PLACE_PARAM] = "the parameters",
        [TR_PLACE_PARAM_GRAD] = "the gradients",
        [TR_PLACE_DATA] = "the data",
        [TR_PLACE_INPUT] = "the input",
        [TR_PLACE_OUTPUT] = "the output",
        [TR_PLACE_INPUT_GRAD] = "the input's gradient",
        [TR_PLACE_OUTPUT_GRAD] = "the output's gradient",
        [TR_PLACE_SAVED] = "the saved",
        [TR_PLACE_HELD] = "the held",
        [TR_PLACE_WAVE] = "the wave tensors",
        [TR_PLACE_WAVE_GRAD] = "the wave tensors' gradients",
        [TR_PLACE_CARRIED] = "what pieces carry",
        [TR_PLACE_TEMP] = "the temporaries",
        [TR_PLACE_SUMS] = "the sums",
        [TR_PLACE_STATE] = "the states",
        [TR_PLACE_LOGITS] = "the logits",
        [TR_PLACE_CACHE] = "the cache",
        [TR_PLACE_PACKED] = "the packed parameters",
        [TR_PLACE_PACKED_BACKWARD] = "the backward's packed parameters",
        [TR_PLACE_FIRST_BAD] = "what was first not finite",
    };
    return names[place];
}

// Where a plan takes attention from (tr_plan_request.attention), as run files call it.
#ifndef TR_BACKEND_ATTENTION_H
#define TR_BACKEND_ATTENTION_H

// The backend's own kernels, then the versions of a library for which it is known in
// how much memory they work, from the first to the last of them.
enum { TR_ATTENTION_FIRST = 919, TR_ATTENTION_LAST = 928 };
#define TR_ATTENTION_NAMES                                                             \
    "own", "cudnn-9.19", "cudnn-9.20", "cudnn-9.21", "cudnn-9.22", "cudnn-9.23",       \
        "cudnn-9.24", "cudnn-9.25", "cudnn-9.26", "cudnn-9.27", "cudnn-9.28"

const char *tr__attention_name(int version); // "own" for -1, "cudnn-9.19" for 919
// 0: there is none of that name.
int tr__attention_find(const char *name);

#endif

// What is running over slices of the head, row by row. For kernels on GPUs, too.
#ifndef TR_OPS_NN_LINEAR_CROSS_ENTROPY_SLICE_RUNNING_H
#define TR_OPS_NN_LINEAR_CROSS_ENTROPY_SLICE_RUNNING_H

// Elements of a row of `running` and of `best`.
enum { RUNNING_LSE, RUNNING_PICKED, RUNNING };
enum { BEST_LOGIT, BEST_IS_TARGET, BEST };

#endif

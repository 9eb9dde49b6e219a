// All of the library that a program needs to train models and to ask them. Whoever
// writes ops, models in C or planners of their own includes tranche/extend/*.h, too,
// which may change with every version.
#ifndef TRANCHE_H
#define TRANCHE_H

#include <tranche/check.h>
#include <tranche/checkpoint.h>
#include <tranche/comm.h>
#include <tranche/data.h>
#include <tranche/engine.h>
#include <tranche/gguf.h>
#include <tranche/model.h>
#include <tranche/plan.h>
#include <tranche/run.h>
#include <tranche/sample.h>
#include <tranche/status.h>
#include <tranche/types.h>
#include <tranche/version.h>

#endif

#ifndef TR_BACKEND_CPU_BACKEND_H
#define TR_BACKEND_CPU_BACKEND_H

#include "backend/backend.h"

extern const tr_backend tr__cpu_backend;

#endif

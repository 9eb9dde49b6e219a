// This process alone.
#ifndef TR_COMM_SELF_H
#define TR_COMM_SELF_H

#include <tranche/comm.h>

tr_status tr__self_open(tr_comm **out, tr_error *err);

#endif

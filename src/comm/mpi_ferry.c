#include "comm/mpi_ferry.h"

static tr_status advance_slice(tr_mpi_ferry *f, bool *moved, tr_error *err) {
    bool over = false;
    tr_status status = tr__mover_advance(&f->mover, moved, &over, err);
    if (status == TR_OK && over) {
        tr__ferrying_moved(&f->of);
        f->moving = false;
        *moved = true;
    }
    return status;
}

static tr_status begin_slice(tr_mpi_ferry *f, bool *moved, tr_error *err) {
    bool there = false;
    tr_status status = tr__ferrying_look_in(&f->of, &there, err);
    if (status == TR_OK && there) {
        tr_task slice = tr__ferrying_slice(&f->of);
        f->moving = *moved = true;
        status = tr__mover_begin(&f->mover, &slice, err);
    }
    return status;
}

tr_status tr__ferry_begin(tr_mpi_ferry *f, const tr_task *task, tr_error *err) {
    tr_mpi_mover *mover = &f->mover;
    f->ferries = task->op.away;
    f->moving = false;
    if (!f->ferries) {
        return tr__mover_begin(mover, task, err);
    }
    tr_status status = tr__mover_join(mover, &task->op.group, err);
    return status == TR_OK ? tr__ferrying_begin(&f->of, mover->base, task,
                                                mover->group.count, mover->member, err)
                           : status;
}

tr_status tr__ferry_advance(tr_mpi_ferry *f, bool *moved, bool *finished,
                            tr_error *err) {
    if (!f->ferries) {
        return tr__mover_advance(&f->mover, moved, finished, err);
    }
    *moved = *finished = false;
    if (f->moving) {
        return advance_slice(f, moved, err);
    }
    return f->of.moved < f->of.slices ? begin_slice(f, moved, err)
                                      : tr__ferrying_look_out(&f->of, finished, err);
}

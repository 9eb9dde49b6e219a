#include "comm/add.h"
#include "comm/stages.h"

#include <string.h>

int tr__stage_member(const tr_stage *stage, int number) {
    int members = stage->group.count;
    return (number % members + members) % members;
}

int tr__stage_rank(const tr_stage *stage, int number) {
    return stage->group.first + stage->group.stride * tr__stage_member(stage, number);
}

// This rank's own part, in bytes.
static void own_part(const tr_stage *stage, int64_t *first, int64_t *bytes) {
    int64_t size = (int64_t)tr__comm_type_bytes(stage->task.op.type);
    tr__task_part(&stage->task, stage->member, first, bytes);
    *first *= size;
    *bytes *= size;
}

void tr__stage_put_own(const tr_stage *stage) {
    const tr_comm_op *op = &stage->task.op;
    int64_t first, bytes;
    own_part(stage, &first, &bytes);
    bool gathers = op->kind == TR_COMM_GATHER;
    char *to = (char *)op->recv + (gathers ? first : 0);
    if (!op->send || op->send == to || bytes == 0 ||
        !(gathers || stage->group.count == 1)) {
        return;
    }
    if (!gathers && op->add) {
        tr__add(op->type, to, op->send, bytes / (int64_t)tr__comm_type_bytes(op->type));
    } else {
        memcpy(to, op->send, (size_t)bytes);
    }
}

void tr__stage_add(const tr_stage *stage, bool first, const void *from, int64_t offset,
                   int64_t bytes) {
    const tr_comm_op *op = &stage->task.op;
    int64_t begin, part, count = bytes / (int64_t)tr__comm_type_bytes(op->type);
    own_part(stage, &begin, &part);
    const char *own = (const char *)op->send + begin + offset;
    char *to = (char *)op->recv + offset;
    if (first) {
        tr__add_first(op->type, to, own, from, op->add, count);
    } else {
        tr__add(op->type, to, from, count);
    }
}

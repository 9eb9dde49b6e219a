// Lists of bytes: what the rule of a step has touched, what its payload names.
#include "base/memory.h"
#include "plan/proof/proof.h"

void tr__touched_add(tr_proof *p, tr_byte_list *list, tr_bytes bytes) {
    if (bytes.buffer < 0 || bytes.first >= bytes.end) {
        return;
    }
    if (!tr__grow((void **)&list->items, &list->capacity, list->count + 1,
                  sizeof *list->items)) {
        tr__proof_no_memory(p);
        return;
    }
    list->items[list->count++] = bytes;
}

void tr__payload_begin(tr_proof *p) {
    p->touched[0].count = p->touched[1].count = 0;
}

void tr__payload_touch(tr_proof *p, tr_bytes bytes, bool writes) {
    tr__touched_add(p, &p->touched[writes], bytes);
}

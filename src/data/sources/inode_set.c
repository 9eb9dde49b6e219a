#include "data/sources/inode_set.h"

#include "base/hash.h"
#include "base/memory.h"

#include <stdbool.h>

struct tr_inode_slot {
    tr_inode inode;
    bool used;
};

// The slot that holds `inode`, or the free one where it belongs.
static struct tr_inode_slot *find(const tr_inode_set *set, tr_inode inode) {
    size_t mask = set->capacity - 1;
    size_t at = (size_t)tr__hash(&inode, sizeof inode) & mask;
    while (set->slot[at].used && (set->slot[at].inode.device != inode.device ||
                                  set->slot[at].inode.inode != inode.inode)) {
        at = (at + 1) & mask;
    }
    return &set->slot[at];
}

static bool make_room(tr_inode_set *set) {
    if (set->count * 2 < set->capacity) {
        return true;
    }
    tr_inode_set larger = {.capacity = set->capacity ? set->capacity * 2 : 64};
    larger.slot = tr__calloc(larger.capacity, sizeof *larger.slot);
    if (!larger.slot) {
        return false;
    }
    for (size_t i = 0; i < set->capacity; i++) {
        if (set->slot[i].used) {
            *find(&larger, set->slot[i].inode) = set->slot[i];
        }
    }
    larger.count = set->count;
    tr__free(set->slot);
    *set = larger;
    return true;
}

tr_inode_added tr__inode_set_add(tr_inode_set *set, tr_inode inode) {
    if (!make_room(set)) {
        return TR_INODE_NO_MEMORY;
    }
    struct tr_inode_slot *slot = find(set, inode);
    if (slot->used) {
        return TR_INODE_KNOWN;
    }
    *slot = (struct tr_inode_slot){inode, true};
    set->count++;
    return TR_INODE_NEW;
}

void tr__inode_set_clear(tr_inode_set *set) {
    tr__free(set->slot);
    *set = (tr_inode_set){0};
}

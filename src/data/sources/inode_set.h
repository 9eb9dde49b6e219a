// A set of files by identity (device and inode), to take each once however linked.
#ifndef TR_DATA_SOURCES_INODE_SET_H
#define TR_DATA_SOURCES_INODE_SET_H

#include <stddef.h>
#include <stdint.h>

typedef struct tr_inode {
    uint64_t device, inode;
} tr_inode;

typedef struct tr_inode_set { // zero-initialized: empty
    struct tr_inode_slot *slot;
    size_t count, capacity; // capacity: 0 or a power of two
} tr_inode_set;

typedef enum tr_inode_added {
    TR_INODE_NEW,
    TR_INODE_KNOWN,
    TR_INODE_NO_MEMORY
} tr_inode_added;

tr_inode_added tr__inode_set_add(tr_inode_set *set, tr_inode inode);
void tr__inode_set_clear(tr_inode_set *set);

#endif

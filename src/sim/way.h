// Ways on which bytes move.
#ifndef TR_SIM_WAY_H
#define TR_SIM_WAY_H

// X(name, its key)
#define TR_WAY_LIST(X)                                                                 \
    X(INSIDE, "link.inside")                                                           \
    X(BETWEEN, "link.between")                                                         \
    X(TO_DEVICE, "copy.to_device")                                                     \
    X(TO_HOST, "copy.to_host")                                                         \
    X(NVME_READ, "nvme.read")                                                          \
    X(NVME_WRITE, "nvme.write")

typedef enum tr_way {
#define TR_WAY_ENUM(name, key) TR_WAY_##name,
    TR_WAY_LIST(TR_WAY_ENUM)
#undef TR_WAY_ENUM
        TR_WAYS
} tr_way;

const char *tr__way_key(tr_way way); // "link.inside"

#endif

#include "files/deepspeed/inside.h"

tr_status tr__ds_unknown(const tr_ds_folder *folder, const char *why, tr_error *err) {
    return tr_fail(err, TR_IO,
                   "%.600s: DeepSpeed saved this folder, and %.400s. Those of ZeRO 0 "
                   "to 3 are read whose model is whole on each rank",
                   folder->path, why);
}

// Names of the public enumerations.
#include <tranche/extend/plan.h>

const char *tr_ledger_name(tr_ledger_category category) {
    static const char *const names[] = {
#define TR_LEDGER_NAME(name) #name,
        TR_LEDGER_LIST(TR_LEDGER_NAME)
#undef TR_LEDGER_NAME
    };
    return (unsigned)category < TR_LEDGER_COUNT ? names[category] : "";
}

const char *tr_space_name(tr_space space) {
    static const char *const names[] = {"device", "host", "nvme"};
    return (unsigned)space < TR_SPACES ? names[space] : "";
}

const char *tr_recompute_name(tr_recompute_class one) {
    switch (one) {
    case TR_RECOMPUTE_NORM:
        return "norm";
    case TR_RECOMPUTE_ACTIVATION:
        return "activation";
    case TR_RECOMPUTE_ATTENTION:
        return "attention";
    case TR_RECOMPUTE_RESIDUAL:
        return "residual";
    case TR_RECOMPUTE_PRE_ACTIVATION:
        return "pre_activation";
    case TR_RECOMPUTE_PRODUCT:
        return "product";
    default:
        return "";
    }
}

"""How the peers report: one JSON object on one line."""
import json
import resource
import statistics

import torch


def peak_bytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def report(work, seconds, unit="tokens", warm=1, **more):
    """work: units in one step; seconds: of every step. The first `warm` steps, which touch memory for the first
    time, are left out of the median."""
    counted = seconds[warm:] or seconds
    rate = work / statistics.median(counted)
    print(json.dumps({"torch": torch.__version__, "threads": torch.get_num_threads(),
                      "steps": len(seconds), f"{unit}_per_second": round(rate, 2),
                      "seconds_per_step": round(statistics.median(counted), 5),
                      "peak_bytes": peak_bytes(), **more}))

"""How far two trainings of one start are apart: distance.py START A B (safetensors), the
largest over the trained tensors of |A - B| / |A - START|, L2 norms."""
import sys

import numpy as np
from safetensors.numpy import load_file


def main():
    start, a, b = (load_file(path) for path in sys.argv[1:])
    kept = ("running_mean", "running_var", "num_batches_tracked")  # not trained
    names = [name for name in start if not name.endswith(kept)]
    print("%.1e" % max(np.linalg.norm(a[n] - b[n]) / np.linalg.norm(a[n] - start[n])
                       for n in names))


if __name__ == "__main__":
    main()

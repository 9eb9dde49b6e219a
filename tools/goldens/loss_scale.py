#!/usr/bin/env python3
"""Writes tests/data/loss_scale.txt: what DeepSpeed's DynamicLossScaler makes of
twelve scripted patterns of overflow.

A line holds a name, the first scale, the window, the smallest scale, the hysteresis,
whether it is consecutive (0, 1), the steps ('.': good, '!': overflow), and the scale
after each, as its power of two; "end" where DeepSpeed raises.

    python3 tools/goldens/loss_scale.py tests/data/loss_scale.txt
"""

import math
import pathlib
import random
import sys

import deepspeed.runtime.fp16.loss_scaler as loss_scaler


class Alone:
    @staticmethod
    def get_rank():
        return 0


def drawn(seed, count, share):
    draw = random.Random(seed)
    return "".join("!" if draw.random() < share else "." for _ in range(count))


# name, power of the first scale, window, power of the smallest, hysteresis, consecutive
CASES = [
    ("defaults", 16, 1000, 0, 2, False, "!!!" + "." * 40),
    ("growth", 4, 3, 0, 2, False, "." * 30),
    ("falls", 8, 5, 0, 1, False, "!" * 9),
    ("falls_with_hysteresis", 6, 5, 0, 3, False, "!" * 10),
    ("floor_above_one", 5, 4, 3, 2, False, "!!!!!"),
    ("starts_below_floor", 0, 4, 1, 1, False, "!!"),
    ("rises_past_floor", 0, 2, 2, 2, False, "......!.!!!"),
    ("refilled_by_doubling", 4, 2, 0, 2, False, "!...!...!!.....!"),
    ("refilled_by_good_steps", 6, 4, 0, 3, True, "!!.!!.!!!.....!!!!...."),
    ("now_and_then", 10, 4, 0, 2, False, drawn(1, 60, 0.12)),
    ("often_consecutive", 12, 3, 0, 2, True, drawn(2, 60, 0.35)),
    ("window_of_one", 3, 1, 0, 2, False, drawn(3, 40, 0.25)),
]


def trajectory(first, window, least, hysteresis, consecutive, steps):
    scaler = loss_scaler.DynamicLossScaler(init_scale=2.0**first, scale_window=window,
                                           min_scale=2.0**least,
                                           delayed_shift=hysteresis,
                                           consecutive_hysteresis=consecutive)
    for step in steps:
        try:
            scaler.update_scale(step == "!")
        except Exception:  # it has no class of its own
            yield "end"
            return
        yield str(int(math.log2(scaler.cur_scale)))


def main():
    loss_scaler.dist = Alone
    loss_scaler.logger.disabled = True
    lines = []
    for name, first, window, least, hysteresis, consecutive, steps in CASES:
        scales = trajectory(first, window, least, hysteresis, consecutive, steps)
        lines.append(f"{name} {first} {window} {least} {hysteresis} {int(consecutive)} "
                     f"{steps} {','.join(scales)}\n")
    pathlib.Path(sys.argv[1]).write_text("".join(lines))


if __name__ == "__main__":
    main()

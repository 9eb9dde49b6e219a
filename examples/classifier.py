"""The run of classifier.json from Python, on samples made here: its ledger, a callback
that ends it early, and the classes of some samples.

    python examples/classifier.py
"""

import random

import tranche

FEATURES, CLASSES = 100, 10


def samples(count: int, seed: int) -> tuple[list[list[float]], list[int]]:
    """Noise, with ten features around 1.5 that tell the class."""
    draw = random.Random(seed)
    rows = [[draw.gauss(0, 1) for _ in range(FEATURES)] for _ in range(count)]
    labels = [draw.randrange(CLASSES) for _ in range(count)]
    for row, label in zip(rows, labels):
        for f in range(10 * label, 10 * label + 10):
            row[f] += 1.5
    return rows, labels


def enough(result: tranche.StepResult) -> None:
    if result.loss < 0.05:
        raise tranche.StopTraining


config = {
    "model": {"model_type": "mlp", "layer_sizes": [FEATURES, 500, CLASSES]},
    "epochs": 20,
    "seed": 1,
    "out": "out/classifier-python",
    "train_batch_size": 64,
    "evaluation": {"every": 16},
    "optimizer": {"type": "Adam", "params": {"lr": 1e-3}},
}
settings = {"resume": "never"}
data, held_out = samples(1000, seed=1), samples(200, seed=2)

for row in tranche.Run(config, train=data, settings=settings).plan().ledger:
    print(f"{row.space:8}{row.category:12}{row.bytes:10}")

engine = tranche.train(
    config, train=data, validation=held_out, callbacks=[enough], settings=settings
)
rows, labels = held_out
logits = engine.predict(rows).tolist()
classes = [max(range(CLASSES), key=scores.__getitem__) for scores in logits]
right = sum(a == b for a, b in zip(classes, labels))
print(f"step {engine.steps_done}: {right} of {len(labels)} right")

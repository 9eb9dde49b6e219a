"""The small classifier in eager PyTorch: 100-500-10, Adam, batches of 64, random samples,
five epochs. Measured as a whole process: time the command.

    torch_mlp.py [--epochs 5]
"""
import argparse
import time

import torch
import torch.nn.functional as F

import measure


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--epochs", type=int, default=5)
    args = options.parse_args()

    torch.manual_seed(1)
    samples, batch = 1000, 64
    x = torch.randn(samples, 100)
    y = torch.randint(10, (samples,))
    model = torch.nn.Sequential(torch.nn.Linear(100, 500), torch.nn.ReLU(),
                                torch.nn.Linear(500, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    seconds = []
    for _ in range(args.epochs):
        begin = time.perf_counter()
        for rows in torch.randperm(samples).split(batch):
            loss = F.cross_entropy(model(x[rows]), y[rows])
            loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        seconds.append(time.perf_counter() - begin)
    measure.report(samples, seconds, "samples", loss=round(float(loss.detach()), 4))


if __name__ == "__main__":
    main()

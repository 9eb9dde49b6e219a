"""A program for DeepSpeed with another import: a classifier without ZeRO.

    python examples/python/classifier_plain.py
"""

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

import tranche as deepspeed

config = {
    "train_batch_size": 64,
    "optimizer": {"type": "Adam", "params": {"lr": 1e-3}},
}


class Classifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(100, 500)
        self.relu = nn.ReLU()
        self.fc2 = nn.Linear(500, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc2(self.relu(self.fc1(x)))


torch.manual_seed(0)
features, labels = torch.randn(1000, 100), torch.randint(0, 10, (1000,))
model = Classifier()
loader = DataLoader(TensorDataset(features, labels), batch_size=64, shuffle=True)
engine, optimizer, _, _ = deepspeed.initialize(
    model=model, model_parameters=model.parameters(), config=config
)
criterion = nn.CrossEntropyLoss()
for epoch in range(5):
    for x, y in loader:
        x, y = x.to(engine.device), y.to(engine.device)
        loss = criterion(engine(x), y)
        engine.backward(loss)
        engine.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")

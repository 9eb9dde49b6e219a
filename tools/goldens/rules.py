"""What the golden runs have in common: DeepSpeed's schedulers, its rule for clipping, and
ten updates of a PyTorch model over whole effective batches, one sample at a time.

Everything is computed in float64 from float32 weights, so that the difference to a run
in float32 is that run's own rounding.
"""
import math

import deepspeed.runtime.lr_schedules as lr_schedules
import timm.optim
import torch
import torch.nn.functional as F
import torch_optimizer

NO_TARGET = -100


def make_scheduler(optimizer, settings):
    """DeepSpeed's, for the run file's "scheduler" object; it steps after each update."""
    if settings is None:
        return None
    lr_schedules.logger.setLevel("ERROR")
    return getattr(lr_schedules, settings["type"])(optimizer, **settings["params"])


def clip(parameters, limit):
    """DeepSpeed's clipping; returns the norm before it."""
    norm = math.sqrt(sum(float(p.grad.pow(2).sum()) for p in parameters))
    if limit > 0:
        divisor = max(1.0, (norm + 1e-6) / limit)
        for p in parameters:
            p.grad.div_(divisor)
    return norm


def no_decay(name, parameter):
    """Biases and norms: everything that is a vector."""
    return parameter.dim() < 2


def make_optimizer(model, settings):
    """An optimizer of PyTorch, timm or torch_optimizer for the run file's "optimizer" object."""
    p = dict(settings["params"])
    decay = p.pop("weight_decay", 0.0)
    named = [(n, q) for n, q in model.named_parameters() if q.requires_grad]
    groups = [{"params": [q for _, q in named], "weight_decay": decay}]
    if "groups" in settings:
        groups = [
            {"params": [q for n, q in named if not no_decay(n, q)],
             "weight_decay": decay},
            {"params": [q for n, q in named if no_decay(n, q)], "weight_decay": 0.0},
        ]
    if settings["type"] == "SGD":
        return torch.optim.SGD(groups, **p)
    if settings["type"] == "LARS":
        return make_lars(groups, p)
    p["betas"] = tuple(p.get("betas", (0.9, 0.999)))
    if settings["type"] == "Lion":
        return timm.optim.Lion(groups, foreach=False, **p)
    p.setdefault("eps", 1e-8)
    if settings["type"] == "Lamb":
        return make_lamb(groups, p)
    decoupled = settings["type"] == "AdamW" or p.pop("adam_w_mode", True)
    return (torch.optim.AdamW if decoupled else torch.optim.Adam)(groups, **p)


def make_lamb(groups, p):
    """DeepSpeed's form, whose bounds must be too wide to bind, and the paper's."""
    if p.pop("form", "deepspeed") == "paper":
        return timm.optim.Lamb(groups, max_grad_norm=None, always_adapt=True,
                               foreach=False, **p)
    assert p.pop("min_coeff") == 0 and p.pop("max_coeff") > 1e6
    return torch_optimizer.Lamb(groups, debias=True, clamp_value=math.inf, **p)


def make_lars(groups, p):
    """timm's leaves alone what has no decay, unless it is to adapt always."""
    excludes = p.pop("exclude_1d", True)
    assert not excludes or len(groups) == 2
    return timm.optim.Lars(groups, trust_coeff=p.pop("trust_coefficient"),
                           always_adapt=not excludes, foreach=False, **p)


def backward(model, logits_of, batch):
    """The mean loss over a batch's targets, times their count, and the count; the gradients
    of the mean are in the parameters."""
    count = sum(int((y != NO_TARGET).sum()) for _, y in batch)
    model.zero_grad()
    total = 0.0
    for x, y in batch:
        logits = logits_of(model, x)
        loss = F.cross_entropy(logits.reshape(-1, logits.shape[-1]), y.reshape(-1),
                               ignore_index=NO_TARGET, reduction="sum")
        (loss / count).backward()
        total += float(loss.detach())
    return total, count


def train(model, logits_of, samples, run):
    """run["steps"] updates. `samples` is a list of (input, targets); step s takes the
    next train_batch_size of them in order, and an epoch's last batch is short. Returns
    one {"loss", "lr", "grad_norm", "count"} per update, and the optimizer's states as
    {"<parameter>.<state>": tensor}."""
    optimizer = make_optimizer(model, run["optimizer"])
    scheduler = make_scheduler(optimizer, run.get("scheduler"))
    size = run["train_batch_size"]
    history = []
    at = 0
    for _ in range(run["steps"]):
        batch = samples[at:at + size]
        at = at + size if at + size < len(samples) else 0
        total, count = backward(model, logits_of, batch)
        lr = float(optimizer.param_groups[0]["lr"])
        trained = [p for p in model.parameters() if p.requires_grad]
        norm = clip(trained, run["gradient_clipping"])
        optimizer.step()
        if scheduler:
            scheduler.step()
        history.append({"loss": total / count, "lr": lr, "grad_norm": norm,
                        "count": count})
    return history, states_of(model, optimizer)


def states_of(model, optimizer):
    """{"<parameter>.<state>": tensor} of all that is as large as its parameter. timm's
    LARS has momentum without the rate, which is a constant; the paper's has it inside."""
    lars = isinstance(optimizer, timm.optim.Lars)
    scale = optimizer.param_groups[0]["lr"] if lars else 1
    return {f"{name}.{state}": value * scale
            for name, p in model.named_parameters()
            for state, value in optimizer.state[p].items()
            if torch.is_tensor(value) and value.shape == p.shape}


def distances(initial, wanted, got, skip=None):
    """Per tensor: L2 distance from wanted to got over the distance that wanted moved.
    `skip(name, tensor)` returns the tensor without what does not count."""
    result = {}
    for name, end in wanted.items():
        parts = [t[name].detach().double() for t in (initial, wanted, got)]
        if skip:
            parts = [skip(name, t) for t in parts]
        moved = (parts[1] - parts[0]).norm()
        error = (parts[2] - parts[1]).norm()
        result[name] = float(error / moved) if moved > 0 else float(error)
    return result

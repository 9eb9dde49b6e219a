"""What DeepSpeed's engine tells of itself, and which of its calls ours has not."""

from __future__ import annotations

from typing import Any

from tranche import ranks
from tranche.module.config import Batch
from tranche.run import Config, Run

_PLAN = "the plan decides it: docs/run-file.md has the keys of execution"
# Calls of DeepSpeed's engine that this one has not, and what to do.
ABSENT = {
    "allreduce_gradients": "step() exchanges gradients",
    "buffered_allreduce_fallback": "step() exchanges gradients",
    "clip_fp32_gradients": "step() clips: set gradient_clipping",
    "coalesce_grad_reduction": "step() exchanges gradients",
    "compile": "a plan is compiled already: leave the call out",
    "deepspeed_io": "make a torch.utils.data.DataLoader, or pass training_data",
    "destroy_moe": "mixtures of experts are not supported",
    "empty_partition_cache": _PLAN,
    "get_mom": "optimizer.param_groups has the numbers of the caller's optimizer",
    "get_wall_clock_timers": "engine.plan tells what a step does",
    "load_module_state_dict": "load it into the module before tranche.initialize",
    "offload_states": "set zero_optimization.offload_optimizer, or call destroy()",
    "random_ltd_initialize": "random layers are not supported",
    "register_compile_pass": "a plan is compiled already: leave the call out",
    "reload_states": "set zero_optimization.offload_optimizer",
    "scale": "backward() scales the loss",
    "set_custom_curriculum_learning_schedule": "order the samples in the DataLoader",
    "set_data_post_process_func": "change batches before they come to the engine",
    "get_sequence_parallel_group": "sequences are not split over ranks",
}


class Queries:
    """Answers from the config."""

    batch: Batch
    data_ranks: int
    optimizer: Any
    skipped: bool
    _config: Config

    def _key(self, key: str, said: bool = False) -> Any:
        """said: None where the config leaves it to the default."""
        run = Run(self._config)
        try:
            default = str(run.origin(key)).startswith("default")
            return None if said and default else run.get(key)
        finally:
            run.close()

    def train_batch_size(self) -> int:
        return self.batch.train

    def train_micro_batch_size_per_gpu(self) -> int:
        return self.batch.micro

    def gradient_accumulation_steps(self) -> int:
        return self.batch.accumulation

    def get_batch_info(self) -> tuple[int, int, int]:
        return self.batch.train, self.batch.micro, self.batch.accumulation

    def get_lr(self) -> list[float]:
        return [float(group["lr"]) for group in self.optimizer.param_groups]

    def zero_optimization_stage(self) -> int:
        return int(self._key("zero_optimization.stage") or 0)

    def zero_optimization(self) -> bool:
        return self.zero_optimization_stage() > 0

    def zero_optimization_partition_gradients(self) -> bool:
        return self.zero_optimization_stage() >= 2

    def zero_optimization_partition_weights(self) -> bool:
        return self.zero_optimization_stage() >= 3

    def zero_cpu_offload(self) -> bool:
        key = "zero_optimization.offload_optimizer.device"
        return bool(self._key(key) == "cpu")

    def fp16_enabled(self) -> bool:
        return self._key("fp16.enabled") is True

    def bfloat16_enabled(self) -> bool:
        return self._key("bf16.enabled") is True

    def optimizer_name(self) -> Any:
        return self._key("optimizer.type")

    def scheduler_name(self) -> Any:
        return self._key("scheduler.type", said=True)

    def was_step_applied(self) -> bool:
        """Has the last step changed the weights?"""
        return not self.skipped

    def get_data_parallel_rank(self) -> int:
        # Neighbours share layers; then come the data ranks of a stage.
        parts = int(self._key("tensor_parallel.size") or 1)
        return ranks.rank() // parts % self.data_ranks

    @property
    def world_size(self) -> int:
        return ranks.count()

    @property
    def dp_world_size(self) -> int:
        return self.data_ranks

    @property
    def global_rank(self) -> int:
        return ranks.rank()

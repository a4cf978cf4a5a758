"""From a base model and files to a trained model in a folder."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
import transformers
from transformers.modeling_layers import GradientCheckpointingLayer

from gpu_evaluator.card import CARD_NAME, ModelCard, Role, read_card
from gpu_evaluator.training.tuning import batches
from gpu_evaluator.training.tuning.batches import Batch
from gpu_evaluator.training.tuning.checkpoints import Checkpoints, save_model
from gpu_evaluator.training.tuning.data import Data, build, fingerprint
from gpu_evaluator.training.tuning.loop import Loop, StepReport, TrainingError
from gpu_evaluator.training.tuning.objective import CausalLearner, Learner
from gpu_evaluator.training.tuning.plan import Plan, Turn
from gpu_evaluator.training.tuning.processes import Processes, shard
from gpu_evaluator.training.tuning.recipe import Objective, Recipe
from gpu_evaluator.training.tuning.store import TokenStore

HELD_OUT = "held_out.jsonl"
_ROLES: dict[Objective, Role] = {
    "next_token": "base",
    "masked_token": "base",
    "gate": "gate",
    "feedback": "feedback",
    "encoder": "encoder",
}


class Progress(Protocol):
    """Is told how far the work is; only the first process does."""

    def tokenized(self, texts: int) -> None: ...

    def begins(self, done: int, steps: int) -> None: ...

    def step(self, report: StepReport) -> None: ...


@dataclass(frozen=True, slots=True)
class Job:
    """`base`: a folder, or a name on the Hugging Face Hub. `every`: steps between two checkpoints."""

    base: str
    files: Sequence[Path]
    output: Path
    recipe: Recipe
    every: int


@dataclass(frozen=True, slots=True)
class Summary:
    """What was done. `sequences`: packs, or an encoder's programs; `room`: the part of the packs that is filled."""

    finished: bool
    steps: int
    sequences: int
    tokens: int
    room: float | None
    programs: int
    valid: int
    left_out: dict[str, int]
    toolchain: str | None
    loss_first: float | None = None
    loss_last: float | None = None
    held_out_sequences: int = 0
    held_out_loss: float | None = None
    held_out_accuracy: float | None = None


def base_objective(base: str) -> Objective:
    """How a model is pretrained: as the kind of model that it is. Raises `TrainingError`."""
    try:
        config = transformers.AutoConfig.from_pretrained(base)
    except (OSError, ValueError) as error:
        raise TrainingError(f"{base} is no model: {error}") from error
    names = " ".join(config.architectures or ())
    if "CausalLM" in names:
        return "next_token"
    if "MaskedLM" in names:
        return "masked_token"
    raise TrainingError(f"{base} is neither a causal nor a masked language model, but {names or 'nothing known'}")


def run(job: Job, processes: Processes, progress: Progress) -> Summary:
    """Train, or go on where the same job was interrupted.

    Raises `TrainingError`, `RecordError` (the files cannot be used), `EngineFault` (a label is not one token).
    """
    recipe, output = job.recipe, job.output
    if (output / CARD_NAME).exists():
        raise TrainingError(f"{output} holds a trained model already")
    tokenizer = _load(transformers.AutoTokenizer, job.base)
    work = output / "work"
    if processes.leads:
        source = fingerprint(job.files, tokenizer, recipe)
        _claim(work, {"base": job.base, "source": source, "recipe": asdict(recipe)})
        build(work / "data", source, job.files, tokenizer, recipe, output / HELD_OUT, progress.tokenized)
    processes.wait()
    data = Data(work / "data")
    plan = Plan(data.train, recipe)
    if not plan.steps:
        raise TrainingError("there is nothing to learn from: no program or document was left")
    learner = _learner(job, tokenizer, plan.longest)
    if recipe.recompute:
        learner.model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    layers = [module for module in learner.modules() if isinstance(module, GradientCheckpointingLayer)]
    shard(learner, layers, processes, recipe.precision)  # before the move, so that no device holds all weights at once
    learner.to(processes.device).train()
    loop = Loop(learner, plan, recipe, processes, _batch_maker(data.train, plan, recipe, tokenizer))
    checkpoints = Checkpoints(work / "checkpoints", processes)
    done = checkpoints.restore(learner, loop.optimizer)
    progress.begins(done, plan.steps)
    finished = loop.train(done, checkpoints, output / "log.jsonl", job.every, progress.step)
    measured: dict[str, Any] = {}
    if finished:
        held_out = Plan(data.held_out, recipe)
        if held_out.steps:
            maker = _batch_maker(data.held_out, held_out, recipe, tokenizer)
            loss, accuracy = loop.measure(held_out, maker)
            measured = {"held_out_loss": loss, "held_out_accuracy": accuracy}
        measured["held_out_sequences"] = held_out.units
        if plan.is_packed:  # it ends with what it learned, and the base model's sampling is not its own
            learner.model.generation_config = transformers.GenerationConfig(eos_token_id=tokenizer.eos_token_id)
        save_model(learner, output, processes, halved=recipe.precision == "bf16")
        if processes.leads:
            tokenizer.save_pretrained(output)
            _card(job, data, plan.steps).write(output)  # last: it makes the folder a finished one
    summary = _summary(data, plan, output / "log.jsonl", finished, measured)
    if finished and processes.leads:
        shutil.rmtree(work)
    return summary


def _learner(job: Job, tokenizer: Any, longest: int) -> Learner:
    recipe = job.recipe
    torch.manual_seed(recipe.seed)  # a classifier's last layer is new
    kinds = {"masked_token": "AutoModelForMaskedLM", "encoder": "AutoModelForSequenceClassification"}
    options: dict[str, Any] = {"dtype": torch.float32, "attn_implementation": recipe.attention}
    if recipe.objective == "encoder":
        options |= {"num_labels": 2, "id2label": {0: "invalid", 1: "valid"}, "label2id": {"invalid": 0, "valid": 1}}
    model = _load(getattr(transformers, kinds.get(recipe.objective, "AutoModelForCausalLM")), job.base, **options)
    if longest > model.config.max_position_embeddings:
        limit = model.config.max_position_embeddings
        raise TrainingError(f"{job.base} reads {limit} tokens at most, and a sequence has {longest}: set --length")
    return Learner(model) if recipe.objective in kinds else CausalLearner(model)


def _batch_maker(store: TokenStore, plan: Plan, recipe: Recipe, tokenizer: Any) -> Callable[[int, Turn], Batch]:
    if plan.is_packed:
        return lambda step, turn: batches.packed(store, turn.sequences)
    padding = tokenizer.pad_token_id or 0
    if recipe.objective == "encoder":
        return lambda step, turn: batches.classified(store, turn.sequences, padding)
    return lambda step, turn: batches.masked(
        store,
        turn.sequences,
        [int(plan.weights[number]) for number in turn.sequences],
        recipe,
        step,
        padding=padding,
        mask=tokenizer.mask_token_id,
        vocabulary=len(tokenizer),
    )


def _claim(work: Path, described: dict[str, Any]) -> None:
    """Make `work` the folder of this job. Raises `TrainingError` when it is another's."""
    path = work / "job.json"
    text = json.dumps(described, indent=2, sort_keys=True)
    if path.exists():
        if path.read_text(encoding="utf-8") != text:
            raise TrainingError(f"{work.parent} holds another training, with other settings, files or model; remove it")
        return
    work.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _card(job: Job, data: Data, steps: int) -> ModelCard:
    """A model that goes on from one that knew a Lean but reads no labels keeps it."""
    base = read_card(Path(job.base)) if Path(job.base).is_dir() else None
    return ModelCard(
        role=_ROLES[job.recipe.objective],
        toolchain=data.facts["toolchain"] or (base.toolchain if base else None),
        base=job.base,
        programs=data.facts["programs"],
        valid=data.facts["valid"],
        steps=steps,
        recipe=asdict(job.recipe),
        libraries={"torch": torch.__version__, "transformers": transformers.__version__},
    )


def _summary(data: Data, plan: Plan, log: Path, finished: bool, measured: dict[str, Any]) -> Summary:
    losses = [json.loads(line)["loss"] for line in log.read_text(encoding="utf-8").splitlines()]
    tokens = int(data.train.lengths.sum())
    return Summary(
        finished=finished,
        steps=len(losses),
        sequences=plan.units,
        tokens=tokens,
        room=tokens / plan.room if plan.is_packed else None,
        programs=data.facts["programs"],
        valid=data.facts["valid"],
        left_out=data.facts["left_out"],
        toolchain=data.facts["toolchain"],
        loss_first=losses[0] if losses else None,
        loss_last=losses[-1] if losses else None,
        **measured,
    )


def _load(kind: Any, base: str, **options: Any) -> Any:
    """Raises `TrainingError`."""
    try:
        return kind.from_pretrained(base, **options)
    except (OSError, ValueError, KeyError, ImportError) as error:
        raise TrainingError(f"{base} cannot be loaded: {error}") from error

"""What a trained model says of itself: `lean-reward.json` beside its weights.

The trainer writes it and the service reads it, so that a model is never served in another role or taken for one that
knows another Lean.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

CARD_NAME = "lean-reward.json"

Role = Literal["base", "gate", "feedback", "encoder"]


class CardError(Exception):
    """A card cannot be read, or speaks of another role; the message names the folder."""


class ModelCard(BaseModel):
    """`toolchain` is the Lean whose verdicts were learned; a model that only read source text has none."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    role: Role
    toolchain: str | None = None
    base: str = Field(description="The model that training started from.")
    programs: int = Field(0, description="Labelled programs that it was trained on.")
    valid: int = Field(0, description="So many of them were valid.")
    steps: int
    recipe: dict[str, Any] = Field(default_factory=dict, description="The settings of the training.")
    libraries: dict[str, str] = Field(default_factory=dict, description="What trained it, with versions.")

    def write(self, folder: Path) -> None:
        (folder / CARD_NAME).write_text(self.model_dump_json(indent=2) + "\n", encoding="utf-8")


def read_card(folder: Path) -> ModelCard | None:
    """The card of a model folder; None where it has none. Raises `CardError`."""
    path = folder / CARD_NAME
    try:
        return ModelCard.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        raise CardError(f"{path} is no model card: {error}") from error


def declared_toolchain(model: str, roles: tuple[Role, ...], default: str | None) -> str | None:
    """The Lean that a model was trained for: its card says so, else `default` (a setting).

    `model` may also be a name that is no folder. Raises `CardError` when the card speaks of another role.
    """
    card = read_card(Path(model).expanduser())
    if card is None:
        return default
    if card.role not in roles:
        raise CardError(f"{model} is a model of the role {card.role}, and not {' or '.join(roles)}")
    return card.toolchain or default

"""The questions that language models are asked: prompt files with a version, and text that can never be an instruction.

A prompt is a file of this package, `NAME.vN.md`. Whatever comes from a policy or a task is `Data`: it stands between
fences that carry a nonce made for each call, so that no text can close its own fence.
"""

from services.process.prompts.answers import Malformed, object_in
from services.process.prompts.question import Data, Question, load_prompt

__all__ = ["Data", "Malformed", "Question", "load_prompt", "object_in"]

"""Texts for continued pretraining."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpu_evaluator.training.records import RecordError
from gpu_evaluator.training.tuning.documents import find_files, read_documents


def test_a_folder_gives_its_lean_sources_and_documentation_without_hidden_folders(tmp_path: Path) -> None:
    for name in ("b/B.lean", "A.lean", "README.md", ".lake/packages/X.lean", "lakefile.toml"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    assert list(read_documents(find_files([tmp_path]))) == ["A.lean", "README.md", "b/B.lean"]


def test_json_lines_have_a_text_each_and_blank_ones_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "texts.jsonl"
    path.write_text('{"text": "a"}\n\n{"text": "  "}\n{"text": "\\ud800b"}\n')
    assert list(read_documents([path])) == ["a", "\ufffdb"]


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="no file and no folder"):
        find_files([tmp_path / "none"])
    with pytest.raises(RecordError, match=r"no \.lean or \.md files"):
        find_files([tmp_path])
    (tmp_path / "latin.lean").write_bytes(b"\xe9")
    with pytest.raises(RecordError, match=r"latin\.lean"):
        list(read_documents(find_files([tmp_path])))

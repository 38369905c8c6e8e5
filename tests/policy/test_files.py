"""Files and directories of policies."""

from __future__ import annotations

import pytest

from memlineage.errors import PolicyDocumentError
from memlineage.policy import load

RULE = "name: {}\naction: deny\n"


def test_files_and_directories_are_read_once_each_in_a_stable_order(tmp_path):
    (tmp_path / "b.yaml").write_text(RULE.format("b"))
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "c.yml").write_text(RULE.format("c"))
    (tmp_path / "a.json").write_text('{"name": "a", "action": "deny"}')
    (tmp_path / "notes.txt").write_text("not a policy")
    expected = ["a", "b", "c"]
    assert [document.rules[0].name for document in load([tmp_path, tmp_path / "b.yaml"])] == expected
    assert [document.rules[0].name for document in load(str(tmp_path))] == expected


def test_the_faults_of_all_files_come_together(tmp_path):
    (tmp_path / "a.yaml").write_text("name: a\naction: denny\n")
    (tmp_path / "b.json").write_text('{"name": "b",\n "action": }')
    (tmp_path / "c.yaml").write_bytes(b"name: \xff\n")
    with pytest.raises(PolicyDocumentError) as caught:
        load([tmp_path, tmp_path / "missing.yaml"])
    found = [(fault.source.rpartition("/")[2], fault.line, fault.column, fault.code) for fault in caught.value.faults]
    assert found == [
        ("a.yaml", 2, 9, "unknown_action"),
        ("b.json", 2, 12, "syntax"),
        ("c.yaml", 0, 0, "unreadable"),
        ("missing.yaml", 0, 0, "unreadable"),
    ]


def test_a_directory_without_policies_is_a_fault_not_an_empty_set(tmp_path):
    with pytest.raises(PolicyDocumentError, match=r"no \*\.yaml, \*\.yml or \*\.json file"):
        load([tmp_path])


def test_a_huge_file_is_refused_unread(tmp_path):
    (tmp_path / "a.yaml").write_bytes(b"# " + b"x" * 3_000_000)
    with pytest.raises(PolicyDocumentError, match="split it"):
        load([tmp_path / "a.yaml"])

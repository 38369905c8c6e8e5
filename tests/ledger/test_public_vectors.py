"""Public test data: proofs of transparency-dev/merkle, signatures of C2SP/wycheproof. Every case is run."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from memlineage.errors import LedgerError
from memlineage.ledger.signing import check_public, verify
from memlineage.ledger.tree import verify_consistency, verify_inclusion


def cases(folder: Path) -> dict[str, dict[str, Any]]:
    return {
        path.relative_to(folder).as_posix(): json.loads(path.read_text(encoding="utf-8"))
        for path in sorted(folder.rglob("*.json"))
    }


def hashes(case: dict[str, Any]) -> list[bytes]:
    return [base64.b64decode(text) for text in case["proof"] or []]


def inclusion_holds(case: dict[str, Any]) -> bool:
    leaf, root = (base64.b64decode(case[name]) for name in ("leafHash", "root"))
    try:
        verify_inclusion(leaf, case["leafIdx"], case["treeSize"], hashes(case), root)
    except LedgerError:
        return False
    return True


def consistency_holds(case: dict[str, Any]) -> bool:
    old, new = (base64.b64decode(case[name]) for name in ("root1", "root2"))
    try:
        verify_consistency(case["size1"], case["size2"], hashes(case), old, new)
    except LedgerError:
        return False
    return True


def test_inclusion_proofs_hold_exactly_where_they_must(external_data: Path) -> None:
    found = cases(external_data / "rfc6962" / "testdata" / "inclusion")
    assert len(found) == 98
    assert {name for name, case in found.items() if inclusion_holds(case) == case["wantErr"]} == set()


def test_consistency_proofs_hold_exactly_where_they_must(external_data: Path) -> None:
    found = cases(external_data / "rfc6962" / "testdata" / "consistency")
    assert len(found) == 98
    assert {name for name, case in found.items() if consistency_holds(case) == case["wantErr"]} == set()


def test_signatures_verify_exactly_where_they_must(external_data: Path) -> None:
    found = json.loads((external_data / "wycheproof" / "ed25519_test.json").read_text(encoding="utf-8"))
    wrong, run = [], 0
    for group in found["testGroups"]:
        public = bytes.fromhex(group["publicKey"]["pk"])
        check_public(public)
        for case in group["tests"]:
            run += 1
            holds = verify(public, bytes.fromhex(case["msg"]), bytes.fromhex(case["sig"]))
            if holds != (case["result"] == "valid"):
                wrong.append((case["tcId"], case["comment"]))
    assert (run, wrong) == (found["numberOfTests"], [])

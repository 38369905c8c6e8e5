"""Commands on the ledger: checkpoint, prove, rotate-key."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import orjson
import typer

from memlineage.cli.acts import UnitId
from memlineage.cli.answers import Answer, as_data
from memlineage.cli.command import command
from memlineage.cli.options import InScope, OnStore
from memlineage.cli.stores import named

if TYPE_CHECKING:
    from rich.console import RenderableType

    from memlineage.ledger.checkpoint import Checkpoint
    from memlineage.ledger.proof import Proof

__all__ = ["register"]

_PANEL = "Ledger"

Store = Annotated[Path | None, typer.Argument(metavar="DB", help="The memory, unless --db names it.")]
SigningKey = Annotated[
    Path | None,
    typer.Option("--signing-key", metavar="FILE", help="The key that signs (Ed25519, PEM); left out, DB.key."),
]


def checkpoint(
    at: OnStore,
    path: Store = None,
    *,
    witness: Annotated[
        Path | None,
        typer.Option("--witness", metavar="FILE", help="Add it to this file too; keep that on another machine."),
    ] = None,
    signing_key: SigningKey = None,
) -> Answer:
    """Sign what the ledger holds now. Nothing is signed that contradicts what was signed before."""
    with at.on(path).memory(signing_key=signing_key) as memory:
        made = memory.checkpoint(witness)
    data = {**as_data(made), "witness": witness}
    return Answer(data=data, show=lambda: _signed(made, witness))


def _signed(made: Checkpoint, witness: Path | None) -> Iterator[RenderableType]:
    from rich.text import Text

    from memlineage.cli.rendering import count_of, facts, words

    yield Text.assemble(("● ", "green"), "Signed ", (count_of(made.size, "event"), "bold"))
    yield facts(
        [
            ("root", words(made.root)),
            *(("key", words(key)) for key in made.keys),
            *([("witness", words(witness))] if witness is not None else []),
        ]
    )
    yield _note(made.note)
    if witness is None:
        yield words("Whoever can write the file can sign it again: keep this note elsewhere, or use --witness.", "dim")


def _note(note: str) -> RenderableType:
    """The note, each of its lines whole: it is made to be copied."""
    from memlineage.cli.rendering import block

    return block(f"\n{note}", "dim")


def prove(at: InScope, unit: UnitId, *, signing_key: SigningKey = None) -> Answer:
    """Prove that a unit was written and what it said; the JSON document is the proof, for anybody to check."""
    with at.memory_and_scope(signing_key=signing_key) as (memory, scope):
        proof = memory.prove(scope.get(named(scope, unit)))  # what the scope cannot see, it cannot prove
    return Answer(data=orjson.loads(proof.to_json()), show=lambda: _proven(proof))


def _proven(proof: Proof) -> Iterator[RenderableType]:
    from rich.text import Text

    from memlineage.cli.rendering import block, facts, when, words
    from memlineage.ledger.checkpoint import parse_tree_head
    from memlineage.ledger.notes import parse_note
    from memlineage.model.time import from_us

    said, note = orjson.loads(proof.data), parse_note(proof.note)
    yield Text.assemble(("● ", "green"), "Proven: ", words(f"{said['unit']}@{said['version']}", "cyan"))
    erased = Text("(erased; that it was written stands)", style="dim")
    yield facts(
        [
            ("said", erased if proof.content is None else block(proof.content, "bold")),
            ("written", words(when(from_us(said["ts_us"])))),
            ("event", words(f"{proof.index + 1} of {proof.size}, {len(proof.hashes)} hashes to the root")),
            ("root", words(parse_tree_head(note.text).root.hex())),
            *(("signed by", words(f"{line.name}, key {line.key_id.hex()}")) for line in note.signatures),
        ]
    )
    yield words("With --json this is a document that memlineage.verify_proof checks anywhere, without the file.", "dim")


def rotate_key(
    at: OnStore,
    path: Store = None,
    *,
    to: Annotated[
        Path | None,
        typer.Option(
            "--to", metavar="FILE", help="The new key, made if it is not there; left out, DB.key is replaced."
        ),
    ] = None,
    signing_key: SigningKey = None,
) -> Answer:
    """Put a new key into force; both keys sign the checkpoint that says so, and the old one nothing after it."""
    with at.on(path).memory(signing_key=signing_key) as memory:
        made = memory.rotate_key(to)
    return Answer(data=as_data(made), show=lambda: _rotated(made, to))


def _rotated(made: Checkpoint, to: Path | None) -> Iterator[RenderableType]:
    from rich.text import Text

    from memlineage.cli.rendering import facts, words

    old, new = made.keys
    yield Text.assemble(("● ", "green"), "A new key is in force from event ", (str(made.size), "bold"), " on")
    yield facts([("new", words(new)), ("old", words(old, "dim"))])
    yield _note(made.note)
    yield words("Give the new key to those who check proofs; both keys signed the note above.", "dim")
    if to is not None:
        yield words(f"From now on: --signing-key {to}", "yellow")


def register(app: typer.Typer) -> None:
    """Add these commands."""
    command(app, "checkpoint", panel=_PANEL)(checkpoint)
    command(app, "prove", panel=_PANEL)(prove)
    command(app, "rotate-key", panel=_PANEL)(rotate_key)

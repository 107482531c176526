"""Changes made to a model while it was read, kept in the file's own metadata, so that every report can list them."""

import json
from collections.abc import Mapping

import onnx

__all__ = ["NOTES_KEY", "SORTED_NOTE", "add_note", "form_note", "notes_of"]

SORTED_NOTE = "nodes put in order: in the file some come before what they read"

_FORM = "put into normal form"

NOTES_KEY = "tilewright.reading"
"""The key of an ONNX file's metadata under which the notes are kept: a JSON list of sentences."""

_MOST = 16


def add_note(proto: onnx.ModelProto, note: str) -> None:
    """Add a sentence to the model's notes, in place, if it is not there."""
    notes = notes_of(proto)
    if note in notes:
        return
    kept = [each for each in proto.metadata_props if each.key != NOTES_KEY]
    del proto.metadata_props[:]
    proto.metadata_props.extend(kept)
    proto.metadata_props.add(key=NOTES_KEY, value=json.dumps([*notes, note]))


def form_note(counts: Mapping[str, int]) -> str:
    """Return the note of a model that rules of the normal form have changed, each so many times."""
    listed = ", ".join(f"{name} {count}" for name, count in counts.items())
    return f"{_FORM} (docs/normal-form.md): {listed}"


def notes_of(proto: onnx.ModelProto) -> tuple[str, ...]:
    """Return the model's notes; none if its metadata are not ours."""
    text = next((each.value for each in proto.metadata_props if each.key == NOTES_KEY), "[]")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return ()
    return tuple(each for each in found[:_MOST] if isinstance(each, str)) if isinstance(found, list) else ()

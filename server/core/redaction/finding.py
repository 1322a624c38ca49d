"""Finds the secrets in a text: each kind of place is looked through in the text as written and as it reads."""

from collections.abc import Callable, Iterator, Sequence

from esker.server.core.redaction.assigned import assigned
from esker.server.core.redaction.commands import arguments
from esker.server.core.redaction.encoded import decoded
from esker.server.core.redaction.files import known_files
from esker.server.core.redaction.formats import known_formats, web_tokens
from esker.server.core.redaction.headers import addresses, headers
from esker.server.core.redaction.keyfiles import private_keys
from esker.server.core.redaction.patterns import Pattern
from esker.server.core.redaction.prose import spoken
from esker.server.core.redaction.scan import Scan, scanned
from esker.server.core.redaction.spans import Span, merged
from esker.server.core.redaction.unknown import unknown_tokens
from esker.server.core.redaction.unnamed import unnamed
from esker.server.core.redaction.values import SHORTEST
from esker.server.core.redaction.views import lines_around, views

# Characters that are looked through at once, and how many of them are seen again with the next part. A thread that
# matches a pattern holds all others up.
_PART = 32_768
_OVERLAP = 8_192
_VALUE = Pattern(r"[\w+/=~.-]*+")
_LIMITED = 512
# Layers of base64 that are looked into.
_LAYERS = 2

_Look = Callable[[Scan], Iterator[Span]]
_WIDE: tuple[_Look, ...] = (
    private_keys,
    known_formats,
    web_tokens,
    addresses,
    headers,
    known_files,
    unknown_tokens,
    unnamed,
)
# They read a value and some lines around it, so that an escape far away changes nothing.
_NEAR: tuple[_Look, ...] = (assigned, spoken, arguments)


def find(text: str, masks: Sequence[Span] | None = None) -> list[Span]:
    """Return the secrets in a text, in order, none of which overlap.

    Of a text that was looked through and masked, rules about lines read only those around its new `masks`.
    """
    if len(text) < SHORTEST:
        return []
    if len(text) <= _PART + _OVERLAP:
        return merged(_found(text, _LAYERS, masks))
    return merged(_found_in_parts(text, masks))


def _in_lines(scan: Scan, start: int, end: int) -> Iterator[Span]:
    """Yield what the rules about lines find between two places."""
    whole = end - start == len(scan.text)
    part = scan if whole else scanned(scan.text[start:end])
    for look in _NEAR:
        yield from (_moved(span, start) for span in look(part))


def _moved(span: Span, by: int) -> Span:
    return Span(span.start + by, span.end + by, span.kind)


def _found_in_parts(text: str, masks: Sequence[Span] | None) -> Iterator[Span]:
    done = 0
    for start in range(0, len(text), _PART):
        end = start + _PART + _OVERLAP
        if done >= min(end, len(text)):
            continue
        inside = masks and [_moved(mask, -start) for mask in masks if mask.end > start and mask.start < end]
        for span in merged(_found(text[start:end], _LAYERS, inside)):
            last = start + span.end
            if last == end:
                last = done = _end_of_run(text, last)
            yield Span(start + span.start, last, span.kind)


def _end_of_run(text: str, place: int) -> int:
    """Return the end of a value that is longer than the part it was found in."""
    more = _VALUE.match(text, place)
    return more.end() if more else place


def _found(text: str, layers: int, masks: Sequence[Span] | None = None) -> Iterator[Span]:
    """Yield the secrets in a text; of one that was masked, those near its new masks or not told by a line."""
    plain, *others = views(text)
    scan = scanned(plain.text)
    near = [(0, len(text))] if masks is None else lines_around(text, [mask[:2] for mask in masks])
    yield from _in_view(scan, near, layers)
    # A word without escapes was looked at in the text as it is written; the same word elsewhere was not.
    seen = set(scan.long_words) if others else set[tuple[int, str]]()
    for view in others:
        scan = scanned(view.text)
        new = [
            (place, word) for place, word in scan.long_words if (view.written(place, place + 1)[0], word) not in seen
        ]
        changed = [part for part in view.changed() if masks is None or _overlaps(view.written(*part), near)]
        for span in _in_view(scan._replace(long_words=new), changed, layers):
            yield Span(*view.written(span.start, span.end), span.kind)


def _overlaps(part: tuple[int, int], others: Sequence[tuple[int, int]]) -> bool:
    return any(start < part[1] and end > part[0] for start, end in others)


def _in_view(scan: Scan, changed: Sequence[tuple[int, int]], layers: int) -> Iterator[Span]:
    """Yield the secrets in a view; rules that read lines look at those that the view has changed."""
    text, done = scan.text, 0
    wide = (span for look in _WIDE for span in look(scan))
    for span in sorted([*wide, *(span for start, end in changed for span in _in_lines(scan, start, end))]):
        # Rules read a limited part of a value.
        if span.end - span.start >= _LIMITED and span.end > done:
            done = _end_of_run(text, span.end)
            yield Span(span.start, done, span.kind)
        else:
            yield span
    if layers:
        for start, end, inner in decoded(scan):
            secrets = merged(_found(inner, layers - 1))
            if secrets:
                yield Span(start, end, secrets[0].kind)

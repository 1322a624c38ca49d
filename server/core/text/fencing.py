"""Shows remembered text to a model as data: it cannot speak in the voice of a user, a system or a client.

Clients and models take some elements for a voice of their own (`<system-reminder>`, `<memory>`, `<|im_start|>`,
`[INST]`), and characters that no one sees can carry a message past a person. Text is stored as it was said, and pages
and exports show it so; only what a model reads goes through this module.
"""

import re

from esker.server.core.json_input import Json, JsonObject

# Characters that control a terminal, and two that only some programs read as the end of a line.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]+")
_ARABIC_TO_INDIC = "\u0600-\u109f\u1780-\u17ff"
# Characters that are not seen: soft hyphens, joiners, marks of direction, fillers, variation selectors and tags. A
# joiner in an emoji or between letters of a script that needs it changes what is seen; so does a selector after a sign.
_UNSEEN = re.compile(
    rf"(?<=[\u2190-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff0-9#*\u00a9\u00ae])(\ufe0f)"
    rf"|(?<=[\u2190-\u2bff\ufe0f\U0001f000-\U0001faff])(\u200d)(?=[\u2190-\u2bff\U0001f000-\U0001faff])"
    rf"|(?<=[{_ARABIC_TO_INDIC}])([\u200c\u200d])(?=[{_ARABIC_TO_INDIC}])"
    "|[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
# The first character of a tag, its name, and whether it ends. A name behind a word is a type in code (`Vec<u8>`).
_TAG = re.compile(
    r"(?P<typed>(?<=\w))?[<＜﹤](?=[\s/!?]{0,9}(?P<name>[A-Za-z][\w.:-]{0,80})(?P<ended>[^<>＜﹤]{0,300}[>＞﹥])?)"
)
_NAME_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_VOICES = frozenset(
    "system sys user human assistant ai agent developer admin tool tools function functions invoke memory memories"
    " observation observations recalled instruction instructions reminder hook prompt context thinking notification"
    " command rules skills important message result results".split()
)
# Marks of a turn in the templates of models: `<|im_start|>`, `<｜User｜>`, `<s>`, `[INST]`, `<<SYS>>`.
_TURN_MARK = re.compile(
    r"<(?=[|｜]|<SYS|</SYS|/?s>)"
    r"|\[(?=/?(?:INST|SYS|SYSTEM\w{0,20}|USER|ASSISTANT|AVAILABLE_TOOLS|TOOL_\w{1,20}|THINK|ARGS|CALL_ID)\])"
)
_ENTITY = re.compile(r"&((?:amp;)*)(lt;|#91;|#65308;|#65124;)")
_ENTITIES = re.compile(r"&(amp;)?((?:amp;)*)(lt;|#91;|#65308;|#65124;)")
_SIGNS = {"lt;": "<", "#91;": "[", "#65308;": "＜", "#65124;": "﹤"}
_REVERSIBLE = {"<": "&lt;", "＜": "&#65308;", "﹤": "&#65124;"}


def fenced(text: str) -> str:
    """Return `text` on one line, without unseen characters, unable to open or close an element."""
    return _without_elements(" ".join(visible(text).split()))


def neutral(text: str) -> str:
    """Return `text` without unseen characters, unable to open or close an element; its lines are kept."""
    return _without_elements(visible(text))


def voiceless(text: str) -> str:
    """Return `text` with each voice and mark of a turn unable to begin; other elements stay, and `voiced` undoes it."""
    escaped = _ENTITY.sub(r"&amp;\1\2", text)
    return _TURN_MARK.sub(
        _mark_escaped, _TAG.sub(lambda tag: _REVERSIBLE[tag[0]] if _is_voice(tag) else tag[0], escaped)
    )


def voiced(text: str) -> str:
    """Return what `voiceless` made `text` of."""
    return _ENTITIES.sub(lambda found: f"&{found[2]}{found[3]}" if found[1] else _SIGNS[found[3]], text)


def visible(text: str) -> str:
    """Return `text` without characters that no one sees; those that control a terminal become a space."""
    if text.isascii():
        return text if text.isprintable() else _CONTROLS.sub(" ", text)
    return _UNSEEN.sub(lambda found: found[1] or found[2] or found[3] or "", _CONTROLS.sub(" ", text))


def _without_elements(text: str) -> str:
    if "<" in text or not text.isascii():
        text = _TAG.sub(_escaped, text)
    if "<" in text or "[" in text:
        text = _TURN_MARK.sub(_mark_escaped, text)
    return text


def _mark_escaped(mark: re.Match[str]) -> str:
    return "&lt;" if mark[0] == "<" else "&#91;"


def _escaped(tag: re.Match[str]) -> str:
    """Return the first character of a tag escaped, unless it is an operator or part of a type and names no voice."""
    is_spaced = tag.string[tag.end()].isspace()
    is_code = is_spaced or tag["typed"] is not None or tag["ended"] is None
    return tag[0] if is_code and not _is_voice(tag) else "&lt;"


def _is_voice(tag: re.Match[str]) -> bool:
    return not _VOICES.isdisjoint(part.lower() for part in _NAME_PART.findall(tag["name"]))


def neutral_object(value: JsonObject) -> JsonObject:
    """Return an object with all its strings neutral, for what a model is shown as structured content."""
    return {key: _neutral(item) for key, item in value.items()}


def _neutral(value: Json) -> Json:
    match value:
        case str():
            return neutral(value)
        case list():
            return [_neutral(item) for item in value]
        case dict():
            return {key: _neutral(item) for key, item in value.items()}
        case _:
            return value

"""Tells a person's own words in a message from those of others: quotations, pasted output, logs, diffs and code.

Pasted and quoted text is not the person's, so it never becomes a preference, a decision or a statement of the user.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from esker.server.providers.extractive import cues
from esker.server.providers.extractive.sentences import CODE_FENCE, QUOTED, ends

# Minimum characters of a line that is recognised as a quotation of the message before.
_SHORTEST_QUOTE = 12
# Share of a paragraph's lines from which the whole paragraph is pasted.
_MOSTLY = 0.5
# Maximum characters of a line that a person writes without the end of a sentence.
_LONGEST_LINE = 1_500
_PARAGRAPH = re.compile(r"\n[ \t]*\n")
_ITEM = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)])\s+")
# Marks that end a line which a person writes.
_ENDS = (":", ".", "?", "：", "。", "？", "؟")
_MARKS = re.compile(r"[*`_]")
_SPACE = re.compile(r"\s+")
# Prompts of shells, and the commands behind them.
_PROMPT = re.compile(
    r"^\s*(?:(?:\([\w.-]{1,30}\) )?[\w.-]{1,40}@[\w.-]{1,60}[: ].{0,200}?[$#%>](?: |$)"
    r"|(?:[➜❯»λ]|\$|PS [A-Z]:\\\S*>|[A-Z]:\\\S*>|>>>|In \[\d+\]:)\s)"
)
# Other lines that programs write. Each pattern is anchored, so a line is read once.
_OUTPUT = tuple(
    re.compile(pattern)
    for pattern in (
        # Logs: a time or a level at the beginning.
        r"^\s*[\[(]?\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d",
        r"^\s*[\[(]?\d\d:\d\d:\d\d",
        r"^\s*[\[(]?(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|CRITICAL|FATAL)[\])]?[ :]",
        r"^\s*\[(?:trace|debug|info|notice|warn|warning|error|critical|fatal)\] ",
        # Errors, warnings and stack traces.
        r"^\s*Traceback \(most recent call last\)",
        r"^\s*File \"[^\"\n]{1,300}\", line \d+",
        r"^\s+at \S.{0,300}[):\d]$",
        r"^\s*(?:[\w.$]{1,80}\.)?\w{0,60}(?:Error|Exception|Warning|Panic)\b(?:\s*\[[^\]]{1,60}\])?: ",
        r"^\s*(?:error|warning|fatal|remote|panic|thread '[^']{1,60}' panicked)(?:\[\w{1,20}\])?: ",
        r"^\s*\*\* \(\w",
        r"^\s*(?:npm|yarn|pnpm) (?:ERR!|(?:WARN|error|warn)\b)",
        r"^\s*\S{1,200}[:(]\d+[:,]\d+\)?:? ",
        r"^\s+(?:\([\w .-]{1,60}\) )?[\w./-]{1,200}:\d+: \S",
        r"^\s*(?:E  |FAILED |PASSED |PASS |FAIL |ok \d|not ok \d|--- FAIL|=== RUN|[✓✔✗✘×] )",
        r"^\s*\d+ (?:passed|failed|errors?|warnings?)\b",
        r"^\s*(?:\d+ \||\|? *\^+|~+\^)",
        # Diffs.
        r"^(?:diff --git |index [0-9a-f]{6,}|--- [ab/]|\+\+\+ [ab/]|@@ )",
        # Documents for machines.
        r"^\s*[{\[]\s*\"[^\"\n]{1,80}\"\s*[:,]",
        r"^\s*[}\])]{1,4}[,;]?\s*$",
        r"^\s*\"[^\"\n]{1,80}\"\s*:\s",
        r"^\s*</?[A-Za-z][\w.-]{0,60}(?:\s[^<>]{0,300})?/?>",
        r"^\s*[│├└┌┐┘─═╔╗╚╝║┃━]",
        # Columns and rulers, listings and mail headers.
        r"^.{0,200}?\S {4,}\S",
        r"^ {8,}\S",
        r"^\s*[-=]{2,}[->^]",
        r"^[-dlbcps](?:[r-][w-][xsStT-]){3}[ .@+]",
        r"^(?:From|To|Cc|Sent|Subject|Date): \S",
        r"^-{2,} ?(?:Original|Forwarded)\b",
    )
)
_IN_DIFF = re.compile(r"^[-+ ]")
_CODE = re.compile(r"[{};=<>|\\$]|\(\)|::|->")
# Minimum words that consecutive lines of a listing have in common, and the minimum of such lines.
_COMMON_WORDS, _LISTED = 3, 3
_WORD = re.compile(r"[^\W\d_]{2,}")


@dataclass(frozen=True, slots=True)
class Authorship:
    """The person's own words in a message, and the lines that it quotes, in order. Pasted lines are in neither."""

    own: str
    quoted: tuple[str, ...] = ()


def authorship(text: str, before: str = "") -> Authorship:
    """Return whose words the lines of a message are; `before` is the message that it answers."""
    answered = {key for line in ends(before).splitlines() if len(key := _key(line)) >= _SHORTEST_QUOTE}
    own: list[str] = []
    quoted: list[str] = []
    presented = False
    for paragraph in _paragraphs(ends(text)):
        lines = paragraph.splitlines()
        output = _with_listed(lines, [_is_output(line) for line in lines])
        if not _is_fenced(paragraph):
            output = _behind_prompts(lines, _with_diff(lines, output))
        if _is_fenced(paragraph) or presented or sum(output) > _MOSTLY * len(lines) or _behind_error(lines, output):
            # A person's remark can follow the pasted lines, or precede them.
            is_whole = presented or _is_fenced(paragraph) or not any(output)
            head, tail = ([], []) if is_whole else _own_ends(lines, output)
            own += [*head, *tail, ""]
            presented = False
            continue
        for line, is_output in zip(lines, output, strict=True):
            if found := QUOTED.match(line):
                quoted.append(line[found.end() :])
            elif answered and _key(line) in answered:
                quoted.append(_ITEM.sub("", line).strip())
            elif not is_output and not _is_endless(line):
                own.append(line)
        own.append("")
        presented = bool(own) and _presents(lines[-1])
    return Authorship("\n".join(own).strip(), tuple(quoted))


def _paragraphs(text: str) -> Iterator[str]:
    """Yield the paragraphs of a text; a block of code is one, whatever lines it has."""
    fenced: list[str] | None = None
    plain: list[str] = []
    for line in text.splitlines():
        if CODE_FENCE.match(line):
            if fenced is None:
                yield from _split(plain)
                plain, fenced = [], [line]
            else:
                yield "\n".join([*fenced, line])
                fenced = None
        elif fenced is not None:
            fenced.append(line)
        else:
            plain.append(line)
    if fenced is not None:
        yield "\n".join(fenced)
    yield from _split(plain)


def _split(lines: Sequence[str]) -> Iterator[str]:
    yield from (part for part in _PARAGRAPH.split("\n".join(lines)) if part.strip())


def _is_fenced(paragraph: str) -> bool:
    return bool(CODE_FENCE.match(paragraph))


def _is_endless(line: str) -> bool:
    """Whether a line is longer than a person writes, and without a space."""
    return len(line) > _LONGEST_LINE and not _SPACE.search(line[:_LONGEST_LINE].strip())


def _is_output(line: str) -> bool:
    """Whether a program wrote a line: it has a known form, or more code than words."""
    if any(form.match(line) for form in _OUTPUT):
        return True
    return len(_CODE.findall(line)) >= 3 and len(_CODE.findall(line)) * 2 >= len(_WORD.findall(line))


def _with_listed(lines: Sequence[str], output: Sequence[bool]) -> list[bool]:
    """Return which lines are output; lines in a row that only fill other values into the same words are.

    Sentences are not: a person's rules can begin and end alike.
    """
    words = [[] if line.rstrip().endswith(_ENDS) else _WORD.findall(line) for line in lines]
    found = list(output)
    for last in range(_LISTED - 1, len(lines)):
        run = words[last - _LISTED + 1 : last + 1]
        common = set(run[0]).intersection(*run[1:])
        if len(common) >= _COMMON_WORDS and 2 * len(common) >= max(map(len, run)):
            found[last - _LISTED + 1 : last + 1] = [True] * _LISTED
    return found


def _with_diff(lines: Sequence[str], output: Sequence[bool]) -> list[bool]:
    """Return which lines are output; in a diff, lines that begin with a sign or a space are."""
    diff = any(line.startswith(("@@ ", "diff --git ", "+++ ")) for line in lines)
    return [found or (diff and bool(_IN_DIFF.match(line))) for line, found in zip(lines, output, strict=True)]


def _behind_prompts(lines: Sequence[str], output: Sequence[bool]) -> list[bool]:
    """Return which lines are output; those behind the prompt of a shell are, to the end of the paragraph."""
    first = next((place for place, line in enumerate(lines) if _PROMPT.match(line)), len(lines))
    own = any(cues.SELF.search(line) or line.rstrip().endswith(_ENDS) for line in lines[:first])
    begins = 0 if first < len(lines) and not own else first
    return [found or place >= begins for place, found in enumerate(output)]


def _behind_error(lines: Sequence[str], output: Sequence[bool]) -> bool:
    """Whether a paragraph begins with a program's line and nothing in it is a person's."""
    return output[0] and not any(cues.SELF.search(line) or cues.asks(line) for line in lines)


def _own_ends(lines: Sequence[str], output: Sequence[bool]) -> tuple[list[str], list[str]]:
    """Return the person's lines before and behind the output in a paragraph that is mostly output."""
    first = output.index(True)
    last = len(output) - 1 - output[::-1].index(True)
    tail = [line for line in lines[last + 1 :] if cues.SELF.search(line) or cues.asks(line)]
    return list(lines[:first]), tail if len(tail) == len(lines) - last - 1 else []


def _presents(line: str) -> bool:
    """Whether a line introduces what follows as somebody else's words ("the log says:", "I got this:")."""
    return line.rstrip().endswith((":", "：")) and bool(cues.PRESENTS.search(line))


def _key(line: str) -> str:
    return _SPACE.sub(" ", _MARKS.sub("", _ITEM.sub("", line))).strip().casefold()

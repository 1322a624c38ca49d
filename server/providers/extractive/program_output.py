"""Recognizes the lines that programs write: output, logs, errors, diffs, source code, listings and mail headers."""

import re
from collections.abc import Sequence

from esker.server.core.words.lists import words
from esker.server.providers.extractive import cues
from esker.server.providers.extractive.sentences import PLACEHOLDER

# Marks that end a line which a person writes.
_ENDS = (":", ".", "?", "：", "。", "？", "؟")
# Prompts of shells, and the commands behind them.
_PROMPT = re.compile(
    r"^\s*(?:(?:\([\w.-]{1,30}\) )?[\w.-]{1,40}@[\w.-]{1,60}[: ].{0,200}?[$#%>](?: |$)"
    r"|(?:[➜❯»λ]|\$|PS [A-Z]:\\\S*>|>>>|In \[\d+\]:)\s|[A-Z]:\\[^\s>]*>)"
)
# "rows, total = load(path)": the value ends like code.
_ASSIGNMENT = (
    r"^\s*[\w.]{1,80}(?:\[[^\]\n]{1,80}\])?(?:, [\w.]{1,80}){0,20} ?[-+*/|:]?= ?[\w.]{0,80}"
    r"(?:[(\[{\"'].{0,2000}[)\]}\"',(\[{]|[(\[{])$"
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
        r"^\s*File \S.{0,300}:\d+, in \S",
        r"^\s+at \S.{0,300}[):\d]$",
        r"^\s*(?:[\w.$]{1,80}\.)?\w{0,60}(?:Error|Exception|Warning|Panic)\b(?:\s*\[[^\]]{1,60}\])?: ",
        r"^\s*[A-Z][a-z]{1,30} error: ",
        r"^\s*Expect(?:ed|ing)\b.{1,2000}\bgot\b",
        r"^\s*[Uu]sage: \S",
        r"^\s*(?:error|warning|fatal|remote|panic|thread '[^']{1,60}' panicked)(?:\[\w{1,20}\])?: ",
        r"^\s*\*\* \(\w",
        r"^\s*\([\w-]{1,40} \d[\d.]{0,20}\) \S",
        r"^\s*(?:npm|yarn|pnpm) (?:ERR!|(?:WARN|error|warn)\b)",
        r"^\s*\S{1,200}[:(]\d+[:,]\d+\)?:? ",
        r"^\s+(?:\([\w .-]{1,60}\) )?[\w./-]{1,200}:\d+: \S",
        r"^\s*\d{1,6}:\d{1,5}\s+(?:[Ee]rror|[Ww]arning)\b",
        r"^\s*(?:E  |FAILED |PASSED |PASS |FAIL |ok \d|not ok \d|--- FAIL|=== RUN|[✓✔✗✘×] )",
        r"^[\w@./-]{1,60}[:#][\w-]{1,40}: ?(?:$|\S)",
        r"^> \S{1,100}@\d[\w.-]{0,40} \S",
        r"^\s*[▲▶●■◆⚠ℹ✖] ?\s\S",
        r"^\s*[A-Z][a-z]{1,30}ing\b.{0,100}\.\.\.$",
        r"^\s*\d+ (?:passed|failed|errors?|warnings?)\b",
        r"^\s*(?:\d+ \||\|? *\^+|~+\^)",
        # Browser consoles, build tools and error pages.
        r"^\s*\d?[\w.?=@-]{1,100}\.(?:m?jsx?|tsx?)(?:\?\S{1,60})?:\d+ ?(?:Uncaught|Warning|Error|Failed|\[)",
        r"^\s*[\w.$<>]{1,80} @ \S{1,100}:\d+",
        r"^\s*(?:\S{1,200}:\d+ +)?(?:Failed to load resource: |(?:GET|POST|PUT|PATCH|DELETE) \S+ net::ERR_)",
        r"^\s*(?:[\w.-]{1,40}:\d+ )?\[(?:vite|nodemon|HMR|webpack|[\w-]{1,20} \d+/\d+)\]",
        r"^\s*(?:#\d+ )?\d+\.\d{2,3} (?:npm|yarn|pnpm|pip|apt)\b",
        r"^\s*\((?:node:\d+\)|Use `node )",
        r"^\s*(?:Call Stack|Unhandled Runtime Error)$",
        # Diffs.
        r"^\s*\S.{0,200} \|\s+(?:\d+ [-+]*|Bin\b.*)$",
        r"^\s*\d+ files? changed\b",
        r"^(?:diff --git |index [0-9a-f]{6,}|--- [ab/]|\+\+\+ [ab/]|@@ )",
        # Source code and build files.
        r"^\s*(?:from [\w.]{1,80} import \S|import [\w.]{1,80}(?:, [\w.]+)*(?: as \w+)?;?$|import .{1,200} from [\"'])",
        r"^\s*(?:async |export |public |private |static |pub )*(?:def|fn|func|function) \w{1,80}\s?[(<]",
        r"^\s*class \w{1,80}\s?[({:]",
        r"^\s*(?:const|let|var|final|val) \w{1,80}(?:: ?\S{1,80})? = ",
        r"^\s*(?:if|elif|for|while|with|except|else if|switch|catch)\b.{0,300}(?:[\w\]]\(|[\[\]=]).{0,300}[:{]$",
        r"^\s*(?:return|await|yield|raise|throw)\b.{0,200}(?:\w\([^()\n]{0,200}\)|[\[\]{};])$",
        _ASSIGNMENT,
        r"^\s*[\w.]{1,80} *= *\S.{0,200} if .{1,200} else \S{1,80}$",
        r"^\s*[\w.]{1,80}\([^()\n]{0,300}(?:\([^()\n]{0,300}\)[^()\n]{0,300}){0,5}\);?$",
        r"^\s*(?:print|printf|println!?|echo|console\.\w{3,5}|fmt\.Print\w{0,2}|System\.out\.print\w{0,2})\s?\(.{0,2000}\);?$",
        r"^(?:FROM [\w./-]+:\S+|CMD \[|ENTRYPOINT \[|WORKDIR /|COPY (?:--\S+ )?\S+ \S+$|EXPOSE \d)",
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
# A command with two or more flags.
_FLAG = r" --?[a-zA-Z][\w-]*(?:=\S*)?(?: [^\s,-]\S*)*"
_COMMAND = re.compile(rf"^\s*[a-z][\w./-]{{0,40}}(?: [a-z][\w:.-]{{0,40}}){{0,2}}(?:{_FLAG}){{2}}")
_STOP_WORDS = frozenset(words("text.stop_words"))
_INDENTED = re.compile(r"\s{2,}[^\s*•-]")
# A line of code goes on in the next one.
_GOES_ON = ("(", "[", "{", ",", "\\")
_IN_DIFF = re.compile(r"^[-+ ]")
_CODE = re.compile(r"[{};=<>|\\$]|\(\)|::|->")
# Minimum words that consecutive lines of a listing have in common, and the minimum of such lines.
_COMMON_WORDS, _LISTED = 3, 3
_WORD = re.compile(r"[^\W\d_]{2,}")


def output_lines(lines: Sequence[str]) -> list[bool]:
    """Return which lines of a paragraph a program wrote."""
    output = _with_continued(lines, _with_listed(lines, [_is_output(line.rstrip()) for line in lines]))
    return _behind_prompts(lines, _with_diff(lines, output))


def _is_output(line: str) -> bool:
    """Whether a program wrote a line: it has a known form, or more code than words."""
    if any(form.match(line) for form in _OUTPUT) or _is_command(line):
        return True
    code = _CODE.findall(PLACEHOLDER.sub(" ", line))
    return len(code) >= 3 and len(code) * 2 >= len(_WORD.findall(line))


def _is_command(line: str) -> bool:
    """Whether a line is a command without a prompt, and not an order about flags ("use --strict, not --all")."""
    prose = _STOP_WORDS.intersection(line.split()) or cues.is_order(line) or cues.DECISION.search(line)
    return bool(_COMMAND.match(line)) and not prose


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


def _with_continued(lines: Sequence[str], output: Sequence[bool]) -> list[bool]:
    """Return which lines are output; the line behind one that is not complete is, and an indented one."""
    found = list(output)
    for place, line in enumerate(lines[:-1]):
        goes_on = line.rstrip().endswith(_GOES_ON) or _INDENTED.match(lines[place + 1])
        found[place + 1] |= found[place] and bool(goes_on)
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


def behind_error(lines: Sequence[str], output: Sequence[bool]) -> bool:
    """Whether a paragraph begins with a program's line and nothing in it is a person's."""
    return output[0] and not any(cues.SELF.search(line) or cues.asks(line) for line in lines)

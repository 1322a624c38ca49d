"""A picture for each agent CLI: the events at which it and Esker exchange something, from the table that hooks use."""

from docs_site.drawing import BLUE, GREEN, Drawing
from esker.server.agents.hook_input import STEPS, HookStep
from esker.server.agents.hook_output import gives_pack_at_prompt

NAMES = {
    "claude-code": "Claude Code",
    "codex": "Codex",
    "gemini-cli": "Gemini CLI",
    "opencode": "OpenCode",
    "pi": "pi",
    "copilot": "Copilot CLI",
    "cursor": "Cursor",
}
_RECALLED = "memories, if the prompt refers to earlier work"
_SENT: dict[HookStep, str] = {
    "start": "a session begins",
    "prompt": "the prompt",
    "turn_end": "new messages of the transcript",
    "compact": "messages that leave the context",
    "end": "the last messages",
}
_GIVEN: dict[HookStep, str] = {
    "start": "the pack: the best memories of the project",
    "prompt": _RECALLED,
}
_DONE: dict[HookStep, str] = {"compact": "observed at once", "end": "observed at once"}
_TOP, _ROW = 86, 62
_LEFT, _RIGHT, _WIDTH = 225, 625, 780


def client_picture(client: str) -> Drawing:
    """Return the picture of a client."""
    events = STEPS[client]
    own: list[tuple[str, HookStep]] = [(event, step) for event, step in events.items() if event != "SubagentStop"]
    rows = len(own) + 1
    drawing = Drawing(_WIDTH, _TOP + rows * _ROW + 10, f"Events at which {NAMES[client]} and Esker exchange something")
    drawing.labelled(20, 16, _LEFT - 30, 40, [NAMES[client]], BLUE)
    drawing.labelled(_RIGHT + 10, 16, _WIDTH - _RIGHT - 30, 40, ["Esker"], GREEN)
    top = _TOP
    for event, step in own:
        drawing.text(20, top + 10, event, bold=True)
        drawing.arrow((_LEFT, top), (_RIGHT, top), _SENT[step])
        if given := _given(client, step):
            drawing.arrow((_RIGHT, top + 26), (_LEFT, top + 26), given)
        drawing.text(_RIGHT + 12, top + 4, _DONE.get(step, ""), size=13)
        top += _ROW
        if step == "prompt" or (step == "start" and "prompt" not in events.values()):
            _draw_tool(drawing, top)
            top += _ROW
    return drawing


def _draw_tool(drawing: Drawing, top: int) -> None:
    drawing.text(20, top + 10, "recall_memory", bold=True)
    drawing.text(20, top + 28, "the model asks", size=13)
    drawing.arrow((_LEFT, top), (_RIGHT, top), "a question, when the model wants to know more", dashed=True)
    drawing.arrow(
        (_RIGHT, top + 26), (_LEFT, top + 26), "memories with their dates, or that there is none", dashed=True
    )


def _given(client: str, step: HookStep) -> str:
    if gives_pack_at_prompt(client):
        later: dict[HookStep, str] = {"start": "", "prompt": "the pack once; memories, if it refers to earlier work"}
        return later.get(step, "")
    return _GIVEN.get(step, "")

"""The snippets of docs/integrations.md run; those that call a model are compiled."""

import asyncio
import re

import httpx2
import pytest

from tests.support.processes import ROOT

for framework in ("langchain_core", "llama_index.core", "agents"):
    pytest.importorskip(framework, reason="`make integrations` installs it")

PAGE = (ROOT / "docs" / "integrations.md").read_text(encoding="utf-8")
SNIPPETS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("snippet", SNIPPETS, ids=lambda text: text.split(" import")[0].split(".")[-1])
async def test_a_snippet_runs(snippet: str, client: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ESKER_URL", str(client.base_url))
    program = compile(snippet, "integrations.md", "exec")
    if "Runner" not in snippet:
        await asyncio.to_thread(exec, program, {})

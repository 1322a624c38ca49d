"""Programs beside a test whose server answers them meanwhile."""

import asyncio
import shutil
from pathlib import Path

from tests.support.processes import environment


def tool(name: str) -> str:
    """Return the path of a tool that `make generators` installs beside the generator."""
    found = shutil.which("openapi-python-client")
    assert found, "the fixture of this folder skips without it"
    return str(Path(found).parent / name)


async def ran(*command: str, folder: Path, **more: str) -> tuple[int | None, str]:
    """Run a program to its end in a folder; return its exit code and all that it printed."""
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=folder,
        env=environment(**more),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    printed, _ = await process.communicate()
    return process.returncode, printed.decode()

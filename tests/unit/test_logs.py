"""Logs: each line has the ids of what it is about, in both forms, and no secret."""

import json
import logging
from collections.abc import Generator

import pytest

from esker.server.core.config.logs import LOG_IDS, configure_logs

KEY = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789"


@pytest.fixture(autouse=True)
def as_before() -> Generator[None]:
    """Leave logging as it was."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    token = LOG_IDS.set({"request": "req_1", "job": "observe:ses_1"})
    yield
    LOG_IDS.reset(token)
    root.handlers[:], root.level = handlers, level


def test_a_line_of_json_has_the_ids_the_message_and_the_error_without_secrets(
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure_logs("info", "json")
    try:
        raise ValueError(f'a "quoted" {KEY}\non two lines')
    except ValueError:
        logging.getLogger("esker.x").exception("%s failed with %s", "It", KEY)
    [line] = capsys.readouterr().err.splitlines()
    said = json.loads(line)
    assert KEY not in line
    assert said["message"].startswith("It failed with [redacted:")
    assert (said["request"], said["job"]) == ("req_1", "observe:ses_1")
    assert (said["level"], said["logger"]) == ("error", "esker.x")
    assert 'ValueError: a "quoted" [redacted:' in said["error"]
    assert said["time"].endswith("+00:00")


def test_a_line_of_text_ends_with_the_ids(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs("info")
    logging.getLogger("esker.x").info("It works with %s.", KEY)
    line = capsys.readouterr().err
    assert line.endswith("esker.x: It works with [redacted:anthropic-key]. [request=req_1 job=observe:ses_1]\n")

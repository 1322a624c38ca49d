"""A project has the same name from a subfolder, through a link, from a worktree and on another machine."""

import subprocess
from pathlib import Path

import pytest

from esker.server.agents.project import is_excluded, project_of


def git(*arguments: str, cwd: Path) -> None:
    """Run git without this machine's settings."""
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", *identity, *arguments], cwd=cwd, check=True, capture_output=True)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository with a commit and a remote."""
    root = tmp_path / "somewhere"
    root.mkdir()
    git("init", "-q", cwd=root)
    git("remote", "add", "origin", "git@example.org:acme/shop.git", cwd=root)
    git("commit", "-q", "--allow-empty", "-m", "first", cwd=root)
    return root


def test_a_project_is_the_same_from_a_subfolder_a_link_and_a_worktree(checkout: Path, tmp_path: Path) -> None:
    below = checkout / "src" / "deep"
    below.mkdir(parents=True)
    link, linked_below, worktree = tmp_path / "link", tmp_path / "linked-below", tmp_path / "worktree"
    link.symlink_to(checkout)
    linked_below.symlink_to(below)
    git("worktree", "add", "-q", str(worktree), "-b", "other", cwd=checkout)
    (worktree / "src").mkdir()
    places = [checkout, below, link, link / "src", linked_below, worktree, worktree / "src"]
    assert {project_of(str(place)) for place in places} == {"acme/shop"}


@pytest.mark.parametrize(
    "url",
    [
        "git@example.org:acme/shop.git",
        "git@example.org:acme/shop",
        "https://example.org/acme/shop.git",
        "https://someone:secret@example.org/acme/shop",
        "ssh://git@example.org:2222/acme/shop.git/",
    ],
)
def test_a_project_is_the_same_for_every_form_of_its_remote(checkout: Path, url: str) -> None:
    git("remote", "set-url", "origin", url, cwd=checkout)
    assert project_of(str(checkout)) == "acme/shop"


@pytest.mark.parametrize(
    ("url", "project"),
    [
        ("https://oauth2:hunter2pass@git.example.org/shop.git", "shop"),
        ("https://git.example.org/acme/shop.git?token=abc", "acme/shop"),
        ("git@example.org:group/sub/shop.git", "group/sub/shop"),
        ("https://dev.example.org/org/project/_git/shop", "org/project/_git/shop"),
        ("/srv/git/acme/shop.git", "acme/shop"),
        ("file:///srv/git/acme/shop.git", "acme/shop"),
        ('"git@example.org:acme/shop.git"', "acme/shop"),
        ("git@example.org:acme/shop.git # main", "acme/shop"),
    ],
)
def test_a_project_is_the_path_on_its_host_without_credentials(checkout: Path, url: str, project: str) -> None:
    (checkout / ".git" / "config").write_text(f'[core]\n\tbare\n[remote "origin"]\n\turl = {url}\n        fetch = +x\n')
    assert project_of(str(checkout)) == project


def test_a_config_with_another_encoding_or_a_byte_order_mark_is_read(checkout: Path) -> None:
    config = b'[user]\n\tname = Andr\xe9\n[remote "origin"]\n\turl = git@example.org:acme/shop.git\n'
    for text in (config, b"\xef\xbb\xbf" + config):
        (checkout / ".git" / "config").write_bytes(text)
        assert project_of(str(checkout)) == "acme/shop"


def test_a_worktree_without_a_remote_is_named_after_the_root(tmp_path: Path) -> None:
    root, worktree = tmp_path / "ledger", tmp_path / "elsewhere"
    root.mkdir()
    git("init", "-q", cwd=root)
    git("commit", "-q", "--allow-empty", "-m", "first", cwd=root)
    git("worktree", "add", "-q", str(worktree), "-b", "other", cwd=root)
    assert (project_of(str(root)), project_of(str(worktree))) == ("ledger", "ledger")


def test_the_worktree_of_a_bare_repository_is_named_after_it(checkout: Path, tmp_path: Path) -> None:
    bare, worktree = tmp_path / "mirror.git", tmp_path / "working"
    git("clone", "-q", "--bare", str(checkout), str(bare), cwd=tmp_path)
    git("remote", "remove", "origin", cwd=bare)
    git("worktree", "add", "-q", str(worktree), cwd=bare)
    assert project_of(str(worktree)) == "mirror"


def test_a_broken_git_file_gives_the_folders_name(tmp_path: Path) -> None:
    for number, text in enumerate(["gitdir: /nowhere/at/all", "", "\x00\xff", "gitdir:"]):
        folder = tmp_path / f"odd{number}"
        folder.mkdir()
        (folder / ".git").write_text(text)
        assert project_of(str(folder)) is not None


def test_a_directory_of_another_machine_is_named_after_its_last_part() -> None:
    assert project_of("/nowhere/on/this/machine/shop") == "shop"
    assert project_of(r"C:\Users\ann\shop") == "shop"


@pytest.mark.parametrize(
    ("pattern", "excluded"),
    [
        ("acme/shop", True),
        ("acme/*", True),
        ("*/shop", True),
        ("{root}", True),
        ("{root}/", True),
        ("{parent}/*", True),
        ("{root}/src/deep", True),
        ("{root}/src/deep/er", False),
        ("{root}x", False),
        ("acme", False),
        ("shop", False),
        ("", False),
    ],
)
def test_a_pattern_excludes_a_project_or_a_directory_with_everything_below(
    checkout: Path, pattern: str, excluded: bool
) -> None:
    below = checkout / "src" / "deep"
    below.mkdir(parents=True)
    patterns = [pattern.format(root=checkout, parent=checkout.parent)]
    assert is_excluded(str(below), project_of(str(below)), patterns) is excluded


def test_an_excluded_directory_is_excluded_by_any_link_to_it(checkout: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(checkout)
    assert is_excluded(str(link), "p", [str(checkout)])
    assert is_excluded(str(checkout), "p", [str(link)])


def test_without_patterns_nothing_is_excluded() -> None:
    assert not is_excluded("/a/b", "p/q", [])
    assert not is_excluded(None, None, ["*"])

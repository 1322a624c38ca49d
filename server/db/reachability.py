"""Whether connections to Postgres can be opened and, if not, why: in words, and with the way out."""

import logging

import psycopg
from psycopg.errors import InsufficientPrivilege, InvalidParameterValue

from esker.server.core.errors import Unavailable
from esker.server.db.driver_errors import NO_CONNECTION_LEFT, Words, first_line

log = logging.getLogger(__name__)

_UNKNOWN = Words(
    "The database cannot be reached.",
    "Try again in some seconds. If it goes on, check that Postgres runs and that ESKER_DATABASE_URL, if it is set, has"
    " its host and port. The server's log has the error.",
)
_MAY_NOT_BECOME = Words(
    "The login of ESKER_DATABASE_URL may not become esker_app.",
    "Log in as esker_app, or let the owner GRANT esker_app TO the login.",
)
_NO_ROLE = Words("The database has no role esker_app.", "Run `esker migrate` with a login that may create roles.")
_REFUSED_LOGIN = Words(
    "Postgres refuses the login.",
    "Check the user and the password in ESKER_DATABASE_URL, pg_hba.conf, and that the role may log in"
    " (ALTER ROLE esker_app LOGIN PASSWORD '…'). The server's log has the error.",
)
# Parts of messages, since the driver has no code for an error before the connection is open. An error in another
# language, or of a pooler, is one of the unknown; the log has it.
_PHRASES: tuple[tuple[tuple[str, ...], Words], ...] = (
    (("too many connections", "too many clients", "connection slots are reserved"), NO_CONNECTION_LEFT),
    (
        ("the database system is", "not yet accepting connections"),
        Words("Postgres is starting, stopping or recovering.", "Try again in some seconds."),
    ),
    (
        ("permission denied for database",),
        Words("The login may not connect to the database.", "Let the owner GRANT CONNECT ON DATABASE … TO the login."),
    ),
    (
        ("not currently accepting connections",),
        Words("The database is closed to connections.", "Its owner opens it: ALTER DATABASE … ALLOW_CONNECTIONS true."),
    ),
    (
        ("authentication failed", "no password supplied", "no pg_hba.conf entry", "not permitted to log in"),
        _REFUSED_LOGIN,
    ),
    (
        ("invalid page", "could not read block", "could not open file"),
        Words(
            "Files of the database are damaged or missing.",
            "Check the disk, and bring back a backup with `esker restore`. The log of Postgres names the files.",
        ),
    ),
    (
        ("could not translate host name", "failed to resolve host"),
        Words("The name of the database's host is not known.", "Check the host in ESKER_DATABASE_URL."),
    ),
)


class Reachability:
    """The result of the last try to open a connection."""

    def __init__(self) -> None:
        self._words: Words | None = None

    def failed(self, error: psycopg.Error) -> None:
        """Note that a connection cannot be opened; log why, once for each outage and reason."""
        words = words_of(error)
        if words != self._words:
            log.warning("no connection to the database can be opened: %s", reason_of(error))
        self._words = words

    def succeeded(self) -> None:
        """Note that a connection was opened."""
        if self._words:
            log.warning("connections to the database can be opened again")
        self._words = None

    def error(self) -> Unavailable:
        """Return the error for a request that got no connection."""
        words = self._words or _UNKNOWN
        return Unavailable(words.problem, hint=words.hint)


def reason_of(error: psycopg.Error) -> str:
    """Return the reason that Postgres or the operating system gives, without the address."""
    line = first_line(error)
    return (line.partition("FATAL:")[2] or line.rpartition("failed: ")[2]).strip()


def words_of(error: psycopg.Error) -> Words:
    """Return why a connection could not be opened, or not be made ready for the app role."""
    if isinstance(error, InsufficientPrivilege):
        return _MAY_NOT_BECOME
    if isinstance(error, InvalidParameterValue):
        return _NO_ROLE
    text = str(error)
    for phrases, words in _PHRASES:
        if any(phrase in text for phrase in phrases):
            return words
    if "does not exist" in text:
        if 'database "' in text:
            return Words("The database does not exist.", "Create it, and run `esker migrate`; or check its name.")
        return _REFUSED_LOGIN
    return _UNKNOWN

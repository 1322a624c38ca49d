"""What replaces what by its words alone: known answers in six languages, and near misses, which matter more."""

import time

import pytest

from server.core.records import Fact, Role
from server.providers.extractive.observer import observe
from server.providers.extractive.superseding import with_replaced
from tests.support.records import NOON, conversation, observation


def replaced(*said: str) -> list[str | None]:
    """Return what each fact that is found in a person's sentences replaces."""
    turns: list[tuple[Role, str]] = []
    for text in said:
        turns.append(("user", text))
        turns.append(("assistant", "All right."))
    return [fact.replaces for fact in observe(conversation(*turns)).facts]


REPLACED = {
    "English": [
        ("The deploy target is Fly.io.", "The deploy target is Render now."),
        ("The deploy target is staging.", "The deploy target is production."),
        ("I love Tailwind.", "I hate Tailwind."),
        ("We use Redis.", "Actually, use Postgres instead of Redis."),
        ("We decided to use Redis for sessions.", "Let's use Postgres instead of Redis for sessions."),
        ("Let's keep the sessions in Redis.", "Let's keep the sessions in Postgres instead of Redis."),
        ("Our database is MySQL.", "We moved from MySQL to Postgres."),
        ("We use Jest for tests.", "We no longer use Jest, use Vitest."),
        ("Let's use npm.", "We switched from npm to pnpm."),
        ("We use port 8080 for the admin page.", "We use port 9090 instead of 8080 for the admin page."),
        ("I prefer tabs.", "No, I prefer spaces rather than tabs."),
        ("Let's use Memcached instead of Redis.", "Let's use Postgres instead of Memcached."),
        ("Always use tabs.", "Never use tabs."),
        ("Always commit directly to main.", "Don't commit directly to main."),
        ("Let's store the sessions in Redis.", "Scratch that, let's store the sessions in Postgres."),
        ("My editor is Vim.", "My editor is Emacs."),
        ("The release is on Friday.", "The release is on Monday."),
    ],
    "German": [
        ("Wir nehmen Redis für die Sitzungen.", "Lass uns Postgres statt Redis für die Sitzungen nehmen."),
        ("Unser Deploy-Ziel ist Fly.io.", "Unser Deploy-Ziel ist Render."),
        ("Unsere Datenbank ist MySQL.", "Wir nehmen Postgres anstelle von MySQL."),
        ("Bitte immer Tabs verwenden.", "Bitte nie Tabs verwenden."),
    ],
    "French": [
        ("Nous avons décidé d'utiliser Redis.", "On va utiliser Postgres au lieu de Redis."),
        ("Notre base de données est MySQL.", "Notre base de données est Postgres."),
        ("Je préfère Redis pour le cache.", "Il faut Memcached à la place de Redis pour le cache."),
    ],
    "Spanish": [
        ("Vamos a usar Redis.", "Usaremos Postgres en lugar de Redis."),
        ("Nuestra base de datos es MySQL.", "Nuestra base de datos es Postgres."),
        ("Prefiero npm para este proyecto.", "Prefiero pnpm en vez de npm para este proyecto."),
    ],
    "Chinese": [
        ("我们决定用Redis存会话。", "改用Postgres，而不是Redis。"),
        ("我们用Jest。", "我们不再用Jest，改用Vitest。"),
        ("我们的部署目标是Fly.io。", "我们的部署目标是Render。"),
    ],
    "Japanese": [
        ("セッションにはRedisを採用します。", "RedisではなくPostgresを採用します。"),
        ("テストはJestに決めました。", "Jestの代わりにVitestを採用します。"),
        ("デプロイ先はFly.ioに決めました。", "デプロイ先はRenderに変更します。"),
    ],
}


@pytest.mark.parametrize(("earlier", "later"), [pair for pairs in REPLACED.values() for pair in pairs])
def test_a_new_value_replaces_the_old_one_and_not_the_reverse(earlier: str, later: str) -> None:
    *others, last = replaced(earlier, later)
    assert last is not None
    assert earlier.rstrip(".。") in last
    assert not any(others)


NEAR_MISSES = {
    "for something else": [
        ("We use Redis for sessions.", "We use Redis for the cache."),
        ("We decided to use Redis for sessions.", "We decided to use Postgres for orders."),
        ("We use Redis for the cache.", "Let's use Postgres instead of Redis for sessions."),
        ("Let's use Redis instead of Memcached for the cache.", "Let's use Redis instead of files for the locks."),
        ("We use camelCase in TypeScript.", "Use snake_case in Python instead of camelCase."),
        ("Let's use Redis.", "Don't use Redis for the audit log."),
        ("Always run the unit tests before a commit.", "Never run the unit tests before a demo."),
        ("Our team uses Slack for chat.", "Our team uses GitHub for code."),
        ("The deploy target is Fly.io for staging.", "The deploy target is Render for production."),
        ("Wir nehmen Redis für die Sitzungen.", "Wir nehmen Redis für den Cache."),
        ("Wir nehmen Redis für die Sitzungen.", "Wir nehmen Memcached statt Redis für den Cache."),
        ("Nous avons décidé d'utiliser Redis pour le cache.", "On va utiliser Postgres au lieu de Redis pour la file."),
        ("Vamos a usar Redis para el caché.", "Usaremos Postgres en lugar de Redis para la cola."),
        ("我们决定用Redis存会话。", "我们决定用Redis做缓存。"),
        ("会话用Redis，总是这样。", "缓存用Memcached，而不是Redis。"),
        ("セッションにはRedisを採用します。", "キャッシュにはRedisを採用します。"),
        ("セッションにはRedisを採用します。", "キャッシュにはRedisではなくMemcachedを採用します。"),
    ],
    "an old value that nobody said": [
        ("Let's use Kafka.", "Let's use Postgres instead of Redis."),
        ("Let's use Memcached instead of Redis.", "Let's use Postgres instead of Redis."),
        ("We moved from Redis to Memcached.", "Let's use Postgres instead of Redis."),
        ("Never use Redis.", "Let's use Postgres instead of Redis."),
        ("Our office is in Berlin.", "We moved the office plants from the kitchen to the hall."),
        ("We moved to Postgres.", "We moved the meeting from Monday to Tuesday."),
        ("Wir nehmen Kafka.", "Wir nehmen Postgres statt Redis."),
        ("Nous avons décidé d'utiliser Kafka.", "On va utiliser Postgres au lieu de Redis."),
        ("Vamos a usar Kafka.", "Usaremos Postgres en lugar de Redis."),
        ("我们决定用Kafka。", "改用Postgres，而不是Redis。"),
        ("Kafkaを採用します。", "RedisではなくPostgresを採用します。"),
    ],
    "something else": [
        ("Our database is MySQL.", "Our cache is Redis."),
        ("The API port is 8080.", "The admin port is 9090."),
        ("My editor is Vim.", "My shell is fish."),
        ("I love Tailwind.", "I hate Bootstrap."),
        ("I like tea.", "I like coffee."),
        ("I never eat meat.", "I always eat breakfast."),
        ("Never commit to main.", "Always commit with a message."),
        ("Always run the tests.", "Never run the migrations."),
        ("Let's keep sessions in Redis.", "We should drop the sessions table."),
        ("Unsere Datenbank ist MySQL.", "Unser Cache ist Redis."),
        ("Notre base de données est MySQL.", "Notre cache est Redis."),
        ("Nuestra base de datos es MySQL.", "Nuestro editor es Vim."),
        ("Bitte immer Tabs verwenden.", "Bitte nie Semikolons verwenden."),
    ],
    "more about the same": [
        ("Our API is fast.", "Our API is written in Go."),
        ("Our API is documented in docs/api.md.", "Our API is versioned."),
        ("Our tests are slow.", "Our tests are in tests/unit."),
        ("My name is Ada.", "My name is spelled with one d."),
        ("Our release is on Friday.", "Our release is called Granite."),
        ("Our staging server is in Frankfurt.", "Our staging server is a t3.medium."),
        ("The problem is Redis.", "The problem is Kafka."),
        ("We use Redis.", "No, Redis is not the problem."),
        ("We decided to use Redis for sessions.", "Actually, sessions expire after 30 minutes."),
        ("Deploy to staging on Fridays, always.", "Actually, the staging database is called orders_stage."),
    ],
    "nobody asserted it": [
        ("We use Redis for sessions.", "Should we use Postgres instead of Redis for sessions?"),
        ("Should we use Redis for sessions?", "Let's use Postgres instead of Redis for sessions."),
        ("We use Redis.", "Maybe we should use Postgres instead of Redis."),
    ],
}


@pytest.mark.parametrize(("earlier", "later"), [pair for pairs in NEAR_MISSES.values() for pair in pairs])
def test_what_is_about_something_else_or_asserts_nothing_replaces_nothing(earlier: str, later: str) -> None:
    found = replaced(earlier, later)
    assert found
    assert not any(found)


def fact(text: str, **changes: object) -> Fact:
    """Return what a person decided."""
    values = {"priority": "high", "category": "decision", "trust": "user", "source_seqs": (9,), "said_at": NOON}
    return Fact(text, **{**values, **changes})  # type: ignore[arg-type]


def test_a_row_is_replaced_by_its_id_and_of_several_the_latest() -> None:
    rows = [observation("User decision: We use Redis.", 1), observation("User decision: We use Redis here.", 2)]
    [marked] = with_replaced([fact("User decision: We use Postgres instead of Redis.")], rows)
    assert marked.replaces == rows[1].id


def test_the_words_of_the_assistant_that_are_answered_replace_nothing() -> None:
    row = observation("User decision: We use Redis.")
    answer = fact("User correction: No, that is wrong. (in answer to: “I took Postgres instead of Redis.”)")
    assert [one.replaces for one in with_replaced([answer], [row])] == [None]


def test_only_a_person_replaces_and_only_what_was_asserted_is_replaced() -> None:
    new = "We use Postgres instead of Redis."
    row = observation("User decision: We use Redis.", category="decision")
    assert with_replaced([fact(new, trust="assistant")], [row])[0].replaces is None
    changed = observation("Changed redis.py", category="state_change", trust="assistant")
    issue = observation("Redis failed.", category="issue")
    assert with_replaced([fact(new)], [changed, issue])[0].replaces is None


@pytest.mark.parametrize(
    "hostile",
    ["instead of " * 20_000, "moved " * 50_000, "for " * 50_000, "our " * 50_000, "用" * 50_000, "では" * 50_000],
)
def test_hostile_text_is_judged_in_linear_time(hostile: str) -> None:
    begun = time.perf_counter()
    with_replaced([fact(hostile)], [observation(hostile + "Redis")])
    assert time.perf_counter() - begun < 5

"""Seeded texts of coding sessions: messages, and questions about them."""

import random

_SERVICES = tuple(
    "auth billing search ledger gateway mailer catalog worker indexer scheduler importer notifier".split()
)
_TOOLS = tuple("Redis Postgres Kafka nginx Terraform Grafana Vault Caddy Celery SQLite RabbitMQ Consul".split())
_DECISIONS = (
    "We decided that the {service} service uses {tool} on port {number}.",
    "Please remember: deploys of {service} go through {tool}, never by hand.",
    "The {service} tests failed because {tool} timed out after {number} ms; a retry with backoff fixed it.",
    "I renamed the {service} module, and {tool} now reads its settings from {service}/config_{number}.toml.",
    "Let's keep {tool} for {service} until the migration {number} is done.",
)
_QUESTIONS = (
    "Which port does the {service} service use with {tool}?",
    "How are deploys of {service} done?",
    "Why did the {service} tests fail with {tool}?",
    "Where does {tool} read the settings of {service}?",
    "What was decided about {tool} and {service}?",
)
_FILLING = tuple(
    "the handler reads each request and writes a row before it answers so a restart cannot lose what was said while the"
    " cache keeps only hashes and the log names every file that changed in this branch after review".split()
)


def message(chance: random.Random) -> str:
    """Return a message of a user or an agent: a fact, and mostly a few hundred characters around it."""
    words = chance.choices(_FILLING, k=min(int(chance.lognormvariate(3.6, 0.8)), 2_000))
    return f"{_filled(chance, _DECISIONS)} {' '.join(words)}."


def question(chance: random.Random) -> str:
    """Return a question that such messages answer."""
    return _filled(chance, _QUESTIONS)


def _filled(chance: random.Random, forms: tuple[str, ...]) -> str:
    number = chance.randrange(1_000, 10_000)
    return chance.choice(forms).format(service=chance.choice(_SERVICES), tool=chance.choice(_TOOLS), number=number)

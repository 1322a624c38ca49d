"""Secrets are masked before anything else happens to a text."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esker.server.core.ids import GATEWAY_IDS, Prefix, is_turn_id
from esker.server.core.json_input import Json
from esker.server.core.redaction import redact, redact_content, redact_json, redact_name
from esker.server.core.redaction.spans import GENERIC, MASK, RANDOM, UNKNOWN, Span, masked, masks_of, merged

_LOWER = "abcdefghijklmnopqrstuvwxyz0123456789" * 4
_HEX = "0123456789abcdef" * 8

# Each is made up, in the format that its maker documents.
SECRETS = {
    "anthropic": "sk-ant-api03-" + _LOWER[:40],
    "openai": "sk-proj-" + _LOWER[:48],
    "openai old": "sk-" + _LOWER[:48],
    "openrouter": "sk-or-v1-" + _HEX[:64],
    "github classic": "ghp_" + _LOWER[:36],
    "github app": "ghs_" + _LOWER[:36],
    "github fine-grained": "github_pat_" + _LOWER[:82],
    "gitlab": "glpat-" + _LOWER[:20],
    "aws key id": "AKIAIOSFODNN7EXAMPLE",
    "google api": "AIza" + _LOWER[:35],
    "google oauth": "ya29." + _LOWER[:60],
    "google client secret": "GOCSPX-" + _LOWER[:28],
    "slack bot": "xoxb-123456789012-" + _LOWER[:24],
    "slack app": "xapp-1-A012345-" + _LOWER[:24],
    "slack webhook": "https://hooks.slack.com/services/T00000000/B00000000/" + _LOWER[:24],
    "discord webhook": "https://discord.com/api/webhooks/123456789012345678/" + _LOWER[:60],
    "telegram": "1234567890:AA" + _LOWER[:33],
    "stripe": "sk_live_" + _LOWER[:24],
    "stripe webhook": "whsec_" + _LOWER[:32],
    "sendgrid": "SG." + _LOWER[:22] + "." + _LOWER[:43],
    "mailgun": "key-" + _HEX[:32],
    "twilio": "SK" + _HEX[:32],
    "npm": "npm_" + _LOWER[:36],
    "pypi": "pypi-" + _LOWER[:60],
    "hugging face": "hf_" + _LOWER[:34],
    "groq": "gsk_" + _LOWER[:52],
    "xai": "xai-" + _LOWER[:80],
    "replicate": "r8_" + _LOWER[:37],
    "digitalocean": "dop_v1_" + _HEX[:64],
    "databricks": "dapi" + _HEX[:32],
    "shopify": "shpat_" + _HEX[:32],
    "atlassian": "ATATT3" + _LOWER[:60],
    "linear": "lin_api_" + _LOWER[:40],
    "notion": "ntn_" + _LOWER[:46],
    "vault": "hvs." + _LOWER[:40],
    "age": "AGE-SECRET-KEY-1" + "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L" * 2,
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0." + _LOWER[:43],
    "esker": "esk_" + _LOWER[:43],
    "private key": "-----BEGIN RSA PRIVATE KEY-----\nMIIEow" + _LOWER + "\n-----END RSA PRIVATE KEY-----",
    "openssh key, cut off": "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk" + _LOWER,
}


@pytest.mark.parametrize("name", SECRETS)
def test_a_known_key_format_leaves_no_trace(name: str) -> None:
    secret = SECRETS[name]
    masked = redact(f"I put {secret} into the config.")
    assert "[redacted:" in masked
    body = max(secret.replace("\n", " ").split(), key=len)
    assert not any(body[i : i + 12] in masked for i in range(len(body) - 12) if body[i : i + 12].strip("-"))


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ('password = "hunter22!"', "hunter22"),
        ("DB_PASSWORD=hunter22!", "hunter22"),
        ("//registry.example.org/:_authToken=q8w7e6r5t4", "q8w7e6r5t4"),
        ("accessToken: q8w7e6r5t4", "q8w7e6r5t4"),
        ("mysql --password hunter22 db", "hunter22"),
        ("gh auth login --token=hunterabc", "hunterabc"),
        ("curl -s -u admin:hunterabc https://example.org", "hunterabc"),
        ("machine example.org login me password hunter22", "hunter22"),
        ("Cookie: theme=dark; session=hunterabc; x=1", "hunterabc"),
        ("Cookie: sid=abcdef123456; session=hunterabc; auth=1", "hunterabc"),
        ("curl -H 'Cookie: JSESSIONID=ABCDEF0123456789' x", "ABCDEF0123456789"),
        ("curl -u alice:'my secret pw' https://x", "secret pw"),
        ("curl -u a:first1234 -u b:second1234 https://x", "second1234"),
        ("curl \\\n  -u alice:hunter22 https://x", "hunter22"),
        ('--password "correct horse battery staple"', "horse"),
        ("mysql --password='Hunter 2 is long'", "is long"),
        ('--password "abc;def;ghi12345"', "ghi12345"),
        ("DBPassword: hunter22a", "hunter22a"),
        ("prefix_ghp_" + _LOWER[:36], _LOWER[:20]),
        ('  "api_key": "q8w7e6r5t4"', "q8w7e6r5t4"),
        ("export AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMIK7MDENG", "wJalrXUtnFEMI"),
        ("Authorization: Bearer 0123456789abcdef", "0123456789abcdef"),
        ("curl -H 'authorization: Basic dXNlcjpwYXNz'", "dXNlcjpwYXNz"),
        ("postgres://app:s3cr3t@db.example/app", "s3cr3t"),
        ("git clone https://me:tok3n@example.org/x.git", "tok3n"),
    ],
)
def test_a_secret_is_recognised_by_its_context(text: str, secret: str) -> None:
    assert secret not in redact(text)


@pytest.mark.parametrize(
    "text",
    [
        "pass --token expires after an hour",
        "we pass --password interactively every time",
        "  --secret string   The secret to use",
        "a -token bucket algorithm",
        "machine learning login flow password changes",
        "curl -fsSL https://get.x | sh && docker run --user 1000:100000 img",
        "The cookie: a session=expired-session means login",
        "--password=$DB_PASSWORD --token <your token>",
        "const token: string = readToken()",
        "The password must have twelve characters.",
        "def redact(text: str) -> str:",
        "git@github.com:owner/name.git",
        "https://example.org:8443/path",
        "sk-learn is a library, and task-force is a word",
        "uuid 3f2504e0-4f89-11d3-9a0c-0305e82c3301 and sha256 " + _HEX[:64],
        "max_tokens=4096",
        "import { createToken } from './token.js'",
        "6CxAzMs0BIy+Oza6US3v1VkqqdFIa+sk" + "oCQdtqGuYxNidmgSBWRdjSCEgwdRsPIk3eRwhw6BUMa" * 2 + "+Oza6US3v1VkqqdF==",
        "6CxAzMs0BIy-Oza6US3v1VkqqdFIa/AQ" + "oCQdtqGuYxNidmgSBWRdjSCEgwdRsPIk3eRwhw6BUMa" * 3 + "==",
    ],
)
def test_ordinary_text_is_unchanged(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Set API_TOKEN=abcDEF123456789xyz. Never deploy on Fridays.", "]. Never deploy on Fridays."),
        ("DB_PASSWORD=Winter2024!.\nNever deploy.", "].\nNever deploy."),
        ("token=abc1234567890def。次のリリースは木曜日。", "]。次のリリースは木曜日。"),
    ],
)
def test_the_sentence_behind_a_setting_stays_a_sentence_of_its_own(text: str, kept: str) -> None:
    assert redact(text).endswith(kept)


@pytest.mark.parametrize(
    "text",
    [
        "My new password is Trout77lake.",
        "Das Kennwort lautet Trout77lake.",
        "Le mot de passe est « Trout77lake ».",
        "Contraseña: ¡Trout77lake!",
        "La password è Trout77lake.",
        "A senha é Trout77lake, por enquanto.",
        "Het wachtwoord is Trout77lake.",
        "Lösenordet är Trout77lake.",
        "Пароль: Trout77lake",
        "Hasło to Trout77lake.",
        "密码是Trout77lake。",
        "パスワードは「Trout77lake」です。",
        "비밀번호는 Trout77lake 입니다.",
        "كلمة المرور هي Trout77lake",
        'Ana has the password "Trout77lake" for now.',
        'Ana tiene la contraseña "Trout77lake" por ahora.',
        "HASH_PEPPER = Trout77lake",
        "HASH_SALT=Trout77lake",
    ],
)
def test_a_password_in_a_sentence_of_any_language_is_masked(text: str) -> None:
    assert "Trout77" not in redact(text)


@pytest.mark.parametrize(
    "text",
    [
        "Das Passwort ist abgelaufen, und Kennwort: siehe oben",
        "Le mot de passe est trop court : 12 caractères au minimum.",
        "La contraseña: mínimo 12 caracteres y un símbolo.",
        "A senha é obrigatória.",
        "Il campo password è di tipo varchar.",
        "Пароль: минимум 12 символов",
        "密码是必填项，长度为12位。",
        "パスワードは12文字以上です。",
        "비밀번호는 12자 이상입니다.",
        "كلمة المرور هي حقل إلزامي",
        "The pepper is read from a file.",
        'The rule for a password "at least 12 characters" is old.',
    ],
)
def test_a_sentence_about_passwords_is_unchanged(text: str) -> None:
    assert redact(text) == text


PIECES = [
    "a word",
    "\n",
    'password = "',
    '"',
    "KEY=",
    "://u:",
    "@h",
    "curl -u a:",
    "Cookie: sid=",
    "; auth=",
    "hunter22",
]
PIECES += [
    "--password ",
    "das Passwort lautet ",
    "密码是",
    "contraseña: ",
    "machine h login me password ",
    "authorization: bearer ",
    "'",
    "token: ",
]


@given(st.lists(st.sampled_from([*SECRETS.values(), *PIECES])))
def test_masking_twice_changes_nothing(pieces: list[str]) -> None:
    once = redact(" ".join(pieces))
    assert redact(once) == once


def test_members_with_a_secret_name_are_masked() -> None:
    given: Json = {
        "password": "hunter22",
        "tokens": 5,
        "note": "see token",
        "nested": [{"api_key": "abcdef"}],
    }
    assert redact_json(given) == {
        "password": "[redacted:secret]",
        "tokens": 5,
        "note": "see token",
        "nested": [{"api_key": "[redacted:secret]"}],
    }


@pytest.mark.parametrize("escape", ["\\u0075", "%75", "\u200bu", "&#117;"])
def test_a_token_behind_an_escape_is_masked_beside_the_same_one_without(escape: str) -> None:
    token = "ghp_aB3xK9mQ7pL2vN8cR5tY6uI1oP4sD0fG2hJ7"
    escaped = token.replace("u", escape)
    for text in (f"{token} and {escaped}", f"{escaped} and {token}"):
        assert redact(text) == "[redacted:github-token] and [redacted:github-token]"


@pytest.mark.parametrize("place", [32_730, 32_768, 40_930, 40_960, 65_540])
def test_a_secret_is_masked_wherever_a_long_text_is_split(place: int) -> None:
    for secret in (
        'password = "hunter22!"',
        "the password is hunter22 again",
        SECRETS["private key"],
        "DB_PASSWORD=hunter22!",
        "curl -u me:hunter22 https://shop.example",
        "Cookie: theme=dark; sid=hunter22",
        "machine shop.example login me password hunter22",
    ):
        text = "word " * (place // 5) + "\n" + secret + "\n" + "word " * 600
        masked = redact(text)
        assert "hunter22" not in masked
        assert "MIIEow" not in masked
        assert masked.count("word") == text.count("word")


_IMAGE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ"
_SECRET_TEXT = "key " + SECRETS["github classic"]


@pytest.mark.parametrize("kind", ["image", "document"])
@pytest.mark.parametrize("nested", [False, True], ids=["in a message", "in a tool result"])
def test_the_data_of_an_image_or_document_is_kept_and_text_beside_it_is_masked(kind: str, nested: bool) -> None:
    source: Json = {"type": "base64", "media_type": "image/png", "data": _IMAGE, "note": _SECRET_TEXT}
    block: Json = {"type": kind, "source": source, "title": _SECRET_TEXT}
    content: Json = [{"type": "tool_result", "tool_use_id": "t1", "content": [block]} if nested else block]
    masked = str(redact_content(content))
    assert _IMAGE in masked
    assert SECRETS["github classic"] not in masked


@pytest.mark.parametrize(
    "block",
    [
        {"type": "tool_use", "id": "t1", "name": "Write", "input": {"type": "base64", "data": _SECRET_TEXT}},
        {
            "type": "document",
            "source": {"type": "base64", "media_type": "text/plain", "data": SECRETS["github classic"]},
        },
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": SECRETS["github classic"]}},
        {"type": "image", "source": {"type": "url", "url": "https://shop.example/" + SECRETS["github classic"]}},
        {"type": "tool_use", "id": "t1", "name": "Write", "input": {SECRETS["github classic"]: 1}},
        {"type": "other", "payload": {"list": [["a", SECRETS["github classic"]]]}},
    ],
)
def test_no_other_place_of_a_message_hides_a_secret(block: Json) -> None:
    assert SECRETS["github classic"] not in str(redact_content([block]))


def test_a_list_under_a_secret_name_is_masked() -> None:
    assert redact_json({"token": ["hunterabc", "hunterdef"]}) == {"token": ["[redacted:secret]"] * 2}


@pytest.mark.parametrize(("value", "masked"), [("hunt1", False), ("hunt12", True)])
def test_a_value_under_a_secret_name_is_masked_from_six_characters_on(value: str, masked: bool) -> None:
    assert redact_json({"password": value}) == {"password": "[redacted:secret]" if masked else value}


def test_a_name_with_a_secret_is_masked_and_stays_a_name_of_its_own() -> None:
    one, other = ("session-ghp_" + _LOWER[:35] + end for end in "ab")
    assert redact_name("plain") == "plain"
    assert redact_name(one) != redact_name(other)
    assert redact_name(one) == redact_name(one)
    assert _LOWER[:20] not in redact_name(one)
    assert len(redact_name("x" * 500 + one)) < 512


_RANDOM = "".join(("q7Rm", "2XvB", "9tLz", "4KdW", "8nHc", "3JpY"))  # in parts: this is no token of anybody


@pytest.mark.parametrize(
    "place",
    [
        "X_VALUE={}", '{{"deep": "{}"}}', 'const c = new Search("{}", 3)', "mytool login {}", "ser.{}", "api_{}.{}",
        "I got {} as the API key", "mit {} als Passwort", "\x1b[33m{}\x1b[0m done", "curl -u '{}:' https://shop.example",
        "{}",
    ],
)  # fmt: skip
def test_random_letters_and_digits_are_masked_in_the_place_of_a_value(place: str) -> None:
    text = place.replace("{}", _RANDOM)
    assert _RANDOM not in redact(text if "{{" not in place else text.replace("{{", "{").replace("}}", "}"))


@pytest.mark.parametrize(
    "text",
    [
        "documentId: {}", '"requestId": "{}"', "commit {}", 'ETag: "{}"', '<script nonce="{}" src="/a.js">',
        "cache key: {}", "https://shop.example/d/{}/edit", "sha384-{}", '{{"kty":"RSA","n":"{}"}}', "see call_{}",
        "/files/{}.png", "-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----", "_ZN{}",
        "Sec-WebSocket-Key: {}", "wallet address {}", 'data-sitekey="{}"', '<div data-testid="{}">',
        "sent to 0x742d35Cc6634C0532925a3b844Bc454e4438f44e",
    ],
)  # fmt: skip
def test_identifiers_hashes_and_public_data_stay_as_they_are(text: str) -> None:
    text = text.replace("{{", "{").replace("}}", "}").replace("{}", _RANDOM)
    assert redact(text) == text


def test_a_token_with_a_known_beginning_is_masked_though_its_letters_are_hexadecimal() -> None:
    for redacted in (redact, redact_name):
        assert "a1B2" not in str(redacted(f"hook ghp_{'a1B2' * 9}"))


def test_an_escape_is_read_with_its_line_and_those_around_it_in_a_text_of_any_length() -> None:
    filler = "the password field is empty\n" * 200
    secret = _RANDOM[:16] + "!a"
    for line in (
        f"pass\\u0077ord: {secret}",
        f"pass\\u0077ord:\n{secret}",
        f"x\n\nmysql -u root\\u0020-p{secret} shop",
    ):
        text = f"{filler}{line}\n{filler}"
        masked = redact(text)
        assert secret not in masked, line
        assert masked.startswith(filler)
        assert masked.endswith(filler)
        assert masked.replace(filler, "") == redact(f"{line}\n")


def test_a_uuid_is_masked_only_behind_the_name_of_a_key() -> None:
    uuid = "085c08dc-2ef4-43d2-a040-ec07339a94e4"
    for text in (f"My Splunk API key is {uuid}, use it", f"SNYK_TOKEN\n{uuid}\nok", f'snyk.Client("{uuid}")'):
        assert uuid not in redact(text)
    for text in ("api key {}", "HEROKU_KEY={}", "ENV HEROKU_KEY {}", 'HEROKU_KEY = "{}"', "my auth token {} works"):
        assert uuid not in redact(text.format(uuid)), text
    for text in (
        "the API key id is {}", "request {} failed", "value: {}", "{}", "key {}", "KEY={}", "the row key: {}",
        "KEY_ID={}", "TENANT_KEY={}", "IDEMPOTENCY_KEY={}", "orderKey: {}", "token id {}", "Key: {}", "token: id {}",
    ):  # fmt: skip
        assert redact(text.format(uuid)) == text.format(uuid)


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        (f"curl -u {_RANDOM[:16]}: https://shop.example", "curl -u [redacted:secret]: https://shop.example"),
        ("curl -u [redacted:secret] https://shop.example", "curl -u [redacted:secret] https://shop.example"),
        ("curl -u [redacted:token]:trout77lake x", "curl -u [redacted:token]:[redacted:secret] x"),
        ('curl -u "anna:" -H "Accept: a" x', 'curl -u "anna:" -H "Accept: a" x'),
        ("pnpm config set db.password Trout77lake", "pnpm config set db.password [redacted:secret]"),
        (f'api_key = "ser.{_RANDOM[:16]}"', 'api_key = "[redacted:secret]"'),
        ("API_TOKEN\nabcdefghij0123456789\nok", "API_TOKEN\n[redacted:secret]\nok"),
        ("the token\nabcdefghij0123456789\nok", "the token\nabcdefghij0123456789\nok"),
        ("API_TOKEN\nabcdefghijklmnopqrstuv\nok", "API_TOKEN\nabcdefghijklmnopqrstuv\nok"),
    ],
)
def test_a_value_behind_a_name_or_an_option_is_masked_once_and_whole(text: str, masked: str) -> None:
    assert redact(text) == masked


@pytest.mark.parametrize("word", [f"q7R_{_RANDOM[1:]}", f"Ab_{_RANDOM}", f"ab_{_RANDOM[:11]}-{_RANDOM[12:]}"])
def test_a_hash_in_base64_is_no_token_of_an_unknown_maker(word: str) -> None:
    assert len(word) == 27
    assert redact(f"see {word} here") == f"see {word} here"


@pytest.mark.parametrize("kinds", [(RANDOM, UNKNOWN), (UNKNOWN, GENERIC), (RANDOM, GENERIC), (GENERIC, "jwt")])
def test_a_mask_names_the_most_telling_kind_that_was_found(kinds: tuple[str, str]) -> None:
    for first, second in (kinds, kinds[::-1]):
        assert [span.kind for span in merged([Span(0, 9, first), Span(1, 12, second)])] == [kinds[1]]


def test_a_random_word_stays_where_it_is_an_id_or_a_name() -> None:
    call: Json = {"type": "tool_use", "id": _RANDOM, "name": "Bash", "input": {}}
    assert redact_content([call]) == [call]
    assert redact_name(_RANDOM) == _RANDOM


@pytest.mark.parametrize("escape", ["\\x1b[m", "\\x1b[H", "\\033[m", "\\u001b[m", "^[[m", "\\e[K"])
def test_a_written_colour_code_hides_no_secret(escape: str) -> None:
    assert redact(f"{escape}token=hunter2222{escape}").count("hunter2222") == 0


@pytest.mark.parametrize("prefix", get_args(Prefix))
def test_an_id_that_esker_gives_is_no_secret(prefix: str) -> None:
    assert redact_name(f"{prefix}_01m8q0yzvmfdx1djnes9bnhwdj") == f"{prefix}_01m8q0yzvmfdx1djnes9bnhwdj"


@pytest.mark.parametrize("name", [GATEWAY_IDS + "4b" * 16, "turn_" + "4b7e" * 8, "item_01kb3x9q" + "7c2d" * 5])
def test_an_id_of_a_client_stays_as_it_is(name: str) -> None:
    assert redact_name(name) == name


def test_only_a_hash_is_taken_for_an_id_of_the_gateway_which_is_stored_as_it_is() -> None:
    own = GATEWAY_IDS + "4b" * 16
    assert is_turn_id(own)
    others = [f"{own}f", f"{own}\n", f" {own}", GATEWAY_IDS + "4B" * 16, f"{GATEWAY_IDS}{_LOWER[:32]}"]
    assert not any(map(is_turn_id, others))


def test_calls_keep_ids_that_tell_them_apart() -> None:
    ids = [f"vrk_{mark}aB3xK9mQ7pL2vN8cR5t" for mark in "xy"]
    blocks: list[Json] = [{"type": "tool_use", "id": one, "name": "Run", "input": {}} for one in ids]
    blocks += [{"type": "tool_result", "tool_use_id": one, "content": [{"type": "text", "text": "ok"}]} for one in ids]
    assert redact_content(blocks) == blocks


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (
            "postgresql://app:aB3dE5fG7hJ9@db.internal:5432/prod?sslmode=require",
            "@db.internal:5432/prod?sslmode=require",
        ),
        (
            "git clone https://aB3dE5fG7hJ9kL1mN3pQ@git.example.com/o/r.git",
            "https://[redacted:url-password]@git.example",
        ),
        ("Bearer aB3dE5fG7hJ9kL1mN3pQ, sha256:" + "ab12" * 16, "sha256:" + "ab12" * 16),
    ],
)
def test_the_kind_that_a_mask_names_announces_no_secret(text: str, left: str) -> None:
    assert "aB3dE5" not in redact(text)
    assert left in redact(text)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9), st.sampled_from([GENERIC, "jwt"])), max_size=6))
def test_masks_are_found_again_in_the_text_that_was_masked(gaps: list[tuple[int, int, str]]) -> None:
    spans: list[Span] = []
    place = 0
    for gap, length, kind in gaps:
        spans.append(Span(place + gap, place + gap + length, kind))
        place += gap + length
    text = masked("x" * (place + 3), spans)
    assert [text[start:end] for start, end, _ in masks_of(spans)] == [f"{MASK}{span.kind}]" for span in spans]


_UUID = "0b6f8f3e-2f43-4a57-9d3c-0d1f7b1a2c3d"
_WRITTEN = ("{name}: {value}", "{name}={value}", '"{name}": "{value}"', "{name} = '{value}'", '  {name}: "{value}"')


@pytest.mark.parametrize("value", [_UUID, _HEX[5:37], _HEX[7:47]])
@pytest.mark.parametrize(
    "name",
    [
        "heroku_key",
        "mailgun-key",
        "sendgridKey",
        "twilio.key",
        "license_key",
        "licenceKey",
        "Heroku key",
        "DATADOG_KEY",
    ],
)
def test_a_uuid_or_hexadecimal_value_behind_the_key_of_a_maker_is_masked(name: str, value: str) -> None:
    written = [form.format(name=name, value=value) for form in _WRITTEN]
    assert [text for text in written if value in redact(text)] == []


_RECORD_KEYS = """
    primary foreign sort row cache public partition idempotency object group unique lookup hash range index dedup item
    message event routing storage file order config request job join lock query bucket natural surrogate composite
    candidate feature commit etag fingerprint blob image layer manifest snapshot chunk checkpoint artifact document doc
    thread entity record ref region batch issue page block parent trace
""".split()


def test_a_uuid_or_a_hash_behind_the_key_of_a_record_stays() -> None:
    names = [form.format(word) for word in _RECORD_KEYS for form in ("{}_key", "{}-key", "{}Key")]
    values = (_UUID, _HEX[5:37], _HEX[7:47])
    lines = [form.format(name=name, value=value) for name in names for form in _WRITTEN for value in values]
    changed = [line for line in lines if redact(line) != line]
    assert len(lines) > 2_000
    assert len(changed) <= len(lines) / 100, changed


@pytest.mark.parametrize("word", ["tenant", "user", "customer", "project", "stripe_customer", "heroku_app", "cart"])
def test_a_uuid_behind_the_key_of_a_record_stays_though_other_values_there_are_masked(word: str) -> None:
    assert redact(f"{word}_key: {_UUID}") == f"{word}_key: {_UUID}"
    assert "aB3dE5fG7hJ9kL1mN3pQ" not in redact(f"{word}_key: aB3dE5fG7hJ9kL1mN3pQ")

"""Facts that replace others by their wording alone: known answers in six languages, and near misses."""

import time
from datetime import timedelta

import pytest

from esker.server.core.conversation.records import Role
from esker.server.core.facts.records import Fact
from esker.server.core.text import labels
from esker.server.providers.extractive.observer import observe
from esker.server.providers.extractive.superseding import with_replaced
from tests.support.records import NOON, conversation, observation


def replaced(*said: str) -> list[str | None]:
    """Return the text that each fact of a person's sentences replaces."""
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
    "whatever the old one was to last": [
        ("We decided to keep sessions in Redis for 24 hours.", "Actually use Postgres instead of Redis for sessions"),
        ("Let's use Redis for now.", "Let's use Postgres instead of Redis for sessions."),
        ("Let's use Redis for two weeks.", "Let's use Postgres instead of Redis for sessions."),
        ("Let's use Redis until Friday.", "Let's use Postgres instead of Redis for sessions."),
        ("Wir nehmen Redis für 3 Tage.", "Wir nehmen Postgres statt Redis für die Sitzungen."),
        ("On va utiliser Redis pour deux semaines.", "On va utiliser Postgres au lieu de Redis pour les sessions."),
        ("Vamos a usar Redis para 3 días.", "Usaremos Postgres en lugar de Redis para las sesiones."),
    ],
    "another name in the same sentence, as a correction or from now on": [
        ("We keep sessions in Redis.", "Scratch that, keep sessions in Postgres."),
        ("We keep sessions in Redis for 24 hours.", "No, keep the sessions in Postgres."),
        ("We use Redis for sessions.", "We use Postgres for sessions now."),
        ("We use Redis for sessions.", "From now on we use Postgres for sessions."),
        ("We use Python 3.11 for the API.", "We use Python 3.12 for the API now."),
        ("I live in Berlin.", "I live in Paris now."),
        ("Wir nehmen Redis für die Sitzungen.", "Wir nehmen jetzt Postgres für die Sitzungen."),
        ("Wir nehmen Redis für die Sitzungen.", "Wir nehmen ab jetzt Postgres für die Sitzungen."),
        ("Nous utilisons Redis pour les sessions.", "Désormais nous utilisons Postgres pour les sessions."),
        ("Usamos Redis para las sesiones.", "Ahora usamos Postgres para las sesiones."),
        ("我们用Redis存会话。", "我们现在用Postgres存会话。"),
        ("セッションにはRedisを使います。", "今はセッションにはPostgresを使います。"),
    ],
    "moved": [
        ("We keep sessions in Redis.", "Let's move sessions to Postgres."),
        ("We use Redis for sessions.", "We've switched sessions over to Postgres."),
        ("Sessions live in Redis.", "We migrated the sessions to Postgres."),
        ("Our sessions are kept in Redis.", "We moved our sessions to Postgres last week."),
        ("We use Jest for unit tests.", "Let's switch to Vitest for the unit tests."),
        ("We use Postgres for sessions.", "Let's go back to Redis for sessions."),
        ("Die Sitzungen liegen in Redis.", "Lass uns die Sitzungen nach Postgres verschieben."),
        ("Nous utilisons Redis pour les sessions.", "Nous migrons les sessions vers Postgres."),
        ("Usamos Redis para las sesiones.", "Vamos a migrar las sesiones a Postgres."),
        ("我们用Redis存会话。", "我们把会话改到Postgres。"),
    ],
    "another amount": [
        ("Sessions stay in Redis for 24 hours.", "Sessions stay in Redis for 48 hours."),
        ("Sessions expire after 1 hour.", "Sessions expire after 2 days."),
        ("The port is 8080.", "The port is 9090."),
        ("The Python version is 3.11.", "The Python version is 3.12."),
        ("The upload limit is set to 50.", "The upload limit is set to 80."),
        ("Uploads must be below 10 MB.", "Uploads must be below 20 MB."),
        ("Our plan costs 30 euros a month.", "Our plan costs 40 euros a month."),
        ("Unsere Sitzungen bleiben 24 Stunden in Redis.", "Unsere Sitzungen bleiben 48 Stunden in Redis."),
        ("Nos sessions expirent après 24 heures.", "Nos sessions expirent après 48 heures."),
        ("Las sesiones duran 24 horas.", "Las sesiones duran 48 horas."),
        ("会话在Redis里保留24小时。", "会话在Redis里保留48小时。"),
        ("セッションの期限は24時間です。", "セッションの期限は48時間です。"),
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
    "a sentence about the change, then the new value": [
        ("Our domain is orchard.io.", "Our domain changed: it is orchard.dev."),
        ("The demo is on 3 June.", "We pushed the demo back a week, to 10 June."),
        ("Das Lager ist in Kassel.", "Das Lager ist umgezogen, es ist jetzt in Erfurt."),
        ("Our tax id begins with DE812.", "I gave you a wrong number. Our tax id begins with DE821."),
    ],
    "an order that fixes an amount": [
        ("Set the session lifetime to 30 minutes, please.", "30 minutes is too short for a session, make it 45."),
        ("The importer commits every 1000 rows.", "Let the importer commit every 250 rows."),
        ("Лимит загрузки — 20 МБ.", "Увеличь лимит загрузки до 50 МБ."),
        ("タイムアウトは30秒です。", "タイムアウトを45秒にしてください。"),
    ],
    "whose task it is": [
        ("Sofia runs the support team.", "Sofia is leaving; Amir runs the support team from Monday."),
        ("Frau Brandt ist für die Abrechnung zuständig.", "Herr Yilmaz hat die Abrechnung von Frau Brandt übernommen."),
        ("Marcos es el responsable de ventas.", "Marcos se fue; ahora Lucía es la responsable de ventas."),
        ("负责人是张伟。", "负责人换成李娜了。"),
    ],
    "Korean": [
        ("서버는 Java 11을 사용합니다.", "이제 서버는 Java 17을 사용합니다."),
        ("사무실은 서울에 있습니다.", "사무실을 서울에서 부산으로 옮겼습니다."),
        ("회의는 월요일 10시입니다.", "회의가 수요일 14시로 변경되었습니다."),
    ],
    "another name, purpose or day": [
        ("The mail service is called pigeon.", "We renamed pigeon to courier yesterday."),
        ("I prefer single quotes in TypeScript.", "From now on use double quotes in TypeScript."),
        ("The export writes CSV files.", "The export no longer writes CSV, it writes Parquet files."),
        ("The report is due on the 9th.", "They extended the deadline of the report until the 23rd."),
        ("Минимальная версия Android — 8.", "Поднимаем минимальную версию Android до 10."),
        ("Мы используем Jenkins.", "Мы заменили Jenkins на GitLab CI."),
    ],
    "Portuguese": [
        ("O deploy é feito com Docker Swarm.", "Migramos o deploy do Docker Swarm para o Kubernetes."),
        ("O tamanho máximo do lote é 200.", "Aumenta o tamanho máximo do lote para 500."),
        ("Usamos npm.", "Trocamos npm por pnpm."),
        ("Usamos Jest nos testes.", "Não usamos mais Jest nos testes, usamos Vitest."),
        ("Usamos Redis para o cache.", "Agora usamos Valkey para o cache."),
        ("Os relatórios são gerados em PDF.", "Os relatórios passam a ser gerados em HTML."),
        ("O prazo é 3 de maio.", "O prazo foi prorrogado para 10 de maio."),
        ("O escritório fica em Lisboa.", "O escritório mudou, agora fica no Porto."),
        ("A Ana é responsável pelo suporte.", "O Bruno é agora responsável pelo suporte."),
    ],
    "what is done with something": [
        ("スタイルはSassで書きます。", "今後スタイルはTailwindで書きます。"),
        ("Wir formatieren den Code mit Prettier.", "Ab jetzt formatieren wir den Code mit Biome."),
        ("Fehlermeldungen schreiben wir auf Deutsch.", "Fehlermeldungen schreiben wir ab jetzt auf Englisch."),
        ("Fehlermeldungen schreiben wir auf Deutsch.", "Fehlermeldungen bitte doch auf Englisch."),
        ("On lance les tests avec unittest.", "On passe à pytest pour les tests, unittest est trop verbeux."),
        ("Релизы собираем из ветки master.", "Теперь релизы собираем из ветки main."),
    ],
    "what is put, written or returned": [
        ("We authenticate with session cookies, no JWT.", "We authenticate with JWT from now on."),
        ("We write all logs to a file.", "We write all logs to stdout now."),
        ("Put new SQL migrations into db/migrations.", "New SQL migrations go into core/migrations now."),
        ("Guardamos los adjuntos en disco.", "A partir de ahora guardamos los adjuntos en S3."),
        ("L'API renvoie du XML.", "L'API renvoie maintenant du JSON."),
        ("Les identifiants sont des entiers.", "On passe des entiers aux UUID pour les identifiants."),
        ("Die Logs schreiben wir in eine Datei.", "Die Logs schreiben wir ab jetzt nach stdout."),
        ("Логи пишем в файл.", "Теперь логи пишем в stdout."),
        ("接口返回XML格式。", "接口改成返回JSON格式。"),
        ("APIはXMLを返します。", "今後APIはJSONを返します。"),
        ("Let's swap Loguru for Structlog in the worker.", "Go back to Loguru in the worker."),
    ],
    "what is needed, or may be": [
        ("Releases need 2 approvals.", "1 approval is enough for releases now."),
        ("レビューは2人の承認が必要です。", "今後レビューは1人の承認で十分です。"),
        ("Ревью требует 2 одобрения.", "Теперь для ревью достаточно 1 одобрения."),
        ("合并需要2个人批准。", "以后合并只要1个人批准就够了。"),
        ("The database may grow to 200 GB.", "The database may grow to 500 GB now."),
    ],
    "exchanged, or with a word that can be a verb": [
        ("We log with loguru in the worker.", "Swap loguru for structlog in the worker please."),
        ("We decided to swap Loguru for Structlog.", "We use Logbook instead of Structlog."),
        ("Usamos npm.", "Cambiamos npm por pnpm."),
        ("A fila usa RabbitMQ.", "Trocamos o RabbitMQ pelo SQS na fila."),
        ("The nightly export runs at 02:00 UTC.", "I moved the nightly export to 04:30 UTC."),
        ("管理后台的端口是8080。", "把管理后台的端口改成8090。"),
    ],
    "moved, in other languages": [
        ("El servidor está en Madrid.", "El servidor se trasladó a Valencia."),
        ("Срок сдачи проекта — 3 мая.", "Срок сдачи проекта продлили до 17 мая."),
        ("オフィスは渋谷にあります。", "オフィスは新宿に移転しました。"),
        ("我们的网站部署在阿里云。", "网站已经从阿里云迁移到腾讯云了。"),
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
    "what is put, written or returned, of something else": [
        ("We sell books in Germany.", "We sell books in France now."),
        ("We write logs to a file.", "We write metrics to Prometheus now."),
        ("The API returns XML.", "The export returns JSON now."),
        ("We log errors to Sentry.", "We log requests to Loki now."),
        ("We publish the package on npm.", "We publish the docs on Pages now."),
        ("We write logs to a file.", "On staging we write logs to stdout now."),
        ("Guardamos los adjuntos en disco.", "Guardamos las facturas en S3 ahora."),
        ("We support Windows and Linux.", "We dropped Windows support."),
    ],
    "elsewhere, behind a comma": [
        ("The cache TTL is 300 seconds.", "On staging, the cache TTL is 10 seconds now."),
        ("Les logs sont conservés 30 jours.", "Sur la recette, les logs sont conservés 7 jours maintenant."),
        ("Der Timeout ist 30 Sekunden.", "In der Testumgebung: der Timeout ist jetzt 60 Sekunden."),
        ("El límite es de 100.", "En el entorno de pruebas, el límite es ahora de 1000."),
        ("タイムアウトは30秒です。", "検証環境では、タイムアウトを60秒に変更しました。"),
        ("The importer commits every 1000 rows.", "Let the exporter commit every 250 rows."),
    ],
    "something else, in Portuguese": [
        ("O timeout é de 30 segundos.", "Nos testes o timeout agora é de 60 segundos."),
        ("Usamos Redis para cache.", "Usamos Kafka para filas agora."),
        ("A Ana lidera o suporte.", "O Bruno lidera agora as vendas."),
        ("A reunião é na segunda-feira.", "A reunião de vendas foi adiada para quinta-feira."),
        ("Nosso banco é MySQL.", "O pessoal queria que o nosso banco fosse Postgres."),
        ("Usamos Jest nos testes.", "Se o Jest ficar lento, trocamos para o Vitest."),
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
    "used side by side": [
        ("We use Redis for sessions.", "We use Postgres for sessions."),
        ("We use Redis for sessions.", "We now also use Postgres for sessions."),
        ("We use Redis for sessions.", "We use Redis and Postgres for sessions now."),
        ("We use Slack.", "We use GitHub now."),
        ("We sell in Germany.", "We sell in France now."),
        ("Wir nehmen Redis für die Sitzungen.", "Wir nehmen jetzt auch Postgres für die Sitzungen."),
        ("Wir nutzen Slack.", "Wir nutzen jetzt GitHub."),
        ("Nous utilisons Redis pour les sessions.", "Nous utilisons Postgres pour les sessions."),
        ("Usamos Redis para las sesiones.", "Ahora también usamos Postgres para las sesiones."),
        ("我们用Redis存会话。", "我们现在也用Postgres存会话。"),
        ("セッションにはRedisを使います。", "今はセッションにはPostgresも使います。"),
    ],
    "now, for something else or elsewhere": [
        ("We use Redis for sessions.", "We use Memcached for the cache now."),
        ("In Python we use Ruff.", "In TypeScript we use ESLint now."),
        ("In Germany we keep sessions in Redis.", "In France we keep sessions in Redis now."),
        ("In Germany we keep all sessions on site.", "In France we keep all sessions on site now."),
        ("We run checks in Python on Jenkins.", "We run checks in Go on Jenkins now."),
        ("We use Redis in staging.", "We use Postgres in production now."),
        ("We use Redis for sessions.", "For now we use Postgres for sessions."),
        ("We don't use Redis for sessions.", "We don't use Kafka for sessions now."),
        ("Ada lives in Berlin.", "Bob lives in Paris now."),
        ("Ada uses Vim for notes.", "Bob uses Emacs for notes now."),
        ("We do not use Redis for sessions.", "We use Postgres for sessions now."),
        ("We use Redis for sessions.", "We do not use Kafka for sessions now."),
        ("Wir nehmen Redis für die Sitzungen.", "Wir nehmen jetzt Memcached für den Cache."),
        ("Nous utilisons Redis pour les sessions.", "Désormais nous utilisons Memcached pour le cache."),
        ("Usamos Redis para las sesiones.", "Ahora usamos Memcached para el caché."),
        ("我们用Redis存会话。", "我们现在用Memcached做缓存。"),
        ("セッションにはRedisを使います。", "今はキャッシュにはMemcachedを使います。"),
    ],
    "something else is moved, or not yet": [
        ("We keep sessions in Redis.", "Let's move orders to Postgres."),
        ("We keep admin sessions in Redis.", "Let's move sessions to Postgres."),
        ("We use Redis for sessions.", "Let's move sessions to Postgres next year."),
        ("We use Redis for sessions.", "Let's not move sessions to Postgres."),
        ("We use Redis for sessions.", "Moving sessions to Postgres would cost a week."),
        ("We use Redis for sessions.", "If we move sessions to Postgres, we must test it."),
        ("The meeting is in Berlin.", "Let's move the meeting to Monday."),
        ("The meeting room is in Berlin.", "Let's move the meeting to Paris."),
        ("We use Redis for sessions.", "We moved the sessions team to Berlin."),
        ("We use Redis for sessions.", "Let's move sessions to Postgres for staging."),
        ("Wir nehmen Redis für die Sitzungen.", "Lass uns die Bestellungen nach Postgres verschieben."),
        ("Nous utilisons Redis pour les sessions.", "Nous migrons les commandes vers Postgres."),
        ("Usamos Redis para las sesiones.", "Vamos a migrar los pedidos a Postgres."),
        ("我们用Redis存会话。", "我们把订单改到Postgres。"),
    ],
    "a number that is a name, or each has its own": [
        ("Job 3 is slow in CI.", "Job 4 is slow in CI."),
        ("Step 3 takes 5 minutes.", "Step 4 takes 5 minutes."),
        ("We are at step 3 of the plan.", "We are at step 4 of the plan."),
        ("The API runs on port 8080.", "The admin page runs on port 9090."),
        ("The port is 8080 in staging.", "The port is 9090 in production."),
        ("Invoice 17 is 300 euros.", "Invoice 18 is 400 euros."),
        ("Sessions stay in Redis for 24 hours.", "Orders stay in Redis for 48 hours."),
        ("Sessions stay in Redis for 24 hours.", "Sessions stay in Postgres for 48 hours."),
        ("Sessions stay for 24 hours with 3 replicas.", "Sessions stay for 48 hours with 5 replicas."),
        ("The build took 30 seconds.", "The build took 40 seconds."),
        ("One server has 8 GB.", "One server has 16 GB."),
        ("The difference is 3 seconds.", "The difference is 5 seconds."),
        ("The cache is limited to 5 minutes.", "The cache is limited to 5 MB."),
        ("Unser Test 3 ist langsam.", "Unser Test 4 ist langsam."),
        ("Unsere Sitzungen bleiben 24 Stunden.", "Unsere Bestellungen bleiben 48 Stunden."),
        ("Nos sessions durent 24 heures.", "Nos commandes durent 48 heures."),
        ("Las sesiones duran 24 horas.", "Los pedidos duran 48 horas."),
        ("任务3失败是常见的。", "任务4失败是常见的。"),
        ("会话保留24小时。", "订单保留48小时。"),
    ],
    "nobody asserted it": [
        ("We use Redis for sessions.", "Do we use Postgres for sessions now?"),
        ("Sessions stay in Redis for 24 hours.", "Do sessions stay in Redis for 48 hours?"),
        ("We keep sessions in Redis.", "Shall we move sessions to Postgres?"),
        ("We keep sessions in Redis.", "Maybe we should move sessions to Postgres."),
        ("Wir nehmen Redis für die Sitzungen.", "Nehmen wir jetzt Postgres für die Sitzungen?"),
        ("我们用Redis存会话。", "我们现在用Postgres存会话吗？"),
        ("We use Redis for sessions.", "Should we use Postgres instead of Redis for sessions?"),
        ("Should we use Redis for sessions?", "Let's use Postgres instead of Redis for sessions."),
        ("We use Redis.", "Maybe we should use Postgres instead of Redis."),
    ],
    "a change that did not happen, happened elsewhere, or is for a while": [
        ("We use Redis.", "Don't switch from Redis to Valkey."),
        ("We use Redis.", "We almost switched from Redis to Valkey."),
        ("We use Redis.", "The migration from Redis to Valkey was cancelled."),
        ("We use Redis.", "In my last job we switched from Redis to Valkey."),
        ("The mobile app uses SQLite for its cache.", "Back in 2019 the mobile app used Realm for its cache."),
        ("The build takes 12 minutes.", "The build should take 4 minutes."),
        ("The timeout is 30 seconds.", "Raising the timeout to 60 seconds did not help."),
        ("Standup is at 9:30.", "Standup is at 11:00 today."),
        ("Standup ist um 9:30.", "Standup ist heute um 11:00."),
        ("The main branch is protected.", "The release branch is no longer protected."),
        ("La reunión es el lunes.", "La reunión de ventas se movió al jueves."),
        ("The log level is 3.", "For the next hour only, set the log level to 5."),
        ("우리는 MySQL을 사용합니다.", "동료가 MySQL에서 MariaDB로 바꿔야 한다고 말했습니다."),
        ("서버는 Java 11을 사용합니다.", "부하가 늘면 서버는 Java 17을 사용합니다."),
        ("Le serveur est à Paris.", "Le serveur de test est à Lyon maintenant."),
    ],
}


@pytest.mark.parametrize(("earlier", "later"), [pair for pairs in NEAR_MISSES.values() for pair in pairs])
def test_a_fact_about_something_else_or_without_an_assertion_replaces_nothing(earlier: str, later: str) -> None:
    found = replaced(earlier, later)
    assert found
    assert not any(found)


@pytest.mark.parametrize(
    ("earlier", "later"),
    [pair for kind, pairs in NEAR_MISSES.items() if kind != "nobody asserted it" for pair in pairs],
)
def test_a_ruling_does_not_replace_another_ruling(earlier: str, later: str) -> None:
    row = observation(f"User decision: {earlier}", category="decision")
    assert with_replaced([fact(f"User decision: {later}")], [row])[0].replaces is None


@pytest.mark.parametrize(
    "back", ["We use Redis for sessions again.", "We use Redis for sessions now.", "We're back to Redis for sessions."]
)
def test_an_old_value_comes_back_when_the_return_is_marked(back: str) -> None:
    row = observation("User correction: Actually use Postgres instead of Redis for sessions.", category="decision")
    assert with_replaced([fact(f"User said: {back}")], [row])[0].replaces == row.id
    assert with_replaced([fact("User correction: No, use Redis for sessions.")], [row])[0].replaces == row.id
    assert with_replaced([fact("User said: We use Redis for sessions.")], [row])[0].replaces is None


def fact(text: str, **changes: object) -> Fact:
    """Return a decision of a person."""
    values = {
        "priority": "high",
        "category": "decision",
        "trust": "user",
        "source_seqs": (9,),
        "said_at": NOON + timedelta(hours=1),
    }
    return Fact(text, **{**values, **changes})  # type: ignore[arg-type]


def test_a_fact_names_the_ids_of_the_rows_that_it_replaces_the_latest_first() -> None:
    rows = [observation("User decision: We use Redis.", 1), observation("User decision: We use Redis here.", 2)]
    [marked] = with_replaced([fact("User decision: We use Postgres instead of Redis.")], rows)
    assert marked.replaces == f"{rows[1].id}\n{rows[0].id}"


def test_an_agents_report_of_another_value_of_an_identifier_replaces_the_earlier_report() -> None:
    row = observation("Assistant found: I raised `MAX_UPLOAD_MB` from 10 to 50.", trust="assistant")
    later = fact("Assistant found: `MAX_UPLOAD_MB` is 200 now.", trust="assistant", category="fact")
    other = fact("Assistant found: `MAX_UPLOAD_PARTS` is 200 now.", trust="assistant", category="fact")
    assert [one.replaces for one in with_replaced([later], [row])] == [row.id]
    assert [one.replaces for one in with_replaced([other], [row])] == [None]


def test_a_report_that_a_value_was_added_to_a_file_goes_with_the_value() -> None:
    named = observation("User decision: The field is called customer_ref.", 1, category="decision")
    report = observation("Outcome: Added customer_ref to orders/v2.yaml.", 2, trust="assistant", category="outcome")
    renamed = fact("User correction: No, the field is called buyer_ref.")
    [marked] = with_replaced([renamed], [named, report])
    assert marked.replaces == f"{named.id}\n{report.id}"


def test_the_quoted_words_of_the_assistant_replace_nothing() -> None:
    row = observation("User decision: We use Redis.")
    answer = fact("User correction: No, that is wrong. (in answer to: “I took Postgres instead of Redis.”)")
    assert [one.replaces for one in with_replaced([answer], [row])] == [None]


def test_only_a_persons_fact_replaces_and_only_an_assertion_is_replaced() -> None:
    new = "We use Postgres instead of Redis."
    row = observation("User decision: We use Redis.", category="decision")
    assert with_replaced([fact(new, trust="assistant")], [row])[0].replaces is None
    changed = observation("Changed redis.py", category="state_change", trust="assistant")
    issue = observation("Redis failed.", category="issue")
    assert with_replaced([fact(new)], [changed, issue])[0].replaces is None


@pytest.mark.parametrize(
    "hostile",
    [
        *("instead of " * 5_000, "moved " * 10_000, "for " * 10_000, "our " * 10_000, "用" * 10_000, "では" * 10_000),
        *("for 1 " * 10_000, "no, " * 10_000, "now " * 10_000, "is 1 h " * 5_000, "is 1 h " * 42),
        *("move A." * 42, "in A.A.A " * 33, "switch a to A for " * 16, "no, actually " * 23),
    ],
)
def test_hostile_text_is_judged_in_linear_time(hostile: str) -> None:
    begun = time.process_time()
    with_replaced([fact(hostile)], [observation(hostile + "Redis")])
    assert time.process_time() - begun < 5


@pytest.mark.parametrize(
    ("reported", "replaces"),
    [
        ("Assistant found: The retry limit is 3.", True),
        ("Assistant found: The retry limit is 3; the queue lives in memory", False),
        ("User said: The retry limit is 3; the queue lives in memory", True),
    ],
)
def test_a_persons_statement_replaces_no_report_of_several_things(reported: str, replaces: bool) -> None:
    trust = "user" if reported.startswith("User") else "assistant"
    row = observation(reported, category="fact", trust=trust)
    said = observe(conversation(("user", "The retry limit is 5 now, not 3."))).facts
    assert [bool(fact.replaces) for fact in with_replaced(said, [row])] == [replaces]


@pytest.mark.parametrize(
    ("answered", "replaces"),
    [("It is 30 minutes.", True), ("OK.", True), ("The spinner appears after 5 minutes.", False)],
)
def test_a_value_that_answers_another_number_replaces_nothing(answered: str, replaces: bool) -> None:
    turns: list[tuple[Role, str]] = [
        ("user", "The session lifetime is 30 minutes."),
        ("assistant", answered),
        ("user", "Make it 45 minutes."),
    ]
    *_, last = observe(conversation(*turns)).facts
    assert "45 minutes" in last.content
    assert bool(last.replaces) == replaces


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("`user_events` is partitioned by month.", "Partition `user_events_archive` by year instead of by month."),
        ("El límite es de 100 por minuto.", "En el entorno de pruebas sube el límite a 1000 por minuto."),
    ],
)
def test_a_change_of_another_thing_or_elsewhere_says_nothing_of_the_earlier_one(earlier: str, later: str) -> None:
    *_, last = observe(conversation(("user", earlier), ("assistant", "All right."), ("user", later))).facts
    assert later.rstrip(".") in last.content
    assert labels.UNLIKE not in last.content
    assert last.replaces is None


def test_an_agents_report_of_a_move_replaces_what_it_found_before() -> None:
    found = observation("Assistant found: The flags live in `config/flags.yml`.", category="fact", trust="assistant")
    moved = "Outcome: Moved the flags from `config/flags.yml` to the table `feature_flags`."
    report = fact(moved, trust="assistant", category="outcome")
    assert [one.replaces for one in with_replaced([report], [found])] == [found.id]
    others = "Outcome: Moved the limits from `config/limits.yml` to the table `limits`."
    assert with_replaced([fact(others, trust="assistant", category="outcome")], [found])[0].replaces is None


def test_the_words_of_others_that_name_only_the_former_value_go_with_it() -> None:
    turns: list[tuple[Role, str]] = [
        ("user", "Call the field customer_ref, a string."),
        ("assistant", "Added customer_ref to v2.yaml."),
        ("user", "Wait, Ines from billing says account_ref, because of the contracts. Take account_ref."),
        ("assistant", "All right."),
        ("user", "buyer_ref it is."),
    ]
    *_, last = observe(conversation(*turns)).facts
    assert last.content.startswith("User said: buyer_ref it is.")
    assert "Ines from billing says account_ref" in (last.replaces or "")

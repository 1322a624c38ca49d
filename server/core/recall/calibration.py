"""Calibrates the cosines of an embedding model, once for each space.

Models differ in the cosine of unrelated texts: 0.05 on average for the bundled model, 0.7 for others. A model that was
not trained on a script finds all texts in it similar, so that its ranking of them is noise. So each model embeds pairs
of question and answer in several scripts. The cosines between a question and the answers to other questions give the
mean and deviation of unrelated texts; the z-score of the right answers gives the weight of vector search beside
keyword search.
"""

import math
import re
from collections.abc import Mapping, Sequence
from statistics import fmean, pstdev

from esker.server.core.records import UNKNOWN, Calibration, Calibrations
from esker.server.core.text.languages import ENGLISH, language_of
from esker.server.core.words.scripts import CJK

_ANSWERED: Mapping[str, Sequence[tuple[str, str]]] = {
    "english": (
        ("Which package manager do we use?", "Dependencies are installed with pnpm, never with npm."),
        ("When does the product launch?", "The release is planned for the second week of May."),
        ("Where does the customer live?", "Her flat is in the old town of Lisbon, near the harbour."),
        ("Why did the nightly job fail?", "The backup stopped because the disk was full."),
        ("What does she like to eat?", "She is fond of spicy noodles and hates mushrooms."),
        ("How are users signed in?", "Authentication is done with short-lived tokens from the identity server."),
        ("Which database holds the orders?", "All purchases are kept in Postgres, one schema for each shop."),
        ("What did the doctor say?", "The physician told him to rest his knee for six weeks."),
        ("How long is the warranty?", "Machines are repaired free of charge for three years."),
        ("Who teaches the evening class?", "Pottery on Thursdays is led by Mr Okafor."),
        ("What breed is the dog?", "Their puppy is a whippet from a kennel in Wales."),
        ("How do we measure the speed?", "Latency is recorded as a histogram and shown on the dashboard."),
    ),
    "european": (
        ("Welchen Paketmanager benutzen wir?", "Abhängigkeiten werden mit pnpm installiert, nie mit npm."),
        ("Wann kommt die neue Version heraus?", "Die Veröffentlichung ist für die zweite Maiwoche geplant."),
        ("Warum ist der nächtliche Auftrag gescheitert?", "Die Sicherung brach ab, weil die Platte voll war."),
        ("Was hat der Arzt gesagt?", "Der Orthopäde riet ihm, das Knie sechs Wochen zu schonen."),
        ("Où habite la cliente ?", "Son appartement se trouve dans la vieille ville, près du port."),
        ("Qu'est-ce qu'elle aime manger ?", "Elle adore les nouilles épicées et déteste les champignons."),
        ("Combien de temps dure la garantie ?", "Les machines sont réparées gratuitement pendant trois ans."),
        ("¿Qué base de datos guarda los pedidos?", "Todas las compras están en Postgres, un esquema por tienda."),
        ("¿Quién da la clase de la tarde?", "La cerámica de los jueves la enseña el señor Okafor."),
        ("¿De qué raza es el perro?", "Su cachorro es un galgo de un criadero de Gales."),
    ),
    "cyrillic": (
        ("Какой менеджер пакетов мы используем?", "Зависимости ставятся через pnpm, никогда через npm."),
        ("Когда выйдет новая версия?", "Выпуск запланирован на вторую неделю мая."),
        ("Где живёт клиентка?", "Её квартира в старом городе, рядом с портом."),
        ("Почему упала ночная задача?", "Резервное копирование остановилось, потому что диск был полон."),
        ("Что она любит есть?", "Ей нравится острая лапша, а грибы она терпеть не может."),
        ("Что сказал врач?", "Доктор велел шесть недель беречь колено."),
        ("Сколько длится гарантия?", "Машины бесплатно чинят три года."),
        ("Какой породы собака?", "Их щенок — уиппет из питомника в Уэльсе."),
    ),
    "cjk": (
        ("我们用哪个包管理器？", "依赖只用pnpm安装，从不用npm。"),
        ("新版本什么时候发布？", "计划在五月的第二个星期上线。"),
        ("客户住在哪里？", "她的公寓在老城区，靠近港口。"),
        ("夜间任务为什么失败了？", "因为磁盘满了，备份中断了。"),
        ("彼女は何を食べるのが好きですか？", "辛い麺が大好きで、きのこは苦手だ。"),
        ("医者は何と言いましたか？", "先生は六週間膝を休ませるようにと話した。"),
        ("保証期間はどのくらいですか？", "機械は三年間無料で修理される。"),
        ("강아지는 어떤 품종인가요?", "그 강아지는 웨일스에서 온 휘핏이다."),
        ("주문은 어느 데이터베이스에 있나요?", "모든 구매 내역은 Postgres에 저장된다."),
        ("저녁 수업은 누가 가르치나요?", "목요일 도자기 수업은 오카포르 씨가 맡는다."),
    ),
}
# Mean z-score of right answers at which vector search gets weight 0 (`_WORTHLESS`) and weight 1 (`_FULL`); linear in
# between.
_WORTHLESS = 1.0
_FULL = 4.0
_SCRIPTS = (
    ("cjk", re.compile(f"[{CJK}]")),
    ("cyrillic", re.compile("[\u0400-\u04ff]")),
    ("english", re.compile("[A-Za-z\u00c0-\u024f]")),
)
_LETTER = re.compile(r"[^\W\d_]")


def calibration_texts() -> tuple[list[str], list[str]]:
    """Return the questions and the texts, in order, whose vectors `calibrate` needs."""
    pairs = [pair for answered in _ANSWERED.values() for pair in answered]
    return [question for question, _ in pairs], [answer for _, answer in pairs]


def calibrate(questions: Sequence[Sequence[float]], answers: Sequence[Sequence[float]]) -> dict[str, Calibration]:
    """Return the calibration for each script, from the unit vectors of `calibration_texts`."""
    found: dict[str, Calibration] = {}
    start = 0
    for script, answered in _ANSWERED.items():
        some = slice(start, start := start + len(answered))
        found[script] = _calibration(questions[some], answers[some])
    return found


def _calibration(questions: Sequence[Sequence[float]], answers: Sequence[Sequence[float]]) -> Calibration:
    right = [_dot(question, answer) for question, answer in zip(questions, answers, strict=True)]
    wrong = [_dot(q, a) for i, q in enumerate(questions) for j, a in enumerate(answers) if i != j]
    mean, deviation = fmean(wrong), max(pstdev(wrong), 0.01)
    z_score = (fmean(right) - mean) / deviation
    return Calibration(mean, deviation, min(1.0, max(0.0, (z_score - _WORTHLESS) / (_FULL - _WORTHLESS))))


def _dot(one: Sequence[float], other: Sequence[float]) -> float:
    return math.fsum(x * y for x, y in zip(one, other, strict=True))


def calibration_for(query: str, known: Calibrations) -> Calibration:
    """Return the calibration for a query's script; for a script that was not measured, that with the least weight."""
    if not known:
        return UNKNOWN
    script = _script(query)
    if script == "english" and language_of(query) not in (None, ENGLISH):
        script = "european"
    return known.get(script) or min(known.values(), key=lambda each: each.weight)


def _script(query: str) -> str:
    """Return the script of most letters of a query; a CJK character counts as two letters."""
    letters = len(_LETTER.findall(query))
    counts = {script: len(pattern.findall(query)) * (2 if script == "cjk" else 1) for script, pattern in _SCRIPTS}
    most = max(counts, key=lambda script: counts[script])
    return most if counts[most] * 2 >= letters else "other"

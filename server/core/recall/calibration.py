"""Calibrates the cosines of an embedding model, once for each space.

Models differ in the cosine of unrelated texts: 0.04 on average for all-MiniLM-L6-v2, 0.7 for others. A model that was
not trained on a script finds all texts in it similar, so that its ranking of them is noise. So each model embeds pairs
of question and answer in several scripts. The cosines between a question and the answers to other questions give the
mean and deviation of unrelated texts; the z-score of the right answers gives the weight of vector search beside
keyword search.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

from esker.server.core.arrays import Vectors
from esker.server.core.records import UNKNOWN, Calibration, Calibrations
from esker.server.core.text.languages import ENGLISH, language_of
from esker.server.core.words.scripts import CJK

_ANSWERED: Mapping[str, Sequence[Sequence[tuple[str, str]]]] = {
    "english": (
        (
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
    ),
    "european": (
        (
            ("Welchen Paketmanager benutzen wir?", "Abhängigkeiten werden mit pnpm installiert, nie mit npm."),
            ("Wann kommt die neue Version heraus?", "Die Veröffentlichung ist für die zweite Maiwoche geplant."),
            ("Wo wohnt die Kundin?", "Ihre Wohnung liegt in der Altstadt, nahe am Hafen."),
            ("Warum ist der nächtliche Auftrag gescheitert?", "Die Sicherung brach ab, weil die Platte voll war."),
            ("Was isst sie gern?", "Sie mag scharfe Nudeln und hasst Pilze."),
            ("Was hat der Arzt gesagt?", "Der Orthopäde riet ihm, das Knie sechs Wochen zu schonen."),
            ("Wie lange dauert die Garantie?", "Maschinen werden drei Jahre lang kostenlos repariert."),
            ("Wer leitet den Abendkurs?", "Das Töpfern am Donnerstag gibt Herr Okafor."),
        ),
        (
            (
                "Quel gestionnaire de paquets utilisons-nous ?",
                "Les dépendances s'installent avec pnpm, jamais avec npm.",
            ),
            ("Quand sort la nouvelle version ?", "La publication est prévue pour la deuxième semaine de mai."),
            ("Où habite la cliente ?", "Son appartement se trouve dans la vieille ville, près du port."),
            (
                "Pourquoi la tâche de nuit a-t-elle échoué ?",
                "La sauvegarde s'est arrêtée parce que le disque était plein.",
            ),
            ("Qu'est-ce qu'elle aime manger ?", "Elle adore les nouilles épicées et déteste les champignons."),
            ("Qu'a dit le médecin ?", "L'orthopédiste lui a conseillé de ménager son genou six semaines."),
            ("Combien de temps dure la garantie ?", "Les machines sont réparées gratuitement pendant trois ans."),
            ("Qui donne le cours du soir ?", "La poterie du jeudi est animée par M. Okafor."),
        ),
        (
            ("¿Qué gestor de paquetes usamos?", "Las dependencias se instalan con pnpm, nunca con npm."),
            ("¿Cuándo sale la nueva versión?", "El lanzamiento está previsto para la segunda semana de mayo."),
            ("¿Dónde vive la clienta?", "Su piso está en el casco antiguo, cerca del puerto."),
            ("¿Por qué falló la tarea nocturna?", "La copia de seguridad se paró porque el disco estaba lleno."),
            ("¿Qué le gusta comer?", "Le encantan los fideos picantes y odia las setas."),
            ("¿Qué dijo el médico?", "El traumatólogo le aconsejó reposar la rodilla seis semanas."),
            ("¿Cuánto dura la garantía?", "Las máquinas se reparan gratis durante tres años."),
            ("¿Quién da la clase de la tarde?", "La cerámica de los jueves la enseña el señor Okafor."),
        ),
    ),
    "cyrillic": (
        (
            ("Какой менеджер пакетов мы используем?", "Зависимости ставятся через pnpm, никогда через npm."),
            ("Когда выйдет новая версия?", "Выпуск запланирован на вторую неделю мая."),
            ("Где живёт клиентка?", "Её квартира в старом городе, рядом с портом."),
            ("Почему упала ночная задача?", "Резервное копирование остановилось, потому что диск был полон."),
            ("Что она любит есть?", "Ей нравится острая лапша, а грибы она терпеть не может."),
            ("Что сказал врач?", "Доктор велел шесть недель беречь колено."),
            ("Сколько длится гарантия?", "Машины бесплатно чинят три года."),
            ("Какой породы собака?", "Их щенок — уиппет из питомника в Уэльсе."),
            ("Как пользователи входят в систему?", "Вход идёт по недолговечным токенам сервера учётных записей."),
            ("В какой базе лежат заказы?", "Все покупки хранятся в Postgres, по схеме на магазин."),
            ("Кто ведёт вечерний курс?", "Гончарное дело по четвергам преподаёт господин Окафор."),
            ("Как мы измеряем скорость?", "Задержка записывается гистограммой и видна на панели."),
        ),
    ),
    "chinese": (
        (
            ("我们用哪个包管理器？", "依赖只用pnpm安装，从不用npm。"),
            ("新版本什么时候发布？", "计划在五月的第二个星期上线。"),
            ("客户住在哪里？", "她的公寓在老城区，靠近港口。"),
            ("夜间任务为什么失败了？", "因为磁盘满了，备份中断了。"),
            ("她喜欢吃什么？", "她爱吃辣面条，讨厌蘑菇。"),
            ("医生怎么说的？", "大夫让他的膝盖休养六个星期。"),
            ("保修期多长？", "机器三年内免费维修。"),
            ("晚上的课是谁教的？", "星期四的陶艺由奥卡福先生带。"),
            ("用户是怎么登录的？", "身份验证使用身份服务器签发的短期令牌。"),
            ("订单存在哪个数据库里？", "所有购买记录都在Postgres里，每家店一个模式。"),
            ("这只狗是什么品种？", "他们的小狗是来自威尔士犬舍的惠比特犬。"),
            ("我们怎样测量速度？", "延迟记录成直方图，显示在仪表盘上。"),
        ),
    ),
    "japanese": (
        (
            ("どのパッケージマネージャーを使っていますか？", "依存関係はpnpmで入れ、npmは使わない。"),
            ("新しいバージョンはいつ出ますか？", "公開は五月の第二週の予定だ。"),
            ("顧客はどこに住んでいますか？", "彼女の部屋は旧市街の港の近くにある。"),
            ("夜間の処理はなぜ失敗しましたか？", "ディスクがいっぱいでバックアップが止まった。"),
            ("彼女は何を食べるのが好きですか？", "辛い麺が大好きで、きのこは苦手だ。"),
            ("医者は何と言いましたか？", "先生は六週間膝を休ませるようにと話した。"),
            ("保証期間はどのくらいですか？", "機械は三年間無料で修理される。"),
            ("夜の教室は誰が教えていますか？", "木曜の陶芸はオカフォーさんが受け持つ。"),
            ("利用者はどうやってサインインしますか？", "認証にはIDサーバーの短命なトークンを使う。"),
            ("注文はどのデータベースにありますか？", "購入の記録はすべてPostgresにあり、店ごとにスキーマが一つある。"),
            ("犬の種類は何ですか？", "子犬はウェールズの犬舎から来たウィペットだ。"),
            ("速さはどうやって測りますか？", "遅延をヒストグラムに記録し、ダッシュボードに出す。"),
        ),
    ),
    "korean": (
        (
            ("어떤 패키지 관리자를 쓰나요?", "의존성은 pnpm으로 설치하고 npm은 쓰지 않는다."),
            ("새 버전은 언제 나오나요?", "출시는 5월 둘째 주로 예정되어 있다."),
            ("고객은 어디에 사나요?", "그녀의 집은 구시가지 항구 근처에 있다."),
            ("야간 작업은 왜 실패했나요?", "디스크가 가득 차서 백업이 중단되었다."),
            ("그녀는 무엇을 즐겨 먹나요?", "매운 국수를 좋아하고 버섯은 싫어한다."),
            ("의사는 뭐라고 했나요?", "선생님은 6주 동안 무릎을 쉬게 하라고 했다."),
            ("보증 기간은 얼마나 되나요?", "기계는 3년 동안 무상으로 수리된다."),
            ("저녁 수업은 누가 가르치나요?", "목요일 도자기 수업은 오카포르 씨가 맡는다."),
            ("사용자는 어떻게 로그인하나요?", "인증은 신원 서버의 짧은 토큰으로 한다."),
            ("주문은 어느 데이터베이스에 있나요?", "모든 구매 내역은 가게마다 스키마 하나로 Postgres에 저장된다."),
            ("강아지는 어떤 품종인가요?", "그 개는 웨일스의 사육장에서 온 휘핏이다."),
            ("속도는 어떻게 재나요?", "지연 시간을 히스토그램으로 기록해 대시보드에 보여 준다."),
        ),
    ),
}
"""Questions and their answers by script, in each language of the script."""
# Mean z-score of right answers at which vector search gets weight 0 (`_WORTHLESS`) and weight 1 (`_FULL`); linear in
# between.
_WORTHLESS = 1.0
_FULL = 4.0
_SCRIPTS = (
    ("cjk", re.compile(f"[{CJK}]")),
    ("cyrillic", re.compile("[\u0400-\u04ff]")),
    ("english", re.compile("[A-Za-z\u00c0-\u024f]")),
)
_KANA = re.compile("[\u3040-\u30ff]")
_HANGUL = re.compile("[\u1100-\u11ff\uac00-\ud7af]")
_LETTER = re.compile(r"[^\W\d_]")


def calibration_texts() -> tuple[list[str], list[str]]:
    """Return the questions and the texts, in order, whose vectors `calibrate` needs."""
    pairs = [pair for languages in _ANSWERED.values() for answered in languages for pair in answered]
    return [question for question, _ in pairs], [answer for _, answer in pairs]


def calibrate(questions: Vectors, answers: Vectors) -> dict[str, Calibration]:
    """Return the calibration for each script, from the unit vectors of `calibration_texts`."""
    cosines = questions.astype(np.float64) @ answers.T.astype(np.float64)
    found: dict[str, Calibration] = {}
    start = 0
    for script, languages in _ANSWERED.items():
        ends = list(accumulate(map(len, languages), initial=start))
        found[script] = _calibration([cosines[first:end, first:end] for first, end in pairwise(ends)])
        start = ends[-1]
    return found


def _calibration(languages: Sequence[NDArray[np.float64]]) -> Calibration:
    """Return the calibration of a script, from the cosines of questions (rows) to answers in each of its languages.

    Answers are wrong only within a language: texts of two languages are further apart, also about the same thing.
    """
    right = np.concatenate([cosines.diagonal() for cosines in languages])
    wrong = np.concatenate([cosines[~np.eye(len(cosines), dtype=bool)] for cosines in languages])
    mean, deviation = float(wrong.mean()), max(float(wrong.std()), 0.01)
    z_score = (float(right.mean()) - mean) / deviation
    return Calibration(mean, deviation, min(1.0, max(0.0, (z_score - _WORTHLESS) / (_FULL - _WORTHLESS))))


def z_score_of_right(calibration: Calibration) -> float:
    """Return the mean z-score of right answers that gave a calibration its weight; at most that of the full weight."""
    return _WORTHLESS + calibration.weight * (_FULL - _WORTHLESS)


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
    if counts[most] * 2 < letters:
        return "other"
    return _east_asian(query) if most == "cjk" else most


def _east_asian(query: str) -> str:
    """Return the language of a query in Chinese characters, kana or Hangul; Japanese has both of the former."""
    if _KANA.search(query):
        return "japanese"
    return "korean" if _HANGUL.search(query) else "chinese"

"""Words that turn what is said: they deny it, put it off, limit it, call it done, past or unsettled. In five languages.

They are written down here once more, apart from those that memory itself goes by: what is measured must not be the
measure.
"""

import re
from collections.abc import Mapping

from evals.case_files import Language
from evals.scoring.text import normalised

Cues = Mapping[Language, re.Pattern[str]]


def _cues(en: str, de: str, es: str, zh: str, ja: str) -> Cues:
    """Return patterns by language; those of languages that put spaces between words are of whole words."""
    return {
        "en": re.compile(rf"\b(?:{en})\b"),
        "de": re.compile(rf"\b(?:{de})\b"),
        "es": re.compile(rf"(?<!\w)(?:{es})(?!\w)"),
        "zh": re.compile(zh),
        "ja": re.compile(ja),
    }


_DENIED = _cues(
    en=r"not|never|no|none|nothing|nobody|without|cannot|neither|nor|avoid\w*|stop(?:ped)? using|forbid\w*"
    r"|forbidden|refus\w+|reject\w+|instead of|rather than|\w+n't",
    de=r"nicht|nie|niemals|kein\w*|ohne|weder|statt|anstatt|verboten|vermeide\w*",
    es=r"no|nunca|jamás|sin|ningun[oa]?|ningún|tampoco|evitar|evita\w*|prohibido|en lugar de|en vez de",
    zh="不(?!同|过|過|错|錯|断|斷|仅|僅|久|少)|没|沒|别|勿|禁止|无需|無需|未|避免|而不是",
    ja="ない|ません|ず(?:に|、|。|$)|禁止|なし|ではなく|避け",
)
_UNTRUE = _cues(
    en=r"(?:not|never) (?:true|correct|right|the case|so)|\w+n't (?:true|correct|right|the case|so)"
    "|(?:is|was|are|were) (?:false|wrong|untrue|incorrect)",
    de="(?:stimmt|trifft) (?:gar |überhaupt )?nicht|nicht (?:wahr|richtig|der fall)|(?:ist|war) (?:falsch|unwahr)",
    es="no es (?:cierto|verdad|así|correcto)|(?:es|era) (?:falso|incorrecto)",
    zh="并不是|并非|不是真的|不属实|是错的|不正确|不成立",
    ja="正しくない|事実ではない|間違いである|誤りである|正しくありません",
)
_OPEN = _cues(
    en=r"later|tomorrow|open|postponed?|defer\w*|put off|on hold|paused|pending|not yet|not before|until"
    "|unless|todo|tbd|planned|plans? to|will|wants? to|going to|intends?|scheduled"
    "|next (?:week|month|quarter|year|sprint)|undecided|unclear|remains?"
    r"|still (?:to|open|missing|needs?|has|have)|to be|wait\w*|after|once|if|maybe|might|may|consider\w*"
    r"|propos\w+|draft|in progress|unfinished|blocked|backlog|should|left (?:for|to)|has to follow"
    "|earliest",
    de="später|morgen|verschoben|aufgeschoben|zurückgestellt|noch nicht|offen|bis|geplant|wird|werden"
    r"|soll\w*|erst|frühestens|vielleicht|wartet|warten|pausiert|unklar|vertagt|falls|wenn|sobald"
    r"|nächste\w*|folgt|dran",
    es=r"más tarde|mañana|pospuest\w+|aplazad\w+|pospon\w+|aplaz\w+|todavía no|aún no|aún|pendiente|hasta"
    r"|planead\w+|previst\w+|será|se hará|quizás?|tal vez|en espera|cuando|próxim\w+|después|sin decidir"
    r"|por decidir|abiert\w+",
    zh="明天|明日|推迟|推遲|延后|延後|延期|以后|以後|之后再|暂缓|暫緩|暂不|尚未|还没|還沒|待定|待办|计划"
    "|計劃|打算|将|將|等|下周|下个月|下季|未定|可能|再说|再做|再定|再看",
    ja="明日|延期|後で|あとで|後日|保留|未定|まだ|予定|まで|検討|つもり|来週|来月|来期|次の|待ち|待つ|見送"
    "|先送り|後回し|してから|以降",
)
_LIMITED = _cues(
    en=r"only|except|excluding|just|solely|alone|limited|for now|temporar\w+|at most|at least|unless|until"
    "|in staging|apart from|other than|up to|not for",
    de="nur|außer|ausser|ausschließlich|vorerst|höchstens|mindestens|vorübergehend|begrenzt|bis|allein",
    es=r"s[oó]lo|solamente|únicamente|excepto|salvo|por ahora|temporal\w*|como máximo|hasta|limitad\w+",
    zh="只|仅|僅|除了|除外|暂时|暫時|最多|至少|目前|限于|限於|以内|以內",
    ja="だけ|のみ|以外|当面|一時的|最大|限定|に限|限り|しか|いまのところ|今のところ",
)
_DONE = _cues(
    en=r"done|finished|completed?|(?<!\ba )(?<!\bthe )fixed|shipped|deployed|merged|implemented|released"
    "|resolved|solved|migrated|closed|delivered|landed|removed|added|enabled|rolled out|went live"
    "|is live|already",
    de=r"erledigt|fertig\w*|abgeschlossen|behoben|umgesetzt|ausgeliefert|gelöst|eingeführt|wurde\w*|bereits"
    "|migriert",
    es=r"hecho|terminad\w+|completad\w+|arreglad\w+|desplegad\w+|implementad\w+|resuelt\w+|migrad\w+"
    "|ya está|se (?:hizo|completó|migró|terminó|desplegó|implementó)",
    zh="已完成|完成了|已经|已經|已(?:修复|部署|上线|合并|迁移|实现|解决|改|换|删|加)|做完|搞定|上线了|修好"
    "|迁移了|部署了",
    ja="完了|済み|済んだ|終わった|終えた|しました|されました|修正した|デプロイした|実装した|移行した|解決した",
)
_PAST = _cues(
    en=r"was|were|used to|former\w*|previous\w*|earlier|originally|initially|no longer|instead of"
    r"|rather than|replac\w+|supersed\w+|(?:moved|switched|changed|migrated|away) from|old|dropped"
    r"|abandoned|gave up|obsolete|outdated|at first|turned down|rejected|wrong\w*|mistaken\w*|corrected",
    de=r"war|waren|früher\w*|vorher\w*|bisher\w*|ursprünglich|zunächst|nicht mehr|statt|anstatt|ersetzt\w*"
    r"|abgelöst|alte[rsnm]?|hatte\w*|zuvor|ehemals|falsch\w*|verworfen|korrigiert",
    es=r"antes|anterior\w*|era|eran|fue|originalmente|ya no|en lugar de|en vez de|reemplaz\w+|sustituy\w+"
    r"|dejó|viej\w+|había|equivocad\w+|erróne\w+|descartad\w+|corregid\w+",
    zh="之前|以前|原来|原來|原本|原定|曾|不再|取代|替换|替換|旧|舊|而不是|最初|起初|先前|不用|弃用|误|誤|作废",
    ja="以前|もとは|元は|元々|当初|かつて|ではなく|置き換え|やめ|旧|だった|でした|誤り|間違",
)
_UNSETTLED = _cues(
    en=r"ask\w*|question\w*|suggest\w*|propos\w*|offer\w*|claim\w*|alleg\w*|rumou?r\w*|heard|consider\w*"
    "|maybe|perhaps|might|could|would|whether|if|undecided|open|unclear|unconfirmed|not confirmed"
    r"|wonder\w*|idea|option|alternative|according to|said|says|thinks?|believes?|jok\w+|sarcas\w+"
    r"|ironic\w*|reject\w*|declin\w*|turned down|against|instead|wrong|mistaken|false|contradict\w*"
    r"|refus\w*",
    de=r"frag\w*|gefragt|vorschl\w*|vorgeschlagen|angeb\w*|behaupt\w*|gerücht\w*|gehört|vielleicht"
    r"|könnte\w*|ob|unklar|offen|laut|meint\w*|sagt\w*|scherz\w*|ironi\w*|abgelehnt|verworfen|dagegen"
    r"|stattdessen|falsch|überleg\w*|erwog\w*",
    es=r"pregunt\w*|propus\w*|propuest\w*|propon\w*|suger\w*|ofert\w*|ofrec\w*|afirm\w*|rumor\w*|oyó"
    r"|quizás?|tal vez|podría\w*|si|según|dice|dijo|cree|broma|ironía|rechaz\w*|descart\w*|falso"
    r"|errón\w*|indecis\w*|duda\w*",
    zh="问|問|建议|建議|提议|提議|听说|聽說|据说|據說|传言|也许|可能|是否|要不要|吗|考虑|玩笑|讽刺|拒绝"
    "|否决|采纳|反对|错|说|称",
    ja="質問|聞い|尋ね|提案|噂|うわさ|らしい|かもしれ|どうか|か？|検討|冗談|皮肉|断っ|却下|見送|否定|誤り"
    "|と言|によると|という",
)
_OPPOSITES: Mapping[Language, str] = {
    "en": "enable/disable enabled/disabled allow/forbid allowed/forbidden always/never on/off before/after"
    " required/optional add/remove added/removed include/exclude more/less above/below minimum/maximum accept/reject"
    " accepted/rejected public/private start/stop increase/decrease keep/delete succeeded/failed passed/failed"
    " success/failure up/down open/closed encrypted/unencrypted signed/unsigned first/last with/without likes/dislikes"
    " can/cannot",
    "de": "immer/nie erlaubt/verboten vor/nach aktiviert/deaktiviert mehr/weniger mit/ohne mindestens/höchstens",
    "es": "siempre/nunca permitido/prohibido antes/después activado/desactivado más/menos con/sin mínimo/máximo",
    "zh": "允许/禁止 启用/禁用 开启/关闭 之前/之后 最多/至少 增加/减少 有/没有 喜欢/讨厌",
    "ja": "許可/禁止 有効/無効 以前/以降 最大/最小 あり/なし 必須/任意 以上/以下 好き/嫌い",
}
_WORD = re.compile(r"[^\W\d_]+")
_BEFORE = 24
"""How far before a word, in characters, a denial stands that is about it."""


def denials(text: str, language: Language) -> int:
    """Return how often a text denies something."""
    return len(_DENIED[language].findall(normalised(text)))


def is_called_untrue(text: str, language: Language) -> bool:
    """Tell whether a text says of what it states that it is not so."""
    return bool(_UNTRUE[language].search(normalised(text)))


def opposite(first: str, second: str, language: Language) -> str | None:
    """Return the word of the second text that turns what the first says around, such as `disabled` for `enabled`."""
    one, other = _parts(first, language), _parts(second, language)
    for pair in _OPPOSITES[language].split():
        left, _, right = pair.partition("/")
        for word, contrary in ((left, right), (right, left)):
            if word in one and word not in other and contrary in other and contrary not in one:
                return contrary
    return None


def _parts(text: str, language: Language) -> set[str] | str:
    """Return what is looked for words: a set of them, or the text itself where there are no spaces between them."""
    return normalised(text) if language in ("zh", "ja") else set(_WORD.findall(normalised(text)))


def is_open(text: str, language: Language) -> bool:
    """Tell whether a text puts something off, plans it, or leaves it undecided."""
    return bool(_OPEN[language].search(normalised(text)))


def is_limited(text: str, language: Language) -> bool:
    """Tell whether a text says that something holds within limits only."""
    return bool(_LIMITED[language].search(normalised(text)))


def is_done(text: str, language: Language) -> bool:
    """Tell whether a text says that something was done; `not done` and `not yet fixed` do not."""
    said = normalised(text)
    found = (match.start() for match in _DONE[language].finditer(said))
    return any(not _DENIED[language].search(said[max(0, start - _BEFORE) : start]) for start in found)


def is_past(text: str, language: Language) -> bool:
    """Tell whether a text says of something that it held before."""
    return bool(_PAST[language].search(normalised(text))) or "→" in text or "->" in text


def is_unsettled(text: str, language: Language) -> bool:
    """Tell whether a text says of something that it was asked, offered, claimed by somebody, or turned down."""
    said = normalised(text)
    return "?" in said or bool(_UNSETTLED[language].search(said))


def without_reservations(text: str, language: Language) -> str:
    """Return a text without its words for what is put off or limited."""
    return re.sub(r"\s+", " ", _LIMITED[language].sub("", _OPEN[language].sub("", normalised(text)))).strip()

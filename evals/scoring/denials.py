"""Words that deny what is said, or turn it into its opposite, in five languages."""

import re
from collections.abc import Mapping, Set
from functools import cache, lru_cache

from evals.case_files import Language
from evals.scoring.text import by_language, normalised, stems, words_of

_DENIED = by_language(
    en=r"neither\b.*?\bnor|not|never|no|none|nothing|nobody|nowhere|without|cannot|neither|nor|non|stop(?:ped|s)? using"
    r"|forbid\w*|forbade|prohibit\w*|refus\w+|reject\w+|instead of|rather than|\w+n't",
    de=r"weder\b.*?\bnoch|nicht|nichts|nie|niemals|niemand\w*|nirgends|kein\w*|ohne|weder|(?:an)?statt(?= \w)"
    r"|anstelle|verboten|untersagt|weiger\w*|vermeide\w*",
    es=r"ni\b.*?\bni|no|nunca|jamás|nadie|nada|sin|ningun[oa]?|ningún|tampoco|ni|evitar|evita\w*|prohib\w+|nieg\w+"
    "|en lugar de|en vez de",
    zh="既不.*?也不|不(?!同|过|過|错|錯|断|斷|仅|僅|久|少|止)|没|沒|(?<![特级級類类分识識区區个個性])别(?!的|人|名)"
    "|勿|禁止|严禁|嚴禁|未(?!来|來)|避免|而非|无(?!线|论|状态|非|数|妨)|無(?!線|論|狀態|非|數|妨)",
    ja="ない|なく(?!な[らりるっ])|なけ|ません|ず(?=に|,|。|$)|禁止|なし|無し|避け",
)
_MAY_DENY = by_language(
    en=r"out|off|dropp\w*|barred|bans?|banned|exclu\w+|discard\w*|abandon\w*|gone|removed|fails? to|failed to"
    r"|awkward|unlike|nothing else|cancel\w*|skip\w*|ceas\w*|except\w*|hardly|barely|scarcely|unwanted"
    r"|prevent\w*|spared?|avoid\w*|false|wrong|void|revok\w*|bypass\w*|former|replac\w*|for want of"
    r"|(?<![.,:-])0(?![.,:-])|missing|lack\w*|declin\w+|turned down|zero|taboo|deni\w+|den(?:y|ies)|free of"
    r"|exempt\w*|clear of|un(?!der|til|less|i)[a-z]{4,}|in(?:valid|complete|active|correct|sufficient)\w*"
    "|away from|hands off",
    de=r"scheide\w*|außen vor|raus|tabu|abgelehnt|verworfen|gestrichen|gesperrt|entfäll\w*|entfallen|fehl\w*"
    r"|verzicht\w*|kaum|frei von|un(?!ter|ser|d)[a-zäöü]{4,}|gescheitert|misslungen|null|abgesagt|lehnt\w*|weg"
    "|ausgeschlossen|ausgenommen|widerlegt",
    es=r"fuera|descart\w+|rechaz\w+|excl\w+|intocable\w*|falt\w+|carec\w+|cero|cancel\w+|retir\w+|dej\w+"
    r"|fall[aóoe]\w*|im(?:posible|pide\w*)|in(?:activ|válid|complet|correct|suficient)\w+|vet\w+|vedad\w+|salvo"
    "|excepto|apenas",
    zh="弃用|棄用|放弃|免|停用|停止|作废|排除|取消|除外|谢绝|拒绝|拒絕|否决|否決|缺|废|误|错|搁置|清零|为零|无妨"
    "|落选|原样|不变|另计|另算|不计|待",
    ja="不[一-龠]|非[一-龠]|無[一-龠]|未[一-龠]|禁|除外|対象外|断[っりら]|却下|中止|廃止|やめ|要ら|いら|触ら|誤"
    "|失敗|欠|ゼロ|外す|外れ|外し|見送",
)
"""What may be meant as a denial, or not: beside such a word a denial less proves nothing."""

Ways = tuple[tuple[re.Pattern[str], str], ...]


def _whole_words(ways: Mapping[str, str]) -> Ways:
    return tuple((re.compile(rf"(?<!\w)(?:{said})(?!\w)".replace("ß", "ss")), plain) for said, plain in ways.items())


def _anywhere(ways: Mapping[str, str]) -> Ways:
    return tuple((re.compile(said), plain) for said, plain in ways.items())


_PLAINLY: Mapping[Language, Ways] = {
    "en": _whole_words(
        {
            "(?:no|not) (?:more|higher|greater|longer|larger) than": "most",
            r"at (?:the )?(?:very )?most|max(?:imum)?\.?(?: of)?|capped at|up to": "most",
            "(?:no|not) (?:less|fewer|lower|shorter) than": "least",
            r"at (?:the )?(?:very )?least|(?<![0-9] )min(?:imum)?\.?(?: of)?": "least",
            "(?:no|not) later than|not after": "by",
            "(?:no|not) (?:earlier|sooner) than|not before|not until|only (?:after|from|once)": "after",
            "not only|not just|no doubt|no matter|no problem|whether or not|(?<=may )or may not": "",
            "(?:no|without) exceptions?": "",
            "(?:at no|without) (?:charge|cost)|free of charge": "for free",
            "nothing but|no one but": "only",
            "(?:and )?(?:nothing else|nobody else|no one else|no others?|nowhere else)": "only",
            r"(?:not|won't|\w+n't) (?P<what>(?:be|come|happen|start|begin|change|move|follow|go)\b[^.,;]{0,40}?) ?"
            "(?:until|before)": r"\g<what> after",
            r"(?:no|not|never|nothing|nobody|cannot|\w+n't) (?P<what>[^.,;]{0,40}?) ?"
            r"(?:exceed\w*|go(?:es)? (?:over|above|beyond)|above|over|(?:longer|more|higher|larger|later|greater)"
            r" than)": (r"\g<what> most"),
            r"(?:no|not|never|nothing|nobody|cannot|\w+n't) (?P<what>[^.,;]{0,40}?) ?"
            r"(?:below|under|(?:shorter|less|fewer|lower|older|earlier|smaller) than)": r"\g<what> least",
        }
    ),
    "de": _whole_words(
        {
            "nicht mehr als|nicht (?:höher|größer|länger) als|höchstens|maximal|bis zu": "hoechstens",
            "nicht weniger als|mindestens": "mindestens",
            "nicht später als|spätestens": "bis",
            "nicht vor|nicht früher als|erst (?:ab|nach|am|im|wenn)|frühestens": "nach",
            "nicht nur|nicht zuletzt|ohne weiteres|ohne ausnahme": "",
            "nichts als": "nur",
            r"vor (?P<what>\S+(?: \S+)?) nicht": r"nach \g<what>",
        }
    ),
    "es": _whole_words(
        {
            r"no más de|como (?:máximo|mucho)|a lo sumo|máximo(?: de)?|no más(?! (?:de|que)\b)": "maximo",
            "no menos de|como mínimo|(?:al|por lo) menos|mínimo(?: de)?": "minimo",
            "no antes de|hasta que no|no hasta": "después",
            r"no (?P<what>[^.,;]{0,40}?) ?(?:antes de|hasta)": r"\g<what> después",
            r"no (?P<said>[^.,;]{0,60}?) ?\b(?:nunca|jamás|nada|nadie|ningun\w*|ningún|tampoco)": r"no \g<said>",
            "no s[oó]lo|no solamente|sin duda|sin falta|sin embargo|sin excepción": "",
            r"no (?P<what>[^.,;]{0,30}) más que": r"\g<what> maximo",
        }
    ),
    "zh": _anywhere(
        {
            "不(?:超过|超過|多于|高于|大于|得超过)|至多|上限": "最多",
            "不(?:少于|低于|小于)": "至少",
            "不会?早于": "之后",
            "不得不|不能不|不可不": "必须",
            "无一不是|无一例外": "全部",
            "不管|不论|不仅|不只|不光|没问题|差不多": "",
        }
    ),
    "ja": _anywhere(
        {
            "(?:し)?なければ(?:ならない|なりません|いけない|いけません)": "る必要がある",
            "なくては(?:ならない|いけない)|ないと(?:いけない|だめ)|ねばならない": "る必要がある",
            "かもしれない|かもしれません|に違いない|にちがいない|にほかならない|だけでなく|のみならず": "",
            "少なくとも": "最低",
            "例外なく|例外なし": "必ず",
            "少な[いく]": "少数",
            "を?超えない(?:範囲)?|多くても": "以下",
            "に(?:すぎない|過ぎない)": "だけ",
            "まで(?P<what>[^,。]{0,10})ない": r"まで待つ\g<what>",
            "しか(?P<what>[^,。]{0,12})(?:ない|ません)": r"だけ\g<what>る",
        }
    ),
}
"""Turns that have the words of a denial and are none, or that say in other words what a shorter one says."""
_OPPOSITES: Mapping[Language, str] = {
    "en": "enable/disable allow/block allow/forbid on/off before/after above/below over/under most/least above/most"
    " over/most more/most longer/most higher/most larger/most greater/most exceed/most below/least under/least"
    " less/least more/less much/few much/little many/few"
    " require/optional mandatory/optional add/remove include/exclude accept/decline accept/reject public/private"
    " start/stop increase/decrease raise/lower rise/fall above/fall keep/delete keep/drop keep/remove"
    " stay/delete stay/remove stay/move succeed/fail"
    " pass/fail success/failure up/down open/closed open/close encrypted/unencrypted signed/unsigned first/last"
    " likes/dislikes faster/slower larger/smaller longer/shorter higher/lower inside/outside win/lose won/lost"
    " possible/impossible valid/invalid known/unknown confirm/refute agree/disagree safe/unsafe stable/unstable"
    " available/unavailable approve/deny grant/deny hot/cold left/right even/odd sync/async present/absent"
    " cheaper/dearer early/late buy/sell strict/lax active/inactive positive/negative better/worse every/only"
    " everywhere/only all/only",
    "de": "erlaubt/gesperrt vor/nach aktiviert/deaktiviert mehr/weniger hoechstens/mindestens über/unter"
    " mehr/hoechstens"
    " über/hoechstens unter/mindestens zuviel/zuwenig viel/wenig öffentlich/privat behalten/löschen bleibt/gelöscht"
    " bestanden/gescheitert erfolgreich/gescheitert möglich/unmöglich gültig/ungültig bekannt/unbekannt"
    " schneller/langsamer größer/kleiner länger/kürzer höher/niedriger steigt/fällt links/rechts offen/geschlossen"
    " mag/hasst pflicht/freiwillig billiger/teurer erste/letzte besser/schlechter aktiv/inaktiv überall/nur alle/nur",
    "es": "permitido/bloqueado antes/después activado/desactivado activa/desactiva más/menos maximo/minimo sobre/bajo"
    " mucho/poco demasiado/poco público/privado conservar/borrar queda/borrado abierto/cerrado"
    " posible/imposible válido/inválido"
    " conocido/desconocido sube/baja aumenta/disminuye gusta/disgusta gusta/odia primero/último obligatorio/opcional"
    " dentro/fuera mejor/peor rápido/lento mayor/menor activo/inactivo todos/solo todas/solo",
    "zh": "允许/拒绝 启用/禁用 启用/停用 开启/关闭 打开/关闭 之前/之后 最多/至少 增加/减少 喜欢/讨厌 公开/私有"
    " 成功/失败"
    " 通过/失败 必须/可选 必填/可选 升高/降低 上升/下降 以上/以下 大于/小于 超过/最多 保留/删除 有效/失效"
    " 太多/太少 太大/太小"
    " 阳性/阴性 变好/变差 偏高/偏低 快于/慢于",
    "ja": "許可/拒否 有効/無効 以前/以降 最大/最小 最大/最低 以下/最低 まで/最低 あり/なし 必須/任意 以上/以下"
    " 好き/嫌い"
    " 成功/失敗 公開/非公開 可能/不可能 増や/減ら 増え/減り 上が/下が 残す/消す 残す/削除 オン/オフ"
    " 多すぎ/少なすぎ 陽性/陰性"
    " 速い/遅い 高い/低い 長い/短い",
}
_WORD = re.compile(r"[^\W\d_]+")
_PREFIX = re.compile(r"^(?:un|in|im|ir|non|dis|des)(?=[^\W\d_]{4})")
_FLAG = re.compile(r"(?<!\w)--?no-[\w-]+|\bno-?reply\S*|\bnot?-[a-z]+(?:-[a-z]+)*(?=\.|/|_)", re.ASCII)


def denials(text: str, language: Language) -> int:
    """Return how often a text denies something. `no more than` and its like deny nothing."""
    return len(_DENIED[language].findall(_plainly(text, language)))


def denials_of(words: Set[str], text: str, language: Language, other: Set[str]) -> int:
    """Return how often a text denies something about words.

    What it denies stands behind the denial: where that is about `other` words alone, or goes without something else
    (`without ever resetting it`), these are not denied. In Japanese and Chinese what is denied may stand before.
    """
    said = _plainly(text, language)
    count = 0
    for match in _DENIED[language].finditer(said):
        behind = words_of(said[match.end() :], language)
        elsewhere = behind and not behind & words and (behind & other or match.group() in ("without", "ohne", "sin"))
        count += language in ("zh", "ja") or not elsewhere
    return count


def denied_in(text: str, language: Language) -> frozenset[str]:
    """Return the words behind the denials of a text, or all of its words where there are none."""
    said = _plainly(text, language)
    found = [*_DENIED[language].finditer(said)]
    behind = words_of(_DENIED[language].sub(" ", said[found[0].end() :]), language) if found else frozenset[str]()
    return behind or words_of(without_denials(text, language), language)


def without_denials(text: str, language: Language) -> str:
    """Return a text without the words by which it denies something."""
    return _DENIED[language].sub(" ", _plainly(text, language)).strip()


def possible_denials(text: str, language: Language) -> frozenset[str]:
    """Return the words of a text that may be meant as a denial."""
    return frozenset(_MAY_DENY[language].findall(_plainly(text, language)))


@lru_cache(maxsize=65_536)
def _plainly(text: str, language: Language) -> str:
    said = _FLAG.sub(" ", normalised(text))
    for turn, plain in _PLAINLY[language]:
        said = turn.sub(plain, said)
    return said


def opposite(first: str, second: str, language: Language) -> str | None:
    """Return the word of the second text that turns what the first says around, such as `disabled` for `enabled`."""
    one, other = _said_of(first, language), _said_of(second, language)
    for left, right in _pairs(language):
        for word, contrary in ((left, right), (right, left)):
            has, lacks = _which(one, word, contrary), _which(other, word, contrary)
            if has == (True, False) and lacks == (False, True):
                return contrary
    return _prefixed(one, other) or _prefixed(other, one)


def _prefixed(one: frozenset[str] | str, other: frozenset[str] | str) -> str | None:
    """Return the word of the second text that is one of the first behind a prefix that denies (`unnecessary`)."""
    if isinstance(one, str) or isinstance(other, str):
        return None
    denied = ((word, _PREFIX.sub("", word)) for word in other - one)
    return next((word for word, rest in denied if rest != word and rest in one and rest not in other), None)


def _which(said: frozenset[str] | str, word: str, contrary: str) -> tuple[bool, bool]:
    """Tell which of two words are there; one that is a part of the other (可能, 不可能) is not counted within it."""
    if not isinstance(said, str):
        return word in said, contrary in said
    longer, shorter = (word, contrary) if len(word) > len(contrary) else (contrary, word)
    found = {longer: longer in said, shorter: shorter in said.replace(longer, " ")}
    return found[word], found[contrary]


@cache
def _pairs(language: Language) -> tuple[tuple[str, str], ...]:
    pairs = (pair.partition("/") for pair in normalised(_OPPOSITES[language]).split())
    return tuple((_bare(left, language), _bare(right, language)) for left, _, right in pairs)


def _said_of(text: str, language: Language) -> frozenset[str] | str:
    """Return what is looked for words: a set of stems, or the text itself where there are no spaces between words."""
    said = without_denials(text, language)
    if language in ("zh", "ja"):
        return said
    return frozenset(_bare(word, language) for word in _WORD.findall(said))


@lru_cache(maxsize=65_536)
def _bare(word: str, language: Language) -> str:
    """Return the stem of a word, small words included."""
    return word if language in ("zh", "ja") else next(iter(stems(word, language)), word)

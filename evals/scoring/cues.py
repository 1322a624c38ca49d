"""Words that turn what is said: they deny it, put it off, limit it, call it done or past. In five languages.

They are written down here once more, apart from those that memory itself goes by: what is measured must not be the
measure.
"""

import re

from evals.scoring.text import normalised


def _cues(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns))


_DENIED = _cues(
    r"\b(?:not|never|no|none|nothing|nobody|without|cannot|neither|nor|avoid\w*|stop(?:ped)? using|forbid\w*|forbidden"
    r"|refus\w+|reject\w+|instead of|rather than)\b|n't\b",
    r"\b(?:nicht|nie|niemals|kein\w*|ohne|weder|statt|anstatt|verboten|vermeide\w*)\b",
    r"\b(?:no|nunca|jamás|sin|ningun[oa]?|ningún|tampoco|evitar|evita\w*|prohibido)\b|en lugar de|en vez de",
    r"不(?!同|过|過|错|錯|断|斷|仅|僅|久|少)|没|沒|别|勿|禁止|无需|無需|未|避免|切勿|而不是",
    r"ない|ません|ず(?:に|、|。|$)|禁止|なし|ぬ(?:こと|よう)|ではなく|避け",
)
_OPEN = _cues(
    r"\b(?:later|postponed?|defer\w*|put off|on hold|paused|pending|not yet|not before|until|unless|todo|tbd|planned"
    r"|plans? to|will|wants? to|going to|intends?|scheduled|next (?:week|month|quarter|year|sprint)|undecided|unclear"
    r"|open question|remains?|still (?:to|open|missing|needs?)|left open|to be|wait\w*|after|once|if|maybe|might|may"
    r"|consider\w*|propos\w+|draft|in progress|unfinished|blocked|backlog|should|left (?:for|to))\b",
    r"\b(?:später|verschoben|aufgeschoben|zurückgestellt|noch nicht|noch offen|offen|bis|geplant|wird|werden|soll\w*"
    r"|erst|vielleicht|wartet|pausiert|unklar|vertagt|falls|wenn|sobald|nächste\w*)\b",
    r"\b(?:más tarde|pospuest\w+|aplazad\w+|pospon\w+|aplaz\w+|todavía no|aún no|pendiente|hasta|planead\w+|previst\w+"
    r"|será|se hará|quizás?|tal vez|en espera|cuando|próxim\w+|después|sin decidir)\b",
    r"推迟|推遲|延后|延後|延期|以后|以後|之后再|暂缓|暫緩|暂不|尚未|还没|還沒|待定|待办|计划|計劃|打算|将|將|等到|等.{1,12}再|下周|下个月|下季|未定|可能|再说|再做",
    r"延期|後で|あとで|後日|保留|未定|まだ|予定|までに|まで|検討|つもり|来週|来月|来期|次の|待ち|見送|先送り|後回し|してから|以降",
)
_LIMITED = _cues(
    r"\b(?:only|except|excluding|just|solely|alone|limited|for now|temporar\w+|at most|at least|unless|until|in staging"
    r"|apart from|other than|up to|not for)\b",
    r"\b(?:nur|außer|ausser|ausschließlich|vorerst|höchstens|mindestens|vorübergehend|begrenzt|bis|allein)\b",
    r"\b(?:s[oó]lo|solamente|únicamente|excepto|salvo|por ahora|temporal\w*|como máximo|hasta|limitad\w+)\b",
    r"只|仅|僅|除了|除外|暂时|暫時|最多|至少|目前|限于|限於|以内|以內",
    r"だけ|のみ|以外|当面|一時的|最大|限定|に限|しか|いまのところ|今のところ",
)
_DONE = _cues(
    r"\b(?:done|finished|complete[d]?|completed|fixed|shipped|deployed|merged|implemented|released|resolved|solved"
    r"|migrated|closed|delivered|landed|removed|added|enabled|rolled out|went live|is live|was built|has been|have been"
    r"|already)\b",
    r"\b(?:erledigt|fertig\w*|abgeschlossen|behoben|umgesetzt|ausgeliefert|gelöst|eingeführt|wurde\w*|bereits|migriert)\b",
    r"\b(?:hecho|terminad\w+|completad\w+|arreglad\w+|desplegad\w+|implementad\w+|resuelt\w+|se (?:hizo|completó|migró"
    r"|terminó|desplegó|implementó)|ya está|fue|migrad\w+)\b",
    r"已完成|完成了|已经|已經|已(?:修复|部署|上线|合并|迁移|实现|解决|改|换|删|加)|做完|搞定|上线了|修好|迁移了|部署了",
    r"完了|済み|済んだ|終わった|終えた|しました|された|されました|修正した|デプロイした|実装した|移行した|解決した",
)
_PAST = _cues(
    r"\b(?:was|were|used to|former\w*|previous\w*|earlier|originally|initially|no longer|instead of|rather than|replac\w+"
    r"|supersed\w+|moved (?:away )?from|switched from|changed from|migrated from|from|until|before|old|dropped|abandoned"
    r"|gave up|had|not|never|obsolete|outdated|first|once|turned down|rejected|over)\b|→|->",
    r"\b(?:war\w*|früher\w*|vorher\w*|bisher\w*|ursprünglich|zunächst|nicht mehr|statt|anstatt|ersetzt\w*|abgelöst|alt\w*|von"
    r"|hatte\w*|zuvor|ehemals|nicht)\b",
    r"\b(?:antes|anterior\w*|era|fue|originalmente|ya no|en lugar de|en vez de|reemplaz\w+|sustituy\w+|dej\w+|viej\w+|de|desde"
    r"|había|no)\b",
    r"之前|以前|原来|原來|原本|曾|不再|改为|改成|改用|改|换成|換成|取代|替换|替換|从|從|旧|舊|而不是|最初|起初|先前|不用|不是|弃用",
    r"以前|もとは|元は|元々|当初|かつて|もう|ではなく|から|置き換え|変更|やめ|旧|だった|でした|移行|切り替え|ない",
)


def denials(text: str) -> int:
    """Return how often a text denies something."""
    return len(_DENIED.findall(normalised(text)))


def is_open(text: str) -> bool:
    """Tell whether a text puts something off, plans it, or leaves it undecided."""
    return bool(_OPEN.search(normalised(text)))


def is_limited(text: str) -> bool:
    """Tell whether a text says that something holds within limits only."""
    return bool(_LIMITED.search(normalised(text)))


def is_done(text: str) -> bool:
    """Tell whether a text says that something was done; `not done` and `not yet fixed` do not."""
    said = normalised(text)
    return any(not _DENIED.search(said[max(0, found.start() - 24) : found.start()]) for found in _DONE.finditer(said))


def is_past(text: str) -> bool:
    """Tell whether a text says of something that it held before, or does not hold."""
    return bool(_PAST.search(normalised(text)))


def without_reservations(text: str) -> str:
    """Return a text without its words for what is put off or limited."""
    return re.sub(r"\s+", " ", _LIMITED.sub("", _OPEN.sub("", text))).strip()

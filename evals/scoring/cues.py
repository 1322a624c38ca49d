"""Words that turn what is said: they put it off, leave it open, limit it, call it done, past or somebody's word.

They are written down here once more, in five languages, apart from those that memory itself goes by: what is measured
must not be the measure.
"""

import re
from functools import lru_cache

from evals.case_files import Language
from evals.scoring import dates
from evals.scoring.denials import denials
from evals.scoring.text import Patterns, by_language, normalised

_UNTRUE = by_language(
    en=r"(?:not|never) (?:true|correct|right|the case|so)|\w+n't (?:true|correct|right|the case|so)|(?:it|this"
    r"|that|all this) (?:is|was) (?:false|wrong|untrue|incorrect|a lie|a joke)"
    "|just kidding|forget (?:this|that|it):",
    de="(?:stimmt|trifft) (?:gar |überhaupt )?nicht|nicht (?:wahr|richtig|der fall)|(?:das|es) (?:ist"
    "|war) (?:falsch|unwahr)",
    es="no es (?:cierto|verdad|así|correcto)|(?:eso|esto) (?:es|era) (?:falso|incorrecto)|es falso que",
    zh="并不是真|不是真的|不属实|是错的|不正确|不成立|并不是:|并非如此",
    ja="正しくない|事実ではない|間違いである|誤りである|正しくありません",
)
_DEFERRED = by_language(
    en=r"later|tomorrow|postpon\w*|defer\w*|put off|on hold|shelved|parked|paused|pending|yet|before|until|till"
    r"|unless|todo|tbd|on the plan|plan(?:s|ned)?|will|won't|'ll|wants? to|would like|going to|intend\w*"
    r"|schedul\w*|due|next (?:week|month|quarter|year|sprint)|remains?|still (?:to|missing|needs?|has|have)"
    r"|wait\w*|after|once|as soon as|as long as|when|draft|in progress|unfinished|blocked|backlog|left for"
    r"|has to follow|earliest|sooner|wish list|subject to|upon|depends? on|slip\w*|hold off|pencil\w*|to follow"
    "|is to|are to|by|from .{1,20} on|by then",
    de=r"später|morgen|verschoben|verschieb\w*|verdrängt|aufgeschoben|zurückgestellt|noch nicht|bis|geplant|planen?"
    r"|plant|vorgesehen|soll\w*|erst|frühestens|nach|vor|warte\w*|pausiert|vertagt|falls|wenn|sobald|solange"
    r"|nächste\w*|folgt|dran|vorläufig|einstweilen|steht (?:noch )?aus|ausstehend|will|möchte|beabsichtig\w*|ab",
    es=r"más tarde|más adelante|mañana|pospuest\w+|aplaz\w+|pospon\w+|posterg\w+|todavía|aún|pendiente\w*|hasta"
    r"|planead\w+|previst\w+|será|habrá|hará|pagarán?|se hará|en espera|cuando|próxim\w+|después|antes"
    r"|a la espera|deja\w* para|qued\w+ para|quiere|depende\w*|mientras|una vez|tras|falta\w*",
    zh="明天|明日|推迟|推遲|延后|延後|延期|以后|以後|之后|之後|后再|暂|暫|尚未|还没|還沒|待|计划|計劃|打算|将|將"
    "|等|下周|下个月|下季|再说|再做|再定|再看|再改|再议|才|不会?早于|最早|之前|过了|搁置|先不",
    ja="明日|延期|後で|あとで|後日|保留|未定|まだ|予定|まで|つもり|来週|来月|来期|来年|次の|待|見送|先送り|後回し"
    "|してから|てから|以降|後に|後は|始めない|先に",
)
_UNDECIDED = by_language(
    en=r"whether|if|undecided|decid\w*|decision|open|unclear|unresolved|unanswered|no answer|not settled"
    r"|question\w*|maybe|perhaps|might|consider\w*|think (?:it over|about)|some thought|propos\w+|guess\w*"
    r"|suspect\w*|hypothes\w+|unconfirmed|confirm\w*|untested|tested|rumou?r\w*|heard|said|says|would like"
    r"|at best|possibl\w+|to be seen|speculat\w*|so far|experiment\w*",
    de=r"ob|offen\w*|unklar|entschieden|entscheid\w*|entscheidung|vielleicht|möglicherweise|könnte\w*|überleg\w*"
    r"|frage\w*|ungeklärt|ungewiss|unsicher|unbestätigt|vermut\w*|gerücht\w*|womöglich|welche\w*|versuch\w*",
    es=r"si|sin decidir|por decidir|decid\w+|decisión|abiert\w+|duda\w*|quizás?|tal vez|podría\w*|pregunt\w*"
    r"|incierto|posible\w*|sin confirmar|rumor\w*|hipótesis",
    zh="是否|要不要|未定|待定|再定|拍板|决定|不确定|可能|也许|或许|猜|怀疑|听说|据说|传言|证实|未经|未验|验证|考虑"
    "|疑似|假设|推测|定论",
    ja="かどうか|未定|検討|決め|決まっ|判断|かもしれ|可能性|推測|仮説|未確認|確認|噂|うわさ|考え",
)
_LIMITED = by_language(
    en=r"only|except\w*|exempt\w*|excluding|just|solely|alone|limited|confined|restricted|for now"
    r"|for the time being|this (?:round|time|release)|temporar\w+|at most|at least|max\w*|cap(?:ped)?|ceiling"
    "|no more than|not more than|not over|unless|until|till|in staging|apart from|other than|up to|within"
    r"|provid\w+|exceed\w*|the most|not for|nothing else|no (?:one|other|others) else|no other|nowhere else"
    r"|as long as|never more|or less|under|in betas|experiment\w*|ends?|ending|expir\w*|goes",
    de=r"nur|außer\w*|ausser|ausgenommen|ausschließlich|vorerst|vorläufig|höchstens|maximal|mindestens"
    "|vorübergehend|begrenzt|beschränkt|bis|allein|lediglich|einzig|nicht öfter|nicht (?:mehr|länger|höher"
    "|später) als"
    r"|kein\w* ander\w*|sonst\w*|derzeit",
    es=r"s[oó]lo|solamente|únicamente|exclusiv\w+|excepto|salvo|por ahora|de momento|temporal\w*|como (?:máximo"
    r"|mucho)"
    r"|máximo|no más|hasta|limitad\w+|ningún otro|ninguna otra|nada más|provisional\w*|mientras",
    zh="只|仅|僅|除了|除外|例外|暂|暫|最多|至多|不超过|不得超过|上限|至少|目前|眼下|限|以内|以內|为止|之前"
    "|其他.{0,6}不|独",
    ja="だけ|のみ|以外|当面|一時的|最大|限|しか|いまのところ|今のところ|以内|以下|まで|さしあたり|当分|他は|ほかは",
)
_DONE = by_language(
    en=r"done|finished|completed?|(?<!\ba )(?<!\bthe )fixed|shipped|deployed|merged|implemented|released|resolved"
    "|solved|migrated|closed|delivered|landed|(?<!is )(?<!are )removed|added|enabled|rolled out|went live"
    "|is live|already|as (?:planned|scheduled|intended|agreed)|in place|in effect|has learned|settled"
    r"|took place|taken place|is over|was a success|(?:is|are) booked|got (?:its|their|the)|is out(?! of)"
    r"|(?:has|have) (?:now |since |just )?been \w+",
    de=r"erledigt|fertig\w*|abgeschlossen|behoben|umgesetzt|ausgeliefert|gelöst|eingeführt|bereits|migriert"
    r"|inzwischen|wurden?|wie geplant|planmäßig|fand\b.*\bstatt|stattgefunden|gebucht|ist (?:nun |jetzt )?da",
    es=r"hech[oa]s?|terminad\w+|completad\w+|arreglad\w+|desplegad\w+|implementad\w+|resuelt\w+|migrad\w+"
    "|ya (?:está|se|ha|han)|se (?:hizo|completó|migró|terminó|desplegó|implementó|pagó|publicó|compró)"
    r"|como estaba previsto|tuvo lugar|quedó \w+",
    zh="已完成|完成了|已经|已經|已(?:修复|部署|上线|合并|迁移|实现|解决|改|换|删|加|做|写|拆|证实|停产|公布|发布|更换|确认|升级)"
    "|做完|搞定|上线了|修好|迁移了|部署了|如期|按计划.{0,6}(?:完成|做|了)|[到换改做开发写拆]了",
    ja="完了|済み|済んだ|終わった|終えた|修正した|デプロイした|実装した|移行した|解決した|始めた|行った|行われた"
    "|予定通り|予定どおり|すでに|既に|交換した|測定した|実施した|公開した|(?:導入|対応|更新|変更|決定|追加|削除)(?:し|され)(?:た|ました)",
)
_PUT_OFF = by_language(
    en="(?:re)?scheduled|postponed|deferred|delayed|paused|left|shelved|moved|pushed|asked|planned|blocked|set"
    "|limited|told|wanted|suggested|proposed|said|put off|parked|kept|reserved",
    de="verschoben|aufgeschoben|zurückgestellt|vertagt|verlegt|vorgeschlagen|pausiert|verdrängt|geplant|gebeten"
    "|gefragt",
    es=r"aplazad\w+|pospuest\w+|pendiente\w*|por (?:decidir|hacer|definir)|retrasad\w+|previst\w+|propuest\w+|para",
    zh="推迟|推遲|延期|延后|暂缓|搁置|待定|改到|推到|挪到|建议|提议",
    ja="延期|保留|先送り|後回し|見送|待ち|提案",
)
_PAST = by_language(
    en=r"was|were|(?<![a-z] )history(?=:| of)|(?:as|is) history|used to|former\w*|previous\w*|earlier|originally"
    r"|initially|no longer|instead of|rather than|replac\w+|supersed\w+|old|older|dropped|abandoned|gave up|obsolete"
    r"|(?:moved|switched|changed|migrated|away|up|down|raised|lowered) from|outdated|at first|turned down|rejected"
    r"|wrong\w*|mistaken\w*|corrected|gone|ended",
    de=r"war|waren|früher\w*|vorher\w*|bisher\w*|ursprünglich|zunächst|nicht mehr|(?:an)?statt(?= \w)|ersetzt\w*"
    r"|abgelöst|alte[rsnm]?|hatte\w*|zuvor|ehemals|falsch\w*|verworfen|korrigiert|hinfällig|überholt",
    es=r"antes|anterior\w*|era|eran|fue|originalmente|ya no|en lugar de|en vez de|reemplaz\w+|sustituy\w+|dejó"
    r"|viej\w+|había|equivocad\w+|erróne\w+|descartad\w+|corregid\w+|tenía|inicial\w*",
    zh="之前|以前|原来|原來|原本|原定|原(?=是|为|用)|曾|不再|取代|替换|替換|旧|舊|而不是|最初|起初|先前|不用|弃用"
    "|误认|誤認|误以为|有误|作废",
    ja="以前|もとは|元は|元々|当初|かつて|ではなく|置き換え|やめ|旧|だった|でした|誤り|間違|改め|前は|前まで",
)
_CHANGED = by_language(
    en=r"now|moved?|switch\w*|chang\w*|since|after|bec[ao]me|becomes|rose|rises|raised|lower\w*|reduced|from"
    r"|instead|again|back|new|current\w*|by now|turned|grew|went|correct\w*|actual\w*|really|until|in fact"
    "|no longer|revised|last|before",
    de=r"jetzt|nun|seit|nach|geändert|gewechselt|umgestellt|neu\w*|inzwischen|aktuell|statt|auf|wieder|doch|zurück"
    r"|von|bis|tatsächlich|wurde\w*",
    es=r"ahora|desde|tras|después|cambi\w+|pas[óa]|nuev\w+|actual\w*|sub\w+|baj\w+|vuelve|volvi\w+|hasta|realidad"
    "|queda",
    zh="现|改|变|换|起|今|后|新|升|降|调|搬|迁|更|由|从|又|回|目前|实",
    ja="現在|今|変|から|新|改|後|移|切り替|戻|なった|上が|下が|更新|実際",
)
_OLD_VALUE: dict[Language, str] = {
    "en": r"from (?:the )?{0} (?:to|→)|(?:instead of|rather than|no longer|used to be|formerly"
    "|previously) (?:the )?{0}"
    r"|of {0}(?: \w+){{0,4}} (?:was|were|is|has been) (?:raised|lowered|changed|increased|reduced|cut|lifted) to"
    r"|(?:before that|until then|till then)(?:(?! now)[^.;,]){{0,40}}{0}"
    r"|{0}[^.;,]{{0,40}} (?:are|is) (?:over|gone|history)"
    r"|{0}\W{{0,3}}(?:→|->|=>)|(?:up|down) from {0}",
    "de": r"von {0}(?: \w+){{0,4}} (?:auf|zu) [0-9\w]+|(?:statt|anstatt|nicht mehr|vorher) {0}"
    r"|{0}\W{{0,3}}(?:→|->)",
    "es": r"(?:de|desde) {0} a (?=[0-9])|\(?antes(?! de)[^.;,)]{{0,40}}{0}|(?:en lugar de|en vez de|ya no"
    r"|antes) {0}|{0}\W{{0,3}}(?:→|->)",
    "zh": r"(?:从|由){0}(?:改|换|升|降|调|增|减|提|变|到)|(?:不再|原来|原本|之前)(?:是|用|为)?{0}"
    r"|{0}\W{{0,3}}(?:→|->)",
    "ja": r"{0}から.{{0,12}}(?:変|改|上げ|下げ|引き)|{0}ではなく|{0}をやめ|(?:以前|当初|もと)は{0}"
    r"|{0}\W{{0,3}}(?:→|->)",
}
_WITHDRAWN = by_language(
    en=r"reopen\w*|reconsider\w*|withdr\w+|revok\w*|reversed|reversal|lifted|relax\w*|overturn\w*|given up|gave in"
    "|under discussion|up for discussion|where possible|if possible|ideally|rethought|undone|after all|softened"
    "|negotiable|(?:now|made|is) optional|was dropped|abolished|changed (?:his|her|their) mind|not any ?more",
    de="zurückgenommen|aufgehoben|gelockert|doch (?:wieder|nicht|noch)|nun doch|überdacht|neu verhandelt"
    "|nach möglichkeit|möglichst|widerrufen|zur diskussion|hinfällig|aufgegeben|fällt weg|entfällt",
    es=r"retirad\w+|anulad\w+|revocad\w+|reconsider\w+|al final sí|si es posible|a ser posible|en lo posible"
    r"|relajad\w+|en discusión|levantad\w+|derogad\w+|se dejó de",
    zh="撤回|撤销|取消了|重新考虑|重新讨论|尽量|尽可能|收回|松口|改口|作罢|还在讨论",
    ja="撤回|取り消|緩め|再検討|なるべく|できれば|できるだけ|見直し",
)
_SAID_TO_BE = by_language(
    en="sa(?:ys|id)|claim(?:s|ed)?|thinks?|thought|believes?|believed|suspect(?:s|ed)?|suggest(?:s|ed)?"
    "|propos(?:es|ed)|wrote|writes|wonder(?:s|ed)|guess(?:es|ed)|reckon(?:s|ed)?|doubt(?:s|ed)?|warn(?:s|ed)"
    "|fear(?:s|ed)?|argu(?:es|ed)",
    de="sagte?|behauptete?|meinte?|glaubte?|vermutete?|schlug|schlägt|schrieb|bezweifelte?|warnte?|hält .{1,40} für",
    es=r"dijo|dice|afirm[aó]|cree|creía|opin[aó]|sugiri?[óe]\w*|propuso|propone|escribió|sospecha|pid[eió]\w*"
    "|comenta|duda",
    zh="(?<!小)说(?!明)|(?<![名简职])称|认为|觉得|怀疑|建议|提议|主张|写道|猜测|听说|据说|担心",
    ja="と言っ|と述べ|と主張|と考え|と思|と提案|提案した|と書い|推測|と疑|らしい|という",
)
_UNSETTLED = by_language(
    en=r"ask\w*|question\w*|suggest\w*|propos\w*|offer\w*|claim\w*|alleg\w*|rumou?r\w*|heard|hearsay|consider\w*"
    r"|maybe|perhaps|might|could|would|whether|if|undecided|unclear|unconfirmed|confirm\w*|wonder\w*|idea|option"
    r"|alternative|according to|going by|said|says|wrote|writes|th(?:inks?|ought)|believ\w*|suspect\w*|guess\w*"
    r"|reckon\w*|doubt\w*|jok\w+|sarcas\w+|ironic\w*|reject\w*|declin\w*|turned down|against|instead|wrong"
    r"|mistaken|false|contradict\w*|refus\w*|opinion|view|eye|find(?:s|ing)?|found|supposed\w*|apparent\w*"
    r"|seem\w*|wish\w*|want\w*|like[sd]?|plead\w*|argu\w+|untested|unproven|hypothes\w+|rule[sd]? out|dismiss\w*"
    "|open|sure|certain",
    de=r"frag\w*|gefragt|vorschl\w*|vorschlag\w*|vorgeschlagen|schl[uä]gt?\w*|angeb\w*|angebot\w*|behaupt\w*"
    r"|gerücht\w*|gehört|vielleicht|könnte\w*|ob|unklar|offen|laut|zufolge|meint\w*|sagt\w*|schrieb|findet|hält"
    r"|glaub\w*|vermut\w*|scherz\w*|ironi\w*|spott\w*|abgelehnt|lehn\w*|verworfen|dagegen|stattdessen|falsch"
    r"|überleg\w*|erwog\w*|idee|wünsch\w*|angeblich|soll|sollen|sicher|unbestätigt|zweifel\w*",
    es=r"pregunt\w*|propus\w*|propuest\w*|propon\w*|suger\w*|sugir\w*|ofert\w*|ofrec\w*|afirm\w*|rumor\w*|oy[óe]"
    r"|quizás?|tal vez|podría\w*|si|según|dice|dijo|cree|opin\w*|comenta\w*|pid\w+|querría|quería|broma|ironía"
    r"|rechaz\w*|descart\w*|falso|errón\w*|indecis\w*|duda\w*|idea|sospech\w*|supuest\w*|al parecer|segur\w+",
    zh="(?<!访)(?<!顾)[问問](?!题|題)|建议|建議|提议|提議|听说|聽說|据说|據說|传言|传闻|也许|可能|是否|要不要|吗"
    "|考虑|玩笑|讽刺|拒绝|否决|采纳|反对|错|(?<!小)说(?!明)|(?<![名简职])称|认为|觉得|怀疑|猜|想法|主张|疑|推测"
    "|猜测|定论|坊间|据传|或将|确定",
    ja=r"質問|聞い|尋ね|提案|案を|案は|噂|うわさ|らしい|かもしれ|どうか|か\?|検討|冗談|皮肉|断っ|却下|見送|否定"
    "|誤り|と言|と述べ|によると|という|推測|仮説|疑|確か",
)
_TO_COME = by_language(
    en=r"later|tomorrow|yet|postpon\w*|defer\w*|on hold|pending|plan(?:s|ned)?|will|won't|'ll|wants? to|would like"
    r"|going to|intend\w*|due|next|remains?|still|waits?|waiting|to follow|is to|are to|not|no|never|only|until"
    "|till|unless|for now|for the time being|keeps?|stays?|goes|earliest|at most|limited|so far",
    de=r"später|morgen|noch|geplant|soll\w*|frühestens|warte\w*|nächste\w*|folgt|kein\w*|nicht|nur|vorerst|bis|wird"
    "|werden|will|möchte|offen|dran|erst|höchstens",
    es=r"más tarde|más adelante|mañana|aplaz\w+|pendiente\w*|todavía|aún|será|habrá|próxim\w+|no|hasta|sólo|solo"
    r"|quiere|en espera|antes|falta\w*|queda\w*|deja\w*",
    zh="明天|推迟|延|暂|尚|还|待|计划|打算|将|等|再|才|不|没|未|只|仅|最早",
    ja="延期|後|保留|未|まだ|予定|まで|つもり|来|次|待|見送|先送|ない|だけ|のみ|当面|限",
)
_TIME = re.compile(
    r"\b(?:q[1-4]|(?:mon|tues|wednes|thurs|fri|satur|sun)day|spring|summer|autumn|winter|frühling|sommer|herbst"
    r"|primavera|verano|otoño|invierno|(?:week|sprint|woche|kw|semana) [0-9]+)\b|[0-9]{1,2}月"
)
_HAPPENED = by_language(
    en=r"(?!(?:need|speed|embed|exceed|proceed|indeed|feed|seed|shed|hundred)\b)[a-z]{2,}ed|was|were|has|have|had",
    de=r"war|waren|hat|haben|hatte\w*|wurden?|ist|sind",
    es=r"fue|fueron|ha|han|había\w*|[a-z]{2,}(?:ó|aron|ieron)",
    zh="了|(?<![不经通超])过(?!期|程|去)",
    ja="た。|た$|ました",
)
_QUESTION = by_language(
    en="whether|open question|undecided|decided",
    de="ob|offen|entschieden",
    es="si|por decidir|sin decidir",
    zh="是否|要不要|再定|未定|待定",
    ja="かどうか|未定|検討",
)
_BEFORE = 24
"""How far before a word, in characters, a denial stands that is about it, if it is in the same clause."""
_CLAUSE_END = re.compile(r"[,.;:。]")


def is_called_untrue(text: str, language: Language) -> bool:
    """Tell whether a text says of what it states that it is not so."""
    return bool(_UNTRUE[language].search(normalised(text)))


def has_happened(fact: str, said: str, language: Language) -> bool:
    """Tell whether what is said tells as past, without a word for what is to come, what a fact puts off."""
    if not _has(_DEFERRED, fact, language) or _has(_HAPPENED, fact, language) or not _has(_HAPPENED, said, language):
        return False
    return not any(_has(cues, said, language) for cues in (_TO_COME, _UNDECIDED, _PUT_OFF))


def keeps_reservation(fact: str, said: str, language: Language) -> bool:
    """Tell whether what is said is put off, undecided or limited, as the fact is.

    What is undecided has to read so: that it comes later is not enough. A fact without any such words is not judged.
    The present of a day to come (`it gets a restart on 2 June`) puts off by the day that it has from the fact.
    """
    kinds = [cues for cues in (_DEFERRED, _LIMITED) if _has(cues, fact, language)]
    undecided = _has(_UNDECIDED, fact, language)
    if "?" in normalised(said) or not (kinds or undecided):
        return True
    if undecided and (not kinds or _is_question(fact, language)):
        return _has(_UNDECIDED, said, language)
    if _DEFERRED in kinds and not _has(_HAPPENED, said, language) and _times(fact) & _times(said):
        return True
    kinds += [_UNDECIDED] if undecided or _DEFERRED in kinds else []
    return any(_has(cues, said, language) for cues in kinds)


def _times(text: str) -> frozenset[str]:
    """Return the days, months, weekdays, seasons and quarters that a text names."""
    said = normalised(text)
    return frozenset(_TIME.findall(said)) | frozenset(dates.months(said))


def _is_question(text: str, language: Language) -> bool:
    return _has(_QUESTION, text, language)


def _has(cues: Patterns, text: str, language: Language) -> bool:
    return bool(cues[language].search(normalised(text)))


def is_undecided(text: str, language: Language) -> bool:
    """Tell whether a text leaves something undecided."""
    return _has(_UNDECIDED, text, language)


def is_done(text: str, language: Language) -> bool:
    """Tell whether a text says that something was done; `not done`, `has been postponed`, `wurde verschoben` do not."""
    return any(_says_done(clause, language) for clause in _CLAUSE_END.split(normalised(text)))


def _says_done(clause: str, language: Language) -> bool:
    if _PUT_OFF[language].search(clause) and not re.search(r"as (?:planned|scheduled)|wie geplant|previsto", clause):
        return False
    found = (match.start() for match in _DONE[language].finditer(clause))
    return any(not denials(clause[max(0, start - _BEFORE) : start], language) for start in found)


def is_past(text: str, language: Language) -> bool:
    """Tell whether a text says of something that it held before."""
    return _has(_PAST, text, language) or "→" in text or "->" in text


def tells_of_change(text: str, language: Language) -> bool:
    """Tell whether a text says that one thing took the place of another."""
    return is_past(text, language) or _has(_CHANGED, text, language)


@lru_cache(maxsize=16_384)
def is_old_value(words: str, text: str, language: Language) -> bool:
    """Tell whether a text names a value as the one before: `from 64 to 256`, `instead of 64`."""
    value = rf"(?<![\w.,]){re.escape(normalised(words))}(?!\w|[.,][0-9])"
    return bool(re.search(_OLD_VALUE[language].format(value), normalised(text)))


def withdraws(text: str, language: Language) -> bool:
    """Tell whether a text says that a ruling was taken back, softened, or is talked about again."""
    return _has(_WITHDRAWN, text, language)


def reported(text: str, language: Language) -> tuple[str, str] | None:
    """Return who says something, and what, where a text reports what somebody says or thinks; else None."""
    said = normalised(text)
    found = _SAID_TO_BE[language].search(said)
    return (said[: found.start()], said[found.end() :]) if found else None


def unsettled_cues(text: str, language: Language) -> frozenset[str]:
    """Return the words of a text by which something was asked, offered, claimed by somebody, or turned down."""
    said = normalised(text)
    found = {match.group() for match in _UNSETTLED[language].finditer(said)}
    return frozenset(found | {"?"}) if "?" in said else frozenset(found)

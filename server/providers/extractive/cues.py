"""Words by which people show what a sentence is: a rule, a decision, a correction, a fact, an outcome.

English is covered best. For German, French, Spanish, Chinese and Japanese there are the cues that carry most:
always and never, preferring, deciding, correcting.
"""

import re


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.IGNORECASE)


QUESTION = _any(
    r"[?？]\s*[\"')]?$",
    r"^(?:what|why|how|when|where|who|which|whose|can|could|would|will|do|does|did|is|are|was|were|should|shall|have|has|may)\b(?!.*[.!]$)",
    r"[吗呢]\s*[。]?$",
    r"ですか[。]?$",
)  # fmt: skip

CORRECTION = _any(
    r"^(?:no|nope|nah|wait|hmm|sorry|oops|hold on|stop)\s*[,.!—-]+\s*\S",
    r"^(?:no|nope),? (?:that|this|it|not|we|i|you|don't|use|the)\b",
    r"^(?:um |ok |well,? |oh )?actually\b",
    r"^(?:(?:hmm+|oh|ah|um+|ok|well|so|no|nope|yes|yeah)[ ,.!—-]+){1,2}(?:wait|hold on|sorry|scratch|scrap)\b",
    r"^(?:wait|hold on)[ ,.!—-]+\S|\bscrap (?:the|that|it|this)\b",
    r"\b(?:that's|that is|this is|it's|you're|you are) (?:not (?:right|correct|what i|true)|wrong|incorrect|mistaken)\b",
    r"\bi (?:meant|was wrong|misspoke|made a mistake)\b|\bi said .+, not\b",
    r"\b(?:correction|scratch that|forget what i said|on second thought|i've changed my mind|i changed my mind)\b",
    r"^(?:nein|doch|eigentlich|falsch|moment)\b\s*[,.!]?\s*\S",
    r"^(?:non|en fait|pardon)\b\s*[,.!]\s*\S",
    r"^(?:no,|en realidad|perdón)\s*\S",
    r"^(?:不对|不是|其实|错了|更正)",
    r"^(?:いや|違う|違います|訂正|実は)",
)

PREFERENCE = _any(
    r"\b(?:i|we)(?:'d| would)?(?: really| much| strongly| usually| always)* (?:prefer|like|love|hate|dislike|loathe|favou?r)\b",
    r"\b(?:i|we) (?:don't|do not|never|always) (?:want|like|use|need|do|commit|push|write|add|work|eat|drink|take)\b",
    r"\bi(?:'d| would) (?:only|rather|never|always)\b",
    r"\bi (?:only )?want (?:\w+ ){0,4}(?:to be|in|as|with|only|every|all)\b",
    r"\b(?:always|never)\b(?! (?:mind|been|seen|heard|got|had|knew|thought|did|was|were|worked))",
    r"^(?:please )?(?:don't|do not|avoid|no more|stop)\b(?! (?:bother|worry|mind|you think))",
    r"[,;:—-] ?(?:please |and |but )?(?:don't|do not|never) \S+",
    r"\b(?:nothing|nobody|no one) (?:is|are|may|can|gets?|goes|should)\b",
    r"\bplease (?:don't|do not|always|never|only|avoid|keep|make sure)\b",
    r"\b(?:make sure|be sure|remember|keep in mind|note) (?:to|that|you|we|every|all)\b",
    r"\bfrom now on\b|\bgoing forward\b|\bin (?:the )?future,",
    r"\b(?:you|we|it|they|that|this|tests?|code|commits?|everything) (?:must|should)(?: not|n't| never| always)?\b",
    r"\b(?:must not|mustn't|shouldn't|should not|is forbidden|not allowed|is required)\b",
    r"\b(?:our|my|the) (?:rule|convention|policy|standard|style|preference)s? (?:is|are|for|here)\b",
    r"\bwe (?:only )?use \S+.*\b(?:here|in this|for (?:all|everything|this))\b",
    r"\buse \S+(?: \S+){0,4},? (?:not|never|instead of|rather than|over)\b",
    r"\bmy favou?rite\b",
    r"^no (?:more )?\S+(?: \S+){0,3} (?:in|for|on|anywhere|please)\b",
    r"^(?:\S+ ){1,4}only,? ?(?:please)?[.!]*$",
    r"\bi (?:usually|mostly|typically|normally|only) \w+",
    r"\bich mag (?:kein|nicht)|\b(?:ab jetzt|ab sofort|nur noch)\b",
    r"\b(?:immer|niemals|nie wieder|bevorzuge|lieber|grundsätzlich|auf keinen fall)\b|\bbitte (?:kein|nicht|nie|immer)",
    r"\b(?:toujours|jamais|je préfère|nous préférons|il faut|ne \S+ (?:pas|jamais))\b",
    r"\b(?:siempre|nunca|prefiero|preferimos|hay que)\b",
    r"(?:总是|永远|从不|不要|别用|必须|务必|更喜欢|偏好|我喜欢|我们用|一律)",
    r"(?:必ず|常に|決して|しないで|好き|好む|嫌い|べき)",
)

DECISION = _any(
    r"^(?:ok,? |so,? |ok so )?(?:the|our|its?) (?:\S+ ){1,4}(?:should|shall|will) (?:be|stay|live|go|use|run)\b",
    r"^(?:let's )?(?:skip|leave out|forget about|postpone) \S+",
    r"^(?:please |just |then |ok,? |so,? )?(?:use|keep|store|name|call|stick to|default to|base it on) \S+",
    r"\blet'?s (?:go with|use|keep|stick|switch|drop|move|do|make|not|skip|put|try|call|name|start|ship|store|leave)\b",
    r"\b(?:we|i)(?:'ve| have)? (?:decided|agreed|settled|chosen|chose|opted|concluded)\b",
    r"\b(?:we|i)(?:'ll| will|'re going to| are going to| shall) (?:go|use|keep|stick|switch|drop|move|ship|store|adopt|replace|take|stay|migrate)\b",
    r"\b(?:go|going|went) (?:with|for) \b",
    r"\b(?:the )?decision(?: is|:| was)",
    r"\b(?:switch|switched|switching|migrate|migrated|moved?|moving) (?:\S+ ){0,4}(?:to|from|over to)\b",
    r"\bstick(?:ing)? with\b",
    r"\b(?:instead of|rather than|in favou?r of)\b",
    r"\b(?:wir nehmen|wir haben (?:uns )?(?:entschieden|beschlossen)|entschieden|stattdessen|lass uns|nehmen wir)\b",
    r"\b(?:nous avons décidé|on a décidé|on va utiliser|au lieu de|plutôt que)\b",
    r"\b(?:hemos decidido|decidimos|vamos a usar|usaremos|en lugar de|en vez de)\b",
    r"(?:决定|我们选|改用|换成|就用|采用|而不是)",
    r"(?:決め|にしましょう|に変更|を採用|ではなく|の代わりに)",
)

REQUEST = _any(
    r"^(?:(?:yes|yep|sure|ok|okay|now|then|great|good|perfect|alright|also|next|and|so|but|hey|hi|hello)\b[,.!]?\s*)*(?:please |pls |can you |could you |i need you to |go ahead and )?"
    r"(?:add|analy[sz]e|apply|ask|build|change|check|clean|close|commit|compare|configure|continue|convert|copy|create|debug|delete|deploy|describe|design|document|do|draft|drop|edit|explain|extract|find|fix|format|generate|get|give|help|implement|improve|install|investigate|list|look|make|merge|migrate|move|open|optimi[sz]e|plan|prepare|push|put|read|refactor|release|remove|rename|replace|reproduce|research|review|revert|rewrite|run|search|send|set|show|simplify|sort|split|start|suggest|summari[sz]e|tell|test|think|translate|try|turn|undo|update|upgrade|validate|verify|wire|write)\b(?! (?:is|are|was|were|has|have|will|must|should)\b)",
    r"^(?:bitte|kannst du|könntest du|s'il te plaît|peux-tu|por favor|puedes)\b",
    r"^(?:请|帮我|麻烦)|してください[。]?$|してくれ",
)  # fmt: skip

ISSUE = _any(
    r"\b(?:fails?|failed|failing|broken|breaks|crash(?:es|ed|ing)?|doesn't work|does not work|not working|stopped working)\b",
    r"\b(?:bug|regression|error|exception|flaky|timeouts?|times? out|timed out|hangs?|leak(?:s|ing)?|deadlock|corrupt(?:ed)?|out of memory)\b",
    r"\b(?:kaputt|fehler|schlägt fehl|funktioniert nicht)\b",
    r"\b(?:ne marche pas|erreur|en panne|no funciona|error|falla)\b",
    r"(?:报错|失败|崩溃|不工作|出错|エラー|失敗|動かない)",
)

CAUSE = _any(
    r"\b(?:root cause|the cause|reason (?:is|was)|culprit)\b",
    r"\b(?:because|caused by|due to|stems? from|comes? from|results? from|turns? out|turned out)\b",
    r"\bthe (?:problem|issue|bug|error|failure) (?:is|was|comes|lies|occurs|happens)\b",
    r"\b(?:weil|ursache|liegt an|lag an|wegen)\b",
    r"\b(?:parce que|à cause de|porque|debido a|por culpa de)\b",
    r"(?:因为|原因|由于|導致|导致|ため|原因は|せい)",
)

OUTCOME = _any(
    r"^(?:all )?(?:done|fixed|finished|completed?|implemented|deployed|merged|released|shipped|resolved|solved)\b",
    r"\b(?:is|are|was|were|has been|have been|now|got|gets) (?:\w+ )?(?:done|fixed|finished|complete|completed|implemented|deployed|merged|released|shipped|resolved|solved|working|live)\b",
    r"\b(?:all|the) (?:\d+ )?(?:tests?|checks?|specs?|suite)(?: \w+){0,3} (?:pass(?:es|ed)?|green|succeed(?:ed)?)\b",
    r"\b(?:works? now|now works?|it works|that (?:fixed|solved|worked)|fixed it|no longer (?:fails?|crash|happens|leaks?))\b",
    r"\bi(?:'ve| have)? (?:fixed|added|implemented|created|removed|replaced|moved|renamed|updated|refactored|finished|completed|deployed|merged|migrated)\b",
    r"\b(?:fertig|erledigt|behoben|läuft jetzt|funktioniert jetzt)\b",
    r"\b(?:terminé|corrigé|résolu|listo|arreglado|resuelto|funciona ahora)\b",
    r"(?:已完成|修好了|已修复|搞定|解决了|完了しました|直りました|修正しました)",
)

NEXT_STEP = _any(
    r"^(?:next(?: steps?| up)?|to-?do|remaining|still (?:to do|open|missing)|follow-?ups?|later)\b\s*[:,—-]?\s*\S",
    r"\b(?:we|i|you) (?:still )?(?:need|have) to\b.*\b(?:next|later|tomorrow|afterwards|before|eventually|once)\b",
    r"\b(?:tomorrow|next week|next sprint|in a follow-?up|for later|postponed?|deferred?|not yet)\b",
    r"\b(?:als nächstes|morgen|später|noch offen)\b",
    r"\b(?:ensuite|demain|plus tard|mañana|después|más tarde|pendiente)\b",
    r"(?:下一步|明天|稍后|待办|以后再|次は|明日|あとで)",
)

FACT = _any(
    r"^(?!it |that |this |he |she )\w+ (?:owns|maintains|leads|manages|handles|reviews|approves|works) \S+",
    r"^(?!it |that |this |there |here |what )\w+ (?:is|are|was|were) \S+ \S+",
    r"^(?:(?:by the way|btw|also|note),? )?(?:a|an|all|every|each|both|most|some) (?:\S+ ){1,6}?(?:is|are|was|were|has|have|can|costs?|takes?|goes?|needs?)\b",
    r"\b(?:my|our) (?:\S+ ){1,4}(?:is|are|was|were|has|have|runs?|lives?|uses?|starts?|ends?|supports?|lets?|belongs?|works?)\b",
    r"\b(?:i|we)(?:'m|'re| am| are| was| were| have| had|'ve| run| use| live| work| moved| bought| started| need| own| know| speak| come| got| host| deploy| store| support)\b",
    r"\b(?:the|this|that|its?) (?:\S+ ){0,6}(?:is|are|was|were|has|have|runs?|lives?|uses?|expires?|returns?|supports?|needs?|requires?|must|belongs?|costs?|takes?)\b",
    r"\b(?:mein|meine|unser|unsere|ich bin|ich habe|wir haben|wir sind|wir nutzen)\b",
    r"\b(?:mon|ma|notre|je suis|j'ai|nous avons|mi|nuestro|nuestra|soy|tengo|tenemos|usamos)\b",
    r"(?:我是|我的|我们的|我有|私は|私の|うちの)",
)

# Talk around the matter, and what only leads to a list or a block of code.
FILLER = _any(
    r"[:：]$",
    r"^(?:(?:good )?(?:morning|afternoon|evening)|hi|hello|hey|thanks?|thank you|thx|cheers|welcome back|back again|bye|yo|cool|nice|great|good|perfect|awesome|right|well)(?:,? (?:there|again|everyone|all|you|so much|a lot|then|for (?:that|now|today)|job|work|one|stuff|claude))*[.!,…]*$",
    r"^(?:and )?(?:one|another) (?:more|other|last) (?:thing|question|point)[.:!]*$",
    r"^that's (?:it|all)\b.{0,30}$",
    r"^(?:let me|i'll|i will) (?:think|see|check|look|know|get back)\b.{0,30}$",
    r"^(?:guten (?:morgen|tag|abend)|hallo|danke|vielen dank|bonjour|salut|merci|hola|gracias|你好|谢谢|こんにちは|ありがとう)[^.!?。]{0,16}[.!。]*$",
)  # fmt: skip

# A sentence that leans on the one before it.
CONTINUATION = _any(
    r"^(?:not|it|it's|its|that|that's|this|they|they're|them|those|these|but|and|so|then|because|though|although|otherwise|which|he|she|his|her|until then|from then|in that case|if so|same)\b",
    r"^(?:aber|denn|weil|sonst|dann|das|es|mais|parce|sinon|pero|porque|si no)\b",
    r"^(?:但|因为|所以|否则|而且|でも|だから|それ|ただし)",
)

# A sentence that points at something which it does not name.
POINTING = _any(
    r"\b(?:make|keep|call|set|use|do|leave|put|change|move|store) (?:it|that|this|them|those|these)\b",
    r"^(?:the )?(?:first|second|third|last|other|former|latter|same)(?: one)?\b",
    r"\b(?:that|this|the other|the first|the second) (?:one|way|option|approach)\b",
    r"^(?:das|dies|so)\b|^(?:ça|cela|eso|esto)\b|^(?:这个|那个|就这样)|^(?:それ|これ)",
)

# What holds for this once is no rule.
ONCE = _any(
    r"\b(?:this time|for now|(?:for|on|with) (?:this|that) one|just this|for today|right now|in this case)\b",
    r"\b(?:diesmal|fürs erste|cette fois|por ahora|esta vez)\b|(?:这次|暂时|今回|とりあえず)",
)

# What is said with a reservation is not settled.
TENTATIVE = _any(
    r"\b(?:maybe|perhaps|possibly|probably|tentatively|might want to|might be|could be that|not sure (?:yet )?(?:if|whether))\b",
    r"\b(?:i'm|i am|we're|we are) (?:considering|thinking (?:about|of)|leaning)\b|\bfor now i think\b",
    r"\b(?:vielleicht|möglicherweise|eventuell|wahrscheinlich|peut-être|probablement|quizás?|tal vez|a lo mejor)\b",
    r"(?:也许|可能|或许|大概|考虑|かもしれ|たぶん|多分|検討)",
)

# States that pass, and names that only a machine needs: nothing to remember for good.
PASSING = _any(
    r"^(?:the |all )?(?:\d+ )?(?:build|tests?|checks?|lint|ci|pipeline|suite|type ?check|compilation|install(?:ation)?)"
    r" (?:\w+ )?(?:pass(?:es|ed|ing)?|green|succeed(?:s|ed)?|ok|fine|clean|done|finished|complete[sd]?)\b[^,;:—]{0,40}$",
    r"^\S*(?:/tmp/|/var/folders/|/private/tmp/|\\Temp\\)\S*$",
    r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}[.]?$",
)

# What is denied, planned or conditional has not happened.
NOT_DONE = _any(
    r"\b(?:nothing|nobody|not|never|cannot|can't|will|would|should|could|must|if|once|until|unless|before|to be|going to|plan(?:ned|s)?)\b|n't\b",
    r"\b(?:nicht|kein|noch|wird|pas encore|no está|todavía no|aún no)\b",
    r"(?:没有|还没|尚未|まだ|ません)",
)

AGREEMENT = _any(
    r"^(?:yes|yep|yeah|yup|ok|okay|sure|sounds good|looks good|good|great|perfect|agreed|exactly|correct|right|go ahead|do it|please do|ship it|lgtm|fine)\b[^?]{0,80}$",
    r"^(?:ja|genau|passt|einverstanden|mach das|gut)\b[^?]{0,60}$",
    r"^(?:oui|d'accord|vas-y|sí|vale|de acuerdo|adelante)\b[^?]{0,60}$",
    r"^(?:好的?|可以|行|没问题|对|同意|はい|お願いします|いいです|了解)[^？]{0,30}$",
)

PROPOSAL = _any(
    r"[?？]\s*$",
    r"\b(?:i (?:suggest|propose|recommend|would)|my (?:suggestion|recommendation|proposal)|option \w+|shall i|should i|want me to|i'll|we could)\b",
    r"(?:建议|要不要|提案|おすすめ)",
)


# Questions that want a yes or a no, and such as open a conversation and are answered by whatever comes.
YES_OR_NO = _any(
    r"^(?:so,? |and |ok,? )?(?:do|does|did|is|are|was|were|should|shall|can|could|would|will|have|has|may|want|ready)\b",
)
# Questions that offer a choice, and an answer that says no.
CHOICE = _any(r"\b(?:which|either|or|prefer)\b")
NO = _any(r"^(?:no|nope|not|nah|nein|nicht|non)\b", r"^(?:いいえ|不|没)")
OPEN = _any(
    r"\b(?:what|how) (?:would|do|should|can|could|may) (?:you|i|we) (?:like|want|need|help|do|work|proceed|start|tackle)\b",
    r"\b(?:what's next|what next|anything else)\b|^(?:can|could|would|will) you\b",
)
# An agreement that may be followed by more; the others are mere openings when they are.
PLAIN_YES = _any(
    r"^(?:yes|yep|yeah|yup|agreed|exactly|go ahead|do it|please do|ship it|lgtm|ja|genau|oui|sí|はい|对)\b"
)


def asks(sentence: str) -> bool:
    """Tell whether a sentence asks instead of asserting."""
    return bool(QUESTION.search(sentence))

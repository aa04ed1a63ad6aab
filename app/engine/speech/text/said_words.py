"""The words by which languages tell who speaks, all in small letters. Facts alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from app.engine.speech.text.numerals import word_set, words


@dataclass(frozen=True, slots=True)
class Saying:
    """How a language that has capitals says who speaks."""

    verbs: frozenset[str]
    pronouns: frozenset[str]
    """They speak, too, but are no names."""
    fixed: frozenset[str]
    """Nor are these words, which begin sentences, as what follows them is a noun, or are answers and days. Friday may be Robinson's."""
    leads: frozenset[str]
    """A sentence may begin with these before whoever speaks."""
    between: frozenset[str]
    """These may stand beside a verb and before a name."""
    titles: frozenset[str]
    ands: frozenset[str]
    asides: frozenset[str] = frozenset()
    """With these, after "— Oui, dit Anna,", it is told on how she speaks."""
    name_first: bool = False
    """The name comes before the verb after a quote, too; and what comes after "Ben asked" is no subject."""
    articles: bool = True
    """A noun that begins a sentence without one is a name."""


def _saying(
    verbs: str,
    pronouns: str,
    fixed: str,
    leads: str,
    between: str,
    titles: str,
    ands: str,
    asides: str = "",
    name_first: bool = False,
    articles: bool = True,
) -> Saying:
    named = (word_set(fixed), word_set(leads), word_set(between), word_set(titles), word_set(ands), word_set(asides))
    return Saying(word_set(verbs), word_set(pronouns), *named, name_first, articles)


_RUSSIAN: Final = words(
    "сказал спросил ответил крикнул воскликнул прошептал шепнул пробормотал добавил продолжал продолжил повторил возразил заметил проговорил "
    "заговорил закричал вскричал объяснил приказал вздохнул буркнул проворчал промолвил проворковал попросил позвал предложил заявил произнёс"
)

SAYINGS: Final = {
    "en": _saying(
        verbs="said says asked asks replied replies answered answers cried cries whispered whispers shouted shouts called calls murmured murmurs "
        "muttered mutters exclaimed added adds continued began laughed sighed repeated insisted agreed explained growled snapped shrieked screamed "
        "warned wondered demanded inquired enquired declared remarked observed responded retorted gasped hissed groaned moaned sobbed grumbled "
        "mumbled stammered yelled roared bellowed urged begged pleaded admitted protested suggested announced interrupted told",
        pronouns="he she it they we you i who that which somebody someone nobody everybody everyone anybody anyone nothing something one neither both "
        "none another other others people many some all few most mine voices",
        fixed="the a an his her their my your our its this these those no every each any what whose well oh ah yes okay please thanks hello as when if had "
        "while because until unless although today tomorrow monday tuesday wednesday thursday saturday sunday",
        leads="and but then so now or at last again here there later yes",
        between="old young little poor dear then again quietly softly quickly slowly gently finally suddenly at last once also only loudly sharply "
        "coldly calmly firmly gravely simply hastily angrily sadly happily eagerly dryly drily perhaps maybe",
        titles="mr mrs ms miss mister madam madame dr doctor prof professor sir lady lord dame aunt auntie uncle captain capt colonel major general "
        "sergeant lieutenant inspector detective officer judge father brother sister mother king queen prince princess duke duchess count countess "
        "baron baroness old little young big st saint grandma grandpa granny cousin master mistress rev reverend monsieur mademoiselle herr frau",
        ands="and or",
        asides="and with in as who her his their the a an while without at on to then looking turning smiling laughing rising standing sitting",
        name_first=True,
    ),
    "de": _saying(
        verbs="sagte sagt fragte fragt antwortete antwortet rief ruft flüsterte flüstert erwiderte erwidert murmelte murmelt schrie schreit meinte meint "
        "entgegnete erklärte fügte fuhr gab warf setzte wiederholte brummte seufzte lachte stammelte stotterte ergänzte "
        "versetzte bemerkte befahl bat "
        "bestätigte versicherte widersprach zischte knurrte brüllte hauchte raunte wollte erkundigte begann sprach stimmte unterbrach drängte mahnte "
        "warnte erzählte verkündete jammerte schluchzte stöhnte keuchte grinste lächelte",
        pronouns="er sie es ich du wir ihr man wer jemand niemand keiner keine einer eine alle mancher manche dieser diese jener jene der das letzterer "
        "ersterer beide andere etwas nichts",
        fixed="die dem den des ein einen mein meine dein deine sein seine ihre unser unsere euer eure kein jeder jede dies dieses jenes viele "
        "alles nein ja ach na heute gestern morgen montag dienstag mittwoch donnerstag samstag sonnabend sonntag",
        leads="und aber doch dann da nun jetzt endlich schließlich daraufhin darauf danach plötzlich leise laut wieder also so hier dort später sofort "
        "nur auch zuerst zuletzt dabei draußen drinnen oben unten lachend schnell langsam ruhig",
        between="vielleicht leise laut nun da dann sich schließlich endlich wieder auch ihm ihr ihnen mir uns plötzlich",
        titles="herr herrn frau fräulein hr fr frl dr doktor prof professor tante onkel oma opa großmutter großvater vater mutter bruder schwester könig "
        "königin prinz prinzessin graf gräfin baron hauptmann kommissar kommissarin inspektor inspektorin kapitän pfarrer pater fürst herzog",
        ands="und oder",
    ),
    "fr": _saying(
        verbs="dit répondit répond demanda demande écria exclama cria crie murmura murmure ajouta ajoute reprit reprend continua répliqua réplique fit "
        "chuchota souffla lança soupira grogna hurla expliqua interrogea protesta insista déclara annonça observa remarqua rétorqua conclut proposa "
        "ordonna affirma répéta appela gémit balbutia bredouilla poursuivit coupa commença marmonna supplia avoua demandé répondu crié ajouté",
        pronouns="il elle on ils elles je tu nous vous qui celui-ci celle-ci personne quelqu’un quelqu'un chacun chacune tous toutes ceci cela ce rien",
        fixed="le la les un une des son sa ses mon ma mes ton ta tes notre votre leur leurs cet cette ces l’homme aucun oui non bien ah oh eh",
        leads="et mais alors puis enfin là ainsi or donc aussitôt soudain ensuite après",
        between="peut-être a lui leur me nous vous s le la vieux vieille petit petite jeune pauvre brave alors doucement enfin encore aussitôt",
        titles="m mm mme mlle mgr monsieur madame mademoiselle monseigneur maître me docteur dr professeur père mère frère sœur soeur oncle tante comte "
        "comtesse duc duchesse marquis marquise baron baronne roi reine prince princesse capitaine colonel général abbé inspecteur commissaire saint",
        ands="et ou",
        asides="qui que dont en et puis tout toute sans avec sur à au aux d de du des par pour le la les l un une sa son ses les comme après avant dans tandis "
        "pendant mais sourire plus très trop assez",
    ),
    "es": _saying(
        verbs="dijo dice preguntó pregunta respondió responde contestó contesta gritó grita exclamó exclama murmuró murmura susurró susurra añadió añade "
        "replicó repuso insistió explicó ordenó continuó prosiguió suspiró gimió balbuceó agregó aseguró afirmó admitió sugirió propuso interrumpió "
        "concluyó advirtió protestó repitió rió sonrió llamó quiso comentó",
        pronouns="él ella ello ellos ellas yo tú usted ustedes nosotros alguien nadie quien uno una todos todas otro otra éste ésta este esta aquél aquel "
        "que eso esto nada",
        fixed="el la los las un unos unas su sus mi mis tu tus nuestro nuestra ese esa aquella cada ningún sí no bien bueno ay",
        leads="y pero entonces luego después ahora así por fin al pues",
        between="quizás quizá le les me nos se lo el la viejo vieja joven pequeño pequeña pobre entonces también",
        titles="señor señora señorita sr sra srta don doña d dr dra doctor doctora profesor profesora padre madre fray sor tío tía capitán coronel general "
        "rey reina príncipe princesa conde condesa duque duquesa marqués marquesa maese inspector inspectora comisario san santa",
        ands="y e o u",
    ),
    "it": _saying(
        verbs="disse dice chiese chiede domandò domanda rispose risponde esclamò esclama gridò grida mormorò mormora sussurrò sussurra aggiunse aggiunge "
        "replicò ribatté continuò proseguì riprese urlò spiegò insistette insisté sospirò ordinò osservò propose concluse ripeté "
        "balbettò fece borbottò "
        "ammise protestò annunciò dichiarò supplicò chiamò sorrise",
        pronouns="lui lei egli ella esso essa loro io tu noi voi qualcuno nessuno chi uno una tutti tutte altro altra costui costei questi quello quella "
        "questo questa che ciò niente",
        fixed="il lo la i gli le un l suo sua suoi sue mio mia tuo tua nostro nostra ogni quel sì no bene beh ah oh",
        leads="e ed ma allora poi infine quindi così dunque ora subito dopo",
        between="forse gli le mi ci si il lo la vecchio vecchia giovane piccolo piccola povero povera allora piano ancora poi",
        titles="signor signore signora signorina sig don donna dottor dottore dottoressa dott professor professore professoressa padre madre fra suor zio "
        "zia nonno nonna capitano colonnello generale re regina principe principessa conte contessa duca duchessa marchese "
        "marchesa maestro ispettore "
        "commissario ser messer san santa",
        ands="e ed o od",
    ),
    "pt": _saying(
        verbs="disse diz perguntou pergunta respondeu responde gritou grita exclamou exclama murmurou murmura sussurrou sussurra acrescentou replicou "
        "retorquiu continuou prosseguiu insistiu explicou suspirou ordenou repetiu observou concordou afirmou sugeriu avisou protestou indagou falou "
        "quis comentou chamou pediu sorriu riu tornou",
        pronouns="ele ela eles elas eu tu você vocês nós alguém ninguém quem um uma todos todas outro outra este esta esse essa aquele aquela que isso nada",
        fixed="o a os as uns umas seu sua seus suas meu minha teu tua nosso nossa cada nenhum sim não bem ah oh",
        leads="e mas então depois agora assim por fim enfim logo",
        between="talvez lhe lhes me nos se o a velho velha jovem pequeno pequena pobre então também",
        titles="senhor senhora sr sra srta senhorita dona dom d seu dr dra doutor doutora professor professora padre madre frei irmã tio tia avô avó "
        "capitão coronel general rei rainha príncipe princesa conde condessa duque duquesa marquês marquesa mestre inspetor comissário são santa",
        ands="e ou",
    ),
    "ru": _saying(
        verbs=" ".join((*_RUSSIAN, *(f"{each}а" for each in _RUSSIAN)))
        + " произнес произнесла отозвался отозвалась согласился согласилась усмехнулся усмехнулась рассмеялся рассмеялась удивился удивилась говорит "
        "спрашивает отвечает кричит шепчет",
        pronouns="он она оно они я ты мы вы кто кто-то никто некто все один одна каждый другой другая тот та это который которая что",
        fixed="его её ее их мой моя твой твоя наш наша ваш ваша этот эта да нет ну ах ох",
        leads="и а но тогда потом затем наконец тут вдруг теперь",
        between="тихо громко вдруг ему ей им мне нам снова опять старый старая маленький маленькая бедный бедная тогда наконец",
        titles="господин госпожа г г-н г-жа доктор профессор дядя тётя тетя дед бабушка дедушка капитан полковник генерал князь княгиня княжна граф графиня "
        "барон отец мать брат сестра товарищ старик",
        ands="и или",
        articles=False,
    ),
}  # fmt: skip
GESTURES: Final = {
    "en": word_set(
        "smiled smiles nodded nods shrugged shrugs frowned frowns grinned grins laughed laughs chuckled giggled sighed sighs winked blinked snorted "
        "smirked scowled shook shakes cleared rolled raised crossed folded rubbed scratched"
    ),
    "de": word_set(
        "lächelte lächelt nickte nickt grinste grinst lachte lacht seufzte seufzt schüttelte schüttelt zuckte zuckt runzelte kicherte schmunzelte räusperte "
        "zwinkerte blinzelte schluckte schnaubte verdrehte verschränkte"
    ),
    "fr": word_set("sourit hocha haussa secoua soupira rit ricana acquiesça opina fronça"),
    "es": word_set("sonrió asintió suspiró encogió rió frunció carraspeó parpadeó"),
    "it": word_set("sorrise annuì sospirò rise scosse scrollò aggrottò sbuffò ammiccò"),
    "pt": word_set("sorriu assentiu suspirou riu abanou balançou encolheu franziu pigarreou piscou"),
    "ru": word_set(
        "улыбнулся улыбнулась кивнул кивнула вздохнул вздохнула пожал пожала покачал покачала засмеялся засмеялась усмехнулся усмехнулась"
        " нахмурился нахмурилась"
    ),
}
"""Whoever does this and says something in the same paragraph is one person; who knocks, waits, coughs or yawns may be answered."""
BODILY: Final = word_set(
    "shook shakes cleared rolled raised crossed folded rubbed scratched schüttelte schüttelt zuckte zuckt runzelte verdrehte verschränkte hocha haussa secoua "
    "fronça encogió frunció scosse scrollò aggrottò abanou balançou encolheu franziu пожал пожала покачал покачала"
)
BODY: Final = word_set(
    "head eyes throat arms shoulders brow brows eyebrow eyebrows nose chin kopf achseln schultern augen stirn brauen arme nase tête épaules sourcils "
    "cabeza hombros ceño testa spalle fronte cabeça ombros плечами головой"
)
"""These of them are gestures only with a part of one's own body; who raises a hand may be asked."""
SILENT: Final = word_set("nothing no little not")
"""Who says this, says no quote."""
HEARD: Final = word_set(
    "voice radio television shout cry call answer reply words note letter message stimme radio ruf schrei antwort worte zettel brief nachricht "
    "voix cri réponse mots lettre voz grito respuesta palabras carta voce risposta parole lettera resposta palavras голос крик ответ слова письмо"
)
"""What somebody smiles at may be what is quoted."""
CLAUSES: Final = word_set(
    "as when while until till but though because als während bis doch aber denn weil quand comme lorsque tandis mais cuando mientras como pero quando mentre "
    "come ma enquanto mas когда пока но как"
)
"""After one of these, somebody else may do something."""
ADDRESSING: Final = word_set("bat rief ruft fragte fragt warnte unterbrach")
"""Behind these, and whoever speaks, may stand at once to whom: bat Ben Anna."""
ARTICLES: Final = {
    "en": word_set("the a an"), "de": word_set("der die das ein eine"), "fr": word_set("le la les l un une"), "es": word_set("el la los las un una"),
    "it": word_set("il lo la i gli le l un uno una"), "pt": word_set("o a os as um uma"), "ru": word_set(""),
}  # fmt: skip
"""A sentence that begins with one of these is about somebody else."""
PARTICLES: Final = word_set("de du des la le von vom van der den ter da do dos das di del della")
"""A name goes on after these."""
RELATIONS: Final = word_set(
    "tante onkel oma opa großmutter großvater vater mutter bruder schwester père mère frère sœur soeur oncle padre madre tío tía "
    "zio zia nonno nonna irmã tio tia avô avó professeur maître profesor profesora professor professora maestro mestre"
)
"""Somebody whom a particle follows after these titles is another one: la mère de Paul."""

CHINESE_VERBS: Final = (
    "(?:[说說问問答喊叫嚷骂罵吼笑叹嘆应應怒喝]道|回答|补充|補充|解释|解釋|提议|提議|[说說问問答喊嚷骂罵吼道](?![服题題理话話]))"
)
CHINESE_HOW: Final = (
    "(?:高兴|高興|生气|生氣|愤怒|憤怒|激动|激動|紧张|緊張|平静|平靜|冷冷|淡淡|轻轻|輕輕|慢慢|缓缓|緩緩|认真|認真|惊讶|驚訝|"
    "奇怪|开心|開心|悲伤|悲傷|难过|難過|"
    "小心|急切|温柔|溫柔|严肃|嚴肅|坚定|堅定|不耐烦|不耐煩|得意|疑惑|好奇|兴奋|興奮|悄悄|默默|笑嘻嘻|笑眯眯|气呼呼|氣呼呼)地?|"
    "(?:微笑|苦笑|冷笑|笑|哭|喘|叹|嘆)着|(?:微笑|苦笑|冷笑|笑|哭|喘|嘆)著|(?:低|轻|輕|大|小|高|厉|厲|柔|齐|齊)[声聲]|"
    "笑了笑|想了想|点点头|點點頭|点头|點頭|摇摇头|搖搖頭|摇头|搖頭|叹了口气|嘆了口氣|又|便|就|也|却|卻|忙|连忙|連忙|赶紧|"
    "趕緊|立刻|马上|馬上|接着|接著|继续|繼續|终于|終於|突然|忽然|微笑|苦笑|冷笑"
)
CHINESE_SURNAMES: Final = (
    "(?:欧阳|歐陽|司马|司馬|诸葛|諸葛|上官|东方|東方|慕容|令狐|皇甫|独孤|獨孤|"
    "[王李张張刘劉陈陳杨楊黄黃赵趙吴吳周徐孙孫马馬朱胡郭何高林罗羅郑鄭梁谢謝宋唐许許韩韓冯馮邓鄧曹彭曾肖蕭田董袁潘蒋蔣蔡余杜叶"
    "葉程苏蘇魏吕呂丁沈姚卢盧姜崔钟鍾谭譚陆陸"
    "汪范廖贾賈夏韦韋方邹鄒孟熊秦邱江尹薛段雷侯龙龍陶黎贺賀顾顧郝龚龔邵钱錢严嚴武戴莫孔汤湯祝祁])"
)
CHINESE_NOT_GIVEN: Final = (
    "的地得着著了是在不没沒上下人声聲头頭口嘴手眼脸臉面边邊笑说說道问問答喊叫嚷想看听聽话話又也都还還再便对對向跟和"
    "与與把被让讓给給从從到这這那其之而且但或会會要兴興围圍怒喝答骂罵吼叹嘆摇搖点點站坐走"
)
"""Signs that are in nobody's given name, as they join words."""
CHINESE_TITLES: Final = (
    "(?:先生|太太|小姐|老师|老師|医生|醫生|夫人|女士|教授|经理|經理|队长|隊長|师傅|師傅|大人|大"
    "爷|大爺|大妈|大媽|大叔|大哥|大姐|局长|局長|校长|校長|博士|警官|叔叔|阿姨)"
)
CHINESE_FAMILY: Final = "妈妈|媽媽|爸爸|爷爷|爺爺|奶奶|外婆|外公|姥姥|姥爷|哥哥|姐姐|弟弟|妹妹"
CHINESE_SOUNDS: Final = (
    "阿埃艾爱愛安奥奧巴贝貝本比伯布查达達戴丹德迪蒂多厄恩尔爾法菲费費弗福盖蓋戈格贡哈海汉漢赫亨霍基吉加简簡杰傑卡凯凱科克肯库"
    "庫拉莱萊兰蘭劳勞雷丽麗莉利琳露伦倫罗羅洛玛瑪麦麥曼梅米莫姆穆娜内內"
    "尼妮诺諾欧歐帕佩皮珀普奇乔喬切琼瓊瑞萨薩塞森莎什斯史丝絲思苏蘇索塔泰汤湯特图圖托瓦威维維温溫沃乌烏西希雅亚亞伊约約扎詹茨兹茲朱翰摩"
)
"""Foreign names are written by their sounds with these."""
CHINESE_NOBODY: Final = word_set(
    "老师 老師 老板 老闆 老爷 老爺 老汉 老漢 老婆 老公 小姐 小孩 小伙 小鬼 小偷 小贩 小販 高兴 高興 安静 安靜 温和 溫和 方才 "
    "何必 何况 何況 张开 張開 黄昏 黃昏 哈哈 许多 許多 "
    "许久 許久 江湖 方丈 龙王 龍王 马夫 馬夫 特意 马车 馬車 何等 何处 何處 何时 何時 何故 何事 何方 何曾 曾经 曾經 胡乱 胡亂 严厉 嚴厲 严肃 嚴肅 夏天"
)

JAPANESE_VERBS: Final = (
    "(?:言っ|言い|言う|云っ|いった|答え|こたえ|尋ね|訊ね|たずね|聞い|訊い|叫ん|叫び|囁い|ささやい"
    "|呟い|つぶやい|話し|怒鳴っ|頼ん|続け|返し|促し|告げ|問う|問い|笑っ)"
)
JAPANESE_TITLES: Final = "(?:さん|くん|君|ちゃん|様|さま|先生|殿|氏)"
JAPANESE_NOBODY: Final = word_set(
    "彼女 彼等 誰か 自分 少年 少女 老人 老婆 子供 医者 店員 女性 男性 青年 全員 相手 本人 一人 二人 三人 他人 皆 声 男 女 彼 "
    "私 僕 俺 誰 母 父 兄 姉 弟 妹 王 娘 息子 夫 妻 客 店主 主人 警官 兵士 隊長 先生 生徒 学生"
)

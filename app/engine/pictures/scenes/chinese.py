"""Read a Chinese caption in the painter's English by a small dictionary, and write a scene in Chinese."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from app.engine.pictures.scenes.scene import Group, Scene

_CHINESE: Final = re.compile(r"[\u3400-\u9fff]")
_PUNCTUATION: Final = str.maketrans("，、；：。！？（）", ",,;:.!?()")
_SIMPLIFIED: Final = str.maketrans(
    "貓馬魚鳥鴨鯨蘋樹車燈風橋雲紅黃藍綠個隻棟輛條顆間邊裡陽帳兩張頂時後遠處綫圓筆畫氣夾將來們樣東鑽飛遊無沒與從對點聖誕蘑類滿繪鏡頭",
    "猫马鱼鸟鸭鲸苹树车灯风桥云红黄蓝绿个只栋辆条颗间边里阳帐两张顶时后远处线圆笔画气夹将来们样东钻飞游无没与从对点圣诞蘑类满绘镜头",
)
_MEASURES: Final = "只个艘座棵朵辆条匹头颗轮位名间栋片把顶架张道盏幅群块枝株枚支根"
_COUNTED: Final = re.compile(rf"([一二两三四五六七八九]|(?<!\d)\d{{1,3}})[{_MEASURES}]")
_COUNTS: Final = dict(
    zip("一二两三四五六七八九", ["a", "two", "two", "three", "four", "five", "six", "seven", "eight", "nine"], strict=True)
)
_BESIDE: Final = re.compile(r"在([^在,.;的]{1,12})的?([左右上下])[边侧方]")
"""It finds what stands beside another thing: "the cat is left of the house"."""
_SIDES: Final = {"左": "left of", "右": "right of", "上": "above", "下": "below"}

NOUNS: Final[Mapping[str, tuple[str, str]]] = {
    "circle": ("圆", "个"), "square": ("方块", "个"), "triangle": ("三角形", "个"), "star": ("星星", "颗"), "heart": ("爱心", "颗"),
    "diamond": ("菱形", "个"), "sun": ("太阳", "个"), "moon": ("月亮", "个"), "crescent moon": ("弯月", "个"), "cloud": ("云朵", "个"),
    "balloon": ("气球", "个"), "kite": ("风筝", "只"), "bird": ("鸟", "只"), "butterfly": ("蝴蝶", "只"), "house": ("房子", "座"),
    "castle": ("城堡", "座"), "lighthouse": ("灯塔", "座"), "windmill": ("风车", "座"), "tent": ("帐篷", "顶"), "bridge": ("桥", "座"),
    "tree": ("树", "棵"), "pine": ("松树", "棵"), "palm": ("棕榈树", "棵"), "cactus": ("仙人掌", "棵"), "flower": ("花", "朵"),
    "mushroom": ("蘑菇", "朵"), "person": ("人", "个"), "cat": ("猫", "只"), "dog": ("狗", "只"), "horse": ("马", "匹"), "rabbit": ("兔子", "只"),
    "snowman": ("雪人", "个"), "car": ("汽车", "辆"), "boat": ("船", "艘"), "fish": ("鱼", "条"), "duck": ("鸭子", "只"), "whale": ("鲸鱼", "条"),
    "apple": ("苹果", "个"), "cup": ("杯子", "个"),
}  # fmt: skip
"""Each thing of the card has its name and its measure word."""
COLOURS: Final[Mapping[str, str]] = {
    "red": "红色", "orange": "橙色", "yellow": "黄色", "green": "绿色", "blue": "蓝色", "purple": "紫色", "pink": "粉色", "brown": "棕色",
    "grey": "灰色", "white": "白色", "black": "黑色",
}  # fmt: skip
PLACES: Final[Mapping[str, str]] = {
    "middle": "中间", "left": "左边", "right": "右边", "top": "上方", "bottom": "下方", "top left": "左上方", "top right": "右上方",
    "bottom left": "左下方", "bottom right": "右下方",
}  # fmt: skip
GROUNDS: Final[Mapping[str, str]] = {"hills": "绿色的山丘", "snow": "雪地", "desert": "沙漠", "sea": "大海"}
TIMES: Final[Mapping[str, str]] = {"day": "", "sunset": "日落时的", "night": "夜晚的"}
WEATHER: Final[Mapping[str, str]] = {"clouds": "有云", "rain": "下着雨", "snowfall": "下着雪", "rainbow": "有彩虹"}
STYLES: Final[Mapping[str, str]] = {"watercolour": "水彩画", "pencil": "铅笔画", "lamp": "灯光下"}
SIZES: Final[Mapping[str, str]] = {"big": "大的", "small": "小的"}

_ALSO: Final = """
circle: 圆形 圆圈 圆球 球
square: 正方形 方形 方格 盒子 箱子
triangle: 三角
star: 星 五角星 星形
heart: 心 心形 红心 桃心
diamond: 钻石
sun: 日头
moon: 月 月球 圆月 满月 明月
crescent moon: 月牙 新月
cloud: 云彩 白云
balloon: 热气球
bird: 小鸟 鸟儿 海鸥 麻雀
house: 屋 屋子 别墅 小屋 木屋 房屋 房 家
castle: 古堡 宫殿
bridge: 大桥 小桥 木桥
tree: 树木 大树 小树 橡树
pine: 松 圣诞树
palm: 椰子树 椰树
flower: 花朵 鲜花 小花 玫瑰 郁金香
person: 人物 男人 女人 男孩 女孩 小孩 孩子 儿童 妈妈 爸爸
cat: 小猫 猫咪 猫儿
dog: 小狗 狗狗
horse: 马儿 小马
rabbit: 兔 小兔 小兔子 白兔
car: 车 小车 轿车
boat: 小船 帆船 轮船 船只 渔船
fish: 小鱼 金鱼 鱼儿
duck: 鸭 小鸭 小鸭子
whale: 鲸
cup: 茶杯 水杯 马克杯 杯
red: 红 大红
orange: 橙 橘色 橘黄色
yellow: 黄 金色 金黄色
green: 绿 绿油油
blue: 蓝 天蓝色
purple: 紫
pink: 粉 粉红 粉红色
brown: 棕 褐色 咖啡色
grey: 灰
white: 白 雪白
black: 黑
big: 大 巨大 很大
small: 小 很小
at the left: 左边有 左侧 左边 左面 左
at the right: 右边有 右侧 右边 右面 右
in the middle: 中间有 中心 中央 正中 中间
at the top: 上方有 上方 顶部
at the bottom: 下方有 下方 底部
at the top left: 左上方有 左上方 左上角
at the top right: 右上方有 右上方 右上角
at the bottom left: 左下方有 左下方 左下角
at the bottom right: 右下方有 右下方 右下角
by day: 白天 中午 下午
at sunset: 日落 日落时 夕阳 夕阳下 落日 傍晚 黄昏 晚霞
at sunrise: 日出 清晨 早晨 早上 黎明
at night: 夜 夜晚 夜里 晚上 深夜 月夜 星空
green hills: 绿色的山丘 山丘 小山 草地 草原 田野 山坡
green hills, mountains: 山水
snowy hills: 雪地 雪景 雪原 雪
a desert: 沙漠 沙丘
beach: 沙滩 海滩
the sea: 大海 海中 水中 海 海上 海面 海边 湖 湖面 湖上 水面
clouds: 有云 多云 云
rain: 雨中 下雨 下着雨 雨 雨天
falling snow: 下雪 下着雪 飘雪 雪花
a rainbow: 彩虹
mountains behind: 远处有山 远山 高山 山 群山 雪山
background: 背景
in watercolour: 水彩画 水彩
in pencil: 铅笔画 铅笔 素描
in lamplight: 灯光下 灯光
,: 和 与 跟 及 还有 旁边 旁 下 下面 前 前面 边上
no: 没有 不要 无 别
: 的 地 在 有 是 里 里面 上 上面 当中 着 了 正 那 这 时 远处 天空 空中 天上 飞 飞翔 飞过 站 站着 坐 坐着 开 游 游泳 长 停 挂 照 照着
: 一张 一幅 画 图 图片 请 我 想要 可爱 美丽 漂亮
"""
"""People also write these. Those of the last two lines say nothing."""
_UNLIKE: Final = """
熊猫 猫头鹰 热狗 狗熊 马路 斑马 河马 海马 马车 木马 马桶 马戏团 马铃薯 章鱼 鳄鱼 鱿鱼 美人鱼 鱼缸 鸟巢 鸟笼 鸵鸟
鸭嘴兽 花瓶 花盆 花生 烟花 浪花 火花 棉花 爆米花 机器人 外星人 稻草人 飞船 船长 火车 自行车 摩托车 过山车 缆车 车站
车轮 星球 地球 卫星 海星 开心 伤心 点心 月饼 家具 家庭 大家 国家 画家 科学家 房间 厨房 松鼠 松果 奖杯 红绿灯 西红柿
黄瓜 蓝莓 白菜 黑板 粉笔 面粉 大象 大学 大炮 小丑 小提琴 小麦 海豚 海豹 海龟 海盗 海报 雪糕 雪茄 雨伞 雨衣 山羊
树懒 树叶 飞机 飞碟 飞行员 长城 长颈鹿 长椅 游戏 游泳池 地图 地铁 画笔 和尚 和平 无人机 无花果 特别 分别 无限
"""
"""Each holds a known word and means something else: a road (马路) is no horse. It stays as it is, as any word that is not known."""


def _collect() -> dict[str, str]:
    words = {chinese: english for english, (chinese, _) in NOUNS.items()} | {chinese: english for english, chinese in COLOURS.items()}
    for line in _ALSO.strip().splitlines():
        english, _, chinese = line.partition(":")
        words |= dict.fromkeys(chinese.split(), english)
    return words


_WORDS: Final = _collect()
_OTHERS: Final = frozenset(_UNLIKE.split())
_LONGEST: Final = max(map(len, {*_WORDS, *_OTHERS}))


def is_chinese(prompt: str) -> bool:
    return bool(_CHINESE.search(prompt))


def read_chinese(prompt: str) -> str:
    """Return a prompt with its known Chinese words in English; the others stay as they are, each run of them a word. What is not Chinese stays."""
    if not is_chinese(prompt):
        return prompt
    plain = prompt.translate(_PUNCTUATION).translate(_SIMPLIFIED)
    plain = _BESIDE.sub(lambda found: f" {_SIDES[found[2][0]]} {found[1]}", plain)
    plain = _COUNTED.sub(lambda found: f" {_COUNTS.get(found[1], found[1])} ", plain)
    said, unknown, at = list[str](), "", 0
    while at < len(plain):
        pieces = (plain[at : at + n] for n in range(min(_LONGEST, len(plain) - at), 0, -1))
        piece = next((each for each in pieces if each in _WORDS or each in _OTHERS), plain[at])
        if piece in _WORDS or not is_chinese(piece):
            said += [unknown, f" {_WORDS[piece]} " if piece in _WORDS else piece]
            unknown = ""
        else:
            unknown = unknown or " "
            unknown += piece
        at += len(piece)
    return " ".join("".join([*said, unknown]).replace(" ,", ",").split())


def find_typed(prompt: str, english: str) -> str:
    """Return the Chinese word of a prompt that was read as this; what was not read so is returned as it is."""
    plain = prompt.translate(_SIMPLIFIED)
    return max(
        (prompt[at : at + len(chinese)] for chinese, meaning in _WORDS.items() if meaning == english and (at := plain.find(chinese)) >= 0),
        key=len,
        default=english,
    )


def write_chinese(scene: Scene) -> str:
    """Write a scene as a caption that is read back as the same; empty if there is nothing to paint."""
    groups = [_write_group(group) for group in scene.groups]
    if scene.ground:
        around = [WEATHER[scene.weather]] if scene.weather else []
        around += ["远处有山"] if scene.mountains else []
        parts = [f"{TIMES[scene.time or 'day']}{GROUNDS[scene.ground]}", *groups, *around]
    else:
        parts = [*groups, *([f"{COLOURS[scene.background]}背景"] if scene.background and groups else [])]
    return "，".join([*parts, STYLES[scene.style]] if scene.style and parts else parts)


def _write_group(group: Group) -> str:
    noun, measure = NOUNS[group.kind]
    colour = f"{COLOURS[group.colour]}的" if group.colour else ""
    count = {1: "一", 2: "两", 3: "三", 4: "四"}[group.count]
    place = f"{PLACES[group.place]}有" if group.place else ""
    return f"{place}{count}{measure}{SIZES.get(group.size, '')}{colour}{noun}"

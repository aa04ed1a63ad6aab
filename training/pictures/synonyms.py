"""Say which words of free English mean the same as words of the captions, and which come near. Tables alone; the card carries them.

A word for one thing stands for many of it too, and a value is made of the captions' own words. "with" before it: the thing is in the picture
besides, and takes no colour or size from the words around."""

from __future__ import annotations


def _each(table: dict[str, str]) -> dict[str, str]:
    """Turn meanings with their words into words with their meanings."""
    return {word.strip(): meaning for meaning, words in table.items() for word in words.split(",")}


ALSO = _each({
    "circle": "disc, disk, ball, dot, ring, sphere",
    "square": "box, cube, block",
    "diamond": "rhombus, gem",
    "heart": "love heart",
    "moon": "full moon",
    "crescent moon": "half moon, new moon, sickle moon, crescent",
    "balloon": "hot air balloon, air balloon, toy balloon",
    "house": "cottage, cabin, home, hut, farmhouse, chalet, log cabin, bungalow",
    "castle": "fortress, chateau",
    "windmill": "mill, wind mill",
    "lighthouse": "light house",
    "tent": "camping tent, wigwam, tipi, teepee",
    "bridge": "footbridge",
    "tree": "oak, oak tree, apple tree, birch, maple, linden, willow, beech, leafy tree, round tree",
    "palm": "palm tree, coconut tree, coconut palm",
    "pine": "pine tree, fir, fir tree, spruce, christmas tree, xmas tree, conifer, evergreen, larch",
    "cactus": "saguaro, cactus plant",
    "flower": "rose, tulip, daisy, poppy, blossom, lily, dandelion, daffodil, bloom, violet flower",
    "mushroom": "toadstool, fungus",
    "person": "man, woman, boy, girl, child, kid, human, human being, lady, guy, figure, gentleman, baby, toddler",
    "people": "men, women, children, persons, humans, folk, family, crowd",
    "cat": "kitten, kitty, pussycat, tomcat, kittycat",
    "dog": "puppy, doggy, doggie, pup, hound, terrier, poodle, spaniel",
    "horse": "pony, foal, stallion, mare, colt",
    "rabbit": "bunny, hare, bunny rabbit",
    "snowman": "snow man",
    "car": "automobile, motor car, motorcar, auto, vehicle",
    "boat": "sailboat, ship, yacht, sailing boat, sailing ship, sail boat, rowing boat, rowboat, fishing boat, vessel, dinghy",
    "fish": "goldfish, fishes, trout, salmon",
    "duck": "duckling, rubber duck",
    "bird": "sparrow, robin, songbird, birdie, seagull, gull",
    "cup": "mug, teacup, tea cup, coffee cup, coffee mug",
    "kite": "paper kite",
    "red": "crimson, scarlet, ruby, vermilion, reddish, cherry red, dark red, light red, bright red, blood red",
    "orange": "amber, tangerine, ginger, dark orange, orangey",
    "yellow": "golden, gold, lemon, mustard, bright yellow, light yellow, blond, yellowish",
    "green": "emerald, lime, olive, mint, dark green, light green, bright green, greenish, lime green, teal",
    "blue":
        "azure, cyan, turquoise, navy, navy blue, indigo, aqua, sky blue, light blue, dark blue, bright blue, pale blue, deep blue, "
        "bluish, royal blue, cobalt",
    "purple": "violet, lilac, lavender, mauve, dark purple, light purple",
    "pink": "magenta, fuchsia, light pink, bright pink, hot pink, salmon pink",
    "brown": "beige, tan, chestnut, chocolate, dark brown, light brown, hazel",
    "grey": "gray, silver, silvery, dark grey, light grey, dark gray, light gray",
    "white": "ivory, snow white",
    "black": "jet black, ebony, pitch black",
    "big": "huge, biggest, largest, giant, enormous, gigantic, tall, great, massive, wide, immense, oversized, colossal",
    "small": "tiny, tiniest, smallest, miniature, mini, wee, minuscule, short, petite, baby sized",
    "two": "pair of, couple of",
    "three": "several, few, trio of, row of",
    "four": "quartet of",
    "at the left":
        "left, left side, left hand side, on the left side, at the left side, to the left, on left, at left, leftmost, on the left "
        "hand side",
    "at the right":
        "right, right side, right hand side, on the right side, at the right side, to the right, on right, at right, rightmost, on "
        "the right hand side",
    "at the top": "top, on top, upper, high up, at the upper edge",
    "at the bottom": "bottom, lower, at the lower edge",
    "in the middle":
        "middle, center, centre, central, centred, centered, in the center, in the centre, in the middle of the picture, in center, "
        "in centre",
    "at the top left":
        "top left, upper left, left top, left upper, top left corner, upper left corner, left upper corner, top left hand corner, in "
        "the top left, in the upper left, on the top left, in the top left corner, in the upper left corner, at the upper left, upper "
        "left hand corner",
    "at the top right":
        "top right, upper right, right top, right upper, top right corner, upper right corner, right upper corner, top right hand "
        "corner, in the top right, in the upper right, on the top right, in the top right corner, in the upper right corner, at the "
        "upper right",
    "at the bottom left":
        "bottom left, lower left, left bottom, left lower, bottom left corner, lower left corner, left lower corner, bottom left hand "
        "corner, in the bottom left, in the lower left, on the bottom left, in the lower left corner, in the bottom left corner",
    "at the bottom right":
        "bottom right, lower right, right bottom, right lower, bottom right corner, lower right corner, right lower corner, bottom "
        "right hand corner, in the bottom right, in the lower right, on the bottom right, in the lower right corner, in the bottom "
        "right corner",
    "left of": "to the left of, on the left of, at the left of, on the left side of, left from, left side of",
    "right of": "to the right of, on the right of, at the right of, on the right side of, right from, right side of",
    "above": "over, on top of, higher than, atop, on the top of",
    "below": "under, underneath, beneath, lower than",
    "by day":
        "daytime, daylight, noon, midday, in the daytime, during the day, in daylight, at noon, by daylight, afternoon, in the "
        "afternoon, at day, blue sky, blue skies, clear blue sky, sunny sky",
    "at sunset":
        "dusk, evening, twilight, sundown, in the evening, at dusk, golden hour, evening sky, red sky, orange sky, pink sky, at "
        "twilight, nightfall, evening light",
    "at night":
        "midnight, after dark, nighttime, nite, night sky, night time, starry night, starry, starlit, starry sky, in the night, at midnight, in "
        "the dark, late night, under the stars, night scene, during the night, starlight, stars in the sky, sky full of stars",
    "with sun by day": "sunny, sunny day, sunshine, sun shining, sun shines, sun is shining, sunlit",
    "with sun at sunset":
        "sun goes down, sun is going down, sun going down, setting sun, sun sets, sun is setting",
    "with moon at night": "moonlit, moonlight, in the moonlight, moonshine, moonlit night",
    "green hills":
        "hill, hills, hillside, hilltop, field, grass, grassland, green field, green meadow, green hill, green grass, countryside, park, garden, "
        "lawn, pasture, grassy hill, valley, landscape, rolling hills, green landscape, in the country, green valley, nature, "
        "prairie, farm, spring, summer",
    "snow":
        "snowy, winter, snowy landscape, winter landscape, ice, icy, white snow, snow covered, snowy field, snow field, snowy hill, "
        "in winter, arctic, wintry, snowy ground, deep snow",
    "a desert": "dune, dunes, sand, sandy, sahara, desert dunes, sand dune, yellow sand, hot desert, sandy desert",
    "the sea":
        "ocean, lake, water, river, pond, sea water, blue sea, blue water, blue ocean, waves, open sea, seaside, blue lake, calm "
        "water, coast, harbour, harbor, bay, high seas, calm ocean, sea shore, seashore, at sea, sail on the sea, stream",
    "clouds": "cloudy, overcast, cloudy sky, grey sky, gray sky, white clouds, cloudy day",
    "rain":
        "rainy, raining, stormy, storm, rainstorm, drizzle, downpour, it rains, rainy day, thunderstorm, pouring, wet weather, raindrops, rain "
        "falls, bad weather, rain falling, rains, tempest",
    "falling snow": "snowing, snowfall, it snows, snow is falling, snow falling, snowflakes, blizzard, snowstorm, snow falls, snows, snow storm",
    "mountains":
        "mountain, alps, peaks, mountain range, summit, mountainous, mountains in the distance, mountain peak, cliffs, mountains in "
        "the background",
    "snow mountains": "snow covered mountains, snowy mountains, snow capped mountains, snowy mountain, snowy peaks, snowy alps",
    "in watercolour":
        "watercolour, watercolor, aquarelle, in watercolor, watercolour painting, watercolor painting, water colour, water color, "
        "watercolour style, watercolor style, watercolours, watercolors, in watercolours, in watercolors, watercolour painting of, "
        "watercolor painting of",
    "in pencil":
        "pencil, pencil sketch, sketch, pencil drawing, graphite, with pencil, in pencils, drawn in pencil, pencil "
        "sketch of, pencil style, black and white pencil drawing, black and white drawing, charcoal",
    "in lamplight":
        "lamplight, lamp light, candlelight, candlelit, lamplit, by candlelight, by lamplight, in lamp light, in candlelight, by lamp "
        "light, night lamp, in the lamplight, warm light, in the candlelight, lantern light, candle light",
    "outdoors three trees": "forest, woods, wood, grove, jungle, woodland, in the woods, in the forest",
    "outdoors three pines": "pine forest, fir forest, pine wood, pine woods",
    "blue bird": "bluebird",
    "two flowers": "bouquet of flowers, bunch of flowers, flower bed",
})  # fmt: skip
"""They are painted, and the person is told as what."""

NEAR = _each({
    "house": "barn, building, church, school, villa, shed, shop, hotel, mansion, temple, skyscraper",
    "castle": "palace, tower, ruin",
    "tree": "bush, shrub, plant",
    "flower": "sunflower, orchid, iris, bluebell",
    "apple": "pear, peach, cherry, tomato, fruit",
    "cup": "glass, bowl, pot, vase, jug, bottle",
    "person":
        "king, queen, princess, prince, knight, farmer, sailor, fisherman, dancer, cowboy, soldier, mother, father, witch, wizard, "
        "grandma, grandpa, grandmother, grandfather, teacher, mom, mum, mommy, dad, daddy",
    "car": "truck, bus, lorry, van, taxi, jeep, tractor, train",
    "boat": "sail, canoe, raft, submarine, ferry, kayak, gondola",
    "bird": "eagle, crow, owl, parrot, hawk, raven, pigeon, dove, swallow",
    "duck": "swan, goose",
    "cat": "lion, tiger, leopard, panther",
    "dog": "wolf, fox",
    "horse": "donkey, zebra, mule, deer",
    "fish": "shark, dolphin, carp",
    "whale": "orca",
    "butterfly": "moth, dragonfly",
    "balloon": "zeppelin, airship",
    "square": "rectangle",
    "circle": "oval, ellipse, bubble",
    "a desert": "beach, island, shore",
    "at sunset": "dawn, sunrise, at dawn, at sunrise, early morning, in the early morning, daybreak, at daybreak",
    "with sun at sunset": "rising sun, sun rises, sun rising, sun is rising, sun comes up",
    "bridge": "pier",
    "four": "many, lots, lots of, lots and lots of, lot of, dozen, hundreds of, a flock of, full of, herd of",
    "brown": "bronze, copper, maroon, burgundy, wooden",
    "pink": "peach coloured, coral",
    "clouds": "fog, foggy, mist, misty, haze, hazy",
})  # fmt: skip
"""They are painted as the nearest, and are marked as not known."""

SHOWS = {"night": ["star"], "rain": ["clouds", "cloud"], "snowfall": ["clouds", "cloud"]}
"""A picture of such a time or weather shows these anyhow."""
ONLY_AT = {"rainbow": ["day"]}
"""A weather that does not come at all times comes at these."""
OUTDOORS = ("outdoors", "sky", "in the sky", "clear sky", "in the air", "outside", "horizon")
"""It makes a landscape of a picture, and says no more."""
USUAL_GROUND = {"": "hills", "snowfall": "snow"}
"""Where no land is said, a weather has this one; any other weather has the first."""

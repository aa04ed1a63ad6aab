// Sample texts with words that the starter models know. Always English, which is all that these models read.
(() => {
  const { t } = Hearth;

  Hearth.first = {
    script: "[S1] Hello, my friend. Welcome, the fire is warm. [S2] Good evening, and thank you. Now we listen.",
    prompt: "green hills at sunset with the sun on the right, a red house on the left and a pine tree in the middle",
  };
  Hearth.scripts = () => [
    [t("sample.morning", "A good morning"), "[S1] Good morning, my friend. Is the kitchen warm? [S2] Yes, the fire is bright. Please bring bread and coffee."],
    [t("sample.story", "A short story"), "[S1] The moon is on the water and the garden is quiet. [S2] We listen, and the children sing."],
    [t("sample.answer", "Question and answer"), "[S1] Where is my purple book? [S2] Maybe behind the chair. (pause 0.5s) [S1] Thank you!"],
  ];
  Hearth.prompts = () => [
    [t("sample.boat", "A boat at sunset"), "a calm sea at sunset with the sun in the middle, a white sailboat on the left and mountains behind"],
    [t("sample.hills", "A house in the hills"), "green hills on a sunny day with a sun on the left, white clouds, a yellow cottage in the middle and a tree on the right"],
    [t("sample.night", "Snow at night"), "snowy hills by night, a full moon on the right, a red house on the left and a pine tree in the middle"],
    [t("sample.shapes", "Shapes"), "three yellow stars in a row on a purple background"],
  ];
})();

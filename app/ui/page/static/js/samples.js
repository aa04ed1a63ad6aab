// Sample texts for the starter models. Always English, which is all that these models read.
(() => {
  const { t } = Hearth;

  Hearth.first = {
    script: "[S1] Hello, and welcome to Hearth. Nobody recorded this: your own machine is speaking. [S2] Type any English sentence, and one of us will read it to you.",
    prompt: "green hills at sunset with the sun on the right, a red house on the left and a pine tree in the middle",
  };
  Hearth.scripts = () => [
    [t("sample.morning", "A good morning"), "[S1] Good morning! Did you sleep well? [S2] Like a stone. Is there any coffee left, or have you finished it again?"],
    [t("sample.story", "A short story"), "[S1] Once upon a time, an old lighthouse keeper found a letter in a bottle. It was dated 1912, and it was addressed to him. [S2] He read it twice, and then he put on his coat."],
    [t("sample.answer", "Question and answer"), "[S1] How far away is the moon? [S2] About 384,000 kilometers. (pause 0.5s) [S1] Then I had better leave before lunch."],
  ];
  Hearth.prompts = () => [
    [t("sample.boat", "A boat at sunset"), "a calm sea at sunset with the sun in the middle, a white sailboat on the left and mountains behind"],
    [t("sample.hills", "A house in the hills"), "green hills on a sunny day with a sun on the left, white clouds, a yellow cottage in the middle and a tree on the right"],
    [t("sample.night", "Snow at night"), "snowy hills by night, a full moon on the right, a red house on the left and a pine tree in the middle"],
    [t("sample.shapes", "Shapes"), "three yellow stars in a row on a purple background"],
  ];
})();

// Sample texts for the starter models. Always English, which is all that these models read.
import { t } from "./words.js";


export const firstSamples = {
  script: "[S1] Hello, and welcome to Hearth. Nobody recorded this: your own machine is speaking. [S2] Type any English sentence, and one of us will read it to you.",
  prompt: "green hills with a yellow house and a rainbow",
};
export const scripts = () => [
  [t("sample.morning", "A good morning"), "[S1] Good morning! Did you sleep well? [S2] Like a stone. Is there any coffee left, or have you finished it again?"],
  [t("sample.story", "A short story"), "[S1] Once upon a time, an old lighthouse keeper found a letter in a bottle. It was dated 1912, and it was addressed to him. [S2] He read it twice, and then he put on his coat."],
  [t("sample.answer", "Question and answer"), "[S1] How far away is the moon? [S2] About 384,000 kilometers. (pause 0.5s) [S1] Then I had better leave before lunch."],
];
export const prompts = () => [
  [t("sample.boat", "A boat at sunset"), "the sea at sunset with a red lighthouse at the left, a white boat in the middle and mountains behind"],
  [t("sample.hills", "A house in the hills"), "green hills with a yellow house at the left and a rainbow"],
  [t("sample.night", "Snow at night"), "snowy hills at night with a moon at the right, a red house at the left and a pine in the middle"],
  [t("sample.desert", "A desert at sunset"), "a desert at sunset with a cactus at the left, a brown horse at the right and mountains behind"],
];

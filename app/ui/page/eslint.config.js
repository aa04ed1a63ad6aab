// What `eslint` looks for in the page's scripts, beside its own recommendations.
import js from "@eslint/js";
import globals from "globals";

export default [
  js.configs.recommended,
  {
    languageOptions: { globals: globals.browser },
    rules: {
      eqeqeq: ["error", "always", { null: "ignore" }],
      "no-control-regex": "off", // drop.js looks for what no text has
      "no-shadow": "error", // an import that a local name hides would be called by mistake
      "no-use-before-define": ["error", { functions: false, variables: false }],
      "no-var": "error",
      "prefer-const": "error",
    },
  },
];

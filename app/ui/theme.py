"""The face as Gradio knows it: one palette for light and dark, handed to its theme; all else is in face/hearth.css."""

from __future__ import annotations

from typing import Final

import gradio as gr

PALETTE: Final[dict[str, tuple[str, str]]] = {
    "ground": ("#faf6f0", "#161311"),
    "card": ("#fffdfa", "#1f1b18"),
    "line": ("#e7ddd0", "#3a332d"),
    "edge": ("#8f8273", "#82766a"),
    "ink": ("#221d18", "#f4ede4"),
    "soft": ("#6a6056", "#b3a799"),
    "ember": ("#b8420f", "#ff9159"),
    "ember-ground": ("#fbe9df", "#3a2217"),
    "on-ember": ("#ffffff", "#221108"),
    "right": ("#2b6a4d", "#7fd0a8"),
    "right-ground": ("#e3f1ea", "#17322a"),
    "careful": ("#8a5a00", "#f0c060"),
    "careful-ground": ("#fbf0d6", "#382c12"),
    "wrong": ("#a3271b", "#ff9a8d"),
    "wrong-ground": ("#fbe3e0", "#3b1c19"),
    "speaker1": ("#1f5f8b", "#8cc7f2"),
    "speaker1-ground": ("#e2eef7", "#172a38"),
    "speaker2": ("#7a3f91", "#d7a6ea"),
    "speaker2-ground": ("#f3e6f7", "#2f1c37"),
}
"""Name: (light, dark). Text on its ground keeps 4.5:1, `edge` on a card 3:1; a test holds both."""

FONTS: Final = (
    "system-ui",
    "-apple-system",
    "Segoe UI",
    "Roboto",
    "Noto Sans",
    "Noto Sans CJK SC",
    "PingFang SC",
    "Microsoft YaHei",
    "sans-serif",
)
MONO: Final = ("ui-monospace", "SF Mono", "Menlo", "Consolas", "DejaVu Sans Mono", "monospace")

_USES: Final = {
    "body_background_fill": "ground", "body_text_color": "ink", "body_text_color_subdued": "soft",
    "background_fill_primary": "card", "background_fill_secondary": "ground",
    "block_background_fill": "card", "block_border_color": "line", "block_label_background_fill": "card", "block_label_text_color": "soft",
    "block_label_border_color": "line", "block_title_text_color": "ink", "block_info_text_color": "soft", "panel_background_fill": "card",
    "border_color_primary": "line", "border_color_accent": "ember", "border_color_accent_subdued": "line",
    "color_accent_soft": "ember-ground", "accordion_text_color": "ink", "table_text_color": "ink", "link_text_color": "ember",
    "link_text_color_hover": "ember", "link_text_color_active": "ember", "link_text_color_visited": "ember",
    "input_background_fill": "card", "input_border_color": "edge", "input_border_color_focus": "ember", "input_border_color_hover": "edge",
    "input_placeholder_color": "soft", "input_background_fill_focus": "card",
    "button_primary_background_fill": "ember", "button_primary_background_fill_hover": "ember", "button_primary_text_color": "on-ember",
    "button_primary_text_color_hover": "on-ember", "button_primary_border_color": "ember", "button_primary_border_color_hover": "ember",
    "button_secondary_background_fill": "card", "button_secondary_background_fill_hover": "ember-ground", "button_secondary_text_color": "ink",
    "button_secondary_text_color_hover": "ink", "button_secondary_border_color": "line", "button_secondary_border_color_hover": "edge",
    "button_cancel_background_fill": "card", "button_cancel_background_fill_hover": "wrong-ground", "button_cancel_text_color": "wrong",
    "button_cancel_text_color_hover": "wrong", "button_cancel_border_color": "wrong", "button_cancel_border_color_hover": "wrong",
    "checkbox_background_color": "card", "checkbox_background_color_selected": "ember", "checkbox_border_color": "edge",
    "checkbox_border_color_selected": "ember", "checkbox_label_background_fill": "card", "checkbox_label_background_fill_hover": "ember-ground",
    "checkbox_label_background_fill_selected": "ember-ground", "checkbox_label_text_color": "ink", "checkbox_label_text_color_selected": "ink",
    "checkbox_label_border_color": "line", "checkbox_label_border_color_selected": "ember", "slider_color": "ember",
    "error_background_fill": "wrong-ground", "error_text_color": "wrong", "error_border_color": "wrong", "error_icon_color": "wrong",
    "table_border_color": "line", "table_even_background_fill": "card", "table_odd_background_fill": "card", "stat_background_fill": "ember",
    "code_background_fill": "ground", "loader_color": "ember",
}  # fmt: skip
_SIZES: Final = {
    "block_border_width": "1px", "block_radius": "14px", "block_shadow": "none", "block_shadow_dark": "none", "container_radius": "14px",
    "block_padding": "16px", "layout_gap": "18px", "form_gap_width": "0px", "input_radius": "10px", "input_shadow": "none",
    "input_shadow_focus": "none", "button_large_radius": "12px", "button_medium_radius": "10px", "button_small_radius": "999px",
    "button_primary_shadow": "none", "button_secondary_shadow": "none", "button_primary_shadow_hover": "none", "button_secondary_shadow_hover": "none",
    "button_primary_shadow_active": "none", "button_secondary_shadow_active": "none", "button_large_text_weight": "600",
    "block_title_text_weight": "600", "input_border_width": "1px", "button_border_width": "1px", "block_label_text_weight": "400", "checkbox_label_shadow": "none",
}  # fmt: skip


def theme() -> gr.themes.Base:
    base = gr.themes.Base(font=FONTS, font_mono=MONO, radius_size="lg", text_size="md", spacing_size="md")
    colours = {name: PALETTE[use][0] for name, use in _USES.items()}
    dark = {f"{name}_dark": PALETTE[use][1] for name, use in _USES.items()}
    return base.set(**colours, **dark, **_SIZES)


def variables() -> str:
    """The palette as CSS, for our own parts."""

    def block(selector: str, which: int) -> str:
        return selector + "{" + "".join(f"--h-{name}:{pair[which]};" for name, pair in PALETTE.items()) + "}"

    return block(":root", 0) + block(":root .dark, body.dark", 1)

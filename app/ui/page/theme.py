"""Gradio's theme from our palette, light and dark; all other styles are in static/css."""

from __future__ import annotations

from typing import Final

import gradio as gr

from app.base.palette import PALETTE

FONTS: Final = (
    "system-ui", "-apple-system", "Segoe UI", "Roboto", "Noto Sans", "Noto Sans CJK SC", "PingFang SC", "Microsoft YaHei", "sans-serif",
)  # fmt: skip
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
    "button_primary_shadow": "none", "button_secondary_shadow": "none", "button_primary_shadow_hover": "none",
    "button_secondary_shadow_hover": "none", "button_primary_shadow_active": "none", "button_secondary_shadow_active": "none",
    "button_large_text_weight": "600", "block_title_text_weight": "600", "input_border_width": "1px", "button_border_width": "1px",
    "block_label_text_weight": "400", "checkbox_label_shadow": "none",
}  # fmt: skip


def theme() -> gr.themes.Base:
    base = gr.themes.Base(font=FONTS, font_mono=MONO, radius_size="lg", text_size="md", spacing_size="md")
    colours = {name: PALETTE[use][0] for name, use in _USES.items()}
    dark = {f"{name}_dark": PALETTE[use][1] for name, use in _USES.items()}
    return base.set(**colours, **dark, **_SIZES)

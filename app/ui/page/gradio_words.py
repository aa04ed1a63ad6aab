"""Gradio's own texts where Hearth says them otherwise, or Gradio has no Chinese. The keys are Gradio's; its labels without a key: gradio.js."""

from __future__ import annotations

from typing import Final

from app.base.sentence import say

GRADIO_WORDS: Final = (
    say("upload_text.drop_file", "Drop a file here"),
    say("upload_text.drop_audio", "Drop a recording here"),
    say("upload_text.click_to_upload", "click to choose one"),
    say("common.upload", "Upload"),
    say("file.uploading", "Uploading…"),
    say("blocks.waiting_for_inputs", "A file is still being uploaded. Try again in a moment."),
    say("image_editor.brush", "Brush"),
    say("image_editor.brush_size", "Brush size"),
    say("image_editor.erase", "Erase"),
    say("image_editor.eraser_size", "Eraser size"),
    say("image_editor.color", "Colour"),
    say("image_editor.clear_canvas", "Clear all"),
    say("image_editor.fit_to_screen", "Fit to screen"),
    say("image_editor.pan", "Move"),
    say("image_editor.paste", "Paste"),
    say("image_editor.redo", "Redo"),
    say("image_editor.save_changes", "Save changes"),
    say("image_editor.select_draw_tool", "Choose a tool to begin"),
    say("image_editor.upload", "Upload"),
    say("image_editor.upload_image", "Choose a picture"),
    say("image_editor.zoom_in", "Zoom in"),
    say("image_editor.zoom_out", "Zoom out"),
)

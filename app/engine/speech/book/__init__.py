"""Books that others wrote, read into chapters: plain text, Markdown, subtitles, EPUB, Word and PDF."""

#!/usr/bin/env bash
# Double-clicked on a Mac: hearth.sh does the work; this window closes by itself on success.
top=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P) || exit 1
printf '\033]0;Hearth\007'
"$top/hearth.sh" "$@" || exit
if [ "$#" = 0 ] && [ "${TERM_PROGRAM:-}" = Apple_Terminal ]; then
  # Find this window by its tty: its name might be that of another one.
  nohup osascript -e 'on run argv' -e 'delay 0.5' -e 'tell application "Terminal"' -e 'repeat with shown in (get windows)' \
    -e 'try' -e 'if tty of tab 1 of shown is item 1 of argv then close shown saving no' -e 'end try' \
    -e 'end repeat' -e 'end tell' -e 'end run' "$(tty)" >/dev/null 2>&1 &
fi

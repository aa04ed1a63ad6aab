#!/usr/bin/env bash
# What a person double-clicks on a Mac: hearth.sh does the work, and this window closes by itself when it went well.
top=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P) || exit 1
printf '\033]0;Hearth\007'
"$top/hearth.sh" "$@" || exit
if [ "$#" = 0 ] && [ "${TERM_PROGRAM:-}" = Apple_Terminal ]; then
  nohup osascript -e 'delay 0.5' -e 'tell application "Terminal" to close (every window whose name contains "Hearth") saving no' \
    >/dev/null 2>&1 &
fi

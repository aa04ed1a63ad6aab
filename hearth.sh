#!/usr/bin/env bash
# Double-clicked on Linux (on a Mac through Hearth.command): find or download a fitting Python, let start.py make what is
# missing in a terminal window that shows its progress, open Hearth, and exit.
set -u

top=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P) || exit 1
case "$(uname -s)" in
  Darwin) data="${HEARTH_HOME:-$HOME/Library/Application Support/Hearth}" ;;
  *) data="${HEARTH_HOME:-${XDG_DATA_HOME:-$HOME/.local/share}/Hearth}" ;;
esac

# A terminal running as an Intel program reports x86_64 on Apple silicon; torch needs a native Python.
machine=$(uname -m) chip=
if [ "$(uname -s)" = Darwin ] && [ "$(sysctl -n hw.optional.arm64 2>/dev/null)" = 1 ]; then machine=arm64 chip=arm64; fi

# The publisher's checksums of this release; no other file is run.
UV=0.12.10
uv_build() {
  case "$(uname -s) $machine" in
    "Darwin arm64") echo aarch64-apple-darwin 51c6170e8e3a01cef9f33b94f582b7b81ac65046f55d40afb35f9cff5a68c179 ;;
    "Linux x86_64") echo x86_64-unknown-linux-gnu 173d95a0c32d18c896c46ba6fafbf3cf9c14ab74b033f81b76c883ef492a976b ;;
    "Linux aarch64") echo aarch64-unknown-linux-gnu 9ff6b9d4665edcdd3a88dcc73cd1eb641754deb927f14e8c62ebfde6bf4f5f5e ;;
  esac
}

fits() { # on a Mac /usr/bin/python3 is a stub that offers to install developer tools
  [ -x "$1" ] && { [ "$(uname -s)" != Darwin ] || [ "$1" != /usr/bin/python3 ]; } &&
    "$1" -c 'import platform, sys, venv, ensurepip
sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14) or sys.argv[1] not in ("", platform.machine()))' "$chip" >/dev/null 2>&1
}

find_python() { # a Finder gives hardly any PATH
  local name found
  for found in "$data"/python/*/bin/python3; do fits "$found" && echo "$found" && return; done
  for name in python3.13 python3.12 python3.11 python3.14 python3; do
    for found in "$(command -v $name)" "/opt/homebrew/bin/$name" "/usr/local/bin/$name" \
      "/Library/Frameworks/Python.framework/Versions/${name#python}/bin/$name" "$HOME/.local/bin/$name"; do
      [ -n "$found" ] && fits "$found" && echo "$found" && return
    done
  done
  return 1
}

bring_python() {
  local build sum at got
  if [ "$(uname -s)" = Darwin ] && [ "$machine" = arm64 ] && [ "$(sw_vers -productVersion | cut -d . -f 1)" -lt 14 ]; then
    echo "This Mac runs macOS $(sw_vers -productVersion), and torch, which computes for Hearth, needs macOS 14. Every Mac with Apple" \
      "silicon can be updated: open System Settings, General, Software Update, then start Hearth again." >&2
    return 1
  fi
  read -r build sum <<<"$(uv_build)"
  if [ -z "$build" ]; then
    echo "Hearth needs Python 3.11 to 3.14, and none was found. Install one from python.org and start again." >&2
    return 1
  fi
  at="$data/uv-$UV"
  mkdir -p "$at" || return 1
  if [ ! -x "$at/uv" ]; then
    echo "No suitable Python was found (3.11 to 3.14). Downloading uv $UV, which installs one for Hearth only." >&2
    if ! curl -fL --proto =https --retry 2 --connect-timeout 15 --progress-bar -o "$at/uv.tar.gz" \
      "https://github.com/astral-sh/uv/releases/download/$UV/uv-$build.tar.gz"; then
      echo "The download failed. Check the connection or install Python from python.org, then start again." >&2
      return 1
    fi
    got=$( (sha256sum "$at/uv.tar.gz" 2>/dev/null || shasum -a 256 "$at/uv.tar.gz") | cut -d ' ' -f 1)
    if [ "$got" != "$sum" ]; then
      rm -f "$at/uv.tar.gz"
      echo "The downloaded uv $UV has the wrong checksum $got instead of $sum. It was deleted and not run." >&2
      return 1
    fi
    tar -xzf "$at/uv.tar.gz" -C "$at" --strip-components 1 && rm -f "$at/uv.tar.gz" || return 1
  fi
  UV_PYTHON_INSTALL_DIR="$data/python" "$at/uv" --no-config python install --no-bin 3.12 >&2 || return 1
  find_python
}

wait_for_key() { [ -t 0 ] && read -r -p "Press Return to close this window. " _; }

ready() { [ -f "$top/.venv/current" ] || compgen -G "$data/environment-*/current" >/dev/null; }

in_a_window() { # the first terminal program found
  local terminal
  for terminal in x-terminal-emulator gnome-terminal konsole xfce4-terminal kitty alacritty foot xterm; do
    command -v $terminal >/dev/null || continue
    case $terminal in
      gnome-terminal) exec gnome-terminal -- "$@" ;;
      kitty | foot) exec "$terminal" "$@" ;;
      xfce4-terminal) exec xfce4-terminal -x "$@" ;;
      *) exec "$terminal" -e "$@" ;;
    esac
  done
}

# Something has to be made and no terminal shows it: open one.
if [ "$#" = 0 ] && ! [ -t 1 ] && ! ready; then
  if [ "$(uname -s)" = Darwin ]; then exec open -a Terminal "$top/Hearth.command"; fi
  [ -n "${DISPLAY:-}${WAYLAND_DISPLAY:-}" ] && in_a_window "$top/hearth.sh"
fi

python=$(find_python) || python=$(bring_python) || { wait_for_key; exit 1; }

# With arguments: run that command.
if [ "$#" -gt 0 ]; then exec "$python" "$top/start.py" "$@"; fi

new=1
ready && new=
if ! "$python" "$top/start.py" --version; then
  [ -t 0 ] || exec "$python" "$top/start.py" # no terminal: let a page explain it, with Repair
  wait_for_key
  exit 1
fi
if [ -n "$new" ] && [ -t 0 ]; then
  read -r -t 60 -p "Add Hearth to your apps, with its icon? [Y/n] " answer || { answer=n; echo; }
  case "$answer" in [nN]*) ;; *) "$python" "$top/start.py" install-app ;; esac
fi

# Hearth keeps running when this window closes.
mkdir -p "$data/logs"
log="$data/logs/launcher.log"
nohup "$python" "$top/start.py" >"$log" 2>&1 </dev/null &
hearth=$!
for _ in 1 2 3 4 5 6; do
  sleep 1
  kill -0 "$hearth" 2>/dev/null && continue
  wait "$hearth" && exit 0
  echo "Hearth could not start. What it said:" >&2
  tail -n 20 "$log" >&2
  echo "The full log: $log. To rebuild the environment: $top/hearth.sh repair" >&2
  if ! [ -t 1 ]; then
    if [ "$(uname -s)" = Darwin ]; then open -e "$log"; elif command -v xdg-open >/dev/null; then xdg-open "$log"; fi
  fi
  wait_for_key
  exit 1
done
exit 0

#!/usr/bin/env bash
# Double-clicked on Linux (on a Mac through Hearth.command): find or download a fitting Python, let start.py make what is
# missing in a terminal window that shows its progress, open Hearth, and exit.
set -u

top=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P) || exit 1
case "$(uname -s)" in
  Darwin) data="${HEARTH_HOME:-$HOME/Library/Application Support/Hearth}" ;;
  *) data="${HEARTH_HOME:-${XDG_DATA_HOME:-$HOME/.local/share}/Hearth}" ;;
esac

# A sentence in the system's language, where its letters can be shown: say ENGLISH GERMAN CHINESE JAPANESE.
spoken=${LC_ALL:-${LC_MESSAGES:-${LANG:-}}}
say() {
  case "$spoken" in
    de*[Uu][Tt][Ff]*) printf '%s\n' "$2" ;;
    zh*[Uu][Tt][Ff]*) printf '%s\n' "$3" ;;
    ja*[Uu][Tt][Ff]*) printf '%s\n' "$4" ;;
    *) printf '%s\n' "$1" ;;
  esac
}

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
  local build sum at got macos
  if [ "$(uname -s)" = Darwin ] && [ "$machine" = arm64 ] && [ "$(sw_vers -productVersion | cut -d . -f 1)" -lt 14 ]; then
    macos=$(sw_vers -productVersion)
    say "This Mac runs macOS $macos, and torch, which computes for Hearth, needs macOS 14. Every Mac with Apple silicon can be updated: open System Settings, General, Software Update, then start Hearth again." \
      "Dieser Mac läuft mit macOS $macos, und torch, das für Hearth rechnet, braucht macOS 14. Jeder Mac mit Apple-Chip lässt sich aktualisieren: Öffne Systemeinstellungen, Allgemein, Softwareupdate, und starte Hearth dann noch einmal." \
      "这台 Mac 运行 macOS ${macos}，而为 Hearth 做计算的 torch 需要 macOS 14。所有 Apple 芯片的 Mac 都能升级：请打开“系统设置”、“通用”、“软件更新”，然后重新启动 Hearth。" \
      "このMacはmacOS ${macos}ですが、Hearthの計算を行うtorchにはmacOS 14が必要です。Appleシリコンを搭載したMacはすべて更新できます。「システム設定」「一般」「ソフトウェアアップデート」を開き、そのあとHearthをもう一度起動してください。" >&2
    return 1
  fi
  read -r build sum <<<"$(uv_build)"
  if [ -z "$build" ]; then
    say "Hearth needs Python 3.11 to 3.14, and none was found. Install one from python.org and start again." \
      "Hearth braucht Python 3.11 bis 3.14, und keines wurde gefunden. Installiere eines von python.org und starte noch einmal." \
      "Hearth 需要 Python 3.11 到 3.14，但没有找到。请从 python.org 安装一个，然后重新启动。" \
      "HearthにはPython 3.11～3.14が必要ですが、見つかりません。python.orgからインストールして、もう一度起動してください。" >&2
    return 1
  fi
  at="$data/uv-$UV"
  mkdir -p "$at" || return 1
  if [ ! -x "$at/uv" ]; then
    say "No suitable Python was found (3.11 to 3.14). Downloading uv $UV, which installs one for Hearth only." \
      "Kein passendes Python gefunden (3.11 bis 3.14). uv $UV wird heruntergeladen und installiert eines nur für Hearth." \
      "没有找到合适的 Python（3.11 到 3.14）。正在下载 uv ${UV}，它会安装一个只给 Hearth 用的 Python。" \
      "使えるPython（3.11～3.14）が見つかりません。Hearth専用のPythonをインストールするuv ${UV}をダウンロードしています。" >&2
    if ! curl -fL --proto =https --retry 2 --connect-timeout 15 --progress-bar -o "$at/uv.tar.gz" \
      "https://github.com/astral-sh/uv/releases/download/$UV/uv-$build.tar.gz"; then
      say "The download failed. Check the connection or install Python from python.org, then start again." \
        "Das Herunterladen ist gescheitert. Prüfe die Verbindung oder installiere Python von python.org und starte dann noch einmal." \
        "下载失败。请检查网络，或从 python.org 安装 Python，然后重新启动。" \
        "ダウンロードに失敗しました。接続を確認するか、python.orgからPythonをインストールして、もう一度起動してください。" >&2
      return 1
    fi
    got=$( (sha256sum "$at/uv.tar.gz" 2>/dev/null || shasum -a 256 "$at/uv.tar.gz") | cut -d ' ' -f 1)
    if [ "$got" != "$sum" ]; then
      rm -f "$at/uv.tar.gz"
      say "The downloaded uv $UV has the wrong checksum $got instead of $sum. It was deleted and not run." \
        "Das heruntergeladene uv $UV hat die falsche Prüfsumme $got statt $sum. Es wurde gelöscht und nicht ausgeführt." \
        "下载的 uv $UV 校验和是 ${got}，应为 ${sum}。它已被删除，没有运行。" \
        "ダウンロードしたuv ${UV}のチェックサムが${sum}ではなく${got}です。削除し、実行していません。" >&2
      return 1
    fi
    tar -xzf "$at/uv.tar.gz" -C "$at" --strip-components 1 && rm -f "$at/uv.tar.gz" || return 1
  fi
  UV_PYTHON_INSTALL_DIR="$data/python" "$at/uv" --no-config python install --no-bin 3.12 >&2 || return 1
  find_python
}

wait_for_key() {
  [ -t 0 ] && read -r -p "$(say "Press Return to close this window. " "Die Eingabetaste schließt dieses Fenster. " "按回车键关闭此窗口。" "Returnキーでこのウィンドウを閉じます。")" _
}

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
  asks=$(say "Add Hearth to your apps, with its icon? [Y/n] " "Hearth mit seinem Symbol den Apps hinzufügen? [J/n] " "要把 Hearth 和图标添加到应用里吗？[Y/n] " "Hearthをアイコンとともにアプリに追加しますか？[Y/n] ")
  read -r -t 60 -p "$asks" answer || { answer=n; echo; }
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
  say "Hearth could not start. What it said:" "Hearth konnte nicht starten. Seine Meldung:" "Hearth 无法启动。它的输出：" "Hearthを起動できませんでした。出力：" >&2
  tail -n 20 "$log" >&2
  say "The full log: $log. To rebuild the environment: $top/hearth.sh repair" \
    "Ganzes Protokoll: $log. Um die Umgebung neu aufzubauen: $top/hearth.sh repair" \
    "完整日志：${log}。要重建环境：$top/hearth.sh repair" \
    "ログの全体：${log}。環境を作り直すには：$top/hearth.sh repair" >&2
  if ! [ -t 1 ]; then
    if [ "$(uname -s)" = Darwin ]; then open -e "$log"; elif command -v xdg-open >/dev/null; then xdg-open "$log"; fi
  fi
  wait_for_key
  exit 1
done
exit 0

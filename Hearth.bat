@echo off
rem What a person double-clicks on Windows: finds a fitting Python or brings one, lets start.py make what is missing in
rem this window, opens Hearth in a small one, and closes. ASCII only; no blocks, no call with a path and no path out of
rem another program's output: cmd reads all three badly where a name has one of &, !, %, ), ' or a letter of its own.
setlocal EnableExtensions DisableDelayedExpansion
title Hearth
set "TOP=%~dp0"
if not defined LOCALAPPDATA set "LOCALAPPDATA=%USERPROFILE%\AppData\Local"
set "DATA=%LOCALAPPDATA%\Hearth"
if defined HEARTH_HOME set "DATA=%HEARTH_HOME%"
set "SYSTEM=%SystemRoot%\System32"
set "UV=0.12.10"
set "UV_SUM=f65744f94072152b1f86ba2aace4d01f1124d9a8ecb235805039e3718c36cac2"
set "FIT=import sys, sysconfig, venv, ensurepip; sys.exit(not ((3, 11) <= sys.version_info[:2] <= (3, 14) and sysconfig.get_platform() == 'win-amd64' and 'WindowsApps' not in sys.base_prefix))"
set "PYTHON="
set "WHICH="
set "WITH="

for /d %%P in ("%DATA%\python\cpython-*") do set "TRY=%%~P\python.exe"& call :try
rem Python's launcher is asked by version, and runs what it finds itself. It must not fetch one on its own.
set "PYTHON_MANAGER_AUTOMATIC_INSTALL=false"
for %%P in (py.exe) do set "TRY=%%~$PATH:P"
for %%V in (3.13 3.12 3.11 3.14) do set "WITH=-%%V"& call :try
set "WITH="
for %%P in (python.exe python3.exe) do set "TRY=%%~$PATH:P"& call :try
if not defined PYTHON call :bring
if not defined PYTHON goto failed

if not "%~1"=="" goto command

set "NEW=1"
if exist "%TOP%.venv\current" set "NEW="
for /d %%E in ("%DATA%\environment-*") do if exist "%%~E\current" set "NEW="
"%PYTHON%" %WHICH% "%TOP%start.py" --version
if errorlevel 1 goto failed
if not defined NEW goto open
"%SYSTEM%\choice.exe" /c YN /t 60 /d N /m "Keep Hearth in the Start menu and on the desktop, with its icon?"
if errorlevel 2 goto open
"%PYTHON%" %WHICH% "%TOP%start.py" install-app

:open
rem The program itself, not a batch file: start would hand that to another cmd, which takes a quoted & for its own.
start "Hearth - close this window to end it" /min /d "%USERPROFILE%" "%PYTHON%" %WHICH% "%TOP%start.py"
exit /b 0

:command
rem One line, which cmd has read before it runs: update may put another file in the place of this one meanwhile.
"%PYTHON%" %WHICH% "%TOP%start.py" %* & exit /b

:try
rem Whether TRY, asked WITH a version where it is the launcher, is there and fits.
if defined PYTHON exit /b 0
if not defined TRY exit /b 0
if not exist "%TRY%" exit /b 0
"%TRY%" %WITH% -c "%FIT%" >nul 2>nul
if errorlevel 1 exit /b 0
set "PYTHON=%TRY%"
set "WHICH=%WITH%"
exit /b 0

:bring
echo No fitting Python is here (3.11 to 3.14). Fetching uv %UV%, which brings one for Hearth alone.
set "AT=%DATA%\uv-%UV%"
if exist "%AT%\uv.exe" goto install
if not exist "%AT%" mkdir "%AT%"
if not exist "%AT%" goto not_written
"%SYSTEM%\curl.exe" -fL --proto =https --retry 2 --connect-timeout 15 --progress-bar -o "%AT%\uv.zip" "https://github.com/astral-sh/uv/releases/download/%UV%/uv-x86_64-pc-windows-msvc.zip"
if errorlevel 1 goto not_fetched
rem Read from a file: a command in for's brackets goes through another cmd, which splits a quoted path at an &.
"%SYSTEM%\certutil.exe" -hashfile "%AT%\uv.zip" SHA256 >"%AT%\uv.sum"
set "GOT="
for /f "usebackq skip=1 delims=" %%H in ("%AT%\uv.sum") do if not defined GOT set "GOT=%%H"
if not defined GOT set "GOT=not known"
set "GOT=%GOT: =%"
if /i not "%GOT%"=="%UV_SUM%" goto not_it
"%SYSTEM%\tar.exe" -xf "%AT%\uv.zip" -C "%AT%"
if errorlevel 1 exit /b 0
del "%AT%\uv.zip"

:install
set "UV_PYTHON_INSTALL_DIR=%DATA%\python"
"%AT%\uv.exe" --no-config python install --no-bin 3.12
set "WITH="
for /d %%P in ("%DATA%\python\cpython-*") do set "TRY=%%~P\python.exe"& call :try
exit /b 0

:not_fetched
echo It could not be fetched. Check the connection, or install Python from python.org, and start again.
exit /b 0

:not_written
echo It would go to "%AT%", which cannot be made. Install Python from python.org, and start again.
exit /b 0

:not_it
echo What came is not uv %UV%: its checksum is %GOT%, not %UV_SUM%. It was thrown away; nothing of it was run.
del "%AT%\uv.zip"
exit /b 0

:failed
echo.
echo Hearth could not start. The lines above say why.
if not "%~1"=="" exit /b 1
pause
exit /b 1

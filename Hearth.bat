@echo off
rem Double-clicked on Windows: find or download a fitting Python, let start.py make what is missing in this window, open
rem Hearth in a small one, and close. ASCII only; no blocks over several lines, no call with a path, no path read from
rem another program's output: cmd breaks on all three if a name holds &, !, %, ), ' or a letter outside ASCII.
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

for /d %%P in ("%DATA%\python\cpython-*") do (set "TRY=%%~P\python.exe"& call :try)
rem Python's launcher is asked for each version, and must not download one by itself.
set "PYTHON_MANAGER_AUTOMATIC_INSTALL=false"
for %%P in (py.exe) do set "TRY=%%~$PATH:P"
for %%V in (3.13 3.12 3.11 3.14) do (set "WITH=-%%V"& call :try)
set "WITH="
for %%P in (python.exe python3.exe) do (set "TRY=%%~$PATH:P"& call :try)
if not defined PYTHON call :bring
if not defined PYTHON goto failed

if not "%~1"=="" goto command

set "NEW=1"
if exist "%TOP%.venv\current" set "NEW="
for /d %%E in ("%DATA%\environment-*") do if exist "%%~E\current" set "NEW="
"%PYTHON%" %WHICH% "%TOP%start.py" --version
if errorlevel 1 goto failed
if not defined NEW goto open
"%SYSTEM%\choice.exe" /c YN /t 60 /d N /m "Add Hearth to the Start menu and the desktop, with its icon?"
if errorlevel 2 goto open
"%PYTHON%" %WHICH% "%TOP%start.py" install-app

:open
rem Start the program itself: a batch file would go through another cmd, which reads a quoted & as its own.
start "Hearth - close this window to end it" /min /d "%USERPROFILE%" "%PYTHON%" %WHICH% "%TOP%start.py"
exit /b 0

:command
rem One line, read before it runs: an update may replace this file meanwhile.
"%PYTHON%" %WHICH% "%TOP%start.py" %* & exit /b

:try
rem Set PYTHON to TRY if it exists and fits; WITH is the version that Python's launcher is asked for.
if defined PYTHON exit /b 0
if not defined TRY exit /b 0
if not exist "%TRY%" exit /b 0
"%TRY%" %WITH% -c "%FIT%" >nul 2>nul
if errorlevel 1 exit /b 0
set "PYTHON=%TRY%"
set "WHICH=%WITH%"
exit /b 0

:bring
echo No suitable Python was found (3.11 to 3.14). Downloading uv %UV%, which installs one for Hearth only.
set "AT=%DATA%\uv-%UV%"
if exist "%AT%\uv.exe" goto install
if not exist "%AT%" mkdir "%AT%"
if not exist "%AT%" goto not_written
"%SYSTEM%\curl.exe" -fL --proto =https --retry 2 --connect-timeout 15 --progress-bar -o "%AT%\uv.zip" "https://github.com/astral-sh/uv/releases/download/%UV%/uv-x86_64-pc-windows-msvc.zip"
if errorlevel 1 goto not_fetched
rem Read from a file: for would run a command through another cmd, which splits a quoted path at an &.
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
for /d %%P in ("%DATA%\python\cpython-*") do (set "TRY=%%~P\python.exe"& call :try)
exit /b 0

:not_fetched
echo The download failed. Check the connection or install Python from python.org, then start again.
exit /b 0

:not_written
echo The folder "%AT%" cannot be created. Install Python from python.org, then start again.
exit /b 0

:not_it
echo The downloaded uv %UV% has the wrong checksum %GOT% instead of %UV_SUM%. It was deleted and not run.
del "%AT%\uv.zip"
exit /b 0

:failed
echo.
echo Hearth could not start. The lines above say why.
if not "%~1"=="" exit /b 1
pause
exit /b 1

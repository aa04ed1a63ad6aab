@echo off
rem What a person double-clicks on Windows: finds a fitting Python or brings one, lets start.py make what is missing in
rem this window, opens Hearth in a small one, and closes. ASCII only, and no blocks around paths: cmd reads them badly.
setlocal EnableExtensions DisableDelayedExpansion
title Hearth
set "TOP=%~dp0"
set "DATA=%LOCALAPPDATA%\Hearth"
if defined HEARTH_HOME set "DATA=%HEARTH_HOME%"
set "UV=0.12.10"
set "UV_SUM=f65744f94072152b1f86ba2aace4d01f1124d9a8ecb235805039e3718c36cac2"
set "FIT=import sys, venv, ensurepip; sys.exit(not ((3, 11) <= sys.version_info[:2] <= (3, 14) and sys.maxsize > 2**32))"
set "PYTHON="

if defined HEARTH_IN goto inside

for /d %%P in ("%DATA%\python\cpython-*") do call :try "%%~P\python.exe"
for %%V in (3.13 3.12 3.11 3.14) do call :try_launcher %%V
for %%P in (python.exe python3.exe) do call :try "%%~$PATH:P"
if not defined PYTHON call :bring
if not defined PYTHON goto failed

if not "%~1"=="" goto command

"%PYTHON%" "%TOP%start.py" --version
if errorlevel 1 goto failed
set "HEARTH_IN=%PYTHON%"
start "Hearth" /min /d "%USERPROFILE%" "%~f0"
exit /b 0

:inside
title Hearth - close this window to end it
"%HEARTH_IN%" "%TOP%start.py"
if errorlevel 1 pause
exit

:command
"%PYTHON%" "%TOP%start.py" %*
exit /b %errorlevel%

:try
if defined PYTHON exit /b 0
if "%~1"=="" exit /b 0
if not exist "%~1" exit /b 0
"%~1" -c "%FIT%" >nul 2>nul
if not errorlevel 1 set "PYTHON=%~1"
exit /b 0

:try_launcher
if defined PYTHON exit /b 0
for /f "usebackq delims=" %%E in (`py -%1 -c "import sys; print(sys.executable)" 2^>nul`) do call :try "%%E"
exit /b 0

:bring
echo No fitting Python is here (3.11 to 3.14). Fetching uv %UV%, which brings one for Hearth alone.
set "AT=%DATA%\uv-%UV%"
if exist "%AT%\uv.exe" goto install
if not exist "%AT%" mkdir "%AT%"
curl.exe -fL --proto =https --retry 2 --connect-timeout 15 --progress-bar -o "%AT%\uv.zip" "https://github.com/astral-sh/uv/releases/download/%UV%/uv-x86_64-pc-windows-msvc.zip"
if errorlevel 1 goto not_fetched
set "GOT="
for /f "usebackq skip=1 delims=" %%H in (`certutil -hashfile "%AT%\uv.zip" SHA256`) do if not defined GOT set "GOT=%%H"
set "GOT=%GOT: =%"
if /i not "%GOT%"=="%UV_SUM%" goto not_it
tar.exe -xf "%AT%\uv.zip" -C "%AT%"
if errorlevel 1 exit /b 0
del "%AT%\uv.zip"
:install
set "UV_PYTHON_INSTALL_DIR=%DATA%\python"
"%AT%\uv.exe" --no-config python install --no-bin 3.12
for /d %%P in ("%DATA%\python\cpython-*") do call :try "%%~P\python.exe"
exit /b 0

:not_fetched
echo It could not be fetched. Check the connection, or install Python from python.org, and start again.
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

#!/bin/sh
# Installs target cu128: CPython 3.11, linux-x86_64.
# Made by `envbuild script`; change the lock instead, and make it again.
# lock: lockfiles/pylock.cu128.toml (sha256 406fd89d4d39b16f4d01f168bcb3fc35494462c6751d0f2d877a772d0ae0eefb)
# identity: a2eaf49069a9491e8f6b64ebc5f8e51e3711fdeb6bd4e0a8621b5a52ed4019e8
# options:
#
# exit codes:
# 0   done, or nothing was to do
# 2   the arguments are wrong, or the environment's folder holds something else
# 10  uv was not found
# 11  uv is too old
# 12  no CPython of the lock's version
# 13  the disk is too small, or a folder cannot be written to
# 14  no network to a host that files come from
# 15  no nvcc, and something is compiled for GPUs
# 16  nvcc is of another CUDA major than torch, or too old for the GPUs
# 17  no C++ compiler, or none that fits nvcc, or no headers of Python
# 18  uv could not install, or something could not be compiled
# 19  the environment is not what the lock says
# 20  the lock is not there, was changed, or lacks hashes
# 21  the machine is of another platform
# 22  git was not found, and a source is a commit
# 23  a source is not what the lock says: no such commit, or other bytes
# 24  the base has another torch than the one that was locked
# 25  another run is at work in the environment, and does not end
# 129, 130, 143  interrupted; run it again

set -eu
umask 022

newline='
'
TARGET=cu128
PROJECT=..
LOCK=lockfiles/pylock.cu128.toml
LOCK_SHA256=406fd89d4d39b16f4d01f168bcb3fc35494462c6751d0f2d877a772d0ae0eefb
SCRIPT_ID=a2eaf49069a9491e8f6b64ebc5f8e51e3711fdeb6bd4e0a8621b5a52ed4019e8
PYTHON=3.11
MACHINE=x86_64
UV_OLDEST=0.13.0
STEPS=6
OWN='pointgroup-ops pointops sharedarray'
UNHASHED='flash-attn, torch-cluster, torch-scatter, torch-sparse'
BASE=''
BASE_PYTHON=''
BASE_TORCH=''
MANAGED_BY=''
CLEARED='UV_BREAK_SYSTEM_PACKAGES UV_BUILD_CONSTRAINT UV_CONFIG_FILE UV_CONSTRAINT UV_DEFAULT_INDEX UV_DEV UV_ENV_FILE UV_EXCLUDE UV_EXCLUDE_NEWER UV_EXTRA_INDEX_URL UV_FIND_LINKS UV_FROZEN UV_GROUP UV_INDEX UV_INDEX_STRATEGY UV_INDEX_URL UV_ISOLATED UV_LOCKED UV_NO_BINARY UV_NO_BINARY_PACKAGE UV_NO_BUILD UV_NO_BUILD_ISOLATION UV_NO_BUILD_PACKAGE UV_NO_CONFIG UV_NO_DEFAULT_GROUPS UV_NO_DEV UV_NO_EDITABLE UV_NO_GROUP UV_NO_INDEX UV_NO_SOURCES UV_NO_SYNC UV_NO_VERIFY_HASHES UV_OFFLINE UV_ONLY_BINARY UV_OVERRIDE UV_PREFIX UV_PRERELEASE UV_PROJECT UV_PROJECT_ENVIRONMENT UV_PYTHON UV_REQUIRE_HASHES UV_RESOLUTION UV_SYSTEM_PYTHON UV_TARGET UV_TORCH_BACKEND UV_VENV_CLEAR UV_VENV_RELOCATABLE UV_VENV_SEED UV_VERIFY_HASHES UV_WORKING_DIR UV_WORKING_DIRECTORY'
EXIT_CODES='exit codes:
  0   done, or nothing was to do
  2   the arguments are wrong, or the environment'\''s folder holds something else
  10  uv was not found
  11  uv is too old
  12  no CPython of the lock'\''s version
  13  the disk is too small, or a folder cannot be written to
  14  no network to a host that files come from
  15  no nvcc, and something is compiled for GPUs
  16  nvcc is of another CUDA major than torch, or too old for the GPUs
  17  no C++ compiler, or none that fits nvcc, or no headers of Python
  18  uv could not install, or something could not be compiled
  19  the environment is not what the lock says
  20  the lock is not there, was changed, or lacks hashes
  21  the machine is of another platform
  22  git was not found, and a source is a commit
  23  a source is not what the lock says: no such commit, or other bytes
  24  the base has another torch than the one that was locked
  25  another run is at work in the environment, and does not end
  129, 130, 143  interrupted; run it again'
CUDA=12.8
OLDEST_NVCC=12.8
OLDEST_GCC=9
LOCKED_TORCH=2.7.0+cu128

say() { printf '%s\n' "envbuild: $*" >&2; }

fail() {
    code=$1
    shift
    printf '%s\n' "error: $1" >&2
    shift
    if [ "$#" -gt 0 ]; then printf '\n%s\n' "hint: $1" >&2; fi
    exit "$code"
}

# truth VALUE: nothing where a variable means no.
truth() {
    case $1 in
        '' | 0 | [Ff]alse | [Nn]o | off) ;;
        *) printf yes ;;
    esac
}

step() {
    number=$((number + 1))
    say "[$number/$STEPS] $*"
}

# default NAME VALUE: set and export a variable, unless the user did.
default() {
    eval "current=\${$1-}"
    if [ -z "$current" ]; then
        eval "$1=\$2"
    elif [ "$current" != "$2" ]; then
        say "$1 is \`$current\` by your environment, the lock has \`$2\`"
    fi
    # shellcheck disable=SC2163
    export "$1"
}

usage() {
    cat <<USAGE
usage: ${0##*/} [--venv DIR] [--project DIR] [--check-only] [--offline] [--allow-unhashed]
       [--no-install-project] [--help]

Installs target $TARGET exactly as $LOCK holds it. Nothing is asked.

  --venv DIR         the environment (default: \$UV_PROJECT_ENVIRONMENT, or .venv in the project)
  --project DIR      the project (default: the folder that this script was written for)
  --check-only       change nothing: compare the environment with the lock
  --offline          use no network: uv's cache, and the folders of UV_FIND_LINKS
  --allow-unhashed   install also what the lock has no hash for
  --no-install-project  leave the project itself out, its dependencies alone are installed
  --help             this text

environment: UV_FIND_LINKS (folders with wheels, preferred to the network), ENVBUILD_MIRRORS
("https://files.pythonhosted.org=https://mirror.example/pypi ..."), UV_CACHE_DIR, UV_OFFLINE,
ENVBUILD_CACHE_DIR (built wheels), ENVBUILD_ALLOW_UNHASHED=1, ENVBUILD_LOCK_TIMEOUT (seconds to wait
for another run), MAX_JOBS, NVCC_THREADS, CUDA_HOME, CC, CXX, ENVBUILD_BASE_PYTHON (where the lock is
around a base), HTTPS_PROXY, SSL_CERT_FILE, TMPDIR
USAGE
    printf '\n%s\n' "$EXIT_CODES"
}

parse_arguments() {
    while [ "$#" -gt 0 ]; do
        case $1 in
            --venv | --project)
                if [ "$#" -lt 2 ] || [ -z "$2" ]; then fail 2 "\`$1\` was given no folder"; fi
                if [ "$1" = --venv ]; then venv=$2; else project=$2; fi
                shift
                ;;
            --venv=?*) venv=${1#*=} ;;
            --project=?*) project=${1#*=} ;;
            --check-only) check_only=yes ;;
            --offline) offline=yes ;;
            --allow-unhashed) allow_unhashed=yes ;;
            --no-install-project) without_project=--no-install-project ;;
            -h | --help)
                usage
                exit 0
                ;;
            *) fail 2 "unknown argument \`$1\`" "${0##*/} --help lists all of them" ;;
        esac
        shift
    done
}

# absolute PATH: set `answer` to the absolute path, whatever stands in its name.
absolute() {
    case $1 in
        /*) answer=$1 ;;
        *)
            answer=$(pwd -P && printf x)
            answer=${answer%?x}/$1
            ;;
    esac
}

find_project() {
    if [ -z "$project" ]; then
        case $0 in
            */*) project=${0%/*}/$PROJECT ;;
            *) project=./$PROJECT ;;
        esac
    fi
    if ! CDPATH='' cd -- "$project"; then
        fail 20 "the project \`$project\` is not there" "--project DIR names its folder"
    fi
    absolute "$venv"
    venv=$answer
    site=$venv/lib/python$PYTHON/site-packages
}

# version_at_least FOUND WANTED
version_at_least() {
    a=$1. b=$2.
    while [ -n "$b" ]; do
        x=${a%%.*} y=${b%%.*}
        x=${x%%[!0-9]*}
        case $x in ??????????*) x=999999999 ;; esac
        if [ "${x:-0}" -gt "${y:-0}" ]; then return 0; fi
        if [ "${x:-0}" -lt "${y:-0}" ]; then return 1; fi
        a=${a#*.} b=${b#*.}
    done
}

find_uv() {
    uv=
    for candidate in "${UV:-}" "$(command -v uv || :)" "${HOME:-/nonexistent}/.local/bin/uv" \
        "${HOME:-/nonexistent}/.cargo/bin/uv"; do
        if [ -n "$candidate" ] && [ -f "$candidate" ] && [ -x "$candidate" ]; then
            uv=$candidate
            break
        fi
    done
    if [ -z "$uv" ]; then
        fail 10 "\`uv\` was not found, wanted uv $UV_OLDEST or newer" \
            "curl -LsSf https://astral.sh/uv/install.sh | sh   or   pip install uv"
    fi
    found=$("$uv" --version 2>&1) || found=
    found=${found#uv } found=${found%% *}
    case $found in
        [!0-9]* | *[!0-9A-Za-z.+-]* | '')
            fail 11 "\`$uv\` does not say its version, wanted uv $UV_OLDEST or newer" \
                "run \`$uv --version\`; UV=/path/to/uv names another"
            ;;
    esac
    if ! version_at_least "$found" "$UV_OLDEST"; then
        fail 11 "\`$uv\` is \`$found\`, wanted uv $UV_OLDEST or newer" "uv self update"
    fi
}

# Only uv's variables that say how files are had count here: none may change what is installed.
clear_settings() {
    for name in PYTHONPATH PYTHONHOME PYTHONSTARTUP VIRTUAL_ENV CONDA_PREFIX $CLEARED; do
        unset "$name"
    done
    export GIT_TERMINAL_PROMPT=0 GIT_SSH_COMMAND="${GIT_SSH_COMMAND:-ssh -o BatchMode=yes}"
    export DEBIAN_FRONTEND=noninteractive PIP_NO_INPUT=1 UV_NO_PROGRESS=1
    export UV_PYTHON_DOWNLOADS="${UV_PYTHON_DOWNLOADS:-automatic}"
}

# No step fails with 1 by itself: what was not foreseen is mostly a full disk.
end_run() {
    rm -rf -- "$work"
    if [ "$status" -eq 1 ]; then
        fail 13 "this run was broken off by what stands above" \
            "make room in \`${TMPDIR:-/tmp}\`, or set TMPDIR to a folder that is writable"
    fi
    exit "$status"
}

make_work() {
    status=0 work=
    trap 'status=$?; end_run' EXIT
    trap 'exit 129' HUP
    trap 'exit 130' INT
    trap 'exit 143' TERM
    work=$(mktemp -d "${TMPDIR:-/tmp}/envbuild.XXXXXX") ||
        fail 13 "no folder can be made in \`${TMPDIR:-/tmp}\`" "set TMPDIR to one that is writable"
    mkdir -p "$work/config/uv" "$work/src"
    : >"$work/config/uv/uv.toml"
    write_programs
}

# uv, with no configuration but that of the project.
run_uv() { XDG_CONFIG_HOME="$work/config" XDG_CONFIG_DIRS="$work/config" "$uv" "$@"; }

# A program of this script, by the interpreter alone: nothing of the environment is imported. An
# interrupt ends it in silence.
program() {
    program_name=$1
    shift
    "$python" -I -S -c 'import signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
del sys.argv[0]
exec(compile(open(sys.argv[0], encoding="utf-8").read(), sys.argv[0], "exec"))
' "$work/$program_name.py" "$@"
}

find_python() {
    if [ "$(uname -s)-$(uname -m)" != "Linux-$MACHINE" ]; then
        fail 21 "this machine is $(uname -s)-$(uname -m), the lock is for Linux-$MACHINE" \
            "lock a target with the platform of this machine"
    fi
    if [ -n "$BASE" ]; then
        find_base
        return
    fi
    find_uv_python
    if [ ! -f "$python" ] || [ ! -x "$python" ]; then
        fail 12 "no CPython $PYTHON was found: \`$uv python find\` names no interpreter" \
            "uv python install $PYTHON"
    fi
}

find_uv_python() {
    if ! python=$(run_uv python find "cpython$PYTHON" --no-project --system \
        --no-python-downloads 2>"$work/log"); then
        if [ -n "$offline" ] || [ "$UV_PYTHON_DOWNLOADS" = never ] || [ -n "$check_only" ]; then
            fail 12 "no CPython $PYTHON was found" "uv python install $PYTHON"
        fi
        say "install CPython $PYTHON with uv"
        run_uv python install --no-bin "cpython$PYTHON" >"$work/log" 2>&1 || {
            cat "$work/log" >&2
            fail 12 "no CPython $PYTHON was found, and uv could not install it" \
                "apt-get install -y python$PYTHON python$PYTHON-dev   or   uv python install $PYTHON"
        }
        python=$(run_uv python find "cpython$PYTHON" --no-project --system --no-python-downloads) ||
            fail 12 "no CPython $PYTHON was found" "uv python install $PYTHON"
    fi
}

# What the base holds is kept: its interpreter makes the environment, which sees its packages.
find_base() {
    python=${ENVBUILD_BASE_PYTHON:-$BASE_PYTHON}
    if [ ! -x "$python" ]; then
        fail 12 "the interpreter of the base \`$BASE\`, \`$python\`, is not there" \
            "run this in the base, or name its interpreter in ENVBUILD_BASE_PYTHON"
    fi
    found=$("$python" -I -S -c 'import sys; print("%d.%d" % sys.version_info[:2])') || found=none
    if [ "$found" != "$PYTHON" ]; then
        fail 12 "\`$python\` is Python $found, the lock is for the CPython $PYTHON of \`$BASE\`"
    fi
    if [ -n "$BASE_TORCH" ]; then check_base_torch; fi
}

# The lock is made for the torch of the base, whatever the name of the base leads to by now.
check_base_torch() {
    where=$("$python" -I -c 'import importlib.util as u
found = u.find_spec("torch"); print((found and found.origin) or "")' 2>"$work/log") || where=
    found=$(sed -n "s/^__version__ *\(: *str *\)\{0,1\}= *['\"]\([^'\"]*\)['\"].*/\2/p" \
        "${where%/*}/version.py" 2>"$work/log") || found=
    if [ "$found" != "$BASE_TORCH" ]; then
        fail 24 "the base \`$BASE\` has torch ${found:-(none)}, the lock is for torch $BASE_TORCH" \
            "name the base by its digest; \`envbuild lock --base-python $python\` locks around this one"
    fi
}

check_lock() {
    if [ ! -f "$LOCK" ]; then
        fail 20 "\`$LOCK\` is not in \`$PWD\`" "envbuild lock --target $TARGET"
    fi
    if ! found=$(program machine lock "$LOCK") || [ "$found" != "$LOCK_SHA256" ]; then
        fail 20 "\`$LOCK\` is not the lock that this script was made from" \
            "envbuild script --target $TARGET"
    fi
    if [ -n "$UNHASHED" ]; then
        if [ -z "$allow_unhashed" ]; then
            fail 20 "the lock has no hash for $UNHASHED: what is installed could not be checked" \
                "run \`envbuild lock\` where their host is reached, or give --allow-unhashed"
        fi
        say "warning: installed without a hash: $UNHASHED"
    fi
}

# The stamp says that a run came to its end, and from what.
stamp_text() {
    printf '%s\n' "lock $LOCK_SHA256" "script $SCRIPT_ID" "python $PYTHON $without_project" \
        "$(local_sources)"
}

check_distributions() {
    # shellcheck disable=SC2086
    program distributions check "$site" "$work/packages" $OWN
}

is_done() {
    [ -f "$venv/.envbuild-stamp" ] && [ "$(cat "$venv/.envbuild-stamp")" = "$(stamp_text)" ] &&
        check_distributions >"$work/log" &&
        "$venv/bin/python" -I -S -c '' 2>"$work/log"
}

check_network() {
    hosts=$(program machine local "$LOCK" "$work/pylock.toml" "$find_links" "$mirrors") ||
        fail 20 "\`$LOCK\` cannot be read"
    if [ -n "$offline" ]; then return; fi
    # shellcheck disable=SC2086
    found=$(program machine probe $hosts)
    if [ -n "$found" ]; then
        fail 14 "$found" "HTTPS_PROXY names a proxy, ENVBUILD_MIRRORS a mirror; --offline takes \
what uv's cache and the folders of UV_FIND_LINKS hold"
    fi
}

check_disk() {
    needed=$(program distributions missing "$site" "$work/packages")
    cache=$(run_uv cache dir 2>"$work/log") || cache=$venv
    for folder in "$venv" "$cache"; do
        found=$(program machine free "$folder") || continue
        if [ "$found" -lt "$needed" ]; then
            fail 13 "\`$folder\` has $((found / 1048576)) MB free, about $((needed / 1048576)) MB \
are needed" "make room, or name other folders with --venv and UV_CACHE_DIR"
        fi
    done
}

is_environment() {
    [ -f "$venv/pyvenv.cfg" ] && [ ! -f "$venv/.envbuild-unfinished" ] &&
        found=$("$venv/bin/python" -I -S -c \
            'import sys; print("%d.%d %s" % (*sys.version_info[:2], sys.implementation.name))' \
            2>"$work/log") && [ "$found" = "$PYTHON cpython" ] && sees_base
}

sees_base() {
    [ -z "$BASE" ] ||
        grep -q '^include-system-site-packages *= *true' "$venv/pyvenv.cfg" 2>"$work/log"
}

# A base that is an environment itself is not below the new one: a file leads to its packages.
show_base() {
    if [ -z "$BASE" ]; then return; fi
    "$python" -I -c '
import sys
if sys.prefix != sys.base_prefix:
    print(*(p for p in sys.path if p.startswith(sys.prefix + "/") and p.endswith("-packages")), sep="\n")
' >"$work/base.pth" || fail 12 "\`$python\` cannot be run"
    if [ -s "$work/base.pth" ]; then cp -- "$work/base.pth" "$site/_envbuild_base.pth"; fi
}

# hold: keep other runs away, until the descriptor 9 is closed by everything that inherited it. A
# uv that outlives this script keeps it, so that the next run waits for its end.
hold() {
    if [ -w "$venv/.envbuild-lock" ]; then
        exec 9<>"$venv/.envbuild-lock"
    elif [ -r "$venv/.envbuild-lock" ]; then
        exec 9<"$venv/.envbuild-lock"
    else
        return 0
    fi
    case ${ENVBUILD_LOCK_TIMEOUT:=300} in
        *[!0-9]*) fail 2 "ENVBUILD_LOCK_TIMEOUT is \`$ENVBUILD_LOCK_TIMEOUT\`, wanted seconds" ;;
    esac
    program machine hold 9 "$ENVBUILD_LOCK_TIMEOUT" "$venv" ||
        fail 25 "another run, or a uv that one left behind, is at work in \`$venv\`" \
            "wait until it has ended; \`fuser -v $venv/.envbuild-lock\` names it"
}

let_go() { exec 9>&-; }

hold_environment() {
    if [ -e "$venv" ] && [ ! -f "$venv/pyvenv.cfg" ] && [ ! -f "$venv/.envbuild-unfinished" ]; then
        case $(ls -A -- "$venv" 2>"$work/log") in
            '' | .envbuild-lock) ;;
            *) fail 2 "\`$venv\` is there and no environment" "--venv DIR names another" ;;
        esac
    fi
    mkdir -p -- "$venv" || fail 13 "\`$venv\` cannot be made" "--venv DIR names another"
    (: >>"$venv/.envbuild-lock") || fail 13 "\`$venv\` cannot be written to"
    hold
}

make_environment() {
    if is_environment; then return; fi
    if [ -f "$venv/pyvenv.cfg" ] && [ ! -f "$venv/.envbuild-unfinished" ]; then
        say "\`$venv\` has another Python, or does not see the base, and is made anew"
    fi
    : >"$venv/.envbuild-unfinished" || fail 13 "\`$venv\` cannot be written to"
    for part in bin lib lib64 include share pyvenv.cfg; do rm -rf -- "${venv:?}/$part"; done
    # shellcheck disable=SC2046
    run_uv venv --quiet --no-project --no-config --allow-existing --python "$python" \
        $(if [ -n "$BASE" ]; then printf '%s' --system-site-packages; fi) \
        -- "$venv" || fail 18 "uv could not make \`$venv\`"
    show_base
    rm -f -- "$venv/.envbuild-unfinished"
    is_environment || fail 18 "\`$venv\` has no working Python $PYTHON"
}

mend_environment() {
    rm -f -- "$venv/.envbuild-stamp"
    found=$(program distributions mend "$site" "$work/packages") ||
        fail 18 "\`$site\` cannot be mended" "remove \`$venv\` and run this again"
    if [ -n "$found" ]; then say "installed anew, a run was interrupted: $found"; fi
}

offline_option() { if [ -n "$offline" ]; then printf '%s' --offline; fi; }

install_failed() {
    cat "$work/log" >&2
    fail 18 "uv could not install the lock" "${1:-see above}"
}

# The lock as a whole, each file against its hash: what else lies there goes.
install_by_pip() {
    # shellcheck disable=SC2046
    run_uv pip sync --no-config --preview-features pylock $(offline_option) --no-build-isolation \
        --python "$venv/bin/python" "$work/pylock.toml" 2>"$work/log" || install_failed
    if [ -s "$work/unhashed.txt" ]; then
        # shellcheck disable=SC2046
        run_uv pip install --no-config --no-deps $(offline_option) --python "$venv/bin/python" \
            --requirements "$work/unhashed.txt" 2>"$work/log" || install_failed
    fi
}

# The same set through uv.lock, so that the next `uv run` changes nothing.
install_by_project() {
    if [ -n "$find_links$mirrors" ]; then
        install_by_pip
        return
    fi
    # shellcheck disable=SC2046,SC2086
    UV_PROJECT_ENVIRONMENT=$venv run_uv sync --locked --python "$python" $(offline_option) \
        $without_project \
        "$@" 2>"$work/log" || install_failed "\`envbuild lock --check\` says whether uv.lock is stale"
}

self_check() {
    found=$(check_distributions) || {
        printf '%s\n' "$found" >&2
        fail 19 "\`$venv\` is not what the lock says" "run this script without --check-only"
    }
    check_builds
}

main() {
    check_only='' number=0 without_project=''
    offline=$(truth "${UV_OFFLINE:-}") allow_unhashed=$(truth "${ENVBUILD_ALLOW_UNHASHED:-}")
    # shellcheck disable=SC2034 # for sources, where something is compiled
    index=${UV_DEFAULT_INDEX:-${UV_INDEX_URL:-https://pypi.org/simple}}
    find_links=${UV_FIND_LINKS:-} mirrors=${ENVBUILD_MIRRORS:-} project=''
    venv=${UV_PROJECT_ENVIRONMENT:-.venv}
    parse_arguments "$@"
    exec </dev/null
    find_uv
    find_project
    clear_settings
    make_work
    find_python
    check_lock
    if [ -n "$check_only" ]; then
        self_check
        say "\`$venv\` is what $LOCK says"
        return
    fi
    hold
    if is_done; then
        say "nothing to do: \`$venv\` is what $LOCK says"
        return
    fi
    let_go
    check_network
    check_disk
    prepare_builds
    hold_environment
    steps
    stamp_text >"$work/stamp"
    cp -- "$work/stamp" "$venv/.envbuild-stamp.new"
    mv -- "$venv/.envbuild-stamp.new" "$venv/.envbuild-stamp"
    if [ -n "$MANAGED_BY" ] && [ "$venv" = "$(pwd -P)/.venv" ]; then
        say "warning: the next \`uv run\` brings it back to target \`$MANAGED_BY\`; UV_NO_SYNC=1 keeps it"
    fi
    say "done: \`$venv\` is what $LOCK says"
}

# take_source NAME path|git|url|index WHERE VERSION SHA256: put a source at $work/src/NAME.
take_source() {
    goal=$work/src/$1
    say "source of $1"
    case $2 in
        path)
            if [ ! -d "$3" ]; then
                fail 18 "the source of $1, \`$PWD/$3\`, is not there" "git submodule update --init"
            fi
            program sources copy "$3" "$goal" || fail 18 "\`$3\` cannot be copied"
            ;;
        git) take_checkout "$1" "$3" ;;
        *) take_sdist "$@" ;;
    esac
}

# take_checkout NAME URL@COMMIT[#subdirectory=FOLDER]: the commit, and the submodules it names.
take_checkout() {
    if ! command -v git >"$work/log"; then
        fail 22 "\`git\` was not found, and the source of $1 is a commit" "apt-get install -y git"
    fi
    address=${2#git+} folder=
    case $address in *'#subdirectory='*) folder=${address#*#subdirectory=} ;; esac
    address=${address%%#*}
    commit=${address##*@} address=${address%@*}
    case $offline$address in
        yes/* | yesfile://*) ;;
        yes*) fail 14 "offline, and the source of $1 is a commit of $address" ;;
    esac
    checkout=$work/git/$1
    git init --quiet "$checkout" >"$work/log" 2>&1 || checkout_failed 18 "git cannot make a folder"
    git ls-remote --quiet "$address" HEAD >"$work/log" 2>&1 ||
        checkout_failed 14 "the repository of $1, $address, is not reached"
    fetch_commit >"$work/log" 2>&1 || checkout_failed 23 "$address has no commit $commit, of $1"
    fetch_submodules >"$work/log" 2>&1 ||
        checkout_failed 14 "the submodules of $1 at $commit cannot be had"
    if [ ! -d "$checkout/$folder" ]; then
        fail 23 "commit $commit of $1 has no folder \`$folder\`"
    fi
    if [ -z "$folder" ]; then
        mv -- "$checkout" "$goal"
        return
    fi
    mkdir -- "$goal"
    # A link may lead to it.
    cp -R -- "$checkout/$folder/." "$goal/" || fail 13 "\`$folder\` of $1 cannot be copied"
}

# A host may give single commits; one that does not gives all.
fetch_commit() {
    in_checkout fetch --quiet --depth 1 "$address" "$commit" ||
        in_checkout fetch --quiet "$address" '+refs/*:refs/envbuild/*' || return 1
    in_checkout -c advice.detachedHead=false checkout --quiet "$commit" &&
        [ "$(in_checkout rev-parse HEAD)" = "$commit" ]
}

fetch_submodules() {
    in_checkout config remote.origin.url "$address"
    if in_checkout submodule --quiet update --init --recursive --depth 1; then return; fi
    in_checkout submodule --quiet deinit --force --all && rm -rf -- "$checkout/.git/modules" &&
        in_checkout submodule --quiet update --init --recursive
}

in_checkout() { git -C "$checkout" "$@"; }

checkout_failed() {
    cat "$work/log" >&2
    fail "$1" "$2" "see above; what git needs to sign in is its own matter: a credential helper, a key"
}

# take_sdist NAME KIND URL VERSION SHA256
take_sdist() {
    url=$3 digest=$5
    if [ "$2" = index ]; then
        if [ -n "$offline" ]; then fail 14 "offline, and where the source of $1 $4 lies is not known"; fi
        if ! found=$(program machine sdist "$index" "$1" "$4" 2>"$work/log"); then
            fail 14 "the source of $1 $4 is not found: $(cat "$work/log")" \
                "UV_DEFAULT_INDEX names a mirror of the index"
        fi
        url=${found%%"$newline"*} digest=-
        case $found in *"$newline"*) digest=${found#*"$newline"} ;; esac
        say "warning: the lock has no hash for the source of $1 $4; the index says $digest"
    fi
    archive=${url##*/}
    archive=$work/${archive%%[?#]*}
    program machine download "$url" "$digest" "$archive" "$find_links" "$mirrors" "$offline" \
        2>"$work/log" || {
        code=$?
        if [ "$code" -ne 23 ]; then code=14; fi
        fail "$code" "the source of $1 $4 cannot be had: $(cat "$work/log")"
    }
    program sources unpack "$archive" "$goal" 2>"$work/log" ||
        fail 23 "\`${archive##*/}\`, the source of $1 $4, cannot be unpacked"
}

find_nvcc() {
    nvcc=
    for candidate in "${CUDA_HOME:-}" "${CUDA_PATH:-}" "/usr/local/cuda-$CUDA" \
        "$(command -v nvcc || :)" /usr/local/cuda /usr/local/cuda-"${CUDA%%.*}".* /opt/cuda; do
        candidate=${candidate%/bin/nvcc}
        if [ -n "$candidate" ] && [ -x "$candidate/bin/nvcc" ] && nvcc_fits "$candidate"; then
            CUDA_HOME=$candidate nvcc=$found
            break
        fi
        if [ -n "${CUDA_HOME:-}" ] && [ "$candidate" = "$CUDA_HOME" ]; then break; fi
    done
    if [ -n "$nvcc" ]; then
        export CUDA_HOME
        say "nvcc $nvcc of $CUDA_HOME"
    elif [ -n "$found_nvcc" ]; then
        fail 16 "found nvcc of $found_nvcc, wanted CUDA ${CUDA%%.*}, $OLDEST_NVCC or newer" \
            "install the toolkit of CUDA $CUDA, and name its folder in CUDA_HOME"
    else
        fail 15 "no nvcc was found, and $1 is compiled for GPUs" \
            "install the toolkit of CUDA $CUDA, and name its folder in CUDA_HOME"
    fi
}

# nvcc_fits FOLDER: whether its nvcc is of torch's CUDA major and knows every GPU meant.
nvcc_fits() {
    found=$("$1/bin/nvcc" --version 2>"$work/log") || return 1
    found=${found##*release }
    found=${found%%,*}
    found_nvcc="${found_nvcc:+$found_nvcc, }CUDA $found ($1)"
    [ "${found%%.*}" = "${CUDA%%.*}" ] && version_at_least "$found" "$OLDEST_NVCC"
}

compiler_major() {
    found=$("$1" -dumpversion 2>"$work/log") && case ${found%%.*} in
        '' | *[!0-9]*) return 1 ;;
        *) printf '%s' "${found%%.*}" ;;
    esac
}

# find_compiler NAME: set CC and CXX to what nvcc accepts.
find_compiler() {
    newest=99
    if [ -n "$nvcc" ]; then newest=$(newest_gcc "$nvcc"); fi
    seen=
    for candidate in "${CXX:-}" g++ c++ g++-15 g++-14 g++-13 g++-12 g++-11 g++-10 g++-9 clang++; do
        if [ -z "$candidate" ] || ! command -v "${candidate%% *}" >"$work/log"; then
            if [ -n "${CXX:-}" ]; then fail 17 "CXX is \`$CXX\`, which is not there"; fi
            continue
        fi
        major=$(compiler_major "${candidate%% *}") || major=
        case $candidate in *clang*) limit=99 ;; *) limit=$newest ;; esac
        if [ -z "$major" ] || { [ "$major" -ge "$OLDEST_GCC" ] && [ "$major" -le "$limit" ]; }; then
            export CXX="$candidate"
            default_compiler
            return
        fi
        seen="${seen:+$seen, }$candidate is $major"
        if [ -n "${CXX:-}" ]; then break; fi
    done
    if [ -z "$seen" ]; then
        fail 17 "no C++ compiler was found, and $1 is compiled" "apt-get install -y g++"
    fi
    fail 17 "no C++ compiler fits nvcc ${nvcc:-(none)}: $seen; wanted g++ $OLDEST_GCC to $newest" \
        "apt-get install -y g++-$newest, or name one in CXX"
}

default_compiler() {
    case $CXX in
        *clang++*) CC=${CC:-$(printf '%s' "$CXX" | sed 's/clang++/clang/')} ;;
        *g++*) CC=${CC:-$(printf '%s' "$CXX" | sed 's/g++/gcc/')} ;;
        *) CC=${CC:-cc} ;;
    esac
    export CC
    if [ -n "$nvcc" ]; then export CUDAHOSTCXX="${CUDAHOSTCXX:-$CXX}"; fi
    say "compiler $CXX"
}

# need_compiler: where anything has code to compile.
need_compiler() {
    for kind in "$work"/src/*.kind; do
        if [ "$(cat "$kind")" != python ]; then
            name=${kind##*/}
            find_compiler "${name%.kind}"
            if ! "$python" -I -S -c 'import os, sys, sysconfig
sys.exit(not os.path.isfile(os.path.join(sysconfig.get_path("include"), "Python.h")))'; then
                fail 17 "the headers of Python $PYTHON are missing, and ${name%.kind} is compiled" \
                    "apt-get install -y python$PYTHON-dev"
            fi
            return
        fi
    done
}

# prepare_build NAME: look at the source, and find what compiles it.
prepare_build() {
    kind=$(program sources kind "$work/src/$1") || fail 18 "the source of $1 cannot be read"
    printf '%s\n' "$kind" >"$work/src/$1.kind"
    if [ "$kind" = cuda ] && [ -n "$CUDA" ] && [ -z "$nvcc" ]; then find_nvcc "$1"; fi
}

build_cache() {
    if [ -n "${ENVBUILD_CACHE_DIR:-}" ]; then
        printf '%s' "$ENVBUILD_CACHE_DIR/built"
    elif [ -n "${XDG_CACHE_HOME:-}" ]; then
        printf '%s' "$XDG_CACHE_HOME/envbuild/built"
    elif [ -n "${HOME:-}" ] && [ -d "$HOME" ] && [ -w "$HOME" ]; then
        printf '%s' "$HOME/.cache/envbuild/built"
    else
        printf '%s' "$venv/.envbuild-built"
    fi
}

# set_jobs GIGABYTES: as many compilers as the memory and the cores bear.
set_jobs() {
    jobs=$(build_jobs "$(build_memory)" "$(build_cores)" "$1")
    MAX_JOBS=${MAX_JOBS:-${jobs% *}} NVCC_THREADS=${NVCC_THREADS:-${jobs#* }}
    export MAX_JOBS NVCC_THREADS
}

# compile NAME GIGABYTES REQUIRES: build a wheel in a copy of the source, or take it from the cache.
compile() {
    kind=$(cat "$work/src/$1.kind")
    set_jobs "$2"
    key=$(program sources key "$work/src/$1" "$LOCKED_TORCH" "$PYTHON" "$MACHINE" "$CUDA" "$nvcc" \
        "$("${CXX:-c++}" --version 2>&1)" "$(build_environment)" "$3") ||
        fail 18 "the source of $1 cannot be read"
    built=$(build_cache)/$key
    printf '%s\n' "$built" >"$work/src/$1.built"
    for wheel in "$built"/*.whl; do
        if [ -f "$wheel" ]; then
            say "$1 was built before: $wheel"
            install_built "$1" "$wheel"
            return
        fi
    done
    say "compile $1 with $MAX_JOBS jobs"
    mkdir -p -- "${built%/*}" || fail 13 "\`${built%/*}\` cannot be made" "set ENVBUILD_CACHE_DIR"
    partial=$(mktemp -d "${built%/*}/.partial.XXXXXX") || fail 13 "\`${built%/*}\` is not writable"
    # shellcheck disable=SC2046
    PATH=$venv/bin:${CUDA_HOME:+$CUDA_HOME/bin:}$PATH run_uv build --no-config --wheel \
        --no-build-isolation --python "$venv/bin/python" $(offline_option) \
        --out-dir "$partial" -- "$work/src/$1" >"$work/log" 2>&1 9>&- || {
        cat "$work/log" >&2
        rm -rf -- "$partial"
        fail 18 "$1 could not be compiled" \
            "see above; MAX_JOBS=1 takes the least memory, and was $MAX_JOBS"
    }
    rm -f -- "$partial/.gitignore"
    mv -- "$partial" "$built" 2>"$work/log" || rm -rf -- "$partial"
    install_built "$1" "$built"/*.whl
}

install_built() {
    run_uv pip install --no-config --offline --no-deps --no-index --reinstall --python \
        "$venv/bin/python" -- "$2" 2>"$work/log" || install_failed
}

# check_build NAME CAPABILITIES: the compiled parts are there, and for each GPU.
check_build() {
    kind=any
    if [ -f "$work/src/$1.kind" ]; then kind=$(cat "$work/src/$1.kind"); fi
    if ! found=$(program extensions "$site" "$1" "$kind" "$2" "${CUDA%%.*}"); then
        printf '%s\n' "$found" >&2
        if [ -f "$work/src/$1.built" ]; then rm -rf -- "$(cat "$work/src/$1.built")"; fi
        fail 19 "$1 was not built as it should be" "see above"
    fi
}

# build_jobs MEMORY_MIB CORES GIGABYTES: print MAX_JOBS and NVCC_THREADS
build_jobs() {
    build_slots=$(($1 * 9 / 10 / ($3 * 1024)))
    if [ "$build_slots" -lt 1 ]; then build_slots=1; fi
    build_threads=1
    if [ "$build_slots" -ge $(($2 * 2)) ]; then build_threads=2; fi
    build_slots=$((build_slots / build_threads))
    if [ "$build_slots" -gt "$2" ]; then build_slots=$2; fi
    if [ "$build_slots" -lt 1 ]; then build_slots=1; fi
    echo "$build_slots $build_threads"
}

# build_memory: print the memory in MiB, the limits of the control groups included
build_memory() {
    build_mib=$(awk '/^MemTotal:/ { print int($2 / 1024) }' /proc/meminfo 2>/dev/null)
    build_mib=${build_mib:-4096}
    build_new=$(sed -n 's/^0:://p' /proc/self/cgroup 2>/dev/null)
    build_old=$(sed -n 's/^[0-9]*:memory://p' /proc/self/cgroup 2>/dev/null)
    for build_file in "/sys/fs/cgroup$build_new/memory.max" "/sys/fs/cgroup/memory.max" \
        "/sys/fs/cgroup/memory$build_old/memory.limit_in_bytes" \
        "/sys/fs/cgroup/memory/memory.limit_in_bytes"; do
        build_limit=max
        if [ -r "$build_file" ]; then read -r build_limit <"$build_file"; fi
        case $build_limit in '' | *[!0-9]*) continue ;; esac
        if [ "${#build_limit}" -gt 18 ]; then continue; fi
        build_limit=$((build_limit / 1048576))
        if [ "$build_limit" -lt "$build_mib" ]; then build_mib=$build_limit; fi
    done
    echo "$build_mib"
}
# build_cores: print how many cores may be used
build_cores() {
    build_count=$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1)
    build_quota=max
    if [ -r /sys/fs/cgroup/cpu.max ]; then
        read -r build_quota build_period </sys/fs/cgroup/cpu.max
    fi
    case $build_quota in
        '' | *[!0-9]*) ;;
        *)
            build_quota=$((build_quota / build_period))
            if [ "$build_quota" -lt 1 ]; then build_quota=1; fi
            if [ "$build_quota" -lt "$build_count" ]; then build_count=$build_quota; fi
            ;;
    esac
    echo "$build_count"
}

# newest_gcc CUDA: print the newest g++ that an nvcc accepts
newest_gcc() {
    case $1 in
        12.0) echo 12 ;;
        12.1) echo 12 ;;
        12.2) echo 12 ;;
        12.3) echo 12 ;;
        12.4) echo 13 ;;
        12.5) echo 13 ;;
        12.6) echo 13 ;;
        12.8) echo 14 ;;
        12.9) echo 14 ;;
        *) echo 99 ;;
    esac
}

prepare_builds() {
    nvcc='' found_nvcc=''
    take_source pointgroup-ops path libs/pointgroup_ops
    prepare_build pointgroup-ops
    take_source pointops path libs/pointops
    prepare_build pointops
    take_source sharedarray url https://files.pythonhosted.org/packages/74/73/1f66da2d3c074a00aa38bbb225870e7d45fe52d0bf50985773939dd692fd/SharedArray-3.2.1.tar.gz 3.2.1 ae7bba4f0ae33e209bbe58e5688d709a707b0390f3160e63fe5be8908b8e3902
    prepare_build sharedarray
    need_compiler
}

local_sources() {
    printf '%s %s\n' pointgroup-ops "$(program sources key libs/pointgroup_ops 2>&1 || :)"
    printf '%s %s\n' pointops "$(program sources key libs/pointops 2>&1 || :)"
}

check_builds() {
    check_build pointgroup-ops '10.0;12.0'
    check_build pointops '10.0;12.0'
    check_build sharedarray '10.0;12.0'
}

build_environment() {
    printf '%s\n' "CMAKE_CUDA_ARCHITECTURES=${CMAKE_CUDA_ARCHITECTURES-}"
    printf '%s\n' "CUDAARCHS=${CUDAARCHS-}"
    printf '%s\n' "FORCE_CUDA=${FORCE_CUDA-}"
    printf '%s\n' "TORCH_CUDA_ARCH_LIST=${TORCH_CUDA_ARCH_LIST-}"
}

steps() {
    # every wheel of the lock is for CPython 3.11 on linux-x86_64
    step 'environment of CPython 3.11'
    make_environment
    # through uv.lock, so that the next `uv run` changes nothing
    step 'install 163 packages of lockfiles/pylock.cu128.toml'
    mend_environment
    install_by_project --no-default-groups --group envbuild
    # compiled against torch 2.7.0, the one installed
    step 'compile pointgroup-ops'
    (
        # the GPUs meant are sm_100 and sm_120; without it torch asks the GPU of this machine
        default TORCH_CUDA_ARCH_LIST '10.0;12.0'
        # the same for CMake
        default CUDAARCHS '100;120'
        # the same for setup.py files that hand it on to CMake
        default CMAKE_CUDA_ARCHITECTURES '100;120'
        # many setup.py files leave the CUDA part out where they see no GPU
        default FORCE_CUDA 1
        compile pointgroup-ops 2 'setuptools==84.2.1 wheel==0.48.0 ninja==1.13.2'
    )
    check_build pointgroup-ops '10.0;12.0'
    # compiled against torch 2.7.0, the one installed
    step 'compile pointops'
    (
        # the GPUs meant are sm_100 and sm_120; without it torch asks the GPU of this machine
        default TORCH_CUDA_ARCH_LIST '10.0;12.0'
        # the same for CMake
        default CUDAARCHS '100;120'
        # the same for setup.py files that hand it on to CMake
        default CMAKE_CUDA_ARCHITECTURES '100;120'
        # many setup.py files leave the CUDA part out where they see no GPU
        default FORCE_CUDA 1
        compile pointops 2 'setuptools==84.2.1 wheel==0.48.0 ninja==1.13.2'
    )
    check_build pointops '10.0;12.0'
    # compiled against torch 2.7.0, the one installed
    step 'compile sharedarray'
    (
        # the GPUs meant are sm_100 and sm_120; without it torch asks the GPU of this machine
        default TORCH_CUDA_ARCH_LIST '10.0;12.0'
        # the same for CMake
        default CUDAARCHS '100;120'
        # the same for setup.py files that hand it on to CMake
        default CMAKE_CUDA_ARCHITECTURES '100;120'
        # many setup.py files leave the CUDA part out where they see no GPU
        default FORCE_CUDA 1
        compile sharedarray 2 'setuptools==84.2.1 wheel==0.48.0 ninja==1.13.2'
    )
    check_build sharedarray '10.0;12.0'
    # what lies there is compared with the lock, and nothing is imported
    step 'compare with the lock'
    self_check
}

write_programs() {
    cat >"$work/distributions.py" <<'END_OF_FILE'
"""Compare what lies in an environment with the lock, by files alone: nothing of it is imported.

Run by the install script: ``distributions.py check|mend|missing SITE PACKAGES [NAME ...]``.
PACKAGES holds lines ``name version bytes flag``; NAMEs are what is compiled, and ``=NAME`` what may
be there, the project itself.
"""

from __future__ import annotations

import csv
import os
import re
import shutil
import sys
from pathlib import Path

Rows = list[tuple[str, int | None]]


def normal(name: str) -> str:
    """Return a name as package indexes spell it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def same(a: str, b: str) -> bool:
    """Whether two versions are spelled alike but for separators of the local part."""
    return re.sub(r"[-_.]", ".", a).lower() == re.sub(r"[-_.]", ".", b).lower()


class Found:
    """One dist-info folder; ``rows`` is None where its RECORD cannot be read."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name, self.version = self._identity()
        self.rows = self._record()

    def _identity(self) -> tuple[str, str]:
        name, _, version = self.folder.name[: -len(".dist-info")].partition("-")
        try:
            text = (self.folder / "METADATA").read_text("utf-8", "replace")
        except OSError:
            return normal(name), ""
        for line in text.splitlines():
            if not line.strip():
                break
            if line.lower().startswith("name:"):
                name = line.partition(":")[2].strip()
            elif line.lower().startswith("version:"):
                version = line.partition(":")[2].strip()
        return normal(name), version

    def _record(self) -> Rows | None:
        try:
            with (self.folder / "RECORD").open(encoding="utf-8", newline="") as file:
                rows = [(row[0], _size(row)) for row in csv.reader(file) if row]
        except (OSError, ValueError, csv.Error):
            return None
        return rows or None


def _size(row: list[str]) -> int | None:
    return int(row[2]) if len(row) > 2 and row[2].isdigit() else None


def installed(site: Path) -> list[Found]:
    """Return every distribution, in the order of their names."""
    folders = site.glob("*.dist-info") if site.is_dir() else ()
    return sorted((Found(folder) for folder in folders), key=lambda one: one.folder.name)


def owners(found: list[Found]) -> dict[str, int]:
    """Return how many distributions record each path."""
    counted: dict[str, int] = {}
    for one in found:
        for path, _ in one.rows or ():
            counted[path] = counted.get(path, 0) + 1
    return counted


def broken(one: Found, site: str, counted: dict[str, int]) -> str:
    """Return what is wrong with the files of a distribution, empty where nothing is."""
    if not one.version:
        return "has no METADATA"
    if one.rows is None:
        return "has no RECORD"
    stat = os.stat
    for path, size in one.rows:
        try:
            held = stat(f"{site}/{path}").st_size
        except OSError:
            if path.endswith(".pyc"):
                continue
            return f"lacks `{path}`"
        if size is not None and held != size and counted[path] == 1:
            return f"has {held} of {size} bytes of `{path}`"
    return ""


def expected(path: str) -> dict[str, tuple[str, int, str]]:
    """Return version, bytes and flag of each package of the lock."""
    wanted = {}
    for line in Path(path).read_text("utf-8").splitlines():
        name, version, size, flag = line.split(" ")
        wanted[name] = (version, int(size), flag)
    return wanted


def fits(found: str, wanted: str, flag: str) -> bool:
    """Whether an installed version is the one locked."""
    return same(found, wanted) or (flag == "direct" and same(found, wanted.partition("+")[0]))


def problems(site: Path, wanted: dict[str, tuple[str, int, str]], own: set[str]) -> list[str]:
    """Return every difference between the environment and the lock."""
    found = installed(site)
    counted = owners(found)
    lines = []
    seen: set[str] = set()
    for one in found:
        if one.name in seen:
            lines.append(f"{one.name} is there twice: {one.folder.name}")
        seen.add(one.name)
        fault = broken(one, str(site), counted)
        if fault:
            lines.append(f"{one.name} {one.version} {fault}")
        elif one.name in wanted and not fits(one.version, wanted[one.name][0], wanted[one.name][2]):
            lines.append(f"{one.name} is {one.version}, the lock has {wanted[one.name][0]}")
        elif one.name not in wanted and not own & {one.name, f"={one.name}"}:
            lines.append(f"{one.name} {one.version} is not in the lock")
    for name, (version, _, flag) in wanted.items():
        if name not in seen and flag != "optional":
            lines.append(f"{name} {version} is not installed")
    lines += [f"{name} was not built" for name in sorted(own - seen) if not name.startswith("=")]
    return lines + torch_problems(site, wanted)


def torch_problems(site: Path, wanted: dict[str, tuple[str, int, str]]) -> list[str]:
    """Return how torch/version.py contradicts the lock; it knows the build, METADATA may not."""
    version = wanted.get("torch", ("",))[0]
    try:
        text = (site / "torch" / "version.py").read_text("utf-8", "replace")
    except OSError:
        return []
    match = re.search(r"^__version__ = ['\"]([^'\"]+)", text, re.MULTILINE)
    said = match[1] if match else ""
    if not said or not version or same(said, version):
        return []
    if "+" not in version and same(said.partition("+")[0], version):
        return []
    return [f"torch/version.py says {said}, the lock has {version}"]


def mend(site: Path) -> list[str]:
    """Take out what a killed run left half installed, so that it is installed anew."""
    found = installed(site)
    counted = owners(found)
    prefix = os.path.realpath(site.parents[2])
    lines = []
    for one in found:
        fault = broken(one, str(site), counted)
        if not fault:
            continue
        lines.append(f"{one.folder.name} {fault}")
        for path, _ in one.rows or ():
            goal = os.path.realpath(site / os.path.dirname(path))
            if counted[path] == 1 and (goal + os.sep).startswith(prefix + os.sep):
                (Path(goal) / os.path.basename(path)).unlink(missing_ok=True)
        shutil.rmtree(one.folder)
    return lines


def main(arguments: list[str]) -> int:
    """Do what is asked; for ``check`` the answer is 1 where something differs."""
    verb, site, packages, *own = arguments
    if verb == "mend":
        sys.stdout.writelines(f"{line}\n" for line in mend(Path(site)))
        return 0
    wanted = expected(packages)
    if verb == "missing":
        held = {one.name: one.version for one in installed(Path(site))}
        missing = [
            size
            for name, (version, size, flag) in wanted.items()
            if not fits(held.get(name, ""), version, flag)
        ]
        sys.stdout.write(f"{sum(missing)}\n")
        return 0
    found = problems(Path(site), wanted, set(own))
    sys.stdout.writelines(f"{line}\n" for line in found)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
END_OF_FILE
    cat >"$work/extensions.py" <<'END_OF_FILE'
"""Look at the compiled parts of a package that was built: are they there, and for these GPUs.

Run by the install script: ``extensions.py SITE NAME KIND CAPABILITIES CUDA_MAJOR``, where KIND is
``cuda``, ``native``, ``python`` or ``any``, as its source says. Nothing is imported or loaded.
"""

from __future__ import annotations

import csv
import re
import struct
import sys
from pathlib import Path

Codes = set[tuple[int, int]]
SASS, PTX = 2, 1
MAGIC = 0xBA55ED50
ONLY_THIS = 0x100000 | 0x200000


class Elf:
    """The sections of a 64-bit little-endian shared object."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        if data[:6] != b"\x7fELF\x02\x01":
            raise ValueError("is no 64-bit ELF file")
        (start,) = struct.unpack_from("<Q", data, 40)
        size, count, names = struct.unpack_from("<HHH", data, 58)
        rows = [struct.unpack_from("<IIQQQQII", data, start + n * size) for n in range(count)]
        table = rows[names][4]
        self.sections = {
            self.text(table + row[0]): (row[4], row[5], row[6]) for row in rows if row[1] != 8
        }
        self.order = rows

    def text(self, at: int) -> str:
        """Return the string that begins at an offset."""
        return self.data[at : self.data.index(b"\0", at)].decode("utf-8", "replace")

    def needed(self) -> list[str]:
        """Return the libraries that it is linked to."""
        start, size, link = self.sections.get(".dynamic", (0, 0, 0))
        strings = self.order[link][4]
        found = []
        for at in range(start, start + size, 16):
            tag, value = struct.unpack_from("<qQ", self.data, at)
            if tag == 1:
                found.append(self.text(strings + value))
        return found

    def codes(self) -> tuple[Codes, Codes]:
        """Return for what it has machine code, and PTX; 1 beside code for that GPU alone."""
        start, size, _ = self.sections.get(".nv_fatbin", (0, 0, 0))
        end, found = start + size, {SASS: set[tuple[int, int]](), PTX: set[tuple[int, int]]()}
        while start + 16 <= end:
            magic, _, length, extent = struct.unpack_from("<IHHQ", self.data, start)
            if magic != MAGIC:
                start = self.data.find(MAGIC.to_bytes(4, "little"), start + 1, end)
                if start < 0:
                    break
                continue
            at, stop = start + length, start + length + extent
            while at + 64 <= stop:
                row = struct.unpack_from("<HHIQIIHHIIIQQQ", self.data, at)
                if row[0] in found:
                    found[row[0]].add((row[8], 1 if row[11] & ONLY_THIS else 0))
                at += row[2] + row[3]
            start = (stop + 7) & ~7
        return found[SASS], found[PTX]


def runs_on(capability: str, sass: Codes, ptx: Codes) -> bool:
    """Whether a GPU runs machine code of its own generation, or PTX that is no newer."""
    major, minor = (int(part) for part in re.sub("[af]$", "", capability).split("."))
    arch = major * 10 + minor
    own = any(a == arch or (not only and a // 10 == major and a <= arch) for a, only in sass)
    return own or any(not only and a <= arch for a, only in ptx)


def shared_objects(site: Path, name: str) -> list[Path] | None:
    """Return the shared objects that a distribution records, None where it is not installed."""
    for folder in site.glob("*.dist-info"):
        if re.sub(r"[-_.]+", "-", folder.name.partition("-")[0]).lower() == name:
            with (folder / "RECORD").open(encoding="utf-8", newline="") as file:
                paths = [row[0] for row in csv.reader(file) if row]
            return [site / path for path in paths if re.search(r"\.so(\.\d+)*$", path)]
    return None


def links(site: Path, path: Path, elf: Elf, cuda_major: str) -> list[str]:
    """Return what an extension is linked to and cannot be had from the torch installed."""
    found = []
    for library in elf.needed():
        runtime = re.fullmatch(r"libcudart\.so\.(\d+)(\.\d+)?", library)
        if runtime and cuda_major and runtime[1] != cuda_major:
            found.append(f"`{path.name}` needs {library}, torch is built for CUDA {cuda_major}")
        ours = re.fullmatch(r"lib(torch\w*|c10\w*)\.so", library)
        if ours and (site / "torch").is_dir() and not (site / "torch" / "lib" / library).exists():
            found.append(f"`{path.name}` needs {library}, which the torch installed lacks")
    return found


def problems(site: Path, name: str, kind: str, capabilities: list[str], major: str) -> list[str]:
    """Return what is wrong with the compiled parts of a package."""
    objects = shared_objects(site, name)
    if objects is None:
        return ["is not installed"]
    if not objects and kind in {"cuda", "native"}:
        return ["is hollow: its source has code to compile, and nothing compiled was installed"]
    found, with_code = [], 0
    for path in objects:
        try:
            elf = Elf(path.read_bytes())
            sass, ptx = elf.codes()
        except (OSError, ValueError, IndexError, struct.error) as error:
            found.append(f"`{path.name}` cannot be read: {error}")
            continue
        found += links(site, path, elf, major)
        with_code += bool(sass or ptx)
        lacking = [c for c in capabilities if (sass or ptx) and not runs_on(c, sass, ptx)]
        if lacking:
            has = ", ".join(f"sm_{arch}" for arch, _ in sorted(sass)) or "PTX alone"
            found.append(f"`{path.name}` has no code for {', '.join(lacking)}; it has {has}")
    if kind == "cuda" and capabilities and not with_code:
        found.append("was built without its CUDA code")
    return found


def main(arguments: list[str]) -> int:
    """Print what is wrong; the answer is 1 where something is."""
    site, name, kind, capabilities, major = arguments
    words = [word for word in capabilities.split(";") if word]
    found = problems(Path(site), name, kind, words, major)
    sys.stdout.writelines(f"{name} {line}\n" for line in found)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
END_OF_FILE
    cat >"$work/machine.py" <<'END_OF_FILE'
"""What this machine has: free disk, a way to the hosts, and files of a lock.

Run by the install script: ``machine.py lock FILE``, ``free FOLDER``, ``probe URL ...``,
``hold DESCRIPTOR SECONDS FOLDER``, ``local LOCK GOAL FOLDERS MIRRORS``,
``sdist INDEX NAME VERSION``, ``download URL SHA256 GOAL FOLDERS MIRRORS OFFLINE``.

What only one of these needs is imported there: a run asks often, and HTTP alone takes 100 ms.
"""

# ruff: noqa: PLC0415

from __future__ import annotations

import os
import shutil
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import re

PATIENCE = float(os.environ.get("UV_HTTP_TIMEOUT") or 10)


def sha256(path: str) -> str:
    """Return the hash of a file."""
    import hashlib

    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


def lock_hash(path: str) -> str:
    """Return the hash of a lock's text; git may have given its lines other ends."""
    import hashlib

    with open(path, "rb") as file:
        text = file.read().replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return hashlib.sha256(text).hexdigest()


def free(folder: str) -> int:
    """Return the bytes that can be written where a folder is, or will be."""
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder) or "."
    return shutil.disk_usage(folder).free


def hold(handle: str, seconds: str, folder: str) -> None:
    """Lock an open file of the shell, which keeps the lock; wait for whoever has it."""
    descriptor = int(handle)
    if locked(descriptor):
        return
    sys.stderr.write(f"envbuild: wait for another run in `{folder}`, or for a uv it left behind\n")
    end = time.monotonic() + float(seconds)
    while time.monotonic() < end:
        time.sleep(0.05)
        if locked(descriptor):
            return
    sys.exit(1)


def locked(descriptor: int) -> bool:
    """Return whether the lock is had, or cannot be: there are file systems without locks."""
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def reached(url: str) -> str:
    """Return why a host is not reached, empty where it answers at all; nothing is read."""
    import ssl
    import urllib.error
    import urllib.request

    request = urllib.request.Request(url, method="HEAD")
    context = ssl._create_unverified_context()  # noqa: S323, SLF001 - no answer is used
    try:
        urllib.request.urlopen(request, timeout=PATIENCE, context=context).close()
    except urllib.error.HTTPError:
        return ""
    except (OSError, ValueError) as error:
        return str(getattr(error, "reason", error))
    return ""


def probe(urls: list[str]) -> list[str]:
    """Return a line for each host that is not reached."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(max_workers=8) as pool:
        answers = zip(urls, pool.map(reached, urls), strict=True)
        return [f"{url} is not reached: {answer}" for url, answer in answers if answer]


def mirrored(url: str, mirrors: str) -> str:
    """Return an address with the first prefix that a mirror stands for replaced."""
    for pair in mirrors.split():
        prefix, _, goal = pair.partition("=")
        if goal and url.startswith(prefix):
            return goal + url[len(prefix) :]
    return url


def local_file(url: str, folders: str) -> str:
    """Return the file of a wheelhouse that stands for an address, empty where there is none."""
    import re
    from urllib.parse import unquote, urlsplit

    name = unquote(urlsplit(url).path.rpartition("/")[2])
    for folder in re.split(r"[,\s]+", folders):
        path = os.path.join(folder.removeprefix("file://"), name)
        if folder and "://" not in folder.removeprefix("file://") and os.path.isfile(path):
            return os.path.abspath(path)
    return ""


def relocated(text: str, folders: str, mirrors: str) -> tuple[str, list[str]]:
    """Return a lock whose files come from a wheelhouse and mirrors, and the addresses left."""
    import json
    import re

    left = []

    def change(match: re.Match[str]) -> str:
        url = json.loads(match[1])
        path = local_file(url, folders)
        if path:
            return f"path = {json.dumps(path)}"
        left.append(mirrored(url, mirrors))
        return f"url = {json.dumps(left[-1])}"

    return re.sub(r'\burl = ("(?:[^"\\]|\\.)*")', change, text), left


def sdist(index: str, name: str, version: str) -> tuple[str, str]:
    """Return address and hash of the sdist of a release, as an index gives them now."""
    import json
    import re
    import urllib.request
    from urllib.parse import unquote, urljoin, urlsplit

    accept = "application/vnd.pypi.simple.v1+json, text/html;q=0.1"
    page = f"{index.rstrip('/')}/{name}/"
    request = urllib.request.Request(page, headers={"Accept": accept})
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        text, base = answer.read().decode(), answer.url
    if text.lstrip().startswith("{"):
        pairs = [(f["url"], f["hashes"].get("sha256", "")) for f in json.loads(text)["files"]]
    else:
        found = re.findall(r'href="([^"#]+)(?:#sha256=([0-9a-f]{64}))?', text)
        pairs = [(url.replace("&amp;", "&"), digest) for url, digest in found]
    stem = re.compile(
        re.sub("-", "[-_.]+", re.escape(name).replace("\\-", "-"))
        + "-"
        + re.escape(version)
        + r"\.(tar\.gz|zip)",
        re.IGNORECASE,
    )
    for url, digest in pairs:
        if stem.fullmatch(unquote(urlsplit(url).path.rpartition("/")[2])):
            return urljoin(base, url), digest
    raise ValueError(f"{page} has no source of {name} {version}")


class OtherBytesError(ValueError):
    """A file that is not the one that was locked."""


def download(
    url: str, digest: str, goal: str, folders: str, mirrors: str = "", offline: str = ""
) -> None:
    """Write a file whose hash is right; raise OtherBytesError where it is not."""
    import urllib.request

    path = local_file(url, folders)
    if path:
        shutil.copyfile(path, goal)
    elif offline and not url.startswith("file:"):
        raise ValueError(f"offline, and no folder of UV_FIND_LINKS holds {url}")
    else:
        source = mirrored(url, mirrors)
        with urllib.request.urlopen(source, timeout=PATIENCE) as answer, open(goal, "wb") as file:
            shutil.copyfileobj(answer, file)
    found = sha256(goal)
    if digest not in ("", "-", found):
        os.unlink(goal)
        raise OtherBytesError(f"{url} has sha256 {found}, the lock has {digest}")


def answer(verb: str, words: list[str]) -> str:
    """Return what is asked, as lines."""
    if verb == "lock":
        return lock_hash(words[0])
    if verb == "free":
        return str(free(words[0]))
    if verb == "probe":
        return "\n".join(probe(words))
    if verb == "sdist":
        return "\n".join(sdist(*words))
    if verb in ("download", "hold"):
        download(*words) if verb == "download" else hold(*words)
        return ""
    return "\n".join(local(*words))


def local(lock: str, goal: str, folders: str, mirrors: str) -> list[str]:
    """Write the lock as it is installed here, and return the hosts that it leads to."""
    from pathlib import Path
    from urllib.parse import urlsplit

    text, left = relocated(Path(lock).read_text("utf-8"), folders, mirrors)
    Path(goal).write_text(text, "utf-8")
    asked = [urlsplit(url) for url in left if url.startswith("http")]
    return sorted({f"{url.scheme}://{url.netloc}/" for url in asked})


def main(arguments: list[str]) -> int:
    """Print the answer; what the world refuses is said in one line.

    Returns 23 for other bytes than the lock's, else 1.
    """
    try:
        text = answer(arguments[0], arguments[1:])
    except (OSError, ValueError, EOFError) as error:
        sys.stderr.write(f"{error}\n")
        return 23 if isinstance(error, OtherBytesError) else 1
    sys.stdout.write(f"{text}\n" if text else "")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
END_OF_FILE
    cat >"$work/sources.py" <<'END_OF_FILE'
"""Sources of what is compiled: their hash, a clean copy, and what kind of code they hold.

Run by the install script: ``sources.py key FOLDER [WORD ...]``, ``copy FOLDER GOAL``,
``kind FOLDER``, ``unpack ARCHIVE GOAL``.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
import tarfile
from pathlib import Path

LEFT_OUT = re.compile(
    r"(build|dist|__pycache__|\.git|\.hg|\.svn|\.venv|venv|\.eggs|.*\.egg-info|.*\.py[cod]"
    r"|.*\.o|.*\.so)"
)
CUDA = (".cu", ".cuh")
NATIVE = (".c", ".cc", ".cpp", ".cxx", ".pyx", ".rs")


def left_out(_: str, names: list[str]) -> set[str]:
    """Return what earlier builds left among the names: it must not end up in this one."""
    return {name for name in names if LEFT_OUT.fullmatch(name)}


def files(folder: str) -> list[str]:
    """Return the files of a source by path, in one order on every machine."""
    found = []
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not LEFT_OUT.fullmatch(name)]
        kept = [name for name in names if not LEFT_OUT.fullmatch(name)]
        found += [os.path.relpath(os.path.join(parent, name), folder) for name in kept]
    return sorted(found)


def key(folder: str, words: list[str]) -> str:
    """Return a hash of a source and of everything else that its build depends on."""
    digest = hashlib.sha256()
    for word in words:
        digest.update(f"{len(word)}:{word}".encode("utf-8", "surrogateescape"))
    for path in files(folder):
        full = os.path.join(folder, path)
        content = Path(full).read_bytes() if os.path.isfile(full) else b""
        mode = "x" if os.access(full, os.X_OK) else "-"
        name = os.fsencode(path)
        digest.update(b"%d:%s%s%d:" % (len(name), name, mode.encode(), len(content)))
        digest.update(content)
    return digest.hexdigest()


def kind(folder: str) -> str:
    """Return what a source is: ``cuda``, ``native`` or ``python``."""
    paths = files(folder)
    try:
        setup = Path(folder, "setup.py").read_text("utf-8", "replace")
    except OSError:
        setup = ""
    if "CUDAExtension" in setup or any(path.endswith(CUDA) for path in paths):
        return "cuda"
    return "native" if any(path.endswith(NATIVE) for path in paths) else "python"


def unpack(archive: str, goal: str) -> None:
    """Unpack an sdist so that its one folder becomes the goal."""
    partial = f"{goal}.partial"
    shutil.rmtree(partial, ignore_errors=True)
    if tarfile.is_tarfile(archive) and hasattr(tarfile, "data_filter"):
        with tarfile.open(archive) as tar:
            tar.extractall(partial, filter="data")
    else:
        shutil.unpack_archive(archive, partial)
    (inner,) = os.listdir(partial)
    os.replace(os.path.join(partial, inner), goal)
    os.rmdir(partial)


def main(arguments: list[str]) -> int:
    """Do what is asked and print the answer."""
    verb, folder, *words = arguments
    if verb == "key":
        sys.stdout.write(key(folder, words) + "\n")
    elif verb == "kind":
        sys.stdout.write(kind(folder) + "\n")
    elif verb == "copy":
        shutil.copytree(folder, words[0], symlinks=False, ignore=left_out, dirs_exist_ok=True)
    else:
        unpack(folder, words[0])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
END_OF_FILE
    cat >"$work/packages" <<'END_OF_FILE'
absl-py 2.5.1 275346 -
accelerate 1.15.0 788590 -
addict 2.4.0 7664 -
aiohappyeyeballs 2.7.1 30076 -
aiohttp 3.14.5 3859830 -
aiosignal 1.4.0 14980 -
annotated-types 0.8.0 26854 -
anyio 4.16.0 269042 -
asttokens 3.0.2 57404 -
attrs 26.1.0 135096 -
black 26.10.1 4038084 -
blinker 1.9.0 16916 -
ccimport 0.4.4 54574 -
certifi 2026.10.19.post1 268094 -
charset-normalizer 3.5.3 526764 -
click 8.5.1 252326 -
comm 0.2.3 14588 -
configargparse 1.9.0 74762 -
contourpy 1.3.3 710476 -
cumm-cu126 0.7.11 53185558 -
cwevals 0.0.1b1 353088 -
cycler 0.12.1 16642 -
dash 4.4.1 17890054 -
distro 1.9.0 40554 -
einops 0.8.2 131276 -
executing 2.3.0 58786 -
fastjsonschema 2.22.3 56884 -
filelock 4.3.1 489118 -
fire 0.7.1 231890 -
flash-attn 2.8.3.post1+cu12torch2.7cxx11abitrue 629145600 direct
flask 3.1.3 206848 -
fonttools 4.68.0 10987658 -
frozenlist 1.8.0 462134 -
fsspec 2026.9.0 443476 -
ftfy 6.3.1 89642 -
googleapis-common-protos 1.76.0 615414 -
grpcio 1.85.3 14782162 -
h11 0.16.0 75030 -
h5py 3.16.0 10054300 -
hf-xet 1.8.0 8584966 -
httpcore 1.0.9 157568 -
httpx 0.28.1 147034 -
huggingface-hub 0.36.2 1132790 -
idna 3.20 139166 -
importlib-metadata 10.2.0 68218 -
ipython 9.18.1 1299638 -
ipython-pygments-lexers 1.1.1 16148 -
ipywidgets 8.1.9 280202 -
itsdangerous 2.2.0 32468 -
janus 2.0.0 24322 -
jedi 0.20.1 9771960 -
jinja2 3.1.6 269798 -
jsonschema 4.26.0 181260 -
jsonschema-specifications 2025.9.1 36874 -
jupyter-core 5.9.1 58064 -
jupyterlab-widgets 3.0.17 434584 -
kiwisolver 1.5.1 2876412 -
lark 1.3.1 226302 -
lazy-importer 0.1.0 25160 -
markdown 3.11.3 233516 -
markupsafe 3.0.4 45922 -
matplotlib 3.11.2 19708810 -
matplotlib-inline 0.2.2 19068 -
mpmath 1.3.0 1072396 -
multidict 7.2.1 1020108 -
mypy-extensions 1.2.0 10228 -
narwhals 2.29.0 1003436 -
nbformat 5.11.1 159698 -
nest-asyncio 1.6.0 10390 -
networkx 3.6.1 4137008 -
ninja 1.13.2 366730 -
numpy 2.4.6 33836328 -
nvidia-cublas-cu12 12.8.3.14 1219241260 -
nvidia-cuda-cupti-cu12 12.8.57 20475094 -
nvidia-cuda-nvrtc-cu12 12.8.61 176049170 -
nvidia-cuda-runtime-cu12 12.8.57 1909524 -
nvidia-cudnn-cu12 9.7.1.26 1453702842 -
nvidia-cufft-cu12 11.3.3.41 386237590 -
nvidia-cufile-cu12 1.13.0.11 2395602 -
nvidia-curand-cu12 10.3.9.55 127236076 -
nvidia-cusolver-cu12 11.7.2.55 520746684 -
nvidia-cusparse-cu12 12.5.7.53 584128360 -
nvidia-cusparselt-cu12 0.6.3 313571592 -
nvidia-nccl-cu12 2.26.2 402639510 -
nvidia-nvjitlink-cu12 12.8.61 78486946 -
nvidia-nvtx-cu12 12.8.55 179792 -
ocnn 2.3.3 154626 -
open3d 0.20.0 801606868 -
opentelemetry-api 1.45.2 120670 -
opentelemetry-exporter-http-transport 0.66b2 24308 -
opentelemetry-exporter-otlp-common 0.66b2 24770 -
opentelemetry-exporter-otlp-proto-common 1.45.2 30784 -
opentelemetry-exporter-otlp-proto-http 1.45.2 44360 -
opentelemetry-proto 1.45.2 144968 -
opentelemetry-sdk 1.45.2 283512 -
opentelemetry-semantic-conventions 0.66b2 412560 -
packaging 26.4 280098 -
parso 0.8.7 214050 -
pathspec 1.1.1 114656 -
pccm 0.4.16 147462 -
peft 0.21.2 1670854 -
pexpect 4.9.0 127544 -
pillow 13.0.0 14281334 -
platformdirs 4.14.8 188534 -
plotly 7.1.0 19384736 -
plyfile 1.1.5 72926 -
portalocker 4.4.2 259404 -
prompt-toolkit 3.0.53 784576 -
propcache 0.5.4 470762 -
protobuf 7.36.2 686446 -
psutil 7.2.2 311120 -
ptyprocess 0.7.0 27986 -
pure-eval 0.2.4 23786 -
pybind11 3.1.0 638804 -
pydantic 2.14.4 989730 -
pydantic-core 2.50.5 4515424 -
pygments 2.21.0 2500294 -
pyparsing 3.3.3 252840 -
python-dateutil 4.0.0 185706 -
pytokens 0.4.1 521648 -
pyyaml 6.0.4 1656032 -
referencing 0.37.0 53532 -
regex 2026.11.19 1615872 -
requests 2.34.2 146150 -
retrying 1.4.2 21718 -
rpds-py 2026.9.1 750852 -
safetensors 0.8.0 1032080 -
scipy 1.17.1 70698600 -
setuptools 84.2.1 1752526 -
sniffio 1.3.1 20470 -
spconv-cu126 2.3.8 140961902 -
stack-data 0.6.3 49042 -
sympy 1.14.0 12598706 -
tensorboard 2.21.0 11032408 -
tensorboard-data-server 0.7.2 13180726 -
tensorboardx 2.6.5 175020 -
termcolor 3.3.0 15468 -
timm 1.0.31 5597428 -
tokenizers 0.21.4 6230852 -
torch 2.7.0+cu128 2147483648 -
torch-cluster 1.6.3+pt27cu128 20971520 direct
torch-geometric 2.8.1 2650942 -
torch-scatter 2.1.2+pt27cu128 20971520 direct
torch-sparse 0.6.18+pt27cu128 20971520 direct
torchaudio 2.7.0+cu128 20971520 -
torchvision 0.22.0+cu128 20971520 -
tqdm 4.70.1 160398 -
traitlets 5.16.1 172422 -
transformers 4.50.3 20360822 -
triton 3.3.0 313056922 -
typing-extensions 4.16.0 91142 -
typing-inspection 0.4.5 29748 -
tzdata 2026.6 696420 -
urllib3 2.8.0 271434 -
wandb 0.31.0 40675014 -
wcwidth 0.9.4 1571892 -
werkzeug 3.1.9 457400 -
wheel 0.48.0 66640 -
widgetsnbextension 4.0.16 4450296 -
xxhash 4.1.0 942896 -
yapf 0.43.0 512316 -
yarl 1.25.1 235456 -
zipp 4.1.2 21162 -
END_OF_FILE
    cat >"$work/unhashed.txt" <<'END_OF_FILE'
flash-attn @ https://github.com/Dao-AILab/flash-attention/releases/download/v2.8.3.post1/flash_attn-2.8.3.post1%2Bcu12torch2.7cxx11abiTRUE-cp311-cp311-linux_x86_64.whl
torch-cluster @ https://data.pyg.org/whl/torch-2.7.0%2Bcu128/torch_cluster-1.6.3%2Bpt27cu128-cp311-cp311-linux_x86_64.whl
torch-scatter @ https://data.pyg.org/whl/torch-2.7.0%2Bcu128/torch_scatter-2.1.2%2Bpt27cu128-cp311-cp311-linux_x86_64.whl
torch-sparse @ https://data.pyg.org/whl/torch-2.7.0%2Bcu128/torch_sparse-0.6.18%2Bpt27cu128-cp311-cp311-linux_x86_64.whl
END_OF_FILE
}

main "$@"

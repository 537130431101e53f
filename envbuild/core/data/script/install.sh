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

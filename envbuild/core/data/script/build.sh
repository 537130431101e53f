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

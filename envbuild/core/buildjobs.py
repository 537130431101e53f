"""How many compilers run at once: one formula, for Python and for the shell, tested equal.

Each nvcc takes some gigabytes at its peak, and `nvcc --threads` as many times that. A tenth of
the memory is left alone. Where there is memory for two nvcc on every core, each compiles for two
architectures at once, which shortens the end of a build when few files are left.
"""

from __future__ import annotations

from dataclasses import dataclass

_MIB = 1 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Jobs:
    """``MAX_JOBS`` and ``NVCC_THREADS``."""

    max_jobs: int
    nvcc_threads: int


def jobs_for(*, memory_bytes: int, cores: int, gigabytes: int) -> Jobs:
    """Return the jobs for a memory, its control group's limit included, and the cores."""
    usable = memory_bytes // _MIB * 9 // 10
    slots = max(1, usable // (gigabytes * 1024))
    threads = 2 if slots >= 2 * cores else 1
    return Jobs(max_jobs=max(1, min(cores, slots // threads)), nvcc_threads=threads)


JOBS_FUNCTION = """\
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
"""
"""The same formula in POSIX shell."""

MEMORY_FUNCTIONS = """\
# build_memory: print the memory in MiB, the limits of the control groups included
build_memory() {
    build_mib=$(awk '/^MemTotal:/ { print int($2 / 1024) }' /proc/meminfo 2>/dev/null)
    build_mib=${build_mib:-4096}
    build_new=$(sed -n 's/^0:://p' /proc/self/cgroup 2>/dev/null)
    build_old=$(sed -n 's/^[0-9]*:memory://p' /proc/self/cgroup 2>/dev/null)
    for build_file in "/sys/fs/cgroup$build_new/memory.max" "/sys/fs/cgroup/memory.max" \\
        "/sys/fs/cgroup/memory$build_old/memory.limit_in_bytes" \\
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
"""
"""What the formula is given, in POSIX shell."""

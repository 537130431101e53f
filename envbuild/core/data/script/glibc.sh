# require_glibc OLDEST: fail where this machine has an older one.
require_glibc() {
    found=$(getconf GNU_LIBC_VERSION 2>"$work/log") || found=
    found=${found##* }
    if [ -n "$found" ] && ! version_at_least "$found" "$1"; then
        fail 21 "this machine has glibc $found, the lock is for glibc $1 or newer" \
            "lock a target with \`glibc = \"$found\"\`"
    fi
}

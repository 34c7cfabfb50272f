# Set-up shared by ./huajin and ./huajin-test, which set root, cache, torch and build. Sourced. Everything it says goes to stderr: stdout belongs to
# the command. Nothing is written outside the cache and the checkout, but for system packages where root asks for them by running this.
# Exit codes: 2 something that the user can mend (packages, disk, network), 1 a build that fails.

build_packages=(g++ cmake ninja-build ccache pkg-config ca-certificates python3 python3-pip zlib1g-dev libjpeg-dev libspng-dev libzstd-dev
  libxxhash-dev libhwy-dev libsqlite3-dev libfmt-dev libcli11-dev libtomlplusplus-dev nlohmann-json3-dev libopenmpi-dev openmpi-bin)
test_packages=(libgtest-dev clang python3-venv)
logs=$cache/logs

say() { printf 'huajin: %s\n' "$*" >&2; }
give_up() {  # CODE MESSAGE
  local code=$1
  shift
  say "$*"
  exit "$code"
}

bar() {  # PERCENT -> ██████░░░░
  local filled=$(($1 / 5)) full=████████████████████ empty=░░░░░░░░░░░░░░░░░░░░
  printf '%s%s' "${full:0:filled}" "${empty:0:20-filled}"
}

show() {  # LABEL PERCENT SECONDS DETAIL: one line that is redrawn on a terminal; elsewhere a line now and then
  local percent=$2
  if [[ -t 2 ]]; then
    local width=$((${COLUMNS:-80} - 50 - ${#1}))
    local detail=${4:0:$((width > 0 ? width : 0))}
    if [[ -n $percent ]]; then
      printf '\r\033[K%s %s %3d %% %3d s %s' "$1" "$(bar "$percent")" "$percent" "$3" "$detail" >&2
    else
      printf '\r\033[K%s … %d s %s' "$1" "$3" "$detail" >&2
    fi
  elif ((${percent:-0} >= shown_percent + 20 || $3 >= shown_at + 30)); then
    shown_percent=${percent:-$shown_percent} shown_at=$3
    printf '%s: %s%d s\n' "$1" "${percent:+$percent %, }" "$3" >&2
  fi
}

# run_step LABEL COMMAND...: runs it with a progress display; false if it failed. What it printed is in $step_log.
# Understands ninja's [3/20], apt's Status-Fd lines, and lines "percent N".
run_step() {
  local label=$1 line= partial= percent= detail= status=1 start=$SECONDS got pipe
  shift
  step_log=$logs/${label// /-}.log
  shown_percent=-20 shown_at=0
  : > "$step_log"
  exec {pipe}< <("$@" 2>&1 < /dev/null; printf 'huajin-status %d\n' $?)
  while true; do
    got=0
    IFS= read -r -t 1 -u "$pipe" line || got=$?
    if ((got > 128)); then  # a second without a whole line
      partial+=$line
      show "$label" "$percent" $((SECONDS - start)) "$detail"
      continue
    fi
    line=$partial$line partial=
    case $line in
      huajin-status\ *) status=${line#* } && break ;;
      dlstatus:*) IFS=: read -r _ _ percent _ <<< "$line" && percent=${percent%%[.,]*} && percent=$((percent / 2)) ;;
      pmstatus:*) IFS=: read -r _ detail percent _ <<< "$line" && percent=${percent%%[.,]*} && percent=$((50 + percent / 2)) ;;
      percent\ *) percent=${line#* } ;;
      \[*/*\]\ Re-*) ;;
      \[*/*\]*)
        local finished=${line#[} all=${line#*/}
        finished=${finished%%/*} all=${all%%]*} detail=${line#*] }
        [[ $finished =~ ^[0-9]+$ && $all =~ ^[0-9]+$ && $all != 0 ]] && percent=$((100 * finished / all))
        printf '%s\n' "$line" >> "$step_log"
        ;;
      *) printf '%s\n' "$line" >> "$step_log" ;;
    esac
    ((got == 0)) || break
    show "$label" "$percent" $((SECONDS - start)) "$detail"
  done
  exec {pipe}<&-
  [[ -t 2 ]] && printf '\r\033[K' >&2
  ((status == 0)) && printf '%s: done in %d s\n' "$label" $((SECONDS - start)) >&2
  return "$status"
}

last_errors() {  # the lines of $step_log that say why
  grep -E '(^|[ :])(error|fatal error|E|ERROR|FAILED|CMake Error)[: ]' "$step_log" | head -n 6 >&2 || tail -n 6 "$step_log" >&2
}

take_lock() {  # one set-up at a time; released when this process ends or calls release_lock
  mkdir -p -- "$cache" "$logs" 2> /dev/null && [[ -w $cache ]] || give_up 2 "cannot write to the cache $cache; set HUAJIN_CACHE to a folder with 4 GB of room"
  exec {lock}> "$cache/setup.lock"
  flock -n "$lock" && return
  say "another set-up is running; waiting for it"
  flock "$lock"
}
release_lock() { exec {lock}>&-; }

need_packages() {  # PACKAGE...
  local missing=() package
  if ! command -v dpkg-query > /dev/null; then
    command -v cmake > /dev/null && command -v ninja > /dev/null && return
    give_up 2 "not a Debian or Ubuntu system: install what these packages of Debian hold, then run the same command again: $*"
  fi
  local installed
  installed=$'\n'$(dpkg-query -W -f='${db:Status-Abbrev}${Package}\n' "$@" 2> /dev/null)$'\n'
  for package in "$@"; do
    [[ $installed == *$'\n'"ii $package"$'\n'* ]] || missing+=("$package")
  done
  ((${#missing[@]} == 0)) && return
  if ((EUID != 0)); then
    say "system packages are missing; run this one line, then the same command again:"
    printf '  sudo apt-get install -y --no-install-recommends %s\n' "${missing[*]}" >&2
    exit 2
  fi
  export DEBIAN_FRONTEND=noninteractive
  run_step "package lists" apt-get -q -o DPkg::Lock::Timeout=300 update || say "apt-get update failed; going on with the lists that are there"
  run_step "system packages" apt-get -q -y --no-install-recommends -o DPkg::Lock::Timeout=300 -o APT::Status-Fd=1 install "${missing[@]}" && return
  last_errors
  give_up 2 "apt-get could not install: ${missing[*]}. What it said is in $step_log; when it is mended, run the same command again"
}

need_torch() {
  if [[ -n ${HUAJIN_TORCH:-} ]]; then
    [[ -d $torch ]] || give_up 2 "HUAJIN_TORCH=$torch is no folder; name one that holds torch/ or libtorch/, or unset it and huajin fetches its own"
    return
  fi
  [[ -d $torch ]] && return
  local python
  for python in python3 /usr/bin/python3; do
    if "$python" -c 'import pip' 2> /dev/null; then
      "$python" "$root/tools/setup_libtorch.py" "$torch" || exit 2
      return
    fi
  done
  give_up 2 "no Python with pip was found, which fetches libtorch; run: sudo apt-get install -y python3-pip"
}

build_jobs() {  # HUAJIN_JOBS, or as many as there are cores, and 3 GB of memory for each
  [[ -n ${HUAJIN_JOBS:-} ]] && echo "$HUAJIN_JOBS" && return
  local cores memory
  cores=$(nproc) memory=$(awk '/MemAvailable/ {print int($2 / 3000000)}' /proc/meminfo)
  ((memory < 1)) && memory=1
  echo $((cores < memory ? cores : memory))
}

compile() {  # PRESET FOLDER "TARGET..." [CMAKE OPTION...]: configures if need be, then builds
  local preset=$1 folder=$2 targets=$3 configured=
  shift 3
  export CCACHE_DIR=$cache/ccache CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1 CCACHE_MAXSIZE=${CCACHE_MAXSIZE:-3G} CCACHE_SLOPPINESS=pch_defines,time_macros
  [[ -r $folder/configured ]] && IFS= read -r configured < "$folder/configured"
  if [[ $configured != "$torch $*" || ! -f $folder/build.ninja ]]; then
    mkdir -p -- "$folder" 2> /dev/null || give_up 2 "cannot write to $folder; make the checkout writable, or put it elsewhere"
    run_step "configure $preset" env -C "$root" cmake --preset "$preset" -B "$folder" -DHUAJIN_TORCH="$torch" "$@" || {
      last_errors
      give_up 1 "CMake failed; all of what it said is in $step_log. A fresh try: rm -r $folder"
    }
    printf '%s\n' "$torch $*" > "$folder/configured"
  fi
  # shellcheck disable=SC2086 # several targets
  run_step "build $preset" env NINJA_STATUS='[%f/%t] ' ninja -C "$folder" -j "$(build_jobs)" $targets || {
    last_errors
    give_up 1 "the build failed; all of what the compiler said is in $step_log. After mending it, run the same command again: what is built stays"
  }
}

set_up_release() {
  take_lock
  if ! ready; then  # another one may have done it meanwhile
    need_packages "${build_packages[@]}"
    need_torch
    mkdir -p -- "$build" 2> /dev/null || give_up 2 "cannot write to $build"
    rm -f -- "$build"/.began.*
    local began
    began=$(mktemp "$build/.began.XXXX")  # a source that changes while this builds is newer, and built again next time
    printf '%s\n' "$torch" > "$began"
    sleep 0.01
    compile release "$build" all
    mv -f -- "$began" "$build/ready"
  fi
  release_lock
}

# Common parts of tests/run, examples/run and bench/run: missing packages, the compiler, building and running one program.
start=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
root=$PWD

missing=()
reasons=()

# need PROBE PACKAGE REASON [COMPILER...]: notes the package unless PROBE is there: a command, a /path with wildcards or a <header> that
# the compiler finds. The command of another package, such as mpicxx or h5cc, does not imply a header.
need() {
  if [[ $1 == \<*\> ]]; then
    has_header "$1" "${@:4}" && return
  else
    command -v "$1" >/dev/null && return
    compgen -G "$1" >/dev/null && return
  fi
  missing+=("$2")
  reasons+=("$3")
}

# has_header <HEADER> [COMPILER...]
has_header() {
  local compiler=("${@:2}")
  [ ${#compiler[@]} -gt 0 ] || compiler=("$(find_gxx)")
  printf '#if !__has_include(%s)\n#error\n#endif\n' "$1" | "${compiler[@]}" -E -x c++ - >/dev/null 2>&1
}

# need_library NAME: a library that a program names in `// needs:` or `// uses:`.
need_library() {
  case $1 in
    libzip) need '<zip.h>' libzip-dev 'NPZ files, Keras files' ;;
    hdf5) need '<hdf5.h>' libhdf5-dev 'Keras files' "$(find_gxx)" $(pkg-config --cflags hdf5 2>/dev/null) ;;
    emulated_cuda) need '/usr/lib/*-linux-gnu*/libboost_context.so' libboost-context-dev 'emulated GPUs' ;;
    spdlog) need '<spdlog/spdlog.h>' libspdlog-dev 'logs' ;;
    libpng) need '<png.h>' libpng-dev 'PNG files' ;;
    libjpeg) need '<jpeglib.h>' libjpeg-dev 'JPEG files' ;;
    protozero) need '<protozero/pbf_reader.hpp>' libprotozero-dev 'messages between processes, tf.train.Example' ;;
    openssl) need '<openssl/ssl.h>' libssl-dev 'control plane and parameter server' ;;
    mpi) need '<mpi.h>' libopenmpi-dev 'collectives on clusters with MPI' mpicxx ;;
    mock_pjrt) ;;  # tests/tools/mock_pjrt
    *) echo "needs: $1 is no library of tests/tools/setup.sh" >&2 && exit 2 ;;
  esac
}
need_libraries_of() {
  local library
  for library in $(sed -sEn '1,10s,^(//|#) (needs|uses): ,,p' "$@" | xargs -n1 | sort -u); do need_library "$library"; done
}

# g++ 12 or newer, by any name.
find_gxx() {
  local candidate
  for candidate in g++ g++-14 g++-13 g++-12; do
    [ "$("$candidate" -dumpversion 2>/dev/null | cut -d. -f1)" -ge 12 ] 2>/dev/null && echo "$candidate" && return
  done
  return 1
}

# Ubuntu 22.04 has g++ 12 and clang's libraries under names of their own.
is_ubuntu_22() { grep -qs '^VERSION_ID="22.04"' /etc/os-release; }

need_basics() {
  find_gxx >/dev/null || need g++-12 "$(is_ubuntu_22 && echo g++-12 || echo g++)" 'the compiler'
  need meson meson 'configures the build'
  need ninja ninja-build 'runs the build'
  need pkg-config pkg-config 'finds libraries'
  need ccache ccache 'compiles again only what has changed'
  need '<boost/hana.hpp>' libboost-dev 'Boost.Hana, lists of different types'
  need '<nlohmann/json.hpp>' nlohmann-json3-dev 'JSON'
  need '<zlib.h>' zlib1g-dev 'compressed data sets'
}

install_missing() {
  if [ ${#missing[@]} -gt 0 ]; then
    echo 'Missing here, to be installed through apt:'
    local i
    for i in "${!missing[@]}"; do printf '  %-20s %s\n' "${missing[i]}" "${reasons[i]}"; done
    command -v apt-get >/dev/null || { echo 'There is no apt-get: please install them by other means.' >&2 && exit 1; }
    local apt=(env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300)
    [ "$(id -u)" = 0 ] || apt=(sudo "${apt[@]}")
    "${apt[@]}" update
    "${apt[@]}" install --no-install-recommends "${missing[@]}" >/dev/null
    missing=() reasons=()
  fi
  gxx=$(find_gxx) || { echo 'g++ 12 or newer is needed.' >&2 && exit 1; }
}

# Meson caches the result that a library was missing, so the folder is configured again. Built files are kept.
forget_missing() { rm -f "$1/meson-private/coredata.dat"; }

# run_program FOLDER [NAME [ARGUMENT...]]: lists the programs of a folder, or builds one as fast as this machine can and runs it.
# run_program FOLDER --build NAME...: only builds them. STRATA_BUILD names another build folder, STRATA_OPTIMIZATION another level.
run_program() {
  local folder=$1 name=${2:-} names=("${@:2:1}") file
  if [ "$name" = --build ]; then names=("${@:3}") && name=${3:-}; fi
  if [ -z "$name" ] || [ "$name" = --help ]; then
    echo "$folder/run NAME [ARGUMENT...] builds and runs one of these, $folder/run --build NAME... only builds them:"
    for file in "$folder"/*.cpp; do
      [ -e "$file" ] || continue
      printf '  %-24s %s\n' "$(basename "$file" .cpp)" "$(sed -n '1s,^// *,,p' "$file")"
      sed -En '1,10s,^// (needs|takes): *,                           \1 ,p' "$file"
    done
    return
  fi
  local files=("${names[@]/#/$folder/}")
  files=("${files[@]/%/.cpp}")
  for file in "${files[@]}"; do
    [ -e "$file" ] || { echo "There is no $file; $folder/run lists what there is." >&2 && exit 2; }
  done

  need_basics
  need '<CLI/CLI.hpp>' libcli11-dev 'command lines'
  need_libraries_of "${files[@]}"
  install_missing

  local build=${STRATA_BUILD:-$root/build}/$folder options=(-Dtests=disabled -Dexamples=disabled -Dbench=disabled)
  options+=("-D$folder=enabled" -Ddebug=false "-Doptimization=${STRATA_OPTIMIZATION:-3}" -Dprocessor=native)
  mkdir -p "${build%/*}"
  configure() {
    local again=()
    if [ -e "$build/meson-private/coredata.dat" ]; then again=(--reconfigure); fi
    CXX="ccache $gxx" meson setup "$build" "${options[@]}" "${again[@]}" >"$build.log" || { cat "$build.log" >&2 && exit 1; }
  }
  lacking() { for name in "${names[@]}"; do grep -q "^build $folder/$name:" "$build/build.ninja" || echo "$folder/$name "; done; }
  configure
  if [ "$(lacking)" ]; then
    forget_missing "$build"
    configure
  fi
  if [ "$(lacking)" ]; then
    grep -F "$(lacking)" "$build.log" >&2
    exit 1
  fi
  [ -x "$build/$folder/${names[0]}" ] || echo "Compiling $folder/${names[0]} with -O3 for this processor takes 10 to 40 s." >&2
  ninja -C "$build" "${names[@]/#/$folder/}" >&2
  if [ "$2" = --build ]; then exit; fi
  cd "$start"
  exec "$build/$folder/$name" "${@:3}"
}

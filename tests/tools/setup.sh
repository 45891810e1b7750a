# What tests/run, examples/run and bench/run share: missing packages, the compiler, building and running one program.
start=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
root=$PWD

missing=()
reasons=()

# need PROBE PACKAGE REASON: notes the package unless PROBE is there: a command, a <header> or a /path with wildcards.
need() {
  local places=("$1")
  [[ $1 != \<*\> ]] || places=({/usr/include,/usr/local/include,/usr/include/*-linux-gnu*}/"${1:1:-1}")
  local place
  for place in "${places[@]}"; do
    if command -v "$place" >/dev/null || compgen -G "$place" >/dev/null; then return; fi
  done
  missing+=("$2")
  reasons+=("$3")
}

# need_library NAME: a library that a program names in `// needs:` or `// uses:`.
need_library() {
  case $1 in
    libzip) need '<zip.h>' libzip-dev 'NPZ files, Keras files' ;;
    hdf5) need h5cc libhdf5-dev 'Keras files' ;;
    boost_context) need '/usr/lib/*-linux-gnu*/libboost_context.so' libboost-context-dev 'emulated GPUs' ;;
    spdlog) need '<spdlog/spdlog.h>' libspdlog-dev 'logs' ;;
    libpng) need '<png.h>' libpng-dev 'PNG files' ;;
    libjpeg) need '<jpeglib.h>' libjpeg-dev 'JPEG files' ;;
    protozero) need '<protozero/pbf_reader.hpp>' libprotozero-dev 'messages between processes, tf.train.Example' ;;
    gloo) need '<gloo/context.h>' libgloo-dev 'messages through Gloo' ;;
    ucx) need '<ucp/api/ucp.h>' libucx-dev 'messages through UCX' ;;
    grpc) need '<grpcpp/grpcpp.h>' libgrpc++-dev 'control plane and parameter server' ;;
    mpi) need mpicxx libopenmpi-dev 'collectives on clusters with MPI' ;;
    mock_pjrt) ;;  # tests/tools/mock_pjrt
    *) echo "needs: $1 is no library of tests/tools/setup.sh" >&2 && exit 2 ;;
  esac
}
need_libraries_of() {
  local library
  for library in $(sed -sEn '1,10s,^(//|#) (needs|uses): ,,p' "$@" | xargs -n1 | sort -u); do need_library "$library"; done
}

# g++ 12 or newer, under whatever name.
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

# run_program FOLDER [NAME [ARGUMENT...]]: lists the programs of a folder, or builds one as fast as this machine can and runs it.
run_program() {
  local folder=$1 name=${2:-} file
  if [ -z "$name" ] || [ "$name" = --help ]; then
    echo "$folder/run NAME [ARGUMENT...] builds and runs one of these:"
    for file in "$folder"/*.cpp; do
      [ -e "$file" ] || continue
      printf '  %-24s %s\n' "$(basename "$file" .cpp)" "$(sed -n '1s,^// *,,p' "$file")"
      sed -En '1,10s,^// (needs|takes): *,                           \1 ,p' "$file"
    done
    return
  fi
  shift 2
  file=$folder/$name.cpp
  [ -e "$file" ] || { echo "There is no $file; $folder/run lists what there is." >&2 && exit 2; }

  need_basics
  need '<CLI/CLI.hpp>' libcli11-dev 'command lines'
  need_libraries_of "$file"
  install_missing

  local build=${STRATA_BUILD:-$root/build}/$folder options=(-Dtests=disabled -Dexamples=disabled -Dbench=disabled) again=()
  options+=("-D$folder=enabled" --buildtype=release -Dprocessor=native)
  if [ -e "$build/build.ninja" ]; then again=(--reconfigure); fi
  mkdir -p "${build%/*}"
  configure() { CXX="ccache $gxx" meson setup "$build" "${options[@]}" "$@" >"$build.log" || { cat "$build.log" >&2 && exit 1; }; }
  has_target() { grep -q "^build $folder/$name:" "$build/build.ninja"; }
  configure "${again[@]}"
  if ! has_target; then  # Meson remembers that a library was missing when it looked for it before
    configure --wipe
  fi
  has_target || { grep "$folder/$name " "$build.log" >&2 && exit 1; }
  [ -x "$build/$folder/$name" ] || echo "Compiling $folder/$name with -O3 for this processor takes 10 to 40 s." >&2
  ninja -C "$build" "$folder/$name" >&2
  cd "$start"
  exec "$build/$folder/$name" "$@"
}

# Completion of adit(8) for bash: source it, or put it in share/bash-completion/completions/adit.

_adit_words() {
  mapfile -t COMPREPLY < <(compgen -W "$1" -- "$2")
}

# Interfaces that are up.
_adit_running() {
  adit show interfaces 2>/dev/null
}

# Interfaces that have a file.
_adit_configured() {
  local file
  for file in "${ADIT_CONFIG_DIR:-/etc/adit}"/*.conf; do
    [[ -e $file ]] || continue
    file=${file##*/}
    printf '%s\n' "${file%.conf}"
  done
}

_adit_files() {
  local names=$1 current=$2
  compopt -o filenames
  _adit_words "$names" "$current"
  local files
  mapfile -t files < <(compgen -f -- "$current")
  COMPREPLY+=("${files[@]}")
}

_adit_set() {
  local current=$1 previous=$2
  case $previous in
    private-key | preshared-key) _adit_files "" "$current" ;;
    peer) _adit_words "$(adit show "${COMP_WORDS[2]}" peers 2>/dev/null)" "$current" ;;
    fwmark | persistent-keepalive) _adit_words "off" "$current" ;;
    listen-port | endpoint | allowed-ips) ;;
    *)
      if [[ " ${COMP_WORDS[*]:3} " == *" peer "* ]]; then
        _adit_words "peer remove preshared-key endpoint persistent-keepalive allowed-ips" "$current"
      else
        _adit_words "listen-port fwmark private-key peer" "$current"
      fi
      ;;
  esac
}

_adit_tune() {
  local current=$1 previous=$2
  case ${COMP_WORDS[2]}:$previous in
    *:--nic) _adit_words "$(ls /sys/class/net 2>/dev/null)" "$current" ;;
    *:--root) _adit_files "" "$current" ;;
    *:--bandwidth | *:--delay | revert:*) ;;
    plan:*) _adit_files "--nic --bandwidth --delay --root --json $(_adit_configured)" "$current" ;;
    apply:*) _adit_files "--nic --bandwidth --delay --json $(_adit_configured)" "$current" ;;
    status:*) _adit_words "--json" "$current" ;;
  esac
}

_adit_map() {
  local current=$1 previous=$2
  case ${COMP_WORDS[2]}:$COMP_CWORD:$previous in
    *:3:*) _adit_words "$(_adit_running) $(_adit_configured)" "$current" ;;
    *:--source) _adit_words "preserve masquerade" "$current" ;;
    *:--allow | *:--rate | add:[45]:*) ;;
    add:*) _adit_words "--source --allow --rate --hairpin --override --json" "$current" ;;
    check:*) _adit_words "--fix --yes --json" "$current" ;;
    list:* | del:*) _adit_words "--json" "$current" ;;
  esac
}

_adit_look() {
  local current=$1 previous=$2
  case ${COMP_WORDS[1]}:$previous in
    *:--root) _adit_files "" "$current" ;;
    *:--bandwidth | *:--interval) ;;
    doctor:*) _adit_words "--probe --bandwidth --root --json $(_adit_running) $(_adit_configured)" "$current" ;;
    monitor:*) _adit_words "--interval --once $(_adit_running)" "$current" ;;
  esac
}

# Names of peers: only the status has them, as members of an array's objects.
_adit_peers() {
  adit status --json 2>/dev/null | sed -n 's/^ \{8,\}"name": "\([^"]*\)",$/\1/p'
}

_adit_bench() {
  local current=$1 previous=$2
  local output="--json --html --compare"
  case ${COMP_WORDS[2]}:$previous in
    *:--html | *:--compare | show:show) _adit_files "" "$current" ;;
    *:--layers) _adit_words "bare tunnel mapped bare,tunnel tunnel,mapped" "$current" ;;
    *:--backend) _adit_words "auto kernel userspace" "$current" ;;
    *:--cipher) _adit_words "auto chacha20-poly1305 aes-256-gcm aes-128-gcm" "$current" ;;
    *:--interface) _adit_words "$(_adit_running)" "$current" ;;
    server:--endpoint) _adit_words "auto" "$current" ;;
    *:--seconds | *:--streams | *:--udp-rate | *:--address | *:--endpoint | *:--mapped | *:--port) ;;
    *:--bind | *:--packet | *:--batch) ;;
    server:*) _adit_words "--bind --endpoint --port --once $(_adit_running)" "$current" ;;
    crypto:*) _adit_words "--packet --batch --seconds --json" "$current" ;;
    show:*) _adit_words "$output" "$current" ;;
    *)
      _adit_words "$output --local --seconds --streams --layers --udp-rate --interface --address --endpoint
        --mapped --port --backend --cipher" "$current"
      ;;
  esac
}

_adit() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
  local commands="up down reload save status check strip map trace tune bench doctor monitor show showconf set setconf addconf
    syncconf genkey genpsk pubkey version help"
  local fields="public-key private-key listen-port fwmark peers preshared-keys endpoints allowed-ips
    latest-handshakes transfer persistent-keepalive dump --json"
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    _adit_words "$commands --help --version" "$current"
    return
  fi
  case ${COMP_WORDS[1]}:$COMP_CWORD in
    help:2) _adit_words "$commands" "$current" ;;
    up:2 | check:2 | strip:2) _adit_files "$(_adit_configured)" "$current" ;;
    down:2 | reload:2 | save:2 | status:2) _adit_words "$(_adit_running) $(_adit_configured)" "$current" ;;
    status:3 | check:3) _adit_words "--json" "$current" ;;
    doctor:* | monitor:*) _adit_look "$current" "$previous" ;;
    show:2) _adit_words "all interfaces $(_adit_running)" "$current" ;;
    show:3) _adit_words "$fields" "$current" ;;
    map:2) _adit_words "list add del check" "$current" ;;
    map:*) _adit_map "$current" "$previous" ;;
    trace:2) _adit_words "tcp udp" "$current" ;;
    trace:4) _adit_words "from" "$current" ;;
    bench:2) _adit_words "server crypto show --local $(_adit_peers)" "$current" ;;
    bench:*) _adit_bench "$current" "$previous" ;;
    tune:2) _adit_words "plan apply revert status" "$current" ;;
    tune:*) _adit_tune "$current" "$previous" ;;
    showconf:2 | set:2 | setconf:2 | addconf:2 | syncconf:2)
      _adit_words "$(_adit_running)" "$current"
      ;;
    setconf:3 | addconf:3 | syncconf:3) _adit_files "" "$current" ;;
    set:*) _adit_set "$current" "$previous" ;;
  esac
}

complete -F _adit adit

# Completion of adit(8) for bash: source it, or put it in share/bash-completion/completions/adit.
# shellcheck shell=bash

# begin tables: made by adit_manual
_adit_words_after() {
  case $1 in
    '') echo 'init invite join up down reload status map peer export import trace check strip tune doctor monitor bench show showconf set setconf addconf syncconf save genkey genpsk pubkey version help --version --help' ;;
    'init') echo 'server --help' ;;
    'init server') echo '--public --endpoint --name --help' ;;
    'invite') echo '--maps --expires --endpoint --interface --list --revoke --qr --json --help' ;;
    'join') echo '--name --timeout --no-up --help' ;;
    'up') echo '--help' ;;
    'down') echo '--help' ;;
    'reload') echo '--help' ;;
    'status') echo '--json --help' ;;
    'map') echo 'list add del check --help' ;;
    'map list') echo '--json --help' ;;
    'map add') echo '--source --allow --rate --hairpin --override --json --help' ;;
    'map del') echo '--json --help' ;;
    'map check') echo '--fix --yes --json --help' ;;
    'peer') echo 'list remove rotate --help' ;;
    'peer list') echo '--interface --json --help' ;;
    'peer remove') echo '--interface --json --yes --help' ;;
    'peer rotate') echo '--interface --key --help' ;;
    'export') echo '--interface --endpoint --allowed-ips --qr --output --rotate --help' ;;
    'import') echo '--name --help' ;;
    'trace') echo '--interface --json --help' ;;
    'check') echo '--json --help' ;;
    'strip') echo '--help' ;;
    'tune') echo 'plan apply revert status --help' ;;
    'tune plan') echo '--nic --bandwidth --delay --root --json --help' ;;
    'tune apply') echo '--nic --bandwidth --delay --json --help' ;;
    'tune revert') echo '--help' ;;
    'tune status') echo '--json --help' ;;
    'doctor') echo '--probe --bandwidth --root --json --help' ;;
    'monitor') echo '--interval --once --help' ;;
    'bench') echo 'server crypto show --local --seconds --streams --layers --udp-rate --json --html --compare --interface --address --endpoint --mapped --port --backend --cipher --help' ;;
    'bench server') echo '--bind --endpoint --port --once --help' ;;
    'bench crypto') echo '--packet --batch --seconds --json --help' ;;
    'bench show') echo '--json --html --compare --help' ;;
    'show') echo '--json --help' ;;
    'showconf') echo '--help' ;;
    'set') echo '--help' ;;
    'setconf') echo '--help' ;;
    'addconf') echo '--help' ;;
    'syncconf') echo '--help' ;;
    'save') echo '--help' ;;
    'genkey') echo '--help' ;;
    'genpsk') echo '--help' ;;
    'pubkey') echo '--help' ;;
    'version') echo '--help' ;;
    'help') echo '--help' ;;
  esac
}
_adit_valued() {
  case $1 in
    'init server') echo '--public=NIC --endpoint=HOST --name=NAME' ;;
    'invite') echo '--maps=PORTS --expires=TIME --endpoint=HOST --interface=NAME --revoke=PEER' ;;
    'join') echo '--name=NAME --timeout=SECONDS' ;;
    'map add') echo '--source=preserve|masquerade --allow=NETWORK --rate=RATE' ;;
    'peer list') echo '--interface=NAME' ;;
    'peer remove') echo '--interface=NAME' ;;
    'peer rotate') echo '--interface=NAME --key=FILE' ;;
    'export') echo '--interface=NAME --endpoint=HOST --allowed-ips=NETWORKS --output=FILE' ;;
    'import') echo '--name=NAME' ;;
    'trace') echo '--interface=NAME' ;;
    'tune plan') echo '--nic=NIC --bandwidth=RATE --delay=TIME --root=FOLDER' ;;
    'tune apply') echo '--nic=NIC --bandwidth=RATE --delay=TIME' ;;
    'doctor') echo '--bandwidth=RATE --root=FOLDER' ;;
    'monitor') echo '--interval=SECONDS' ;;
    'bench') echo '--seconds=SECONDS --streams=N --layers=LAYERS --udp-rate=RATE --html=FILE --compare=FILE --interface=NAME --address=ADDRESS --endpoint=HOST --mapped=TARGET --port=PORT --backend=auto|kernel|userspace --cipher=auto|chacha20-poly1305|aes-256-gcm|aes-128-gcm' ;;
    'bench server') echo '--bind=ADDRESS --endpoint=HOST --port=PORT' ;;
    'bench crypto') echo '--packet=BYTES --batch=N --seconds=SECONDS' ;;
    'bench show') echo '--html=FILE --compare=FILE' ;;
  esac
}
_adit_arguments() {
  case $1 in
    'invite') echo 'NAME' ;;
    'join') echo 'TOKEN' ;;
    'up') echo 'NAME' ;;
    'down') echo 'NAME' ;;
    'reload') echo 'NAME' ;;
    'status') echo 'NAME' ;;
    'map list') echo 'NAME' ;;
    'map add') echo 'NAME LISTEN TO' ;;
    'map del') echo 'NAME LISTEN' ;;
    'map check') echo 'NAME LISTEN' ;;
    'peer remove') echo 'PEER' ;;
    'peer rotate') echo 'PEER' ;;
    'export') echo 'PEER' ;;
    'import') echo 'FILE' ;;
    'trace') echo 'PROTO DESTINATION from SOURCE' ;;
    'check') echo 'FILE' ;;
    'strip') echo 'FILE' ;;
    'tune plan') echo 'NAME' ;;
    'tune apply') echo 'NAME' ;;
    'doctor') echo 'NAME' ;;
    'monitor') echo 'NAME' ;;
    'bench') echo 'PEER' ;;
    'bench server') echo 'NAME' ;;
    'bench show') echo 'FILE' ;;
    'show') echo 'INTERFACE FIELD' ;;
    'showconf') echo 'INTERFACE' ;;
    'set') echo 'INTERFACE' ;;
    'setconf') echo 'INTERFACE FILE' ;;
    'addconf') echo 'INTERFACE FILE' ;;
    'syncconf') echo 'INTERFACE FILE' ;;
    'save') echo 'NAME' ;;
    'help') echo 'COMMAND' ;;
  esac
}
# end tables

_adit_complete() {
  mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -W "$1" -- "$2")
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

_adit_peers() {
  adit peer list --json 2>/dev/null | sed -n 's/^ *"name": "\([^"]*\)",$/\1/p'
}

_adit_files() {
  compopt -o filenames
  mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$1")
}

# Values of one kind: an argument or a value as the help calls it, or a choice such as "a|b".
_adit_values() {
  local kind=${1%...} current=$2
  case $kind in
    *\|*) _adit_complete "${kind//|/ }" "$current" ;;
    NAME) _adit_complete "$(_adit_running) $(_adit_configured)" "$current" ;;
    INTERFACE) _adit_complete "$(_adit_running)" "$current" ;;
    PEER | TO) _adit_complete "$(_adit_peers)" "$current" ;;
    FILE | FOLDER) _adit_files "$current" ;;
    COMMAND) _adit_complete "$(_adit_words_after "")" "$current" ;;
    NIC) _adit_complete "$(ls /sys/class/net 2>/dev/null)" "$current" ;;
    PROTO) _adit_complete "tcp udp" "$current" ;;
    from) _adit_complete "from" "$current" ;;
    FIELD)
      _adit_complete "public-key private-key listen-port fwmark peers preshared-keys endpoints
        allowed-ips latest-handshakes transfer persistent-keepalive dump" "$current"
      ;;
  esac
}

# What an argument may be beside what its name says.
_adit_more() {
  case $1:$2 in
    up:NAME) _adit_files "$3" ;;
    check:FILE | strip:FILE) _adit_complete "$(_adit_configured)" "$3" ;;
    show:INTERFACE) _adit_complete "all interfaces" "$3" ;;
  esac
}

# wg(8)'s words.
_adit_set() {
  local current=$1 previous=$2
  case $previous in
    private-key | preshared-key) _adit_files "$current" ;;
    peer) _adit_complete "$(adit show "${COMP_WORDS[2]}" peers 2>/dev/null)" "$current" ;;
    fwmark | persistent-keepalive) _adit_complete "off" "$current" ;;
    listen-port | endpoint | allowed-ips) ;;
    *)
      if [[ " ${COMP_WORDS[*]:3} " == *" peer "* ]]; then
        _adit_complete "peer remove preshared-key endpoint persistent-keepalive allowed-ips" "$current"
      else
        _adit_complete "listen-port fwmark private-key peer" "$current"
      fi
      ;;
  esac
}

# Commands of a command.
_adit_below() {
  local word
  for word in $(_adit_words_after "$1"); do
    [[ $word == -* ]] || printf '%s\n' "$word"
  done
}

# The kind of value that option $2 of command $1 takes; nothing for a flag.
_adit_kind() {
  local entry
  for entry in $(_adit_valued "$1"); do
    [[ ${entry%%=*} != "$2" ]] || printf '%s' "${entry#*=}"
  done
}

_adit() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
  local command="" pending="" word arguments index=1 position=0
  COMPREPLY=()
  while ((index < COMP_CWORD)); do
    word=${COMP_WORDS[index]}
    [[ $word != -* && " $(_adit_words_after "$command") " == *" $word "* ]] || break
    command+=${command:+ }$word
    ((index += 1))
  done
  for word in "${COMP_WORDS[@]:index:COMP_CWORD - index}"; do
    if [[ -n $pending ]]; then
      pending=""
    elif [[ $word == --* ]]; then
      pending=$(_adit_kind "$command" "$word")
    else
      ((position += 1))
    fi
  done
  read -ra arguments <<<"$(_adit_arguments "$command")"
  if [[ -n $pending ]]; then
    _adit_values "$pending" "$current"
  elif [[ $command == set ]] && ((position > 0)); then
    _adit_set "$current" "$previous"
  elif [[ $current == -* ]] || ((position >= ${#arguments[@]})); then
    _adit_complete "$(_adit_words_after "$command")" "$current"
  else
    ((position > 0)) || _adit_complete "$(_adit_below "$command")" "$current"
    _adit_values "${arguments[position]}" "$current"
    _adit_more "$command" "${arguments[position]}" "$current"
  fi
}

complete -F _adit adit

# Completion of adit(8) for fish.

# begin tables: made by adit_manual
set -g __adit_commands 'init' 'init server' 'invite' 'join' 'up' 'down' 'reload' 'status' 'map' 'map list' 'map add' 'map del' 'map check' 'peer' 'peer list' 'peer remove' 'peer rotate' 'export' 'import' 'trace' 'check' 'strip' 'tune' 'tune plan' 'tune apply' 'tune revert' 'tune status' 'doctor' 'monitor' 'bench' 'bench server' 'bench crypto' 'bench show' 'show' 'showconf' 'set' 'setconf' 'addconf' 'syncconf' 'save' 'genkey' 'genpsk' 'pubkey' 'version' 'help'
complete -c adit -n "__adit_after ''" -a init -d 'Write the first configuration of a server'
complete -c adit -n "__adit_after ''" -a invite -d 'Make a token with which one machine can join'
complete -c adit -n "__adit_after ''" -a join -d 'Join a server with the token of its `adit invite`'
complete -c adit -n "__adit_after ''" -a up -d 'Check a configuration and bring its interface up'
complete -c adit -n "__adit_after ''" -a down -d 'Take an interface down and undo all that it changed'
complete -c adit -n "__adit_after ''" -a reload -d 'Apply a changed file without dropping sessions'
complete -c adit -n "__adit_after ''" -a status -d 'Tell how an interface does: data plane and why, cipher, mappings, warnings'
complete -c adit -n "__adit_after ''" -a map -d 'List, add, remove and check mappings'
complete -c adit -n "__adit_after ''" -a peer -d 'List, remove and rotate peers'
complete -c adit -n "__adit_after ''" -a export -d 'Add a phone or laptop and print its WireGuard file'
complete -c adit -n "__adit_after ''" -a import -d 'Make an interface of a wg-quick file'
complete -c adit -n "__adit_after ''" -a trace -d 'Tell where a packet would go, hop by hop, without sending one'
complete -c adit -n "__adit_after ''" -a check -d 'Check a configuration file, without root'
complete -c adit -n "__adit_after ''" -a strip -d 'Print what wg(8) understands of a configuration file, keys included'
complete -c adit -n "__adit_after ''" -a tune -d 'Tune the machine for the tunnel: queues, interrupts, CPUs, TCP; and back'
complete -c adit -n "__adit_after ''" -a doctor -d 'Find out why a tunnel fails or is slow: the bottleneck first, and what mends it'
complete -c adit -n "__adit_after ''" -a monitor -d 'Show live what passes: by peer, by mapping, by core'
complete -c adit -n "__adit_after ''" -a bench -d 'Measure the layers with iperf3: bare link, tunnel, mapped port; and the ciphers'
complete -c adit -n "__adit_after ''" -a show -d 'Show interfaces, as wg(8) does'
complete -c adit -n "__adit_after ''" -a showconf -d 'Print the running state as a file for setconf, private keys included'
complete -c adit -n "__adit_after ''" -a set -d 'Change a running interface and its peers'
complete -c adit -n "__adit_after ''" -a setconf -d 'Replace the running configuration by a file'\''s'
complete -c adit -n "__adit_after ''" -a addconf -d 'Add a file'\''s peers and values to what runs'
complete -c adit -n "__adit_after ''" -a syncconf -d 'As setconf, but what is the same is left alone and its sessions go on'
complete -c adit -n "__adit_after ''" -a save -d 'Write what was set since into the interface'\''s file'
complete -c adit -n "__adit_after ''" -a genkey -d 'Make a private key and print it'
complete -c adit -n "__adit_after ''" -a genpsk -d 'Make a preshared key and print it'
complete -c adit -n "__adit_after ''" -a pubkey -d 'Read a private key from standard input, print its public key'
complete -c adit -n "__adit_after ''" -a version -d 'Print the version'
complete -c adit -n "__adit_after ''" -a help -d 'Print the help of a command'
complete -c adit -n "__adit_after ''" -l version -d 'Print the version and exit'
complete -c adit -n "__adit_after 'init'" -a server -d 'Make keys, addresses and a commented file for a server'
complete -c adit -n "__adit_after 'init server'" -l public -x -a "(__adit_values 'NIC')" -d 'the interface whose ports are mapped; default: the one of the default route'
complete -c adit -n "__adit_after 'init server'" -l endpoint -x -a "(__adit_values 'HOST')" -d 'HOST[:PORT] where other machines reach this one; may be repeated; default: its own public addresses'
complete -c adit -n "__adit_after 'init server'" -l name -x -a "(__adit_values 'NAME')" -d 'the interface, adit0 by default'
complete -c adit -n "__adit_after 'invite'" -l maps -x -a "(__adit_values 'PORTS')" -d 'public ports that it may ask for: PROTO/PORT[-PORT], …; also third-party'
complete -c adit -n "__adit_after 'invite'" -l expires -x -a "(__adit_values 'TIME')" -d 'how long the token works; 24h by default'
complete -c adit -n "__adit_after 'invite'" -l endpoint -x -a "(__adit_values 'HOST')" -d 'HOST[:PORT] of this server, in place of the file'\''s PublicEndpoint; may be repeated'
complete -c adit -n "__adit_after 'invite'" -l interface -x -a "(__adit_values 'NAME')" -d 'an interface or its file; needed where there are several'
complete -c adit -n "__adit_after 'invite'" -l list -d 'list the invitations'
complete -c adit -n "__adit_after 'invite'" -l revoke -x -a "(__adit_values 'PEER')" -d 'withdraw the open invitation of that name'
complete -c adit -n "__adit_after 'invite'" -l qr -d 'the token as a QR code too'
complete -c adit -n "__adit_after 'invite'" -l json -d 'one JSON object, with --list an array'
complete -c adit -n "__adit_after 'join'" -l name -x -a "(__adit_values 'NAME')" -d 'the interface, adit0 by default'
complete -c adit -n "__adit_after 'join'" -l timeout -x -a "(__adit_values 'SECONDS')" -d 'seconds to try; 30 by default'
complete -c adit -n "__adit_after 'join'" -l no-up -d 'write the file, and leave the interface down'
complete -c adit -n "__adit_after 'status'" -l json -d 'one JSON object, or an array of them without NAME; times are seconds, rates bytes, ages are never negative'
complete -c adit -n "__adit_after 'map'" -a list -d 'List mappings, their state and what they carried'
complete -c adit -n "__adit_after 'map'" -a add -d 'Map a port, at once and for good'
complete -c adit -n "__adit_after 'map'" -a del -d 'Remove a mapping that `adit map add` made'
complete -c adit -n "__adit_after 'map'" -a check -d 'Try mappings with a stranger'\''s packet, and name what is in the way'
complete -c adit -n "__adit_after 'map list'" -l json -d 'one JSON array'
complete -c adit -n "__adit_after 'map add'" -l source -x -a "(__adit_values 'preserve|masquerade')" -d 'preserve or masquerade'
complete -c adit -n "__adit_after 'map add'" -l allow -x -a "(__adit_values 'NETWORK')" -d 'a client network; may be repeated'
complete -c adit -n "__adit_after 'map add'" -l rate -x -a "(__adit_values 'RATE')" -d 'as in 200mbit, for each direction'
complete -c adit -n "__adit_after 'map add'" -l hairpin -d 'also for the server and the tunnel'\''s side'
complete -c adit -n "__adit_after 'map add'" -l override -d 'also over a local listener'
complete -c adit -n "__adit_after 'map add'" -l json -d 'one JSON object'
complete -c adit -n "__adit_after 'map del'" -l json -d 'one JSON object'
complete -c adit -n "__adit_after 'map check'" -l fix -d 'let other firewalls (ufw, firewalld, Docker, iptables, nftables) pass what mappings need, after asking; `adit down` takes it back'
complete -c adit -n "__adit_after 'map check'" -l yes -d 'do not ask'
complete -c adit -n "__adit_after 'map check'" -l json -d 'one JSON object'
complete -c adit -n "__adit_after 'peer'" -a list -d 'List peers, their addresses, traffic and mappings'
complete -c adit -n "__adit_after 'peer'" -a remove -d 'Remove a peer, its invitation, and the mappings that lead to it'
complete -c adit -n "__adit_after 'peer'" -a rotate -d 'Give a session a new preshared key'
complete -c adit -n "__adit_after 'peer list'" -l interface -x -a "(__adit_values 'NAME')" -d 'an interface or its file; needed where there are several'
complete -c adit -n "__adit_after 'peer list'" -l json -d 'as JSON'
complete -c adit -n "__adit_after 'peer remove'" -l interface -x -a "(__adit_values 'NAME')" -d 'an interface or its file; needed where there are several'
complete -c adit -n "__adit_after 'peer remove'" -l json -d 'as JSON'
complete -c adit -n "__adit_after 'peer remove'" -l yes -d 'do not ask'
complete -c adit -n "__adit_after 'peer rotate'" -l interface -x -a "(__adit_values 'NAME')" -d 'an interface or its file; needed where there are several'
complete -c adit -n "__adit_after 'peer rotate'" -l key -x -a "(__adit_values 'FILE')" -d 'the key that the other side has made; - for input'
complete -c adit -n "__adit_after 'export'" -l interface -x -a "(__adit_values 'NAME')" -d 'the server'\''s interface; needed where there are several'
complete -c adit -n "__adit_after 'export'" -l endpoint -x -a "(__adit_values 'HOST')" -d 'HOST[:PORT] where the device reaches this server'
complete -c adit -n "__adit_after 'export'" -l allowed-ips -x -a "(__adit_values 'NETWORKS')" -d 'what the device sends through the tunnel; without it, the tunnel'\''s networks'
complete -c adit -n "__adit_after 'export'" -l qr -d 'a QR code for WireGuard'\''s app in place of the text'
complete -c adit -n "__adit_after 'export'" -l output -x -a "(__adit_values 'FILE')" -d 'a file to make, of mode 0600'
complete -c adit -n "__adit_after 'export'" -l rotate -d 'new keys for a device that is a peer already'
complete -c adit -n "__adit_after 'import'" -l name -x -a "(__adit_values 'NAME')" -d 'the interface; without it, the file'\''s name'
complete -c adit -n "__adit_after 'trace'" -l interface -x -a "(__adit_values 'NAME')" -d 'where several are up'
complete -c adit -n "__adit_after 'trace'" -l json -d 'one JSON object: delivered, and the hops'
complete -c adit -n "__adit_after 'check'" -l json -d 'one JSON object: ok, file, diagnostics with file, line and column'
complete -c adit -n "__adit_after 'tune'" -a plan -d 'Print every file that would be written, and why'
complete -c adit -n "__adit_after 'tune'" -a apply -d 'Write it, read it back, and record the old values'
complete -c adit -n "__adit_after 'tune'" -a revert -d 'Put the old values back'
complete -c adit -n "__adit_after 'tune'" -a status -d 'List what was written and whether it still holds'
complete -c adit -n "__adit_after 'tune plan'" -l nic -x -a "(__adit_values 'NIC')" -d 'NIC to tune; without it, Public of the file, or that of the default route'
complete -c adit -n "__adit_after 'tune plan'" -l bandwidth -x -a "(__adit_values 'RATE')" -d 'of the path to the peer, as in 500mbit; without it, the NIC'\''s speed'
complete -c adit -n "__adit_after 'tune plan'" -l delay -x -a "(__adit_values 'TIME')" -d 'round trip to the peer, as in 40ms; without it, 100ms'
complete -c adit -n "__adit_after 'tune plan'" -l root -x -a "(__adit_values 'FOLDER')" -d 'folder of a recorded machine: what its /proc and /sys hold'
complete -c adit -n "__adit_after 'tune plan'" -l json -d 'one JSON object: changes, notes'
complete -c adit -n "__adit_after 'tune apply'" -l nic -x -a "(__adit_values 'NIC')" -d 'NIC to tune; without it, Public of the file, or that of the default route'
complete -c adit -n "__adit_after 'tune apply'" -l bandwidth -x -a "(__adit_values 'RATE')" -d 'of the path to the peer, as in 500mbit; without it, the NIC'\''s speed'
complete -c adit -n "__adit_after 'tune apply'" -l delay -x -a "(__adit_values 'TIME')" -d 'round trip to the peer, as in 40ms; without it, 100ms'
complete -c adit -n "__adit_after 'tune apply'" -l json -d 'one JSON object: ok, results, warnings, notes'
complete -c adit -n "__adit_after 'tune status'" -l json -d 'one JSON array, by who keeps it'
complete -c adit -n "__adit_after 'doctor'" -l probe -d 'send packets as well: path MTU, round trip, rate, mappings (some seconds)'
complete -c adit -n "__adit_after 'doctor'" -l bandwidth -x -a "(__adit_values 'RATE')" -d 'of the path to the peer, as in 500mbit; without it, what is measured, or the NIC'\''s speed'
complete -c adit -n "__adit_after 'doctor'" -l root -x -a "(__adit_values 'FOLDER')" -d 'folder of a recorded machine: what its /proc and /sys hold'
complete -c adit -n "__adit_after 'doctor'" -l json -d 'one JSON object: healthy, findings'
complete -c adit -n "__adit_after 'monitor'" -l interval -x -a "(__adit_values 'SECONDS')" -d 'seconds between two looks; 1 without it'
complete -c adit -n "__adit_after 'monitor'" -l once -d 'print once, after one interval; so it is where the output is no terminal'
complete -c adit -n "__adit_after 'bench'" -a server -d 'Serve the runs of `adit bench PEER`: iperf3 at the address inside the tunnel'
complete -c adit -n "__adit_after 'bench'" -a crypto -d 'Measure each cipher and each implementation of it on one core'
complete -c adit -n "__adit_after 'bench'" -a show -d 'Print again what --json printed, compare it, make its page'
complete -c adit -n "__adit_after 'bench'" -l local -d 'no peer: both ends in namespaces of this machine, removed afterwards'
complete -c adit -n "__adit_after 'bench'" -l seconds -x -a "(__adit_values 'SECONDS')" -d 'of each step'
complete -c adit -n "__adit_after 'bench'" -l streams -x -a "(__adit_values 'N')" -d 'numbers of parallel TCP streams'
complete -c adit -n "__adit_after 'bench'" -l layers -x -a "(__adit_values 'LAYERS')" -d 'of bare, tunnel, mapped'
complete -c adit -n "__adit_after 'bench'" -l udp-rate -x -a "(__adit_values 'RATE')" -d 'of UDP, as in 200mbit; without it, as fast as the sender can'
complete -c adit -n "__adit_after 'bench'" -l json -d 'one JSON object; what has no result is null'
complete -c adit -n "__adit_after 'bench'" -l html -x -a "(__adit_values 'FILE')" -d 'write a page with charts to this file'
complete -c adit -n "__adit_after 'bench'" -l compare -x -a "(__adit_values 'FILE')" -d 'what --json printed before a change'
complete -c adit -n "__adit_after 'bench'" -l interface -x -a "(__adit_values 'NAME')" -d 'where several have such a peer'
complete -c adit -n "__adit_after 'bench'" -l address -x -a "(__adit_values 'ADDRESS')" -d 'the peer'\''s address inside the tunnel'
complete -c adit -n "__adit_after 'bench'" -l endpoint -x -a "(__adit_values 'HOST')" -d 'the peer'\''s address outside of it'
complete -c adit -n "__adit_after 'bench'" -l mapped -x -a "(__adit_values 'TARGET')" -d 'ADDRESS:PORT that leads to the peer'\''s iperf3'
complete -c adit -n "__adit_after 'bench'" -l port -x -a "(__adit_values 'PORT')" -d 'of the peer'\''s iperf3'
complete -c adit -n "__adit_after 'bench'" -l backend -x -a "(__adit_values 'auto|kernel|userspace')" -d 'of --local: auto, kernel, userspace'
complete -c adit -n "__adit_after 'bench'" -l cipher -x -a "(__adit_values 'auto|chacha20-poly1305|aes-256-gcm|aes-128-gcm')" -d 'of --local: auto, or a suite'\''s name'
complete -c adit -n "__adit_after 'bench server'" -l bind -x -a "(__adit_values 'ADDRESS')" -d 'this machine'\''s address inside the tunnel; without it, what the daemon says'
complete -c adit -n "__adit_after 'bench server'" -l endpoint -x -a "(__adit_values 'HOST')" -d 'also at this address outside the tunnel, for the bare link; `auto` finds it'
complete -c adit -n "__adit_after 'bench server'" -l port -x -a "(__adit_values 'PORT')" -d 'of iperf3'
complete -c adit -n "__adit_after 'bench server'" -l once -d 'end some seconds after the first benchmark'
complete -c adit -n "__adit_after 'bench crypto'" -l packet -x -a "(__adit_values 'BYTES')" -d 'bytes of plaintext in a packet'
complete -c adit -n "__adit_after 'bench crypto'" -l batch -x -a "(__adit_values 'N')" -d 'packets handed over at once'
complete -c adit -n "__adit_after 'bench crypto'" -l seconds -x -a "(__adit_values 'SECONDS')" -d 'for each cell of the table'
complete -c adit -n "__adit_after 'bench crypto'" -l json -d 'one JSON object: packet_bytes, batch, results'
complete -c adit -n "__adit_after 'bench show'" -l json -d 'one JSON object; what has no result is null'
complete -c adit -n "__adit_after 'bench show'" -l html -x -a "(__adit_values 'FILE')" -d 'write a page with charts to this file'
complete -c adit -n "__adit_after 'bench show'" -l compare -x -a "(__adit_values 'FILE')" -d 'what --json printed before a change'
complete -c adit -n "__adit_after 'show'" -l json -d 'one JSON object (with `all` an array of them); never with keys'
function __adit_arguments
    switch $argv[1]
        case 'invite'
            echo 'NAME'
        case 'join'
            echo 'TOKEN'
        case 'up'
            echo 'NAME'
        case 'down'
            echo 'NAME'
        case 'reload'
            echo 'NAME'
        case 'status'
            echo 'NAME'
        case 'map list'
            echo 'NAME'
        case 'map add'
            echo 'NAME LISTEN TO'
        case 'map del'
            echo 'NAME LISTEN'
        case 'map check'
            echo 'NAME LISTEN'
        case 'peer remove'
            echo 'PEER'
        case 'peer rotate'
            echo 'PEER'
        case 'export'
            echo 'PEER'
        case 'import'
            echo 'FILE'
        case 'trace'
            echo 'PROTO DESTINATION from SOURCE'
        case 'check'
            echo 'FILE'
        case 'strip'
            echo 'FILE'
        case 'tune plan'
            echo 'NAME'
        case 'tune apply'
            echo 'NAME'
        case 'doctor'
            echo 'NAME'
        case 'monitor'
            echo 'NAME'
        case 'bench'
            echo 'PEER'
        case 'bench server'
            echo 'NAME'
        case 'bench show'
            echo 'FILE'
        case 'show'
            echo 'INTERFACE FIELD'
        case 'showconf'
            echo 'INTERFACE'
        case 'set'
            echo 'INTERFACE'
        case 'setconf'
            echo 'INTERFACE FILE'
        case 'addconf'
            echo 'INTERFACE FILE'
        case 'syncconf'
            echo 'INTERFACE FILE'
        case 'save'
            echo 'NAME'
        case 'help'
            echo 'COMMAND'
    end
end
# end tables

function __adit_named
    set -l folder /etc/adit
    set -q ADIT_CONFIG_DIR; and set folder $ADIT_CONFIG_DIR
    for file in $folder/*.conf
        string replace -r '.*/(.*)\.conf$' '$1' $file
    end
end

function __adit_peers
    adit peer list --json 2>/dev/null | string replace -rf '^ *"name": "([^"]*)",$' '$1'
end

# The command that the words so far name; the rest of them, without options, in __adit_rest.
function __adit_command
    set -l words (commandline -opc)[2..]
    set -l command
    while set -q words[1]; and contains -- (string join -- ' ' $command $words[1]) $__adit_commands
        set -a command $words[1]
        set -e words[1]
    end
    set -g __adit_rest (string match -v -- '-*' $words)
    string join -- ' ' $command
end

# __adit_after COMMAND: whether a word of that command is being completed.
function __adit_after
    set -l command (__adit_command)
    test "$command" = "$argv[1]"
end

# Values of one kind: an argument or a value as the help calls it, or a choice such as "a|b".
function __adit_values
    switch (string replace '...' '' $argv[1])
        case '*|*'
            string split '|' $argv[1]
        case NAME
            adit show interfaces 2>/dev/null
            __adit_named
        case INTERFACE
            adit show interfaces 2>/dev/null
        case PEER TO
            __adit_peers
        case FILE FOLDER
            __fish_complete_path (commandline -ct)
        case COMMAND
            string match -v '* *' $__adit_commands
        case NIC
            path basename /sys/class/net/*
        case PROTO
            printf '%s\n' tcp udp
        case from
            echo from
        case FIELD
            printf '%s\n' public-key private-key listen-port fwmark peers preshared-keys \
                endpoints allowed-ips latest-handshakes transfer persistent-keepalive dump
    end
end

# The argument that is being completed.
function __adit_argument
    set -l command (__adit_command)
    if test "$command" = set; and set -q __adit_rest[1]
        printf '%s\n' listen-port fwmark private-key peer remove preshared-key endpoint \
            persistent-keepalive allowed-ips
        return
    end
    set -l kinds (string split ' ' (__adit_arguments $command))
    set -l position (math (count $__adit_rest) + 1)
    set -q kinds[$position]; or return
    __adit_values $kinds[$position]
    switch "$command:$kinds[$position]"
        case up:NAME
            __fish_complete_path (commandline -ct)
        case check:FILE strip:FILE
            __adit_named
        case show:INTERFACE
            printf '%s\n' all interfaces
    end
end

complete -c adit -f -a '(__adit_argument)'
complete -c adit -s h -l help -d 'Print help'

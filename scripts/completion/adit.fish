# Completion of adit(8) for fish.

function __adit_running
    adit show interfaces 2>/dev/null
end

function __adit_named
    set -l folder /etc/adit
    set -q ADIT_CONFIG_DIR; and set folder $ADIT_CONFIG_DIR
    for file in $folder/*.conf
        string replace -r '.*/(.*)\.conf$' '$1' $file
    end
    __adit_running
end

# __adit_at COMMAND POSITION: whether the word number POSITION of COMMAND is being completed.
function __adit_at
    set -l words (commandline -opc)
    test (count $words) -eq (math $argv[2]); and contains -- $words[2] (string split , $argv[1])
end

complete -c adit -f
complete -c adit -n __fish_use_subcommand -a up -d 'Bring an interface up'
complete -c adit -n __fish_use_subcommand -a down -d 'Take it down and undo what was changed for it'
complete -c adit -n __fish_use_subcommand -a reload -d 'Apply a changed file, keep sessions'
complete -c adit -n __fish_use_subcommand -a save -d 'Write what `adit set` has changed'
complete -c adit -n __fish_use_subcommand -a status -d 'What works, what does not and why'
complete -c adit -n __fish_use_subcommand -a check -d 'Every mistake of a file'
complete -c adit -n __fish_use_subcommand -a strip -d 'The part of a file that wg knows'
complete -c adit -n __fish_use_subcommand -a map -d 'Ports of the server that lead to a peer'
complete -c adit -n __fish_use_subcommand -a trace -d 'What becomes of a packet'
complete -c adit -n __fish_use_subcommand -a tune -d 'Settings of the machine for the tunnel'
complete -c adit -n __fish_use_subcommand -a bench -d 'How fast each layer is'
complete -c adit -n __fish_use_subcommand -a doctor -d 'What is wrong or slow, and the remedy'
complete -c adit -n __fish_use_subcommand -a monitor -d 'Live view'
complete -c adit -n __fish_use_subcommand -a show -d 'As wg(8) shows it'
complete -c adit -n __fish_use_subcommand -a 'showconf set setconf addconf syncconf' -d 'As wg(8)'
complete -c adit -n __fish_use_subcommand -a 'genkey genpsk pubkey' -d 'Keys'
complete -c adit -n __fish_use_subcommand -a 'version help'

complete -c adit -n '__adit_at up,check,strip 2' -F -a '(__adit_named)'
complete -c adit -n '__adit_at down,reload,save,status,monitor,doctor 2' -a '(__adit_named)'
complete -c adit -n '__adit_at showconf,set,setconf,addconf,syncconf 2' -a '(__adit_running)'
complete -c adit -n '__adit_at setconf,addconf,syncconf 3' -F
complete -c adit -n '__adit_at show 2' -a 'all interfaces (__adit_running)'
complete -c adit -n '__adit_at show 3' -a 'public-key private-key listen-port fwmark peers
    preshared-keys endpoints allowed-ips latest-handshakes transfer persistent-keepalive dump --json'
complete -c adit -n '__adit_at map 2' -a 'list add del check'
complete -c adit -n '__adit_at map 3' -a '(__adit_named)'
complete -c adit -n '__adit_at tune 2' -a 'plan apply revert status'
complete -c adit -n '__adit_at bench 2' -a 'server crypto --local'
complete -c adit -n '__adit_at trace 2' -a 'tcp udp'
complete -c adit -l json -d 'One JSON object'
complete -c adit -s h -l help -d 'Help'

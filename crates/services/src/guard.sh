# Runs one server in a folder and does what it reads: a command a line, each
# answered with a line. When nobody can write to it any more, because whoever
# started it has ended in whatever way, it kills the server and removes the folder.
#
#   sh FOLDER/guard FOLDER

# Meant for others. A hangup comes when a paused server is orphaned with its guard.
trap '' HUP INT TERM
folder=$1
pid=

# Whether one of these processes still runs.
living() {
    for one; do
        if { read -r _ _ state _ <"/proc/$one/stat"; } 2>/dev/null; then
            case $state in [ZX]) ;; *) return 0 ;; esac
        fi
    done
    return 1
}

# Waits for the end of these processes, for half a minute at most.
await_end() {
    turns=0
    while living "$@" && [ "$turns" -lt 3000 ]; do
        sleep 0.01
        turns=$((turns + 1))
    done
}

# The server and what descends from it. PostgreSQL's children lead groups of their own.
family() {
    cat /proc/[0-9]*/status 2>/dev/null | awk -v root="$pid" '
        $1 == "Pid:" { id = $2 }
        $1 == "PPid:" { parent[id] = $2 }
        END {
            all[root]
            do {
                more = 0
                for (id in parent)
                    if (!(id in all) && (parent[id] in all)) { all[id]; more = 1 }
            } while (more)
            for (id in all) print id
        }'
}

# The server first: one that is stopped starts no more children.
freeze() {
    kill -STOP "$pid" 2>/dev/null
    members=$(family)
    kill -STOP $members 2>/dev/null
}

kill_all() {
    [ -n "$pid" ] || return 0
    freeze
    kill -KILL $members 2>/dev/null
    await_end $members
    wait "$pid" 2>/dev/null
    pid=
}

while read -r word argument; do
    if [ -z "$pid" ] && [ "$word" != start ] && [ "$word" != kill ]; then
        echo ended
        continue
    fi
    case $word in
        start)
            kill_all
            # Emptied before the answer: what an earlier run wrote must not be read any more.
            : >"$folder/log"
            sh "$folder/run" </dev/null >>"$folder/log" 2>&1 &
            pid=$!
            ;;
        kill) kill_all ;;
        stop)
            kill -CONT $(family) 2>/dev/null
            kill "-$argument" "$pid" 2>/dev/null
            await_end "$pid"
            kill_all
            ;;
        pause) freeze ;;
        resume) kill -CONT $(family) 2>/dev/null ;;
        look) living "$pid" || { echo ended; continue; } ;;
    esac
    echo done
done
kill_all
cd / && rm -rf "$folder"

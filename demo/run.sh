#!/usr/bin/env bash
# The demo: loads the graph of Debian's packages and asks it questions. Each command is shown before it runs.
# usage: ANDEN=PROGRAM demo/run.sh DB     (DB is made anew)
set -euo pipefail

anden=${ANDEN:-anden}
db=${1:-demo.anden}
data=$(dirname "${BASH_SOURCE[0]}")/debian-bookworm

bold='' plain=''
if [ -t 1 ]; then
    bold=$'\033[1m' plain=$'\033[0m'
fi
say() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }

run() {
    printf '$ anden %s\n' "$*"
    "$anden" "$@"
}

if [ -e "$db" ]; then
    [ -f "$db/MANIFEST" ] || { echo "$db exists and is no database: remove it first" >&2; exit 1; }
    rm -r -- "$db"
fi

say 'Load: every package of Debian 12 and what it asks for, from compressed CSV into a durable database.'
run load "$db" "$data.csv.xz" --vertices "$data-packages.csv.xz" --ids string

say 'What is in it, and how are the degrees spread?'
run info "$db"

say 'A package with its properties, and an edge with its own: 1 Depends, 2 Pre-Depends, 4 Recommends, 8 Suggests.'
run query "$db" vertex gimp
run query "$db" edge libreoffice-common libreoffice-style-colibre

say 'What does everything rest on? PageRank follows the dependencies.'
run run "$db" pagerank

say 'How much hangs together? Weakly connected components.'
run run "$db" wcc

say 'And how much of it goes in circles? The largest strongly connected component: all in it may ask for each other.'
run run "$db" scc

say 'Why would the C library ask for an image editor? The shortest chain of dependencies and suggestions.'
run query "$db" path libc6 gimp

say 'And the other way round?'
run query "$db" path gimp libc6

say 'Append: what the updates of the months since have changed, as a second snapshot of the same graph.'
run append "$db" "$data-updates.csv.xz" --vertices "$data-updates-packages.csv.xz" \
    --remove "$data-updates-gone.txt.xz" --name updates
run snapshots "$db"

say 'What has changed for the kernel that everybody installs?'
printf "$ anden diff %s 1 updates | grep ' linux-image-amd64 '\n" "$db"
"$anden" diff "$db" 1 updates | grep ' linux-image-amd64 '

say 'PageRank then and now: the first snapshot stays as it was.'
run run "$db" pagerank --snapshot 1
run run "$db" pagerank

say "The database stays in $db. To go on:"
cat <<END
  anden query $db neighbors emacs            what emacs asks for
  anden query $db neighbors sl --in          who asks for sl
  anden query $db neighbors linux-image-amd64 --snapshot 1     which kernel it was at first
  anden query $db neighbors linux-image-amd64                  and which it is now
  anden run   $db wcc --window 2..2          only what the updates added
  anden query $db khop cowsay 2              everything within two steps of cowsay
  anden query $db path firefox-esr cowsay    why the browser may need a talking cow
  anden run   $db bfs --source gnome         how deep a desktop goes
  anden query $db vertex chromium            its size now; --snapshot 1: before
  anden query $db path gimp libc6 --weight kinds     Depends cost least
  anden run   $db triangles
  anden verify $db                           read every checksum
The program is $anden; 'make install' puts it on the PATH.
END
